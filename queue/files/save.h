/* SPDX-License-Identifier: MIT */
/*
 * save.h - writes a file so that a reader finds it whole, also after a power cut.
 *
 * The bytes go to NAME.tmp, which is synced and renamed, and the directory is synced.  A reader
 * finds the file of before or the new one.  Each function returns 0 or -errno.
 */
#ifndef GPQ_FILES_SAVE_H
#define GPQ_FILES_SAVE_H

#include "queue/files/files.h"

/*
 * Writes the file `name` of a directory.  One thread saves a name at a time.
 *
 * On failure the file of before is unchanged, and NAME.tmp is removed where the disk lets it.  If
 * only the sync of the directory fails, the new file is there, and a power cut may bring back the
 * file of before.
 */
int gpq_save(const struct gpq_files *f, const char *directory, const char *name, const void *data,
             size_t size);

/* Writes all bytes to a descriptor. */
int gpq_write_all(const struct gpq_files *f, int fd, const void *data, size_t size);

/* Makes the entries of a directory durable.  Forgives only EINVAL, the answer of file systems
 * that have nothing to sync there. */
int gpq_sync_directory(const struct gpq_files *f, const char *path);

/* Makes the bytes of a file durable. */
int gpq_sync_file(const struct gpq_files *f, const char *path);

/*
 * Reads a file whole into memory that the caller frees.  A NUL byte, which the size does not
 * count, follows the bytes.  -EFBIG: more than `limit` bytes.
 */
int gpq_read_whole(const struct gpq_files *f, const char *path, size_t limit, void **ret_data,
                   size_t *ret_size);

/* Whether a name is that of a file which a save has left unfinished. */
bool gpq_is_temporary(const char *name);

#endif
