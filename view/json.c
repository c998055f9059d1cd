/* SPDX-License-Identifier: MIT */
/* json.c - writes JSON. */
#include "view/json.h"

#include <math.h>
#include <string.h>

#include "view/plain.h"

enum { DIGITS = 20 };

static void put(struct gpv_json *j, const char *text, size_t size)
{
    fwrite_unlocked(text, 1, size, j->f);
    j->size += size;
}

static void put_text(struct gpv_json *j, const char *text)
{
    put(j, text, strlen(text));
}

static void put_byte(struct gpv_json *j, char byte)
{
    putc_unlocked(byte, j->f);
    j->size++;
}

static void put_number(struct gpv_json *j, int64_t number)
{
    uint64_t n = number < 0 ? -(uint64_t)number : (uint64_t)number;
    char text[DIGITS + 1], *at = text + sizeof text;

    do
        *--at = (char)('0' + n % 10);
    while (n /= 10);
    if (number < 0)
        *--at = '-';
    put(j, at, (size_t)(text + sizeof text - at));
}

/* No locale's comma. */
static void put_decimal(struct gpv_json *j, double number)
{
    double size = fabs(number);
    bool is_large = size >= 1e9; /* more digits than these have no meaning */
    int64_t whole = size < 9e18 ? (int64_t)size : INT64_MAX;
    int64_t part = is_large ? 0 : (int64_t)((size - (double)whole) * 1e6 + 0.5);
    char text[8] = ".";

    if (part >= 1000000) {
        whole++;
        part = 0;
    }
    if (number < 0 && (whole != 0 || part != 0))
        put_byte(j, '-');
    put_number(j, whole);
    if (part == 0)
        return;
    for (int i = 6; i > 0; i--, part /= 10)
        text[i] = (char)('0' + part % 10);
    size_t n = 7;
    while (text[n - 1] == '0')
        n--;
    put(j, text, n);
}

static bool is_harmless(uint32_t c)
{
    return c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' && !gpv_steers(c);
}

static void put_string(struct gpv_json *j, const char *text)
{
    const char *from = text; /* written up to here */

    put_byte(j, '"');
    while (*text) {
        uint32_t c = 0xfffd;
        size_t n = gpv_character(text, &c);
        if (n == 0 || !is_harmless(c)) {
            char escape[8];
            snprintf(escape, sizeof escape, c == '"' || c == '\\' ? "\\%c" : "\\u%04x", c);
            put(j, from, (size_t)(text - from));
            put_text(j, escape);
            from = text + (n ? n : 1);
        }
        text += n ? n : 1;
    }
    put(j, from, (size_t)(text - from));
    put_byte(j, '"');
}

static void before(struct gpv_json *j, const char *key)
{
    if (j->follows)
        put_byte(j, ',');
    j->follows = true;
    if (key) {
        put_byte(j, '"');
        put_text(j, key);
        put(j, "\":", 2);
    }
}

void gpv_json_open(struct gpv_json *j, const char *key, char bracket)
{
    before(j, key);
    put_byte(j, bracket);
    j->follows = false;
}

void gpv_json_close(struct gpv_json *j, char bracket)
{
    put_byte(j, bracket);
    j->follows = true;
}

void gpv_json_text(struct gpv_json *j, const char *key, const char *text)
{
    before(j, key);
    if (*text)
        put_string(j, text);
    else
        put_text(j, "null");
}

void gpv_json_number(struct gpv_json *j, const char *key, int64_t number)
{
    before(j, key);
    put_number(j, number);
}

void gpv_json_decimal(struct gpv_json *j, const char *key, double number)
{
    before(j, key);
    if (isfinite(number))
        put_decimal(j, number);
    else
        put_text(j, "null");
}

void gpv_json_bool(struct gpv_json *j, const char *key, bool truth)
{
    before(j, key);
    put_text(j, truth ? "true" : "false");
}

void gpv_json_null(struct gpv_json *j, const char *key)
{
    before(j, key);
    put_text(j, "null");
}

void gpv_json_time(struct gpv_json *j, const char *key, int64_t ns, int64_t least)
{
    before(j, key);
    if (ns < least)
        put_text(j, "null");
    else
        put_number(j, ns);
}

void gpv_json_line(struct gpv_json *j)
{
    put_text(j, j->follows ? ",\n" : "\n");
    j->follows = false;
}
