/* SPDX-License-Identifier: MIT */
/* cells_makespan.c - workloads live, on fakes at 1/100 time, over those in the simulator. */
#include <stdio.h>

#include "cells.h"
#include "measure.h"
#include "pooled.h"
#include "report.h"
#include "sched/play.h"
#include "scratch.h"
#include "workload.h"

#define WORKLOADS 5
#define QUICK_WORKLOADS 1

struct lived {
    double makespan, wait; /* seconds of the workload */
};

static double seconds_of(uint64_t from, uint64_t to)
{
    return (double)(to - from) * B_WORK_FASTER / 1e9;
}

/* ---- live ---- */

static int submit(struct b_ours *o, const struct b_work_task *t)
{
    struct gpud_task_desc task;
    struct b_order order;
    int rc;

    b_ours_task(&task, &order, B_SLEEP);
    order.size = (uint32_t)(b_work_time(t->run) / 1000);
    task.class_name = o->names[t->class];
    task.limit = b_work_time(t->limit);
    rc = gpud_dispatcher_submit(o->d, &task, 0, NULL, NULL);
    return rc ? b_complain("submit: %s", gpud_error_name(rc)) : 0;
}

/* Reads events until `until`, and notes waits and the last end. */
static int receive(struct b_ours *o, uint64_t until, double *waits, uint64_t *last)
{
    const uint64_t now = b_now(), first = o->ended;
    const int n = b_ours_receive(o, until > now ? until - now : 0);
    uint64_t ended = first;
    int i;

    for (i = 0; i < n; i++) {
        const struct gpud_event *e = &o->events[i];

        if (e->kind != GPUD_EVENT_OUTCOME)
            continue;
        if (e->outcome != GPUD_OUTCOME_SUCCESS)
            return b_complain("a task did not end SUCCESS: %s", e->text);
        waits[ended++] = seconds_of(e->queued_at, e->started_at);
        if (e->ended_at > *last)
            *last = e->ended_at;
    }
    return n < 0 ? b_complain("poll: %s", gpud_error_name(n)) : 0;
}

static int live(struct b_ours *o, const struct b_work *w, struct lived *ret)
{
    const uint64_t start = b_now(), most = start + 60 * B_S;
    double waits[B_WORK_TASKS];
    uint64_t last = start;
    unsigned i;

    for (i = 0; i < B_WORK_TASKS; i++) {
        const uint64_t at = start + b_work_time(w->task[i].at);

        while (b_now() < at)
            if (receive(o, at, waits, &last))
                return -1;
        if (submit(o, &w->task[i]))
            return -1;
    }
    while (o->ended < B_WORK_TASKS && b_now() < most)
        if (receive(o, most, waits, &last))
            return -1;
    if (o->ended < B_WORK_TASKS)
        return b_complain("%u of %u tasks ended", (unsigned)o->ended, B_WORK_TASKS);
    *ret = (struct lived){ .makespan = seconds_of(start, last),
                           .wait = b_median(waits, B_WORK_TASKS) };
    return 0;
}

static int open_and_live(const struct b_work *w, const char *script, struct lived *ret)
{
    struct b_pooled_class class[B_WORK_CLASSES];
    char devices[400];
    const struct b_pooled_options options = { .devices = devices, .cpu = -1 };
    struct b_ours o;
    int rc;

    (void)snprintf(devices, sizeof(devices), B_WORK_DEVICES "%s", script);
    b_work_classes(class);
    if (b_pooled_open(&o, &options, class, B_WORK_CLASSES))
        return -1;
    rc = live(&o, w, ret);
    b_pooled_close(&o);
    return rc;
}

/* ---- both ---- */

/* Plays and lives one workload.  Returns 0, -1, or B_NO_SIMULATOR. */
static int compare(unsigned number, struct b_played *sim, struct lived *lived)
{
    static struct b_work w;
    struct b_scratch scratch;
    const char *trace, *script;
    int rc = -1;

    if (b_scratch_open(&scratch))
        return -1;
    trace = b_scratch_path(&scratch, "workload.jsonl");
    script = b_scratch_path(&scratch, "fakes.txt");
    b_work_draw(&w, number);
    if (trace && script && b_work_write_trace(&w, trace) == 0 && b_work_write_script(script) == 0)
        rc = b_play(trace, sim);
    if (rc == 0 && sim->successes != B_WORK_TASKS)
        rc = b_complain("of %u tasks %u succeed in the simulator", B_WORK_TASKS, sim->successes);
    if (rc == 0)
        rc = open_and_live(&w, script, lived);
    b_scratch_close(&scratch);
    return rc;
}

/* Reports the median of the ratios, with their quartiles. */
static void report(unsigned key, double *sim, double *live, size_t n)
{
    double ratio[WORKLOADS];
    struct b_figure f = { .key = key };
    size_t i;

    for (i = 0; i < n; i++)
        ratio[i] = live[i] / sim[i];
    f.ratio = b_spread(ratio, n, 0.25);
    f.value = f.ratio.middle;
    f.raw = b_median(sim, n);
    f.ours = b_median(live, n);
    b_report_figure(&f);
}

int b_cell_makespan(const struct b_cell *cell)
{
    const unsigned n = (unsigned)b_effort(WORKLOADS, QUICK_WORKLOADS);
    double sims[2][WORKLOADS], lives[2][WORKLOADS];
    struct b_played sim = { 0 };
    struct lived lived = { 0, 0 };
    unsigned i;
    int rc = 0;

    (void)cell;
    for (i = 0; i < n && rc == 0; i++) {
        rc = compare(i + 1, &sim, &lived);
        sims[0][i] = sim.makespan;
        sims[1][i] = sim.wait;
        lives[0][i] = lived.makespan;
        lives[1][i] = lived.wait;
    }
    if (rc == B_NO_SIMULATOR) {
        b_report_skipped(B_KEY_makespan_live_vs_sim, "this build has no jansson");
        b_report_skipped(B_KEY_wait_live_vs_sim, "this build has no jansson");
        return 0;
    }
    if (rc)
        return -1;
    report(B_KEY_makespan_live_vs_sim, sims[0], lives[0], n);
    report(B_KEY_wait_live_vs_sim, sims[1], lives[1], n);
    return 0;
}
