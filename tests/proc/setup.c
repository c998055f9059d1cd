/* SPDX-License-Identifier: MIT */
/* setup.c - workers whose setup or cleanup fails, dies or hangs. */
#include "fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum way { FINE, FAIL, FAIL_SILENTLY, EXIT, ABORT, HANG, HANG_BLOCKED, FAIL_TWICE };
enum { RUNNING, GATE };
/* numbers: setups begun per slot; the time of each, 16 per slot */
enum { STARTS = 0, STARTED_AT = 8 };

/* The setup bytes say what to do: one byte per slot. */
static int setup(gpud_worker *w, void **ret_state)
{
    size_t size = 0;
    const unsigned char *ways = gpud_worker_setup_data(w, &size);
    uint32_t slot = gpud_worker_slot(w);
    uint64_t n = atomic_fetch_add(&t_page->numbers[STARTS + slot], 1);

    (void)ret_state;
    if (n < 16)
        atomic_store(&t_page->numbers[STARTED_AT + 16 * slot + n], t_now());
    switch (slot < size ? (enum way)ways[slot] : FINE) {
    case FINE:
        return 0;
    case FAIL:
        return gpud_worker_fail(w, 17, "no such model");
    case FAIL_SILENTLY:
        return 18;
    case EXIT:
        exit(3);
    case ABORT:
        (void)fprintf(stderr, "cannot open the device\n");
        abort();
    case HANG_BLOCKED:
        t_block_signals();
        __attribute__((fallthrough));
    case HANG:
        t_rest();
    case FAIL_TWICE:
        return n < 2 ? 19 : 0;
    }
    return -1;
}

static int process(gpud_task *t, void *state)
{
    (void)state;
    if (gpud_task_tag(t) == 999) {
        (void)t_word_add(RUNNING);
        t_word_wait(GATE, 1);
    }
    return 0;
}

static gpud_dispatcher *create(const char *devices, enum way a, enum way b)
{
    const unsigned char ways[2] = { (unsigned char)a, (unsigned char)b };

    /* The other slot's worker is to be ready within it, also on a loaded machine, and where a
     * program is executed. */
    const uint64_t shortly =
        b == FINE ? T_S(T_SANITIZED ? 2 : 1) : T_MS(getenv("T_START_EXEC") ? 500 : 60);

    return t_create(T_OPTIONS(.devices = devices, .setup_data = ways, .setup_size = 2,
                              .backoff = T_MS(10),
                              .setup_limit = a == HANG || a == HANG_BLOCKED ? shortly : T_S(20),
                              .slot_events = 1));
}

