/* SPDX-License-Identifier: MIT */
/*
 * starts.c - option start_events: one event STARTED per attempt, while the task runs or with its
 * end, ahead of its PROGRESS and its OUTCOME.
 */
#include "verbs.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum verb {
    WORK,
    WAIT,       /* for the gate of its number */
    FAIL_TWICE, /* ERROR, ERROR, SUCCESS */
    CRASH_ONCE,
    CRASH_ALWAYS,
    LATE_ONCE, /* past its soft limit, then in time */
    PROGRESS,
    PROGRESS_THEN_WAIT,
};

enum { RUN, GATES = 8 };
#define ALL_CAUSES (GPUD_RETRY_CRASH | GPUD_RETRY_ERROR | GPUD_RETRY_TIMEOUT)

static int process(gpud_task *t, void *state)
{
    const uint64_t tag = gpud_task_tag(t);
    const uint32_t attempt = gpud_task_attempt(t);

    (void)state;
    (void)t_word_add(RUN);
    switch ((enum verb)(tag >> 32)) {
    case WORK:
        return 0;
    case WAIT:
        t_word_wait(GATES + (unsigned)(tag & 127), 1);
        return 0;
    case FAIL_TWICE:
        return attempt < 3 ? 5 : 0;
    case CRASH_ONCE:
        if (attempt == 1)
            (void)raise(SIGKILL);
        return 0;
    case CRASH_ALWAYS:
        (void)raise(SIGKILL);
        return 0;
    case LATE_ONCE:
        while (attempt == 1 && !gpud_task_expired(t))
            t_pass(T_MS(1));
        return 0;
    case PROGRESS:
        return gpud_task_progress(t, 0.5, "half");
    case PROGRESS_THEN_WAIT:
        if (gpud_task_progress(t, 0.5, "half"))
            return 6;
        t_word_wait(GATES + (unsigned)(tag & 127), 1);
        return 0;
    }
    return -1;
}

static int process_batch(gpud_task *const *tasks, size_t n, void *state)
{
    for (size_t i = 0; i < n; i++) {
        int code = process(tasks[i], state);
        if (code)
            (void)gpud_task_fail(tasks[i], code, "one of a batch");
    }
    return 0;
}

static void init_batch(void)
{
    const struct gpud_definition definition = { .struct_size = sizeof(definition),
                                                .name = "batch",
                                                .process_batch = process_batch };

    T_OK(gpud_init(&definition, 1, NULL));
}

#define OPTIONS(...) T_OPTIONS(.start_events = 1, __VA_ARGS__)

static const struct gpud_event *started(const struct t_log *log, size_t n)
{
    return t_log_at(log, GPUD_EVENT_STARTED, n);
}

/* Of one task: its attempts count up from 1, each is once, and none follows what ends it. */
static size_t check_task(const struct t_log *log, const struct gpud_event *end)
{
    const struct gpud_event *last = NULL;
    size_t n = 0;

    for (size_t i = 0; i < log->count; i++) {
        const struct gpud_event *e = &log->list[i];
        if (e->task_id != end->task_id)
            continue;
        if (e->kind == GPUD_EVENT_PROGRESS)
            T_CHECK(last);
        if (e->kind != GPUD_EVENT_STARTED)
            continue;
        T_CHECK(e < end);
        T_EQ(e->tag, end->tag);
        T_TEXT(e->label, end->label);
        T_CMP(e->attempt, >, last ? last->attempt : 0);
        T_CMP(e->incarnation, >=, 1);
        T_CMP(e->started_at, >=, last ? last->started_at : end->queued_at);
        last = e;
        n++;
    }
    if (last && last->attempt == end->attempt) {
        T_EQ(last->started_at, end->started_at);
        T_EQ(last->slot, end->slot);
        T_EQ(last->incarnation, end->incarnation);
        T_TEXT(last->device, end->device);
    }
    return n;
}

/* Each attempt of each task has its start, and no other task has one. */
static void check_all(const struct t_log *log)
{
    size_t n = 0;

    for (size_t i = 0; i < log->count; i++) {
        const struct gpud_event *e = &log->list[i];
        if (e->kind != GPUD_EVENT_OUTCOME)
            continue;
        T_EQ(check_task(log, e), e->attempt);
        n += e->attempt;
    }
    T_EQ(t_log_count(log, GPUD_EVENT_STARTED), n);
}

/* ---- while the task runs ---- */

/* The event comes while its task runs, to a host that sleeps until there is news: of the first task
 * of a worker and of each later one. */
