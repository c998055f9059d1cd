/* SPDX-License-Identifier: MIT */
/*
 * ancestor.c - the scenarios in which the Python package that came before this library hung, lied
 * or lost something, and what happens in them now: those that no other test plays to the end. Each
 * case carries the number of its scenario.
 */
#include "verbs.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WHO = T_VERBS };

enum { INSIDE };
enum { CALLBACK_AT }; /* numbers */

static int setup(gpud_worker *w, void **ret_state)
{
    *ret_state = w;
    return 0;
}

struct who {
    uint64_t seed;
    uint32_t slot;
    char device[32];
};

static int process(gpud_task *t, void *state)
{
    struct who w = { .seed = gpud_worker_seed(state), .slot = gpud_worker_slot(state) };

    if (gpud_task_tag(t) >> 32 != WHO)
        return t_process(t, state);
    (void)t_word_add(T_STARTED);
    t_word_wait(T_STARTED, 2); /* so that each worker gets one */
    (void)snprintf(w.device, sizeof(w.device), "%s", gpud_worker_device(state));
    return gpud_task_result_set(t, &w, sizeof(w));
}

/* A run of tasks in which number `odd` is of another kind. */
struct run {
    struct t_log log;
    gpud_dispatcher *d;
    uint64_t pulled, last, odd, odd_tag;
};

static int give(struct gpud_task_desc *task, size_t n, void *user)
{
    struct run *r = user;

    (void)n;
    if (r->pulled == r->last)
        return 0;
    task->tag = r->pulled == r->odd ? r->odd_tag : r->pulled;
    r->pulled++;
    return 1;
}

static int take(const struct gpud_event *e, void *user)
{
    return t_log_add(e, &((struct run *)user)->log);
}

/* Two workers of the same device are told apart: by slot and by seed. [G13] */
T_CASE(same_device_twice)
{
    struct t_log log = { 0 };
    struct who w[2];
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:1/2", .seed = 42);

    for (uint64_t n = 0; n < 2; n++)
        T_SUBMIT(d, .tag = T_TAG(WHO, n));
    t_collect(d, &log, 2);
    for (uint64_t n = 0; n < 2; n++) {
        const struct gpud_event *e = T_OUTCOME(&log, T_TAG(WHO, n), SUCCESS);

        T_EQ(e->result_size, sizeof(w[n]));
        memcpy(&w[n], e->result, sizeof(w[n]));
        T_TEXT(w[n].device, "cpu:0");
        T_EQ(w[n].seed, 42 + w[n].slot);
        T_EQ(w[n].slot, e->slot);
    }
    T_CMP(w[0].slot, !=, w[1].slot);
    T_CMP(w[0].seed, !=, w[1].seed);
    t_end(&d, &log);
}

static gpud_dispatcher *interrupted;

static void on_interrupt(int number)
{
    (void)number;
    (void)gpud_dispatcher_stop(interrupted, GPUD_FINISH_NOW);
}

static void *interrupt_when_started(void *arg)
{
    (void)arg;
    t_word_wait(T_STARTED, 1);
    (void)kill(getpid(), SIGINT);
    return NULL;
}

/* C12: SIGINT while a task of 30 s runs and others wait: run returns, each that was pulled has its
 * outcome, the running one too. [G14] */
T_CASE(interrupted_while_one_runs)
{
    struct sigaction action = { .sa_handler = on_interrupt }, old;
    struct run r = { .last = UINT64_MAX, .odd = 0, .odd_tag = T_TAG(T_UNTIL_CANCELLED, 0) };
    pthread_t thread;
    uint64_t start;

    t_init(setup, process, NULL);
    interrupted = r.d = T_CREATE(.devices = "cpu:1", .queue_size = 16);
    T_EQ(sigaction(SIGINT, &action, &old), 0);
    t_thread(&thread, interrupt_when_started, NULL);
    start = t_now();
    T_CODE(
        gpud_dispatcher_run(r.d, give, T_CALLBACKS(.on_success = take, .on_error = take), &r, NULL),
        ESTOPPED);
    T_CMP(t_now() - start, <, T_S(10));
    t_join(thread);
    T_EQ(sigaction(SIGINT, &old, NULL), 0);
    T_EQ(t_log_count(&r.log, GPUD_EVENT_OUTCOME), r.pulled);
    T_EQ(T_OUTCOME(&r.log, T_TAG(T_UNTIL_CANCELLED, 0), CANCELLED)->attempt, 1);
    for (uint64_t n = 1; n < r.pulled; n++)
        T_EQ(T_OUTCOME(&r.log, n, CANCELLED)->attempt, 0);
    T_EQ(t_stats(r.d).deaths, 0);
    t_end(&r.d, &r.log);
}

static int block_in_source(struct gpud_task_desc *task, size_t n, void *user)
{
    struct run *r = user;

    (void)n;
    (void)task;
    if (r->pulled)
        t_word_wait(INSIDE, 1);
    task->tag = r->pulled;
    if (!r->pulled++)
        return 1;
    return 0;
}

static void wake_source(void *user)
{
    (void)user;
    (void)t_word_add(INSIDE);
}

static int interrupt_here(const struct gpud_event *e, void *user)
{
    (void)take(e, user);
    atomic_store(&t_page->numbers[CALLBACK_AT], t_now());
    return raise(SIGINT);
}

