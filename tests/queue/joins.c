/* SPDX-License-Identifier: MIT */
/* joins.c - submit: what is added, joined, joined again, and what it refuses. */
#include "steps.h"

#include <stdio.h>
#include <string.h>

BOTH(numbers_are_given_in_the_order_of_the_items)
{
    uint32_t b = SUBMIT(s, .items = "x y z");

    T_EQ(b, 1);
    T_EQ(batch(s, b).total, 3);
    T_TEXT(listed(s, BATCH(b)), "1.1 1.2 1.3");
    T_EQ(SUBMIT(s, .items = "x"), 2);
    T_EQ(task(s, GPQ_TASK(2, 1)).order, 4);
}

/* Q6: joining compares bytes of content and spec. */
BOTH(an_equal_item_of_the_same_name_is_joined)
{
    SUBMIT(s, .name = "a", .items = "x y");
    T_TEXT(PLACED(s, .name = "a", .items = "y z", .join = true), "1 1 0 0");
    T_TEXT(listed(s, BATCH(2)), "1.2 2.1");
    T_EQ(batch(s, 2).total, 2);
    T_EQ(batch(s, 2).joined, 1);
    T_TEXT(PLACED(s, .name = "a", .items = "x", .content = "other", .join = true), "1 0 0 0");
    T_TEXT(PLACED(s, .name = "b", .items = "x", .join = true), "1 0 0 0");
    T_TEXT(PLACED(s, .name = "a", .items = "x"), "1 0 0 0");
    T_TEXT(PLACED(s, .items = "x", .join = true), "1 0 0 0");
    T_TEXT(PLACED(s, .items = "x", .join = true), "1 0 0 0"); /* no name: never joined */
}

/* Q6: only the priority, the shape and the limits differ. */
BOTH(what_is_no_part_of_the_identity_does_not_hinder_joining)
{
    SUBMIT(s, .name = "a", .items = "x");
    T_TEXT(PLACED(s, .name = "a", .items = "x", .shape = "2 gpus", .priority = 7, .join = true),
           "0 1 0 0");
    T_EQ(task(s, GPQ_TASK(1, 1)).priority, 0); /* joined as it is */
}

BOTH(the_last_of_several_is_joined)
{
    SUBMIT(s, .name = "a", .items = "x");
    SUBMIT(s, .name = "a", .items = "x");
    SUBMIT(s, .name = "a", .items = "x", .join = true);
    T_TEXT(listed(s, BATCH(3)), "2.1");
}

BOTH(a_batch_that_joins_everything_is_made)
{
    SUBMIT(s, .name = "a", .items = "x x", .join = true);
    T_TEXT(listed(s, BATCH(1)), "1.1"); /* twice in one submit: one task */
    T_TEXT(PLACED(s, .name = "a", .items = "x x", .join = true), "0 2 0 0");
    T_EQ(batch(s, 2).total, 1);
    T_EQ(batch(s, 2).state[GPQ_READY], 1);
}

/* Q6: a key stands for the content, but not for another one. */
BOTH(a_key_joins_keys_only)
{
    SUBMIT(s, .name = "a", .items = "x", .key = "k");
    T_TEXT(PLACED(s, .name = "a", .items = "x", .join = true), "1 0 0 0");
    T_TEXT(PLACED(s, .name = "a", .items = "x", .key = "k", .join = true), "0 1 0 0");
    T_EQ(TRY_SUBMIT(s, .name = "a", .items = "y", .key = "k", .join = true), GPQ_EKEY);
    T_EQ(TRY_SUBMIT(s, .name = "a", .items = "x", .content = "o", .key = "k", .join = true),
         GPQ_EKEY);
    T_TEXT(PLACED(s, .name = "a", .items = "y", .key = "k"), "1 0 0 0");
    T_TEXT(PLACED(s, .name = "a", .items = "y", .key = "k", .join = true), "0 1 0 0");
    T_TEXT(PLACED(s, .name = "a", .items = "k", .join = true), "1 0 0 0"); /* k as content */
}

