/* SPDX-License-Identifier: MIT */
/* models.c - scenarios of resident classes: who stays loaded, and who goes.  [R4] [R6] [R7] */
#include "scenes.h"

#include <stdio.h>
#include <string.h>

enum { A, B, C, D };

static gpud_dispatcher *pool(const char *devices)
{
    t_scene_init();
    return t_create(T_SCENE(.devices = devices, .cpus = 2));
}

static gpud_dispatcher *scripted(unsigned n, const char *script)
{
    t_scene_init();
    return t_fakes(n, script, T_SCENE(.cpus = 2));
}

static uint64_t submit(gpud_dispatcher *d, uint64_t tag, const char *class)
{
    return t_submit(d, T_TASK(.tag = tag, .class_name = class));
}

static void submit_all(gpud_dispatcher *d, uint64_t tag, unsigned n, const char *class)
{
    for (uint64_t i = 0; i < n; i++)
        (void)submit(d, tag + i, class);
}

static uint64_t waited(const struct t_log *log, uint64_t tag)
{
    const struct gpud_event *e = T_OUTCOME(log, tag, SUCCESS);

    return e->started_at - e->queued_at;
}

/* ---- max_wait ---- */

/* `busy` has tasks without end.  Once `cold` has waited for its max_wait, the worker of `busy` goes
 * after its task: no other task keeps it alive, whether it came before that time or after. */
T_LONG_CASE(busy_client_keeps_draining_alive, 60)
{
    gpud_dispatcher *d = pool("fake:1");
    struct t_log log = { 0 };

    T_SCENE_CLASS(d, A, "busy", .min_residence = GPUD_AT_ONCE);
    T_SCENE_CLASS(d, B, "cold", .min_residence = GPUD_AT_ONCE, .max_wait = T_MS(50));
    (void)submit(d, T_GATED + 1, "busy");
    t_word_wait(T_STARTS, 1);
    (void)submit(d, 1, "cold");
    submit_all(d, 100, 20, "busy");
    t_wait_slot(d, 0, GPUD_SLOT_DRAINING);
    submit_all(d, 120, 20, "busy");
    t_open_all(d, &log, 42);
    T_EQ(t_start_of(&log, 1), 2);
    T_CMP(waited(&log, 1), >=, T_MS(50));
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 42);
    (void)t_end_replayed(&d, &log);
}

/* Of a class whose first task at another worker is this one: while the class before it had tasks,
 * this one has waited for max_wait. */
static void check_switch(const struct t_log *log, uint64_t tag, int tasks_left, uint64_t max_wait)
{
    if (tasks_left)
        T_CMP(waited(log, tag), >=, max_wait);
}

/* Two models take turns on a device that holds one.  The warm one goes on until the other has
 * waited for max_wait, and stays for its min_residence.  So nobody waits without end, and there are
 * few boots. */
T_LONG_CASE(two_models_abab_max_wait, 120)
{
    enum { N = 100 };
    const uint64_t max_wait = T_MS(100), min_residence = T_MS(20), began = t_now();
    gpud_dispatcher *d = pool("fake:1");
    uint64_t by_start[2 * N + 1] = { 0 };
    unsigned left[2] = { N, N };
    struct t_log log = { 0 };

    T_SCENE_CLASS(d, A, "a", .min_residence = min_residence, .max_wait = max_wait);
    T_SCENE_CLASS(d, B, "b", .min_residence = min_residence, .max_wait = max_wait);
    for (uint64_t i = 0; i < 2 * N; i++)
        (void)submit(d, T_SLOW + i, i % 2 ? "b" : "a");
    t_collect(d, &log, 2 * N);
    for (uint64_t i = 0; i < 2 * N; i++)
        by_start[t_start_of(&log, T_SLOW + i)] = T_SLOW + i;
    for (uint32_t i = 1; i <= 2 * N; i++) {
        const uint64_t tag = by_start[i];

        T_CMP(tag, !=, 0);
        if (i > 1 && tag % 2 != by_start[i - 1] % 2)
            check_switch(&log, tag, left[!(tag % 2)] > 0, max_wait);
        left[tag % 2]--;
    }
    /* A task takes 2 ms: until the first switch at most 60 of the class have begun. */
    T_CMP(t_start_of(&log, T_SLOW + 1), <, N);
    T_CMP(t_word(T_UPS + A) + t_word(T_UPS + B), <=, 2 + (t_now() - began) / min_residence);
    (void)t_end_replayed(&d, &log);
}

