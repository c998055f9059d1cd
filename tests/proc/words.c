/* SPDX-License-Identifier: MIT */
/* words.c - what the texts of outcomes say of limits and of returned values. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum verb {
    RETURN,
    FAIL_WITHOUT_TEXT,
    FAIL_WITH_TEXT,
    UNTIL_LATE,
    UNTIL_LATE_THEN_FAIL,
    SPIN,
    AT_GATE
};
#define TAG(verb, n) ((uint64_t)(verb) << 32 | (uint32_t)(n))

enum { GATE, STARTED };

static int process(gpud_task *t, void *state)
{
    const uint64_t tag = gpud_task_tag(t);
    const int value = (int)(int32_t)(uint32_t)tag;

    (void)state;
    switch ((enum verb)(tag >> 32)) {
    case RETURN:
        return value;
    case FAIL_WITHOUT_TEXT:
        return gpud_task_fail(t, value, NULL);
    case FAIL_WITH_TEXT:
        return gpud_task_fail(t, value, "no such file");
    case UNTIL_LATE:
    case UNTIL_LATE_THEN_FAIL:
        while (!gpud_task_expired(t))
            t_pass(T_MS(1));
        return tag >> 32 == UNTIL_LATE ? 7 : gpud_task_fail(t, 7, "half done");
    case SPIN:
        t_block_signals();
        for (;;)
            ;
    case AT_GATE:
        (void)t_word_add(STARTED);
        t_word_wait(GATE, 1);
        return 0;
    }
    return 0;
}

/* The members of a call that did not fail by themselves have its value. */
static int process_batch(gpud_task *const *t, size_t n, void *state)
{
    (void)state;
    for (size_t i = 0; i < n; i++)
        if (gpud_task_tag(t[i]) >> 32 == FAIL_WITH_TEXT)
            (void)gpud_task_fail(t[i], 5, "no such file");
    return 9;
}

/* The limit of the options and that of the task: the number, and which of the two to change. */
T_CASE(limits)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .task_limit = T_MS(40),
                                 .grace = T_S(60), .stall_limit = T_S(60));

    T_SUBMIT(d, .tag = TAG(UNTIL_LATE, 0));
    T_SUBMIT(d, .tag = TAG(UNTIL_LATE, 1), .limit = T_US(1500));
    T_SUBMIT(d, .tag = TAG(UNTIL_LATE, 2), .limit = 1);
    T_SUBMIT(d, .tag = TAG(UNTIL_LATE, 3), .limit = T_S(60), .stall_limit = T_MS(20));
    T_SUBMIT(d, .tag = TAG(UNTIL_LATE_THEN_FAIL, 0));
    t_collect(d, &log, 5);
    T_TEXT(T_OUTCOME(&log, TAG(UNTIL_LATE, 0), TIMEOUT)->text,
           "exceeded its time limit of 0.040 s (task_limit)");
    T_TEXT(T_OUTCOME(&log, TAG(UNTIL_LATE, 1), TIMEOUT)->text,
           "exceeded its time limit of 1.500 ms (limit of the task)");
    T_TEXT(T_OUTCOME(&log, TAG(UNTIL_LATE, 2), TIMEOUT)->text,
           "exceeded its time limit of 1 ns (limit of the task)");
    T_TEXT(T_OUTCOME(&log, TAG(UNTIL_LATE, 3), TIMEOUT)->text,
           "no progress for 0.020 s (stall_limit of the task)");
    T_TEXT(T_OUTCOME(&log, TAG(UNTIL_LATE_THEN_FAIL, 0), TIMEOUT)->text,
           "exceeded its time limit of 0.040 s (task_limit): half done");
    t_end(&d, &log);
}

/* A kill names the grace, too, and each attempt's words do. */
T_CASE(hard_limits)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .task_limit = T_MS(40),
                                 .grace = T_MS(30), .retry_causes = GPUD_RETRY_TIMEOUT);

    T_SUBMIT(d, .tag = TAG(SPIN, 0));
    T_SUBMIT(d, .tag = TAG(SPIN, 1), .limit = T_S(60), .stall_limit = T_MS(20), .max_attempts = 2);
    t_collect(d, &log, 2);
    T_TEXT(T_OUTCOME(&log, TAG(SPIN, 0), TIMEOUT)->text,
           "exceeded its time limit of 0.040 s (task_limit) and the grace of 0.030 s (grace), "
           "killed by signal 9 (SIGKILL)");
    T_TEXT(T_OUTCOME(&log, TAG(SPIN, 1), TIMEOUT)->text,
           "attempt 1: no progress for 0.020 s (stall_limit of the task) and the grace of 0.030 s "
           "(grace), killed by signal 9 (SIGKILL); attempt 2: no progress for 0.020 s (stall_limit "
           "of the task) and the grace of 0.030 s (grace), killed by signal 9 (SIGKILL)");
    t_end(&d, &log);
}

