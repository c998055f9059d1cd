/* SPDX-License-Identifier: MIT */
/* draw_findings.c - what went wrong, newest first, alike things joined. */
#include <inttypes.h>
#include <string.h>

#include "view/night/findings.h"
#include "view/top/draw.h"

enum { TIME, GLYPH, WHAT, WHOSE, TEXT, NEXT, COLUMNS };

enum { WITH_WHOSE = 60, WITH_NEXT = 140 };

static const char *glyph_of(const struct gpv_drawing *d, const struct gpv_now_finding *f)
{
    if (f->kind == GPV_FINDING_BAD)
        return d->t->ascii ? "!" : gpv_outcome_glyph(f->outcome);
    return f->kind == GPV_FINDING_EVICTED ? "~" : f->kind == GPV_FINDING_UNKNOWN ? "?" : "#";
}

static void draw_row(struct gpv_drawing *d, int line, size_t row, const struct gpv_column *c)
{
    const struct gpv_rows *r = &d->layout.part[GPV_PART_FINDINGS].rows;
    const struct gpv_now_finding *f = &d->s->findings.row[r->item[row]];
    char first[GPV_WORD], last[GPV_WORD], text[2 * GPV_WORD + 2];
    bool is_bad = f->kind == GPV_FINDING_BAD || f->kind == GPV_FINDING_OUT;

    (void)gpv_clock(f->first, first);
    (void)gpv_clock(f->last, last);
    if (c[TIME].width > 5 && f->last >= d->s->time && f->kind != GPV_FINDING_BAD)
        snprintf(text, sizeof text, "%s-now", first);
    else if (c[TIME].width > 5 && strcmp(first, last) != 0)
        snprintf(text, sizeof text, "%s-%s", first, last);
    else
        snprintf(text, sizeof text, "%s", last);
    gpv_table_put(d->screen, line, &c[TIME], GPV_STYLE_PLAIN, text);
    gpv_table_put(d->screen, line, &c[GLYPH], is_bad ? GPV_STYLE_BAD : GPV_STYLE_PLAIN,
                  glyph_of(d, f));
    gpv_table_put(d->screen, line, &c[WHAT], is_bad ? GPV_STYLE_BAD : GPV_STYLE_PLAIN, f->what);
    gpv_table_put(d->screen, line, &c[WHOSE], GPV_STYLE_PLAIN, f->whose);
    if (c[TEXT].width)
        gpv_table_span(d->screen, line, &c[*f->whose ? TEXT : WHOSE], &c[TEXT], GPV_STYLE_PLAIN,
                       f->text);
    gpv_table_put(d->screen, line, &c[NEXT], GPV_STYLE_DIM, f->command);
}

/* The title has the number of all bad ends, also of those on no line.  [V4] */
static void put_title(struct gpv_drawing *d)
{
    const struct gpv_place *p = &d->layout.part[GPV_PART_FINDINGS];
    size_t rows, first = gpv_layout_first(d->t, d->s, GPV_PART_FINDINGS, p, &rows);
    uint64_t rest = gpv_draw_left_out(d, GPV_PART_FINDINGS, first, first + rows);
    char title[160] = "", more[64] = "", count[GPV_WORD];

    if (d->s->findings.n == 0 && d->s->more.findings == 0)
        snprintf(title, sizeof title, "WENT WRONG: nothing in 24 h");
    else if (rest)
        snprintf(more, sizeof more, "; %s more finding%s", gpv_count(rest, count),
                 rest == 1 ? "" : "s");
    if (!*title)
        snprintf(title, sizeof title, "WENT WRONG (%s bad end%s in 24 h, newest first%s)",
                 gpv_count(d->s->bad_24h, count), d->s->bad_24h == 1 ? "" : "s", more);
    if (p->head >= 0)
        (void)gpv_screen_put(d->screen, p->head, 0, d->t->columns, GPV_STYLE_HEAD, title);
}

void gpv_draw_findings(struct gpv_drawing *d)
{
    int columns = d->t->columns;
    bool wide = columns >= WITH_WHOSE;
    struct gpv_column c[COLUMNS] = {
        [TIME] = { .width = wide ? 11 : 5 },
        [GLYPH] = { .width = 1 },
        [WHAT] = { .width = wide ? 22 : GPV_REST },
        [WHOSE] = { .width = columns >= 120 ? columns / 5
                             : wide         ? 20
                                            : 0 },
        [TEXT] = { .width = wide ? GPV_REST : 0 },
        [NEXT] = { .width = columns >= WITH_NEXT ? 32 : 0 },
    };

    gpv_table_fit(c, COLUMNS, columns);
    put_title(d);
    if (c[NEXT].width && d->layout.part[GPV_PART_FINDINGS].head >= 0)
        (void)gpv_screen_put(d->screen, d->layout.part[GPV_PART_FINDINGS].head, c[NEXT].at,
                             c[NEXT].width, GPV_STYLE_HEAD, "TO TYPE NEXT");
    gpv_draw_rows(d, GPV_PART_FINDINGS, c, 0, draw_row);
}
