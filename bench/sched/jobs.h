/* SPDX-License-Identifier: MIT */
/* jobs.h - the mixed workloads: machines, kinds of jobs, and when which job comes. */
#ifndef BENCH_SCHED_JOBS_H
#define BENCH_SCHED_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/plan.h"

#define B_DEVICES 8u
#define B_TYPES 6u
#define B_MODELS 3u
#define B_HEADROOM 1000u /* 1/10000 of the memory of a device */

/* Jobs that are alike but for their run. */
struct b_type {
    uint32_t class;
    bool wide;                  /* of the wide ones in the table; the others are narrow */
    double weight;              /* how often it comes */
    uint64_t from, to;          /* ns of a run, on a logarithmic scale */
    struct gpi_request request; /* of a job without a worker */
};

/* A resident class, the first ones of the workload.  Its tasks need what its workers have. */
struct b_model {
    struct gpi_request need;
    uint32_t max_workers;
    uint64_t boot;            /* ns */
    uint16_t warm[B_DEVICES]; /* devices with a worker at the start */
    uint32_t n_warm;
};

struct b_workload {
    const char *name, *text;
    uint64_t memory[B_DEVICES];
    uint32_t n_models, n_types;
    struct b_model model[B_MODELS];
    struct b_type type[B_TYPES];
};

struct b_job {
    uint64_t at, run, limit;
    uint32_t type;
};

#define B_WORKLOADS 3u
const struct b_workload *b_workload(unsigned number);

/* What a job of the type needs. */
const struct gpi_request *b_type_need(const struct b_workload *w, uint32_t type);

/* Returns the bytes of a device that jobs may have. */
uint64_t b_usable(const struct b_workload *w, uint32_t device);

/* Draws n jobs in order of their arrival: the same ones each time.  They offer a part `load` of
 * what the devices have; if that is 0, the first third offers 0.85, the second one 0.90, the last
 * one 0.95.  A limit is 1.05 to 1.5 times the run.  Returns NULL if there is no memory; else the
 * caller frees them. */
struct b_job *b_jobs_draw(const struct b_workload *w, uint32_t n, double load);

#endif