/* Delivered by poll and by wait, the text is the same. */
T_CASE(expiry)
{
    struct gpud_event e = GPUD_EVENT_INIT;
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .sent_ahead = 1, .expires = T_MS(20));
    uint64_t id;

    T_SUBMIT(d, .tag = TAG(AT_GATE, 0), .expires = GPUD_NEVER);
    t_word_wait(STARTED, 1);
    T_SUBMIT(d, .tag = 1);
    T_SUBMIT(d, .tag = 2, .expires = T_MS(30));
    id = t_submit(d, T_TASK(.tag = 3, .awaited = 1));
    T_OK(gpud_dispatcher_wait(d, id, &e, GPUD_NEVER, NULL));
    T_TEXT(e.text, "not started within 0.020 s (expires)");
    T_OK(gpud_event_release(&e));
    t_collect(d, &log, 2);
    T_TEXT(T_OUTCOME(&log, 1, TIMEOUT)->text, "not started within 0.020 s (expires)");
    T_TEXT(T_OUTCOME(&log, 2, TIMEOUT)->text, "not started within 0.030 s (expires of the task)");
    t_word_set(GATE, 1);
    t_collect(d, &log, 3);
    t_end(&d, &log);
}

/* So it is where the worker refuses the task, because no thread drives. */
T_CASE(expiry_seen_by_the_worker)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .sent_ahead = 3, .drive = GPUD_DRIVE_CALLER);

    while (t_stats(d).slots_ready < 1)
        (void)t_poll(d, &log, T_MS(1));
    T_SUBMIT(d, .tag = TAG(AT_GATE, 0));
    /* Longer than a loaded machine takes to send it. */
    T_SUBMIT(d, .tag = 1, .expires = T_MS(500));
    T_SUBMIT(d, .tag = TAG(AT_GATE, 1));
    (void)t_poll(d, &log, 0);
    T_EQ(t_stats(d).sent, 3);
    t_word_wait(STARTED, 1);
    t_pass(T_MS(510));
    t_word_set(GATE, 1);
    t_word_wait(STARTED, 2);
    t_collect(d, &log, 3);
    T_TEXT(T_OUTCOME(&log, 1, TIMEOUT)->text, "not started within 0.500 s (expires of the task)");
    t_end(&d, &log);
}

/* `text`, or, where it is NULL, name and sentence of this code of the library. */
static const char *text_of(const char *text, int32_t code, char *buffer, size_t size)
{
    (void)snprintf(buffer, size, "%s: %s", gpud_error_name(code), gpud_error_text(code));
    return text ? text : buffer;
}

/* An ERROR without a text of its own: the value, or the sentence of a code of the library. */
T_CASE(returned_values)
{
    static const struct {
        uint64_t tag;
        const char *text;
    } rows[] = {
        { TAG(RETURN, 9), "process returned 9" },
        { TAG(RETURN, -1), "process returned -1" },
        { TAG(RETURN, -1000), "process returned -1000" },
        { TAG(RETURN, INT32_MIN), "process returned -2147483648" },
        { TAG(RETURN, GPUD_ERESULTSPACE), NULL },
        { TAG(FAIL_WITHOUT_TEXT, 6), "failed with 6" },
        { TAG(FAIL_WITHOUT_TEXT, GPUD_ENOTSUP), NULL },
        { TAG(FAIL_WITH_TEXT, 8), "no such file" },
    };
    enum { ROWS = T_LENGTH(rows) };
    struct gpud_event e = GPUD_EVENT_INIT;
    char text[128];
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2");

    for (size_t i = 0; i < ROWS; i++)
        T_SUBMIT(d, .tag = rows[i].tag);
    t_collect(d, &log, ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        const int32_t code = (int32_t)(uint32_t)rows[i].tag;

        T_TEXT(T_OUTCOME(&log, rows[i].tag, ERROR)->text,
               text_of(rows[i].text, code, text, sizeof(text)));
        T_EQ(T_OUTCOME(&log, rows[i].tag, ERROR)->code, code);
    }
    for (size_t i = 0; i < ROWS; i++) {
        T_OK(gpud_dispatcher_wait(d, t_submit(d, T_TASK(.tag = rows[i].tag, .awaited = 1)), &e,
                                  GPUD_NEVER, NULL));
        T_TEXT(e.text, text_of(rows[i].text, (int32_t)(uint32_t)rows[i].tag, text, sizeof(text)));
        T_OK(gpud_event_release(&e));
    }
    t_end(&d, &log);
}

