/* SPDX-License-Identifier: MIT */
/*
 * snapshot.h - the present moment of a queue, for top, the live page, metrics and notebooks.
 *
 * An agent makes snapshots (request `watch`); gpv_moment (moment.h) makes one from records,
 * for any time of a night.  Both fill the same struct, so that a view has one source, and so that
 * the two can be compared.                                                                [V3]
 *
 * On the socket, in `top --json` and on the live page a snapshot is one JSON object on a line,
 * which docs/reference/snapshot.md describes.  gpv_snapshot_write and gpv_snapshot_read are the two
 * directions.  A reader leaves out members that it does not know.                         [V9]
 *
 * Texts are UTF-8, cut at the end of a character, and may have any character but NUL: each view
 * makes them harmless in its own form.                                                    [V5]
 * Times are ns since 1970, spans ns; 0 and -1 stand for none, as each field says.
 */
#ifndef GPV_SNAPSHOT_H
#define GPV_SNAPSHOT_H

#include <stdio.h>

#include "view/night/live.h"
#include "view/night/waits.h"
#include "view/now/measures.h"
#include "view/records.h"

enum { GPV_SNAPSHOT_VERSION = 1 };

/* Rows of a list that a line has at most.  Batches, findings and ends are also cut behind so many
 * bytes: so a line of 8 GPUs and a few classes has 16 KiB at most.  The rest is counted in `more`,
 * but ends are not. */
enum {
    GPV_NOW_CLASSES = 32,
    GPV_NOW_BATCHES = 64,
    GPV_NOW_FINDINGS = 32,
    GPV_NOW_ENDS = 20,
    GPV_NOW_BATCH_BYTES = 8704,
    GPV_NOW_FINDING_BYTES = 1536,
    GPV_NOW_END_BYTES = 1024
};

/* The state of a GPU: name, value, word. */
#define GPV_DOES_MAP(X)                                                                        \
    X(IDLE, 0, "idle")                                                                         \
    X(RUN, 1, "run")                                                                           \
    X(LOAD, 2, "load")   /* a worker of a class loads */                                       \
    X(LEAVE, 3, "leave") /* a worker of a class leaves */                                      \
    X(KEPT, 4, "kept")   /* it stays free for a wide task */                                   \
    X(OUT, 5, "out")     /* it is out of use */
#define GPV_X_DOES(name, value, word) GPV_DOES_##name = value,
enum gpv_does { GPV_DOES_MAP(GPV_X_DOES) GPV_DOES = 6 };
#undef GPV_X_DOES
const char *gpv_does_word(uint32_t does);

struct gpv_now_gpu {
    char name[32], uuid[96], model[96], pci[32], profile[32], parent[96];
    uint32_t index;      /* of the driver; GPV_NONE */
    uint32_t does;       /* enum gpv_does */
    int64_t since;       /* when it began to do so; 0 = not known */
    char class_name[64]; /* of its worker or task; "" = none */
    uint64_t task;       /* RUN: the one that started first; 0 = not known */
    uint32_t attempt, tasks; /* of that task; RUN: how many tasks run here */
    int64_t limit;           /* RUN: of that task; 0 = none */
    char with[64];           /* RUN: further GPUs of that task: "gpu:2,gpu:3" */
    char text[160];          /* OUT, KEPT, LOAD and LEAVE: why */
    uint64_t kept_for;       /* KEPT: the task; 0 = not known */
    /* Readings, if a client watches and the device is awake; UINT64_MAX, GPV_NONE: unknown. */
    uint64_t memory_used, memory_total; /* bytes */
    uint32_t utilization, temperature, power; /* per cent, degrees Celsius, mW */
    bool asleep;
    struct gpv_uses uses; /* since `since` of the snapshot */
};

struct gpv_now_class {
    char name[64];
    uint32_t workers, ready, loading; /* 0 of the class "command", which has none */
    int64_t boot_p50, run_p50;        /* ns; -1 = none is known */
    uint64_t evicted, restarts;       /* since `since` of the snapshot */
    uint64_t waiting[GPV_WHYS];       /* tasks that are ready or wait for their turn, by the reason
                                         of the first one of their shape */
    uint64_t held;                    /* the other held tasks */
    uint64_t ended_by[GPV_OUTCOMES];  /* ends since `since`, of attempts and of tasks without one */
    uint64_t tasks_by[GPV_OUTCOMES];  /* tasks that have ended for good since `since`, once in each
                                         round; of records, in their last round */
    struct gpv_histogram run, wait;   /* of attempts; from ready to start */
};

