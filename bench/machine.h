/* SPDX-License-Identifier: MIT */
/*
 * machine.h - the state the two CPUs are in.
 * Virtual CPUs float over cores: the way between them grows and shrinks by a factor of five, and a
 * neighbour on the other hardware thread makes a CPU slower, several times a second.  Figures of
 * two states are not comparable.
 */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stddef.h>

#include "measure.h"

#define B_MOST_LOOKS 64

/* What was seen, look by look. */
struct b_states {
    size_t n, shared;             /* looks, and those while another process wanted a CPU */
    double line_ns[B_MOST_LOOKS]; /* a cache line to the second CPU and back */
    double loop_us[B_MOST_LOOKS]; /* a fixed loop of arithmetic on the first */
};

/* Forks the process that sends the line back, on CPU `cpu`.  It sleeps between two looks.
 * 0 or -1. */
int b_machine_open(int cpu);
void b_machine_close(void);

/* Adds one look of about 0.1 ms.  Adds nothing when the machine is not open, or the other CPU did
 * not answer. */
void b_machine_look(struct b_states *s);

/* Gives the median of the looks, and what nine in ten lie above and below. */
struct b_spread b_states_line(const struct b_states *s);
struct b_spread b_states_loop(const struct b_states *s);

/* Tells from both whether the machine has changed between its looks.  1 or 0. */
int b_machine_changed(const struct b_spread *line, const struct b_spread *loop);

/* Tells whether other programs ran beside ours in more than one look of ten.  1 or 0. */
int b_machine_shared(const struct b_states *s);

#endif
