/* SPDX-License-Identifier: MIT */
/*
 * spans.h - writes down where the time of devices and tasks goes: the table `span` of the store.
 *
 *   kind      subject          reason, and the state
 *   life      ""               opened    an agent runs
 *                              adopted   it took over commands of an agent before (no length)
 *                              clock     its clock was set (no length)
 *   device    UUID, or name    the device is out of use: drained, quarantined, failed, backoff,
 *                              lost, foreign
 *   tenancy   UUID, or name    boot      a worker of a class starts
 *                              unload    it leaves
 *                              kept      the device stays free for a task of several devices
 *   left      the batch's id   ""        the time left, as estimated then (no length); the text is
 *                              "LEAST MOST" in ns, each empty if it was unknown
 *   reason    the shape's id   why the first waiting task of the shape does not start: "paused",
 *                              "starts wait", "CLASS" (it cannot run here), "at once" (it waits for
 *                              its turn in its batch), or a name of enum gpud_reason_kind
 *
 * The text of a row is for people, but for its beginning: "WHOM: WHY", or WHOM alone
 * (gpq_span_why).  WHOM is of
 *   device    the name of the device; of foreign WHY is "user ben, pid 8123, 41984 MiB", of drained
 *             the reason that a person gave
 *   tenancy   the class; of kept, the task.  WHY of boot: "first use", "again", "restart" (the one
 *             before it has died); of unload: "evicted for CLASS", "device drained", "it died" (its
 *             memory is not free yet), "no task for it"; of kept: "held for 2 GPUs"
 *   reason    the task
 * The store keeps WHOM and WHY of the row's begin.  Of a reason that goes on, readers of the agent
 * get those of its last examination.  Of life the text is WHY alone.
 *
 * A state is one open row, which ends with it: another row begins when the reason changes, or the
 * worker of a tenancy, the shape of the task for which a device is kept, or the batch whose tasks
 * wait for their turn.  Nothing else changes a row.  When no task of a shape waits any more, its
 * reason ends with the last start.  The agent examines the states after its turns, at most once a
 * second: at most 64 shapes, and 64 batches with at_once.  It writes changes with the next commit
 * that changes a task, with the time of the examination: no sync is made for them, but at the
 * agent's start and end.
 *
 * Whether foreign processes keep a device from its tasks is known while a task waits for it.
 *
 * A row has its times on the wall clock and on CLOCK_BOOTTIME.  None ends before it begins: where
 * the wall clock was set back meanwhile, the row has no length there.
 *
 * The mark "alive" has a time at which an agent ran, up to a second before its last commit.  Rows
 * that a killed agent has left open end there.
 */
#ifndef GPQ_AGENT_SPANS_H
#define GPQ_AGENT_SPANS_H

#include <string.h>

#include "queue/agent/agent.h"

/* WHY of the text of a row; *ret_whom: the length of WHOM, with which the text begins. */
static inline const char *gpq_span_why(const char *text, size_t *ret_whom)
{
    const char *end = strstr(text, ": ");
    *ret_whom = end ? (size_t)(end - text) : strlen(text);
    return end ? end + 2 : text + *ret_whom;
}

/* At the start, before the first turn: a commit of its own. */
int gpq_spans_open(struct gpq_agent *a, struct gpq_error *e);
/* Ends all rows in a commit, unless the storage has failed. */
void gpq_spans_close(struct gpq_agent *a);

/* An event of the dispatcher. */
void gpq_spans_hear(struct gpq_agent *a, const struct gpud_event *event);
/* The agent has turned, and is about to sleep: looks at the states. */
void gpq_spans_look(struct gpq_agent *a);
/* Wall time of the next look that was put off; 0 = none. */
uint64_t gpq_spans_next(const struct gpq_agent *a);

/* Adds a row of a moment, which is written with the next commit. */
void gpq_spans_note(struct gpq_agent *a, const char *kind, const char *subject, const char *text);
/* Each row in memory: those that go on, and those whose end the store does not have yet.  Id 0: the
 * store does not have the row yet. */
int gpq_spans_each(struct gpq_agent *a, gpq_span_fn fn, void *user);
/* A row that goes on in the store: its end, if it has ended, and else its newest text. */
void gpq_spans_bring_up(const struct gpq_agent *a, struct gpq_span *span);
/* A task of this shape has started. */
void gpq_spans_started(struct gpq_agent *a, uint32_t shape, uint64_t time);

/* Inside the transaction: writes what has changed; and after its commit. */
int gpq_spans_store(struct gpq_agent *a, uint64_t now, struct gpq_error *e);
void gpq_spans_stored(struct gpq_agent *a);

#endif
