/* SPDX-License-Identifier: MIT */
/*
 * pool.c - the seats of a pooled core, between the plan and the table of their lives.
 *
 * The plan (plan.h) decides which class gets a worker on which devices, and when the worker may run
 * tasks.  A seat is a slot that has neither class nor device while it is OFF.  BOOT of the plan
 * assigns both for the life of one worker.  Until the worker is gone with its memory, its number in
 * the plan and its seat belong together.
 *
 * Tasks wait in the queue of their class.  In the plan, a stream stands for the first of them.  If
 * the plan runs the stream, it grants a worker: for one task, or until the plan revokes the grant.
 * A worker without a grant takes no task.
 *
 * Actions of the plan only leave marks at the seats.  So no fact is fed from within another.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/plan.h"
#include "sched/spread.h"

/* ---- memory ---- */

int gpi_pool_make(struct gpi_sched *c)
{
    struct gpi_plan_settings set = c->set.plan;

    if (!c->set.pooled)
        return 0;
    assert(c->set.slots > GPI_SPARE_SEATS);
    set.runs = c->set.slots - GPI_SPARE_SEATS;
    c->n_streams = set.runs + c->set.classes; /* one of each worker, and of each queue */
    set.tasks = c->n_streams + c->set.tasks;
    set.shapes = c->n_streams + GPI_OWN_SHAPES;
    set.classes = c->set.classes;
    set.devices = c->set.devices;
    c->outlasts_at = GPI_NEVER;
    c->plan = gpi_plan_create(&set);
    c->seat_of = malloc(sizeof *c->seat_of * set.runs);
    c->stream = malloc(sizeof *c->stream * c->n_streams);
    if (!c->plan || !c->seat_of || !c->stream)
        return -1;
    for (uint32_t i = 0; i < c->n_streams; i++)
        c->stream[i].next = i + 1 < c->n_streams ? i + 1 : GPI_NOWHERE;
    return 0;
}

void gpi_pool_free(struct gpi_sched *c)
{
    gpi_plan_destroy(c->plan);
    free(c->seat_of);
    free(c->stream);
}

static uint32_t class_number(const struct gpi_sched *c, const struct gpi_sched_class *k)
{
    return (uint32_t)(k - c->class);
}

/* The class of a pooled core has no slots of its own: the pool counts as one. */
void gpi_pool_add_class(struct gpi_sched *c, struct gpi_sched_class *k,
                        const struct gpi_plan_class *set)
{
    k->plan = *set;
    k->waiting = GPI_NOWHERE;
    k->n_slots = 1;
    if (set->residence == GPI_EXTERNAL) /* it may start late, and be killed late */
        k->plan.grace = gpi_time_add(gpi_time_add(set->grace, k->set.setup_limit),
                                     gpi_devices_longest_kill(c));
    gpi_plan_class_add(c->plan, class_number(c, k), &k->plan);
    c->unplanned = c->undecided = true;
}

void gpi_pool_add_device(struct gpi_sched *c, uint32_t device, const struct gpi_plan_has *has)
{
    gpi_plan_device_add(c->plan, device, has);
    c->unplanned = c->undecided = true;
}

void gpi_pool_add_place(struct gpi_sched *c, uint32_t set, uint32_t device)
{
    gpi_plan_places_add(c->plan, set, &(uint16_t){ (uint16_t)device }, 1);
    c->unplanned = c->undecided = true;
}

void gpi_pool_empty_places(struct gpi_sched *c, uint32_t set)
{
    gpi_plan_places_add(c->plan, set, NULL, 0);
    c->unplanned = c->undecided = true;
}

/* ---- actions of the plan ---- */

/* Returns how many tasks wait in the queue for a worker that has no grant yet. */
static uint32_t backlog(const struct gpi_sched_class *k)
{
    return k->queue.count > k->unused ? k->queue.count - k->unused : 0;
}

static struct gpi_sched_slot *seat_of(struct gpi_sched *c, uint32_t worker)
{
    return &c->slot[c->seat_of[worker]];
}

