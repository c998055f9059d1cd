/* SPDX-License-Identifier: MIT */
/* carry.c - the minutes of the GPUs, from the first snapshot and the uses of the later ones. */
#include <stdlib.h>
#include <string.h>

#include "view/now/snapshot.h"

#define MINUTE INT64_C(60000000000)

static int64_t minute_of(int64_t time)
{
    return time / MINUTE;
}

/* ---- The next snapshot ---- */

/* GPUs keep their places, unless one is new or gone. */
static const struct gpv_now_gpu *same_gpu(const struct gpv_snapshot *s, const char *name, size_t at,
                                          size_t *ret)
{
    for (size_t i = 0; i < s->gpus.n; i++) {
        size_t k = (at + i) % s->gpus.n;
        if (!strcmp(s->gpus.row[k].name, name)) {
            *ret = k;
            return &s->gpus.row[k];
        }
    }
    return NULL;
}

/* An attempt that has ended badly was counted as work until then: the newest minutes that worked
 * are those of the attempt. */
static void take_back(struct gpv_uses *ring, uint32_t minutes, struct gpv_uses *since)
{
    int64_t lost = -since->ns[GPV_USE_OK];

    if (lost <= 0)
        return;
    since->ns[GPV_USE_OK] = 0;
    for (uint32_t i = minutes; i-- > 0 && lost > 0;) {
        int64_t part = ring[i].ns[GPV_USE_OK] < lost ? ring[i].ns[GPV_USE_OK] : lost;
        ring[i].ns[GPV_USE_OK] -= part;
        ring[i].ns[GPV_USE_LOST] += part;
        since->ns[GPV_USE_LOST] -= part;
        lost -= part;
    }
}

/* Shares the uses since `from` among the minutes up to `to`, by their part of the time. */
static void add_uses(struct gpv_uses *ring, uint32_t minutes, const struct gpv_uses *since,
                     int64_t from, int64_t to)
{
    for (int64_t minute = minute_of(from); minute <= minute_of(to) && to > from; minute++) {
        int64_t ago = minute_of(to) - minute, begin = minute * MINUTE, end = begin + MINUTE;
        if (ago >= minutes)
            continue;
        begin = begin < from ? from : begin;
        end = end > to ? to : end;
        for (int use = 0; use < GPV_USES; use++)
            if (since->ns[use] > 0)
                ring[minutes - 1 - ago].ns[use] +=
                    (int64_t)((double)since->ns[use] * (double)(end - begin) / (double)(to - from));
    }
}

/* The ring of a GPU is moved by the minutes that have passed. */
static void move_ring(const struct gpv_uses *from, struct gpv_uses *to, uint32_t minutes,
                      int64_t passed)
{
    for (uint32_t i = 0; i < minutes; i++)
        if (i + passed < minutes)
            to[i] = from[i + passed];
}

static void carry_gpu(const struct gpv_snapshot *last, size_t from, struct gpv_snapshot *next,
                      size_t to)
{
    const uint32_t minutes = next->minutes;
    struct gpv_uses *ring = &next->history[to * minutes], since;

    for (int use = 0; use < GPV_USES; use++)
        since.ns[use] = next->gpus.row[to].uses.ns[use] - last->gpus.row[from].uses.ns[use];
    move_ring(&last->history[from * minutes], ring, minutes,
              minute_of(next->time) - minute_of(last->time));
    take_back(ring, minutes, &since);
    add_uses(ring, minutes, &since, last->time, next->time);
}

void gpv_now_carry(const struct gpv_snapshot *last, struct gpv_snapshot *next)
{
    if (next->minutes > 0 || last->minutes == 0 || next->since != last->since ||
        next->time < last->time)
        return;
    next->history = calloc(next->gpus.n * last->minutes + 1, sizeof *next->history);
    if (!next->history)
        return; /* it is shown without a history */
    next->minutes = last->minutes;
    for (size_t i = 0; i < next->gpus.n; i++) {
        size_t from;
        if (same_gpu(last, next->gpus.row[i].name, i, &from))
            carry_gpu(last, from, next, i);
    }
}
