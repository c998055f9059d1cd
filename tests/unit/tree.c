/* SPDX-License-Identifier: MIT */
/*
 * tree.c - the tree of a plan against a plain table, which each search walks in order.
 */
#include "harness.h"

#include <stdint.h>
#include <string.h>

#include "sched/tree.h"

enum { ITEMS = 147, RANDOM_OPS = 300000 }; /* several blocks */

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

struct model {
    struct gpi_tree_pool pool;
    struct gpi_tree_node *node; /* of the pool: keys, masks, values, weights */
    int in[ITEMS];
};

static int is_before(const struct model *m, uint32_t a, uint32_t b)
{
    const struct gpi_tree_key *x = &m->node[a].key, *y = &m->node[b].key;

    if (x->major != y->major)
        return x->major < y->major;
    return x->minor != y->minor ? x->minor < y->minor : a < b;
}

static int is_from(const struct model *m, uint32_t i, const struct gpi_tree_key *from)
{
    const struct gpi_tree_key *key = &m->node[i].key;

    return key->major != from->major ? key->major > from->major : key->minor >= from->minor;
}

static int is_wanted(const struct model *m, uint32_t i, const struct gpi_tree_wanted *w)
{
    return m->in[i] && (w->mask == GPI_TREE_ANY || m->node[i].mask & w->mask) &&
           m->node[i].value <= w->most && m->node[i].weight <= w->heaviest;
}

/* The first wanted item from this key on, or behind this item, or of all. */
static uint32_t model_first(const struct model *m, const struct gpi_tree_key *from, uint32_t behind,
                            const struct gpi_tree_wanted *w)
{
    uint32_t best = GPI_TREE_NONE;

    for (uint32_t i = 0; i < ITEMS; i++)
        if (is_wanted(m, i, w) && (!from || is_from(m, i, from)) &&
            (behind == GPI_TREE_NONE || is_before(m, behind, i)) &&
            (best == GPI_TREE_NONE || is_before(m, i, best)))
            best = i;
    return best;
}

static uint32_t model_weight(const struct model *m)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < ITEMS; i++)
        sum += m->in[i] ? m->node[i].weight : 0;
    return sum;
}

static uint32_t model_unit(const struct model *m, uint32_t n)
{
    const struct gpi_tree_wanted any = { UINT64_MAX, UINT64_MAX, UINT32_MAX };
    uint32_t i = model_first(m, NULL, GPI_TREE_NONE, &any);

    while (i != GPI_TREE_NONE && n > m->node[i].weight) {
        n -= m->node[i].weight;
        i = model_first(m, NULL, i, &any);
    }
    return n ? i : GPI_TREE_NONE;
}

/* Few values, so that equal ones are common. */
static uint64_t draw_mask(uint64_t *seed)
{
    return 1ull << draw(seed) % 6 | (draw(seed) % 4 == 0 ? 1ull << 63 : 0);
}

static void draw_values(struct gpi_tree_node *n, uint64_t *seed)
{
    n->mask = draw_mask(seed);
    n->value = draw(seed) % 8 == 0 ? UINT64_MAX : draw(seed) % 20;
    n->weight = (uint32_t)(draw(seed) % 5);
}

static void change(struct model *m, struct gpi_tree *t, uint64_t *seed)
{
    const uint32_t i = (uint32_t)(draw(seed) % ITEMS);

    if (!m->in[i]) {
        m->node[i].key = (struct gpi_tree_key){ draw(seed) % 4, draw(seed) % 4 };
        draw_values(&m->node[i], seed);
        gpi_tree_add(t, i);
        m->in[i] = 1;
    } else if (draw(seed) % 2) {
        m->node[i].mask = draw_mask(seed);
        gpi_tree_changed(t, i);
    } else {
        gpi_tree_remove(t, i);
        m->in[i] = 0;
    }
}

static void walk(const struct model *m, const struct gpi_tree *t, const struct gpi_tree_key *from,
                 const struct gpi_tree_wanted *w)
{
    struct gpi_tree_walk at = gpi_tree_from(t, from);
    uint32_t next = model_first(m, from, GPI_TREE_NONE, w);

    T_EQ(gpi_tree_step(t, &at, w), next);
    for (int i = 0; i < 4 && next != GPI_TREE_NONE; i++) {
        next = model_first(m, NULL, next, w);
        T_EQ(gpi_tree_step(t, &at, w), next);
    }
}

static uint64_t model_least(const struct model *m)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < ITEMS; i++)
        if (m->in[i] && m->node[i].value < least)
            least = m->node[i].value;
    return least;
}

