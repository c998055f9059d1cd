/* SPDX-License-Identifier: MIT */
/*
 * idle.c - idle is idle: no thread and no process of the library wakes up when nothing happens
 * [C20].
 *
 * Time itself is under test here, so these cases let a second pass and compare the kernel's counts
 * of context switches before and after.
 */
#include "fixture.h"
#include "rest.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STARTED, GATE };
enum { WORK, WAIT_FOR_GATE, FAIL };

static int process(gpud_task *t, void *state)
{
    (void)state;
    if (gpud_task_tag(t) == WAIT_FOR_GATE) {
        (void)t_word_add(STARTED);
        t_word_wait(GATE, 1);
    }
    return gpud_task_tag(t) == FAIL;
}

/* A stats reader wakes nobody. */
static void read_stats(void *d)
{
    (void)t_stats(d);
    (void)t_slot(d, 0);
}

static void expect_no_wakeups_for(gpud_dispatcher *d, unsigned tenths)
{
    t_expect_rest(tenths, read_stats, d);
}

static void expect_no_wakeups(gpud_dispatcher *d)
{
    expect_no_wakeups_for(d, 10);
}

/* C20: workers ready, nothing to do, nobody inside. */
T_CASE(nothing_to_do)
{
    T_EACH_DRIVE (drive) {
        struct t_log log = { 0 };
        gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:4", .drive = drive);

        for (uint64_t n = 0; n < 50; n++)
            /* nothing is left of that once they have ended */
            T_SUBMIT(d, .tag = WORK, .expires = T_S(1));
        t_collect(d, &log, 50);
        expect_no_wakeups(d);
        t_end(&d, &log);
    }
}

static void *poll_to_the_end(void *arg)
{
    struct t_log log = { 0 };

    while (t_poll(arg, &log, GPUD_NEVER) != GPUD_EEND)
        ;
    t_log_free(&log);
    return NULL;
}

/* C20: the times that the host set for each start, and for what it sent to a worker, go when they
 * are answered: none of them wakes it later.  All of them pass within 2 s here. */
T_CASE(from_the_start_on)
{
    T_EACH_DRIVE (drive) {
        pthread_t thread;
        gpud_dispatcher *d =
            T_BEGIN(NULL, process, .devices = "cpu:4", .drive = drive, .kill_limit = T_S(1));

        t_thread(&thread, poll_to_the_end, d);
        t_wait_ready(d, 4);
        for (uint64_t n = 0; n < 50; n++)
            T_SUBMIT(d, .tag = WORK);
        expect_no_wakeups_for(d, 25);
        T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
        t_join(thread);
        t_end(&d, NULL);
    }
}

/* C20: tasks run and wait, with far limits; a thread of the host is inside poll, or none is. */
static void busy_but_still(int inside)
{
    struct t_log log = { 0 };
    pthread_t thread;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .sent_ahead = 2);

    for (uint64_t n = 0; n < 2; n++)
        T_SUBMIT(d, .tag = WAIT_FOR_GATE, .limit = T_S(3600));
    t_word_wait(STARTED, 2);
    for (uint64_t n = 0; n < 20; n++)
        T_SUBMIT(d, .tag = WORK, .limit = T_S(3600), .expires = T_S(3600));
    if (inside)
        t_thread(&thread, poll_to_the_end, d);
    expect_no_wakeups(d);
    t_word_set(GATE, 1);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    if (inside)
        t_join(thread);
    else
        t_collect_rest(d, &log);
    t_end(&d, &log);
}

T_CASE(tasks_run_nobody_inside)
{
    busy_but_still(0);
}

T_CASE(tasks_run_and_a_thread_polls)
{
    busy_but_still(1);
}

/* A loop of the host. */
static void *loop_to_the_end(void *arg)
{
    struct t_log log = { 0 };
    struct pollfd p = { .fd = gpud_dispatcher_fd(arg), .events = POLLIN };
    int r;

    do {
        T_EQ(poll(&p, 1, -1), 1);
        while ((r = t_poll(arg, &log, 0)) > 0)
            ;
    } while (r != GPUD_EEND);
    t_log_free(&log);
    return NULL;
}

