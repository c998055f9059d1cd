/* SPDX-License-Identifier: MIT */
/*
 * slot.h - a slot, its worker, and the tasks at it.
 *
 * From the bottom up (tests/check_floors.py):
 *
 *   life.c         queries of its life, as the core has it
 *   timers.c       its next time
 *   reasons.c      why it has no worker
 *   channel.c      its fds and shared memory
 *   running.c      the tasks that run there, and since when
 *   texts.c        how its worker ended, as text
 *   output.c       the worker's output
 *   forecast.c     when it is expected to take its next task
 *   exec.c         workers that are programs: the time that a start may take, and its failures
 *   pool.c         pooled: slots that change class and devices; readings for the core
 *   slots.c        room for slots; slots that are added later
 *   starts.c       events of starts
 *   state.c        the state that the user sees
 *   stops.c        workers and keepers that are stopped
 *   cells.c        from the core's queue to cells and doorbells, and back
 *   room.c         room for results in its arena
 *   results.c      results in its arena
 *   slot.c         starts, ends and kills its worker
 *   completions.c  end records -> outcomes
 *   charge.c       a worker is gone: which of its tasks it had begun, and their texts
 *   death.c        events of workers that failed
 *   messages.c     starts, progress, log
 *   keeper.c       requests to keepers and the spawner, and their messages
 *   watch.c        checks of its tasks; workers that do not begin
 */
#ifndef GPI_HOST_SLOT_H
#define GPI_HOST_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "gpudispatch/stats.h"
#include "host/dispatcher.h"
#include "host/task.h"
#include "sched/event.h"
#include "sched/sched.h"
#include "wire/control.h"
#include "wire/page.h"

#define GPI_TAIL_SIZE 8192u /* bytes kept of a worker's stdout and stderr */
#define GPI_LINE_SIZE 1024u /* bytes of a line that becomes an event; a longer one is split */

struct gpi_channel {
    struct gpi_page *page;
    unsigned char *result; /* the slot's result arena, mapped for reading */
    int page_fd, result_fd;
    int orders;      /* write end of the orders pipe, non-blocking */
    int orders_kept; /* read end without readers, so that a write raises no SIGPIPE */
    int looks;       /* read end of the looks pipe, non-blocking */
    int output;      /* read end, non-blocking: stdout, and stderr if `errors` is -1 */
    int errors;      /* the same for stderr alone, with option stdio EVENTS */
    int keeper;      /* control socket to the keeper */
    uint32_t class;  /* whose workers the keeper makes; GPI_NONE: of none yet */
    int worker;      /* pidfd that reports the worker's end; -1 where the system has none */
};

/* The output of its worker: output.c. */
struct gpi_output {
    uint64_t read;   /* bytes of this life; byte i lies in `tail` at i % GPI_TAIL_SIZE */
    uint32_t prints; /* during this many further tasks the host expects output */
    uint64_t looked_at;
    struct {
        uint64_t number; /* send number of the task */
        uint64_t from;   /* `read` when the host saw the task start */
    } start[GPI_CELLS];
    struct {
        uint32_t size;
        char text[GPI_LINE_SIZE];
    } line[2]; /* the unfinished line of each stream */
    char tail[GPI_TAIL_SIZE];
};

/* Why the spawner could make no keeper, or the keeper no worker. */
struct gpi_unmade {
    char what[128];
    int sys_errno; /* -1: the spawner is gone */
    uint32_t call;
};

/* How the slot's last worker ended. */
struct gpi_obituary {
    uint32_t kind; /* enum gpud_exit */
    int32_t status;
    uint32_t why;             /* enum gpi_why of the kill, if a kill ended the worker */
    uint64_t at;              /* when the core received the report */
    struct gpi_control words; /* EXITED, as the keeper sent it: for exec.c */
};

struct gpi_slot {
    uint32_t index;
    enum gpud_slot_state state; /* as the user sees it: state.c */
    uint64_t since;
    char device[GPI_DEVICE_SIZE];
    uint16_t devices[GPI_DEVICES]; /* places in the table */
    uint32_t n_devices;
    bool is_up;      /* pooled: counted in its class, from the end of setup until it is gone */
    bool gone;       /* the user removed a device of it: no longer a slot of the dispatcher */
    uint16_t class;  /* of its workers: index */
    uint32_t canary; /* enum gpi_canary: the order to its worker, until the result is judged */

