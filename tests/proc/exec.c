/* SPDX-License-Identifier: MIT */
/* exec.c - workers that are programs: the same one again, any other, and whatever is none. */
#include "fixture.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ECHO, LOOK, GLOBAL, LIST };
enum { RUNNING, GATE };

static int a_global;
static char *before_init; /* what this process was before its gpud_init */

/* ---- the worker's side ---- */

static void look_at_files(FILE *out)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char path[300], target[300];
        ssize_t n;

        if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(dir))
            continue;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
        n = readlink(path, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = 0;
        (void)fprintf(out, "file %s %s\n", entry->d_name, target);
    }
    if (dir)
        (void)closedir(dir);
}

static void look_at_status(FILE *out)
{
    FILE *in = fopen("/proc/self/status", "re");
    char line[256];

    while (in && fgets(line, sizeof(line), in))
        if (!strncmp(line, "Name:", 5) || !strncmp(line, "Sig", 3))
            (void)fputs(line, out);
    if (in)
        (void)fclose(in);
}

static void look_before_init(void)
{
    size_t size = 0;
    FILE *out = open_memstream(&before_init, &size);

    T_CHECK(out);
    look_at_status(out);
    (void)fclose(out);
}

/* What this process is, a line each. */
static int look(gpud_task *t)
{
    char *text = NULL, path[512] = "", directory[512] = "";
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    int r;

    if (!out)
        return 1;
    look_at_status(out);
    (void)fprintf(out, "before:\n%s", before_init ? before_init : "");
    look_at_files(out);
    (void)readlink("/proc/self/exe", path, sizeof(path) - 1);
    (void)fprintf(out, "program %s\n", path);
    (void)fprintf(out, "directory %s\n", getcwd(directory, sizeof(directory)));
    (void)fprintf(out, "leader %d %d\n", getsid(0) == getpid(), getpgrp() == getpid());
    (void)fprintf(out, "call %s\n", getenv("GPUD_WORKER") ? "there" : "gone");
    (void)fprintf(out, "slot %s life %s device %s\n", getenv("GPUD_SLOT"),
                  getenv("GPUD_INCARNATION"), getenv("GPUD_DEVICES"));
    (void)fclose(out);
    r = gpud_task_result_set(t, text, size + 1);
    free(text);
    return r;
}

/* What a program that the worker executes finds. */
static int list(gpud_task *t)
{
    FILE *in = popen("ls -l /proc/self/fd; echo call: $GPUD_WORKER.", "re");
    char text[4096];
    size_t n = in ? fread(text, 1, sizeof(text) - 1, in) : 0;

    text[n] = 0;
    if (!in || pclose(in))
        return 1;
    return gpud_task_result_set(t, text, n + 1);
}

static int process(gpud_task *t, void *state)
{
    (void)state;
    switch (gpud_task_tag(t) % 8) {
    case LOOK:
        return look(t);
    case LIST:
        return list(t);
    case GLOBAL:
        return gpud_task_result_set(t, &a_global, sizeof(a_global));
    default:
        return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
    }
}

/* ---- the same program ---- */

static void has_line(const char *text, const char *line)
{
    const char *at = strstr(text, line);

    if (!at || (at != text && at[-1] != '\n'))
        T_FAIL("no line \"%s\" in\n%s", line, text);
}

/* A6: before user code: default signals, nothing blocked, own session and group, no file of
 * another's. */
T_CASE(same_program)
{
    struct t_log log = { 0 };
    char here[512] = "", line[600];
    const char *text;
    gpud_dispatcher *d;

    T_CHECK(getcwd(here, sizeof(here)));
    look_before_init();
    a_global = 7; /* set before gpud_init, and so set again by whoever runs this again */
    t_init(NULL, process, NULL);
    a_global = 8;
    d = T_CREATE(.devices = "cpu:2", .start = GPUD_START_EXEC);
    T_EQ(*(const int *)T_RUN(d, &log, SUCCESS, .tag = GLOBAL)->result, 7);
    text = T_RUN(d, &log, SUCCESS, .tag = LOOK)->result;
    has_line(text, "Name:\tgpud-w");
    has_line(text, "SigBlk:\t0000000000000000");
    has_line(text, "SigIgn:\t0000000000000000");
    text = strstr(text, "before:");
    T_CHECK(text);
    has_line(text, "SigBlk:\t0000000000000000");
    has_line(text, "SigIgn:\t0000000000000000");
    if (!T_SANITIZED) /* whose handlers are there from the start */
        has_line(text, "SigCgt:\t0000000000000000");
    has_line(text, "leader 1 1");
    has_line(text, "call gone");
    has_line(text, "slot ");
    (void)snprintf(line, sizeof(line), "directory %s\n", here);
    has_line(text, line);
    has_line(text, "file 0 /dev/null");
    has_line(text, "file 1 pipe:");
    has_line(text, "file 2 pipe:");
    if (strstr(text, "memfd:gpud") || strstr(text, "socket:"))
        T_FAIL("a file too many in\n%s", text);
    t_end(&d, &log);
    free(before_init);
}

