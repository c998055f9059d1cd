/* SPDX-License-Identifier: MIT */
/* explain.c - pooled dispatchers: why a task does not start.                         [R9] [S9] */
#include "pooled.h"

#include <stdio.h>
#include <string.h>

enum { STARTS, UPS, ENDS, SETUP_GATE, CLEANUP_GATE, BROKEN };
/* What a task of tag GATED + n waits for: word GATE is n at least. */
enum { GATED = 1000, GATE = T_WORDS - 1, ROWS = 16, FAILS = 900 };

/* Waits while word SETUP_GATE is 1. */
static int setup(gpud_worker *w, void **ret_state)
{
    *ret_state = w;
    t_word_add(STARTS);
    if (t_word(SETUP_GATE))
        t_word_wait(SETUP_GATE, 2);
    if (t_word(BROKEN))
        return 7;
    t_word_add(UPS);
    return 0;
}

static int process(gpud_task *t, void *state)
{
    (void)state;
    if (gpud_task_tag(t) >= GATED)
        t_word_wait(GATE, (uint32_t)(gpud_task_tag(t) - GATED));
    return gpud_task_tag(t) == FAILS ? 9 : 0;
}

/* Waits while word CLEANUP_GATE is 1. */
static void cleanup(gpud_worker *w, void *state)
{
    (void)w;
    (void)state;
    t_word_add(ENDS);
    if (t_word(CLEANUP_GATE))
        t_word_wait(CLEANUP_GATE, 2);
}

/* Adds a class of this program's workers. */
#define ADD(d, class, ...)                                                         \
    add((d), T_CLASS(.name = class,                                                \
                     .options = T_OPTIONS(.definition = "test", .sent_ahead = 1), \
                     __VA_ARGS__))
#define TRANSIENT .residence = GPUD_TRANSIENT
/* GiB of a fake, and a part of it. */
#define PART(gib, part) T_REQUEST(.devices = 1, .memory = (uint64_t)(gib) << 30, .share = (part))

static gpud_dispatcher *pool(const char *devices)
{
    t_init(setup, process, cleanup);
    return T_CREATE(.pooled = 1, .devices = devices, .cpus = 2);
}

/* ---- answers ---- */

struct answer {
    struct gpud_reason row[ROWS];
    size_t n;
};

static struct answer ask(gpud_dispatcher *d, uint64_t id, const struct gpud_task_desc *task)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    struct answer a = { .n = 99 };
    char line[256];

    for (size_t i = 0; i < ROWS; i++)
        a.row[i] = (struct gpud_reason)GPUD_REASON_INIT;
    if (gpud_dispatcher_explain(d, id, task, a.row, ROWS, &a.n, &e))
        T_FAIL("explain: %s: %s: %s", gpud_error_name(e.code), e.field, e.text);
    T_CMP(a.n, <=, ROWS);
    for (size_t i = 0; i < a.n; i++) {
        T_CMP(gpud_reason_format(&a.row[i], line, sizeof line), <, sizeof line);
        T_EQ(strncmp(line, gpud_reason_name(a.row[i].kind), 4), 0);
        printf("  %s\n", line);
    }
    return a;
}

/* Waits until the first reason is of this kind. */
struct question {
    gpud_dispatcher *d;
    uint64_t id;
    uint32_t kind;
    struct answer a;
};

static int is_first(void *user)
{
    struct question *q = user;

    q->a = ask(q->d, q->id, NULL);
    return q->a.n > 0 && q->a.row[0].kind == q->kind;
}

static struct answer first_of(gpud_dispatcher *d, uint64_t id, uint32_t kind)
{
    struct question q = { .d = d, .id = id, .kind = kind };

    t_wait_until(gpud_reason_name(kind), is_first, &q);
    return q.a;
}
#define FIRST(d, id, name) first_of((d), (id), GPUD_REASON_##name)

