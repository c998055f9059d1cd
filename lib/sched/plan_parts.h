/* SPDX-License-Identifier: MIT */
/*
 * plan_parts.h - the records of a plan.  Private to its files; each field is written by one file.
 *
 * No file calls one that tests/check_floors.py has behind it.
 */
#ifndef GPI_SCHED_PLAN_PARTS_H
#define GPI_SCHED_PLAN_PARTS_H

#include <assert.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/heap.h"
#include "sched/plan.h"
#include "sched/soon.h"
#include "sched/tree.h"

#define GPI_NONE UINT32_MAX
#define GPI_UNKNOWN (UINT32_MAX - 1)
#define GPI_RUN_DEVICES 16u
#define GPI_LEARN 32u             /* runs of a class that are remembered */
#define GPI_LATE 32u              /* boots that count as of late */
#define GPI_QUEUE_MOST (1u << 31) /* tasks in the caller's queue of a class */

/*
 * Devices of one kind are alike for every shape: in memory, compute capability, and the sets of
 * places that have them.  A shape has a bit for each kind that it may use.  The last kind has all
 * devices for which there is no kind left: each of these is checked.
 */
#define GPI_KINDS 60u
#define GPI_KIND_MIXED (GPI_KINDS - 1)
#define GPI_BIT_HOST (1ull << 60)  /* it waits for CPU slots or host memory alone */
#define GPI_BIT_FRESH (1ull << 61) /* its first task has not been examined */
#define GPI_BIT_SHORT (1ull << 62) /* too few devices could hold it, or no run is free */
#define GPI_BIT_BOOTS (1ull << 63) /* a worker that stays may boot for it, beside a head */
#define GPI_BIT_ANY GPI_TREE_ANY   /* every shape */
#define GPI_BITS_KINDS (GPI_BIT_HOST - 1)
#define GPI_BITS_HEADED (GPI_BITS_KINDS | GPI_BIT_HOST)
#define GPI_BIT_KIND(kind) (1ull << (kind))

/* memory.c */
struct gpi_plan_device {
    struct gpi_plan_has has;
    uint64_t places;            /* mix of the sets that have it */
    uint64_t foreign;           /* bytes, rounded up */
    uint32_t load;              /* use by foreign processes, 1/10000 */
    uint64_t usable;            /* bytes: without headroom and foreign memory */
    uint64_t reserved, firm;    /* bytes; of these, those of workers that stay */
    uint32_t n_firm;            /* such workers */
    uint32_t n_shut;            /* of these, those that have all of its memory */
    uint64_t residents;         /* mix of the classes that have a warm worker here */
    uint64_t workers;           /* mix of the workers here that do not leave, and their shares */
    uint64_t end_by, plausible; /* of its runs, the last one */
    uint32_t share, runs;       /* in use; number of runs, linked from `first` */
    uint32_t first;             /* run * GPI_RUN_DEVICES + the index of the device there */
    uint32_t kind, seat;        /* its place among the members of its kind */
    uint32_t alone;             /* runs that have all of its memory */
    bool is_free;               /* it is in the tree of its kind */
    uint8_t may;                /* enum gpi_plan_may */
};

struct gpi_kind {
    uint64_t places, residents, workers;
    uint64_t usable; /* bytes that do not belong to workers that stay */
    uint32_t compute;
    uint32_t *member;               /* devices */
    uint32_t n;                     /* of these, devices that are in */
    bool clear;                     /* a request may have all of its memory               [R4] */
    bool shut;                      /* a worker that stays has it */
    struct gpi_tree free;           /* devices with a free share, by free memory; value: in use */
    struct gpi_soon end, plausible; /* of each member: when its runs have ended, and may have */
};

/* shape.c */
struct gpi_shape {
    uint32_t class;
    int32_t priority;
    uint32_t n_requests, count;
    uint32_t head, tail; /* tasks; of an unused shape `head` is the next one */
    struct gpi_request request[GPI_VARIANTS];
    bool needs_host; /* a variant needs some of these */
    bool loads;      /* it is the load task of its class */
    bool fresh;      /* its first task has not been examined yet */
    bool lacks_run;  /* it lacks nothing but a free run */
    bool stops;      /* evict.c: it comes first where another shape would evict; shape.c */
    bool told;       /* grant.c: that it is hopeless; shape.c */
    /* kinds.c */
    uint64_t kinds;                  /* of all its variants, the warm and the coming ones */
    uint64_t warm;                   /* kinds with a worker of its class */
    uint64_t coming;                 /* kinds where one boots, if that holds them         [R2] */
    uint64_t kinds_of[GPI_VARIANTS]; /* where a run, or else a worker, could begin */
    uint64_t claimed;                /* of these, where no younger worker that stays boots or runs
                                      * instead                                           [R2] */
    uint8_t far;                     /* a bit per variant that is out of reach */
    bool is_short; /* a variant needs more devices than its kinds have; or its class, which is
                    * transient, has its most workers */
    bool begins;   /* a run may begin, or a worker boot */
    bool boots;    /* a worker that stays may boot beside a head */
    bool cold;     /* no worker of its class, which is transient, serves it */
    bool served;   /* a worker of its class does for it, or will */
    bool late;     /* its first task has waited for longer than a boot */
    bool pressed;  /* it has waited for max_wait, and no worker serves it */
    bool hopeless; /* no device that is left could hold it */
    /* reserve.c */
    uint64_t promise;  /* of its first task; GPI_NEVER: none */
    bool lacks_host;   /* it lacks nothing but CPU slots or host memory */
    uint32_t promised; /* 1 + its place in the list of promised shapes; 0 = none */
};