/* C20: the same with the fd in a loop of the host: idle, and while tasks run and wait. */
static void a_loop_waits(uint32_t drive)
{
    pthread_t thread;
    gpud_dispatcher *d;

    t_word_set(STARTED, 0);
    t_word_set(GATE, 0);
    d = T_BEGIN(NULL, process, .devices = "cpu:2", .sent_ahead = 2, .drive = drive);
    t_thread(&thread, loop_to_the_end, d);
    for (uint64_t n = 0; n < 50; n++)
        T_SUBMIT(d, .tag = WORK);
    expect_no_wakeups(d);
    for (uint64_t n = 0; n < 2; n++)
        T_SUBMIT(d, .tag = WAIT_FOR_GATE, .limit = T_S(3600));
    t_word_wait(STARTED, 2);
    for (uint64_t n = 0; n < 20; n++)
        T_SUBMIT(d, .tag = WORK, .limit = T_S(3600));
    expect_no_wakeups(d);
    t_word_set(GATE, 1);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    t_join(thread);
    t_end(&d, NULL);
}

T_CASE(a_loop_waits_at_the_fd)
{
    a_loop_waits(GPUD_DRIVE_THREAD);
    a_loop_waits(GPUD_DRIVE_CALLER);
}

/* Times that threads other than this one have gone to sleep. */
static int64_t sleeps_of_others(void)
{
    struct rusage all, mine;

    T_EQ(getrusage(RUSAGE_SELF, &all), 0);
    T_EQ(getrusage(RUSAGE_THREAD, &mine), 0);
    return all.ru_nvcsw - mine.ru_nvcsw;
}

enum { TASKS = 100000 };

static int all_have_ended(void *d)
{
    return t_stats(d).success == TASKS;
}

/* C20: a thread that fetches events in a loop drives, and does not wake the library thread each
 * time. */
T_CASE(a_loop_fetches)
{
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .sent_ahead = 64, .queue_size = TASKS);
    int64_t before;
    uint64_t start;

    for (uint64_t n = 0; n < TASKS; n++)
        T_SUBMIT(d, .tag = WORK);
    t_wait_until("all have ended", all_have_ended, d);
    t_expect_rest(1, NULL, NULL); /* the library thread drives */
    start = t_now();
    before = sleeps_of_others();
    for (unsigned n = 0; n < TASKS; n++) {
        struct gpud_event e = GPUD_EVENT_INIT;

        T_EQ(gpud_dispatcher_poll(d, &e, 1, 0), 1);
    }
    before = sleeps_of_others() - before;
    printf("%d sleeps in %.3f ms\n", (int)before, (double)(t_now() - start) / 1e6);
    T_CMP(before, <, 100 + 8 * (t_now() - start) / T_MS(1));
    t_end(&d, NULL);
}

static void *wait_for_one(void *arg)
{
    struct gpud_event e = GPUD_EVENT_INIT;
    uint64_t id = atomic_fetch_add(&t_page->numbers[0], 0);

    if (atomic_fetch_add(&t_page->numbers[1], 1))
        id = atomic_load(&t_page->numbers[2]);
    T_OK(gpud_dispatcher_wait(arg, id, &e, GPUD_NEVER, NULL));
    T_OK(gpud_event_release(&e));
    return NULL;
}

/* C20: threads inside wait, one of which drives. */
T_CASE(threads_wait)
{
    T_EACH_DRIVE (drive) {
        pthread_t thread[2];
        gpud_dispatcher *d;

        t_word_set(STARTED, 0);
        t_word_set(GATE, 0);
        atomic_store(&t_page->numbers[1], 0);
        d = T_BEGIN(NULL, process, .devices = "cpu:2", .drive = drive);
        for (unsigned n = 0; n < 2; n++)
            atomic_store(&t_page->numbers[2 * n],
                         t_submit(d, T_TASK(.tag = WAIT_FOR_GATE, .awaited = 1)));
        for (unsigned n = 0; n < 2; n++)
            t_thread(&thread[n], wait_for_one, d);
        t_word_wait(STARTED, 2);
        expect_no_wakeups(d);
        t_word_set(GATE, 1);
        for (unsigned n = 0; n < 2; n++)
            t_join(thread[n]);
        t_end(&d, NULL);
    }
}

