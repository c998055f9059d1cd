/* SPDX-License-Identifier: MIT */
/*
 * result_wait.c - option result_wait: a task waits for room for its result; what ends the wait.
 * [C18]
 *
 * One worker has a share of 16 MiB. The host fills it with results of 4 MiB that it keeps: three of
 * them leave no room for one of 8 MiB.
 */
#include "fixture.h"
#include "rest.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

enum { ASKS, GATE, HELD };
enum { TAKE, TAKE_AFTER_OWN, TAKE_WITHOUT_END, TAKE_WITHOUT_ALARM, WAIT_FOR_GATE };
#define MIB ((uint64_t)1 << 20)
#define TAG(verb, mib, n) ((uint64_t)(verb) << 48 | (uint64_t)(mib) << 32 | (uint64_t)(n))
#define OPTIONS(...) T_OPTIONS(.devices = "cpu:1", .payload_budget = 32 * MIB, __VA_ARGS__)

static uint64_t size_of(uint64_t tag)
{
    return (tag >> 32 & 0xffff) * MIB;
}

/* The first and the last word of a result. */
static void sign(void *room, uint64_t size, uint64_t tag)
{
    memcpy(room, &tag, sizeof(tag));
    memcpy((char *)room + size - sizeof(tag), &tag, sizeof(tag));
}

static void check_signed(const struct gpud_event *e)
{
    T_EQ(e->result_size, size_of(e->tag));
    T_EQ(memcmp(e->result, &e->tag, sizeof(e->tag)), 0);
    T_EQ(memcmp((const char *)e->result + e->result_size - sizeof(e->tag), &e->tag, sizeof(e->tag)),
         0);
}

static int process(gpud_task *t, void *state)
{
    const uint64_t tag = gpud_task_tag(t), size = size_of(tag);
    void *room;
    int r;

    (void)state;
    if (tag >> 48 == WAIT_FOR_GATE) {
        (void)t_word_add(HELD);
        t_word_wait(GATE, 1);
    }
    if (tag >> 48 == TAKE_WITHOUT_ALARM)
        (void)signal(SIGALRM, SIG_IGN);
    if (tag >> 48 == TAKE_AFTER_OWN && gpud_task_result_alloc(t, 4 * MIB, &room))
        return 8;
    (void)t_word_add(ASKS);
    do
        r = gpud_task_result_alloc(t, size, &room);
    while (r && tag >> 48 == TAKE_WITHOUT_END);
    if (r)
        return r;
    sign(room, size, tag);
    return 0;
}

static gpud_dispatcher *start(const struct gpud_options *options)
{
    t_init(NULL, process, NULL);
    t_word_set(ASKS, 0); /* behind gpud_init: a worker that is executed comes so far, too */
    return t_create(options);
}

/* An outcome; there may be other events before it. */
static void poll_outcome(gpud_dispatcher *d, struct gpud_event *e)
{
    do {
        *e = (struct gpud_event)GPUD_EVENT_INIT;
        T_EQ(gpud_dispatcher_poll(d, e, 1, T_PATIENCE), 1);
    } while (e->kind != GPUD_EVENT_OUTCOME);
}

/* Keeps n results. */
static void fill(gpud_dispatcher *d, struct gpud_event *kept, unsigned n, unsigned mib)
{
    for (unsigned i = 0; i < n; i++) {
        T_SUBMIT(d, .tag = TAG(TAKE, mib, i));
        poll_outcome(d, &kept[i]);
        T_OK(gpud_event_keep(d, &kept[i]));
    }
}

static void release(struct gpud_event *kept, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        T_OK(gpud_event_release(&kept[i]));
}

static int sleeps(void *user)
{
    struct t_proc *p = user, now;

    return t_proc_read(p->pid, &now) == 0 && now.state == 'S';
}

/* Waits until the worker of slot 0 asks for room for the nth time, and sleeps. */
static void await_wait(gpud_dispatcher *d, uint32_t n)
{
    struct t_proc p = t_worker(d, 0);

    t_word_wait(ASKS, n);
    t_wait_until("the worker sleeps", sleeps, &p);
}

