/* SPDX-License-Identifier: MIT */
/* plan_world.c - the events of a world: one fact after the other. */
#include <string.h>

#include "base/clock.h"
#include "sim/plan_world_parts.h"

#define TRIES 16u /* for an event that is possible now */
#define NO_ONE UINT32_MAX

/* On a logarithmic scale: 1 to 10 is as likely as 10 to 100. */
static uint64_t scale(struct gpi_plan_world *w, uint64_t most)
{
    uint64_t low = 1ull << gpi_plan_below(w, 16);

    low = low < most ? low : most;
    return low + gpi_plan_below(w, low < most / 2 ? low : most - low + 1);
}

/* ---- the next event ---- */

static bool is_pending(uint32_t life)
{
    return life == GPI_TRIAL_BOOTS || life == GPI_TRIAL_UNLOADS;
}

static uint32_t next_worker(const struct gpi_plan_world *w)
{
    uint32_t best = NO_ONE;

    for (uint32_t i = 0; i < w->set.runs; i++)
        if (is_pending(w->trial->worker[i].life) &&
            (best == NO_ONE || w->worker[i].at < w->worker[best].at))
            best = i;
    return best;
}

static uint32_t next_task(const struct gpi_plan_world *w)
{
    uint32_t best = NO_ONE;

    for (uint32_t i = 0; i < w->set.tasks; i++)
        if (w->trial->task[i].state == GPI_TRIAL_RUNS &&
            (best == NO_ONE || w->task[i].ends < w->task[best].ends))
            best = i;
    return best;
}

/* Returns the time at which something happens, which no fact may pass. */
static uint64_t horizon(const struct gpi_plan_world *w)
{
    const uint32_t worker = next_worker(w), task = next_task(w);

    return gpi_time_min(worker == NO_ONE ? GPI_NEVER : w->worker[worker].at,
                        task == NO_ONE ? GPI_NEVER : w->task[task].ends);
}

static void go_to(struct gpi_plan_world *w, uint64_t time)
{
    w->now = time > w->now ? time : w->now;
}

/* ---- events ---- */

/* Returns a task whose run is revoked, from a number on, or NO_ONE. */
static uint32_t revoked_task(const struct gpi_plan_world *w, uint32_t from)
{
    const struct gpi_trial_task *t = w->trial->task;

    while (from < w->set.tasks && !(t[from].state == GPI_TRIAL_RUNS && t[from].revoked))
        from++;
    return from < w->set.tasks ? from : NO_ONE;
}

static bool submit(struct gpi_plan_world *w, struct gpi_fact *f)
{
    const uint32_t revoked =
        gpi_plan_in_part(w, GPI_PLAN_PART_AHEAD, 40) ? revoked_task(w, 0) : NO_ONE;
    const uint32_t kind = revoked != NO_ONE ? w->trial->task[revoked].class
                                            : (uint32_t)gpi_plan_below(w, GPI_PLAN_WORLD_REQUESTS);
    const bool resident = w->trial->class[kind % w->n_classes].is.residence == GPI_RESIDENT;

    f->kind = GPI_FACT_SUBMIT;
    f->class = kind % w->n_classes;
    while (f->task < w->set.tasks && w->trial->task[f->task].state != GPI_TRIAL_NONE)
        f->task++;
    if (!resident) {
        f->n_requests = w->n_made[kind];
        memcpy(f->request, w->made[kind], sizeof f->request);
    }
    f->job.priority =
        gpi_plan_in_part(w, GPI_PLAN_PART_PRIORITIES, 30) ? (int32_t)gpi_plan_below(w, 5) - 2 : 0;
    f->job.order = ++w->order * 8;
    if (revoked != NO_ONE || gpi_plan_in_part(w, GPI_PLAN_PART_OLD, 15))
        f->job.order -= gpi_plan_below(w, w->order * 7);
    f->job.stream = w->trial->class[f->class].is.residence != GPI_EXTERNAL &&
                    (revoked != NO_ONE || gpi_plan_in_part(w, GPI_PLAN_PART_STREAMS, 60));
    f->job.limit = gpi_plan_chance(w, 15) ? GPI_NEVER : (100 + scale(w, 50000)) * w->unit;
    if (gpi_trial_refuses(w->trial, f))
        return false;
    w->task[f->task].dies = false;
    w->task[f->task].takes = f->job.limit == GPI_NEVER
                                 ? gpi_plan_units(w, 100000)
                                 : f->job.limit / 100 * (20 + gpi_plan_below(w, 80));
    if (f->job.limit != GPI_NEVER && gpi_plan_chance(w, 50))
        w->task[f->task].takes += gpi_plan_units(w, GRACE);
    return true;
}

