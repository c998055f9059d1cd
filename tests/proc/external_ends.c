/* SPDX-License-Identifier: MIT */
/*
 * external_ends.c - external work: limits, cancels, faults of devices, the end of a dispatcher, and
 * work that runs already.                                                        [C7] [C10] [S1]
 */
#include "external.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- limits ---- */

/* The time of its end decides, not when the host reports it. */
T_CASE(verdict_of_late_success)
{
    gpud_dispatcher *d = outside("fake:3", T_OPTIONS(.grace = T_S(60)));
    struct t_log log = { 0 };
    struct gpud_event in_time, late, without_limit;
    uint64_t began;

    WORK(d, 1, .limit = T_MS(50));
    WORK(d, 2, .limit = T_MS(50));
    WORK(d, 3);
    in_time = start_granted(d, &log, 1, 0);
    late = start_granted(d, &log, 2, 0);
    without_limit = start_granted(d, &log, 3, 0);
    began = t_now();
    (void)revoked(d, &log, 1, 0, GPUD_REVOKED_LIMIT, GPUD_REVOKE_SOFT);
    (void)revoked(d, &log, 2, 0, GPUD_REVOKED_LIMIT, GPUD_REVOKE_SOFT);
    ENDED(d, in_time, SUCCESS, .ended_at = began);
    ENDED(d, late, SUCCESS, .text = "done");
    ENDED(d, without_limit, SUCCESS);
    t_collect(d, &log, 3);
    T_EQ(T_OUTCOME(&log, 1, SUCCESS)->ended_at, began);
    T_EQ(T_OUTCOME(&log, 2, TIMEOUT)->phase, GPUD_PHASE_PROCESS);
    T_EQ(T_OUTCOME(&log, 2, TIMEOUT)->code, GPUD_ETIMEOUT);
    T_TEXT(T_OUTCOME(&log, 2, TIMEOUT)->text,
           "exceeded its time limit of 0.050 s (limit of the task): done");
    (void)T_OUTCOME(&log, 3, SUCCESS);
    t_end(&d, &log);
}

/* Killed for its limit, and it says so. */
T_CASE(killed_at_the_limit)
{
    gpud_dispatcher *d = outside("fake:1", T_OPTIONS(.grace = T_MS(300), .task_limit = T_MS(20)));
    const struct gpud_event *e;
    struct t_log log = { 0 };
    struct gpud_event g, soft, hard;

    WORK(d, 1);
    g = start_granted(d, &log, 1, 0);
    soft = revoked(d, &log, 1, 0, GPUD_REVOKED_LIMIT, GPUD_REVOKE_SOFT);
    T_EQ(soft.attempt, 1);
    T_TEXT(soft.device, "fake:0");
    T_TEXT(soft.device_uuid, t_device(d, "fake:0").uuid);
    hard = revoked(d, &log, 1, 0, GPUD_REVOKED_LIMIT, GPUD_REVOKE_HARD);
    T_CMP(soft.revoke_by, <, hard.revoke_by);
    ENDED(d, g, CRASHED, .exit_kind = GPUD_EXIT_SIGNAL, .exit_status = SIGKILL);
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, 1, TIMEOUT);
    T_EQ(e->phase, GPUD_PHASE_HARD);
    T_TEXT(e->text, "exceeded its time limit of 0.020 s (task_limit) and the grace of 0.300 s "
                    "(grace), killed by signal 9 (SIGKILL)");
    t_end(&d, &log);
}

static gpud_dispatcher *unkillable(void)
{
    gpud_dispatcher *d;

    t_init(NULL, t_no_work, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:1", .kill_limit = T_MS(30), .queue_size = 4);
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL,
                   .options = T_OPTIONS(.grace = GPUD_AT_ONCE)));
    return d;
}

/* Its outcome is out before its end, and its device stays taken until then.  The outcome is read
 * and released before the end (tag 1), or after it (tag 2). */