/* A task that asks for 8 MiB beside three results of 4 MiB that are kept. */
static uint64_t begin_wait(gpud_dispatcher *d, struct gpud_event *kept, struct gpud_task_desc *task)
{
    uint64_t id;

    fill(d, kept, 3, 4);
    id = t_submit(d, task);
    await_wait(d, 4);
    return id;
}

static void expect_no_room(gpud_dispatcher *d, uint32_t outcome, int32_t code)
{
    struct gpud_event e;

    poll_outcome(d, &e);
    T_EQ(e.outcome, outcome);
    T_EQ(e.code, code);
    T_EQ(e.phase, GPUD_PHASE_PROCESS);
    T_EQ(t_stats(d).deaths, 0);
}

static void expect_room(gpud_dispatcher *d, struct gpud_event *e)
{
    poll_outcome(d, e);
    T_EQ(e->outcome, GPUD_OUTCOME_SUCCESS);
    check_signed(e);
}

static void finish(gpud_dispatcher **d, struct gpud_event kept[3])
{
    release(kept, 3);
    T_OK(gpud_dispatcher_destroy(d, NULL));
    T_OK(gpud_fini());
}

/* ---- room comes ---- */

static void room_comes(uint32_t drive)
{
    struct gpud_event kept[3], e = GPUD_EVENT_INIT;
    gpud_dispatcher *d;

    d = start(OPTIONS(.result_wait = GPUD_NEVER, .drive = drive));
    fill(d, kept, 3, 4);
    T_SUBMIT(d, .tag = TAG(TAKE, 8, 7));
    if (drive == GPUD_DRIVE_CALLER)
        T_EQ(gpud_dispatcher_poll(d, &e, 1, 0), 0); /* sends it */
    await_wait(d, 4);
    T_OK(gpud_event_release(&kept[1])); /* 8 MiB are free, but not in one piece */
    await_wait(d, 4);
    e = (struct gpud_event)GPUD_EVENT_INIT;
    T_EQ(gpud_dispatcher_poll(d, &e, 1, 0), 0);
    T_OK(gpud_event_release(&kept[2]));
    expect_room(d, &e);
    T_OK(gpud_event_release(&kept[0]));
    T_OK(gpud_dispatcher_destroy(&d, NULL));
    T_OK(gpud_fini());
}

T_CASE(room_that_comes)
{
    room_comes(GPUD_DRIVE_THREAD);
    room_comes(GPUD_DRIVE_CALLER);
}

/* By default a task does not wait. */
T_CASE(not_by_default)
{
    struct gpud_event kept[3];
    gpud_dispatcher *d;

    d = start(OPTIONS(.drive = GPUD_DRIVE_THREAD));
    fill(d, kept, 3, 4);
    T_SUBMIT(d, .tag = TAG(TAKE, 8, 7));
    expect_no_room(d, GPUD_OUTCOME_ERROR, GPUD_ERESULTSPACE);
    finish(&d, kept);
}

struct collector {
    pthread_t thread;
    struct gpud_event e;
};

static void *release_later(void *arg)
{
    release(arg, 1);
    return NULL;
}

/* Results of several sizes, more than fit, kept and released in other threads: each task finds room
 * in the end. */
T_CASE(all_find_room)
{
    static struct collector c[1000];
    const unsigned tasks = (unsigned)t_rounds(T_LENGTH(c), 200);
    gpud_dispatcher *d;

    d = start(T_OPTIONS(.devices = "cpu:2", .payload_budget = 64 * MIB, .result_wait = GPUD_NEVER));
    for (unsigned i = 0; i < tasks; i++)
        T_SUBMIT(d, .tag = TAG(TAKE, 1 + i * 7 % 12, i));
    for (unsigned i = 0; i < tasks; i++) {
        expect_room(d, &c[i].e);
        T_OK(gpud_event_keep(d, &c[i].e));
        t_thread(&c[i].thread, release_later, &c[i].e);
        if (i >= 8)
            t_join(c[i - 8].thread);
    }
    for (unsigned i = tasks - 8; i < tasks; i++)
        t_join(c[i].thread);
    T_EQ(t_stats(d).result_used, 0);
    t_end(&d, NULL);
}

