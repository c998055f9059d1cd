/* SPDX-License-Identifier: MIT */
/*
 * kept_events.c - events that the host keeps: beyond the next poll, and beyond the dispatcher.
 *
 * The data of a kept event lie in a block of its own (label, device, result of up to 4 KiB), and in
 * blocks of texts that the library had made anyway.  A larger result stays where the worker wrote
 * it: in the slot's arena, whose granules stay held.  So the task's record is free, and only a
 * large result binds memory of the dispatcher.
 *
 * Kept events share a record, the estate, which outlives the dispatcher.  Then the estate owns the
 * arenas that still hold kept results, and the last release unmaps them.  A release locks the
 * estate first and the dispatcher second; no code locks them in the other order.        [C18] [C19]
 */
#include <stdlib.h>
#include <string.h>

#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"
#include "os/memory.h"

struct arena {
    unsigned char *base;
    uint64_t kept; /* bytes; 0 = not the estate's, or not any more */
};

struct gpi_estate {
    pthread_mutex_t lock;
    gpud_dispatcher *d;      /* NULL once it is freed */
    _Atomic uint32_t *alive; /* reads 0 in a forked child, also after gpud_fini */
    _Atomic uint32_t owners; /* number of kept events, plus the dispatcher */
    uint64_t arena_size;
    struct arena arena[]; /* by slot, once the dispatcher is freed */
};

struct gpi_kept {
    struct gpi_estate *estate;
    struct gpi_detail *words; /* text, and output of an outcome */
    char *more;               /* output of a note, or its line; the history of an outcome */
    void *heap;               /* the result of external work */
    uint64_t off, size;       /* place in the slot's result arena; size 0 = not there */
    uint32_t slot;
    char label[GPI_LABEL_SIZE];
    char device[GPI_DEVICE_SIZE];
    char device_uuid[GPI_DEVICE_UUID_SIZE];
    char class_name[GPI_NAME_SIZE];
    _Alignas(16) unsigned char result[];
};

static uint64_t held_size(const struct gpi_kept *k)
{
    return (k->size + GPI_GRANULE - 1) / GPI_GRANULE * GPI_GRANULE;
}

/* ---- the estate ---- */

static struct gpi_estate *found(gpud_dispatcher *d)
{
    struct gpi_estate *es = calloc(1, sizeof *es + GPI_SLOTS_MAX * sizeof es->arena[0]);

    if (!es)
        return NULL;
    es->alive = gpi_memory_wipeonfork();
    if (!es->alive || pthread_mutex_init(&es->lock, NULL)) {
        gpi_memory_unmap((void *)es->alive, sizeof *es->alive);
        free(es);
        return NULL;
    }
    atomic_store(es->alive, 1);
    atomic_store(&es->owners, 1);
    es->d = d;
    es->arena_size = d->set.result_size;
    return es;
}

static void leave(struct gpi_estate *es)
{
    if (atomic_fetch_sub(&es->owners, 1) > 1)
        return;
    if (*es->alive) /* in a forked child this would wait for a thread that holds it */
        pthread_mutex_destroy(&es->lock);
    gpi_memory_unmap((void *)es->alive, sizeof *es->alive);
    free(es);
}

uint32_t gpi_keep_count(const gpud_dispatcher *d)
{
    return d->estate ? atomic_load(&d->estate->owners) - 1 : 0;
}

/* ---- keeping ---- */

static int make(gpud_dispatcher *d, uint64_t room, struct gpi_kept **ret_k)
{
    struct gpi_kept *k;

    if (!d->estate)
        d->estate = found(d);
    if (!d->estate)
        return GPUD_ENOMEM;
    if (gpi_keep_count(d) >= d->set.queue_size)
        return GPUD_EFULL;
    k = malloc(sizeof *k + room);
    if (!k)
        return GPUD_ENOMEM;
    *k = (struct gpi_kept){ .estate = d->estate };
    atomic_fetch_add(&d->estate->owners, 1);
    *ret_k = k;
    return 0;
}

/* Copies a string of at most `size` bytes with its zero. */
static const char *copy(char *to, const char *from, size_t size)
{
    size_t n = strnlen(from, size - 1);

    memcpy(to, from, n);
    to[n] = '\0';
    return to;
}

