/* SPDX-License-Identifier: MIT */
/* cancel.c - a task that is queued, sent, running or over is cancelled, softly and hard. */
#include "verbs.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>

enum { SAYS_CANCELLED = T_VERBS, SAYS_CANCELLED_AT_ONCE, MINDS_SIGNALS };

static int process(gpud_task *t, void *state)
{
    switch (gpud_task_tag(t) >> 32) {
    case SAYS_CANCELLED:
        (void)t_word_add(T_STARTED);
        while (!gpud_task_cancelled(t))
            (void)poll(NULL, 0, 1000);
        return GPUD_ECANCELLED;
    case SAYS_CANCELLED_AT_ONCE:
        return GPUD_ECANCELLED;
    case MINDS_SIGNALS:
        (void)t_word_add(T_STARTED);
        return poll(NULL, 0, 100) != 0;
    default:
        return t_process(t, state);
    }
}

/* Queued: CANCELLED at once.  Unknown or ended: ENOTFOUND. */
T_CASE(queued)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    uint64_t running, queued, sent;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .sent_ahead = 2);

    running = t_submit(d, T_TASK(.tag = T_TAG(T_WAIT_FOR_GATE, 0)));
    t_word_wait(T_STARTED, 1);
    sent = t_submit(d, T_TASK(.tag = 1));
    queued = t_submit(d, T_TASK(.tag = 2, .label = "two"));
    T_SUBMIT(d, .tag = 3);
    T_OK(gpud_dispatcher_cancel(d, queued, GPUD_CANCEL_HARD));
    T_OK(gpud_dispatcher_cancel(d, sent, GPUD_CANCEL_HARD));
    t_collect(d, &log, 2);
    e = T_OUTCOME(&log, 2, CANCELLED);
    T_EQ(e->task_id, queued);
    T_TEXT(e->label, "two");
    T_EQ(e->phase, GPUD_PHASE_QUEUED);
    T_EQ(e->attempt, 0);
    e = T_OUTCOME(&log, 1, CANCELLED);
    T_EQ(e->phase, GPUD_PHASE_QUEUED);
    T_EQ(e->attempt, 0);
    T_CODE(gpud_dispatcher_cancel(d, queued, GPUD_CANCEL_HARD), ENOTFOUND);
    T_CODE(gpud_dispatcher_cancel(d, 0, GPUD_CANCEL_HARD), ENOTFOUND);
    T_CODE(gpud_dispatcher_cancel(d, UINT64_MAX, GPUD_CANCEL_HARD), ENOTFOUND);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 4);
    (void)T_OUTCOME(&log, T_TAG(T_WAIT_FOR_GATE, 0), SUCCESS);
    (void)T_OUTCOME(&log, 3, SUCCESS);
    T_CODE(gpud_dispatcher_cancel(d, running, GPUD_CANCEL_HARD), ENOTFOUND);
    t_end(&d, &log);
}

static void one_running(gpud_dispatcher *d, uint64_t verb, uint64_t *ret_id)
{
    t_word_set(T_STARTED, 0);
    t_word_set(T_GATE, 0);
    *ret_id = t_submit(d, T_TASK(.tag = T_TAG(verb, 1)));
    t_word_wait(T_STARTED, 1);
}

/* A soft cancel never kills: the outcome is what the task makes of it, it is not tried again, and
 * the worker goes on.  Without a cancel the task's own GPUD_ECANCELLED is an error like any other.
 */
T_CASE(soft)
{
    const struct gpud_event *e;
    struct t_log log = { 0 };
    uint64_t id;
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .grace = T_MS(1), .max_attempts = 3,
                .retry_causes = GPUD_RETRY_ERROR | GPUD_RETRY_CRASH);

    one_running(d, T_UNTIL_CANCELLED, &id);
    T_CODE(gpud_dispatcher_cancel(d, id, 2), EINVAL);
    T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_SOFT));
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, T_TAG(T_UNTIL_CANCELLED, 1), ERROR);
    T_EQ(e->code, 5);
    T_EQ(e->attempt, 1);
    T_TEXT(e->text, "was cancelled");

    one_running(d, SAYS_CANCELLED, &id);
    T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_SOFT));
    t_collect(d, &log, 2);
    e = T_OUTCOME(&log, T_TAG(SAYS_CANCELLED, 1), CANCELLED);
    T_EQ(e->code, GPUD_ECANCELLED);
    T_EQ(e->phase, GPUD_PHASE_PROCESS);

    one_running(d, T_WAIT_FOR_GATE, &id); /* does not look at the flag, long past the grace */
    T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_SOFT));
    t_pass(T_MS(50));
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 3);
    e = T_OUTCOME(&log, T_TAG(T_WAIT_FOR_GATE, 1), SUCCESS);
    T_EQ(e->incarnation, 1);
    T_EQ(t_stats(d).deaths, 0);

    T_EQ(T_RUN(d, &log, ERROR, .tag = T_TAG(SAYS_CANCELLED_AT_ONCE, 1), .max_attempts = 1)->code,
         GPUD_ECANCELLED);
    t_end(&d, &log);
}

