/* SPDX-License-Identifier: MIT */
/*
 * birth.h - in a program that a keeper has executed: from its gpud_init to a worker.
 *
 * In order: gpi_birth_called (the variable is taken, whoever it is for), gpi_birth_answer (the host
 * learns that we are one of its protocol), and then one of gpi_birth_run and gpi_birth_fail.
 */
#ifndef GPI_WORKER_BIRTH_H
#define GPI_WORKER_BIRTH_H

#include <stdbool.h>
#include <stddef.h>

#include "gpudispatch/worker.h"
#include "wire/hello.h"
#include "wire/plan.h"

/* Whether a keeper wants this process to be a worker: GPUD_WORKER is there.  Removes it from the
 * environment, and makes its fds close-on-exec: a program that the worker starts is no worker. */
bool gpi_birth_called(struct gpi_call *ret);

/* The same for this very process, without taking anything: it has not come to gpud_init. */
bool gpi_birth_awaited(void);

/* Whether the process that was started is this one, and not one that has started us. */
bool gpi_birth_ours(const struct gpi_call *c);

/* Tells the keeper of a call that is not for us: a wrapper that has forked, and should have
 * exec'ed. */
void gpi_birth_decline(const struct gpi_call *c);

/* Answers, maps what the host has laid out, and fills the plan but for the definition.  Leaves by
 * _exit when we do not fit, once the keeper has been told why. */
void gpi_birth_answer(struct gpi_worker_plan *ret, const struct gpi_call *c);

/* Runs the worker with the definition that the host has named; does not return. */
_Noreturn void gpi_birth_run(struct gpi_worker_plan *plan, const struct gpud_definition *all,
                             size_t n);

/* Ends as a failed setup with this code and text. */
_Noreturn void gpi_birth_fail(const struct gpi_worker_plan *plan, int code, const char *text);

#endif
