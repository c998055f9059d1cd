/* SPDX-License-Identifier: MIT */
/* exit.h - what happens when somebody in this process calls exit. */
#ifndef GPI_OS_EXIT_H
#define GPI_OS_EXIT_H

/* From now on exit() calls `fn` with its status before any handler that is there already. Where the
 * system does not tell handlers the status (musl), it is always EXIT_FAILURE. */
void gpi_exit_first(void (*fn)(int status));

#endif