struct gpv_now_batch {
    uint32_t id;
    char name[64];
    int32_t priority;
    int64_t made, ended; /* ended 0: it goes on */
    uint32_t total, ok, bad, running, ready, held, turn; /* turn: a part of held */
    /* Of its first waiting task: */
    uint64_t first;  /* 0 = none waits, or all of them are held, not for their turn alone */
    uint32_t why;    /* enum gpv_why; UNSEEN if none waits */
    char reason[32]; /* as explain names it: "BUSY" */
    char text[192];  /* of the reason, as explain has it */
    uint32_t gpus;   /* that it needs; 0 = one, or none */
    int64_t since;   /* when that row began; 0 = not known */
    /* Left: a range; -1 = not known. */
    int64_t least, most;
    double per_hour; /* ends in the last hour, or since it was made */
};

/* A finding (night/findings.h) in words. */
struct gpv_now_finding {
    uint32_t kind, outcome, batch;
    int64_t first, last;
    uint64_t count;
    uint32_t tasks;    /* different ones of its bad ends; 0 = not known */
    char what[64];     /* "22 tasks CRASHED signal 11 (44x)", "GPU 5 QUARANTINED" */
    char whose[96];    /* "15 rec-11 610-631"; "" of a GPU */
    char text[160];    /* the first one's */
    char gpus[48];     /* "0, 4-5" */
    char command[96];  /* to type next; "" = none */
};

struct gpv_now_end {
    int64_t time, ran, waited; /* ran: ns; -1 = it had no attempt */
    uint64_t task;
    uint32_t outcome;
    char batch_name[64], gpus[48];
};

/* Rows that a list does not have: batches, with the sums of their counts; findings; classes. */
struct gpv_now_more {
    uint32_t batches, total, ok, bad, running, ready, held, turn;
    uint32_t findings, classes;
};

struct gpv_snapshot {
    uint64_t sequence; /* of the state: it grows; a reader that is slow, or reads rarely, misses some */
    int64_t time;
    int64_t since; /* from here on the totals count: the start of the agent */
    char host[64], version[32];
    uint32_t pid;    /* of the agent; 0: made from records */
    char notice[256]; /* why nothing starts: paused, starts wait, stopping; "" = nothing is wrong */
    GPV_LIST(struct gpv_now_gpu) gpus;
    GPV_LIST(struct gpv_now_class) classes;
    GPV_LIST(struct gpv_now_batch) batches; /* that go on, or ended within 24 h: those that go on
                                               first, by priority and id */
    GPV_LIST(struct gpv_now_finding) findings; /* of the last 24 h, newest first */
    GPV_LIST(struct gpv_now_end) ends;         /* newest first */
    struct gpv_now_more more;
    uint64_t bad_24h; /* bad ends in the last 24 h: the sum of the findings  [V4] */
    uint64_t bad_tasks_24h; /* different tasks of these ends; 0 = not known */
    /* All listed batches together: ns; -1 = not known. */
    int64_t least, most;
    /* The first snapshot of a connection has it: oldest first; history[gpu * minutes + i]. */
    uint32_t minutes;
    struct gpv_uses *history;
};

void gpv_snapshot_free(struct gpv_snapshot *s); /* its lists, not *s */

/* Writes it as one line of JSON, without a newline; rows beyond the limits are counted in `more` of
 * the line.  The caller checks the stream's error flag. */
void gpv_snapshot_write(const struct gpv_snapshot *s, FILE *f);
/* Reads such a line into *s, which was not filled.  -1: it is none, or there is no memory; then *s
 * is empty.  It is part of the programs that have jansson. */
int gpv_snapshot_read(struct gpv_snapshot *s, const char *text, size_t size);

/* Gives the next snapshot of a connection a history: that of the last one, and the uses since
 * then.  It is left without one where the agent has started anew, or without memory. */
void gpv_now_carry(const struct gpv_snapshot *last, struct gpv_snapshot *next);

/* Room for one more row of a list, all bytes 0; NULL: no memory. */
struct gpv_now_gpu *gpv_now_gpu(struct gpv_snapshot *s);
struct gpv_now_class *gpv_now_class(struct gpv_snapshot *s);
struct gpv_now_batch *gpv_now_batch(struct gpv_snapshot *s);
struct gpv_now_finding *gpv_now_finding(struct gpv_snapshot *s);
struct gpv_now_end *gpv_now_end(struct gpv_snapshot *s);

/* Sorts batches as the list has them; those that have ended, the last one first. */
void gpv_now_sort_batches(struct gpv_now_batch *batch, size_t n);
/* Counts a batch that the list does not have. */
void gpv_now_fold_batch(struct gpv_now_more *more, const struct gpv_now_batch *batch);
/* Copies a text, cut at the end of a character. */
void gpv_now_text(char *to, size_t size, const char *text);
/* "15 rec-11 610-631", "15 rec-11 1, 3-4 ...": tasks of a batch, cut to `size`. */
struct gpv_finding;
void gpv_now_whose(char *to, size_t size, const char *batch_name, const struct gpv_finding *f);
/* "0, 4-5" of "gpu:0", "gpu:4", "gpu:5"; other names in full: "0, mig:3". */
void gpv_now_gpus(char *to, size_t size, const char *const *name, size_t n);

#endif
