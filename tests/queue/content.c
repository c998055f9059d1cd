/* SPDX-License-Identifier: MIT */
/* content.c - the content of a file: what a process reads, and what a power cut leaves. */
#include "content.h"

#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "harness.h"

static void bytes_resize(struct bytes *b, size_t size)
{
    if (size > b->room) {
        b->room = size + size / 2 + CONTENT_SECTOR;
        b->data = realloc(b->data, b->room);
        T_CHECK(b->data);
    }
    if (size > b->size)
        memset(b->data + b->size, 0, size - b->size);
    b->size = size;
}

static void bytes_write(struct bytes *b, size_t offset, const uint8_t *data, size_t size)
{
    if (size == 0)
        return;
    if (offset + size > b->size)
        bytes_resize(b, offset + size);
    memcpy(b->data + offset, data, size);
}

static struct bytes bytes_copy(const struct bytes *from)
{
    struct bytes b = { 0 };

    bytes_write(&b, 0, from->data, from->size);
    return b;
}

static void apply(struct bytes *b, const struct change *c)
{
    if (c->truncation)
        bytes_resize(b, c->offset);
    else
        bytes_write(b, c->offset, c->data, c->size);
}

/* Keeps each sector of a write with this chance. */
static void apply_sectors(struct bytes *b, const struct change *c, uint32_t percent, uint64_t *seed)
{
    size_t at = 0, part;

    for (; at < c->size; at += part) {
        part = CONTENT_SECTOR - (c->offset + at) % CONTENT_SECTOR;
        if (part > c->size - at)
            part = c->size - at;
        if (draw_chance(seed, percent))
            bytes_write(b, c->offset + at, c->data + at, part);
    }
}

static size_t size_after(size_t size, const struct change *c)
{
    if (c->truncation)
        return c->offset;
    return c->offset + c->size > size ? c->offset + c->size : size;
}

static struct change *add(struct content *c)
{
    if (c->n_pending == c->room_pending) {
        c->room_pending = c->room_pending * 2 + 8;
        c->pending = realloc(c->pending, c->room_pending * sizeof(*c->pending));
        T_CHECK(c->pending);
    }
    c->pending[c->n_pending] = (struct change){ 0 };
    return &c->pending[c->n_pending++];
}

static void forget_pending(struct content *c)
{
    for (size_t i = 0; i < c->n_pending; i++)
        free(c->pending[i].data);
    c->n_pending = 0;
}

void content_free(struct content *c)
{
    forget_pending(c);
    free(c->pending);
    free(c->now.data);
    free(c->synced.data);
    *c = (struct content){ 0 };
}

void content_write(struct content *c, size_t offset, const void *data, size_t size)
{
    struct change *new;

    if (size == 0)
        return;
    new = add(c);
    new->offset = offset;
    new->size = size;
    new->data = malloc(size);
    T_CHECK(new->data);
    memcpy(new->data, data, size);
    apply(&c->now, new);
}

void content_truncate(struct content *c, size_t size)
{
    struct change *new = add(c);

    new->truncation = true;
    new->offset = size;
    apply(&c->now, new);
}

void content_sync(struct content *c)
{
    for (size_t i = 0; i < c->n_pending; i++)
        apply(&c->synced, &c->pending[i]);
    forget_pending(c);
}

void content_sync_fails(struct content *c, uint64_t *seed)
{
    struct bytes left = content_survives(c, seed);

    forget_pending(c);
    free(c->synced.data);
    c->synced = left;
}

/* How many changes the size that is left includes.  All and none are as likely as all others. */
static size_t draw_sized(size_t pending, uint64_t *seed)
{
    switch (draw_below(seed, 4)) {
    case 0:
        return 0;
    case 1:
        return pending;
    default:
        return draw_below(seed, (uint32_t)pending + 1);
    }
}

struct bytes content_survives(const struct content *c, uint64_t *seed)
{
    /* All, none, all but a few, or a few: each of them finds another kind of fault. */
    static const uint32_t chances[] = { 0, 10, 50, 90, 100 };
    const uint32_t percent = chances[draw_below(seed, T_LENGTH(chances))];
    const size_t sized = draw_sized(c->n_pending, seed);
    struct bytes b = bytes_copy(&c->synced);
    size_t size = b.size;

    for (size_t i = 0; i < c->n_pending; i++) {
        if (i < sized)
            size = size_after(size, &c->pending[i]);
        if (!c->pending[i].truncation)
            apply_sectors(&b, &c->pending[i], percent, seed);
        else if (i < sized)
            bytes_resize(&b, c->pending[i].offset);
    }
    bytes_resize(&b, size);
    return b;
}
