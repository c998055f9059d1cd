/* SPDX-License-Identifier: MIT */
/* requests.c - pooled dispatchers: tasks with requests of their own, and their order.  [R1] [R9] */
#include "pooled.h"
#include "replayed.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STARTS, UPS, CRASHES, THREAD };
/* What a task of tag GATED + n waits for: word GATE is n at least. */
enum { GATED = 1000, GATE = T_WORDS - 1, CRASHER = 900 };

static int setup(gpud_worker *w, void **ret_state)
{
    *ret_state = w;
    t_word_add(UPS);
    return 0;
}

/* Tells the number of its start, and its devices: "3 fake:0". */
static int process(gpud_task *t, void *state)
{
    char text[128];
    int n;

    n = snprintf(text, sizeof(text), "%u %s", t_word_add(STARTS), gpud_worker_device(state));
    if (gpud_task_tag(t) == CRASHER && t_word_add(CRASHES) == 1)
        abort();
    if (gpud_task_tag(t) >= GATED)
        t_word_wait(GATE, (uint32_t)(gpud_task_tag(t) - GATED));
    return gpud_task_result_set(t, text, (uint64_t)n + 1);
}

static gpud_dispatcher *jobs(const char *devices, uint32_t cpus)
{
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = T_CREATE(.pooled = 1, .devices = devices, .cpus = cpus, .max_workers = 32,
                 .queue_size = 2000, .decision_log = T_DECISIONS);
    add(d, T_CLASS(.name = "jobs", .residence = GPUD_TRANSIENT,
                   .options = T_OPTIONS(.definition = "test", .max_attempts = 2)));
    return d;
}

#define JOB(d, t, ...) T_SUBMIT((d), .tag = (t), .class_name = "jobs", .request = (__VA_ARGS__))
#define HALF T_REQUEST(.devices = 1, .share = 5000, .memory = 4ull << 30)
#define WHOLE T_REQUEST(.devices = 1, .memory = 8ull << 30)
#define HALF_OF_MEMORY T_REQUEST(.devices = 1, .memory = 6ull << 30)

static const char *devices_of(const struct t_log *log, uint64_t tag)
{
    return strchr((const char *)T_OUTCOME(log, tag, SUCCESS)->result, ' ') + 1;
}

static uint32_t start_of(const struct t_log *log, uint64_t tag)
{
    return (uint32_t)atoi((const char *)T_OUTCOME(log, tag, SUCCESS)->result);
}

/* Opens the gates, and collects all `n` outcomes. */
static void collect_all(gpud_dispatcher *d, struct t_log *log, size_t n)
{
    t_word_set(GATE, GATED);
    t_collect(d, log, n);
}

/* ---- side by side ---- */

T_LONG_CASE(sixteen_halves_on_eight_at_once, 60)
{
    gpud_dispatcher *d = jobs("fake:8", 4);
    struct t_log log = { 0 };

    for (uint64_t i = 0; i < 16; i++)
        JOB(d, GATED + 1 + i, HALF);
    t_word_wait(STARTS, 16);
    collect_all(d, &log, 16);
    (void)t_end_replayed(&d, &log);
}

T_LONG_CASE(ten_tenths_return_to_full, 60)
{
    gpud_dispatcher *d = jobs("fake:1", 4);
    struct t_log log = { 0 };

    for (uint64_t i = 0; i < 10; i++)
        JOB(d, GATED + 1, T_REQUEST(.devices = 1, .share = 1000, .memory = 1ull << 30));
    t_word_wait(STARTS, 10);
    JOB(d, 1, WHOLE);
    collect_all(d, &log, 11);
    T_EQ(start_of(&log, 1), 11);
    (void)t_end_replayed(&d, &log);
}

