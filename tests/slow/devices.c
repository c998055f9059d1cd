/* SPDX-License-Identifier: MIT */
/*
 * devices - everything befalls the devices of two dispatchers at once, and it is counted.
 *
 *     devices [--seconds S] [--rounds R] [--seed S] [--threads T] [--gpus 0|1|2] [--verbose 1]
 *
 * Each round is a process of its own: gpud_init, two dispatchers with options, devices and scripts
 * drawn by lot, and T threads that submit, cancel, wait, keep, look, add, drain, return and remove
 * devices, trigger what the scripts hold ready, kill and stop workers, monitors and (seldom) the
 * spawner, and fork. Then all is closed and destroyed; every accepted task has exactly one outcome
 * or is counted as uncollected [C1], destroy returns in time [C10], no file, thread, process or
 * mapping stays [C19]. Some rounds end by SIGKILL instead: everything below is gone soon
 * [C11]. With --gpus the devices are GPUs by the fake libraries: 1 in every other round, 2 in
 * all. A round is run again by its seed: --rounds 1 --seed S.
 */
#include "fixture.h"

#include "asked.h"
#include "befalls.h"
#include "kept.h"
#include "lots.h"
#include "scripted.h"
#include "snapshot.h"

#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TASKS_MAX = 20000, THREADS_MAX = 32, ROUND_S = 90 };

static struct {
    uint64_t seconds, rounds, seed, threads, gpus, verbose;
} want = { .seconds = 10, .rounds = UINT64_MAX, .seed = 1, .threads = 6, .gpus = 1 };

/* What a task does in its worker, and a setup. */
enum deed {
    DEED_NOTHING,
    DEED_RESULT,
    DEED_FAIL,
    DEED_CRASH,
    DEED_EXIT,
    DEED_SLEEP,
    DEED_CHILD,
    DEED_DEAF,
    DEED_KINDS
};
enum start { START_OK, START_SLOW, START_ENDLESS, START_FAILS, START_DIES, START_KINDS };

struct work {
    uint32_t deed, size;
    uint64_t nap, tag;
};

/* One dispatcher and what is known of its tasks. */
struct stage {
    gpud_dispatcher *d;
    struct gpud_options options;
    char devices[200], script[64];
    uint64_t starts; /* how many setups in 16 are not in order */
    int runs, on_gpus;
    uint64_t fakes;        /* in `devices` */
    uint64_t lot;          /* of the thread that drives */
    struct work work;      /* of its source */
    char label[24];
    _Atomic uint32_t next; /* tag */
    _Atomic uint32_t accepted, delivered;
    _Atomic uint8_t taken[TASKS_MAX], outcomes[TASKS_MAX], awaited[TASKS_MAX];
    _Atomic uint64_t id[TASKS_MAX];
    struct kept kept;
};

static struct stage stage[2];
static _Atomic int over;
static _Atomic uint64_t by_outcome[GPUD_OUTCOME_COUNT];
static const char *_Atomic place = "start";

/* ---- worker ---- */

static int setup(gpud_worker *w, void **ret_state)
{
    size_t size;
    const uint64_t *starts = gpud_worker_setup_data(w, &size);
    uint64_t state = t_now() ^ (uint64_t)getpid() << 32;

    *ret_state = w;
    if (size != sizeof *starts || below(&state, 16) >= *starts)
        return 0;
    switch (below(&state, START_KINDS)) {
    case START_SLOW:
        nap(below(&state, T_MS(300)));
        return 0;
    case START_ENDLESS:
        t_rest();
    case START_FAILS:
        return gpud_worker_fail(w, 3, "as asked");
    case START_DIES:
        (void)kill(getpid(), SIGKILL);
        return 0;
    default:
        return 0;
    }
}

static int process(gpud_task *t, void *state)
{
    const struct work *w = gpud_task_data(t);
    unsigned char *result;
    uint64_t until;

    (void)state;
    switch (gpud_task_size(t) < sizeof *w ? DEED_NOTHING : w->deed) {
    case DEED_RESULT:
        if (gpud_task_result_alloc(t, w->size, (void **)&result))
            return gpud_task_fail(t, 5, "no room");
        memset(result, (int)(w->tag & 255), w->size);
        return 0;
    case DEED_FAIL:
        return gpud_task_fail(t, 7, "as asked");
    case DEED_CRASH:
        (void)kill(getpid(), SIGKILL);
        return 0;
    case DEED_EXIT:
        _exit(3);
    case DEED_SLEEP:
        nap(w->nap);
        return gpud_task_expired(t) ? 9 : 0;
    case DEED_CHILD:
        if (fork() == 0)
            t_rest();
        return 0;
    case DEED_DEAF:
        for (until = t_now() + w->nap * 8; t_now() < until;)
            nap(100000);
        return 0;
    default:
        return 0;
    }
}

