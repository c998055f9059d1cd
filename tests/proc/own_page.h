/* SPDX-License-Identifier: MIT */
/* own_page.h - how a worker that lies finds the memory it shares with the host. */
#ifndef T_OWN_PAGE_H
#define T_OWN_PAGE_H

#include "harness.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "wire/page.h" /* what only a liar knows */

static inline uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline struct gpi_page *own_page(void)
{
    FILE *in = fopen("/proc/self/maps", "re");
    struct gpi_page *page = NULL;
    char line[512];

    while (in && !page && fgets(line, sizeof(line), in)) {
        uint64_t from, offset;
        if (strstr(line, "memfd:gpud-page") &&
            sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64, &from, &offset) == 2)
            page = (void *)(uintptr_t)(from - offset); /* NOLINT(performance-no-int-to-ptr) */
    }
    if (in)
        (void)fclose(in);
    return page;
}

/* The worker's end of a pipe of the library: O_RDONLY hears bells, O_WRONLY rings them. */
static inline int own_pipe(int mode)
{
    struct stat s;

    for (int fd = 3; fd < 65536; fd++)
        if (!fstat(fd, &s) && S_ISFIFO(s.st_mode) && (fcntl(fd, F_GETFL) & O_ACCMODE) == mode)
            return fd;
    abort();
}

#endif
