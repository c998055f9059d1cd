/* SPDX-License-Identifier: MIT */
/*
 * sleep.c - the host about to sleep: it asks every worker that has tasks for a bell, and looks once
 * more at all that may have ended meanwhile.
 *
 * A real dispatcher that nobody drives but the case, so each step is taken where it matters.
 */
#include "fixture.h"

#include <poll.h>
#include <stdatomic.h>
#include <string.h>

#include "host/act.h"
#include "host/dispatcher.h"
#include "host/event.h"
#include "host/slot.h"

enum { GATE, STARTED };
enum { PLAIN, WAITS };

static int process(gpud_task *t, void *state)
{
    (void)state;
    if (gpud_task_tag(t) >= WAITS) {
        (void)t_word_add(STARTED);
        t_word_wait(GATE, 1);
    }
    return 0;
}

static gpud_dispatcher *create(const char *devices, unsigned slots)
{
    gpud_dispatcher *d;
    struct t_log none = { 0 };

    t_init(NULL, process, NULL);
    d = T_CREATE(.devices = devices, .drive = GPUD_DRIVE_CALLER);
    while (t_stats(d).slots_ready < slots)
        T_EQ(t_poll(d, &none, T_MS(2)), 0);
    return d;
}

static void dispatch(gpud_dispatcher *d)
{
    d->now = gpi_now();
    gpi_decide(d);
}

struct ending {
    gpud_dispatcher *d;
    unsigned slot;
};

static int has_ended(void *user)
{
    const struct ending *e = user;
    const struct gpi_slot *s = &e->d->slot[e->slot];
    uint32_t cell = gpi_lowest_bit(s->inflight);

    return atomic_load(&s->ch.page->cell[cell].end) >> 8 == s->cell_number[cell];
}

static uint32_t asks_for_a_bell(const gpud_dispatcher *d, unsigned slot)
{
    return atomic_load(&d->slot[slot].ch.page->host_sleeps);
}

/* A task that ended after the host had looked is not slept over: the worker has looked at the
 * host's word before, and will not ring. */
T_CASE(looks_again)
{
    gpud_dispatcher *d = create("cpu:2", 2);
    struct t_log log = { 0 };

    for (uint64_t n = 0; n < 200; n++) {
        struct ending e = { d, 0 };

        T_SUBMIT(d, .tag = PLAIN);
        (void)pthread_mutex_lock(&d->lock);
        dispatch(d);
        e.slot = d->slot[0].inflight ? 0 : 1;
        t_wait_until("the task has ended", has_ended, &e);
        T_EQ(gpi_events_waiting(d), 0);
        T_CHECK(!gpi_go_to_sleep(d));
        T_EQ(gpi_events_waiting(d), 1);
        gpi_wake_up(d);
        (void)pthread_mutex_unlock(&d->lock);
        t_collect(d, &log, n + 1);
    }
    t_end(&d, &log);
}

/* With something running it may sleep, has asked for a bell, and takes that back when awake. */
T_CASE(asks_and_takes_back)
{
    gpud_dispatcher *d = create("cpu:2", 2);
    struct t_log log = { 0 };
    unsigned busy;

    T_SUBMIT(d, .tag = WAITS);
    (void)pthread_mutex_lock(&d->lock);
    dispatch(d);
    busy = d->slot[0].inflight ? 0 : 1;
    t_word_wait(STARTED, 1);
    T_EQ(asks_for_a_bell(d, busy), 0);
    T_CHECK(gpi_go_to_sleep(d));
    T_EQ(asks_for_a_bell(d, busy), 1);
    gpi_wake_up(d);
    T_EQ(asks_for_a_bell(d, busy), 0);
    (void)pthread_mutex_unlock(&d->lock);
    t_word_set(GATE, 1);
    t_collect(d, &log, 1);
    t_end(&d, &log);
}
