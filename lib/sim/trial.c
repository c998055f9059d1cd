/* SPDX-License-Identifier: MIT */
/* trial.c - see trial.h. */
#include "sim/trial.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/fact_feed.h"

#define TASKS_MOST (1u << 16) /* so that no script takes all memory */
#define RUN_DEVICES 16u       /* of a request, at most */
#define QUEUE_MOST (1u << 31) /* tasks in the queue of a class */
/* An adopted task may have more than there is, but no sum over all runs overflows. */
#define CPUS_MOST (1u << 15)
#define BYTES_MOST (1ull << 46)

/* ---- facts that a caller may feed ---- */

static const char *refuses_plan(const struct gpi_trial *t, const struct gpi_plan_settings *s)
{
    if (t->plan)
        return "expected plan once";
    if (!s->tasks || !s->shapes || !s->classes || !s->devices || !s->runs)
        return "expected at least one task, shape, class, device and run";
    if (s->tasks > TASKS_MOST || s->shapes > TASKS_MOST || s->classes > 256 || s->devices > 4096 ||
        s->runs > TASKS_MOST || s->place_sets > 7)
        return "more than a script may have: 2^16 tasks, shapes or runs, 256 classes, 4096 "
               "devices, "
               "7 sets";
    return s->headroom <= 10000 ? NULL : "headroom exceeds 10000";
}

static const char *refuses_request(const struct gpi_trial *t, const struct gpi_request *r)
{
    if (r->devices > RUN_DEVICES)
        return "a request has more than 16 devices";
    if (r->share > GPI_SHARE_ALL || (r->devices > 1 && r->share != GPI_SHARE_ALL))
        return "a share is at most 10000, and just that of several devices";
    return r->places <= t->set.place_sets ? NULL : "no set of places has this number";
}

static const char *refuses_requests(const struct gpi_trial *t, const struct gpi_fact *f)
{
    const char *reason = f->n_requests ? NULL : "expected need=";

    for (uint32_t i = 0; i < f->n_requests && !reason; i++)
        reason = refuses_request(t, &f->request[i]);
    return reason;
}

static const char *refuses_list(const struct gpi_trial *t, const struct gpi_fact *f)
{
    for (uint32_t i = 0; i < f->n_devices; i++) {
        if (f->list[i] >= t->n_devices)
            return "no device has this number";
        for (uint32_t k = 0; k < i; k++)
            if (f->list[i] == f->list[k])
                return "a device stands twice";
    }
    return NULL;
}

static bool is_there(const struct gpi_trial *t, uint32_t class)
{
    return class < t->set.classes && t->class[class].kind == GPI_FACT_CLASS;
}

bool gpi_trial_could_warm(const struct gpi_trial *t, uint32_t device, const struct gpi_request *r)
{
    const struct gpi_plan_has *has = &t->device[device].has;
    const uint64_t part = has->memory / 10000 * t->set.headroom;
    const uint64_t free = part > t->set.least_headroom ? part : t->set.least_headroom;

    return has->compute >= r->compute &&
           (r->memory == GPI_MEMORY_ALL || free + r->memory <= has->memory || r->memory == 0);
}

/* A device holds one of them, so no sum is needed. */
static const char *refuses_warm(const struct gpi_trial *t, const struct gpi_fact *f)
{
    uint32_t workers = 0;

    if (!is_there(t, f->class) || t->class[f->class].is.residence != GPI_RESIDENT)
        return "only a resident class has warm workers";
    if (f->n_devices != t->class[f->class].request[0].devices)
        return "not as many devices as its first variant needs";
    for (uint32_t i = 0; i < f->n_devices && f->list[i] < t->n_devices; i++)
        if (t->device[f->list[i]].warm ||
            !gpi_trial_could_warm(t, f->list[i], &t->class[f->class].request[0]))
            return "the device cannot hold the worker, or has one";
    for (uint32_t i = 0; i < t->set.runs; i++)
        workers += t->worker[i].life != GPI_TRIAL_OFF;
    return workers == t->set.runs ? "more workers than plan runs=" : refuses_list(t, f);
}

static const char *refuses_class(const struct gpi_trial *t, const struct gpi_fact *f)
{
    if (f->class >= t->set.classes)
        return "more classes than plan classes=";
    if (is_there(t, f->class))
        return "the class is there already";
    return f->is.residence == GPI_RESIDENT || f->n_requests ? refuses_requests(t, f) : NULL;
}