static void is_soon(uint64_t until, uint64_t least, uint64_t most)
{
    T_CMP(until, >, t_now() + least);
    T_CMP(until, <=, t_now() + most);
}

/* Starts a task that waits at its gate. */
static uint64_t start(gpud_dispatcher *d, const char *class, uint32_t gate)
{
    const uint64_t id = t_submit(d, T_TASK(.tag = GATED + gate, .class_name = class));

    for (uint32_t sent = 0; !sent;) {
        struct answer a = ask(d, id, NULL);
        sent = a.n == 0;
        t_pass(T_MS(1));
    }
    return id;
}

static uint64_t submit(gpud_dispatcher *d, const char *class)
{
    return t_submit(d, T_TASK(.tag = 1, .class_name = class));
}

static void end(gpud_dispatcher *d, size_t outcomes)
{
    struct t_log log = { 0 };

    t_word_set(GATE, 9);
    t_collect(d, &log, outcomes);
    t_end(&d, &log);
}

/* ---- tasks that have the place ---- */

T_CASE(memory)
{
    gpud_dispatcher *d = pool("fake:1"); /* 16 GiB, and 1.6 GiB stay free */
    uint64_t first, second;
    struct answer a;

    ADD(d, "a", TRANSIENT, .needs = PART(12, 5000));
    ADD(d, "b", TRANSIENT, .needs = PART(12, 5000));
    first = start(d, "a", 1);
    second = submit(d, "b");
    a = FIRST(d, second, MEMORY);
    T_TEXT(a.row[0].device, "fake:0");
    T_EQ(a.row[0].unit, GPUD_UNIT_BYTES);
    T_EQ(a.row[0].need, 12ull << 30);
    T_CMP(a.row[0].have, <, 3ull << 30);
    T_CMP(a.row[0].have, >, 2ull << 30);
    T_EQ(a.row[0].task_id, first);
    T_TEXT(a.row[0].class_name, "a");
    T_EQ(a.row[0].until, 0); /* it has no limit */
    end(d, 2);
}

T_CASE(share)
{
    gpud_dispatcher *d = pool("fake:1");
    uint64_t first, second;
    struct answer a;

    ADD(d, "a", .needs = PART(1, 6000));
    ADD(d, "b", .needs = PART(1, 6000));
    first = start(d, "a", 1);
    second = submit(d, "b");
    a = FIRST(d, second, SHARE); /* once its worker is up */
    T_TEXT(a.row[0].device, "fake:0");
    T_EQ(a.row[0].unit, GPUD_UNIT_SHARE);
    T_EQ(a.row[0].have, 4000);
    T_EQ(a.row[0].need, 6000);
    T_EQ(a.row[0].task_id, first);
    end(d, 2);
}

T_CASE(cpus)
{
    gpud_dispatcher *d = pool("fake:1");
    uint64_t first, second;
    struct answer a;

    ADD(d, "a", .needs = T_REQUEST(.cpus = 2));
    ADD(d, "b", .needs = T_REQUEST(.cpus = 1));
    first = start(d, "a", 1);
    second = submit(d, "b");
    a = FIRST(d, second, CPUS);
    T_TEXT(a.row[0].device, "");
    T_EQ(a.row[0].unit, GPUD_UNIT_CPUS);
    T_EQ(a.row[0].have, 0);
    T_EQ(a.row[0].need, 1);
    T_EQ(a.row[0].task_id, first);
    end(d, 2);
}

/* The worker of its class has another task, with a limit. */
T_CASE(busy)
{
    gpud_dispatcher *d = pool("fake:1");
    uint64_t first, second;
    struct answer a;

    ADD(d, "a", .boot_seed = T_S(60));
    first = start(d, "a", 1);
    second = submit(d, "a");
    a = FIRST(d, second, BUSY);
    T_TEXT(a.row[0].device, "fake:0");
    T_EQ(a.row[0].task_id, first);
    T_TEXT(a.row[0].class_name, "a");
    end(d, 2);
}

