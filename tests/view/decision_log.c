/* SPDX-License-Identifier: MIT */
/*
 * decision_log.c - the night that is read from the decision log of a live dispatcher has the
 * outcomes that its program has seen, by class, name, GPU and attempt; its uses add up. [V3] [V4]
 */
#include "external.h"
#include "verbs.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view/night/use.h"
#include "view/read/log.h"

#define LOG "decisions"

enum { FAIL = T_VERBS, LATE };

static int process(gpud_task *t, void *state)
{
    const uint64_t verb = gpud_task_tag(t) >> 32;

    while (verb == LATE && !gpud_task_expired(t))
        (void)poll(NULL, 0, 1);
    return verb == FAIL || verb == LATE ? gpud_task_fail(t, 9, "no such file")
                                        : t_process(t, state);
}

/* ---- The night of a log ---- */

struct text {
    char *at;
    size_t size;
};

static struct text read_log(void)
{
    struct text t = { NULL, 0 };
    FILE *in = fopen(LOG, "re"), *out = open_memstream(&t.at, &t.size);

    T_CHECK(in && out);
    for (int c; (c = getc(in)) != EOF;)
        (void)putc(c, out);
    (void)fclose(in);
    (void)fclose(out);
    return t;
}

static struct gpv_night *night_of(const char *text, size_t size)
{
    struct gpv_night *n = gpv_night_new();
    struct gpv_log *l = n ? gpv_log_new(n) : NULL;

    T_CHECK(l);
    T_EQ(gpv_log_read(l, text, size), 0);
    T_EQ(gpv_log_end(l), 0);
    gpv_log_free(l);
    T_EQ(gpv_night_end(n, 0), 0);
    T_EQ(n->unknown, 0);
    return n;
}

static struct gpv_night *night_of_log(void)
{
    struct text t = read_log();
    struct gpv_night *n = night_of(t.at, t.size);

    free(t.at);
    T_EQ(unlink(LOG), 0);
    return n;
}

/* ---- What the program has seen ---- */

static const uint32_t outcomes[GPUD_OUTCOME_COUNT] = {
    [GPUD_OUTCOME_SUCCESS] = GPV_OK,          [GPUD_OUTCOME_ERROR] = GPV_ERROR,
    [GPUD_OUTCOME_TIMEOUT] = GPV_TIMEOUT,     [GPUD_OUTCOME_CRASHED] = GPV_CRASHED,
    [GPUD_OUTCOME_CANCELLED] = GPV_CANCELLED, [GPUD_OUTCOME_NO_WORKER] = GPV_NO_WORKER,
};

static uint64_t named(const struct gpv_night *n, const char *name)
{
    uint64_t task = 0;

    for (size_t i = 0; i < n->names.n; i++)
        if (strcmp(gpv_text(n, n->names.row[i].text), name) == 0) {
            T_EQ(task, 0);
            task = n->names.row[i].task;
        }
    T_CMP(task, !=, 0);
    return task;
}

static const struct gpv_attempt *last_of(const struct gpv_night *n, uint64_t task)
{
    const struct gpv_attempt *last = NULL;

    for (size_t i = 0; i < n->attempts.n; i++)
        if (n->attempts.row[i].task == task && n->attempts.row[i].last)
            last = &n->attempts.row[i];
    T_CHECK(last);
    return last;
}

/* The names of its GPUs, as an event has them. */
static void check_gpus(const struct gpv_night *n, const struct gpv_attempt *a, const char *device)
{
    const struct gpv_set set = gpv_set(n, a->set);
    char text[256] = "";

    for (uint32_t i = 0; i < set.n; i++) {
        (void)strcat(text, i ? "," : "");
        (void)strcat(text, gpv_text(n, n->gpus.row[set.gpu[i]].name));
    }
    T_TEXT(text, device);
}

/* Each task has a label of its own, with the name of its class before it. */
static void check_task(const struct gpv_night *n, const struct gpud_event *e)
{
    const struct gpv_attempt *a = last_of(n, named(n, e->label));
    const struct gpv_batch *b = &n->batches.row[gpv_find_batch(n, GPV_BATCH_OF(a->task))];

    T_EQ(a->outcome, outcomes[e->outcome]);
    T_EQ(strncmp(gpv_text(n, b->name), e->label, strcspn(e->label, " ")), 0);
    T_CMP(a->ready, <=, a->ended);
    if (e->phase == GPUD_PHASE_QUEUED) {
        T_EQ(a->number, 0);
        return;
    }
    T_EQ(a->number, e->attempt);
    T_CMP(a->ready, <=, a->started);
    T_CMP(a->started, <=, a->ended);
    check_gpus(n, a, e->device);
    if (e->outcome == GPUD_OUTCOME_CRASHED)
        T_CHECK(strstr(gpv_text(n, a->text), "signal 9"));
    else if (e->outcome == GPUD_OUTCOME_ERROR)
        T_CHECK(strstr(gpv_text(n, a->text), "no such file"));
    else if (e->outcome == GPUD_OUTCOME_TIMEOUT)
        T_CHECK(strstr(gpv_text(n, a->text), "time limit"));
}

