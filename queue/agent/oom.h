/* SPDX-License-Identifier: MIT */
/*
 * oom.h - attempts that ended for want of memory, and what their retries get.
 *
 * An attempt that ended ERROR or CRASHED ran out of memory if the last 64 KiB of its log have the
 * text of CUDA or of a framework, or if the kernel killed its first process, or a process of that
 * for which it exited with 137, while the kernel killed a process of its cgroup for want of memory.
 *
 * If its submit has retries for it, the next attempt has its GPU alone, and twice the memory, up to
 * that of the largest GPU that it may use.
 */
#ifndef GPQ_AGENT_OOM_H
#define GPQ_AGENT_OOM_H

#include "queue/agent/agent.h"
#include "queue/runner/record.h"

/* Whether a log has such a text. */
bool gpq_oom_in_log(const char *data, size_t size);
/* Whether the kernel has ended the run for want of memory. */
bool gpq_oom_in_record(const struct gpq_record *record);

/* Judges the end of a run: sets end->oom, and adds to `text`, which has `room` bytes.  *ret_said:
 * the last line of the log of a bad end (said.h). */
void gpq_oom_judge(struct gpq_agent *a, const struct gpq_run_id *run,
                   const struct gpq_record *record, struct gpq_end *end, char *text, size_t room,
                   char **ret_said);

/* Inside the transaction: the store's `complete`, with the needs of a retry if end->oom is set. */
int gpq_oom_complete(struct gpq_agent *a, struct gpq_end *end, struct gpq_error *e);

#endif
