/* SPDX-License-Identifier: MIT */
/* words.h - rows of the agent, as people read them. */
#ifndef GPQ_CLIENT_WORDS_H
#define GPQ_CLIENT_WORDS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Members of a row; "" and 0 where it has none. */
const char *gpq_text_of(const json_t *row, const char *name);
int64_t gpq_number_of(const json_t *row, const char *name);
/* A count of a row's "states" or "outcomes". */
uint64_t gpq_count_of(const json_t *row, const char *counts, const char *name);

/* "12 s", "3 min", "3 h 41 min", "12 days". */
char *gpq_span_text(uint64_t ns, char ret[32]);
/* The time left of a batch: "3-4 h", "40 s", "50 s-2 min"; "-" if it is unknown. */
char *gpq_left_text(const json_t *row, char ret[48]);
/* Local time, with the day where it is not today's: "20:14:03", "2026-01-31 20:14". */
char *gpq_time_text(uint64_t ns, char ret[32]);
/* The arguments as a shell would take them, cut to `size`. */
char *gpq_command_text(const json_t *argv, char *ret, size_t size);
/* The name of a task, or its command, or what its class works on. */
char *gpq_task_text(const json_t *row, char *ret, size_t size);
/* "ok", "held: time", "running, to be cancelled". */
char *gpq_state_text_of(const json_t *row, char ret[64]);
/* How an attempt ended, with its outcome or that of its task: "error 1: a GPU was out of memory",
 * "crashed, signal 9", "timeout: exceeded its time limit of 1 s".  The attempt may be NULL. */
char *gpq_end_text(const char *outcome, const json_t *attempt, char *ret, size_t size);
/* Which other task or batch made a task skipped or cancelled: "batch 61 had too many failures"; ""
 * if none did. */
char *gpq_because(const json_t *row, char ret[96]);
/* "497 ok, 2 error, 1 timeout": the outcomes of a batch, or of a list. */
char *gpq_outcomes_text(const json_t *outcomes, char *ret, size_t size);
/* Tasks that have ended; and those of them that did not end ok. */
uint64_t gpq_ended(const json_t *outcomes);
uint64_t gpq_bad(const json_t *outcomes);
/* "10,000" */
char *gpq_number_text(uint64_t n, char ret[32]);
const char *gpq_tasks(uint64_t n); /* "task" or "tasks" */

/* On a line. */
void gpq_print_json(const json_t *row);

/* Characters of a line: those of the terminal, else 80. */
size_t gpq_width(void);


/* How old something is: "0 s", "5 min", "3 h", "12 days". */
char *gpq_age_text(uint64_t ns, char ret[32]);

/* "gpu:0,1" of "gpu:0,gpu:1", cut after 24 characters. */
char *gpq_gpus_text(const char *names, char ret[32]);

/* A text of the agent about needs, with options in place of members: "needs.host_memory is 9T: ..."
 * becomes "--host-memory 9T: ...".  Any other text is the same. */
const char *gpq_options_text(const char *text, char *room, size_t size);

#endif
