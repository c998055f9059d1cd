/* SPDX-License-Identifier: MIT */
/*
 * birth.h - from gpud_init to a worker, in a program that a keeper has executed.
 *
 * First gpi_birth_called takes the variable, no matter for which process it is.  Then
 * gpi_birth_answer reports to the host that this is a worker of its protocol.  The last call is
 * gpi_birth_run or gpi_birth_fail.
 */
#ifndef GPI_WORKER_BIRTH_H
#define GPI_WORKER_BIRTH_H

#include <stdbool.h>
#include <stddef.h>

#include "gpudispatch/worker.h"
#include "wire/hello.h"
#include "wire/plan.h"

/* Returns whether a keeper wants this process to be a worker: GPUD_WORKER is set.  Removes it
 * from the environment and makes its fds close-on-exec: a program that the worker starts is no
 * worker. */
bool gpi_birth_called(struct gpi_call *ret);

/* Returns whether a keeper waits for this very process, which has not reached gpud_init.  Takes
 * nothing. */
bool gpi_birth_awaited(void);

/* Returns whether the keeper has started this process itself, and not an ancestor of it. */
bool gpi_birth_ours(const struct gpi_call *c);

/* Reports to the keeper that the call is not for this process: a wrapper has forked, and should
 * have exec'ed. */
void gpi_birth_decline(const struct gpi_call *c);

/* Sends the handshake, maps the memory that the host has laid out, and fills the plan but for
 * the definition.  If the program does not fit, it sends the cause to the keeper and leaves with
 * _exit. */
void gpi_birth_answer(struct gpi_worker_plan *ret, const struct gpi_call *c);

/* Runs the worker with the definition that the host names; does not return. */
_Noreturn void gpi_birth_run(struct gpi_worker_plan *plan, const struct gpud_definition *all,
                             size_t n);

/* Exits as a failed setup with this code and text. */
_Noreturn void gpi_birth_fail(const struct gpi_worker_plan *plan, int code, const char *text);

#endif
