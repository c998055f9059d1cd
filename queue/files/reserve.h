/* SPDX-License-Identifier: MIT */
/*
 * reserve.h - space that is kept for the end of running tasks on a full disk.
 *
 * Q9  On a full disk, submits are refused and starts stop, but the outcomes of running tasks are
 *     still stored: the reserve file is given up for them, and made again when there is space.
 *
 * XXX On file systems that write a block anew at each change (Btrfs, ZFS), or with a quota that
 * another process uses up, free space after giving it up is likely and not certain.
 *
 * Each function returns 0 or -errno.
 */
#ifndef GPQ_FILES_RESERVE_H
#define GPQ_FILES_RESERVE_H

#include "queue/files/files.h"

enum { GPQ_RESERVE = 4 << 20 }; /* bytes that an agent keeps */

/* Makes a file of this size whose blocks are allocated, in place of one that is there.  On failure
 * there is none: -ENOSPC, -EDQUOT and others. */
int gpq_reserve_make(const struct gpq_files *f, const char *directory, off_t size);

/* Whether it is there with this size: 1 or 0. */
int gpq_reserve_there(const struct gpq_files *f, const char *directory, off_t size);

/* Removes it and makes that durable, after which its blocks are free.  Returns 1 if there was one,
 * 0 if none. */
int gpq_reserve_give_up(const struct gpq_files *f, const char *directory);

#endif
