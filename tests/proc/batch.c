/* SPDX-License-Identifier: MIT */
/* batch.c - several tasks in one call of process_batch: how they come together, and that each keeps
 * its own outcome. */
#include "verbs.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

enum verb {
    WORK,
    LARGE,
    FAIL,             /* this member alone */
    FAIL_THE_CALL,    /* process_batch returns 5 */
    CRASH_IN_COMPANY, /* only where there are others */
    WAIT_FOR_GATE,
    UNTIL_EXPIRED,
    SPIN_FIRST, /* nothing but a kill ends its first attempt */
    UNTIL_CANCELLED,
    TELL_PROGRESS
};

enum { GATE, STARTED, PLAIN_CALLS, FALSE_ALARMS };
#define LARGE_SIZE (100u << 10)

struct reply {
    uint32_t n, index, expired, cancelled;
};

static int run_member(gpud_task *const *tasks, size_t n, size_t i)
{
    gpud_task *t = tasks[i];
    void *room;

    switch ((enum verb)(gpud_task_tag(t) >> 32)) {
    case WORK:
        return 0;
    case LARGE:
        if (gpud_task_result_alloc(t, LARGE_SIZE, &room))
            return 9;
        memset(room, (int)gpud_task_tag(t), LARGE_SIZE);
        return 0;
    case FAIL:
        (void)gpud_task_fail(t, 7, "this one");
        return 0;
    case FAIL_THE_CALL:
        return 5;
    case CRASH_IN_COMPANY:
        if (n > 1)
            (void)raise(SIGKILL);
        return 0;
    case WAIT_FOR_GATE:
        (void)t_word_add(STARTED);
        t_word_wait(GATE, 1);
        return 0;
    case UNTIL_EXPIRED:
        while (!gpud_task_expired(t))
            t_pass(T_MS(1));
        return 0;
    case SPIN_FIRST:
        (void)t_word_add(STARTED);
        if (gpud_task_attempt(t) > 1)
            return 0;
        t_block_signals();
        for (;;)
            ;
    case UNTIL_CANCELLED:
        (void)t_word_add(STARTED);
        while (!gpud_task_cancelled(t))
            t_pass(T_MS(1));
        for (size_t k = 0; k < n; k++)
            if (k != i && gpud_task_cancelled(tasks[k]))
                (void)t_word_add(FALSE_ALARMS);
        return 0;
    case TELL_PROGRESS:
        return gpud_task_progress(t, 0.5, "half");
    }
    return -1;
}

static int process_batch(gpud_task *const *tasks, size_t n, void *state)
{
    int code = 0;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        int r = run_member(tasks, n, i);
        struct reply reply = { (uint32_t)n, (uint32_t)i, (uint32_t)gpud_task_expired(tasks[i]),
                               (uint32_t)gpud_task_cancelled(tasks[i]) };

        code = r ? r : code;
        if (gpud_task_tag(tasks[i]) >> 32 != LARGE &&
            gpud_task_result_set(tasks[i], &reply, sizeof(reply)))
            return 98;
    }
    return code;
}

static int process(gpud_task *t, void *state)
{
    (void)t, (void)state;
    (void)t_word_add(PLAIN_CALLS);
    return 0;
}

static void init_batch(gpud_process_fn *single)
{
    struct gpud_definition definition = GPUD_DEFINITION_BATCH("test", NULL, process_batch, NULL);
    struct gpud_error error = GPUD_ERROR_INIT;

    definition.process = single;
    if (gpud_init(&definition, 1, &error))
        T_FAIL("gpud_init: %s: %s", error.field, error.text);
}

static const struct reply *reply_of(const struct gpud_event *e)
{
    T_EQ(e->result_size, sizeof(struct reply));
    return e->result;
}

static int so_many_sent(void *user)
{
    return t_stats(user).sent >= 9;
}

/* One worker is held by a first task; those that come meanwhile are run in full batches, in order.
 */
