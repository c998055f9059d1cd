/* SPDX-License-Identifier: MIT */
/* chart.c - an axis of local time, lanes and boxes. */
#include "view/report/chart.h"

#include <stdlib.h>
#include <string.h>

#include "view/report/html.h"
#include "view/words.h"

#define SECOND INT64_C(1000000000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)

enum {
    LETTER = 7,     /* dots: most texts have narrower ones */
    LEFT = 62,      /* at least */
    LEFT_MOST = 160 /* then texts are cut */
};

struct gpv_chart gpv_chart_of(const struct gpv_night *n, size_t labels)
{
    const size_t wanted = labels < LEFT_MOST ? labels * LETTER + 14 : LEFT_MOST;
    const unsigned left = wanted < LEFT ? LEFT : wanted > LEFT_MOST ? LEFT_MOST : (unsigned)wanted;
    return (struct gpv_chart){ n->from, n->to > n->from ? n->to : n->from + 1, left,
                               GPV_CHART_WIDTH - GPV_CHART_RIGHT - left };
}

double gpv_chart_x(const struct gpv_chart *c, int64_t time)
{
    const int64_t t = time < c->from ? c->from : time > c->to ? c->to : time;
    return c->left + (double)(t - c->from) / (double)(c->to - c->from) * c->dots;
}

unsigned gpv_chart_dot(const struct gpv_chart *c, int64_t time)
{
    const double x = gpv_chart_x(c, time) - c->left;
    return x < c->dots - 1 ? (unsigned)x : c->dots - 1;
}

int64_t gpv_chart_time(const struct gpv_chart *c, unsigned dot)
{
    return c->from + (int64_t)((double)(c->to - c->from) * dot / c->dots);
}

/* A step of the axis that leaves room for its texts, in ns. */
static int64_t step_of(int64_t span, unsigned most)
{
    static const int64_t steps[] = { 1,   2,    5,    10,   30,    60,    120,   300,  600,
                                     900, 1800, 3600, 7200, 10800, 21600, 43200, 86400 };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (span / (steps[i] * SECOND) < most)
            return steps[i] * SECOND;
    }
    return (span / DAY / most + 1) * DAY;
}

static void axis(FILE *f, const struct gpv_chart *c, unsigned top, unsigned bottom)
{
    const int64_t span = c->to - c->from;
    const bool dated = span > DAY;
    const int64_t step = step_of(span, dated ? 9 : 13);
    const int64_t zone = gpv_zone(c->from);
    char word[GPV_WORD];
    for (int64_t t = (c->from + zone + step - 1) / step * step - zone; t <= c->to; t += step) {
        const double x = gpv_chart_x(c, t);
        gpv_html(f,
                 "<path class=\"line\" stroke=\"#ccc\" d=\"M%.1f %uV%u\"/>"
                 "<text class=\"dim\" x=\"%.1f\" y=\"12\" text-anchor=\"middle\">%s</text>\n",
                 x, top - 4, bottom, x,
                 dated                ? gpv_date_clock(t, word)
                 : step < 60 * SECOND ? gpv_clock_seconds(t, word)
                                      : gpv_clock(t, word));
    }
}

void gpv_chart_begin(FILE *f, const struct gpv_chart *c, const char *id, const char *sentence,
                     unsigned top, unsigned height)
{
    gpv_html(f,
             "<svg id=\"%s\" role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %u %u\" "
             "font-family=\"sans-serif\" font-size=\"11\" data-left=\"%u\" data-dots=\"%u\">\n",
             id, sentence, GPV_CHART_WIDTH, height, c->left, c->dots);
    axis(f, c, top, height);
}

void gpv_chart_end(FILE *f)
{
    gpv_html(f, "</svg>\n");
}

void gpv_chart_lane(FILE *f, const struct gpv_chart *c, unsigned y, const char *label,
                    const char *number)
{
    gpv_html(f, "<path class=\"line\" stroke=\"#ccc\" d=\"M%u %u.5H%u\"/>", c->left, y,
             c->left + c->dots);
    gpv_html(f, "<text x=\"0\" y=\"%u\">%.*s</text>", y - 5, (int)(c->left - 8) / LETTER, label);
    gpv_html(f, "<text x=\"%u\" y=\"%u\" text-anchor=\"end\">%s</text>\n", GPV_CHART_WIDTH, y - 5,
             number);
}

bool gpv_chart_note(FILE *f, double from, double to, unsigned y, const char *text)
{
    enum { LEAST = 8 }; /* letters, unless the text is shorter */
    const int room = (int)((to - from - 10) / LETTER);
    if (!*text || room <= 0 || (room < LEAST && gpv_html_width(text) > (size_t)room))
        return false;
    gpv_html(f,
             "<text class=\"note\" x=\"%.1f\" y=\"%u\" font-weight=\"600\" stroke=\"#fff\" "
             "stroke-width=\"4\" stroke-linejoin=\"round\" paint-order=\"stroke\">%.*s</text>\n",
             from + 5, y, room, text);
    return true;
}

int gpv_box_add(struct gpv_boxes *b, double x, double y, double width, double height,
                enum gpv_texture texture)
{
    if (!gpv_grow(&b->list.row, b->list.n, &b->list.room, sizeof(*b->list.row)))
        return -1;
    b->list.row[b->list.n++] =
        (struct gpv_box){ (float)x, (float)y, (float)width, (float)height, (uint8_t)texture };
    return 0;
}

/* A number with one digit behind its point, none if that is 0. */
static void put(FILE *f, const char *before, double value)
{
    const unsigned tenths = (unsigned)(value * 10 + .5);
    if (tenths % 10)
        gpv_html(f, "%s%u.%u", before, tenths / 10, tenths % 10);
    else
        gpv_html(f, "%s%u", before, tenths / 10);
}

void gpv_boxes_write(FILE *f, const struct gpv_boxes *b)
{
    for (unsigned t = 0; t < GPV_TEXTURES; t++) {
        bool any = false;
        for (size_t i = 0; i < b->list.n; i++) {
            const struct gpv_box *box = &b->list.row[i];
            if (box->texture != t)
                continue;
            gpv_html(f, any ? "" : "<path d=\"");
            any = true;
            put(f, "M", box->x);
            put(f, " ", box->y);
            put(f, "h", box->width);
            put(f, "v", box->height);
            put(f, "h-", box->width);
            gpv_html(f, "z");
        }
        if (any) {
            gpv_html(f, "\"");
            gpv_texture_fill(f, t);
            gpv_html(f, "/>\n");
        }
    }
}
