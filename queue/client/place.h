/* SPDX-License-Identifier: MIT */
/* place.h - which state directory a verb means. */
#ifndef GPQ_CLIENT_PLACE_H
#define GPQ_CLIENT_PLACE_H

#include <stdbool.h>

#include "queue/files/files.h"
#include "queue/store.h"

/*
 * Writes the path of the state directory: `given` (--state-dir), else that of the environment, else
 * the key state-dir of the config file (`config` is that of --config), else the default.  The
 * directory need not be there.  The pointers may be NULL.  EINVAL, ENOTFOUND: the config file;
 * EUNUSABLE: none of them is set.
 */
int gpq_place_find(const char *given, const char *config, char path[GPQ_PATH], struct gpq_error *e);

/* The path as seen from the root: a relative one is below the present directory.  False: it is too
 * long, or there is no such directory. */
bool gpq_place_absolute(const char *path, char ret[GPQ_PATH]);

#endif