/* Two devices, three models.  The third one waits for max_wait at most, though both others have
 * tasks, and then one of them drains. */
T_LONG_CASE(third_model_does_not_fit, 120)
{
    gpud_dispatcher *d = pool("fake:2");
    struct t_log log = { 0 };

    for (unsigned i = A; i <= C; i++)
        T_SCENE_CLASS(d, i, i == A ? "a" : i == B ? "b" : "c", .min_residence = T_MS(20),
                      .max_wait = T_MS(50));
    (void)submit(d, T_GATED + 1, "a");
    (void)submit(d, T_GATED + 2, "b");
    t_word_wait(T_STARTS, 2);
    submit_all(d, 1, 3, "c");
    submit_all(d, T_SLOW, 100, "a");
    submit_all(d, T_SLOW + 100, 100, "b");
    t_open_all(d, &log, 205);
    for (uint64_t tag = 1; tag <= 3; tag++)
        T_CMP(t_start_of(&log, tag), <, 200);
    T_CMP(waited(&log, 1), >=, T_MS(50));
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 205);
    (void)t_end_replayed(&d, &log);
}

/* ---- loads ---- */

/* `big` fits on the large device alone, where `other` works.  Its load waits; that of `small` does
 * not. */
T_LONG_CASE(blocked_load_blocks_no_other_device, 60)
{
    gpud_dispatcher *d = scripted(2, "gpu 0 memory=80GiB\ngpu 1 memory=24GiB");
    struct t_log log = { 0 };
    uint64_t big;

    T_SCENE_CLASS(d, A, "other", .min_residence = GPUD_AT_ONCE, .needs = T_ALL_OF(60));
    T_SCENE_CLASS(d, B, "big", .needs = T_ALL_OF(60));
    T_SCENE_CLASS(d, C, "small", .needs = T_ALL_OF(16));
    (void)submit(d, T_GATED + 1, "other");
    t_word_wait(T_STARTS, 1);
    big = submit(d, 1, "big");
    T_TEXT(T_WAITS_FOR(d, big, MAX_WAIT).class_name, "other");
    (void)submit(d, 2, "small");
    t_collect(d, &log, 1);
    T_TEXT(t_devices_of(&log, 2), "fake:1");
    T_EQ(t_word(T_BOOTS + B), 0);
    t_open_all(d, &log, 3);
    T_TEXT(t_devices_of(&log, 1), "fake:0");
    T_EQ(t_start_of(&log, 1), 3);
    (void)t_end_replayed(&d, &log);
}

struct foreign {
    gpud_dispatcher *d;
    uint64_t bytes;
};

static int has_foreign(void *user)
{
    const struct foreign *f = user;

    return t_device(f->d, "fake:0").memory_foreign == f->bytes;
}

/* Triggers what changes the foreign memory, and waits until a reading has the new amount. */
static void foreign_is(gpud_dispatcher *d, const char *when, uint64_t gib)
{
    struct foreign f = { d, gib << 30 };

    t_trigger(when);
    t_wait_until("foreign memory is read", has_foreign, &f);
}

/* 80 GiB, 8 of them headroom.  While others have 15 GiB, `b` has no room even without `a`: so `a`
 * stays.  When they have 5, `a` goes.  While it unloads they take 15 again: `b` waits until they
 * have gone. */
T_LONG_CASE(foreign_memory_falls_during_evict, 60)
{
    gpud_dispatcher *d = scripted(1, "gpu 0 memory=80GiB foreign 4194303 15GiB\n"
                                     "when falls gpu 0 foreign 4194303 5GiB\n"
                                     "when grows gpu 0 foreign 4194303 15GiB\n"
                                     "when leaves gpu 0 gone 4194303");
    struct t_log log = { 0 };
    uint64_t b;

    t_word_set(T_DOWN_GATE + A, T_CLOSED);
    /* `a` boots first: it has its memory beside the 5 GiB that are the most for 60. */
    T_SCENE_CLASS(d, A, "a", .min_residence = GPUD_AT_ONCE, .needs = T_ALL_OF(50));
    T_SCENE_CLASS(d, B, "b", .needs = T_ALL_OF(60));
    (void)T_RUN(d, &log, SUCCESS, .tag = 1, .class_name = "a");
    b = submit(d, 2, "b");
    T_EQ(T_WAITS_FOR(d, b, FOREIGN).pid, 4194303);
    T_EQ(t_word(T_DOWNS + A), 0);
    T_EQ(t_class(d, "a").workers, 1);
    foreign_is(d, "falls", 5);
    t_word_wait(T_DOWNS + A, 1);
    foreign_is(d, "grows", 15);
    t_word_set(T_DOWN_GATE + A, T_OPEN);
    (void)t_changed(d, &log, "a", GPUD_CHANGE_UNLOADED, 1);
    T_EQ(T_WAITS_FOR(d, b, FOREIGN).pid, 4194303);
    T_EQ(t_word(T_BOOTS + B), 0);
    foreign_is(d, "leaves", 0);
    t_collect(d, &log, 2);
    (void)T_OUTCOME(&log, 2, SUCCESS);
    (void)t_end_replayed(&d, &log);
}

