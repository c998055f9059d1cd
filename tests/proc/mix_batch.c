/* SPDX-License-Identifier: MIT */
/* mix_batch.c - a batch whose worker dies, beside a task that it has refused. */
#include "verbs.h"

#include <signal.h>

enum verb { WORK, WAIT_FOR_GATE, CRASH };

enum { GATE, STARTED, RAN };

static int run(gpud_task *t)
{
    switch ((enum verb)(gpud_task_tag(t) >> 32)) {
    case WORK:
        (void)t_word_add(RAN);
        return 0;
    case WAIT_FOR_GATE:
        (void)t_word_add(STARTED);
        t_word_wait(GATE, 1);
        return 0;
    case CRASH:
        (void)t_word_add(STARTED);
        (void)raise(SIGKILL);
        return 0;
    }
    return 1;
}

static int process(gpud_task *t, void *state)
{
    (void)state;
    return run(t);
}

static int process_batch(gpud_task *const *tasks, size_t n, void *state)
{
    (void)state;
    for (size_t i = 0; i < n; i++)
        if (gpud_task_tag(tasks[i]) >> 32 == WORK)
            (void)run(tasks[i]);
    for (size_t i = 0; i < n; i++)
        if (gpud_task_tag(tasks[i]) >> 32 != WORK)
            (void)run(tasks[i]);
    return 0;
}

/* Longer than a loaded machine takes from a submit to the poll that sends it. */
#define EXPIRES T_MS(300)

/* What its worker refused has not started: it is no member of the call, and not charged with its
 * death. */
static void refuse_beside(int before)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d = T_CREATE(.sent_ahead = 8, .max_batch = 4, .drive = GPUD_DRIVE_CALLER,
                                  .max_attempts = 2, .grace = T_MS(10));

    t_word_set(GATE, 0);
    t_word_set(STARTED, 0);
    t_word_set(RAN, 0);
    while (t_stats(d).slots_ready < 1)
        T_EQ(t_poll(d, &log, T_MS(1)), 0);
    T_SUBMIT(d, .tag = T_TAG(WAIT_FOR_GATE, 0));
    (void)t_poll(d, &log, 0);
    t_word_wait(STARTED, 1);
    if (before)
        T_SUBMIT(d, .tag = 1, .expires = EXPIRES);
    T_SUBMIT(d, .tag = T_TAG(CRASH, 2), .max_attempts = 1);
    if (!before)
        T_SUBMIT(d, .tag = 1, .expires = EXPIRES);
    (void)t_poll(d, &log, 0);
    T_EQ(t_stats(d).sent, 3);
    t_pass(EXPIRES + T_MS(5));
    t_word_set(GATE, 1);
    t_word_wait(STARTED, 2);
    t_collect(d, &log, 3);
    (void)T_OUTCOME(&log, T_TAG(CRASH, 2), CRASHED);
    e = T_OUTCOME(&log, 1, TIMEOUT);
    T_EQ(e->phase, GPUD_PHASE_QUEUED);
    T_EQ(e->attempt, 0);
    T_EQ(e->started_at, 0);
    T_EQ(t_word(RAN), 0);
    T_EQ(t_stats(d).hard_kills, 0);
    T_EQ(t_stats(d).protocol_errors, 0);
    t_destroy(&d, &log);
}

T_CASE(refused_beside_one_that_kills)
{
    struct gpud_definition definition = GPUD_DEFINITION_BATCH("test", NULL, process_batch, NULL);

    definition.process = process;
    T_OK(gpud_init(&definition, 1, NULL));
    refuse_beside(0);
    refuse_beside(1);
    T_OK(gpud_fini());
}
