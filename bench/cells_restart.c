/* SPDX-License-Identifier: MIT */
/*
 * cells_restart.c - a worker is killed inside a task: how long until its replacement has started the next.
 * A death inside process waits for no backoff.  The next task is already queued.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cells.h"
#include "measure.h"
#include "ours.h"
#include "place.h"
#include "processes.h"
#include "raw_fork.h"
#include "report.h"

#define ROUNDS 9
#define KILLS 25
#define BIG_ROUNDS 2
#define BIG_KILLS 60
#define BIG (UINT64_C(1) << 30)
#define MAX_TREE 64

/* The running task of ours and where it runs. */
struct victim {
    struct b_ours ours;
    uint64_t id;
    int64_t pid;
};

/* Also pins the spawner and the keepers, which no option reaches. */
static int pin_tree(int cpu)
{
    pid_t pids[MAX_TREE];
    int i, n = b_descendants(getpid(), pids, MAX_TREE);

    for (i = 0; i < n; i++)
        if (b_pin(pids[i], cpu))
            return b_complain("process %d could not be pinned", (int)pids[i]);
    return n < 0 ? b_complain("/proc could not be read") : 0;
}

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
    if (pin_tree(options.cpu) == 0 && b_ours_start(&v->ours, B_HOLD, 0, &v->id) == 0 &&
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

static int restart_by_turns(struct victim *v, struct b_raw_fork *server, struct b_raw_fork *eager, unsigned cpus)
{
    double asked[ROUNDS], hasty[ROUNDS], own[ROUNDS], mine;
    int i;

    for (i = 0; i < ROUNDS; i++) {
        asked[i] = restarts(NULL, server, KILLS);
        own[i] = restarts(v, NULL, KILLS);
        hasty[i] = restarts(NULL, eager, KILLS);
        if (asked[i] < 0 || own[i] < 0 || hasty[i] < 0)
            return b_complain("a restart failed");
    }
    mine = b_median(own, ROUNDS);
    b_report(cpus == 1 ? B_KEY_restart_vs_forkserver_1cpu : B_KEY_restart_vs_forkserver,
             mine / b_median(asked, ROUNDS), b_median(asked, ROUNDS), mine);
    if (cpus == 2)
        b_report(B_KEY_restart_vs_eager_forkserver, mine / b_median(hasty, ROUNDS), b_median(hasty, ROUNDS), mine);
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
        rc = restart_by_turns(&v, &server, &eager, cell->cpus);
        b_ours_close(&v.ours);
    }
    b_raw_fork_close(&eager);
close_server:
    b_raw_fork_close(&server);
    return rc;
}

static int restart_exec_by_turns(struct victim *v, struct b_raw_fork *server)
{
    double raw[ROUNDS], own[ROUNDS], theirs, mine;
    int i;

    for (i = 0; i < ROUNDS; i++) {
        raw[i] = restarts(NULL, server, KILLS);
        own[i] = restarts(v, NULL, KILLS);
        if (raw[i] < 0 || own[i] < 0)
            return b_complain("a restart failed");
    }
    theirs = b_median(raw, ROUNDS);
    mine = b_median(own, ROUNDS);
    b_report(B_KEY_exec_restart_vs_posix_spawn, mine / theirs, theirs, mine);
    return 0;
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
        rc = restart_exec_by_turns(&v, &server);
        b_ours_close(&v.ours);
    }
    b_raw_fork_close(&server);
    return rc;
}

int b_cell_restart_big(const struct b_cell *cell)
{
    double small[BIG_ROUNDS], big[BIG_ROUNDS];
    struct victim v;
    void *memory;
    int i, rc = -1;

    if (open_victim(&v, cell, GPUD_START_AUTO))
        return -1;
    (void)restarts(&v, NULL, KILLS); /* warm */
    for (i = 0; i < BIG_ROUNDS; i++) {
        small[i] = restarts(&v, NULL, BIG_KILLS);
        memory = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            (void)b_complain("no memory for 1 GiB");
            goto close_ours;
        }
        (void)madvise(memory, BIG, MADV_NOHUGEPAGE); /* small pages are what makes a fork slow */
        memset(memory, 1, BIG);
        big[i] = restarts(&v, NULL, BIG_KILLS);
        (void)munmap(memory, BIG);
        if (small[i] < 0 || big[i] < 0) {
            (void)b_complain("a restart failed");
            goto close_ours;
        }
    }
    b_report(B_KEY_restart_rss1g_vs_0, b_median(big, BIG_ROUNDS) / b_median(small, BIG_ROUNDS),
             b_median(small, BIG_ROUNDS), b_median(big, BIG_ROUNDS));
    rc = 0;
close_ours:
    b_ours_close(&v.ours);
    return rc;
}
