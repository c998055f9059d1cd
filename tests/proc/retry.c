/* SPDX-License-Identifier: MIT */
/* retry.c - attempts that end badly and are tried again: which, when, how often, and what is told.
 * [C3] */
#include "verbs.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum verb {
    FAIL_TWICE, /* ERROR with a text and a result, then SUCCESS without one */
    FAIL_LARGE, /* the same with a large result each time */
    FAIL_ALWAYS,
    LATE_TWICE, /* past the soft limit, then in time */
    CRASH_FIRST,
    CRASH_ALWAYS,
    ONE_OF_EACH /* crash, error, soft timeout, then SUCCESS */
};

#define LARGE (256u << 10)

static void stay_late(gpud_task *t)
{
    while (!gpud_task_expired(t))
        t_pass(T_MS(1));
}

static int process(gpud_task *t, void *state)
{
    uint32_t attempt = gpud_task_attempt(t);
    void *room;

    (void)state;
    switch ((enum verb)(gpud_task_tag(t) >> 32)) {
    case FAIL_TWICE:
        if (attempt > 2)
            return 0;
        if (gpud_task_result_set(t, "half", 4))
            return 99;
        return gpud_task_fail(t, 7, "no luck");
    case FAIL_LARGE:
        if (gpud_task_result_alloc(t, LARGE, &room))
            return 99;
        memset(room, (int)attempt, LARGE);
        return attempt > 2 ? 0 : 8;
    case FAIL_ALWAYS:
        return 5;
    case LATE_TWICE:
        if (attempt < 3)
            stay_late(t);
        return 0;
    case CRASH_FIRST:
        if (attempt == 1)
            (void)raise(SIGKILL);
        return 0;
    case CRASH_ALWAYS:
        (void)raise(SIGKILL);
        return 0;
    case ONE_OF_EACH:
        if (attempt == 1)
            (void)raise(SIGKILL);
        if (attempt == 2)
            return gpud_task_fail(t, 4, "second");
        if (attempt == 3)
            stay_late(t);
        return 0;
    }
    return -1;
}

#define ALL_CAUSES (GPUD_RETRY_CRASH | GPUD_RETRY_ERROR | GPUD_RETRY_TIMEOUT | GPUD_RETRY_DEVICE)

/* C3: an ERROR with attempts left is no outcome; the last attempt's result and the words of all are
 * told. */
T_CASE(errors)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .max_attempts = 3,
                                 .retry_causes = GPUD_RETRY_ERROR);

    for (uint64_t i = 0; i < 50; i++)
        T_SUBMIT(d, .tag = T_TAG(FAIL_TWICE, i), .label = i % 2 ? "labelled" : NULL,
                 .data = "12345", .size = 5);
    T_SUBMIT(d, .tag = T_TAG(FAIL_ALWAYS, 0));
    T_SUBMIT(d, .tag = T_TAG(FAIL_TWICE, 50), .max_attempts = 2);
    T_SUBMIT(d, .tag = T_TAG(FAIL_TWICE, 51), .max_attempts = 1);
    t_collect(d, &log, 53);
    for (uint64_t i = 0; i < 50; i++) {
        e = T_OUTCOME(&log, T_TAG(FAIL_TWICE, i), SUCCESS);
        T_EQ(e->attempt, 3);
        T_EQ(e->result_size, 0);
        T_TEXT(e->text, "attempt 1: failed with 7: no luck; attempt 2: failed with 7: no luck");
        T_TEXT(e->label, i % 2 ? "labelled" : "");
    }
    e = T_OUTCOME(&log, T_TAG(FAIL_ALWAYS, 0), ERROR);
    T_EQ(e->attempt, 3);
    T_EQ(e->code, 5);
    T_TEXT(e->text, "attempt 1: process returned 5; attempt 2: process returned 5; "
                    "attempt 3: process returned 5");
    e = T_OUTCOME(&log, T_TAG(FAIL_TWICE, 50), ERROR);
    T_EQ(e->attempt, 2);
    T_EQ(e->result_size, 4);
    T_CHECK(!memcmp(e->result, "half", 4));
    e = T_OUTCOME(&log, T_TAG(FAIL_TWICE, 51), ERROR);
    T_EQ(e->attempt, 1);
    T_TEXT(e->text, "no luck");
    T_EQ(t_stats(d).retried, 50 * 2 + 2 + 1);
    T_EQ(t_stats(d).error, 3);
    t_end(&d, &log);
}

/* Large results of attempts that are tried again go back to their worker: more of them pass through
 * than the budget holds. */
