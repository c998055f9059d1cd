/* SPDX-License-Identifier: MIT */
/*
 * probe.h - the table for tests: counts how often inputs reached a cell, and mutes cells.
 *
 * It exists only in builds with GPI_SCHED_PROBE.  A muted cell does nothing.
 */
#ifndef GPI_SCHED_PROBE_H
#define GPI_SCHED_PROBE_H

#include <stdbool.h>
#include <stdint.h>

struct gpi_sched;

uint32_t gpi_sched_inputs(void); /* columns of the table */
const char *gpi_sched_input_name(uint32_t input);
bool gpi_sched_can_be(uint32_t life, uint32_t input);
bool gpi_sched_reacts(uint32_t life, uint32_t input); /* its rule is not `nothing` */
uint64_t gpi_sched_reached(const struct gpi_sched *c, uint32_t life, uint32_t input);
void gpi_sched_mute(struct gpi_sched *c, uint32_t life, uint32_t input);

#endif
