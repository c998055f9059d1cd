/* SPDX-License-Identifier: MIT */
/*
 * sched.c - the entries of the core.
 *
 * An event goes to the record that it concerns, and to the table as an input.  Then the core draws
 * the consequences in one flat loop, until none is left.  In decide, keepers and workers begin.
 */
#include "sched/sched.h"

#include <stdlib.h>

#include "sched/core.h"

/* ---- life ---- */

struct gpi_sched *gpi_sched_create(const struct gpi_sched_settings *set)
{
    struct gpi_sched *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->set = set->pool;
    c->close_at = GPI_NEVER;
    c->slot = calloc(set->pool.slots, sizeof *c->slot);
    c->device = calloc(set->pool.devices, sizeof *c->device);
    if (c->slot && c->device && gpi_ring_make(c) == 0 && gpi_tasks_make(c) == 0 &&
        gpi_classes_make(c) == 0 && gpi_own_make(c) == 0 && gpi_pool_make(c) == 0 &&
        (c->plan || gpi_classes_add(c, 0, &set->class) == 0))
        return c;
    gpi_sched_destroy(c);
    return NULL;
}

void gpi_sched_destroy(struct gpi_sched *c)
{
    if (!c)
        return;
    gpi_pool_free(c);
    gpi_own_free(c);
    gpi_external_free(c);
    gpi_classes_free(c);
    gpi_tasks_free(c);
    gpi_ring_free(c);
    free(c->device);
    free(c->slot);
    free(c);
}

int gpi_sched_class_add(struct gpi_sched *c, uint32_t class, const struct gpi_class_settings *set,
                        const struct gpi_plan_class *plan)
{
    if (c->plan && plan->residence == GPI_EXTERNAL && gpi_external_make(c))
        return -1;
    if (gpi_classes_add(c, class, set))
        return -1;
    if (c->plan)
        gpi_pool_add_class(c, &c->class[class], plan);
    return 0;
}

void gpi_sched_device_add(struct gpi_sched *c, uint32_t device, bool watched, uint64_t kill_limit,
                          const struct gpi_plan_has *has)
{
    assert(device <= c->n_devices && device < c->set.devices);
    c->device[device] =
        (struct gpi_sched_device){ .watched = watched, .kill_limit = kill_limit };
    c->n_devices += device == c->n_devices;
    if (c->plan)
        gpi_pool_add_device(c, device, has);
}

void gpi_sched_places_add(struct gpi_sched *c, uint32_t set, uint32_t device)
{
    gpi_pool_add_place(c, set, device);
}

void gpi_sched_places_empty(struct gpi_sched *c, uint32_t set)
{
    gpi_pool_empty_places(c, set);
}

void gpi_sched_slot_add(struct gpi_sched *c, uint32_t slot, uint32_t class, const uint16_t *device,
                        uint32_t n)
{
    struct gpi_sched_slot *s = &c->slot[slot];

    assert(slot == c->n_slots && slot < c->set.slots && n <= GPI_SLOT_DEVICES);
    assert(c->plan ? n == 0 : n >= 1 && class < c->n_classes);
    s->class = &c->class[c->plan ? 0 : class];
    s->restart = &s->own_restart;
    s->deadline = s->check_at = s->armed = s->seat.by = GPI_NEVER;
    for (s->n_devices = 0; s->n_devices < n; s->n_devices++)
        s->device[s->n_devices] = device[s->n_devices];
    gpi_spread_add(c, s);
    c->n_slots++;
    if (c->plan)
        return;
    s->hopeless = true; /* OFF */
    s->class->n_slots++;
    s->class->n_hopeless++;
}

/* ---- consequences ---- */

static void count(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const bool hopeless = gpi_life_is_hopeless(c, s);

    s->class->n_hopeless = s->class->n_hopeless + hopeless - s->hopeless;
    s->hopeless = hopeless;
}

