/* SPDX-License-Identifier: MIT */
/* edges.c - Q8: conditions of --after, what is skipped, and that no cycle can be made. */
#include "steps.h"

#define AFTER(number, when)                                      \
    {                                                            \
        .id = GPQ_TASK(1, number), .condition = GPQ_AFTER_##when \
    }

/* Q8: a task waits for its conditions. */
BOTH(a_task_waits_for_its_conditions)
{
    SUBMIT(s, .items = "x y");
    SUBMIT(s, .items = "z", .after = { AFTER(1, OK), AFTER(2, ENDED) });
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "held after");
    run(s, GPQ_TASK(1, 1), GPQ_OUTCOME_SUCCESS);
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "held after");
    T_EQ(try_claim(s, GPQ_TASK(2, 1)), GPQ_ESTALE);
    run(s, GPQ_TASK(1, 2), GPQ_OUTCOME_ERROR);
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "ready");
}

static const char *after_one(struct gpq_store *s, uint32_t condition, uint32_t outcome)
{
    uint32_t b = SUBMIT(s, .items = "x");
    uint32_t c = SUBMIT(s, .items = "y", .after = { { GPQ_TASK(b, 1), condition } });
    const char *text;

    run(s, GPQ_TASK(b, 1), outcome);
    text = shown(s, GPQ_TASK(c, 1));
    return text;
}

/* Q8: each condition against each kind of end. */
BOTH(conditions_on_a_task)
{
    T_TEXT(after_one(s, GPQ_AFTER_OK, GPQ_OUTCOME_SUCCESS), "ready");
    T_TEXT(after_one(s, GPQ_AFTER_OK, GPQ_OUTCOME_TIMEOUT), "done skipped by 3.1");
    T_TEXT(after_one(s, GPQ_AFTER_ENDED, GPQ_OUTCOME_SUCCESS), "ready");
    T_TEXT(after_one(s, GPQ_AFTER_ENDED, GPQ_OUTCOME_CANCELLED), "ready");
    T_TEXT(after_one(s, GPQ_AFTER_FAILED, GPQ_OUTCOME_SUCCESS), "done skipped by 9.1");
    T_TEXT(after_one(s, GPQ_AFTER_FAILED, GPQ_OUTCOME_CRASHED), "ready");
}

static const char *after_two(struct gpq_store *s, uint32_t condition, uint32_t outcome)
{
    uint32_t b = SUBMIT(s, .items = "x y");
    uint32_t c = SUBMIT(s, .items = "z", .after = { { GPQ_TASK(b, 0), condition } });

    run(s, GPQ_TASK(b, 1), outcome);
    T_TEXT(shown(s, GPQ_TASK(c, 1)), "held after");
    run(s, GPQ_TASK(b, 2), GPQ_OUTCOME_SUCCESS);
    return shown(s, GPQ_TASK(c, 1));
}

/* Q8: of a batch, once it has ended. */
BOTH(conditions_on_a_batch)
{
    T_TEXT(after_two(s, GPQ_AFTER_OK, GPQ_OUTCOME_SUCCESS), "ready");
    T_TEXT(after_two(s, GPQ_AFTER_OK, GPQ_OUTCOME_ERROR), "done skipped by 3.0");
    T_TEXT(after_two(s, GPQ_AFTER_ENDED, GPQ_OUTCOME_ERROR), "ready");
    T_TEXT(after_two(s, GPQ_AFTER_FAILED, GPQ_OUTCOME_ERROR), "ready");
    T_TEXT(after_two(s, GPQ_AFTER_FAILED, GPQ_OUTCOME_SUCCESS), "done skipped by 9.0");
}

/* Q8: a batch counts the tasks that it has joined; an open one has not ended. */
BOTH(the_end_of_a_batch)
{
    SUBMIT(s, .name = "a", .items = "x");
    SUBMIT(s, .name = "a", .items = "x", .join = true, .open = true);
    SUBMIT(s, .items = "z", .after = { { GPQ_TASK(2, 0), GPQ_AFTER_OK } });
    run(s, GPQ_TASK(1, 1), GPQ_OUTCOME_SUCCESS);
    T_TEXT(shown(s, GPQ_TASK(3, 1)), "held after");
    seal(s, 2);
    T_TEXT(shown(s, GPQ_TASK(3, 1)), "ready");
    T_EQ(batch(s, 2).ended, NOW);
}

