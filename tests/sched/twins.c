/* SPDX-License-Identifier: MIT */
/*
 * twins.c - what the tasks that pass a head take from it.                             [S2] [S3]
 *
 *     twins [WORLDS [S2 | S3]]
 *
 * Each world runs in virtual time, with tasks whose arrivals and runs are fixed.  For each task
 * that had to wait as the first of all, the world runs again without the tasks that passed it.
 * With APART the task must start at the same time (S2).  For the other kinds of passing the
 * program prints how many start later.
 *
 * In half of the worlds each task has a limit.  There no task may start later than a bound into
 * which only the tasks before it enter (S3).
 *
 * Exit status: 1 if one of these fails, or if too few tasks were compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sched/plan.h"
#include "sim/random.h"

#define TASKS 120u
#define DEVICES 8u
#define SHAPES 10u
#define GIB (1ull << 30)
#define GRACE 5u
#define WORLDS 300u

static const char *const name[] = { "LEARNED", "APART", "PROMISE", "NAIVE" };

struct task {
    uint64_t at, run, limit;
    int32_t priority;
    uint32_t shape;
    bool removed;
    uint64_t begun;             /* GPI_NEVER: not yet */
    bool waits, runs, is_first; /* is_first: no task before it waited when it came */
};

struct world {
    struct gpi_plan_settings set;
    struct gpi_request shape[SHAPES];
    uint64_t memory[DEVICES];
    struct task task[TASKS];
    bool finite;      /* each task has a limit, and none needs CPU slots: S3 */
    uint64_t gone_at; /* removed tasks are withdrawn then, and come no more */
};

static struct gpi_request make_shape(struct gpi_random *rng, uint32_t devices, bool cpus)
{
    struct gpi_request r = { .share = GPI_SHARE_ALL };

    r.devices = !cpus || gpi_random_below(rng, 10) ? 1 + (uint32_t)gpi_random_below(rng, 2) : 0;
    if (r.devices && gpi_random_below(rng, 4) == 0)
        r.devices = 1 + (uint32_t)gpi_random_below(rng, devices);
    if (r.devices == 1 && gpi_random_below(rng, 2))
        r.share = 1000 * (1 + (uint32_t)gpi_random_below(rng, 9));
    if (r.devices == 0)
        r.share = 0;
    if (cpus && (r.devices == 0 || gpi_random_below(rng, 3) == 0))
        r.cpus = 1 + (uint32_t)gpi_random_below(rng, 4);
    r.memory = r.devices ? GIB * gpi_random_below(rng, 60) : 0;
    return r;
}

static void make(struct world *w, uint64_t seed, enum gpi_passing passing)
{
    struct gpi_random rng = { seed };
    const uint32_t devices = 1 + (uint32_t)gpi_random_below(&rng, DEVICES);
    uint64_t at = 0;

    memset(w, 0, sizeof *w);
    w->gone_at = GPI_NEVER;
    w->finite = seed % 2;
    w->set = (struct gpi_plan_settings){ .tasks = TASKS,
                                         .shapes = TASKS,
                                         .classes = 1,
                                         .devices = devices,
                                         .runs = TASKS,
                                         .passing = passing,
                                         .cpus = 4 + (uint32_t)gpi_random_below(&rng, 8) };
    for (uint32_t d = 0; d < devices; d++)
        w->memory[d] = gpi_random_below(&rng, 2) ? 24 * GIB : 80 * GIB;
    for (uint32_t i = 0; i < SHAPES; i++)
        w->shape[i] = make_shape(&rng, devices, !w->finite);
    for (uint32_t i = 0; i < TASKS; i++) {
        struct task *t = &w->task[i];
        at += gpi_random_below(&rng, 120);
        t->at = at;
        t->run = 1 + gpi_random_scale(&rng, 10, 3000);
        t->limit = w->finite || gpi_random_below(&rng, 10)
                       ? t->run + t->run * gpi_random_below(&rng, 100) / 50
                       : GPI_NEVER;
        t->shape = (uint32_t)gpi_random_below(&rng, SHAPES);
        t->priority = gpi_random_below(&rng, 6) ? 0 : 1;
    }
}

