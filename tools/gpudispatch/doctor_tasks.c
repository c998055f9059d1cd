/* SPDX-License-Identifier: MIT */
/* doctor_tasks.c - group tasks: the whole way from submit to outcome, on a CPU slot and on each
 * GPU. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "doctor.h"
#include "tools/cli/out.h"

#define SETUP_LIMIT (60 * SECOND)
#define TASK_LIMIT (30 * SECOND)  /* of those that should succeed */
#define PATIENCE (90 * SECOND)    /* for an outcome: setup, task, and a successor's setup */
#define SHORT_LIMIT (SECOND / 20) /* of the task that ignores it, and its grace */
#define SLOW (SECOND)             /* a death that took so long to be told is worth a note */
#define BUDGET ((uint64_t)16 << 20)
#define BUDGET_SMALL ((uint64_t)256 << 20)
#define SLOTS_MAX 256u
#define LOOKS_PER_WAIT (SECOND / 10)
#define MEETING_MS 5000 /* what those who are there wait for one that never comes */
#define KILL_ROUNDS 5   /* until each worker was killed once */

/* ---- in the worker ---- */

enum order { ECHO = 'e', MEET = 'm', CRASH = 'c', IGNORE = 'i' };

/* Shared with the workers, as they are forked: how many tasks of a round shall run at once, and how
 * many have begun. NULL: no memory, nobody meets. */
static struct {
    _Atomic uint32_t wanted, begun;
} *meeting;

/* A task that ends while others are still to be given out frees its worker for one of them. */
static void meet(void)
{
    const struct timespec ms = { 0, 1000000 };

    if (!meeting)
        return;
    atomic_fetch_add(&meeting->begun, 1);
    for (int i = 0; i < MEETING_MS && atomic_load(&meeting->begun) < atomic_load(&meeting->wanted);
         i++)
        nanosleep(&ms, NULL);
}

static int process(gpud_task *t, void *state)
{
    const char *order = gpud_task_data(t), *device = gpud_worker_device(gpud_task_worker(t));

    (void)state;
    if (*order == CRASH) {
        prctl(PR_SET_DUMPABLE, 0); /* no core file is wanted of this one */
        abort();
    }
    if (*order == MEET)
        meet();
    while (*order == IGNORE)
        pause(); /* and again after SIGALRM: it is killed */
    return gpud_task_result_set(t, device, strlen(device));
}

static const struct gpud_definition definition[] = { GPUD_DEFINITION("doctor", NULL, process,
                                                                     NULL) };
static struct gpud_error init_error = GPUD_ERROR_INIT; /* of gpud_init; code 0 = it is done */

void tasks_init(void)
{
    void *shared =
        mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    meeting = shared == MAP_FAILED ? NULL : shared;
    (void)gpud_init(definition, 1, &init_error);
}

/* ---- one task ---- */

struct trial {
    uint32_t outcome, phase, slot;
    int32_t exit_status;
    uint64_t took; /* from submit to outcome */
    char text[200];
    char device[32]; /* its result: who ran it */
};

static int submit(gpud_dispatcher *d, enum order order, uint64_t *ret_id)
{
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;
    char byte = (char)order;

    task.data = &byte;
    task.size = 1;
    task.awaited = 1;
    task.limit = order == IGNORE ? SHORT_LIMIT : TASK_LIMIT;
    return gpud_dispatcher_submit(d, &task, 0, ret_id, NULL);
}

static int collect(gpud_dispatcher *d, uint64_t id, uint64_t begun, struct trial *ret)
{
    struct gpud_event e = GPUD_EVENT_INIT;
    int r = gpud_dispatcher_wait(d, id, &e, PATIENCE, NULL);

    if (r)
        return r;
    *ret = (struct trial){ .outcome = e.outcome,
                           .phase = e.phase,
                           .slot = e.slot,
                           .exit_status = e.exit_status,
                           .took = now() - begun };
    snprintf(ret->text, sizeof ret->text, "%s", e.text);
    snprintf(ret->device, sizeof ret->device, "%.*s", (int)e.result_size,
             e.result ? (const char *)e.result : "");
    gpud_event_release(&e);
    return 0;
}

/* A failure of the call itself is an outcome that nobody expects: 0. */
static struct trial attempt(gpud_dispatcher *d, enum order order)
{
    struct trial t = { 0 };
    uint64_t id = 0, begun = now();
    int r = submit(d, order, &id);

    if (!r)
        r = collect(d, id, begun, &t);
    if (r)
        snprintf(t.text, sizeof t.text, "%s", gpud_error_text(r));
    return t;
}

