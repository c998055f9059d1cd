/* SPDX-License-Identifier: MIT */
/*
 * resets.c - a GPU that waits for a reset is open in no t_process of ours, and comes back after it.
 * The fakes of NVML and CUDA keep a file of each GPU that a t_process has opened, with a shared
 * lock: tests/fakes/open_gpu.h.
 */
#include "monitors.h"
#include "scripted.h"
#include "verbs.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LETS_GO "this dispatcher has closed it"

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

static int setup(gpud_worker *w, void **ret_state)
{
    (void)w;
    *ret_state = NULL;
    return 0;
}

static gpud_dispatcher *on_gpus(const char *script, const struct gpud_options *options)
{
    t_write_script("script", script);
    t_note_openings();
    t_init(setup, t_process, NULL);
    return t_create(options);
}

/* ---- who has a GPU open ---- */

struct gpu {
    char path[256];
    int locked; /* the fd, -1 = not locked */
};

static struct gpu by_uuid(const char *uuid)
{
    struct gpu g = { .locked = -1 };

    (void)snprintf(g.path, sizeof g.path, "script.open/%s", uuid);
    return g;
}

static struct gpu gpu_of(gpud_dispatcher *d, const char *name)
{
    return by_uuid(t_device(d, name).uuid);
}

/* As nvidia-smi does: it is taken for a reset, if no t_process has it open. */
static int lock_it(void *user)
{
    struct gpu *g = user;

    g->locked = open(g->path, O_RDONLY | O_CLOEXEC);
    T_CHECK(g->locked >= 0);
    if (flock(g->locked, LOCK_EX | LOCK_NB) == 0)
        return 1;
    (void)close(g->locked);
    g->locked = -1;
    return 0;
}

static void unlock_it(struct gpu *g)
{
    T_EQ(close(g->locked), 0);
    g->locked = -1;
}

static int is_open(gpud_dispatcher *d, const char *name)
{
    struct gpu g = gpu_of(d, name);

    if (!lock_it(&g))
        return 1;
    unlock_it(&g);
    return 0;
}

/* Until all of ours has let go of it; it is locked then. */
static struct gpu taken(gpud_dispatcher *d, struct t_log *log, size_t *at, const char *name)
{
    struct gpu g = gpu_of(d, name);

    (void)t_told(d, log, at, name, LETS_GO);
    t_wait_until("no t_process has the GPU open", lock_it, &g);
    return g;
}

/* An XID of a GPU is heard, and a canary brings it back to use. */
static void expect_watched(gpud_dispatcher *d, struct t_log *log, size_t *at, const char *name,
                           const char *trigger)
{
    t_trigger(trigger);
    T_EQ(t_told_health(d, log, at, name, GPUD_HEALTH_SUSPECT)->xid, 94);
    (void)t_told_health(d, log, at, name, GPUD_HEALTH_HEALTHY);
}

/* ---- the cases ---- */

/* While it waits no t_process of ours has it open; the other one is read, heard and used; after the
 * reset it comes back, and is heard again. */
