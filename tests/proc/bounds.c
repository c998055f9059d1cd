/* SPDX-License-Identifier: MIT */
/* bounds.c - queue, memory and output have limits, and reaching one is an answer, never a death. */
#include "verbs.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAITS, SAID }; /* words */
enum { BIG_RESULT = T_VERBS, FLOOD, ECHO };

static int process(gpud_task *t, void *state)
{
    static char line[1024];
    void *room = &room;

    switch (gpud_task_tag(t) >> 32) {
    case BIG_RESULT: {
        uint64_t size = gpud_task_tag(t) & 0xffffffffU;
        int code;

        (void)gpud_task_result_set(t, "small", 5);
        code = gpud_task_result_alloc(t, size << 10, &room);
        if (code)
            return code == GPUD_ERESULTSPACE && room == &room ? code : -1000;
        memset(room, 7, size << 10);
        return 0;
    }
    case FLOOD:
        memset(line, 'x', sizeof(line) - 1);
        line[sizeof(line) - 1] = '\n';
        for (uint64_t i = 0; i < (gpud_task_tag(t) & 0xffffffffU); i++)
            (void)!write(2, line, sizeof(line));
        return 0;
    case ECHO:
        return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
    default:
        return t_process(t, state);
    }
}

/* ---- queue ---- */

/* A full queue answers EFULL at once, or after the time asked for; a refused task took no id. */
T_CASE(full_queue)
{
    struct t_log log = { 0 };
    uint64_t id = 77, start;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .queue_size = 4);

    T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    t_submit_tags(d, 0, 3);
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.tag = 3), 0, &id, NULL), EFULL);
    start = t_now();
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.tag = 3), T_MS(30), &id, NULL), EFULL);
    T_CMP(t_now() - start, >=, T_MS(30));
    T_EQ(id, 77);
    T_EQ(t_stats(d).accepted, 4);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 4);
    T_OK(gpud_dispatcher_submit(d, T_TASK(.tag = 3), 0, &id, NULL));
    t_collect(d, &log, 5);
    (void)T_OUTCOME(&log, 3, SUCCESS);
    t_end(&d, &log);
}

struct producer {
    gpud_dispatcher *d;
    uint64_t tasks, size;
    void *bytes;
};

static void *produce(void *arg)
{
    struct producer *p = arg;

    for (uint64_t n = 0; n < p->tasks; n++) {
        if (p->size)
            memcpy(p->bytes, &n, sizeof(n));
        T_OK(gpud_dispatcher_submit(
            p->d, T_TASK(.tag = p->size ? T_TAG(ECHO, n) : n, .data = p->bytes, .size = p->size),
            GPUD_NEVER, NULL, NULL));
    }
    return NULL;
}

/* A submit that waits goes on as soon as outcomes are collected; several threads at once. */
T_CASE(submit_waits_for_room)
{
    enum { THREADS = 3, EACH = 2000 };
    struct producer p;
    pthread_t threads[THREADS];
    struct t_log log = { 0 };

    t_init(NULL, process, NULL);
    for (uint32_t drive = GPUD_DRIVE_THREAD; drive <= GPUD_DRIVE_CALLER; drive++) {
        p = (struct producer){ .d = t_create(
                                   T_OPTIONS(.devices = "cpu:2", .queue_size = 8, .drive = drive)),
                               .tasks = EACH };
        for (int i = 0; i < THREADS; i++)
            t_thread(&threads[i], produce, &p);
        t_collect(p.d, &log, THREADS * EACH);
        for (int i = 0; i < THREADS; i++)
            t_join(threads[i]);
        T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), THREADS * EACH);
        T_EQ(t_poll(p.d, &log, 0), 0);
        t_destroy(&p.d, &log);
    }
    T_OK(gpud_fini());
}

/* close wakes a submit that waits: ECLOSED. */
static void *submit_for_ever(void *arg)
{
    (void)t_word_add(WAITS);
    T_CODE(gpud_dispatcher_submit(arg, T_TASK(0), GPUD_NEVER, NULL, NULL), ECLOSED);
    return NULL;
}

T_CASE(close_wakes_a_waiting_submit)
{
    struct t_log log = { 0 };
    pthread_t thread;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .queue_size = 1);

    T_SUBMIT(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    t_thread(&thread, submit_for_ever, d);
    t_word_wait(WAITS, 1);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    t_join(thread);
    t_word_set(T_GATE, 1);
    t_collect_rest(d, &log);
    t_end(&d, &log);
}

/* ---- memory ---- */