/* ---- what comes back ---- */

static void note_outcome(struct stage *s, const struct gpud_event *e, int waited)
{
    const unsigned char *result = e->result;

    if (e->tag >= TASKS_MAX || atomic_load(&s->awaited[e->tag]) != (waited ? 2 : 1))
        T_FAIL("an outcome of tag %" PRIu64 ", by the wrong way", e->tag);
    if (atomic_fetch_add(&s->outcomes[e->tag], 1))
        T_FAIL("a second outcome of tag %" PRIu64, e->tag);
    T_CMP(e->outcome, >, 0);
    T_CMP(e->outcome, <, GPUD_OUTCOME_COUNT);
    if (e->outcome == GPUD_OUTCOME_SUCCESS && e->result_size &&
        (result[0] != (e->tag & 255) || result[e->result_size - 1] != (e->tag & 255)))
        T_FAIL("tag %" PRIu64 " has another's result", e->tag);
    if (e->outcome == GPUD_OUTCOME_CRASHED && e->code == GPUD_EDEVICE && !*e->text)
        T_FAIL("tag %" PRIu64 " was lost with its device, and no text says why", e->tag);
    atomic_fetch_add(&by_outcome[e->outcome], 1);
    atomic_fetch_add(&s->delivered, 1);
}

static void note_device(const struct gpud_event *e)
{
    T_CMP(e->device_health, <, GPUD_HEALTH_COUNT);
    T_CHECK(*e->text && *e->device && *e->device_uuid);
}

static void take(struct stage *s, struct gpud_event *e)
{
    if (e->kind == GPUD_EVENT_OUTCOME)
        note_outcome(s, e, 0);
    if (e->kind == GPUD_EVENT_DEVICE)
        note_device(e);
    if (want.verbose && (e->kind != GPUD_EVENT_OUTCOME || e->outcome != GPUD_OUTCOME_SUCCESS))
        t_print_event(e);
    if (once_in(&s->lot, 16) && gpud_event_keep(s->d, e) == 0)
        kept_add(&s->kept, e);
}

/* ---- the calls ---- */

/* Fills a task; the tag, or -1 when there are no more. */
static int64_t make_task(struct stage *s, uint64_t *state, struct gpud_task_desc *t, struct work *w,
                         char *label)
{
    static const uint32_t sizes[] = { 0, 1, 64, 65, 4096, 4097, 20000 };
    uint32_t tag = atomic_fetch_add(&s->next, 1);

    if (tag >= TASKS_MAX)
        return -1;
    *w = (struct work){ .nap = below(state, 6) ? below(state, T_US(500)) : below(state, T_MS(40)),
                        .tag = tag,
                        .size = PICK(state, sizes) };
    w->deed = below(state, 8) ? DEED_RESULT * (uint32_t)below(state, 2)
                              : (uint32_t)below(state, DEED_KINDS);
    *t = (struct gpud_task_desc){
        .struct_size = sizeof *t, .data = w, .size = sizeof *w, .tag = tag
    };
    (void)snprintf(label, 24, "%u", tag);
    t->label = tag % 3 == 0 ? label : NULL;
    t->priority = (int32_t)below(state, 3);
    t->limit = below(state, 5) ? 0 : 1 + below(state, T_MS(30));
    t->stall_limit = below(state, 12) ? 0 : 1 + below(state, T_MS(30));
    t->expires = below(state, 12) ? 0 : 1 + below(state, T_MS(200));
    t->max_attempts = (uint32_t)below(state, 4);
    t->retry_causes = (uint32_t)below(state, 16);
    return tag;
}

static void taken(struct stage *s, int64_t tag, uint64_t id)
{
    atomic_store(&s->id[tag], id);
    atomic_store(&s->taken[tag], 1);
    atomic_fetch_add(&s->accepted, 1);
}

