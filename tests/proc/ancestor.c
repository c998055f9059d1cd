/* SPDX-License-Identifier: MIT */
/*
 * ancestor.c - the scenarios in which the Python package that came before this library hung, lied
 * or lost something, and what happens in them now: those that no other test plays to the end. Each
 * case carries the number of its scenario.
 */
#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum verb {
    WORK,
    KILL,          /* SIGKILL in process */
    EXIT,          /* exit(1) in process */
    NO_RESULT,     /* a result that cannot be made */
    /* works for so many microseconds, whatever interrupts; says when it first saw its limit */
    BURN,
    FOUR_SLEEPS,   /* goes on after each interruption and returns success */
    ONE_LONG_CALL, /* one call of the system, 100 s */
    UNTIL_CANCELLED,
    WHO
};
#define TAG(verb, n) ((uint64_t)(verb) << 32 | (uint64_t)(n))

enum { STARTED, INSIDE };
enum { SETUP_TAKES, CALLBACK_AT }; /* numbers */

static void nap(uint64_t duration)
{
    const struct timespec t = { (time_t)(duration / 1000000000U), (long)(duration % 1000000000U) };

    (void)nanosleep(&t, NULL);
}

static int setup(gpud_worker *w, void **ret_state)
{
    uint64_t until = t_now() + atomic_load(&t_page->numbers[SETUP_TAKES]);

    *ret_state = w;
    while (t_now() < until)
        nap(until - t_now());
    return 0;
}

struct who {
    uint64_t seed;
    uint32_t slot;
    char device[32];
};