static void follow_slot(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    bool settled;

    if (c->plan)
        gpi_pool_follow(c, s);
    else
        count(c, s);
    settled = gpi_life_is_settled(c, s);
    if (!settled)
        gpi_seat_wanted(c, s);
    if (s->life == GPI_LIFE_LEAVE && s->sent == 0)
        gpi_slot_input(c, s, GPI_IN_EMPTY);
    else if (c->winding && !settled && s->life != GPI_LIFE_END && !gpi_slot_is_dying(s))
        gpi_slot_input(c, s, GPI_IN_WIND_DOWN);
    else if (s->life == GPI_LIFE_PARKED && gpi_devices_try(c, s) && !gpi_close_starts_nothing(c))
        gpi_slot_input(c, s, GPI_IN_TRY);
    gpi_devices_note(c, s);
    if (c->plan && (s->life == GPI_LIFE_OFF || s->life == GPI_LIFE_STOPPED))
        s->n_devices = 0;
}

static void touch_all(struct gpi_sched *c)
{
    for (uint32_t i = 0; i < c->n_slots; i++)
        gpi_ring_touch(c, &c->slot[i]);
}

/* No task of a class starts any more if each of its slots is hopeless. */
static void end_hopeless(struct gpi_sched *c)
{
    for (uint32_t i = 0; i < c->n_classes; i++) {
        struct gpi_sched_class *k = &c->class[i];
        if (gpi_none_can_run(k) && (k->queue.count || k->deferred || k->n_own))
            gpi_tasks_end_waiting(c, k, GPUD_OUTCOME_NO_WORKER);
    }
}

/* Draws consequences until none is left. */
void gpi_sched_follow(struct gpi_sched *c)
{
    struct gpi_sched_slot *s;

    do {
        while ((s = gpi_ring_touched(c)) != NULL)
            follow_slot(c, s);
        end_hopeless(c);
        if (gpi_close_winds(c))
            touch_all(c);
    } while (c->touched);
}

/* ---- events ---- */

/* No event of its devices changes the slot. */
static bool is_over(const struct gpi_sched_slot *s)
{
    return s->life == GPI_LIFE_OFF || s->life == GPI_LIFE_STUCK || s->life == GPI_LIFE_REMOVED;
}

static void tell_device(struct gpi_sched *c, uint32_t device, enum gpi_input in)
{
    for (uint32_t i = 0; i < c->n_slots; i++) {
        struct gpi_sched_slot *s = &c->slot[i];
        const bool concerns = in == GPI_IN_KILL ? gpi_slot_has_worker(s) : !is_over(s);
        if (concerns && gpi_device_has(s, device))
            gpi_slot_input(c, s, in);
    }
}

static void on_device(struct gpi_sched *c, const struct gpi_sched_event *e)
{
    gpi_device_set(c, e->device, (enum gpi_may)e->how);
    if (c->plan)
        gpi_pool_device(c, e->device);
    gpi_external_device(c, e->device, e->what == GPI_USE_KILL);
    tell_device(c, e->device, GPI_IN_CHANGED);
    if (e->what == GPI_USE_KILL)
        tell_device(c, e->device, GPI_IN_KILL);
    else if (e->what == GPI_USE_LEAVE)
        tell_device(c, e->device, GPI_IN_LEAVE);
}

static void on_wish(struct gpi_sched *c, const struct gpi_sched_event *e)
{
    const bool stays = e->kind == GPI_EV_RETURN || e->kind == GPI_EV_PAUSE;

    gpi_device_wish(c, e->device, e->kind);
    if (c->plan)
        gpi_pool_device(c, e->device);
    gpi_external_device(c, e->device, false);
    tell_device(c, e->device, stays ? GPI_IN_CHANGED : GPI_IN_LEAVE);
    for (uint32_t i = 0; i < c->n_slots && stays; i++)
        if (gpi_device_has(&c->slot[i], e->device))
            gpi_life_pause(c, &c->slot[i], e->kind == GPI_EV_PAUSE);
    gpi_device_touch(c, e->device);
    gpi_device_note_end(c, e->device); /* the device may be drained, or removed, already */
}

