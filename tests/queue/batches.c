/* SPDX-License-Identifier: MIT */
/* batches.c - counts, ends and limits of batches; selections; what a purge forgets. */
#include "steps.h"

#include <stdio.h>
#include <string.h>

#define T(number) GPQ_TASK(1, number)

BOTH(counts)
{
    struct gpq_batch b;

    SUBMIT(s, .name = "a", .items = "v w x y z", .at = 7);
    run(s, T(1), GPQ_OUTCOME_SUCCESS);
    run(s, T(2), GPQ_OUTCOME_CRASHED);
    claim(s, T(3));
    hold(s, ONE(T(4)), true);
    b = batch(s, 1);
    T_EQ(b.made, 7);
    T_EQ(b.total, 5);
    T_EQ(b.state[GPQ_DONE], 2);
    T_EQ(b.state[GPQ_RUNNING], 1);
    T_EQ(b.state[GPQ_HELD], 1);
    T_EQ(b.state[GPQ_READY], 1);
    T_EQ(b.outcome[GPQ_OUTCOME_SUCCESS], 1);
    T_EQ(b.outcome[GPQ_OUTCOME_CRASHED], 1);
    T_EQ(b.ended, 0);
    SUBMIT(s, .name = "a", .items = "v y", .join = true);
    b = batch(s, 2);
    T_EQ(b.total, 2);
    T_EQ(b.joined, 2);
    T_EQ(b.outcome[GPQ_OUTCOME_SUCCESS], 1);
    T_EQ(b.state[GPQ_HELD], 1);
    hold(s, ONE(T(4)), false);
    T_EQ(batch(s, 2).state[GPQ_READY], 1);
}

BOTH(the_last_batch_of_a_name)
{
    struct gpq_error e = { 0 };
    uint32_t b = 0;

    SUBMIT(s, .name = "a", .items = "x y");
    SUBMIT(s, .name = "b");
    SUBMIT(s, .name = "a", .items = "x z", .join = true);
    SUBMIT(s);
    T_EQ(s->engine->batch_named(s, "a", 0, &b, &e), 0);
    T_EQ(b, 3);
    T_EQ(s->engine->batch_named(s, "a", 1, &b, &e), 0);
    T_EQ(b, 3);
    T_EQ(s->engine->batch_named(s, "a", 2, &b, &e), 0);
    T_EQ(b, 1);
    T_EQ(s->engine->batch_named(s, "a", 3, &b, &e), GPQ_ENOTFOUND);
    T_EQ(s->engine->batch_named(s, "b", 0, &b, &e), 0);
    T_EQ(b, 2);
    T_EQ(s->engine->batch_named(s, "c", 0, &b, &e), GPQ_ENOTFOUND);
    T_EQ(e.code, GPQ_ENOTFOUND);
    T_EQ(b, 2);
}

BOTH(more_failures_than_allowed)
{
    SUBMIT(s, .items = "a b c d", .fails_limited = true, .max_fails = 1);
    run(s, T(1), GPQ_OUTCOME_ERROR);
    claim(s, T(3));
    T_TEXT(shown(s, T(4)), "ready");
    run(s, T(2), GPQ_OUTCOME_TIMEOUT);
    T_TEXT(shown(s, T(3)), "running 1"); /* it goes on */
    T_TEXT(shown(s, T(4)), "done cancelled by 1.0");
}

BOTH(no_failure_allowed)
{
    SUBMIT(s, .items = "a b c", .fails_limited = true);
    cancel(s, ONE(T(1))); /* is no failure */
    T_TEXT(shown(s, T(2)), "ready");
    run(s, T(2), GPQ_OUTCOME_ERROR);
    T_TEXT(shown(s, T(3)), "done cancelled by 1.0");
}

BOTH(a_retry_is_no_failure)
{
    SUBMIT(s, .items = "a b", .fails_limited = true, .retries = { 1, 0, 0, 0 });
    run(s, T(1), GPQ_OUTCOME_ERROR);
    T_TEXT(shown(s, T(2)), "ready");
}