/* ---- what ends the wait ---- */

T_CASE(own_limit)
{
    struct gpud_event kept[3], e;
    gpud_dispatcher *d;

    d = start(OPTIONS(.result_wait = T_MS(100)));
    (void)begin_wait(d, kept, T_TASK(.tag = TAG(TAKE, 8, 7)));
    poll_outcome(d, &e);
    T_EQ(e.outcome, GPUD_OUTCOME_ERROR);
    T_EQ(e.code, GPUD_ERESULTSPACE);
    T_CMP(e.ended_at - e.started_at, >=, T_MS(100));
    finish(&d, kept);
}

/* The task's limit, and its stall limit. */
static void limit(struct gpud_task_desc *task)
{
    struct gpud_event kept[3];
    gpud_dispatcher *d;

    d = start(OPTIONS(.result_wait = GPUD_NEVER, .grace = GPUD_NEVER));
    (void)begin_wait(d, kept, task);
    expect_no_room(d, GPUD_OUTCOME_TIMEOUT, GPUD_ETIMEOUT);
    finish(&d, kept);
}

T_CASE(limits_of_the_task)
{
    limit(T_TASK(.tag = TAG(TAKE, 8, 7), .limit = T_MS(100)));
    limit(T_TASK(.tag = TAG(TAKE, 8, 7), .stall_limit = T_MS(100)));
    limit(T_TASK(.tag = TAG(TAKE_WITHOUT_ALARM, 8, 7), .limit = T_MS(100)));
}

/* A task that asks again and again is killed at limit and grace. */
T_CASE(hard_limit)
{
    struct gpud_event kept[3], e;
    gpud_dispatcher *d;

    d = start(OPTIONS(.result_wait = GPUD_NEVER, .grace = T_MS(100)));
    (void)begin_wait(d, kept, T_TASK(.tag = TAG(TAKE_WITHOUT_END, 8, 7), .limit = T_MS(100)));
    poll_outcome(d, &e);
    T_EQ(e.outcome, GPUD_OUTCOME_TIMEOUT);
    T_EQ(e.phase, GPUD_PHASE_HARD);
    T_CMP(t_now() - e.started_at, >=, T_MS(200));
    finish(&d, kept);
}

T_CASE(cancel)
{
    for (uint32_t how = 0; how < 2; how++) {
        struct gpud_event kept[3];
        gpud_dispatcher *d;
        uint64_t id;

        d = start(OPTIONS(.result_wait = GPUD_NEVER, .grace = GPUD_NEVER));
        id = begin_wait(d, kept, T_TASK(.tag = TAG(TAKE, 8, 7)));
        T_OK(gpud_dispatcher_cancel(d, id, how ? GPUD_CANCEL_SOFT : GPUD_CANCEL_HARD));
        if (how)
            expect_no_room(d, GPUD_OUTCOME_ERROR, GPUD_ERESULTSPACE);
        else
            expect_no_room(d, GPUD_OUTCOME_CANCELLED, GPUD_ECANCELLED);
        finish(&d, kept);
    }
}

/* stop and close of any kind; and no wait begins after that. */
static void ending(uint32_t how, int stop)
{
    const uint32_t first = how == GPUD_FINISH_NOW ? GPUD_OUTCOME_CANCELLED : GPUD_OUTCOME_ERROR;
    const uint32_t second = how == GPUD_FINISH_ALL ? GPUD_OUTCOME_ERROR : GPUD_OUTCOME_CANCELLED;
    struct t_log log = { 0 };
    struct gpud_event kept[3];
    gpud_dispatcher *d;

    d = start(OPTIONS(.result_wait = GPUD_NEVER, .grace = GPUD_NEVER, .sent_ahead = 1));
    (void)begin_wait(d, kept, T_TASK(.tag = TAG(TAKE, 8, 7)));
    T_SUBMIT(d, .tag = TAG(TAKE, 8, 8));
    T_OK(stop ? gpud_dispatcher_stop(d, how) : gpud_dispatcher_close(d, how, GPUD_NEVER));
    t_collect_rest(d, &log);
    T_EQ(t_log_count(&log, GPUD_EVENT_OUTCOME), 2);
    (void)t_check_outcome(__FILE__, __LINE__, &log, TAG(TAKE, 8, 7), first);
    (void)t_check_outcome(__FILE__, __LINE__, &log, TAG(TAKE, 8, 8), second);
    T_EQ(t_stats(d).deaths, 0);
    t_log_free(&log);
    finish(&d, kept);
}

