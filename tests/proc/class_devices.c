/* SPDX-License-Identifier: MIT */
/* class_devices.c - devices of a pooled dispatcher that come and go.                        [R8] */
#include "pair.h"
#include "replayed.h"

#include <string.h>

T_CASE(drained_and_added)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add(d, T_CLASS(.name = "a", .options = T_OPTIONS(.definition = "def-a")));
    (void)T_RUN(d, &log, SUCCESS, .tag = 1, .class_name = "a");
    T_OK(gpud_dispatcher_device_drain(d, "fake:0"));
    t_wait_slot(d, 0, GPUD_SLOT_STOPPED);
    T_SUBMIT(d, .tag = 2, .class_name = "a");
    T_EQ(t_class(d, "a").queued, 1);
    T_OK(gpud_dispatcher_device_add(d, "fake:1", NULL));
    t_collect(d, &log, 2);
    t_check_result(&log, 2, "a fake:1 data= env=-");
    T_OK(gpud_dispatcher_device_remove(d, "fake:1"));
    T_SUBMIT(d, .tag = 3, .class_name = "a");
    T_OK(gpud_dispatcher_device_return(d, "fake:0"));
    t_collect(d, &log, 3);
    t_check_result(&log, 3, "a fake:0 data= env=-");
    T_CODE(gpud_dispatcher_device_add(d, "cpu:1", NULL), EINVAL);
    t_end(&d, &log);
}

/* A device that was removed and is added again begins anew. */
T_CASE(removed_and_added_again)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };
    size_t at = 0;

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add(d, T_CLASS(.name = "a", .options = T_OPTIONS(.definition = "def-a")));
    for (uint64_t tag = 0; tag < 4; tag++) {
        (void)T_RUN(d, &log, SUCCESS, .tag = tag, .class_name = "a");
        t_check_result(&log, tag, "a fake:0 data= env=-");
        T_OK(gpud_dispatcher_device_remove(d, "fake:0"));
        (void)t_told(d, &log, &at, "fake:0", "removed");
        T_OK(gpud_dispatcher_device_add(d, "fake:1", NULL));
    }
    t_end(&d, &log);
}

/* A paused device keeps its worker, and starts nothing. */
T_CASE(paused_device)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };
    struct t_proc worker;

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add(d, T_CLASS(.name = "a", .options = T_OPTIONS(.definition = "def-a")));
    (void)T_RUN(d, &log, SUCCESS, .tag = 1, .class_name = "a");
    worker = t_worker(d, 0);
    T_OK(gpud_dispatcher_device_pause(d, "fake:0"));
    T_OK(gpud_dispatcher_device_pause(d, "fake:0"));
    T_EQ(t_device(d, "fake:0").paused, 1);
    T_SUBMIT(d, .tag = 2, .class_name = "a");
    T_EQ(t_class(d, "a").queued, 1);
    T_OK(gpud_dispatcher_device_return(d, "fake:0"));
    t_collect(d, &log, 2);
    T_EQ(t_worker(d, 0).pid, worker.pid);
    T_EQ(t_device(d, "fake:0").paused, 0);
    T_CODE(gpud_dispatcher_device_pause(d, "fake:1"), ENOTFOUND);
    t_end(&d, &log);
}

/* R8: no device is left that could ever hold a worker. */
T_CASE(all_devices_removed)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add(d, T_CLASS(.name = "a", .options = T_OPTIONS(.definition = "def-a")));
    T_SUBMIT(d, .tag = T_GATED + 1, .class_name = "a");
    t_word_wait(T_STARTS, 1);
    T_SUBMIT(d, .tag = 2, .class_name = "a");
    T_OK(gpud_dispatcher_device_remove(d, "fake:0"));
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 2);
    (void)T_OUTCOME(&log, T_GATED + 1, SUCCESS);
    T_TEXT(T_OUTCOME(&log, 2, NO_WORKER)->text,
           "no device that is left could ever hold a worker of its class");
    t_end(&d, &log);
}

/* The spare seat runs the canaries of a device that is out of use, and then it has a worker. */
T_LONG_CASE(canary_brings_it_back, 60)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };
    size_t at = 0;

    t_pair_init();
    d = t_fakes(1, "when broken gpu 0 xid 95",
                T_OPTIONS(.pooled = 1, .canary_backoff = T_MS(1), .max_workers = 1));
    add(d, T_CLASS(.name = "a", .options = T_OPTIONS(.definition = "def-a")));
    (void)T_RUN(d, &log, SUCCESS, .tag = 1, .class_name = "a");
    T_SUBMIT(d, .tag = T_GATED + 2, .class_name = "a");
    t_word_set(T_GATE, 0);
    t_trigger("broken");
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_QUARANTINED);
    t_word_set(T_GATE, 2);
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_HEALTHY);
    (void)T_RUN(d, &log, SUCCESS, .tag = 3, .class_name = "a");
    T_CMP(t_stats(d).canaries, >=, 2);
    t_end(&d, &log);
}

/* R4: foreign memory leaves no room, until its holder goes. */
T_LONG_CASE(foreign_memory, 60)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = t_fakes(1, "gpu 0 foreign 4194303 12GiB\nwhen left gpu 0 gone 4194303",
                T_OPTIONS(.pooled = 1));
    add(d, T_CLASS(.name = "a", .needs = T_REQUEST(.devices = 1, .memory = 8ull << 30),
                   .options = T_OPTIONS(.definition = "def-a")));
    T_SUBMIT(d, .tag = 1, .class_name = "a");
    T_EQ(t_poll(d, &log, T_MS(1200)), 0); /* longer than the time between readings */
    T_EQ(t_word(T_UPS), 0);
    t_trigger("left");
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, 1, SUCCESS);
    t_end(&d, &log);
}

/* The same for min_workers, which no task waits for. */
T_LONG_CASE(foreign_memory_and_min_workers, 60)
{
    gpud_dispatcher *d;

    t_pair_init();
    d = t_fakes(1, "gpu 0 foreign 4194303 12GiB\nwhen left gpu 0 gone 4194303",
                T_OPTIONS(.pooled = 1));
    add(d, T_CLASS(.name = "a", .min_workers = 1,
                   .needs = T_REQUEST(.devices = 1, .memory = 8ull << 30),
                   .options = T_OPTIONS(.definition = "def-a")));
    T_CODE(gpud_dispatcher_ready(d, 0, T_MS(300), NULL), ETIMEOUT);
    t_trigger("left");
    T_OK(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL));
    t_end(&d, NULL);
}
