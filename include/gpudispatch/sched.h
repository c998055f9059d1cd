/* SPDX-License-Identifier: MIT */
/*
 * sched.h - classes of work that share the devices of a pooled dispatcher.
 *
 * A dispatcher with option pooled = 1 begins without workers.  A class is a definition
 * put to use: its name, the needs of its workers, and its options.  Each task names its
 * class.  The dispatcher decides which class gets a worker on which device, and when an
 * idle worker must leave for another class.
 *
 * A worker holds memory, of its devices and of the machine, as long as it lives.  A task
 * holds a share of the devices and CPU slots as long as it runs.
 *
 *     struct gpud_options o = GPUD_OPTIONS_INIT, of = GPUD_OPTIONS_INIT;
 *     struct gpud_request needs = GPUD_REQUEST_INIT;
 *     struct gpud_class whisper = GPUD_CLASS_INIT;
 *     struct gpud_task_desc task = GPUD_TASK_DESC_INIT;
 *
 *     o.pooled = 1; o.devices = "all";
 *     gpud_dispatcher_create(&d, &o, NULL);
 *     needs.devices = 1; needs.memory = 12ull << 30;
 *     of.definition = "transcribe";
 *     whisper.name = "whisper"; whisper.needs = &needs; whisper.options = &of;
 *     gpud_dispatcher_class_add(d, &whisper, NULL);
 *     task.class_name = "whisper";
 *     gpud_dispatcher_submit(d, &task, 0, NULL, NULL);
 *
 * Stability: stable (appending only).
 */
#ifndef GPUDISPATCH_SCHED_H
#define GPUDISPATCH_SCHED_H

#include "dispatch.h"
#include "error.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Selects how long the workers of a class stay, or that it has none. */
enum gpud_residence {
    GPUD_RESIDENT = 0, /* for min_residence, and then until another class needs their
                          place (the default) */
    GPUD_TRANSIENT = 1, /* an idle worker leaves at once for another class, whatever its
                           min_residence; a task may have a request of its own, and an
                           idle worker leaves also for a task that needs another one */
    GPUD_EXTERNAL = 2   /* it has no workers: the host runs its tasks (external.h).  A
                           task may have a request of its own */
};

/*
 * One way to run: the needs of a worker and of its tasks.
 *
 * Begin with GPUD_REQUEST_INIT, and set devices, cpus or host_memory.  A worker may get
 * any devices that fit.
 */
struct gpud_request {
    /*
     * The size of this record, as GPUD_REQUEST_INIT sets it.
     * Unit: bytes.
     */
    uint32_t struct_size;

    /*
     * The number of devices of a worker.  A worker without devices has CPU slots, memory
     * of the machine, or both; the name of its one device is "cpu".
     * Default: 0.  Range: 0 to 16.  Unit: devices.
     */
    uint32_t devices;

    /*
     * The part of its device that a running task uses.  Tasks of several workers run side
     * by side on a device while their shares fit.
     * Default: [the whole device].  Range: 1 to 10,000; with several devices only 10,000.
     * Unit: 1/10,000 of one device.
     */
    uint32_t share;

    /*
     * The CPU slots of a running task.
     * Default: 0.  Range: up to option cpus.  Unit: CPU slots.
     */
    uint32_t cpus;

    /*
     * The least compute capability of the devices: 100 times the major number plus the
     * minor one, such as 806 for 8.6.
     * Default: [any].  Range: any.
     */
    uint32_t compute;

    /* Reserved: leave it 0. */
    uint32_t reserved;

    /*
     * The memory of a worker on each of its devices.  Without a number the worker has
     * the devices alone, since no other worker fits beside an unknown number.
     * Default: [unknown].  Range: any.  Unit: bytes.
     */
    uint64_t memory;

    /*
     * The memory of the machine that a worker has.
     * Default: 0.  Range: up to option host_memory.  Unit: bytes.
     */
    uint64_t host_memory;

    /*
     * The next variant, which is used where this one does not fit.  The preferred variant
     * comes first, and NULL ends the list.  A variant that could never fit is not refused
     * while another one could.
     * Default: none.  Range: up to 4 variants in all.
     */
    const struct gpud_request *next;

