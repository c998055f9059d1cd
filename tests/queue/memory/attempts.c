/* SPDX-License-Identifier: MIT */
/* attempts.c - claim, complete and give_back: the life of one attempt. */
#include "operations.h"
#include "rules.h"

#include <string.h>

int64_t mem_claim(struct gpq_store *store, uint64_t now, uint64_t task, const char *devices,
                  const char *run, struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);
    struct mem_task *t = mem_task(&m->now, task);

    if (!m->within)
        return gpq_fail(e, GPQ_EINVAL, "claim: no transaction");
    if (!t)
        return gpq_fail(e, GPQ_ENOTFOUND, "claim: no such task");
    if (t->row.state != GPQ_READY)
        return gpq_fail(e, GPQ_ESTALE, "claim: the task is %s", gpq_state_text(t->row.state));
    mem_set_state(t, GPQ_RUNNING, now);
    t->row.attempt++;
    t->row.charged++;
    *MEM_ADD(&m->now, attempts) = (struct gpq_attempt){
        .task = task,
        .number = t->row.attempt,
        .round = t->row.round,
        .ready = t->row.ready,
        .claimed = now,
        .charged = true,
        .devices = mem_text(m, devices),
        .run = mem_text(m, run),
    };

    uint32_t number = t->row.attempt;

    mem_done(m, now);
    return number;
}

/* The task with this running attempt; else NULL, and *ret_code with *e. */
static struct mem_task *running(struct mem_store *m, uint64_t task, uint32_t attempt, int *ret_code,
                                struct gpq_error *e)
{
    struct mem_task *t = mem_task(&m->now, task);

    if (!m->within)
        *ret_code = gpq_fail(e, GPQ_EINVAL, "attempt: no transaction");
    else if (!t)
        *ret_code = gpq_fail(e, GPQ_ENOTFOUND, "attempt: no such task");
    else if (t->row.state != GPQ_RUNNING || t->row.attempt != attempt)
        *ret_code = gpq_fail(e, GPQ_ESTALE, "attempt %u does not run", attempt);
    else
        return t;
    return NULL;
}

static bool is_retried(const struct mem_task *t, const struct gpq_spec *spec,
                       const struct gpq_end *end)
{
    static const uint32_t cause[GPQ_OUTCOMES] = {
        [GPQ_OUTCOME_ERROR] = GPQ_CAUSE_ERROR,
        [GPQ_OUTCOME_TIMEOUT] = GPQ_CAUSE_TIMEOUT,
        [GPQ_OUTCOME_CRASHED] = GPQ_CAUSE_CRASH,
    };

    if (end->outcome == GPQ_OUTCOME_SUCCESS || end->outcome >= GPQ_OUTCOME_CANCELLED)
        return false;
    if (end->final || t->row.cancel)
        return false;
    return t->row.charged <= spec->retries[cause[end->outcome]] ||
           (end->oom && t->row.charged <= spec->retries[GPQ_CAUSE_OOM]);
}

static uint64_t backoff_of(const struct gpq_spec *spec, uint32_t charged)
{
    uint64_t backoff = spec->backoff;

    for (uint32_t i = 1; i < charged && backoff; i++)
        backoff = backoff > UINT64_MAX / 2 ? UINT64_MAX : backoff * 2;
    return spec->backoff_cap && backoff > spec->backoff_cap ? spec->backoff_cap : backoff;
}

/* The task keeps its turn where it need not wait. */
static void await_retry(struct mem_store *m, struct mem_task *t, const struct gpq_end *end)
{
    uint64_t backoff = backoff_of(&mem_spec(&m->now, t->row.spec)->spec, t->row.charged);

    if (end->shape.size)
        t->row.shape = mem_shape_of(m, end->shape);
    t->row.expires = 0;
    mem_set_state(t, backoff ? GPQ_HELD : GPQ_READY, end->ended);
    t->row.holds = backoff ? GPQ_HOLD_TIME : 0;
    t->row.not_before = backoff ? end->ended + backoff : 0;
}

