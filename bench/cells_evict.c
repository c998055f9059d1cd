/* SPDX-License-Identifier: MIT */
/*
 * cells_evict.c - one fake device and two classes: a task of each by turns, so that each one evicts
 * the idle worker of the other class.
 */
#include <math.h>

#include "cells.h"
#include "eviction.h"
#include "machine.h"
#include "measure.h"
#include "place.h"
#include "pooled.h"
#include "processes.h"
#include "report.h"
#include "scratch.h"

#define EVICTIONS 300
#define QUICK_EVICTIONS 60
#define LOOK_EVERY 10
#define WARM_UP 10        /* more, which do not count */
#define UNLOAD (2 * B_MS) /* the cleanup of a worker sleeps that long */
#define MOST (EVICTIONS + WARM_UP)

/* What the workers know: when the cleanup of one began and ended, and the next setup began. */
static struct b_moments seen[MOST];
static struct b_states states; /* of the machine; a cell is a process of its own */

enum part { WHOLE, ORDER, GONE, START, SETUP, PARTS };

static double us(uint64_t from, uint64_t to)
{
    return ((double)to - (double)from) / 1e3;
}

static void report(double values[PARTS][MOST], size_t n, unsigned cpus)
{
    static const unsigned keys[PARTS] = { B_KEY_evict_beyond_unload_us_p99,
                                          B_KEY_evict_order_us_p99, B_KEY_evict_gone_us_p99,
                                          B_KEY_evict_start_us_p99, B_KEY_evict_setup_us_p99 };
    double middle[PARTS], p99[PARTS];
    int i;

    for (i = 0; i < PARTS; i++) {
        middle[i] = b_median(values[i], n);
        p99[i] = b_percentile(values[i], n, 0.99);
    }
    if (cpus == 1) {
        b_report_seen(B_KEY_evict_beyond_unload_us_1cpu, p99[WHOLE], middle[WHOLE], &states);
        return;
    }
    b_report_seen(B_KEY_evict_beyond_unload_us_p50, middle[WHOLE], NAN, &states);
    for (i = 0; i < PARTS; i++)
        b_report_seen(keys[i], p99[i], middle[i], &states);
}

/* Puts what the host and the workers have recorded together. */
static int judge(const char *log, size_t n, unsigned cpus)
{
    static double values[PARTS][MOST];
    static struct b_eviction list[MOST + 1];
    const int got = b_evictions_read(log, list, MOST + 1);
    size_t i;

    if (got < 0 || (size_t)got != n)
        return got < 0 ? -1 : b_complain("%d evictions in the log of %zu", got, n);
    for (i = WARM_UP; i < n; i++) {
        const struct b_eviction *e = &list[i];
        const double cleanup = us(seen[i].cleanup, seen[i].cleaned);
        const size_t at = i - WARM_UP;

        if (seen[i].cleanup < e->submit || seen[i].cleaned > e->start || cleanup * 1e3 < UNLOAD)
            return b_complain("the times of eviction %zu are in no order", i);
        values[WHOLE][at] = us(e->submit, e->start) - cleanup;
        values[ORDER][at] = us(e->submit, e->order);
        values[GONE][at] = us(e->order, e->gone) - cleanup;
        values[START][at] = us(e->gone, e->start);
        values[SETUP][at] = us(e->start, seen[i].setup);
    }
    report(values, n - WARM_UP, cpus);
    return 0;
}

/* Each task but the first one evicts. */
static int evict(struct b_ours *o, size_t n)
{
    struct gpud_task_desc task;
    struct b_order order;
    size_t i;

    b_ours_task(&task, &order, B_NOTHING);
    for (i = 0; i <= n; i++) {
        if (i % LOOK_EVERY == 0)
            b_machine_look(&states);
        task.class_name = o->names[i % 2];
        if (b_ours_trip(o, &task))
            return -1;
        if (i > 0)
            seen[i - 1] = b_ours_moments();
    }
    return 0;
}

int b_cell_evict(const struct b_cell *cell)
{
    const struct b_pooled_class class[2] = {
        { .name = "a", .devices = 1, .unload = UNLOAD, .min_residence = GPUD_AT_ONCE },
        { .name = "b", .devices = 1, .unload = UNLOAD, .min_residence = GPUD_AT_ONCE }
    };
    const size_t n = b_effort(EVICTIONS, QUICK_EVICTIONS) + WARM_UP;
    struct b_pooled_options options = { .devices = "fake:1",
                                        .cpu = b_cpu_number(cell->cpus - 1) };
    struct b_scratch scratch;
    struct b_ours o;
    int rc = -1;

    if (b_pin(0, b_cpu_number(0)))
        return b_complain("this process could not be pinned");
    if (b_scratch_open(&scratch))
        return -1;
    options.log = b_scratch_path(&scratch, "decisions");
    if (options.log && b_pooled_open(&o, &options, class, 2) == 0) {
        /* a keeper that forks on the host's CPU would delay the host behind its send */
        rc = b_pin_tree(options.cpu) || evict(&o, n) ? -1 : 0;
        b_pooled_close(&o);
    }
    if (rc == 0)
        rc = judge(options.log, n, cell->cpus);
    b_scratch_close(&scratch);
    return rc;
}
