/* SPDX-License-Identifier: MIT */
/* turns.c - stretches of a lane by batch. */
#include "view/report/turns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "view/names.h"
#include "view/report/html.h"
#include "view/words.h"

enum {
    LETTER = 7, /* dots, as in chart.c */
    AROUND = 10,
    NEAR = 4,  /* dots: a gap that is no wider is none */
    TURNS = 40 /* of a lane in words: further ones are counted */
};

/* ---- Batches of a turn ---- */

static bool has(const struct gpv_turn *t, uint32_t batch)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->batch[i] == batch)
            return true;
    return false;
}

static void add_batch(struct gpv_turn *t, uint32_t batch)
{
    if (has(t, batch))
        return;
    if (t->n == GPV_TURN_BATCHES) {
        t->more = true;
        return;
    }
    uint32_t at = t->n++;
    for (; at > 0 && t->batch[at - 1] > batch; at--)
        t->batch[at] = t->batch[at - 1];
    t->batch[at] = batch;
}

static void join(struct gpv_turn *t, const struct gpv_turn *other)
{
    for (uint32_t i = 0; i < other->n; i++)
        add_batch(t, other->batch[i]);
    t->more |= other->more;
    t->to = other->to > t->to ? other->to : t->to;
}

/* "12, 15" */
static char *put_ids(const struct gpv_turn *t, char ret[GPV_TURN_TEXT])
{
    struct gpv_cut cut = gpv_cut(ret, GPV_TURN_TEXT);
    char id[GPV_WORD];
    for (uint32_t i = 0; i < t->n; i++) {
        (void)snprintf(id, sizeof(id), "%" PRIu32, t->batch[i]);
        gpv_cut_add(&cut, i ? ", " : "", id);
    }
    if (t->more)
        gpv_cut_add(&cut, ", ", "…");
    return ret;
}

char *gpv_turn_text(const struct gpv_night *n, const struct gpv_turn *t, char ret[GPV_TURN_TEXT])
{
    (void)put_ids(t, ret);
    if (t->n == 1)
        (void)snprintf(ret + strlen(ret), 100, " %.90s", gpv_batch_name(n, t->batch[0]));
    return ret;
}

/* ---- Turns of a lane ---- */

static bool is_near(const struct gpv_chart *c, const struct gpv_turn *t, int64_t next)
{
    return gpv_chart_x(c, next) <= gpv_chart_x(c, t->to) + NEAR;
}

static bool is_narrow(const struct gpv_chart *c, const struct gpv_turn *t)
{
    char ids[GPV_TURN_TEXT];
    const double room = gpv_chart_x(c, t->to) - gpv_chart_x(c, t->from) - AROUND;
    return room < (double)strlen(put_ids(t, ids)) * LETTER;
}

/* A turn is complete. */
static int add_turn(struct gpv_turns *turns, const struct gpv_chart *c, struct gpv_turn *t)
{
    struct gpv_turn *last = turns->n > 0 ? &turns->row[turns->n - 1] : NULL;
    t->narrow = is_narrow(c, t);
    if (last && last->narrow && t->narrow && is_near(c, last, t->from)) {
        join(last, t);
        return 0;
    }
    if (!gpv_grow(&turns->row, turns->n, &turns->room, sizeof(turns->row[0])))
        return -1;
    turns->row[turns->n++] = *t;
    return 0;
}

/* Whether an attempt belongs to a turn: one of its batch, or one that runs beside it. */
static bool belongs(const struct gpv_chart *c, const struct gpv_turn *t, const struct gpv_turn *a)
{
    const double over = gpv_chart_x(c, t->to) - gpv_chart_x(c, a->from);
    return (has(t, a->batch[0]) && is_near(c, t, a->from)) || over > NEAR;
}

int gpv_turns_of(const struct gpv_night *n, const struct gpv_lane *l, const struct gpv_chart *c,
                 struct gpv_turns *ret)
{
    struct gpv_turn turn = { .n = 0 };
    *ret = (struct gpv_turns){ .n = 0 };
    for (size_t i = 0; i < l->n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[l->attempt[i]];
        const struct gpv_turn one = {
            a->started, gpv_until(n, a->ended), { GPV_BATCH_OF(a->task) }, 1, false, false
        };
        if (a->number == 0)
            continue;
        if (turn.n > 0 && belongs(c, &turn, &one)) {
            join(&turn, &one);
            continue;
        }
        if (turn.n > 0 && add_turn(ret, c, &turn) != 0)
            return -1;
        turn = one;
    }
    return turn.n > 0 ? add_turn(ret, c, &turn) : 0;
}

/* ---- On a bar ---- */

static void write_cuts(FILE *f, const struct gpv_turns *turns, const struct gpv_chart *c,
                       unsigned y, unsigned height)
{
    bool any = false;
    for (size_t i = 1; i < turns->n; i++) {
        if (!is_near(c, &turns->row[i - 1], turns->row[i].from))
            continue;
        gpv_html(f, any ? "" : "<path class=\"cut\" stroke=\"#fff\" stroke-width=\"2\" d=\"");
        gpv_html(f, "M%.1f %uv%u", gpv_chart_x(c, turns->row[i].from), y, height);
        any = true;
    }
    gpv_html(f, any ? "\"/>\n" : "");
}

void gpv_turns_write(FILE *f, const struct gpv_night *n, const struct gpv_turns *turns,
                     const struct gpv_chart *c, unsigned y, unsigned height)
{
    char text[GPV_TURN_TEXT];
    write_cuts(f, turns, c, y, height);
    for (size_t i = 0; i < turns->n; i++) {
        const struct gpv_turn *t = &turns->row[i];
        const double from = gpv_chart_x(c, t->from), to = gpv_chart_x(c, t->to);
        const unsigned base = y + height / 2 + 4;
        if (!gpv_chart_note(f, from, to, base, gpv_turn_text(n, t, text)))
            (void)gpv_chart_note(f, from, to, base, put_ids(t, text));
    }
}

/* ---- In words ---- */

static void write_lane(const struct gpv_page *p, const struct gpv_lane *l,
                       const struct gpv_turns *turns)
{
    char text[GPV_TURN_TEXT], name[GPV_NAME], from[GPV_WORD], to[GPV_WORD];
    gpv_html(p->f, "<li><b>%s</b>",
             l->gpu != GPV_NONE ? gpv_gpu_label(p->n, l->gpu, name) : "no GPU");
    for (size_t i = 0; i < turns->n && i < TURNS; i++)
        gpv_html(p->f, "%s<span class=\"nw\">%s–%s</span> %.*s", i ? "; " : ": ",
                 gpv_page_clock(p, turns->row[i].from, from),
                 gpv_page_clock(p, turns->row[i].to, to), 60,
                 gpv_turn_text(p->n, &turns->row[i], text));
    if (turns->n > TURNS)
        gpv_html(p->f, "; and %zu more", turns->n - TURNS);
    gpv_html(p->f, "</li>\n");
}

int gpv_turns_in_words(const struct gpv_page *p, const struct gpv_lanes *lanes,
                       const struct gpv_chart *c)
{
    int ret = 0;
    gpv_html(p->f, "<details id=\"had\"><summary>In words: which batch had which GPU"
                   "</summary>\n<ul>\n");
    for (size_t i = 0; ret == 0 && i < lanes->list.n; i++) {
        struct gpv_turns turns;
        ret = gpv_turns_of(p->n, &lanes->list.row[i], c, &turns);
        if (ret == 0)
            write_lane(p, &lanes->list.row[i], &turns);
        free(turns.row);
    }
    gpv_html(p->f, "</ul></details>\n");
    return ret;
}
