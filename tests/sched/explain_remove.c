/* SPDX-License-Identifier: MIT */
/* explain_remove.c - takes away one reason why a task of a plan waits. */
#include "explain_remove.h"

#include "sched/plan_parts.h"

const char *const t_reason_name[] = { "PASSED_OVER_BY", "MEMORY",        "SHARE",     "CPUS",
                                      "HEAD_HOLDS",     "DRAINED",       "PAUSED",    "FAULT",
                                      "FOREIGN",        "MIN_RESIDENCE", "MAX_WAIT",  "PINNED",
                                      "SEATS",          "BOOTING",       "UNLOADING", "BUSY",
                                      "OCCUPIED",       "NEVER" };

#define HOST_MORE (1ull << 40) /* bytes of the machine, enough for all tasks */

static bool is_used(const struct gpi_plan *p, uint32_t run)
{
    return p->run[run].work != GPI_WORK_NONE;
}

static void drop_actions(struct gpi_plan *p)
{
    struct gpi_plan_action a;

    while (gpi_plan_next(p, &a))
        ;
}

static void end_task(struct gpi_plan *p, uint32_t run)
{
    if (p->run[run].task != GPI_NONE)
        gpi_plan_end(p, p->now, p->run[run].task, false, 0, 0);
    drop_actions(p);
}

static void remove_run(struct gpi_plan *p, uint32_t run)
{
    const bool is_worker = p->run[run].work != GPI_WORK_TASK;

    end_task(p, run);
    if (is_worker)
        gpi_plan_gone(p, p->now, run, p->now);
    drop_actions(p);
}

/* Which runs of a device go. */
struct which {
    bool tasks, workers; /* the task alone; the worker, too */
    uint32_t class;      /* GPI_NOWHERE: any */
    uint8_t from, to;    /* of its works */
};

static uint32_t list(const struct gpi_plan *p, uint32_t device, uint32_t *ret)
{
    uint32_t n = 0;

    for (uint32_t i = p->device[device].first; i != GPI_NONE;
         i = p->run[i / GPI_RUN_DEVICES].next[i % GPI_RUN_DEVICES])
        ret[n++] = i / GPI_RUN_DEVICES;
    return n;
}

static void clear(struct gpi_plan *p, uint32_t device, const struct which *w)
{
    uint32_t run[64], n = list(p, device, run);

    for (uint32_t i = 0; i < n; i++) {
        const struct gpi_run *r = &p->run[run[i]];
        if ((w->class != GPI_NOWHERE && r->class != w->class) || r->work < w->from ||
            r->work > w->to)
            continue;
        if (w->workers)
            remove_run(p, run[i]);
        else if (w->tasks)
            end_task(p, run[i]);
    }
}

static void examine_all(struct gpi_plan *p)
{
    for (uint32_t i = gpi_shape_first(p); i != GPI_NONE; i = gpi_shape_next(p, i, GPI_BIT_ANY))
        gpi_shape_examine(p, i);
}

/* Workers that stay are in nobody's way here: their memory is no part of the room. */
static void free_memory(struct gpi_plan *p, uint32_t device)
{
    uint32_t run[64], n = list(p, device, run);

    for (uint32_t i = 0; i < n; i++) {
        const struct gpi_run *r = &p->run[run[i]];
        if (r->work == GPI_WORK_TASK || r->work >= GPI_WORK_DRAIN ||
            p->class[r->class].set.residence == GPI_TRANSIENT)
            remove_run(p, run[i]);
    }
}

static void free_cpus(struct gpi_plan *p, uint64_t need)
{
    while (gpi_memory_free_cpus(p) < need)
        end_task(p, gpi_tree_unit(&p->cpu_ends, 1));
}

static void free_runs(struct gpi_plan *p)
{
    for (uint32_t i = 0; i < p->set.runs; i++)
        if (is_used(p, i))
            remove_run(p, i);
}

/* A class that is to have a worker without a task is to have none. */
static void unload(struct gpi_plan *p, uint32_t class)
{
    p->class[class].set.min_workers = 0;
    p->class[class].to_load = false;
    gpi_tenancy_load(p, class);
    examine_all(p);
}

static void loosen(struct gpi_plan *p, const struct gpi_plan_reason *r)
{
    struct gpi_plan_class *c = &p->class[r->other].set;

    if (r->kind == GPI_REASON_PINNED) {
        c->min_workers = 0;
        gpi_plan_class_set(p, p->now, r->other, GPI_CLASS_UNPIN);
    } else {
        c->max_workers++;
        gpi_shape_class(p, r->other);
    }
    examine_all(p);
}

