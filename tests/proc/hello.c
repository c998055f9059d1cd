/* SPDX-License-Identifier: MIT */
/* hello.c - tasks go out and come back, with every field right. */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TASKS = 300 };

struct reply {
    uint64_t number, id, tag, deadline;
    uint32_t slot, incarnation, attempt;
    int32_t pid;
    char label[64], device[32];
};

/* Answers with everything that the task and its worker know. */
static int describe(gpud_task *t, void *state)
{
    struct reply r = { 0 };
    gpud_worker *w = gpud_task_worker(t);

    (void)state;
    if (gpud_task_size(t) == sizeof(r.number))
        memcpy(&r.number, gpud_task_data(t), sizeof(r.number));
    r.id = gpud_task_id(t);
    r.tag = gpud_task_tag(t);
    r.deadline = gpud_task_deadline(t);
    r.attempt = gpud_task_attempt(t);
    r.slot = gpud_worker_slot(w);
    r.incarnation = gpud_worker_incarnation(w);
    r.pid = (int32_t)getpid();
    (void)snprintf(r.label, sizeof(r.label), "%s", gpud_task_label(t));
    (void)snprintf(r.device, sizeof(r.device), "%s", gpud_worker_device(w));
    if ((uintptr_t)gpud_task_data(t) % 64 || gpud_task_expired(t) || gpud_task_cancelled(t))
        return gpud_task_fail(t, 9, "data is not aligned, or the task is marked");
    return gpud_task_result_set(t, &r, sizeof(r));
}

static const struct reply *reply_of(const struct gpud_event *e)
{
    T_EQ(e->result_size, sizeof(struct reply));
    return e->result;
}

/* C1: one outcome; each field of it says what was given and what happened. */
T_CASE(one_task_has_every_field)
{
    uint64_t number = 42, before, id;
    struct t_log log = { 0 };
    const struct gpud_event *e;
    const struct reply *r;
    gpud_dispatcher *d = T_BEGIN(NULL, describe, 0);

    before = t_now();
    id = t_submit(d, T_TASK(.tag = 7, .label = "a label", .data = &number, .size = sizeof(number)));
    t_collect(d, &log, 1);
    e = T_OUTCOME(&log, 7, SUCCESS);
    r = reply_of(e);
    T_EQ(e->task_id, id);
    T_TEXT(e->label, "a label");
    T_TEXT(e->device, "cpu:0");
    T_TEXT(e->text, "");
    T_EQ(e->slot, 0);
    T_EQ(e->incarnation, 1);
    T_EQ(e->attempt, 1);
    T_CMP(e->queued_at, >=, before);
    T_EQ(r->number, 42);
    T_EQ(r->id, id);
    T_EQ(r->tag, 7);
    T_EQ(r->attempt, 1);
    T_EQ(r->slot, 0);
    T_EQ(r->incarnation, 1);
    T_EQ(r->deadline, GPUD_NEVER);
    T_TEXT(r->label, "a label");
    T_TEXT(r->device, "cpu:0");
    T_CMP(r->pid, !=, getpid());
    t_end(&d, &log);
}

static void check_all(const struct t_log *log, unsigned slots)
{
    uint64_t last_id = 0;

    t_check_exactly_once(log, TASKS);
    for (uint64_t tag = 0; tag < TASKS; tag++) {
        const struct gpud_event *e = T_OUTCOME(log, tag, SUCCESS);
        const struct reply *r = reply_of(e);

        T_EQ(r->number, tag * 3);
        T_EQ(r->tag, tag);
        T_EQ(r->id, e->task_id);
        T_EQ(r->slot, e->slot);
        T_TEXT(r->device, e->device);
        T_CMP(e->slot, <, slots);
        T_CMP(e->task_id, >, last_id);
        last_id = e->task_id;
    }
}

static const char *const devices[] = { "cpu:1", "cpu:4", "cpu:2/2", "cpu:1,cpu:3" };
static const unsigned slots_of[] = { 1, 4, 4, 4 };

/* Both ways to drive, several device lists, submit and poll; dispatchers one after another. */
T_CASE(submit_and_poll)
{
    t_init(NULL, describe, NULL);
    for (uint32_t drive = GPUD_DRIVE_THREAD; drive <= GPUD_DRIVE_CALLER; drive++)
        for (size_t i = 0; i < 4; i++) {
            struct t_log log = { 0 };
            gpud_dispatcher *d = T_CREATE(.drive = drive, .devices = devices[i]);

            T_EQ(t_stats(d).slots, slots_of[i]);
            for (uint64_t tag = 0; tag < TASKS; tag++) {
                uint64_t number = tag * 3;

                T_SUBMIT(d, .tag = tag, .data = &number, .size = sizeof(number));
            }
            t_collect(d, &log, TASKS);
            check_all(&log, slots_of[i]);
            T_EQ(t_poll(d, &log, 0), 0);
            T_EQ(t_stats(d).delivered, TASKS);
            t_destroy(&d, &log);
        }
    T_OK(gpud_fini());
}

struct feed {
    struct t_log log;
    uint64_t next, count, number;
};

