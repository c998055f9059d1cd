/* SPDX-License-Identifier: MIT */
/* fact_read.h - reads a fact (log/fact.h) from a line. */
#ifndef GPI_SIM_FACT_READ_H
#define GPI_SIM_FACT_READ_H

#include "log/fact.h"
#include "log/line.h"

#define GPI_FACT_ERROR_SIZE 256u

/* Reads a line of `size` bytes, without its line end, of which ret->now is the time before.  On
 * failure it returns false and sets *reterr to the reason. */
bool gpi_fact_read(struct gpi_fact *ret, const char *text, size_t size,
                   char reterr[GPI_FACT_ERROR_SIZE]);
/* The same of the value of a field "need". */
bool gpi_fact_read_request(struct gpi_request *ret, struct gpi_line_word w,
                           char reterr[GPI_FACT_ERROR_SIZE]);

#endif
