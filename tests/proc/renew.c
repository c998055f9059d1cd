/* SPDX-License-Identifier: MIT */
/* renew.c - option max_tasks_per_worker: a worker that has ended this many tasks is replaced. */
#include "fixture.h"

#include <string.h>

enum { SETUPS, CLEANUPS, GATE, SETUP_GATE, CLEANUP_GATE, HELD, IN_CLEANUP };
enum { WORK, FAIL_TWICE, WAIT_FOR_GATE };
#define TAG(verb, n) ((uint64_t)(verb) << 32 | (uint64_t)(n))

/* Each life after the first of a slot waits until it may go on. */
static int setup(gpud_worker *w, void **ret_state)
{
    (void)ret_state;
    if (gpud_worker_incarnation(w) > 1)
        t_word_wait(SETUP_GATE, 1);
    (void)t_word_add(SETUPS);
    return 0;
}

static int process(gpud_task *t, void *state)
{
    (void)state;
    switch (gpud_task_tag(t) >> 32) {
    case FAIL_TWICE:
        return gpud_task_attempt(t) < 3;
    case WAIT_FOR_GATE:
        (void)t_word_add(HELD);
        t_word_wait(GATE, 1);
        return 0;
    default:
        return 0;
    }
}

static void cleanup(gpud_worker *w, void *state)
{
    (void)w;
    (void)state;
    (void)t_word_add(IN_CLEANUP);
    t_word_wait(CLEANUP_GATE, 1);
    (void)t_word_add(CLEANUPS);
}

/* How many outcomes came from one life of a slot. */
static size_t outcomes_of(const struct t_log *log, uint32_t slot, uint32_t incarnation)
{
    size_t n = 0;

    for (size_t i = 0; i < log->count; i++)
        n += log->list[i].kind == GPUD_EVENT_OUTCOME && log->list[i].slot == slot &&
             log->list[i].incarnation == incarnation;
    return n;
}

static void open_gates(void)
{
    t_word_set(SETUP_GATE, 1);
    t_word_set(CLEANUP_GATE, 1);
}

static void check_peace(gpud_dispatcher *d, const struct t_log *log)
{
    const struct gpud_stats stats = t_stats(d);

    T_EQ(stats.deaths, 0);
    T_EQ(stats.setup_failures, 0);
    T_EQ(stats.cleanup_failures, 0);
    T_EQ(stats.retried, 0);
    T_EQ(t_log_count(log, GPUD_EVENT_SETUP_FAILURE), 0);
    T_EQ(t_log_count(log, GPUD_EVENT_CLEANUP_FAILURE), 0);
    for (size_t i = 0; i < log->count; i++)
        if (log->list[i].kind == GPUD_EVENT_SLOT)
            T_CHECK(log->list[i].slot_state != GPUD_SLOT_BACKOFF &&
                    log->list[i].slot_state != GPUD_SLOT_FAILED);
}

/* With one slot each life ends exactly its number, however many tasks wait and are sent ahead. */
static void exact(uint32_t number, uint32_t sent_ahead, uint32_t drive)
{
    enum { TASKS = 30 };
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(setup, process, cleanup); /* first: a worker that is executed comes this far, too */
    memset(t_page, 0, sizeof(*t_page));
    open_gates();
    d = t_create(T_OPTIONS(.devices = "cpu:1", .max_tasks_per_worker = number,
                           .sent_ahead = sent_ahead, .drive = drive, .slot_events = 1,
                           .failures_in_a_row = 1, .backoff = GPUD_NEVER));
    for (uint64_t n = 0; n < TASKS; n++)
        (void)t_submit(d, T_TASK(.tag = n));
    t_collect(d, &log, TASKS);
    t_check_exactly_once(&log, TASKS);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), TASKS);
    for (uint32_t life = 1; life <= TASKS / number; life++)
        T_EQ(outcomes_of(&log, 0, life), number);
    T_EQ(outcomes_of(&log, 0, TASKS / number + 1), TASKS % number);
    for (size_t i = 0; i < TASKS; i++)
        T_EQ(t_log_at(&log, GPUD_EVENT_OUTCOME, i)->attempt, 1);
    if (TASKS % number == 0) /* the last one, which nothing waits for */
        t_collect_kind(d, &log, GPUD_EVENT_SLOT, (TASKS / number + 1) * 2 + TASKS / number);
    T_EQ(t_word(CLEANUPS), TASKS / number);
    T_EQ(t_stats(d).restarts, TASKS / number);
    check_peace(d, &log);
    t_end(&d, &log);
}