static int feed_one(struct gpud_task_desc *task, size_t n, void *user)
{
    struct feed *f = user;

    (void)n;
    if (f->next == f->count)
        return 0;
    if (task->struct_size != sizeof(*task) || task->data || task->tag)
        return -1;
    f->number = f->next * 3;
    task->tag = f->next++;
    task->data = &f->number;
    task->size = sizeof(f->number);
    return 1;
}

static int take_event(const struct gpud_event *e, void *user)
{
    return t_log_add(e, &((struct feed *)user)->log);
}

/* The workers stay between runs: the second run meets the same processes. */
T_CASE(run_twice)
{
    t_init(NULL, describe, NULL);
    for (uint32_t drive = GPUD_DRIVE_THREAD; drive <= GPUD_DRIVE_CALLER; drive++)
        for (size_t i = 0; i < 4; i++) {
            gpud_dispatcher *d = T_CREATE(.drive = drive, .devices = devices[i], .queue_size = 32);

            for (int round = 0; round < 2; round++) {
                struct feed f = { .count = TASKS };

                T_OK(gpud_dispatcher_run(
                    d, feed_one, T_CALLBACKS(.on_success = take_event, .on_error = take_event), &f,
                    NULL));
                check_all(&f.log, slots_of[i]);
                for (size_t n = 0; n < f.log.count; n++)
                    if (f.log.list[n].kind == GPUD_EVENT_OUTCOME)
                        T_EQ(f.log.list[n].incarnation, 1);
                t_log_free(&f.log);
            }
            t_destroy(&d, NULL);
        }
    T_OK(gpud_fini());
}

/* A run without tasks, without callbacks. */
T_CASE(run_of_nothing)
{
    struct feed f = { .count = 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, describe, .devices = "cpu:2");

    T_OK(gpud_dispatcher_run(d, feed_one, T_CALLBACKS(0), &f, NULL));
    f.count = 5;
    T_OK(gpud_dispatcher_run(d, feed_one, T_CALLBACKS(0), &f, NULL));
    T_EQ(f.next, 5);
    t_end(&d, NULL);
}

static int answer_a(gpud_task *t, void *state)
{
    (void)state;
    return gpud_task_result_set(t, "a", 1);
}

static int answer_b(gpud_task *t, void *state)
{
    (void)state;
    return gpud_task_result_set(t, "b", 1);
}

/* C16: two dispatchers with different definitions work side by side. */
T_CASE(two_dispatchers)
{
    const struct gpud_definition definitions[] = {
        GPUD_DEFINITION("a", NULL, answer_a, NULL),
        GPUD_DEFINITION("b", NULL, answer_b, NULL),
    };
    struct t_log logs[2] = { { 0 }, { 0 } };
    gpud_dispatcher *d[2];

    T_OK(gpud_init(definitions, 2, NULL));
    d[0] = T_CREATE(.definition = "a", .devices = "cpu:2");
    d[1] = T_CREATE(.definition = "b", .devices = "cpu:2", .drive = GPUD_DRIVE_CALLER);
    for (uint64_t tag = 0; tag < 100; tag++)
        for (int i = 0; i < 2; i++)
            T_SUBMIT(d[i], .tag = tag);
    for (int i = 0; i < 2; i++) {
        t_collect(d[i], &logs[i], 100);
        t_check_exactly_once(&logs[i], 100);
        for (uint64_t tag = 0; tag < 100; tag++) {
            const struct gpud_event *e = T_OUTCOME(&logs[i], tag, SUCCESS);

            T_EQ(e->result_size, 1);
            T_EQ(*(const char *)e->result, "ab"[i]);
        }
    }
    T_CODE(gpud_fini(), EBUSY);
    t_destroy(&d[1], &logs[1]);
    /* One's end does not touch the other. */
    (void)T_RUN(d[0], &logs[0], SUCCESS, .tag = 1000);
    t_end(&d[0], &logs[0]);
}

struct prepared {
    uint64_t seed;
    uint32_t slot;
    char text[32];
};

static int keep_setup(gpud_worker *w, void **ret_state)
{
    struct prepared *p = calloc(1, sizeof(*p));
    size_t size = 0;
    const void *data = gpud_worker_setup_data(w, &size);

    if (!p || (uintptr_t)data % 64 || size >= sizeof(p->text))
        return -1;
    memcpy(p->text, data, size);
    p->seed = gpud_worker_seed(w);
    p->slot = gpud_worker_slot(w);
    *ret_state = p;
    gpud_worker_log(w, GPUD_LEVEL_INFO, "set up");
    gpud_worker_log(w, GPUD_LEVEL_DEBUG, "too fine to be seen");
    (void)t_word_add(0);
    return 0;
}

static int give_setup(gpud_task *t, void *state)
{
    const struct prepared *p = state;

    (void)t_word_add(2);
    t_word_wait(2, 3); /* so that every worker has one */
    return gpud_task_result_set(t, p, sizeof(*p));
}

static void drop_setup(gpud_worker *w, void *state)
{
    (void)w;
    free(state);
    (void)t_word_add(1);
}

/* setup runs once per worker, cleanup too; state, setup bytes and seed arrive; log lines are
 * events. */
