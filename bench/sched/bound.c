/* SPDX-License-Identifier: MIT */
/* bound.c - the most that devices could have been busy. */
#include "bound.h"

#include <stdlib.h>

/* A flow is a list of changes of its rate; unit: 1/10000 of a device. */
struct change {
    double at; /* s */
    int64_t by;
};

struct flow {
    struct change *change;
    size_t n;
};

static int compare(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* Returns the number of devices that can hold the type. */
static uint32_t group_of(const struct b_workload *w, uint32_t type)
{
    uint32_t n = 0;

    for (uint32_t d = 0; d < B_DEVICES; d++)
        n += b_type_need(w, type)->memory <= b_usable(w, d);
    return n;
}

static void add(struct flow *f, double at, int64_t by)
{
    f->change[f->n++] = (struct change){ at, by };
}

/* Adds the jobs for which there are `group` devices. */
static void add_jobs(struct flow *f, const struct b_workload *w, const struct b_job *job,
                     uint32_t n, uint32_t group)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct gpi_request *need = b_type_need(w, job[i].type);
        const int64_t rate = (int64_t)need->devices * need->share;
        if (group_of(w, job[i].type) != group)
            continue;
        add(f, (double)job[i].at / 1e9, rate);
        add(f, (double)(job[i].at + job[i].run) / 1e9, -rate);
    }
}

/* Lets the flow through a queue.  `out` gets the changes of what leaves it until `until`.  Returns
 * what has left by then, in device-seconds. */
static double pass(struct flow *in, int64_t most, double until, struct flow *out)
{
    int64_t rate = 0, leaves = 0;
    double queue = 0, passed = 0, now = 0;

    qsort(in->change, in->n, sizeof *in->change, compare);
    out->n = 0;
    for (size_t i = 0; now < until;) {
        const int64_t before = leaves;
        double next = i < in->n && in->change[i].at < until ? in->change[i].at : until;
        leaves = queue > 0 || rate > most ? most : rate;
        if (leaves != before)
            add(out, now, leaves - before);
        if (queue > 0 && rate < most && now + queue / (double)(most - rate) < next) {
            next = now + queue / (double)(most - rate);
            queue = 0;
        } else {
            queue += (double)(rate - leaves) * (next - now);
            queue = queue > 0 ? queue : 0;
        }
        passed += (double)leaves * (next - now);
        now = next;
        for (; i < in->n && in->change[i].at <= now; i++)
            rate += in->change[i].by;
    }
    return passed / GPI_SHARE_ALL;
}

double b_bound(const struct b_workload *w, const struct b_job *job, uint32_t n, uint64_t until)
{
    /* A queue adds at most one change for each that enters, and one when it is empty again. */
    const size_t room = 2 * ((size_t)n * 2 + 2) * B_DEVICES;
    struct flow in = { malloc(sizeof *in.change * room), 0 },
                out = { malloc(sizeof *out.change * room), 0 }, spare;
    double passed = -1;

    for (uint32_t group = 1; in.change && out.change && group <= B_DEVICES; group++) {
        add_jobs(&in, w, job, n, group);
        passed = pass(&in, (int64_t)group * GPI_SHARE_ALL, (double)until / 1e9, &out);
        spare = in;
        in = out;
        out = spare;
    }
    free(in.change);
    free(out.change);
    return passed;
}
