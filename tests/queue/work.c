/* SPDX-License-Identifier: MIT */
/* work.c - random transactions of a store. */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "dump.h"
#include "harness.h"
#include "queue/files/save.h"

enum { ITEMS = 20, SPECS = 3, CONTENTS = 120, INLINE = 1024, FILE_SIZE = 5000 };

/* The code of a store that fails, or of a disk below it: the transaction is over. */
static bool fatal(int rc)
{
    return rc == GPQ_EIO || rc == GPQ_EDAMAGED || rc == GPQ_EFULL || rc == GPQ_ENOMEM;
}

static struct gpq_bytes bytes(const char *text)
{
    return (struct gpq_bytes){ text, text ? strlen(text) : 0 };
}

static uint64_t later(struct work *w)
{
    return w->now + draw_below(&w->seed, 40);
}

/* Returns a random task in one of these states, or NULL. */
static struct known_task *pick(struct work *w, uint32_t states)
{
    struct facts *f = &w->ledger->now;

    for (unsigned tries = 0; tries < 40 && f->n_tasks > 0; tries++) {
        struct known_task *t = &f->tasks[draw_below(&w->seed, (uint32_t)f->n_tasks)];
        if (states & (1U << t->state))
            return t;
    }
    for (size_t i = 0; i < f->n_tasks; i++)
        if (states & (1U << f->tasks[i].state))
            return &f->tasks[i];
    return NULL;
}

static uint32_t pick_batch(struct work *w)
{
    return w->ledger->now.last_batch ? 1 + draw_below(&w->seed, w->ledger->now.last_batch) : 0;
}

/* ---- Submit ---- */

static void request_name(uint64_t number, char ret[32])
{
    (void)snprintf(ret, 32, "request-%llu", (unsigned long long)number);
}

struct submit {
    struct gpq_submit what;
    struct gpq_spec specs[SPECS];
    struct gpq_item items[ITEMS];
    struct gpq_after after[3];
    uint32_t numbers[ITEMS]; /* of contents */
    char contents[ITEMS][16], request[32];
};

static void draw_after(struct work *w, struct submit *s, struct gpq_spec *spec)
{
    uint32_t n = draw_chance(&w->seed, 30) ? 1 + draw_below(&w->seed, 3) : 0;

    spec->after = s->after;
    for (; spec->n_after < n; spec->n_after++) {
        const struct known_task *t = pick(w, ~(1U << LEDGER_FORGOTTEN));
        uint32_t batch = pick_batch(w);
        if (!t)
            return;
        s->after[spec->n_after].id = draw_chance(&w->seed, 80) ? t->id : GPQ_TASK(batch, 0);
        s->after[spec->n_after].condition = draw_below(&w->seed, GPQ_CONDITIONS);
    }
}

static void draw_spec(struct work *w, struct submit *s, struct gpq_spec *spec)
{
    static const char *const shapes[] = { "1 gpu", "2 gpus", "cpu" };
    static const char *const environments[] = { "HOME=/root", "HOME=/home/a PATH=/usr/bin" };

    spec->content = bytes(draw_chance(&w->seed, 70) ? "class a" : "class b");
    spec->shape = bytes(shapes[draw_below(&w->seed, T_LENGTH(shapes))]);
    spec->environment = bytes(environments[draw_below(&w->seed, 2)]);
    spec->priority = (int32_t)draw_below(&w->seed, 3) - 1;
    for (unsigned i = 0; i < GPQ_CAUSES; i++)
        spec->retries[i] = draw_below(&w->seed, 3);
    spec->backoff = draw_below(&w->seed, 2) * 10;
    spec->backoff_cap = draw_below(&w->seed, 2) * 15;
    spec->begin = draw_chance(&w->seed, 10) ? later(w) : 0;
    spec->expires = draw_chance(&w->seed, 10) ? later(w) : 0;
    spec->at_most_once = draw_chance(&w->seed, 10);
    spec->held = draw_chance(&w->seed, 5);
    draw_after(w, s, spec);
}

