/* SPDX-License-Identifier: MIT */
/*
 * quarantine.c - a worker that survives SIGKILL, as one in D state would.
 *
 * What stands for it here: its keeper is stopped, so the kill is asked for but never carried out
 * and no reap is ever reported.  The host cannot tell the two apart.
 */
#include "verbs.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>


static struct t_proc stop_keeper(gpud_dispatcher *d, struct t_proc *ret_worker)
{
    unsigned slot = 0;
    struct t_proc keeper;

    while (!t_slot(d, slot).task_id)
        slot++;
    *ret_worker = t_worker(d, slot);
    keeper = t_keeper_of(ret_worker);
    t_stop(&keeper);
    return keeper;
}

/* destroy has the stopped keeper killed, and the worker dies with it. */
static void release(const struct t_proc *keeper, const struct t_proc *worker)
{
    t_wait_ended(worker);
    t_wait_ended(keeper);
}

/* C10: past limit, grace and kill limit: TIMEOUT, phase KILL; the slot is QUARANTINED, the other
 * works on; destroy returns within its limit. [T9] */
T_CASE(survivor_is_quarantined)
{
    const uint64_t limit = T_S(1), grace = T_MS(50), kill_limit = T_MS(150);
    struct t_proc keeper, worker;
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d =
        T_BEGIN(NULL, t_process, .devices = "cpu:2", .grace = grace, .kill_limit = kill_limit,
                .sent_ahead = 4, .close_limit = T_MS(300));
    uint64_t start;
    uint32_t slot;

    T_SUBMIT_STARTED(d, .tag = T_TAG(T_BLOCKED, 0), .limit = limit);
    keeper = stop_keeper(d, &worker);
    t_submit_tags(d, 0, 20);
    t_collect(d, &log, 21);
    e = T_OUTCOME(&log, T_TAG(T_BLOCKED, 0), TIMEOUT);
    slot = e->slot;
    T_EQ(e->phase, GPUD_PHASE_KILL);
    T_TEXT(e->text, "exceeded its time limit of 1.000 s (limit of the task) "
                    "and the grace of 0.050 s (grace), survived SIGKILL for 0.150 s (kill_limit)");
    T_CMP(e->ended_at, >=, e->started_at + limit + grace + kill_limit);
    for (uint64_t n = 0; n < 20; n++)
        T_CMP(T_OUTCOME(&log, n, SUCCESS)->slot, !=, slot);
    T_EQ(t_slot(d, slot).state, GPUD_SLOT_QUARANTINED);
    T_EQ(t_stats(d).slots_failed, 1);
    T_CHECK(!t_proc_ended(&worker));
    start = t_now();
    t_destroy(&d, &log);
    T_CMP(t_now() - start, <, T_MS(300) + T_S(1));
    release(&keeper, &worker);
    T_OK(gpud_fini());
}

/* C10: destroy with a survivor that nobody has given up yet returns within the close limit. [T9] */
T_CASE(destroy_with_a_survivor)
{
    struct t_proc keeper, worker;
    uint64_t start, uncollected = 0;
    gpud_dispatcher *d = T_BEGIN(NULL, t_process, .devices = "cpu:1", .close_limit = T_MS(300));

    T_SUBMIT_STARTED(d, .tag = T_TAG(T_BLOCKED, 0));
    keeper = stop_keeper(d, &worker);
    start = t_now();
    T_OK(gpud_dispatcher_destroy(&d, &uncollected));
    T_CMP(t_now() - start, <, T_MS(300) + T_S(1));
    T_EQ(uncollected, 1);
    release(&keeper, &worker);
    T_OK(gpud_fini());
}

/* C4: the survivor comes back after it was given up: what it still says is dropped. */
static int wait_for_gate(gpud_task *t, void *state)
{
    (void)state;
    if (gpud_task_tag(t) >> 32 == T_WORK)
        return 0;
    (void)t_word_add(T_STARTED);
    t_word_wait(T_GATE, 1);
    return gpud_task_result_set(t, "late", 4);
}

static int word_was_dropped(void *user)
{
    return t_stats(user).late_dropped > 0;
}

T_CASE(late_survivor)
{
    struct t_proc keeper, worker;
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        T_BEGIN(NULL, wait_for_gate, .devices = "cpu:2", .grace = T_MS(20), .kill_limit = T_MS(50));
    uint32_t slot;

    T_SUBMIT_STARTED(d, .tag = T_TAG(T_BLOCKED, 0), .limit = T_S(1));
    keeper = stop_keeper(d, &worker);
    t_collect(d, &log, 1);
    slot = T_OUTCOME(&log, T_TAG(T_BLOCKED, 0), TIMEOUT)->slot;
    T_EQ(T_OUTCOME(&log, T_TAG(T_BLOCKED, 0), TIMEOUT)->phase, GPUD_PHASE_KILL);
    t_word_set(T_GATE, 1);
    t_kill(keeper.pid, SIGCONT);
    t_wait_ended(&worker);
    t_wait_until("its last word was dropped", word_was_dropped, d);
    t_submit_tags(d, 0, 100);
    t_collect(d, &log, 101);
    for (uint64_t n = 0; n < 100; n++)
        T_CMP(T_OUTCOME(&log, n, SUCCESS)->slot, !=, slot);
    (void)T_OUTCOME(&log, T_TAG(T_BLOCKED, 0), TIMEOUT);
    T_EQ(t_slot(d, slot).state, GPUD_SLOT_QUARANTINED);
    t_end(&d, &log);
}
