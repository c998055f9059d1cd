/* SPDX-License-Identifier: MIT */
/*
 * page.c - the words two processes share: claims, end records, texts, bells.
 */
#include "harness.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/page.h"

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* ---- words ---- */

/* A word belongs to one send and says one thing; sizes grow with the result arena alone. */
T_CASE(words)
{
    static const uint64_t numbers[] = { 1, 2, 3, 255, 256, UINT32_MAX, (1ull << 54) - 1 };
    enum { N = T_LENGTH(numbers) };

    for (size_t a = 0; a < N; a++)
        for (size_t b = 0; b < N; b++)
            for (unsigned s = 0; s < 4; s++)
                for (unsigned r = 0; r < 4; r++) {
                    T_EQ(gpi_claim_word(numbers[a], s) == gpi_claim_word(numbers[b], r),
                         a == b && s == r);
                    T_EQ(gpi_end_word(numbers[a], s) == gpi_end_word(numbers[b], r),
                         a == b && s == r);
                }
    T_EQ(gpi_end_word(77, GPI_END_OK) >> 8, 77);
    T_EQ(gpi_page_size(0), sizeof(struct gpi_page));
    T_EQ(gpi_page_size(3 * GPI_GRANULE) - gpi_page_size(0), 3 * sizeof(struct gpi_granule));
}

/* Who takes a task takes it once; a stale number takes nothing; a failed take changes nothing. */
T_CASE(one_taker)
{
    static const enum gpi_claim ways[] = { GPI_CLAIMED, GPI_RECALLED, GPI_CANCELLED };
    static struct gpi_cell c;

    for (uint64_t number = 1; number < 1000; number++)
        for (size_t first = 0; first < 3; first++) {
            atomic_store(&c.claim, gpi_claim_word(number, GPI_SENT));
            for (uint64_t stale = number > 5 ? number - 5 : 0; stale < number; stale++)
                T_CHECK(!gpi_cell_take(&c, stale, GPI_CLAIMED));
            T_CHECK(!gpi_cell_take(&c, number + 1, GPI_CLAIMED));
            T_CHECK(gpi_cell_take(&c, number, ways[first]));
            for (size_t second = 0; second < 3; second++)
                T_CHECK(!gpi_cell_take(&c, number, ways[second]));
            T_CHECK(atomic_load(&c.claim) == gpi_claim_word(number, ways[first]));
        }
}

/* ---- claim against recall and cancel ---- */

enum { SENDS_MAX = 3000000, CELLS = 8 };

struct race {
    struct gpi_cell cell[CELLS];
    _Atomic uint8_t order[GPI_CELLS];
    _Atomic uint64_t sent;
    _Atomic int over;
    unsigned char ran[SENDS_MAX + 1];   /* the worker's */
    unsigned char taken[SENDS_MAX + 1]; /* the host's */
    uint64_t sends, wrong_data;
};

/* As the worker: every number that was sent, in order, if it can be had. */
static void *claim_all(void *arg)
{
    struct race *r = arg;

    for (uint64_t next = 1; next <= r->sends;) {
        if (next > atomic_load_explicit(&r->sent, memory_order_acquire)) {
            if (atomic_load(&r->over))
                return NULL;
            (void)sched_yield();
            continue;
        }
        struct gpi_cell *c =
            &r->cell[atomic_load_explicit(&r->order[next % GPI_CELLS], memory_order_relaxed) %
                     CELLS];
        if (gpi_cell_take(c, next, GPI_CLAIMED)) {
            r->ran[next]++;
            /* only an owner may read them */
            r->wrong_data += c->task_id != next || c->tag != ~next;
            atomic_store_explicit(&c->end, gpi_end_word(next, GPI_END_OK), memory_order_release);
        }
        next++;
    }
    return NULL;
}

struct host {
    struct race *r;
    uint64_t number[CELLS]; /* in flight, 0 = free */
    uint64_t seed, recalled, cancelled, lost;
};

static void look_for_ends(struct host *h)
{
    for (unsigned i = 0; i < CELLS; i++)
        if (h->number[i] &&
            atomic_load_explicit(&h->r->cell[i].end, memory_order_acquire) >> 8 == h->number[i])
            h->number[i] = 0;
}

