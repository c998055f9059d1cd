/* SPDX-License-Identifier: MIT */
/* grant.h - the devices of a running attempt, as the store keeps them: JSON. */
#ifndef GPQ_AGENT_GRANT_H
#define GPQ_AGENT_GRANT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <gpudispatch/gpudispatch.h>

struct gpq_grant {
    json_t *json;              /* owns the texts */
    const char *names, *uuids; /* separated by commas; "" = none */
    uint32_t number;           /* of the grant */
    uint32_t share, cpus;      /* as in struct gpud_event */
    uint64_t memory, host_memory;
};

/* The text of an event GRANTED, which the caller frees.  NULL: no memory. */
char *gpq_grant_write(const struct gpud_event *event);
/* The grant of such a text; all zero for NULL.  False: all zero for want of memory, or since the
 * text is none. */
bool gpq_grant_read(const char *text, struct gpq_grant *ret);
void gpq_grant_free(struct gpq_grant *g);
/* Whether a list that commas separate has this name. */
bool gpq_list_has(const char *list, const char *name);

#endif
