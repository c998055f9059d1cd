/* SPDX-License-Identifier: MIT */
/* trace_device.c - the devices of a trace: their runs and workers, and the state that follows. */
#include "sim/trace_run.h"

static void touch(struct gpi_trace_run *r, uint32_t device)
{
    r->changed += !r->spot[device].changed;
    r->spot[device].changed = true;
}

void gpi_spot_run(struct gpi_trace_run *r, uint32_t device, bool begins)
{
    struct gpi_spot *s = &r->spot[device];

    if (begins && s->runs++ == 0)
        s->busy_since = r->now;
    if (!begins && --s->runs == 0)
        s->busy += r->now - s->busy_since;
    touch(r, device);
}

void gpi_spot_hand(struct gpi_trace_run *r, const struct gpi_hand *h, enum gpi_hand_state state)
{
    for (uint32_t i = 0; i < h->n_devices; i++) {
        struct gpi_spot *s = &r->spot[h->device[i]];

        if (h->state != GPI_HAND_NONE)
            s->hands[h->state]--;
        if (state != GPI_HAND_NONE)
            s->hands[state]++;
        touch(r, h->device[i]);
    }
}

/* ---- the loss of a device ---- */

static bool is_on(const uint16_t *device, uint32_t n, uint32_t which)
{
    for (uint32_t i = 0; i < n; i++)
        if (device[i] == which)
            return true;
    return false;
}

static void lose(struct gpi_trace_run *r, uint32_t device)
{
    for (uint32_t i = 0; i < r->trace->n_tasks && r->spot[device].runs; i++)
        if (r->job[i].state == GPI_JOB_RUNS && is_on(r->job[i].device, r->job[i].n_devices, device))
            gpi_job_crash(r, i);
    for (uint32_t i = 0; i < r->n_hands; i++)
        if (r->hand[i].state != GPI_HAND_NONE &&
            is_on(r->hand[i].device, r->hand[i].n_devices, device))
            gpi_hand_lose(r, i);
}

void gpi_spot_set(struct gpi_trace_run *r, uint32_t device, enum gpi_plan_may may)
{
    struct gpi_spot *s = &r->spot[device];

    if (s->may == GPI_PLAN_GONE)
        return;
    s->may = may;
    touch(r, device);
    gpi_plan_device(r->plan, r->now, device, may);
    gpi_trace_act(r);
    if (may == GPI_PLAN_OUT || may == GPI_PLAN_GONE)
        lose(r, device);
}

/* ---- states ---- */

/* Returns the class of the first worker there in this state. */
static uint32_t class_in(const struct gpi_trace_run *r, uint32_t device, enum gpi_hand_state state)
{
    for (uint32_t i = 0; i < r->n_hands; i++)
        if (r->hand[i].state == state && is_on(r->hand[i].device, r->hand[i].n_devices, device))
            return r->hand[i].class;
    return GPI_TRACE_NONE;
}

/* The class is that of a worker in the state `ret_hand`. */
static const char *state_of(const struct gpi_spot *s, enum gpi_hand_state *ret_hand)
{
    const bool drained = s->may == GPI_PLAN_DRAINED;

    *ret_hand = GPI_HAND_NONE;
    if (s->may == GPI_PLAN_OUT || s->may == GPI_PLAN_GONE)
        return s->may == GPI_PLAN_OUT ? "offline" : "gone";
    if (s->hands[GPI_HAND_UNLOADS]) {
        *ret_hand = GPI_HAND_UNLOADS;
        return "unloading";
    }
    if (s->hands[GPI_HAND_DRAINS] || (drained && s->runs)) {
        *ret_hand = s->hands[GPI_HAND_DRAINS] ? GPI_HAND_DRAINS : GPI_HAND_NONE;
        return "draining";
    }
    if (drained || s->may == GPI_PLAN_PAUSED)
        return drained ? "drained" : "paused";
    if (s->hands[GPI_HAND_BOOTS]) {
        *ret_hand = GPI_HAND_BOOTS;
        return "booting";
    }
    if (s->runs)
        return "busy";
    *ret_hand = s->hands[GPI_HAND_UP] ? GPI_HAND_UP : GPI_HAND_NONE;
    return s->hands[GPI_HAND_UP] ? "ready" : "idle";
}

static void tell(struct gpi_trace_run *r, uint32_t device, bool silent)
{
    struct gpi_spot *s = &r->spot[device];
    enum gpi_hand_state hand;
    const char *state = state_of(s, &hand);
    const uint32_t class = hand ? class_in(r, device, hand) : GPI_TRACE_NONE;
    const bool same = state == s->told && class == s->told_class;

    s->changed = false;
    s->told = state;
    s->told_class = class;
    if (!same && !silent)
        gpi_trace_write_state(r, device);
}

void gpi_spot_tell(struct gpi_trace_run *r, bool silent)
{
    for (uint32_t i = 0; i < r->trace->n_devices && r->changed; i++)
        if (r->spot[i].changed) {
            r->changed--;
            tell(r, i, silent);
        }
}
