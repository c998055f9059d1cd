/* SPDX-License-Identifier: MIT */
/*
 * script.c - checks the core against scripts: at each step the core must have the script's effects.
 *
 *     script [--rewrite] FILE...       FILE may be a pattern: a test runs all scripts of a folder
 *
 * lib/sim/log.h defines the form of a script.  --rewrite replaces the effects in the scripts by the
 * core's current effects, which the author then reviews as a diff.  Exit status: 1 if a script
 * fails.
 */
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/replay.h"

/* For the handler of SIGABRT: the current script, and the replay with its line. */
static const char *file;
static struct gpi_replay replay;

/* Prints the step at which an assertion of the core fails, since the assertion does not know it. */
static void on_abort(int signal_number)
{
    char text[512];
    const int n = snprintf(text, sizeof text, "%s:%u: the core aborts at this step\n", file,
                           replay.line);

    (void)signal_number;
    (void)!write(STDOUT_FILENO, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

static void fail_errno(const char *what)
{
    (void)printf("%s: %s: %s\n", file, what, strerror(errno));
}

/* Returns the text of the file, which the caller frees.  On failure it prints a message and returns
 * NULL. */
static char *read_file(size_t *ret_size)
{
    FILE *in = fopen(file, "re");
    char *text = NULL, part[4096];
    FILE *all = open_memstream(&text, ret_size);
    size_t n;
    int failed = !in || !all;

    while (!failed && (n = fread(part, 1, sizeof part, in)) > 0)
        failed = fwrite(part, 1, n, all) != n;
    failed |= in && ferror(in);
    failed |= all && fclose(all);
    if (failed) {
        fail_errno("cannot be read");
        free(text);
        text = NULL;
    }
    if (in)
        (void)fclose(in);
    return text;
}

static int write_file(const char *text, size_t size)
{
    FILE *out = fopen(file, "we");
    int failed = !out || fwrite(text, 1, size, out) != size;

    if (out)
        failed |= fclose(out) != 0;
    if (failed)
        fail_errno("cannot be written");
    else
        (void)printf("%s: rewritten\n", file);
    return !failed;
}

/* ---- a script ---- */

static int report(enum gpi_replay_result result)
{
    if (result == GPI_REPLAY_BAD)
        (void)printf("%s:%u: %s\n", file, replay.line, replay.error);
    else if (result == GPI_REPLAY_DIFFERS)
        (void)printf("%s:%u: wanted %s\n%s:%u: got    %s\n", file, replay.line, replay.wanted, file,
                     replay.line, replay.got);
    else if (!replay.steps)
        (void)printf("%s: has no step\n", file);
    else
        return 1;
    return 0;
}

static int compare(const char *text, size_t size)
{
    replay = (struct gpi_replay){ 0 };
    return report(gpi_replay(&replay, text, size));
}

static int rewrite(const char *text, size_t size)
{
    char *anew = NULL;
    size_t n = 0;
    enum gpi_replay_result result;
    int passed;

    replay = (struct gpi_replay){ .rewritten = open_memstream(&anew, &n) };
    if (!replay.rewritten) {
        fail_errno("cannot be rewritten");
        return 0;
    }
    result = gpi_replay(&replay, text, size);
    if (fclose(replay.rewritten) != 0) {
        fail_errno("cannot be rewritten");
        passed = 0;
    } else if (result == GPI_REPLAY_DIFFERS) {
        passed = write_file(anew, n);
    } else {
        passed = report(result);
    }
    free(anew);
    return passed;
}

static int run(int (*how)(const char *text, size_t size))
{
    size_t size;
    char *text = read_file(&size);
    const int passed = text && how(text, size);

    free(text);
    return passed;
}

/* Returns the number of scripts that passed. */
static size_t run_all(const glob_t *files, int (*how)(const char *text, size_t size))
{
    size_t passed = 0;

    for (size_t i = 0; i < files->gl_pathc; i++) {
        file = files->gl_pathv[i];
        passed += (size_t)run(how);
    }
    return passed;
}

int main(int argc, char **argv)
{
    const int rewrites = argc > 1 && !strcmp(argv[1], "--rewrite"), first = 1 + rewrites;
    glob_t files = { 0 };
    size_t passed;

    if (argc <= first) {
        (void)fprintf(stderr, "usage: script [--rewrite] FILE...\n");
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* an abort must not lose findings */
    (void)sigaction(SIGABRT, &(struct sigaction){ .sa_handler = on_abort }, NULL);
    for (int i = first; i < argc; i++)
        if (glob(argv[i], GLOB_NOCHECK | (i > first ? GLOB_APPEND : 0), NULL, &files)) {
            perror(argv[i]);
            return 1;
        }
    passed = run_all(&files, rewrites ? rewrite : compare);
    (void)printf("%zu scripts, %zu passed, %zu failed\n", files.gl_pathc, passed,
                 files.gl_pathc - passed);
    if (passed != files.gl_pathc)
        return 1;
    globfree(&files);
    return 0;
}
