/* SPDX-License-Identifier: MIT */
/*
 * dispatcher.h - the object in the host that owns slots and tasks.
 *
 * One lock per dispatcher guards everything here.  Whoever drives (see drive.c) holds it while
 * it works and drops it while it waits; it is never held while user code runs.
 *
 *   tasks.c     records: accept, queue, end
 *   payload.c   where their bytes lie; buffers
 *   attempt.c   after a bad end: another attempt, and the words of all
 *   defer.c     tasks that wait for a time
 *   dispatch.c  queue -> cells and bells; recall
 *   collect.c   end records -> outcomes
 *   news.c      progress, log, output
 *   slot.c      a slot's life: start, ready, kill, wind down
 *   death.c     its worker's end: what is told, and what the slot does next
 *   slots.c     room for slots; slots that are added later
 *   device.c, gauge.c, judge.c, fence.c, canary.c, vacancy.c, roster.c: devices, see device.h
 *   watch.c     the limits of what runs at a slot
 *   charge.c    what a dead worker's tasks get
 *   start.c     workers that are programs: what is executed, and what became of it
 *   channel.c   a slot's fds: pipes, keeper socket, status page, arenas
 *   deliver.c   events: from outcomes and notes to struct gpud_event
 *   drive.c     the loop, the timers, who drives
 *   wait.c      the outcome of one task, for the thread that asks for it
 *   keep.c      events that outlive the next poll, and the dispatcher
 *   pollable.c  the fd for a loop of the host
 *   finish.c    stop, close, destroy
 *   feed.c      run
 *   create.c    birth
 *   report.c    stats
 */
#ifndef GPI_HOST_DISPATCHER_H
#define GPI_HOST_DISPATCHER_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/chunks.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/hist.h"
#include "gpudispatch/dispatch.h"
#include "gpudispatch/stats.h"
#include "host/device.h"
#include "sched/place.h"
#include "sched/queue.h"
#include "sched/restart.h"
#include "sched/retry.h"
#include "sched/verdict.h"
#include "wire/control.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/launch.h"
#include "wire/page.h"

#define GPI_NONE UINT32_MAX
#define GPI_EVENTS_MAX 256u  /* handed out by one poll, and so lent at a time */
#define GPI_TAIL_SIZE 8192u  /* of a worker's stdout and stderr */
#define GPI_SLOTS_MAX 1024u

/* ---- tasks ---- */

enum gpi_task_state { GPI_TASK_FREE, GPI_TASK_QUEUED, GPI_TASK_SENT, GPI_TASK_ENDED, GPI_TASK_LENT, GPI_TASK_DEFERRED };

/* Each record has a block of its own in the input arena, for data of up to this many bytes and,
 * once the task has ended, for a result of up to as many: small tasks cost no allocation. */
#define GPI_OWN_SIZE 64u

_Static_assert(GPI_OWN_SIZE >= GPI_LABEL_SIZE, "a label has room there");

/* Where a result waits for its delivery. */
enum gpi_result_place { GPI_RESULT_NONE, GPI_RESULT_OWN, GPI_RESULT_POOL, GPI_RESULT_ARENA };

/* What only the outcomes that went wrong need. */
struct gpi_detail {
    uint32_t exit_kind;
    int32_t exit_status;
    uint32_t output_size;
    char *history; /* words of all attempts when there was more than one; malloc */
    char text[GPI_FAIL_TEXT_SIZE]; /* of the last one */
    char output[];
};

struct gpi_task {
    uint64_t id; /* serial << id_bits | index: never reused */
    uint64_t tag;
    uint64_t data_off; /* in the input arena */
    uint64_t size;     /* of the data; after the end of the result */
    union {
        uint64_t limit;      /* until the end */
        uint64_t result_off; /* after it */
    };
    uint64_t queued_at, sent_at, started_at, ended_at;
    struct gpi_detail *detail;
    int32_t priority;
    int32_t code;
    uint32_t incarnation;
    uint32_t cost;
    uint16_t slot; /* last sent to */
    uint8_t cell;
    uint8_t state;
    uint8_t attempts, max_attempts; /* started so far; allowed */
    uint8_t outcome, phase;
    uint8_t has_head;  /* a label's room lies before the data */
    uint8_t has_label;
    uint8_t has_block; /* data_off is in a block to be freed; else it is the record's own, or none */
    uint8_t result_place; /* enum gpi_result_place */
    uint8_t has_slot;
    uint8_t causes; /* that may be tried again: enum gpud_retry */
    uint8_t awaited; /* its outcome is for wait */
    uint8_t kept;    /* lent, and kept from the next poll */
    uint8_t alone;   /* charged as one of a batch: its next attempt shares none */
    uint8_t stalls;  /* has an entry in `stall_limit` */
    uint8_t expires; /* stands in `expiries` until it has started */
};

