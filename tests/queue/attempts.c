/* SPDX-License-Identifier: MIT */
/* attempts.c - Q2, Q3, Q10: attempts, retries, returns, rounds and the wish to cancel. */
#include "steps.h"

#include <stdio.h>

#define T1 GPQ_TASK(1, 1)

/* Q2: a claim raises the number, and charges the attempt. */
BOTH(a_claim_raises_and_charges)
{
    SUBMIT(s, .items = "x");
    T_EQ(claim(s, T1), 1);
    T_TEXT(shown(s, T1), "running 1");
    T_EQ(task(s, T1).charged, 1);
    T_EQ(try_claim(s, T1), GPQ_ESTALE);
    T_EQ(try_claim(s, GPQ_TASK(1, 2)), GPQ_ENOTFOUND);
    T_EQ(s->n_changes, 0);
    T_EQ(end(s, T1, GPQ_OUTCOME_SUCCESS, NOW), 1);
    T_TEXT(shown(s, T1), "done ok");
    T_EQ(try_claim(s, T1), GPQ_ESTALE);
}

/* Q2: what was not committed has not happened. */
BOTH(a_claim_that_is_rolled_back)
{
    SUBMIT(s, .items = "x");
    step_begin(s);
    T_EQ(claim(s, T1), 1);
    step_rollback(s);
    T_TEXT(shown(s, T1), "ready");
    T_EQ(claim(s, T1), 1);
}

/* Q3: an operation on another attempt than the running one changes nothing. */
BOTH(a_stale_attempt_changes_nothing)
{
    struct gpq_end what = {
        .task = T1, .attempt = 1, .outcome = GPQ_OUTCOME_SUCCESS, .ended = NOW
    };

    SUBMIT(s, .items = "x");
    T_EQ(try_complete(s, &what), GPQ_ESTALE);
    claim(s, T1);
    T_EQ(try_give_back(s, T1, 1, GPQ_RETURN_UNSTARTED), 0);
    T_EQ(try_complete(s, &what), GPQ_ESTALE);
    T_EQ(claim(s, T1), 2);
    T_EQ(try_complete(s, &what), GPQ_ESTALE);
    T_EQ(try_give_back(s, T1, 1, GPQ_RETURN_LOST), GPQ_ESTALE);
    T_TEXT(shown(s, T1), "running 2");
    T_EQ(task(s, T1).losses, 0);
    what.attempt = 2;
    T_EQ(try_complete(s, &what), 1);
    what.outcome = GPQ_OUTCOME_ERROR;
    T_EQ(try_complete(s, &what), GPQ_ESTALE);
    T_TEXT(shown(s, T1), "done ok");
    what.task = GPQ_TASK(3, 1);
    T_EQ(try_complete(s, &what), GPQ_ENOTFOUND);
    T_EQ(try_give_back(s, GPQ_TASK(3, 1), 1, GPQ_RETURN_LOST), GPQ_ENOTFOUND);
}

BOTH(arguments_that_are_none)
{
    const struct gpq_end none = { .task = T1, .attempt = 1, .outcome = 0 };
    const struct gpq_end skipped = { .task = T1, .attempt = 1, .outcome = GPQ_OUTCOME_SKIPPED };

    SUBMIT(s, .items = "x");
    claim(s, T1);
    T_EQ(try_complete(s, &none), GPQ_EINVAL);
    T_EQ(try_complete(s, &skipped), GPQ_EINVAL);
    T_EQ(try_give_back(s, T1, 1, GPQ_RETURNS), GPQ_EINVAL);
    T_TEXT(shown(s, T1), "running 1");
}

/* An attempt is retried while the round has had no more than this many. */
BOTH(retries_by_cause)
{
    SUBMIT(s, .items = "x", .retries = { [GPQ_CAUSE_ERROR] = 2, [GPQ_CAUSE_CRASH] = 1 });
    T_EQ(run(s, T1, GPQ_OUTCOME_CRASHED), 0);
    T_TEXT(shown(s, T1), "ready");
    T_EQ(run(s, T1, GPQ_OUTCOME_ERROR), 0);
    T_EQ(run(s, T1, GPQ_OUTCOME_CRASHED), 1);
    T_TEXT(shown(s, T1), "done crashed");
    T_EQ(task(s, T1).attempt, 3);
    retry(s, ONE(T1), NOW);
    T_EQ(run(s, T1, GPQ_OUTCOME_TIMEOUT), 1);
    T_TEXT(rounds(s, T1), "1: crashed at attempt 3");
}

static int read_request(const struct gpq_shape *shape, void *user)
{
    (void)snprintf(user, 16, "%.*s", (int)shape->request.size, (const char *)shape->request.data);
    return 0;
}

