/* SPDX-License-Identifier: MIT */
/* stall.c - tasks that make no progress for their stall limit: soft, hard, exact, and stops. [C6]
 * [C7] */
#include "verbs.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum verb {
    WORK,
    SILENT,    /* until the flag */
    ONE_SLEEP, /* one long sleep, ends with EINTR */
    BLOCKED_SPINNER,
    STEPS,     /* progress at random times around the limit; says what the gaps were */
    FAR_STEPS, /* progress often; counts how often a sleep was cut */
    TOO_LATE,  /* silent past the limit, then progress and a good end */
    DEAF,      /* silent past the limit, then progress for ever, whatever the flag says */
    WAIT_FOR_GATE,
    FAIL_SILENT
};

enum { GATE, STARTED };

struct reply {
    uint64_t longest_least, longest_most; /* gap between progress: bounds of what the library saw */
    uint64_t first_after, last_before;
    uint32_t expired, cuts;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static int nap(uint64_t duration)
{
    const struct timespec t = { (time_t)(duration / 1000000000U), (long)(duration % 1000000000U) };

    return nanosleep(&t, NULL);
}

/* Burns until gaps of about `around` have been, each a little less or, at times, a little more:
 * every other task has them close to it, so that many an alarm is due just when progress is told.
 */
static void steps(gpud_task *t, struct reply *r, uint64_t around, unsigned seed)
{
    const uint64_t below = seed % 2 ? T_US(120) : T_US(40), above = T_US(5);
    uint64_t before = 0, after = t_now(); /* of the last progress; the start was before `after` */

    for (int i = 0; i < 4; i++) {
        uint64_t until = after + around - below + (uint64_t)rand_r(&seed) % (below + above);
        uint64_t now;

        while (t_now() < until)
            ;
        now = t_now();
        (void)gpud_task_progress(t, 0.1 * i, "step");
        if (before) {
            r->longest_least = larger(r->longest_least, now - after);
            r->longest_most = larger(r->longest_most, t_now() - before);
        }
        before = now;
        after = t_now();
        r->first_after = r->first_after ? r->first_after : after;
        r->last_before = now;
    }
    r->expired = (uint32_t)gpud_task_expired(t);
}

static int process(gpud_task *t, void *state)
{
    uint64_t tag = gpud_task_tag(t);
    struct reply r = { .expired = 0 };

    (void)state;
    switch ((enum verb)(tag >> 32)) {
    case WORK:
        break;
    case SILENT:
    case TOO_LATE:
    case DEAF:
    case FAIL_SILENT:
        while (!gpud_task_expired(t))
            (void)nap(T_MS(1));
        r.expired = 1;
        if (tag >> 32 == FAIL_SILENT)
            return gpud_task_fail(t, 6, "gave up");
        if (tag >> 32 == TOO_LATE)
            (void)gpud_task_progress(t, 1, "there");
        while (tag >> 32 == DEAF) {
            (void)gpud_task_progress(t, 0.5, "still there");
            (void)nap(T_MS(1));
        }
        break;
    case ONE_SLEEP:
        r.cuts = nap(T_S(100)) < 0 && errno == EINTR;
        r.expired = (uint32_t)gpud_task_expired(t);
        break;
    case BLOCKED_SPINNER:
        t_block_signals();
        for (;;)
            ;
    case STEPS:
        steps(t, &r, T_MS(1), (unsigned)tag);
        break;
    case FAR_STEPS:
        for (int i = 0; i < 60; i++) {
            r.cuts += nap(T_MS(30)) < 0;
            (void)gpud_task_progress(t, i / 60.0, NULL);
        }
        r.expired = (uint32_t)gpud_task_expired(t);
        break;
    case WAIT_FOR_GATE:
        (void)gpud_task_progress(t, 0, NULL);
        (void)t_word_add(STARTED);
        t_word_wait(GATE, 1);
        (void)gpud_task_progress(t, 1, NULL);
        r.expired = (uint32_t)gpud_task_expired(t);
        break;
    }
    return gpud_task_result_set(t, &r, sizeof(r));
}

static const struct reply *reply_of(const struct gpud_event *e)
{
    T_EQ(e->result_size, sizeof(struct reply));
    return e->result;
}

/* The soft limit: the flag, SIGALRM, TIMEOUT when process returns; the worker stays. */
T_CASE(soft)
{
    const uint64_t stall = T_MS(60);
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .stall_limit = stall,
                                 .grace = T_S(60), .task_limit = T_S(100));

