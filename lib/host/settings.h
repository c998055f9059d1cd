/* SPDX-License-Identifier: MIT */
/* settings.h - the options of a dispatcher with every default filled in.  Times are in ns. */
#ifndef GPI_HOST_SETTINGS_H
#define GPI_HOST_SETTINGS_H

#include <stdint.h>

#include "device/health.h"
#include "sched/restart.h"
#include "sched/retry.h"

struct gpi_settings {
    uint32_t drive, queue_size, sent_ahead, max_attempts, log_level, slot_events;
    uint32_t setup_concurrency, devices_per_worker;
    uint32_t start_events; /* 1 = each start of an attempt is an event */
    uint32_t definition;   /* index of the definition */
    uint64_t payload_budget, seed;
    uint64_t setup_limit, task_limit, grace, cleanup_limit, close_limit, kill_limit, kill_limit_gpu;
    struct gpi_restart_policy restart;
    uint32_t retry_causes;
    struct gpi_retry_policy retry;
    uint64_t expires, stall_limit, stop_limit;
    uint32_t max_batch, least_ahead; /* tasks per call; if > 1, tasks at a worker at least */
    uint64_t batch_wait;
    uint64_t result_wait;          /* longest wait for room; 0 = no wait */
    uint32_t max_tasks_per_worker; /* 0 = no limit */
    uint32_t cuda; /* bits of enum gpud_cuda */
    uint32_t visible; /* enum gpud_visible */
    uint64_t memory_wait;
    struct gpi_health_policy health;
    uint64_t input_size, result_size; /* bytes of the arenas */
};

#endif
