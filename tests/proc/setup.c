/* SPDX-License-Identifier: MIT */
/* setup.c - workers whose setup or cleanup fails, dies or hangs. */
#include "fixture.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum way { FAIL, FAIL_SILENTLY, EXIT, ABORT, HANG };
enum { STARTS }; /* numbers: setups that slot 0 has begun */

/* The setup byte says what that of slot 0 does. */
static int setup(gpud_worker *w, void **ret_state)
{
    size_t size = 0;
    const unsigned char *way = gpud_worker_setup_data(w, &size);

    (void)ret_state;
    if (gpud_worker_slot(w) || !size)
        return 0;
    atomic_fetch_add(&t_page->numbers[STARTS], 1);
    switch ((enum way) * way) {
    case FAIL:
        return gpud_worker_fail(w, 17, "no such model");
    case FAIL_SILENTLY:
        return 18;
    case EXIT:
        exit(3);
    case ABORT:
        (void)fprintf(stderr, "cannot open the device\n");
        abort();
    case HANG:
        t_block_signals();
        t_rest();
    }
    return -1;
}

static gpud_dispatcher *create(const char *devices, enum way way)
{
    const unsigned char byte = (unsigned char)way;

    /* The other slot's worker is to be ready within it, also on a loaded machine, and where a
     * program is executed. */
    const uint64_t shortly = T_S(T_SANITIZED ? 2 : 1);

    return T_CREATE(.devices = devices, .setup_data = &byte, .setup_size = 1, .backoff = T_MS(10),
                    .setup_limit = way == HANG ? shortly : T_S(20), .slot_events = 1);
}

/* The fields of a SETUP_FAILURE by the way it failed. */
static void check_failure(const struct gpud_event *e, enum way way, uint32_t incarnation)
{
    if (way == FAIL || way == FAIL_SILENTLY) {
        T_EQ(e->code, way == FAIL ? 17 : 18);
        T_TEXT(e->text, way == FAIL ? "no such model" : "setup returned 18");
    } else if (way == HANG) {
        T_EQ(e->code, GPUD_ETIMEOUT);
        if (!getenv("T_START_EXEC")) /* where the program may come to gpud_init too late */
            T_CHECK(strstr(e->text, "setup exceeded its time limit of ") == e->text &&
                    strstr(e->text, " s (setup_limit)"));
        T_EQ(e->exit_kind, GPUD_EXIT_SIGNAL);
        T_EQ(e->exit_status, SIGKILL);
    } else {
        T_EQ(e->code, GPUD_ECRASHED);
        T_EQ(e->exit_kind, way == EXIT ? GPUD_EXIT_CODE : GPUD_EXIT_SIGNAL);
        T_EQ(e->exit_status, way == EXIT ? 3 : SIGABRT);
        if (way == ABORT)
            T_CHECK(strstr(e->output, "cannot open the device\n"));
    }
    T_EQ(e->phase, GPUD_PHASE_SETUP);
    T_EQ(e->slot, 0);
    T_EQ(e->incarnation, incarnation);
    T_TEXT(e->device, "cpu:0");
}

/* C9: setup fails on one of two slots, in every way: one event per attempt, 3 in a row and the
 * slot is FAILED, its work goes to the other. [T6] [G4] */
T_CASE(one_slot_fails)
{
    t_init(setup, t_no_work, NULL);
    for (enum way way = FAIL; way <= HANG; way++) {
        struct t_log log = { 0 };
        gpud_dispatcher *d;

        atomic_store(&t_page->numbers[STARTS], 0);
        d = create("cpu:2", way);
        t_submit_tags(d, 0, 50);
        t_collect(d, &log, 50);
        for (uint64_t tag = 0; tag < 50; tag++)
            T_EQ(T_OUTCOME(&log, tag, SUCCESS)->slot, 1);
        t_collect_kind(d, &log, GPUD_EVENT_SETUP_FAILURE, 3);
        t_wait_slot(d, 0, GPUD_SLOT_FAILED);
        for (unsigned n = 0; n < 3; n++)
            check_failure(t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, n), way, n + 1);
        T_EQ(t_stats(d).setup_failures, 3);
        T_EQ(t_stats(d).slots_failed, 1);
        T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
        t_collect_rest(d, &log);
        T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 3);
        /* on a busy machine the limit may pass before setup is called */
        T_CHECK(atomic_load(&t_page->numbers[STARTS]) <= 3);
        if (way != HANG)
            T_EQ(atomic_load(&t_page->numbers[STARTS]), 3);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

/* The callbacks of run: a failing setup goes to on_setup_failure, and when that is NULL to
 * on_event. */
struct heard {
    unsigned setup_failures, events, outcomes, next;
};

