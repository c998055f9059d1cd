/* SPDX-License-Identifier: MIT */
/*
 * heap.c - owns the order of deadlines: a binary heap that knows where each item stands.
 */
#include "base/heap.h"

#include <assert.h>
#include <stdlib.h>

struct gpi_heap_entry {
    uint64_t key;
    uint32_t item;
};

static int before(struct gpi_heap_entry a, struct gpi_heap_entry b)
{
    return a.key < b.key || (a.key == b.key && a.item < b.item);
}

static void put(struct gpi_heap *h, uint32_t i, struct gpi_heap_entry e)
{
    h->entry[i] = e;
    h->place[e.item] = i + 1;
}

/* Puts e where it belongs, at i or above. */
static void rise(struct gpi_heap *h, uint32_t i, struct gpi_heap_entry e)
{
    while (i > 0) {
        uint32_t parent = (i - 1) / 2;
        if (!before(e, h->entry[parent]))
            break;
        put(h, i, h->entry[parent]);
        i = parent;
    }
    put(h, i, e);
}

/* Puts e where it belongs, at i or below. */
static void sink(struct gpi_heap *h, uint32_t i, struct gpi_heap_entry e)
{
    while (i < h->count / 2) { /* has a child; 2 * i + 1 cannot overflow */
        uint32_t child = 2 * i + 1;
        if (child + 1 < h->count && before(h->entry[child + 1], h->entry[child]))
            child++;
        if (!before(h->entry[child], e))
            break;
        put(h, i, h->entry[child]);
        i = child;
    }
    put(h, i, e);
}

/* Puts e at i, then wherever the order wants it. */
static void settle(struct gpi_heap *h, uint32_t i, struct gpi_heap_entry e)
{
    if (i > 0 && before(e, h->entry[(i - 1) / 2]))
        rise(h, i, e);
    else
        sink(h, i, e);
}

int gpi_heap_init(struct gpi_heap *h, uint32_t n)
{
    assert(n < GPI_HEAP_NONE);
    *h = (struct gpi_heap){.n = n};
    h->entry = calloc((size_t)n + 1, sizeof *h->entry);
    h->place = calloc((size_t)n + 1, sizeof *h->place);
    if (h->entry == NULL || h->place == NULL) {
        gpi_heap_fini(h);
        return -1;
    }
    return 0;
}

void gpi_heap_fini(struct gpi_heap *h)
{
    free(h->entry);
    free(h->place);
    *h = (struct gpi_heap){0};
}

void gpi_heap_set(struct gpi_heap *h, uint32_t item, uint64_t key)
{
    assert(item < h->n);
    uint32_t i = h->place[item] ? h->place[item] - 1 : h->count++;
    settle(h, i, (struct gpi_heap_entry){.key = key, .item = item});
}

void gpi_heap_remove(struct gpi_heap *h, uint32_t item)
{
    assert(item < h->n);
    if (h->place[item] == 0)
        return;
    uint32_t i = h->place[item] - 1;
    h->place[item] = 0;
    struct gpi_heap_entry last = h->entry[--h->count];
    if (i < h->count)
        settle(h, i, last);
}

uint64_t gpi_heap_key(const struct gpi_heap *h, uint32_t item)
{
    assert(item < h->n);
    return h->place[item] ? h->entry[h->place[item] - 1].key : UINT64_MAX;
}

uint64_t gpi_heap_top_key(const struct gpi_heap *h)
{
    return h->count > 0 ? h->entry[0].key : UINT64_MAX;
}

uint32_t gpi_heap_top_item(const struct gpi_heap *h)
{
    return h->count > 0 ? h->entry[0].item : GPI_HEAP_NONE;
}