T_CASE(full_batches)
{
    enum { TASKS = 64 };
    struct t_log log = { 0 };
    uint64_t last = 0;
    gpud_dispatcher *d;

    init_batch(NULL);
    d = T_CREATE(.devices = "cpu:1", .max_batch = 8, .sent_ahead = 64);
    T_SUBMIT(d, .tag = T_TAG(WAIT_FOR_GATE, 0));
    t_word_wait(STARTED, 1);
    for (uint64_t i = 0; i < TASKS; i++)
        T_SUBMIT(d, .tag = T_TAG(i % 5 ? WORK : LARGE, i));
    t_wait_until("they are at the worker", so_many_sent, d);
    while (t_stats(d).sent < 64)
        (void)t_poll(d, &log, T_MS(1));
    t_word_set(GATE, 1);
    t_collect(d, &log, TASKS + 1);
    for (uint64_t i = 0; i < TASKS; i++) {
        const struct gpud_event *e = T_OUTCOME(&log, T_TAG(i % 5 ? WORK : LARGE, i), SUCCESS);

        T_CMP(e->started_at, >=, last);
        last = e->started_at;
        if (i % 5 == 0) {
            T_EQ(e->result_size, LARGE_SIZE);
            T_EQ(((const unsigned char *)e->result)[LARGE_SIZE - 1], i);
        } else if (i <
                   56) { /* 63 were sent while the first ran: 7 full batches and what was left */
            T_EQ(reply_of(e)->n, 8);
            T_EQ(reply_of(e)->index, i % 8);
        }
    }
    T_CMP(t_stats(d).batches, >=, 1 + 8);
    T_CMP(t_stats(d).batches, <=, 1 + 10);
    t_end(&d, &log);
}

/* Holds the one worker with a task of its own, sends n more, and lets it go: they share one call.
 */
static void send_together(gpud_dispatcher *d, struct t_log *log, const struct gpud_task_desc *tasks,
                          size_t n)
{
    uint32_t held = t_word(STARTED) + 1;

    t_word_set(GATE, 0);
    T_SUBMIT(d, .tag = T_TAG(WAIT_FOR_GATE, held));
    t_word_wait(STARTED, held);
    for (size_t i = 0; i < n; i++)
        (void)t_submit(d, &tasks[i]);
    while (t_stats(d).sent < n + 1)
        (void)t_poll(d, log, T_MS(1));
    t_word_set(GATE, 1);
}

#define DESC(...) { .struct_size = sizeof(struct gpud_task_desc), __VA_ARGS__ }

/* Each keeps its own outcome: fail is of one member, the value returned of all that have not said
 * otherwise. */
T_CASE(own_outcomes)
{
    const struct gpud_task_desc first[] = { DESC(.tag = 1), DESC(.tag = T_TAG(FAIL, 2)),
                                            DESC(.tag = 3) };
    const struct gpud_task_desc second[] = { DESC(.tag = 11), DESC(.tag = T_TAG(FAIL, 12)),
                                             DESC(.tag = T_TAG(FAIL_THE_CALL, 13)),
                                             DESC(.tag = 14) };
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    init_batch(NULL);
    d = T_CREATE(.devices = "cpu:1", .max_batch = 8);
    send_together(d, &log, first, 3);
    t_collect(d, &log, 4);
    send_together(d, &log, second, 4);
    t_collect(d, &log, 9);
    T_EQ(reply_of(T_OUTCOME(&log, 1, SUCCESS))->n, 3);
    T_EQ(reply_of(T_OUTCOME(&log, 3, SUCCESS))->n, 3);
    e = T_OUTCOME(&log, T_TAG(FAIL, 2), ERROR);
    T_EQ(e->code, 7);
    T_TEXT(e->text, "this one");
    T_EQ(T_OUTCOME(&log, 11, ERROR)->code, 5);
    T_EQ(T_OUTCOME(&log, T_TAG(FAIL, 12), ERROR)->code, 7);
    T_EQ(T_OUTCOME(&log, T_TAG(FAIL_THE_CALL, 13), ERROR)->code, 5);
    T_EQ(T_OUTCOME(&log, 14, ERROR)->code, 5);
    T_EQ(reply_of(T_OUTCOME(&log, 14, ERROR))->n, 4);
    t_end(&d, &log);
}

