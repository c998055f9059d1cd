/* SPDX-License-Identifier: MIT */
/*
 * tree.h - a directory with all that lies below it, as a command has left it.
 *
 * No function follows a symbolic link below the directory.  A tree may be deeper than a path of
 * GPQ_PATH bytes, which only a program that changes its directory makes: gpq_tree_remove removes
 * it, and gpq_tree_sync fails with -ENAMETOOLONG.
 *
 * On failure, `path` of the result names the file or directory.
 */
#ifndef GPQ_FILES_TREE_H
#define GPQ_FILES_TREE_H

#include "queue/files/files.h"

struct gpq_tree {
    const struct gpq_files *files;
    char path[GPQ_PATH]; /* of the directory; afterwards, of the file that failed */
};

/* Makes all files and directories durable, each directory after its files.  0 or -errno. */
int gpq_tree_sync(struct gpq_tree *t);

/* Removes all, also from directories that a command has made read-only.  Files that cannot be
 * removed stay, and the rest goes.  0, also where there is none, or -errno of the first failure. */
int gpq_tree_remove(struct gpq_tree *t);

#endif
