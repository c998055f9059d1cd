/* SPDX-License-Identifier: MIT */
/* wait.c - gpud_dispatcher_wait: programs of requests and answers. */
#include "verbs.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STARTED, GATE, INSIDE, GONE };
enum { ECHO, AT_GATE, DIE, UNTIL_CANCELLED };

static int process(gpud_task *t, void *state)
{
    (void)state;
    switch (gpud_task_tag(t) >> 32) {
    case AT_GATE:
        (void)t_word_add(STARTED);
        t_word_wait(GATE, (uint32_t)gpud_task_tag(t));
        break;
    case DIE:
        (void)raise(SIGKILL);
        break;
    case UNTIL_CANCELLED:
        (void)t_word_add(STARTED);
        while (!gpud_task_cancelled(t))
            (void)poll(NULL, 0, 1000);
        break;
    default:
        break;
    }
    return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
}

#define T_EVENT { .struct_size = sizeof(struct gpud_event) }

/* Submits an awaited task that echoes its tag; waits for room. */
static uint64_t ask(gpud_dispatcher *d, uint64_t tag)
{
    uint64_t id;

    T_OK(gpud_dispatcher_submit(d,
                                T_TASK(.tag = tag, .data = &tag, .size = sizeof tag, .awaited = 1),
                                T_PATIENCE, &id, NULL));
    return id;
}

/* Waits for it, checks what came, and gives its outcome. */
static uint32_t answer(gpud_dispatcher *d, uint64_t id, uint64_t tag)
{
    struct gpud_event e = T_EVENT;
    uint32_t outcome;

    T_OK(gpud_dispatcher_wait(d, id, &e, T_PATIENCE, NULL));
    T_EQ(e.kind, GPUD_EVENT_OUTCOME);
    T_EQ(e.task_id, id);
    T_EQ(e.tag, tag);
    outcome = e.outcome;
    if (outcome == GPUD_OUTCOME_SUCCESS) {
        T_EQ(e.result_size, sizeof tag);
        T_EQ(memcmp(e.result, &tag, sizeof tag), 0);
        T_CMP(e.ended_at, >=, e.started_at);
    }
    T_OK(gpud_event_release(&e));
    T_CODE(gpud_dispatcher_wait(d, id, &e, 0, NULL), ENOTFOUND);
    return outcome;
}

/* ---- threads that ask ---- */

enum { ASKERS = 16 };

struct asker {
    gpud_dispatcher *d;
    pthread_t thread;
    uint64_t first, n;
    uint64_t id;     /* for those with one task */
    uint32_t outcome;
    int code;
};

static void *ask_and_wait(void *arg)
{
    struct asker *a = arg;

    for (uint64_t i = 0; i < a->n; i++) {
        uint64_t id = ask(a->d, a->first + i);
        T_EQ(answer(a->d, id, a->first + i), GPUD_OUTCOME_SUCCESS);
    }
    (void)t_word_add(GONE);
    return NULL;
}

static void start(struct asker *a, void *(*f)(void *))
{
    t_thread(&a->thread, f, a);
}

static void start_askers(struct asker *a, unsigned n, gpud_dispatcher *d, uint64_t tasks)
{
    for (unsigned i = 0; i < n; i++) {
        a[i] = (struct asker){ .d = d, .first = i * tasks, .n = tasks };
        start(&a[i], ask_and_wait);
    }
}

static void join(struct asker *a, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        t_join(a[i].thread);
}

static void *wait_for_one(void *arg)
{
    struct asker *a = arg;
    struct gpud_event e = T_EVENT;

    (void)t_word_add(INSIDE);
    while ((a->code = gpud_dispatcher_wait(a->d, a->id, &e, GPUD_NEVER, NULL)) == GPUD_EBUSY)
        (void)sched_yield(); /* start_waiting looks in just now */
    a->outcome = e.outcome;
    (void)gpud_event_release(&e);
    (void)t_word_add(GONE);
    return NULL;
}

/* A thread that waits for a task; it is inside when the dispatcher says that the task has a waiter.
 */
static void start_waiting(struct asker *a, gpud_dispatcher *d, uint64_t id)
{
    struct gpud_event e = T_EVENT;
    int code;

    *a = (struct asker){ .d = d, .id = id };
    start(a, wait_for_one);
    while ((code = gpud_dispatcher_wait(d, id, &e, 0, NULL)) == GPUD_ETIMEOUT)
        (void)sched_yield();
    T_EQ(code, GPUD_EBUSY);
}

