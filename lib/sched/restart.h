/* SPDX-License-Identifier: MIT */
/*
 * restart.h - when a slot's next worker starts after a death.                        [C9]
 *
 * A death inside process is charged to the task, and the core replaces the worker at once, unless
 * this slot has had several in a row while other slots had successes.  Everything else (setup
 * failed, exited or timed out, death between tasks) is charged to the slot: the backoff doubles up
 * to a cap, and after some in a row the result is GIVE_UP.
 */
#ifndef GPI_SCHED_RESTART_H
#define GPI_SCHED_RESTART_H

#include <stdbool.h>
#include <stdint.h>

struct gpi_restart_policy {
    uint64_t backoff, cap;      /* ns */
    uint32_t failures_in_a_row; /* then given up */
};

struct gpi_restart {
    uint32_t slot_failures; /* in a row, since a worker was ready and ended a task, or ran long */
    uint32_t task_deaths;   /* in a row, since a task of this slot ended on its own */
    uint64_t others_before; /* successes of the whole dispatcher at the first of these deaths */
};

/* Both return the wait in ns before the next start (0 = at once), or GIVE_UP. */
#define GPI_RESTART_GIVE_UP UINT64_MAX

uint64_t gpi_restart_slot_failure(struct gpi_restart *r, const struct gpi_restart_policy *p);
uint64_t gpi_restart_task_death(struct gpi_restart *r, const struct gpi_restart_policy *p,
                                uint64_t successes);

/* A task ended on its own on this slot: no earlier failure counts.  Inline: one for each task. */
static inline void gpi_restart_good(struct gpi_restart *r)
{
    r->slot_failures = 0;
    r->task_deaths = 0;
}

/* The slot begins anew. */
void gpi_restart_forget(struct gpi_restart *r);

/* Its worker served for long: failures before it do not count any more. */
void gpi_restart_lived_long(struct gpi_restart *r);

#endif
