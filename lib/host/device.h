/* SPDX-License-Identifier: MIT */
/*
 * device.h - the devices of a dispatcher, and their effects on its slots.  The dispatcher's lock
 * guards everything here.
 *
 * A device stays in the table from its addition to the end of the dispatcher: slots, tasks and
 * events name it by its place there.  A CPU slot is a device without readings; a dispatcher of CPU
 * slots pays nothing for all this.
 *
 *   rows.c      their use, in their rows
 *   numbers.c   how a worker finds its devices in CUDA_VISIBLE_DEVICES
 *   devices.c   the table: the devices, their rows, their events
 *   names.c     the names of several devices, as an event has them
 *   vacancy.c   a successor waits until its predecessor's memory is free again
 *   judge.c     from readings, incidents and canaries to the health that the core knows
 *   canary.c    which workers have to pass a canary, and the results
 *   monitors.c  the monitors that read them: start, end, restart
 *   reset.c     monitors release GPUs that wait for a reset, and GPUs that no slot here uses
 *   readings.c  reports of monitors, and when the host requests a reading
 *   hotplug.c   add, drain, return, remove
 */
#ifndef GPI_HOST_DEVICE_H
#define GPI_HOST_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "device/health.h"
#include "device/fake/script.h"
#include "device/select.h"
#include "gpudispatch/device.h"
#include "host/monitor.h"
#include "sched/event.h"
#include "wire/page.h"

struct gpi_slot;

/* The memory of a device before a worker's setup, and the readings that lead back to it. */
struct gpi_ground {
    uint64_t at;          /* of the reading, 0 = none */
    int64_t free, others; /* bytes: free, and held by all processes but the last worker */
    int64_t last;         /* free in the reading before; INT64_MIN = none yet */
    bool users_known, agreed;
};

#define GPI_NO_DEVICE UINT32_MAX
#define GPI_NO_GAUGE UINT32_MAX
#define GPI_EARLY 16u  /* incidents kept; later ones report the same */
#define GPI_GAUGES 64u /* monitors of one dispatcher: one, and one for each addition of devices */

/* The use of a device by slots, found anew for each snapshot: rows.c. */
struct gpi_device_use {
    uint32_t slot; /* the one that counts; GPI_NONE: no slot has the device */
    uint32_t outside; /* external task there, a started one first; or GPI_NONE */
    uint32_t workers;
    uint64_t done; /* tasks */
};

struct gpi_known_device {
    struct gpi_device id;
    struct gpi_sample sample; /* the last reading; at == 0: none */
    struct gpi_health health;
    struct gpi_script_canary fake; /* the canaries that a script has made fail */
    uint32_t gauge, place;     /* the gauge that reads it, and its place there; or GPI_NO_GAUGE */
    uint32_t number;           /* device/numbers.h: in the last enumeration that had it */
    bool beside_mig;           /* a GPU of the machine is in MIG mode: no document defines how
                                  CUDA numbers the other GPUs then */
    bool doubted;              /* since then a worker found another GPU by its number */
    uint32_t slots;            /* number of its slots, removed ones left out */
    uint64_t look_at;          /* when a waiting start needs a reading, else GPI_NEVER */
    bool silent;               /* a requested reading is late, and the host has reported that */
    bool foreign;              /* pooled: foreign processes were there at the last reading, or the
                                  device has memory of work from before its removal */
    uint64_t others, held;     /* pooled: bytes of both */
    uint32_t load;             /* pooled: their use of it, 1/10,000 */
    bool outside[GPI_PROCESSES_MAX]; /* these processes of the reading are external work */
    bool here;                 /* from its addition until none of its slots is left */
    bool past;                 /* pooled: it was removed, and never returns in this row */
    enum gpi_may may;          /* how slots may use it, as the core knows it */
    uint64_t done;             /* tasks that ended in slots which have it no more: pool.c */
    uint64_t unused_since;     /* when a device without a slot came to its state */
    struct gpi_device_use use;
};

/* A monitor, and the values that its restart needs. */
struct gpi_gauge {
    struct gpi_monitor m;
    enum gpi_provider_kind provider;
    uint32_t n;                /* number of fakes */
    char *script;              /* NULL = none; for NVML the PCI addresses of the only GPUs that
                                  it opens, NULL = all */
    struct gpi_script *parsed; /* of fakes: `script` parsed, for orders to workers */
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    uint64_t zero;             /* time 0 of the script */
    uint64_t began_at;         /* when the running monitor was started */
    uint64_t again_at;         /* when the host restarts a dead monitor; GPI_NEVER = it lives */
    uint32_t deaths;           /* deaths in a row */
    struct gpi_incident early[GPI_EARLY]; /* incidents from before the dispatcher had its devices */
    uint32_t n_early;
    /* reset.c */
    bool single;               /* reads one GPU alone, whose PCI address is `script`; does not
                                  run while that GPU waits for a reset */
    bool told;                 /* the host has reported that it has released that GPU */
    uint32_t takes_over;       /* the gauge whose devices it gets once it listens; GPI_NO_GAUGE */
    uint64_t parts_at;         /* next try to part it from GPUs that it should not have open */
    uint32_t partings;         /* tries so far */
};

