/* SPDX-License-Identifier: MIT */
/* lefts.c - the time left of batches, played from the rows of a night. */
#include "view/night/lefts.h"

#include <stdlib.h>

#include "view/night/left.h"

struct end {
    int64_t time, started;
    uint32_t place;
};

struct player {
    const struct gpv_night *n;
    uint32_t *place; /* of each batch in `left`; GPV_NONE: it has ended */
    struct gpv_left *left;
    GPV_LIST(struct end) ends;
};

static int by_time(const void *left, const void *right)
{
    const struct end *a = left, *b = right;
    return (a->time > b->time) - (a->time < b->time);
}

static int begin(struct player *l)
{
    uint32_t places = 0;
    l->place = malloc((l->n->batches.n + 1) * sizeof(*l->place));
    for (size_t i = 0; l->place && i < l->n->batches.n; i++)
        l->place[i] = l->n->batches.row[i].ended == 0 ? places++ : GPV_NONE;
    l->left = l->place ? calloc(places + 1, sizeof(*l->left)) : NULL;
    return l->left ? 0 : -1;
}

/* The place of the batch of an attempt with a number; GPV_NONE: the batch has ended. */
static uint32_t place_of(const struct player *l, const struct gpv_attempt *a)
{
    uint32_t batch = a->number != 0 ? gpv_find_batch(l->n, GPV_BATCH_OF(a->task)) : GPV_NONE;
    return batch != GPV_NONE ? l->place[batch] : GPV_NONE;
}

static int find_ends(struct player *l)
{
    for (size_t i = 0; i < l->n->attempts.n; i++) {
        const struct gpv_attempt *a = &l->n->attempts.row[i];
        uint32_t place = a->ended != 0 ? place_of(l, a) : GPV_NONE;
        if (place == GPV_NONE)
            continue;
        if (!gpv_grow(&l->ends.row, l->ends.n, &l->ends.room, sizeof(l->ends.row[0])))
            return -1;
        l->ends.row[l->ends.n++] = (struct end){ a->ended, a->started, place };
    }
    gpv_sort(l->ends.row, l->ends.n, sizeof(l->ends.row[0]), by_time);
    return 0;
}

/* In the order of time, and ends before starts. */
static void play(struct player *l)
{
    size_t next = 0;
    for (size_t i = 0; i <= l->n->attempts.n; i++) {
        const struct gpv_attempt *a = i < l->n->attempts.n ? &l->n->attempts.row[i] : NULL;
        for (; next < l->ends.n && (!a || l->ends.row[next].time <= a->started); next++) {
            const struct end *e = &l->ends.row[next];
            gpv_left_end(&l->left[e->place], e->started, e->time);
        }
        uint32_t place = a ? place_of(l, a) : GPV_NONE;
        if (place != GPV_NONE)
            gpv_left_start(&l->left[place], a->started);
    }
}

static void ask(const struct player *l, const struct gpv_batch *b, const struct gpv_left *left,
                struct gpv_left_of *ret)
{
    const uint32_t waiting = b->ready + b->turn;
    const bool more = b->held > b->turn || b->open, stands = more && waiting + b->running == 0;
    gpv_left(left, l->n->to, waiting, more, &ret->least, &ret->most);
    ret->why = ret->least >= 0 && ret->most >= 0 ? GPV_LEFT_KNOWN
               : ret->least >= 0 || stands       ? GPV_LEFT_MORE
               : left->ends < GPV_LEFT_ENDS      ? GPV_LEFT_FEW
                                                 : GPV_LEFT_STANDS;
}

int gpv_lefts(const struct gpv_night *n, struct gpv_left_of *ret)
{
    struct player l = { .n = n };
    const bool memory = begin(&l) == 0 && find_ends(&l) == 0;
    if (memory)
        play(&l);
    for (size_t i = 0; memory && i < n->batches.n; i++) {
        ret[i] = (struct gpv_left_of){ 0, 0, GPV_LEFT_KNOWN };
        if (l.place[i] != GPV_NONE)
            ask(&l, &n->batches.row[i], &l.left[l.place[i]], &ret[i]);
    }
    free(l.place);
    free(l.left);
    free(l.ends.row);
    return memory ? 0 : -1;
}
