/* SPDX-License-Identifier: MIT */
/*
 * parts.h - the parts of the reader of a decision log.
 *
 *   log.c      lines, times, comments, and the life
 *   places.c   devices and slots: GPUs, tenancies, outs
 *   classes.c  classes, shapes, batches
 *   tasks.c    tasks and their attempts
 *
 * A function that reads a line finds its fields in `rest`, and sets `strange` for a line without
 * sense.  Numbers of devices and so on are places in the lists here, which have room up to a bound,
 * so that no log takes all memory.
 */
#ifndef GPV_READ_PARTS_H
#define GPV_READ_PARTS_H

#include "view/read/log.h"
#include "view/read/words.h"

enum {
    GPV_LOG_DEVICES = 16384,
    GPV_LOG_SLOTS = 65536,
    GPV_LOG_CLASSES = 256,
    GPV_LOG_SHAPES = 4096,
    GPV_LOG_CHUNK = 1024, /* records of tasks */
    GPV_LOG_CHUNKS = 2048,
    GPV_LOG_SET = 256 /* GPUs of a slot or grant */
};

struct gpv_log_device {
    struct gpv_gpu row;
    bool there;            /* the night has it, as `gpu` */
    uint32_t gpu;          /* GPV_NONE: the night has too many */
    int64_t out[GPV_OUTS]; /* since when, by kind; 0: not */
    uint32_t text[GPV_OUTS];
};

struct gpv_log_slot {
    uint16_t set;
    uint32_t class;        /* number of the log */
    uint32_t tenancy, out; /* kind of the row that is open, 0: none is; at most one of them */
    uint32_t text;
    int64_t since;
    int64_t free;  /* when its last attempt ended */
    uint64_t runs; /* at the end: the earliest task that it has */
};

/* The facts about a class on the GPUs of a slot. */
struct gpv_log_known {
    uint32_t class;
    uint16_t set;
    bool died;
};

struct gpv_log_class {
    uint32_t name, need; /* texts */
    uint32_t batch;      /* id; 0: no task yet */
    uint32_t shape;      /* index; GPV_NONE */
    bool has_shape, has_line;
};

struct gpv_log_shape {
    uint32_t class, need, shape; /* index of the class; text; index */
};

struct gpv_log_batch {
    struct gpv_batch row;
    int64_t last; /* end of a task */
};

/* A record of the core, which has one task after the other. */
struct gpv_log_task {
    bool used, granted;
    bool runs;    /* it was seen to run */
    bool has_row; /* of the last attempt: its text may follow */
    uint16_t set;
    uint32_t batch, number, shape, attempts;
    uint32_t slot;                    /* that has it; GPV_NONE */
    uint32_t name;                    /* until a row has it */
    uint32_t label;                   /* of the next task */
    uint64_t turn;                    /* of being sent */
    int64_t ready, got, began, ended; /* 0: not known */
    struct gpv_attempt row;
};

struct gpv_log {
    struct gpv_night *night;
    struct gpv_words rest;
    bool strange, no_memory;
    bool is_over, was_cut, is_closing;
    int64_t offset;     /* of the wall clock to that of the log */
    int64_t first, now; /* 0: no line had a time */
    uint64_t foreign_memory, foreign_load, turns;
    uint32_t n_batches, n_shapes, n_known; /* that are there; the lists have room */
    GPV_LIST(struct gpv_log_device) devices;
    GPV_LIST(struct gpv_log_slot) slots;
    GPV_LIST(struct gpv_log_known) known;
    GPV_LIST(struct gpv_log_shape) shapes;
    GPV_LIST(struct gpv_log_batch) batches; /* of id 1 and on */
    struct gpv_log_class class[GPV_LOG_CLASSES];
    struct gpv_log_task *chunk[GPV_LOG_CHUNKS];
};

/* ---- log.c ---- */

/* A field of the line.  False, and the line is strange: it is missing or too large. */
bool gpv_log_number(struct gpv_log *l, const char *key, uint64_t most, uint32_t *ret);
/* A time of the log as time of day, now at the latest; 0: there is none. */
int64_t gpv_log_time(struct gpv_log *l, const char *key);
/* Whether a field has this value. */
bool gpv_log_says(const struct gpv_log *l, const char *key, const char *value);
uint32_t gpv_log_keep(struct gpv_log *l, const char *text);
/* Notes the code that adding a row returned. */
void gpv_log_added(struct gpv_log *l, int code);
/* Room for `n` records of `size` bytes, those that are new with zeros.  False: no memory. */
bool gpv_log_room(struct gpv_log *l, void *rows, size_t *there, size_t n, size_t size);
#define GPV_LOG_ROOM(l, list, count) \
    gpv_log_room(l, &(list).row, &(list).n, count, sizeof(*(list).row))

/* ---- places.c ---- */

/* A fact of a comment. */
void gpv_log_device_fact(struct gpv_log *l, uint32_t device, struct gpv_word word,
                         struct gpv_word text);
void gpv_log_device(struct gpv_log *l); /* a device, or an event of one */
void gpv_log_pause(struct gpv_log *l);
void gpv_log_drain(struct gpv_log *l);
void gpv_log_return(struct gpv_log *l);
void gpv_log_remove(struct gpv_log *l);
void gpv_log_foreign(struct gpv_log *l);
void gpv_log_slot(struct gpv_log *l); /* a slot, or its state */
void gpv_log_seat(struct gpv_log *l);
void gpv_log_seat_on(struct gpv_log *l);
void gpv_log_end_places(struct gpv_log *l);
/* NULL, and the line is strange: there is no such slot. */
struct gpv_log_slot *gpv_log_slot_of(struct gpv_log *l, uint32_t slot);
/* Adds a device to a set, or a list of them: "0,1". */
void gpv_log_join(struct gpv_log *l, uint16_t *set, uint32_t device);
void gpv_log_join_all(struct gpv_log *l, uint16_t *set, struct gpv_word list);

/* ---- classes.c ---- */

void gpv_log_class_fact(struct gpv_log *l, uint32_t class, struct gpv_word word,
                        struct gpv_word text);
void gpv_log_class(struct gpv_log *l);
void gpv_log_needs(struct gpv_log *l); /* of a class */
/* Index in the night, or GPV_NONE. */
uint32_t gpv_log_class_of(struct gpv_log *l, uint32_t class);
/* The same of the shape of the task of the line. */
uint32_t gpv_log_shape_of(struct gpv_log *l, uint32_t class);
/* The batch of the class, made now if it had no task.  NULL: no memory. */
struct gpv_log_batch *gpv_log_batch_of(struct gpv_log *l, uint32_t class);

/* ---- tasks.c ---- */

void gpv_log_task_fact(struct gpv_log *l, uint32_t task, struct gpv_word word,
                       struct gpv_word text);
void gpv_log_submit(struct gpv_log *l);
void gpv_log_sent(struct gpv_log *l);
void gpv_log_running(struct gpv_log *l);
void gpv_log_came_back(struct gpv_log *l);
void gpv_log_grant(struct gpv_log *l);
void gpv_log_grant_on(struct gpv_log *l);
void gpv_log_revoke(struct gpv_log *l);
void gpv_log_declined(struct gpv_log *l);
void gpv_log_started(struct gpv_log *l);
void gpv_log_ended(struct gpv_log *l);
void gpv_log_adopt(struct gpv_log *l);
void gpv_log_run(struct gpv_log *l);  /* an attempt has ended on its own */
void gpv_log_task(struct gpv_log *l); /* its outcome, or that of an attempt */
void gpv_log_end_tasks(struct gpv_log *l);

#endif
