/* SPDX-License-Identifier: MIT */
/* draw_gpus.c - what each GPU does, and what it did. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "view/top/draw.h"

enum { NAME, STATE, CLASS, TASK, FOR, LIMIT, MEMORY, USED, HEAT, POWER, HISTORY, COLUMNS };

/* Widths of the screen from which on columns are there. */
enum { WITH_CLASS = 60, WITH_LIMIT = 72, WITH_READINGS = 120, WITH_LEGEND = 40 };

#define GIB (UINT64_C(1) << 30)

/* ---- History ---- */

/* Cells of a history, so that each has the same whole number of minutes. */
static int history_width(const struct gpv_top_state *t)
{
    static const struct {
        int columns, cells[GPV_TOP_SPANS];
    } widths[] = { { 200, { 60, 120, 40 } },
                   { 140, { 30, 48, 40 } },
                   { 100, { 20, 24, 24 } },
                   { WITH_LIMIT, { 12, 12, 12 } } };

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

/* A letter if most of the time was neither work nor idle. */
static const char *cell_of(const struct gpv_uses *u, bool ascii, enum gpv_style *ret_style)
{
    static const struct {
        enum gpv_use use;
        const char *letter;
        enum gpv_style style;
    } letters[] = { { GPV_USE_OUT, "x", GPV_STYLE_BAD },
                    { GPV_USE_LOST, "v", GPV_STYLE_BAD },
                    { GPV_USE_LOADING, "l", GPV_STYLE_DIM },
                    { GPV_USE_KEPT, "k", GPV_STYLE_DIM },
                    { GPV_USE_UNKNOWN, "?", GPV_STYLE_DIM } };
    int64_t all = 0, worked = u->ns[GPV_USE_OK] + u->ns[GPV_USE_LOST];

    *ret_style = GPV_STYLE_PLAIN;
    for (int i = 0; i < GPV_USES; i++)
        all += u->ns[i];
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (2 * u->ns[letters[i].use] > all) {
            *ret_style = letters[i].style;
            return letters[i].letter;
        }
    *ret_style = GPV_STYLE_GOOD;
    return all > 0 ? height((double)worked / (double)all, ascii) : " ";
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
        const char *cell = cell_of(&u, d->t->ascii, &style);
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
    if (plain && n > 1) {
        char *to = ret;
        (void)gpv_ranges(numbers, n, ret, size);
        for (const char *at = ret; *at; at++) /* a comma has no space behind it */
            if (*at != ' ' || at[1] == '.')
                *to++ = *at;
        *to = 0;
    }
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

static void describe(const struct gpv_drawing *d, const struct gpv_now_gpu *g, char *ret,
                     size_t size)
{
    char label[GPV_LABEL], with[80] = "";

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

/* Of several GPUs: "5 GPUs: 15.754 rec-11, 15.753 rec-11" */
static void describe_all(const struct gpv_drawing *d, size_t row, char *ret, size_t size)
{
    uint32_t n = gpus_of(d, row);
    size_t used = (size_t)snprintf(ret, size, "%" PRIu32 " GPUs", n);
    uint64_t before = 0;

    for (uint32_t i = 0; i < n && used < size; i++) {
        const struct gpv_now_gpu *g = gpu_of(d, row, i);
        char label[GPV_LABEL];
        if (g->does != GPV_DOES_RUN && i > 0)
            break;
        if (g->does != GPV_DOES_RUN && *g->text)
            used += (size_t)snprintf(ret + used, size - used, ": %s", g->text);
        if (g->task && g->task != before) /* a wide one is on several */
            used += (size_t)snprintf(ret + used, size - used, "%s%s", before ? ", " : ": ",
                                     gpv_task_label(d->s, g->task, label));
        before = g->task ? g->task : before;
    }
}

/* The earliest begin. */
static int64_t since_of(const struct gpv_drawing *d, size_t row)
{
    int64_t since = gpu_of(d, row, 0)->since;

    for (uint32_t i = 1; i < gpus_of(d, row); i++)
        since = gpu_of(d, row, i)->since < since ? gpu_of(d, row, i)->since : since;
    return since;
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
        gpv_table_put(d->screen, line, &c[LIMIT], GPV_STYLE_PLAIN, gpv_stopwatch(g->limit, word));
    if (!several)
        put_readings(d, line, c, g);
    if (c[HISTORY].width && d->t->span == GPV_TOP_ALL)
        put_shares(d, line, row, &c[HISTORY]);
    else if (c[HISTORY].width)
        put_minutes(d, line, row, &c[HISTORY]);
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

static void set_readings(const struct gpv_drawing *d, struct gpv_column *c)
{
    bool used = false, heat = false, power = false;

    for (size_t i = 0; i < d->s->gpus.n; i++) {
        used |= d->s->gpus.row[i].utilization != GPV_NONE;
        heat |= d->s->gpus.row[i].temperature != GPV_NONE;
        power |= d->s->gpus.row[i].power != GPV_NONE;
    }
    c[USED].width = used ? 4 : 0;
    c[HEAT].width = heat ? 4 : 0;
    c[POWER].width = power ? 4 : 0;
    c[MEMORY].width = 8;
}

static const char *history_title(const struct gpv_drawing *d, char ret[64])
{
    static const char *const titles[] = { "LAST HOUR", "LAST 4 h", "SINCE " };
    int width = history_width(d->t);
    char clock[GPV_WORD] = "";

    if (d->t->span == GPV_TOP_ALL)
        (void)gpv_date_clock(d->s->since, clock);
    snprintf(ret, 64, "%s%s%s", titles[d->t->span], clock,
             d->t->span != GPV_TOP_ALL && width >= WITH_LEGEND ? " (l load, k kept, x out)" : "");
    return ret;
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
        [LIMIT] = { .title = "LIMIT", .width = columns >= WITH_LIMIT ? 6 : 0, .right = true },
        [MEMORY] = { .title = "GiB", .width = columns >= WITH_LIMIT ? 4 : 0, .right = true },
        [USED] = { .title = "%", .right = true },
        [HEAT] = { .title = "°C", .right = true },
        [POWER] = { .title = "W", .right = true },
        [HISTORY] = { .title = history_title(d, title), .width = history_width(d->t) },
    };

    if (d->t->ascii)
        c[HEAT].title = "C";
    if (columns >= WITH_READINGS)
        set_readings(d, c);
    gpv_table_fit(c, COLUMNS, columns);
    gpv_draw_rows(d, GPV_PART_GPUS, c, COLUMNS, draw_row);
}
