/* SPDX-License-Identifier: MIT */
/*
 * field.c - how such pools fail in the field, and what we owe instead: the statements that no other
 * test shows, or not to the full.  Each case carries the number of its statement.
 */
#include "verbs.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BURNS = T_VERBS, /* notes its process, then burns with all signals blocked */
    LARGE_RESULT
};

enum { SETUP_FAILS, NOT_REAPED, INSIDE };
enum { LIFE_OF_SLOT = 16, PROCESS_OF = 64 };

/* Notes its process, and whether the one before it in the slot is there still. */
static int setup(gpud_worker *w, void **ret_state)
{
    _Atomic uint64_t *life = &t_page->numbers[LIFE_OF_SLOT + gpud_worker_slot(w)];
    uint64_t before = atomic_exchange(life, (uint64_t)getpid());

    (void)ret_state;
    if (before && (!kill((pid_t)before, 0) || errno != ESRCH))
        (void)t_word_add(NOT_REAPED);
    return (int)t_word(SETUP_FAILS);
}

static int process(gpud_task *t, void *state)
{
    uint64_t n = gpud_task_tag(t) & 0xffffffffU;
    void *room;

    switch (gpud_task_tag(t) >> 32) {
    case BURNS:
        atomic_store(&t_page->numbers[PROCESS_OF + n], (uint64_t)getpid());
        t_block_signals();
        (void)t_word_add(T_STARTED);
        for (;;)
            ;
    case LARGE_RESULT:
        return gpud_task_result_alloc(t, 100000, &room);
    default:
        return t_process(t, state);
    }
}

/* ---- T1 ---- */

enum { RING = 4096, QUEUE = 256 };
#define PATIENCE_OF_A_WAIT T_MS(100)

struct storm {
    gpud_dispatcher *d;
    unsigned workers, kills;
    uint64_t random, pulled, ended;
    _Atomic uint64_t open[RING]; /* tag + 1 of a task that has been given and has not ended */
    _Atomic int over;
    unsigned late; /* waits beside the run that took more than 1 s too long */
};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Most tasks are empty, some last up to 1 ms, so that kills hit running ones and idle workers. */
static int work_a_little(gpud_task *t, void *state)
{
    uint64_t n = gpud_task_tag(t) * 2654435761u;

    (void)state;
    if (n % 16 == 0)
        t_pass(n / 16 % T_MS(1));
    return 0;
}

static int give_until_over(struct gpud_task_desc *task, size_t n, void *user)
{
    struct storm *s = user;
    uint64_t start = t_now();

    (void)n;
    if (atomic_load(&s->over))
        return 0;
    task->tag = s->pulled++;
    /* one that has run for long keeps its place */
    while (atomic_load(&s->open[task->tag % RING])) {
        T_CMP(t_now() - start, <, T_PATIENCE);
        t_pass(T_US(100));
    }
    atomic_store(&s->open[task->tag % RING], task->tag + 1);
    return 1;
}

static int end_once(const struct gpud_event *e, void *user)
{
    struct storm *s = user;

    T_CHECK(e->outcome == GPUD_OUTCOME_SUCCESS || e->outcome == GPUD_OUTCOME_CRASHED);
    T_EQ(atomic_exchange(&s->open[e->tag % RING], 0), e->tag + 1);
    s->ended++;
    return 0;
}

static void *kill_at_random(void *arg)
{
    struct storm *s = arg;
    uint32_t killed[8] = { 0 }; /* the last life of each slot that was: none dies twice */

    for (unsigned n = 0; n < s->kills; n++) {
        unsigned slot = (unsigned)next_random(&s->random) % s->workers;
        struct gpud_slot_stats row = t_slot(s->d, slot);

        t_pass(next_random(&s->random) % T_MS(2));
        for (; !row.pid || row.incarnation == killed[slot]; row = t_slot(s->d, slot))
            t_pass(T_US(50));
        (void)kill((pid_t)row.pid, SIGKILL);
        killed[slot] = row.incarnation;
    }
    atomic_store(&s->over, 1);
    return NULL;
}

