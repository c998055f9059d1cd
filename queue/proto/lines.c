/* SPDX-License-Identifier: MIT */
/* lines.c - lines that arrive in pieces, and bytes that leave in pieces. */
#include "queue/proto/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 4096 };

size_t gpq_buffer_left(const struct gpq_buffer *b)
{
    return b->used - b->taken;
}

void gpq_buffer_free(struct gpq_buffer *b)
{
    free(b->data);
    *b = (struct gpq_buffer){ 0 };
}

char *gpq_buffer_room(struct gpq_buffer *b, size_t size)
{
    size_t left = gpq_buffer_left(b);
    if (b->room - b->used >= size)
        return b->data + b->used;
    /* Moving costs no more than the bytes that have been taken. */
    if (b->taken >= left && b->room - left >= size) {
        memmove(b->data, b->data + b->taken, left);
        b->used = left;
        b->taken = 0;
        return b->data + b->used;
    }
    size_t room = left + size > 2 * b->room ? left + size : 2 * b->room;
    char *data = malloc(room > LEAST ? room : LEAST);
    if (!data)
        return NULL;
    if (left != 0)
        memcpy(data, b->data + b->taken, left);
    free(b->data);
    b->data = data;
    b->room = room > LEAST ? room : LEAST;
    b->used = left;
    b->taken = 0;
    return b->data + b->used;
}

bool gpq_buffer_add(struct gpq_buffer *b, const void *data, size_t size)
{
    char *to = size != 0 ? gpq_buffer_room(b, size) : NULL;
    if (to) {
        memcpy(to, data, size);
        b->used += size;
    }
    return to || size == 0;
}

void gpq_buffer_take(struct gpq_buffer *b, size_t size)
{
    b->taken += size;
    b->scanned = b->scanned > size ? b->scanned - size : 0;
    if (b->taken == b->used)
        gpq_buffer_free(b);
}

/* The newline of the first line, or NULL. */
static const char *newline(struct gpq_buffer *b)
{
    size_t left = gpq_buffer_left(b);
    if (b->scanned == left)
        return NULL;
    const char *from = b->data + b->taken + b->scanned;
    const char *end = memchr(from, '\n', left - b->scanned);
    b->scanned = end ? (size_t)(end - b->data) - b->taken : left;
    return end;
}

bool gpq_buffer_has_line(struct gpq_buffer *b)
{
    return newline(b) || b->scanned > GPQ_LINE_MOST;
}

int gpq_buffer_line(struct gpq_buffer *b, const char **ret, size_t *ret_size)
{
    const char *end = newline(b);
    size_t size = b->scanned;
    if (size > GPQ_LINE_MOST)
        return -EMSGSIZE;
    if (!end)
        return 0;
    *ret = b->data + b->taken;
    *ret_size = size;
    b->taken += size + 1; /* the memory stays for *ret */
    b->scanned = 0;
    return 1;
}
