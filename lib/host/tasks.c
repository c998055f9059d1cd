/* SPDX-License-Identifier: MIT */
/* tasks.c - task records and their payloads: accepted, queued, ended. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/dispatcher.h"
#include "os/memory.h"

#define COPY_UNLOCKED 4096u /* larger payloads are copied, and populated, without the lock */

int gpi_tasks_init(gpud_dispatcher *d)
{
    while ((1u << d->id_bits) < d->n_tasks)
        d->id_bits++;
    d->free_task = GPI_NONE;
    d->task = gpi_memory_private((uint64_t)d->n_tasks * sizeof *d->task);
    if (!d->task || gpi_queue_init(&d->queue, d->n_tasks))
        return -1;
    return 0;
}

void gpi_tasks_fini(gpud_dispatcher *d)
{
    for (uint32_t i = 0; d->task && i < d->never_used; i++)
        free(d->task[i].detail);
    gpi_memory_unmap(d->task, (uint64_t)d->n_tasks * sizeof *d->task);
    gpi_queue_fini(&d->queue);
}

/* ---- records ---- */

static void prefetch_record(const gpud_dispatcher *d, uint32_t i)
{
    gpi_prefetch(&d->task[i]);
    gpi_prefetch((const char *)&d->task[i] + 64);
}

/* A free record's `id` holds the index of the next free one. */
static struct gpi_task *take_record(gpud_dispatcher *d)
{
    struct gpi_task *t;

    if (d->free_task != GPI_NONE) {
        t = &d->task[d->free_task];
        d->free_task = (uint32_t)t->id;
        if (d->free_task != GPI_NONE)
            prefetch_record(d, d->free_task); /* of the next submit */
    } else {
        assert(d->never_used < d->n_tasks);
        t = &d->task[d->never_used++];
    }
    return t;
}

struct gpi_task *gpi_task_find(gpud_dispatcher *d, uint64_t id)
{
    uint64_t i = id & ((1ull << d->id_bits) - 1);

    if (i >= d->never_used || d->task[i].id != id)
        return NULL;
    return &d->task[i];
}

/* ---- payload ---- */

static uint64_t own_block(const gpud_dispatcher *d, const struct gpi_task *t)
{
    return d->own_off + (uint64_t)gpi_task_index(d, t) * GPI_OWN_SIZE;
}

static void free_data(gpud_dispatcher *d, struct gpi_task *t)
{
    if (!t->has_block)
        return;
    gpi_chunks_free(&d->input_chunks, t->data_off - (t->has_head ? GPI_LABEL_SIZE : 0));
    t->has_block = 0;
}

void gpi_task_free(gpud_dispatcher *d, struct gpi_task *t)
{
    free_data(d, t);
    if (t->result_place == GPI_RESULT_POOL)
        gpi_chunks_free(&d->pool_chunks, t->result_off);
    else if (t->result_place == GPI_RESULT_ARENA)
        gpi_result_release(d, t->slot, t->result_off, t->size);
    free(t->detail);
    t->detail = NULL;
    t->state = GPI_TASK_FREE;
    t->id = d->free_task;
    d->free_task = gpi_task_index(d, t);
}

static bool in_arena(const gpud_dispatcher *d, const void *data)
{
    const unsigned char *p = data;

    return p >= d->input && p < d->input + d->set.input_size;
}

/* A small result in the user's hands, say: it is copied like any other memory. */
static bool in_own_blocks(const gpud_dispatcher *d, const void *data)
{
    const unsigned char *p = data, *own = d->input + d->own_off;

    return p >= own && p < own + (uint64_t)d->n_tasks * GPI_OWN_SIZE;
}

/* While a buffer is the user's, the label's room before it holds this mark. */
#define LENT_MARK 0x6675622064757067ull

static void mark_buffer(const gpud_dispatcher *d, uint64_t off, uint64_t mark)
{
    memcpy(d->input + off - GPI_LABEL_SIZE, &mark, sizeof mark);
}

