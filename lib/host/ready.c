/* SPDX-License-Identifier: MIT */
/*
 * ready.c - a thread waits until workers have passed setup.
 *
 * A slot is *ready* while it has a worker that takes tasks.  It is *out* while no worker of it can
 * become ready without the host's help: it is FAILED or QUARANTINED, or its device is drained.  All
 * other slots are on their way: STARTING, in BACKOFF, or ending their tasks before a new start.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/failure.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/slot.h"

struct tally {
    uint32_t slots, ready, can;      /* slots; passed setup; have a worker, or may get one */
    const struct gpi_slot *late;     /* the first slot on its way, or NULL */
    const struct gpi_slot *hopeless; /* the first slot out for a reason of its own, or NULL */
    const struct gpi_slot *drained;  /* the first slot out for its device, or NULL */
    /* pooled */
    uint32_t least, lacks;           /* min_workers of all classes; of these, not up */
    const struct gpi_class *failed;  /* the first class with min_workers that has failed, or NULL */
};

static void count(struct tally *t, const gpud_dispatcher *d, const struct gpi_slot *s)
{
    const bool out = gpi_slot_settled(s) || gpi_slot_drains(d, s);

    t->slots += !s->gone;
    t->can += !out;
    t->ready += !out && gpi_slot_serves(d, s);
    if (s->gone)
        return;
    if (!out && !gpi_slot_serves(d, s) && !t->late)
        t->late = s;
    else if (out && gpi_slot_hopeless(s) && !t->hopeless)
        t->hopeless = s;
    else if (out && !gpi_slot_hopeless(s) && !t->drained)
        t->drained = s;
}

/* Pooled: which seats have workers is for the core to decide. */
static void count_classes(struct tally *t, const gpud_dispatcher *d)
{
    t->slots = t->can = d->set.max_workers;
    t->hopeless = t->drained = NULL; /* a seat without a worker is in order */
    for (uint32_t i = 0; i < d->n_classes; i++) {
        const struct gpi_class *c = &d->class[i];
        const uint32_t least =
            c->removing || gpi_sched_is_paused(d->core, i) ? 0 : c->plan.min_workers;
        t->least += least;
        t->lacks += least > c->up ? least - c->up : 0;
        if (least && gpi_sched_has_failed(d->core, i) && !t->failed)
            t->failed = c;
    }
}

static struct tally tally(const gpud_dispatcher *d)
{
    struct tally t = { .slots = 0 };

    for (uint32_t i = 0; i < d->n_slots; i++)
        count(&t, d, &d->slot[i]);
    if (d->set.pooled)
        count_classes(&t, d);
    return t;
}

static uint32_t wanted(const gpud_dispatcher *d, const struct tally *t, uint32_t slots)
{
    if (slots || d->set.pooled)
        return slots ? slots : t->least;
    return t->can ? t->can : t->slots;
}

/* Returns 0, a code that no wait changes, or ETIMEOUT: not yet. */
static int verdict(const gpud_dispatcher *d, const struct tally *t, uint32_t slots)
{
    if (d->close.closing || d->close.ending)
        return GPUD_ECLOSED;
    if (t->can == 0 || t->can < slots || (!slots && (t->failed || t->can < t->least)))
        return GPUD_ENOWORKER;
    if (d->set.pooled && !slots)
        return t->lacks ? GPUD_ETIMEOUT : 0;
    return t->ready >= wanted(d, t, slots) ? 0 : GPUD_ETIMEOUT;
}

static bool decided(const gpud_dispatcher *d, const void *context)
{
    const struct gpi_waiter *w = context;
    const struct tally t = tally(d);

    return verdict(d, &t, w->slots) != GPUD_ETIMEOUT;
}

/* ---- texts ---- */

