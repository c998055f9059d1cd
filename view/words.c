/* SPDX-License-Identifier: MIT */
/* words.c - numbers, times and ids, as all views show them. */
#include "view/words.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

char *gpv_span(int64_t ns, char ret[GPV_WORD])
{
    if (ns < 0)
        ns = 0;
    if (ns < SECOND)
        snprintf(ret, GPV_WORD, "%" PRIi64 " ms", ns / 1000000);
    else if (ns < 10 * SECOND)
        snprintf(ret, GPV_WORD, "%" PRIi64 ".%" PRIi64 " s", ns / SECOND, ns / (SECOND / 10) % 10);
    else if (ns < 100 * SECOND)
        snprintf(ret, GPV_WORD, "%" PRIi64 " s", ns / SECOND);
    else if (ns < 90 * MINUTE)
        snprintf(ret, GPV_WORD, "%" PRIi64 " min", ns / MINUTE);
    else if (ns < 2 * DAY)
        snprintf(ret, GPV_WORD, "%" PRIi64 " h %02" PRIi64, ns / HOUR, ns / MINUTE % 60);
    else
        snprintf(ret, GPV_WORD, "%" PRIi64 " d %" PRIi64 " h", ns / DAY, ns / HOUR % 24);
    return ret;
}

static char *local(int64_t time, const char *format, char ret[GPV_WORD])
{
    time_t seconds = (time_t)(time / SECOND);
    struct tm tm;
    if (!localtime_r(&seconds, &tm) || strftime(ret, GPV_WORD, format, &tm) == 0)
        ret[0] = 0;
    return ret;
}

int64_t gpv_zone(int64_t time)
{
    const time_t seconds = (time_t)(time / SECOND);
    struct tm tm;
    return localtime_r(&seconds, &tm) ? (int64_t)tm.tm_gmtoff * SECOND : 0;
}

char *gpv_clock(int64_t time, char ret[GPV_WORD])
{
    return local(time, "%H:%M", ret);
}

char *gpv_clock_seconds(int64_t time, char ret[GPV_WORD])
{
    return local(time, "%H:%M:%S", ret);
}

/* The names of months are those of English in every locale. */
static char *dated(int64_t time, const char *format, bool whole, char ret[GPV_WORD])
{
    static const char *const months[] = { "January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December" };
    time_t seconds = (time_t)(time / SECOND);
    struct tm tm;
    ret[0] = 0;
    if (!localtime_r(&seconds, &tm))
        return ret;
    int month = whole ? 16 : 3;
    snprintf(ret, GPV_WORD, "%d %.*s ", tm.tm_mday, month, months[tm.tm_mon]);
    size_t used = strlen(ret);
    (void)strftime(ret + used, GPV_WORD - used, format, &tm);
    return ret;
}

char *gpv_date_clock(int64_t time, char ret[GPV_WORD])
{
    return dated(time, "%H:%M", false, ret);
}

char *gpv_date(int64_t time, char ret[GPV_WORD])
{
    return dated(time, "%Y", true, ret);
}

char *gpv_count(uint64_t n, char ret[GPV_WORD])
{
    char digits[24];
    size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n), at = 0;
    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            ret[at++] = ',';
        ret[at++] = digits[i];
    }
    ret[at] = 0;
    return ret;
}

char *gpv_percent(double part, double whole, char ret[GPV_WORD])
{
    double percent = whole > 0 ? 100 * part / whole : 0;
    if (percent > 0 && percent < 0.1)
        snprintf(ret, GPV_WORD, "<0.1 %%");
    else if (percent > 0 && percent < 10)
        snprintf(ret, GPV_WORD, "%.1f %%", percent);
    else
        snprintf(ret, GPV_WORD, "%.0f %%", percent);
    return ret;
}

char *gpv_task_id(uint64_t task, char ret[GPV_WORD])
{
    snprintf(ret, GPV_WORD, "%" PRIu32 ".%" PRIu32, (uint32_t)(task >> 32), (uint32_t)task);
    return ret;
}

struct gpv_cut gpv_cut(char *to, size_t size)
{
    *to = 0;
    return (struct gpv_cut){ .to = to, .size = size };
}

void gpv_cut_add(struct gpv_cut *c, const char *separator, const char *text)
{
    static const char dots[] = " ...";
    size_t length = strlen(separator) + strlen(text);
    if (c->full)
        return;
    c->full = c->used + length + sizeof(dots) > c->size;
    if (c->full && c->used + sizeof(dots) > c->size)
        return;
    c->used += (size_t)snprintf(c->to + c->used, c->size - c->used, "%s%s",
                                c->full ? dots : separator, c->full ? "" : text);
}

char *gpv_ranges(const uint16_t *number, size_t n, char *ret, size_t size)
{
    struct gpv_cut c = gpv_cut(ret, size);
    for (size_t first = 0, next; first < n; first = next) {
        char item[32];
        for (next = first + 1; next < n && number[next] == number[next - 1] + 1;)
            next++;
        snprintf(item, sizeof(item), next > first + 1 ? "%d-%d" : "%d", number[first],
                 number[next - 1]);
        gpv_cut_add(&c, first ? ", " : "", item);
    }
    return ret;
}