/* Pooled: the devices that an attempt or an event has, by their places in the table. */
struct gpi_device_set {
    uint16_t n;
    uint16_t device[GPI_DEVICES];
};

/* Room for the texts of one event.  Only several devices need it. */
struct gpi_names_room {
    char names[GPI_DEVICE_SIZE];
    char uuids[GPI_DEVICES * GPI_DEVICE_UUID_SIZE];
};

struct gpi_known_devices {
    struct gpi_known_device *row; /* address space for all possible devices */
    uint32_t n;
    struct gpi_gauge *gauge[GPI_GAUGES];
    uint32_t n_gauges;
    uint32_t n_foreign;  /* rows with `foreign` */
    uint64_t looked_at;  /* when a thread last requested rows */
    bool roused;         /* the monitors read devices, or will soon: the timer is set */
};

/* timers.c */
void gpi_devices_rouse(gpud_dispatcher *d); /* readings are needed, or an action may be due */

/* devices.c */
int gpi_devices_init(gpud_dispatcher *d);
void gpi_devices_fini(gpud_dispatcher *d);
/* Searches the devices that are here.  Returns a place or GPI_NO_DEVICE. */
uint32_t gpi_device_find(const gpud_dispatcher *d, const char *name_or_uuid);
/* Returns the device's place, which may be new; GPI_NO_DEVICE if there is no room. */
uint32_t gpi_device_learn(gpud_dispatcher *d, const struct gpi_device *id);
/* The device is in use from now on. */
void gpi_device_bind(gpud_dispatcher *d, const struct gpi_selected *x, uint32_t gauge);
void gpi_device_header(gpud_dispatcher *d, const struct gpi_slot *s, struct gpi_page *p);
/* Adds an event.  Without a text it is about the device's health. */
void gpi_device_tell(gpud_dispatcher *d, uint32_t device, uint32_t xid, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void gpi_report_device(gpud_dispatcher *d, uint32_t device, struct gpud_device_info *r);
uint32_t gpi_devices_count(const gpud_dispatcher *d);

/* rows.c, after gpi_report_device */
struct gpi_forecast;
void gpi_rows_begin(gpud_dispatcher *d); /* before the first row of a snapshot */
void gpi_report_use(gpud_dispatcher *d, uint32_t device, const struct gpi_forecast *f,
                    struct gpud_device_info *r);

/* names.c */
void gpi_set_take(struct gpi_device_set *to, const uint16_t *device, uint32_t n);
/* Return the names, or the UUIDs, separated by commas; "" of no device.  The text of one device
 * stays as long as the dispatcher, that of several as long as `room`. */
const char *gpi_set_names(const gpud_dispatcher *d, const struct gpi_device_set *set,
                          struct gpi_names_room *room);
const char *gpi_set_uuids(const gpud_dispatcher *d, const struct gpi_device_set *set,
                          struct gpi_names_room *room);

/* devices.c */
bool gpi_is_ours(const gpud_dispatcher *d, uint32_t pid); /* a worker of this process */
/* Reports a note of the core to the user. */
void gpi_device_note(gpud_dispatcher *d, uint32_t device, enum gpi_sched_note how);
uint64_t gpi_kill_limit(const gpud_dispatcher *d, const struct gpi_slot *s);
uint64_t gpi_device_kill_limit(const gpud_dispatcher *d, uint32_t device);
enum gpi_may gpi_judge_may(const struct gpi_known_device *k); /* how slots may use it now */
/* Returns true if the device's monitor runs, and has the device. */
bool gpi_device_can_read(const gpud_dispatcher *d, const struct gpi_known_device *k);
bool gpi_device_reads(const gpud_dispatcher *d, uint32_t device); /* a monitor can read it */

/* monitors.c */
/* Makes a gauge without a process.  Returns NULL if malloc fails. */
struct gpi_gauge *gpi_gauge_new(enum gpi_provider_kind provider, uint32_t n);
/* Starts a monitor for devices of this kind.  Returns 0 and *ret_g, which then owns the text
 * `script`; or a code, and then takes nothing. */
int gpi_gauge_open(struct gpi_gauge **ret_g, int connection, enum gpi_provider_kind provider,
                   uint32_t n, char *script, struct gpud_error *e);
void gpi_gauge_free(struct gpi_gauge *g); /* g may be NULL */
/* The dispatcher owns the gauge from now on.  Returns 0 or a code. */
int gpi_gauge_adopt(gpud_dispatcher *d, struct gpi_gauge *g, uint32_t *ret_gauge);
void gpi_gauges_release(gpud_dispatcher *d); /* frees all gauges that read nothing any more */
void gpi_gauges_fini(gpud_dispatcher *d);
void gpi_gauge_hang_up(gpud_dispatcher *d, struct gpi_gauge *g); /* ends its process, if any */
void gpi_gauge_lost(gpud_dispatcher *d, uint32_t gauge);         /* the process has exited */
void gpi_gauge_again(gpud_dispatcher *d, uint32_t gauge);        /* starts another process */

/* readings.c */
void gpi_on_monitor(gpud_dispatcher *d, uint32_t gauge);
void gpi_devices_on_timer(gpud_dispatcher *d);
/* A thread requests rows: readings begin, or go on. */
void gpi_devices_look(gpud_dispatcher *d);

/* reset.c */
/* Releases GPUs, and checks the released ones.  Returns when the next call is due. */
uint64_t gpi_resets_step(gpud_dispatcher *d);
/* Returns true if the gauge reads one GPU alone, and that GPU waits for a reset. */
bool gpi_reset_waits(const gpud_dispatcher *d, uint32_t gauge);
/* Afterwards the gauge has no device and is freed: its heir has them, or monitors of one GPU
 * each. */
void gpi_reset_part(gpud_dispatcher *d, uint32_t gauge, uint32_t heir);

/* judge.c */
void gpi_judge_sample(gpud_dispatcher *d, uint32_t device);
void gpi_judge_incident(gpud_dispatcher *d, uint32_t gauge, const struct gpi_incident *i);
void gpi_judge_silence(gpud_dispatcher *d, uint32_t device, uint64_t asked_at);
void gpi_judge_canary(gpud_dispatcher *d, uint32_t device, bool passed, const char *text);
void gpi_judge_suspect(gpud_dispatcher *d, uint32_t device, const char *why);
void gpi_judge_quarantine(gpud_dispatcher *d, uint32_t device, const char *why);
void gpi_judge_return(gpud_dispatcher *d, uint32_t device);
/* The host kills, or has killed, the slot's worker. */
void gpi_judge_killed(gpud_dispatcher *d, const struct gpi_slot *s);

/* canary.c */
/* Writes the order into the page for the worker that the host starts now. */
void gpi_canary_order(gpud_dispatcher *d, struct gpi_slot *s);
void gpi_canary_judge(gpud_dispatcher *d, struct gpi_slot *s, bool passed);

/* numbers.c */
/* Writes into the page how the worker that the host starts now finds its devices.  Also reads the
 * devices that the last worker found, so the host must not clear the page before. */
void gpi_numbers_order(gpud_dispatcher *d, struct gpi_slot *s);
/* Notes the device's number, from an enumeration of all GPUs of the machine. */
void gpi_number_note(struct gpi_known_device *k, const struct gpi_monitor *m);

/* vacancy.c */
/* Before a worker's start: notes how much memory is free. */
void gpi_vacancy_note(gpud_dispatcher *d, struct gpi_slot *s);
/* The slot's worker is gone: READ_MEMORY of the core. */
void gpi_vacancy_begin(gpud_dispatcher *d, struct gpi_slot *s);
/* A new reading is there, or none will follow. */
void gpi_vacancy_look(gpud_dispatcher *d, uint32_t device);
/* The slot has waited long enough. */
void gpi_vacancy_over(gpud_dispatcher *d, struct gpi_slot *s);

/* hotplug.c */
/* Returns the facts for a selection of further devices: the devices that are here (without CPU
 * slots), the first number that no fake has, and a copy of the connection to the spawner, which the
 * caller closes.  Without a copy *ret_connection is a negative errno, -EPIPE if there is no
 * connection. */
uint32_t gpi_devices_present(gpud_dispatcher *d, struct gpi_device *ret, uint32_t max,
                             uint32_t *ret_first_fake, int *ret_connection);
/* CPU slots get new numbers.  Returns 0: the dispatcher owns the monitor, which may be NULL.
 * Returns ADD_AGAIN: another call has taken the numbers of its fakes meanwhile, so the caller must
 * choose anew. */
enum { GPI_DEVICE_ADD_AGAIN = 1 };
int gpi_device_add(gpud_dispatcher *d, struct gpi_selection *chosen, struct gpi_gauge *gauge,
                   struct gpud_error *reterr);
int gpi_device_drain(gpud_dispatcher *d, const char *device);
int gpi_device_pause(gpud_dispatcher *d, const char *device);
int gpi_device_return(gpud_dispatcher *d, const char *device);
int gpi_device_remove(gpud_dispatcher *d, const char *device);

#endif
