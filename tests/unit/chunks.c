/* SPDX-License-Identifier: MIT */
/*
 * chunks.c - the arena allocator against a model: a map that says, for each 64 bytes of the
 * range, which live allocation holds them.
 */
#include "harness.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/chunks.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

enum { MODEL_CHUNKS = 24, LIVE_MAX = 4096, RANDOM_OPS = 1000000 };

struct allocation {
    uint64_t offset, capacity;
};

struct model {
    struct gpi_chunks c;
    uint32_t *owner; /* per 64 bytes: 0, or 1 + index in live */
    struct allocation live[LIVE_MAX];
    uint32_t count;
    uint64_t bytes;
    uint64_t seed;
};

/* xorshift64: the same run each time. */
static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void model_init(struct model *m, uint64_t seed)
{
    memset(m, 0, sizeof *m);
    m->seed = seed;
    m->owner = calloc(MODEL_CHUNKS * GPI_CHUNK / 64, sizeof *m->owner);
    T_CHECK(m->owner != NULL);
    T_CHECK(gpi_chunks_init(&m->c, NULL, MODEL_CHUNKS * GPI_CHUNK) == 0);
}

static void model_fini(struct model *m)
{
    gpi_chunks_fini(&m->c);
    free(m->owner);
}

/* Counts the units that were not as expected, so that a check costs one comparison. */
static uint32_t repaint(struct model *m, struct allocation a, uint32_t from, uint32_t to)
{
    uint32_t wrong = 0;
    for (uint64_t u = a.offset / 64; u < (a.offset + a.capacity) / 64; u++) {
        wrong += m->owner[u] != from;
        m->owner[u] = to;
    }
    return wrong;
}

static int model_alloc(struct model *m, uint64_t size)
{
    int fresh = 7;
    uint64_t offset = gpi_chunks_alloc(&m->c, size, &fresh);
    if (offset == GPI_CHUNKS_NONE) {
        T_CHECK(fresh == 7);
        return 0;
    }
    struct allocation a = {offset, gpi_chunks_capacity(&m->c, offset)};
    T_CHECK(offset % 64 == 0);
    T_CHECK(fresh == 0 || (fresh == 1 && offset % GPI_CHUNK == 0 && size > 512 * KIB));
    T_CHECK(a.capacity >= size && a.capacity >= 64);
    T_CHECK(a.offset + a.capacity <= MODEL_CHUNKS * GPI_CHUNK);
    T_CHECK(repaint(m, a, 0, m->count + 1) == 0);
    m->live[m->count++] = a;
    m->bytes += a.capacity;
    T_CHECK(gpi_chunks_used(&m->c) == m->bytes);
    return 1;
}

static void model_free(struct model *m, uint32_t i)
{
    struct allocation a = m->live[i];
    T_CHECK(gpi_chunks_capacity(&m->c, a.offset) == a.capacity);
    gpi_chunks_free(&m->c, a.offset);
    T_CHECK(gpi_chunks_capacity(&m->c, a.offset) == 0);
    T_CHECK(repaint(m, a, i + 1, 0) == 0);
    m->bytes -= a.capacity;
    T_CHECK(gpi_chunks_used(&m->c) == m->bytes);
    m->count--;
    if (i != m->count) {
        m->live[i] = m->live[m->count];
        T_CHECK(repaint(m, m->live[i], m->count + 1, i + 1) == 0);
    }
}

static void model_free_all(struct model *m)
{
    while (m->count > 0)
        model_free(m, (uint32_t)(draw(&m->seed) % m->count));
}

/* Any offset may be asked about: it is live exactly if the model says that one begins there. */
static void model_ask(struct model *m)
{
    uint64_t offset = draw(&m->seed) % (MODEL_CHUNKS * GPI_CHUNK);
    if (draw(&m->seed) % 4 != 0)
        offset &= ~(uint64_t)63;
    uint32_t owner = m->owner[offset / 64];
    uint64_t want = 0;
    if (owner != 0 && m->live[owner - 1].offset == offset)
        want = m->live[owner - 1].capacity;
    T_CHECK(gpi_chunks_capacity(&m->c, offset) == want);
}