struct gpi_plan_record { /* a task, 32 bytes */
    uint64_t order, limit;
    uint32_t next, prev;
    uint32_t holder;     /* its shape while it waits, its run while it runs */
    uint32_t since : 31; /* ms, the low bits: when it began to wait */
    uint32_t stream : 1; /* it stands for a queue of the caller */
};
#define GPI_SINCE_MASK 0x7fffffffu

/* A task that runs without a worker, or a worker. */
enum gpi_work {
    GPI_WORK_TASK,
    GPI_WORK_BOOT,
    GPI_WORK_IDLE,
    GPI_WORK_BUSY,
    GPI_WORK_DRAIN, /* busy, and unloaded afterwards                      [S4] */
    GPI_WORK_UNLOAD,
    GPI_WORK_NONE /* the record is unused */
};

/* revoke.c */
enum gpi_grant { GPI_GRANT_NONE, GPI_GRANT_LASTS, GPI_GRANT_REVOKED /* it is revoked */ };

/* grant.c */
struct gpi_run {
    uint32_t task, class;          /* of an unused run `task` is the next one */
    uint8_t work;                  /* enum gpi_work; leave.c, too */
    uint8_t grant;                 /* enum gpi_grant */
    bool leaves;                   /* it goes without an order: no action is for it */
    bool ahead;                    /* revoke.c: the caller may have older tasks of its class */
    bool awaited;                  /* evict.c, revoke.c: a shape waits until it has none */
    uint32_t list_next, list_prev; /* idle workers of the class, or booting ones; runs
                                    * that are granted, or ahead */
    uint64_t since, used;          /* when it booted, was up, or unloads; when it ended a task */
    uint64_t keep;                 /* it stays idle this long */
    uint32_t n_devices, variant;
    struct gpi_request need;
    uint64_t begun, limit;
    uint64_t end_by, plausible;
    uint64_t beyond[GPI_RUN_DEVICES]; /* memory.c: bytes that it has above its need */
    uint32_t next[GPI_RUN_DEVICES], prev[GPI_RUN_DEVICES]; /* runs of the same device */
    uint16_t device[GPI_RUN_DEVICES];
};

/* learn.c */
struct gpi_spell {  /* how long something takes */
    uint32_t n, at; /* times that are remembered; the place of the next one */
    uint64_t last[GPI_LEARN];
    uint64_t p50;
};

struct gpi_learned {
    struct gpi_plan_class set;
    uint32_t n, at;            /* good runs that are remembered; the place of the next one */
    uint16_t ratio[GPI_LEARN]; /* run / limit of the last ones, in 1/65536 */
    uint16_t least;            /* of these */
    struct gpi_spell boot, unload, run;
    uint64_t mean;             /* of a run, as the caller has measured it; 0: unknown.  grant.c */
    uint32_t queued, behind; /* shape.c: waiting tasks; of these, in the caller's queue */
    /* grant.c, leave.c */
    uint32_t workers, leaving; /* all; of these, draining or unloading ones */
    uint32_t idle, booting;    /* the first one of each list */
    uint32_t n_booting;        /* of that list */
    uint32_t late;             /* how many of the last GPI_LATE boots of all classes */
    uint64_t again;            /* before it no worker boots */
    bool wants;                /* a further worker */
    bool may_add;              /* a cold shape may boot one, or a late one beside no other boot */
    bool is_booting;           /* shape.c: one boots */
    bool keeps;                /* shape.c: none of its workers may go: it has min_workers at most */
    uint32_t staff;            /* shape.c: of a transient class, workers that do not leave; of
                                * another one, whether there are some */
    bool paused;               /* nothing of it starts */
    bool to_load;              /* a worker boots, without a task */
};

struct gpi_plan_word { /* of the ring of actions */
    uint64_t at;
    uint32_t task;
    uint8_t kind, how;
};

