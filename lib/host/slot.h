/* SPDX-License-Identifier: MIT */
/*
 * slot.h - a slot, its worker, and the tasks at it.
 *
 *   slots.c     room for slots; slots that are added later
 *   slot.c      a slot's life: start, ready, kill, wind down
 *   life.c      the state of the core that its flags stand for; checked in debug builds
 *   start.c     workers that are programs: what is executed, and what became of it
 *   channel.c   a slot's fds: pipes, keeper socket, status page, arenas
 *   dispatch.c  queue -> cells and bells; recall
 *   collect.c   end records -> outcomes
 *   news.c      starts, progress, log
 *   output.c    what it prints
 *   watch.c     the limits of what runs there
 *   death.c     its worker's end: what is told, and what the slot does next
 *   charge.c    what a dead worker's tasks get
 *   room.c      a worker that waits for room in its result arena
 *   stops.c     workers and keepers that are stopped
 *   renew.c     a worker that has ended its number of tasks is replaced
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
#include "sched/restart.h"
#include "wire/control.h"
#include "wire/page.h"

#define GPI_TAIL_SIZE 8192u /* of a worker's stdout and stderr */
#define GPI_LINE_SIZE 1024u /* of a line that becomes an event; what is longer becomes several */

/* Why we killed, or are killing, a worker. */
enum gpi_kill { GPI_KILL_NO, GPI_KILL_SETUP, GPI_KILL_HARD, GPI_KILL_CANCEL, GPI_KILL_CLEANUP, GPI_KILL_PROTOCOL, GPI_KILL_CLOSE, GPI_KILL_DEVICE,
                GPI_KILL_STOPPED /* not by us: by its keeper, at the stop limit */ };

struct gpi_channel {
    struct gpi_page *page;
    unsigned char *result; /* the slot's result arena, mapped for reading */
    int page_fd, result_fd;
    int orders;      /* write end, non-blocking */
    int orders_kept; /* read end: never read, never given flags; so that a write raises no SIGPIPE */
    int looks;       /* read end, non-blocking */
    int output;      /* read end, non-blocking: stdout, and stderr where the next is -1 */
    int errors;      /* the same for stderr alone, with option stdio EVENTS */
    int keeper;      /* control socket */
    int worker;      /* pidfd of the worker, for its end; -1 where the system has none */
};

/* What its worker prints: output.c. */
struct gpi_output {
    uint64_t read;   /* bytes of this life; number i lies in `tail` at i % GPI_TAIL_SIZE */
    uint32_t prints; /* so many more tasks are expected to print */
    uint64_t looked_at;
    struct {
        uint64_t number; /* the send number that this is about */
        uint64_t from;   /* `read` when its start was seen */
    } start[GPI_CELLS];
    struct {
        uint32_t size;
        char text[GPI_LINE_SIZE];
    } line[2]; /* the begun one of each stream */
    char tail[GPI_TAIL_SIZE];
};

struct gpi_slot {
    uint32_t index;
    enum gpud_slot_state state;
    uint64_t since;
    char device[GPI_DEVICE_SIZE];
    uint16_t devices[GPI_DEVICES]; /* in the table */
    uint32_t n_devices;
    bool watched;  /* its devices are read: they are not CPU slots */
    bool leaving;  /* takes no task; when it has none its worker goes: a device of it drains, or is out of use */
    bool parked;   /* has no worker, and waits until its devices let it have one */
    bool survivor; /* its worker survived SIGKILL: out of use for good */
    bool useless;  /* counted in n_useless */
    bool removed;
    bool trying;   /* its worker is there for the canary alone */
    bool vacating; /* its start waits until its devices' memory is free again */
    uint32_t canary; /* enum gpi_canary: what its worker was asked to do, until that is judged */

