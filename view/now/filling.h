/* SPDX-License-Identifier: MIT */
/* filling.h - the parts of a snapshot from records; p is the night up to the moment, p->to. */
#ifndef GPV_FILLING_H
#define GPV_FILLING_H

#include "view/now/moment.h"

/* Each returns 0, or -1 without memory. */
int gpv_fill_gpus(struct gpv_snapshot *s, const struct gpv_night *p);
int gpv_fill_batches(struct gpv_snapshot *s, const struct gpv_night *p);
int gpv_fill_classes(struct gpv_snapshot *s, const struct gpv_night *p);
int gpv_fill_findings(struct gpv_snapshot *s, struct gpv_night *day);
int gpv_fill_ends(struct gpv_snapshot *s, const struct gpv_night *p);
/* Of the batches that are there. */
int gpv_fill_left(struct gpv_snapshot *s, const struct gpv_night *p);

/* Whether an agent runs, and since when; 0: that is not known. */
bool gpv_agent_runs(const struct gpv_night *p, int64_t *ret_since);

/* Workers of a class on a GPU: indices, or GPV_NONE for all of them. */
struct gpv_workers {
    uint32_t there, loading; /* that load or are ready; of these those that load */
    uint32_t class;          /* of the one that came last; GPV_NONE */
};
struct gpv_workers gpv_workers_of(const struct gpv_night *p, uint32_t class, uint32_t gpu);

/* The names of a set of GPUs, as gpv_now_gpus has them. */
void gpv_put_gpus(char *to, size_t size, const struct gpv_night *p, struct gpv_set set);

#endif