struct gpi_plan {
    struct gpi_plan_settings set;
    struct gpi_plan_stats stats;
    uint64_t now;
    struct gpi_plan_word *ring;
    uint32_t ring_size, ring_head, ring_count;
    uint32_t ring_promises; /* of these words; a promise that finds no room is dropped */
    /* learn.c */
    struct gpi_learned *class;
    /* memory.c */
    struct gpi_plan_device *device;
    struct gpi_kind *kind;
    uint32_t n_devices, n_gone, n_kinds;
    struct gpi_tree_pool free_devices, cpu_runs; /* of these trees, and of the order */
    struct gpi_tree_pool shapes;
    uint8_t by_memory[GPI_KINDS]; /* kinds, the smallest memory first */
    uint64_t *place_sets;         /* for each set a bit per device */
    uint32_t place_words;
    uint64_t free_kinds; /* kinds with a device in `free`; host bit: some is free */
    uint32_t offer;      /* of all devices; GPI_UNKNOWN: to be found */
    uint32_t cpus_used;
    uint64_t host_memory_used;
    struct gpi_tree cpu_ends; /* runs with CPU slots, by their end; weight: the slots */
    struct gpi_run *run;      /* also grant.c */
    /* shape.c */
    struct gpi_plan_record *task;
    struct gpi_shape *shape;
    uint32_t *table, table_mask;   /* shapes by class, priority, requests; GPI_NONE */
    uint32_t most_shapes;          /* plan.c: with the load task of each class */
    uint32_t free_shape, n_shapes; /* n: without those of load tasks */
    /* Waiting shapes, by priority and age.  Value: limit and grace of the first task.  Weight: the
     * share that it needs at least. */
    struct gpi_tree order;
    uint32_t n_fresh, last_fresh; /* shapes whose first task has not been examined */
    uint32_t n_runless;           /* shapes that lack nothing but a free run */
    uint32_t head[GPI_KINDS + 1]; /* of each kind; GPI_UNKNOWN: to be found */
    uint64_t changed;             /* kinds that got something free, and the host bit */
    /* reserve.c */
    uint32_t *promised, n_promised; /* shapes */
    uint64_t headless;              /* bits that have lost their head */
    uint32_t unsure;                /* reasons for late promises, a bit per enum gpi_promise */
    uint32_t gap_of;                /* the head that has this gap; memory.c, plan.c forget it */
    uint64_t gap;
    uint64_t supposed_takes; /* explain.c: a task that is not submitted may pass; GPI_NEVER */
    uint64_t passable;       /* bits whose head shapes may pass now, but not before */
    uint32_t n_lacking;      /* shapes that lack nothing but CPU slots or host memory */
    /* revoke.c */
    uint32_t granted;       /* the first granted run */
    uint32_t ahead;         /* the first run that is ahead of tasks which the plan does not know */
    uint64_t granted_kinds; /* of all granted runs, and the host bit if one has CPU slots */
    uint64_t doubted;       /* shape.c: bits to which a shape has come since the last check;
                             * GPI_BIT_ANY: a device or a class has changed, too */
    /* evict.c */
    struct gpi_heap times;   /* shapes that are to be examined at a time */
    struct gpi_heap keeps;   /* leave.c: idle workers, by the end of their keep_alive */
    uint64_t again;          /* tenancy.c: when the first class that waits may boot again */
    uint32_t n_firm;         /* staff.c: workers that stay */
    uint32_t n_spare;        /* idle transient ones */
    uint16_t late[GPI_LATE]; /* grant.c: the classes of the last boots */
    uint32_t n_late;
    /* grant.c */
    uint32_t free_run; /* `run` has one more record, which is never used */
    bool has_workers;  /* a class has: set when it is added */
};

/* ---- learn.c: limits and runs of a class ---- */

void gpi_learn_run(struct gpi_learned *l, uint64_t run, uint64_t limit);
/* Returns the earliest plausible end of a run. */
uint64_t gpi_learn_plausible(const struct gpi_learned *l, uint64_t begun, uint64_t limit);
/* Returns how long a task of the queue is expected to run. */
uint64_t gpi_learn_usual(const struct gpi_learned *l);
void gpi_learn_spell(struct gpi_spell *s, uint64_t time);
struct gpi_plan_spell gpi_learn_times(const struct gpi_spell *s);

/* ---- actions.c ---- */

int gpi_actions_make(struct gpi_plan *p);
void gpi_actions_free(struct gpi_plan *p);
void gpi_actions_put(struct gpi_plan *p, enum gpi_plan_action_kind kind, uint32_t task,
                     uint32_t how, uint64_t at);

/* ---- staff.c: which workers of a class are there ---- */

/* One more worker of the class for the request would only wait, were all workers like it busy: for
 * CPU slots, or for a share of the device.  `but`: workers that go.                      [R5] */
struct gpi_runs {
    const uint32_t *run;
    uint32_t n;
};
bool gpi_staff_is_enough(const struct gpi_plan *p, uint32_t class, const struct gpi_request *r);
bool gpi_staff_is_full(const struct gpi_plan *p, uint32_t device, uint32_t class,
                       const struct gpi_request *r, struct gpi_runs but);
/* Returns true if a worker of the class may ever go for another class, as things are. */
bool gpi_staff_may_go(const struct gpi_plan *p, uint32_t class);
/* Returns true if the run is a worker that stays. */
bool gpi_staff_stays(const struct gpi_plan *p, const struct gpi_run *r);
/* Returns true if the device has a worker for the shape: one that is up, or one that boots. */
bool gpi_staff_has_warm(const struct gpi_plan *p, uint32_t device, const struct gpi_shape *s);
bool gpi_staff_has_coming(const struct gpi_plan *p, uint32_t device, const struct gpi_shape *s);
/* Returns true if an idle worker without devices is there for the shape: it waits for CPU slots. */
bool gpi_staff_has_bare(const struct gpi_plan *p, const struct gpi_shape *s);
/* Returns true if a worker with this need does for tasks of the shape, which is of its class. */
bool gpi_staff_serves(const struct gpi_plan *p, const struct gpi_run *r, const struct gpi_shape *s);

/* ---- memory.c: devices, the machine, and the parts of them that runs hold ---- */

int gpi_memory_make(struct gpi_plan *p);
void gpi_memory_free(struct gpi_plan *p);
void gpi_memory_add(struct gpi_plan *p, uint32_t device, const struct gpi_plan_has *has);
void gpi_memory_add_places(struct gpi_plan *p, uint32_t set, const uint16_t *device, uint32_t n);
/* Returns false if the device is not in the set. */
bool gpi_memory_leave_places(struct gpi_plan *p, uint32_t set, uint32_t device);
/* Returns true if the device is of another kind now, so the bits of shapes may change. */
bool gpi_memory_foreign(struct gpi_plan *p, uint32_t device, uint64_t bytes, uint32_t load);
/* The worker has these bytes on its device number `at`.  Returns as above. */
bool gpi_memory_observed(struct gpi_plan *p, uint32_t run, uint32_t at, uint64_t bytes);
void gpi_memory_may(struct gpi_plan *p, uint32_t device, enum gpi_plan_may may);
/* Returns the bytes that one request may name at most: all but the headroom. */
uint64_t gpi_memory_most(const struct gpi_plan *p, uint32_t device);
/* Returns the lack of the device, even if it is empty, for the request. */
enum gpi_lack gpi_memory_lacks(const struct gpi_plan *p, uint32_t device,
                               const struct gpi_request *r);
