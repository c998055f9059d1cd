/* SPDX-License-Identifier: MIT */
/* dispatch.c - submits tasks as external work, and reads the dispatcher's events. */
#include "queue/agent/dispatch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "queue/agent/ahead.h"
#include "queue/agent/grant.h"
#include "queue/agent/needs.h"
#include "queue/agent/spans.h"
#include "queue/agent/turn.h"
#include "queue/agent/workers.h"
#include "queue/runner/process.h"

/* The store's order may be below 0 (`first`), and the dispatcher's may not. */
#define ORDER_BASE (INT64_C(1) << 62)
enum { QUEUE = 65536, EVENTS = 64, REASONS = 16 };
#define DRIVER_WAIT GPUD_S(10)
/* Descriptors: of a place of the dispatcher with its run, and of everything else. */
enum { PER_WORKER = 10, OTHERS = 320, FEWEST = 8, MOST = 256 };

static int refused(struct gpq_error *e, int code, const struct gpud_error *why)
{
    int is = code == GPUD_EFULL ? GPQ_EFULL : code == GPUD_ENOMEM ? GPQ_ENOMEM : GPQ_EREFUSED;
    return gpq_fail(e, is, "%s", why->text);
}

static bool has_cpus(const char *devices)
{
    for (; devices && *devices; devices += strcspn(devices, ",") + (strchr(devices, ',') != NULL))
        if (!strncmp(devices, "cpu", 3))
            return true;
    return false;
}

/* The library's texts are for hosts of any kind, which may have slots without a GPU as devices. */
static int refuse_devices(struct gpq_error *e, const char *devices, int code,
                          const struct gpud_error *why)
{
    const char *hint = strstr(why->text, ", or use cpu:N or fake:N");
    if (has_cpus(devices))
        return gpq_fail(e, GPQ_EREFUSED,
                        "--devices %.80s: CPU slots are no devices of the queue; --cpus N sets "
                        "their number, and a task with --gpus 0 needs only them",
                        devices);
    if (!hint)
        return refused(e, code, why);
    return gpq_fail(e, GPQ_EREFUSED,
                    "--devices %.80s: %.*s; --devices all runs tasks without GPUs meanwhile, and "
                    "fake:N only pretends to have N GPUs",
                    devices, (int)(hint - why->text), why->text);
}

/* How many tasks may run. */
static uint32_t most_workers(void)
{
    struct rlimit limit = { .rlim_cur = 1024 };
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    rlim_t n = limit.rlim_cur > OTHERS ? (limit.rlim_cur - OTHERS) / PER_WORKER : 0;
    return n < FEWEST ? FEWEST : n > MOST ? MOST : (uint32_t)n;
}

/* Whether the machine has no GPU at all.  One whose driver does not work has: its tasks must not
 * run without them. */
static bool has_no_gpu(void)
{
    gpud_monitor *m;
    struct gpud_driver_info info = GPUD_DRIVER_INFO_INIT;
    if (gpud_monitor_open(&m, NULL, NULL) < 0)
        return false;
    bool none =
        gpud_monitor_driver(m, &info, DRIVER_WAIT) == 0 &&
        (info.state == GPUD_DRIVER_NONE || (info.state == GPUD_DRIVER_OK && info.gpus == 0));
    (void)gpud_monitor_close(&m);
    return none;
}

int gpq_dispatch_open(struct gpq_agent *a, const char *devices, uint32_t cpus, struct gpq_error *e)
{
    struct gpud_options o = GPUD_OPTIONS_INIT, per_task = GPUD_OPTIONS_INIT;
    struct gpud_class c = GPUD_CLASS_INIT;
    struct gpud_request needs = GPUD_REQUEST_INIT;
    struct gpud_error why = GPUD_ERROR_INIT;
    o.pooled = 1;
    o.devices = devices;
    o.queue_size = QUEUE;
    o.max_workers = most_workers();
    o.cpus = cpus;
    per_task.setup_limit = GPUD_S(10);
    c.name = GPQ_COMMANDS;
    c.residence = GPUD_EXTERNAL;
    c.options = &per_task;
    int code = gpud_dispatcher_create(&a->dispatcher, &o, &why);
    if (code == GPUD_EDEVICE && !strcmp(devices, GPQ_ALL_DEVICES) && has_no_gpu()) {
        gpq_log("this machine has no GPU: tasks without GPUs run");
        o.devices = NULL;
        needs.cpus = 1;
        c.needs = &needs; /* of a task without needs: by default it has one GPU */
        code = gpud_dispatcher_create(&a->dispatcher, &o, &why);
    }
    if (code < 0)
        return refuse_devices(e, devices, code, &why);
    code = gpud_dispatcher_class_add(a->dispatcher, &c, &why);
    if (code < 0)
        return refused(e, code, &why);
    int n = gpud_dispatcher_devices(a->dispatcher, NULL, 0);
    a->devices = n > 0 ? (uint32_t)n : 0;
    return 0;
}