/* The block behind an address that buffer_alloc gave out and nobody has taken since, or NONE. */
static uint64_t buffer_offset(const gpud_dispatcher *d, const void *data)
{
    uint64_t off, mark;

    if (!in_arena(d, data))
        return GPI_CHUNKS_NONE;
    off = (uint64_t)((const unsigned char *)data - d->input);
    if (off < GPI_LABEL_SIZE || gpi_chunks_capacity(&d->input_chunks, off - GPI_LABEL_SIZE) == 0)
        return GPI_CHUNKS_NONE;
    memcpy(&mark, d->input + off - GPI_LABEL_SIZE, sizeof mark);
    return mark == LENT_MARK ? off : GPI_CHUNKS_NONE;
}

/* Allocates; the pages of a fresh large block are populated by this thread without the lock. */
static uint64_t alloc_block(gpud_dispatcher *d, uint64_t size)
{
    int fresh = 0;
    uint64_t off = gpi_chunks_alloc(&d->input_chunks, size, &fresh);

    if (off != GPI_CHUNKS_NONE && fresh) {
        uint64_t all = gpi_chunks_capacity(&d->input_chunks, off);
        pthread_mutex_unlock(&d->lock);
        gpi_memory_populate(d->input + off, all);
        pthread_mutex_lock(&d->lock);
    }
    return off;
}

int gpi_buffer_alloc(gpud_dispatcher *d, uint64_t size, void **ret_data)
{
    uint64_t off;

    if (size > d->payload_most - GPI_LABEL_SIZE)
        return GPUD_ETOOBIG;
    pthread_mutex_lock(&d->lock);
    off = alloc_block(d, size + GPI_LABEL_SIZE);
    if (off != GPI_CHUNKS_NONE)
        mark_buffer(d, off + GPI_LABEL_SIZE, LENT_MARK);
    pthread_mutex_unlock(&d->lock);
    if (off == GPI_CHUNKS_NONE)
        return GPUD_EFULL;
    *ret_data = d->input + off + GPI_LABEL_SIZE;
    return 0;
}

static void wake_submitters(gpud_dispatcher *d)
{
    if (d->waiting_for_room)
        pthread_cond_broadcast(&d->room);
}

int gpi_buffer_free(gpud_dispatcher *d, void *data)
{
    int r = GPUD_EINVAL;
    uint64_t off;

    pthread_mutex_lock(&d->lock);
    off = buffer_offset(d, data);
    if (off != GPI_CHUNKS_NONE) {
        mark_buffer(d, off, 0);
        gpi_chunks_free(&d->input_chunks, off - GPI_LABEL_SIZE);
        wake_submitters(d);
        r = 0;
    }
    pthread_mutex_unlock(&d->lock);
    return r;
}

/* ---- accepting ---- */

/* Whether a description makes sense, whatever the dispatcher. */
int gpi_task_check(const struct gpud_task_desc *desc)
{
    if (desc->size && !desc->data)
        return GPUD_EINVAL;
    if (desc->label && strnlen(desc->label, GPI_LABEL_SIZE) == GPI_LABEL_SIZE)
        return GPUD_EINVAL;
    return desc->max_attempts > UINT8_MAX ? GPUD_EINVAL : 0;
}

/* Takes a buffer of buffer_alloc as it is. */
static int take_buffer(gpud_dispatcher *d, const struct gpud_task_desc *desc, struct gpi_task *t)
{
    uint64_t off = buffer_offset(d, desc->data);

    if (off == GPI_CHUNKS_NONE || desc->size > gpi_chunks_capacity(&d->input_chunks, off - GPI_LABEL_SIZE) - GPI_LABEL_SIZE)
        return GPUD_EINVAL;
    mark_buffer(d, off, 0);
    t->data_off = off;
    t->has_head = t->has_block = 1;
    return 0;
}

/* On failure nothing was taken. */
static void give_buffer_back(const gpud_dispatcher *d, struct gpi_task *t)
{
    mark_buffer(d, t->data_off, LENT_MARK);
    t->has_block = 0;
}

