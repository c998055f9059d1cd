/* SPDX-License-Identifier: MIT */
/*
 * devices.c - dispatchers on devices that are read: what is refused, what is read and when, and
 * that neither a monitor that hangs nor one that dies is felt by a task. Fakes by script stand for
 * the driver.
 */
#include "rest.h"
#include "scripted.h"
#include "verbs.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>


static int setup(gpud_worker *w, void **ret_state)
{
    *ret_state = w;
    return 0;
}

static int process(gpud_task *t, void *state)
{
    (void)t_process(t, state);
    return gpud_task_result_set(t, gpud_worker_device_uuid(state, 0),
                                strlen(gpud_worker_device_uuid(state, 0)) + 1);
}

/* ---- creation ---- */

/* C15: what is refused says why. */
static void refused(const char *devices, const char *field, const char *words)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;

    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.devices = devices), &error), EDEVICE);
    T_CHECK(!d);
    T_TEXT(error.field, field);
    if (!strstr(error.text, words))
        T_FAIL("\"%s\": the text is \"%s\" and lacks \"%s\"", devices, error.text, words);
}

T_CASE(what_is_refused)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;

    t_init(setup, process, NULL);
    t_write_script("typo", "gpu 0 boots=3s");
    t_write_script("unloaded", "driver state=not-loaded");
    refused("all", "devices", "entry 1, \"all\", finds no GPU");
    refused("cpu:1,0", "devices", "entry 2, \"0\",");
    refused("GPU-5c", "devices", "entry 1, \"GPU-5c\",");
    refused("fake:2,all", "devices", "entry 2");
    refused("fake:300", "devices", "entry 1");
    refused("fake:1,script=nowhere", "devices", "script nowhere: No such file or directory");
    refused("fake:1,script=typo", "script", "line 1");
    refused("fake:1,script=unloaded", "devices", "NOT_LOADED");
    T_CODE(
        gpud_dispatcher_create(&d, T_OPTIONS(.devices = "fake:3", .devices_per_worker = 2), &error),
        EDEVICE);
    T_TEXT(error.field, "devices_per_worker");
    T_CODE(gpud_dispatcher_create(
               &d, T_OPTIONS(.devices = "fake:1", .xid_rules = "62=reset,79=nonsense"), &error),
           EINVAL);
    T_TEXT(error.field, "xid_rules");
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.devices = "fake:1", .cuda = 32), &error), EINVAL);
    T_TEXT(error.field, "cuda");
    T_CODE(
        gpud_dispatcher_create(&d, T_OPTIONS(.devices = "fake:1", .canary_passes = 1001), &error),
        EINVAL);
    T_TEXT(error.field, "canary_passes");
    T_CHECK(!d);
    T_OK(gpud_fini());
}

/* What a worker is told of its device, and what a row says of it. */
T_CASE(rows_of_fakes)
{
    struct gpud_device_info row;
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_fakes(2,
                "gpu 1 model=\"Small one\" memory=8GiB used=1GiB temperature=71 cc=8.6\ngpu 1 "
                "foreign 4321 2GiB",
                T_OPTIONS(.seed = 1));
    row = t_device(d, "fake:1");
    T_EQ(row.kind, GPUD_DEVICE_FAKE);
    T_TEXT(row.model, "Small one");
    T_EQ(row.index, 1);
    T_EQ(row.compute_major, 8);
    T_EQ(row.health, GPUD_HEALTH_HEALTHY);
    T_EQ(row.memory_total, 8ull << 30);
    T_EQ(row.memory_used, 3ull << 30);
    T_EQ(row.memory_foreign, 2ull << 30);
    T_EQ(row.memory_ours, 0);
    T_EQ(row.foreign_processes, 1);
    T_EQ(row.foreign_pid, 4321);
    T_EQ(row.temperature, 71);
    T_EQ(row.slots, 1);
    T_CMP(row.sampled_at, >, 0);
    T_OK(gpud_dispatcher_device_drain(d, "fake:0"));
    T_TEXT((const char *)T_RUN(d, &log, SUCCESS, .tag = 1)->result, row.uuid);
    T_OK(gpud_dispatcher_device_return(d, t_device(d, "fake:0").uuid));
    T_EQ(t_stats(d).devices, 2);
    T_EQ(t_stats(d).devices_healthy, 2);
    t_end(&d, &log);
}

/* ---- readings ---- */

static int is_newer(void *user)
{
    struct gpud_device_info row = t_device(((void **)user)[0], "fake:0");

    return row.sampled_at > *(uint64_t *)((void **)user)[1];
}