/* C1: 16 threads ask and wait, each gets its own answers, each once. */
static void many_ask(uint32_t drive)
{
    struct asker a[ASKERS];
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:3", .drive = drive);

    start_askers(a, ASKERS, d, T_SANITIZED ? 50 : 300);
    join(a, ASKERS);
    T_EQ(t_stats(d).delivered, t_stats(d).accepted);
    T_EQ(t_stats(d).success, t_stats(d).accepted);
    t_end(&d, NULL);
}

T_LONG_CASE(many_ask_thread, 120)
{
    many_ask(GPUD_DRIVE_THREAD);
}

T_LONG_CASE(many_ask_caller, 120)
{
    many_ask(GPUD_DRIVE_CALLER);
}

/* The outcome of an awaited task is for wait alone, whoever polls meanwhile. */
T_CASE(poll_does_not_deliver_it)
{
    T_EACH_DRIVE (drive) {
        struct t_log log = { 0 };
        gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .drive = drive);
        uint64_t id;

        id = ask(d, 1000);
        t_submit_tags(d, 0, 20);
        t_collect(d, &log, 20); /* FIFO: the awaited one has ended before these */
        T_EQ(t_poll(d, &log, T_MS(20)), 0);
        t_check_exactly_once(&log, 20);
        T_EQ(answer(d, id, 1000), GPUD_OUTCOME_SUCCESS);
        t_end(&d, &log);
    }
}

/* What wait answers, and that nothing has changed then. */
T_CASE(what_it_answers)
{
    struct gpud_event e = T_EVENT, small = { .struct_size = offsetof(struct gpud_event, kept) };
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2");
    uint64_t id, plain, began;

    id = ask(d, T_TAG(AT_GATE, 1));
    plain = t_submit(d, T_TASK(.tag = 1));
    T_CODE(gpud_dispatcher_wait(NULL, id, &e, 0, NULL), EINVAL);
    T_CODE(gpud_dispatcher_wait(d, id, NULL, 0, NULL), EINVAL);
    T_CODE(gpud_dispatcher_wait(d, id, &small, 0, NULL), ESTRUCT);
    T_CODE(gpud_dispatcher_wait(d, plain, &e, GPUD_NEVER, NULL), ENOTAWAITED);
    T_CODE(gpud_dispatcher_wait(d, 0, &e, GPUD_NEVER, NULL), ENOTFOUND);
    T_CODE(gpud_dispatcher_wait(d, UINT64_MAX, &e, GPUD_NEVER, NULL), ENOTFOUND);
    T_CODE(gpud_dispatcher_wait(d, UINT32_MAX, &e, GPUD_NEVER, NULL), ENOTFOUND);
    T_CODE(gpud_dispatcher_wait(d, id + (1u << 20), &e, GPUD_NEVER, NULL), ENOTFOUND);
    T_CODE(gpud_dispatcher_wait(d, id, &e, 0, NULL), ETIMEOUT);
    began = t_now();
    T_CODE(gpud_dispatcher_wait(d, id, &e, T_MS(30), NULL), ETIMEOUT);
    T_CMP(t_now() - began, >=, T_MS(30));
    T_EQ(e.kind, 0); /* untouched */
    t_collect(d, &log, 1);
    T_CODE(gpud_dispatcher_wait(d, plain, &e, GPUD_NEVER, NULL), ENOTFOUND); /* lent: told */
    T_EQ(t_poll(d, &log, 0), 0);
    T_CODE(gpud_dispatcher_wait(d, plain, &e, GPUD_NEVER, NULL), ENOTFOUND);
    t_word_set(GATE, 1);
    T_EQ(answer(d, id, T_TAG(AT_GATE, 1)), GPUD_OUTCOME_SUCCESS);
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.awaited = 2), 0, NULL, NULL), EINVAL);
    t_end(&d, &log);
}

/* One waiter per task: the other is told at once. */
T_CASE(two_wait_for_one)
{
    T_EACH_DRIVE (drive) {
        struct gpud_event e = T_EVENT;
        struct asker a;
        gpud_dispatcher *d;
        uint64_t id;

        t_word_set(GATE, 0);
        d = T_BEGIN(NULL, process, .devices = "cpu:1", .drive = drive);
        id = ask(d, T_TAG(AT_GATE, 1));
        start_waiting(&a, d, id);
        T_CODE(gpud_dispatcher_wait(d, id, &e, GPUD_NEVER, NULL), EBUSY);
        t_word_set(GATE, 1);
        join(&a, 1);
        T_OK(a.code);
        T_EQ(a.outcome, GPUD_OUTCOME_SUCCESS);
        T_CODE(gpud_dispatcher_wait(d, id, &e, GPUD_NEVER, NULL), ENOTFOUND);
        t_end(&d, NULL);
    }
}

