/* SPDX-License-Identifier: MIT */
/* run.c - what gpud_dispatcher_run returns, and what stands in its counts.                [C12] */
#include "verbs.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

enum { SETUP_FAILS, GO_ON };
enum { WORK, FAIL, CRASH };

static int setup(gpud_worker *w, void **ret_state)
{
    (void)ret_state;
    return t_word(SETUP_FAILS) ? gpud_worker_fail(w, 7, "no model") : 0;
}

static int process(gpud_task *t, void *state)
{
    (void)state;
    if (gpud_task_tag(t) >> 32 == CRASH)
        (void)raise(SIGKILL);
    return gpud_task_tag(t) >> 32 == FAIL ? 9 : 0;
}

/* One run, as source and callbacks see it. */
struct scene {
    gpud_dispatcher *d;
    struct t_log log;
    struct gpud_run_counts counts;
    struct gpud_error error;
    uint64_t given, last; /* so many tasks, then ... */
    int answer;           /* ... this */
    uint64_t bad;         /* the task with this number has too long a label; 0 = none */
    size_t at_once;       /* most that it gives at a time */
    size_t asked;         /* most that it was asked for */
    uint64_t act_at;      /* a callback acts at this outcome, counted from 1 */
    int value;            /* what it returns then */
    int stops;            /* it calls stop then */
    unsigned unblocked;
};

static int give(struct gpud_task_desc *tasks, size_t n, void *user)
{
    static const char *const long_label =
        "a label of more than 63 bytes, which is the most there may be of one";
    struct scene *s = user;
    size_t i;

    s->asked = n > s->asked ? n : s->asked;
    for (i = 0; i < n && i < s->at_once && s->given < s->last; i++) {
        T_EQ(tasks[i].struct_size, sizeof tasks[i]);
        tasks[i].tag = T_TAG(s->given % 3, s->given);
        if (s->bad && s->given == s->bad)
            tasks[i].label = long_label;
        s->given++;
    }
    return i ? (int)i : s->answer;
}

static int take(const struct gpud_event *e, void *user)
{
    struct scene *s = user;

    (void)t_log_add(e, &s->log);
    if (e->kind != GPUD_EVENT_OUTCOME || t_log_count(&s->log, GPUD_EVENT_OUTCOME) != s->act_at)
        return 0;
    if (s->stops)
        T_OK(gpud_dispatcher_stop(s->d, GPUD_FINISH_ALL));
    return s->value;
}

static void unblock(void *user)
{
    ((struct scene *)user)->unblocked++;
}

static int run(struct scene *s)
{
    s->counts = (struct gpud_run_counts)GPUD_RUN_COUNTS_INIT;
    s->error = (struct gpud_error)GPUD_ERROR_INIT;
    s->at_once = s->at_once ? s->at_once : 64;
    return gpud_dispatcher_run(s->d, give,
                               T_CALLBACKS(.on_success = take, .on_error = take, .on_event = take,
                                           .unblock = unblock, .counts = &s->counts),
                               s, &s->error);
}

static void begin(struct scene *s)
{
    t_init(setup, process, NULL);
    s->d = T_CREATE(.devices = "cpu:2", .backoff = T_MS(1));
}

static uint64_t ended(const struct gpud_run_counts *c)
{
    return c->success + c->error + c->timeout + c->crashed + c->cancelled + c->no_worker;
}

/* Counts by outcome, and 0 as the answer although tasks failed. */
T_CASE(counts)
{
    struct scene s = { .last = 300 };

    begin(&s);
    T_OK(run(&s));
    T_EQ(s.counts.pulled, 300);
    T_EQ(s.counts.success, 100);
    T_EQ(s.counts.error, 100);
    T_EQ(s.counts.crashed, 100);
    T_EQ(ended(&s.counts), 300);
    T_EQ(s.counts.value, 0);
    T_EQ(s.asked, 64);
    t_end(&s.d, &s.log);
}

/* However few a source gives at a time; and it is asked for no more than there is room for. */
T_CASE(a_few_at_a_time)
{
    for (size_t few = 1; few <= 3; few++) {
        struct scene s = { .last = 50, .at_once = few };

        s.d = T_BEGIN(setup, process, .devices = "cpu:2", .queue_size = 5);
        T_OK(run(&s));
        T_EQ(s.counts.pulled, 50);
        T_EQ(ended(&s.counts), 50);
        T_CMP(s.asked, <=, 5);
        t_end(&s.d, &s.log);
    }
}

