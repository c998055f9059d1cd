/* SPDX-License-Identifier: MIT */
/* pages.c - pages of made-up nights. */
#include "pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "view/report/report.h"
#include "view/words.h"

char *t_page_of(struct gpv_night *n, unsigned reload)
{
    const struct gpv_report_options o = { .reload = reload };
    char *out = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&out, &size);

    T_CHECK(f);
    T_EQ(gpv_report_write(n, &o, f), 0);
    (void)fclose(f);
    return out;
}

bool t_has(const char *page, const char *part)
{
    if (!strstr(page, part))
        printf("no %s\nin %s\n", part, page);
    return strstr(page, part) != NULL;
}

char *t_section(const char *page, const char *id)
{
    char begin[64];

    (void)snprintf(begin, sizeof(begin), "<section id=\"%s\">", id);
    const char *at = strstr(page, begin);
    T_CHECK(at);
    const char *end = strstr(at, "</section>");
    T_CHECK(end);
    return strndup(at, (size_t)(end - at));
}

bool t_has_times(const char *page, const char *format, int first, int second)
{
    char a[GPV_WORD], b[GPV_WORD], part[160];

    (void)gpv_clock(T_BEGIN + first * MINUTE, a);
    (void)gpv_clock(T_BEGIN + second * MINUTE, b);
    (void)snprintf(part, sizeof(part), format, a, b);
    return t_has(page, part);
}
