/* SPDX-License-Identifier: MIT */
/*
 * explains.c - guarantee S9: the first reason why a task waits, removed, changes what happens to
 * it.
 *
 *     explains [FROM_SEED N]     random worlds; without numbers 20,000 explained tasks, and the
 *                                worlds that have found a fault
 *
 * After a decision of a random world it asks why a waiting task does not start.  The facts of the
 * world are fed to a fresh plan, and there the first reason is removed.  Then the task must start,
 * or a worker must begin to boot or to leave for it, or it has another first reason.  The reasons
 * are removed one after another, until the task starts: at most 400.
 *
 * It is also checked that each waiting task has a reason, and a running one has none; that
 * explaining changes no later action; and that a task which is not submitted has the first reason
 * that it has then.
 *
 * Worlds with an odd seed are mixed: transient classes have tasks of different needs.  There a
 * task that still waits when 400 reasons are gone is counted, and no failure: the plan unloads
 * idle workers for tasks that cannot use the place, and boots them again, while other tasks run.
 *
 * In each third world tasks of external classes run already, also where they do not fit.
 *
 * The small worlds of explain_table.c are checked, too.
 *
 * Exit status: 1 if one of these fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "explain_remove.h"
#include "explain_table.h"
#include "explain_world.h"

#define ENOUGH 20000u
#define STEPS 120u      /* of a world */
#define CHAIN_MOST 400u /* reasons, until the task starts */
#define ROWS 64u
#define FAULTS_SHOWN 10u

/* Worlds that have found a fault, or a sabotage. */
static const uint64_t found[] = { 1797,  3428,  3725,  4200,  4204,  5620,  7846,  8550, 17063,
                                  18406, 19562, 20024, 20044, 20294, 20637, 21594, 23952 };

enum outcome { STARTS, BEGINS, ANOTHER, NOTHING, OUTCOMES };

struct tally {
    uint64_t explained, removed, links, stuck, supposed, would_start;
    uint64_t by[GPI_REASON_NEVER + 1][OUTCOMES];
    uint64_t faults;
};

static struct tally tally;

static void show(const struct gpi_plan_reason *r)
{
    printf("    device %d variant %u %s other %d have %llu need %llu until %lld\n", (int)r->device,
           r->variant, t_reason_name[r->kind], (int)r->other, (unsigned long long)r->have,
           (unsigned long long)r->need, (long long)r->until);
}

static void object(const struct t_world *w, uint64_t seed, uint32_t task, const char *what,
                   const struct gpi_plan_reason *a, const struct gpi_plan_reason *b)
{
    if (tally.faults++ >= FAULTS_SHOWN)
        return;
    printf("seed %llu after %u facts at %llu, task %u, mode %d passing %d: %s\n",
           (unsigned long long)seed, w->n_facts, (unsigned long long)w->now, task, (int)w->set.mode,
           (int)w->set.passing, what);
    if (a)
        show(a);
    if (b)
        show(b);
}


/* ---- one reason less ---- */

struct heard {
    bool runs, others, boots, leaves; /* the task, or another one */
};

static void hear(struct gpi_plan *p, uint32_t task, struct heard *h)
{
    struct gpi_plan_action a;

    while (gpi_plan_next(p, &a)) {
        h->runs |= (a.kind == GPI_PLAN_RUN || a.kind == GPI_PLAN_HOPELESS) && a.task == task;
        h->others |= a.kind == GPI_PLAN_RUN && a.task != task;
        h->boots |= a.kind == GPI_PLAN_BOOT;
        h->leaves |= a.kind == GPI_PLAN_DRAIN || a.kind == GPI_PLAN_UNLOAD;
    }
}

/* Decides at each time that is due until this one. */
static struct heard decide(struct gpi_plan *p, struct t_times t, uint32_t task)
{
    struct heard h = { false, false, false, false };

    for (uint64_t due = gpi_plan_due(p); due < t.until && !h.runs; due = gpi_plan_due(p)) {
        t.now = due > t.now ? due : t.now;
        gpi_plan_decide(p, t.now);
        hear(p, task, &h);
    }
    if (!h.runs) {
        gpi_plan_decide(p, t.until);
        hear(p, task, &h);
    }
    return h;
}

static bool is_time(const struct gpi_plan_reason *r)
{
    return r->kind == GPI_REASON_MIN_RESIDENCE || r->kind == GPI_REASON_MAX_WAIT ||
           r->kind == GPI_REASON_FAULT || r->kind == GPI_REASON_BOOTING ||
           r->kind == GPI_REASON_UNLOADING ||
           (r->kind == GPI_REASON_BUSY && r->other == GPI_NOWHERE);
}

static bool is_same(const struct gpi_plan_reason *a, const struct gpi_plan_reason *b)
{
    return a->kind == b->kind && a->device == b->device && a->variant == b->variant &&
           a->other == b->other && (!is_time(a) || a->until == b->until) &&
           (a->kind != GPI_REASON_SEATS || a->have == b->have);
}