static void submit(struct stage *s, uint64_t *state, uint64_t wait)
{
    struct gpud_task_desc t;
    struct work w;
    char label[24];
    int64_t tag = make_task(s, state, &t, &w, label);
    uint64_t id;
    int r;

    if (tag < 0)
        return;
    /* run waits for room, which only a wait would make */
    t.awaited = !s->runs && once_in(state, 4) ? 1 : 0;
    atomic_store(&s->awaited[tag], t.awaited ? 2 : 1);
    r = gpud_dispatcher_submit(s->d, &t, wait, &id, NULL);
    if (r == 0)
        taken(s, tag, id);
    else if (r != GPUD_EFULL && r != GPUD_ECLOSED)
        T_FAIL("submit: %s", gpud_error_name(r));
}

static void wait_one(struct stage *s, uint64_t *state, uint64_t tag, uint64_t timeout)
{
    struct gpud_event e = GPUD_EVENT_INIT;
    int r;

    if (!atomic_load(&s->taken[tag]) || atomic_load(&s->awaited[tag]) != 2)
        return;
    r = gpud_dispatcher_wait(s->d, atomic_load(&s->id[tag]), &e, timeout, NULL);
    if (r == 0) {
        T_EQ(e.tag, tag);
        note_outcome(s, &e, 1);
        if (once_in(state, 2))
            kept_add(&s->kept, &e);
        else
            T_EQ(gpud_event_release(&e), 0);
    } else if (r != GPUD_ETIMEOUT && r != GPUD_ENOTFOUND && r != GPUD_EBUSY && r != GPUD_EFULL) {
        T_FAIL("wait: %s", gpud_error_name(r));
    }
}

static uint64_t some_tag(struct stage *s, uint64_t *state)
{
    uint32_t n = atomic_load(&s->next);

    n = n > TASKS_MAX ? TASKS_MAX : n;
    return n == 0 ? 0 : below(state, 8) && n > 50 ? n - 1 - below(state, 50) : below(state, n);
}

static void check_row(const struct gpud_device_info *row)
{
    T_CMP(row->health, <, GPUD_HEALTH_COUNT);
    T_CHECK(*row->name && *row->uuid);
    T_CMP(row->draining, <=, 1);
    if (row->health != GPUD_HEALTH_HEALTHY)
        T_CHECK(*row->evidence);
}

static void name_one(struct stage *s, uint64_t *state, char *name, size_t size)
{
    struct gpud_device_info rows[12] = { { .struct_size = sizeof rows[0] } };
    int n = gpud_dispatcher_devices(s->d, rows, 12);

    T_CMP(n, >=, 0);
    for (int i = 0; i < n && i < 12; i++)
        check_row(&rows[i]);
    (void)snprintf(name, size, "fake:%" PRIu64, below(state, 6));
    if (n > 0) {
        const struct gpud_device_info *row = &rows[below(state, (uint64_t)(n < 12 ? n : 12))];
        (void)snprintf(name, size, "%s", once_in(state, 2) ? row->name : row->uuid);
    }
}

static void add_devices(struct stage *s, uint64_t *state)
{
    static const char *const nonsense[] = { "",         ",",
                                            "fake:",    "fake:0",
                                            "fake:257", "fake:1/0",
                                            "cpu:0",    "fake:1,script=none",
                                            "nothing",  "fake:1,fake:1,",
                                            "gpu:99",   "MIG-" };
    static const char *const fakes[] = { "fake:1", "fake:2", "fake:1/2", "fake:4" };
    static const char *const gpus[] = { "cpu:1", "all",     "0",       "2",
                                        "1/2",   "gpu:1:0", "gpu:1:1", "GPU-" };
    struct gpud_error error = GPUD_ERROR_INIT;
    char entry[300];
    int r;

    if (once_in(state, 4))
        (void)snprintf(entry, sizeof entry, "%s", PICK(state, nonsense));
    else if (s->on_gpus)
        (void)snprintf(entry, sizeof entry, "%s", PICK(state, gpus));
    else if (once_in(state, 3))
        (void)snprintf(entry, sizeof entry, "cpu:%" PRIu64, 1 + below(state, 2));
    else if (once_in(state, 2))
        (void)snprintf(entry, sizeof entry, "%s", PICK(state, fakes));
    else
        (void)snprintf(entry, sizeof entry, "%s,script=%s", PICK(state, fakes), s->script);
    r = gpud_dispatcher_device_add(s->d, entry, &error);
    if (r && r != GPUD_EDEVICE && r != GPUD_EINVAL && r != GPUD_ECLOSED && r != GPUD_EFULL &&
        r != GPUD_ESPAWNER)
        T_FAIL("device_add %s: %s: %s", entry, gpud_error_name(r), error.text);
    if (r == GPUD_EDEVICE)
        T_CHECK(*error.text);
}

