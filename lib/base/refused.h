/* SPDX-License-Identifier: MIT */
/*
 * refused.h - which system call was refused: errno says why, this says which one.
 *
 * The code that makes a call the library cannot do without notes its failure here, and gpi_fail
 * puts the name in front of the errno's text: "signalfd: Operation not permitted".  As errno the
 * note belongs to one thread.  It counts only for the errno that the call left, so that a later
 * failure of another kind is not blamed on it.  Spawner, keepers and monitors send the number of
 * the call beside the errno; a worker writes both as text into its status page.
 */
#ifndef GPI_BASE_REFUSED_H
#define GPI_BASE_REFUSED_H

#include <stddef.h>
#include <stdint.h>

/* X(NAME, "name").  An executed worker may be of another version: only append. */
#define GPI_SYS_MAP(X)                                                                             \
    X(CLONE, "clone")                                                                              \
    X(EPOLL_CREATE, "epoll_create1")                                                               \
    X(EPOLL_CTL, "epoll_ctl")                                                                      \
    X(EPOLL_WAIT, "epoll_wait")                                                                    \
    X(EVENTFD, "eventfd")                                                                          \
    X(EXECVE, "execve")                                                                            \
    X(FALLOCATE, "fallocate")                                                                      \
    X(FCNTL, "fcntl")                                                                              \
    X(FORK, "fork")                                                                                \
    X(FSTAT, "fstat")                                                                              \
    X(FTRUNCATE, "ftruncate")                                                                      \
    X(MADVISE, "madvise")                                                                          \
    X(MEMFD_CREATE, "memfd_create")                                                                \
    X(MMAP, "mmap")                                                                                \
    X(MPROTECT, "mprotect")                                                                        \
    X(OPEN, "open")                                                                                \
    X(PIDFD_OPEN, "pidfd_open")                                                                    \
    X(PIPE, "pipe2")                                                                               \
    X(POLL, "poll")                                                                                \
    X(PPOLL, "ppoll")                                                                              \
    X(PRCTL, "prctl")                                                                              \
    X(PTHREAD_ATFORK, "pthread_atfork")                                                            \
    X(PTHREAD_CREATE, "pthread_create")                                                            \
    X(READ, "read")                                                                                \
    X(RECVMSG, "recvmsg")                                                                          \
    X(SENDMSG, "sendmsg")                                                                          \
    X(SIGNALFD, "signalfd")                                                                        \
    X(SIGPROCMASK, "sigprocmask")                                                                  \
    X(SOCKETPAIR, "socketpair")                                                                    \
    X(TIMER_CREATE, "timer_create")                                                                \
    X(WAITID, "waitid")                                                                            \
    X(WRITE, "write")

enum gpi_sys {
    GPI_SYS_NONE,
#define GPI_SYS_X(name, text) GPI_SYS_##name,
    GPI_SYS_MAP(GPI_SYS_X)
#undef GPI_SYS_X
    GPI_SYS_COUNT
};

#define GPI_REFUSAL_SIZE 112u /* of a text */

/* Notes that `call` has failed with errno, which stays.  Returns -1. */
int gpi_refused(enum gpi_sys call);

/* The call noted last by this thread, if it failed with this errno; else NONE. */
enum gpi_sys gpi_refused_call(int sys_errno);

/* Nothing has failed yet: at the beginning of a call of the library that reports what failed. */
void gpi_refused_forget(void);

/* An errno in words: in `buffer`, or a constant. */
const char *gpi_errno_text(int sys_errno, char *buffer, size_t size);

/* "signalfd: Operation not permitted"; without the name where the number is NONE or unknown.
 * Returns `to`, which has GPI_REFUSAL_SIZE bytes. */
const char *gpi_refusal_text(char *to, uint32_t call, int sys_errno);

#endif
