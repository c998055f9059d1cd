/* SPDX-License-Identifier: MIT */
/* limits.c - time limits: soft, hard, exact, and what a stop does to them. */
#include "verbs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum verb {
    WORK,             /* returns at once */
    CHECKING_SLEEPER, /* sleeps in steps, looks at expired */
    ONE_SLEEP,        /* one long sleep, ends with EINTR */
    TWO_SLEEPS,       /* sleeps on after the first EINTR: only a second alarm ends it */
    BLOCKED_SPINNER,  /* burns with all signals blocked */
    SWALLOWER,        /* ignores every interruption */
    UNTIL_NEAR_DEADLINE,
    WAIT_FOR_GATE,
    RETURN_ETIMEOUT,
    SLEEP_WHOLE /* sleeps its argument to the end, whatever interrupts */
};

enum { GATE, STARTED };
enum { SPINNER };

struct reply {
    uint64_t deadline, seen_expired, left_at;
    int32_t pid, expired_at_start;
};

static void burn_until(uint64_t time)
{
    while (t_now() < time)
        ;
}

static void nap(uint64_t duration)
{
    const struct timespec t = { (time_t)(duration / 1000000000U), (long)(duration % 1000000000U) };

    (void)nanosleep(&t, NULL);
}

static int process(gpud_task *t, void *state)
{
    uint64_t tag = gpud_task_tag(t), argument = tag & 0xffffffffU, start = t_now();
    struct reply r = { .deadline = gpud_task_deadline(t), .pid = (int32_t)getpid() };

    (void)state;
    /* on a loaded machine it may be late already */
    r.expired_at_start = gpud_task_expired(t) && t_now() < r.deadline;
    switch ((enum verb)(tag >> 32)) {
    case WORK:
        break;
    case CHECKING_SLEEPER:
        while (!gpud_task_expired(t))
            nap(T_MS(2));
        r.seen_expired = t_now();
        break;
    case TWO_SLEEPS:
        nap(T_S(100));
        __attribute__((fallthrough));
    case ONE_SLEEP:
        nap(T_S(100));
        r.seen_expired = gpud_task_expired(t) ? t_now() : 0;
        break;
    case BLOCKED_SPINNER:
        atomic_store(&t_page->numbers[SPINNER], (uint64_t)getpid());
        (void)t_word_add(STARTED);
        t_block_signals();
        for (;;)
            burn_until(t_now() + T_S(1));
    case SWALLOWER:
        (void)signal(SIGALRM, SIG_IGN);
        for (;;)
            (void)poll(NULL, 0, 1000);
    case UNTIL_NEAR_DEADLINE:
        burn_until(r.deadline - argument);
        break;
    case WAIT_FOR_GATE:
        (void)t_word_add(STARTED);
        t_word_wait(GATE, 1);
        break;
    case RETURN_ETIMEOUT:
        return GPUD_ETIMEOUT;
    case SLEEP_WHOLE:
        while (t_now() < start + T_US(argument))
            nap(start + T_US(argument) - t_now());
        r.seen_expired = gpud_task_expired(t) ? t_now() : 0;
        break;
    }
    r.left_at = t_now();
    return gpud_task_result_set(t, &r, sizeof(r));
}

static const struct reply *reply_of(const struct gpud_event *e)
{
    T_EQ(e->result_size, sizeof(struct reply));
    return e->result;
}

/* C6 C7: a sleeper that looks, one that only gets EINTR, one that needs two: TIMEOUT, phase
 * PROCESS, result kept; the worker lives on and serves the next task. [G8] */
