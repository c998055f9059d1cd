/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "giving.h"
#include "inject.h"

#define BIG 100000u
#define TASKS_MAX 1000000u
#define PATIENCE_S 20

static unsigned char seen[TASKS_MAX], given[TASKS_MAX], allowed[TASKS_MAX];
static uint32_t sizes[TASKS_MAX];

uint64_t now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void wrong(struct report *r, const char *format, ...)
{
    va_list list;

    atomic_fetch_add(&r->wrong, 1);
    if (r->text[0])
        return;
    va_start(list, format);
    (void)vsnprintf(r->text, sizeof r->text, format, list);
    va_end(list);
}

/* ---- worker ---- */

static unsigned char byte_of(uint64_t tag, uint64_t i)
{
    return (unsigned char)(tag * 31 + i * 7 + (i >> 8));
}

static void nap(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

    (void)nanosleep(&t, NULL);
}

static int setup(gpud_worker *w, void **state)
{
    size_t size;
    const struct info *info = gpud_worker_setup_data(w, &size);
    const char *bad;

    fi_phase(FI_SETUP);
    fi_user_point();
    /* By its bare number, so that it is no place for a fault.  [C8] */
    if (atomic_load(&fi_page->daemon) && atomic_load(&fi_page->daemon_slot) == (int)gpud_worker_slot(w) &&
        syscall(SYS_kill, atomic_load(&fi_page->daemon), 0) == 0)
        atomic_store(&fi_page->overlap, 1);
    *state = NULL;
    if (gpud_worker_slot(w) == 0 && size >= sizeof *info && gpud_worker_incarnation(w) <= info->fails)
        return gpud_worker_fail(w, 3, "setup fails for once");
    if (size >= sizeof *info && info->surroundings && (bad = bad_surroundings(w)))
        return gpud_worker_fail(w, 4, bad);
    fi_phase(FI_SERVE);
    return 0;
}

static int work_on(gpud_task *t, const struct order *o)
{
    unsigned char *to;
    sigset_t alarm;
    void *room;
    int r;

    switch ((enum what)o->what) {
    case SOFT:
        while (!gpud_task_expired(t))
            nap(1);
        break;
    case HARD:
        (void)sigemptyset(&alarm);
        (void)sigaddset(&alarm, SIGALRM);
        (void)sigprocmask(SIG_BLOCK, &alarm, NULL);
        for (;;)
            nap(1000);
    case CRASH:
        _exit(9);
    case CRASH_ONCE:
        if (gpud_task_attempt(t) == 1)
            (void)raise(SIGKILL);
        break;
    case ORPHANS: /* a child and a daemon are left behind */
        atomic_store(&fi_page->daemon_slot, (int)gpud_worker_slot(gpud_task_worker(t)));
        if (fork() == 0) {
            if (fork() == 0) {
                (void)setsid();
                atomic_store(&fi_page->daemon, getpid());
            }
            for (;;)
                nap(1000);
        }
        for (int ms = 0; ms < 1000 && !atomic_load(&fi_page->daemon); ms++)
            nap(1); /* a fork may have been refused */
        _exit(9);
    case NAP:
        nap(5);
        break;
    case UNTIL_CANCELLED:
        (void)gpud_task_progress(t, 0.5, "waiting");
        while (!gpud_task_cancelled(t))
            nap(1);
        return 1;
    case LOUD:
        printf("a line of task %u\n", (unsigned)o->tag);
        gpud_worker_log(gpud_task_worker(t), GPUD_LEVEL_INFO, "a log line");
        (void)gpud_task_progress(t, 0.5, "half");
        (void)gpud_task_progress(t, 1, "all");
        break;
    case FAIL_ONCE:
        if (gpud_task_attempt(t) == 1)
            return gpud_task_fail(t, 5, "fails for once");
        break;
    case ECHO:
        break;
    }
    r = gpud_task_result_alloc(t, o->size, &room);
    to = room;
    for (uint64_t i = 0; !r && i < o->size; i++)
        to[i] = byte_of(o->tag, i);
    fi_user_point();
    return r;
}

static int process(gpud_task *t, void *state)
{
    int r;

    (void)state;
    fi_phase(FI_TASK);
    fi_user_point();
    r = work_on(t, gpud_task_data(t));
    fi_phase(FI_SERVE);
    return r;
}

static int process_batch(gpud_task *const *tasks, size_t n, void *state)
{
    (void)state;
    fi_phase(FI_TASK);
    for (size_t i = 0; i < n; i++) {
        fi_user_point();
        (void)work_on(tasks[i], gpud_task_data(tasks[i]));
    }
    fi_phase(FI_SERVE);
    return 0;
}

static void cleanup(gpud_worker *w, void *state)
{
    (void)w, (void)state;
    fi_phase(FI_CLEANUP);
    fi_user_point();
}

/* ---- host: giving ---- */