/* The driver leaves with its answer: the next of those that sleep drives.  With DRIVE_CALLER nobody
 * else would. */
T_CASE(driving_is_handed_over)
{
    enum { N = 8 };
    struct asker a[N];
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .drive = GPUD_DRIVE_CALLER, .sent_ahead = 1);
    uint64_t id[N];

    for (unsigned i = 0; i < N; i++)
        id[i] = ask(d, T_TAG(AT_GATE, i + 1));
    for (unsigned i = 0; i < N; i++)
        start_waiting(&a[i], d, id[i]); /* the first one drives */
    for (unsigned i = 0; i < N; i++) {
        t_word_wait(STARTED, i + 1); /* sent by whoever drives now */
        t_word_set(GATE, i + 1);
        t_word_wait(GONE, i + 1);
        t_join(a[i].thread);
        T_OK(a[i].code);
    }
    t_end(&d, NULL);
}

/* A thread whose answer has come is called while the driver goes on. */
T_CASE(the_driver_calls_the_others)
{
    T_EACH_DRIVE (drive) {
        struct asker driver, other;
        gpud_dispatcher *d;

        t_word_set(GATE, 0);
        t_word_set(STARTED, 0);
        t_word_set(GONE, 0);
        d = T_BEGIN(NULL, process, .devices = "cpu:2", .drive = drive);
        start_waiting(&driver, d, ask(d, T_TAG(AT_GATE, 2)));
        start_waiting(&other, d, ask(d, T_TAG(AT_GATE, 1)));
        t_word_wait(STARTED, 2);
        t_word_set(GATE, 1);
        t_word_wait(GONE, 1);
        join(&other, 1);
        t_word_set(GATE, 2);
        join(&driver, 1);
        T_OK(driver.code);
        T_OK(other.code);
        t_end(&d, NULL);
    }
}

/* A driver whose time is up leaves; the others go on. */
T_CASE(driver_times_out)
{
    struct gpud_event e = T_EVENT;
    struct asker a;
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .drive = GPUD_DRIVE_CALLER, .sent_ahead = 1);
    uint64_t first, second;

    first = ask(d, T_TAG(AT_GATE, 1));
    second = ask(d, 5);
    for (int i = 0; i < 20; i++) {
        T_CODE(gpud_dispatcher_wait(d, first, &e, T_MS(1), NULL), ETIMEOUT);
        if (i == 0)
            start_waiting(&a, d, second);
    }
    t_word_set(GATE, 1);
    join(&a, 1);
    T_OK(a.code);
    T_EQ(answer(d, first, T_TAG(AT_GATE, 1)), GPUD_OUTCOME_SUCCESS);
    t_end(&d, NULL);
}

/* ---- beside poll and run ---- */

/* One thread polls, or runs, others wait, at the same time: each gets what is its own. */
static void beside_poll(uint32_t drive, uint64_t patience)
{
    const uint64_t plain = T_SANITIZED ? 300 : 2000;
    struct asker a[8];
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .drive = drive);
    uint64_t given = 0;

    start_askers(a, 8, d, T_SANITIZED ? 40 : 200);
    while (t_log_count(&log, GPUD_EVENT_OUTCOME) < plain) {
        for (int i = 0; given < plain && i < 16; i++)
            given += gpud_dispatcher_submit(d, T_TASK(.tag = given), 0, NULL, NULL) == 0;
        (void)t_poll(d, &log, patience);
    }
    join(a, 8);
    t_check_exactly_once(&log, plain);
    t_end(&d, &log);
}

T_LONG_CASE(beside_a_patient_poll, 120)
{
    beside_poll(GPUD_DRIVE_THREAD, T_PATIENCE);
    beside_poll(GPUD_DRIVE_CALLER, T_PATIENCE);
}

T_LONG_CASE(beside_a_hasty_poll, 120)
{
    beside_poll(GPUD_DRIVE_THREAD, 0);
    beside_poll(GPUD_DRIVE_CALLER, 0);
    beside_poll(GPUD_DRIVE_CALLER, T_US(50));
}