/* The words of a note in the hands of the user. */
struct gpi_lent_note {
    struct gpi_detail *words;
    char *output;
    uint32_t device;
    bool kept;
};

/* An event that is not an outcome. */
struct gpi_note {
    uint32_t kind, slot, incarnation, state, level, phase, exit_kind;
    int32_t code, exit_status;
    uint32_t device, health, xid; /* DEVICE: its place in the table */
    uint64_t task_id, tag;
    double progress;
    char *output; /* malloc */
    uint32_t output_size;
    uint32_t next_free;
    char text[GPI_FAIL_TEXT_SIZE];
    char label[GPI_LABEL_SIZE];
};

/* ---- slots ---- */

/* Why we killed, or are killing, a worker. */
enum gpi_kill { GPI_KILL_NO, GPI_KILL_SETUP, GPI_KILL_HARD, GPI_KILL_CANCEL, GPI_KILL_CLEANUP, GPI_KILL_PROTOCOL, GPI_KILL_CLOSE, GPI_KILL_DEVICE };

struct gpi_channel {
    struct gpi_page *page;
    unsigned char *result; /* the slot's result arena, mapped for reading */
    int page_fd, result_fd;
    int orders;      /* write end, non-blocking */
    int orders_kept; /* read end: never read, never given flags; so that a write raises no SIGPIPE */
    int looks;       /* read end, non-blocking */
    int output;      /* read end, non-blocking */
    int keeper;      /* control socket */
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
    uint32_t keepers_in_vain; /* so many died in a row before they could be asked to start a worker */
    bool sweeping;      /* the worker has died, what it had started is not gone yet */
    bool started;       /* START sent, no EXITED yet */
    bool answered;      /* the program that was executed has come to gpud_init; always, where workers are forked */
    int32_t pid;
    uint32_t incarnation;
    enum gpi_kill kill; /* sent, no EXITED yet */
    struct gpi_control obituary; /* EXITED, as the keeper sent it: for start.c */

    uint64_t number;    /* of the last send */
    uint64_t inflight;  /* bit per cell */
    uint32_t sent;      /* how many bits */
    uint32_t cell_task[GPI_CELLS];
    uint64_t cell_number[GPI_CELLS];
    uint8_t order[GPI_CELLS]; /* cell of send number n, and ALONE, at n % 64; the page has a copy for the worker */
    uint64_t oldest;    /* no send number below this is in flight */
    bool more_log;      /* lines were left for a later look */
    bool unrung;        /* sent_number is to be raised at the end of this dispatch */

    uint64_t state_deadline; /* setup or cleanup limit, end of backoff, kill limit */
    uint64_t check_at;       /* next look at the time limit of what runs */
    uint64_t peek_at;        /* next look into the cells without a frame */
    uint64_t last_heard;
    uint64_t called_at;      /* when it was rung anew, since it had not begun what it was sent */
    uint64_t timer;          /* as it stands in the heap */
    uint64_t cancelled; /* bit per cell: asked for the running task in it */
    uint64_t late;      /* bit per cell: past its own limit when its worker was to be killed */

    struct gpi_restart restart;
    char last_failure[GPI_FAIL_TEXT_SIZE - 64]; /* of setup or of a worker without a task, in words */
    uint64_t mean_run;       /* moving average per task, 0 = unknown */
    uint64_t held;           /* bytes of the result arena in undelivered or lent results */
    uint64_t *hold;          /* the same, a bit per granule */
    uint64_t kept;           /* of these, in events that the host keeps */
    uint64_t largest_result; /* recent */

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
    char blame[GPI_EVIDENCE_SIZE + GPI_DEVICE_NAME + 16]; /* why the device made us kill its worker */

