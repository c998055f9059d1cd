/* SPDX-License-Identifier: MIT */
#include "os/headroom.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* what host and workers may need beside payload until they are asked again */
#define RESERVE ((uint64_t)16 << 20)

/* The number in a file such as memory.max; `none` when it is "max" or cannot be read. */
static uint64_t file_number(const char *dir, const char *name, uint64_t none)
{
    char path[4352], text[64];
    FILE *f;
    char *end;
    uint64_t v;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "re");
    if (!f)
        return none;
    if (!fgets(text, sizeof text, f))
        text[0] = '\0';
    fclose(f);
    v = strtoull(text, &end, 10);
    return end == text ? none : v;
}

/* File pages that nobody has used lately count as used, but the kernel takes them back on demand.
 */
static uint64_t cold_cache(const char *dir)
{
    char path[4352], line[128];
    unsigned long long v = 0;
    bool all = false; /* version 1 also tells of the cgroups below */
    FILE *f;

    snprintf(path, sizeof path, "%s/memory.stat", dir);
    f = fopen(path, "re");
    while (f && !all && fgets(line, sizeof line, f))
        if (sscanf(line, "total_inactive_file %llu", &v) == 1)
            all = true;
        else
            (void)sscanf(line, "inactive_file %llu", &v);
    if (f)
        fclose(f);
    return v;
}

static uint64_t left(uint64_t limit, uint64_t used)
{
    return used < limit ? limit - used : 0;
}

/* Walks from the process's cgroup up to the root and takes the tightest. */
static uint64_t cgroup_left(const char *root, char *path, const char *max, const char *now)
{
    uint64_t least = UINT64_MAX;

    for (;;) {
        char dir[4200];
        char *slash;
        snprintf(dir, sizeof dir, "%s%s", root, path);
        uint64_t limit = file_number(dir, max, UINT64_MAX);
        if (limit < UINT64_MAX / 2) {
            uint64_t used = file_number(dir, now, 0), cache = cold_cache(dir);
            uint64_t room = left(limit, used > cache ? used - cache : 0);
            least = room < least ? room : least;
        }
        slash = strrchr(path, '/');
        if (!slash || path[0] == '\0')
            return least;
        *slash = '\0';
    }
}

static uint64_t cgroups_left(void)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    uint64_t least = UINT64_MAX;
    char line[4096];

    while (f && fgets(line, sizeof line, f)) {
        char *path = strchr(line, '/');
        uint64_t room = UINT64_MAX;
        if (!path)
            continue;
        path[strcspn(path, "\n")] = '\0';
        if (!strncmp(line, "0::", 3))
            room = cgroup_left("/sys/fs/cgroup", path, "memory.max", "memory.current");
        else if (strstr(line, ":memory:"))
            room = cgroup_left("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes",
                               "memory.usage_in_bytes");
        least = room < least ? room : least;
    }
    if (f)
        fclose(f);
    return least;
}

static uint64_t machine_left(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[128];
    unsigned long long kib = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib ? (uint64_t)kib * 1024 : 1ull << 30; /* without /proc: guess small */
}

uint64_t gpi_headroom(void)
{
    uint64_t a = machine_left(), b = cgroups_left();

    return a < b ? a : b;
}

bool gpi_headroom_for(uint64_t size)
{
    uint64_t room = gpi_headroom();

    return room > RESERVE && size <= room - RESERVE;
}