/* poll sleeps beside a thread that waits and drives; what it wants comes; and the reverse. */
T_CASE(poll_sleeps_beside_the_driver)
{
    struct gpud_event e = T_EVENT;
    struct t_log log = { 0 };
    struct asker a;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .drive = GPUD_DRIVE_CALLER,
                                 .log_level = GPUD_LEVEL_ERROR);
    uint64_t id;

    id = ask(d, T_TAG(AT_GATE, 1));
    start_waiting(&a, d, id);
    T_EQ(t_poll(d, &log, 0), 0);
    T_EQ(t_poll(d, &log, T_MS(5)), 0);
    for (uint64_t n = 0; n < 50; n++) {
        T_SUBMIT(d, .tag = n);
        T_EQ(gpud_dispatcher_poll(d, &e, 1, GPUD_NEVER), 1); /* driven by the thread that waits */
        T_EQ(e.tag, n);
    }
    t_word_set(GATE, 1);
    join(&a, 1);
    T_OK(a.code);
    T_EQ(a.outcome, GPUD_OUTCOME_SUCCESS); /* else its worker lost its patience meanwhile */
    T_SUBMIT(d, .tag = 50);
    t_collect(d, &log, 1);
    t_end(&d, &log);
}

struct scene {
    gpud_dispatcher *d;
    struct t_log log;
    uint64_t pulled, last;
    int awaited;    /* what the source gives */
    uint64_t asked; /* in a callback */
};

static int give(struct gpud_task_desc *task, size_t n, void *user)
{
    struct scene *s = user;

    (void)n;
    if (s->pulled == s->last)
        return 0;
    task->awaited = s->awaited != 0;
    task->tag = s->pulled++;
    return 1;
}

static int take(const struct gpud_event *e, void *user)
{
    struct scene *s = user;
    struct gpud_event mine = T_EVENT;
    uint64_t id, tag = 7;

    (void)t_log_add(e, &s->log);
    if (s->asked ||
        gpud_dispatcher_submit(
            s->d, T_TASK(.tag = tag, .data = &tag, .size = sizeof tag, .awaited = 1), 0, &id, NULL))
        return 0; /* no room just now: at a later one */
    s->asked = id;
    T_CODE(gpud_dispatcher_wait(s->d, id, &mine, 0, NULL), EREENTER);
    return 0;
}

/* run beside threads that wait; a callback may submit an awaited task but not wait; run ends
 * without what is not its to deliver. */
static void beside_run(uint32_t drive)
{
    struct scene s = { .last = T_SANITIZED ? 300 : 2000 };
    struct asker a[8];

    s.d = T_BEGIN(NULL, process, .devices = "cpu:2", .drive = drive);
    start_askers(a, 8, s.d, T_SANITIZED ? 40 : 200);
    T_OK(gpud_dispatcher_run(s.d, give, T_CALLBACKS(.on_success = take), &s, NULL));
    t_check_exactly_once(&s.log, s.last);
    join(a, 8);
    T_EQ(answer(s.d, s.asked, 7), GPUD_OUTCOME_SUCCESS);
    t_end(&s.d, &s.log);
}

T_LONG_CASE(beside_run_thread, 120)
{
    beside_run(GPUD_DRIVE_THREAD);
}

T_LONG_CASE(beside_run_caller, 120)
{
    beside_run(GPUD_DRIVE_CALLER);
}

/* run ends while a task of another thread still runs. */
T_CASE(run_does_not_wait_for_it)
{
    struct scene s = { .last = 10 };
    uint64_t id;

    s.d = T_BEGIN(NULL, process, .devices = "cpu:2");
    id = ask(s.d, T_TAG(AT_GATE, 1));
    T_OK(gpud_dispatcher_run(s.d, give, T_CALLBACKS(0), &s, NULL));
    t_word_set(GATE, 1);
    T_EQ(answer(s.d, id, T_TAG(AT_GATE, 1)), GPUD_OUTCOME_SUCCESS);
    t_end(&s.d, NULL);
}

/* Nobody would know the id of a source's task. */
T_CASE(a_source_cannot_give_one)
{
    struct scene s = { .last = 5, .awaited = 1 };

    s.d = T_BEGIN(NULL, process, .devices = "cpu:1");
    T_CODE(gpud_dispatcher_run(s.d, give, T_CALLBACKS(0), &s, NULL), EREFUSED);
    T_EQ(s.pulled, 1);
    t_end(&s.d, NULL);
}

