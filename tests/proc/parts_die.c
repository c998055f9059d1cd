/* SPDX-License-Identifier: MIT */
/* parts_die.c - the spawner or a keeper is killed while the host lives on. */
#include "verbs.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DAEMON }; /* a word and a number */
enum { WITH_DAEMON = T_VERBS };

static int process(gpud_task *t, void *state)
{
    if (gpud_task_tag(t) >> 32 == WITH_DAEMON) {
        pid_t pid = fork();

        if (!pid) {
            (void)setsid();
            if (fork())
                _exit(0);
            t_block_signals();
            atomic_store(&t_page->numbers[DAEMON], (uint64_t)getpid());
            (void)t_word_add(DAEMON);
            t_rest();
        }
        (void)waitpid(pid, NULL, 0);
        t_word_wait(DAEMON, 1);
        (void)t_word_add(T_STARTED);
        t_word_wait(T_GATE, 1);
    }
    return t_process(t, state);
}

/* C11: without the spawner running tasks end, queued ones run, and dead workers are replaced;
 * only new dispatchers are refused. */
T_CASE(spawner_dies)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d, *other = NULL;
    struct t_proc spawner, worker;

    d = T_BEGIN(NULL, process, .devices = "cpu:2", .backoff = T_MS(5));
    for (uint64_t i = 0; i < 2; i++)
        T_SUBMIT(d, .tag = T_TAG(T_WAIT_FOR_GATE, i));
    t_submit_tags(d, 0, 50);
    t_word_wait(T_STARTED, 2);
    spawner = t_spawner();
    t_kill(spawner.pid, SIGKILL);
    t_wait_ended(&spawner);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 52);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 52);
    for (size_t i = 0; i < log.count; i++)
        if (log.list[i].kind == GPUD_EVENT_OUTCOME)
            T_EQ(log.list[i].incarnation, 1);

    worker = t_worker(d, 0);
    t_kill(worker.pid, SIGKILL);
    t_wait_ended(&worker);
    t_submit_tags(d, 50, 60);
    t_collect(d, &log, 62);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 62);

    T_CODE(gpud_dispatcher_create(&other, T_OPTIONS(.devices = "cpu:1"), NULL), ESPAWNER);
    T_CHECK(!other);
    t_end(&d, &log);
}

/* C2 C11: a keeper dies: its worker and all that had started are gone, its task is CRASHED, the
 * tasks behind it run elsewhere or later, and the slot works again. */
static void keeper_dies(uint64_t verb, const char *devices)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    struct t_proc keeper, worker, daemon = { .pid = 0 };
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = devices, .sent_ahead = 4, .backoff = T_MS(5));
    uint64_t id;

    t_wait_ready(d, (unsigned)t_stats(d).slots);
    id = t_submit(d, T_TASK(.tag = T_TAG(verb, 0)));
    t_word_wait(T_STARTED, 1);
    t_submit_tags(d, 0, 20);
    if (verb == WITH_DAEMON)
        T_EQ(t_proc_read((pid_t)atomic_load(&t_page->numbers[DAEMON]), &daemon), 0);
    for (unsigned slot = 0;; slot++)
        if (t_slot(d, slot).task_id == id) { /* another may be at one of the twenty */
            worker = t_worker(d, slot);
            break;
        }
    keeper = t_keeper_of(&worker);
    t_kill(keeper.pid, SIGKILL);
    t_collect(d, &log, 21);
    e = T_OUTCOME(&log, T_TAG(verb, 0), CRASHED);
    T_EQ(e->attempt, 1);
    T_CHECK(e->exit_kind == GPUD_EXIT_LOST || e->exit_kind == GPUD_EXIT_SIGNAL);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 20);
    t_wait_ended(&worker);
    if (daemon.pid)
        t_wait_ended(&daemon);
    /* The slot has a worker again. */
    t_wait_ready(d, (unsigned)t_stats(d).slots);
    T_EQ(t_stats(d).slots_failed, 0);
    t_end(&d, &log);
}

T_CASE(keeper_dies_of_one_slot)
{
    keeper_dies(T_BLOCKED, "cpu:1");
}

T_CASE(keeper_dies_of_several_slots)
{
    keeper_dies(T_WAIT_FOR_GATE, "cpu:3");
}

T_CASE(keeper_dies_with_daemon)
{
    keeper_dies(WITH_DAEMON, "cpu:2");
}

/* What a dead one has left comes behind all other keepers in any list of children. */
T_LONG_CASE(keeper_dies_with_daemon_among_many, 120)
{
    if (!t_raise_descriptors(4096))
        t_skip("no room for 4096 descriptors");
    keeper_dies(WITH_DAEMON, "cpu:300");
}

/* A keeper dies while its worker is idle: no task is charged. */
T_CASE(keeper_dies_idle)
{
    struct t_log log = { 0 };
    struct t_proc keeper, worker;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .backoff = T_MS(5));

    for (uint64_t i = 0; i < 5; i++) {
        t_wait_ready(d, 1);
        worker = t_worker(d, 0);
        keeper = t_keeper_of(&worker);
        t_kill(keeper.pid, SIGKILL);
        t_wait_ended(&keeper);
        t_wait_ended(&worker);
        (void)T_RUN(d, &log, SUCCESS, .tag = i);
    }
    t_end(&d, &log);
}

/* Spawner and a keeper both die, its worker in the middle of a task: that is charged, the worker is
 * gone, the slot cannot come back, its work goes to the other. */
T_CASE(spawner_and_keeper_die)
{
    struct t_log log = { 0 };
    struct t_proc spawner, keeper, worker;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .backoff = T_MS(5));
    unsigned slot = 0;

    t_wait_ready(d, 2);
    T_SUBMIT_STARTED(d, .tag = T_TAG(T_BLOCKED, 0));
    while (!t_slot(d, slot).task_id)
        slot++;
    spawner = t_spawner();
    worker = t_worker(d, slot);
    keeper = t_keeper_of(&worker);
    t_kill(spawner.pid, SIGKILL);
    t_wait_ended(&spawner);
    t_kill(keeper.pid, SIGKILL);
    t_wait_ended(&keeper);
    t_wait_ended(&worker);
    t_submit_tags(d, 0, 50);
    t_collect(d, &log, 51);
    T_EQ(T_OUTCOME(&log, T_TAG(T_BLOCKED, 0), CRASHED)->exit_kind, GPUD_EXIT_LOST);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 50);
    t_wait_slot(d, slot, GPUD_SLOT_FAILED);
    t_end(&d, &log);
}

/* Those that somebody has stopped hold nothing up: destroy ends by itself, and gpud_fini ends
 * them.  [C19] */
static void stop_parts(int keeper_too)
{
    struct t_proc spawner, keeper, worker;
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .kill_limit = T_MS(50),
                                 .close_limit = T_MS(200));
    uint64_t start;

    t_wait_ready(d, 1);
    spawner = t_spawner();
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    t_kill(spawner.pid, SIGSTOP);
    if (keeper_too)
        t_kill(keeper.pid, SIGSTOP);
    (void)T_RUN(d, &log, SUCCESS, .tag = 1);
    t_destroy(&d, &log);
    start = t_now();
    T_OK(gpud_fini());
    T_CMP(t_now() - start, <, T_S(4)); /* it is killed, and kills nobody then, at 5 s */
    t_wait_ended(&spawner);
    t_wait_ended(&keeper);
    t_wait_ended(&worker);
}

T_CASE(spawner_is_stopped)
{
    stop_parts(0);
}

T_CASE(spawner_and_keeper_are_stopped)
{
    stop_parts(1);
}