static void wakes_the_host(uint32_t drive)
{
    enum { ROUNDS = 20 };
    struct t_log log = { 0 };
    gpud_dispatcher *d = t_begin(NULL, process, OPTIONS(.devices = "cpu:1", .drive = drive));

    for (uint64_t n = 0; n < ROUNDS; n++) {
        const struct gpud_event *e;
        uint64_t id = t_submit(d, T_TASK(.tag = T_TAG(WAIT, n), .label = "waits"));
        while (t_log_count(&log, GPUD_EVENT_STARTED) <= n)
            (void)t_poll(d, &log, GPUD_NEVER);
        e = started(&log, n);
        T_CMP(t_now() - e->started_at, <, T_S(5)); /* by a bell, not as the host looks again */
        T_EQ(e->task_id, id);
        T_EQ(e->tag, T_TAG(WAIT, n));
        T_TEXT(e->label, "waits");
        T_EQ(e->slot, 0);
        T_EQ(e->attempt, 1);
        T_TEXT(e->device, "cpu:0");
        T_EQ(t_log_count(&log, GPUD_EVENT_OUTCOME), n);
        t_word_set(GATES + (unsigned)n, 1);
        t_collect(d, &log, n + 1);
    }
    check_all(&log);
    t_end(&d, &log);
}

T_CASE(wakes_a_thread_that_waits)
{
    wakes_the_host(GPUD_DRIVE_THREAD);
}

T_CASE(wakes_a_caller_that_drives)
{
    wakes_the_host(GPUD_DRIVE_CALLER);
}

/* No start is missed in the moment in which the host goes to sleep: short tasks ahead of it keep
 * both awake until then. */
T_LONG_CASE(start_while_the_host_falls_asleep, 120)
{
    const size_t rounds = t_rounds(30000, 10000);
    struct t_log log = { 0 };
    gpud_dispatcher *d = t_begin(
        NULL, process, OPTIONS(.devices = "cpu:1", .drive = GPUD_DRIVE_CALLER, .sent_ahead = 8));

    for (size_t n = 0; n < rounds; n++) {
        const size_t ahead = n % 8;
        t_word_set(GATES, 0);
        for (size_t i = 0; i < ahead; i++)
            T_SUBMIT(d, .tag = i);
        T_SUBMIT(d, .tag = T_TAG(WAIT, 0));
        while (t_log_count(&log, GPUD_EVENT_STARTED) <= ahead)
            (void)t_poll(d, &log, GPUD_NEVER);
        T_CMP(t_now() - started(&log, ahead)->started_at, <, T_S(5));
        t_word_set(GATES, 1);
        t_collect(d, &log, ahead + 1);
        check_all(&log);
        t_log_free(&log);
    }
    t_end(&d, &log);
}

/* With a batch that gathers, the claim comes long after the host has gone to sleep.  (At a worker
 * that has one task the host does not look again by itself.) */
T_CASE(batch_wakes_the_host)
{
    struct t_log log = { 0 };
    size_t n = 0;
    gpud_dispatcher *d;

    init_batch();
    d = t_create(OPTIONS(.devices = "cpu:1", .drive = GPUD_DRIVE_CALLER, .max_batch = 3,
                         .batch_wait = T_MS(50)));
    for (uint64_t round = 0; round < 6; round++) {
        const size_t members = 1 + round % 2;
        for (uint64_t i = 0; i < members; i++)
            T_SUBMIT(d, .tag = T_TAG(i ? WORK : WAIT, round));
        while (t_log_count(&log, GPUD_EVENT_STARTED) < n + members)
            (void)t_poll(d, &log, GPUD_NEVER);
        T_CMP(t_now() - started(&log, n)->started_at, <, T_S(5));
        T_EQ(started(&log, n)->started_at, started(&log, n + members - 1)->started_at);
        T_EQ(t_log_count(&log, GPUD_EVENT_OUTCOME), n);
        t_word_set(GATES + (unsigned)round, 1);
        n += members;
        t_collect(d, &log, n);
    }
    check_all(&log);
    t_end(&d, &log);
}

