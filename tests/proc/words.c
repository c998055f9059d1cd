/* SPDX-License-Identifier: MIT */
/* words.c - what the texts of outcomes say of limits. */
#include "fixture.h"

enum verb { WORK, UNTIL_LATE, UNTIL_LATE_THEN_FAIL, SPIN, AT_GATE };
#define TAG(verb, n) ((uint64_t)(verb) << 32 | (uint32_t)(n))

enum { GATE, STARTED };

static int process(gpud_task *t, void *state)
{
    const uint64_t tag = gpud_task_tag(t);

    (void)state;
    switch ((enum verb)(tag >> 32)) {
    case WORK:
        return 0;
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

/* The limit of the options and that of the task: the number, and which of the two to change. */
T_CASE(limits)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:2", .task_limit = T_MS(40), .grace = T_S(60), .stall_limit = T_S(60)));
    (void)t_submit(d, T_TASK(.tag = TAG(UNTIL_LATE, 0)));
    (void)t_submit(d, T_TASK(.tag = TAG(UNTIL_LATE, 1), .limit = T_US(1500)));
    (void)t_submit(d, T_TASK(.tag = TAG(UNTIL_LATE, 2), .limit = 1));
    (void)t_submit(d, T_TASK(.tag = TAG(UNTIL_LATE, 3), .limit = T_S(60), .stall_limit = T_MS(20)));
    (void)t_submit(d, T_TASK(.tag = TAG(UNTIL_LATE_THEN_FAIL, 0)));
    t_collect(d, &log, 5);
    T_TEXT(T_OUTCOME(&log, TAG(UNTIL_LATE, 0), TIMEOUT)->text, "exceeded its time limit of 0.040 s (task_limit)");
    T_TEXT(T_OUTCOME(&log, TAG(UNTIL_LATE, 1), TIMEOUT)->text, "exceeded its time limit of 1.500 ms (limit of the task)");
    T_TEXT(T_OUTCOME(&log, TAG(UNTIL_LATE, 2), TIMEOUT)->text, "exceeded its time limit of 1 ns (limit of the task)");
    T_TEXT(T_OUTCOME(&log, TAG(UNTIL_LATE, 3), TIMEOUT)->text, "no progress for 0.020 s (stall_limit of the task)");
    T_TEXT(T_OUTCOME(&log, TAG(UNTIL_LATE_THEN_FAIL, 0), TIMEOUT)->text, "exceeded its time limit of 0.040 s (task_limit): half done");
    t_end(&d, &log);
}

/* A kill names the grace, too, and each attempt's words do. */
T_CASE(hard_limits)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:2", .task_limit = T_MS(40), .grace = T_MS(30), .retry_causes = GPUD_RETRY_TIMEOUT));
    (void)t_submit(d, T_TASK(.tag = TAG(SPIN, 0)));
    (void)t_submit(d, T_TASK(.tag = TAG(SPIN, 1), .limit = T_S(60), .stall_limit = T_MS(20), .max_attempts = 2));
    t_collect(d, &log, 2);
    T_TEXT(T_OUTCOME(&log, TAG(SPIN, 0), TIMEOUT)->text,
           "exceeded its time limit of 0.040 s (task_limit) and the grace of 0.030 s (grace), killed by signal 9");
    T_TEXT(T_OUTCOME(&log, TAG(SPIN, 1), TIMEOUT)->text,
           "attempt 1: no progress for 0.020 s (stall_limit of the task) and the grace of 0.030 s (grace), killed by signal 9; "
           "attempt 2: no progress for 0.020 s (stall_limit of the task) and the grace of 0.030 s (grace), killed by signal 9");
    t_end(&d, &log);
}

/* Delivered by poll and by wait, the text is the same. */
T_CASE(expiry)
{
    struct gpud_event e = GPUD_EVENT_INIT;
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    uint64_t id;

    t_init(NULL, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .sent_ahead = 1, .expires = T_MS(20)));
    (void)t_submit(d, T_TASK(.tag = TAG(AT_GATE, 0), .expires = GPUD_NEVER));
    t_word_wait(STARTED, 1);
    (void)t_submit(d, T_TASK(.tag = 1));
    (void)t_submit(d, T_TASK(.tag = 2, .expires = T_MS(30)));
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
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    d = t_create(T_OPTIONS(.devices = "cpu:1", .sent_ahead = 3, .drive = GPUD_DRIVE_CALLER));
    while (t_stats(d).slots_ready < 1)
        (void)t_poll(d, &log, T_MS(1));
    (void)t_submit(d, T_TASK(.tag = TAG(AT_GATE, 0)));
    (void)t_submit(d, T_TASK(.tag = 1, .expires = T_MS(500))); /* longer than a loaded machine takes to send it */
    (void)t_submit(d, T_TASK(.tag = TAG(AT_GATE, 1)));
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