static const char *refuses_set_up(const struct gpi_trial *t, const struct gpi_fact *f)
{
    if (t->begun)
        return "expected before all facts that have a time";
    switch ((enum gpi_fact_kind)f->kind) {
    case GPI_FACT_DEVICE:
        return f->device == t->n_devices && f->device < t->set.devices ? NULL
                                                                       : "not the next device";
    case GPI_FACT_PLACES:
        return f->set && f->set <= t->set.place_sets ? refuses_list(t, f)
                                                     : "no set of places has this number";
    case GPI_FACT_CLASS:
        return refuses_class(t, f);
    default:
        return refuses_warm(t, f);
    }
}

/* The plan and the model agree on the requests that a device could ever hold.              [R9] */
static const char *judge_could(const struct gpi_trial *t, const struct gpi_fact *f)
{
    for (uint32_t i = 0; i < f->n_requests; i++)
        if (gpi_plan_could(t->plan, &f->request[i]) != gpi_slow_could(t->slow, &f->request[i]))
            return "R9: could a device ever hold the request?";
    return NULL;
}

static const char *judge_wants(const struct gpi_trial *t)
{
    for (uint32_t i = 0; i < t->set.classes; i++)
        if (is_there(t, i) && !gpi_slow_wants_from(t->slow, i, gpi_plan_wants_from(t->plan, i)))
            return "R5: from which queue on does the class want a worker?";
    return NULL;
}

/* Nothing has changed since the decision, so another one examines nothing.                [S5] */
static const char *judge_rest(struct gpi_trial *t)
{
    const uint64_t examined = gpi_plan_stats(t->plan)->examined;
    struct gpi_plan_action a;

    gpi_plan_decide(t->plan, t->now);
    if (gpi_plan_next(t->plan, &a))
        return "S5: a decision without a change has an action";
    return gpi_plan_stats(t->plan)->examined == examined
               ? NULL
               : "S5: a shape is examined though nothing has changed";
}

/* The caller refuses a task that no device could ever hold.                              [R9] */
static bool could(const struct gpi_trial *t, const struct gpi_fact *f)
{
    for (uint32_t i = 0; i < f->n_requests; i++)
        if (gpi_plan_could(t->plan, &f->request[i]))
            return true;
    return false;
}

static const char *refuses_submit(const struct gpi_trial *t, const struct gpi_fact *f)
{
    const bool resident = is_there(t, f->class) && t->class[f->class].is.residence == GPI_RESIDENT;
    const char *reason = resident ? NULL : refuses_requests(t, f);

    if (!is_there(t, f->class))
        return "no class has this number";
    if (reason)
        return reason;
    if (f->job.stream && t->class[f->class].is.residence == GPI_EXTERNAL)
        return "a class without workers has no stream";
    if (f->task >= t->set.tasks || t->task[f->task].state != GPI_TRIAL_NONE)
        return "the task is submitted already, or its number is too large";
    for (uint32_t i = 0; i < t->set.tasks; i++)
        if (t->task[i].state != GPI_TRIAL_NONE && t->task[i].order == f->job.order)
            return "another task has this order";
    return could(t, resident ? &t->class[f->class] : f) ? NULL : "no device could ever hold it";
}

static bool runs_alone(const struct gpi_trial_task *task)
{
    return task->state == GPI_TRIAL_RUNS && task->worker == GPI_NOWHERE;
}

static bool has_run(const struct gpi_trial *t)
{
    uint32_t runs = 0;

    for (uint32_t i = 0; i < t->set.runs; i++)
        runs += t->worker[i].life != GPI_TRIAL_OFF;
    for (uint32_t i = 0; i < t->set.tasks; i++)
        runs += runs_alone(&t->task[i]);
    return runs < t->set.runs;
}

/* Its devices may be in any state, and may have less than the task. */
static const char *refuses_adopt(const struct gpi_trial *t, const struct gpi_fact *f)
{
    const struct gpi_request *has = &f->request[0];

    if (!is_there(t, f->class) || t->class[f->class].is.residence != GPI_EXTERNAL)
        return "only a task of an external class runs already";
    if (f->task >= t->set.tasks || t->task[f->task].state != GPI_TRIAL_NONE)
        return "the task is submitted already, or its number is too large";
    if (f->n_requests != 1 || has->devices != f->n_devices || has->devices > RUN_DEVICES)
        return "expected d= and one need= with as many devices";
    if (has->share > GPI_SHARE_ALL || has->cpus > CPUS_MOST || has->host_memory > BYTES_MOST ||
        (has->memory != GPI_MEMORY_ALL && has->memory > BYTES_MOST))
        return "it has too much";
    if (f->at < f->now)
        return "it ends before now";
    return has_run(t) ? refuses_list(t, f) : "no run is free";
}

