/* SPDX-License-Identifier: MIT */
/* recent.c - the tasks that changed lately: a ring. */
#include "queue/agent/recent.h"

#include <stdlib.h>

struct gpq_recent {
    uint32_t next; /* number of changes, modulo 2^32 */
    uint64_t task[GPQ_RECENT];
};

/* Without memory no change is kept. */
uint32_t gpq_recent_next(struct gpq_agent *a)
{
    if (!a->recent)
        a->recent = calloc(1, sizeof(*a->recent));
    return a->recent ? a->recent->next : 0;
}

void gpq_recent_turned(struct gpq_agent *a)
{
    struct gpq_recent *r = a->recent;
    for (size_t i = 0; r && i < a->store->n_changes; i++)
        r->task[r->next++ % GPQ_RECENT] = a->store->changes[i].task;
}

void gpq_recent_sealed(struct gpq_agent *a, uint32_t batch)
{
    struct gpq_recent *r = a->recent;
    if (r)
        r->task[r->next++ % GPQ_RECENT] = GPQ_TASK(batch, 0);
}

int gpq_recent_each(const struct gpq_agent *a, uint32_t *number,
                    int (*fn)(uint64_t task, void *user), void *user)
{
    const struct gpq_recent *r = a->recent;
    int code = 0;
    if (!r || r->next - *number > GPQ_RECENT) {
        *number = r ? r->next : 0;
        return 0;
    }
    while (code == 0 && *number != r->next) {
        code = fn(r->task[*number % GPQ_RECENT], user);
        *number += code == 0;
    }
    return code;
}

void gpq_recent_close(struct gpq_agent *a)
{
    free(a->recent);
    a->recent = NULL;
}
