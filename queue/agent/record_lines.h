/* SPDX-License-Identifier: MIT */
/*
 * record_lines.h - rows of the store as lines of view/line.h.
 */
#ifndef GPQ_AGENT_RECORD_LINES_H
#define GPQ_AGENT_RECORD_LINES_H

#include "queue/agent/agent.h"
#include "queue/agent/first.h"
#include "view/line.h"

/* Rows name shapes and GPUs, whose lines have to come before them.  Lines of GPUs that the head
 * does not have are written when a row names one; the ids of shapes are kept for the caller, since
 * a reader of the store calls no store. */
struct gpq_record_lines {
    struct gpv_lines rows, named; /* named: for before the rows */
    uint32_t *shape;              /* each once */
    size_t shapes, shapes_room;
    char (*gpu)[96]; /* UUIDs that have a line */
    size_t gpus, gpus_room;
};
void gpq_record_lines_free(struct gpq_record_lines *l);

/* Facts of an attempt that runs, which its row lacks. */
struct gpq_at_work {
    uint64_t started;    /* 0 = not known */
    const char *devices; /* of a worker: their names; else NULL */
};

/* A GPU that the agent has: its line is written, or was written in another page. */
void gpq_record_gpu(struct gpq_record_lines *l, const struct gpud_device_info *d, bool written);
void gpq_record_class(struct gpq_record_lines *l, const char *name);
/* `shape`, before the rows. */
void gpq_record_shape(struct gpq_record_lines *l, const struct gpq_agent *a,
                      const struct gpq_shape *shape);
void gpq_record_batch(struct gpq_record_lines *l, const struct gpq_batch *b,
                      const struct gpq_waiting *w);
/* An attempt that was returned before it began has no line.  False: the task is claimed for a
 * worker, and does not run yet: it has none either. */
bool gpq_record_attempt(struct gpq_record_lines *l, const struct gpq_history *h,
                        const struct gpq_at_work *at_work);
/* `tenancy`, `out`, `reason`, `life` or `left`; nothing for a kind that has no line. */
void gpq_record_span(struct gpq_record_lines *l, const struct gpq_span *span);

#endif
