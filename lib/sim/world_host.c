/* SPDX-License-Identifier: MIT */
/* world_host.c - the host of a world: it feeds the core, and performs the core's orders. */
#include "sim/world_state.h"

static struct gpi_world_host *host_of(struct gpi_world *w, uint32_t slot)
{
    return &w->slot[slot].host;
}

/* ---- feeding ---- */

/* Each step takes some time: the host feeds a reply a little later than the order. */
static void pass_time(struct gpi_world *w)
{
    w->now += 200 + gpi_random_below(&w->random, 1500);
    w->truth.now = w->now;
    w->events++;
}

static void perform(struct gpi_world *w, const struct gpi_sched_action *a);

/* The host feeds a reply while it performs an action.  The effects of the reply join the end of the
 * ring. */
void gpi_host_perform(struct gpi_world *w)
{
    struct gpi_sched_action a;
    struct gpi_sched_end e;

    if (w->depth)
        return;
    w->depth++;
    while (gpi_play_next(&w->play, &a)) {
        gpi_oracle_ordered(&w->oracle, &a);
        perform(w, &a);
    }
    w->depth--;
    while (gpi_play_ended(&w->play, &e)) {
        gpi_oracle_ended(&w->oracle, &e);
        if (e.task < w->truth.tasks && !e.again && !e.held)
            w->submitted[e.task] = false;
    }
    gpi_oracle_settled(&w->oracle);
}

void gpi_host_feed(struct gpi_world *w, struct gpi_sched_event e)
{
    pass_time(w);
    e.now = w->now;
    gpi_oracle_fed(&w->oracle, &e);
    gpi_play_event(&w->play, &e);
    gpi_host_perform(w);
}

void gpi_host_feed_slot(struct gpi_world *w, uint32_t kind, uint32_t slot, uint32_t how)
{
    gpi_host_feed(w, (struct gpi_sched_event){ .kind = kind, .slot = slot, .how = how });
}

static void feed_task(struct gpi_world *w, uint32_t kind, uint32_t slot, uint32_t task,
                      uint64_t at)
{
    gpi_host_feed(w, (struct gpi_sched_event){
                         .kind = kind, .slot = slot, .task = task, .at = at });
}

static void feed_back(struct gpi_world *w, uint32_t task, enum gpi_back how)
{
    gpi_host_feed(w, (struct gpi_sched_event){
                         .kind = GPI_EV_CAME_BACK, .task = task, .how = how });
}

void gpi_host_submit(struct gpi_world *w, uint32_t task, const struct gpi_sched_task *what)
{
    pass_time(w);
    gpi_oracle_submitted(&w->oracle, task);
    (void)gpi_play_submit(&w->play, task, what);
    gpi_host_perform(w);
}

void gpi_host_adopt(struct gpi_world *w, uint32_t task, const struct gpi_truth_adoption *a)
{
    const struct gpi_sched_adoption what = { .has = a->has,
                                             .device = a->device,
                                             .grant = a->grant,
                                             .attempts = a->attempts,
                                             .started_at = a->started_at,
                                             .given_up = a->given_up };

    pass_time(w);
    gpi_oracle_adopted(&w->oracle, task, a);
    gpi_play_adopt(&w->play, w->now, task, &what);
    gpi_host_perform(w);
}

void gpi_host_observed_of(struct gpi_world *w, uint32_t task, uint32_t device, uint64_t bytes)
{
    pass_time(w);
    gpi_oracle_observed_of(&w->oracle, task, device, bytes);
    gpi_play_observed_of(&w->play, w->now, task, device, bytes);
    gpi_host_perform(w);
}

static void feed_end(struct gpi_world *w, const struct gpi_world_cell *c)
{
    const uint64_t run = c->ended_at - c->started_at;
    const struct gpi_sched_attempt a = { .task = c->task,
                                         .outcome = c->outcome,
                                         .phase = c->phase,
                                         .final = c->invalid,
                                         .run = run,
                                         .share = run };

    pass_time(w);
    gpi_oracle_attempt_ended(&w->oracle, &a);
    (void)gpi_play_end(&w->play, w->now, &a);
    gpi_host_perform(w);
}

/* ---- cells ---- */

/* Frees the cell. */
static void empty(struct gpi_world *w, struct gpi_world_cell *c)
{
    w->truth.task[c->task].unclaimed = false;
    c->used = false;
}

void gpi_host_collect(struct gpi_world *w, uint32_t slot)
{
    for (uint32_t i = 0; i < GPI_WORLD_CELLS; i++) {
        struct gpi_world_cell *c = &w->slot[slot].cell[i];
        if (!c->used || !c->ended)
            continue;
        empty(w, c);
        feed_end(w, c);
    }
}

