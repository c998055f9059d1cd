/* SPDX-License-Identifier: MIT */
/* operations.c - the random operations of a world. */
#include "draws.h"

#include <inttypes.h>

#define EACH_STORE(i) for (int i = 0; i < STORES; i++)

static void returned(struct world *w, int i, int64_t code, const struct gpq_error *e)
{
    view_add(&w->got[i], "returned %" PRId64 "\n", code);
    if (code < 0 && (e->code != code || !e->text[0]))
        view_add(&w->got[i], "without its error\n");
}

/* ---- Submit and seal ---- */

static void op_submit(struct world *w)
{
    struct order o;

    view_add(&w->said, "submit");
    draw_order(w, &o);
    EACH_STORE (i) {
        struct gpq_placed placed[ITEMS] = { 0 };
        struct gpq_submitted ret = { .batch = 999 };
        struct gpq_error e = { 0 };
        int code = ENGINE(w, i)->submit(w->store[i], w->now, &o.what, &ret, placed, &e);

        returned(w, i, code, &e);
        view_add(&w->got[i], "batch %u added %u joined %u again %u changed %u%s\n", ret.batch,
                 ret.count[0], ret.count[1], ret.count[2], ret.count[3],
                 ret.repeated ? " repeated" : "");
        for (uint32_t k = 0; !code && !ret.repeated && k < o.what.n_items; k++)
            view_add(&w->got[i], "placed %s %u\n", view_id(placed[k].task), placed[k].how);
    }
}

static void op_seal(struct world *w)
{
    uint32_t batch = draw_batch(w, true);

    view_add(&w->said, "seal %u", batch);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->seal(w->store[i], w->now, batch, &e), &e);
    }
}

/* ---- Attempts ---- */

static void op_claim(struct world *w)
{
    uint64_t task = draw_task(w, 1U << GPQ_READY);
    const char *devices = world_below(w, 2) ? "0,1" : NULL;

    view_add(&w->said, "claim %s", view_id(task));
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->claim(w->store[i], w->now, task, devices, "boot", &e), &e);
    }
}

static uint32_t draw_attempt(struct world *w, uint64_t task)
{
    uint32_t attempt = draw_seen(w, MODEL, task).attempt;

    return world_once_in(w, 15) ? attempt + 1 - 2 * (uint32_t)world_below(w, 2) : attempt;
}

static void op_complete(struct world *w)
{
    static const uint32_t outcome[] = { 1, 1, 1, 1, 2, 2, 2, 3, 4, 5 };
    static const char *const stamp[] = { NULL, "1", "2" };
    struct gpq_end end = {
        .task = draw_task(w, 1U << GPQ_RUNNING),
        .outcome = world_once_in(w, 200) ? 7 : PICK(w, outcome),
        .oom = world_once_in(w, 4),
        .final = world_once_in(w, 6),
        .status = (int32_t)world_below(w, 3) - 1,
        .text = world_below(w, 2) ? "so" : NULL,
        .said = world_below(w, 2) ? "no such file" : NULL,
        .devices = world_once_in(w, 3) ? "2,3" : NULL,
        .started = w->now - 1,
        .ended = w->now,
        .result = draw_bytes(world_once_in(w, 3) ? "result" : NULL),
        .result_file = world_once_in(w, 6) ? "file" : NULL,
        .result_size = 7,
        .stamp = draw_bytes(PICK(w, stamp)),
        .shape = draw_bytes(world_once_in(w, 5) ? "bigger" : NULL),
    };

    end.attempt = draw_attempt(w, end.task);
    view_add(&w->said, "complete %s attempt %u %s%s%s", view_id(end.task), end.attempt,
             gpq_outcome_text(end.outcome), end.oom ? " oom" : "", end.final ? " final" : "");
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->complete(w->store[i], &end, &e), &e);
    }
}

static void op_give_back(struct world *w)
{
    uint64_t task = draw_task(w, 1U << GPQ_RUNNING);
    uint32_t attempt = draw_attempt(w, task), why = (uint32_t)world_below(w, GPQ_RETURNS);

    if (world_once_in(w, 200))
        why = GPQ_RETURNS;
    view_add(&w->said, "give back %s attempt %u why %u", view_id(task), attempt, why);
    const struct gpq_back back = { .task = task,
                                   .attempt = attempt,
                                   .why = why,
                                   .text = "text",
                                   .devices = world_once_in(w, 2) ? "gpu:1" : NULL,
                                   .started = world_once_in(w, 2) ? w->now : 0 };
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->give_back(w->store[i], w->now, &back, &e), &e);
    }
}

/* ---- Changes of many ---- */

static void op_cancel(struct world *w)
{
    struct choice c;

    view_add(&w->said, "cancel");
    draw_choice(w, &c, WAITING | 1U << GPQ_RUNNING);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->cancel(w->store[i], w->now, draw_chosen(w, i, &c), &e), &e);
    }
}

