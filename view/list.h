/* SPDX-License-Identifier: MIT */
/* list.h - lists that grow. */
#ifndef GPV_LIST_H
#define GPV_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* A list of rows of one type. */
#define GPV_LIST(type) \
    struct {           \
        type *row;     \
        size_t n, room; \
    }

/* Makes room for one more row of `size` bytes; *list, a pointer to rows, may move.  False: no
 * memory. */
static inline bool gpv_grow(void *list, size_t n, size_t *room, size_t size)
{
    void **at = list;
    if (n < *room)
        return true;
    size_t more = *room ? *room * 2 : 16;
    void *larger = more <= SIZE_MAX / size ? realloc(*at, more * size) : NULL;
    if (!larger)
        return false;
    *at = larger;
    *room = more;
    return true;
}

#endif