static bool precedes(const struct world *w, uint32_t a, uint32_t b)
{
    const struct task *x = &w->task[a], *y = &w->task[b];

    return x->priority != y->priority ? x->priority > y->priority : a < b;
}

static void decide(struct world *w, struct gpi_plan *p, uint64_t now)
{
    struct gpi_plan_action a;

    gpi_plan_decide(p, now);
    while (gpi_plan_next(p, &a))
        if (a.kind == GPI_PLAN_RUN) {
            w->task[a.task].waits = false;
            w->task[a.task].runs = true;
            w->task[a.task].begun = now;
        }
}

static void arrive(struct world *w, struct gpi_plan *p, uint32_t i, uint64_t now)
{
    struct task *t = &w->task[i];
    const struct gpi_plan_task what = { .priority = t->priority,
                                        .order = i,
                                        .limit = t->limit,
                                        .request = &w->shape[t->shape],
                                        .n_requests = 1 };

    if ((t->removed && now >= w->gone_at) || !gpi_plan_could(p, &what.request[0]))
        return;
    (void)gpi_plan_submit(p, now, i, &what);
    t->waits = t->is_first = true;
    for (uint32_t k = 0; k < TASKS; k++) {
        if (k != i && w->task[k].waits && precedes(w, k, i))
            t->is_first = false;
        if (k != i && w->task[k].waits && precedes(w, i, k))
            w->task[k].is_first = false; /* one that is before it has come */
    }
}

static void withdraw_removed(struct world *w, struct gpi_plan *p, uint64_t now)
{
    for (uint32_t i = 0; i < TASKS; i++)
        if (w->task[i].removed && w->task[i].waits) {
            w->task[i].waits = false;
            gpi_plan_withdraw(p, now, i);
        }
}

/* Returns the next time at which something happens; GPI_NEVER if nothing does any more. */
static uint64_t next_time(const struct world *w, uint32_t arrived)
{
    uint64_t next = arrived < TASKS ? w->task[arrived].at : GPI_NEVER;

    for (uint32_t i = 0; i < TASKS; i++)
        if (w->task[i].runs && w->task[i].begun + w->task[i].run < next)
            next = w->task[i].begun + w->task[i].run;
    return next;
}

static bool run(struct world *w)
{
    struct gpi_plan *p = gpi_plan_create(&w->set);
    const struct gpi_plan_class class = { .grace = GRACE };
    uint32_t arrived = 0;
    uint64_t now;

    if (!p)
        return false;
    for (uint32_t i = 0; i < TASKS; i++) {
        w->task[i].waits = w->task[i].runs = false;
        w->task[i].begun = GPI_NEVER;
    }
    gpi_plan_class_add(p, 0, &class);
    for (uint32_t d = 0; d < w->set.devices; d++)
        gpi_plan_device_add(p, d, &(struct gpi_plan_has){ .memory = w->memory[d] });
    while ((now = next_time(w, arrived)) != GPI_NEVER) {
        for (uint32_t i = 0; i < TASKS; i++)
            if (w->task[i].runs && w->task[i].begun + w->task[i].run == now) {
                w->task[i].runs = false;
                gpi_plan_end(p, now, i, true, 0, 0);
            }
        for (; arrived < TASKS && w->task[arrived].at == now; arrived++)
            arrive(w, p, arrived, now);
        if (now == w->gone_at)
            withdraw_removed(w, p, now);
        decide(w, p, now);
    }
    gpi_plan_destroy(p);
    return true;
}

/* Returns when a task starts at the latest: the runs at its arrival end, then each task before it
 * takes all of its time.  No later task of its priority is in the sum. */
static uint64_t bound(const struct world *w, uint32_t i)
{
    const struct task *t = &w->task[i];
    uint64_t until = t->at, sum = 0;

    for (uint32_t k = 0; k < TASKS; k++) {
        const struct task *o = &w->task[k];
        const uint64_t end = o->begun + o->limit + GRACE;
        if (k == i || o->begun == GPI_NEVER)
            continue;
        if (o->begun < t->at || (o->begun == t->at && o->at < t->at))
            until = end > until ? end : until;
        else if (precedes(w, k, i) && o->begun <= t->begun)
            sum += o->limit + GRACE;
    }
    return until + sum;
}