static int copy_to_block(gpud_dispatcher *d, const struct gpud_task_desc *desc, uint64_t head, struct gpi_task *t)
{
    uint64_t off;

    if (desc->size > d->payload_most - head)
        return GPUD_ETOOBIG;
    off = alloc_block(d, desc->size + head);
    if (off == GPI_CHUNKS_NONE)
        return GPUD_EFULL;
    t->data_off = off + head;
    t->has_head = head > 0;
    t->has_block = 1;
    if (desc->size > COPY_UNLOCKED) {
        pthread_mutex_unlock(&d->lock);
        memcpy(d->input + t->data_off, desc->data, desc->size);
        pthread_mutex_lock(&d->lock);
    } else if (desc->size) {
        memcpy(d->input + t->data_off, desc->data, desc->size);
    }
    return 0;
}

/* Finds a place for the data of record t.  0, EFULL, ETOOBIG or EINVAL. */
static int place_data(gpud_dispatcher *d, const struct gpud_task_desc *desc, size_t label, struct gpi_task *t)
{
    t->has_head = t->has_block = 0;
    t->has_label = label > 0;
    t->size = desc->size;
    if (in_arena(d, desc->data) && !in_own_blocks(d, desc->data))
        return take_buffer(d, desc, t);
    if (label || desc->size > GPI_OWN_SIZE)
        return copy_to_block(d, desc, label ? GPI_LABEL_SIZE : 0, t);
    t->data_off = own_block(d, t);
    if (desc->size)
        memcpy(d->input + t->data_off, desc->data, desc->size);
    return 0;
}

/* Exact when nothing is waiting; behind a backlog exact to a kernel tick, since the clock is the
 * dearest part of accepting a small task. */
static uint64_t arrival_time(gpud_dispatcher *d)
{
    uint64_t tick = gpi_tick();

    if (d->queue.count == 0 || tick != d->arrival_tick)
        d->arrival = gpi_now();
    else if (d->arrival < d->now)
        d->arrival = d->now;
    d->arrival_tick = tick;
    return d->arrival;
}

static void fill_record(gpud_dispatcher *d, struct gpi_task *t, const struct gpud_task_desc *desc)
{
    t->id = ++d->serial << d->id_bits | gpi_task_index(d, t);
    t->tag = desc->tag;
    t->limit = desc->limit ? desc->limit : d->set.task_limit;
    t->queued_at = arrival_time(d);
    t->sent_at = t->started_at = t->ended_at = 0;
    t->detail = NULL;
    t->priority = desc->priority;
    t->code = 0;
    t->incarnation = 0;
    t->cost = desc->cost ? desc->cost : 1;
    t->slot = 0;
    t->has_slot = 0;
    t->attempts = 0;
    t->max_attempts = (uint8_t)(desc->max_attempts ? desc->max_attempts : d->set.max_attempts);
    t->outcome = t->phase = 0;
    t->state = GPI_TASK_QUEUED;
}

static bool intake_over(gpud_dispatcher *d)
{
    return d->closing || atomic_load_explicit(&d->stop_asked, memory_order_relaxed);
}

static uint32_t how_to_finish(gpud_dispatcher *d)
{
    uint32_t asked = atomic_load_explicit(&d->stop_asked, memory_order_relaxed);

    return d->closing && d->finish + 1 > asked ? d->finish : asked - 1;
}

