/* SPDX-License-Identifier: MIT */
/*
 * records.h - the records of the store, page by page, as the lines of view/line.h.
 *
 * The first page has the lines `records`, `gpu` and `class`.  Spans follow, and then each batch
 * with its attempts, by their ids.  The last line of the last page is `now`.  A page has the lines
 * of the shapes that its rows name, too.  All other requests wait while the agent makes a page, so
 * a page is small: the longest one of 40,000 tasks takes 2 ms (many_waiting in
 * tests/queue/agent/record_pages.py prints it).
 *
 * The work goes on between two pages.  So a page begins with the rows of attempts and batches that
 * the reader has got and that have changed since (recent.h): the last line of an attempt or batch
 * counts.  What the reader has with the last page is the store at that moment, but for rows that a
 * purge has forgotten meanwhile.
 */
#ifndef GPQ_AGENT_RECORDS_H
#define GPQ_AGENT_RECORDS_H

#include "queue/agent/agent.h"
#include "view/line.h"

struct gpq_records {
    uint64_t now;          /* of the line `now` */
    uint64_t since;        /* rows that ended before are left out; 0 = all are in */
    const uint32_t *batch; /* only these, sorted */
    size_t n_batches;      /* 0: all */
    uint32_t most;         /* rows of a page, about */
    bool names;            /* the names of tasks are in */
    bool closed;           /* no agent runs: rows that go on ended at `alive`, or at their begin */
    uint64_t alive;        /* closed: when the last agent was last known to run */
    bool again;            /* of an agent that runs: pages begin with rows that have changed */
};

/* Rows of a page, unless it is asked for fewer or more. */
enum { GPQ_RECORDS = 1000, GPQ_RECORDS_PLACE = 64 };

/* Writes the next page.  `place` is where it begins, "" for the first one, and becomes that of the
 * next page, "" after the last one.  The lines are UTF-8.  EINVAL: there is no such place. */
int gpq_records_page(struct gpq_agent *a, const struct gpq_records *r,
                     char place[GPQ_RECORDS_PLACE], struct gpv_lines *ret, struct gpq_error *e);
void gpq_records_sort(uint32_t *batch, size_t n);

#endif
