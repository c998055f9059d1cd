/* SPDX-License-Identifier: MIT */
/* trace_parts.h - the content of a trace, between its reader and the run.  Private to both. */
#ifndef GPI_SIM_TRACE_PARTS_H
#define GPI_SIM_TRACE_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sched/event.h"

#define GPI_TRACE_NONE UINT32_MAX
#define GPI_TRACE_WIDTH 16u /* devices of one task or worker */

struct gpi_trace_class {
    char *name;
    struct gpi_plan_class set;
    uint32_t boots_fail;
};

struct gpi_trace_device {
    char *name;
    struct gpi_plan_has has;
};

/* A worker that is up at the start. */
struct gpi_trace_warm {
    uint32_t class, n;
    uint16_t device[GPI_TRACE_WIDTH];
};

/* A set of devices that requests name.  The sets count from 1. */
struct gpi_trace_places {
    uint32_t n;
    uint16_t *device; /* in ascending order */
};

enum gpi_trace_fail { GPI_TRACE_SUCCEEDS, GPI_TRACE_ERROR, GPI_TRACE_CRASH };

/* A line of tasks.  Its tasks differ in their number and time alone. */
struct gpi_trace_line {
    char *id;
    uint32_t class, n_requests;
    uint32_t first, repeat; /* its first task; how many it has */
    bool numbered;          /* their ids are ID.0, ID.1 ... */
    int32_t priority;
    uint64_t run, limit, keep_alive;
    uint32_t max_attempts;
    enum gpi_trace_fail fail;
    struct gpi_request request[GPI_VARIANTS];
};

enum gpi_trace_kind {
    GPI_TRACE_TASK,   /* number: of the task; detail: number of its line */
    GPI_TRACE_CANCEL, /* number: of the task */
    GPI_TRACE_DEVICE, /* number: of the device; detail: enum gpi_plan_may */
    GPI_TRACE_FOREIGN,
    GPI_TRACE_CLASS /* number: of the class; detail: enum gpi_plan_class_what */
};

struct gpi_trace_fact {
    uint64_t at;
    uint32_t line; /* of the file */
    enum gpi_trace_kind kind;
    uint32_t number, detail;
    uint64_t bytes; /* FOREIGN */
    uint32_t load;
};

enum gpi_trace_write { GPI_WRITE_DEVICES = 1, GPI_WRITE_TASKS = 2, GPI_WRITE_PROMISES = 4 };

struct gpi_trace {
    const char *path;
    struct gpi_plan_settings set;  /* without the sizes, which the run counts */
    uint32_t write;                /* enum gpi_trace_write */
    struct gpi_trace_class *class; /* the first one is that of tasks without a class */
    uint32_t n_classes;
    struct gpi_trace_device *device;
    uint32_t n_devices;
    struct gpi_trace_warm *warm;
    uint32_t n_warm;
    struct gpi_trace_places *places;
    uint32_t n_places;
    struct gpi_trace_line *line;
    uint32_t n_lines, n_tasks;
    struct gpi_trace_fact *fact; /* in the order in which they apply */
    uint32_t n_facts;
};

/* ---- trace_read.c ---- */

/* Reads the file.  Returns: 0; -1: the reason is on stderr.  `free` is for both. */
int gpi_trace_read(struct gpi_trace *t, const char *path);
void gpi_trace_free(struct gpi_trace *t);

#endif
