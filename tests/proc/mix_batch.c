/* SPDX-License-Identifier: MIT */
/* mix_batch.c - batches and other tasks where they meet expiry, limits, cancel and death. */
#include "fixture.h"

#include <signal.h>

enum verb { WORK, WAIT_FOR_GATE, CRASH, DEAF_FIRST };
#define TAG(verb, n) ((uint64_t)(verb) << 32 | (uint64_t)(n))

enum { GATE, STARTED, RAN };

static int run(gpud_task *t)
{
    switch ((enum verb)(gpud_task_tag(t) >> 32)) {
    case WORK:
        (void)t_word_add(RAN);
        return 0;
    case WAIT_FOR_GATE:
        (void)t_word_add(STARTED);
        t_word_wait(GATE, 1);
        return 0;
    case CRASH:
        (void)t_word_add(STARTED);
        (void)raise(SIGKILL);
        return 0;
    case DEAF_FIRST:
        (void)t_word_add(STARTED);
        if (gpud_task_attempt(t) > 1)
            return 0;
        t_block_signals();
        for (;;)
            t_pass(T_S(1));
    }
    return 1;
}

static int process(gpud_task *t, void *state)
{
    (void)state;
    return run(t);
}

static int process_batch(gpud_task *const *tasks, size_t n, void *state)
{
    (void)state;
    for (size_t i = 0; i < n; i++)
        if (gpud_task_tag(tasks[i]) >> 32 == WORK)
            (void)run(tasks[i]);
    for (size_t i = 0; i < n; i++)
        if (gpud_task_tag(tasks[i]) >> 32 != WORK)
            (void)run(tasks[i]);
    return 0;
}

static void init_both(void)
{
    struct gpud_definition definition = GPUD_DEFINITION_BATCH("test", NULL, process_batch, NULL);

    definition.process = process;
    T_OK(gpud_init(&definition, 1, NULL));
}

/* Longer than a loaded machine takes from a submit to the poll that sends it. */
#define EXPIRES T_MS(300)

/* What its worker refused has not started: it is no member of the call, and not charged with its
 * death. */
static void refuse_beside(int before)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d =
        t_create(T_OPTIONS(.sent_ahead = 8, .max_batch = 4, .drive = GPUD_DRIVE_CALLER,
                           .max_attempts = 2, .grace = T_MS(10)));

    t_word_set(GATE, 0);
    t_word_set(STARTED, 0);
    t_word_set(RAN, 0);
    while (t_stats(d).slots_ready < 1)
        T_EQ(t_poll(d, &log, T_MS(1)), 0);
    (void)t_submit(d, T_TASK(.tag = TAG(WAIT_FOR_GATE, 0)));
    (void)t_poll(d, &log, 0);
    t_word_wait(STARTED, 1);
    if (before)
        (void)t_submit(d, T_TASK(.tag = 1, .expires = EXPIRES));
    (void)t_submit(d, T_TASK(.tag = TAG(CRASH, 2), .max_attempts = 1));
    if (!before)
        (void)t_submit(d, T_TASK(.tag = 1, .expires = EXPIRES));
    (void)t_poll(d, &log, 0);
    T_EQ(t_stats(d).sent, 3);
    t_pass(EXPIRES + T_MS(5));
    t_word_set(GATE, 1);
    t_word_wait(STARTED, 2);
    t_collect(d, &log, 3);
    (void)T_OUTCOME(&log, TAG(CRASH, 2), CRASHED);
    e = T_OUTCOME(&log, 1, TIMEOUT);
    T_EQ(e->phase, GPUD_PHASE_QUEUED);
    T_EQ(e->attempt, 0);
    T_EQ(e->started_at, 0);
    T_EQ(t_word(RAN), 0);
    T_EQ(t_stats(d).hard_kills, 0);
    T_EQ(t_stats(d).protocol_errors, 0);
    t_destroy(&d, &log);
}

T_CASE(refused_behind_one_that_kills)
{
    init_both();
    refuse_beside(0);
    T_OK(gpud_fini());
}

T_CASE(refused_before_one_that_kills)
{
    init_both();
    refuse_beside(1);
    T_OK(gpud_fini());
}

/* A cancel that comes when the kill for the limit has been ordered, and has not been done: the
 * keeper, which is to do it, is stopped meanwhile. What was cancelled is not tried again. */
static void cancel_the_doomed(uint32_t max_batch)
{
    struct t_log log = { 0 };
    struct t_proc worker, keeper;
    const struct gpud_event *e;
    gpud_dispatcher *d;
    uint64_t late, other;

    init_both();
    d = t_create(T_OPTIONS(.max_batch = max_batch, .batch_wait = max_batch > 1 ? T_S(60) : 0,
                           .grace = T_MS(60), .max_attempts = 2,
                           .retry_causes = GPUD_RETRY_CRASH | GPUD_RETRY_TIMEOUT));
    t_wait_ready(d, 1);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    t_stop(&keeper);
    late = t_submit(d, T_TASK(.tag = TAG(DEAF_FIRST, 0), .limit = T_MS(50)));
    other = max_batch > 1 ? t_submit(d, T_TASK(.tag = 1)) : 0;
    t_word_wait(STARTED, 1);
    t_wait_until("the kill is ordered", t_word_waits, NULL);
    T_OK(gpud_dispatcher_cancel(d, late, GPUD_CANCEL_HARD));
    if (other)
        T_OK(gpud_dispatcher_cancel(d, other, GPUD_CANCEL_HARD));
    T_EQ(kill(keeper.pid, SIGCONT), 0);
    t_collect(d, &log, max_batch > 1 ? 2 : 1);
    e = T_OUTCOME(&log, TAG(DEAF_FIRST, 0), TIMEOUT);
    T_EQ(e->attempt, 1);
    T_EQ(e->phase, GPUD_PHASE_HARD);
    if (other)
        T_EQ(T_OUTCOME(&log, 1, CANCELLED)->attempt, 1);
    T_EQ(t_word(STARTED), 1);
    T_EQ(t_stats(d).retried, 0);
    t_end(&d, &log);
}

T_CASE(cancelled_while_the_kill_is_under_way)
{
    cancel_the_doomed(1);
}

T_CASE(member_cancelled_while_the_kill_is_under_way)
{
    cancel_the_doomed(2);
}
