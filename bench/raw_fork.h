/* SPDX-License-Identifier: MIT */
/*
 * raw_fork.h - a bare fork server: a tiny process that forks one worker; when that dies it kills
 * its group, reaps it and says so; when asked it forks the next. Nothing else is watched, limited
 * or counted. An eager one does not wait to be asked: nobody could hold back a worker that keeps
 * dying.
 */
#ifndef BENCH_RAW_FORK_H
#define BENCH_RAW_FORK_H

#include <stdint.h>
#include <sys/types.h>

/* How the server goes about it. */
enum b_raw_server {
    B_ASKED = 0,
    B_EAGER = 1,
    B_SPAWNER = 2 /* asked, and starts this program anew with posix_spawn */
};

/* The first argument of a program that a B_SPAWNER has started; b_raw_fork_worker does not return.
 */
#define B_RAW_ARGUMENT "--raw-worker"
_Noreturn void b_raw_fork_worker(void);

struct b_raw_fork {
    pid_t server, worker;
    enum b_raw_server kind;
    int ask, task, event; /* our ends of the pipes: to the server, to the workers, from both */
};

/* Forks the server on one CPU (-1: any) and starts a first task.  0 or -1. */
int b_raw_fork_open(struct b_raw_fork *f, int cpu, enum b_raw_server kind);
void b_raw_fork_close(struct b_raw_fork *f);

/* Kills the worker inside its task; gives the time until the next one has started its task. 0 or
 * -1. */
int b_raw_fork_restart(struct b_raw_fork *f, uint64_t *ret_took);

/*
 * Forks a process that spins, kills it after `run`.
 * Gives the time from the kill, and from when it was due, until its pidfd is readable.  0 or -1.
 */
int b_raw_death(uint64_t run, uint64_t *ret_took, uint64_t *ret_late);

#endif
