/* SPDX-License-Identifier: MIT */
/*
 * canary.c - a context, a small kernel, its result compared: who has to pass one, and what came of it.
 *
 * A worker passes one *first*, before its setup, after a kill on its device and wherever the device is
 * suspect.  A device that is out of use gets a worker for the canary *only*, when its try is due: in
 * whichever of its slots can have one; N in a row bring it back.  A canary that fails is the device's
 * matter: the slot is not charged with it.
 */
#include <stdio.h>
#include <string.h>

#include "host/device.h"
#include "host/dispatcher.h"
#include "host/shadow.h"
#include "host/slot.h"

/* ---- before ---- */

static bool is_due(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (d->dev.row[s->devices[i]].health.canary_due)
            return true;
    return false;
}

/* What the script of a fake says to its worker. */
static void order_fake(gpud_dispatcher *d, struct gpi_known_device *k, struct gpi_page *p)
{
    struct gpi_gauge *g = d->dev.gauge[k->gauge];
    struct gpi_script_state now;
    uint64_t t = d->now > g->zero ? d->now - g->zero : 0;

    if (!g->parsed || k->place >= gpi_script_rows(g->parsed))
        return;
    (void)gpi_script_look(g->parsed, g->fired, t);
    gpi_script_state(g->parsed, g->fired, k->place, t, &now);
    if (now.boot > p->fake_boot)
        p->fake_boot = now.boot;
    if (p->canary != GPI_CANARY_NO && gpi_script_canary_fails(&k->fake, &now))
        p->fake_fails = 1;
}

void gpi_canary_order(gpud_dispatcher *d, struct gpi_slot *s)
{
    struct gpi_page *p = s->ch.page;

    p->canary = !s->watched ? GPI_CANARY_NO : s->trying ? GPI_CANARY_ONLY : is_due(d, s) ? GPI_CANARY_FIRST : GPI_CANARY_NO;
    p->fake_fails = 0;
    p->fake_boot = 0;
    s->canary = p->canary;
    d->count.canaries += p->canary != GPI_CANARY_NO;
    for (uint32_t i = 0; s->watched && i < s->n_devices; i++)
        order_fake(d, &d->dev.row[s->devices[i]], p);
}

/* ---- after ---- */

static void judge_all(gpud_dispatcher *d, struct gpi_slot *s, bool passed, const char *text)
{
    s->canary = GPI_CANARY_NO;
    d->count.canary_failures += !passed;
    for (uint32_t i = 0; i < s->n_devices; i++)
        gpi_judge_canary(d, s->devices[i], passed, text);
}

void gpi_canary_over(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (!s->trying)
        return;
    s->trying = false;
    for (uint32_t i = 0; i < s->n_devices; i++)
        d->dev.row[s->devices[i]].trying = false;
}

void gpi_canary_passed(gpud_dispatcher *d, struct gpi_slot *s)
{
    if (s->canary != GPI_CANARY_NO && atomic_load(&s->ch.page->canary_done) == GPI_CANARY_PASSED)
        judge_all(d, s, true, "");
}

bool gpi_canary_died(gpud_dispatcher *d, struct gpi_slot *s, bool late, uint32_t kind, int32_t status)
{
    const bool only = s->canary == GPI_CANARY_ONLY;
    uint32_t done = atomic_load(&s->ch.page->canary_done);
    char text[GPI_FAIL_TEXT_SIZE], how[GPI_HOW_SIZE], limit[64];
    size_t n;

    gpi_canary_over(d, s);
    if (s->canary == GPI_CANARY_NO || (!s->answered && done == GPI_CANARY_NOT_YET))
        return false; /* it has not come that far: its program's matter */
    if (atomic_load(&s->ch.page->miscounted))
        return false; /* nothing was tried on its device: a failed setup, for its number */
    if (done == GPI_CANARY_PASSED) {
        judge_all(d, s, true, "");
        return only;
    }
    gpi_page_text(text, s->ch.page->canary_text, sizeof text);
    if (late)
        snprintf(how, sizeof how, "did not end within %s",
                 gpi_start_limit_text(d, s, limit, sizeof limit));
    else
        gpi_describe_exit(d, s, how, sizeof how, kind, status);
    n = strlen(how);
    (void)snprintf(how + n, sizeof how - n, "%s", late ? "" : gpi_exit_hint(s, kind, status));
    judge_all(d, s, false, done == GPI_CANARY_FAILED && *text ? text : how);
    return true;
}

/* ---- a try ---- */

/* Whether this slot can have a worker for the canary: all its devices are in use, or due, too. */
static bool can_try(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    if (!s->parked || s->survivor || s->removed)
        return false;
    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct gpi_known_device *k = &d->dev.row[s->devices[i]];
        if (k->draining || k->removing || k->trying || (!gpi_health_starts(&k->health) && k->health.try_at > d->now))
            return false;
    }
    return true;
}

void gpi_canary_try(gpud_dispatcher *d, uint32_t device)
{
    if (gpi_health_starts(&d->dev.row[device].health) || d->dev.row[device].trying || (d->closing && !d->unended))
        return;
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (!gpi_slot_has(s, device) || !can_try(d, s))
            continue;
        for (uint32_t k = 0; k < s->n_devices; k++)
            gpi_shadow_device(d, s->devices[k], GPI_EV_TRY, 0);
        s->trying = true;
        for (uint32_t k = 0; k < s->n_devices; k++)
            d->dev.row[s->devices[k]].trying = true;
        gpi_slot_useful(d, s);
        gpi_slot_start(d, s);
        return;
    }
}