static void change_device(struct stage *s, uint64_t *state)
{
    char name[120];
    int r;

    name_one(s, state, name, sizeof name);
    switch (below(state, 8)) {
    case 0: case 1:
        r = gpud_dispatcher_device_drain(s->d, name);
        break;
    case 2:
        r = gpud_dispatcher_device_remove(s->d, name);
        break;
    case 3:
        add_devices(s, state);
        return;
    default:
        r = gpud_dispatcher_device_return(s->d, name);
    }
    if (r && r != GPUD_ENOTFOUND)
        T_FAIL("%s: %s", name, gpud_error_name(r));
}

static void look(struct stage *s)
{
    struct gpud_stats st = { .struct_size = sizeof st };
    struct gpud_slot_stats rows[4] = { { .struct_size = sizeof rows[0] } };

    T_OK(gpud_dispatcher_stats(s->d, &st));
    T_CMP(st.delivered, <=, st.accepted);
    T_CMP(st.devices_out + st.devices_healthy, <=, st.devices);
    T_CMP(gpud_dispatcher_slots(s->d, rows, 4), >=, 0);
}

static void trigger(struct stage *s, uint64_t *state)
{
    char name[64];

    (void)s;
    (void)snprintf(name, sizeof name, "trigger%" PRIu64, below(state, TRIGGERS));
    t_trigger(name);
}

static void hurt(uint64_t *state)
{
    struct t_procs all = t_procs_below(getpid());
    static const int signals[] = { SIGKILL, SIGKILL, SIGSTOP, SIGSTOP, SIGTERM };

    if (all.count) {
        const struct t_proc *p = &all.list[below(state, all.count)];
        int sig = PICK(state, signals), keeper = strcmp(p->comm, "gpud-keeper") == 0,
            spawner = strcmp(p->comm, "gpud-spawner") == 0;
        if (strncmp(p->comm, "gpud-", 5))
            sig = 0; /* a fork of ours */
        if ((!spawner || (sig == SIGKILL && once_in(state, 60))) && !keeper) {
            (void)kill(p->pid, sig);
            nap(below(state, T_MS(30)));
            if (sig == SIGSTOP && (strcmp(p->comm, "gpud-monitor") || once_in(state, 2)))
                (void)kill(p->pid, SIGCONT);
        } else if (keeper && sig == SIGKILL && once_in(state, 8)) {
            (void)kill(p->pid, sig);
        }
    }
    t_procs_free(&all);
}

/* A child that ends without exec: what it has of ours is dead to it.  The dispatcher is not freed.
 */
static void fork_a_child(struct stage *s)
{
    struct gpud_stats st = { .struct_size = sizeof st };
    int status;
    pid_t pid;

    if (T_SANITIZED)
        return;
    pid = fork();
    if (pid == 0)
        _exit(gpud_dispatcher_stats(s->d, &st) != GPUD_EFORKED ||
              gpud_dispatcher_device_drain(s->d, "fake:0") != GPUD_EFORKED ||
              gpud_dispatcher_device_add(s->d, "fake:1", NULL) != GPUD_EFORKED ||
              gpud_dispatcher_devices(s->d, NULL, 0) != GPUD_EFORKED);
    T_CMP(pid, >, 0);
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(status, 0);
}