static void draw_items(struct work *w, struct submit *s)
{
    const uint32_t most = draw_chance(&w->seed, 50) ? 3 : ITEMS;

    s->what.items = s->items;
    s->what.n_items = 1 + draw_below(&w->seed, most);
    for (uint32_t i = 0; i < s->what.n_items; i++) {
        struct gpq_item *item = &s->items[i];
        s->numbers[i] = draw_below(&w->seed, CONTENTS);
        ledger_content(s->numbers[i], s->contents[i]);
        item->spec = draw_below(&w->seed, s->what.n_specs);
        item->line = i + 1;
        item->content = bytes(s->contents[i]);
        if (s->numbers[i] % 10 == 0)
            item->key = item->content;
        if (draw_chance(&w->seed, 20))
            item->stamp = bytes(draw_chance(&w->seed, 80) ? "1" : "2");
    }
}

static void draw_submit(struct work *w, struct submit *s)
{
    static const char *const names[] = { "a", "b", "c", NULL };

    memset(s, 0, sizeof(*s));
    request_name(++w->sent, s->request);
    s->what.request = s->request;
    s->what.name = names[draw_below(&w->seed, 4)];
    s->what.at_once = draw_chance(&w->seed, 20) ? 1 + draw_below(&w->seed, 3) : 0;
    s->what.max_fails_percent = 100;
    s->what.fails_limited = draw_chance(&w->seed, 10);
    s->what.max_fails = draw_below(&w->seed, 3);
    s->what.open = draw_chance(&w->seed, 20);
    s->what.join = draw_chance(&w->seed, 40);
    s->what.specs = s->specs;
    s->what.n_specs = 1 + draw_below(&w->seed, SPECS);
    for (uint32_t i = 0; i < s->what.n_specs; i++)
        draw_spec(w, s, &s->specs[i]);
    draw_items(w, s);
    for (uint32_t i = 1; i < LEDGER_BATCHES && draw_chance(&w->seed, 20); i++)
        if (w->ledger->now.open[i])
            s->what.batch = i;
}

static int do_submit(struct work *w, struct gpq_error *e)
{
    struct facts *f = &w->ledger->now;
    struct gpq_submitted answer;
    struct gpq_placed placed[ITEMS];
    struct submit s;
    int rc;

    draw_submit(w, &s);
    rc = w->store->engine->submit(w->store, w->now, &s.what, &answer, placed, e);
    if (rc < 0)
        return rc;
    T_CHECK(!answer.repeated);
    T_CMP(answer.batch, <, LEDGER_BATCHES);
    f->open[answer.batch] = s.what.open;
    if (answer.batch > f->last_batch)
        f->last_batch = answer.batch;
    f->sent = (struct known_request){ w->sent, answer.batch, w->now };
    for (uint32_t i = 0; i < s.what.n_items; i++)
        if (placed[i].how == GPQ_PLACED_ADDED || placed[i].how == GPQ_PLACED_CHANGED)
            ledger_add(f, placed[i].task, s.numbers[i]);
    return 0;
}

static int do_seal(struct work *w, struct gpq_error *e)
{
    uint32_t batch = pick_batch(w);
    int rc = batch ? w->store->engine->seal(w->store, w->now, batch, e) : 0;

    if (rc == 0)
        w->ledger->now.open[batch] = false;
    return rc;
}

/* ---- Attempts ---- */

static int do_claim(struct work *w, struct gpq_error *e)
{
    struct known_task *t = pick(w, 1U << GPQ_READY);
    int64_t attempt;

    if (!t)
        return 0;
    attempt = w->store->engine->claim(w->store, w->now, t->id, "gpu:0", "run 1", e);
    if (attempt < 0)
        return (int)attempt;
    T_EQ(attempt, t->attempt + 1);
    t->attempt = (uint32_t)attempt;
    if (w->start_early)
        ledger_start(w->ledger, t->id, t->attempt);
    return 0;
}

/* Without the file the outcome is not stored, and the task goes on. */
static bool save_result(struct work *w, const struct gpq_end *end, const char *name)
{
    uint8_t data[FILE_SIZE];

    ledger_result(end->task, end->attempt, data, end->result_size);
    return gpq_save(w->files, w->results, name, data, end->result_size) == 0;
}

static int complete(struct work *w, struct known_task *t, uint32_t outcome, uint32_t size,
                    struct gpq_error *e)
{
    uint8_t data[INLINE];
    char name[40];
    struct gpq_end end = { .task = t->id,
                           .attempt = t->attempt,
                           .outcome = outcome,
                           .status = outcome == GPQ_OUTCOME_SUCCESS ? 0 : 1,
                           .text = outcome == GPQ_OUTCOME_SUCCESS ? NULL : "it failed",
                           .final = draw_chance(&w->seed, 20),
                           .oom = outcome == GPQ_OUTCOME_ERROR && draw_chance(&w->seed, 20),
                           .started = w->now,
                           .ended = w->now };
    int rc;