T_CASE(stop_and_close)
{
    for (int stop = 0; stop < 2; stop++) {
        ending(GPUD_FINISH_ALL, stop);
        ending(GPUD_FINISH_RUNNING, stop);
        ending(GPUD_FINISH_NOW, stop);
    }
}

/* destroy collects nothing, so that no room would ever come. */
T_CASE(destroy_in_a_wait)
{
    struct gpud_event kept[3];
    gpud_dispatcher *d;
    uint64_t uncollected = 0;

    d = start(OPTIONS(.result_wait = GPUD_NEVER, .grace = GPUD_NEVER, .close_limit = GPUD_NEVER));
    (void)begin_wait(d, kept, T_TASK(.tag = TAG(TAKE, 8, 7)));
    T_OK(gpud_dispatcher_destroy(&d, &uncollected));
    T_CMP(uncollected, >=, 1);
    release(kept, 3);
    T_OK(gpud_fini());
}

/* A worker that dies in a wait; the next one is not disturbed by room that comes. */
T_CASE(death_in_a_wait)
{
    struct gpud_event kept[3], e;
    gpud_dispatcher *d;

    d = start(OPTIONS(.result_wait = GPUD_NEVER));
    (void)begin_wait(d, kept, T_TASK(.tag = TAG(TAKE, 8, 7)));
    t_kill(t_worker(d, 0).pid, SIGKILL);
    poll_outcome(d, &e);
    T_EQ(e.outcome, GPUD_OUTCOME_CRASHED);
    t_wait_slot(d, 0, GPUD_SLOT_READY);
    T_OK(gpud_event_release(&kept[2]));
    T_SUBMIT(d, .tag = TAG(TAKE, 8, 8));
    expect_room(d, &e);
    T_EQ(e.incarnation, 2);
    finish(&d, kept);
}

/* ---- what does not wait ---- */

/* More than the share holds, or holds beside the task's own result, which stays until the new one
 * is there. */
T_CASE(what_never_fits)
{
    struct gpud_event e;
    gpud_dispatcher *d;

    d = start(OPTIONS(.result_wait = GPUD_NEVER));
    T_SUBMIT(d, .tag = TAG(TAKE, 17, 0));
    expect_no_room(d, GPUD_OUTCOME_ERROR, GPUD_ERESULTSPACE);
    T_SUBMIT(d, .tag = TAG(TAKE_AFTER_OWN, 13, 0));
    poll_outcome(d, &e);
    T_EQ(e.outcome, GPUD_OUTCOME_ERROR);
    T_EQ(e.code, GPUD_ERESULTSPACE);
    T_EQ(e.result_size, 4 * MIB); /* the earlier one */
    T_SUBMIT(d, .tag = TAG(TAKE_AFTER_OWN, 12, 0));
    expect_room(d, &e);
    t_end(&d, NULL);
}

static int process_batch(gpud_task *const *tasks, size_t n, void *state)
{
    for (size_t i = 0; i < n; i++)
        if (process(tasks[i], state))
            (void)gpud_task_fail(tasks[i], GPUD_ERESULTSPACE, "no room");
    return 0;
}

static int three_are_sent(void *d)
{
    return t_slot(d, 0).sent == 3;
}

