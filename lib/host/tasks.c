/* SPDX-License-Identifier: MIT */
/* tasks.c - task records: accepted, queued, ended. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/failure.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/shadow.h"
#include "host/slot.h"
#include "host/task.h"
#include "os/memory.h"
#include "sched/retry.h"

#define LOCKED_TASKS 256u /* of an array that are taken before another thread may have the lock */
#define MEMORY_LOOK_NS (100 * GPI_MS) /* between looks whether there is memory again */

int gpi_tasks_init(gpud_dispatcher *d)
{
    while ((1u << d->id_bits) < d->n_tasks)
        d->id_bits++;
    d->free_task = GPI_NONE;
    d->task = gpi_memory_private((uint64_t)d->n_tasks * sizeof *d->task);
    d->stall_limit = gpi_memory_private((uint64_t)d->n_tasks * sizeof *d->stall_limit);
    d->expires = gpi_memory_private((uint64_t)d->n_tasks * sizeof *d->expires);
    if (!d->task || !d->stall_limit || !d->expires || gpi_queue_init(&d->queue, d->n_tasks) ||
        gpi_defer_init(d))
        return -1;
    return 0;
}

void gpi_tasks_fini(gpud_dispatcher *d)
{
    for (uint32_t i = 0; d->task && i < d->never_used; i++)
        gpi_detail_free(&d->task[i]);
    gpi_memory_unmap(d->task, (uint64_t)d->n_tasks * sizeof *d->task);
    gpi_memory_unmap(d->stall_limit, (uint64_t)d->n_tasks * sizeof *d->stall_limit);
    gpi_memory_unmap(d->expires, (uint64_t)d->n_tasks * sizeof *d->expires);
    gpi_queue_fini(&d->queue);
    gpi_defer_fini(d);
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

void gpi_task_free(gpud_dispatcher *d, struct gpi_task *t)
{
    if (t->has_block)
        gpi_payload_free(d, t);
    if (t->result_place == GPI_RESULT_POOL)
        gpi_chunks_free(&d->pool_chunks, t->result_off);
    else if (t->result_place == GPI_RESULT_ARENA)
        gpi_result_release(d, t->slot, t->result_off, t->size);
    if (t->detail)
        gpi_detail_free(t);
    t->state = GPI_TASK_FREE;
    t->id = d->free_task;
    d->free_task = gpi_task_index(d, t);
}

/* ---- accepting ---- */

/* How tasks come in. */
struct intake {
    bool fed;    /* from the source of run */
    bool many;   /* several, of which those that follow under the same lock arrive at once: */
    uint64_t at; /* then; 0 until the clock was read */
};

/* Exact when nothing is waiting, or when a time is counted from it; behind a backlog exact to a kernel tick, since the clock is the
 * dearest part of accepting a small task. */
static uint64_t arrival_time(gpud_dispatcher *d, struct intake *in, bool exact)
{
    uint64_t tick;

    if (in->at)
        return in->at;
    tick = gpi_tick();
    if (exact || in->many || d->queue.count == 0 || tick != d->arrival_tick)
        d->arrival = gpi_now();
    else if (d->arrival < d->now)
        d->arrival = d->now;
    d->arrival_tick = tick;
    in->at = in->many ? d->arrival : 0;
    return d->arrival;
}

static void fill_record(gpud_dispatcher *d, struct gpi_task *t, const struct gpud_task_desc *desc,
                        struct intake *in, uint64_t expires)
{
    const uint64_t stall = desc->stall_limit ? desc->stall_limit : d->set.stall_limit;

    t->id = ++d->serial << d->id_bits | gpi_task_index(d, t);
    t->tag = desc->tag;
    t->limit = desc->limit ? desc->limit : d->set.task_limit;
    t->queued_at = arrival_time(d, in, expires != GPI_NEVER);
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
    t->causes = (uint8_t)(desc->retry_causes ? desc->retry_causes : d->set.retry_causes);
    t->alone = 0;
    t->spoilt = t->wary = 0;
    t->stalls = stall != GPI_NEVER;
    t->expires = 0;
    if (stall != GPI_NEVER)
        d->stall_limit[gpi_task_index(d, t)] = stall;
    t->own = (uint8_t)((desc->limit ? GPI_OWN_LIMIT : 0) |
                       (desc->stall_limit ? GPI_OWN_STALL_LIMIT : 0) |
                       (desc->expires ? GPI_OWN_EXPIRES : 0));
    t->outcome = t->phase = 0;
    t->awaited = desc->awaited == 1;
    t->kept = 0;
    t->state = GPI_TASK_QUEUED;
}

static bool intake_over(gpud_dispatcher *d)
{
    return d->closing || atomic_load_explicit(&d->stop_asked, memory_order_relaxed);
}

static void write_label(gpud_dispatcher *d, const struct gpi_task *t, const char *words, size_t length)
{
    char *at = (char *)d->input + t->data_off - GPI_LABEL_SIZE;

    memcpy(at, words, length);
    at[length] = '\0';
}

/* The record, with its data in place, is a task from here on. */
static void admit(gpud_dispatcher *d, struct gpi_task *t, const struct gpud_task_desc *desc,
                  size_t label, struct intake *in, uint64_t expires)
{
    fill_record(d, t, desc, in, expires);
    if (label)
        write_label(d, t, desc->label, label);
    d->count.accepted++;
    d->unended++;
    d->awaited += t->awaited;
    d->cost_left += t->cost;
}

static bool nothing_starts(gpud_dispatcher *d)
{
    return intake_over(d) && gpi_finish_asked(d) >= GPUD_FINISH_RUNNING;
}

/* What run has pulled when nothing starts any more waits for no room: there is a record to spare, and its data have no reader. */
static int accept_in_vain(gpud_dispatcher *d, const struct gpud_task_desc *desc, size_t label,
                          struct intake *in, uint64_t *ret_id, struct gpud_error *e)
{
    struct gpi_task *t = take_record(d);
    int r;

    t->result_place = GPI_RESULT_NONE;
    r = gpi_payload_forgo(d, desc, label, t, e);
    if (r) {
        gpi_task_free(d, t);
        return r;
    }
    d->live++;
    admit(d, t, desc, label, in, GPI_NEVER);
    *ret_id = t->id;
    gpi_task_end(d, t, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_QUEUED, GPUD_ECANCELLED);
    gpi_drive_wake(d);
    return 0;
}

/* Puts an admitted task into the queue, unless it will never start. */
static void enqueue(gpud_dispatcher *d, struct gpi_task *t, uint64_t expires)
{
    if (nothing_starts(d)) {
        gpi_task_end(d, t, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_QUEUED, GPUD_ECANCELLED);
        gpi_drive_wake(d);
        return;
    }
    if (d->n_useless == d->n_slots) {
        gpi_task_end(d, t, GPUD_OUTCOME_NO_WORKER, GPUD_PHASE_QUEUED, GPUD_ENOWORKER);
        gpi_drive_wake(d);
        return;
    }
    gpi_queue_push(&d->queue, gpi_task_index(d, t), t->priority);
    gpi_shadow_task(d, t);
    if (expires != GPI_NEVER)
        gpi_expiry_set(d, t, expires);
    if ((d->sleepers || d->calls_out) && d->queue.count == 1)
        gpi_drive_wake(d);
}

/* It may have been all that the end of poll or run still waited for. */
static void tell_the_end(gpud_dispatcher *d)
{
    gpi_drive_wake(d);
    gpi_drive_tell(d);
}

static int closed(gpud_dispatcher *d, struct gpud_error *e)
{
    return gpi_fail(e, GPUD_ECLOSED, 0, "", "the dispatcher takes no more tasks: %s",
                    d->closing ? d->closed_by : "gpud_dispatcher_stop");
}

/* Accepts one task now, or says why not; nothing is taken on failure.  On EFULL *e is left alone. */
static int accept_task(gpud_dispatcher *d, const struct gpud_task_desc *desc, size_t label,
                       struct intake *in, uint64_t *ret_id, struct gpud_error *e)
{
    const uint64_t expires = desc->expires ? desc->expires : d->set.expires, away = d->went_away;
    struct gpi_task *t;
    int r;

    if (!in->fed && intake_over(d))
        return closed(d, e);
    if (in->fed && nothing_starts(d))
        return accept_in_vain(d, desc, label, in, ret_id, e);
    if (d->live >= d->set.queue_size)
        return GPUD_EFULL;
    d->live++; /* to place data may drop the lock: place and record are ours from here */
    t = take_record(d);
    t->result_place = GPI_RESULT_NONE;
    r = gpi_payload_place(d, desc, label, t, e);
    if (r == 0 && !in->fed && intake_over(d)) /* meanwhile */
        r = closed(d, e);
    if (r && t->has_block && d->input + t->data_off == desc->data)
        gpi_payload_give_back(d, t);
    if (r) {
        gpi_task_free(d, t);
        d->live--;
        if (r != GPUD_EFULL)
            gpi_room_made(d); /* for the source's task, which may still have to start */
        if (d->live == d->awaited)
            tell_the_end(d);
        return r;
    }
    if (d->went_away != away) /* the lock was dropped meanwhile */
        in->at = 0;
    admit(d, t, desc, label, in, expires);
    *ret_id = t->id;
    enqueue(d, t, expires);
    if (desc->awaited && d->went_away != away && d->live == d->awaited)
        tell_the_end(d); /* while the lock was dropped it counted as one that run waits for */
    return 0;
}

/* False when `until` has passed. */
static bool wait_for_room(gpud_dispatcher *d, uint64_t until)
{
    /* Nobody tells when others give memory back. */
    uint64_t look = d->short_of_memory ? gpi_time_min(until, gpi_now() + MEMORY_LOOK_NS) : until;
    struct timespec t = { .tv_sec = (time_t)(look / GPI_S), .tv_nsec = (long)(look % GPI_S) };
    int r = 0;

    d->waiting_for_room++;
    if (look == GPI_NEVER)
        pthread_cond_wait(&d->room, &d->lock);
    else
        r = pthread_cond_timedwait(&d->room, &d->lock, &t);
    if (--d->waiting_for_room == 0 && d->ending)
        pthread_cond_broadcast(&d->room);
    return r != ETIMEDOUT || look < until;
}

/* What is used up. */
static int full(const gpud_dispatcher *d, const struct gpud_task_desc *desc, struct gpud_error *e)
{
    if (d->live >= d->set.queue_size)
        return gpi_fail(e, GPUD_EFULL, 0, "queue_size",
                        "queue_size is %u, and %u accepted tasks are not delivered yet",
                        d->set.queue_size, d->live);
    if (d->short_of_memory)
        return gpi_fail(
            e, GPUD_EFULL, 0, "size",
            "the machine or memory cgroup has too little memory left for %llu bytes of task data",
            (unsigned long long)desc->size);
    return gpi_fail(e, GPUD_EFULL, 0, "payload_budget",
                    "task.size is %llu, and the half of payload_budget (%llu) for task data has "
                    "less room now",
                    (unsigned long long)desc->size, (unsigned long long)d->set.payload_budget);
}

/* Accepts, waiting for room until `until` (0: not at all).  Lock held. */
static int accept_in_time(gpud_dispatcher *d, const struct gpud_task_desc *desc, uint64_t until,
                          struct intake *in, uint64_t *ret_id, struct gpud_error *e)
{
    size_t label = desc->label ? strlen(desc->label) : 0;
    bool more = until > 0;
    int r;

    while ((r = accept_task(d, desc, label, in, ret_id, e)) == GPUD_EFULL && more) {
        more = wait_for_room(d, until);
        in->at = 0;
    }
    return r == GPUD_EFULL ? full(d, desc, e) : r;
}

/* In a callback only 0 is possible. */
static int check_wait(gpud_dispatcher *d, uint64_t wait, struct gpud_error *e)
{
    if (!wait || !gpi_drive_reenters(d))
        return 0;
    return gpi_fail(e, GPUD_EREENTER, 0, "wait", "wait is %llu in a callback, expected 0",
                    (unsigned long long)wait);
}

static uint64_t deadline(uint64_t wait)
{
    return wait ? gpi_time_add(wait, gpi_now()) : 0;
}

int gpi_task_submit(gpud_dispatcher *d, const struct gpud_task_desc *desc, uint64_t wait,
                    uint64_t *ret_id, struct gpud_error *e)
{
    struct intake in = { .fed = false };
    uint64_t until = deadline(wait), id = 0;
    int r;

    pthread_mutex_lock(&d->lock);
    r = check_wait(d, wait, e);
    if (r == 0)
        r = accept_in_time(d, desc, until, &in, &id, e);
    pthread_mutex_unlock(&d->lock);
    if (r == 0 && ret_id)
        *ret_id = id;
    return r;
}

int gpi_tasks_submit(gpud_dispatcher *d, const struct gpi_offer *o, uint64_t wait,
                     uint64_t *ret_ids, size_t *ret_taken, struct gpud_error *e)
{
    struct intake in = { .fed = o->fed, .many = true };
    uint64_t until = deadline(wait), id;
    size_t i;
    int r;

    pthread_mutex_lock(&d->lock);
    r = o->fed ? 0 : check_wait(d, wait, e);
    for (i = 0; r == 0 && i < o->n; i++) {
        const struct gpud_task_desc *desc;
        struct gpud_task_desc read;
        if (i % LOCKED_TASKS == LOCKED_TASKS - 1) { /* the one who drives has work to do */
            gpi_go_away(d);
            gpi_come_back(d);
            in.at = 0;
        }
        r = gpi_desc_offered(o, i, &read, &desc, e);
        if (r == 0)
            r = accept_in_time(d, desc, until, &in, &id, e);
        if (r)
            break;
        if (ret_ids)
            ret_ids[i] = id;
    }
    pthread_mutex_unlock(&d->lock);
    *ret_taken = i;
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
    if (d->n_useless == d->n_slots) {
        gpi_task_end(d, t, GPUD_OUTCOME_NO_WORKER, GPUD_PHASE_QUEUED, GPUD_ENOWORKER);
        return;
    }
    gpi_queue_put_back(&d->queue, gpi_task_index(d, t), t->priority, came_before, d);
    gpi_shadow_task(d, t);
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
    gpi_shadow_task(d, t);
    gpi_expiry_clear(d, t);
    t->outcome = (uint8_t)outcome;
    t->phase = (uint8_t)phase;
    t->code = code;
    if (!t->ended_at)
        t->ended_at = gpi_now();
    if (t->result_place == GPI_RESULT_NONE)
        t->size = 0;
    if (t->has_block && !t->has_label) {
        gpi_payload_free(d, t);
        gpi_room_made(d); /* room in the budget, if not in the queue */
    }
    d->unended--;
    d->wary -= t->wary;
    d->cost_left -= t->cost;
    if (t->attempts) { /* else no work was done */
        d->ran++;
        d->cost_done += t->cost;
    }
    count_outcome(d, t);
    if (t->awaited)
        gpi_wait_ended(d, t);
    else
        gpi_event_push(d, gpi_task_index(d, t));
}

void gpi_tasks_end_queued(gpud_dispatcher *d, uint32_t outcome, int32_t code)
{
    uint32_t i;

    while ((i = gpi_queue_pop(&d->queue)) != GPI_QUEUE_NONE)
        gpi_task_end(d, &d->task[i], outcome, GPUD_PHASE_QUEUED, code);
    gpi_defer_end_all(d, outcome, code);
}

int gpi_task_cancel(gpud_dispatcher *d, uint64_t id, uint32_t how)
{
    struct gpi_task *t = gpi_task_find(d, id);

    if (!t || (t->state != GPI_TASK_QUEUED && t->state != GPI_TASK_SENT && t->state != GPI_TASK_DEFERRED))
        return GPUD_ENOTFOUND;
    if (t->state != GPI_TASK_SENT) {
        if (t->state == GPI_TASK_QUEUED)
            gpi_queue_remove(&d->queue, gpi_task_index(d, t), t->priority);
        else
            gpi_undefer(d, t);
        gpi_task_end(d, t, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_QUEUED, GPUD_ECANCELLED);
        gpi_drive_wake(d);
        return 0;
    }
    d->now = gpi_now(); /* for what the slot becomes */
    if (gpi_take_back(d, t))
        gpi_task_end(d, t, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_QUEUED, GPUD_ECANCELLED);
    else
        gpi_slot_cancel(d, gpi_task_slot(d, t), t->cell, how);
    gpi_drive_wake(d);
    return 0;
}
