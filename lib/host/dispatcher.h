/* SPDX-License-Identifier: MIT */
/*
 * dispatcher.h - the object in the host that owns devices, slots and tasks: its record, its
 * creation and its end.
 *
 * One lock per dispatcher guards everything in the headers of lib/host.  The driving thread (see
 * loop.c) holds it while it works and releases it while it waits.  No thread holds it while user
 * code runs.
 *
 *   create.c    birth
 *   run.c       run
 *   close.c     stop, close
 *   destroy.c   the end
 *   stats.c     stats
 *
 * The nouns have a header each: class.h, task.h, slot.h, device.h, event.h, drive.h.  act.h has the
 * decisions of the core, settings.h the values of the options.  monitor.h knows no dispatcher.
 */
#ifndef GPI_HOST_DISPATCHER_H
#define GPI_HOST_DISPATCHER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/chunks.h"
#include "base/heap.h"
#include "base/hist.h"
#include "gpudispatch/dispatch.h"
#include "gpudispatch/stats.h"
#include "host/class.h"
#include "host/device.h"
#include "host/settings.h"
#include "sched/sched.h"

#define GPI_NONE UINT32_MAX
#define GPI_EVENTS_MAX 256u /* the most events that one poll returns, and so lends */
#define GPI_SLOTS_MAX 1024u
#define GPI_WAITER_BUCKETS 64u
#define GPI_POOL_DEVICES 1024u /* pooled: devices over the dispatcher's life */

#define GPI_FED_AT_ONCE 64u /* tasks that run requests from a source in one call */
#define GPI_TIMER_DEVICES GPI_SLOTS_MAX /* key of the devices' actions in the heap */
#define GPI_TIMERS (GPI_SLOTS_MAX + 1)

struct gpi_detail;
struct gpi_ending_outside; /* external.h */
struct gpi_grant;
struct gpi_estate; /* see kept_events.c */
struct gpi_note;
struct gpi_play; /* log/play.h */
struct gpi_sched;
struct gpi_sleeper;
struct gpi_slot;
struct gpi_task;
struct gpi_waiter;

/* The texts of a note that the user has. */
struct gpi_lent_note {
    struct gpi_detail *words;
    char *output;
    struct gpi_device_set on;
    uint32_t device, class;
    bool kept;
    bool line; /* the output is the event's text */
};

/* Why no worker was left.  Each text stays until the dispatcher is freed. */
struct gpi_reason {
    struct gpi_reason *before;
    char text[GPI_FAIL_TEXT_SIZE];
};

enum gpi_lib_state { GPI_LIB_NONE, GPI_LIB_DRIVING, GPI_LIB_TICKING, GPI_LIB_DEEP };

/* Tasks from their arrival (submit.c, payload.c) to their delivery (events.c, wait.c), or until a
 * close leaves them (external.c). */
struct gpi_intake {
    uint64_t arrival, arrival_tick; /* the last queued_at, and the kernel's tick at that time */
    uint32_t live;                  /* tasks accepted and not delivered, at most queue_size */
    uint32_t awaited;               /* of these, those for wait */
    pthread_cond_t room;
    uint32_t waiting_for_room;
    uint32_t n_away;    /* threads that have released the lock to copy or to take memory; counted
                           there, since a counter in each submit cost 35 ns */
    uint64_t went_away; /* how often a thread released the lock so */
    bool awaits_request;  /* a submit waits until fewer different requests are there: submit.c */
    bool short_of_memory; /* the last growth failed: too little memory in machine or cgroup */
};

/* The memory of task data, setup data and small results: create.c, and classes.c for setup data. */
struct gpi_arena {
    int input_fd, input_ro_fd;
    unsigned char *input;
    struct gpi_chunks input_chunks;
    uint64_t own_off;    /* offset of the records' own blocks */
    uint64_t base;       /* bytes of these and of the setup data; not counted as used */
    uint64_t most;       /* the largest block that fits beside them */
    unsigned char *pool; /* results of up to 4 KiB, from their end to delivery */
    uint64_t pool_size;
    struct gpi_chunks pool_chunks;
};

/* The process that makes keepers: keeper.c, channel.c. */
struct gpi_spawning {
    int fd; /* the host's connection to it */
    int pidfd;
    uint32_t makes; /* keepers requested and not yet reported */
    bool gone;
    uint32_t call; /* enum gpi_sys: the call that made it exit, if it has reported one */
    int32_t error; /* errno of this call; 0: no report */
};

/* Events from their creation (notes.c, grants.c, event.h) to their delivery (events.c). */
struct gpi_delivery {
    uint32_t *ring; /* task index, or note index | GPI_RING_NOTE, or see event.h */
    uint32_t ring_mask, ring_head, ring_tail;
    uint32_t n_skipped; /* entries in the ring that are not delivered */
    struct gpi_note *note;
    uint32_t n_notes, free_note, notes_free, notes_reserved;
    uint32_t lent[GPI_EVENTS_MAX]; /* entries that the user has: task index, or GPI_RING_NOTE */
    struct gpi_lent_note lent_note[GPI_EVENTS_MAX];
    struct gpi_names_room *lent_names; /* pooled, of each: not touched until used */
    uint32_t n_lent;
};

