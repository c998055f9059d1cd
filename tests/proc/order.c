/* SPDX-License-Identifier: MIT */
/* order.c - which task starts when, and where. */
#include "fixture.h"

enum { GATE, STARTED, TURN };
#define PLAIN 0u
#define WAITS_FOR_GATE (1ull << 32)
#define MEETS_OTHERS (1ull << 33)

static int process(gpud_task *t, void *state)
{
    uint64_t tag = gpud_task_tag(t), turn;

    (void)state;
    turn = t_word_add(TURN);
    if (tag & WAITS_FOR_GATE) {
        (void)t_word_add(STARTED);
        t_word_wait(GATE, 1);
    }
    if (tag & MEETS_OTHERS) {
        (void)t_word_add(STARTED);
        t_word_wait(STARTED, (uint32_t)(tag & 0xff));
    }
    return gpud_task_result_set(t, &turn, sizeof(turn));
}

static uint64_t turn_of(const struct t_log *log, uint64_t tag)
{
    const struct gpud_event *e = T_OUTCOME(log, tag, SUCCESS);

    T_EQ(e->result_size, sizeof(uint64_t));
    return *(const uint64_t *)e->result;
}

/* C5: FIFO on one worker, whatever the window. */
T_CASE(fifo_on_one_worker)
{
    static const uint32_t windows[] = { 0, 1, 2, 7, 64 };

    t_init(NULL, process, NULL);
    for (size_t w = 0; w < T_LENGTH(windows); w++) {
        struct t_log log = { 0 };
        gpud_dispatcher *d = T_CREATE(.devices = "cpu:1", .sent_ahead = windows[w]);
        uint64_t last = 0;

        t_submit_tags(d, 0, 1000);
        t_collect(d, &log, 1000);
        for (uint64_t tag = 0; tag < 1000; tag++) {
            uint64_t turn = turn_of(&log, tag);

            T_CMP(turn, >, last);
            last = turn;
        }
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

/* C5: every idle worker gets one task before any gets a second: 8 tasks that wait for each other, 8
 * workers, a window of 4; none has to be taken back. Driven by the caller all go out at once. [T18]
 */
T_CASE(fair_start)
{
    t_init(NULL, process, NULL);
    T_EACH_DRIVE (drive) {
        struct t_log log = { 0 };
        unsigned seen = 0;
        gpud_dispatcher *d = T_CREATE(.devices = "cpu:8", .sent_ahead = 4, .drive = drive);

        t_word_set(STARTED, 0);
        while (drive == GPUD_DRIVE_CALLER && t_stats(d).slots_ready < 8)
            (void)t_poll(d, &log, T_MS(1));
        t_wait_ready(d, 8);
        for (uint64_t i = 0; i < 8; i++)
            T_SUBMIT(d, .tag = MEETS_OTHERS | i << 8 | 8);
        t_collect(d, &log, 8);
        for (uint64_t i = 0; i < 8; i++)
            seen |= 1U << T_OUTCOME(&log, MEETS_OTHERS | i << 8 | 8, SUCCESS)->slot;
        T_EQ(seen, 0xff);
        T_EQ(t_stats(d).recalled, 0);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

/* C5: a task that was sent behind a long one is taken back and run by a worker that is idle. [T18]
 */
T_CASE(recall_from_behind_a_long_task)
{
    const uint64_t LONG = WAITS_FOR_GATE, SHORT = 100;
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .sent_ahead = 2);
    uint32_t slot_of_long;

    t_wait_ready(d, 2);
    /* Both workers get a long task and, behind it, a short one. */
    T_SUBMIT(d, .tag = LONG | 1);
    T_SUBMIT(d, .tag = MEETS_OTHERS | 3); /* ends when STARTED is 3 */
    t_word_wait(STARTED, 2);
    for (uint64_t i = 0; i < 2; i++)
        T_SUBMIT(d, .tag = SHORT + i);
    t_wait_until("one waits behind each", t_none_queued, d);
    (void)t_word_add(STARTED);
    /* The other worker is free now and must take both short ones while the long one runs. */
    t_collect(d, &log, 3);
    T_EQ(t_word(GATE), 0);
    slot_of_long = 1 - T_OUTCOME(&log, MEETS_OTHERS | 3, SUCCESS)->slot;
    for (uint64_t i = 0; i < 2; i++) {
        e = T_OUTCOME(&log, SHORT + i, SUCCESS);
        T_CMP(e->slot, !=, slot_of_long);
        T_EQ(e->attempt, 1);
    }
    T_CMP(t_stats(d).recalled, >=, 1);
    t_word_set(GATE, 1);
    t_collect(d, &log, 4);
    T_EQ(T_OUTCOME(&log, LONG | 1, SUCCESS)->slot, slot_of_long);
    t_end(&d, &log);
}

/* A short task's result does not wait for the long one that was sent with it. */
T_CASE(result_before_the_next_task_ends)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .sent_ahead = 8);

    t_submit_tags(d, 0, 4);
    T_SUBMIT(d, .tag = WAITS_FOR_GATE);
    t_collect(d, &log, 4);
    T_EQ(t_word(GATE), 0);
    t_word_set(GATE, 1);
    t_collect(d, &log, 5);
    t_end(&d, &log);
}
