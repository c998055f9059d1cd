/* SPDX-License-Identifier: MIT */
/* monitor_nvml.c - the process that reads devices, through NVML: the fake libnvidia-ml.so.1 does
 * what a script says. */
#include "monitors.h"
#include "rest.h"
#include "scripted.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* It is loaded before gpud_init, so that what is forked then finds it by its soname. */
static gpud_monitor *open_nvml(const char *script)
{
    gpud_monitor *m = NULL;
    void *library;

    t_write_script("script", script);
    T_EQ(setenv("FAKE_SCRIPT", "script", 1), 0);
    library = dlopen(T_PROGRAMS "/libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        T_FAIL("%s", dlerror());
    t_init(NULL, t_no_work, NULL);
    T_EQ(unsetenv("FAKE_SCRIPT"), 0);
    T_EQ(dlclose(library), 0);
    T_OK(gpud_monitor_open(&m, "all", NULL));
    return m;
}

static void end_nvml(gpud_monitor **m)
{
    t_monitor_close_quickly(m);
    t_fini_quickly();
    T_CHECK(t_no_monitor(NULL));
}

static int has_an_xid(void *m)
{
    return t_monitor_rows(m, 2, GPUD_NEVER, 0)[1].xids > 0;
}

/* NVML tells of events after registration only, which comes a moment after the list of devices: an
 * XID of that moment may be missed, a later one is heard. */
static void provoke_an_xid(gpud_monitor *m)
{
    uint64_t start = t_now();

    t_trigger("go");
    while (!has_an_xid(m) && t_now() - start < T_S(1))
        (void)t_monitor_rows(m, 2, 0, T_PATIENCE);
    t_trigger("on");
    t_wait_until("an XID is in the row", has_an_xid, m);
}

T_CASE(nvml_devices_and_incidents)
{
    gpud_monitor *m =
        open_nvml("driver version=570.86.15 cuda=12.8\ngpu 0 memory=8GiB used=1GiB model=\"A small "
                  "one\"\nwhen go gpu 1 xid 79\nwhen on gpu 1 xid 79\n");
    struct gpud_device_info *rows = t_monitor_rows(m, 2, 0, T_PATIENCE);
    struct gpud_driver_info driver = t_monitor_driver(m, 0);

    T_EQ(driver.state, GPUD_DRIVER_OK);
    T_EQ(driver.gpus, 2);
    T_EQ(driver.cuda_version, 12080);
    T_TEXT(driver.driver_version, "570.86.15");
    T_TEXT(rows[0].name, "gpu:0");
    T_EQ(rows[0].kind, GPUD_DEVICE_GPU);
    T_TEXT(rows[0].model, "A small one");
    T_CHECK(!strncmp(rows[0].uuid, "GPU-", 4));
    T_EQ(rows[0].memory_total, 8ull << 30);
    T_EQ(rows[0].memory_used, 1ull << 30);
    T_EQ(rows[0].health, GPUD_HEALTH_HEALTHY);
    provoke_an_xid(m);
    rows = t_monitor_rows(m, 2, GPUD_NEVER, 0);
    T_EQ(rows[1].last_xid, 79);
    T_CHECK(rows[1].health != GPUD_HEALTH_HEALTHY);
    end_nvml(&m);
}

/* The driver's library hangs: in being opened, while it is asked what there is, in a reading. */
static void nvml_hangs(const char *script, int rows)
{
    gpud_monitor *m = open_nvml(script);
    uint64_t start;

    if (rows) {
        (void)t_monitor_rows(m, rows, 0, T_PATIENCE);
        t_trigger("go");
    }
    start = t_now();
    (void)t_monitor_rows(m, rows, 0, T_MS(50));
    while (t_monitor_driver(m, T_MS(10)).state != GPUD_DRIVER_HUNG) {
        (void)t_monitor_rows(m, rows, 0, T_MS(10));
        T_CMP(t_now() - start, <, T_PATIENCE);
    }
    if (rows)
        T_EQ(t_monitor_rows(m, rows, 0, 0)->health, GPUD_HEALTH_UNKNOWN);
    end_nvml(&m);
}

/* GB10 and Thor share the machine's memory, Orin tells little more than its name: that is no fault
 * of theirs, and they are lost where another call says so. */
T_CASE(nvml_memory_of_the_machine)
{
    gpud_monitor *m = open_nvml("gpus 2\ngpu * memory=unknown\ngpu 1 temperature=unknown "
                                "utilization=unknown power=unknown\nwhen go gpu * lost\n");
    struct gpud_device_info *rows = t_monitor_rows(m, 2, 0, T_PATIENCE);

    for (unsigned i = 0; i < 2; i++) {
        T_EQ(rows[i].health, GPUD_HEALTH_HEALTHY);
        T_EQ(rows[i].memory_total, GPUD_UNKNOWN64);
        T_EQ(rows[i].memory_used, GPUD_UNKNOWN64);
        T_EQ(rows[i].memory_free, GPUD_UNKNOWN64);
    }
    T_EQ(rows[0].temperature, 40);
    t_trigger("go");
    rows = t_monitor_rows(m, 2, 0, T_PATIENCE);
    T_EQ(rows[0].health, GPUD_HEALTH_LOST);
    T_EQ(rows[1].health, GPUD_HEALTH_LOST);
    end_nvml(&m);
}

/* Who uses a device: workers of this library, of whichever host, and others; those with most memory
 * first. */
T_CASE(nvml_processes)
{
    struct gpud_process_info rows[3] = { GPUD_PROCESS_INFO_INIT };
    char script[256];
    gpud_monitor *m;

    (void)snprintf(script, sizeof script, "gpus 2\ngpu 0 foreign %d 2GiB foreign 4194303 1GiB\n",
                   (int)getpid());
    m = open_nvml(script);
    /* the devices are not known yet, or not read */
    T_CODE(gpud_monitor_processes(m, "gpu:0", rows, 3), ENOTFOUND);
    (void)t_monitor_rows(m, 2, 0, T_PATIENCE);
    T_EQ(gpud_monitor_processes(m, "gpu:0", rows, 3), 2);
    T_EQ(rows[0].pid, getpid());
    T_EQ(rows[0].memory, 2ull << 30);
    T_EQ(rows[0].worker, 0);
    T_EQ(rows[1].pid, 0); /* no machine has so many */
    T_EQ(rows[1].memory, 1ull << 30);
    T_EQ(rows[1].struct_size, sizeof *rows);
    T_EQ(gpud_monitor_processes(m, "gpu:0", rows, 1), 2);
    T_EQ(gpud_monitor_processes(m, "gpu:1", NULL, 0), 0);
    T_EQ(gpud_monitor_processes(m, t_monitor_rows(m, 2, GPUD_NEVER, 0)[0].uuid, NULL, 0), 2);
    T_CODE(gpud_monitor_processes(m, "gpu:2", rows, 3), ENOTFOUND);
    T_CODE(gpud_monitor_processes(m, NULL, rows, 3), EINVAL);
    T_CODE(gpud_monitor_processes(m, "gpu:0", NULL, 1), EINVAL);
    rows[0].struct_size = 8;
    T_CODE(gpud_monitor_processes(m, "gpu:0", rows, 3), ESTRUCT);
    end_nvml(&m);
}

T_CASE(nvml_hangs_in_open)
{
    nvml_hangs("gpus 1\ndriver hang open\n", 0);
}

T_CASE(nvml_hangs_in_enumerate)
{
    nvml_hangs("gpus 2\ngpu 1 hang enumerate\n", 0);
}

T_CASE(nvml_hangs_in_sample)
{
    /* before, it would hang in the list: how much memory has it? */
    nvml_hangs("gpus 1\nwhen go gpu 0 hang sample\n", 1);
}

static int is_there(void *m)
{
    struct gpud_device_info row = GPUD_DEVICE_INFO_INIT;
    int n = gpud_monitor_read(m, &row, 1, 0, T_MS(100));

    T_CMP(n, >=, 0);
    return n == 1 && row.sampled_at;
}

/* The module is loaded later: who looks again finds the GPU. */
T_CASE(nvml_driver_comes_later)
{
    gpud_monitor *m = open_nvml("gpus 1\ndriver state=not-loaded\nwhen loaded driver state=ok\n");

    T_EQ(t_monitor_driver(m, T_PATIENCE).state, GPUD_DRIVER_NOT_LOADED);
    (void)t_monitor_rows(m, 0, 0, T_PATIENCE);
    (void)t_monitor_rows(m, 0, 0, T_PATIENCE);
    t_trigger("loaded");
    t_wait_until("the GPU is there", is_there, m);
    T_EQ(t_monitor_driver(m, 0).state, GPUD_DRIVER_OK);
    end_nvml(&m);
}

/* C20: with NVML, too, nobody wakes up. */
T_CASE(nvml_idle)
{
    gpud_monitor *m = open_nvml("gpus 3\n");

    (void)t_monitor_rows(m, 3, 0, T_PATIENCE);
    t_expect_rest(10, NULL, NULL);
    end_nvml(&m);
}