/* One turn after the other: loop.c, wakeup.c. */
struct gpi_looping {
    int epoll, wake;
    uint64_t heard_at; /* when the driver last polled the descriptors */
    uint32_t sleepers; /* threads inside epoll_wait */
    uint32_t works_without_epoll;
    bool woken; /* `wake` has been written and not yet read */
    int lib_fd; /* ends the library thread's deep sleep */
};

/* External work: grants.c, external.c. */
struct gpi_external_work {
    struct gpi_grant *of;       /* by task; NULL: there was no external class yet */
    uint32_t task[GPI_SLOTS_MAX], n; /* those that have devices */
    struct gpi_ending_outside *ending; /* the end that a call reports now */
    uint64_t work_time; /* ns that attempts have run */
    uint64_t left;      /* tasks that a close has left alone */
};

/* Threads of the user that sleep while another one drives: sleepers.c; the poller: drivers.c. */
struct gpi_waits {
    struct gpi_sleeper *asleep, *last_asleep;      /* longest first */
    struct gpi_sleeper *poller;                    /* the thread in poll or run */
    struct gpi_waiter *waiter[GPI_WAITER_BUCKETS]; /* by the task's index */
    struct gpi_waiter *ready_waiters;
    uint32_t waiters; /* of both kinds: while there are any, destroy fails */
};

/* Which thread drives: drivers.c. */
struct gpi_driving {
    bool occupied;    /* a thread of the user is in poll, run or destroy */
    uint32_t inside;  /* threads of the user that drive, or sleep while another one drives; not in a
                         callback */
    bool driven;      /* one of them drives */
    uint64_t entries; /* how often a thread came in */
    uint64_t visits_since;
    uint32_t visits; /* how often since then, while the library thread drives */
    enum gpi_lib_state lib;
    bool lib_quit;
    pthread_t lib_thread;
};

/* The callback that run calls now: run.c. */
struct gpi_callback {
    pthread_t thread;
    bool inside;
};

/* The descriptor for an event loop of the host: pollable.c, sleepers.c. */
struct gpi_outlet {
    int outer;       /* an epoll; -1 = no call has requested it; in it: */
    int news, alarm; /* events wait; a timer is due */
    bool calls_out;  /* no thread drives unless one is inside: the fd requests one */
    bool away;       /* the workers ring for the fd */
    bool told;       /* `news` has been written */
    bool heeded;     /* the fd is readable when the driver's epoll is */
    uint64_t alarm_at;
};

/* The end of a dispatcher: close.c, destroy.c. */
struct gpi_closing {
    _Atomic uint32_t stop_asked; /* 1 + enum gpud_finish */
    _Atomic bool closing;        /* written under the lock; the feeder reads it without the lock */
    bool ending;      /* inside destroy */
    bool finished;    /* no worker and no task is left */
    uint32_t how;     /* enum gpud_finish */
    const char *by;   /* the call that ended intake, as a text */
    uint64_t at;      /* when the limit expires */
    bool passed;      /* the limit has expired */
    uint64_t limit;   /* as requested; `at` follows from it */
    const char *name; /* the call or option that set the limit */
};

/* Counters and histograms: each file counts its own events. */
struct gpi_tallies {
    struct gpud_stats count; /* only the counters are used */
    uint64_t first_start, cost_left;
    uint64_t cost_done, ran; /* of tasks that have started and ended: cost, and number */
    struct gpi_hist queue_wait, run, overhead;
};

/* Pooled: devices that the needs of a class name, as the user wrote them; NULL: all, or none. */
#define GPI_PLACES_MOST 256u
struct gpi_named_set {
    char *on, *not_on;
    bool spare; /* nothing has named it since the last look */
};

/* Each record is a noun.  create.c sets its first values.  From then on only the files in its
 * comment write it (tests/check_includes.py).  Any file may read it. */
struct gpud_dispatcher {
    pthread_mutex_t lock;
    const _Atomic uint32_t *alive; /* reads 0 in a forked child */
    void *own;                     /* for the creator: lib/api */
    _Atomic uint32_t *places; /* slots of all dispatchers at this spawner, removed ones left out */
    struct gpi_pool_set set;
    struct gpi_class *class; /* an array */
    uint32_t n_classes, n_removing; /* removed ones included; classes that are being removed */
    struct gpi_named_set named[GPI_PLACES_MOST]; /* places.c */
    uint32_t n_named;
    uint64_t now; /* time of the current turn */

    struct gpi_sched *core; /* makes the decisions: act.h, core.h */
    struct gpi_play *play;  /* has the core and writes its log; NULL = no log */
    int log_fd;             /* the file of option decision_log; -1 = none */
    void (*act)(gpud_dispatcher *d); /* gpi_act: it is above all files that feed facts */
    bool acting;                     /* a thread performs the core's actions */

