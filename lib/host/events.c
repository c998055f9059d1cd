/* SPDX-License-Identifier: MIT */
/*
 * events.c - writes outcomes and notes into the user's records, and frees them once the user has
 * read them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "host/dispatcher.h"
#include "host/event.h"
#include "host/external.h"
#include "host/slot.h"
#include "host/task.h"

/* ---- lent to the user ---- */

/* The note names its memory no more when that is freed: a child that the host forks meanwhile would
 * free it as well. */
static void free_parts(struct gpi_lent_note *n)
{
    void *words = n->words, *output = n->output;

    n->words = NULL;
    n->output = NULL;
    free(words);
    free(output);
}

bool gpi_lent_release(gpud_dispatcher *d)
{
    bool any = d->events.n_lent > 0;

    for (uint32_t i = 0; i < d->events.n_lent; i++) {
        if (!(d->events.lent[i] & GPI_RING_NOTE)) {
            gpi_task_free(d, d->events.lent[i]);
            continue;
        }
        free_parts(&d->events.lent_note[i]);
    }
    if (any)
        gpi_room_made(d);
    d->events.n_lent = 0;
    return any;
}

/* ---- to the user's record ---- */

static inline const void *result_address(const gpud_dispatcher *d, const struct gpi_task *t)
{
    if (t->result_place == GPI_RESULT_NONE || t->result_place == GPI_RESULT_WHY)
        return NULL;
    if (t->result_place == GPI_RESULT_OWN)
        return d->arena.input + t->result_off;
    if (t->result_place == GPI_RESULT_HEAP)
        return (const void *)(uintptr_t)t->result_off;
    return t->result_place == GPI_RESULT_POOL ? d->arena.pool + t->result_off
                                              : d->slot[t->slot].ch.result + t->result_off;
}

/* The text of an outcome that has none of its own, and for which malloc failed. */
static const char *plain_words(const gpud_dispatcher *d, const struct gpi_task *t)
{
    switch ((enum gpud_outcome)t->outcome) {
    case GPUD_OUTCOME_TIMEOUT:
        return t->phase == GPUD_PHASE_QUEUED ? "not started (expires)" : "exceeded its time limit";
    case GPUD_OUTCOME_ERROR:
        return "process returned a value other than 0";
    case GPUD_OUTCOME_CANCELLED:
        return "cancelled by the host";
    case GPUD_OUTCOME_NO_WORKER:
        return gpi_task_why_no_worker(d, t);
    default:
        return "";
    }
}

static void add_words(const struct gpi_detail *det, struct gpud_event *e)
{
    if (det->history || *det->text)
        e->text = det->history ? det->history : det->text;
    e->exit_kind = det->exit_kind;
    e->exit_status = det->exit_status;
    e->output_before = det->output;
    e->output_before_size = det->before_size;
    e->output = det->output + det->before_size;
    e->output_size = det->output_size;
}

static const char *device_of(const gpud_dispatcher *d, const struct gpi_task *t,
                             struct gpi_names_room *room)
{
    const struct gpi_device_set *on = d->ran_on ? &d->ran_on[gpi_task_index(d, t)] : NULL;

    if (!t->has_slot && !(t->attempts && gpi_task_is_external(d, t)))
        return "";
    if (!on)
        return d->slot[t->slot].device;
    return t->has_slot && on->n == 0 ? "cpu" : gpi_set_names(d, on, room);
}

