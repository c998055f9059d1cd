/* SPDX-License-Identifier: MIT */
/*
 * content.h - the content of a file of a disk: as a process reads it, and after a power cut.
 *
 * Writes and truncations change `now` at once and are pending until a sync.  At a power cut each
 * 512-byte sector of each pending write is kept or dropped for itself, so that a later write to a
 * sector may survive without an earlier one.  The size is one of those that the file had since its
 * last sync.  Truncations happened up to the one that this size includes.
 */
#ifndef T_CONTENT_H
#define T_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTENT_SECTOR = 512 };

struct bytes {
    uint8_t *data;
    size_t size, room;
};

struct change {
    bool truncation; /* to the size `offset` */
    size_t offset, size;
    uint8_t *data;
};

struct content {
    struct bytes now, synced;
    struct change *pending;
    size_t n_pending, room_pending;
};

void content_free(struct content *c);
void content_write(struct content *c, size_t offset, const void *data, size_t size);
void content_truncate(struct content *c, size_t size);
/* Makes all changes durable. */
void content_sync(struct content *c);
/* A sync that failed: some sectors were written, and no later sync writes the others, since the
 * kernel has marked their pages clean. */
void content_sync_fails(struct content *c, uint64_t *seed);
/* Returns the bytes that a power cut now would leave.  The content stays as it is. */
struct bytes content_survives(const struct content *c, uint64_t *seed);

#endif