T_CASE(ended_after_kill_limit)
{
    gpud_dispatcher *d = unkillable();
    struct t_log log = { 0 };
    struct gpud_event g;

    for (uint64_t tag = 1; tag <= 2; tag++) {
        const struct gpud_event *e;
        WORK(d, tag, .limit = T_MS(10));
        g = start_granted(d, &log, tag, 0);
        WORK(d, 10 + tag);
        while (t_stats(d).timeout < tag)
            t_pass(T_MS(1));
        if (tag == 1)
            t_collect(d, &log, 1);
        if (tag == 1)
            T_EQ(t_poll(d, &log, 0), 0); /* releases it */
        T_CODE(gpud_dispatcher_progress(d, g.task_id, 1, 0, NULL, NULL), ENOTFOUND);
        T_EQ(t_stats(d).queued, 1);
        ENDED(d, g, SUCCESS);
        T_CODE(gpud_dispatcher_ended(d, g.task_id, 1, T_END(.outcome = 1), NULL), ENOTFOUND);
        ENDED(d, start_granted(d, &log, 10 + tag, 0), SUCCESS);
        t_collect(d, &log, 2 * tag);
        e = T_OUTCOME(&log, tag, TIMEOUT);
        T_EQ(e->phase, GPUD_PHASE_KILL);
        T_EQ(e->attempt, 1);
        T_CHECK(strstr(e->text, "had not ended 0.030 s after event REVOKED, HARD (kill_limit)"));
    }
    t_end(&d, &log);
}

/* Held work keeps records beyond queue_size, also where its dispatcher ends before it. */
T_CASE(held_to_the_end)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_init(NULL, t_no_work, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:8", .kill_limit = T_MS(10), .queue_size = 1);
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL,
                   .options = T_OPTIONS(.grace = GPUD_AT_ONCE, .task_limit = T_MS(5))));
    for (uint64_t tag = 1; tag <= 8; tag++) {
        WORK(d, tag);
        (void)start_granted(d, &log, tag, 0);
        t_collect(d, &log, tag);
        (void)t_poll(d, &log, 0);
    }
    T_EQ(t_stats(d).undelivered, 0);
    t_end(&d, &log);
}

T_CASE(stalled)
{
    gpud_dispatcher *d = outside("fake:1", T_OPTIONS(.stall_limit = T_MS(300), .grace = T_S(60)));
    struct t_log log = { 0 };
    struct gpud_event g;
    const uint64_t began = t_now();
    uint64_t last = began;

    WORK(d, 1);
    g = start_granted(d, &log, 1, 0);
    T_EQ(g.limit, GPUD_NEVER);
    while (t_now() - began < T_MS(400)) {
        last = t_now();
        T_OK(gpud_dispatcher_progress(d, g.task_id, 1, 0.1, NULL, NULL));
        t_pass(T_MS(20));
    }
    (void)revoked(d, &log, 1, 0, GPUD_REVOKED_STALL, GPUD_REVOKE_SOFT);
    T_CMP(t_now() - last, >=, T_MS(300));
    ENDED(d, g, ERROR, .code = 3);
    t_collect(d, &log, 1);
    T_TEXT(T_OUTCOME(&log, 1, TIMEOUT)->text, "no progress for 0.300 s (stall_limit)");
    t_end(&d, &log);
}

/* ---- cancels ---- */

T_CASE(cancelled)
{
    gpud_dispatcher *d = outside("fake:4", T_OPTIONS(.grace = T_MS(500), .max_attempts = 3,
                                                     .retry_causes = GPUD_RETRY_ERROR));
    struct t_log log = { 0 };
    struct gpud_event g[5];

    for (uint64_t tag = 1; tag <= 4; tag++) {
        WORK(d, tag);
        g[tag] = start_granted(d, &log, tag, 0);
        T_OK(gpud_dispatcher_cancel(d, g[tag].task_id,
                                    tag <= 2 ? GPUD_CANCEL_SOFT : GPUD_CANCEL_HARD));
        T_EQ(revoked(d, &log, tag, 0, GPUD_REVOKED_CANCEL, GPUD_REVOKE_SOFT).revoke_by ==
                 GPUD_NEVER, tag <= 2);
    }
    ENDED(d, g[1], SUCCESS);
    ENDED(d, g[2], ERROR, .code = 5, .text = "gave way");
    (void)revoked(d, &log, 3, 0, GPUD_REVOKED_CANCEL, GPUD_REVOKE_HARD);
    ENDED(d, g[3], CRASHED, .exit_kind = GPUD_EXIT_SIGNAL, .exit_status = 9);
    ENDED(d, g[4], SUCCESS);
    t_collect(d, &log, 4);
    (void)T_OUTCOME(&log, 1, SUCCESS);
    T_TEXT(T_OUTCOME(&log, 2, CANCELLED)->text, "gave way");
    T_EQ(T_OUTCOME(&log, 2, CANCELLED)->attempt, 1);
    T_EQ(T_OUTCOME(&log, 3, CANCELLED)->phase, GPUD_PHASE_HARD);
    T_EQ(T_OUTCOME(&log, 3, CANCELLED)->code, GPUD_ECANCELLED);
    T_TEXT(T_OUTCOME(&log, 3, CANCELLED)->text, "cancelled, killed by signal 9 (SIGKILL)");
    T_TEXT(T_OUTCOME(&log, 4, CANCELLED)->text, "cancelled by the host");
    t_end(&d, &log);
}

