/* SPDX-License-Identifier: MIT */
/* doctor.h - what the checks of verb doctor share: a finding, and where to report it. */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "look.h"

enum verdict { VERDICT_OK, VERDICT_NOTE, VERDICT_PROBLEM, VERDICT_COUNT };

struct doctor {
    bool json, quick;
    bool gpu;   /* one must be usable */
    bool fakes; /* the devices looked at are fake ones */
    const char *root, *devices;
    uint64_t wait;
    const char *group;        /* of the checks under way */
    unsigned counted[VERDICT_COUNT];
    int opened;               /* look_open's answer, */
    struct gpud_error why;    /* and why */
    bool looked;              /* look holds what the monitor told */
    struct look look;
};

/* Reports one finding: name of the check, what was seen, and what to do about it (NULL: nothing).
 */
void finding(struct doctor *d, enum verdict verdict, const char *name, const char *remedy,
             const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same of something that took its time. */
void finding_timed(struct doctor *d, enum verdict verdict, const char *name, const char *remedy,
                   uint64_t took, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* The checks, a group each. */
void check_system(struct doctor *d);
void check_limits(struct doctor *d);
void check_driver(struct doctor *d);
void check_devices(struct doctor *d);
void check_environment(struct doctor *d);
void check_queue(struct doctor *d);
void check_tasks(struct doctor *d);

/* What the program runs as a worker: called first thing in main. */
void tasks_init(void);

/* ---- reading files ---- */

/* First line of a file without its end; false: it cannot be read. */
bool file_line(const char *path, char *line, size_t size);
/* The number of the first line that begins with `key`; false: there is none. */
bool file_number(const char *path, const char *key, uint64_t *ret);

#endif
