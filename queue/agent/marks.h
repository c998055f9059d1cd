/* SPDX-License-Identifier: MIT */
/* marks.h - durable facts of the store that the agent follows: pauses and drains. */
#ifndef GPQ_AGENT_MARKS_H
#define GPQ_AGENT_MARKS_H

#include "queue/agent/agent.h"

/*
 * Reads the marks, and makes the dispatcher follow them:
 *   pause ""       nothing starts; the same with "command", the class of all tasks
 *   drain DEVICE   nothing starts on the device, and its workers leave
 *   evict DEVICE   tasks that run there are killed, and return to their places uncharged
 */
void gpq_marks_apply(struct gpq_agent *a);
/* Whether a device of this grant, as the store keeps it, was drained at once by this time: 1 or 0,
 * or a GPQ_E code. */
int gpq_marks_evicted(struct gpq_agent *a, const char *devices, uint64_t by, struct gpq_error *e);
/* Reads whether the queue is paused, within a transaction: before claims. */
void gpq_marks_read_pause(struct gpq_agent *a);

#endif
