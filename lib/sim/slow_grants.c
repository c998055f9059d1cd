/* SPDX-License-Identifier: MIT */
/* slow_grants.c - which runs may be granted, and which grants are revoked. */
#include "sim/slow_state.h"

void gpi_slow_revoke(struct job *j)
{
    j->grant = REVOKED;
    j->ahead = true;
}

/* Whether the task number `k` in order waits for a part of the worker. */
static bool wants(const struct gpi_slow *m, uint32_t k, const struct hand *h)
{
    const struct job *j = &m->job[m->order[k]];

    for (uint32_t i = 0; i < h->n_devices; i++)
        if (gpi_slow_uses(m, m->order[k], h->device[i]))
            return true;
    return h->need.cpus && gpi_slow_needs_host(j) && !m->class[j->what.class].paused;
}

/* Whether one of the first `before` tasks in order does. */
static bool is_wanted_before(const struct gpi_slow *m, const struct hand *h, uint32_t before)
{
    for (uint32_t k = 0; k < before; k++)
        if (wants(m, k, h))
            return true;
    return false;
}

/* Whether a task does that is not in its queue, and no load task of its class. */
static bool is_wanted(const struct gpi_slow *m, const struct hand *h)
{
    for (uint32_t k = 0; k < m->n_order; k++) {
        const struct job *j = &m->job[m->order[k]];
        const bool is_other = j->what.class != h->class ||
                              (m->order[k] < m->set.tasks && !j->what.stream);
        if (is_other && wants(m, k, h))
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

/* If only younger tasks wait, the run may be granted, too: it is revoked in the same decision. */
const char *gpi_slow_how_breaks(const struct gpi_slow *m, const struct gpi_plan_action *a,
                                uint32_t i)
{
    const struct hand *h = a->worker == NONE ? NULL : &m->hand[a->worker];
    const bool may =
        h && m->job[a->task].what.stream && !is_off(m, h) && !is_wanted_before(m, h, i);

    if (a->how == GPI_RUN_GRANT && !may)
        return "R1: a run is granted that is no stream, or passes another task";
    if (a->how == GPI_RUN_GRANT)
        return gpi_slow_must_be_due(m, a->worker)
                   ? "R1: a run is granted whose worker is to go for another class"
                   : NULL;
    return may && !is_wanted(m, h) && !gpi_slow_is_due(m, a->worker, false) &&
                   !gpi_slow_run_is_due(m, a->worker)
               ? "R1: a stream is not granted, and no task waits"
               : NULL;
}

const char *gpi_slow_revoke_breaks(struct gpi_slow *m, const struct gpi_plan_action *a)
{
    struct job *j = &m->job[a->task];
    const enum grant before = j->grant;

    if (j->state != RUNS || before != GRANTED || a->worker != j->hand)
        return "R1: a run is revoked that is not granted";
    gpi_slow_revoke(j);
    gpi_slow_find_heads(m);
    return is_off(m, &m->hand[j->hand]) || is_wanted(m, &m->hand[j->hand]) ||
                   gpi_slow_is_due(m, j->hand, true) || gpi_slow_run_is_due(m, j->hand)
               ? NULL
               : "R1: a run is revoked that no other task waits for";
}

/* The heads are known. */
const char *gpi_slow_grants_break(struct gpi_slow *m)
{
    for (uint32_t t = 0; t < m->set.tasks; t++) {
        const struct job *j = &m->job[t];
        m->culprit = t;
        if (j->state == RUNS && j->grant == GRANTED &&
            (is_off(m, &m->hand[j->hand]) || is_wanted(m, &m->hand[j->hand])))
            return "R1: a run stays granted that another task waits for";
    }
    return NULL;
}
