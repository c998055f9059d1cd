/* SPDX-License-Identifier: MIT */
/*
 * failing.h - allocations that fail on purpose.
 *
 * The linker leads malloc, calloc, realloc, strdup and strndup of the program's own objects and
 * static libraries here (--wrap).  Those in shared libraries are not concerned.
 */
#ifndef T_QUEUE_FAILING_H
#define T_QUEUE_FAILING_H

/* How many allocations there are up to the one that fails; 0: none fails. */
extern unsigned fail_at;

#endif
