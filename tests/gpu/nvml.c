/* SPDX-License-Identifier: MIT */
/* nvml.c - what the driver reports about our workers: the XIDs of their faults, and the memory that
 * each holds. */
#include "gpu.h"
#include "scripted.h"

#include <string.h>
#include <unistd.h>

enum { TRIES = 3, WORKERS = 2 };

static struct gpud_device_info only_row(gpud_dispatcher *d)
{
    struct gpud_device_info row = GPUD_DEVICE_INFO_INIT;

    T_EQ(gpud_dispatcher_devices(d, &row, 1), 1);
    return row;
}

/* Polls until the row of the only GPU was read from now on and has what `holds` looks for, or 5 s
 * have passed. */
static struct gpud_device_info await_row(gpud_dispatcher *d, struct t_log *log,
                                         int (*holds)(const struct gpud_device_info *))
{
    uint64_t start = t_now();
    struct gpud_device_info row = only_row(d);

    while ((row.sampled_at < start || !holds(&row)) && t_now() < start + T_S(5)) {
        (void)t_poll(d, log, T_MS(20));
        row = only_row(d);
    }
    return row;
}

static int is_read(const struct gpud_device_info *row)
{
    return row->sampled_at != 0;
}

static int has_xid(const struct gpud_device_info *row)
{
    return row->xids > 0;
}

static int is_held(const struct gpud_device_info *row)
{
    return row->memory_ours > 0 && row->memory_ours != GPUD_UNKNOWN64;
}

/* A kernel's illegal address makes the driver report XID 31 or 13, and the dispatcher counts it.
 * Some machines, most of them containers, deliver no XID: that is a result too ("deaf"), and the
 * row's evidence is printed. */
T_LONG_CASE(xid_is_heard, 120)
{
    struct t_log log = { 0 };
    struct gpud_device_info row;
    gpud_dispatcher *d;

    gpu_begin();
    d = T_CREATE(.devices = gpu_devices(1), .sent_ahead = 1);
    row = await_row(d, &log, is_read); /* the monitor listens from about then on */
    if (gpu_rehearsed())
        t_wait_for_ears(d, row.name, 1);
    for (uint64_t tag = 0; tag < TRIES && row.xids == 0; tag++) {
        gpu_submit(d, tag, GPU_ORDER(.op = GPU_OP_REPORT, .error = GPU_ILLEGAL_ADDRESS), T_S(10));
        t_collect(d, &log, (size_t)tag + 1);
        (void)T_OUTCOME(&log, tag, ERROR);
        if (gpu_rehearsed())
            t_trigger("provoked");
        row = await_row(d, &log, has_xid);
    }
    if (gpu_rehearsed()) {
        T_EQ(row.xids, 1);
        T_EQ(row.last_xid, GPU_REHEARSED_XID);
    }
    gpu_result("xid_heard", row.last_xid, row.xids ? "XID" : "deaf");
    gpu_note("%u XIDs; %s: %s", row.xids, gpud_health_name(row.health), row.evidence);
    gpu_readings_end();
    t_end(&d, &log);
}

/* Where NVML's process ids are not those of this process's namespace, none of them can be ours. */
static int in_first_pid_namespace(void)
{
    char name[64] = "";

    return readlink("/proc/self/ns/pid", name, sizeof(name) - 1) > 0 &&
           !strcmp(name, "pid:[4026531836]");
}

/* NVML lists each worker with the memory that it holds, and the row adds it up. */
T_LONG_CASE(workers_are_listed, 120)
{
    struct t_log log = { 0 };
    struct gpud_device_info row;
    gpud_dispatcher *d;

    gpu_begin();
    d = T_CREATE(.devices = gpu_devices(WORKERS), .sent_ahead = 1);
    t_wait_ready(d, WORKERS);
    for (uint64_t tag = 0; tag < WORKERS; tag++)
        gpu_submit(d, tag, GPU_ORDER(.op = GPU_OP_BUSY, .ns = T_MS(50)), 0);
    t_collect(d, &log, WORKERS);
    row = await_row(d, &log, is_held);
    gpu_result("workers_memory_listed", (double)row.memory_ours / (double)(1 << 20), "MiB");
    gpu_note("%d workers; NVML lists %u processes that are not ours", WORKERS,
             row.foreign_processes);
    if (gpu_rehearsed())
        T_EQ(row.memory_ours, WORKERS * GPU_REHEARSED_CONTEXT);
    else if (!is_held(&row) && in_first_pid_namespace())
        T_FAIL("NVML lists none of our workers: %s", row.evidence);
    gpu_readings_end();
    t_end(&d, &log);
}