/* The CPU slots of the class do not bound the workers of tasks with requests of their own. */
T_LONG_CASE(more_than_the_cpu_slots_of_the_class, 60)
{
    gpud_dispatcher *d = jobs("fake:1", 2);
    struct t_log log = { 0 };

    add(d, T_CLASS(.name = "others", .residence = GPUD_TRANSIENT, .needs = T_REQUEST(.cpus = 2),
                   .options = T_OPTIONS(.definition = "test")));
    for (uint64_t i = 0; i < 4; i++)
        T_SUBMIT(d, .tag = GATED + 1, .class_name = "others",
                 .request = T_REQUEST(.devices = 1, .share = 1000, .memory = 1ull << 30));
    t_word_wait(STARTS, 4);
    collect_all(d, &log, 4);
    (void)t_end_replayed(&d, &log);
}

/* A task that needs a whole device waits beside two that have a half free each. */
T_LONG_CASE(half_free_twice_is_no_whole, 60)
{
    gpud_dispatcher *d = jobs("fake:2", 4);
    struct t_log log = { 0 };

    JOB(d, GATED + 1, T_REQUEST(.devices = 1, .share = 5000, .memory = 4ull << 30, .on = "fake:0"));
    JOB(d, GATED + 2, T_REQUEST(.devices = 1, .share = 5000, .memory = 4ull << 30, .on = "fake:1"));
    t_word_wait(STARTS, 2);
    JOB(d, 1, WHOLE);
    JOB(d, 2, T_REQUEST(.cpus = 1));
    t_collect(d, &log, 1);
    T_EQ(start_of(&log, 2), 3);
    t_word_set(GATE, 1);
    t_collect(d, &log, 3);
    T_TEXT(devices_of(&log, 1), "fake:0");
    collect_all(d, &log, 4);
    (void)t_end_replayed(&d, &log);
}

T_LONG_CASE(sixteen_gpu_twelve_cpu, 60)
{
    gpud_dispatcher *d = jobs("fake:8", 12);
    struct t_log log = { 0 };

    for (uint64_t i = 0; i < 16; i++)
        JOB(d, GATED + 1, HALF);
    for (uint64_t i = 0; i < 13; i++) /* one of them waits for a CPU slot */
        JOB(d, GATED + 1, T_REQUEST(.cpus = 1));
    t_word_wait(STARTS, 28);
    T_EQ(t_word(STARTS), 28);
    collect_all(d, &log, 29);
    (void)t_end_replayed(&d, &log);
}

/* ---- devices ---- */

/* A wide task waits for all of its devices, and narrow ones that come later do not pass it. */
T_LONG_CASE(wide_among_narrow, 60)
{
    gpud_dispatcher *d = jobs("fake:2", 4);
    struct t_log log = { 0 };

    JOB(d, GATED + 1, WHOLE);
    t_word_wait(STARTS, 1);
    JOB(d, 1, T_REQUEST(.devices = 2, .memory = 8ull << 30));
    JOB(d, 2, WHOLE);
    collect_all(d, &log, 3);
    T_TEXT(devices_of(&log, 1), "fake:0,fake:1");
    T_CMP(start_of(&log, 1), <, start_of(&log, 2));
    t_end(&d, &log);
}

/* The second variant runs where the first one does not fit. */
T_CASE(variants)
{
    const struct gpud_request *cpu = T_REQUEST(.cpus = 1);
    gpud_dispatcher *d = jobs("fake:1", 1);
    struct t_log log = { 0 };

    JOB(d, GATED + 1, WHOLE);
    t_word_wait(STARTS, 1);
    JOB(d, 1, T_REQUEST(.devices = 1, .memory = 8ull << 30, .next = cpu));
    t_collect(d, &log, 1);
    T_TEXT(devices_of(&log, 1), "cpu");
    collect_all(d, &log, 2);
    t_end(&d, &log);
}

