/* SPDX-License-Identifier: MIT */
/*
 * plugin.c - the workers' half of a program: a shared object that counts the lines of a file that
 * match a pattern.  The host's half is plugin_host.c, or ctypes_batch.py.
 *
 * cc -std=c11 -Wall -Wextra -shared -fPIC plugin.c -o plugin.so $(pkg-config --cflags gpudispatch)
 *
 * It needs no link with the library, because the worker program has loaded that.  This command
 * prints "./plugin.so: in order", or the fault that it finds in the object:
 * $(pkg-config --variable=worker_program gpudispatch) ./plugin.so
 *
 * The two halves exchange these bytes: setup data, a pattern with its NUL; task data, a file name
 * with its NUL; result, a uint64_t.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <gpudispatch/gpudispatch.h>
#include <gpudispatch/plugin.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs once per worker: the place for expensive work, such as loading a model. */
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
        return gpud_worker_fail(w, r, text); /* the text of the host's SETUP_FAILURE event */
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

/* Runs before the worker exits in order. */
static void cleanup(gpud_worker *w, void *state)
{
    (void)w;
    regfree(state);
    free(state);
}

static const struct gpud_definition definitions[] = { GPUD_DEFINITION("count", setup, count,
                                                                      cleanup) };
GPUD_PLUGIN(definitions);