    /* tasks */
    struct gpi_task *task;
    struct gpi_task *plain; /* behind them: the record of a task without own values: submit.c */
    struct gpi_sched_task plain_what; /* the same for the core */
    uint32_t plain_most;              /* the number of live tasks up to which a task may be plain */
    uint32_t n_tasks, never_used, free_task; /* free ones are linked: see gpi_task_free */
    uint32_t id_bits;
    uint64_t serial;
    uint64_t *stall_limit; /* by task, for tasks with a stall limit; else untouched */
    uint64_t *expires;     /* the same: longest time from acceptance to start */
    struct gpi_device_set *ran_on; /* pooled, by task: the devices of its last attempt */
    uint64_t ends;    /* attempts that have ended on their own */
    uint64_t starts;  /* attempts seen running: option start_events */

    /* slots and devices */
    struct gpi_slot *slot;
    uint32_t n_slots, n_gone;
    struct gpi_reason *why_no_worker; /* set when the last slot is hopeless; events point to it */
    uint16_t *unrung;            /* slots with tasks sent in this turn, and not rung yet */
    uint32_t n_unrung;
    struct gpi_known_devices dev;
    struct gpi_heap timers; /* the host's mechanisms: by slot, and TIMER_DEVICES */

    struct gpi_intake intake;
    struct gpi_arena arena;
    struct gpi_spawning spawner;
    struct gpi_looping loop;
    struct gpi_waits waits;
    struct gpi_driving drive;
    struct gpi_callback callback;
    struct gpi_outlet pollable;
    struct gpi_closing close;
    struct gpi_external_work outside;
    struct gpi_tallies stats;
    struct gpi_estate *estate;  /* shared by kept events; NULL = none was kept */
    struct gpi_delivery events; /* last: its arrays are long */
};

/* create.c */
struct gpi_birth {
    struct gpi_pool_set set;
    struct gpi_class_birth class;
    const _Atomic uint32_t *alive;
    int door;                 /* connects to the spawner; borrowed */
    void *own;                /* for the creator, which ends it after destroy */
    _Atomic uint32_t *places; /* slots in use at the spawner, with the chosen ones; valid as long
                                 as the dispatcher */
    int spawner_pidfd;        /* borrowed */
    int connection;           /* the dispatcher's connection to the spawner, taken also on
                                 failure; -1 = create connects */
    int log_fd;               /* the file of option decision_log, taken also on failure; -1: none */
    const struct gpi_selection *chosen; /* devices and slots, borrowed */
    struct gpi_gauge *gauge;            /* reads the devices, taken on success; NULL = none */
    const char *remark;                 /* for the log, with a level that is not 0; borrowed */
    uint32_t remark_level;
};
int gpi_create(gpud_dispatcher **ret_d, const struct gpi_birth *b, struct gpud_error *reterr);
void gpi_free(gpud_dispatcher *d);

/* files.c */
uint32_t gpi_files_fixed(const struct gpi_birth *b);  /* fds of a dispatcher beside its slots */
uint32_t gpi_files_slots(bool lines, uint32_t slots); /* fds of its slots */
/* Returns 0 if RLIMIT_NOFILE leaves `need` fds, of which `open` are open; else ESYSTEM with EMFILE
 * and the field that sets the number of slots. */
int gpi_files_check(uint32_t need, uint32_t open, uint32_t slots, const char *field,
                    struct gpud_error *e);

/* close.c */
void gpi_finish_step(gpud_dispatcher *d);
void gpi_close(gpud_dispatcher *d, uint32_t how, uint64_t limit);
/* `name` is the call or option that sets the limit, `by` the call that ends intake. */
void gpi_close_by(gpud_dispatcher *d, uint32_t how, uint64_t limit, const char *name,
                  const char *by);
/* External work that has started goes on, without this dispatcher. */
void gpi_close_leave(gpud_dispatcher *d, const char *by);
void gpi_close_in_run(gpud_dispatcher *d); /* a callback has requested a stop */
/* How to end: the most urgent request so far; NOW without a request. */
uint32_t gpi_finish_asked(gpud_dispatcher *d);
void gpi_close_limit_passed(gpud_dispatcher *d); /* warns, before the core's kills */

/* destroy.c */
int gpi_destroy(gpud_dispatcher *d, uint64_t *ret_uncollected);

/* run.c */
int gpi_run(gpud_dispatcher *d, gpud_source_fn *source, const struct gpud_callbacks *cb, void *user,
            struct gpud_error *reterr);

/* forecast.c.  What one snapshot needs. */
struct gpi_forecast {
    uint64_t now;
    uint64_t run; /* not pooled: the median time of a task; 0 = unknown */
};
void gpi_forecast_begin(const gpud_dispatcher *d, struct gpi_forecast *f);

/* stats.c */
void gpi_report_stats(gpud_dispatcher *d, struct gpud_stats *s);
void gpi_report_slot(gpud_dispatcher *d, const struct gpi_slot *s, const struct gpi_forecast *f,
                     struct gpud_slot_stats *r);

#endif
