/* SPDX-License-Identifier: MIT */
/*
 * reasons.c - texts that stay as long as the dispatcher, for its events: why a slot has no worker,
 * and the names of classes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/dispatcher.h"
#include "host/slot.h"
#include "host/task.h"

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

const char *gpi_why_no_worker(const gpud_dispatcher *d, uint32_t class)
{
    const struct gpi_reason *why = d->class[class].why;

    if (!why && d->set.pooled)
        return GPI_NO_DEVICE_FITS;
    return why ? why->text : GPI_NO_WORKER;
}

const char *gpi_task_why_no_worker(const gpud_dispatcher *d, const struct gpi_task *t)
{
    return t->result_place == GPI_RESULT_WHY ? (const char *)(uintptr_t)t->result_off
                                             : gpi_why_no_worker(d, t->class);
}

static void note_why(const gpud_dispatcher *d, struct gpi_task *t)
{
    t->result_place = GPI_RESULT_WHY;
    t->result_off = (uintptr_t)gpi_why_no_worker(d, t->class);
    t->size = 0;
}

/* The core ends the tasks of a class that fails before it frees the seat. */
static bool is_noted_later(const gpud_dispatcher *d, uint32_t class)
{
    return !d->class[class].failed && gpi_sched_has_failed(d->core, class);
}

void gpi_task_note_why(const gpud_dispatcher *d, struct gpi_task *t)
{
    if (d->set.pooled && t->result_place == GPI_RESULT_NONE && !is_noted_later(d, t->class))
        note_why(d, t);
}

/* Events still point to earlier texts, so a new one is put before them. */
static const struct gpi_reason *keep(gpud_dispatcher *d, const char *text)
{
    struct gpi_reason *r = d->why_no_worker;

    while (r && strcmp(text, r->text) != 0)
        r = r->before;
    if (r)
        return r;
    r = malloc(sizeof *r);
    if (!r)
        return NULL;
    r->before = d->why_no_worker;
    (void)snprintf(r->text, sizeof r->text, "%s", text);
    d->why_no_worker = r;
    return r;
}

/* Without memory the reason is the last one of all. */
static const struct gpi_reason *keep_reason(gpud_dispatcher *d, const char *text)
{
    const struct gpi_reason *r = keep(d, text);

    return r ? r : d->why_no_worker;
}

const char *gpi_keep_name(gpud_dispatcher *d, const char *name)
{
    const struct gpi_reason *r = keep(d, name);

    return r ? r->text : NULL;
}

static void note_reason(gpud_dispatcher *d, const struct gpi_slot *s)
{
    char text[GPI_FAIL_TEXT_SIZE], all[48] = "every slot was removed";
    uint32_t slots = 0, failed = 0;

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
    snprintf(text, sizeof text, "%s; slot %u: %s", all, s->index, s->last_failure);
    d->class[0].why = keep_reason(d, text);
}

void gpi_slot_lost_hope(gpud_dispatcher *d, const struct gpi_slot *s)
{
    if (!d->set.pooled && gpi_sched_hopeless(d->core) == d->n_slots)
        note_reason(d, s);
}

void gpi_class_failed(gpud_dispatcher *d, const struct gpi_slot *s)
{
    struct gpi_class *c = gpi_slot_class(d, s);
    char text[GPI_FAIL_TEXT_SIZE];

    (void)snprintf(text, sizeof text, "class %s starts no worker any more: %.*s", c->name,
                   (int)sizeof text - 104, s->last_failure);
    c->why = keep_reason(d, text);
    c->failed = true;
    for (uint32_t i = 0; i < d->never_used; i++) {
        struct gpi_task *t = &d->task[i];
        if (t->class == s->class && t->state == GPI_TASK_ENDED &&
            t->outcome == GPUD_OUTCOME_NO_WORKER && t->result_place == GPI_RESULT_NONE)
            note_why(d, t);
    }
}