static int process(gpud_task *t, void *state)
{
    uint64_t n = gpud_task_tag(t) & 0xffffffffU, start = t_now(), seen = 0;
    void *room;

    switch ((enum verb)(gpud_task_tag(t) >> 32)) {
    case WORK:
        return 0;
    case KILL:
        (void)raise(SIGKILL);
        return -1;
    case EXIT:
        exit(1);
    case NO_RESULT:
        return gpud_task_result_alloc(t, (size_t)1 << 40, &room);
    case BURN:
        while (t_now() < start + T_US(n))
            if (!seen && gpud_task_expired(t))
                seen = t_now();
        return gpud_task_result_set(t, &seen, sizeof(seen));
    case FOUR_SLEEPS:
        for (int i = 1; i <= 4; i++) {
            nap(T_US(n));
            while (t_now() < start + (uint64_t)i * T_US(n)) /* interrupted: sleeps on */
                nap(start + (uint64_t)i * T_US(n) - t_now());
        }
        return 0;
    case ONE_LONG_CALL:
        nap(T_S(100));
        return 0;
    case UNTIL_CANCELLED:
        (void)t_word_add(STARTED);
        while (!gpud_task_cancelled(t))
            nap(T_S(30));
        return 0;
    case WHO: {
        struct who w = { .seed = gpud_worker_seed(state), .slot = gpud_worker_slot(state) };

        (void)t_word_add(STARTED);
        t_word_wait(STARTED, 2); /* so that each worker gets one */
        (void)snprintf(w.device, sizeof(w.device), "%s", gpud_worker_device(state));
        return gpud_task_result_set(t, &w, sizeof(w));
    }
    }
    return -1;
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

/* Runs 100 tasks of which one is odd, and gives that one's outcome; all others succeed. */
static const struct gpud_event *run_with(struct run *r, const char *devices, uint64_t odd_tag)
{
    *r = (struct run){ .last = 100, .odd = 50, .odd_tag = odd_tag };
    r->d = t_create(T_OPTIONS(.devices = devices, .payload_budget = 16u << 20));
    T_OK(gpud_dispatcher_run(r->d, give, T_CALLBACKS(.on_success = take, .on_error = take), r,
                             NULL));
    T_EQ(t_log_count(&r->log, GPUD_EVENT_OUTCOME), 100);
    T_EQ(t_log_outcomes(&r->log, GPUD_OUTCOME_SUCCESS), 99);
    return t_check_outcome(__FILE__, __LINE__, &r->log, odd_tag, 0);
}

/* ---- workers that end ---- */

/* C1 C8: SIGKILL in process, with one worker and with two: run returns, one outcome says so. [G1]
 */
T_CASE(killed_in_process)
{
    t_init(setup, process, NULL);
    for (int i = 0; i < 2; i++) {
        struct run r;
        const struct gpud_event *e = run_with(&r, i ? "cpu:2" : "cpu:1", TAG(KILL, 0));

        T_EQ(e->outcome, GPUD_OUTCOME_CRASHED);
        T_EQ(e->exit_kind, GPUD_EXIT_SIGNAL);
        T_EQ(e->exit_status, SIGKILL);
        t_destroy(&r.d, &r.log);
    }
    T_OK(gpud_fini());
}

/* C1 C8: exit(1) in process is a crash with that status, and run returns. [G2] */
T_CASE(exit_in_process)
{
    t_init(setup, process, NULL);
    for (int i = 0; i < 2; i++) {
        struct run r;
        const struct gpud_event *e = run_with(&r, i ? "cpu:2" : "cpu:1", TAG(EXIT, 0));

        T_EQ(e->outcome, GPUD_OUTCOME_CRASHED);
        T_EQ(e->exit_kind, GPUD_EXIT_CODE);
        T_EQ(e->exit_status, 1);
        t_destroy(&r.d, &r.log);
    }
    T_OK(gpud_fini());
}

/* C18: a result that cannot be made is an ERROR with its own code, the worker goes on, run returns.
 * [G3] */
T_CASE(result_that_cannot_be_made)
{
    const struct gpud_event *e;
    struct run r;

    t_init(setup, process, NULL);
    e = run_with(&r, "cpu:1", TAG(NO_RESULT, 0));
    T_EQ(e->outcome, GPUD_OUTCOME_ERROR);
    T_EQ(e->code, GPUD_ERESULTSPACE);
    T_EQ(t_stats(r.d).deaths, 0);
    t_end(&r.d, &r.log);
}

/* C6: setup has a limit of its own: past it, it is killed and told; within it, a short task limit
 * does not touch it. [G4] */
T_CASE(setup_that_blocks)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;
    uint64_t start;

    t_init(setup, process, NULL);
    atomic_store(&t_page->numbers[SETUP_TAKES], T_S(30));
    start = t_now();
    d = t_create(T_OPTIONS(.devices = "cpu:1", .setup_limit = T_MS(100), .failures_in_a_row = 1,
                           .task_limit = T_S(1)));
    (void)t_submit(d, T_TASK(.tag = 1));
    t_collect(d, &log, 1);
    T_CMP(t_now() - start, <, T_S(10));
    (void)T_OUTCOME(&log, 1, NO_WORKER);
    e = t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 0);
    T_CHECK(e);
    T_EQ(e->phase, GPUD_PHASE_SETUP);
    T_EQ(e->code, GPUD_ETIMEOUT);
    t_destroy(&d, &log);

    atomic_store(&t_page->numbers[SETUP_TAKES], T_MS(300));
    d = t_create(T_OPTIONS(.devices = "cpu:1", .task_limit = T_MS(200)));
    (void)t_submit(d, T_TASK(.tag = 1));
    t_collect(d, &log, 1);
    T_EQ(T_OUTCOME(&log, 1, SUCCESS)->attempt, 1);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 0);
    t_end(&d, &log);
}

/* ---- limits ---- */

/* C6 C7: 1.3 s of work with a limit of 1.4 s, and the same scaled: the limit is never seen early,
 * and what ended before it is a success. [G5] [G18] */
