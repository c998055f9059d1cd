/* SPDX-License-Identifier: MIT */
/* waits.c - Q7: the order of ready tasks; holds, times, turns, and another spec. */
#include "steps.h"

#define T(number) GPQ_TASK(1, number)

/* Q7: by priority, then in the order of the submits. */
BOTH(ready_tasks_come_by_priority_and_then_in_order)
{
    SUBMIT(s, .items = "a b");
    SUBMIT(s, .items = "c d", .priority = 5);
    SUBMIT(s, .items = "e", .priority = -1);
    SUBMIT(s, .items = "f", .priority = 5);
    T_TEXT(ready(s), "2.1 2.2 4.1 1.1 1.2 3.1");
}

static int count_three(const struct gpq_task *t, void *user)
{
    (void)t;
    return ++*(int *)user == 3 ? 77 : 0;
}

BOTH(readers_stop_where_the_function_says_so)
{
    struct gpq_error e;
    int n = 0;

    SUBMIT(s, .items = "a b c d e");
    T_EQ(s->engine->tasks(s, ALL, 0, false, count_three, &n, &e), 77);
    T_EQ(n, 3);
    n = 0;
    T_EQ(s->engine->tasks(s, ALL, T(3), false, count_three, &n, &e), 0);
    T_EQ(n, 2); /* above `after` */
    n = 0;
    T_EQ(s->engine->ready(s, task(s, T(1)).shape, 0, 2, 100, count_three, &n, &e), 77);
    n = 0;
    T_EQ(s->engine->ready(s, task(s, T(1)).shape, 0, 3, 1, count_three, &n, &e), 0);
    T_EQ(n, 1); /* behind this place, at most one */
}

static int see_shape(const struct gpq_shape *shape, void *user)
{
    *(struct gpq_shape *)user = *shape;
    return 0;
}

BOTH(a_shape_has_its_ready_tasks)
{
    struct gpq_shape seen = { 0 };
    struct gpq_error e;

    SUBMIT(s, .items = "a b");
    SUBMIT(s, .items = "c", .priority = 3);
    SUBMIT(s, .items = "d", .shape = "2 gpus", .held = true);
    T_EQ(s->engine->shapes(s, see_shape, &seen, &e), 0);
    T_EQ(seen.ready, 3);
    T_EQ(seen.priority, 3);
    T_EQ(seen.order, 3);
    T_EQ(seen.id, task(s, T(1)).shape);
    T_CHECK(task(s, GPQ_TASK(3, 1)).shape != seen.id);
}

/* Q7: a task keeps its place over holds. */
BOTH(holds)
{
    SUBMIT(s, .items = "a b c");
    claim(s, T(3));
    T_EQ(hold(s, BATCH(1), true), 2);
    T_EQ(hold(s, BATCH(1), true), 0);
    T_TEXT(ready(s), "");
    T_EQ(hold(s, ONE(T(2)), false), 1);
    T_EQ(hold(s, ONE(T(1)), false), 1);
    T_TEXT(ready(s), "1.1 1.2");
    T_TEXT(shown(s, T(3)), "running 1");
    SUBMIT(s, .items = "d", .held = true);
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "held user");
    T_CHECK(!batch(s, 2).held);
}

BOTH(a_task_waits_until_all_holds_are_gone)
{
    uint64_t next;

    SUBMIT(s, .items = "a");
    SUBMIT(s, .items = "b", .held = true, .begin = 1010, .after = { { T(1), GPQ_AFTER_OK } });
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "held after time user");
    T_EQ(due(s, 1010, &next), 1);
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "held after user");
    run(s, T(1), GPQ_OUTCOME_SUCCESS);
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "held user");
    hold(s, ALL, false);
    T_TEXT(shown(s, GPQ_TASK(2, 1)), "ready");
}

