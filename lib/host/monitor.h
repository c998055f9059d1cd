/* SPDX-License-Identifier: MIT */
/*
 * monitor.h - the host's end of a monitor process: what it has told so far, and when it was asked.
 * Knows no dispatcher: a dispatcher has one where it has GPUs or fakes, and so has a gpud_monitor.
 * Nothing here blocks, but gpi_monitor_await.  One thread at a time.
 *
 * A monitor that is hung is told by its silence, one that is dead by GONE.  Either way the remedy is
 * another one: gpi_monitor_dismiss, gpi_monitor_fini, and start anew.
 */
#ifndef GPI_HOST_MONITOR_H
#define GPI_HOST_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "gpudispatch/error.h"
#include "wire/reading.h"

struct gpi_monitor {
    int fd;               /* lifted, to be polled for reading; -1 = there is none */
    bool gone;            /* the process is: fd stays open until fini, that a loop can let go of it */
    bool driver_known, enumerated;
    struct gpi_driver driver;
    uint32_t n;
    struct gpi_device *device;  /* n of them */
    struct gpi_sample *sample;  /* the last of each; at == 0: none yet */
    uint64_t *asked_at;         /* a SAMPLE of it is under way since, 0 = none */
    uint64_t opened_at;         /* OPEN or ENUMERATE is under way since, 0 = it is answered */
    uint32_t coming;            /* of the devices that are being told */
};

/* What reading one message has brought.  DRIVER may come several times: the last holds. */
enum gpi_monitor_news {
    GPI_MONITOR_NOTHING,
    GPI_MONITOR_DRIVER,
    GPI_MONITOR_ENUMERATED,
    GPI_MONITOR_SAMPLED,
    GPI_MONITOR_INCIDENT,
    GPI_MONITOR_LISTENS,
    GPI_MONITOR_GONE
};

/* A connection to the spawner behind `door`.  0; ESPAWNER, ESYSTEM. */
int gpi_monitor_connect(int *ret_connection, int door, struct gpud_error *e);

/* Asks the spawner at `connection` (a CONNECTed socket) for a monitor process and sends it OPEN.
 * It lives until fini, or the end of the connection.  What a script has done counts from `zero`.
 * For NVML `script` has the PCI addresses of the only GPUs that it opens, with blanks between them;
 * NULL: all.
 * 0; ESPAWNER, ENOMEM, ESYSTEM: *ret is as zeroed with fd -1 then. */
int gpi_monitor_start(struct gpi_monitor *ret, int connection, enum gpi_provider_kind provider, uint32_t n, const char *script, uint64_t zero,
                      struct gpud_error *e);
/* Tells the process to end, be it hung, also where a forked child holds copies of the socket; its owner says so before
 * fini, which alone is for such a child. */
void gpi_monitor_dismiss(struct gpi_monitor *m);
void gpi_monitor_fini(struct gpi_monitor *m); /* closes and frees; a zeroed record with fd -1 is fine */

/* Takes one message; *ret_device and *ret_incident say of what, where the news do.  NOTHING: no more for now.
 * GONE comes once all that it had said was read: then nothing more will, and each call says so again. */
enum gpi_monitor_news gpi_monitor_read(struct gpi_monitor *m, uint32_t *ret_device, struct gpi_incident *ret_incident);

/* Asks for a reading of device i unless one is under way.  Whether it was asked. */
bool gpi_monitor_ask(struct gpi_monitor *m, uint32_t i, uint64_t now);

/* Asks to look again where no device was found; whether it was asked. */
bool gpi_monitor_look(struct gpi_monitor *m, uint64_t now);

/* Since when the oldest request is under way; 0 = none is. */
uint64_t gpi_monitor_waits(const struct gpi_monitor *m);

/* Waits until something can be read or the time has come.  Whether it can. */
bool gpi_monitor_poll(const struct gpi_monitor *m, uint64_t until);

/* Reads until the enumeration is there, it is gone, or the time has come: for create and for monitors.  Whether it is there. */
bool gpi_monitor_await(struct gpi_monitor *m, uint64_t until);

#endif