/* Codes that a call may answer with when a request to the system was refused. */
void check_refusal(struct host *h, const char *call, int code, const struct gpud_error *e)
{
    if (h->strict)
        wrong(h->r, "%s answers %s though nothing was refused: %s", call, gpud_error_name(code), e ? e->text : "");
    else if (code != GPUD_ENOMEM && code != GPUD_ESYSTEM && code != GPUD_ESPAWNER &&
             !(code == GPUD_ENOANSWER && fi_page->role == FI_SPAWNER) &&
             !(code == GPUD_EDEVICE && e && (strstr(e->text, "driver is ") || strstr(e->text, "there are: 0")))) /* a monitor without memory for its fakes */
        wrong(h->r, "%s answers %s, which is not about the system: %s", call, gpud_error_name(code), e ? e->text : "");
    if (e && (e->code != code || !e->text[0]))
        wrong(h->r, "%s answers %s, but the error record says %d, \"%s\"", call, gpud_error_name(code), e->code, e->text);
}

uint64_t give(struct host *h, struct gpud_task_desc *t, uint64_t wait, unsigned may)
{
    uint64_t id = 0;
    int r = gpud_dispatcher_submit(h->d, t, wait, &id);

    if (r == GPUD_ENOMEM && !h->strict)
        r = gpud_dispatcher_submit(h->d, t, wait, &id); /* nothing was taken: it may be tried again */
    if (r == GPUD_EFULL)
        return 0;
    if (r) {
        check_refusal(h, "submit", r, NULL);
        atomic_fetch_add(&h->r->refused, 1);
        return 0;
    }
    if (id <= h->last_id)
        wrong(h->r, "an id came twice or fell");
    h->last_id = id;
    given[t->tag] = 1;
    allowed[t->tag] = (unsigned char)may;
    sizes[t->tag] = ((const struct order *)t->data)->size;
    atomic_fetch_add(&h->r->accepted, 1);
    return id;
}

uint64_t submit(struct host *h, uint64_t tag, enum what what, uint32_t size, uint64_t limit, unsigned may)
{
    struct order o = { .tag = tag, .what = what, .size = size };
    struct gpud_task_desc t = GPUD_TASK_DESC_INIT;

    t.data = &o;
    t.size = sizeof o;
    t.tag = tag;
    t.limit = limit;
    t.max_attempts = what == CRASH_ONCE ? 2 : 0;
    return give(h, &t, 0, may);
}

/* ---- host: learning ---- */

void check_result(struct host *h, const struct gpud_event *e)
{
    const unsigned char *p = e->result;

    if (e->result_size != sizes[e->tag]) {
        wrong(h->r, "task %u: a result of %u bytes, not %u", (unsigned)e->tag, (unsigned)e->result_size, sizes[e->tag]);
        return;
    }
    for (uint64_t i = 0; i < e->result_size; i++)
        if (p[i] != byte_of(e->tag, i)) {
            wrong(h->r, "task %u: byte %u of the result is wrong", (unsigned)e->tag, (unsigned)i);
            return;
        }
}

static void account(struct host *h, const struct gpud_event *e)
{
    unsigned may;

    h->outcomes++;
    atomic_fetch_add(&h->r->delivered, 1);
    if (e->tag >= TASKS_MAX || !given[e->tag]) {
        wrong(h->r, "an outcome of a task that nobody gave: tag %u", (unsigned)e->tag);
        return;
    }
    if (seen[e->tag]++) {
        atomic_fetch_add(&h->r->doubled, 1);
        wrong(h->r, "task %u ended twice", (unsigned)e->tag);
    }
    may = allowed[e->tag];
    if (!h->strict)
        /* no worker: a lack of memory for bookkeeping is none */
        may |= BIT(CRASHED) | (fi_page->call == FI_realloc && fi_page->role == FI_HOST ? 0 : BIT(NO_WORKER));
    if (!(may >> e->outcome & 1))
        wrong(h->r, "task %u ended %s (code %d, phase %s, \"%s\")", (unsigned)e->tag, gpud_outcome_name(e->outcome), e->code,
              gpud_phase_name(e->phase), e->text);
    if (e->outcome == GPUD_OUTCOME_SUCCESS)
        check_result(h, e);
    if ((e->sent_at && e->sent_at < e->queued_at) || (e->started_at && e->started_at < e->sent_at) || e->ended_at < e->queued_at)
        wrong(h->r, "task %u: times out of order", (unsigned)e->tag);
}

/* Waiting threads tell of theirs while others poll. */
void on_outcome(struct host *h, const struct gpud_event *e)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    account(h, e);
    pthread_mutex_unlock(&lock);
}

void unheard(struct host *h, uint64_t tag, int code)
{
    if (h->strict || code != GPUD_ENOMEM)
        wrong(h->r, "wait for task %u answers %s", (unsigned)tag, gpud_error_name(code));
    given[tag] = 0;
    h->unheard++;
    atomic_fetch_sub(&h->r->accepted, 1);
}

static void keep(struct host *h, struct gpud_event *e)
{
    int r;

    if (!h->keep || h->n_kept == KEPT_MAX)
        return;
    r = gpud_event_keep(h->d, e);
    if (r == 0)
        h->kept[h->n_kept++] = *e;
    else if (r != GPUD_ENOMEM || h->strict)
        wrong(h->r, "keep answers %s", gpud_error_name(r));
}