/* The descriptor of a host's loop becomes readable for a start. */
T_CASE(descriptor)
{
    struct t_log log = { 0 };
    struct pollfd p = { .events = POLLIN };
    gpud_dispatcher *d =
        t_begin(NULL, process, OPTIONS(.devices = "cpu:2", .drive = GPUD_DRIVE_CALLER));

    p.fd = gpud_dispatcher_fd(d);
    T_CMP(p.fd, >=, 0);
    for (uint64_t n = 0; n < 10; n++) {
        T_SUBMIT(d, .tag = T_TAG(WAIT, n));
        while (t_log_count(&log, GPUD_EVENT_STARTED) <= n) {
            T_EQ(poll(&p, 1, (int)(T_PATIENCE / 1000000)), 1);
            (void)t_poll(d, &log, 0);
        }
        T_CMP(t_now() - started(&log, n)->started_at, <, T_S(5));
        t_word_set(GATES + (unsigned)n, 1);
    }
    t_collect(d, &log, 10);
    check_all(&log);
    t_end(&d, &log);
}

/* Where the host reads both at once, the start is ahead of the progress. */
T_CASE(progress_comes_after_the_start)
{
    enum { ROUNDS = 30 };
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        t_begin(NULL, process, OPTIONS(.devices = "cpu:1", .drive = GPUD_DRIVE_CALLER));

    for (uint64_t n = 0; n < ROUNDS; n++) {
        T_SUBMIT(d, .tag = T_TAG(PROGRESS_THEN_WAIT, n));
        while (t_log_count(&log, GPUD_EVENT_PROGRESS) <= n)
            (void)t_poll(d, &log, GPUD_NEVER);
        T_EQ(t_log_count(&log, GPUD_EVENT_STARTED), n + 1);
        t_word_set(GATES + (unsigned)n, 1);
        t_collect(d, &log, n + 1);
    }
    check_all(&log);
    t_end(&d, &log);
}

/* ---- one per attempt ---- */

/* Attempts that end by themselves, late, and with their worker; tasks sent ahead and taken back. */
static void mixed(const struct gpud_options *options, uint64_t tasks)
{
    static const enum verb verbs[] = { WORK,      FAIL_TWICE, WORK,     CRASH_ONCE,
                                       LATE_ONCE, WORK,       PROGRESS, CRASH_ALWAYS };
    struct t_log log = { 0 };
    gpud_dispatcher *d = t_create(options);

    for (uint64_t n = 0; n < tasks; n++) {
        enum verb verb = verbs[n % (sizeof(verbs) / sizeof(*verbs))];
        T_SUBMIT(d, .tag = T_TAG(verb, n), .label = n % 3 ? NULL : "third",
                 .limit = verb == LATE_ONCE ? T_MS(50) : 0);
    }
    t_collect(d, &log, tasks);
    T_EQ(t_stats(d).events_dropped, 0);
    T_CMP(t_stats(d).retried, >=, 4 * tasks / 8);
    for (uint64_t n = 0; n < tasks; n++)
        if (verbs[n % (sizeof(verbs) / sizeof(*verbs))] == CRASH_ALWAYS)
            T_EQ(T_OUTCOME(&log, T_TAG(CRASH_ALWAYS, n), CRASHED)->attempt, 3);
    check_all(&log);
    t_end(&d, &log);
}

T_CASE(one_per_attempt)
{
    t_init(NULL, process, NULL);
    mixed(OPTIONS(.devices = "cpu:2", .max_attempts = 3, .retry_causes = ALL_CAUSES,
                  .backoff = T_MS(1), .grace = T_S(60)),
          40);
}

T_CASE(one_per_member_of_a_batch)
{
    init_batch();
    mixed(OPTIONS(.devices = "cpu:2", .max_attempts = 3, .retry_causes = ALL_CAUSES,
                  .backoff = T_MS(1), .grace = T_S(60), .max_batch = 4, .batch_wait = T_MS(5)),
          40);
}

/* A worker that dies in its task: the start is an event where the host has not looked meanwhile. */
T_CASE(crash_before_the_host_looks)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = t_begin(NULL, process,
                                 OPTIONS(.devices = "cpu:1", .drive = GPUD_DRIVE_CALLER,
                                         .max_attempts = 2, .backoff = T_MS(1)));

    for (uint64_t n = 0; n < 3; n++) {
        struct t_proc worker;
        T_OK(gpud_dispatcher_ready(d, 1, GPUD_NEVER, NULL));
        worker = t_worker(d, 0);
        T_SUBMIT(d, .tag = T_TAG(CRASH_ONCE, n));
        (void)t_poll(d, &log, 0);
        t_wait_ended(&worker);
        t_collect(d, &log, n + 1);
        T_EQ(T_OUTCOME(&log, T_TAG(CRASH_ONCE, n), SUCCESS)->attempt, 2);
    }
    check_all(&log);
    t_end(&d, &log);
}

