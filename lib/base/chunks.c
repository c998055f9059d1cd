/* SPDX-License-Identifier: MIT */
/*
 * chunks.c - owns which bytes of an arena are taken.
 *
 * A chunk of a size class has one bit per block and, above those, one bit per word of 64
 * blocks and one per group of 64 words that says "no free block in here": three steps find a
 * free block among 32768.  Bits rather than a free list in the blocks, because the blocks are
 * shared memory, because the bits also answer "is this live?", and because the lowest free
 * block is taken first, so a fresh chunk is not touched ahead of need.
 */
#include "base/chunks.h"

#include <assert.h>
#include <stdlib.h>

#include "base/bits.h"

#define NONE UINT32_MAX
#define ALL UINT64_MAX

enum { WORDS = 512, GROUPS = 8, UNIT_SHIFT = 6, COARSE_SHIFT = 13 };

/* What a chunk is, when it is not a class number. */
enum { IDLE = 255, RUN_HEAD = 254, RUN_TAIL = 253 };

struct gpi_chunk {
    uint32_t prev, next; /* among the chunks of the class that have room */
    uint32_t run;        /* RUN_HEAD: how many chunks */
    uint16_t live;       /* blocks taken */
    uint16_t hint;       /* word freed into last: its blocks are the warmest */
    uint8_t kind;
    uint8_t full; /* bit per group without a free block */
};

/* 65 cache lines per chunk: an odd number, so equal words of many chunks share no cache set. */
struct gpi_chunk_bits { /* all zero while the chunk is in no class */
    uint64_t full[GROUPS]; /* bit per word without a free block */
    uint64_t live[WORDS];  /* bit per block */
};

/*
 * inverse replaces the division by the block size.  In units of 64 bytes a place in a chunk is
 * below 2^15 and a size at most 2^13, so the rounding error stays below 2^28 of 2^31.
 */
#define INVERSE_SHIFT 31
#define CLASS(bytes)                                                                             \
    {                                                                                            \
        .size = (bytes), .blocks = (1U << GPI_CHUNK_SHIFT) / (bytes),                            \
        .inverse = ((1U << INVERSE_SHIFT) + (bytes) / 64U - 1U) / ((bytes) / 64U)                \
    }

static const struct size_class {
    uint32_t size;
    uint32_t blocks;
    uint32_t inverse;
} classes[GPI_CHUNKS_CLASSES] = {
    CLASS(64U),    CLASS(128U),   CLASS(192U),   CLASS(256U),    CLASS(384U),
    CLASS(512U),   CLASS(768U),   CLASS(1024U),  CLASS(1536U),   CLASS(2048U),
    CLASS(3072U),  CLASS(4096U),  CLASS(6144U),  CLASS(8192U),   CLASS(16384U),
    CLASS(32768U), CLASS(65536U), CLASS(131072U), CLASS(262144U), CLASS(524288U),
};

static inline uint64_t bit(uint32_t index)
{
    return (uint64_t)1 << (index & 63);
}

static inline uint64_t offset_of(uint32_t k)
{
    return (uint64_t)k << GPI_CHUNK_SHIFT;
}

static inline int is_class(const struct gpi_chunk *ch)
{
    return ch->kind < GPI_CHUNKS_CLASSES;
}

/* Maps: one bit per chunk. */

static void map_put(uint64_t *map, uint32_t first, uint32_t n, int value)
{
    for (uint32_t k = first; k < first + n; k++) {
        if (value)
            map[k / 64] |= bit(k);
        else
            map[k / 64] &= ~bit(k);
    }
}

static int map_has(const uint64_t *map, uint32_t k)
{
    return (map[k / 64] & bit(k)) != 0;
}

/* First k in [from, end) whose bit in a AND b is set (flip 0) or clear (flip ALL); else end. */
static uint32_t map_next(const uint64_t *a, const uint64_t *b, uint64_t flip, uint32_t from,
                         uint32_t end)
{
    uint64_t mask = ALL << (from & 63);
    for (uint32_t w = from / 64; (uint64_t)w * 64 < end; w++, mask = ALL) {
        uint64_t word = ((a[w] & b[w]) ^ flip) & mask;
        if (word != 0) {
            uint32_t k = w * 64 + gpi_lowest_bit(word);
            return k < end ? k : end;
        }
    }
    return end;
}

/* The next multiple of `barrier` that a run of n at `at` would lie across, or `at`. */
static uint32_t past_barrier(const struct gpi_chunks *c, uint32_t at, uint32_t n)
{
    if (!c->barrier || n > c->barrier || at / c->barrier == (at + n - 1) / c->barrier)
        return at;
    return (at / c->barrier + 1) * c->barrier;
}

