/* SPDX-License-Identifier: MIT */
/* close.c - how a dispatcher ends: close and destroy in every state. */
#include "verbs.h"

#include <pthread.h>
#include <string.h>

enum { ENDED, IN_SETUP };
enum { TAKES_A_WHILE = T_VERBS, NOTES_ITS_END, LARGE_RESULT };

static int hang_in_setup(gpud_worker *w, void **ret_state)
{
    (void)w, (void)ret_state;
    t_block_signals();
    (void)t_word_add(IN_SETUP);
    t_rest();
}

static int process(gpud_task *t, void *state)
{
    switch (gpud_task_tag(t) >> 32) {
    case TAKES_A_WHILE:
        (void)t_word_add(T_STARTED);
        t_pass(T_MS(500));
        (void)t_word_add(ENDED);
        return 0;
    case LARGE_RESULT: {
        void *data;
        int r = gpud_task_result_alloc(t, 100000, &data);
        if (r == 0)
            (void)t_word_add(ENDED);
        return r;
    }
    case NOTES_ITS_END:
        (void)t_word_add(ENDED);
        return 0;
    default:
        return t_process(t, state);
    }
}

/* ---- close ---- */

/* C1: close ALL: everything accepted ends by itself; then END, for ever; intake is closed. */
T_CASE(close_all)
{
    t_init(NULL, process, NULL);
    for (uint32_t drive = GPUD_DRIVE_THREAD; drive <= GPUD_DRIVE_CALLER; drive++) {
        struct t_log log = { 0 };
        gpud_dispatcher *d = T_CREATE(.devices = "cpu:2", .drive = drive);
        uint64_t id = 77;

        t_submit_tags(d, 0, 50);
        T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
        T_CODE(gpud_dispatcher_submit(d, T_TASK(0), 0, &id, NULL), ECLOSED);
        T_CODE(gpud_dispatcher_submit(d, T_TASK(0), GPUD_NEVER, &id, NULL), ECLOSED);
        T_EQ(id, 77);
        t_collect_rest(d, &log);
        t_check_exactly_once(&log, 50);
        T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 50);
        T_EQ(t_poll(d, &log, 0), GPUD_EEND);
        T_EQ(t_poll(d, &log, GPUD_NEVER), GPUD_EEND);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

static gpud_dispatcher *with_one_running(uint64_t verb, const struct gpud_options *options)
{
    gpud_dispatcher *d = t_create(options);

    t_word_set(T_GATE, 0);
    T_SUBMIT_STARTED(d, .tag = T_TAG(verb, 0));
    t_submit_tags(d, 0, 10);
    return d;
}

/* The outcome of what a close limit kills names it; a WARNING says how many tasks that were; no
 * other attempt is made. */
T_CASE(close_limit_is_named)
{
    const struct gpud_event *e;
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    size_t lines = 0;

    t_init(NULL, process, NULL);
    d = with_one_running(T_BLOCKED,
                         T_OPTIONS(.devices = "cpu:1", .max_attempts = 3,
                                   .retry_causes = GPUD_RETRY_CRASH | GPUD_RETRY_TIMEOUT));
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, T_MS(150)));
    t_collect_rest(d, &log);
    e = T_OUTCOME(&log, T_TAG(T_BLOCKED, 0), CANCELLED);
    T_EQ(e->phase, GPUD_PHASE_HARD);
    T_EQ(e->code, GPUD_ETIMEOUT);
    T_EQ(e->attempt, 1);
    T_TEXT(e->text, "killed at the close limit of 0.150 s (gpud_dispatcher_close)");
    for (size_t n = 0; (e = t_log_at(&log, GPUD_EVENT_LOG, n)) != NULL; n++)
        if (strstr(e->text, "close limit")) {
            T_EQ(e->level, GPUD_LEVEL_WARNING);
            T_TEXT(e->text, "the close limit of 0.150 s (gpud_dispatcher_close) has expired; tasks "
                            "to be killed: 1, cancelled before their start: 10");
            lines++;
        }
    T_EQ(lines, 1);
    t_end(&d, &log);
}

