/* SPDX-License-Identifier: MIT */
/*
 * tree.h - numbered items in order, where a search skips every part without a match.
 *
 * An item is in at most one tree of its pool.  The key orders the items, then their numbers: the
 * same items always come in the same order.  Each node has a mask, a value and a weight.  A search
 * is for the first item with a bit of a mask, and with a value and a weight that are small enough.
 * Only init allocates memory.  One thread at a time per object.
 */
#ifndef GPI_SCHED_TREE_H
#define GPI_SCHED_TREE_H

#include <stdbool.h>
#include <stdint.h>

#define GPI_TREE_NONE UINT32_MAX
#define GPI_TREE_ANY UINT64_MAX /* the mask of a search for any item */

struct gpi_tree_key {
    uint64_t major, minor;
};

struct gpi_tree_node {
    struct gpi_tree_key key;
    uint64_t mask, value;
    uint32_t weight;
    uint32_t block; /* that has the item */
};

struct gpi_tree_block;

/* The nodes of all items, and the blocks of the trees that share them. */
struct gpi_tree_pool {
    struct gpi_tree_node *node;
    struct gpi_tree_block *block;
    uint32_t items, free_block;
};

struct gpi_tree {
    struct gpi_tree_pool *pool;
    struct gpi_tree_node *node; /* of the pool */
    uint32_t *block;            /* in order */
    uint32_t n;                 /* of these; 0: the tree is empty */
    uint32_t weight;            /* the sum; not of a tree by the least */
    bool by_least;              /* searches are for light items, sums are not needed */
};

struct gpi_tree_wanted {
    uint64_t mask, most; /* a bit of these; a value of at most this */
    uint32_t heaviest;   /* a weight of at most this */
};

/* Prepares a pool of nodes for this many trees.  Returns: 0, or -1 if there is no memory. */
int gpi_tree_pool_init(struct gpi_tree_pool *pool, uint32_t items, uint32_t trees);
void gpi_tree_pool_fini(struct gpi_tree_pool *pool);
/* Prepares an empty tree.  Returns: 0, or -1 if there is no memory. */
int gpi_tree_init(struct gpi_tree *t, struct gpi_tree_pool *pool, bool by_least);
void gpi_tree_fini(struct gpi_tree *t);

/* Adds the item, which is in no tree.  The caller has set key, mask, value and weight of its
 * node. */
void gpi_tree_add(struct gpi_tree *t, uint32_t item);

/* Takes the item out.  All but the mask of its node is as it was when the item was added. */
void gpi_tree_remove(struct gpi_tree *t, uint32_t item);

/* The mask of the item's node has changed; the rest has not. */
void gpi_tree_changed(struct gpi_tree *t, uint32_t item);

/* Returns the first item that is wanted; GPI_TREE_NONE: there is none. */
uint32_t gpi_tree_first(const struct gpi_tree *t, const struct gpi_tree_wanted *w);

/* A walk over the items whose key is `from` or later.  A step returns the next wanted one, or
 * GPI_TREE_NONE.  The tree does not change meanwhile. */
struct gpi_tree_walk {
    uint32_t rank, place;
};
struct gpi_tree_walk gpi_tree_from(const struct gpi_tree *t, const struct gpi_tree_key *from);
uint32_t gpi_tree_step(const struct gpi_tree *t, struct gpi_tree_walk *at,
                       const struct gpi_tree_wanted *w);

/* The same among the items behind this one, which is in the tree. */
uint32_t gpi_tree_next(const struct gpi_tree *t, uint32_t item, const struct gpi_tree_wanted *w);

/* Returns true if `a` comes before `b`.  Both nodes have their keys. */
static inline bool gpi_tree_precedes(const struct gpi_tree *t, uint32_t a, uint32_t b)
{
    const struct gpi_tree_key *x = &t->node[a].key, *y = &t->node[b].key;

    if (x->major != y->major)
        return x->major < y->major;
    return x->minor != y->minor ? x->minor < y->minor : a < b;
}

/* Returns the item with the n-th unit of weight in order, from 1; GPI_TREE_NONE: there are fewer.
 * Not for a tree by the least. */
uint32_t gpi_tree_unit(const struct gpi_tree *t, uint32_t n);

/* Returns the smallest value; UINT64_MAX: the tree is empty. */
uint64_t gpi_tree_least(const struct gpi_tree *t);

#endif