T_CASE(exact_with_one_slot)
{
    exact(1, 0, GPUD_DRIVE_THREAD);
    exact(7, 64, GPUD_DRIVE_THREAD);
    exact(10, 0, GPUD_DRIVE_THREAD);
    exact(10, 3, GPUD_DRIVE_CALLER);
    exact(30, 64, GPUD_DRIVE_CALLER);
}

/* Without the option a worker is never replaced. */
T_CASE(never_by_default)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(setup, process, cleanup);
    open_gates();
    d = t_create(T_OPTIONS(.devices = "cpu:1"));
    for (uint64_t n = 0; n < 500; n++)
        (void)t_submit(d, T_TASK(.tag = n));
    t_collect(d, &log, 500);
    T_EQ(outcomes_of(&log, 0, 1), 500);
    T_EQ(t_word(CLEANUPS), 0);
    t_end(&d, &log);
}

/* Attempts count, and a replacement costs none. */
T_CASE(attempts)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    t_init(setup, process, cleanup);
    open_gates();
    d = t_create(T_OPTIONS(.devices = "cpu:1", .max_tasks_per_worker = 1, .max_attempts = 3,
                           .retry_causes = GPUD_RETRY_ERROR));
    (void)t_submit(d, T_TASK(.tag = TAG(FAIL_TWICE, 0)));
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, TAG(FAIL_TWICE, 0), SUCCESS);
    T_EQ(e->attempt, 3);
    T_EQ(e->incarnation, 3);
    T_EQ(t_stats(d).retried, 2);
    T_EQ(t_stats(d).deaths, 0);
    t_end(&d, &log);
}

/* Of several workers one at a time is replaced; by the slots' states. */
static void check_turns(const struct t_log *log)
{
    uint32_t in_turn = GPUD_NO_SLOT;

    for (size_t i = 0; i < log->count; i++) {
        const struct gpud_event *e = &log->list[i];
        if (e->kind != GPUD_EVENT_SLOT)
            continue;
        if (e->slot_state == GPUD_SLOT_DRAINING) {
            T_EQ(in_turn, GPUD_NO_SLOT);
            in_turn = e->slot;
        } else if (e->slot_state == GPUD_SLOT_STARTING && e->incarnation > 0) {
            T_EQ(e->slot, in_turn);
        } else if (e->slot_state == GPUD_SLOT_READY && e->slot == in_turn) {
            in_turn = GPUD_NO_SLOT;
        }
    }
}

T_CASE(one_at_a_time)
{
    enum { NUMBER = 5, ROUND = 40 };
    struct t_log log = { 0 };
    uint64_t given = 0;
    gpud_dispatcher *d;

    t_init(setup, process, cleanup);
    open_gates();
    d = t_create(T_OPTIONS(.devices = "cpu:4", .max_tasks_per_worker = NUMBER, .slot_events = 1));
    t_wait_ready(d, 4);
    while (t_stats(d).restarts < 12) {
        for (unsigned n = 0; n < ROUND; n++)
            (void)t_submit(d, T_TASK(.tag = given++));
        t_collect(d, &log, given);
    }
    t_check_exactly_once(&log, given);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), given);
    T_EQ(t_stats(d).events_dropped, 0);
    check_turns(&log);
    check_peace(d, &log);
    for (uint32_t slot = 0; slot < 4; slot++) /* the number is a minimum */
        for (uint32_t life = 1; life < t_slot(d, slot).incarnation; life++)
            T_CMP(outcomes_of(&log, slot, life), >=, NUMBER);
    t_end(&d, &log);
}

/* While one worker is replaced, another one that is due as well takes every task, until its turn.
 */
