/* SPDX-License-Identifier: MIT */
/*
 * spawner.h - the tiny process forked early by gpud_init: it forks keepers, and does nothing
 * else.  Its death costs no task, only the making of new keepers.  When a keeper dies it
 * inherits what the keeper had started, kills it, and tells the dispatcher when all is gone.
 */
#ifndef GPI_KEEPER_SPAWNER_H
#define GPI_KEEPER_SPAWNER_H

#include "wire/plan.h"

/* Becomes the spawner; does not return. */
_Noreturn void gpi_spawner_run(const struct gpi_spawner_plan *plan);

#endif