/* One assignment writes each word of the event once. */
void gpi_event_of(gpud_dispatcher *d, const struct gpi_task *t, struct gpi_names_room *room,
                  struct gpud_event *e)
{
    *e = (struct gpud_event){
        .struct_size = sizeof *e,
        .kind = GPUD_EVENT_OUTCOME,
        .task_id = t->id,
        .tag = t->tag,
        .label = t->has_label ? (const char *)d->arena.input + t->data_off - GPI_LABEL_SIZE : "",
        .outcome = t->outcome,
        .phase = t->phase,
        .code = t->code,
        .attempt = t->attempts,
        .slot = t->has_slot ? t->slot : GPUD_NO_SLOT,
        .incarnation = t->incarnation,
        .device = device_of(d, t, room),
        .device_uuid = "",
        .text = t->outcome == GPUD_OUTCOME_SUCCESS ? "" : plain_words(d, t),
        .queued_at = t->queued_at,
        .sent_at = t->sent_at,
        .started_at = t->started_at,
        .ended_at = t->ended_at,
        .result = result_address(d, t),
        .result_size = t->size,
        .class_name = d->class[t->class].name,
    };
    if (t->detail)
        add_words(t->detail, e);
}

void gpi_note_names(const gpud_dispatcher *d, const struct gpi_lent_note *n,
                    struct gpi_names_room *room, struct gpud_event *e)
{
    const bool one = n->device < d->dev.n, of_slot = e->slot < d->n_slots;

    e->device_uuid = one ? d->dev.row[n->device].id.uuid : "";
    if (one)
        e->device = d->dev.row[n->device].id.name;
    else if (!d->set.pooled)
        e->device = of_slot ? d->slot[e->slot].device : "";
    else if (of_slot && n->on.n == 0)
        e->device = "cpu";
    else
        e->device = gpi_set_names(d, &n->on, room);
    if (!one && (e->kind == GPUD_EVENT_GRANTED || e->kind == GPUD_EVENT_REVOKED))
        e->device_uuid = gpi_set_uuids(d, &n->on, room);
}

static struct gpi_names_room *names_room(const gpud_dispatcher *d)
{
    return d->events.lent_names ? &d->events.lent_names[d->events.n_lent] : NULL;
}

/* A note's texts move into a block of their own, so that the note is free at once. */
static void fill_note(gpud_dispatcher *d, const struct gpi_note *n, struct gpud_event *e)
{
    struct gpi_detail *words = malloc(sizeof *words + GPI_LABEL_SIZE);
    struct gpi_lent_note *lent = &d->events.lent_note[d->events.n_lent];

    *lent = (struct gpi_lent_note){
        .words = words,
        .output = n->output,
        .device = n->device,
        .on = n->on,
        .class = n->class,
        .line = n->stream != 0,
    };
    e->kind = n->kind;
    e->task_id = n->task_id;
    e->tag = n->tag;
    e->label = e->text = "";
    e->phase = n->phase;
    e->code = n->code;
    e->slot = n->slot;
    e->incarnation = n->incarnation;
    e->slot_state = n->state;
    e->level = n->level;
    e->exit_kind = n->exit_kind;
    e->exit_status = n->exit_status;
    e->progress = n->progress;
    e->attempt = n->attempt;
    e->started_at = n->started_at;
    e->device_health = n->health;
    e->xid = n->xid;
    gpi_note_names(d, lent, names_room(d), e);
    e->stream = n->stream;
    e->class_name = n->class < d->n_classes ? d->class[n->class].name : "";
    e->class_change = n->change;
    e->promise = n->promise;
    e->starts_by = n->starts_by;
    e->share = n->share;
    e->memory = n->memory;
    e->limit = n->limit;
    e->revoked = n->revoked;
    e->revoke = n->revoke;
    e->revoke_by = n->revoke_by;
    e->variant = n->variant;
    e->cpus = n->cpus;
    e->attempts = n->attempts;
    e->host_memory = n->host_memory;
    if (words) {
        memcpy(words->text, n->text, sizeof n->text);
        memcpy(words->output, n->label, GPI_LABEL_SIZE);
        e->text = words->text;
        e->label = words->output;
    }
    if (n->stream) {
        e->text = n->output;
    } else {
        e->output = n->output;
        e->output_size = n->output_size;
    }
}

/* The entry may be a note, or a stale one past the tail: the address need not be a record's. */
static inline void prefetch_record(const gpud_dispatcher *d, uint32_t entry)
{
    const uintptr_t at = (uintptr_t)d->task + (uintptr_t)entry * sizeof *d->task;

    gpi_prefetch((const void *)at);
    gpi_prefetch((const void *)(at + 64));
}

