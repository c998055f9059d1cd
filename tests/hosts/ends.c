/* SPDX-License-Identifier: MIT */
/* ends.c - the ways a host ends without a word to the library, is stopped, or waits in a loop of
 * its own. */
#include "work.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- it ends ---- */

static void at_exit(void)
{
    (void)poll(NULL, 0, 20); /* exit takes its time, with our thread still there */
}

static void *exit_from_a_thread(void *arg)
{
    (void)arg;
    exit(7);
}

/* A host with workers that are in the middle of tasks and have left daemons; argument: how it ends.
 */
T_PROGRAM(host)
{
    static char *const other[] = { (char *)(uintptr_t)"sleep", (char *)(uintptr_t)"1000", NULL };
    const char *how = argv[argc - 1];
    gpud_dispatcher *d;
    pthread_t thread;

    T_EQ(atexit(at_exit), 0);
    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:3",
                 .drive = strchr(how, '+') ? GPUD_DRIVE_CALLER : GPUD_DRIVE_THREAD);
    h_work(d);
    for (uint64_t i = 0; i < 2; i++)
        T_SUBMIT(d, .tag = H_TAG(H_GATE, i));
    /* once in any case: it frees the words of what was collected, which LeakSanitizer cannot see */
    do
        (void)gpud_dispatcher_poll(
            d, &(struct gpud_event){ .struct_size = sizeof(struct gpud_event) }, 1, 0);
    while (t_word_wait_for(H_STARTED, 2, T_MS(2)));
    (void)t_word_add(H_READY);
    if (!strncmp(how, "exit", 4))
        exit(7);
    if (!strcmp(how, "_exit"))
        _exit(7);
    if (!strcmp(how, "thread") && !pthread_create(&thread, NULL, exit_from_a_thread, NULL))
        t_rest();
    if (!strcmp(how, "abort")) {
        (void)signal(SIGABRT, SIG_DFL);
        abort();
    }
    if (!strcmp(how, "fault")) {
        (void)signal(SIGSEGV, SIG_DFL);
        (void)raise(SIGSEGV);
    }
    if (!strcmp(how, "exec"))
        (void)execvp(other[0], other);
    if (!strcmp(how, "killed"))
        t_rest();
    return 7; /* "return" */
}

static void ends_by(const char *how, int wanted_signal)
{
    struct h_family f = h_family_start("host", how);
    int status;

    t_word_wait(H_READY, 1);
    if (wanted_signal == SIGKILL)
        t_kill(f.host, SIGKILL);
    status = h_family_reap(&f);
    if (wanted_signal) {
        T_CHECK(WIFSIGNALED(status));
        T_EQ(WTERMSIG(status), wanted_signal);
    } else {
        T_CHECK(WIFEXITED(status));
        T_EQ(WEXITSTATUS(status), 7);
    }
    h_family_gone(&f, 0);
}

/* C11 T10: nothing survives, whatever way the host ends. */
T_CASE(returns_from_main)
{
    ends_by("return", 0);
}

T_CASE(exits)
{
    ends_by("exit", 0);
}

T_CASE(exits_without_our_thread)
{
    ends_by("exit+", 0);
}

T_CASE(exits_from_another_thread)
{
    ends_by("thread", 0);
}

T_CASE(exits_at_once)
{
    ends_by("_exit", 0);
}

T_CASE(aborts)
{
    ends_by("abort", SIGABRT);
}

T_CASE(faults)
{
    ends_by("fault", SIGSEGV);
}

T_CASE(is_killed)
{
    ends_by("killed", SIGKILL);
}

static int only_the_program_is_left(void *user)
{
    const struct h_family *f = user;
    struct t_procs left = t_procs_with_env(f->mark);
    int others = 0;

    for (size_t i = 0; i < left.count; i++)
        others += left.list[i].pid != f->host;
    t_procs_free(&left);
    return !others;
}

/* C11: a host that becomes another program keeps nothing of ours running. */
T_CASE(becomes_another_program)
{
    struct h_family f = h_family_start("host", "exec");
    struct t_proc p;

    t_word_wait(H_READY, 1);
    t_wait_until("all but the other program is gone", only_the_program_is_left, &f);
    T_EQ(t_proc_read(f.host, &p), 0);
    T_TEXT(p.comm, "sleep");
    t_kill(f.host, SIGKILL);
    (void)h_family_reap(&f);
    h_family_gone(&f, 0);
}

/* ---- it is stopped ---- */

enum { FINISHED = 1, OPEN_LATE, VERDICTS };

/* In time: waits for the gate, which opens while the host is stopped, and ends then. Late: never
 * ends by itself. */
