/* SPDX-License-Identifier: MIT */
/*
 * diskvfs_test.c - SQLite alone over the simulated disk: with every sync no commit is lost, and
 * with fewer syncs the disk takes some.
 */
#include "harness.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "disk.h"
#include "diskvfs.h"
#include "draw.h"

enum { COMMITS = 12, ROWS = 6 };

struct harm {
    unsigned cuts, lost, torn, damaged;
};

/* Opens the file.  Returns NULL if that fails, as it does when the power is cut. */
static sqlite3 *open_file(void)
{
    sqlite3 *db = NULL;

    if (sqlite3_open_v2("/q.db", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "disk") ==
            SQLITE_OK &&
        sqlite3_exec(db,
                     "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL;"
                     "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=20;"
                     "CREATE TABLE IF NOT EXISTS t"
                     "(id INTEGER PRIMARY KEY, turn INTEGER, text TEXT);",
                     NULL, NULL, NULL) == SQLITE_OK)
        return db;
    (void)sqlite3_close(db);
    return NULL;
}

/* Inserts ROWS rows and changes older ones.  Returns true if the commit was acknowledged. */
static bool commit(sqlite3 *db, unsigned turn, uint64_t *seed)
{
    char sql[400];

    (void)snprintf(sql, sizeof(sql),
                   "BEGIN; WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE "
                   "i < %d) INSERT INTO t(turn, text) SELECT %u, printf('%%.*c', %u, 'x') FROM n;"
                   "UPDATE t SET text = text || 'y' WHERE id %% 7 = %u; COMMIT;",
                   ROWS, turn, 20 + draw_below(seed, 800), draw_below(seed, 7));
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static int64_t number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s = NULL;
    int64_t value = -1;

    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        value = sqlite3_column_int64(s, 0);
    (void)sqlite3_finalize(s);
    return value;
}

static void judge(sqlite3 *db, unsigned acknowledged, struct harm *h)
{
    int64_t turns, rows;

    h->cuts++;
    if (!db || number(db, "SELECT count(*) FROM pragma_integrity_check WHERE "
                          "integrity_check <> 'ok'") != 0) {
        h->damaged++;
        return;
    }
    turns = number(db, "SELECT coalesce(max(turn), 0) FROM t");
    rows = number(db, "SELECT count(*) FROM t");
    if (turns < acknowledged)
        h->lost++;
    else if (rows != turns * ROWS || turns > acknowledged + 1)
        h->torn++;
}

/* Works until the power is cut, judges what is left, and works on with that, a few times. */
static void live(uint64_t s, enum diskvfs_syncs syncs, struct harm *h)
{
    struct disk *d = disk_make(s);
    uint64_t seed = s;
    unsigned turn = 0;

    diskvfs_pad(s % 4 == 0);
    for (unsigned cuts = 0; cuts < 4; cuts++) {
        struct disk *after;
        sqlite3 *db;
        struct harm before = *h;
        disk_cut_in(d, 1 + draw_below(&seed, 150),
                    draw_chance(&seed, 30) ? DISK_SYNC | DISK_SYNC_DIRECTORY : DISK_ANY);
        (void)diskvfs_use(d, draw(&seed), syncs);
        db = open_file();
        for (unsigned n = 0; db && n < COMMITS && commit(db, turn + 1, &seed); n++)
            turn++;
        (void)sqlite3_close(db);
        after = disk_cut(d, draw(&seed));
        disk_free(d);
        d = after;
        (void)diskvfs_use(d, draw(&seed), syncs);
        db = open_file();
        judge(db, turn, h);
        if (db)
            turn = (unsigned)number(db, "SELECT coalesce(max(turn), 0) FROM t");
        (void)sqlite3_close(db);
        if (h->lost + h->torn + h->damaged != before.lost + before.torn + before.damaged)
            break; /* what follows a loss says nothing */
    }
    disk_free(d);
}

static struct harm live_often(enum diskvfs_syncs syncs, uint64_t lives)
{
    struct harm h = { 0 };

    for (uint64_t s = 1; s <= lives; s++) {
        unsigned before = h.lost + h.torn + h.damaged;
        live(s, syncs, &h);
        if (syncs == DISKVFS_FULL && h.lost + h.torn + h.damaged != before)
            T_FAIL("seed %llu: lost %u, torn %u, damaged %u", (unsigned long long)s, h.lost, h.torn,
                   h.damaged);
    }
    diskvfs_remove();
    (void)printf("%u cuts: lost %u, torn %u, damaged %u\n", h.cuts, h.lost, h.torn, h.damaged);
    return h;
}

T_LONG_CASE(with_every_sync_no_commit_is_lost, 120)
{
    struct harm h = live_often(DISKVFS_FULL, t_rounds(1000, 400));

    T_EQ(h.lost + h.torn + h.damaged, 0);
    T_CMP(h.cuts, >=, t_rounds(1000, 400));
}

T_CASE(without_the_syncs_of_commits_some_are_lost)
{
    struct harm h = live_often(DISKVFS_NORMAL, t_rounds(300, 100));

    T_CMP(h.lost * 5, >, h.cuts);
    T_EQ(h.torn + h.damaged, 0);
}

T_CASE(without_syncs_commits_are_lost_and_files_damaged)
{
    struct harm h = live_often(DISKVFS_OFF, t_rounds(300, 100));

    T_CMP((h.lost + h.damaged) * 5, >, h.cuts);
    T_CMP(h.damaged, >, 0);
}

T_CASE(a_second_connection_is_locked_out)
{
    struct disk *d = disk_make(1);
    sqlite3 *db, *second;

    (void)diskvfs_use(d, 1, DISKVFS_FULL);
    db = open_file();
    T_CHECK(db);
    T_CHECK(!open_file());
    (void)sqlite3_close(db);
    second = open_file();
    T_CHECK(second);
    (void)sqlite3_close(second);
    diskvfs_remove();
    disk_free(d);
}

/* Each call of SQLite fails once, and then for ever: never a torn commit, and no acknowledged one
 * is lost once the disk works again. */
static void fail_each(uint32_t kinds, int error, bool forever)
{
    for (uint64_t nth = 1;; nth++) {
        struct disk *d = disk_make(nth);
        struct disk_fault fault = { kinds, nth, error, forever };
        struct harm h = { 0 };
        uint64_t seed = nth, met;
        unsigned turn = 0;
        sqlite3 *db;
        disk_fail(d, &fault);
        (void)diskvfs_use(d, nth, DISKVFS_FULL);
        db = open_file();
        while (db && turn < COMMITS && commit(db, turn + 1, &seed))
            turn++;
        (void)sqlite3_close(db);
        met = disk_failed(d);
        disk_fail(d, NULL);
        db = open_file();
        judge(db, turn, &h);
        if (h.lost + h.torn + h.damaged)
            T_FAIL("kinds %u, call %llu, error %d: lost %u, torn %u, damaged %u", kinds,
                   (unsigned long long)nth, error, h.lost, h.torn, h.damaged);
        (void)sqlite3_close(db);
        disk_free(d);
        if (met == 0)
            break;
    }
    diskvfs_remove();
}

T_CASE(each_call_fails)
{
    static const uint32_t kinds[] = { DISK_OPEN, DISK_WRITE, DISK_SYNC | DISK_SYNC_DIRECTORY };

    for (size_t i = 0; i < T_LENGTH(kinds); i++)
        for (int forever = 0; forever < 2; forever++) {
            fail_each(kinds[i], EIO, forever);
            if (kinds[i] == DISK_WRITE)
                fail_each(kinds[i], ENOSPC, forever);
        }
}
