/* SPDX-License-Identifier: MIT */
/*
 * submit.c - accepts tasks: a record, a place for the data, and then the core has the task.
 *                                                                                        [C5] [C15]
 *
 * Most tasks are plain: data of up to 64 bytes and a tag, and all other values from the options.
 * To accept one takes a fraction of the instructions.  A debug build compares each such record with
 * the record of the long way.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/failure.h"
#include "host/core.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/external.h"
#include "host/task.h"

#define LOCKED_TASKS 256u             /* of an array: accepted before the lock is released once */
#define MEMORY_LOOK_NS (100 * GPI_MS) /* between checks whether there is memory again */

/* ---- records ---- */

static inline void prefetch_record(const gpud_dispatcher *d, uint32_t i)
{
    gpi_prefetch(&d->task[i]);
    gpi_prefetch((const char *)&d->task[i] + 64);
}

/* A free record's `id` holds the index of the next free one. */
static inline uint32_t take_record(gpud_dispatcher *d)
{
    const uint32_t i = d->free_task;

    if (i == GPI_NONE) {
        assert(d->never_used < d->n_tasks);
        return d->never_used++;
    }
    d->free_task = (uint32_t)d->task[i].id;
    if (d->free_task != GPI_NONE)
        prefetch_record(d, d->free_task); /* for the next submit */
    return i;
}

/* ---- accepting ---- */

/* How tasks arrive. */
struct intake {
    bool fed;    /* tasks from the source of run */
    bool unlike; /* EFULL: there is no room for one more different request */
    bool no_run; /* EFULL: as many tasks and workers as there may be have devices */
    const struct gpi_adopted *adopted; /* the task runs already; NULL: it waits */
    bool many;   /* several: tasks that follow under the same lock arrive at one time: */
    uint64_t at; /* at this time; 0 until the clock was read */
};

/* The time is exact if no task waits, or if another time counts from it.  Behind a backlog it is
 * exact to a kernel tick, since reading the clock is the most expensive part of accepting a small
 * task. */
static inline uint64_t arrival_time(gpud_dispatcher *d, struct intake *in, bool exact)
{
    uint64_t tick;

    if (in->at)
        return in->at;
    tick = gpi_tick();
    if (exact || in->many || gpi_sched_queued(d->core) == 0 || tick != d->intake.arrival_tick)
        d->intake.arrival = gpi_now();
    else if (d->intake.arrival < d->now)
        d->intake.arrival = d->now;
    d->intake.arrival_tick = tick;
    in->at = in->many ? d->intake.arrival : 0;
    return d->intake.arrival;
}

/* Sets the values that the task's description contains; the options determine all other values. */
static void fill_own(gpud_dispatcher *d, struct gpi_task *t, const struct gpud_task_desc *desc,
                     uint64_t expires)
{
    const struct gpi_class_set *set = &gpi_task_class(d, t)->set;
    const uint64_t stall = desc->stall_limit ? desc->stall_limit : set->stall_limit;
    const uint32_t i = gpi_task_index(d, t);

    t->limit = desc->limit ? desc->limit : set->task_limit;
    t->stalls = stall != GPI_NEVER;
    if (t->stalls)
        d->stall_limit[i] = stall;
    t->expires = expires != GPI_NEVER;
    if (t->expires)
        d->expires[i] = expires;
    t->own = (uint8_t)((desc->limit ? GPI_OWN_LIMIT : 0) |
                       (desc->stall_limit ? GPI_OWN_STALL_LIMIT : 0) |
                       (desc->expires ? GPI_OWN_EXPIRES : 0));
    t->awaited = desc->awaited == 1;
}

static inline void fill_common(gpud_dispatcher *d, struct gpi_task *t, uint32_t i,
                               const struct gpud_task_desc *desc, uint64_t at)
{
    t->id = ++d->serial << d->id_bits | i;
    t->tag = desc->tag;
    t->queued_at = at;
    t->cost = desc->cost ? desc->cost : 1;
}

/* Sets the values that the records of plain tasks have in common.  They belong to class 0. */
void gpi_submit_init(gpud_dispatcher *d)
{
    const struct gpi_class_set *set = &d->class[0].set;

    d->plain = &d->task[d->n_tasks];
    *d->plain = (struct gpi_task){
        .limit = set->task_limit,
        .result_place = GPI_RESULT_NONE,
        .state = GPI_TASK_QUEUED,
    };
    d->plain_what = (struct gpi_sched_task){
        .max_attempts = set->max_attempts,
        .causes = set->retry_causes,
        .limit = set->task_limit,
        .expires = GPI_NEVER,
    };
    if (!d->set.pooled && set->stall_limit == GPI_NEVER && set->expires == GPI_NEVER &&
        !set->start_events)
        d->plain_most = d->set.queue_size;
}

