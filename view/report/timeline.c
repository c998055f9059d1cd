/* SPDX-License-Identifier: MIT */
/* timeline.c - what ran where: a lane for each GPU. */
#include <stdlib.h>
#include <string.h>

#include "view/report/html.h"
#include "view/report/lanes.h"
#include "view/report/marks.h"
#include "view/names.h"
#include "view/report/page.h"
#include "view/report/turns.h"
#include "view/words.h"

enum {
    TOP = 24,   /* dots: the axis */
    ABOVE = 11, /* in a lane, over its bar: marks */
    BELOW = 5,
    HIGH = 20,         /* a bar */
    LOW = 12,          /* one of many lanes */
    MANY = 16,         /* lanes */
    ROWS = 4,          /* attempts at a time that have rows of their own */
    RECTANGLES = 8000, /* of all lanes: more attempts than that are drawn by dots */
    CLASSES = GPV_TEXTURE_CLASS_OTHER + 1
};

struct timeline {
    struct gpv_page *p;
    struct gpv_chart chart;
    struct gpv_lanes lanes;
    struct gpv_marks marks;
    struct gpv_boxes boxes;    /* of the lane that is being drawn */
    struct gpv_row *row;       /* of its attempts */
    struct gpv_uses *bin;      /* of its dots */
    double (*busy)[CLASSES];   /* ns of each dot, by the texture of the class */
    unsigned bar, y;           /* height of a bar; top of the lane */
    size_t rectangles;         /* of a lane: at most */
};

static int box(struct timeline *t, double from, double to, double y, double height,
               enum gpv_texture texture)
{
    return height > 0 ? gpv_box_add(&t->boxes, from, t->y + ABOVE + y, to - from, height, texture)
                      : 0;
}

static enum gpv_texture texture_of(const struct timeline *t, const struct gpv_attempt *a)
{
    const uint32_t class = gpv_class_of(t->p->n, a);
    const size_t classes = t->p->n->classes.n;
    return t->p->texture[class < classes ? class : classes];
}

/* ---- Few attempts: a rectangle each ---- */

static int draw_attempts(struct timeline *t, const struct gpv_lane *l)
{
    const struct gpv_night *n = t->p->n;
    for (size_t i = 0; i < l->n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[l->attempt[i]];
        if (a->number == 0)
            continue;
        const double from = gpv_chart_x(&t->chart, a->started);
        const double to = gpv_chart_x(&t->chart, gpv_until(n, a->ended));
        const double width = to - from > 3 ? to - from - .5 : to - from < .6 ? .6 : to - from;
        const double height = (double)t->bar / t->row[i].rows;
        const double gap = t->row[i].rows > 1 ? .5 : 0;
        if (box(t, from, from + width, height * t->row[i].row, height - gap,
                gpv_is_bad(a->outcome) ? GPV_TEXTURE_BAD : texture_of(t, a)) != 0)
            return -1;
    }
    return 0;
}

static int draw_stretch(const struct gpv_stretch *s, void *user)
{
    struct timeline *t = user;
    const double from = gpv_chart_x(&t->chart, s->from), to = gpv_chart_x(&t->chart, s->to);
    const double width = to - from < .6 ? .6 : to - from;
    switch (s->use) {
    case GPV_USE_LOADING:
    case GPV_USE_KEPT:
    case GPV_USE_OUT:
    case GPV_USE_UNKNOWN:
        return box(t, from, from + width, 0, t->bar, gpv_texture_of_use(s->use));
    case GPV_USE_LIMITED:
        return box(t, from, from + width, t->bar - 4, 4, GPV_TEXTURE_LIMITED);
    default:
        return 0;
    }
}

/* ---- Many attempts: the height of a dot is what part of it was used ---- */