T_CASE(soft_limit)
{
    static const enum verb verbs[] = { CHECKING_SLEEPER, ONE_SLEEP, TWO_SLEEPS };
    struct t_log log = { 0 };
    int32_t pid = 0;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .grace = T_S(60));

    for (uint64_t i = 0; i < 6; i++) {
        uint64_t tag = T_TAG(verbs[i % 3], i), limit = T_MS(50);
        const struct gpud_event *e;

        T_SUBMIT(d, .tag = tag, .limit = limit);
        T_SUBMIT(d, .tag = i);
        t_collect(d, &log, 2 * (i + 1));
        e = T_OUTCOME(&log, tag, TIMEOUT);
        T_EQ(e->phase, GPUD_PHASE_PROCESS);
        T_EQ(e->code, GPUD_ETIMEOUT);
        T_EQ(e->exit_kind, GPUD_EXIT_NONE);
        T_EQ(reply_of(e)->deadline, e->started_at + limit);
        T_EQ(reply_of(e)->expired_at_start, 0);
        T_CMP(reply_of(e)->seen_expired, >=, e->started_at + limit);
        T_CMP(e->ended_at, >=, e->started_at + limit);
        printf("limit noticed %.3f ms late\n",
               (double)(reply_of(e)->seen_expired - e->started_at - limit) / 1e6);
        pid = pid ? pid : reply_of(e)->pid;
        T_EQ(reply_of(e)->pid, pid);
        e = T_OUTCOME(&log, i, SUCCESS);
        T_EQ(reply_of(e)->pid, pid);
        T_EQ(reply_of(e)->expired_at_start, 0);
        T_EQ(reply_of(e)->deadline, GPUD_NEVER);
    }
    T_EQ(t_stats(d).deaths, 0);
    t_end(&d, &log);
}

/* C6: what no signal reaches is killed at limit + grace; the next task on the slot succeeds. */
static void hard(enum verb verb, uint32_t drive)
{
    const uint64_t limit = T_MS(50), grace = T_MS(60);
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .drive = drive,
                                 .task_limit = limit, .grace = grace);

    for (uint64_t i = 0; i < 4; i++)
        T_SUBMIT(d, .tag = T_TAG(verb, i));
    for (uint64_t i = 0; i < 20; i++)
        T_SUBMIT(d, .tag = i, .limit = GPUD_NEVER);
    t_collect(d, &log, 24);
    for (uint64_t i = 0; i < 4; i++) {
        e = T_OUTCOME(&log, T_TAG(verb, i), TIMEOUT);
        T_EQ(e->phase, GPUD_PHASE_HARD);
        T_EQ(e->code, GPUD_ETIMEOUT);
        T_EQ(e->exit_kind, GPUD_EXIT_SIGNAL);
        T_EQ(e->exit_status, SIGKILL);
        T_EQ(e->attempt, 1);
        T_CMP(e->ended_at, >=, e->started_at + limit + grace);
        printf("killed %.3f ms late\n",
               (double)(e->ended_at - e->started_at - limit - grace) / 1e6);
        T_CMP(e->ended_at, <, e->started_at + limit + grace + T_S(1));
    }
    for (uint64_t i = 0; i < 20; i++)
        T_EQ(T_OUTCOME(&log, i, SUCCESS)->attempt, 1);
    T_EQ(t_stats(d).hard_kills, 4);
    t_end(&d, &log);
}

/* C6: (a) an infinite loop with all signals blocked. [T7] [G8] */
T_CASE(hard_limit_spinner)
{
    hard(BLOCKED_SPINNER, GPUD_DRIVE_THREAD);
}

/* C6: (c) SIGALRM ignored. [T7] [G7] */
T_CASE(hard_limit_swallower)
{
    hard(SWALLOWER, GPUD_DRIVE_THREAD);
}

T_CASE(hard_limit_driven_by_caller)
{
    hard(BLOCKED_SPINNER, GPUD_DRIVE_CALLER);
}

/* C7: the end time alone decides.  Tasks end some microseconds around their limit; each is TIMEOUT
 * exactly when its end is not before its deadline. [G18] */
