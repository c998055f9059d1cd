/* SPDX-License-Identifier: MIT */
#include "api/shared.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/failure.h"
#include "os/fds.h"
#include "os/headroom.h"
#include "os/memory.h"

int gpi_shared_ours(const gpud_shared *s)
{
    return s->owner == getpid();
}

static int failed(struct gpud_error *e, uint64_t size, int err)
{
    if (err == ENOMEM || err == ENOSPC)
        return gpi_fail(e, GPUD_ENOMEM, ENOMEM, "size",
                        "the machine or memory cgroup has less than %llu bytes left",
                        (unsigned long long)size);
    return gpi_fail(e, GPUD_ESYSTEM, err, "size", "shared memory of %llu bytes failed",
                    (unsigned long long)size);
}

int gpud_shared_create(uint64_t size, gpud_shared **ret_shared, struct gpud_error *reterr)
{
    gpud_shared *s;

    if (!ret_shared)
        return gpi_fail_null(reterr, "ret_shared");
    if (size == 0)
        return gpi_fail(reterr, GPUD_EINVAL, 0, "size", "size is 0, the minimum is 1");
    if (size > gpi_headroom())
        return failed(reterr, size, ENOMEM);
    s = calloc(1, sizeof *s);
    if (!s)
        return failed(reterr, size, ENOMEM);
    s->fd = gpi_memory_publish("gpud-shared", size, &s->data);
    if (s->fd < 0) {
        int err = errno;
        free(s);
        return failed(reterr, size, err);
    }
    s->size = size;
    s->owner = getpid();
    *ret_shared = s;
    return 0;
}

void *gpud_shared_data(gpud_shared *s)
{
    return s && gpi_shared_ours(s) ? s->data : NULL;
}

uint64_t gpud_shared_size(const gpud_shared *s)
{
    return s ? s->size : 0;
}

int gpud_shared_destroy(gpud_shared **s)
{
    if (!s || !*s)
        return 0;
    if (gpi_shared_ours(*s))
        gpi_memory_unmap((*s)->data, (*s)->size);
    gpi_fd_close(&(*s)->fd);
    free(*s);
    *s = NULL;
    return 0;
}