/* Time of attempts in each dot, by class. */
static void add_up(struct timeline *t, const struct gpv_lane *l, bool bad)
{
    const struct gpv_night *n = t->p->n;
    memset(t->busy, 0, t->chart.dots * sizeof(*t->busy));
    for (size_t i = 0; i < l->n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[l->attempt[i]];
        if (a->number == 0 || (!bad && gpv_is_bad(a->outcome)))
            continue;
        const int64_t end = gpv_until(n, a->ended);
        const enum gpv_texture texture = texture_of(t, a);
        int64_t at = a->started > n->from ? a->started : n->from;
        for (unsigned dot = gpv_chart_dot(&t->chart, at); at < end && dot < t->chart.dots; dot++) {
            const int64_t next = gpv_chart_time(&t->chart, dot + 1);
            const int64_t until = next < end && dot + 1 < t->chart.dots ? next : end;
            t->busy[dot][texture] += until > at ? (double)(until - at) : 0;
            at = until > at ? until : at;
        }
    }
}

static enum gpv_texture longest(const double busy[CLASSES], double *ret_sum)
{
    unsigned most = 0;
    *ret_sum = busy[0];
    for (unsigned i = 1; i < CLASSES; i++) {
        *ret_sum += busy[i];
        most = busy[i] > busy[most] ? i : most;
    }
    return most;
}

/* Uses of a dot above each other, each as high as its part.  Equal neighbours are one box. */
static int draw_bins(struct timeline *t)
{
    static const enum gpv_use order[] = { GPV_USE_OK,   GPV_USE_LOST, GPV_USE_LOADING,
                                          GPV_USE_KEPT, GPV_USE_OUT,  GPV_USE_UNKNOWN };
    enum { PARTS = sizeof(order) / sizeof(order[0]) };
    struct {
        unsigned from, top, bottom;
        enum gpv_texture texture;
    } open[PARTS] = { 0 };
    for (unsigned dot = 0; dot <= t->chart.dots; dot++) {
        double whole = 0, below = 0, sum;
        for (unsigned i = 0; dot < t->chart.dots && i < GPV_USES; i++)
            whole += (double)t->bin[dot].ns[i];
        for (unsigned i = 0; i < PARTS; i++) {
            const double part = whole > 0 ? (double)t->bin[dot].ns[order[i]] / whole : 0;
            const unsigned bottom = (unsigned)(below * t->bar + .5);
            below += part;
            const unsigned top = (unsigned)(below * t->bar + .5);
            const enum gpv_texture texture = order[i] != GPV_USE_OK ? gpv_texture_of_use(order[i])
                                             : whole > 0            ? longest(t->busy[dot], &sum)
                                                                    : 0;
            if (dot < t->chart.dots && open[i].top == top && open[i].bottom == bottom &&
                open[i].texture == texture)
                continue;
            if (box(t, t->chart.left + open[i].from, t->chart.left + dot, t->bar - open[i].top,
                    open[i].top - open[i].bottom, open[i].texture) != 0)
                return -1;
            open[i].from = dot;
            open[i].top = top;
            open[i].bottom = bottom;
            open[i].texture = texture;
        }
    }
    return 0;
}

/* Tasks without a GPU: the height is how many ran, and the most at a time have all of it. */
static int draw_crowd(struct timeline *t)
{
    double most = 0, sum;
    for (unsigned dot = 0; dot < t->chart.dots; dot++) {
        (void)longest(t->busy[dot], &sum);
        most = sum > most ? sum : most;
    }
    for (unsigned dot = 0; dot < t->chart.dots; dot++) {
        const enum gpv_texture texture = longest(t->busy[dot], &sum);
        const unsigned height = most > 0 ? (unsigned)(sum / most * t->bar + .9) : 0;
        if (box(t, t->chart.left + dot, t->chart.left + dot + 1, t->bar - height, height,
                texture) != 0)
            return -1;
    }
    return 0;
}

/* ---- A lane ---- */

