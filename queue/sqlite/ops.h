/* SPDX-License-Identifier: MIT */
/*
 * ops.h - the operations of the engine, by the file that has them: gpq_sqlite_claim is `claim` of
 * struct gpq_engine (store.h), with its type.
 */
#ifndef GPQ_SQLITE_OPS_H
#define GPQ_SQLITE_OPS_H

#include "queue/store.h"

#define GPQ_SQLITE_OPS(X)                                                                     \
    /* submit.c */ X(submit) X(seal)                                                          \
    /* attempt.c */ X(claim) X(complete) X(give_back)                                         \
    /* change.c */ X(cancel) X(retry) X(hold) X(respec) X(first) X(due)                       \
    /* check.c */ X(check)                                                                    \
    /* purge.c */ X(purge)                                                                    \
    /* facts.c */ X(mark) X(unmark) X(marks) X(span_begin) X(span_end) X(spans)               \
    /* query.c */ X(batches) X(batch_named) X(tasks) X(ready) X(turn) X(shapes) X(shape)      \
    X(running) X(attempts) X(rounds) X(after) X(result) X(result_files) X(names_file)         \
    /* history.c */ X(history)                                                                \
    /* spec.c */ X(spec)

#define GPQ_X_OP(name) extern __typeof__(*((struct gpq_engine *)0)->name) gpq_sqlite_##name;
GPQ_SQLITE_OPS(GPQ_X_OP)
#undef GPQ_X_OP

#endif