static void on_keeper_lost(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    gpi_seat_lost(c, s);
    if (gpi_slot_has_worker(s))
        gpi_slot_input(c, s, GPI_EV_KEEPER_LOST);
}

static void on_keeper_gone(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (gpi_slot_has_worker(s) && s->life != GPI_LIFE_LOST)
        on_keeper_lost(c, s);
    gpi_slot_input(c, s, GPI_EV_KEEPER_GONE);
}

static void without_spawner(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const bool was_asked = s->seat.keeper == GPI_KEEPER_ASKED;

    gpi_seat_orphaned(c, s);
    if (s->life == GPI_LIFE_LOST)
        gpi_slot_input(c, s, GPI_EV_SURVIVED); /* no process is left to prove the worker's death */
    else if (was_asked)
        gpi_slot_input(c, s, GPI_EV_KEEPER_NO);
}

static void on_spawner_gone(struct gpi_sched *c)
{
    gpi_spawner_gone(c);
    for (uint32_t i = 0; i < c->n_slots; i++)
        without_spawner(c, &c->slot[i]);
}

static void on_close(struct gpi_sched *c, uint32_t how, uint64_t at)
{
    gpi_close_asked(c, how, at);
    c->undecided = true;
}

static void on_held(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const bool late = gpi_limits_held(c, s);

    gpi_tasks_held(s);
    if (s->why == GPI_WHY_STOPPED)
        gpi_limits_stopped(s);
    if (c->closing && c->how == GPI_CLOSE_NOW && s->why != GPI_WHY_CLOSE)
        gpi_tasks_cancel_at(c, s);
    if (c->plan)
        gpi_pool_looked(c, s);
    if (late && (s->life == GPI_LIFE_UP || s->life == GPI_LIFE_LEAVE))
        gpi_slot_input(c, s, GPI_IN_LATE);
}

static void on_begun(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (s->seat.keeper == GPI_KEEPER_ASKED) {
        gpi_seat_begun(c, s);
        return;
    }
    if (s->life == GPI_LIFE_BOOT || s->life == GPI_LIFE_SETUP)
        gpi_seat_used(s);
    gpi_life_begun(c, s);
}

/* ---- time ---- */

static void on_slot_time(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (s->armed < gpi_time_min(s->deadline, s->check_at)) { /* the time of the check has moved */
        gpi_ring_arm(c, s);
        return;
    }
    if (s->check_at <= c->now)
        gpi_limits_look(c, s);
    if (s->deadline <= c->now && !gpi_life_late(c, s)) {
        gpi_life_wait_until(c, s, GPI_NEVER);
        gpi_slot_input(c, s, GPI_IN_TIMER);
    }
}

/* The slot has no worker, and may have one again. */
static bool may_start(const struct gpi_sched_slot *s)
{
    return s->life == GPI_LIFE_WAIT || s->life == GPI_LIFE_BACKOFF ||
           s->life == GPI_LIFE_PARKED || s->life == GPI_LIFE_FAILED;
}

static void on_seat_time(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (gpi_seat_timer(c, s) && may_start(s))
        gpi_slot_input(c, s, GPI_IN_UNPROVED);
}

static void on_close_time(struct gpi_sched *c)
{
    for (uint32_t i = 0; i < c->n_slots; i++)
        if (gpi_slot_has_worker(&c->slot[i]))
            gpi_slot_input(c, &c->slot[i], GPI_IN_KILL_ALL);
    gpi_external_kill_all(c);
    gpi_close_passed(c);
}

