/* SPDX-License-Identifier: MIT */
/* duration.h - a time in a text. */
#ifndef GPI_BASE_DURATION_H
#define GPI_BASE_DURATION_H

#include <stdint.h>

#define GPI_DURATION_SIZE 32u

/* Writes a time so that two of its digits or more show: "30.000 s", "0.060 s", "2.500 ms", "30 ns".
 * The point does not depend on the locale of the host.  Returns `to`. */
const char *gpi_duration_text(char to[GPI_DURATION_SIZE], uint64_t ns);

/* The same for a time that still runs: "0.250 s", "2.5 s", "12 s". */
const char *gpi_duration_round(char to[GPI_DURATION_SIZE], uint64_t ns);

#endif
