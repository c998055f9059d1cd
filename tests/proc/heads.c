/* SPDX-License-Identifier: MIT */
/* heads.c - scenarios of tasks that wait for devices, and of those behind them. [R1] [R2] [R3] */
#include "scenes.h"

#include <stdio.h>
#include <string.h>

enum { JOBS, WIDE, LONG, LOST, NEXT, HALF, MORE };

/* Of one class, for each of whose tasks its own request counts. */
static void add_jobs(gpud_dispatcher *d, const struct gpud_request *needs)
{
    T_SCENE_CLASS(d, JOBS, "jobs", .residence = GPUD_TRANSIENT, .needs = needs);
}

static gpud_dispatcher *pool(const char *devices, uint32_t queue_size)
{
    gpud_dispatcher *d;

    t_scene_init();
    d = t_create(T_OPTIONS(.pooled = 1, .devices = devices, .cpus = 4, .max_workers = 32,
                           .queue_size = queue_size, .decision_log = T_DECISIONS));
    add_jobs(d, devices ? NULL : T_REQUEST(.cpus = 1));
    return d;
}

#define JOB(d, t, ...) T_SUBMIT((d), .tag = (t), .class_name = "jobs", .request = (__VA_ARGS__))
#define WHOLE T_ALL_OF(6)
#define BOTH T_REQUEST(.devices = 2, .memory = 6ull << 30)
#define ON(name) T_REQUEST(.devices = 1, .memory = 6ull << 30, .on = (name))

/* A class whose workers are up, on these devices: its tasks lack but a share. */
#define RESIDENT(d, n, class, part, min, device)                                          \
    T_SCENE_CLASS((d), (n), (class), .min_workers = (min),                                \
                  .needs = T_REQUEST(.devices = 1, .memory = 3ull << 30, .share = (part), \
                                     .on = (device)))

static void add_wide_on(gpud_dispatcher *d, unsigned class, const char *name, uint32_t devices,
                        const char *on)
{
    T_SCENE_CLASS(d, class, name, .min_workers = 1,
                  .needs = T_REQUEST(.devices = devices, .memory = 3ull << 30, .on = on));
    T_OK(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL));
}

static void add_wide(gpud_dispatcher *d, uint32_t devices)
{
    add_wide_on(d, WIDE, "wide", devices, NULL);
}

/* Narrow tasks use all of eight devices, and more of them come.  The wide one, whose worker is up
 * beside theirs, starts when those have ended that ran when it came, and before all others: devices
 * that become free are held for it. */
static void narrow_and_wide(uint64_t limit)
{
    enum { WIDE_TAG = 1 };
    gpud_dispatcher *d = pool("fake:8", 100);
    struct t_log log = { 0 };
    struct gpud_reason row;
    uint64_t wide, behind = 0;

    add_wide(d, 8);
    for (uint64_t i = 0; i < 8; i++)
        T_SUBMIT(d, .tag = 10 + i, .class_name = "jobs", .request = WHOLE, .limit = limit);
    t_collect(d, &log, 8); /* from now on it is known how long they run */
    for (uint64_t i = 1; i <= 8; i++)
        T_SUBMIT(d, .tag = T_GATED + i, .class_name = "jobs", .request = WHOLE, .limit = limit);
    t_word_wait(T_STARTS, 16);
    wide = t_submit(d, T_TASK(.tag = WIDE_TAG, .class_name = "wide", .limit = limit));
    for (uint64_t i = 0; i < 40; i++) {
        const uint64_t id = t_submit(d, T_TASK(.tag = 100 + i, .class_name = "jobs",
                                               .request = WHOLE, .limit = limit));
        behind = behind ? behind : id;
    }
    for (uint32_t i = 1; i <= 7; i++) {
        t_word_set(T_TASK_GATE, i);
        t_collect(d, &log, 8 + i);
        row = T_WAITS_FOR(d, behind, HEAD_HOLDS); /* though i devices are free */
        T_EQ(row.task_id, wide);
    }
    T_EQ(t_word(T_STARTS), 16);
    t_open_all(d, &log, 57);
    T_EQ(t_start_of(&log, WIDE_TAG), 17);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 57);
    (void)t_end_replayed(&d, &log);
}

