/* SPDX-License-Identifier: MIT */
/* roster.c - devices that are added, drained, returned and removed while tasks run. */
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLEANUPS };

static void cleanup(gpud_worker *w, void *state)
{
    (void)w, (void)state;
    (void)t_word_add(CLEANUPS);
}

static struct gpud_device_info rows[64];

static int read_rows(gpud_dispatcher *d)
{
    rows[0].struct_size = sizeof rows[0];
    return gpud_dispatcher_devices(d, rows, 64);
}

static const struct gpud_device_info *row(gpud_dispatcher *d, const char *name)
{
    int n = read_rows(d);

    for (int i = 0; i < n; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    T_FAIL("no device is named %s", name);
}

/* Polls until a DEVICE event of this device begins with these words. */
static const struct gpud_event *told(gpud_dispatcher *d, struct t_log *log, const char *device,
                                     const char *words)
{
    for (size_t n = 0;; n++) {
        const struct gpud_event *e;
        t_collect_kind(d, log, GPUD_EVENT_DEVICE, n + 1);
        e = t_log_at(log, GPUD_EVENT_DEVICE, n);
        if (strcmp(e->device, device) == 0 && strncmp(e->text, words, strlen(words)) == 0)
            return e;
    }
}

/* What a row of a CPU slot says: it is well, and nothing else is known of it. */
T_CASE(rows_of_cpu_slots)
{
    gpud_dispatcher *d = T_BEGIN(NULL, t_process, .devices = "cpu:2,cpu:1/3");

    T_EQ(read_rows(d), 3);
    for (unsigned i = 0; i < 3; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "cpu:%u", i);
        T_TEXT(rows[i].name, name);
        T_TEXT(rows[i].uuid, name);
        T_EQ(rows[i].kind, GPUD_DEVICE_CPU);
        T_EQ(rows[i].health, GPUD_HEALTH_HEALTHY);
        T_EQ(rows[i].slots, i == 2 ? 3 : 1);
        T_EQ(rows[i].index, i);
        T_EQ(rows[i].sampled_at, 0);
        T_CHECK(rows[i].memory_free == GPUD_UNKNOWN64 && rows[i].temperature == GPUD_UNKNOWN32);
        T_EQ(rows[i].canary_at, 0);
    }
    memset(rows, 0, sizeof rows);
    rows[0].struct_size = sizeof rows[0];
    T_EQ(gpud_dispatcher_devices(d, rows, 1), 3);
    T_TEXT(rows[0].name, "cpu:0");
    T_TEXT(rows[1].name, "");
    T_EQ(gpud_dispatcher_devices(d, NULL, 0), 3);
    t_end(&d, NULL);
}

T_CASE(bad_arguments)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = T_BEGIN(NULL, t_process, .devices = "cpu:1");

    rows[0].struct_size = 0;
    T_CODE(gpud_dispatcher_devices(d, rows, 1), ESTRUCT);
    T_CODE(gpud_dispatcher_devices(d, NULL, 1), EINVAL);
    T_CODE(gpud_dispatcher_devices(NULL, rows, 1), EINVAL);
    T_CODE(gpud_dispatcher_device_add(NULL, "cpu:1", NULL), EINVAL);
    T_CODE(gpud_dispatcher_device_add(d, NULL, &error), EINVAL);
    T_TEXT(error.field, "devices");
    T_CODE(gpud_dispatcher_device_add(d, "cpu:1,nonsense", &error), EDEVICE);
    T_CHECK(strstr(error.text, "entry 2"));
    T_CODE(gpud_dispatcher_device_add(d, "cpu:1024", &error), EFULL);
    T_CODE(gpud_dispatcher_device_drain(d, NULL), EINVAL);
    T_CODE(gpud_dispatcher_device_drain(d, "cpu:1"), ENOTFOUND);
    T_CODE(gpud_dispatcher_device_return(d, "cpu:1"), ENOTFOUND);
    T_CODE(gpud_dispatcher_device_remove(d, ""), ENOTFOUND);
    T_EQ(read_rows(d), 1);
    T_EQ(t_stats(d).slots, 1);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    T_CODE(gpud_dispatcher_device_add(d, "cpu:1", &error), ECLOSED);
    t_end(&d, NULL);
}

