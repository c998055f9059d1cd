/* SPDX-License-Identifier: MIT */
/*
 * grants.c - grants of external work, as the core orders them, and their events.             [S4]
 *
 * GRANTED and REVOKED are never dropped: of each task one of either kind may wait.  The event is
 * made from the grant's record when the user reads it.  A grant that is over before that is not
 * delivered at all: its entry in the ring is skipped.  The ring has room for two entries of each
 * task, and for as many that are skipped.
 */
#include "host/external.h"

#include <assert.h>
#include <string.h>

#include "host/core.h"
#include "host/device.h"
#include "host/slot.h"
#include "os/memory.h"

int gpi_grants_init(gpud_dispatcher *d)
{
    if (!d->outside.of)
        d->outside.of = gpi_memory_private((uint64_t)d->n_tasks * sizeof *d->outside.of);
    return d->outside.of ? 0 : -1;
}

void gpi_grants_fini(gpud_dispatcher *d)
{
    gpi_memory_unmap(d->outside.of, (uint64_t)d->n_tasks * sizeof *d->outside.of);
    d->outside.of = NULL;
}

/* ---- the events that wait ---- */

static struct gpi_entries *entries_of(gpud_dispatcher *d, uint32_t word)
{
    struct gpi_grant *g = &d->outside.of[word & ~(GPI_RING_GRANTED | GPI_RING_REVOKED)];

    return word & GPI_RING_GRANTED ? &g->granted : &g->revoked;
}

/* Takes an entry out of the ring, the oldest of its kind first.  Returns false if it is skipped. */
static bool leave(gpud_dispatcher *d, uint32_t word)
{
    struct gpi_entries *s = entries_of(d, word);

    if (s->skipped == 0) {
        assert(s->waits);
        s->waits = false;
        return true;
    }
    s->skipped--;
    d->events.n_skipped--;
    return false;
}

/* Removes the entries that are skipped.  Their number is bounded, so that the ring has room. */
static void compact(gpud_dispatcher *d)
{
    struct gpi_delivery *e = &d->events;
    uint32_t to = e->ring_head;

    for (uint32_t at = e->ring_head; at != e->ring_tail; at++) {
        const uint32_t word = e->ring[at & e->ring_mask];
        const bool of_grant = word >= GPI_RING_REVOKED && word < GPI_RING_NOTE;
        if (of_grant && entries_of(d, word)->skipped) {
            (void)leave(d, word);
            continue;
        }
        e->ring[to++ & e->ring_mask] = word;
    }
    e->ring_tail = to;
}

/* An event that waits keeps its place.  A new one goes to the end: the events that have made its
 * devices free are before it. */
static void enter(gpud_dispatcher *d, uint32_t word)
{
    struct gpi_entries *s = entries_of(d, word);

    if (s->waits)
        return;
    if (d->events.n_skipped >= d->n_tasks)
        compact(d);
    s->waits = true;
    gpi_event_push(d, word);
}

static void skip(gpud_dispatcher *d, struct gpi_entries *s)
{
    s->skipped += s->waits;
    d->events.n_skipped += s->waits;
    s->waits = false;
}

void gpi_grant_silence(gpud_dispatcher *d, uint32_t task)
{
    struct gpi_grant *g = &d->outside.of[task];

    skip(d, &g->granted);
    if (g->how != GPI_REVOKE_BACK)
        skip(d, &g->revoked);
}

void gpi_grant_forget(gpud_dispatcher *d, uint32_t task)
{
    skip(d, &d->outside.of[task].granted);
    skip(d, &d->outside.of[task].revoked);
}

/* ---- a class ---- */

uint32_t gpi_grants_of(const gpud_dispatcher *d, uint32_t class)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->outside.n; i++)
        n += d->task[d->outside.task[i]].class == class &&
             !gpi_sched_is_held(d->core, d->outside.task[i]);
    return n;
}

/* ---- a grant begins, and ends ---- */

static void begin(gpud_dispatcher *d, uint32_t task, uint32_t number)
{
    struct gpi_grant *g = &d->outside.of[task];

    g->number = number;
    g->n_devices = g->pid = g->session = 0;
    g->since = d->now;
    g->place = d->outside.n;
    d->outside.task[d->outside.n++] = task;
}

void gpi_grant_over(gpud_dispatcher *d, uint32_t task)
{
    struct gpi_grant *g = &d->outside.of[task];
    const uint32_t last = d->outside.n ? d->outside.task[d->outside.n - 1] : 0;

    if (g->number == 0)
        return;
    g->number = 0;
    d->outside.task[g->place] = last;
    d->outside.of[last].place = g->place;
    d->outside.n--;
}

