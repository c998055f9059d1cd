/* SPDX-License-Identifier: MIT */
/*
 * open.c - opens the file of a store, and its transactions.
 *
 * The settings are those of SQLite's own advice for data that must survive a power cut: each
 * commit syncs a write-ahead log (FULL), one connection holds the file (EXCLUSIVE), and the file is
 * not mapped, since a failed read of a mapping would be a signal.  One connection is a rule of
 * safety, too: in SQLite up to 3.51.2 two connections that restart the log at once can lose it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue/sqlite/counts.h"
#include "queue/sqlite/migrate.h"
#include "queue/sqlite/ops.h"
#include "queue/sqlite/row.h"

#define FILE_NAME "queue.db"
#define DEFAULT_INLINE 65536u

/* These change nothing in the file; the last one reads it, and takes its lock. */
static const char reading[] = "PRAGMA locking_mode = EXCLUSIVE;"
                              "PRAGMA mmap_size = 0;"
                              "PRAGMA temp_store = MEMORY;"
                              "PRAGMA cache_size = -8192;"
                              "PRAGMA trusted_schema = OFF;"
                              "PRAGMA cell_size_check = ON;"
                              "SELECT count(*) FROM sqlite_schema;";

static void close_store(struct gpq_store *s)
{
    struct gpq_db *db = gpq_db_of(s);
    for (int i = 0; i < GPQ_SQLS; i++)
        sqlite3_finalize(db->statement[i]);
    sqlite3_close(db->file);
    gpq_counts_free(db);
    gpq_rows_free(db);
    free(db->store.changes);
    free(db->chore);
    free(db);
}

static int begin(struct gpq_store *s, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    if (db->inside)
        return gpq_fail(e, GPQ_EINVAL, "store: a transaction has begun already");
    int code = gpq_db_enter(db, false, e);
    if (code < 0)
        return code;
    gpq_counts_trim(db);
    db->store.n_changes = 0;
    db->store.notes = false;
    code = gpq_db_run(db, gpq_db_use(db, GPQ_SQL_BEGIN), e);
    db->inside = code == 0;
    return code;
}

static void rollback(struct gpq_store *s)
{
    struct gpq_db *db = gpq_db_of(s);
    if (!db->inside)
        return;
    db->failed = 0;
    if (!sqlite3_get_autocommit(db->file) && /* a failure may have rolled back already */
        gpq_db_run(db, gpq_db_use(db, GPQ_SQL_ROLLBACK), NULL) < 0)
        db->broken = db->failed;
    gpq_counts_drop(db);
    gpq_rows_drop(db);
    db->order = db->kept_order;
    db->low = db->kept_low;
    db->failed = db->broken;
    db->store.n_changes = 0;
    db->store.notes = false;
    db->n_chores = 0;
    db->inside = false;
    if (db->failed == 0)
        gpq_counters_read(db, NULL); /* part of them may have been written */
}