    /*
     * The devices that a worker may have: names or UUIDs of devices of the dispatcher,
     * separated by commas, such as "gpu:0,gpu:1".  A device that is added again later is
     * meant, too.  The classes, the accepted tasks and the workers of a dispatcher may
     * name up to 256 different pairs of on and not_on at a time.
     * Default: [every device].  Range: devices that the dispatcher has.
     */
    const char *on;

    /*
     * Devices that a worker never has, as in on.
     * Default: [none].  Range: devices that the dispatcher has.
     */
    const char *not_on;
};

/* The initial value of a struct gpud_request: it needs nothing yet. */
#define GPUD_REQUEST_INIT \
    { (uint32_t)sizeof(struct gpud_request), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/*
 * A class of work, for gpud_dispatcher_class_add.
 *
 * Begin with GPUD_CLASS_INIT and set the fields you need.  Zero means the default, which
 * stands in brackets.  Times are nanoseconds, with the limits of struct gpud_options.
 * GPUD_AT_ONCE means no time at all in min_residence, keep_alive and max_wait.
 */
struct gpud_class {
    /*
     * The size of this record, as GPUD_CLASS_INIT sets it.
     * Unit: bytes.
     */
    uint32_t struct_size;

    /*
     * Selects how long its workers stay.
     * Default: [GPUD_RESIDENT].  Range: enum gpud_residence.
     */
    uint32_t residence;

    /*
     * Its name, which each of its tasks has in class_name.
     * Default: none.  Range: 1 to 63 bytes.
     */
    const char *name;

    /*
     * The needs of each of its workers, with variants.  GPUD_EXTERNAL: those of a task
     * without a request.
     * Default: [one whole device].
     */
    const struct gpud_request *needs;

    /*
     * The number of workers that start at once, and stay even if another class needs
     * their place.
     * Default: 0.  Range: up to max_workers; 0 with GPUD_TRANSIENT and GPUD_EXTERNAL.
     * Unit: workers.
     */
    uint32_t min_workers;

    /*
     * Bounds its workers.  The first one starts when a task waits.  Another one starts if
     * it fits, if more tasks wait than workers of the class are starting, and if the
     * waiting tasks take longer than the start of a worker: their number times the run
     * time of one, divided by the number of workers.  No more workers start than the
     * shares of each device, or option cpus, let run at a time.
     * Default: [as many as fit].  Range: any; 0 with GPUD_EXTERNAL.  Unit: workers.
     */
    uint32_t max_workers;

    /*
     * With 1 its workers never leave for another class.  UNLOAD and DRAIN still end them.
     * Default: [0].  Range: 0 or 1; 0 with GPUD_TRANSIENT and GPUD_EXTERNAL.
     */
    uint32_t pinned;

    /* Reserved: leave it 0. */
    uint32_t reserved;

    /*
     * A worker of a resident class stays this long before it may leave for another
     * class.  With GPUD_EXTERNAL it must be 0, as keep_alive, boot_seed and unload_seed.
     * Default: [30 s].  Range: GPUD_AT_ONCE, 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     */
    uint64_t min_residence;

    /*
     * An idle worker leaves after this time without a task.  Pinned workers and
     * min_workers stay, and so does each worker while a task of its class waits.
     * Default: [GPUD_NEVER].  Range: GPUD_AT_ONCE, 1 us to 292 years, GPUD_NEVER.
     * Unit: ns.
     */
    uint64_t keep_alive;

    /*
     * A task of this class that has waited this long for a worker, or with GPUD_EXTERNAL
     * for its devices, may take the place of a worker of another class that has tasks of
     * its own, but for those that come before this one.  That worker stays for its own
     * min_residence, and ends its task first.
     * Default: [5 min].  Range: GPUD_AT_ONCE, 1 us to 292 years, GPUD_NEVER.  Unit: ns.
     */
    uint64_t max_wait;

    /*
     * The expected time from the start of a worker to the end of its setup.  It counts
     * until the dispatcher has learned that time.
     * Default: [60 s].  Range: 1 us to 292 years.  Unit: ns.
     */
    uint64_t boot_seed;

    /*
     * The expected time in which a worker leaves, its memory included.  It counts until
     * the dispatcher has learned that time.
     * Default: [5 s].  Range: 1 us to 292 years.  Unit: ns.
     */
    uint64_t unload_seed;

    /*
     * The expected run time of a task.  It counts until the dispatcher has learned that
     * time; meanwhile a task that runs longer counts instead.
     * Default: [1 s].  Range: 1 us to 292 years.  Unit: ns.
     */
    uint64_t run_seed;

    /*
     * The options of its workers and tasks, such as definition and task_limit.
     *
     * The options of the dispatcher must be 0 here.  They are drive, devices, queue_size,
     * payload_budget, close_limit, kill_limit, log_level, slot_events, setup_concurrency,
     * canary_passes, canary_backoff, canary_backoff_cap, memory_wait, xid_rules, and
     * pooled with all that follow it.  devices_per_worker must be 0, too: needs has the
     * devices.
     *
     * A class with GPUD_EXTERNAL may have setup_limit, task_limit, grace, max_attempts,
     * retry_causes, retry_backoff, retry_backoff_cap, expires and stall_limit.  All other
     * options are about workers, and must be 0.  Its setup_limit is the longest time from
     * a grant to gpud_dispatcher_started: set a short one for commands.
     * Default: [the defaults of struct gpud_options].
     */
    const struct gpud_options *options;
};

/* The initial value of a struct gpud_class: every default, and no name. */
#define GPUD_CLASS_INIT \
    { (uint32_t)sizeof(struct gpud_class), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/*
 * Adds a class to a pooled dispatcher.
 *
 * The call starts no worker, unless min_workers is set: a worker starts when a task waits
 * for it, or with GPUD_CLASS_LOAD.  A dispatcher has up to 256 classes.  A removed class
 * counts as long as the host has an event of it, or has one to read.
 *
 * The workers of a class start as those of any dispatcher (option start).  A class
 * without argv and plugin needs gpud_init.
 *
 * Parameters:
 *   d       the dispatcher
 *   added   the class
 *   reterr  receives field, value and bound of a failure, may be NULL
 * Returns: 0.  On failure nothing has changed.
 * Errors:
 *   GPUD_EINVAL         d or added is NULL, or d is not pooled (field pooled).  Or a
 *                       field of added, of its needs or of its options is out of its
 *                       range, does not fit another one, or belongs to the dispatcher.
 *                       Or needs has more than 4 variants
 *   GPUD_EBUSY          d has a class with the name of added
 *   GPUD_EFULL          d has 256 classes already, removed ones with events included.
 *                       Or needs name the 257th different set of devices
 *   GPUD_ECLOSED        intake of d has ended, so no class may be added
 *   GPUD_EDEVICE        no device of d, or not the machine, could ever hold a worker of
 *                       added; or not min_workers of them at a time.  Or its needs name
 *                       a device that d does not have
 *   GPUD_ESTRUCT        the struct_size of added, of its needs or of its options is not a
 *                       valid size
 *   GPUD_EVERSION       added, its needs or its options are of a later version and use a
 *                       field that this library does not know
 *   GPUD_ENOINIT        gpud_init was not called, and the options of added have neither
 *                       argv nor plugin
 *   GPUD_ENODEFINITION  gpud_init has recorded no definition that the options of added
 *                       name
 *   GPUD_ECREDS         the workers of added would be forked, and the spawner of d cannot
 *                       fork them: d was created before gpud_init or with other
 *                       credentials.  Or credentials have changed since d was created
 *   GPUD_ENOPROGRAM     the program or plugin in the options of added is missing
 *   GPUD_ENOTEXEC       the program in the options of added is not executable
 *   GPUD_EPLUGIN        the plugin in the options of added is not readable, or no ELF
 *                       file for this machine
 *   GPUD_ETOOBIG        the setup bytes of added do not fit into what is left of the data
 *                       half of payload_budget
 *   GPUD_EREENTER       this process is a worker, and added belongs to the host
 *   GPUD_EFORKED        d, or setup_shared of added, belongs to the parent of this forked
 *                       process
 *   GPUD_ENOMEM         no memory for added
 *   GPUD_ESYSTEM        the system refused a call that added needs
 * Owns: copies added and everything that it points to, except the memory of setup_shared.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_class_set, gpud_dispatcher_classes, option pooled,
 * gpud_task_desc.class_name.
 */
GPUD_API int gpud_dispatcher_class_add(gpud_dispatcher *d, const struct gpud_class *added,
                                       struct gpud_error *reterr);

/* Selects the effect of gpud_dispatcher_class_set. */
enum gpud_class_what {
    GPUD_CLASS_PAUSE = 0,  /* starts none of its tasks and workers; running tasks go on,
                              and idle workers may leave for another class.  A close with
                              FINISH_ALL waits until RESUME, or for its limit */
    GPUD_CLASS_RESUME = 1, /* ends PAUSE and DRAIN, and forgets its failures */
    GPUD_CLASS_DRAIN = 2,  /* as PAUSE, and its workers leave as with UNLOAD */
    GPUD_CLASS_LOAD = 3,   /* starts a worker if it has none, and forgets its failures; of
                              a resident class */
    GPUD_CLASS_UNLOAD = 4, /* its workers leave, busy ones after their task; a task that
                              waits, and min_workers, start a worker again */
    GPUD_CLASS_PIN = 5,    /* its workers never leave for another class; of a resident
                              class */
    GPUD_CLASS_UNPIN = 6   /* they may leave again */
};

/*
 * Changes the state of one class.
 *
 * The call does not wait until workers have started or left: gpud_dispatcher_classes
 * shows that.  A request that is in effect already changes nothing.
 *
 * Parameters:
 *   d       the dispatcher
 *   name    the name of the class
 *   what    the request, a value of enum gpud_class_what
 *   reterr  receives the reason of a failure, may be NULL
 * Returns: 0.  On failure nothing has changed.
 * Errors:
 *   GPUD_ENODEFINITION  no class of d has this name
 *   GPUD_ECLOSED        the class is being removed
 *   GPUD_EINVAL         d or name is NULL, the request is none of enum gpud_class_what,
 *                       or d is not pooled (field pooled).  Or the request is LOAD or
 *                       PIN, and the class is transient.  Or it is LOAD, UNLOAD, PIN or
 *                       UNPIN, and the class is external
 *   GPUD_EREENTER       d is used in a worker, not in the host
 *   GPUD_EFORKED        d belongs to the parent of this forked process
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_class_add, gpud_dispatcher_classes.
 */
GPUD_API int gpud_dispatcher_class_set(gpud_dispatcher *d, const char *name,
                                       uint32_t what, struct gpud_error *reterr);

/*
 * Removes one class.
 *
 * From now on the class accepts no task.  Its tasks end as gpud_dispatcher_close ends
 * those of a dispatcher with the same how, then its workers leave.  The call does not
 * wait for that.  An event CLASS with change REMOVED reports the end: then
 * gpud_dispatcher_classes has no row for the class, and another class may have its name.
 *
 * A paused class resumes, since its tasks are to end.  A second call may be more hasty
 * than the first one.  A worker that survives SIGKILL does not delay the end.
 *
 * Parameters:
 *   d       the dispatcher
 *   name    the name of the class
 *   how     a value of enum gpud_finish
 *   reterr  receives the reason of a failure, may be NULL
 * Returns: 0.  On failure nothing has changed.
 * Errors:
 *   GPUD_ENODEFINITION  no class of d has this name
 *   GPUD_EINVAL         d or name is NULL, how is none of enum gpud_finish, or d is not
 *                       pooled (field pooled)
 *   GPUD_EREENTER       d is used in a worker, not in the host
 *   GPUD_EFORKED        d belongs to the parent of this forked process
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_class_add, gpud_dispatcher_class_set, gpud_dispatcher_close.
 */
GPUD_API int gpud_dispatcher_class_remove(gpud_dispatcher *d, const char *name,
                                          uint32_t how, struct gpud_error *reterr);

/*
 * The changes of a class that an event CLASS reports.
 *
 * Such events are dropped while too many events wait, and counted in events_dropped.
 * gpud_dispatcher_classes shows the present state.
 */
#define GPUD_CHANGE_MAP(X)                                                               \
    X(NONE, 0, "the event is not about a class")                                         \
    X(LOADED, 1, "its first worker has passed setup")                                    \
    X(UNLOADED, 2, "its last worker is gone")                                            \
    X(FAILED, 3, "it starts no worker any more, until RESUME or LOAD")                   \
    X(PAUSED, 4, "it starts no task any more: PAUSE or DRAIN")                           \
    X(RESUMED, 5, "it is not paused any more, and its failures are forgotten")           \
    X(REMOVED, 6, "it has no task and no worker left, and its name is free")
#define GPUD_X_CHANGE(name, value, text) GPUD_CHANGE_##name = value,
enum gpud_class_change { GPUD_CHANGE_MAP(GPUD_X_CHANGE) GPUD_CHANGE_COUNT = 7 };
#undef GPUD_X_CHANGE

/*
 * Returns the name of a change, such as "LOADED".
 *
 * Returns: a constant string; "?" if change is no value of enum gpud_class_change.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_event_format.
 */
GPUD_API const char *gpud_class_change_name(uint32_t change);

/*
 * The reasons of an event PROMISE.
 *
 * A task that comes first for its devices may have a promise: the time at which the tasks
 * there have ended by their limits, with grace and kill.  Where one of them has no limit
 * there is none, nor beside workers of a transient class, since their memory is free only
 * when they have left.
 *
 * Of a class with workers, only a task of one device has a promise, where a worker of the
 * class is.  A task of an external class may have one with any number of devices; if it
 * needs CPU slots or host_memory, only as the first of all tasks.  Of external work that
 * is granted and not started, setup_limit counts beside its limit, grace and kill_limit.
 *
 * A promise only falls, unless one of these reasons renews it.  ORDER: also when an older
 * task returns, for another attempt or since its grant came back.  DEVICE: one was lost,
 * paused or drained, a reading of it changed, or external work on it was adopted or given
 * up (phase KILL).  Such events are dropped while too many events wait, and counted in
 * events_dropped.
 */
#define GPUD_PROMISE_MAP(X)                                                              \
    X(NONE, 0, "the event is not about a promise")                                       \
    X(FIRST, 1, "the task has its first promise, or a sooner one")                       \
    X(ORDER, 2, "renewed: a task of a higher priority, or an older one, has come")       \
    X(DEVICE, 3, "renewed: a device is out, or has less room, or is free later")         \
    X(CLASS, 4, "renewed: a class was paused or resumed")                                \
    X(WORKERS, 5, "renewed: workers came or went")
#define GPUD_X_PROMISE(name, value, text) GPUD_PROMISE_##name = value,
enum gpud_promise { GPUD_PROMISE_MAP(GPUD_X_PROMISE) GPUD_PROMISE_COUNT = 6 };
#undef GPUD_X_PROMISE

/*
 * Returns the name of the reason of a promise, such as "FIRST".
 *
 * Returns: a constant string; "?" if promise is no value of enum gpud_promise.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_event_format.
 */
GPUD_API const char *gpud_promise_name(uint32_t promise);

/*
 * One class as it is now.
 *
 * Counts of tasks and failures begin when the class is added.  The percentiles are of the
 * last 32 workers or runs, which is what the dispatcher decides by; 0 = there was none.
 */
struct gpud_class_stats {
    uint32_t struct_size; /* set by GPUD_CLASS_STATS_INIT */
    uint32_t paused;      /* 1 from PAUSE or DRAIN until RESUME */
    uint32_t pinned;      /* 1 while its workers never leave for another class */
    uint32_t failed;      /* 1 after too many failures in a row, until RESUME or LOAD */
    uint32_t workers;     /* workers that have passed setup */
    uint32_t starting;    /* workers before the end of setup */
    char name[64];        /* its name */
    char definition[64];  /* the definition that its workers run; "" = the only one of
                             their program */
    uint64_t queued;      /* tasks that wait */
    uint64_t running;     /* tasks at workers, and external ones with devices */
    uint64_t done;        /* tasks that have ended */
    uint64_t failures;    /* workers that failed in setup or died without a task */
    uint64_t oldest_wait; /* ns since the submit of the oldest task that waits for a
                             worker; 0 = none waits */
    uint64_t boot_p10;    /* ns from the start of a worker to the end of its setup */
    uint64_t boot_p50;
    uint64_t boot_p90;
    uint64_t unload_p10;  /* ns in which a worker has left, its memory included */
    uint64_t unload_p50;
    uint64_t unload_p90;
    uint64_t run_p10;     /* ns that a task has run; of tasks that ran one after the other
                             in one worker the mean counts once */
    uint64_t run_p50;
    uint64_t run_p90;
    uint32_t removing;    /* 1 from gpud_dispatcher_class_remove on */
    uint32_t reserved;    /* 0 */
};

#define GPUD_CLASS_STATS_INIT                                                            \
    { (uint32_t)sizeof(struct gpud_class_stats), 0, 0, 0, 0, 0, { 0 }, { 0 }, 0, 0, 0,   \
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/*
 * Takes a snapshot of a dispatcher's classes, one row per class.
 *
 * The rows are in the order in which the classes were added.  rows[0].struct_size is the
 * size of one row for the caller, and rows lie that many bytes apart.  Each filled row
 * has that struct_size, and zeros in fields that this library does not know.
 *
 * Parameters:
 *   d     the dispatcher
 *   rows  room for n rows; may be NULL if n is 0
 *   n     how many rows to fill at most
 * Returns: the number of classes, which may be more than n.
 * Errors:
 *   GPUD_EINVAL    d is NULL or not pooled, or rows is NULL and n is not 0
 *   GPUD_ESTRUCT   rows[0].struct_size does not reach beyond definition, exceeds 4,096,
 *                  or is not a multiple of 8
 *   GPUD_EFORKED   d belongs to the parent of this forked process
 *   GPUD_EREENTER  this process is a worker, and d belongs to the host
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_class_add, gpud_dispatcher_slots.
 */
GPUD_API int gpud_dispatcher_classes(gpud_dispatcher *d, struct gpud_class_stats *rows,
                                     size_t n);

/*
 * The kinds of reasons why a task does not start.
 *
 * Class, task and device in these sentences are class_name, task_id and device of struct
 * gpud_reason.  A later version may have further kinds.
 */
#define GPUD_REASON_MAP(X)                                                               \
    X(NONE, 0, "the row has no reason")                                                  \
    X(PASSED_OVER_BY, 1, "the task comes first")                                         \
    X(MEMORY, 2, "workers hold the memory")                                              \
    X(SHARE, 3, "running tasks have the share of the device")                            \
    X(CPUS, 4, "running tasks have the CPU slots")                                       \
    X(HEAD_HOLDS, 5, "the place is held for the task, which comes first")                \
    X(DRAINED, 6, "the device is drained")                                               \
    X(PAUSED, 7, "the device, or without one the class, is paused")                      \
    X(FAULT, 8, "the device is out of use, or without one the class has failed")         \
    X(FOREIGN, 9, "foreign processes use the device")                                    \
    X(MIN_RESIDENCE, 10, "a worker of the class stays for its min_residence")            \
    X(MAX_WAIT, 11, "a worker of the class has work, and leaves after max_wait")         \
    X(PINNED, 12, "a worker of the class stays: it is pinned, or one of min_workers")    \
    X(SEATS, 13, "max_workers of the class, or of the dispatcher, are there")            \
    X(BOOTING, 14, "a worker of the class starts")                                       \
    X(UNLOADING, 15, "a worker of the class leaves")                                     \
    X(BUSY, 16, "workers of the class have other tasks, or cannot run it")           \
    X(OCCUPIED, 17, "workers of the class have the place, and stay")                     \
    X(NEVER, 18, "the device, or without one the dispatcher, could never hold it")       \
    X(RETRY, 19, "the task waits for its next attempt")
#define GPUD_X_REASON(name, value, text) GPUD_REASON_##name = value,
enum gpud_reason_kind { GPUD_REASON_MAP(GPUD_X_REASON) GPUD_REASON_COUNT = 20 };
#undef GPUD_X_REASON

/*
 * Returns the name of a kind of reason, such as "MEMORY".
 *
 * Returns: a constant string; "?" if kind is no value of enum gpud_reason_kind.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_reason_format.
 */
GPUD_API const char *gpud_reason_name(uint32_t kind);

/* The unit in which have and need of a reason count. */
enum gpud_unit {
    GPUD_UNIT_NONE = 0,    /* both are 0 */
    GPUD_UNIT_BYTES = 1,   /* bytes, of the device or of the machine */
    GPUD_UNIT_SHARE = 2,   /* 1/10,000 of the device */
    GPUD_UNIT_CPUS = 3,    /* CPU slots */
    GPUD_UNIT_WORKERS = 4, /* workers */
    GPUD_UNIT_DEVICES = 5, /* devices */
    GPUD_UNIT_COMPUTE = 6  /* compute capability, as in gpud_request.compute */
};

/* One reason why a task does not start. */
struct gpud_reason {
    uint32_t struct_size; /* set by GPUD_REASON_INIT */
    uint32_t kind;        /* enum gpud_reason_kind */
    uint32_t variant;     /* the way to run that is meant: 0 is the preferred one of the
                             needs, 1 its next, and so on */
    uint32_t unit;        /* enum gpud_unit: of have and need */
    char device[32];      /* its name; "" = the machine, or the class */
    char class_name[64];  /* the class in the way, or that of task_id; "" = none, and of
                             SEATS the whole dispatcher */
    uint64_t task_id;     /* the task in the way; 0 = none, or one that is not known */
    uint64_t have;        /* the amount that is free, or there; of FOREIGN, the use by
                             foreign processes */
    uint64_t need;        /* the amount that the task needs; of FOREIGN, the most that
                             foreign processes may use beside it */
    uint64_t until;       /* when the reason is expected to end: ns of CLOCK_MONOTONIC, by
                             limits and by medians; it may be over.  0 = unknown */
    uint32_t pid;         /* of FOREIGN: the foreign process with most memory on the
                             device; 0 = unknown */
    uint32_t reserved;    /* 0 */
};

/* The initial value of a struct gpud_reason: no reason. */
#define GPUD_REASON_INIT                                                                 \
    { (uint32_t)sizeof(struct gpud_reason), 0, 0, 0, { 0 }, { 0 }, 0, 0, 0, 0, 0, 0 }

/*
 * Explains why a task does not start.
 *
 * The task is one that waits, or one that is not submitted: then the answer is for a
 * submit now.  The call changes nothing, and submits nothing.
 *
 * Each way to start has a reason, and each variant on a device, or worker of the class,
 * is a way.  The first row has the reason that may end first.  Of tasks alike in class,
 * priority and request, each has PASSED_OVER_BY the first of them, and then the reasons
 * of that one.
 *
 * No row means that nothing is in the way.  The task runs, or starts at once; a task that
 * is not submitted would start at once.  A task that was sent ahead to a worker has a row
 * BUSY while the worker has another task to end first.
 *
 * rows[0].struct_size is the size of one row for the caller, and rows lie that many bytes
 * apart.  Each filled row has that struct_size, and zeros in fields that this library
 * does not know.
 *
 * Parameters:
 *   d        the dispatcher, which is pooled
 *   task_id  the id of a task that has not ended; 0 if task is not NULL
 *   task     a task that is not submitted, with the values of a submit; NULL if task_id
 *            is not 0
 *   rows     room for n rows; may be NULL if n is 0
 *   n        how many rows to fill at most
 *   ret_n    receives the number of reasons, which may be more than n
 *   reterr   receives the reason of a failure, may be NULL
 * Returns: 0, rows and *ret_n.  On failure nothing has changed.
 * Errors:
 *   GPUD_EINVAL         d or ret_n is NULL, or rows is NULL and n is not 0.  Or task_id
 *                       is not 0 and task is not NULL, or neither names a task.  Or d is
 *                       not pooled (field pooled).  Or a field of task is one that
 *                       gpud_dispatcher_submit refuses
 *   GPUD_ENOTFOUND      no task with task_id is queued, sent or running
 *   GPUD_ENODEFINITION  d has no class with the name in task.class_name
 *   GPUD_ECLOSED        intake of d has ended, or the class of task is being removed
 *   GPUD_EDEVICE        no device of d, or not the machine, could ever hold task.request,
 *                       or it names a device that d does not have
 *   GPUD_ELABEL         task.label has more than 63 bytes
 *   GPUD_ESTRUCT        task.struct_size is not a valid size.  Or rows[0].struct_size
 *                       does not reach beyond class_name, exceeds 4,096, or is not a
 *                       multiple of 8
 *   GPUD_EVERSION       task is of a later version and uses a field that this library
 *                       does not know
 *   GPUD_ETOOBIG        task.size is more than payload_budget can ever hold for task data
 *   GPUD_EREENTER       this process is a worker, and d belongs to the host
 *   GPUD_EFORKED        d belongs to the parent of this forked process
 *   GPUD_ENOMEM         no memory for the reasons
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_reason_format, gpud_dispatcher_check, gpud_dispatcher_classes.
 */
GPUD_API int gpud_dispatcher_explain(gpud_dispatcher *d, uint64_t task_id,
                                     const struct gpud_task_desc *task,
                                     struct gpud_reason *rows, size_t n, size_t *ret_n,
                                     struct gpud_error *reterr);

/*
 * Writes a reason as one line of text, for people.
 *
 *     MEMORY on fake:0, has 4096 MiB, needs 8192 MiB, task 17 of class whisper, until in
 *     12 s: workers hold the memory
 *     PASSED_OVER_BY, task 17 of class whisper: the task comes first
 *     SEATS: max_workers 3 of class whisper is reached
 *
 * The line has the time that is left, and the user and command of a foreign process, so
 * a later call may write another length.  It has no line end, and is cut as one of
 * gpud_event_format.  Records of older headers are accepted.
 *
 * Parameters:
 *   reason  the reason
 *   buffer  receives the line and a 0 byte, as from snprintf; may be NULL if size is 0
 *   size    bytes of buffer, the 0 byte included; 0 only measures
 * Returns: the length of the whole line in bytes, without the 0 byte.
 * Errors:
 *   GPUD_EINVAL   reason is NULL, or buffer is NULL and size is not 0
 *   GPUD_ESTRUCT  reason->struct_size does not reach beyond class_name, exceeds 4,096, or
 *                 is not a multiple of 8
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_dispatcher_explain, gpud_reason_name.
 */
GPUD_API int gpud_reason_format(const struct gpud_reason *reason, char *buffer,
                                size_t size);

/*
 * Checks whether a submit would accept a task, and takes nothing.
 *
 * It makes the checks of gpud_dispatcher_submit with wait 0, and one more: whether any
 * device could ever hold a worker of the class, for a task without a request.  A submit
 * accepts such a task, which ends NO_WORKER.  It does not look for room in payload_budget
 * or in the memory of the machine: a submit may still fail with GPUD_EFULL for that.
 *
 * Parameters:
 *   d       the dispatcher, pooled or not
 *   task    the task
 *   reterr  receives field, value and bound of a failure, may be NULL
 * Returns: 0 if a submit would accept task now.
 * Errors:
 *   GPUD_EFULL          queue_size tasks are accepted and not delivered.  Or task.request
 *                       is the 1,025th different one, with its class and priority, of
 *                       tasks that have not ended
 *   GPUD_ECLOSED        intake of d has ended, or the class of task is being removed
 *   GPUD_EINVAL         d or task is NULL, or a field of task is one that
 *                       gpud_dispatcher_submit refuses
 *   GPUD_EDEVICE        no device that is present, drained and broken ones included,
 *                       could ever hold task.request, or a worker of the class of task:
 *                       the text has the numbers.  Or the request names a device that d
 *                       does not have
 *   GPUD_ELABEL         task.label has more than 63 bytes
 *   GPUD_ENODEFINITION  d is pooled and has no class with the name in task.class_name
 *   GPUD_ESTRUCT        task.struct_size is not a valid size
 *   GPUD_EVERSION       task is of a later version and uses a field that this library
 *                       does not know
 *   GPUD_ETOOBIG        task.size is more than payload_budget can ever hold for task data
 *   GPUD_EREENTER       this process is a worker, and d belongs to the host
 *   GPUD_EFORKED        d belongs to the parent of this forked process
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_submit, gpud_dispatcher_explain.
 */
GPUD_API int gpud_dispatcher_check(gpud_dispatcher *d, const struct gpud_task_desc *task,
                                   struct gpud_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