static bool end_task(struct gpi_plan_world *w, struct gpi_fact *f, uint32_t task, bool good)
{
    f->kind = GPI_FACT_END;
    f->task = task;
    f->good = good;
    if (gpi_plan_in_part(w, GPI_PLAN_PART_RUNS, 50))
        f->run = 1 + gpi_plan_units(w, 20000);
    if (gpi_plan_in_part(w, GPI_PLAN_PART_KEEP_TASK, 30))
        f->keep_alive = 1 + gpi_plan_units(w, 50000);
    return true;
}

static bool runs_alone(const struct gpi_trial_task *t)
{
    return t->state == GPI_TRIAL_RUNS && t->worker == GPI_NOWHERE;
}

/* Often it ends as late as it may. */
static void draw_end(struct gpi_plan_world *w, uint32_t task, uint64_t *ret_by)
{
    const uint64_t most = (gpi_plan_chance(w, 10) ? 0 : scale(w, 50000)) * w->unit;
    const bool is_known = gpi_plan_chance(w, 75);

    *ret_by = is_known ? w->now + most : GPI_NEVER;
    w->task[task].ends = w->now + (gpi_plan_chance(w, 50) ? most : gpi_plan_below(w, most + 1));
}

/* The task ends by another time, which may be now, or never. */
static bool move_end(struct gpi_plan_world *w, struct gpi_fact *f, uint32_t task)
{
    f->kind = GPI_FACT_ENDS_BY;
    f->task = task;
    draw_end(w, task, &f->at);
    return true;
}

static bool end(struct gpi_plan_world *w, struct gpi_fact *f)
{
    const uint32_t task = next_task(w);

    if (task == NO_ONE || w->task[task].ends > horizon(w))
        return false;
    go_to(w, w->task[task].ends);
    if (runs_alone(&w->trial->task[task]) && gpi_plan_in_part(w, GPI_PLAN_PART_ENDS_BY, 15))
        return move_end(w, f, task);
    return end_task(w, f, task, gpi_plan_chance(w, 80));
}

/* A revoked run ends soon, or only some time; the caller may also know no time. */
static bool limit_run(struct gpi_plan_world *w, struct gpi_fact *f)
{
    uint64_t ends;

    f->kind = GPI_FACT_ENDS_BY;
    f->task = revoked_task(w, (uint32_t)gpi_plan_below(w, w->set.tasks));
    if (f->task == NO_ONE)
        return false;
    ends = w->task[f->task].ends;
    f->at = (ends > w->now ? ends : w->now) + gpi_plan_units(w, 5000);
    return true;
}

static bool know_end(struct gpi_plan_world *w, struct gpi_fact *f)
{
    const uint32_t task = (uint32_t)gpi_plan_below(w, w->set.tasks);

    return gpi_plan_has(w, GPI_PLAN_PART_ENDS_BY) && runs_alone(&w->trial->task[task]) &&
           move_end(w, f, task);
}

/* Often it has more than the first device has. */
static void make_adopted(struct gpi_plan_world *w, struct gpi_request *r)
{
    *r = (struct gpi_request){
        .devices = gpi_plan_chance(w, 70) ? 1 : (uint32_t)gpi_plan_below(w, 4),
        .share = 1000 * (uint32_t)gpi_plan_below(w, 11),
        .memory = gpi_plan_chance(w, 25) ? GPI_MEMORY_ALL : GIB * gpi_plan_below(w, 60),
    };
    if (r->devices > w->n_devices)
        r->devices = w->n_devices;
    if (gpi_plan_in_part(w, GPI_PLAN_PART_HOST, 40))
        r->cpus = (uint32_t)gpi_plan_below(w, 10);
    if (gpi_plan_in_part(w, GPI_PLAN_PART_HOST, 20))
        r->host_memory = GIB * gpi_plan_below(w, 20);
}

static bool adopt(struct gpi_plan_world *w, struct gpi_fact *f)
{
    uint32_t first;

    f->kind = GPI_FACT_ADOPT;
    if (!gpi_plan_has(w, GPI_PLAN_PART_ADOPT))
        return false;
    f->class = (uint32_t)gpi_plan_below(w, w->n_classes);
    while (f->task < w->set.tasks && w->trial->task[f->task].state != GPI_TRIAL_NONE)
        f->task++;
    make_adopted(w, &f->request[0]);
    f->grant = f->n_requests = 1;
    f->n_devices = f->request[0].devices;
    first = gpi_plan_chance(w, 40) ? 0 : (uint32_t)gpi_plan_below(w, w->n_devices);
    for (uint32_t i = 0; i < f->n_devices; i++)
        f->list[i] = (uint16_t)((first + i) % w->n_devices);
    f->job.limit = gpi_plan_chance(w, 30) ? GPI_NEVER : (100 + scale(w, 50000)) * w->unit;
    f->at = GPI_NEVER;
    if (gpi_trial_refuses(w->trial, f))
        return false;
    w->task[f->task].dies = false;
    draw_end(w, f->task, &f->at);
    return true;
}

