/* SPDX-License-Identifier: MIT */
/*
 * device.h - the devices of a dispatcher, and what they do to its slots.  Its lock guards everything here.
 *
 * A device stands in the table from when it was added to the end of the dispatcher: slots, tasks and
 * events name it by its place there.  A CPU slot is a device of which nothing is ever read; a dispatcher
 * of CPU slots pays nothing for all this.
 *
 *   device.c    the table: who they are, their rows, their events
 *   gauge.c     the monitors that read them: started, asked, heard, started again
 *   reset.c     those monitors let go of GPUs that wait for a reset, and of those that nobody uses here
 *   judge.c     what was heard of a device, or seen on it: how it is now, as the core is told
 *   canary.c    who has to pass one, and what came of it
 *   vacancy.c   a successor waits until its predecessor's memory is free again
 *   numbers.c   how a worker finds its devices in CUDA_VISIBLE_DEVICES
 *   roster.c    add, drain, return, remove
 */
#ifndef GPI_HOST_DEVICE_H
#define GPI_HOST_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "device/health.h"
#include "device/script.h"
#include "device/select.h"
#include "gpudispatch/device.h"
#include "host/monitor.h"
#include "sched/event.h"
#include "wire/page.h"

struct gpi_slot;

/* What a device had before a worker's setup, and how it was seen to come back to that. */
struct gpi_ground {
    uint64_t at;          /* of the reading, 0 = there was none */
    int64_t free, others; /* bytes: free, and held by all but the worker before */
    int64_t last;         /* free in the reading before; INT64_MIN = none yet */
    bool users_known, agreed;
};

#define GPI_NO_DEVICE UINT32_MAX
#define GPI_NO_GAUGE UINT32_MAX
#define GPI_EARLY 16u /* incidents; those before them say the same */
#define GPI_GAUGES 64u /* monitors of one dispatcher: one, and one more for each time that others are added */

struct gpi_known_device {
    struct gpi_device id;
    struct gpi_sample sample;  /* the last; at == 0: none */
    struct gpi_health health;
    struct gpi_script_canary fake; /* those that a script has let fail */
    uint32_t gauge, place;     /* who reads it, and its place there; GPI_NO_GAUGE: nobody */
    uint32_t number;           /* device/numbers.h: in the last enumeration that had it */
    bool beside_mig;           /* a GPU of the machine is in MIG mode: how CUDA counts the others then is not written down */
    bool doubted;              /* since then a worker has found another GPU by its number */
    uint32_t slots;            /* how many have it, removed ones left out */
    uint64_t look_at;          /* when a waiting start wants a reading; GPI_NEVER */
    uint64_t look_wait;        /* between two such */
    bool silent;               /* what was asked for has not come in time, and that has been said */
    bool here;                 /* from when it was added until none of its slots is left */
    enum gpi_may may;          /* how it may be used: as the core was told */
    bool told;                 /* that it is here */
};

/* A monitor, and what it takes to start it again. */
struct gpi_gauge {
    struct gpi_monitor m;
    enum gpi_provider_kind provider;
    uint32_t n;                /* of fakes */
    char *script;              /* NULL = none; for NVML the PCI addresses of the only GPUs that it opens, NULL = all */
    struct gpi_script *parsed; /* of fakes: how their workers fare */
    uint64_t fired[GPI_SCRIPT_TRIGGERS_MAX];
    uint64_t zero;             /* from when the script counts */
    uint64_t began_at;         /* the monitor that runs now was started */
    uint64_t again_at;         /* it has died: when it is started again; GPI_NEVER = it lives */
    uint32_t deaths;           /* in a row */
    struct gpi_incident early[GPI_EARLY]; /* which came before the dispatcher had its devices */
    uint32_t n_early;
    /* reset.c */
    bool single;               /* reads one GPU alone, whose PCI address is `script`; does not run while that waits for a reset */
    bool told;                 /* that it has let go of that */
    uint32_t takes_over;       /* the gauge whose devices it gets as soon as it listens; GPI_NO_GAUGE */
    uint64_t parts_at;         /* not before then it is parted from GPUs that it should not have open */
    uint32_t partings;         /* tried so far */
};

struct gpi_known_devices {
    struct gpi_known_device *row; /* address space for all there can be */
    uint32_t n;
    struct gpi_gauge *gauge[GPI_GAUGES];
    uint32_t n_gauges;
    uint64_t looked_at;  /* when somebody last asked for rows */
    bool roused;         /* readings are taken, or about to be: the timer is set */
};

/* device.c */
int gpi_devices_init(gpud_dispatcher *d);
void gpi_devices_fini(gpud_dispatcher *d);
uint32_t gpi_device_find(const gpud_dispatcher *d, const char *name_or_uuid); /* among those that are here; or GPI_NO_DEVICE */
uint32_t gpi_device_learn(gpud_dispatcher *d, const struct gpi_device *id); /* its place, maybe a new one; GPI_NO_DEVICE: there is no room */
void gpi_device_bind(gpud_dispatcher *d, const struct gpi_selected *x, uint32_t gauge); /* it is in use from now on */
void gpi_device_header(gpud_dispatcher *d, const struct gpi_slot *s, struct gpi_page *p);
/* An event; with no words, of its health. */
void gpi_device_tell(gpud_dispatcher *d, uint32_t device, uint32_t xid, const char *format, ...) __attribute__((format(printf, 4, 5)));
void gpi_report_device(gpud_dispatcher *d, uint32_t device, struct gpud_device_info *r);
uint32_t gpi_devices_count(const gpud_dispatcher *d);
bool gpi_is_ours(const gpud_dispatcher *d, uint32_t pid); /* a worker of ours */
void gpi_device_note(gpud_dispatcher *d, uint32_t device, enum gpi_sched_note how); /* says the core */
uint64_t gpi_kill_limit(const gpud_dispatcher *d, const struct gpi_slot *s);

