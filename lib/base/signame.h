/* SPDX-License-Identifier: MIT */
/* signame.h - a signal's number and name in a text: the one place that knows the names. */
#ifndef GPI_BASE_SIGNAME_H
#define GPI_BASE_SIGNAME_H

#define GPI_SIGNAL_SIZE 32u

/* Writes "signal 9 (SIGKILL)"; without the name for a real-time signal or an unknown number.
 * Returns `to`. */
const char *gpi_signal_text(char to[GPI_SIGNAL_SIZE], int number);

#endif