/* Tasks of the class without a request run as ever, beside others with one. */
T_LONG_CASE(beside_the_queue, 60)
{
    gpud_dispatcher *d = jobs("fake:1", 4);
    struct t_log log = { 0 };

    for (uint64_t i = 0; i < 20; i++) {
        T_SUBMIT(d, .tag = i, .class_name = "jobs");
        JOB(d, 100 + i, HALF);
    }
    collect_all(d, &log, 40);
    t_end(&d, &log);
}

/* ---- ends ---- */

/* A second attempt has the same request. */
T_LONG_CASE(retried, 60)
{
    gpud_dispatcher *d = jobs("fake:2", 1);
    struct t_log log = { 0 };

    JOB(d, CRASHER, T_REQUEST(.devices = 1, .memory = 8ull << 30, .on = "fake:1"));
    t_collect(d, &log, 1);
    T_TEXT(devices_of(&log, CRASHER), "fake:1");
    T_EQ(T_OUTCOME(&log, CRASHER, SUCCESS)->attempt, 2);
    t_end(&d, &log);
}

T_CASE(cancelled_and_expired)
{
    gpud_dispatcher *d = jobs("fake:1", 1);
    struct t_log log = { 0 };
    uint64_t id;

    JOB(d, GATED + 1, WHOLE);
    t_word_wait(STARTS, 1);
    id = t_submit(d, T_TASK(.tag = 1, .class_name = "jobs", .request = HALF));
    T_SUBMIT(d, .tag = 2, .class_name = "jobs", .request = HALF, .expires = T_MS(1));
    T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_SOFT));
    t_collect(d, &log, 2);
    (void)T_OUTCOME(&log, 1, CANCELLED);
    (void)T_OUTCOME(&log, 2, TIMEOUT);
    collect_all(d, &log, 3);
    t_end(&d, &log);
}

/* A device that goes takes the tasks with it that no other one could hold, and no others. */
T_LONG_CASE(device_removed, 60)
{
    gpud_dispatcher *d = jobs("fake:2", 1);
    struct t_log log = { 0 };

    JOB(d, GATED + 1, WHOLE);
    JOB(d, GATED + 1, WHOLE);
    t_word_wait(STARTS, 2);
    JOB(d, 1, T_REQUEST(.devices = 2, .memory = 1ull << 30));
    JOB(d, 2, WHOLE);
    T_OK(gpud_dispatcher_device_remove(d, "fake:1"));
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, 1, NO_WORKER);
    collect_all(d, &log, 4);
    T_TEXT(devices_of(&log, 2), "fake:0");
    t_end(&d, &log);
}

/* ---- order ---- */

/* A host feeds a longer queue of its own in pieces, and the later piece has older tasks. */
T_CASE(order_over_refills)
{
    static const uint64_t orders[] = { 50, 60, 20, 10, 30, 40 };
    gpud_dispatcher *d = jobs("fake:1", 1);
    struct t_log log = { 0 };

    JOB(d, GATED + 1, WHOLE);
    t_word_wait(STARTS, 1);
    for (uint64_t i = 0; i < 6; i++)
        T_SUBMIT(d, .tag = orders[i], .class_name = "jobs", .request = WHOLE, .order = orders[i]);
    JOB(d, 70, WHOLE);
    collect_all(d, &log, 8);
    for (uint32_t i = 1; i <= 7; i++)
        T_EQ(start_of(&log, 10 * i), i + 1);
    t_end(&d, &log);
}

/* The same in a dispatcher with one class. */
T_CASE(order_without_classes)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_init(setup, process, NULL);
    d = T_CREATE(.devices = "fake:1", .sent_ahead = 1);
    T_SUBMIT(d, .tag = GATED + 1);
    t_word_wait(STARTS, 1);
    for (uint64_t order = 5; order > 0; order--)
        T_SUBMIT(d, .tag = order, .order = order);
    T_SUBMIT(d, .tag = 6);
    collect_all(d, &log, 7);
    for (uint32_t i = 1; i <= 6; i++)
        T_EQ(start_of(&log, i), i + 1);
    t_end(&d, &log);
}

