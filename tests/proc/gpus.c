/* SPDX-License-Identifier: MIT */
/*
 * gpus.c - dispatchers on "GPUs": the real provider and the real CUDA side of workers, against the
 * fake libnvidia-ml.so.1 and libcuda.so.1, which do what the file `script` in the case's directory
 * says.
 */
#include "scripted.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SETUPS };

/* The loader looks at the variable when a program begins: so this one begins again. */
__attribute__((constructor)) static void with_fake_libraries(int argc, char **argv)
{
    (void)argc;
    if (getenv("FAKE_SCRIPT"))
        return;
    (void)setenv("FAKE_SCRIPT", "script", 1);
    (void)setenv("LD_LIBRARY_PATH", T_PROGRAMS, 1);
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    (void)execv("/proc/self/exe", argv);
    _exit(127);
}

/* Takes 4 GiB of the device, as the fake NVML reads it. */
static void hold_memory(const char *uuid)
{
    char name[128];
    FILE *out;

    (void)snprintf(name, sizeof name, "script.held/%s.%d", uuid, (int)getpid());
    out = fopen(name, "we");
    if (!out)
        return; /* the case has made no such directory */
    (void)fprintf(out, "%llu", 4ull << 30);
    (void)fclose(out);
}

static int setup(gpud_worker *w, void **ret_state)
{
    *ret_state = w;
    hold_memory(gpud_worker_device_uuid(w, 0));
    (void)t_word_add(SETUPS);
    return 0;
}

/* What the worker sees: "gpu:1 GPU-... GPU-... PCI_BUS_ID". */
static int process(gpud_task *t, void *state)
{
    char text[512];

    (void)t_process(t, state);
    (void)snprintf(text, sizeof text, "%s %s %s %s", gpud_worker_device(state),
                   gpud_worker_device_uuid(state, 0), getenv("CUDA_VISIBLE_DEVICES"),
                   getenv("CUDA_DEVICE_ORDER"));
    return gpud_task_result_set(t, text, strlen(text) + 1);
}

static gpud_dispatcher *on_gpus(const char *script, const struct gpud_options *options)
{
    t_write_script("script", script);
    t_init(setup, process, NULL);
    return t_create(options);
}

/* A worker sees its device and no other, by its UUID, whatever the order of others. [T15] */
T_CASE(each_sees_its_own)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = on_gpus("gpus 3", T_OPTIONS(.devices = "all", .sent_ahead = 1));

    t_wait_ready(d, 3);
    T_EQ(t_stats(d).devices_healthy, 3);
    for (unsigned i = 0; i < 3; i++) {
        char name[16], wanted[512];
        struct gpud_device_info row;
        (void)snprintf(name, sizeof name, "gpu:%u", i);
        row = t_device(d, name);
        T_EQ(row.kind, GPUD_DEVICE_GPU);
        for (unsigned k = 0; k < 3; k++)
            if (k != i) {
                char other[16];
                (void)snprintf(other, sizeof other, "gpu:%u", k);
                T_OK(gpud_dispatcher_device_drain(d, other));
            }
        T_SUBMIT(d, .tag = i);
        t_collect(d, &log, i + 1);
        (void)snprintf(wanted, sizeof wanted, "%s %s %s PCI_BUS_ID", name, row.uuid, row.uuid);
        T_TEXT((const char *)T_OUTCOME(&log, i, SUCCESS)->result, wanted);
        for (unsigned k = 0; k < 3; k++) {
            (void)snprintf(name, sizeof name, "gpu:%u", k);
            T_OK(gpud_dispatcher_device_return(d, name));
        }
    }
    t_end(&d, &log);
}

/* "free:N" passes over GPUs that a process uses, and those of the dispatcher.  [R4] */
T_CASE(unused_gpus)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_dispatcher *d;
    char script[96], wanted[160];

    (void)snprintf(script, sizeof script, "gpus 4\ngpu 1 foreign %d 4GiB", (int)getpid());
    d = on_gpus(script, T_OPTIONS(.devices = "free:2"));
    t_wait_ready(d, 2);
    T_TEXT(t_slot(d, 0).device, "gpu:0");
    T_TEXT(t_slot(d, 1).device, "gpu:2");
    T_OK(gpud_dispatcher_device_add(d, "free:1", NULL));
    T_TEXT(t_slot(d, 2).device, "gpu:3");
    T_CODE(gpud_dispatcher_device_add(d, "free:1", &e), EDEVICE);
    (void)snprintf(wanted, sizeof wanted,
                   "entry 1, \"free:1\", finds 0 free devices; gpu:1: 4096 MiB (pid %d)",
                   (int)getpid());
    T_TEXT(e.text, wanted);
    t_destroy(&d, NULL);
    T_OK(gpud_dispatcher_create(
        &d, T_OPTIONS(.pooled = 1, .devices = "free", .foreign_memory = 4ull << 30), NULL));
    T_EQ(t_stats(d).devices, 4);
    t_end(&d, NULL);
}