/* Removes the reason.  `ret`: the next one, unless the task starts. */
static enum outcome remove_once(struct gpi_plan *p, uint32_t task, const struct gpi_plan_reason *r,
                                struct gpi_plan_reason *ret)
{
    struct t_times t;
    struct heard h;

    if (!t_reason_remove(p, r, &t))
        return NOTHING;
    h = decide(p, t, task);
    if (h.runs)
        return STARTS;
    memset(ret, 0, sizeof *ret);
    if (gpi_plan_explain(p, 0, task, NULL, ret, 1) == 0)
        return NOTHING;
    if ((h.boots && ret->kind == GPI_REASON_BOOTING) ||
        (h.leaves && ret->kind == GPI_REASON_UNLOADING))
        return BEGINS; /* another worker, although the time may be that of the last one */
    return is_same(r, ret) ? NOTHING : ANOTHER;
}

/* Tasks before it may take each run of the plan that ends: then all end again. */
static enum outcome remove_one(struct gpi_plan *p, uint32_t task, const struct gpi_plan_reason *r,
                               struct gpi_plan_reason *ret)
{
    enum outcome o = remove_once(p, task, r, ret);

    for (uint32_t i = 0; i < T_TASKS && o == NOTHING && r->kind == GPI_REASON_SEATS; i++)
        o = remove_once(p, task, r, ret);
    return o;
}

static void remove_all(const struct t_world *w, uint64_t seed, uint32_t task,
                       struct gpi_plan_reason r)
{
    uint64_t actions;
    struct gpi_plan *p = t_world_replay(w, &actions);
    struct gpi_plan_reason next = r;
    uint32_t n = 0;
    enum outcome o;

    if (actions != w->actions)
        object(w, seed, task, "the replayed plan acts otherwise", NULL, NULL);
    do {
        r = next;
        o = remove_one(p, task, &r, &next);
        if (n == 0)
            tally.by[r.kind][o]++;
        n++;
    } while ((o == BEGINS || o == ANOTHER) && n < CHAIN_MOST);
    if (o == NOTHING && (n == 1 || !w->mixed))
        object(w, seed, task, "nothing changes without it", &r, &next);
    else if (o != STARTS && !w->mixed)
        object(w, seed, task, "still waits, so many reasons later", &r, &next);
    tally.stuck += o != STARTS;
    tally.links += n;
    tally.removed++;
    gpi_plan_destroy(p);
}

/* ---- explained tasks ---- */

static bool could(const struct t_world *w, uint32_t task)
{
    const struct gpi_plan_task *what = &w->task[task].what;

    for (uint32_t i = 0; i < what->n_requests; i++)
        if (gpi_plan_could(w->p, &what->request[i]))
            return true;
    return false;
}

static void explain_one(const struct t_world *w, uint64_t seed, uint32_t task)
{
    struct gpi_plan_reason all[ROWS], few[3];
    const uint32_t n = gpi_plan_explain(w->p, 0, task, NULL, all, ROWS);

    tally.explained++;
    if (n == 0) {
        object(w, seed, task, "waits without a reason", NULL, NULL);
        return;
    }
    if (gpi_plan_explain(w->p, 0, task, NULL, few, 3) != n ||
        memcmp(few, all, sizeof *few * (n < 3 ? n : 3)) != 0)
        object(w, seed, task, "fewer rows are others", &all[0], &few[0]);
    if (all[0].kind != GPI_REASON_NEVER)
        remove_all(w, seed, task, all[0]);
    else if (could(w, task))
        object(w, seed, task, "could start, but never does", &all[0], NULL);
}

static void check_all(const struct t_world *w, uint64_t seed)
{
    struct gpi_plan_reason r;

    for (uint32_t i = 0; i < T_TASKS; i++) {
        const uint32_t n = gpi_plan_explain(w->p, 0, i, NULL, &r, 1);
        if (n == 0 && w->task[i].state == T_WAITS)
            object(w, seed, i, "waits without a reason", NULL, NULL);
        if (n && w->task[i].state != T_WAITS)
            object(w, seed, i, "does not wait, but has a reason", &r, NULL);
    }
}

/* ---- a task that is not submitted ---- */

static uint32_t unused_task(const struct t_world *w)
{
    uint32_t i = 0;

    while (i < T_TASKS && w->task[i].state != T_NOT)
        i++;
    return i;
}

static bool has_kind(const struct gpi_plan_reason *row, uint32_t n, enum gpi_plan_why kind)
{
    for (uint32_t i = 0; i < n && i < ROWS; i++)
        if (row[i].kind == kind)
            return true;
    return false;
}