T_CASE(setup_state_and_cleanup)
{
    char bytes[] = "setup bytes";
    struct t_log log = { 0 };
    unsigned seen = 0, lines = 0;
    gpud_dispatcher *d;

    t_init(keep_setup, give_setup, drop_setup);
    d = T_CREATE(.devices = "cpu:3", .seed = 1000, .setup_data = bytes,
                 .setup_size = sizeof(bytes));
    memset(bytes, 'x', sizeof(bytes)); /* it has been copied */
    t_wait_ready(d, 3);
    for (uint64_t tag = 0; tag < 3; tag++)
        T_SUBMIT(d, .tag = tag);
    t_collect(d, &log, 3);
    for (uint64_t tag = 0; tag < 3; tag++) {
        const struct gpud_event *e = T_OUTCOME(&log, tag, SUCCESS);
        const struct prepared *p = e->result;

        T_EQ(e->result_size, sizeof(*p));
        T_TEXT(p->text, "setup bytes");
        T_EQ(p->slot, e->slot);
        T_EQ(p->seed, 1000 + e->slot);
        seen |= 1U << e->slot;
    }
    T_EQ(seen, 7);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    t_collect_rest(d, &log);
    for (size_t i = 0; i < log.count; i++) {
        if (log.list[i].kind == GPUD_EVENT_LOG && !strcmp(log.list[i].text, "set up")) {
            T_EQ(log.list[i].level, GPUD_LEVEL_INFO);
            T_CMP(log.list[i].slot, <, 3);
            lines++;
        }
        T_CHECK(!strstr(log.list[i].text, "too fine"));
    }
    T_EQ(lines, 3);
    t_end(&d, &log);
    T_EQ(t_word(0), 3);
    T_EQ(t_word(1), 3);
}

enum { VERB_RETURN = 1, VERB_FAIL, VERB_FAIL_BUT_RETURN_0, VERB_PROGRESS };

static int report(gpud_task *t, void *state)
{
    (void)state;
    switch (gpud_task_tag(t)) {
    case VERB_RETURN:
        (void)gpud_task_result_set(t, "partial", 7);
        return 31;
    case VERB_FAIL:
        return gpud_task_fail(t, 7, "no such file");
    case VERB_FAIL_BUT_RETURN_0:
        (void)gpud_task_fail(t, 0, "zero is no error");
        return 0;
    case VERB_PROGRESS:
        if (gpud_task_progress(t, 1.5, NULL) != GPUD_EINVAL ||
            gpud_task_progress(t, -0.1, "") != GPUD_EINVAL ||
            gpud_task_progress(t, (double)NAN, "") != GPUD_EINVAL ||
            gpud_task_result_set(t, NULL, 5) != GPUD_EINVAL)
            return -2;
        if (gpud_task_progress(t, 0.25, "a quarter"))
            return -3;
        t_word_wait(0, 1);
        return 0;
    default:
        return -4;
    }
}

/* ERROR carries code, text and the result that was set; progress is an event and a stats row. */
T_CASE(errors_and_progress)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    struct gpud_slot_stats row;
    gpud_dispatcher *d = T_BEGIN(NULL, report, .devices = "cpu:1");

    for (uint64_t verb = VERB_RETURN; verb <= VERB_PROGRESS; verb++)
        T_SUBMIT(d, .tag = verb, .label = verb == VERB_PROGRESS ? "slow one" : NULL);
    t_collect_kind(d, &log, GPUD_EVENT_PROGRESS, 1);
    e = t_log_at(&log, GPUD_EVENT_PROGRESS, 0);
    T_EQ(e->tag, VERB_PROGRESS);
    T_TEXT(e->label, "slow one");
    T_TEXT(e->text, "a quarter");
    T_CHECK(e->progress == 0.25);
    row = t_slot(d, 0);
    T_EQ(row.state, GPUD_SLOT_BUSY);
    T_EQ(row.task_id, e->task_id);
    T_CHECK(row.progress == 0.25);
    T_TEXT(row.label, "slow one");
    T_TEXT(row.progress_text, "a quarter");
    t_word_set(0, 1);
    t_collect(d, &log, 4);
    e = T_OUTCOME(&log, VERB_RETURN, ERROR);
    T_EQ(e->code, 31);
    T_EQ(e->phase, GPUD_PHASE_PROCESS);
    T_EQ(e->result_size, 7);
    T_CHECK(!memcmp(e->result, "partial", 7));
    e = T_OUTCOME(&log, VERB_FAIL, ERROR);
    T_EQ(e->code, 7);
    T_TEXT(e->text, "no such file");
    e = T_OUTCOME(&log, VERB_FAIL_BUT_RETURN_0, ERROR);
    T_EQ(e->code, -1);
    T_TEXT(e->text, "zero is no error");
    (void)T_OUTCOME(&log, VERB_PROGRESS, SUCCESS);
    row = t_slot(d, 0);
    T_EQ(row.outcomes[GPUD_OUTCOME_ERROR], 3);
    T_EQ(row.outcomes[GPUD_OUTCOME_SUCCESS], 1);
    t_end(&d, &log);
}