T_CASE(open_nowhere_while_it_waits)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        on_gpus("gpus 2\nwhen broken gpu 1 xid 62 recovery=reset\nwhen other gpu 0 xid 94\nwhen "
                "other2 gpu 0 xid 94\n"
                "when mended gpu 1 recovery=none\nwhen again gpu 1 xid 94",
                T_OPTIONS(.devices = "all", .canary_backoff = T_S(3600), .canary_passes = 1));
    struct gpu g;
    unsigned ears;
    uint64_t read_at;
    size_t at = 0;

    t_wait_ready(d, 2);
    t_wait_for_ears(d, "gpu:1", 1);
    T_CHECK(is_open(d, "gpu:0") && is_open(d, "gpu:1"));
    t_trigger("broken");
    (void)t_told_health(d, &log, &at, "gpu:1", GPUD_HEALTH_QUARANTINED);
    g = taken(d, &log, &at, "gpu:1");
    T_CHECK(is_open(d, "gpu:0"));
    expect_watched(d, &log, &at, "gpu:0", "other");
    read_at = t_device(d, "gpu:0").sampled_at;
    while (t_device(d, "gpu:0").sampled_at == read_at)
        (void)t_poll(d, &log, T_MS(20));
    (void)T_RUN(d, &log, SUCCESS, .tag = 1);
    T_EQ(t_device(d, "gpu:1").health, GPUD_HEALTH_QUARANTINED);
    ears = t_ears(d, "gpu:1");
    t_trigger("mended");
    unlock_it(&g);
    T_OK(gpud_dispatcher_device_return(d, "gpu:1"));
    (void)t_told_health(d, &log, &at, "gpu:1", GPUD_HEALTH_HEALTHY);
    t_wait_ready(d, 2);
    T_CHECK(is_open(d, "gpu:1"));
    t_wait_for_ears(d, "gpu:1", ears + 1);
    expect_watched(d, &log, &at, "gpu:1", "again");
    expect_watched(d, &log, &at, "gpu:0", "other2");
    T_EQ(t_stats(d).monitor_deaths, 0);
    t_end(&d, &log);
}

/* It is looked at by processes that end, with the waits of the back-off; the other one stays with
 * the one that opened it.  A t_process may need a second to end (ThreadSanitizer's): the waits grow
 * beyond that. */
T_CASE(a_look_at_each_step)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = on_gpus(
        "gpus 2\nwhen broken gpu 1 recovery=bus-reset\nwhen mended gpu 1 recovery=none",
        T_OPTIONS(.devices = "all", .canary_backoff = T_MS(20), .canary_backoff_cap = T_S(3)));
    unsigned before, other;
    struct gpu g;
    size_t at = 0;

    t_wait_ready(d, 2);
    t_trigger("broken");
    g = taken(d, &log, &at, "gpu:1");
    unlock_it(&g);
    before = t_openings(d, "gpu:1");
    other = t_openings(d, "gpu:0");
    t_wait_for_openings(d, "gpu:1", before + 5);
    t_wait_until("a time between two looks", lock_it, &g);
    T_EQ(t_openings(d, "gpu:0"), other);
    T_EQ(t_device(d, "gpu:1").health, GPUD_HEALTH_QUARANTINED);
    t_trigger("mended");
    unlock_it(&g);
    (void)t_told_health(d, &log, &at, "gpu:1", GPUD_HEALTH_HEALTHY);
    T_EQ(t_openings(d, "gpu:0"), other);
    (void)T_RUN(d, &log, SUCCESS, .tag = 1);
    T_EQ(t_stats(d).monitor_deaths, 0);
    t_end(&d, &log);
}

/* With one GPU no monitor is left; a task that may end keeps it open. */
T_CASE(the_only_one_after_its_task)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        on_gpus("gpus 1\nwhen broken gpu 0 recovery=drain-reset\nwhen mended gpu 0 recovery=none",
                T_OPTIONS(.devices = "all", .canary_backoff = T_MS(20), .sent_ahead = 1));
    struct gpu g;
    size_t at = 0;

    t_wait_ready(d, 1);
    T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    t_trigger("broken");
    (void)t_told_health(d, &log, &at, "gpu:0", GPUD_HEALTH_QUARANTINED);
    T_CHECK(is_open(d, "gpu:0"));
    while (t_slot(d, 0).state != GPUD_SLOT_DRAINING)
        (void)t_poll(d, &log, T_MS(20));
    for (size_t i = 0; i < log.count; i++)
        T_CHECK(!strstr(log.list[i].text, LETS_GO));
    t_word_set(T_GATE, 1);
    g = taken(d, &log, &at, "gpu:0");
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, T_TAG(T_WAIT_FOR_GATE, 0), SUCCESS);
    t_trigger("mended");
    unlock_it(&g);
    (void)t_told_health(d, &log, &at, "gpu:0", GPUD_HEALTH_HEALTHY);
    t_end(&d, &log);
}