static int gated(gpud_task *t, void *state)
{
    (void)state;
    (void)t_word_add(H_STARTED);
    t_word_wait(gpud_task_tag(t) == 3 ? OPEN_LATE : H_OPEN, 1);
    (void)t_word_add(FINISHED);
    return 0;
}

T_PROGRAM(stopped_host)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    (void)argc;
    t_init(NULL, gated, NULL);
    d = t_create(
        T_OPTIONS(.devices = "cpu:4", .drive = (uint32_t)atoi(argv[argc - 1]), .grace = T_MS(100)));
    while (t_stats(d).slots_ready < 4) /* so that all begin together */
        (void)t_poll(d, &log, T_MS(2));
    for (uint64_t i = 0; i < 4; i++)
        T_SUBMIT(d, .tag = i, .limit = i == 3 ? T_MS(700) : T_MS(1500));
    t_collect(d, &log, 4);
    for (uint64_t i = 0; i < 3; i++)
        (void)T_OUTCOME(&log, i, SUCCESS);
    (void)T_OUTCOME(&log, 3, TIMEOUT);
    (void)t_word_add(VERDICTS);
    t_end(&d, &log);
    return 0;
}

/* C7: the host stands still for 2 s, as in a debugger. What ended within its limit meanwhile is
 * SUCCESS though nobody looked until the limit had long passed; what did not is TIMEOUT. */
static void stops(const char *drive)
{
    struct h_family f;

    t_word_set(H_STARTED, 0);
    t_word_set(H_OPEN, 0);
    t_word_set(FINISHED, 0);
    f = h_family_start("stopped_host", drive);
    t_word_wait(H_STARTED, 4);
    t_kill(f.host, SIGSTOP);
    t_word_set(H_OPEN, 1);
    t_word_wait(FINISHED, 3);
    t_pass(T_S(2));
    t_kill(f.host, SIGCONT);
    T_EQ(h_family_reap(&f), 0);
    T_EQ(t_word(VERDICTS), 1);
    t_word_set(VERDICTS, 0);
    h_family_gone(&f, 0);
}

T_CASE(host_is_stopped)
{
    stops("0");
}

T_CASE(host_is_stopped_without_our_thread)
{
    stops("1");
}

/* ---- it has a loop of its own ---- */

/* An epoll loop with a timer, which calls poll without waiting; the host's other files go on. */
static void own_loop(uint32_t drive)
{
    const struct itimerspec often = { { 0, 1000000 }, { 0, 1000000 } };
    struct epoll_event e = { .events = EPOLLIN };
    int loop = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC),
        p[2];
    uint64_t until = t_now() + T_PATIENCE, ticks, lines = 0, n;
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    char one;

    T_EQ(pipe(p), 0);
    T_EQ(epoll_ctl(loop, EPOLL_CTL_ADD, timer, &e), 0);
    e.data.u32 = 1;
    T_EQ(epoll_ctl(loop, EPOLL_CTL_ADD, p[0], &e), 0);
    T_EQ(timerfd_settime(timer, 0, &often, NULL), 0);
    h_init();
    d = T_CREATE(.definition = "square", .devices = "cpu:2", .drive = drive);
    for (n = 0; n < 200; n++)
        T_SUBMIT(d, .tag = n, .data = &n, .size = sizeof(n));
    T_SUBMIT(d, .tag = H_TAG(H_CRASH, 0));
    T_SUBMIT(d, .tag = H_TAG(H_LATE, 0), .limit = T_MS(20));
    /* On a slow machine a single tick may see all outcomes: the pipe is readable behind it. */
    while (t_log_count(&log, GPUD_EVENT_OUTCOME) < 202 || !lines) {
        struct epoll_event got;

        T_CMP(t_now(), <, until);
        T_EQ(epoll_wait(loop, &got, 1, 10000), 1);
        if (got.data.u32 == 1) {
            T_EQ(read(p[0], &one, 1), 1);
            lines++;
            continue;
        }
        T_EQ(read(timer, &ticks, sizeof(ticks)), sizeof(ticks));
        while (t_poll(d, &log, 0) > 0)
            ;
        T_EQ(write(p[1], "x", 1), 1);
    }
    T_CMP(lines, >, 0);
    for (n = 0; n < 200; n++)
        T_EQ(*(const uint64_t *)T_OUTCOME(&log, n, SUCCESS)->result, n * n);
    (void)T_OUTCOME(&log, H_TAG(H_CRASH, 0), CRASHED);
    (void)T_OUTCOME(&log, H_TAG(H_LATE, 0), TIMEOUT);
    t_end(&d, &log);
    (void)close(p[0]);
    (void)close(p[1]);
    (void)close(timer);
    (void)close(loop);
}

T_CASE(own_epoll_loop)
{
    own_loop(GPUD_DRIVE_THREAD);
    own_loop(GPUD_DRIVE_CALLER);
}
