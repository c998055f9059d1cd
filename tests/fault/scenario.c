/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "giving.h"
#include "inject.h"

#define BIG 100000u

/* ---- scenarios ---- */

static void hello(struct host *h)
{
    for (uint64_t tag = 0; tag < 8; tag++)
        (void)submit(h, tag, ECHO, tag % 2 ? 8 : 600, 0, BIT(SUCCESS));
}

static void timeout(struct host *h)
{
    (void)submit(h, 0, SOFT, 8, MS(5), BIT(TIMEOUT));
    (void)submit(h, 1, HARD, 8, MS(5), BIT(TIMEOUT));
    for (uint64_t tag = 2; tag < 6; tag++)
        (void)submit(h, tag, ECHO, 8, MS(60000), BIT(SUCCESS));
}

static void restart(struct host *h)
{
    (void)submit(h, 0, ECHO, 8, 0, BIT(SUCCESS));
    (void)submit(h, 1, CRASH, 8, 0, BIT(CRASHED));
    (void)submit(h, 2, CRASH_ONCE, 8, 0, BIT(SUCCESS));
    (void)submit(h, 3, ORPHANS, 8, 0, BIT(CRASHED));
    for (uint64_t tag = 4; tag < 8; tag++)
        (void)submit(h, tag, ECHO, 8, 0, BIT(SUCCESS));
}

static void close_running(struct host *h)
{
    for (uint64_t tag = 0; tag < 10; tag++)
        (void)submit(h, tag, NAP, 8, 0, BIT(SUCCESS) | BIT(CANCELLED));
    collect(h, 1);
    finish(h, GPUD_FINISH_RUNNING, 0);
    (void)look(h, 0);
    errno = E2BIG;
    if (gpud_dispatcher_stop(h->d, GPUD_FINISH_RUNNING) || errno != E2BIG)
        wrong(h->r, "stop fails, or does not keep errno");
    finish(h, GPUD_FINISH_NOW, MS(3000));
}

static void payload(struct host *h)
{
    static unsigned char bytes[BIG];
    struct order *o = (struct order *)(void *)bytes;
    struct gpud_task_desc t = GPUD_TASK_DESC_INIT;
    void *buffer = NULL;
    int r;

    t.data = bytes;
    t.label = "large";
    for (t.tag = 0; t.tag < 6; t.tag++) {
        t.size = t.tag % 2 ? BIG : 3000;
        *o = (struct order){ .tag = t.tag, .what = ECHO, .size = t.tag % 3 ? BIG : 3000 };
        (void)give(h, &t, 0, BIT(SUCCESS));
    }
    r = gpud_dispatcher_buffer_alloc(h->d, BIG, &buffer);
    if (r) {
        check_refusal(h, "buffer_alloc", r, NULL);
        return;
    }
    *(struct order *)buffer = (struct order){ .tag = t.tag, .what = ECHO, .size = 8 };
    t.data = buffer;
    t.size = BIG;
    if (!give(h, &t, 0, BIT(SUCCESS)))
        (void)gpud_dispatcher_buffer_free(h->d, buffer);
}

static void cancel(struct host *h)
{
    uint64_t running = submit(h, 0, UNTIL_CANCELLED, 8, 0, BIT(CANCELLED)), queued = 0,
             until = now() + MS(300);

    for (uint64_t tag = 1; tag < 6; tag++) {
        uint64_t id = submit(h, tag, LOUD, 8, 0, BIT(SUCCESS) | (tag == 5 ? BIT(CANCELLED) : 0));
        queued = tag == 5 ? id : 0;
    }
    while (!h->progress && now() < until && look(h, MS(50)))
        ;
    if (queued)
        (void)gpud_dispatcher_cancel(h->d, queued, GPUD_CANCEL_HARD); /* it may have ended */
    if (running)
        (void)gpud_dispatcher_cancel(h->d, running, GPUD_CANCEL_HARD);
}

/* run, with a source: the feeder thread. */
static int source(struct gpud_task_desc *t, size_t n, void *user)
{
    static struct order o[8];
    static uint64_t next;
    struct host *h = user;
    uint64_t tag = next++;

    (void)n;
    if (tag == 8)
        return 0;
    o[tag] = (struct order){ .tag = tag, .what = ECHO, .size = 8 };
    t->tag = tag;
    t->data = &o[tag];
    t->size = sizeof o[tag];
    expect(h, tag, 8, BIT(SUCCESS));
    return 1;
}

