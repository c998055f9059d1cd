/* SPDX-License-Identifier: MIT */
/*
 * notes.c - the ring of events, oldest first: outcomes (by task) and notes (everything else).
 *
 * An outcome always has room: the ring is as long as there can be live tasks and notes.  Log and
 * progress notes are dropped, and counted, before notes that must arrive.                [C1] [C18]
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/device.h"
#include "host/dispatcher.h"
#include "host/event.h"
#include "host/slot.h"
#include "os/memory.h"

#define NOTES 512u        /* log and progress notes that may wait */
#define NOTES_PER_SLOT 8u /* reserved for notes that must not be dropped */
#define ROOMS (GPI_EVENTS_MAX * sizeof(struct gpi_names_room)) /* bytes */

/* A prefetch reads entries ahead of time, unused ones, too: so calloc initialises them. */
static int lengthen_ring(gpud_dispatcher *d)
{
    const uint32_t of_task = d->set.pooled ? 3 : 1; /* of external work: grants.c */
    uint32_t size = 1, n = gpi_ring_length(d), *ring;

    while (size < of_task * d->n_tasks + d->events.n_notes)
        size *= 2;
    if (d->events.ring && size == d->events.ring_mask + 1)
        return 0;
    ring = calloc(size, sizeof *ring);
    if (!ring)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): n is 0 without one */
        ring[i] = d->events.ring[(d->events.ring_head + i) & d->events.ring_mask];
    free(d->events.ring);
    d->events.ring = ring;
    d->events.ring_mask = size - 1;
    d->events.ring_head = 0;
    d->events.ring_tail = n;
    return 0;
}

/* Adds `more` notes, and reserves `reserved` more for events that must not be dropped. */
static int add_notes(gpud_dispatcher *d, uint32_t more, uint32_t reserved)
{
    struct gpi_note *note =
        realloc(d->events.note, sizeof *d->events.note * (d->events.n_notes + more));

    if (!note)
        return -1;
    d->events.note = note;
    d->events.n_notes += more;
    if (lengthen_ring(d)) {
        d->events.n_notes -= more;
        return -1;
    }
    for (uint32_t i = d->events.n_notes; i > d->events.n_notes - more; i--) {
        note[i - 1].output = NULL;
        note[i - 1].class = GPI_NONE;
        note[i - 1].next_free = d->events.free_note;
        d->events.free_note = i - 1;
    }
    d->events.notes_free += more;
    d->events.notes_reserved += reserved;
    return 0;
}

int gpi_events_init(gpud_dispatcher *d)
{
    d->events.free_note = GPI_NONE;
    if (d->set.pooled)
        d->events.lent_names = gpi_memory_private(ROOMS);
    return d->events.lent_names || !d->set.pooled ? add_notes(d, NOTES, 0) : -1;
}

int gpi_events_grow(gpud_dispatcher *d, uint32_t slots)
{
    return slots ? add_notes(d, NOTES_PER_SLOT * slots, NOTES_PER_SLOT * slots) : 0;
}

void gpi_events_fini(gpud_dispatcher *d)
{
    while (d->events.note && d->events.ring && d->events.ring_head != d->events.ring_tail) {
        uint32_t entry = d->events.ring[d->events.ring_head++ & d->events.ring_mask];
        if (entry & GPI_RING_NOTE)
            free(d->events.note[entry & ~GPI_RING_NOTE].output);
    }
    for (uint32_t i = 0; i < d->events.n_lent; i++) {
        if (!(d->events.lent[i] & GPI_RING_NOTE))
            continue; /* tasks.c frees the texts and results of tasks */
        free(d->events.lent_note[i].words);
        free(d->events.lent_note[i].output);
    }
    free(d->events.ring);
    free(d->events.note);
    gpi_memory_unmap(d->events.lent_names, ROOMS);
}

void gpi_note_init(struct gpi_note *n)
{
    memset(n, 0, sizeof *n);
    n->slot = GPUD_NO_SLOT;
    n->device = GPI_NO_DEVICE;
    n->class = GPI_NONE;
}

struct gpi_note *gpi_note_new(gpud_dispatcher *d, uint32_t kind, bool droppable)
{
    struct gpi_note *n;

    if (d->events.notes_free <= (droppable ? d->events.notes_reserved : 0)) {
        d->stats.count.events_dropped++;
        return NULL;
    }
    n = &d->events.note[d->events.free_note];
    d->events.free_note = n->next_free;
    d->events.notes_free--;
    gpi_note_init(n);
    n->kind = kind;
    return n;
}

