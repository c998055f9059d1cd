/* SPDX-License-Identifier: MIT */
/*
 * screen.h - the picture on a terminal, as cells: a character each, and its style.
 *
 * Texts of any bytes become cells that steer no terminal: escapes as in plain.h, U+FFFD in place of
 * bytes that are no character.                                                           [V5]
 * A wide character has two cells, of which the second one is empty.  A combining one belongs to the
 * cell before it.  Widths are those of the C library, in the locale of the program.
 */
#ifndef GPV_SCREEN_H
#define GPV_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum gpv_style {
    GPV_STYLE_PLAIN,
    GPV_STYLE_HEAD,
    GPV_STYLE_DIM,
    GPV_STYLE_GOOD,
    GPV_STYLE_BAD,
    GPV_STYLES
};

enum { GPV_CELL_BYTES = 16 }; /* a character and up to three combining ones */

struct gpv_cell {
    char text[GPV_CELL_BYTES + 1]; /* "": the second cell of a wide character */
    uint8_t style;                 /* enum gpv_style */
    bool chosen;                   /* of the chosen row */
};

struct gpv_screen {
    int columns, lines;
    bool ascii; /* only characters of ASCII */
    struct gpv_cell *cell;
};

/* All spaces.  -1: no memory. */
int gpv_screen_init(struct gpv_screen *s, int columns, int lines, bool ascii);
void gpv_screen_free(struct gpv_screen *s);

/* Cells that a text takes. */
int gpv_screen_width(const struct gpv_screen *s, const char *text);
/* Writes a text into `width` cells at most: a longer one is cut, and ends with "...".  Cells
 * outside of the screen are left out.  Returns the cells that it took. */
int gpv_screen_put(struct gpv_screen *s, int line, int column, int width, enum gpv_style style,
                   const char *text);
/* The same, at the right end of the width. */
void gpv_screen_put_right(struct gpv_screen *s, int line, int column, int width,
                          enum gpv_style style, const char *text);
/* Marks a line as that of the chosen row. */
void gpv_screen_choose(struct gpv_screen *s, int line);

/* Writes it as lines of text, without spaces at their ends and empty lines at its end.  The caller
 * checks the stream. */
void gpv_screen_print(const struct gpv_screen *s, FILE *f);

#endif
