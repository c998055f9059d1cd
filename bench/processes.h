/* SPDX-License-Identifier: MIT */
/* processes.h - what /proc tells about us and the processes below us. */
#ifndef BENCH_PROCESSES_H
#define BENCH_PROCESSES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Fills the ids of every process below `root`, at most n. Returns how many; -1 when /proc is
 * unreadable. */
int b_descendants(pid_t root, pid_t *pids, size_t n);

/* Pins every process below this one: also the spawner and the keepers, which no option reaches.  0
 * or -1. */
int b_pin_tree(int cpu);

struct b_thread {
    pid_t pid, tid;
    uint64_t switches; /* voluntary and other ones */
    char name[20];
};

/* Fills a row per thread of `pid`, at most n.  Returns how many. */
size_t b_threads(pid_t pid, struct b_thread *rows, size_t n);

/* Gives the resident bytes of a process, private and shared; 0 when unknown. */
uint64_t b_resident(pid_t pid);

/*
 * Gives the bytes of memory that this process and all below it take together, a shared page counted
 * once. Pages of programs and libraries, which the kernel maps in as it likes, are not counted. 0
 * when one is unknown.
 */
uint64_t b_data_of_tree(void);

/* Gives the minor page faults of a process so far; 0 when unknown. */
uint64_t b_faults(pid_t pid);

#endif
