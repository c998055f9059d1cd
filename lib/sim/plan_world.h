/* SPDX-License-Identifier: MIT */
/*
 * plan_world.h - a random caller of a plan: it makes up devices, classes, tasks and events.
 *
 * Its numbers come from a seed, or from the bytes of a fuzzer.  Whichever they are, a caller may
 * feed each of its facts: a task ends by its limit and grace, an order is unique, and a task ends
 * before its worker is gone.  A world has some of the parts below, so worlds combine them in many
 * ways.
 */
#ifndef GPI_SIM_PLAN_WORLD_H
#define GPI_SIM_PLAN_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/random.h"
#include "sim/trial.h"

#define GPI_PLAN_WORLD_TASKS 64u
#define GPI_PLAN_WORLD_DEVICES 80u /* more than a plan has numbers for kinds */
#define GPI_PLAN_WORLD_RUNS 96u    /* enough for all tasks and workers at a time */
#define GPI_PLAN_WORLD_CLASSES 4u
#define GPI_PLAN_WORLD_REQUESTS 12u

/*
 * X(NAME, percent of the worlds that have it)
 *
 * The plan or the slow model lacks the parts that no world has (0): --with of tests/sched/plans.c
 * adds them.
 */
#define GPI_PLAN_PART_MAP(X)                                                                \
    X(WORKERS, 50)   /* classes whose tasks run in workers */                               \
    X(STRICT, 25)    /* the mode */                                                         \
    X(PLACES, 40)    /* sets of devices that requests name */                               \
    X(KINDS, 0)      /* many devices, each of a kind of its own */                          \
    X(KINDS_WARM, 0) /* such worlds may have workers */                                     \
    X(FEW, 25)       /* eight tasks at a time */                                            \
    X(TIGHT, 15)     /* one or two devices, and workers that need most of one */            \
    X(VARIANTS, 70)  /* several requests of one task */                                     \
    X(ODD, 20)       /* no device could ever hold one of these */                           \
    X(HOST, 80)      /* CPU slots and host memory */                                        \
    X(PRIORITIES, 60)                                                                       \
    X(OLD, 60)    /* tasks that are older than those submitted before */                    \
    X(LONG, 50)   /* times of ms, and not of us */                                          \
    X(PAUSED, 60) /* devices that are paused */                                             \
    X(DRAINED, 50)                                                                          \
    X(OUT, 60)        /* devices that are broken for now */                                 \
    X(LOST, 20)       /* devices that never return */                                       \
    X(LATE, 40)       /* a decision may precede the ends of the tasks on a broken device */ \
    X(FOREIGN, 50)    /* memory of other processes */                                       \
    X(LOAD, 40)       /* use by other processes */                                          \
    X(OBSERVED, 40)   /* readings of workers, also above their word */                      \
    X(CLASS_SETS, 40) /* classes that are paused, drained, loaded, unloaded and pinned */   \
    X(MIN_WORKERS, 40)                                                                      \
    X(PINNED, 40)                                                                           \
    X(WARM, 40)       /* workers that were up before */                                     \
    X(KEEP_ALIVE, 40) /* of classes */                                                      \
    X(KEEP_TASK, 40)  /* of tasks */                                                        \
    X(STREAMS, 50)    /* tasks whose runs may be granted */                                 \
    X(QUEUES, 40)     /* of the caller */                                                   \
    X(AHEAD, 50)      /* when a grant ends, older tasks come back */                        \
    X(RUNS, 30)       /* the caller has measured how long a task ran */                     \
    X(BOOTS_FAIL, 60)                                                                       \
    X(LEAVES, 60)  /* workers that go without an order */                                   \
    X(DOOMED, 40)  /* workers that are about to go, without an order */                     \
    X(SEATS, 20)   /* fewer runs than tasks */                                              \
    X(SHAPES, 20)  /* fewer shapes than tasks */                                            \
    X(ADOPT, 40)   /* tasks that run already, also where they do not fit */                 \
    X(ENDS_BY, 40) /* runs without a worker end earlier or later than known */              \
    X(WIDE, 15)    /* a few devices, workers that have some of them, and long waits */
#define GPI_X_PART(name, percent) GPI_PLAN_PART_##name,
enum gpi_plan_part { GPI_PLAN_PART_MAP(GPI_X_PART) GPI_PLAN_PARTS };
#undef GPI_X_PART
const char *gpi_plan_part_name(uint32_t part);

/* Numbers from a seed or, where `data` is not NULL, from bytes. */
struct gpi_source {
    struct gpi_random rng;
    const uint8_t *data;
    size_t left;
};

struct gpi_plan_world {
    /* Set by the caller. */
    struct gpi_source source;
    uint64_t always, never, often; /* bits of parts: in all worlds, in none, in half of them */
    /* The rest is the world's. */
    struct gpi_trial *trial;
    uint64_t parts;
    uint64_t unit; /* ns */
    uint64_t now, order;
    uint32_t n_devices, n_classes, step; /* step: of the set-up */
    bool decides;                        /* the next fact is a decision */
    struct gpi_plan_settings set;
    struct gpi_request made[GPI_PLAN_WORLD_REQUESTS][GPI_VARIANTS];
    uint32_t n_made[GPI_PLAN_WORLD_REQUESTS];
    struct {
        uint64_t takes, ends; /* its duration; its end */
        bool dies;            /* its device is broken */
    } task[GPI_PLAN_WORLD_TASKS];
    struct {
        uint64_t at, again; /* the end of its boot or unload; from then to the next boot */
        bool fails, dies;
    } worker[GPI_PLAN_WORLD_RUNS];
};

/* Begins a world around the trial.  The caller feeds each fact before it requests the next one, and
 * passes the actions of the trial on to gpi_plan_world_note. */
void gpi_plan_world_begin(struct gpi_plan_world *w, struct gpi_trial *t);
/* Returns false if the bytes are used up. */
bool gpi_plan_world_next(struct gpi_plan_world *w, struct gpi_fact *ret);
void gpi_plan_world_note(struct gpi_plan_world *w, const struct gpi_plan_action *a);

#endif
