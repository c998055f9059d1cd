/* SPDX-License-Identifier: MIT */
/* device_rows.c - the use of a device in its row: state, worker, task, and when it is ready. */
#include "pooled.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Words.  Setup, tasks and cleanup count how often they began; then each waits until its gate has
 * been opened as often as it was shut. */
enum { SETUPS, RUNS, CLEANUPS, SHUT, OPENED = SHUT + 3, BROKEN = OPENED + 3 };
enum gate { SETUP, RUN, CLEANUP };
enum { LONG = 1, PROGRESS = 2 }; /* tags */
#define RUN_TIME T_MS(300)

static void shut(enum gate gate)
{
    (void)t_word_add((unsigned)SHUT + gate);
}

static void reopen(enum gate gate)
{
    t_word_set((unsigned)OPENED + gate, t_word((unsigned)SHUT + gate));
}

static void pass(enum gate gate)
{
    (void)t_word_add((unsigned)SETUPS + gate);
    t_word_wait((unsigned)OPENED + gate, t_word((unsigned)SHUT + gate));
}

static int setup(gpud_worker *w, void **ret_state)
{
    (void)w, (void)ret_state;
    pass(SETUP);
    return t_word(BROKEN) ? 7 : 0;
}

static int process(gpud_task *t, void *state)
{
    (void)state;
    if (gpud_task_tag(t) == PROGRESS)
        T_OK(gpud_task_progress(t, 0.25, "a quarter"));
    if (gpud_task_tag(t) == LONG)
        t_pass(RUN_TIME);
    pass(RUN);
    return 0;
}

static void cleanup(gpud_worker *w, void *state)
{
    (void)w, (void)state;
    pass(CLEANUP);
}

/* ---- rows ---- */

struct wanted {
    gpud_dispatcher *d;
    const char *device;
    uint32_t state;
};

static int is_in_state(void *user)
{
    const struct wanted *w = user;

    return t_device(w->d, w->device).state == w->state;
}

/* Waits for the state, and checks what holds for any. */
static struct gpud_device_info in_state(gpud_dispatcher *d, const char *device, uint32_t state)
{
    struct wanted w = { d, device, state };
    struct gpud_device_info row;
    char what[64];

    (void)snprintf(what, sizeof(what), "%s is %s", device, gpud_device_state_name(state));
    t_wait_until(what, is_in_state, &w);
    row = t_device(d, device);
    T_EQ(row.state, state);
    T_CMP(row.state_since, >, 0);
    T_CMP(row.state_since, <=, t_now());
    if (state != GPUD_DEVICE_STATE_STARTING) /* else its keeper may not have reported the pid */
        T_CHECK(!row.pid == !row.workers);
    if (state != GPUD_DEVICE_STATE_BUSY && state != GPUD_DEVICE_STATE_DRAINING)
        T_EQ(row.task_id, 0);
    if (row.slot != GPUD_UNKNOWN32) {
        const struct gpud_slot_stats slot = t_slot(d, row.slot);
        if (state != GPUD_DEVICE_STATE_STARTING)
            T_EQ(slot.pid, row.pid);
        T_EQ(slot.since, row.state_since);
        T_EQ(slot.task_id, row.task_id);
        T_TEXT(slot.class_name, row.class_name);
        T_TEXT(gpud_slot_state_name(slot.state), gpud_device_state_name(state));
    }
    return row;
}
#define IN_STATE(d, device, name) in_state((d), (device), GPUD_DEVICE_STATE_##name)

static void is_ready_now(const struct gpud_device_info *row)
{
    T_EQ(row->ready_at, row->state_since);
}

/* ---- not pooled ---- */

T_CASE(names)
{
    T_TEXT(gpud_device_state_name(GPUD_DEVICE_STATE_IDLE), "IDLE");
    T_TEXT(gpud_device_state_name(GPUD_DEVICE_STATE_STOPPED), "STOPPED");
    T_TEXT(gpud_device_state_name(0), "?");
    T_TEXT(gpud_device_state_name(GPUD_DEVICE_STATE_COUNT), "?");
}