static void on_time(struct gpi_sched *c)
{
    uint32_t i;

    gpi_tasks_time(c);
    gpi_external_time(c);
    c->undecided |= gpi_pool_due(c) <= c->now;
    while (gpi_heap_top_key(&c->times) <= c->now) {
        i = gpi_heap_top_item(&c->times);
        if (i < c->set.slots)
            on_slot_time(c, &c->slot[i]);
        else if (i < 2 * c->set.slots)
            on_seat_time(c, &c->slot[i - c->set.slots]);
        else
            on_close_time(c);
    }
}

uint64_t gpi_sched_due(struct gpi_sched *c)
{
    gpi_limits_drop(c);
    return gpi_time_min(gpi_time_min(gpi_heap_top_key(&c->times), gpi_external_due(c)),
                        gpi_time_min(gpi_tasks_due(c), gpi_pool_due(c)));
}

/* ---- the entry ---- */

static bool has_incarnation(uint32_t kind)
{
    return kind >= GPI_EV_START_NO && kind <= GPI_EV_STILL;
}

static bool is_about_worker(uint32_t kind)
{
    return has_incarnation(kind) || kind == GPI_EV_BROKE || kind == GPI_EV_SURVIVED ||
           kind == GPI_EV_UNSENT;
}

/* A message of an earlier worker, or a reply that arrived after the end of the worker. */
static bool is_late(const struct gpi_sched_slot *s, const struct gpi_sched_event *e)
{
    return (has_incarnation(e->kind) && e->incarnation != s->incarnation) ||
           (is_about_worker(e->kind) && !gpi_slot_has_worker(s));
}

static void on_slot(struct gpi_sched *c, const struct gpi_sched_event *e)
{
    struct gpi_sched_slot *s = &c->slot[e->slot];

    if (is_late(s, e)) {
        c->late++;
        return;
    }
    switch (e->kind) {
    case GPI_EV_KEEPER_UP:
        gpi_seat_replied(c, s, true);
        if (s->life == GPI_LIFE_REMOVED)
            gpi_seat_dismiss(c, s);
        break;
    case GPI_EV_KEEPER_NO:
        gpi_seat_replied(c, s, false);
        gpi_slot_input(c, s, GPI_EV_KEEPER_NO);
        break;
    case GPI_EV_KEEPER_LOST:
        on_keeper_lost(c, s);
        break;
    case GPI_EV_KEEPER_GONE:
        on_keeper_gone(c, s);
        break;
    case GPI_EV_STILL:
        gpi_life_still(c, s, e->how != 0);
        break;
    case GPI_EV_RUNNING:
        gpi_limits_running(c, s, e->task, e->at);
        break;
    case GPI_EV_LOOKED:
        gpi_limits_looked(c, s, e->at);
        if (c->plan)
            gpi_pool_looked(c, s);
        break;
    case GPI_EV_HELD:
        on_held(c, s);
        break;
    case GPI_EV_BEGUN:
        on_begun(c, s);
        break;
    case GPI_EV_MEMORY:
        gpi_life_pay(c, s);
        break;
    case GPI_EV_ROOM:
        gpi_spread_room(c, s, e->cell);
        break;
    default:
        gpi_slot_input(c, s, e->kind);
        break;
    }
}

static void on_event(struct gpi_sched *c, const struct gpi_sched_event *e)
{
    switch (e->kind) {
    case GPI_EV_SPAWNER_GONE:
        on_spawner_gone(c);
        break;
    case GPI_EV_CAME_BACK:
        gpi_tasks_came_back(c, e->task, e->how == GPI_BACK_SPOILT);
        break;
    case GPI_EV_CLAIMED:
        gpi_tasks_claimed(c, e->task);
        break;
    case GPI_EV_CANCEL:
        if (gpi_external_has(c, e->task))
            gpi_external_cancel(c, e->task, e->how);
        else
            gpi_tasks_cancel(c, e->task, e->how);
        break;
    case GPI_EV_STARTED:
    case GPI_EV_DECLINED:
    case GPI_EV_PROGRESS:
    case GPI_EV_ENDED:
        gpi_external_event(c, e);
        break;
    case GPI_EV_DEVICE:
        on_device(c, e);
        break;
    case GPI_EV_PAUSE:
    case GPI_EV_DRAIN:
    case GPI_EV_RETURN:
    case GPI_EV_REMOVE:
        on_wish(c, e);
        break;
    case GPI_EV_TRY:
        gpi_device_due(c, e->device);
        gpi_device_touch(c, e->device);
        if (c->plan)
            gpi_pool_try(c, e->device);
        break;
    case GPI_EV_CLOSE:
        on_close(c, e->how, e->at);
        break;
    case GPI_EV_SOURCE:
        gpi_close_source(c, e->how != 0);
        break;
    case GPI_EV_TIME:
        on_time(c);
        break;
    default:
        on_slot(c, e);
        break;
    }
}