T_LONG_CASE(endless_narrow_one_wide, 60)
{
    narrow_and_wide(T_S(100));
}

T_LONG_CASE(endless_narrow_one_wide_without, 60)
{
    narrow_and_wide(0);
}

/* The limits say nothing, the runs do. */
T_LONG_CASE(endless_narrow_one_wide_24h, 60)
{
    narrow_and_wide(T_S(24 * 3600));
}

/* Three heads hold devices of each other: each gets all it needs at one time, in order. */
T_LONG_CASE(two_wide_heads_no_hold_deadlock, 60)
{
    gpud_dispatcher *d = pool("fake:3", 100);
    struct t_log log = { 0 };

    add_wide_on(d, WIDE, "ab", 2, "fake:0,fake:1");
    add_wide_on(d, NEXT, "bc", 2, "fake:1,fake:2");
    add_wide_on(d, MORE, "ca", 2, "fake:2,fake:0");
    for (uint64_t i = 0; i < 3; i++)
        JOB(d, T_GATED + 1 + i, ON(i == 0 ? "fake:0" : i == 1 ? "fake:1" : "fake:2"));
    t_word_wait(T_STARTS, 3);
    T_SUBMIT(d, .tag = 1, .class_name = "ab");
    T_SUBMIT(d, .tag = 2, .class_name = "bc");
    T_SUBMIT(d, .tag = 3, .class_name = "ca");
    for (uint32_t i = 1; i <= 3; i++) {
        T_CMP(t_word(T_STARTS), <=, i == 3 ? 4 : 3);
        t_word_set(T_TASK_GATE, i);
        t_collect(d, &log, i == 1 ? 1 : i == 2 ? 3 : 6);
    }
    for (uint64_t tag = 1; tag <= 3; tag++) {
        T_EQ(t_start_of(&log, tag), 3 + tag);
        T_EQ(strlen(t_devices_of(&log, tag)), strlen("fake:0,fake:1"));
    }
    T_CHECK(!strstr(t_devices_of(&log, 1), "fake:2"));
    T_CHECK(!strstr(t_devices_of(&log, 2), "fake:0"));
    T_CHECK(!strstr(t_devices_of(&log, 3), "fake:1"));
    (void)t_end_replayed(&d, &log);
}

/* A host begins with a full queue and without any device.  Tasks that one device could hold start
 * with the first device; the wide ones, which are older, hold nothing until the second one is
 * there. */
T_LONG_CASE(restart_with_blocked_queue, 60)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    uint64_t wide;

    t_scene_init();
    d = t_fakes(2, "gpu * lost\nwhen first gpu 1 back\nwhen second gpu 0 back",
                T_SCENE(.canary_backoff = T_MS(1)));
    add_jobs(d, NULL);
    wide = t_submit(d, T_TASK(.tag = 1, .class_name = "jobs", .request = BOTH));
    JOB(d, 2, BOTH);
    for (uint64_t i = 0; i < 5; i++)
        JOB(d, 10 + i, WHOLE);
    (void)T_WAITS_FOR(d, wide, FAULT);
    T_EQ(t_word(T_STARTS), 0);
    t_trigger("first");
    t_collect(d, &log, 5);
    for (uint64_t i = 0; i < 5; i++) {
        T_EQ(t_start_of(&log, 10 + i), 1 + i);
        T_TEXT(t_devices_of(&log, 10 + i), "fake:1");
    }
    (void)T_WAITS_FOR(d, wide, FAULT);
    t_trigger("second");
    t_collect(d, &log, 7);
    T_EQ(t_start_of(&log, 1), 6);
    T_EQ(t_start_of(&log, 2), 7);
    (void)t_end_replayed(&d, &log);
}

