/* SPDX-License-Identifier: MIT */
/* ready.c - since when a task was ready, what its attempt said, and where it ran. */
#include "steps.h"

#include <stdio.h>
#include <string.h>

#define T1 GPQ_TASK(1, 1)

static int copy_last(const struct gpq_attempt *a, void *user)
{
    static char texts[2][256];
    struct gpq_attempt *ret = user;

    *ret = *a;
    (void)snprintf(texts[0], sizeof(texts[0]), "%s", a->devices ? a->devices : "-");
    (void)snprintf(texts[1], sizeof(texts[1]), "%s", a->said ? a->said : "-");
    ret->devices = texts[0];
    ret->said = texts[1];
    return 0;
}

/* The last attempt of a task; of its texts only devices and said. */
static struct gpq_attempt attempt(struct gpq_store *s, uint64_t id)
{
    struct gpq_attempt a = { 0 };
    struct gpq_error e;

    T_EQ(s->engine->attempts(s, id, copy_last, &a, &e), 0);
    return a;
}

/* Claims a task, and expects that both know since when it was ready. */
static void claim_ready_at(struct gpq_store *s, uint64_t id, uint64_t at)
{
    T_EQ(task(s, id).ready, at);
    (void)claim(s, id);
    T_EQ(task(s, id).ready, at);
    T_EQ(attempt(s, id).ready, at);
}

BOTH(ready_since_the_submit)
{
    SUBMIT(s, .items = "x", .at = 700);
    claim_ready_at(s, T1, 700);
    T_EQ(end(s, T1, GPQ_OUTCOME_SUCCESS, 900), 1);
    T_EQ(task(s, T1).ready, 0);
}

BOTH(ready_since_a_retry_or_a_return)
{
    SUBMIT(s, .items = "x", .at = 700, .retries = { 1 });
    claim_ready_at(s, T1, 700);
    T_EQ(end(s, T1, GPQ_OUTCOME_ERROR, 800), 0);
    claim_ready_at(s, T1, 800);
    T_EQ(try_give_back(s, T1, 2, GPQ_RETURN_DEVICE), 0);
    claim_ready_at(s, T1, NOW);
    T_EQ(end(s, T1, GPQ_OUTCOME_ERROR, 1100), 1);
    retry(s, ONE(T1), 1200);
    claim_ready_at(s, T1, 1200);
}

BOTH(ready_since_the_end_of_a_backoff)
{
    uint64_t next;

    SUBMIT(s, .items = "x", .at = 700, .retries = { 1 }, .backoff = 100);
    claim_ready_at(s, T1, 700);
    T_EQ(end(s, T1, GPQ_OUTCOME_ERROR, 800), 0);
    T_EQ(task(s, T1).ready, 0);
    T_EQ(due(s, 950, &next), 1);
    claim_ready_at(s, T1, 950);
}

BOTH(ready_since_its_condition_is_met)
{
    SUBMIT(s, .items = "x", .at = 700);
    SUBMIT(s, .items = "y", .at = 750, .after = { { T1, GPQ_AFTER_ENDED } });
    T_EQ(task(s, GPQ_TASK(2, 1)).ready, 0);
    (void)claim(s, T1);
    T_EQ(end(s, T1, GPQ_OUTCOME_ERROR, 800), 1);
    claim_ready_at(s, GPQ_TASK(2, 1), 800);
}

BOTH(ready_since_its_turn)
{
    SUBMIT(s, .items = "x y", .at = 700, .at_once = 1);
    claim_ready_at(s, T1, 700);
    T_EQ(task(s, GPQ_TASK(1, 2)).ready, 0);
    T_EQ(end(s, T1, GPQ_OUTCOME_SUCCESS, 800), 1);
    claim_ready_at(s, GPQ_TASK(1, 2), 800);
}

BOTH(ready_since_its_release)
{
    SUBMIT(s, .items = "x", .at = 700);
    hold(s, ONE(T1), true);
    T_EQ(task(s, T1).ready, 0);
    hold(s, ONE(T1), false);
    claim_ready_at(s, T1, NOW);
}

/* A place, another spec and another batch leave it ready. */
BOTH(ready_all_the_time)
{
    const struct gpq_spec spec = { .content = { "class", 5 }, .shape = { "2 gpus", 6 } };

    SUBMIT(s, .items = "x y", .at = 700, .name = "night");
    first(s, ONE(GPQ_TASK(1, 2)));
    respec(s, ONE(GPQ_TASK(1, 2)), &spec);
    T_TEXT(PLACED(s, .items = "x y", .at = 800, .name = "night", .join = true), "0 2 0 0");
    claim_ready_at(s, T1, 700);
    claim_ready_at(s, GPQ_TASK(1, 2), 700);
}

BOTH(what_it_said_and_where_it_ran)
{
    char said[GPQ_SAID + 2];
    struct gpq_end what = { .task = T1, .outcome = GPQ_OUTCOME_ERROR, .ended = NOW, .said = said };

    memset(said, 'x', sizeof(said));
    said[GPQ_SAID + 1] = '\0';
    SUBMIT(s, .items = "x", .retries = { 9 });
    what.attempt = claim(s, T1);
    T_EQ(try_complete(s, &what), GPQ_EINVAL);
    T_TEXT(shown(s, T1), "running 1");
    said[GPQ_SAID] = '\0';
    T_EQ(try_complete(s, &what), 0);
    T_TEXT(attempt(s, T1).said, said);
    T_TEXT(attempt(s, T1).devices, "0"); /* as at the claim */
    what.attempt = claim(s, T1);
    what.said = NULL;
    what.devices = "2,3";
    T_EQ(try_complete(s, &what), 0);
    T_TEXT(attempt(s, T1).said, "-");
    T_TEXT(attempt(s, T1).devices, "2,3");
    what.attempt = claim(s, T1);
    what.outcome = GPQ_OUTCOME_SUCCESS;
    what.said = "done";
    T_EQ(try_complete(s, &what), 1);
    T_TEXT(attempt(s, T1).said, "-");
}

/* Of an attempt of a worker the claim did not know them. */
BOTH(a_return_has_devices_and_start)
{
    struct gpq_back back = { .task = T1, .attempt = 1, .why = GPQ_RETURN_DEVICE };

    SUBMIT(s, .items = "x");
    claim(s, T1);
    back.started = NOW - 7;
    back.devices = "3";
    T_EQ(try_return(s, &back), 0);
    T_TEXT(attempt(s, T1).devices, "3");
    T_EQ(attempt(s, T1).started, NOW - 7);
    T_EQ(attempt(s, T1).returned_at, NOW);
    claim(s, T1);
    back = (struct gpq_back){ .task = T1, .attempt = 2, .why = GPQ_RETURN_LOST };
    T_EQ(try_return(s, &back), 0);
    T_TEXT(attempt(s, T1).devices, "0"); /* as at the claim */
    T_EQ(attempt(s, T1).started, 0);
    claim(s, T1);
    back.attempt = 3;
    back.started = UINT64_MAX;
    T_EQ(try_return(s, &back), GPQ_EINVAL);
    T_TEXT(shown(s, T1), "running 3");
}