    if (outcome == GPQ_OUTCOME_SUCCESS && draw_chance(&w->seed, 20))
        end.stamp = bytes(draw_chance(&w->seed, 80) ? "1" : "2");
    if (size > INLINE) {
        end.result_size = size;
        ledger_file(t->id, t->attempt, name);
        end.result_file = name;
        if (!save_result(w, &end, name))
            return gpq_fail(e, GPQ_EREFUSED, "a result could not be saved");
    } else if (size > 0) {
        ledger_result(t->id, t->attempt, data, size);
        end.result = (struct gpq_bytes){ data, size };
    }
    rc = w->store->engine->complete(w->store, &end, e);
    if (rc >= 0)
        ledger_end(&w->ledger->now, &end);
    return rc;
}

static int do_complete(struct work *w, struct gpq_error *e)
{
    static const uint32_t outcomes[] = { GPQ_OUTCOME_SUCCESS,  GPQ_OUTCOME_SUCCESS,
                                         GPQ_OUTCOME_SUCCESS,  GPQ_OUTCOME_ERROR,
                                         GPQ_OUTCOME_TIMEOUT,  GPQ_OUTCOME_CRASHED,
                                         GPQ_OUTCOME_CANCELLED };
    struct known_task *t = pick(w, 1U << GPQ_RUNNING);
    uint32_t outcome = outcomes[draw_below(&w->seed, T_LENGTH(outcomes))], size = 0;

    if (outcome == GPQ_OUTCOME_SUCCESS && draw_chance(&w->seed, 70))
        size =
            draw_chance(&w->seed, 50) ? draw_below(&w->seed, 200) : draw_below(&w->seed, FILE_SIZE);
    return t ? complete(w, t, outcome, size, e) : 0;
}

static int do_give_back(struct work *w, struct gpq_error *e)
{
    struct known_task *t = pick(w, 1U << GPQ_RUNNING);

    if (!t)
        return 0;
    const struct gpq_back back = { .task = t->id,
                                   .attempt = t->attempt,
                                   .why = draw_below(&w->seed, GPQ_RETURNS),
                                   .text = "returned" };
    return w->store->engine->give_back(w->store, w->now, &back, e);
}

/* An attempt that is not the one that runs: nothing changes. */
static int do_stale(struct work *w, struct gpq_error *e)
{
    struct known_task *t = pick(w, ~0U);
    struct gpq_end end = { .outcome = GPQ_OUTCOME_SUCCESS, .ended = w->now };
    int rc;

    if (!t)
        return 0;
    end.task = t->id;
    end.attempt = t->state == GPQ_RUNNING ? t->attempt + 1 : t->attempt;
    rc = w->store->engine->complete(w->store, &end, e);
    if (!fatal(rc) && rc != (t->state == LEDGER_FORGOTTEN ? GPQ_ENOTFOUND : GPQ_ESTALE))
        T_FAIL("a late end of task %u.%u returned %d", GPQ_BATCH_OF(t->id), GPQ_NUMBER_OF(t->id),
               rc);
    return rc;
}

/* ---- Changes of selected tasks ---- */

/* Selects one task, or a batch, or a part of it. */
static struct gpq_select draw_select(struct work *w, uint32_t states, uint64_t *room)
{
    struct gpq_select s = { 0 };
    struct known_task *t = pick(w, states);

    *room = t ? t->id : 1;
    if (draw_chance(&w->seed, 60)) {
        s.tasks = room;
        s.n_tasks = 1;
        return s;
    }
    s.batch = GPQ_BATCH_OF(*room);
    if (draw_chance(&w->seed, 50)) {
        s.first = 1 + draw_below(&w->seed, 5);
        s.last = s.first + draw_below(&w->seed, 5);
    }
    return s;
}

static int count(int64_t n)
{
    return n < 0 ? (int)n : 0;
}

static int do_cancel(struct work *w, struct gpq_error *e)
{
    uint64_t id;
    struct gpq_select s = draw_select(w, ~(1U << GPQ_DONE), &id);

    return count(w->store->engine->cancel(w->store, w->now, &s, e));
}