/* ---- refusals ---- */

static void refused(gpud_dispatcher *d, const struct gpud_task_desc *task, int code,
                    const char *field, const char *words)
{
    struct gpud_error e = GPUD_ERROR_INIT, same = GPUD_ERROR_INIT;
    uint64_t id = 77;

    T_EQ(gpud_dispatcher_submit(d, task, 0, &id, &e), code);
    T_EQ(id, 77);
    T_TEXT(e.field, field);
    T_CHECK(strstr(e.text, words));
    T_EQ(gpud_dispatcher_check(d, task, &same), code);
    T_TEXT(same.text, e.text);
}
#define REFUSED(d, class, request_, code, field, words)                                   \
    refused((d), T_TASK(.class_name = (class), .request = (request_)), GPUD_##code, (field), \
            (words))

T_CASE(requests_refused)
{
    struct gpud_request circle = GPUD_REQUEST_INIT;
    gpud_dispatcher *d = jobs("fake:2", 1);
    struct t_log log = { 0 };

    add(d, T_CLASS(.name = "model", .options = T_OPTIONS(.definition = "test")));
    circle.cpus = 1;
    circle.next = &circle;
    REFUSED(d, "model", HALF, EINVAL, "request", "class model is RESIDENT");
    REFUSED(d, "jobs", T_REQUEST(.devices = 17), EINVAL, "devices", "request.devices is 17");
    REFUSED(d, "jobs", T_REQUEST(.devices = 2, .share = 1), EINVAL, "share",
            "request.share is 1, but request.devices is 2");
    REFUSED(d, "jobs", T_REQUEST(.devices = 1, .next = T_REQUEST(.share = 1)), EINVAL, "share",
            "request.next.share is 1, but request.next.devices is 0");
    REFUSED(d, "jobs", &circle, EINVAL, "next", "request has more than 4 variants");
    REFUSED(d, "jobs", T_REQUEST(.devices = 1, .on = "fake:0,fake:7"), EDEVICE, "on",
            "request.on is \"fake:0,fake:7\": the dispatcher has no device \"fake:7\"");
    REFUSED(d, "jobs", T_REQUEST(.devices = 3), EDEVICE, "request",
            "a task of class jobs fits nowhere: it needs 0 CPUs, 0 MiB of the machine, and "
            "devices: 3 ");
    REFUSED(d, "jobs", T_REQUEST(.devices = 1, .memory = 99ull << 30), EDEVICE, "request",
            "(101376 MiB, compute 0); there are 1 CPUs");
    T_CODE(gpud_dispatcher_class_set(d, "jobs", GPUD_CLASS_PIN, NULL), EINVAL);
    T_CODE(gpud_dispatcher_class_add(d, T_CLASS(.name = "p", .residence = GPUD_TRANSIENT,
                                                .pinned = 1), NULL), EINVAL);
    refused(d, T_TASK(.class_name = "jobs", .order = 1ull << 63), GPUD_EINVAL, "order",
            "task.order is 9223372036854775808, the maximum is 9223372036854775807");
    t_end(&d, &log);
}

T_CASE(needs_classes)
{
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = T_CREATE(.devices = "fake:1");
    refused(d, T_TASK(.request = HALF), GPUD_EINVAL, "request",
            "task.request is set, expected NULL: pooled is 0");
    t_end(&d, NULL);
}

/* The tasks that have not ended have 1,024 different requests at most: then a submit waits, as for
 * a full queue. */
