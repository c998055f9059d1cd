/* SPDX-License-Identifier: MIT */
/* process.h - processes: fork quietly, watch, kill, reset signals. */
#ifndef GPI_OS_PROCESS_H
#define GPI_OS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* fork(); a failure is noted (base/refused.h). */
pid_t gpi_process_fork(void);

/* Forks a child whose end sends no signal and which only __WALL waits see, when the process
 * has one thread; else a plain fork.  As fork(). */
pid_t gpi_process_fork_quiet(void);

/* A lifted pidfd, or -1 with errno. */
int gpi_process_pidfd(pid_t pid);

/* Whether pidfd_open failed because there are none here: an old kernel, or a filter.  Some filters
 * return EPERM for calls that are newer than they are; pidfd_open itself never does. */
bool gpi_process_no_pidfds(int sys_errno);

/* Sends SIGKILL to a child that no process has reaped: through its pidfd where there is one (else
 * -1), then with kill(2).  Returns the ways that were denied (base/ways.h); GPI_WAYS, with errno:
 * it got no signal. */
uint32_t gpi_process_kill(pid_t pid, int pidfd);
/* SIGCONT, likewise. */
void gpi_process_continue(pid_t pid, int pidfd);

/* /proc/PID/stat from the state on, behind the name; NULL if it cannot be read.  `text` holds it.
 */
const char *gpi_process_stat(pid_t pid, char *text, size_t size);

/* Its state there: 'T' stopped, 't' by a tracer, 'Z' (its first thread) ended, ...; 0 when there is
 * none, or that cannot be told.  A hint: the number may be another's by now. */
char gpi_process_state(pid_t pid);

/* What workers call themselves: this, and their slot's number. */
#define GPI_WORKER_NAME "gpud-w"

/* The name of a process, as in /proc/PID/comm; "?" when it cannot be had. */
#define GPI_PROCESS_NAME 17u
void gpi_process_name(uint32_t pid, char ret[GPI_PROCESS_NAME]);

/* Whether a process has a worker's name. */
bool gpi_process_is_worker(const char *name);

/* Whether there are threads beside the calling one; a sanitizer's own holds no locks of anybody. */
bool gpi_process_threaded(void);

/* What /proc calls this process, or -1: the numbers there are those of the PID namespace it was
 * mounted in, which may be one outside ours (a host that is the first of a new namespace, and
 * mounts nothing). */
pid_t gpi_process_number(void);

/* Gives every signal its default action, with all of them blocked (0, or -1 with errno); and
 * unblocks them. */
int gpi_process_signals_default(void);
void gpi_process_signals_unblock(void);

/* A lifted fd that becomes readable at SIGCHLD (which must be blocked); -1 with errno. */
int gpi_process_sigchld_fd(void);

/* Asks for short turns on the CPU, so that a short wake-up does not wait behind those who compute
 * (pid 0 = this thread); or for turns of the usual length again.  Takes no share from anybody.
 * Best effort: Linux 6.12. */
void gpi_process_prompt(pid_t pid, bool prompt);

/* This process is killed when `parent`, whose child it is, dies.  False when that is dead already.
 */
bool gpi_process_die_with(pid_t parent);

#define GPI_GROUPS 64

/* The real, effective and saved ids and the groups, to compare two moments; of more than GPI_GROUPS
 * groups only how many they are. */
struct gpi_credentials {
    uid_t uid[3];
    gid_t gid[3];
    int n_groups;
    gid_t groups[GPI_GROUPS];
};
void gpi_process_credentials(struct gpi_credentials *ret);

#endif
