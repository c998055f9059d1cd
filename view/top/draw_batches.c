/* SPDX-License-Identifier: MIT */
/* draw_batches.c - batches, and why the first task of each one waits. */
#include <inttypes.h>
#include <string.h>

#include "view/top/draw.h"

enum { NAME, BAR, OK, BAD, RUN, WAIT, RATE, LEFT, WHY, COLUMNS };

enum { WITH_BAD = 60, WITH_RATE = 120, WITH_BAR = 140, BAR_CELLS = 30, SO_FAR = 32 };

/* Cells for a number of tasks; a number that is not 0 has at least one. */
static int cells(uint32_t n, uint32_t total)
{
    int width = (int)((uint64_t)n * BAR_CELLS / (total ? total : 1));
    return n > 0 && width == 0 ? 1 : width > BAR_CELLS ? BAR_CELLS : width;
}

static void put_bar(struct gpv_drawing *d, int line, const struct gpv_column *c,
                    const struct gpv_now_batch *b)
{
    const struct {
        char letter;
        uint32_t n;
    } part[] = { { 'x', b->bad }, { '#', b->ok }, { '>', b->running } };
    char bar[BAR_CELLS + 3];
    int at = 1, width[3], order[] = { 1, 0, 2 }, left = BAR_CELLS;

    memset(bar, '.', sizeof bar);
    for (int i = 0; i < 3; i++) { /* the bad ones have their cell before the others */
        width[i] = cells(part[i].n, b->total);
        width[i] = width[i] > left ? left : width[i];
        left -= width[i];
    }
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < width[order[i]]; k++)
            bar[at++] = part[order[i]].letter;
    bar[0] = '[';
    bar[BAR_CELLS + 1] = ']';
    bar[BAR_CELLS + 2] = 0;
    gpv_table_put(d->screen, line, c, GPV_STYLE_PLAIN, bar);
}

static void put_number(struct gpv_drawing *d, int line, const struct gpv_column *c,
                       enum gpv_style style, uint64_t n)
{
    char text[GPV_WORD];
    gpv_table_put(d->screen, line, c, n ? style : GPV_STYLE_PLAIN, gpv_count(n, text));
}

/* "has GPU 7, waits for 1 more of 2" of a task that gathers its GPUs; "" if none is known. */
static void put_gathered(const struct gpv_snapshot *s, const struct gpv_now_batch *b, char *ret,
                         size_t size)
{
    const char *name[64];
    char gpus[96];
    uint32_t n = 0;

    *ret = 0;
    for (size_t i = 0; b->why == GPV_WHY_GATHERING && i < s->gpus.n && n < 64; i++)
        if (s->gpus.row[i].does == GPV_DOES_KEPT && GPV_BATCH_OF(s->gpus.row[i].kept_for) == b->id)
            name[n++] = s->gpus.row[i].name;
    if (n == 0 || n >= b->gpus)
        return;
    gpv_now_gpus(gpus, sizeof gpus, name, n);
    snprintf(ret, size, "has GPU %s, waits for %" PRIu32 " more of %" PRIu32, gpv_gpus_packed(gpus),
             b->gpus - n, b->gpus);
}

/* The sentence alone, of a text that has no room: that of "SHARE on gpu:0, has 0 of 10000, class
 * judge: running tasks have the share of the device". */
static const char *reason_of(const struct gpv_drawing *d, const struct gpv_now_batch *b, int room)
{
    const char *colon = strstr(b->text, ": ");
    bool is_named = *b->reason && !strncmp(b->text, b->reason, strlen(b->reason));

    return is_named && colon && gpv_screen_width(d->screen, b->text) > room ? colon + 2 : b->text;
}

/* "max_workers 3 of class whisper is reached (40 min)": the time is there if it has room, and so is
 * the text where a task gathers. */
static void put_why(struct gpv_drawing *d, int line, const struct gpv_column *c,
                    const struct gpv_now_batch *b)
{
    char text[384], word[GPV_WORD], has[128];
    size_t used;

    put_gathered(d->s, b, has, sizeof has);
    if (b->ended)
        snprintf(text, sizeof text, "ended at %s", gpv_clock(b->ended, word));
    else if (b->first == 0)
        snprintf(text, sizeof text, "%s", b->held ? "held" : "none waits");
    else
        snprintf(text, sizeof text, "%s%s%s", has, *has && *b->text ? ": " : "",
                 *has ? b->text : reason_of(d, b, c[WHY].width));
    if (*has && gpv_screen_width(d->screen, text) > c[WHY].width)
        snprintf(text, sizeof text, "%s", has);
    used = strlen(text);
    if (b->first && !b->ended && b->since) {
        snprintf(text + used, sizeof text - used, " (%s)", gpv_span(d->t->now - b->since, word));
        if (gpv_screen_width(d->screen, text) > c[WHY].width)
            text[used] = 0;
    }
    gpv_table_put(d->screen, line, &c[WHY], b->first ? GPV_STYLE_PLAIN : GPV_STYLE_DIM, text);
}

