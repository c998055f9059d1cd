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

#include "wire/plan.h"
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
    int fail_code;  /* 0 = fail was not called */
};

struct gpud_worker {
    struct gpi_worker_plan plan;
    struct gpi_limit limit;
    void *state;             /* of the user, from setup */
    uint64_t next;           /* send number to look for */
    bool untold;             /* something ended, and whether the host sleeps was not looked at since */
    uint64_t oldest_end;     /* when the first of them ended */
    uint64_t last_end;       /* when the last attempt ended, in this batch; 0 = clock unknown */
    uint64_t last_run;       /* how long it took */
    uint32_t granule_cursor; /* where the next search in the result arena begins */
    const volatile uint32_t *original; /* 1 here, 0 in a child that process has forked */
    struct gpud_task task;
};

/* Becomes the worker; leaves by _exit. */
void gpi_worker_run(const struct gpi_worker_plan *plan);

/* Rings the host's bell.  Never blocks: see frame.h for how few can be under way. */
void gpi_worker_tell(gpud_worker *w, uint32_t news);

/* Result space: a run of granules, UINT64_MAX when there is no room; and its return before the
 * host was told. */
uint64_t gpi_worker_result_alloc(gpud_worker *w, uint64_t size);
void gpi_worker_result_undo(gpud_worker *w, uint64_t off, uint64_t size);

#endif
