/* SPDX-License-Identifier: MIT */
/*
 * places.h - which state directory, by the command line and the environment.
 */
#ifndef GPQ_FILES_PLACES_H
#define GPQ_FILES_PLACES_H

#include "queue/files/files.h"
#include "queue/store.h"

#define GPQ_ANOTHER_STATEDIR "set GPUDISPATCH_STATE or --state-dir to a local directory of your own"

/* Names of directories, from the command line and from the environment.  NULL or "": not set. */
struct gpq_places {
    const char *given;      /* --state-dir */
    const char *state;      /* GPUDISPATCH_STATE */
    const char *state_home; /* XDG_STATE_HOME */
    const char *home;       /* HOME */
    const char *runtime;    /* XDG_RUNTIME_DIR */
};

/* Reads the environment.  `given` may be NULL. */
void gpq_places_read(const char *given, struct gpq_places *ret);

/*
 * Writes the path of the state directory: `given`, else `state`, else gpudispatch/ in `state_home`,
 * else .local/state/gpudispatch in `home`.  The directory need not be there.
 *
 * The first two may be relative to the present directory.  A relative `state_home` does not count,
 * as the specification of XDG has it.
 */
int gpq_places_find(const struct gpq_places *p, char path[GPQ_PATH], struct gpq_error *e);

#endif
