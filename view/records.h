/* SPDX-License-Identifier: MIT */
/*
 * records.h - a night: the rows that an agent has kept, read into memory.
 *
 * Every view of the past reads a struct gpv_night and nothing else.  The rows are of six kinds:
 *
 *   attempt   a task was on GPUs from a time to a time, and ended in some way; or a task ended
 *             without an attempt (number 0), such as one that was cancelled while it waited
 *   tenancy   a worker of a class loaded or left, or a GPU was kept free for a wide task
 *   out       a GPU was out of use
 *   reason    why the first waiting task of a shape did not start; while such a row is open,
 *             at least one task waits
 *   life      an agent ran; or its clock was set
 *   left      an estimate of the time that a batch would still need                  [V8]
 *
 * Beside them are the lists that rows point into: GPUs, classes, shapes, batches.  line.h has
 * the form in which rows are sent and kept.
 *
 * Times are ns since 1970, 0 for none: a row with `until` 0, or an attempt with `ended` 0, goes
 * on at the end of the span.  No row ends before it begins, since the functions that add rows
 * see to it: after a clock was set back, a row has the length 0 rather than a negative one.
 *
 * Texts are offsets for gpv_text; offset 0 is the empty text.  They are UTF-8 without NUL, and may
 * have any other character: each view makes them harmless in its own form.  [V5]
 *
 * Memory: 48 bytes for an attempt.  A night belongs to one thread at a time.
 *
 * Guarantees of all views.
 * V1  Without a reader: no wakeup and no byte.  An agent with an idle queue does not wake up for a
 *     view that is open.
 * V2  A stopped, slow or hostile reader costs the agent the text of one snapshot, and is dropped.
 *     No task starts later for a reader.
 * V3  The uses of a GPU add up to the span, to the ms, in every view.  The counts of a report are
 *     those of `ls --json`, and a snapshot equals a recount of the records.
 * V4  Each bad end of the span is a mark in the timeline, in a finding, in a row, in the trace, and
 *     in the counters: five counts, one number.
 * V5  Shown text is text: names and lines of any bytes make no markup, no script, no control
 *     sequence, and no new label.
 * V6  No view can change anything.
 * V7  Nothing is shown by colour alone, and each answer is there as text.
 * V8  Time left is a range, which is kept in the records and judged afterwards.  On days of the
 *     scheduler's simulator the true end lies in it in at least 80 % of the minutes between 10
 *     and 90 % of a batch.  It may be unknown.
 * V9  A reader opens older records.  A row of an unknown kind is counted, and never fatal.
 */
#ifndef GPV_RECORDS_H
#define GPV_RECORDS_H

#include "view/pool.h"

#define GPV_TASK(batch, number) (((uint64_t)(batch) << 32) | (uint64_t)(number))
#define GPV_BATCH_OF(task) ((uint32_t)((task) >> 32))
#define GPV_NUMBER_OF(task) ((uint32_t)(task))

/* How an attempt, or a task without one, ended: name, value, word, glyph. */
#define GPV_OUTCOME_MAP(X)                                                                     \
    X(RUNNING, 0, "running", "")                                                               \
    X(OK, 1, "ok", "")                                                                         \
    X(ERROR, 2, "error", "✕")                                                                  \
    X(TIMEOUT, 3, "timeout", "◆")                                                              \
    X(CRASHED, 4, "crashed", "▲")                                                              \
    X(CANCELLED, 5, "cancelled", "–")                                                          \
    X(NO_WORKER, 6, "no worker", "□")                                                          \
    X(SKIPPED, 7, "skipped", "»")                                                              \
    X(LOST, 8, "lost", "?")                                                                    \
    X(RETURNED, 9, "returned", "○") /* not charged: the task went back to its place */

/* Kinds of tenancies. */
#define GPV_TENANCY_MAP(X)                                                                     \
    X(BOOT, 1, "boot")     /* a worker of the class loads */                                   \
    X(UNLOAD, 2, "unload") /* a worker of the class leaves */                                  \
    X(KEPT, 3, "kept")     /* the GPU stays free for a wide task; no class */