void gpi_sched_event(struct gpi_sched *c, const struct gpi_sched_event *e)
{
    assert(e->kind < GPI_EVENTS);
    gpi_set_time(c, e->now);
    c->heard = e;
    on_event(c, e);
    gpi_sched_follow(c);
    c->heard = NULL;
}

/* ---- pooled: facts for the plan ---- */

static const struct gpi_sched_event nothing = { .kind = GPI_EV_TIME };

static void begin(struct gpi_sched *c, uint64_t now)
{
    gpi_set_time(c, now);
    c->heard = &nothing;
}

static void end(struct gpi_sched *c)
{
    gpi_sched_follow(c);
    c->heard = NULL;
}

void gpi_sched_foreign(struct gpi_sched *c, uint64_t now, uint32_t device, uint64_t bytes,
                       uint32_t load)
{
    begin(c, now);
    gpi_pool_foreign(c, device, bytes, load);
    end(c);
}

void gpi_sched_observed(struct gpi_sched *c, uint64_t now, uint32_t slot, uint32_t device,
                        uint64_t bytes)
{
    begin(c, now);
    gpi_pool_observed(c, &c->slot[slot], device, bytes);
    end(c);
}

void gpi_sched_observed_of(struct gpi_sched *c, uint64_t now, uint32_t task, uint32_t device,
                           uint64_t bytes)
{
    begin(c, now);
    gpi_external_observed(c, task, device, bytes);
    end(c);
}

void gpi_sched_adopt(struct gpi_sched *c, uint64_t now, uint32_t task,
                     const struct gpi_sched_adoption *a)
{
    begin(c, now);
    gpi_external_adopt(c, task, a);
    end(c);
}

void gpi_sched_class_set(struct gpi_sched *c, uint64_t now, uint32_t class,
                         enum gpi_plan_class_what what)
{
    begin(c, now);
    gpi_pool_class_set(c, &c->class[class], what);
    end(c);
}

/* ---- decide: keepers and workers begin ---- */

void gpi_sched_decide(struct gpi_sched *c, uint64_t now)
{
    assert(c->count == 0);
    begin(c, now);
    if (c->plan)
        gpi_pool_end_idle(c);
    c->undecided = false;
    if (c->plan && !gpi_close_starts_nothing(c)) {
        gpi_gates_renew(c); /* else the plan may grant a worker that takes nothing more */
        gpi_sched_follow(c);
        gpi_pool_decide(c);
    }
    if (c->plan)
        gpi_sched_follow(c);
    if (c->count > c->n_promises) /* a kill may put a device in doubt: no START beside it */
        c->undecided = true;
    else if (!gpi_close_starts_nothing(c)) {
        gpi_gates_open(c);
        gpi_gates_renew(c);
    }
    gpi_behind_decide(c);
    end(c);
}

bool gpi_sched_idles(struct gpi_sched *c)
{
    for (uint32_t i = 0; i < c->n_classes; i++)
        if (c->class[i].queue.count && gpi_spread_idle(c, &c->class[i]))
            return true;
    return gpi_pool_idles(c);
}

bool gpi_sched_undecided(const struct gpi_sched *c)
{
    return c->undecided;
}
