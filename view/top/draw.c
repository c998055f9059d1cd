/* SPDX-License-Identifier: MIT */
/* draw.c - a state and a snapshot as a screen. */
#include "view/top/draw.h"

#include <inttypes.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

/* ---- Times ---- */

static const char *unit_of(int64_t ns)
{
    return ns < 90 * SECOND ? " s" : ns < 90 * MINUTE ? " min" : "";
}

/* In the unit of the longer end: "58", "3h59", "2d4h". */
static void put_left(int64_t ns, int64_t most, char ret[GPV_WORD])
{
    if (most < 90 * SECOND)
        snprintf(ret, GPV_WORD, "%" PRIi64, ns / SECOND);
    else if (most < 90 * MINUTE)
        snprintf(ret, GPV_WORD, "%" PRIi64, ns / MINUTE);
    else if (most < 48 * HOUR)
        snprintf(ret, GPV_WORD, "%" PRIi64 "h%02" PRIi64, ns / HOUR, ns / MINUTE % 60);
    else
        snprintf(ret, GPV_WORD, "%" PRIi64 "d%" PRIi64 "h", ns / HOUR / 24, ns / HOUR % 24);
}

char *gpv_left_text(int64_t least, int64_t most, char ret[GPV_WORD])
{
    int64_t longer = most > least ? most : least;
    char from[GPV_WORD], to[GPV_WORD];

    put_left(least, longer, from);
    put_left(longer, longer, to);
    if (least < 0)
        snprintf(ret, GPV_WORD, "unknown");
    else if (most < 0)
        snprintf(ret, GPV_WORD, "%.16s%s+", from, unit_of(least));
    else if (!strcmp(from, to))
        snprintf(ret, GPV_WORD, "%.16s%s", to, unit_of(longer));
    else
        snprintf(ret, GPV_WORD, "%.16s-%.16s%s", from, to, unit_of(longer));
    return ret;
}

char *gpv_draw_since(const struct gpv_drawing *d, int64_t since, char ret[GPV_WORD])
{
    int64_t ns = d->t->now - since;

    ret[0] = 0;
    if (since == 0)
        return ret;
    return gpv_span(ns, ret);
}

/* ---- Rows of any part ---- */

static const char *name_of(enum gpv_part part, bool one)
{
#define GPV_X_NAME(name, value, single, many) { single, many },
    static const char *const names[][2] = { GPV_PART_MAP(GPV_X_NAME) };
#undef GPV_X_NAME
    return names[part][one ? 0 : 1];
}

/* Of what is on no line: "3 run, 240 wait, 12 bad". */
static void describe_batches(const struct gpv_drawing *d, const struct gpv_rows *r, size_t from,
                             size_t to, char *ret, size_t size)
{
    uint64_t run = d->s->more.running, bad = d->s->more.bad;
    uint64_t wait = (uint64_t)d->s->more.ready + d->s->more.held;

    for (size_t i = 0; i < r->n; i++) {
        const struct gpv_now_batch *b = &d->s->batches.row[r->item[i]];
        bool is_out = i < from || i >= to;
        run += is_out ? b->running : 0;
        bad += is_out ? b->bad : 0;
        wait += is_out ? (uint64_t)b->ready + b->held : 0;
    }
    snprintf(ret, size, ": %" PRIu64 " run, %" PRIu64 " wait, %" PRIu64 " bad", run, wait, bad);
}

static void describe_gpus(const struct gpv_drawing *d, const struct gpv_rows *r, size_t from,
                          size_t to, char *ret, size_t size)
{
    uint32_t does[GPV_DOES] = { 0 };
    size_t used = 0;

    for (size_t i = 0; i < r->n; i++)
        for (uint32_t k = r->first[i]; (i < from || i >= to) && k < r->first[i + 1]; k++)
            does[d->s->gpus.row[r->item[k]].does % GPV_DOES]++;
    for (uint32_t i = 0; i < GPV_DOES; i++)
        if (does[i] && used < size)
            used += (size_t)snprintf(ret + used, size - used, "%s %" PRIu32 " %s", used ? "," : ":",
                                     does[i], gpv_does_word(i));
}

