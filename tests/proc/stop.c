/* SPDX-License-Identifier: MIT */
/* stop.c - run and its ways to end early: stop, signals, faults of source and callbacks. */
#include "verbs.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


/* One run as the source and the callbacks see it. */
struct scene {
    struct t_log log;
    gpud_dispatcher *d;
    uint64_t pulled;    /* tasks the source gave */
    uint64_t last;      /* the source ends here */
    uint64_t act_at;    /* the callback acts at this outcome, counted from 1 */
    int raise_signal;
    int stop_how;       /* -1 = not */
    int pipe[2];        /* what a blocking source waits on */
    _Atomic int unblocked;
    unsigned threads;   /* without the feeder */
};

static int give(struct gpud_task_desc *task, size_t n, void *user)
{
    struct scene *s = user;

    (void)n;
    if (s->pulled == s->last)
        return 0;
    task->tag = s->pulled++;
    return 1;
}

static int take(const struct gpud_event *e, void *user)
{
    struct scene *s = user;

    (void)t_log_add(e, &s->log);
    if (e->kind != GPUD_EVENT_OUTCOME || t_log_count(&s->log, GPUD_EVENT_OUTCOME) != s->act_at)
        return 0;
    if (s->raise_signal)
        (void)raise(s->raise_signal);
    if (s->stop_how >= 0)
        T_OK(gpud_dispatcher_stop(s->d, (uint32_t)s->stop_how));
    return 0;
}

static void unblock(void *user)
{
    struct scene *s = user;

    atomic_fetch_add(&s->unblocked, 1);
    if (s->pipe[1])
        (void)!write(s->pipe[1], "x", 1);
}

static int run_scene(struct scene *s)
{
    return gpud_dispatcher_run(
        s->d, give,
        T_CALLBACKS(.on_success = take, .on_error = take, .on_event = take, .unblock = unblock), s,
        NULL);
}

static void open_scene(struct scene *s, const char *devices)
{
    s->d = T_CREATE(.devices = devices, .queue_size = 16);
}

static void check_all_delivered(const struct scene *s)
{
    t_check_exactly_once(&s->log, s->pulled);
}

static gpud_dispatcher *interrupted;

static void on_interrupt(int number)
{
    (void)number;
    (void)gpud_dispatcher_stop(interrupted, GPUD_FINISH_RUNNING);
}

/* C12: stop from a SIGINT handler: run returns ESTOPPED, every task that was pulled has its
 * outcome, nothing more is accepted. [G14] */
T_CASE(stop_from_a_signal_handler)
{
    struct sigaction action = { .sa_handler = on_interrupt }, old;
    struct scene s = { .last = UINT64_MAX, .act_at = 30, .raise_signal = SIGINT, .stop_how = -1 };

    t_init(NULL, t_process, NULL);
    open_scene(&s, "cpu:2");
    interrupted = s.d;
    T_EQ(sigaction(SIGINT, &action, &old), 0);
    T_CODE(run_scene(&s), ESTOPPED);
    T_EQ(sigaction(SIGINT, &old, NULL), 0);
    check_all_delivered(&s);
    T_CODE(gpud_dispatcher_submit(s.d, T_TASK(0), 0, NULL, NULL), ECLOSED);
    T_CODE(run_scene(&s), ECLOSED);
    t_end(&s.d, &s.log);
}

/* stop inside a callback, in each way. */
T_CASE(stop_from_a_callback)
{
    t_init(NULL, t_process, NULL);
    for (int how = GPUD_FINISH_ALL; how <= GPUD_FINISH_NOW; how++) {
        struct scene s = { .last = UINT64_MAX, .act_at = 10, .stop_how = how };

        open_scene(&s, "cpu:2");
        T_CODE(run_scene(&s), ESTOPPED);
        check_all_delivered(&s);
        /* Only the one in the source's hands at that moment may have come too late. */
        if (how == GPUD_FINISH_ALL)
            T_CMP(t_log_outcomes(&s.log, GPUD_OUTCOME_SUCCESS), >=, s.pulled - 1);
        t_destroy(&s.d, &s.log);
    }
    T_OK(gpud_fini());
}

