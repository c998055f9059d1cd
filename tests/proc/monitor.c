/* SPDX-License-Identifier: MIT */
/*
 * monitor.c - the process that reads devices: what it tells, and that nobody is hurt when it hangs, dies, or is left
 * alone.  Fakes by script stand for the driver; a file that a line of a script waits for makes things happen.
 */
#include "fixture.h"
#include "rest.h"
#include "snapshot.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 8 };
enum { READY, GATE };

static const uint64_t at_once = T_SANITIZED ? T_S(3) : T_MS(1000); /* far below any patience of ours */

static int process(gpud_task *t, void *state)
{
    (void)state;
    if (gpud_task_tag(t)) {
        t_word_add(READY);
        t_word_wait(GATE, 1);
    }
    return 0;
}

/* ---- steps ---- */

static void write_file(const char *name, const char *text)
{
    FILE *out = fopen(name, "we");

    T_CHECK(out);
    T_EQ(fwrite(text, 1, strlen(text), out), strlen(text));
    T_EQ(fclose(out), 0);
}

/* A monitor of fakes to which happens what `script` says; NULL = nothing. */
static gpud_monitor *open_fakes(unsigned n, const char *script)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_monitor *m = NULL;
    char devices[64];

    if (script)
        write_file("script", script);
    (void)snprintf(devices, sizeof(devices), "fake:%u%s", n, script ? ",script=script" : "");
    if (gpud_monitor_open(&m, devices, &e))
        T_FAIL("%s: %s", gpud_error_name(e.code), e.text);
    return m;
}

static struct gpud_device_info *rows_of(gpud_monitor *m, int wanted, uint64_t max_age, uint64_t wait)
{
    static struct gpud_device_info rows[ROWS];

    rows[0].struct_size = sizeof(rows[0]);
    T_EQ(gpud_monitor_read(m, rows, ROWS, max_age, wait), wanted);
    return rows;
}

static struct gpud_driver_info driver_of(gpud_monitor *m, uint64_t wait)
{
    struct gpud_driver_info info = GPUD_DRIVER_INFO_INIT;

    T_OK(gpud_monitor_driver(m, &info, wait));
    T_EQ(info.struct_size, sizeof(info));
    return info;
}

/* Asks for readings that will not come. */
static void ask_in_vain(gpud_monitor *m, int rows)
{
    (void)driver_of(m, T_PATIENCE); /* the devices are known then */
    (void)rows_of(m, rows, 0, T_MS(10));
}

/* The monitor processes of this case, wherever they descend from. */
static size_t monitors(struct t_proc *ret_first)
{
    struct t_procs all;
    char token[128];
    size_t count = 0;

    (void)snprintf(token, sizeof(token), "T_TOKEN=%s", getenv("T_TOKEN"));
    all = t_procs_with_env(token);
    for (size_t i = 0; i < all.count; i++)
        if (!strcmp(all.list[i].comm, "gpud-monitor")) {
            if (ret_first && !count)
                *ret_first = all.list[i];
            count++;
        }
    t_procs_free(&all);
    return count;
}

static int one_monitor(void *ret_p)
{
    return monitors(ret_p) == 1;
}

/* It may have been asked for only, so far, and have its name later. */
static struct t_proc the_monitor(void)
{
    struct t_proc p;

    t_wait_until("there is one monitor", one_monitor, &p);
    return p;
}

static int no_monitor(void *unused)
{
    (void)unused;
    return monitors(NULL) == 0;
}

static void close_quickly(gpud_monitor **m)
{
    uint64_t start = t_now();

    T_OK(gpud_monitor_close(m));
    T_CHECK(!*m);
    T_CMP(t_now() - start, <, at_once);
}

