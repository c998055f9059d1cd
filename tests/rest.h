/* SPDX-License-Identifier: MIT */
/* rest.h - that nothing wakes up while nothing happens, by the kernel's counts of context
 * switches.   [C20] */
#ifndef T_REST_H
#define T_REST_H

/* Waits until this process and all below it have come to rest, then lets so many tenths of a second
 * pass, with a look in each (may be NULL), and fails when a thread of theirs but the calling one
 * has woken up meanwhile. */
void t_expect_rest(unsigned tenths, void (*look)(void *user), void *user);

#endif