static unsigned count_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    unsigned n = 0;

    T_CHECK(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        n += e->d_name[0] != '.';
    (void)closedir(dir);
    return n;
}

static int feeder_has_gone(void *user)
{
    const struct scene *s = user;

    return count_threads() <= s->threads;
}

static int stop_at_the_end(const struct gpud_event *e, void *user)
{
    struct scene *s = user;

    (void)t_log_add(e, &s->log);
    t_wait_until("the feeder has gone", feeder_has_gone, s);
    T_OK(gpud_dispatcher_stop(s->d, (uint32_t)s->stop_how));
    return 0;
}

/* A stop that comes when the last outcome is delivered is answered as any other, whoever looks at
 * it first. */
T_CASE(stop_with_the_last_outcome)
{
    t_init(NULL, t_process, NULL);
    T_EACH_DRIVE (drive) {
        struct scene s = { .last = 1, .stop_how = GPUD_FINISH_ALL };

        s.d = T_CREATE(.devices = "cpu:1", .drive = drive);
        s.threads = count_threads();
        T_CODE(gpud_dispatcher_run(s.d, give, T_CALLBACKS(.on_success = stop_at_the_end), &s, NULL),
               ESTOPPED);
        check_all_delivered(&s);
        T_CODE(gpud_dispatcher_submit(s.d, T_TASK(0), 0, NULL, NULL), ECLOSED);
        t_destroy(&s.d, &s.log);
    }
    T_OK(gpud_fini());
}

static int give_one_then_block(struct gpud_task_desc *task, size_t n, void *user)
{
    struct scene *s = user;
    char byte;

    (void)n;
    (void)task;
    if (s->pulled) {
        (void)t_word_add(T_STARTED);
        while (read(s->pipe[0], &byte, 1) != 1)
            ;
        return 0;
    }
    s->pulled = 1;
    return 1;
}

static void *stop_when_blocked(void *arg)
{
    struct scene *s = arg;

    t_word_wait(T_STARTED, 1);
    t_word_set(T_GATE, 1);
    atomic_store(&t_page->numbers[0], t_now());
    T_OK(gpud_dispatcher_stop(s->d, GPUD_FINISH_RUNNING));
    return NULL;
}

/* Stop while the source blocks: unblock is called once, on run's thread, and run returns. [G16] */
T_CASE(stop_while_the_source_blocks)
{
    struct scene s = { .stop_how = -1 };
    pthread_t thread;

    t_init(NULL, t_process, NULL);
    open_scene(&s, "cpu:1");
    T_EQ(pipe(s.pipe), 0);
    t_thread(&thread, stop_when_blocked, &s);
    T_CODE(gpud_dispatcher_run(
               s.d, give_one_then_block,
               T_CALLBACKS(.on_success = take, .on_error = take, .unblock = unblock), &s, NULL),
           ESTOPPED);
    T_CMP(t_now() - atomic_load(&t_page->numbers[0]), <, T_S(1));
    T_EQ(s.unblocked, 1);
    t_join(thread);
    check_all_delivered(&s);
    (void)close(s.pipe[0]);
    (void)close(s.pipe[1]);
    t_end(&s.d, &s.log);
}

/* A source that blocks delays neither delivery nor limits: the outcome of what it gave first comes.
 */
static int wake_source(const struct gpud_event *e, void *user)
{
    struct scene *s = user;

    (void)t_log_add(e, &s->log);
    (void)!write(s->pipe[1], "x", 1);
    return 0;
}

T_CASE(blocking_source_delays_nothing)
{
    struct scene s = { .stop_how = -1 };

    t_init(NULL, t_process, NULL);
    open_scene(&s, "cpu:1");
    T_EQ(pipe(s.pipe), 0);
    T_OK(gpud_dispatcher_run(s.d, give_one_then_block, T_CALLBACKS(.on_success = wake_source), &s,
                             NULL));
    check_all_delivered(&s);
    T_EQ(s.unblocked, 0);
    (void)close(s.pipe[0]);
    (void)close(s.pipe[1]);
    t_end(&s.d, &s.log);
}

