/* SPDX-License-Identifier: MIT */
/* pooled.h - pooled dispatchers of fake devices, as the cells use them. */
#ifndef BENCH_POOLED_H
#define BENCH_POOLED_H

#include <stdint.h>

#include "ours.h"

/* A class of definition "model".  Zero means the default of the library. */
struct b_pooled_class {
    const char *name;
    uint32_t residence;
    uint32_t devices, share; /* of a worker and of a task, as in struct gpud_request */
    uint64_t memory;         /* bytes */
    uint32_t workers;        /* not 0: that many workers, from the start to the end */
    uint32_t sent_ahead;
    uint64_t boot, unload;   /* setup and cleanup sleep this long, and these are its seeds */
    uint64_t run;            /* the seed of its runs */
    uint64_t min_residence, max_wait, grace, task_limit;
};

struct b_pooled_options {
    const char *devices; /* of fakes */
    const char *log;     /* decision_log, or NULL */
    uint32_t queue_size;
    int cpu;             /* all workers pin themselves there; -1: nowhere */
};

/* Makes a dispatcher with these classes, and waits for the workers that they have from the start.
 * 0 or -1. */
int b_pooled_open(struct b_ours *o, const struct b_pooled_options *options,
                  const struct b_pooled_class *class, unsigned n);
/* Frees also what the dispatcher knows of its classes. */
void b_pooled_close(struct b_ours *o);

#endif