static bool withdraw(struct gpi_plan_world *w, struct gpi_fact *f)
{
    f->kind = GPI_FACT_WITHDRAW;
    f->task = (uint32_t)gpi_plan_below(w, w->set.tasks);
    return !gpi_trial_refuses(w->trial, f);
}

/* The worker's task ends, and the worker is gone. */
static bool leave_next(struct gpi_plan_world *w, struct gpi_fact *f, uint32_t worker)
{
    const struct gpi_trial_worker *t = &w->trial->worker[worker];

    if (t->task != GPI_NOWHERE)
        return end_task(w, f, t->task, false);
    f->kind = GPI_FACT_GONE;
    f->worker = worker;
    f->again = gpi_time_add(w->now, w->worker[worker].again);
    w->worker[worker].dies = false;
    return true;
}

static bool worker_event(struct gpi_plan_world *w, struct gpi_fact *f)
{
    const uint32_t worker = next_worker(w);

    if (worker == NO_ONE || w->worker[worker].at > horizon(w))
        return false;
    go_to(w, w->worker[worker].at);
    f->worker = worker;
    f->kind = GPI_FACT_UP;
    if (w->trial->worker[worker].life == GPI_TRIAL_BOOTS && !w->worker[worker].fails)
        return true;
    w->worker[worker].again = w->worker[worker].fails ? gpi_plan_units(w, 20000) : 0;
    return leave_next(w, f, worker);
}

static bool leave(struct gpi_plan_world *w, struct gpi_fact *f)
{
    const uint32_t worker = (uint32_t)gpi_plan_below(w, w->set.runs);
    const uint32_t life = w->trial->worker[worker].life;

    if (!gpi_plan_has(w, GPI_PLAN_PART_LEAVES) || life == GPI_TRIAL_OFF ||
        life == GPI_TRIAL_UNLOADS)
        return false;
    w->worker[worker].dies = true;
    w->worker[worker].again = gpi_plan_chance(w, 50) ? gpi_plan_units(w, 20000) : 0;
    return leave_next(w, f, worker);
}

/* A worker goes after some time, without an order. */
static bool doom(struct gpi_plan_world *w, struct gpi_fact *f)
{
    f->kind = GPI_FACT_LEAVES;
    f->worker = (uint32_t)gpi_plan_below(w, w->set.runs);
    if (!gpi_plan_has(w, GPI_PLAN_PART_DOOMED) || gpi_trial_refuses(w->trial, f))
        return false;
    w->worker[f->worker].at = w->now + gpi_plan_units(w, 5000);
    w->worker[f->worker].fails = gpi_plan_chance(w, 30); /* none boots for a while */
    return true;
}

static bool is_on(const uint16_t *device, uint32_t n, uint32_t d)
{
    for (uint32_t i = 0; i < n; i++)
        if (device[i] == d)
            return true;
    return false;
}

/* The caller ends the tasks and workers of the device. */
static void break_device(struct gpi_plan_world *w, uint32_t d)
{
    const struct gpi_trial *t = w->trial;

    for (uint32_t i = 0; i < w->set.tasks; i++)
        w->task[i].dies |= t->task[i].state == GPI_TRIAL_RUNS && t->task[i].worker == GPI_NOWHERE &&
                           is_on(t->task[i].device, t->task[i].n_devices, d);
    for (uint32_t i = 0; i < w->set.runs; i++)
        if (t->worker[i].life != GPI_TRIAL_OFF &&
            is_on(t->worker[i].device, t->worker[i].n_devices, d)) {
            w->worker[i].dies = true;
            w->worker[i].again = 0;
        }
}

