/* SPDX-License-Identifier: MIT */
/*
 * line.h - the words of a line of text: numbers, times and names of a list, read and written.
 *
 * Logs (log.h) and facts of a plan (fact.h) have the same words.
 */
#ifndef GPI_SIM_LINE_H
#define GPI_SIM_LINE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpi_line_word {
    const char *at;
    size_t size;
};

struct gpi_line_unit {
    const char *name;
    uint64_t size;
};

#define GPI_LINE_TIMES 4u
extern const struct gpi_line_unit gpi_line_times[GPI_LINE_TIMES]; /* ns, the largest first */

bool gpi_line_is(struct gpi_line_word w, const char *text);
/* Takes the next word of a list with blanks between them. */
bool gpi_line_next_word(const char **list, struct gpi_line_word *ret);
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

/* A line that is being written.  It is cut off when it is full, and always ends in 0. */
struct gpi_line {
    char *to;
    size_t size, room; /* characters; bytes of `to` */
};

void gpi_line_add(struct gpi_line *t, const char *words);
void gpi_line_add_bytes(struct gpi_line *t, const char *bytes, size_t size);
void gpi_line_add_number(struct gpi_line *t, uint64_t n);
void gpi_line_add_signed(struct gpi_line *t, int32_t n);
/* With the largest unit that leaves no rest. */
void gpi_line_add_amount(struct gpi_line *t, uint64_t n, const struct gpi_line_unit *unit);
void gpi_line_add_time(struct gpi_line *t, uint64_t time);
void gpi_line_add_word(struct gpi_line *t, const char *list, uint64_t place);

#endif