/* Why a worker did not come up: the text of the last such event. */
static void last_failure(gpud_dispatcher *d, char *text, size_t size)
{
    struct gpud_event e[16];
    int n;

    e[0].struct_size = sizeof e[0];
    while ((n = gpud_dispatcher_poll(d, e, 16, 0)) > 0)
        for (int i = 0; i < n; i++)
            if (e[i].kind == GPUD_EVENT_SETUP_FAILURE)
                snprintf(text, size, "%s", e[i].text);
}

static const char *outcome_of(const struct trial *t)
{
    return t->outcome ? gpud_outcome_name(t->outcome) : "no outcome";
}

/* ---- on a CPU slot ---- */

static struct gpud_options settings(const char *devices)
{
    struct gpud_options o = GPUD_OPTIONS_INIT;

    o.devices = devices;
    o.setup_limit = SETUP_LIMIT;
    o.grace = SHORT_LIMIT;
    o.failures_in_a_row = 1;
    o.payload_budget = BUDGET;
    return o;
}

static void bad_end(struct doctor *d, gpud_dispatcher *dispatcher, const char *name,
                    const struct trial *t)
{
    char why[200] = "";

    last_failure(dispatcher, why, sizeof why);
    finding_timed(d, VERDICT_PROBLEM, name,
                  "see the other findings; if they do not explain it, report this", t->took,
                  "ended %s: %s", outcome_of(t), why[0] ? why : t->text);
}

static void check_success(struct doctor *d, gpud_dispatcher *dispatcher, const char *name,
                          const char *what)
{
    struct trial t = attempt(dispatcher, ECHO);
    char took[24];

    if (t.outcome == GPUD_OUTCOME_SUCCESS && !strcmp(t.device, "cpu:0"))
        finding_timed(d, VERDICT_OK, name, NULL, t.took, "%s in %s", what,
                      duration_text(t.took, took));
    else
        bad_end(d, dispatcher, name, &t);
}

static void check_crash(struct doctor *d, gpud_dispatcher *dispatcher)
{
    struct trial t = attempt(dispatcher, CRASH);
    bool slow = t.took > SLOW;
    char took[24];

    if (t.outcome == GPUD_OUTCOME_CRASHED && t.exit_status == SIGABRT)
        finding_timed(d, slow ? VERDICT_NOTE : VERDICT_OK, "crash",
                      slow ? "see core files above" : NULL, t.took, "reported as CRASHED after %s",
                      duration_text(t.took, took));
    else
        bad_end(d, dispatcher, "crash", &t);
}

static void check_limit(struct doctor *d, gpud_dispatcher *dispatcher)
{
    struct trial t = attempt(dispatcher, IGNORE);
    char took[24], limits[24];

    if (t.outcome == GPUD_OUTCOME_TIMEOUT && t.phase == GPUD_PHASE_HARD)
        finding_timed(d, VERDICT_OK, "hard limit", NULL, t.took,
                      "killed after %s; limit and grace were %s", duration_text(t.took, took),
                      duration_text(2 * SHORT_LIMIT, limits));
    else
        bad_end(d, dispatcher, "hard limit", &t);
}

static void check_cpu(struct doctor *d)
{
    struct gpud_options o = settings("cpu:1");
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_dispatcher *dispatcher = NULL;

    if (gpud_dispatcher_create(&dispatcher, &o, &e)) {
        finding(d, VERDICT_PROBLEM, "dispatcher", "see the limits above", "creating one fails: %s",
                e.text);
        return;
    }
    check_success(d, dispatcher, "task", "a worker started and a task succeeded");
    check_crash(d, dispatcher);
    check_success(d, dispatcher, "after a crash", "the successor ran a task");
    check_limit(d, dispatcher);
    check_success(d, dispatcher, "after a kill", "the successor ran a task");
    gpud_dispatcher_destroy(&dispatcher, NULL);
}

/* What payload a dispatcher would take by itself: a quarter of what there is, by machine or cgroup.
 */
static void check_budget(struct doctor *d)
{
    struct gpud_options o = GPUD_OPTIONS_INIT;
    struct gpud_stats s = GPUD_STATS_INIT;
    gpud_dispatcher *dispatcher = NULL;
    char size[24];

    if (gpud_dispatcher_create(&dispatcher, &o, NULL))
        return; /* was told above, if it is not for want of memory */
    gpud_dispatcher_stats(dispatcher, &s);
    finding(d, s.payload_budget < BUDGET_SMALL ? VERDICT_NOTE : VERDICT_OK, "payload budget",
            s.payload_budget < BUDGET_SMALL
                ? "raise the memory cgroup's limit, or end other programs"
                : NULL,
            "%s by default: a quarter of the memory left in machine and memory cgroup",
            bytes_text(s.payload_budget, size));
    gpud_dispatcher_destroy(&dispatcher, NULL);
}