static void come_back(struct storm *s, uint64_t start)
{
    uint64_t took = t_now() - start;

    T_CMP(took, <, PATIENCE_OF_A_WAIT + T_PATIENCE);
    s->late += took >= PATIENCE_OF_A_WAIT + T_S(1);
}

/* Asks and waits beside the run; each call comes back in its time, whoever has died. */
static void *ask_beside(void *arg)
{
    struct storm *s = arg;

    while (!atomic_load(&s->over)) {
        struct gpud_event e = GPUD_EVENT_INIT;
        uint64_t id, start = t_now();
        int code =
            gpud_dispatcher_submit(s->d, T_TASK(.awaited = 1), PATIENCE_OF_A_WAIT, &id, NULL);

        come_back(s, start);
        if (code == GPUD_EFULL)
            continue;
        T_EQ(code, 0);
        do {
            start = t_now();
            code = gpud_dispatcher_wait(s->d, id, &e, PATIENCE_OF_A_WAIT, NULL);
            come_back(s, start);
        } while (code == GPUD_ETIMEOUT);
        T_EQ(code, 0);
        T_EQ(e.task_id, id);
        T_OK(gpud_event_release(&e));
    }
    return NULL;
}

/* C1 C8: 1 to 8 workers, SIGKILL at random moments of a run: each task has one outcome, run
 * returns, no wait takes 1 s longer than it was asked to (but one, which may have waited for a
 * CPU). T_KILLS says how many each time. [T1] */
T_LONG_CASE(killed_at_random_moments, 240)
{
    const char *kills = getenv("T_KILLS");

    t_init(NULL, work_a_little, NULL);
    for (unsigned workers = 1; workers <= 8; workers++) {
        struct storm s = { .workers = workers,
                           .kills = kills ? (unsigned)atoi(kills) : 25,
                           .random = workers };
        char devices[16];
        pthread_t threads[2];

        (void)snprintf(devices, sizeof(devices), "cpu:%u", workers);
        s.d = T_CREATE(.devices = devices, .queue_size = QUEUE, .backoff = T_US(100),
                       .backoff_cap = T_MS(2), .failures_in_a_row = 1000000);
        t_thread(&threads[0], kill_at_random, &s);
        t_thread(&threads[1], ask_beside, &s);
        T_OK(gpud_dispatcher_run(s.d, give_until_over,
                                 T_CALLBACKS(.on_success = end_once, .on_error = end_once), &s,
                                 NULL));
        for (int i = 0; i < 2; i++)
            t_join(threads[i]);
        T_EQ(s.ended, s.pulled);
        for (unsigned n = 0; n < RING; n++)
            T_EQ(s.open[n], 0);
        printf("%u workers: %u deaths, %u tasks, %u of them crashed\n", workers,
               (unsigned)t_stats(s.d).deaths, (unsigned)s.ended, (unsigned)t_stats(s.d).crashed);
        T_CMP(t_stats(s.d).deaths + workers, >=, s.kills);
        T_CMP(s.late, <=, 1);
        t_destroy(&s.d, NULL);
    }
    T_OK(gpud_fini());
}

/* ---- T6, T17 ---- */

/* C9: as the defaults are: 1 s, 2 s, and after three in a row the slot is given up; one event each.
 * [T6] */
T_CASE(default_backoff)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    uint64_t start;

    t_word_set(SETUP_FAILS, 7);
    t_init(setup, process, NULL);
    start = t_now();
    d = T_CREATE(.devices = "cpu:2");
    (void)T_RUN(d, &log, NO_WORKER, .tag = 1);
    T_CMP(t_now() - start, >=, T_S(3));
    T_CMP(t_now() - start, <, T_S(6));
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 2 * 3);
    t_end(&d, &log);
}

/* C8: no setup begins before the process it replaces has been reaped. [T17] */
T_CASE(reaped_before_the_next_setup)
{
    enum { DEATHS = 60 };
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(setup, process, .devices = "cpu:4");

    for (uint64_t n = 0; n < DEATHS; n++)
        T_SUBMIT(d, .tag = T_TAG(n % 2 ? T_ABORT : T_KILL, n));
    t_submit_tags(d, 0, DEATHS);
    t_collect(d, &log, 2 * DEATHS);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_CRASHED), DEATHS);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), DEATHS);
    T_EQ(t_word(NOT_REAPED), 0);
    t_end(&d, &log);
}

