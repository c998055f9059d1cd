/* SPDX-License-Identifier: MIT */
/*
 * versioned.h - reading size-first structs from callers of other versions: fields they do not
 * know are zero; fields we do not know must be zero, or the call is refused.          [C15]
 */
#ifndef GPI_BASE_VERSIONED_H
#define GPI_BASE_VERSIONED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a record that is to be filled may be `given` bytes long: the first version's `least`, or
 * more, and no more than any version's, since such a struct_size was never set. Records of an array
 * lie on words. */
bool gpi_versioned_sized(uint32_t given, size_t least);

/* Copies *from, whose first word is its struct_size, into *to of `size` bytes. Returns 0;
 * GPUD_ESTRUCT when it is shorter than `least` or longer than any version's, GPUD_EVERSION. */
int gpi_versioned_read(void *to, size_t size, const void *from, size_t least);

/* Fills a record of `given` bytes, whose first word is its struct_size, from *from of `size` bytes:
 * what both know is copied, what only the receiver knows is zero, and its struct_size is `given`.
 */
void gpi_versioned_write(void *to, uint32_t given, const void *from, size_t size);

#endif