/* Returns true if the device, once it is empty, holds the request. */
bool gpi_memory_could(const struct gpi_plan *p, uint32_t device, const struct gpi_request *r);
bool gpi_memory_is_place(const struct gpi_plan *p, uint32_t set, uint32_t device);
/* Returns true if foreign processes use little of the device.                          [R4] */
bool gpi_memory_is_quiet(const struct gpi_plan *p, const struct gpi_plan_device *d);
/* Returns the number of devices of these kinds. */
uint32_t gpi_memory_count(const struct gpi_plan *p, uint64_t kinds);
/* Returns true if devices that are present, and the machine, could ever hold the request.   [R9] */
bool gpi_memory_could_hold(const struct gpi_plan *p, const struct gpi_request *r);
/* Returns how many workers with this need could be there side by side, at most: 2^32 - 1. */
uint32_t gpi_memory_holds(const struct gpi_plan *p, const struct gpi_request *r);
/* Returns the kinds on which the class could begin the request. */
uint64_t gpi_memory_kinds(const struct gpi_plan *p, uint32_t class, const struct gpi_request *r);
/* Returns true if the device, but for runs, which end on their own, holds the request. */
bool gpi_memory_may_hold(const struct gpi_plan *p, uint32_t device, const struct gpi_request *r);
/* Returns true if the device has memory for the request now. */
bool gpi_memory_fits(const struct gpi_plan *p, uint32_t device, const struct gpi_request *r);
uint64_t gpi_memory_unused(const struct gpi_plan_device *d);
/* Returns true if foreign processes keep the request out.  They have this much, of at most that:
 * bytes, or use.                                                                       [R4] */
bool gpi_memory_disturbed(const struct gpi_plan *p, uint32_t device, const struct gpi_request *r,
                          uint64_t *ret_have, uint64_t *ret_most);
/* Picks devices of these kinds that are free for the request, beside the `n` that it has.  Returns
 * their number. */
uint32_t gpi_memory_pick_more(const struct gpi_plan *p, const struct gpi_request *r, uint64_t kinds,
                              uint32_t n, uint16_t *ret_device);
static inline uint32_t gpi_memory_pick(const struct gpi_plan *p, const struct gpi_request *r,
                                       uint64_t kinds, uint16_t *ret_device)
{
    return gpi_memory_pick_more(p, r, kinds, 0, ret_device);
}
/* Returns the most units of share that one request may get now. */
uint32_t gpi_memory_offer(struct gpi_plan *p);
/* HOLD: parts that a worker has as long as it lives.  SHARE: parts that a task has as long as it
 * runs. */
enum gpi_part { GPI_HOLD = 1, GPI_SHARE = 2 };
void gpi_memory_take(struct gpi_plan *p, uint32_t run, uint32_t parts);
/* Returns the kinds of the run's devices. */
uint64_t gpi_memory_kinds_of(const struct gpi_plan *p, const struct gpi_run *r);
/* What is free of the machine.  An adopted run may have more than that. */
uint32_t gpi_memory_free_cpus(const struct gpi_plan *p);
uint64_t gpi_memory_free_host(const struct gpi_plan *p);
/* The run has a task, and ends by another time. */
void gpi_memory_ends_by(struct gpi_plan *p, uint32_t run, uint64_t at);
/* Returns the kinds that got something free. */
uint64_t gpi_memory_release(struct gpi_plan *p, uint32_t run, uint32_t parts);
/* Returns true if the device could hold the request without the workers that may ever go. */
bool gpi_memory_could_clear(const struct gpi_plan *p, uint32_t device, const struct gpi_request *r,
                            uint32_t class);
/* Returns the bytes of the device that the worker has. */
uint64_t gpi_memory_of(const struct gpi_plan *p, const struct gpi_run *r, uint32_t device);
/* The worker is there, or leaves.  As long as a resident one is there, its memory is no room for
 * other classes. */
void gpi_memory_there(struct gpi_plan *p, uint32_t run, bool there);
/* Shapes of its class may use the worker's devices. */
void gpi_memory_warm(struct gpi_plan *p, uint32_t run, bool warm);

/* ---- kinds.c: the kinds of devices that a shape may use ---- */

/* Returns true if as many devices as the request needs could hold it as things are, or without
 * workers that may go. */
bool gpi_kinds_in_reach(const struct gpi_plan *p, uint32_t class, const struct gpi_request *r);
/* Returns true if a younger worker that stays takes no device from the variant, should the shape
 * have this many more.                                                                     [R2] */
bool gpi_kinds_claims(const struct gpi_plan *p, const struct gpi_shape *s, uint32_t variant,
                      uint32_t more);
/* Returns when the first task has waited for as long as a boot takes. */
uint64_t gpi_kinds_late_at(const struct gpi_plan *p, uint32_t shape);
/* Returns the time at which it has waited for max_wait.  From then on workers with work go for it.
 * GPI_NEVER: a worker serves it. */
