/* SPDX-License-Identifier: MIT */
/*
 * state.h - the tables of the store in memory.
 *
 * Texts and bytes in them belong to the store until it is closed, so that a copy of the state is a
 * copy of its tables.  A pointer to a row lives until a row is added to its table.
 */
#ifndef T_MEMORY_STATE_H
#define T_MEMORY_STATE_H

#include "queue/store.h"

struct mem_task {
    struct gpq_task row;
    uint32_t was; /* state before the present operation; 0 = no such task yet */
    bool touched; /* a follower learns of it, even if the state is the same */
    bool wished;  /* the present operation gave it the wish to cancel */
    bool failed;  /* it failed in the present operation: limits are to be checked */
};

struct mem_batch {
    struct gpq_batch row; /* its counts are those of forgotten tasks, see mem_count */
    uint32_t numbers;     /* the last number that a task got */
    uint64_t last_end;    /* the latest end of a task, of any round */
    bool noted;           /* it has ended in this operation, and notifies */
};

/* A task that a batch has joined. */
struct mem_member {
    uint32_t batch;
    uint64_t task;
};

struct mem_edge {
    uint64_t task; /* this one waits */
    struct gpq_after after;
    bool met;
};

struct mem_spec {
    uint32_t id;
    struct gpq_spec spec; /* after and held are empty */
};

struct mem_shape {
    uint32_t id;
    struct gpq_bytes request;
};

struct mem_round {
    uint64_t task;
    struct gpq_round row;
};

struct mem_request {
    const char *id;
    uint64_t made;
    struct gpq_submitted answer;
    const struct gpq_placed *placed;
    uint32_t n_placed;
};

/* Of any round; readers show that of the present one. */
struct mem_result {
    uint32_t round;
    struct gpq_result row;
};

struct mem_span {
    uint64_t id;
    struct gpq_span row;
};

/* Every table: type of a row, name. */
#define MEM_TABLES(X)               \
    X(struct mem_task, tasks)       \
    X(struct mem_batch, batches)    \
    X(struct mem_member, members)   \
    X(struct mem_edge, edges)       \
    X(struct mem_spec, specs)       \
    X(struct mem_shape, shapes)     \
    X(struct gpq_attempt, attempts) \
    X(struct mem_round, rounds)     \
    X(struct mem_result, results)   \
    X(struct mem_request, requests) \
    X(struct gpq_mark, marks)       \
    X(struct mem_span, spans)

#define MEM_FIELD(type, name) \
    type *name;               \
    size_t n_##name;
struct mem_state {
    MEM_TABLES(MEM_FIELD)
    uint32_t last_batch, last_spec, last_shape;
    uint64_t last_span;
    int64_t order; /* of the last task that was added */
    int64_t low;   /* the least place that `first` has used */
};
#undef MEM_FIELD

struct mem_store {
    struct gpq_store store;
    struct mem_state now, committed;
    bool within; /* a transaction */
    struct mem_kept *kept;
};

/* Rows of a table, in their order. */
#define MEM_EACH(type, row, state, table) \
    for (type *row = (state)->table; row < (state)->table + (state)->n_##table; row++)
/* Adds a row of zeros at the end, and returns it. */
#define MEM_ADD(state, table)                                                                 \
    ((state)->table = mem_grown((state)->table, (state)->n_##table, sizeof(*(state)->table)), \
     (state)->table + (state)->n_##table++)
/* Forgets a row; those behind it move up. */
#define MEM_DROP(state, table, row) \
    mem_closed_up((row), (size_t)((state)->table + --(state)->n_##table - (row)), sizeof(*(row)))

void *mem_grown(void *table, size_t n, size_t size);
void mem_closed_up(void *row, size_t n_behind, size_t size);
void mem_copy(struct mem_state *to, const struct mem_state *from);
void mem_free(struct mem_state *s);

/* Memory, or a copy in it, that lives as long as the store. */
void *mem_room(struct mem_store *m, size_t size);
const char *mem_text(struct mem_store *m, const char *text);
struct gpq_bytes mem_bytes(struct mem_store *m, struct gpq_bytes bytes);
void mem_forget_kept(struct mem_store *m);

bool mem_same(struct gpq_bytes a, struct gpq_bytes b);

/* Each returns NULL if there is none. */
struct mem_task *mem_task(struct mem_state *s, uint64_t id);
struct mem_batch *mem_batch(struct mem_state *s, uint32_t id);
struct mem_spec *mem_spec(struct mem_state *s, uint32_t id);
struct gpq_attempt *mem_attempt(struct mem_state *s, uint64_t task, uint32_t number);

/* Adds a row at its place by id. */
struct mem_task *mem_new_task(struct mem_state *s, uint64_t id);
uint32_t mem_new_spec(struct mem_store *m, const struct gpq_spec *spec);
/* The id of the shape with these bytes, which is made if there is none. */
uint32_t mem_shape_of(struct mem_store *m, struct gpq_bytes request);

/* Gives a task its state, and notes since when it is READY. */
void mem_set_state(struct mem_task *t, uint32_t state, uint64_t now);
bool mem_waits(const struct mem_task *t); /* HELD or READY */
bool mem_is_own(const struct mem_task *t, uint32_t batch);
/* Whether the task is in the batch: its own or joined. */
bool mem_is_in(const struct mem_state *s, uint64_t task, uint32_t batch);
/* The batch with its counts. */
struct gpq_batch mem_count(const struct mem_state *s, const struct mem_batch *b);
bool mem_selected(const struct mem_state *s, const struct mem_task *t,
                  const struct gpq_select *which);

#endif