static int hear_setup_failure(const struct gpud_event *e, void *user)
{
    T_EQ(e->kind, GPUD_EVENT_SETUP_FAILURE);
    ((struct heard *)user)->setup_failures++;
    return 0;
}

static int hear_event(const struct gpud_event *e, void *user)
{
    T_CMP(e->kind, !=, GPUD_EVENT_OUTCOME);
    ((struct heard *)user)->events += e->kind == GPUD_EVENT_SETUP_FAILURE;
    return 0;
}

static int hear_outcome(const struct gpud_event *e, void *user)
{
    T_EQ(e->outcome, GPUD_OUTCOME_NO_WORKER);
    ((struct heard *)user)->outcomes++;
    return 0;
}

static int ten(struct gpud_task_desc *task, size_t n, void *user)
{
    (void)n;
    (void)task;
    return ((struct heard *)user)->next++ < 10;
}

T_CASE(callbacks_hear_of_it)
{
    t_init(setup, t_no_work, NULL);
    for (int direct = 0; direct < 2; direct++) {
        struct heard h = { 0 };
        gpud_dispatcher *d = create("cpu:1", FAIL);

        T_CODE(
            gpud_dispatcher_run(d, ten,
                                T_CALLBACKS(.on_error = hear_outcome, .on_event = hear_event,
                                            .on_setup_failure = direct ? hear_setup_failure : NULL),
                                &h, NULL),
            ENOWORKER);
        T_EQ(h.outcomes, 10);
        T_EQ(h.setup_failures, direct ? 3 : 0);
        T_EQ(h.events, direct ? 0 : 3);
        t_destroy(&d, NULL);
    }
    T_OK(gpud_fini());
}

/* ---- cleanup ---- */

enum { CLEANUPS = 10, CLEANUP_WAY };

static void cleanup(gpud_worker *w, void *state)
{
    (void)w, (void)state;
    (void)t_word_add(CLEANUPS);
    switch (t_word(CLEANUP_WAY)) {
    case 1:
        abort();
    case 2:
        exit(4);
    case 3:
        t_rest();
    default:
        break;
    }
}

/* A cleanup that the limit of close kills names that limit. */
T_CASE(cleanup_at_the_close_limit)
{
    const struct gpud_event *e;
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(setup, t_no_work, cleanup);
    t_word_set(CLEANUP_WAY, 3);
    d = T_CREATE(.devices = "cpu:1", .cleanup_limit = T_S(20));
    t_wait_ready(d, 1);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, T_MS(150)));
    t_collect_rest(d, &log);
    e = t_log_at(&log, GPUD_EVENT_CLEANUP_FAILURE, 0);
    T_CHECK(e);
    T_TEXT(e->text, "cleanup was killed at the close limit of 0.150 s (gpud_dispatcher_close)");
    t_end(&d, &log);
}

/* C12: a cleanup that dies or hangs is an event, told before END; each worker's own. [G12] */
T_CASE(cleanup_failures)
{
    t_init(setup, t_no_work, cleanup);
    for (uint32_t way = 0; way < 4; way++) {
        struct t_log log = { 0 };
        gpud_dispatcher *d;

        t_word_set(CLEANUPS, 0);
        t_word_set(CLEANUP_WAY, way);
        d = T_CREATE(.devices = "cpu:2", .cleanup_limit = T_MS(way == 3 ? 50 : 20000));
        t_wait_ready(d, 2);
        t_submit_tags(d, 0, 4);
        t_collect(d, &log, 4);
        T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
        t_collect_rest(d, &log);
        /* on a busy machine the limit may pass before cleanup is called */
        T_CMP(t_word(CLEANUPS), <=, 2);
        if (way != 3)
            T_EQ(t_word(CLEANUPS), 2);
        T_EQ(t_log_count(&log, GPUD_EVENT_CLEANUP_FAILURE), way ? 2 : 0);
        for (size_t n = 0; n < t_log_count(&log, GPUD_EVENT_CLEANUP_FAILURE); n++) {
            const struct gpud_event *e = t_log_at(&log, GPUD_EVENT_CLEANUP_FAILURE, n);

            T_EQ(e->phase, GPUD_PHASE_CLEANUP);
            T_EQ(e->exit_kind, way == 2 ? GPUD_EXIT_CODE : GPUD_EXIT_SIGNAL);
            T_EQ(e->exit_status, way == 1 ? SIGABRT : way == 2 ? 4 : SIGKILL);
            T_CMP(e->slot, <, 2);
            if (way == 3)
                T_TEXT(e->text, "cleanup exceeded its time limit of 0.050 s (cleanup_limit)");
        }
        T_EQ(t_stats(d).cleanup_failures, way ? 2 : 0);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}
