/* SPDX-License-Identifier: MIT */
/* waiting.c - what waited, and why: a lane for each batch, on its own scale. */
#include <stdlib.h>
#include <string.h>

#include "view/night/waits.h"
#include "view/report/chart.h"
#include "view/report/html.h"
#include "view/report/page.h"
#include "view/words.h"

enum {
    TOP = 22, /* dots: the axis */
    LANE = 44,
    HIGH = 32,
    LANES = 24 /* batches that have one: those that waited for the longest */
};

/* A dot: the most that waited in it, and by reason the time of all tasks together. */
struct dot {
    uint64_t most;
    double ns[GPV_WHYS];
};

struct waiting {
    struct gpv_page *p;
    struct gpv_chart chart;
    struct gpv_boxes boxes;
    struct dot *dot;
    bool seen[GPV_WHYS];
};

struct rank {
    double waited; /* ns times tasks */
    uint32_t batch;
};

static int longest_first(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    return x->waited < y->waited   ? 1
           : x->waited > y->waited ? -1
                                   : (x->batch > y->batch) - (x->batch < y->batch);
}

static int in_order(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    return (x->batch > y->batch) - (x->batch < y->batch);
}

static int add_wait(const struct gpv_wait *w, void *user)
{
    struct waiting *t = user;
    const enum gpv_why why = gpv_why_of(t->p->n, w);
    int64_t at = w->from > t->chart.from ? w->from : t->chart.from;
    t->seen[why] = true;
    for (unsigned i = gpv_chart_dot(&t->chart, at); i < t->chart.dots && at < w->to; i++) {
        const int64_t next = gpv_chart_time(&t->chart, i + 1);
        const int64_t until = next < w->to ? next : w->to;
        t->dot[i].most = w->tasks > t->dot[i].most ? w->tasks : t->dot[i].most;
        t->dot[i].ns[why] += until > at ? (double)(until - at) * (double)w->tasks : 0;
        at = until > at ? until : at;
    }
    return 0;
}

static enum gpv_why longest(const struct dot *dot)
{
    unsigned most = 0;
    for (unsigned i = 1; i < GPV_WHYS; i++)
        most = dot->ns[i] > dot->ns[most] ? i : most;
    return most;
}

/* Equal neighbours are one box. */
static int draw(struct waiting *t, uint64_t most, unsigned bottom)
{
    unsigned from = 0, height = 0;
    enum gpv_why why = GPV_WHYS;
    t->boxes.list.n = 0;
    for (unsigned i = 0; i <= t->chart.dots; i++) {
        const bool any = i < t->chart.dots && t->dot[i].most;
        unsigned now = any ? (unsigned)((double)t->dot[i].most / (double)most * HIGH + .5) : 0;
        now = any && now < 2 ? 2 : now;
        const enum gpv_why next = any ? longest(&t->dot[i]) : GPV_WHYS;
        if (now == height && next == why && i < t->chart.dots)
            continue;
        if (height && gpv_box_add(&t->boxes, t->chart.left + from, bottom - height, i - from,
                                  height, gpv_texture_of_why(why)) != 0)
            return -1;
        from = i;
        height = now;
        why = next;
    }
    return 0;
}

static int write_lane(struct waiting *t, uint32_t batch, unsigned bottom)
{
    const struct gpv_night *n = t->p->n;
    char word[GPV_WORD], label[GPV_NAME];
    uint64_t most = 0;
    memset(t->dot, 0, t->chart.dots * sizeof(*t->dot));
    if (gpv_wait_each(n, batch, add_wait, t) != 0)
        return -1;
    for (unsigned i = 0; i < t->chart.dots; i++)
        most = t->dot[i].most > most ? t->dot[i].most : most;
    if (draw(t, most ? most : 1, bottom) != 0)
        return -1;
    gpv_html(t->p->f, "<g data-batch=\"%u\">", n->batches.row[batch].id);
    gpv_chart_lane(t->p->f, &t->chart, bottom, gpv_page_batch(t->p, batch, label), gpv_count(most, word));
    gpv_boxes_write(t->p->f, &t->boxes);
    gpv_html(t->p->f, "</g>\n");
    return 0;
}

/* The batches that waited for the longest, in their order: of those that the reader has named, if
 * there are any. */
static int choose(const struct gpv_page *p, struct rank *rank, size_t *ret_n, size_t *ret_more)
{
    const struct gpv_night *n = p->n;
    size_t many = 0;
    for (uint32_t i = 0; i < n->batches.n; i++) {
        double sum[GPV_WHYS], all = 0;
        if (p->asked && !n->batches.row[i].asked)
            continue;
        if (gpv_wait_sum(n, i, sum, NULL) != 0)
            return -1;
        for (unsigned k = 0; k < GPV_WHYS; k++)
            all += sum[k];
        if (all > 0)
            rank[many++] = (struct rank){ all, i };
    }
    qsort(rank, many, sizeof(*rank), longest_first);
    *ret_n = many < LANES ? many : LANES;
    *ret_more = many - *ret_n;
    qsort(rank, *ret_n, sizeof(*rank), in_order);
    return 0;
}

static void legend(const struct waiting *t)
{
    gpv_html(t->p->f, "<div class=\"legend\">\n");
    for (unsigned why = 0; why < GPV_WHYS; why++) {
        if (t->seen[why])
            gpv_texture_key(t->p->f, gpv_texture_of_why(why), gpv_why_text(why));
    }
    gpv_html(t->p->f, "</div>\n");
}

static int write_figure(struct waiting *t, const struct rank *rank, size_t lanes)
{
    FILE *f = t->p->f;
    gpv_html(f, "<figure class=\"scroll\" tabindex=\"0\">");
    gpv_chart_begin(f, &t->chart, "waits",
                    "How many tasks of each batch waited at each time, and for which reason.  The "
                    "table of the batches has the reasons in words.",
                    TOP, TOP + LANE * (unsigned)lanes + 4);
    for (size_t i = 0; i < lanes; i++) {
        if (write_lane(t, rank[i].batch, TOP + LANE * (unsigned)(i + 1) - 4) != 0)
            return -1;
    }
    gpv_chart_end(f);
    gpv_html(f, "</figure>\n");
    legend(t);
    return 0;
}

int gpv_page_waits(struct gpv_page *p)
{
    const struct gpv_night *n = p->n;
    struct waiting t = { .p = p };
    struct rank *rank = malloc((n->batches.n + 1) * sizeof(*rank));
    size_t lanes = 0, more = 0;
    int ret = rank && choose(p, rank, &lanes, &more) == 0 ? 0 : -1;
    gpv_page_section(p, "waited", "What waited, and why");
    t.chart = gpv_page_chart(p);
    t.dot = malloc(t.chart.dots * sizeof(*t.dot));
    if (ret == 0 && lanes) {
        gpv_html(p->f,
                 "<p class=\"dim\">Waiting tasks, each batch on its own scale: its most on "
                 "the right.  The pattern shows why the first one waited at that time.  The "
                 "table of the batches has the share of each reason.</p>\n");
        ret = t.dot ? write_figure(&t, rank, lanes) : -1;
    } else if (ret == 0) {
        gpv_html(p->f, "<p>No task waited.</p>\n");
    }
    if (more)
        gpv_html(p->f, "<p class=\"dim\">%zu more batches waited, for a shorter time.</p>\n", more);
    gpv_page_section_end(p);
    free(t.boxes.list.row);
    free(t.dot);
    free(rank);
    return ret;
}