uint64_t gpi_kinds_hard_at(const struct gpi_plan *p, const struct gpi_shape *s);
/* Returns the next of these times that matters to the shape, or GPI_NEVER. */
uint64_t gpi_kinds_older_at(const struct gpi_plan *p, uint32_t shape);
/* Returns true if the shape has become late, or pressed, since its kinds were found. */
bool gpi_kinds_is_older(const struct gpi_plan *p, const struct gpi_shape *s);
/* Returns true if the class could add a worker for a task that none serves. */
bool gpi_kinds_may_add(const struct gpi_plan *p, const struct gpi_learned *c);
/* Writes the kinds that the shape may use, and all that goes with them. */
void gpi_kinds_find(const struct gpi_plan *p, struct gpi_shape *s);
/* The same, if the class wanted a further worker, and could add one for a task that none serves. */
void gpi_kinds_find_if(const struct gpi_plan *p, struct gpi_shape *s, bool wants, bool adds);

/* ---- shape.c: waiting tasks ---- */

int gpi_shape_make(struct gpi_plan *p);
void gpi_shape_free(struct gpi_plan *p);
/* Returns the place of the task's shape in the table; GPI_NONE there: no task of it waits. */
uint32_t gpi_shape_place(const struct gpi_plan *p, uint32_t task, const struct gpi_plan_task *what);
/* Returns false if there are too many shapes. */
bool gpi_shape_put(struct gpi_plan *p, uint32_t place, uint32_t task,
                   const struct gpi_plan_task *what);
/* Takes a waiting task out.  Its shape ends with its last task. */
void gpi_shape_take(struct gpi_plan *p, uint32_t task);
/* Returns true if the task waits. */
bool gpi_shape_waits(const struct gpi_plan *p, uint32_t task);
/* Returns the shape of which the task would be, or, if it would be its first one, a record of it
 * that is in no order and has no task.  The record is good until the next call. */
uint32_t gpi_shape_suppose(struct gpi_plan *p, const struct gpi_plan_task *what);
/* Returns true if the class wants a further worker when `queued` tasks wait.  `ret_why_not`:
 * PAUSED, SEATS, FAULT, or BUSY: the workers that it has are enough. */
bool gpi_shape_wants(const struct gpi_plan *p, const struct gpi_learned *c, uint32_t queued,
                     enum gpi_plan_why *ret_why_not);
/* Returns the smallest number of tasks in the caller's queue with which the class wants one. */
uint32_t gpi_shape_wants_from(const struct gpi_plan *p, const struct gpi_learned *c);
void gpi_shape_examine(struct gpi_plan *p, uint32_t shape); /* in the next decision */
void gpi_shape_examined(struct gpi_plan *p, uint32_t shape);
/* The shape lacks nothing but a free run, or not any more. */
void gpi_shape_lacks_run(struct gpi_plan *p, uint32_t shape, bool lacks);
/* A worker may go for a shape now that could not before. */
void gpi_shape_evict_again(struct gpi_plan *p);
void gpi_shape_lacks_host(struct gpi_plan *p, uint32_t shape, bool lacks);
/* The device is of another kind now, or in or out: its kinds may have other heads. */
void gpi_shape_sort(struct gpi_plan *p, uint32_t device);
/* The queue or the workers of the class have changed: it may want a further one, or no more. */
void gpi_shape_class(struct gpi_plan *p, uint32_t class);
/* Its first task may be late, or pressed, by now. */
void gpi_shape_on_time(struct gpi_plan *p, uint32_t shape);
/* Computes anew the kinds that the shape may use: the time is later. */
void gpi_shape_refresh(struct gpi_plan *p, uint32_t shape);
void gpi_shape_pause(struct gpi_plan *p, uint32_t class); /* or it goes on */
/* The shapes of the class may have a worker, or want another one. */
void gpi_shape_examine_class(struct gpi_plan *p, uint32_t class);
/* Returns the first waiting shape that may use the kind, or waits for the machine (GPI_KINDS); or
 * GPI_NONE. */
uint32_t gpi_shape_find_head(struct gpi_plan *p, uint32_t bit);

static inline uint32_t gpi_shape_head(struct gpi_plan *p, uint32_t bit)
{
    return p->head[bit] == GPI_UNKNOWN ? gpi_shape_find_head(p, bit) : p->head[bit];
}

/* Returns the first waiting shape of all, and the one behind another. */
static inline uint32_t gpi_shape_first(const struct gpi_plan *p)
{
    return gpi_tree_first(&p->order,
                          &(struct gpi_tree_wanted){ GPI_BIT_ANY, UINT64_MAX, UINT32_MAX });
}

static inline uint32_t gpi_shape_next(const struct gpi_plan *p, uint32_t shape, uint64_t bits)
{
    return gpi_tree_next(&p->order, shape,
                         &(struct gpi_tree_wanted){ bits, UINT64_MAX, UINT32_MAX });
}

static inline bool gpi_shape_precedes(const struct gpi_plan *p, uint32_t a, uint32_t b)
{
    return gpi_tree_precedes(&p->order, a, b);
}

/* Returns the first in order of `i` and `*other`, which is GPI_NONE then; GPI_NONE if both are.
 * They may be one. */
static inline uint32_t gpi_shape_older(const struct gpi_plan *p, uint32_t i, uint32_t *other)
{
    const bool is_other =
        *other != GPI_NONE && (i == GPI_NONE || !gpi_shape_precedes(p, i, *other));
    const uint32_t next = is_other ? *other : i;

    if (is_other)
        *other = GPI_NONE;
    return next;
}

/* Returns true if the workers of its class stay. */
static inline bool gpi_shape_stays(const struct gpi_plan *p, uint32_t shape)
{
    return p->class[p->shape[shape].class].set.residence == GPI_RESIDENT;
}

