/* SPDX-License-Identifier: MIT */
/* json.c - writes JSON. */
#include "view/json.h"

#include <string.h>

#include "view/plain.h"

enum { DIGITS = 20 };

static void put_number(FILE *f, int64_t number)
{
    uint64_t n = number < 0 ? -(uint64_t)number : (uint64_t)number;
    char text[DIGITS + 1], *at = text + sizeof text;

    do
        *--at = (char)('0' + n % 10);
    while (n /= 10);
    if (number < 0)
        *--at = '-';
    fwrite(at, 1, (size_t)(text + sizeof text - at), f);
}

static bool is_harmless(uint32_t c)
{
    return c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' && !gpv_steers(c);
}

static void put_string(FILE *f, const char *text)
{
    const char *from = text; /* written up to here */

    fputc('"', f);
    while (*text) {
        uint32_t c = 0xfffd;
        size_t n = gpv_character(text, &c);
        if (n == 0 || !is_harmless(c)) {
            fwrite(from, 1, (size_t)(text - from), f);
            fprintf(f, c == '"' || c == '\\' ? "\\%c" : "\\u%04x", c);
            from = text + (n ? n : 1);
        }
        text += n ? n : 1;
    }
    fwrite(from, 1, (size_t)(text - from), f);
    fputc('"', f);
}

static void before(struct gpv_json *j, const char *key)
{
    if (j->follows)
        fputc(',', j->f);
    j->follows = true;
    if (key) {
        put_string(j->f, key);
        fputc(':', j->f);
    }
}

void gpv_json_open(struct gpv_json *j, const char *key, char bracket)
{
    before(j, key);
    fputc(bracket, j->f);
    j->follows = false;
}

void gpv_json_close(struct gpv_json *j, char bracket)
{
    fputc(bracket, j->f);
    j->follows = true;
}

void gpv_json_text(struct gpv_json *j, const char *key, const char *text)
{
    before(j, key);
    if (*text)
        put_string(j->f, text);
    else
        fputs("null", j->f);
}

void gpv_json_number(struct gpv_json *j, const char *key, int64_t number)
{
    before(j, key);
    put_number(j->f, number);
}

void gpv_json_bool(struct gpv_json *j, const char *key, bool truth)
{
    before(j, key);
    fputs(truth ? "true" : "false", j->f);
}

void gpv_json_null(struct gpv_json *j, const char *key)
{
    before(j, key);
    fputs("null", j->f);
}

void gpv_json_time(struct gpv_json *j, const char *key, int64_t ns, int64_t least)
{
    before(j, key);
    if (ns < least)
        fputs("null", j->f);
    else
        put_number(j->f, ns);
}

void gpv_json_line(struct gpv_json *j)
{
    fputs(j->follows ? ",\n" : "\n", j->f);
    j->follows = false;
}