/* A drained device: what runs ends by itself, cleanup runs, what waits goes to others; back after
 * return. */
T_CASE(drain_and_return)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    const char *other;
    unsigned busy;

    t_init(NULL, t_process, cleanup);
    d = T_CREATE(.devices = "cpu:2", .sent_ahead = 4);
    t_wait_ready(d, 2);
    T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    busy = t_slot(d, 0).task_id ? 0 : 1;
    other = busy ? "cpu:1" : "cpu:0";
    T_OK(gpud_dispatcher_device_drain(d, other));
    T_OK(gpud_dispatcher_device_drain(d, other));
    T_EQ(row(d, other)->draining, 1);
    T_EQ(t_slot(d, busy).state, GPUD_SLOT_DRAINING);
    t_submit_tags(d, 0, 50);
    t_collect(d, &log, 50);
    for (uint64_t n = 0; n < 50; n++)
        T_CMP(T_OUTCOME(&log, n, SUCCESS)->slot, !=, busy);
    T_EQ(t_word(CLEANUPS), 0);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 51);
    T_EQ(T_OUTCOME(&log, T_TAG(T_WAIT_FOR_GATE, 0), SUCCESS)->slot, busy);
    T_EQ(told(d, &log, other, "drained")->device_health, GPUD_HEALTH_HEALTHY);
    T_EQ(t_word(CLEANUPS), 1);
    T_EQ(t_slot(d, busy).state, GPUD_SLOT_STOPPED);
    T_EQ(t_stats(d).slots_failed, 0);
    T_OK(gpud_dispatcher_device_return(d, other));
    (void)told(d, &log, other, "returned");
    t_wait_ready(d, 2);
    T_EQ(row(d, other)->draining, 0);
    t_end(&d, &log);
}

/* The last device is removed: what waits ends NO_WORKER at once, and so does what comes; one that
 * is added later works. */
T_CASE(remove_the_last_one)
{
    enum { BUDGET = 16 << 20 };
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        T_BEGIN(NULL, t_process, .devices = "cpu:1", .sent_ahead = 1, .payload_budget = BUDGET);

    T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    t_submit_tags(d, 0, 5);
    T_OK(gpud_dispatcher_device_remove(d, "cpu:0"));
    T_OK(gpud_dispatcher_device_remove(d, "cpu:0"));
    T_CODE(gpud_dispatcher_device_return(d, "cpu:0"), ENOTFOUND);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 6);
    (void)T_OUTCOME(&log, T_TAG(T_WAIT_FOR_GATE, 0), SUCCESS);
    for (uint64_t n = 0; n < 5; n++)
        T_TEXT(T_OUTCOME(&log, n, NO_WORKER)->text,
               "every slot was removed; slot 0: its device was removed");
    (void)told(d, &log, "cpu:0", "removed");
    T_EQ(read_rows(d), 0);
    T_EQ(t_stats(d).slots, 0);
    T_EQ(t_stats(d).slots_failed, 0);
    T_CODE(gpud_dispatcher_device_drain(d, "cpu:0"), ENOTFOUND);
    (void)T_RUN(d, &log, NO_WORKER, .tag = 5);
    T_OK(gpud_dispatcher_device_add(d, "cpu:1", NULL));
    (void)told(d, &log, "cpu:0", "added");
    T_TEXT(T_RUN(d, &log, SUCCESS, .tag = 6)->device, "cpu:0");
    T_EQ(read_rows(d), 1);
    T_EQ(t_stats(d).payload_budget, BUDGET); /* its slot had its share */
    t_end(&d, &log);
}