/* A request that allows CPU runs there; one that does not is refused. */
T_CASE(no_gpu_machine)
{
    gpud_dispatcher *d = pool(NULL, 10);
    struct gpud_error e = GPUD_ERROR_INIT;
    struct t_log log = { 0 };

    JOB(d, 1, T_REQUEST(.devices = 1, .memory = 1ull << 30, .next = T_REQUEST(.cpus = 4)));
    JOB(d, 2, T_REQUEST(.cpus = 1));
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.class_name = "jobs", .request = WHOLE), 0, NULL, &e),
           EDEVICE);
    T_CHECK(strstr(e.text, "devices: 1 (6144 MiB, compute 0); there are 4 CPUs, "));
    T_CODE(gpud_dispatcher_submit(
               d, T_TASK(.class_name = "jobs", .request = T_REQUEST(.cpus = 5)), 0, NULL, &e),
           EDEVICE);
    T_CHECK(strstr(e.text, "it needs 5 CPUs, "));
    t_collect(d, &log, 2);
    T_TEXT(t_devices_of(&log, 1), "cpu");
    T_TEXT(t_devices_of(&log, 2), "cpu");
    (void)t_end_replayed(&d, &log);
}

/* ---- promises ---- */

/* Waits for promise number n, from 1, which is of this class. */
static const struct gpud_event *promised(gpud_dispatcher *d, struct t_log *log, const char *class,
                                         size_t n)
{
    const struct gpud_event *e;
    char line[256];

    t_collect_kind(d, log, GPUD_EVENT_PROMISE, n);
    e = t_log_at(log, GPUD_EVENT_PROMISE, n - 1);
    (void)gpud_event_format(e, line, sizeof(line));
    printf("  %s\n", line);
    T_TEXT(e->class_name, class);
    return e;
}

/* `next` has a promise for a device, which is lost: the promise is renewed, with the reason.  The
 * task that was lost with it runs again, in its old place, and then `next`.  The task on the other
 * device goes on, and a task for both is the last one. */
T_LONG_CASE(device_lost_under_promise, 60)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_scene_init();
    d = t_fakes(2, "when broken gpu 1 lost\nwhen mended gpu 1 back",
                T_SCENE(.canary_backoff = T_MS(1)));
    RESIDENT(d, LONG, "long", 10000, 1, "fake:0");
    RESIDENT(d, LOST, "lost", 10000, 1, "fake:1");
    RESIDENT(d, NEXT, "next", 10000, 1, "fake:1");
    add_wide(d, 2);
    T_SUBMIT(d, .tag = T_GATED + 1, .class_name = "long", .limit = T_S(1000));
    T_SUBMIT(d, .tag = T_GATED + 2, .class_name = "lost", .limit = T_S(500));
    t_word_wait(T_STARTS, 2);
    T_SUBMIT(d, .tag = 1, .class_name = "next", .limit = T_S(100));
    T_SUBMIT(d, .tag = 2, .class_name = "wide", .limit = T_S(100));
    T_EQ(promised(d, &log, "next", 1)->promise, GPUD_PROMISE_FIRST);
    t_trigger("broken");
    T_EQ(promised(d, &log, "next", 2)->promise, GPUD_PROMISE_DEVICE);
    T_EQ(promised(d, &log, "next", 2)->starts_by, 0);
    t_word_set(T_BOOT_GATE + NEXT, T_CLOSED); /* a task whose worker boots holds no device */
    t_trigger("mended");
    t_word_wait(T_STARTS, 3); /* the lost task */
    t_word_set(T_BOOT_GATE + NEXT, T_OPEN);
    T_OK(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL));
    t_open_all(d, &log, 4);
    T_EQ(T_OUTCOME(&log, T_GATED + 1, SUCCESS)->attempt, 1);
    T_EQ(T_OUTCOME(&log, T_GATED + 2, SUCCESS)->attempt, 2);
    T_TEXT(t_devices_of(&log, T_GATED + 2), "fake:1");
    T_EQ(t_start_of(&log, T_GATED + 2), 3);
    T_EQ(t_start_of(&log, 1), 4);
    T_TEXT(t_devices_of(&log, 1), "fake:1");
    T_EQ(t_start_of(&log, 2), 5);
    T_CHECK(strchr(t_devices_of(&log, 2), ','));
    (void)t_end_replayed(&d, &log);
}

