/* SPDX-License-Identifier: MIT */
/*
 * Two steps: a child with exit signal 0, which the host's waits do not see, starts the one that
 * executes, and leaves. (An exec sets the exit signal back to SIGCHLD, so a child that executes
 * cannot be hidden.)  Both share the host's memory, and the host's thread waits while they run, as
 * vfork does: only system calls are allowed in them. The first has the host's table of files, too,
 * so that the pidfd of the second is the host's from its birth: no number can be recycled in
 * between.
 */
#include "os/orphan.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fds.h"

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif

#define STACK 65536u /* of each of the two */

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1 /* as gcc says it */
#endif
#endif

/* ThreadSanitizer takes what shares our memory for the thread that waits: none of its words may be
 * said there, neither at the entry of a function nor in a wrapper of libc. */
#if defined(__clang__)
#define UNWATCHED __attribute__((disable_sanitizer_instrumentation))
#else
#define UNWATCHED __attribute__((no_sanitize("thread")))
#endif
#ifdef __SANITIZE_THREAD__
#define clone __clone /* its wrapper of clone believes in a fork: this name of glibc's has none */
int __clone(int (*run)(void *), void *stack, int flags, void *arg, ...);
#endif

struct order {
    const char *path;
    char *const *argv;
    const int *keep;
    size_t n;
    int null;
    char *stack; /* for the second */
    pid_t pid;   /* of the second */
    int pidfd;
    int err;
    enum gpi_sys call; /* that failed with it */
};

/* The table of files is a copy: the host's stays as it is. */
UNWATCHED static int execute(void *arg)
{
    struct order *o = arg;

#ifdef SYS_close_range
    (void)syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
#endif
    for (int fd = 0; fd < 3; fd++)
        (void)syscall(SYS_dup3, o->null, fd, 0);
    for (size_t i = 0; i < o->n; i++)
        (void)syscall(SYS_fcntl, o->keep[i], F_SETFD, 0);
    (void)syscall(SYS_execve, o->path, o->argv, environ);
    o->err = errno;
    o->call = GPI_SYS_EXECVE;
    return 127; /* clone ends the child with it */
}

UNWATCHED static int start_second(void *arg)
{
    struct order *o = arg;

    o->pid = clone(execute, o->stack + STACK, CLONE_VM | CLONE_VFORK | CLONE_PIDFD, o, &o->pidfd);
    if (o->pid < 0) {
        o->err = errno;
        o->call = GPI_SYS_CLONE;
    }
    return 0;
}

static int start(struct order *o, char *stacks)
{
    pid_t first;

    o->stack = stacks + STACK;
    /* exit signal 0 */
    first = clone(start_second, stacks + STACK, CLONE_VM | CLONE_VFORK | CLONE_FILES, o);
    if (first < 0) {
        o->call = GPI_SYS_CLONE;
        return errno;
    }
    while (waitpid(first, NULL, __WALL) < 0 && errno == EINTR)
        ;
    return *(volatile int *)&o->err;
}

int gpi_orphan_start(const char *path, char *const argv[], const int *keep, size_t n,
                     pid_t *ret_pid, int *ret_pidfd)
{
    char *stacks = mmap(NULL, (size_t)2 * STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    struct order o = { .path = path, .argv = argv, .keep = keep, .n = n, .null = -1, .pidfd = -1 };
    sigset_t all, before;
    int err;

    if (stacks == MAP_FAILED) {
        (void)gpi_refused(GPI_SYS_MMAP);
        return errno;
    }
    o.null = gpi_fd_made(GPI_SYS_OPEN, open("/dev/null", O_RDWR | O_CLOEXEC));
    err = o.null < 0 ? errno : 0;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of the host may run in them */
    if (err == 0 && (err = start(&o, stacks)) != 0) {
        errno = err;
        (void)gpi_refused(*(volatile enum gpi_sys *)&o.call);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)munmap(stacks, (size_t)2 * STACK);
    gpi_fd_close(&o.null);
    o.pidfd = gpi_fd_lift(o.pidfd);
    if (err) {
        gpi_fd_close(&o.pidfd);
        return err;
    }
    *ret_pid = o.pid;
    *ret_pidfd = o.pidfd;
    return o.pidfd < 0 ? EMFILE : 0;
}
