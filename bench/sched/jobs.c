/* SPDX-License-Identifier: MIT */
/* jobs.c - the mixed workloads. */
#include "jobs.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "sim/random.h"

#define GIB (1ull << 30)
#define EIGHT(gib)                                                                               \
    {                                                                                            \
        (gib) * GIB, (gib)*GIB, (gib)*GIB, (gib)*GIB, (gib)*GIB, (gib)*GIB, (gib)*GIB, (gib)*GIB \
    }
#define NEED(n, part, gib)                                   \
    {                                                        \
        .devices = (n), .share = (part), .memory = (gib)*GIB \
    }

/* A class has the number of its type. */
static const struct b_workload workloads[B_WORKLOADS] = {
    { .name = "flow",
      .text = "narrow jobs of one device, and wide ones of 2, 4 and 8; 8 devices of 80 GiB",
      .memory = EIGHT(80),
      .n_types = 4,
      .type = { { 0, false, 92, 60 * GPI_S, 1200 * GPI_S, NEED(1, GPI_SHARE_ALL, 20) },
                { 1, true, 4, 300 * GPI_S, 3600 * GPI_S, NEED(2, GPI_SHARE_ALL, 40) },
                { 2, true, 2, 300 * GPI_S, 3600 * GPI_S, NEED(4, GPI_SHARE_ALL, 40) },
                { 3, true, 2, 300 * GPI_S, 3600 * GPI_S, NEED(8, GPI_SHARE_ALL, 40) } } },
    { .name = "shares",
      .text = "quarters, halves and whole devices; 4 devices of 24 GiB and 4 of 80 GiB",
      .memory = { 24 * GIB, 24 * GIB, 24 * GIB, 24 * GIB, 80 * GIB, 80 * GIB, 80 * GIB, 80 * GIB },
      .n_types = 5,
      .type = { { 0, false, 40, 30 * GPI_S, 900 * GPI_S, NEED(1, 2500, 4) },
                { 1, false, 25, 30 * GPI_S, 900 * GPI_S, NEED(1, 5000, 10) },
                { 2, true, 20, 30 * GPI_S, 900 * GPI_S, NEED(1, GPI_SHARE_ALL, 16) },
                { 3, true, 10, 30 * GPI_S, 900 * GPI_S, NEED(1, GPI_SHARE_ALL, 60) },
                { 4, true, 5, 30 * GPI_S, 900 * GPI_S, NEED(2, GPI_SHARE_ALL, 30) } } },
    { .name = "models",
      .text = "requests to three resident models, and batch jobs as external work; 8 devices of "
              "80 GiB",
      .memory = EIGHT(80),
      .n_models = 3,
      .model = { { NEED(1, 5000, 40), 4, 60 * GPI_S, { 0, 1 }, 2 },
                 { NEED(1, 5000, 24), 3, 30 * GPI_S, { 2 }, 1 },
                 { NEED(1, 5000, 60), 1, 90 * GPI_S, { 3 }, 1 } },
      .n_types = 6,
      .type = { { 0, false, 10.2, 2 * GPI_S, 30 * GPI_S, NEED(0, 0, 0) },
                { 1, false, 6.1, 2 * GPI_S, 30 * GPI_S, NEED(0, 0, 0) },
                { 2, false, 4.1, 2 * GPI_S, 30 * GPI_S, NEED(0, 0, 0) },
                { 3, true, 0.6, 60 * GPI_S, 900 * GPI_S, NEED(1, 5000, 12) },
                { 4, true, 0.3, 60 * GPI_S, 900 * GPI_S, NEED(1, GPI_SHARE_ALL, 16) },
                { 5, true, 0.1, 60 * GPI_S, 900 * GPI_S, NEED(2, GPI_SHARE_ALL, 16) } } },
};

const struct b_workload *b_workload(unsigned number)
{
    return &workloads[number];
}

const struct gpi_request *b_type_need(const struct b_workload *w, uint32_t type)
{
    const struct b_type *t = &w->type[type];

    return t->class < w->n_models ? &w->model[t->class].need : &t->request;
}

uint64_t b_usable(const struct b_workload *w, uint32_t device)
{
    return w->memory[device] - w->memory[device] / 10000 * B_HEADROOM;
}

static double unit(struct gpi_random *r) /* above 0, at most 1 */
{
    return ((double)(gpi_random_next(r) >> 11) + 1) / 9007199254740992.0;
}

static uint32_t draw_type(const struct b_workload *w, struct gpi_random *r)
{
    double all = 0, at;
    uint32_t i = 0;

    for (uint32_t k = 0; k < w->n_types; k++)
        all += w->type[k].weight;
    for (at = unit(r) * all; i + 1 < w->n_types && at > w->type[i].weight; i++)
        at -= w->type[i].weight;
    return i;
}

/* Returns the device-seconds that the jobs need. */
static double draw_runs(const struct b_workload *w, struct gpi_random *r, struct b_job *job,
                        uint32_t n)
{
    double work = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct b_type *t = &w->type[job[i].type = draw_type(w, r)];
        const struct gpi_request *need = b_type_need(w, job[i].type);
        job[i].run = gpi_random_scale(r, t->from, t->to);
        job[i].limit = (uint64_t)((double)job[i].run * (1.05 + 0.45 * unit(r)));
        work += (double)job[i].run / 1e9 * need->devices * need->share / GPI_SHARE_ALL;
    }
    return work;
}

struct b_job *b_jobs_draw(const struct b_workload *w, uint32_t n, double load)
{
    static const double third[3] = { 0.85, 0.90, 0.95 };
    struct gpi_random r = { 15 };
    struct b_job *job = calloc(n, sizeof *job);
    double at = 0, gap;

    if (!job)
        return NULL;
    gap = draw_runs(w, &r, job, n) / n / B_DEVICES;
    for (uint32_t i = 0; i < n; i++) {
        at += -log(unit(&r)) * gap / (load > 0 ? load : third[(uint64_t)i * 3 / n]);
        job[i].at = (uint64_t)(at * 1e9);
    }
    return job;
}