/* Why a GPU is out of use. */
#define GPV_OUT_MAP(X)                                                                         \
    X(QUARANTINED, 1, "quarantined")                                                           \
    X(FAILED, 2, "failed")                                                                     \
    X(DRAINED, 3, "drained")                                                                   \
    X(BACKOFF, 4, "backoff")                                                                   \
    X(LOST, 5, "lost")       /* it was there, and is not any more */                           \
    X(FOREIGN, 6, "foreign") /* processes of others use it */

/* Kinds of lives. */
#define GPV_LIFE_MAP(X)                                                                        \
    X(OPENED, 1, "opened")   /* an agent ran for this time */                                  \
    X(ADOPTED, 2, "adopted") /* no length: it took over commands of an agent before */         \
    X(CLOCK, 3, "clock")     /* no length: its clock was set */

#define GPV_X_OUTCOME(name, value, word, glyph) GPV_##name = value,
#define GPV_X_TENANCY(name, value, word) GPV_TENANCY_##name = value,
#define GPV_X_OUT(name, value, word) GPV_OUT_##name = value,
#define GPV_X_LIFE(name, value, word) GPV_LIFE_##name = value,
enum gpv_outcome { GPV_OUTCOME_MAP(GPV_X_OUTCOME) GPV_OUTCOMES = 10 };
enum gpv_tenancy_kind { GPV_TENANCY_MAP(GPV_X_TENANCY) GPV_TENANCIES = 4 };
enum gpv_out_kind { GPV_OUT_MAP(GPV_X_OUT) GPV_OUTS = 7 };
enum gpv_life_kind { GPV_LIFE_MAP(GPV_X_LIFE) GPV_LIVES = 4 };
#undef GPV_X_OUTCOME
#undef GPV_X_TENANCY
#undef GPV_X_OUT
#undef GPV_X_LIFE

#define GPV_NONE UINT32_MAX /* no GPU, class, shape */
#define GPV_NONE16 UINT16_MAX

struct gpv_gpu {
    uint32_t name, uuid, model, pci, profile; /* texts: "gpu:3", ...; profile of MIG: "1g.10gb" */
    uint32_t parent;                          /* of MIG: UUID of its GPU */
    uint32_t index;                           /* the number of the driver */
};

struct gpv_class {
    uint32_t name;
};

struct gpv_shape {
    uint32_t id; /* of the store */
    uint32_t class;
    uint32_t gpus; /* of a task */
    uint32_t text; /* the needs: "2 GPUs, 40 GiB" */
};

/* Counts as `ls --json` has them: of the tasks that a batch has joined, too. */
struct gpv_batch {
    uint32_t id, name, total, joined;
    uint32_t held, ready, running;
    uint32_t turn; /* held ones that wait for their turn, as the batch has its tasks at once */
    uint32_t ended_by[GPV_OUTCOMES];
    uint32_t first, shape; /* number of its first waiting task, 0 = none, and shape of that */
    int64_t made, ended;   /* ended 0: it goes on */
    int32_t priority;
    bool open, is_held;
    bool at_once; /* its tasks have turns */
    bool asked; /* the reader has named it; rows of other batches are there since GPU time and waits
                   depend on them */
};

struct gpv_attempt {
    uint64_t task;
    int64_t ready, started, ended; /* ready: when it could start; 0 = not known */
    uint32_t number;               /* 0: the task ended without an attempt, at `ended` */
    uint32_t text;                 /* why it ended so: "signal 11", and the last line of its log */
    uint16_t shape, set;           /* indices; of gpv_set */
    int16_t status;                /* exit status, or minus the signal */
    uint8_t outcome;               /* enum gpv_outcome */
    bool last; /* no later row of the same task: the outcome of the task */
};

/* The name of a task for people: the one that it was given, or else its command. */
struct gpv_name {
    uint64_t task;
    uint32_t text;
};