/* Ranks keepers by the time until one takes an order. */
static uint32_t readiness(const struct gpi_sched_slot *s)
{
    switch (s->seat.keeper) {
    case GPI_KEEPER_UP:
        return 3;
    case GPI_KEEPER_ASKED:
        return 2;
    case GPI_KEEPER_NONE:
        return 1;
    default:
        return 0; /* the last one has not ended yet */
    }
}

/* Returns the free seat that may have a worker first; or NULL. */
static struct gpi_sched_slot *free_seat(struct gpi_sched *c)
{
    struct gpi_sched_slot *best = NULL;

    for (uint32_t i = 0; i < c->n_slots; i++) {
        struct gpi_sched_slot *s = &c->slot[i];
        if (s->life == GPI_LIFE_OFF && s->known == GPI_KNOWN_NOTHING &&
            (!best || readiness(s) > readiness(best)))
            best = s;
    }
    return best;
}

/* A worker of the class is to start in the seat, on these devices. */
static void occupy(struct gpi_sched *c, struct gpi_sched_slot *s, struct gpi_sched_class *k,
                   const uint16_t *device, uint32_t n)
{
    gpi_spread_seat(c, s, k);
    s->n_devices = n;
    memcpy(s->device, device, n * sizeof *device);
    s->restart = &k->place[n ? device[0] : c->set.devices];
    s->evicted = s->to_evict = false;
    gpi_ring_add_for(
        c, s, (struct gpi_sched_action){ .kind = GPI_ACT_SEAT, .class = class_number(c, k) });
    for (uint32_t i = 0; i < n; i++)
        gpi_ring_add(c, (struct gpi_sched_action){ .kind = GPI_ACT_SEAT_ON,
                                                   .slot = gpi_slot_number(c, s),
                                                   .device = device[i] });
    gpi_life_enter(c, s, GPI_LIFE_WAIT);
}

static void boot(struct gpi_sched *c, const struct gpi_plan_action *a)
{
    struct gpi_sched_slot *s = free_seat(c);

    assert(s); /* there are more seats than workers */
    c->seat_of[a->worker] = gpi_slot_number(c, s);
    s->run = a->worker;
    s->known = GPI_KNOWN_BOOTS;
    occupy(c, s, &c->class[a->class], a->device, a->n_devices);
}

static void grant(struct gpi_sched *c, struct gpi_sched_slot *s, enum gpi_granted granted)
{
    s->granted = (uint8_t)granted;
    gpi_spread_refresh(c, s);
    gpi_ring_touch(c, s);
}

static void run_in(struct gpi_sched *c, struct gpi_sched_slot *s, const struct gpi_plan_action *a)
{
    s->stream = a->task;
    s->fresh = true;
    s->last_run = s->keep = 0;
    s->cut_short = false;
    if (a->task >= c->n_streams) {
        gpi_own_bind(c, s);
    } else {
        s->class->waiting = GPI_NOWHERE;
        s->class->n_fresh++;
    }
    grant(c, s, a->how == GPI_RUN_GRANT ? GPI_GRANTED_MANY : GPI_GRANTED_ONE);
}

/* Takes back the tasks that the worker has not begun, but for the first one: else two grants that
 * revoke each other would start nothing. */
static void take_back(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    bool is_first = true;

    for (uint64_t n = s->oldest; n <= s->number; n++) {
        const uint32_t cell = s->order[n % GPI_SLOT_CELLS], task = s->task[cell];
        if (!gpi_slot_has_number(s, n))
            continue;
        if (!is_first && !(s->claimed >> cell & 1) && c->task[task].wish == GPI_WISH_NO)
            gpi_tasks_recall(c, task, GPI_WISH_RETURN);
        is_first = false;
    }
}

/* No further task starts in the worker, but for the first one.  The reply to LOOK has the time by
 * which its tasks end. */
static void revoke(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->cut_short = s->fresh;
    grant(c, s, s->cut_short ? GPI_GRANTED_ONE : GPI_GRANTED_OVER);
    if (s->sent == 0)
        return;
    take_back(c, s);
    gpi_limits_look(c, s);
}

