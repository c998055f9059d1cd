/* SPDX-License-Identifier: MIT */
/* marks.c - ticks, glyphs and their numbers. */
#include "view/report/marks.h"

#include <stdlib.h>
#include <string.h>

#include "view/report/html.h"
#include "view/words.h"

enum {
    GLYPH = 12, /* dots, as all of these */
    DIGIT = 7,
    APART = 4,
    TICK = 5,
    GROUPS = GPV_CHART_WIDTH / (GLYPH + APART) + 2 /* in a lane, since their texts do not overlap */
};

/* Neighbours with one text. */
struct group {
    unsigned first, last; /* dots */
    uint32_t n[GPV_OUTCOMES];
    double width; /* of the text */
};

int gpv_marks_init(struct gpv_marks *m, unsigned dots)
{
    *m = (struct gpv_marks){ dots, calloc(dots, sizeof(*m->dot)) };
    return m->dot ? 0 : -1;
}

void gpv_marks_fini(struct gpv_marks *m)
{
    free(m->dot);
}

void gpv_marks_clear(struct gpv_marks *m)
{
    memset(m->dot, 0, m->dots * sizeof(*m->dot));
}

static uint64_t sum(const uint32_t n[GPV_OUTCOMES])
{
    uint64_t all = 0;
    for (unsigned i = 0; i < GPV_OUTCOMES; i++)
        all += n[i];
    return all;
}

static void measure(struct group *g)
{
    char word[GPV_WORD];
    g->width = 0;
    for (unsigned i = 0; i < GPV_OUTCOMES; i++) {
        if (g->n[i])
            g->width += GLYPH;
        if (g->n[i] > 1)
            g->width += (double)(strlen(gpv_count(g->n[i], word)) + 1) * DIGIT;
    }
}

static double middle(const struct group *g)
{
    return (g->first + g->last + 1) / 2.0;
}

static bool overlap(const struct group *a, const struct group *b)
{
    return middle(a) + a->width / 2 + APART > middle(b) - b->width / 2;
}

static void join(struct group *a, const struct group *b)
{
    a->last = b->last;
    for (unsigned i = 0; i < GPV_OUTCOMES; i++)
        a->n[i] += b->n[i];
    measure(a);
}

static void write_group(FILE *f, const struct group *g, const struct gpv_chart *c, unsigned y)
{
    char word[GPV_WORD], more[GPV_WORD];
    gpv_html(f,
             "<text class=\"mark\" fill=\"#c40026\" font-weight=\"700\" x=\"%.1f\" y=\"%u\" "
             "text-anchor=\"middle\" data-n=\"%llu\"><title>",
             c->left + middle(g), y, (unsigned long long)sum(g->n));
    for (unsigned i = 0; i < GPV_OUTCOMES; i++) {
        if (g->n[i])
            gpv_html(f, "%s %s, ", gpv_count(g->n[i], word), gpv_outcome_text(i));
    }
    gpv_html(f, "%s to %s</title>", gpv_clock_seconds(gpv_chart_time(c, g->first), word),
             gpv_clock_seconds(gpv_chart_time(c, g->last + 1), more));
    const char *before = "";
    for (unsigned i = 0; i < GPV_OUTCOMES; i++) {
        if (!g->n[i])
            continue;
        gpv_html(f, "%s%s%s%s", before, g->n[i] > 1 ? gpv_count(g->n[i], word) : "",
                 g->n[i] > 1 ? "x" : "", gpv_outcome_glyph(i));
        before = " ";
    }
    gpv_html(f, "</text>\n");
}

static void write_ticks(FILE *f, const struct gpv_marks *m, const struct gpv_chart *c, unsigned y)
{
    bool any = false;
    for (unsigned dot = 0; dot < m->dots; dot++) {
        if (!sum(m->dot[dot]))
            continue;
        if (!any)
            gpv_html(f, "<path class=\"tick\" fill=\"#c40026\" d=\"");
        any = true;
        gpv_html(f, "M%u %uh1.5v%uh-1.5z", c->left + dot, y + 1, TICK);
    }
    if (any)
        gpv_html(f, "\"/>\n");
}

void gpv_marks_write(FILE *f, const struct gpv_marks *m, const struct gpv_chart *c, unsigned y)
{
    struct group group[GROUPS];
    size_t n = 0;
    write_ticks(f, m, c, y);
    for (unsigned dot = 0; dot < m->dots; dot++) {
        if (!sum(m->dot[dot]))
            continue;
        struct group *g = &group[n++];
        *g = (struct group){ dot, dot, { 0 }, 0 };
        memcpy(g->n, m->dot[dot], sizeof(g->n));
        measure(g);
        for (; n > 1 && overlap(&group[n - 2], &group[n - 1]); n--)
            join(&group[n - 2], &group[n - 1]);
    }
    for (size_t i = 0; i < n; i++)
        write_group(f, &group[i], c, y);
}
