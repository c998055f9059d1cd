/* SPDX-License-Identifier: MIT */
/*
 * patience.h - how long the host waits for a reply of a spawner or a driver that may hang.
 *
 * The times are constants in an object of their own: a test program that links the static library
 * can replace that object, both times at once (tests/patience.c: 2 s).  The library has no setting
 * for them.
 */
#ifndef GPI_HOST_PATIENCE_H
#define GPI_HOST_PATIENCE_H

#include <stdint.h>

extern const uint64_t gpi_spawner_patience; /* ns: a spawner's reply to its start, or a request */
extern const uint64_t gpi_driver_patience;  /* ns: the driver's list of devices */

#endif
