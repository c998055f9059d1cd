/* SPDX-License-Identifier: MIT */
/* spread.h - the part of spread.c that runs once per task: inline. */
#ifndef GPI_SCHED_SPREAD_H
#define GPI_SCHED_SPREAD_H

#include "base/bits.h"
#include "sched/core.h"

#define GPI_SHELVES 256u  /* of all ranks */
#define GPI_LEVELS 64u    /* shelves of a rank: the slots on shelf n have n tasks */
#define GPI_RANK_DUE 1u   /* added to the rank of a worker that is due for replacement */
#define GPI_RANK_STUCK 2u /* added to the rank of a stuck worker */

/* The number of tasks in a worker's life has a limit, except while a slot is being renewed. */
static inline bool gpi_spread_has_life(const struct gpi_sched_class *k,
                                       const struct gpi_sched_slot *s)
{
    return k->set.max_tasks == 0 || k->renewing ||
           (uint64_t)s->served + s->sent < k->set.max_tasks;
}

/* The numbers of the sends at a worker span fewer than 64, because its page orders them in a ring
 * of 64. */
static inline bool gpi_spread_has_number(const struct gpi_sched_slot *s)
{
    return s->number + 1 - s->oldest < GPI_SLOT_CELLS;
}

/* Returns the word of the shelf that has the slot's bit.  The next shelf has the next word. */
static inline uint64_t *gpi_spread_word(const struct gpi_sched_class *k, uint32_t slot,
                                        uint32_t shelf)
{
    return &k->shelf[slot / 64 * GPI_SHELVES + shelf];
}

static inline bool gpi_spread_is_empty(const struct gpi_sched_class *k, uint32_t shelf)
{
    uint32_t w = 0;

    while (w < k->words && !k->shelf[w * GPI_SHELVES + shelf])
        w++;
    return w == k->words;
}

static inline void gpi_spread_take_off(struct gpi_sched_class *k, uint64_t *word, uint32_t slot,
                                       uint32_t shelf)
{
    *word &= ~(1ull << slot % 64);
    if (!*word && gpi_spread_is_empty(k, shelf))
        k->in_use[shelf / GPI_LEVELS] &= ~(1ull << shelf % GPI_LEVELS);
}

static inline void gpi_spread_put_on(struct gpi_sched_class *k, uint64_t *word, uint32_t slot,
                                     uint32_t shelf)
{
    *word |= 1ull << slot % 64;
    k->in_use[shelf / GPI_LEVELS] |= 1ull << shelf % GPI_LEVELS;
}

/* The worker may have a further task. */
static inline bool gpi_spread_gets(const struct gpi_sched_class *k, const struct gpi_sched_slot *s)
{
    return s->sent < s->depth && gpi_spread_has_life(k, s) && gpi_spread_has_number(s);
}

/* Of the slots of a shelf's word, `stay` remain there, and `up` move to the next shelf. */
static inline void gpi_spread_shift(struct gpi_sched_class *k, uint64_t *word, uint32_t shelf,
                                    uint64_t stay, uint64_t up)
{
    uint64_t *in_use = &k->in_use[shelf / GPI_LEVELS];
    const uint64_t bit = 1ull << shelf % GPI_LEVELS;

    word[0] = stay;
    if (!stay && (k->words == 1 || gpi_spread_is_empty(k, shelf)))
        *in_use &= ~bit;
    if (!up)
        return;
    word[1] |= up;
    *in_use |= bit << 1;
}

/* The slot has fewer tasks, or its depth may have changed: gpi_spread_move puts it right. */
static inline void gpi_spread_less(struct gpi_sched_class *k, struct gpi_sched_slot *s,
                                   uint32_t slot)
{
    if (s->next_moved)
        return;
    s->next_moved = k->moved ? k->moved : slot + 1; /* the last slot points to itself */
    k->moved = slot + 1;
}

/* Returns true if a worker takes tasks, and has none, as of the last gpi_spread_move. */
static inline bool gpi_spread_has_idle(const struct gpi_sched_class *k)
{
    return (k->in_use[0] | k->in_use[GPI_RANK_DUE]) & 1;
}

/* The worker has ended a task: it is not stuck. */
static inline void gpi_spread_heard(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    s->heard = c->now;
    if (s->stuck)
        gpi_spread_stuck(c, s, false);
}

/* The moving average that a value enters by 1 / 2^shift. */
static inline uint64_t gpi_spread_mean(uint64_t mean, uint64_t value, uint32_t shift)
{
    return mean - (mean >> shift) + (value >> shift);
}

/* A task costs its share of the call, but its end waits for the whole call. */
static inline void gpi_spread_learn(struct gpi_sched_class *k, struct gpi_sched_slot *s,
                                    uint64_t run, uint64_t share)
{
    if (!k->set.ahead) /* else no code reads it */
        s->mean_run = (s->mean_run ? gpi_spread_mean(s->mean_run, share, 3) : share) | !share;
    if (k->mean_run == 0) {
        k->stuck_at = 0; /* until now nothing was known */
        k->mean_run = run;
    } else {
        k->mean_run = gpi_spread_mean(k->mean_run, run, 5);
    }
}

/* Returns the lower of the lowest shelves of two ranks.  If they are equal, it is that of the
 * first rank. */
static inline uint32_t gpi_spread_lowest(const struct gpi_sched_class *k, uint32_t rank)
{
    const uint64_t first = k->in_use[rank], second = k->in_use[rank + GPI_RANK_DUE];

    if (first && (!second || gpi_lowest_bit(first) <= gpi_lowest_bit(second)))
        return rank * GPI_LEVELS + gpi_lowest_bit(first);
    return second ? (rank + GPI_RANK_DUE) * GPI_LEVELS + gpi_lowest_bit(second) : GPI_SHELF_NONE;
}

/* Returns the first slot on a shelf that is not empty. */
static inline uint32_t gpi_spread_first(const struct gpi_sched_class *k, uint32_t shelf)
{
    uint32_t i = 0;

    while (!*gpi_spread_word(k, i, shelf))
        i += 64;
    return i + gpi_lowest_bit(*gpi_spread_word(k, i, shelf));
}

/* Returns the shelf whose workers get the next tasks; or GPI_SHELF_NONE. */
static inline uint32_t gpi_spread_lowest_shelf(struct gpi_sched *c, struct gpi_sched_class *k)
{
    if (k->moved)
        gpi_spread_move(c, k);
    return gpi_spread_lowest(k, c->plan || k->n_takes > k->n_stuck ? 0 : GPI_RANK_STUCK);
}

#endif