static void draw_row(struct gpv_drawing *d, int line, size_t row, const struct gpv_column *c)
{
    const struct gpv_rows *r = &d->layout.part[GPV_PART_BATCHES].rows;
    const struct gpv_now_batch *b = &d->s->batches.row[r->item[row]];
    char label[GPV_LABEL], text[GPV_WORD];

    gpv_table_put(d->screen, line, &c[NAME], GPV_STYLE_PLAIN, gpv_batch_label(b, label));
    if (c[BAR].width)
        put_bar(d, line, &c[BAR], b);
    put_number(d, line, &c[OK], GPV_STYLE_PLAIN, b->ok);
    put_number(d, line, &c[BAD], GPV_STYLE_BAD, b->bad);
    put_number(d, line, &c[RUN], GPV_STYLE_PLAIN, b->running);
    put_number(d, line, &c[WAIT], GPV_STYLE_PLAIN, (uint64_t)b->ready + b->held);
    if (c[RATE].width && !b->ended) {
        snprintf(text, sizeof text, b->per_hour < 10 ? "%.1f" : "%.0f", b->per_hour);
        gpv_table_put(d->screen, line, &c[RATE], GPV_STYLE_PLAIN, text);
    }
    if (!b->ended)
        gpv_table_put(d->screen, line, &c[LEFT], GPV_STYLE_PLAIN,
                      gpv_left_text(b->least, b->most, text));
    put_why(d, line, c, b);
}

/* Of the longest one, within a part of the line. */
static int names_width(const struct gpv_drawing *d)
{
    int columns = d->t->columns, width = 5;
    int most = columns < WITH_BAD ? 10 : columns < WITH_RATE ? columns / 6 : columns / 5;

    for (size_t i = 0; i < d->s->batches.n; i++) {
        char label[GPV_LABEL];
        int w = gpv_screen_width(d->screen, gpv_batch_label(&d->s->batches.row[i], label));
        width = w > width ? w : width;
    }
    return width < most ? width : most;
}

/* Of the longest number, and the title. */
static int number_width(const struct gpv_drawing *d, int column)
{
    char text[GPV_WORD];
    int width = column == BAD || column == RUN ? 3 : column == WAIT ? 4 : 2;

    for (size_t i = 0; i < d->s->batches.n; i++) {
        const struct gpv_now_batch *b = &d->s->batches.row[i];
        uint64_t n = column == OK    ? b->ok
                     : column == BAD ? b->bad
                     : column == RUN ? b->running
                                     : (uint64_t)b->ready + b->held;
        int w = (int)strlen(gpv_count(n, text));
        width = w > width ? w : width;
    }
    return width;
}

/* Of a column that is `width` wide. */
static const char *why_title(const struct gpv_drawing *d, int width, char ret[96])
{
#define GPV_X_NAME(name, word) word,
    static const char *const order[] = { GPV_SORT_MAP(GPV_X_NAME) };
#undef GPV_X_NAME
    const char *why = width >= 24 ? "WHY THE FIRST ONE WAITS" : "WHY IT WAITS";

    if (d->t->sort == GPV_SORT_QUEUE)
        snprintf(ret, 96, "%s%s", why, width >= SO_FAR ? " (so far)" : "");
    else
        snprintf(ret, 96, "%s (by %s)", why, order[d->t->sort]);
    return ret;
}

void gpv_draw_batches(struct gpv_drawing *d)
{
    int columns = d->t->columns;
    bool wide = columns >= WITH_BAD;
    char title[96];
    struct gpv_column c[COLUMNS] = {
        [NAME] = { .title = "BATCH", .width = names_width(d) },
        [BAR] = { .title = "", .width = columns >= WITH_BAR ? BAR_CELLS + 2 : 0 },
        [OK] = { .title = "OK", .width = wide ? number_width(d, OK) : 0, .right = true },
        [BAD] = { .title = "BAD", .width = wide ? number_width(d, BAD) : 0, .right = true },
        [RUN] = { .title = "RUN", .width = wide ? number_width(d, RUN) : 0, .right = true },
        [WAIT] = { .title = "WAIT", .width = number_width(d, WAIT), .right = true },
        [RATE] = { .title = "PER HOUR", .width = columns >= WITH_RATE ? 8 : 0, .right = true },
        [LEFT] = { .title = "LEFT", .width = wide ? 10 : 0 },
        [WHY] = { .width = GPV_REST },
    };

    gpv_table_fit(c, COLUMNS, columns);
    c[WHY].title = why_title(d, c[WHY].width, title);
    gpv_draw_rows(d, GPV_PART_BATCHES, c, COLUMNS, draw_row);
}
