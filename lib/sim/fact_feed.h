/* SPDX-License-Identifier: MIT */
/* fact_feed.h - feeds a fact (log/fact.h) to a plan, and to the slow model. */
#ifndef GPI_SIM_FACT_FEED_H
#define GPI_SIM_FACT_FEED_H

#include "log/fact.h"
#include "sim/slow.h"

/* Feed the fact, of any kind but PLAN.  The plan's returns the number of the worker for WARM, that
 * of the run for ADOPT, and 0 for a SUBMIT of too many shapes; else 1.  The slow model takes the
 * number of the worker from the record, and the plan takes that of the run for OBSERVED_OF. */
uint32_t gpi_fact_feed_plan(const struct gpi_fact *f, struct gpi_plan *p);
void gpi_fact_feed_slow(const struct gpi_fact *f, struct gpi_slow *m);

#endif