/* The fields of a SETUP_FAILURE by the way it failed. */
static void check_failure(const struct gpud_event *e, enum way way, uint32_t incarnation)
{
    if (way == FAIL || way == FAIL_SILENTLY) {
        T_EQ(e->code, way == FAIL ? 17 : 18);
        T_TEXT(e->text, way == FAIL ? "no such model" : "setup returned 18");
    } else if (way == HANG || way == HANG_BLOCKED) {
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

static const enum way bad_ways[] = { FAIL, FAIL_SILENTLY, EXIT, ABORT, HANG, HANG_BLOCKED };
enum { BAD_WAYS = sizeof(bad_ways) / sizeof(bad_ways[0]) };

/* C9: setup fails on one of two slots, in every way: one event per attempt, 3 in a row and the
 * slot is FAILED, its work goes to the other. [T6] [G4] */
T_CASE(one_slot_fails)
{
    t_init(setup, process, NULL);
    for (size_t i = 0; i < BAD_WAYS; i++) {
        struct t_log log = { 0 };
        gpud_dispatcher *d;

        atomic_store(&t_page->numbers[STARTS], 0);
        d = create("cpu:2", bad_ways[i], FINE);
        for (uint64_t tag = 0; tag < 50; tag++)
            (void)t_submit(d, T_TASK(.tag = tag));
        t_collect(d, &log, 50);
        for (uint64_t tag = 0; tag < 50; tag++)
            T_EQ(T_OUTCOME(&log, tag, SUCCESS)->slot, 1);
        t_collect_kind(d, &log, GPUD_EVENT_SETUP_FAILURE, 3);
        t_wait_slot(d, 0, GPUD_SLOT_FAILED);
        for (unsigned n = 0; n < 3; n++)
            check_failure(t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, n), bad_ways[i], n + 1);
        T_EQ(t_stats(d).setup_failures, 3);
        T_EQ(t_stats(d).slots_failed, 1);
        T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
        t_collect_rest(d, &log);
        T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 3);
        /* on a busy machine the limit may pass before setup is called */
        T_CHECK(atomic_load(&t_page->numbers[STARTS]) <= 3);
        if (bad_ways[i] != HANG && bad_ways[i] != HANG_BLOCKED)
            T_EQ(atomic_load(&t_page->numbers[STARTS]), 3);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

/* C9: all slots fail: every pending task and every later one ends NO_WORKER within 1 s. [T6] */
T_CASE(all_slots_fail)
{
    t_init(setup, process, NULL);
    for (size_t i = 0; i < BAD_WAYS; i++) {
        struct t_log log = { 0 };
        gpud_dispatcher *d = create("cpu:2", bad_ways[i], bad_ways[i]);
        uint64_t before;

        for (uint64_t tag = 0; tag < 20; tag++)
            (void)t_submit(d, T_TASK(.tag = tag));
        t_collect(d, &log, 20);
        for (uint64_t tag = 0; tag < 20; tag++) {
            const struct gpud_event *e = T_OUTCOME(&log, tag, NO_WORKER);

            T_EQ(e->attempt, 0);
            T_EQ(e->started_at, 0);
            T_EQ(e->code, GPUD_ENOWORKER);
            T_EQ(e->phase, GPUD_PHASE_QUEUED);
        }
        T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 6);
        before = t_now();
        (void)t_submit(d, T_TASK(.tag = 20));
        t_collect(d, &log, 21);
        (void)T_OUTCOME(&log, 20, NO_WORKER);
        T_CMP(t_now() - before, <, T_S(1));
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

/* C9: the waits between attempts double up to the cap, and the states follow each other. [T6] */
T_CASE(backoff_doubles)
{
    static const uint32_t wanted[] = { GPUD_SLOT_STARTING, GPUD_SLOT_BACKOFF, GPUD_SLOT_STARTING,
                                       GPUD_SLOT_BACKOFF,  GPUD_SLOT_STARTING, GPUD_SLOT_BACKOFF,
                                       GPUD_SLOT_STARTING, GPUD_SLOT_BACKOFF,  GPUD_SLOT_STARTING,
                                       GPUD_SLOT_FAILED };
    static const unsigned char way = FAIL;
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t n;

    t_init(setup, process, NULL);
    d = t_create(T_OPTIONS(.setup_data = &way, .setup_size = 1, .backoff = T_MS(20),
                           .backoff_cap = T_MS(50), .failures_in_a_row = 5, .slot_events = 1));
    t_collect_kind(d, &log, GPUD_EVENT_SETUP_FAILURE, 5);
    t_collect_kind(d, &log, GPUD_EVENT_SLOT, sizeof(wanted) / sizeof(wanted[0]));
    for (n = 0; n < sizeof(wanted) / sizeof(wanted[0]); n++) {
        const struct gpud_event *e = t_log_at(&log, GPUD_EVENT_SLOT, n);

        if (e->slot_state != wanted[n])
            T_FAIL("change %zu is to %s, not to %s", n, gpud_slot_state_name(e->slot_state),
                   gpud_slot_state_name(wanted[n]));
        T_EQ(e->slot, 0);
    }
    for (n = 1; n < 5; n++) {
        uint64_t gap = atomic_load(&t_page->numbers[STARTED_AT + n]) -
                       atomic_load(&t_page->numbers[STARTED_AT + n - 1]);
        uint64_t least = n == 1 ? T_MS(20) : n == 2 ? T_MS(40) : T_MS(50);

        T_CMP(gap, >=, least);
        T_CMP(gap, <, least + T_S(1));
    }
    t_end(&d, &log);
}

/* A wait that ends after all time is no short one. */
T_CASE(backoff_of_centuries)
{
    const unsigned char ways[1] = { FAIL };
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_create(T_OPTIONS(.setup_data = ways, .setup_size = 1, .backoff = GPUD_NEVER / 2));
    t_collect_kind(d, &log, GPUD_EVENT_SETUP_FAILURE, 1);
    t_pass(T_MS(50)); /* in which it would start again */
    (void)t_poll(d, &log, 0);
    T_EQ(t_slot(d, 0).state, GPUD_SLOT_BACKOFF);
    T_EQ(atomic_load(&t_page->numbers[STARTS]), 1);
    t_end(&d, &log);
}

/* A setup that succeeds in the end: the task waits for it, the slot is not given up. */
T_CASE(third_attempt_succeeds)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = create("cpu:1", FAIL_TWICE, FINE);
    (void)t_submit(d, T_TASK(.tag = 0));
    t_collect(d, &log, 1);
    T_EQ(T_OUTCOME(&log, 0, SUCCESS)->incarnation, 3);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 2);
    T_EQ(t_stats(d).slots_failed, 0);
    t_end(&d, &log);
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
    t_init(setup, process, NULL);
    for (int direct = 0; direct < 2; direct++) {
        struct heard h = { 0 };
        gpud_dispatcher *d = create("cpu:1", FAIL, FINE);

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

    t_init(setup, process, cleanup);
    t_word_set(CLEANUP_WAY, 3);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .cleanup_limit = T_S(20)));
    t_wait_ready(d, 1);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, T_MS(150)));
    t_collect_rest(d, &log);
    e = t_log_at(&log, GPUD_EVENT_CLEANUP_FAILURE, 0);
    T_CHECK(e);
    T_TEXT(e->text, "cleanup was killed at the close limit of 0.150 s (gpud_dispatcher_close)");
    t_end(&d, &log);
}

