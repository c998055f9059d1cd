/* SPDX-License-Identifier: MIT */
/* destroy.c - the end of a dispatcher: ends tasks, workers and keepers, and frees everything. */
#include "base/clock.h"
#include "host/act.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/external.h"
#include "host/slot.h"
#include "host/task.h"
#include "os/fds.h"
#include "os/message.h"
#include "wire/control.h"

#define LOOK_NS GPI_S /* between checks whether a keeper is stopped */
/* After the close limit: time for the last kills, and for the keepers to exit. */
#define LEAVE_NS (50 * GPI_MS)

static bool workers_gone(const gpud_dispatcher *d, const void *unused)
{
    (void)unused;
    return d->close.finished;
}

static uint32_t started_outside(const gpud_dispatcher *d)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->outside.n; i++)
        n += gpi_sched_is_started(d->core, d->outside.task[i]);
    return n;
}

static bool rest_is_outside(const gpud_dispatcher *d, const void *unused)
{
    (void)unused;
    return d->close.finished || gpi_sched_unended(d->core) == started_outside(d);
}

/* External tasks that have not started: the host could read no event GRANTED any more. */
static void cancel_outside(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->never_used && d->outside.of; i++) {
        struct gpi_task *t = &d->task[i];
        if (gpi_task_is_external(d, t) && t->state == GPI_TASK_QUEUED &&
            !gpi_sched_is_started(d->core, i))
            gpi_hear_task(d, t, GPI_EV_CANCEL, GPI_CANCEL_HARD);
    }
}

/* Waits for all work but the external one, whose end no call could report any more. */
static void end_work(gpud_dispatcher *d, const char *by)
{
    const uint64_t until = gpi_time_add(d->close.at, LEAVE_NS);

    cancel_outside(d);
    (void)gpi_drive_until(d, rest_is_outside, NULL, until);
    if (started_outside(d))
        gpi_close_leave(d, by);
    (void)gpi_drive_until(d, workers_gone, NULL, until);
}

static bool keepers_gone(const gpud_dispatcher *d, const void *unused)
{
    (void)unused;
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slot[i].keeper_pid && gpi_slot_life(d, &d->slot[i]) != GPI_LIFE_STUCK)
            return false;
    return d->spawner.makes == 0;
}

/* A keeper exits after END or when its socket ends; GONE reports its exit. */
static void dismiss_keepers(gpud_dispatcher *d)
{
    uint64_t now = gpi_now(), until = gpi_time_add(d->close.at > now ? d->close.at : now, LEAVE_NS);

    for (uint32_t i = 0; i < d->n_slots; i++)
        (void)gpi_channel_tell(&d->slot[i], GPI_CTL_END, true);
    do /* a stopped keeper does not read that */
        gpi_keepers_drop(d);
    while (!gpi_drive_until(d, keepers_gone, NULL, gpi_time_min(until, gpi_now() + LOOK_NS)) &&
           gpi_now() < until);
}

/* No thread reads these results any more, and while they are held their workers get no tasks. */
static void forgo_results(gpud_dispatcher *d)
{
    (void)gpi_lent_release(d);
    for (uint32_t i = 0; i < d->never_used; i++) {
        struct gpi_task *t = &d->task[i];
        if (t->state != GPI_TASK_ENDED || t->result_place != GPI_RESULT_ARENA)
            continue;
        gpi_result_release(d, t->slot, t->result_off, t->size);
        t->result_place = GPI_RESULT_NONE;
        t->size = 0;
    }
}

/* Submits now fail, but one may still copy a large payload, or be about to return. */
static void await_submits(gpud_dispatcher *d)
{
    while (d->intake.n_away || d->intake.waiting_for_room)
        pthread_cond_wait(&d->intake.room, &d->lock);
}

static void say_goodbye(gpud_dispatcher *d)
{
    const struct gpi_control bye = { .kind = GPI_CTL_BYE };

    if (d->spawner.fd >= 0)
        (void)gpi_message_send(d->spawner.fd, &bye, sizeof bye, NULL, 0);
}

int gpi_destroy(gpud_dispatcher *d, uint64_t *ret_uncollected)
{
    static const char by[] = "gpud_dispatcher_destroy";
    uint64_t left; /* by a close with LEAVE */
    int r;

    if (!*d->alive) { /* a forked child must not end the host's processes */
        gpi_free(d);
        return 0;
    }
    pthread_mutex_lock(&d->lock);
    r = d->waits.waiters ? GPUD_EBUSY : 0;
    if (r == 0 || gpi_drive_reenters(d))
        r = gpi_drive_enter(d);
    if (r) {
        pthread_mutex_unlock(&d->lock);
        return r;
    }
    d->close.ending = true;
    gpi_drive_alone(d);
    forgo_results(d);
    left = d->outside.left;
    gpi_close_by(d, gpi_finish_asked(d), d->set.close_limit, "close_limit", by);
    end_work(d, by);
    dismiss_keepers(d);
    say_goodbye(d);
    await_submits(d);
    if (ret_uncollected)
        *ret_uncollected =
            d->stats.count.accepted - d->stats.count.delivered - left;
    atomic_fetch_sub(d->places, d->n_slots - d->n_gone);
    pthread_mutex_unlock(&d->lock);
    gpi_free(d);
    return 0;
}