    T_SUBMIT(d, .tag = T_TAG(SILENT, 0));
    T_SUBMIT(d, .tag = T_TAG(ONE_SLEEP, 0), .limit = GPUD_NEVER);
    T_SUBMIT(d, .tag = T_TAG(TOO_LATE, 0));
    T_SUBMIT(d, .tag = T_TAG(FAIL_SILENT, 0));
    T_SUBMIT(d, .tag = T_TAG(SILENT, 1), .limit = T_MS(20));
    T_SUBMIT(d, .tag = T_TAG(SILENT, 2), .stall_limit = GPUD_NEVER, .limit = T_MS(150));
    T_SUBMIT(d, .tag = 0, .stall_limit = GPUD_NEVER);
    t_collect(d, &log, 7);
    for (unsigned i = 0; i < 3; i++) {
        e = T_OUTCOME(&log, T_TAG(i == 0 ? SILENT : i == 1 ? ONE_SLEEP : TOO_LATE, 0), TIMEOUT);
        T_EQ(e->phase, GPUD_PHASE_PROCESS);
        T_EQ(e->code, GPUD_ETIMEOUT);
        T_TEXT(e->text, "no progress for 0.060 s (stall_limit)");
        T_EQ(reply_of(e)->expired, 1);
        T_CMP(e->ended_at, >=, e->started_at + stall);
        printf("noticed %.3f ms late\n", (double)(e->ended_at - e->started_at - stall) / 1e6);
    }
    T_EQ(reply_of(T_OUTCOME(&log, T_TAG(ONE_SLEEP, 0), TIMEOUT))->cuts, 1);
    T_TEXT(T_OUTCOME(&log, T_TAG(FAIL_SILENT, 0), TIMEOUT)->text,
           "no progress for 0.060 s (stall_limit): gave up");
    T_TEXT(T_OUTCOME(&log, T_TAG(SILENT, 1), TIMEOUT)->text,
           "exceeded its time limit of 0.020 s (limit of the task)"); /* its limit came first */
    e = T_OUTCOME(&log, T_TAG(SILENT, 2), TIMEOUT);
    T_TEXT(e->text, "exceeded its time limit of 0.150 s (limit of the task)");
    T_CMP(e->ended_at, >=, e->started_at + T_MS(150));
    (void)T_OUTCOME(&log, 0, SUCCESS);
    T_EQ(t_stats(d).deaths, 0);
    t_end(&d, &log);
}

/* The hard limit: past stall limit and grace the worker is killed; later progress does not help. */
static void hard(enum verb verb, uint32_t drive)
{
    const uint64_t stall = T_MS(50), grace = T_MS(60);
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .drive = drive,
                                 .stall_limit = stall, .grace = grace);

    T_SUBMIT(d, .tag = T_TAG(verb, 0));
    T_SUBMIT(d, .tag = 1, .stall_limit = GPUD_NEVER);
    t_collect(d, &log, 2);
    e = T_OUTCOME(&log, T_TAG(verb, 0), TIMEOUT);
    T_EQ(e->phase, GPUD_PHASE_HARD);
    T_EQ(e->exit_status, SIGKILL);
    T_TEXT(e->text, "no progress for 0.050 s (stall_limit) and the grace of 0.060 s (grace), "
                    "killed by signal 9 (SIGKILL)");
    T_CMP(e->ended_at, >=, e->started_at + stall + grace);
    printf("killed %.3f ms late\n", (double)(e->ended_at - e->started_at - stall - grace) / 1e6);
    T_CMP(e->ended_at, <, e->started_at + stall + grace + T_S(1));
    (void)T_OUTCOME(&log, 1, SUCCESS);
    T_EQ(t_stats(d).hard_kills, 1);
    t_end(&d, &log);
}

