/* SPDX-License-Identifier: MIT */
/* draw_gpus.c - what each GPU does. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "view/top/draw.h"

enum { NAME, STATE, CLASS, TASK, FOR, LIMIT, MEMORY, USED, HEAT, POWER, HISTORY, COLUMNS };

/* Widths of the screen from which on columns are there. */
enum { WITH_CLASS = 60, WITH_LIMIT = 72, WITH_READINGS = 120 };

#define GIB (UINT64_C(1) << 30)

/* ---- A row ---- */

/* "0-2,4,6" */
static char *names_of(const struct gpv_drawing *d, size_t row, char *ret, size_t size)
{
    const struct gpv_rows *r = &d->layout.part[GPV_PART_GPUS].rows;
    uint32_t from = r->first[row], n = r->first[row + 1] - from;
    uint16_t *numbers = calloc(n, sizeof *numbers);
    bool plain = numbers != NULL;
    size_t used = 0;

    for (uint32_t i = 0; i < n; i++) {
        const char *name = gpv_gpu_short(d->s->gpus.row[r->item[from + i]].name);
        char *end = NULL;
        unsigned long number = strtoul(name, &end, 10);
        plain = plain && *name >= '0' && *name <= '9' && !*end && number < UINT16_MAX;
        if (plain)
            numbers[i] = (uint16_t)number;
        if (used < size)
            used += (size_t)snprintf(ret + used, size - used, "%s%s", i ? "," : "", name);
    }
    if (plain && n > 1)
        (void)gpv_gpus_packed(gpv_ranges(numbers, n, ret, size));
    free(numbers);
    return ret;
}

static const struct gpv_now_gpu *gpu_of(const struct gpv_drawing *d, size_t row, uint32_t i)
{
    const struct gpv_rows *r = &d->layout.part[GPV_PART_GPUS].rows;
    return &d->s->gpus.row[r->item[r->first[row] + i]];
}

static uint32_t gpus_of(const struct gpv_drawing *d, size_t row)
{
    const struct gpv_rows *r = &d->layout.part[GPV_PART_GPUS].rows;
    return r->first[row + 1] - r->first[row];
}

/* " +GPU 2,3" of "gpu:2,gpu:3" */
static void put_with(const char *with, char *ret, size_t size)
{
    size_t used = (size_t)snprintf(ret, size, " +GPU ");

    while (*with && used + 1 < size) {
        with = gpv_gpu_short(with);
        while (*with && used + 1 < size) {
            ret[used++] = *with;
            if (*with++ == ',')
                break;
        }
    }
    ret[used] = 0;
}

static const struct gpv_now_batch *batch_of(const struct gpv_snapshot *s, uint64_t task)
{
    for (size_t i = 0; i < s->batches.n; i++)
        if (s->batches.row[i].id == GPV_BATCH_OF(task))
            return &s->batches.row[i];
    return NULL;
}

/* "since 01:19 for 14 sweep (needs 2 GPUs)" */
static void describe_kept(const struct gpv_drawing *d, const struct gpv_now_gpu *g, char *ret,
                          size_t size)
{
    const struct gpv_now_batch *b = g->kept_for ? batch_of(d->s, g->kept_for) : NULL;
    char label[GPV_LABEL], clock[GPV_WORD];
    size_t used = 0;

    *ret = 0;
    if (g->since)
        used = (size_t)snprintf(ret, size, "since %s ", gpv_clock(g->since, clock));
    if (!b)
        snprintf(ret + used, size - used, "%s%s", used && *g->text ? "for " : "", g->text);
    else if (b->gpus)
        snprintf(ret + used, size - used, "for %s (needs %" PRIu32 " GPUs)",
                 gpv_batch_label(b, label), b->gpus);
    else
        snprintf(ret + used, size - used, "for %s", gpv_batch_label(b, label));
}

/* "quarantined since 01:12: XID 48" of "quarantined: XID 48" */
static void describe_out(const struct gpv_now_gpu *g, char *ret, size_t size)
{
    size_t word = strcspn(g->text, ":");
    char clock[GPV_WORD];

    if (g->since)
        snprintf(ret, size, "%.*s since %s%s", (int)word, g->text, gpv_clock(g->since, clock),
                 g->text + word);
    else
        snprintf(ret, size, "%s", g->text);
}

