/* SPDX-License-Identifier: MIT */
/* act.c - performs the actions of the core: one switch over all of them. */
#include "host/act.h"

#include "host/core.h"
#include "host/device.h"
#include "host/event.h"
#include "host/external.h"
#include "host/slot.h"
#include "host/task.h"

/* ---- actions ---- */

static struct gpi_task *task_of(gpud_dispatcher *d, const struct gpi_sched_action *a)
{
    return &d->task[a->task];
}

/* The task may have ended since the core ordered the action. */
static bool is_at(const struct gpi_slot *s, const struct gpi_task *t)
{
    return t->state == GPI_TASK_SENT && t->slot == s->index;
}

static void recall(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_task *t,
                   enum gpi_recall how)
{
    if (!is_at(s, t))
        return;
    if (gpi_cell_recall(d, s, t->cell))
        d->stats.count.recalled += how == GPI_RECALL_BACK;
    else
        gpi_hear_task(d, t, GPI_EV_CLAIMED, 0);
}

static void alarm_task(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_task *t,
                       uint32_t how)
{
    if (is_at(s, t))
        gpi_slot_cancel(d, s, t->cell,
                        how == GPI_CANCEL_HARD ? GPUD_CANCEL_HARD : GPUD_CANCEL_SOFT);
}

static void on_slot(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_sched_action *a)
{
    switch ((enum gpi_sched_action_kind)a->kind) {
    case GPI_ACT_MAKE:
        gpi_keeper_make(d, s);
        break;
    case GPI_ACT_DISMISS:
        gpi_keeper_dismiss(d, s);
        break;
    case GPI_ACT_START:
        gpi_slot_start(d, s, (enum gpi_start_kind)a->how);
        break;
    case GPI_ACT_RECALL:
        recall(d, s, task_of(d, a), (enum gpi_recall)a->how);
        break;
    case GPI_ACT_LOOK:
        gpi_slot_look(d, s);
        break;
    case GPI_ACT_HOLD:
        gpi_slot_hold(d, s);
        break;
    case GPI_ACT_ALARM:
        alarm_task(d, s, task_of(d, a), a->how);
        break;
    case GPI_ACT_KILL:
        gpi_slot_kill(d, s);
        break;
    case GPI_ACT_KILL_AT:
        gpi_slot_kill_at(d, s, task_of(d, a)->cell, a->at);
        break;
    case GPI_ACT_END:
        gpi_slot_end(d, s);
        break;
    case GPI_ACT_GIVE_UP:
        gpi_keeper_give_up(d, s);
        break;
    case GPI_ACT_READ_MEMORY:
        gpi_vacancy_begin(d, s);
        break;
    case GPI_ACT_JUDGE:
        gpi_slot_judge(d, s, (enum gpi_judge)a->how);
        break;
    case GPI_ACT_LIFE:
        gpi_slot_entered(d, s, (enum gpi_life)a->how);
        break;
    case GPI_ACT_NOTE:
        gpi_slot_note(d, s, a);
        break;
    case GPI_ACT_SEAT:
        gpi_slot_seat(d, s, a->class);
        break;
    case GPI_ACT_SEAT_ON:
        gpi_slot_seat_on(d, s, a->device);
        break;
    case GPI_ACT_GRANT: /* of no slot */
    case GPI_ACT_GRANT_ON:
    case GPI_ACT_REVOKE:
    case GPI_ACT_PROMISE:
    case GPI_ACT_DROP_SPAWNER:
    case GPI_ACTIONS:
        break;
    }
}

static void perform(gpud_dispatcher *d, const struct gpi_sched_action *a)
{
    if (a->kind == GPI_ACT_DROP_SPAWNER)
        gpi_spawner_lost(d); /* the spawner may live, but sends no reply */
    else if (a->kind == GPI_ACT_PROMISE)
        gpi_promise_tell(d, task_of(d, a), a->how, a->at);
    else if (a->kind == GPI_ACT_GRANT)
        gpi_grant_begin(d, a);
    else if (a->kind == GPI_ACT_GRANT_ON)
        gpi_grant_on(d, a);
    else if (a->kind == GPI_ACT_REVOKE)
        gpi_grant_revoke(d, a);
    else if (a->slot == GPI_NOWHERE)
        gpi_device_note(d, a->device, (enum gpi_sched_note)a->how);
    else
        on_slot(d, &d->slot[a->slot], a);
}

/* ---- ends ---- */

static void take_ends(gpud_dispatcher *d)
{
    struct gpi_sched_end e;

    while (gpi_core_ended(d, &e))
        gpi_task_over(d, &e);
}

void gpi_act(gpud_dispatcher *d)
{
    struct gpi_sched_action a;

    if (d->acting) /* the outer call performs the new actions, too */
        return;
    d->acting = true;
    take_ends(d);
    while (gpi_core_next(d, &a)) {
        perform(d, &a);
        take_ends(d);
    }
    d->acting = false;
    gpi_submit_go_on(d);
}

/* ---- a turn ---- */

void gpi_decide(gpud_dispatcher *d)
{
    do {
        gpi_core_decide(d, d->now);
        gpi_act(d);
        gpi_cells_send(d);
    } while (gpi_sched_undecided(d->core));
}
