/* SPDX-License-Identifier: MIT */
/* draw_header.c - the machine, all tasks, the end; and the keys. */
#include <inttypes.h>
#include <string.h>

#include "view/top/draw.h"

enum { WIDE = 72, WIDER = 100 };

#define DAY (INT64_C(24) * 3600 * 1000000000)

/* ---- The machine ---- */

/* "6 run  0 load  1 kept  0 idle  1 OUT"; in short only what is there: "6 run 1 kept". */
static void put_states(const struct gpv_snapshot *s, bool is_short, char *ret, size_t size)
{
    static const struct {
        enum gpv_does does;
        const char *word;
    } shown[] = { { GPV_DOES_RUN, "run" },
                  { GPV_DOES_LOAD, "load" },
                  { GPV_DOES_KEPT, "kept" },
                  { GPV_DOES_IDLE, "idle" },
                  { GPV_DOES_OUT, "OUT" } };
    uint32_t does[GPV_DOES] = { 0 };
    size_t used = 0;

    for (size_t i = 0; i < s->gpus.n; i++)
        does[s->gpus.row[i].does % GPV_DOES]++;
    does[GPV_DOES_LOAD] += does[GPV_DOES_LEAVE];
    *ret = 0;
    for (size_t i = 0; i < sizeof shown / sizeof *shown && used < size; i++)
        if (!is_short || does[shown[i].does])
            used += (size_t)snprintf(ret + used, size - used, "%s%" PRIu32 " %s",
                                     used ? is_short ? " " : "  " : "", does[shown[i].does],
                                     shown[i].word);
    if (s->gpus.n == 0)
        snprintf(ret, size, "no GPU");
}

static void draw_machine(struct gpv_drawing *d)
{
    bool wide = d->t->columns >= WIDE;
    char states[96], text[128], clock[GPV_WORD];
    int width;

    put_states(d->s, !wide, states, sizeof states);
    snprintf(text, sizeof text, "%s%s", wide && d->s->gpus.n ? "GPUs: " : "", states);
    width = (int)strlen(text);
    gpv_screen_put_right(d->screen, 0, d->t->columns - width, width, GPV_STYLE_PLAIN, text);
    (void)(gpv_top_ticks(d->s) || !d->t->live ? gpv_clock_seconds(d->t->now, clock)
                                              : gpv_clock(d->t->now, clock));
    snprintf(text, sizeof text, "%s%s  %s", wide ? "gpudispatch top  " : "", d->s->host, clock);
    (void)gpv_screen_put(d->screen, 0, 0, d->t->columns - width - 2, GPV_STYLE_HEAD, text);
}

/* ---- The tasks and the end ---- */

struct sums {
    uint64_t total, ok, bad, running, waiting, held, turn;
};

static void add_all(const struct gpv_snapshot *s, struct sums *ret)
{
    *ret = (struct sums){ s->more.total,
                          s->more.ok,
                          s->more.bad,
                          s->more.running,
                          (uint64_t)s->more.ready + s->more.held,
                          s->more.held,
                          s->more.turn };
    for (size_t i = 0; i < s->batches.n; i++) {
        const struct gpv_now_batch *b = &s->batches.row[i];
        ret->total += b->total;
        ret->ok += b->ok;
        ret->bad += b->bad;
        ret->running += b->running;
        ret->waiting += (uint64_t)b->ready + b->held;
        ret->held += b->held;
        ret->turn += b->turn;
    }
}

static char *moment(int64_t time, int64_t now, char ret[GPV_WORD])
{
    return time - now < DAY ? gpv_clock(time, ret) : gpv_date_clock(time, ret);
}

/* "done about 04:59-06:16 (in 2 h 42 to 3 h 59)" */
static void put_end(const struct gpv_drawing *d, const struct sums *n, char *ret, size_t size)
{
    int64_t least = d->s->time + d->s->least, most = d->s->time + d->s->most, now = d->t->now;
    char from[GPV_WORD], to[GPV_WORD], soon[GPV_WORD], late[GPV_WORD];
    size_t used;

    if (n->running + n->waiting == 0) {
        snprintf(ret, size, n->total ? "all done" : "no tasks");
        return;
    }
    if (d->s->least < 0 || (d->s->least == 0 && d->s->most < 0)) {
        snprintf(ret, size, "done: not known yet");
        return;
    }
    if (d->s->most < 0) {
        snprintf(ret, size, "done not before %s", moment(least, now, from));
        return;
    }
    used = (size_t)snprintf(ret, size, "done about %s-%s", moment(least, now, from),
                            moment(most, now, to));
    if (d->t->columns >= WIDER)
        snprintf(ret + used, size - used, " (in %s to %s)", gpv_span(least - now, soon),
                 gpv_span(most - now, late));
}

