/* SPDX-License-Identifier: MIT */
/*
 * drive.h - the driving thread, and the threads that sleep meanwhile.
 *
 *   wakeup.c    the fds that the driver watches, and the doorbell that wakes it
 *   sleepers.c  threads that sleep, and which of them is woken
 *   loop.c      one turn
 *   pollable.c  the fd for an event loop of the host
 *   drivers.c   which thread drives
 *   poll.c      poll
 *   wait.c      the outcome of one task, for the thread that waits for it
 *   ready.c     workers that have passed setup, for a thread that waits for them
 */
#ifndef GPI_HOST_DRIVE_H
#define GPI_HOST_DRIVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "host/dispatcher.h"

/* A thread of the user that sleeps while another one drives.  Guarded by the dispatcher's lock. */
struct gpi_sleeper {
    struct gpi_sleeper *before, *after;
    pthread_cond_t call;
    bool asleep;
    bool called; /* its event is ready: it returns and does not drive */
};

/* A thread that waits for the outcome of a task, or until this number of slots is ready; 0: all
 * that can be. */
struct gpi_waiter {
    struct gpi_sleeper sleeper;
    uint64_t id;
    uint32_t slots;
    struct gpi_waiter *next; /* in its list */
};

/* wakeup.c */
enum gpi_fd_kind {
    GPI_FD_WAKE = 1, GPI_FD_SPAWNER, GPI_FD_SPAWNER_DEATH, GPI_FD_KEEPER, GPI_FD_LOOKS,
    GPI_FD_OUTPUT, GPI_FD_ERRORS, GPI_FD_WORKER, GPI_FD_MONITOR
};
int gpi_drive_init(gpud_dispatcher *d);
void gpi_drive_fini(gpud_dispatcher *d);
int gpi_drive_watch(gpud_dispatcher *d, int fd, enum gpi_fd_kind kind, uint32_t slot);
void gpi_drive_unwatch(gpud_dispatcher *d, int fd);
void gpi_drive_close(gpud_dispatcher *d, int *fd); /* removes the fd from the watch and closes it */
void gpi_drive_wake(gpud_dispatcher *d);           /* the driver has a new action; lock held */

/* sleepers.c */
/* Sleeps until a thread wakes it.  Returns false when the time expires. */
bool gpi_sleep_beside(gpud_dispatcher *d, struct gpi_sleeper *s, uint64_t until);
void gpi_sleepers_hand_over(gpud_dispatcher *d); /* no thread drives: wakes a sleeper to drive */
struct gpi_waiter **gpi_waiters(gpud_dispatcher *d, uint64_t id);  /* the list for this task */
struct gpi_waiter *gpi_waiter_of(gpud_dispatcher *d, uint64_t id); /* or NULL */
void gpi_waiter_enlist(gpud_dispatcher *d, struct gpi_waiter **list, struct gpi_waiter *w);
void gpi_waiter_strike_off(gpud_dispatcher *d, struct gpi_waiter **list,
                           const struct gpi_waiter *w);
void gpi_drive_call(struct gpi_sleeper *s);        /* wakes it: its event is ready */
void gpi_drive_tell(gpud_dispatcher *d);           /* an event may be ready for poll or run */
bool gpi_drive_reenters(const gpud_dispatcher *d); /* the caller is a callback of run */
bool gpi_drive_all_told(const gpud_dispatcher *d);
void gpi_wait_ended(gpud_dispatcher *d, const struct gpi_task *t);
void gpi_ready_changed(gpud_dispatcher *d); /* which slots are or can be ready has changed */
void gpi_pollable_tell(gpud_dispatcher *d);

/* loop.c */
/* Returns the earliest time at which the driver must act without an event. */
uint64_t gpi_drive_next(gpud_dispatcher *d);
/* Drives until `done` returns true (returns true) or the time expires (false).  Reads all fds at
 * least once, unless `done` is true at once.  Releases the lock while it waits. */
typedef bool(gpi_done_fn)(const gpud_dispatcher *d, const void *context);
bool gpi_drive_until(gpud_dispatcher *d, gpi_done_fn *done, const void *context, uint64_t until);

/* drivers.c */
int gpi_drive_start_thread(gpud_dispatcher *d);
/* The same for one of several threads of the user: it drives if none of them does, else it
 * sleeps. */
bool gpi_drive_together(gpud_dispatcher *d, struct gpi_sleeper *me, gpi_done_fn *done,
                        const void *context, uint64_t until);
/* The same for the thread in poll or run, which gpi_drive_tell calls. */
bool gpi_drive_for_events(gpud_dispatcher *d, gpi_done_fn *done, const void *context,
                          uint64_t until);
void gpi_drive_alone(gpud_dispatcher *d); /* for destroy: ends the library thread */
int gpi_drive_enter(gpud_dispatcher *d); /* for poll, run, destroy: 0, EBUSY or EREENTER */
void gpi_drive_leave(gpud_dispatcher *d);
void gpi_drive_go_in(gpud_dispatcher *d); /* a thread of the user comes in to drive */
void gpi_drive_go_out(gpud_dispatcher *d);

/* poll.c */
int gpi_poll(gpud_dispatcher *d, struct gpud_event *events, size_t stride, size_t n, uint64_t wait);

/* wait.c */
int gpi_wait(gpud_dispatcher *d, uint64_t id, struct gpud_event *event, uint64_t timeout,
             struct gpud_error *e);

/* ready.c */
int gpi_ready(gpud_dispatcher *d, uint32_t slots, uint64_t wait, struct gpud_error *e);

/* pollable.c */
int gpi_pollable(gpud_dispatcher *d);       /* returns the fd, or a code */
void gpi_pollable_away(gpud_dispatcher *d); /* the last thread leaves */
void gpi_pollable_back(gpud_dispatcher *d);
void gpi_pollable_quiet(gpud_dispatcher *d); /* a thread leaves while another one drives */
void gpi_pollable_fini(gpud_dispatcher *d);

/* The time at which a wait ends; 0 and NEVER stay. */
static inline uint64_t gpi_wait_until(uint64_t wait)
{
    return wait == 0 || wait == GPI_NEVER ? wait : gpi_time_add(gpi_now(), wait);
}

#endif