static inline void count_in(gpud_dispatcher *d, const struct gpi_task *t)
{
    d->stats.count.accepted++;
    d->stats.cost_left += t->cost;
}

static inline bool intake_over(gpud_dispatcher *d)
{
    return d->close.closing || atomic_load_explicit(&d->close.stop_asked, memory_order_relaxed);
}

static void write_label(gpud_dispatcher *d, const struct gpi_task *t, const char *words,
                        size_t length)
{
    char *at = (char *)d->arena.input + t->data_off - GPI_LABEL_SIZE;

    memcpy(at, words, length);
    at[length] = '\0';
}

/* From here on the record, with its data in place, is a task. */
static void admit(gpud_dispatcher *d, struct gpi_task *t, const struct gpud_task_desc *desc,
                  size_t label, struct intake *in, uint64_t expires)
{
    fill_common(d, t, gpi_task_index(d, t), desc, arrival_time(d, in, expires != GPI_NEVER));
    fill_own(d, t, desc, expires);
    if (label)
        write_label(d, t, desc->label, label);
    d->intake.awaited += t->awaited;
    count_in(d, t);
}

static bool nothing_starts(gpud_dispatcher *d)
{
    return intake_over(d) && gpi_finish_asked(d) >= GPUD_FINISH_RUNNING;
}

/* If run pulls a task after the last start, the task does not wait for room: a record is reserved
 * for it, and no process reads its data. */
static int accept_in_vain(gpud_dispatcher *d, const struct gpud_task_desc *desc, size_t label,
                          uint16_t class, struct intake *in, uint64_t *ret_id,
                          struct gpud_error *e)
{
    struct gpi_task *t = &d->task[take_record(d)];
    int r;

    *t = *d->plain;
    t->class = class;
    r = gpi_payload_forgo(d, desc, label, t, e);
    if (r) {
        gpi_task_free(d, gpi_task_index(d, t));
        return r;
    }
    d->intake.live++;
    d->class[class].accepted++;
    admit(d, t, desc, label, in, GPI_NEVER);
    *ret_id = t->id;
    gpi_task_end(d, t, GPUD_OUTCOME_CANCELLED, GPUD_PHASE_QUEUED, GPUD_ECANCELLED);
    gpi_drive_wake(d);
    return 0;
}

/* Submits an admitted task to the core, which ends it if it will never start. */
static inline void enqueue(gpud_dispatcher *d, uint32_t i, const struct gpi_sched_task *what)
{
    const bool first = what->expires != GPI_NEVER && what->expires < gpi_sched_due(d->core);

    if (d->dev.n_foreign && gpi_sched_queued(d->core) == 0)
        gpi_devices_rouse(d); /* it may wait for a device that foreign processes have left */
    if (!gpi_core_submit(d, i, what)) {
        d->act(d);
        gpi_drive_wake(d);
    } else if ((d->loop.sleepers || d->pollable.calls_out) &&
               (first || d->set.pooled || gpi_sched_queued(d->core) == 1)) {
        gpi_drive_wake(d); /* pooled: a task that waits may leave room for one that does not */
    }
}

/* ---- plain tasks ---- */

static inline bool is_plain(const struct gpud_task_desc *t)
{
    return !((uintptr_t)t->label | (uintptr_t)t->class_name | (uintptr_t)t->request | t->limit |
             t->stall_limit | t->expires | t->max_attempts | t->retry_causes | t->awaited |
             t->keep_alive | t->order) &&
           t->size <= GPI_OWN_SIZE && (t->data || !t->size);
}

/* Debug builds: the long way leaves the same record. */
#ifndef NDEBUG
static void assert_as_the_long_way(gpud_dispatcher *d, const struct gpi_task *t,
                                   const struct gpud_task_desc *desc, uint64_t at)
{
    struct gpi_task *own = &d->task[gpi_task_index(d, t)], before = *t;
    bool same;

    *own = *d->plain;
    d->serial--;
    (void)gpi_payload_place(d, desc, 0, own, NULL);
    fill_common(d, own, gpi_task_index(d, own), desc, at);
    fill_own(d, own, desc, gpi_task_class(d, own)->set.expires);
    same = memcmp(own, &before, sizeof before) == 0;
    *own = before;
    assert(same);
}
#else
#define assert_as_the_long_way(d, t, desc, at) ((void)0)
#endif

