/* SPDX-License-Identifier: MIT */
/* place.h - which process runs on which CPU, and burners that keep CPUs busy. */
#ifndef BENCH_PLACE_H
#define BENCH_PLACE_H

#include <sys/types.h>

#define B_BURNERS 2

/* Looks up the CPUs this process may use.  Call it once, before any pin. */
void b_place_init(void);

/* Gives how many CPUs we may use, and the number of the i-th of the first two; -1 when there is
 * none. */
unsigned b_cpu_count(void);
int b_cpu_number(unsigned i);

/* Pins all later threads and the calling one of `pid` (0: ours) to a CPU; -1 for cpu leaves it. 0
 * or -1. */
int b_pin(pid_t pid, int cpu);

struct b_burners {
    pid_t pids[B_BURNERS];
};

/* Starts one process per CPU of the first two that does nothing but spin. They end with us. 0 or
 * -1. */
int b_burners_start(struct b_burners *b);
void b_burners_stop(struct b_burners *b);

/* In a forked child: makes it end with its parent. */
void b_child_begin(pid_t parent);

/* Kills a child and waits for it. */
void b_child_end(pid_t pid);

#endif
