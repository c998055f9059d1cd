/* SPDX-License-Identifier: MIT */
/*
 * interrupts.h - SIGINT and SIGTERM for verbs that end by themselves.
 */
#ifndef GPQ_CLIENT_INTERRUPTS_H
#define GPQ_CLIENT_INTERRUPTS_H

#include <poll.h>
#include <stdbool.h>

/* From now on both signals only set a flag, and arrive in gpq_poll alone: so none is missed between
 * a check of the flag and a wait.  A signal that the parent has set to be ignored stays so. */
void gpq_interrupts_catch(void);
bool gpq_interrupted(void);

/* poll(2).  -1 with EINTR: perhaps interrupted. */
int gpq_poll(struct pollfd *p, unsigned n, int ms);

/* In a child, before it executes a program. */
void gpq_interrupts_release(void);

#endif
