/* SPDX-License-Identifier: MIT */
/*
 * stats.h - what a progress display asks: counters, slot rows, throughput, time left.
 *
 * A snapshot costs a lock of some microseconds, wakes nobody, and may be taken from any
 * thread at any rate.  Counters are described by a table that can be walked, so JSON, Python
 * and dashboards need no code per counter.
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

/* X(name, unit, kind, help): the one list.  kind: COUNTER only rises, GAUGE goes up and down. */
#define GPUD_STATS_MAP(X)                                                                        \
    X(accepted, "tasks", COUNTER, "tasks accepted by submit, or pulled by run so far")            \
    X(delivered, "tasks", COUNTER, "outcomes fetched by poll, run or wait; in a callback of run ahead of it") \
    X(success, "tasks", COUNTER, "tasks that ended SUCCESS")                                     \
    X(error, "tasks", COUNTER, "tasks that ended ERROR")                                         \
    X(timeout, "tasks", COUNTER, "tasks that ended TIMEOUT")                                     \
    X(crashed, "tasks", COUNTER, "tasks that ended CRASHED")                                     \
    X(cancelled, "tasks", COUNTER, "tasks that ended CANCELLED")                                 \
    X(no_worker, "tasks", COUNTER, "tasks that ended NO_WORKER")                                 \
    X(retried, "attempts", COUNTER, "attempts that ended badly and are followed by another")      \
    X(recalled, "tasks", COUNTER, "tasks taken back from behind a long one or from a stopped worker")  \
    X(returned, "tasks", COUNTER, "tasks that went back to the queue when their worker died or left")  \
    X(restarts, "workers", COUNTER, "workers started in place of another")                       \
    X(deaths, "workers", COUNTER, "workers that ended without being told to")                    \
    X(hard_kills, "workers", COUNTER, "workers killed at limit and grace, or at stop_limit")     \
    X(setup_failures, "workers", COUNTER, "setups that failed, died or passed their limit")      \
    X(cleanup_failures, "workers", COUNTER, "cleanups that died or passed their limit")          \
    X(protocol_errors, "workers", COUNTER, "workers retired for a bad frame or word")            \
    X(late_dropped, "frames", COUNTER, "frames or ends of former lives that were dropped")       \
    X(events_dropped, "events", COUNTER, "events other than outcomes, dropped: nobody polled")    \
    X(queued, "tasks", GAUGE, "tasks waiting for a worker")                                      \
    X(sent, "tasks", GAUGE, "tasks at a worker, the running ones included")                      \
    X(undelivered, "events", GAUGE, "events waiting to be collected")                            \
    X(slots, "slots", GAUGE, "slots of the dispatcher")                                          \
    X(slots_ready, "slots", GAUGE, "slots whose worker takes tasks")                             \
    X(slots_failed, "slots", GAUGE, "slots given up or quarantined")                             \
    X(payload_budget, "bytes", GAUGE, "shared memory that may be used")                          \
    X(payload_used, "bytes", GAUGE, "shared memory held by queued tasks and buffers")            \
    X(result_used, "bytes", GAUGE, "shared memory held by undelivered large results")            \
    X(queue_wait_p50, "ns", GAUGE, "median time from accepted to started")                       \
    X(queue_wait_p99, "ns", GAUGE, "99th percentile of the same")                                \
    X(run_p50, "ns", GAUGE, "median time inside process")                                        \
    X(run_p99, "ns", GAUGE, "99th percentile of the same")                                       \
    X(overhead_p50, "ns", GAUGE, "median time from ended to seen by the host")                   \
    X(overhead_p99, "ns", GAUGE, "99th percentile of the same")                                  \
    X(deferred, "tasks", GAUGE, "tasks that wait out the time before their next attempt; queued too") \
    X(kept, "events", GAUGE, "events that the host keeps and has not released") \
    X(batches, "calls", COUNTER, "calls of process_batch that returned")                        \
    X(device_faults, "faults", COUNTER, "faults of devices for which workers were killed or drained") \
    X(xids, "faults", COUNTER, "faults that drivers have reported, those of our own kills left out") \
    X(cuda_faults, "workers", COUNTER, "workers replaced for a CUDA error that stays")           \
    X(canaries, "workers", COUNTER, "workers that had to pass a canary")                         \
    X(canary_failures, "workers", COUNTER, "of these, those that did not")                       \
    X(memory_waits, "starts", COUNTER, "starts that waited for a device's memory to come back")  \
    X(memory_late, "starts", COUNTER, "of these, those that went on without it")                 \
    X(monitor_deaths, "processes", COUNTER, "monitor processes that have died")                  \
    X(devices, "devices", GAUGE, "devices of the dispatcher")                                    \
    X(devices_healthy, "devices", GAUGE, "devices of which nothing speaks against them")         \
    X(devices_out, "devices", GAUGE, "devices that are quarantined, lost or revoked") \
    X(output_reads, "calls", COUNTER, "reads of workers' stdout and stderr")                     \
    X(output_polls, "calls", COUNTER, "polls of them, before ends of tasks were taken")

