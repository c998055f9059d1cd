/* SPDX-License-Identifier: MIT */
/*
 * heap.h - the smallest of up to n keys, each belonging to a numbered item.
 *
 * For deadlines: slot or task number in, next moment out. Memory is taken at init only, so arming a
 * deadline cannot fail; it is not touched before it is used, so many items cost nothing. Equal keys
 * come out in order of their items, so that decisions made from it can be replayed. One thread at a
 * time per object.
 */
#ifndef GPI_HEAP_H
#define GPI_HEAP_H

#include <stdint.h>

/* The top item of an empty heap. */
#define GPI_HEAP_NONE UINT32_MAX

struct gpi_heap_entry;

struct gpi_heap {
    struct gpi_heap_entry *entry; /* in heap order */
    /* item to 1 + index in entry; 0 = not in, so that untouched memory will do */
    uint32_t *place;
    uint32_t count;
    uint32_t n;
};

/* Prepares an empty heap for items 0 to n - 1.  Returns: 0, or -1 when there is no memory. */
int gpi_heap_init(struct gpi_heap *h, uint32_t n);

void gpi_heap_fini(struct gpi_heap *h);

/* Gives the item this key, whether it was in the heap or not.  O(log n). */
void gpi_heap_set(struct gpi_heap *h, uint32_t item, uint64_t key);

/* Takes the item out; nothing happens if it is not in.  O(log n). */
void gpi_heap_remove(struct gpi_heap *h, uint32_t item);

/* The key of the item, UINT64_MAX if it is not in. */
uint64_t gpi_heap_key(const struct gpi_heap *h, uint32_t item);

/* The smallest key, UINT64_MAX when empty. */
uint64_t gpi_heap_top_key(const struct gpi_heap *h);

/* The item with the smallest key, GPI_HEAP_NONE when empty. */
uint32_t gpi_heap_top_item(const struct gpi_heap *h);

#endif