/* Takes some task back that may or may not have been claimed. */
static void take_one(struct host *h)
{
    unsigned i = (unsigned)(draw(&h->seed) % CELLS);
    enum gpi_claim to = draw(&h->seed) % 4 ? GPI_RECALLED : GPI_CANCELLED;
    uint64_t n = h->number[i];

    if (!n)
        return;
    if (!gpi_cell_take(&h->r->cell[i], n, to)) {
        h->lost++;
        return;
    }
    h->r->taken[n]++;
    h->number[i] = 0; /* free at once: the stale number is still on its way */
    h->recalled += to == GPI_RECALLED;
    h->cancelled += to == GPI_CANCELLED;
}

static uint64_t oldest(const struct host *h, uint64_t otherwise)
{
    for (unsigned i = 0; i < CELLS; i++)
        if (h->number[i] && h->number[i] < otherwise)
            otherwise = h->number[i];
    return otherwise;
}

static void send_one(struct host *h, uint64_t n)
{
    unsigned i = 0;
    struct gpi_cell *c;

    while (h->number[i])
        i++;
    c = &h->r->cell[i];
    c->task_id = n;
    c->tag = ~n;
    h->number[i] = n;
    atomic_store_explicit(&c->claim, gpi_claim_word(n, GPI_SENT), memory_order_release);
    atomic_store_explicit(&h->r->order[n % GPI_CELLS], (uint8_t)i, memory_order_relaxed);
    atomic_store_explicit(&h->r->sent, n, memory_order_release);
}

static bool all_busy(const struct host *h)
{
    for (unsigned i = 0; i < CELLS; i++)
        if (!h->number[i])
            return false;
    return true;
}

/* C2 A3: over millions of sends, cells reused at once after a recall: each task is either run or
 * taken back, never both, never neither, and nobody reads what is not theirs. [T19] */
T_LONG_CASE(claim_races, 120)
{
    static struct race r;
    struct host h = { .r = &r, .seed = 0x2545f4914f6cdd1dU };
    uint64_t until = t_now() + T_PATIENCE / 4, n = 0;
    pthread_t thread;

    r.sends = t_rounds(SENDS_MAX, 200000);
    t_thread(&thread, claim_all, &r);
    while (n < r.sends) {
        look_for_ends(&h);
        if (draw(&h.seed) % 3 == 0)
            take_one(&h);
        /* Numbers in flight span less than the order ring. */
        if (all_busy(&h) || n + 1 - oldest(&h, n + 1) >= GPI_CELLS - 1) {
            if (draw(&h.seed) % 64 == 0)
                (void)sched_yield();
            if (t_now() > until)
                T_FAIL("a task that was sent is neither run nor to be had back");
        } else {
            send_one(&h, ++n);
            if (n % 4096 == 0)
                until = t_now() + T_PATIENCE / 4;
        }
    }
    while (oldest(&h, UINT64_MAX) != UINT64_MAX) {
        look_for_ends(&h);
        if (t_now() > until)
            T_FAIL("task %llu is neither run nor to be had back",
                   (unsigned long long)oldest(&h, UINT64_MAX));
    }
    atomic_store(&r.over, 1);
    t_join(thread);
    for (n = 1; n <= r.sends; n++)
        if (r.ran[n] + r.taken[n] != 1)
            T_FAIL("task %llu was run %u times and taken back %u times", (unsigned long long)n,
                   r.ran[n], r.taken[n]);
    T_EQ(r.wrong_data, 0);
    printf("%llu recalled, %llu cancelled, %llu times too late\n", (unsigned long long)h.recalled,
           (unsigned long long)h.cancelled, (unsigned long long)h.lost);
    /* how many, and whether some were too late, is the scheduler's to decide */
    T_CMP(h.recalled, >, 0);
}

/* ---- hostile words ---- */

struct look_at {
    uint64_t number, sent_at, now, arena;
};