/* While somebody looks readings are at most about a second old; while nobody does, and nothing
 * runs, nothing wakes up. [C20] */
T_LONG_CASE(read_while_somebody_looks, 60)
{
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "fake:2");
    uint64_t first;
    void *look[2];

    t_wait_ready(d, 2);
    first = t_device(d, "fake:0").sampled_at;
    look[0] = d;
    look[1] = &first;
    t_wait_until("there is another reading", is_newer, look);
    t_pass(T_MS(3500)); /* nobody looks any more, from 2 s on */
    t_expect_rest(25, NULL, NULL);
    first = t_device(d, "fake:0").sampled_at;
    T_CMP(t_now() - first, >, T_MS(2000));
    t_wait_until("there is another reading", is_newer, look);
    t_end(&d, NULL);
}

static uint64_t seen_at(gpud_dispatcher *d)
{
    return t_device(d, "fake:0").sampled_at;
}

/* While a task runs its device is read once a second, and not more often. */
T_LONG_CASE(read_while_a_task_runs, 60)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "fake:1");
    uint64_t before;

    t_wait_ready(d, 1);
    before = seen_at(d);
    t_pass(T_MS(3100)); /* that look is forgotten */
    T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    t_pass(T_MS(3500));
    T_CMP(t_now() - seen_at(d), <, T_MS(2500)); /* older, if it was read at the start alone */
    T_CMP(seen_at(d) - before, >, T_MS(3000));
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 1);
    t_end(&d, &log);
}

/* ---- a monitor that hangs, or dies ---- */

enum { ROUNDS = 400 };

/* The longest time from submit to the outcome, one task after the other. */
static uint64_t longest(gpud_dispatcher *d, struct t_log *log)
{
    uint64_t most = 0;

    for (uint64_t n = 0; n < ROUNDS; n++) {
        uint64_t before = t_now();
        size_t had = t_log_count(log, GPUD_EVENT_OUTCOME);
        T_SUBMIT(d, .tag = T_TAG(T_WORK, had));
        t_collect(d, log, had + 1);
        if (t_now() - before > most)
            most = t_now() - before;
    }
    return most;
}

/* C6: a reading that never comes delays no task, and makes the device UNKNOWN, not HEALTHY; it
 * takes tasks. [T22] */
T_LONG_CASE(reading_that_hangs, 60)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    uint64_t well, hung;
    size_t at = 0;

    t_init(setup, process, NULL);
    d = t_fakes(2, "when hung driver hang sample\nwhen mended driver mend sample",
                T_OPTIONS(.seed = 1));
    t_wait_ready(d, 2);
    well = longest(d, &log);
    t_trigger("hung");
    (void)t_device(d, "fake:0");
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_UNKNOWN);
    hung = longest(d, &log);
    (void)printf("longest of %d tasks: %.3f ms, with a hung reading %.3f ms\n", ROUNDS,
                 (double)well / 1e6, (double)hung / 1e6);
    /* the load of the machine is in both; who waited for a reading would wait for a second */
    T_CMP(hung, <, well + T_MS(500));
    T_SUBMIT(d, .tag = T_TAG(T_KILL, 0));
    t_collect(d, &log, 2 * ROUNDS + 1);
    t_wait_ready(d, 2); /* nor does a start wait for it */
    t_trigger("mended");
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_HEALTHY);
    t_end(&d, &log);
}

static struct t_proc monitor(void)
{
    struct t_procs all = t_procs_below(getpid());
    struct t_proc p = { .pid = 0 };

    for (size_t i = 0; i < all.count; i++)
        if (strcmp(all.list[i].comm, "gpud-monitor") == 0)
            p = all.list[i];
    t_procs_free(&all);
    T_CMP(p.pid, >, 0);
    return p;
}

/* A monitor that dies is started again; meanwhile its devices are UNKNOWN, and tasks go on. */
T_CASE(monitor_that_dies)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "fake:2");
    struct t_proc p;
    size_t at = 0;

    t_wait_ready(d, 2);
    p = monitor();
    t_kill(p.pid, SIGKILL);
    T_CHECK(strstr(t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_UNKNOWN)->text, "monitor"));
    (void)T_RUN(d, &log, SUCCESS, .tag = 1);
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_HEALTHY);
    T_CMP(monitor().pid, !=, p.pid);
    T_EQ(t_stats(d).monitor_deaths, 1);
    T_EQ(t_stats(d).restarts, 0);
    t_end(&d, &log);
}