static void describe(const struct gpv_drawing *d, const struct gpv_now_gpu *g, char *ret,
                     size_t size)
{
    char label[GPV_LABEL], with[80] = "";

    if (g->does == GPV_DOES_KEPT) {
        describe_kept(d, g, ret, size);
        return;
    }
    if (g->does == GPV_DOES_OUT) {
        describe_out(g, ret, size);
        return;
    }
    if (g->does != GPV_DOES_RUN) {
        snprintf(ret, size, "%s", *g->text ? g->text : g->asleep ? "asleep" : "");
        return;
    }
    if (*g->with)
        put_with(g->with, with, sizeof with);
    if (g->tasks > 1)
        snprintf(ret, size, "%" PRIu32 " tasks: %s ...", g->tasks,
                 g->task ? gpv_task_label(d->s, g->task, label) : "");
    else
        snprintf(ret, size, "%s%s", g->task ? gpv_task_label(d->s, g->task, label) : "", with);
}

/* The earliest begin. */
static int64_t since_of(const struct gpv_drawing *d, size_t row)
{
    int64_t since = gpu_of(d, row, 0)->since;

    for (uint32_t i = 1; i < gpus_of(d, row); i++)
        since = gpu_of(d, row, i)->since < since ? gpu_of(d, row, i)->since : since;
    return since;
}

/* Of several GPUs: "5 GPUs: 15.754 rec-11, 15.753 rec-11" */
static void describe_all(const struct gpv_drawing *d, size_t row, char *ret, size_t size)
{
    struct gpv_now_gpu first = *gpu_of(d, row, 0);
    uint32_t n = gpus_of(d, row);
    size_t used = (size_t)snprintf(ret, size, "%" PRIu32 " GPUs", n);
    char text[256];
    uint64_t before = 0;

    if (first.does != GPV_DOES_RUN) {
        first.since = since_of(d, row);
        describe(d, &first, text, sizeof text);
        snprintf(ret + used, size - used, "%s%s", *text ? ": " : "", text);
        return;
    }
    for (uint32_t i = 0; i < n && used < size; i++) {
        const struct gpv_now_gpu *g = gpu_of(d, row, i);
        char label[GPV_LABEL];
        if (g->task && g->task != before) /* a wide one is on several */
            used += (size_t)snprintf(ret + used, size - used, "%s%s", before ? ", " : ": ",
                                     gpv_task_label(d->s, g->task, label));
        before = g->task ? g->task : before;
    }
}

static void put_readings(struct gpv_drawing *d, int line, const struct gpv_column *c,
                         const struct gpv_now_gpu *g)
{
    char text[64];

    if (g->memory_used != UINT64_MAX) {
        int used = snprintf(text, sizeof text, "%" PRIu64, (g->memory_used + GIB / 2) / GIB);
        if (c[MEMORY].width > 6 && g->memory_total != UINT64_MAX)
            snprintf(text + used, sizeof text - (size_t)used, "/%" PRIu64,
                     (g->memory_total + GIB / 2) / GIB);
        gpv_table_put(d->screen, line, &c[MEMORY], GPV_STYLE_PLAIN, text);
    }
    if (g->utilization != GPV_NONE) {
        snprintf(text, sizeof text, "%" PRIu32, g->utilization);
        gpv_table_put(d->screen, line, &c[USED], GPV_STYLE_PLAIN, text);
    }
    if (g->temperature != GPV_NONE) {
        snprintf(text, sizeof text, "%" PRIu32, g->temperature);
        gpv_table_put(d->screen, line, &c[HEAT], GPV_STYLE_PLAIN, text);
    }
    if (g->power != GPV_NONE) {
        snprintf(text, sizeof text, "%" PRIu32, g->power / 1000);
        gpv_table_put(d->screen, line, &c[POWER], GPV_STYLE_PLAIN, text);
    }
}