/* Mostly small, now and then a run of up to five chunks. */
static uint64_t random_size(struct model *m)
{
    uint64_t kind = draw(&m->seed) % 1000;
    uint64_t r = draw(&m->seed);
    if (kind < 600)
        return r % 600;
    if (kind < 900)
        return r % (9 * KIB);
    if (kind < 990)
        return r % (70 * KIB);
    return kind < 997 ? r % (600 * KIB) : r % (10 * MIB);
}

T_CASE(random_ops)
{
    struct model m;
    model_init(&m, 0x9e3779b97f4a7c15U);
    for (uint32_t i = 0; i < t_rounds(RANDOM_OPS, RANDOM_OPS / 5); i++) {
        /* Phases of growing and shrinking, so that both ends are reached. */
        uint64_t grow = i / 50000 % 2 == 0 ? 60 : 40;
        if (draw(&m.seed) % 100 < grow && m.count < LIVE_MAX)
            (void)model_alloc(&m, random_size(&m));
        else if (m.count > 0)
            model_free(&m, (uint32_t)(draw(&m.seed) % m.count));
        model_ask(&m);
    }
    model_free_all(&m);
    T_CHECK(gpi_chunks_used(&m.c) == 0);
    T_CHECK(model_alloc(&m, MODEL_CHUNKS * GPI_CHUNK));
    model_free_all(&m);
    model_fini(&m);
}

/* Each size up to the largest class gets at least itself, at most half as much again or so. */
T_CASE(capacity_fits_size)
{
    struct gpi_chunks c;
    int fresh;
    T_CHECK(gpi_chunks_init(&c, NULL, 64 * GPI_CHUNK) == 0);
    for (uint64_t size = 0; size <= 512 * KIB; size += size < 10 * KIB ? 1 : 509) {
        uint64_t offset = gpi_chunks_alloc(&c, size, &fresh);
        uint64_t capacity = gpi_chunks_capacity(&c, offset);
        T_CHECK(capacity >= size && capacity >= 64);
        T_CHECK(capacity <= 64 || capacity < 2 * size);
        gpi_chunks_free(&c, offset);
    }
    T_CHECK(gpi_chunks_used(&c) == 0);
    gpi_chunks_fini(&c);
}

/* Every place of every block size: the division by multiplication is exact. */
T_CASE(every_block_of_every_class)
{
    struct gpi_chunks c;
    int fresh;
    T_CHECK(gpi_chunks_init(&c, NULL, GPI_CHUNK) == 0);
    for (uint64_t size = 64; size <= 512 * KIB;) {
        uint64_t n = 0, capacity = 0, offset;
        while ((offset = gpi_chunks_alloc(&c, size, &fresh)) != GPI_CHUNKS_NONE) {
            capacity = gpi_chunks_capacity(&c, offset);
            T_CHECK(offset == n * capacity); /* lowest first: nothing touched ahead */
            n++;
        }
        T_CHECK(n == GPI_CHUNK / capacity);
        T_CHECK(gpi_chunks_used(&c) == n * capacity);
        T_CHECK(gpi_chunks_capacity(&c, n * capacity) == 0);
        for (uint64_t at = 0; at < GPI_CHUNK; at += 32)
            T_CHECK(gpi_chunks_capacity(&c, at) ==
                    (at % capacity == 0 && at / capacity < n ? capacity : 0));
        for (uint64_t i = 0; i < n; i++)
            gpi_chunks_free(&c, i * capacity);
        T_CHECK(gpi_chunks_used(&c) == 0);
        size = capacity + 1;
    }
    gpi_chunks_fini(&c);
}