static const char *refuses_task(const struct gpi_trial *t, const struct gpi_fact *f, uint32_t state)
{
    return f->task < t->set.tasks && t->task[f->task].state == state ? NULL
           : state == GPI_TRIAL_RUNS                                 ? "the task does not run"
                                                                     : "the task does not wait";
}

static const char *refuses_ends_by(const struct gpi_trial *t, const struct gpi_fact *f)
{
    const char *reason = refuses_task(t, f, GPI_TRIAL_RUNS);

    if (reason)
        return reason;
    if (!t->task[f->task].revoked && !runs_alone(&t->task[f->task]))
        return "its run has a worker, and is not revoked";
    return f->at < f->now ? "it ends before now" : NULL;
}

static const char *refuses_worker(const struct gpi_trial *t, const struct gpi_fact *f)
{
    const struct gpi_trial_worker *w = f->worker < t->set.runs ? &t->worker[f->worker] : NULL;

    if (!w || w->life == GPI_TRIAL_OFF)
        return "no worker has this number";
    if (f->kind == GPI_FACT_UP && w->life != GPI_TRIAL_BOOTS && w->life != GPI_TRIAL_UNLOADS)
        return "the worker does not boot";
    if (f->kind == GPI_FACT_GONE && w->task != GPI_NOWHERE)
        return "its task ends before";
    return NULL;
}

static const char *refuses_observed(const struct gpi_trial *t, const struct gpi_fact *f)
{
    const char *reason = refuses_worker(t, f);

    for (uint32_t i = 0; !reason && i < t->worker[f->worker].n_devices; i++)
        if (t->worker[f->worker].device[i] == f->device)
            return NULL;
    return reason ? reason : "the worker is not on the device";
}

static const char *refuses_observed_of(const struct gpi_trial *t, const struct gpi_fact *f)
{
    const char *reason = refuses_task(t, f, GPI_TRIAL_RUNS);

    if (!reason && !runs_alone(&t->task[f->task]))
        return "it has a worker";
    if (!reason && f->bytes > BYTES_MOST)
        return "it has too much";
    for (uint32_t i = 0; !reason && i < t->task[f->task].n_devices; i++)
        if (t->task[f->task].device[i] == f->device)
            return NULL;
    return reason ? reason : "the task is not on the device";
}

static const char *refuses_queue(const struct gpi_trial *t, const struct gpi_fact *f)
{
    if (!is_there(t, f->class) || t->class[f->class].is.residence == GPI_EXTERNAL)
        return "no class with workers has this number";
    return f->queued <= QUEUE_MOST ? NULL : "a queue has at most 2^31 tasks";
}

static const char *refuses_device(const struct gpi_trial *t, const struct gpi_fact *f)
{
    if (f->device >= t->n_devices)
        return "no device has this number";
    return f->kind == GPI_FACT_STATE && t->device[f->device].may == GPI_PLAN_GONE
               ? "the device is gone for good"
               : NULL;
}

/* The caller kills a task at its limit and grace, and then feeds the end. */
static const char *refuses_time(const struct gpi_trial *t, uint64_t now)
{
    if (now < t->now)
        return "its time is before that of the fact before";
    for (uint32_t i = 0; i < t->set.tasks; i++)
        if (t->task[i].state == GPI_TRIAL_RUNS && t->task[i].end_by < now)
            return "a task ends by its limit and grace, which is earlier";
    return NULL;
}

