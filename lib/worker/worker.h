/* SPDX-License-Identifier: MIT */
/*
 * worker.h - the worker process: one thread of ours that runs setup, process for each task it
 * can claim, and cleanup.
 *
 * Order of things that must not be changed: a task is claimed before its data is touched; its
 * end record is complete before the end word is stored (with release order), and that is done
 * before anything else; only then may a frame say "look".
 */
#ifndef GPI_WORKER_WORKER_H
#define GPI_WORKER_WORKER_H

#include <signal.h>

#include "wire/plan.h"
#include "worker/cuda.h"
#include "worker/limit.h"

struct gpud_task {
    gpud_worker *worker;
    struct gpi_cell *cell;
    struct gpi_cell_extra *extra;
    const unsigned char *data;
    size_t size;
    uint64_t number;
    uint64_t result_off, result_size;
    enum gpi_place result_place;
    uint32_t index; /* of the cell */
    uint64_t stall_limit; /* NEVER = none */
    uint64_t stalled_at;  /* when it had passed, 0 = it has not */
    int fail_code;  /* 0 = fail was not called */
    /* for the end record: what its batch was; TEXT: there are words, should it fail */
    uint16_t flags;
};

struct gpud_worker {
    struct gpi_worker_plan plan;
    struct gpi_limit limit;
    void *state;             /* of the user, from setup */
    uint64_t next;           /* send number to look for */
    /* something ended, and whether the host sleeps was not looked at since */
    bool untold;
    uint64_t oldest_end;     /* when the first of them ended */
    uint64_t last_end;       /* when the last attempt ended, in this batch; 0 = clock unknown */
    uint64_t last_run;       /* how long it took */
    uint32_t granule_cursor; /* where the next search in the result arena begins */
    uint32_t granules_granted; /* up to here there was memory when we last looked */
    const volatile uint32_t *original; /* 1 here, 0 in a child that process has forked */
    struct gpi_cuda *cuda;   /* NULL without GPUs and fakes */
    bool pinned;             /* the result arena is, in pieces */
    uint32_t n_devices;
    char device[GPI_DEVICES][GPI_DEVICE_NAME_SIZE];
    char uuid[GPI_DEVICES][GPI_DEVICE_UUID_SIZE];
    bool dismissed;          /* END has come */
    uint32_t members;        /* of `task`, in the call that runs */
    bool claimed;            /* a task, and the host was told */
    struct gpud_task task[GPI_CELLS];
};

/* Parts of running one or several tasks; see worker.c. */
void gpi_worker_task_init(struct gpud_task *t, gpud_worker *w, uint32_t index, uint64_t number);
void gpi_worker_write_end(gpud_worker *w, struct gpud_task *t, int code, uint64_t ended_at,
                          bool later);
void gpi_worker_note_end(gpud_worker *w, uint64_t ended);
void gpi_worker_note_claim(gpud_worker *w);
void gpi_worker_refuse(gpud_worker *w, struct gpi_cell *c, uint64_t number, uint64_t now);
void gpi_worker_leave_if_forked(const gpud_worker *w);
void gpi_worker_block_alarm(bool block);
bool gpi_worker_must_flush(const gpud_worker *w, uint64_t now);
void gpi_worker_flush(gpud_worker *w);
/* Sleeps until `number` has been sent, or until a time has come; false when the bell says END. */
bool gpi_worker_await(gpud_worker *w, uint64_t number, uint64_t until);

/* Sleeps within a task, with these signals blocked, until the host rings, a signal arrives or
 * a time has come. */
void gpi_worker_doze(gpud_worker *w, uint64_t until, const sigset_t *blocked);

/* fault.c: before setup, the devices and the canary; what fails is told, and the process left. */
void gpi_worker_meet_devices(gpud_worker *w);
/* After setup: the arenas, if option cuda says so. */
void gpi_worker_pin(gpud_worker *w);
/* After process, which gave `code`: a fault of CUDA's is charged to the members that have not
 * failed. True: this process can use CUDA no more, and must leave once that is told. */
bool gpi_worker_look(gpud_worker *w, int code);
_Noreturn void gpi_worker_leave(int status);
_Noreturn void gpi_worker_leave_sick(gpud_worker *w);

/* ahead.c */

/* After so many tasks at a time more are likely on their way, and after setup the first.  After a
 * single task it would only cost. */
#define GPI_BATCH_TASKS 4u
#define GPI_LINGER_NS (30 * GPI_US)
#define GPI_AFTER_SETUP_NS (100 * GPI_US)

/* Looks for more tasks before a sleep, for so long while the host sends from another CPU, else
 * once; lets others on this CPU go first.  Whether there are any.                         [C20] */
bool gpi_worker_linger(const gpud_worker *w, uint64_t ns);

/* Asks for the memory that tasks up to the number `last`, which were sent, will need soon. */
void gpi_worker_ask_ahead(const gpud_worker *w, uint64_t last);

/* batch.c: serves with process_batch until END. */
void gpi_worker_serve_batches(gpud_worker *w);

/* Whether this process is a worker; not in a child that user code has forked there. */
bool gpi_worker_here(void);

/* Becomes the worker; leaves by _exit. */
void gpi_worker_run(const struct gpi_worker_plan *plan);

/* The part of a birth that is the same in all lives of a slot, for the workers that are forked
 * from the caller: streams and memory.  Once, in a keeper; else in the worker itself. */
void gpi_worker_prepare(struct gpi_page *page);

/* Notes which stall limits have passed by now: before progress, and at the end. */
void gpi_worker_note_stall(gpud_worker *w, uint64_t now);

/* Rings the host's bell.  Never blocks: see frame.h for how few can be under way. */
void gpi_worker_tell(gpud_worker *w, uint32_t news);

/* Result space: a run of granules, UINT64_MAX when there is no room; and its return before the
 * host was told. */
uint64_t gpi_worker_result_alloc(gpud_worker *w, uint64_t size);
/* The same with a wait for room: option result_wait. */
uint64_t gpi_worker_result_await(gpud_task *t, uint64_t size);
void gpi_worker_result_undo(gpud_worker *w, uint64_t off, uint64_t size);

#endif