/* C12: ESOURCE: a negative value, or more tasks than were asked for.  What was pulled is delivered,
 * and the dispatcher serves another run. [G10] */
T_CASE(esource)
{
    struct scene s = { .last = 70, .answer = -1 };

    begin(&s);
    T_CODE(run(&s), ESOURCE);
    T_EQ(s.counts.value, -1);
    T_EQ(s.counts.pulled, 70);
    T_EQ(ended(&s.counts), 70);
    T_TEXT(s.error.field, "source");
    T_TEXT(s.error.text, "source returned -1 after 70 tasks");
    s.answer = 65;
    T_CODE(run(&s), ESOURCE);
    T_EQ(s.counts.value, 65);
    T_EQ(s.counts.pulled, 0);
    T_TEXT(s.error.text, "source returned 65 after 0 tasks, which is more than its argument n");
    s.answer = 0;
    s.last = 100;
    T_OK(run(&s));
    T_EQ(ended(&s.counts), 30);
    t_end(&s.d, &s.log);
}

/* C12: ECALLBACK, whatever the callback's value: 0 is the only one that goes on.  What was pulled
 * is delivered, and the source unblocked once. [G11] */
T_CASE(ecallback)
{
    const int values[] = { 1, -1, GPUD_ESTOPPED };

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct scene s = { .last = UINT64_MAX, .act_at = 1 + 40 * i, .value = values[i] };

        begin(&s);
        T_CODE(run(&s), ECALLBACK);
        T_EQ(s.counts.value, values[i]);
        T_EQ(ended(&s.counts), s.counts.pulled);
        T_CMP(s.counts.pulled, >=, s.act_at);
        T_EQ(s.unblocked, 1);
        T_CHECK(!strcmp(s.error.field, "on_success") || !strcmp(s.error.field, "on_error"));
        T_CHECK(strstr(s.error.text, " returned ") != NULL);
        T_CODE(gpud_dispatcher_submit(s.d, T_TASK(0), 0, NULL, &s.error), ECLOSED);
        T_TEXT(s.error.text, "the dispatcher takes no more tasks: a callback of "
                             "gpud_dispatcher_run returned a value other than 0");
        t_end(&s.d, &s.log);
    }
}

/* EREFUSED: the tasks before it were pulled, it and the rest were not; which one, and why. */
T_CASE(erefused)
{
    struct scene s = { .last = 100, .bad = 77 };

    begin(&s);
    T_CODE(run(&s), EREFUSED);
    T_EQ(s.counts.value, 0);
    T_EQ(s.counts.pulled, 77);
    T_EQ(ended(&s.counts), 77);
    T_TEXT(s.error.field, "label");
    T_CHECK(!strncmp(s.error.text,
                     "task 77 of the source, counted from 0: ELABEL: task.label \"a label of more",
                     69));
    t_end(&s.d, &s.log);
}

/* ENOWORKER, not 0, when tasks end NO_WORKER; the text has the reason. */
T_CASE(enoworker)
{
    struct scene s = { .last = 10 };

    t_word_set(SETUP_FAILS, 1);
    begin(&s);
    T_CODE(run(&s), ENOWORKER);
    T_EQ(s.counts.pulled, 10);
    T_EQ(s.counts.no_worker, 10);
    T_CHECK(!strcmp(s.error.text, "all 2 slots have failed; slot 0: no model") ||
            !strcmp(s.error.text, "all 2 slots have failed; slot 1: no model"));
    t_end(&s.d, &s.log);
}

/* ESTOPPED, after stop or close by somebody. */
T_CASE(estopped)
{
    struct scene s = { .last = UINT64_MAX, .act_at = 3, .stops = 1 };

    begin(&s);
    T_CODE(run(&s), ESTOPPED);
    T_EQ(s.counts.value, 0);
    T_EQ(ended(&s.counts), s.counts.pulled);
    t_end(&s.d, &s.log);
}

/* When several are true the first of the list: a callback that stops the run that the source has
 * failed, a refused task among tasks that have no worker. */
