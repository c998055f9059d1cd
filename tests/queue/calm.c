/* SPDX-License-Identifier: MIT */
/* calm.c - the VFS of the system, whose syncs do nothing. */
#include "calm.h"

#include <sqlite3.h>

#include "harness.h"

static sqlite3_vfs calm;
/* Of files that are locked, and of the others: the system has two sets. */
static sqlite3_io_methods of_database, of_others;
static int (*system_open)(sqlite3_vfs *, const char *, sqlite3_file *, int, int *);
static int (*system_delete)(sqlite3_vfs *, const char *, int);

static int calm_sync(sqlite3_file *file, int flags)
{
    (void)file;
    (void)flags;
    return SQLITE_OK;
}

static int calm_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    int result = system_open(vfs, name, file, flags, ret_flags);

    if (result == SQLITE_OK) {
        sqlite3_io_methods *methods = flags & SQLITE_OPEN_MAIN_DB ? &of_database : &of_others;

        *methods = *file->pMethods;
        methods->xSync = calm_sync;
        file->pMethods = methods;
    }
    return result;
}

static int calm_delete(sqlite3_vfs *vfs, const char *name, int sync_directory)
{
    (void)sync_directory;
    return system_delete(vfs, name, 0);
}

const char *calm_vfs(void)
{
    if (!calm.zName) {
        T_EQ(sqlite3_initialize(), SQLITE_OK);
        calm = *sqlite3_vfs_find(NULL);
        system_open = calm.xOpen;
        system_delete = calm.xDelete;
        calm.zName = "calm";
        calm.pNext = NULL;
        calm.xOpen = calm_open;
        calm.xDelete = calm_delete;
        T_EQ(sqlite3_vfs_register(&calm, 0), SQLITE_OK);
    }
    return calm.zName;
}