T_CASE(nothing_waits_while_another_is_idle)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    uint32_t other;
    uint64_t n;

    t_init(setup, process, cleanup);
    t_word_set(CLEANUP_GATE, 1);
    d = t_create(T_OPTIONS(.devices = "cpu:2", .max_tasks_per_worker = 1, .slot_events = 1));
    t_wait_ready(d, 2);
    for (n = 0; n < 2; n++) /* one for each */
        (void)t_submit(d, T_TASK(.tag = TAG(WAIT_FOR_GATE, n)));
    t_word_wait(HELD, 2);
    t_word_set(GATE, 1);
    t_collect(d, &log, 2);
    t_word_wait(CLEANUPS, 1);
    T_EQ(t_stats(d).slots_ready, 1); /* that one's next life waits in setup */
    other = t_slot(d, 0).state == GPUD_SLOT_READY ? 0 : 1;
    for (; n < 20; n++) {
        (void)t_submit(d, T_TASK(.tag = n));
        t_collect(d, &log, n + 1);
        T_EQ(T_OUTCOME(&log, n, SUCCESS)->slot, other);
        T_EQ(T_OUTCOME(&log, n, SUCCESS)->incarnation, 1);
    }
    T_EQ(t_word(CLEANUPS), 1);
    t_word_set(SETUP_GATE, 1);
    t_word_wait(CLEANUPS, 2);
    t_wait_ready(d, 2);
    T_EQ(t_slot(d, 0).incarnation, 2);
    T_EQ(t_slot(d, 1).incarnation, 2);
    t_collect_kind(d, &log, GPUD_EVENT_SLOT, 10); /* of each STARTING, READY, DRAINING and so on */
    check_turns(&log);
    check_peace(d, &log);
    t_end(&d, &log);
}

/* A worker that runs a long task keeps nobody's turn. */
T_CASE(long_task_of_another)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(setup, process, cleanup);
    open_gates();
    d = t_create(T_OPTIONS(.devices = "cpu:2", .max_tasks_per_worker = 2));
    t_wait_ready(d, 2);
    (void)t_submit(d, T_TASK(.tag = TAG(WAIT_FOR_GATE, 0)));
    t_word_wait(HELD, 1);
    for (uint64_t n = 1; n < 21; n++)
        (void)t_submit(d, T_TASK(.tag = n));
    t_collect(d, &log, 20);
    t_word_wait(CLEANUPS, 10);
    t_word_set(GATE, 1);
    t_collect(d, &log, 21);
    T_EQ(T_OUTCOME(&log, TAG(WAIT_FOR_GATE, 0), SUCCESS)->incarnation, 1);
    t_end(&d, &log);
}

/* ---- batches ---- */

static int process_batch(gpud_task *const *tasks, size_t n, void *state)
{
    (void)state;
    for (size_t i = 0; i < n; i++)
        if (gpud_task_result_set(tasks[i], &n, sizeof(n)))
            return 9;
    return 0;
}

/* The number is exact: the last batch of a life is smaller, and waits for no more. */
T_CASE(batches)
{
    enum { TASKS = 18, NUMBER = 6, BATCH = 4 };
    const struct gpud_definition definition =
        GPUD_DEFINITION_BATCH("test", setup, process_batch, cleanup);
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    T_OK(gpud_init(&definition, 1, NULL));
    open_gates();
    d = t_create(T_OPTIONS(.devices = "cpu:1", .max_tasks_per_worker = NUMBER, .max_batch = BATCH,
                           .batch_wait = T_S(3600)));
    for (uint64_t n = 0; n < TASKS; n++)
        (void)t_submit(d, T_TASK(.tag = n));
    t_collect(d, &log, TASKS);
    t_check_exactly_once(&log, TASKS);
    for (uint64_t n = 0; n < TASKS; n++) {
        const struct gpud_event *e = T_OUTCOME(&log, n, SUCCESS);
        size_t members;

        T_EQ(e->result_size, sizeof(members));
        memcpy(&members, e->result, sizeof(members));
        T_EQ(members, n % NUMBER < BATCH ? BATCH : NUMBER - BATCH);
        T_EQ(e->incarnation, n / NUMBER + 1);
    }
    t_end(&d, &log);
}

/* ---- endings ---- */

/* close while the cleanup of a worker that is being replaced runs: there is no next one. */
T_CASE(close_in_cleanup)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(setup, process, cleanup);
    t_word_set(SETUP_GATE, 1);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .max_tasks_per_worker = 1));
    (void)t_submit(d, T_TASK(.tag = 0));
    t_collect(d, &log, 1);
    t_word_wait(IN_CLEANUP, 1);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    t_word_set(CLEANUP_GATE, 1);
    t_collect_rest(d, &log);
    T_EQ(t_word(CLEANUPS), 1);
    T_EQ(t_word(SETUPS), 1);
    T_EQ(t_stats(d).restarts, 0);
    T_EQ(t_stats(d).cleanup_failures, 0);
    t_end(&d, &log);
}