/* Copies up to GPI_OWN_SIZE bytes.  Two halves that overlap cost less than a call. */
static inline void copy_small(unsigned char *to, const void *from, uint64_t size)
{
    const size_t half = GPI_OWN_SIZE / 2;

    if (size >= half) {
        memcpy(to, from, half);
        memcpy(to + size - half, (const unsigned char *)from + size - half, half);
    } else if (size) {
        memcpy(to, from, size);
    }
}

/* Accepts a plain task that has its place at once.  Returns false if the long way must decide. */
static inline bool accept_plain(gpud_dispatcher *d, const struct gpud_task_desc *desc,
                                struct intake *in, uint64_t *ret_id)
{
    struct gpi_task *t;
    uint64_t at;
    uint32_t i;

    if (!is_plain(desc) || intake_over(d) || d->intake.live >= d->plain_most ||
        gpi_payload_is_ours(d, desc->data))
        return false;
    d->intake.live++;
    i = take_record(d);
    t = &d->task[i];
    at = arrival_time(d, in, false);
    *t = *d->plain;
    fill_common(d, t, i, desc, at);
    t->size = desc->size;
    t->data_off = d->arena.own_off + (uint64_t)i * GPI_OWN_SIZE;
    copy_small(d->arena.input + t->data_off, desc->data, desc->size);
    assert_as_the_long_way(d, t, desc, at);
    t->plain = GPI_PLAIN;
    count_in(d, t);
    d->plain_what.priority = desc->priority;
    enqueue(d, i, &d->plain_what);
    *ret_id = t->id;
    return true;
}

/* ---- any task ---- */

/* The end of poll or run may have waited for this task alone. */
static void tell_the_end(gpud_dispatcher *d)
{
    gpi_drive_wake(d);
    gpi_drive_tell(d);
}

static int closed(gpud_dispatcher *d, struct gpud_error *e)
{
    return gpi_fail(e, GPUD_ECLOSED, 0, "", "the dispatcher takes no more tasks: %s",
                    d->close.closing ? d->close.by : "gpud_dispatcher_stop");
}

static int removed(const struct gpud_task_desc *desc, struct gpud_error *e)
{
    return gpi_fail(e, GPUD_ECLOSED, 0, "class_name", "class %.63s is being removed",
                    desc->class_name);
}

/* Returns the class of the task, or a code. */
static int find_class(gpud_dispatcher *d, const struct gpud_task_desc *desc, struct gpud_error *e)
{
    int i;

    if (desc->keep_alive && !d->set.pooled)
        return gpi_fail(e, GPUD_EINVAL, 0, "keep_alive",
                        "task.keep_alive is %llu, expected 0: pooled is 0",
                        (unsigned long long)desc->keep_alive);
    if (desc->request && !d->set.pooled)
        return gpi_fail(e, GPUD_EINVAL, 0, "request",
                        "task.request is set, expected NULL: pooled is 0");
    if (!desc->class_name && !d->set.pooled)
        return 0;
    if (!desc->class_name)
        return gpi_fail(e, GPUD_EINVAL, 0, "class_name",
                        "task.class_name is NULL, expected the name of a class (pooled)");
    if (!d->set.pooled)
        return gpi_fail(e, GPUD_EINVAL, 0, "class_name",
                        "task.class_name is \"%.64s\", expected NULL: pooled is 0",
                        desc->class_name);
    i = gpi_class_find(d, desc->class_name);
    if (i < 0)
        return gpi_fail(e, GPUD_ENODEFINITION, 0, "class_name", "no class has the name \"%.80s\"",
                        desc->class_name);
    return d->class[i].removing ? removed(desc, e) : i;
}

/* Reads the task's own request.  Returns 0, or a code. */
static int find_request(gpud_dispatcher *d, const struct gpud_task_desc *desc, uint32_t class,
                        struct gpi_needs *ret, struct gpud_error *e)
{
    const struct gpi_class *c = &d->class[class];
    int r;