/* The worker is to go, once its grant is over. */
static void evict(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (s->evicted) /* UNLOAD may follow DRAIN */
        return;
    s->evicted = s->to_evict = true;
    s->evicted_at = c->now;
    if (s->granted == GPI_GRANTED_MANY)
        revoke(c, s);
    gpi_ring_touch(c, s);
}

uint32_t gpi_pool_first(const struct gpi_sched_class *k)
{
    return backlog(k) ? gpi_queue_at(&k->queue, k->unused) : GPI_NOWHERE;
}

/* Returns the task that the stream stands for, if it waits. */
static uint32_t first_of(const struct gpi_sched *c, uint32_t stream)
{
    const struct gpi_sched_class *k = &c->class[c->stream[stream].class];

    return k->waiting == stream ? gpi_pool_first(k) : GPI_NOWHERE;
}

/* A worker that is loaded has no task. */
static void promise(struct gpi_sched *c, const struct gpi_plan_action *a)
{
    const uint32_t task = a->task < c->n_streams ? first_of(c, a->task) : a->task - c->n_streams;
    const bool is_own = a->task >= c->n_streams;

    if (task < c->set.tasks && (!is_own || gpi_own_waits(c, task)))
        gpi_ring_promise(c, task, (enum gpi_promise)a->how, a->at);
}

static void perform(struct gpi_sched *c, const struct gpi_plan_action *a)
{
    switch ((enum gpi_plan_action_kind)a->kind) {
    case GPI_PLAN_BOOT:
        boot(c, a);
        break;
    case GPI_PLAN_RUN:
        if (a->worker == GPI_NOWHERE)
            gpi_external_grant(c, a);
        else
            run_in(c, seat_of(c, a->worker), a);
        break;
    case GPI_PLAN_REVOKE:
        revoke(c, seat_of(c, a->worker));
        break;
    case GPI_PLAN_DRAIN:
    case GPI_PLAN_UNLOAD:
        evict(c, seat_of(c, a->worker));
        break;
    case GPI_PLAN_HOPELESS:
        if (a->task >= c->n_streams)
            gpi_own_hopeless(c, a->task - c->n_streams);
        else
            gpi_tasks_end_queued(c, &c->class[c->stream[a->task].class], GPUD_OUTCOME_NO_WORKER);
        break;
    case GPI_PLAN_PROMISE:
        promise(c, a);
        break;
    }
}

static void perform_all(struct gpi_sched *c)
{
    struct gpi_plan_action a;

    while (gpi_plan_next(c->plan, &a))
        perform(c, &a);
}

/* The plan has got a fact, and is to decide. */
static void fed(struct gpi_sched *c)
{
    perform_all(c);
    c->unplanned = c->undecided = true;
}

/* ---- facts about a seat ---- */

/* The plan does not know its worker, or that one got stuck. */
static bool is_canary(const struct gpi_sched_slot *s)
{
    return s->known == GPI_KNOWN_NOTHING && s->life != GPI_LIFE_OFF && s->life != GPI_LIFE_STOPPED;
}

/* No task starts in a grant that has had none: for now, or since the worker is to go. */
static bool is_in_vain(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    const bool takes = s->counts || (s->chosen && gpi_spread_takes_chosen(c, s));

    return s->class->paused || gpi_devices_pause(c, s) || (s->to_evict && !takes);
}

/* The worker has no task left that its grant lets it have. */
static bool is_over(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    const bool used = s->granted == GPI_GRANTED_OVER ||
                      (s->class->queue.count == 0 && !s->chosen) ||
                      (s->granted == GPI_GRANTED_ONE && !s->fresh);

    if (!s->granted || s->sent || s->life == GPI_LIFE_DOOMED) /* it may be spared */
        return false;
    return used || s->life != GPI_LIFE_UP || (s->fresh && is_in_vain(c, s)) ||
           (!s->still && !gpi_spread_has_life(s->class, s));
}

static void free_stream(struct gpi_sched *c, uint32_t stream)
{
    c->stream[stream].next = c->free_stream;
    c->free_stream = stream;
}