/* Accepts one task now, or says why not; nothing is taken on failure. */
static int accept_task(gpud_dispatcher *d, const struct gpud_task_desc *desc, size_t label, bool fed, uint64_t *ret_id)
{
    struct gpi_task *t;
    bool too_late;
    int r;

    if (!fed && intake_over(d))
        return GPUD_ECLOSED;
    if (d->live >= d->set.queue_size)
        return GPUD_EFULL;
    d->live++; /* place_data may drop the lock: place and record are ours from here */
    t = take_record(d);
    t->result_place = GPI_RESULT_NONE;
    r = place_data(d, desc, label, t);
    if (r == 0 && !fed && intake_over(d))
        r = GPUD_ECLOSED; /* meanwhile */
    if (r == 0 && gpi_queue_reserve(&d->queue))
        r = GPUD_ENOMEM;
    if (r && t->has_block && d->input + t->data_off == desc->data)
        give_buffer_back(d, t);
    if (r) {
        d->live--;
        gpi_task_free(d, t);
        return r;
    }
    fill_record(d, t, desc);
    if (label) {
        char *at = (char *)d->input + t->data_off - GPI_LABEL_SIZE;
        memcpy(at, desc->label, label);
        at[label] = '\0';
    }
    *ret_id = t->id;
    d->count.accepted++;
    d->unended++;
    d->cost_left += t->cost;
    too_late = intake_over(d) && how_to_finish(d) >= GPUD_FINISH_RUNNING;
    if (too_late || d->n_useless == d->n_slots) {
        gpi_task_end(d, t, too_late ? GPUD_OUTCOME_CANCELLED : GPUD_OUTCOME_NO_WORKER, GPUD_PHASE_QUEUED,
                     too_late ? GPUD_ECANCELLED : GPUD_ENOWORKER);
        gpi_drive_wake(d);
        return 0;
    }
    gpi_queue_push(&d->queue, gpi_task_index(d, t), t->priority);
    if (d->sleepers && d->queue.count == 1)
        gpi_drive_wake(d);
    return 0;
}

static bool wait_for_room(gpud_dispatcher *d, uint64_t until)
{
    struct timespec t = { .tv_sec = (time_t)(until / GPI_S), .tv_nsec = (long)(until % GPI_S) };
    int r = 0;

    d->waiting_for_room++;
    if (until == GPI_NEVER)
        pthread_cond_wait(&d->room, &d->lock);
    else
        r = pthread_cond_timedwait(&d->room, &d->lock, &t);
    d->waiting_for_room--;
    return r != ETIMEDOUT;
}

/* Accepts, waiting for room until `until` (0: not at all).  Lock held. */
static int accept_in_time(gpud_dispatcher *d, const struct gpud_task_desc *desc, uint64_t until, bool fed, uint64_t *ret_id)
{
    size_t label = desc->label ? strlen(desc->label) : 0;
    int r = accept_task(d, desc, label, fed, ret_id);

    while (r == GPUD_EFULL && until) {
        bool more = wait_for_room(d, until);
        r = accept_task(d, desc, label, fed, ret_id);
        if (!more)
            break;
    }
    return r;
}

int gpi_task_submit(gpud_dispatcher *d, const struct gpud_task_desc *desc, uint64_t wait, uint64_t *ret_id)
{
    uint64_t until = wait ? gpi_time_add(wait, gpi_now()) : 0, id = 0;
    int r;

    pthread_mutex_lock(&d->lock);
    if (wait && d->in_callback && pthread_equal(d->callback_thread, pthread_self()))
        r = GPUD_EREENTER;
    else
        r = accept_in_time(d, desc, until, false, &id);
    pthread_mutex_unlock(&d->lock);
    if (r == 0 && ret_id)
        *ret_id = id;
    return r;
}

int gpi_task_feed(gpud_dispatcher *d, const struct gpud_task_desc *desc)
{
    uint64_t id;
    int r;

    pthread_mutex_lock(&d->lock);
    r = accept_in_time(d, desc, GPI_NEVER, true, &id);
    pthread_mutex_unlock(&d->lock);
    return r;
}

/* ---- going back, and ending ---- */

static bool came_before(void *context, uint32_t a, uint32_t b)
{
    const gpud_dispatcher *d = context;

    return d->task[a].id >> d->id_bits < d->task[b].id >> d->id_bits;
}

void gpi_task_requeue(gpud_dispatcher *d, struct gpi_task *t)
{
    t->state = GPI_TASK_QUEUED;
    if (d->closing && d->finish >= GPUD_FINISH_RUNNING) {
        gpi_task_end(d, t, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_QUEUED, GPUD_ECANCELLED);
        return;
    }
    if (d->n_useless == d->n_slots || gpi_queue_reserve(&d->queue)) {
        gpi_task_end(d, t, GPUD_OUTCOME_NO_WORKER, GPUD_PHASE_QUEUED, GPUD_ENOWORKER);
        return;
    }
    gpi_queue_put_back(&d->queue, gpi_task_index(d, t), t->priority, came_before, d);
}