/* In a thread of the worker, once setup has been over for a moment. By SIGKILL: _exit takes 1 s
 * with ThreadSanitizer when there are two threads, and a worker that lives for 1 s was well. */
static void *die_soon(void *unused)
{
    t_pass(T_MS(2));
    (void)kill(getpid(), SIGKILL);
    return unused;
}

static int short_life(gpud_worker *w, void **ret_state)
{
    pthread_t thread;

    (void)w, (void)ret_state;
    return pthread_create(&thread, NULL, die_soon, NULL);
}

/* A backoff_cap of no time does not make each life one that was long: the slot is given up. */
T_CASE(given_up_without_backoff)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(short_life, process, NULL);
    d = t_create(
        T_OPTIONS(.devices = "cpu:1", .backoff = GPUD_AT_ONCE, .backoff_cap = GPUD_AT_ONCE));
    t_wait_slot(d, 0, GPUD_SLOT_FAILED);
    T_EQ(t_slot(d, 0).incarnation, 3);
    t_end(&d, &log);
}

/* C12: a cleanup that dies or hangs is an event, told before END; each worker's own. [G12] */
T_CASE(cleanup_failures)
{
    t_init(setup, process, cleanup);
    for (uint32_t way = 0; way < 4; way++) {
        struct t_log log = { 0 };
        gpud_dispatcher *d;

        t_word_set(CLEANUPS, 0);
        t_word_set(CLEANUP_WAY, way);
        d = t_create(T_OPTIONS(.devices = "cpu:2", .cleanup_limit = T_MS(way == 3 ? 50 : 20000)));
        t_wait_ready(d, 2);
        for (uint64_t tag = 0; tag < 4; tag++)
            (void)t_submit(d, T_TASK(.tag = tag));
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