static int heard(const struct gpud_event *e, void *user)
{
    on_outcome(user, e);
    return 0;
}

static void run_source(struct host *h)
{
    struct gpud_callbacks cb = GPUD_CALLBACKS_INIT;
    struct gpud_error e = GPUD_ERROR_INIT;
    bool refused;
    int r;

    cb.on_success = cb.on_error = heard;
    r = gpud_dispatcher_run(h->d, source, &cb, h, &e);
    refused = r == GPUD_EREFUSED && strstr(e.text, ": ENOMEM: ");
    if (r && !refused && r != GPUD_ENOWORKER) /* whose outcomes are judged one by one */
        check_refusal(h, "run", r, &e);
    if (refused && h->outcomes + 1 == atomic_load(&h->r->accepted)) /* one was pulled and refused */
        expect_no_more(h, 8);
}

/* One after the other: each task costs bells both ways.  Then all at once. */
static void storm(struct host *h)
{
    uint32_t single = h->storm_tasks / 2, tag = 0;

    while (tag < single && look(h, 0)) {
        (void)submit(h, tag++, ECHO, 8, 0, BIT(SUCCESS));
        collect(h, tag);
    }
    while (tag < h->storm_tasks) {
        uint64_t before = atomic_load(&h->r->accepted);
        (void)submit(h, tag, tag % 64 ? ECHO : LOUD, tag % 16 ? 8 : 2000, 0, BIT(SUCCESS));
        if (atomic_load(&h->r->accepted) != before || atomic_load(&h->r->refused))
            tag++;
        else if (!look(h, MS(10)))
            break;
    }
}

static void tune_fakes(struct host *h, struct gpud_options *o)
{
    (void)h;
    o->devices = "fake:2";
    o->memory_wait = MS(50);
}

const struct scenario scenarios[] = {
    { "hello", 2, GPUD_DRIVE_CALLER, 0, 0, hello, NULL, false, false },
    { "timeout", 2, GPUD_DRIVE_CALLER, MS(10), 0, timeout, NULL, false, false },
    { "restart", 2, GPUD_DRIVE_CALLER, 0, 1, restart, NULL, false, false },
    { "close", 2, GPUD_DRIVE_THREAD, MS(10), 0, close_running, NULL, false, false },
    { "payload", 1, GPUD_DRIVE_THREAD, 0, 0, payload, NULL, false, false },
    { "cancel", 2, GPUD_DRIVE_THREAD, 0, 0, cancel, NULL, false, false },
    { "run", 2, GPUD_DRIVE_THREAD, 0, 0, run_source, NULL, false, false },
    { "wait", 2, GPUD_DRIVE_CALLER, 0, 0, work_wait, NULL, true, false },
    { "fd", 2, GPUD_DRIVE_CALLER, 0, 0, work_fd, NULL, true, false },
    { "batch", 2, GPUD_DRIVE_THREAD, MS(500), 0, work_batch, tune_batch, true, false },
    { "surroundings", 2, GPUD_DRIVE_CALLER, 0, 0, work_exec, tune_surroundings, true, false },
    { "exec", 2, GPUD_DRIVE_CALLER, 0, 0, work_exec, tune_exec, true, false },
    { "own", 2, GPUD_DRIVE_CALLER, 0, 0, work_exec, tune_own, true, true },
    { "fakes", 2, GPUD_DRIVE_CALLER, 0, 1, restart, tune_fakes, true, false },
    { "monitor", 2, GPUD_DRIVE_CALLER, 0, 0, work_monitor, NULL, true, false },
    { "monitor own", 2, GPUD_DRIVE_CALLER, 0, 0, work_monitor, tune_own, true, true },
};
const unsigned n_scenarios = sizeof scenarios / sizeof *scenarios;
const struct scenario storm_scenarios[2] = {
    { "storm", 2, GPUD_DRIVE_CALLER, 0, 0, storm, NULL, false, false },
    { "storm", 2, GPUD_DRIVE_THREAD, 0, 0, storm, NULL, false, false },
};

/* ---- from beginning to end ---- */

