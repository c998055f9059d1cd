/* SPDX-License-Identifier: MIT */
/*
 * settle.h - the consequences of the end of a task: each operation that moves tasks ends with it.
 *
 * Tasks that waited for the end go on or are skipped, which may end further tasks and batches; a
 * batch with too many failures loses the tasks that wait; a batch with at_once gives turns.
 */
#ifndef GPQ_SQLITE_SETTLE_H
#define GPQ_SQLITE_SETTLE_H

#include "queue/sqlite/row.h"

/* Works until nothing follows any more. */
int gpq_settle(struct gpq_db *db, uint64_t now, struct gpq_error *e);

enum gpq_judgement { GPQ_WAIT, GPQ_MET, GPQ_IMPOSSIBLE };
/* Judges a condition of a source.  Returns enum gpq_judgement; ENOTFOUND. */
int gpq_judge(struct gpq_db *db, uint64_t source, uint32_t condition, struct gpq_error *e);

#endif
