/* SPDX-License-Identifier: MIT */
/* patience.c - T_REPLY_S seconds, in place of lib/host/patience.c where a test links the static
 * library. */
#include "base/clock.h"
#include "host/patience.h"

const uint64_t gpi_spawner_patience = T_REPLY_S * GPI_S;
const uint64_t gpi_driver_patience = T_REPLY_S * GPI_S;
