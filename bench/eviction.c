/* SPDX-License-Identifier: MIT */
#include "eviction.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "report.h"

static int begins(const char *text, const char *words)
{
    return strncmp(text, words, strlen(words)) == 0;
}

/* Takes "@123us " away from a step and returns the time; a step without one has that of the step
 * before. */
static uint64_t take_time(char **step, uint64_t before)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = { { "ns ", 1 }, { "us ", 1000 }, { "ms ", B_MS }, { "s ", B_S } };
    uint64_t n;
    size_t i;

    if (**step != '@')
        return before;
    n = strtoull(*step + 1, step, 10);
    for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (begins(*step, units[i].name)) {
            *step += strlen(units[i].name);
            return n * units[i].ns;
        }
    return 0;
}

/* Returns 1 when a worker is up that came after an eviction. */
static int follow(struct b_eviction *e, const char *step, uint64_t now)
{
    if (begins(step, "submit "))
        *e = (struct b_eviction){ .submit = now };
    else if (begins(step, "begun ") && e->order == 0)
        e->order = now;
    else if (begins(step, "memory "))
        e->gone = now;
    else if (begins(step, "begun ") && e->gone > 0)
        e->start = now; /* the last one: a MAKE may precede it */
    return begins(step, "setup_ok ") && e->gone > 0;
}

int b_evictions_read(const char *path, struct b_eviction *list, size_t most)
{
    struct b_eviction now = { 0 };
    FILE *in = fopen(path, "re");
    uint64_t at = 0;
    char *line = NULL, *step;
    size_t room = 0, n = 0;

    if (!in)
        return b_complain("the decision log could not be read");
    while (n < most && getline(&line, &room, in) > 0) {
        step = line;
        at = take_time(&step, at);
        if (follow(&now, step, at))
            list[n++] = now;
    }
    free(line);
    (void)fclose(in);
    return (int)n;
}
