/* SPDX-License-Identifier: MIT */
/* keys.c - what a key does. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "view/plain.h"
#include "view/top/layout.h"
#include "view/words.h"

enum { PAGE = 10, FOUR_HOURS_FROM = 140 };

void gpv_top_init(struct gpv_top_state *t, int columns, int lines, bool ascii)
{
    *t = (struct gpv_top_state){ .columns = columns, .lines = lines, .ascii = ascii };
    t->span = columns >= FOUR_HOURS_FROM ? GPV_TOP_FOUR_HOURS : GPV_TOP_HOUR;
}

/* ---- The chosen row ---- */

/* Steps down, or up if negative, and stays in the part. */
static void choose(struct gpv_top_state *t, const struct gpv_snapshot *s, long steps)
{
    struct gpv_layout l;

    if (gpv_layout_make(t, s, &l) == 0) {
        const struct gpv_rows *r = &l.part[t->part].rows;
        long at = (long)gpv_row_chosen(t, s, t->part, r) + steps, n = (long)r->n;
        at = at >= n ? n - 1 : at;
        at = at < 0 ? 0 : at;
        t->row[t->part] = n > 0 ? gpv_row_key(s, t->part, r->item[r->first[at]]) : 0;
    }
    gpv_layout_free(&l);
}

/* The list item of the chosen row; -1: it has none. */
static long chosen_item(const struct gpv_top_state *t, const struct gpv_snapshot *s)
{
    struct gpv_layout l;
    long item = -1;

    if (gpv_layout_make(t, s, &l) == 0) {
        const struct gpv_rows *r = &l.part[t->part].rows;
        if (r->n > 0)
            item = (long)r->item[r->first[gpv_row_chosen(t, s, t->part, r)]];
    }
    gpv_layout_free(&l);
    return item;
}

/* A task of a batch that runs; 0: none is known. */
static uint64_t running_task(const struct gpv_snapshot *s, uint32_t batch)
{
    for (size_t i = 0; i < s->gpus.n; i++)
        if (GPV_BATCH_OF(s->gpus.row[i].task) == batch)
            return s->gpus.row[i].task;
    return 0;
}

static uint64_t task_of(const struct gpv_top_state *t, const struct gpv_snapshot *s, size_t item,
                        enum gpv_wish wish)
{
    const struct gpv_now_batch *b = &s->batches.row[item];

    switch (t->part) {
    case GPV_PART_GPUS:
        return wish == GPV_WISH_EXPLAIN && s->gpus.row[item].kept_for ? s->gpus.row[item].kept_for
                                                                      : s->gpus.row[item].task;
    case GPV_PART_BATCHES:
        return wish == GPV_WISH_EXPLAIN && b->first ? b->first : running_task(s, b->id);
    case GPV_PART_ENDS:
        return s->ends.row[item].task;
    default:
        return 0;
    }
}

/* ---- A finding in full ---- */

static void write_finding(const struct gpv_now_finding *finding, FILE *f)
{
    char clock[GPV_WORD];

    fputs(gpv_date_clock(finding->first, clock), f);
    if (finding->last != finding->first)
        fprintf(f, " to %s", gpv_date_clock(finding->last, clock));
    if (*finding->whose)
        fprintf(f, "\nof %s", finding->whose);
    if (*finding->gpus)
        fprintf(f, "\non GPU %s", finding->gpus);
    if (*finding->text)
        fprintf(f, "\n%s", finding->text);
    fprintf(f, "\n\n%s%s\n",
            *finding->command ? "To type next: " : "There is nothing to type next.",
            finding->command);
}

/* Without memory it stays as it is. */
static void show_finding(struct gpv_top_state *t, const struct gpv_now_finding *finding)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return;
    write_finding(finding, f);
    if (fclose(f) != 0) {
        free(text);
        return;
    }
    free(t->pane.text);
    t->pane = (struct gpv_pane){ .open = true, .text = text, .size = size };
    snprintf(t->pane.title, sizeof t->pane.title, "%s", finding->what);
}

static enum gpv_wish open_row(struct gpv_top_state *t, const struct gpv_snapshot *s,
                              enum gpv_wish wish, uint64_t *ret_task)
{
    long item = chosen_item(t, s);

    if (item < 0)
        return GPV_WISH_NONE;
    if (t->part == GPV_PART_FINDINGS && wish == GPV_WISH_EXPLAIN) {
        show_finding(t, &s->findings.row[item]);
        return GPV_WISH_NONE;
    }
    *ret_task = task_of(t, s, (size_t)item, wish);
    if (*ret_task)
        return wish;
    snprintf(t->notice, sizeof t->notice, "no task is known for this row");
    return GPV_WISH_NONE;
}

/* ---- A text to look for ---- */