T_CASE(the_first_of_the_list)
{
    struct scene s = { .last = 10, .answer = -5, .act_at = 10, .value = 3, .stops = 1 };

    begin(&s);
    T_CODE(run(&s), ECALLBACK);
    T_EQ(s.counts.value, 3);
    t_end(&s.d, &s.log);

    s = (struct scene){ .last = 10, .answer = -5, .act_at = 10, .stops = 1 };
    begin(&s);
    T_CODE(run(&s), ESOURCE);
    T_EQ(s.counts.value, -5);
    t_end(&s.d, &s.log);

    s = (struct scene){ .last = 10, .bad = 9 };
    t_word_set(SETUP_FAILS, 1);
    begin(&s);
    T_CODE(run(&s), EREFUSED);
    T_EQ(s.counts.no_worker, 9);
    t_end(&s.d, &s.log);
}

/* Another code: nothing was pulled. */
T_CASE(nothing_was_pulled)
{
    struct scene s = { .last = 10 };
    struct gpud_run_counts small = { .struct_size = 8 };
    struct gpud_callbacks callbacks = GPUD_CALLBACKS_INIT;

    begin(&s);
    T_CODE(gpud_dispatcher_run(s.d, give, T_CALLBACKS(.counts = &small), &s, &s.error), ESTRUCT);
    callbacks.task_size = 12;
    T_CODE(gpud_dispatcher_run(s.d, give, &callbacks, &s, &s.error), ESTRUCT);
    T_OK(gpud_dispatcher_close(s.d, GPUD_FINISH_ALL, 0));
    T_CODE(run(&s), ECLOSED);
    T_EQ(s.counts.pulled, 0);
    T_EQ(s.given, 0);
    t_end(&s.d, &s.log);
}

/* ---- a source whose last tasks come when nothing starts any more ---- */

enum { FED_BEFORE = 600 };

struct crowd {
    gpud_dispatcher *d;
    _Atomic int given, waits, last;
    int seen;
    uint64_t accepted;
    struct gpud_run_counts counts;
};

static int give_and_wait(struct gpud_task_desc *tasks, size_t n, void *user)
{
    struct crowd *c = user;

    (void)tasks;
    if (atomic_load(&c->given) >= FED_BEFORE) {
        atomic_store(&c->waits, 1);
        t_word_wait(GO_ON, 1);
        atomic_store(&c->last, (int)n);
        return (int)n;
    }
    atomic_fetch_add(&c->given, (int)n);
    return (int)n;
}

static int all_ended(void *user)
{
    struct crowd *c = user;

    return atomic_load(&c->waits) && t_stats(c->d).success == (uint64_t)atomic_load(&c->given);
}

static int last_are_taken(void *user)
{
    struct crowd *c = user;
    int last = atomic_load(&c->last);

    return last && t_stats(c->d).accepted == c->accepted + (uint64_t)last;
}

/* While 256 events are lent: fills the queue, and closes. */
static int crowd_out(const struct gpud_event *e, void *user)
{
    struct crowd *c = user;

    (void)e;
    if (++c->seen == 1)
        t_wait_until("all that was given has ended", all_ended, c);
    if (c->seen != 300) /* in a batch of 256, whatever the first one had */
        return 0;
    while (gpud_dispatcher_submit(c->d, T_TASK(0), 0, NULL, NULL) == 0)
        ;
    T_OK(gpud_dispatcher_close(c->d, GPUD_FINISH_NOW, 0));
    c->accepted = t_stats(c->d).accepted;
    t_word_set(GO_ON, 1);
    t_wait_until("the last ones are taken", last_are_taken, c); /* while those events are lent */
    return 0;
}

/* C1: ... with the queue full and as many events lent as there may be: each has a record. */
T_CASE(pulled_when_nothing_starts)
{
    struct crowd c = { .counts = GPUD_RUN_COUNTS_INIT };

    c.d = T_BEGIN(NULL, process, .devices = "cpu:1", .queue_size = 1024);
    T_CODE(gpud_dispatcher_run(
               c.d, give_and_wait,
               T_CALLBACKS(.on_success = crowd_out, .on_error = crowd_out, .counts = &c.counts), &c,
               NULL),
           ESTOPPED);
    T_CMP(c.counts.pulled, >, FED_BEFORE);
    T_EQ(ended(&c.counts), t_stats(c.d).accepted);
    t_end(&c.d, NULL);
}