BOTH(a_percentage_of_failures)
{
    SUBMIT(s, .items = "a b c d", .percent = 25);
    run(s, T(1), GPQ_OUTCOME_ERROR);
    T_TEXT(shown(s, T(4)), "ready");
    run(s, T(2), GPQ_OUTCOME_ERROR);
    T_TEXT(shown(s, T(4)), "done cancelled by 1.0");
    SUBMIT(s, .items = "a b", .percent = 100);
    run(s, GPQ_TASK(2, 1), GPQ_OUTCOME_ERROR);
    T_TEXT(shown(s, GPQ_TASK(2, 2)), "ready");
}

/* The failure of a joined task counts; the limit cancels only own tasks. */
BOTH(failures_of_joined_tasks)
{
    SUBMIT(s, .name = "a", .items = "x y");
    SUBMIT(s, .name = "a", .items = "x y z", .join = true, .fails_limited = true);
    run(s, T(1), GPQ_OUTCOME_ERROR);
    T_TEXT(shown(s, T(2)), "ready");
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "done cancelled by 2.0");
}

/* Q8: a condition that has failed is a closer reason than a limit. */
BOTH(skipped_rather_than_cancelled)
{
    SUBMIT(s, .items = "a", .open = true, .fails_limited = true);
    SUBMIT(s, .batch = 1, .items = "b", .after = { { T(1), GPQ_AFTER_OK } });
    SUBMIT(s, .batch = 1, .items = "c");
    run(s, T(1), GPQ_OUTCOME_ERROR);
    T_TEXT(shown(s, T(2)), "done skipped by 1.1");
    T_TEXT(shown(s, T(3)), "done cancelled by 1.0");
}

/* Each call looks at 16 tasks, and at their batches. */
BOTH(a_purge_that_goes_on)
{
    struct gpq_error e;
    uint64_t from = 0;
    int64_t n;

    SUBMIT(s, .items = "a b c d e f g h i j k l m n o p q r s t");
    SUBMIT(s, .items = "");
    SUBMIT(s, .items = "u");
    for (uint32_t i = 1; i <= 20; i++)
        run(s, T(i), GPQ_OUTCOME_SUCCESS);
    run(s, GPQ_TASK(3, 1), GPQ_OUTCOME_SUCCESS);
    for (uint32_t i = 0; i < 15; i++) {
        step_begin(s);
        n = s->engine->purge(s, UINT32_MAX, true, 1, &from, &e);
        step_commit(s);
        T_EQ(n, 1);
        T_EQ(from, T(i + 1));
    }
    T_CHECK(batch_is_there(s, 2));
    for (uint32_t i = 0; i < 6; i++) {
        step_begin(s);
        n = s->engine->purge(s, UINT32_MAX, true, 1, &from, &e);
        step_commit(s);
        T_EQ(n, 1);
    }
    T_EQ(from, 0);
    T_TEXT(listed(s, ALL), "");
    T_CHECK(!batch_is_there(s, 1) && !batch_is_there(s, 2) && !batch_is_there(s, 3));
    SUBMIT(s, .items = "a b c d e f g h i j k l m n o p q r s t");
    step_begin(s);
    T_EQ(s->engine->purge(s, UINT32_MAX, true, 1, &from, &e), 0);
    step_commit(s);
    T_EQ(from, GPQ_TASK(4, 16));
}

/* ---- Ends that somebody is told of ---- */

static int note_subject(const struct gpq_mark *m, void *user)
{
    if (!strcmp(m->kind, "notify"))
        (void)snprintf(user, 32, "%s at %d", m->subject, (int)m->since);
    return 0;
}

/* The batch that has a mark "notify", and its time. */
static const char *noted(struct gpq_store *s)
{
    static char text[32];
    struct gpq_error e;

    text[0] = 0;
    T_EQ(s->engine->marks(s, note_subject, text, &e), 0);
    return text;
}