void gpq_dispatch_close(struct gpq_agent *a)
{
    if (!a->dispatcher)
        return;
    (void)gpud_dispatcher_close(a->dispatcher, GPUD_FINISH_LEAVE, 0);
    (void)gpud_dispatcher_destroy(&a->dispatcher, NULL);
}

void gpq_dispatch_describe(struct gpud_task_desc *d, const struct gpq_task *t, uint64_t limit,
                           char label[64])
{
    *d = (struct gpud_task_desc)GPUD_TASK_DESC_INIT;
    snprintf(label, 64, "%u.%u", GPQ_BATCH_OF(t->id), GPQ_NUMBER_OF(t->id));
    d->class_name = GPQ_COMMANDS;
    d->tag = t->id;
    d->label = label;
    d->priority = t->priority;
    d->order = (uint64_t)(ORDER_BASE + t->order);
    d->limit = limit;
    d->max_attempts = 1; /* retries are the store's */
}

static void describe_unit(struct gpq_unit *u, const struct gpq_task *t, uint64_t limit)
{
    u->shape = t->shape;
    u->ready = t->ready;
    u->allowed = limit == GPUD_NEVER ? 0 : limit;
}

int gpq_dispatch_submit(struct gpq_agent *a, const struct gpq_task *t,
                        const struct gpud_request *needs, uint64_t limit, struct gpq_error *e)
{
    struct gpud_task_desc d;
    struct gpud_error why = GPUD_ERROR_INIT;
    char label[64];
    uint64_t id = 0;
    gpq_dispatch_describe(&d, t, limit, label);
    d.request = needs;
    int code = gpud_dispatcher_submit(a->dispatcher, &d, 0, &id, &why);
    if (code < 0)
        return refused(e, code, &why);
    struct gpq_unit *u = gpq_work_add(a, id, t->id);
    if (!u) {
        (void)gpud_dispatcher_cancel(a->dispatcher, id, GPUD_CANCEL_HARD);
        return gpq_fail(e, GPQ_ENOMEM, "no memory for a task");
    }
    describe_unit(u, t, limit);
    u->phase = GPQ_INSIDE;
    return 0;
}

int gpq_dispatch_adopt(struct gpq_agent *a, const struct gpq_task *t, uint64_t limit,
                       const char *devices, const struct gpud_proc *proc, struct gpq_unit **ret,
                       struct gpq_error *e)
{
    struct gpud_task_desc d;
    struct gpud_adoption adoption = GPUD_ADOPTION_INIT;
    struct gpud_error why = GPUD_ERROR_INIT;
    char label[64];
    uint64_t id = 0;
    struct gpq_grant grant;
    if (!gpq_grant_read(devices, &grant))
        return gpq_fail(e, GPQ_ENOMEM, "no memory for the devices of a task");
    adoption.attempt = grant.number;
    adoption.devices = *grant.uuids ? grant.uuids : NULL;
    adoption.share = grant.share;
    adoption.cpus = grant.cpus;
    adoption.memory = grant.memory;
    adoption.host_memory = grant.host_memory;
    adoption.proc = proc;
    gpq_dispatch_describe(&d, t, limit, label);
    int code = gpud_dispatcher_adopt(a->dispatcher, &d, &adoption, &id, &why);
    gpq_grant_free(&grant);
    if (code < 0)
        return refused(e, code, &why);
    struct gpq_unit *u = gpq_work_add(a, id, t->id);
    if (!u)
        return gpq_fail(e, GPQ_ENOMEM, "no memory for a task");
    describe_unit(u, t, limit);
    u->grant = adoption.attempt;
    *ret = u;
    return 0;
}

/* Numbers that the dispatcher does not reach. */
struct gpq_unit *gpq_dispatch_alone(struct gpq_agent *a, const struct gpq_task *t)
{
    struct gpq_unit *u = gpq_work_add(a, t->id | UINT64_C(1) << 63, t->id);
    if (u) {
        describe_unit(u, t, GPUD_NEVER);
        u->alone = true;
    }
    return u;
}

void gpq_dispatch_leave(struct gpq_agent *a, struct gpq_unit *u)
{
    if (u->phase <= GPQ_GRANTED || u->class) /* a claimed one is in the window of its class */
        gpq_ahead_left(a, u->shape);
    if (u->alone || u->gone) {
        gpq_work_remove(a, u);
        return;
    }
    gpq_work_withdrawn(a, u);
    (void)gpud_dispatcher_cancel(a->dispatcher, u->id, GPUD_CANCEL_HARD);
}

static void hold_one(struct gpq_agent *a, struct gpq_unit *u, void *user)
{
    (void)user;
    if (u->phase <= GPQ_GRANTED && (!u->class || a->stop.now))
        gpq_dispatch_leave(a, u);
}

