/* SPDX-License-Identifier: MIT */
/* world_user.c - the user of a world, and spontaneous trouble. */
#include "sim/world_state.h"

#define ADD GPI_EVENTS /* a device is added anew */

static uint32_t any_slot(struct gpi_world *w)
{
    return (uint32_t)gpi_random_below(&w->random, w->truth.slots);
}

static void plan(struct gpi_world *w, enum gpi_fact_kind kind, uint32_t device, uint32_t how,
                 uint64_t wait)
{
    gpi_agenda_add(w, (struct gpi_fact){
                          .at = w->now + wait, .kind = kind, .device = device, .word.how = how });
}

/* ---- tasks ---- */

static uint32_t free_record(const struct gpi_world *w)
{
    for (uint32_t i = 0; i < w->truth.tasks; i++)
        if (!w->submitted[i])
            return i;
    return GPI_NOWHERE;
}

static uint64_t draw_limit(struct gpi_world *w)
{
    return gpi_random_chance(&w->random, 600000) ? gpi_world_time(w, GPI_MS, GPI_S) : GPI_NEVER;
}

static uint64_t draw_keep_alive(struct gpi_world *w)
{
    if (!w->truth.pooled || !gpi_random_chance(&w->random, 100000))
        return 0;
    return gpi_random_chance(&w->random, 500000) ? 1 : gpi_world_time(w, GPI_US, 100 * GPI_MS);
}

static uint32_t draw_class(struct gpi_world *w)
{
    const uint32_t n = w->truth.classes;
    const uint32_t class = n > 1 ? (uint32_t)gpi_random_below(&w->random, n) : 0;

    return w->oracle.class[class].ended ? GPI_NOWHERE : class;
}

static uint64_t draw_order(struct gpi_world *w)
{
    return gpi_random_chance(&w->random, 50000) ? gpi_random_from(&w->random, 1, 40) : 0;
}

static void draw_requests(struct gpi_world *w, struct gpi_truth_task *t)
{
    if (!w->truth.own[t->class] || gpi_random_chance(&w->random, 500000))
        return;
    t->n_requests = (uint32_t)gpi_random_from(&w->random, 1, 2);
    for (uint32_t i = 0; i < t->n_requests; i++)
        t->request[i] = gpi_pool_draw_need(w);
}

static struct gpi_truth_task draw_task(struct gpi_world *w, uint32_t class, bool expires)
{
    struct gpi_truth_task t = {
        .class = class,
        .priority = (int32_t)gpi_random_below(&w->random, 4) - 1,
        .max_attempts = (uint32_t)gpi_random_from(&w->random, 1, 3),
        .causes = (uint32_t)gpi_random_below(&w->random, GPI_RETRY_ALL + 1),
        .limit = draw_limit(w),
        .expires = expires ? w->now + gpi_world_time(w, GPI_US, GPI_S) : GPI_NEVER,
        .soft_at = GPI_NEVER,
    };

    if (gpi_book_is_external(&w->oracle, class))
        gpi_work_draw_task(w, &t);
    else
        draw_requests(w, &t);
    t.order = draw_order(w);
    return t;
}

uint32_t gpi_user_submit(struct gpi_world *w)
{
    const uint32_t task = free_record(w), class = draw_class(w);
    const bool expires = gpi_world_happens(w, GPI_TROUBLE_EXPIRES);
    struct gpi_truth_task *t;

    if (task == GPI_NOWHERE || (w->closed && !w->source) || class == GPI_NOWHERE)
        return GPI_NOWHERE;
    t = &w->truth.task[task];
    *t = draw_task(w, class, expires);
    w->submitted[task] = true;
    gpi_host_submit(w, task, &(struct gpi_sched_task){ .class = t->class,
                                                       .order = t->order,
                                                       .n_requests = t->n_requests,
                                                       .request = t->request,
                                                       .priority = t->priority,
                                                       .max_attempts = t->max_attempts,
                                                       .causes = t->causes,
                                                       .limit = t->limit,
                                                       .stall = t->stall,
                                                       .expires = t->expires,
                                                       .keep_alive = draw_keep_alive(w) });
    return task;
}

