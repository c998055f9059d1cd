/* SPDX-License-Identifier: MIT */
/* ours.h - the library as the cells use it: one definition that obeys the first word of its task.
 */
#ifndef BENCH_OURS_H
#define BENCH_OURS_H

#include <stddef.h>
#include <stdint.h>

#include <gpudispatch/gpudispatch.h>

#define B_EVENTS 256

/* What a task asks of the worker. */
enum b_op {
    B_NOTHING = 0, /* return at once */
    B_HOLD = 1,    /* report progress, then sleep until cancelled or late */
    B_BURN = 2,    /* report progress, then spin until cancelled or late */
    B_DEAF = 3,    /* block all signals and spin for ever */
    B_LATE = 4,    /* sleep until late; the result is how many ns past the limit that was */
    B_RESULT = 5,  /* a result of `size` bytes, as they lie there */
    B_ECHO = 6,    /* the data is the result */
    B_SLEEP = 7    /* sleep for `size` microseconds */
};

/* A task of 64 bytes. */
struct b_order {
    uint32_t op;
    uint32_t size; /* for B_RESULT, B_SLEEP */
    char rest[56];
};

/* The options that cells vary; zero means the default of the library. */
struct b_ours_options {
    unsigned workers;
    unsigned fakes; /* 1: each worker has a fake device, not a CPU slot */
    int cpu; /* all workers pin themselves there; -1: nowhere */
    uint32_t drive, queue_size, sent_ahead;
    uint32_t max_batch; /* not 0: the definition with process_batch */
    uint32_t start;
    uint64_t task_limit, grace, payload_budget;
};

struct b_ours {
    gpud_dispatcher *d;
    struct gpud_event *events; /* room for B_EVENTS */
    gpud_event_fn *handler;    /* called for each event that is received */
    uint64_t ended, failed;    /* counted by the default handler: outcomes, those but SUCCESS */
    const char *const *names;  /* the classes of a pooled dispatcher (pooled.h) */
    unsigned n_names;          /* 0: it is not pooled */
};

/* The setup data of definition "model": the CPU on which its worker pins itself, and how long setup
 * and cleanup sleep. */
struct b_life {
    int cpu;
    uint64_t boot, unload;
};

/* When, of all workers of that definition, the last setup began, and the last cleanup began and
 * ended. */
struct b_moments {
    uint64_t setup, cleanup, cleaned;
};
struct b_moments b_ours_moments(void);

/* The first argument of a program that start EXEC has begun: a worker. b_ours_init_worker does not
 * return there. */
#define B_WORKER_ARGUMENT "--worker"
int b_ours_init_worker(void);

/* Records the definitions; call it before threads and big allocations.  0 or -1. */
int b_ours_init(void);

/* Makes a dispatcher and waits until all its workers are ready. 0 or -1; B_NOT_BUILT when this
 * library refuses a field. */
#define B_NOT_BUILT 1
int b_ours_open(struct b_ours *o, const struct b_ours_options *options);
void b_ours_close(struct b_ours *o);

/* The parts of open.  Create returns 0, or a code: then close it, too.  The others: 0 or -1. */
int b_ours_create(struct b_ours *o, const struct gpud_options *options, struct gpud_error *reterr);
int b_ours_complain(const char *what, int code, const struct gpud_error *error);
int b_ours_wait_ready(struct b_ours *o, unsigned workers, uint32_t drive);

/* Fills a description with a 64 B order.  Borrows the order. */
void b_ours_task(struct gpud_task_desc *task, struct b_order *order, uint32_t op);

/* Waits for events and hands each to the handler.  Returns how many, or a code. */
int b_ours_receive(struct b_ours *o, uint64_t wait);

/* Submits a task and waits for its outcome, which must be SUCCESS.  0 or -1. */
int b_ours_trip(struct b_ours *o, const struct gpud_task_desc *task);

/* Submits an order (limit 0: the default).  0 or -1. */
int b_ours_start(struct b_ours *o, uint32_t op, uint64_t limit, uint64_t *ret_id);

/* Waits until task `id` runs (its progress tells us); gives the worker's process and the start
 * time. 0 or -1. */
int b_ours_running(struct b_ours *o, uint64_t id, int64_t *ret_pid, uint64_t *ret_started);

/* Waits for the outcome event of a task.  Gives a copy without its pointers.  0 or -1. */
int b_ours_outcome(struct b_ours *o, uint64_t id, struct gpud_event *ret_event);

#endif
