/* SPDX-License-Identifier: MIT */
/*
 * results.c - the result arena: runs of granules that the worker takes and the host gives back,
 * in any order, without a lock.                                                          [C18]
 */
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/page.h"
#include "worker/worker.h"

enum { GRANULES = 48, HELD = 24 };
#define NO_ROOM UINT64_MAX

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static struct gpud_worker *new_worker(void)
{
    struct gpud_worker *w = calloc(1, sizeof(*w));

    T_CHECK(w);
    w->plan.page = aligned_alloc(64, (gpi_page_size(GRANULES * GPI_GRANULE) + 63) / 64 * 64);
    T_CHECK(w->plan.page);
    memset(w->plan.page, 0, gpi_page_size(GRANULES * GPI_GRANULE));
    atomic_store(&w->plan.page->share, GRANULES * GPI_GRANULE);
    return w;
}

static void free_worker(struct gpud_worker *w)
{
    free(w->plan.page);
    free(w);
}

static uint32_t granules(uint64_t size)
{
    return (uint32_t)((size + GPI_GRANULE - 1) / GPI_GRANULE);
}

/* As the host gives granules back. */
static void give_back(struct gpi_page *p, uint64_t off, uint64_t size)
{
    for (uint32_t i = 0; i < granules(size); i++)
        atomic_fetch_add_explicit(&p->granule[off / GPI_GRANULE + i].freed, 1,
                                  memory_order_release);
}

/* ---- one thread against a model ---- */

struct held {
    uint64_t off, size;
    bool told; /* the host knows of it: it is the host that gives it back */
};

struct model {
    bool taken[GRANULES];
    struct held held[GRANULES];
    uint32_t count;
};

