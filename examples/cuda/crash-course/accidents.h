/* SPDX-License-Identifier: MIT */
/*
 * accidents.h - the accidents that process may have, on a GPU and on a processor.
 */
#ifndef CRASH_COURSE_ACCIDENTS_H
#define CRASH_COURSE_ACCIDENTS_H

#include <gpudispatch/gpudispatch.h>

#ifdef __cplusplus
extern "C" {
#endif

enum accident {
    ACCIDENT_NONE = 0,    /* sets the sum of the squares of 1 to SQUARES as result, 8 bytes */
    ACCIDENT_ADDRESS = 1, /* writes to an address without memory */
    ACCIDENT_ENDLESS = 2, /* never ends and ignores its limit */
    ACCIDENT_ASSERT = 3,  /* fails an assert */
    ACCIDENT_COUNT = 4
};

enum { SQUARES = 1000 };

/* Runs one accident.  Returns the value for process to return.  `text`: TEXT_BYTES for an error. */
enum { TEXT_BYTES = 160 };
typedef int(accident_fn)(gpud_task *t, uint32_t which, char *text);

accident_fn accident_cpu;
extern accident_fn *const accident_gpu; /* NULL in a build without the CUDA toolkit */

#ifdef __cplusplus
}
#endif
#endif