/* Bytes of memory that this process holds and shares with nobody's files. */
static uint64_t resident(void)
{
    FILE *in = fopen("/proc/self/statm", "re");
    uint64_t size = 0, all = 0, shared = 0;

    T_CHECK(in);
    T_EQ(fscanf(in, "%" SCNu64 " %" SCNu64 " %" SCNu64, &size, &all, &shared), 3);
    (void)fclose(in);
    return all * (uint64_t)sysconf(_SC_PAGESIZE);
}

enum { ENDLESS = T_SANITIZED ? 50000 : 1000000 };

struct endless {
    uint64_t pulled, ended, at_20;
};

static int endless_source(struct gpud_task_desc *task, size_t n, void *user)
{
    struct endless *s = user;

    (void)n;
    if (s->pulled == ENDLESS)
        return 0;
    task->tag = s->pulled++;
    task->label = "one of very many";
    return 1;
}

static int endless_end(const struct gpud_event *e, void *user)
{
    struct endless *s = user;

    T_EQ(e->outcome, GPUD_OUTCOME_SUCCESS);
    if (++s->ended == ENDLESS / 5)
        s->at_20 = resident();
    return 0;
}

/* C18: a source without end holds the host's memory constant. [T18] */
T_LONG_CASE(endless_source, 90)
{
    struct endless s = { 0 };
    uint64_t at_end;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:4");

    T_OK(gpud_dispatcher_run(d, endless_source, T_CALLBACKS(.on_success = endless_end), &s, NULL));
    at_end = resident();
    T_EQ(s.ended, ENDLESS);
    printf("resident at 20%% %" PRIu64 " KiB, at the end %" PRIu64 " KiB\n", s.at_20 >> 10,
           at_end >> 10);
    if (!T_SANITIZED)
        T_CMP(at_end, <, s.at_20 + (2u << 20));
    t_end(&d, NULL);
}

/* C18: 1 GiB of payloads through a budget of 64 MiB: never a death, only waiting. [T16] */
T_LONG_CASE(payload_budget, 90)
{
    enum { TASKS = T_SANITIZED ? 128 : 1024, SIZE = 1 << 20, BUDGET = 64 << 20 };
    struct producer p = { .tasks = TASKS, .size = SIZE, .bytes = calloc(1, SIZE) };
    struct t_log log = { 0 };
    uint64_t got = 0, until = t_now() + 4 * T_PATIENCE, top = 0;
    pthread_t thread;

    T_CHECK(p.bytes);
    p.d = T_BEGIN(NULL, process, .devices = "cpu:2", .payload_budget = BUDGET);
    T_EQ(t_stats(p.d).payload_budget, BUDGET);
    t_thread(&thread, produce, &p);
    while (got < TASKS) {
        struct gpud_event e[8] = { { .struct_size = sizeof(e[0]) } };
        int n = gpud_dispatcher_poll(p.d, e, 8, T_MS(200));
        struct gpud_stats stats = t_stats(p.d);

        T_CMP(n, >=, 0);
        T_CMP(t_now(), <, until);
        for (int i = 0; i < n; i++) {
            if (e[i].kind != GPUD_EVENT_OUTCOME)
                continue;
            if (e[i].outcome != GPUD_OUTCOME_SUCCESS)
                t_print_event(&e[i]);
            T_EQ(e[i].outcome, GPUD_OUTCOME_SUCCESS);
            T_EQ(e[i].result_size, SIZE);
            T_EQ(*(const uint64_t *)e[i].result, e[i].tag & 0xffffffffU);
            got++;
        }
        top = stats.payload_used + stats.result_used > top ? stats.payload_used + stats.result_used
                                                           : top;
        T_CMP(stats.payload_used + stats.result_used, <=, BUDGET);
    }
    printf("at most %" PRIu64 " KiB were in use\n", top >> 10);
    t_join(thread);
    free(p.bytes);
    t_end(&p.d, &log);
}

/* What can never fit is told apart from what does not fit now. */
T_CASE(budget_answers)
{
    enum { BUDGET = 16 << 20 };
    static unsigned char bytes[1 << 20];
    unsigned taken = 0;
    int code;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .payload_budget = BUDGET);
    struct t_log log = { 0 };

    T_CODE(gpud_dispatcher_submit(d, T_TASK(.data = bytes, .size = (uint64_t)BUDGET * 2), 0, NULL,
                                  NULL),
           ETOOBIG);
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.data = bytes, .size = (uint64_t)BUDGET * 2),
                                  GPUD_NEVER, NULL, NULL),
           ETOOBIG);
    T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    while (!(code = gpud_dispatcher_submit(
                 d, T_TASK(.data = bytes, .size = sizeof(bytes), .tag = taken), 0, NULL, NULL))) {
        taken++;
        T_CMP(taken, <=, BUDGET >> 20);
    }
    T_EQ(code, GPUD_EFULL);
    T_CMP(taken, >=, 2);
    /* A task without data needs no room. */
    T_SUBMIT(d, .tag = taken);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, taken + 2);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), taken + 2);
    T_EQ(t_stats(d).payload_used, 0);
    t_end(&d, &log);
}

