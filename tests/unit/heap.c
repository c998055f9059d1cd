/* SPDX-License-Identifier: MIT */
/*
 * heap.c - the indexed heap against a plain table of keys.
 */
#include "harness.h"

#include <stdint.h>

#include "base/heap.h"

enum { ITEMS = 61, RANDOM_OPS = 1000000 };

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

struct model {
    uint64_t key[ITEMS];
    int in[ITEMS];
};

static uint32_t model_top(const struct model *m)
{
    uint32_t top = GPI_HEAP_NONE;
    for (uint32_t i = 0; i < ITEMS; i++)
        if (m->in[i] && (top == GPI_HEAP_NONE || m->key[i] < m->key[top]))
            top = i;
    return top;
}

T_CASE(empty)
{
    struct gpi_heap h;
    T_CHECK(gpi_heap_init(&h, 0) == 0);
    T_CHECK(gpi_heap_top_key(&h) == UINT64_MAX);
    T_CHECK(gpi_heap_top_item(&h) == GPI_HEAP_NONE);
    gpi_heap_fini(&h);
    gpi_heap_fini(&h); /* harmless */
}

T_CASE(random_ops)
{
    struct gpi_heap h;
    struct model m = {0};
    uint64_t seed = 0x9e3779b97f4a7c15U;
    T_CHECK(gpi_heap_init(&h, ITEMS) == 0);
    for (uint32_t i = 0; i < t_rounds(RANDOM_OPS, RANDOM_OPS); i++) {
        uint32_t item = (uint32_t)(draw(&seed) % ITEMS);
        uint64_t grow = i / 1000 % 2 == 0 ? 70 : 30;
        if (draw(&seed) % 100 < grow) {
            m.key[item] = draw(&seed) % 100; /* few, so that equal keys are common */
            m.in[item] = 1;
            gpi_heap_set(&h, item, m.key[item]);
        } else {
            m.in[item] = 0;
            gpi_heap_remove(&h, item);
        }
        uint32_t top = model_top(&m);
        T_CHECK(gpi_heap_key(&h, item) == (m.in[item] ? m.key[item] : UINT64_MAX));
        T_CHECK(gpi_heap_top_item(&h) == top);
        T_CHECK(gpi_heap_top_key(&h) == (top == GPI_HEAP_NONE ? UINT64_MAX : m.key[top]));
    }
    gpi_heap_fini(&h);
}

/* Comes out sorted, equal keys by item, the key UINT64_MAX too. */
T_CASE(drains_in_order)
{
    struct gpi_heap h;
    uint64_t seed = 88172645463325252U;
    T_CHECK(gpi_heap_init(&h, 1000) == 0);
    for (uint32_t i = 0; i < 1000; i++)
        gpi_heap_set(&h, i, i % 10 == 0 ? UINT64_MAX : draw(&seed) % 50);
    uint64_t key = 0;
    uint32_t item = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        uint64_t k = gpi_heap_top_key(&h);
        uint32_t it = gpi_heap_top_item(&h);
        T_CHECK(k > key || (k == key && (i == 0 || it > item)));
        key = k;
        item = it;
        gpi_heap_remove(&h, it);
    }
    T_CHECK(gpi_heap_top_item(&h) == GPI_HEAP_NONE);
    gpi_heap_fini(&h);
}
