/* SPDX-License-Identifier: MIT */
/* table.c - columns of a part. */
#include "view/top/table.h"

void gpv_table_fit(struct gpv_column *c, int n, int columns)
{
    int used = -1, at = 0;

    for (int i = 0; i < n; i++)
        used += c[i].width == GPV_REST ? 1 : c[i].width ? c[i].width + 1 : 0;
    for (int i = 0; i < n; i++) {
        if (c[i].width == GPV_REST)
            c[i].width = columns > used ? columns - used : 0;
        c[i].at = at;
        at += c[i].width ? c[i].width + 1 : 0;
    }
}

void gpv_table_put(struct gpv_screen *s, int line, const struct gpv_column *c, enum gpv_style style,
                   const char *text)
{
    if (!text)
        return;
    if (c->right)
        gpv_screen_put_right(s, line, c->at, c->width, style, text);
    else
        (void)gpv_screen_put(s, line, c->at, c->width, style, text);
}

void gpv_table_head(struct gpv_screen *s, int line, const struct gpv_column *c, int n)
{
    for (int i = 0; i < n; i++)
        gpv_table_put(s, line, &c[i], GPV_STYLE_HEAD, c[i].title);
}

void gpv_table_span(struct gpv_screen *s, int line, const struct gpv_column *from,
                    const struct gpv_column *to, enum gpv_style style, const char *text)
{
    (void)gpv_screen_put(s, line, from->at, to->at + to->width - from->at, style, text);
}