/* close with limit 0 has no limit while tasks may end by themselves, and close_limit for NOW. */
T_CASE(close_without_a_limit)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    for (uint32_t how = GPUD_FINISH_ALL; how <= GPUD_FINISH_RUNNING; how++) {
        d = with_one_running(T_WAIT_FOR_GATE,
                             T_OPTIONS(.devices = "cpu:1", .close_limit = T_MS(1)));
        T_OK(gpud_dispatcher_close(d, how, 0));
        t_pass(T_MS(50));
        t_word_set(T_GATE, 1);
        t_collect_rest(d, &log);
        (void)T_OUTCOME(&log, T_TAG(T_WAIT_FOR_GATE, 0), SUCCESS);
        t_destroy(&d, &log);
    }
    d = with_one_running(
        T_BLOCKED, T_OPTIONS(.devices = "cpu:1", .close_limit = T_MS(150), .grace = T_S(3600)));
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_NOW, 0));
    t_collect_rest(d, &log);
    T_TEXT(T_OUTCOME(&log, T_TAG(T_BLOCKED, 0), CANCELLED)->text,
           "killed at the close limit of 0.150 s (close_limit)");
    t_end(&d, &log);
}

/* ---- destroy ---- */

static void timed_destroy(gpud_dispatcher **d, uint64_t limit, uint64_t uncollected)
{
    uint64_t start = t_now(), seen = 999;

    T_OK(gpud_dispatcher_destroy(d, &seen));
    T_CHECK(!*d);
    T_EQ(seen, uncollected);
    T_CMP(t_now() - start, <, limit + T_MS(T_SANITIZED ? 2000 : 700));
    T_OK(gpud_dispatcher_destroy(d, &seen));
    T_OK(gpud_dispatcher_destroy(NULL, NULL));
}

/* C10: destroy returns within its limit while setup hangs. [T20] */
T_CASE(destroy_in_setup)
{
    gpud_dispatcher *d =
        T_BEGIN(hang_in_setup, process, .devices = "cpu:2", .close_limit = T_MS(200));

    t_submit_tags(d, 0, 5);
    t_word_wait(IN_SETUP, 2);
    timed_destroy(&d, T_MS(200), 5);
    T_OK(gpud_fini());
}

/* C10: ... while process hangs with all signals blocked, long before the grace. [T20] */
T_CASE(destroy_in_process)
{
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:2", .close_limit = T_MS(200), .grace = T_S(3600));

    for (uint64_t n = 0; n < 2; n++)
        T_SUBMIT(d, .tag = T_TAG(T_BLOCKED, n));
    t_word_wait(T_STARTED, 2);
    timed_destroy(&d, T_MS(200), 2);
    T_OK(gpud_fini());
}

/* ... right after create, idle, and in both drives. [T20] */
T_CASE(destroy_at_once)
{
    t_init(NULL, process, NULL);
    for (int round = 0; round < 20; round++) {
        gpud_dispatcher *d = T_CREATE(.devices = "cpu:2", .drive = (uint32_t)round % 2);

        if (round % 3 == 1 && round % 2 == 0)
            t_wait_ready(d, 2);
        timed_destroy(&d, T_MS(500), 0);
    }
    T_OK(gpud_fini());
}

/* destroy finishes as the last close or stop asked: what was accepted ends by itself, here a task
 * of 500 ms and one that waits behind it. */
T_CASE(destroy_finishes_what_close_left)
{
    const uint64_t limits[] = { 0, GPUD_NEVER };

    t_init(NULL, process, NULL);
    for (size_t i = 0; i < 4; i++) {
        gpud_dispatcher *d = T_CREATE(.devices = "cpu:1", .sent_ahead = 1);
        uint64_t uncollected = 0;

        t_word_set(ENDED, 0);
        T_SUBMIT_STARTED(d, .tag = T_TAG(TAKES_A_WHILE, 0));
        T_SUBMIT(d, .tag = T_TAG(NOTES_ITS_END, 1));
        if (i < 2)
            T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, limits[i]));
        else if (i == 2)
            T_OK(gpud_dispatcher_close(d, GPUD_FINISH_RUNNING, 0));
        else
            T_OK(gpud_dispatcher_stop(d, GPUD_FINISH_ALL));
        T_OK(gpud_dispatcher_destroy(&d, &uncollected));
        T_EQ(uncollected, 2);
        T_EQ(t_word(ENDED), i == 2 ? 1 : 2);
    }
    T_OK(gpud_fini());
}

