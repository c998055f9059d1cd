/* SPDX-License-Identifier: MIT */
/*
 * words.h - the words of a script's lines, and the values that they are read as.
 *
 * The reader keeps the first error, with its line and column.  After an error every word is empty,
 * as at the end of a line, so each loop over words ends.
 */
#ifndef GPI_FAKE_WORDS_H
#define GPI_FAKE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpudispatch/error.h"

#define GPI_WORD_SIZE 256u

struct gpi_word {
    char text[GPI_WORD_SIZE]; /* without its quotes; "": the line has ended */
    uint32_t column;          /* from 1 */
};

/* The position in a script, and its context. */
struct gpi_reader {
    struct gpi_script *s;
    const char *at, *line_start;
    uint32_t line;
    uint32_t devices;       /* from the caller; 0 = the text decides */
    uint32_t said, highest; /* of "gpus N"; one more than the highest number of a GPU */
    bool counted;
    int code; /* of the first error; 0 = none */
    struct gpud_error *e;
};

/* Takes the next word of the line. */
void gpi_word_take(struct gpi_reader *r, struct gpi_word *w);

/* An error: the form that was expected in this word's place. */
void gpi_word_expected(struct gpi_reader *r, const struct gpi_word *w, const char *what);

bool gpi_word_is(const struct gpi_word *w, const char *text);

/* Returns the value in a word KEY=VALUE, with its own column. */
struct gpi_word gpi_word_value(const struct gpi_word *w);

struct gpi_unit {
    const char *name;
    uint64_t size;
};

extern const struct gpi_unit gpi_times[], gpi_sizes[];

struct gpi_keyword {
    const char *name; /* NULL ends a list */
    uint64_t value;
};

/* Each returns whether the text has the form in its name. */
/* at its beginning; *at moves behind them */
bool gpi_digits(const char **at, uint64_t *ret);
/* a number of at most `most`, and nothing else */
bool gpi_whole(const char *text, uint64_t most, uint64_t *ret);
/* a number with a unit; "0" has none */
bool gpi_quantity(const char *text, const struct gpi_unit *units, uint64_t *ret);
/* "name" (UINT32_MAX) or "name*N"; cut to the name */
bool gpi_times_in(char *text, uint64_t *ret_times);
bool gpi_keyword_read(const struct gpi_keyword *list, const char *text, size_t size, uint64_t *ret);
bool gpi_version_in(const char *text, uint32_t *ret_major, uint32_t *ret_minor); /* "9.0" */

#endif