static void copy_names(struct gpi_kept *k, struct gpud_event *e)
{
    e->label = copy(k->label, e->label, sizeof k->label);
    e->device = copy(k->device, e->device, sizeof k->device);
    e->device_uuid = copy(k->device_uuid, e->device_uuid, sizeof k->device_uuid);
    e->class_name = copy(k->class_name, e->class_name, sizeof k->class_name);
    e->kept = k;
}

/* Takes over all that the record holds, except the record itself; `e` was filled from it. */
int gpi_keep_outcome(gpud_dispatcher *d, struct gpi_task *t, struct gpud_event *e)
{
    const bool in_arena = t->result_place == GPI_RESULT_ARENA;
    const bool in_heap = t->result_place == GPI_RESULT_HEAP;
    struct gpi_kept *k;
    int r = make(d, in_arena || in_heap ? 0 : t->size, &k);

    if (r)
        return r;
    copy_names(k, e);
    if (e->text == gpi_task_why_no_worker(d, t))
        /* it outlives the dispatcher, which owns the cause */
        e->text = GPI_NO_WORKER;
    k->words = t->detail;
    k->more = t->detail ? t->detail->history : NULL;
    t->detail = NULL;
    if (in_arena) {
        k->slot = t->slot;
        k->off = t->result_off;
        k->size = t->size;
        d->slot[k->slot].kept += held_size(k);
        gpi_results_room(d, &d->slot[k->slot]);
        t->result_place = GPI_RESULT_NONE;
    } else if (in_heap) {
        k->heap = (void *)(uintptr_t)t->result_off;
        t->result_place = GPI_RESULT_NONE;
    } else if (t->size) {
        memcpy(k->result, e->result, t->size);
        e->result = k->result;
    }
    return 0;
}

static int keep_lent_outcome(gpud_dispatcher *d, struct gpud_event *e)
{
    struct gpi_task *t = gpi_task_find(d, e->task_id);
    struct gpud_event as_lent = { .struct_size = 0 }, named = *e;
    struct gpi_names_room room;
    int r;

    if (!t || t->state != GPI_TASK_LENT || t->kept)
        return GPUD_EINVAL;
    gpi_event_of(d, t, &room, &as_lent);
    if (e->result != as_lent.result ||
        (e->text != as_lent.text && t->outcome != GPUD_OUTCOME_NO_WORKER) ||
        e->output != as_lent.output || e->label != as_lent.label)
        return GPUD_EINVAL;
    named.text = as_lent.text; /* the reason for no worker may have changed since */
    named.device = as_lent.device;
    named.device_uuid = as_lent.device_uuid;
    named.class_name = as_lent.class_name; /* the caller's record may have no room for it */
    r = gpi_keep_outcome(d, t, &named);
    if (r)
        return r;
    *e = named;
    t->kept = 1;
    return 0;
}

/* A note's block of texts identifies it: no two notes have the same. */
static struct gpi_lent_note *lent_note(gpud_dispatcher *d, const struct gpud_event *e)
{
    for (uint32_t i = 0; i < d->events.n_lent; i++) {
        struct gpi_lent_note *n = &d->events.lent_note[i];
        if (d->events.lent[i] & GPI_RING_NOTE && !n->kept && n->words &&
            n->words->output == e->label && (n->line ? n->output : n->words->text) == e->text &&
            (n->line ? NULL : n->output) == e->output)
            return n;
    }
    return NULL;
}

static int keep_lent_note(gpud_dispatcher *d, struct gpud_event *e)
{
    struct gpi_lent_note *n = lent_note(d, e);
    struct gpud_event named = *e;
    struct gpi_names_room room;
    size_t uuids;
    struct gpi_kept *k;
    int r;

    if (!n)
        return GPUD_EINVAL;
    gpi_note_names(d, n, &room, &named);
    uuids = strlen(named.device_uuid) + 1; /* of several devices */
    r = make(d, uuids, &k);
    if (r)
        return r;
    *e = named;
    e->class_name = n->class < d->n_classes ? d->class[n->class].name : "";
    copy_names(k, e);
    e->device_uuid = memcpy(k->result, named.device_uuid, uuids);
    k->words = n->words;
    k->more = n->output;
    *n = (struct gpi_lent_note){ .kept = true };
    return 0;
}

