/* SPDX-License-Identifier: MIT */
/*
 * select.h - the devices that a list chooses, and the slots that are made of them.  Pure but for
 * the memory of its result: text, rows and the host's CUDA_VISIBLE_DEVICES are arguments.
 *
 * Indices and "all" count the devices that CUDA_VISIBLE_DEVICES allows (visible.h), in its order.
 */
#ifndef GPI_DEVICE_SELECT_H
#define GPI_DEVICE_SELECT_H

#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include "device/list.h"
#include "device/use.h"
#include "gpudispatch/error.h"

#define GPI_DEVICE_SET 16u /* devices of one worker, at most */
#define GPI_DEVICE_NAMES ((size_t)GPI_DEVICE_NAME * GPI_DEVICE_SET) /* of a set, comma-separated */

/* The devices to choose from. */
struct gpi_device_field {
    const struct gpi_device *row; /* the enumeration of a monitor; without a monitor n is 0 */
    uint32_t n;
    const struct gpi_driver *driver; /* NULL = no monitor was used */
    /* the host's CUDA_VISIBLE_DEVICES, NULL = unset; does not concern fakes */
    const char *visible;
    /* if the list has an entry "free": the last reading of each row, and the limits */
    const struct gpi_sample *sample;
    struct gpi_quiet quiet;
    /* if the devices are added to a dispatcher: */
    uint32_t first_cpu, first_fake;           /* first numbers of new CPU slots and fakes */
    const struct gpi_device *const *present;  /* its devices, which are refused */
    uint32_t n_present;
};

#define GPI_NO_ROW UINT32_MAX

struct gpi_selected {
    struct gpi_device device; /* of a CPU slot: kind, name and, the same text, uuid */
    uint32_t place;           /* its row; GPI_NO_ROW for a CPU slot */
};

struct gpi_selected_slot {
    uint32_t device[GPI_DEVICE_SET]; /* indices of the selection's `device`; per_worker of them */
};

struct gpi_selection {
    uint32_t n, n_slots, per_worker;
    struct gpi_selected *device;    /* n, each once, in the list's order */
    struct gpi_selected_slot *slot; /* n_slots; the K slots of a set are neighbours */
};

/* Chooses; `per_worker` is 1 to GPI_DEVICE_SET.  gpi_selection_fini frees *ret.  Returns 0,
 * GPUD_ENOMEM, or GPUD_EDEVICE with one of these fields:
 * - "devices", with the entry, its position and the devices that exist;
 * - "devices_per_worker", if the devices cannot be divided into sets;
 * - "CUDA_VISIBLE_DEVICES", with that variable's entry and position.
 *
 * A failure leaves *ret zeroed. */
int gpi_device_select(struct gpi_selection *ret, const char *text, uint32_t per_worker,
                      uint32_t max_slots, const struct gpi_device_field *field,
                      struct gpud_error *e);
void gpi_selection_fini(struct gpi_selection *s); /* a zeroed one is fine */

/* Writes the names of a slot's devices: "cpu:0" or "gpu:0,gpu:1". */
void gpi_selection_names(const struct gpi_selection *s, uint32_t slot,
                         char names[GPI_DEVICE_NAMES]);

#endif
