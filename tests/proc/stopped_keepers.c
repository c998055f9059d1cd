/* SPDX-License-Identifier: MIT */
/* stopped_keepers.c - keepers that another process stops. */
#include "verbs.h"

#include <signal.h>

enum { CLEANED };
enum { DIE_AT_GATE = T_VERBS };

static int process(gpud_task *t, void *state)
{
    if (gpud_task_tag(t) >> 32 != DIE_AT_GATE)
        return t_process(t, state);
    (void)t_word_add(T_STARTED);
    t_word_wait(T_GATE, 1);
    (void)raise(SIGKILL);
    return 0;
}

static void cleanup(gpud_worker *w, void *state)
{
    (void)w, (void)state;
    (void)t_word_add(CLEANED);
}

static struct t_proc stopped_keeper(gpud_dispatcher *d)
{
    const struct t_proc worker = t_worker(d, 0), keeper = t_keeper_of(&worker);

    t_stop(&keeper);
    return keeper;
}

static struct t_proc stopped_without_worker(gpud_dispatcher *d)
{
    struct t_proc worker, keeper;

    t_wait_ready(d, 1);
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    T_OK(gpud_dispatcher_device_drain(d, "cpu:0"));
    t_wait_slot(d, 0, GPUD_SLOT_STOPPED);
    t_stop(&keeper);
    return keeper;
}

/* A worker whose keeper cannot tell its end: the keeper goes, and all is as when it had died. */
T_CASE(worker_dies_under_a_stopped_keeper)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    struct t_proc keeper;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");

    T_SUBMIT_STARTED(d, .tag = T_TAG(DIE_AT_GATE, 0));
    keeper = stopped_keeper(d);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, T_TAG(DIE_AT_GATE, 0), CRASHED);
    T_EQ(e->exit_kind, GPUD_EXIT_LOST);
    t_wait_ended(&keeper);
    T_EQ(T_RUN(d, &log, SUCCESS, .tag = 1)->incarnation, 2);
    t_end(&d, &log);
}

/* Ordered to start a worker, it is given up after the kill limit. */
T_CASE(stopped_keeper_is_to_start)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    struct t_proc keeper;
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .kill_limit = T_S(1), .backoff = T_MS(5));

    keeper = stopped_without_worker(d);
    T_SUBMIT(d, .tag = 1);
    T_OK(gpud_dispatcher_device_return(d, "cpu:0"));
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, 1, SUCCESS);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 1);
    e = t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 0);
    T_EQ(e->code, GPUD_ESYSTEM);
    T_TEXT(e->text,
           "its keeper was stopped and did not start a worker within 1.000 s (kill_limit)");
    t_wait_ended(&keeper);
    T_EQ(t_stats(d).slots_failed, 0);
    t_end(&d, &log);
}

/* C10: the host gives the keeper up, and the keeper goes on: the spawner that is to kill it is
 * stopped.  The keeper's report of a new worker does not prolong the host's wait for GONE. */
T_LONG_CASE(keeper_goes_on_after_it_was_given_up, 120)
{
    struct t_log log = { 0 };
    struct t_proc keeper, spawner;
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .kill_limit = T_S(2), .setup_limit = GPUD_NEVER);

    keeper = stopped_without_worker(d);
    spawner = t_spawner();
    t_stop(&spawner);
    T_OK(gpud_dispatcher_device_return(d, "cpu:0"));
    t_collect_log(d, &log, "the spawner kills the keeper");
    t_kill(keeper.pid, SIGCONT);
    (void)T_RUN(d, &log, NO_WORKER, .tag = 1);
    T_EQ(t_slot(d, 0).state, GPUD_SLOT_QUARANTINED);
    t_kill(spawner.pid, SIGCONT);
    t_end(&d, &log);
    t_wait_ended(&keeper);
}

/* destroy does not wait for one, whether it has a worker or not. */
static void destroy_at_once(int with_worker)
{
    struct t_proc keeper;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .close_limit = T_S(600));
    uint64_t start;

    t_wait_ready(d, 1);
    keeper = with_worker ? stopped_keeper(d) : stopped_without_worker(d);
    start = t_now();
    t_destroy(&d, NULL);
    T_CMP(t_now() - start, <, T_PATIENCE);
    t_wait_ended(&keeper);
    T_OK(gpud_fini());
}

T_CASE(destroy_with_a_stopped_keeper)
{
    destroy_at_once(1);
}

T_CASE(destroy_with_a_stopped_keeper_alone)
{
    destroy_at_once(0);
}

/* Nor where a start was ordered which the keeper has not read; and nothing of it is left. */
T_CASE(destroy_during_a_start)
{
    struct t_proc keeper;
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .close_limit = T_S(600), .kill_limit = T_S(600));
    uint64_t start;

    keeper = stopped_without_worker(d);
    T_OK(gpud_dispatcher_device_return(d, "cpu:0"));
    t_wait_slot(d, 0, GPUD_SLOT_STARTING);
    start = t_now();
    t_destroy(&d, NULL);
    T_CMP(t_now() - start, <, T_PATIENCE);
    t_wait_ended(&keeper);
    T_OK(gpud_fini());
}

/* C19: a worker that the limit of destroy finds under a stopped keeper ends with it. */
T_CASE(destroy_ends_the_worker)
{
    struct t_proc worker, keeper;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .close_limit = T_MS(300));

    T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    worker = t_worker(d, 0);
    keeper = stopped_keeper(d);
    T_OK(gpud_dispatcher_destroy(&d, NULL));
    t_wait_ended(&keeper);
    t_wait_ended(&worker);
    T_OK(gpud_fini());
}

/* The device is removed and comes back while the old keeper is stopped: its slot starts. */
T_CASE(device_comes_back)
{
    struct t_log log = { 0 };
    struct t_proc keeper;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .kill_limit = T_S(1));

    keeper = stopped_without_worker(d);
    T_OK(gpud_dispatcher_device_remove(d, "cpu:0"));
    T_OK(gpud_dispatcher_device_add(d, "cpu:1", NULL));
    (void)T_RUN(d, &log, SUCCESS, .tag = 1);
    t_end(&d, &log);
    t_wait_ended(&keeper);
}

/* A cleanup that was well is no failure, though the keeper cannot tell how the worker left. */
T_CASE(cleanup_under_a_stopped_keeper)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, cleanup);
    d = T_CREATE(.devices = "cpu:1");
    t_wait_ready(d, 1);
    (void)stopped_keeper(d);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    t_collect_rest(d, &log);
    T_EQ(t_word(CLEANED), 1);
    T_EQ(t_log_count(&log, GPUD_EVENT_CLEANUP_FAILURE), 0);
    T_EQ(t_stats(d).cleanup_failures, 0);
    t_end(&d, &log);
}