/* First run of n idle chunks that are all in `also` as well. */
static uint32_t find_run(const struct gpi_chunks *c, const uint64_t *also, uint32_t n)
{
    uint32_t at = 0;
    while ((at = map_next(c->idle, also, 0, at, c->count)) < c->count) {
        uint32_t past = past_barrier(c, at, n);
        if (past != at) {
            at = past;
            continue;
        }
        uint32_t want = n < c->count - at ? at + n : c->count;
        uint32_t stop = map_next(c->idle, also, ALL, at, want);
        if (stop - at == n)
            return at;
        at = stop;
    }
    return NONE;
}

/* Lists: per class, the chunks with room. */

static void list_push(struct gpi_chunks *c, uint32_t k)
{
    struct gpi_chunk *ch = &c->chunk[k];
    uint32_t *head = &c->room[ch->kind];
    ch->prev = NONE;
    ch->next = *head;
    if (*head != NONE)
        c->chunk[*head].prev = k;
    *head = k;
}

static void list_drop(struct gpi_chunks *c, uint32_t k)
{
    struct gpi_chunk *ch = &c->chunk[k];
    if (ch->next != NONE)
        c->chunk[ch->next].prev = ch->prev;
    if (ch->prev != NONE)
        c->chunk[ch->prev].next = ch->next;
    else
        c->room[ch->kind] = ch->next;
}

/* A chunk enters and leaves its class. */

static void chunk_enlist(struct gpi_chunks *c, uint32_t k, uint32_t cls)
{
    struct gpi_chunk_bits *b = &c->bits[k];
    uint32_t blocks = classes[cls].blocks;

    c->chunk[k] = (struct gpi_chunk){.kind = (uint8_t)cls};
    /*
     * Bits beyond the last block count as taken.  Words and groups beyond it need no mark: the
     * lowest with room is asked for, and only while there is a real one.
     */
    if (blocks % 64 != 0)
        b->live[blocks / 64] = ALL << (blocks % 64);
    list_push(c, k);
}

static void chunk_retire(struct gpi_chunks *c, uint32_t k)
{
    struct gpi_chunk *ch = &c->chunk[k];
    assert(is_class(ch) && ch->live == 0);
    list_drop(c, k);
    c->bits[k].live[(classes[ch->kind].blocks - 1) / 64] = 0;
    ch->kind = IDLE;
    map_put(c->idle, k, 1, 1);
}

/* Retires the one empty chunk that a class may keep.  Returns how many there were. */
static uint32_t retire_spares(struct gpi_chunks *c)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < c->count; k++) {
        if (is_class(&c->chunk[k]) && c->chunk[k].live == 0) {
            chunk_retire(c, k);
            n++;
        }
    }
    return n;
}

/* Takes n idle chunks in a row, if it can from `rather`.  Returns the first, or NONE. */
static uint32_t claim(struct gpi_chunks *c, const uint64_t *rather, uint32_t n)
{
    uint32_t k = find_run(c, rather, n);
    if (k == NONE)
        k = find_run(c, c->idle, n);
    if (k == NONE && retire_spares(c) > 0)
        k = find_run(c, c->idle, n);
    if (k != NONE) {
        map_put(c->idle, k, n, 0);
        for (uint32_t i = k; i < k + n; i++)
            c->warm += !map_has(c->touched, i);
        map_put(c->touched, k, n, 1);
    }
    return k;
}

/* Small blocks. */

static inline uint32_t class_of(const struct gpi_chunks *c, uint64_t size)
{
    if (size <= (uint64_t)(GPI_CHUNKS_FINE - 1) << UNIT_SHIFT)
        return c->fine[(size + 63) >> UNIT_SHIFT];
    return c->coarse[(size - 1) >> COARSE_SHIFT];
}

/* The word to take a block from: where the last free was, else the lowest. */
static inline uint32_t word_with_room(const struct gpi_chunk *ch, const struct gpi_chunk_bits *b)
{
    if (b->live[ch->hint] != ALL)
        return ch->hint;
    uint32_t g = gpi_lowest_bit(~(uint64_t)ch->full);
    assert(g < GROUPS);
    return g * 64 + gpi_lowest_bit(~b->full[g]);
}

static inline void word_filled(struct gpi_chunk *ch, struct gpi_chunk_bits *b, uint32_t w)
{
    uint32_t g = w / 64;
    b->full[g] |= bit(w);
    if (b->full[g] == ALL)
        ch->full = (uint8_t)(ch->full | 1U << g);
}