static uint64_t unlisted(const struct gpv_snapshot *s, enum gpv_part part)
{
    return part == GPV_PART_BATCHES    ? s->more.batches
           : part == GPV_PART_CLASSES  ? s->more.classes
           : part == GPV_PART_FINDINGS ? s->more.findings
                                       : 0;
}

uint64_t gpv_draw_left_out(const struct gpv_drawing *d, enum gpv_part part, size_t from, size_t to)
{
    const struct gpv_rows *r = &d->layout.part[part].rows;
    uint64_t rest = r->first[r->n] - (r->first[to] - r->first[from]);

    return rest + unlisted(d->s, part);
}

/* "12 more batches: 3 run, 240 wait, 12 bad" */
static void put_count(struct gpv_drawing *d, enum gpv_part part, size_t from, size_t to)
{
    const struct gpv_place *p = &d->layout.part[part];
    uint64_t rest = gpv_draw_left_out(d, part, from, to);
    char text[160], what[96] = "", count[GPV_WORD];
    int line = p->line + p->height - 1;

    if (rest == 0)
        return;
    if (part == GPV_PART_BATCHES)
        describe_batches(d, &p->rows, from, to, what, sizeof what);
    if (part == GPV_PART_GPUS)
        describe_gpus(d, &p->rows, from, to, what, sizeof what);
    snprintf(text, sizeof text, "%s more %s%s", gpv_count(rest, count), name_of(part, rest == 1),
             what);
    if (to - from < (size_t)p->height) {
        (void)gpv_screen_put(d->screen, line, 0, d->t->columns, GPV_STYLE_DIM, text);
        return;
    }
    /* one line only, which has a row */
    snprintf(text, sizeof text, " +%s", count);
    gpv_screen_put_right(d->screen, line, d->t->columns - (int)strlen(text), (int)strlen(text),
                         GPV_STYLE_HEAD, text);
}

static void put_nothing(struct gpv_drawing *d, enum gpv_part part)
{
    char text[128];

    if (gpv_rows_of(d->s, part) > 0)
        snprintf(text, sizeof text, "no %s with the text that is looked for", name_of(part, true));
    else
        snprintf(text, sizeof text, "no %s", name_of(part, false));
    (void)gpv_screen_put(d->screen, d->layout.part[part].line, 0, d->t->columns, GPV_STYLE_DIM,
                         text);
}

void gpv_draw_rows(struct gpv_drawing *d, enum gpv_part part, const struct gpv_column *c, int n,
                   gpv_draw_row_fn fn)
{
    const struct gpv_place *p = &d->layout.part[part];
    size_t rows, first = gpv_layout_first(d->t, d->s, part, p, &rows);
    size_t chosen = gpv_row_chosen(d->t, d->s, part, &p->rows);

    if (p->head >= 0)
        gpv_table_head(d->screen, p->head, c, n);
    if (p->height == 0)
        return;
    if (rows == 0 && unlisted(d->s, part) == 0 && !(part == GPV_PART_FINDINGS && p->head >= 0))
        put_nothing(d, part);
    for (size_t i = 0; i < rows; i++) {
        int line = p->line + (int)i;
        fn(d, line, first + i, c);
        if (d->t->live && d->t->part == part && first + i == chosen)
            gpv_screen_choose(d->screen, line);
    }
    if (!gpv_layout_counts_in_title(part, p))
        put_count(d, part, first, first + rows);
}

/* ---- In place of the parts ---- */

