/* SPDX-License-Identifier: MIT */
/*
 * names.h - the names in a directory, read before any of them changes.
 */
#ifndef GPQ_FILES_NAMES_H
#define GPQ_FILES_NAMES_H

#include "queue/files/files.h"

struct gpq_names {
    char *text; /* each ends with a NUL byte */
    size_t used, room;
};

/* Reads them, in any order; 0 or -errno. */
int gpq_names_read(const struct gpq_files *f, const char *path, struct gpq_names *ret);
void gpq_names_free(struct gpq_names *n);

/* The first name, and the one that follows; NULL behind the last. */
const char *gpq_names_next(const struct gpq_names *n, const char *name);

#define GPQ_EACH_NAME(names, name)                                     \
    for (const char *name = gpq_names_next(names, NULL); name != NULL; \
         name = gpq_names_next(names, name))

#endif