void gpi_grant_begin(gpud_dispatcher *d, const struct gpi_sched_action *a)
{
    begin(d, a->task, a->incarnation);
    d->outside.of[a->task].variant = a->cell;
    d->task[a->task].sent_at = d->now;
    enter(d, a->task | GPI_RING_GRANTED);
    gpi_devices_rouse(d);
}

void gpi_grant_on(gpud_dispatcher *d, const struct gpi_sched_action *a)
{
    struct gpi_grant *g = &d->outside.of[a->task];

    if (g->number && g->n_devices < GPI_DEVICES)
        g->device[g->n_devices++] = (uint16_t)a->device;
}

void gpi_grant_take_over(gpud_dispatcher *d, uint32_t task, const struct gpi_adopted *a)
{
    struct gpi_grant *g = &d->outside.of[task];

    begin(d, task, a->core.grant);
    g->n_devices = a->core.has.devices;
    memcpy(g->device, a->device, sizeof g->device);
    g->since = a->core.started_at;
    g->pid = a->pid;
    g->session = a->session;
    d->task[task].sent_at = d->task[task].started_at = a->core.started_at;
    d->task[task].queued_at = gpi_time_min(d->task[task].queued_at, a->core.started_at);
    gpi_devices_rouse(d);
}

/* The task may have ended since the core ordered this. */
void gpi_grant_revoke(gpud_dispatcher *d, const struct gpi_sched_action *a)
{
    struct gpi_grant *g = &d->outside.of[a->task];
    const bool unread = g->granted.waits;

    if (g->number != a->incarnation || gpi_sched_is_held(d->core, a->task))
        return;
    if (unread && a->how == GPI_REVOKE_BACK) {
        skip(d, &g->granted); /* a REVOKED of the grant before may wait still */
        gpi_grant_over(d, a->task);
        return;
    }
    g->revoked_number = g->number;
    g->how = a->how;
    g->why = a->what + 1; /* GPUD_REVOKED_NONE is 0 */
    g->by = a->at;
    gpi_set_take(&g->revoked_on, g->device, g->n_devices);
    if (a->how == GPI_REVOKE_BACK)
        gpi_grant_over(d, a->task);
    enter(d, a->task | GPI_RING_REVOKED);
}

/* ---- reading ---- */

static void fill_granted(gpud_dispatcher *d, const struct gpi_grant *g, const struct gpi_task *t,
                         struct gpi_note *n)
{
    const uint32_t task = gpi_task_index(d, t);
    const struct gpi_request has = gpi_sched_request(d->core, task, g->variant);

    n->kind = GPUD_EVENT_GRANTED;
    n->attempt = g->number;
    gpi_set_take(&n->on, g->device, g->n_devices);
    n->variant = g->variant;
    n->share = has.share;
    n->cpus = has.cpus;
    n->memory = has.memory == GPI_MEMORY_ALL ? 0 : has.memory;
    n->host_memory = has.host_memory;
    n->attempts = gpi_sched_attempts(d->core, task);
    n->limit = t->limit;
}

static void fill_revoked(const struct gpi_grant *g, struct gpi_note *n)
{
    n->kind = GPUD_EVENT_REVOKED;
    n->attempt = g->revoked_number;
    n->on = g->revoked_on;
    n->revoked = g->why;
    n->revoke = g->how;
    n->revoke_by = g->by;
}

bool gpi_grant_read(gpud_dispatcher *d, uint32_t entry, struct gpi_note *ret)
{
    const uint32_t task = entry & ~(GPI_RING_GRANTED | GPI_RING_REVOKED);
    const struct gpi_task *t = &d->task[task];
    const struct gpi_grant *g = &d->outside.of[task];

    if (!leave(d, entry))
        return false;
    gpi_note_init(ret);
    gpi_note_name_task(d, t, ret);
    ret->class = t->class;
    if (entry & GPI_RING_GRANTED)
        fill_granted(d, g, t, ret);
    else
        fill_revoked(g, ret);
    return true;
}

/* The numbers of both lists agree. */
_Static_assert((int)GPUD_REVOKE_SOFT == GPI_REVOKE_SOFT &&
                   (int)GPUD_REVOKE_HARD == GPI_REVOKE_HARD &&
                   (int)GPUD_REVOKE_BACK == GPI_REVOKE_BACK,
               "what an event REVOKED requests");
_Static_assert((int)GPUD_REVOKED_LIMIT == GPI_REVOKE_LIMIT + 1 &&
                   (int)GPUD_REVOKED_START == GPI_REVOKE_START + 1,
               "the reasons of an event REVOKED");
