/* SPDX-License-Identifier: MIT */
/* external.c - external work: grants, starts and ends, as the host sees them.        [C1] [C7] */
#include "external.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- one task ---- */

T_CASE(from_grant_to_outcome)
{
    gpud_dispatcher *d = outside("fake:2", T_OPTIONS(.task_limit = T_S(60)));
    struct t_log log = { 0 };
    const struct gpud_event *e;
    struct gpud_event g;
    char line[256];

    WORK(d, 1, .label = "one",
         .request = T_REQUEST(.devices = 2, .memory = T_GIB(3), .on = "fake:0,fake:1"));
    g = start_granted(d, &log, 1, 0);
    T_EQ(g.attempt, 1);
    T_EQ(g.share, 10000);
    T_EQ(g.memory, T_GIB(3));
    T_EQ(g.limit, T_S(60));
    T_TEXT(g.label, "one");
    T_TEXT(g.class_name, "work");
    T_EQ(g.slot, GPUD_NO_SLOT);
    T_TEXT(g.device, "fake:0,fake:1");
    T_CHECK(strchr(g.device_uuid, ','));
    T_TEXT(strndupa(g.device_uuid, strcspn(g.device_uuid, ",")), t_device(d, "fake:0").uuid);
    T_CMP(gpud_event_format(&g, line, sizeof(line)), >, 0);
    T_TEXT(strchr(line, 'o'),
           "one\" of class work GRANTED, attempt 1, on fake:0,fake:1, limit 60 s");
    ENDED(d, g, SUCCESS, .text = "fine", .result = "four", .result_size = 5, .output = "said",
          .output_size = 4, .exit_kind = GPUD_EXIT_CODE);
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, 1, SUCCESS);
    T_EQ(e->attempt, 1);
    T_TEXT(e->device, "fake:0,fake:1");
    T_TEXT(e->label, "one");
    T_TEXT(e->result, "four");
    T_TEXT(e->output, "said");
    T_EQ(e->exit_kind, GPUD_EXIT_CODE);
    T_EQ(e->slot, GPUD_NO_SLOT);
    T_CODE(gpud_dispatcher_ended(d, g.task_id, 1, T_END(.outcome = GPUD_OUTCOME_SUCCESS), NULL),
           ENOTFOUND);
    t_end(&d, &log);
}

/* A host without definitions needs no gpud_init, where no class has workers. */
T_CASE(without_definitions)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    T_EQ(setenv("GPUD_WORKER_PROGRAM", T_PROGRAMS "/../../lib/gpudispatch-worker", 1), 0);
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL));
    WORK(d, 1);
    ENDED(d, start_granted(d, &log, 1, 0), SUCCESS);
    t_collect(d, &log, 1);
    t_destroy(&d, &log);
    T_EQ(unsetenv("GPUD_WORKER_PROGRAM"), 0);
}

/* A second attempt has a higher number, and the texts of both. */
T_CASE(retried)
{
    gpud_dispatcher *d = outside("fake:1", T_OPTIONS(.max_attempts = 2,
                                                     .retry_causes = GPUD_RETRY_ERROR));
    const struct gpud_event *e;
    struct t_log log = { 0 };
    struct gpud_event g;

    WORK(d, 1);
    g = start_granted(d, &log, 1, 0);
    ENDED(d, g, ERROR, .code = 7, .text = "first", .result = "x", .result_size = 2);
    T_EQ(t_stats(d).retried, 1);
    T_CODE(gpud_dispatcher_progress(d, g.task_id, g.attempt, 0.5, NULL, NULL), ENOTFOUND);
    g = granted(d, &log, 1, 1);
    T_CODE(gpud_dispatcher_decline(d, g.task_id, g.attempt, 0, NULL), OK);
    g = start_granted(d, &log, 1, 2);
    T_EQ(g.attempt, 3);
    T_EQ(g.attempts, 1);
    ENDED(d, g, ERROR, .code = 8, .exit_kind = GPUD_EXIT_CODE, .exit_status = 8);
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, 1, ERROR);
    T_EQ(e->code, 8);
    T_EQ(e->attempt, 2);
    T_EQ(e->result_size, 0);
    T_EQ(e->exit_status, 8);
    T_TEXT(e->text, "attempt 1: first; attempt 2: exited with status 8");
    t_end(&d, &log);
}