/* The first few while the dispatcher lives, the others later. */
static void release(struct host *h, uint32_t left)
{
    while (h->n_kept > left) {
        struct gpud_event *e = &h->kept[--h->n_kept];
        if (e->outcome == GPUD_OUTCOME_SUCCESS)
            check_result(h, e);
        if (gpud_event_release(e))
            wrong(h->r, "release fails");
    }
}

bool look(struct host *h, uint64_t wait)
{
    static struct gpud_event e[64];
    int n;

    e[0].struct_size = sizeof e[0];
    n = gpud_dispatcher_poll(h->d, e, 64, wait);
    if (n < 0) {
        if (n != GPUD_EEND)
            wrong(h->r, "poll answers %s", gpud_error_name(n));
        return false;
    }
    for (int i = 0; i < n; i++) {
        if (e[i].kind == GPUD_EVENT_OUTCOME)
            on_outcome(h, &e[i]), keep(h, &e[i]);
        h->progress += e[i].kind == GPUD_EVENT_PROGRESS;
    }
    if (n || !h->until)
        h->until = now() + PATIENCE_S * MS(1000);
    if (now() > h->until) {
        atomic_fetch_add(&h->r->hung, 1);
        wrong(h->r, "nothing comes any more: %u of %u outcomes", h->outcomes, (unsigned)atomic_load(&h->r->accepted));
        _exit(3);
    }
    return true;
}

static void collect(struct host *h, uint32_t n)
{
    while (h->outcomes < n && h->outcomes < atomic_load(&h->r->accepted) && look(h, MS(1000)))
        ;
}

static void finish(struct host *h, uint32_t how, uint64_t limit)
{
    int r = gpud_dispatcher_close(h->d, how, limit);

    if (r)
        wrong(h->r, "close answers %s", gpud_error_name(r));
    h->closed = true;
}

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
    uint64_t running = submit(h, 0, UNTIL_CANCELLED, 8, 0, BIT(CANCELLED)), queued = 0, until = now() + MS(300);

    for (uint64_t tag = 1; tag < 6; tag++) {
        uint64_t id = submit(h, tag, LOUD, 8, 0, BIT(SUCCESS) | (tag == 5 ? BIT(CANCELLED) : 0));
        queued = tag == 5 ? id : 0;
    }
    while (!h->progress && now() < until && look(h, MS(50)))
        ;
    if (queued)
        (void)gpud_dispatcher_cancel(h->d, queued); /* it may have ended */
    if (running)
        (void)gpud_dispatcher_cancel(h->d, running);
}

/* run, with a source: the feeder thread. */
static int source(struct gpud_task_desc *t, void *user)
{
    static struct order o[8];
    static uint64_t next;
    struct host *h = user;
    uint64_t tag = next++;

    if (tag == 8)
        return 0;
    o[tag] = (struct order){ .tag = tag, .what = ECHO, .size = 8 };
    t->tag = tag;
    t->data = &o[tag];
    t->size = sizeof o[tag];
    given[tag] = 1;
    allowed[tag] = BIT(SUCCESS);
    sizes[tag] = 8;
    atomic_fetch_add(&h->r->accepted, 1);
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
    int r;

    cb.on_success = cb.on_error = heard;
    r = gpud_dispatcher_run(h->d, source, &cb, h, &e);
    if (r)
        check_refusal(h, "run", r, &e);
    if (r == GPUD_ENOMEM && h->outcomes + 1 == atomic_load(&h->r->accepted)) { /* one was pulled and refused */
        atomic_fetch_sub(&h->r->accepted, 1);
        for (unsigned i = 0; i < 8; i++)
            given[i] = seen[i];
    }
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
        nap(1);
        n = entries("/proc/self/task");
    }
    return n;
}

static const struct gpud_definition definition[] = {
    GPUD_DEFINITION("fault", setup, process, cleanup),
    GPUD_DEFINITION_BATCH("batch", setup, process_batch, cleanup),
};

_Noreturn void scenario_worker(void)
{
    (void)gpud_init(definition, 2, NULL); /* does not return in a worker */
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
    r = h->s->other_program ? 0 : gpud_init(definition, 2, &e);
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
            wrong(h->r, "destroy answers %s with %u uncollected", gpud_error_name(r), (unsigned)left);
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

_Noreturn void scenario_host(const struct scenario *s, struct report *r, bool strict, uint32_t storm_tasks)
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
    for (uint32_t i = 0; i < TASKS_MAX && i < 16 + storm_tasks; i++)
        if (given[i] && !seen[i]) {
            atomic_fetch_add(&r->lost, 1);
            wrong(r, "task %u has no outcome", i);
        }
    if (atomic_load(&fi_page->overlap))
        wrong(r, "a replacement's setup ran while its predecessor's daemon lived");
    leaks(r, files, tasks);
    atomic_store(&r->ended, 1);
    _exit(0);
}