/* The row of a use that has a text, at a time. */
static const char *note_of(const struct gpv_night *n, uint32_t gpu, const struct gpv_stretch *s,
                           char *ret, size_t size)
{
    ret[0] = 0;
    if (s->use == GPV_USE_UNKNOWN)
        return "no agent ran";
    for (size_t i = 0; s->use == GPV_USE_OUT && i < n->outs.n; i++) {
        const struct gpv_out *o = &n->outs.row[i];
        if (o->gpu == gpu && o->since <= s->from && gpv_until(n, o->until) > s->from)
            (void)snprintf(ret, size, "%s%s%s", gpv_out_word(o->kind),
                           *gpv_text(n, o->text) ? ": " : "", gpv_text(n, o->text));
    }
    for (size_t i = 0; s->use == GPV_USE_KEPT && i < n->tenancies.n; i++) {
        const struct gpv_tenancy *k = &n->tenancies.row[i];
        if (k->gpu == gpu && k->kind == GPV_TENANCY_KEPT && k->since <= s->from &&
            gpv_until(n, k->until) > s->from)
            (void)snprintf(ret, size, "kept for %u %s", gpv_kept_for(n, k),
                           gpv_batch_name(n, gpv_kept_for(n, k)));
    }
    return ret;
}

struct noted {
    struct timeline *t;
    uint32_t gpu;
};

static int note_stretch(const struct gpv_stretch *s, void *user)
{
    const struct noted *noted = user;
    const struct timeline *t = noted->t;
    const double from = gpv_chart_x(&t->chart, s->from), to = gpv_chart_x(&t->chart, s->to);
    char text[256];
    if (to - from > 40)
        gpv_chart_note(t->p->f, from, to, t->y + ABOVE + t->bar / 2 + 4,
                       note_of(t->p->n, noted->gpu, s, text, sizeof(text)));
    return 0;
}

/* The batches on the bar. */
static int write_turns(const struct timeline *t, const struct gpv_lane *l)
{
    struct gpv_turns turns;
    const int ret = gpv_turns_of(t->p->n, l, &t->chart, &turns);
    if (ret == 0)
        gpv_turns_write(t->p->f, t->p->n, &turns, &t->chart, t->y + ABOVE, t->bar);
    free(turns.row);
    return ret;
}

static void add_marks(struct timeline *t, const struct gpv_lane *l)
{
    gpv_marks_clear(&t->marks);
    for (size_t i = 0; i < l->n; i++) {
        const struct gpv_attempt *a = &t->p->n->attempts.row[l->attempt[i]];
        if (gpv_lane_marks(t->p->n, l, a))
            gpv_marks_add(&t->marks, gpv_chart_dot(&t->chart, a->ended), a->outcome);
    }
    gpv_marks_write(t->p->f, &t->marks, &t->chart, t->y + 5);
}

/* Tasks that still run at the end of the span: a head of an arrow. */
static void add_running(struct timeline *t, const struct gpv_lane *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (t->p->n->attempts.row[l->attempt[i]].ended == 0) {
            gpv_html(t->p->f, "<path class=\"runs\" fill=\"#222\" d=\"M%u %ul6 5l-6 5z\"/>",
                     t->chart.left + t->chart.dots + 1, t->y + ABOVE + t->bar / 2 - 5);
            return;
        }
    }
}

static int draw_lane(struct timeline *t, const struct gpv_lane *l)
{
    struct gpv_night *n = t->p->n;
    const bool gpu = l->gpu != GPV_NONE;
    if (l->n <= t->rectangles && gpv_lane_rows(n, l, ROWS, t->row)) {
        if (gpu && gpv_use_each(n, l->gpu, n->from, n->to, draw_stretch, t) != 0)
            return -1;
        if (t->boxes.list.n <= 2 * t->rectangles)
            return draw_attempts(t, l);
        t->boxes.list.n = 0; /* a worker that loads all the time */
    }
    add_up(t, l, !gpu);
    if (!gpu)
        return draw_crowd(t);
    return gpv_use_bins(n, l->gpu, n->from, n->to, t->chart.dots, t->bin) != 0 ? -1 : draw_bins(t);
}

