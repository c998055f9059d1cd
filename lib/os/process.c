/* SPDX-License-Identifier: MIT */
#include "os/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/fds.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* 0 when that cannot be told. */
static int count_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *e;
    int n = 0;

    if (!dir)
        return 0;
    while ((e = readdir(dir)))
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

bool gpi_process_threaded(void)
{
#if defined(__SANITIZE_THREAD__)
    return count_threads() > 2;
#else
    return count_threads() > 1;
#endif
}

static pid_t noted(enum gpi_sys call, pid_t pid)
{
    return pid < 0 ? gpi_refused(call) : pid;
}

pid_t gpi_process_fork(void)
{
    return noted(GPI_SYS_FORK, fork());
}

pid_t gpi_process_fork_quiet(void)
{
    /* Exit signal 0: the host's wait(NULL), waitpid(-1) and SIGCHLD handler never meet it.
     * Only safe while no other thread can hold a lock of libc, since the atfork handlers
     * that would free them do not run. */
#if defined(__x86_64__) || defined(__aarch64__)
    if (count_threads() == 1)
        return noted(GPI_SYS_CLONE, (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL));
#endif
    return gpi_process_fork();
}

int gpi_process_pidfd(pid_t pid)
{
    return gpi_fd_made(GPI_SYS_PIDFD_OPEN, (int)syscall(SYS_pidfd_open, pid, 0));
}

bool gpi_process_no_pidfds(int sys_errno)
{
    return sys_errno == ENOSYS || sys_errno == EPERM;
}

static void send_signal(pid_t pid, int pidfd, int number)
{
    if (pidfd < 0 || (syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0) && errno == ENOSYS))
        kill(pid, number);
}

void gpi_process_kill(pid_t pid, int pidfd)
{
    send_signal(pid, pidfd, SIGKILL);
}

void gpi_process_continue(pid_t pid, int pidfd)
{
    send_signal(pid, pidfd, SIGCONT);
}

/* ---- children ---- */

/* What /proc calls this process, or -1: the numbers there are those of the PID namespace it was mounted
 * in, which may be one outside ours (a host that is the first of a new namespace, and mounts nothing). */
static pid_t number_in_proc(void)
{
    char text[32] = "";
    ssize_t n = readlink("/proc/self", text, sizeof text - 1);

    return n > 0 ? (pid_t)atoi(text) : -1;
}

char gpi_process_state(pid_t pid)
{
    char path[64], text[512], *after;
    ssize_t n;
    int fd;

    if (number_in_proc() != getpid())
        return 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    after = strrchr(text, ')'); /* the name may hold anything */
    return after && after[1] == ' ' ? after[2] : '\0';
}

/* All numbers of one process, from the namespace of /proc inwards; gives how many, 0 when it is gone. */
static int numbers_of(pid_t in_proc, pid_t *ret, int max)
{
    char path[64], line[512];
    FILE *f;
    int n = 0;

    snprintf(path, sizeof path, "/proc/%d/status", (int)in_proc);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        char *at = line + 6, *end;
        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        for (long one; n < max && (one = strtol(at, &end, 10), end != at); at = end)
            ret[n++] = (pid_t)one;
        break;
    }
    if (f)
        fclose(f);
    return n;
}

#define NAMESPACES_MAX 33 /* 32 can be nested */

/* Turns the numbers of our children that /proc gave into ours.  None can vanish: only we reap them. */
static bool own_numbers(pid_t self, pid_t *pids, size_t n)
{
    pid_t all[NAMESPACES_MAX];
    int depth = numbers_of(self, all, NAMESPACES_MAX);

    if (depth <= 1)
        return depth == 1; /* the same namespace, as nearly always */
    for (size_t i = 0; i < n; i++) {
        if (numbers_of(pids[i], all, NAMESPACES_MAX) < depth)
            return false;
        pids[i] = all[depth - 1];
    }
    return true;
}

static int children_from_stat(pid_t self, pid_t *pids, size_t max)
{
    DIR *dir = opendir("/proc");
    struct dirent *e;
    int n = 0;

    if (!dir)
        return -1;
    while (n >= 0 && (e = readdir(dir))) {
        char path[300], text[512], *after;
        FILE *f;
        int parent = 0;
        if (e->d_name[0] < '1' || e->d_name[0] > '9')
            continue;
        snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
        f = fopen(path, "re");
        if (!f && (errno == ENOENT || errno == ESRCH))
            continue; /* it has gone meanwhile */
        if (!f) {
            n = -1; /* it may be one of ours */
            continue;
        }
        if (fgets(text, sizeof text, f) && (after = strrchr(text, ')')))
            (void)sscanf(after + 1, " %*c %d", &parent);
        fclose(f);
        if (parent != self)
            continue;
        if ((size_t)n < max)
            pids[n] = (pid_t)atoi(e->d_name);
        n++;
    }
    closedir(dir);
    return n;
}

static int children_from_list(pid_t self, pid_t *pids, size_t max)
{
    char path[64];
    FILE *f;
    int n = 0, pid;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)self); /* the only thread */
    f = fopen(path, "re");
    if (!f)
        return children_from_stat(self, pids, max); /* CONFIG_PROC_CHILDREN is not everywhere */
    while (fscanf(f, "%d", &pid) == 1) {
        if ((size_t)n < max)
            pids[n] = (pid_t)pid;
        n++;
    }
    fclose(f);
    return n;
}

int gpi_process_children(pid_t *pids, size_t max)
{
    pid_t self = number_in_proc();
    int n = self < 0 ? -1 : children_from_list(self, pids, max);

    if (n <= 0)
        return n;
    return own_numbers(self, pids, (size_t)n < max ? (size_t)n : max) ? n : -1;
}

int gpi_process_signals_default(void)
{
    struct sigaction dfl = { .sa_handler = SIG_DFL };
    sigset_t set;

    sigfillset(&set);
    if (sigprocmask(SIG_BLOCK, &set, NULL))
        return gpi_refused(GPI_SYS_SIGPROCMASK);
    for (int s = 1; s < NSIG; s++)
        (void)sigaction(s, &dfl, NULL); /* KILL, STOP and libc's own two refuse */
    return 0;
}

void gpi_process_signals_unblock(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
}

int gpi_process_sigchld_fd(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    return gpi_fd_made(GPI_SYS_SIGNALFD, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

void gpi_process_prompt(pid_t pid, bool prompt)
{
#ifdef SYS_sched_setattr
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } a = { .size = sizeof a };

    if (syscall(SYS_sched_getattr, pid, &a, sizeof a, 0))
        return;
    a.size = sizeof a;
    a.flags = 0;
    a.runtime = prompt ? 100000 : 0; /* the shortest slice there is, in ns; the usual one */
    if (a.policy == 0)  /* SCHED_OTHER; a real-time worker needs no help */
        (void)syscall(SYS_sched_setattr, pid, &a, 0);
#else
    (void)pid;
    (void)prompt;
#endif
}

void gpi_process_credentials(struct gpi_credentials *ret)
{
    memset(ret, 0, sizeof *ret);
    (void)getresuid(&ret->uid[0], &ret->uid[1], &ret->uid[2]);
    (void)getresgid(&ret->gid[0], &ret->gid[1], &ret->gid[2]);
    ret->n_groups = getgroups(GPI_GROUPS, ret->groups);
    if (ret->n_groups < 0) /* more than there is room for */
        ret->n_groups = getgroups(0, NULL);
}

bool gpi_process_die_with(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    return getppid() == parent; /* it may have died before the line above took hold */
}
