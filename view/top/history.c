/* SPDX-License-Identifier: MIT */
/* history.c - the minutes of a GPU as the screen shows them, up to now. */
#include "view/top/top.h"

#define MINUTE INT64_C(60000000000)

static int64_t minute_of(int64_t time)
{
    return time / MINUTE;
}

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
