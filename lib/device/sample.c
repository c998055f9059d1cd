/* SPDX-License-Identifier: MIT */
#include "device/device.h"

#include <stdbool.h>

void gpi_sample_unknown(struct gpi_sample *x, uint64_t at)
{
    *x = (struct gpi_sample){
        .at = at, .reading = GPI_READ_OK,
        .memory_total = GPI_UNKNOWN64, .memory_used = GPI_UNKNOWN64, .memory_free = GPI_UNKNOWN64,
        .throttle = GPI_UNKNOWN64, .ecc_corrected = GPI_UNKNOWN64, .ecc_uncorrected = GPI_UNKNOWN64,
        .utilization = GPI_UNKNOWN32, .memory_utilization = GPI_UNKNOWN32,
        .temperature = GPI_UNKNOWN32, .power = GPI_UNKNOWN32, .power_limit = GPI_UNKNOWN32,
        .sm_clock = GPI_UNKNOWN32, .remapped_rows = GPI_UNKNOWN32, .remap_pending = GPI_UNKNOWN32,
        .remap_failed = GPI_UNKNOWN32, .recovery = GPI_UNKNOWN32,
    };
}

static bool holds_less(const struct gpi_user *a, uint64_t memory)
{
    return a->memory == GPI_UNKNOWN64 ? memory != GPI_UNKNOWN64
                                      : memory != GPI_UNKNOWN64 && a->memory < memory;
}

void gpi_sample_add_user(struct gpi_sample *x, uint32_t pid, uint64_t memory)
{
    uint32_t at = x->n_users < GPI_PROCESSES_MAX ? x->n_users : GPI_PROCESSES_MAX;

    x->n_users++;
    for (; at > 0 && holds_less(&x->user[at - 1], memory); at--)
        if (at < GPI_PROCESSES_MAX)
            x->user[at] = x->user[at - 1];
    if (at < GPI_PROCESSES_MAX)
        x->user[at] = (struct gpi_user){ .pid = pid, .memory = memory };
}
