/* SPDX-License-Identifier: MIT */
/* screen.c - texts as cells. */
#include "view/top/screen.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "view/plain.h"

/* ---- Characters ---- */

/* The next character of a text, as it is shown. */
struct shown {
    char text[GPV_ESCAPE];
    int width; /* 0: it belongs to the one before it, or, without a text, is not shown */
};

/* Characters without a width that join others, or choose how others look: terminals disagree about
 * the width of the result, so that a line with one of them would lie wrong. */
static bool joins(uint32_t c)
{
    return c == 0x61c || (c >= 0x200b && c <= 0x200d) || (c >= 0x2060 && c <= 0x2064) ||
           (c >= 0xfe00 && c <= 0xfe0f) || c == 0xfeff || (c >= 0xe0000 && c <= 0xe0fff);
}

/* Returns how many bytes of the text it has. */
static size_t next_shown(const struct gpv_screen *s, const char *text, struct shown *ret)
{
    uint32_t c = 0;
    size_t n = gpv_character(text, &c);
    int width = n > 0 && !gpv_steers(c) && !joins(c) ? wcwidth((wchar_t)c) : 0;

    *ret = (struct shown){ 0 };
    if (n > 0 && gpv_steers(c)) {
        (void)gpv_escape(c, ret->text);
        ret->width = (int)strlen(ret->text);
    } else if (n > 0 && (joins(c) || (s->ascii && width == 0))) {
        ret->width = 0;
    } else if (n == 0 || width < 0 || (s->ascii && c >= 0x80)) {
        snprintf(ret->text, sizeof ret->text, "%s", s->ascii ? "?" : "\ufffd");
        ret->width = 1;
    } else {
        memcpy(ret->text, text, n);
        ret->width = width;
    }
    return n > 0 ? n : 1;
}

int gpv_screen_width(const struct gpv_screen *s, const char *text)
{
    int width = 0;
    struct shown c;

    while (*text) {
        text += next_shown(s, text, &c);
        width += c.width;
    }
    return width;
}

/* ---- Cells ---- */

int gpv_screen_init(struct gpv_screen *s, int columns, int lines, bool ascii)
{
    size_t n = (size_t)columns * (size_t)lines;

    *s = (struct gpv_screen){ .columns = columns, .lines = lines, .ascii = ascii };
    s->cell = calloc(n + 1, sizeof *s->cell);
    if (!s->cell)
        return -1;
    for (size_t i = 0; i < n; i++)
        s->cell[i].text[0] = ' ';
    return 0;
}

void gpv_screen_free(struct gpv_screen *s)
{
    free(s->cell);
    *s = (struct gpv_screen){ 0 };
}

/* NULL: it lies outside. */
static struct gpv_cell *cell_at(const struct gpv_screen *s, int line, int column)
{
    if (line < 0 || line >= s->lines || column < 0 || column >= s->columns)
        return NULL;
    return &s->cell[(size_t)line * (size_t)s->columns + (size_t)column];
}

static void set_blank(struct gpv_cell *cell)
{
    if (cell)
        memcpy(cell->text, " ", 2);
}

/* A wide character of which one cell gets another text loses the other cell, too. */
static void part_wide(struct gpv_screen *s, int line, int column)
{
    struct gpv_cell *next = cell_at(s, line, column + 1);

    if (!*cell_at(s, line, column)->text)
        set_blank(cell_at(s, line, column - 1));
    if (next && !*next->text)
        set_blank(next);
}

static void set_cell(struct gpv_screen *s, int line, int column, enum gpv_style style,
                     const char *text, size_t size)
{
    struct gpv_cell *cell = cell_at(s, line, column);

    if (!cell || size > GPV_CELL_BYTES)
        return;
    if (size > 0)
        part_wide(s, line, column);
    memset(cell->text, 0, sizeof cell->text);
    memcpy(cell->text, text, size);
    cell->style = (uint8_t)style;
}

/* What does not fit is left out: text of many marks on one character. */
static void add_to_cell(struct gpv_screen *s, int line, int column, const char *text)
{
    struct gpv_cell *cell = cell_at(s, line, column);
    size_t size = cell ? strlen(cell->text) : 0;

    if (cell && size == 0)
        add_to_cell(s, line, column - 1, text);
    else if (cell && size + strlen(text) <= GPV_CELL_BYTES)
        strcpy(cell->text + size, text);
}

/* Several cells of one letter each, or one character. */
static void put_shown(struct gpv_screen *s, int line, int column, enum gpv_style style,
                      const struct shown *c)
{
    bool letters = (size_t)c->width == strlen(c->text);

    for (int i = 0; i < c->width; i++)
        if (letters)
            set_cell(s, line, column + i, style, c->text + i, 1);
        else
            set_cell(s, line, column + i, style, c->text, i == 0 ? strlen(c->text) : 0);
}

/* Returns the cells that it took: `width` at most. */
static int put_whole(struct gpv_screen *s, int line, int column, int width, enum gpv_style style,
                     const char *text)
{
    int used = 0;

    while (*text) {
        struct shown c;
        text += next_shown(s, text, &c);
        if (used + c.width > width)
            break;
        if (c.width > 0)
            put_shown(s, line, column + used, style, &c);
        else if (used > 0)
            add_to_cell(s, line, column + used - 1, c.text);
        used += c.width;
    }
    return used;
}

int gpv_screen_put(struct gpv_screen *s, int line, int column, int width, enum gpv_style style,
                   const char *text)
{
    static const char cut[] = "...";
    const int dots = (int)sizeof cut - 1;
    int used;

    if (width > s->columns - column)
        width = s->columns - column;
    if (width <= 0)
        return 0;
    if (gpv_screen_width(s, text) <= width)
        return put_whole(s, line, column, width, style, text);
    if (width <= dots)
        return put_whole(s, line, column, width, style, text);
    used = put_whole(s, line, column, width - dots, style, text);
    return used + put_whole(s, line, column + used, dots, style, cut);
}

void gpv_screen_put_right(struct gpv_screen *s, int line, int column, int width,
                          enum gpv_style style, const char *text)
{
    int free_cells = width - gpv_screen_width(s, text);

    if (free_cells > 0) {
        column += free_cells;
        width -= free_cells;
    }
    (void)gpv_screen_put(s, line, column, width, style, text);
}

void gpv_screen_choose(struct gpv_screen *s, int line)
{
    for (int i = 0; i < s->columns; i++) {
        struct gpv_cell *cell = cell_at(s, line, i);
        if (cell)
            cell->chosen = true;
    }
}

/* ---- Text ---- */

static int end_of_line(const struct gpv_screen *s, int line)
{
    int end = s->columns;

    while (end > 0 && !strcmp(cell_at(s, line, end - 1)->text, " "))
        end--;
    return end;
}

void gpv_screen_print(const struct gpv_screen *s, FILE *f)
{
    int lines = s->lines;

    while (lines > 0 && end_of_line(s, lines - 1) == 0)
        lines--;
    for (int line = 0; line < lines; line++) {
        int end = end_of_line(s, line);
        for (int i = 0; i < end; i++)
            fputs(cell_at(s, line, i)->text, f);
        fputc('\n', f);
    }
}
