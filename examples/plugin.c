/* SPDX-License-Identifier: MIT */
/*
 * plugin.c - the worker's half of a program whose workers come from a shared object: counts lines
 * of files that match a pattern. The hosts that use it are plugin_host.c and ctypes_batch.py.
 *
 * cc -std=c11 -Wall -Wextra -shared -fPIC plugin.c -o plugin.so $(pkg-config --cflags gpudispatch)
 *
 * It is not linked with the library: the worker program has that loaded. This prints "./plugin.so:
 * in order", or what is wrong: $(pkg-config --variable=worker_program gpudispatch) ./plugin.so
 *
 * What passes between the halves: setup data, a pattern with its NUL; task, a file name with its
 * NUL; result, a uint64_t.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <gpudispatch/gpudispatch.h>
#include <gpudispatch/plugin.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Once per worker: what is dear, such as loading a model. */
static int setup(gpud_worker *w, void **ret_state)
{
    regex_t *pattern = malloc(sizeof *pattern);
    char text[128];
    size_t size;
    int r;

    if (!pattern)
        return gpud_worker_fail(w, GPUD_ENOMEM, "no memory for the pattern");
    if ((r = regcomp(pattern, gpud_worker_setup_data(w, &size),
                     REG_EXTENDED | REG_NOSUB | REG_NEWLINE))) {
        (void)regerror(r, pattern, text, sizeof text);
        free(pattern);
        return gpud_worker_fail(w, r, text); /* the host reads it with the event SETUP_FAILURE */
    }
    *ret_state = pattern;
    return 0;
}

static int count(gpud_task *t, void *state)
{
    FILE *file = fopen(gpud_task_data(t), "re");
    uint64_t matches = 0;
    char *line = NULL;
    size_t room = 0;
    int r = 0;

    if (!file)
        return gpud_task_fail(t, errno, strerror(errno));
    while (getline(&line, &room, file) >= 0)
        matches += regexec(state, line, 0, NULL, 0) == 0;
    if (ferror(file))
        r = gpud_task_fail(t, errno, strerror(errno));
    free(line);
    (void)fclose(file);
    return r ? r : gpud_task_result_set(t, &matches, sizeof matches);
}

/* When the worker ends in order. */
static void cleanup(gpud_worker *w, void *state)
{
    (void)w;
    regfree(state);
    free(state);
}

static const struct gpud_definition definitions[] = { GPUD_DEFINITION("count", setup, count,
                                                                      cleanup) };
GPUD_PLUGIN(definitions);
