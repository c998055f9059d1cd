/* SPDX-License-Identifier: MIT */
/* changes.c - requests that change tasks which are there. */
#include "queue/agent/requests.h"

struct change {
    struct gpq_common common;
    struct gpq_which which;
};

/* ---- cancel ---- */

const struct gpq_field gpq_cancel_fields[] = {
    GPQ_COMMON_FIELDS,
    GPQ_WHICH_FIELDS(struct change, which),
    { 0 },
};

/* Q10: those that waited are over, and those that run have the wish. */
static json_t *cancelled(struct gpq_call *c, size_t from)
{
    const struct gpq_store *s = c->a->store;
    uint64_t ended = 0, running = 0;
    for (size_t i = from; i < s->n_changes; i++) {
        ended += s->changes[i].to == GPQ_DONE && s->changes[i].outcome == GPQ_OUTCOME_CANCELLED;
        running += s->changes[i].to == GPQ_RUNNING && s->changes[i].cancel;
    }
    return gpq_reply_end(
        c, json_pack("{s:I, s:I}", "ended", (json_int_t)ended, "running", (json_int_t)running));
}

json_t *gpq_do_cancel(struct gpq_call *c)
{
    struct change asked = { 0 };
    size_t from = c->a->store->n_changes;
    int64_t n = gpq_call_read(c, gpq_cancel_fields, &asked);
    if (n == 0)
        n = gpq_which_read(c, &asked.which);
    if (n == 0)
        n = c->a->store->engine->cancel(c->a->store, c->now, &asked.which.select, c->e);
    gpq_which_free(&asked.which);
    return n < 0 ? NULL : cancelled(c, from);
}
