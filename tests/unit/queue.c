/* SPDX-License-Identifier: MIT */
/*
 * queue.c - the queue against a plain table: priorities, FIFO, back to the old place.   [C5]
 */
#include "harness.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

#include "sched/queue.h"

enum { ITEMS = 97, RANDOM_OPS = 1000000 };

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

enum place { FREE, QUEUED, OUT };

struct model {
    enum place place[ITEMS];
    int32_t priority[ITEMS];
    uint64_t born[ITEMS]; /* which one came first */
    uint32_t queued;
};

static bool before(void *context, uint32_t a, uint32_t b)
{
    const struct model *m = context;

    return m->born[a] < m->born[b];
}

static uint32_t model_next(const struct model *m)
{
    uint32_t best = GPI_QUEUE_NONE;

    for (uint32_t i = 0; i < ITEMS; i++) {
        if (m->place[i] != QUEUED)
            continue;
        if (best == GPI_QUEUE_NONE || m->priority[i] > m->priority[best] ||
            (m->priority[i] == m->priority[best] && m->born[i] < m->born[best]))
            best = i;
    }
    return best;
}

/* Some item in this place, or NONE. */
static uint32_t pick(const struct model *m, enum place place, uint64_t random)
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        uint32_t item = (uint32_t)((random + i) % ITEMS);
        if (m->place[item] == place)
            return item;
    }
    return GPI_QUEUE_NONE;
}

static int32_t draw_priority(uint64_t *seed, unsigned phase)
{
    static const int32_t edges[] = { INT32_MIN, INT32_MIN + 1, -1, 0, 1, INT32_MAX - 1, INT32_MAX };

    if (phase % 3 == 0)
        return edges[draw(seed) % 7];
    return phase % 3 == 1 ? (int32_t)(draw(seed) % 3) : (int32_t)draw(seed);
}

/* The next item, and the few behind it: queued, with its priority. */
static void check(const struct gpi_queue *q, const struct model *m)
{
    uint32_t next = model_next(m), item = q->n_bands ? q->band[0].head : GPI_QUEUE_NONE;

    T_EQ(q->count, m->queued);
    T_EQ(item, next);
    for (uint32_t ahead = 0; ahead < 5 && item != GPI_QUEUE_NONE; ahead++) {
        T_EQ(m->place[item], QUEUED);
        T_EQ(m->priority[item], m->priority[next]);
        item = q->next[item];
    }
}

T_LONG_CASE(random_ops, 60)
{
    static struct model m;
    struct gpi_queue q;
    uint64_t seed = 0x9e3779b97f4a7c15U, born = 0;

    T_EQ(gpi_queue_init(&q, ITEMS), 0);
    for (unsigned op = 0; op < t_rounds(RANDOM_OPS, RANDOM_OPS / 5); op++) {
        uint64_t what = draw(&seed) % 100, grow = op / 2000 % 2 ? 60 : 30;
        unsigned phase = op / 10000;
        uint32_t item;

        if (what < grow) {
            item = pick(&m, FREE, draw(&seed));
            if (item == GPI_QUEUE_NONE)
                continue;
            m.priority[item] = draw_priority(&seed, phase);
            m.born[item] = ++born;
            gpi_queue_push(&q, item, m.priority[item]);
            m.place[item] = QUEUED;
            m.queued++;
        } else if (what < 75) {
            uint32_t wanted = model_next(&m);

            item = gpi_queue_pop(&q);
            T_EQ(item, wanted);
            if (item == GPI_QUEUE_NONE)
                continue;
            m.place[item] = draw(&seed) % 2 ? OUT : FREE; /* sent for now, or ended */
            m.queued--;
        } else if (what < 90) {
            item = pick(&m, OUT, draw(&seed));
            if (item == GPI_QUEUE_NONE)
                continue;
            gpi_queue_put_back(&q, item, m.priority[item], before, &m);
            m.place[item] = QUEUED;
            m.queued++;
        } else {
            item = pick(&m, QUEUED, draw(&seed));
            if (item == GPI_QUEUE_NONE)
                continue;
            gpi_queue_remove(&q, item, m.priority[item]);
            m.place[item] = FREE;
            m.queued--;
        }
        check(&q, &m);
    }
    while (m.queued > 0) {
        uint32_t wanted = model_next(&m), item = gpi_queue_pop(&q);

        T_EQ(item, wanted);
        m.place[item] = FREE;
        m.queued--;
    }
    T_EQ(gpi_queue_pop(&q), GPI_QUEUE_NONE);
    gpi_queue_fini(&q);
}