/* Describes why a slot has no ready worker. */
static void describe(const gpud_dispatcher *d, char *to, size_t size, const struct gpi_slot *s)
{
    const enum gpi_life life = gpi_slot_life(d, s);
    const bool begun = gpi_slot_has_worker(d, s);
    const uint64_t now = gpi_now(), since = begun ? s->started_at : s->since;
    const uint64_t until = gpi_sched_deadline(d->core, s->index);
    char time[GPI_DURATION_SIZE];

    if (life == GPI_LIFE_BACKOFF) {
        (void)gpi_duration_round(time, until > now ? until - now : 0);
        snprintf(to, size, "%s; next start in %s (backoff)", s->last_failure, time);
        return;
    }
    (void)gpi_duration_round(time, now > since ? now - since : 0);
    if (s->state == GPUD_SLOT_BACKOFF)
        snprintf(to, size, "has waited %s for a canary to pass on %.100s (canary_backoff)", time,
                 s->device);
    else if (s->state != GPUD_SLOT_STARTING)
        snprintf(to, size, "its worker is being replaced: %s for %s",
                 gpud_slot_state_name(s->state), time);
    else if (begun)
        snprintf(to, size,
                 s->initialised ? "in setup for %s" : "its program has not called gpud_init for %s",
                 time);
    else if (gpi_sched_owes(d->core, s->index))
        snprintf(to, size, "has waited %s for free memory on %.100s (memory_wait)", time,
                 s->device);
    else if (gpi_sched_has_keeper(d->core, s->index))
        snprintf(to, size, "has waited %s for its turn to start (setup_concurrency)", time);
    else
        snprintf(to, size, "has waited %s for its keeper", time);
}

static int too_few(const gpud_dispatcher *d, const struct tally *t, uint32_t slots,
                   struct gpud_error *e)
{
    const struct gpi_slot *s = t->hopeless ? t->hopeless : t->drained;

    if (t->failed)
        return gpi_fail(e, GPUD_ENOWORKER, 0, "", "%s",
                        gpi_why_no_worker(d, (uint32_t)(t->failed - d->class)));
    if (!s)
        return gpi_fail(e, GPUD_ENOWORKER, 0, "",
                        "%u of %u workers can become ready; %u slots are left", t->can,
                        wanted(d, t, slots), t->slots);
    return gpi_fail(e, GPUD_ENOWORKER, 0, "", "%u of %u workers can become ready; slot %u: %s",
                    t->can, wanted(d, t, slots), s->index,
                    gpi_slot_hopeless(s) ? s->last_failure : "its device is drained");
}

static int too_late(const gpud_dispatcher *d, const struct tally *t, uint32_t slots,
                    struct gpud_error *e)
{
    char why[GPI_FAIL_TEXT_SIZE];

    if (!t->late) /* pooled */
        return gpi_fail(e, GPUD_ETIMEOUT, 0, "", "%u of %u workers ready; no other one starts",
                        slots ? t->ready : t->least - t->lacks, wanted(d, t, slots));
    describe(d, why, sizeof why, t->late);
    return gpi_fail(e, GPUD_ETIMEOUT, 0, "", "%u of %u workers ready; slot %u: %s", t->ready,
                    wanted(d, t, slots), t->late->index, why);
}

/* ---- the wait ---- */

static int check(const gpud_dispatcher *d, uint32_t slots, struct gpud_error *e)
{
    const struct tally t = tally(d);

    if (gpi_drive_reenters(d))
        return gpi_fail(e, GPUD_EREENTER, 0, "", "%s", gpud_error_text(GPUD_EREENTER));
    if (slots > t.slots)
        return gpi_fail(e, GPUD_EINVAL, 0, "slots",
                        "slots is %u, the maximum is %u, the dispatcher's slots", slots, t.slots);
    if (d->close.closing || d->close.ending || atomic_load(&d->close.stop_asked))
        return gpi_fail(e, GPUD_ECLOSED, 0, "", "%s", gpud_error_text(GPUD_ECLOSED));
    return 0;
}

static int wait_for(gpud_dispatcher *d, uint32_t slots, uint64_t wait, struct gpud_error *e)
{
    struct gpi_waiter w = { .slots = slots };
    struct tally t;
    int r = check(d, slots, e);

    if (r)
        return r;
    gpi_waiter_enlist(d, &d->waits.ready_waiters, &w);
    if (!decided(d, &w))
        (void)gpi_drive_together(d, &w.sleeper, decided, &w, gpi_wait_until(wait));
    gpi_waiter_strike_off(d, &d->waits.ready_waiters, &w);
    t = tally(d);
    r = verdict(d, &t, slots);
    if (r == GPUD_ENOWORKER)
        return too_few(d, &t, slots, e);
    if (r == GPUD_ETIMEOUT)
        return too_late(d, &t, slots, e);
    return r ? gpi_fail(e, r, 0, "", "%s", gpud_error_text(r)) : 0;
}

int gpi_ready(gpud_dispatcher *d, uint32_t slots, uint64_t wait, struct gpud_error *e)
{
    int r;

    pthread_mutex_lock(&d->lock);
    r = wait_for(d, slots, wait, e);
    pthread_mutex_unlock(&d->lock);
    return r;
}
