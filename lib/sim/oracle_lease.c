/* SPDX-License-Identifier: MIT */
/* oracle_lease.c - GRANT and REVOKE, the orders of the core for external work. */
#include "base/clock.h"
#include "sim/oracle.h"

static bool object(struct gpi_oracle *o, bool broken, const char *rule)
{
    return broken && gpi_oracle_object(o, GPI_ORACLE_SAFETY, rule);
}

/* ---- grants ---- */

static void granted(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    const struct gpi_book_task *t = &o->task[a->task];
    const struct gpi_truth_task *truth = &o->truth->task[a->task];
    const struct gpi_book_outside *x = &o->outside[a->task];
    struct gpi_book_lease *l;

    object(o, !o->deciding, "GRANT outside of a decision");
    object(o, !gpi_book_is_external(o, truth->class), "GRANT of a task that has workers");
    if (object(o, !gpi_book_waits(o, a->task), "GRANT of a task that does not wait"))
        return;
    object(o, t->cancel, "GRANT of a cancelled task");
    object(o, gpi_book_cancels(o), "GRANT after a close that starts nothing");
    object(o, o->class[truth->class].paused, "GRANT in a class that is paused");
    object(o, a->incarnation != x->grants + 1, "GRANT with a number that is not the next");
    object(o, x->attempts >= truth->max_attempts && x->attempts, "more attempts than allowed");
    if (object(o, a->cell >= truth->n_requests, "GRANT of no variant"))
        return;
    l = gpi_book_begin(o, a->task, a->incarnation);
    if (!l)
        return;
    l->has = truth->request[a->cell];
    l->start_by = gpi_time_add(o->decided_at, o->truth->setup_limit);
    o->outside[a->task].promise = GPI_NEVER;
    if (l->has.devices == 0)
        gpi_room_machine(o, l);
}

static void granted_on(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    struct gpi_book_lease *l = gpi_book_lease(o, a->task);
    const struct gpi_book_device *d = &o->device[a->device];

    if (object(o, !l || l->state != GPI_BOOK_UNSTARTED, "GRANT_ON without a grant") ||
        object(o, a->device >= o->truth->devices, "GRANT of no device") ||
        object(o, l->n_devices >= l->has.devices, "GRANT of too many devices") ||
        object(o, gpi_book_is_on(l, a->device), "GRANT of a device twice"))
        return;
    if (!d->changed) { /* else the core learns that now, and takes the grant back */
        object(o, d->may >= GPI_MAY_OUT, "GRANT of a device that is out of use");
        object(o, d->draining || d->removing, "GRANT of a device that is drained or removed");
        object(o, d->paused, "GRANT of a device that is paused");
        object(o, gpi_book_tries(o, a->device), "GRANT of a device that has a canary");
    }
    l->device[l->n_devices++] = (uint16_t)a->device;
    if (l->n_devices < l->has.devices)
        return;
    gpi_room_machine(o, l);
    for (uint32_t i = 0; i < l->n_devices; i++)
        gpi_room_device(o, l, l->device[i]);
}

void gpi_outside_promised(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    if (a->task < o->truth->tasks)
        o->outside[a->task].promise = a->at;
}

/* ---- REVOKE ---- */

static bool is_present(const struct gpi_oracle *o, uint64_t at, uint64_t wait)
{
    return at >= gpi_time_add(o->fed_at, wait) && at <= gpi_time_add(o->truth->now, wait);
}

static bool is_out(const struct gpi_book_device *d)
{
    return d->may >= GPI_MAY_OUT || d->changed;
}

static void is_back_right(struct gpi_oracle *o, const struct gpi_book_lease *l, uint32_t why)
{
    const struct gpi_truth_task *truth = &o->truth->task[l->task];
    const bool expires = o->is_time && truth->starts == 0 && truth->expires <= o->fed_at;

    switch (why) {
    case GPI_REVOKE_START:
        object(o, !o->is_time || l->start_by > o->fed_at, "a grant comes back before its limit");
        object(o, expires, "a grant whose task has expired comes back as not started");
        break;
    case GPI_REVOKE_LIMIT:
        object(o, !expires, "a grant comes back for a task that has not expired");
        break;
    case GPI_REVOKE_CANCEL:
        object(o, !o->task[l->task].cancel, "a grant comes back, and nobody cancels its task");
        break;
    case GPI_REVOKE_DRAIN:
        object(o, !gpi_book_is_on_one(o, l, gpi_book_is_barred) && !o->class[truth->class].paused,
               "a grant comes back from devices that start tasks");
        break;
    case GPI_REVOKE_DEVICE:
        object(o, !gpi_book_is_on_one(o, l, is_out),
               "a grant comes back from devices that are in use");
        break;
    case GPI_REVOKE_CLOSE:
        object(o, !gpi_book_cancels(o), "a grant comes back, and no close wants it");
        break;
    default:
        object(o, true, "a grant comes back without a reason");
    }
}