/* The task is at the worker, behind another one; or it has returned, since the worker is stuck. */
T_CASE(sent_ahead)
{
    gpud_dispatcher *d = pool("fake:1");
    uint64_t first, second;
    struct answer a;

    add(d, &(struct gpud_class){ .struct_size = sizeof(struct gpud_class), .name = "a",
                                 .options = T_OPTIONS(.definition = "test", .sent_ahead = 2) });
    first = start(d, "a", 1);
    second = submit(d, "a");
    a = FIRST(d, second, BUSY);
    T_EQ(a.row[0].task_id, first);
    T_TEXT(a.row[0].device, "fake:0");
    end(d, 2);
}

/* ---- order ---- */

/* The third task of the class waits for the second one, and that one for the first. */
T_CASE(passed_over_by)
{
    gpud_dispatcher *d = pool("fake:1");
    uint64_t first, second, third;
    struct answer a;

    ADD(d, "a", .needs = NULL);
    first = start(d, "a", 1);
    second = submit(d, "a");
    third = submit(d, "a");
    (void)FIRST(d, second, BUSY);
    a = FIRST(d, third, PASSED_OVER_BY);
    T_EQ(a.row[0].task_id, second);
    T_TEXT(a.row[0].class_name, "a");
    T_EQ(a.row[1].kind, GPUD_REASON_BUSY);
    T_EQ(a.row[1].task_id, first);
    a = ask(d, 0, T_TASK(.class_name = "a")); /* a fourth one, too */
    T_EQ(a.row[0].kind, GPUD_REASON_PASSED_OVER_BY);
    T_EQ(a.row[0].task_id, second);
    a = ask(d, 0, T_TASK(.class_name = "a", .priority = 1));
    T_EQ(a.row[0].kind, GPUD_REASON_BUSY);
    end(d, 3);
}

/* `wide` waits for both devices, so the free one is held. */
T_CASE(head_holds)
{
    gpud_dispatcher *d = pool("fake:2");
    uint64_t wide, narrow;
    struct answer a;

    ADD(d, "a", TRANSIENT);
    ADD(d, "wide", TRANSIENT, .needs = T_REQUEST(.devices = 2));
    ADD(d, "narrow", TRANSIENT);
    (void)start(d, "a", 1);
    wide = submit(d, "wide");
    narrow = submit(d, "narrow");
    a = FIRST(d, narrow, HEAD_HOLDS);
    T_EQ(a.n, 2);
    T_EQ(a.row[0].task_id, wide);
    T_TEXT(a.row[0].class_name, "wide");
    T_TEXT(a.row[0].device, "fake:0");
    T_TEXT(a.row[1].device, "fake:1");
    a = FIRST(d, wide, MEMORY);
    T_TEXT(a.row[0].class_name, "a");
    end(d, 3);
}

/* ---- workers ---- */

T_CASE(booting)
{
    gpud_dispatcher *d;
    struct answer a, later;
    uint64_t id;

    t_word_set(SETUP_GATE, 1);
    d = pool("fake:1");
    ADD(d, "a", .boot_seed = T_S(60));
    a = ask(d, 0, T_TASK(.class_name = "a"));
    T_EQ(a.n, 1);
    T_EQ(a.row[0].kind, GPUD_REASON_BOOTING); /* one would boot */
    is_soon(a.row[0].until, T_S(40), T_S(60));
    t_pass(T_MS(50));
    later = ask(d, 0, T_TASK(.class_name = "a")); /* each answer is about its own time */
    T_CMP(later.row[0].until, >=, a.row[0].until + T_MS(50));
    id = submit(d, "a");
    a = FIRST(d, id, BOOTING);
    T_TEXT(a.row[0].class_name, "a");
    is_soon(a.row[0].until, T_S(30), T_S(60));
    t_word_set(SETUP_GATE, 2);
    end(d, 1);
}