T_CASE(verdict_is_exact)
{
    enum { TASKS = 1500 };
    const uint64_t limit = T_MS(2);
    struct t_log log = { 0 };
    unsigned random = 1;
    size_t late;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .queue_size = TASKS);

    for (uint64_t i = 0; i < TASKS; i++) {
        uint64_t before = (uint64_t)rand_r(&random) % T_US(100);

        T_SUBMIT(d, .tag = i % 10 ? T_TAG(UNTIL_NEAR_DEADLINE, i % 3 ? before : 0) : i,
                 .limit = limit, .label = "near");
    }
    t_collect(d, &log, TASKS);
    for (size_t i = 0; i < log.count; i++) {
        const struct gpud_event *e = &log.list[i];

        if (e->kind != GPUD_EVENT_OUTCOME)
            continue;
        T_EQ(reply_of(e)->deadline, e->started_at + limit);
        T_CMP(reply_of(e)->left_at, <=, e->ended_at);
        if (e->ended_at < e->started_at + limit)
            T_EQ(e->outcome, GPUD_OUTCOME_SUCCESS);
        else
            T_EQ(e->outcome, GPUD_OUTCOME_TIMEOUT);
        T_EQ(reply_of(e)->expired_at_start, 0); /* no alarm of the task before reaches the next */
    }
    late = t_log_outcomes(&log, GPUD_OUTCOME_TIMEOUT);
    printf("%zu of %d ended late\n", late, TASKS);
    T_CMP(late, >, 0);
    T_CMP(late, <, TASKS);
    t_end(&d, &log);
}

/* C6: limits below a second are neither early nor rounded up. [G5] [G6] */
T_CASE(limits_below_a_second)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:4", .grace = T_S(60));

    /* 0.3 s of 1.4 s; 0.4 s of 0.2 s; 30 ms of 20 ms; 0.2 ms of 1.3 s */
    T_SUBMIT(d, .tag = T_TAG(SLEEP_WHOLE, 300000), .limit = T_MS(1400));
    T_SUBMIT(d, .tag = T_TAG(SLEEP_WHOLE, 400000), .limit = T_MS(200));
    T_SUBMIT(d, .tag = T_TAG(SLEEP_WHOLE, 30000), .limit = T_MS(20));
    T_SUBMIT(d, .tag = T_TAG(SLEEP_WHOLE, 200), .limit = T_MS(1300));
    t_collect(d, &log, 4);
    e = T_OUTCOME(&log, T_TAG(SLEEP_WHOLE, 300000), SUCCESS);
    T_EQ(reply_of(e)->seen_expired, 0);
    e = T_OUTCOME(&log, T_TAG(SLEEP_WHOLE, 400000), TIMEOUT);
    T_CHECK(reply_of(e)->seen_expired);
    (void)T_OUTCOME(&log, T_TAG(SLEEP_WHOLE, 30000), TIMEOUT);
    (void)T_OUTCOME(&log, T_TAG(SLEEP_WHOLE, 200), SUCCESS);
    t_end(&d, &log);
}

/* A task's own limit goes before the option's; both ways. */
T_CASE(limit_of_the_task_wins)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:3", .task_limit = T_MS(30), .grace = T_S(60));

    T_SUBMIT(d, .tag = T_TAG(SLEEP_WHOLE, 100000));
    T_SUBMIT(d, .tag = T_TAG(SLEEP_WHOLE, 100001), .limit = GPUD_NEVER);
    T_SUBMIT(d, .tag = T_TAG(SLEEP_WHOLE, 100002), .limit = T_S(60));
    t_collect(d, &log, 3);
    (void)T_OUTCOME(&log, T_TAG(SLEEP_WHOLE, 100000), TIMEOUT);
    (void)T_OUTCOME(&log, T_TAG(SLEEP_WHOLE, 100001), SUCCESS);
    (void)T_OUTCOME(&log, T_TAG(SLEEP_WHOLE, 100002), SUCCESS);
    t_end(&d, &log);
}

/* A task that answers with the library's own timeout code has failed, it has not timed out. [G9] */
T_CASE(own_timeout_code_is_an_error)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, 0);

    T_SUBMIT(d, .tag = T_TAG(RETURN_ETIMEOUT, 0));
    T_SUBMIT(d, .tag = T_TAG(RETURN_ETIMEOUT, 1), .limit = T_S(100));
    t_collect(d, &log, 2);
    T_EQ(T_OUTCOME(&log, T_TAG(RETURN_ETIMEOUT, 0), ERROR)->code, GPUD_ETIMEOUT);
    T_EQ(T_OUTCOME(&log, T_TAG(RETURN_ETIMEOUT, 1), ERROR)->code, GPUD_ETIMEOUT);
    t_end(&d, &log);
}