    struct gpi_channel ch;
    int32_t keeper_pid; /* 0 = none */
    bool keeper_asked;  /* MAKE sent, no MADE yet */
    bool keeper_lost;   /* it has died; GONE awaited */
    bool keeper_dropped; /* it was stopped, and the spawner is to kill it */
    uint32_t keepers_in_vain; /* so many died in a row before they could be asked to start a worker */
    bool sweeping;      /* the worker has died, what it had started is not gone yet */
    bool started;       /* START sent, no EXITED yet */
    bool still;         /* its worker is stopped, or has ended: it takes no task */
    bool ended;         /* its worker has ended, which its keeper has not told yet */
    bool killed;        /* the last SIGKILL to its worker was ours, or its keeper's */
    bool answered;      /* the program that was executed has come to gpud_init; always, where workers are forked */
    int32_t pid;
    uint32_t incarnation;
    enum gpi_kill kill; /* sent, no EXITED yet */
    struct gpi_control unfit;    /* UNFIT, as this keeper sent it; kind 0: it did not */
    uint32_t denied;    /* ways in which the keeper could not kill it: base/ways.h */
    int32_t denied_errno;
    struct gpi_control obituary; /* EXITED, as the keeper sent it: for start.c */

    uint64_t number;    /* of the last send */
    uint64_t inflight;  /* bit per cell */
    uint32_t sent;      /* how many bits */
    uint32_t cell_task[GPI_CELLS];
    uint64_t cell_number[GPI_CELLS];
    uint8_t order[GPI_CELLS]; /* cell of send number n, ALONE and LAST, at n % 64; as in the page */
    uint64_t oldest;    /* no send number below this is in flight */
    bool more_log;      /* lines were left for a later look */
    bool unrung;        /* sent_number is to be raised at the end of this dispatch */

    uint64_t state_deadline; /* setup or cleanup limit, end of backoff, kill limit */
    uint64_t check_at;       /* next look at the time limit of what runs */
    uint64_t peek_at;        /* next look into the cells without a frame */
    uint64_t last_heard;
    uint64_t called_at;      /* when it was rung anew, since it had not begun what it was sent */
    uint32_t called_turns;   /* how often it had been stopped and continued then */
    uint64_t timer;          /* as it stands in the heap */
    uint64_t told;      /* bit per cell: the running task in it was told that it is cancelled */
    uint64_t cancelled; /* of these, those whose worker is killed if they do not end */
    uint64_t late;      /* bit per cell: past its own limit when its worker was to be killed */

    uint32_t served; /* attempts that its worker has ended, in this life */
    bool claimed;    /* it has said that it claimed one, in this life */

    struct gpi_restart restart;
    char last_failure[GPI_FAIL_TEXT_SIZE - 64]; /* in words: of setup, of a worker without a task,
                                                   or why the slot is useless */
    uint64_t mean_run;       /* moving average per task, 0 = unknown */
    uint64_t held;           /* bytes of the result arena in undelivered or lent results */
    uint64_t *hold;          /* the same, a bit per granule */
    uint64_t kept;           /* of these, in events that the host keeps */
    uint64_t largest_result; /* recent */
    uint64_t room_told; /* when it was last told that its worker waits for room */

    /* for stats */
    uint64_t started_at, setup_time, last_duration, work_time, wait_time, idle_since, last_progress_task;
    double progress;
    char progress_text[GPI_PROGRESS_TEXT_SIZE];
    uint64_t outcomes[8];
    uint32_t restarts;

    /* devices: see vacancy.c */
    struct gpi_ground before[GPI_DEVICES];
    uint64_t vacating_since, vacant_by, vacating_wait;
    bool waited_for_memory;
    uint32_t dead; /* pid of the worker whose memory is awaited */
    char blame[GPI_EVIDENCE_SIZE + GPI_DEVICE_NAME + 16]; /* why its worker was killed: its device
                                                             failed, or it broke the protocol */

    uint64_t cell_cancel_at[GPI_CELLS];
    uint64_t cell_started[GPI_CELLS]; /* start_events: the send number whose start was seen */
    struct gpi_output out;
};

/* slots.c */
int gpi_slots_init(gpud_dispatcher *d);
void gpi_slots_fini(gpud_dispatcher *d);
/* Adds the slots of a selection, all of them or none; a removed slot with the same devices is used again.
 * They are not started.  0 and their numbers in ret_slot, or a code. */
