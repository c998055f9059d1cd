/* SPDX-License-Identifier: MIT */
/*
 * task.h - tasks in the host: the record of one, from its acceptance to the end of its outcome.
 *
 *   desc.c      descriptions: read and checked
 *   submit.c    accepted
 *   tasks.c     records: ended, cancelled, freed
 *   payload.c   places of their data; buffers
 *   attempt.c   after a bad end: the texts of all attempts
 *   texts.c     texts: the limit that was exceeded, the value that was returned
 */
#ifndef GPI_HOST_TASK_H
#define GPI_HOST_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "host/dispatcher.h"
#include "sched/event.h"
#include "wire/page.h"

enum gpi_task_state {
    GPI_TASK_FREE,
    GPI_TASK_QUEUED,
    GPI_TASK_SENT,
    GPI_TASK_ENDED,
    GPI_TASK_LENT,
    GPI_TASK_HELD /* external: its outcome was delivered, and its devices are not free */
};

/* Each record has a block of its own in the input arena, for data of up to this many bytes and,
 * once the task has ended, for a result of up to as many: small tasks cost no allocation. */
#define GPI_OWN_SIZE 64u

_Static_assert(GPI_OWN_SIZE >= GPI_LABEL_SIZE, "a label has room there");

/* Where a result waits for its delivery. */
enum gpi_result_place {
    GPI_RESULT_NONE, GPI_RESULT_OWN, GPI_RESULT_POOL, GPI_RESULT_ARENA,
    GPI_RESULT_HEAP, /* external: result_off is its address, by malloc */
    GPI_RESULT_WHY   /* NO_WORKER: no result; result_off is the address of the reason */
};

/* A text of the worker's, after the text of the limit that was exceeded. */
#define GPI_WORDS_SIZE (GPI_FAIL_TEXT_SIZE + 96u)

/* Which limits came with the task, and not from the dispatcher's options: bits. */
enum gpi_own { GPI_OWN_LIMIT = 1, GPI_OWN_STALL_LIMIT = 2, GPI_OWN_EXPIRES = 4 };

/* Most tasks are plain: accepted the short way, in their first attempt, and without texts.  Then
 * the later steps may take the short way, too. */
enum gpi_plain {
    GPI_PLAIN_NO,
    GPI_PLAIN,
    GPI_PLAIN_ENDED /* with SUCCESS, and without a result */
};

/* For outcomes other than SUCCESS, or whose worker printed. */
struct gpi_detail {
    uint32_t exit_kind;
    int32_t exit_status;
    uint32_t before_size, output_size; /* of output_before and output, one after the other */
    char *history;             /* texts of all attempts if there was more than one; malloc */
    char text[GPI_WORDS_SIZE]; /* of the last attempt */
    char output[];
};

struct gpi_task {
    uint64_t id; /* serial << id_bits | index: never reused */
    uint64_t tag;
    uint64_t data_off; /* offset in the input arena */
    uint64_t size;     /* of the data; after the end, of the result */
    union {
        uint64_t limit;      /* until the task ends */
        uint64_t result_off; /* after its end */
    };
    uint64_t queued_at, sent_at, started_at, ended_at;
    struct gpi_detail *detail;
    int32_t code;
    uint32_t incarnation;
    uint32_t cost;
    uint16_t slot; /* that it was last sent to */
    uint16_t class; /* index */
    uint8_t cell;
    uint8_t state;
    uint8_t attempts; /* started so far */
    uint8_t outcome, phase;
    uint8_t has_head; /* the block has room for a label before the data */
    uint8_t has_label;
    uint8_t has_block;    /* data_off is in a block to free; else in the record's own, or none */
    uint8_t result_place; /* enum gpi_result_place */
    uint8_t has_slot;
    uint8_t awaited; /* wait collects its outcome */
    uint8_t kept;    /* lent, and the next poll does not free it */
    uint8_t stalls;  /* has an entry in `stall_limit` */
    uint8_t expires; /* has an entry in `expires`, and no attempt has started */
    uint8_t own;     /* enum gpi_own */
    uint8_t plain;   /* enum gpi_plain */
    uint8_t held;    /* external: it has its outcome, and keeps its devices */
};