/* The only task for which a worker boots is cancelled.  Nobody waits for the boot any more: it
 * ends, though its setup would go on, and the other class gets the device. */
T_LONG_CASE(cancel_during_boot, 60)
{
    gpud_dispatcher *d = pool("fake:1");
    struct t_log log = { 0 };
    uint64_t slow, other;

    t_word_set(T_BOOT_GATE + A, T_CLOSED);
    T_SCENE_CLASS(d, A, "slow", .needs = T_ALL_OF(10));
    T_SCENE_CLASS(d, B, "other", .needs = T_ALL_OF(10));
    slow = submit(d, 1, "slow");
    t_word_wait(T_BOOTS + A, 1);
    other = submit(d, 2, "other");
    T_TEXT(T_WAITS_FOR(d, other, BOOTING).class_name, "slow");
    T_OK(gpud_dispatcher_cancel(d, slow, GPUD_CANCEL_SOFT));
    t_collect(d, &log, 2);
    (void)T_OUTCOME(&log, 1, CANCELLED);
    T_TEXT(t_devices_of(&log, 2), "fake:0");
    T_EQ(t_word(T_UPS + A), 0);
    T_EQ(t_class(d, "slow").failures, 0); /* the end of the boot is no fault of the class */
    (void)t_end_replayed(&d, &log);
}

/* ---- pinned ---- */

/* Both devices have a pinned worker.  What no device could ever hold is refused, with numbers.
 * What one could hold without its pinned worker waits, until that is unpinned; what fits beside
 * them runs. */
T_LONG_CASE(pinned_all_refused_with_numbers, 60)
{
    gpud_dispatcher *d = pool("fake:2"); /* 16 GiB each, and 1.6 GiB stay free */
    struct gpud_error e = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    struct gpud_reason row;
    uint64_t waits;

    T_SCENE_CLASS(d, A, "p0", .pinned = 1, .min_residence = GPUD_AT_ONCE,
                  .needs = T_REQUEST(.devices = 1, .memory = 12ull << 30, .on = "fake:0"));
    T_SCENE_CLASS(d, B, "p1", .pinned = 1, .min_residence = GPUD_AT_ONCE,
                  .needs = T_REQUEST(.devices = 1, .memory = 12ull << 30, .on = "fake:1"));
    T_SCENE_CLASS(d, C, "q", .needs = T_ALL_OF(12));
    T_SCENE_CLASS(d, D, "jobs", .residence = GPUD_TRANSIENT);
    T_OK(gpud_dispatcher_class_set(d, "p0", GPUD_CLASS_LOAD, NULL));
    T_OK(gpud_dispatcher_class_set(d, "p1", GPUD_CLASS_LOAD, NULL));
    t_word_wait(T_UPS + A, 1);
    t_word_wait(T_UPS + B, 1);
    T_CODE(gpud_dispatcher_class_add(
               d, T_CLASS(.name = "huge", .needs = T_ALL_OF(15),
                          .options = T_OPTIONS(.definition = "test")), &e),
           EDEVICE);
    T_CHECK(strstr(e.text, "devices: 1 (15360 MiB, compute 0); there are 2 CPUs, "));
    T_CHECK(strstr(e.text, "devices: 2 (up to 14745 MiB beside headroom)"));
    T_CODE(gpud_dispatcher_submit(
               d, T_TASK(.class_name = "jobs",
                         .request = T_REQUEST(.devices = 3, .memory = 1ull << 30)),
               0, NULL, &e),
           EDEVICE);
    T_CHECK(strstr(e.text, "devices: 3 (1024 MiB, compute 0); there are 2 CPUs, "));
    waits = submit(d, 1, "q");
    row = T_WAITS_FOR(d, waits, PINNED);
    T_EQ(row.until, 0);
    T_SUBMIT(d, .tag = 2, .class_name = "jobs", .request = T_PART(2, 5000));
    t_collect(d, &log, 1);
    T_EQ(t_start_of(&log, 2), 1);
    T_EQ(t_word(T_BOOTS + C), 0);
    T_OK(gpud_dispatcher_class_set(d, "p1", GPUD_CLASS_UNPIN, NULL));
    t_collect(d, &log, 2);
    T_TEXT(t_devices_of(&log, 1), "fake:1");
    T_EQ(t_word(T_DOWNS + A), 0);
    (void)t_end_replayed(&d, &log);
}

