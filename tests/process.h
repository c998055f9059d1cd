/* SPDX-License-Identifier: MIT */
/*
 * process.h - what /proc says about processes: for the runner, which looks for what a case
 * left behind, and for cases that kill parts of the library and watch what follows.
 *
 * A process is named by pid and start time, so a recycled pid is never mistaken for it.
 */
#ifndef T_PROCESS_H
#define T_PROCESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct t_proc {
    pid_t pid;
    pid_t parent;
    char state; /* as in /proc/PID/stat; 'Z' is a zombie */
    char comm[32];
    uint64_t start; /* clock ticks since boot */
};

struct t_procs {
    struct t_proc *list;
    size_t count;
};

/* Fills *ret_p.  Returns 0, or -1 when there is no such process. */
int t_proc_read(pid_t pid, struct t_proc *ret_p);

/* Lists all processes of the machine; ended with t_procs_free. */
struct t_procs t_procs_all(void);

/* Tells whether this process has a child, a zombie included: 1 or 0. */
int t_has_children(void);

/* Lists all that descend from `root` now (children, theirs, and so on); not root itself. */
struct t_procs t_procs_below(pid_t root);

/* Lists all whose initial environment holds `assignment` ("NAME=value"), zombies never. */
struct t_procs t_procs_with_env(const char *assignment);

void t_procs_free(struct t_procs *p);

/* Tells whether it has ended: 1, or 0 while it lives.  A zombie has ended. */
int t_proc_ended(const struct t_proc *p);

#endif
