/* SPDX-License-Identifier: MIT */
/* eta.c - throughput and the time that is left, as stats tell them. */
#include "verbs.h"

enum { SHORT = 1 }; /* tags */
#define AT_GATE T_TAG(T_WAIT_FOR_GATE, 0)

#define RUNS T_MS(40)

static int process(gpud_task *t, void *state)
{
    if (gpud_task_tag(t) == SHORT)
        t_pass(RUNS);
    return t_process(t, state);
}

static gpud_dispatcher *make(void)
{
    return T_BEGIN(NULL, process, .devices = "cpu:1", .sent_ahead = 1);
}

static void finish(gpud_dispatcher *d, struct t_log *log, uint64_t n)
{
    t_word_set(T_GATE, 1);
    t_collect(d, log, n);
    t_end(&d, log);
}

/* Nothing to do takes no time; how long takes what has not begun, nobody knows. */
T_CASE(before_the_first_has_ended)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = make();

    T_EQ(t_stats(d).eta_low, 0);
    T_EQ(t_stats(d).eta_high, 0);
    T_SUBMIT(d, .tag = AT_GATE);
    T_CHECK(t_stats(d).eta_low == GPUD_NEVER);
    t_word_wait(T_STARTED, 1);
    T_CHECK(t_stats(d).eta_high == GPUD_NEVER);
    T_CHECK(t_stats(d).throughput == 0);
    finish(d, &log, 1);
}

/* So many more of the same kind: at least their time, less what the running one has behind it. */
T_CASE(some_are_left)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = make();
    struct gpud_stats s;

    for (int n = 0; n < 2; n++)
        T_SUBMIT(d, .tag = SHORT);
    t_collect(d, &log, 2);
    for (int n = 0; n < 10; n++)
        T_SUBMIT(d, .tag = AT_GATE);
    s = t_stats(d);
    T_CMP(s.eta_low, >, 0);
    T_CMP(s.eta_low, <=, s.eta_high);
    T_CMP(s.eta_high, >=, 10 * RUNS);
    T_CHECK(s.throughput > 0 && s.throughput <= (double)T_S(1) / (double)RUNS);
    finish(d, &log, 12);
}

/* What never ran is no work done: neither the rate nor the time per task is better for it. */
T_CASE(cancelled_and_expired_ones_are_no_work_done)
{
    enum { MANY = 100, LEFT = 10 };
    struct t_log log = { 0 };
    gpud_dispatcher *d = make();
    struct gpud_stats s;

    T_SUBMIT(d, .tag = SHORT);
    t_collect(d, &log, 1);
    T_SUBMIT_STARTED(d, .tag = AT_GATE);
    for (int n = 1; n < LEFT; n++)
        T_SUBMIT(d, .tag = AT_GATE);
    for (int n = 0; n < MANY; n++) {
        if (n % 2)
            T_SUBMIT(d, .tag = AT_GATE, .expires = 1);
        else
            T_OK(gpud_dispatcher_cancel(d, t_submit(d, T_TASK(.tag = AT_GATE)), GPUD_CANCEL_HARD));
    }
    t_collect(d, &log, 1 + MANY);
    s = t_stats(d);
    T_EQ(s.cancelled, MANY / 2);
    T_EQ(s.timeout, MANY / 2);
    T_CMP(s.eta_high, >=, LEFT * RUNS);
    T_CHECK(s.throughput <= (double)T_S(1) / (double)RUNS);
    finish(d, &log, 1 + MANY + LEFT);
}

/* A time that no number of nanoseconds holds is as good as unknown. */
T_CASE(beyond_all_measure)
{
    enum { LEFT = 1000 };
    struct t_log log = { 0 };
    gpud_dispatcher *d = make();
    struct gpud_stats s;

    T_SUBMIT(d, .tag = SHORT);
    t_collect(d, &log, 1);
    for (int n = 0; n < LEFT; n++)
        T_SUBMIT(d, .tag = AT_GATE, .cost = UINT32_MAX);
    s = t_stats(d);
    T_CHECK(s.eta_high == GPUD_NEVER);
    T_CHECK(s.eta_low == GPUD_NEVER);
    finish(d, &log, 1 + LEFT);
}
