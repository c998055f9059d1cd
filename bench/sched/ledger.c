/* SPDX-License-Identifier: MIT */
/* ledger.c - what devices have in use, which jobs wait, and what is held for them. */
#include "ledger.h"

#include <stdlib.h>

#include "base/clock.h"

int b_ledger_init(struct b_ledger *l, const struct b_workload *w, const struct b_job *job,
                  uint32_t n)
{
    *l = (struct b_ledger){ .w = w, .job = job };
    for (uint32_t i = 0; i < w->n_types; i++) {
        l->queue[i] = malloc(sizeof *l->queue[i] * n);
        if (!l->queue[i])
            return -1;
    }
    return 0;
}

void b_ledger_fini(struct b_ledger *l)
{
    for (uint32_t i = 0; i < B_TYPES; i++)
        free(l->queue[i]);
}

/* ---- what begins and ends ---- */

static bool is_model(const struct b_ledger *l, uint32_t type)
{
    return l->w->type[type].class < l->w->n_models;
}

void b_ledger_wait(struct b_ledger *l, uint32_t job)
{
    const uint32_t type = l->job[job].type;

    l->queue[type][l->last[type]++] = job;
}

bool b_ledger_begin(struct b_ledger *l, uint32_t job, const uint16_t *device, uint32_t n)
{
    const uint32_t type = l->job[job].type;
    const struct gpi_request *need = b_type_need(l->w, type);

    for (uint32_t i = 0; i < n; i++) {
        struct b_place *p = &l->place[device[i]];
        p->share += need->share;
        p->memory += is_model(l, type) ? 0 : need->memory;
        p->run[p->n_runs++] = job;
    }
    return l->first[type] < l->last[type] && l->queue[type][l->first[type]++] == job;
}

void b_ledger_end(struct b_ledger *l, uint32_t job, const uint16_t *device, uint32_t n)
{
    const uint32_t type = l->job[job].type;
    const struct gpi_request *need = b_type_need(l->w, type);

    for (uint32_t i = 0; i < n; i++) {
        struct b_place *p = &l->place[device[i]];
        uint32_t k = 0;
        p->share -= need->share;
        p->memory -= is_model(l, type) ? 0 : need->memory;
        while (p->run[k] != job)
            k++;
        p->run[k] = p->run[--p->n_runs];
    }
}

void b_ledger_worker(struct b_ledger *l, uint32_t model, uint16_t device, bool has)
{
    const uint64_t memory = l->w->model[model].need.memory;

    l->place[device].memory += has ? memory : 0 - memory;
}

void b_ledger_warm(struct b_ledger *l, uint32_t model, uint16_t device, bool warm)
{
    l->place[device].warm[model] += warm ? 1u : UINT32_MAX;
}

void b_ledger_idle(struct b_ledger *l, uint32_t model, uint16_t device, bool idle)
{
    l->place[device].idle[model] += idle ? 1u : UINT32_MAX;
}

/* ---- what is held ---- */

static bool waits(const struct b_ledger *l, uint32_t type)
{
    return l->first[type] < l->last[type];
}

/* A request to a model waits for its worker; only where that is idle it waits for a share. */
static bool may_use(const struct b_ledger *l, uint32_t type, uint32_t device)
{
    if (is_model(l, type))
        return l->place[device].idle[l->w->type[type].class] > 0;
    return b_type_need(l->w, type)->memory <= b_usable(l->w, device);
}

static bool fits(const struct b_ledger *l, uint32_t type, uint32_t device)
{
    const struct gpi_request *need = b_type_need(l->w, type);
    const struct b_place *p = &l->place[device];

    return need->devices == 1 && p->share + need->share <= GPI_SHARE_ALL &&
           (is_model(l, type) || p->memory + need->memory <= b_usable(l->w, device));
}

void b_ledger_pass(struct b_ledger *l, double seconds)
{
    for (uint32_t d = 0; d < B_DEVICES; d++) {
        const double share = (double)l->place[d].share / GPI_SHARE_ALL;
        bool held = false, missed = false;
        for (uint32_t i = 0; i < l->w->n_types; i++) {
            const bool may = waits(l, i) && may_use(l, i, d);
            held |= may;
            missed |= may && fits(l, i, d);
        }
        l->busy += share * seconds;
        l->held += held ? (1 - share) * seconds : 0;
        l->missed += missed ? (1 - share) * seconds : 0;
    }
}

/* ---- when a head would begin ---- */

/* Returns true if no job that waits is older and may use the device, or waits for its worker
 * there. */
static bool is_head(const struct b_ledger *l, uint32_t job, uint32_t device)
{
    bool is = may_use(l, l->job[job].type, device);

    for (uint32_t i = 0; i < l->w->n_types; i++) {
        const bool may =
            is_model(l, i) ? l->place[device].warm[l->w->type[i].class] > 0 : may_use(l, i, device);
        is &= !waits(l, i) || l->queue[i][l->first[i]] >= job || !may;
    }
    return is;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Returns when the device has room for the job, if nothing else begins there. */
static uint64_t room_at(const struct b_ledger *l, uint32_t job, uint32_t device,
                        const uint64_t *ends, uint64_t now)
{
    const struct gpi_request *need = b_type_need(l->w, l->job[job].type);
    const struct b_place *p = &l->place[device];
    uint64_t at[B_RUNS_OF_DEVICE + 1] = { now };

    for (uint32_t i = 0; i < p->n_runs; i++)
        at[i + 1] = ends[p->run[i]];
    qsort(at, p->n_runs + 1, sizeof *at, compare);
    for (uint32_t k = 0; k <= p->n_runs; k++) {
        uint64_t memory = p->memory;
        uint32_t share = p->share;
        for (uint32_t i = 0; i < p->n_runs; i++) {
            const uint32_t type = l->job[p->run[i]].type;
            if (ends[p->run[i]] > at[k])
                continue;
            share -= b_type_need(l->w, type)->share;
            memory -= is_model(l, type) ? 0 : b_type_need(l->w, type)->memory;
        }
        if (share + need->share <= GPI_SHARE_ALL && memory + need->memory <= b_usable(l->w, device))
            return at[k];
    }
    return GPI_NEVER;
}

uint64_t b_ledger_apart(const struct b_ledger *l, uint32_t job, const uint64_t *ends, uint64_t now)
{
    const uint32_t need = b_type_need(l->w, l->job[job].type)->devices;
    uint64_t at[B_DEVICES];
    uint32_t n = 0;

    for (uint32_t d = 0; d < B_DEVICES; d++)
        if (is_head(l, job, d))
            at[n++] = room_at(l, job, d, ends, now);
    if (is_model(l, l->job[job].type) || n < need)
        return GPI_NEVER;
    qsort(at, n, sizeof *at, compare);
    return at[need - 1];
}
