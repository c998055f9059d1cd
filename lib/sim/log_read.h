/* SPDX-License-Identifier: MIT */
/*
 * log_read.h - reads the lines of a log (log/log.h).
 *
 * A log may come from any source, so the reader either accepts a text or refuses it with a reason.
 */
#ifndef GPI_SIM_LOG_READ_H
#define GPI_SIM_LOG_READ_H

#include "log/log.h"

#define GPI_LOG_ERROR_SIZE 256u

/* Reads a line of `size` bytes, without its line end.  On failure it returns false and sets *reterr
 * to the reason. */
bool gpi_log_read(struct gpi_log_line *ret, const char *text, size_t size,
                  char reterr[GPI_LOG_ERROR_SIZE]);

#endif
