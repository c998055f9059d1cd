/* SPDX-License-Identifier: MIT */
/*
 * migrate.c - the file of an older version becomes one of this version, whole or not at all, and a
 * copy of it stays.  A case for each earlier version takes a file of it to this version; the others
 * go on to two later versions, by steps of the test.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue/sqlite/migrate.h"
#include "schema_1.h"
#include "steps.h"

enum { NOW_VERSION = GPQ_SCHEMA_VERSION, NEWEST = NOW_VERSION + 2, TASKS = 60, SKIP = 77 };

static const char *const good[NEWEST - NOW_VERSION] = {
    "ALTER TABLE mark ADD COLUMN colour TEXT;"
    "CREATE TABLE more(task INTEGER PRIMARY KEY, x INTEGER NOT NULL) STRICT;",
    "INSERT INTO more SELECT id, state FROM task; UPDATE spec SET priority = priority + 1;",
};
static const char *const bad[NEWEST - NOW_VERSION] = {
    "UPDATE spec SET priority = priority + 1; CREATE TABLE more(x INTEGER) STRICT;",
    "INSERT INTO none_such VALUES(1);",
};

/* The program's own steps, and then those. */
static const char *all_good[NEWEST - 1], *all_bad[NEWEST - 1];
static const struct gpq_migration works = { NEWEST, all_good }, fails = { NEWEST, all_bad };

static void join_steps(void)
{
    for (int i = 0; i < NEWEST - 1; i++) {
        bool own = i < NOW_VERSION - 1;

        all_good[i] = own ? gpq_migration.step[i] : good[i - (NOW_VERSION - 1)];
        all_bad[i] = own ? gpq_migration.step[i] : bad[i - (NOW_VERSION - 1)];
    }
}

/* The copy of a file of the present version. */
#define TEXT_OF(version) #version
#define COPY_OF(version) "queue.db.v" TEXT_OF(version)
#define COPY COPY_OF(GPQ_SCHEMA_VERSION)

/* ---- A VFS that ends the process at a write, or has no space for the copy ---- */

static sqlite3_vfs vfs;
static sqlite3_io_methods plain[2], copies; /* of databases, and of others */
static int (*system_open)(sqlite3_vfs *, const char *, sqlite3_file *, int, int *);
static int (*system_write[3])(sqlite3_file *, const void *, int, sqlite3_int64);
static long writes_left = -1; /* -1: no end */
static bool full;

static int no_sync(sqlite3_file *file, int flags)
{
    (void)file;
    (void)flags;
    return SQLITE_OK;
}

static int write_to(int kind, sqlite3_file *file, const void *data, int size, sqlite3_int64 at)
{
    if (writes_left == 0) {
        (void)system_write[kind](file, data, size / 2, at);
        _exit(9);
    }
    writes_left -= writes_left > 0;
    return kind == 2 && full ? SQLITE_FULL : system_write[kind](file, data, size, at);
}

static int write_database(sqlite3_file *file, const void *data, int size, sqlite3_int64 at)
{
    return write_to(0, file, data, size, at);
}

static int write_other(sqlite3_file *file, const void *data, int size, sqlite3_int64 at)
{
    return write_to(1, file, data, size, at);
}

static int write_copy(sqlite3_file *file, const void *data, int size, sqlite3_int64 at)
{
    return write_to(2, file, data, size, at);
}

static int open_file(sqlite3_vfs *self, const char *name, sqlite3_file *file, int flags, int *ret)
{
    static int (*const write[])(sqlite3_file *, const void *, int,
                                sqlite3_int64) = { write_database, write_other, write_copy };
    int result = system_open(self, name, file, flags, ret);

    if (result == SQLITE_OK) {
        int kind = !(flags & SQLITE_OPEN_MAIN_DB) ? 1 : strstr(name, ".tmp") ? 2 : 0;
        sqlite3_io_methods *methods = kind == 2 ? &copies : &plain[kind];

        *methods = *file->pMethods;
        system_write[kind] = methods->xWrite;
        methods->xWrite = write[kind];
        methods->xSync = no_sync;
        file->pMethods = methods;
    }
    return result;
}