static int write_lane(struct timeline *t, const struct gpv_lane *l)
{
    struct gpv_page *p = t->p;
    const bool gpu = l->gpu != GPV_NONE;
    char name[GPV_NAME], share[GPV_WORD] = "";
    t->boxes.list.n = 0;
    if (draw_lane(t, l) != 0)
        return -1;
    if (gpu)
        gpv_percent((double)p->uses[l->gpu].ns[GPV_USE_OK], (double)(p->n->to - p->n->from), share);
    if (gpu)
        gpv_html(p->f, "<g data-gpu=\"%u\">", l->gpu);
    else
        gpv_html(p->f, "<g data-gpu=\"\">");
    gpv_chart_lane(p->f, &t->chart, t->y + ABOVE + t->bar,
                   gpu ? gpv_gpu_label(p->n, l->gpu, name) : "no GPU", share);
    gpv_boxes_write(p->f, &t->boxes);
    struct noted noted = { t, l->gpu };
    if (gpu && gpv_use_each(p->n, l->gpu, p->n->from, p->n->to, note_stretch, &noted) != 0)
        return -1;
    if (write_turns(t, l) != 0)
        return -1;
    add_marks(t, l);
    add_running(t, l);
    gpv_html(p->f, "</g>\n");
    t->y += ABOVE + t->bar + BELOW;
    return 0;
}

/* ---- The figure ---- */

const char *gpv_page_life(const struct gpv_page *p, const struct gpv_life *life)
{
    return life->kind == GPV_LIFE_CLOCK     ? "clock set"
           : life->kind == GPV_LIFE_ADOPTED ? "agent adopted tasks"
           : life->since > p->n->from       ? "agent started"
                                            : NULL;
}

/* What happened to the agent: a line through all lanes. */
static void write_lives(struct timeline *t)
{
    const struct gpv_night *n = t->p->n;
    double free = 0; /* the end of the last text */
    for (size_t i = 0; i < n->lives.n; i++) {
        const struct gpv_life *life = &n->lives.row[i];
        const char *text = gpv_page_life(t->p, life);
        if (!text)
            continue;
        const double x = gpv_chart_x(&t->chart, life->since);
        gpv_html(t->p->f,
                 "<path class=\"life\" stroke=\"#444\" stroke-dasharray=\"3 3\" fill=\"none\" "
                 "d=\"M%.1f %uV%u\"><title>%s %.*s</title></path>",
                 x, TOP, t->y, text, 120, gpv_text(n, life->text));
        if (x < free || x > GPV_CHART_WIDTH - 60)
            continue;
        gpv_html(t->p->f, "<text class=\"dim\" x=\"%.1f\" y=\"%u\">%s</text>\n", x + 2, t->y + 10,
                 text);
        free = x + 7 * (double)strlen(text);
    }
}

static int write_lanes(struct timeline *t)
{
    struct gpv_page *p = t->p;
    const size_t lanes = t->lanes.list.n;
    const unsigned height = TOP + (unsigned)lanes * (ABOVE + t->bar + BELOW) + 14;
    char sentence[256], a[GPV_WORD], b[GPV_WORD], c[GPV_WORD], d[GPV_WORD];
    (void)snprintf(sentence, sizeof(sentence),
                   "Timeline from %s to %s with a lane for each of %zu GPUs: %s attempts, "
                   "%s bad ends are marked.  The tables below have the same in words.",
                   gpv_date_clock(p->n->from, a), gpv_date_clock(p->n->to, b), p->n->gpus.n,
                   gpv_count(p->facts.attempts, c), gpv_count(p->facts.bad, d));
    gpv_html(p->f,
             "<figure id=\"timeline\" class=\"scroll\" tabindex=\"0\" data-bad=\"%llu\" "
             "data-top=\"%u\" data-above=\"%u\" data-bar=\"%u\" data-lane=\"%u\">",
             (unsigned long long)p->facts.bad, TOP, ABOVE, t->bar, ABOVE + t->bar + BELOW);
    gpv_chart_begin(p->f, &t->chart, "lanes", sentence, TOP, height);
    t->y = TOP;
    for (size_t i = 0; i < lanes; i++) {
        if (write_lane(t, &t->lanes.list.row[i]) != 0)
            return -1;
    }
    write_lives(t);
    gpv_chart_end(p->f);
    gpv_html(p->f, "</figure>\n");
    return 0;
}

