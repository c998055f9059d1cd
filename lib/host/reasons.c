/* SPDX-License-Identifier: MIT */
/*
 * reasons.c - why a slot has no worker: texts that stay, for its events and for tasks without a
 * worker.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/dispatcher.h"
#include "host/slot.h"

void gpi_slot_failure(struct gpi_slot *s, const char *text)
{
    if (text != s->last_failure)
        snprintf(s->last_failure, sizeof s->last_failure, "%.*s", (int)sizeof s->last_failure - 1,
                 text);
}

void gpi_slot_unmade(struct gpi_slot *s, const char *what, int sys_errno, uint32_t call)
{
    s->unmade = (struct gpi_unmade){ .sys_errno = sys_errno, .call = call };
    snprintf(s->unmade.what, sizeof s->unmade.what, "%s", what);
}

const char *gpi_why_no_worker(const gpud_dispatcher *d)
{
    return d->why_no_worker ? d->why_no_worker->text : GPI_NO_WORKER;
}

/* Moves an earlier text to the front.  Returns false if there is none like this. */
static bool find_reason(gpud_dispatcher *d, const char *text)
{
    for (struct gpi_reason **at = &d->why_no_worker, *r; (r = *at) != NULL; at = &r->before) {
        if (strcmp(text, r->text) != 0)
            continue;
        *at = r->before;
        r->before = d->why_no_worker;
        d->why_no_worker = r;
        return true;
    }
    return false;
}

/* Events still point to earlier texts, so a new one is put before them. */
static void note_reason(gpud_dispatcher *d, const struct gpi_slot *s)
{
    struct gpi_reason r = { .before = d->why_no_worker }, *copy;

    uint32_t slots = 0, failed = 0;
    char all[48] = "every slot was removed";

    for (uint32_t i = 0; i < d->n_slots; i++) {
        slots += !d->slot[i].gone;
        failed += !d->slot[i].gone && d->slot[i].state == GPUD_SLOT_FAILED;
    }
    if (slots == 1)
        snprintf(all, sizeof all, "the only slot %s", failed ? "has failed" : "has no worker");
    else if (slots && failed == slots)
        snprintf(all, sizeof all, "all %u slots have failed", slots);
    else if (slots)
        snprintf(all, sizeof all, "none of the %u slots has a worker", slots);
    snprintf(r.text, sizeof r.text, "%s; slot %u: %s", all, s->index, s->last_failure);
    if (find_reason(d, r.text))
        return;
    copy = malloc(sizeof *copy);
    if (!copy)
        return;
    *copy = r;
    d->why_no_worker = copy;
}

void gpi_slot_lost_hope(gpud_dispatcher *d, const struct gpi_slot *s)
{
    if (gpi_sched_hopeless(d->core) == d->n_slots)
        note_reason(d, s);
}