    if (c->plan.residence == GPI_RESIDENT)
        return gpi_fail(e, GPUD_EINVAL, 0, "request",
                        "task.request is set, but class %.63s is RESIDENT: its workers have the "
                        "devices of its needs",
                        c->name);
    r = gpi_request_read(ret, "request", desc->request, e);
    if (r == 0)
        r = gpi_request_find_places(d, ret, e);
    if (r == GPUD_EFULL) /* to wait would not help */
        return gpi_fail(e, GPUD_EINVAL, 0, "on",
                        "all classes and tasks name %u different sets of devices, the maximum",
                        GPI_PLACES_MOST);
    return r ? r : gpi_request_fits(d, c->name, "request", ret->request, ret->n, e);
}

/* A task without a request has the needs of its class. */
static void take_needs(const struct gpi_class *c, struct gpi_needs *ret)
{
    ret->n = c->plan.n_needs;
    memcpy(ret->request, c->plan.need, sizeof ret->request);
}

/* Refuses the fields that only a task of workers may have. */
static int check_external(const gpud_dispatcher *d, const struct gpud_task_desc *desc,
                          uint32_t class, struct gpud_error *e)
{
    const struct {
        const char *field;
        uint64_t value;
    } fields[] = { { "size", desc->size }, { "keep_alive", desc->keep_alive } };

    if (desc->data && desc->size == 0)
        return gpi_fail(e, GPUD_EINVAL, 0, "data",
                        "task.data is set, but class %.63s is EXTERNAL, expected NULL",
                        d->class[class].name);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].value)
            return gpi_fail(e, GPUD_EINVAL, 0, fields[i].field,
                            "task.%s is %llu, but class %.63s is EXTERNAL, expected 0",
                            fields[i].field, (unsigned long long)fields[i].value,
                            d->class[class].name);
    return 0;
}

/* Returns the class of the task, or a code. */
static int check_task(gpud_dispatcher *d, const struct gpud_task_desc *desc, bool fed,
                      struct gpi_needs *ret, struct gpud_error *e)
{
    const int class = find_class(d, desc, e);
    bool external;
    int r = 0;

    ret->n = 0;
    if (class < 0)
        return class;
    if (!fed && intake_over(d))
        return closed(d, e);
    external = gpi_class_is_external(&d->class[class]);
    if (external)
        r = check_external(d, desc, (uint32_t)class, e);
    if (r == 0 && desc->request)
        r = find_request(d, desc, (uint32_t)class, ret, e);
    else if (external)
        take_needs(&d->class[class], ret);
    return r ? r : class;
}

struct gpi_sched_task gpi_submit_what(const gpud_dispatcher *d, const struct gpud_task_desc *desc,
                                      uint32_t class, const struct gpi_needs *own)
{
    const struct gpi_class_set *set = &d->class[class].set;
    const uint64_t limit = desc->limit ? desc->limit : set->task_limit;
    const uint64_t stall = desc->stall_limit ? desc->stall_limit : set->stall_limit;
    const bool external = gpi_class_is_external(&d->class[class]);

    return (struct gpi_sched_task){
        .priority = desc->priority,
        .max_attempts = desc->max_attempts ? desc->max_attempts : set->max_attempts,
        .causes = desc->retry_causes ? desc->retry_causes : set->retry_causes,
        .limit = external ? limit : gpi_time_min(limit, stall),
        .stall = external && stall != GPI_NEVER ? stall : 0,
        .expires = GPI_NEVER,
        .keep_alive = desc->keep_alive,
        .order = desc->order,
        .class = class,
        .n_requests = own->n,
        .request = own->request,
    };
}

/* Returns EFULL if there is no room for the task in the core. */
static int check_room(const gpud_dispatcher *d, const struct gpi_sched_task *what,
                      struct intake *in)
{
    in->unlike = !gpi_sched_has_room(d->core, what);
    in->no_run = in->adopted && !gpi_sched_has_run(d->core);
    return in->unlike || in->no_run ? GPUD_EFULL : 0;
}

/* Returns true if the task takes a place among the queue_size ones. */
static bool takes_place(const struct intake *in)
{
    return !in->adopted || !in->adopted->core.given_up;
}

/* Accepts one task now, or returns a code with the reason in *e and takes nothing.  On EFULL it
 * leaves *e alone. */
static int accept_task(gpud_dispatcher *d, const struct gpud_task_desc *desc, size_t label,
                       struct intake *in, uint64_t *ret_id, struct gpud_error *e)
{
    const uint64_t away = d->intake.went_away;
    const struct gpi_class_set *set;
    struct gpi_sched_task what;
    struct gpi_needs own;
    struct gpi_task *t;
    const char *name;
    int r, class;