const char *gpi_trial_refuses(const struct gpi_trial *t, const struct gpi_fact *f)
{
    if (f->kind == GPI_FACT_PLAN)
        return refuses_plan(t, &f->plan);
    if (!t->plan)
        return "expected plan first of all";
    if (f->kind < GPI_FACT_SUBMIT)
        return refuses_set_up(t, f);
    if (refuses_time(t, f->now))
        return refuses_time(t, f->now);
    switch ((enum gpi_fact_kind)f->kind) {
    case GPI_FACT_SUBMIT:
        return refuses_submit(t, f);
    case GPI_FACT_WITHDRAW:
        return refuses_task(t, f, GPI_TRIAL_WAITS);
    case GPI_FACT_END:
        return refuses_task(t, f, GPI_TRIAL_RUNS);
    case GPI_FACT_ENDS_BY:
        return refuses_ends_by(t, f);
    case GPI_FACT_UP:
    case GPI_FACT_LEAVES:
    case GPI_FACT_GONE:
        return refuses_worker(t, f);
    case GPI_FACT_OBSERVED:
        return refuses_observed(t, f);
    case GPI_FACT_OBSERVED_OF:
        return refuses_observed_of(t, f);
    case GPI_FACT_ADOPT:
        return refuses_adopt(t, f);
    case GPI_FACT_CLASS_SET:
        return is_there(t, f->class) ? NULL : "no class has this number";
    case GPI_FACT_QUEUE:
        return refuses_queue(t, f);
    case GPI_FACT_DECIDE:
        return NULL;
    default:
        return refuses_device(t, f);
    }
}

/* ---- actions ---- */

static void add_sum(struct gpi_trial *t, uint64_t n)
{
    t->sum = (t->sum ^ n) * 0x100000001b3u;
    t->sum ^= t->sum >> 29;
}

static void sum_up(struct gpi_trial *t, const struct gpi_plan_action *a)
{
    add_sum(t, a->kind);
    add_sum(t, a->task);
    add_sum(t, a->worker);
    add_sum(t, a->kind == GPI_PLAN_PROMISE ? a->at : t->now);
    add_sum(t, a->how);
    add_sum(t, a->what);
    for (uint32_t i = 0; i < a->n_devices; i++)
        add_sum(t, a->device[i]);
}

/* A worker has the number of its run, and no two tasks and workers have one run. */
static bool is_run_sane(const struct gpi_trial *t, const struct gpi_plan_action *a)
{
    if (a->worker != GPI_NOWHERE || a->kind != GPI_PLAN_RUN)
        return a->run == a->worker;
    for (uint32_t i = 0; i < t->set.tasks; i++)
        if (runs_alone(&t->task[i]) && t->task[i].run == a->run)
            return false;
    return a->run < t->set.runs && t->worker[a->run].life == GPI_TRIAL_OFF;
}

/* Returns true if the task, the worker and the devices of the action exist. */
static bool is_sane(const struct gpi_trial *t, const struct gpi_plan_action *a)
{
    const bool task = a->kind == GPI_PLAN_RUN || a->kind == GPI_PLAN_PROMISE ||
                      a->kind == GPI_PLAN_HOPELESS || a->kind == GPI_PLAN_REVOKE;
    const bool worker = a->kind == GPI_PLAN_BOOT || a->kind == GPI_PLAN_DRAIN ||
                        a->kind == GPI_PLAN_UNLOAD || a->kind == GPI_PLAN_REVOKE;

    if ((task ? a->task >= t->set.tasks : a->task != GPI_NOWHERE) ||
        (worker || a->worker != GPI_NOWHERE ? a->worker >= t->set.runs : false) ||
        a->n_devices > RUN_DEVICES || a->kind >= GPI_TRIAL_ACTIONS)
        return false;
    for (uint32_t i = 0; i < a->n_devices; i++)
        if (a->device[i] >= t->n_devices)
            return false;
    return (!worker || is_there(t, a->class)) && is_run_sane(t, a) &&
           (a->kind != GPI_PLAN_BOOT || t->worker[a->worker].life == GPI_TRIAL_OFF);
}

static void take_run(struct gpi_trial *t, const struct gpi_plan_action *a)
{
    struct gpi_trial_task *task = &t->task[a->task];

    task->state = GPI_TRIAL_RUNS;
    task->granted = a->how == GPI_RUN_GRANT;
    task->end_by = gpi_time_add(t->now, gpi_time_add(task->limit, t->class[task->class].is.grace));
    if (task->granted)
        task->end_by = GPI_NEVER;
    task->worker = a->worker;
    task->run = a->run;
    task->hopeless = false;
    task->n_devices = a->n_devices;
    memcpy(task->device, a->device, a->n_devices * sizeof *a->device);
    if (a->worker != GPI_NOWHERE)
        t->worker[a->worker].task = a->task;
}

static void take_boot(struct gpi_trial *t, const struct gpi_plan_action *a)
{
    struct gpi_trial_worker *w = &t->worker[a->worker];

    *w = (struct gpi_trial_worker){ .life = GPI_TRIAL_BOOTS,
                                    .class = a->class,
                                    .task = GPI_NOWHERE,
                                    .need = a->need,
                                    .n_devices = a->n_devices };
    memcpy(w->device, a->device, a->n_devices * sizeof *a->device);
}

