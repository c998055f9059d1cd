/* SPDX-License-Identifier: MIT */
/*
 * stats.h - numbers for a progress display: counters, slot rows, throughput, time left.
 *
 * A snapshot holds a lock for some microseconds and wakes no process.  Any thread may
 * make one at any rate.  A table describes the counters, so JSON, Python and dashboards
 * need no code per counter.
 *
 *     struct gpud_stats s = GPUD_STATS_INIT;
 *     gpud_dispatcher_stats(d, &s);
 *     struct gpud_stats_info info = GPUD_STATS_INFO_INIT;
 *     for (size_t i = 0; gpud_stats_info(i, &info) == 0; i++)
 *         printf("%s %llu\n", info.name, (unsigned long long)gpud_stats_value(&s, i));
 *
 * Stability: stable (appending only).
 */
#ifndef GPUDISPATCH_STATS_H
#define GPUDISPATCH_STATS_H

#include "error.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The one list of counters, as X(name, unit, kind, help).
 *
 * A COUNTER only rises; a GAUGE rises and falls.
 */
#define GPUD_STATS_MAP(X)                                                                \
    X(accepted, "tasks", COUNTER, "tasks that submit accepted, or run pulled so far")    \
    X(delivered, "tasks", COUNTER,                                                       \
      "outcomes that poll, run or wait fetched; run fetches several, then calls back")   \
    X(success, "tasks", COUNTER, "tasks that ended SUCCESS")                             \
    X(error, "tasks", COUNTER, "tasks that ended ERROR")                                 \
    X(timeout, "tasks", COUNTER, "tasks that ended TIMEOUT")                             \
    X(crashed, "tasks", COUNTER, "tasks that ended CRASHED")                             \
    X(cancelled, "tasks", COUNTER, "tasks that ended CANCELLED")                         \
    X(no_worker, "tasks", COUNTER, "tasks that ended NO_WORKER")                         \
    X(retried, "attempts", COUNTER, "failed attempts that are followed by another one")  \
    X(recalled, "tasks", COUNTER,                                                        \
      "tasks taken back from behind a long one or from a stopped worker")                \
    X(returned, "tasks", COUNTER,                                                        \
      "tasks that went back to the queue when their worker died or left")                \
    X(restarts, "workers", COUNTER, "workers started in place of another one")           \
    X(deaths, "workers", COUNTER, "workers that ended without an order of the host")     \
    X(hard_kills, "workers", COUNTER,                                                    \
      "workers killed at limit and grace, or at stop_limit")                             \
    X(setup_failures, "workers", COUNTER,                                                \
      "setups that failed, died or exceeded their limit")                                \
    X(cleanup_failures, "workers", COUNTER,                                              \
      "cleanups that died or exceeded their limit")                                      \
    X(protocol_errors, "workers", COUNTER, "workers retired for a bad frame or word")    \
    X(late_dropped, "frames", COUNTER,                                                   \
      "frames or ends that the host dropped, since they belong to former workers")       \
    X(events_dropped, "events", COUNTER,                                                 \
      "events but outcomes, and log lines, dropped as too many were unread")             \
    X(queued, "tasks", GAUGE, "tasks that wait for a worker")                            \
    X(sent, "tasks", GAUGE, "tasks at a worker, including the running ones")             \
    X(undelivered, "events", GAUGE, "events that wait for poll or run")                  \
    X(slots, "slots", GAUGE, "slots of the dispatcher")                                  \
    X(slots_ready, "slots", GAUGE, "slots whose worker takes tasks")                     \
    X(slots_failed, "slots", GAUGE, "slots given up or quarantined")                     \
    X(payload_budget, "bytes", GAUGE, "shared memory that may be used")                  \
    X(payload_used, "bytes", GAUGE,                                                      \
      "shared memory held by data of tasks and by buffers")                              \
    X(result_used, "bytes", GAUGE,                                                       \
      "shared memory held by large results: undelivered, lent or kept")                  \
    X(queue_wait_p50, "ns", GAUGE, "median time from accepted to started")               \
    X(queue_wait_p99, "ns", GAUGE,                                                       \
      "99th percentile of the time from accepted to started")                            \
    X(run_p50, "ns", GAUGE, "median time inside process")                                \
    X(run_p99, "ns", GAUGE, "99th percentile of the time inside process")                \
    X(overhead_p50, "ns", GAUGE, "median time from ended to noticed by the host")        \
    X(overhead_p99, "ns", GAUGE, "99th percentile of the time from ended to noticed")    \
    X(deferred, "tasks", GAUGE,                                                          \
      "tasks that wait for their next attempt (retry_backoff); also in queued")          \
    X(kept, "events", GAUGE, "events that the host keeps and has not released")          \
    X(batches, "calls", COUNTER, "calls of process_batch that returned")                 \
    X(device_faults, "faults", COUNTER,                                                  \
      "faults of devices for which workers were killed or drained")                      \
    X(xids, "faults", COUNTER,                                                           \
      "faults that drivers reported, without those of the library's own kills")          \
    X(cuda_faults, "workers", COUNTER, "workers replaced for a CUDA error that stays")   \
    X(canaries, "workers", COUNTER, "workers that had to pass a canary")                 \
    X(canary_failures, "workers", COUNTER, "workers that failed their canary")           \
    X(memory_waits, "starts", COUNTER,                                                   \
      "starts that waited until a device's memory was free again")                       \
    X(memory_late, "starts", COUNTER, "starts whose wait for memory hit memory_wait")    \
    X(monitor_deaths, "processes", COUNTER, "monitor processes that died")               \
    X(devices, "devices", GAUGE, "devices of the dispatcher")                            \
    X(devices_healthy, "devices", GAUGE, "devices without a known fault (HEALTHY)")      \
    X(devices_out, "devices", GAUGE, "devices that are quarantined, lost or revoked")    \
    X(output_reads, "calls", COUNTER, "reads of workers' stdout and stderr")             \
    X(output_polls, "calls", COUNTER,                                                    \
      "polls of workers' stdout and stderr before the host took ends of tasks")          \
    X(idle_with_work, "ns", COUNTER,                                                     \
      "time with a free worker or device and a task that could start there: 0 [S7]")