static int do_retry(struct work *w, struct gpq_error *e)
{
    uint64_t id;
    struct gpq_select s = draw_select(w, 1U << GPQ_DONE, &id);

    if (draw_chance(&w->seed, 20))
        s.outcomes = 1U << GPQ_OUTCOME_SUCCESS;
    return count(w->store->engine->retry(w->store, w->now, &s, e));
}

static int do_hold(struct work *w, struct gpq_error *e)
{
    uint64_t id;
    struct gpq_select s = draw_select(w, 1U << GPQ_READY | 1U << GPQ_HELD, &id);

    return count(w->store->engine->hold(w->store, w->now, &s, draw_chance(&w->seed, 30), e));
}

static int do_respec(struct work *w, struct gpq_error *e)
{
    uint64_t id;
    struct gpq_select which = draw_select(w, 1U << GPQ_READY | 1U << GPQ_HELD, &id);
    struct submit s = { 0 };

    draw_spec(w, &s, &s.specs[0]);
    return count(w->store->engine->respec(w->store, w->now, &which, &s.specs[0], e));
}

static int do_first(struct work *w, struct gpq_error *e)
{
    uint64_t id;
    struct gpq_select s = draw_select(w, 1U << GPQ_READY | 1U << GPQ_HELD, &id);

    return count(w->store->engine->first(w->store, &s, e));
}

static int do_due(struct work *w, struct gpq_error *e)
{
    uint64_t next;

    return count(w->store->engine->due(w->store, w->now, &next, e));
}

static int do_purge(struct work *w, struct gpq_error *e)
{
    uint64_t before = w->now > WORK_KEPT ? w->now - WORK_KEPT : 0;
    int64_t n = w->store->engine->purge(w->store, before, draw_chance(&w->seed, 30),
                                        1 + draw_below(&w->seed, 20), NULL, e);

    if (n > 0)
        w->ledger->now.purged = true;
    return count(n);
}

/* ---- Facts ---- */

static int do_mark(struct work *w, struct gpq_error *e)
{
    const char *subject = draw_chance(&w->seed, 50) ? "gpu:0" : "";

    if (draw_chance(&w->seed, 40))
        return w->store->engine->unmark(w->store, "pause", subject, e);
    return w->store->engine->mark(w->store,
                                  &(struct gpq_mark){ "pause", subject, "a reason", w->now }, e);
}

static int do_span(struct work *w, struct gpq_error *e)
{
    struct gpq_span span = { .kind = "device",
                             .subject = "gpu:0",
                             .reason = "loading",
                             .text = "text",
                             .since = w->now,
                             .since_boot = w->now };
    uint64_t id;
    int rc = w->store->engine->span_begin(w->store, &span, &id, e);

    if (rc < 0 || draw_chance(&w->seed, 50))
        return rc;
    return w->store->engine->span_end(w->store, id, w->now + 1, w->now + 1, e);
}

/* ---- Transactions ---- */

static const struct {
    const char *name;
    int (*run)(struct work *w, struct gpq_error *e);
    uint32_t weight;
} operations[] = {
    { "submit", do_submit, 16 },     { "seal", do_seal, 2 },           { "claim", do_claim, 34 },
    { "complete", do_complete, 28 }, { "give_back", do_give_back, 4 }, { "stale", do_stale, 2 },
    { "cancel", do_cancel, 2 },      { "retry", do_retry, 3 },         { "hold", do_hold, 3 },
    { "respec", do_respec, 1 },      { "first", do_first, 1 },         { "due", do_due, 3 },
    { "purge", do_purge, 1 },        { "mark", do_mark, 1 },           { "span", do_span, 1 },
};

const char *work_name(unsigned operation)
{
    return operation < T_LENGTH(operations) ? operations[operation].name : NULL;
}

static unsigned draw_operation(struct work *w)
{
    uint32_t all = 0, at;
    unsigned i = 0;

    for (unsigned k = 0; k < T_LENGTH(operations); k++)
        all += operations[k].weight;
    at = draw_below(&w->seed, all);
    while (at >= operations[i].weight)
        at -= operations[i++].weight;
    return i;
}

/* Runs one operation.  One that is refused reports no change. */
static int operate(struct work *w, unsigned i, struct gpq_error *e)
{
    size_t before = w->store->n_changes;
    int rc = operations[i].run(w, e);

    w->done[i]++;
    if (fatal(rc))
        return rc;
    if (rc < 0) {
        w->refused[i]++;
        T_EQ(w->store->n_changes, before);
        return 0;
    }
    ledger_change(&w->ledger->now, w->store->changes + before, w->store->n_changes - before);
    return 0;
}

