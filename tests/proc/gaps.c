/* SPDX-License-Identifier: MIT */
/*
 * gaps.c - what no other program would notice: each case here was asked for by a sabotage that all
 * others let pass (tests/sabotage).
 */
#include "verbs.h"

#include <signal.h>
#include <stdatomic.h>

enum { WAIT = T_VERBS }; /* for the gate of its number */

enum { GATES };

/* Counts the runs of each number. */
static int process(gpud_task *t, void *state)
{
    uint64_t tag = gpud_task_tag(t), n = tag & 0xffffffffU;

    atomic_fetch_add(&t_page->numbers[n], 1);
    if (tag >> 32 != WAIT)
        return t_process(t, state);
    (void)t_word_add(T_STARTED);
    t_word_wait(GATES + (unsigned)n, 1);
    return 0;
}

static int nothing_queued(void *user)
{
    return t_stats(user).queued == 0;
}

/* C2 A3: a task that was taken back and run elsewhere is not run again by the worker it had been
 * sent to, when that comes to its stale number. */
T_CASE(recalled_task_runs_once)
{
    enum { ROUNDS = 20 };
    struct t_log log = { 0 };
    uint64_t n = 2, recalled;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .sent_ahead = 2);

    t_wait_ready(d, 2);
    T_SUBMIT_STARTED(d, .tag = T_TAG(WAIT, 0));
    for (unsigned round = 0; round < ROUNDS; round++) {
        t_word_set(GATES + 1, 0);
        T_SUBMIT(d, .tag = T_TAG(WAIT, 1), .label = "the other worker's");
        t_word_wait(T_STARTED, round + 2);
        for (int i = 0; i < 2; i++) /* one behind each */
            T_SUBMIT(d, .tag = n++);
        t_wait_until("both are sent", nothing_queued, d);
        t_word_set(GATES + 1, 1);
        t_collect(d, &log, 3 * (round + 1));
    }
    recalled = t_stats(d).recalled;
    t_word_set(GATES, 1);
    t_collect(d, &log, 3 * ROUNDS + 1);
    t_end(&d, &log); /* a worker looks at all that was sent before it leaves */
    T_CMP(recalled, >=, 1);
    T_EQ(atomic_load(&t_page->numbers[0]), 1);
    T_EQ(atomic_load(&t_page->numbers[1]), ROUNDS);
    for (uint64_t i = 2; i < n; i++)
        if (atomic_load(&t_page->numbers[i]) != 1)
            T_FAIL("task %d was run %d times", (int)i, (int)atomic_load(&t_page->numbers[i]));
}

enum { SENT = 8 };

static int one_has_ended(void *user)
{
    return t_stats(user).success == 1;
}

/* A result does not wait for the long task behind it, also when it comes long after the library has
 * last looked by itself.  (Nobody polls: that alone would be a look.) */
T_CASE(end_is_told_before_a_long_task)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    /* nor is it looked at for deafness */
    d = T_CREATE(.devices = "cpu:1", .sent_ahead = 2, .kill_limit = T_S(3600));
    for (uint64_t n = 0; n < 2; n++)
        T_SUBMIT(d, .tag = T_TAG(WAIT, n));
    t_word_wait(T_STARTED, 1);
    t_pass(T_MS(20)); /* it has looked at the batch once, after a millisecond */
    t_word_set(GATES, 1);
    t_wait_until("the first has ended", one_has_ended, d);
    T_EQ(t_word(GATES + 1), 0);
    t_word_set(GATES + 1, 1);
    t_collect(d, &log, 2);
    for (uint64_t n = 0; n < 2; n++)
        (void)T_OUTCOME(&log, T_TAG(WAIT, n), SUCCESS); /* not ended by impatience */
    t_end(&d, &log);
}

static int all_have_ended(void *user)
{
    return t_stats(user).success == 4;
}

/* C18: outcomes count against the queue limit until somebody has collected them. [G19] */
T_CASE(uncollected_outcomes_fill_the_queue)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .queue_size = 4);

    t_submit_tags(d, 0, 4);
    t_wait_until("all have ended", all_have_ended, d);
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.tag = 4), 0, NULL, NULL), EFULL);
    t_collect(d, &log, 4);
    T_SUBMIT(d, .tag = 4);
    t_collect(d, &log, 5);
    t_check_exactly_once(&log, 5);
    t_end(&d, &log);
}

struct back {
    gpud_dispatcher *d;
    unsigned slot;
};

static int heard_of_it(void *user)
{
    const struct back *b = user;

    return t_stats(b->d).late_dropped > 0 || t_slot(b->d, b->slot).state != GPUD_SLOT_QUARANTINED;
}

/* C4: what a keeper says about a worker that was given up changes nothing. */
T_CASE(late_word_of_a_former_life)
{
    struct t_log log = { 0 };
    struct t_proc keeper, worker;
    struct back b = { .slot = 0 };
    uint32_t life;

    t_init(NULL, process, NULL);
    b.d = t_create(
        T_OPTIONS(.devices = "cpu:2", .grace = T_MS(20), .kill_limit = T_S(1), .backoff = T_MS(1)));
    T_SUBMIT_STARTED(b.d, .tag = T_TAG(T_BLOCKED, 0), .limit = T_S(1));
    while (!t_slot(b.d, b.slot).task_id)
        b.slot++;
    worker = t_worker(b.d, b.slot);
    keeper = t_keeper_of(&worker);
    t_stop(&keeper);
    t_collect(b.d, &log, 1);
    T_EQ(T_OUTCOME(&log, T_TAG(T_BLOCKED, 0), TIMEOUT)->phase, GPUD_PHASE_KILL);
    T_EQ(t_slot(b.d, b.slot).state, GPUD_SLOT_QUARANTINED);
    life = t_slot(b.d, b.slot).incarnation;
    t_kill(keeper.pid, SIGCONT); /* it carries out the kill, and reports it */
    t_wait_ended(&worker);
    t_wait_until("the report is there", heard_of_it, &b);
    T_EQ(t_slot(b.d, b.slot).state, GPUD_SLOT_QUARANTINED);
    T_EQ(t_slot(b.d, b.slot).incarnation, life);
    T_EQ(t_stats(b.d).slots_failed, 1);
    for (uint64_t n = 0; n < 20; n++)
        T_SUBMIT(b.d, .tag = n);
    t_collect(b.d, &log, 21);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 20);
    t_end(&b.d, &log);
}
