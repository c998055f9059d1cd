/* SPDX-License-Identifier: MIT */
/* choose.h - from the text of option devices to devices and slots, with the monitor that reads
 * them. */
#ifndef GPI_API_CHOOSE_H
#define GPI_API_CHOOSE_H

#include "host/device.h"

/* What was chosen.  Zeroed: nothing. */
struct gpi_choice {
    struct gpi_selection selection;
    struct gpi_gauge *gauge; /* NULL: only CPU slots; NULL it once somebody has taken it */
};

/* Where devices are added to others. */
struct gpi_beside {
    uint32_t first_cpu, first_fake;
    const struct gpi_device *const *present;
    uint32_t n_present;
};

/* Reads the list; where it has GPUs or fakes it starts a monitor at `connection` and waits until
 * that has told what there is, for some seconds at most. `beside` NULL: there are no others.
 * `quiet`: the limits of devices that are free. 0;
 * GPUD_EDEVICE with entry and position, or with what the driver says; ESPAWNER, ENOMEM, ESYSTEM. */
int gpi_choose_devices(struct gpi_choice *ret, const char *devices, uint32_t per_worker,
                       int connection, const struct gpi_beside *beside,
                       const struct gpi_quiet *quiet, struct gpud_error *e);
void gpi_choice_fini(struct gpi_choice *c);

/* Whether option visible can be honoured: GPUD_EINVAL for numbers of MIG instances, else 0. */
int gpi_choice_visible(const struct gpi_choice *c, uint32_t visible, struct gpud_error *e);

/* For a pooled dispatcher.  Refuses CPU slots, and several workers per device: GPUD_EINVAL. */
int gpi_choice_pooled(const struct gpi_choice *c, struct gpud_error *e);

/* Whether the list has any device that needs a monitor, or a code as above. */
int gpi_choice_reads(const char *devices, struct gpud_error *e);

#endif