/* The row of a device shows the work there, from its grant until its devices are free. */
T_CASE(device_rows)
{
    gpud_dispatcher *d = outside("fake:1", T_OPTIONS(.task_limit = T_S(100)));
    struct t_log log = { 0 };
    struct gpud_device_info r;
    struct gpud_event g;

    WORK(d, 1);
    g = granted(d, &log, 1, 0);
    r = t_device(d, "fake:0");
    T_EQ(r.state, GPUD_DEVICE_STATE_STARTING);
    T_EQ(r.task_id, g.task_id);
    T_EQ(r.task_started + r.ready_at + r.pid, 0);
    T_OK(gpud_dispatcher_started(d, g.task_id, g.attempt, T_PROC(.pid = (uint32_t)getpid()), NULL));
    r = t_device(d, "fake:0");
    T_EQ(r.state, GPUD_DEVICE_STATE_BUSY);
    T_EQ(r.task_id, g.task_id);
    T_EQ(r.state_since, r.task_started);
    T_EQ(r.ready_at, r.task_started + T_S(100));
    T_EQ(r.pid, getpid());
    T_EQ(r.workers, 0);
    T_EQ(r.slot, GPUD_UNKNOWN32);
    T_TEXT(r.class_name, "work");
    T_OK(gpud_dispatcher_device_drain(d, "fake:0"));
    r = t_device(d, "fake:0");
    T_EQ(r.state, GPUD_DEVICE_STATE_DRAINING);
    T_EQ(r.ready_at, 0);
    ENDED(d, g, SUCCESS);
    t_collect(d, &log, 1);
    r = t_device(d, "fake:0");
    T_EQ(r.state, GPUD_DEVICE_STATE_STOPPED);
    T_EQ(r.tasks_done, 1);
    T_EQ(r.task_id, 0);
    t_end(&d, &log);
}

/* The event has all that the task holds, for a journal of the host. */
T_CASE(granted_variant)
{
    const struct gpud_request second = { .struct_size = sizeof second,
                                         .devices = 1,
                                         .share = 2500,
                                         .cpus = 2,
                                         .memory = 3ull << 30,
                                         .host_memory = 1 << 20 };
    gpud_dispatcher *d = T_CREATE(.pooled = 1, .devices = "fake:1", .cpus = 2);
    struct t_log log = { 0 };
    struct gpud_event g;

    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL));
    T_SUBMIT(d, .tag = 1, .class_name = "work",
             .request = T_REQUEST(.devices = 1, .memory = 99ull << 30, .next = &second));
    g = start_granted(d, &log, 1, 0);
    T_EQ(g.variant, 1);
    T_EQ(g.share, 2500);
    T_EQ(g.cpus, 2);
    T_EQ(g.memory, 3ull << 30);
    T_EQ(g.host_memory, 1 << 20);
    T_EQ(g.attempts, 0);
    ENDED(d, g, CRASHED);
    t_collect(d, &log, 1);
    T_TEXT(T_OUTCOME(&log, 1, CRASHED)->text, "crashed");
    t_destroy(&d, &log);
}

T_CASE(crashed)
{
    gpud_dispatcher *d = outside("fake:1", NULL);
    const struct gpud_event *e;
    struct t_log log = { 0 };

    WORK(d, 1);
    ENDED(d, granted(d, &log, 1, 0), CRASHED, .exit_kind = GPUD_EXIT_SIGNAL, .exit_status = 11);
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, 1, CRASHED);
    T_EQ(e->code, GPUD_ECRASHED);
    T_EQ(e->attempt, 1); /* it counts as started */
    T_EQ(e->exit_kind, GPUD_EXIT_SIGNAL);
    T_TEXT(e->text, "killed by signal 11 (SIGSEGV)");
    t_end(&d, &log);
}

/* ---- before the start ---- */

