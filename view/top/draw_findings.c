/* SPDX-License-Identifier: MIT */
/* draw_findings.c - what went wrong, newest first, alike things joined, and what to type next. */
#include <inttypes.h>
#include <string.h>

#include "view/night/findings.h"
#include "view/top/draw.h"

enum { TIME, GLYPH, WHAT, REST, NEXT, COLUMNS };

enum { WITH_REST = 60, WIDE = 120, WIDEST = 180, LEAST_TASKS = 14, LEAST_TEXT = 10 };

/* ---- A row ---- */

static const char *glyph_of(const struct gpv_drawing *d, const struct gpv_now_finding *f)
{
    if (f->kind == GPV_FINDING_BAD)
        return d->t->ascii ? "!" : gpv_outcome_glyph(f->outcome);
    return f->kind == GPV_FINDING_EVICTED ? "~" : f->kind == GPV_FINDING_UNKNOWN ? "?" : "#";
}

/* "01:01-01:12", "01:12-now"; of a narrow column the last time. */
static void put_times(struct gpv_drawing *d, int line, const struct gpv_column *c,
                      const struct gpv_now_finding *f)
{
    char first[GPV_WORD], last[GPV_WORD], text[2 * GPV_WORD + 2];

    (void)gpv_clock(f->first, first);
    (void)gpv_clock(f->last, last);
    if (c->width > 5 && f->last >= d->s->time && f->kind != GPV_FINDING_BAD)
        snprintf(text, sizeof text, "%s-now", first);
    else if (c->width > 5 && strcmp(first, last) != 0)
        snprintf(text, sizeof text, "%s-%s", first, last);
    else
        snprintf(text, sizeof text, "%s", last);
    gpv_table_put(d->screen, line, c, GPV_STYLE_PLAIN, text);
}

static bool ends_in(const char *text, const char *end)
{
    size_t size = strlen(text), length = strlen(end);
    return size >= length && !strcmp(text + size - length, end);
}

/* As many whole words as there is room for, without half a status: "22 tasks CRASHED" of "22 tasks
 * CRASHED signal 11".  False: not even the outcome of "99,924 tasks CANCELLED" is left. */
static bool cut_words(const struct gpv_drawing *d, int width, char *text)
{
    char *space = text;

    while (space && (gpv_screen_width(d->screen, text) > width || ends_in(text, " signal") ||
                     ends_in(text, " exit") || ends_in(text, " NO") || ends_in(text, " PUT")))
        if ((space = strrchr(text, ' ')) != NULL)
            *space = 0;
    return space && !ends_in(text, " tasks");
}

/* Where the words have no room, "99,924 CANCELLED". */
static void put_words(struct gpv_drawing *d, int line, const struct gpv_column *c,
                      enum gpv_style style, const char *words)
{
    char text[64];
    const char *tasks = strstr(words, " tasks ");

    snprintf(text, sizeof text, "%s", words);
    if (!cut_words(d, c->width, text) && tasks) {
        snprintf(text, sizeof text, "%.*s%s", (int)(tasks - words), words, tasks + 6);
        (void)cut_words(d, c->width, text);
    }
    gpv_table_put(d->screen, line, c, style, text);
}

/* "15 rec-11 610-631, GPU 0,4-5, 44 times: killed by signal 11" up to the column `last`.  A part that
 * has no room is left out, but of the tasks and the cause the begin is there. */
static void put_rest(struct gpv_drawing *d, int line, const struct gpv_column *c,
                     const struct gpv_column *last, const struct gpv_now_finding *f)
{
    const int end = last->at + last->width, room = end - c->at;
    char gpus[64], count[GPV_WORD], part[3][192] = { "", "", "" };
    int at = c->at, whose;

    snprintf(gpus, sizeof gpus, "%s", f->gpus);
    if (f->kind == GPV_FINDING_BAD && *gpus)
        snprintf(part[0], sizeof part[0], ", GPU %s", gpv_gpus_packed(gpus));
    if (f->tasks > 0 && f->count > f->tasks)
        snprintf(part[1], sizeof part[1], ", %s times", gpv_count(f->count, count));
    if (*f->text)
        snprintf(part[2], sizeof part[2], "%s%s", *f->whose ? ": " : "", f->text);
    whose = room - gpv_screen_width(d->screen, part[0]);
    at += gpv_screen_put(d->screen, line, at, whose < LEAST_TASKS ? room : whose, GPV_STYLE_PLAIN,
                         f->whose);
    for (int i = 0; i < 3; i++)
        if (gpv_screen_width(d->screen, part[i]) <= end - at || (i == 2 && end - at >= LEAST_TEXT))
            at += gpv_screen_put(d->screen, line, at, end - at, GPV_STYLE_PLAIN, part[i]);
}

/* "retry 15 --failed" of "gpudispatch retry 15 --failed", which the title of the column begins. */
static const char *command_of(const struct gpv_now_finding *f)
{
    static const char program[] = "gpudispatch ";

    return f->command + (strncmp(f->command, program, sizeof program - 1) ? 0 : sizeof program - 1);
}

