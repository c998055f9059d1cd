/* SPDX-License-Identifier: MIT */
/*
 * records_place.h - where a page of records begins, as text of the reader.
 */
#ifndef GPQ_AGENT_RECORDS_PLACE_H
#define GPQ_AGENT_RECORDS_PLACE_H

#include "queue/agent/records.h"

/* Behind a span; behind a batch; or behind a row of a batch. */
enum gpq_records_part { GPQ_PART_SPANS, GPQ_PART_BATCHES, GPQ_PART_ROWS };

struct gpq_records_at {
    enum gpq_records_part part;
    uint32_t number; /* of the next change that the reader has not seen (recent.h) */
    uint64_t span;
    uint32_t batch;
    struct gpq_attempt row; /* its task, round and number */
};

/* False: it is no place.  That of the first page is "". */
bool gpq_records_place_read(struct gpq_records_at *at, const char *place);
void gpq_records_place_write(const struct gpq_records_at *at, char place[GPQ_RECORDS_PLACE]);

#endif