static void fini_quickly(void)
{
    uint64_t start = t_now();

    T_OK(gpud_fini());
    T_CMP(t_now() - start, <, at_once);
}

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

    t_init(NULL, process, NULL);
    start = t_now();
    m = open_fakes(4, NULL);
    rows = rows_of(m, 4, 0, T_PATIENCE);
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
    T_EQ(driver_of(m, 0).state, GPUD_DRIVER_OK);
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

    t_init(NULL, process, NULL);
    m = open_fakes(1, NULL);
    first = rows_of(m, 1, GPUD_NEVER, T_PATIENCE)->sampled_at;
    T_CMP(first, >, 0);
    T_EQ(rows_of(m, 1, GPUD_NEVER, T_PATIENCE)->sampled_at, first);
    T_EQ(rows_of(m, 1, T_S(3600), T_PATIENCE)->sampled_at, first);
    start = t_now();
    T_CMP(rows_of(m, 1, 0, T_PATIENCE)->sampled_at, >=, start);
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

    t_init(NULL, process, NULL);
    m = open_fakes(1, NULL);
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

    t_init(NULL, process, NULL);
    m = open_fakes(3, NULL);
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
    T_CODE(gpud_monitor_read(m, rows, 1, 0, 0), EINVAL);
    rows[0].struct_size = 1 << 20;
    T_CODE(gpud_monitor_read(m, rows, 1, 0, 0), EINVAL);
    T_CODE(gpud_monitor_read(NULL, rows, 1, 0, 0), EINVAL);
    T_CODE(gpud_monitor_driver(NULL, NULL, 0), EINVAL);
    T_CODE(gpud_monitor_driver(m, NULL, 0), EINVAL);
    T_CODE(gpud_monitor_driver(m, &(struct gpud_driver_info){ .struct_size = 4 }, 0), EINVAL);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

