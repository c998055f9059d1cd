/* SPDX-License-Identifier: MIT */
/* concurrency.c - option setup_concurrency: how many setups run at the same time. */
#include "fixture.h"

#include <stdatomic.h>

enum { ENTERED, GATE }; /* words */
/* numbers: setups inside; the most of them; slots as they came */
enum { NOW = 0, MOST = 1, ORDER = 16 };

static int setup(gpud_worker *w, void **ret_state)
{
    uint64_t now = atomic_fetch_add(&t_page->numbers[NOW], 1) + 1,
             most = atomic_load(&t_page->numbers[MOST]);
    uint32_t n = t_word_add(ENTERED);

    (void)ret_state;
    while (most < now && !atomic_compare_exchange_weak(&t_page->numbers[MOST], &most, now))
        ;
    atomic_store(&t_page->numbers[ORDER + n], gpud_worker_slot(w));
    t_word_wait(GATE, n);
    (void)atomic_fetch_sub(&t_page->numbers[NOW], 1);
    return 0;
}

static int process(gpud_task *t, void *state)
{
    (void)t, (void)state;
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
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:6", .setup_concurrency = 2);

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
    t_init(setup, process, NULL);
    for (uint32_t k = 0; k < 10; k += 9) {
        gpud_dispatcher *d;
        t_word_set(GATE, 0);
        t_word_set(ENTERED, 0);
        d = T_CREATE(.devices = "cpu:4", .setup_concurrency = k);
        t_word_wait(ENTERED, 4);
        t_word_set(GATE, 4);
        t_wait_ready(d, 4);
        t_destroy(&d, NULL);
    }
    T_OK(gpud_fini());
}
