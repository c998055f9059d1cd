/* SPDX-License-Identifier: MIT */
/*
 * accidents.h - what can happen inside process, on a GPU and on a processor.
 */
#ifndef CRASH_COURSE_ACCIDENTS_H
#define CRASH_COURSE_ACCIDENTS_H

#include <gpudispatch/gpudispatch.h>

#ifdef __cplusplus
extern "C" {
#endif

enum accident {
    ACCIDENT_NONE = 0,    /* gives the sum of the squares of 1 .. SQUARES as the result, 8 bytes */
    ACCIDENT_ADDRESS = 1, /* writes where nothing is */
    ACCIDENT_ENDLESS = 2, /* never ends and listens to nobody */
    ACCIDENT_ASSERT = 3,  /* an assert that does not hold */
    ACCIDENT_COUNT = 4
};

enum { SQUARES = 1000 };

/* Runs one; what process returns.  `text`: TEXT_BYTES for what went wrong. */
enum { TEXT_BYTES = 160 };
typedef int(accident_fn)(gpud_task *t, uint32_t which, char *text);

accident_fn accident_cpu;
extern accident_fn *const accident_gpu; /* NULL in a build without the CUDA toolkit */

#ifdef __cplusplus
}
#endif
#endif