static void end_grant(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const uint32_t stream = s->stream;
    const uint64_t run = s->granted == GPI_GRANTED_ONE ? s->last_run : s->class->mean_run;

    s->class->n_fresh -= s->fresh && !s->chosen;
    if (s->chosen)
        gpi_own_ended(c, s);
    else
        free_stream(c, stream);
    s->fresh = false;
    grant(c, s, GPI_GRANTED_NO);
    gpi_plan_end(c->plan, c->now, stream, s->last_run != 0, run, s->keep);
    fed(c);
}

/* The grant was revoked before its first task, which is the first of the queue, starts in this
 * turn.                                                                                  [R3] */
static void tell_end(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const struct gpi_sched_record *first = &c->task[gpi_queue_at(&s->class->queue, 0)];

    s->cut_short = false;
    gpi_plan_ends_by(c->plan, c->now, s->stream,
                     gpi_time_add(gpi_time_add(c->now, first->limit), s->class->set.grace));
    fed(c);
}

/* Its worker takes nothing more. */
static bool leaves(const struct gpi_sched_slot *s)
{
    const bool dies = gpi_slot_is_dying(s) && s->life != GPI_LIFE_DOOMED;

    return dies || s->life == GPI_LIFE_LEAVE || s->life == GPI_LIFE_END ||
           s->life == GPI_LIFE_COOL || s->life == GPI_LIFE_STUCK;
}

static void tell_up(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->known = GPI_KNOWN_UP;
    gpi_plan_up(c->plan, c->now, s->run);
    fed(c);
    if (s->class->n_hopeless && !s->class->paused) /* it was given up, and this worker was late */
        gpi_pool_class_set(c, s->class, GPI_CLASS_RESUME);
}

static void tell_leaves(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->known = GPI_KNOWN_LEAVES;
    if (s->evicted)
        return;
    gpi_plan_leaves(c->plan, c->now, s->run);
    fed(c);
}

/* If the class has failed, it boots no worker any more, and its tasks cannot start. */
static void tell_gone(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    struct gpi_sched_class *k = s->class;

    s->known = GPI_KNOWN_NOTHING;
    k->again = k->again > s->again ? k->again : s->again;
    k->n_hopeless = k->again == GPI_NEVER;
    gpi_plan_gone(c->plan, c->now, s->run, k->again);
    fed(c);
}

/* The plan has chosen a task for a stopped worker, and could choose it again.  So the worker is to
 * go. */
static void replace_stopped(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    tell_leaves(c, s);
    evict(c, s);
}

/* Feeds what the plan does not know yet about the seat. */
void gpi_pool_follow(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (s->chosen && s->fresh && s->still && s->known == GPI_KNOWN_UP)
        replace_stopped(c, s);
    if (is_over(c, s))
        end_grant(c, s);
    else if (s->granted && s->cut_short)
        tell_end(c, s);
    if (s->life == GPI_LIFE_UP && s->known == GPI_KNOWN_BOOTS)
        tell_up(c, s);
    if (leaves(s) && (s->known == GPI_KNOWN_BOOTS || s->known == GPI_KNOWN_UP))
        tell_leaves(c, s);
    if (s->life == GPI_LIFE_OFF || s->life == GPI_LIFE_STOPPED) {
        if (s->known)
            tell_gone(c, s);
        else if (s->n_devices)
            gpi_pool_device(c, s->device[0]); /* its canary has ended */
    } else if (s->to_evict && !s->granted) {
        s->to_evict = false;
        if (!leaves(s))
            gpi_slot_input(c, s, GPI_IN_EVICT);
    }
}

/* It is known since when the tasks of the worker run.                                     [R3] */
void gpi_pool_looked(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const bool revoked = s->granted == GPI_GRANTED_OVER ||
                         (s->granted == GPI_GRANTED_MANY && s->known == GPI_KNOWN_LEAVES);

    if (!revoked || s->sent == 0)
        return;
    gpi_plan_ends_by(c->plan, c->now, s->stream, gpi_limits_end(c, s));
    fed(c);
}

