/* SPDX-License-Identifier: MIT */
/*
 * lock.h - a locked file as the proof that a process lives.
 *
 * The lock belongs to the open file description.  It ends when the last descriptor of it is
 * closed, however the processes that have one end.  So no file holds a pid, which another process
 * could have by now, and no age is judged.
 *
 * A child made by fork has a descriptor, too: it keeps the lock after its parent's end, as a runner
 * does, and closing its descriptor does not free the lock.  A program that it executes has none.
 * Each function returns 0 or -errno.
 */
#ifndef GPQ_FILES_LOCK_H
#define GPQ_FILES_LOCK_H

/* Makes the file where there is none, and takes its lock without waiting.  -EBUSY: another process
 * has it; the kernel does not say which. */
int gpq_lock_take(const char *path, int *ret_fd);

/* Takes a shared lock, for which the file need not be written: it keeps others from taking it.
 * -EBUSY: a process has it.  *ret_fd is -1 after a failure. */
int gpq_lock_share(const char *path, int *ret_fd);

/* Whether another description has the lock: -EBUSY.  0: no, or no such file.  The check takes a
 * shared lock for a moment, at which a take fails: only one process checks and takes. */
int gpq_lock_check(const char *path);

/* Closes the descriptor, and never unlocks: that would free the lock of a child, too. */
void gpq_lock_close(int fd);

#endif
