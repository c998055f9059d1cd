/* SPDX-License-Identifier: MIT */
/* device_sets.c - option devices_per_worker: workers that own several devices. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int setup(gpud_worker *w, void **ret_state)
{
    *ret_state = w;
    return 0;
}

/* Tells what the worker knows: "2: cpu:0 + cpu:1 = cpu:0,cpu:1 = cpu:0,cpu:1". */
static int process(gpud_task *t, void *state)
{
    char text[1024];
    size_t n = (size_t)snprintf(text, sizeof(text), "%u:", gpud_worker_device_count(state));

    for (uint32_t i = 0; i < gpud_worker_device_count(state); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %s", i ? " +" : "",
                              gpud_worker_device_at(state, i));
    if (gpud_worker_device_at(state, gpud_worker_device_count(state)) ||
        gpud_worker_device_at(state, UINT32_MAX))
        return 1;
    n += (size_t)snprintf(text + n, sizeof(text) - n, " = %s = %s", gpud_worker_device(state),
                          getenv("GPUD_DEVICES"));
    return gpud_task_result_set(t, text, n + 1);
}

struct slot_devices {
    const char *first, *all, *told;
};

static void check(const char *devices, uint32_t per_worker, unsigned slots,
                  const struct slot_devices *wanted)
{
    gpud_dispatcher *d =
        T_CREATE(.devices = devices, .devices_per_worker = per_worker, .sent_ahead = 1);
    struct t_log log = { 0 };
    uint64_t seen = 0, tasks = 0;

    t_wait_ready(d, slots);
    T_EQ(t_stats(d).slots, slots);
    for (; seen != (1u << slots) - 1; tasks++) {
        const struct gpud_event *e;
        T_SUBMIT(d, .tag = tasks);
        if (tasks % slots != slots - 1)
            continue;
        t_collect(d, &log, tasks + 1);
        for (uint64_t tag = tasks + 1 - slots; tag <= tasks; tag++) {
            e = T_OUTCOME(&log, tag, SUCCESS);
            T_CMP(e->slot, <, slots);
            T_TEXT((const char *)e->result, wanted[e->slot].told);
            T_TEXT(e->device, wanted[e->slot].all);
            seen |= 1u << e->slot;
        }
    }
    for (unsigned i = 0; i < slots; i++) {
        struct gpud_slot_stats row = t_slot(d, i);
        T_TEXT(row.device, wanted[i].first);
        T_TEXT(row.devices, wanted[i].all);
        T_EQ(row.device_count, per_worker ? per_worker : 1);
    }
    t_destroy(&d, &log);
}

/* What worker, environment, rows and events say. */
T_CASE(names)
{
    static const struct slot_devices single[] = { { "cpu:0", "cpu:0", "1: cpu:0 = cpu:0 = cpu:0" },
                                                  { "cpu:1", "cpu:1",
                                                    "1: cpu:1 = cpu:1 = cpu:1" } };
    static const struct slot_devices pairs[] = {
        { "cpu:0", "cpu:0,cpu:1", "2: cpu:0 + cpu:1 = cpu:0,cpu:1 = cpu:0,cpu:1" },
        { "cpu:2", "cpu:2,cpu:3", "2: cpu:2 + cpu:3 = cpu:2,cpu:3 = cpu:2,cpu:3" }
    };
    const struct slot_devices shared[] = { pairs[0], pairs[0] };
    struct slot_devices most = { "cpu:0", NULL, NULL };
    char all[512] = "", told[1600];
    size_t n;

    t_init(setup, process, NULL);
    check("cpu:2", 0, 2, single);
    check("cpu:2", 1, 2, single);
    check("cpu:4", 2, 2, pairs);
    check("cpu:3,cpu:1", 2, 2, pairs);
    check("cpu:2/2", 2, 2, shared);
    n = (size_t)snprintf(told, sizeof(told), "16:");
    for (unsigned i = 0; i < 16; i++) {
        (void)snprintf(all + strlen(all), sizeof(all) - strlen(all), "%scpu:%u", i ? "," : "", i);
        n += (size_t)snprintf(told + n, sizeof(told) - n, "%s cpu:%u", i ? " +" : "", i);
    }
    (void)snprintf(told + n, sizeof(told) - n, " = %s = %s", all, all);
    most.all = all;
    most.told = told;
    check("cpu:16", 16, 1, &most);
    T_OK(gpud_fini());
}

/* C15. */
T_CASE(refused)
{
    static const struct {
        const char *devices;
        uint32_t per_worker;
        int code;
        const char *field, *words;
    } bad[] = {
        { "cpu:3", 2, GPUD_EDEVICE, "devices_per_worker",
          "the number of devices is 3, expected a multiple of 2 (devices_per_worker)" },
        { NULL, 2, GPUD_EDEVICE, "devices_per_worker", "devices is 1, expected a multiple of 2" },
        { "cpu:34", 17, GPUD_EINVAL, "devices_per_worker", "17, the maximum is 16" },
        { "cpu:1,cpu:1/2", 2, GPUD_EDEVICE, "devices", "entry 2" },
    };
    gpud_dispatcher *d = NULL;

    t_init(setup, process, NULL);
    for (size_t i = 0; i < T_LENGTH(bad); i++) {
        struct gpud_error e = GPUD_ERROR_INIT;
        T_EQ(gpud_dispatcher_create(
                 &d, T_OPTIONS(.devices = bad[i].devices, .devices_per_worker = bad[i].per_worker),
                 &e),
             bad[i].code);
        T_TEXT(e.field, bad[i].field);
        if (!strstr(e.text, bad[i].words))
            T_FAIL("the text is \"%s\"", e.text);
        T_CHECK(!d);
    }
    T_OK(gpud_fini());
}
