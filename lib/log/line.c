/* SPDX-License-Identifier: MIT */
/* line.c - see line.h. */
#include "log/line.h"

#include <string.h>

#include "base/clock.h"

const struct gpi_line_unit gpi_line_times[GPI_LINE_TIMES] = {
    { "s", GPI_S }, { "ms", GPI_MS }, { "us", GPI_US }, { "ns", 1 }
};

bool gpi_line_is(struct gpi_line_word w, const char *text)
{
    return w.size == strlen(text) && !memcmp(w.at, text, w.size);
}

bool gpi_line_next_word(const char **list, struct gpi_line_word *ret)
{
    *list += strspn(*list, " ");
    *ret = (struct gpi_line_word){ *list, strcspn(*list, " ") };
    *list += ret->size;
    return ret->size > 0;
}

/* ---- writing: without printf, since a run of the tests writes millions of lines ---- */

void gpi_line_add_bytes(struct gpi_line *t, const char *bytes, size_t size)
{
    const size_t room = t->room - 1 - t->size;

    size = size < room ? size : room;
    memcpy(t->to + t->size, bytes, size);
    t->size += size;
    t->to[t->size] = 0;
}

void gpi_line_add(struct gpi_line *t, const char *words)
{
    gpi_line_add_bytes(t, words, strlen(words));
}

void gpi_line_add_number(struct gpi_line *t, uint64_t n)
{
    char digits[20];
    size_t i = sizeof digits;

    do
        digits[--i] = (char)('0' + n % 10);
    while (n /= 10);
    gpi_line_add_bytes(t, &digits[i], sizeof digits - i);
}

void gpi_line_add_signed(struct gpi_line *t, int32_t n)
{
    if (n < 0)
        gpi_line_add(t, "-");
    gpi_line_add_number(t, (uint64_t)(n < 0 ? -(int64_t)n : n));
}

void gpi_line_add_amount(struct gpi_line *t, uint64_t n, const struct gpi_line_unit *unit)
{
    size_t i = 0;

    while (unit[i].size > 1 && n % unit[i].size)
        i++;
    gpi_line_add_number(t, n / unit[i].size);
    gpi_line_add(t, unit[i].name);
}

void gpi_line_add_time(struct gpi_line *t, uint64_t time)
{
    if (time == GPI_NEVER)
        gpi_line_add(t, "never");
    else
        gpi_line_add_amount(t, time, gpi_line_times);
}

/* A value without a word is a fault of its writer: the line has its number, which no reader
 * takes. */
void gpi_line_add_word(struct gpi_line *t, const char *list, uint64_t place)
{
    struct gpi_line_word w = { "", 0 };

    for (uint64_t i = 0; i <= place; i++)
        if (!gpi_line_next_word(&list, &w)) {
            gpi_line_add(t, "?");
            gpi_line_add_number(t, place);
            return;
        }
    gpi_line_add_bytes(t, w.at, w.size);
}