static unsigned entries(const char *path)
{
    DIR *dir = opendir(path);
    unsigned n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static unsigned threads(unsigned before)
{
    unsigned n = entries("/proc/self/task");
    uint64_t until = now() + MS(2000);

    /* A joined thread may stay visible for a moment. */
    while (n > before && now() < until) {
        (void)poll(NULL, 0, 1);
        n = entries("/proc/self/task");
    }
    return n;
}

_Noreturn void scenario_worker(void)
{
    (void)gpud_init(definitions, 2, NULL); /* does not return in a worker */
    _exit(70);
}

static void all(struct host *h)
{
    struct gpud_options o = GPUD_OPTIONS_INIT;
    struct gpud_error e = GPUD_ERROR_INIT;
    char devices[16];
    uint64_t left = 0;
    int r;

    (void)snprintf(devices, sizeof devices, "cpu:%u", h->s->devices);
    o.devices = devices;
    o.drive = h->s->drive;
    o.definition = "fault";
    h->info.fails = h->s->setup_fails;
    o.setup_data = &h->info;
    o.setup_size = sizeof h->info;
    o.payload_budget = 64u << 20;
    o.setup_limit = MS(5000);
    o.grace = h->s->grace ? h->s->grace : MS(2000);
    o.cleanup_limit = o.close_limit = o.kill_limit = MS(5000);
    o.backoff = MS(1);
    o.backoff_cap = MS(4);
    o.failures_in_a_row = h->s->work == storm ? 1000000 : 4;
    fi_phase(FI_INIT);
    r = h->s->other_program ? 0 : gpud_init(definitions, 2, &e);
    if (r) {
        check_refusal(h, "gpud_init", r, &e);
        return;
    }
    fi_phase(FI_CREATE);
    if (h->s->tune)
        h->s->tune(h, &o);
    r = gpud_dispatcher_create(&h->d, &o, &e);
    if (r) {
        check_refusal(h, "create", r, &e);
    } else {
        fi_phase(FI_WORK);
        h->s->work(h);
        if (!h->closed)
            finish(h, GPUD_FINISH_ALL, MS(15000));
        while (look(h, MS(1000)))
            ;
        fi_phase(FI_END);
        release(h, 2);
        r = gpud_dispatcher_destroy(&h->d, &left);
        release(h, 0);
        if (r || left > h->unheard || h->d)
            wrong(h->r, "destroy answers %s with %u uncollected", gpud_error_name(r),
                  (unsigned)left);
    }
    fi_phase(FI_FINI);
    if ((r = gpud_shared_destroy(&h->shared)))
        wrong(h->r, "gpud_shared_destroy answers %s", gpud_error_name(r));
    if ((r = gpud_fini()))
        wrong(h->r, "gpud_fini answers %s", gpud_error_name(r));
}

static void leak(struct report *r, const char *what, long n)
{
    if (n == 0)
        return;
    atomic_fetch_add(&r->leaked, 1);
    wrong(r, "left at the end: %ld %s", n, what);
}

static void leaks(struct report *r, unsigned files, unsigned tasks)
{
    long blocks = fi_open_blocks();

    leak(r, "blocks of memory, maps or streams", blocks);
    leak(r, "files", (long)entries("/proc/self/fd") - (long)files);
    leak(r, "threads", (long)threads(tasks) - (long)tasks);
    leak(r, "child", waitpid(-1, NULL, WNOHANG | __WALL) >= 0 || errno != ECHILD);
}

#ifdef __SANITIZE_THREAD__
static void *nothing(void *arg)
{
    return arg;
}
#endif

/* ThreadSanitizer starts a thread of its own with the first one of ours. */
static void settle_threads(void)
{
#ifdef __SANITIZE_THREAD__
    pthread_t thread;

    if (pthread_create(&thread, NULL, nothing, NULL) == 0)
        pthread_join(thread, NULL);
#endif
}

_Noreturn void scenario_host(const struct scenario *s, struct report *r, bool strict,
                             uint32_t storm_tasks)
{
    struct host h = { .s = s, .r = r, .strict = strict, .storm_tasks = storm_tasks };
    unsigned files, tasks;

    settle_threads();
    files = entries("/proc/self/fd");
    tasks = entries("/proc/self/task");
    fi_begin();
    h.until = now() + PATIENCE_S * MS(1000);
    atomic_store(&fi_page->armed, 1);
    all(&h);
    atomic_store(&fi_page->armed, 0);
    count_lost(&h, 16 + storm_tasks);
    if (atomic_load(&fi_page->overlap))
        wrong(r, "a replacement's setup ran while its predecessor's daemon lived");
    leaks(r, files, tasks);
    atomic_store(&r->ended, 1);
    _exit(0);
}