    uint64_t cell_cancel_at[GPI_CELLS];
    uint32_t tail_at, tail_size; /* ring of the worker's output */
    char tail[GPI_TAIL_SIZE];
};

/* ---- the dispatcher ---- */

#define GPI_TIMER_CLOSE GPI_SLOTS_MAX         /* the close limit */
#define GPI_TIMER_DEVICES (GPI_SLOTS_MAX + 1) /* something is due with a device */
#define GPI_TIMERS (GPI_SLOTS_MAX + 2)

/* Why no worker was left: each text stays until the dispatcher goes. */
struct gpi_reason {
    struct gpi_reason *before;
    char text[GPI_FAIL_TEXT_SIZE];
};

/* Options with every default filled in. */
struct gpi_settings {
    uint32_t drive, queue_size, sent_ahead, max_attempts, log_level, slot_events, setup_concurrency, devices_per_worker;
    uint32_t definition; /* index */
    uint64_t payload_budget, seed;
    uint64_t setup_limit, task_limit, grace, cleanup_limit, close_limit, kill_limit, kill_limit_gpu;
    struct gpi_restart_policy restart;
    uint32_t retry_causes;
    struct gpi_retry_policy retry;
    uint64_t expires, stall_limit;
    uint32_t max_batch, least_ahead; /* tasks per call; to be at a worker at least, with more than one */
    uint64_t batch_wait;
    uint32_t cuda;            /* bits of enum gpud_cuda */
    uint64_t memory_wait;
    struct gpi_health_policy health;
    uint64_t input_size, result_size; /* of the arenas */
};

/* A thread of the user that sleeps while another one drives.  Guarded by the dispatcher's lock. */
struct gpi_sleeper {
    struct gpi_sleeper *before, *after;
    pthread_cond_t call;
    bool asleep;
    bool called; /* what it waits for has come: it is no use as a driver */
};

/* One that waits for the outcome of a task. */
struct gpi_waiter {
    struct gpi_sleeper sleeper;
    uint64_t id;
    struct gpi_waiter *next; /* in its bucket */
};

#define GPI_WAITER_BUCKETS 64u

struct gpi_estate; /* see keep.c */

enum gpi_lib_state { GPI_LIB_NONE, GPI_LIB_DRIVING, GPI_LIB_TICKING, GPI_LIB_DEEP };

struct gpud_dispatcher {
    pthread_mutex_t lock;
    const _Atomic uint32_t *alive; /* reads 0 in a forked child */
    void *own; /* of the one who has created us */
    struct gpi_settings set;

    /* tasks */
    struct gpi_task *task;
    uint32_t n_tasks, never_used, free_task; /* free ones are linked through slot+cell: see tasks.c */
    uint32_t id_bits;
    uint64_t serial;
    uint64_t arrival, arrival_tick; /* the last queued_at, and the kernel's tick at that time */
    uint64_t *stall_limit; /* by task, for those that have one; else untouched */
    struct gpi_queue queue;
    uint32_t live;  /* accepted, not delivered: bounded by queue_size */
    uint32_t unended; /* accepted, not ended */
    uint64_t ends;    /* attempts that have ended by themselves */
    struct gpi_heap retries; /* tasks that wait for another attempt, by when */
    struct gpi_heap expiries; /* tasks not known to have started, by when that is too late */
    pthread_cond_t room;
    uint32_t waiting_for_room;
    uint32_t submits;   /* threads inside submit: they let go of the lock while they wait or copy */
    bool short_of_memory; /* the last growth was refused: machine or cgroup has too little left */

    /* payload */
    int input_fd, input_ro_fd;
    unsigned char *input;
    struct gpi_chunks input_chunks;
    uint64_t own_off;  /* of the records' own blocks */
    uint64_t setup_off, setup_size;
    int setup_fd;      /* of shared memory for setup, or -1: they lie in the input arena */
    uint64_t payload_base; /* bytes that these two take; not counted as used */
    uint64_t payload_most; /* the largest block that can ever be had beside them */
    unsigned char *pool; /* results of up to 4 KiB, from their end to delivery */
    uint64_t pool_size;
    struct gpi_chunks pool_chunks;