/* ---- devices and classes ---- */

/* Its device falls off the bus under it: it is to be killed, and is tried on another one. */
T_CASE(device_lost)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;
    struct gpud_event g;

    t_init(NULL, t_no_work, NULL);
    d = t_fakes(2, "when gone gpu 1 xid 79 lost", T_OPTIONS(.pooled = 1));
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL,
                   .options = T_OPTIONS(.max_attempts = 2, .retry_causes = GPUD_RETRY_DEVICE)));
    WORK(d, 1, .request = T_REQUEST(.devices = 1, .on = "fake:1",
                                    .next = T_REQUEST(.devices = 1)));
    g = granted(d, &log, 1, 0);
    T_TEXT(g.device, "fake:1");
    t_trigger("gone");
    T_TEXT(revoked(d, &log, 1, 0, GPUD_REVOKED_DEVICE, GPUD_REVOKE_BACK).device, "fake:1");
    g = start_granted(d, &log, 1, 1);
    T_TEXT(g.device, "fake:0");
    ENDED(d, g, SUCCESS);
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, 1, SUCCESS);
    T_EQ(e->attempt, 1);
    t_end(&d, &log);
}

T_CASE(device_lost_under_work)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    struct gpud_event g;

    t_init(NULL, t_no_work, NULL);
    d = t_fakes(2, "when gone gpu 1 xid 79 lost", T_OPTIONS(.pooled = 1));
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL));
    WORK(d, 1, .request = T_REQUEST(.devices = 1, .on = "fake:1"));
    g = start_granted(d, &log, 1, 0);
    t_trigger("gone");
    (void)revoked(d, &log, 1, 0, GPUD_REVOKED_DEVICE, GPUD_REVOKE_HARD);
    ENDED(d, g, CRASHED, .exit_kind = GPUD_EXIT_SIGNAL, .exit_status = 9);
    t_collect(d, &log, 1);
    T_EQ(T_OUTCOME(&log, 1, CRASHED)->code, GPUD_EDEVICE);
    T_TEXT(T_OUTCOME(&log, 1, CRASHED)->text, "device fake:1 became LOST");
    t_end(&d, &log);
}

/* What has not started goes back at once; what runs goes on. */
T_CASE(drained)
{
    gpud_dispatcher *d = outside("fake:2", NULL);
    struct t_log log = { 0 };
    struct gpud_event first, second;

    WORK(d, 1, .request = T_REQUEST(.devices = 1, .on = "fake:0"));
    first = start_granted(d, &log, 1, 0);
    WORK(d, 2, .request = T_REQUEST(.devices = 1, .on = "fake:1"));
    (void)granted(d, &log, 2, 0);
    T_OK(gpud_dispatcher_device_drain(d, "fake:1"));
    (void)revoked(d, &log, 2, 0, GPUD_REVOKED_DRAIN, GPUD_REVOKE_BACK);
    T_OK(gpud_dispatcher_device_return(d, "fake:1"));
    (void)granted(d, &log, 2, 1);
    T_OK(gpud_dispatcher_class_set(d, "work", GPUD_CLASS_PAUSE, NULL));
    (void)revoked(d, &log, 2, 1, GPUD_REVOKED_DRAIN, GPUD_REVOKE_BACK);
    T_OK(gpud_dispatcher_class_set(d, "work", GPUD_CLASS_RESUME, NULL));
    second = start_granted(d, &log, 2, 2);
    T_EQ(second.attempt, 3);
    ENDED(d, first, SUCCESS);
    ENDED(d, second, SUCCESS);
    t_collect(d, &log, 2);
    T_EQ(T_OUTCOME(&log, 2, SUCCESS)->attempt, 1);
    t_end(&d, &log);
}