/* What a record that the host accepts must be like; independent of page.c. */
static int acceptable(const struct gpi_ending *e, const struct look_at *at, uint64_t clock)
{
    uint64_t latest = at->now > clock ? at->now : clock;

    if (e->end != GPI_END_OK && e->end != GPI_END_FAILED && e->end != GPI_END_EXPIRED)
        return 0;
    if (e->started_at < at->sent_at || e->ended_at < e->started_at || e->ended_at > latest)
        return 0;
    if (e->stopped > e->ended_at - e->started_at)
        return 0;
    if (e->result_place == GPI_PLACE_NONE)
        return e->result_size == 0;
    if (e->result_place == GPI_PLACE_CELL)
        return e->result_size <= GPI_INLINE_SIZE;
    return e->result_place == GPI_PLACE_ARENA && e->result_size > 0 &&
           e->result_off % GPI_GRANULE == 0 && e->result_off < at->arena &&
           e->result_size <= at->arena - e->result_off;
}

static enum gpi_look look(const struct gpi_cell *c, const struct look_at *at)
{
    struct gpi_ending e;
    enum gpi_look what;

    memset(&e, 0xa5, sizeof(e));
    what = gpi_cell_look(c, at->number, at->sent_at, at->now, at->arena, &e);
    if (atomic_load(&c->end) >> 8 != at->number)
        T_EQ(what, GPI_LOOK_NOT_YET);
    else
        T_CMP(what, !=, GPI_LOOK_NOT_YET);
    if (what == GPI_LOOK_ENDED)
        T_CHECK(acceptable(&e, at, gpi_now()));
    return what;
}

/* C17: whatever bytes a cell holds, a look answers, and what it lets pass is within bounds. */
T_CASE(look_at_random_bytes)
{
    struct gpi_cell c;
    uint64_t seed = 0x9e3779b97f4a7c15U, passed = 0;

    for (unsigned i = 0; i < t_rounds(2000000, 200000); i++) {
        struct look_at at = { .number = draw(&seed) >> 8,
                              .sent_at = draw(&seed),
                              .now = draw(&seed),
                              .arena = draw(&seed) };
        unsigned char bytes[sizeof(c)];

        for (size_t n = 0; n < sizeof(bytes); n += 8) {
            uint64_t word = draw(&seed);
            memcpy(bytes + n, &word, 8);
        }
        memcpy(&c, bytes, sizeof(c));
        if (i % 2)
            atomic_store(&c.end, at.number << 8 | draw(&seed) % 4);
        passed += look(&c, &at) == GPI_LOOK_ENDED;
    }
    printf("%llu passed\n", (unsigned long long)passed);
}

/* A time or size at or next to a bound, or anywhere. */
static uint64_t near(uint64_t *seed, uint64_t bound)
{
    switch (draw(seed) % 8) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX - draw(seed) % 3;
    case 2:
        return draw(seed);
    case 3:
        return bound + 1 + draw(seed) % 5;
    case 4:
        return bound - 1 - draw(seed) % 5;
    default:
        return bound;
    }
}

/* C17: records that differ from an honest one in one or two places, at the bounds. */
T_CASE(look_at_the_bounds)
{
    uint64_t seed = 88172645463325252U, passed = 0, refused = 0;

    for (unsigned i = 0; i < t_rounds(2000000, 200000); i++) {
        struct look_at at = { .number = 1 + draw(&seed) % 1000,
                              .arena = GPI_GRANULE * (draw(&seed) % 5) };
        struct gpi_cell c;
        uint64_t run = 1000 + draw(&seed) % 1000;

        memset(&c, 0, sizeof(c));
        at.now = gpi_now();
        at.sent_at = at.now - 1000000;
        atomic_store(&c.end, gpi_end_word(at.number, GPI_END_OK + (enum gpi_end)(draw(&seed) % 2)));
        c.ended_at = at.now - draw(&seed) % 1000;
        atomic_store(&c.started_at, c.ended_at - run);
        c.stopped = draw(&seed) % 2 ? run : 0;
        c.result_place = (uint16_t)(draw(&seed) % 3);
        c.result_size = c.result_place == GPI_PLACE_CELL    ? GPI_INLINE_SIZE
                        : c.result_place == GPI_PLACE_ARENA ? at.arena
                                                            : 0;
        for (uint64_t change = draw(&seed) % 3; change > 0; change--)
            switch (draw(&seed) % 7) {
            case 0:
                atomic_store(&c.started_at, near(&seed, at.sent_at));
                break;
            case 1:
                c.ended_at = near(&seed, draw(&seed) % 2 ? at.now + 3600 * GPI_S
                                                         : atomic_load(&c.started_at));
                break;
            case 2:
                c.stopped = near(&seed, run);
                break;
            case 3:
                c.result_place = (uint16_t)near(&seed, GPI_PLACE_ARENA);
                break;
            case 4:
                c.result_size = near(&seed, draw(&seed) % 2 ? at.arena : GPI_INLINE_SIZE);
                break;
            case 5:
                c.result_off = near(&seed, draw(&seed) % 2 ? at.arena : GPI_GRANULE);
                break;
            default:
                atomic_store(&c.end, at.number << 8 | draw(&seed) % 256);
                break;
            }
        if (look(&c, &at) == GPI_LOOK_ENDED)
            passed++;
        else
            refused++;
    }
    T_CMP(passed, >, 1000);
    T_CMP(refused, >, 1000);
}