/* ---- on GPUs ---- */

struct round {
    struct doctor *d;
    gpud_dispatcher *dispatcher;
    uint32_t n;
    struct gpud_slot_stats slot[SLOTS_MAX];
    uint64_t id[SLOTS_MAX]; /* of its task in this round, 0 = none */
    bool served[SLOTS_MAX]; /* it has run a task of those that each should have one of */
    bool told[SLOTS_MAX];   /* what is wrong with it */
};

static void read_slots(struct round *r)
{
    int n;

    r->slot[0].struct_size = sizeof r->slot[0];
    n = gpud_dispatcher_slots(r->dispatcher, r->slot, SLOTS_MAX);
    r->n = n < 0 ? 0 : n > (int)SLOTS_MAX ? SLOTS_MAX : (uint32_t)n;
}

static bool is_ready(uint32_t state)
{
    return state == GPUD_SLOT_READY || state == GPUD_SLOT_BUSY;
}

/* Whether what was seen of its device speaks against waiting for it; *ret_why is the evidence. */
static bool is_out(const struct round *r, uint32_t slot, const char **ret_why)
{
    const struct look *l = &r->d->look;

    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->row[i].name, r->slot[slot].device) &&
            l->row[i].health >= GPUD_HEALTH_QUARANTINED) {
            *ret_why = l->row[i].evidence;
            return true;
        }
    return false;
}

static void tell(struct round *r, uint32_t slot, const char *what, const char *why)
{
    if (slot < SLOTS_MAX && !r->told[slot]) {
        r->told[slot] = true;
        finding(r->d, VERDICT_PROBLEM, r->slot[slot].device,
                "see the device above, then dmesg and nvidia-smi", "%s: %s", what, why);
    }
}

/* Slots of a device, by name: a DEVICE event concerns them all. */
static void tell_device(struct round *r, const struct gpud_event *e)
{
    for (uint32_t i = 0; e->device_health >= GPUD_HEALTH_QUARANTINED && i < r->n; i++)
        if (!strcmp(r->slot[i].device, e->device))
            tell(r, i, gpud_health_name(e->device_health), e->text);
}

static void tell_failures(struct round *r, uint64_t wait)
{
    struct gpud_event e[16];
    int n;

    e[0].struct_size = sizeof e[0];
    n = gpud_dispatcher_poll(r->dispatcher, e, 16, wait);
    read_slots(r);
    for (int i = 0; i < n; i++)
        if (e[i].kind == GPUD_EVENT_SETUP_FAILURE)
            tell(r, e[i].slot, "no worker starts", e[i].text);
        else if (e[i].kind == GPUD_EVENT_DEVICE)
            tell_device(r, &e[i]);
}

/* Slots that may still become ready. */
static uint32_t coming(const struct round *r)
{
    const char *why;
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->n; i++)
        n += !r->told[i] && !is_ready(r->slot[i].state) && !is_out(r, i, &why);
    return n;
}

static void await_workers(struct round *r)
{
    uint64_t until = now() + SETUP_LIMIT;

    do
        tell_failures(r, LOOKS_PER_WAIT);
    while (coming(r) && now() < until);
    for (uint32_t i = 0; i < r->n; i++) {
        const char *why = gpud_slot_state_name(r->slot[i].state);
        if (!is_ready(r->slot[i].state)) {
            (void)is_out(r, i, &why);
            tell(r, i, "its worker is not ready", why);
        }
    }
}

/* Whether the slot had none before. */
static bool is_first(struct round *r, uint32_t slot)
{
    bool first = slot < r->n && !r->served[slot];

    if (first)
        r->served[slot] = true;
    return first;
}

static uint32_t takers(const struct round *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->n; i++)
        n += is_ready(r->slot[i].state) && !r->told[i];
    return n;
}

/* One task for each worker that is ready: idle workers get one each before any gets a second. How
 * many ended as they should on a worker that had none before, and how long the slowest took. */
static uint32_t play(struct round *r, enum order order, uint32_t outcome, uint64_t *ret_slowest)
{
    uint64_t begun = now();
    uint32_t good = 0;

    *ret_slowest = 0;
    if (meeting) {
        atomic_store(&meeting->begun, 0);
        atomic_store(&meeting->wanted, takers(r));
    }
    memset(r->id, 0, sizeof r->id);
    for (uint32_t i = 0; i < r->n; i++)
        if (is_ready(r->slot[i].state) && !r->told[i])
            (void)submit(r->dispatcher, order, &r->id[i]);
    for (uint32_t i = 0; i < r->n; i++) {
        struct trial t;
        if (!r->id[i] || collect(r->dispatcher, r->id[i], begun, &t))
            continue;
        good += t.outcome == outcome && is_first(r, t.slot);
        if (t.outcome != outcome)
            finding_timed(r->d, VERDICT_PROBLEM, "GPU task", "see the devices above", t.took,
                          "ended %s: %s", outcome_of(&t), t.text);
        *ret_slowest = t.took > *ret_slowest ? t.took : *ret_slowest;
    }
    return good;
}