T_CASE(unloading)
{
    gpud_dispatcher *d;
    struct answer a;
    uint64_t id;

    t_word_set(CLEANUP_GATE, 1);
    d = pool("fake:1");
    ADD(d, "a", .unload_seed = T_S(50));
    ADD(d, "b", .needs = NULL);
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_LOAD, NULL));
    t_wait_ready(d, 1);
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_UNLOAD, NULL));
    t_word_wait(ENDS, 1);
    id = submit(d, "b");
    a = FIRST(d, id, UNLOADING);
    T_TEXT(a.row[0].device, "fake:0");
    T_TEXT(a.row[0].class_name, "a");
    t_word_set(CLEANUP_GATE, 2);
    end(d, 1);
}

/* The idle worker of another class stays for a while. */
T_CASE(min_residence)
{
    gpud_dispatcher *d = pool("fake:1");
    struct t_log log = { 0 };
    struct answer a;
    uint64_t id;

    ADD(d, "a", .min_residence = T_S(100));
    ADD(d, "b", .needs = NULL);
    (void)T_RUN(d, &log, SUCCESS, .tag = 1, .class_name = "a");
    id = submit(d, "b");
    a = FIRST(d, id, MIN_RESIDENCE);
    T_TEXT(a.row[0].device, "fake:0");
    T_TEXT(a.row[0].class_name, "a");
    is_soon(a.row[0].until, T_S(70), T_S(100));
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_UNLOAD, NULL));
    t_log_free(&log);
    end(d, 1);
}

/* A busy one ends its task only after the max_wait of the other class. */
T_CASE(max_wait)
{
    gpud_dispatcher *d = pool("fake:1");
    struct answer a;
    uint64_t id;

    ADD(d, "a", .min_residence = GPUD_AT_ONCE);
    ADD(d, "b", .max_wait = T_S(200));
    (void)start(d, "a", 1);
    id = submit(d, "b");
    a = FIRST(d, id, MAX_WAIT);
    T_TEXT(a.row[0].class_name, "a");
    is_soon(a.row[0].until, T_S(170), T_S(200));
    end(d, 2);
}

T_CASE(pinned)
{
    gpud_dispatcher *d = pool("fake:1");
    struct t_log log = { 0 };
    struct answer a;
    uint64_t id;

    ADD(d, "a", .pinned = 1);
    ADD(d, "b", .needs = NULL);
    (void)T_RUN(d, &log, SUCCESS, .tag = 1, .class_name = "a");
    id = submit(d, "b");
    a = FIRST(d, id, PINNED);
    T_TEXT(a.row[0].class_name, "a");
    T_EQ(a.row[0].until, 0);
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_UNLOAD, NULL));
    t_log_free(&log);
    end(d, 1);
}

/* The dispatcher has as many workers as it may have. */
T_CASE(seats)
{
    gpud_dispatcher *d;
    struct answer a;
    uint64_t id;

    t_init(setup, process, cleanup);
    d = T_CREATE(.pooled = 1, .devices = "fake:2", .max_workers = 1);
    ADD(d, "a", .needs = NULL);
    ADD(d, "b", .needs = NULL);
    (void)start(d, "a", 1);
    id = submit(d, "b");
    a = FIRST(d, id, SEATS);
    T_TEXT(a.row[0].device, "");
    T_TEXT(a.row[0].class_name, "");
    T_EQ(a.row[0].unit, GPUD_UNIT_WORKERS);
    T_EQ(a.row[0].have, 1);
    T_EQ(a.row[0].need, 2);
    T_EQ(a.row[1].kind, GPUD_REASON_OCCUPIED); /* while it lacks a seat, no worker goes for it */
    T_TEXT(a.row[1].class_name, "a");
    t_word_set(GATE, 9);
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_UNLOAD, NULL));
    end(d, 2);
}

/* ---- requests of the user, and faults ---- */

