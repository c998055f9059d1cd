/* SPDX-License-Identifier: MIT */
/* look.h - one look at the devices: driver and rows, as the monitor process told them; and the
 * words for them. */
#ifndef LOOK_H
#define LOOK_H

#include <stdbool.h>

#include <gpudispatch/gpudispatch.h>

#define SECOND 1000000000ull

struct look {
    gpud_monitor *monitor;
    struct gpud_driver_info driver;
    struct gpud_device_info *row;
    size_t n, room;
};

/* 0, or a GPUD_E code and why; *l is to be closed only after 0. */
int look_open(struct look *l, const char *devices, struct gpud_error *e);

/* Fills driver, row and n: readings at most `max_age` old, waiting up to `wait` for them. 0, or a
 * GPUD_E code. */
int look_again(struct look *l, uint64_t max_age, uint64_t wait);
void look_close(struct look *l);

uint64_t now(void); /* CLOCK_MONOTONIC */

/* ---- words ---- */

/* what it said itself, or what its state means */
const char *driver_sentence(const struct gpud_driver_info *d);
const char *compute_mode_name(uint32_t mode);                               /* NULL: unknown */
const char *recovery_name(uint32_t recovery);                               /* NULL: unknown */
/* of 1 << bit; NULL: no name */
const char *throttle_name(unsigned bit);
/* a GPU in MIG mode: its instances run, itself nothing */
bool row_is_parent(const struct look *l, const struct gpud_device_info *r);

/* All fields, as values of the object that is open; of a driver as an object. */
void json_device(const struct gpud_device_info *r);
void json_driver(const char *key, const struct gpud_driver_info *d);

#endif
