/* SPDX-License-Identifier: MIT */
/*
 * lines.h - bytes of a stream: lines that arrive in pieces, and bytes that leave in pieces.
 *
 * A buffer without bytes has no memory.
 */
#ifndef GPQ_PROTO_LINES_H
#define GPQ_PROTO_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The longest line, without its newline: a submit of 10^5 tasks is one. */
#define GPQ_LINE_MOST ((size_t)64 << 20)

struct gpq_buffer {
    char *data;
    size_t used, room;
    size_t taken;   /* bytes at the beginning that are done with */
    size_t scanned; /* bytes behind `taken` that have no newline */
};

/* Makes room for `size` more bytes; NULL: no memory.  `used` is the caller's to raise. */
char *gpq_buffer_room(struct gpq_buffer *b, size_t size);
bool gpq_buffer_add(struct gpq_buffer *b, const void *data, size_t size);
/* Bytes that are not done with. */
size_t gpq_buffer_left(const struct gpq_buffer *b);
/* The first `size` of them are done with. */
void gpq_buffer_take(struct gpq_buffer *b, size_t size);
void gpq_buffer_free(struct gpq_buffer *b);

/*
 * Finds the next line.  1: *ret is its text without the newline, which lives until the next call
 * with this buffer, and which is taken.  0: there is no whole one.  -EMSGSIZE: it is longer than
 * GPQ_LINE_MOST.  Each byte is looked at once, however small the pieces are.
 */
int gpq_buffer_line(struct gpq_buffer *b, const char **ret, size_t *ret_size);
/* Whether gpq_buffer_line would return another value than 0. */
bool gpq_buffer_has_line(struct gpq_buffer *b);

#endif
