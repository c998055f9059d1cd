/* SPDX-License-Identifier: MIT */
/*
 * canary.c - orders and results of canaries: a context, a small kernel, its result compared.
 *
 * A worker passes one *first*, before its setup, after a kill on its device and wherever the device
 * is suspect.  If a device is out of use and its next try is due, one of its slots that can have a
 * worker gets one for the canary *only*.  N canaries in a row bring the device back.  The slot is
 * not charged with a canary that fails: the device is.
 */
#include <stdio.h>
#include <string.h>

#include "host/device.h"
#include "host/dispatcher.h"
#include "host/slot.h"

/* ---- before ---- */

/* Writes the orders that the script of a fake device has for its worker. */
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

    p->canary = s->canary;
    p->fake_fails = 0;
    p->fake_boot = 0;
    d->stats.count.canaries += p->canary != GPI_CANARY_NO;
    for (uint32_t i = 0; gpi_slot_is_read(d, s) && i < s->n_devices; i++)
        order_fake(d, &d->dev.row[s->devices[i]], p);
}

/* ---- after ---- */

static void judge_all(gpud_dispatcher *d, struct gpi_slot *s, bool passed, const char *text)
{
    s->canary = GPI_CANARY_NO;
    d->stats.count.canary_failures += !passed;
    for (uint32_t i = 0; i < s->n_devices; i++)
        gpi_judge_canary(d, s->devices[i], passed, text);
}

void gpi_canary_judge(gpud_dispatcher *d, struct gpi_slot *s, bool passed)
{
    const bool late = s->last.why == GPI_WHY_SETUP;
    const bool failed = atomic_load(&s->ch.page->canary_done) == GPI_CANARY_FAILED;
    char text[GPI_FAIL_TEXT_SIZE] = "", how[GPI_HOW_SIZE], limit[64];
    size_t n;

    if (passed) {
        judge_all(d, s, true, "");
        return;
    }
    gpi_page_text(text, s->ch.page->canary_text, sizeof text);
    if (late)
        snprintf(how, sizeof how, "did not end within %s",
                 gpi_start_limit_text(d, s, limit, sizeof limit));
    else
        gpi_describe_exit(d, s, how, sizeof how, s->last.kind, s->last.status);
    n = strlen(how);
    (void)snprintf(how + n, sizeof how - n, "%s",
                   late ? "" : gpi_exit_hint(s, s->last.kind, s->last.status));
    judge_all(d, s, false, failed && *text ? text : how);
}