/* ---- ends ---- */

static void expect_in_time(uint64_t began)
{
    T_CMP(t_now() - began, <, T_S(T_SANITIZED ? 10 : 2));
}

/* A thread that waits is woken by cancel, of a queued and of a running task. */
T_CASE(cancel_wakes)
{
    T_EACH_DRIVE (drive) {
        struct asker a[2];
        uint64_t id[2], began;
        gpud_dispatcher *d;

        t_word_set(STARTED, 0);
        d = T_BEGIN(NULL, process, .devices = "cpu:1", .drive = drive, .sent_ahead = 1);
        for (int i = 0; i < 2; i++) {
            id[i] = ask(d, T_TAG(UNTIL_CANCELLED, i));
            start_waiting(&a[i], d, id[i]);
        }
        t_word_wait(STARTED, 1);
        began = t_now();
        T_OK(gpud_dispatcher_cancel(d, id[1], GPUD_CANCEL_HARD));
        join(&a[1], 1);
        T_OK(gpud_dispatcher_cancel(d, id[0], GPUD_CANCEL_HARD));
        join(&a[0], 1);
        expect_in_time(began);
        for (int i = 0; i < 2; i++) {
            T_OK(a[i].code);
            T_EQ(a[i].outcome, GPUD_OUTCOME_CANCELLED);
        }
        t_end(&d, NULL);
    }
}

/* Close and stop: all who wait get CANCELLED. */
static void end_wakes(uint32_t drive, int by_stop)
{
    struct asker a[4];
    gpud_dispatcher *d;
    uint64_t began;

    t_word_set(STARTED, 0);
    d = T_BEGIN(NULL, process, .devices = "cpu:1", .drive = drive);
    for (unsigned i = 0; i < 4; i++)
        start_waiting(&a[i], d, ask(d, T_TAG(UNTIL_CANCELLED, i)));
    t_word_wait(STARTED, 1);
    began = t_now();
    if (by_stop)
        T_OK(gpud_dispatcher_stop(d, GPUD_FINISH_NOW));
    else
        T_OK(gpud_dispatcher_close(d, GPUD_FINISH_NOW, 0));
    join(a, 4);
    expect_in_time(began);
    for (unsigned i = 0; i < 4; i++) {
        T_OK(a[i].code);
        T_EQ(a[i].outcome, GPUD_OUTCOME_CANCELLED);
    }
    t_end(&d, NULL);
}

T_CASE(close_wakes)
{
    end_wakes(GPUD_DRIVE_THREAD, 0);
    end_wakes(GPUD_DRIVE_CALLER, 0);
}

T_CASE(stop_wakes)
{
    end_wakes(GPUD_DRIVE_THREAD, 1);
    end_wakes(GPUD_DRIVE_CALLER, 1);
}

/* poll comes to its end although outcomes wait to be asked for, and these can still be had. */
T_CASE(end_of_poll)
{
    T_EACH_DRIVE (drive) {
        struct t_log log = { 0 };
        gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .drive = drive);
        uint64_t id[5], uncollected = 99;

        for (uint64_t n = 0; n < 5; n++) {
            id[n] = ask(d, n);
            T_SUBMIT(d, .tag = n);
        }
        T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
        t_collect_rest(d, &log);
        t_check_exactly_once(&log, 5);
        for (uint64_t n = 0; n < 3; n++)
            T_EQ(answer(d, id[n], n), GPUD_OUTCOME_SUCCESS);
        T_CODE(t_poll(d, &log, 0), EEND);
        T_OK(gpud_dispatcher_destroy(&d, &uncollected));
        T_EQ(uncollected, 2);
        t_log_free(&log);
        T_OK(gpud_fini());
    }
}

/* destroy while a thread waits changes nothing. */
T_CASE(destroy_is_refused)
{
    T_EACH_DRIVE (drive) {
        struct asker a;
        gpud_dispatcher *d, *same;
        uint64_t uncollected = 99;

        t_word_set(GATE, 0);
        t_init(NULL, process, NULL);
        same = d = T_CREATE(.devices = "cpu:1", .drive = drive);
        start_waiting(&a, d, ask(d, T_TAG(AT_GATE, 1)));
        T_CODE(gpud_dispatcher_destroy(&d, &uncollected), EBUSY);
        T_CHECK(d == same);
        T_EQ(uncollected, 99);
        t_word_set(GATE, 1);
        join(&a, 1);
        T_OK(a.code);
        T_EQ(a.outcome, GPUD_OUTCOME_SUCCESS);
        t_end(&d, NULL);
    }
}