/* The kinds of counters. */
enum gpud_stats_kind {
    GPUD_STATS_COUNTER = 0, /* only rises */
    GPUD_STATS_GAUGE = 1    /* rises and falls */
};

/*
 * A snapshot of a dispatcher's counters.
 *
 * Times are nanoseconds, points in time are of CLOCK_MONOTONIC.  The fields after
 * eta_high are one uint64_t for each row of GPUD_STATS_MAP.
 */
struct gpud_stats {
    uint32_t struct_size; /* set by GPUD_STATS_INIT */
    uint32_t slot_count;  /* rows of gpud_dispatcher_slots, removed slots included */
    uint64_t taken_at;    /* when the snapshot was made */
    uint64_t first_start; /* when the first task started, 0 = none has */
    double throughput;    /* tasks that ended at a worker, per second since first_start */
    /*
     * The expected time until all accepted tasks have ended: the low end of a range.
     * GPUD_NEVER: unknown.  The time of setup does not count as slowness.
     */
    uint64_t eta_low;
    uint64_t eta_high;    /* the high end of that range; GPUD_NEVER: unknown */
#define GPUD_STATS_X(name, unit, kind, help) uint64_t name;
    GPUD_STATS_MAP(GPUD_STATS_X)
#undef GPUD_STATS_X
};

#define GPUD_STATS_ZERO(name, unit, kind, help) 0,
#define GPUD_STATS_INIT                                                                  \
    { (uint32_t)sizeof(struct gpud_stats), 0, 0, 0, 0, 0, 0,                             \
      GPUD_STATS_MAP(GPUD_STATS_ZERO) }

/*
 * One slot as it is now.
 *
 * Times are nanoseconds, points in time are of CLOCK_MONOTONIC.
 */
struct gpud_slot_stats {
    uint32_t struct_size;    /* set by GPUD_SLOT_STATS_INIT */
    uint32_t slot;           /* its number, from 0 */
    uint32_t state;          /* enum gpud_slot_state */
    uint32_t incarnation;    /* which worker of the slot this is, from 1; 0 = none yet */
    int64_t pid;             /* of the worker, 0 = none */
    uint64_t since;          /* when the slot entered this state */
    uint64_t task_id;        /* the task that runs now, 0 = none */
    uint64_t task_started;   /* when that task started */
    double progress;         /* 0..1, as that task reported it */
    uint64_t last_duration;  /* how long the last ended task ran */
    uint64_t setup_time;     /* how long this worker's setup took, 0 = not ready yet */
    uint64_t work_time;      /* time inside process, of all workers of the slot */
    uint64_t wait_time;      /* time ready without a task, of all workers of the slot */
    uint64_t outcomes[8];    /* tasks of the slot that ended so, by enum gpud_outcome */
    uint32_t restarts;       /* workers started in place of another one */
    uint32_t sent;           /* tasks at the worker now */
    char device[32];         /* name of the first of its devices */
    char label[64];          /* of the running task */
    char progress_text[96];  /* of the running task */
    uint32_t device_count;   /* devices of the slot (option devices_per_worker) */
    uint32_t reserved;       /* 0 */
    char devices[512];       /* names of all its devices, comma-separated */
    char class_name[64];     /* pooled: class of its worker, or of its last; "" = none */
    /*
     * When the slot is expected to take its next task.  A time that is not in the future:
     * it is ready now.  0: unknown.  By state:
     * READY      since
     * BUSY       the start of the running task + the median run time
     * STARTING   the start of the worker (pooled: since) + the usual time of a boot
     * UNLOADING  since + the median time to unload; then another worker may start
     * COOLING    the end of memory_wait; another worker may start then, or before
     * BACKOFF    the time of the next start + the usual time of a boot, if that is known
     * DRAINING   pooled: as BUSY, + the median time to unload; else 0
     * If such a time is unknown or over, the end of a limit takes its place: of BUSY and
     * DRAINING that of the running task, of STARTING and UNLOADING that of setup and
     * cleanup.  It is 0 if that is unlimited or over, too.
     *
     * It is also 0 while the host kills the worker, while only canaries or an act from
     * outside can bring the device back, if a device of the slot is paused or drains, and
     * if the class of a READY slot is paused.
     *
     * Pooled: medians are run_p50, boot_p50 and unload_p50 of the class
     * (gpud_dispatcher_classes), and its seeds before the first ones.  Not pooled: the
     * median is run_p50 of struct gpud_stats, and the usual time of a boot is that of the
     * last one that passed setup, in any slot.
     */
    uint64_t ready_at;
};

