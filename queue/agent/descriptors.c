/* SPDX-License-Identifier: MIT */
/* descriptors.c - RLIMIT_NOFILE. */
#include "queue/agent/descriptors.h"

#include <sys/resource.h>

uint64_t gpq_descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    uint64_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    return before;
}

void gpq_descriptors_restore(uint64_t soft)
{
    struct rlimit limit;
    if (soft == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = (rlim_t)soft;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}
