/* SPDX-License-Identifier: MIT */
/* stopped.c - workers that stop themselves or that another process stops, alone or with all. */
#include "verbs.h"

#include "rest.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT T_S(1)

enum { SETUPS, JOINED };
enum { STOP = T_VERBS, STOP_TERMINAL, STOP_IN_JOB };

/* As a shell with job control leaves it: a member of our group has its parent in another group of
 * our session.  Without one the kernel stops nobody for a terminal. */
static void join_a_job(void)
{
    const pid_t group = getpgrp();

    if (fork() == 0) {
        (void)setpgid(0, 0);
        if (fork() == 0) {
            T_EQ(setpgid(0, group), 0);
            (void)t_word_add(JOINED);
        }
        t_rest();
    }
    t_word_wait(JOINED, 1);
}

static int process(gpud_task *t, void *state)
{
    const uint64_t verb = gpud_task_tag(t) >> 32;

    if (verb == STOP)
        (void)raise(SIGSTOP);
    if (verb == STOP_IN_JOB)
        join_a_job();
    if (verb == STOP_TERMINAL || verb == STOP_IN_JOB)
        (void)raise(SIGTSTP);
    return t_process(t, state);
}

static const char in_words[] = "stopped for 1.000 s (stop_limit)";

/* ---- by itself ---- */

/* Without any limit of its own; and its worker is replaced. */
static void in_process(uint64_t verb)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .stop_limit = LIMIT);

    T_SUBMIT(d, .tag = T_TAG(verb, 0));
    T_SUBMIT(d, .tag = 1);
    t_collect(d, &log, 2);
    e = T_OUTCOME(&log, T_TAG(verb, 0), TIMEOUT);
    T_EQ(e->phase, GPUD_PHASE_HARD);
    T_EQ(e->code, GPUD_ETIMEOUT);
    T_EQ(e->exit_kind, GPUD_EXIT_SIGNAL);
    T_EQ(e->exit_status, SIGKILL);
    T_TEXT(e->text, in_words);
    T_CMP(e->ended_at, >=, e->started_at + LIMIT);
    T_EQ(T_OUTCOME(&log, 1, SUCCESS)->incarnation, 2);
    T_EQ(T_OUTCOME(&log, 1, SUCCESS)->attempt, 1);
    T_EQ(t_stats(d).hard_kills, 1);
    T_EQ(t_stats(d).deaths, 0);
    t_end(&d, &log);
}

/* One that stops itself ends, whatever the limit of its task. [T24] */
T_CASE(stops_itself)
{
    in_process(STOP);
}

T_CASE(stops_itself_as_at_a_terminal)
{
    in_process(STOP_IN_JOB);
}

/* A worker has a session of its own: nobody there could continue it, so SIGTSTP does nothing. */
T_CASE(no_terminal)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");

    (void)T_RUN(d, &log, SUCCESS, .tag = T_TAG(STOP_TERMINAL, 0));
    t_end(&d, &log);
}

static int stop_in_setup(gpud_worker *w, void **ret_state)
{
    (void)w, (void)ret_state;
    if (t_word_add(SETUPS) == 1)
        (void)raise(SIGSTOP);
    return 0;
}

T_CASE(stops_itself_in_setup)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    d = T_BEGIN(stop_in_setup, process, .devices = "cpu:1", .stop_limit = LIMIT,
                .backoff = T_MS(5));
    T_EQ(T_RUN(d, &log, SUCCESS, .tag = 1)->incarnation, 2);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 1);
    e = t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 0);
    T_EQ(e->code, GPUD_ETIMEOUT);
    T_TEXT(e->text, in_words);
    t_end(&d, &log);
}

static void stop_in_cleanup(gpud_worker *w, void *state)
{
    (void)w, (void)state;
    (void)raise(SIGSTOP);
}

T_CASE(stops_itself_in_cleanup)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    t_init(NULL, process, stop_in_cleanup);
    d = T_CREATE(.devices = "cpu:1", .stop_limit = LIMIT, .cleanup_limit = GPUD_NEVER);
    T_SUBMIT(d, .tag = 1);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    t_collect_rest(d, &log);
    T_EQ(t_log_count(&log, GPUD_EVENT_CLEANUP_FAILURE), 1);
    e = t_log_at(&log, GPUD_EVENT_CLEANUP_FAILURE, 0);
    T_EQ(e->code, GPUD_ETIMEOUT);
    T_TEXT(e->text, in_words);
    T_EQ(t_stats(d).cleanup_failures, 1);
    t_end(&d, &log);
}

/* ---- by others ---- */