T_CASE(just_in_time)
{
    /* the limit is 14/13 of it */
    static const uint32_t work_us[] = { 1300000, 130000, 13000, 1300 };
    enum { TASKS = 16 };
    struct t_log log = { 0 };
    unsigned in_time = 0;
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:2", .grace = T_S(60)));
    for (uint64_t n = 0; n < TASKS; n++) {
        uint64_t work = work_us[n < 2 ? 0 : 1 + n % 3];

        (void)t_submit(d, T_TASK(.tag = TAG(BURN, work), .limit = T_US(work / 13 * 14)));
    }
    t_collect(d, &log, TASKS);
    for (size_t i = 0; i < log.count; i++) {
        const struct gpud_event *e = &log.list[i];
        uint64_t deadline, seen;

        if (e->kind != GPUD_EVENT_OUTCOME)
            continue;
        deadline = e->started_at + T_US((e->tag & 0xffffffffU) / 13 * 14);
        T_EQ(e->result_size, sizeof(seen));
        seen = *(const uint64_t *)e->result;
        T_EQ(e->outcome, e->ended_at < deadline ? GPUD_OUTCOME_SUCCESS : GPUD_OUTCOME_TIMEOUT);
        T_CHECK(!seen || seen >= deadline);
        in_time += e->ended_at < deadline;
    }
    T_EQ(t_log_count(&log, GPUD_EVENT_OUTCOME), TASKS);
    printf("%u of %d in time\n", in_time, TASKS);
    T_CMP(in_time, >, 0);
    t_end(&d, &log);
}

/* C6 C7: 0.8 s of work with a limit of 0.2 s is late, and hears of it long before a second is over.
 * [G6] */
T_CASE(below_a_second)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    uint64_t seen;
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .grace = T_S(60)));
    (void)t_submit(d, T_TASK(.tag = TAG(BURN, 800000), .limit = T_MS(200)));
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, TAG(BURN, 800000), TIMEOUT);
    T_EQ(e->phase, GPUD_PHASE_PROCESS);
    seen = *(const uint64_t *)e->result;
    T_CMP(seen, >=, e->started_at + T_MS(200));
    T_CMP(seen, <, e->started_at + T_MS(700));
    t_end(&d, &log);
}

/* C7: a process that swallows every interruption and returns success four times too late is
 * TIMEOUT; its worker goes on. [G7] */
T_CASE(swallowed)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .grace = T_S(60)));
    (void)t_submit(d, T_TASK(.tag = TAG(FOUR_SLEEPS, 60000), .limit = T_MS(60)));
    (void)t_submit(d, T_TASK(.tag = 1));
    t_collect(d, &log, 2);
    e = T_OUTCOME(&log, TAG(FOUR_SLEEPS, 60000), TIMEOUT);
    T_EQ(e->phase, GPUD_PHASE_PROCESS);
    T_CMP(e->ended_at, >=, e->started_at + T_MS(240));
    T_EQ(T_OUTCOME(&log, 1, SUCCESS)->incarnation, 1);
    t_end(&d, &log);
}

/* C6: one long call of the system ends at the limit, not when it would have ended by itself. [G8]
 */
T_CASE(one_long_call)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .grace = T_S(60)));
    (void)t_submit(d, T_TASK(.tag = TAG(ONE_LONG_CALL, 0), .limit = T_MS(100)));
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, TAG(ONE_LONG_CALL, 0), TIMEOUT);
    T_EQ(e->phase, GPUD_PHASE_PROCESS);
    T_CMP(e->ended_at, >=, e->started_at + T_MS(100));
    T_CMP(e->ended_at, <, e->started_at + T_S(2));
    T_EQ(t_stats(d).deaths, 0);
    t_end(&d, &log);
}

/* ---- run ---- */

