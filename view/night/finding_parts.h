/* SPDX-License-Identifier: MIT */
/* finding_parts.h - findings while they are made, which the files of findings.c share. */
#ifndef GPV_FINDING_PARTS_H
#define GPV_FINDING_PARTS_H

#include "view/night/findings.h"
#include "view/night/tasks.h"

#define GPV_HALF_HOUR (INT64_C(1800) * 1000000000)

/* In what rows must be alike to be one finding. */
struct gpv_finding_key {
    uint32_t kind, batch, gpu, text;
    uint32_t what; /* outcome; kind of an out; class that left */
    int32_t status;
};

/* What a finding has beside its fields, until it is complete. */
struct gpv_finding_group {
    struct gpv_finding_key key;
    uint64_t hash;
};

struct gpv_finding_maker {
    struct gpv_night *n;
    struct gpv_findings *f;
    GPV_LIST(struct gpv_finding_group) groups; /* of the findings with the same index */
    uint32_t *slot; /* an open hash table of findings: 0 = free, else index + 1 */
    size_t slots;
    uint64_t *gpus; /* bits of the GPUs of each finding, `words` for each */
    size_t words;
    struct gpv_tasks tasks;  /* of findings, by index */
    struct gpv_tasks not_ok; /* whose last row is not ok, by batch */
};

/* The finding of a key, a new one if there is none; NULL: no memory. */
struct gpv_finding *gpv_finding_find(struct gpv_finding_maker *m, const struct gpv_finding_key *k);
/* A finding was on a GPU. */
void gpv_finding_note_gpu(struct gpv_finding_maker *m, const struct gpv_finding *f, uint32_t gpu);
/* Adds all rows but attempts: those that have a length.  0, or -1 without memory. */
int gpv_finding_add_rows(struct gpv_finding_maker *m);

#endif
