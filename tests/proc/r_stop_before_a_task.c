/* SPDX-License-Identifier: MIT */
/*
 * r_stop_before_a_task.c - a worker is stopped while it has nothing to do, and the keeper's account
 * of that stop comes only once the next task runs: it is not that task's.                  [C7]
 *
 * The keeper is stopped too, so that its account comes as late as the case wants.
 */
#include "fixture.h"

#include <signal.h>
#include <stdio.h>

enum { STARTED, ACCOUNTED };

/* Works until the account is there, and then for longer than its limit; heeds no signal. */
static int process(gpud_task *t, void *state)
{
    uint64_t start = t_now();

    (void)state;
    (void)t_word_add(STARTED);
    t_word_wait(ACCOUNTED, t_word(STARTED));
    if (gpud_task_tag(t))
        while (t_now() < start + gpud_task_tag(t))
            ;
    return 0;
}

static int is_stopped(void *user)
{
    struct t_proc p, *wanted = user;

    return !t_proc_read(wanted->pid, &p) && p.state == 'T';
}

/* Runs one task of `work` with a stop of `stop` just before it. */
static void one_task(gpud_dispatcher *d, struct t_log *log, uint64_t stop, uint64_t work, uint64_t limit)
{
    struct t_proc worker = t_worker(d, 0), keeper = t_keeper_of(&worker);
    size_t before = t_log_count(log, GPUD_EVENT_OUTCOME);
    uint32_t started = t_word(STARTED);

    t_wait_ready(d, 1);
    T_EQ(kill(worker.pid, SIGSTOP), 0);
    t_wait_until("the worker is stopped", is_stopped, &worker);
    t_pass(stop); /* the keeper sees it meanwhile */
    T_EQ(kill(keeper.pid, SIGSTOP), 0);
    t_wait_until("the keeper is stopped", is_stopped, &keeper);
    (void)t_submit(d, T_TASK(.tag = work, .limit = limit));
    T_EQ(kill(worker.pid, SIGCONT), 0);
    t_word_wait(STARTED, started + 1);
    T_EQ(kill(keeper.pid, SIGCONT), 0);
    t_pass(T_MS(20));
    (void)t_word_add(ACCOUNTED);
    t_collect(d, log, before + 1);
}

/* A task that is in time keeps its outcome, and the worker lives. */
T_CASE(in_time)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:1"));
    one_task(d, &log, T_MS(100), 0, GPUD_NEVER);
    one_task(d, &log, T_MS(100), 0, T_S(10));
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 2);
    T_EQ(t_stats(d).deaths, 0);
    t_end(&d, &log);
}

/* One that is late is TIMEOUT: it was not stopped for a moment. */
T_CASE(late)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .grace = T_S(60)));
    one_task(d, &log, T_MS(500), T_MS(200), T_MS(100));
    (void)T_OUTCOME(&log, T_MS(200), TIMEOUT);
    t_end(&d, &log);
}