/* submit.c */
void gpi_submit_init(gpud_dispatcher *d);
int gpi_task_submit(gpud_dispatcher *d, const struct gpud_task_desc *desc, uint64_t wait,
                    uint64_t *ret_id, struct gpud_error *e);
/* Task records of a caller, of any version. */
struct gpi_offer {
    const void *tasks;
    size_t n;
    uint32_t stride; /* bytes from one record to the next */
    bool fed;        /* from run: waits for room; each task gets an outcome, even if closing */
};
/* Accepts the tasks in order, up to the first that is refused.  Returns 0 or its code, and always
 * writes *ret_taken. */
int gpi_tasks_submit(gpud_dispatcher *d, const struct gpi_offer *o, uint64_t wait,
                     uint64_t *ret_ids, size_t *ret_taken, struct gpud_error *e);
/* Accepts a task that runs already.  The lock is held. */
struct gpi_adopted;
int gpi_submit_adopted(gpud_dispatcher *d, const struct gpud_task_desc *desc,
                       const struct gpi_adopted *a, uint64_t *ret_id, struct gpud_error *e);
/* Tasks have ended: a submit may wait for a request that they had. */
void gpi_submit_go_on(gpud_dispatcher *d);
/* Makes the checks of a submit, and takes nothing.  Returns the class of the task and its own
 * requests, or a code.
 * `room`: GPUD_EFULL if the queue is full.  The lock is held. */
int gpi_submit_check(gpud_dispatcher *d, const struct gpud_task_desc *desc, bool room,
                     struct gpi_needs *ret, struct gpud_error *e);
/* Returns the task as the core knows it, without expiry.  It borrows its own requests. */
struct gpi_sched_task gpi_submit_what(const gpud_dispatcher *d, const struct gpud_task_desc *desc,
                                      uint32_t class, const struct gpi_needs *own);

/* tasks.c */
int gpi_tasks_init(gpud_dispatcher *d);
void gpi_tasks_fini(gpud_dispatcher *d);
struct gpi_task *gpi_task_find(gpud_dispatcher *d, uint64_t id);
void gpi_task_free_block(gpud_dispatcher *d, struct gpi_task *t); /* its data are read */
int gpi_task_cancel(gpud_dispatcher *d, uint64_t id, uint32_t how);
/* Sets the task's outcome, and its place among the events.  Exactly once per task.  [C1] */
void gpi_task_end(gpud_dispatcher *d, struct gpi_task *t, uint32_t outcome, uint32_t phase,
                  int32_t code);
void gpi_task_free_parts(gpud_dispatcher *d, struct gpi_task *t); /* data, result, texts */

/* desc.c */
#define GPI_DESC_LEAST offsetof(struct gpud_task_desc, label) /* size of the first version */
/* Reads a record of any version, and checks it.  Returns 0, or a code with field and value. */
int gpi_desc_read(struct gpud_task_desc *to, const void *from, struct gpud_error *e);
int gpi_desc_check(const struct gpud_task_desc *t, struct gpud_error *e); /* of our own length */
/* Returns record `i`, checked: the caller's own record, or a copy in *own. */
int gpi_desc_offered(const struct gpi_offer *o, size_t i, struct gpud_task_desc *own,
                     const struct gpud_task_desc **ret, struct gpud_error *e);

/* payload.c */
/* Releases the lock, so that other threads continue; destroy waits until all have come back. */
void gpi_go_away(gpud_dispatcher *d);
void gpi_come_back(gpud_dispatcher *d);
/* Places the data of record t.  Returns 0, EFULL, ETOOBIG or EINVAL.  May release the lock.  On
 * EFULL *e is unchanged: the next try may find room. */
int gpi_payload_place(gpud_dispatcher *d, const struct gpud_task_desc *desc, size_t label,
                      struct gpi_task *t, struct gpud_error *e);
