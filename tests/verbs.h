/* SPDX-License-Identifier: MIT */
/*
 * verbs.h - what the tasks of many test programs do, by the upper half of their tags.
 *
 *     t_init(NULL, t_process, NULL);
 *     T_SUBMIT_STARTED(d, .tag = T_TAG(T_WAIT_FOR_GATE, 7));
 *     t_word_set(T_GATE, 1);
 */
#ifndef T_VERBS_H
#define T_VERBS_H

#include "fixture.h"

#define T_TAG(verb, n) ((uint64_t)(verb) << 32 | (uint64_t)(n))
enum {
    T_WORK,            /* nothing */
    T_WAIT_FOR_GATE,   /* until word T_GATE is 1 */
    T_UNTIL_CANCELLED, /* then it fails with code 5 */
    T_BLOCKED,         /* blocks all signals and never ends */
    T_KILL,            /* SIGKILL */
    T_ABORT,
    T_VERBS /* a program counts its own from here on */
};
/* Words. Tasks that take their time add one to T_STARTED first. */
enum { T_STARTED = T_WORDS - 2, T_GATE };

/* A gpud_process_fn: another verb does nothing. */
int t_process(gpud_task *t, void *state);
/* Submits a task that takes its time, and waits until it has started. */
void t_submit_started(gpud_dispatcher *d, const struct gpud_task_desc *task);
#define T_SUBMIT_STARTED(d, ...) t_submit_started((d), T_TASK(__VA_ARGS__))

#endif