BOTH(an_end_sets_its_mark)
{
    struct gpq_error e;

    SUBMIT(s, .items = "a b", .notify = true);
    SUBMIT(s, .items = "c");
    T_CHECK(batch(s, 1).notify && !batch(s, 2).notify);
    run(s, GPQ_TASK(2, 1), GPQ_OUTCOME_SUCCESS);
    run(s, T(1), GPQ_OUTCOME_ERROR);
    T_TEXT(noted(s), "");
    T_CHECK(!s->notes);
    claim(s, T(2));
    step_begin(s);
    end(s, T(2), GPQ_OUTCOME_SUCCESS, 7000);
    step_rollback(s);
    T_TEXT(noted(s), "");
    end(s, T(2), GPQ_OUTCOME_SUCCESS, 7001);
    T_CHECK(s->notes);
    T_TEXT(noted(s), "1 at 7001");
    step_begin(s);
    T_EQ(s->engine->unmark(s, "notify", "1", &e), 0);
    step_commit(s);
    T_CHECK(!s->notes);
    T_EQ(retry(s, BATCH(1), 8000), 1); /* it ends a second time */
    run(s, T(1), GPQ_OUTCOME_SUCCESS);
    T_CHECK(noted(s)[0]);
    T_EQ(purge(s, UINT32_MAX, false, 100), 3); /* a batch that is forgotten tells nobody */
    T_TEXT(noted(s), "");
}

BOTH(an_end_without_tasks_sets_its_mark)
{
    SUBMIT(s, .items = "", .open = true, .notify = true);
    T_TEXT(noted(s), "");
    seal(s, 1);
    T_TEXT(noted(s), "1 at 1000");
}

/* ---- Selections ---- */

BOTH(selections)
{
    const uint64_t two[] = { T(2), GPQ_TASK(2, 1), GPQ_TASK(7, 7) };

    SUBMIT(s, .name = "a", .items = "x y z");
    SUBMIT(s, .name = "a", .items = "w y", .join = true);
    run(s, T(1), GPQ_OUTCOME_ERROR);
    T_TEXT(listed(s, ALL), "1.1 1.2 1.3 2.1");
    T_TEXT(listed(s, BATCH(2)), "1.2 2.1");
    T_TEXT(listed(s, BATCH(9)), "");
    T_TEXT(listed(s, &(const struct gpq_select){ .batch = 1, .first = 2 }), "1.2 1.3");
    T_TEXT(listed(s, &(const struct gpq_select){ .batch = 1, .last = 2 }), "1.1 1.2");
    T_TEXT(listed(s, &(const struct gpq_select){ .tasks = two, .n_tasks = 3 }), "1.2 2.1");
    T_TEXT(listed(s, &(const struct gpq_select){ .states = 1U << GPQ_DONE }), "1.1");
    T_TEXT(listed(s, &(const struct gpq_select){ .outcomes = 1U << GPQ_OUTCOME_ERROR }), "1.1");
    T_TEXT(listed(s, &(const struct gpq_select){ .outcomes = 1U << GPQ_OUTCOME_SUCCESS }), "");
    T_TEXT(listed(s, &(const struct gpq_select){ .spec = task(s, T(1)).spec }), "1.1 1.2 1.3");
    T_EQ(cancel(s, BATCH(2)), 2);
    T_TEXT(shown(s, T(2)), "done cancelled");
    T_TEXT(shown(s, T(3)), "ready");
}

BOTH(an_open_batch_is_cancelled)
{
    const struct gpq_select first = { .batch = 1, .first = 1, .last = 1 };

    SUBMIT(s, .items = "a b", .open = true);
    T_EQ(cancel(s, &first), 1);
    T_CHECK(batch(s, 1).open && !batch(s, 1).ended);
    T_EQ(cancel(s, BATCH(1)), 1);
    T_CHECK(!batch(s, 1).open && batch(s, 1).ended);
}

/* All selected tasks change before anything follows from it. */
BOTH(a_cancelled_batch_is_not_skipped)
{
    SUBMIT(s, .items = "a", .open = true);
    SUBMIT(s, .batch = 1, .items = "b", .after = { { T(1), GPQ_AFTER_OK } });
    T_EQ(cancel(s, BATCH(1)), 2);
    T_TEXT(shown(s, T(2)), "done cancelled");
}

/* Retried together, a task waits for the other one, also where its id is the smaller one. */
BOTH(retried_together)
{
    SUBMIT(s, .items = "a", .open = true);
    SUBMIT(s, .items = "b");
    SUBMIT(s, .batch = 1, .items = "c", .after = { { GPQ_TASK(2, 1), GPQ_AFTER_OK } });
    run(s, GPQ_TASK(2, 1), GPQ_OUTCOME_ERROR);
    T_TEXT(shown(s, T(2)), "done skipped by 2.1");
    T_EQ(retry(s, ALL, NOW), 2);
    T_TEXT(shown(s, T(2)), "held after");
    run(s, GPQ_TASK(2, 1), GPQ_OUTCOME_SUCCESS);
    T_TEXT(shown(s, T(2)), "ready");
}

