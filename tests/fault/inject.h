/* SPDX-License-Identifier: MIT */
/*
 * inject.h - makes calls of the library fail, come short, stall, or end the process that makes
 * them.
 *
 * The suite is linked with the library's static archive and the linker's --wrap option: each call
 * that the library makes of the functions in FI_CALL_MAP goes through inject.c. Unlike a preloaded
 * object this works with sanitizers, and sees the library's calls only: libc's own, as of fopen to
 * open, are not touched. A process knows what it is by counting forks: what the host forks is a
 * spawner, what that forks is a keeper, and so on. What has been executed finds the page, and what
 * it is, by the environment: this program again is a worker, fault-worker a dispatcher's own
 * spawner.
 *
 * A place where a fault can be is named role/phase/call#n: worker/setup/write#1 is the first write
 * of any worker during its setup.  Numbers are counted in a page all processes share.
 */
#ifndef FAULT_INJECT_H
#define FAULT_INJECT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum fi_role { FI_HOST, FI_SPAWNER, FI_KEEPER, FI_WORKER, FI_OTHER, FI_ROLES };

/* The host's phases, then those of the others. */
enum fi_phase {
    FI_INIT,
    FI_CREATE,
    FI_WORK,
    FI_END,
    FI_FINI,
    FI_BIRTH,
    FI_SERVE,
    FI_SETUP,
    FI_TASK,
    FI_CLEANUP,
    FI_PHASES
};

/* X(name, errors it may answer with, harmless ones): harmless faults change no outcome. */
#define FI_CALL_MAP(X)                                                          \
    X(malloc, (ENOMEM), (0))                                                     \
    X(calloc, (ENOMEM), (0))                                                     \
    X(realloc, (ENOMEM), (0))                                                    \
    X(fork, (EAGAIN), (0))                                                       \
    X(clone, (ENOMEM), (0))                                                      \
    X(pipe2, (EMFILE), (0))                                                      \
    X(mmap, (ENOMEM), (0))                                                       \
    X(memfd_create, (EMFILE), (0))                                               \
    X(ftruncate, (ENOSPC), (0))                                                  \
    X(dup, (EMFILE), (0))                                                        \
    X(fcntl, (EPERM), (0))                                                       \
    X(open, (EMFILE), (0))                                                       \
    X(fopen, (EMFILE), (0))                                                      \
    X(opendir, (ENOMEM), (0))                                                    \
    X(epoll_create, (EMFILE), (0))                                               \
    X(epoll_add, (ENOSPC), (0))                                                  \
    X(epoll_wait, (0), (EINTR))                                                  \
    X(eventfd, (ENFILE), (0))                                                    \
    X(socketpair, (EMFILE), (0))                                                 \
    X(sendmsg, (EAGAIN, ENOBUFS), (EINTR))                                \
    X(recvmsg, (ENOMEM, FI_TRUNC), (EINTR))                         \
    X(poll, (ENOMEM), (EINTR))                                                  \
    X(pthread_create, (EAGAIN), (0))                                             \
    X(mutex_init, (ENOMEM), (0))                                                 \
    X(cond_init, (ENOMEM), (0))                                                  \
    X(timer_create, (EAGAIN), (0))                                               \
    X(read, (0), (EINTR, FI_SHORT))                                        \
    X(write, (ENOMEM), (EINTR))                                                 \
    X(close_range, (0), (ENOSYS))                                                \
    X(signalfd, (EMFILE), (0))                                                   \
    X(pidfd_open, (EMFILE), (0))                                                 \
    X(madvise, (EINVAL), (0))                                                    \
    X(mprotect, (ENOMEM), (0))                                                   \
    X(prctl, (0), (0))                                                            \
    X(setsid, (0), (0))                                                           \
    X(waitid, (0), (0))                                                           \
    X(kill, (0), (0))                                                             \
    X(fallocate, (ENOSPC), (EINTR))                                             \
    X(vclone, (EAGAIN), (0))                                                     \
    X(exec, (ENOENT), (0))                                                        \
    X(wait, (0), (EINTR))                                                         \
    X(dup2, (EBADF), (0))                                                         \
    X(setenv, (ENOMEM), (0))                                                      \
    X(user, (0), (0))

#define FI_X(name, hard, harmless) FI_##name,
enum fi_call { FI_CALL_MAP(FI_X) FI_CALLS };
#undef FI_X

/* What a fault does; a positive number is an errno that the call answers with. */
enum fi_action {
    FI_NOTHING = 0,
    FI_SHORT = -1,       /* read: as if less had been there */
    FI_TRUNC = -2,       /* recvmsg: no room for the descriptors */
    FI_KILL_BEFORE = -3, /* SIGKILL, instead of the call */
    FI_KILL_AFTER = -4,  /* SIGKILL, once it has returned */
    FI_STALL = -5        /* 20 ms before the call */
};

struct fi_kind {
    const char *name;
    int hard[5], harmless[4]; /* ended by 0 */
};
extern const struct fi_kind fi_kinds[FI_CALLS];
extern const char *const fi_roles[FI_ROLES], *const fi_phases[FI_PHASES];

/* The page all processes of a run share. */
struct fi_page {
    _Atomic uint32_t armed;
    /* one fault ... */
    int32_t role, phase, call, action;
    uint32_t nth, sticky; /* sticky: this and every later one */
    _Atomic uint32_t met;
    /* ... or many: chances in 65,536 per call */
    uint32_t harmless, hard, kills; /* kills never hit the host */
    uint64_t seed;
    _Atomic uint64_t injected;
    _Atomic int32_t daemon, daemon_slot; /* left behind by a worker of this slot */
    _Atomic uint32_t overlap;            /* it lived when the next one's setup ran */
    _Atomic uint32_t count[FI_ROLES][FI_PHASES][FI_CALLS];
};
extern struct fi_page *fi_page;

/* A pidfd for the runner itself, which no fault concerns. */
int fi_pidfd(pid_t pid);
#define FI_VARIABLE "GPUD_FAULT_PAGE" /* where an executed program finds the page */

void fi_map(void);
bool fi_executed(void);         /* this process is a worker or spawner, executed in a run */
void fi_begin(void);            /* this process is a host, at its beginning */
void fi_phase(enum fi_phase p); /* of this process */
void fi_user_point(void);       /* user code stands here: a place to be killed at */
/* what the host has allocated, mapped or opened by name and not given back */
long fi_open_blocks(void);

#endif