    struct gpi_channel ch;
    int32_t keeper_pid;  /* 0 = none */
    bool keeper_dropped; /* the keeper was stopped, and the spawner kills it */
    bool ended;          /* its worker has exited, and the keeper has not reported that yet */
    bool killed;         /* the host or the keeper sent the last SIGKILL to its worker */
    bool initialised;    /* its program has called gpud_init; always, where workers are forked */
    bool passed;         /* its worker has passed setup, in this life */
    int32_t pid;         /* pid of its worker, once the keeper has reported it; 0 = none */
    uint32_t incarnation;     /* the core's, read anew whenever it changes */
    struct gpi_control unfit; /* UNFIT, as this keeper sent it; kind 0: not sent */
    uint32_t denied;          /* ways in which the keeper could not kill the worker: base/ways.h */
    int32_t denied_errno;
    struct gpi_unmade unmade;
    struct gpi_obituary last;

    uint64_t number;    /* number of the last send */
    uint64_t inflight;  /* bit per cell with a task */
    uint32_t sent;      /* number of these bits */
    uint32_t cell_task[GPI_CELLS];
    uint64_t cell_number[GPI_CELLS];
    uint8_t order[GPI_CELLS]; /* cell of send number n, ALONE and LAST, at n % 64; as in the page */
    uint64_t oldest;    /* no send number below this is in flight */
    bool more_log;      /* the next call reads the remaining lines */
    bool unrung;        /* the host raises sent_number at the end of this dispatch */

    /* Times of the host: its mechanisms.  The times of the slot's life are the core's. */
    uint64_t peek_at;        /* next check of the cells without a doorbell */
    uint64_t call_at;        /* the worker should have begun a task by then */
    uint64_t keeper_at;      /* next check whether its keeper is stopped */
    uint64_t vacant_by;      /* end of the wait for its devices' memory */
    uint64_t last_heard;
    uint64_t called_at;      /* when the host rang again, since the worker had not begun a task */
    uint64_t timer;          /* the slot's time in the heap */
    uint64_t told;      /* bit per cell: its task is cancelled, and the page has that */
    uint64_t cancelled; /* of these, those whose worker is killed if they do not end */
    uint32_t batch;     /* how many tasks the dead worker had begun */

    bool claimed;  /* the worker has reported a claim or an end of a task in this life */
    uint32_t room; /* how many results have room, as the core knows it */

    char last_failure[GPI_FAIL_TEXT_SIZE - 64]; /* why setup, a worker without a task, or the slot
                                                   failed */
    uint64_t held;           /* bytes of the result arena that undelivered or lent results hold */
    uint64_t *hold;          /* the same, one bit per granule */
    uint64_t kept;           /* of these, in events that the host keeps */
    uint64_t largest_result; /* of recent tasks */
    uint64_t room_told; /* when the host last logged that its worker waits for room */

    /* for stats.c */
    uint64_t started_at, setup_time, last_duration, work_time, wait_time, idle_since;
    uint64_t last_progress_task;
    double progress;
    char progress_text[GPI_PROGRESS_TEXT_SIZE];
    uint64_t outcomes[8];
    uint64_t done_before; /* their sum when the slot got its devices: slots.c, pool.c */
    uint32_t restarts;

    /* devices: see vacancy.c */
    struct gpi_ground before[GPI_DEVICES];
    bool awaits_memory;
    uint64_t awaited_since, awaited_wait;
    bool waited_for_memory;
    uint32_t dead; /* pid of the dead worker whose memory the slot awaits */
    char blame[GPI_EVIDENCE_SIZE + GPI_DEVICE_NAME + 16]; /* why its worker was killed: its device
                                                             failed, or it broke the protocol */

    uint64_t cell_cancel_at[GPI_CELLS];
    uint64_t cell_started[GPI_CELLS]; /* start_events: send number of the seen start */
    struct gpi_output out;
};

/* life.c */
enum gpi_life gpi_slot_life(const gpud_dispatcher *d, const struct gpi_slot *s);
/* Whether the slot has a worker, or may have one.  A worker that survived SIGKILL does not
 * count. */