/* C18: what is not asked for counts against the queue; asking makes room, also for a submit that
 * is waiting. */
static void *submit_and_wait_for_room(void *arg)
{
    struct asker *a = arg;

    (void)t_word_add(INSIDE);
    a->code =
        gpud_dispatcher_submit(a->d, T_TASK(.tag = 1000, .awaited = 1), GPUD_NEVER, &a->id, NULL);
    return NULL;
}

T_CASE(room_in_the_queue)
{
    struct gpud_event e = T_EVENT;
    struct asker a;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .queue_size = 8);
    uint64_t id[8];

    for (uint64_t n = 0; n < 8; n++)
        id[n] = ask(d, n);
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.tag = 8), 0, NULL, NULL), EFULL);
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.tag = 8), T_MS(5), NULL, NULL), EFULL);
    a = (struct asker){ .d = d };
    start(&a, submit_and_wait_for_room);
    t_word_wait(INSIDE, 1);
    T_EQ(answer(d, id[3], 3), GPUD_OUTCOME_SUCCESS);
    join(&a, 1);
    T_OK(a.code);
    T_OK(gpud_dispatcher_wait(d, a.id, &e, GPUD_NEVER, NULL));
    T_OK(gpud_event_release(&e));
    for (uint64_t n = 0; n < 8; n++)
        if (n != 3)
            T_EQ(answer(d, id[n], n), GPUD_OUTCOME_SUCCESS);
    t_end(&d, NULL);
}

/* C2 C8: the worker dies: who waits is told, with all there is to say. */
T_CASE(the_worker_dies)
{
    T_EACH_DRIVE (drive) {
        struct gpud_event e = T_EVENT;
        gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .drive = drive);
        uint64_t id, label_id;

        id = ask(d, T_TAG(DIE, 0));
        label_id = t_submit(d, T_TASK(.tag = 3, .label = "three", .awaited = 1));
        T_OK(gpud_dispatcher_wait(d, id, &e, GPUD_NEVER, NULL));
        T_EQ(e.outcome, GPUD_OUTCOME_CRASHED);
        T_EQ(e.exit_kind, GPUD_EXIT_SIGNAL);
        T_EQ(e.exit_status, SIGKILL);
        T_CHECK(strstr(e.text, "signal 9"));
        T_TEXT(e.device, "cpu:0");
        T_OK(gpud_event_release(&e));
        T_OK(gpud_dispatcher_wait(d, label_id, &e, GPUD_NEVER, NULL));
        T_EQ(e.outcome, GPUD_OUTCOME_SUCCESS);
        T_TEXT(e.label, "three");
        T_OK(gpud_event_release(&e));
        t_end(&d, NULL);
    }
}

/* C3: one that is tried again after a while is waited for through all its attempts. */
T_CASE(it_is_tried_again)
{
    T_EACH_DRIVE (drive) {
        struct gpud_event e = T_EVENT;
        gpud_dispatcher *d =
            T_BEGIN(NULL, process, .devices = "cpu:1", .drive = drive, .retry_backoff = T_MS(20));
        uint64_t id;
        int code;

        id = t_submit(d, T_TASK(.tag = T_TAG(DIE, 0), .max_attempts = 3, .awaited = 1));
        while ((code = gpud_dispatcher_wait(d, id, &e, T_MS(1), NULL)) == GPUD_ETIMEOUT)
            ;
        T_OK(code);
        T_EQ(e.outcome, GPUD_OUTCOME_CRASHED);
        T_EQ(e.attempt, 3);
        T_OK(gpud_event_release(&e));
        t_end(&d, NULL);
    }
}

/* A forked child waits for nothing. */
T_CASE(forked_child)
{
    struct gpud_event e = T_EVENT;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");
    uint64_t id;
    pid_t child;
    int status = -1;

    id = ask(d, 1);
    child = fork();
    if (child == 0)
        _exit(gpud_dispatcher_wait(d, id, &e, GPUD_NEVER, NULL) == GPUD_EFORKED &&
                      gpud_dispatcher_fd(d) == GPUD_EFORKED
                  ? 0
                  : 1);
    T_EQ(waitpid(child, &status, 0), child);
    T_EQ(status, 0);
    T_EQ(answer(d, id, 1), GPUD_OUTCOME_SUCCESS);
    t_end(&d, NULL);
}