/* C20: after a timeout the alarm of the worker falls silent. */
static int sleep_past_limit(gpud_task *t, void *state)
{
    (void)state;
    while (gpud_task_tag(t) && !gpud_task_expired(t))
        t_pass(T_MS(5));
    return 0;
}

T_CASE(after_a_timeout)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, sleep_past_limit, .devices = "cpu:1", .grace = T_S(60));

    (void)T_RUN(d, &log, TIMEOUT, .tag = 1, .limit = T_MS(20));
    expect_no_wakeups(d);
    t_end(&d, &log);
}

/* C20: a task that waits for its retry wakes nobody before it is due. */
T_CASE(a_retry_is_far)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .max_attempts = 2,
                                 .retry_causes = GPUD_RETRY_ERROR, .retry_backoff = T_S(3600),
                                 .retry_backoff_cap = T_S(3600));

    for (uint64_t n = 0; n < 20; n++)
        T_SUBMIT(d, .tag = FAIL);
    expect_no_wakeups(d);
    T_EQ(t_stats(d).deferred, 20);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_RUNNING, 0));
    t_collect_rest(d, &log);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_CANCELLED), 20);
    t_end(&d, &log);
}

static uint64_t cpu_time(pid_t pid)
{
    unsigned long long ns = 0;
    char path[64];
    FILE *in;

    (void)snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    in = fopen(path, "re");
    if (!in || fscanf(in, "%llu", &ns) != 1)
        t_skip("this kernel counts no CPU time in /proc/PID/schedstat");
    (void)fclose(in);
    return ns;
}

/* C20: after setup, and after several tasks at a time, a worker looks on for more, and not for
 * long. */
T_CASE(looks_on_for_a_moment)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .sent_ahead = 64);
    struct t_proc w;
    uint64_t before;

    t_wait_ready(d, 1);
    w = t_worker(d, 0);
    t_expect_rest(1, NULL, NULL);
    T_CMP(cpu_time(w.pid), <, T_MS(100)); /* its birth, and 0.1 ms */
    before = cpu_time(w.pid);
    for (uint64_t n = 0; n < 10; n++) {
        for (uint64_t i = 0; i < 20; i++)
            T_SUBMIT(d, .tag = WORK);
        t_collect(d, &log, (n + 1) * 20);
        t_expect_rest(1, NULL, NULL);
    }
    /* 200 tasks, and ten times 0.03 ms */
    T_CMP(cpu_time(w.pid) - before, <, T_MS(T_SANITIZED ? 100 : 20));
    t_end(&d, &log);
}

/* C20: eight workers, idle for T_IDLE_S seconds [2]: no wakeup; and then a task is taken up at
 * once. (Of forty tries one is enough: the others may have waited for a CPU.) [T19] */
T_LONG_CASE(eight_workers, 4000)
{
    const char *seconds = getenv("T_IDLE_S");
    const uint64_t enough = T_SANITIZED ? T_MS(100) : T_MS(1);
    uint64_t least = GPUD_NEVER;
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:8");

    t_wait_ready(d, 8);
    for (uint64_t n = 0; n < 40 && least >= enough; n++) {
        uint64_t start;

        expect_no_wakeups_for(d, n ? 1 : 10 * (unsigned)(seconds ? atoi(seconds) : 2));
        start = t_now();
        T_SUBMIT(d, .tag = WORK);
        t_collect(d, &log, n + 1);
        start = t_now() - start;
        least = start < least ? start : least;
        printf("a task after idling took %.3f ms\n", (double)start / 1e6);
    }
    T_CMP(least, <, enough);
    t_end(&d, &log);
}
