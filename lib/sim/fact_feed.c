/* SPDX-License-Identifier: MIT */
/* fact_feed.c - see fact_feed.h. */
#include "sim/fact_feed.h"

#include <string.h>

static struct gpi_plan_task task_of(const struct gpi_fact *f)
{
    struct gpi_plan_task t = f->job;

    t.class = f->class;
    t.request = f->request;
    t.n_requests = f->n_requests;
    return t;
}

static uint32_t adopt(const struct gpi_fact *f, struct gpi_plan *p)
{
    const struct gpi_plan_adoption a = { .class = f->class,
                                         .has = f->request[0],
                                         .device = f->list,
                                         .limit = f->job.limit,
                                         .ends_by = f->at };

    return gpi_plan_adopt(p, f->now, f->task, &a);
}

static uint32_t set_up_plan(const struct gpi_fact *f, struct gpi_plan *p)
{
    const struct gpi_plan_class c = gpi_fact_class(f);

    if (f->kind == GPI_FACT_DEVICE)
        gpi_plan_device_add(p, f->device, &f->has);
    else if (f->kind == GPI_FACT_PLACES)
        gpi_plan_places_add(p, f->set, f->list, f->n_devices);
    else if (f->kind == GPI_FACT_CLASS)
        gpi_plan_class_add(p, f->class, &c);
    else
        return gpi_plan_warm(p, f->class, f->list, f->n_devices);
    return 1;
}

uint32_t gpi_fact_feed_plan(const struct gpi_fact *f, struct gpi_plan *p)
{
    const struct gpi_plan_task t = task_of(f);

    switch ((enum gpi_fact_kind)f->kind) {
    case GPI_FACT_SUBMIT:
        return gpi_plan_submit(p, f->now, f->task, &t);
    case GPI_FACT_WITHDRAW:
        return gpi_plan_withdraw(p, f->now, f->task), 1u;
    case GPI_FACT_END:
        return gpi_plan_end(p, f->now, f->task, f->good, f->run, f->keep_alive), 1u;
    case GPI_FACT_ENDS_BY:
        return gpi_plan_ends_by(p, f->now, f->task, f->at), 1u;
    case GPI_FACT_UP:
        return gpi_plan_up(p, f->now, f->worker), 1u;
    case GPI_FACT_LEAVES:
        return gpi_plan_leaves(p, f->now, f->worker), 1u;
    case GPI_FACT_GONE:
        return gpi_plan_gone(p, f->now, f->worker, f->again), 1u;
    case GPI_FACT_STATE:
        return gpi_plan_device(p, f->now, f->device, (enum gpi_plan_may)f->what), 1u;
    case GPI_FACT_FOREIGN:
        return gpi_plan_foreign(p, f->now, f->device, f->bytes, f->load), 1u;
    case GPI_FACT_ADOPT:
        return adopt(f, p);
    case GPI_FACT_OBSERVED:
    case GPI_FACT_OBSERVED_OF:
        return gpi_plan_observed(p, f->now, f->worker, f->device, f->bytes), 1u;
    case GPI_FACT_CLASS_SET:
        return gpi_plan_class_set(p, f->now, f->class, (enum gpi_plan_class_what)f->what), 1u;
    case GPI_FACT_QUEUE:
        return gpi_plan_queue(p, f->now, f->class, f->queued, f->run), 1u;
    case GPI_FACT_DECIDE:
        return gpi_plan_decide(p, f->now), 1u;
    default:
        return set_up_plan(f, p);
    }
}

static void set_up_slow(const struct gpi_fact *f, struct gpi_slow *m)
{
    const struct gpi_plan_class c = gpi_fact_class(f);

    if (f->kind == GPI_FACT_DEVICE)
        gpi_slow_device_add(m, f->device, &f->has);
    else if (f->kind == GPI_FACT_PLACES)
        gpi_slow_places_add(m, f->set, f->list, f->n_devices);
    else if (f->kind == GPI_FACT_CLASS)
        gpi_slow_class_add(m, f->class, &c);
    else
        gpi_slow_warm(m, f->worker, f->class, f->list, f->n_devices);
}

void gpi_fact_feed_slow(const struct gpi_fact *f, struct gpi_slow *m)
{
    const struct gpi_plan_task t = task_of(f);

    switch ((enum gpi_fact_kind)f->kind) {
    case GPI_FACT_SUBMIT:
        gpi_slow_submit(m, f->now, f->task, &t);
        return;
    case GPI_FACT_WITHDRAW:
        gpi_slow_withdraw(m, f->now, f->task);
        return;
    case GPI_FACT_END:
        gpi_slow_end(m, f->now, f->task, f->good, f->run, f->keep_alive);
        return;
    case GPI_FACT_ENDS_BY:
        gpi_slow_ends_by(m, f->now, f->task, f->at);
        return;
    case GPI_FACT_UP:
        gpi_slow_up(m, f->now, f->worker);
        return;
    case GPI_FACT_LEAVES:
        gpi_slow_leaves(m, f->now, f->worker);
        return;
    case GPI_FACT_GONE:
        gpi_slow_gone(m, f->now, f->worker, f->again);
        return;
    case GPI_FACT_STATE:
        gpi_slow_device(m, f->now, f->device, (enum gpi_plan_may)f->what);
        return;
    case GPI_FACT_FOREIGN:
        gpi_slow_foreign(m, f->now, f->device, f->bytes, f->load);
        return;
    case GPI_FACT_OBSERVED:
        gpi_slow_observed(m, f->now, f->worker, f->device, f->bytes);
        return;
    case GPI_FACT_OBSERVED_OF:
        gpi_slow_observed_of(m, f->now, f->task, f->device, f->bytes);
        return;
    case GPI_FACT_ADOPT:
        gpi_slow_adopt(m, f->now, f->task, &t, f->list, f->at);
        return;
    case GPI_FACT_CLASS_SET:
        gpi_slow_class_set(m, f->now, f->class, (enum gpi_plan_class_what)f->what);
        return;
    case GPI_FACT_QUEUE:
        gpi_slow_queue(m, f->now, f->class, f->queued, f->run);
        return;
    case GPI_FACT_DECIDE:
        gpi_slow_time(m, f->now);
        return;
    default:
        set_up_slow(f, m);
    }
}