static bool change_device(struct gpi_plan_world *w, struct gpi_fact *f)
{
    f->kind = GPI_FACT_STATE;
    f->device = (uint32_t)gpi_plan_below(w, w->n_devices);
    f->what = GPI_PLAN_IN;
    if (gpi_plan_in_part(w, GPI_PLAN_PART_PAUSED, 25))
        f->what = GPI_PLAN_PAUSED;
    else if (gpi_plan_in_part(w, GPI_PLAN_PART_DRAINED, 25))
        f->what = GPI_PLAN_DRAINED;
    else if (gpi_plan_in_part(w, GPI_PLAN_PART_OUT, 30))
        f->what = GPI_PLAN_OUT;
    else if (gpi_plan_in_part(w, GPI_PLAN_PART_LOST, 10))
        f->what = GPI_PLAN_GONE;
    if (gpi_trial_refuses(w->trial, f))
        return false;
    if (f->what == GPI_PLAN_OUT || f->what == GPI_PLAN_GONE)
        break_device(w, f->device);
    return true;
}

static bool read_foreign(struct gpi_plan_world *w, struct gpi_fact *f)
{
    f->kind = GPI_FACT_FOREIGN;
    f->device = (uint32_t)gpi_plan_below(w, w->n_devices);
    f->bytes = gpi_plan_in_part(w, GPI_PLAN_PART_FOREIGN, 50) ? gpi_plan_below(w, 10 * GIB) : 0;
    f->load = gpi_plan_in_part(w, GPI_PLAN_PART_LOAD, 50) ? (uint32_t)gpi_plan_below(w, 10001) : 0;
    return gpi_plan_has(w, GPI_PLAN_PART_FOREIGN) || gpi_plan_has(w, GPI_PLAN_PART_LOAD);
}

/* A worker may take more than its word: up to a third. */
static bool read_worker(struct gpi_plan_world *w, struct gpi_fact *f)
{
    const struct gpi_trial_worker *t;
    uint64_t word;

    f->kind = GPI_FACT_OBSERVED;
    f->worker = (uint32_t)gpi_plan_below(w, w->set.runs);
    t = &w->trial->worker[f->worker];
    if (!gpi_plan_has(w, GPI_PLAN_PART_OBSERVED) || t->life == GPI_TRIAL_OFF || t->n_devices == 0)
        return false;
    f->device = t->device[gpi_plan_below(w, t->n_devices)];
    word = t->need.memory == GPI_MEMORY_ALL ? 12 * GIB : t->need.memory;
    f->bytes = gpi_plan_below(w, word + word / 3 + GIB);
    return true;
}

/* So may a task without a worker. */
static bool read_task(struct gpi_plan_world *w, struct gpi_fact *f)
{
    const struct gpi_trial_task *t;

    f->kind = GPI_FACT_OBSERVED_OF;
    f->task = (uint32_t)gpi_plan_below(w, w->set.tasks);
    t = &w->trial->task[f->task];
    if (!gpi_plan_has(w, GPI_PLAN_PART_OBSERVED) || !runs_alone(t) || t->n_devices == 0)
        return false;
    f->device = t->device[gpi_plan_below(w, t->n_devices)];
    f->bytes = gpi_plan_below(w, 60 * GIB);
    return true;
}

static bool set_class(struct gpi_plan_world *w, struct gpi_fact *f)
{
    static const enum gpi_plan_class_what what[] = {
        GPI_CLASS_PAUSE, GPI_CLASS_RESUME, GPI_CLASS_RESUME, GPI_CLASS_DRAIN,
        GPI_CLASS_LOAD,  GPI_CLASS_UNLOAD, GPI_CLASS_PIN,    GPI_CLASS_UNPIN,
        GPI_CLASS_END,
    };

    f->kind = GPI_FACT_CLASS_SET;
    f->class = (uint32_t)gpi_plan_below(w, w->n_classes);
    f->what = what[gpi_plan_below(w, sizeof what / sizeof *what)];
    return gpi_plan_has(w, GPI_PLAN_PART_CLASS_SETS);
}

/* Often a number that is just enough for a further worker, or just too small. */
static bool queue(struct gpi_plan_world *w, struct gpi_fact *f)
{
    uint32_t from;

    f->kind = GPI_FACT_QUEUE;
    f->class = (uint32_t)gpi_plan_below(w, w->n_classes);
    if (!gpi_plan_has(w, GPI_PLAN_PART_QUEUES) || gpi_trial_refuses(w->trial, f))
        return false;
    from = gpi_plan_wants_from(w->trial->plan, f->class);
    if (gpi_plan_chance(w, 50))
        f->queued = (uint32_t)scale(w, 1u << 20) - 1;
    else if (from != UINT32_MAX)
        f->queued = from - (from && gpi_plan_chance(w, 50));
    if (gpi_plan_in_part(w, GPI_PLAN_PART_RUNS, 50))
        f->run = gpi_plan_units(w, 5000);
    return true;
}

static bool decide(struct gpi_plan_world *w, struct gpi_fact *f)
{
    f->kind = GPI_FACT_DECIDE;
    w->decides = false;
    return true;
}