BOTH(times)
{
    uint64_t next = 5;

    T_EQ(due(s, NOW, &next), 0);
    T_EQ(next, 0);
    SUBMIT(s, .items = "a", .begin = 1010);
    SUBMIT(s, .items = "b", .begin = NOW); /* has passed */
    SUBMIT(s, .items = "c", .expires = 1005);
    SUBMIT(s, .items = "d", .begin = 1020, .expires = 1010);
    T_TEXT(ready(s), "2.1 3.1");
    T_EQ(due(s, 1004, &next), 0);
    T_EQ(next, 1005);
    T_EQ(due(s, 1005, &next), 1);
    T_TEXT(shown(s, GPQ_TASK(3, 1)), "done timeout");
    T_EQ(task(s, GPQ_TASK(3, 1)).ended, 1005);
    T_EQ(next, 1010);
    T_EQ(due(s, 2000, &next), 3); /* a: ready; d: its time came, and it expired */
    T_TEXT(shown(s, T(1)), "ready");
    T_TEXT(shown(s, GPQ_TASK(4, 1)), "done timeout");
    T_EQ(next, 0);
}

BOTH(what_runs_does_not_expire)
{
    uint64_t next;

    SUBMIT(s, .items = "a", .expires = 1005);
    claim(s, T(1));
    T_EQ(due(s, 1010, &next), 0);
    T_EQ(next, 0);
    T_EQ(end(s, T(1), GPQ_OUTCOME_SUCCESS, 1010), 1);
}

/* A retry and a loss do not expire, either.  A start that never was is none. */
BOTH(what_has_run_does_not_expire)
{
    uint64_t next;

    SUBMIT(s, .items = "a b c", .expires = 1005, .retries = { 1 }, .backoff = 50);
    for (uint64_t i = 1; i <= 3; i++)
        claim(s, T(i));
    T_EQ(end(s, T(1), GPQ_OUTCOME_ERROR, 1001), 0);
    T_EQ(try_give_back(s, T(2), 1, GPQ_RETURN_DEVICE), 0);
    T_EQ(try_give_back(s, T(3), 1, GPQ_RETURN_UNSTARTED), 0);
    T_EQ(task(s, T(2)).expires, 0);
    T_EQ(task(s, T(3)).expires, 1005);
    due(s, 1010, &next);
    T_TEXT(shown(s, T(1)), "held time");
    T_TEXT(shown(s, T(2)), "ready");
    T_TEXT(shown(s, T(3)), "done timeout");
}

BOTH(the_first)
{
    SUBMIT(s, .items = "a b c d");
    T_EQ(first(s, &(const struct gpq_select){ .batch = 1, .first = 3, .last = 4 }), 2);
    T_TEXT(ready(s), "1.3 1.4 1.1 1.2");
    T_EQ(task(s, T(3)).order, -2);
    T_EQ(s->n_changes, 2);
    T_EQ(first(s, ONE(T(2))), 1);
    T_TEXT(ready(s), "1.2 1.3 1.4 1.1");
    SUBMIT(s, .items = "e", .priority = 1);
    T_TEXT(ready(s), "2.1 1.2 1.3 1.4 1.1"); /* first of its priority */
    claim(s, T(1));
    T_EQ(first(s, ONE(T(1))), 0);
}

BOTH(another_spec)
{
    const struct gpq_after after = { T(1), GPQ_AFTER_OK };
    const struct gpq_spec spec = { .content = { "class", 5 },
                                   .shape = { "2 gpus", 6 },
                                   .priority = 4,
                                   .expires = 1005,
                                   .begin = 9999,
                                   .held = true,
                                   .after = &after,
                                   .n_after = 1 };
    uint32_t shape;

    SUBMIT(s, .items = "a b c");
    shape = task(s, T(1)).shape;
    claim(s, T(1));
    hold(s, ONE(T(3)), true);
    T_EQ(respec(s, BATCH(1), &spec), 2);
    T_EQ(s->n_changes, 1);
    T_EQ(s->changes[0].from, GPQ_READY);
    T_EQ(s->changes[0].to, GPQ_READY);
    T_EQ(task(s, T(1)).shape, shape);
    T_CHECK(task(s, T(2)).shape != shape);
    T_EQ(task(s, T(2)).priority, 4);
    T_EQ(task(s, T(3)).expires, 1005);
    T_TEXT(shown(s, T(2)), "ready");
    T_TEXT(shown(s, T(3)), "held user");
    T_EQ(task(s, T(2)).order, 2);
}