struct gpv_tenancy {
    int64_t since, until;
    uint32_t gpu, class, text;
    uint32_t kind; /* enum gpv_tenancy_kind */
};

struct gpv_out {
    int64_t since, until;
    uint32_t gpu, text;
    uint32_t kind; /* enum gpv_out_kind */
};

struct gpv_reason {
    int64_t since, until;
    uint64_t task; /* the first one of the shape */
    uint32_t shape, word, text; /* word: "BUSY"; text: for people */
};

struct gpv_life {
    int64_t since, until;
    uint32_t text;
    uint32_t kind; /* enum gpv_life_kind */
};

/* ns; -1: it was unknown (night/left.h). */
struct gpv_left_row {
    int64_t time, least, most;
    uint32_t batch; /* its id */
};

/* Lists of rows that have times are in the order of `since`, or of `started`, once gpv_night_end has
 * returned. */
struct gpv_night {
    int64_t from, to; /* the span */
    uint32_t host;    /* name of the machine */
    bool no_queue;    /* of a program without a queue: there is no command for it */
    bool again;       /* a batch was added twice: attempts may have been, too */
    bool lived;       /* it is known when an agent ran, as a life was added, also one outside of
                         the limits: without it, one ran throughout */
    bool over;        /* no task waits or runs; of batches that are asked: they have ended */
    uint64_t unknown; /* lines of a kind that this version does not know, or without sense  [V9] */
    GPV_LIST(struct gpv_gpu) gpus;
    GPV_LIST(struct gpv_class) classes;
    GPV_LIST(struct gpv_shape) shapes;
    GPV_LIST(struct gpv_batch) batches;
    GPV_LIST(struct gpv_attempt) attempts;
    GPV_LIST(struct gpv_name) names; /* of some tasks, by task */
    GPV_LIST(struct gpv_tenancy) tenancies;
    GPV_LIST(struct gpv_out) outs;
    GPV_LIST(struct gpv_reason) reasons;
    GPV_LIST(struct gpv_life) lives;
    GPV_LIST(struct gpv_left_row) lefts; /* by time */
    struct gpv_pool *pool; /* texts and sets */
    struct {
        int64_t from, to; /* rows outside are left out; 0 = none */
        size_t names;     /* so many attempts bring the names of their tasks */
    } limit;
};

/* Sorts rows of at most 256 bytes in their place, for which qsort may take as much memory again.
 * It is fast for rows that are in order.  Equal rows have any order. */
void gpv_sort(void *rows, size_t n, size_t size, int (*order)(const void *, const void *));

/* An empty night; NULL: no memory. */
struct gpv_night *gpv_night_new(void);
/* One with the texts, sets, limits, GPUs, classes and shapes of another one, but no further rows;
 * that one may be freed before it. */
struct gpv_night *gpv_night_beside(const struct gpv_night *n);
void gpv_night_free(struct gpv_night *n);

/* Limits the night to a span, before rows are added: rows outside of it are left out.  0: the
 * first row begins it; the line `now` (line.h) ends it. */
void gpv_night_limit(struct gpv_night *n, int64_t from, int64_t to);

/* Limits the names, before rows are added: where a night has more attempts than this, only the
 * first ones and those that end badly bring the names of their tasks. */
void gpv_night_limit_names(struct gpv_night *n, size_t attempts);
/* Whether the next attempt is to bring the name of its task. */
bool gpv_wants_name(const struct gpv_night *n, uint32_t outcome);

/*
 * Adds a row, a copy.  A row of the same GPU, class, shape or batch replaces that of before;
 * batches are in the order of their ids, so that the index of one may move until all are there.
 * 0, or -1 without memory: then the night has no part of it.  1: 65,535 GPUs or shapes are there,
 * and this one is left out.
 */
