/* SPDX-License-Identifier: MIT */
/*
 * main.c - gpudispatch-sim: the core in virtual time.
 *
 *     gpudispatch-sim [--rewrite] FILE...
 *     gpudispatch-sim [--time] TRACE.jsonl...
 *     gpudispatch-sim --world SEED [slots=N] [devices=N] [tasks=N] [seconds=S] [trouble]
 *
 * FILE is a script, or the log of a dispatcher (log/log.h); or a pattern of such files.  At each
 * step a fresh core must have the effects in the file.  A log, and each file NAME.log, may be
 * incomplete: its process may have been killed.  The program reports a log without its end.
 * --rewrite replaces the effects by the core's current ones, which
 * the author then reviews as a diff.  A file NAME.plan is a script of a plan (sim/plan_script.h),
 * which the slow model judges, too.
 *
 * A file NAME.jsonl is a trace: tasks of several classes that share devices, played by the plan in
 * virtual time.  sim/trace.h documents its lines and those of the output, which is the same for the
 * same trace.  --time adds the measured time of a decision to the summary.  A program that was
 * built without jansson reads no traces.
 *
 * --world runs the world of a seed (sim/world.h), and prints the core's steps and effects in it as
 * a script.  The values bound the world: without them it has one slot, one device, three tasks and
 * one second.  Nothing goes wrong in it, unless the command has `trouble`.
 *
 * Exit status: 1 if a file fails, a trace cannot be read, or an oracle objects to the world.
 */
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sim/plan_script.h"
#include "sim/replay.h"
#include "sim/trace.h"
#include "sim/world.h"

/* For the handler of SIGABRT: the current script, and the replay with its line. */
static const char *file = "";
static struct gpi_replay replay;