static void submit(struct gpi_world *w)
{
    const uint32_t task = gpi_user_submit(w);

    if (task == GPI_NOWHERE)
        return;
    if (w->submitted[task] && gpi_world_happens(w, GPI_TROUBLE_CANCELS))
        gpi_agenda_add(w, (struct gpi_fact){
                              .at = w->now + gpi_world_time(w, GPI_US, 4 * w->task_time),
                              .kind = GPI_FACT_CANCEL,
                              .task = task,
                              .token = (uint32_t)w->oracle.task[task].order });
}

static void cancel(struct gpi_world *w, const struct gpi_fact *f)
{
    const bool hard = gpi_random_chance(&w->random, 500000);

    if (!w->submitted[f->task] || (uint32_t)w->oracle.task[f->task].order != f->token)
        return; /* another task has its record now */
    /* HARD may follow SOFT; external work may be cancelled again */
    if ((!hard || w->external) && gpi_random_chance(&w->random, 300000)) {
        struct gpi_fact again = *f;
        again.at = w->now + gpi_world_time(w, GPI_US, w->task_time);
        gpi_agenda_add(w, again);
    }
    gpi_host_feed(w, (struct gpi_sched_event){ .kind = GPI_EV_CANCEL,
                                               .task = f->task,
                                               .how = hard ? GPI_CANCEL_HARD : GPI_CANCEL_SOFT });
}

/* ---- devices ---- */

static bool all_are_removed(const struct gpi_world *w, uint32_t device)
{
    for (uint32_t i = 0; i < w->truth.slots; i++)
        if (gpi_book_has(&w->oracle, i, device) &&
            (w->oracle.slot[i].life != GPI_LIFE_REMOVED || w->oracle.slot[i].keeper))
            return false;
    return true;
}

/* Whether each device of the slot is present or can come back. */
static bool can_come_back(const struct gpi_world *w, uint32_t slot)
{
    if (w->oracle.slot[slot].life != GPI_LIFE_REMOVED)
        return false;
    for (uint32_t d = 0; d < w->truth.devices; d++)
        if (gpi_book_has(&w->oracle, slot, d) && w->oracle.device[d].removing &&
            !(w->device[d].removed && all_are_removed(w, d)))
            return false;
    return true;
}

static void renew_device(struct gpi_world *w, uint32_t device)
{
    struct gpi_world_device *d = &w->device[device];

    *d = (struct gpi_world_device){ .watched = d->watched, .token = d->token + 1 };
    w->oracle.device[device] = (struct gpi_book_device){ .may = GPI_MAY_OK };
    gpi_play_device(&w->play, device, d->watched, w->kill_limit, NULL);
}

/* The device returns as a new one, and so does each device set that contains it. */
static void add(struct gpi_world *w, uint32_t device)
{
    if (w->closed || w->spawner.gone || w->truth.pooled || !w->device[device].removed)
        return;
    for (uint32_t i = 0; i < w->truth.slots; i++) {
        if (!gpi_book_has(&w->oracle, i, device) || !can_come_back(w, i))
            continue;
        for (uint32_t d = 0; d < w->truth.devices; d++)
            if (gpi_book_has(&w->oracle, i, d) && w->oracle.device[d].removing)
                renew_device(w, d);
        gpi_host_feed_slot(w, GPI_EV_WANT, i, 0);
    }
}

static void change_device(struct gpi_world *w, const struct gpi_fact *f)
{
    const uint32_t how = f->word.how;

    if (how == ADD) {
        add(w, f->device);
        return;
    }
    if (w->oracle.device[f->device].removing ||
        (how == GPI_EV_DRAIN && w->device[f->device].draining))
        return; /* already done: the host feeds nothing */
    w->device[f->device].draining = how == GPI_EV_DRAIN;
    gpi_host_feed(w, (struct gpi_sched_event){ .kind = how, .device = f->device });
    if (how == GPI_EV_RETURN)
        gpi_world_returned(w, f->device);
}

/* ---- the close ---- */

static void close_it(struct gpi_world *w, const struct gpi_fact *f)
{
    const uint64_t limit = f->token ? gpi_world_time(w, GPI_MS, 3 * GPI_S) : GPI_NEVER;
    const uint64_t at = gpi_time_add(w->now, limit);

    w->closed = true;
    w->close_at = gpi_time_min(w->close_at, at);
    if (f->word.how == GPI_CLOSE_LEAVE)
        gpi_work_left(w);
    gpi_host_feed(w, (struct gpi_sched_event){ .kind = GPI_EV_CLOSE, .how = f->word.how,
                                               .at = at });
}