/* Ends of attempts by outcome; the tasks that a batch has joined, too. */
static void check_counts(const struct gpv_night *n, const struct t_log *log)
{
    size_t tasks[GPV_OUTCOMES] = { 0 }, attempts = 0, started = 0, joined[GPV_OUTCOMES] = { 0 };

    for (size_t i = 0; i < n->attempts.n; i++) {
        tasks[n->attempts.row[i].outcome] += n->attempts.row[i].last;
        attempts += n->attempts.row[i].number != 0;
    }
    for (size_t i = 0; i < n->batches.n; i++)
        for (uint32_t o = 0; o < GPV_OUTCOMES; o++)
            joined[o] += n->batches.row[i].ended_by[o];
    for (uint32_t o = 1; o < GPUD_OUTCOME_COUNT; o++) {
        T_EQ(tasks[outcomes[o]], t_log_outcomes(log, o));
        T_EQ(joined[outcomes[o]], t_log_outcomes(log, o));
    }
    for (size_t i = 0; i < log->count; i++)
        if (log->list[i].kind == GPUD_EVENT_OUTCOME)
            started += log->list[i].attempt;
    T_EQ(attempts, started);
}

static void check_uses(const struct gpv_night *n)
{
    T_CMP(n->from, <, n->to);
    for (uint32_t gpu = 0; gpu < n->gpus.n; gpu++) {
        struct gpv_uses sum;
        int64_t all = 0;
        T_EQ(gpv_use_sum(n, gpu, n->from, n->to, &sum), 0);
        for (size_t use = 0; use < GPV_USES; use++)
            all += sum.ns[use];
        T_EQ(all, n->to - n->from);
        T_EQ(sum.ns[GPV_USE_UNKNOWN], 0);
    }
}

/* The log was on the wall clock, a minute ago at most. */
static void check_span(const struct gpv_night *n)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    T_CMP(n->to / 1000000000, <=, (int64_t)now.tv_sec + 1);
    T_CMP(n->from / 1000000000, >=, (int64_t)now.tv_sec - 60);
    T_EQ(n->lives.n, 1);
    T_EQ(n->lives.row[0].since, n->from);
    T_EQ(n->lives.row[0].until, n->to);
}

static void check_night(const struct gpv_night *n, const struct t_log *log)
{
    T_CHECK(n->over);
    for (size_t i = 0; i < log->count; i++)
        if (log->list[i].kind == GPUD_EVENT_OUTCOME)
            check_task(n, &log->list[i]);
    check_counts(n, log);
    check_uses(n);
    check_span(n);
}

/* ---- Classes ---- */

static void add_class(gpud_dispatcher *d, const char *name, const struct gpud_request *needs)
{
    add(d, T_CLASS(.name = name, .needs = needs, .min_residence = T_MS(1),
                   .options = T_OPTIONS(.definition = "test", .grace = T_MS(20), .backoff = T_MS(1),
                                        .max_attempts = 2)));
}

static uint64_t submit(gpud_dispatcher *d, const char *class, const char *what, uint64_t tag,
                       uint64_t limit)
{
    char label[64];

    (void)snprintf(label, sizeof(label), "%s %s %d", class ? class : "tasks", what, (int)tag);
    return t_submit(d, T_TASK(.class_name = class, .label = label, .tag = tag, .limit = limit));
}

/* Of each kind of end, several in each class. */
static unsigned submit_all(gpud_dispatcher *d, const char *class)
{
    for (uint64_t i = 0; i < 8; i++)
        (void)submit(d, class, "works", T_TAG(T_WORK, i), 0);
    for (uint64_t i = 0; i < 2; i++) {
        (void)submit(d, class, "dies", T_TAG(T_KILL, i), 0);
        (void)submit(d, class, "fails", T_TAG(FAIL, i), 0);
        (void)submit(d, class, "is late", T_TAG(LATE, i), T_MS(20));
    }
    (void)submit(d, class, "hangs", T_TAG(T_BLOCKED, 0), T_MS(20));
    return 15;
}