/* ---- the end of the dispatcher ---- */

/* What runs is left alone: no event, no outcome, and no call knows it. */
T_CASE(left_at_close)
{
    gpud_dispatcher *d = outside("fake:2", NULL);
    uint64_t uncollected = 9, began;
    struct t_log log = { 0 };
    struct gpud_event g, h;

    WORK(d, 1);
    g = start_granted(d, &log, 1, 0);
    WORK(d, 2);
    h = granted(d, &log, 2, 0);
    WORK(d, 3);
    T_CODE(gpud_dispatcher_stop(d, GPUD_FINISH_LEAVE), EINVAL);
    T_CODE(gpud_dispatcher_class_remove(d, "work", GPUD_FINISH_LEAVE, NULL), EINVAL);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_LEAVE, 0));
    t_collect_rest(d, &log);
    T_EQ(t_log_count(&log, GPUD_EVENT_OUTCOME), 2);
    (void)T_OUTCOME(&log, 2, CANCELLED);
    (void)T_OUTCOME(&log, 3, CANCELLED);
    T_EQ(t_log_count(&log, GPUD_EVENT_REVOKED), 0);
    T_CODE(gpud_dispatcher_ended(d, g.task_id, 1, T_END(.outcome = 1), NULL), ENOTFOUND);
    T_CODE(gpud_dispatcher_started(d, h.task_id, 1, NULL, NULL), ENOTFOUND);
    T_CODE(gpud_dispatcher_cancel(d, g.task_id, GPUD_CANCEL_HARD), ENOTFOUND);
    began = t_now();
    T_OK(gpud_dispatcher_destroy(&d, &uncollected));
    T_EQ(uncollected, 0);
    T_CMP(t_now() - began, <, T_S(5));
    t_log_free(&log);
    T_OK(gpud_fini());
}

/* A thread that waits for it returns. */
struct waiting {
    gpud_dispatcher *d;
    uint64_t id;
    int r;
};

static void *wait_for_outcome(void *user)
{
    struct gpud_event e = GPUD_EVENT_INIT;
    struct waiting *w = user;

    t_word_set(1, (uint32_t)gettid());
    w->r = gpud_dispatcher_wait(w->d, w->id, &e, T_S(60), NULL);
    return NULL;
}

T_CASE(left_while_a_thread_waits)
{
    struct waiting w = { .d = outside("fake:1", NULL) };
    struct t_log log = { 0 };
    pthread_t thread;

    w.id = WORK(w.d, 1, .awaited = 1);
    (void)start_granted(w.d, &log, 1, 0);
    t_thread(&thread, wait_for_outcome, &w);
    t_word_wait(1, 1);
    t_wait_until("the thread waits", t_thread_sleeps, &t_page->words[1]);
    T_OK(gpud_dispatcher_close(w.d, GPUD_FINISH_LEAVE, 0));
    t_join(thread);
    T_EQ(w.r, GPUD_ENOTFOUND);
    t_end(&w.d, &log);
}

/* NOW: it is to end, then it is to be killed, and what does not end has phase KILL. */
T_CASE(closed_now)
{
    gpud_dispatcher *d = unkillable();
    struct t_log log = { 0 };

    WORK(d, 1);
    (void)start_granted(d, &log, 1, 0);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_NOW, T_S(60)));
    (void)revoked(d, &log, 1, 0, GPUD_REVOKED_CLOSE, GPUD_REVOKE_HARD);
    t_collect_rest(d, &log);
    T_EQ(T_OUTCOME(&log, 1, CANCELLED)->phase, GPUD_PHASE_KILL);
    T_EQ(T_OUTCOME(&log, 1, CANCELLED)->code, GPUD_ECANCELLED);
    t_end(&d, &log);
}