/* Its old place is before the task that came later. */
T_CASE(declined_is_uncharged)
{
    gpud_dispatcher *d = outside("fake:1", T_OPTIONS(.max_attempts = 1));
    struct t_log log = { 0 };
    struct gpud_event g;

    WORK(d, 1);
    g = granted(d, &log, 1, 0);
    WORK(d, 2);
    T_OK(gpud_dispatcher_decline(d, g.task_id, g.attempt, 0, NULL));
    T_CODE(gpud_dispatcher_started(d, g.task_id, g.attempt, NULL, NULL), ENOTFOUND);
    g = granted(d, &log, 1, 1);
    T_EQ(g.attempt, 2);
    T_OK(gpud_dispatcher_decline(d, g.task_id, g.attempt, t_now() + T_MS(200), NULL));
    ENDED(d, start_granted(d, &log, 2, 0), SUCCESS);
    g = start_granted(d, &log, 1, 2);
    T_EQ(g.attempt, 3);
    ENDED(d, g, SUCCESS);
    t_collect(d, &log, 2);
    T_EQ(T_OUTCOME(&log, 1, SUCCESS)->attempt, 1);
    T_EQ(t_log_count(&log, GPUD_EVENT_REVOKED), 0);
    t_end(&d, &log);
}

/* The host never starts what it is granted. */
T_CASE(external_host_never_answers)
{
    gpud_dispatcher *d = outside("fake:1", T_OPTIONS(.setup_limit = T_MS(50)));
    const struct gpud_event *e;
    struct t_log log = { 0 };

    WORK(d, 1);
    for (uint32_t i = 0; i < 2; i++) {
        (void)granted(d, &log, 1, i);
        T_EQ(revoked(d, &log, 1, i, GPUD_REVOKED_START, GPUD_REVOKE_BACK).attempt, i + 1);
    }
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, 1, NO_WORKER);
    T_EQ(e->attempt, 0);
    T_EQ(e->phase, GPUD_PHASE_QUEUED);
    T_EQ(e->code, GPUD_ENOWORKER);
    T_CHECK(strstr(e->text, "granted 3 times, never started"));
    t_end(&d, &log);
}

/* A host that reads no events gets none about grants that are over. */
T_CASE(grants_that_nobody_reads)
{
    gpud_dispatcher *d = outside("fake:1", T_OPTIONS(.setup_limit = T_MS(20)));
    struct t_log log = { 0 };

    WORK(d, 1, .awaited = 1);
    for (uint64_t tag = 2; tag <= 9; tag++)
        WORK(d, tag, .awaited = 1);
    while (t_stats(d).no_worker < 9)
        t_pass(T_MS(1));
    T_EQ(t_stats(d).undelivered, 0);
    T_EQ(t_poll(d, &log, 0), 0);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_NOW, 0));
    t_collect_rest(d, &log);
    T_EQ(log.count, 0);
    T_OK(gpud_dispatcher_destroy(&d, NULL));
    T_OK(gpud_fini());
}

/* The ring of events does not fill up with them, however long nobody reads. */
T_LONG_CASE(many_grants_that_nobody_reads, 60)
{
    gpud_dispatcher *d = outside("fake:1", T_OPTIONS(.setup_limit = T_MS(1)));
    struct t_log log = { 0 };
    uint64_t id[60];

    for (int round = 0; round < 13; round++) { /* 3 grants each: more than the ring has room for */
        for (size_t i = 0; i < T_LENGTH(id); i++)
            id[i] = WORK(d, i, .awaited = 1, .request = T_REQUEST(.cpus = 1));
        for (size_t i = 0; i < T_LENGTH(id); i++) {
            struct gpud_event e = GPUD_EVENT_INIT;
            T_OK(gpud_dispatcher_wait(d, id[i], &e, T_PATIENCE, NULL));
            T_EQ(e.outcome, GPUD_OUTCOME_NO_WORKER);
            T_OK(gpud_event_release(&e));
        }
    }
    T_EQ(t_stats(d).undelivered, 0);
    WORK(d, 7, .request = T_REQUEST(.cpus = 1));
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, 7, NO_WORKER);
    t_end(&d, &log);
}

T_CASE(expired_and_cancelled_before_the_start)
{
    gpud_dispatcher *d = outside("fake:1", NULL);
    struct t_log log = { 0 };
    struct gpud_event g;

    WORK(d, 1, .expires = T_MS(50));
    g = granted(d, &log, 1, 0);
    t_collect(d, &log, 1);
    T_EQ(T_OUTCOME(&log, 1, TIMEOUT)->phase, GPUD_PHASE_QUEUED);
    T_CHECK(strstr(T_OUTCOME(&log, 1, TIMEOUT)->text, "not started within 0.050 s"));
    T_CODE(gpud_dispatcher_started(d, g.task_id, g.attempt, NULL, NULL), ENOTFOUND);
    WORK(d, 2);
    g = granted(d, &log, 2, 0);
    T_OK(gpud_dispatcher_cancel(d, g.task_id, GPUD_CANCEL_SOFT));
    T_CODE(gpud_dispatcher_decline(d, g.task_id, g.attempt, 0, NULL), ENOTFOUND);
    t_collect(d, &log, 2);
    T_EQ(T_OUTCOME(&log, 2, CANCELLED)->attempt, 0);
    t_end(&d, &log);
}