static uint32_t find_row(const struct gpv_night *n, uint32_t kind, const char *text)
{
    uint32_t found = 0;

    for (size_t i = 0; i < n->tenancies.n; i++)
        found += n->tenancies.row[i].kind == kind &&
                 strcmp(gpv_text(n, n->tenancies.row[i].text), text) == 0;
    return found;
}

T_CASE(of_classes)
{
    const struct gpud_request two = { .struct_size = sizeof(two), .devices = 2 };
    struct t_log log = { 0 };
    struct gpv_night *n;
    gpud_dispatcher *d;
    unsigned tasks = 0;
    uint64_t id;

    t_init(NULL, process, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:8", .decision_log = LOG);
    add_class(d, "whisper", NULL);
    add_class(d, "llama", NULL);
    add_class(d, "wide", &two);
    tasks += submit_all(d, "whisper");
    tasks += submit_all(d, "llama");
    tasks += submit_all(d, "wide");
    T_OK(gpud_dispatcher_class_set(d, "llama", GPUD_CLASS_PAUSE, NULL));
    id = submit(d, "llama", "is cancelled", 1, 0);
    T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_SOFT));
    T_OK(gpud_dispatcher_class_set(d, "llama", GPUD_CLASS_RESUME, NULL));
    t_collect(d, &log, tasks + 1);
    gpud_dispatcher_destroy(&d, NULL);
    n = night_of_log();
    check_night(n, &log);
    T_EQ(n->gpus.n, 8);
    T_EQ(n->classes.n, 3);
    T_EQ(n->batches.n, 3);
    T_CMP(find_row(n, GPV_TENANCY_BOOT, "first use"), >=, 3);
    T_CMP(find_row(n, GPV_TENANCY_BOOT, "restart"), >=, 1);
    T_CMP(find_row(n, GPV_TENANCY_UNLOAD, "it died"), >=, 1);
    gpv_night_free(n);
    t_log_free(&log);
    T_OK(gpud_fini());
}

T_CASE(of_a_class_that_leaves)
{
    struct t_log log = { 0 };
    struct gpv_night *n;
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:1", .decision_log = LOG);
    add_class(d, "a", NULL);
    add_class(d, "b", NULL);
    (void)submit(d, "a", "works", 1, 0);
    t_collect(d, &log, 1);
    (void)submit(d, "b", "works", 2, 0);
    t_collect(d, &log, 2);
    t_destroy(&d, NULL);
    n = night_of_log();
    check_night(n, &log);
    T_EQ(find_row(n, GPV_TENANCY_UNLOAD, "evicted for b"), 1);
    T_EQ(find_row(n, GPV_TENANCY_UNLOAD, "the dispatcher closes"), 1);
    gpv_night_free(n);
    t_log_free(&log);
    T_OK(gpud_fini());
}

/* ---- External work ---- */