/* Some users request a faster close later.  The last close has a limit, because a task that hangs
 * would never end. */
static void plan_close(struct gpi_world *w, uint64_t length)
{
    const uint32_t ways = w->external ? GPI_CLOSE_LEAVE + 1 : GPI_CLOSE_LEAVE;
    const bool gentle = gpi_random_chance(&w->random, 500000);
    uint32_t how = (uint32_t)gpi_random_below(&w->random, ways);
    uint64_t at = length;

    gpi_agenda_add(w, (struct gpi_fact){
                          .at = w->now + at, .kind = GPI_FACT_CLOSE, .token = !gentle,
                          .word.how = how });
    if (gpi_random_chance(&w->random, 400000)) {
        at += gpi_world_time(w, GPI_US, 2 * GPI_S);
        how = (uint32_t)gpi_random_below(&w->random, ways);
        gpi_agenda_add(w, (struct gpi_fact){
                              .at = w->now + at, .kind = GPI_FACT_CLOSE, .word.how = how });
    }
    at += gpi_random_from(&w->random, 10, 40) * GPI_S;
    gpi_agenda_add(w, (struct gpi_fact){ .at = w->now + at,
                                         .kind = GPI_FACT_CLOSE,
                                         .token = 1,
                                         .word.how = GPI_CLOSE_NOW });
}

static void end_source(struct gpi_world *w)
{
    w->source = false;
    gpi_host_feed(w, (struct gpi_sched_event){ .kind = GPI_EV_SOURCE, .how = 0 });
}

void gpi_user_begin(struct gpi_world *w, uint64_t length)
{
    const bool bursts = gpi_random_chance(&w->random, 500000);
    uint64_t at = 0;

    for (uint32_t i = 0; i < w->tasks_left; i++) {
        if (!bursts || gpi_random_chance(&w->random, 150000))
            at = gpi_random_below(&w->random, length + GPI_S);
        gpi_agenda_add(w, (struct gpi_fact){ .at = w->now + at, .kind = GPI_FACT_SUBMIT });
    }
    plan_close(w, length);
    if (gpi_random_chance(&w->random, 250000)) {
        w->source = true;
        gpi_host_feed(w, (struct gpi_sched_event){ .kind = GPI_EV_SOURCE, .how = 1 });
        plan(w, GPI_FACT_SOURCE_ENDS, 0, 0, gpi_random_below(&w->random, length + 2 * GPI_S));
    }
    gpi_world_soon(w, GPI_FACT_WEATHER, 0, 0, w->weather);
    gpi_work_begin(w);
}

/* Most arenas soon have room again. */
static void fill_arena(struct gpi_world *w, uint32_t slot)
{
    const bool soon = gpi_random_chance(&w->random, 900000);
    const uint64_t lasts = gpi_world_time(w, 10 * GPI_US, GPI_S);

    gpi_agenda_add(w, (struct gpi_fact){ .at = w->now, .kind = GPI_FACT_ROOM, .slot = slot,
                                         .token = (uint32_t)gpi_random_below(&w->random, 4) });
    if (soon)
        gpi_agenda_add(w, (struct gpi_fact){ .at = w->now + lasts, .kind = GPI_FACT_ROOM,
                                             .slot = slot, .token = 64 });
}

void gpi_user_hear(struct gpi_world *w, const struct gpi_fact *f)
{
    switch (f->kind) {
    case GPI_FACT_SUBMIT: submit(w); break;
    case GPI_FACT_CANCEL: cancel(w, f); break;
    case GPI_FACT_USER_DEVICE: change_device(w, f); break;
    case GPI_FACT_CLOSE: close_it(w, f); break;
    case GPI_FACT_SOURCE_ENDS: end_source(w); break;
    case GPI_FACT_WISH: gpi_pool_wish(w, f->token, f->word.how); break;
    case GPI_FACT_ROOM:
        gpi_host_feed(w, (struct gpi_sched_event){
                             .kind = GPI_EV_ROOM, .slot = f->slot, .cell = f->token });
        break;
    default: break;
    }
}

/* ---- out of the blue ---- */

