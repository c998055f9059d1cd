/* SPDX-License-Identifier: MIT */
/*
 * gaps.c - what no other program would notice: each case here was asked for by a sabotage that all
 * others let pass (tests/sabotage).
 */
#include "fixture.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum verb { PLAIN, WAIT, WAIT_AND_DIE, REST };
#define TAG(verb, n) ((uint64_t)(verb) << 32 | (uint64_t)(n))

enum { GATES, STARTED = 8, TURN, READY, SIBLING };
enum { SIBLING_PID = 4000 };

/* Waits for the gate its number names; counts its runs and gives its turn as the result. */
static int process(gpud_task *t, void *state)
{
    uint64_t tag = gpud_task_tag(t), n = tag & 0xffffffffU, turn;

    (void)state;
    turn = t_word_add(TURN);
    atomic_fetch_add(&t_page->numbers[n], 1);
    switch ((enum verb)(tag >> 32)) {
    case PLAIN:
        break;
    case WAIT:
    case WAIT_AND_DIE:
        (void)t_word_add(STARTED);
        t_word_wait(GATES + (unsigned)n, 1);
        if (tag >> 32 == WAIT_AND_DIE)
            (void)raise(SIGKILL);
        break;
    case REST:
        t_block_signals();
        (void)t_word_add(STARTED);
        t_rest();
    }
    return gpud_task_result_set(t, &turn, sizeof(turn));
}

static uint64_t turn_of(const struct t_log *log, uint64_t tag)
{
    const struct gpud_event *e = T_OUTCOME(log, tag, SUCCESS);

    T_EQ(e->result_size, sizeof(uint64_t));
    return *(const uint64_t *)e->result;
}

static int nothing_queued(void *user)
{
    return t_stats(user).queued == 0;
}

/* C2 A3: a task that was taken back and run elsewhere is not run again by the worker it had been
 * sent to, when that comes to its stale number. */
T_CASE(recalled_task_runs_once)
{
    enum { ROUNDS = 20 };
    struct t_log log = { 0 };
    uint64_t n = 2, recalled;
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:2", .sent_ahead = 2));
    t_wait_ready(d, 2);
    (void)t_submit(d, T_TASK(.tag = TAG(WAIT, 0)));
    t_word_wait(STARTED, 1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        t_word_set(GATES + 1, 0);
        (void)t_submit(d, T_TASK(.tag = TAG(WAIT, 1), .label = "the other worker's"));
        t_word_wait(STARTED, round + 2);
        for (int i = 0; i < 2; i++) /* one behind each */
            (void)t_submit(d, T_TASK(.tag = n++));
        t_wait_until("both are sent", nothing_queued, d);
        t_word_set(GATES + 1, 1);
        t_collect(d, &log, 3 * (round + 1));
    }
    recalled = t_stats(d).recalled;
    t_word_set(GATES, 1);
    t_collect(d, &log, 3 * ROUNDS + 1);
    t_end(&d, &log); /* a worker looks at all that was sent before it leaves */
    T_CMP(recalled, >=, 1);
    T_EQ(atomic_load(&t_page->numbers[0]), 1);
    T_EQ(atomic_load(&t_page->numbers[1]), ROUNDS);
    for (uint64_t i = 2; i < n; i++)
        if (atomic_load(&t_page->numbers[i]) != 1)
            T_FAIL("task %d was run %d times", (int)i, (int)atomic_load(&t_page->numbers[i]));
}

/* A long task, and far more tasks sent and cancelled behind it than there are cells: its outcome
 * arrives all the same, and so does that of a task sent after them. */
T_CASE(many_numbers_behind_a_long_task)
{
    enum { ROUNDS = 100 };
    struct t_log log = { 0 };
    uint64_t n = 1;
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .sent_ahead = 2, .drive = GPUD_DRIVE_CALLER));
    while (t_stats(d).slots_ready < 1)
        T_EQ(t_poll(d, &log, T_MS(2)), 0);
    (void)t_submit(d, T_TASK(.tag = TAG(WAIT, 0)));
    while (!t_word(STARTED))
        T_EQ(t_poll(d, &log, T_MS(1)), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t id = t_submit(d, T_TASK(.tag = n++));

        T_EQ(t_poll(d, &log, 0), 0); /* sends it */
        T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_HARD));
        t_collect(d, &log, n - 1);
    }
    (void)t_submit(d, T_TASK(.tag = n++));
    T_EQ(t_poll(d, &log, 0), 0);
    t_word_set(GATES, 1);
    t_collect(d, &log, n);
    (void)T_OUTCOME(&log, TAG(WAIT, 0), SUCCESS);
    (void)T_OUTCOME(&log, n - 1, SUCCESS);
    t_end(&d, &log);
}