/* The limit of the first task is all that is known; a task without one has no time. */
T_CASE(ready_and_busy)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:2");
    struct gpud_device_info row = IN_STATE(d, "cpu:1", READY);
    uint64_t id;

    is_ready_now(&row);
    T_EQ(row.workers, 1);
    T_EQ(row.slot, 1);
    T_EQ(row.tasks_done, 0);
    T_TEXT(row.class_name, "");
    shut(RUN);
    (void)IN_STATE(d, "cpu:0", READY);
    id = t_submit(d, T_TASK(.tag = PROGRESS, .limit = T_S(1000)));
    T_SUBMIT(d, .tag = PROGRESS);
    t_word_wait(RUNS, 2);
    t_collect_kind(d, &log, GPUD_EVENT_PROGRESS, 2);
    row = IN_STATE(d, t_device(d, "cpu:0").task_id == id ? "cpu:0" : "cpu:1", BUSY);
    T_EQ(row.task_id, id);
    T_CHECK(row.progress == 0.25);
    T_CMP(row.task_started, >=, row.state_since);
    T_EQ(row.ready_at, row.task_started + T_S(1000));
    row = IN_STATE(d, row.index ? "cpu:0" : "cpu:1", BUSY);
    T_CHECK(row.task_id && row.task_id != id);
    T_EQ(row.ready_at, 0);
    reopen(RUN);
    t_collect(d, &log, 2);
    for (uint64_t tag = 10; tag < 20; tag++)
        (void)T_RUN(d, &log, SUCCESS, .tag = tag);
    T_EQ(t_device(d, "cpu:0").tasks_done + t_device(d, "cpu:1").tasks_done, 12);
    row = IN_STATE(d, "cpu:0", READY);
    T_EQ(row.task_id, 0);
    T_CHECK(row.progress == 0);
    t_end(&d, &log);
}

/* Later ones end as those before them did, by the median; one that takes longer, by its limit. */
T_CASE(busy_by_the_median)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:1");
    struct gpud_device_info row;
    uint64_t late;

    (void)T_RUN(d, &log, SUCCESS, .tag = LONG);
    shut(RUN);
    T_SUBMIT(d, .tag = 10, .limit = T_S(1000));
    t_word_wait(RUNS, 2);
    row = IN_STATE(d, "cpu:0", BUSY);
    late = row.task_started + t_stats(d).run_p50;
    T_CMP(t_stats(d).run_p50, >=, RUN_TIME);
    if (t_now() < late) /* else this machine is too slow to see it */
        T_EQ(row.ready_at, late);
    if (t_now() <= late)
        t_pass(late + 1 - t_now());
    T_EQ(t_device(d, "cpu:0").ready_at, row.task_started + T_S(1000));
    reopen(RUN);
    t_collect(d, &log, 2);
    t_end(&d, &log);
}

/* A worker dies without a task: the next one starts after a while. */
T_CASE(backoff)
{
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:1", .backoff = T_S(1000),
                                 .backoff_cap = T_S(1000));
    struct gpud_device_info row = IN_STATE(d, "cpu:0", READY);
    const uint64_t boot = t_slot(d, 0).setup_time;

    t_kill((pid_t)row.pid, SIGKILL);
    row = IN_STATE(d, "cpu:0", BACKOFF);
    T_EQ(row.workers, 0);
    T_EQ(row.ready_at, row.state_since + T_S(1000) + boot);
    t_end(&d, NULL);
}

/* Given up, until the user returns it. */
T_CASE(failed)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    struct gpud_device_info row;

    t_word_set(BROKEN, 1);
    d = T_BEGIN(setup, process, .devices = "cpu:1", .failures_in_a_row = 1);
    row = IN_STATE(d, "cpu:0", FAILED);
    T_EQ(row.workers, 0);
    T_EQ(row.ready_at, 0);
    t_word_set(BROKEN, 0);
    shut(SETUP);
    T_OK(gpud_dispatcher_device_return(d, "cpu:0"));
    t_word_wait(SETUPS, 2);
    row = IN_STATE(d, "cpu:0", STARTING); /* no boot has passed before: by its limit */
    T_EQ(row.workers, 1);
    T_CMP(row.ready_at, >, row.state_since);
    reopen(SETUP);
    (void)IN_STATE(d, "cpu:0", READY);
    t_collect_kind(d, &log, GPUD_EVENT_SETUP_FAILURE, 1);
    t_end(&d, &log);
}