T_LONG_CASE(too_many_requests, 60)
{
    gpud_dispatcher *d = jobs("fake:1", 1);
    struct gpud_error e = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    uint64_t id = 0, last = 0;

    T_OK(gpud_dispatcher_class_set(d, "jobs", GPUD_CLASS_PAUSE, NULL));
    for (uint64_t i = 1; i <= 1024; i++)
        id = t_submit(d, T_TASK(.tag = i, .class_name = "jobs",
                                .request = T_REQUEST(.devices = 1, .memory = i << 20)));
    refused(d, T_TASK(.class_name = "jobs", .request = HALF), GPUD_EFULL, "request",
            "the accepted tasks have the most different requests");
    T_SUBMIT(d, .tag = 1, .class_name = "jobs",
             .request = T_REQUEST(.devices = 1, .memory = 1ull << 20)); /* one that is there */
    T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_SOFT));
    T_EQ(gpud_dispatcher_submit(d, T_TASK(.class_name = "jobs", .request = HALF), GPUD_NEVER, &last,
                                &e), 0);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_RUNNING, GPUD_NEVER));
    t_collect_rest(d, &log);
    t_end(&d, &log);
}

struct waiting {
    gpud_dispatcher *d;
    int r;
};

static void *submit_in_time(void *user)
{
    struct waiting *w = user;

    t_word_set(THREAD, (uint32_t)gettid());
    w->r = gpud_dispatcher_submit(w->d, T_TASK(.class_name = "jobs", .request = HALF), T_S(60),
                                  NULL, NULL);
    return NULL;
}

/* A submit that waits for a request goes on when a task has ended, before its outcome is read. */
T_LONG_CASE(room_for_a_request, 60)
{
    struct waiting w = { jobs("fake:1", 1), -1 };
    const uint64_t began = t_now();
    struct t_log log = { 0 };
    pthread_t thread;
    uint64_t id = 0;

    T_OK(gpud_dispatcher_class_set(w.d, "jobs", GPUD_CLASS_PAUSE, NULL));
    for (uint64_t i = 1; i <= 1024; i++)
        id = t_submit(w.d, T_TASK(.tag = i, .class_name = "jobs",
                                  .request = T_REQUEST(.devices = 1, .memory = i << 20)));
    T_EQ(pthread_create(&thread, NULL, submit_in_time, &w), 0);
    t_word_wait(THREAD, 1);
    t_wait_until("the submit waits", t_thread_sleeps, &t_page->words[THREAD]);
    T_SUBMIT(w.d, .tag = 2, .class_name = "jobs", /* with the request of another task */
             .request = T_REQUEST(.devices = 1, .memory = 1ull << 20));
    T_OK(gpud_dispatcher_check(w.d, T_TASK(.class_name = "jobs"), NULL));
    T_OK(gpud_dispatcher_cancel(w.d, id, GPUD_CANCEL_SOFT));
    T_EQ(pthread_join(thread, NULL), 0);
    T_EQ(w.r, 0);
    T_CMP(t_now() - began, <, T_S(30));
    T_OK(gpud_dispatcher_close(w.d, GPUD_FINISH_RUNNING, GPUD_NEVER));
    t_collect_rest(w.d, &log);
    t_end(&w.d, &log);
}

static void *submit_large(void *user)
{
    struct waiting *w = user;
    const size_t size = 32u << 20; /* its copy releases the lock */
    void *data = calloc(1, size);

    w->r = gpud_dispatcher_submit(
        w->d, T_TASK(.tag = 1, .class_name = "guest", .data = data, .size = size), 0, NULL, NULL);
    free(data);
    return NULL;
}

/* A task that is accepted beside the removal of its class ends as every other one. */
T_LONG_CASE(submit_beside_a_removal, 60)
{
    struct waiting w = { jobs("fake:1", 1), -1 };
    struct t_log log = { 0 };
    pthread_t thread;
    size_t accepted = 0;

    for (uint32_t i = 0; i < 20; i++) {
        while (gpud_dispatcher_class_add(
                   w.d, T_CLASS(.name = "guest", .options = T_OPTIONS(.definition = "test")), NULL))
            t_pass(T_MS(1)); /* the last one has not gone yet */
        T_EQ(pthread_create(&thread, NULL, submit_large, &w), 0);
        t_pass(T_US(500) * i);
        T_OK(gpud_dispatcher_class_remove(w.d, "guest", GPUD_FINISH_NOW, NULL));
        T_EQ(pthread_join(thread, NULL), 0);
        T_CHECK(w.r == 0 || w.r == GPUD_ECLOSED || w.r == GPUD_ENODEFINITION);
        accepted += w.r == 0;
    }
    for (size_t n = 0; n < accepted; n++)
        t_collect(w.d, &log, n + 1);
    t_end(&w.d, &log);
}