T_CASE(empty)
{
    struct gpi_queue q;

    T_EQ(gpi_queue_init(&q, 1), 0);
    T_EQ(gpi_queue_pop(&q), GPI_QUEUE_NONE);
    T_EQ(q.count, 0);
    gpi_queue_push(&q, 0, 7);
    gpi_queue_remove(&q, 0, 7);
    T_EQ(gpi_queue_pop(&q), GPI_QUEUE_NONE);
    gpi_queue_fini(&q);
    gpi_queue_fini(&q); /* harmless */
}

/* As many priorities as items: a push always finds a band. */
T_CASE(every_item_its_own_priority)
{
    enum { MANY = 3000 };
    struct gpi_queue q;

    T_EQ(gpi_queue_init(&q, MANY), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        gpi_queue_push(&q, i, (int32_t)(i * 2654435761u));
    }
    int64_t last = INT64_MAX;
    for (uint32_t i = 0; i < MANY; i++) {
        int32_t priority = (int32_t)(gpi_queue_pop(&q) * 2654435761u);

        T_CMP(priority, <=, last);
        last = priority;
    }
    gpi_queue_fini(&q);
}

static bool counted_before(void *looks, uint32_t a, uint32_t b)
{
    ++*(uint64_t *)looks;
    return a < b;
}

/* Of many that come back in their order each finds its place without a walk along all that came
 * back before it, whether younger ones are there or not; so does one that is older than all. */
T_CASE(many_come_back)
{
    enum { MANY = 100000, THIRD = MANY / 3 };
    struct gpi_queue q;
    uint64_t looks = 0;

    T_EQ(gpi_queue_init(&q, MANY), 0);
    for (uint32_t i = 2 * THIRD; i < MANY; i++)
        gpi_queue_put_back(&q, i, 0, counted_before, &looks);
    for (uint32_t i = THIRD; i < 2 * THIRD; i++)
        gpi_queue_put_back(&q, i, 0, counted_before, &looks);
    for (uint32_t i = THIRD; i > 0; i--)
        gpi_queue_put_back(&q, i - 1, 0, counted_before, &looks);
    T_CMP(looks, <=, 4 * MANY);
    for (uint32_t i = 0; i < MANY; i++)
        T_EQ(gpi_queue_pop(&q), i);
    gpi_queue_fini(&q);
}

static uint64_t cpu_time(void)
{
    struct timespec t;

    T_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* Each its own priority, as where they stand for a date: the first goes, and a last or a first
 * comes, without the others being moved. */
T_LONG_CASE(many_priorities, 120)
{
    enum { MANY = 300000 };
    const uint64_t before = cpu_time();
    struct gpi_queue q;

    T_EQ(gpi_queue_init(&q, MANY), 0);
    for (uint32_t i = 0; i < MANY / 2; i++)
        gpi_queue_push(&q, i, -(int32_t)i);
    for (uint32_t i = MANY / 2; i < MANY; i++) /* all drift to one end of what there is */
        T_EQ((gpi_queue_push(&q, i, -(int32_t)i), gpi_queue_pop(&q)), i - MANY / 2);
    for (uint32_t i = 0; i < MANY / 2; i++)
        gpi_queue_push(&q, i, (int32_t)i + 1);
    for (uint32_t i = MANY / 2; i > 0; i--)
        T_EQ(gpi_queue_pop(&q), i - 1);
    for (uint32_t i = MANY / 2; i < MANY; i++)
        T_EQ(gpi_queue_pop(&q), i);
    T_EQ(gpi_queue_pop(&q), GPI_QUEUE_NONE);
    gpi_queue_fini(&q);
    T_CMP(cpu_time() - before, <, T_S(10));
}
