/* SPDX-License-Identifier: MIT */
/* bars.c - stretches of GPUs without work, with the texts of their rows. */
#include "view/report/bars.h"

#include "view/night/use.h"

#define SHORT INT64_C(1000000000) /* a GPU that was idle for less, while tasks waited, has no bar */

/* The pass over a GPU: the rows that have begun last. */
struct pass {
    const struct gpv_night *n;
    struct gpv_bars *bars;
    uint32_t gpu;
    size_t tenancy, out; /* the first row that has not begun */
    const struct gpv_tenancy *loads, *kept;
    const struct gpv_out *is_out;
};

static void advance(struct pass *s, int64_t now)
{
    const struct gpv_night *n = s->n;
    for (; s->tenancy < n->tenancies.n && n->tenancies.row[s->tenancy].since <= now; s->tenancy++) {
        const struct gpv_tenancy *t = &n->tenancies.row[s->tenancy];
        if (t->gpu == s->gpu && t->kind == GPV_TENANCY_KEPT)
            s->kept = t;
        else if (t->gpu == s->gpu)
            s->loads = t;
    }
    for (; s->out < n->outs.n && n->outs.row[s->out].since <= now; s->out++) {
        if (n->outs.row[s->out].gpu == s->gpu)
            s->is_out = &n->outs.row[s->out];
    }
}

static int add_bar(const struct gpv_stretch *stretch, void *user)
{
    struct pass *s = user;
    struct gpv_bar bar = { stretch->from, stretch->to, s->gpu, stretch->use, GPV_NONE, 0 };
    advance(s, bar.from);
    if (bar.use == GPV_USE_LOADING && s->loads) {
        bar.class = s->loads->class;
        bar.text = s->loads->text;
    }
    if (bar.use == GPV_USE_KEPT && s->kept)
        bar.text = s->kept->text;
    if (bar.use == GPV_USE_OUT && s->is_out)
        bar.text = s->is_out->text;
    if (bar.use == GPV_USE_OK || bar.use == GPV_USE_LOST || bar.use == GPV_USE_IDLE ||
        (bar.use == GPV_USE_LIMITED && bar.to - bar.from < SHORT))
        return 0;
    if (!gpv_grow(&s->bars->row, s->bars->n, &s->bars->room, sizeof(*s->bars->row)))
        return -1;
    s->bars->row[s->bars->n++] = bar;
    return 0;
}

int gpv_bars_of(const struct gpv_night *n, struct gpv_bars *ret)
{
    for (uint32_t gpu = 0; gpu < n->gpus.n; gpu++) {
        struct pass s = { .n = n, .bars = ret, .gpu = gpu };
        if (gpv_use_each(n, gpu, n->from, n->to, add_bar, &s) != 0)
            return -1;
    }
    return 0;
}
