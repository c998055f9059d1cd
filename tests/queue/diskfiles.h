/* SPDX-License-Identifier: MIT */
/* diskfiles.h - the file calls of the queue (queue/files/files.h) over a disk in memory. */
#ifndef T_DISKFILES_H
#define T_DISKFILES_H

#include <stdbool.h>

#include "disk.h"
#include "queue/files/files.h"

/* Which syncs do nothing: for controls that must show harm. */
struct diskfiles {
    struct disk *disk;
    bool no_file_sync, no_directory_sync;
};

/* Returns the table; `f` is its user, and must live as long as it. */
struct gpq_files diskfiles(struct diskfiles *f);

#endif