int gpi_keep_lent(gpud_dispatcher *d, struct gpud_event *e)
{
    int r;

    if (e->kept)
        return GPUD_EINVAL;
    pthread_mutex_lock(&d->lock);
    r = e->kind == GPUD_EVENT_OUTCOME ? keep_lent_outcome(d, e) : keep_lent_note(d, e);
    pthread_mutex_unlock(&d->lock);
    return r;
}

/* ---- releasing ---- */

/* The worker may use the room again, and tasks may be waiting for it. */
static void give_back(gpud_dispatcher *d, const struct gpi_kept *k)
{
    pthread_mutex_lock(&d->lock);
    d->slot[k->slot].kept -= held_size(k);
    gpi_result_release(d, k->slot, k->off, k->size);
    if (gpi_sched_queued(d->core))
        gpi_drive_wake(d);
    pthread_mutex_unlock(&d->lock);
}

static void take_off(struct gpi_estate *es, const struct gpi_kept *k)
{
    struct arena *a = &es->arena[k->slot];

    a->kept -= held_size(k);
    if (a->kept == 0)
        gpi_memory_unmap(a->base, es->arena_size);
}

static void release_arena(struct gpi_estate *es, const struct gpi_kept *k)
{
    bool ours = *es->alive; /* a forked child has only its own mapping, and no other thread */

    if (ours)
        pthread_mutex_lock(&es->lock);
    if (!es->d)
        take_off(es, k);
    else if (ours)
        give_back(es->d, k);
    else
        es->d->slot[k->slot].kept -= held_size(k);
    if (ours)
        pthread_mutex_unlock(&es->lock);
}

void gpi_keep_release(struct gpud_event *e)
{
    struct gpi_kept *k = e->kept;

    if (k->size)
        release_arena(k->estate, k);
    leave(k->estate);
    free(k->words);
    free(k->more);
    free(k->heap);
    free(k);
    e->kept = NULL;
    e->label = e->text = e->device = e->device_uuid = e->class_name = "";
    e->result = e->output = e->output_before = NULL;
    e->result_size = e->output_size = e->output_before_size = 0;
}

/* ---- the dispatcher goes ---- */

/* Frees all memory without kept results: the arena's own file is closed soon. */
static void punch(const gpud_dispatcher *d, struct gpi_slot *s)
{
    uint64_t n = d->set.result_size / GPI_GRANULE, from = 0;

    for (uint64_t i = 0; i <= n; i++) {
        if (i < n && !(s->hold[i / 64] >> i % 64 & 1))
            continue;
        if (i > from)
            gpi_memory_punch(s->ch.result_fd, from * GPI_GRANULE, (i - from) * GPI_GRANULE);
        from = i + 1;
    }
}

/* Undelivered and lent results hold room, too, and no thread will read them. */
static void drop_results(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->never_used; i++) {
        struct gpi_task *t = &d->task[i];
        if ((t->state != GPI_TASK_ENDED && t->state != GPI_TASK_LENT) ||
            t->result_place != GPI_RESULT_ARENA)
            continue;
        gpi_result_release(d, t->slot, t->result_off, t->size);
        t->result_place = GPI_RESULT_NONE;
    }
}

static void bequeath(gpud_dispatcher *d, struct gpi_estate *es)
{
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct gpi_slot *s = &d->slot[i];
        if (s->kept == 0)
            continue;
        es->arena[i] = (struct arena){ .base = s->ch.result, .kept = s->kept };
        if (*es->alive)
            punch(d, s);
        s->ch.result = NULL;
    }
}

void gpi_keep_leave(gpud_dispatcher *d)
{
    struct gpi_estate *es = d->estate;

    if (!es)
        return;
    if (*es->alive) {
        pthread_mutex_lock(&es->lock);
        drop_results(d);
    }
    bequeath(d, es);
    es->d = NULL;
    if (*es->alive)
        pthread_mutex_unlock(&es->lock);
    d->estate = NULL;
    leave(es);
}
