/* SPDX-License-Identifier: MIT */
/*
 * script.h - the script of fake devices: what they are and what happens to them, and when.  One
 * grammar for the devices "fake:N,script=FILE" of users and for the fake libnvidia-ml.so.1 and
 * libcuda.so.1 of the tests.  docs/fake-devices.md is its reference.
 *
 * Pure: a parsed script and a time since its start give the state of a device.
 */
#ifndef GPI_DEVICE_SCRIPT_H
#define GPI_DEVICE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpudispatch/error.h"

struct gpi_script;

/* Parses; *ret is ended with gpi_script_free.  GPUD_EDEVICE with line, column and what was expected; GPUD_ENOMEM. */
int gpi_script_parse(struct gpi_script **ret, const char *text, uint32_t devices, struct gpud_error *e);
void gpi_script_free(struct gpi_script *s);

#endif
