/* SPDX-License-Identifier: MIT */
/*
 * findings.h - faults and other events, alike ones joined.
 *
 * Kinds, in the order of a list: bad ends by number, then GPUs that were out of use, then times
 * without an agent, then GPUs that stood free for long although something waited.  Evictions and
 * clocks that were set are the last ones.
 *
 * Bad ends of a batch with the same outcome, status and text are one finding; runs of digits in
 * the text count as equal.  The sum of `count` over all findings of kind BAD is the number of bad
 * ends of the span.                                                                       [V4]
 *
 * Other rows are one finding if kind, GPU and text are alike; those of EVICTED may be of several
 * GPUs.  The rows of KEPT together, and each stretch of LIMITED, last for half an hour.  Without
 * `lived` of the night no time is UNKNOWN.
 */
#ifndef GPV_FINDINGS_H
#define GPV_FINDINGS_H

#include "view/records.h"
#include "view/words.h"

enum gpv_finding_kind {
    GPV_FINDING_BAD = 1, /* attempts, or tasks without one, that ended otherwise than ok */
    GPV_FINDING_OUT,     /* a GPU was out of use */
    GPV_FINDING_UNKNOWN, /* no agent ran */
    GPV_FINDING_KEPT,    /* a GPU was kept free, for half an hour or more in all */
    GPV_FINDING_LIMITED, /* a GPU was idle for half an hour or more although tasks waited */
    GPV_FINDING_EVICTED, /* a worker left for another class */
    GPV_FINDING_CLOCK    /* the clock was set */
};

enum { GPV_FINDING_RANGES = 8, GPV_FINDING_PARTS = 4, GPV_FINDING_COMMAND = 96 };

struct gpv_finding {
    uint32_t kind;
    int64_t first, last;  /* of BAD: times of the first and the last end; else begin and end */
    int64_t ns;           /* of all but BAD: its time in the span, without that between rows */
    uint64_t count;       /* of BAD: ends; else rows that were joined */
    uint32_t batch;       /* of BAD: its id; of KEPT and LIMITED that of the task that waited for
                             the longest part of it, or 0 */
    uint32_t outcome;     /* of BAD */
    int32_t status;       /* of BAD: exit status, or minus the signal */
    uint32_t text;        /* of the first one */
    bool varied;          /* of BAD: others have other digits in their text */
    uint32_t gpu;         /* of OUT, KEPT, LIMITED: its index; else GPV_NONE */
    uint32_t row;         /* index of the first row: attempt, out, tenancy, life; of LIMITED a
                             reason.  GPV_NONE: there is none */
    uint64_t still;       /* of BAD: tasks among them that have not ended ok since then */
    uint32_t still_first; /* of BAD: the lowest number of these; 0 = none */
    uint32_t n_tasks;     /* of BAD: different tasks */
    /* Of BAD: numbers of tasks as ranges "610-631"; `more` tasks are not in them. */
    struct {
        uint32_t from, to;
    } range[GPV_FINDING_RANGES];
    uint32_t n_ranges, more;
    uint16_t set;         /* of BAD and EVICTED: all its GPUs; GPV_NONE16: too many sets */
    bool goes_on;         /* until the end of the span */
    int64_t cleared; /* of OUT: the end of the last task that ran on the GPU at `first`, that of
                             the span if it still runs; 0: none ran */
    /* Of all but BAD: its times, of which those that touch are one. */
    struct {
        int64_t from, to;
    } part[GPV_FINDING_PARTS];
    uint32_t n_parts;                  /* of which the array has the first ones */
    char command[GPV_FINDING_COMMAND]; /* to type first (next.h) */
};

struct gpv_findings {
    GPV_LIST(struct gpv_finding);
    uint64_t bad; /* the sum of the bad ends */
};

/* A GPU that stood free, and an event, are no faults. */
static inline bool gpv_stood_free(const struct gpv_finding *f)
{
    return f->kind == GPV_FINDING_KEPT || f->kind == GPV_FINDING_LIMITED;
}
static inline bool gpv_is_event(const struct gpv_finding *f)
{
    return f->kind == GPV_FINDING_EVICTED || f->kind == GPV_FINDING_CLOCK;
}

/* All findings of the span, in the order above; of a kind those with the most tasks, or the longest
 * ones, first.
 * NULL: no memory.  It may keep sets in the night. */
struct gpv_findings *gpv_findings_of(struct gpv_night *n);
/* The same, together with bad ends of an earlier time, whose rows are not in the night; its texts
 * and sets are those of `earlier`.  Which of the tasks ended ok later is not known of these. */
struct gpv_findings *gpv_findings_beside(struct gpv_night *n, const struct gpv_findings *earlier);
void gpv_findings_free(struct gpv_findings *f);

/* The id of the batch for which a GPU was kept free: that of the task with which the text of the
 * row begins, "14.12: held for 2 GPUs", or else that of a wide task that waited then; or 0. */
uint32_t gpv_kept_for(const struct gpv_night *n, const struct gpv_tenancy *t);

/* "22 tasks CRASHED signal 11 (44x)", which had 44 attempts; "GPU 5 QUARANTINED": the event in
 * words. */
char *gpv_finding_text(const struct gpv_night *n, const struct gpv_finding *f, char *ret,
                       size_t size);
/* What its text adds to that: "XID 48", "held for 2 GPUs" without the task, since others of its
 * shape may have followed; "" of a worker that left for another class. */
char *gpv_finding_detail(const struct gpv_night *n, const struct gpv_finding *f, char *ret,
                         size_t size);
/* "CRASHED signal 11": how the ends of BAD ended. */
char *gpv_finding_how(const struct gpv_finding *f, char ret[GPV_WORD]);

#endif