/* The worker ends its task; the device counts its tasks until it is removed. */
T_CASE(drained_returned_and_added_anew)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:1");
    struct gpud_device_info row;
    size_t at = 0;
    uint64_t before;

    shut(RUN);
    T_SUBMIT(d, .tag = 10, .limit = T_S(1000));
    t_word_wait(RUNS, 1);
    (void)IN_STATE(d, "cpu:0", BUSY);
    before = t_now();
    T_OK(gpud_dispatcher_device_drain(d, "cpu:0"));
    row = IN_STATE(d, "cpu:0", DRAINING);
    T_CMP(row.state_since, >=, before);
    T_CHECK(row.task_id);
    T_EQ(row.workers, 1);
    T_EQ(row.ready_at, 0);
    reopen(RUN);
    t_collect(d, &log, 1);
    row = IN_STATE(d, "cpu:0", STOPPED);
    T_EQ(row.tasks_done, 1);
    T_EQ(row.ready_at, 0);
    T_EQ(row.workers, 0);
    T_OK(gpud_dispatcher_device_return(d, "cpu:0"));
    (void)T_RUN(d, &log, SUCCESS, .tag = 11);
    row = IN_STATE(d, "cpu:0", READY);
    T_EQ(row.tasks_done, 2);
    T_OK(gpud_dispatcher_device_pause(d, "cpu:0"));
    T_EQ(t_device(d, "cpu:0").ready_at, 0);
    T_OK(gpud_dispatcher_device_add(d, "cpu:1", NULL));
    T_OK(gpud_dispatcher_device_remove(d, "cpu:0"));
    (void)t_told(d, &log, &at, "cpu:0", "removed");
    T_OK(gpud_dispatcher_device_add(d, "cpu:1", NULL));
    row = IN_STATE(d, "cpu:0", READY);
    T_EQ(row.slot, 0);
    T_EQ(row.tasks_done, 0);
    t_end(&d, &log);
}

/* Of two slots the one with a task counts, whatever its number. */
T_CASE(two_slots)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    struct gpud_device_info row;

    t_init(setup, process, NULL);
    d = T_CREATE(.devices = "fake:1/2");
    t_wait_ready(d, 2);
    T_EQ(IN_STATE(d, "fake:0", READY).slot, 0);
    shut(RUN);
    T_SUBMIT(d, .tag = 10);
    t_word_wait(RUNS, 1);
    row = IN_STATE(d, "fake:0", BUSY);
    T_EQ(row.workers, 2);
    T_EQ(t_slot(d, !row.slot).state, GPUD_SLOT_READY);
    t_kill((pid_t)t_slot(d, !row.slot).pid, SIGKILL);
    T_EQ(IN_STATE(d, "fake:0", BUSY).slot, row.slot);
    reopen(RUN);
    t_collect(d, &log, 1);
    t_end(&d, &log);
}

static int is_not_expected(void *user)
{
    return t_device(user, "cpu:0").ready_at == 0;
}

/* The keeper is to kill the worker, and has not done so yet: the limit of its task is no time at
 * which the device is ready. */
T_CASE(while_a_worker_is_killed)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:1", .kill_limit = T_S(600),
                                 .grace = T_MS(50));
    struct t_proc worker = t_worker(d, 0), keeper = t_keeper_of(&worker);
    uint64_t id;

    shut(RUN);
    id = t_submit(d, T_TASK(.tag = 10, .limit = T_S(1000)));
    t_word_wait(RUNS, 1);
    T_CMP(IN_STATE(d, "cpu:0", BUSY).ready_at, >, 0);
    t_stop(&keeper);
    T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_HARD));
    t_wait_until("no time is expected", is_not_expected, d);
    T_EQ(IN_STATE(d, "cpu:0", BUSY).workers, 1);
    t_kill((pid_t)keeper.pid, SIGCONT);
    t_collect(d, &log, 1);
    t_end(&d, &log);
}