/* C12: SIGINT while the source blocks: run wakes it and returns. [G16] */
T_CASE(interrupted_while_the_source_blocks)
{
    struct sigaction action = { .sa_handler = on_interrupt }, old;
    struct run r = { .pulled = 0 };

    t_init(setup, process, NULL);
    interrupted = r.d = T_CREATE(.devices = "cpu:1");
    T_EQ(sigaction(SIGINT, &action, &old), 0);
    T_CODE(gpud_dispatcher_run(r.d, block_in_source,
                               T_CALLBACKS(.on_success = interrupt_here, .unblock = wake_source),
                               &r, NULL),
           ESTOPPED);
    T_CMP(t_now() - atomic_load(&t_page->numbers[CALLBACK_AT]), <, T_S(1));
    T_EQ(sigaction(SIGINT, &old, NULL), 0);
    T_EQ(t_log_outcomes(&r.log, GPUD_OUTCOME_SUCCESS), 1);
    t_end(&r.d, &r.log);
}

static void *run_here(void *arg)
{
    struct run *r = arg;

    r->d = T_CREATE(.devices = "cpu:2");
    T_OK(gpud_dispatcher_run(r->d, give, T_CALLBACKS(.on_success = take, .on_error = take), r,
                             NULL));
    return NULL;
}

/* C13 C16: create and run on a thread that is not the first: no signal is installed, nothing is
 * refused. [G17] */
T_CASE(run_on_another_thread)
{
    struct run r = { .last = 100, .odd = 100 };
    struct sigaction before, after;
    pthread_t thread;

    t_init(setup, process, NULL);
    T_EQ(sigaction(SIGINT, NULL, &before), 0);
    t_thread(&thread, run_here, &r);
    t_join(thread);
    T_EQ(sigaction(SIGINT, NULL, &after), 0);
    T_CHECK(before.sa_handler == after.sa_handler);
    t_check_exactly_once(&r.log, 100);
    t_end(&r.d, &r.log);
}

enum { QUEUE = 32, SLOW = 300 };

struct slow {
    uint64_t taken, most;
    _Atomic uint64_t given;
};

static int give_counted(struct gpud_task_desc *task, size_t n, void *user)
{
    struct slow *s = user;

    (void)n;
    if (atomic_load(&s->given) == SLOW)
        return 0;
    task->tag = atomic_fetch_add(&s->given, 1);
    return 1;
}

static int take_slowly(const struct gpud_event *e, void *user)
{
    struct slow *s = user;
    uint64_t open = atomic_load(&s->given) - s->taken;

    (void)e;
    s->taken++;
    s->most = open > s->most ? open : s->most;
    t_pass(T_MS(1)); /* the workers are far quicker */
    return 0;
}

/* C18: a callback slower than the workers holds the source back: never more is open than the queue
 * holds, what run has taken out of it for the callbacks (at most as much), and the task the source
 * has in hand. [G19] [T18] */
T_CASE(slow_callback_is_bounded)
{
    struct slow s = { 0 };
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:2", .queue_size = QUEUE);

    T_OK(gpud_dispatcher_run(d, give_counted, T_CALLBACKS(.on_success = take_slowly), &s, NULL));
    T_EQ(s.taken, SLOW);
    printf("at most %u were open\n", (unsigned)s.most);
    T_CMP(s.most, >=, QUEUE / 2);
    T_CMP(s.most, <=, 2 * QUEUE + 1);
    t_end(&d, NULL);
}

/* A worker that died is not "processing" in the stats: its row has no task and no process until the
 * next life, which is counted. [G20] */
T_CASE(stats_of_the_dead)
{
    struct gpud_slot_stats row;
    struct t_log log = { 0 };
    struct t_proc worker;
    gpud_dispatcher *d =
        T_BEGIN(setup, process, .devices = "cpu:1", .backoff = T_S(3600), .backoff_cap = T_S(3600));

    T_SUBMIT_STARTED(d, .tag = T_TAG(T_UNTIL_CANCELLED, 0), .label = "doomed");
    row = t_slot(d, 0);
    T_EQ(row.state, GPUD_SLOT_BUSY);
    T_CHECK(row.task_id);
    T_TEXT(row.label, "doomed");
    worker = t_worker(d, 0);
    t_kill(worker.pid, SIGKILL);
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, T_TAG(T_UNTIL_CANCELLED, 0), CRASHED);
    row = t_slot(d, 0);
    T_CMP(row.state, !=, GPUD_SLOT_BUSY);
    T_EQ(row.task_id, 0);
    T_TEXT(row.label, "");
    T_CMP(row.pid, !=, worker.pid);
    T_EQ(row.outcomes[GPUD_OUTCOME_CRASHED], 1);
    t_wait_ready(d, 1);
    row = t_slot(d, 0);
    T_EQ(row.incarnation, 2);
    T_EQ(row.restarts, 1);
    T_EQ(t_stats(d).deaths, 1);
    /* Between tasks the slot is charged, and waits. */
    worker = t_worker(d, 0);
    t_kill(worker.pid, SIGKILL);
    t_wait_slot(d, 0, GPUD_SLOT_BACKOFF);
    row = t_slot(d, 0);
    T_EQ(row.pid, 0);
    T_EQ(row.task_id, 0);
    T_EQ(t_stats(d).slots_ready, 0);
    T_EQ(t_stats(d).deaths, 2);
    t_end(&d, &log);
}