/* The limit of the close, and the end of a dispatcher whose host never answers. */
T_CASE(closed_at_the_limit)
{
    gpud_dispatcher *d = unkillable();
    struct t_log log = { 0 };
    struct gpud_event g;

    WORK(d, 1);
    g = start_granted(d, &log, 1, 0);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, T_MS(20)));
    (void)revoked(d, &log, 1, 0, GPUD_REVOKED_CLOSE, GPUD_REVOKE_HARD);
    ENDED(d, g, CRASHED);
    t_collect_rest(d, &log);
    T_EQ(T_OUTCOME(&log, 1, CANCELLED)->phase, GPUD_PHASE_HARD);
    T_EQ(T_OUTCOME(&log, 1, CANCELLED)->code, GPUD_ETIMEOUT);
    t_end(&d, &log);
}

/* The close limit comes before the end of the grace. */
T_CASE(closed_within_the_grace)
{
    gpud_dispatcher *d = outside("fake:1", T_OPTIONS(.grace = T_S(60)));
    struct t_log log = { 0 };
    struct gpud_event g, soft;
    uint64_t began;

    WORK(d, 1);
    g = start_granted(d, &log, 1, 0);
    began = t_now();
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_NOW, T_S(20)));
    soft = revoked(d, &log, 1, 0, GPUD_REVOKED_CLOSE, GPUD_REVOKE_SOFT);
    T_CMP(soft.revoke_by, >=, began + T_S(20));
    T_CMP(soft.revoke_by, <=, t_now() + T_S(20));
    ENDED(d, g, CRASHED);
    t_collect_rest(d, &log);
    T_OUTCOME(&log, 1, CANCELLED);
    t_end(&d, &log);
}

static struct gpud_class_stats row_of_work(gpud_dispatcher *d)
{
    struct gpud_class_stats row = { .struct_size = sizeof(row) };

    T_EQ(gpud_dispatcher_classes(d, &row, 1), 1);
    return row;
}

/* A close does not end a pause: the task waits until its class resumes, or its device is back. */
T_CASE(close_waits_for_a_pause)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    for (int device = 0; device <= 1; device++) {
        d = outside("fake:1", T_OPTIONS(.grace = T_S(60)));
        if (device)
            T_OK(gpud_dispatcher_device_pause(d, "fake:0"));
        else
            T_OK(gpud_dispatcher_class_set(d, "work", GPUD_CLASS_PAUSE, NULL));
        WORK(d, 1);
        T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
        T_EQ(device ? t_device(d, "fake:0").paused : row_of_work(d).paused, 1);
        T_EQ(t_stats(d).queued, 1);
        if (device)
            T_OK(gpud_dispatcher_device_return(d, "fake:0"));
        else
            T_OK(gpud_dispatcher_class_set(d, "work", GPUD_CLASS_RESUME, NULL));
        ENDED(d, start_granted(d, &log, 1, 0), SUCCESS);
        t_collect_rest(d, &log);
        (void)T_OUTCOME(&log, 1, SUCCESS);
        t_end(&d, &log);
        log = (struct t_log){ 0 };
    }
}

T_CASE(pause_ends_at_the_close_limit)
{
    gpud_dispatcher *d = outside("fake:1", T_OPTIONS(.grace = T_S(60)));
    struct t_log log = { 0 };

    T_OK(gpud_dispatcher_class_set(d, "work", GPUD_CLASS_PAUSE, NULL));
    WORK(d, 1);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, T_MS(20)));
    t_collect_rest(d, &log);
    T_EQ(T_OUTCOME(&log, 1, CANCELLED)->phase, GPUD_PHASE_QUEUED);
    t_end(&d, &log);
}