/* gauge.c */
struct gpi_gauge *gpi_gauge_new(enum gpi_provider_kind provider, uint32_t n); /* without a process; NULL: there is no memory */
/* Starts a monitor for devices of this kind; `script` is a text of its own, which *ret_g owns.  0 and *ret_g, or a code: nothing was taken. */
int gpi_gauge_open(struct gpi_gauge **ret_g, int connection, enum gpi_provider_kind provider, uint32_t n, char *script, struct gpud_error *e);
void gpi_gauge_free(struct gpi_gauge *g); /* NULL is fine */
int gpi_gauge_adopt(gpud_dispatcher *d, struct gpi_gauge *g, uint32_t *ret_gauge); /* it is the dispatcher's from now on; 0 or a code */
void gpi_gauges_release(gpud_dispatcher *d); /* those that read nothing any more */
void gpi_gauges_fini(gpud_dispatcher *d);
void gpi_gauge_hang_up(gpud_dispatcher *d, struct gpi_gauge *g);  /* its process ends, if there is one */
void gpi_gauge_again(gpud_dispatcher *d, uint32_t gauge);         /* starts another process */
void gpi_on_monitor(gpud_dispatcher *d, uint32_t gauge);
void gpi_devices_on_timer(gpud_dispatcher *d);
void gpi_devices_rouse(gpud_dispatcher *d); /* readings are wanted, or something may be due */
bool gpi_device_reads(const gpud_dispatcher *d, uint32_t device); /* readings of it can be had */

/* reset.c */
uint64_t gpi_resets_step(gpud_dispatcher *d); /* lets go of GPUs, looks at those let go; gives when to call it again */
bool gpi_reset_waits(const gpud_dispatcher *d, uint32_t gauge); /* it reads one GPU alone, which waits for a reset */
void gpi_reset_heir_listens(gpud_dispatcher *d, uint32_t heir);
void gpi_reset_heir_failed(gpud_dispatcher *d, uint32_t heir);

/* judge.c */
void gpi_judge_sample(gpud_dispatcher *d, uint32_t device);
void gpi_judge_incident(gpud_dispatcher *d, uint32_t gauge, const struct gpi_incident *i);
void gpi_judge_silence(gpud_dispatcher *d, uint32_t device, uint64_t asked_at);
void gpi_judge_canary(gpud_dispatcher *d, uint32_t device, bool passed, const char *text);
void gpi_judge_suspect(gpud_dispatcher *d, uint32_t device, const char *why);
void gpi_judge_quarantine(gpud_dispatcher *d, uint32_t device, const char *why);
void gpi_judge_return(gpud_dispatcher *d, uint32_t device);
enum gpi_may gpi_judge_may(const struct gpi_known_device *k); /* how it may be used now */
void gpi_judge_killed(gpud_dispatcher *d, const struct gpi_slot *s); /* we kill, or have killed, its worker */

/* canary.c */
void gpi_canary_order(gpud_dispatcher *d, struct gpi_slot *s); /* of the worker that is started now: what its page says */
void gpi_canary_judge(gpud_dispatcher *d, struct gpi_slot *s, bool passed);

/* numbers.c */
/* Writes into the page how the worker that is started now finds its devices.  Reads there what the
 * worker before has found, so the page is not cleared yet. */
void gpi_numbers_order(gpud_dispatcher *d, struct gpi_slot *s);
/* From an enumeration of all GPUs of the machine. */
void gpi_number_note(struct gpi_known_device *k, const struct gpi_monitor *m);

/* vacancy.c */
void gpi_vacancy_note(gpud_dispatcher *d, struct gpi_slot *s);  /* a worker is started: how much is free before it */
void gpi_vacancy_begin(gpud_dispatcher *d, struct gpi_slot *s); /* its worker has gone: READ_MEMORY of the core */
void gpi_vacancy_look(gpud_dispatcher *d, uint32_t device);     /* there is a new reading, or none will come */
void gpi_vacancy_over(gpud_dispatcher *d, struct gpi_slot *s);  /* it has waited long enough */

/* roster.c */
/* What a selection of others goes by: devices that are here (but CPU slots), the first number that no fake has, and a copy of the
 * connection to the spawner, which the caller closes; else an errno, negative, which is -EPIPE where there is none. */
uint32_t gpi_devices_present(gpud_dispatcher *d, struct gpi_device *ret, uint32_t max, uint32_t *ret_first_fake, int *ret_connection);
/* CPU slots get other numbers.  0: the monitor, which may be NULL, is the dispatcher's.  ADD_AGAIN: others have taken the
 * numbers of its fakes meanwhile, so they must be chosen anew. */
enum { GPI_DEVICE_ADD_AGAIN = 1 };
int gpi_device_add(gpud_dispatcher *d, struct gpi_selection *chosen, struct gpi_gauge *gauge, struct gpud_error *reterr);
int gpi_device_drain(gpud_dispatcher *d, const char *device);
int gpi_device_return(gpud_dispatcher *d, const char *device);
int gpi_device_remove(gpud_dispatcher *d, const char *device);

#endif
