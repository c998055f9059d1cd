/* SPDX-License-Identifier: MIT */
/* diskvfs.c - a VFS of SQLite over a disk in memory. */
#include "diskvfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "draw.h"
#include "harness.h"

enum { PATH = 256, SECTOR = 512 };

struct file {
    sqlite3_file base;
    struct disk *disk;
    int fd, lock, flags;
    bool sync_directory; /* with its next sync */
    bool sync_later;     /* before the next write to the database (DISKVFS_NORMAL) */
    bool sync_header;    /* a WAL begins anew, and its old frames must not count any more */
    bool delete_on_close;
    char path[PATH];
    struct file *next; /* of those that are open */
};

/* SQLite keeps a pointer to the VFS, so there is one of it in the process. */
static struct {
    struct disk *disk;
    uint64_t seed;
    enum diskvfs_syncs syncs;
    bool padded;
    unsigned temporary; /* number of the last temporary file */
    struct file *open;
} state;

static int code_of(int error, int otherwise)
{
    return error == ENOSPC ? SQLITE_FULL : otherwise;
}

static int sync_directory_of(struct disk *d, const char *path)
{
    char directory[PATH];
    char *slash;
    int fd, rc;

    (void)snprintf(directory, sizeof(directory), "%s", path);
    slash = strrchr(directory, '/');
    T_CHECK(slash);
    slash[slash == directory] = '\0';
    fd = disk_open(d, directory, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return SQLITE_CANTOPEN;
    rc = disk_sync(d, fd) == 0 ? SQLITE_OK : SQLITE_IOERR_DIR_FSYNC;
    (void)disk_close(d, fd);
    return rc;
}

/* ---- Files ---- */

static int file_close(sqlite3_file *base)
{
    struct file *f = (struct file *)base, **p = &state.open;

    while (*p != f)
        p = &(*p)->next;
    *p = f->next;
    (void)disk_close(f->disk, f->fd);
    if (f->delete_on_close)
        (void)disk_unlink(f->disk, f->path);
    return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *data, int size, sqlite3_int64 offset)
{
    struct file *f = (struct file *)base;
    ssize_t n = disk_read_at(f->disk, f->fd, data, (size_t)size, (size_t)offset);

    if (n < 0)
        return SQLITE_IOERR_READ;
    if (n == size)
        return SQLITE_OK;
    memset((char *)data + n, 0, (size_t)(size - n));
    return SQLITE_IOERR_SHORT_READ;
}

/* Does the sync of a WAL that its commits have left out: a checkpoint begins. */
static int sync_wals(void)
{
    for (struct file *f = state.open; f; f = f->next) {
        if (!f->sync_later)
            continue;
        if (disk_sync(f->disk, f->fd) != 0)
            return SQLITE_IOERR_FSYNC;
        f->sync_later = false;
    }
    return SQLITE_OK;
}

static int file_write(sqlite3_file *base, const void *data, int size, sqlite3_int64 offset)
{
    struct file *f = (struct file *)base;
    size_t done = 0;
    int rc = f->flags & SQLITE_OPEN_MAIN_DB ? sync_wals() : SQLITE_OK;

    if ((f->flags & SQLITE_OPEN_WAL) && offset == 0)
        f->sync_header = true;
    while (rc == SQLITE_OK && done < (size_t)size) {
        ssize_t n = disk_write_at(f->disk, f->fd, (const char *)data + done, (size_t)size - done,
                                  (size_t)offset + done);
        if (n < 0)
            rc = code_of(errno, SQLITE_IOERR_WRITE);
        else
            done += (size_t)n;
    }
    return rc;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct file *f = (struct file *)base;

    return disk_truncate(f->disk, f->fd, (size_t)size) == 0 ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

static int file_sync(sqlite3_file *base, int flags)
{
    struct file *f = (struct file *)base;

    (void)flags;
    if (state.syncs == DISKVFS_OFF)
        return SQLITE_OK;
    if (state.syncs == DISKVFS_NORMAL && (f->flags & SQLITE_OPEN_WAL) && !f->sync_header) {
        f->sync_later = true;
        return SQLITE_OK;
    }
    if (disk_sync(f->disk, f->fd) != 0)
        return SQLITE_IOERR_FSYNC;
    f->sync_header = f->sync_later = false;
    if (!f->sync_directory)
        return SQLITE_OK;
    f->sync_directory = false;
    return sync_directory_of(f->disk, f->path);
}

static int file_size(sqlite3_file *base, sqlite3_int64 *ret)
{
    struct file *f = (struct file *)base;

    *ret = (sqlite3_int64)disk_size(f->disk, f->fd);
    return SQLITE_OK;
}

/* Another connection has at least this lock on the same file. */
static bool others_have(const struct file *f, int lock)
{
    for (const struct file *other = state.open; other; other = other->next)
        if (other != f && other->disk == f->disk && other->lock >= lock &&
            disk_identity(f->disk, other->fd) == disk_identity(f->disk, f->fd))
            return true;
    return false;
}

static int file_lock(sqlite3_file *base, int lock)
{
    struct file *f = (struct file *)base;
    int forbids = lock == SQLITE_LOCK_SHARED     ? SQLITE_LOCK_PENDING
                  : lock == SQLITE_LOCK_RESERVED ? SQLITE_LOCK_RESERVED
                                                 : SQLITE_LOCK_SHARED;

    if (f->lock >= lock)
        return SQLITE_OK;
    if (disk_dead(f->disk))
        return SQLITE_IOERR_LOCK;
    if (others_have(f, forbids))
        return SQLITE_BUSY;
    f->lock = lock;
    return SQLITE_OK;
}

static int file_unlock(sqlite3_file *base, int lock)
{
    ((struct file *)base)->lock = lock;
    return SQLITE_OK;
}

static int file_reserved(sqlite3_file *base, int *ret)
{
    const struct file *f = (const struct file *)base;

    *ret = f->lock >= SQLITE_LOCK_RESERVED || others_have(f, SQLITE_LOCK_RESERVED);
    return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int what, void *argument)
{
    (void)base;
    (void)what;
    (void)argument;
    return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *base)
{
    (void)base;
    return SECTOR;
}

static int file_characteristics(sqlite3_file *base)
{
    (void)base;
    return state.padded ? 0 : SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_characteristics,
};

/* ---- The VFS ---- */

static int posix_flags(int flags)
{
    return (flags & SQLITE_OPEN_READWRITE ? O_RDWR : O_RDONLY) |
           (flags & SQLITE_OPEN_CREATE ? O_CREAT : 0) |
           (flags & SQLITE_OPEN_EXCLUSIVE ? O_EXCL : 0);
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags,
                    int *ret_flags)
{
    const int journals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL;
    struct file *f = (struct file *)base;

    (void)vfs;
    memset(f, 0, sizeof(*f));
    f->disk = state.disk;
    f->flags = flags;
    f->delete_on_close = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
    f->sync_directory = (flags & SQLITE_OPEN_CREATE) && (flags & journals);
    if (name)
        (void)snprintf(f->path, sizeof(f->path), "%s", name);
    else
        (void)snprintf(f->path, sizeof(f->path), "/temporary-%u", ++state.temporary);
    f->fd = disk_open(f->disk, f->path, posix_flags(flags));
    if (f->fd < 0)
        return code_of(errno, SQLITE_CANTOPEN);
    f->base.pMethods = &methods;
    f->next = state.open;
    state.open = f;
    if (ret_flags)
        *ret_flags = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_directory)
{
    (void)vfs;
    if (disk_unlink(state.disk, name) != 0)
        return errno == ENOENT ? SQLITE_IOERR_DELETE_NOENT : SQLITE_IOERR_DELETE;
    if (!sync_directory || state.syncs == DISKVFS_OFF)
        return SQLITE_OK;
    return sync_directory_of(state.disk, name);
}

/* As in the VFS "unix", an empty file does not exist. */
static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    size_t size = 0;
    int what = disk_look(state.disk, name, &size);

    (void)vfs;
    if (what < 0 && errno != ENOENT)
        return SQLITE_IOERR_ACCESS;
    *ret = what == 1 || (what == 0 && (flags != SQLITE_ACCESS_EXISTS || size > 0));
    return SQLITE_OK;
}

static int vfs_path(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
    (void)vfs;
    return snprintf(ret, (size_t)size, "%s%s", name[0] == '/' ? "" : "/", name) < size
               ? SQLITE_OK
               : SQLITE_CANTOPEN;
}

static int vfs_randomness(sqlite3_vfs *vfs, int size, char *ret)
{
    (void)vfs;
    for (int i = 0; i < size; i++)
        ret[i] = (char)draw(&state.seed);
    return size;
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us;
}

static int vfs_time(sqlite3_vfs *vfs, double *ret)
{
    (void)vfs;
    *ret = 2460000.5; /* a Julian day in 2023 */
    return SQLITE_OK;
}

static sqlite3_vfs vfs = {
    .iVersion = 1,
    .szOsFile = sizeof(struct file),
    .mxPathname = PATH,
    .zName = "disk",
    .xOpen = vfs_open,
    .xDelete = vfs_delete,
    .xAccess = vfs_access,
    .xFullPathname = vfs_path,
    .xRandomness = vfs_randomness,
    .xSleep = vfs_sleep,
    .xCurrentTime = vfs_time,
};

const char *diskvfs_use(struct disk *d, uint64_t seed, enum diskvfs_syncs syncs)
{
    T_CHECK(!state.open);
    state.disk = d;
    state.seed = seed;
    state.syncs = syncs;
    T_EQ(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
    sqlite3_randomness(0, NULL); /* SQLite seeds its generator anew, from the default VFS */
    return vfs.zName;
}

void diskvfs_pad(bool padded)
{
    state.padded = padded;
}

void diskvfs_remove(void)
{
    T_CHECK(!state.open);
    T_EQ(sqlite3_vfs_unregister(&vfs), SQLITE_OK);
}