/* ---- pooled ---- */

#define SEEDS .boot_seed = T_S(1000), .unload_seed = T_S(2000), .run_seed = T_S(3000)
#define MEMORY(gib) T_REQUEST(.devices = 1, .share = 3000, .memory = (gib) << 30)

static gpud_dispatcher *pool(const char *script, const struct gpud_options *options)
{
    t_init(setup, process, cleanup);
    return t_fakes(1, script, options);
}

/* What a loaded model costs is held by its worker until another class wants the device. */
T_LONG_CASE(life_in_a_pool, 60)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = pool("", T_OPTIONS(.pooled = 1, .max_workers = 1));
    struct gpud_device_info row = IN_STATE(d, "fake:0", IDLE);

    is_ready_now(&row);
    T_EQ(row.slot, GPUD_UNKNOWN32);
    T_TEXT(row.class_name, "");
    T_OK(gpud_dispatcher_device_pause(d, "fake:0"));
    T_EQ(IN_STATE(d, "fake:0", IDLE).ready_at, 0);
    T_OK(gpud_dispatcher_device_return(d, "fake:0"));
    add(d, T_CLASS(.name = "a", .needs = MEMORY(12ull), .min_residence = T_MS(1), SEEDS,
                   .options = T_OPTIONS(.definition = "test")));
    add(d, T_CLASS(.name = "b", .needs = MEMORY(12ull), SEEDS,
                   .options = T_OPTIONS(.definition = "test")));
    shut(SETUP);
    shut(RUN);
    shut(CLEANUP);

    T_SUBMIT(d, .tag = PROGRESS, .class_name = "a");
    t_word_wait(SETUPS, 1);
    row = IN_STATE(d, "fake:0", STARTING);
    T_TEXT(row.class_name, "a");
    T_EQ(row.workers, 1);
    T_EQ(row.ready_at, row.state_since + T_S(1000));
    reopen(SETUP);

    t_collect_kind(d, &log, GPUD_EVENT_PROGRESS, 1);
    row = IN_STATE(d, "fake:0", BUSY);
    T_TEXT(row.class_name, "a");
    T_CHECK(row.progress == 0.25);
    T_EQ(row.ready_at, row.task_started + T_S(3000));
    reopen(RUN);
    t_collect(d, &log, 1);
    row = IN_STATE(d, "fake:0", READY);
    T_EQ(row.tasks_done, 1);
    is_ready_now(&row);
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_PAUSE, NULL));
    T_EQ(IN_STATE(d, "fake:0", READY).ready_at, 0);
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_RESUME, NULL));

    T_SUBMIT(d, .tag = 11, .class_name = "b");
    t_word_wait(CLEANUPS, 1);
    row = IN_STATE(d, "fake:0", UNLOADING);
    T_TEXT(row.class_name, "a");
    T_EQ(row.workers, 1);
    T_EQ(row.ready_at, row.state_since + T_S(2000));
    reopen(CLEANUP);
    t_collect(d, &log, 2);
    row = IN_STATE(d, "fake:0", READY);
    T_TEXT(row.class_name, "b");
    T_EQ(row.tasks_done, 2);
    T_EQ(row.workers, 1);
    t_end(&d, &log);
}

/* A worker that is to go ends its task first. */
T_LONG_CASE(draining_in_a_pool, 60)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = pool("", T_OPTIONS(.pooled = 1, .max_workers = 1));
    struct gpud_device_info row;
    uint64_t before;

    add(d, T_CLASS(.name = "a", .needs = MEMORY(12ull), SEEDS,
                   .options = T_OPTIONS(.definition = "test")));
    shut(RUN);
    T_SUBMIT(d, .tag = 10, .class_name = "a");
    t_word_wait(RUNS, 1);
    (void)IN_STATE(d, "fake:0", BUSY);
    before = t_now();
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_DRAIN, NULL));
    row = IN_STATE(d, "fake:0", DRAINING);
    T_CMP(row.state_since, >=, before);
    T_EQ(row.ready_at, row.task_started + T_S(3000) + T_S(2000));
    T_OK(gpud_dispatcher_device_drain(d, "fake:0"));
    T_EQ(IN_STATE(d, "fake:0", DRAINING).ready_at, 0);
    before = t_now();
    reopen(RUN);
    t_collect(d, &log, 1);
    row = IN_STATE(d, "fake:0", STOPPED);
    T_CMP(row.state_since, >=, before);
    T_EQ(row.tasks_done, 1);
    T_EQ(row.slot, GPUD_UNKNOWN32);
    T_EQ(row.ready_at, 0);
    before = t_now();
    T_OK(gpud_dispatcher_device_return(d, "fake:0"));
    row = IN_STATE(d, "fake:0", IDLE);
    T_CMP(row.state_since, >=, before);
    is_ready_now(&row);
    t_end(&d, &log);
}

