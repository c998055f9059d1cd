/* SPDX-License-Identifier: MIT */
/*
 * cells_idle.c - context switches of host, spawner, keepers and workers while nothing is to be
 * done. Drive is THREAD, a far limit is set, and this thread takes a stats snapshot each second;
 * its own switches do not count.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "cells.h"
#include "measure.h"
#include "ours.h"
#include "place.h"
#include "processes.h"
#include "raw_pipe.h"
#include "report.h"

#define TASKS 4000
#define MAX_TREE 256
#define MAX_THREADS 512
#define SETTLE (500 * B_MS)
#define START B_S /* left out: setup ends, the library thread goes to sleep */

struct census {
    size_t n;
    struct b_thread rows[MAX_THREADS];
};

static int take_census(struct census *c)
{
    pid_t pids[MAX_TREE];
    int i, n = b_descendants(getpid(), pids, MAX_TREE - 1);

    if (n < 0)
        return b_complain("/proc could not be read");
    if (n < 2 * B_WORKERS + 1)
        return b_complain("%d processes below the host, expected spawner, keepers and workers", n);
    pids[n++] = getpid();
    c->n = 0;
    for (i = 0; i < n; i++)
        c->n += b_threads(pids[i], c->rows + c->n, MAX_THREADS - c->n);
    return 0;
}

/* Counts what happened between two censuses, naming who switched; not the thread that asks. */
static uint64_t count_switches(const struct census *before, const struct census *after)
{
    uint64_t sum = 0, mine;
    size_t i, k;

    for (i = 0; i < after->n; i++) {
        const struct b_thread *t = &after->rows[i];

        if (t->tid == gettid())
            continue;
        mine = t->switches;
        for (k = 0; k < before->n; k++)
            if (before->rows[k].tid == t->tid)
                mine -= before->rows[k].switches;
        if (mine > 0)
            (void)b_complain("idle, but thread %d of process %d (%s) switched %llu times",
                             (int)t->tid, (int)t->pid, t->name, (unsigned long long)mine);
        sum += mine;
    }
    return sum;
}

/* Reads stats each second; gives the switches of everybody else.  0 or -1. */
static int watch(struct b_ours *ours, unsigned seconds, uint64_t *ret_switches)
{
    struct census *before = malloc(sizeof(*before)), *after = malloc(sizeof(*after));
    struct gpud_stats s = GPUD_STATS_INIT;
    int rc = -1;

    if (!before || !after || take_census(before))
        goto out;
    while (seconds-- > 0) {
        b_sleep(B_S);
        if (gpud_dispatcher_stats(ours->d, &s)) {
            (void)b_complain("no stats");
            goto out;
        }
    }
    if (take_census(after))
        goto out;
    *ret_switches = count_switches(before, after);
    rc = 0;
out:
    free(before);
    free(after);
    return rc;
}

static void *poll_until_task(void *user)
{
    struct b_ours *ours = user;
    uint64_t ended = ours->ended;

    while (ours->ended == ended && b_ours_receive(ours, GPUD_NEVER) >= 0)
        ;
    return NULL;
}

static int watch_in_poll(struct b_ours *ours, uint64_t *ret_switches)
{
    struct gpud_task_desc task;
    struct b_order order;
    pthread_t thread;
    int rc;

    if (pthread_create(&thread, NULL, poll_until_task, ours))
        return b_complain("no thread");
    b_sleep(SETTLE);
    rc = watch(ours, 3, ret_switches);
    b_ours_task(&task, &order, B_NOTHING);
    (void)gpud_dispatcher_submit(ours->d, &task, 0, NULL, NULL); /* ends the thread */
    (void)pthread_join(thread, NULL);
    return rc;
}

static int watch_both(struct b_ours *ours)
{
    struct gpud_task_desc task;
    struct b_order order;
    uint64_t switches;
    int i;

    b_ours_task(&task, &order, B_NOTHING);
    for (i = 0; i < TASKS; i++) {
        if (gpud_dispatcher_submit(ours->d, &task, 0, NULL, NULL))
            return b_complain("submit failed");
    }
    while (ours->ended < TASKS)
        if (b_ours_receive(ours, B_S) < 0)
            return b_complain("poll failed");
    b_sleep(SETTLE);
    if (watch(ours, 10, &switches))
        return -1;
    b_report(B_KEY_idle_switches_10s, (double)switches, NAN, (double)switches);
    if (watch_in_poll(ours, &switches))
        return -1;
    b_report(B_KEY_idle_switches_in_poll_3s, (double)switches, NAN, (double)switches);
    return 0;
}

/* Opens a dispatcher of B_WORKERS, watches it, reports. */
static int watch_new(int (*watch_it)(struct b_ours *ours))
{
    struct b_ours_options options = { .workers = B_WORKERS,
                                      .cpu = -1,
                                      .drive = GPUD_DRIVE_THREAD,
                                      .queue_size = TASKS,
                                      .task_limit = 3600 * B_S };
    struct b_ours ours;
    int rc;

    if (b_ours_open(&ours, &options))
        return -1;
    rc = watch_it(&ours);
    b_ours_close(&ours);
    return rc;
}

int b_cell_idle(const struct b_cell *cell)
{
    (void)cell;
    if (b_effort(0, 1)) {
        b_report_skipped(B_KEY_idle_switches_10s, "takes 11 s: not with --quick");
        b_report_skipped(B_KEY_idle_switches_in_poll_3s, "takes 4 s: not with --quick");
        return 0;
    }
    return watch_new(watch_both);
}

/* Nothing was ever submitted: what is left over from the start of the workers shows. */
static int watch_start(struct b_ours *ours)
{
    uint64_t switches;

    b_sleep(START);
    if (watch(ours, 29, &switches))
        return -1;
    b_report(B_KEY_idle_switches_30s, (double)switches, NAN, (double)switches);
    return 0;
}

int b_cell_idle_start(const struct b_cell *cell)
{
    (void)cell;
    if (b_effort(0, 1)) {
        b_report_skipped(B_KEY_idle_switches_30s, "takes 30 s: not with --quick");
        return 0;
    }
    return watch_new(watch_start);
}