/* Tasks that have ended before the host looks: start and end come together, in this order. */
T_CASE(ended_before_the_host_looks)
{
    enum { TASKS = 32 };
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        t_begin(NULL, process,
                OPTIONS(.devices = "cpu:1", .drive = GPUD_DRIVE_CALLER, .sent_ahead = TASKS));

    T_OK(gpud_dispatcher_ready(d, 1, GPUD_NEVER, NULL));
    t_submit_tags(d, 0, TASKS);
    (void)t_poll(d, &log, 0); /* sends them */
    t_word_wait(RUN, TASKS);
    t_collect(d, &log, TASKS);
    T_EQ(t_log_count(&log, GPUD_EVENT_STARTED), TASKS);
    check_all(&log);
    t_end(&d, &log);
}

/* Whoever waits for outcomes gets no other event: the starts are for poll. */
T_CASE(awaited)
{
    struct t_log log = { 0 };
    struct gpud_event e = GPUD_EVENT_INIT;
    gpud_dispatcher *d = t_begin(NULL, process, OPTIONS(.devices = "cpu:1"));

    for (uint64_t n = 0; n < 3; n++) {
        uint64_t id = t_submit(d, T_TASK(.tag = n, .awaited = 1));
        T_OK(gpud_dispatcher_wait(d, id, &e, GPUD_NEVER, NULL));
        T_EQ(e.kind, GPUD_EVENT_OUTCOME);
        T_EQ(e.tag, n);
        T_OK(gpud_event_release(&e));
        T_EQ(t_poll(d, &log, 0), 1);
        T_EQ(started(&log, n)->task_id, id);
    }
    t_end(&d, &log);
}

/* ---- no start ---- */

/* The worker claims a task too late, and does not start it. */
T_CASE(expired_is_no_start)
{
    struct t_log log = { 0 };
    struct t_proc worker, keeper;
    gpud_dispatcher *d = t_begin(
        NULL, process, OPTIONS(.devices = "cpu:1", .drive = GPUD_DRIVE_CALLER, .sent_ahead = 2));

    T_OK(gpud_dispatcher_ready(d, 1, GPUD_NEVER, NULL));
    worker = t_worker(d, 0);
    keeper = t_keeper_of(&worker);
    t_stop(&keeper);
    t_stop(&worker);
    T_SUBMIT(d, .tag = 0, .expires = T_MS(5));
    T_SUBMIT(d, .tag = 1);
    (void)t_poll(d, &log, 0);
    t_pass(T_MS(6));
    t_kill(worker.pid, SIGCONT);
    t_kill(keeper.pid, SIGCONT);
    t_word_wait(RUN, 1); /* the second: the worker has refused the first */
    t_collect(d, &log, 2);
    T_EQ(T_OUTCOME(&log, 0, TIMEOUT)->phase, GPUD_PHASE_QUEUED);
    T_EQ(t_log_count(&log, GPUD_EVENT_STARTED), 1);
    check_all(&log);
    t_end(&d, &log);
}

/* A task that is cancelled in the queue, or at a worker that has not come to it. */
T_CASE(cancelled_is_no_start)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = t_begin(NULL, process, OPTIONS(.devices = "cpu:1", .sent_ahead = 2));
    uint64_t id[4];

    for (uint64_t n = 0; n < 4; n++)
        id[n] = t_submit(d, T_TASK(.tag = T_TAG(WAIT, n)));
    t_collect_kind(d, &log, GPUD_EVENT_STARTED, 1);
    for (uint64_t n = 1; n < 4; n++)
        T_OK(gpud_dispatcher_cancel(d, id[n], GPUD_CANCEL_HARD));
    t_word_set(GATES, 1);
    t_collect(d, &log, 4);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_CANCELLED), 3);
    T_EQ(t_log_count(&log, GPUD_EVENT_STARTED), 1);
    check_all(&log);
    t_end(&d, &log);
}

/* Without the option there are none. */
T_CASE(off_by_default)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = NULL;
    struct gpud_error e = GPUD_ERROR_INIT;

    t_init(NULL, process, NULL);
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(.start_events = 2), &e), EINVAL);
    T_TEXT(e.field, "start_events");
    d = T_CREATE(.devices = "cpu:2", .max_attempts = 3, .retry_causes = ALL_CAUSES,
                 .backoff = T_MS(1));
    for (uint64_t n = 0; n < 20; n++)
        T_SUBMIT(d, .tag = T_TAG(n % 5 ? WORK : CRASH_ONCE, n));
    t_collect(d, &log, 20);
    T_EQ(t_log_count(&log, GPUD_EVENT_STARTED), 0);
    t_end(&d, &log);
}