/* What is no entry for a monitor is refused, with its words; nothing is left. */
T_CASE(bad_entries)
{
    static const char *const bad[] = { "", "cpu:1", "0", "gpu:0", "GPU-1", "fake:0", "fake:257", "fake:1/2", "all/2", "all,all", "fake:1,fake:1", "fakes", "fake:1,script=" };
    gpud_monitor *m = NULL;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct gpud_error e = GPUD_ERROR_INIT;

        if (gpud_monitor_open(&m, bad[i], &e) != GPUD_EDEVICE || m || e.code != GPUD_EDEVICE || !e.text[0])
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
    refused(".", "no regular file");
    T_EQ(mkfifo("pipe", 0600), 0);
    refused("pipe", "no regular file"); /* and is not waited for */
    refused("/dev/zero", "no regular file");
    write_file("wrong", "gpu 0 lost\nnonsense\n");
    refused("wrong", "line 2");
    memset(text, '#', sizeof(text) - 1);
    write_file("long", text);
    refused("long", "64 KiB");
    text[64 << 10] = 0;
    write_file("long", text); /* just as long as can be */
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
    t_init(NULL, process, NULL);
    start = t_now();
    T_OK(gpud_monitor_open(&m, NULL, NULL));
    info = driver_of(m, T_PATIENCE);
    T_CMP(t_now() - start, <, at_once);
    printf("told after %.1f ms: %s\n", (double)(t_now() - start) / 1e6, info.text);
    T_EQ(info.state, GPUD_DRIVER_NONE);
    T_CHECK(info.text[0]);
    T_EQ(info.gpus, 0);
    (void)rows_of(m, 0, 0, T_PATIENCE); /* it looks again */
    T_CMP(t_now() - start, <, 2 * at_once);
    T_EQ(driver_of(m, 0).state, GPUD_DRIVER_NONE);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

/* ---- what happens to devices ---- */

static int has_an_xid(void *m)
{
    return rows_of(m, 2, GPUD_NEVER, 0)[1].xids > 0;
}

T_CASE(incident_reaches_the_row)
{
    struct gpud_device_info *rows;
    gpud_monitor *m;
    uint64_t start;

    t_init(NULL, process, NULL);
    m = open_fakes(2, "when go gpu 1 xid 79\n");
    rows = rows_of(m, 2, 0, T_PATIENCE);
    T_EQ(rows[1].last_xid, 0);
    T_EQ(rows[1].health, GPUD_HEALTH_HEALTHY);
    start = t_now();
    write_file("go", "");
    t_wait_until("the XID is in the row", has_an_xid, m);
    rows = rows_of(m, 2, GPUD_NEVER, 0);
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
    return rows_of(m, 4, GPUD_NEVER, 0)[2].xids > 0;
}

/* What takes a physical GPU off the bus concerns all that is on it, though one instance was named. */
T_CASE(incident_of_an_instance_concerns_its_gpu)
{
    struct gpud_device_info *rows;
    gpud_monitor *m;

    t_init(NULL, process, NULL);
    m = open_fakes(2, "gpu 1 mig=1g.10gb*2\nwhen go gpu 1:0 xid 79\n");
    (void)rows_of(m, 4, 0, T_PATIENCE);
    write_file("go", "");
    t_wait_until("the XID is in the row", instance_has_an_xid, m);
    rows = rows_of(m, 4, GPUD_NEVER, 0);
    T_EQ(rows[0].health, GPUD_HEALTH_HEALTHY);
    for (unsigned i = 1; i < 4; i++)
        T_EQ(rows[i].health, GPUD_HEALTH_LOST);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

enum { INCIDENTS = 1000 };

static int all_have_come(void *m)
{
    return rows_of(m, 1, 0, T_PATIENCE)->xids == INCIDENTS;
}

/* A host that does not listen loses none: they wait until there is room, and readings with them. */
T_CASE(incidents_are_not_lost)
{
    static char script[INCIDENTS * 32];
    gpud_monitor *m;

    for (size_t i = 0, at = 0; i < INCIDENTS; i++)
        at += (size_t)snprintf(script + at, sizeof(script) - at, "at 1ms gpu 0 xid 31\n");
    t_init(NULL, process, NULL);
    m = open_fakes(1, script);
    while (driver_of(m, T_PATIENCE).state != GPUD_DRIVER_OK)
        ;
    t_pass(T_MS(100)); /* time in which a host does not listen is under test */
    t_wait_until("all have come", all_have_come, m);
    T_EQ(rows_of(m, 1, 0, T_PATIENCE)->xids, INCIDENTS);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

/* ---- it hangs ---- */

/* A call that never returns: reads return in their time with what there is, the driver is told to hang, and nobody
 * waits for it in the end. */
static void hangs(const char *script, int rows)
{
    const uint64_t wait = T_MS(50);
    struct gpud_driver_info info;
    gpud_monitor *m;
    uint64_t start;

    t_init(NULL, process, NULL);
    m = open_fakes(2, script);
    if (rows)
        ask_in_vain(m, rows);
    start = t_now();
    (void)rows_of(m, rows, 0, wait);
    T_CMP(t_now() - start, >=, wait);
    T_CMP(t_now() - start, <, wait + at_once);
    while ((info = driver_of(m, T_MS(10))).state != GPUD_DRIVER_HUNG)
        T_CMP(t_now() - start, <, T_PATIENCE);
    T_CHECK(strstr(info.text, "not answered"));
    close_quickly(&m);
    fini_quickly();
    T_CHECK(no_monitor(NULL));
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

    t_init(NULL, process, NULL);
    m = open_fakes(2, "driver hang await\n");
    T_EQ(rows_of(m, 2, 0, T_PATIENCE)[1].health, GPUD_HEALTH_HEALTHY);
    T_EQ(driver_of(m, 0).state, GPUD_DRIVER_OK);
    close_quickly(&m);
    fini_quickly();
    T_CHECK(no_monitor(NULL));
}

static int is_unknown(void *m)
{
    return rows_of(m, 2, 0, T_MS(20))[1].health == GPUD_HEALTH_UNKNOWN;
}

/* A GPU that stops answering keeps its last reading, and is unknown after a second, not healthy. */
T_CASE(silent_device_is_unknown)
{
    struct gpud_device_info *rows;
    uint64_t sampled, start;
    gpud_monitor *m;

    t_init(NULL, process, NULL);
    m = open_fakes(2, "when go gpu 1 hang sample\n");
    sampled = rows_of(m, 2, 0, T_PATIENCE)[1].sampled_at;
    write_file("go", "");
    start = t_now();
    t_wait_until("it is unknown", is_unknown, m);
    T_CMP(t_now() - start, >=, T_MS(900));
    rows = rows_of(m, 2, GPUD_NEVER, 0);
    T_CMP(rows[1].sampled_at, <, rows[1].since);
    T_CMP(rows[1].sampled_at, >=, sampled);
    T_CMP(rows[1].since, >=, start + T_MS(900));
    T_CHECK(rows[1].evidence[0]);
    T_CMP(rows[1].memory_total, >, 0);
    T_EQ(driver_of(m, 0).state, GPUD_DRIVER_HUNG);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

/* A dispatcher's tasks do not feel a monitor that hangs, on the same spawner. */
T_CASE(hung_monitor_delays_no_task)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    gpud_monitor *m;

    t_init(NULL, process, NULL);
    m = open_fakes(1, "driver hang open\n");
    (void)rows_of(m, 0, 0, T_MS(10));
    d = t_create(T_OPTIONS(.devices = "cpu:2"));
    for (uint64_t i = 0; i < 50; i++)
        (void)t_submit(d, T_TASK(.tag = 0));
    t_collect(d, &log, 50);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 50);
    t_destroy(&d, &log);
    (void)the_monitor(); /* lives on */
    T_CODE(gpud_fini(), EBUSY);
    close_quickly(&m);
    fini_quickly();
}

/* ---- it cannot be killed ---- */

/* What stands for D state here: this process traces it, so once it is dead the spawner cannot reap it, and has a
 * child that SIGKILL does not rid it of, until we let go. */
static void hold(const struct t_proc *p)
{
    if (ptrace(PTRACE_SEIZE, p->pid, NULL, NULL))
        t_skip("no process can be traced here: %s", strerror(errno));
}

static void let_go(const struct t_proc *p)
{
    T_EQ(waitpid(p->pid, NULL, __WALL), p->pid);
}

/* Neither close nor gpud_fini waits for it for longer than a moment. */
static void cannot_be_killed(void)
{
    gpud_monitor *m = open_fakes(1, "gpu 0 hang sample\n");
    struct t_proc p;

    ask_in_vain(m, 1);
    p = the_monitor();
    hold(&p);
    close_quickly(&m);
    fini_quickly();
    let_go(&p);
}

T_CASE(unkillable_monitor_delays_nobody)
{
    t_init(NULL, process, NULL);
    cannot_be_killed();
}

T_CASE(unkillable_monitor_delays_nobody_without_init)
{
    cannot_be_killed();
}

/* ... nor does the slot whose keeper has died: what that has left is swept without it. */
T_CASE(unkillable_monitor_does_not_hold_up_sweeps)
{
    struct t_proc p, worker, keeper;
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    gpud_monitor *m;

    t_init(NULL, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .backoff = T_MS(5)));
    m = open_fakes(1, NULL);
    (void)rows_of(m, 1, 0, T_PATIENCE);
    p = the_monitor();
    hold(&p);
    T_OK(gpud_monitor_close(&m));
    t_wait_ended(&p); /* a zombie that nobody reaps */
    t_wait_ready(d, 1);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    T_EQ(kill(keeper.pid, SIGKILL), 0);
    t_wait_ended(&worker);
    (void)t_submit(d, T_TASK(.tag = 0));
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, 0, SUCCESS);
    t_destroy(&d, &log);
    fini_quickly();
    let_go(&p);
}

