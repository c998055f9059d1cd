/* SPDX-License-Identifier: MIT */
/*
 * monitor.h - the host's end of a monitor process: what it has told so far, and when it was asked.
 * Knows no dispatcher: a dispatcher has one where it has GPUs or fakes, and so has a gpud_monitor.
 * Nothing here blocks, but gpi_monitor_await.
 */
#ifndef GPI_HOST_MONITOR_H
#define GPI_HOST_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "gpudispatch/error.h"
#include "wire/reading.h"

struct gpi_monitor {
    int fd;               /* non-blocking, lifted; -1 = it is gone */
    bool driver_known, enumerated;
    struct gpi_driver driver;
    uint32_t n;
    struct gpi_device *device;  /* n of them */
    struct gpi_sample *sample;  /* the last of each; at == 0: none yet */
    uint64_t *asked_at;         /* a SAMPLE of it is under way since, 0 = none */
    uint64_t opened_at;
};

/* What reading one message has brought. */
enum gpi_monitor_news { GPI_MONITOR_NOTHING, GPI_MONITOR_DRIVER, GPI_MONITOR_ENUMERATED, GPI_MONITOR_SAMPLED, GPI_MONITOR_INCIDENT, GPI_MONITOR_GONE };

/* Asks the spawner at `connection` (a CONNECTed socket) for a monitor process and sends it OPEN.
 * 0; ESPAWNER, ENOMEM, ESYSTEM: *ret is as zeroed with fd -1 then. */
int gpi_monitor_start(struct gpi_monitor *ret, int connection, enum gpi_provider_kind provider, uint32_t n, const char *script, struct gpud_error *e);
void gpi_monitor_fini(struct gpi_monitor *m); /* closes and frees; a zeroed record with fd -1 is fine */

/* Takes one message; *ret_device and *ret_incident say of what, where the news do.  NOTHING: no more for now. */
enum gpi_monitor_news gpi_monitor_read(struct gpi_monitor *m, uint32_t *ret_device, struct gpi_incident *ret_incident);

/* Asks for a reading of device i unless one is under way.  Whether it was asked. */
bool gpi_monitor_ask(struct gpi_monitor *m, uint32_t i, uint64_t now);

/* Reads until the enumeration is there, it is gone, or the time has come: for create and for monitors. */
bool gpi_monitor_await(struct gpi_monitor *m, uint64_t until);

#endif