/* The highest number of the lines "... NUMBER -> TARGET". */
static int highest_file(const char *lines)
{
    int highest = -1;

    for (const char *at = lines; (at = strstr(at, " -> ")); at++) {
        const char *number = at;

        while (number > lines && isdigit((unsigned char)number[-1]))
            number--;
        highest = atoi(number) > highest ? atoi(number) : highest;
    }
    return highest;
}

/* C13: a program that a worker executes gets nothing of ours: no file, no call. */
T_CASE(programs_of_workers)
{
    struct t_log log = { 0 };
    const char *text;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .start = GPUD_START_EXEC);

    text = T_RUN(d, &log, SUCCESS, .tag = LIST)->result;
    if (strstr(text, "memfd:gpud") || highest_file(text) < 2 || highest_file(text) >= 700 ||
        !strstr(text, "call: .\n"))
        T_FAIL("it has\n%s", text);
    t_end(&d, &log);
}

/* ---- another language ---- */

/* The least that a binding does: ctypes, and nothing but the public structs. */
static const char python[] =
    "import ctypes as c, os, sys\n"
    "assert 'GPUD_WORKER' in os.environ and os.environ['GPUD_SLOT'] == '0'\n"
    "lib = c.CDLL(sys.argv[1])\n"
    "process_fn = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p)\n"
    "class Definition(c.Structure):\n"
    "    _fields_ = [('struct_size', c.c_uint32), ('reserved', c.c_uint32), ('name', c.c_char_p), "
    "('setup', c.c_void_p),\n"
    "                ('process', process_fn), ('cleanup', c.c_void_p), ('process_batch', "
    "c.c_void_p)]\n"
    "lib.gpud_task_data.restype = c.c_void_p\n"
    "lib.gpud_task_size.restype = c.c_size_t\n"
    "@process_fn\n"
    "def process(task, state):\n"
    "    task = c.c_void_p(task)\n"
    "    data = c.string_at(lib.gpud_task_data(task), lib.gpud_task_size(task))\n"
    "    if data == b'exit':\n"
    "        os._exit(5)\n"
    "    data = data.upper()\n"
    "    return lib.gpud_task_result_set(task, data, c.c_size_t(len(data)))\n"
    "print('importing', flush=True)\n"
    "d = Definition(c.sizeof(Definition), 0, b'upper', None, process, None, None)\n"
    "lib.gpud_init(c.byref(d), c.c_size_t(1), None)\n";

T_CASE(python_program)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;
    Dl_info info;

    if (T_SANITIZED)
        t_skip("a sanitizer must be there from a program's start");
    T_CHECK(dladdr((void *)(uintptr_t)gpud_init, &info));
    d = t_create(
        T_OPTIONS(.definition = "upper",
                  .argv = (const char *const[]){ "python3", "-c", python, info.dli_fname, NULL }));
    T_SUBMIT(d, .tag = 1, .data = "hello", .size = 5);
    T_SUBMIT(d, .tag = 2, .data = "exit", .size = 4);
    T_SUBMIT(d, .tag = 3, .data = "again", .size = 5);
    t_collect(d, &log, 3);
    T_EQ(memcmp(T_OUTCOME(&log, 1, SUCCESS)->result, "HELLO", 5), 0);
    T_EQ(memcmp(T_OUTCOME(&log, 3, SUCCESS)->result, "AGAIN", 5), 0);
    e = T_OUTCOME(&log, 2, CRASHED);
    T_EQ(e->exit_kind, GPUD_EXIT_CODE);
    T_EQ(e->exit_status, 5);
    T_CHECK(strstr(e->output_before, "importing"));
    t_end(&d, &log);
}

struct hammer {
    pid_t keeper;
    atomic_int over;
};

/* Continues all children of the keeper, again and again. */
static void *continue_all(void *arg)
{
    struct hammer *h = arg;
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)h->keeper, (int)h->keeper);
    while (!atomic_load(&h->over)) {
        FILE *in = fopen(path, "re");
        int pid;

        while (in && fscanf(in, "%d", &pid) == 1)
            for (int i = 0; i < 1000 && !atomic_load(&h->over) && kill(pid, SIGCONT) == 0; i++)
                ;
        if (in)
            (void)fclose(in);
    }
    return NULL;
}

/* A signal at any moment of a worker's birth does no harm, though nothing blocks it in a program.
 */
T_CASE(continued_while_born)
{
    struct hammer h = { .over = 0 };
    struct t_log log = { 0 };
    pthread_t thread;
    struct t_proc worker;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .start = GPUD_START_EXEC,
                                 .max_tasks_per_worker = 1);

    t_wait_ready(d, 1);
    worker = t_worker(d, 0);
    h.keeper = t_keeper_of(&worker).pid;
    t_thread(&thread, continue_all, &h);
    for (uint64_t n = 0; n < 20; n++)
        T_SUBMIT(d, .tag = 8 * n, .data = "hello", .size = 5);
    t_collect(d, &log, 20);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 20);
    T_EQ(t_stats(d).setup_failures, 0);
    atomic_store(&h.over, 1);
    t_join(thread);
    t_end(&d, &log);
}