bool gpi_slot_has_worker(const gpud_dispatcher *d, const struct gpi_slot *s);
bool gpi_slot_is_read(const gpud_dispatcher *d, const struct gpi_slot *s); /* not a CPU slot */
bool gpi_slot_has(const struct gpi_slot *s, uint32_t device);
bool gpi_slot_drains(const gpud_dispatcher *d, const struct gpi_slot *s); /* for the user */
bool gpi_slot_settled(const struct gpi_slot *s);
bool gpi_slot_hopeless(const struct gpi_slot *s); /* given up, or out of use */
bool gpi_slot_serves(const gpud_dispatcher *d, const struct gpi_slot *s); /* takes tasks */
/* Returns the state in its row. */
uint32_t gpi_slot_shown(const gpud_dispatcher *d, const struct gpi_slot *s);
uint64_t gpi_slot_done(const struct gpi_slot *s); /* tasks that ended there */

/* timers.c */
void gpi_slot_timer(gpud_dispatcher *d, struct gpi_slot *s);
/* Before a sleep: if the slot's time in the heap requires nothing any more, replaces it by the next
 * one and returns true.                                                                    [C20] */
bool gpi_slot_retime(gpud_dispatcher *d, struct gpi_slot *s);

/* pool.c */
void gpi_slot_unseat(gpud_dispatcher *d, struct gpi_slot *s); /* it has no worker: no devices */
void gpi_slot_seat(gpud_dispatcher *d, struct gpi_slot *s, uint32_t class); /* SEAT of the core */
void gpi_slot_seat_on(gpud_dispatcher *d, struct gpi_slot *s, uint32_t device);   /* SEAT_ON */
/* A task waits, or a class lacks a worker: for a device that foreign processes may have. */
bool gpi_pool_waits(const gpud_dispatcher *d);
/* A reading of the device is there, or it has come back. */
void gpi_device_usage(gpud_dispatcher *d, uint32_t device);
/* Held work on this device has ended, which may have been removed and have come back. */
void gpi_device_released(gpud_dispatcher *d, uint32_t device);

/* slots.c */
int gpi_slots_init(gpud_dispatcher *d);
void gpi_slots_fini(gpud_dispatcher *d);
/* Adds the slots of a selection, all of them or none, and reuses removed slots with the same
 * devices.  Starts none.  Returns 0 and their numbers in ret_slot, or a code.  A pooled dispatcher
 * gets the devices only. */
int gpi_slots_add(gpud_dispatcher *d, const struct gpi_selection *chosen, uint32_t gauge,
                  uint16_t *ret_slot);
/* Pooled: adds the seats, before any device.  Returns 0 or a code. */
int gpi_slots_add_seats(gpud_dispatcher *d, uint32_t n);

/* state.c */
/* The slot has entered a state of the core. */
void gpi_slot_entered(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_life life);
void gpi_slot_loaded(gpud_dispatcher *d, struct gpi_slot *s); /* READY or BUSY, by its cells */
void gpi_slot_barred(gpud_dispatcher *d, uint32_t device);    /* its slots' bars have changed */
void gpi_slot_out(gpud_dispatcher *d, struct gpi_slot *s);    /* the slot is `gone` */
void gpi_device_leaves(gpud_dispatcher *d, uint32_t device); /* its slots go with it */
/* If a device of the slot was removed, the slot leaves the roster: the core has it STUCK. */
void gpi_slot_strike_off(gpud_dispatcher *d, struct gpi_slot *s);

/* running.c */
/* Returns the cells of tasks that are claimed and have not ended, one bit each. */
uint64_t gpi_slot_running(const gpud_dispatcher *d, const struct gpi_slot *s);
/* The same, but ignores ends that the host has not taken: they are invalid. */
uint64_t gpi_slot_begun(const gpud_dispatcher *d, const struct gpi_slot *s);
/* Returns the cell of the running task that was sent first, or GPI_NONE. */
uint32_t gpi_slot_first(const gpud_dispatcher *d, const struct gpi_slot *s);
/* Returns true if the task in a cell has exceeded its stall limit, and before its time limit. */
bool gpi_slot_stalled(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t cell);
/* Returns when the soft limit of this cell's task expires: its time limit, or its stall limit. */
uint64_t gpi_soft_passes(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t cell);
uint64_t gpi_longest_lead(uint64_t grace);
/* How long a worker that runs no task may take to begin a sent one, and until when. */
uint64_t gpi_patience(const gpud_dispatcher *d, const struct gpi_slot *s);
uint64_t gpi_patience_ends(const gpud_dispatcher *d, const struct gpi_slot *s);
void gpi_slot_expect(gpud_dispatcher *d, struct gpi_slot *s); /* the worker has a task to begin */

