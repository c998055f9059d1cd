/* SPDX-License-Identifier: MIT */
/* lanes.c - attempts by GPU. */
#include "view/report/lanes.h"

#include <stdlib.h>

enum { ROWS_MOST = 16 };

/* Calls for each lane of an attempt: how often, and where it is put.  A counting sort. */
static void each_lane(const struct gpv_night *n, uint32_t attempt, struct gpv_lane *lane,
                      uint32_t *put)
{
    const struct gpv_set set = gpv_set(n, n->attempts.row[attempt].set);
    for (uint32_t i = 0; i < (set.n ? set.n : 1); i++) {
        struct gpv_lane *l = &lane[set.n ? set.gpu[i] : n->gpus.n];
        if (put)
            put[(size_t)(l->attempt - put) + l->n] = attempt;
        l->n++;
    }
}

int gpv_lanes_of(const struct gpv_night *n, struct gpv_lanes *ret)
{
    const size_t lanes = n->gpus.n + 1;
    size_t sum = 0;
    *ret = (struct gpv_lanes){ 0 };
    struct gpv_lane *lane = calloc(lanes, sizeof(*lane));
    if (!lane)
        return -1;
    for (uint32_t i = 0; i < n->attempts.n; i++)
        each_lane(n, i, lane, NULL);
    for (uint32_t i = 0; i < lanes; i++)
        sum += lane[i].n;
    uint32_t *attempts = malloc((sum + 1) * sizeof(*attempts));
    if (!attempts) {
        free(lane);
        return -1;
    }
    sum = 0;
    for (uint32_t i = 0; i < lanes; i++) {
        lane[i].gpu = i < n->gpus.n ? i : GPV_NONE;
        lane[i].attempt = attempts + sum;
        sum += lane[i].n;
        lane[i].n = 0;
    }
    for (uint32_t i = 0; i < n->attempts.n; i++)
        each_lane(n, i, lane, attempts);
    ret->list.row = lane;
    ret->list.n = lane[lanes - 1].n ? lanes : lanes - 1;
    ret->attempts = attempts;
    return 0;
}

void gpv_lanes_free(struct gpv_lanes *l)
{
    free(l->list.row);
    free(l->attempts);
}

bool gpv_lane_marks(const struct gpv_night *n, const struct gpv_lane *l,
                    const struct gpv_attempt *a)
{
    const struct gpv_set set = gpv_set(n, a->set);
    return gpv_is_bad(a->outcome) && (set.n ? set.gpu[0] == l->gpu : l->gpu == GPV_NONE);
}

bool gpv_lane_rows(const struct gpv_night *n, const struct gpv_lane *l, unsigned most,
                   struct gpv_row *ret)
{
    int64_t until[ROWS_MOST], last = INT64_MIN;
    unsigned rows = 0;
    size_t begun = 0; /* the attempts since nothing ran */
    most = most < ROWS_MOST ? most : ROWS_MOST;
    for (size_t i = 0; i < l->n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[l->attempt[i]];
        const int64_t end = gpv_until(n, a->ended);
        unsigned row = 0;
        ret[i].row = 0;
        if (a->number == 0)
            continue;
        if (a->started >= last) {
            for (; begun < i; begun++)
                ret[begun].rows = (uint8_t)rows;
            rows = 0;
        }
        while (row < rows && until[row] > a->started)
            row++;
        if (row == most)
            return false;
        rows = row == rows ? rows + 1 : rows;
        until[row] = end;
        last = end > last ? end : last;
        ret[i].row = (uint8_t)row;
    }
    for (; begun < l->n; begun++)
        ret[begun].rows = (uint8_t)(rows ? rows : 1);
    return true;
}
