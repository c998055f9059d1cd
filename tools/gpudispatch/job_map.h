/* SPDX-License-Identifier: MIT */
/*
 * job_map.h - which task runs on which GPU, as files that NVIDIA's DCGM exporter reads.
 *
 * The directory has a file for each GPU that runs a task.  Its name is the number of the GPU: "3";
 * of a MIG instance "3.1".  Its one line is the id of the task, which the exporter adds as a label.
 * A file is written beside its name and renamed; without a task it is removed.
 */
#ifndef JOB_MAP_H
#define JOB_MAP_H

#include <stdbool.h>

#include "tools/cli/verb.h"
#include "view/now/snapshot.h"

struct job_map {
    int fd; /* of the directory; -1: there is none */
    const char *name;
    struct job_map_gpu {
        char file[32];
        uint64_t task;
    } * gpu; /* the files that are there */
    size_t n;
};

/* Opens --job-map.  0, or EXIT_FAILED after saying why. */
int job_map_open(struct job_map *m, const struct call *call);
/* The same. */
int job_map_write(struct job_map *m, const struct gpv_snapshot *s);
/* Removes the files, unless `keep`: nothing tells any more that they are old. */
void job_map_close(struct job_map *m, bool keep);

#endif