/* Q6: what a task is does not change, so that a later submit of its line joins it. */
BOTH(another_spec_has_the_same_content)
{
    const struct gpq_spec spec = { .content = { "other", 5 }, .priority = 3 };
    struct gpq_error e = { 0 };

    SUBMIT(s, .name = "a", .items = "x y");
    step_begin(s);
    T_EQ(s->engine->respec(s, NOW, BATCH(1), &spec, &e), GPQ_EINVAL);
    step_commit(s);
    T_EQ(e.code, GPQ_EINVAL);
    T_EQ(task(s, T(1)).priority, 0);
    T_TEXT(PLACED(s, .name = "a", .items = "x y", .join = true), "0 2 0 0");
}

/* ---- Turns ---- */

BOTH(so_many_at_once)
{
    SUBMIT(s, .items = "a b c d", .at_once = 2);
    T_TEXT(ready(s), "1.1 1.2");
    T_TEXT(shown(s, T(3)), "held turn");
    T_TEXT(next_turn(s, 1), "1.3");
    claim(s, T(1));
    T_TEXT(ready(s), "1.2");
    run(s, T(2), GPQ_OUTCOME_SUCCESS);
    T_TEXT(ready(s), "1.3");
    T_TEXT(next_turn(s, 1), "1.4");
    cancel(s, ONE(T(3)));
    T_TEXT(ready(s), "1.4");
    T_TEXT(next_turn(s, 1), "");
    end(s, T(1), GPQ_OUTCOME_SUCCESS, NOW);
    T_TEXT(ready(s), "1.4");
}

BOTH(turns_go_by_priority_and_order)
{
    const struct gpq_spec spec = { .content = { "class", 5 }, .priority = 1 };

    SUBMIT(s, .items = "a b c d", .at_once = 1);
    first(s, ONE(T(3)));
    T_TEXT(next_turn(s, 1), "1.3");
    cancel(s, ONE(T(1)));
    T_TEXT(ready(s), "1.3");
    respec(s, ONE(T(4)), &spec);
    T_TEXT(next_turn(s, 1), "1.4");
    cancel(s, ONE(T(3)));
    T_TEXT(ready(s), "1.4");
}

BOTH(a_held_task_frees_its_turn)
{
    SUBMIT(s, .items = "a b c", .at_once = 1);
    hold(s, ONE(T(1)), true);
    T_TEXT(ready(s), "1.2");
    hold(s, ONE(T(3)), true);
    T_TEXT(shown(s, T(3)), "held user"); /* without TURN */
    T_TEXT(next_turn(s, 1), "");
    hold(s, ALL, false);
    T_TEXT(ready(s), "1.2");
    T_TEXT(shown(s, T(1)), "held turn");
    T_TEXT(next_turn(s, 1), "1.1");
}

/* What goes on at once keeps its turn; what waits for its backoff does not. */
BOTH(turns_over_retries)
{
    SUBMIT(s, .items = "a b", .at_once = 1, .retries = { 9, 9, 9, 9 });
    run(s, T(1), GPQ_OUTCOME_ERROR);
    T_TEXT(ready(s), "1.1");
    T_EQ(try_give_back(s, T(1), claim(s, T(1)), GPQ_RETURN_LOST), 0);
    T_TEXT(ready(s), "1.1");
    SUBMIT(s, .items = "a b", .at_once = 1, .retries = { 9, 9, 9, 9 }, .backoff = 5);
    run(s, GPQ_TASK(2, 1), GPQ_OUTCOME_ERROR);
    T_TEXT(ready(s), "1.1 2.2");
}

/* Joined tasks take no turns of the batch that has joined them. */
BOTH(turns_are_of_own_tasks)
{
    SUBMIT(s, .name = "a", .items = "x y");
    SUBMIT(s, .name = "a", .items = "x y z w", .join = true, .at_once = 1);
    T_TEXT(ready(s), "1.1 1.2 2.1");
    T_TEXT(next_turn(s, 1), "");
    T_TEXT(next_turn(s, 2), "2.2");
}