/* With batch_wait a worker waits for more: as long as it says for one, not at all when all are
 * there. */
T_CASE(waits_for_more)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    init_batch(NULL);
    d = T_CREATE(.devices = "cpu:1", .max_batch = 4, .batch_wait = T_MS(150));
    t_wait_ready(d, 1);
    e = T_RUN(d, &log, SUCCESS, .tag = 0);
    T_CMP(e->started_at - e->sent_at, >=, T_MS(150));
    T_CMP(e->started_at - e->sent_at, <, T_MS(150) + T_S(2));
    t_destroy(&d, &log);

    d = T_CREATE(.devices = "cpu:1", .max_batch = 4, .batch_wait = T_S(60));
    t_wait_ready(d, 1);
    for (uint64_t i = 0; i < 4; i++) {
        T_SUBMIT(d, .tag = i);
        t_pass(T_MS(5)); /* the worker gathers, and each comes by itself */
    }
    t_collect(d, &log, 4);
    for (uint64_t i = 0; i < 4; i++) {
        e = T_OUTCOME(&log, i, SUCCESS);
        T_EQ(reply_of(e)->n, 4);
        T_EQ(reply_of(e)->index, i);
        T_EQ(e->started_at, T_OUTCOME(&log, 0, SUCCESS)->started_at);
    }
    T_EQ(t_stats(d).batches, 1);
    T_EQ(t_stats(d).recalled, 0);
    t_destroy(&d, &log);
    T_OK(gpud_fini());
}

static int one_is_sent(void *user)
{
    return t_stats(user).sent == 1;
}

/* What a worker gathers has not started: cancel and expiry take it at once. */
T_CASE(gathered_is_not_started)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    uint64_t id;

    init_batch(NULL);
    d = T_CREATE(.devices = "cpu:1", .max_batch = 4, .batch_wait = T_S(60));
    id = t_submit(d, T_TASK(.tag = 0));
    t_wait_until("it is at the worker", one_is_sent, d);
    T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_HARD));
    T_SUBMIT(d, .tag = 1, .expires = T_S(1));
    t_collect(d, &log, 2);
    T_EQ(T_OUTCOME(&log, 0, CANCELLED)->attempt, 0);
    T_EQ(T_OUTCOME(&log, 1, TIMEOUT)->phase, GPUD_PHASE_QUEUED);
    T_CMP(T_OUTCOME(&log, 1, TIMEOUT)->sent_at, >, 0);
    t_end(&d, &log);
}

