/* SPDX-License-Identifier: MIT */
/*
 * worker.h - the worker process: one thread of the library that runs setup, then process for each
 * task it can claim, then cleanup.
 *
 * Orders that must not change: the worker claims a task before it touches the data.  It completes
 * the end record, then stores the end word (with release order), and does that before anything
 * else.  Only then may it ring the host's doorbell.
 */
#ifndef GPI_WORKER_WORKER_H
#define GPI_WORKER_WORKER_H

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/refused.h"
#include "wire/frame.h"
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
    uint64_t stalled_at;  /* when the task exceeded it, 0 = it has not */
    int fail_code;  /* 0 = fail was not called */
    /* for the end record: members of its batch, FIRST; TEXT: fail_text counts if the task fails */
    uint16_t flags;
};

struct gpud_worker {
    struct gpi_worker_plan plan;
    struct gpi_limit limit;
    void *state;             /* of the user, from setup */
    uint64_t next;           /* send number of the next task */
    /* a task has ended, and the worker has not checked since whether the host sleeps */
    bool untold;
    uint64_t oldest_end;     /* when the first of these tasks ended */
    uint64_t last_end;       /* end of the last attempt in this run_sent; 0 = read the clock */
    uint64_t last_run;       /* duration of the last call */
    uint32_t granule_cursor; /* where the next search in the result arena starts */
    uint32_t granules_granted; /* the last check found memory up to here */
    const volatile uint32_t *original; /* 1 here, 0 in a child that process has forked */
    struct gpi_cuda *cuda;   /* NULL without GPUs and fakes */
    bool pinned;             /* the result arena is pinned, in pieces */
    uint32_t n_devices;
    char device[GPI_DEVICES][GPI_DEVICE_NAME_SIZE];
    char uuid[GPI_DEVICES][GPI_DEVICE_UUID_SIZE];
    bool dismissed;          /* END has arrived */
    uint32_t members;        /* of `task`, in the call that runs */
    bool claimed;            /* a task, and the host has been informed */
    bool start_events;       /* the option */
    struct gpud_task task[GPI_CELLS];
};

/* ---- ends.c ---- */

/* Parts of running one task or several. */
void gpi_worker_task_init(struct gpud_task *t, gpud_worker *w, uint32_t index, uint64_t number);
void gpi_worker_write_end(gpud_worker *w, struct gpud_task *t, int code, uint64_t ended_at,
                          bool later);
/* Notes which stall limits have expired by now: before progress, and at the end. */
void gpi_worker_note_stall(gpud_worker *w, uint64_t now);
void gpi_worker_refuse(gpud_worker *w, struct gpi_cell *c, uint64_t number, uint64_t now);
void gpi_worker_block_alarm(bool block);
void gpi_worker_flush(gpud_worker *w);
/* Rings the host's doorbell.  Never blocks: frame.h shows how few can be under way. */
void gpi_worker_tell(gpud_worker *w, uint32_t news);
_Noreturn void gpi_worker_leave(int status);
_Noreturn void gpi_worker_leave_sick(gpud_worker *w);
/* Ends a worker that cannot go on: the host reads the cause beside the exit status. */
_Noreturn void gpi_worker_give_up(gpud_worker *w, int status, const char *why);
/* The same, with errno as that of the refused call. */
_Noreturn void gpi_worker_give_up_refused(gpud_worker *w, int status, enum gpi_sys call);

/* A child that was forked in setup or process and returns from it is no second worker. */
static inline void gpi_worker_leave_if_forked(const gpud_worker *w)
{
    if (!*w->original)
        _exit(0);
}

/* The flush rule: the worker checks whether the host sleeps and must be rung.  It does so before
 * the next process if the last one took longer than GPI_FLUSH_RUN_NS, or the oldest unreported end
 * is older than GPI_FLUSH_AGE_NS.  It always does so when there is no more to run. */
#define GPI_FLUSH_RUN_NS (4 * GPI_US)
#define GPI_FLUSH_AGE_NS (50 * GPI_US)

static inline bool gpi_worker_must_flush(const gpud_worker *w, uint64_t now)
{
    return w->untold &&
           (w->last_run > GPI_FLUSH_RUN_NS || now - w->oldest_end > GPI_FLUSH_AGE_NS);
}

