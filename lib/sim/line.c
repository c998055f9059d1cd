/* SPDX-License-Identifier: MIT */
/* line.c - see line.h. */
#include "sim/line.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define SHOWN 40 /* characters */

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

int gpi_line_shown(struct gpi_line_word w)
{
    return w.size < SHOWN ? (int)w.size : SHOWN;
}

/* ---- reading ---- */

bool gpi_line_digits(struct gpi_line_word w, uint64_t most, uint64_t *ret)
{
    uint64_t n = 0;

    for (size_t i = 0; i < w.size; i++) {
        const unsigned digit = (unsigned)(unsigned char)w.at[i] - '0';
        if (digit > 9 || n > most / 10 || digit > most - n * 10)
            return false;
        n = n * 10 + digit;
    }
    *ret = n;
    return w.size > 0;
}

bool gpi_line_signed(struct gpi_line_word w, uint64_t *ret)
{
    const bool minus = w.size && *w.at == '-';
    const struct gpi_line_word digits = { w.at + minus, w.size - minus };

    if (!gpi_line_digits(digits, (uint64_t)INT32_MAX + minus, ret))
        return false;
    *ret = minus ? (uint32_t)0 - (uint32_t)*ret : *ret;
    return true;
}

bool gpi_line_amount(struct gpi_line_word w, const struct gpi_line_unit *unit, size_t n_units,
                     uint64_t *ret)
{
    struct gpi_line_word digits = { w.at, 0 }, name;

    while (digits.size < w.size && w.at[digits.size] >= '0' && w.at[digits.size] <= '9')
        digits.size++;
    name = (struct gpi_line_word){ w.at + digits.size, w.size - digits.size };
    for (size_t i = 0; i < n_units; i++)
        if (gpi_line_is(name, unit[i].name) &&
            gpi_line_digits(digits, UINT64_MAX / unit[i].size, ret)) {
            *ret *= unit[i].size;
            return true;
        }
    return false;
}

bool gpi_line_time(struct gpi_line_word w, uint64_t *ret)
{
    *ret = GPI_NEVER;
    return gpi_line_is(w, "never") || gpi_line_amount(w, gpi_line_times, GPI_LINE_TIMES, ret);
}

bool gpi_line_among(struct gpi_line_word w, const char *list, uint64_t *ret)
{
    struct gpi_line_word one;

    for (*ret = 0; gpi_line_next_word(&list, &one); ++*ret)
        if (one.size == w.size && !memcmp(one.at, w.at, w.size))
            return true;
    return false;
}

void gpi_line_error(char *error, size_t size, const char *format, va_list list)
{
    (void)vsnprintf(error, size, format, list);
    for (char *c = error; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
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