/* One that is to run alone does not join others that come before it. */
T_CASE(alone_behind_others)
{
    const struct gpud_task_desc tasks[] = { DESC(.tag = T_TAG(CRASH_IN_COMPANY, 0)),
                                            DESC(.tag = 1) };
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    init_batch(NULL);
    for (uint64_t round = 0; round < 10; round++) {
        d = t_create(
            T_OPTIONS(.devices = "cpu:1", .max_batch = 2, .sent_ahead = 3, .max_attempts = 2));
        t_word_set(GATE, 0);
        T_SUBMIT(d, .tag = T_TAG(WAIT_FOR_GATE, round));
        t_word_wait(STARTED, (uint32_t)round + 1);
        for (int i = 0; i < 2; i++)
            (void)t_submit(d, &tasks[i]);
        while (t_stats(d).sent < 3)
            (void)t_poll(d, &log, T_MS(1));
        /* before the two, once these come back */
        T_SUBMIT(d, .tag = 2, .priority = 5);
        t_word_set(GATE, 1);
        t_collect(d, &log, 4);
        T_EQ(T_OUTCOME(&log, T_TAG(CRASH_IN_COMPANY, 0), SUCCESS)->attempt, 2);
        T_EQ(reply_of(T_OUTCOME(&log, T_TAG(CRASH_IN_COMPANY, 0), SUCCESS))->n, 1);
        T_EQ(reply_of(T_OUTCOME(&log, 1, SUCCESS))->n, 1);
        T_EQ(T_OUTCOME(&log, 2, SUCCESS)->attempt, 1);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

/* The limit of the call is the earliest member's; who is past its own is TIMEOUT, the others are
 * not. */
T_CASE(earliest_limit)
{
    const struct gpud_task_desc tasks[] = { DESC(.tag = 0),
                                            DESC(.tag = T_TAG(UNTIL_EXPIRED, 1), .limit = T_S(100)),
                                            DESC(.tag = 2, .limit = T_MS(60)) };
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    init_batch(NULL);
    d = T_CREATE(.devices = "cpu:1", .max_batch = 3, .grace = T_S(60));
    send_together(d, &log, tasks, 3);
    t_collect(d, &log, 4);
    e = T_OUTCOME(&log, 2, TIMEOUT);
    T_EQ(e->phase, GPUD_PHASE_PROCESS);
    T_CMP(e->ended_at, >=, e->started_at + T_MS(60));
    T_EQ(reply_of(T_OUTCOME(&log, 0, SUCCESS))->n, 3);
    T_EQ(reply_of(T_OUTCOME(&log, T_TAG(UNTIL_EXPIRED, 1), SUCCESS))->expired, 1);
    T_EQ(t_stats(d).deaths, 0);
    t_end(&d, &log);
}

/* A kill for one member's limit: that one is TIMEOUT, the others lost their worker. */
T_CASE(killed_for_one_limit)
{
    const struct gpud_task_desc tasks[] = { DESC(.tag = T_TAG(SPIN_FIRST, 0)),
                                            DESC(.tag = 1, .limit = T_MS(50)),
                                            DESC(.tag = 2, .max_attempts = 1), DESC(.tag = 3) };
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    init_batch(NULL);
    d = t_create(
        T_OPTIONS(.devices = "cpu:1", .max_batch = 4, .grace = T_MS(60), .max_attempts = 2));
    send_together(d, &log, tasks, 4);
    t_collect(d, &log, 5);
    e = T_OUTCOME(&log, 1, TIMEOUT);
    T_EQ(e->phase, GPUD_PHASE_HARD);
    T_EQ(e->attempt, 1);
    T_CMP(e->ended_at, >=, e->started_at + T_MS(110));
    e = T_OUTCOME(&log, 2, CRASHED);
    T_EQ(e->phase, GPUD_PHASE_PROCESS);
    T_TEXT(e->text, "killed by signal 9 (SIGKILL) for another task of its batch");
    T_EQ(T_OUTCOME(&log, T_TAG(SPIN_FIRST, 0), SUCCESS)->attempt, 2);
    e = T_OUTCOME(&log, 3, SUCCESS);
    T_EQ(e->attempt, 2);
    T_EQ(reply_of(e)->n, 1);
    T_EQ(t_stats(d).hard_kills, 1);
    t_end(&d, &log);
}

/* Cancel of one member: it alone is cancelled, in time or by the kill, which the others outlive if
 * they may. */
T_CASE(cancel_one)
{
    for (int deaf = 0; deaf < 2; deaf++) {
        struct t_log log = { 0 };
        gpud_dispatcher *d;
        uint64_t id;

        init_batch(NULL);
        d = T_CREATE(.devices = "cpu:1", .max_batch = 3, .batch_wait = T_S(60),
                     .grace = deaf ? T_MS(60) : T_S(60), .max_attempts = 2);
        t_word_set(STARTED, 0);
        T_SUBMIT(d, .tag = 0);
        id = t_submit(d, T_TASK(.tag = T_TAG(deaf ? SPIN_FIRST : UNTIL_CANCELLED, 1)));
        T_SUBMIT(d, .tag = 2);
        t_word_wait(STARTED, 1);
        T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_HARD));
        t_collect(d, &log, 3);
        T_EQ(T_OUTCOME(&log, T_TAG(deaf ? SPIN_FIRST : UNTIL_CANCELLED, 1), CANCELLED)->phase,
             deaf ? GPUD_PHASE_HARD : GPUD_PHASE_PROCESS);
        T_EQ(T_OUTCOME(&log, 0, SUCCESS)->attempt, 1 + deaf);
        T_EQ(T_OUTCOME(&log, 2, SUCCESS)->attempt, 1 + deaf);
        T_EQ(reply_of(T_OUTCOME(&log, 0, SUCCESS))->n, deaf ? 1 : 3);
        T_EQ(reply_of(T_OUTCOME(&log, 0, SUCCESS))->cancelled, 0);
        T_EQ(t_word(FALSE_ALARMS), 0);
        t_end(&d, &log);
    }
}