static void *caller(void *arg)
{
    uint64_t state = *(uint64_t *)arg;

    while (!atomic_load(&over)) {
        struct stage *s = &stage[below(&state, 2)];
        uint64_t tag;
        if (!s->d)
            continue;
        switch (below(&state, 32)) {
        case 0: case 1: case 2: case 3: case 4: case 5: case 6: case 7: case 8: case 9:
            submit(s, &state, below(&state, 4) ? 0 : T_MS(1));
            break;
        case 10: case 11: case 12: case 13:
            wait_one(s, &state, some_tag(s, &state), below(&state, 2) ? below(&state, T_MS(5)) : 0);
            break;
        case 14:
            tag = some_tag(s, &state);
            if (atomic_load(&s->taken[tag]))
                (void)gpud_dispatcher_cancel(s->d, atomic_load(&s->id[tag]), GPUD_CANCEL_HARD);
            break;
        case 15:
            kept_release_one(&s->kept, &state);
            break;
        case 16:
            look(s);
            break;
        case 17:
            if (once_in(&state, 4))
                change_device(s, &state);
            break;
        case 18:
            if (once_in(&state, 20))
                trigger(s, &state);
            break;
        case 19:
            if (once_in(&state, 10))
                hurt(&state);
            break;
        case 20:
            if (once_in(&state, 50))
                fork_a_child(s);
            break;
        case 21:
            if (once_in(&state, 3000))
                T_OK(gpud_dispatcher_stop(s->d, (uint32_t)below(&state, 3)));
            break;
        default:
            nap(below(&state, T_US(800)));
        }
    }
    return NULL;
}

/* ---- the thread that drives ---- */

static int source(struct gpud_task_desc *task, size_t n, void *user)
{
    struct stage *s = user;
    struct gpud_task_desc t;
    uint64_t state = s->options.seed + atomic_load(&s->next);
    int64_t tag;

    (void)n;
    if (atomic_load(&over))
        return 0;
    nap(below(&state, T_US(300)));
    tag = make_task(s, &state, &t, &s->work, s->label);
    if (tag < 0)
        return 0;
    atomic_store(&s->awaited[tag], 1);
    /* maybe: run does not say whether it was accepted when it stops */
    atomic_store(&s->taken[tag], 2);
    *task = t;
    return 1;
}

static int on_event(const struct gpud_event *event, void *user)
{
    struct stage *s = user;
    struct gpud_event copy = *event;

    take(s, &copy);
    if (once_in(&s->lot, 64))
        change_device(s, &s->lot);
    if (once_in(&s->lot, 16))
        submit(s, &s->lot, 0);
    return 0;
}

static int poll_once(struct stage *s, uint64_t wait)
{
    struct gpud_event events[32] = { { .struct_size = sizeof events[0] } };
    int n = gpud_dispatcher_poll(s->d, events, 1 + below(&s->lot, 32), wait);

    if (n < 0 && n != GPUD_EEND)
        T_FAIL("poll: %s", gpud_error_name(n));
    for (int i = 0; i < n; i++)
        take(s, &events[i]);
    return n;
}

static void *driver(void *arg)
{
    struct stage *s = arg;
    const struct gpud_callbacks callbacks = { .struct_size = sizeof callbacks,
                                              .on_success = on_event,
                                              .on_error = on_event,
                                              .on_event = on_event };
    struct gpud_error error = GPUD_ERROR_INIT;
    int r;

    if (!s->d)
        return NULL;
    if (s->runs) {
        r = gpud_dispatcher_run(s->d, source, &callbacks, s, &error);
        if (r && r != GPUD_ESTOPPED && r != GPUD_ECLOSED && r != GPUD_ENOWORKER)
            T_FAIL("run: %s: %s", gpud_error_name(r), error.text);
    }
    while (!atomic_load(&over) && poll_once(s, T_MS(5)) != GPUD_EEND)
        if (once_in(&s->lot, 50))
            nap(below(&s->lot, T_MS(20)));
    return NULL;
}

/* ---- rounds ---- */

static void choose_devices(struct stage *s, uint64_t *state)
{
    static const struct {
        const char *devices;
        uint64_t n;
    } fakes[] = {
        { "fake:1", 1 },   { "fake:2", 2 },       { "fake:3", 3 },        { "fake:4", 4 },
        { "fake:2/2", 2 }, { "cpu:1,fake:2", 2 }, { "fake:3,fake:1", 4 }, { "fake:4", 4 }
    };
    static const char *const gpus[] = { "all", "0", "2,0", "all/2", "cpu:1,2", "0/2,2" };
    uint64_t i = below(state, T_LENGTH(fakes));

    if (s->on_gpus) {
        (void)snprintf(s->devices, sizeof s->devices, "%s", PICK(state, gpus));
        return;
    }
    s->fakes = fakes[i].n;
    if (s->fakes == 4 && once_in(state, 3))
        s->options.devices_per_worker = 2;
    (void)snprintf(s->devices, sizeof s->devices, "%s,script=%s", fakes[i].devices, s->script);
}

