/* SPDX-License-Identifier: MIT */
/* rows.c - nights as scripts. */
#include "rows.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "view/line.h"

void t_script_add(struct t_script *s, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int size = vsnprintf(s->text + s->size, sizeof(s->text) - s->size, format, list);
    va_end(list);
    s->size += (size_t)size;
    T_CMP(s->size, <, sizeof(s->text));
}

/* Adds the time that begins behind "@", and returns where it ends. */
static const char *add_time(struct t_script *s, const char *at)
{
    int hours, minutes, seconds = 0, used = 0, more = 0;
    T_EQ(sscanf(at, "%d:%2d%n", &hours, &minutes, &used), 2);
    if (sscanf(at + used, ":%2d%n", &seconds, &more) == 1)
        used += more;
    t_script_add(s, "%" PRIi64, T_AT(hours, minutes, seconds));
    return at + used;
}

char *t_clock(int64_t time, char ret[32])
{
    int64_t seconds = (time - T_BEGIN) / 1000000000;
    int used = snprintf(ret, 32, "%" PRIi64 ":%02" PRIi64, seconds / 3600, seconds / 60 % 60);
    if (seconds % 60 != 0)
        (void)snprintf(ret + used, 32 - (size_t)used, ":%02" PRIi64, seconds % 60);
    return ret;
}

/* A '-' that is a whole field is left out. */
static void translate(struct t_script *s, const char *rows)
{
    for (const char *c = rows; *c; c++) {
        bool begins = c == rows || strchr(" \n", c[-1]), ends = !c[1] || strchr(" \n", c[1]);
        if (*c == '@' && begins)
            c = add_time(s, c + 1) - 1;
        else if (*c != '-' || !begins || !ends)
            t_script_add(s, "%c", *c == ' ' ? '\t' : *c == '_' ? ' ' : *c);
    }
}

struct gpv_night *t_night_within(const char *rows, int64_t from, int64_t to)
{
    static struct t_script lines;
    struct gpv_night *n = gpv_night_new();
    T_CHECK(n);
    lines.size = 0;
    translate(&lines, rows);
    gpv_night_limit(n, from, to);
    T_EQ(gpv_lines_read(n, lines.text, lines.size), 0);
    T_EQ(gpv_night_end(n, 0), 0);
    T_EQ(n->unknown, 0);
    return n;
}

struct gpv_night *t_night(const char *rows)
{
    return t_night_within(rows, 0, 0);
}