/* Returns the number of workers that the class has without a queue. */
static inline uint32_t gpi_shape_least_workers(const struct gpi_learned *c)
{
    return c->set.min_workers > c->to_load ? c->set.min_workers : c->to_load;
}

/* Returns the ms at which the task began to wait, less than 2^31 of them ago. */
static inline uint64_t gpi_shape_since(const struct gpi_plan *p, uint32_t task)
{
    const uint64_t now = p->now / GPI_MS;

    return now - ((now - p->task[task].since) & GPI_SINCE_MASK);
}

/* Returns the time that the first task of the shape may take, until it is killed. */
static inline uint64_t gpi_shape_takes(const struct gpi_plan *p, uint32_t shape)
{
    return p->order.node[shape].value;
}

/* Returns true if no later task may delay the first one.                                 [S2] */
static inline bool gpi_shape_is_strict(const struct gpi_plan *p)
{
    return p->set.mode == GPI_MODE_STRICT || p->set.passing == GPI_PASS_APART;
}

/* ---- reserve.c: heads, promises, and passing ---- */

/* Returns which of the kinds the shape may take from now.  `ret_rest`: kinds whose head
 * lacks nothing there, so that it may take the rest. */
uint64_t gpi_reserve_open(struct gpi_plan *p, uint32_t shape, uint64_t kinds, uint64_t *ret_rest);
/* A task that takes this long may pass heads, too, until this is called with GPI_NEVER. */
void gpi_reserve_suppose(struct gpi_plan *p, uint64_t takes);
/* Returns the head that keeps the kind from the shape, or GPI_NONE if the shape may take from it;
 * the second one is that for a boot. */
uint32_t gpi_reserve_holder(struct gpi_plan *p, uint32_t shape, uint32_t kind);
uint32_t gpi_reserve_boot_holder(struct gpi_plan *p, uint32_t shape, uint32_t kind);
/* Returns the lack of the machine for the request.  `ret_keeper`: the head for which it is kept, or
 * GPI_NONE: runs have it. */
enum gpi_lack gpi_reserve_lacks(struct gpi_plan *p, uint32_t shape, const struct gpi_request *r,
                                bool for_life, uint32_t *ret_keeper);
/* Returns true if the machine has the slots and the memory of the request, beside the part
 * that it keeps for heads. */
bool gpi_reserve_host(struct gpi_plan *p, uint32_t shape, const struct gpi_request *r,
                      bool for_life);
/* Returns which of the kinds a worker for the shape may boot on: the shape is their head. */
uint64_t gpi_reserve_own(struct gpi_plan *p, uint32_t shape, uint64_t kinds);
/* Workers that stay boot in order of age, but a shape that no worker serves comes before those that
 * want a further one.  It does not pass a shape of another kind of class, nor any shape where no
 * later task may delay the first one.  Takes shapes by age, until it returns true.         [R5] */
struct gpi_walk {
    uint32_t head; /* at first GPI_NONE */
};
bool gpi_reserve_walk(const struct gpi_plan *p, struct gpi_walk *w, uint32_t shape, bool served);
/* Returns the first shape that may begin on the kind, and not only in its worker there. */
uint32_t gpi_reserve_memory_head(struct gpi_plan *p, uint32_t kind);
/* Returns the one that would come before this shape there, if it may begin, too; or GPI_NONE. */
uint32_t gpi_reserve_claimant(struct gpi_plan *p, uint32_t shape, uint32_t kind);
/* Returns the bytes that a worker leaves to the head of the kind when it boots beside it;
 * GPI_MEMORY_ALL: none boots there.                                                     [R5] */
uint64_t gpi_reserve_beside(struct gpi_plan *p, uint32_t shape, uint32_t kind);
/* The shape does not fit. */
void gpi_reserve_blocked(struct gpi_plan *p, uint32_t shape, bool lacks_host);
/* Returns a bit per variant of heads that lack nothing but something of the machine: their
 * devices are free now.  A shape that takes the rest of these kinds must leave each of the bits. */
uint64_t gpi_reserve_rest(struct gpi_plan *p, uint32_t shape, uint64_t kinds);
/* The shape has taken devices of these kinds, and its first task is about to leave. */
void gpi_reserve_leave(struct gpi_plan *p, uint32_t shape, uint64_t kinds);
int gpi_reserve_make(struct gpi_plan *p);
void gpi_reserve_free(struct gpi_plan *p);
/* An older task is about to be the first of the shape. */
void gpi_reserve_displaced(struct gpi_plan *p, uint32_t shape);
/* Renews the promises that count on less than before. */
void gpi_reserve_renew(struct gpi_plan *p);
/* Returns the first shape behind this one that is wanted, and whose first task is short enough to
 * start on devices of the kind before the head does.  Sets the most of `w`. */
uint32_t gpi_reserve_next(struct gpi_plan *p, uint32_t head, uint32_t kind, uint32_t shape,
                          struct gpi_tree_wanted *w);

/* ---- revoke.c: granted runs ---- */

/* Returns true if a run for the first task of the shape may be granted: no task waits that could
 * use a part of it, but for younger ones of its class.                                     [R1] */
bool gpi_revoke_may_grant(const struct gpi_plan *p, const struct gpi_run *r, uint32_t shape);
/* A stream task starts in the run. */
void gpi_revoke_start(struct gpi_plan *p, uint32_t run, bool granted);
/* The run is granted no more, if it was. */
void gpi_revoke_forget(struct gpi_plan *p, uint32_t run);
void gpi_revoke_end(struct gpi_plan *p, uint32_t run);
/* Orders the caller to end the grant. */
void gpi_revoke_run(struct gpi_plan *p, uint32_t run);
/* Returns true if the caller may have older tasks of the run's class than the plan knows: then no
 * worker of the class goes for a shape.  _await: shapes are examined again when it knows these. */