/* A cancel of a task that has ended, and was not collected, does not interrupt the next one. */
T_CASE(of_one_that_has_ended)
{
    struct t_log log = { 0 };
    uint64_t ended;
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .drive = GPUD_DRIVE_CALLER, .sent_ahead = 2);

    T_OK(gpud_dispatcher_ready(d, 1, T_PATIENCE, NULL));
    ended = t_submit(d, T_TASK(.tag = T_TAG(T_WORK, 1)));
    T_SUBMIT(d, .tag = T_TAG(MINDS_SIGNALS, 2));
    (void)t_poll(d, &log, 0); /* sends both, and collects neither */
    t_word_wait(T_STARTED, 1);
    (void)gpud_dispatcher_cancel(d, ended, GPUD_CANCEL_HARD);
    t_collect(d, &log, 2);
    (void)T_OUTCOME(&log, T_TAG(MINDS_SIGNALS, 2), SUCCESS);
    t_end(&d, &log);
}

/* One that was sent and is not begun is taken back; its worker is ready from now on, not from when
 * the host last looked. */
T_CASE(sent)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");
    struct t_proc w, keeper;
    uint64_t id, began;

    t_wait_ready(d, 1);
    w = t_worker(d, 0);
    keeper = t_keeper_of(&w);
    t_stop(&keeper); /* so that nobody knows of the other */
    t_stop(&w);
    id = t_submit(d, T_TASK(.tag = 1));
    t_wait_slot(d, 0, GPUD_SLOT_BUSY);
    t_pass(T_MS(50));
    began = t_now();
    T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_HARD));
    T_EQ(t_slot(d, 0).state, GPUD_SLOT_READY);
    T_CMP(t_slot(d, 0).since, >=, began);
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, 1, CANCELLED);
    t_kill(keeper.pid, SIGCONT);
    t_kill(w.pid, SIGCONT);
    t_end(&d, &log);
}

/* Running: one that looks ends CANCELLED in its worker; one that cannot is killed after the grace.
 */
T_CASE(running)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    uint64_t willing, stubborn;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .grace = T_S(1));

    willing = t_submit(d, T_TASK(.tag = T_TAG(T_UNTIL_CANCELLED, 0)));
    stubborn = t_submit(d, T_TASK(.tag = T_TAG(T_BLOCKED, 0)));
    t_word_wait(T_STARTED, 2);
    T_OK(gpud_dispatcher_cancel(d, willing, GPUD_CANCEL_HARD));
    /* it may have ended by now, or not: no harm either way */
    (void)gpud_dispatcher_cancel(d, willing, GPUD_CANCEL_HARD);
    T_OK(gpud_dispatcher_cancel(d, stubborn, GPUD_CANCEL_HARD));
    T_SUBMIT(d, .tag = 1);
    T_SUBMIT(d, .tag = 2);
    t_collect(d, &log, 4);
    e = T_OUTCOME(&log, T_TAG(T_UNTIL_CANCELLED, 0), CANCELLED);
    T_EQ(e->phase, GPUD_PHASE_PROCESS);
    T_EQ(e->incarnation, 1);
    e = T_OUTCOME(&log, T_TAG(T_BLOCKED, 0), CANCELLED);
    T_EQ(e->phase, GPUD_PHASE_HARD);
    T_EQ(e->exit_status, SIGKILL);
    (void)T_OUTCOME(&log, 1, SUCCESS);
    (void)T_OUTCOME(&log, 2, SUCCESS);
    t_end(&d, &log);
}

/* C1: cancels race with ends: each task has one outcome, and cancel said the truth. */
T_CASE(races)
{
    enum { TASKS = 5000 };
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .queue_size = TASKS);
    static uint64_t ids[TASKS];

    for (uint64_t n = 0; n < TASKS; n++) {
        ids[n] = t_submit(d, T_TASK(.tag = n));
        if (n >= 20) {
            int code = gpud_dispatcher_cancel(d, ids[n - (n * 7919) % 20], GPUD_CANCEL_HARD);

            T_CHECK(code == 0 || code == GPUD_ENOTFOUND);
        }
    }
    t_collect(d, &log, TASKS);
    t_check_exactly_once(&log, TASKS);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS) + t_log_outcomes(&log, GPUD_OUTCOME_CANCELLED),
         TASKS);
    printf("%zu were cancelled\n", t_log_outcomes(&log, GPUD_OUTCOME_CANCELLED));
    T_EQ(t_stats(d).deaths, 0);
    t_end(&d, &log);
}