/* A GPU that fell off the bus cannot be opened at all: it is looked at until it can. */
T_CASE(lost_and_back)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = on_gpus(
        "gpus 2\nwhen broken gpu 1 xid 79 lost\nwhen mended gpu 1 back\nwhen again gpu 1 xid 94",
        T_OPTIONS(.devices = "all", .canary_backoff = T_MS(20), .canary_backoff_cap = T_MS(200)));
    struct gpu g;
    unsigned ears;
    size_t at = 0;

    t_wait_ready(d, 2);
    t_wait_for_ears(d, "gpu:1", 1);
    t_trigger("broken");
    (void)t_told_health(d, &log, &at, "gpu:1", GPUD_HEALTH_LOST);
    g = taken(d, &log, &at, "gpu:1");
    ears = t_ears(d, "gpu:1");
    t_trigger("mended");
    unlock_it(&g);
    (void)t_told_health(d, &log, &at, "gpu:1", GPUD_HEALTH_HEALTHY);
    t_wait_ready(d, 2);
    t_wait_for_ears(d, "gpu:1", ears + 1);
    expect_watched(d, &log, &at, "gpu:1", "again");
    t_end(&d, &log);
}

/* What was let go of and cannot be opened any more is judged by the driver's code for that. */
T_CASE(lost_while_it_waits)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = on_gpus(
        "gpus 2\nwhen broken gpu 1 recovery=reset\nwhen gone gpu 1 lost\nwhen mended gpu 1 back "
        "recovery=none",
        T_OPTIONS(.devices = "all", .canary_backoff = T_MS(20), .canary_backoff_cap = T_S(3)));
    struct gpu g;
    size_t at = 0;

    t_wait_ready(d, 2);
    t_trigger("broken");
    g = taken(d, &log, &at, "gpu:1");
    t_trigger("gone");
    unlock_it(&g);
    T_CHECK(strstr(t_told_health(d, &log, &at, "gpu:1", GPUD_HEALTH_LOST)->text, "NVML code 15"));
    t_trigger("mended");
    (void)t_told_health(d, &log, &at, "gpu:1", GPUD_HEALTH_HEALTHY);
    t_wait_ready(d, 2);
    t_end(&d, &log);
}

/* A driver without recovery actions: the XID asks, and canaries alone bring it back. */
T_CASE(by_the_xid_alone)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = on_gpus(
        "gpus 2\ngpu * recovery=unknown\nwhen broken gpu 1 xid 119 canary=fail\nwhen mended gpu 1 "
        "canary=ok",
        T_OPTIONS(.devices = "all", .canary_backoff = T_MS(20), .canary_backoff_cap = T_S(5)));
    struct gpu g;
    size_t at = 0;

    t_wait_ready(d, 2);
    t_wait_for_ears(d, "gpu:1", 1);
    t_trigger("broken");
    g = taken(d, &log, &at, "gpu:1");
    t_trigger("mended");
    unlock_it(&g);
    (void)t_told_health(d, &log, &at, "gpu:1", GPUD_HEALTH_HEALTHY);
    t_end(&d, &log);
}

/* MIG instances are open with their GPU, and wait with it. */
T_CASE(instances)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        on_gpus("gpus 2\ngpu 1 mig=1g.10gb*2\nwhen broken gpu 1 recovery=reset\nwhen mended gpu 1 "
                "recovery=none",
                T_OPTIONS(.devices = "all", .canary_backoff = T_S(3600), .canary_passes = 1));
    struct gpu g;
    size_t at = 0;

    t_wait_ready(d, 3);
    t_trigger("broken");
    (void)t_told(d, &log, &at, "gpu:1:0", LETS_GO);
    (void)t_told(d, &log, &at, "gpu:1:1", LETS_GO);
    g = by_uuid(t_device(d, "gpu:1:0").parent_uuid);
    t_wait_until("no t_process has the GPU open", lock_it, &g);
    t_trigger("mended");
    unlock_it(&g);
    T_OK(gpud_dispatcher_device_return(d, "gpu:1:0"));
    T_OK(gpud_dispatcher_device_return(d, "gpu:1:1"));
    (void)t_told_health(d, &log, &at, "gpu:1:0", GPUD_HEALTH_HEALTHY);
    t_wait_ready(d, 3);
    t_end(&d, &log);
}

