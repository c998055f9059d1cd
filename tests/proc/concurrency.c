/* SPDX-License-Identifier: MIT */
/* concurrency.c - option setup_concurrency: how many setups run at the same time. */
#include "fixture.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum way { FINE, GATED, FAIL, ABORT, HANG };
enum { ENTERED, GATE, STARTED_TWICE };            /* words */
/* numbers: setups inside; the most of them; who is, if one may; slots as they came */
enum { NOW = 0, MOST = 1, ALONE = 2, ORDER = 16 };

static void come_in(uint32_t slot)
{
    uint64_t now = atomic_fetch_add(&t_page->numbers[NOW], 1) + 1,
             most = atomic_load(&t_page->numbers[MOST]);
    uint32_t n = t_word_add(ENTERED);

    while (most < now && !atomic_compare_exchange_weak(&t_page->numbers[MOST], &most, now))
        ;
    atomic_store(&t_page->numbers[ORDER + n], slot);
    t_word_wait(GATE, n);
    (void)atomic_fetch_sub(&t_page->numbers[NOW], 1);
}

/* Where only one may be inside: who was before is gone, or has left in order. */
static void come_alone(void)
{
    pid_t before = (pid_t)atomic_exchange(&t_page->numbers[ALONE], (uint64_t)getpid());

    if (before && kill(before, 0) == 0)
        (void)t_word_add(STARTED_TWICE);
}

/* The setup bytes: one way per slot. */
static int setup(gpud_worker *w, void **ret_state)
{
    size_t size = 0;
    const unsigned char *ways = gpud_worker_setup_data(w, &size);
    uint32_t slot = gpud_worker_slot(w);

    (void)ret_state;
    if (ways[slot] == GATED) {
        come_in(slot);
        return 0;
    }
    come_alone();
    switch ((enum way)ways[slot]) {
    case FAIL:
        return 5;
    case ABORT:
        abort();
    case HANG:
        t_rest();
    default:
        atomic_store(&t_page->numbers[ALONE], 0);
        return 0;
    }
}

static int process(gpud_task *t, void *state)
{
    (void)state;
    if (gpud_task_tag(t) >= 1000)
        abort();
    return 0;
}

static int kept_waiting(void *user)
{
    struct gpud_slot_stats rows[6] = { { .struct_size = sizeof(rows[0]) } };
    int starting = 0, workers = 0;

    T_EQ(gpud_dispatcher_slots(user, rows, 6), 6);
    for (int i = 0; i < 6; i++) {
        starting += rows[i].state == GPUD_SLOT_STARTING;
        workers += rows[i].pid != 0;
    }
    return starting == 6 && workers == 2;
}

/* Two at a time of six, in the order of the slots; the others wait in STARTING without a worker. */
T_CASE(two_at_a_time)
{
    static const unsigned char ways[6] = { GATED, GATED, GATED, GATED, GATED, GATED };
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_create(
        T_OPTIONS(.devices = "cpu:6", .setup_concurrency = 2, .setup_data = ways, .setup_size = 6));
    t_word_wait(ENTERED, 2);
    t_wait_until("two slots of six have a worker", kept_waiting, d);
    for (unsigned n = 1; n <= 6; n++) {
        T_EQ(t_word(ENTERED), n < 5 ? n + 1 : 6);
        t_word_set(GATE, n);
        if (n < 5)
            t_word_wait(ENTERED, n + 2);
    }
    t_wait_ready(d, 6);
    T_EQ(atomic_load(&t_page->numbers[MOST]), 2);
    for (unsigned n = 3; n <= 6; n++) /* the first two come together */
        T_EQ(atomic_load(&t_page->numbers[ORDER + n]), n - 1);
    t_end(&d, NULL);
}

/* Without the option, and with more than there are slots: all at once. */
T_CASE(all_at_once)
{
    static const unsigned char ways[4] = { GATED, GATED, GATED, GATED };

    t_init(setup, process, NULL);
    for (uint32_t k = 0; k < 10; k += 9) {
        gpud_dispatcher *d;
        t_word_set(GATE, 0);
        t_word_set(ENTERED, 0);
        d = t_create(T_OPTIONS(.devices = "cpu:4", .setup_concurrency = k, .setup_data = ways,
                               .setup_size = 4));
        t_word_wait(ENTERED, 4);
        t_word_set(GATE, 4);
        t_wait_ready(d, 4);
        t_destroy(&d, NULL);
    }
    T_OK(gpud_fini());
}

/* A setup that fails, dies or passes its limit gives its turn to the next, which no number of such
 * failures keeps waiting; backoff and attempts stay what they are. */
T_CASE(failures_free_the_turn)
{
    static const unsigned char ways[4] = { HANG, ABORT, FAIL, FINE };
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:4", .setup_concurrency = 1, .setup_data = ways,
                           .setup_size = 4, .backoff = T_MS(1),
                           .setup_limit = T_MS(T_SANITIZED ? 2000 : 300)));
    for (uint64_t tag = 0; tag < 20; tag++)
        (void)t_submit(d, T_TASK(.tag = tag));
    t_collect(d, &log, 20);
    for (uint64_t tag = 0; tag < 20; tag++)
        T_EQ(T_OUTCOME(&log, tag, SUCCESS)->slot, 3);
    t_collect_kind(d, &log, GPUD_EVENT_SETUP_FAILURE, 9);
    for (unsigned i = 0; i < 3; i++)
        t_wait_slot(d, i, GPUD_SLOT_FAILED);
    T_EQ(t_word(STARTED_TWICE), 0);
    t_end(&d, &log);
}

/* Replacements wait for their turn as well. */
T_CASE(restarts_count)
{
    static const unsigned char ways[4] = { FINE, FINE, FINE, FINE };
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_create(
        T_OPTIONS(.devices = "cpu:4", .setup_concurrency = 1, .setup_data = ways, .setup_size = 4));
    t_wait_ready(d, 4);
    for (uint64_t tag = 0; tag < 40; tag++)
        (void)t_submit(d, T_TASK(.tag = tag % 2 ? tag : 1000 + tag));
    t_collect(d, &log, 40);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_CRASHED), 20);
    t_wait_ready(d, 4);
    T_EQ(t_stats(d).restarts, 20);
    T_EQ(t_word(STARTED_TWICE), 0);
    t_end(&d, &log);
}

/* Ending while one is in setup and the others wait for it. */
T_CASE(destroyed_while_waiting)
{
    static const unsigned char ways[4] = { GATED, GATED, GATED, GATED };
    gpud_dispatcher *d;
    uint64_t before;

    t_init(setup, process, NULL);
    d = t_create(
        T_OPTIONS(.devices = "cpu:4", .setup_concurrency = 1, .setup_data = ways, .setup_size = 4));
    t_word_wait(ENTERED, 1);
    before = t_now();
    t_end(&d, NULL);
    T_CMP(t_now() - before, <, T_S(10));
    T_EQ(t_word(ENTERED), 1);
}
