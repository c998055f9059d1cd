/* SPDX-License-Identifier: MIT */
/*
 * r_tell.c - what is told of which task, and when, in the situations in which a reader of the code
 * found it to be wrong: each case here failed before its mend.
 */
#include "verbs.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum verb { PLAIN, WAIT, PROGRESS, FAIL };

enum { GATES, STARTED = 8 };

/* WAIT waits for the gate that its number names. */
static int process(gpud_task *t, void *state)
{
    uint64_t tag = gpud_task_tag(t);
    char text[32];

    (void)state;
    switch ((enum verb)(tag >> 32)) {
    case PLAIN: /* as short as can be */
        return 0;
    case WAIT:
        (void)t_word_add(STARTED);
        t_word_wait(GATES + (unsigned)(tag & 7), 1);
        return 0;
    case PROGRESS:
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)tag);
        T_OK(gpud_task_progress(t, 0.5, text));
        return 0;
    case FAIL:
        (void)gpud_task_fail(t, 7, "seven");
        return 5;
    }
    return 1;
}

/* Every reported text is the tag of its task. */
static void check_progress(const struct t_log *log)
{
    for (size_t i = 0; i < t_log_count(log, GPUD_EVENT_PROGRESS); i++) {
        const struct gpud_event *e = t_log_at(log, GPUD_EVENT_PROGRESS, i);

        T_EQ(strtoull(e->text, NULL, 10), e->tag);
    }
}

/* Progress is the task's that reported it, never that of the next in its place. */
T_CASE(progress_is_not_the_next_tasks)
{
    enum { ROUNDS = 20 };
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .sent_ahead = 2, .drive = GPUD_DRIVE_CALLER);
    size_t n = 0;

    while (t_stats(d).slots_ready < 1)
        T_EQ(t_poll(d, &log, T_MS(2)), 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        t_word_set(STARTED, 0);
        t_word_set(GATES, 0);
        T_SUBMIT(d, .tag = T_TAG(PROGRESS, round));
        T_SUBMIT(d, .tag = T_TAG(WAIT, round << 3));
        while (!t_word(STARTED)) /* then the first has ended, and its bell waits */
            (void)t_poll(d, &log, 0);
        T_SUBMIT(d, .tag = T_TAG(PLAIN, round));
        /* collects the first, sends the third into its cell, hears the bell */
        for (int i = 0; i < 3; i++)
            (void)t_poll(d, &log, 0);
        t_word_set(GATES, 1);
        n += 3;
        t_collect(d, &log, n);
    }
    check_progress(&log);
    t_end(&d, &log);
}

/* The same in a stream of short tasks, which report while the host collects the ends of others.
 * The two must meet, so a fault shows in every second run or so. */
T_CASE(progress_in_a_stream)
{
    enum { TASKS = 40000 };
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .sent_ahead = 64, .queue_size = TASKS);

    for (uint32_t i = 0; i < TASKS; i++)
        T_SUBMIT(d, .tag = T_TAG(i % 3 ? PLAIN : PROGRESS, i));
    t_collect(d, &log, TASKS);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), TASKS);
    check_progress(&log);
    t_end(&d, &log);
}

static int one_has_ended(void *user)
{
    return t_stats(user).success == 1;
}

/* A task that ends untold, because it took next to no time, is told though a long one follows, also
 * when the worker comes to both after the library has looked once.  (Nobody polls: that alone would
 * be a look.) */
T_CASE(untold_end_of_a_late_worker)
{
    struct t_log log = { 0 };
    struct t_proc worker, keeper;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .sent_ahead = 2);

    t_wait_ready(d, 1);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    t_stop(&keeper); /* so that nobody knows of the other */
    t_stop(&worker);
    T_SUBMIT(d, .tag = T_TAG(PLAIN, 0));
    T_SUBMIT(d, .tag = T_TAG(WAIT, 0));
    t_wait_until("both are sent", t_none_queued, d);
    t_pass(T_MS(20)); /* the library has looked, after a millisecond */
    t_kill(worker.pid, SIGCONT);
    t_kill(keeper.pid, SIGCONT);
    t_word_wait(STARTED, 1);
    t_wait_until("the first is known to have ended", one_has_ended, d);
    T_EQ(t_word(GATES), 0);
    t_word_set(GATES, 1);
    t_collect(d, &log, 2);
    (void)T_OUTCOME(&log, T_TAG(PLAIN, 0), SUCCESS);
    (void)T_OUTCOME(&log, T_TAG(WAIT, 0), SUCCESS); /* not ended by impatience */
    t_end(&d, &log);
}

/* What gpud_task_fail was given counts, whatever process returns then. */
T_CASE(fail_then_return_another)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");

    e = T_RUN(d, &log, ERROR, .tag = T_TAG(FAIL, 0));
    T_EQ(e->code, 7);
    T_TEXT(e->text, "seven");
    t_end(&d, &log);
}

/* Slot events: each change of state but READY <-> BUSY. */
T_CASE(slot_events_tell_ready)
{
    static const uint32_t states[] = { GPUD_SLOT_STARTING, GPUD_SLOT_READY, GPUD_SLOT_DRAINING,
                                       GPUD_SLOT_STOPPED };
    enum { STATES = T_LENGTH(states) };
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .slot_events = 1);

    for (uint64_t n = 0; n < 5; n++) {
        T_SUBMIT(d, .tag = n);
        t_collect(d, &log, n + 1);
    }
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    t_collect_rest(d, &log);
    T_EQ(t_log_count(&log, GPUD_EVENT_SLOT), STATES);
    for (size_t i = 0; i < STATES; i++)
        T_EQ(t_log_at(&log, GPUD_EVENT_SLOT, i)->slot_state, states[i]);
    t_end(&d, &log);
}
