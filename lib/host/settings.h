/* SPDX-License-Identifier: MIT */
/*
 * settings.h - the options of a dispatcher with every default filled in.  Times are in ns.
 *
 * Some options hold for the whole dispatcher, the rest for one class of it: api/option_kinds.h.
 */
#ifndef GPI_HOST_SETTINGS_H
#define GPI_HOST_SETTINGS_H

#include <stdint.h>

#include "device/health.h"
#include "sched/restart.h"
#include "sched/retry.h"
#include "sched/sched.h"

/* For the dispatcher: its tasks, its memory, its devices and its end. */
struct gpi_pool_set {
    uint32_t drive, queue_size, log_level, slot_events, setup_concurrency;
    uint64_t payload_budget;
    uint64_t input_size, result_size; /* bytes of the arenas */
    uint64_t close_limit, kill_limit, kill_limit_gpu, memory_wait;
    struct gpi_health_policy health;
    /* Of a pooled dispatcher */
    uint32_t pooled, max_workers; /* max_workers: 0 = by the devices */
    uint32_t mode, passing;       /* enum gpi_mode, enum gpi_passing */
    uint32_t cpus, headroom, foreign_load; /* headroom, foreign_load: 1/10000; load 0: off */
    uint64_t host_memory, foreign_memory;
};

/* The seats of a pooled dispatcher: one is for the canary of a device that is out of use. */
static inline uint32_t gpi_seats(const struct gpi_pool_set *s)
{
    return s->max_workers + GPI_SPARE_SEATS;
}

#define GPI_LEAST_HEADROOM (512ull << 20) /* bytes of a device */

/* Returns the bytes of a device with this memory that no worker has. */
static inline uint64_t gpi_headroom_of(const struct gpi_pool_set *s, uint64_t memory)
{
    const uint64_t part = memory / 10000 * s->headroom;
    const uint64_t room = part > GPI_LEAST_HEADROOM ? part : GPI_LEAST_HEADROOM;

    return room < memory ? room : memory;
}

/* For a class: its workers, and its tasks where they have no values of their own. */
struct gpi_class_set {
    uint32_t definition; /* index of the definition */
    uint32_t devices_per_worker;
    uint32_t cuda;         /* bits of enum gpud_cuda */
    uint32_t visible;      /* enum gpud_visible */
    uint32_t start_events; /* 1 = each start of an attempt is an event */
    uint32_t sent_ahead;
    uint32_t max_batch;            /* tasks per call */
    uint32_t max_tasks_per_worker; /* 0 = no limit */
    uint32_t max_attempts, retry_causes;
    uint64_t batch_wait;
    uint64_t result_wait; /* longest wait for room; 0 = no wait */
    uint64_t seed;
    uint64_t setup_limit, task_limit, grace, cleanup_limit, stop_limit;
    uint64_t expires, stall_limit;
    struct gpi_restart_policy restart;
    struct gpi_retry_policy retry;
};

struct gpi_settings {
    struct gpi_pool_set pool;
    struct gpi_class_set class;
};

#endif