static inline void word_opened(struct gpi_chunk *ch, struct gpi_chunk_bits *b, uint32_t w)
{
    uint32_t g = w / 64;
    b->full[g] &= ~bit(w);
    ch->full = (uint8_t)(ch->full & ~(1U << g));
}

static inline uint64_t block_take(struct gpi_chunks *c, uint32_t k)
{
    struct gpi_chunk *ch = &c->chunk[k];
    struct gpi_chunk_bits *b = &c->bits[k];
    const struct size_class *cls = &classes[ch->kind];
    assert(ch->live < cls->blocks);

    uint32_t w = word_with_room(ch, b);
    uint64_t word = b->live[w];
    uint32_t i = gpi_lowest_bit(~word);
    b->live[w] = word |= bit(i);
    ch->hint = (uint16_t)w;
    if (word == ALL)
        word_filled(ch, b, w);
    if (++ch->live == cls->blocks)
        list_drop(c, k);
    c->used += cls->size;
    return offset_of(k) + (uint64_t)(w * 64 + i) * cls->size;
}

/*
 * No chunk of the class has room: a new chunk, else a block of a larger class, which wastes
 * space but serves a pool so small that other classes hold all of it.
 */
static uint64_t small_slow(struct gpi_chunks *c, uint32_t cls)
{
    uint32_t k = claim(c, c->touched, 1);
    if (k != NONE) {
        chunk_enlist(c, k, cls);
        return block_take(c, k);
    }
    for (cls++; cls < GPI_CHUNKS_CLASSES; cls++)
        if (c->room[cls] != NONE)
            return block_take(c, c->room[cls]);
    return GPI_CHUNKS_NONE;
}

static inline uint32_t block_index(const struct size_class *cls, uint64_t offset)
{
    uint64_t units = (offset & (GPI_CHUNK - 1)) >> UNIT_SHIFT;
    return (uint32_t)(units * cls->inverse >> INVERSE_SHIFT);
}

static inline int block_is_live(const struct gpi_chunks *c, uint32_t k, uint64_t offset)
{
    const struct size_class *cls = &classes[c->chunk[k].kind];
    uint32_t i = block_index(cls, offset);
    return i < cls->blocks && (uint64_t)i * cls->size == (offset & (GPI_CHUNK - 1)) &&
           map_has(c->bits[k].live, i);
}

/*
 * The class keeps an empty chunk when no other has room, or a single task going back and
 * forth would enlist and retire it each time.
 */
static void chunk_emptied(struct gpi_chunks *c, uint32_t k)
{
    const struct gpi_chunk *ch = &c->chunk[k];
    if (ch->prev != NONE || ch->next != NONE)
        chunk_retire(c, k);
}

static inline void block_free(struct gpi_chunks *c, uint32_t k, uint64_t offset)
{
    struct gpi_chunk *ch = &c->chunk[k];
    struct gpi_chunk_bits *b = &c->bits[k];
    const struct size_class *cls = &classes[ch->kind];
    assert(block_is_live(c, k, offset));

    uint32_t i = block_index(cls, offset);
    uint32_t w = i / 64;
    if (b->live[w] == ALL)
        word_opened(ch, b, w);
    b->live[w] &= ~bit(i);
    ch->hint = (uint16_t)w;
    c->used -= cls->size;
    if (ch->live-- == cls->blocks)
        list_push(c, k);
    if (ch->live == 0)
        chunk_emptied(c, k);
}

/* Runs of chunks. */

static uint64_t run_take(struct gpi_chunks *c, uint64_t size, int *ret_fresh)
{
    if (size > offset_of(c->count))
        return GPI_CHUNKS_NONE;
    uint32_t n = (uint32_t)((size + GPI_CHUNK - 1) >> GPI_CHUNK_SHIFT);
    uint32_t k = claim(c, c->populated, n);
    if (k == NONE)
        return GPI_CHUNKS_NONE;

    *ret_fresh = map_next(c->populated, c->populated, ALL, k, k + n) < k + n;
    map_put(c->populated, k, n, 1);
    for (uint32_t i = 0; i < n; i++)
        c->chunk[k + i].kind = i == 0 ? RUN_HEAD : RUN_TAIL;
    c->chunk[k].run = n;
    c->used += offset_of(n);
    return offset_of(k);
}

