/* SPDX-License-Identifier: MIT */
/* keep.h - the rows that now.c keeps in memory, for ended.c, refill.c, wrong.c and show.c. */
#ifndef GPQ_AGENT_KEEP_H
#define GPQ_AGENT_KEEP_H

#include "queue/agent/now.h"
#include "queue/agent/record_lines.h"
#include "queue/agent/records.h"
#include "queue/config/values.h"
#include "view/night/findings.h"
#include "view/night/left.h"

#define GPQ_MINUTE (INT64_C(60) * 1000000000)
#define GPQ_DAY (INT64_C(24) * 60 * GPQ_MINUTE)
enum { GPQ_HOUR = 60 }; /* minutes */

/* For live.h and left.h.  While the rows of the store are read, reports wait in a list. */
enum gpq_report_kind {
    GPQ_NOW_LOADING,
    GPQ_NOW_KEPT,
    GPQ_NOW_OUT,
    GPQ_NOW_WAITS,
    GPQ_NOW_START,
    GPQ_NOW_END_OK,
    GPQ_NOW_END_BAD,
    GPQ_NOW_LEFT_START,
    GPQ_NOW_LEFT_END
};
struct gpq_report {
    enum gpq_report_kind kind;
    int change;
    uint32_t gpu;
    uint64_t task;
    int64_t time, started; /* started: of LEFT_END */
};

struct gpq_busy {
    int64_t from, to;
};

struct gpq_kept_gpu {
    char name[32], uuid[96];
    char worker[64];                /* class of a worker there; "" = none */
    int64_t ended;                  /* the last end of anything on it */
    GPV_LIST(struct gpq_busy) busy; /* when tasks ran, without gaps below half an hour */
};

struct gpq_kept_class {
    struct gpv_now_class row; /* its counts and histograms */
    struct gpv_lengths boot, run;
};

/* An attempt that runs. */
struct gpq_running {
    uint64_t task;
    int64_t ready, since, limit;
    uint32_t attempt, class, n;
    uint16_t gpu[GPQ_VALUE_GPUS];
};

struct gpq_kept_batch {
    struct gpv_now_batch row;
    bool stale;      /* the row is to be read again */
    bool open;       /* more tasks may be added */
    uint32_t joined; /* tasks of other batches */
    uint32_t shape;  /* of its first waiting task */
    uint32_t at_once; /* tasks that run at a time; 0: no limit */
    uint32_t ended_by[GPV_OUTCOMES];
    struct gpv_left *left; /* while it goes on, from its first start */
    int64_t left_at;       /* when row.least and row.most were found; 0: they are old */
    int64_t noted_at;      /* time and number of ends of the last row of time left */
    uint64_t noted_ends;
    int64_t minute;              /* the last one of `ends` */
    uint32_t ends[GPQ_HOUR + 1]; /* tasks that have ended in each of the last minutes */
};

struct gpq_kept_shape {
    uint32_t shape, class, gpus; /* gpus: of a command; a worker has those of its class */
};

struct gpq_now {
    int64_t since; /* the start */
    uint64_t version;
    char host[64], notice[256];
    GPV_LIST(struct gpq_kept_gpu) gpus;
    GPV_LIST(struct gpq_kept_class) classes;
    GPV_LIST(struct gpq_kept_batch) batches; /* by id */
    GPV_LIST(struct gpq_running) running;
    GPV_LIST(struct gpq_kept_shape) shapes;
    struct gpv_now_end ended[GPV_NOW_ENDS]; /* newest first */
    size_t n_ended;
    uint32_t reasons;  /* rows that are open */
    int64_t waited_until; /* the latest end of such a row */
    bool has_readings; /* the driver reads memory and use of a GPU */
    struct gpv_live *live;
    /* Until the rows of the store are read: */
    bool filled;
    int step; /* of refill.c */
    struct gpv_night *past;
    char place[GPQ_RECORDS_PLACE];
    GPV_LIST(struct gpq_report) late;
    /* Findings of the last 24 h (wrong.c): */
    struct gpv_night *kept;        /* rows that have ended, of attempts only those that ended badly,
                                      and further ones of their tasks */
    struct gpv_findings *earlier;  /* of rows that are not in `kept` any more */
    struct gpq_record_lines lines; /* on their way into it */
    bool wrong;                    /* the findings are old */
    int64_t found_at;              /* when they were found; 0 = never */
    uint64_t find_at;              /* CLOCK_MONOTONIC: not before it */
    uint64_t bad, bad_tasks;       /* bad ends; different tasks of them */
    GPV_LIST(struct gpv_now_finding) findings;
    int64_t asleep_at; /* when devices were asked whether they sleep */
    uint64_t asleep;   /* bits of the first 64 GPUs */
};