int gpv_add_gpu(struct gpv_night *n, const struct gpv_gpu *row);
int gpv_add_class(struct gpv_night *n, const struct gpv_class *row);
int gpv_add_shape(struct gpv_night *n, const struct gpv_shape *row);
int gpv_add_batch(struct gpv_night *n, const struct gpv_batch *row);
int gpv_add_attempt(struct gpv_night *n, const struct gpv_attempt *row);
int gpv_add_name(struct gpv_night *n, const struct gpv_name *row);
int gpv_add_tenancy(struct gpv_night *n, const struct gpv_tenancy *row);
int gpv_add_out(struct gpv_night *n, const struct gpv_out *row);
int gpv_add_reason(struct gpv_night *n, const struct gpv_reason *row);
int gpv_add_life(struct gpv_night *n, const struct gpv_life *row);
int gpv_add_left(struct gpv_night *n, const struct gpv_left_row *row);

/* All rows are there: sorts them, sets the span and `last`.  `now` 0: that of the line `now`, or
 * without it the last time of a row.  0, or -1 without memory. */
int gpv_night_end(struct gpv_night *n, int64_t now);

/* Narrows the span to its tasks: from the time at which the first one could start, to the end of
 * the last one if none goes on.  Without a task it stays as it is. */
void gpv_night_fit(struct gpv_night *n);

/* ---- Texts and sets ---- */

/* The offset of a text, which is kept once.  GPV_NONE: no memory. */
static inline uint32_t gpv_keep(struct gpv_night *n, const char *text, size_t size)
{
    return gpv_pool_keep(n->pool, text, size);
}
static inline const char *gpv_text(const struct gpv_night *n, uint32_t text)
{
    return gpv_pool_text(n->pool, text);
}
/* The index of a set, which is kept once; GPV_NONE16: no memory, or 65,535 sets. */
static inline uint16_t gpv_keep_set(struct gpv_night *n, const uint16_t *gpu, uint32_t count)
{
    return gpv_pool_keep_set(n->pool, gpu, count);
}
static inline bool gpv_sets_are_full(const struct gpv_night *n)
{
    return gpv_pool_is_full(n->pool);
}
static inline struct gpv_set gpv_set(const struct gpv_night *n, uint16_t set)
{
    return gpv_pool_set(n->pool, set);
}
bool gpv_set_has(struct gpv_set set, uint32_t gpu);

/* ---- Finding ---- */

/* Index of a row, or GPV_NONE.  A GPU is found by its UUID, or else by its name. */
uint32_t gpv_find_gpu(const struct gpv_night *n, const char *name);
uint32_t gpv_find_class(const struct gpv_night *n, const char *name);
uint32_t gpv_find_shape(const struct gpv_night *n, uint32_t id);
uint32_t gpv_find_batch(const struct gpv_night *n, uint32_t id);

/* The name of a task; "" if none is known.  gpv_name_text: its offset. */
uint32_t gpv_name_text(const struct gpv_night *n, uint64_t task);
const char *gpv_name_of(const struct gpv_night *n, uint64_t task);

/* Class of an attempt: an index, or GPV_NONE. */
uint32_t gpv_class_of(const struct gpv_night *n, const struct gpv_attempt *a);
/* The end of a row that may go on: that of the span then. */
static inline int64_t gpv_until(const struct gpv_night *n, int64_t until)
{
    return until != 0 && until < n->to ? until : n->to;
}

/* ---- Words ---- */

/* Each returns a constant text, "?" for a value that is none. */
const char *gpv_outcome_word(uint32_t outcome);
const char *gpv_outcome_text(uint32_t outcome); /* for people: "put back" of "returned" */
const char *gpv_outcome_glyph(uint32_t outcome);
const char *gpv_tenancy_word(uint32_t kind);
const char *gpv_out_word(uint32_t kind);
const char *gpv_life_word(uint32_t kind);

/* A bad end: any but OK, also of a task without an attempt; RETURNED, too, though it is not
 * charged.  Each view shows each bad end of the span, or counts it where it draws it.  [V4] */
static inline bool gpv_is_bad(uint32_t outcome)
{
    return outcome > GPV_OK && outcome < GPV_OUTCOMES;
}

#endif