static const char *vfs_name(void)
{
    if (!vfs.zName) {
        T_EQ(sqlite3_initialize(), SQLITE_OK);
        vfs = *sqlite3_vfs_find(NULL);
        system_open = vfs.xOpen;
        vfs.xOpen = open_file;
        vfs.zName = "migrate";
        vfs.pNext = NULL;
        T_EQ(sqlite3_vfs_register(&vfs, 0), SQLITE_OK);
    }
    return vfs.zName;
}

/* ---- Stores ---- */

static struct gpq_error e;

static int try_open(const char *directory, const struct gpq_migration *m, struct gpq_store **ret)
{
    const struct gpq_options options = { .directory = directory,
                                         .vfs = vfs_name(),
                                         .migration = m };

    *ret = NULL;
    e = (struct gpq_error){ 0 };
    join_steps();
    return gpq_sqlite_open(&options, ret, &e);
}

static struct gpq_store *opened(const char *directory, const struct gpq_migration *m)
{
    struct gpq_store *s;

    if (try_open(directory, m, &s))
        T_FAIL("open: %s", e.text);
    return s;
}

__attribute__((format(printf, 1, 2))) static void expect_text(const char *format, ...)
{
    char part[128];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(part, sizeof(part), format, list);
    va_end(list);
    if (!strstr(e.text, part))
        T_FAIL("no \"%s\" in: %s", part, e.text);
}