enum { SENT = 8 };

static int a_window_is_sent(void *user)
{
    return t_stats(user).sent == SENT;
}

/* C2 C5: tasks that come back from a dead worker start before those that were never sent. */
T_CASE(returned_tasks_keep_their_place)
{
    enum { TASKS = 24 };
    struct t_log log = { 0 };
    uint64_t last = 0;
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .sent_ahead = SENT));
    (void)t_submit(d, T_TASK(.tag = TAG(WAIT_AND_DIE, 0)));
    for (uint64_t n = 1; n < TASKS; n++)
        (void)t_submit(d, T_TASK(.tag = n));
    t_word_wait(STARTED, 1);
    t_wait_until("as many as may be are at the worker", a_window_is_sent, d);
    t_word_set(GATES, 1);
    t_collect(d, &log, TASKS);
    (void)T_OUTCOME(&log, TAG(WAIT_AND_DIE, 0), CRASHED);
    T_EQ(t_stats(d).returned, SENT - 1);
    for (uint64_t n = 1; n < TASKS; n++) {
        uint64_t turn = turn_of(&log, n);

        T_CMP(turn, >, last);
        last = turn;
    }
    t_end(&d, &log);
}

static int one_has_ended(void *user)
{
    return t_stats(user).success == 1;
}

/* A result does not wait for the long task behind it, also when it comes long after the library has
 * last looked by itself.  (Nobody polls: that alone would be a look.) */
T_CASE(end_is_told_before_a_long_task)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    /* nor is it looked at for deafness */
    d = t_create(T_OPTIONS(.devices = "cpu:1", .sent_ahead = 2, .kill_limit = T_S(3600)));
    for (uint64_t n = 0; n < 2; n++)
        (void)t_submit(d, T_TASK(.tag = TAG(WAIT, n)));
    t_word_wait(STARTED, 1);
    t_pass(T_MS(20)); /* it has looked at the batch once, after a millisecond */
    t_word_set(GATES, 1);
    t_wait_until("the first has ended", one_has_ended, d);
    T_EQ(t_word(GATES + 1), 0);
    t_word_set(GATES + 1, 1);
    t_collect(d, &log, 2);
    for (uint64_t n = 0; n < 2; n++)
        (void)T_OUTCOME(&log, TAG(WAIT, n), SUCCESS); /* not ended by impatience */
    t_end(&d, &log);
}

static int all_have_ended(void *user)
{
    return t_stats(user).success == 4;
}

/* C18: outcomes count against the queue limit until somebody has collected them. [G19] */
T_CASE(uncollected_outcomes_fill_the_queue)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .queue_size = 4));
    for (uint64_t n = 0; n < 4; n++)
        (void)t_submit(d, T_TASK(.tag = n));
    t_wait_until("all have ended", all_have_ended, d);
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.tag = 4), 0, NULL, NULL), EFULL);
    t_collect(d, &log, 4);
    (void)t_submit(d, T_TASK(.tag = 4));
    t_collect(d, &log, 5);
    t_check_exactly_once(&log, 5);
    t_end(&d, &log);
}

/* ---- a keeper that comes back ---- */

struct back {
    gpud_dispatcher *d;
    unsigned slot;
};

static int heard_of_it(void *user)
{
    const struct back *b = user;

    return t_stats(b->d).late_dropped > 0 || t_slot(b->d, b->slot).state != GPUD_SLOT_QUARANTINED;
}