static void erase(char *text)
{
    size_t size = strlen(text);

    while (size > 0 && ((unsigned char)text[size - 1] & 0xc0) == 0x80)
        size--;
    text[size > 0 ? size - 1 : 0] = 0;
}

static void append(char *text, size_t room, uint32_t c)
{
    size_t size = strlen(text);
    char *to = text + size;

    if (gpv_steers(c) || c > 0x10ffff || size + 5 > room)
        return;
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    }
    if (c >= 0x80)
        *to++ = (char)(0x80 | (c & 0x3f));
    *to = 0;
}

static void find_key(struct gpv_top_state *t, uint32_t key)
{
    if (key == GPV_KEY_ESCAPE)
        t->find[0] = 0;
    if (key == GPV_KEY_ESCAPE || key == GPV_KEY_ENTER)
        t->finding = false;
    else if (key == GPV_KEY_ERASE)
        erase(t->find);
    else
        append(t->find, sizeof t->find, key);
}

/* ---- In place of the parts ---- */

static size_t lines_of(const struct gpv_pane *p)
{
    size_t n = 0;

    for (size_t i = 0; i < p->size; i++)
        n += p->text[i] == '\n' || i + 1 == p->size;
    return n;
}

static void scroll(struct gpv_pane *p, long by)
{
    long last = (long)lines_of(p) - 1, line = (long)p->line + by;

    line = line > last ? last : line;
    p->line = line > 0 ? (size_t)line : 0;
}

static void pane_key(struct gpv_top_state *t, uint32_t key)
{
    long lines = t->lines > 4 ? t->lines - 4 : 1;

    if (key == GPV_KEY_UP || key == GPV_KEY_DOWN)
        scroll(&t->pane, key == GPV_KEY_UP ? -1 : 1);
    else if (key == GPV_KEY_PAGE_UP || key == GPV_KEY_PAGE_DOWN || key == ' ')
        scroll(&t->pane, key == GPV_KEY_PAGE_UP ? -lines : lines);
    else if (key == GPV_KEY_HOME)
        t->pane.line = 0;
    else if (key == GPV_KEY_END)
        scroll(&t->pane, (long)lines_of(&t->pane) - lines - (long)t->pane.line);
    else if (key == 'q' || key == GPV_KEY_ESCAPE || key == GPV_KEY_ENTER)
        t->pane.open = false;
}

/* ---- Keys ---- */

static void next_part(struct gpv_top_state *t, int by)
{
    t->part = (enum gpv_part)(((int)t->part + GPV_PARTS + by) % GPV_PARTS);
}

static void move_key(struct gpv_top_state *t, const struct gpv_snapshot *s, uint32_t key)
{
    static const struct {
        uint32_t key;
        long steps;
    } moves[] = { { GPV_KEY_UP, -1 },          { GPV_KEY_DOWN, 1 },      { GPV_KEY_PAGE_UP, -PAGE },
                  { GPV_KEY_PAGE_DOWN, PAGE }, { GPV_KEY_HOME, -99999 }, { GPV_KEY_END, 99999 } };

    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (moves[i].key == key)
            choose(t, s, moves[i].steps);
    if (key == '\t' || key == GPV_KEY_RIGHT)
        next_part(t, 1);
    if (key == GPV_KEY_BACK_TAB || key == GPV_KEY_LEFT)
        next_part(t, -1);
}

static void mode_key(struct gpv_top_state *t, uint32_t key)
{
    if (key == 's')
        t->sort = (enum gpv_sort)(((int)t->sort + 1) % GPV_SORTS);
    if (key == 'h')
        t->span = (enum gpv_top_span)(((int)t->span + 1) % GPV_TOP_SPANS);
    if (key == 'p')
        t->paused = !t->paused;
    if (key == '?')
        t->help = true;
    if (key == '/')
        t->finding = true;
    if (key == GPV_KEY_ESCAPE)
        t->find[0] = 0;
}

enum gpv_wish gpv_top_key(struct gpv_top_state *t, const struct gpv_snapshot *s, uint32_t key,
                          uint64_t *ret_task)
{
    *ret_task = 0;
    t->notice[0] = 0;
    if (t->finding) {
        find_key(t, key);
        return GPV_WISH_NONE;
    }
    if (t->pane.open) {
        pane_key(t, key);
        return GPV_WISH_NONE;
    }
    if (t->help) {
        t->help = false;
        return GPV_WISH_NONE;
    }
    if (key == 'q')
        return GPV_WISH_QUIT;
    if (key == GPV_KEY_ENTER)
        return open_row(t, s, GPV_WISH_EXPLAIN, ret_task);
    if (key == 'l')
        return open_row(t, s, GPV_WISH_LOG, ret_task);
    move_key(t, s, key);
    mode_key(t, key);
    return GPV_WISH_NONE;
}