/* Each monitor that was started for added devices has all GPUs open: both let go. */
T_CASE(two_monitors)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        on_gpus("gpus 3\nwhen broken gpu 1 recovery=reset\nwhen other gpu 0 xid 94\nwhen other2 "
                "gpu 2 xid 94",
                T_OPTIONS(.devices = "0", .canary_backoff = T_S(3600), .canary_passes = 1));
    struct gpu g;
    size_t at = 0;

    t_wait_ready(d, 1);
    T_OK(gpud_dispatcher_device_add(d, "1,2", NULL));
    t_wait_ready(d, 3);
    t_wait_for_ears(d, "gpu:0", 2);
    t_wait_for_ears(d, "gpu:2", 2);
    t_trigger("broken");
    g = taken(d, &log, &at, "gpu:1");
    unlock_it(&g);
    expect_watched(d, &log, &at, "gpu:0", "other");
    expect_watched(d, &log, &at, "gpu:2", "other2");
    t_end(&d, &log);
}

/* Where the others could not be opened anew the old monitor stays, and watches all. */
T_CASE(others_that_cannot_be_opened)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = on_gpus("gpus 2\ngpu 0 fail nvmlDeviceGetHandleByPciBusId_v2 999\nwhen "
                                 "broken gpu 1 recovery=reset\nwhen other gpu 0 xid 94",
                                 T_OPTIONS(.devices = "all", .canary_backoff = T_MS(20)));
    size_t at = 0;

    t_wait_ready(d, 2);
    t_wait_for_ears(d, "gpu:0", 1);
    t_trigger("broken");
    (void)t_told_health(d, &log, &at, "gpu:1", GPUD_HEALTH_QUARANTINED);
    expect_watched(d, &log, &at, "gpu:0", "other");
    for (size_t i = 0; i < log.count; i++)
        T_CHECK(!strstr(log.list[i].text, LETS_GO));
    T_CHECK(is_open(d, "gpu:1"));
    t_end(&d, &log);
}

/* A dispatcher has its own GPUs open, not those of others, nor one that was removed: for a change
 * of its MIG mode, say. */
T_CASE(open_only_where_used)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = on_gpus(
        "gpus 3\ngpu 2 uuid=GPU-01234567-89ab-cdef-0123-456789abcdef\nwhen other gpu 0 xid 94",
        T_OPTIONS(.devices = "0,1"));
    struct gpu other = by_uuid("GPU-01234567-89ab-cdef-0123-456789abcdef"), removed;
    size_t at = 0;

    t_wait_ready(d, 2);
    t_wait_until("no t_process has open what is not used", lock_it, &other);
    T_CHECK(is_open(d, "gpu:0") && is_open(d, "gpu:1"));
    removed = gpu_of(d, "gpu:1");
    T_OK(gpud_dispatcher_device_remove(d, "gpu:1"));
    t_wait_until("no t_process has open what was removed", lock_it, &removed);
    T_CHECK(is_open(d, "gpu:0"));
    expect_watched(d, &log, &at, "gpu:0", "other");
    unlock_it(&other);
    unlock_it(&removed);
    T_OK(gpud_dispatcher_device_add(d, "1", NULL));
    t_wait_ready(d, 2);
    t_end(&d, &log);
}

/* ---- monitors that die meanwhile ---- */