/* A canary that the plan does not know is on the device, or its memory is not free again. */
static bool has_canary(const struct gpi_sched *c, uint32_t device)
{
    for (uint32_t i = 0; i < c->n_slots; i++)
        if (is_canary(&c->slot[i]) && c->slot[i].life != GPI_LIFE_STUCK &&
            gpi_device_has(&c->slot[i], device))
            return true;
    return false;
}

void gpi_pool_device(struct gpi_sched *c, uint32_t device)
{
    const struct gpi_sched_device *v = &c->device[device];
    const bool out = v->may >= GPI_MAY_OUT || has_canary(c, device);
    const enum gpi_plan_may may = v->removing   ? GPI_PLAN_GONE
                                  : v->draining ? GPI_PLAN_DRAINED
                                  : out         ? GPI_PLAN_OUT
                                  : v->paused   ? GPI_PLAN_PAUSED
                                                : GPI_PLAN_IN;

    if (c->device[device].planned == may)
        return;
    c->device[device].planned = (uint8_t)may;
    gpi_plan_device(c->plan, c->now, device, may);
    fed(c);
}

/* Returns the number of seats that run a canary, or did until their worker got stuck. */
static uint32_t count_canaries(const struct gpi_sched *c)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n_slots; i++)
        n += is_canary(&c->slot[i]);
    return n;
}

/* Returns the first class that goes on, and has workers; or NULL. */
static struct gpi_sched_class *canary_class(struct gpi_sched *c)
{
    for (uint32_t i = 0; i < c->n_classes; i++)
        if (!c->class[i].ending && c->class[i].plan.residence != GPI_EXTERNAL)
            return &c->class[i];
    return NULL;
}

/* The spare seat and a class run the canary of a device that is out of use. */
void gpi_pool_try(struct gpi_sched *c, uint32_t device)
{
    struct gpi_sched_slot *s = count_canaries(c) < GPI_SPARE_SEATS ? free_seat(c) : NULL;

    struct gpi_sched_class *k = canary_class(c);

    if (!s || !gpi_device_wants_try(c, device) || !k || gpi_close_starts_nothing(c))
        return;
    occupy(c, s, k, &(uint16_t){ (uint16_t)device }, 1);
    gpi_life_only(c, s, true);
}

/* ---- readings, and requests of the user ---- */

void gpi_pool_foreign(struct gpi_sched *c, uint32_t device, uint64_t bytes, uint32_t load)
{
    gpi_plan_foreign(c->plan, c->now, device, bytes, load);
    fed(c);
}

/* A reading may be older than the end of the worker. */
void gpi_pool_observed(struct gpi_sched *c, const struct gpi_sched_slot *s, uint32_t device,
                       uint64_t bytes)
{
    if (!s->known)
        return;
    gpi_plan_observed(c->plan, c->now, s->run, device, bytes);
    fed(c);
}

/* The failures of the class count no more, nor those of its seats that the plan does not know. */
static void forgive(struct gpi_sched *c, struct gpi_sched_class *k)
{
    k->again = k->failures = k->n_hopeless = 0;
    for (uint32_t i = 0; i <= c->set.devices; i++)
        gpi_restart_forget(&k->place[i]);
    for (uint32_t i = 0; i < c->n_slots; i++)
        if (c->slot[i].class == k)
            c->slot[i].again = 0;
}

/* Seats that are OFF may still point to it. */
bool gpi_pool_is_unused(const struct gpi_sched *c, const struct gpi_sched_class *k)
{
    bool is_unused = k->queue.count == 0 && k->n_own == 0 && k->n_planned == 0 &&
                     k->deferred == 0 && k->waiting == GPI_NOWHERE;

    for (uint32_t i = 0; i < c->n_slots && is_unused; i++) {
        const struct gpi_sched_slot *s = &c->slot[i];
        is_unused = s->class != k || (s->known == GPI_KNOWN_NOTHING && !is_canary(s));
    }
    return is_unused;
}