static inline void gpi_worker_note_end(gpud_worker *w, uint64_t ended)
{
    if (!w->untold)
        w->oldest_end = ended;
    w->untold = true;
    w->last_end = ended;
}

/* After a call that took this long, the 0.5 us of setting the timer exactly do not matter. */
#define GPI_EXACT_RUN_NS (20 * GPI_US)

/* Before a call of process, which may start at `now`.  Returns the time of its start. */
static inline uint64_t gpi_worker_before(gpud_worker *w, uint64_t now)
{
    if (w->last_run > GPI_EXACT_RUN_NS)
        gpi_worker_block_alarm(false); /* the last call may have left it blocked */
    if (gpi_worker_must_flush(w, now)) {
        gpi_worker_flush(w);
        now = gpi_now();
    }
    gpi_worker_leave_if_forked(w);
    return now;
}

/* Reports the first claim of a life: process cannot hide it by writing over the page. */
static inline void gpi_worker_note_claim(gpud_worker *w)
{
    if (w->claimed)
        return;
    w->claimed = true;
    gpi_worker_tell(w, GPI_NEWS_CLAIMED);
}

/* Option start_events: rings for a host that sleeps, once the start time is stored. */
static inline void gpi_worker_note_start(gpud_worker *w)
{
    if (w->start_events && gpi_page_must_ring(&w->plan.page->host_sleeps))
        gpi_worker_tell(w, GPI_NEWS_CLAIMED);
}

/* ---- orders.c ---- */

/* Drops doorbells for an earlier worker of the slot. */
void gpi_worker_drop_old_bells(int fd);
/* Sleeps until `number` has been sent, or until a time; returns false when END has arrived. */
bool gpi_worker_await(gpud_worker *w, uint64_t number, uint64_t until);
/* Sleeps within a task, with these signals blocked, until the host rings, a signal arrives, or a
 * time is reached. */
void gpi_worker_doze(gpud_worker *w, uint64_t until, const sigset_t *blocked);

/* ---- fault.c ---- */

/* Before setup, opens the devices and runs the canary; reports a failure and exits. */
void gpi_worker_meet_devices(gpud_worker *w);
/* After setup: pins the arenas, if option cuda requires it. */
void gpi_worker_pin(gpud_worker *w);
/* After process, which returned `code`: charges a fault of CUDA to the members that have not
 * failed.  Returns true if this process can use CUDA no more, and must leave once the host has the
 * report. */
bool gpi_worker_look(gpud_worker *w, int code);

/* ---- ahead.c ---- */

/* After this many tasks in a row more are likely to be under way, and after setup the first.  After
 * a single task the wait would only cost. */
#define GPI_BATCH_TASKS 4u
#define GPI_LINGER_NS (30 * GPI_US)
#define GPI_AFTER_SETUP_NS (100 * GPI_US)

/* Polls for more tasks before a sleep: for `ns` while the host sends from another CPU, else once.
 * Other processes on this CPU run first.  Returns whether there are any tasks.  [C20] */
bool gpi_worker_linger(const gpud_worker *w, uint64_t ns);

/* Prefetches the memory that the sent tasks up to the number `last` will need soon. */
void gpi_worker_ask_ahead(const gpud_worker *w, uint64_t last);

/* ---- batch.c ---- */

/* Serves with process_batch until END. */
void gpi_worker_serve_batches(gpud_worker *w);

/* ---- worker.c ---- */

/* Returns whether this process is a worker; false in a child that user code has forked there. */
bool gpi_worker_here(void);

/* Becomes the worker; leaves with _exit. */
void gpi_worker_run(const struct gpi_worker_plan *plan);

/* The part of a birth that is the same for all workers of a slot: streams and memory.  Runs once in
 * the keeper, for the workers that it forks; else in the worker itself. */
void gpi_worker_prepare(struct gpi_page *page);

/* ---- result.c ---- */

/* Result space: alloc returns the offset of a run of granules, UINT64_MAX when there is no room.
 * Undo frees a run that the host does not know yet. */
uint64_t gpi_worker_result_alloc(gpud_worker *w, uint64_t size);
/* Alloc with a wait for room: option result_wait. */
uint64_t gpi_worker_result_await(gpud_task *t, uint64_t size);
void gpi_worker_result_undo(gpud_worker *w, uint64_t off, uint64_t size);

#endif
