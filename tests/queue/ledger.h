/* SPDX-License-Identifier: MIT */
/*
 * ledger.h - the facts that the caller of a store has from its results alone, against the store.
 *
 * `now` includes the transaction in progress; `kept` has the facts that a commit has acknowledged.
 */
#ifndef T_LEDGER_H
#define T_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/files/files.h"
#include "queue/store.h"

enum {
    LEDGER_TASKS = 4096,
    LEDGER_ENDS = 8192,
    LEDGER_BATCHES = 1024,
    LEDGER_FORGOTTEN = 0 /* the state of a purged task */
};

struct known_task {
    uint64_t id;
    uint32_t content; /* number of its content (ledger_content) */
    uint32_t state, outcome, attempt;
    bool cancel;
};

/* An attempt that was completed, with its result. */
struct known_end {
    uint64_t task;
    uint32_t attempt, outcome;
    uint32_t size; /* of the result; 0 = none */
    bool in_file;
};

/* The last submit. */
struct known_request {
    uint64_t number; /* 0 = none */
    uint32_t batch;
    uint64_t at;
};

struct facts {
    struct known_task tasks[LEDGER_TASKS];
    struct known_end ends[LEDGER_ENDS];
    size_t n_tasks, n_ends;
    bool open[LEDGER_BATCHES];
    uint32_t last_batch;
    struct known_request sent;
    bool purged; /* counts of batches include forgotten tasks */
};

/* An attempt whose command was started.  Nothing takes that back. */
struct known_start {
    uint64_t task;
    uint32_t attempt;
};

struct ledger {
    struct facts now, kept;
    struct known_start starts[LEDGER_ENDS];
    size_t n_starts, kept_starts;
};

/* The transaction is acknowledged, or has not happened. */
void ledger_keep(struct ledger *l);
void ledger_drop(struct ledger *l);

struct known_task *ledger_task(struct facts *f, uint64_t id);
void ledger_add(struct facts *f, uint64_t task, uint32_t content);
void ledger_end(struct facts *f, const struct gpq_end *end);
void ledger_start(struct ledger *l, uint64_t task, uint32_t attempt);
/* Follows the changes that a transaction has reported. */
void ledger_change(struct facts *f, const struct gpq_change *c, size_t n);

/* The content of tasks with this number, and the results of attempts. */
void ledger_content(uint32_t number, char ret[16]);
void ledger_result(uint64_t task, uint32_t attempt, void *ret, size_t size);
void ledger_file(uint64_t task, uint32_t attempt, char ret[40]);

/* Each compares with a store.  Returns 0; 1, with a text, for a difference; or a GPQ_E code. */
int ledger_compare(const struct facts *f, struct gpq_store *s, char text[256], struct gpq_error *e);
/* Every result that the store has is whole.  `results` is the directory of the files. */
int ledger_results(const struct facts *f, struct gpq_store *s, const struct gpq_files *files,
                   const char *results, char text[256], struct gpq_error *e);
/* Each start is that of a recorded attempt. */
int ledger_starts(struct ledger *l, struct gpq_store *s, char text[256], struct gpq_error *e);

#endif
