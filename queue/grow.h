/* SPDX-License-Identifier: MIT */
/* grow.h - arrays that grow by one element. */
#ifndef GPQ_GROW_H
#define GPQ_GROW_H

#include <stdlib.h>

/* Returns the array, moved or not, with room for one element more than n.  NULL: no memory, and the
 * array stays as it is. */
static inline void *gpq_grown(void *array, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return array;
    size_t wanted = *room != 0 ? 2 * *room : 64;
    void *larger = realloc(array, wanted * size);
    if (larger)
        *room = wanted;
    return larger;
}

#endif