static void open_stage(struct stage *s, unsigned number, uint64_t *state, int on_gpus)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    int r;

    memset(s, 0, sizeof *s);
    kept_open(&s->kept);
    s->on_gpus = on_gpus;
    s->lot = lot(state);
    s->runs = once_in(state, 3);
    s->starts = once_in(state, 2) ? 0 : below(state, 6);
    (void)snprintf(s->script, sizeof s->script,
                   on_gpus                       ? "machine"
                   : number && once_in(state, 2) ? "script0"
                                                 : "script%u",
                   number);
    s->options = (struct gpud_options){
        .struct_size = sizeof s->options,
        .drive = s->runs ? 0 : (uint32_t)below(state, 2),
        .devices = s->devices,
        .queue_size =
            below(state, 2) ? 1 + (uint32_t)below(state, 8) : 64 + (uint32_t)below(state, 400),
        .sent_ahead = (uint32_t)below(state, 5),
        .payload_budget = 32u << 20,
        .setup_data = &s->starts,
        .setup_size = sizeof s->starts,
        .seed = lot(state),
        .setup_limit = once_in(state, 3) ? T_MS(1 + below(state, 100)) : T_MS(1000),
        .task_limit = T_MS(200),
        .grace = below(state, 3) ? T_MS(1 + below(state, 50)) : GPUD_AT_ONCE,
        .cleanup_limit = T_MS(500),
        .close_limit = T_MS(1 + below(state, 1500)),
        .kill_limit = T_MS(2000),
        .backoff = T_MS(1),
        .backoff_cap = T_MS(20),
        .failures_in_a_row = below(state, 2) ? 1000000 : 1 + (uint32_t)below(state, 4),
        .max_attempts = (uint32_t)below(state, 4),
        .retry_causes = (uint32_t)below(state, 16),
        .retry_backoff = below(state, 2) ? T_US(below(state, 3000)) : 0,
        .retry_backoff_cap = T_MS(5),
        .setup_concurrency = (uint32_t)below(state, 2),
        .slot_events = (uint32_t)below(state, 2),
        .start_events = (uint32_t)below(state, 2),
        .start = once_in(state, 5) ? GPUD_START_EXEC : GPUD_START_AUTO,
        .cuda = (uint32_t)(once_in(state, 4) ? below(state, 16) : 0),
        .canary_passes = (uint32_t)below(state, 3),
        .canary_backoff = T_MS(1 + below(state, 80)),
        .canary_backoff_cap = T_MS(100),
        .memory_wait = T_MS(1 + below(state, 200)),
        .xid_rules = once_in(state, 4) ? "79=reset,13=restart,43=lost" : NULL,
    };
    choose_devices(s, state);
    if (!on_gpus)
        write_befalls(
            s->script, state,
            &(struct befalls){ .gpus = s->fakes, .sets = s->options.devices_per_worker != 0 });
    r = gpud_dispatcher_create(&s->d, &s->options, &error);
    if (r && r != GPUD_EDEVICE)
        T_FAIL("create %s: %s: %s", s->devices, gpud_error_name(r), error.text);
    if (r)
        T_CHECK(!s->d && *error.text);
    if (r && want.verbose)
        printf("refused: %s\n", error.text);
}

static void tell(const char *why)
{
    (void)fprintf(stderr, "%s in %s\n", why, place);
    for (unsigned i = 0; i < 2; i++) {
        const struct gpud_options *o = &stage[i].options;
        struct gpud_stats st = { .struct_size = sizeof st };
        (void)fprintf(stderr,
                      "%s drive %u runs %d start %u queue %u ahead %u cuda %u close %" PRIu64
                      " starts %" PRIu64 "\n",
                      stage[i].devices, o->drive, stage[i].runs, o->start, o->queue_size,
                      o->sent_ahead, o->cuda, o->close_limit, stage[i].starts);
        if (stage[i].d && gpud_dispatcher_stats(stage[i].d, &st) == 0)
            for (size_t k = 0;
                 gpud_stats_info(k, &(struct gpud_stats_info)GPUD_STATS_INFO_INIT) == 0; k++) {
                struct gpud_stats_info info = GPUD_STATS_INFO_INIT;
                (void)gpud_stats_info(k, &info);
                if (gpud_stats_value(&st, k))
                    (void)fprintf(stderr, " %s %" PRIu64, info.name, gpud_stats_value(&st, k));
            }
        (void)fprintf(stderr, "\n");
    }
}