/* Progress of each member arrives under its own name. */
T_CASE(progress_of_each)
{
    const struct gpud_task_desc tasks[] = { DESC(.tag = T_TAG(TELL_PROGRESS, 0)),
                                            DESC(.tag = T_TAG(TELL_PROGRESS, 1)),
                                            DESC(.tag = T_TAG(WAIT_FOR_GATE, 99)) };
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    init_batch(NULL);
    d = T_CREATE(.devices = "cpu:1", .max_batch = 3, .batch_wait = T_S(60));
    for (int i = 0; i < 3; i++)
        (void)t_submit(d, &tasks[i]);
    t_collect_kind(d, &log, GPUD_EVENT_PROGRESS, 2);
    T_EQ(t_log_at(&log, GPUD_EVENT_PROGRESS, 0)->tag + t_log_at(&log, GPUD_EVENT_PROGRESS, 1)->tag,
         2 * T_TAG(TELL_PROGRESS, 0) + 1);
    t_word_set(GATE, 1);
    t_collect(d, &log, 3);
    t_end(&d, &log);
}

/* Which of the two functions is called; and what cannot be is refused with the field. */
T_CASE(which_function)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    gpud_dispatcher *d = NULL;

    init_batch(NULL);
    d = T_CREATE(0);
    t_submit_tags(d, 0, 20);
    t_collect(d, &log, 20);
    for (uint64_t i = 0; i < 20; i++)
        T_EQ(reply_of(T_OUTCOME(&log, i, SUCCESS))->n, 1);
    t_end(&d, &log);

    init_batch(process);
    d = T_CREATE(0);
    T_SUBMIT(d, .tag = 0);
    t_collect(d, &log, 1);
    T_EQ(t_word(PLAIN_CALLS), 1);
    t_destroy(&d, &log);
    d = T_CREATE(.max_batch = 2);
    T_SUBMIT(d, .tag = 0);
    t_collect(d, &log, 1);
    T_EQ(t_word(PLAIN_CALLS), 1);
    t_end(&d, &log);

    t_init(NULL, process, NULL);
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.max_batch = 2), &error), EINVAL);
    T_TEXT(error.field, "max_batch");
    T_CHECK(strstr(error.text, "process_batch"));
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.max_batch = 65), &error), EINVAL);
    T_TEXT(error.field, "max_batch");
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.batch_wait = GPUD_NEVER), &error), EINVAL);
    T_TEXT(error.field, "batch_wait");
    T_OK(gpud_fini());
}

/* Definitions of a program that was built before process_batch: shorter records, one after the
 * other. */
T_CASE(older_definitions)
{
    struct {
        uint32_t struct_size, reserved;
        const char *name;
        gpud_setup_fn *setup;
        gpud_process_fn *process;
        gpud_cleanup_fn *cleanup;
    } old[3] = { { .name = "a" }, { .name = "b" }, { .name = "c" } };
    struct gpud_error error = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    T_EQ(sizeof(old[0]), offsetof(struct gpud_definition, process_batch));
    for (int i = 0; i < 3; i++) {
        old[i].struct_size = sizeof(old[i]);
        old[i].process = process;
    }
    old[2].struct_size = 8;
    T_CODE(gpud_init((const struct gpud_definition *)(void *)old, 3, &error), ESTRUCT);
    T_TEXT(error.field, "struct_size");
    old[2].struct_size = sizeof(old[2]);
    T_OK(gpud_init((const struct gpud_definition *)(void *)old, 3, &error));
    d = T_CREATE(.definition = "c");
    T_SUBMIT(d, .tag = 0);
    t_collect(d, &log, 1);
    T_EQ(t_word(PLAIN_CALLS), 1);
    t_end(&d, &log);
}
