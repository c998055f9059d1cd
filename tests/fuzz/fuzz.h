/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h - what a fuzz target is made of: one entry that libFuzzer or replay.c calls, and checks
 * that hold for any bytes.
 */
#ifndef T_FUZZ_H
#define T_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert: it must hold in every build. */
#define FUZZ_CHECK(condition)                                                                \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                         \
        }                                                                                    \
    } while (0)

/* Takes up to `size` bytes off the input; what is missing is zero. */
static inline void fuzz_take(void *to, size_t size, const uint8_t **data, size_t *left)
{
    size_t n = size < *left ? size : *left;

    memset(to, 0, size);
    if (n)
        memcpy(to, *data, n);
    *data += n;
    *left -= n;
}

#endif