T_CASE(destroyed)
{
    gpud_dispatcher *d;
    uint64_t began, uncollected;
    struct t_log log = { 0 };

    t_init(NULL, t_no_work, NULL);
    for (int how = -1; how <= GPUD_FINISH_NOW; how++) {
        d = T_CREATE(.pooled = 1, .devices = "fake:2", .close_limit = T_S(600));
        add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL));
        WORK(d, 1);
        WORK(d, 2);
        (void)start_granted(d, &log, 1, 0);
        (void)granted(d, &log, 2, 0);
        WORK(d, 3);
        if (how >= 0)
            T_OK(gpud_dispatcher_close(d, (uint32_t)how, 0));
        began = t_now();
        T_OK(gpud_dispatcher_destroy(&d, &uncollected));
        T_CMP(t_now() - began, <, T_PATIENCE);
        T_EQ(uncollected, 3);
        t_log_free(&log);
        log = (struct t_log){ 0 };
    }
    T_OK(gpud_fini());
}

static int count_run(gpud_task *t, void *state)
{
    (void)t, (void)state;
    (void)t_word_add(0);
    return 0;
}

/* After ALL the tasks of workers still run to their end, beside external work. */
T_CASE(destroyed_beside_workers)
{
    struct t_log log = { 0 };
    uint64_t uncollected;
    gpud_dispatcher *d;

    t_init(NULL, count_run, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:3", .close_limit = T_S(600));
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL));
    add(d, T_CLASS(.name = "worker", .options = T_OPTIONS(.definition = "test")));
    WORK(d, 1);
    (void)start_granted(d, &log, 1, 0);
    for (uint64_t tag = 10; tag < 20; tag++)
        T_SUBMIT(d, .tag = tag, .class_name = "worker");
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    T_OK(gpud_dispatcher_destroy(&d, &uncollected));
    T_EQ(uncollected, 11);
    T_EQ(t_word(0), 10);
    t_log_free(&log);
    T_OK(gpud_fini());
}

/* ---- what runs already ---- */

static uint64_t adopt(gpud_dispatcher *d, uint64_t tag, const struct gpud_adoption *a)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    uint64_t id = 0;

    if (gpud_dispatcher_adopt(d, T_TASK(.tag = tag, .class_name = "work"), a, &id, &e))
        T_FAIL("adopt: %s: %s: %s", gpud_error_name(e.code), e.field, e.text);
    T_CMP(id, >, 0);
    return id;
}

/* Its grace has expired while no host was there: HARD is the first request.  With the limit alone
 * expired, SOFT is. */
T_CASE(adopted_after_its_grace)
{
    gpud_dispatcher *d = outside("fake:2", T_OPTIONS(.grace = T_S(20), .task_limit = T_S(1)));
    const uint64_t now = t_now(), over = now - T_S(22), late = now - T_S(2);
    struct t_log log = { 0 };
    struct gpud_event hard, soft;

    (void)adopt(d, 1, T_ADOPTION(.attempt = 3, .devices = "fake:0",
                                 .proc = T_PROC(.started_at = over)));
    (void)adopt(d, 2, T_ADOPTION(.attempt = 4, .devices = "fake:1",
                                 .proc = T_PROC(.started_at = late)));
    hard = revoked(d, &log, 1, 0, GPUD_REVOKED_LIMIT, GPUD_REVOKE_HARD);
    soft = revoked(d, &log, 2, 0, GPUD_REVOKED_LIMIT, GPUD_REVOKE_SOFT);
    T_EQ(hard.attempt, 3);
    T_EQ(soft.revoke_by, late + T_S(21));
    T_EQ(t_log_count(&log, GPUD_EVENT_REVOKED), 2);
    ENDED(d, hard, CRASHED);
    ENDED(d, soft, ERROR, .code = 1);
    t_collect(d, &log, 2);
    T_EQ(T_OUTCOME(&log, 1, TIMEOUT)->phase, GPUD_PHASE_HARD);
    T_EQ(T_OUTCOME(&log, 2, TIMEOUT)->phase, GPUD_PHASE_PROCESS);
    t_end(&d, &log);
}

