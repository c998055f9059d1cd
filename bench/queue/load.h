/* SPDX-License-Identifier: MIT */
/* load.h - the tasks of the benchmark: lines of a file, each a command with a few arguments. */
#ifndef BENCH_QUEUE_LOAD_H
#define BENCH_QUEUE_LOAD_H

#include <stdint.h>

#include "queue/store.h"

#define BQ_EPOCH UINT64_C(1764370000000000000) /* the first time */
#define BQ_DEVICES "0"
#define BQ_RUN "5d0f2c7be1a94836 5b1e9c1e-8f0d-4d2a-9a43-0c6f3e5b7a21"

/* The items of one submit, with their texts. */
struct bq_load {
    struct gpq_spec spec;
    struct gpq_item *items;
    char *texts;
    uint32_t most;
};

/* Makes room for submits of up to `most` items.  Returns: 0, or -1 after a complaint. */
int bq_load_open(struct bq_load *l, uint32_t most);
void bq_load_close(struct bq_load *l);

/* Fills the first n items: no two of all lines from `first` on are equal. */
void bq_load_fill(struct bq_load *l, uint64_t first, uint32_t n);

/* The state of the files that a command names, as a submit and an outcome have it. */
extern const struct gpq_bytes bq_stamp;

#endif
