/* SPDX-License-Identifier: MIT */
/*
 * chunks.h - hands out byte ranges inside one address range that somebody else mapped.
 *
 * Used for the input arena and for the result pools.  Everything the allocator knows lies in
 * its own memory and not one byte of the range is read or written: the other process, a user's
 * stray pointer or a punched hole cannot make it hand out a block twice.
 *
 * Up to GPI_CHUNKS_SMALL_MAX a block comes from a size class, constant time both ways; above
 * it is a run of whole chunks, found by scanning one bit per chunk.  Bookkeeping takes 4.2 KiB
 * of address space per chunk, of which only the pages of chunks ever used become memory.
 *
 * Takes no lock: one thread at a time per object.
 */
#ifndef GPI_CHUNKS_H
#define GPI_CHUNKS_H

#include <stdint.h>

/* 2 MiB, so that a chunk can be one huge page and is worth one madvise. */
#define GPI_CHUNK_SHIFT 21
#define GPI_CHUNK ((uint64_t)1 << GPI_CHUNK_SHIFT)

/* The largest size class: a quarter of a chunk. */
#define GPI_CHUNKS_SMALL_MAX ((uint64_t)512 << 10)

/* No room.  Never a valid offset. */
#define GPI_CHUNKS_NONE UINT64_MAX

enum {
    GPI_CHUNKS_CLASSES = 20,
    GPI_CHUNKS_FINE = 129,  /* sizes to 8 KiB in steps of 64 bytes */
    GPI_CHUNKS_COARSE = 64, /* sizes to 512 KiB in steps of 8 KiB */
};

struct gpi_chunk;
struct gpi_chunk_bits;

struct gpi_chunks {
    void *base; /* where offset 0 lies; kept for the caller, never followed here */
    uint64_t used;
    uint32_t count;
    uint32_t warm; /* bits in `touched` */
    /* the caller's: a run that can lies between two multiples of so many chunks; 0 = anywhere */
    uint32_t barrier;
    uint32_t room[GPI_CHUNKS_CLASSES]; /* per class: first chunk that has a free block */
    uint8_t fine[GPI_CHUNKS_FINE];     /* size to class */
    uint8_t coarse[GPI_CHUNKS_COARSE];
    struct gpi_chunk *chunk;
    struct gpi_chunk_bits *bits;
    /* One bit per chunk, three maps in one allocation. */
    uint64_t *idle;      /* belongs to no class and no run */
    uint64_t *touched;   /* some of its pages may hold memory: reuse before others, worth a punch */
    uint64_t *populated; /* all of its pages hold memory */
};

/*
 * Prepares an empty allocator for size bytes at base.  size is a multiple of GPI_CHUNK.
 * Returns: 0, or -1 when there is no memory (nothing to clean up then).
 */
int gpi_chunks_init(struct gpi_chunks *c, void *base, uint64_t size);

/* Frees the bookkeeping, live allocations or not.  Does not unmap. */
void gpi_chunks_fini(struct gpi_chunks *c);

/*
 * Allocates at least size bytes (0 counts as 1).
 * Returns: an offset divisible by 64, or GPI_CHUNKS_NONE and nothing has changed.
 * *ret_fresh is 1 when it is a run of chunks (its offset is divisible by GPI_CHUNK) of which
 * some page may not hold memory yet.  The run counts as populated from then on: the caller
 * populates all of gpi_chunks_capacity bytes now; if that fails only speed is lost.
 */
uint64_t gpi_chunks_alloc(struct gpi_chunks *c, uint64_t size, int *ret_fresh);

/* Frees a live allocation, whose size can be had again at once. Anything else is a bug of ours,
 * caught by assert only. */
void gpi_chunks_free(struct gpi_chunks *c, uint64_t offset);

/*
 * Says how many bytes the live allocation that begins at offset may use.
 * Returns: 0 when none begins there; any offset may be asked about.
 */
uint64_t gpi_chunks_capacity(const struct gpi_chunks *c, uint64_t offset);

/* Bytes held by live allocations, rounded as they were handed out. */
uint64_t gpi_chunks_used(const struct gpi_chunks *c);

/* Bytes of the chunks that may hold memory: what an alloc adds here is memory yet to be taken. */
uint64_t gpi_chunks_touched(const struct gpi_chunks *c);

/*
 * Chooses idle memory to give back to the kernel; call until it says NONE.
 * Returns: the offset of *ret_size bytes that the caller punches before the next alloc, or
 * GPI_CHUNKS_NONE with *ret_size untouched when no idle chunk holds memory.
 */
uint64_t gpi_chunks_cool(struct gpi_chunks *c, uint64_t *ret_size);

#endif