/* A call with the number of another grant changes nothing. */
T_CASE(stale_attempt)
{
    gpud_dispatcher *d = outside("fake:1", NULL);
    struct gpud_error e = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    struct gpud_event g;

    WORK(d, 1);
    g = granted(d, &log, 1, 0);
    T_OK(gpud_dispatcher_decline(d, g.task_id, 1, 0, NULL));
    g = granted(d, &log, 1, 1);
    for (uint32_t attempt = 0; attempt < 4; attempt += attempt == 1 ? 2 : 1) {
        T_CODE(gpud_dispatcher_started(d, g.task_id, attempt, NULL, &e), ENOTFOUND);
        T_TEXT(e.field, "attempt");
        T_CODE(gpud_dispatcher_decline(d, g.task_id, attempt, 0, NULL), ENOTFOUND);
        T_CODE(gpud_dispatcher_progress(d, g.task_id, attempt, 0, NULL, NULL), ENOTFOUND);
        T_CODE(gpud_dispatcher_ended(d, g.task_id, attempt, T_END(.outcome = 1), NULL), ENOTFOUND);
    }
    T_CODE(gpud_dispatcher_progress(d, g.task_id, 2, 0, NULL, NULL), ENOTFOUND); /* not started */
    started(d, &g);
    T_CODE(gpud_dispatcher_started(d, g.task_id, 2, NULL, NULL), ENOTFOUND);
    T_CODE(gpud_dispatcher_decline(d, g.task_id, 2, 0, NULL), ENOTFOUND);
    ENDED(d, g, SUCCESS);
    T_CODE(gpud_dispatcher_ended(d, g.task_id, 2, T_END(.outcome = 1), NULL), ENOTFOUND);
    t_collect(d, &log, 1);
    T_EQ(t_log_count(&log, GPUD_EVENT_OUTCOME), 1);
    t_end(&d, &log);
}

/* ---- order, and beside workers ---- */

T_CASE(order_over_refills)
{
    static const uint64_t orders[] = { 50, 60, 20, 10, 30, 40 };
    gpud_dispatcher *d = outside("fake:1", NULL);
    struct t_log log = { 0 };
    struct gpud_event g;

    WORK(d, 99);
    g = start_granted(d, &log, 99, 0);
    for (uint64_t i = 0; i < 6; i++)
        WORK(d, orders[i], .order = orders[i]);
    WORK(d, 70);
    ENDED(d, g, SUCCESS);
    for (uint64_t tag = 10; tag <= 70; tag += 10) {
        g = start_granted(d, &log, tag, 0);
        T_EQ(t_log_count(&log, GPUD_EVENT_GRANTED), 1 + tag / 10);
        ENDED(d, g, SUCCESS);
    }
    t_collect(d, &log, 8);
    t_end(&d, &log);
}

enum { GATE, RUNS };

static int wait_for_gate(gpud_task *t, void *state)
{
    (void)t, (void)state;
    t_word_add(RUNS);
    t_word_wait(GATE, 1);
    return 0;
}

/* Half of the device each, side by side; then the work waits for the memory of the worker. */
T_CASE(external_and_resident_share_a_device)
{
    const struct gpud_request *half = T_REQUEST(.devices = 1, .share = 5000, .memory = T_GIB(6));
    struct t_log log = { 0 };
    struct gpud_event g;
    gpud_dispatcher *d;

    t_init(NULL, wait_for_gate, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL, .needs = half));
    add(d, T_CLASS(.name = "model", .needs = half, .options = T_OPTIONS(.definition = "test")));
    T_SUBMIT(d, .tag = 1, .class_name = "model");
    t_word_wait(RUNS, 1);
    WORK(d, 2);
    g = start_granted(d, &log, 2, 0);
    t_word_set(GATE, 1);
    T_SUBMIT(d, .tag = 4, .class_name = "model");
    t_collect(d, &log, 2);
    WORK(d, 3); /* the idle worker keeps its memory */
    T_SUBMIT(d, .tag = 5, .class_name = "model"); /* it would take the share of tag 3 */
    T_EQ(t_poll(d, &log, T_MS(50)), 0);
    ENDED(d, g, SUCCESS);
    ENDED(d, start_granted(d, &log, 3, 0), SUCCESS);
    t_collect(d, &log, 5);
    t_end(&d, &log);
}

