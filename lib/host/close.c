/* SPDX-License-Identifier: MIT */
/* close.c - stop and close: intake ends, and then tasks and workers end, within a limit. */

#include "base/clock.h"
#include "host/act.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/external.h"
#include "host/slot.h"
#include "host/task.h"

uint32_t gpi_finish_asked(gpud_dispatcher *d)
{
    uint32_t asked = atomic_load_explicit(&d->close.stop_asked, memory_order_relaxed);

    if (!d->close.closing && !asked)
        return GPUD_FINISH_NOW;
    return d->close.closing && d->close.how + 1 > asked ? d->close.how : asked - 1;
}

/* Ends intake.  A request that is no more urgent than an earlier one has no effect. */
static void finish(gpud_dispatcher *d, uint32_t how, const char *by)
{
    if (d->close.closing && how <= d->close.how)
        return;
    if (!d->close.closing)
        d->close.by = by;
    d->close.closing = true;
    d->close.how = how;
    gpi_room_made(d); /* submits that wait for room are refused now; inside run they need none */
    gpi_drive_tell(d);
    gpi_ready_changed(d);
}

static void hear_close(gpud_dispatcher *d, uint32_t how, uint64_t at)
{
    gpi_hear(d, (struct gpi_sched_event){ .kind = GPI_EV_CLOSE, .how = how, .at = at });
    gpi_result_hurry(d); /* after the cancels: so a cancelled task ends as CANCELLED */
}

/* Checks once how far the end has got. */
void gpi_finish_step(gpud_dispatcher *d)
{
    const uint32_t asked = atomic_load(&d->close.stop_asked);

    if (asked && (!d->close.closing || asked - 1 > d->close.how)) {
        finish(d, asked - 1, "gpud_dispatcher_stop");
        hear_close(d, d->close.how, GPI_NEVER);
    }
    if (d->close.finished || !gpi_sched_finished(d->core))
        return;
    d->close.finished = true;
    gpi_drive_tell(d);
}

/* `name` is the call or option that sets the limit, `by` the call that ends intake. */
void gpi_close_by(gpud_dispatcher *d, uint32_t how, uint64_t limit, const char *name,
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
    hear_close(d, d->close.how, d->close.at);
    gpi_drive_wake(d);
}

void gpi_close_leave(gpud_dispatcher *d, const char *by)
{
    d->now = gpi_now();
    finish(d, GPUD_FINISH_RUNNING, by);
    hear_close(d, GPI_CLOSE_LEAVE, GPI_NEVER);
    gpi_external_leave(d);
}

void gpi_close(gpud_dispatcher *d, uint32_t how, uint64_t limit)
{
    static const char by[] = "gpud_dispatcher_close";
    const bool leaves = how == GPUD_FINISH_LEAVE;

    if (leaves)
        how = GPUD_FINISH_RUNNING;
    if (leaves && d->outside.of)
        gpi_close_leave(d, by);
    if (limit)
        gpi_close_by(d, how, limit, by, by);
    else if (how == GPUD_FINISH_NOW)
        gpi_close_by(d, how, d->set.close_limit, "close_limit", by);
    else
        gpi_close_by(d, how, GPI_NEVER, "", by);
}

void gpi_close_in_run(gpud_dispatcher *d)
{
    gpi_close_by(d, GPUD_FINISH_RUNNING, GPI_NEVER, "",
                 "a callback of gpud_dispatcher_run returned a value other than 0");
}

static void warn_of_kill(gpud_dispatcher *d)
{
    unsigned running = 0;
    char limit[96];

    for (uint32_t i = 0; i < d->n_slots; i++)
        for (uint64_t left = gpi_slot_running(d, &d->slot[i]); left; left &= left - 1)
            running++;
    for (uint32_t i = 0; i < d->outside.n; i++)
        running += gpi_sched_is_started(d->core, d->outside.task[i]);
    gpi_close_words(d, limit, sizeof limit);
    gpi_log(d, GPUD_LEVEL_WARNING, GPUD_NO_SLOT,
            "the %s has expired; tasks to be killed: %u, cancelled before their start: %u", limit,
            running, gpi_sched_unended(d->core) - running);
}

/* The limit has expired: the core kills the processes that are left. */
void gpi_close_limit_passed(gpud_dispatcher *d)
{
    d->close.passed = true;
    if (gpi_sched_unended(d->core))
        warn_of_kill(d);
    finish(d, GPUD_FINISH_NOW, d->close.name);
}
