/* SPDX-License-Identifier: MIT */
/*
 * monitor.c - the process that reads devices: what it tells, also when the driver hangs, and what
 * there is of it in a host. Fakes by script stand for the driver; a file that a line of a script
 * waits for makes things happen.
 */
#include "monitors.h"
#include "rest.h"
#include "scripted.h"
#include "snapshot.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- what it tells ---- */

T_CASE(names)
{
    T_TEXT(gpud_device_kind_name(GPUD_DEVICE_MIG), "MIG");
    T_TEXT(gpud_device_kind_name(0), "?");
    T_TEXT(gpud_device_kind_name(GPUD_DEVICE_KIND_COUNT), "?");
    T_TEXT(gpud_driver_name(GPUD_DRIVER_NOT_LOADED), "NOT_LOADED");
    T_TEXT(gpud_driver_name(GPUD_DRIVER_COUNT), "?");
    T_TEXT(gpud_driver_text(GPUD_DRIVER_NONE), "no NVIDIA driver library is installed");
    T_TEXT(gpud_driver_text(GPUD_DRIVER_COUNT), "?");
    T_TEXT(gpud_health_name(GPUD_HEALTH_QUARANTINED), "QUARANTINED");
    T_TEXT(gpud_health_name(GPUD_HEALTH_COUNT), "?");
}

T_CASE(devices_and_readings)
{
    struct gpud_device_info *rows;
    gpud_monitor *m;
    uint64_t start;

    t_init(NULL, t_no_work, NULL);
    start = t_now();
    m = t_monitor_open(4, NULL);
    rows = t_monitor_rows(m, 4, 0, T_PATIENCE);
    for (int i = 0; i < 4; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "fake:%d", i);
        T_TEXT(rows[i].name, name);
        T_EQ(rows[i].struct_size, sizeof(rows[i]));
        T_EQ(rows[i].kind, GPUD_DEVICE_FAKE);
        T_EQ(rows[i].index, i);
        T_CHECK(rows[i].uuid[0]);
        for (int k = 0; k < i; k++)
            T_CHECK(strcmp(rows[i].uuid, rows[k].uuid) != 0);
        T_EQ(rows[i].health, GPUD_HEALTH_HEALTHY);
        T_CMP(rows[i].since, >=, start);
        T_CMP(rows[i].sampled_at, >=, start);
        T_CMP(rows[i].sampled_at, <=, t_now());
        T_CMP(rows[i].memory_total, >, 0);
        T_EQ(rows[i].memory_ours, 0);
        T_EQ(rows[i].slots, 0);
    }
    T_EQ(t_monitor_driver(m, 0).state, GPUD_DRIVER_OK);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_monitor_close(&m)); /* NULL is fine */
    T_OK(gpud_monitor_close(NULL));
    T_OK(gpud_fini());
}