void gpi_host_take_back(struct gpi_world *w, uint32_t slot)
{
    for (uint32_t i = 0; i < GPI_WORLD_CELLS; i++) {
        struct gpi_world_cell *c = &w->slot[slot].cell[i];
        if (!c->used || c->claimed || c->overwritten)
            continue;
        empty(w, c);
        feed_back(w, c->task, GPI_BACK_PLAIN);
    }
}

/* The host knows which tasks the worker cannot have begun, although it has overwritten its page. */
static void take_back_overwritten(struct gpi_world *w, uint32_t slot)
{
    for (uint32_t i = 0; i < GPI_WORLD_CELLS; i++) {
        struct gpi_world_cell *c = &w->slot[slot].cell[i];
        if (!c->used || !c->overwritten)
            continue;
        empty(w, c);
        feed_back(w, c->task, GPI_BACK_SPOILT);
    }
}

/* The worker is gone, or as good as gone. */
void gpi_host_drain(struct gpi_world *w, uint32_t slot)
{
    gpi_host_collect(w, slot);
    gpi_host_take_back(w, slot);
    take_back_overwritten(w, slot);
}

void gpi_host_forget(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_host *h = host_of(w, slot);

    h->worker = h->ended = h->still = false;
    for (uint32_t i = 0; i < GPI_WORLD_CELLS; i++)
        w->slot[slot].cell[i].used = false;
}

/* ---- replies about tasks ---- */

static void recall(struct gpi_world *w, const struct gpi_sched_action *a)
{
    struct gpi_world_cell *c = gpi_cell_of(w, a->slot, a->task);

    if (!c)
        return;
    if (c->ended) {
        empty(w, c);
        feed_end(w, c);
    } else if (c->claimed || c->overwritten) {
        feed_task(w, GPI_EV_CLAIMED, GPI_NOWHERE, a->task, 0);
    } else {
        empty(w, c);
        feed_back(w, a->task, GPI_BACK_PLAIN);
    }
}

static void report_running(struct gpi_world *w, uint32_t slot)
{
    const struct gpi_world_cell *c = gpi_cell_running(w, slot);

    if (c)
        feed_task(w, GPI_EV_RUNNING, slot, c->task, gpi_cell_soft(w, slot, c));
}

/* The clock of a task starts when the worker claims it.  Returns a time before any unclaimed task
 * can exceed its limit: the core looks again then. */
static uint64_t look_again(const struct gpi_world *w, uint32_t slot)
{
    uint64_t at = GPI_NEVER;

    for (uint32_t i = 0; i < GPI_WORLD_CELLS; i++) {
        const struct gpi_world_cell *c = &w->slot[slot].cell[i];
        const uint64_t limit = w->truth.task[c->task].limit;
        if (c->used && !c->claimed)
            at = gpi_time_min(at, gpi_time_add(w->now, gpi_time_add(limit, w->set.class.grace -
                                                                               w->set.class.lead)));
    }
    return at;
}

static void look(struct gpi_world *w, uint32_t slot, bool hold)
{
    gpi_host_collect(w, slot);
    if (hold)
        gpi_host_take_back(w, slot);
    report_running(w, slot);
    feed_task(w, hold ? GPI_EV_HELD : GPI_EV_LOOKED, slot, 0, hold ? 0 : look_again(w, slot));
}

static void alarm_task(struct gpi_world *w, const struct gpi_sched_action *a)
{
    struct gpi_world_cell *c = gpi_cell_of(w, a->slot, a->task);

    if (!c || c->ended)
        return;
    if (a->how == GPI_CANCEL_HARD)
        c->cancelled_at = gpi_time_min(c->cancelled_at, w->now);
    else
        c->soft = true;
    gpi_worker_alarm(w, a->slot, a->task);
}

/* ---- replies about workers and keepers ---- */

static void make(struct gpi_world *w, uint32_t slot)
{
    if (w->spawner.gone || gpi_world_happens(w, GPI_TROUBLE_SEND_FAILS)) {
        gpi_host_feed_slot(w, GPI_EV_KEEPER_NO, slot, 0);
        return;
    }
    host_of(w, slot)->asked = true;
    gpi_host_feed_slot(w, GPI_EV_BEGUN, slot, 0);
    gpi_world_soon(w, GPI_FACT_MADE, slot, 0, gpi_world_time(w, 50 * GPI_US, 20 * GPI_MS));
}

/* The host closes the keeper's socket and orders nothing more from it.  The keeper ends when it
 * reads the end of the socket. */
