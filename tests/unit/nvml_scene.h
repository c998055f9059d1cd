/* SPDX-License-Identifier: MIT */
/*
 * nvml_scene.h - the NVML provider through a fake libnvidia-ml.so.1, which does what a script says;
 * t_trigger makes a line "when NAME ..." hold.
 *
 *     T_EQ(n_begin("gpus 2\nwhen gone gpu 1 lost"), 2);
 *     t_trigger("gone");
 *     T_EQ(n_sample(1).reading, GPI_READ_LOST);
 *     n_end();
 */
#ifndef T_NVML_SCENE_H
#define T_NVML_SCENE_H

#include "harness.h"
#include "scripted.h"

#include "device/nvml.h"

/* What open has given, and the last enumeration. Neither is ever ended: a monitor's end with its
 * process. */
extern void *n_state;
extern struct gpi_driver n_driver;
extern struct gpi_device n_rows[GPI_GPUS_MAX];

/* The fake of that file, with a script; found by its soname from then on. */
void n_load(const char *which, const char *script);
/* Loads, opens and enumerates: gives how many rows. */
uint32_t n_begin_with(const char *which, const char *script);
uint32_t n_begin(const char *script);
/* Nothing was called that must never be. */
void n_end(void);

struct gpi_sample n_sample(uint32_t i);
/* The next incident is this one. */
void n_hear(uint32_t kind, uint32_t device, uint64_t number);
/* How many calls there have been. */
unsigned n_calls(void);

/* A line of a script, by which a state is told behind registration: from then on events are heard.
 */
#define N_SIGN "gpu 0 recovery=imex\n"
void n_registered(void);

#endif
