/* SPDX-License-Identifier: MIT */
/*
 * line.h - the words of a line of text: numbers, times and names of a list.
 *
 * Logs (log.h) and facts of a plan (fact.h) have the same words.  sim/line_read.h reads them.
 */
#ifndef GPI_LOG_LINE_H
#define GPI_LOG_LINE_H

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
