/* SPDX-License-Identifier: MIT */
/* migrate.c - the copy of a file of an older version, and the steps to this version. */
#include "queue/sqlite/migrate.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "queue/files/fault.h"
#include "queue/files/filesystem.h"
#include "queue/files/save.h"

/* A change of GPQ_SCHEMA adds its step here, and raises GPQ_SCHEMA_VERSION. */
static const char *const steps[] = {
    /* 2: columns for views, which are not known of the tasks and attempts that are there. */
    "ALTER TABLE task ADD COLUMN ready INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE attempt ADD COLUMN ready INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE attempt ADD COLUMN said TEXT;",
    /* 3: not known of the tasks that have ended. */
    "ALTER TABLE batch ADD COLUMN last_end INTEGER NOT NULL DEFAULT 0;",
};
_Static_assert(sizeof(steps) / sizeof(steps[0]) == GPQ_SCHEMA_VERSION - 1, "a step to each");

const struct gpq_migration gpq_migration = { GPQ_SCHEMA_VERSION, steps };

/* ---- The copy ---- */

/* The steps may write as much again into the log beside the file. */
static int check_space(struct gpq_db *db, const char *directory, int from, struct gpq_error *e)
{
    int64_t pages = 0, page = 0;
    struct gpq_space space;
    int code = gpq_db_number(db, "PRAGMA page_count", &pages, e);
    if (code == 0)
        code = gpq_db_number(db, "PRAGMA page_size", &page, e);
    if (code < 0)
        return code;
    if (gpq_space_look(directory, &space) < 0)
        return 0; /* the copy will find out */
    uint64_t need = 2 * (uint64_t)pages * (uint64_t)page;
    if (space.bytes >= need)
        return 0;
    return gpq_fail(e, GPQ_EFULL,
                    "queue.db has version %d, and its migration needs %llu bytes for a copy; %llu "
                    "are free in %.200s: make space, or use the agent of before",
                    from, (unsigned long long)need, (unsigned long long)space.bytes, directory);
}

static int copy_pages(struct gpq_db *db, const char *vfs, const char *path)
{
    sqlite3 *copy = NULL;
    int result = sqlite3_open_v2(path, &copy,
                                 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                                     SQLITE_OPEN_NOFOLLOW,
                                 vfs);
    sqlite3_backup *backup =
        result == SQLITE_OK ? sqlite3_backup_init(copy, "main", db->file, "main") : NULL;
    if (backup) {
        result = sqlite3_backup_step(backup, -1);
        int ended = sqlite3_backup_finish(backup);
        result = result == SQLITE_DONE ? ended : result;
    } else if (result == SQLITE_OK) {
        result = sqlite3_errcode(copy);
    }
    int closed = sqlite3_close(copy);
    return result == SQLITE_OK ? closed : result;
}

static const char *vfs_of(struct gpq_db *db)
{
    sqlite3_vfs *vfs = NULL;
    (void)sqlite3_file_control(db->file, "main", SQLITE_FCNTL_VFS_POINTER, &vfs);
    return vfs ? vfs->zName : NULL;
}

/* A copy of the same version that is there is older, and goes. */
static int make_copy(struct gpq_db *db, const char *directory, int from, char path[GPQ_PATH],
                     struct gpq_error *e)
{
    char unfinished[GPQ_PATH];
    int ret = gpq_path(path, "%s/queue.db.v%d", directory, from);
    if (ret == 0)
        ret = gpq_path(unfinished, "%s.tmp", path);
    if (ret < 0)
        return gpq_fault(e, ret, "%s", directory);
    (void)unlink(unfinished); /* of a copy that was cut off */
    int result = copy_pages(db, vfs_of(db), unfinished);
    if (result != SQLITE_OK) {
        int code = (result & 0xff) == SQLITE_FULL    ? GPQ_EFULL
                   : (result & 0xff) == SQLITE_NOMEM ? GPQ_ENOMEM
                                                     : GPQ_EIO;
        (void)unlink(unfinished);
        return gpq_fail(e, code, "%.300s: the copy before the migration: %s (SQLite %d)", path,
                        sqlite3_errstr(result), result);
    }
    ret = gpq_sync_file(&gpq_system_files, unfinished);
    if (ret == 0 && rename(unfinished, path) < 0)
        ret = -errno;
    if (ret == 0)
        ret = gpq_sync_directory(&gpq_system_files, directory);
    return ret < 0 ? gpq_fault(e, ret, "%.300s", path) : 0;
}

/* ---- The steps ---- */

static int take_steps(struct gpq_db *db, const struct gpq_migration *m, int from,
                      struct gpq_error *e)
{
    char version[64];
    snprintf(version, sizeof(version), "PRAGMA user_version = %d", m->version);
    int code = gpq_db_execute(db, "BEGIN IMMEDIATE", e);
    for (int i = from; code == 0 && i < m->version; i++)
        code = gpq_db_execute(db, m->step[i - 1], e);
    if (code == 0)
        code = gpq_db_execute(db, version, e);
    if (code == 0)
        code = gpq_db_execute(db, "COMMIT", e);
    if (code < 0)
        (void)sqlite3_exec(db->file, "ROLLBACK", NULL, NULL, NULL);
    return code;
}

int gpq_migrate(struct gpq_db *db, const char *directory, const struct gpq_migration *m, int from,
                struct gpq_error *e)
{
    struct gpq_error why = { 0 };
    char path[GPQ_PATH];
    int code = check_space(db, directory, from, e);
    if (code == 0)
        code = make_copy(db, directory, from, path, e);
    if (code < 0)
        return code;
    code = take_steps(db, m, from, &why);
    if (code < 0)
        return gpq_fail(
            e, code,
            "queue.db stays at version %d: the step to version %d: %.200s; %.150s is a copy", from,
            m->version, why.text, path);
    return 0;
}