    /* slots */
    struct gpi_slot *slot;
    uint32_t n_slots, n_useless; /* given up, out of use, or removed: none comes back by itself */
    uint32_t n_removed;
    struct gpi_reason *why_no_worker; /* when the last slot has become useless; events point to it */
    struct gpi_load *loads;      /* scratch of dispatch */
    struct gpi_known_devices dev;
    struct gpi_heap timers;      /* by slot, and the two below */
    bool executed;     /* workers are programs, not forked */
    int launch_fd;     /* how to start them: launch.h */
    int program_fd;    /* the program, or -1 */
    int stdio_fd[2];   /* the host's stdout and stderr, where workers inherit them; or -1 */
    char program[128]; /* its name, for people */
    char name[GPI_NAME_SIZE]; /* of the definition */
    bool spawner_gone;
    uint32_t makes;    /* keepers asked for, not answered */
    int spawner;       /* our connection to it */
    int spawner_pidfd;

    /* events */
    uint32_t *ring; /* task index, or note index | GPI_RING_NOTE */
    uint32_t ring_mask, ring_head, ring_tail;
    struct gpi_note *note;
    uint32_t n_notes, free_note, notes_free, notes_reserved;
    uint32_t lent[GPI_EVENTS_MAX]; /* in the hands of the user: task index, or GPI_RING_NOTE */
    struct gpi_lent_note lent_note[GPI_EVENTS_MAX];
    uint32_t n_lent;

    /* driving */
    int epoll, wake;
    uint64_t now;
    uint32_t sleepers;  /* threads inside epoll_wait */
    uint32_t works_without_epoll;
    bool woken;         /* wake has been written and not yet read */
    bool occupied;      /* a thread of the user is in poll, run or destroy */
    uint32_t inside;    /* threads of the user that drive or sleep beside one that does: not in a callback */
    bool driven;        /* by one of them */
    struct gpi_sleeper *asleep, *last_asleep; /* the others, longest first */
    struct gpi_sleeper *poller;               /* that of the one in poll or run */
    struct gpi_waiter *waiter[GPI_WAITER_BUCKETS]; /* by the task's index */
    uint32_t waiters;
    uint32_t awaited;   /* tasks accepted for wait and not collected by it */
    uint64_t entries;   /* how often one came in */
    enum gpi_lib_state lib;
    bool lib_quit;
    pthread_t lib_thread;
    int lib_fd;         /* ends the library thread's deep sleep */
    pthread_t callback_thread;
    bool in_callback;

    /* for a loop of the host */
    int outer;          /* the pollable fd, -1 = not asked for; in it: */
    int news, alarm;    /* events wait; a timer is due */
    bool calls_out;     /* nobody drives while no thread is inside: the fd asks for it */
    bool away;          /* the bells are asked for on behalf of the fd */
    bool told;          /* news has been written */
    bool heeded;        /* the fd is readable when the driver's epoll is */
    uint64_t alarm_at;

    struct gpi_estate *estate; /* what kept events share, NULL = none has been kept */

    /* ending */
    _Atomic uint32_t stop_asked; /* 1 + enum gpud_finish */
    _Atomic bool closing; /* written with the lock held, like everything else; read by the feeder without */
    bool ending;     /* inside destroy */
    bool feeding;    /* a feeder may still bring a task that it has pulled */
    bool finished;   /* nothing lives any more */
    uint32_t finish; /* enum gpud_finish */
    uint64_t close_at;

    /* stats */
    struct gpud_stats count; /* only the counters are used */
    uint64_t first_start, cost_left;
    uint64_t cost_done, ran; /* of tasks that have started and ended; how many */
    uint64_t mean_run; /* moving average per call over all slots, 0 = unknown */
    struct gpi_hist queue_wait, run, overhead;
};

#define GPI_RING_NOTE 0x80000000u

