/* SPDX-License-Identifier: MIT */
#include "os/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fds.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* 5.1 */
#endif

#define PIECE (16ull << 20)

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
        return gpi_refused(GPI_SYS_FTRUNCATE);
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return gpi_refused(GPI_SYS_FCNTL);
    return 0;
}

int gpi_memory_create(const char *name, uint64_t size)
{
    int fd;

    if (size > gpi_memory_file_limit()) {
        errno = EFBIG;
        return -1;
    }
    fd = gpi_fd_made(GPI_SYS_MEMFD_CREATE, memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd >= 0 && seal(fd, size))
        gpi_fd_close(&fd);
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
    return gpi_fd_made(GPI_SYS_FCNTL, ro);
}

/* What is mapped is mostly never used. A host that has said mlockall(MCL_FUTURE) would get all of
 * it put into memory at once: so it is mapped without access, unlocked, and only then opened. */
static void *map_sparse(uint64_t size, int access, int flags, int fd)
{
    void *p = mmap(NULL, (size_t)size, PROT_NONE, flags | MAP_NORESERVE, fd, 0);

    if (p == MAP_FAILED) {
        (void)gpi_refused(GPI_SYS_MMAP);
        return NULL;
    }
    (void)munlock(p, (size_t)size);
    if (mprotect(p, (size_t)size, access) == 0)
        return p;
    (void)gpi_refused(GPI_SYS_MPROTECT);
    int err = errno;
    munmap(p, (size_t)size);
    errno = err;
    return NULL;
}

/* Asks for all pages now, so that what is missing is an answer and not a SIGBUS.  In pieces: a
 * signal makes the call give back what it had. */
static int take_pages(int fd, uint64_t size)
{
    for (uint64_t at = 0; at < size; at += PIECE) {
        uint64_t n = size - at < PIECE ? size - at : PIECE;
        int r;
        do
            r = fallocate(fd, 0, (off_t)at, (off_t)n);
        while (r && errno == EINTR);
        if (r)
            return gpi_refused(GPI_SYS_FALLOCATE);
    }
    return 0;
}

/* What is left to do once there is an fd. */
static int publish(int fd, uint64_t size, void **ret_map)
{
    void *map;
    int ro = -1, err;

    if (ftruncate(fd, (off_t)size))
        return gpi_refused(GPI_SYS_FTRUNCATE);
    if (take_pages(fd, size))
        return -1;
    map = gpi_memory_map(fd, size, true);
    if (!map)
        return -1;
    gpi_memory_populate(map, size);
    if (madvise(map, (size_t)size, MADV_DONTFORK))
        (void)gpi_refused(GPI_SYS_MADVISE);
    else if (fcntl(fd, F_ADD_SEALS,
                   F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL))
        (void)gpi_refused(GPI_SYS_FCNTL);
    else
        ro = gpi_memory_readonly(fd);
    if (ro >= 0) {
        *ret_map = map;
        return ro;
    }
    err = errno;
    gpi_memory_unmap(map, size);
    errno = err;
    return -1;
}

int gpi_memory_publish(const char *name, uint64_t size, void **ret_map)
{
    int fd, ro;

    if (size > gpi_memory_file_limit() || size > INT64_MAX - PIECE) {
        errno = EFBIG;
        return -1;
    }
    fd = gpi_fd_made(GPI_SYS_MEMFD_CREATE, memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd < 0)
        return -1;
    ro = publish(fd, size, ret_map);
    gpi_fd_close(&fd);
    return ro;
}

bool gpi_memory_same(int a, int b)
{
    struct stat x, y;

    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

void *gpi_memory_map(int fd, uint64_t size, bool writable)
{
    return map_sparse(size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd);
}

void gpi_memory_unmap(void *base, uint64_t size)
{
    if (base)
        munmap(base, (size_t)size);
}

void gpi_memory_populate(void *at, uint64_t size)
{
    /* 5.14; before, the copy faults them in */
    (void)madvise(at, (size_t)size, MADV_POPULATE_WRITE);
}

void gpi_memory_punch(int fd, uint64_t off, uint64_t size)
{
    (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)size);
}

uint64_t gpi_memory_taken(int fd)
{
    struct stat st;

    return fstat(fd, &st) ? 0 : (uint64_t)st.st_blocks * 512;
}

void *gpi_memory_private(uint64_t size)
{
    return map_sparse(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

void gpi_memory_not_inherited(void *at, uint64_t size)
{
    (void)madvise(at, (size_t)size, MADV_DONTFORK);
}

void gpi_memory_protect(void *at, uint64_t size)
{
    (void)mprotect(at, (size_t)size, PROT_READ);
}

void *gpi_memory_wipeonfork(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    /* at each worker's birth: one call */
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        (void)gpi_refused(GPI_SYS_MMAP);
        return NULL;
    }
    if (madvise(p, size, MADV_WIPEONFORK)) {
        int err = errno;
        (void)gpi_refused(GPI_SYS_MADVISE);
        munmap(p, size);
        errno = err;
        return NULL;
    }
    return p;
}

uint64_t gpi_memory_resident(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long long pages = 0;

    if (f && fscanf(f, "%*u %llu", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