/* An attempt that has ended, or a task that has ended without one (number 0). */
struct gpq_ended {
    uint64_t task;
    uint32_t number, class, outcome, n;
    int64_t ready, started, ended;
    const uint16_t *gpu;
};

/* ---- keep.c ---- */

/* Room for one more row of a GPV_LIST, all bytes 0; NULL: no memory. */
void *gpq_now_row(void *list, size_t size);
uint32_t gpq_now_gpu(const struct gpq_now *n, const char *name, size_t size); /* GPV_NONE */
/* The same of the first name of a list with commas, which moves behind it. */
uint32_t gpq_now_next_gpu(const struct gpq_now *n, const char **list);
/* An index.  Without memory it is 0, that of commands. */
uint32_t gpq_now_class(struct gpq_now *n, const char *name);
uint32_t gpq_now_class_of(struct gpq_agent *a, uint32_t shape);
/* GPUs that a task of the shape needs. */
uint32_t gpq_now_gpus_of(struct gpq_agent *a, uint32_t shape);
/* NULL: there is none. */
struct gpq_kept_batch *gpq_now_batch(struct gpq_now *n, uint32_t id);
/* Adds it, unless it is there.  NULL: no memory, and no view shows it. */
struct gpq_kept_batch *gpq_now_add_batch(struct gpq_now *n, uint32_t id);
/* Reads its row again, if it is stale.  False: the batch is forgotten. */
bool gpq_now_read_batch(struct gpq_agent *a, struct gpq_kept_batch *b);
void gpq_now_drop_batch(struct gpq_now *n, size_t index);
void gpq_now_count_end(struct gpq_kept_batch *b, int64_t time);
/* Fills the lists with the GPUs, the classes, and the batches of the last 24 h.  GPQ_ENOMEM. */
int gpq_keep_open(struct gpq_agent *a, struct gpq_error *e);
void gpq_keep_close(struct gpq_now *n);

/* ---- now.c ---- */

/* Without memory a report that has to wait is left out. */
void gpq_now_report(struct gpq_now *n, struct gpq_report r);
void gpq_now_apply(struct gpq_now *n, const struct gpq_report *r);
/* NULL: it does not run. */
struct gpq_running *gpq_now_running(struct gpq_now *n, uint64_t task);
void gpq_now_start(struct gpq_agent *a, const struct gpq_unit *u, uint64_t since);

/* ---- ended.c ---- */

/* An attempt of the task has ended. */
void gpq_now_attempt_ended(struct gpq_agent *a, const struct gpq_change *c, int64_t now);
/* The task has ended without one: cancelled, skipped, expired.  There may be many at once; late: it
 * is one of the last ones, which snapshots show. */
void gpq_now_unstarted(struct gpq_agent *a, const struct gpq_change *c, int64_t now, bool late);
void gpq_now_note_end(struct gpq_now *n, const struct gpq_ended *end);
void gpq_now_note_busy(struct gpq_now *n, uint32_t gpu, int64_t from, int64_t to);
/* Without its class. */
struct gpq_ended gpq_now_ended(const struct gpv_night *night, const struct gpv_attempt *row);

/* ---- show.c ---- */

/* Finds row.least and row.most.  Tasks that are held for more than their turn may be added. */
void gpq_now_find_left(struct gpq_kept_batch *b, uint32_t ready, uint32_t held, int64_t now);

/* ---- wrong.c ---- */

int gpq_wrong_open(struct gpq_agent *a);
/* Reads `lines` into a night. */
int gpq_wrong_read(struct gpq_agent *a, struct gpv_night *to);
/* Rows have been added to `kept`: keeps their number bounded. */
void gpq_wrong_bound(struct gpq_agent *a);
/* The changes of a commit: leaves out tasks that the store has forgotten. */
void gpq_wrong_forget(struct gpq_agent *a);
/* Brings the findings up to date, unless that has cost much lately. */
void gpq_wrong_find(struct gpq_agent *a, int64_t now);
void gpq_wrong_close(struct gpq_now *n);

#endif
