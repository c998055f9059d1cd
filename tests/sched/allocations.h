/* SPDX-License-Identifier: MIT */
/* allocations.h - counts the program's calls of malloc, calloc, realloc and free.  The program is
 * linked with --wrap for these four. */
#ifndef TESTS_SCHED_ALLOCATIONS_H
#define TESTS_SCHED_ALLOCATIONS_H

#include <stdint.h>

extern uint64_t allocations;

#endif
