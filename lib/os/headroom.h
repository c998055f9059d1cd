/* SPDX-License-Identifier: MIT */
/*
 * headroom.h - how much memory there is left for us to take.
 *
 * Beyond a memory cgroup's limit every way of taking memory is a SIGKILL, never an error, so who
 * grows asks first.  Others grow, too: this makes a kill unlikely, not impossible.       [C18]
 */
#ifndef GPI_OS_HEADROOM_H
#define GPI_OS_HEADROOM_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes that machine and memory cgroups (with ancestors) have left.  Reads some small files. */
uint64_t gpi_headroom(void);

/* Whether taking `size` bytes more leaves a reserve for everybody else. */
bool gpi_headroom_for(uint64_t size);

#endif