/* The plan wants to decide at a time of its own. */
static bool wake(struct gpi_plan_world *w, struct gpi_fact *f)
{
    const uint64_t due = gpi_plan_due(w->trial->plan);

    if (due == GPI_NEVER || due > horizon(w))
        return false;
    go_to(w, due);
    return decide(w, f);
}

static bool pass_time(struct gpi_plan_world *w, struct gpi_fact *f)
{
    const uint64_t until = gpi_time_min(horizon(w), w->now + 3000 * w->unit);

    if (until > w->now)
        w->now += gpi_plan_below(w, until - w->now);
    return decide(w, f);
}

static const struct {
    uint32_t weight;
    bool (*make)(struct gpi_plan_world *w, struct gpi_fact *f);
} events[] = {
    { 90, submit },       { 80, end },         { 25, worker_event }, { 15, wake },
    { 80, limit_run },    { 8, withdraw },     { 4, leave },         { 4, doom },
    { 5, change_device }, { 4, read_foreign }, { 4, read_worker },   { 4, set_class },
    { 6, queue },         { 4, pass_time },    { 8, adopt },         { 15, know_end },
    { 10, read_task },
};
#define EVENTS (sizeof events / sizeof *events)

static bool draw_event(struct gpi_plan_world *w, struct gpi_fact *f)
{
    uint64_t sum = 0, at;
    uint32_t i = 0;

    for (uint32_t k = 0; k < EVENTS; k++)
        sum += events[k].weight;
    at = gpi_plan_below(w, sum);
    while (at >= events[i].weight)
        at -= events[i++].weight;
    *f = (struct gpi_fact){ .now = w->now };
    return events[i].make(w, f);
}

/* A caller does this at once: it ends the tasks and workers of a broken device, and withdraws each
 * hopeless task. */
static bool clean_up(struct gpi_plan_world *w, struct gpi_fact *f)
{
    for (uint32_t i = 0; i < w->set.tasks; i++) {
        if (w->trial->task[i].hopeless) {
            f->kind = GPI_FACT_WITHDRAW;
            f->task = i;
            return true;
        }
        if (w->task[i].dies)
            return w->task[i].dies = false, end_task(w, f, i, false);
    }
    for (uint32_t i = 0; i < w->set.runs; i++)
        if (w->worker[i].dies)
            return leave_next(w, f, i);
    return false;
}

static void next_event(struct gpi_plan_world *w, struct gpi_fact *f)
{
    uint32_t tries = 0;

    while (tries < TRIES && !draw_event(w, f))
        tries++;
    if (tries == TRIES) {
        *f = (struct gpi_fact){ 0 };
        (void)pass_time(w, f);
    } else if (f->kind != GPI_FACT_DECIDE) {
        w->decides = gpi_plan_chance(w, 70);
    }
}

bool gpi_plan_world_next(struct gpi_plan_world *w, struct gpi_fact *f)
{
    if (gpi_plan_world_set_up(w, f))
        return true;
    *f = (struct gpi_fact){ 0 };
    if (w->source.data && w->source.left == 0)
        return false;
    if (w->decides && gpi_plan_in_part(w, GPI_PLAN_PART_LATE, 50))
        (void)decide(w, f);
    else if (clean_up(w, f))
        ;
    else if (w->decides)
        (void)decide(w, f);
    else
        next_event(w, f);
    f->now = w->now;
    return true;
}

void gpi_plan_world_note(struct gpi_plan_world *w, const struct gpi_plan_action *a)
{
    if (a->kind == GPI_PLAN_RUN && a->how == GPI_RUN_GRANT) {
        w->task[a->task].ends = w->now + gpi_plan_units(w, 100000);
    } else if (a->kind == GPI_PLAN_RUN) {
        w->task[a->task].ends = w->now + w->task[a->task].takes;
    } else if (a->kind == GPI_PLAN_REVOKE) {
        w->task[a->task].ends =
            gpi_time_min(w->task[a->task].ends, w->now + gpi_plan_units(w, 8000));
    } else if (a->kind == GPI_PLAN_BOOT) {
        w->worker[a->worker].at = w->now + 1000 * w->unit + gpi_plan_units(w, 40000);
        w->worker[a->worker].fails = gpi_plan_in_part(w, GPI_PLAN_PART_BOOTS_FAIL, 10);
        w->worker[a->worker].again = 0;
        w->worker[a->worker].dies = false;
    } else if (a->kind == GPI_PLAN_UNLOAD) {
        w->worker[a->worker].at = w->now + gpi_plan_units(w, 3000);
        w->worker[a->worker].fails = false;
    }
}