/* Kept from the next poll the text stays; a second attempt's value stands beside the first's. */
T_CASE(returned_values_kept_and_tried_again)
{
    struct gpud_event kept = GPUD_EVENT_INIT;
    struct t_log log = { 0 };
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .retry_causes = GPUD_RETRY_ERROR);

    T_SUBMIT(d, .tag = TAG(RETURN, 9));
    while (kept.kind != GPUD_EVENT_OUTCOME)
        T_CMP(gpud_dispatcher_poll(d, &kept, 1, GPUD_NEVER), >=, 0);
    T_OK(gpud_event_keep(d, &kept));
    T_SUBMIT(d, .tag = TAG(RETURN, 10), .max_attempts = 2);
    T_SUBMIT(d, .tag = TAG(FAIL_WITHOUT_TEXT, 11), .max_attempts = 2);
    t_collect(d, &log, 2);
    T_TEXT(T_OUTCOME(&log, TAG(RETURN, 10), ERROR)->text,
           "attempt 1: process returned 10; attempt 2: process returned 10");
    T_TEXT(T_OUTCOME(&log, TAG(FAIL_WITHOUT_TEXT, 11), ERROR)->text,
           "attempt 1: failed with 11; attempt 2: failed with 11");
    T_TEXT(kept.text, "process returned 9");
    T_OK(gpud_event_release(&kept));
    t_end(&d, &log);
}

/* process_batch: its value is that of each member that did not fail by itself. */
T_CASE(returned_values_of_a_batch)
{
    static const struct gpud_definition definition =
        GPUD_DEFINITION_BATCH("test", NULL, process_batch, NULL);
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    T_OK(gpud_init(&definition, 1, NULL));
    d = T_CREATE(.devices = "cpu:1", .max_batch = 4);
    T_SUBMIT(d, .tag = TAG(RETURN, 1));
    T_SUBMIT(d, .tag = TAG(FAIL_WITH_TEXT, 2));
    T_SUBMIT(d, .tag = TAG(RETURN, 3));
    t_collect(d, &log, 3);
    T_TEXT(T_OUTCOME(&log, TAG(RETURN, 1), ERROR)->text, "process returned 9");
    T_TEXT(T_OUTCOME(&log, TAG(FAIL_WITH_TEXT, 2), ERROR)->text, "no such file");
    T_TEXT(T_OUTCOME(&log, TAG(RETURN, 3), ERROR)->text, "process returned 9");
    t_end(&d, &log);
}

/* A setup that returned a value and said nothing: one of a host, and one of the library. */
static int value_of_setup;

static int setup(gpud_worker *w, void **ret_state)
{
    (void)w, (void)ret_state;
    return value_of_setup;
}

T_CASE(returned_values_of_setup)
{
    static const struct {
        int value;
        const char *text;
    } rows[] = { { 3, "setup returned 3" }, { GPUD_EDEVICE, NULL } };

    for (size_t i = 0; i < 2; i++) {
        struct t_log log = { 0 };
        const char *wanted;
        gpud_dispatcher *d;
        char text[128];

        value_of_setup = rows[i].value;
        wanted = text_of(rows[i].text, rows[i].value, text, sizeof(text));
        d = T_BEGIN(setup, process, .devices = "cpu:1", .failures_in_a_row = 1);
        T_SUBMIT(d, .tag = 1);
        t_collect(d, &log, 1);
        T_TEXT(t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 0)->text, wanted);
        T_EQ(t_log_at(&log, GPUD_EVENT_SETUP_FAILURE, 0)->code, rows[i].value);
        T_CHECK(strstr(T_OUTCOME(&log, 1, NO_WORKER)->text, wanted));
        t_end(&d, &log);
    }
}
