/* SPDX-License-Identifier: MIT */
#include "play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../report.h"
#include "sim/trace.h"

#ifdef BENCH_HAVE_JANSSON
/* Returns the number behind the words; 0 where they are not. */
static double number_after(const char *text, const char *words)
{
    const char *at = strstr(text, words);

    return at ? strtod(at + strlen(words), NULL) : 0;
}

int b_play(const char *path, struct b_played *ret)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    int rc;

    if (!out)
        return b_complain("no memory for the simulator's output");
    rc = gpi_trace_play(path, &(struct gpi_trace_options){ .out = out });
    if (fclose(out) != 0 || rc) {
        free(text);
        return b_complain("the simulator could not play the trace");
    }
    *ret = (struct b_played){ .makespan = number_after(text, "{\"makespan\": "),
                              .wait = number_after(strstr(text, "\"wait\""), "\"p50\": "),
                              .successes = (unsigned)number_after(text, "{\"success\": "),
                              .boots = (unsigned)number_after(text, "\"boots\": "),
                              .evictions = (unsigned)number_after(text, "\"evictions\": ") };
    free(text);
    return 0;
}
#else
int b_play(const char *path, struct b_played *ret)
{
    (void)path;
    *ret = (struct b_played){ 0 };
    return B_NO_SIMULATOR;
}
#endif
