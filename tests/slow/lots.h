/* SPDX-License-Identifier: MIT */
/* lots.h - numbers drawn by lot, the same again for the same seed; and naps of such length. */
#ifndef T_LOTS_H
#define T_LOTS_H

#include <stdint.h>

uint64_t lot(uint64_t *state);
uint64_t below(uint64_t *state, uint64_t n);
int once_in(uint64_t *state, uint64_t n);
#define PICK(state, list) ((list)[below((state), sizeof(list) / sizeof((list)[0]))])

/* What a task does with its time; a signal ends it. */
void nap(uint64_t ns);

#endif
