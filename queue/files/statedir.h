/* SPDX-License-Identifier: MIT */
/*
 * statedir.h - makes the state directory, and checks that it is fit for a queue.
 *
 * Q12 Only its owner speaks to the queue.  State directory and folders have mode 0700 and belong to
 *     the user; a symbolic link in their place, another owner, or a mode that lets others in, is
 *     refused.  Directories above may be links.
 *
 * Its folders: results/ (results.h), work/ and out/ (out.h), run/ (records of runs), logs/ (output
 * of commands).
 *
 * Each function returns 0, or GPQ_EUNUSABLE, GPQ_EFULL or GPQ_EIO with *e filled.
 */
#ifndef GPQ_FILES_STATEDIR_H
#define GPQ_FILES_STATEDIR_H

#include "queue/files/places.h"

/*
 * Makes the directory, those above it, and its folders, where they are not there, and checks them.
 * Then writes its path without symbolic links to `real`: by this one, agent and client find the
 * same socket (socket.h).  A network file system is refused unless `allow_network`.
 */
int gpq_statedir_make(const char *path, bool allow_network, char real[GPQ_PATH],
                      struct gpq_error *e);

/* Checks it as gpq_statedir_make, makes nothing, and does not look at the file system, nor whether
 * it can be written: for clients.  GPQ_ENOTFOUND: it is not there. */
int gpq_statedir_check(const char *path, char real[GPQ_PATH], struct gpq_error *e);

/* Takes the lock of the directory, which the one process that may change it has: an agent, or a
 * check.  `real` is that of the functions above.  The kernel frees it with the descriptor.
 * GPQ_EBUSY: another process has it. */
int gpq_statedir_own(const char *real, int *ret_lock, struct gpq_error *e);

/* Its folders, up to a NULL. */
extern const char *const gpq_folders[];

/* Makes one directory with mode 0700 where there is none, and checks its owner and mode. */
int gpq_private_directory(const char *path, const char *what, struct gpq_error *e);

#endif