static void stop_host(struct gpi_world *w)
{
    const uint64_t lasts = gpi_world_time(w, 20 * GPI_MS, 20 * GPI_S);

    if (w->truth.n_stops == GPI_TRUTH_STOPS || w->stopped_until > w->now)
        return;
    w->stopped_until = w->now + lasts;
    w->truth.stop[w->truth.n_stops].from = w->now;
    w->truth.stop[w->truth.n_stops++].to = w->stopped_until;
}

/* Stops the host, and sometimes the keepers too, as a signal to the process group does. */
static void stop_group(struct gpi_world *w)
{
    stop_host(w);
    if (gpi_random_chance(&w->random, 700000))
        return;
    for (uint32_t i = 0; i < w->truth.slots; i++)
        gpi_keeper_freeze(w, i);
}

static void disturb_devices(struct gpi_world *w)
{
    const uint32_t device = (uint32_t)gpi_random_below(&w->random, w->truth.devices);

    if (gpi_world_happens(w, GPI_TROUBLE_INCIDENTS))
        plan(w, GPI_FACT_INCIDENT, device, (uint32_t)gpi_random_from(&w->random, 1, 3), 0);
    if (gpi_world_happens(w, GPI_TROUBLE_DRAINS)) {
        plan(w, GPI_FACT_USER_DEVICE, device, GPI_EV_DRAIN, 0);
        if (gpi_random_chance(&w->random, 700000))
            plan(w, GPI_FACT_USER_DEVICE, device, GPI_EV_RETURN,
                 gpi_world_time(w, GPI_US, 3 * GPI_S));
    }
    if (gpi_world_happens(w, GPI_TROUBLE_PAUSES)) {
        plan(w, GPI_FACT_USER_DEVICE, device, GPI_EV_PAUSE, 0);
        plan(w, GPI_FACT_USER_DEVICE, device, GPI_EV_RETURN, gpi_world_time(w, GPI_US, 3 * GPI_S));
    }
    if (gpi_world_happens(w, GPI_TROUBLE_DRAINS))
        plan(w, GPI_FACT_USER_DEVICE, device, GPI_EV_RETURN, 0);
    if (gpi_world_happens(w, GPI_TROUBLE_REMOVES))
        plan(w, GPI_FACT_USER_DEVICE, device, GPI_EV_REMOVE, 0);
    if (gpi_random_chance(&w->random, 300000))
        plan(w, GPI_FACT_USER_DEVICE, device, ADD, 0);
}

static void break_protocol(struct gpi_world *w, uint32_t slot)
{
    const struct gpi_world_worker *k = &w->slot[slot].worker;

    if (gpi_worker_lives(k))
        gpi_word_send(w, GPI_CHANNEL_PAGE, slot, GPI_EV_BROKE, 0);
}

static void give_back_a_task(struct gpi_world *w, uint32_t slot)
{
    if (w->stopped_until <= w->now)
        gpi_host_take_back(w, slot); /* the host requeues tasks behind a long one */
}

void gpi_user_weather(struct gpi_world *w)
{
    gpi_world_soon(w, GPI_FACT_WEATHER, 0, 0, w->weather);
    if (gpi_world_happens(w, GPI_TROUBLE_SPAWNER_FREEZES))
        gpi_spawner_freeze(w);
    if (gpi_world_happens(w, GPI_TROUBLE_SPAWNER_DIES))
        gpi_spawner_end(w);
    if (gpi_world_happens(w, GPI_TROUBLE_KEEPER_DIES))
        gpi_keeper_end(w, any_slot(w));
    if (gpi_world_happens(w, GPI_TROUBLE_KEEPER_FREEZES))
        gpi_keeper_freeze(w, any_slot(w));
    if (gpi_world_happens(w, GPI_TROUBLE_STOPS))
        gpi_worker_stop(w, any_slot(w));
    if (gpi_world_happens(w, GPI_TROUBLE_BREAKS))
        break_protocol(w, any_slot(w));
    if (gpi_world_happens(w, GPI_TROUBLE_RECALLS))
        give_back_a_task(w, any_slot(w));
    if (gpi_world_happens(w, GPI_TROUBLE_NO_ROOM))
        fill_arena(w, any_slot(w));
    if (gpi_world_happens(w, GPI_TROUBLE_HOST_STOPS))
        stop_group(w);
    disturb_devices(w);
    if (w->truth.pooled)
        gpi_pool_disturb(w);
    if (w->external)
        gpi_work_disturb(w);
}
