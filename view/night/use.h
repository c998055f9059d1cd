/* SPDX-License-Identifier: MIT */
/*
 * use.h - the uses of the time of a GPU: at each moment exactly one of these.
 *
 * The uses of a span add up to its length, for each GPU, in every view.                    [V3]
 * Where several apply, the first of the list counts: a GPU of which one task of two ends ok has
 * worked; a drained GPU whose last task runs has worked, too.
 */
#ifndef GPV_USE_H
#define GPV_USE_H

#include "view/records.h"

/* name, word, text */
#define GPV_USE_MAP(X)                                                                         \
    X(OK, "ok", "worked")                                                                      \
    X(LOST, "lost", "worked in vain")                                                          \
    X(LOADING, "loading", "loading models")                                                    \
    X(KEPT, "kept", "kept free for a wide task")                                               \
    X(OUT, "out", "out of use")                                                                \
    X(UNKNOWN, "unknown", "not known: no agent ran")                                           \
    X(LIMITED, "limited", "idle although tasks waited")                                        \
    X(IDLE, "idle", "idle: nothing waited")

#define GPV_X_USE(name, word, text) GPV_USE_##name,
enum gpv_use { GPV_USE_MAP(GPV_X_USE) GPV_USES };
#undef GPV_X_USE

const char *gpv_use_word(uint32_t use); /* "ok" */
const char *gpv_use_text(uint32_t use); /* "worked" */

/* The rows of a GPU that are open at a moment: their numbers. */
struct gpv_open {
    uint32_t work;    /* attempts that end ok, or still run */
    uint32_t in_vain; /* attempts that end otherwise */
    uint32_t loading; /* BOOT and UNLOAD */
    uint32_t kept, out;
};

/* `waits`: a reason is open, of any shape.  `known`: an agent runs. */
enum gpv_use gpv_use_of(const struct gpv_open *open, bool waits, bool known);

struct gpv_uses {
    int64_t ns[GPV_USES];
};

/* A stretch of one use.  Neighbours differ. */
struct gpv_stretch {
    int64_t from, to;
    enum gpv_use use;
};
typedef int (*gpv_stretch_fn)(const struct gpv_stretch *s, void *user);

/* Calls fn for each stretch of a GPU between two times, in order and without a gap, until it
 * returns another value than 0, which is returned then.  It passes over all rows, and needs no
 * memory. */
int gpv_use_each(const struct gpv_night *n, uint32_t gpu, int64_t from, int64_t to,
                 gpv_stretch_fn fn, void *user);

/* The sum of a GPU, and that of all of them.  They return 0. */
int gpv_use_sum(const struct gpv_night *n, uint32_t gpu, int64_t from, int64_t to,
                struct gpv_uses *ret);
int gpv_use_sum_all(const struct gpv_night *n, int64_t from, int64_t to, struct gpv_uses *ret);

/* The same for `bins` equal parts of the time (differing by 1 ns), ret[bins]. */
int gpv_use_bins(const struct gpv_night *n, uint32_t gpu, int64_t from, int64_t to, uint32_t bins,
                 struct gpv_uses *ret);

#endif