static void store_result(struct mem_store *m, const struct gpq_end *end, uint32_t round)
{
    if (!end->result.size && !end->result_file)
        return;

    struct mem_result *new = MEM_ADD(&m->now, results);

    new->round = round;
    new->row = (struct gpq_result){
        .task = end->task,
        .attempt = end->attempt,
        .size = end->result_file ? end->result_size : end->result.size,
        .data = end->result_file ? (struct gpq_bytes){ 0 } : mem_bytes(m, end->result),
        .file = mem_text(m, end->result_file),
    };
}

int mem_complete(struct gpq_store *store, const struct gpq_end *end, struct gpq_error *e)
{
    struct mem_store *m = mem_of(store);
    int code = 0;

    if (end->ended == 0)
        return gpq_fail(e, GPQ_EINVAL, "complete: ended is 0");
    if (end->outcome < GPQ_OUTCOME_SUCCESS || end->outcome > GPQ_OUTCOME_NO_WORKER)
        return gpq_fail(e, GPQ_EINVAL, "complete: %u is no outcome of an attempt", end->outcome);

    if (end->said && strlen(end->said) > GPQ_SAID)
        return gpq_fail(e, GPQ_EINVAL, "complete: said has more than %d bytes", GPQ_SAID);

    struct mem_task *t = running(m, end->task, end->attempt, &code, e);

    if (!t)
        return code;

    struct gpq_attempt *a = mem_attempt(&m->now, end->task, end->attempt);

    a->outcome = end->outcome;
    a->started = end->started;
    a->ended = end->ended;
    a->status = end->status;
    a->text = mem_text(m, end->text);
    if (end->devices)
        a->devices = mem_text(m, end->devices);
    t->row.losses = 0;
    if (end->outcome == GPQ_OUTCOME_SUCCESS)
        t->row.stamp = mem_bytes(m, end->stamp);
    else
        a->said = mem_text(m, end->said);

    bool retried = is_retried(t, &mem_spec(&m->now, t->row.spec)->spec, end);

    if (retried) {
        await_retry(m, t, end);
    } else {
        store_result(m, end, t->row.round);
        mem_end(t, end->outcome, 0, end->ended);
    }
    mem_done(m, end->ended);
    return !retried;
}

int mem_give_back(struct gpq_store *store, uint64_t now, const struct gpq_back *back,
                  struct gpq_error *e)
{
    enum { LOSSES = 3 };
    struct mem_store *m = mem_of(store);
    const uint32_t why = back->why;
    int code = 0;

    if (why >= GPQ_RETURNS || back->started > INT64_MAX)
        return gpq_fail(e, GPQ_EINVAL, "give_back: %u is no reason", why);

    struct mem_task *t = running(m, back->task, back->attempt, &code, e);

    if (!t)
        return code;

    struct gpq_attempt *a = mem_attempt(&m->now, back->task, back->attempt);

    a->charged = false;
    a->returned = why;
    a->returned_at = now;
    a->text = mem_text(m, back->text);
    a->started = back->started;
    if (back->devices)
        a->devices = mem_text(m, back->devices);
    t->row.charged--;
    t->row.losses += why == GPQ_RETURN_LOST || why == GPQ_RETURN_DEVICE;
    if (why != GPQ_RETURN_UNSTARTED)
        t->row.expires = 0;

    bool once = mem_spec(&m->now, t->row.spec)->spec.at_most_once && why != GPQ_RETURN_UNSTARTED;

    if (t->row.cancel)
        mem_end(t, GPQ_OUTCOME_CANCELLED, 0, now);
    else if (once || t->row.losses >= LOSSES)
        mem_end(t, GPQ_OUTCOME_LOST, 0, now);
    else
        mem_set_state(t, GPQ_READY, now);

    bool ended = t->row.state == GPQ_DONE;

    mem_done(m, now);
    return ended;
}
