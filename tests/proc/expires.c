/* SPDX-License-Identifier: MIT */
/* expires.c - tasks that have not started in time: TIMEOUT, phase QUEUED, wherever they wait. [C6]
 */
#include "verbs.h"

#include <stdio.h>
#include <string.h>


enum { WORKED };

static int process(gpud_task *t, void *state)
{
    if (gpud_task_tag(t) >> 32 == T_WORK)
        (void)t_word_add(WORKED);
    return t_process(t, state);
}

static void check_expired(const struct gpud_event *e, uint64_t expires)
{
    T_EQ(e->phase, GPUD_PHASE_QUEUED);
    T_EQ(e->code, GPUD_ETIMEOUT);
    T_EQ(e->attempt, 0);
    T_EQ(e->started_at, 0);
    T_EQ(e->result_size, 0);
    T_CMP(e->ended_at, >=, e->queued_at + expires);
    printf("expired %.3f ms late\n", (double)(e->ended_at - e->queued_at - expires) / 1e6);
    T_CMP(e->ended_at, <, e->queued_at + expires + T_S(2));
}

/* In the queue, the option's and the task's own; NEVER of the task goes before the option. */
T_CASE(queued)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .sent_ahead = 1, .expires = T_MS(60));

    T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0), .expires = GPUD_NEVER);
    for (uint64_t i = 0; i < 40; i++)
        T_SUBMIT(d, .tag = i,
                 .expires = i % 4 == 3   ? GPUD_NEVER
                            : i % 4 == 2 ? T_MS(30)
                                         : 0,
                 .label = i % 2 ? "l" : NULL);
    t_collect(d, &log, 30);
    T_EQ(t_stats(d).queued, 10);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 41);
    for (uint64_t i = 0; i < 40; i++)
        if (i % 4 == 3)
            T_EQ(T_OUTCOME(&log, i, SUCCESS)->attempt, 1);
        else
            check_expired(T_OUTCOME(&log, i, TIMEOUT), i % 4 == 2 ? T_MS(30) : T_MS(60));
    T_EQ(t_word(WORKED), 10);
    T_EQ(t_stats(d).timeout, 30);
    t_end(&d, &log);
}

/* Nobody drives when the time passes: the worker itself looks before it starts. */
T_CASE(worker_refuses)
{
    /* longer than a loaded machine takes from a submit to the poll that sends it */
    const uint64_t expires = T_MS(300);
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    for (uint32_t round = 1; round <= 6; round++) {
        log = (struct t_log){ 0 };
        t_word_set(T_GATE, 0);
        d = T_CREATE(.sent_ahead = 8, .drive = GPUD_DRIVE_CALLER);
        while (t_stats(d).slots_ready < 1)
            T_EQ(t_poll(d, &log, T_MS(1)), 0);
        T_SUBMIT(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0), .expires = T_S(60));
        for (uint64_t i = 0; i < 6; i++)
            T_SUBMIT(d, .tag = i, .expires = i % 2 ? T_S(60) : expires, .data = "x", .size = 1);
        (void)t_poll(d, &log, 0);
        T_EQ(t_stats(d).sent, 7);
        t_word_wait(T_STARTED, round);
        t_pass(expires + T_MS(5));
        t_word_set(T_GATE, 1);
        t_word_wait(WORKED, 3 * round); /* all the while nobody is inside */
        t_collect(d, &log, 7);
        for (uint64_t i = 0; i < 6; i++) {
            e = i % 2 ? T_OUTCOME(&log, i, SUCCESS) : T_OUTCOME(&log, i, TIMEOUT);
            if (i % 2 == 0)
                check_expired(e, expires);
        }
        T_EQ(t_word(WORKED), 3 * round);
        T_EQ(t_stats(d).deaths, 0);
        T_EQ(t_stats(d).protocol_errors, 0);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

static int one_is_late(void *user)
{
    return t_stats(user).timeout == 1;
}

/* Whoever sleeps until a later time, or without one, is woken for a nearer one. */
T_CASE(wakes_who_sleeps)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .sent_ahead = 1);

    T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 0));
    T_SUBMIT(d, .tag = 0);
    T_SUBMIT(d, .tag = 1, .expires = T_S(3600));
    t_pass(T_MS(50)); /* by now the library's thread sleeps */
    T_SUBMIT(d, .tag = 2, .expires = T_MS(50));
    t_wait_until("it has expired", one_is_late, d); /* nobody polls */
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 4);
    check_expired(T_OUTCOME(&log, 2, TIMEOUT), T_MS(50));
    t_end(&d, &log);
}

static int is_known(const char *text)
{
    return !strcmp(text, "not started within 0.050 ms (expires of the task)");
}

/* Also where the host's time was up as the worker claimed the task: the text has the number. */
T_CASE(number_in_the_text)
{
    struct t_log log = { 0 };
    size_t expired = 0, told = 0;
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:4", .drive = GPUD_DRIVE_CALLER, .sent_ahead = 64);

    for (uint64_t n = 0; told < 300; n += 100) {
        for (uint64_t i = 0; i < 100; i++)
            T_SUBMIT(d, .tag = n + i, .expires = GPUD_US(50));
        t_collect(d, &log, n + 100);
        for (; told < log.count; told++)
            if (log.list[told].outcome == GPUD_OUTCOME_TIMEOUT) {
                expired++;
                if (!is_known(log.list[told].text))
                    T_FAIL("the text is \"%s\"", log.list[told].text);
            }
    }
    printf("%zu expired\n", expired);
    t_end(&d, &log);
}
