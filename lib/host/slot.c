/* SPDX-License-Identifier: MIT */
/* slot.c - starts, ends and kills a slot's worker when the core orders it. */
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "host/act.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/slot.h"
#include "os/fds.h"
#include "wire/control.h"
#include "wire/frame.h"

/* ---- start ---- */

/* Writes the page for a new worker. */
static void prepare_page(struct gpi_slot *s)
{
    struct gpi_page *p = s->ch.page;

    atomic_store(&p->incarnation, s->incarnation);
    p->first_number = s->number + 1;
    atomic_store(&p->sent_number, s->number);
    atomic_store(&p->host_cpu, (uint32_t)sched_getcpu());
    atomic_store(&p->worker_sleeps, 0);
    atomic_store(&p->worker_wants_room, 0);
    atomic_store(&p->cancel, 0);
    atomic_store(&p->setup_done, 0);
    atomic_store(&p->cleanup_done, 0);
    atomic_store(&p->progress_pending, 0);
    atomic_store(&p->log_read, atomic_load(&p->log_written));
    for (uint32_t i = 0; i < GPI_CELLS; i++) /* the last worker may have ended unsent tasks */
        atomic_store_explicit(&p->cell[i].end, 0, memory_order_relaxed);
    atomic_store(&p->canary_done, 0);
    atomic_store(&p->miscounted, 0);
    atomic_store(&p->fault, 0);
    p->canary_text[0] = p->fault_text[0] = '\0';
    p->setup_code = 0;
    memset(p->setup_text, 0, sizeof p->setup_text);
    memset(p->leave_text, 0, sizeof p->leave_text);
}

static void forget_last(gpud_dispatcher *d, struct gpi_slot *s)
{
    s->claimed = s->ended = s->killed = s->passed = false;
    s->told = s->cancelled = 0;
    s->denied = 0;
    s->setup_time = 0;
    s->initialised = !gpi_slot_class(d, s)->launch.executed;
    s->last = (struct gpi_obituary){ .kind = GPUD_EXIT_NONE };
    gpi_output_begin(d, s);
}

void gpi_slot_start(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_start_kind how)
{
    gpi_channel_header(d, s);
    s->canary = how == GPI_START_ONLY    ? GPI_CANARY_ONLY
                : how == GPI_START_FIRST ? GPI_CANARY_FIRST
                                         : GPI_CANARY_NO;
    gpi_numbers_order(d, s);
    s->incarnation = gpi_sched_incarnation(d->core, s->index);
    prepare_page(s);
    gpi_canary_order(d, s);
    s->started_at = gpi_now(); /* the setup cannot begin before */
    if (gpi_channel_start(d, s)) {
        gpi_hear_slot(d, s, GPI_EV_UNSENT, 0);
        s->incarnation = gpi_sched_incarnation(d->core, s->index);
        gpi_keeper_look(d, s);
        return;
    }
    gpi_vacancy_note(d, s);
    forget_last(d, s);
    s->restarts += s->incarnation > 1;
    d->stats.count.restarts += s->incarnation > 1;
    gpi_hear_begun(d, s);
    gpi_keeper_expect(d, s, gpi_kill_limit(d, s)); /* it replies at once, unless it is stopped */
}

/* A worker may end setup before STARTED arrives.  It gets no task until then: if its keeper were
 * stopped in between, the host would not learn of the worker's end.  The kill_limit of STARTED
 * finds such a keeper. */
void gpi_slot_check_ready(gpud_dispatcher *d, struct gpi_slot *s)
{
    const bool passed = atomic_load(&s->ch.page->canary_done) == GPI_CANARY_PASSED;

    if (s->passed || !s->pid || !gpi_slot_has_worker(d, s) ||
        atomic_load(&s->ch.page->setup_done) != 1)
        return;
    s->passed = true;
    /* Setup may have begun and ended within this turn. */
    s->setup_time = d->now > s->started_at ? d->now - s->started_at : 1;
    gpi_slot_class(d, s)->last_boot = s->setup_time;
    s->last_heard = d->now;
    if (s->out.prints)
        gpi_output_look(d, s); /* before a task starts, which would own these bytes */
    gpi_hear_slot(d, s, GPI_EV_SETUP_OK, passed ? GPI_EXITED_PASSED : 0);
}

void gpi_slot_started(gpud_dispatcher *d, struct gpi_slot *s, int32_t pid)
{
    s->pid = pid;
    s->keeper_at = GPI_NEVER;
    gpi_keeper_watch_worker(d, s);
    gpi_slot_check_ready(d, s);
}

/* ---- end ---- */

static void order_sent(gpud_dispatcher *d, struct gpi_slot *s, int refused)
{
    s->killed = true;
    if (refused)
        gpi_hear_slot(d, s, GPI_EV_KEEPER_LOST, GPI_LOST_PLAIN);
    else
        gpi_hear_begun(d, s);
}

void gpi_slot_kill(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (gpi_slot_life(d, s) == GPI_LIFE_STUCK)
        return; /* enter_stuck has sent KILL to its keeper */
    order_sent(d, s, gpi_channel_tell(s, GPI_CTL_KILL, true));
    if (!s->pid)
        (void)gpi_keeper_hangs(d, s); /* then no reply can follow */
}

/* The keeper keeps the time: it gets a CPU sooner than the host, and the host then needs none. */
void gpi_slot_kill_at(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, uint64_t at)
{
    order_sent(d, s, gpi_channel_tell_when(s, cell, at));
}

void gpi_slot_end(gpud_dispatcher *d, struct gpi_slot *s)
{
    const struct gpi_frame end = {
        .magic = GPI_ORDER_MAGIC,
        .incarnation = s->incarnation,
        .what = GPI_ORDER_END,
    };

    if (gpi_fd_write(s->ch.orders, &end, sizeof end))
        gpi_hear_slot(d, s, GPI_EV_UNSENT, 0); /* the worker reads no more */
    else
        gpi_hear_begun(d, s);
}

/* Also while the host kills the worker: the keeper may spare it, and the task must not be
 * retried. */
void gpi_slot_cancel(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, uint32_t how)
{
    const uint64_t bit = 1ull << cell;

    s->told |= bit;
    if (how == GPUD_CANCEL_HARD) {
        s->cancelled |= bit;
        s->cell_cancel_at[cell] = gpi_now(); /* before the worker can see it, and end */
    }
    atomic_store(&s->ch.page->cancel, s->told);
    if (gpi_slot_running(d, s) & bit) /* else the signal would hit the next task */
        (void)gpi_channel_tell(s, GPI_CTL_ALARM, false);
    gpi_result_room(d, s);
}