/* Commits to a file without its name succeed, and nobody will ever find them. */
static int check_name(struct gpq_db *db, struct gpq_error *e)
{
    int moved = 0;
    if (sqlite3_file_control(db->file, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK ||
        moved == 0)
        return 0;
    snprintf(db->why, sizeof(db->why),
             "store: " FILE_NAME " was removed, or another file has its name: the state "
             "directory must stay while the agent runs");
    db->failed = db->broken = GPQ_EIO;
    return gpq_fail(e, GPQ_EIO, "%s", db->why);
}

static int commit(struct gpq_store *s, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = gpq_db_enter(db, true, e);
    if (code == 0)
        code = gpq_counts_write(db, e);
    if (code == 0)
        code = gpq_db_run(db, gpq_db_use(db, GPQ_SQL_COMMIT), e);
    if (code < 0) {
        rollback(s);
        return code;
    }
    db->inside = false;
    return check_name(db, e);
}

static const struct gpq_engine engine = {
    .name = "sqlite",
    .close = close_store,
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
#define OP(op) .op = gpq_sqlite_##op,
    GPQ_SQLITE_OPS(OP)
#undef OP
};

/* Tables and version arrive in one transaction. */
static int make(struct gpq_db *db, struct gpq_error *e)
{
    char version[128];
    snprintf(version, sizeof(version), "PRAGMA application_id = %d; PRAGMA user_version = %d;",
             GPQ_APPLICATION_ID, GPQ_SCHEMA_VERSION);
    int code = gpq_db_execute(db, "BEGIN IMMEDIATE", e);
    if (code == 0)
        code = gpq_db_execute(db, GPQ_SCHEMA, e);
    if (code == 0)
        code = gpq_db_execute(db, version, e);
    return code == 0 ? gpq_db_execute(db, "COMMIT", e) : code;
}

/* The version of the file; 0: it is new. */
static int read_version(struct gpq_db *db, int newest, int64_t *ret, struct gpq_error *e)
{
    int64_t id = 0, tables = 0;
    int code = gpq_db_number(db, "PRAGMA application_id", &id, e);
    if (code == 0)
        code = gpq_db_number(db, "PRAGMA user_version", ret, e);
    if (code == 0)
        code = gpq_db_number(db, "SELECT count(*) FROM sqlite_schema", &tables, e);
    if (code < 0 || (id == 0 && *ret == 0 && tables == 0))
        return code;
    if (id != GPQ_APPLICATION_ID)
        return gpq_fail(e, GPQ_EDAMAGED,
                        "%s is a file of another program (application_id %lld): move it away",
                        FILE_NAME, (long long)id);
    if (*ret > newest)
        return gpq_fail(e, GPQ_EVERSION,
                        "%s has version %lld, this program knows up to %d: use a newer one",
                        FILE_NAME, (long long)*ret, newest);
    if (*ret < 1)
        return gpq_fail(e, GPQ_EDAMAGED, "%s has version %lld, expected 1 to %d", FILE_NAME,
                        (long long)*ret, newest);
    return 0;
}

/* A new file is made, and an older one migrated.  A check does neither. */
static int bring_up(struct gpq_db *db, const struct gpq_options *options, int64_t version,
                    struct gpq_error *e)
{
    const struct gpq_migration *m = options->migration ? options->migration : &gpq_migration;
    int code = 0;
    if (!options->only_check)
        code = gpq_db_write(db, e);
    else if (version < m->version)
        code = gpq_fail(e, version == 0 ? GPQ_ENOTFOUND : GPQ_EVERSION,
                        version == 0 ? "%s is empty: the next agent makes it"
                                     : "%s has version %lld, expected %d: the next agent "
                                       "migrates it",
                        FILE_NAME, (long long)version, m->version);
    if (code == 0 && version == 0)
        code = make(db, e);
    if (code == 0 && version != 0 && version < m->version)
        code = gpq_migrate(db, options->directory, m, (int)version, e);
    return code;
}

static int open_version(struct gpq_db *db, const struct gpq_options *options, struct gpq_error *e)
{
    const struct gpq_migration *m = options->migration ? options->migration : &gpq_migration;
    int64_t version = 0;
    int code = read_version(db, m->version, &version, e);
    return code == 0 ? bring_up(db, options, version, e) : code;
}

/* The journal of a change without a log beside the file, as programs other than the agent make:
 * the first read would take the change back, and write. */
static bool is_cut_off(const char *path)
{
    char journal[4096 + 16];
    snprintf(journal, sizeof(journal), "%s-journal", path);
    return access(journal, F_OK) == 0;
}

/* Changes that a killed agent has left in the log beside the file: the first read would write. */
static bool has_log(const char *path)
{
    char log[4096 + 16];
    struct stat st;
    snprintf(log, sizeof(log), "%s-wal", path);
    return stat(log, &st) == 0 && st.st_size > 0;
}

/* The path as a URI of a file that nobody changes: it is read without locks and without a log. */
static void write_uri(const char *path, char ret[3 * 4096 + 32])
{
    size_t used = (size_t)sprintf(ret, "file:");
    for (; *path; path++)
        used += (size_t)sprintf(ret + used, strchr("%?#", *path) ? "%%%02x" : "%c",
                                (unsigned char)*path);
    (void)sprintf(ret + used, "?immutable=1");
}

/* Until gpq_db_write nothing is written, not even by the checkpoint of the last close. */
static int open_file(struct gpq_db *db, const struct gpq_options *options, struct gpq_error *e)
{
    const int make = options->only_check ? 0 : SQLITE_OPEN_CREATE;
    char path[4096], uri[3 * 4096 + 32];
    int n = snprintf(path, sizeof(path), "%s/" FILE_NAME, options->directory);
    if (n < 0 || (size_t)n >= sizeof(path))
        return gpq_fail(e, GPQ_EINVAL,
                        "the path of the state directory has %d bytes, the maximum "
                        "is %zu",
                        n, sizeof(path) - sizeof(FILE_NAME) - 1);
    if (options->only_check && is_cut_off(path))
        return gpq_fail(e, GPQ_EUNUSABLE,
                        "%.300s-journal: another program was cut off while it changed the file; "
                        "start an agent, which takes that back, and check again",
                        path);
    if (options->read_only && has_log(path))
        return gpq_fail(e, GPQ_EUNUSABLE,
                        "%.300s-wal has changes of an agent that was killed, and the directory "
                        "cannot be written: copy it, and use --state-dir with the copy",
                        path);
    write_uri(path, uri);
    int result = sqlite3_open_v2(
        options->read_only ? uri : path, &db->file,
        SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | make |
            (options->read_only ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE),
        options->vfs);
    if (result == SQLITE_OK) {
        sqlite3_extended_result_codes(db->file, 1);
        sqlite3_db_config(db->file, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        if (options->only_check)
            result = sqlite3_exec(db->file, "PRAGMA query_only = ON", NULL, NULL, NULL);
    }
    if (result == SQLITE_OK)
        result = sqlite3_exec(db->file, reading, NULL, NULL, NULL);
    if ((result & 0xff) == SQLITE_BUSY)
        return gpq_fail(e, GPQ_EBUSY, "%s: another process has it open", path);
    if (result == SQLITE_OK)
        return 0;
    int number = sqlite3_system_errno(db->file);
    if (options->only_check && number == ENOENT)
        return gpq_fail(e, GPQ_ENOTFOUND, "%s: there is none", path);
    int code = gpq_db_fail(db, result, NULL);
    return gpq_fail(e, code, "%s: %s%s%s (SQLite %d)", path, sqlite3_errmsg(db->file),
                    number != 0 ? ": " : "", number != 0 ? strerror(number) : "", result);
}

int gpq_sqlite_open(const struct gpq_options *options, struct gpq_store **ret, struct gpq_error *e)
{
    struct gpq_db *db = calloc(1, sizeof(*db));
    if (!db)
        return gpq_fail(e, GPQ_ENOMEM, "store: no memory");
    db->store.engine = &engine;
    db->results_inline = options->results_inline != 0 ? options->results_inline : DEFAULT_INLINE;
    int code = open_file(db, options, e);
    if (code == 0)
        code = open_version(db, options, e);
    if (code == 0 && !options->only_check)
        code = gpq_counters_read(db, e);
    if (code == 0 && !gpq_db_use(db, GPQ_SQL_ROLLBACK)) /* now: it must work without memory */
        code = gpq_db_fail(db, SQLITE_NOMEM, e);
    if (code < 0) {
        close_store(&db->store);
        return code;
    }
    *ret = &db->store;
    return 0;
}
