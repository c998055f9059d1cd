/* SPDX-License-Identifier: MIT */
/* ours.h - the store as the cells use it: submits lines, and claims and completes them in order. */
#ifndef BENCH_QUEUE_OURS_H
#define BENCH_QUEUE_OURS_H

#include <stdint.h>

#include "load.h"
#include "queue/store.h"
#include "side.h"
#include "tap.h"

struct bq_ours {
    struct gpq_store *store;
    sqlite3 *db; /* the engine's connection */
    uint64_t now;
    uint64_t submits;
    uint32_t list; /* the number in the name of its batches, as of the file of a list */
    uint64_t *tasks; /* that claim and complete take next */
    uint32_t n_tasks, most_tasks, next[BQ_OPS];
    struct gpq_placed *placed;
};

/* Makes a store in an empty directory, with a log of full length (bq_disk_log), and opens it; or
 * opens that in a directory, and makes it if there is none.  Each returns: 0, or -1 after a
 * complaint. */
int bq_ours_make(struct bq_ours *o, const char *directory);
int bq_ours_open(struct bq_ours *o, const char *directory);
void bq_ours_close(struct bq_ours *o);

/* Writes the path of the store's file; ret has BQ_PATH bytes. */
void bq_ours_file(const struct bq_ours *o, char *ret);

/* Submits the first n items of a load in one commit, as a list: joining is on.  The tasks are to
 * be claimed, unless `aside`. */
int bq_ours_submit(struct bq_ours *o, const struct bq_load *load, uint32_t n, int aside);

/* Does `op` for the next n tasks in one commit.  Returns: 0, or -1 after a complaint. */
int bq_ours_commit(struct bq_ours *o, enum bq_op op, const struct bq_load *load, uint32_t n);

/* Finds the first n READY tasks of a shape by a reader, and claims them in one commit. */
int bq_ours_claim_head(struct bq_ours *o, uint32_t shape, uint32_t n);

/* Returns the id of the shape with these bytes; 0 after a complaint. */
uint32_t bq_ours_shape(struct bq_ours *o, const struct gpq_bytes *shape);

#endif