/* It has more of its device than that has: nothing else is granted there before its end. */
T_CASE(adopted_overcommits)
{
    gpud_dispatcher *d = outside("fake:2", NULL);
    const struct gpud_event *e;
    struct t_log log = { 0 };
    struct gpud_event g;
    uint64_t id, began = t_now();

    id = adopt(d, 1, T_ADOPTION(.attempt = 7, .attempts = 2, .devices = "fake:0",
                                .memory = T_GIB(900), .proc = T_PROC(.started_at = began)));
    (void)adopt(d, 2, T_ADOPTION(.attempt = 1, .devices = t_device(d, "fake:0").uuid,
                                 .share = 5000, .memory = T_GIB(1)));
    WORK(d, 3, .request = T_REQUEST(.devices = 1, .memory = T_GIB(1)));
    WORK(d, 4, .request = T_REQUEST(.devices = 1, .on = "fake:0", .memory = T_GIB(1)));
    g = start_granted(d, &log, 3, 0);
    T_TEXT(g.device, "fake:1");
    T_OK(gpud_dispatcher_progress(d, id, 7, 0.5, NULL, NULL));
    T_EQ(t_log_count(&log, GPUD_EVENT_GRANTED), 1);
    T_OK(gpud_dispatcher_ended(d, id, 7, T_END(.outcome = GPUD_OUTCOME_SUCCESS), NULL));
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, 1, SUCCESS);
    T_EQ(e->attempt, 3);
    T_EQ(e->started_at, began);
    T_TEXT(e->device, "fake:0");
    T_EQ(t_log_count(&log, GPUD_EVENT_GRANTED), 1); /* tag 2 has half of it */
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_LEAVE, 0));
    t_collect_rest(d, &log);
    t_end(&d, &log);
}

/* Its outcome is out: it holds its device, and has no event. */
T_CASE(adopted_given_up)
{
    gpud_dispatcher *d = unkillable(); /* queue_size is 4 */
    struct t_log log = { 0 };
    const uint64_t id = adopt(d, 1, T_ADOPTION(.attempt = 3, .given_up = 1, .devices = "fake:0"));
    uint64_t other;
    struct gpud_event g;

    for (uint64_t tag = 2; tag <= 5; tag++)
        WORK(d, tag);
    T_EQ(t_poll(d, &log, 0), 0);
    T_EQ(t_stats(d).accepted, 4);
    other = adopt(d, 9, T_ADOPTION(.attempt = 1, .given_up = 1, .cpus = 1)); /* the queue is full */
    T_OK(gpud_dispatcher_ended(d, other, 1, T_END(.outcome = GPUD_OUTCOME_SUCCESS), NULL));
    T_CODE(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_SOFT), ENOTFOUND);
    T_CODE(gpud_dispatcher_progress(d, id, 3, 0, NULL, NULL), ENOTFOUND);
    T_OK(gpud_dispatcher_ended(d, id, 3, T_END(.outcome = GPUD_OUTCOME_CRASHED), NULL));
    for (uint64_t tag = 2; tag <= 5; tag++) {
        g = start_granted(d, &log, tag, 0);
        ENDED(d, g, SUCCESS);
    }
    t_collect(d, &log, 4);
    T_EQ(t_log_count(&log, GPUD_EVENT_OUTCOME), 4);
    t_end(&d, &log);
}

/* A host that starts again: what ran goes on, and has its device before anything is granted. */
T_CASE(external_adopted_before_grants)
{
    gpud_dispatcher *d = outside("fake:2", T_OPTIONS(.task_limit = T_S(60)));
    struct t_log log = { 0 };
    struct gpud_event g;
    uint64_t id, began;
    int r;

    WORK(d, 1);
    g = start_granted(d, &log, 1, 0);
    began = t_now();
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_LEAVE, 0));
    t_collect_rest(d, &log);
    t_destroy(&d, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:2");
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL));
    id = adopt(d, 1, T_ADOPTION(.attempt = g.attempt, .devices = "fake:0",
                                .proc = T_PROC(.pid = (uint32_t)getpid(), .started_at = began)));
    add(d, T_CLASS(.name = "model", .options = T_OPTIONS(.definition = "test")));
    WORK(d, 2, .request = T_REQUEST(.devices = 2));
    T_SUBMIT(d, .tag = 3, .class_name = "model");
    r = t_poll(d, &log, 0);
    T_CMP(r, >=, 0);
    T_OK(gpud_dispatcher_ended(d, id, g.attempt, T_END(.outcome = GPUD_OUTCOME_SUCCESS), NULL));
    ENDED(d, start_granted(d, &log, 2, 0), SUCCESS);
    t_collect(d, &log, 3);
    T_EQ(T_OUTCOME(&log, 1, SUCCESS)->attempt, 1);
    t_end(&d, &log);
}