static void op_retry(struct world *w)
{
    struct choice c;

    view_add(&w->said, "retry");
    draw_choice(w, &c, 1U << GPQ_DONE);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->retry(w->store[i], w->now, draw_chosen(w, i, &c), &e), &e);
    }
}

static void op_hold(struct world *w)
{
    struct choice c;
    bool held = world_below(w, 2);

    view_add(&w->said, held ? "hold" : "release");
    draw_choice(w, &c, WAITING);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->hold(w->store[i], w->now, draw_chosen(w, i, &c), held, &e),
                 &e);
    }
}

static void op_respec(struct world *w)
{
    struct choice c;
    struct gpq_spec spec;

    view_add(&w->said, "respec");
    draw_choice(w, &c, WAITING);
    draw_spec(w, &spec);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->respec(w->store[i], w->now, draw_chosen(w, i, &c), &spec, &e),
                 &e);
    }
}

static void op_first(struct world *w)
{
    struct choice c;

    view_add(&w->said, "first");
    draw_choice(w, &c, WAITING);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->first(w->store[i], draw_chosen(w, i, &c), &e), &e);
    }
}

static void op_due(struct world *w)
{
    view_add(&w->said, "due");
    EACH_STORE (i) {
        uint64_t next = 999;
        struct gpq_error e = { 0 };

        returned(w, i, ENGINE(w, i)->due(w->store[i], w->now, &next, &e), &e);
        view_add(&w->got[i], "next %" PRIu64 "\n", next);
    }
}

static void op_purge(struct world *w)
{
    uint64_t before = w->now - world_below(w, 100);
    bool keep_failed = world_below(w, 2);
    uint32_t most = world_below(w, 2) ? 1000 : (uint32_t)world_below(w, 4);
    bool parts = world_below(w, 2);
    uint64_t from = parts && world_below(w, 2) ? draw_task(w, 1U << GPQ_DONE) : 0;

    view_add(&w->said, "purge before %" PRIu64 "%s most %u%s", before,
             keep_failed ? " keep failed" : "", most, parts ? " in parts" : "");
    EACH_STORE (i) {
        struct gpq_error e = { 0 };
        uint64_t at = from;

        returned(
            w, i,
            ENGINE(w, i)->purge(w->store[i], before, keep_failed, most, parts ? &at : NULL, &e),
            &e);
        view_add(&w->got[i], "looked up to %s\n", view_id(at));
    }
}

/* ---- Facts ---- */

static void op_mark(struct world *w)
{
    static const char *const kind[] = { "pause", "drain" };
    static const char *const subject[] = { "", "gpu 0" };
    const struct gpq_mark mark = { .kind = PICK(w, kind),
                                   .subject = PICK(w, subject),
                                   .text = world_below(w, 2) ? "why" : NULL,
                                   .since = w->now };
    bool set = world_below(w, 2);

    view_add(&w->said, "%s %s '%s'", set ? "mark" : "unmark", mark.kind, mark.subject);
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        returned(w, i,
                 set ? ENGINE(w, i)->mark(w->store[i], &mark, &e)
                     : ENGINE(w, i)->unmark(w->store[i], mark.kind, mark.subject, &e),
                 &e);
    }
}

static void op_span(struct world *w)
{
    const struct gpq_span span = { .kind = "device",
                                   .subject = "0",
                                   .since = w->now,
                                   .reason = world_below(w, 2) ? "kept" : NULL,
                                   .text = world_below(w, 2) ? "for 1.2" : NULL,
                                   .until = world_once_in(w, 3) ? w->now : 0,
                                   .since_boot = 5,
                                   .boot = world_below(w, 2) ? "boot" : NULL };
    uint32_t at = w->n_spans ? (uint32_t)world_below(w, w->n_spans) : 0;
    bool begin = at == w->n_spans || (w->n_spans < SPANS && world_below(w, 2));

    view_add(&w->said, begin ? "span begins" : "span ends");
    EACH_STORE (i) {
        struct gpq_error e = { 0 };

        if (begin)
            returned(w, i,
                     ENGINE(w, i)->span_begin(w->store[i], &span, &w->span[w->n_spans][i], &e), &e);
        else
            returned(w, i, ENGINE(w, i)->span_end(w->store[i], w->span[at][i], w->now, 8, &e), &e);
    }
    w->n_spans += begin;
}

void world_operate(struct world *w)
{
    static const struct {
        uint32_t weight;
        void (*run)(struct world *w);
    } operation[] = {
        { 18, op_submit }, { 22, op_claim }, { 20, op_complete }, { 7, op_give_back },
        { 4, op_seal },    { 5, op_cancel }, { 7, op_retry },     { 6, op_hold },
        { 4, op_respec },  { 4, op_first },  { 7, op_due },       { 4, op_purge },
        { 1, op_mark },    { 1, op_span },
    };
    uint64_t total = 0, at, i = 0;

    for (size_t k = 0; k < T_LENGTH(operation); k++)
        total += operation[k].weight;
    for (at = world_below(w, total); at >= operation[i].weight; i++)
        at -= operation[i].weight;
    operation[i].run(w);
}
