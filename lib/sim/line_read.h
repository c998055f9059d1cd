/* SPDX-License-Identifier: MIT */
/* line_read.h - reads the words of a line (log/line.h). */
#ifndef GPI_SIM_LINE_READ_H
#define GPI_SIM_LINE_READ_H

#include <stdarg.h>

#include "log/line.h"

/* Returns the number of characters of a wrong word that an error quotes. */
int gpi_line_shown(struct gpi_line_word w);

/* Return false if the word is none of these. */
bool gpi_line_digits(struct gpi_line_word w, uint64_t most, uint64_t *ret);
bool gpi_line_signed(struct gpi_line_word w, uint64_t *ret); /* 32 bits */
bool gpi_line_amount(struct gpi_line_word w, const struct gpi_line_unit *unit, size_t n_units,
                     uint64_t *ret);
bool gpi_line_time(struct gpi_line_word w, uint64_t *ret);
/* Returns its place in the list. */
bool gpi_line_among(struct gpi_line_word w, const char *list, uint64_t *ret);

/* Writes an error.  A line may have any bytes, but the error has printable characters only. */
void gpi_line_error(char *error, size_t size, const char *format, va_list list);

#endif