/* C7: time in which the worker was stopped does not count, neither for the soft nor for the hard
 * limit: a stop of 1.3 s with a limit of 1 s and a grace of 100 ms. */
T_CASE(stopped_worker)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    struct t_proc worker;
    gpud_dispatcher *d;

#ifdef __SANITIZE_THREAD__
    t_skip("ThreadSanitizer delays the handler of SIGCONT");
#endif
    d = T_BEGIN(NULL, process, .devices = "cpu:1", .task_limit = T_S(1), .grace = T_MS(100));
    T_SUBMIT(d, .tag = T_TAG(WAIT_FOR_GATE, 0));
    t_word_wait(STARTED, 1);
    worker = t_worker(d, 0);
    t_stop(&worker);
    t_pass(T_MS(1300));
    t_word_set(GATE, 1);
    t_kill(worker.pid, SIGCONT);
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, T_TAG(WAIT_FOR_GATE, 0), SUCCESS);
    T_CMP(e->ended_at, >=, e->started_at + T_MS(1300));
    T_EQ(e->incarnation, 1);
    T_EQ(t_stats(d).deaths, 0);
    t_end(&d, &log);
}

struct slow {
    struct t_log log;
    struct t_proc spinner;
    uint64_t next, left_callback;
};

static int two_tasks(struct gpud_task_desc *task, size_t n, void *user)
{
    struct slow *s = user;

    (void)n;
    if (s->next == 2)
        return 0;
    task->tag = s->next++ ? WORK : T_TAG(BLOCKED_SPINNER, 0);
    task->limit = task->tag ? T_S(1) : GPUD_NEVER;
    return 1;
}

static int slow_callback(const struct gpud_event *e, void *user)
{
    struct slow *s = user;

    (void)t_log_add(e, &s->log);
    if (e->tag == WORK) {
        t_word_wait(STARTED, 1);
        if (!t_proc_read((pid_t)atomic_load(&t_page->numbers[SPINNER]), &s->spinner))
            t_wait_ended(&s->spinner);
        s->left_callback = t_now();
    }
    return 0;
}

/* C6 C16: while a callback is busy on the thread inside run, the library's own thread enforces the
 * hard limit of another task: the callback returns only once that worker is gone. */
T_CASE(slow_callback_delays_no_limit)
{
    struct slow s = { .next = 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .grace = T_MS(50));

    t_wait_ready(d, 2);
    T_OK(gpud_dispatcher_run(d, two_tasks,
                             T_CALLBACKS(.on_success = slow_callback, .on_error = slow_callback),
                             &s, NULL));
    (void)T_OUTCOME(&s.log, WORK, SUCCESS);
    e = T_OUTCOME(&s.log, T_TAG(BLOCKED_SPINNER, 0), TIMEOUT); /* on_timeout falls to on_error */
    T_EQ(e->phase, GPUD_PHASE_HARD);
    T_CMP(e->ended_at, <=, s.left_callback + T_S(1));
    t_end(&d, &s.log);
}

/* Timeouts and ordinary tasks in turn: none is lost, none is charged with another's alarm. [T8] */
T_LONG_CASE(alternating, 60)
{
    enum { PAIRS = 150 };
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:4", .grace = T_S(60));

    for (uint64_t i = 0; i < PAIRS; i++) {
        T_SUBMIT(d, .tag = T_TAG(i % 2 ? ONE_SLEEP : CHECKING_SLEEPER, i), .limit = T_MS(3));
        T_SUBMIT(d, .tag = i);
    }
    t_collect(d, &log, 2 * PAIRS);
    for (uint64_t i = 0; i < PAIRS; i++) {
        (void)T_OUTCOME(&log, T_TAG(i % 2 ? ONE_SLEEP : CHECKING_SLEEPER, i), TIMEOUT);
        T_EQ(reply_of(T_OUTCOME(&log, i, SUCCESS))->expired_at_start, 0);
    }
    t_end(&d, &log);
}