/* A live one is spared when the spawner sweeps. */
T_CASE(sweeping_spares_the_monitor)
{
    struct t_proc p, worker, keeper;
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    gpud_monitor *m;

    t_init(NULL, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .backoff = T_MS(5)));
    m = open_fakes(1, NULL);
    (void)rows_of(m, 1, 0, T_PATIENCE);
    p = the_monitor();
    for (uint64_t i = 0; i < 3; i++) {
        t_wait_ready(d, 1);
        worker = t_worker(d, 0);
        keeper = t_keeper_of(&worker);
        T_EQ(kill(keeper.pid, SIGKILL), 0);
        t_wait_ended(&worker);
        (void)t_submit(d, T_TASK(.tag = 0));
        t_collect(d, &log, i + 1);
    }
    T_EQ(the_monitor().pid, p.pid);
    (void)rows_of(m, 1, 0, T_PATIENCE);
    t_destroy(&d, &log);
    (void)rows_of(m, 1, 0, T_PATIENCE);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

/* ---- NVML, through the fake library ---- */

/* It is loaded before gpud_init, so that what is forked then finds it by its soname. */
static gpud_monitor *open_nvml(const char *script)
{
    gpud_monitor *m = NULL;
    void *library;

    write_file("script", script);
    T_EQ(setenv("FAKE_SCRIPT", "script", 1), 0);
    library = dlopen(T_PROGRAMS "/libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        T_FAIL("%s", dlerror());
    t_init(NULL, process, NULL);
    T_EQ(unsetenv("FAKE_SCRIPT"), 0);
    T_EQ(dlclose(library), 0);
    T_OK(gpud_monitor_open(&m, "all", NULL));
    return m;
}

static void end_nvml(gpud_monitor **m)
{
    close_quickly(m);
    fini_quickly();
    T_CHECK(no_monitor(NULL));
}

/* NVML tells of events after registration only, which comes a moment after the list of devices: an XID of that moment
 * may be missed, a later one is heard. */
static void provoke_an_xid(gpud_monitor *m)
{
    uint64_t start = t_now();

    write_file("go", "");
    while (!has_an_xid(m) && t_now() - start < T_S(1))
        (void)rows_of(m, 2, 0, T_PATIENCE);
    write_file("on", "");
    t_wait_until("an XID is in the row", has_an_xid, m);
}

T_CASE(nvml_devices_and_incidents)
{
    gpud_monitor *m = open_nvml("driver version=570.86.15 cuda=12.8\ngpu 0 memory=8GiB used=1GiB model=\"A small one\"\nwhen go gpu 1 xid 79\nwhen on gpu 1 xid 79\n");
    struct gpud_device_info *rows = rows_of(m, 2, 0, T_PATIENCE);
    struct gpud_driver_info driver = driver_of(m, 0);

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
    rows = rows_of(m, 2, GPUD_NEVER, 0);
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
        (void)rows_of(m, rows, 0, T_PATIENCE);
        write_file("go", "");
    }
    start = t_now();
    (void)rows_of(m, rows, 0, T_MS(50));
    while (driver_of(m, T_MS(10)).state != GPUD_DRIVER_HUNG) {
        (void)rows_of(m, rows, 0, T_MS(10));
        T_CMP(t_now() - start, <, T_PATIENCE);
    }
    if (rows)
        T_EQ(rows_of(m, rows, 0, 0)->health, GPUD_HEALTH_UNKNOWN);
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
    nvml_hangs("gpus 1\nwhen go gpu 0 hang sample\n", 1); /* before, it would hang in the list: how much memory has it? */
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

    T_EQ(driver_of(m, T_PATIENCE).state, GPUD_DRIVER_NOT_LOADED);
    (void)rows_of(m, 0, 0, T_PATIENCE);
    (void)rows_of(m, 0, 0, T_PATIENCE);
    write_file("loaded", "");
    t_wait_until("the GPU is there", is_there, m);
    T_EQ(driver_of(m, 0).state, GPUD_DRIVER_OK);
    end_nvml(&m);
}