static void boot(struct gpi_plan *p, const struct gpi_plan_reason *r)
{
    const uint64_t now = r->until != GPI_NEVER && r->until > p->now ? r->until : p->now;

    for (uint32_t i = 0; i < p->set.runs; i++) {
        bool there = r->device == GPI_NOWHERE;
        if (p->run[i].work != GPI_WORK_BOOT || p->run[i].class != r->other)
            continue;
        for (uint32_t j = 0; j < p->run[i].n_devices; j++)
            there |= p->run[i].device[j] == r->device;
        if (there)
            gpi_plan_up(p, now, i);
    }
}

/* The class has no more work: its workers are ripe one day. */
static void drop_work(struct gpi_plan *p, uint32_t class)
{
    for (uint32_t i = 0; i < p->set.tasks; i++)
        if (gpi_shape_waits(p, i) && p->shape[p->task[i].holder].class == class)
            gpi_plan_withdraw(p, p->now, i);
    drop_actions(p);
    for (uint32_t i = 0; i < p->set.runs; i++)
        if (is_used(p, i) && p->run[i].class == class)
            end_task(p, i);
}

static uint64_t wait(struct gpi_plan *p, const struct gpi_plan_reason *r)
{
    if (r->until == GPI_NEVER)
        drop_work(p, r->other);
    return r->until == GPI_NEVER ? p->now : r->until;
}

static void remove_class(struct gpi_plan *p, uint32_t class)
{
    for (uint32_t i = 0; i < p->set.runs; i++)
        if (is_used(p, i) && p->run[i].work != GPI_WORK_TASK && p->run[i].class == class)
            remove_run(p, i);
}

static void remove_now(struct gpi_plan *p, const struct gpi_plan_reason *r)
{
    switch ((enum gpi_plan_why)r->kind) {
    case GPI_REASON_PASSED_OVER_BY:
    case GPI_REASON_HEAD_HOLDS:
        if (r->other >= p->set.tasks)
            unload(p, r->other - p->set.tasks);
        else
            gpi_plan_withdraw(p, p->now, r->other);
        break;
    case GPI_REASON_MEMORY:
        if (r->device != GPI_NOWHERE) {
            free_memory(p, r->device);
            break;
        }
        p->set.host_memory += HOST_MORE;
        examine_all(p);
        break;
    case GPI_REASON_SHARE:
        clear(p, r->device,
              &(struct which){ .tasks = true, .class = GPI_NOWHERE, .to = GPI_WORK_UNLOAD });
        break;
    case GPI_REASON_CPUS:
        free_cpus(p, r->need);
        break;
    case GPI_REASON_DRAINED:
    case GPI_REASON_PAUSED:
    case GPI_REASON_FAULT:
        if (r->device == GPI_NOWHERE)
            gpi_plan_class_set(p, p->now, r->other, GPI_CLASS_RESUME);
        else
            gpi_plan_device(p, p->now, r->device, GPI_PLAN_IN);
        break;
    case GPI_REASON_FOREIGN:
        gpi_plan_foreign(p, p->now, r->device, 0, 0);
        break;
    case GPI_REASON_PINNED:
        loosen(p, r);
        break;
    case GPI_REASON_SEATS:
        if (r->other == GPI_NOWHERE || p->free_run == GPI_NONE)
            free_runs(p);
        else
            loosen(p, r);
        break;
    case GPI_REASON_BOOTING:
        boot(p, r);
        break;
    case GPI_REASON_UNLOADING:
        clear(p, r->device,
              &(struct which){ .workers = true,
                               .class = r->other,
                               .from = GPI_WORK_DRAIN,
                               .to = GPI_WORK_UNLOAD });
        break;
    case GPI_REASON_BUSY:
        gpi_plan_end(p, p->now, r->other, false, 0, 0);
        break;
    case GPI_REASON_OCCUPIED:
        if (r->device == GPI_NOWHERE)
            remove_class(p, r->other);
        else
            clear(p, r->device,
                  &(struct which){ .workers = true,
                                   .class = r->other,
                                   .from = GPI_WORK_BOOT,
                                   .to = GPI_WORK_UNLOAD });
        break;
    default:
        break;
    }
}

bool t_reason_remove(struct gpi_plan *p, const struct gpi_plan_reason *r, struct t_times *ret)
{
    const bool ripens = r->kind == GPI_REASON_MIN_RESIDENCE || r->kind == GPI_REASON_MAX_WAIT ||
                        (r->kind == GPI_REASON_FAULT && r->device == GPI_NOWHERE) ||
                        (r->kind == GPI_REASON_BUSY && r->other == GPI_NOWHERE);
    uint64_t until = 0;

    if (r->kind == GPI_REASON_NEVER)
        return false;
    if (ripens)
        until = wait(p, r);
    else
        remove_now(p, r);
    drop_actions(p);
    *ret = (struct t_times){ p->now, until > p->now ? until : p->now };
    return true;
}