/* One that has told something and dies again is started after twice the time. [C9] */
T_CASE(monitor_that_dies_again)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "fake:1");
    size_t at = 0;

    t_wait_ready(d, 1);
    for (uint64_t wait = T_MS(500); wait <= T_S(2); wait *= 2) {
        uint64_t killed = t_now();
        t_kill(monitor().pid, SIGKILL);
        (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_UNKNOWN);
        (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_HEALTHY);
        T_CMP(t_now() - killed, >=, wait);
    }
    T_EQ(t_stats(d).monitor_deaths, 3);
    t_end(&d, &log);
}

/* ---- memory after a death ---- */

static gpud_dispatcher *ready(const char *script, uint64_t wait)
{
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_fakes(1, script, T_OPTIONS(.memory_wait = wait));
    t_wait_ready(d, 1);
    return d;
}

/* A task occupies the worker, something happens, and then that dies. */
static void die_when(gpud_dispatcher *d, struct t_log *log, const char *what)
{
    size_t had = t_log_count(log, GPUD_EVENT_OUTCOME);

    t_trigger(what); /* seen in the next reading, which is asked for at the death */
    (void)T_RUN(d, log, CRASHED, .tag = T_TAG(T_KILL, had));
}

/* Memory that never comes back: who holds it is named, and the start goes on. */
T_CASE(memory_that_does_not_come)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = ready("when held gpu 0 used=9GiB", T_MS(400));
    const struct gpud_event *e;
    size_t at = 0;

    die_when(d, &log, "held");
    e = t_told(d, &log, &at, "fake:0", "7168 MiB are free");
    T_CHECK(strstr(e->text, "16384 MiB before its start"));
    T_CHECK(strstr(e->text, "held by no process that the driver reports"));
    t_wait_ready(d, 1);
    T_EQ(t_stats(d).memory_late, 1);
    T_EQ(t_slot(d, 0).incarnation, 2);
    t_end(&d, &log);
}

/* What another process has taken meanwhile is not waited for. */
T_CASE(memory_that_others_took)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = ready("when held gpu 0 foreign 4321 9GiB", T_S(3600));

    die_when(d, &log, "held");
    t_wait_ready(d, 1);
    T_EQ(t_stats(d).memory_waits, 0);
    T_EQ(t_device(d, "fake:0").foreign_pid, 4321);
    t_end(&d, &log);
}

/* A part of it is another's, a part is nobody's. */
T_CASE(memory_that_others_hold_too)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        ready("when held gpu 0 used=4GiB\nwhen held gpu 0 foreign 4194303 5GiB", T_MS(300));
    size_t at = 0;

    die_when(d, &log, "held");
    T_CHECK(strstr(t_told(d, &log, &at, "fake:0", "7168 MiB are free")->text,
                   "held by pid 4194303 (?, foreign, 5120 MiB)"));
    t_wait_ready(d, 1);
    t_end(&d, &log);
}

/* Where nothing can be read nobody waits. */
T_CASE(memory_that_cannot_be_read)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = ready("when held gpu 0 fail sample 10", T_S(3600));

    die_when(d, &log, "held");
    t_wait_ready(d, 1);
    T_EQ(t_stats(d).memory_late, 0);
    t_end(&d, &log);
}

/* ---- at run time ---- */

/* Fakes that are added get a monitor of their own, and go on counting. */
T_CASE(fakes_are_added_and_removed)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:1");
    size_t at = 0;

    T_OK(gpud_dispatcher_device_add(d, "fake:2", &error));
    t_write_script("later", "gpu 2 memory=4GiB\nwhen gone gpu 2 lost");
    T_OK(gpud_dispatcher_device_add(d, "fake:1,script=later", &error));
    t_wait_ready(d, 4);
    T_EQ(t_device(d, "fake:2").memory_total, 4ull << 30);
    T_EQ(t_stats(d).devices, 4);
    T_CODE(gpud_dispatcher_device_add(d, "fake:400", &error), EDEVICE);
    T_CODE(gpud_dispatcher_device_add(d, "all", &error), EDEVICE);
    T_EQ(t_stats(d).devices, 4);
    t_trigger("gone");
    (void)t_told_health(d, &log, &at, "fake:2", GPUD_HEALTH_LOST);
    for (unsigned i = 0; i < 3; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "fake:%u", i);
        T_OK(gpud_dispatcher_device_remove(d, name));
        (void)t_told(d, &log, &at, name, "removed");
    }
    T_EQ(t_stats(d).devices, 1);
    T_TEXT(T_RUN(d, &log, SUCCESS, .tag = 1)->device, "cpu:0");
    T_OK(gpud_dispatcher_device_add(d, "fake:1", &error));
    T_EQ(t_device(d, "fake:0").health, GPUD_HEALTH_HEALTHY);
    t_wait_ready(d, 2);
    t_end(&d, &log);
}

