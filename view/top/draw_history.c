/* SPDX-License-Identifier: MIT */
/* draw_history.c - what each GPU did. */
#include <string.h>

#include "view/top/draw.h"

enum { LEAST_COLUMNS = 72 };

/* ---- Cells ---- */

int gpv_history_width(const struct gpv_top_state *t)
{
    static const struct {
        int columns, cells[GPV_TOP_SPANS];
    } widths[] = { { 200, { 60, 120, 40 } },
                   { 140, { 30, 48, 40 } },
                   { 100, { 20, 24, 24 } },
                   { LEAST_COLUMNS, { 12, 12, 12 } } };

    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (t->columns >= widths[i].columns)
            return widths[i].cells[t->span];
    return 0;
}

/* A part of the time, in eighths or ninths. */
static const char *height(double part, bool ascii)
{
    static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    static const char *const digits[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" };
    int steps = ascii ? 9 : 8, step = (int)(part * steps + 0.5);

    step = step == 0 && part > 0 ? 1 : step > steps ? steps : step;
    return ascii ? digits[step] : blocks[step];
}

static const struct {
    enum gpv_use use;
    const char *letter, *word;
    enum gpv_style style;
} letters[] = { { GPV_USE_LOADING, "l", "load", GPV_STYLE_DIM },
                { GPV_USE_KEPT, "k", "kept", GPV_STYLE_DIM },
                { GPV_USE_OUT, "x", "out", GPV_STYLE_BAD },
                { GPV_USE_LOST, "v", "in vain", GPV_STYLE_BAD },
                { GPV_USE_UNKNOWN, "?", "not known", GPV_STYLE_DIM } };

/* A letter if most of the time was neither work nor idle. */
static const char *cell_of(struct gpv_drawing *d, const struct gpv_uses *u,
                           enum gpv_style *ret_style)
{
    int64_t all = 0, worked = u->ns[GPV_USE_OK] + u->ns[GPV_USE_LOST];

    *ret_style = GPV_STYLE_PLAIN;
    for (int i = 0; i < GPV_USES; i++)
        all += u->ns[i];
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (2 * u->ns[letters[i].use] > all) {
            *ret_style = letters[i].style;
            d->letters |= 1U << i;
            return letters[i].letter;
        }
    *ret_style = GPV_STYLE_GOOD;
    return all > 0 ? height((double)worked / (double)all, d->t->ascii) : " ";
}

/* The uses of the GPUs of a row, of some minutes. */
static struct gpv_uses uses_of(const struct gpv_drawing *d, size_t row, uint32_t ago, uint32_t n)
{
    const struct gpv_rows *r = &d->layout.part[GPV_PART_GPUS].rows;
    struct gpv_uses sum = { 0 };

    for (uint32_t i = r->first[row]; i < r->first[row + 1]; i++)
        for (uint32_t k = 0; k < n; k++) {
            struct gpv_uses u = gpv_top_minute(d->s, r->item[i], d->t->now, ago + k);
            for (int use = 0; use < GPV_USES; use++)
                sum.ns[use] += u.ns[use];
        }
    return sum;
}

static void put_minutes(struct gpv_drawing *d, int line, size_t row, const struct gpv_column *c)
{
    int minutes = (d->t->span == GPV_TOP_HOUR ? 60 : GPV_MINUTES) / c->width;

    for (int i = 0; i < c->width; i++) {
        struct gpv_uses u =
            uses_of(d, row, (uint32_t)((c->width - 1 - i) * minutes), (uint32_t)minutes);
        enum gpv_style style;
        const char *cell = cell_of(d, &u, &style);
        (void)gpv_screen_put(d->screen, line, c->at + i, 1, style, cell);
    }
}

/* "84 % worked, 7 % out", the largest ones that have room. */
static void put_shares(struct gpv_drawing *d, int line, size_t row, const struct gpv_column *c)
{
    const struct gpv_rows *r = &d->layout.part[GPV_PART_GPUS].rows;
    struct gpv_uses sum = { 0 };
    char text[256] = "", percent[GPV_WORD];
    double all = 0;
    int used = 0;

    for (uint32_t i = r->first[row]; i < r->first[row + 1]; i++)
        for (int use = 0; use < GPV_USES; use++) {
            sum.ns[use] += d->s->gpus.row[r->item[i]].uses.ns[use];
            all += (double)d->s->gpus.row[r->item[i]].uses.ns[use];
        }
    for (int n = 0; n < GPV_USES && all > 0; n++) {
        int most = 0, size;
        for (int use = 1; use < GPV_USES; use++)
            most = sum.ns[use] > sum.ns[most] ? use : most;
        if (sum.ns[most] <= 0)
            break;
        size = snprintf(text + used, sizeof text - (size_t)used, "%s%s %s", used ? ", " : "",
                        gpv_percent((double)sum.ns[most], all, percent),
                        most == GPV_USE_OK ? "ok" : gpv_use_word((uint32_t)most));
        if (used + size > c->width) {
            text[used] = 0;
            break;
        }
        used += size;
        sum.ns[most] = 0;
    }
    gpv_table_put(d->screen, line, c, GPV_STYLE_PLAIN, text);
}

void gpv_draw_history(struct gpv_drawing *d, int line, size_t row, const struct gpv_column *c)
{
    if (d->t->span == GPV_TOP_ALL)
        put_shares(d, line, row, c);
    else
        put_minutes(d, line, row, c);
}

/* ---- Words ---- */

const char *gpv_history_title(const struct gpv_drawing *d, char ret[64])
{
    static const char *const titles[] = { "LAST HOUR", "LAST 4 h", "SINCE " };
    char clock[GPV_WORD] = "";

    if (d->t->span == GPV_TOP_ALL)
        (void)gpv_date_clock(d->s->since, clock);
    snprintf(ret, 64, "%s%s", titles[d->t->span], clock);
    return ret;
}

void gpv_draw_legend(struct gpv_drawing *d)
{
    const struct gpv_place *p = &d->layout.part[GPV_PART_GPUS];
    int line = p->line + p->height;
    char text[128] = "";
    size_t used = 0;

    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (d->letters >> i & 1)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s", used ? ", " : "",
                                     letters[i].letter, letters[i].word);
    if (d->layout.part[GPV_PART_BATCHES].head > line)
        gpv_screen_put_right(d->screen, line, 0, d->t->columns, GPV_STYLE_DIM, text);
}