/* stop NOW: what runs is cancelled. */
static int give_stubborn(struct gpud_task_desc *task, size_t n, void *user)
{
    struct scene *s = user;

    (void)n;
    if (s->pulled == 8)
        return 0;
    task->tag = s->pulled < 2 ? T_TAG(T_UNTIL_CANCELLED, s->pulled) : s->pulled;
    s->pulled++;
    return 1;
}

static void *stop_now_when_running(void *arg)
{
    struct scene *s = arg;

    t_word_wait(T_STARTED, 2);
    T_OK(gpud_dispatcher_stop(s->d, GPUD_FINISH_NOW));
    return NULL;
}

T_CASE(stop_now_cancels_what_runs)
{
    struct scene s = { .stop_how = -1 };
    pthread_t thread;

    t_init(NULL, t_process, NULL);
    open_scene(&s, "cpu:2");
    t_wait_ready(s.d, 2); /* so that each gets one of the two */
    t_thread(&thread, stop_now_when_running, &s);
    T_CODE(gpud_dispatcher_run(s.d, give_stubborn,
                               T_CALLBACKS(.on_success = take, .on_error = take), &s, NULL),
           ESTOPPED);
    t_join(thread);
    T_EQ(t_log_count(&s.log, GPUD_EVENT_OUTCOME), s.pulled);
    for (uint64_t n = 0; n < 2; n++) {
        const struct gpud_event *e = T_OUTCOME(&s.log, T_TAG(T_UNTIL_CANCELLED, n), CANCELLED);

        T_EQ(e->phase, GPUD_PHASE_PROCESS);
        T_EQ(e->code, GPUD_ECANCELLED);
        T_EQ(e->attempt, 1);
    }
    for (uint64_t n = 2; n < s.pulled; n++) {
        const struct gpud_event *e = T_OUTCOME(&s.log, n, CANCELLED);

        T_EQ(e->phase, GPUD_PHASE_QUEUED);
        T_EQ(e->attempt, 0);
    }
    T_EQ(t_stats(s.d).deaths, 0);
    t_end(&s.d, &s.log);
}

/* C16: what may be called in a callback, and what answers EREENTER there. */
static int call_everything(const struct gpud_event *e, void *user)
{
    struct scene *s = user;
    struct gpud_event event = GPUD_EVENT_INIT;
    gpud_dispatcher *d = s->d;
    uint64_t id = 0, uncollected = 99;

    (void)t_log_add(e, &s->log);
    if (s->act_at++)
        return 0;
    T_CODE(gpud_dispatcher_poll(d, &event, 1, 0), EREENTER);
    T_CODE(gpud_dispatcher_run(d, give, T_CALLBACKS(0), s, NULL), EREENTER);
    T_CODE(gpud_dispatcher_destroy(&d, &uncollected), EREENTER);
    T_CHECK(d == s->d);
    T_EQ(uncollected, 99);
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.tag = 1000), T_MS(1), NULL, NULL), EREENTER);
    T_OK(gpud_dispatcher_submit(d, T_TASK(.tag = s->last), 0, &id, NULL));
    T_CODE(gpud_dispatcher_cancel(d, id + 1000000, GPUD_CANCEL_HARD), ENOTFOUND);
    (void)t_stats(d);
    (void)t_slot(d, 0);
    return 0;
}

/* And the run goes on to its end.   [T20] */
T_CASE(calls_inside_a_callback)
{
    struct scene s = { .last = 5, .stop_how = -1 };

    t_init(NULL, t_process, NULL);
    open_scene(&s, "cpu:1");
    T_OK(gpud_dispatcher_run(s.d, give, T_CALLBACKS(.on_success = call_everything), &s, NULL));
    t_check_exactly_once(&s.log, 6);
    t_end(&s.d, &s.log);
}
