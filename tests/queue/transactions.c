/* SPDX-License-Identifier: MIT */
/* transactions.c - Q1: commits and rollbacks; marks, spans, results; calls at the wrong time. */
#include "steps.h"

#include <string.h>

#include "view.h"

#define T1 GPQ_TASK(1, 1)

/* Q1: a transaction is one change: all or none. */
BOTH(a_rollback_leaves_nothing)
{
    struct view before = { 0 }, after = { 0 };
    const char *a, *b;
    uint64_t next;

    SUBMIT(s, .name = "a", .items = "x y z", .at_once = 1, .request = "r");
    run(s, T1, GPQ_OUTCOME_ERROR);
    view_store(&before, s, true);
    step_begin(s);
    SUBMIT(s, .name = "a", .items = "x q", .join = true, .shape = "new", .open = true);
    first(s, ALL);
    run(s, GPQ_TASK(1, 2), GPQ_OUTCOME_SUCCESS);
    hold(s, ALL, true);
    due(s, 99999, &next);
    cancel(s, ALL);
    purge(s, 99999, false, 99);
    step_rollback(s);
    view_store(&after, s, true);
    view_difference(&before, &after, &a, &b);
    T_CHECK(!a);
    T_EQ(SUBMIT(s, .items = "x"), 2);
    T_EQ(task(s, GPQ_TASK(2, 1)).order, 4);
    T_EQ(first(s, ONE(GPQ_TASK(2, 1))), 1);
    T_EQ(task(s, GPQ_TASK(2, 1)).order, -1);
    view_free(&before);
    view_free(&after);
}

/* An operation that is refused has changed nothing, and the transaction goes on. */
BOTH(a_refusal_within_a_transaction)
{
    step_begin(s);
    SUBMIT(s, .name = "a", .items = "x", .key = "k");
    T_EQ(TRY_SUBMIT(s, .name = "a", .items = "q r", .join = true, .batch = 9), GPQ_ENOTFOUND);
    T_EQ(TRY_SUBMIT(s, .name = "a", .items = "y", .key = "k", .join = true), GPQ_EKEY);
    T_EQ(try_claim(s, GPQ_TASK(4, 4)), GPQ_ENOTFOUND);
    claim(s, T1);
    T_EQ(s->n_changes, 2);
    step_commit(s);
    T_TEXT(listed(s, ALL), "1.1");
    T_CHECK(!batch_is_there(s, 2));
    T_TEXT(shown(s, T1), "running 1");
    T_EQ(SUBMIT(s, .items = "z"), 2);
}

/* To learn only what a submit would do: begin, submit, rollback. */
BOTH(a_submit_on_trial)
{
    SUBMIT(s, .name = "a", .items = "x");
    step_begin(s);
    T_TEXT(PLACED(s, .name = "a", .items = "x y", .join = true), "1 1 0 0");
    step_rollback(s);
    T_TEXT(PLACED(s, .name = "a", .items = "x y", .join = true), "1 1 0 0");
}

/* Q1: what was committed is there after the file is opened again; and nothing else. */
T_CASE(it_is_there_when_opened_again)
{
    struct gpq_store *s = engine_open(SQLITE, "state", NULL);
    struct view before = { 0 }, after = { 0 };
    const char *a, *b;

    SUBMIT(s, .name = "a", .items = "x y", .at_once = 1);
    first(s, ONE(GPQ_TASK(1, 2)));
    claim(s, T1);
    view_store(&before, s, true);
    step_begin(s);
    SUBMIT(s, .items = "z");
    cancel(s, ALL);
    s->engine->close(s);
    s = engine_open(SQLITE, "state", NULL);
    view_store(&after, s, true);
    view_difference(&before, &after, &a, &b);
    T_CHECK(!a);
    step_rollback(s); /* harmless; the case's own transaction is over, too */
    T_EQ(SUBMIT(s, .items = "z"), 2);
    T_EQ(task(s, GPQ_TASK(2, 1)).order, 3);
    s->engine->close(s);
    view_free(&before);
    view_free(&after);
}

BOTH(changes_without_a_transaction)
{
    const struct gpq_mark mark = { .kind = "pause", .subject = "" };
    struct gpq_error e = { 0 };
    struct gpq_store *t = s;

    SUBMIT(s, .items = "x");
    T_EQ(t->engine->claim(t, NOW, T1, NULL, NULL, &e), GPQ_EINVAL);
    T_EQ(e.code, GPQ_EINVAL);
    T_EQ(t->engine->cancel(t, NOW, ALL, &e), GPQ_EINVAL);
    T_EQ(t->engine->mark(t, &mark, &e), GPQ_EINVAL);
    T_EQ(t->engine->commit(t, &e), GPQ_EINVAL);
    t->engine->rollback(t); /* harmless */
    step_begin(s);
    T_EQ(t->engine->begin(t, &e), GPQ_EINVAL);
    claim(s, T1);
    step_commit(s);
    T_TEXT(shown(s, T1), "running 1");
}