static gpud_dispatcher *crowded;
static pthread_barrier_t gate;

static void *adds_a_fake(void *arg)
{
    (void)arg;
    (void)pthread_barrier_wait(&gate);
    T_OK(gpud_dispatcher_device_add(crowded, "fake:1", NULL));
    return NULL;
}

/* Whoever adds fakes at the same time gets numbers of their own. */
T_CASE(fakes_are_added_at_once)
{
    enum { N = 8 };
    struct gpud_device_info rows[N + 1] = { { .struct_size = sizeof(rows[0]) } };
    struct t_log log = { 0 };
    pthread_t thread[N];

    crowded = T_BEGIN(setup, process, .devices = "cpu:1");
    T_EQ(pthread_barrier_init(&gate, NULL, N), 0);
    for (unsigned i = 0; i < N; i++)
        t_thread(&thread[i], adds_a_fake, NULL);
    for (unsigned i = 0; i < N; i++)
        t_join(thread[i]);
    (void)pthread_barrier_destroy(&gate);
    T_EQ(gpud_dispatcher_devices(crowded, rows, N + 1), N + 1);
    for (unsigned i = 0; i < N; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "fake:%u", i);
        T_TEXT(rows[i + 1].name, name);
    }
    t_wait_ready(crowded, N + 1);
    t_end(&crowded, &log);
}

/* Nothing can be added without the spawner, and it is said so. */
T_CASE(added_without_a_spawner)
{
    static const char *const entries[] = { "cpu:1", "fake:1", "all", "nonsense" };
    struct t_log log = { 0 };
    struct t_proc spawner;
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:1,fake:1");
    size_t at = 0;

    t_wait_ready(d, 2);
    spawner = t_spawner();
    t_kill(spawner.pid, SIGKILL);
    t_wait_ended(&spawner);
    (void)t_told_health(d, &log, &at, "fake:0", GPUD_HEALTH_UNKNOWN);
    for (size_t i = 0; i < T_LENGTH(entries); i++) {
        struct gpud_error error = GPUD_ERROR_INIT;
        T_CODE(gpud_dispatcher_device_add(d, entries[i], &error), ESPAWNER);
        T_EQ(error.code, GPUD_ESPAWNER);
    }
    T_EQ(t_stats(d).devices, 2);
    (void)T_RUN(d, &log, SUCCESS, .tag = 1);
    t_end(&d, &log);
}

static int no_monitor_is_left(void *user)
{
    struct t_procs all = t_procs_below(getpid());
    size_t n = 0;

    (void)user;
    for (size_t i = 0; i < all.count; i++)
        n += strcmp(all.list[i].comm, "gpud-monitor") == 0 && all.list[i].state != 'Z';
    t_procs_free(&all);
    return n == 0;
}

/* C18: monitors that read nothing any more go. */
T_CASE(monitors_do_not_pile_up)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:1");
    size_t at = 0;

    for (unsigned i = 0; i < 70; i++) {
        T_OK(gpud_dispatcher_device_add(d, "fake:1", NULL));
        T_OK(gpud_dispatcher_device_remove(d, "fake:0"));
        (void)t_told(d, &log, &at, "fake:0", "removed");
    }
    T_CMP(gpud_dispatcher_slots(d, NULL, 0), ==, 2);
    t_wait_until("no monitor is left", no_monitor_is_left, NULL);
    t_end(&d, &log);
}

/* C18 C19: also while a process that the host has forked holds copies of their sockets. */
T_CASE(monitors_go_beside_a_forked_child)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:1,fake:1");
    size_t at = 0;
    pid_t child;

    child = fork();
    if (child == 0)
        t_rest();
    T_CMP(child, >, 0);
    T_OK(gpud_dispatcher_device_remove(d, "fake:0"));
    (void)t_told(d, &log, &at, "fake:0", "removed");
    t_wait_until("no monitor is left", no_monitor_is_left, NULL);
    t_kill(child, SIGKILL);
    T_EQ(waitpid(child, NULL, 0), child);
    t_end(&d, &log);
}