static void came_back(struct gpi_oracle *o, struct gpi_book_lease *l,
                      const struct gpi_sched_action *a)
{
    if (object(o, l->state != GPI_BOOK_UNSTARTED, "a grant comes back after its start"))
        return;
    object(o, !is_present(o, a->at, 0), "a grant comes back at another time");
    is_back_right(o, l, a->what);
    o->outside[l->task].in_vain += a->what == GPI_REVOKE_START;
    l->state = GPI_BOOK_UNUSED;
    gpi_book_wait(o, l->task, 0);
}

/* The limit of a close may come first, also if it passes in the same TIME. */
static uint64_t kill_at(const struct gpi_oracle *o, uint64_t at)
{
    return o->closed && (!o->close_passed || o->close_passes) ? gpi_time_min(at, o->close_at) : at;
}

/* The limit has expired: the work is to end, and has the grace for that. */
static void limited(struct gpi_oracle *o, struct gpi_book_lease *l,
                    const struct gpi_sched_action *a)
{
    const uint64_t at = gpi_time_add(gpi_book_soft_at(l), o->truth->grace);
    const bool stalls = l->stall_at < l->limit_at;

    object(o, !o->is_time || gpi_book_soft_at(l) > o->fed_at, "REVOKE before the limit");
    object(o, l->told, "REVOKE for the limit twice");
    object(o, stalls != (a->what == GPI_REVOKE_STALL), "REVOKE for the other limit");
    object(o, a->at != kill_at(o, gpi_time_min(at, l->kill_at)), "REVOKE with another grace");
    l->told = true;
    if (at >= l->kill_at)
        return;
    l->kill_at = at;
    l->kill_why = a->what;
}

static void softened(struct gpi_oracle *o, struct gpi_book_lease *l,
                     const struct gpi_sched_action *a)
{
    if (object(o, l->state != GPI_BOOK_STARTED, "a soft REVOKE before the start"))
        return;
    object(o, l->killed, "a soft REVOKE after a hard one");
    if (a->what == GPI_REVOKE_LIMIT || a->what == GPI_REVOKE_STALL) {
        limited(o, l, a);
        return;
    }
    object(o, !l->owes_soft || a->what != l->soft_why, "a soft REVOKE without a reason");
    object(o, a->at != kill_at(o, l->kill_at), "a soft REVOKE with another grace");
    l->owes_soft = false;
}

static void hardened(struct gpi_oracle *o, struct gpi_book_lease *l,
                     const struct gpi_sched_action *a)
{
    const uint64_t kill_limit = o->truth->slot[0].kill_limit;
    const bool is_due = o->is_time && l->kill_at <= o->fed_at;
    const uint32_t why = is_due ? l->kill_why : l->hard_why;

    if (object(o, l->state != GPI_BOOK_STARTED, "a hard REVOKE before the start"))
        return;
    object(o, l->killed, "a hard REVOKE after a hard one");
    object(o, !is_due && !l->owes_hard, "a hard REVOKE without a reason");
    object(o, (is_due || l->owes_hard) && a->what != why, "a hard REVOKE with another reason");
    object(o, !is_present(o, a->at, kill_limit), "a hard REVOKE with another kill limit");
    l->killed = true;
    l->killed_at = a->at - kill_limit;
    l->give_up_at = a->at;
    l->kill_why = a->what;
    l->owes_hard = false;
}

static void revoked(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    struct gpi_book_lease *l = gpi_book_lease(o, a->task);

    if (object(o, !l || l->state == GPI_BOOK_UNFREED, "REVOKE without a grant"))
        return;
    object(o, a->incarnation != l->grant, "REVOKE of a former grant");
    if (a->how == GPI_REVOKE_BACK)
        came_back(o, l, a);
    else if (a->how == GPI_REVOKE_SOFT)
        softened(o, l, a);
    else
        hardened(o, l, a);
}

void gpi_outside_ordered(struct gpi_oracle *o, const struct gpi_sched_action *a)
{
    o->moved_at = o->truth->now;
    if (object(o, a->task >= o->truth->tasks, "an order for no task"))
        return;
    if (a->kind == GPI_ACT_GRANT)
        granted(o, a);
    else if (a->kind == GPI_ACT_GRANT_ON)
        granted_on(o, a);
    else
        revoked(o, a);
}