BOTH(what_is_unknown)
{
    struct gpq_store *t = s;
    struct gpq_error e = { 0 };

    step_begin(s);
    T_EQ(t->engine->seal(t, NOW, 7, &e), GPQ_ENOTFOUND);
    T_EQ(t->engine->hold(t, NOW, BATCH(7), true, &e), 0);
    T_EQ(t->engine->cancel(t, NOW, ONE(T1), &e), 0);
    T_EQ(t->engine->unmark(t, "pause", "", &e), GPQ_ENOTFOUND);
    T_EQ(t->engine->span_end(t, 7, NOW, NOW, &e), GPQ_ENOTFOUND);
    T_EQ(t->engine->spec(t, 7, NULL, NULL, &e), GPQ_ENOTFOUND);
    T_EQ(t->engine->attempts(t, T1, NULL, NULL, &e), 0);
    T_EQ(t->engine->rounds(t, T1, NULL, NULL, &e), 0);
    T_EQ(t->engine->after(t, T1, NULL, NULL, &e), 0);
    T_EQ(t->engine->result(t, T1, NULL, NULL, &e), 0);
    T_EQ(t->engine->names_file(t, T1, 1, &e), 0);
    step_commit(s);
}

/* ---- Facts ---- */

static int add_mark(const struct gpq_mark *m, void *user)
{
    struct view *v = user;

    view_add(v, "%s/%s:%s@%d ", m->kind, m->subject, m->text ? m->text : "-", (int)m->since);
    return 0;
}

static const char *marks(struct gpq_store *s, struct view *v)
{
    struct gpq_error e;

    view_clear(v);
    T_EQ(s->engine->marks(s, add_mark, v, &e), 0);
    return v->text;
}

BOTH(marks_are_set_and_taken_away)
{
    struct view v = { 0 };
    struct gpq_error e;

    step_begin(s);
    T_EQ(s->engine->mark(s, &(struct gpq_mark){ "pause", "", "lunch", 5 }, &e), 0);
    T_EQ(s->engine->mark(s, &(struct gpq_mark){ "drain", "gpu 1", NULL, 6 }, &e), 0);
    T_EQ(s->engine->mark(s, &(struct gpq_mark){ "pause", "", NULL, 7 }, &e), 0);
    step_commit(s);
    T_TEXT(marks(s, &v), "drain/gpu 1:-@6 pause/:-@7 ");
    step_begin(s);
    T_EQ(s->engine->unmark(s, "pause", "", &e), 0);
    step_commit(s);
    T_TEXT(marks(s, &v), "drain/gpu 1:-@6 ");
    view_free(&v);
}

static int add_span(const struct gpq_span *span, void *user)
{
    view_add(user, "%s %d-%d ", span->reason, (int)span->since, (int)span->until);
    return 0;
}

static const char *spans(struct gpq_store *s, struct view *v, uint64_t since)
{
    struct gpq_error e;

    view_clear(v);
    T_EQ(s->engine->spans(s, since, 0, add_span, v, &e), 0);
    return v->text;
}

BOTH(spans_go_on_until_they_end)
{
    const struct gpq_span a = { .kind = "device", .subject = "0", .reason = "a", .since = 5 };
    const struct gpq_span b = { .kind = "device", .subject = "0", .reason = "b", .since = 6 };
    struct view v = { 0 };
    struct gpq_error e;
    uint64_t id[2];

    step_begin(s);
    T_EQ(s->engine->span_begin(s, &a, &id[0], &e), 0);
    T_EQ(s->engine->span_begin(s, &b, &id[1], &e), 0);
    T_EQ(s->engine->span_end(s, id[0], 9, 9, &e), 0);
    T_EQ(s->engine->span_end(s, id[0], 10, 10, &e), GPQ_ENOTFOUND); /* it has ended */
    step_commit(s);
    T_CHECK(id[0] != id[1]);
    T_TEXT(spans(s, &v, 0), "a 5-9 b 6-0 ");
    T_TEXT(spans(s, &v, 9), "a 5-9 b 6-0 ");
    T_TEXT(spans(s, &v, 10), "b 6-0 ");
    view_free(&v);
}

/* A purge by number forgets ended tasks, also late ones: the tasks that stay keep their spans. */
BOTH(spans_stay_with_the_tasks_of_their_time)
{
    const struct gpq_span early = { .kind = "device", .subject = "0", .reason = "a", .since = 5 };
    const struct gpq_span late = { .kind = "device", .subject = "0", .reason = "b", .since = 6 };
    struct view v = { 0 };
    struct gpq_error e;
    uint64_t id[2];

    SUBMIT(s, .items = "x"); /* made at NOW */
    step_begin(s);
    T_EQ(s->engine->span_begin(s, &early, &id[0], &e), 0);
    T_EQ(s->engine->span_begin(s, &late, &id[1], &e), 0);
    T_EQ(s->engine->span_end(s, id[0], NOW - 1, 1, &e), 0);
    T_EQ(s->engine->span_end(s, id[1], NOW, 1, &e), 0);
    T_EQ(s->engine->purge(s, NOW + 100, false, 10, NULL, &e), 0);
    step_commit(s);
    view_clear(&v);
    T_EQ(s->engine->spans(s, 0, 0, add_span, &v, &e), 0);
    T_CHECK(strncmp(v.text, "b 6-", 4) == 0);
    view_free(&v);
}