/* The counters of outcomes lie side by side, in the order of enum gpud_outcome. */
_Static_assert(offsetof(struct gpud_stats, no_worker) - offsetof(struct gpud_stats, success) ==
                   (GPUD_OUTCOME_NO_WORKER - GPUD_OUTCOME_SUCCESS) * sizeof(uint64_t), "one counter per outcome");

static void count_outcome(gpud_dispatcher *d, const struct gpi_task *t)
{
    uint64_t *first = (uint64_t *)(void *)((char *)&d->count + offsetof(struct gpud_stats, success));

    first[t->outcome - GPUD_OUTCOME_SUCCESS]++;
    if (t->has_slot)
        d->slot[t->slot].outcomes[t->outcome]++;
}

void gpi_task_end(gpud_dispatcher *d, struct gpi_task *t, uint32_t outcome, uint32_t phase, int32_t code)
{
    assert(t->state == GPI_TASK_QUEUED || t->state == GPI_TASK_SENT);
    t->state = GPI_TASK_ENDED;
    t->outcome = (uint8_t)outcome;
    t->phase = (uint8_t)phase;
    t->code = code;
    if (!t->ended_at)
        t->ended_at = gpi_now();
    if (t->result_place == GPI_RESULT_NONE)
        t->size = 0;
    if (t->has_block && !t->has_label) {
        free_data(d, t);
        wake_submitters(d); /* room in the budget, if not in the queue */
    }
    d->unended--;
    d->cost_left -= t->cost;
    d->cost_done += t->cost;
    count_outcome(d, t);
    gpi_event_push(d, gpi_task_index(d, t));
}

struct gpi_detail *gpi_task_detail(struct gpi_task *t, uint32_t output_size)
{
    struct gpi_detail *old = t->detail, *det = malloc(sizeof *det + output_size);

    if (!det)
        return old; /* the outcome stands without its words */
    memset(det, 0, sizeof *det);
    if (old)
        memcpy(det->text, old->text, sizeof det->text);
    det->output_size = output_size;
    free(old);
    t->detail = det;
    return det;
}

void gpi_tasks_end_queued(gpud_dispatcher *d, uint32_t outcome, int32_t code)
{
    uint32_t i;

    while ((i = gpi_queue_pop(&d->queue)) != GPI_QUEUE_NONE)
        gpi_task_end(d, &d->task[i], outcome, GPUD_PHASE_QUEUED, code);
}

int gpi_task_cancel(gpud_dispatcher *d, uint64_t id)
{
    struct gpi_task *t = gpi_task_find(d, id);
    struct gpi_slot *s;
    uint64_t number;

    if (!t || (t->state != GPI_TASK_QUEUED && t->state != GPI_TASK_SENT))
        return GPUD_ENOTFOUND;
    if (t->state == GPI_TASK_QUEUED) {
        gpi_queue_remove(&d->queue, gpi_task_index(d, t), t->priority);
        gpi_task_end(d, t, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_QUEUED, GPUD_ECANCELLED);
        gpi_drive_wake(d);
        return 0;
    }
    s = gpi_task_slot(d, t);
    number = s->cell_number[t->cell];
    if (gpi_cell_take(&s->ch.page->cell[t->cell], number, GPI_CANCELLED)) {
        s->inflight &= ~(1ull << t->cell);
        s->sent--;
        gpi_task_end(d, t, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_QUEUED, GPUD_ECANCELLED);
        if (s->sent == 0 && s->state == GPUD_SLOT_BUSY)
            gpi_slot_enter(d, s, GPUD_SLOT_READY);
    } else {
        gpi_slot_cancel(d, s, number);
    }
    gpi_drive_wake(d);
    return 0;
}
