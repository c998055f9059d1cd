/* SPDX-License-Identifier: MIT */
/* trace_worker.c - the workers of a trace: they boot, serve, unload, or die. */
#include "sim/trace_run.h"

/* As the options `failures_in_a_row` and `backoff` of a dispatcher. */
#define FAILURES_IN_A_ROW 3u
#define BACKOFF GPI_S

static void set_state(struct gpi_trace_run *r, uint32_t worker, enum gpi_hand_state state)
{
    gpi_spot_hand(r, &r->hand[worker], state);
    r->hand[worker].state = state;
}

static void use(struct gpi_trace_run *r, uint32_t worker, const struct gpi_hand *h,
                enum gpi_hand_state state)
{
    r->hand[worker] = *h;
    if (worker >= r->n_hands)
        r->n_hands = worker + 1;
    set_state(r, worker, state);
}

void gpi_hand_warm(struct gpi_trace_run *r, const struct gpi_trace_warm *w)
{
    struct gpi_hand h = { .class = w->class, .n_devices = w->n };

    for (uint32_t i = 0; i < w->n; i++)
        h.device[i] = w->device[i];
    use(r, gpi_plan_warm(r->plan, w->class, w->device, w->n), &h, GPI_HAND_UP);
}

void gpi_hand_begin(struct gpi_trace_run *r, const struct gpi_plan_action *a)
{
    struct gpi_hand h = { .class = a->class, .n_devices = a->n_devices };

    for (uint32_t i = 0; i < a->n_devices; i++)
        h.device[i] = a->device[i];
    use(r, a->worker, &h, GPI_HAND_BOOTS);
    gpi_heap_set(&r->agenda, gpi_hand_item(r, a->worker),
                 r->now + r->trace->class[a->class].set.boot);
}

void gpi_hand_drain(struct gpi_trace_run *r, uint32_t worker)
{
    set_state(r, worker, GPI_HAND_DRAINS);
}

void gpi_hand_unload(struct gpi_trace_run *r, uint32_t worker)
{
    set_state(r, worker, GPI_HAND_UNLOADS);
    gpi_heap_set(&r->agenda, gpi_hand_item(r, worker),
                 r->now + r->trace->class[r->hand[worker].class].set.unload);
}

/* Its class boots another one at `again` at the earliest. */
static void gone(struct gpi_trace_run *r, uint32_t worker, uint64_t again)
{
    gpi_heap_remove(&r->agenda, gpi_hand_item(r, worker));
    set_state(r, worker, GPI_HAND_NONE);
    gpi_plan_gone(r->plan, r->now, worker, again);
    gpi_trace_act(r);
}

void gpi_hand_lose(struct gpi_trace_run *r, uint32_t worker)
{
    if (r->hand[worker].state != GPI_HAND_NONE)
        gone(r, worker, r->now);
}

/* The class gets no worker any more: its tasks end. */
static void fail_class(struct gpi_trace_run *r, uint32_t class)
{
    r->hired[class].failed = true;
    for (uint32_t i = 0; i < r->trace->n_tasks; i++)
        if (r->job[i].state == GPI_JOB_WAITS && gpi_line_of(r, i)->class == class) {
            gpi_job_give_up(r, i);
            gpi_trace_act(r);
        }
}

static void boot_failed(struct gpi_trace_run *r, uint32_t worker)
{
    const uint32_t class = r->hand[worker].class;
    struct gpi_hired *c = &r->hired[class];

    c->failures++;
    gone(r, worker, r->now + gpi_time_doubled(BACKOFF, c->failures - 1, GPI_NEVER));
    if (c->failures == FAILURES_IN_A_ROW)
        fail_class(r, class);
}

void gpi_hand_due(struct gpi_trace_run *r, uint32_t worker)
{
    const struct gpi_hand *h = &r->hand[worker];
    struct gpi_hired *c = &r->hired[h->class];

    if (h->state == GPI_HAND_UNLOADS) {
        gone(r, worker, r->now);
    } else if (c->boots++ < r->trace->class[h->class].boots_fail) {
        boot_failed(r, worker);
    } else {
        c->failures = 0;
        set_state(r, worker, GPI_HAND_UP);
        gpi_plan_up(r->plan, r->now, worker);
        gpi_trace_act(r);
    }
}
