/* SPDX-License-Identifier: MIT */
/*
 * stops.c - workers and keepers that a SIGSTOP has stopped.
 *
 * A stopped worker gets no task, and its unclaimed tasks return to the queue.  Its keeper sends
 * STOPPED, and CONTINUED when the worker continues.  In between, only a cancel is timed: the time
 * of the running tasks stands still, and CONTINUED makes the host judge their limits anew.  The
 * keeper counts how long the worker is stopped.  At stop_limit it sends OVERDUE and kills the
 * worker.
 *
 * A stopped keeper sends nothing.  The host checks for one when a message is due: after an order to
 * start a worker, after the end of its worker, and at the end of the dispatcher.  The spawner then
 * kills the keeper, and the processes that the keeper had started die with it.           [C8] [C10]
 */
#include <sys/ioctl.h>

#include <linux/sockios.h>

#include "base/clock.h"
#include "host/act.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/slot.h"
#include "os/message.h"
#include "os/process.h"
#include "wire/control.h"

#define LOOK_NS GPI_S /* between checks of the keeper of a worker that has ended */

/* ---- workers ---- */

void gpi_slot_stopped(gpud_dispatcher *d, struct gpi_slot *s)
{
    gpi_hear_slot(d, s, GPI_EV_STILL, true);
    (void)gpi_channel_tell(s, GPI_CTL_AWAIT, false);
}

void gpi_slot_continued(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (!s->ended)
        gpi_hear_slot(d, s, GPI_EV_STILL, false);
}

/* The tasks that run there were stopped with the worker, each member of a batch: all have exceeded
 * the limit, except those whose cancel came first. */
void gpi_slot_overdue(gpud_dispatcher *d, struct gpi_slot *s)
{
    const bool idle = gpi_slot_life(d, s) == GPI_LIFE_UP && !s->sent;
    char how[96];

    s->killed = true;
    gpi_hear_slot(d, s, GPI_EV_OVERDUE, 0);
    gpi_words_stopped(d, s, how, sizeof how);
    if (idle)
        gpi_log(d, GPUD_LEVEL_WARNING, s->index,
                "worker %d of slot %u was %s between tasks; its keeper kills it, the slot starts "
                "another",
                s->pid, s->index, how);
}

/* ---- keepers ---- */

/* A hint only: when the host reads GONE, another process may have this pid.  The spawner, which
 * kills the keeper, is its parent and knows whether it is stopped. */
static bool is_stopped(const struct gpi_slot *s)
{
    return s->keeper_pid && gpi_process_state(s->keeper_pid) == 'T';
}

/* If the keeper has not read the order to kill, that order did not end the worker: it exited on its
 * own. */
static bool order_unread(const struct gpi_slot *s)
{
    int unread = 0;

    return s->ended && s->ch.keeper >= 0 && ioctl(s->ch.keeper, SIOCOUTQ, &unread) == 0 &&
           unread > 0;
}

/* From now on the slot's keeper gets no request; GONE frees the slot. */
static void drop(gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_control c = { .kind = GPI_CTL_DROP, .slot = s->index, .pid = s->keeper_pid };
    const bool unread = order_unread(s);

    s->keeper_dropped = true;
    s->killed &= !unread;
    if (d->spawner.fd >= 0)
        (void)gpi_message_send(d->spawner.fd, &c, sizeof c, NULL, 0);
    gpi_hear_slot(d, s, GPI_EV_KEEPER_LOST, unread ? GPI_LOST_UNREAD : GPI_LOST_PLAIN);
}

static void drop_with_word(gpud_dispatcher *d, struct gpi_slot *s, const char *why)
{
    gpi_log(d, GPUD_LEVEL_WARNING, s->index,
            "keeper %d of slot %u is stopped, and %s; the spawner kills the keeper, the slot gets "
            "another",
            s->keeper_pid, s->index, why);
    drop(d, s);
}

void gpi_keeper_watch_worker(gpud_dispatcher *d, struct gpi_slot *s)
{
    /* Another process can have this pid only after the keeper has reaped the worker.  Then the
     * keeper has also sent EXITED, which closes this fd. */
    s->ch.worker = gpi_process_pidfd(s->pid);
    if (s->ch.worker >= 0 && gpi_drive_watch(d, s->ch.worker, GPI_FD_WORKER, s->index))
        gpi_drive_close(d, &s->ch.worker);
}

void gpi_keeper_expect(gpud_dispatcher *d, struct gpi_slot *s, uint64_t wait)
{
    s->keeper_at = gpi_time_add(d->now, wait);
    gpi_slot_timer(d, s);
}

/* Returns the overdue act of the keeper as a text, or NULL. */
static const char *due(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    if (gpi_slot_life(d, s) == GPI_LIFE_STUCK)
        return NULL;
    if (s->ended)
        return "its worker has ended";
    if (s->keeper_pid && !gpi_sched_has_keeper(d->core, s->index))
        return "does not end";
    return gpi_slot_has_worker(d, s) && !s->pid ? "has not started a worker" : NULL;
}

void gpi_keeper_look(gpud_dispatcher *d, struct gpi_slot *s)
{
    const char *why = due(d, s);

    s->keeper_at = GPI_NEVER;
    if (!why || s->keeper_dropped)
        return;
    if (is_stopped(s))
        drop_with_word(d, s, why);
    else
        gpi_keeper_expect(d, s, gpi_time_min(LOOK_NS, gpi_kill_limit(d, s) / 2));
}

/* The time for the requested kill or start has expired. */
bool gpi_keeper_hangs(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (s->keeper_dropped || (s->pid && !s->ended) || !is_stopped(s))
        return false;
    drop_with_word(d, s, s->pid ? "its worker has ended" : "has not started a worker");
    return true;
}

void gpi_keepers_drop(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (!s->keeper_dropped && is_stopped(s))
            drop(d, s);
    }
}