    class = check_task(d, desc, in->fed, &own, e);
    if (class < 0)
        return class;
    name = d->class[class].name;
    what = gpi_submit_what(d, desc, (uint32_t)class, &own);
    if (in->fed && nothing_starts(d))
        return accept_in_vain(d, desc, label, (uint16_t)class, in, ret_id, e);
    if (d->intake.live >= d->set.queue_size && takes_place(in))
        return GPUD_EFULL;
    if (in->adopted && !gpi_class_is_external(&d->class[class]))
        return gpi_fail(e, GPUD_EINVAL, 0, "class_name", "class %.63s is not EXTERNAL", name);
    d->intake.live++; /* placing data may drop the lock: place and record are reserved */
    t = &d->task[take_record(d)];
    *t = *d->plain;
    t->class = (uint16_t)class;
    r = gpi_payload_place(d, desc, label, t, e);
    if (r == 0 && !in->fed && intake_over(d)) /* closed meanwhile */
        r = closed(d, e);
    if (r == 0 && (d->class[class].removing || d->class[class].name != name))
        r = removed(desc, e);
    if (r == 0 && desc->request && away != d->intake.went_away) /* its sets may have new places */
        r = find_request(d, desc, (uint32_t)class, &own, e);
    in->unlike = in->no_run = false;
    if (r == 0)
        r = check_room(d, &what, in);
    if (r && t->has_block && d->arena.input + t->data_off == desc->data)
        gpi_payload_give_back(d, t);
    if (r) {
        gpi_task_free(d, gpi_task_index(d, t));
        d->intake.live--;
        if (r != GPUD_EFULL)
            gpi_room_made(d); /* a task of the source may wait for this room */
        if (d->intake.live == d->intake.awaited)
            tell_the_end(d);
        return r;
    }
    if (d->intake.went_away != away) /* the lock was released meanwhile */
        in->at = 0;
    set = &gpi_task_class(d, t)->set;
    gpi_task_class(d, t)->accepted++;
    admit(d, t, desc, label, in,
          in->adopted ? GPI_NEVER : desc->expires ? desc->expires : set->expires);
    *ret_id = t->id;
    what.expires = gpi_task_expires(d, t);
    if (label)
        gpi_core_note(d, "task", gpi_task_index(d, t), "label", desc->label);
    if (in->adopted)
        gpi_external_enter(d, t, &what, in->adopted);
    else
        enqueue(d, gpi_task_index(d, t), &what);
    if (desc->awaited && d->intake.went_away != away && d->intake.live == d->intake.awaited)
        tell_the_end(d); /* meanwhile it counted as a task that run waits for */
    return 0;
}

void gpi_submit_go_on(gpud_dispatcher *d)
{
    if (!d->intake.awaits_request || !gpi_sched_has_room(d->core, NULL))
        return;
    d->intake.awaits_request = false;
    gpi_room_made(d);
}

/* Returns false once `until` has passed. */
static bool wait_for_room(gpud_dispatcher *d, uint64_t until)
{
    /* No event reports memory that other processes free: check again on a timer. */
    uint64_t look =
        d->intake.short_of_memory ? gpi_time_min(until, gpi_now() + MEMORY_LOOK_NS) : until;
    struct timespec t = { .tv_sec = (time_t)(look / GPI_S), .tv_nsec = (long)(look % GPI_S) };
    int r = 0;

    d->intake.waiting_for_room++;
    if (look == GPI_NEVER)
        pthread_cond_wait(&d->intake.room, &d->lock);
    else
        r = pthread_cond_timedwait(&d->intake.room, &d->lock, &t);
    if (--d->intake.waiting_for_room == 0 && d->close.ending)
        pthread_cond_broadcast(&d->intake.room);
    return r != ETIMEDOUT || look < until;
}