/* ---- Purge ---- */

BOTH(a_purge)
{
    SUBMIT(s, .items = "a b");
    run(s, T(1), GPQ_OUTCOME_SUCCESS);
    T_EQ(purge(s, 9000, false, 99), 0); /* its batch goes on */
    run(s, T(2), GPQ_OUTCOME_ERROR);
    T_EQ(purge(s, NOW, false, 99), 0); /* not before that time */
    T_EQ(purge(s, 9000, true, 99), 1); /* only those of SUCCESS */
    T_TEXT(listed(s, ALL), "1.2");
    T_EQ(batch(s, 1).total, 2); /* the counts are left */
    T_EQ(batch(s, 1).outcome[GPQ_OUTCOME_SUCCESS], 1);
    T_EQ(purge(s, 9000, false, 99), 1);
    T_EQ(s->n_changes, 1);
    T_EQ(s->changes[0].to, 0);
    T_CHECK(!batch_is_there(s, 1));
    T_EQ(SUBMIT(s, .items = "a"), 2); /* ids are not used again */
}

BOTH(a_purge_in_parts)
{
    SUBMIT(s, .items = "a b c");
    cancel(s, ALL);
    T_EQ(purge(s, 9000, false, 0), 0);
    T_EQ(purge(s, 9000, false, 2), 2);
    T_TEXT(listed(s, ALL), "1.3");
    T_EQ(purge(s, 9000, false, 2), 1);
    T_CHECK(!batch_is_there(s, 1));
}

BOTH(what_is_waited_for_is_not_forgotten)
{
    SUBMIT(s, .items = "a");
    SUBMIT(s, .items = "b");
    SUBMIT(s, .items = "c", .after = { { T(1), GPQ_AFTER_ENDED }, { GPQ_TASK(2, 0), 0 } });
    run(s, GPQ_TASK(2, 1), GPQ_OUTCOME_SUCCESS);
    T_EQ(purge(s, 9000, false, 99), 1); /* 2.1: its condition is met */
    T_CHECK(!batch_is_there(s, 2));
    T_EQ(SUBMIT(s, .open = true), 4);
    SUBMIT(s, .items = "d", .after = { { GPQ_TASK(4, 0), GPQ_AFTER_OK } });
    T_EQ(purge(s, 9000, false, 99), 0);
    T_CHECK(batch_is_there(s, 4));
}

BOTH(a_joined_task_is_kept_for_its_batches)
{
    SUBMIT(s, .name = "a", .items = "x");
    run(s, T(1), GPQ_OUTCOME_SUCCESS);
    SUBMIT(s, .name = "a", .items = "x y", .join = true);
    T_EQ(purge(s, 9000, false, 99), 0);
    run(s, GPQ_TASK(2, 1), GPQ_OUTCOME_SUCCESS);
    T_EQ(purge(s, 9000, false, 99), 2);
}

/* Conditions on what was forgotten are forgotten with it. */
BOTH(a_retry_after_its_source_was_forgotten)
{
    SUBMIT(s, .items = "a");
    SUBMIT(s, .items = "b", .after = { { T(1), GPQ_AFTER_FAILED } });
    run(s, T(1), GPQ_OUTCOME_SUCCESS);
    T_EQ(purge(s, 9000, false, 1), 1);
    T_EQ(retry(s, ALL, NOW), 1);
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "ready");
}

BOTH(a_forgotten_task_is_waited_for_no_more)
{
    SUBMIT(s, .items = "a", .open = true);
    SUBMIT(s, .items = "b", .after = { { T(0), GPQ_AFTER_ENDED } });
    cancel(s, BATCH(2));
    T_EQ(purge(s, 9000, false, 99), 1);
    SUBMIT(s, .batch = 1, .items = "c", .after = { { T(1), GPQ_AFTER_OK } });
    T_TEXT(shown(s, T(2)), "held after");
}

BOTH(an_old_request_is_forgotten)
{
    SUBMIT(s, .request = "r", .items = "a");
    T_EQ(purge(s, NOW + 1, false, 99), 0);
    T_EQ(SUBMIT(s, .request = "r", .items = "a"), 2);
}
