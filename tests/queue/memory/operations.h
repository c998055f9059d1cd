/* SPDX-License-Identifier: MIT */
/* operations.h - the operations of the engine in memory, as in struct gpq_engine. */
#ifndef T_MEMORY_OPERATIONS_H
#define T_MEMORY_OPERATIONS_H

#include "state.h"

static inline struct mem_store *mem_of(struct gpq_store *s)
{
    return (struct mem_store *)s;
}

/* submit.c */
int mem_submit(struct gpq_store *s, uint64_t now, const struct gpq_submit *what,
               struct gpq_submitted *ret, struct gpq_placed *placed, struct gpq_error *e);
int mem_seal(struct gpq_store *s, uint64_t now, uint32_t batch, struct gpq_error *e);

/* attempts.c */
int64_t mem_claim(struct gpq_store *s, uint64_t now, uint64_t task, const char *devices,
                  const char *run, struct gpq_error *e);
int mem_complete(struct gpq_store *s, const struct gpq_end *end, struct gpq_error *e);
int mem_give_back(struct gpq_store *s, uint64_t now, const struct gpq_back *back,
                  struct gpq_error *e);

/* selections.c */
int64_t mem_cancel(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                   struct gpq_error *e);
int64_t mem_retry(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                  struct gpq_error *e);
int64_t mem_hold(struct gpq_store *s, uint64_t now, const struct gpq_select *which, bool held,
                 struct gpq_error *e);
int64_t mem_respec(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                   const struct gpq_spec *spec, struct gpq_error *e);
int64_t mem_first(struct gpq_store *s, const struct gpq_select *which, struct gpq_error *e);
int64_t mem_due(struct gpq_store *s, uint64_t now, uint64_t *ret_next, struct gpq_error *e);

/* purge.c */
int64_t mem_purge(struct gpq_store *s, uint64_t before, bool keep_failed, uint32_t most,
                  uint64_t *from, struct gpq_error *e);

/* facts.c */
int mem_mark(struct gpq_store *s, const struct gpq_mark *mark, struct gpq_error *e);
int mem_unmark(struct gpq_store *s, const char *kind, const char *subject, struct gpq_error *e);
int mem_span_begin(struct gpq_store *s, const struct gpq_span *span, uint64_t *ret_id,
                   struct gpq_error *e);
int mem_span_end(struct gpq_store *s, uint64_t id, uint64_t until, uint64_t until_boot,
                 struct gpq_error *e);
int mem_marks(struct gpq_store *s, gpq_mark_fn fn, void *user, struct gpq_error *e);
int mem_spans(struct gpq_store *s, uint64_t since, uint64_t from, gpq_span_fn fn, void *user,
              struct gpq_error *e);

/* readers.c */
int mem_batches(struct gpq_store *s, uint32_t from, gpq_batch_fn fn, void *user,
                struct gpq_error *e);
int mem_batch_named(struct gpq_store *s, const char *name, uint32_t number, uint32_t *ret_batch,
                    struct gpq_error *e);
int mem_tasks(struct gpq_store *s, const struct gpq_select *which, uint64_t after, bool whole,
              gpq_task_fn fn, void *user, struct gpq_error *e);
int mem_ready(struct gpq_store *s, uint32_t shape, int32_t priority, int64_t order, uint32_t most,
              gpq_task_fn fn, void *user, struct gpq_error *e);
int mem_turn(struct gpq_store *s, uint32_t batch, gpq_task_fn fn, void *user, struct gpq_error *e);
int mem_shapes(struct gpq_store *s, gpq_shape_fn fn, void *user, struct gpq_error *e);
int mem_shape(struct gpq_store *s, uint32_t id, gpq_shape_fn fn, void *user, struct gpq_error *e);
int mem_running(struct gpq_store *s, gpq_attempt_fn fn, void *user, struct gpq_error *e);
int mem_attempts(struct gpq_store *s, uint64_t task, gpq_attempt_fn fn, void *user,
                 struct gpq_error *e);
int mem_history(struct gpq_store *s, uint32_t batch, uint32_t last, uint64_t since,
                const struct gpq_attempt *behind, bool names, gpq_history_fn fn, void *user,
                struct gpq_error *e);
int mem_rounds(struct gpq_store *s, uint64_t task, gpq_round_fn fn, void *user,
               struct gpq_error *e);
int mem_after(struct gpq_store *s, uint64_t task,
              int (*fn)(const struct gpq_after *a, bool met, void *user), void *user,
              struct gpq_error *e);
int mem_spec_row(struct gpq_store *s, uint32_t id,
                 int (*fn)(const struct gpq_spec *spec, void *user), void *user,
                 struct gpq_error *e);
int mem_result(struct gpq_store *s, uint64_t task, gpq_result_fn fn, void *user,
               struct gpq_error *e);
int mem_names_file(struct gpq_store *s, uint64_t task, uint32_t attempt, struct gpq_error *e);
int mem_result_files(struct gpq_store *s, gpq_result_fn fn, void *user, struct gpq_error *e);
/* Finds nothing: the model has no counts, and no file. */
int64_t mem_check(struct gpq_store *s, uint64_t now, bool repair, gpq_finding_fn fn, void *user,
                  struct gpq_error *e);

#endif