static void revoke(struct gpi_trial *t, uint32_t worker)
{
    const uint32_t task = t->worker[worker].task;

    if (task != GPI_NOWHERE)
        t->task[task].revoked = t->task[task].granted;
}

static void take_action(struct gpi_trial *t, const struct gpi_plan_action *a)
{
    switch ((enum gpi_plan_action_kind)a->kind) {
    case GPI_PLAN_RUN:
        take_run(t, a);
        break;
    case GPI_PLAN_BOOT:
        take_boot(t, a);
        break;
    case GPI_PLAN_REVOKE:
        revoke(t, a->worker);
        break;
    case GPI_PLAN_DRAIN:
        t->worker[a->worker].life = GPI_TRIAL_DRAINS;
        revoke(t, a->worker);
        break;
    case GPI_PLAN_UNLOAD:
        t->worker[a->worker].life = GPI_TRIAL_UNLOADS;
        break;
    case GPI_PLAN_HOPELESS:
        t->task[a->task].hopeless = true;
        break;
    case GPI_PLAN_PROMISE:
        break;
    }
    if (t->action)
        t->action(a, t->user);
}

static void object(struct gpi_trial *t, const char *text)
{
    if (!text || t->broken)
        return;
    t->broken = text;
    t->culprit = t->slow ? gpi_slow_culprit(t->slow) : GPI_NOWHERE;
}

/* After an objection the actions count no more. */
static void take_actions(struct gpi_trial *t)
{
    struct gpi_plan_action a;

    while (gpi_plan_next(t->plan, &a)) {
        if (t->broken)
            continue;
        sum_up(t, &a);
        if (!is_sane(t, &a)) {
            object(t, "S1: an action names no task, worker or device that exists");
            continue;
        }
        t->actions[a.kind]++;
        if (t->slow)
            object(t, gpi_slow_action(t->slow, &a));
        take_action(t, &a);
    }
}

/* ---- facts ---- */

static void make(struct gpi_trial *t, const struct gpi_plan_settings *set)
{
    t->set = *set;
    t->plan = gpi_plan_create(set);
    t->slow = t->alone ? NULL : gpi_slow_create(set);
    t->task = calloc(set->tasks, sizeof *t->task);
    t->worker = calloc(set->runs, sizeof *t->worker);
    t->device = calloc(set->devices, sizeof *t->device);
    t->class = calloc(set->classes, sizeof *t->class);
    if (!t->plan || (!t->slow && !t->alone) || !t->task || !t->worker || !t->device || !t->class)
        abort(); /* a program of tests */
}

static void book_task(struct gpi_trial *t, const struct gpi_fact *f)
{
    struct gpi_trial_task *task = &t->task[f->task];

    if (f->kind == GPI_FACT_SUBMIT) {
        *task = (struct gpi_trial_task){ .state = GPI_TRIAL_WAITS,
                                         .class = f->class,
                                         .worker = GPI_NOWHERE,
                                         .order = f->job.order,
                                         .limit = f->job.limit };
        return;
    }
    if (task->state == GPI_TRIAL_RUNS && task->worker != GPI_NOWHERE) {
        t->worker[task->worker].task = GPI_NOWHERE;
        if (t->worker[task->worker].leaves)
            t->worker[task->worker].life = GPI_TRIAL_UNLOADS;
    }
    task->state = GPI_TRIAL_NONE;
    task->hopeless = false;
}

static void book_warm(struct gpi_trial *t, const struct gpi_fact *f)
{
    struct gpi_trial_worker *w = &t->worker[f->worker];

    *w = (struct gpi_trial_worker){ .life = GPI_TRIAL_UP,
                                    .class = f->class,
                                    .task = GPI_NOWHERE,
                                    .need = t->class[f->class].request[0],
                                    .n_devices = f->n_devices };
    for (uint32_t i = 0; i < f->n_devices; i++) {
        w->device[i] = f->list[i];
        t->device[f->list[i]].warm = true;
    }
}

static void book_adopt(struct gpi_trial *t, const struct gpi_fact *f)
{
    struct gpi_trial_task *task = &t->task[f->task];

    *task = (struct gpi_trial_task){ .state = GPI_TRIAL_RUNS,
                                     .class = f->class,
                                     .worker = GPI_NOWHERE,
                                     .run = f->worker,
                                     .order = GPI_NEVER,
                                     .limit = f->job.limit,
                                     .end_by = f->at,
                                     .n_devices = f->n_devices };
    memcpy(task->device, f->list, f->n_devices * sizeof *f->list);
}

