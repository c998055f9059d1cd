/* SPDX-License-Identifier: MIT */
/*
 * fact.h - one call of a plan as a record, and as a line of text.
 *
 *     plan devices=2 classes=1 mode=strict     the settings, first of all
 *     device 0 memory=24GiB compute=806
 *     places 1 d=0,1                           a set of devices that requests may name
 *     places 1                                 it is empty again, and no request names it
 *     class 0 residence=resident grace=2s need=devices:1,memory:10GiB
 *     warm c=0 d=1                             a worker that was up before
 *     @1ms submit t=0 c=0 order=1 limit=50ms need=devices:2 need=devices:1,share:5000
 *     @1ms decide
 *     ----
 *     RUN t=0 w=0 d=1                          the actions that follow: sim/plan_script.h
 *
 * A fact without @ has the time of the fact before.  A time has a unit (s, ms, us, ns) or is
 * "never".  Bytes have a unit (GiB, MiB, KiB) or none, or are "all".  The writer omits a field that
 * has its default.  A request is one word, and a task has a word for each of its variants.
 *
 * A record does not know whether a caller may feed it now: sim/trial.h does.
 */
#ifndef GPI_LOG_FACT_H
#define GPI_LOG_FACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sched/plan.h"

#define GPI_FACT_DEVICES 128u    /* of a set of places, at most */
#define GPI_FACT_LINE_SIZE 2048u /* of the longest line, with its 0 byte */

/* The first ones, up to WARM, have no time and precede all that have one. */
#define GPI_FACT_MAP(X) \
    X(PLAN) X(DEVICE) X(PLACES) X(CLASS) X(WARM) \
    X(SUBMIT) X(WITHDRAW) X(END) X(ENDS_BY) X(UP) X(LEAVES) X(GONE) X(STATE) X(FOREIGN) \
    X(OBSERVED) X(OBSERVED_OF) X(ADOPT) X(CLASS_SET) X(QUEUE) X(DECIDE)
#define GPI_X_FACT(name) GPI_FACT_##name,
enum gpi_fact_kind { GPI_FACT_MAP(GPI_X_FACT) GPI_FACTS };
#undef GPI_X_FACT

struct gpi_fact {
    uint64_t now;
    uint32_t kind; /* enum gpi_fact_kind */
    uint32_t task, class, device, worker, set;
    uint32_t what; /* enum gpi_plan_may, enum gpi_plan_class_what */
    uint32_t load, queued;
    uint64_t bytes, run, keep_alive, again, at;
    bool good;
    bool given_up;            /* ADOPT */
    uint32_t grant, attempts; /* ADOPT */
    uint32_t n_requests, n_devices;
    struct gpi_request request[GPI_VARIANTS]; /* of a task, or of the workers of a class */
    uint16_t list[GPI_FACT_DEVICES];          /* of PLACES, WARM, ADOPT */
    union {
        struct gpi_plan_settings plan;
        struct gpi_plan_class is; /* without its needs */
        struct gpi_plan_has has;
        struct gpi_plan_task job; /* without its class and requests */
    };
};

/* Return the record of the class of a fact of that kind, and the fact of the class. */
struct gpi_plan_class gpi_fact_class(const struct gpi_fact *f);
struct gpi_fact gpi_fact_of_class(uint32_t class, const struct gpi_plan_class *set);

/* Write a line, without a line end.  Return `to`. */
const char *gpi_fact_write(char to[GPI_FACT_LINE_SIZE], const struct gpi_fact *f);
const char *gpi_fact_write_action(char to[GPI_FACT_LINE_SIZE], const struct gpi_plan_action *a);

#endif
