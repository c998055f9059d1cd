/* SPDX-License-Identifier: MIT */
/*
 * page.h - a list of rows that ends after some rows or bytes, and where the next one begins.
 */
#ifndef GPQ_AGENT_PAGE_H
#define GPQ_AGENT_PAGE_H

#include "queue/agent/requests.h"

struct gpq_page {
    struct gpq_call *c;
    json_t *rows;
    uint32_t most; /* rows */
    size_t bytes;  /* that its rows have beside their fixed members */
    uint64_t last; /* id of its last row */
    bool more;     /* another row would follow */
};

/* most 0: GPQ_ROWS.  False: no memory. */
bool gpq_page_begin(struct gpq_page *p, struct gpq_call *c, uint32_t most);
/* For the callback of a reader.  True: the page is full, and the row must not be added. */
bool gpq_page_is_full(struct gpq_page *p);
/* Takes the row.  Returns 0 or GPQ_ENOMEM, as the callback must. */
int gpq_page_add(struct gpq_page *p, uint64_t id, json_t *row, size_t bytes);
/* The reply with the rows as member `name`, and "next" if more follow.  code < 0: NULL. */
json_t *gpq_page_end(struct gpq_page *p, const char *name, int code);

#endif
