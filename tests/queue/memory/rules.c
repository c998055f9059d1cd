/* SPDX-License-Identifier: MIT */
/* rules.c - what follows from a change. */
#include "rules.h"

#include <stdio.h>
#include <stdlib.h>

#include "operations.h"

enum verdict { OPEN, MET, IMPOSSIBLE };

void mem_end(struct mem_task *t, uint32_t outcome, uint64_t cause, uint64_t ended)
{
    mem_set_state(t, GPQ_DONE, ended);
    t->row.holds = 0;
    t->row.not_before = 0;
    t->row.outcome = outcome;
    t->row.cause = cause;
    t->row.ended = ended;
    t->touched = true;
    t->failed = outcome == GPQ_OUTCOME_ERROR || outcome == GPQ_OUTCOME_TIMEOUT ||
                outcome == GPQ_OUTCOME_CRASHED || outcome == GPQ_OUTCOME_NO_WORKER ||
                outcome == GPQ_OUTCOME_LOST;
}

void mem_place(struct mem_state *s, struct mem_task *t, uint64_t now)
{
    if (!t->row.holds && mem_batch(s, GPQ_BATCH_OF(t->row.id))->row.at_once)
        t->row.holds = GPQ_HOLD_TURN;
    mem_set_state(t, t->row.holds ? GPQ_HELD : GPQ_READY, now);
}

bool mem_has_edges(const struct mem_state *s, uint64_t task)
{
    MEM_EACH (const struct mem_edge, edge, s, edges)
        if (edge->task == task)
            return true;
    return false;
}

bool mem_is_awaited(const struct mem_state *s, uint64_t source)
{
    MEM_EACH (const struct mem_edge, edge, s, edges)
        if (edge->after.id == source && !edge->met &&
            mem_task((struct mem_state *)s, edge->task)->row.holds & GPQ_HOLD_AFTER)
            return true;
    return false;
}

void mem_hold_new(struct mem_state *s, struct mem_task *t, uint64_t now, bool held)
{
    const struct gpq_spec *spec = &mem_spec(s, t->row.spec)->spec;

    t->row.holds = 0;
    t->row.not_before = 0;
    if (mem_has_edges(s, t->row.id))
        t->row.holds |= GPQ_HOLD_AFTER;
    if (held || mem_batch(s, GPQ_BATCH_OF(t->row.id))->row.held)
        t->row.holds |= GPQ_HOLD_USER;
    if (spec->begin > now) {
        t->row.holds |= GPQ_HOLD_TIME;
        t->row.not_before = spec->begin;
    }
    t->touched = true;
    mem_place(s, t, now);
}

/* The last attempt of the task's present round; 0 = none. */
static uint32_t last_attempt(const struct mem_state *s, const struct mem_task *t)
{
    uint32_t last = 0;

    MEM_EACH (const struct gpq_attempt, a, s, attempts)
        if (a->task == t->row.id && a->round == t->row.round)
            last = a->number;
    return last;
}

void mem_new_round(struct mem_store *m, struct mem_task *t, uint32_t spec, uint64_t now, bool held)
{
    struct mem_state *s = &m->now;
    const struct gpq_spec *content = &mem_spec(s, spec)->spec;

    *MEM_ADD(s, rounds) = (struct mem_round){
        .task = t->row.id,
        .row = { .round = t->row.round,
                 .outcome = t->row.outcome,
                 .attempt = last_attempt(s, t),
                 .ended = t->row.ended,
                 .cause = t->row.cause },
    };
    t->row.round++;
    t->row.charged = t->row.losses = t->row.outcome = 0;
    t->row.cancel = false;
    t->row.ended = t->row.cause = 0;
    t->row.stamp = (struct gpq_bytes){ 0 };
    t->failed = false;
    t->row.spec = spec;
    t->row.shape = mem_shape_of(m, content->shape);
    t->row.priority = content->priority;
    t->row.expires = content->expires;
    MEM_EACH (struct mem_edge, edge, s, edges)
        if (edge->task == t->row.id)
            edge->met = false;
    MEM_EACH (struct mem_batch, b, s, batches)
        if (mem_is_in(s, t->row.id, b->row.id)) {
            b->row.ended = 0;
            b->noted = false;
        }
    mem_hold_new(s, t, now, held);
}