bool gpi_revoke_is_ahead(const struct gpi_plan *p, uint32_t run);
bool gpi_revoke_await(struct gpi_plan *p, uint32_t run);
/* The queue of the class is empty. */
void gpi_revoke_class_empty(struct gpi_plan *p, uint32_t class);
/* The plan knows the oldest task of the class again: the run is ahead of no other one; or no run of
 * the class is. */
void gpi_revoke_known(struct gpi_plan *p, uint32_t run);
void gpi_revoke_class_known(struct gpi_plan *p, uint32_t class);
/* Revokes the runs of which another class may use a part now, or whose class or device is off. */
void gpi_revoke_doubted(struct gpi_plan *p);

static inline bool gpi_is_among(const uint16_t *device, uint32_t n, uint32_t d)
{
    for (uint32_t i = 0; i < n; i++)
        if (device[i] == d)
            return true;
    return false;
}

/* ---- leave.c: a worker leaves ---- */

int gpi_leave_make(struct gpi_plan *p);
void gpi_leave_free(struct gpi_plan *p);
void gpi_leave_worker(struct gpi_plan *p, uint32_t run);
void gpi_leave_list(struct gpi_plan *p, uint32_t run, uint32_t *list); /* it is the first there */
void gpi_leave_unlist(struct gpi_plan *p, uint32_t run); /* it is idle, or boots, no more */
/* Its workers leave: all, or the ones on the device. */
void gpi_leave_class(struct gpi_plan *p, uint32_t class);
void gpi_leave_device(struct gpi_plan *p, uint32_t device);
/* Boots that no task waits for are ended.                                               [R7] */
void gpi_leave_boots(struct gpi_plan *p, uint32_t class);
/* Sets the times at which idle workers of the class go.                                 [R6] */
void gpi_leave_keep(struct gpi_plan *p, uint32_t class);
void gpi_leave_kept(struct gpi_plan *p); /* unloads those whose time has come */

/* ---- way.c: workers that make room on a device when they go ---- */

#define GPI_VICTIMS 8u /* on one device */

struct gpi_way {
    uint32_t device;
    uint32_t n;
    uint32_t victim[GPI_VICTIMS];
    uint64_t at;         /* when they are ripe */
    bool ends;           /* one is the last of a class that has tasks */
    uint64_t cost, used; /* ns of boots; when the last one ended a task */
};
/* Why workers do not leave the device for a shape.  `at` is not later than now: they are about to
 * go, if the other devices that it needs are as far. */
struct gpi_obstacle {
    enum gpi_plan_why why; /* MIN_RESIDENCE, MAX_WAIT, PINNED, BOOTING, OCCUPIED, HEAD_HOLDS */
    uint32_t class;        /* HEAD_HOLDS: the shape that comes before */
    uint64_t at;
};
/* Returns when, and why not before, the worker may go for a shape with this time. */
struct gpi_obstacle gpi_way_going(const struct gpi_plan *p, const struct gpi_run *r,
                                  uint64_t hard_at);
uint64_t gpi_way_goes_at(const struct gpi_plan *p, const struct gpi_run *r, uint64_t hard_at);
/* Returns true if worker `a` goes before `b`: one that may go sooner, then the cheaper one. */
bool gpi_way_goes_before(const struct gpi_plan *p, uint32_t a, uint32_t b, uint64_t hard_at);
/* Finds workers that go soonest, then the cheapest.  Returns false if the device never has room. */
bool gpi_way_find(const struct gpi_plan *p, uint32_t device, uint32_t class,
                  const struct gpi_request *r, uint64_t hard_at, struct gpi_way *ret);
/* Returns true if the device holds the variant once the workers of the way are gone, and not
 * before. */
bool gpi_way_is(const struct gpi_plan *p, const struct gpi_shape *s, uint32_t variant,
                uint32_t device, uint64_t hard_at, struct gpi_way *ret);
/* Returns when the workers of such a way may go, or GPI_NEVER. */
uint64_t gpi_way_at(const struct gpi_plan *p, uint32_t shape, uint32_t variant, uint32_t device);
bool gpi_way_is_better(const struct gpi_way *a, const struct gpi_way *b);
/* Returns true if the device has room for the request without the workers of the way. */
bool gpi_way_has_room(const struct gpi_plan *p, const struct gpi_way *w,
                      const struct gpi_request *r);
/* Returns true if one more worker of the class may go, beside those of the way. */
bool gpi_way_has_spare(const struct gpi_plan *p, const struct gpi_way *w, uint32_t class);
/* There is no way: returns a worker that never goes, or one of those of which some have to stay.
 * Without such the workers of the class have the place. */
struct gpi_obstacle gpi_way_who_stays(const struct gpi_plan *p, uint32_t device, uint32_t class,
                                      const struct gpi_request *request, uint64_t hard_at);

/* ---- ways.c: ways for all the devices that a shape lacks ---- */

bool gpi_ways_has(const struct gpi_way *w, uint32_t run);
/* Returns the shape before this one that would take the place, or GPI_NONE. */
uint32_t gpi_ways_who_follows(struct gpi_plan *p, uint32_t shape, uint32_t variant,
                              const struct gpi_way *w);
/* Lists the best ways for `k` devices, without those that are for another shape.  Returns their
 * number.  `ret_next`: when that may change; then the shape is examined again.  It may be NULL. */
