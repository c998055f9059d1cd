/* SPDX-License-Identifier: MIT */
#include "api/check.h"

#include "base/failure.h"
#include "worker/worker.h"

int gpi_check_place(struct gpud_error *e)
{
    return gpi_worker_here() ? gpi_fail(e, GPUD_EREENTER, 0, "",
                                        "called in a worker: only the host has dispatchers")
                             : 0;
}

int gpi_check_refuse(bool given, const char *name, struct gpud_error *e)
{
    int r = gpi_check_place(e);

    if (r)
        return r;
    if (!given)
        return gpi_fail_null(e, name);
    return gpi_fail(e, GPUD_EFORKED, 0, name, "%s", gpud_error_text(GPUD_EFORKED));
}

int gpi_check_pooled(const gpud_dispatcher *d, struct gpud_error *e)
{
    int r = gpi_check(d, e);

    if (r == 0 && !d->set.pooled)
        r = gpi_fail(e, GPUD_EINVAL, 0, "pooled",
                     "the dispatcher has no classes: create it with pooled = 1");
    return r;
}