struct tally {
    uint64_t bounded, beyond;
    uint64_t heads, passed, late, early, delay;
};

/* Removes the tasks that passed this one.  Returns false if none did. */
static bool remove_passers(struct world *w, uint32_t i)
{
    const struct task *t = &w->task[i];
    bool passed = false;

    for (uint32_t k = 0; k < TASKS; k++) {
        struct task *o = &w->task[k];
        if (k == i || o->removed || o->begun == GPI_NEVER || !precedes(w, i, k) ||
            o->begun < t->at || o->begun >= t->begun)
            continue;
        o->removed = passed = true;
    }
    return passed;
}

/* Runs the world until no task passes this one.  Returns false if it always starts at one time. */
static bool differs(const struct world *first, uint32_t i, struct tally *sum)
{
    static struct world w;
    const uint64_t begun = first->task[i].begun;

    w = *first;
    w.gone_at = first->task[i].at;
    if (!remove_passers(&w, i))
        return false;
    do {
        if (!run(&w))
            exit(1);
    } while (remove_passers(&w, i));
    sum->heads++;
    sum->late += begun > w.task[i].begun;
    sum->early += begun < w.task[i].begun;
    if (begun > w.task[i].begun)
        sum->delay += begun - w.task[i].begun;
    return begun != w.task[i].begun;
}

/* Compares the tasks of a world with their bounds, and its heads with those of the twins. */
static void check(const struct world *w, uint64_t seed, struct tally *sum)
{
    const enum gpi_passing passing = w->set.passing;

    for (uint32_t i = 0; i < TASKS; i++) {
        const struct task *t = &w->task[i];
        const bool waited = t->begun != GPI_NEVER && t->begun > t->at;
        if (!waited)
            continue;
        if (w->finite) {
            sum->bounded++;
            sum->beyond += t->begun > bound(w, i);
            if (t->begun > bound(w, i) && passing != GPI_PASS_NAIVE)
                printf("S3: %s, world %llu: task %u is beyond its bound\n", name[passing],
                       (unsigned long long)seed, i);
        }
        if (t->is_first && differs(w, i, sum) && passing == GPI_PASS_APART)
            printf("S2: APART, world %llu: task %u starts at another time\n",
                   (unsigned long long)seed, i);
    }
}

static struct tally run_worlds(enum gpi_passing passing, uint64_t worlds)
{
    static struct world w;
    struct tally sum = { 0 };

    for (uint64_t seed = 1; seed <= worlds; seed++) {
        make(&w, seed, passing);
        if (!run(&w))
            exit(1);
        check(&w, seed, &sum);
    }
    printf("%s: of %llu heads that other tasks passed %llu started later (mean %llu ns), %llu "
           "earlier; "
           "of %llu tasks that waited %llu are beyond their bound\n",
           name[passing], (unsigned long long)sum.heads, (unsigned long long)sum.late,
           (unsigned long long)(sum.late ? sum.delay / sum.late : 0), (unsigned long long)sum.early,
           (unsigned long long)sum.bounded, (unsigned long long)sum.beyond);
    return sum;
}

int main(int argc, char **argv)
{
    const bool s2 = argc < 3 || strcmp(argv[2], "S3") != 0;
    const bool s3 = argc < 3 || strcmp(argv[2], "S2") != 0;
    const uint64_t worlds = argc > 1 ? strtoull(argv[1], NULL, 10) : WORLDS;
    bool good = true;

    for (enum gpi_passing passing = GPI_PASS_LEARNED; passing <= GPI_PASS_NAIVE; passing++) {
        const struct tally sum = run_worlds(passing, worlds);
        if (passing == GPI_PASS_APART && s2)
            good &= sum.late + sum.early == 0 && sum.heads > worlds / 2;
        /* NAIVE shows that the bound is sharp. */
        if (s3)
            good &= (sum.beyond != 0) == (passing == GPI_PASS_NAIVE) && sum.bounded > worlds;
    }
    return good ? 0 : 1;
}