static void draw_row(struct gpv_drawing *d, int line, size_t row, const struct gpv_column *c)
{
    const struct gpv_rows *r = &d->layout.part[GPV_PART_FINDINGS].rows;
    const struct gpv_now_finding *f = &d->s->findings.row[r->item[row]];
    const struct gpv_column *last = &c[*f->command ? REST : NEXT];
    enum gpv_style style =
        f->kind == GPV_FINDING_BAD || f->kind == GPV_FINDING_OUT ? GPV_STYLE_BAD : GPV_STYLE_PLAIN;
    char text[256];

    put_times(d, line, &c[TIME], f);
    gpv_table_put(d->screen, line, &c[GLYPH], style, glyph_of(d, f));
    if (c[REST].width && f->kind != GPV_FINDING_BAD &&
        gpv_screen_width(d->screen, f->what) > c[WHAT].width) {
        snprintf(text, sizeof text, "%s%s%s", f->what, *f->text ? ": " : "", f->text);
        gpv_table_span(d->screen, line, &c[WHAT], last, style, text);
    } else {
        put_words(d, line, &c[WHAT], style, f->what);
        if (c[REST].width)
            put_rest(d, line, &c[REST], last, f);
    }
    gpv_table_put(d->screen, line, &c[NEXT], GPV_STYLE_HEAD, command_of(f));
}

/* ---- The title ---- */

static bool has_kept(const struct gpv_snapshot *s)
{
    for (size_t i = 0; i < s->findings.n; i++)
        if (s->findings.row[i].kind == GPV_FINDING_KEPT ||
            s->findings.row[i].kind == GPV_FINDING_LIMITED)
            return true;
    return false;
}

/* "WENT WRONG (54 bad ends of 33 tasks in 24 h, newest first; 6 more findings)", in the longest of
 * four forms that has room.  Each has the number of all bad ends, also of those on no line, and
 * how many rows are on none.  [V4] */
static void write_title(struct gpv_drawing *d, int form, uint64_t rest, char *ret, size_t size)
{
    static const char *const spans[] = { " in 24 h, newest first", " in 24 h", "", "" };
    const struct gpv_snapshot *s = d->s;
    char more[64] = "", of[64] = "", count[GPV_WORD];

    if (rest)
        snprintf(more, sizeof more, "; %s more%s", gpv_count(rest, count),
                 form > 0    ? ""
                 : rest == 1 ? " finding"
                             : " findings");
    if (s->bad_tasks_24h && form < 3)
        snprintf(of, sizeof of, " of %s task%s", gpv_count(s->bad_tasks_24h, count),
                 s->bad_tasks_24h == 1 ? "" : "s");
    snprintf(ret, size, "WENT WRONG%s (%s bad end%s%s%s%s)",
             form < 3 && has_kept(s) ? " OR STOOD FREE" : "", gpv_count(s->bad_24h, count),
             s->bad_24h == 1 ? "" : "s", of, spans[form], more);
}

static void put_title(struct gpv_drawing *d, int room)
{
    const struct gpv_place *p = &d->layout.part[GPV_PART_FINDINGS];
    size_t rows, first = gpv_layout_first(d->t, d->s, GPV_PART_FINDINGS, p, &rows);
    uint64_t rest = gpv_draw_left_out(d, GPV_PART_FINDINGS, first, first + rows);
    char title[192] = "WENT WRONG: nothing in 24 h";
    int form = 0;

    if (d->s->findings.n > 0 || d->s->more.findings > 0)
        do
            write_title(d, form, rest, title, sizeof title);
        while (gpv_screen_width(d->screen, title) > room && ++form < 4);
    (void)gpv_screen_put(d->screen, p->head, 0, room, GPV_STYLE_HEAD, title);
}

/* ---- Columns ---- */

/* Of the longest command. */
static int next_width(const struct gpv_drawing *d)
{
    int width = 0;

    for (size_t i = 0; i < d->s->findings.n; i++) {
        int w = gpv_screen_width(d->screen, command_of(&d->s->findings.row[i]));
        width = w > width ? w : width;
    }
    return width;
}

void gpv_draw_findings(struct gpv_drawing *d)
{
    static const char next[] = "TYPE gpudispatch ...";
    int columns = d->t->columns < WIDEST ? d->t->columns : WIDEST, room = columns;
    int head = d->layout.part[GPV_PART_FINDINGS].head;
    bool has_rest = columns >= WITH_REST;
    struct gpv_column c[COLUMNS] = {
        [TIME] = { .width = has_rest ? 11 : 5 },
        [GLYPH] = { .width = 1 },
        [WHAT] = { .width = !has_rest        ? GPV_REST
                            : columns < WIDE ? 18
                                             : 28 },
        [REST] = { .width = has_rest ? GPV_REST : 0 },
        [NEXT] = { .width = has_rest ? next_width(d) : 0, .right = true },
    };

    gpv_table_fit(c, COLUMNS, columns);
    if (c[NEXT].width > 0) {
        room -= (int)sizeof next;
        if (head >= 0)
            gpv_screen_put_right(d->screen, head, room, columns - room, GPV_STYLE_HEAD, next);
    }
    if (head >= 0)
        put_title(d, room);
    gpv_draw_rows(d, GPV_PART_FINDINGS, c, 0, draw_row);
}