/* C4: what a keeper says about a worker that was given up changes nothing. */
T_CASE(late_word_of_a_former_life)
{
    struct t_log log = { 0 };
    struct t_proc keeper, worker;
    struct back b = { .slot = 0 };
    uint32_t life;

    t_init(NULL, process, NULL);
    b.d = t_create(
        T_OPTIONS(.devices = "cpu:2", .grace = T_MS(20), .kill_limit = T_S(1), .backoff = T_MS(1)));
    (void)t_submit(b.d, T_TASK(.tag = TAG(REST, 0), .limit = T_S(1)));
    t_word_wait(STARTED, 1);
    while (!t_slot(b.d, b.slot).task_id)
        b.slot++;
    worker = t_worker(b.d, b.slot);
    keeper = t_keeper_of(&worker);
    t_stop(&keeper);
    t_collect(b.d, &log, 1);
    T_EQ(T_OUTCOME(&log, TAG(REST, 0), TIMEOUT)->phase, GPUD_PHASE_KILL);
    T_EQ(t_slot(b.d, b.slot).state, GPUD_SLOT_QUARANTINED);
    life = t_slot(b.d, b.slot).incarnation;
    T_EQ(kill(keeper.pid, SIGCONT), 0); /* it carries out the kill, and reports it */
    t_wait_ended(&worker);
    t_wait_until("the report is there", heard_of_it, &b);
    T_EQ(t_slot(b.d, b.slot).state, GPUD_SLOT_QUARANTINED);
    T_EQ(t_slot(b.d, b.slot).incarnation, life);
    T_EQ(t_stats(b.d).slots_failed, 1);
    for (uint64_t n = 0; n < 20; n++)
        (void)t_submit(b.d, T_TASK(.tag = n));
    t_collect(b.d, &log, 21);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 20);
    t_end(&b.d, &log);
}

/* ---- a keeper whose host dies ---- */

enum { SLOTS = 2 };

T_PROGRAM(host)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    pid_t pid;

    (void)argc, (void)argv;
    t_init(NULL, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:2"));
    t_wait_ready(d, SLOTS);
    for (uint64_t n = 0; n < SLOTS; n++)
        (void)t_submit(d, T_TASK(.tag = TAG(REST, n)));
    t_word_wait(STARTED, SLOTS);
    pid = fork(); /* holds a copy of every fd: no end of file ever comes */
    if (!pid) {
        (void)t_word_add(SIBLING);
        t_rest();
    }
    atomic_store(&t_page->numbers[SIBLING_PID], (uint64_t)pid);
    t_word_wait(SIBLING, 1);
    (void)t_word_add(READY);
    while (t_poll(d, &log, GPUD_NEVER) >= 0)
        ;
    return 0;
}

static size_t alive(const struct t_procs *family, pid_t but)
{
    size_t n = 0;

    for (size_t i = 0; i < family->count; i++)
        n += family->list[i].pid != but && !t_proc_ended(&family->list[i]);
    return n;
}

/* C11: host and spawner die at once while a sibling keeps every socket open: each keeper must have
 * watched the host by itself. */
T_CASE(keeper_watches_the_host)
{
    struct t_proc sibling, spawner = { .pid = 0 };
    struct t_procs family;
    uint64_t start;
    char mark[64];
    pid_t host;

    (void)snprintf(mark, sizeof(mark), "T_FAMILY=%d", (int)getpid());
    host = t_program_start("host", NULL, mark);
    t_word_wait(READY, 1);
    family = t_procs_with_env(mark);
    T_CMP(family.count, >=, 3 + 2 * SLOTS); /* host, spawner, sibling, keepers, workers */
    for (size_t i = 0; i < family.count; i++)
        if (!strcmp(family.list[i].comm, "gpud-spawner"))
            spawner = family.list[i];
    T_CHECK(spawner.pid);
    T_EQ(t_proc_read((pid_t)atomic_load(&t_page->numbers[SIBLING_PID]), &sibling), 0);
    T_EQ(kill(spawner.pid, SIGKILL), 0);
    T_EQ(kill(host, SIGKILL), 0);
    T_EQ(waitpid(host, NULL, 0), host);
    start = t_now();
    while (alive(&family, sibling.pid) > 0)
        if (t_now() - start > T_S(1)) /* the promise */
            T_FAIL("%zu processes live 1 s after their host", alive(&family, sibling.pid));
    T_CHECK(!t_proc_ended(&sibling));
    T_EQ(kill(sibling.pid, SIGKILL), 0);
    t_wait_ended(&sibling);
    t_procs_free(&family);
}