/* The other direction: what an honest worker writes is never refused, and arrives as written. */
T_CASE(look_at_an_honest_record)
{
    const uint64_t now = gpi_now(), arena = 4 * GPI_GRANULE;
    static const struct {
        uint64_t ran, stopped, off, size;
        enum gpi_place place;
    } honest[] = {
        { 0, 0, 0, 0, GPI_PLACE_NONE },
        { 10, 10, 12345, 0, GPI_PLACE_NONE }, /* an old offset is left where it was */
        { 1000, 1, 0, 1, GPI_PLACE_CELL },
        { 1000, 0, 0, GPI_INLINE_SIZE, GPI_PLACE_CELL },
        { 1000, 0, 0, 4 * GPI_GRANULE, GPI_PLACE_ARENA },
        { 1000, 0, 3 * GPI_GRANULE, GPI_GRANULE, GPI_PLACE_ARENA },
        { 1000, 0, 3 * GPI_GRANULE, 4097, GPI_PLACE_ARENA },
    };

    for (size_t i = 0; i < T_LENGTH(honest); i++)
        for (uint64_t number = 1; number < (1ull << 50); number = number * 3 + 1)
            for (enum gpi_end end = GPI_END_OK; end <= GPI_END_EXPIRED; end++) {
                struct gpi_ending e;
                struct gpi_cell c;

                memset(&c, 0, sizeof(c));
                atomic_store(&c.started_at, now - honest[i].ran);
                c.ended_at = now;
                c.stopped = honest[i].stopped;
                c.result_place = (uint16_t)honest[i].place;
                c.result_off = honest[i].off;
                c.result_size = honest[i].size;
                c.code = -7;
                c.flags = (uint16_t)(i % 2 ? GPI_CELL_EXPIRED : GPI_CELL_TEXT);
                atomic_store(&c.end, gpi_end_word(number, end));
                /* The host's own time may be older than the end. */
                T_EQ(gpi_cell_look(&c, number, now - honest[i].ran, now - 5000000, arena, &e),
                     GPI_LOOK_ENDED);
                T_EQ(e.end, end);
                T_EQ(e.ended_at, now);
                T_EQ(e.started_at, now - honest[i].ran);
                T_EQ(e.stopped, honest[i].stopped);
                T_EQ(e.result_place, honest[i].place);
                T_EQ(e.result_size, honest[i].size);
                T_EQ(e.code, -7);
                T_EQ(e.expired, i % 2);
                T_EQ(e.has_text, !(i % 2));
                T_EQ(gpi_cell_look(&c, number + 1, now - honest[i].ran, now, arena, &e),
                     GPI_LOOK_NOT_YET);
            }
}

/* C17: a text is terminated within its room, whatever was there. */
T_CASE(texts_end)
{
    char from[GPI_FAIL_TEXT_SIZE], to[GPI_FAIL_TEXT_SIZE + 1];
    uint64_t seed = 1;

    for (size_t size = 1; size <= sizeof(from); size++) {
        memset(from, 'x', sizeof(from));
        if (draw(&seed) % 2)
            from[draw(&seed) % size] = '\0';
        to[size] = 'y';
        gpi_page_text(to, from, size);
        T_EQ(to[size], 'y');
        T_EQ(strnlen(to, size), strnlen(from, size) < size ? strnlen(from, size) : size - 1);
        T_CHECK(!strncmp(to, from, size - 1));
    }
}

static void put_progress(struct gpi_cell_extra *x, double fraction)
{
    uint64_t bits;

    memcpy(&bits, &fraction, sizeof(bits));
    atomic_store(&x->progress, bits);
}