static void draw_row(struct gpv_drawing *d, int line, size_t row, const struct gpv_column *c)
{
    const struct gpv_now_gpu *g = gpu_of(d, row, 0);
    bool is_out = g->does == GPV_DOES_OUT, several = gpus_of(d, row) > 1;
    enum gpv_style style = is_out                    ? GPV_STYLE_BAD
                           : g->does == GPV_DOES_RUN ? GPV_STYLE_GOOD
                                                     : GPV_STYLE_PLAIN;
    char names[256], text[512] = "", word[GPV_WORD];

    gpv_table_put(d->screen, line, &c[NAME], GPV_STYLE_PLAIN,
                  names_of(d, row, names, c[NAME].width < 255 ? (size_t)c[NAME].width + 12 : 255));
    gpv_table_put(d->screen, line, &c[STATE], style, is_out ? "OUT" : gpv_does_word(g->does));
    if (several)
        describe_all(d, row, text, sizeof text);
    else
        describe(d, g, text, sizeof text);
    if (is_out || g->does == GPV_DOES_KEPT) { /* no class, but a long text */
        gpv_table_span(d->screen, line, &c[c[CLASS].width ? CLASS : TASK], &c[TASK],
                       GPV_STYLE_PLAIN, text);
    } else {
        gpv_table_put(d->screen, line, &c[CLASS], GPV_STYLE_PLAIN, g->class_name);
        gpv_table_put(d->screen, line, &c[TASK], GPV_STYLE_PLAIN, text);
    }
    if (g->does != GPV_DOES_IDLE)
        gpv_table_put(d->screen, line, &c[FOR], GPV_STYLE_PLAIN,
                      gpv_draw_since(d, since_of(d, row), word));
    if (!several && g->limit > 0)
        gpv_table_put(d->screen, line, &c[LIMIT], GPV_STYLE_PLAIN, gpv_span(g->limit, word));
    if (!several)
        put_readings(d, line, c, g);
    if (c[HISTORY].width)
        gpv_draw_history(d, line, row, &c[HISTORY]);
}

/* ---- Columns ---- */

static int names_width(const struct gpv_drawing *d)
{
    const struct gpv_place *p = &d->layout.part[GPV_PART_GPUS];
    int width = 3, most = d->t->columns < WITH_CLASS ? 8 : d->t->columns / 6;
    char names[256];

    for (size_t i = 0; i < p->rows.n; i++) {
        int w = gpv_screen_width(d->screen, names_of(d, i, names, sizeof names));
        width = w > width ? w : width;
    }
    return width < most ? width : most;
}

/* A column without a value in any row is left out. */
static void set_facts(const struct gpv_drawing *d, struct gpv_column *c)
{
    bool limit = false, memory = false, used = false, heat = false, power = false;
    bool wide = d->t->columns >= WITH_READINGS;

    for (size_t i = 0; i < d->s->gpus.n && d->t->columns >= WITH_LIMIT; i++) {
        limit |= d->s->gpus.row[i].limit > 0;
        memory |= d->s->gpus.row[i].memory_used != UINT64_MAX;
        used |= d->s->gpus.row[i].utilization != GPV_NONE;
        heat |= d->s->gpus.row[i].temperature != GPV_NONE;
        power |= d->s->gpus.row[i].power != GPV_NONE;
    }
    c[LIMIT].width = limit ? 6 : 0;
    c[MEMORY].width = memory ? wide ? 8 : 4 : 0;
    c[USED].width = used && wide ? 4 : 0;
    c[HEAT].width = heat && wide ? 4 : 0;
    c[POWER].width = power && wide ? 4 : 0;
}

void gpv_draw_gpus(struct gpv_drawing *d)
{
    int columns = d->t->columns;
    char title[64];
    struct gpv_column c[COLUMNS] = {
        [NAME] = { .title = "GPU", .width = names_width(d) },
        [STATE] = { .title = "STATE", .width = 5 },
        [CLASS] = { .title = "CLASS",
                    .width = columns >= WITH_READINGS ? 12
                             : columns >= WITH_CLASS  ? 7
                                                      : 0 },
        [TASK] = { .title = "TASK", .width = GPV_REST },
        [FOR] = { .title = "FOR", .width = 8, .right = true },
        [LIMIT] = { .title = "LIMIT", .right = true },
        [MEMORY] = { .title = "GiB", .right = true },
        [USED] = { .title = "%", .right = true },
        [HEAT] = { .title = "°C", .right = true },
        [POWER] = { .title = "W", .right = true },
        [HISTORY] = { .title = gpv_history_title(d, title), .width = gpv_history_width(d->t) },
    };

    if (d->t->ascii)
        c[HEAT].title = "C";
    set_facts(d, c);
    gpv_table_fit(c, COLUMNS, columns);
    gpv_draw_rows(d, GPV_PART_GPUS, c, COLUMNS, draw_row);
    gpv_draw_legend(d);
}
