/* SPDX-License-Identifier: MIT */
/*
 * steps.h - short forms of a store's operations, for cases written by hand.
 *
 * Each that changes something is a transaction of its own, at the time NOW unless it is given one,
 * and must succeed; those whose name begins with try_ return the code.  Inside a transaction of the
 * case (step_begin) they take part in it.
 */
#ifndef T_QUEUE_STEPS_H
#define T_QUEUE_STEPS_H

#include "engines.h"

enum { NOW = 1000, AFTERS = 4 };

/* A submit of one spec; zero is the default of each field. */
struct sketch {
    uint64_t at;       /* 0 = NOW */
    const char *items; /* contents, with spaces between; none = a submit of no tasks */
    const char *request, *name, *key, *stamp, *task_name, *content, *shape;
    struct gpq_after after[AFTERS];
    uint64_t begin, expires, backoff, backoff_cap;
    uint32_t retries[GPQ_CAUSES];
    uint32_t batch, at_once, max_fails, percent, line;
    int32_t priority;
    bool once, held, fails_limited, open, join, join_anyway, only_try, notify;
};

void step_begin(struct gpq_store *s);
void step_commit(struct gpq_store *s);
void step_rollback(struct gpq_store *s);

/* ret may be NULL. */
int try_submit(struct gpq_store *s, const struct sketch *what, struct gpq_submitted *ret);
/* Returns the batch. */
uint32_t submit(struct gpq_store *s, const struct sketch *what);
#define SUBMIT(s, ...) submit((s), &(const struct sketch){ __VA_ARGS__ })
#define TRY_SUBMIT(s, ...) try_submit((s), &(const struct sketch){ __VA_ARGS__ }, NULL)
/* How many items were added, joined, joined again and changed, as text: "1 0 2 0". */
const char *placed(struct gpq_store *s, const struct sketch *what);
#define PLACED(s, ...) placed((s), &(const struct sketch){ __VA_ARGS__ })
void seal(struct gpq_store *s, uint32_t batch);

int64_t try_claim(struct gpq_store *s, uint64_t task);
uint32_t claim(struct gpq_store *s, uint64_t task);
int try_complete(struct gpq_store *s, const struct gpq_end *end);
/* Ends the present attempt.  Returns the result of complete. */
int end(struct gpq_store *s, uint64_t task, uint32_t outcome, uint64_t at);
int try_return(struct gpq_store *s, const struct gpq_back *back);
int try_give_back(struct gpq_store *s, uint64_t task, uint32_t attempt, uint32_t why);
/* Claims it, and ends the attempt. */
int run(struct gpq_store *s, uint64_t task, uint32_t outcome);

#define ONE(id) (&(const struct gpq_select){ .tasks = &(const uint64_t){ id }, .n_tasks = 1 })
#define BATCH(id) (&(const struct gpq_select){ .batch = (id) })
#define ALL (&(const struct gpq_select){ 0 })
int64_t cancel(struct gpq_store *s, const struct gpq_select *which);
int64_t retry(struct gpq_store *s, const struct gpq_select *which, uint64_t at);
int64_t hold(struct gpq_store *s, const struct gpq_select *which, bool held);
int64_t respec(struct gpq_store *s, const struct gpq_select *which, const struct gpq_spec *spec);
int64_t first(struct gpq_store *s, const struct gpq_select *which);
int64_t due(struct gpq_store *s, uint64_t at, uint64_t *ret_next);
int64_t purge(struct gpq_store *s, uint64_t before, bool keep_failed, uint32_t most);

/* Views of a store, in buffers that live until some more calls. */
/* "held after time", "ready", "running 2", "running 2 cancel", "done skipped by 1.2". */
const char *shown(struct gpq_store *s, uint64_t task);
/* "1.2 1.1": the READY tasks of all shapes, each shape's in the order of Q7. */
const char *ready(struct gpq_store *s);
/* "1.3": the task that gets the next turn of the batch, or "". */
const char *next_turn(struct gpq_store *s, uint32_t batch);
/* The ids of the selected tasks. */
const char *listed(struct gpq_store *s, const struct gpq_select *which);
struct gpq_task task(struct gpq_store *s, uint64_t id);   /* without texts */
struct gpq_batch batch(struct gpq_store *s, uint32_t id); /* without texts */
bool batch_is_there(struct gpq_store *s, uint32_t id);
/* "1: error at attempt 1": rounds before the present one, with ", " between. */
const char *rounds(struct gpq_store *s, uint64_t task);

#endif