/* C17: progress is a number from 0 to 1 or none at all. */
T_CASE(progress_is_bounded)
{
    static const double good[] = { 0.0, -0.0, 1.0, 0.5, 4.9e-324, 0.999999999 };
    static const double bad[] = {
        -4.9e-324,        1.0000000000000002, -1.0, 1e308, __builtin_inf(),
        -__builtin_inf(), __builtin_nan("")
    };
    static struct gpi_cell_extra x;
    char text[GPI_PROGRESS_TEXT_SIZE];
    uint64_t seed = 3;
    double fraction = 7;

    memset(x.progress_text, 'p', sizeof(x.progress_text));
    for (size_t i = 0; i < T_LENGTH(good); i++) {
        put_progress(&x, good[i]);
        T_CHECK(gpi_cell_progress(&x, &fraction, text));
        T_CHECK(fraction == good[i]);
        T_EQ(strlen(text), sizeof(text) - 1);
    }
    fraction = 7;
    for (size_t i = 0; i < T_LENGTH(bad); i++) {
        put_progress(&x, bad[i]);
        T_CHECK(!gpi_cell_progress(&x, &fraction, text));
    }
    put_progress(&x, 0.5);
    atomic_store(&x.progress_seq, 4711); /* odd: being written */
    T_CHECK(!gpi_cell_progress(&x, &fraction, text));
    T_CHECK(fraction == 7);
    for (unsigned i = 0; i < 1000000; i++) {
        atomic_store(&x.progress_seq, (uint32_t)draw(&seed));
        atomic_store(&x.progress, draw(&seed) >> (i % 3));
        if (gpi_cell_progress(&x, &fraction, text))
            T_CHECK(fraction >= 0 && fraction <= 1);
    }
}

/* ---- bells ---- */

enum { ROUNDS = 3000000, ROUNDS_MS = 3000 };

/* One who tells, one who falls asleep, both at once, over and over. */
struct duel {
    _Alignas(64) _Atomic uint64_t told;
    _Alignas(64) _Atomic uint32_t sleeps;
    _Alignas(64) _Atomic uint64_t at[2]; /* steps done by each */
    _Alignas(64) _Atomic uint64_t last;
    uint64_t saw; /* the sleeper's: the round whose message it saw by itself */
};

static void meet(struct duel *d, int me, uint64_t step)
{
    unsigned looks = 0;

    atomic_store(&d->at[me], step);
    while (atomic_load_explicit(&d->at[1 - me], memory_order_acquire) < step)
        if (++looks % 10000 == 0)
            (void)sched_yield();
}

static void dawdle(uint64_t *seed)
{
    for (uint64_t n = draw(seed) % 32; n > 0; n--)
        atomic_signal_fence(memory_order_seq_cst);
}

static void *fall_asleep(void *arg)
{
    struct duel *d = arg;
    uint64_t seed = 4711;

    for (uint64_t n = 1; n <= atomic_load(&d->last); n++) {
        meet(d, 1, 2 * n);
        dawdle(&seed);
        atomic_store(&d->sleeps, 1);
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&d->told, memory_order_relaxed) == n)
            d->saw = n;
        meet(d, 1, 2 * n + 1);
    }
    return NULL;
}

/* Of one who tells and then looks, and one who asks for a bell and then looks, at least one sees
 * the other: a bell is rung, or none is needed. */
T_LONG_CASE(stores_come_before_looks, 120)
{
    static struct duel d = { .last = UINT64_MAX };
    uint64_t seed = 42, until = t_now() + T_MS(t_rounds(ROUNDS_MS, ROUNDS_MS)), rang = 0, saw = 0,
             n = 0;
    pthread_t thread;

    t_thread(&thread, fall_asleep, &d);
    while (n < atomic_load(&d.last)) {
        bool ring;

        if (++n == t_rounds(ROUNDS, 100000) || (n % 1024 == 0 && t_now() > until))
            atomic_store(&d.last, n);
        meet(&d, 0, 2 * n);
        dawdle(&seed);
        atomic_store_explicit(&d.told, n, memory_order_release);
        ring = gpi_page_must_ring(&d.sleeps);
        meet(&d, 0, 2 * n + 1);
        if (!ring && d.saw != n)
            T_FAIL("round %llu: neither does the sleeper see the message nor is it to be woken",
                   (unsigned long long)n);
        rang += ring;
        saw += d.saw == n;
        atomic_store(&d.sleeps, 0);
    }
    t_join(thread);
    printf("%llu rounds: rung in %llu, seen in %llu\n", (unsigned long long)n,
           (unsigned long long)rang, (unsigned long long)saw);
    T_CMP(rang + saw, >=, n); /* on one CPU all may be seen, none rung */
}