/* ---- promises ---- */

static const struct gpud_event *promised(gpud_dispatcher *d, struct t_log *log, uint32_t n)
{
    const struct gpud_event *e;
    char line[256];

    t_collect_kind(d, log, GPUD_EVENT_PROMISE, n);
    e = t_log_at(log, GPUD_EVENT_PROMISE, n - 1);
    T_CMP(gpud_event_format(e, line, sizeof(line)), <, sizeof(line));
    printf("  %s\n", line);
    T_TEXT(e->class_name, "b");
    T_EQ(e->tag, 1);
    return e;
}

/* The worker of class b is there, and only lacks the share of the device.  Its task starts when the
 * one before it has ended by its limit.  While its device is paused there is no such time. */
T_CASE(promise)
{
    gpud_dispatcher *d = jobs("fake:1", 1);
    struct t_log log = { 0 };
    const struct gpud_event *e;

    add(d, T_CLASS(.name = "a", .needs = HALF_OF_MEMORY, .min_workers = 1,
                   .options = T_OPTIONS(.definition = "test")));
    add(d, T_CLASS(.name = "b", .needs = HALF_OF_MEMORY, .min_workers = 1,
                   .options = T_OPTIONS(.definition = "test")));
    t_word_wait(UPS, 2);
    T_SUBMIT(d, .tag = GATED + 1, .class_name = "a", .limit = T_S(30));
    t_word_wait(STARTS, 1);
    T_SUBMIT(d, .tag = 1, .class_name = "b");
    e = promised(d, &log, 1);
    T_EQ(e->promise, GPUD_PROMISE_FIRST);
    T_CMP(e->starts_by, >, t_now() + T_S(20));
    T_CMP(e->starts_by, <, t_now() + T_S(40));
    T_OK(gpud_dispatcher_device_pause(d, "fake:0"));
    e = promised(d, &log, 2);
    T_EQ(e->promise, GPUD_PROMISE_DEVICE);
    T_EQ(e->starts_by, 0);
    T_OK(gpud_dispatcher_device_return(d, "fake:0"));
    collect_all(d, &log, 2);
    t_end(&d, &log);
}

/* ---- explain ---- */

T_CASE(reasons)
{
    struct gpud_reason row = GPUD_REASON_INIT;
    gpud_dispatcher *d = jobs("fake:1", 1);
    struct t_log log = { 0 };
    uint64_t id;
    size_t n = 0;

    JOB(d, GATED + 1, T_REQUEST(.devices = 1, .share = 6000, .memory = 4ull << 30));
    t_word_wait(STARTS, 1);
    id = t_submit(d, T_TASK(.tag = 1, .class_name = "jobs", .request = HALF));
    t_word_wait(UPS, 2); /* its worker is there, and only lacks a share */
    for (n = 0; n == 0 || row.kind != GPUD_REASON_SHARE; t_pass(T_MS(1)))
        T_OK(gpud_dispatcher_explain(d, id, NULL, &row, 1, &n, NULL));
    T_EQ(row.have, 4000);
    T_EQ(row.need, 5000);
    T_OK(gpud_dispatcher_explain(d, 0, T_TASK(.class_name = "jobs", .request = WHOLE), &row, 1, &n,
                                 NULL));
    T_CMP(n, >, 0);
    collect_all(d, &log, 2);
    t_end(&d, &log);
}