/* forecast.c */
/* Returns ready_at of its row. */
uint64_t gpi_slot_ready_at(const gpud_dispatcher *d, const struct gpi_slot *s,
                           const struct gpi_forecast *f);

/* reasons.c */
#define GPI_NO_WORKER "no slot can start a worker" /* if malloc fails for the cause */
#define GPI_NO_DEVICE_FITS "no device that is left could ever hold a worker of its class"
const char *gpi_why_no_worker(const gpud_dispatcher *d, uint32_t class);
struct gpi_task;
const char *gpi_task_why_no_worker(const gpud_dispatcher *d, const struct gpi_task *t);
/* Pooled: the task ends with NO_WORKER, and keeps the reason that its class has now. */
void gpi_task_note_why(const gpud_dispatcher *d, struct gpi_task *t);
/* The slot cannot have a worker.  If it is the last one, notes the reason for the user. */
void gpi_slot_lost_hope(gpud_dispatcher *d, const struct gpi_slot *s);
/* Returns the name, as long as the dispatcher exists; NULL: no memory. */
const char *gpi_keep_name(gpud_dispatcher *d, const char *name);
/* Pooled: the class of the slot has failed. */
void gpi_class_failed(gpud_dispatcher *d, const struct gpi_slot *s);
/* Notes the reason for the event of a hopeless slot. */
void gpi_slot_failure(struct gpi_slot *s, const char *text);
/* No keeper, or no worker, could be made: notes the reason, ahead of the event. */
void gpi_slot_unmade(struct gpi_slot *s, const char *what, int sys_errno, uint32_t call);

/* texts.c */
#define GPI_HOW_SIZE 192u
/* Writes the calls with which its keeper could not kill the worker, and why each failed. */
void gpi_describe_denied(const struct gpi_slot *s, char to[GPI_HOW_SIZE]);
/* Writes how a worker ended, and the reason if the worker has reported one; `to` has GPI_HOW_SIZE
 * bytes.  A text that contains this one ends with gpi_exit_hint. */
void gpi_describe_exit(const gpud_dispatcher *d, const struct gpi_slot *s, char *to, size_t size,
                       uint32_t kind, int32_t status);
/* Returns "; out of memory? ..." after a SIGKILL that this library has not sent, else "". */
const char *gpi_exit_hint(const struct gpi_slot *s, uint32_t kind, int32_t status);
/* Writes how long its worker was stopped, with the stop limit. */
void gpi_words_stopped(const gpud_dispatcher *d, const struct gpi_slot *s, char *to, size_t size);
/* Writes "the spawner is gone", and the reason if the spawner has reported one.  Returns `to`. */
const char *gpi_spawner_gone_text(const gpud_dispatcher *d, char *to, size_t size);
/* Writes the limit after which close kills, or has killed. */
void gpi_close_words(const gpud_dispatcher *d, char *to, size_t size);

/* cells.c */
void gpi_cells_send(gpud_dispatcher *d); /* sends all tasks that the core releases now */
/* Recalls a task that its worker has not claimed, and reports that to the core.  Returns false if
 * the worker has claimed it. */
bool gpi_cell_recall(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell);
uint32_t gpi_recall_all(gpud_dispatcher *d, struct gpi_slot *s); /* how many it recalled */
void gpi_slot_ring(gpud_dispatcher *d, struct gpi_slot *s);
/* Rings the worker, with GPI_ORDER_..., if this word of its page reports that it sleeps. */
void gpi_slot_ring_for(gpud_dispatcher *d, struct gpi_slot *s, _Atomic uint32_t *sleeps,
                       uint32_t what);

/* results.c */
/* Returns true if the host already holds a part of this result: no honest worker does that. */
bool gpi_result_overlaps(const struct gpi_slot *s, uint64_t off, uint64_t size);
/* Takes the result of the ended task from this cell, or from the arena. */
void gpi_result_keep(gpud_dispatcher *d, struct gpi_slot *s, struct gpi_task *t, uint32_t cell,
                     const struct gpi_ending *e);
/* Drops this result, for example because another attempt follows. */
void gpi_result_drop(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_ending *e);
void gpi_result_release(gpud_dispatcher *d, uint32_t slot, uint64_t off, uint64_t size);
void gpi_results_room(gpud_dispatcher *d, struct gpi_slot *s); /* held or kept has changed */
/* Frees the granules that the host does not hold.  Returns how many the dead worker may have
 * used. */