/* All have ended and all is fetched: each exactly once. */
static void check_counts(struct stage *s)
{
    struct gpud_stats st = t_stats(s->d);
    uint32_t n = atomic_load(&s->next);

    for (uint32_t i = 0; i < n && i < TASKS_MAX; i++)
        if (atomic_load(&s->taken[i]) < 2 &&
            atomic_load(&s->taken[i]) != atomic_load(&s->outcomes[i])) {
            tell("a count");
            T_FAIL("tag %u: accepted %u, outcomes %u", i, atomic_load(&s->taken[i]),
                   atomic_load(&s->outcomes[i]));
        }
    if (!s->runs)
        T_EQ(st.accepted, atomic_load(&s->accepted));
    T_EQ(st.delivered, st.accepted);
    T_EQ(st.delivered, atomic_load(&s->delivered));
    T_EQ(st.success + st.error + st.crashed + st.timeout + st.cancelled + st.no_worker,
         st.accepted);
}

static void collect(struct stage *s, uint64_t *state)
{
    uint32_t n = atomic_load(&s->next);

    place = "the rest of poll";
    while (poll_once(s, GPUD_NEVER) != GPUD_EEND)
        if (once_in(state, 2))
            kept_release_one(&s->kept, state);
    place = "the rest of wait";
    for (uint32_t i = 0; i < n && i < TASKS_MAX; i++)
        while (atomic_load(&s->taken[i]) && atomic_load(&s->awaited[i]) == 2 &&
               !atomic_load(&s->outcomes[i])) {
            while (s->kept.n)
                kept_release_one(&s->kept, state);
            wait_one(s, state, i, GPUD_NEVER);
        }
    check_counts(s);
}

static void close_stage(struct stage *s, uint64_t *state)
{
    uint64_t left = 0, began = t_now(), limit = s->options.close_limit, took, accepted;
    int collects = once_in(state, 2);

    if (s->d) {
        if (collects || once_in(state, 2)) {
            place = "close";
            T_OK(gpud_dispatcher_close(s->d, (uint32_t)below(state, 3), limit));
        }
        if (collects)
            collect(s, state);
        accepted = t_stats(s->d).accepted;
        place = "destroy";
        T_OK(gpud_dispatcher_destroy(&s->d, &left));
        T_EQ(atomic_load(&s->delivered) + left, accepted);
        took = t_now() - began;
        if (took > limit + T_S(T_SANITIZED ? 20 : 3)) {
            tell("late");
            T_FAIL("%.3f s from close to the end, and the limit was %.3f s", (double)took / 1e9,
                   (double)limit / 1e9);
        }
    }
    kept_close(&s->kept, state);
}

static void on_alarm(int sig)
{
    (void)sig;
    tell("hung");
    abort();
}

static const struct gpud_definition definition = {
    .struct_size = sizeof definition, .name = "test", .setup = setup, .process = process
};

static int nothing_is_below(void *user)
{
    struct t_procs all = t_procs_below(getpid());
    size_t n = 0;

    (void)user;
    for (size_t i = 0; i < all.count; i++)
        n += all.list[i].state != 'Z';
    t_procs_free(&all);
    return n == 0;
}