static enum verdict verdict_of_task(const struct gpq_task *t, uint32_t condition)
{
    if (t->state != GPQ_DONE)
        return OPEN;
    if (condition == GPQ_AFTER_ENDED)
        return MET;
    return (t->outcome == GPQ_OUTCOME_SUCCESS) == (condition == GPQ_AFTER_OK) ? MET : IMPOSSIBLE;
}

static enum verdict verdict_of_batch(const struct gpq_batch *counted, uint32_t condition)
{
    bool all_succeeded = counted->outcome[GPQ_OUTCOME_SUCCESS] == counted->total;

    if (!counted->ended)
        return OPEN;
    if (condition == GPQ_AFTER_ENDED)
        return MET;
    return all_succeeded == (condition == GPQ_AFTER_OK) ? MET : IMPOSSIBLE;
}

static enum verdict verdict_of(struct mem_state *s, const struct gpq_after *after)
{
    if (GPQ_NUMBER_OF(after->id))
        return verdict_of_task(&mem_task(s, after->id)->row, after->condition);

    struct gpq_batch counted = mem_count(s, mem_batch(s, GPQ_BATCH_OF(after->id)));

    return verdict_of_batch(&counted, after->condition);
}

/* Edges of a task lie in the order of their sources.  Returns true if the task has changed. */
static bool judge(struct mem_state *s, struct mem_task *t, uint64_t now)
{
    const struct mem_edge *impossible = NULL;
    bool open = false;

    MEM_EACH (struct mem_edge, edge, s, edges) {
        if (edge->task != t->row.id || edge->met)
            continue;

        enum verdict v = verdict_of(s, &edge->after);

        edge->met = v == MET;
        open |= v == OPEN;
        if (v == IMPOSSIBLE && !impossible)
            impossible = edge;
    }
    if (impossible) {
        mem_end(t, GPQ_OUTCOME_SKIPPED, impossible->after.id, now);
    } else if (!open) {
        t->row.holds &= ~(uint32_t)GPQ_HOLD_AFTER;
        mem_place(s, t, now);
    }
    return impossible || !open;
}

static bool judge_all(struct mem_state *s, uint64_t now)
{
    bool changed = false;

    MEM_EACH (struct mem_task, t, s, tasks)
        if (t->row.holds & GPQ_HOLD_AFTER)
            changed |= judge(s, t, now);
    return changed;
}

static void note_end(struct mem_store *m, uint32_t batch, uint64_t now)
{
    char subject[16];
    struct gpq_error e;

    (void)snprintf(subject, sizeof(subject), "%u", batch);
    (void)mem_mark(&m->store, &(struct gpq_mark){ "notify", subject, NULL, now }, &e);
    m->store.notes = true;
}

static void note_last_end(struct mem_state *s, struct mem_batch *b)
{
    MEM_EACH (const struct mem_task, t, s, tasks)
        if (mem_is_in(s, t->row.id, b->row.id) && t->row.ended > b->last_end)
            b->last_end = t->row.ended;
}

static bool end_batches(struct mem_store *m, uint64_t now)
{
    struct mem_state *s = &m->now;
    bool changed = false;

    MEM_EACH (struct mem_batch, b, s, batches) {
        struct gpq_batch counted = mem_count(s, b);

        note_last_end(s, b);
        if (b->row.ended || b->row.open || counted.state[GPQ_DONE] != counted.total)
            continue;
        b->last_end = now > b->last_end ? now : b->last_end;
        b->row.ended = b->last_end;
        b->noted = b->row.notify;
        changed = now != 0;
    }
    return changed;
}