/* Names the exhausted resource. */
static int full(const gpud_dispatcher *d, const struct gpud_task_desc *desc,
                const struct intake *in, struct gpud_error *e)
{
    if (in->no_run)
        return gpi_fail(e, GPUD_EFULL, 0, "max_workers",
                        "max_workers is %u, and as many workers and external tasks run",
                        d->set.max_workers);
    if (d->intake.live >= d->set.queue_size && takes_place(in))
        return gpi_fail(e, GPUD_EFULL, 0, "queue_size",
                        "queue_size is %u, and %u accepted tasks are not delivered yet",
                        d->set.queue_size, d->intake.live);
    if (in->unlike)
        return gpi_fail(e, GPUD_EFULL, 0, "request",
                        "the accepted tasks have the most different requests that are possible: "
                        "1,024, each with its class and priority");
    if (d->intake.short_of_memory)
        return gpi_fail(
            e, GPUD_EFULL, 0, "size",
            "the machine or memory cgroup has too little memory left for %llu bytes of task data",
            (unsigned long long)desc->size);
    return gpi_fail(e, GPUD_EFULL, 0, "payload_budget",
                    "task.size is %llu, and the half of payload_budget (%llu) for task data has "
                    "less room now",
                    (unsigned long long)desc->size, (unsigned long long)d->set.payload_budget);
}

int gpi_submit_check(gpud_dispatcher *d, const struct gpud_task_desc *desc, bool room,
                     struct gpi_needs *ret, struct gpud_error *e)
{
    const int class = check_task(d, desc, false, ret, e);
    struct intake in = { .fed = false };
    struct gpi_sched_task what;
    int r;

    if (class < 0)
        return class;
    what = gpi_submit_what(d, desc, (uint32_t)class, ret);
    in.unlike = !gpi_sched_has_room(d->core, &what);
    if (room && (d->intake.live >= d->set.queue_size || in.unlike))
        return full(d, desc, &in, e);
    r = gpi_payload_check(d, desc, desc->label ? strlen(desc->label) : 0, e);
    return r ? r : class;
}

/* Accepts the task, and waits for room until `until` (0: not at all).  Lock held. */
static int accept_in_time(gpud_dispatcher *d, const struct gpud_task_desc *desc, uint64_t until,
                          struct intake *in, uint64_t *ret_id, struct gpud_error *e)
{
    size_t label = desc->label ? strlen(desc->label) : 0;
    bool more = until > 0;
    int r;

    while ((r = accept_task(d, desc, label, in, ret_id, e)) == GPUD_EFULL && more) {
        d->intake.awaits_request |= in->unlike;
        more = wait_for_room(d, until);
        in->at = 0;
    }
    return r == GPUD_EFULL ? full(d, desc, in, e) : r;
}

int gpi_submit_adopted(gpud_dispatcher *d, const struct gpud_task_desc *desc,
                       const struct gpi_adopted *a, uint64_t *ret_id, struct gpud_error *e)
{
    struct intake in = { .adopted = a };

    return accept_in_time(d, desc, 0, &in, ret_id, e);
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
    if (r == 0 && !accept_plain(d, desc, &in, &id))
        r = accept_in_time(d, desc, until, &in, &id, e);
    pthread_mutex_unlock(&d->lock);
    if (r == 0 && ret_id)
        *ret_id = id;
    return r;
}

/* Returns record `i` of an array with the library's record length if it has this version, else
 * NULL. */
static inline const struct gpud_task_desc *own_length(const struct gpi_offer *o, size_t i)
{
    const struct gpud_task_desc *desc = (const struct gpud_task_desc *)o->tasks + i;

    return desc->struct_size == sizeof *desc ? desc : NULL;
}

int gpi_tasks_submit(gpud_dispatcher *d, const struct gpi_offer *o, uint64_t wait,
                     uint64_t *ret_ids, size_t *ret_taken, struct gpud_error *e)
{
    struct intake in = { .fed = o->fed, .many = true };
    const bool ours = o->stride == sizeof(struct gpud_task_desc);
    uint64_t until = deadline(wait), id;
    size_t i;
    int r;

    pthread_mutex_lock(&d->lock);
    r = o->fed ? 0 : check_wait(d, wait, e);
    for (i = 0; r == 0 && i < o->n; i++) {
        const struct gpud_task_desc *desc;
        struct gpud_task_desc read;
        if (i % LOCKED_TASKS == LOCKED_TASKS - 1) { /* the driving thread may need the lock */
            gpi_go_away(d);
            gpi_come_back(d);
            in.at = 0;
        }
        desc = ours ? own_length(o, i) : NULL;
        if (!desc || !accept_plain(d, desc, &in, &id)) {
            r = gpi_desc_offered(o, i, &read, &desc, e);
            if (r == 0)
                r = accept_in_time(d, desc, until, &in, &id, e);
            if (r)
                break;
        }
        if (ret_ids)
            ret_ids[i] = id;
    }
    pthread_mutex_unlock(&d->lock);
    *ret_taken = i;
    return r;
}
