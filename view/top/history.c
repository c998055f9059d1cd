/* SPDX-License-Identifier: MIT */
/* history.c - the minutes of the GPUs, from the first snapshot and the uses of the later ones. */
#include <stdlib.h>
#include <string.h>

#include "view/top/top.h"

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

void gpv_top_carry(struct gpv_snapshot *last, struct gpv_snapshot *next)
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

/* ---- What is shown ---- */

/* What the GPU does is what it did since the snapshot, or there would be a later one. */
static enum gpv_use use_now(const struct gpv_snapshot *s, const struct gpv_now_gpu *g)
{
    static const enum gpv_use uses[GPV_DOES] = {
        [GPV_DOES_RUN] = GPV_USE_OK,        [GPV_DOES_LOAD] = GPV_USE_LOADING,
        [GPV_DOES_LEAVE] = GPV_USE_LOADING, [GPV_DOES_KEPT] = GPV_USE_KEPT,
        [GPV_DOES_OUT] = GPV_USE_OUT,       [GPV_DOES_IDLE] = GPV_USE_IDLE,
    };

    for (size_t i = 0; g->does == GPV_DOES_IDLE && i < s->batches.n; i++)
        if (s->batches.row[i].first)
            return GPV_USE_LIMITED;
    return uses[g->does % GPV_DOES];
}

struct gpv_uses gpv_top_minute(const struct gpv_snapshot *s, size_t gpu, int64_t now, uint32_t ago)
{
    int64_t minute = minute_of(now) - ago, begin = minute * MINUTE, end = begin + MINUTE;
    int64_t index = (int64_t)s->minutes - 1 - (minute_of(s->time) - minute);
    struct gpv_uses uses = { 0 };

    if (index >= 0 && index < s->minutes)
        uses = s->history[gpu * s->minutes + (size_t)index];
    begin = begin < s->time ? s->time : begin;
    end = end > now ? now : end;
    if (end > begin && s->minutes > 0)
        uses.ns[use_now(s, &s->gpus.row[gpu])] += end - begin;
    return uses;
}

bool gpv_top_ticks(const struct gpv_snapshot *s)
{
    for (size_t i = 0; i < s->gpus.n; i++)
        if (s->gpus.row[i].does == GPV_DOES_RUN || s->gpus.row[i].does == GPV_DOES_LOAD ||
            s->gpus.row[i].does == GPV_DOES_LEAVE)
            return true;
    for (size_t i = 0; i < s->batches.n; i++)
        if (s->batches.row[i].running)
            return true;
    return false;
}