static void hang_up(struct gpi_world *w, uint32_t slot, enum gpi_lost how)
{
    host_of(w, slot)->lost = true;
    gpi_keeper_order(w, slot, (struct gpi_world_order){ .kind = GPI_ACT_DISMISS });
    if (w->slot[slot].keeper.frozen) /* the host notices the stop and drops it */
        gpi_world_soon(w, GPI_FACT_DROPPED, slot, w->slot[slot].keeper.life, w->kill_limit / 2);
    gpi_host_feed_slot(w, GPI_EV_KEEPER_LOST, slot, how);
}

static bool can_send(struct gpi_world *w, uint32_t slot)
{
    return w->slot[slot].keeper.alive && !host_of(w, slot)->lost &&
           !gpi_world_happens(w, GPI_TROUBLE_SEND_FAILS);
}

static void start(struct gpi_world *w, const struct gpi_sched_action *a)
{
    struct gpi_world_host *h = host_of(w, a->slot);

    if (!can_send(w, a->slot)) {
        gpi_host_feed_slot(w, GPI_EV_UNSENT, a->slot, 0);
        if (!h->lost)
            hang_up(w, a->slot, GPI_LOST_PLAIN);
        return;
    }
    h->worker = true;
    h->ended = h->still = false;
    h->incarnation = a->incarnation;
    gpi_keeper_order(w, a->slot, (struct gpi_world_order){ .kind = a->kind,
                                                           .incarnation = a->incarnation,
                                                           .how = a->how });
    gpi_host_feed_slot(w, GPI_EV_BEGUN, a->slot, 0);
    gpi_world_soon(w, GPI_FACT_LOOK, a->slot, a->incarnation, w->kill_limit);
}

static void kill_worker(struct gpi_world *w, const struct gpi_sched_action *a)
{
    struct gpi_world_host *h = host_of(w, a->slot);

    if (h->lost || (h->stuck && !w->slot[a->slot].keeper.alive)) {
        gpi_host_feed_slot(w, GPI_EV_KEEPER_LOST, a->slot, 0);
        return;
    }
    if (!can_send(w, a->slot)) {
        hang_up(w, a->slot, GPI_LOST_UNREAD);
        return;
    }
    gpi_keeper_order(w, a->slot, (struct gpi_world_order){ .kind = a->kind,
                                                           .incarnation = h->incarnation,
                                                           .task = a->task,
                                                           .at = a->at });
    gpi_host_feed_slot(w, GPI_EV_BEGUN, a->slot, 0);
}

static void end(struct gpi_world *w, uint32_t slot)
{
    if (gpi_world_happens(w, GPI_TROUBLE_SEND_FAILS)) {
        gpi_host_feed_slot(w, GPI_EV_UNSENT, slot, 0);
        return;
    }
    w->slot[slot].worker.end = true;
    gpi_host_feed_slot(w, GPI_EV_BEGUN, slot, 0);
    gpi_worker_wake(w, slot);
}

/* The kernel shows the host whether the stopped keeper has read its orders. */
static bool has_unread_kill(const struct gpi_world *w, uint32_t slot)
{
    const struct gpi_world_keeper *k = &w->slot[slot].keeper;

    for (uint32_t i = 0; i < k->n_orders; i++)
        if (k->order[i].kind == GPI_ACT_KILL_AT)
            return true;
    return false;
}

void gpi_host_lose_keeper(struct gpi_world *w, uint32_t slot)
{
    struct gpi_world_host *h = host_of(w, slot);
    const enum gpi_lost how = has_unread_kill(w, slot) ? GPI_LOST_UNREAD : GPI_LOST_PLAIN;

    h->lost = h->dropped = true;
    gpi_world_soon(w, GPI_FACT_DROPPED, slot, w->slot[slot].keeper.life,
                   gpi_world_time(w, 20 * GPI_US, 5 * GPI_MS));
    gpi_host_feed_slot(w, GPI_EV_KEEPER_LOST, slot, how);
}

static void give_up(struct gpi_world *w, uint32_t slot)
{
    const struct gpi_world_keeper *k = &w->slot[slot].keeper;
    struct gpi_world_host *h = host_of(w, slot);

    if (k->alive && k->frozen && !h->lost) {
        gpi_host_lose_keeper(w, slot);
        return;
    }
    gpi_host_drain(w, slot);
    h->stuck = true;
    gpi_host_feed_slot(w, GPI_EV_SURVIVED, slot, 0);
    gpi_host_forget(w, slot);
}

/* ---- the spawner ---- */