T_CASE(results_of_failed_attempts_are_freed)
{
    enum { TASKS = 60 };
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .payload_budget = 16u << 20,
                                 .max_attempts = 3, .retry_causes = GPUD_RETRY_ERROR);

    for (uint64_t i = 0; i < TASKS; i++)
        T_SUBMIT(d, .tag = T_TAG(FAIL_LARGE, i));
    t_collect(d, &log, TASKS);
    for (uint64_t i = 0; i < TASKS; i++) {
        const struct gpud_event *e = T_OUTCOME(&log, T_TAG(FAIL_LARGE, i), SUCCESS);

        T_EQ(e->attempt, 3);
        T_EQ(e->result_size, LARGE);
        T_EQ(*(const unsigned char *)e->result, 3);
        T_EQ(((const unsigned char *)e->result)[LARGE - 1], 3);
    }
    T_EQ(t_poll(d, &log, 0), 0); /* gives back what was lent */
    T_EQ(t_stats(d).result_used, 0);
    t_end(&d, &log);
}

/* Only the causes that were chosen: the task's, else the option's, else crashes. */
T_CASE(chosen_causes)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:2", .max_attempts = 4, .grace = T_S(60));

    T_SUBMIT(d, .tag = T_TAG(FAIL_ALWAYS, 0));
    T_SUBMIT(d, .tag = T_TAG(LATE_TWICE, 0), .limit = T_MS(10));
    T_SUBMIT(d, .tag = T_TAG(CRASH_FIRST, 0));
    T_SUBMIT(d, .tag = T_TAG(CRASH_FIRST, 1),
             .retry_causes = GPUD_RETRY_ERROR | GPUD_RETRY_TIMEOUT);
    T_SUBMIT(d, .tag = T_TAG(FAIL_ALWAYS, 1), .retry_causes = GPUD_RETRY_ERROR);
    T_SUBMIT(d, .tag = T_TAG(ONE_OF_EACH, 0), .retry_causes = ALL_CAUSES, .limit = T_S(1));
    T_SUBMIT(d, .tag = T_TAG(ONE_OF_EACH, 1), .retry_causes = GPUD_RETRY_CRASH, .limit = T_S(30));
    t_collect(d, &log, 7);
    T_EQ(T_OUTCOME(&log, T_TAG(FAIL_ALWAYS, 0), ERROR)->attempt, 1);
    T_EQ(T_OUTCOME(&log, T_TAG(LATE_TWICE, 0), TIMEOUT)->attempt, 1);
    T_EQ(T_OUTCOME(&log, T_TAG(CRASH_FIRST, 0), SUCCESS)->attempt, 2);
    T_EQ(T_OUTCOME(&log, T_TAG(CRASH_FIRST, 1), CRASHED)->attempt, 1);
    T_EQ(T_OUTCOME(&log, T_TAG(FAIL_ALWAYS, 1), ERROR)->attempt, 4);
    T_EQ(T_OUTCOME(&log, T_TAG(ONE_OF_EACH, 0), SUCCESS)->attempt, 4);
    T_TEXT(T_OUTCOME(&log, T_TAG(ONE_OF_EACH, 0), SUCCESS)->text,
           "attempt 1: killed by signal 9 (SIGKILL); attempt 2: failed with 4: second; attempt 3: "
           "exceeded its time limit of 1.000 s (limit of the task)");
    T_TEXT(T_OUTCOME(&log, T_TAG(ONE_OF_EACH, 1), ERROR)->text,
           "attempt 1: killed by signal 9 (SIGKILL); attempt 2: failed with 4: second");
    t_end(&d, &log);
}

/* Whenever the driver sees the bad end, it sends the task again before it sleeps: nothing else
 * would wake it. */
T_CASE(no_retry_is_forgotten)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .drive = GPUD_DRIVE_CALLER,
                                 .max_attempts = 200, .retry_causes = GPUD_RETRY_ERROR);

    for (uint64_t i = 0; i < 20; i++) {
        T_SUBMIT(d, .tag = T_TAG(FAIL_ALWAYS, i));
        T_EQ(t_poll(d, &log, GPUD_NEVER), 1);
        T_EQ(T_OUTCOME(&log, T_TAG(FAIL_ALWAYS, i), ERROR)->attempt, 200);
    }
    t_end(&d, &log);
}

/* C3: one that keeps killing workers ends CRASHED with the exit statuses of all its attempts. [T5]
 */
T_LONG_CASE(words_of_all_attempts, 60)
{
    enum { ATTEMPTS = 60 };
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .max_attempts = ATTEMPTS);
    const char *at;

    e = T_RUN(d, &log, CRASHED, .tag = T_TAG(CRASH_ALWAYS, 0));
    T_EQ(e->attempt, ATTEMPTS);
    T_EQ(e->exit_status, SIGKILL);
    at = e->text;
    for (unsigned n = 1; n <= ATTEMPTS; n++) {
        char wanted[64];
        int length = snprintf(wanted, sizeof(wanted), "%sattempt %u: killed by signal 9 (SIGKILL)",
                              n > 1 ? "; " : "", n);

        T_CHECK(!strncmp(at, wanted, (size_t)length));
        at += length;
    }
    T_TEXT(at, "; out of memory? see the kernel log"); /* after the last attempt alone */
    t_end(&d, &log);
}