/* close while the next worker's setup runs: with a task waiting for it, and without. */
static void close_in_setup(int waiting)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(setup, process, cleanup);
    memset(t_page, 0, sizeof(*t_page));
    t_word_set(CLEANUP_GATE, 1);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .max_tasks_per_worker = 1));
    (void)t_submit(d, T_TASK(.tag = 0));
    t_collect(d, &log, 1);
    t_word_wait(CLEANUPS, 1);
    t_wait_slot(d, 0, GPUD_SLOT_STARTING);
    if (waiting)
        (void)t_submit(d, T_TASK(.tag = 1));
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, GPUD_NEVER));
    if (waiting)
        t_word_set(SETUP_GATE, 1);
    t_collect_rest(d, &log);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), waiting ? 2 : 1);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 0);
    t_end(&d, &log);
}

T_CASE(close_in_next_setup)
{
    close_in_setup(0);
    close_in_setup(1);
}

/* destroy in the midst of it. */
T_CASE(destroy_in_cleanup)
{
    gpud_dispatcher *d;
    uint64_t uncollected;

    t_init(setup, process, cleanup);
    t_word_set(SETUP_GATE, 1);
    d = t_create(
        T_OPTIONS(.devices = "cpu:2", .max_tasks_per_worker = 1, .cleanup_limit = T_MS(200)));
    for (uint64_t n = 0; n < 6; n++)
        (void)t_submit(d, T_TASK(.tag = n));
    t_word_wait(IN_CLEANUP, 1); /* which nobody lets go on */
    T_OK(gpud_dispatcher_destroy(&d, &uncollected));
    T_EQ(uncollected, 6);
    T_OK(gpud_fini());
}

/* ---- what fails ---- */

static int failing_setup(gpud_worker *w, void **ret_state)
{
    (void)ret_state;
    return gpud_worker_slot(w) == 0 && gpud_worker_incarnation(w) > 1
               ? gpud_worker_fail(w, 5, "no second life")
               : 0;
}

/* A slot whose next worker cannot be made is given up, and the others' turns come. */
T_CASE(next_worker_fails)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    uint64_t n = 0;

    t_init(failing_setup, process, cleanup);
    open_gates();
    d = t_create(T_OPTIONS(.devices = "cpu:2", .max_tasks_per_worker = 1, .failures_in_a_row = 1));
    t_wait_ready(d, 2);
    while (t_slot(d, 0).state != GPUD_SLOT_FAILED || t_slot(d, 1).incarnation < 3) {
        (void)t_submit(d, T_TASK(.tag = n++));
        t_collect(d, &log, n);
    }
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), n);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 1);
    t_end(&d, &log);
}

/* A device that is drained meanwhile takes the turn from its slot. */
T_CASE(device_that_is_drained)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    uint32_t drained;
    uint64_t n;

    t_init(setup, process, cleanup);
    t_word_set(SETUP_GATE, 1);
    d = t_create(T_OPTIONS(.devices = "cpu:2", .max_tasks_per_worker = 1));
    t_wait_ready(d, 2);
    (void)t_submit(d, T_TASK(.tag = 0));
    t_collect(d, &log, 1);
    t_word_wait(IN_CLEANUP, 1);
    drained = T_OUTCOME(&log, 0, SUCCESS)->slot;
    T_OK(gpud_dispatcher_device_drain(d, drained ? "cpu:1" : "cpu:0"));
    t_word_set(CLEANUP_GATE, 1);
    t_wait_slot(d, drained, GPUD_SLOT_STOPPED);
    for (n = 1; n < 10; n++)
        (void)t_submit(d, T_TASK(.tag = n));
    t_collect(d, &log, n);
    for (n = 1; n < 10; n++)
        T_EQ(T_OUTCOME(&log, n, SUCCESS)->slot, 1 - drained);
    t_word_wait(CLEANUPS, 10);
    T_OK(gpud_dispatcher_device_return(d, drained ? "cpu:1" : "cpu:0"));
    t_wait_ready(d, 2);
    T_EQ(t_slot(d, drained).incarnation, 2);
    t_end(&d, &log);
}

/* A cleanup that is killed at its limit is told of, and the next worker starts. */
T_CASE(cleanup_that_hangs)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(setup, process, cleanup);
    t_word_set(SETUP_GATE, 1);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .max_tasks_per_worker = 2, .cleanup_limit = T_MS(50),
                           .failures_in_a_row = 1));
    for (uint64_t n = 0; n < 4; n++)
        (void)t_submit(d, T_TASK(.tag = n));
    t_collect(d, &log, 4);
    t_collect_kind(d, &log, GPUD_EVENT_CLEANUP_FAILURE, 2);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 4);
    T_EQ(outcomes_of(&log, 0, 1), 2);
    T_EQ(outcomes_of(&log, 0, 2), 2);
    t_word_set(CLEANUP_GATE, 1);
    t_end(&d, &log);
}