static int has_another_worker(void *user)
{
    return t_slot(user, 0).incarnation == 2 && t_slot(user, 0).state == GPUD_SLOT_READY;
}

/* An idle worker is replaced; that is no failure of its slot, and one line in the log. */
T_CASE(idle_worker)
{
    struct t_log log = { 0 };
    struct t_proc worker;
    char line[128];
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .stop_limit = LIMIT, .failures_in_a_row = 1);

    t_wait_ready(d, 1);
    worker = t_worker(d, 0);
    t_stop(&worker);
    t_wait_until("there is another worker", has_another_worker, d);
    t_wait_ended(&worker);
    (void)T_RUN(d, &log, SUCCESS, .tag = 1);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 0);
    T_EQ(t_stats(d).slots_failed, 0);
    T_EQ(t_log_count(&log, GPUD_EVENT_LOG), 1);
    (void)snprintf(
        line, sizeof line,
        "worker %d of slot 0 was %s between tasks; its keeper kills it, the slot starts another",
        (int)worker.pid, in_words);
    T_TEXT(t_log_at(&log, GPUD_EVENT_LOG, 0)->text, line);
    t_end(&d, &log);
}

/* Continued in time it goes on, and the count begins anew. */
T_CASE(continued_in_time)
{
    struct t_log log = { 0 };
    struct t_proc worker;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .stop_limit = T_S(4));

    T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    worker = t_worker(d, 0);
    for (int i = 0; i < 2; i++) {
        t_stop(&worker);
        t_pass(T_MS(2200)); /* two steps */
        t_kill(worker.pid, SIGCONT);
    }
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 1);
    T_EQ(T_OUTCOME(&log, T_TAG(T_WAIT_FOR_GATE, 0), SUCCESS)->incarnation, 1);
    t_end(&d, &log);
}

/* Stopped while a limit is near: nobody wakes up for it, since its clock stands; and without a stop
 * limit it stays so.                                                                      [C20] */
T_CASE(nobody_wakes_for_a_stopped_worker)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    struct t_proc worker;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .stop_limit = GPUD_NEVER,
                                 .task_limit = T_S(2), .grace = T_S(2), .kill_limit = T_S(1));

    T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    worker = t_worker(d, 0);
    t_stop(&worker);
    t_submit_tags(d, 1, 5);
    t_expect_rest(45, NULL, NULL);
    t_word_set(T_GATE, 1);
    t_kill(worker.pid, SIGCONT);
    t_collect(d, &log, 5);
    e = t_check_outcome(__FILE__, __LINE__, &log, T_TAG(T_WAIT_FOR_GATE, 0),
                        0); /* maybe late, and by itself */
    T_EQ(e->incarnation, 1);
    T_EQ(e->exit_kind, GPUD_EXIT_NONE);
    for (uint64_t n = 1; n < 5; n++)
        T_EQ(T_OUTCOME(&log, n, SUCCESS)->incarnation, 1);
    t_end(&d, &log);
}

/* ---- with those around it ---- */

#define SUSPEND_LIMIT T_S(2)

enum { HOST = 1, KEEPER = 2, WORKER = 4, PARTS = 3 };
enum { RUNS = 16, GATES = 32, DONE = 48 }; /* a word for each host */

static int wait_at_gate(gpud_task *t, void *state)
{
    const unsigned i = (unsigned)gpud_task_tag(t);

    (void)state;
    atomic_store(&t_page->numbers[i], (uint64_t)getpid());
    (void)t_word_add(RUNS + i);
    t_word_wait(GATES + i, 1);
    return 0;
}

/* A host whose one task is not to suffer. */
T_PROGRAM(host)
{
    const unsigned i = (unsigned)atoi(argv[1]);
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    T_EQ(argc, 2);
    d = T_BEGIN(NULL, wait_at_gate, .devices = "cpu:1", .stop_limit = SUSPEND_LIMIT);
    T_EQ(T_RUN(d, &log, SUCCESS, .tag = i)->attempt, 1);
    T_EQ(T_OUTCOME(&log, i, SUCCESS)->incarnation, 1);
    T_EQ(log.count, 1);
    t_end(&d, &log);
    (void)t_word_add(DONE + i);
    return 0;
}

struct suspended {
    int order[PARTS]; /* in which they go on; 0 = none */
    uint64_t between; /* time from one to the next */
    pid_t pid;
    struct t_proc host, keeper, worker;
};

static const struct t_proc *part(const struct suspended *s, int which)
{
    return which == HOST ? &s->host : which == KEEPER ? &s->keeper : &s->worker;
}