void gpi_pool_class_set(struct gpi_sched *c, struct gpi_sched_class *k,
                        enum gpi_plan_class_what what)
{
    const bool ends = what == GPI_CLASS_END;
    const bool pauses = what == GPI_CLASS_PAUSE || what == GPI_CLASS_DRAIN || ends;

    if (what == GPI_CLASS_REMOVE) {
        assert(k->ending && gpi_pool_is_unused(c, k));
        k->removed = true;
        return;
    }
    assert(!k->ending);
    if (what == GPI_CLASS_LOAD || what == GPI_CLASS_RESUME)
        forgive(c, k);
    k->paused = pauses || (k->paused && what != GPI_CLASS_RESUME);
    k->ending = ends;
    if (pauses)
        gpi_external_pause(c, k);
    if (ends)
        gpi_tasks_end_waiting(c, k, GPUD_OUTCOME_CANCELLED);
    gpi_plan_class_set(c->plan, c->now, class_number(c, k), what);
    fed(c);
    for (uint32_t i = 0; i < c->n_slots && (pauses || what == GPI_CLASS_RESUME); i++)
        if (c->slot[i].class == k)
            gpi_life_pause(c, &c->slot[i], pauses);
}

/* ---- decisions ---- */

static void withdraw(struct gpi_sched *c, struct gpi_sched_class *k)
{
    const uint32_t stream = k->waiting;

    k->waiting = GPI_NOWHERE;
    gpi_plan_withdraw(c->plan, c->now, stream);
    free_stream(c, stream);
    fed(c);
}

static void submit(struct gpi_sched *c, struct gpi_sched_class *k, uint32_t task)
{
    const struct gpi_sched_record *t = &c->task[task];
    const uint32_t stream = c->free_stream;
    const struct gpi_plan_task what = { .class = class_number(c, k),
                                        .priority = t->priority,
                                        .order = t->number,
                                        .limit = t->limit,
                                        .request = k->plan.need,
                                        .n_requests = k->plan.n_needs,
                                        .stream = true };

    assert(stream < c->n_streams);
    if (!gpi_plan_submit(c->plan, c->now, stream, &what))
        return; /* no room for another shape: again with the next decision */
    c->free_stream = c->stream[stream].next;
    c->stream[stream].class = what.class;
    k->waiting = stream;
    k->waits_for = t->number;
    k->waits_with = t->priority;
    fed(c);
}

/* Its tasks take a fourth more, or less, than the plan knows. */
static bool has_news(const struct gpi_sched_class *k)
{
    const uint64_t quarter = k->told_run / 4;

    return k->mean_run > k->told_run + quarter || k->mean_run < k->told_run - quarter;
}

/* Returns since when a task of the class has run, the longest of all; GPI_NEVER: none runs. */
static uint64_t runs_since(const struct gpi_sched *c, const struct gpi_sched_class *k)
{
    uint64_t since = GPI_NEVER;

    for (uint32_t i = 0; i < c->n_slots; i++)
        if (c->slot[i].class == k && c->slot[i].sent && !c->slot[i].still)
            since = gpi_time_min(since, c->slot[i].heard);
    return since;
}

/* Returns when a task of the class will have run for longer than a run takes to the plan, while no
 * task of it has ended, and one waits. */
static uint64_t outlasts_at(const struct gpi_sched *c, const struct gpi_sched_class *k)
{
    const uint64_t quarter = k->plan.run / 4;

    if (k->mean_run || k->waiting == GPI_NOWHERE)
        return GPI_NEVER;
    return gpi_time_add(gpi_time_add(runs_since(c, k), k->plan.run),
                        quarter > GPI_MS ? quarter : GPI_MS);
}