/* create.c */
struct gpi_birth {
    struct gpi_settings set;
    const _Atomic uint32_t *alive;
    int door;                 /* to the spawner, borrowed */
    void *own;                /* kept for the one who creates: what is to be ended after destroy */
    int spawner_pidfd;        /* borrowed */
    int connection;           /* of this dispatcher to the spawner: taken, whatever comes of it; -1 = to be made */
    const struct gpi_selection *chosen; /* devices and slots, borrowed */
    struct gpi_gauge *gauge;            /* who reads the devices, taken on success; NULL = nobody */
    const void *setup_data;
    uint64_t setup_size;
    int setup_fd; /* of shared memory that takes their place, borrowed; -1 = none */
    const struct gpi_launch *launch; /* borrowed */
    int program_fd;                  /* of the program to execute, borrowed; -1 = none */
    const char *name;                /* of the definition, for a program that looks it up; borrowed */
    const char *remark;              /* for the log, with a level that is not 0; borrowed */
    uint32_t remark_level;
};
int gpi_create(gpud_dispatcher **ret_d, const struct gpi_birth *b, struct gpud_error *reterr);
void gpi_free(gpud_dispatcher *d);


/* tasks.c */
int gpi_tasks_init(gpud_dispatcher *d);
void gpi_tasks_fini(gpud_dispatcher *d);
int gpi_task_check(const struct gpud_task_desc *desc);
int gpi_task_submit(gpud_dispatcher *d, const struct gpud_task_desc *desc, uint64_t wait, uint64_t *ret_id);
int gpi_task_feed(gpud_dispatcher *d, const struct gpud_task_desc *desc); /* for run: what was pulled gets an outcome, also when closing */
struct gpi_task *gpi_task_find(gpud_dispatcher *d, uint64_t id);
int gpi_task_cancel(gpud_dispatcher *d, uint64_t id);
void gpi_task_requeue(gpud_dispatcher *d, struct gpi_task *t);
/* Gives the task its outcome and its place among the events.  Exactly once per task. [C1] */
void gpi_task_end(gpud_dispatcher *d, struct gpi_task *t, uint32_t outcome, uint32_t phase, int32_t code);
void gpi_tasks_end_queued(gpud_dispatcher *d, uint32_t outcome, int32_t code);
void gpi_task_free(gpud_dispatcher *d, struct gpi_task *t); /* record, data, result, words */

/* payload.c */
int gpi_payload_place(gpud_dispatcher *d, const struct gpud_task_desc *desc, size_t label, struct gpi_task *t); /* may drop the lock */
int gpi_payload_forgo(gpud_dispatcher *d, const struct gpud_task_desc *desc, size_t label, struct gpi_task *t);
void gpi_payload_give_back(const gpud_dispatcher *d, struct gpi_task *t);
void gpi_payload_free(gpud_dispatcher *d, struct gpi_task *t);
int gpi_buffer_alloc(gpud_dispatcher *d, uint64_t size, void **ret_data);
int gpi_buffer_free(gpud_dispatcher *d, void *data);
void gpi_room_made(gpud_dispatcher *d); /* for submits that wait */

/* attempt.c */
bool gpi_attempt_again(const gpud_dispatcher *d, const struct gpi_task *t, uint32_t outcome, bool device); /* the device failed under it */
void gpi_attempt_retry(gpud_dispatcher *d, struct gpi_task *t); /* at once, or after its wait */
/* Adds how this attempt ended to the words of all, where there is or will be more than one. */
void gpi_attempt_words(struct gpi_task *t, const char *how, bool again);
struct gpi_detail *gpi_task_detail(struct gpi_task *t, uint32_t output_size); /* a fresh one; the words of former attempts stay */
void gpi_detail_free(struct gpi_task *t);

/* defer.c */
int gpi_defer_init(gpud_dispatcher *d);
void gpi_defer_fini(gpud_dispatcher *d);
void gpi_defer(gpud_dispatcher *d, struct gpi_task *t, uint64_t until);
void gpi_undefer(gpud_dispatcher *d, struct gpi_task *t);
void gpi_expiry_set(gpud_dispatcher *d, struct gpi_task *t, uint64_t expires); /* from when it was accepted */
void gpi_expiry_remove(gpud_dispatcher *d, struct gpi_task *t);
uint64_t gpi_defer_next(const gpud_dispatcher *d); /* when something here is due */
void gpi_defer_run(gpud_dispatcher *d);
void gpi_defer_end_all(gpud_dispatcher *d, uint32_t outcome, int32_t code);