/* Without a worker the device has its state from the calls. */
T_CASE(drained_and_closed_without_a_worker)
{
    gpud_dispatcher *d = pool("", T_OPTIONS(.pooled = 1));
    struct gpud_device_info row;
    uint64_t before;

    (void)IN_STATE(d, "fake:0", IDLE);
    before = t_now();
    T_OK(gpud_dispatcher_device_drain(d, "fake:0"));
    row = IN_STATE(d, "fake:0", STOPPED);
    T_CMP(row.state_since, >=, before);
    T_EQ(row.slot, GPUD_UNKNOWN32);
    T_OK(gpud_dispatcher_device_return(d, "fake:0"));
    (void)IN_STATE(d, "fake:0", IDLE);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    (void)IN_STATE(d, "fake:0", STOPPED);
    t_end(&d, NULL);
}

/* A worker that waits for its turn to start has its class, and no process. */
T_LONG_CASE(waits_for_its_turn, 60)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    struct gpud_device_info row;

    t_init(setup, process, cleanup);
    d = T_CREATE(.pooled = 1, .devices = "fake:2", .setup_concurrency = 1);
    add(d, T_CLASS(.name = "a", .needs = T_REQUEST(.devices = 1, .on = "fake:0"), SEEDS,
                   .options = T_OPTIONS(.definition = "test")));
    add(d, T_CLASS(.name = "b", .needs = T_REQUEST(.devices = 1, .on = "fake:1"), SEEDS,
                   .options = T_OPTIONS(.definition = "test")));
    shut(SETUP);
    T_SUBMIT(d, .tag = 10, .class_name = "a");
    t_word_wait(SETUPS, 1);
    T_SUBMIT(d, .tag = 11, .class_name = "b");
    row = IN_STATE(d, "fake:1", STARTING);
    T_TEXT(row.class_name, "b");
    T_EQ(row.workers, 0);
    T_EQ(row.ready_at, row.state_since + T_S(1000));
    reopen(SETUP);
    t_collect(d, &log, 2);
    t_end(&d, &log);
}

/* The busy one of two workers counts, and each has a row of its own among the slots. */
T_LONG_CASE(side_by_side, 60)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = pool("", T_OPTIONS(.pooled = 1));
    struct gpud_device_info row;
    struct gpud_slot_stats a, b;

    add(d, T_CLASS(.name = "a", .needs = MEMORY(6ull), SEEDS,
                   .options = T_OPTIONS(.definition = "test")));
    add(d, T_CLASS(.name = "b", .needs = MEMORY(6ull), SEEDS,
                   .options = T_OPTIONS(.definition = "test")));
    (void)T_RUN(d, &log, SUCCESS, .tag = 10, .class_name = "a");
    a = t_slot(d, IN_STATE(d, "fake:0", READY).slot);
    T_TEXT(a.class_name, "a");
    shut(RUN);
    shut(SETUP);
    T_SUBMIT(d, .tag = 11, .class_name = "b");
    t_word_wait(SETUPS, 2);
    row = IN_STATE(d, "fake:0", READY); /* it goes before one that starts */
    T_TEXT(row.class_name, "a");
    T_EQ(row.workers, 2);
    reopen(SETUP);
    t_word_wait(RUNS, 2);
    row = IN_STATE(d, "fake:0", BUSY);
    T_TEXT(row.class_name, "b");
    T_EQ(row.workers, 2);
    T_EQ(row.tasks_done, 1);
    T_EQ(row.ready_at, row.task_started + T_S(3000));
    T_CMP(row.slot, !=, a.slot);
    b = t_slot(d, row.slot);
    T_EQ(b.ready_at, row.ready_at);
    a = t_slot(d, a.slot);
    T_EQ(a.state, GPUD_SLOT_READY);
    T_EQ(a.ready_at, a.since);
    T_TEXT(a.device, "fake:0");
    T_TEXT(b.device, "fake:0");
    reopen(RUN);
    t_collect(d, &log, 2);
    T_EQ(IN_STATE(d, "fake:0", READY).tasks_done, 2);
    t_end(&d, &log);
}

