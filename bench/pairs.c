/* SPDX-License-Identifier: MIT */
#include "pairs.h"

int b_pairs_take(struct b_pairs *p, const struct b_side *raw, const struct b_side *ours)
{
    struct b_round *r = &p->raw[p->n], *o = &p->ours[p->n];
    int rc;

    if (p->n == B_MOST_PAIRS)
        return 0;
    b_machine_look(&p->states);
    if (p->n % 2 == 0)
        rc = raw->measure(raw->user, r) || ours->measure(ours->user, o);
    else
        rc = ours->measure(ours->user, o) || raw->measure(raw->user, r);
    if (rc)
        return -1;
    p->n++;
    return 0;
}

static double figure(const struct b_round *r, enum b_what what)
{
    return what == B_CPU ? r->cpu : r->value;
}

struct b_spread b_pairs_ratio(const struct b_pairs *p, enum b_what what)
{
    double ratios[B_MOST_PAIRS];
    size_t i, n = 0;

    for (i = 0; i < p->n; i++)
        if (figure(&p->raw[i], what) > 0)
            ratios[n++] = figure(&p->ours[i], what) / figure(&p->raw[i], what);
    return b_spread(ratios, n, 0.25);
}

static double middle(const struct b_round *rounds, size_t n, enum b_what what)
{
    double values[B_MOST_PAIRS];
    size_t i;

    for (i = 0; i < n; i++)
        values[i] = figure(&rounds[i], what);
    return b_median(values, n);
}

double b_pairs_raw(const struct b_pairs *p, enum b_what what)
{
    return middle(p->raw, p->n, what);
}

double b_pairs_ours(const struct b_pairs *p, enum b_what what)
{
    return middle(p->ours, p->n, what);
}