static bool is_over_limit(const struct gpq_batch *counted)
{
    uint64_t fails = (uint64_t)counted->outcome[GPQ_OUTCOME_ERROR] +
                     counted->outcome[GPQ_OUTCOME_TIMEOUT] + counted->outcome[GPQ_OUTCOME_CRASHED] +
                     counted->outcome[GPQ_OUTCOME_NO_WORKER] + counted->outcome[GPQ_OUTCOME_LOST];
    uint64_t percent = counted->max_fails_percent;

    return (counted->fails_limited && fails > counted->max_fails) ||
           (percent && percent < 100 && fails * 100 > percent * counted->total);
}

/* Cancels what waits in batches in which a task has just failed, and that are over their limit. */
static bool enforce_limits(struct mem_state *s, uint64_t now)
{
    bool changed = false;

    MEM_EACH (const struct mem_batch, b, s, batches) {
        struct gpq_batch counted = mem_count(s, b);
        bool failed = false;

        MEM_EACH (const struct mem_task, t, s, tasks)
            failed |= t->failed && mem_is_in(s, t->row.id, b->row.id);
        if (!failed || !is_over_limit(&counted))
            continue;
        MEM_EACH (struct mem_task, t, s, tasks) {
            if (!mem_is_own(t, b->row.id) || !mem_waits(t))
                continue;
            mem_end(t, GPQ_OUTCOME_CANCELLED, GPQ_TASK(b->row.id, 0), now);
            changed = true;
        }
    }
    MEM_EACH (struct mem_task, t, s, tasks)
        t->failed = false;
    return changed;
}

struct mem_task *mem_next_in_turn(struct mem_state *s, uint32_t batch)
{
    struct mem_task *best = NULL;

    MEM_EACH (struct mem_task, t, s, tasks)
        if (mem_is_own(t, batch) && t->row.holds == GPQ_HOLD_TURN &&
            (!best || t->row.priority > best->row.priority ||
             (t->row.priority == best->row.priority && t->row.order < best->row.order)))
            best = t;
    return best;
}

static void give_turns(struct mem_state *s, uint64_t now)
{
    MEM_EACH (const struct mem_batch, b, s, batches) {
        uint32_t active = 0;
        struct mem_task *next;

        if (!b->row.at_once)
            continue;
        MEM_EACH (const struct mem_task, t, s, tasks)
            active += mem_is_own(t, b->row.id) &&
                      (t->row.state == GPQ_READY || t->row.state == GPQ_RUNNING);
        while (active < b->row.at_once && (next = mem_next_in_turn(s, b->row.id))) {
            next->row.holds = 0;
            mem_set_state(next, GPQ_READY, now);
            active++;
        }
    }
}

void mem_settle(struct mem_store *m, uint64_t now)
{
    bool changed;

    do {
        do {
            changed = judge_all(&m->now, now);
            changed |= end_batches(m, now);
        } while (changed);
        changed = enforce_limits(&m->now, now);
    } while (changed);
}

void mem_change(struct mem_store *m, const struct mem_task *t, uint32_t to)
{
    size_t n = m->store.n_changes++;

    m->store.changes = realloc(m->store.changes, (n + 1) * sizeof(*m->store.changes));
    if (!m->store.changes)
        abort();
    m->store.changes[n] = (struct gpq_change){
        .task = t->row.id,
        .shape = t->row.shape,
        .from = (uint8_t)t->was,
        .to = (uint8_t)to,
        .outcome = (uint8_t)t->row.outcome,
        .cancel = t->wished,
    };
}

/* A batch that ends in the middle of an operation, and goes on with its next item, has not. */
static void note_ends(struct mem_store *m, uint64_t now)
{
    MEM_EACH (struct mem_batch, b, &m->now, batches) {
        if (b->noted)
            note_end(m, b->row.id, now);
        b->noted = false;
    }
}

void mem_done(struct mem_store *m, uint64_t now)
{
    mem_settle(m, now);
    note_ends(m, now);
    give_turns(&m->now, now);
    MEM_EACH (struct mem_task, t, &m->now, tasks) {
        if (t->touched || t->was != t->row.state)
            mem_change(m, t, t->row.state);
        t->was = t->row.state;
        t->touched = t->wished = false;
    }
}