int gpi_slots_add(gpud_dispatcher *d, const struct gpi_selection *chosen, uint32_t gauge, uint16_t *ret_slot);

/* dispatch.c */
void gpi_dispatch(gpud_dispatcher *d);
uint32_t gpi_recall_all(gpud_dispatcher *d, struct gpi_slot *s); /* how many came back */
void gpi_slot_ring(gpud_dispatcher *d, struct gpi_slot *s);
/* Rings the worker, with GPI_ORDER_..., if this word of its page says that it sleeps. */
void gpi_slot_ring_for(gpud_dispatcher *d, struct gpi_slot *s, _Atomic uint32_t *sleeps,
                       uint32_t what);
bool gpi_take_back(gpud_dispatcher *d, struct gpi_task *t); /* a sent task leaves its cell; false: its worker has claimed it */

/* collect.c */
void gpi_collect(gpud_dispatcher *d, struct gpi_slot *s);
bool gpi_collect_all(gpud_dispatcher *d); /* from every slot; whether a task had ended or started */
bool gpi_go_to_sleep(gpud_dispatcher *d); /* asks for bells; false when it did so meanwhile */
void gpi_wake_up(gpud_dispatcher *d);
void gpi_look_for_disorder(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_drain(gpud_dispatcher *d, struct gpi_slot *s);
/* Frees what the host does not hold.  Returns how many granules the dead worker may have used. */
uint64_t gpi_results_settle(gpud_dispatcher *d, struct gpi_slot *s);
/* Gives the memory behind the first n granules back, before the next task. */
void gpi_results_trim(gpud_dispatcher *d, struct gpi_slot *s, uint64_t n);
void gpi_result_release(gpud_dispatcher *d, uint32_t slot, uint64_t off, uint64_t size);

/* news.c */
void gpi_on_looks(gpud_dispatcher *d, struct gpi_slot *s);
/* Option start_events.  An attempt whose start was not seen while it ran has its event ahead of its
 * end, or of its charge. */
void gpi_see_starts(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_start_seen(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, uint32_t attempt,
                    uint64_t started_at);
void gpi_read_more_log(gpud_dispatcher *d, struct gpi_slot *s);

/* output.c */
void gpi_output_begin(gpud_dispatcher *d, struct gpi_slot *s); /* of a life */
void gpi_output_end(gpud_dispatcher *d, struct gpi_slot *s);   /* reads the rest */
void gpi_on_output(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_on_errors(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_output_look(gpud_dispatcher *d, struct gpi_slot *s); /* reads it if it is readable */
/* To be called once when an attempt has ended, while its worker prints or may: whether its outcome
 * carries output. */
bool gpi_output_ended(struct gpi_slot *s, uint32_t cell, uint32_t outcome);
/* As gpi_task_detail, with the attempt's output. */
struct gpi_detail *gpi_output_detail(const struct gpi_slot *s, struct gpi_task *t, uint32_t cell,
                                     uint32_t outcome);
uint32_t gpi_output_kept(const struct gpi_slot *s); /* bytes */
void gpi_output_copy(const struct gpi_slot *s, char *to, uint32_t size); /* the last ones */

/* slot.c */
void gpi_slot_clear_times(struct gpi_slot *s);
/* To be called when something was asked for: when the answer is late. */
void gpi_slot_await(gpud_dispatcher *d, struct gpi_slot *s, uint64_t limit);
void gpi_slot_enter(gpud_dispatcher *d, struct gpi_slot *s, enum gpud_slot_state state);
void gpi_slot_start(gpud_dispatcher *d, struct gpi_slot *s);
/* Its keeper has told. */
void gpi_slot_started(gpud_dispatcher *d, struct gpi_slot *s, int32_t pid);
/* READY, once the keeper has told STARTED and the worker has ended setup. */
void gpi_slot_check_ready(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_slot_turns(gpud_dispatcher *d); /* starts those whose turn has come: option setup_concurrency */
void gpi_slot_kill(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_kill why);
void gpi_slot_retire(gpud_dispatcher *d, struct gpi_slot *s, const char *why); /* it broke the protocol */
void gpi_slot_kill_at(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, uint64_t at); /* for the hard limit; until then it takes no task */
void gpi_slot_cancel(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, uint32_t how); /* enum gpud_cancel */
void gpi_slot_wind_down(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_slot_on_timer(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_slot_timer(gpud_dispatcher *d, struct gpi_slot *s);
/* Before a sleep: a time that asks for nothing any more gives way to the slot's next one.
 * Whether it did.                                                                         [C20] */
bool gpi_slot_retime(gpud_dispatcher *d, struct gpi_slot *s);
bool gpi_slot_settled(const struct gpi_slot *s);
/* Its worker is being killed, its keeper is lost, or the sweep runs: state_deadline bounds that. */
bool gpi_slot_dies(const struct gpi_slot *s);
bool gpi_slot_serves(const struct gpi_slot *s); /* its worker has passed setup and takes tasks */

/* life.c */
/* The state of the core that the slot's flags stand for.  GPI_LIVES: they contradict each other. */
enum gpi_life gpi_slot_life(const gpud_dispatcher *d, const struct gpi_slot *s);
/* For assertions: whether the slot (NULL: every slot) is in a state of the core, and has a deadline
 * if the state is one that time ends. */
bool gpi_lives_hold(const gpud_dispatcher *d, const struct gpi_slot *s);

/* death.c */
#define GPI_NO_WORKER "no slot can start a worker" /* where there is no memory for the cause */
const char *gpi_why_no_worker(const gpud_dispatcher *d);
void gpi_slot_useful(gpud_dispatcher *d, struct gpi_slot *s); /* it may have a worker again */
void gpi_slot_useless(gpud_dispatcher *d, struct gpi_slot *s, enum gpud_slot_state state, const char *why);
bool gpi_nothing_to_come(const gpud_dispatcher *d); /* closing, and no task needs a new worker */
void gpi_slot_again(gpud_dispatcher *d, struct gpi_slot *s); /* starts it, unless nothing is to come */
void gpi_slot_died(gpud_dispatcher *d, struct gpi_slot *s, uint32_t exit_kind, int32_t exit_status);
void gpi_slot_unmade(gpud_dispatcher *d, struct gpi_slot *s, const char *what, int sys_errno,
                     uint32_t call);
void gpi_slot_survived(gpud_dispatcher *d, struct gpi_slot *s); /* SIGKILL: out of use for good */

/* watch.c */
/* The cells of claimed, not ended tasks, a bit each. */
uint64_t gpi_slot_running(const gpud_dispatcher *d, const struct gpi_slot *s);
/* The same, where an end that was not taken is none: it cannot be. */
uint64_t gpi_slot_begun(const gpud_dispatcher *d, const struct gpi_slot *s);
/* The cell of the running task that was sent first; GPI_NONE. */
uint32_t gpi_slot_first(const gpud_dispatcher *d, const struct gpi_slot *s);
void gpi_slot_expect(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_slot_check_limits(gpud_dispatcher *d, struct gpi_slot *s);
uint64_t gpi_task_first_look(const gpud_dispatcher *d, const struct gpi_task *t); /* of one sent now: no earlier can its hard limit matter */
/* Whether what runs in a cell has passed its stall limit, and that before its limit. */
bool gpi_slot_stalled(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t cell);
void gpi_slot_peek(gpud_dispatcher *d, struct gpi_slot *s);

/* charge.c */
/* Settles every task at a worker that is gone.  Returns how many were charged. */
uint32_t gpi_settle_tasks(gpud_dispatcher *d, struct gpi_slot *s, uint32_t kind, int32_t status);
#define GPI_HOW_SIZE 192u
/* How a worker ended, and why where it has said so; `to` has GPI_HOW_SIZE bytes.  A text that
 * contains this one ends with gpi_exit_hint. */
void gpi_describe_exit(const gpud_dispatcher *d, const struct gpi_slot *s, char *to, size_t size,
                       uint32_t kind, int32_t status);
/* "; out of memory? ..." after a SIGKILL that this library has not sent, else "". */
const char *gpi_exit_hint(const struct gpi_slot *s, uint32_t kind, int32_t status);

void gpi_slot_denied(gpud_dispatcher *d, struct gpi_slot *s, const struct gpi_control *c);

/* room.c */
/* Wakes the worker if it waits for room: some has come back, or the wait is to end. */
void gpi_result_room(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_result_hurry(gpud_dispatcher *d); /* ends the waits of all workers */
void gpi_result_wanted(gpud_dispatcher *d, struct gpi_slot *s); /* logs a wait */

/* renew.c */
/* How many more tasks the worker may be sent. */
uint32_t gpi_renew_left(const gpud_dispatcher *d, const struct gpi_slot *s);
bool gpi_renew_due(const gpud_dispatcher *d, const struct gpi_slot *s);
void gpi_renew_step(gpud_dispatcher *d);
void gpi_renew_entered(gpud_dispatcher *d, const struct gpi_slot *s, enum gpud_slot_state state);

/* channel.c */
int gpi_channel_init(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_channel_header(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_channel_fini(gpud_dispatcher *d, struct gpi_slot *s);
int gpi_channel_make(gpud_dispatcher *d, struct gpi_slot *s); /* asks the spawner for a keeper; 0 or errno */
int gpi_channel_tell(struct gpi_slot *s, uint32_t kind, bool force);
int gpi_channel_start(const gpud_dispatcher *d, struct gpi_slot *s);
int gpi_channel_tell_when(struct gpi_slot *s, uint32_t cell, uint64_t at); /* KILL at a time, unless that task has ended */
void gpi_on_keeper(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_on_spawner(gpud_dispatcher *d);
void gpi_spawner_lost(gpud_dispatcher *d);
/* "the spawner is gone", and why where it has said so.  Returns `to`. */
const char *gpi_spawner_gone_text(const gpud_dispatcher *d, char *to, size_t size);

/* stops.c: what a keeper says of its worker */
void gpi_slot_stopped(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_slot_continued(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_slot_overdue(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_words_stopped(const gpud_dispatcher *d, char *to, size_t size); /* with the stop limit */
/* And keepers that say nothing. */
void gpi_keeper_watch_worker(gpud_dispatcher *d, struct gpi_slot *s); /* whose start it has told */
void gpi_on_worker_end(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_keeper_look(gpud_dispatcher *d, struct gpi_slot *s); /* its worker has ended */
bool gpi_keeper_hangs(gpud_dispatcher *d, struct gpi_slot *s); /* it is late: whether it was dropped for that */
void gpi_keepers_drop(gpud_dispatcher *d); /* those that are stopped; their workers die with them */

/* start.c */
int gpi_start_init(gpud_dispatcher *d, const struct gpi_birth *b);
void gpi_start_fini(gpud_dispatcher *d);
/* When a program that has been started must have come to gpud_init, or to the end of setup. */
uint64_t gpi_start_deadline(const gpud_dispatcher *d, const struct gpi_slot *s);
/* Writes the same as a time, "900.000 s (setup_limit)".  Returns `to`. */
const char *gpi_start_limit_text(const gpud_dispatcher *d, const struct gpi_slot *s, char *to,
                                 size_t size);
void gpi_start_answered(gpud_dispatcher *d, struct gpi_slot *s);
/* Why a program that never answered is no worker: the code, and a text. */
int32_t gpi_start_verdict(const gpud_dispatcher *d, const struct gpi_slot *s, enum gpi_kill why, uint32_t kind, int32_t status, char *text, size_t size);

#define GPI_OUTPUT_AGE GPI_MS

/* Whether to look at a worker's output before the ends of its tasks are taken: while it is expected
 * to print; and, at most once in that time, after the host was elsewhere, for its first words. */
static inline bool gpi_output_expected(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return s->out.prints || (d->now > d->heard_at + GPI_OUTPUT_AGE &&
                             d->now > s->out.looked_at + GPI_OUTPUT_AGE && d->reads_output);
}

static inline struct gpi_slot *gpi_task_slot(gpud_dispatcher *d, const struct gpi_task *t)
{
    return &d->slot[t->slot];
}

#endif
