/* SPDX-License-Identifier: MIT */
/* places.c - which state directory, by the command line and the environment. */
#include "queue/files/places.h"

#include <errno.h>
#include <stdlib.h>

#include "queue/files/fault.h"

#define ANOTHER GPQ_ANOTHER_STATEDIR

void gpq_places_read(const char *given, struct gpq_places *ret)
{
    *ret = (struct gpq_places){
        .given = given,
        .state = getenv("GPUDISPATCH_STATE"),
        .state_home = getenv("XDG_STATE_HOME"),
        .home = getenv("HOME"),
        .runtime = getenv("XDG_RUNTIME_DIR"),
    };
}

static bool is_set(const char *text)
{
    return text && *text;
}

int gpq_places_find(const struct gpq_places *p, char path[GPQ_PATH], struct gpq_error *e)
{
    int ret;

    if (is_set(p->given))
        ret = gpq_path_absolute(path, p->given);
    else if (is_set(p->state))
        ret = gpq_path_absolute(path, p->state);
    else if (is_set(p->state_home) && *p->state_home == '/')
        ret = gpq_path(path, "%s/gpudispatch", p->state_home);
    else if (is_set(p->home) && *p->home == '/')
        ret = gpq_path(path, "%s/.local/state/gpudispatch", p->home);
    else
        return gpq_fail(e, GPQ_EUNUSABLE, "state directory: HOME is not set; " ANOTHER);
    if (ret == -ENAMETOOLONG)
        return gpq_fail(e, GPQ_EUNUSABLE, "state directory: its path exceeds %d bytes; " ANOTHER,
                        GPQ_PATH - 1);
    return ret < 0 ? gpq_fault(e, ret, "present directory") : 0;
}