void gpi_note_name_task(const gpud_dispatcher *d, const struct gpi_task *t, struct gpi_note *n)
{
    n->task_id = t->id;
    n->tag = t->tag;
    if (t->has_label)
        memcpy(n->label, d->arena.input + t->data_off - GPI_LABEL_SIZE, GPI_LABEL_SIZE);
}

struct gpi_note *gpi_note_of_task(gpud_dispatcher *d, const struct gpi_slot *s,
                                  const struct gpi_task *t, uint32_t kind)
{
    struct gpi_note *n = gpi_note_new(d, kind, true);

    if (!n)
        return NULL;
    n->slot = s->index;
    n->incarnation = s->incarnation;
    gpi_note_name_task(d, t, n);
    return n;
}

void gpi_note_push(gpud_dispatcher *d, struct gpi_note *n)
{
    if (n->slot < d->n_slots) {
        const struct gpi_slot *s = &d->slot[n->slot];
        gpi_set_take(&n->on, s->devices, s->n_devices);
        n->class = s->class;
    }
    gpi_event_push(d, (uint32_t)(n - d->events.note) | GPI_RING_NOTE);
}

void gpi_class_tell(gpud_dispatcher *d, uint32_t class, uint32_t change, const char *text)
{
    struct gpi_note *n = gpi_note_new(d, GPUD_EVENT_CLASS, true);

    if (!n)
        return;
    n->class = class;
    n->change = change;
    (void)snprintf(n->text, sizeof n->text, "%s", text);
    gpi_note_push(d, n);
}

void gpi_promise_tell(gpud_dispatcher *d, const struct gpi_task *t, uint32_t how, uint64_t at)
{
    struct gpi_note *n =
        t->state == GPI_TASK_QUEUED ? gpi_note_new(d, GPUD_EVENT_PROMISE, true) : NULL;

    if (!n)
        return;
    gpi_note_name_task(d, t, n);
    n->class = t->class;
    n->promise = how + 1; /* GPUD_PROMISE_NONE is 0 */
    n->starts_by = at == GPI_NEVER ? 0 : at;
    gpi_note_push(d, n);
}

void gpi_notes_name(const gpud_dispatcher *d, bool *ret_class)
{
    for (uint32_t i = 0; i < d->events.n_notes; i++)
        if (d->events.note[i].class != GPI_NONE)
            ret_class[d->events.note[i].class] = true;
    for (uint32_t i = 0; i < d->events.n_lent; i++)
        if (d->events.lent_note[i].class < d->n_classes)
            ret_class[d->events.lent_note[i].class] = true;
}

void gpi_note_free(gpud_dispatcher *d, struct gpi_note *n)
{
    n->class = GPI_NONE;
    n->output = NULL;
    n->next_free = d->events.free_note;
    d->events.free_note = (uint32_t)(n - d->events.note);
    d->events.notes_free++;
}

void gpi_log(gpud_dispatcher *d, uint32_t level, uint32_t slot, const char *format, ...)
{
    struct gpi_note *n;
    va_list args;

    if (level > d->set.log_level)
        return;
    n = gpi_note_new(d, GPUD_EVENT_LOG, true);
    if (!n)
        return;
    n->level = level;
    n->slot = slot;
    n->incarnation = slot < d->n_slots ? d->slot[slot].incarnation : 0;
    va_start(args, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is the line before */
    vsnprintf(n->text, sizeof n->text, format, args);
    va_end(args);
    gpi_note_push(d, n);
}

void gpi_log_line(gpud_dispatcher *d, const struct gpi_slot *s, uint32_t stream, uint64_t task_id,
                  const char *text, uint32_t size)
{
    struct gpi_note *n;

    if (GPUD_LEVEL_INFO > d->set.log_level)
        return;
    n = gpi_note_new(d, GPUD_EVENT_LOG, true);
    if (!n)
        return;
    n->output = malloc(size + 1);
    if (!n->output) {
        gpi_note_free(d, n);
        d->stats.count.events_dropped++;
        return;
    }
    for (uint32_t i = 0; i < size; i++)
        n->output[i] = text[i] ? text[i] : ' ';
    n->output[size] = '\0';
    n->level = GPUD_LEVEL_INFO;
    n->slot = s->index;
    n->incarnation = s->incarnation;
    n->task_id = task_id;
    n->stream = stream;
    gpi_note_push(d, n);
}