BOTH(a_key_with_two_contents_in_one_submit)
{
    T_EQ(TRY_SUBMIT(s, .name = "a", .items = "x y", .key = "k", .join = true), GPQ_EKEY);
    T_CHECK(!batch_is_there(s, 1)); /* Q1: all or none */
    T_EQ(SUBMIT(s, .items = "x"), 1);
}

BOTH(a_try_says_what_a_submit_would_do)
{
    SUBMIT(s, .name = "a", .items = "x y");
    run(s, GPQ_TASK(1, 2), GPQ_OUTCOME_ERROR);
    step_begin(s);
    SUBMIT(s, .items = "w");
    T_TEXT(PLACED(s, .name = "a", .items = "x y z", .request = "r", .join = true, .only_try = true),
           "1 1 1 0");
    T_TEXT(PLACED(s, .items = "x", .request = "r", .only_try = true), "1 0 0 0");
    T_EQ(TRY_SUBMIT(s, .items = "x", .after = { { 99 } }, .only_try = true), GPQ_ENOTFOUND);
    step_commit(s);
    T_CHECK(batch_is_there(s, 2));
    T_CHECK(!batch_is_there(s, 3));
    T_TEXT(shown(s, GPQ_TASK(1, 2)), "done error");
    T_EQ(task(s, GPQ_TASK(1, 1)).order, 1);
    T_EQ(SUBMIT(s, .items = "x", .request = "r"), 3); /* neither its id nor its number is used */
    T_EQ(task(s, GPQ_TASK(3, 1)).order, 4);
    step_begin(s);
    T_TEXT(PLACED(s, .items = "x", .request = "r", .only_try = true), "1 0 0 0"); /* repeated */
    step_rollback(s);
}

BOTH(a_refusal_names_the_line)
{
    const struct gpq_spec spec = { .content = { "c", 1 } };
    const struct gpq_item item = { .spec = 1, .line = 17 };
    const struct gpq_submit what = { .specs = &spec, .items = &item, .n_specs = 1, .n_items = 1 };
    struct gpq_submitted answer = { .batch = 99 };
    struct gpq_error e = { 0 };

    step_begin(s);
    T_EQ(s->engine->submit(s, NOW, &what, &answer, NULL, &e), GPQ_EINVAL);
    step_commit(s);
    T_EQ(strncmp(e.text, "line 17: ", 9), 0);
    T_EQ(answer.batch, 99);
}

BOTH(more_tasks_than_a_batch_has_numbers)
{
    const struct gpq_spec spec = { .content = { "c", 1 } };
    const struct gpq_item item = { .spec = 0 };
    const struct gpq_submit what = {
        .specs = &spec, .items = &item, .n_specs = 1, .n_items = 1U << 31
    };
    struct gpq_submitted answer;
    struct gpq_error e;

    step_begin(s);
    T_EQ(s->engine->submit(s, NOW, &what, &answer, NULL, &e), GPQ_EINVAL);
    step_commit(s);
    T_CHECK(!batch_is_there(s, 1));
}

/* Q6: what ended otherwise gets a new round, with the spec of the item. */
BOTH(what_has_failed_is_joined_again)
{
    SUBMIT(s, .name = "a", .items = "x y");
    run(s, GPQ_TASK(1, 1), GPQ_OUTCOME_ERROR);
    run(s, GPQ_TASK(1, 2), GPQ_OUTCOME_SUCCESS);
    T_EQ(batch(s, 1).ended, NOW);
    T_TEXT(PLACED(s, .name = "a", .items = "x y", .priority = 3, .join = true), "0 1 1 0");
    T_TEXT(shown(s, GPQ_TASK(1, 1)), "ready");
    T_TEXT(rounds(s, GPQ_TASK(1, 1)), "1: error at attempt 1");
    T_EQ(task(s, GPQ_TASK(1, 1)).priority, 3);
    T_EQ(task(s, GPQ_TASK(1, 1)).round, 2);
    T_EQ(task(s, GPQ_TASK(1, 1)).charged, 0);
    T_EQ(task(s, GPQ_TASK(1, 1)).order, 1);
    T_EQ(batch(s, 1).ended, 0);
    T_EQ(batch(s, 2).ended, 0);
    T_EQ(batch(s, 2).outcome[GPQ_OUTCOME_SUCCESS], 1);
    T_EQ(claim(s, GPQ_TASK(1, 1)), 2);
    T_EQ(end(s, GPQ_TASK(1, 1), GPQ_OUTCOME_SUCCESS, 2000), 1);
    T_EQ(batch(s, 1).ended, 2000);
    T_EQ(batch(s, 2).ended, 2000);
}