static void begin(struct suspended *s, unsigned i)
{
    char number[16];

    (void)snprintf(number, sizeof number, "%u", i);
    s->pid = t_program_start("host", number, NULL);
    t_word_wait(RUNS + i, 1);
    T_EQ(t_proc_read(s->pid, &s->host), 0);
    T_EQ(t_proc_read((pid_t)atomic_load(&t_page->numbers[i]), &s->worker), 0);
    s->keeper = t_keeper_of(&s->worker);
}

static int sleeps(void *user)
{
    struct t_proc now;

    return t_proc_read(((const struct t_proc *)user)->pid, &now) || now.state == 'S';
}

/* The worker first: its keeper has begun to count when it is stopped itself. */
static void stop_parts(struct suspended *s)
{
    static const int order[PARTS] = { WORKER, KEEPER, HOST };

    for (int i = 0; i < PARTS; i++)
        for (int k = 0; k < PARTS; k++)
            if (s->order[k] == order[i]) {
                t_stop(part(s, order[i]));
                if (order[i] == WORKER)
                    t_wait_until("its keeper has seen that", sleeps, &s->keeper);
            }
}

/* Stops so many hosts, with their own, for three times the limit, and lets them go on. */
static void suspend(struct suspended *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        begin(&s[i], i);
    for (unsigned i = 0; i < n; i++)
        stop_parts(&s[i]);
    t_pass(3 * SUSPEND_LIMIT);
    for (unsigned i = 0; i < n; i++)
        for (int k = 0; k < PARTS && s[i].order[k]; k++) {
            struct t_proc p = *part(&s[i], s[i].order[k]);
            t_kill(p.pid, SIGCONT);
            t_wait_until("it has gone on, and waits", sleeps, &p); /* what it had to do is done */
            t_pass(s[i].between);
        }
    for (unsigned i = 0; i < n; i++) {
        int status;
        t_word_set(GATES + i, 1);
        T_EQ(waitpid(s[i].pid, &status, 0), s[i].pid);
        T_EQ(status, 0);
        T_EQ(t_word(DONE + i), 1);
    }
}

/* A job that is suspended as a whole: all go on in any order, and no task is lost. */
T_CASE(all_are_suspended)
{
    struct suspended s[] = {
        { .order = { HOST, KEEPER, WORKER } }, { .order = { HOST, WORKER, KEEPER } },
        { .order = { KEEPER, HOST, WORKER } }, { .order = { KEEPER, WORKER, HOST } },
        { .order = { WORKER, HOST, KEEPER } }, { .order = { WORKER, KEEPER, HOST } },
    };

    suspend(s, sizeof s / sizeof *s);
}

/* Time in which its keeper was stopped, too, counts as none: not with its first step afterwards
 * either, which comes a second later, since the kernel begins its wait anew. */
T_CASE(worker_and_keeper_are_suspended)
{
    struct suspended s[] = {
        { .order = { WORKER, KEEPER } },
        { .order = { KEEPER, WORKER }, .between = T_MS(1500) },
    };

    suspend(s, sizeof s / sizeof *s);
}

/* Nor does that of its host, which its keeper sees. */
T_CASE(worker_and_host_are_suspended)
{
    struct suspended s[] = { { .order = { HOST, WORKER } }, { .order = { WORKER, HOST } } };

    suspend(s, sizeof s / sizeof *s);
}

/* ---- under a debugger ---- */

static void attach(pid_t pid)
{
    int status = 0;

    if (ptrace(PTRACE_ATTACH, pid, NULL, NULL))
        t_skip("no ptrace here: errno %d", errno);
    T_EQ(waitpid(pid, &status, __WALL), pid);
    T_CHECK(WIFSTOPPED(status));
}

/* gdb -p, of one that runs, and of one that is stopped. */
static void debug(int stopped_before)
{
    struct t_log log = { 0 };
    struct t_proc worker;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .stop_limit = SUSPEND_LIMIT);

    T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    worker = t_worker(d, 0);
    if (stopped_before)
        t_stop(&worker);
    attach(worker.pid);
    t_pass(3 * SUSPEND_LIMIT);
    T_EQ(ptrace(PTRACE_DETACH, worker.pid, NULL, NULL), 0);
    t_kill(worker.pid, SIGCONT);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 1);
    T_EQ(T_OUTCOME(&log, T_TAG(T_WAIT_FOR_GATE, 0), SUCCESS)->incarnation, 1);
    t_end(&d, &log);
}

T_CASE(debugged)
{
    debug(0);
}

T_CASE(stopped_and_debugged)
{
    debug(1);
}