static uint32_t longest_run(const struct model *m, uint32_t n)
{
    uint32_t run = 0, longest = 0;

    for (uint32_t i = 0; i < n; i++) {
        run = m->taken[i] ? 0 : run + 1;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static void take(struct gpud_worker *w, struct model *m, uint64_t size)
{
    uint64_t share = atomic_load(&w->plan.page->share), off = gpi_worker_result_alloc(w, size);
    uint32_t need = granules(size);

    if (off == NO_ROOM) {
        T_CHECK(size > share || longest_run(m, (uint32_t)(share / GPI_GRANULE)) < need);
        return;
    }
    T_EQ(off % GPI_GRANULE, 0);
    T_CMP(off + (uint64_t)need * GPI_GRANULE, <=, share);
    for (uint32_t i = 0; i < need; i++) {
        if (m->taken[off / GPI_GRANULE + i])
            T_FAIL("granule %u is given out twice", (unsigned)(off / GPI_GRANULE) + i);
        m->taken[off / GPI_GRANULE + i] = true;
    }
    m->held[m->count++] = (struct held){ .off = off, .size = size, .told = true };
}

static void drop(struct gpud_worker *w, struct model *m, uint32_t which, bool told)
{
    struct held h = m->held[which];

    if (told)
        give_back(w->plan.page, h.off, h.size);
    else
        gpi_worker_result_undo(w, h.off, h.size);
    for (uint32_t i = 0; i < granules(h.size); i++)
        m->taken[h.off / GPI_GRANULE + i] = false;
    m->held[which] = m->held[--m->count];
}

static uint64_t draw_size(uint64_t *seed)
{
    static const uint64_t edges[] = {
        4097, GPI_GRANULE - 1, GPI_GRANULE, GPI_GRANULE + 1, 2 * GPI_GRANULE, 7 * GPI_GRANULE + 5
    };

    switch (draw(seed) % 16) {
    case 0:
        return 4097 + draw(seed) % (GRANULES * GPI_GRANULE);
    case 1:
        return GRANULES * GPI_GRANULE + draw(seed) % 3;
    case 2:
        return UINT64_MAX - draw(seed) % (2 * GPI_GRANULE); /* a user may ask for anything */
    default:
        return edges[draw(seed) % 6];
    }
}

/* C18: room is found exactly when there is a run of it, whoever gave it back and in what order. */
T_CASE(against_a_model)
{
    struct gpud_worker *w = new_worker();
    static struct model m;
    uint64_t seed = 0x9e3779b97f4a7c15U;

    for (uint32_t i = 0; i < GRANULES; i++) { /* the counters wrap; nothing depends on it */
        atomic_store(&w->plan.page->granule[i].used, UINT32_MAX - i * 3);
        atomic_store(&w->plan.page->granule[i].freed, UINT32_MAX - i * 3);
    }
    for (unsigned op = 0; op < t_rounds(1000000, 100000); op++) {
        uint64_t what = draw(&seed) % 100;

        if (what < 50)
            take(w, &m, draw_size(&seed));
        else if (what < 97 && m.count > 0)
            drop(w, &m, (uint32_t)(draw(&seed) % m.count), what < 85);
        else if (what == 97) /* the share is the host's to change */
            atomic_store(&w->plan.page->share, draw(&seed) % (GRANULES * GPI_GRANULE + 1));
        else if (what == 98)
            atomic_store(&w->plan.page->share, GRANULES * GPI_GRANULE);
    }
    while (m.count > 0)
        drop(w, &m, 0, true);
    atomic_store(&w->plan.page->share, GRANULES * GPI_GRANULE);
    T_EQ(gpi_worker_result_alloc(w, GRANULES * GPI_GRANULE), 0); /* all of it in one piece */
    free_worker(w);
}

/* What was undone is taken again first: it is warm. */
T_CASE(undone_is_warm)
{
    struct gpud_worker *w = new_worker();
    uint64_t first = gpi_worker_result_alloc(w, 5000), second = gpi_worker_result_alloc(w, 5000);

    T_CHECK(first != second);
    gpi_worker_result_undo(w, second, 5000);
    T_EQ(gpi_worker_result_alloc(w, 5000), second);
    free_worker(w);
}

/* C18: what the host has given back is used again before memory that was never touched. */
/* In a pinned arena a result lies across two pieces only if it is larger than one. */
T_CASE(pinned_in_pieces)
{
    const uint64_t room = 2 * GPI_PIN_PIECE, mib = (uint64_t)1 << 20;
    struct gpud_worker *w = new_worker();

    free(w->plan.page);
    w->plan.page = aligned_alloc(64, (gpi_page_size(room) + 63) / 64 * 64);
    T_CHECK(w->plan.page);
    memset(w->plan.page, 0, gpi_page_size(room));
    atomic_store(&w->plan.page->share, room);
    w->granules_granted = (uint32_t)(room / GPI_GRANULE);
    w->pinned = true;
    T_EQ(gpi_worker_result_alloc(w, 600 * mib), 0);
    T_EQ(gpi_worker_result_alloc(w, 600 * mib), GPI_PIN_PIECE);
    T_EQ(gpi_worker_result_alloc(w, 500 * mib), NO_ROOM);
    T_EQ(gpi_worker_result_alloc(w, 300 * mib), 600 * mib);
    gpi_worker_result_undo(w, 600 * mib, 300 * mib);
    gpi_worker_result_undo(w, GPI_PIN_PIECE, 600 * mib);
    T_EQ(gpi_worker_result_alloc(w, 1100 * mib), 600 * mib);
    free_worker(w);
}

T_CASE(reused_before_fresh)
{
    struct gpud_worker *w = new_worker();
    uint64_t first = gpi_worker_result_alloc(w, 3 * GPI_GRANULE),
             second = gpi_worker_result_alloc(w, 5000), off;

    for (unsigned i = 0; i < 1000; i++) {
        give_back(w->plan.page, first, 3 * GPI_GRANULE);
        first = gpi_worker_result_alloc(w, (1 + i % 3) * GPI_GRANULE);
        T_CMP(first, !=, NO_ROOM);
        for (uint64_t k = 1 + i % 3; k < 3; k++) { /* always three of them in use */
            off = gpi_worker_result_alloc(w, 1);
            T_CMP(off, <, 4 * GPI_GRANULE);
            give_back(w->plan.page, off, 1);
        }
        give_back(w->plan.page, first, (1 + i % 3) * GPI_GRANULE);
        first = gpi_worker_result_alloc(w, 3 * GPI_GRANULE);
    }
    give_back(w->plan.page, second, 5000);
    T_EQ(atomic_load(&w->plan.page->granules_used), 4);
    free_worker(w);
}

/* ---- worker and host at once ---- */

struct shared {
    struct gpud_worker *w;
    /* stands for the arena: who owns a granule leaves a mark there */
    _Atomic uint64_t memory[GRANULES];
    struct held mail[64];
    _Atomic uint64_t sent, received;
    uint64_t rounds, taken_twice; /* the host's */
};

enum { ROUNDS = 1000000 };

static void release_one(struct shared *s, struct held *mine, uint64_t *count, uint64_t *seed)
{
    uint64_t which = draw(seed) % *count, mark;
    struct held h = mine[which];

    for (uint32_t i = 0; i < granules(h.size); i++) {
        mark =
            atomic_exchange_explicit(&s->memory[h.off / GPI_GRANULE + i], 0, memory_order_relaxed);
        s->taken_twice += mark != h.off + 1;
    }
    give_back(s->w->plan.page, h.off, h.size);
    mine[which] = mine[--*count];
}

/* As the host: holds results for a while, gives them back in any order. */
static void *hold_and_free(void *arg)
{
    struct shared *s = arg;
    struct held mine[HELD];
    uint64_t seed = 4711, count = 0;

    for (uint64_t n = 0; n < s->rounds;) {
        if (atomic_load_explicit(&s->sent, memory_order_acquire) > n && count < HELD) {
            mine[count++] = s->mail[n++ % 64];
            atomic_store_explicit(&s->received, n, memory_order_release);
        } else if (count == 0) {
            (void)sched_yield();
            continue;
        }
        if (count == HELD || draw(&seed) % 3 == 0)
            release_one(s, mine, &count, &seed);
    }
    while (count > 0)
        release_one(s, mine, &count, &seed);
    return NULL;
}

/* C18 A4: a million results, given back out of order by the other side while the worker takes more:
 * no granule is ever in two hands, and all is free in the end. */
T_LONG_CASE(frees_from_the_other_side, 120)
{
    static struct shared s;
    uint64_t seed = 99, until = t_now() + 4 * T_PATIENCE, full = 0;
    pthread_t thread;

    s.w = new_worker();
    s.rounds = t_rounds(ROUNDS, 100000);
    t_thread(&thread, hold_and_free, &s);
    for (uint64_t n = 0; n < s.rounds;) {
        uint64_t size = 1 + draw(&seed) % (4 * GPI_GRANULE), off;

        if (n - atomic_load_explicit(&s.received, memory_order_acquire) >= 64 ||
            (off = gpi_worker_result_alloc(s.w, size)) == NO_ROOM) {
            full++;
            (void)sched_yield();
            if (t_now() > until)
                T_FAIL("no room comes back after %llu results", (unsigned long long)n);
            continue;
        }
        for (uint32_t i = 0; i < granules(size); i++)
            if (atomic_exchange_explicit(&s.memory[off / GPI_GRANULE + i], off + 1,
                                         memory_order_relaxed))
                T_FAIL("a granule that the host holds is given out again");
        if (draw(&seed) % 8 == 0) { /* the task changes its mind before the host is told */
            for (uint32_t i = 0; i < granules(size); i++)
                atomic_store_explicit(&s.memory[off / GPI_GRANULE + i], 0, memory_order_relaxed);
            gpi_worker_result_undo(s.w, off, size);
            continue;
        }
        s.mail[n % 64] = (struct held){ .off = off, .size = size };
        atomic_store_explicit(&s.sent, ++n, memory_order_release);
    }
    t_join(thread);
    T_EQ(s.taken_twice, 0);
    for (uint32_t i = 0; i < GRANULES; i++)
        T_EQ(atomic_load(&s.w->plan.page->granule[i].used),
             atomic_load(&s.w->plan.page->granule[i].freed));
    printf("%llu times without room\n", (unsigned long long)full);
    free_worker(s.w);
}
