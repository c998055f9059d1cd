/* SPDX-License-Identifier: MIT */
/*
 * retry.h - whether an attempt that ended badly is followed by another, and after how long.    [C3]
 */
#ifndef GPI_SCHED_RETRY_H
#define GPI_SCHED_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#define GPI_RETRY_ALL 15u /* every bit of enum gpud_retry */

struct gpi_retry_policy {
    uint64_t backoff, cap; /* ns; 0 = no wait */
};

/* Whether a task may be started once more after its attempt number `attempts` ended with this
 * outcome; `causes` are bits of enum gpud_retry. */
bool gpi_retry_allowed(uint32_t causes, uint32_t outcome, uint32_t attempts, uint32_t max_attempts);

/* The same for one that the device failed under: that is no crash of the task's. */
bool gpi_retry_after_device(uint32_t causes, uint32_t attempts, uint32_t max_attempts);

/* How long after the end of attempt number `attempts` the next one may begin. */
uint64_t gpi_retry_wait(const struct gpi_retry_policy *p, uint32_t attempts);

#endif