T_CASE(of_external_work)
{
    struct t_log log = { 0 };
    struct gpv_night *n;
    struct gpud_event g;
    gpud_dispatcher *d;
    uint64_t id;

    t_init(NULL, t_no_work, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:2", .decision_log = LOG);
    add(d, T_CLASS(.name = "work", .residence = GPUD_EXTERNAL,
                   .options = T_OPTIONS(.grace = GPUD_AT_ONCE)));
    T_OK(gpud_dispatcher_adopt(d, T_TASK(.tag = 1, .class_name = "work", .label = "work adopted"),
                               T_ADOPTION(.attempt = 2, .devices = "fake:1"), &id, NULL));
    (void)WORK(d, 2, .label = "work late", .limit = T_MS(10));
    (void)WORK(d, 3, .label = "work declined");
    g = start_granted(d, &log, 2, 0);
    (void)revoked(d, &log, 2, 0, GPUD_REVOKED_LIMIT, GPUD_REVOKE_HARD);
    ENDED(d, g, CRASHED);
    g = granted(d, &log, 3, 0);
    T_OK(gpud_dispatcher_decline(d, g.task_id, g.attempt, t_now() + T_MS(10), NULL));
    g = start_granted(d, &log, 3, 1);
    ENDED(d, g, ERROR, .code = 9, .text = "no such file");
    T_OK(gpud_dispatcher_ended(d, id, 2, T_END(.outcome = GPUD_OUTCOME_SUCCESS), NULL));
    t_collect(d, &log, 3);
    t_destroy(&d, NULL);
    n = night_of_log();
    for (size_t i = 0; i < log.count; i++)
        if (log.list[i].kind == GPUD_EVENT_OUTCOME)
            check_task(n, &log.list[i]);
    T_EQ(n->attempts.n, 3);
    check_uses(n);
    check_span(n);
    gpv_night_free(n);
    t_log_free(&log);
    T_OK(gpud_fini());
}

/* ---- One definition ---- */

T_CASE(plain)
{
    T_EACH_DRIVE (drive) {
        struct t_log log = { 0 };
        struct gpv_night *n;
        gpud_dispatcher *d =
            T_BEGIN(NULL, process, .devices = "fake:2", .drive = drive, .grace = T_MS(20),
                    .backoff = T_MS(1), .max_attempts = 3, .sent_ahead = 4, .decision_log = LOG);
        const unsigned tasks = submit_all(d, NULL);

        t_collect(d, &log, tasks);
        gpud_dispatcher_destroy(&d, NULL);
        n = night_of_log();
        check_night(n, &log);
        T_EQ(n->batches.n, 1);
        T_TEXT(gpv_text(n, n->batches.row[0].name), "tasks");
        gpv_night_free(n);
        t_log_free(&log);
        T_OK(gpud_fini());
    }
}

T_CASE(of_cpus)
{
    struct t_log log = { 0 };
    struct gpv_night *n;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .decision_log = LOG);

    (void)submit(d, NULL, "works", 1, 0);
    (void)submit(d, NULL, "works", 2, 0);
    t_collect(d, &log, 2);
    t_destroy(&d, NULL);
    n = night_of_log();
    check_night(n, &log);
    T_EQ(n->gpus.n, 2);
    gpv_night_free(n);
    t_log_free(&log);
    T_OK(gpud_fini());
}

/* ---- A dispatcher that works still ---- */

/* Its log goes on: what runs is open, and so is what waits. */
T_CASE(that_goes_on)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "fake:1", .drive = GPUD_DRIVE_CALLER,
                                 .sent_ahead = 4, .decision_log = LOG);
    struct gpv_night *n;
    struct text t;

    (void)submit(d, NULL, "works", 1, 0);
    t_collect(d, &log, 1);
    (void)submit(d, NULL, "waits", T_TAG(T_WAIT_FOR_GATE, 1), 0);
    for (uint64_t i = 0; i < 9; i++)
        (void)submit(d, NULL, "follows", i, 0);
    while (t_word(T_STARTED) == 0)
        T_EQ(t_poll(d, &log, T_MS(1)), 0);
    (void)t_poll(d, &log, T_MS(1)); /* the log is complete before the sleep */
    t = read_log();
    n = night_of(t.at, t.size);
    free(t.at);
    T_EQ(unlink(LOG), 0);
    T_CHECK(!n->over);
    T_EQ(n->batches.n, 1);
    T_EQ(n->batches.row[0].total, 11);
    T_EQ(n->batches.row[0].running, 1);
    T_EQ(n->batches.row[0].ready, 9);
    T_EQ(n->batches.row[0].first, 3);
    T_EQ(n->batches.row[0].ended, 0);
    T_EQ(last_of(n, named(n, "tasks waits 1"))->outcome, GPV_RUNNING);
    T_CHECK(strstr(gpv_text(n, n->lives.row[0].text), "has no end"));
    check_uses(n);
    gpv_night_free(n);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 11);
    t_end(&d, &log);
}

/* However much of it there is. */
T_CASE(that_breaks_off)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "fake:2", .grace = T_MS(20),
                                 .backoff = T_MS(1), .decision_log = LOG);
    const unsigned tasks = submit_all(d, NULL);
    struct text t;

    t_collect(d, &log, tasks);
    t_end(&d, &log);
    t = read_log();
    for (size_t size = t.size; size > 0; size -= size > 97 ? 97 : size) {
        const char *end = memrchr(t.at, '\n', size);
        struct gpv_night *n = night_of(t.at, end ? (size_t)(end - t.at) : 0);
        uint32_t ends = 0;
        for (size_t i = 0; i < n->batches.n; i++) {
            const struct gpv_batch *b = &n->batches.row[i];
            for (uint32_t o = GPV_OK; o < GPV_OUTCOMES; o++)
                ends += b->ended_by[o];
            T_EQ(b->total, b->ready + b->running + ends);
        }
        for (size_t i = 0; i < n->attempts.n; i++)
            ends -= n->attempts.row[i].outcome != GPV_RUNNING;
        T_EQ(ends, 0);
        gpv_night_free(n);
    }
    free(t.at);
    T_EQ(unlink(LOG), 0);
}
