/* SPDX-License-Identifier: MIT */
/* night.h - a made-up night as lines of records. */
#ifndef BENCH_VIEW_NIGHT_H
#define BENCH_VIEW_NIGHT_H

#include <stdint.h>
#include <stdio.h>

enum { BV_GPUS = 8, BV_CLASSES = 3 };

/*
 * Writes a night of 10 h: 8 GPUs, 3 classes whose workers leave for one another, and batches of
 * equal size, which are made one after the other.  Each task has a command of its own.  One attempt
 * in 50 ends badly, and half of these tasks run again.  The same arguments yield the same night.
 * Returns: 0, or -1 after a complaint.
 */
int bv_night_write(FILE *f, uint32_t attempts, uint32_t batches);

#endif
