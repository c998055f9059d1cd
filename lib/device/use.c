/* SPDX-License-Identifier: MIT */
#include "device/use.h"

#include <stdio.h>

/* Returns the bytes that processes have.  A driver that does not list them, or not their memory,
 * has only the sum, with its own reserve. */
static uint64_t used(const struct gpi_sample *x)
{
    const uint32_t n = x->n_users < GPI_PROCESSES_MAX ? x->n_users : GPI_PROCESSES_MAX;
    uint64_t sum = 0;

    if (!x->users_known || x->n_users > n)
        return x->memory_used;
    for (uint32_t i = 0; i < n; i++) {
        if (x->user[i].memory == GPI_UNKNOWN64)
            return x->memory_used;
        sum += x->user[i].memory;
    }
    return sum;
}

static bool is_read(const struct gpi_sample *x)
{
    return x->at && x->reading == GPI_READ_OK &&
           (x->users_known || x->memory_used != GPI_UNKNOWN64);
}

static bool is_loaded(const struct gpi_sample *x, const struct gpi_quiet *most)
{
    return most->load && x->utilization != GPI_UNKNOWN32 && x->utilization * 100ull > most->load;
}

bool gpi_sample_is_free(const struct gpi_sample *x, const struct gpi_quiet *most)
{
    const uint64_t bytes = used(x);
    const bool has = bytes != GPI_UNKNOWN64 && bytes > most->memory;

    return is_read(x) && !has && !is_loaded(x, most);
}

const char *gpi_sample_use(const struct gpi_sample *x, const struct gpi_quiet *most, char *to,
                           size_t size)
{
    const uint64_t bytes = used(x);

    if (!is_read(x))
        (void)snprintf(to, size, "no reading");
    else if (bytes == GPI_UNKNOWN64 || bytes <= most->memory)
        (void)snprintf(to, size, "use %u %%", x->utilization);
    else if (x->n_users && x->user[0].pid)
        (void)snprintf(to, size, "%llu MiB (pid %u)", (unsigned long long)(bytes >> 20),
                       x->user[0].pid);
    else
        (void)snprintf(to, size, "%llu MiB", (unsigned long long)(bytes >> 20));
    return to;
}
