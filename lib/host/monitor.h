/* SPDX-License-Identifier: MIT */
/*
 * monitor.h - the host's end of a monitor process: its reports so far, and the host's requests to
 * it.  Knows no dispatcher: a dispatcher has one where it has GPUs or fakes, and so has a
 * gpud_monitor.  Only gpi_monitor_poll and gpi_monitor_await block.  One
 * thread at a time.
 *
 * A monitor that hangs stops sending; for one that has exited, gpi_monitor_read returns GONE.  In
 * both cases replace it: gpi_monitor_dismiss, gpi_monitor_fini, and start anew.
 */
#ifndef GPI_HOST_MONITOR_H
#define GPI_HOST_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "gpudispatch/error.h"
#include "wire/reading.h"

struct gpi_monitor {
    int fd;    /* lifted, to be polled for reading; -1 = none */
    bool gone; /* the process has exited: fd stays open until fini, for epoll */
    bool driver_known, enumerated;
    struct gpi_driver driver;
    uint32_t n;
    struct gpi_device *device; /* n of them */
    struct gpi_sample *sample; /* the last of each; at == 0: none yet */
    uint64_t *asked_at;        /* time of its unanswered SAMPLE request, 0 = none */
    uint64_t opened_at;        /* time of the unanswered OPEN or ENUMERATE, 0 = none */
    uint32_t coming;           /* devices reported so far by an enumeration */
};

/* The result of reading one message.  DRIVER may appear several times: the last one holds. */
enum gpi_monitor_news {
    GPI_MONITOR_NOTHING,
    GPI_MONITOR_DRIVER,
    GPI_MONITOR_ENUMERATED,
    GPI_MONITOR_SAMPLED,
    GPI_MONITOR_INCIDENT,
    GPI_MONITOR_LISTENS,
    GPI_MONITOR_GONE
};

/* Connects to the spawner behind `door`.  Returns 0, ESPAWNER or ESYSTEM. */
int gpi_monitor_connect(int *ret_connection, int door, struct gpud_error *e);

/* Requests a monitor process from the spawner at `connection` (a CONNECTed socket) and sends it
 * OPEN.  The process lives until fini, or the end of the connection.  The times of a script count
 * from `zero`.  For NVML `script` has the PCI addresses of the only GPUs that it opens, with blanks
 * between them; NULL: all.  Returns 0; or ESPAWNER, ENOMEM or ESYSTEM: then *ret is zeroed, with fd
 * -1. */
int gpi_monitor_start(struct gpi_monitor *ret, int connection, enum gpi_provider_kind provider,
                      uint32_t n, const char *script, uint64_t zero, struct gpud_error *e);
/* Makes the process exit even if it hangs, or if a forked child holds copies of the socket.  The
 * owner calls it before fini; such a child calls fini alone. */
void gpi_monitor_dismiss(struct gpi_monitor *m);
void gpi_monitor_fini(struct gpi_monitor *m); /* closes and frees; may be zeroed with fd -1 */

/* Takes one message, and writes *ret_device and *ret_incident if the message is about one.  Returns
 * NOTHING if no message waits.  GONE follows the last message, and then each call returns it
 * again. */
enum gpi_monitor_news gpi_monitor_read(struct gpi_monitor *m, uint32_t *ret_device,
                                       struct gpi_incident *ret_incident);

/* Requests a reading of device i unless a request is under way.  Returns true if it sent one. */
bool gpi_monitor_ask(struct gpi_monitor *m, uint32_t i, uint64_t now);

/* Requests an enumeration if no device was found.  Returns true if it sent the request. */
bool gpi_monitor_look(struct gpi_monitor *m, uint64_t now);

/* Returns the time of the oldest unanswered request; 0 = none. */
uint64_t gpi_monitor_waits(const struct gpi_monitor *m);

/* Waits until a message can be read or the time expires.  Returns true if one can. */
bool gpi_monitor_poll(const struct gpi_monitor *m, uint64_t until);

/* Reads until the enumeration is there, the process is gone, or the time expires: for create and
 * for monitors.  Returns true if the enumeration is there. */
bool gpi_monitor_await(struct gpi_monitor *m, uint64_t until);

#endif