T_CASE(paused_class)
{
    gpud_dispatcher *d = pool("fake:1");
    struct answer a;
    uint64_t id;

    ADD(d, "a", .needs = NULL);
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_PAUSE, NULL));
    id = submit(d, "a");
    a = ask(d, id, NULL);
    T_EQ(a.n, 1);
    T_EQ(a.row[0].kind, GPUD_REASON_PAUSED);
    T_TEXT(a.row[0].device, "");
    T_TEXT(a.row[0].class_name, "a");
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_RESUME, NULL));
    end(d, 1);
}

T_CASE(paused_and_drained_device)
{
    gpud_dispatcher *d = pool("fake:2");
    struct answer a;
    uint64_t id;

    ADD(d, "a", .needs = NULL);
    T_OK(gpud_dispatcher_device_pause(d, "fake:0"));
    T_OK(gpud_dispatcher_device_drain(d, "fake:1"));
    id = submit(d, "a");
    a = ask(d, id, NULL);
    T_EQ(a.n, 2);
    T_EQ(a.row[0].kind, GPUD_REASON_PAUSED);
    T_TEXT(a.row[0].device, "fake:0");
    T_EQ(a.row[1].kind, GPUD_REASON_DRAINED);
    T_TEXT(a.row[1].device, "fake:1");
    T_OK(gpud_dispatcher_device_return(d, "fake:1"));
    end(d, 1);
}

/* A device that is out of use. */
T_LONG_CASE(fault, 60)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    struct answer a;
    size_t at = 0;
    uint64_t id;

    t_init(setup, process, cleanup);
    d = t_fakes(1, "when broken gpu 0 lost\nwhen mended gpu 0 back",
                T_OPTIONS(.pooled = 1, .canary_backoff = T_MS(1)));
    ADD(d, "a", .needs = NULL);
    (void)T_RUN(d, &log, SUCCESS, .tag = 1, .class_name = "a");
    t_trigger("broken");
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_LOST);
    id = submit(d, "a");
    a = FIRST(d, id, FAULT);
    T_TEXT(a.row[0].device, "fake:0");
    T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_HARD));
    t_log_free(&log);
    end(d, 1);
}

/* The class boots no worker before the end of its backoff. */
T_CASE(failed_class)
{
    gpud_dispatcher *d;
    struct answer a;
    uint64_t id;

    t_word_set(BROKEN, 1);
    t_init(setup, process, cleanup);
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add(d, &(struct gpud_class){ .struct_size = sizeof(struct gpud_class), .name = "a",
                                 .options = T_OPTIONS(.definition = "test",
                                                      .backoff = T_S(100)) });
    id = submit(d, "a");
    a = FIRST(d, id, FAULT);
    T_TEXT(a.row[0].device, "");
    T_TEXT(a.row[0].class_name, "a");
    T_CMP(a.row[0].until, >, t_now());
    t_word_set(BROKEN, 0);
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_RESUME, NULL));
    end(d, 1);
}

/* R4: the row names the process, and how much memory it may have. */
T_LONG_CASE(foreign, 60)
{
    gpud_dispatcher *d;
    struct answer a;
    uint64_t id;

    t_init(setup, process, cleanup);
    d = t_fakes(1, "gpu 0 foreign 4194303 12GiB\nwhen left gpu 0 gone 4194303",
                T_OPTIONS(.pooled = 1));
    ADD(d, "a", .needs = PART(8, 10000));
    id = submit(d, "a");
    a = FIRST(d, id, FOREIGN);
    T_TEXT(a.row[0].device, "fake:0");
    T_EQ(a.row[0].pid, 4194303);
    T_EQ(a.row[0].unit, GPUD_UNIT_BYTES);
    T_CMP(a.row[0].have, >=, 12ull << 30);
    T_CMP(a.row[0].need, <, 8ull << 30);
    t_trigger("left");
    end(d, 1);
}

