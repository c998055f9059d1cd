/* SPDX-License-Identifier: MIT */
/* statedir.c - makes the state directory, and checks that it is fit for a queue. */
#include "queue/files/statedir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "queue/files/fault.h"
#include "queue/files/filesystem.h"
#include "queue/files/lock.h"
#include "queue/files/save.h"

#define ANOTHER GPQ_ANOTHER_STATEDIR

const char *const gpq_folders[] = { "results", "work", "out", "run", "logs", NULL };

/* ---- Owner and mode ---- */

/* Fills *e with a failed call on a directory.  The disk may be full; else nothing can be done about
 * it here. */
static int call_failed(struct gpq_error *e, const char *what, const char *path, const char *call)
{
    int code = gpq_code_of_errno(errno);

    return gpq_fail(e, code == GPQ_EFULL || code == GPQ_EIO ? code : GPQ_EUNUSABLE,
                    "%s %.280s: %s: %m; " ANOTHER, what, path, call);
}

static int check_directory(const char *path, const char *what, bool writes, struct gpq_error *e)
{
    struct stat st;

    if (lstat(path, &st)) {
        if (errno == ENOENT)
            return gpq_fail(e, GPQ_ENOTFOUND, "%s %.280s: not there", what, path);
        return call_failed(e, what, path, "lstat");
    }
    if (S_ISLNK(st.st_mode))
        return gpq_fail(e, GPQ_EUNUSABLE,
                        "%s %.280s: a symbolic link, expected a directory; name its target", what,
                        path);
    if (!S_ISDIR(st.st_mode))
        return gpq_fail(e, GPQ_EUNUSABLE, "%s %.280s: not a directory; " ANOTHER, what, path);
    if (st.st_uid != geteuid())
        return gpq_fail(e, GPQ_EUNUSABLE, "%s %.280s: owner is uid %u, expected %u; " ANOTHER, what,
                        path, (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & 077)
        return gpq_fail(e, GPQ_EUNUSABLE,
                        "%s %.200s: mode is %04o, expected 0700; chmod 700 %.200s", what, path,
                        (unsigned)st.st_mode & 07777, path);
    if (access(path, X_OK | (writes ? W_OK : 0)))
        return call_failed(e, what, path, writes ? "write" : "search");
    return 0;
}

/* Makes the name durable, where the directory above may be read. */
static int sync_above(const char *path)
{
    char above[GPQ_PATH];
    const char *slash = strrchr(path, '/');
    int ret = gpq_path(above, "%.*s", slash > path ? (int)(slash - path) : 1, path);

    if (!ret)
        ret = gpq_sync_directory(&gpq_system_files, above);
    /* A parent that is a link, or that only its owner reads, stays as it is. */
    return ret == -EACCES || ret == -ENOTDIR || ret == -ELOOP ? 0 : ret;
}

static int make_directory(const char *path, const char *what, struct gpq_error *e)
{
    if (mkdir(path, 0700))
        return errno == EEXIST ? 0 : call_failed(e, what, path, "mkdir");
    errno = -sync_above(path);
    return errno ? call_failed(e, what, path, "sync") : 0;
}

int gpq_private_directory(const char *path, const char *what, struct gpq_error *e)
{
    int ret = make_directory(path, what, e);
    return ret ? ret : check_directory(path, what, true, e);
}

/* ---- The whole ---- */

/* Makes the directories above. */
static int make_above(const char *path, struct gpq_error *e)
{
    char above[GPQ_PATH];
    size_t length = strlen(path);
    struct stat st;

    for (size_t i = 1; i < length; i++) {
        if (path[i] != '/' || path[i - 1] == '/')
            continue;
        memcpy(above, path, i);
        above[i] = 0;
        /* mkdir of one that is there may fail with EROFS or EACCES before EEXIST. */
        if (stat(above, &st) && make_directory(above, "directory", e))
            return e->code;
    }
    return 0;
}

/* Copies the path without slashes at its end, which lstat would follow. */
static int trim(const char *path, char ret[GPQ_PATH], struct gpq_error *e)
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/')
        length--;
    if (!length || length >= GPQ_PATH - 64) /* room for the names in it */
        return gpq_fail(e, GPQ_EUNUSABLE,
                        "state directory: its path has %zu bytes, at most %d; " ANOTHER, length,
                        GPQ_PATH - 65);
    memcpy(ret, path, length);
    ret[length] = 0;
    return 0;
}

static int find_real(const char *path, char real[GPQ_PATH], struct gpq_error *e)
{
    char *found = realpath(path, NULL);
    int ret = found ? gpq_path(real, "%s", found) : -errno;

    free(found);
    errno = -ret;
    return ret ? call_failed(e, "state directory", path, "realpath") : 0;
}

int gpq_statedir_check(const char *path, char real[GPQ_PATH], struct gpq_error *e)
{
    char clean[GPQ_PATH];
    int ret = trim(path, clean, e);

    if (!ret)
        ret = check_directory(clean, "state directory", false, e);
    return ret ? ret : find_real(clean, real, e);
}

static int check_filesystem(const char *path, bool allow_network, struct gpq_error *e)
{
    const char *network;

    errno = -gpq_filesystem_look(path, &network);
    if (errno)
        return call_failed(e, "state directory", path, "statfs");
    if (network && !allow_network)
        return gpq_fail(e, GPQ_EUNUSABLE,
                        "state directory %.280s: on %s, expected a local file system; " ANOTHER
                        ", or use --allow-network-fs",
                        path, network);
    return 0;
}

int gpq_statedir_make(const char *path, bool allow_network, char real[GPQ_PATH],
                      struct gpq_error *e)
{
    char clean[GPQ_PATH], folder[GPQ_PATH];
    int ret = trim(path, clean, e);

    if (!ret)
        ret = make_above(clean, e);
    if (!ret)
        ret = gpq_private_directory(clean, "state directory", e);
    if (!ret)
        ret = check_filesystem(clean, allow_network, e);
    if (!ret)
        ret = find_real(clean, real, e);
    for (size_t i = 0; !ret && gpq_folders[i]; i++) {
        ret = gpq_path(folder, "%s/%s", real, gpq_folders[i]);
        ret = ret ? gpq_fault(e, ret, "%s", real) : gpq_private_directory(folder, "folder", e);
    }
    return ret;
}

/* A killed agent may have a child that has not executed its program yet, and has the lock until
 * then: the call waits for a second. */
int gpq_statedir_own(const char *real, int *ret_lock, struct gpq_error *e)
{
    const struct timespec pause = { .tv_nsec = 10000000 };
    char path[GPQ_PATH];
    int ret = gpq_path(path, "%s/lock", real);

    if (!ret)
        ret = gpq_lock_take(path, ret_lock);
    for (int i = 0; i < 100 && ret == -EBUSY; i++) {
        (void)nanosleep(&pause, NULL);
        ret = gpq_lock_take(path, ret_lock);
    }
    if (ret == -EBUSY)
        return gpq_fail(e, GPQ_EBUSY, "%.300s: another agent owns it", real);
    return ret ? gpq_fail(e, GPQ_EIO, "%.300s: lock: %s", real, strerror(-ret)) : 0;
}