/* ---- too many ---- */

static int all_ended(void *user)
{
    struct gpud_stats s = t_stats(user);

    return s.success == s.accepted;
}

/* C18: while nobody polls, the latest starts are dropped, and counted; the outcomes are all there,
 * and each start that is there comes ahead of its own. */
T_CASE(dropped_ones_are_counted)
{
    enum { TASKS = 2000 };
    struct t_log log = { 0 };
    gpud_dispatcher *d = t_begin(NULL, process, OPTIONS(.devices = "cpu:2", .queue_size = TASKS));
    size_t n;

    t_submit_tags(d, 0, TASKS);
    t_wait_until("all have ended", all_ended, d);
    t_collect(d, &log, TASKS);
    n = t_log_count(&log, GPUD_EVENT_STARTED);
    T_CMP(n, >=, 256);
    T_CMP(n, <=, 512); /* others are kept for events that must arrive */
    T_EQ(n + t_stats(d).events_dropped, TASKS);
    t_check_exactly_once(&log, TASKS);
    for (size_t i = 0; i < log.count; i++)
        if (log.list[i].kind == GPUD_EVENT_OUTCOME)
            T_CMP(check_task(&log, &log.list[i]), <=, 1);
    /* there is room again */
    T_SUBMIT(d, .tag = TASKS);
    t_collect(d, &log, TASKS + 1);
    T_EQ(t_log_count(&log, GPUD_EVENT_STARTED), n + 1);
    t_end(&d, &log);
}

/* ---- run ---- */

enum { FED = 300 };

struct fed {
    struct t_log log;
    uint64_t next;
};

static int source(struct gpud_task_desc *tasks, size_t n, void *user)
{
    struct fed *f = user;
    size_t i;

    for (i = 0; i < n && f->next < FED; i++) {
        uint64_t number = f->next++;
        tasks[i].tag = T_TAG(number % 50 ? WORK : FAIL_TWICE, number);
    }
    return (int)i;
}

static int on_event(const struct gpud_event *e, void *user)
{
    return t_log_add(e, &((struct fed *)user)->log);
}

/* The callback on_event gets each start, before the one of its outcome. */
static void run(uint32_t drive)
{
    struct fed f = { .next = 0 };
    struct gpud_run_counts counts = { .struct_size = sizeof(counts) };
    gpud_dispatcher *d = t_begin(
        NULL, process,
        OPTIONS(.devices = "cpu:2", .drive = drive, .max_attempts = 3, .retry_causes = ALL_CAUSES));

    T_OK(gpud_dispatcher_run(d, source,
                             T_CALLBACKS(.on_success = on_event, .on_error = on_event,
                                         .on_event = on_event, .counts = &counts),
                             &f, NULL));
    T_EQ(counts.success, FED);
    T_EQ(t_log_count(&f.log, GPUD_EVENT_OUTCOME), FED);
    T_EQ(t_stats(d).events_dropped, 0);
    check_all(&f.log);
    t_end(&d, &f.log);
}

T_CASE(callbacks_of_run)
{
    run(GPUD_DRIVE_THREAD);
}

T_CASE(callbacks_of_run_that_drives)
{
    run(GPUD_DRIVE_CALLER);
}

/* An event that is kept outlives the next poll. */
T_CASE(kept)
{
    struct gpud_event e[2] = { GPUD_EVENT_INIT, GPUD_EVENT_INIT };
    gpud_dispatcher *d = t_begin(NULL, process, OPTIONS(.devices = "cpu:1"));

    T_SUBMIT(d, .tag = T_TAG(WAIT, 0), .label = "kept");
    T_EQ(gpud_dispatcher_poll(d, e, 1, GPUD_NEVER), 1);
    T_EQ(e[0].kind, GPUD_EVENT_STARTED);
    T_OK(gpud_event_keep(d, e));
    t_word_set(GATES, 1);
    T_EQ(gpud_dispatcher_poll(d, e + 1, 1, GPUD_NEVER), 1);
    T_EQ(e[1].kind, GPUD_EVENT_OUTCOME);
    T_TEXT(e[0].label, "kept");
    T_EQ(e[0].task_id, e[1].task_id);
    T_OK(gpud_event_release(e));
    t_end(&d, NULL);
}