BOTH(joined_again_it_is_held_by_the_submit_or_its_own_batch)
{
    SUBMIT(s, .name = "a", .items = "x y");
    hold(s, BATCH(1), true);
    cancel(s, BATCH(1));
    SUBMIT(s, .name = "a", .items = "x", .join = true);
    T_TEXT(shown(s, GPQ_TASK(1, 1)), "held user");
    hold(s, BATCH(1), false);
    SUBMIT(s, .name = "a", .items = "y", .held = true, .begin = 1010, .join = true);
    T_TEXT(shown(s, GPQ_TASK(1, 2)), "held time user");
}

static void succeed(struct gpq_store *s, uint64_t id, const char *stamp)
{
    const struct gpq_end what = {
        .task = id,
        .attempt = claim(s, id),
        .outcome = GPQ_OUTCOME_SUCCESS,
        .ended = NOW,
        .stamp = { stamp, stamp ? strlen(stamp) : 0 },
    };

    T_EQ(try_complete(s, &what), 1);
}

/* Q6: files that have changed since the success make a new task. */
BOTH(a_changed_file_makes_a_new_task)
{
    SUBMIT(s, .name = "a", .items = "x", .stamp = "1");
    T_TEXT(PLACED(s, .name = "a", .items = "x", .stamp = "2", .join = true), "0 1 0 0");
    succeed(s, GPQ_TASK(1, 1), "1");
    T_TEXT(PLACED(s, .name = "a", .items = "x", .stamp = "1", .join = true), "0 1 0 0");
    T_TEXT(PLACED(s, .name = "a", .items = "x", .join = true), "0 1 0 0");
    T_TEXT(PLACED(s, .name = "a", .items = "x", .stamp = "2", .join = true, .join_anyway = true),
           "0 1 0 0");
    T_TEXT(PLACED(s, .name = "a", .items = "x", .stamp = "2", .join = true), "0 0 0 1");
    T_TEXT(shown(s, GPQ_TASK(6, 1)), "ready");
    T_TEXT(PLACED(s, .name = "a", .items = "x", .stamp = "3", .join = true), "0 1 0 0");
}

static void note_changed(uint32_t item, struct gpq_bytes stamp, void *user)
{
    char *text = user;

    (void)sprintf(text + strlen(text), "%u %.*s;", item, (int)stamp.size, (const char *)stamp.data);
}

/* Q6: the stamp of the success shows what has changed, also to a try. */
BOTH(the_stamp_of_the_success_is_shown)
{
    char seen[64] = "";
    struct gpq_error e;
    struct gpq_submitted answer;
    const struct gpq_spec spec = { .content = { "class", 5 }, .shape = { "1 gpu", 5 } };
    const struct gpq_item items[] = {
        { .content = { "x", 1 }, .stamp = { "new", 3 } },
        { .content = { "y", 1 }, .stamp = { "new", 3 } },
        { .content = { "z", 1 }, .stamp = { "same", 4 } },
    };
    struct gpq_submit order = { .name = "a",
                                .join = true,
                                .only_try = true,
                                .specs = &spec,
                                .items = items,
                                .n_specs = 1,
                                .n_items = 3,
                                .changed = note_changed,
                                .user = seen };

    SUBMIT(s, .name = "a", .items = "x y z");
    succeed(s, GPQ_TASK(1, 2), "old");
    succeed(s, GPQ_TASK(1, 3), "same");
    step_begin(s);
    T_EQ(s->engine->submit(s, NOW, &order, &answer, NULL, &e), 0);
    T_TEXT(seen, "1 old;");
    order.only_try = false;
    T_EQ(s->engine->submit(s, NOW, &order, &answer, NULL, &e), 0);
    T_TEXT(seen, "1 old;1 old;");
    T_EQ(answer.count[GPQ_PLACED_CHANGED], 1);
    step_commit(s);
}