BOTH(oom_is_a_cause_of_its_own)
{
    struct gpq_end what = {
        .task = T1, .outcome = GPQ_OUTCOME_CRASHED, .oom = true, .ended = NOW, .shape = { "big", 3 }
    };
    char text[16];
    struct gpq_error e;
    uint32_t shape;

    SUBMIT(s, .items = "x", .retries = { [GPQ_CAUSE_OOM] = 1 });
    shape = task(s, T1).shape;
    what.attempt = claim(s, T1);
    T_EQ(try_complete(s, &what), 0);
    T_CHECK(task(s, T1).shape != shape);
    T_EQ(s->engine->shape(s, task(s, T1).shape, read_request, text, &e), 0);
    T_TEXT(text, "big");
    T_EQ(s->engine->shape(s, 99, read_request, text, &e), GPQ_ENOTFOUND);
    what.attempt = claim(s, T1);
    T_EQ(try_complete(s, &what), 1);
}

BOTH(a_final_end_is_not_retried)
{
    SUBMIT(s, .items = "x", .retries = { 9, 9, 9, 9 });

    const struct gpq_end what = { .task = T1,
                                  .attempt = claim(s, T1),
                                  .outcome = GPQ_OUTCOME_ERROR,
                                  .final = true,
                                  .ended = NOW };

    T_EQ(try_complete(s, &what), 1);
}

/* The backoff doubles with each, up to its cap. */
BOTH(backoff)
{
    static const uint64_t until[] = { 1010, 1020, 1040, 1050, 1050 };
    uint64_t next;

    SUBMIT(s, .items = "x", .retries = { 9, 9, 9, 9 }, .backoff = 10, .backoff_cap = 50);
    for (uint32_t i = 0; i < T_LENGTH(until); i++) {
        T_EQ(run(s, T1, GPQ_OUTCOME_ERROR), 0);
        T_TEXT(shown(s, T1), "held time");
        T_EQ(task(s, T1).not_before, until[i]);
        T_EQ(due(s, until[i] - 1, &next), 0);
        T_EQ(next, until[i]);
        T_EQ(due(s, until[i], &next), 1);
        T_EQ(next, 0);
        T_TEXT(shown(s, T1), "ready");
        T_EQ(task(s, T1).not_before, 0);
    }
}

BOTH(a_backoff_without_end_is_capped)
{
    SUBMIT(s, .items = "x", .retries = { 99, 0, 0, 0 }, .backoff = UINT64_C(1) << 60,
           .backoff_cap = 5);
    for (uint32_t i = 0; i < 70; i++) {
        uint64_t next;

        T_EQ(run(s, T1, GPQ_OUTCOME_ERROR), 0);
        T_EQ(task(s, T1).not_before, 1005);
        due(s, 1005, &next);
    }
}

/* Q7: a task keeps its place over retries and returns. */
BOTH(a_returned_task_keeps_its_place)
{
    SUBMIT(s, .items = "x y", .retries = { 1, 1, 1, 1 });
    claim(s, T1);
    T_EQ(try_give_back(s, T1, 1, GPQ_RETURN_DEVICE), 0);
    T_TEXT(ready(s), "1.1 1.2");
    T_EQ(task(s, T1).charged, 0);
    T_EQ(task(s, T1).attempt, 1);
    T_EQ(run(s, T1, GPQ_OUTCOME_ERROR), 0);
    T_TEXT(ready(s), "1.1 1.2");
    T_EQ(task(s, T1).charged, 1);
}

static int give_back(struct gpq_store *s, uint32_t why)
{
    return try_give_back(s, T1, claim(s, T1), why);
}

BOTH(the_third_loss_in_a_row_ends_it)
{
    SUBMIT(s, .items = "x", .retries = { 9, 9, 9, 9 });
    T_EQ(give_back(s, GPQ_RETURN_LOST), 0);
    T_EQ(give_back(s, GPQ_RETURN_DEVICE), 0);
    T_EQ(run(s, T1, GPQ_OUTCOME_ERROR), 0); /* not in a row */
    T_EQ(give_back(s, GPQ_RETURN_LOST), 0);
    T_EQ(give_back(s, GPQ_RETURN_STOPPED), 0);
    T_EQ(give_back(s, GPQ_RETURN_LOST), 0);
    T_EQ(give_back(s, GPQ_RETURN_UNSTARTED), 0);
    T_EQ(give_back(s, GPQ_RETURN_DEVICE), 1);
    T_TEXT(shown(s, T1), "done lost");
    T_EQ(task(s, T1).ended, NOW);
    retry(s, ONE(T1), NOW);
    T_EQ(task(s, T1).losses, 0);
}

BOTH(at_most_once)
{
    static const uint32_t started[] = { GPQ_RETURN_DEVICE, GPQ_RETURN_STOPPED, GPQ_RETURN_LOST };

    SUBMIT(s, .items = "x", .once = true);
    T_EQ(give_back(s, GPQ_RETURN_UNSTARTED), 0);
    for (size_t i = 0; i < T_LENGTH(started); i++) {
        T_EQ(give_back(s, started[i]), 1);
        T_TEXT(shown(s, T1), "done lost");
        retry(s, ONE(T1), NOW);
    }
}