/* C20: with NVML, too, nobody wakes up. */
T_CASE(nvml_idle)
{
    gpud_monitor *m = open_nvml("gpus 3\n");

    (void)rows_of(m, 3, 0, T_PATIENCE);
    t_expect_rest(10, NULL, NULL);
    end_nvml(&m);
}

/* ---- somebody dies ---- */

static int is_gone(void *m)
{
    struct gpud_device_info row = GPUD_DEVICE_INFO_INIT;

    return gpud_monitor_read(m, &row, 1, 0, T_MS(5)) == GPUD_ESPAWNER;
}

/* The monitor is killed: that is told; another one is well. */
T_CASE(monitor_is_killed)
{
    struct t_proc p;
    gpud_monitor *m;

    t_init(NULL, process, NULL);
    m = open_fakes(1, NULL);
    (void)rows_of(m, 1, 0, T_PATIENCE);
    p = the_monitor();
    T_EQ(kill(p.pid, SIGKILL), 0);
    t_wait_until("its death is told", is_gone, m);
    T_EQ(driver_of(m, T_PATIENCE).state, GPUD_DRIVER_FAILED);
    T_OK(gpud_monitor_close(&m));
    m = open_fakes(1, NULL);
    (void)rows_of(m, 1, 0, T_PATIENCE);
    T_CHECK(the_monitor().pid != p.pid);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

/* The spawner is killed: its monitors go with it, and no other can be opened there. */
T_CASE(spawner_is_killed)
{
    struct t_proc p, spawner;
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_monitor *m, *other = NULL;

    t_init(NULL, process, NULL);
    m = open_fakes(1, "gpu 0 hang sample\n");
    ask_in_vain(m, 1);
    p = the_monitor();
    spawner = t_spawner();
    T_EQ(kill(spawner.pid, SIGKILL), 0);
    t_wait_ended(&p);
    t_wait_ended(&spawner); /* it closes its connections one by one: the monitor may end before the last one is closed */
    t_wait_until("its death is told", is_gone, m);
    T_CODE(gpud_monitor_open(&other, "fake:1", &e), ESPAWNER);
    T_CHECK(!other);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}

/* A host with monitors, one of which hangs; with gpud_init or, "bundled", without. */
T_PROGRAM(host)
{
    gpud_monitor *m, *hung;

    if (strcmp(argv[argc - 1], "bundled") != 0)
        t_init(NULL, process, NULL);
    m = open_fakes(1, NULL);
    (void)rows_of(m, 1, 0, T_PATIENCE);
    hung = open_fakes(1, "gpu 0 hang sample\n");
    ask_in_vain(hung, 1);
    if (!strcmp(argv[argc - 1], "sibling") && !fork()) {
        (void)t_word_add(READY);
        t_rest();
    }
    (void)t_word_add(READY);
    t_rest();
}

/* C11: the host is killed, or it and its spawners at the same instant: within a second all is gone.  A forked
 * sibling holds all the sockets, and changes nothing. */
static void host_dies(const char *how, int with_spawner)
{
    struct t_procs family;
    uint64_t start;
    size_t left;
    char mark[64];
    pid_t host;

    (void)snprintf(mark, sizeof(mark), "T_FAMILY=%d.%llx", (int)getpid(), (unsigned long long)t_now());
    host = t_program_start("host", how, mark);
    t_word_wait(READY, strcmp(how, "sibling") ? 1 : 2);
    T_EQ(monitors(NULL), 2);
    family = t_procs_with_env(mark);
    for (size_t i = 0; i < family.count && with_spawner; i++)
        if (!strcmp(family.list[i].comm, "gpud-spawner"))
            T_EQ(kill(family.list[i].pid, SIGKILL), 0);
    t_procs_free(&family);
    T_EQ(kill(host, SIGKILL), 0);
    T_EQ(waitpid(host, NULL, 0), host);
    start = t_now();
    while ((left = monitors(NULL)))
        if (t_now() - start > T_S(1))
            T_FAIL("%zu monitors live 1 s after their host", left);
    printf("gone after %.1f ms\n", (double)(t_now() - start) / 1e6);
    family = t_procs_with_env(mark);
    for (size_t i = 0; i < family.count; i++)
        (void)kill(family.list[i].pid, SIGKILL); /* the sibling */
    t_procs_free(&family);
}

T_CASE(host_is_killed)
{
    host_dies("init", 0);
}

T_CASE(host_and_spawner_are_killed)
{
    host_dies("init", 1);
}

T_CASE(host_with_sibling_is_killed)
{
    host_dies("sibling", 0);
}

T_CASE(host_with_bundled_spawners_is_killed)
{
    host_dies("bundled", 0);
}

T_CASE(host_and_bundled_spawners_are_killed)
{
    host_dies("bundled", 1);
}

/* ---- other hosts ---- */

static int two_monitors(void *unused)
{
    (void)unused;
    return monitors(NULL) == 2;
}

/* Without gpud_init the bundled program does it; after close nothing of it is left. */
T_CASE(without_init)
{
    gpud_monitor *m = open_fakes(2, NULL), *second = open_fakes(1, "driver hang open\n");

    (void)rows_of(m, 2, 0, T_PATIENCE);
    (void)rows_of(second, 0, 0, T_MS(10));
    t_wait_until("there are two", two_monitors, NULL);
    close_quickly(&second);
    T_EQ(monitors(NULL), 1);
    close_quickly(&m);
    T_CHECK(no_monitor(NULL));
}

/* A forked child is not the owner: EFORKED, close frees, the parent's goes on; the child may have one of its own. */
static void forked_child(void)
{
    struct gpud_device_info row = GPUD_DEVICE_INFO_INIT;
    struct gpud_driver_info info = GPUD_DRIVER_INFO_INIT;
    gpud_monitor *m = open_fakes(1, NULL);
    struct t_proc p;
    int status;
    pid_t pid;

    (void)rows_of(m, 1, 0, T_PATIENCE);
    p = the_monitor();
    pid = fork();
    if (!pid) {
        T_CODE(gpud_monitor_read(m, &row, 1, 0, 0), EFORKED);
        T_CODE(gpud_monitor_driver(m, &info, 0), EFORKED);
        T_OK(gpud_monitor_close(&m));
        T_CHECK(!m);
        m = open_fakes(1, NULL);
        (void)rows_of(m, 1, 0, T_PATIENCE);
        T_OK(gpud_monitor_close(&m));
        _exit(0);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(status, 0);
    (void)rows_of(m, 1, 0, T_PATIENCE);
    T_EQ(the_monitor().pid, p.pid);
    T_OK(gpud_monitor_close(&m));
}

T_CASE(forked_child_with_init)
{
    t_init(NULL, process, NULL);
    forked_child();
    T_OK(gpud_fini());
}

T_CASE(forked_child_without_init)
{
    forked_child();
}

/* A forked child that keeps copies of our sockets keeps no monitor alive. */
T_CASE(closed_while_a_child_holds_copies)
{
    gpud_monitor *m;
    pid_t pid;

    t_init(NULL, process, NULL);
    m = open_fakes(1, "gpu 0 hang sample\n");
    ask_in_vain(m, 1);
    pid = fork();
    if (!pid)
        t_rest();
    T_OK(gpud_monitor_close(&m));
    t_wait_until("the monitor is gone", no_monitor, NULL);
    T_EQ(kill(pid, SIGKILL), 0);
    T_EQ(waitpid(pid, NULL, 0), pid);
    T_OK(gpud_fini());
}

static int only_the_spawner(void *unused)
{
    struct t_procs below = t_procs_below(getpid());
    size_t count = below.count;

    (void)unused;
    t_procs_free(&below);
    return count == 1; /* zombies are counted, too */
}

/* C19: fifty monitors after each other leave nothing; the harness looks at the rest. */
T_CASE(fifty_after_each_other)
{
    t_init(NULL, process, NULL);
    for (int i = 0; i < 50; i++) {
        gpud_monitor *m = open_fakes(2, i % 5 ? NULL : "gpu 1 hang enumerate\n");

        if (i % 5)
            (void)rows_of(m, 2, 0, T_PATIENCE);
        T_OK(gpud_monitor_close(&m));
    }
    t_wait_until("nothing is left but the spawner", only_the_spawner, NULL);
    T_OK(gpud_fini());
}

/* One that cannot see the end of its socket, being stopped, is killed when its connection ends. */
T_CASE(stopped_monitor_is_killed)
{
    struct t_proc p;
    gpud_monitor *m;

    t_init(NULL, process, NULL);
    m = open_fakes(1, NULL);
    (void)rows_of(m, 1, 0, T_PATIENCE);
    p = the_monitor();
    T_EQ(kill(p.pid, SIGSTOP), 0);
    T_OK(gpud_monitor_close(&m));
    t_wait_ended(&p);
    T_OK(gpud_fini());
}

/* C19: what docs/embedding.md says there is of each. */
T_CASE(counted)
{
    struct t_counts before, now;
    gpud_monitor *m;

    for (int with_init = 1; with_init >= 0; with_init--) {
        if (with_init)
            t_init(NULL, process, NULL);
        before = t_counts_take();
        m = open_fakes(2, NULL);
        (void)rows_of(m, 2, 0, T_PATIENCE);
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

    t_init(NULL, process, NULL);
    m = open_fakes(4, NULL);
    (void)rows_of(m, 4, 0, T_PATIENCE);
    t_expect_rest(10, NULL, NULL);
    (void)rows_of(m, 4, 0, T_PATIENCE);
    T_OK(gpud_monitor_close(&m));
    T_OK(gpud_fini());
}
