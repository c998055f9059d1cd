/* SPDX-License-Identifier: MIT */
#include "device/device.h"

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
