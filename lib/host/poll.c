/* SPDX-License-Identifier: MIT */
/* poll.c - gpud_dispatcher_poll: drives until there is an event to return. */
#include "base/clock.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"

#define TURN_AGE_NS (100 * GPI_US)

/* Enough events wait to fill the caller's array, and the last turn was just now: driving first
 * would only make turns, and the batches that workers get, smaller. */
static bool enough_waits(const gpud_dispatcher *d, size_t n)
{
    uint32_t waiting = gpi_events_waiting(d);

    return (waiting >= n || waiting >= GPI_EVENTS_MAX) && gpi_now() - d->now < TURN_AGE_NS;
}

static bool something_to_tell(const gpud_dispatcher *d, const void *unused)
{
    (void)unused;
    return gpi_events_waiting(d) || gpi_drive_all_told(d);
}

static void drive_for_events(gpud_dispatcher *d, size_t n, uint64_t wait, bool released)
{
    if (wait == 0 && d->pollable.outer >= 0 && !d->pollable.calls_out) {
        if (released && gpi_sched_queued(d->core))
            gpi_drive_wake(d); /* the library thread drives: a polling loop must not stop it */
    } else if (enough_waits(d, n)) {
        gpi_drive_go_in(d);
        gpi_drive_go_out(d);
        if (d->pollable.calls_out)
            gpi_drive_wake(d); /* no thread drives: the fd requests one */
    } else {
        (void)gpi_drive_for_events(d, something_to_tell, NULL, gpi_wait_until(wait));
    }
}

int gpi_poll(gpud_dispatcher *d, struct gpud_event *events, size_t stride, size_t n, uint64_t wait)
{
    int r;

    pthread_mutex_lock(&d->lock);
    r = gpi_drive_enter(d);
    if (r) {
        pthread_mutex_unlock(&d->lock);
        return r;
    }
    drive_for_events(d, n, wait, gpi_lent_release(d));
    r = gpi_events_take(d, events, stride, n);
    if (r == 0 && gpi_drive_all_told(d))
        r = GPUD_EEND;
    gpi_drive_leave(d);
    pthread_mutex_unlock(&d->lock);
    return r;
}