#define GPUD_SLOT_STATS_INIT                                                             \
    { (uint32_t)sizeof(struct gpud_slot_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,      \
      { 0 }, 0, 0, { 0 }, { 0 }, { 0 }, 0, 0, { 0 }, { 0 }, 0 }

/* The description of one counter. */
struct gpud_stats_info {
    uint32_t struct_size; /* set by GPUD_STATS_INFO_INIT */
    uint32_t kind;        /* enum gpud_stats_kind */
    const char *name;     /* as in GPUD_STATS_MAP; constant, like unit and help */
    const char *unit;     /* such as "tasks", "bytes" or "ns" */
    const char *help;     /* the meaning in one line */
};

#define GPUD_STATS_INFO_INIT { (uint32_t)sizeof(struct gpud_stats_info), 0, 0, 0, 0 }

/*
 * Takes a snapshot of a dispatcher's counters.
 *
 * The call fills as many bytes as both know: the smaller of stats->struct_size and the
 * size in this library.
 *
 * Parameters:
 *   d      the dispatcher
 *   stats  the record to fill, its struct_size set
 * Returns: 0.  On failure stats is unchanged.
 * Errors:
 *   GPUD_EINVAL    d or stats is NULL
 *   GPUD_ESTRUCT   stats->struct_size does not reach beyond eta_high
 *   GPUD_EFORKED   d belongs to the parent of this forked process
 *   GPUD_EREENTER  this process is a worker, and d belongs to the host
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_stats_value, gpud_dispatcher_slots.
 * Example: examples/progress.c
 */
GPUD_API int gpud_dispatcher_stats(gpud_dispatcher *d, struct gpud_stats *stats);

/*
 * Takes a snapshot of a dispatcher's slots, one row per slot.
 *
 * rows[0].struct_size is the size of one row for the caller, and rows lie that many bytes
 * apart.  Each filled row has that struct_size, and zeros in fields that this library
 * does not know.
 *
 * Parameters:
 *   d     the dispatcher
 *   rows  room for n rows; may be NULL if n is 0
 *   n     how many rows to fill at most
 * Returns: the number of slots, which may be more than n.
 * Errors:
 *   GPUD_EINVAL    d is NULL, or rows is NULL and n is not 0
 *   GPUD_ESTRUCT   rows[0].struct_size does not reach beyond since, exceeds 4,096, or is
 *                  not a multiple of 8
 *   GPUD_EFORKED   d belongs to the parent of this forked process
 *   GPUD_EREENTER  this process is a worker, and d belongs to the host
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_stats, gpud_slot_state_name.
 * Example: examples/progress.c
 */
GPUD_API int gpud_dispatcher_slots(gpud_dispatcher *d, struct gpud_slot_stats *rows,
                                   size_t n);

/*
 * Describes one counter: its name, unit, kind and meaning.
 *
 * The call fills as many bytes as both know: the smaller of ret_info->struct_size and the
 * size in this library.
 *
 * Parameters:
 *   index     the number of the counter, from 0, in the order of GPUD_STATS_MAP
 *   ret_info  the record to fill, its struct_size set; its strings are constant
 * Returns: 0.  On failure ret_info is unchanged.
 * Errors:
 *   GPUD_ENOTFOUND  index is past the last counter
 *   GPUD_EINVAL     ret_info is NULL
 *   GPUD_ESTRUCT    ret_info->struct_size does not reach beyond name
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_stats_value.
 * Example: examples/transcribe/report.c
 */
GPUD_API int gpud_stats_info(size_t index, struct gpud_stats_info *ret_info);

/*
 * Returns the value of one counter in a snapshot.
 *
 * Returns: the value of counter number index, from 0, in stats.  It is 0 if index is past
 * the last counter, if stats is NULL, or if stats->struct_size does not reach that
 * counter.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_stats_info, gpud_dispatcher_stats.
 * Example: examples/transcribe/report.c
 */
GPUD_API uint64_t gpud_stats_value(const struct gpud_stats *stats, size_t index);

#ifdef __cplusplus
}
#endif
#endif