/* ---- T7, T8 ---- */

/* C6: the outcome of a task that only a kill ends comes within 10 ms of limit and grace. (Of a
 * quarter of them, or, where nearly all wait for a CPU, of as many of more.) [T7] */
T_CASE(killed_in_time)
{
    enum { TASKS = 20, MOST = 5 * TASKS };
    const uint64_t limit = T_MS(20), grace = T_MS(30);
    const int wanted = T_SANITIZED ? 0 : TASKS / 4;
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        T_BEGIN(setup, process, .devices = "cpu:1", .task_limit = limit, .grace = grace);
    int in_time = 0;
    uint64_t n;

    for (n = 0; n < TASKS || (in_time < wanted && n < MOST); n++) {
        const struct gpud_event *e;

        e = T_RUN(d, &log, TIMEOUT, .tag = T_TAG(BURNS, n));
        in_time += t_now() < e->started_at + limit + grace + T_MS(10);
        T_CMP(e->ended_at, >=, e->started_at + limit + grace);
        (void)T_RUN(d, &log, SUCCESS, .tag = n, .limit = GPUD_NEVER);
    }
    printf("%d of %u within 10 ms\n", in_time, (unsigned)n);
    T_CMP(in_time, >=, wanted);
    t_end(&d, &log);
}

/* C2 C8: when the TIMEOUT of a killed task is told its process has been reaped, and what had been
 * sent there behind it has run elsewhere, once. [T8] */
T_CASE(told_after_the_reap)
{
    enum { ROUNDS = 40 };
    struct t_log log = { 0 };
    size_t looked = 0, noted = 0;
    gpud_dispatcher *d =
        T_BEGIN(setup, process, .devices = "cpu:2", .sent_ahead = 4, .grace = T_MS(2));
    pid_t pid;

    for (uint64_t n = 0; n < ROUNDS; n++) {
        T_SUBMIT(d, .tag = T_TAG(BURNS, n), .limit = T_MS(4));
        for (uint64_t i = 0; i < 3; i++)
            T_SUBMIT(d, .tag = 3 * n + i);
    }
    while (t_log_count(&log, GPUD_EVENT_OUTCOME) < 4 * ROUNDS) {
        T_CMP(t_poll(d, &log, T_PATIENCE), >, 0);
        for (; looked < log.count; looked++) {
            const struct gpud_event *e = &log.list[looked];

            if (e->kind != GPUD_EVENT_OUTCOME || e->tag >> 32 != BURNS)
                continue;
            T_EQ(e->outcome, GPUD_OUTCOME_TIMEOUT);
            pid = (pid_t)atomic_load(&t_page->numbers[PROCESS_OF + (e->tag & 0xffffffffU)]);
            if (!pid) /* killed before it could note itself */
                continue;
            T_EQ(kill(pid, 0), -1);
            T_EQ(errno, ESRCH);
            noted++;
        }
    }
    T_CMP(noted, >, 0);
    for (uint64_t n = 0; n < 3 * ROUNDS; n++)
        T_EQ(T_OUTCOME(&log, n, SUCCESS)->attempt, 1);
    T_EQ(t_stats(d).hard_kills, ROUNDS);
    t_end(&d, &log);
}

/* ---- T20 ---- */

static int all_large_have_ended(void *user)
{
    struct gpud_stats s = t_stats(user);

    return s.queued == 0 && s.sent == 0;
}