static int see_result(const struct gpq_result *r, void *user)
{
    view_add(user, "%u %d %.*s %s ", r->attempt, (int)r->size, (int)r->data.size,
             r->data.size ? (const char *)r->data.data : "", r->file ? r->file : "-");
    return 0;
}

static const char *result(struct gpq_store *s, struct view *v)
{
    struct gpq_error e;

    view_clear(v);
    T_EQ(s->engine->result(s, T1, see_result, v, &e), 0);
    return v->text;
}

BOTH(results)
{
    struct gpq_end what = { .task = T1,
                            .attempt = 1,
                            .outcome = GPQ_OUTCOME_SUCCESS,
                            .ended = NOW,
                            .result = { "abc", 3 } };
    const struct gpq_select again = { .outcomes = 1U << GPQ_OUTCOME_SUCCESS };
    struct view v = { 0 };
    struct gpq_error e;

    SUBMIT(s, .items = "x");
    claim(s, T1);
    T_TEXT(result(s, &v), "");
    T_EQ(try_complete(s, &what), 1);
    T_TEXT(result(s, &v), "1 3 abc - ");
    retry(s, &again, NOW);
    T_TEXT(result(s, &v), ""); /* of the present round */
    claim(s, T1);
    what = (struct gpq_end){ .task = T1,
                             .attempt = 2,
                             .outcome = GPQ_OUTCOME_SUCCESS,
                             .ended = NOW,
                             .result_file = "1.1.2",
                             .result_size = 99 };
    T_EQ(try_complete(s, &what), 1);
    T_TEXT(result(s, &v), "2 99  1.1.2 ");
    T_EQ(s->engine->names_file(s, T1, 1, &e), 0);
    T_EQ(s->engine->names_file(s, T1, 2, &e), 1);
    retry(s, &again, NOW);
    T_EQ(s->engine->names_file(s, T1, 2, &e), 1); /* of any round */
    view_free(&v);
}

static int see_spec(const struct gpq_spec *spec, void *user)
{
    struct view *v = user;

    view_add(v, "%.*s %.*s %d %u %u", (int)spec->content.size, (const char *)spec->content.data,
             (int)spec->shape.size, (const char *)spec->shape.data, spec->priority,
             spec->retries[GPQ_CAUSE_CRASH], spec->n_after);
    return 0;
}

BOTH(a_spec_is_kept)
{
    struct view v = { 0 };
    struct gpq_error e;

    SUBMIT(s, .items = "x");
    SUBMIT(s, .items = "y", .priority = 3, .retries = { [GPQ_CAUSE_CRASH] = 2 },
           .after = { { T1, GPQ_AFTER_OK } });
    T_EQ(s->engine->spec(s, task(s, GPQ_TASK(2, 1)).spec, see_spec, &v, &e), 0);
    T_TEXT(v.text, "class 1 gpu 3 2 0"); /* without after */
    view_free(&v);
}

/* A spec that the last of its tasks leaves within a submit is there for the next one. */
BOTH(a_spec_that_is_left_within_a_submit)
{
    const struct gpq_after after = { T1, GPQ_AFTER_FAILED };
    const struct gpq_spec spec[] = { { .content = { "c", 1 }, .after = &after, .n_after = 1 },
                                     { .content = { "c", 1 } } };
    const struct gpq_item item[] = { { .spec = 0, .content = { "k", 1 } },
                                     { .spec = 1, .content = { "k", 1 } },
                                     { .spec = 0, .content = { "l", 1 } } };
    const struct gpq_submit what = {
        .name = "a", .join = true, .specs = spec, .items = item, .n_specs = 2, .n_items = 3
    };
    struct gpq_submitted ret;
    struct gpq_error e;
    struct view v = { 0 };

    SUBMIT(s, .items = "x");
    run(s, T1, GPQ_OUTCOME_SUCCESS);
    step_begin(s);
    T_EQ(s->engine->submit(s, NOW, &what, &ret, NULL, &e), 0);
    step_commit(s);
    T_EQ(ret.count[GPQ_PLACED_AGAIN], 1); /* the first one was skipped at once */
    T_EQ(s->engine->spec(s, task(s, GPQ_TASK(2, 2)).spec, see_spec, &v, &e), 0);
    view_free(&v);
}
