/* SPDX-License-Identifier: MIT */
#include "os/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "os/fds.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

uint64_t gpi_memory_file_limit(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return r.rlim_cur;
}

static int seal(int fd, uint64_t size)
{
    if (ftruncate(fd, (off_t)size))
        return -1;
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

int gpi_memory_create(const char *name, uint64_t size)
{
    int fd;

    if (size > gpi_memory_file_limit()) {
        errno = EFBIG;
        return -1;
    }
    fd = gpi_fd_lift(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd < 0)
        return -1;
    if (seal(fd, size)) {
        int err = errno;
        close(fd);
        errno = err;
        return -1;
    }
    return fd;
}

int gpi_memory_readonly(int fd)
{
    char path[64];
    int ro;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ro = open(path, O_RDONLY | O_CLOEXEC);
    if (ro < 0)
        ro = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return gpi_fd_lift(ro);
}

void *gpi_memory_map(int fd, uint64_t size, bool writable)
{
    void *p = mmap(NULL, (size_t)size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);

    return p == MAP_FAILED ? NULL : p;
}

void gpi_memory_unmap(void *base, uint64_t size)
{
    if (base)
        munmap(base, (size_t)size);
}

void gpi_memory_populate(void *at, uint64_t size)
{
    (void)madvise(at, (size_t)size, MADV_POPULATE_WRITE); /* 5.14; before, the copy faults them in */
}

void *gpi_memory_private(uint64_t size)
{
    void *p = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

void gpi_memory_protect(void *at, uint64_t size)
{
    (void)mprotect(at, (size_t)size, PROT_READ);
}

void *gpi_memory_wipeonfork(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *p = gpi_memory_private(size);

    if (p && madvise(p, size, MADV_WIPEONFORK)) {
        int err = errno;
        munmap(p, size);
        errno = err;
        return NULL;
    }
    return p;
}

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
            uint64_t room = left(limit, file_number(dir, now, 0));
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
            room = cgroup_left("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes");
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

uint64_t gpi_memory_headroom(void)
{
    uint64_t a = machine_left(), b = cgroups_left();

    return a < b ? a : b;
}
