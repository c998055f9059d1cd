/* SPDX-License-Identifier: MIT */

#include "base/clock.h"

/* A start is an exec and one message, a request a fork or two: a spawner that takes longer is
 * stopped, or the process is no spawner. */
const uint64_t gpi_spawner_patience = 10 * GPI_S;
/* Without persistence mode a driver needs seconds to initialise its GPUs.  A driver that takes
 * longer hangs. */
const uint64_t gpi_driver_patience = 10 * GPI_S;