/* CUDA_VISIBLE_DEVICES of the host is honoured. */
T_CASE(visible_devices)
{
    gpud_dispatcher *d;

    /* not in a worker that is executed */
    T_EQ(setenv("CUDA_VISIBLE_DEVICES", "2,0", !getenv("GPUD_SLOT")), 0);
    d = on_gpus("gpus 3", T_OPTIONS(.devices = "all"));
    t_wait_ready(d, 2);
    T_EQ(t_stats(d).devices, 2);
    T_TEXT(t_slot(d, 0).device, "gpu:2");
    T_TEXT(t_slot(d, 1).device, "gpu:0");
    T_CODE(gpud_dispatcher_device_add(d, "1", NULL), EDEVICE); /* there: it is 0 that 1 means */
    T_CODE(gpud_dispatcher_device_add(d, "2", NULL), EDEVICE); /* not allowed */
    t_end(&d, NULL);
    T_EQ(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
}

/* A sticky error: the task that caused it is an ERROR with CUDA's name; the worker is replaced, and
 * the device is proved by canaries, which fail while the fault lasts. */
T_CASE(sticky_error)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = on_gpus("gpus 1\nwhen broken gpu 0 fail cuCtxSynchronize 700\nwhen mended "
                                 "gpu 0 mend cuCtxSynchronize",
                                 T_OPTIONS(.devices = "0", .canary_backoff = T_MS(20)));
    const struct gpud_event *e;
    size_t at = 0;

    t_wait_ready(d, 1);
    t_trigger("broken"); /* seen by the next call */
    e = T_RUN(d, &log, ERROR, .tag = 1);
    T_CHECK(strstr(e->text, "cudaErrorIllegalAddress (700)"));
    e = t_told_health(d, &log, &at, "gpu:0", GPUD_HEALTH_SUSPECT);
    T_CHECK(strstr(e->text, "CUDA error 700"));
    (void)t_told_health(d, &log, &at, "gpu:0", GPUD_HEALTH_QUARANTINED);
    T_EQ(t_word(SETUPS), 1);
    t_trigger("mended");
    (void)t_told_health(d, &log, &at, "gpu:0", GPUD_HEALTH_HEALTHY);
    (void)T_RUN(d, &log, SUCCESS, .tag = 2);
    T_EQ(t_stats(d).cuda_faults, 1);
    T_CMP(t_stats(d).canary_failures, >=, 1);
    T_EQ(t_stats(d).setup_failures, 0);
    t_end(&d, &log);
}

/* An XID that asks for another worker, as NVML tells it. */
T_CASE(xid_by_nvml)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;

    t_note_openings();
    d = on_gpus("gpus 1\nwhen now gpu 0 xid 94", T_OPTIONS(.devices = "0"));
    t_wait_ready(d, 1);
    t_wait_for_ears(d, "gpu:0", 1); /* a worker may be ready before */
    T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    t_trigger("now");
    T_EQ(t_told_health(d, &log, &at, "gpu:0", GPUD_HEALTH_SUSPECT)->xid, 94);
    t_collect(d, &log, 1);
    T_EQ(T_OUTCOME(&log, T_TAG(T_WAIT_FOR_GATE, 0), CRASHED)->code, GPUD_EDEVICE);
    (void)t_told_health(d, &log, &at, "gpu:0", GPUD_HEALTH_HEALTHY);
    t_end(&d, &log);
}

