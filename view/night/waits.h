/* SPDX-License-Identifier: MIT */
/*
 * waits.h - how many tasks of a batch waited at each time, and why its first one did not start.
 *
 * The number follows from the attempts: a task waits from `ready` of an attempt until its start.
 * Tasks that have not started yet count from the time at which their batch was made, those that
 * were returned from then on.
 *
 * Tasks that wait for their turn in the batch (--at-once) become ready with it.  Before that they
 * count while the reason of their shape is "at once", from the time at which their batch was made to
 * their first attempt.  Of later rounds only those count that wait still at the end of the night,
 * from the last end of the batch on: records do not tell when the round began.
 *
 * The reason is that of the first task of the shape, so it is one for all batches that share a
 * shape.  Where tasks of several shapes wait, the reason of a task of the batch comes first, then
 * that of the earliest task.
 */
#ifndef GPV_WAITS_H
#define GPV_WAITS_H

#include "view/records.h"

/* A stretch with one number and one reason. */
struct gpv_wait {
    int64_t from, to;
    uint64_t tasks;
    uint32_t word;   /* text: "BUSY"; 0: none is known */
    uint32_t reason; /* index of the row, or GPV_NONE */
    bool kept;       /* its tasks need several GPUs each, and one is kept free */
};
typedef int (*gpv_wait_fn)(const struct gpv_wait *w, void *user);

/* Stretches of a batch (an index) with waiting tasks, in order; stretches without one are left
 * out.  Returns as gpv_use_each. */
int gpv_wait_each(const struct gpv_night *n, uint32_t batch, gpv_wait_fn fn, void *user);

/* The kinds of reasons that people see: many names of enum gpud_reason_kind are one of them.
 * name, word, text */
#define GPV_WHY_MAP(X)                                                                         \
    X(BUSY, "busy", "every GPU that it may use is busy")                                       \
    X(LIMIT, "limit", "a limit of its own is reached")                                         \
    X(GATHERING, "gathering", "it has some of the GPUs that it needs")                         \
    X(LOADING, "loading", "its model is loading, or another one leaves")                       \
    X(OUT, "out", "GPUs are out of use")                                                       \
    X(PAUSED, "paused", "the queue or its class is paused")                                    \
    X(OTHER, "other", "another reason")                                                        \
    X(UNSEEN, "unseen", "no reason was recorded")
#define GPV_X_WHY(name, word, text) GPV_WHY_##name,
enum gpv_why { GPV_WHY_MAP(GPV_X_WHY) GPV_WHYS };
#undef GPV_X_WHY
const char *gpv_why_word(uint32_t why);
const char *gpv_why_text(uint32_t why);
/* Of a stretch: by its word, and a wide task gathers while a GPU is kept free. */
enum gpv_why gpv_why_of(const struct gpv_night *n, const struct gpv_wait *w);
/* kept: the tasks need several GPUs each, and one is kept free. */
enum gpv_why gpv_why_of_word(const char *word, bool kept);

/* Task-time of a batch by reason: ns times tasks, as a sum.  0, or -1 without memory.  ret_text, if
 * it is not NULL: of the rows of each reason the text that had the most of it, or 0. */
int gpv_wait_sum(const struct gpv_night *n, uint32_t batch, double ret[GPV_WHYS],
                 uint32_t ret_text[GPV_WHYS]);
/* Parts of a sum in percent: whole numbers, whose sum is 100 unless all is 0. */
void gpv_wait_percents(const double sum[GPV_WHYS], unsigned ret[GPV_WHYS]);
/* The text of a reason without the word with which it begins: "has 3 workers" of "SEATS, has 3
 * workers". */
const char *gpv_reason_detail(const char *text);

#endif
