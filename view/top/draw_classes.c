/* SPDX-License-Identifier: MIT */
/* draw_classes.c - classes of workers; and the tasks that ended last. */
#include <inttypes.h>
#include <string.h>

#include "view/top/draw.h"

/* ---- Classes ---- */

enum { CLASS, WORKERS, READY, LOADING, BOOT, RUN, EVICTED, RESTARTS, CLASS_COLUMNS };

static void put_number(struct gpv_drawing *d, int line, const struct gpv_column *c, uint64_t n)
{
    char text[GPV_WORD];
    gpv_table_put(d->screen, line, c, GPV_STYLE_PLAIN, gpv_count(n, text));
}

static void put_span(struct gpv_drawing *d, int line, const struct gpv_column *c, int64_t ns)
{
    char text[GPV_WORD];
    gpv_table_put(d->screen, line, c, GPV_STYLE_PLAIN, ns < 0 ? "-" : gpv_span(ns, text));
}

static void draw_class(struct gpv_drawing *d, int line, size_t row, const struct gpv_column *c)
{
    const struct gpv_rows *r = &d->layout.part[GPV_PART_CLASSES].rows;
    const struct gpv_now_class *class = &d->s->classes.row[r->item[row]];

    gpv_table_put(d->screen, line, &c[CLASS], GPV_STYLE_PLAIN, class->name);
    put_number(d, line, &c[WORKERS], class->workers);
    put_number(d, line, &c[READY], class->ready);
    put_number(d, line, &c[LOADING], class->loading);
    put_span(d, line, &c[BOOT], class->boot_p50);
    put_span(d, line, &c[RUN], class->run_p50);
    put_number(d, line, &c[EVICTED], class->evicted);
    put_number(d, line, &c[RESTARTS], class->restarts);
}

void gpv_draw_classes(struct gpv_drawing *d)
{
    int columns = d->t->columns;
    bool wide = columns >= 72;
    struct gpv_column c[CLASS_COLUMNS] = {
        [CLASS] = { .title = "CLASS", .width = columns >= 100 ? 24 : GPV_REST },
        [WORKERS] = { .title = "WORKERS", .width = 7, .right = true },
        [READY] = { .title = "READY", .width = wide ? 6 : 0, .right = true },
        [LOADING] = { .title = "LOADING", .width = wide ? 8 : 0, .right = true },
        [BOOT] = { .title = "BOOT p50", .width = wide ? 9 : 0, .right = true },
        [RUN] = { .title = "RUN p50", .width = wide ? 9 : 0, .right = true },
        [EVICTED] = { .title = "EVICTED", .width = 8, .right = true },
        [RESTARTS] = { .title = "RESTARTS", .width = 9, .right = true },
    };

    gpv_table_fit(c, CLASS_COLUMNS, columns);
    gpv_draw_rows(d, GPV_PART_CLASSES, c, CLASS_COLUMNS, draw_class);
}

/* ---- Ends ---- */

enum { TIME, TASK, OUTCOME, RAN, WAITED, GPUS, END_COLUMNS };

static void draw_end(struct gpv_drawing *d, int line, size_t row, const struct gpv_column *c)
{
    const struct gpv_rows *r = &d->layout.part[GPV_PART_ENDS].rows;
    const struct gpv_now_end *e = &d->s->ends.row[r->item[row]];
    const char *glyph = d->t->ascii ? "" : gpv_outcome_glyph(e->outcome);
    char text[GPV_LABEL], word[GPV_WORD];

    gpv_table_put(d->screen, line, &c[TIME], GPV_STYLE_PLAIN, gpv_clock_seconds(e->time, word));
    snprintf(text, sizeof text, "%s %s", gpv_task_id(e->task, word), e->batch_name);
    gpv_table_put(d->screen, line, &c[TASK], GPV_STYLE_PLAIN, text);
    snprintf(text, sizeof text, "%s%s%s", gpv_outcome_word(e->outcome), *glyph ? " " : "", glyph);
    gpv_table_put(d->screen, line, &c[OUTCOME],
                  e->outcome == GPV_OK ? GPV_STYLE_PLAIN : GPV_STYLE_BAD, text);
    put_span(d, line, &c[RAN], e->ran);
    put_span(d, line, &c[WAITED], e->waited);
    gpv_table_put(d->screen, line, &c[GPUS], GPV_STYLE_PLAIN, e->gpus);
}

void gpv_draw_ends(struct gpv_drawing *d)
{
    int columns = d->t->columns;
    bool wide = columns >= 72;
    struct gpv_column c[END_COLUMNS] = {
        [TIME] = { .title = "ENDED LAST", .width = 10 },
        [TASK] = { .title = "TASK", .width = columns >= 120 ? 40 : GPV_REST },
        [OUTCOME] = { .title = "OUTCOME", .width = 12 },
        [RAN] = { .title = "RAN", .width = wide ? 8 : 0, .right = true },
        [WAITED] = { .title = "WAITED", .width = wide ? 8 : 0, .right = true },
        [GPUS] = { .title = "GPU", .width = wide ? 10 : 0 },
    };

    gpv_table_fit(c, END_COLUMNS, columns);
    gpv_draw_rows(d, GPV_PART_ENDS, c, END_COLUMNS, draw_end);
}
