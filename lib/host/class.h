/* SPDX-License-Identifier: MIT */
/*
 * class.h - a class of the dispatcher: a definition put to use, with its settings and the way its
 * workers start.
 *
 * A slot has workers of one class, and a task runs in workers of one class: gpi_slot_class (slot.h)
 * and gpi_task_class (task.h) return it.  A dispatcher that is not pooled has one class, number 0.
 *
 *   class.c    its birth and its end
 *   classes.c  its settings for the core; pooled: classes that the user adds, and their rows
 *   removals.c pooled: classes that the user removes
 *   request.c  pooled: the requests of a class, or of a task
 */
#ifndef GPI_HOST_CLASS_H
#define GPI_HOST_CLASS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpudispatch/dispatch.h"
#include "host/settings.h"
#include "sched/event.h"
#include "wire/launch.h"
#include "wire/page.h"

/* How its workers start: class.c; and if they print: output.c. */
struct gpi_launching {
    bool executed;     /* workers are programs, not forked */
    bool reads_output; /* the host reads the workers' output: option stdio */
    bool lines;        /* each line of the output becomes an event */
    bool told_output;  /* the host has reported that a worker prints */
    int fd;            /* how to start them: launch.h */
    int program_fd;    /* the program, or -1 */
    int stdio_fd[2];   /* the host's stdout and stderr, where workers inherit them; or -1 */
    char program[128]; /* its name, for messages */
    char name[GPI_NAME_SIZE]; /* name of the definition */
};

/* The bytes that gpud_worker_setup_data returns in its workers: class.c. */
struct gpi_setup {
    uint64_t off, size;
    int fd; /* shared memory with the data, or -1: the input arena has them */
};

#define GPI_CLASSES_MAX 256u

struct gpi_class {
    struct gpi_class_set set;
    struct gpi_launching launch;
    struct gpi_setup setup;
    uint64_t last_boot; /* how long its last worker that passed setup took to start: slot.c */
    const struct gpi_reason *why; /* why no slot can have its worker: reasons.c */
    /* pooled */
    const char *name; /* the user's, unique; it stays for events */
    struct gpi_plan_class plan;
    bool failed;       /* the user knows: reasons.c, and classes.c */
    uint32_t loads;    /* 1: LOAD has been requested, and no worker is up yet: classes.c, state.c */
    uint32_t up;       /* workers that have passed setup: state.c */
    uint64_t accepted; /* tasks: submit.c */
    uint64_t failures; /* workers that failed before a task: death.c */
    uint64_t taken, lost; /* bytes: of the arena for setup data, of the largest task: classes.c */
    /* removals.c.  No task is accepted; END was fed; nothing of it is left, and its name is free;
     * the core has removed it, too: no worker of it is stuck */
    bool removing, ended, removed, unused;
};

/* The devices that a request names, or NULL. */
struct gpi_where {
    const char *on, *not_on;
};

/* The requests of a class or a task, with variants.  It borrows the names of devices. */
struct gpi_needs {
    const char *noun; /* "needs" or "request": the field, for errors */
    uint32_t n;
    struct gpi_request request[GPI_VARIANTS];
    struct gpi_where where[GPI_VARIANTS];
};

/* The parts of a new class.  Everything that it points to is borrowed. */
struct gpi_class_birth {
    struct gpi_class_set set;
    const char *name; /* of the definition: a program finds it by name */
    const struct gpi_launch *launch;
    int program_fd; /* the program to execute; -1 = none */
    const void *setup_data;
    uint64_t setup_size;
    int setup_fd; /* shared memory that replaces setup_data; -1 = none */
    const char *class_name;     /* pooled */
    struct gpi_plan_class plan; /* pooled: grace is that of `set`; without its needs: */
    struct gpi_needs needs;
};

struct gpi_birth;
struct gpi_class_settings;
struct gpi_reason;
struct gpud_class_stats;

/* class.c */
/* Makes room for classes, and class 0 without its parts, unless the dispatcher is pooled.  Returns
 * 0, or -1 without memory. */