/* The classes that have attempts; the last one: tasks without a class. */
static bool *used_classes(const struct gpv_night *n)
{
    bool *used = calloc(n->classes.n + 1, sizeof(*used));
    for (size_t i = 0; used && i < n->attempts.n; i++) {
        const uint32_t class = gpv_class_of(n, &n->attempts.row[i]);
        used[class < n->classes.n ? class : n->classes.n] |= n->attempts.row[i].number != 0;
    }
    return used;
}

static void legend(const struct gpv_page *p, const bool *used)
{
    const struct gpv_night *n = p->n;
    bool other = false;
    gpv_html(p->f, "<div class=\"legend\">\n");
    for (uint32_t i = 0; i <= n->classes.n; i++) {
        other |= used[i] && p->texture[i] == GPV_TEXTURE_CLASS_OTHER;
        if (used[i] && p->texture[i] != GPV_TEXTURE_CLASS_OTHER)
            gpv_texture_key(p->f, p->texture[i], gpv_class_label(n, i));
    }
    if (other)
        gpv_texture_key(p->f, GPV_TEXTURE_CLASS_OTHER, "other classes");
    if (p->facts.bad)
        gpv_texture_key(p->f, GPV_TEXTURE_BAD, "ended badly");
    for (enum gpv_use use = GPV_USE_LOADING; use <= GPV_USE_LIMITED; use++) {
        if (p->all.ns[use])
            gpv_texture_key(p->f, gpv_texture_of_use(use), gpv_use_text(use));
    }
    gpv_html(p->f, "</div>\n<p class=\"legend\">");
    for (uint32_t i = GPV_OK + 1; i < GPV_OUTCOMES; i++) {
        if (p->facts.ended_by[i])
            gpv_html(p->f, "<span><b class=\"mark\">%s</b> %s</span>\n", gpv_outcome_glyph(i),
                     gpv_outcome_text(i));
    }
    if (p->facts.bad)
        gpv_html(p->f, "<span><b class=\"mark\">2x</b> marks that are close together</span>");
    gpv_html(p->f, "</p>\n");
}

static int prepare(struct timeline *t)
{
    size_t most = 0;
    const struct gpv_night *n = t->p->n;
    if (gpv_lanes_of(n, &t->lanes) != 0)
        return -1;
    for (size_t i = 0; i < t->lanes.list.n; i++)
        most = t->lanes.list.row[i].n > most ? t->lanes.list.row[i].n : most;
    t->chart = gpv_page_chart(t->p);
    t->bar = t->lanes.list.n > MANY ? LOW : HIGH;
    t->rectangles = RECTANGLES / (t->lanes.list.n + 1);
    t->rectangles = t->rectangles < t->chart.dots / 2 ? t->rectangles : t->chart.dots / 2;
    t->row = malloc((t->rectangles + 1) * sizeof(*t->row));
    t->bin = malloc(t->chart.dots * sizeof(*t->bin));
    t->busy = malloc(t->chart.dots * sizeof(*t->busy));
    return gpv_marks_init(&t->marks, t->chart.dots) == 0 && t->row && t->bin && t->busy ? 0 : -1;
}

int gpv_page_timeline(struct gpv_page *p)
{
    struct timeline t = { .p = p };
    int ret = -1;
    gpv_page_section(p, "where", "What ran where");
    bool *used = used_classes(p->n);
    if (used && prepare(&t) == 0) {
        legend(p, used);
        ret = write_lanes(&t);
    }
    free(used);
    gpv_html(p->f,
             "<p class=\"dim\">On a bar: number and name of its batch; two numbers where batches "
             "took turns.  On the right: the part of the time in which the GPU did work "
             "that counted.%s</p>\n",
             p->facts.tasks_by[GPV_RUNNING] ? "  A triangle there: a task still runs." : "");
    if (ret == 0)
        ret = gpv_turns_in_words(p, &t.lanes, &t.chart);
    gpv_page_section_end(p);
    gpv_lanes_free(&t.lanes);
    gpv_marks_fini(&t.marks);
    free(t.boxes.list.row);
    free(t.row);
    free(t.bin);
    free(t.busy);
    return ret;
}