/* What begins at once may change the reasons: a worker that boots may be enough for the class, so
 * that older tasks need no other one.  What a head leaves over is not counted, so that the rows
 * have HEAD_HOLDS, although the task starts. */
static void suppose(struct t_world *w, uint64_t seed)
{
    const uint32_t task = unused_task(w);
    struct gpi_plan_reason row[ROWS], after;
    struct heard h = { false, false, false, false };
    struct gpi_plan_task what;
    struct gpi_plan *p;
    uint64_t actions;
    uint32_t n;

    if (task == T_TASKS || !t_world_invent(w, &what))
        return;
    n = gpi_plan_explain(w->p, 0, GPI_NOWHERE, &what, row, ROWS);
    p = t_world_replay(w, &actions);
    gpi_plan_submit(p, w->now, task, &what);
    hear(p, task, &h);
    h = decide(p, (struct t_times){ w->now, w->now }, task);
    tally.supposed++;
    tally.would_start += n == 0;
    if (n == 0 && !h.runs)
        object(w, seed, task, "should start when submitted", NULL, NULL);
    if (n && h.runs && !h.boots && !has_kind(row, n, GPI_REASON_HEAD_HOLDS))
        object(w, seed, task, "starts when submitted, but has a reason", row, NULL);
    if (n && !h.runs && !h.others && !h.boots && !h.leaves &&
        (gpi_plan_explain(p, 0, task, NULL, &after, 1) == 0 || after.kind != row->kind ||
         after.other != row->other))
        object(w, seed, task, "has another first reason when submitted", row, &after);
    gpi_plan_destroy(p);
}

/* ---- worlds ---- */

/* Of three tasks preferably one that is not behind others of its shape. */
static uint32_t choose(struct t_world *w, const uint32_t *waits, uint32_t n)
{
    struct gpi_plan_reason r = { .kind = GPI_REASON_PASSED_OVER_BY };
    uint32_t task = waits[0];

    for (uint32_t i = 0; i < 3 && r.kind == GPI_REASON_PASSED_OVER_BY; i++) {
        task = waits[gpi_random_below(&w->rng, n)];
        gpi_plan_explain(w->p, 0, task, NULL, &r, 1);
    }
    return task;
}

static void decided(struct t_world *w, uint64_t seed)
{
    uint32_t waits[T_TASKS], n = 0;

    check_all(w, seed);
    for (uint32_t i = 0; i < T_TASKS; i++)
        if (w->task[i].state == T_WAITS)
            waits[n++] = i;
    if (n && gpi_random_below(&w->rng, 100) < 25)
        explain_one(w, seed, choose(w, waits, n));
    if (gpi_random_below(&w->rng, 100) < 5)
        suppose(w, seed);
}

static void run_world(uint64_t seed)
{
    static struct t_world w;

    t_world_begin(&w, seed, seed % 2, seed % 3 == 0);
    for (uint32_t i = 0; i < STEPS && w.n_facts < T_FACTS - 2 * T_TASKS; i++)
        if (t_world_step(&w))
            decided(&w, seed);
    t_world_end(&w);
}

static void report(void)
{
    uint64_t all[OUTCOMES] = { 0 };

    printf("%-16s %8s %8s %8s %8s\n", "first reason", "starts", "begins", "another", "nothing");
    for (uint32_t k = 0; k <= GPI_REASON_NEVER; k++) {
        printf("%-16s", t_reason_name[k]);
        for (uint32_t o = 0; o < OUTCOMES; o++) {
            printf(" %8llu", (unsigned long long)tally.by[k][o]);
            all[o] += tally.by[k][o];
        }
        printf("\n");
    }
    printf("%llu explained: %.1f %% start without the first reason, for %.1f %% a worker begins to "
           "boot or leave, %.1f %% have another one, %llu are as before; %.2f reasons until the "
           "start\n",
           (unsigned long long)tally.explained, 100. * (double)all[STARTS] / (double)tally.removed,
           100. * (double)all[BEGINS] / (double)tally.removed,
           100. * (double)all[ANOTHER] / (double)tally.removed, (unsigned long long)all[NOTHING],
           (double)tally.links / (double)tally.removed);
    printf("%llu still wait after %u reasons\n", (unsigned long long)tally.stuck, CHAIN_MOST);
    printf("%llu supposed, %llu of them start; %llu faults\n", (unsigned long long)tally.supposed,
           (unsigned long long)tally.would_start, (unsigned long long)tally.faults);
}

int main(int argc, char **argv)
{
    const uint64_t from = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    const uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 0) : GPI_NEVER;

    for (uint64_t i = 0; i < n && (argc > 2 || tally.explained < ENOUGH); i++)
        run_world(from + i);
    for (size_t i = 0; i < sizeof found / sizeof *found && argc == 1; i++)
        run_world(found[i]);
    report();
    return tally.faults + t_explain_table() != 0;
}