/* ... also where their results find no room beside those that nobody has collected. */
T_CASE(destroy_needs_no_room_for_results)
{
    enum { TASKS = 200 };
    uint64_t uncollected = 0;
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    for (int round = 0; round < 2; round++) {
        t_word_set(ENDED, 0);
        d = t_create(
            T_OPTIONS(.devices = "cpu:1", .payload_budget = 16u << 20, .close_limit = GPUD_NEVER));
        for (uint64_t n = 0; n < TASKS; n++)
            T_SUBMIT(d, .tag = T_TAG(LARGE_RESULT, n), .awaited = (uint32_t)round);
        T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
        T_OK(gpud_dispatcher_destroy(&d, &uncollected));
        T_EQ(uncollected, TASKS);
        T_EQ(t_word(ENDED), TASKS);
    }
    T_OK(gpud_fini());
}

/* ... and with a task that never returns destroy ends after close_limit. */
T_CASE(destroy_kills_what_close_left)
{
    const uint64_t limits[] = { 0, GPUD_NEVER, T_S(3600) };
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        d = with_one_running(
            T_BLOCKED, T_OPTIONS(.devices = "cpu:1", .close_limit = T_MS(200), .grace = T_S(3600)));
        T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, limits[i]));
        timed_destroy(&d, T_MS(200), 11);
    }
    d = with_one_running(T_BLOCKED, T_OPTIONS(.devices = "cpu:1", .close_limit = T_S(3600)));
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, T_MS(200))); /* the earlier one holds */
    timed_destroy(&d, T_MS(200), 11);
    T_OK(gpud_fini());
}

/* C1 C19: destroy counts what nobody collected, the cancelled ones included. */
T_CASE(destroy_counts_the_uncollected)
{
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    d = with_one_running(T_UNTIL_CANCELLED, T_OPTIONS(.devices = "cpu:1"));
    timed_destroy(&d, T_S(2), 11);

    d = T_CREATE(.devices = "cpu:1", .drive = GPUD_DRIVE_CALLER);
    t_submit_tags(d, 0, 7);
    timed_destroy(&d, T_S(2), 7);
    T_OK(gpud_fini());
}

static void *poll_for_ever(void *arg)
{
    struct gpud_event event = GPUD_EVENT_INIT;
    int code;

    while ((code = gpud_dispatcher_poll(arg, &event, 1, GPUD_NEVER)) != GPUD_EEND)
        T_CHECK(code >= 0 || code == GPUD_EBUSY); /* the case polls too, to find out */
    return NULL;
}

static int no_task(struct gpud_task_desc *task, size_t n, void *user)
{
    (void)n;
    (void)task, (void)user;
    return 0;
}

static int poll_is_busy(void *user)
{
    struct gpud_event event = GPUD_EVENT_INIT;
    int code = gpud_dispatcher_poll(user, &event, 1, 0);

    T_CHECK(code == 0 || code == GPUD_EBUSY);
    return code == GPUD_EBUSY;
}

/* One thread inside poll: another's poll, run and destroy answer EBUSY and change nothing; close
 * wakes it. [T20] */
T_CASE(busy)
{
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");
    uint64_t uncollected = 99;
    pthread_t thread;

    t_thread(&thread, poll_for_ever, d);
    t_wait_until("poll is busy", poll_is_busy, d);
    T_CODE(gpud_dispatcher_run(d, no_task, T_CALLBACKS(0), NULL, NULL), EBUSY);
    T_CODE(gpud_dispatcher_destroy(&d, &uncollected), EBUSY);
    T_CHECK(d);
    T_EQ(uncollected, 99);
    T_SUBMIT(d, .tag = 1);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    t_join(thread);
    t_end(&d, NULL);
}
