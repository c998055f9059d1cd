/* SPDX-License-Identifier: MIT */
/*
 * diskvfs.h - a VFS of SQLite over a disk in memory.
 *
 * It syncs as the VFS "unix" does: the directory at the first sync of a journal or of a
 * WAL that it may have created, and after a delete if SQLite wants that.  Its locks hold within
 * the process.  It has no shared memory, so that WAL needs locking_mode=EXCLUSIVE.
 */
#ifndef T_DISKVFS_H
#define T_DISKVFS_H

#include <stdint.h>

#include "disk.h"

/* The syncs of SQLite that it carries out. */
enum diskvfs_syncs {
    DISKVFS_FULL,   /* all */
    DISKVFS_NORMAL, /* those of a WAL only of its header and before a checkpoint, as with
                       synchronous=NORMAL */
    DISKVFS_OFF,    /* none */
};

/* Puts the VFS over this disk, for files that are opened from now on, and makes it the default
 * one.  The seed decides all randomness of SQLite.  Returns its name. */
const char *diskvfs_use(struct disk *d, uint64_t seed, enum diskvfs_syncs syncs);
/* Lets SQLite fill up the last sector of each commit, as it does where a write to a sector may
 * damage the rest of the sector.  Without this call SQLite assumes the contrary, as with the VFS
 * "unix".  A commit that fails while SQLite fills up the sector may arrive. */
void diskvfs_pad(bool padded);
/* Removes the VFS. */
void diskvfs_remove(void);

#endif