static uint32_t greet(struct round *r, uint64_t *ret_slowest)
{
    memset(r->served, 0, sizeof r->served);
    return play(r, MEET, GPUD_OUTCOME_SUCCESS, ret_slowest);
}

/* Kills each worker. A task that is given out late finds the first successor there already, and
 * kills that one. */
static uint32_t kill_each(struct round *r, uint64_t *ret_slowest)
{
    uint32_t n, all = takers(r);

    memset(r->served, 0, sizeof r->served);
    n = play(r, IGNORE, GPUD_OUTCOME_TIMEOUT, ret_slowest);
    for (int i = 1; i < KILL_ROUNDS && n < all; i++) {
        await_workers(r);
        n += play(r, IGNORE, GPUD_OUTCOME_TIMEOUT, ret_slowest);
    }
    return n;
}

static void play_all(struct round *r)
{
    uint64_t took, begun = now();
    uint32_t n;
    char text[24];

    await_workers(r);
    took = now() - begun;
    n = greet(r, &begun);
    if (!n)
        return;
    finding_timed(r->d, VERDICT_OK, "GPU workers", NULL, took,
                  "%u of %u ran a task; the last was ready after %s", n, r->n,
                  duration_text(took, text));
    n = kill_each(r, &took); /* a kill: the successor passes a canary before its first task */
    finding_timed(r->d, VERDICT_OK, "GPU hard limit", NULL, took, "%u killed after %s", n,
                  duration_text(took, text));
    begun = now();
    await_workers(r);
    n = greet(r, &took);
    took = now() - begun;
    if (n)
        finding_timed(r->d, VERDICT_OK, "GPU canary", NULL, took,
                      "%u successor%s passed the canary and ran a task within %s", n,
                      n == 1 ? "" : "s", duration_text(took, text));
}

static void check_gpus(struct doctor *d)
{
    struct gpud_options o = settings(d->devices ? d->devices : "all");
    struct gpud_error e = GPUD_ERROR_INIT;
    struct round *r = calloc(1, sizeof *r);

    if (!r)
        return;
    r->d = d;
    if (gpud_dispatcher_create(&r->dispatcher, &o, &e))
        finding(d, VERDICT_PROBLEM, "GPU workers", "see visible devices above",
                "no dispatcher can be created for them: %s", e.text);
    else
        play_all(r);
    gpud_dispatcher_destroy(&r->dispatcher, NULL);
    free(r);
}

/* ---- the bundled worker program ---- */

/* Without gpud_init a dispatcher has a spawner of its own, which is that program; and the worker is
 * this program, executed. */
static void check_program(struct doctor *d)
{
    struct gpud_options o = settings("cpu:1");
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_dispatcher *dispatcher = NULL;
    char path[4096];
    const char *argv[] = { path, "version", NULL };
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    path[n > 0 ? n : 0] = '\0';
    o.argv = argv;
    o.definition = "doctor";
    gpud_monitor_close(&d->look.monitor);
    if (gpud_fini()) {
        finding(d, VERDICT_PROBLEM, "worker program", "see the tasks above",
                "not checked: a dispatcher of the tasks still exists");
        return;
    }
    if (gpud_dispatcher_create(&dispatcher, &o, &e)) {
        finding(d, VERDICT_PROBLEM, "worker program",
                "install library and gpudispatch-worker of one version, or set GPUD_WORKER_PROGRAM",
                "gpudispatch-worker: %s: %s", gpud_error_name(e.code), e.text);
        return;
    }
    finding(d, VERDICT_OK, "worker program", NULL,
            "gpudispatch-worker exists and has this version");
    check_success(d, dispatcher, "executed worker",
                  "a program was executed as worker and its task succeeded");
    gpud_dispatcher_destroy(&dispatcher, NULL);
}

void check_tasks(struct doctor *d)
{
    if (d->quick) {
        finding(d, VERDICT_OK, "tasks", NULL, "not run: --quick");
        return;
    }
    if (init_error.code)
        finding(d, VERDICT_PROBLEM, "gpud_init", "see the limits above", "%s: %s",
                gpud_error_name(init_error.code), init_error.text);
    else {
        check_cpu(d);
        check_budget(d);
        if (d->looked && d->look.n)
            check_gpus(d);
    }
    check_program(d);
}