/* A monitor beside that one; for t_wait_until. */
static int has_another(void *user)
{
    struct t_proc *p = user;
    const pid_t old = p->pid;
    struct t_procs all = t_procs_below(getpid());

    for (size_t i = 0; i < all.count; i++)
        if (strcmp(all.list[i].comm, "gpud-monitor") == 0 && all.list[i].pid != old)
            *p = all.list[i];
    t_procs_free(&all);
    return p->pid != old;
}

#define HEIR_HANGS                                                                                \
    "gpus 2\ngpu 0 hang nvmlDeviceGetHandleByPciBusId_v2\nwhen broken gpu 1 recovery=reset\n"     \
    "when other gpu 0 xid 94\nwhen mended gpu 1 recovery=none"

/* The monitor that is to take over the other GPU dies: the old one goes on with both. */
T_CASE(the_heir_dies)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        on_gpus(HEIR_HANGS, T_OPTIONS(.devices = "all", .canary_backoff = T_MS(20)));
    struct t_proc p;
    size_t at = 0;

    t_wait_ready(d, 2);
    t_wait_for_ears(d, "gpu:0", 1);
    t_wait_for_ears(d, "gpu:1", 1);
    p = t_the_monitor();
    t_trigger("broken");
    t_wait_until("an heir is there", has_another, &p);
    t_kill(p.pid, SIGKILL);
    while (t_stats(d).monitor_deaths == 0)
        (void)t_poll(d, &log, T_MS(20));
    expect_watched(d, &log, &at, "gpu:0", "other");
    t_trigger("mended");
    (void)t_told_health(d, &log, &at, "gpu:1", GPUD_HEALTH_HEALTHY);
    T_CHECK(is_open(d, "gpu:1"));
    t_end(&d, &log);
}

/* The old one dies while the heir hangs: another one takes its place, and the heir does no harm. */
T_CASE(the_old_one_dies)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        on_gpus(HEIR_HANGS, T_OPTIONS(.devices = "all", .canary_backoff = T_MS(20)));
    struct t_proc old, heir;
    size_t at = 0;

    t_wait_ready(d, 2);
    t_wait_for_ears(d, "gpu:0", 1);
    old = heir = t_the_monitor();
    t_trigger("broken");
    t_wait_until("an heir is there", has_another, &heir);
    t_kill(old.pid, SIGKILL);
    t_wait_for_ears(d, "gpu:0", 2);
    expect_watched(d, &log, &at, "gpu:0", "other");
    T_EQ(t_stats(d).monitor_deaths, 1);
    t_kill(heir.pid, SIGKILL);
    while (t_stats(d).monitor_deaths == 1)
        (void)t_poll(d, &log, T_MS(20));
    t_trigger("mended");
    (void)t_told_health(d, &log, &at, "gpu:1", GPUD_HEALTH_HEALTHY);
    t_end(&d, &log);
}

/* ---- what a parting must not lose ---- */

/* A successor waits for memory while its monitor is replaced: it starts when the memory is free. */
T_CASE(a_wait_for_memory_outlives_the_old_one)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = on_gpus("gpus 2\nat 0ms gpu 0 slow nvmlDeviceGetMemoryInfo_v2 200ms\n"
                                 "gpu 0 slow nvmlDeviceGetHandleByPciBusId_v2 350ms\n"
                                 "when full gpu 0 used=10GiB\nwhen broken gpu 1 recovery=reset\n"
                                 "when free gpu 0 used=0B",
                                 T_OPTIONS(.devices = "all", .canary_backoff = T_S(3600),
                                           .memory_wait = T_S(600), .backoff = GPUD_AT_ONCE));
    size_t at = 0;

    t_wait_ready(d, 2);
    t_kill((pid_t)t_slot(d, 0).pid, SIGKILL);
    while (t_slot(d, 0).incarnation < 2 || t_slot(d, 0).state != GPUD_SLOT_READY)
        (void)t_poll(d, &log, T_MS(20));
    t_trigger("full");
    t_kill((pid_t)t_slot(d, 0).pid, SIGKILL);
    while (t_slot(d, 0).state == GPUD_SLOT_READY)
        (void)t_poll(d, &log, T_MS(20));
    t_trigger("broken");
    (void)t_told(d, &log, &at, "gpu:1", LETS_GO);
    t_trigger("free");
    while (t_slot(d, 0).incarnation < 3 || t_slot(d, 0).state != GPUD_SLOT_READY)
        (void)t_poll(d, &log, T_MS(20));
    t_end(&d, &log);
}