/* The number of all tasks gives way where the line has no room for the end. */
static void draw_tasks(struct gpv_drawing *d)
{
    bool wide = d->t->columns >= WIDE;
    char all[64] = "", ok[64], bad[64], waiting[128], held[64] = "", end[160];
    char n[2][GPV_WORD];
    struct sums sum;
    int used, width;

    add_all(d->s, &sum);
    put_end(d, &sum, end, sizeof end);
    if (sum.held > sum.turn)
        snprintf(held, sizeof held, " (%s held)", gpv_count(sum.held - sum.turn, n[0]));
    snprintf(all, sizeof all, "%s task%s: ", gpv_count(sum.total, n[0]), sum.total == 1 ? "" : "s");
    snprintf(ok, sizeof ok, "%s ok  ", gpv_count(sum.ok, n[0]));
    snprintf(bad, sizeof bad, "%s BAD  ", gpv_count(sum.bad, n[0]));
    snprintf(waiting, sizeof waiting, "%s run  %s wait%s   ", gpv_count(sum.running, n[0]),
             gpv_count(sum.waiting, n[1]), held);
    width = (int)(strlen(all) + strlen(ok) + strlen(bad) + strlen(waiting) + strlen(end));
    if (!wide || width > d->t->columns)
        all[0] = 0;
    used = gpv_screen_put(d->screen, 1, 0, d->t->columns, GPV_STYLE_PLAIN, all);
    used += gpv_screen_put(d->screen, 1, used, d->t->columns, GPV_STYLE_PLAIN, ok);
    used += gpv_screen_put(d->screen, 1, used, d->t->columns,
                           sum.bad ? GPV_STYLE_BAD : GPV_STYLE_PLAIN, bad);
    used += gpv_screen_put(d->screen, 1, used, d->t->columns, GPV_STYLE_PLAIN, waiting);
    (void)gpv_screen_put(d->screen, wide ? 1 : 2, wide ? used : 0, d->t->columns, GPV_STYLE_HEAD,
                         end);
}

void gpv_draw_header(struct gpv_drawing *d)
{
    draw_machine(d);
    draw_tasks(d);
    if (*d->s->notice)
        (void)gpv_screen_put(d->screen, d->layout.header - 1, 0, d->t->columns, GPV_STYLE_BAD,
                             d->s->notice);
}

/* ---- The last line ---- */

static const char *span_keys(const struct gpv_top_state *t)
{
    static const char *const next[] = { "h 4 hours", "h night", "h hour" };
    return next[t->span];
}

static const char *sort_key(const struct gpv_top_state *t)
{
#define GPV_X_NAME(name, word) "s sort: " word,
    static const char *const text[] = { GPV_SORT_MAP(GPV_X_NAME) };
#undef GPV_X_NAME
    return text[t->sort];
}

/* Those that do not fit are left out: ? has all. */
static void put_keys(struct gpv_drawing *d, int room)
{
    const char *const keys[] = { "q quit", "? help",        "Tab part", "Enter explain", "l log",
                                 "/ find", span_keys(d->t), "p pause",  sort_key(d->t) };
    int at = 0;

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int width = (int)strlen(keys[i]);
        if (at + width > room)
            return;
        at += 2 + gpv_screen_put(d->screen, d->t->lines - 1, at, width, GPV_STYLE_DIM, keys[i]);
    }
}

void gpv_draw_footer(struct gpv_drawing *d)
{
    const struct gpv_top_state *t = d->t;
    char text[192], clock[GPV_WORD];
    enum gpv_style style = GPV_STYLE_HEAD;
    int line = t->lines - 1;

    if (t->finding)
        snprintf(text, sizeof text, "find: %s_  (Enter keeps it, Esc ends it)", t->find);
    else if (*t->notice)
        snprintf(text, sizeof text, "%s", t->notice);
    else if (t->paused)
        snprintf(text, sizeof text, "PAUSED, as at %s (p goes on)",
                 gpv_clock_seconds(d->s->time, clock));
    else if (t->pane.open || t->help)
        snprintf(text, sizeof text, "q back  arrows scroll");
    else if (*t->find)
        snprintf(text, sizeof text, "find: %s  (/ changes it, Esc ends it)", t->find);
    else {
        snprintf(text, sizeof text, "read only");
        style = GPV_STYLE_DIM;
        put_keys(d, t->columns - (int)strlen(text) - 2);
        gpv_screen_put_right(d->screen, line, t->columns - (int)strlen(text), (int)strlen(text),
                             style, text);
        return;
    }
    (void)gpv_screen_put(d->screen, line, 0, t->columns, style, text);
}