/* On a device that is out of use: it is to be killed at once. */
T_CASE(adopted_on_a_lost_device)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t at = 0;
    uint64_t id;

    t_init(NULL, t_no_work, NULL);
    d = t_fakes(2, "when gone gpu 1 xid 79 lost", T_OPTIONS(.pooled = 1));
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL));
    t_trigger("gone");
    (void)t_told_health(d, &log, &at, "fake:1", GPUD_HEALTH_LOST);
    id = adopt(d, 1, T_ADOPTION(.attempt = 1, .devices = "fake:1"));
    (void)revoked(d, &log, 1, 0, GPUD_REVOKED_DEVICE, GPUD_REVOKE_HARD);
    T_OK(gpud_dispatcher_ended(d, id, 1, T_END(.outcome = GPUD_OUTCOME_CRASHED), NULL));
    t_collect(d, &log, 1);
    T_EQ(T_OUTCOME(&log, 1, CRASHED)->code, GPUD_EDEVICE);
    t_end(&d, &log);
}

static void adoption_refused(gpud_dispatcher *d, const struct gpud_adoption *a, int code,
                             const char *field)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    uint64_t id = 77;

    T_EQ(gpud_dispatcher_adopt(d, T_TASK(.class_name = "work"), a, &id, &e), code);
    T_EQ(id, 77);
    T_TEXT(e.field, field);
}

T_CASE(adoptions_refused)
{
    gpud_dispatcher *d = outside("fake:2", NULL);
    struct gpud_error e = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    uint64_t id;
#define REFUSED(code, field, ...) \
    adoption_refused(d, T_ADOPTION(__VA_ARGS__), GPUD_##code, #field)

    add(d, T_CLASS(.name = "model", .options = T_OPTIONS(.definition = "test")));
    REFUSED(EINVAL, attempt, .devices = "fake:0");
    REFUSED(EINVAL, attempt, .attempt = 1u << 31, .devices = "fake:0"); /* later ones rise */
    REFUSED(EINVAL, devices, .attempt = 1);
    REFUSED(EDEVICE, devices, .attempt = 1, .devices = "fake:0,fake:7");
    REFUSED(EDEVICE, devices, .attempt = 1, .devices = ",fake:0");
    REFUSED(EINVAL, devices, .attempt = 1, .devices = "fake:0,fake:0");
    REFUSED(EINVAL, attempts, .attempt = 300, .devices = "fake:0", .attempts = 255);
    REFUSED(EINVAL, attempts, .attempt = 2, .devices = "fake:0", .attempts = 2);
    REFUSED(EINVAL, given_up, .attempt = 1, .devices = "fake:0", .given_up = 2);
    REFUSED(EINVAL, share, .attempt = 1, .devices = "fake:0", .share = 10001);
    REFUSED(EINVAL, share, .attempt = 1, .devices = "fake:0,fake:1", .share = 5000);
    REFUSED(EINVAL, share, .attempt = 1, .cpus = 1, .share = 5000);
    REFUSED(EINVAL, memory, .attempt = 1, .cpus = 1, .memory = 1);
    REFUSED(EINVAL, started_at, .attempt = 1, .devices = "fake:0",
            .proc = T_PROC(.started_at = t_now() + T_S(60)));
    REFUSED(EINVAL, reserved, .attempt = 1, .devices = "fake:0", .proc = T_PROC(.reserved = 1));
    T_CODE(gpud_dispatcher_adopt(d, T_TASK(.class_name = "model"),
                                 T_ADOPTION(.attempt = 1, .devices = "fake:0"), &id, &e), EINVAL);
    T_TEXT(e.field, "class_name");
    for (uint64_t tag = 1; tag <= 8; tag++)
        (void)adopt(d, tag, T_ADOPTION(.attempt = 1, .cpus = 2));
    REFUSED(EFULL, max_workers, .attempt = 1, .cpus = 1);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_LEAVE, 0));
    t_collect_rest(d, &log);
    REFUSED(ECLOSED, , .attempt = 1, .devices = "fake:0");
    t_end(&d, &log);
}
