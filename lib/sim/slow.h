/* SPDX-License-Identifier: MIT */
/*
 * slow.h - the slow model of a plan: it counts everything anew, and tries every device.
 *
 * A world feeds it the same facts as the plan, and each action.  It names the rule that an action
 * breaks, and after each decision the rule by which the decision is incomplete.  It includes
 * nothing of lib/sched but event.h.
 */
#ifndef GPI_SIM_SLOW_H
#define GPI_SIM_SLOW_H

#include "sched/event.h"

struct gpi_slow;

struct gpi_slow *gpi_slow_create(const struct gpi_plan_settings *set);
void gpi_slow_destroy(struct gpi_slow *m);

void gpi_slow_class_add(struct gpi_slow *m, uint32_t class, const struct gpi_plan_class *set);
void gpi_slow_time(struct gpi_slow *m, uint64_t now);
void gpi_slow_up(struct gpi_slow *m, uint64_t now, uint32_t worker);
void gpi_slow_leaves(struct gpi_slow *m, uint64_t now, uint32_t worker);
void gpi_slow_gone(struct gpi_slow *m, uint64_t now, uint32_t worker, uint64_t again);
void gpi_slow_device_add(struct gpi_slow *m, uint32_t device, const struct gpi_plan_has *has);
void gpi_slow_places_add(struct gpi_slow *m, uint32_t set, const uint16_t *device, uint32_t n);
void gpi_slow_submit(struct gpi_slow *m, uint64_t now, uint32_t task,
                     const struct gpi_plan_task *what);
void gpi_slow_withdraw(struct gpi_slow *m, uint64_t now, uint32_t task);
void gpi_slow_end(struct gpi_slow *m, uint64_t now, uint32_t task, bool good, uint64_t run,
                  uint64_t keep_alive);
void gpi_slow_ends_by(struct gpi_slow *m, uint64_t now, uint32_t task, uint64_t at);
void gpi_slow_device(struct gpi_slow *m, uint64_t now, uint32_t device, enum gpi_plan_may may);
void gpi_slow_foreign(struct gpi_slow *m, uint64_t now, uint32_t device, uint64_t bytes,
                      uint32_t load);
void gpi_slow_observed(struct gpi_slow *m, uint64_t now, uint32_t worker, uint32_t device,
                       uint64_t bytes);
void gpi_slow_observed_of(struct gpi_slow *m, uint64_t now, uint32_t task, uint32_t device,
                          uint64_t bytes);
/* A task that runs already, on these devices: it has its only request. */
void gpi_slow_adopt(struct gpi_slow *m, uint64_t now, uint32_t task,
                    const struct gpi_plan_task *what, const uint16_t *device, uint64_t ends_by);
void gpi_slow_class_set(struct gpi_slow *m, uint64_t now, uint32_t class,
                        enum gpi_plan_class_what what);
void gpi_slow_queue(struct gpi_slow *m, uint64_t now, uint32_t class, uint32_t n, uint64_t run);
/* A worker of a resident class that was up before the plan began. */
void gpi_slow_warm(struct gpi_slow *m, uint32_t worker, uint32_t class, const uint16_t *device,
                   uint32_t n);

/* Returns true if devices that are present could ever hold the request.            [R9] */
bool gpi_slow_could(const struct gpi_slow *m, const struct gpi_request *r);

/* Returns true if `n` is the smallest number of tasks in the caller's queue with which the class
 * wants a further worker; UINT32_MAX: with none. */
bool gpi_slow_wants_from(const struct gpi_slow *m, uint32_t class, uint32_t n);

/* Returns the task that broke something. */
uint32_t gpi_slow_culprit(const struct gpi_slow *m);

/* Return NULL, or the id and the text of a broken rule. */
const char *gpi_slow_action(struct gpi_slow *m, const struct gpi_plan_action *a);
const char *gpi_slow_decided(struct gpi_slow *m);

#endif
