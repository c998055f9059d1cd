/* SPDX-License-Identifier: MIT */
/*
 * class.h - a class of the dispatcher: a definition put to use, with its settings and the way its
 * workers start.
 *
 * A slot has workers of one class, and a task runs in workers of one class: gpi_slot_class (slot.h)
 * and gpi_task_class (task.h) return it.  A dispatcher has one class now, number 0.
 *
 *   class.c   its birth and its end
 */
#ifndef GPI_HOST_CLASS_H
#define GPI_HOST_CLASS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpudispatch/dispatch.h"
#include "host/settings.h"
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

struct gpi_class {
    struct gpi_class_set set;
    struct gpi_launching launch;
    struct gpi_setup setup;
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
};

/* class.c */
/* Makes class 0 without its parts.  Returns 0, or -1 without memory. */
int gpi_classes_init(gpud_dispatcher *d, const struct gpi_class_birth *b);
void gpi_classes_fini(gpud_dispatcher *d);
/* A worker of a class may pin the memory of the task data: option cuda. */
bool gpi_classes_pin(const gpud_dispatcher *d);
/* The parts.  Each function returns 0, or a code. */
/* Copies the setup data into the input arena, unless they are in shared memory. */
int gpi_class_copy_setup(gpud_dispatcher *d, struct gpi_class *c, const struct gpi_class_birth *b);
/* Keeps the shared memory, if the setup data are there. */
int gpi_class_keep_setup(struct gpi_class *c, const struct gpi_class_birth *b);
/* Keeps what the start of a worker needs: the program, the launch record, stdout and stderr. */
int gpi_class_keep_launch(struct gpi_class *c, const struct gpi_class_birth *b);

#endif