/* Fewer where the two have one CPU between them, and each message costs two switches. */
enum { MESSAGES = 1000000, BELLS_MS = 3000 };

/* One direction: who has sent `told` messages, whether the reader sleeps, and its pipe. */
struct line {
    _Alignas(64) _Atomic uint64_t told;
    _Alignas(64) _Atomic uint32_t sleeps;
    int pipe[2];
    uint64_t rung, slept; /* the writer's; the reader's */
};

static void tell(struct line *l, uint64_t n)
{
    atomic_store_explicit(&l->told, n, memory_order_release);
    if (!gpi_page_must_ring(&l->sleeps))
        return;
    l->rung++;
    T_EQ(write(l->pipe[1], "!", 1), 1);
}

/* Waits for message n: looks for some time, then asks for a bell, looks again, and sleeps. */
static void await(struct line *l, uint64_t n, uint64_t looks)
{
    struct pollfd p = { .fd = l->pipe[0], .events = POLLIN };
    char bell[64];

    while (looks-- > 0)
        if (atomic_load_explicit(&l->told, memory_order_acquire) >= n)
            return;
    while (atomic_load_explicit(&l->told, memory_order_acquire) < n) {
        atomic_store(&l->sleeps, 1);
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load(&l->told) >= n) {
            atomic_store(&l->sleeps, 0);
            return;
        }
        l->slept++;
        if (poll(&p, 1, (int)(T_PATIENCE / 4000000)) == 0)
            T_FAIL("message %llu is there, its bell was not rung", (unsigned long long)n);
        /* bells may ring in vain, not be missing */
        T_CMP(read(l->pipe[0], bell, sizeof(bell)), >, 0);
    }
}

static struct line to_worker, to_host;
static _Atomic uint64_t last = UINT64_MAX;

/* Mostly so long that the message comes meanwhile; else so that sleep begins just as it comes. */
static uint64_t patience_of(uint64_t *seed)
{
    uint64_t kind = draw(seed) % 16;

    return kind == 0 ? draw(seed) % 64 : kind == 1 ? draw(seed) % 1024 : 200000;
}

static void *answer_all(void *arg)
{
    uint64_t seed = 4711;

    (void)arg;
    for (uint64_t n = 1; n <= atomic_load(&last); n++) {
        await(&to_worker, n, patience_of(&seed));
        tell(&to_host, n);
    }
    return NULL;
}

/* A million messages each way; both sides fall asleep at any moment around the other's message,
 * and no wake-up is lost. */
T_LONG_CASE(no_bell_is_lost, 120)
{
    uint64_t seed = 42, until = t_now() + T_MS(t_rounds(BELLS_MS, BELLS_MS));
    pthread_t thread;

    T_EQ(pipe(to_worker.pipe), 0);
    T_EQ(pipe(to_host.pipe), 0);
    t_thread(&thread, answer_all, NULL);
    for (uint64_t n = 1; n <= atomic_load(&last); n++) {
        if (n == t_rounds(MESSAGES, 100000) || (n % 1024 == 0 && t_now() > until))
            atomic_store(&last, n);
        tell(&to_worker, n);
        await(&to_host, n, patience_of(&seed));
    }
    t_join(thread);
    printf("%llu messages: %llu and %llu bells for %llu and %llu sleeps\n",
           (unsigned long long)atomic_load(&last), (unsigned long long)to_worker.rung,
           (unsigned long long)to_host.rung, (unsigned long long)to_worker.slept,
           (unsigned long long)to_host.slept);
    T_CMP(to_worker.slept, >, 0);
    T_CMP(to_host.slept, >, 0);
    for (int i = 0; i < 2; i++) {
        (void)close(to_worker.pipe[i]);
        (void)close(to_host.pipe[i]);
    }
}