/* After the commit of a claim the command starts. */
static void start(struct ledger *l)
{
    for (size_t i = 0; i < l->now.n_tasks; i++) {
        const struct known_task *new = &l->now.tasks[i];
        uint32_t before = i < l->kept.n_tasks ? l->kept.tasks[i].attempt : 0;
        for (uint32_t a = before + 1; a <= new->attempt; a++)
            ledger_start(l, new->id, a);
    }
}

/* The commit of a transaction that has failed fails with the same code. */
static int commit_failed(struct work *w, int code)
{
    struct gpq_error e = { 0 };

    T_EQ(w->store->engine->commit(w->store, &e), code);
    T_EQ(e.code, code);
    text_free(&w->shown);
    return code;
}

static int commit(struct work *w, struct gpq_error *e)
{
    int rc = 0;

    text_free(&w->shown);
    if (w->show)
        rc = dump(w->store, &w->shown, e);
    if (rc < 0)
        return commit_failed(w, rc);
    rc = w->store->engine->commit(w->store, e);
    if (rc < 0)
        return rc;
    if (!w->start_early)
        start(w->ledger);
    ledger_keep(w->ledger);
    return 0;
}

static int roll_back(struct work *w)
{
    w->store->engine->rollback(w->store);
    ledger_drop(w->ledger);
    w->ledger->n_starts = w->ledger->kept_starts;
    return 1;
}

int work_transaction(struct work *w, struct gpq_error *e)
{
    uint32_t n = 1 + draw_below(&w->seed, 8);
    int rc = w->store->engine->begin(w->store, e);

    if (rc < 0)
        return rc;
    w->now += 1 + draw_below(&w->seed, 3);
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = operate(w, draw_operation(w), e);
    if (rc < 0)
        return commit_failed(w, rc);
    return draw_chance(&w->seed, 5) ? roll_back(w) : commit(w, e);
}

int work_send_again(struct work *w, struct gpq_error *e)
{
    const struct gpq_engine *o = w->store->engine;
    const struct known_request *sent = &w->ledger->kept.sent;
    struct gpq_spec spec = { .shape = bytes("1 gpu") };
    struct gpq_item item = { .content = bytes("item-0") };
    struct gpq_submit what = { .specs = &spec, .items = &item, .n_specs = 1, .n_items = 1 };
    struct gpq_submitted answer = { 0 };
    char request[32];
    int rc;

    if (sent->number == 0 || (w->ledger->kept.purged && sent->at + WORK_KEPT / 2 < w->now))
        return 1;
    request_name(sent->number, request);
    what.request = request;
    rc = o->begin(w->store, e);
    if (rc >= 0)
        rc = o->submit(w->store, w->now, &what, &answer, NULL, e);
    o->rollback(w->store);
    return rc < 0 ? rc : answer.repeated && answer.batch == sent->batch;
}

int work_one_task(struct work *w, struct gpq_error *e)
{
    const struct gpq_engine *o = w->store->engine;
    struct gpq_spec spec = { .shape = bytes("1 gpu") };
    struct gpq_item item = { .content = bytes("item-0") };
    struct gpq_submit what = {
        .request = "one task", .specs = &spec, .items = &item, .n_specs = 1, .n_items = 1
    };
    struct gpq_end end = { .outcome = GPQ_OUTCOME_SUCCESS, .ended = w->now };
    struct gpq_submitted answer;
    struct gpq_placed placed = { 0 };
    int64_t rc = o->begin(w->store, e);

    if (rc >= 0)
        rc = o->submit(w->store, w->now, &what, &answer, &placed, e);
    if (rc >= 0)
        rc = o->commit(w->store, e);
    if (rc >= 0)
        rc = o->begin(w->store, e);
    if (rc >= 0)
        rc = o->claim(w->store, w->now, placed.task, "gpu:0", "run 2", e);
    end.task = placed.task;
    end.attempt = (uint32_t)(rc > 0 ? rc : 0);
    if (rc >= 0)
        rc = o->commit(w->store, e);
    if (rc >= 0)
        rc = o->begin(w->store, e);
    if (rc >= 0)
        rc = o->complete(w->store, &end, e);
    if (rc >= 0)
        rc = o->commit(w->store, e);
    return (int)(rc < 0 ? rc : 0);
}