T_CASE(exhaustion)
{
    struct gpi_chunks c;
    int fresh = 7;
    T_CHECK(gpi_chunks_init(&c, NULL, 4 * GPI_CHUNK) == 0);
    T_CHECK(gpi_chunks_alloc(&c, 4 * GPI_CHUNK + 1, &fresh) == GPI_CHUNKS_NONE);
    T_CHECK(gpi_chunks_alloc(&c, UINT64_MAX, &fresh) == GPI_CHUNKS_NONE);
    T_CHECK(fresh == 7);
    T_CHECK(gpi_chunks_alloc(&c, 4 * GPI_CHUNK, &fresh) == 0);
    T_CHECK(fresh == 1);
    T_CHECK(gpi_chunks_alloc(&c, 1, &fresh) == GPI_CHUNKS_NONE);
    T_CHECK(gpi_chunks_alloc(&c, MIB, &fresh) == GPI_CHUNKS_NONE);
    T_CHECK(gpi_chunks_capacity(&c, GPI_CHUNK) == 0); /* the inside of a run */
    T_CHECK(gpi_chunks_capacity(&c, 4 * GPI_CHUNK) == 0);
    T_CHECK(gpi_chunks_capacity(&c, GPI_CHUNKS_NONE) == 0);
    gpi_chunks_free(&c, 0);
    T_CHECK(gpi_chunks_used(&c) == 0);
    T_CHECK(gpi_chunks_alloc(&c, 3 * GPI_CHUNK, &fresh) == 0);
    T_CHECK(fresh == 0);
    gpi_chunks_fini(&c);
}

/* Runs that fit between two barriers lie across none; larger ones lie anywhere. */
T_CASE(barriers)
{
    struct gpi_chunks c;
    int fresh;

    T_CHECK(gpi_chunks_init(&c, NULL, 14 * GPI_CHUNK) == 0);
    c.barrier = 4;
    T_EQ(gpi_chunks_alloc(&c, 3 * GPI_CHUNK, &fresh), 0);
    T_EQ(gpi_chunks_alloc(&c, 2 * GPI_CHUNK, &fresh), 4 * GPI_CHUNK);
    T_EQ(gpi_chunks_alloc(&c, 4 * GPI_CHUNK, &fresh), 8 * GPI_CHUNK);
    T_EQ(gpi_chunks_alloc(&c, 1 * GPI_CHUNK, &fresh), 3 * GPI_CHUNK);
    T_EQ(gpi_chunks_alloc(&c, 3 * GPI_CHUNK, &fresh), GPI_CHUNKS_NONE); /* two and two are left */
    T_EQ(gpi_chunks_alloc(&c, 2 * GPI_CHUNK, &fresh), 6 * GPI_CHUNK);
    gpi_chunks_free(&c, 0);
    gpi_chunks_free(&c, 3 * GPI_CHUNK);
    gpi_chunks_free(&c, 4 * GPI_CHUNK);
    T_EQ(gpi_chunks_alloc(&c, 5 * GPI_CHUNK, &fresh), 0);
    gpi_chunks_fini(&c);
}

enum { OTHERS = 20 };

/* A range that several share. */
struct crowd {
    struct gpi_chunks c;
    uint64_t live[OTHERS];
    uint32_t count;
    uint64_t seed;
};

/* As often a run, of up to five chunks, as a small block. */
static uint64_t size_or_run(struct crowd *x)
{
    return draw(&x->seed) % 2 ? draw(&x->seed) % (5 * GPI_CHUNK) : draw(&x->seed) % (600 * KIB);
}

static void others_come_and_go(struct crowd *x)
{
    int fresh;

    for (uint64_t n = draw(&x->seed) % 8; n > 0; n--) {
        if (x->count == OTHERS || (x->count && draw(&x->seed) % 2)) {
            uint32_t i = (uint32_t)(draw(&x->seed) % x->count);
            gpi_chunks_free(&x->c, x->live[i]);
            x->live[i] = x->live[--x->count];
        } else {
            x->live[x->count] = gpi_chunks_alloc(&x->c, size_or_run(x), &fresh);
            x->count += x->live[x->count] != GPI_CHUNKS_NONE;
        }
    }
}

/* What was freed can be had again at once, whatever others have taken since it was first had, and
 * also when idle memory has been given back in between: alloc_block of lib/host/payload.c asks a
 * second time for what it could not pay for. */