void gpq_dispatch_hold(struct gpq_agent *a)
{
    gpq_work_each(a, hold_one, NULL);
}

void gpq_dispatch_decline(struct gpq_agent *a, struct gpq_unit *u)
{
    if (u->phase != GPQ_GRANTED)
        return;
    if (u->class) {
        gpq_dispatch_leave(a, u);
        return;
    }
    u->phase = GPQ_INSIDE;
    (void)gpud_dispatcher_decline(a->dispatcher, u->id, u->grant, gpq_monotonic() + GPUD_S(1),
                                  NULL);
}

/* A grant for a unit whose last grant was lost comes before the store knows of that. */
static void granted(struct gpq_agent *a, const struct gpud_event *event)
{
    struct gpq_unit *u = gpq_work_by_id(a, event->task_id);
    if (!u || u->phase != GPQ_INSIDE) {
        (void)gpud_dispatcher_decline(a->dispatcher, event->task_id, event->attempt,
                                      gpq_monotonic() + GPUD_S(1), NULL);
        return;
    }
    free(u->devices);
    u->devices = gpq_grant_write(event);
    u->grant = event->attempt;
    u->phase = GPQ_GRANTED;
    gpq_turn_granted(a, u);
}

static void revoked(struct gpq_agent *a, const struct gpud_event *event)
{
    struct gpq_unit *u = gpq_work_by_id(a, event->task_id);
    if (!u || u->grant != event->attempt)
        return;
    if (event->revoke == GPUD_REVOKE_BACK) {
        if (u->phase == GPQ_GRANTED)
            u->phase = GPQ_INSIDE;
        return;
    }
    if (u->phase == GPQ_RUNS && u->runner.fd >= 0)
        (void)gpq_process_signal(u->runner.fd,
                                 event->revoke == GPUD_REVOKE_SOFT ? SIGUSR2 : SIGUSR1);
}

/* The dispatcher has waited long enough for a command that cannot be killed.  Its devices stay
 * booked, and the store has no outcome, until its runner has ended: nothing runs beside it. */
static void decide(struct gpq_unit *u, const struct gpud_event *event)
{
    u->decided = true;
    u->verdict = event->outcome;
    snprintf(u->text, sizeof(u->text), "%.255s", event->text);
    gpq_log("%u.%u does not end: %s", GPQ_BATCH_OF(u->task), GPQ_NUMBER_OF(u->task), event->text);
}

static void ended(struct gpq_agent *a, const struct gpud_event *event)
{
    struct gpq_unit *u = gpq_work_by_id(a, event->task_id);
    gpq_ahead_room(a, true);
    if (!u)
        return;
    u->gone = true;
    if (u->phase == GPQ_WITHDRAWN)
        gpq_work_remove(a, u);
    else if (u->class)
        gpq_workers_ended(a, u, event);
    else if (u->concluded)
        return; /* its note is on the way */
    else if (u->lost)
        return; /* it returns when its runner has ended */
    else if (u->phase == GPQ_RUNS && event->code == GPUD_EDEVICE)
        u->evicted = u->faulty = true;
    else if (u->phase == GPQ_RUNS)
        decide(u, event);
    else if (event->outcome == GPUD_OUTCOME_CRASHED && event->code == GPUD_EDEVICE)
        gpq_turn_returned(a, u, GPQ_RETURN_DEVICE, event->text);
    else if (event->outcome == GPUD_OUTCOME_CRASHED && u->stopped)
        gpq_turn_returned(a, u, GPQ_RETURN_LOST, u->text);
    else
        gpq_turn_ended(a, u, event->outcome, event->text);
}

static void hear_one(struct gpq_agent *a, const struct gpud_event *event)
{
    gpq_spans_hear(a, event);
    if (event->kind == GPUD_EVENT_GRANTED)
        granted(a, event);
    else if (event->kind == GPUD_EVENT_REVOKED)
        revoked(a, event);
    else if (event->kind == GPUD_EVENT_OUTCOME)
        ended(a, event);
    else if (event->kind == GPUD_EVENT_CLASS)
        gpq_workers_changed(a, event);
    else if (event->kind == GPUD_EVENT_SETUP_FAILURE)
        gpq_log("class %s on %s: %s", event->class_name, event->device, event->text);
    else if (event->kind == GPUD_EVENT_DEVICE) {
        gpq_log("%s: %s", event->device, event->text);
        gpq_ahead_again(a);
    }
}

void gpq_dispatch_hear(struct gpq_agent *a)
{
    struct gpud_event events[EVENTS];
    int n;
    do {
        for (int i = 0; i < EVENTS; i++)
            events[i] = (struct gpud_event)GPUD_EVENT_INIT;
        n = gpud_dispatcher_poll(a->dispatcher, events, EVENTS, 0);
        for (int i = 0; i < n; i++)
            hear_one(a, &events[i]);
    } while (n > 0);
}