/* C18: a result that does not fit fails its task with RESULT_SPACE; the earlier result stays; the
 * worker lives on. [G3] */
T_CASE(result_space)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .payload_budget = 16u << 20);

    for (uint64_t n = 0; n < 10; n++) {
        T_SUBMIT(d, .tag = T_TAG(BIG_RESULT, 1000000 + n));
        T_SUBMIT(d, .tag = T_TAG(BIG_RESULT, 100 + n));
        t_collect(d, &log, 2 * n + 2);
        e = T_OUTCOME(&log, T_TAG(BIG_RESULT, 1000000 + n), ERROR);
        T_EQ(e->code, GPUD_ERESULTSPACE);
        T_EQ(e->result_size, 5);
        T_CHECK(!memcmp(e->result, "small", 5));
        T_EQ(T_OUTCOME(&log, T_TAG(BIG_RESULT, 100 + n), SUCCESS)->result_size, (100 + n) << 10);
    }
    T_EQ(t_stats(d).deaths, 0);
    t_end(&d, &log);
}

/* C18: workers that write without end to stderr stop neither themselves nor memory. */
T_CASE(flood_of_output)
{
    enum { TASKS = 40, LINES = 2000 };
    struct t_log log = { 0 };
    uint64_t before, after;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2");

    T_SUBMIT(d, .tag = T_TAG(FLOOD, LINES));
    t_collect(d, &log, 1);
    before = resident();
    for (uint64_t n = 0; n < TASKS; n++)
        T_SUBMIT(d, .tag = T_TAG(FLOOD, LINES));
    t_collect(d, &log, TASKS + 1);
    after = resident();
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), TASKS + 1);
    printf("resident %" PRIu64 " KiB before, %" PRIu64 " KiB after %d MiB of output\n",
           before >> 10, after >> 10, TASKS * LINES >> 10);
    if (!T_SANITIZED)
        T_CMP(after, <, before + (2u << 20));
    t_end(&d, &log);
}

/* A task's worker that floods progress and log: events are dropped with a counter, outcomes never.
 */
static int chatter(gpud_task *t, void *state)
{
    char text[64];

    (void)state;
    for (int i = 0; i < 20000; i++) {
        (void)snprintf(text, sizeof(text), "step %d", i);
        if (gpud_task_progress(t, i / 20000.0, text))
            return -1;
        gpud_worker_log(gpud_task_worker(t), GPUD_LEVEL_WARNING, text);
    }
    return 0;
}

static int talker(gpud_task *t, void *state)
{
    (void)state;
    (void)t_word_add(T_STARTED);
    t_word_wait(T_GATE, 1);
    for (int i = 0; i < 100; i++)
        gpud_worker_log(gpud_task_worker(t), GPUD_LEVEL_WARNING, "a line");
    (void)t_word_add(SAID);
    return 0;
}

/* [C18] While the host reads nothing, 16 lines wait; the others are dropped and counted. */
T_CASE(log_lines_beyond_sixteen)
{
    struct gpud_event e = GPUD_EVENT_INIT;
    uint64_t lines = 0;
    gpud_dispatcher *d = T_BEGIN(NULL, talker, .drive = GPUD_DRIVE_CALLER);
    int ended = 0;

    T_SUBMIT(d, .tag = 1);
    while (!t_word(T_STARTED))
        (void)gpud_dispatcher_poll(d, &e, 1, GPUD_S(1) / 1000);
    t_word_set(T_GATE, 1);
    t_word_wait(SAID, 1); /* nobody drives meanwhile */
    while (!ended || lines < 16) {
        T_EQ(gpud_dispatcher_poll(d, &e, 1, GPUD_NEVER), 1);
        lines += e.kind == GPUD_EVENT_LOG;
        ended |= e.kind == GPUD_EVENT_OUTCOME;
    }
    T_EQ(lines, 16);
    T_EQ(t_stats(d).events_dropped, 84);
    t_end(&d, NULL);
}

static int all_have_ended(void *user)
{
    return t_stats(user).success == 20;
}

T_CASE(flood_of_progress)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, chatter, .devices = "cpu:2");

    t_submit_tags(d, 0, 20);
    /* Nobody polls meanwhile: the driver alone must neither block nor keep everything. */
    t_wait_until("all have ended", all_have_ended, d);
    t_collect(d, &log, 20);
    t_check_exactly_once(&log, 20);
    T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 20);
    T_CMP(log.count, <, 20000);
    t_end(&d, &log);
}
