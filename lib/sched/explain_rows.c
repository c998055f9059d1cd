/* SPDX-License-Identifier: MIT */
/*
 * explain_rows.c - the rows of an answer, in the order in which their reasons may go.        [S9]
 *
 * A task behind an older one of its shape names that task, and then the reasons of that task.
 * Next come reasons that stop every way: the plan has no run left, or an older task comes first
 * in STRICT mode.  Then come reasons that end on their own, by their latest time, the ones
 * without a time last.  Then come reasons that the user has to change: a paused or broken
 * device, foreign processes, pinned workers, max_workers.  Then come devices that workers leave
 * for another class only, and last the reasons that never go.  Of equals the preferred variant is
 * first, and of a variant the machine and the first device.
 */
#include "sched/explain_parts.h"

enum group { STOPS_ALL, ENDS, IS_CHANGED, IS_OTHERS, NEVER_ENDS };

static enum group group_of(const struct gpi_plan_reason *r)
{
    switch (r->kind) {
    case GPI_REASON_PASSED_OVER_BY:
        return STOPS_ALL;
    case GPI_REASON_SEATS:
        return r->other == GPI_NOWHERE ? STOPS_ALL : IS_CHANGED;
    case GPI_REASON_PAUSED:
    case GPI_REASON_DRAINED:
        return r->device == GPI_NOWHERE ? STOPS_ALL : IS_CHANGED;
    case GPI_REASON_FAULT:
        return r->until == GPI_NEVER ? IS_CHANGED : ENDS;
    case GPI_REASON_FOREIGN:
    case GPI_REASON_PINNED:
        return IS_CHANGED;
    case GPI_REASON_OCCUPIED:
        return IS_OTHERS;
    case GPI_REASON_NEVER:
        return NEVER_ENDS;
    default:
        return ENDS;
    }
}

/* Once the task is late, a worker boots first. */
static uint64_t ends_at(const struct gpi_plan_reason *r)
{
    return r->kind == GPI_REASON_BUSY && r->other == GPI_NOWHERE ? gpi_time_add(r->until, r->have)
                                                                 : r->until;
}

static bool precedes(const struct gpi_plan_reason *a, const struct gpi_plan_reason *b)
{
    const enum group x = group_of(a), y = group_of(b);

    if (x != y)
        return x < y;
    if (ends_at(a) != ends_at(b))
        return ends_at(a) < ends_at(b);
    if (a->variant != b->variant)
        return a->variant < b->variant;
    if (a->device != b->device)
        return a->device + 1 < b->device + 1; /* NOWHERE + 1 is 0 */
    if (a->kind != b->kind)
        return a->kind < b->kind;
    if (a->other != b->other)
        return a->other < b->other;
    return a->have != b->have ? a->have < b->have : a->need < b->need;
}

static void swap(struct gpi_plan_reason *a, struct gpi_plan_reason *b)
{
    const struct gpi_plan_reason kept = *a;

    *a = *b;
    *b = kept;
}

static void sift_down(struct gpi_plan_reason *row, uint32_t n)
{
    for (uint32_t i = 0, child = 1; child < n; i = child, child = 2 * i + 1) {
        child += child + 1 < n && precedes(&row[child], &row[child + 1]);
        if (!precedes(&row[i], &row[child]))
            return;
        swap(&row[i], &row[child]);
    }
}

void gpi_explain_add(struct gpi_answer *a, const struct gpi_plan_reason *r)
{
    if (a->dry)
        return;
    a->count++;
    if (a->n == a->most) {
        if (a->n == 0 || !precedes(r, &a->row[0]))
            return;
        a->row[0] = *r;
        sift_down(a->row, a->n);
        return;
    }
    a->row[a->n] = *r;
    for (uint32_t i = a->n++; i > 0 && precedes(&a->row[(i - 1) / 2], &a->row[i]); i = (i - 1) / 2)
        swap(&a->row[i], &a->row[(i - 1) / 2]);
}

void gpi_explain_sort(struct gpi_answer *a)
{
    for (uint32_t i = a->n; i-- > 1;) {
        swap(&a->row[0], &a->row[i]);
        sift_down(a->row, i);
    }
}

struct gpi_plan_reason gpi_explain_row(uint32_t device, uint32_t variant, enum gpi_plan_why kind)
{
    return (struct gpi_plan_reason){
        .device = device, .variant = variant, .kind = kind, .other = GPI_NOWHERE, .until = GPI_NEVER
    };
}

void gpi_explain_held_by(const struct gpi_answer *a, struct gpi_plan_reason *r, uint32_t head)
{
    r->other = a->p->shape[head].head;
    r->until = a->p->shape[head].promise;
}