/* The task is before all that wait for the busy worker, which leaves after its own one. */
T_CASE(busy_worker_leaves_after_max_wait)
{
    struct t_log log = { 0 };
    struct gpud_event g;
    gpud_dispatcher *d;

    t_init(NULL, wait_for_gate, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL, .max_wait = GPUD_AT_ONCE));
    add(d, T_CLASS(.name = "model", .min_residence = GPUD_AT_ONCE,
                   .options = T_OPTIONS(.definition = "test")));
    T_SUBMIT(d, .tag = 1, .class_name = "model");
    t_word_wait(RUNS, 1);
    T_SUBMIT(d, .tag = 2, .class_name = "model");
    WORK(d, 3, .priority = 1);
    t_word_set(GATE, 1);
    g = start_granted(d, &log, 3, 0);
    T_OUTCOME(&log, 1, SUCCESS);
    T_EQ(t_word(RUNS), 1);
    ENDED(d, g, SUCCESS);
    t_collect(d, &log, 3);
    T_OUTCOME(&log, 2, SUCCESS);
    t_end(&d, &log);
}

/* ---- fields ---- */

static void class_refused(gpud_dispatcher *d, const struct gpud_class *class, const char *field)
{
    struct gpud_error e = GPUD_ERROR_INIT;

    T_CODE(gpud_dispatcher_class_add(d, class, &e), EINVAL);
    T_TEXT(e.field, field);
    T_CHECK(strstr(e.text, "EXTERNAL"));
}