/* For a plain task that has ended with SUCCESS, and without a result. */
static inline void write_success(const gpud_dispatcher *d, const struct gpi_task *t,
                                 struct gpud_event *e)
{
    *e = (struct gpud_event){
        .struct_size = sizeof *e,
        .kind = GPUD_EVENT_OUTCOME,
        .task_id = t->id,
        .tag = t->tag,
        .label = "",
        .outcome = GPUD_OUTCOME_SUCCESS,
        .phase = GPUD_PHASE_PROCESS,
        .attempt = 1,
        .slot = t->slot,
        .incarnation = t->incarnation,
        .device = d->slot[t->slot].device,
        .device_uuid = "",
        .text = "",
        .queued_at = t->queued_at,
        .sent_at = t->sent_at,
        .started_at = t->started_at,
        .ended_at = t->ended_at,
        .class_name = "",
    };
}

static inline void take_outcome(gpud_dispatcher *d, uint32_t task, struct gpud_event *e)
{
    struct gpi_task *t = &d->task[task];

    if (t->plain == GPI_PLAIN_ENDED) {
        write_success(d, t, e);
    } else {
        if (t->outcome != GPUD_OUTCOME_SUCCESS)
            gpi_words_complete(d, t);
        gpi_event_of(d, t, names_room(d), e);
    }
    t->state = GPI_TASK_LENT;
    d->intake.live--;
    d->stats.count.delivered++;
}

/* Returns false if the event is not to be delivered. */
static bool take_note(gpud_dispatcher *d, uint32_t entry, struct gpud_event *e)
{
    struct gpi_note of_grant, *n = &of_grant;

    if (entry & GPI_RING_NOTE)
        n = &d->events.note[entry & ~GPI_RING_NOTE];
    else if (!gpi_grant_read(d, entry, &of_grant))
        return false;
    memset(e, 0, sizeof *e);
    e->struct_size = sizeof *e;
    fill_note(d, n, e);
    if (n != &of_grant)
        gpi_note_free(d, n);
    return true;
}

static inline bool take_event(gpud_dispatcher *d, uint32_t entry, struct gpud_event *e)
{
    const bool is_outcome = entry < GPI_RING_REVOKED;

    if (is_outcome)
        take_outcome(d, entry, e);
    else if (!take_note(d, entry, e))
        return false;
    d->events.lent[d->events.n_lent++] = is_outcome ? entry : GPI_RING_NOTE;
    return true;
}

/* Writes a record of the caller's length; fields that the library does not know are zero. */
static bool take_other_length(gpud_dispatcher *d, uint32_t entry, void *to, size_t stride)
{
    struct gpud_event e;
    const size_t both = stride < sizeof e ? stride : sizeof e;

    if (!take_event(d, entry, &e))
        return false;
    e.struct_size = (uint32_t)stride;
    memcpy(to, &e, both);
    memset((char *)to + both, 0, stride - both);
    return true;
}

int gpi_events_take(gpud_dispatcher *d, struct gpud_event *events, size_t stride, size_t n)
{
    const uint32_t waiting = gpi_events_waiting(d), lendable = GPI_EVENTS_MAX - d->events.n_lent;
    const uint32_t most = waiting < lendable ? waiting : lendable;
    uint32_t i = 0, head = d->events.ring_head;

    while (i < most && i < n) {
        const uint32_t entry = d->events.ring[head & d->events.ring_mask];
        prefetch_record(d, d->events.ring[(head + 7) & d->events.ring_mask]);
        head++;
        if (stride == sizeof *events)
            i += take_event(d, entry, &events[i]);
        else
            i += take_other_length(d, entry, (char *)events + i * stride, stride);
    }
    d->events.ring_head = head;
    if (i)
        gpi_room_made(d);
    return (int)i;
}
