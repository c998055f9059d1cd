/* SPDX-License-Identifier: MIT */
/*
 * device.h - the devices of a dispatcher, and what they do to its slots.  Included by dispatcher.h;
 * its lock guards everything here.
 *
 * A device stands in the table from when it was added to the end of the dispatcher: slots, tasks and
 * events name it by its place there.  A CPU slot is a device without a monitor, of which nothing is
 * ever read; a dispatcher of CPU slots pays nothing for all this.
 *
 *   slots.c     room for slots; slots added while others run
 *   device.c    the table: who they are, their rows, their events
 *   fence.c     what a device does to its slots: they leave, park, and come back
 *   roster.c    add, drain, return, remove
 */
#ifndef GPI_HOST_DEVICE_H
#define GPI_HOST_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "device/health.h"
#include "gpudispatch/device.h"
#include "wire/page.h"

struct gpi_slot;

#define GPI_NO_DEVICE UINT32_MAX

struct gpi_known_device {
    struct gpi_device id;
    struct gpi_health health;
    uint32_t slots;    /* how many have it, removed ones left out */
    bool draining;     /* by the user's wish: takes no task until it is returned */
    bool drained;      /* and that has been told: none of its workers is left */
    bool removing;     /* as draining, and for good */
    bool removed;      /* none of its slots is left */
    bool told;         /* that it is here */
};

struct gpi_known_devices {
    struct gpi_known_device *row; /* address space for all there can be */
    uint32_t n;
    uint32_t leaving;  /* slots that are to go as soon as they have no task */
};

/* slots.c */
int gpi_slots_init(gpud_dispatcher *d);
void gpi_slots_fini(gpud_dispatcher *d);
/* Adds a slot for each list of device names, all of them or none; a removed slot with the same devices is used again.
 * They are not started.  0 and their numbers in ret_slot, or a code. */
int gpi_slots_add(gpud_dispatcher *d, char (*names)[GPI_DEVICE_SIZE], uint32_t n, const struct gpi_device *found, uint32_t n_found, uint16_t *ret_slot);

/* device.c */
int gpi_devices_init(gpud_dispatcher *d);
void gpi_devices_fini(gpud_dispatcher *d);
uint32_t gpi_device_find(const gpud_dispatcher *d, const char *name_or_uuid); /* not among the removed; or GPI_NO_DEVICE */
/* The place of the device of this name, which is added when it is not there; GPI_NO_DEVICE: there is no room. */
uint32_t gpi_device_learn(gpud_dispatcher *d, const char *name, const struct gpi_device *found, uint32_t n_found);
void gpi_device_header(const gpud_dispatcher *d, const struct gpi_slot *s, struct gpi_page *p);
void gpi_device_tell(gpud_dispatcher *d, uint32_t device, uint32_t xid, const char *format, ...) __attribute__((format(printf, 4, 5)));
void gpi_report_device(gpud_dispatcher *d, uint32_t device, struct gpud_device_info *r);
uint32_t gpi_devices_count(const gpud_dispatcher *d);

/* fence.c */
bool gpi_slot_has(const struct gpi_slot *s, uint32_t device);
bool gpi_slot_barred(const gpud_dispatcher *d, const struct gpi_slot *s); /* its devices let it start no worker */
void gpi_slot_park(gpud_dispatcher *d, struct gpi_slot *s);  /* it has no worker and is barred: where it waits */
void gpi_slot_stays(gpud_dispatcher *d, struct gpi_slot *s); /* it does not leave, or has */
void gpi_slot_leave(gpud_dispatcher *d, struct gpi_slot *s); /* no new task; when it has none its worker goes */
void gpi_slots_come_back(gpud_dispatcher *d, uint32_t device); /* those of a device that are not barred any more */
void gpi_fence_step(gpud_dispatcher *d);

/* roster.c */
int gpi_device_add(gpud_dispatcher *d, const char *devices, struct gpud_error *reterr);
int gpi_device_drain(gpud_dispatcher *d, const char *device);
int gpi_device_return(gpud_dispatcher *d, const char *device);
int gpi_device_remove(gpud_dispatcher *d, const char *device);

#endif
