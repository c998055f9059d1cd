/* SPDX-License-Identifier: MIT */
/*
 * spawner.h - the tiny process forked early by gpud_init: it forks keepers and monitors, and does
 * nothing else.  Its death costs no task, only the making of new keepers.  When a keeper dies it
 * inherits what the keeper had started, kills it, and tells the dispatcher when all is gone.
 *
 * A monitor reads devices, and may hang in a driver for ever. It is killed when the connection that
 * asked for it ends, or the spawner does; nobody waits for its end, which nobody is told.
 */
#ifndef GPI_KEEPER_SPAWNER_H
#define GPI_KEEPER_SPAWNER_H

#include "wire/plan.h"

/* Becomes the spawner; does not return. */
_Noreturn void gpi_spawner_run(const struct gpi_spawner_plan *plan);

#endif