static void classes_refused(gpud_dispatcher *d)
{
    static const char *const argv[] = { "/bin/true", NULL };
    const struct gpud_class c = { .struct_size = sizeof(c), .name = "x",
                                  .residence = GPUD_EXTERNAL };
    struct gpud_class x;
#define FIELD(field, value) (x = c, x.field = (value), class_refused(d, &x, #field))
#define OPTION(field, value) (x = c, x.options = T_OPTIONS(.field = (value)), \
                              class_refused(d, &x, #field))
    FIELD(min_workers, 1);
    FIELD(max_workers, 1);
    FIELD(pinned, 1);
    FIELD(min_residence, T_S(1));
    FIELD(keep_alive, T_S(1));
    FIELD(boot_seed, T_S(1));
    FIELD(unload_seed, T_S(1));
    OPTION(definition, "test");
    OPTION(argv, argv);
    OPTION(plugin, "x.so");
    OPTION(sent_ahead, 2);
    OPTION(max_batch, 2);
    OPTION(cleanup_limit, T_S(1));
    OPTION(start_events, 1);
    OPTION(stdio, 1);
    OPTION(max_tasks_per_worker, 1);
#undef FIELD
#undef OPTION
}

static void task_refused(gpud_dispatcher *d, const struct gpud_task_desc *task, const char *field)
{
    struct gpud_error e = GPUD_ERROR_INIT;

    T_CODE(gpud_dispatcher_submit(d, task, 0, NULL, &e), EINVAL);
    T_TEXT(e.field, field);
    T_CODE(gpud_dispatcher_check(d, task, NULL), EINVAL);
}

static void end_refused(gpud_dispatcher *d, const struct gpud_event *g, const struct gpud_end *end,
                        int code, const char *field)
{
    struct gpud_error e = GPUD_ERROR_INIT;

    T_EQ(gpud_dispatcher_ended(d, g->task_id, g->attempt, end, &e), code);
    T_TEXT(e.field, field);
}

T_CASE(fields_refused)
{
    gpud_dispatcher *d = outside("fake:1", NULL);
    struct gpud_end end = *T_END(.outcome = GPUD_OUTCOME_SUCCESS), other;
    struct gpud_error e = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    struct gpud_event g;

    classes_refused(d);
    for (uint32_t what = GPUD_CLASS_LOAD; what <= GPUD_CLASS_UNPIN; what++)
        T_CODE(gpud_dispatcher_class_set(d, "work", what, NULL), EINVAL);
    task_refused(d, T_TASK(.class_name = "work", .data = "x", .size = 1), "size");
    task_refused(d, T_TASK(.class_name = "work", .data = "x"), "data");
    task_refused(d, T_TASK(.class_name = "work", .keep_alive = T_S(1)), "keep_alive");
    WORK(d, 1);
    g = granted(d, &log, 1, 0);
    T_CODE(gpud_dispatcher_started(d, g.task_id, 1, T_PROC(.started_at = 1), &e), EINVAL);
    T_TEXT(e.field, "started_at");
    T_CODE(gpud_dispatcher_started(d, g.task_id, 1, T_PROC(.started_at = t_now() + T_S(9)), &e),
           EINVAL);
    T_CODE(gpud_dispatcher_started(d, g.task_id, 1, T_PROC(.reserved = 1), &e), EINVAL);
    T_CODE(gpud_dispatcher_decline(d, g.task_id, 1, GPUD_NEVER, &e), EINVAL);
    T_TEXT(e.field, "not_before");
    started(d, &g);
    T_CODE(gpud_dispatcher_progress(d, g.task_id, 1, 1.5, NULL, &e), EINVAL);
    T_TEXT(e.field, "fraction");
#define END(field_, value, code) \
    (other = end, other.field_ = (value), end_refused(d, &g, &other, GPUD_##code, #field_))
    END(outcome, 0, EINVAL);
    END(outcome, GPUD_OUTCOME_CANCELLED, EINVAL);
    END(code, 3, EINVAL);
    END(exit_kind, 9, EINVAL);
    END(ended_at, 1, EINVAL);
    END(ended_at, t_now() + T_S(9), EINVAL);
    END(reserved, 1, EINVAL);
    other = end;
    other.outcome = GPUD_OUTCOME_ERROR;
    end_refused(d, &g, &other, GPUD_EINVAL, "code");
    other.code = -5;
    end_refused(d, &g, &other, GPUD_EINVAL, "code");
    other.outcome = GPUD_OUTCOME_CRASHED;
    end_refused(d, &g, &other, GPUD_EINVAL, "code");
    other = end;
    other.result_size = 3;
    end_refused(d, &g, &other, GPUD_EINVAL, "result");
    other = end;
    other.output_size = 3;
    end_refused(d, &g, &other, GPUD_EINVAL, "output");
    other = end;
    other.result = "";
    other.result_size = (64ull << 20) + 1;
    end_refused(d, &g, &other, GPUD_ETOOBIG, "result_size");
    T_CODE(gpud_dispatcher_ended(d, g.task_id, 1, NULL, &e), EINVAL);
    T_TEXT(e.field, "end");
    ENDED(d, g, SUCCESS);
    t_collect(d, &log, 1);
    t_end(&d, &log);
}

T_CASE(needs_a_pool)
{
    gpud_dispatcher *d = T_BEGIN(NULL, t_no_work, .devices = "cpu:1");
    struct gpud_error e = GPUD_ERROR_INIT;
    uint64_t id;

    T_CODE(gpud_dispatcher_started(d, 1, 1, NULL, &e), EINVAL);
    T_TEXT(e.field, "pooled");
    T_CODE(gpud_dispatcher_ended(d, 1, 1, T_END(.outcome = 1), &e), EINVAL);
    T_CODE(gpud_dispatcher_adopt(d, T_TASK(.tag = 1), T_ADOPTION(.attempt = 1), &id, &e), EINVAL);
    t_end(&d, NULL);
    T_CODE(gpud_dispatcher_decline(NULL, 1, 1, 0, &e), EINVAL);
    T_CODE(gpud_dispatcher_progress(NULL, 1, 1, 0, NULL, &e), EINVAL);
}

/* ---- events and rows ---- */

/* A kept GRANTED has its names beyond the dispatcher. */
T_CASE(kept)
{
    gpud_dispatcher *d = outside("fake:3", NULL);
    struct gpud_event e = GPUD_EVENT_INIT, g, out = GPUD_EVENT_INIT;
    char uuids[400] = "";

    WORK(d, 1, .request = T_REQUEST(.devices = 3));
    for (unsigned i = 0; i < 3; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "fake:%u", i);
        (void)snprintf(uuids + strlen(uuids), sizeof(uuids) - strlen(uuids), "%s%s", i ? "," : "",
                       t_device(d, name).uuid);
    }
    T_EQ(gpud_dispatcher_poll(d, &e, 1, T_PATIENCE), 1);
    T_EQ(e.kind, GPUD_EVENT_GRANTED);
    g = e;
    T_OK(gpud_event_keep(d, &e));
    ENDED(d, g, SUCCESS, .result = uuids, .result_size = sizeof(uuids));
    T_EQ(gpud_dispatcher_poll(d, &out, 1, T_PATIENCE), 1);
    T_EQ(out.kind, GPUD_EVENT_OUTCOME);
    T_OK(gpud_event_keep(d, &out));
    t_end(&d, NULL);
    T_TEXT(e.device, "fake:0,fake:1,fake:2");
    T_TEXT(e.device_uuid, uuids);
    T_TEXT(out.device, "fake:0,fake:1,fake:2");
    T_EQ(out.result_size, sizeof(uuids));
    T_TEXT(out.result, uuids);
    T_OK(gpud_event_release(&e));
    T_OK(gpud_event_release(&out));
}

/* A program that was built with an older header gets the fields that it knows. */
T_CASE(older_records)
{
    enum { OLDER = offsetof(struct gpud_event, share) };
    gpud_dispatcher *d = outside("fake:2", NULL);
    struct gpud_event e = { .struct_size = OLDER, .share = 7 };
    const struct gpud_end end = { .struct_size = offsetof(struct gpud_end, text),
                                  .outcome = GPUD_OUTCOME_SUCCESS };
    struct t_log log = { 0 };

    WORK(d, 1, .request = T_REQUEST(.devices = 2));
    T_EQ(gpud_dispatcher_poll(d, &e, 1, T_PATIENCE), 1);
    T_EQ(e.struct_size, OLDER);
    T_EQ(e.kind, GPUD_EVENT_GRANTED);
    T_EQ(e.attempt, 1);
    T_TEXT(e.device, "fake:0,fake:1");
    T_EQ(e.share, 7);
    ended(d, e, &end);
    t_collect(d, &log, 1);
    t_end(&d, &log);
}

static struct gpud_class_stats row(gpud_dispatcher *d)
{
    struct gpud_class_stats r = GPUD_CLASS_STATS_INIT;

    T_EQ(gpud_dispatcher_classes(d, &r, 1), 1);
    return r;
}

static size_t reasons(gpud_dispatcher *d, uint64_t id, struct gpud_reason *first)
{
    size_t n;

    *first = (struct gpud_reason)GPUD_REASON_INIT;
    T_OK(gpud_dispatcher_explain(d, id, NULL, first, 1, &n, NULL));
    return n;
}

T_CASE(rows_and_reasons)
{
    gpud_dispatcher *d = outside("fake:1", NULL);
    struct gpud_reason first;
    struct t_log log = { 0 };
    struct gpud_event g;
    uint64_t id;

    WORK(d, 1);
    g = start_granted(d, &log, 1, 0);
    id = WORK(d, 2);
    T_EQ(reasons(d, g.task_id, &first), 0);
    T_CMP(reasons(d, id, &first), >, 0);
    T_EQ(first.kind, GPUD_REASON_SHARE);
    T_EQ(row(d).running, 1);
    T_EQ(row(d).queued, 1);
    T_EQ(row(d).workers, 0);
    T_EQ(t_stats(d).sent, 1);
    T_OK(gpud_dispatcher_progress(d, g.task_id, 1, 0.5, "half", NULL));
    T_EQ(t_event_of(d, &log, GPUD_EVENT_PROGRESS, 1, 0)->progress * 2, 1);
    T_TEXT(t_event_of(d, &log, GPUD_EVENT_PROGRESS, 1, 0)->text, "half");
    ENDED(d, g, SUCCESS);
    T_OK(gpud_dispatcher_class_remove(d, "work", GPUD_FINISH_ALL, NULL));
    ENDED(d, start_granted(d, &log, 2, 0), SUCCESS);
    t_collect(d, &log, 2);
    t_collect_kind(d, &log, GPUD_EVENT_CLASS, 1);
    t_end(&d, &log);
}