/* A task of `wide` waits for both devices all the time, so that no run is granted.  Six tasks of
 * `half` take `run` at least, of a limit of 10 s.  Then one more has one half of its device for up
 * to 100,000 s, and `whole` waits for all of that.  The last one, whose id is *ret_narrow, would
 * end by its limit long before the promise of `whole`. */
static gpud_dispatcher *known_runs(struct t_log *log, uint64_t run, uint64_t *ret_narrow,
                                   uint64_t *ret_whole)
{
    enum { KNOWN = 6, LAST = 50 };
    gpud_dispatcher *d;

    t_scene_init();
    d = t_create(T_SCENE(.devices = "fake:2"));
    RESIDENT(d, LONG, "long", 10000, 1, "fake:0");
    RESIDENT(d, HALF, "half", 5000, 2, "fake:1");
    RESIDENT(d, NEXT, "whole", 10000, 1, "fake:1");
    add_wide(d, 2);
    T_SUBMIT(d, .tag = T_GATED + LAST, .class_name = "long");
    t_word_wait(T_STARTS, 1);
    T_SUBMIT(d, .tag = 3, .class_name = "wide", .priority = -1);
    for (uint32_t i = 1; i <= KNOWN; i++) {
        T_SUBMIT(d, .tag = T_GATED + i, .class_name = "half", .limit = T_S(10));
        t_word_wait(T_STARTS, 1 + i);
        t_pass(run);
        t_word_set(T_TASK_GATE, i);
        t_collect(d, log, i);
    }
    T_SUBMIT(d, .tag = T_GATED + LAST + 1, .class_name = "half", .limit = T_S(100000));
    t_word_wait(T_STARTS, KNOWN + 2);
    *ret_whole = t_submit(d, T_TASK(.tag = 1, .class_name = "whole"));
    T_CMP(promised(d, log, "whole", 1)->starts_by, >, t_now() + T_S(90000));
    *ret_narrow = t_submit(d, T_TASK(.tag = 2, .class_name = "half", .limit = T_S(50)));
    return d;
}

/* They ended after a small part of their limit, so LEARNED knows that the device may be free soon:
 * `whole` starts first. */
T_LONG_CASE(limit_ends_early_head_not_later, 60)
{
    struct t_log log = { 0 };
    uint64_t narrow, whole;
    gpud_dispatcher *d = known_runs(&log, 0, &narrow, &whole);

    T_EQ(T_WAITS_FOR(d, narrow, HEAD_HOLDS).task_id, whole);
    t_open_all(d, &log, 11);
    T_EQ(t_start_of(&log, 1), 9);
    T_EQ(t_start_of(&log, 2), 10);
    T_EQ(t_end_replayed(&d, &log).passed, 0);
}

/* They took 1 % of their limit at least, which of 100,000 s is long enough: `narrow` passes. */
T_LONG_CASE(limit_lets_narrow_pass, 60)
{
    struct t_log log = { 0 };
    uint64_t narrow, whole;
    gpud_dispatcher *d = known_runs(&log, T_MS(100), &narrow, &whole);

    t_collect(d, &log, 7);
    T_EQ(t_start_of(&log, 2), 9);
    t_open_all(d, &log, 11);
    T_EQ(t_start_of(&log, 1), 10);
    T_EQ(t_end_replayed(&d, &log).passed, 1);
}

/* ---- many ---- */

/* 100,000 tasks need both large devices, of which one is busy.  The last one fits on the small
 * device: it starts at once, and nobody examines those in front again. */
