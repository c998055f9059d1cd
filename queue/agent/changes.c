/* SPDX-License-Identifier: MIT */
/* changes.c - requests that change tasks and batches which are there. */
#include "queue/agent/recent.h"
#include "queue/agent/requests.h"

#define CHANGE_FIELDS(verb) \
    const struct gpq_field gpq_##verb##_fields[] = { GPQ_WHICH_FIELDS, { 0 } }
CHANGE_FIELDS(cancel);
CHANGE_FIELDS(retry);
CHANGE_FIELDS(hold);
CHANGE_FIELDS(release);

static json_t *count_json(struct gpq_call *c, int64_t n)
{
    return n < 0 ? NULL : gpq_reply_end(c, json_pack("{s:I}", "count", (json_int_t)n));
}

/* ---- Tasks ---- */

/* An operation of the store on the selected tasks. */
typedef int64_t operation(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                          struct gpq_error *e);

static int64_t hold(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                    struct gpq_error *e)
{
    return s->engine->hold(s, now, which, true, e);
}

static int64_t release(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                       struct gpq_error *e)
{
    return s->engine->hold(s, now, which, false, e);
}

static int64_t change(struct gpq_call *c, const struct gpq_field *fields, operation *op)
{
    struct gpq_which which = { 0 };
    int64_t n = gpq_call_read(c, fields, &which);
    if (n == 0)
        n = gpq_which_read(c, &which);
    if (n == 0)
        n = op(c->a->store, c->now, &which.select, c->e);
    gpq_which_free(&which);
    return n;
}

/* Q10: those that waited are over, and those that run have the wish. */
json_t *gpq_do_cancel(struct gpq_call *c)
{
    const struct gpq_store *s = c->a->store;
    uint64_t ended = 0, running = 0;
    size_t from = s->n_changes;
    if (change(c, gpq_cancel_fields, s->engine->cancel) < 0)
        return NULL;
    for (size_t i = from; i < s->n_changes; i++) {
        ended += s->changes[i].to == GPQ_DONE && s->changes[i].outcome == GPQ_OUTCOME_CANCELLED;
        running += s->changes[i].to == GPQ_RUNNING && s->changes[i].cancel;
    }
    return gpq_reply_end(
        c, json_pack("{s:I, s:I}", "ended", (json_int_t)ended, "running", (json_int_t)running));
}

json_t *gpq_do_retry(struct gpq_call *c)
{
    return count_json(c, change(c, gpq_retry_fields, c->a->store->engine->retry));
}

json_t *gpq_do_hold(struct gpq_call *c)
{
    return count_json(c, change(c, gpq_hold_fields, hold));
}

json_t *gpq_do_release(struct gpq_call *c)
{
    return count_json(c, change(c, gpq_release_fields, release));
}

/* ---- Batches ---- */

struct seal {
    uint32_t batch;
};

const struct gpq_field gpq_seal_fields[] = {
    GPQ_MEMBER(seal, batch, BATCH, 0, 0),
    { 0 },
};

json_t *gpq_do_seal(struct gpq_call *c)
{
    struct seal asked = { 0 };
    int code = gpq_call_read(c, gpq_seal_fields, &asked);
    if (code == 0 && asked.batch == 0)
        code = gpq_fail(c->e, GPQ_EINVAL, "the request has no member \"batch\"");
    if (code == 0)
        code = c->a->store->engine->seal(c->a->store, c->now, asked.batch, c->e);
    if (code == 0)
        gpq_recent_sealed(c->a, asked.batch);
    c->wish->batch = asked.batch;
    return code < 0 ? NULL : gpq_reply_end(c, json_object());
}

struct purge {
    uint64_t before;
    uint32_t most;
    bool keep_failed;
};
/* More of them in one commit would keep other clients waiting. */
enum { PURGE = 1000, PURGE_MOST = 10000 };

const struct gpq_field gpq_purge_fields[] = {
    GPQ_MEMBER(purge, before, U64, 1, INT64_MAX),
    GPQ_MEMBER(purge, keep_failed, BOOL, 0, 0),
    GPQ_MEMBER(purge, most, U32, 1, PURGE_MOST),
    { 0 },
};

json_t *gpq_do_purge(struct gpq_call *c)
{
    struct purge asked = { .most = PURGE };
    int64_t n = gpq_call_read(c, gpq_purge_fields, &asked);
    if (n == 0 && asked.before == 0)
        n = gpq_fail(c->e, GPQ_EINVAL, "the request has no member \"before\"");
    if (n == 0)
        n = c->a->store->engine->purge(c->a->store, asked.before, asked.keep_failed, asked.most,
                                       NULL, c->e);
    return count_json(c, n);
}
