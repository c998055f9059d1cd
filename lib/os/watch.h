/* SPDX-License-Identifier: MIT */
/*
 * watch.h - watching one process for its end: by pidfd, and where the system has none (Linux
 * before 5.3, valgrind) by the signal that a parent's death sends.
 *
 * That signal is a hint only: it also comes when the thread that forked us ends.  The proof is
 * the process itself, told from a later one of its number by the time it was born.  End of file on
 * a socket proves nothing: a bare-forked sibling may hold the other end.               [C11]
 */
#ifndef GPI_OS_WATCH_H
#define GPI_OS_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gpi_watch {
    int fd;        /* to be polled for reading: then ask gpi_watch_gone; lifted */
    pid_t pid;     /* who is watched */
    bool hint;     /* fd only tells that our parent, or a thread of it, has ended */
    bool doubt;    /* such a hint came: the process may be at its end, or a thread of it was */
    pid_t parent;  /* at the time, with hint */
    uint64_t born; /* of pid, with hint */
};

/* Begins to watch `pid`, the parent of this process; every signal must be blocked.
 * 0, or -1 with errno; -1 with ESRCH when it has ended already. */
int gpi_watch_parent(struct gpi_watch *w, pid_t pid);

/* Takes a watch over a fork: the child of the watcher watches the same process. */
int gpi_watch_inherit(struct gpi_watch *w);

/* Whether the watched process has ended; asked when fd is readable or the pause is over. */
bool gpi_watch_gone(struct gpi_watch *w);

/* How long to poll before asking again, in ms; -1 = until fd is readable. Without a pidfd a process
 * has to look by itself once a hint has come, for the last thread of a process sends it before that
 * thread can be seen to have gone, and once its parent has died without the watched one. */
int gpi_watch_pause(const struct gpi_watch *w);

#endif