T_LONG_CASE(hundred_thousand_blocked_in_front, 300)
{
    const uint64_t n = T_SANITIZED ? 5000 : 100000;
    struct gpi_plan_stats stats;
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_scene_init();
    d = t_fakes(3, "gpu 0-1 memory=80GiB\ngpu 2 memory=24GiB",
                T_OPTIONS(.pooled = 1, .queue_size = 100100, .decision_log = T_DECISIONS));
    add_jobs(d, NULL);
    JOB(d, T_GATED + 1, T_ALL_OF(60));
    t_word_wait(T_STARTS, 1);
    for (uint64_t i = 0; i < n; i++)
        JOB(d, 1000000 + i, T_REQUEST(.devices = 2, .memory = 60ull << 30));
    JOB(d, 1, T_ALL_OF(16));
    t_collect(d, &log, 1);
    T_EQ(t_start_of(&log, 1), 2);
    T_TEXT(t_devices_of(&log, 1), "fake:2");
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_RUNNING, GPUD_NEVER));
    t_word_set(T_TASK_GATE, 1);
    t_collect_rest(d, &log);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_CANCELLED), n);
    stats = t_end_replayed(&d, &log);
    T_CMP(stats.examined, <, 100);
}

/* All 128 tasks come while both devices are empty.  Memory is reserved at the start of a worker, so
 * two of 6 GiB fit on each device, and no third. */
T_LONG_CASE(burst_128_on_unused_memory, 120)
{
    gpud_dispatcher *d = pool("fake:2", 200);
    struct t_log log = { 0 };
    struct gpud_reason row;
    uint64_t last = 0;

    for (uint64_t i = 0; i < 128; i++)
        last = t_submit(d, T_TASK(.tag = T_GATED + 1 + i, .class_name = "jobs",
                                  .request = T_PART(6, 100)));
    t_word_wait(T_STARTS, 4);
    row = T_WAITS_FOR(d, last, PASSED_OVER_BY);
    T_TEXT(row.class_name, "jobs");
    row = T_WAITS_FOR(d, row.task_id, MEMORY);
    T_EQ(row.need, 6ull << 30);
    T_CMP(row.have, <, 3ull << 30);
    T_EQ(t_word(T_STARTS), 4);
    t_open_all(d, &log, 128);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 128);
    T_EQ(t_word(T_MOST), 2);
    T_EQ(t_word(T_MOST + 1), 2);
    (void)t_end_replayed(&d, &log);
}

/* Runs batches of 500 tasks in all, the later ones of a higher priority, and returns how many
 * shapes were examined.  Each batch runs as a whole. */
static uint64_t cost_of(unsigned batches)
{
    const unsigned each = 500 / batches;
    gpud_dispatcher *d = pool("fake:1", 1000);
    struct gpi_plan_stats stats;
    struct t_log log = { 0 };

    JOB(d, T_GATED + 1, WHOLE);
    t_word_wait(T_STARTS, 1);
    for (unsigned batch = 0; batch < batches; batch++)
        for (unsigned i = 0; i < each; i++)
            T_SUBMIT(d, .tag = batch * each + i, .class_name = "jobs", .request = WHOLE,
                     .priority = (int32_t)batch);
    t_open_all(d, &log, 501);
    for (unsigned batch = 0; batch < batches; batch++)
        for (unsigned i = 0; i < each; i++)
            T_EQ(t_start_of(&log, batch * each + i), 2 + (batches - 1 - batch) * each + i);
    stats = t_end_replayed(&d, &log);
    printf("  %u batches: %llu examined in %llu decisions\n", batches,
           (unsigned long long)stats.examined, (unsigned long long)stats.decisions);
    t_word_set(T_STARTS, 0);
    t_word_set(T_TASK_GATE, 0);
    return stats.examined;
}

/* Five batches wait behind each other.  They cost as many scans as one batch. [S5] */
T_LONG_CASE(five_batches_same_cost, 120)
{
    const uint64_t one = cost_of(1), five = cost_of(5);

    T_CMP(one, <=, 2 * 501 + 50);
    T_CMP(five, <=, one + 50);
}