/* Prints the step at which an assertion of the core fails, since the assertion does not know it. */
static void on_abort(int signal_number)
{
    char text[512];
    const int n =
        snprintf(text, sizeof text, "%s:%u: the core aborts at this step\n", file, replay.line);

    (void)signal_number;
    (void)!write(STDOUT_FILENO, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

static void fail_errno(const char *what)
{
    (void)printf("%s: %s: %s\n", file, what, strerror(errno));
}

/* Returns the text of the file, which the caller frees.  On failure it prints a message and returns
 * NULL. */
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

/* ---- files ---- */

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

static int ends_in(const char *suffix)
{
    const size_t n = strlen(file), most = strlen(suffix);

    return n > most && !strcmp(file + n - most, suffix);
}

static int begins_with(const char *text, size_t size, const char *words)
{
    const size_t n = strlen(words);

    return size >= n && !memcmp(text, words, n);
}

static int has_ending(const char *text, size_t size)
{
    const size_t n = strlen(GPI_LOG_ENDING "\n");

    return size >= n && !memcmp(text + size - n, GPI_LOG_ENDING "\n", n);
}

/* An incomplete log passes, since its host may have been killed. */
static void report_end(const char *text, size_t size)
{
    if (replay.was_cut)
        (void)printf("%s:%u: the log was cut: it lacks all later steps\n", file, replay.line);
    else if (begins_with(text, size, GPI_LOG_HEADING) && !has_ending(text, size))
        (void)printf("%s:%u: the log has no end: its dispatcher was not destroyed%s\n", file,
                     replay.line, replay.torn ? ", and its last line is incomplete" : "");
}

/* The script of a plan has its own reader, and the same results. */
static enum gpi_replay_result replay_plan(const char *text, size_t size)
{
    struct gpi_plan_script s = { .rewritten = replay.rewritten };
    const enum gpi_plan_script_result result = gpi_plan_script(&s, text, size);

    replay.line = s.line;
    replay.steps = (uint32_t)s.facts;
    (void)snprintf(replay.wanted, sizeof replay.wanted, "%s", s.wanted);
    (void)snprintf(replay.got, sizeof replay.got, "%s", s.got);
    (void)snprintf(replay.error, sizeof replay.error, "%s", s.error);
    return result == GPI_PLAN_SCRIPT_EQUAL     ? GPI_REPLAY_EQUAL
           : result == GPI_PLAN_SCRIPT_DIFFERS ? GPI_REPLAY_DIFFERS
                                               : GPI_REPLAY_BAD;
}

static enum gpi_replay_result replay_text(const char *text, size_t size)
{
    return ends_in(".plan") ? replay_plan(text, size) : gpi_replay(&replay, text, size);
}

static int compare(const char *text, size_t size)
{
    replay = (struct gpi_replay){ .cut = ends_in(".log") ||
                                         begins_with(text, size, GPI_LOG_HEADING) };
    if (!report(replay_text(text, size)))
        return 0;
    report_end(text, size);
    return 1;
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
    result = replay_text(text, size);
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
    char *text = gpi_replay_file(file, &size);
    const int passed = text && how(text, size);

    if (!text)
        fail_errno("cannot be read");
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

static int run_files(char **patterns, int n, int (*how)(const char *text, size_t size))
{
    glob_t files = { 0 };
    size_t passed;

    for (int i = 0; i < n; i++)
        if (glob(patterns[i], GLOB_NOCHECK | (i ? GLOB_APPEND : 0), NULL, &files)) {
            perror(patterns[i]);
            return 1;
        }
    passed = run_all(&files, how);
    (void)printf("%zu files, %zu passed, %zu failed\n", files.gl_pathc, passed,
                 files.gl_pathc - passed);
    n = passed != files.gl_pathc;
    globfree(&files);
    return n;
}

/* ---- traces ---- */

static bool is_trace(const char *path)
{
    const size_t n = strlen(path);

    return n > 6 && !strcmp(path + n - 6, ".jsonl");
}

#ifdef GPI_HAVE_JANSSON
static int play_trace(const char *path, bool time)
{
    const struct gpi_trace_options o = { .out = stdout, .time = time, .line = &replay.line };

    file = path;
    return gpi_trace_play(path, &o);
}
#else
static int play_trace(const char *path, bool time)
{
    (void)time;
    (void)fprintf(stderr, "%s: built without jansson: cannot read traces\n", path);
    return -1;
}
#endif

static int play_traces(char **paths, int n, bool time)
{
    int failed = 0;

    for (int i = 0; i < n; i++)
        failed |= play_trace(paths[i], time) != 0;
    return failed;
}

/* ---- a world ---- */

static int usage(void)
{
    (void)fprintf(stderr, "usage: gpudispatch-sim [--rewrite] FILE...\n"
                          "       gpudispatch-sim [--time] TRACE.jsonl...\n"
                          "       gpudispatch-sim --world SEED [slots=N] [devices=N] [tasks=N] "
                          "[seconds=S] [trouble]\n");
    return 2;
}

/* Returns false if the text is no bound of a world. */
static bool set_bound(struct gpi_world_options *o, const char *text)
{
    uint32_t n;
    char rest;

    if (!strcmp(text, "trouble"))
        o->without = 0;
    else if (sscanf(text, "slots=%u%c", &n, &rest) == 1 && n > 0)
        o->slots = n;
    else if (sscanf(text, "devices=%u%c", &n, &rest) == 1 && n > 0)
        o->devices = n;
    else if (sscanf(text, "tasks=%u%c", &n, &rest) == 1 && n > 0)
        o->tasks = n;
    else if (sscanf(text, "seconds=%u%c", &n, &rest) == 1 && n > 0)
        o->length = n * GPI_S;
    else
        return false;
    return true;
}

static int run_world(char **words, int n)
{
    struct gpi_world_options o = {
        .without = UINT64_MAX, .slots = 1, .devices = 1, .tasks = 3, .length = GPI_S, .log = stdout
    };
    struct gpi_world_report report;
    char *end;
    const uint64_t seed = n ? strtoull(words[0], &end, 10) : 0;
    int objects;

    if (!n || *end || end == words[0])
        return usage();
    for (int i = 1; i < n; i++)
        if (!set_bound(&o, words[i]))
            return usage();
    objects = gpi_world_run(seed, &o, &report);
    (void)printf("\n# %llu events in %.3f s; %s\n", (unsigned long long)report.events,
                 (double)report.time / (double)GPI_S, objects ? report.text : "no oracle objects");
    return objects;
}

int main(int argc, char **argv)
{
    const char *first = argc > 1 ? argv[1] : "";
    const int rewrites = !strcmp(first, "--rewrite"), times = !strcmp(first, "--time");

    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* an abort must not lose findings */
    (void)sigaction(SIGABRT, &(struct sigaction){ .sa_handler = on_abort }, NULL);
    if (!strcmp(first, "--world"))
        return run_world(argv + 2, argc - 2);
    if (argc > 1 + times && is_trace(argv[1 + times]))
        return play_traces(argv + 1 + times, argc - 1 - times, times);
    if (argc <= 1 + rewrites || (!rewrites && *first == '-'))
        return usage();
    return run_files(argv + 1 + rewrites, argc - 1 - rewrites, rewrites ? rewrite : compare);
}