/* Q10: cancelling a waiting task is final. */
BOTH(cancelling_what_waits)
{
    SUBMIT(s, .items = "x y z", .retries = { 9, 9, 9, 9 });
    hold(s, ONE(GPQ_TASK(1, 2)), true);
    run(s, GPQ_TASK(1, 3), GPQ_OUTCOME_SUCCESS);
    T_EQ(cancel(s, BATCH(1)), 2);
    T_TEXT(shown(s, T1), "done cancelled");
    T_TEXT(shown(s, GPQ_TASK(1, 2)), "done cancelled");
    T_TEXT(shown(s, GPQ_TASK(1, 3)), "done ok");
    T_EQ(try_claim(s, T1), GPQ_ESTALE);
    T_EQ(cancel(s, BATCH(1)), 0);
}

/* Q10: cancelling a running one is a wish; the outcome is whichever came first. */
BOTH(cancelling_what_runs)
{
    SUBMIT(s, .items = "x", .retries = { 9, 9, 9, 9 });
    claim(s, T1);
    T_EQ(cancel(s, ONE(T1)), 1);
    T_TEXT(shown(s, T1), "running 1 cancel");
    T_EQ(s->n_changes, 1);
    T_CHECK(s->changes[0].cancel);
    T_EQ(s->changes[0].from, GPQ_RUNNING);
    T_EQ(s->changes[0].to, GPQ_RUNNING);
    T_EQ(cancel(s, ONE(T1)), 0);
    T_EQ(end(s, T1, GPQ_OUTCOME_ERROR, NOW), 1);
    T_TEXT(shown(s, T1), "done error");
    retry(s, ONE(T1), NOW);
    T_EQ(give_back(s, GPQ_RETURN_LOST), 0); /* the wish was of the old round */
    claim(s, T1);
    cancel(s, ONE(T1));
    T_EQ(try_give_back(s, T1, 3, GPQ_RETURN_LOST), 1);
    T_TEXT(shown(s, T1), "done cancelled");
}

/* Q3: a round has one outcome; retry opens a new one and keeps the old. */
BOTH(rounds_are_kept)
{
    SUBMIT(s, .items = "x y");
    run(s, T1, GPQ_OUTCOME_TIMEOUT);
    T_EQ(retry(s, BATCH(1), NOW), 1); /* 1.2 has not ended */
    cancel(s, ONE(T1));
    retry(s, ONE(T1), NOW);
    run(s, T1, GPQ_OUTCOME_SUCCESS);
    T_EQ(retry(s, ONE(T1), NOW), 0);
    T_TEXT(rounds(s, T1), "1: timeout at attempt 1, 2: cancelled at attempt 0");
    T_EQ(retry(s, &(const struct gpq_select){ .batch = 1, .outcomes = 1U << GPQ_OUTCOME_SUCCESS },
               NOW),
         1);
    T_EQ(task(s, T1).round, 4);
    T_EQ(task(s, T1).attempt, 2);
    T_TEXT(shown(s, T1), "ready");
}

static int see_attempt(const struct gpq_attempt *a, void *user)
{
    ((struct gpq_attempt *)user)[a->number] = *a;
    return 0;
}

BOTH(attempts_are_kept)
{
    struct gpq_attempt seen[4] = { 0 };
    struct gpq_error e;
    struct gpq_end what = {
        .task = T1, .outcome = GPQ_OUTCOME_ERROR, .status = 3, .started = 1001, .ended = 1002
    };

    SUBMIT(s, .items = "x", .retries = { 1, 1, 1, 1 });
    give_back(s, GPQ_RETURN_DEVICE);
    what.attempt = claim(s, T1);
    try_complete(s, &what);
    retry(s, ONE(T1), NOW);
    claim(s, T1);
    T_EQ(s->engine->attempts(s, T1, see_attempt, seen, &e), 0);
    T_EQ(seen[1].returned_at, NOW);
    T_EQ(seen[1].returned, GPQ_RETURN_DEVICE);
    T_EQ(seen[1].outcome, 0);
    T_CHECK(!seen[1].charged);
    T_EQ(seen[2].outcome, GPQ_OUTCOME_ERROR); /* also where a retry follows */
    T_EQ(seen[2].status, 3);
    T_EQ(seen[2].started, 1001);
    T_EQ(seen[2].ended, 1002);
    T_CHECK(seen[2].charged);
    T_EQ(seen[2].round, 1);
    T_EQ(seen[3].claimed, NOW);
    seen[3].claimed = 0;
    T_EQ(s->engine->running(s, see_attempt, seen, &e), 0);
    T_EQ(seen[3].claimed, NOW);
}
