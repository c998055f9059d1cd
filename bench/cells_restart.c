/* SPDX-License-Identifier: MIT */
/*
 * cells_restart.c - a worker is killed inside a task: how long until its replacement has started
 * the next. A death inside process waits for no backoff. The next task is already queued.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cells.h"
#include "measure.h"
#include "ours.h"
#include "pairs.h"
#include "place.h"
#include "processes.h"
#include "raw_fork.h"
#include "report.h"

#define ROUNDS 16
#define QUICK_ROUNDS 4
#define KILLS 16 /* a round */
#define BIG_ROUNDS 2
#define BIG_KILLS 60
#define BIG (UINT64_C(1) << 30)

/* The running task of ours and where it runs. */
struct victim {
    struct b_ours ours;
    uint64_t id;
    int64_t pid;
};

/* 0, -1, or B_NOT_BUILT. */
static int open_victim(struct victim *v, const struct b_cell *cell, uint32_t how)
{
    struct b_ours_options options = { .workers = 1,
                                      .cpu = b_cpu_number(cell->cpus - 1),
                                      .drive = GPUD_DRIVE_CALLER,
                                      .start = how,
                                      .task_limit = 3600 * B_S };
    uint64_t started;
    int rc;

    if (b_pin(0, b_cpu_number(0)))
        return b_complain("this process could not be pinned");
    rc = b_ours_open(&v->ours, &options);
    if (rc)
        return rc;
    if (b_pin_tree(options.cpu) == 0 && b_ours_start(&v->ours, B_HOLD, 0, &v->id) == 0 &&
        b_ours_running(&v->ours, v->id, &v->pid, &started) == 0)
        return 0;
    b_ours_close(&v->ours);
    return -1;
}

static int restart(struct victim *v, uint64_t *ret_took)
{
    uint64_t start, started;

    if (b_ours_start(&v->ours, B_HOLD, 0, &v->id))
        return -1;
    (void)b_ours_receive(&v->ours, 0); /* so that the next task is where it waits */
    start = b_now();
    if (kill((pid_t)v->pid, SIGKILL))
        return b_complain("the worker could not be killed");
    if (b_ours_running(&v->ours, v->id, &v->pid, &started))
        return -1;
    *ret_took = started - start;
    return 0;
}

/* Gives the median time of n restarts in microseconds, -1 on failure. */
static double restarts(struct victim *v, struct b_raw_fork *f, size_t n)
{
    double took[BIG_KILLS];
    uint64_t one;
    size_t i;

    for (i = 0; i < n; i++) {
        if (v ? restart(v, &one) : b_raw_fork_restart(f, &one))
            return -1;
        took[i] = (double)one / 1e3;
        b_sleep(B_MS); /* the worker is inside its task again, and asleep */
    }
    return b_median(took, n);
}

/* A round of restarts; user is a victim or a raw server. */
static int restart_ours(void *user, struct b_round *ret)
{
    *ret = (struct b_round){ .value = restarts(user, NULL, KILLS) };
    return ret->value < 0 ? -1 : 0;
}

static int restart_raw(void *user, struct b_round *ret)
{
    *ret = (struct b_round){ .value = restarts(NULL, user, KILLS) };
    return ret->value < 0 ? b_complain("a raw restart failed") : 0;
}

static int take_pairs(unsigned key, struct victim *v, struct b_raw_fork *server)
{
    struct b_side raw = { restart_raw, server }, ours = { restart_ours, v };
    struct b_pairs pairs = { .n = 0 };
    size_t i;

    for (i = 0; i < b_effort(ROUNDS, QUICK_ROUNDS); i++)
        if (b_pairs_take(&pairs, &raw, &ours))
            return -1;
    b_report_pairs(key, &pairs, B_VALUE, 1);
    return 0;
}

int b_cell_restart(const struct b_cell *cell)
{
    int cpu = b_cpu_number(cell->cpus - 1), rc = -1;
    struct b_raw_fork server, eager;
    struct victim v;

    if (b_raw_fork_open(&server, cpu, B_ASKED))
        return b_complain("the raw fork server could not be started");
    if (b_raw_fork_open(&eager, cpu, B_EAGER)) {
        (void)b_complain("the eager fork server could not be started");
        goto close_server;
    }
    if (open_victim(&v, cell, GPUD_START_AUTO) == 0) {
        rc = take_pairs(cell->cpus == 1 ? B_KEY_restart_vs_forkserver_1cpu
                                        : B_KEY_restart_vs_forkserver,
                        &v, &server);
        if (rc == 0 && cell->cpus == 2)
            rc = take_pairs(B_KEY_restart_vs_eager_forkserver, &v, &eager);
        b_ours_close(&v.ours);
    }
    b_raw_fork_close(&eager);
close_server:
    b_raw_fork_close(&server);
    return rc;
}

int b_cell_restart_exec(const struct b_cell *cell)
{
    struct b_raw_fork server;
    struct victim v;
    int rc;

    if (b_raw_fork_open(&server, b_cpu_number(cell->cpus - 1), B_SPAWNER))
        return b_complain("the raw spawner could not be started");
    rc = open_victim(&v, cell, GPUD_START_EXEC);
    if (rc == B_NOT_BUILT) {
        b_report_skipped(B_KEY_exec_restart_vs_posix_spawn, "this build has no start EXEC");
        rc = 0;
    } else if (rc == 0) {
        rc = take_pairs(B_KEY_exec_restart_vs_posix_spawn, &v, &server);
        b_ours_close(&v.ours);
    }
    b_raw_fork_close(&server);
    return rc;
}

/* ---- a big host ---- */

static int restart_small(void *user, struct b_round *ret)
{
    *ret = (struct b_round){ .value = restarts(user, NULL, b_effort(BIG_KILLS, KILLS)) };
    return ret->value < 0 ? -1 : 0;
}

static int restart_with_memory(void *user, struct b_round *ret)
{
    void *memory = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int rc;

    if (memory == MAP_FAILED)
        return b_complain("no memory for 1 GiB");
    (void)madvise(memory, BIG, MADV_NOHUGEPAGE); /* small pages are what makes a fork slow */
    memset(memory, 1, BIG);
    rc = restart_small(user, ret);
    (void)munmap(memory, BIG);
    return rc;
}

int b_cell_restart_big(const struct b_cell *cell)
{
    struct b_pairs pairs = { .n = 0 };
    struct b_side small, big;
    struct victim v;
    size_t i;
    int rc = 0;

    if (open_victim(&v, cell, GPUD_START_AUTO))
        return -1;
    small = (struct b_side){ restart_small, &v };
    big = (struct b_side){ restart_with_memory, &v };
    (void)restarts(&v, NULL, KILLS); /* warm */
    for (i = 0; rc == 0 && i < b_effort(BIG_ROUNDS, 1); i++)
        rc = b_pairs_take(&pairs, &small, &big);
    if (rc == 0)
        b_report_pairs(B_KEY_restart_rss1g_vs_0, &pairs, B_VALUE, 1);
    b_ours_close(&v.ours);
    return rc;
}
