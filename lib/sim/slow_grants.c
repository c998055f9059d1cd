/* SPDX-License-Identifier: MIT */
/* slow_grants.c - which runs may be granted, and which grants are revoked. */
#include "sim/slow_state.h"

/* Whether a task waits that may use a part of the worker: one of another class, or one of the first
 * `before` tasks in order. */
static bool is_wanted(const struct gpi_slow *m, const struct hand *h, uint32_t before)
{
    for (uint32_t k = 0; k < m->n_order; k++) {
        const struct job *j = &m->job[m->order[k]];
        if (j->what.class == h->class && k >= before)
            continue;
        for (uint32_t i = 0; i < h->n_devices; i++)
            if (gpi_slow_uses(m, m->order[k], h->device[i]))
                return true;
        if (h->need.cpus && gpi_slow_needs_host(j) && !m->class[j->what.class].paused)
            return true;
    }
    return false;
}

/* Whether its class is paused, or a device of it. */
static bool is_off(const struct gpi_slow *m, const struct hand *h)
{
    bool off = m->class[h->class].paused;

    for (uint32_t i = 0; i < h->n_devices; i++)
        off |= m->place[h->device[i]].may != GPI_PLAN_IN;
    return off;
}

const char *gpi_slow_how_breaks(const struct gpi_slow *m, const struct gpi_plan_action *a,
                                uint32_t i)
{
    const bool granted = a->worker != NONE && m->job[a->task].what.stream &&
                         !is_off(m, &m->hand[a->worker]) && !is_wanted(m, &m->hand[a->worker], i);

    if (granted)
        return a->how == GPI_RUN_GRANT ? NULL : "R1: a stream is not granted, and no task waits";
    return a->how == GPI_RUN_ONE ? NULL : "R1: a run is granted, and another task waits";
}

const char *gpi_slow_revoke_breaks(struct gpi_slow *m, const struct gpi_plan_action *a)
{
    struct job *j = &m->job[a->task];
    const enum grant before = j->grant;

    if (j->state != RUNS || before != GRANTED || a->worker != j->hand)
        return "R1: a run is revoked that is not granted";
    j->grant = REVOKED;
    gpi_slow_find_heads(m);
    return is_off(m, &m->hand[j->hand]) || is_wanted(m, &m->hand[j->hand], 0)
               ? NULL
               : "R1: a run is revoked that no other class waits for";
}

/* The heads are known. */
const char *gpi_slow_grants_break(struct gpi_slow *m)
{
    for (uint32_t t = 0; t < m->set.tasks; t++) {
        const struct job *j = &m->job[t];
        m->culprit = t;
        if (j->state == RUNS && j->grant == GRANTED &&
            (is_off(m, &m->hand[j->hand]) || is_wanted(m, &m->hand[j->hand], 0)))
            return "R1: a run stays granted that another class waits for";
    }
    return NULL;
}
