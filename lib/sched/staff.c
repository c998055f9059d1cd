/* SPDX-License-Identifier: MIT */
/*
 * staff.c - which workers of a class are there, which tasks they serve, and whether one more would
 * only wait.                                                                                  [R5]
 */
#include "sched/plan_parts.h"

static bool is_at_work(const struct gpi_run *r)
{
    return r->work >= GPI_WORK_BOOT && r->work <= GPI_WORK_BUSY;
}

bool gpi_staff_stays(const struct gpi_plan *p, const struct gpi_run *r)
{
    return p->class[r->class].set.residence == GPI_RESIDENT && is_at_work(r);
}

bool gpi_staff_may_go(const struct gpi_plan *p, uint32_t class)
{
    const struct gpi_learned *c = &p->class[class];

    return !c->set.pinned && c->workers - c->leaving > c->set.min_workers;
}

/* Returns true if the run is a worker as the class would boot one for the request.  Workers of a
 * resident class are alike, those of a transient one if their needs are. */
static bool is_alike(const struct gpi_plan *p, const struct gpi_run *w, uint32_t class,
                     const struct gpi_request *r)
{
    return w->class == class && is_at_work(w) &&
           (p->class[class].set.residence == GPI_RESIDENT || gpi_request_same(&w->need, r));
}

static bool is_among(struct gpi_runs runs, uint32_t run)
{
    for (uint32_t i = 0; i < runs.n; i++)
        if (runs.run[i] == run)
            return true;
    return false;
}

/* In a resident class all workers are alike, so its max_workers is the bound. */
bool gpi_staff_is_enough(const struct gpi_plan *p, uint32_t class, const struct gpi_request *r)
{
    const struct gpi_learned *c = &p->class[class];
    uint64_t cpus = r->cpus;

    if (cpus == 0 || c->set.residence != GPI_TRANSIENT)
        return false;
    for (uint32_t i = 0; i < p->set.runs && c->workers > c->leaving; i++)
        if (is_alike(p, &p->run[i], class, r))
            cpus += p->run[i].need.cpus;
    return cpus > p->set.cpus;
}

bool gpi_staff_is_full(const struct gpi_plan *p, uint32_t device, uint32_t class,
                       const struct gpi_request *r, struct gpi_runs but)
{
    const struct gpi_learned *c = &p->class[class];
    uint32_t share = r->share;
    const struct gpi_run *w;

    if (c->workers == c->leaving)
        return false;
    for (uint32_t i = p->device[device].first; i != GPI_NONE; i = w->next[i % GPI_RUN_DEVICES]) {
        w = &p->run[i / GPI_RUN_DEVICES];
        if (is_alike(p, w, class, r) && !is_among(but, i / GPI_RUN_DEVICES))
            share += w->need.share;
    }
    return share > GPI_SHARE_ALL;
}

bool gpi_staff_serves(const struct gpi_plan *p, const struct gpi_run *r, const struct gpi_shape *s)
{
    bool serves = p->class[s->class].set.residence == GPI_RESIDENT;

    for (uint32_t i = 0; i < s->n_requests && !serves; i++)
        serves = gpi_request_same(&s->request[i], &r->need);
    return serves;
}

bool gpi_staff_has_bare(const struct gpi_plan *p, const struct gpi_shape *s)
{
    const struct gpi_run *r;

    for (uint32_t i = p->class[s->class].idle; i != GPI_NONE; i = r->list_next) {
        r = &p->run[i];
        if (r->n_devices == 0 && gpi_staff_serves(p, r, s))
            return true;
    }
    return false;
}

/* Returns true if the device has a worker for the shape, from one state of its life to another. */
static bool has_worker(const struct gpi_plan *p, uint32_t device, const struct gpi_shape *s,
                       enum gpi_work first, enum gpi_work last)
{
    const struct gpi_run *r;

    for (uint32_t i = p->device[device].first; i != GPI_NONE; i = r->next[i % GPI_RUN_DEVICES]) {
        r = &p->run[i / GPI_RUN_DEVICES];
        if (r->class == s->class && r->work >= first && r->work <= last &&
            gpi_staff_serves(p, r, s))
            return true;
    }
    return false;
}

bool gpi_staff_has_warm(const struct gpi_plan *p, uint32_t device, const struct gpi_shape *s)
{
    return has_worker(p, device, s, GPI_WORK_IDLE, GPI_WORK_BUSY);
}

bool gpi_staff_has_coming(const struct gpi_plan *p, uint32_t device, const struct gpi_shape *s)
{
    return has_worker(p, device, s, GPI_WORK_BOOT, GPI_WORK_BOOT);
}
