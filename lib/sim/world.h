/* SPDX-License-Identifier: MIT */
/*
 * world.h - random worlds around the core, which know the truth.
 *
 * A world is the host and everything outside of it: devices and their health, the spawner, a keeper
 * per slot, workers and their cells, a user, and a clock.  The world performs the core's orders and
 * feeds true replies.  It causes trouble at random times: crashes, hangs, late messages.  One seed
 * determines all events of a world.  Three oracles watch the world (oracle.h).  Each world ends
 * with a close, which must be complete in time.
 */
#ifndef GPI_SIM_WORLD_H
#define GPI_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/oracle.h"

struct gpi_sched;

/* Kinds of trouble.  Each world draws a probability for each kind.  Many of them are 0. */
#define GPI_TROUBLE_MAP(X) \
    X(SPAWNER_REFUSES) X(SPAWNER_FREEZES) X(SPAWNER_DIES) X(KEEPER_DIES) X(KEEPER_FREEZES) \
    X(KEEPER_UNFIT) X(SEND_FAILS) X(FORK_FAILS) X(BOOT_HANGS) X(SETUP_FAILS) X(SETUP_HANGS) \
    X(CANARY_FAILS) X(CANARY_HANGS) X(TASK_CRASHES) X(TASK_HANGS) X(TASK_LATE) X(TASK_FAILS) \
    X(FAULTS) X(SPOILS) X(BREAKS) X(DEAF) X(DIES_IDLE) X(STOPS) X(CLEANUP_HANGS) \
    X(SURVIVES) X(SLOW_DEATH) X(SWEEPS) X(INCIDENTS) X(MEMORY_LATE) X(DRAINS) \
    X(REMOVES) X(CANCELS) X(EXPIRES) X(HOST_STOPS) X(HOST_LAGS) X(LATE_WORDS) X(RECALLS) \
    X(SHORT_LIVES) X(DEVICE_SETS) X(RACES) X(NO_ROOM) X(INVALID) X(OVERWRITES) X(PAUSES) \
    X(READINGS) X(WISHES) \
    X(DECLINES) X(UNSTARTED) X(STARTS_LATE) X(STALLS) X(IDLE_ENDS) X(ADOPTS)
#define GPI_X_TROUBLE(name) GPI_TROUBLE_##name,
enum gpi_trouble { GPI_TROUBLE_MAP(GPI_X_TROUBLE) GPI_TROUBLES };
#undef GPI_X_TROUBLE

struct gpi_world_options {
    uint64_t without;        /* bits of enum gpi_trouble: kinds that do not happen */
    uint32_t slots, devices; /* at most; 0 = as the seed draws */
    uint32_t tasks;          /* submitted, at most; 0 = as the seed draws */
    uint64_t length;         /* ns until the close, at most; 0 = as the seed draws */
    bool go_on;              /* after a fault, to learn which further oracles object */
    uint32_t *objected;      /* bits of enum gpi_oracle_kind, current during the run; or NULL */
    FILE *log;               /* receives a script of the core's inputs and effects; or NULL */
    /* The world calls them after it creates and before it destroys the core; may be NULL. */
    void (*begin)(struct gpi_sched *core, void *user);
    void (*end)(struct gpi_sched *core, void *user);
    void *user;
};

#define GPI_WORLD_TEXT_SIZE 512u

struct gpi_world_report {
    uint64_t events;   /* fed events and direct calls */
    uint64_t time;     /* ns of the world */
    uint64_t happened; /* bits of enum gpi_trouble */
    uint32_t objected; /* bits of enum gpi_oracle_kind */
    /* of the first fault: */
    char rule[GPI_ORACLE_RULE_SIZE];
    char text[GPI_WORLD_TEXT_SIZE]; /* seed, time and rule, for a person */
};

/* Runs one world.  Returns 1 if an oracle objects, and the report has the broken rule; else 0. */
int gpi_world_run(uint64_t seed, const struct gpi_world_options *options,
                  struct gpi_world_report *ret);

/* Searches for a smaller world that breaks the same rule: with less trouble, fewer slots, devices
 * and tasks, and a shorter time.  Sets *options to the smallest world found.  Returns the number of
 * worlds tried. */
uint32_t gpi_world_shrink(uint64_t seed, struct gpi_world_options *options,
                          const struct gpi_world_report *fault);

const char *gpi_trouble_name(uint32_t trouble);

#endif