/* A number that a statement returns of a file; -1: it fails. */
static int64_t number(const char *path, const char *sql)
{
    sqlite3 *file = NULL;
    sqlite3_stmt *st = NULL;
    int64_t n = -1;

    T_EQ(sqlite3_open_v2(path, &file, SQLITE_OPEN_READWRITE, vfs_name()), SQLITE_OK);
    if (sqlite3_prepare_v2(file, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
        n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(file);
    return n;
}

#define VERSION "PRAGMA user_version"
#define COUNT "SELECT count(*) FROM task"
#define PRIORITY "SELECT max(priority) FROM spec"

/* A closed store in a directory. */
static void make(const char *directory)
{
    char items[TASKS * 5] = "";
    size_t at = 0;
    struct gpq_store *s;

    (void)mkdir(directory, 0700);
    for (int i = 0; i < TASKS; i++)
        at += (size_t)snprintf(items + at, sizeof(items) - at, "%s%d", i ? " " : "", i);
    s = opened(directory, NULL);
    (void)SUBMIT(s, .name = "night", .items = items);
    T_EQ(run(s, GPQ_TASK(1, 2), GPQ_OUTCOME_SUCCESS), 1);
    s->engine->close(s);
}

static void expect_version(int version)
{
    T_EQ(number("queue.db", VERSION), version);
    T_EQ(number("queue.db", COUNT), TASKS);
    T_EQ(number("queue.db", PRIORITY), version == NEWEST);
    T_EQ(number("queue.db", "SELECT count(*) FROM more"), version == NEWEST ? TASKS : -1);
}

T_CASE(a_migration_keeps_all_and_a_copy)
{
    struct gpq_store *s;

    make(".");
    s = opened(".", &works);
    T_TEXT(shown(s, GPQ_TASK(1, 2)), "done ok");
    (void)SUBMIT(s, .name = "next", .items = "x");
    s->engine->close(s);
    T_EQ(number("queue.db", VERSION), NEWEST);
    T_EQ(number("queue.db", "SELECT count(*) FROM more"), TASKS);
    T_CHECK(access(COPY ".tmp", F_OK));
    T_EQ(number(COPY, VERSION), NOW_VERSION);
    T_EQ(number(COPY, COUNT), TASKS);
    T_EQ(number(COPY, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
    s = opened(".", &works); /* once is enough */
    s->engine->close(s);
    T_EQ(number("queue.db", PRIORITY), 1);
    /* The way back. */
    T_EQ(rename(COPY, "queue.db"), 0);
    s = opened(".", NULL);
    T_TEXT(shown(s, GPQ_TASK(1, 2)), "done ok");
    s->engine->close(s);
}

/* ---- From earlier versions ---- */

static void execute(sqlite3 *file, const char *sql)
{
    char *why = NULL;

    if (sqlite3_exec(file, sql, NULL, NULL, &why) != SQLITE_OK)
        T_FAIL("%s", why);
}

static void make_version(int version)
{
    char text[64];
    sqlite3 *file = NULL;

    T_EQ(sqlite3_open_v2("queue.db", &file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs_name()),
         SQLITE_OK);
    execute(file, T_SCHEMA_1 T_QUEUE_1 "PRAGMA application_id = 0x47505144;");
    for (int i = 1; i < version; i++)
        execute(file, gpq_migration.step[i - 1]);
    (void)snprintf(text, sizeof(text), VERSION " = %d", version);
    execute(file, text);
    sqlite3_close(file);
}

static int fail_at(const struct gpq_finding *f, void *user)
{
    (void)user;
    T_FAIL("%s: %s", f->place, f->text);
}

static void expect_whole(struct gpq_store *s)
{
    T_EQ(s->engine->check(s, NOW, false, fail_at, NULL, &e), 0);
}

static int add_outcome(const struct gpq_history *h, void *user)
{
    char *ret = user;
    size_t n = strlen(ret);

    (void)snprintf(ret + n, 128 - n, "%u.%u %s at %d; ", GPQ_NUMBER_OF(h->attempt.task),
                   h->attempt.number, gpq_outcome_text(h->attempt.outcome), (int)h->attempt.ready);
    return 0;
}

/* All that the queue had goes on, and of what the version did not keep nothing is known. */
static void goes_on_from(int version)
{
    char rows[128] = "", path[32];
    struct gpq_store *s;

    make_version(version);
    s = opened(".", NULL);
    expect_whole(s);
    (void)snprintf(path, sizeof(path), "queue.db.v%d", version);
    T_EQ(number(path, VERSION), version);
    T_TEXT(shown(s, GPQ_TASK(1, 1)), "done ok");
    T_TEXT(shown(s, GPQ_TASK(1, 2)), "running 1");
    T_TEXT(ready(s), "1.3 1.4");
    T_TEXT(rounds(s, GPQ_TASK(1, 4)), "1: error at attempt 1");
    T_TEXT(shown(s, GPQ_TASK(1, 5)), "held after");
    T_EQ(s->engine->history(s, 1, 0, 0, NULL, false, add_outcome, rows, &e), 0);
    T_TEXT(rows, "1.1 ok at 0; 2.1 ? at 0; 4.1 error at 0; ");
    T_EQ(end(s, GPQ_TASK(1, 2), GPQ_OUTCOME_SUCCESS, NOW), 1);
    T_EQ(task(s, GPQ_TASK(1, 5)).ready, NOW);
    for (uint32_t n = 3; n <= 5; n++)
        T_EQ(run(s, GPQ_TASK(1, n), GPQ_OUTCOME_SUCCESS), 1);
    T_EQ(batch(s, 1).ended, NOW);
    SUBMIT(s, .items = "y", .at = 700);
    T_EQ(task(s, GPQ_TASK(2, 1)).ready, 700);
    expect_whole(s);
    s->engine->close(s);
}

T_CASE(a_file_of_version_1_goes_on)
{
    goes_on_from(1);
}

T_CASE(a_file_of_version_2_goes_on)
{
    goes_on_from(2);
}

static void copy(const char *from, const char *to)
{
    char data[1 << 16];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t n;

    T_CHECK(in >= 0 && out >= 0);
    while ((n = read(in, data, sizeof(data))) > 0)
        T_EQ(write(out, data, (size_t)n), n);
    close(in);
    close(out);
}

static bool equal(const char *a, const char *b)
{
    char data[2][1 << 16];
    int fd[2] = { open(a, O_RDONLY | O_CLOEXEC), open(b, O_RDONLY | O_CLOEXEC) };
    ssize_t n[2];

    T_CHECK(fd[0] >= 0 && fd[1] >= 0);
    do
        for (int i = 0; i < 2; i++)
            n[i] = read(fd[i], data[i], sizeof(data[i]));
    while (n[0] == n[1] && n[0] > 0 && !memcmp(data[0], data[1], (size_t)n[0]));
    close(fd[0]);
    close(fd[1]);
    return n[0] == 0 && n[1] == 0;
}

/* An agent of before leaves a newer file as it is, with the log of a killed agent, too. */
T_CASE(a_newer_file_is_not_written)
{
    struct gpq_store *s, *other;

    make(".");
    s = opened(".", &works);
    (void)SUBMIT(s, .name = "next", .items = "x");
    T_EQ(mkdir("newer", 0700), 0);
    copy("queue.db", "newer/queue.db");
    copy("queue.db-wal", "newer/queue.db-wal");
    T_EQ(try_open("newer", NULL, &other), GPQ_EVERSION);
    expect_text("version %d, this program knows up to %d: use a newer one", NEWEST, NOW_VERSION);
    T_CHECK(equal("queue.db", "newer/queue.db"));
    T_CHECK(equal("queue.db-wal", "newer/queue.db-wal"));
    s->engine->close(s);
}

T_CASE(a_check_migrates_nothing)
{
    const struct gpq_options options = { .directory = ".",
                                         .only_check = true,
                                         .migration = &works };
    struct gpq_store *s = NULL;

    make(".");
    T_EQ(gpq_sqlite_open(&options, &s, &e), GPQ_EVERSION);
    expect_text("version %d, expected %d", NOW_VERSION, NEWEST);
    expect_version(NOW_VERSION);
    T_CHECK(access(COPY, F_OK));
}

T_CASE(a_step_that_fails_changes_nothing)
{
    struct gpq_store *s;

    make(".");
    T_CMP(try_open(".", &fails, &s), <, 0);
    expect_text("queue.db stays at version %d", NOW_VERSION);
    expect_text("none_such");
    expect_version(NOW_VERSION);
    s = opened(".", NULL);
    s->engine->close(s);
}

T_CASE(no_space_for_the_copy)
{
    struct gpq_store *s;

    make(".");
    full = true;
    T_EQ(try_open(".", &works, &s), GPQ_EFULL);
    expect_text("the copy before the migration");
    full = false;
    T_CHECK(access(COPY, F_OK) && access(COPY ".tmp", F_OK));
    expect_version(NOW_VERSION);
}

/* On a small file system; the space is looked at before a byte is written. */
T_CASE(too_little_space)
{
    int status;
    pid_t pid;

    T_EQ(mkdir("small", 0700), 0);
    (void)vfs_name();
    pid = fork();
    if (!pid) {
        struct gpq_store *s;

        if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) ||
            mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
            mount("none", "small", "tmpfs", 0, "mode=700,size=512k"))
            _exit(SKIP);
        make("small");
        int fd = open("small/junk", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        char junk[4096] = { 0 };
        struct stat st;

        T_EQ(stat("small/queue.db", &st), 0);
        for (off_t left = 512 * 1024 - st.st_size - st.st_size; left > 0; left -= 4096)
            T_EQ(write(fd, junk, sizeof(junk)), sizeof(junk));
        T_EQ(try_open("small", &works, &s), GPQ_EFULL);
        expect_text("needs");
        expect_text("make space, or use the agent of before");
        T_CHECK(access("small/" COPY, F_OK) && access("small/" COPY ".tmp", F_OK));
        _exit(0);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP)
        t_skip("this machine allows no mount namespace");
    T_EQ(status, 0);
}

/* The process is killed at one write after the other: the version is the old one or the new one,
 * each whole, and the copy is there before anything has changed. */
T_LONG_CASE(killed_at_any_write, 120)
{
    int status = 1, migrated = 0;

    (void)vfs_name();
    for (long at = 0; status; at++) {
        struct gpq_store *s;

        make(".");
        pid_t pid = fork();
        if (!pid) {
            writes_left = at;
            s = opened(".", &works);
            s->engine->close(s);
            _exit(0);
        }
        T_EQ(waitpid(pid, &status, 0), pid);
        T_CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 9 || !WEXITSTATUS(status)));
        int version = (int)number("queue.db", VERSION);
        expect_version(version);
        migrated += version == NEWEST;
        if (version == NEWEST)
            T_EQ(number(COPY, COUNT), TASKS);
        s = opened(".", &works); /* the next agent */
        s->engine->close(s);
        expect_version(NEWEST);
        T_EQ(number(COPY, COUNT), TASKS);
        T_CHECK(access(COPY ".tmp", F_OK));
        T_EQ(unlink("queue.db") || unlink(COPY), 0);
        T_CMP(at, <, 5000);
    }
    T_CMP(migrated, >, 1);
}