/* A GPU falls off the bus while its monitor is replaced: the next one cannot open it, and no event
 * has told it. */
T_CASE(lost_while_its_monitor_is_replaced)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = on_gpus("gpus 3\ndriver deaf\n"
                                 "gpu 0 slow nvmlDeviceGetHandleByPciBusId_v2 300ms\n"
                                 "when broken gpu 1 recovery=reset\nwhen gone gpu 0 lost",
                                 T_OPTIONS(.devices = "all", .canary_backoff = T_S(3600)));
    size_t at = 0;

    t_wait_ready(d, 3);
    t_trigger("broken");
    while (t_device(d, "gpu:1").health != GPUD_HEALTH_QUARANTINED)
        (void)t_poll(d, &log, T_MS(20));
    t_trigger("gone");
    (void)t_told(d, &log, &at, "gpu:1", LETS_GO);
    (void)t_told_health(d, &log, &at, "gpu:0", GPUD_HEALTH_LOST);
    t_end(&d, &log);
}

/* It has opened a GPU, and could not read where that is: it lets go of it all the same. */
T_CASE(the_heir_does_not_know_where)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = on_gpus("gpus 3\nwhen blind gpu 1 fail nvmlDeviceGetPciInfo_v3 999\n"
                                 "when broken gpu 2 recovery=reset\n"
                                 "when broken2 gpu 1 recovery=reset",
                                 T_OPTIONS(.devices = "all", .canary_backoff = T_S(3600)));
    struct gpu g;
    size_t at = 0;

    t_wait_ready(d, 3);
    t_trigger("blind");
    t_trigger("broken");
    g = taken(d, &log, &at, "gpu:2");
    unlock_it(&g);
    t_trigger("broken2");
    g = taken(d, &log, &at, "gpu:1");
    unlock_it(&g);
    t_end(&d, &log);
}

static int hears_xids(void *d)
{
    return !strstr(t_device(d, "gpu:0").evidence, "XIDs cannot be received");
}

/* What a monitor reports while the first readings are awaited is not reported again. */
T_CASE(deaf_from_the_start)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = on_gpus("gpus 1\ngpu 0 fail nvmlDeviceRegisterEvents 17\n"
                                 "gpu 0 slow nvmlDeviceGetMemoryInfo_v2 100ms",
                                 T_OPTIONS(.devices = "all"));

    t_wait_ready(d, 1);
    while (hears_xids(d))
        (void)t_poll(d, &log, T_MS(20));
    t_end(&d, &log);
}

/* What the old monitor could not hear the next one hears, and says so. */
T_CASE(the_heir_hears_more)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = on_gpus("gpus 2\ngpu 0 fail nvmlDeviceRegisterEvents 17\n"
                                 "when mended gpu 0 mend nvmlDeviceRegisterEvents\n"
                                 "when broken gpu 1 recovery=reset\nwhen other gpu 0 xid 94",
                                 T_OPTIONS(.devices = "all", .canary_backoff = T_S(3600)));
    size_t at = 0;

    t_wait_ready(d, 2);
    while (hears_xids(d))
        (void)t_poll(d, &log, T_MS(20));
    t_trigger("mended");
    t_trigger("broken");
    (void)t_told(d, &log, &at, "gpu:1", LETS_GO);
    t_wait_for_ears(d, "gpu:0", 1);
    t_wait_until("its evidence says no more that it is not heard", hears_xids, d);
    t_end(&d, &log);
}
