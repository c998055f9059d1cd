/* SPDX-License-Identifier: MIT */
/* lanes.h - which attempts stand on which lane of the timeline. */
#ifndef GPV_LANES_H
#define GPV_LANES_H

#include "view/records.h"

struct gpv_lane {
    uint32_t gpu;            /* index; GPV_NONE: of tasks without a GPU */
    const uint32_t *attempt; /* indices, by start; an attempt stands on the lane of each GPU */
    size_t n;
};

struct gpv_lanes {
    GPV_LIST(struct gpv_lane) list;
    uint32_t *attempts;
};

/* A lane for each GPU, and a last one if there are rows of tasks without a GPU.  0, or -1 without
 * memory. */
int gpv_lanes_of(const struct gpv_night *n, struct gpv_lanes *ret);
void gpv_lanes_free(struct gpv_lanes *l);

/* Whether the end of an attempt is marked on a lane: on that of its first GPU alone, so that each
 * is marked once.                                                                         [V4] */
bool gpv_lane_marks(const struct gpv_night *n, const struct gpv_lane *l,
                    const struct gpv_attempt *a);

/* A part of the height of a lane. */
struct gpv_row {
    uint8_t row, rows;
};

/*
 * Divides the height among attempts that ran at the same time, such as on shares of a GPU: an
 * attempt that ran alone has all of it.  ret[l->n].  False: more than `most` ran at a time.
 */
bool gpv_lane_rows(const struct gpv_night *n, const struct gpv_lane *l, unsigned most,
                   struct gpv_row *ret);

#endif