enum gpud_stats_kind { GPUD_STATS_COUNTER = 0, GPUD_STATS_GAUGE = 1 };

struct gpud_stats {
    uint32_t struct_size;
    uint32_t slot_count;
    uint64_t taken_at;        /* time of the snapshot */
    uint64_t first_start;     /* when the first task started, 0 = none has */
    double throughput;        /* tasks that ended at a worker, per second since first_start */
    uint64_t eta_low;         /* expected time until all accepted tasks have ended, in nanoseconds, */
    uint64_t eta_high;        /* as a range; GPUD_NEVER = unknown.  Setup does not count as slowness */
#define GPUD_STATS_X(name, unit, kind, help) uint64_t name;
    GPUD_STATS_MAP(GPUD_STATS_X)
#undef GPUD_STATS_X
};

#define GPUD_STATS_ZERO(name, unit, kind, help) 0,
#define GPUD_STATS_INIT \
    { (uint32_t)sizeof(struct gpud_stats), 0, 0, 0, 0, 0, 0, GPUD_STATS_MAP(GPUD_STATS_ZERO) }

/* One slot as it is now. */
struct gpud_slot_stats {
    uint32_t struct_size;
    uint32_t slot;
    uint32_t state;          /* enum gpud_slot_state */
    uint32_t incarnation;
    int64_t pid;             /* of the worker, 0 = none */
    uint64_t since;          /* when this state was entered */
    uint64_t task_id;        /* running now, 0 = none */
    uint64_t task_started;   /* when it started */
    double progress;         /* as it reported */
    uint64_t last_duration;  /* of the last ended task */
    uint64_t setup_time;     /* of this worker, 0 = not ready yet */
    uint64_t work_time;      /* inside process, all lives */
    uint64_t wait_time;      /* ready without a task, all lives */
    uint64_t outcomes[8];    /* by enum gpud_outcome */
    uint32_t restarts;
    uint32_t sent;           /* tasks there now */
    char device[32];         /* the first of its devices */
    char label[64];          /* of the running task */
    char progress_text[96];
    uint32_t device_count;   /* option devices_per_worker */
    uint32_t reserved;
    char devices[512];       /* all of them, comma-separated */
};

#define GPUD_SLOT_STATS_INIT \
    { (uint32_t)sizeof(struct gpud_slot_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 }, 0, 0, { 0 }, { 0 }, { 0 }, 0, 0, { 0 } }

/* What one counter means. */
struct gpud_stats_info {
    uint32_t struct_size;
    uint32_t kind;           /* enum gpud_stats_kind */
    const char *name;
    const char *unit;
    const char *help;
};

#define GPUD_STATS_INFO_INIT { (uint32_t)sizeof(struct gpud_stats_info), 0, 0, 0, 0 }

/*
 * Takes a snapshot.  Fills min(struct_size, size known here) bytes.
 * Returns: 0; GPUD_EINVAL, GPUD_EFORKED: nothing has changed.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_stats(gpud_dispatcher *d, struct gpud_stats *stats);

/*
 * Takes the rows of all slots, up to n; rows[0].struct_size says how long one is; each row filled
 * says the same, and holds zeros where the library that runs knows no field.
 * Returns: the number of slots there are (maybe more than n); GPUD_EINVAL, GPUD_EFORKED.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_slots(gpud_dispatcher *d, struct gpud_slot_stats *rows, size_t n);

/*
 * Describes counter number `index`.  Fills min(struct_size, size known here) bytes of constant texts.
 * Returns: 0; GPUD_ENOTFOUND past the last, GPUD_EINVAL (struct_size not set).  Thread: any.
 */
GPUD_API int gpud_stats_info(size_t index, struct gpud_stats_info *ret_info);

/* Gives the value of counter number `index` in a snapshot, 0 past the last.  Thread: any. */
GPUD_API uint64_t gpud_stats_value(const struct gpud_stats *stats, size_t index);

#ifdef __cplusplus
}
#endif
#endif