BOTH(a_success_without_a_stamp_is_joined)
{
    SUBMIT(s, .name = "a", .items = "x");
    succeed(s, GPQ_TASK(1, 1), NULL);
    T_TEXT(PLACED(s, .name = "a", .items = "x", .stamp = "2", .join = true), "0 1 0 0");
}

BOTH(appending)
{
    uint32_t b = SUBMIT(s, .name = "a", .items = "x", .open = true);

    run(s, GPQ_TASK(b, 1), GPQ_OUTCOME_SUCCESS);
    T_EQ(batch(s, b).ended, 0);
    T_TEXT(PLACED(s, .batch = b, .items = "x y", .join = true), "1 1 0 0");
    T_TEXT(listed(s, BATCH(b)), "1.1 1.2");
    T_EQ(batch(s, b).joined, 0);
    T_EQ(batch(s, b).open, true);
    seal(s, b);
    seal(s, b);
    T_EQ(TRY_SUBMIT(s, .batch = b, .items = "z"), GPQ_EREFUSED);
    T_EQ(TRY_SUBMIT(s, .batch = 7, .items = "z"), GPQ_ENOTFOUND);
    run(s, GPQ_TASK(b, 2), GPQ_OUTCOME_SUCCESS);
    T_EQ(batch(s, b).ended, NOW);
}

BOTH(a_held_batch_holds_what_is_appended)
{
    uint32_t b = SUBMIT(s, .items = "x", .open = true);

    T_EQ(hold(s, BATCH(b), true), 1);
    T_EQ(batch(s, b).held, true);
    SUBMIT(s, .batch = b, .items = "y");
    T_TEXT(shown(s, GPQ_TASK(b, 2)), "held user");
    T_EQ(hold(s, BATCH(b), false), 2);
    T_EQ(batch(s, b).held, false);
    T_TEXT(ready(s), "1.1 1.2");
}

/* Q1: sent twice, its request id makes it one. */
BOTH(a_request_is_carried_out_once)
{
    struct gpq_submitted answer;

    SUBMIT(s, .request = "r1", .name = "a", .items = "x y", .join = true);
    T_EQ(try_submit(
             s,
             &(const struct sketch){ .request = "r1", .name = "a", .items = "x y", .join = true },
             &answer),
         0);
    T_CHECK(answer.repeated);
    T_EQ(answer.batch, 1);
    T_EQ(answer.count[GPQ_PLACED_ADDED], 2);
    T_EQ(answer.count[GPQ_PLACED_JOINED], 0);
    T_CHECK(!batch_is_there(s, 2));
    T_EQ(SUBMIT(s, .request = "r2", .items = "x y"), 2);
    T_EQ(SUBMIT(s, .items = "x y"), 3);
    T_EQ(SUBMIT(s, .items = "x y"), 4);
}

/* Q1: only a commit counts. */
BOTH(a_request_that_was_refused_or_rolled_back_is_not_repeated)
{
    struct gpq_submitted answer;
    const struct sketch good = { .request = "r", .items = "x" };

    T_EQ(TRY_SUBMIT(s, .request = "r", .batch = 9, .items = "x"), GPQ_ENOTFOUND);
    step_begin(s);
    T_EQ(try_submit(s, &good, &answer), 0);
    step_rollback(s);
    T_CHECK(!batch_is_there(s, 1));
    T_EQ(try_submit(s, &good, &answer), 0);
    T_CHECK(!answer.repeated);
}
