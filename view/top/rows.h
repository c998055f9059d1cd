/* SPDX-License-Identifier: MIT */
/* rows.h - the rows of a part: filtered, in their order, and alike GPUs folded into one. */
#ifndef GPV_ROWS_H
#define GPV_ROWS_H

#include "view/top/top.h"

/* Row i has item[first[i]] up to item[first[i + 1]]: indices into the list of the snapshot. */
struct gpv_rows {
    uint32_t *item, *first;
    size_t n;
};

/* -1: no memory.  The caller frees. */
int gpv_rows_make(const struct gpv_top_state *t, const struct gpv_snapshot *s, enum gpv_part part,
                  bool fold, struct gpv_rows *ret);
void gpv_rows_free(struct gpv_rows *r);

/* Rows that the snapshot has of a part. */
size_t gpv_rows_of(const struct gpv_snapshot *s, enum gpv_part part);
/* The number of a row, the same in each snapshot.  It is not 0. */
uint64_t gpv_row_key(const struct gpv_snapshot *s, enum gpv_part part, uint32_t item);
/* The index of the chosen row; 0 if it has gone. */
size_t gpv_row_chosen(const struct gpv_top_state *t, const struct gpv_snapshot *s,
                      enum gpv_part part, const struct gpv_rows *r);

enum { GPV_LABEL = 128 };
/* "15.754 rec-11" */
char *gpv_task_label(const struct gpv_snapshot *s, uint64_t task, char ret[GPV_LABEL]);
/* "15 rec-11" */
char *gpv_batch_label(const struct gpv_now_batch *b, char ret[GPV_LABEL]);
/* "3" of "gpu:3", "1:2" of "gpu:1:2"; other names as they are. */
const char *gpv_gpu_short(const char *name);
/* "0,4-5" of "0, 4-5": takes the spaces behind commas away. */
char *gpv_gpus_packed(char *list);

#endif
