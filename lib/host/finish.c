/* SPDX-License-Identifier: MIT */
/* finish.c - stop, close, destroy: intake ends, tasks end, workers end, everything is freed. */
#include <stdio.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/duration.h"
#include "host/act.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"
#include "os/fds.h"
#include "os/message.h"
#include "wire/control.h"

#define LOOK_NS GPI_S          /* between looks whether a keeper is stopped */
#define LEAVE_NS (50 * GPI_MS) /* past the close limit: for the last kills, and for the keepers to go */

uint32_t gpi_finish_asked(gpud_dispatcher *d)
{
    uint32_t asked = atomic_load_explicit(&d->close.stop_asked, memory_order_relaxed);

    if (!d->close.closing && !asked)
        return GPUD_FINISH_NOW;
    return d->close.closing && d->close.how + 1 > asked ? d->close.how : asked - 1;
}

/* Ends intake; asks for more haste than before or does nothing. */
static void finish(gpud_dispatcher *d, uint32_t how, const char *by)
{
    if (d->close.closing && how <= d->close.how)
        return;
    if (!d->close.closing)
        d->close.by = by;
    d->close.closing = true;
    d->close.how = how;
    gpi_room_made(d); /* who waits for it is refused now, or, inside run, needs none any more */
    gpi_drive_tell(d);
    gpi_ready_changed(d);
}

static void hear_close(gpud_dispatcher *d, uint64_t at)
{
    gpi_hear(d, (struct gpi_sched_event){ .kind = GPI_EV_CLOSE, .how = d->close.how, .at = at });
    gpi_result_hurry(d); /* behind the cancels: what is cancelled ends as such */
}

/* One look at how far the end is. */
void gpi_finish_step(gpud_dispatcher *d)
{
    const uint32_t asked = atomic_load(&d->close.stop_asked);

    if (asked && (!d->close.closing || asked - 1 > d->close.how)) {
        finish(d, asked - 1, "gpud_dispatcher_stop");
        hear_close(d, GPI_NEVER);
    }
    if (d->close.finished || !gpi_sched_finished(d->core))
        return;
    d->close.finished = true;
    gpi_drive_tell(d);
}

/* `name` is that of the call or option that gives the limit, `by` says who ends intake. */
static void close_by(gpud_dispatcher *d, uint32_t how, uint64_t limit, const char *name,
                     const char *by)
{
    uint64_t at;

    d->now = gpi_now();
    at = gpi_time_add(d->now, limit);
    finish(d, how, by);
    if (at < d->close.at) {
        d->close.at = at;
        d->close.limit = limit;
        d->close.name = name;
    }
    hear_close(d, d->close.at);
    gpi_drive_wake(d);
}

void gpi_close(gpud_dispatcher *d, uint32_t how, uint64_t limit)
{
    static const char by[] = "gpud_dispatcher_close";

    if (limit)
        close_by(d, how, limit, by, by);
    else if (how == GPUD_FINISH_NOW)
        close_by(d, how, d->set.close_limit, "close_limit", by);
    else
        close_by(d, how, GPI_NEVER, "", by);
}

void gpi_close_in_run(gpud_dispatcher *d)
{
    close_by(d, GPUD_FINISH_RUNNING, GPI_NEVER, "",
             "a callback of gpud_dispatcher_run returned a value other than 0");
}

void gpi_close_words(const gpud_dispatcher *d, char *to, size_t size)
{
    char limit[GPI_DURATION_SIZE];

    (void)snprintf(to, size, "close limit of %s (%s)", gpi_duration_text(limit, d->close.limit),
                   d->close.name ? d->close.name : "");
}

static void warn_of_kill(gpud_dispatcher *d)
{
    unsigned running = 0;
    char limit[96];

    for (uint32_t i = 0; i < d->n_slots; i++)
        for (uint64_t left = gpi_slot_running(d, &d->slot[i]); left; left &= left - 1)
            running++;
    gpi_close_words(d, limit, sizeof limit);
    gpi_log(d, GPUD_LEVEL_WARNING, GPUD_NO_SLOT,
            "the %s has expired; tasks killed: %u, cancelled before their start: %u", limit,
            running, gpi_sched_unended(d->core) - running);
}

/* Patience is over: what still lives is killed. */
void gpi_close_limit_passed(gpud_dispatcher *d)
{
    if (gpi_sched_unended(d->core))
        warn_of_kill(d);
    finish(d, GPUD_FINISH_NOW, d->close.name);
}

/* ---- destroy ---- */

static void join_library_thread(gpud_dispatcher *d)
{
    if (d->drive.lib == GPI_LIB_NONE)
        return;
    d->drive.lib_quit = true;
    gpi_drive_wake(d);
    (void)gpi_bell_ring(d->drive.lib_fd);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->drive.lib_thread, NULL);
    pthread_mutex_lock(&d->lock);
}

static bool workers_gone(const gpud_dispatcher *d, const void *unused)
{
    (void)unused;
    return d->close.finished;
}

static bool keepers_gone(const gpud_dispatcher *d, const void *unused)
{
    (void)unused;
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slot[i].keeper_pid && gpi_slot_life(d, &d->slot[i]) != GPI_LIFE_STUCK)
            return false;
    return d->spawner.makes == 0;
}

/* Keepers end when told to or when their socket ends; GONE says that they have. */
static void dismiss_keepers(gpud_dispatcher *d)
{
    uint64_t now = gpi_now(), until = gpi_time_add(d->close.at > now ? d->close.at : now, LEAVE_NS);

    for (uint32_t i = 0; i < d->n_slots; i++)
        (void)gpi_channel_tell(&d->slot[i], GPI_CTL_END, true);
    do /* one that is stopped does not read that */
        gpi_keepers_drop(d);
    while (!gpi_drive_until(d, keepers_gone, NULL, gpi_time_min(until, gpi_now() + LOOK_NS)) && gpi_now() < until);
}

/* Nobody will look at them any more, and while they are held their workers get no tasks. */
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

/* Submits are refused now, but one may have a large payload to copy first, or be about to leave. */
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
    int r;

    if (!*d->alive) { /* a forked child: not ours to end */
        gpi_free(d);
        return 0;
    }
    pthread_mutex_lock(&d->lock);
    r = d->drive.waiters ? GPUD_EBUSY : 0;
    if (r == 0 || gpi_drive_reenters(d))
        r = gpi_drive_enter(d);
    if (r) {
        pthread_mutex_unlock(&d->lock);
        return r;
    }
    gpi_drive_go_in(d);
    d->drive.driven = d->close.ending = true;
    join_library_thread(d);
    forgo_results(d);
    close_by(d, gpi_finish_asked(d), d->set.close_limit, "close_limit", "gpud_dispatcher_destroy");
    (void)gpi_drive_until(d, workers_gone, NULL, gpi_time_add(d->close.at, LEAVE_NS));
    dismiss_keepers(d);
    say_goodbye(d);
    await_submits(d);
    if (ret_uncollected)
        *ret_uncollected = d->stats.count.accepted - d->stats.count.delivered;
    atomic_fetch_sub(d->places, d->n_slots - d->n_gone);
    pthread_mutex_unlock(&d->lock);
    gpi_free(d);
    return 0;
}