/* Their load counts, too, for a task that names no memory: 1/10,000 of the device. */
T_LONG_CASE(foreign_load, 60)
{
    gpud_dispatcher *d;
    struct answer a;
    uint64_t id;

    t_init(setup, process, cleanup);
    d = t_fakes(1, "gpu 0 utilization=90\ngpu 0 foreign 4194303 1MiB\n"
                "when left gpu 0 utilization=0",
                T_OPTIONS(.pooled = 1, .foreign_load = 5000));
    ADD(d, "a", .needs = NULL);
    id = submit(d, "a");
    a = FIRST(d, id, FOREIGN);
    T_EQ(a.row[0].pid, 4194303);
    T_EQ(a.row[0].unit, GPUD_UNIT_SHARE);
    T_EQ(a.row[0].have, 9000);
    T_EQ(a.row[0].need, 5000);
    t_trigger("left");
    end(d, 1);
}

/* The task failed, and is to be tried again. */
T_CASE(retry)
{
    gpud_dispatcher *d;
    struct answer a;
    uint64_t id;

    t_init(setup, process, cleanup);
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add(d, &(struct gpud_class){ .struct_size = sizeof(struct gpud_class), .name = "a",
                                 .options = T_OPTIONS(.definition = "test",
                                                      .retry_backoff = T_S(100),
                                                      .retry_backoff_cap = T_S(100)) });
    id = t_submit(d, T_TASK(.tag = FAILS, .class_name = "a", .max_attempts = 2,
                            .retry_causes = GPUD_RETRY_ERROR));
    a = FIRST(d, id, RETRY);
    T_EQ(a.n, 1);
    T_CMP(a.row[0].until, >, t_now() + T_S(10));
    T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_HARD));
    end(d, 1);
}

/* ---- R9 ---- */

/* One variant could never run.  A task that is not submitted has that reason, too. */
T_CASE(never)
{
    gpud_dispatcher *d = pool("fake:1");
    struct answer a;

    ADD(d, "a", .needs = T_REQUEST(.devices = 1, .memory = 20ull << 30,
                                   .next = T_REQUEST(.devices = 2, .next = PART(1, 10000))));
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_PAUSE, NULL));
    T_EQ(ask(d, 0, T_TASK(.class_name = "a")).n, 1); /* paused: nothing else counts yet */
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_RESUME, NULL));
    T_OK(gpud_dispatcher_device_pause(d, "fake:0"));
    a = ask(d, 0, T_TASK(.class_name = "a"));
    T_CMP(a.n, >=, 3);
    T_EQ(a.row[0].kind, GPUD_REASON_PAUSED);
    T_EQ(a.row[0].variant, 2);
    T_EQ(a.row[a.n - 1].kind, GPUD_REASON_NEVER);
    T_EQ(a.row[a.n - 1].variant, 1);
    T_EQ(a.row[a.n - 1].unit, GPUD_UNIT_DEVICES);
    T_EQ(a.row[a.n - 1].have, 1);
    T_EQ(a.row[a.n - 1].need, 2);
    for (size_t i = 0; i < a.n; i++) {
        if (a.row[i].variant != 0 || !*a.row[i].device)
            continue;
        T_EQ(a.row[i].kind, GPUD_REASON_NEVER);
        T_TEXT(a.row[i].device, "fake:0");
        T_EQ(a.row[i].unit, GPUD_UNIT_BYTES);
        T_EQ(a.row[i].need, 20ull << 30);
        T_EQ(a.row[i].have >> 20, 14745);
    }
    T_OK(gpud_dispatcher_device_return(d, "fake:0"));
    t_end(&d, NULL);
}

