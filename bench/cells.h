/* SPDX-License-Identifier: MIT */
/* cells.h - a cell measures raw and ours by turns, in a process of its own, and reports some keys.
 */
#ifndef BENCH_CELLS_H
#define BENCH_CELLS_H

struct b_cell {
    const char *name;
    int (*run)(const struct b_cell *cell); /* 0, or -1 after a complaint */
    /* 1: all on one CPU; 2: host and workers on a CPU each */
    unsigned cpus;
    unsigned window;                       /* tasks sent ahead, where that is varied */
    unsigned limit;                        /* seconds after which the cell is killed */
    const char *keys;                      /* what it reports, between spaces */
};

int b_cell_trip(const struct b_cell *cell);
int b_cell_pipelined(const struct b_cell *cell);
int b_cell_scale(const struct b_cell *cell);
int b_cell_batch(const struct b_cell *cell);
int b_cell_restart(const struct b_cell *cell);
int b_cell_restart_big(const struct b_cell *cell);
int b_cell_restart_exec(const struct b_cell *cell);
int b_cell_soft_limit(const struct b_cell *cell);
int b_cell_death(const struct b_cell *cell);
int b_cell_hard_limit(const struct b_cell *cell);
int b_cell_idle(const struct b_cell *cell);
int b_cell_idle_start(const struct b_cell *cell);
int b_cell_memory(const struct b_cell *cell);
int b_cell_endless(const struct b_cell *cell);
int b_cell_classes(const struct b_cell *cell);
int b_cell_evict(const struct b_cell *cell);
int b_cell_makespan(const struct b_cell *cell);
int b_cell_payload(const struct b_cell *cell);

#endif
