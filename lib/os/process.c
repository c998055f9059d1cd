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

#include "base/ways.h"
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

static int send_signal(int pidfd, int number)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
}

uint32_t gpi_process_kill(pid_t pid, int pidfd)
{
    uint32_t denied = 0;
    int fd;

    if (pidfd >= 0 && send_signal(pidfd, SIGKILL) == 0)
        return 0;
    if (pidfd >= 0 && errno == ESRCH)
        return GPI_WAYS; /* it is gone: its number may be another's by now */
    if (pidfd >= 0 && errno != ENOSYS)
        denied = GPI_WAY_PIDFD;
    if (kill(pid, SIGKILL) == 0)
        return denied;
    int err = errno;
    fd = pidfd < 0 ? gpi_process_pidfd(pid) : -1; /* a filter may know kill alone */
    if (fd < 0 || send_signal(fd, SIGKILL))
        denied = GPI_WAY_PIDFD;
    gpi_fd_close(&fd);
    errno = err;
    return denied | GPI_WAY_KILL;
}

void gpi_process_continue(pid_t pid, int pidfd)
{
    if (pidfd < 0 || (send_signal(pidfd, SIGCONT) && errno != ESRCH))
        (void)kill(pid, SIGCONT);
}

/* ---- /proc ---- */

pid_t gpi_process_number(void)
{
    char text[32] = "";
    ssize_t n = readlink("/proc/self", text, sizeof text - 1);

    return n > 0 ? (pid_t)atoi(text) : -1;
}

const char *gpi_process_stat(pid_t pid, char *text, size_t size)
{
    const char *after;
    char path[64];
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    after = strrchr(text, ')'); /* the name may hold anything */
    return after && after[1] == ' ' ? after + 2 : NULL;
}

char gpi_process_state(pid_t pid)
{
    char text[512];
    const char *stat = NULL;

    if (gpi_process_number() == getpid()) /* else the numbers there are of another namespace */
        stat = gpi_process_stat(pid, text, sizeof text);
    return stat ? *stat : '\0';
}

void gpi_process_name(uint32_t pid, char ret[GPI_PROCESS_NAME])
{
    char path[32];
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd >= 0 ? read(fd, ret, GPI_PROCESS_NAME - 1) : 0;
    if (fd >= 0)
        close(fd);
    n = n > 0 && ret[n - 1] == '\n' ? n - 1 : n;
    ret[n > 0 ? n : 0] = '\0';
    if (!*ret)
        memcpy(ret, "?", 2);
}

bool gpi_process_is_worker(const char *name)
{
    return strncmp(name, GPI_WORKER_NAME, sizeof GPI_WORKER_NAME - 1) == 0;
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