/* Two workers of the same device are told apart: by slot and by seed. [G13] */
T_CASE(same_device_twice)
{
    struct t_log log = { 0 };
    struct who w[2];
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:1/2", .seed = 42));
    for (uint64_t n = 0; n < 2; n++)
        (void)t_submit(d, T_TASK(.tag = TAG(WHO, n)));
    t_collect(d, &log, 2);
    for (uint64_t n = 0; n < 2; n++) {
        const struct gpud_event *e = T_OUTCOME(&log, TAG(WHO, n), SUCCESS);

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
    t_word_wait(STARTED, 1);
    (void)kill(getpid(), SIGINT);
    return NULL;
}

/* C12: SIGINT while a task of 30 s runs and others wait: run returns, each that was pulled has its
 * outcome, the running one too. [G14] */
T_CASE(interrupted_while_one_runs)
{
    struct sigaction action = { .sa_handler = on_interrupt }, old;
    struct run r = { .last = UINT64_MAX, .odd = 0, .odd_tag = TAG(UNTIL_CANCELLED, 0) };
    pthread_t thread;
    uint64_t start;

    t_init(setup, process, NULL);
    interrupted = r.d = t_create(T_OPTIONS(.devices = "cpu:1", .queue_size = 16));
    T_EQ(sigaction(SIGINT, &action, &old), 0);
    T_EQ(pthread_create(&thread, NULL, interrupt_when_started, NULL), 0);
    start = t_now();
    T_CODE(
        gpud_dispatcher_run(r.d, give, T_CALLBACKS(.on_success = take, .on_error = take), &r, NULL),
        ESTOPPED);
    T_CMP(t_now() - start, <, T_S(10));
    T_EQ(pthread_join(thread, NULL), 0);
    T_EQ(sigaction(SIGINT, &old, NULL), 0);
    T_EQ(t_log_count(&r.log, GPUD_EVENT_OUTCOME), r.pulled);
    T_EQ(T_OUTCOME(&r.log, TAG(UNTIL_CANCELLED, 0), CANCELLED)->attempt, 1);
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
    interrupted = r.d = t_create(T_OPTIONS(.devices = "cpu:1"));
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

    r->d = t_create(T_OPTIONS(.devices = "cpu:2"));
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
    T_EQ(pthread_create(&thread, NULL, run_here, &r), 0);
    T_EQ(pthread_join(thread, NULL), 0);
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
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:2", .queue_size = QUEUE));
    T_OK(gpud_dispatcher_run(d, give_counted, T_CALLBACKS(.on_success = take_slowly), &s, NULL));
    T_EQ(s.taken, SLOW);
    printf("at most %u were open\n", (unsigned)s.most);
    T_CMP(s.most, >=, QUEUE / 2);
    T_CMP(s.most, <=, 2 * QUEUE + 1);
    t_end(&d, NULL);
}

/* ---- stats ---- */

/* A worker that died is not "processing" in the stats: its row has no task and no process until the
 * next life, which is counted. [G20] */
T_CASE(stats_of_the_dead)
{
    struct gpud_slot_stats row;
    struct t_log log = { 0 };
    struct t_proc worker;
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .backoff = T_S(3600), .backoff_cap = T_S(3600)));
    (void)t_submit(d, T_TASK(.tag = TAG(UNTIL_CANCELLED, 0), .label = "doomed"));
    t_word_wait(STARTED, 1);
    row = t_slot(d, 0);
    T_EQ(row.state, GPUD_SLOT_BUSY);
    T_CHECK(row.task_id);
    T_TEXT(row.label, "doomed");
    worker = t_worker(d, 0);
    T_EQ(kill(worker.pid, SIGKILL), 0);
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, TAG(UNTIL_CANCELLED, 0), CRASHED);
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
    T_EQ(kill(worker.pid, SIGKILL), 0);
    t_wait_slot(d, 0, GPUD_SLOT_BACKOFF);
    row = t_slot(d, 0);
    T_EQ(row.pid, 0);
    T_EQ(row.task_id, 0);
    T_EQ(t_stats(d).slots_ready, 0);
    T_EQ(t_stats(d).deaths, 2);
    t_end(&d, &log);
}