T_CASE(hard_spinner)
{
    hard(BLOCKED_SPINNER, GPUD_DRIVE_THREAD);
}

T_CASE(hard_driven_by_caller)
{
    hard(BLOCKED_SPINNER, GPUD_DRIVE_CALLER);
}

T_CASE(progress_too_late_saves_nobody)
{
    hard(DEAF, GPUD_DRIVE_THREAD);
}

/* C7: the times of progress decide, to the microsecond that can be told from outside. */
T_CASE(verdict_is_exact)
{
    enum { TASKS = 400 };
    const uint64_t stall = T_MS(1);
    struct t_log log = { 0 };
    size_t late;
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .stall_limit = stall, .grace = T_S(60));

    for (uint64_t i = 0; i < TASKS; i++)
        T_SUBMIT(d, .tag = T_TAG(i % 8 ? STEPS : WORK, i));
    t_collect(d, &log, TASKS);
    for (size_t i = 0; i < log.count; i++) {
        const struct gpud_event *e = &log.list[i];
        const struct reply *r;

        if (e->kind != GPUD_EVENT_OUTCOME || e->tag >> 32 != STEPS)
            continue;
        r = reply_of(e);
        if (r->longest_least >= stall)
            T_EQ(e->outcome, GPUD_OUTCOME_TIMEOUT);
        if (r->expired)
            T_EQ(e->outcome, GPUD_OUTCOME_TIMEOUT);
        /* With the gaps at both ends, which only the event's times bound. */
        if (larger(r->longest_most,
                   larger(r->first_after - e->started_at, e->ended_at - r->last_before)) < stall)
            T_EQ(e->outcome, GPUD_OUTCOME_SUCCESS);
    }
    late = t_log_outcomes(&log, GPUD_OUTCOME_TIMEOUT);
    printf("%zu of %d stalled\n", late, TASKS);
    T_CMP(late, >, 0);
    T_CMP(late, <, TASKS);
    t_end(&d, &log);
}

/* Progress that comes often keeps a task alive far beyond its stall limit, and no sleep is cut
 * short. */
T_CASE(progress_keeps_alive)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");

    e = T_RUN(d, &log, SUCCESS, .tag = T_TAG(FAR_STEPS, 0), .stall_limit = T_S(1));
    T_EQ(reply_of(e)->expired, 0);
    T_EQ(reply_of(e)->cuts, 0);
    T_CMP(e->ended_at, >=, e->started_at + T_MS(1800));
    t_end(&d, &log);
}

/* C7: stopped time does not count: a stop of 1.3 s with a stall limit of 1 s and a grace of 100 ms.
 */
T_CASE(stopped_worker)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    struct t_proc worker;
    gpud_dispatcher *d;

#ifdef __SANITIZE_THREAD__
    t_skip("ThreadSanitizer delays the handler of SIGCONT");
#endif
    d = T_BEGIN(NULL, process, .devices = "cpu:1", .stall_limit = T_S(1), .grace = T_MS(100));
    T_SUBMIT(d, .tag = T_TAG(WAIT_FOR_GATE, 0));
    t_word_wait(STARTED, 1);
    worker = t_worker(d, 0);
    t_stop(&worker);
    t_pass(T_MS(1300));
    t_kill(worker.pid, SIGCONT);
    t_pass(T_MS(150)); /* silent until the alarm has judged with the keeper's account of the stop */
    t_word_set(GATE, 1);
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, T_TAG(WAIT_FOR_GATE, 0), SUCCESS);
    T_EQ(reply_of(e)->expired, 0);
    T_CMP(e->ended_at, >=, e->started_at + T_MS(1300));
    T_EQ(t_stats(d).deaths, 0);
    t_end(&d, &log);
}
