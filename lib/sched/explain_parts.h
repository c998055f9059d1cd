/* SPDX-License-Identifier: MIT */
/*
 * explain_parts.h - the reasons why a task does not start: the answer, and its rows.  Private to
 * the files explain*.c.
 */
#ifndef GPI_SCHED_EXPLAIN_PARTS_H
#define GPI_SCHED_EXPLAIN_PARTS_H

#include "sched/plan_parts.h"

struct gpi_answer {
    struct gpi_plan *p;
    uint32_t shape;
    bool supposed;               /* the task is not submitted */
    bool starts;                 /* nothing is in the way of one variant or worker */
    bool in_order;               /* STRICT mode: a row of its own names the older task */
    bool dry;                    /* no row is added */
    bool boots;                  /* the rows are for a boot: */
    bool wants;                  /* the class wants it; else it is for a late task */
    uint32_t holder[GPI_KINDS];  /* of each kind, GPI_NONE if the shape may take from it */
    uint64_t beside[GPI_KINDS];  /* of each kind: bytes that a boot leaves to the holder */
    struct gpi_plan_reason *row; /* a heap, the last one on top */
    uint32_t n, most, count;     /* rows; of them at most; without that limit */
};

/* ---- explain_rows.c: the rows, in order ---- */

struct gpi_plan_reason gpi_explain_row(uint32_t device, uint32_t variant, enum gpi_plan_why kind);
/* The head that holds it, and when that one starts. */
void gpi_explain_held_by(const struct gpi_answer *a, struct gpi_plan_reason *r, uint32_t head);
void gpi_explain_add(struct gpi_answer *a, const struct gpi_plan_reason *r);
void gpi_explain_sort(struct gpi_answer *a); /* once: no row is added after it */

/* ---- explain_device.c: devices and the machine ---- */

/* Returns why the device, which is not in, takes no run. */
enum gpi_plan_why gpi_explain_state(const struct gpi_plan_device *d);
/* Returns when the worker, which boots, is up. */
uint64_t gpi_explain_up_at(const struct gpi_plan *p, const struct gpi_run *r);
void gpi_explain_share(struct gpi_answer *a, uint32_t device, uint32_t variant, uint32_t share);
/* Returns true if the machine has the slots and memory of the request. */
bool gpi_explain_host(struct gpi_answer *a, uint32_t variant, const struct gpi_request *r);
/* Returns true if nothing is in the way of the variant. */
bool gpi_explain_variant(struct gpi_answer *a, uint32_t variant, const struct gpi_request *r);

#endif