void gpi_host_lose_spawner(struct gpi_world *w)
{
    if (w->spawner.gone)
        return;
    w->spawner.gone = true;
    for (uint32_t i = 0; i < w->truth.slots; i++)
        if (host_of(w, i)->lost && host_of(w, i)->worker)
            gpi_host_drain(w, i);
    gpi_host_feed_slot(w, GPI_EV_SPAWNER_GONE, GPI_NOWHERE, 0);
    for (uint32_t i = 0; i < w->truth.slots; i++) {
        struct gpi_world_host *h = host_of(w, i);
        h->asked = false;
        if (!h->lost)
            continue;
        h->keeper = h->lost = h->dropped = false;
        w->slot[i].keeper.life++; /* the host discards every later fact of it */
        w->slot[i].keeper.alive = false;
        if (h->worker)
            gpi_host_forget(w, i);
    }
}

/* ---- all orders ---- */

static void note(struct gpi_world *w, const struct gpi_sched_action *a)
{
    if (a->slot == GPI_NOWHERE && a->device < w->truth.devices && a->how == GPI_NOTE_REMOVED)
        w->device[a->device].removed = true;
}

static void perform(struct gpi_world *w, const struct gpi_sched_action *a)
{
    if (a->kind == GPI_ACT_DROP_SPAWNER) {
        gpi_host_lose_spawner(w);
        return;
    }
    if (a->kind == GPI_ACT_NOTE)
        note(w, a);
    if (a->kind == GPI_ACT_GRANT || a->kind == GPI_ACT_REVOKE)
        gpi_work_ordered(w, a);
    if (a->slot >= w->truth.slots)
        return;
    switch (a->kind) {
    case GPI_ACT_MAKE: make(w, a->slot); break;
    case GPI_ACT_DISMISS:
        host_of(w, a->slot)->lost = true;
        gpi_keeper_order(w, a->slot, (struct gpi_world_order){ .kind = a->kind });
        break;
    case GPI_ACT_START: start(w, a); break;
    case GPI_ACT_RECALL:
        gpi_worker_race(w, a->slot);
        recall(w, a);
        break;
    case GPI_ACT_LOOK: look(w, a->slot, false); break;
    case GPI_ACT_HOLD:
        gpi_worker_race(w, a->slot);
        look(w, a->slot, true);
        break;
    case GPI_ACT_ALARM: alarm_task(w, a); break;
    case GPI_ACT_KILL:
    case GPI_ACT_KILL_AT:
        kill_worker(w, a);
        gpi_worker_race(w, a->slot);
        break;
    case GPI_ACT_END: end(w, a->slot); break;
    case GPI_ACT_GIVE_UP: give_up(w, a->slot); break;
    case GPI_ACT_READ_MEMORY: gpi_world_read_memory(w, a->slot); break;
    case GPI_ACT_SEAT: gpi_pool_seat(w, a); break;
    case GPI_ACT_SEAT_ON: gpi_pool_seat_on(w, a); break;
    case GPI_ACT_LIFE: gpi_pool_entered(w, a); break;
    case GPI_ACT_JUDGE: gpi_world_judge(w, a->slot, (enum gpi_judge)a->how); break;
    default: break;
    }
}

/* ---- decisions and sends ---- */

static bool send_one(struct gpi_world *w)
{
    struct gpi_sched_order sent;
    uint32_t slot, task;
    struct gpi_world_cell *c;

    if (!gpi_play_send(&w->play, w->now, &sent))
        return false;
    w->events++;
    gpi_oracle_sent(&w->oracle, &sent);
    slot = sent.slot;
    task = sent.task;
    if (slot >= w->truth.slots || task >= w->truth.tasks || sent.cell >= GPI_WORLD_CELLS)
        return true;
    c = &w->slot[slot].cell[sent.cell];
    if (c->used)
        gpi_oracle_object(&w->oracle, GPI_ORACLE_SAFETY, "a send into a cell that is in use");
    *c = (struct gpi_world_cell){ .used = true,
                                  .task = task,
                                  .number = ++w->slot[slot].number,
                                  .cancelled_at = GPI_NEVER };
    w->truth.task[task].unclaimed = true;
    w->truth.task[task].running = false;
    gpi_worker_wake(w, slot);
    if (w->slot[slot].worker.deaf)
        gpi_world_soon(w, GPI_FACT_PATIENCE, slot, host_of(w, slot)->incarnation, 2 * GPI_S);
    return true;
}

void gpi_host_decide(struct gpi_world *w)
{
    w->truth.now = w->now;
    gpi_oracle_decides(&w->oracle, true);
    gpi_play_decide(&w->play, w->now);
    gpi_host_perform(w);
    gpi_oracle_decides(&w->oracle, false);
    while (send_one(w))
        ;
}
