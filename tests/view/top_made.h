/* SPDX-License-Identifier: MIT */
/* top_made.h - made-up snapshots for the tests of top, and their screens as text. */
#ifndef T_VIEW_TOP_MADE_H
#define T_VIEW_TOP_MADE_H

#include "harness.h"
#include "view/top/top.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)

enum { NOW_MINUTE = 28333333 };
#define NOW (NOW_MINUTE * MINUTE + 30 * SECOND)

/* Widths are those of UTF-8 from one to the other. */
void use_utf8(void);
void end_utf8(void);

/* A row more of a snapshot. */
struct gpv_now_gpu *add_gpu(struct gpv_snapshot *s, enum gpv_does does, const char *class);
struct gpv_now_batch *add_batch(struct gpv_snapshot *s, uint32_t id, const char *name);
struct gpv_now_finding *add_finding(struct gpv_snapshot *s, uint32_t kind, int64_t first,
                                    const char *what);

/* An empty snapshot, and a state that is live. */
void begin(struct gpv_snapshot *s, struct gpv_top_state *t, int columns, int lines);
/* One with three GPUs, two batches and a finding. */
void fill(struct gpv_snapshot *s, struct gpv_top_state *t);
/* Presses a key; returns the task of the wish. */
uint64_t key(struct gpv_top_state *t, const struct gpv_snapshot *s, uint32_t k, enum gpv_wish wish);

/* The screen as text, which the caller frees. */
char *text_of(const struct gpv_top_state *t, const struct gpv_snapshot *s);
void check_has(const struct gpv_top_state *t, const struct gpv_snapshot *s, const char *part,
               bool has);
/* How often it has a text. */
size_t lines_with(const struct gpv_top_state *t, const struct gpv_snapshot *s, const char *part);

#endif