static void book_ends_by(struct gpi_trial_task *task, uint64_t at)
{
    task->end_by = runs_alone(task) ? at : gpi_time_min(task->end_by, at);
}

static void book_leaves(struct gpi_trial *t, uint32_t worker)
{
    struct gpi_trial_worker *w = &t->worker[worker];

    if (w->life == GPI_TRIAL_UNLOADS)
        return;
    w->leaves = true;
    w->life = w->task == GPI_NOWHERE ? GPI_TRIAL_UNLOADS : GPI_TRIAL_DRAINS;
    revoke(t, worker);
}

static void book(struct gpi_trial *t, const struct gpi_fact *f)
{
    switch ((enum gpi_fact_kind)f->kind) {
    case GPI_FACT_DEVICE:
        t->device[t->n_devices++].has = f->has;
        break;
    case GPI_FACT_CLASS:
        t->class[f->class] = *f;
        break;
    case GPI_FACT_WARM:
        book_warm(t, f);
        break;
    case GPI_FACT_SUBMIT:
    case GPI_FACT_WITHDRAW:
    case GPI_FACT_END:
        book_task(t, f);
        break;
    case GPI_FACT_ENDS_BY:
        book_ends_by(&t->task[f->task], f->at);
        break;
    case GPI_FACT_ADOPT:
        book_adopt(t, f);
        break;
    case GPI_FACT_UP:
        if (t->worker[f->worker].life == GPI_TRIAL_BOOTS) /* an UNLOAD may cross it */
            t->worker[f->worker].life = GPI_TRIAL_UP;
        break;
    case GPI_FACT_LEAVES:
        book_leaves(t, f->worker);
        break;
    case GPI_FACT_GONE:
        t->worker[f->worker].life = GPI_TRIAL_OFF;
        break;
    case GPI_FACT_STATE:
        t->device[f->device].may = f->what;
        break;
    default:
        break;
    }
}

static void feed_both(struct gpi_trial *t, struct gpi_fact *f)
{
    const uint64_t before = t->allocations ? *t->allocations : 0;
    const uint32_t result = gpi_fact_feed_plan(f, t->plan);

    if (t->allocations)
        t->allocations_of_steps += *t->allocations - before;
    f->worker = f->kind == GPI_FACT_WARM || f->kind == GPI_FACT_ADOPT ? result : f->worker;
    if (f->kind == GPI_FACT_SUBMIT && !result)
        return; /* too many shapes: the caller has kept it */
    book(t, f);
    if (t->slow)
        gpi_fact_feed_slow(f, t->slow);
}

void gpi_trial_feed(struct gpi_trial *t, const struct gpi_fact *f)
{
    struct gpi_fact own = *f;

    t->facts++;
    t->begun |= f->kind >= GPI_FACT_SUBMIT;
    t->now = t->begun ? f->now : 0;
    if (f->kind == GPI_FACT_PLAN) {
        make(t, &f->plan);
        return;
    }
    if (f->kind == GPI_FACT_SUBMIT && t->class[f->class].is.residence == GPI_RESIDENT) {
        own.n_requests = t->class[f->class].n_requests;
        memcpy(own.request, t->class[f->class].request, sizeof own.request);
    }
    if (f->kind == GPI_FACT_SUBMIT && t->slow)
        object(t, judge_could(t, &own));
    if (f->kind == GPI_FACT_OBSERVED_OF)
        own.worker = t->task[f->task].run;
    feed_both(t, &own);
    take_actions(t);
    if (f->kind != GPI_FACT_DECIDE || t->broken || !t->slow)
        return;
    object(t, gpi_slow_decided(t->slow));
    object(t, judge_wants(t));
    object(t, judge_rest(t));
    if (gpi_plan_has_run(t->plan) != has_run(t))
        object(t, "S1: is a run free?");
}

void gpi_trial_fini(struct gpi_trial *t)
{
    gpi_plan_destroy(t->plan);
    if (t->slow)
        gpi_slow_destroy(t->slow);
    free(t->task);
    free(t->worker);
    free(t->device);
    free(t->class);
    t->plan = NULL;
    t->slow = NULL;
    t->task = NULL;
    t->worker = NULL;
    t->device = NULL;
    t->class = NULL;
}