/* The store learns of ends in any order. */
BOTH(the_latest_end_is_that_of_the_batch)
{
    SUBMIT(s, .name = "a", .items = "x y");
    SUBMIT(s, .name = "a", .items = "x z", .join = true);
    claim(s, GPQ_TASK(1, 1));
    claim(s, GPQ_TASK(1, 2));
    claim(s, GPQ_TASK(2, 1));
    end(s, GPQ_TASK(1, 1), GPQ_OUTCOME_ERROR, 4000);
    end(s, GPQ_TASK(2, 1), GPQ_OUTCOME_SUCCESS, 3000);
    T_EQ(batch(s, 1).ended, 0);
    T_EQ(batch(s, 2).ended, 4000);
    end(s, GPQ_TASK(1, 2), GPQ_OUTCOME_SUCCESS, 2000);
    T_EQ(batch(s, 1).ended, 4000);
    SUBMIT(s, .name = "a", .items = "y", .join = true);
    T_EQ(batch(s, 3).ended, 2000);
    retry(s, BATCH(1), 5000);
    T_EQ(batch(s, 1).ended, 0);
    claim(s, GPQ_TASK(1, 1));
    end(s, GPQ_TASK(1, 1), GPQ_OUTCOME_SUCCESS, 6000);
    T_EQ(batch(s, 1).ended, 6000);
}

BOTH(a_batch_without_tasks)
{
    SUBMIT(s, .at = 7);
    T_EQ(batch(s, 1).ended, 7);
    SUBMIT(s, .items = "z", .after = { AFTER(0, OK) });
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "ready");
    SUBMIT(s, .items = "z", .after = { AFTER(0, FAILED) });
    T_TEXT(shown(s, GPQ_TASK(3, 1)), "done skipped by 1.0");
    SUBMIT(s, .open = true);
    T_EQ(batch(s, 4).ended, 0);
    seal(s, 4);
    T_EQ(batch(s, 4).ended, NOW);
}

/* Q8: the tasks that wait for a skipped one are skipped in the same commit. */
BOTH(skipping_spreads)
{
    SUBMIT(s, .items = "x");
    SUBMIT(s, .items = "y", .after = { AFTER(1, OK) });
    SUBMIT(s, .items = "z", .after = { { GPQ_TASK(2, 1), GPQ_AFTER_OK } });
    SUBMIT(s, .items = "w", .after = { { GPQ_TASK(3, 0), GPQ_AFTER_FAILED } });
    SUBMIT(s, .items = "v", .after = { { GPQ_TASK(3, 0), GPQ_AFTER_OK } });
    cancel(s, ONE(GPQ_TASK(1, 1)));
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "done skipped by 1.1");
    T_TEXT(shown(s, GPQ_TASK(3, 1)), "done skipped by 2.1");
    T_TEXT(shown(s, GPQ_TASK(4, 1)), "ready");
    T_TEXT(shown(s, GPQ_TASK(5, 1)), "done skipped by 3.0");
    T_EQ(batch(s, 3).ended, NOW);
    T_EQ(batch(s, 3).outcome[GPQ_OUTCOME_SKIPPED], 1);
    T_EQ(s->n_changes, 5);
}

/* Q8: what is decided at the submit does not wait. */
BOTH(conditions_that_are_decided_at_once)
{
    SUBMIT(s, .items = "x y");
    run(s, GPQ_TASK(1, 1), GPQ_OUTCOME_SUCCESS);
    SUBMIT(s, .items = "a", .after = { AFTER(1, OK) });
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "ready");
    SUBMIT(s, .items = "b", .after = { AFTER(1, FAILED), AFTER(2, OK) });
    T_TEXT(shown(s, GPQ_TASK(3, 1)), "done skipped by 1.1");
    T_EQ(batch(s, 3).ended, NOW);
    T_EQ(task(s, GPQ_TASK(3, 1)).ended, NOW);
}

