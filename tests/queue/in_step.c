/* SPDX-License-Identifier: MIT */
/*
 * in_step.c - random operations on the engine in files and on the model, which must agree.
 *
 * After each operation both have returned the same; after each transaction both show the same, also
 * after a rollback, and after the file was closed in the middle of one and opened again.  Of a
 * difference, the case removes operations for as long as one remains, and prints those that are
 * left.  T_MODEL_SEED repeats one world; T_MODEL_OPERATIONS says how many there are in all.
 */
#include "world.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calm.h"
#include "memstore.h"

enum { LONGEST = 400, OPERATIONS = 50000, TRIES = 600 };

/* One world, and which of its operations are carried out. */
struct plan {
    uint64_t seed;
    uint32_t n;
    bool skip[LONGEST];
};

struct run {
    struct world w;
    const struct plan *plan;
    bool told;   /* says each operation */
    uint32_t at; /* number of the operation */
    uint64_t commits;
    struct view difference; /* empty: none so far */
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void remove_all(const char *directory)
{
    (void)nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void open_both(struct run *r)
{
    r->w.store[MODEL] = engine_open(MEMORY, "model", NULL);
    r->w.store[TESTED] = engine_open(SQLITE, "tested", calm_vfs());
}

static void close_both(struct run *r)
{
    for (int i = 0; i < STORES; i++)
        r->w.store[i]->engine->close(r->w.store[i]);
    view_free(&r->w.said);
    for (int i = 0; i < STORES; i++)
        view_free(&r->w.got[i]);
    remove_all("model");
    remove_all("tested");
}

static uint64_t mixed(uint64_t a, uint64_t b)
{
    struct world w = { .lot = a ^ (b * UINT64_C(0xd1342543de82ef95)) };

    return world_below(&w, UINT64_MAX);
}

/* ---- Comparing ---- */

/* Compares what both have put into their views, and empties these. */
static void compare(struct run *r, const char *what)
{
    const char *model, *tested;

    view_difference(&r->w.got[MODEL], &r->w.got[TESTED], &model, &tested);
    if (model && !r->difference.size)
        view_add(&r->difference, "%s at operation %u:\n  model:  %.*s\n  tested: %.*s\n", what,
                 r->at, (int)strcspn(model, "\n"), model, (int)strcspn(tested, "\n"), tested);
    for (int i = 0; i < STORES; i++)
        view_clear(&r->w.got[i]);
}

static void compare_stores(struct run *r, const char *what, bool details)
{
    for (int i = 0; i < STORES; i++)
        view_store(&r->w.got[i], r->w.store[i], details);
    compare(r, what);
}

static void compare_changes(struct run *r)
{
    for (int i = 0; i < STORES; i++)
        view_changes(&r->w.got[i], r->w.store[i]);
    compare(r, "changes");
}

/* ---- Transactions ---- */

static void call(struct run *r, const char *what, int model, int tested)
{
    view_add(&r->w.got[MODEL], "%d", model);
    view_add(&r->w.got[TESTED], "%d", tested);
    compare(r, what);
}

static void begin(struct run *r)
{
    struct gpq_store **s = r->w.store;
    struct gpq_error e;

    call(r, "begin", s[MODEL]->engine->begin(s[MODEL], &e),
         s[TESTED]->engine->begin(s[TESTED], &e));
}

static void commit(struct run *r)
{
    struct gpq_store **s = r->w.store;
    struct gpq_error e;

    call(r, "commit", s[MODEL]->engine->commit(s[MODEL], &e),
         s[TESTED]->engine->commit(s[TESTED], &e));
    compare_changes(r);
    r->w.kept_spans = r->w.n_spans;
    r->commits++;
}

static void roll_back(struct run *r)
{
    for (int i = 0; i < STORES; i++)
        r->w.store[i]->engine->rollback(r->w.store[i]);
    r->w.n_spans = r->w.kept_spans;
}

/* The tested store is closed where it is, and opened again. */
static void reopen(struct run *r)
{
    r->w.store[MODEL]->engine->rollback(r->w.store[MODEL]);
    r->w.store[TESTED]->engine->close(r->w.store[TESTED]);
    r->w.store[TESTED] = engine_open(SQLITE, "tested", calm_vfs());
    r->w.n_spans = r->w.kept_spans;
}

static void end_transaction(struct run *r)
{
    static void (*const way[])(struct run * r) = { commit, commit, commit, commit,    commit,
                                                   commit, commit, commit, roll_back, reopen };
    static const char *const name[] = { "commit", "rollback", "reopen" };
    size_t at = world_below(&r->w, T_LENGTH(way));

    if (r->told)
        (void)fprintf(stderr, "     %s\n", name[at < 8 ? 0 : at - 7]);
    way[at](r);
    compare_stores(r, name[at < 8 ? 0 : at - 7], world_once_in(&r->w, 6) || at >= 8);
}

/* ---- A world ---- */

static void draw_time(struct run *r)
{
    static const uint64_t step[] = { 0, 0, 1, 3, 10, 40 };

    r->w.now += step[world_below(&r->w, T_LENGTH(step))];
    if (world_once_in(&r->w, 40))
        r->w.now += 1000;
    if (world_once_in(&r->w, 60))
        r->w.now -= 200; /* the clock was set back */
}

static void operate(struct run *r)
{
    view_clear(&r->w.said);
    draw_time(r);
    world_operate(&r->w);
    if (r->told)
        (void)fprintf(stderr, "%4u at %" PRIu64 ": %s\n", r->at, r->w.now, r->w.said.text);
    compare(r, "return");
    if (world_once_in(&r->w, 20) && !r->difference.size)
        compare_stores(r, "within the transaction", true);
}

/* Returns the number of the operation at which they differ; plan->n if they do not. */
static uint32_t run_plan(struct run *r, const struct plan *plan, bool told)
{
    *r = (struct run){ .plan = plan, .told = told, .w.now = 10000, .commits = r->commits };
    open_both(r);
    for (int i = 0; i < STORES; i++)
        view_clear(&r->w.got[i]);
    begin(r);
    for (r->at = 0; r->at < plan->n && !r->difference.size; r->at++) {
        r->w.lot = mixed(plan->seed, r->at);
        if (plan->skip[r->at])
            continue;
        operate(r);
        if (!r->difference.size && (world_once_in(&r->w, 5) || r->at + 1 == plan->n)) {
            end_transaction(r);
            begin(r);
        }
    }
    roll_back(r);
    close_both(r);
    return r->at;
}

static bool differs(const struct plan *plan)
{
    struct run r = { 0 };

    (void)run_plan(&r, plan, false);

    bool is = r.difference.size;

    view_free(&r.difference);
    return is;
}

/* Leaves out runs of operations, long ones first, where a difference remains. */
static void shrink(struct plan *plan)
{
    uint32_t tries = 0;

    for (uint32_t length = plan->n / 2; length > 0; length /= 2)
        for (uint32_t at = 0; at + length <= plan->n && tries < TRIES; at += length) {
            struct plan less = *plan;

            memset(less.skip + at, true, length);
            if (!memcmp(less.skip, plan->skip, sizeof(less.skip)))
                continue;
            tries++;
            if (differs(&less))
                *plan = less;
        }
}

/* Runs the world of this seed.  Returns how many operations it had. */
static uint32_t run_world(uint64_t seed, uint64_t *commits)
{
    static const uint32_t length[] = { 30, 80, 150, 150, LONGEST };
    struct plan plan = { .seed = seed, .n = length[mixed(seed, 999) % T_LENGTH(length)] };
    struct run r = { 0 };
    uint32_t at = run_plan(&r, &plan, getenv("T_MODEL_TOLD"));

    *commits += r.commits;
    if (!r.difference.size)
        return plan.n;
    (void)fprintf(stderr, "seed %" PRIu64 ": %s", seed, r.difference.text);
    view_free(&r.difference);
    plan.n = at;
    shrink(&plan);
    (void)run_plan(&r, &plan, true);
    (void)fprintf(stderr, "%s", r.difference.text);
    view_free(&r.difference);
    T_FAIL("T_MODEL_SEED=%" PRIu64 ": the engines differ", seed);
}

T_LONG_CASE(the_engines_agree, 3000)
{
    const char *seed = getenv("T_MODEL_SEED"), *n = getenv("T_MODEL_OPERATIONS");
    uint64_t wanted = n ? strtoull(n, NULL, 10) : t_rounds(OPERATIONS, OPERATIONS / 10);
    uint64_t at = seed ? strtoull(seed, NULL, 10) : 1, done = 0, commits = 0;

    do
        done += run_world(at++, &commits);
    while (!seed && done < wanted);
    printf("%" PRIu64 " operations, %" PRIu64 " commits, %" PRIu64 " worlds\n", done, commits,
           at - 1);
}
