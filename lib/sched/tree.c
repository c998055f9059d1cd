/* SPDX-License-Identifier: MIT */
/*
 * tree.c - a tree of two levels: blocks of items in order, and a list of the blocks.
 *
 * A block has all bits of its items, the smallest value and the least weight, so a search skips a
 * block without a match.  Most trees here are one block.  Walks over short arrays cost less than a
 * tree of nodes, which costs a cache miss and a branch that nothing predicts per level.
 *
 * Two blocks side by side have more than half a block of items together.  So there are at most
 * four times as many blocks as full ones would be.
 */
#include "sched/tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NONE GPI_TREE_NONE
#define BLOCK 32u

struct gpi_tree_block {
    uint64_t masks, least;
    uint32_t lightest;
    uint32_t rank; /* its place in the list; of an unused block the next one */
    uint32_t n;
    bool stale, loose; /* since an item has left, `least`, or the rest, are bounds */
    uint32_t item[BLOCK];
};

static uint32_t most_blocks(uint32_t items)
{
    return 4 * items / BLOCK + 2;
}

int gpi_tree_pool_init(struct gpi_tree_pool *pool, uint32_t items, uint32_t trees)
{
    const uint32_t n = most_blocks(items) + 2 * trees;

    pool->node = malloc(sizeof *pool->node * items); /* untouched until used */
    pool->block = malloc(sizeof *pool->block * n);
    pool->items = items;
    pool->free_block = 0;
    for (uint32_t i = 0; pool->block && i < n; i++)
        pool->block[i].rank = i + 1;
    return pool->node && pool->block ? 0 : -1;
}

void gpi_tree_pool_fini(struct gpi_tree_pool *pool)
{
    free(pool->node);
    free(pool->block);
}

int gpi_tree_init(struct gpi_tree *t, struct gpi_tree_pool *pool, bool by_least)
{
    *t = (struct gpi_tree){ .pool = pool, .node = pool->node, .by_least = by_least };
    t->block = malloc(sizeof *t->block * most_blocks(pool->items));
    return t->block ? 0 : -1;
}

void gpi_tree_fini(struct gpi_tree *t)
{
    free(t->block);
}

/* ---- places ---- */

static struct gpi_tree_block *block_at(const struct gpi_tree *t, uint32_t rank)
{
    return &t->pool->block[t->block[rank]];
}

static bool before(const struct gpi_tree *t, uint32_t i, const struct gpi_tree_key *key,
                   uint32_t item)
{
    const struct gpi_tree_key *a = &t->node[i].key;

    if (a->major != key->major)
        return a->major < key->major;
    return a->minor != key->minor ? a->minor < key->minor : i < item;
}

/* Returns the rank of the last block that begins before the item with this key, or of the first. */
static uint32_t rank_of(const struct gpi_tree *t, const struct gpi_tree_key *key, uint32_t item)
{
    uint32_t rank = 0, n = t->n;

    while (n > 1) {
        const uint32_t half = n / 2;
        const bool is = before(t, block_at(t, rank + half)->item[0], key, item);
        rank += is ? half : 0;
        n = is ? n - half : half;
    }
    return rank;
}

/* Returns the number of items of the block that come before the item with this key. */
static uint32_t place_of(const struct gpi_tree *t, const struct gpi_tree_block *b,
                         const struct gpi_tree_key *key, uint32_t item)
{
    uint32_t place = 0, n = b->n;

    while (n > 0) {
        const uint32_t half = n / 2;
        const bool is = before(t, b->item[place + half], key, item);
        place += is ? half + 1 : 0;
        n = is ? n - half - 1 : half;
    }
    return place;
}

/* ---- blocks ---- */

static void widen(struct gpi_tree_block *b, const struct gpi_tree_node *n)
{
    b->masks |= n->mask;
    b->least = n->value < b->least ? n->value : b->least;
    b->lightest = n->weight < b->lightest ? n->weight : b->lightest;
}

static void tighten(const struct gpi_tree *t, struct gpi_tree_block *b)
{
    b->masks = 0;
    b->least = UINT64_MAX;
    b->lightest = UINT32_MAX;
    b->stale = b->loose = false;
    for (uint32_t i = 0; i < b->n; i++)
        widen(b, &t->node[b->item[i]]);
}

static void list_block(struct gpi_tree *t, uint32_t rank, uint32_t block)
{
    for (uint32_t i = t->n++; i > rank; i--) {
        t->block[i] = t->block[i - 1];
        block_at(t, i)->rank = i;
    }
    t->block[rank] = block;
}

static struct gpi_tree_block *new_block(struct gpi_tree *t, uint32_t rank)
{
    const uint32_t i = t->pool->free_block;
    struct gpi_tree_block *b = &t->pool->block[i];

    t->pool->free_block = b->rank;
    list_block(t, rank, i);
    b->rank = rank;
    b->n = 0;
    tighten(t, b);
    return b;
}

static void free_block(struct gpi_tree *t, uint32_t rank)
{
    const uint32_t block = t->block[rank];

    t->n--;
    for (uint32_t i = rank; i < t->n; i++) {
        t->block[i] = t->block[i + 1];
        block_at(t, i)->rank = i;
    }
    t->pool->block[block].rank = t->pool->free_block;
    t->pool->free_block = block;
}

