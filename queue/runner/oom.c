/* SPDX-License-Identifier: MIT */
/* oom.c - reads the events of a cgroup. */
#include "queue/runner/oom.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"

/* ---- Texts ---- */

uint64_t gpq_oom_count(const char *events)
{
    static const char key[] = "oom_kill ";

    for (const char *line = events; *line; line += strcspn(line, "\n"), line += *line != 0) {
        if (strncmp(line, key, sizeof(key) - 1))
            continue;
        uint64_t n = 0;
        const char *at = line + sizeof(key) - 1, *digits = at;
        for (; *at >= '0' && *at <= '9' && n < UINT64_MAX / 10 - 1; at++)
            n = 10 * n + (uint64_t)(*at - '0');
        return at != digits && (*at == '\n' || !*at) ? n : GPQ_OOM_UNKNOWN;
    }
    return GPQ_OOM_UNKNOWN;
}

/* Whether the list of controllers, up to its colon, has "memory". */
static bool has_memory(const char *list)
{
    static const char name[] = "memory";
    const size_t n = sizeof(name) - 1;

    while (strncmp(list, name, n) || (list[n] != ',' && list[n] != ':')) {
        list += strcspn(list, ",:\n");
        if (*list++ != ',')
            return false;
    }
    return true;
}

/* A line is "ID:CONTROLLERS:PATH", and that of version 2 is "0::PATH". */
bool gpq_oom_path(const char *cgroups, char *ret, size_t room)
{
    const char *two = NULL, *one = NULL;

    for (const char *line = cgroups; *line; line += strcspn(line, "\n"), line += *line != 0) {
        const char *list = line + strspn(line, "0123456789");
        if (*list != ':')
            continue;
        if (!strncmp(line, "0::", 3))
            two = line + 3;
        else if (has_memory(list + 1))
            one = strchr(list + 1, ':') + 1;
    }
    if (!one && !two)
        return false;
    /* Where version 1 has the memory, version 2 has no events of it. */
    const char *path = one ? one : two;
    size_t size = strcspn(path, "\n");
    if (*path != '/')
        return false;
    size -= path[size - 1] == '/';
    int n = snprintf(ret, room, "%s%.*s%s", one ? ROOT "/memory" : ROOT, (int)size, path,
                     one ? "/memory.oom_control" : "/memory.events");
    return n > 0 && (size_t)n < room;
}

/* ---- Files ---- */

static bool read_file(const char *path, char *ret, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, ret, room - 1) : -1;

    if (fd >= 0)
        (void)close(fd);
    ret[n > 0 ? n : 0] = 0;
    return n > 0;
}

uint64_t gpq_oom_kills(void)
{
    char text[4096], path[4096];
    bool known = read_file("/proc/self/cgroup", text, sizeof(text)) &&
                 gpq_oom_path(text, path, sizeof(path));

#ifdef GPQ_TEST_POINTS
    if (getenv("GPQ_TEST_EVENTS")) { /* absolute */
        known = true;
        (void)snprintf(path, sizeof(path), "%s", getenv("GPQ_TEST_EVENTS"));
    }
#endif
    return known && read_file(path, text, sizeof(text)) ? gpq_oom_count(text) : GPQ_OOM_UNKNOWN;
}