/* The stream in the plan stands for the first task that no unused grant is about to take. */
static void refresh(struct gpi_sched *c, struct gpi_sched_class *k)
{
    const uint32_t n = backlog(k), first = gpi_pool_first(k);

    if (k->waiting != GPI_NOWHERE && (n == 0 || c->task[first].number != k->waits_for))
        withdraw(c, k);
    if (k->waiting == GPI_NOWHERE && n)
        submit(c, k, first);
    if (k->behind != n || has_news(k)) {
        k->behind = n;
        k->told_run = k->mean_run;
        gpi_plan_queue(c->plan, c->now, class_number(c, k), n ? n - 1 : 0, k->told_run);
        fed(c);
    }
    if (outlasts_at(c, k) <= c->now) {
        k->plan.run = c->now - runs_since(c, k);
        gpi_plan_run_seed(c->plan, c->now, class_number(c, k), k->plan.run);
        fed(c);
    }
}

/* Returns true if the plan is to know more about the queue. */
static bool is_stale(const struct gpi_sched *c, const struct gpi_sched_class *k)
{
    const uint32_t n = backlog(k);

    if (k->waiting == GPI_NOWHERE)
        return n > 0;
    return n == 0 || c->unplanned || has_news(k) || (n != k->behind && n > k->wants_from) ||
           k->queue.band[0].priority > k->waits_with || outlasts_at(c, k) <= c->now;
}

/* The plan learns first which tasks wait no more: it has no more room for shapes than there are. */
static void refresh_own(struct gpi_sched *c)
{
    uint32_t i;

    for (i = c->own.first; i != GPI_NOWHERE; i = c->own.task[i].next) {
        if (gpi_own_is_hopeless(c, i))
            gpi_tasks_end_one(c, i, GPUD_OUTCOME_NO_WORKER);
        if (gpi_own_withdraw(c, i))
            fed(c);
    }
    while ((i = gpi_own_unlist(c)) != GPI_NOWHERE)
        if (gpi_own_submit(c, i))
            fed(c);
}

static void refresh_all(struct gpi_sched *c)
{
    if (c->own.first != GPI_NOWHERE)
        refresh_own(c);
    for (uint32_t i = 0; i < c->n_classes; i++)
        if (is_stale(c, &c->class[i]))
            refresh(c, &c->class[i]);
}

/* If the plan decides, it knows the first task of each queue. */
static bool plan_once(struct gpi_sched *c)
{
    c->unplanned |= gpi_plan_due(c->plan) <= c->now;
    refresh_all(c);
    if (c->unplanned)
        refresh_all(c);
    if (!c->unplanned)
        return false;
    c->unplanned = false;
    gpi_plan_decide(c->plan, c->now);
    perform_all(c);
    for (uint32_t i = 0; i < c->n_classes; i++)
        if (c->class[i].waiting != GPI_NOWHERE)
            c->class[i].wants_from = gpi_plan_wants_from(c->plan, i);
    return true;
}

/* Grants of workers that have no task, and whose queue is empty, end. */
void gpi_pool_end_idle(struct gpi_sched *c)
{
    bool any = false;

    for (uint32_t i = 0; i < c->n_classes; i++) {
        struct gpi_sched_class *k = &c->class[i];
        if (k->queue.count)
            continue;
        gpi_spread_move(c, k);
        any |= k->n_fresh || gpi_spread_has_idle(k);
    }
    for (uint32_t i = 0; any && i < c->n_slots; i++)
        if (is_over(c, &c->slot[i]))
            end_grant(c, &c->slot[i]);
}

/* Until no class has tasks of which the plan does not know. */
void gpi_pool_decide(struct gpi_sched *c)
{
    while (plan_once(c))
        ;
    c->outlasts_at = GPI_NEVER;
    for (uint32_t i = 0; i < c->n_classes; i++)
        c->outlasts_at = gpi_time_min(c->outlasts_at, outlasts_at(c, &c->class[i]));
    c->undecided = false;
}

bool gpi_pool_idles(const struct gpi_sched *c)
{
    return c->plan && gpi_classes_wait(c) && !gpi_close_starts_nothing(c) &&
           gpi_plan_idles(c->plan);
}

uint64_t gpi_pool_due(const struct gpi_sched *c)
{
    return c->plan && !gpi_close_starts_nothing(c)
               ? gpi_time_min(gpi_plan_due(c->plan), c->outlasts_at)
               : GPI_NEVER;
}
