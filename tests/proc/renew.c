/* SPDX-License-Identifier: MIT */
/* renew.c - option max_tasks_per_worker: a worker that has ended this many tasks is replaced. */
#include "fixture.h"

#include <string.h>

enum { CLEANUPS };

static void cleanup(gpud_worker *w, void *state)
{
    (void)w, (void)state;
    (void)t_word_add(CLEANUPS);
}

/* How many outcomes came from one life of the slot. */
static size_t outcomes_of(const struct t_log *log, uint32_t incarnation)
{
    size_t n = 0;

    for (size_t i = 0; i < log->count; i++)
        n += log->list[i].kind == GPUD_EVENT_OUTCOME && log->list[i].incarnation == incarnation;
    return n;
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

    t_init(NULL, t_no_work, cleanup); /* first: a worker that is executed comes this far, too */
    t_word_set(CLEANUPS, 0);
    d = T_CREATE(.devices = "cpu:1", .max_tasks_per_worker = number, .sent_ahead = sent_ahead,
                 .drive = drive, .slot_events = 1, .failures_in_a_row = 1, .backoff = GPUD_NEVER);
    t_submit_tags(d, 0, TASKS);
    t_collect(d, &log, TASKS);
    t_check_exactly_once(&log, TASKS);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), TASKS);
    for (uint32_t life = 1; life <= TASKS / number; life++)
        T_EQ(outcomes_of(&log, life), number);
    T_EQ(outcomes_of(&log, TASKS / number + 1), TASKS % number);
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

static void hang(gpud_worker *w, void *state)
{
    (void)w, (void)state;
    (void)t_word_add(CLEANUPS);
    t_rest();
}

/* destroy while a worker that is being replaced is in cleanup. */
T_CASE(destroy_in_cleanup)
{
    uint64_t uncollected;
    gpud_dispatcher *d;

    t_init(NULL, t_no_work, hang);
    d = t_create(
        T_OPTIONS(.devices = "cpu:2", .max_tasks_per_worker = 1, .cleanup_limit = T_MS(200)));
    t_submit_tags(d, 0, 6);
    t_word_wait(CLEANUPS, 1);
    T_OK(gpud_dispatcher_destroy(&d, &uncollected));
    T_EQ(uncollected, 6);
    T_OK(gpud_fini());
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
        GPUD_DEFINITION_BATCH("test", NULL, process_batch, NULL);
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    T_OK(gpud_init(&definition, 1, NULL));
    d = T_CREATE(.devices = "cpu:1", .max_tasks_per_worker = NUMBER, .max_batch = BATCH,
                 .batch_wait = T_S(3600));
    t_submit_tags(d, 0, TASKS);
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
