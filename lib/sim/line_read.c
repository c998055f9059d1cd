/* SPDX-License-Identifier: MIT */
/* line_read.c - see line_read.h. */
#include "sim/line_read.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define SHOWN 40 /* characters */

int gpi_line_shown(struct gpi_line_word w)
{
    return w.size < SHOWN ? (int)w.size : SHOWN;
}

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