/* The worker is gone, and the device has less memory than before it. */
T_LONG_CASE(cooling, 60)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = pool("when held gpu 0 used=9GiB",
                              T_OPTIONS(.pooled = 1, .memory_wait = T_S(3600)));
    struct gpud_device_info row;

    add(d, T_CLASS(.name = "a", .needs = MEMORY(4ull), SEEDS,
                   .options = T_OPTIONS(.definition = "test")));
    (void)T_RUN(d, &log, SUCCESS, .tag = 10, .class_name = "a");
    t_trigger("held");
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_DRAIN, NULL));
    row = IN_STATE(d, "fake:0", COOLING);
    T_TEXT(row.class_name, "a");
    T_EQ(row.workers, 0);
    T_EQ(row.tasks_done, 1);
    T_EQ(row.ready_at, row.state_since + T_S(3600));
    t_end(&d, &log);
}

/* While canaries may bring it back, and while only a repair can. */
static void out_of_use(const char *script, uint32_t health, uint32_t state)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = pool(script, T_OPTIONS(.pooled = 1, .canary_backoff = T_S(3600)));
    struct gpud_device_info row;
    size_t at = 0;

    add(d, T_CLASS(.name = "a", .needs = MEMORY(4ull), .options = T_OPTIONS(.definition = "test")));
    (void)T_RUN(d, &log, SUCCESS, .tag = 10, .class_name = "a");
    t_trigger("broken");
    (void)t_told_health(d, &log, &at, "fake:0", health);
    row = in_state(d, "fake:0", state);
    T_EQ(row.slot, GPUD_UNKNOWN32);
    T_EQ(row.tasks_done, 1);
    T_EQ(row.ready_at, 0);
    T_CMP(row.state_since, >=, row.since);
    t_end(&d, &log);
}

T_LONG_CASE(out_until_canaries_pass, 60)
{
    out_of_use("gpu 0 recovery=unknown\nwhen broken gpu 0 xid 62", GPUD_HEALTH_QUARANTINED,
               GPUD_DEVICE_STATE_BACKOFF);
}

T_LONG_CASE(out_until_a_repair, 60)
{
    out_of_use("when broken gpu 0 lost", GPUD_HEALTH_LOST, GPUD_DEVICE_STATE_QUARANTINED);
}

T_CASE(out_without_a_worker)
{
    gpud_dispatcher *d = pool("when broken gpu 0 xid 62",
                              T_OPTIONS(.pooled = 1, .canary_backoff = T_S(3600)));
    struct gpud_device_info row = IN_STATE(d, "fake:0", IDLE);
    const uint64_t before = t_now();

    t_trigger("broken");
    row = IN_STATE(d, "fake:0", BACKOFF);
    T_CMP(row.state_since, >=, before);
    t_end(&d, NULL);
}

/* A monitor knows no dispatcher. */
T_CASE(row_of_a_monitor)
{
    struct gpud_device_info row = GPUD_DEVICE_INFO_INIT;
    gpud_monitor *m = NULL;

    T_OK(gpud_monitor_open(&m, "fake:1", NULL));
    T_EQ(gpud_monitor_read(m, &row, 1, GPUD_NEVER, T_PATIENCE), 1);
    T_EQ(row.state, 0);
    T_EQ(row.ready_at, 0);
    T_EQ(row.slot, 0);
    T_OK(gpud_monitor_close(&m));
}
