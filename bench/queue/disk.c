/* SPDX-License-Identifier: MIT */
#include "disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../measure.h"
#include "../report.h"

#define SYNCS 50
#define LOG_PAGES 1100

/* Finds the type of the file system at a path: that of the longest mount point above it. */
static void find_kind(const char *path, char kind[32])
{
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    char line[4096], point[2048], type[32];
    size_t best = 0;

    (void)strcpy(kind, "?");
    while (mounts && fgets(line, sizeof line, mounts)) {
        const char *dash = strstr(line, " - ");
        size_t n;

        if (!dash || sscanf(line, "%*s %*s %*s %*s %2047s", point) != 1 ||
            sscanf(dash, " - %31s", type) != 1)
            continue;
        n = strcmp(point, "/") == 0 ? 0 : strlen(point);
        if (n + 1 < best || strncmp(path, point, n) != 0 || path[n] != '/')
            continue;
        best = n + 1;
        (void)strcpy(kind, type);
    }
    if (mounts)
        (void)fclose(mounts);
}

double bq_disk_sync(const struct bq_disk *d)
{
    static const char page[4096] = { 1 };
    char path[BQ_PATH];
    double took[SYNCS];
    int fd, n = 0;

    (void)snprintf(path, sizeof path, "%s/sync", d->folder);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (fd >= 0 && n < SYNCS) {
        const uint64_t begun = b_now();

        if (write(fd, page, sizeof page) != sizeof page || fdatasync(fd))
            break;
        took[n++] = (double)(b_now() - begun) / 1e3;
    }
    if (n < SYNCS)
        (void)b_complain("%s: a file cannot be written and synced: %s", path, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    (void)unlink(path);
    return n < SYNCS ? -1 : b_median(took, SYNCS);
}

int bq_disk_open(struct bq_disk *d, const char *base)
{
    char whole[PATH_MAX];

    if (!base)
        base = getenv("TMPDIR");
    if (!base || !*base)
        base = ".";
    if (!realpath(base, whole) ||
        snprintf(d->folder, sizeof d->folder, "%s/gpudispatch-queue-XXXXXX", whole) >=
            (int)sizeof d->folder ||
        !mkdtemp(d->folder))
        return b_complain("%s: no directory can be made there: %s", base, strerror(errno));
    find_kind(d->folder, d->kind);
    d->in_memory = strcmp(d->kind, "tmpfs") == 0 || strcmp(d->kind, "ramfs") == 0;
    return 0;
}

void bq_disk_close(struct bq_disk *d)
{
    bq_disk_remove(d->folder);
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    (void)s, (void)kind, (void)at;
    return remove(path);
}

void bq_disk_remove(const char *path)
{
    (void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int bq_disk_store(const struct bq_disk *d, const char *name, char *ret_path)
{
    (void)snprintf(ret_path, BQ_PATH, "%s/%s", d->folder, name);
    bq_disk_remove(ret_path);
    return mkdir(ret_path, 0700) ? b_complain("%s: %s", ret_path, strerror(errno)) : 0;
}

/* Calls fn with each file of a directory. */
static void each_file(const char *path, void (*fn)(int fd, const struct stat *s, void *user),
                      void *user)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    struct stat s;

    while (folder && (entry = readdir(folder))) {
        const int fd = openat(dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC);

        if (fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode))
            fn(fd, &s, user);
        if (fd >= 0)
            (void)close(fd);
    }
    if (folder)
        (void)closedir(folder);
}

static void forget_one(int fd, const struct stat *s, void *user)
{
    (void)s, (void)user;
    (void)fsync(fd);
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

void bq_disk_forget(const char *path)
{
    each_file(path, forget_one, NULL);
}

static void read_one(int fd, const struct stat *s, void *user)
{
    static char block[1 << 16];

    (void)s, (void)user;
    while (read(fd, block, sizeof block) > 0)
        ;
}

void bq_disk_read(const char *path)
{
    each_file(path, read_one, NULL);
}

static void add_bytes(int fd, const struct stat *s, void *user)
{
    (void)fd;
    *(uint64_t *)user += (uint64_t)s->st_size;
}

uint64_t bq_disk_bytes(const char *path)
{
    uint64_t bytes = 0;

    each_file(path, add_bytes, &bytes);
    return bytes;
}

int bq_disk_copy(const char *from, const char *to)
{
    const int in = open(from, O_RDONLY | O_CLOEXEC);
    const int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t n = in < 0 || out < 0 ? -1 : 1;

    while (n > 0)
        n = sendfile(out, in, NULL, 1 << 20);
    if (n == 0 && fsync(out))
        n = -1;
    if (in >= 0)
        (void)close(in);
    if (out >= 0)
        (void)close(out);
    return n < 0 ? b_complain("%s: copying %s: %s", to, from, strerror(errno)) : 0;
}

int bq_disk_log(const char *file)
{
    static const char page[4096];
    char path[BQ_PATH + 8];
    int fd, rc = 0;

    (void)snprintf(path, sizeof path, "%s-wal", file);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (int i = 0; i < LOG_PAGES && rc == 0; i++)
        rc = fd < 0 || write(fd, page, sizeof page) != sizeof page;
    if (rc || fsync(fd))
        rc = b_complain("%s: %s", path, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    return rc;
}
