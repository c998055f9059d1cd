/* SPDX-License-Identifier: MIT */
/* class.h - from the records of the user to the parts of a class. */
#ifndef GPI_API_CLASS_H
#define GPI_API_CLASS_H

#include "api/start.h"
#include "gpudispatch/sched.h"
#include "host/class.h"

/* The parts of a new class of a pooled dispatcher. */
struct gpi_class_draft {
    struct gpi_start start; /* too much for the stack of a host's thread */
    struct gpi_settings set;
    struct gpud_options options;
    struct gpi_class_birth birth;
};

/* Sets the parts that follow from its options, which have been read.  It borrows the strings. */
void gpi_class_birth(struct gpi_class_birth *ret, const struct gpi_start *start,
                     const struct gpi_class_set *set, const struct gpud_options *o);

/* Reads and checks the record of a class.  `own`: the dispatcher has a spawner of its own.
 * ret->birth borrows from the draft and from the record.  Returns 0, or a code. */
int gpi_class_read(struct gpi_class_draft *ret, const struct gpud_class *added,
                   const struct gpi_process *p, bool own, struct gpud_error *e);

#endif
