/* SPDX-License-Identifier: MIT */
/* ops.h - the operations of the engine (store.h), by the file that has them. */
#ifndef GPQ_SQLITE_OPS_H
#define GPQ_SQLITE_OPS_H

#include "queue/store.h"

/* submit.c */
int gpq_sqlite_submit(struct gpq_store *s, uint64_t now, const struct gpq_submit *what,
                      struct gpq_submitted *ret, struct gpq_placed *placed, struct gpq_error *e);
int gpq_sqlite_seal(struct gpq_store *s, uint64_t now, uint32_t batch, struct gpq_error *e);
/* attempt.c */
int64_t gpq_sqlite_claim(struct gpq_store *s, uint64_t now, uint64_t task, const char *devices,
                         const char *run, struct gpq_error *e);
int gpq_sqlite_complete(struct gpq_store *s, const struct gpq_end *end, struct gpq_error *e);
int gpq_sqlite_give_back(struct gpq_store *s, uint64_t now, uint64_t task, uint32_t attempt,
                         uint32_t why, const char *text, struct gpq_error *e);
/* change.c */
int64_t gpq_sqlite_cancel(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                          struct gpq_error *e);
int64_t gpq_sqlite_retry(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                         struct gpq_error *e);
int64_t gpq_sqlite_hold(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                        bool held, struct gpq_error *e);
int64_t gpq_sqlite_respec(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                          const struct gpq_spec *spec, struct gpq_error *e);
int64_t gpq_sqlite_first(struct gpq_store *s, const struct gpq_select *which, struct gpq_error *e);
int64_t gpq_sqlite_due(struct gpq_store *s, uint64_t now, uint64_t *ret_next, struct gpq_error *e);
/* check.c */
int64_t gpq_sqlite_check(struct gpq_store *s, uint64_t now, bool repair, gpq_finding_fn fn,
                         void *user, struct gpq_error *e);
/* purge.c */
int64_t gpq_sqlite_purge(struct gpq_store *s, uint64_t before, bool keep_failed, uint32_t most,
                         uint64_t *from, struct gpq_error *e);
/* facts.c */
int gpq_sqlite_mark(struct gpq_store *s, const struct gpq_mark *m, struct gpq_error *e);
int gpq_sqlite_unmark(struct gpq_store *s, const char *kind, const char *subject,
                      struct gpq_error *e);
int gpq_sqlite_marks(struct gpq_store *s, gpq_mark_fn fn, void *user, struct gpq_error *e);
int gpq_sqlite_span_begin(struct gpq_store *s, const struct gpq_span *span, uint64_t *ret_id,
                          struct gpq_error *e);
int gpq_sqlite_span_end(struct gpq_store *s, uint64_t id, uint64_t until, uint64_t until_boot,
                        struct gpq_error *e);
int gpq_sqlite_spans(struct gpq_store *s, uint64_t since, uint64_t from, gpq_span_fn fn, void *user,
                     struct gpq_error *e);
/* query.c */
int gpq_sqlite_batches(struct gpq_store *s, uint32_t from, gpq_batch_fn fn, void *user,
                       struct gpq_error *e);
int gpq_sqlite_batch_named(struct gpq_store *s, const char *name, uint32_t number,
                           uint32_t *ret_batch, struct gpq_error *e);
int gpq_sqlite_tasks(struct gpq_store *s, const struct gpq_select *which, uint64_t after,
                     bool whole, gpq_task_fn fn, void *user, struct gpq_error *e);
int gpq_sqlite_ready(struct gpq_store *s, uint32_t shape, int32_t priority, int64_t order,
                     uint32_t most, gpq_task_fn fn, void *user, struct gpq_error *e);
int gpq_sqlite_shapes(struct gpq_store *s, gpq_shape_fn fn, void *user, struct gpq_error *e);
int gpq_sqlite_shape(struct gpq_store *s, uint32_t id, gpq_shape_fn fn, void *user,
                     struct gpq_error *e);
int gpq_sqlite_running(struct gpq_store *s, gpq_attempt_fn fn, void *user, struct gpq_error *e);
int gpq_sqlite_attempts(struct gpq_store *s, uint64_t task, gpq_attempt_fn fn, void *user,
                        struct gpq_error *e);
int gpq_sqlite_rounds(struct gpq_store *s, uint64_t task, gpq_round_fn fn, void *user,
                      struct gpq_error *e);
int gpq_sqlite_after(struct gpq_store *s, uint64_t task,
                     int (*fn)(const struct gpq_after *a, bool met, void *user), void *user,
                     struct gpq_error *e);
int gpq_sqlite_result(struct gpq_store *s, uint64_t task, gpq_result_fn fn, void *user,
                      struct gpq_error *e);
int gpq_sqlite_result_files(struct gpq_store *s, gpq_result_fn fn, void *user,
                            struct gpq_error *e);
int gpq_sqlite_names_file(struct gpq_store *s, uint64_t task, uint32_t attempt,
                          struct gpq_error *e);

#endif