static const char *const help_lines[] = {
    "Tab          the next part          arrows   choose a row",
    "Enter        why the task of the row waits, or all of a finding",
    "l            output of the task of the row",
    "/            show rows with a text only; Esc ends it",
    "s            order of the batches: the queue, waiting, time left, bad ends",
    "h            span of the history: an hour, 4 hours, since the agent started",
    "p            pause the screen, and go on",
    "q            quit, or back",
    "",
    "History: the height is the share of the time that worked.  l load, k kept",
    "free for a wide task, x out of use, v worked in vain, ? not known.",
    "",
    "✕ error  ◆ timeout  ▲ crashed  ○ put back  ? lost  # a GPU  ~ evicted",
    "",
    "LEFT and done are ranges.  Nothing here can be changed.",
};

static void draw_help(struct gpv_drawing *d)
{
    int line = d->layout.header + (d->t->lines >= 20);

    for (size_t i = 0; i < sizeof help_lines / sizeof *help_lines; i++)
        if (line + (int)i < d->t->lines - 1)
            (void)gpv_screen_put(d->screen, line + (int)i, 0, d->t->columns, GPV_STYLE_PLAIN,
                                 help_lines[i]);
}

/* A line of the text at a time: NUL bytes are shown as an end of the line. */
static void draw_pane(struct gpv_drawing *d)
{
    const struct gpv_pane *p = &d->t->pane;
    const char *text = p->text ? p->text : "", *end = text + p->size;
    int line = d->layout.header;

    (void)gpv_screen_put(d->screen, line++, 0, d->t->columns, GPV_STYLE_HEAD, p->title);
    for (size_t i = 0; text < end && line < d->t->lines - 1; i++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t size = (size_t)((newline ? newline : end) - text);
        char shown[1024];
        if (i >= p->line) {
            snprintf(shown, sizeof shown, "%.*s", (int)(size < 1000 ? size : 1000), text);
            (void)gpv_screen_put(d->screen, line++, 0, d->t->columns, GPV_STYLE_PLAIN, shown);
        }
        text += size + 1;
    }
}

/* ---- The screen ---- */

static void draw_parts(struct gpv_drawing *d)
{
    static void (*const draw[GPV_PARTS])(struct gpv_drawing *) = {
        [GPV_PART_GPUS] = gpv_draw_gpus,         [GPV_PART_BATCHES] = gpv_draw_batches,
        [GPV_PART_CLASSES] = gpv_draw_classes,   [GPV_PART_ENDS] = gpv_draw_ends,
        [GPV_PART_FINDINGS] = gpv_draw_findings,
    };

    for (enum gpv_part i = 0; i < GPV_PARTS; i++)
        if (d->layout.part[i].shown)
            draw[i](d);
}

static void draw_too_small(const struct gpv_top_state *t, struct gpv_screen *screen)
{
    char text[96];

    snprintf(text, sizeof text, "%dx%d: top needs %dx%d", t->columns, t->lines, GPV_TOP_COLUMNS,
             GPV_TOP_LINES);
    (void)gpv_screen_put(screen, 0, 0, t->columns, GPV_STYLE_PLAIN, text);
}

int gpv_top_draw(const struct gpv_top_state *t, const struct gpv_snapshot *s,
                 struct gpv_screen *ret)
{
    struct gpv_drawing d = { .t = t, .s = s, .screen = ret };
    int code = gpv_screen_init(ret, t->columns, t->lines, t->ascii);

    if (code)
        return code;
    if (t->columns < GPV_TOP_COLUMNS || t->lines < GPV_TOP_LINES) {
        draw_too_small(t, ret);
        return 0;
    }
    code = gpv_layout_make(t, s, &d.layout);
    if (code == 0) {
        gpv_draw_header(&d);
        if (t->pane.open)
            draw_pane(&d);
        else if (t->help)
            draw_help(&d);
        else
            draw_parts(&d);
        if (t->live)
            gpv_draw_footer(&d);
    } else {
        gpv_screen_free(ret);
    }
    gpv_layout_free(&d.layout);
    return code;
}