uint32_t gpi_ways_find(struct gpi_plan *p, uint32_t shape, uint32_t variant, uint32_t k,
                       uint64_t hard_at, struct gpi_way *ret, uint64_t *ret_next);
/* Returns a class of the way of which a worker stays, since another one goes for the shape. */
uint32_t gpi_ways_who_stays(struct gpi_plan *p, uint32_t shape, uint32_t variant,
                            const struct gpi_way *w);

/* ---- spare.c: idle workers of transient classes ---- */

/* Unloads such workers on the devices of which the shape is the head.  Returns true if enough of
 * these are free, or are cleared now. */
bool gpi_spare_evict(struct gpi_plan *p, uint32_t shape, uint32_t variant);
/* The shape lets an idle worker of its class go that does not serve it.  Returns when one goes, if
 * none does now. */
uint64_t gpi_spare_replace(struct gpi_plan *p, uint32_t shape);
/* Returns true if a transient class, or the plan, has the most workers that it may have: then an
 * idle worker of the class goes for a late shape of it that it does not serve. */
bool gpi_spare_may_replace(const struct gpi_plan *p, uint32_t class);
/* Returns the first waiting shape that the worker serves, which would boot it again: the shape
 * itself, or an older one.  GPI_NONE for a shape: any. */
uint32_t gpi_spare_served(const struct gpi_plan *p, uint32_t run, uint32_t shape);
/* Returns the idle worker that would go for the late shape of its class, or GPI_NONE. */
uint32_t gpi_spare_replaced(const struct gpi_plan *p, uint32_t shape);

/* ---- evict.c: which workers go for a shape ---- */

int gpi_evict_make(struct gpi_plan *p);
void gpi_evict_free(struct gpi_plan *p);
/* The shape does not start: workers that stay may be in its way, or have all runs.  Unloads some,
 * or sets a time. */
void gpi_evict_for(struct gpi_plan *p, uint32_t shape);
/* Returns true if the busy worker is in the way of a shape that has waited for its max_wait: the
 * device of the worker is part of a way, whichever shape would follow there.               [R1] */
bool gpi_evict_is_due(const struct gpi_plan *p, uint32_t run);
void gpi_evict_time(struct gpi_plan *p); /* marks the shapes that are due */
/* Returns true if the workers on as many devices as the variant needs may go for the shape now. */
bool gpi_evict_is_ripe(struct gpi_plan *p, uint32_t shape, uint32_t variant);
struct gpi_obstacle gpi_evict_obstacle(struct gpi_plan *p, uint32_t shape, uint32_t variant,
                                       uint32_t device);

/* ---- tenancy.c: runs, and workers that come and go ---- */

/* The next unused run is in use; a run ends. */
void gpi_tenancy_take_run(struct gpi_plan *p, uint32_t run);
void gpi_tenancy_end_run(struct gpi_plan *p, uint32_t run);
void gpi_tenancy_free_run(struct gpi_plan *p, uint32_t run); /* it has not begun */
/* Idle workers of the class, if it is transient, may go for the heads of their devices now. */
void gpi_tenancy_offer(struct gpi_plan *p, uint32_t class);
/* No task waits for the idle workers of the class: they may go. */
void gpi_tenancy_calm(struct gpi_plan *p, uint32_t class);
/* The task waits no more. */
void gpi_tenancy_withdraw(struct gpi_plan *p, uint32_t task);
/* Puts the load task of the class into the queue, or takes it out. */
void gpi_tenancy_load(struct gpi_plan *p, uint32_t class);
uint32_t gpi_tenancy_warm(struct gpi_plan *p, uint32_t class, const uint16_t *device, uint32_t n);
void gpi_tenancy_up(struct gpi_plan *p, uint32_t worker);
void gpi_tenancy_idle(struct gpi_plan *p, uint32_t worker); /* it has no task */
void gpi_tenancy_leaves(struct gpi_plan *p, uint32_t worker);
void gpi_tenancy_gone(struct gpi_plan *p, uint32_t worker, uint64_t again);
void gpi_tenancy_time(struct gpi_plan *p);                    /* classes may boot again by now */
void gpi_tenancy_forgive(struct gpi_plan *p, uint32_t class); /* it may boot again at once */

/* ---- grant.c: starts and ends ---- */

int gpi_grant_make(struct gpi_plan *p);
void gpi_grant_free(struct gpi_plan *p);
/* Starts the first task of the shape if it fits.  Returns true if it did. */
bool gpi_grant_try(struct gpi_plan *p, uint32_t shape);
/* Returns true if the first task of the shape could start now.  A boot does not count. */
bool gpi_grant_could(struct gpi_plan *p, uint32_t shape);
void gpi_grant_end(struct gpi_plan *p, uint32_t task, bool good, uint64_t took,
                   uint64_t keep_alive);
void gpi_grant_ends_by(struct gpi_plan *p, uint32_t task, uint64_t at);
uint32_t gpi_grant_adopt(struct gpi_plan *p, uint32_t task, const struct gpi_plan_adoption *a);
/* Returns how many of the last GPI_LATE boots were of the class, or of a removed one before it. */
uint32_t gpi_grant_late(const struct gpi_plan *p, uint32_t class);
/* The class has this many tasks in the caller's queue. */
void gpi_grant_queue(struct gpi_plan *p, uint32_t class, uint32_t n, uint64_t run);

/* ---- plan.c ---- */

/* Returns the task with the requests of its class, if its class has some. */
struct gpi_plan_task gpi_plan_own(const struct gpi_plan *p, const struct gpi_plan_task *what);

#endif