/* Nothing is read that is young enough; what is too old is read anew. */
T_CASE(readings_have_an_age)
{
    uint64_t first, start;
    gpud_monitor *m;

    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(1, NULL);
    first = t_monitor_rows(m, 1, GPUD_NEVER, T_PATIENCE)->sampled_at;
    T_CMP(first, >, 0);
    T_EQ(t_monitor_rows(m, 1, GPUD_NEVER, T_PATIENCE)->sampled_at, first);
    T_EQ(t_monitor_rows(m, 1, T_S(3600), T_PATIENCE)->sampled_at, first);
    start = t_now();
    T_CMP(t_monitor_rows(m, 1, 0, T_PATIENCE)->sampled_at, >=, start);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

static int is_quarantined(void *m)
{
    const struct gpud_device_info *rows = t_monitor_rows(m, 2, GPUD_NEVER, 0);

    return rows[0].health == GPUD_HEALTH_QUARANTINED && rows[1].health == GPUD_HEALTH_QUARANTINED;
}

/* It runs no canary, so no reading clears a fault that asks for a reset, whatever the driver says.
 * */
T_CASE(looker_clears_no_xid)
{
    gpud_monitor *m;

    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(2, "when go gpu 0 xid 95\nwhen go gpu 1 xid 48\n");
    (void)t_monitor_rows(m, 2, 0, T_PATIENCE);
    t_trigger("go");
    t_wait_until("both are quarantined", is_quarantined, m);
    for (unsigned i = 0; i < 3; i++) {
        const struct gpud_device_info *rows = t_monitor_rows(m, 2, 0, T_PATIENCE);
        for (unsigned k = 0; k < 2; k++) {
            T_EQ(rows[k].health, GPUD_HEALTH_QUARANTINED);
            T_CHECK(strstr(rows[k].evidence, "no canary was run"));
            T_EQ(rows[k].recovery, GPUD_RECOVERY_NONE);
        }
    }
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

/* Without a wait nothing is waited for, and what is asked for comes later. */
T_CASE(reading_without_waiting)
{
    struct gpud_device_info row = GPUD_DEVICE_INFO_INIT;
    uint64_t start = t_now();
    gpud_monitor *m;
    int n;

    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(1, NULL);
    while ((n = gpud_monitor_read(m, &row, 1, GPUD_NEVER, 0)) == 0 || !row.sampled_at) {
        T_CMP(n, >=, 0);
        T_CMP(t_now() - start, <, T_PATIENCE);
    }
    T_EQ(n, 1);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

T_CASE(rows_of_other_lengths)
{
    struct {
        struct gpud_device_info info;
        char more[64];
    } longer[2];
    struct gpud_device_info rows[3];
    gpud_monitor *m;

    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(3, NULL);
    memset(rows, 0x55, sizeof(rows));
    rows[0].struct_size = sizeof(rows[0]);
    T_EQ(gpud_monitor_read(m, rows, 2, 0, T_PATIENCE), 3); /* more than there is room for */
    T_TEXT(rows[1].name, "fake:1");
    T_EQ(rows[2].struct_size, 0x55555555);
    T_EQ(gpud_monitor_read(m, NULL, 0, GPUD_NEVER, 0), 3);

    memset(longer, 0x55, sizeof(longer));
    longer[0].info.struct_size = sizeof(longer[0]);
    T_EQ(gpud_monitor_read(m, &longer[0].info, 2, GPUD_NEVER, 0), 3);
    T_TEXT(longer[1].info.name, "fake:1");
    T_EQ(longer[1].info.struct_size, sizeof(longer[0]));
    T_EQ(longer[1].more[63], 0);

    T_CODE(gpud_monitor_read(m, NULL, 1, 0, 0), EINVAL);
    rows[0].struct_size = 0;
    T_CODE(gpud_monitor_read(m, rows, 1, 0, 0), ESTRUCT);
    rows[0].struct_size = 1 << 20;
    T_CODE(gpud_monitor_read(m, rows, 1, 0, 0), ESTRUCT);
    T_CODE(gpud_monitor_read(NULL, rows, 1, 0, 0), EINVAL);
    T_CODE(gpud_monitor_driver(NULL, NULL, 0), EINVAL);
    T_CODE(gpud_monitor_driver(m, NULL, 0), EINVAL);
    T_CODE(gpud_monitor_driver(m, &(struct gpud_driver_info){ .struct_size = 4 }, 0), ESTRUCT);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

/* What is no entry for a monitor is refused, with its words; nothing is left. */
T_CASE(bad_entries)
{
    static const char *const bad[] = {
        "",         "cpu:1", "0",       "gpu:0",         "GPU-1", "fake:0",        "fake:257",
        "fake:1/2", "all/2", "all,all", "fake:1,fake:1", "fakes", "fake:1,script="
    };
    gpud_monitor *m = NULL;

    for (size_t i = 0; i < T_LENGTH(bad); i++) {
        struct gpud_error e = GPUD_ERROR_INIT;

        if (gpud_monitor_open(&m, bad[i], &e) != GPUD_EDEVICE || m || e.code != GPUD_EDEVICE ||
            !e.text[0])
            T_FAIL("\"%s\": %s", bad[i], e.text);
    }
    T_CODE(gpud_monitor_open(NULL, NULL, NULL), EINVAL);
}

static void refused(const char *script, const char *why)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_monitor *m = NULL;
    char devices[300];

    (void)snprintf(devices, sizeof(devices), "fake:2,script=%s", script);
    T_CODE(gpud_monitor_open(&m, devices, &e), EDEVICE);
    T_CHECK(!m);
    if (!strstr(e.text, why))
        T_FAIL("%s: \"%s\" does not say \"%s\"", script, e.text, why);
}

T_CASE(bad_scripts)
{
    static char text[65 << 10];
    FILE *out;

    refused("nothing", strerror(ENOENT));
    refused(".", "is not a regular file");
    T_EQ(mkfifo("pipe", 0600), 0);
    refused("pipe", "is not a regular file"); /* and is not waited for */
    refused("/dev/zero", "is not a regular file");
    t_write_script("wrong", "gpu 0 lost\nnonsense\n");
    refused("wrong", "line 2");
    memset(text, '#', sizeof(text) - 1);
    t_write_script("long", text);
    refused("long", "64 KiB");
    text[64 << 10] = 0;
    t_write_script("long", text); /* just as long as can be */
    out = fopen("bytes", "we");
    T_CHECK(out && fwrite("gpu 0 lost\0\n", 1, 12, out) == 12 && fclose(out) == 0);
    refused("bytes", "zero byte");
    gpud_monitor *m = NULL;
    T_OK(gpud_monitor_open(&m, "fake:1,script=long", NULL));
    T_OK(gpud_monitor_close(&m));
}

/* Without a driver that is told at once, in words; and it is no error. */
T_CASE(no_driver)
{
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
    struct gpud_driver_info info;
    gpud_monitor *m = NULL;
    uint64_t start;

    if (nvml) {
        (void)dlclose(nvml);
        t_skip("this machine has a driver");
    }
    t_init(NULL, t_no_work, NULL);
    start = t_now();
    T_OK(gpud_monitor_open(&m, NULL, NULL));
    info = t_monitor_driver(m, T_PATIENCE);
    T_CMP(t_now() - start, <, T_AT_ONCE);
    printf("told after %.1f ms: %s\n", (double)(t_now() - start) / 1e6, info.text);
    T_EQ(info.state, GPUD_DRIVER_NONE);
    T_CHECK(info.text[0]);
    T_EQ(info.gpus, 0);
    (void)t_monitor_rows(m, 0, 0, T_PATIENCE); /* it looks again */
    T_CMP(t_now() - start, <, 2 * T_AT_ONCE);
    T_EQ(t_monitor_driver(m, 0).state, GPUD_DRIVER_NONE);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

/* ---- what happens to devices ---- */

static int has_an_xid(void *m)
{
    return t_monitor_rows(m, 2, GPUD_NEVER, 0)[1].xids > 0;
}

T_CASE(incident_reaches_the_row)
{
    struct gpud_device_info *rows;
    gpud_monitor *m;
    uint64_t start;

    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(2, "when go gpu 1 xid 79\n");
    rows = t_monitor_rows(m, 2, 0, T_PATIENCE);
    T_EQ(rows[1].last_xid, 0);
    T_EQ(rows[1].health, GPUD_HEALTH_HEALTHY);
    start = t_now();
    t_trigger("go");
    t_wait_until("the XID is in the row", has_an_xid, m);
    rows = t_monitor_rows(m, 2, GPUD_NEVER, 0);
    T_EQ(rows[1].last_xid, 79);
    T_EQ(rows[1].xids, 1);
    T_CMP(rows[1].last_xid_at, >=, start);
    T_CMP(rows[1].last_xid_at, <=, t_now());
    T_CHECK(rows[1].health != GPUD_HEALTH_HEALTHY);
    T_CMP(rows[1].since, >=, start);
    T_CHECK(rows[1].evidence[0]);
    T_EQ(rows[0].health, GPUD_HEALTH_HEALTHY);
    T_EQ(rows[0].xids, 0);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

static int instance_has_an_xid(void *m)
{
    return t_monitor_rows(m, 4, GPUD_NEVER, 0)[2].xids > 0;
}

/* What takes a physical GPU off the bus concerns all that is on it, though one instance was named.
 */
T_CASE(incident_of_an_instance_concerns_its_gpu)
{
    struct gpud_device_info *rows;
    gpud_monitor *m;

    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(2, "gpu 1 mig=1g.10gb*2\nwhen go gpu 1:0 xid 79\n");
    (void)t_monitor_rows(m, 4, 0, T_PATIENCE);
    t_trigger("go");
    t_wait_until("the XID is in the row", instance_has_an_xid, m);
    rows = t_monitor_rows(m, 4, GPUD_NEVER, 0);
    T_EQ(rows[0].health, GPUD_HEALTH_HEALTHY);
    for (unsigned i = 1; i < 4; i++)
        T_EQ(rows[i].health, GPUD_HEALTH_LOST);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

enum { INCIDENTS = 1000 };

static int all_have_come(void *m)
{
    return t_monitor_rows(m, 1, 0, T_PATIENCE)->xids == INCIDENTS;
}

/* A host that does not listen loses none: they wait until there is room, and readings with them. */
T_CASE(incidents_are_not_lost)
{
    static char script[INCIDENTS * 32];
    gpud_monitor *m;

    for (size_t i = 0, at = 0; i < INCIDENTS; i++)
        at += (size_t)snprintf(script + at, sizeof(script) - at, "at 1ms gpu 0 xid 31\n");
    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(1, script);
    while (t_monitor_driver(m, T_PATIENCE).state != GPUD_DRIVER_OK)
        ;
    t_pass(T_MS(100)); /* time in which a host does not listen is under test */
    t_wait_until("all have come", all_have_come, m);
    T_EQ(t_monitor_rows(m, 1, 0, T_PATIENCE)->xids, INCIDENTS);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

/* ---- it hangs ---- */

/* A call that never returns: reads return in their time with what there is, the driver is told to
 * hang, and nobody waits for it in the end. */
static void hangs(const char *script, int rows)
{
    const uint64_t wait = T_MS(50);
    struct gpud_driver_info info;
    gpud_monitor *m;
    uint64_t start;

    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(2, script);
    if (rows)
        t_monitor_ask_in_vain(m, rows);
    start = t_now();
    (void)t_monitor_rows(m, rows, 0, wait);
    T_CMP(t_now() - start, >=, wait);
    T_CMP(t_now() - start, <, wait + T_AT_ONCE);
    while ((info = t_monitor_driver(m, T_MS(10))).state != GPUD_DRIVER_HUNG)
        T_CMP(t_now() - start, <, T_PATIENCE);
    T_CHECK(strstr(info.text, "not replied"));
    t_monitor_close_quickly(&m);
    t_fini_quickly();
    T_CHECK(t_no_monitor(NULL));
}

T_CASE(hangs_in_open)
{
    hangs("driver hang open\n", 0);
}

T_CASE(hangs_in_enumerate)
{
    hangs("gpu 0 hang enumerate\n", 0);
}

T_CASE(hangs_in_sample)
{
    hangs("gpu 0 hang sample\n", 2);
}

/* A wait for incidents that never ends is as it should be. */
T_CASE(hangs_in_await)
{
    gpud_monitor *m;

    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(2, "driver hang await\n");
    T_EQ(t_monitor_rows(m, 2, 0, T_PATIENCE)[1].health, GPUD_HEALTH_HEALTHY);
    T_EQ(t_monitor_driver(m, 0).state, GPUD_DRIVER_OK);
    t_monitor_close_quickly(&m);
    t_fini_quickly();
    T_CHECK(t_no_monitor(NULL));
}

static int is_unknown(void *m)
{
    return t_monitor_rows(m, 2, 0, T_MS(20))[1].health == GPUD_HEALTH_UNKNOWN;
}

/* A GPU that stops answering keeps its last reading, and is unknown after a second, not healthy. */
T_CASE(silent_device_is_unknown)
{
    struct gpud_device_info *rows;
    uint64_t sampled, start;
    gpud_monitor *m;

    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(2, "when go gpu 1 hang sample\n");
    sampled = t_monitor_rows(m, 2, 0, T_PATIENCE)[1].sampled_at;
    t_trigger("go");
    start = t_now();
    t_wait_until("it is unknown", is_unknown, m);
    T_CMP(t_now() - start, >=, T_MS(900));
    rows = t_monitor_rows(m, 2, GPUD_NEVER, 0);
    T_CMP(rows[1].sampled_at, <, rows[1].since);
    T_CMP(rows[1].sampled_at, >=, sampled);
    T_CMP(rows[1].since, >=, start + T_MS(900));
    T_CHECK(rows[1].evidence[0]);
    T_CMP(rows[1].memory_total, >, 0);
    T_EQ(t_monitor_driver(m, 0).state, GPUD_DRIVER_HUNG);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

/* A dispatcher's tasks do not feel a monitor that hangs, on the same spawner. */
T_CASE(hung_monitor_delays_no_task)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    gpud_monitor *m;

    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(1, "driver hang open\n");
    (void)t_monitor_rows(m, 0, 0, T_MS(10));
    d = T_CREATE(.devices = "cpu:2");
    for (uint64_t i = 0; i < 50; i++)
        T_SUBMIT(d, .tag = 0);
    t_collect(d, &log, 50);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 50);
    t_destroy(&d, &log);
    (void)t_the_monitor(); /* lives on */
    T_CODE(gpud_fini(), EBUSY);
    t_monitor_close_quickly(&m);
    t_fini_quickly();
}

/* ---- in its host ---- */

/* C19: what docs/explain/embedding.md says there is of each. */
T_CASE(counted)
{
    struct t_counts before, now;
    gpud_monitor *m;

    for (int with_init = 1; with_init >= 0; with_init--) {
        if (with_init)
            t_init(NULL, t_no_work, NULL);
        before = t_counts_take();
        m = t_monitor_open(2, NULL);
        (void)t_monitor_rows(m, 2, 0, T_PATIENCE);
        now = t_counts_take();
        T_EQ(now.files - before.files, with_init ? 2 : 4);
        T_EQ(now.threads, before.threads);
        T_EQ(now.children, before.children);
        T_EQ(now.mappings, before.mappings);
        T_OK(gpud_monitor_close(&m));
        T_OK(gpud_fini());
    }
}

/* C20: nothing is asked, nothing happens: nobody wakes up. */
T_CASE(idle)
{
    gpud_monitor *m;

    t_init(NULL, t_no_work, NULL);
    m = t_monitor_open(4, NULL);
    (void)t_monitor_rows(m, 4, 0, T_PATIENCE);
    t_expect_rest(10, NULL, NULL);
    (void)t_monitor_rows(m, 4, 0, T_PATIENCE);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}