int gpi_classes_init(gpud_dispatcher *d, const struct gpi_birth *b);
void gpi_classes_fini(gpud_dispatcher *d);
void gpi_class_fini(struct gpi_class *c);
/* Begins a record without its parts. */
void gpi_class_init(struct gpi_class *c, const struct gpi_class_birth *b);
/* The lock is held.  Returns its number; -1: no class has the name. */
int gpi_class_find(const gpud_dispatcher *d, const char *name);
/* A worker of a class may pin the memory of the task data: option cuda. */
bool gpi_classes_pin(const gpud_dispatcher *d);
/* The parts.  Each function returns 0, or a code. */
/* Copies the setup data into the input arena, unless they are in shared memory. */
int gpi_class_copy_setup(gpud_dispatcher *d, struct gpi_class *c, const struct gpi_class_birth *b);
/* Keeps the shared memory, if the setup data are there. */
int gpi_class_keep_setup(struct gpi_class *c, const struct gpi_class_birth *b);
/* Keeps what the start of a worker needs: the program, the launch record, stdout and stderr. */
int gpi_class_keep_launch(struct gpi_class *c, const struct gpi_class_birth *b);

/* classes.c */
/* Fills the settings for the core. */
void gpi_class_settings(const struct gpi_class *c, struct gpi_class_settings *ret);
/* Pooled: */
/* Adds a class.  Returns 0, or a code: GPUD_EBUSY if another one has the name, GPUD_EFULL,
 * GPUD_ECLOSED, GPUD_EDEVICE if no device could ever hold a worker, GPUD_ETOOBIG for its setup
 * data, GPUD_ENOMEM, GPUD_ESYSTEM. */
int gpi_class_add(gpud_dispatcher *d, struct gpi_class_birth *b, struct gpud_error *e);
/* Returns GPUD_ENODEFINITION if no class has the name. */
int gpi_class_set(gpud_dispatcher *d, const char *name, enum gpi_plan_class_what what,
                  struct gpud_error *e);
/* Returns GPUD_EINVAL if the workers of a class are to find their devices by numbers, and the
 * device, which is about to be added, has none. */
struct gpi_device;
int gpi_classes_check_visible(const gpud_dispatcher *d, const struct gpi_device *id,
                              struct gpud_error *e);
/* Returns GPUD_ENODEFINITION. */
int gpi_class_unknown(const char *name, struct gpud_error *e);
/* Frees the setup data of a class that is removed. */
void gpi_class_free_setup(gpud_dispatcher *d, const struct gpi_class *c);
/* Writes the row of class `i`.  The lock is held. */
void gpi_class_report(gpud_dispatcher *d, uint32_t i, struct gpud_class_stats *ret);

/* request.c */
/* Reads the variants, without their places.  Returns 0, or a code with the field of the record. */
int gpi_request_read(struct gpi_needs *ret, const char *noun, const struct gpud_request *first,
                     struct gpud_error *e);
/* The lock is held.  Find the sets of devices: returns 0, or a code of gpi_places_find.  Fits:
 * returns GPUD_EDEVICE with the numbers if no device could ever hold one of the requests.  [R9] */
int gpi_request_find_places(gpud_dispatcher *d, struct gpi_needs *needs, struct gpud_error *e);
int gpi_request_fits(const gpud_dispatcher *d, const char *class, const char *noun,
                     const struct gpi_request *r, uint32_t n, struct gpud_error *e);

/* places.c */
/* Writes the number of the set of devices into request `i`.  It holds until the lock is released,
 * or longer if the core has a task or class with it.  GPUD_EDEVICE: a name is that of no device;
 * GPUD_EFULL: too many sets are in use. */
int gpi_places_find(gpud_dispatcher *d, struct gpi_needs *needs, uint32_t i, struct gpud_error *e);
void gpi_places_join(gpud_dispatcher *d, uint32_t device); /* it is new */
void gpi_places_fini(gpud_dispatcher *d);

/* removals.c */
/* `how`: enum gpud_finish.  Returns GPUD_ENODEFINITION if no class has the name. */
int gpi_class_remove(gpud_dispatcher *d, const char *name, uint32_t how, struct gpud_error *e);
void gpi_removals_step(gpud_dispatcher *d); /* in each turn, while classes are removed */

#endif