static void search(const struct model *m, const struct gpi_tree *t, uint64_t *seed)
{
    const struct gpi_tree_wanted w = {
        draw(seed) % 4 ? 1ull << draw(seed) % 6 : UINT64_MAX,
        draw(seed) % 4 ? draw(seed) % 20 : UINT64_MAX,
        draw(seed) % 4 ? (uint32_t)(draw(seed) % 5) : UINT32_MAX,
    };
    const struct gpi_tree_key from = { draw(seed) % 5, draw(seed) % 5 };
    const uint32_t i = (uint32_t)(draw(seed) % ITEMS);

    T_EQ(gpi_tree_first(t, &w), model_first(m, NULL, GPI_TREE_NONE, &w));
    walk(m, t, &from, &w);
    T_EQ(gpi_tree_least(t), model_least(m));
    if (m->in[i])
        T_EQ(gpi_tree_next(t, i, &w), model_first(m, NULL, i, &w));
}

static void run_random(int by_least, uint64_t seed)
{
    static struct model m;
    struct gpi_tree t;

    memset(&m, 0, sizeof m);
    T_EQ(gpi_tree_pool_init(&m.pool, ITEMS, 1), 0);
    T_EQ(gpi_tree_init(&t, &m.pool, by_least), 0);
    m.node = m.pool.node;
    for (uint32_t i = 0; i < t_rounds(RANDOM_OPS, RANDOM_OPS / 10); i++) {
        const uint32_t n = (uint32_t)(draw(&seed) % (2 * ITEMS));
        change(&m, &t, &seed);
        search(&m, &t, &seed);
        if (by_least)
            continue;
        T_EQ(t.weight, model_weight(&m));
        T_EQ(gpi_tree_unit(&t, n), n <= model_weight(&m) ? model_unit(&m, n) : GPI_TREE_NONE);
    }
    gpi_tree_fini(&t);
    gpi_tree_pool_fini(&m.pool);
}

T_CASE(empty)
{
    const struct gpi_tree_key from = { 0, 0 };
    const struct gpi_tree_wanted any = { UINT64_MAX, UINT64_MAX, UINT32_MAX };
    struct gpi_tree_pool pool;
    struct gpi_tree_walk at;
    struct gpi_tree t;

    T_EQ(gpi_tree_pool_init(&pool, 1, 1), 0);
    T_EQ(gpi_tree_init(&t, &pool, false), 0);
    pool.node[0] = (struct gpi_tree_node){ .mask = 1 };
    at = gpi_tree_from(&t, &from);
    T_EQ(gpi_tree_first(&t, &any), GPI_TREE_NONE);
    T_EQ(gpi_tree_step(&t, &at, &any), GPI_TREE_NONE);
    T_EQ(gpi_tree_least(&t), UINT64_MAX);
    T_EQ(t.weight, 0);
    T_EQ(gpi_tree_unit(&t, 0), GPI_TREE_NONE);
    T_EQ(gpi_tree_unit(&t, 1), GPI_TREE_NONE);
    gpi_tree_add(&t, 0);
    T_EQ(gpi_tree_next(&t, 0, &any), GPI_TREE_NONE);
    gpi_tree_remove(&t, 0);
    T_EQ(gpi_tree_first(&t, &any), GPI_TREE_NONE);
    gpi_tree_fini(&t);
    gpi_tree_pool_fini(&pool);
}

T_LONG_CASE(random_ops_by_sum, 120)
{
    run_random(0, 0x9e3779b97f4a7c15U);
}

T_LONG_CASE(random_ops_by_least, 120)
{
    run_random(1, 88172645463325252U);
}

/* The order follows from the items alone, whatever the order in which they came.           [S6] */
T_CASE(order_of_its_items)
{
    const struct gpi_tree_wanted any = { GPI_TREE_ANY, UINT64_MAX, UINT32_MAX };
    struct gpi_tree_pool pool[2];
    struct gpi_tree t[2];
    uint32_t x, y;

    for (int k = 0; k < 2; k++) {
        T_EQ(gpi_tree_pool_init(&pool[k], ITEMS, 1), 0);
        T_EQ(gpi_tree_init(&t[k], &pool[k], false), 0);
        for (uint32_t i = 0; i < ITEMS; i++)
            pool[k].node[i] = (struct gpi_tree_node){ .key = { i % 3, i % 5 }, .mask = 1 };
        for (uint32_t i = 0; i < ITEMS; i++)
            gpi_tree_add(&t[k], k ? i : ITEMS - 1 - i);
    }
    for (uint32_t i = 0; i < ITEMS; i += 2)
        gpi_tree_remove(&t[0], i);
    for (uint32_t i = 0; i < ITEMS; i += 2)
        gpi_tree_add(&t[0], i);
    x = gpi_tree_first(&t[0], &any);
    y = gpi_tree_first(&t[1], &any);
    for (uint32_t i = 0; i < ITEMS; i++) {
        T_CHECK(x < ITEMS);
        T_EQ(x, y);
        x = gpi_tree_next(&t[0], x, &any);
        y = gpi_tree_next(&t[1], y, &any);
    }
    T_EQ(x, GPI_TREE_NONE);
    for (int k = 0; k < 2; k++) {
        gpi_tree_fini(&t[k]);
        gpi_tree_pool_fini(&pool[k]);
    }
}