/* As a submit, and what could never run is refused. */
T_CASE(check)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    t_init(setup, process, cleanup);
    d = T_CREATE(.pooled = 1, .devices = "fake:1", .queue_size = 1,
                 .payload_budget = 32u << 20);
    ADD(d, "a", .needs = NULL);
    T_OK(gpud_dispatcher_check(d, T_TASK(.class_name = "a"), &e));
    T_OK(gpud_dispatcher_check(d, T_TASK(.class_name = "a"), NULL));
    T_CODE(gpud_dispatcher_check(d, NULL, &e), EINVAL);
    T_TEXT(e.field, "task");
    T_CODE(gpud_dispatcher_check(NULL, T_TASK(.class_name = "a"), &e), EINVAL);
    T_CODE(gpud_dispatcher_check(d, T_TASK(.class_name = NULL), &e), EINVAL);
    T_TEXT(e.field, "class_name");
    T_CODE(gpud_dispatcher_check(d, T_TASK(.class_name = "b"), &e), ENODEFINITION);
    T_CODE(gpud_dispatcher_check(d, T_TASK(.class_name = "a", .awaited = 2), &e), EINVAL);
    T_TEXT(e.text, "task.awaited is 2, the maximum is 1");
    T_CODE(gpud_dispatcher_check(
               d, T_TASK(.class_name = "a", .data = "x", .size = 64u << 20), &e),
           ETOOBIG);
    T_TEXT(e.field, "size");
    T_CODE(gpud_dispatcher_check(
               d, &(struct gpud_task_desc){ .struct_size = 9, .class_name = "a" }, &e),
           ESTRUCT);
    T_SUBMIT(d, .tag = 1, .class_name = "a");
    T_CODE(gpud_dispatcher_check(d, T_TASK(.class_name = "a"), &e), EFULL);
    T_TEXT(e.text, "queue_size is 1, and 1 accepted tasks are not delivered yet");
    t_collect(d, &log, 1);
    T_OK(gpud_dispatcher_device_remove(d, "fake:0"));
    (void)t_told(d, &log, &at, "fake:0", "removed");
    T_EQ(t_poll(d, &log, 0), 0);
    T_CODE(gpud_dispatcher_check(d, T_TASK(.class_name = "a"), &e), EDEVICE);
    T_CHECK(strstr(e.text, "class a fits nowhere: it needs 0 CPUs, "));
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    T_CODE(gpud_dispatcher_check(d, T_TASK(.class_name = "a"), &e), ECLOSED);
    T_EQ(t_stats(d).accepted, 1); /* it has taken nothing */
    t_end(&d, &log);
}

/* A buffer is checked, and stays with the caller. */
T_CASE(check_of_a_buffer)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_dispatcher *d = T_BEGIN(NULL, t_no_work, .devices = "cpu:1");
    void *data;

    T_OK(gpud_dispatcher_buffer_alloc(d, 1000, &data));
    T_OK(gpud_dispatcher_check(d, T_TASK(.data = data, .size = 1000), &e));
    T_CODE(gpud_dispatcher_check(d, T_TASK(.data = (char *)data + 64, .size = 1), &e), EINVAL);
    T_TEXT(e.field, "data");
    T_CODE(gpud_dispatcher_check(d, T_TASK(.data = data, .size = 1u << 20), &e), EINVAL);
    T_TEXT(e.field, "size");
    T_CODE(gpud_dispatcher_check(d, T_TASK(.class_name = "a"), &e), EINVAL);
    T_TEXT(e.field, "class_name");
    T_OK(gpud_dispatcher_buffer_free(d, data)); /* it is the caller's still */
    t_end(&d, NULL);
}

/* ---- the call ---- */

/* A task that runs has no reason, and one that has ended is not found. */
T_CASE(running_and_ended)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_dispatcher *d = pool("fake:1");
    struct t_log log = { 0 };
    size_t n = 7;
    uint64_t id;

    ADD(d, "a", .needs = NULL);
    id = start(d, "a", 1);
    T_EQ(ask(d, id, NULL).n, 0);
    t_word_set(GATE, 1);
    t_collect(d, &log, 1);
    T_CODE(gpud_dispatcher_explain(d, id, NULL, NULL, 0, &n, &e), ENOTFOUND);
    T_TEXT(e.field, "task_id");
    T_CODE(gpud_dispatcher_explain(d, 12345, NULL, NULL, 0, &n, NULL), ENOTFOUND);
    T_EQ(n, 7);
    T_EQ(ask(d, 0, T_TASK(.class_name = "a")).n, 0); /* its worker is idle */
    t_end(&d, &log);
}