uint64_t gpi_results_settle(gpud_dispatcher *d, struct gpi_slot *s);
/* Frees the memory behind the first n granules, before the next task. */
void gpi_results_trim(gpud_dispatcher *d, struct gpi_slot *s, uint64_t n);

/* completions.c */
void gpi_collect(gpud_dispatcher *d, struct gpi_slot *s);
bool gpi_collect_all(gpud_dispatcher *d); /* from all slots; true if a task had ended or started */
/* Requests doorbells.  Returns false if a task has ended or started meanwhile. */
bool gpi_go_to_sleep(gpud_dispatcher *d);
void gpi_wake_up(gpud_dispatcher *d);
void gpi_look_for_disorder(gpud_dispatcher *d, struct gpi_slot *s);
/* After a death, behind gpi_collect: takes every end, whether or not the tasks sent before have
 * ended. */
void gpi_collect_rest(gpud_dispatcher *d, struct gpi_slot *s);

/* starts.c */
void gpi_start_seen(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, uint32_t attempt,
                    uint64_t started_at);
/* Option start_events.  If the host did not see an attempt start while it ran, the start event
 * precedes the attempt's end or charge. */
void gpi_see_starts(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_see_start(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell);

/* messages.c */
void gpi_on_looks(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_read_more_log(gpud_dispatcher *d, struct gpi_slot *s);

/* output.c */
void gpi_output_begin(gpud_dispatcher *d, struct gpi_slot *s); /* of a worker's life */
void gpi_output_end(gpud_dispatcher *d, struct gpi_slot *s);   /* reads the remaining output */
void gpi_on_output(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_on_errors(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_output_look(gpud_dispatcher *d, struct gpi_slot *s); /* reads it if it is readable */
/* Call once when an attempt has ended and its worker may print.  Returns whether its outcome
 * carries output. */
bool gpi_output_ended(struct gpi_slot *s, uint32_t cell, uint32_t outcome);
/* As gpi_task_detail, with the attempt's output. */
struct gpi_detail *gpi_output_detail(const struct gpi_slot *s, struct gpi_task *t, uint32_t cell,
                                     uint32_t outcome);
uint32_t gpi_output_kept(const struct gpi_slot *s);                      /* in bytes */
void gpi_output_copy(const struct gpi_slot *s, char *to, uint32_t size); /* the last `size` bytes */

/* slot.c */
void gpi_slot_start(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_start_kind how);
/* The keeper has reported the start. */
void gpi_slot_started(gpud_dispatcher *d, struct gpi_slot *s, int32_t pid);
/* Reports to the core that setup has passed, once the keeper has also sent STARTED. */
void gpi_slot_check_ready(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_slot_kill(gpud_dispatcher *d, struct gpi_slot *s);
/* The keeper kills the worker at this time, unless that task has ended by then. */
void gpi_slot_kill_at(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, uint64_t at);
void gpi_slot_end(gpud_dispatcher *d, struct gpi_slot *s);
/* `how` is an enum gpud_cancel. */
void gpi_slot_cancel(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, uint32_t how);

/* death.c */
void gpi_slot_note(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_sched_action *a);
void gpi_slot_judge(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_judge how);

/* watch.c */
void gpi_slot_call(gpud_dispatcher *d, struct gpi_slot *s);   /* at call_at */
void gpi_slot_look(gpud_dispatcher *d, struct gpi_slot *s);   /* LOOK and HOLD of the core */
void gpi_slot_hold(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_slot_peek(gpud_dispatcher *d, struct gpi_slot *s);

/* charge.c */
/* The slot's worker is gone, and the host has read all its reports.  Returns the tasks that cannot
 * have begun to the queue.  Returns true if the worker had overwritten its page.  The core charges
 * the rest. */
bool gpi_slot_give_back(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_task_over(gpud_dispatcher *d, const struct gpi_sched_end *e); /* the core has ended it */

/* room.c */
/* Wakes a worker that waits for room: granules are free again, or the wait must end. */
void gpi_result_room(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_result_hurry(gpud_dispatcher *d); /* ends the waits of all workers */
void gpi_result_wanted(gpud_dispatcher *d, struct gpi_slot *s); /* logs a wait */

/* channel.c */
int gpi_channel_init(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_channel_header(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_channel_fini(gpud_dispatcher *d, struct gpi_slot *s);
/* Requests a keeper from the spawner.  Returns 0 or an errno. */
int gpi_channel_make(gpud_dispatcher *d, struct gpi_slot *s);
/* Closes the fds that live as long as one keeper. */
void gpi_channel_unmake(gpud_dispatcher *d, struct gpi_slot *s);
int gpi_channel_attach(gpud_dispatcher *d, struct gpi_slot *s, int keeper_fd);
int gpi_channel_tell(const struct gpi_slot *s, uint32_t kind, bool force);
/* Orders the keeper to start a worker of the slot's class. */
int gpi_channel_start(const gpud_dispatcher *d, struct gpi_slot *s);
/* Sends KILL with a time and a task: the keeper kills then, unless that task has ended. */
int gpi_channel_tell_when(const struct gpi_slot *s, uint32_t cell, uint64_t at);

/* keeper.c */
void gpi_keeper_make(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_keeper_dismiss(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_keeper_give_up(gpud_dispatcher *d, struct gpi_slot *s); /* GIVE_UP of the core */
void gpi_on_keeper(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_on_spawner(gpud_dispatcher *d);
void gpi_spawner_lost(gpud_dispatcher *d);
void gpi_on_worker_end(gpud_dispatcher *d, struct gpi_slot *s);

/* stops.c */
void gpi_slot_stopped(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_slot_continued(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_slot_overdue(gpud_dispatcher *d, struct gpi_slot *s);
/* For keepers that send nothing. */
void gpi_keeper_expect(gpud_dispatcher *d, struct gpi_slot *s, uint64_t wait); /* reports */
void gpi_keeper_watch_worker(gpud_dispatcher *d, struct gpi_slot *s); /* watches for its end */
void gpi_keeper_look(gpud_dispatcher *d, struct gpi_slot *s);         /* its worker has exited */
/* The keeper is late.  Returns whether the host has dropped it for that. */
bool gpi_keeper_hangs(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_keepers_drop(gpud_dispatcher *d); /* all stopped ones; their workers die too */

/* exec.c */
/* From the start of a program to its gpud_init.  Interpreters that import half of a framework from
 * a cold disk take tens of seconds.  A program that has not called it by then probably does not
 * know the library. */
#define GPI_ANSWER_LIMIT_NS (120 * GPI_S)
/* On a driver that must first bring the device up, a context takes seconds. */
#define GPI_CANARY_LIMIT_NS (60 * GPI_S)
/* Writes how long a start may take, "900.000 s (setup_limit)".  Returns `to`. */
const char *gpi_start_limit_text(const gpud_dispatcher *d, const struct gpi_slot *s, char *to,
                                 size_t size);
/* Why a program that never replied is no worker: returns the code, and writes a text. */
int32_t gpi_start_verdict(const gpud_dispatcher *d, const struct gpi_slot *s, enum gpi_why why,
                          uint32_t kind, int32_t status, char *text, size_t size);

/* The class of its workers. */
static inline struct gpi_class *gpi_slot_class(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return &d->class[s->class];
}

#define GPI_OUTPUT_AGE GPI_MS

/* Returns whether to read a worker's output before the host takes the ends of its tasks: while the
 * host expects output; and for the first output if the host has not polled for GPI_OUTPUT_AGE, at
 * most once in that time. */
static inline bool gpi_output_expected(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return s->out.prints || (d->now > d->loop.heard_at + GPI_OUTPUT_AGE &&
                             d->now > s->out.looked_at + GPI_OUTPUT_AGE &&
                             gpi_slot_class(d, s)->launch.reads_output);
}

/* The cell of send number n, if its task is still there: it may be recalled, cancelled or ended. */
static inline bool gpi_slot_sent(const struct gpi_slot *s, uint64_t n, uint32_t *ret_cell)
{
    const uint32_t cell = s->order[n % GPI_CELLS] % GPI_CELLS;

    *ret_cell = cell;
    return s->cell_number[cell] == n && s->inflight >> cell & 1;
}

/* The task of this cell is not at the worker any more. */
static inline void gpi_cell_empty(struct gpi_slot *s, uint32_t cell)
{
    s->inflight &= ~(1ull << cell);
    s->sent--;
}

static inline struct gpi_slot *gpi_task_slot(gpud_dispatcher *d, const struct gpi_task *t)
{
    return &d->slot[t->slot];
}

#endif