static void have_it_again(uint32_t barrier)
{
    enum { ROUNDS = 200000 };
    struct crowd x = { .seed = 99 };
    uint64_t runs = 0, none = 0, cold;
    int fresh;

    T_EQ(gpi_chunks_init(&x.c, NULL, MODEL_CHUNKS * GPI_CHUNK), 0);
    x.c.barrier = barrier;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t size = size_or_run(&x), mine = gpi_chunks_alloc(&x.c, size, &fresh);
        others_come_and_go(&x);
        if (mine == GPI_CHUNKS_NONE) {
            none++;
            continue;
        }
        gpi_chunks_free(&x.c, mine);
        while (i % 2 && gpi_chunks_cool(&x.c, &cold) != GPI_CHUNKS_NONE)
            ;
        mine = gpi_chunks_alloc(&x.c, size, &fresh);
        T_CHECK(mine != GPI_CHUNKS_NONE);
        gpi_chunks_free(&x.c, mine);
        runs += size > GPI_CHUNKS_SMALL_MAX;
    }
    T_CMP(runs, >=, ROUNDS / 10);
    T_CMP(none, >=, ROUNDS / 20); /* it was full at times */
    gpi_chunks_fini(&x.c);
}

T_CASE(what_was_freed_can_be_had_again)
{
    have_it_again(0);
    have_it_again(4);
}

/* A range of no chunks is legal and always full. */
T_CASE(empty_range)
{
    struct gpi_chunks c;
    int fresh;
    uint64_t size;
    T_CHECK(gpi_chunks_init(&c, NULL, 0) == 0);
    T_CHECK(gpi_chunks_alloc(&c, 1, &fresh) == GPI_CHUNKS_NONE);
    T_CHECK(gpi_chunks_alloc(&c, MIB, &fresh) == GPI_CHUNKS_NONE);
    T_CHECK(gpi_chunks_capacity(&c, 0) == 0);
    T_CHECK(gpi_chunks_cool(&c, &size) == GPI_CHUNKS_NONE);
    gpi_chunks_fini(&c);
    gpi_chunks_fini(&c); /* harmless */
}

/* Warm memory first, even where colder memory lies lower. */
T_CASE(warm_first)
{
    struct gpi_chunks c;
    int fresh;
    uint64_t size;
    T_CHECK(gpi_chunks_init(&c, NULL, 8 * GPI_CHUNK) == 0);
    T_CHECK(gpi_chunks_alloc(&c, 2 * GPI_CHUNK, &fresh) == 0);
    T_CHECK(gpi_chunks_cool(&c, &size) == GPI_CHUNKS_NONE);
    T_CHECK(gpi_chunks_alloc(&c, 2 * GPI_CHUNK, &fresh) == 2 * GPI_CHUNK);
    gpi_chunks_free(&c, 0);
    T_CHECK(gpi_chunks_touched(&c) == 4 * GPI_CHUNK);
    T_CHECK(gpi_chunks_cool(&c, &size) == 0);
    T_CHECK(size == 2 * GPI_CHUNK);
    T_CHECK(gpi_chunks_cool(&c, &size) == GPI_CHUNKS_NONE);
    T_CHECK(gpi_chunks_touched(&c) == 2 * GPI_CHUNK);
    gpi_chunks_free(&c, 2 * GPI_CHUNK);
    T_CHECK(gpi_chunks_alloc(&c, GPI_CHUNK, &fresh) == 2 * GPI_CHUNK);
    T_CHECK(fresh == 0);
    T_CHECK(gpi_chunks_alloc(&c, 64, &fresh) == 3 * GPI_CHUNK);
    T_CHECK(gpi_chunks_alloc(&c, GPI_CHUNK, &fresh) == 0);
    T_CHECK(fresh == 1);
    T_CHECK(gpi_chunks_cool(&c, &size) == GPI_CHUNKS_NONE); /* nothing idle is warm */
    gpi_chunks_fini(&c);
}

