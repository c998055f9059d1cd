/* SPDX-License-Identifier: MIT */
/* left.c - the time left of the batches of a moment, played from its records. */
#include <stdlib.h>

#include "view/night/left.h"
#include "view/now/filling.h"

struct end {
    int64_t time, started;
    uint32_t batch; /* row of the snapshot */
};

struct player {
    struct gpv_snapshot *s;
    const struct gpv_night *p;
    struct gpv_left *left; /* of each batch of the snapshot */
    struct end *end;
    size_t n;
};

static int by_time(const void *left, const void *right)
{
    const struct end *a = left, *b = right;
    return (a->time > b->time) - (a->time < b->time);
}

/* The row of a batch that goes on; GPV_NONE: there is none. */
static uint32_t row_of(const struct gpv_snapshot *s, uint32_t batch)
{
    for (size_t i = 0; i < s->batches.n; i++)
        if (s->batches.row[i].id == batch)
            return s->batches.row[i].ended == 0 ? (uint32_t)i : GPV_NONE;
    return GPV_NONE;
}

/* An attempt with a number, of a batch that goes on. */
static uint32_t batch_of(const struct player *l, const struct gpv_attempt *a)
{
    return a->number != 0 ? row_of(l->s, GPV_BATCH_OF(a->task)) : GPV_NONE;
}

static void find_ends(struct player *l)
{
    for (size_t i = 0; i < l->p->attempts.n; i++) {
        const struct gpv_attempt *a = &l->p->attempts.row[i];
        uint32_t batch = a->ended != 0 ? batch_of(l, a) : GPV_NONE;
        if (batch != GPV_NONE)
            l->end[l->n++] = (struct end){ a->ended, a->started, batch };
    }
    gpv_sort(l->end, l->n, sizeof(*l->end), by_time);
}

/* In the order of time, and ends before starts. */
static void play(struct player *l)
{
    size_t next = 0;
    for (size_t i = 0; i <= l->p->attempts.n; i++) {
        const struct gpv_attempt *a = i < l->p->attempts.n ? &l->p->attempts.row[i] : NULL;
        for (; next < l->n && (!a || l->end[next].time <= a->started); next++)
            gpv_left_end(&l->left[l->end[next].batch], l->end[next].started, l->end[next].time);
        uint32_t batch = a ? batch_of(l, a) : GPV_NONE;
        if (batch != GPV_NONE)
            gpv_left_start(&l->left[batch], a->started);
    }
}

static void find_left(struct player *l)
{
    bool known = false;
    for (size_t i = 0; i < l->s->batches.n; i++) {
        struct gpv_now_batch *row = &l->s->batches.row[i];
        uint32_t batch = gpv_find_batch(l->p, row->id);
        if (row->ended != 0 || batch == GPV_NONE)
            continue;
        gpv_left(&l->left[i], l->p->to, row->ready, row->held > 0 || l->p->batches.row[batch].open,
                 &row->least, &row->most);
        if (!known)
            l->s->least = l->s->most = 0;
        known = true;
        gpv_left_join(&l->s->least, &l->s->most, row->least, row->most);
    }
}

int gpv_fill_left(struct gpv_snapshot *s, const struct gpv_night *p)
{
    struct player l = { s, p, calloc(s->batches.n + 1, sizeof(*l.left)),
                        calloc(p->attempts.n + 1, sizeof(*l.end)), 0 };
    bool memory = l.left && l.end;
    if (memory) {
        find_ends(&l);
        play(&l);
        find_left(&l);
    }
    free(l.left);
    free(l.end);
    return memory ? 0 : -1;
}