/* C8: the driver gives a dead worker's memory back after a while: the successor starts then. */
T_CASE(memory_by_nvml)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;
    uint64_t died;

    (void)mkdir("script.held", 0700); /* a worker that is executed comes by here, too */
    d = on_gpus("gpus 1\ngpu 0 late=400ms", T_OPTIONS(.devices = "0"));
    t_wait_ready(d, 1);
    while (t_device(d, "gpu:0").memory_ours == 0)
        (void)t_poll(d, &log, T_MS(20));
    T_EQ(t_device(d, "gpu:0").memory_ours, 4ull << 30);
    T_EQ(t_device(d, "gpu:0").memory_foreign, 0);
    e = T_RUN(d, &log, CRASHED, .tag = T_TAG(T_KILL, 0));
    died = e->ended_at;
    t_wait_ready(d, 1);
    T_EQ(t_stats(d).memory_waits, 1);
    T_EQ(t_stats(d).memory_late, 0);
    T_CMP(t_slot(d, 0).since - died, >, T_MS(300));
    t_end(&d, &log);
}

/* Two workers share a device: what the other one has is not waited for, what the dead one had is.
 */
static void beside_a_sibling(const char *script, unsigned waits)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    (void)mkdir("script.held", 0700);
    d = on_gpus(script, T_OPTIONS(.devices = "0/2", .memory_wait = T_S(3600)));
    t_wait_ready(d, 2);
    for (uint64_t n = 0; n < 3; n++) {
        (void)T_RUN(d, &log, CRASHED, .tag = T_TAG(T_KILL, n));
        t_wait_ready(d, 2);
    }
    T_CMP(t_stats(d).memory_waits, >=, waits);
    T_EQ(t_stats(d).memory_late, 0);
    t_end(&d, &log);
}

T_CASE(memory_beside_a_sibling)
{
    beside_a_sibling("gpus 1\ngpu 0 late=150ms", 3);
}

/* Where the driver does not tell who holds what, a start does not wait for what its sibling has
 * taken. */
T_CASE(memory_without_pids)
{
    beside_a_sibling("gpus 1\ndriver processes=hidden", 0);
}

/* A monitor tells workers of this library from other programs, though they are not its own. */
T_CASE(monitor_knows_workers)
{
    struct gpud_device_info row = GPUD_DEVICE_INFO_INIT;
    struct gpud_process_info of[2] = { GPUD_PROCESS_INFO_INIT };
    struct t_log log = { 0 };
    gpud_monitor *m = NULL;
    gpud_dispatcher *d;
    char script[64];

    (void)mkdir("script.held", 0700);
    (void)snprintf(script, sizeof script, "gpus 1\ngpu 0 foreign %d 1GiB", (int)getpid());
    d = on_gpus(script, T_OPTIONS(.devices = "all"));
    t_wait_ready(d, 1);
    T_OK(gpud_monitor_open(&m, NULL, NULL));
    T_EQ(gpud_monitor_read(m, &row, 1, 0, T_PATIENCE), 1);
    T_EQ(row.foreign_processes, 2);
    T_EQ(gpud_monitor_processes(m, row.uuid, of, 2), 2);
    T_EQ(of[0].pid, t_slot(d, 0).pid); /* 4 GiB */
    T_EQ(of[0].worker, 1);
    T_EQ(of[1].pid, getpid());
    T_EQ(of[1].worker, 0);
    T_OK(gpud_monitor_close(&m));
    t_end(&d, &log);
}

/* GB10, Thor, Orin: where memory cannot be told, a successor starts without waiting for any, and
 * the device is healthy. */
T_CASE(memory_of_the_machine)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = on_gpus("gpus 1\ngpu 0 memory=unknown",
                                 T_OPTIONS(.devices = "all", .memory_wait = T_S(3600)));

    t_wait_ready(d, 1);
    T_SUBMIT(d, .tag = T_TAG(T_KILL, 1));
    T_SUBMIT(d, .tag = T_TAG(T_WORK, 2));
    t_collect(d, &log, 2);
    (void)T_OUTCOME(&log, T_TAG(T_KILL, 1), CRASHED);
    (void)T_OUTCOME(&log, T_TAG(T_WORK, 2), SUCCESS);
    T_EQ(t_stats(d).memory_waits, 0);
    T_EQ(t_device(d, "gpu:0").health, GPUD_HEALTH_HEALTHY);
    T_EQ(t_device(d, "gpu:0").memory_total, GPUD_UNKNOWN64);
    t_end(&d, &log);
}

/* A driver that is not there, or not loaded. */
T_CASE(driver_that_is_not_loaded)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;

    t_write_script("script", "gpus 1\ndriver state=not-loaded");
    t_init(setup, process, NULL);
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.devices = "all"), &error), EDEVICE);
    T_CHECK(strstr(error.text, "entry 1, \"all\", finds no GPU: "));
    T_OK(gpud_fini());
}
