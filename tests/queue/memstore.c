/* SPDX-License-Identifier: MIT */
/* memstore.c - the engine in memory: its table of operations, and its transactions. */
#include "memstore.h"

#include <stdlib.h>

#include "memory/operations.h"

static void mem_close(struct gpq_store *store)
{
    struct mem_store *m = mem_of(store);

    if (!m)
        return;
    mem_free(&m->now);
    mem_free(&m->committed);
    mem_forget_kept(m);
    free(m->store.changes);
    free(m);
}

static int mem_begin(struct gpq_store *store, struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);

    if (m->within)
        return gpq_fail(e, GPQ_EINVAL, "begin: within a transaction");
    mem_copy(&m->committed, &m->now);
    m->within = true;
    m->store.n_changes = 0;
    m->store.notes = false;
    return 0;
}

static int mem_commit(struct gpq_store *store, struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);

    if (!m->within)
        return gpq_fail(e, GPQ_EINVAL, "commit: no transaction");
    mem_free(&m->committed);
    m->within = false;
    return 0;
}

static void mem_rollback(struct gpq_store *store)
{
    struct mem_store *m = mem_of(store);

    if (!m->within)
        return;
    mem_free(&m->now);
    m->now = m->committed;
    m->committed = (struct mem_state){ 0 };
    m->within = false;
    m->store.n_changes = 0;
    m->store.notes = false;
}

static const struct gpq_engine engine = {
    .name = "memory",
    .close = mem_close,
    .begin = mem_begin,
    .commit = mem_commit,
    .rollback = mem_rollback,
    .submit = mem_submit,
    .seal = mem_seal,
    .claim = mem_claim,
    .complete = mem_complete,
    .give_back = mem_give_back,
    .cancel = mem_cancel,
    .retry = mem_retry,
    .hold = mem_hold,
    .respec = mem_respec,
    .first = mem_first,
    .due = mem_due,
    .purge = mem_purge,
    .mark = mem_mark,
    .unmark = mem_unmark,
    .span_begin = mem_span_begin,
    .span_end = mem_span_end,
    .batches = mem_batches,
    .batch_named = mem_batch_named,
    .tasks = mem_tasks,
    .ready = mem_ready,
    .turn = mem_turn,
    .shapes = mem_shapes,
    .shape = mem_shape,
    .running = mem_running,
    .attempts = mem_attempts,
    .history = mem_history,
    .rounds = mem_rounds,
    .after = mem_after,
    .spec = mem_spec_row,
    .result = mem_result,
    .names_file = mem_names_file,
    .result_files = mem_result_files,
    .marks = mem_marks,
    .spans = mem_spans,
    .check = mem_check,
};

int mem_open(const struct gpq_options *options, struct gpq_store **ret, struct gpq_error *e)
{
    struct mem_store *m = calloc(1, sizeof(*m));

    (void)options;
    if (!m)
        return gpq_fail(e, GPQ_ENOMEM, "no memory");
    m->store.engine = &engine;
    *ret = &m->store;
    return 0;
}