/* One of several in a call does not wait; one alone does. */
T_CASE(batches)
{
    enum { KEPT = 13 }; /* small ones: so many tasks with the like are sent ahead as still fit */
    const struct gpud_definition definition =
        GPUD_DEFINITION_BATCH("test", NULL, process_batch, NULL);
    struct gpud_event kept[KEPT], e;
    gpud_dispatcher *d;

    T_OK(gpud_init(&definition, 1, NULL));
    d = t_create(OPTIONS(.result_wait = GPUD_NEVER, .max_batch = 2));
    fill(d, kept, KEPT, 1);
    T_SUBMIT(d, .tag = TAG(WAIT_FOR_GATE, 0, 0));
    t_word_wait(HELD, 1);
    T_SUBMIT(d, .tag = TAG(TAKE, 8, 1));
    T_SUBMIT(d, .tag = TAG(TAKE, 8, 2));
    t_wait_until("all are at the worker", three_are_sent, d);
    t_word_set(GATE, 1);
    poll_outcome(d, &e);
    T_EQ(e.outcome, GPUD_OUTCOME_SUCCESS);
    for (int n = 0; n < 2; n++) {
        poll_outcome(d, &e);
        T_EQ(e.code, GPUD_ERESULTSPACE);
    }
    T_SUBMIT(d, .tag = TAG(TAKE, 8, 3));
    await_wait(d, KEPT + 4);
    release(kept, KEPT);
    expect_room(d, &e);
    t_end(&d, NULL);
}

/* ---- what is told, and rest ---- */

/* Whatever has been told of a wait. */
static unsigned warnings(const struct t_log *log, const struct gpud_event **ret)
{
    unsigned n = 0;

    for (size_t i = 0; i < log->count; i++)
        if (strstr(log->list[i].text, "result_wait"))
            *ret = &log->list[i], n++;
    return n;
}

static int two_events_wait(void *d)
{
    return t_stats(d).undelivered >= 2;
}

/* A wait of more than a second is told once, with all who have the room.  From then on nothing
 * but the host's bell wakes the worker. [C20] */
T_CASE(long_wait)
{
    const struct gpud_event *told = NULL;
    struct t_log log = { 0 };
    struct gpud_event kept[3], awaited = GPUD_EVENT_INIT;
    gpud_dispatcher *d;
    uint64_t id;

    d = start(OPTIONS(.result_wait = GPUD_NEVER));
    fill(d, kept, 1, 4);
    id = t_submit(d, T_TASK(.tag = TAG(TAKE, 4, 1), .awaited = 1));
    t_word_wait(ASKS, 2);
    T_SUBMIT(d, .tag = TAG(TAKE, 4, 2));
    t_word_wait(ASKS, 3);
    T_SUBMIT(d, .tag = TAG(TAKE, 8, 3));
    t_wait_until("outcome and warning wait", two_events_wait, d);
    if (!T_THREAD_SANITIZED)
        t_expect_rest(10, NULL, NULL);
    T_EQ(t_poll(d, &log, 0), 2);
    T_EQ(warnings(&log, &told), 1);
    T_EQ(told->level, GPUD_LEVEL_WARNING);
    T_TEXT(told->text,
           "slot 0: a result of 8388608 bytes has waited 1 s for room; used of 16777216 bytes: "
           "4194304 in undelivered outcomes, 4194304 in awaited outcomes not fetched, "
           "4194304 in kept events (result_wait)");
    T_OK(gpud_dispatcher_wait(d, id, &awaited, 0, NULL));
    T_OK(gpud_event_release(&awaited));
    t_collect(d, &log, 2); /* that of poll is released by the next one */
    T_EQ(T_OUTCOME(&log, TAG(TAKE, 8, 3), SUCCESS)->result_size, 8 * MIB);
    T_EQ(warnings(&log, &told), 1);
    release(kept, 1);
    t_end(&d, &log);
}

/* Each wait is told of by itself. */
T_CASE(each_long_wait)
{
    const struct gpud_event *told = NULL;
    struct t_log log = { 0 };
    struct gpud_event kept[3];
    gpud_dispatcher *d;

    d = start(OPTIONS(.result_wait = T_MS(1100)));
    fill(d, kept, 3, 4);
    T_SUBMIT(d, .tag = TAG(TAKE, 8, 1));
    T_SUBMIT(d, .tag = TAG(TAKE, 8, 2));
    t_collect(d, &log, 2);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_ERROR), 2);
    T_EQ(warnings(&log, &told), 2);
    T_CHECK(strstr(told->text, "used of 16777216 bytes: 12582912 in kept events (result_wait)"));
    release(kept, 3);
    t_end(&d, &log);
}
