/* SPDX-License-Identifier: MIT */
/*
 * spawner.h - the small process that gpud_init forks early: it forks keepers and monitors, and does
 * nothing else.  Its death costs no task, only the making of new keepers.  When a keeper dies the
 * spawner inherits the processes that the keeper had started, kills them, and reports to the
 * dispatcher when all are gone.
 *
 * A monitor reads devices, and may hang in a driver indefinitely.  The spawner kills it when the
 * connection that requested it ends, or when the spawner itself ends.  No process waits for the
 * monitor's end, and no message reports it.
 */
#ifndef GPI_KEEPER_SPAWNER_H
#define GPI_KEEPER_SPAWNER_H

#include "wire/plan.h"

/* Becomes the spawner; does not return. */
_Noreturn void gpi_spawner_run(const struct gpi_spawner_plan *plan);

#endif