/* Makes the checks of gpi_payload_place, and places nothing.  Returns 0, ETOOBIG or EINVAL. */
int gpi_payload_check(const gpud_dispatcher *d, const struct gpud_task_desc *desc, size_t label,
                      struct gpud_error *e);
/* For a task that will never start: takes its buffer, else places only a label. */
int gpi_payload_forgo(gpud_dispatcher *d, const struct gpud_task_desc *desc, size_t label,
                      struct gpi_task *t, struct gpud_error *e);
void gpi_payload_give_back(const gpud_dispatcher *d, struct gpi_task *t);
void gpi_payload_free(gpud_dispatcher *d, struct gpi_task *t);
int gpi_buffer_alloc(gpud_dispatcher *d, uint64_t size, void **ret_data);
int gpi_buffer_free(gpud_dispatcher *d, void *data);
void gpi_room_made(gpud_dispatcher *d); /* for submits that wait */

/* attempt.c */
void gpi_attempt_retry(gpud_dispatcher *d, struct gpi_task *t); /* the core starts another */
/* Adds how this attempt ended to the log, and to the texts of all, if there is or will be more
 * than one. */
void gpi_attempt_words(gpud_dispatcher *d, struct gpi_task *t, const char *how, bool again);
/* Makes a fresh one, whose output is yet to be filled; the texts of former attempts stay. */
struct gpi_detail *gpi_task_detail(struct gpi_task *t, uint32_t output_size);
void gpi_task_give_detail(struct gpi_task *t, struct gpi_detail *det); /* the same, made before */
void gpi_detail_free(struct gpi_task *t);

/* texts.c */
/* Writes "exceeded its time limit of 30.000 s (task_limit)", or that the task has stalled.  Call
 * before gpi_task_end, after which the record holds no limit. */
void gpi_words_limit(const gpud_dispatcher *d, const struct gpi_task *t, bool stalled, char *to,
                     size_t size);
/* Writes "process returned 9", where `how` is "process returned"; for a code of the library also
 * its name and sentence. */
void gpi_words_value(const char *how, int32_t code, char *to, size_t size);
/* Writes the text that an outcome still lacks.  Call before its delivery. */
void gpi_words_complete(const gpud_dispatcher *d, struct gpi_task *t);

/* The address lies in the input arena: it may be that of a buffer. */
static inline bool gpi_payload_is_ours(const gpud_dispatcher *d, const void *data)
{
    const unsigned char *p = data;

    return p >= d->arena.input && p < d->arena.input + d->set.input_size;
}

static inline uint32_t gpi_task_index(const gpud_dispatcher *d, const struct gpi_task *t)
{
    return (uint32_t)(t - d->task);
}

static inline struct gpi_class *gpi_task_class(const gpud_dispatcher *d, const struct gpi_task *t)
{
    return &d->class[t->class];
}

/* Frees record, data, result and texts.  The record of held work stays. */
static inline void gpi_task_free(gpud_dispatcher *d, uint32_t i)
{
    struct gpi_task *t = &d->task[i];

    if (t->plain != GPI_PLAIN_ENDED &&
        (t->has_block || t->result_place > GPI_RESULT_OWN || t->detail || t->held))
        gpi_task_free_parts(d, t);
    if (t->held && t->plain != GPI_PLAIN_ENDED) { /* the record stays until its work has ended */
        t->state = GPI_TASK_HELD;
        return;
    }
    t->state = GPI_TASK_FREE;
    t->id = d->free_task;
    d->free_task = i;
}

/* The soft limit of a task from its start, or from its last progress. */
static inline uint64_t gpi_task_soft(const gpud_dispatcher *d, const struct gpi_task *t)
{
    return t->stalls ? gpi_time_min(t->limit, d->stall_limit[gpi_task_index(d, t)]) : t->limit;
}

/* The time by which it must have started. */
static inline uint64_t gpi_task_expires(const gpud_dispatcher *d, const struct gpi_task *t)
{
    return t->expires ? gpi_time_add(t->queued_at, d->expires[gpi_task_index(d, t)]) : GPI_NEVER;
}

#endif