BOTH(a_met_condition_stays_met)
{
    SUBMIT(s, .items = "x y");
    SUBMIT(s, .items = "z", .after = { AFTER(1, FAILED), AFTER(2, OK) });
    run(s, GPQ_TASK(1, 1), GPQ_OUTCOME_ERROR);
    retry(s, ONE(GPQ_TASK(1, 1)), NOW);
    run(s, GPQ_TASK(1, 1), GPQ_OUTCOME_SUCCESS);
    run(s, GPQ_TASK(1, 2), GPQ_OUTCOME_SUCCESS);
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "ready");
}

/* Q8: in a new round they count anew. */
BOTH(conditions_count_anew_in_a_new_round)
{
    SUBMIT(s, .items = "x");
    SUBMIT(s, .items = "z", .after = { AFTER(1, OK) });
    run(s, GPQ_TASK(1, 1), GPQ_OUTCOME_ERROR);
    T_EQ(retry(s, BATCH(2), 1010), 1);
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "done skipped by 1.1");
    T_EQ(task(s, GPQ_TASK(2, 1)).round, 2);
    T_EQ(task(s, GPQ_TASK(2, 1)).ended, 1010);
    T_EQ(retry(s, ALL, 1020), 2);
    T_TEXT(shown(s, GPQ_TASK(1, 1)), "ready");
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "held after");
    T_TEXT(rounds(s, GPQ_TASK(2, 1)), "1: skipped at attempt 0, 2: skipped at attempt 0");
}

/* Q8: unknown ids are refused. */
BOTH(conditions_on_nothing_are_refused)
{
    SUBMIT(s, .items = "x", .open = true);
    T_EQ(TRY_SUBMIT(s, .items = "y", .after = { AFTER(2, OK) }), GPQ_ENOTFOUND);
    T_EQ(TRY_SUBMIT(s, .items = "y", .after = { { GPQ_TASK(2, 0), 0 } }), GPQ_ENOTFOUND);
    T_EQ(TRY_SUBMIT(s, .items = "y", .after = { { GPQ_TASK(0, 1), 0 } }), GPQ_ENOTFOUND);
    T_EQ(TRY_SUBMIT(s, .items = "y", .after = { { GPQ_TASK(1, 1), GPQ_CONDITIONS } }), GPQ_EINVAL);
    T_CHECK(!batch_is_there(s, 2));
}

/* Q8: no cycle can be made by appending to a batch for which tasks wait. */
BOTH(cycles_are_refused)
{
    SUBMIT(s, .name = "a", .items = "x", .open = true);
    T_EQ(TRY_SUBMIT(s, .batch = 1, .items = "y", .after = { AFTER(0, ENDED) }), GPQ_EREFUSED);
    SUBMIT(s, .batch = 1, .items = "y", .after = { AFTER(1, OK) });
    SUBMIT(s, .name = "a", .items = "z", .after = { AFTER(0, OK) });
    T_EQ(TRY_SUBMIT(s, .batch = 1, .items = "w", .after = { { GPQ_TASK(2, 1), 0 } }), GPQ_EREFUSED);
    T_EQ(TRY_SUBMIT(s, .batch = 1, .items = "z", .join = true), GPQ_EREFUSED);
    T_TEXT(PLACED(s, .batch = 1, .items = "w", .join = true), "1 0 0 0");
    T_EQ(batch(s, 1).total, 3);
}

/* Q8: nor by one that has ended, and is retried. */
BOTH(cycles_through_a_later_round_are_refused)
{
    SUBMIT(s, .items = "x", .open = true);
    SUBMIT(s, .items = "z", .after = { AFTER(0, OK) });
    cancel(s, BATCH(2));
    T_EQ(TRY_SUBMIT(s, .batch = 1, .items = "w", .after = { { GPQ_TASK(2, 1), GPQ_AFTER_ENDED } }),
         GPQ_EREFUSED);
}
