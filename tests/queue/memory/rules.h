/* SPDX-License-Identifier: MIT */
/*
 * rules.h - the consequences of a change: tasks that are skipped, batches that end, turns.
 *
 * Each operation changes all the tasks that it selects, and then calls mem_settle.  So the order
 * in which it came to them makes no difference.
 */
#ifndef T_MEMORY_RULES_H
#define T_MEMORY_RULES_H

#include "state.h"

/* Makes a task DONE. */
void mem_end(struct mem_task *t, uint32_t outcome, uint64_t cause, uint64_t ended);
/* Makes a waiting task HELD by its holds.  Without any it is READY, or HELD until its turn. */
void mem_place(struct mem_state *s, struct mem_task *t, uint64_t now);
/* Gives a task that waits for the first time the holds of its spec and of the batch. */
void mem_hold_new(struct mem_state *s, struct mem_task *t, uint64_t now, bool held);
/* Begins another round of a DONE task. */
void mem_new_round(struct mem_store *m, struct mem_task *t, uint32_t spec, uint64_t now, bool held);

/* Whether the task has an edge, as the one that waits. */
bool mem_has_edges(const struct mem_state *s, uint64_t task);
/* Whether a task waits for this source. */
bool mem_is_awaited(const struct mem_state *s, uint64_t source);

/* Adds a change to those of the transaction. */
void mem_change(struct mem_store *m, const struct mem_task *t, uint32_t to);
/* The task of the batch that gets the next turn; NULL if none waits for one. */
struct mem_task *mem_next_in_turn(struct mem_state *s, uint32_t batch);
/* Skips tasks, ends batches and enforces limits, as it follows from the changes made so far. */
void mem_settle(struct mem_store *m, uint64_t now);
/* Ends an operation: settles, gives turns, and adds the changes to those of the transaction. */
void mem_done(struct mem_store *m, uint64_t now);

#endif