/* Moves the items from this place on to the end of the block of this rank. */
static void move(struct gpi_tree *t, struct gpi_tree_block *from, uint32_t place, uint32_t rank)
{
    struct gpi_tree_block *to = block_at(t, rank);

    for (uint32_t i = place; i < from->n; i++) {
        to->item[to->n++] = from->item[i];
        t->node[from->item[i]].block = t->block[rank];
    }
    from->n = place;
    tighten(t, to);
    tighten(t, from);
}

/* Joins a block with the one behind it if they are half a block together. */
static void join(struct gpi_tree *t, uint32_t rank)
{
    if (rank + 1 >= t->n || block_at(t, rank)->n + block_at(t, rank + 1)->n > BLOCK / 2)
        return;
    move(t, block_at(t, rank + 1), 0, rank);
    free_block(t, rank + 1);
}

/* ---- changes ---- */

void gpi_tree_add(struct gpi_tree *t, uint32_t item)
{
    struct gpi_tree_node *n = &t->node[item];
    uint32_t rank = rank_of(t, &n->key, item), place;
    struct gpi_tree_block *b = t->n ? block_at(t, rank) : new_block(t, 0);

    if (b->n == BLOCK) {
        new_block(t, rank + 1);
        move(t, b, BLOCK / 2, rank + 1);
        rank = rank_of(t, &n->key, item);
        b = block_at(t, rank);
    }
    place = place_of(t, b, &n->key, item);
    memmove(&b->item[place + 1], &b->item[place], sizeof *b->item * (b->n - place));
    b->item[place] = item;
    b->n++;
    n->block = t->block[rank];
    widen(b, n);
    t->weight += n->weight;
}

void gpi_tree_remove(struct gpi_tree *t, uint32_t item)
{
    struct gpi_tree_node *n = &t->node[item];
    struct gpi_tree_block *b = &t->pool->block[n->block];
    const uint32_t place = place_of(t, b, &n->key, item), rank = b->rank;

    assert(b->item[place] == item);
    b->n--;
    memmove(&b->item[place], &b->item[place + 1], sizeof *b->item * (b->n - place));
    b->stale |= n->value == b->least;
    b->loose = true;
    t->weight -= n->weight;
    if (b->n == 0) {
        free_block(t, rank);
    } else if (b->n < BLOCK / 2) {
        join(t, rank);
        if (rank > 0)
            join(t, rank - 1);
    }
}

void gpi_tree_changed(struct gpi_tree *t, uint32_t item)
{
    struct gpi_tree_block *b = &t->pool->block[t->node[item].block];

    widen(b, &t->node[item]);
    b->loose = true;
}

/* ---- searches ---- */

static bool may_have(const struct gpi_tree *t, const struct gpi_tree_block *b,
                     const struct gpi_tree_wanted *w)
{
    return (b->masks & w->mask || w->mask == GPI_TREE_ANY) && b->least <= w->most &&
           (!t->by_least || b->lightest <= w->heaviest);
}

static bool is_wanted(const struct gpi_tree_node *n, const struct gpi_tree_wanted *w)
{
    return n->value <= w->most && (n->mask & w->mask || w->mask == GPI_TREE_ANY) &&
           n->weight <= w->heaviest;
}

/* A block may have the bit at one item and the value at another. */
uint32_t gpi_tree_step(const struct gpi_tree *t, struct gpi_tree_walk *at,
                       const struct gpi_tree_wanted *w)
{
    for (; at->rank < t->n; at->rank++, at->place = 0) {
        struct gpi_tree_block *b = block_at(t, at->rank);
        if (!may_have(t, b, w))
            continue;
        while (at->place < b->n) {
            const uint32_t item = b->item[at->place++];
            if (is_wanted(&t->node[item], w))
                return item;
        }
        if (b->stale || (b->loose && t->n > 1))
            tighten(t, b);
    }
    return NONE;
}

uint32_t gpi_tree_first(const struct gpi_tree *t, const struct gpi_tree_wanted *w)
{
    struct gpi_tree_walk at = { 0, 0 };

    return gpi_tree_step(t, &at, w);
}

struct gpi_tree_walk gpi_tree_from(const struct gpi_tree *t, const struct gpi_tree_key *from)
{
    const uint32_t rank = rank_of(t, from, 0);

    return (struct gpi_tree_walk){ rank, t->n ? place_of(t, block_at(t, rank), from, 0) : 0 };
}

uint32_t gpi_tree_next(const struct gpi_tree *t, uint32_t item, const struct gpi_tree_wanted *w)
{
    const struct gpi_tree_node *n = &t->node[item];
    const struct gpi_tree_block *b = &t->pool->block[n->block];
    struct gpi_tree_walk at = { b->rank, place_of(t, b, &n->key, item) + 1 };

    return gpi_tree_step(t, &at, w);
}

uint32_t gpi_tree_unit(const struct gpi_tree *t, uint32_t n)
{
    if (n == 0)
        return NONE;
    for (uint32_t rank = 0; rank < t->n; rank++) {
        const struct gpi_tree_block *b = block_at(t, rank);
        for (uint32_t i = 0; i < b->n; i++) {
            const uint32_t weight = t->node[b->item[i]].weight;
            if (n <= weight)
                return b->item[i];
            n -= weight;
        }
    }
    return NONE;
}

uint64_t gpi_tree_least(const struct gpi_tree *t)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t rank = 0; rank < t->n && least > 0; rank++) {
        struct gpi_tree_block *b = block_at(t, rank);
        if (b->least >= least)
            continue;
        if (b->stale)
            tighten(t, b);
        least = b->least < least ? b->least : least;
    }
    return least;
}