/* In a set the whole set goes. */
T_CASE(remove_one_of_a_set)
{
    enum { BUDGET = 16 << 20 };
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, t_process, .devices = "cpu:4", .devices_per_worker = 2,
                                 .payload_budget = BUDGET);

    T_OK(gpud_dispatcher_device_remove(d, "cpu:3"));
    (void)told(d, &log, "cpu:3", "removed");
    (void)told(d, &log, "cpu:2", "removed");
    T_EQ(read_rows(d), 2);
    T_EQ(t_stats(d).slots, 1);
    T_OK(gpud_dispatcher_device_add(d, "cpu:4", NULL));
    T_EQ(read_rows(d), 6);
    T_EQ(t_stats(d).payload_budget, BUDGET + BUDGET / 4); /* one slot is used again, one is new */
    t_wait_ready(d, 3);
    T_TEXT(t_slot(d, 1).devices, "cpu:2,cpu:3");
    T_TEXT(t_slot(d, 2).devices, "cpu:4,cpu:5");
    t_end(&d, &log);
}

/* Slots that come do not grow without end: a removed device that is added again takes its slot.
 * [C18] */
T_CASE(many_rounds)
{
    struct t_log log = { 0 };
    uint64_t tag = 0;
    gpud_dispatcher *d = T_BEGIN(NULL, t_process, .devices = "cpu:1");

    for (unsigned round = 0; round < 20; round++) {
        T_OK(gpud_dispatcher_device_add(d, "cpu:3", NULL));
        for (unsigned n = 0; n < 30; n++)
            T_SUBMIT(d, .tag = tag++);
        T_OK(gpud_dispatcher_device_remove(d, "cpu:1"));
        T_OK(gpud_dispatcher_device_remove(d, "cpu:2"));
        T_OK(gpud_dispatcher_device_remove(d, "cpu:3"));
        t_collect(d, &log, tag);
        while (read_rows(d) != 1)
            (void)t_poll(d, &log, T_MS(10));
    }
    T_CMP(gpud_dispatcher_slots(d, NULL, 0), <=, 7);
    t_check_exactly_once(&log, tag);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), tag);
    t_end(&d, &log);
}

/* C1: devices come and go under load; each task is told of once. [T23] */
T_LONG_CASE(coming_and_going_under_load, 120)
{
    enum { TASKS = 20000, ROUND = 250 };
    static const char *const names[] = { "cpu:0", "cpu:1", "cpu:2", "cpu:3" };
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, t_process, .devices = "cpu:4", .queue_size = 4096,
                                 .drive = GPUD_DRIVE_THREAD);

    for (uint64_t tag = 0; tag < TASKS; tag++) {
        const char *name = names[tag / ROUND % 3];
        while (gpud_dispatcher_submit(d, T_TASK(.tag = tag), 0, NULL, NULL) == GPUD_EFULL)
            (void)t_poll(d, &log, T_MS(1));
        switch (tag % ROUND) {
        case 50:
            (void)gpud_dispatcher_device_drain(d, name);
            break;
        case 100:
            (void)gpud_dispatcher_device_return(d, name);
            break;
        case 150:
            (void)gpud_dispatcher_device_remove(d, name);
            break;
        case 200:
            T_OK(gpud_dispatcher_device_add(d, "cpu:1", NULL));
            break;
        default:
            break;
        }
    }
    t_collect(d, &log, TASKS);
    t_check_exactly_once(&log, TASKS);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), TASKS);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    t_end(&d, &log);
}

/* A kept event has its names still when the dispatcher is gone. */
T_CASE(kept_device_event)
{
    struct gpud_event e = GPUD_EVENT_INIT;
    gpud_dispatcher *d = T_BEGIN(NULL, t_process, .devices = "cpu:1");

    T_OK(gpud_dispatcher_device_drain(d, "cpu:0"));
    while (e.kind != GPUD_EVENT_DEVICE)
        T_CMP(gpud_dispatcher_poll(d, &e, 1, T_PATIENCE), >, 0);
    T_OK(gpud_event_keep(d, &e));
    T_OK(gpud_dispatcher_destroy(&d, NULL));
    T_TEXT(e.device, "cpu:0");
    T_TEXT(e.device_uuid, "cpu:0");
    T_OK(gpud_event_release(&e));
    T_TEXT(e.device_uuid, "");
    T_OK(gpud_fini());
}