/* dispatch.c */
void gpi_dispatch(gpud_dispatcher *d);
uint32_t gpi_recall_all(gpud_dispatcher *d, struct gpi_slot *s); /* how many came back */
void gpi_slot_ring(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_slot_expect(gpud_dispatcher *d, struct gpi_slot *s);
bool gpi_take_back(gpud_dispatcher *d, struct gpi_task *t); /* a sent task leaves its cell; false: its worker has claimed it */
bool gpi_slot_takes(const gpud_dispatcher *d, const struct gpi_slot *s);

/* collect.c */
void gpi_collect(gpud_dispatcher *d, struct gpi_slot *s);
bool gpi_collect_all(gpud_dispatcher *d); /* from every slot; whether anything had ended */
bool gpi_go_to_sleep(gpud_dispatcher *d); /* asks for bells; false when something ended meanwhile */
void gpi_wake_up(gpud_dispatcher *d);
void gpi_look_for_disorder(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_read_more_log(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_on_looks(gpud_dispatcher *d, struct gpi_slot *s);
bool gpi_on_output(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_drain(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_results_settle(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_result_release(gpud_dispatcher *d, uint32_t slot, uint64_t off, uint64_t size);

/* slot.c */
void gpi_slot_clear_times(struct gpi_slot *s);
void gpi_slot_enter(gpud_dispatcher *d, struct gpi_slot *s, enum gpud_slot_state state);
void gpi_slot_start(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_slot_ready(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_slot_turns(gpud_dispatcher *d); /* starts those whose turn has come: option setup_concurrency */
void gpi_slot_kill(gpud_dispatcher *d, struct gpi_slot *s, enum gpi_kill why);
void gpi_slot_retire(gpud_dispatcher *d, struct gpi_slot *s, const char *why); /* it broke the protocol */
void gpi_slot_kill_at(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell, uint64_t at); /* for the hard limit; until then it takes no task */
void gpi_slot_cancel(gpud_dispatcher *d, struct gpi_slot *s, uint32_t cell);
void gpi_slot_wind_down(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_slot_on_timer(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_slot_timer(gpud_dispatcher *d, struct gpi_slot *s);
bool gpi_slot_settled(const struct gpi_slot *s);

/* death.c */
const char *gpi_why_no_worker(const gpud_dispatcher *d);
void gpi_slot_useful(gpud_dispatcher *d, struct gpi_slot *s); /* it may have a worker again */
void gpi_slot_useless(gpud_dispatcher *d, struct gpi_slot *s, enum gpud_slot_state state, const char *why);
void gpi_slot_again(gpud_dispatcher *d, struct gpi_slot *s); /* starts it, unless nothing is to come */
void gpi_slot_died(gpud_dispatcher *d, struct gpi_slot *s, uint32_t exit_kind, int32_t exit_status);
void gpi_slot_unmade(gpud_dispatcher *d, struct gpi_slot *s, int sys_errno, const char *what);
void gpi_slot_survived(gpud_dispatcher *d, struct gpi_slot *s); /* SIGKILL: out of use for good */

/* watch.c */
uint64_t gpi_slot_running(const struct gpi_slot *s); /* the cells of claimed, not ended tasks, a bit each */
uint32_t gpi_slot_first(const struct gpi_slot *s);   /* that of the one sent first; GPI_NONE */
void gpi_slot_check_limits(gpud_dispatcher *d, struct gpi_slot *s);
uint64_t gpi_task_first_look(const gpud_dispatcher *d, const struct gpi_task *t); /* of one sent now: no earlier can its hard limit matter */
/* Whether what runs in a cell has passed its stall limit, and that before its limit. */
bool gpi_slot_stalled(const gpud_dispatcher *d, const struct gpi_slot *s, uint32_t cell);
void gpi_stall_words(char *to, size_t size, uint64_t stall_limit);
void gpi_slot_peek(gpud_dispatcher *d, struct gpi_slot *s);

/* charge.c */
/* Settles every task at a worker that is gone.  Returns how many were charged. */
uint32_t gpi_settle_tasks(gpud_dispatcher *d, struct gpi_slot *s, uint32_t kind, int32_t status);
void gpi_describe_exit(char *to, size_t size, uint32_t kind, int32_t status);
void gpi_slot_tail(const struct gpi_slot *s, char *to, uint32_t size); /* the last bytes of the worker's output */

/* channel.c */
int gpi_channel_init(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_channel_header(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_channel_fini(gpud_dispatcher *d, struct gpi_slot *s);
int gpi_channel_make(gpud_dispatcher *d, struct gpi_slot *s); /* asks the spawner for a keeper; 0 or errno */
void gpi_channel_unmake(gpud_dispatcher *d, struct gpi_slot *s);
int gpi_channel_tell(struct gpi_slot *s, uint32_t kind, bool force);
int gpi_channel_tell_when(struct gpi_slot *s, uint32_t cell, uint64_t at); /* KILL at a time, unless that task has ended */
int gpi_channel_attach(gpud_dispatcher *d, struct gpi_slot *s, int keeper_fd);
void gpi_on_keeper(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_on_spawner(gpud_dispatcher *d);
void gpi_spawner_lost(gpud_dispatcher *d);

/* start.c */
int gpi_start_init(gpud_dispatcher *d, const struct gpi_birth *b);
void gpi_start_fini(gpud_dispatcher *d);
/* When a program that has been started must have come to gpud_init, or to the end of setup. */
uint64_t gpi_start_deadline(const gpud_dispatcher *d, const struct gpi_slot *s);
void gpi_start_answered(gpud_dispatcher *d, struct gpi_slot *s);
/* Why a program that never answered is no worker: the code, and a text. */
int32_t gpi_start_verdict(const gpud_dispatcher *d, const struct gpi_slot *s, enum gpi_kill why, uint32_t kind, int32_t status, char *text, size_t size);

/* deliver.c */
int gpi_events_init(gpud_dispatcher *d);
int gpi_events_grow(gpud_dispatcher *d, uint32_t slots); /* room for what so many more slots must tell */
void gpi_events_fini(gpud_dispatcher *d);
struct gpi_note *gpi_note_new(gpud_dispatcher *d, uint32_t kind, bool droppable);
void gpi_note_names(const gpud_dispatcher *d, uint32_t device, struct gpud_event *e); /* of its devices */
void gpi_note_push(gpud_dispatcher *d, struct gpi_note *n);
void gpi_log(gpud_dispatcher *d, uint32_t level, uint32_t slot, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool gpi_lent_release(gpud_dispatcher *d); /* whether there was anything */
void gpi_event_of(gpud_dispatcher *d, const struct gpi_task *t, struct gpud_event *e);
int gpi_events_take(gpud_dispatcher *d, struct gpud_event *events, size_t stride, size_t n);

/* drive.c */
enum gpi_fd_kind { GPI_FD_WAKE = 1, GPI_FD_SPAWNER, GPI_FD_SPAWNER_DEATH, GPI_FD_KEEPER, GPI_FD_LOOKS, GPI_FD_OUTPUT, GPI_FD_MONITOR };
int gpi_drive_init(gpud_dispatcher *d);
void gpi_drive_fini(gpud_dispatcher *d);
int gpi_drive_start_thread(gpud_dispatcher *d);
int gpi_drive_watch(gpud_dispatcher *d, int fd, enum gpi_fd_kind kind, uint32_t slot);
void gpi_drive_unwatch(gpud_dispatcher *d, int fd);
void gpi_drive_close(gpud_dispatcher *d, int *fd); /* out of the watch, then closed */
uint64_t gpi_drive_next(const gpud_dispatcher *d); /* when there is something to do without news */
void gpi_drive_wake(gpud_dispatcher *d); /* the driver has something new to do; lock held */
/* Drives until `done` says so (true) or the time comes (false).  Looks at all news at least once,
 * unless done at once.  Drops the lock while it waits. */
typedef bool(gpi_done_fn)(const gpud_dispatcher *d, const void *context);
bool gpi_drive_until(gpud_dispatcher *d, gpi_done_fn *done, const void *context, uint64_t until);
/* The same for one of several threads of the user: it drives when none of them does, else it sleeps. */
bool gpi_drive_together(gpud_dispatcher *d, struct gpi_sleeper *me, gpi_done_fn *done, const void *context, uint64_t until);
void gpi_drive_call(struct gpi_sleeper *s);    /* what it waits for has come */
void gpi_drive_tell(gpud_dispatcher *d);       /* there may be something for the one in poll or run */
bool gpi_drive_reenters(const gpud_dispatcher *d); /* this is a callback of run */
bool gpi_drive_all_told(const gpud_dispatcher *d);
int gpi_drive_enter(gpud_dispatcher *d); /* for poll, run, destroy: 0, EBUSY or EREENTER */
void gpi_drive_leave(gpud_dispatcher *d);
void gpi_drive_go_in(gpud_dispatcher *d); /* around driving by a thread of the user */
void gpi_drive_go_out(gpud_dispatcher *d);
int gpi_poll(gpud_dispatcher *d, struct gpud_event *events, size_t stride, size_t n, uint64_t wait);

/* wait.c */
int gpi_wait(gpud_dispatcher *d, uint64_t id, struct gpud_event *event, uint64_t timeout);
void gpi_wait_ended(gpud_dispatcher *d, const struct gpi_task *t);

/* keep.c */
int gpi_keep_outcome(gpud_dispatcher *d, struct gpi_task *t, struct gpud_event *e); /* 0, EFULL or ENOMEM */
int gpi_keep_lent(gpud_dispatcher *d, struct gpud_event *e);
void gpi_keep_release(struct gpud_event *e);
void gpi_keep_leave(gpud_dispatcher *d); /* before the dispatcher is freed */
uint32_t gpi_keep_count(const gpud_dispatcher *d);

/* pollable.c */
int gpi_pollable(gpud_dispatcher *d); /* the fd, or a code */
void gpi_pollable_tell(gpud_dispatcher *d);
void gpi_pollable_away(gpud_dispatcher *d); /* the last thread goes out */
void gpi_pollable_back(gpud_dispatcher *d);
void gpi_pollable_quiet(gpud_dispatcher *d); /* one goes out while another drives */
void gpi_pollable_fini(gpud_dispatcher *d);

/* finish.c */
void gpi_finish(gpud_dispatcher *d, uint32_t how);
void gpi_finish_step(gpud_dispatcher *d);
void gpi_close(gpud_dispatcher *d, uint32_t how, uint64_t limit);
void gpi_close_limit_passed(gpud_dispatcher *d);
int gpi_destroy(gpud_dispatcher *d, uint64_t *ret_uncollected);

/* feed.c */
int gpi_run(gpud_dispatcher *d, gpud_source_fn *source, const struct gpud_callbacks *cb, void *user, struct gpud_error *reterr);

/* report.c */
void gpi_report_stats(gpud_dispatcher *d, struct gpud_stats *s);
void gpi_report_slot(gpud_dispatcher *d, const struct gpi_slot *s, struct gpud_slot_stats *r);

static inline struct gpi_slot *gpi_task_slot(gpud_dispatcher *d, const struct gpi_task *t)
{
    return &d->slot[t->slot];
}

static inline uint32_t gpi_task_index(const gpud_dispatcher *d, const struct gpi_task *t)
{
    return (uint32_t)(t - d->task);
}

/* The soft limit of a task from its start, or from its last progress. */
static inline uint64_t gpi_task_soft(const gpud_dispatcher *d, const struct gpi_task *t)
{
    return t->stalls ? gpi_time_min(t->limit, d->stall_limit[gpi_task_index(d, t)]) : t->limit;
}

static inline uint32_t gpi_events_waiting(const gpud_dispatcher *d)
{
    return d->ring_tail - d->ring_head;
}

static inline void gpi_event_push(gpud_dispatcher *d, uint32_t entry)
{
    assert(gpi_events_waiting(d) <= d->ring_mask);
    d->ring[d->ring_tail++ & d->ring_mask] = entry;
    if (d->asleep || d->outer >= 0)
        gpi_drive_tell(d);
}

/* It has started, or ended: it does not expire any more. */
static inline void gpi_expiry_clear(gpud_dispatcher *d, struct gpi_task *t)
{
    if (t->expires)
        gpi_expiry_remove(d, t);
}

#endif