/* In a state, destroys; gives how long it took. */
static uint64_t destroy_in(unsigned state, uint64_t limit)
{
    uint64_t accepted = 0, uncollected = 0, start;
    gpud_dispatcher *d;
    struct t_log log = { 0 };
    int code;

    t_word_set(T_STARTED, 0);
    d = T_CREATE(.devices = "cpu:2", .queue_size = 64, .payload_budget = 16u << 20,
                 .close_limit = limit);
    switch (state) {
    case 0: /* outcomes and results that nobody has collected, up to the limit */
        do {
            code = gpud_dispatcher_submit(d, T_TASK(.tag = T_TAG(LARGE_RESULT, 0)), T_MS(50), NULL,
                                          NULL);
            accepted += !code;
        } while (!code);
        T_EQ(code, GPUD_EFULL);
        t_wait_until("all have ended or have no room", all_large_have_ended, d);
        break;
    case 1: /* workers that burn, with tasks sent behind and queued */
        for (; accepted < 20; accepted++)
            T_SUBMIT(d, .tag = accepted < 2 ? T_TAG(BURNS, accepted) : accepted);
        t_word_wait(T_STARTED, 2);
        break;
    case 2: /* some collected, some not, some running */
        for (; accepted < 40; accepted++)
            T_SUBMIT(d, .tag = accepted);
        t_collect(d, &log, 10);
        break;
    default: /* closed already, with haste, and one burns */
        T_SUBMIT(d, .tag = T_TAG(BURNS, 0));
        accepted = 1;
        t_word_wait(T_STARTED, 1);
        T_OK(gpud_dispatcher_close(d, GPUD_FINISH_RUNNING, GPUD_NEVER));
        break;
    }
    start = t_now();
    T_OK(gpud_dispatcher_destroy(&d, &uncollected));
    start = t_now() - start;
    T_EQ(t_log_count(&log, GPUD_EVENT_OUTCOME) + uncollected, accepted);
    T_OK(gpud_dispatcher_destroy(&d, &uncollected)); /* twice */
    t_log_free(&log);
    return start;
}

/* C10 C1: destroy returns within its limit and 100 ms, in whatever state, and each accepted task
 * has been collected or is counted. (The shortest of five, or of more where all of these waited for
 * a CPU.) [T20] */
T_CASE(destroy_in_every_state)
{
    const uint64_t limit = T_MS(100), promised = limit + T_MS(T_SANITIZED ? 1000 : 100);

    t_init(setup, process, NULL);
    for (unsigned state = 0; state < 4; state++) {
        uint64_t shortest = GPUD_NEVER;

        for (int round = 0; round < 5 || (round < 40 && shortest >= promised); round++) {
            uint64_t took = destroy_in(state, limit);

            T_CMP(took, <, limit + T_S(T_SANITIZED ? 4 : 2));
            shortest = took < shortest ? took : shortest;
        }
        printf("state %u: destroyed in %.1f ms at the least\n", state, (double)shortest / 1e6);
        T_CMP(shortest, <, promised);
    }
    T_OK(gpud_fini());
}

static int stay_in_callback(const struct gpud_event *e, void *user)
{
    (void)t_log_add(e, user);
    (void)t_word_add(INSIDE);
    t_word_wait(T_GATE, 1);
    return 0;
}

struct other {
    gpud_dispatcher *d;
    struct t_log log;
    uint64_t pulled;
};

static int give_ten(struct gpud_task_desc *task, size_t n, void *user)
{
    struct other *o = user;

    (void)n;
    if (o->pulled == 10)
        return 0;
    task->tag = o->pulled++;
    return 1;
}

static int log_and_stay(const struct gpud_event *e, void *user)
{
    return stay_in_callback(e, &((struct other *)user)->log);
}

static void *run_ten(void *arg)
{
    struct other *o = arg;

    T_OK(gpud_dispatcher_run(o->d, give_ten, T_CALLBACKS(.on_success = log_and_stay), o, NULL));
    return NULL;
}

/* C1 C16: destroy while a callback runs on another thread answers at once, and takes nothing. [T20]
 */
T_CASE(destroy_while_a_callback_runs)
{
    struct other o = { .pulled = 0 };
    uint64_t uncollected = 99, start;
    gpud_dispatcher *d;
    pthread_t thread;

    t_init(setup, process, NULL);
    d = o.d = T_CREATE(.devices = "cpu:2");
    t_thread(&thread, run_ten, &o);
    t_word_wait(INSIDE, 1);
    start = t_now();
    T_CODE(gpud_dispatcher_destroy(&d, &uncollected), EBUSY);
    T_CMP(t_now() - start, <, T_S(1));
    T_CHECK(d == o.d);
    T_EQ(uncollected, 99);
    t_word_set(T_GATE, 1);
    t_join(thread);
    t_check_exactly_once(&o.log, 10);
    t_end(&o.d, &o.log);
}