/* The whole life of a host.  One that is `doomed` is killed by its parent. */
static void one_round(uint64_t seed, int doomed)
{
    pthread_t thread[THREADS_MAX], drives[2];
    uint64_t seeds[THREADS_MAX], state = seed;
    struct t_counts before, now;
    int on_gpus = want.gpus > 1 || (want.gpus && once_in(&state, 2)), first;

    if (on_gpus) {
        write_befalls("machine", &state, &(struct befalls){ .gpus = 3, .drivers = 1 });
        char path[1100];
        T_CHECK(getcwd(path, 1024));
        strcat(path, "/machine");
        T_EQ(setenv("FAKE_SCRIPT", path, 1), 0);
    }
    (void)signal(SIGALRM, on_alarm);
    (void)alarm(ROUND_S * (T_SANITIZED ? 4 : 1));
    T_OK(gpud_init(&definition, 1, NULL));
    before = t_counts_take();
    place = "create";
    open_stage(&stage[0], 0, &state, on_gpus);
    open_stage(&stage[1], 1, &state, on_gpus);
    place = "the calls";
    for (int i = 0; i < 2; i++)
        t_thread(&drives[i], driver, &stage[i]);
    for (uint64_t i = 0; i < want.threads; i++) {
        seeds[i] = lot(&state);
        t_thread(&thread[i], caller, &seeds[i]);
    }
    t_pass(T_MS(200) + below(&state, T_MS(once_in(&state, 4) ? 4000 : 1500)));
    if (doomed)
        t_pass(T_S(60));
    atomic_store(&over, 1);
    place = "the threads";
    for (uint64_t i = 0; i < want.threads; i++)
        (void)pthread_join(thread[i], NULL);
    /* a run ends only when its tasks do, which may be never on devices that stay away */
    for (int i = 0; i < 2; i++) {
        if (stage[i].d && stage[i].runs)
            T_OK(gpud_dispatcher_close(stage[i].d, (uint32_t)below(&state, 3),
                                       stage[i].options.close_limit));
        (void)pthread_join(drives[i], NULL);
    }
    first = (int)below(&state, 2);
    close_stage(&stage[first], &state);
    close_stage(&stage[!first], &state);
    place = "the end";
    now = t_counts_later(&before);
    T_EQ(now.files, before.files);
    T_EQ(now.threads, before.threads);
    T_EQ(now.mappings, before.mappings);
    T_OK(gpud_fini());
    t_wait_until("nothing is left below the host", nothing_is_below, NULL);
    printf("seed %" PRIu64 ": %s | %s:", seed, stage[0].devices, stage[1].devices);
    for (uint32_t i = 1; i < GPUD_OUTCOME_COUNT; i++)
        printf(" %s %" PRIu64, gpud_outcome_name(i), by_outcome[i]);
    printf("\n");
    (void)fflush(stdout);
    _exit(0);
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about, (void)kind, (void)where;
    (void)remove(path);
    return 0;
}

/* Runs a round and looks at what it left.  1 when all was well. */
static int watch_round(uint64_t seed)
{
    uint64_t state = ~seed, killed = 0, gone;
    char directory[] = "/tmp/devices.XXXXXX", home[1024];
    int status, doomed = once_in(&state, 6);
    pid_t pid;

    T_CHECK(getcwd(home, sizeof home) && mkdtemp(directory) && chdir(directory) == 0);
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0)
        one_round(seed, doomed);
    T_CMP(pid, >, 0);
    if (doomed) {
        t_pass(T_MS(20) + below(&state, T_MS(900)));
        killed = t_now();
        (void)kill(pid, SIGKILL);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    t_wait_until("nothing is left of the round", nothing_is_below, NULL);
    gone = t_now();
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    T_EQ(chdir(home), 0);
    (void)nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    if (doomed && WIFSIGNALED(status)) {
        if (want.verbose || gone - killed > T_S(1))
            printf("seed %" PRIu64 ": killed, all gone after %.3f s\n", seed,
                   (double)(gone - killed) / 1e9);
        return gone - killed < T_S(T_SANITIZED ? 20 : 5);
    }
    if (status)
        (void)fprintf(stderr, "seed %" PRIu64 ": the round ended with %s %d\n", seed,
                      WIFSIGNALED(status) ? "signal" : "status",
                      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return status == 0;
}

static void parse(int argc, char **argv)
{
    static const struct asked all[] = {
        { "--seconds", &want.seconds }, { "--rounds", &want.rounds }, { "--seed", &want.seed },
        { "--threads", &want.threads }, { "--gpus", &want.gpus },     { "--verbose", &want.verbose }
    };

    asked_read(
        argc, argv,
        "devices [--seconds S] [--rounds R] [--seed S] [--threads T] [--gpus 0|1|2] [--verbose 1]",
        all, T_LENGTH(all));
    if (want.threads == 0 || want.threads > THREADS_MAX)
        exit(2);
}

int main(int argc, char **argv)
{
    uint64_t until, rounds = 0, bad = 0;

    if (getenv("GPUD_WORKER")) /* executed */
        return gpud_init(&definition, 1, NULL);
    parse(argc, argv);
    T_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    until = t_now() + T_S(want.seconds);
    do
        bad += !watch_round(want.seed + rounds);
    while (++rounds < want.rounds && t_now() < until);
    printf("%" PRIu64 " rounds from seed %" PRIu64 ", %" PRIu64 " bad\n", rounds, want.seed, bad);
    return bad != 0;
}