/* Fewer rows than reasons, and rows of another length. */
T_CASE(rows)
{
    struct longer {
        struct gpud_reason reason;
        uint64_t more;
    } rows[2] = { { .reason = { .struct_size = sizeof rows[0] }, .more = 5 }, { .more = 5 } };
    struct gpud_reason row = GPUD_REASON_INIT;
    gpud_dispatcher *d = pool("fake:3");
    size_t n = 0;

    ADD(d, "a", .needs = NULL);
    for (char name[] = "fake:0"; name[5] < '3'; name[5]++)
        T_OK(gpud_dispatcher_device_pause(d, name));
    T_OK(gpud_dispatcher_explain(d, 0, T_TASK(.class_name = "a"), NULL, 0, &n, NULL));
    T_EQ(n, 3);
    T_OK(gpud_dispatcher_explain(d, 0, T_TASK(.class_name = "a"), &row, 1, &n, NULL));
    T_EQ(n, 3);
    T_TEXT(row.device, "fake:0");
    T_OK(gpud_dispatcher_explain(d, 0, T_TASK(.class_name = "a"), &rows[0].reason, 2, &n, NULL));
    T_TEXT(rows[1].reason.device, "fake:1");
    T_EQ(rows[1].reason.struct_size, sizeof rows[0]);
    T_EQ(rows[1].more, 0);
    t_end(&d, NULL);
}

T_CASE(refused)
{
    const struct gpud_task_desc *task = T_TASK(.class_name = "a");
    struct gpud_error e = GPUD_ERROR_INIT;
    struct gpud_reason row = GPUD_REASON_INIT;
    gpud_dispatcher *d = pool("fake:1");
    size_t n = 7;

    ADD(d, "a", .needs = NULL);
    T_CODE(gpud_dispatcher_explain(NULL, 0, task, &row, 1, &n, &e), EINVAL);
    T_TEXT(e.field, "d");
    T_CODE(gpud_dispatcher_explain(d, 0, task, &row, 1, NULL, &e), EINVAL);
    T_TEXT(e.field, "ret_n");
    T_CODE(gpud_dispatcher_explain(d, 0, task, NULL, 1, &n, &e), EINVAL);
    T_TEXT(e.field, "rows");
    T_CODE(gpud_dispatcher_explain(d, 0, NULL, &row, 1, &n, &e), EINVAL);
    T_TEXT(e.text, "task_id is 0 and task is NULL, expected an id and NULL, or 0 and a task");
    T_CODE(gpud_dispatcher_explain(d, 5, task, &row, 1, &n, &e), EINVAL);
    T_TEXT(e.field, "task");
    T_CODE(gpud_dispatcher_explain(d, 0, T_TASK(.class_name = "b"), &row, 1, &n, &e),
           ENODEFINITION);
    T_CODE(gpud_dispatcher_explain(d, 0, T_TASK(.class_name = "a", .size = 1), &row, 1, &n, &e),
           EINVAL);
    T_TEXT(e.field, "data");
    row.struct_size = 9;
    T_CODE(gpud_dispatcher_explain(d, 0, task, &row, 1, &n, &e), ESTRUCT);
    T_EQ(n, 7);
    T_EQ(row.kind, GPUD_REASON_NONE);
    row.struct_size = sizeof row;
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    T_CODE(gpud_dispatcher_explain(d, 0, task, &row, 1, &n, &e), ECLOSED);
    t_destroy(&d, NULL);
    d = T_CREATE(.devices = "cpu:1");
    T_CODE(gpud_dispatcher_explain(d, 1, NULL, &row, 1, &n, &e), EINVAL);
    T_TEXT(e.field, "pooled");
    t_end(&d, NULL);
}