/* What small blocks leave behind may have holes: a run there is fresh. */
T_CASE(small_leaves_fresh)
{
    struct gpi_chunks c;
    int fresh = 7;
    T_CHECK(gpi_chunks_init(&c, NULL, GPI_CHUNK) == 0);
    T_CHECK(gpi_chunks_alloc(&c, 100, &fresh) == 0);
    T_CHECK(fresh == 0);
    gpi_chunks_free(&c, 0);
    T_CHECK(gpi_chunks_alloc(&c, GPI_CHUNK, &fresh) == 0);
    T_CHECK(fresh == 1);
    gpi_chunks_fini(&c);
}

/* A run takes the empty chunk that a class kept, and so does another class. */
T_CASE(spare_is_given_up)
{
    struct gpi_chunks c;
    int fresh;
    uint64_t size = 0;
    T_CHECK(gpi_chunks_init(&c, NULL, GPI_CHUNK) == 0);
    for (uint64_t s = 64; s <= 512 * KIB; s *= 2) {
        T_CHECK(gpi_chunks_alloc(&c, s, &fresh) == 0);
        gpi_chunks_free(&c, 0);
    }
    T_CHECK(gpi_chunks_cool(&c, &size) == 0);
    T_CHECK(size == GPI_CHUNK);
    T_CHECK(gpi_chunks_alloc(&c, GPI_CHUNK, &fresh) == 0);
    gpi_chunks_fini(&c);
}

/* Three chunks of a class, all emptied: one stays, the others are there for others at once. */
T_CASE(one_spare_per_class)
{
    struct gpi_chunks c;
    int fresh;
    T_CHECK(gpi_chunks_init(&c, NULL, 4 * GPI_CHUNK) == 0);
    for (uint32_t i = 0; i < 12; i++)
        T_CHECK(gpi_chunks_alloc(&c, 512 * KIB, &fresh) == i * 512 * KIB);
    for (uint32_t i = 0; i < 12; i++)
        gpi_chunks_free(&c, i * 512 * KIB);
    /* Chunk 0 stays with its class, 1 and 2 are idle and warm, 3 is cold. */
    T_CHECK(gpi_chunks_alloc(&c, 64, &fresh) == GPI_CHUNK);
    T_CHECK(gpi_chunks_alloc(&c, 512 * KIB, &fresh) == 0);
    T_CHECK(gpi_chunks_alloc(&c, 128, &fresh) == 2 * GPI_CHUNK);
    T_CHECK(gpi_chunks_alloc(&c, 192, &fresh) == 3 * GPI_CHUNK);
    gpi_chunks_fini(&c);
}

/* The last freed place is the next one taken. */
T_CASE(reuses_what_is_warm)
{
    struct gpi_chunks c;
    int fresh;
    T_CHECK(gpi_chunks_init(&c, NULL, GPI_CHUNK) == 0);
    for (uint32_t i = 0; i < 1000; i++)
        T_CHECK(gpi_chunks_alloc(&c, 64, &fresh) == i * 64);
    gpi_chunks_free(&c, 10 * 64);
    gpi_chunks_free(&c, 700 * 64);
    T_CHECK(gpi_chunks_alloc(&c, 64, &fresh) == 700 * 64);
    T_CHECK(gpi_chunks_alloc(&c, 64, &fresh) == 10 * 64);
    T_CHECK(gpi_chunks_alloc(&c, 64, &fresh) == 1000 * 64);
    gpi_chunks_fini(&c);
}

/* A pool of one chunk serves other classes than the one that holds it, but never smaller. */
T_CASE(borrows_from_larger_class)
{
    struct gpi_chunks c;
    int fresh;
    T_CHECK(gpi_chunks_init(&c, NULL, GPI_CHUNK) == 0);
    T_CHECK(gpi_chunks_alloc(&c, 16 * KIB, &fresh) == 0);
    uint64_t small = gpi_chunks_alloc(&c, 1, &fresh);
    T_CHECK(gpi_chunks_capacity(&c, small) == 16 * KIB);
    T_CHECK(gpi_chunks_alloc(&c, 16 * KIB + 1, &fresh) == GPI_CHUNKS_NONE);
    gpi_chunks_free(&c, small);
    T_CHECK(gpi_chunks_used(&c) == 16 * KIB);
    gpi_chunks_fini(&c);
}