/* ---- keep_alive ---- */

/* The time of the event is between the times that the case has read around it. */
static void is_unloaded(gpud_dispatcher *d, struct t_log *log, const char *name, uint64_t tag,
                        uint64_t keep_alive)
{
    (void)t_changed(d, log, name, GPUD_CHANGE_UNLOADED, 1);
    T_CMP(t_now() - T_OUTCOME(log, tag, SUCCESS)->ended_at, >=, keep_alive);
}

/* `a` goes after the keep_alive of its class, `b` after that of its task.  A pinned class and one
 * with min_workers have the shortest, and stay. */
T_LONG_CASE(idle_unloads_after_keep_alive, 60)
{
    gpud_dispatcher *d = pool("fake:4");
    struct t_log log = { 0 };

    T_SCENE_CLASS(d, A, "a", .keep_alive = T_MS(200));
    T_SCENE_CLASS(d, B, "b", .keep_alive = GPUD_NEVER);
    T_SCENE_CLASS(d, C, "pinned", .keep_alive = T_MS(1), .pinned = 1);
    T_SCENE_CLASS(d, D, "kept", .keep_alive = T_MS(1), .min_workers = 1);
    (void)T_RUN(d, &log, SUCCESS, .tag = 3, .class_name = "pinned");
    (void)T_RUN(d, &log, SUCCESS, .tag = 4, .class_name = "kept");
    (void)T_RUN(d, &log, SUCCESS, .tag = 2, .class_name = "b", .keep_alive = T_MS(100));
    (void)T_RUN(d, &log, SUCCESS, .tag = 1, .class_name = "a");
    is_unloaded(d, &log, "b", 2, T_MS(100));
    is_unloaded(d, &log, "a", 1, T_MS(200));
    T_EQ(t_class(d, "a").workers + t_class(d, "b").workers, 0);
    T_EQ(t_class(d, "pinned").workers, 1);
    T_EQ(t_class(d, "kept").workers, 1);
    T_EQ(t_word(T_DOWNS + C) + t_word(T_DOWNS + D), 0);
    (void)t_end_replayed(&d, &log);
}

/* A task that comes before UNLOAD is sent keeps the worker; one that comes behind it boots another
 * one, when the old one has gone.  Whichever it is, each task runs once. */
T_LONG_CASE(keep_alive_races_new_task, 120)
{
    gpud_dispatcher *d = pool("fake:1");
    struct t_log log = { 0 };
    uint32_t ups, rounds = 0;
    uint64_t third;

    T_SCENE_CLASS(d, A, "a", .keep_alive = T_MS(3));
    (void)T_RUN(d, &log, SUCCESS, .tag = 0, .class_name = "a");
    for (uint64_t tag = 1; tag <= 60; tag++) { /* about when the worker would go */
        t_pass(T_MS(3) - T_US(600) + T_US(20) * tag);
        T_EQ(T_RUN(d, &log, SUCCESS, .tag = tag, .class_name = "a")->attempt, 1);
        T_EQ(t_start_of(&log, tag), tag + 1);
        rounds++;
    }
    t_word_set(T_DOWN_GATE + A, T_CLOSED);
    t_word_wait(T_DOWNS + A, t_word(T_UPS + A)); /* the present worker leaves */
    ups = t_word(T_UPS + A);
    printf("  %u of %u tasks found a worker\n", rounds + 1 - ups, rounds);
    third = submit(d, 1000, "a");
    (void)T_WAITS_FOR(d, third, UNLOADING);
    T_EQ(t_word(T_BOOTS + A), ups);
    t_word_set(T_DOWN_GATE + A, T_OPEN);
    t_collect(d, &log, 62);
    T_EQ(t_start_of(&log, 1000), 62);
    T_EQ(t_word(T_UPS + A), ups + 1);
    (void)t_end_replayed(&d, &log);
}