static void run_free(struct gpi_chunks *c, uint32_t k)
{
    assert(c->chunk[k].kind == RUN_HEAD);
    uint32_t n = c->chunk[k].run;
    for (uint32_t i = 0; i < n; i++)
        c->chunk[k + i].kind = IDLE;
    map_put(c->idle, k, n, 1);
    c->used -= offset_of(n);
}

/* What others call. */

static void fill_class_tables(struct gpi_chunks *c)
{
    uint32_t cls = 0;
    for (uint32_t i = 0; i < GPI_CHUNKS_FINE; i++) {
        while (classes[cls].size < i << UNIT_SHIFT)
            cls++;
        c->fine[i] = (uint8_t)cls;
    }
    cls = 0;
    for (uint32_t i = 0; i < GPI_CHUNKS_COARSE; i++) {
        while (classes[cls].size < (i + 1) << COARSE_SHIFT)
            cls++;
        c->coarse[i] = (uint8_t)cls;
    }
}

int gpi_chunks_init(struct gpi_chunks *c, void *base, uint64_t size)
{
    assert(size % GPI_CHUNK == 0 && size >> GPI_CHUNK_SHIFT < (uint64_t)1 << 31);
    size_t count = (size_t)(size >> GPI_CHUNK_SHIFT);
    size_t words = count / 64 + 1;

    *c = (struct gpi_chunks){.base = base, .count = (uint32_t)count};
    c->chunk = calloc(count + 1, sizeof *c->chunk);
    c->bits = calloc(count + 1, sizeof *c->bits);
    c->idle = calloc(words * 3, sizeof *c->idle);
    if (c->chunk == NULL || c->bits == NULL || c->idle == NULL) {
        gpi_chunks_fini(c);
        return -1;
    }
    c->touched = c->idle + words;
    c->populated = c->touched + words;
    map_put(c->idle, 0, c->count, 1);
    for (size_t k = 0; k < count; k++)
        c->chunk[k].kind = IDLE;
    for (size_t i = 0; i < GPI_CHUNKS_CLASSES; i++)
        c->room[i] = NONE;
    fill_class_tables(c);
    return 0;
}

void gpi_chunks_fini(struct gpi_chunks *c)
{
    free(c->chunk);
    free(c->bits);
    free(c->idle);
    *c = (struct gpi_chunks){0};
}

uint64_t gpi_chunks_alloc(struct gpi_chunks *c, uint64_t size, int *ret_fresh)
{
    if (size > GPI_CHUNKS_SMALL_MAX)
        return run_take(c, size, ret_fresh);
    uint32_t cls = class_of(c, size);
    uint32_t k = c->room[cls];
    uint64_t offset = k != NONE ? block_take(c, k) : small_slow(c, cls);
    if (offset != GPI_CHUNKS_NONE)
        *ret_fresh = 0;
    return offset;
}

void gpi_chunks_free(struct gpi_chunks *c, uint64_t offset)
{
    assert(offset >> GPI_CHUNK_SHIFT < c->count);
    uint32_t k = (uint32_t)(offset >> GPI_CHUNK_SHIFT);
    if (is_class(&c->chunk[k])) {
        block_free(c, k, offset);
        return;
    }
    assert(offset % GPI_CHUNK == 0);
    run_free(c, k);
}

uint64_t gpi_chunks_capacity(const struct gpi_chunks *c, uint64_t offset)
{
    if (offset >> GPI_CHUNK_SHIFT >= c->count)
        return 0;
    uint32_t k = (uint32_t)(offset >> GPI_CHUNK_SHIFT);
    const struct gpi_chunk *ch = &c->chunk[k];
    if (is_class(ch))
        return block_is_live(c, k, offset) ? classes[ch->kind].size : 0;
    if (ch->kind != RUN_HEAD || offset % GPI_CHUNK != 0)
        return 0;
    return offset_of(ch->run);
}

uint64_t gpi_chunks_used(const struct gpi_chunks *c)
{
    return c->used;
}

uint64_t gpi_chunks_touched(const struct gpi_chunks *c)
{
    return offset_of(c->warm);
}

uint64_t gpi_chunks_cool(struct gpi_chunks *c, uint64_t *ret_size)
{
    (void)retire_spares(c); /* kept for speed, and who cools has time */
    uint32_t k = map_next(c->idle, c->touched, 0, 0, c->count);
    if (k == c->count)
        return GPI_CHUNKS_NONE;
    uint32_t n = map_next(c->idle, c->touched, ALL, k, c->count) - k;
    map_put(c->touched, k, n, 0);
    map_put(c->populated, k, n, 0);
    c->warm -= n;
    *ret_size = offset_of(n);
    return offset_of(k);
}
