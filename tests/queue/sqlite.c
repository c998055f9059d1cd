/* SPDX-License-Identifier: MIT */
/* sqlite.c - the file of a store: who may open it, and what its statements cost. */
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue/sqlite/db.h"
#include "queue/sqlite/join.h"

enum { SECOND = 1000000000 };

static struct gpq_store *opened(void)
{
    struct gpq_store *s = NULL;
    struct gpq_error e = { 0 };
    if (gpq_sqlite_open(&(struct gpq_options){ .directory = "." }, &s, &e) != 0)
        T_FAIL("%s", e.text);
    return s;
}

static void refused(int code, const char *text)
{
    struct gpq_store *s = NULL;
    struct gpq_error e = { 0 };
    T_EQ(gpq_sqlite_open(&(struct gpq_options){ .directory = "." }, &s, &e), code);
    T_EQ(e.code, code);
    T_CHECK(s == NULL);
    if (!strstr(e.text, text))
        T_FAIL("\"%s\" is not in \"%s\"", text, e.text);
}

static void run(const char *sql)
{
    sqlite3 *file = NULL;
    T_EQ(sqlite3_open("queue.db", &file), SQLITE_OK);
    T_EQ(sqlite3_exec(file, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(file);
}

T_PROGRAM(opens)
{
    (void)argc;
    (void)argv;
    struct gpq_store *s = NULL;
    struct gpq_error e = { 0 };
    return gpq_sqlite_open(&(struct gpq_options){ .directory = "." }, &s, &e) == GPQ_EBUSY ? 0 : 1;
}

/* One process owns the file. */
T_CASE(second_owner)
{
    struct gpq_store *s = opened();
    int status = -1;
    pid_t other = t_program_start("opens", "", NULL);
    T_EQ(waitpid(other, &status, 0), other);
    T_EQ(status, 0);
    s->engine->close(s);
    s = opened();
    s->engine->close(s);
}

T_CASE(newer_version)
{
    struct gpq_store *s = opened();
    s->engine->close(s);
    run("PRAGMA user_version = 99");
    refused(GPQ_EVERSION, "version 99");
    run("PRAGMA user_version = 0");
    refused(GPQ_EDAMAGED, "version 0");
}

T_CASE(file_of_another_program)
{
    run("CREATE TABLE mine(x)");
    refused(GPQ_EDAMAGED, "another program");
}

T_CASE(no_database_at_all)
{
    int fd = open("queue.db", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    char junk[8192];
    memset(junk, 'x', sizeof(junk));
    T_EQ(write(fd, junk, sizeof(junk)), sizeof(junk));
    close(fd);
    refused(GPQ_EDAMAGED, "not a database");
}

T_CASE(no_such_directory)
{
    struct gpq_store *s = NULL;
    struct gpq_error e = { 0 };
    T_EQ(gpq_sqlite_open(&(struct gpq_options){ .directory = "none" }, &s, &e), GPQ_EIO);
    T_CHECK(s == NULL);
}

/* A symbolic link could lead the owner of the directory anywhere. */
T_CASE(symbolic_link)
{
    struct gpq_store *s = opened();
    s->engine->close(s);
    T_EQ(rename("queue.db", "other.db"), 0);
    T_EQ(symlink("other.db", "queue.db"), 0);
    refused(GPQ_EIO, "queue.db");
}

/* A table that a bad disk has changed is noticed, and nothing is written to it. */
/* Q1: a file that was removed, or replaced, takes no commit any more. */
T_CASE(removed_file)
{
    for (int replaced = 0; replaced < 2; replaced++) {
        struct gpq_store *s = opened();
        struct gpq_mark mark = { "pause", "", NULL, 1 };
        struct gpq_error e = { 0 };
        for (int i = 0; i < 2; i++) {
            T_EQ(s->engine->begin(s, &e), 0);
            T_EQ(s->engine->mark(s, &mark, &e), 0);
            if (i == 1)
                T_EQ(rename("queue.db", "moved"), 0);
            if (i == 1 && replaced)
                T_EQ(close(open("queue.db", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
            T_EQ(s->engine->commit(s, &e), i == 1 ? GPQ_EIO : 0);
        }
        T_CHECK(strstr(e.text, "queue.db was removed, or another file has its name"));
        T_EQ(s->engine->begin(s, &e), GPQ_EIO);
        s->engine->close(s);
        T_EQ(access("queue.db", F_OK), replaced ? 0 : -1);
        (void)unlink("queue.db");
        (void)unlink("queue.db-wal");
    }
}

T_CASE(damaged_rows)
{
    struct gpq_store *s = opened();
    struct gpq_error e = { 0 };
    struct gpq_spec spec = { 0 };
    struct gpq_item item = { 0 };
    struct gpq_submit what = { .specs = &spec, .n_specs = 1, .items = &item, .n_items = 1 };
    struct gpq_submitted ret;
    T_EQ(s->engine->begin(s, &e), 0);
    T_EQ(s->engine->submit(s, SECOND, &what, &ret, NULL, &e), 0);
    T_EQ(s->engine->commit(s, &e), 0);
    s->engine->close(s);
    run("UPDATE task SET spec = 77");
    s = opened();
    T_EQ(s->engine->begin(s, &e), 0);
    T_EQ(s->engine->claim(s, SECOND, GPQ_TASK(1, 1), "", "", &e), 1);
    struct gpq_end end = {
        .task = GPQ_TASK(1, 1), .attempt = 1, .outcome = GPQ_OUTCOME_SUCCESS, .ended = SECOND
    };
    T_EQ(s->engine->complete(s, &end, &e), GPQ_EDAMAGED);
    T_EQ(s->engine->commit(s, &e), GPQ_EDAMAGED);
    T_EQ(s->engine->begin(s, &e), GPQ_EDAMAGED);
    s->engine->close(s);
}

T_CASE(calls_outside_a_transaction)
{
    struct gpq_store *s = opened();
    struct gpq_error e = { 0 };
    T_EQ(s->engine->claim(s, SECOND, 1, "", "", &e), GPQ_EINVAL);
    T_EQ(s->engine->commit(s, &e), GPQ_EINVAL);
    T_EQ(s->engine->begin(s, &e), 0);
    T_EQ(s->engine->begin(s, &e), GPQ_EINVAL);
    T_EQ(s->engine->commit(s, &e), 0);
    s->engine->rollback(s);
    s->engine->close(s);
}

static int deny_rollback_to(void *user, int action, const char *what, const char *name,
                            const char *database, const char *by)
{
    (void)user, (void)name, (void)database, (void)by;
    return action == SQLITE_SAVEPOINT && !strcmp(what, "ROLLBACK") ? SQLITE_DENY : SQLITE_OK;
}

/* A try whose changes cannot be taken back has failed, and so has its transaction. */
T_CASE(try_that_cannot_be_taken_back)
{
    struct gpq_store *s = opened();
    const struct gpq_spec spec = { 0 };
    const struct gpq_item item = { .content = { "a", 1 } };
    const struct gpq_submit what = {
        .specs = &spec, .n_specs = 1, .items = &item, .n_items = 1, .only_try = true
    };
    struct gpq_submitted ret;
    struct gpq_error e = { 0 };
    T_EQ(s->engine->begin(s, &e), 0);
    T_EQ(sqlite3_set_authorizer(((struct gpq_db *)s)->file, deny_rollback_to, NULL), SQLITE_OK);
    int code = s->engine->submit(s, SECOND, &what, &ret, NULL, &e);
    T_CMP(code, <, 0);
    T_EQ(e.code, code);
    T_CMP(s->engine->commit(s, &e), <, 0);
    s->engine->close(s);
}

/* ---- Q6: bytes, not hashes ---- */

struct line {
    uint64_t hash;
    char text[24];
};

static int by_hash(const void *left, const void *right)
{
    const struct line *a = left, *b = right;
    return (a->hash > b->hash) - (a->hash < b->hash);
}

/* Finds two lines whose hashes are equal; returns the first of both in `lines`. */
static const struct line *two_alike(struct line *lines, size_t n, const struct gpq_spec *spec)
{
    for (size_t i = 0; i < n; i++) {
        unsigned seed = (unsigned)i * 2654435761U;
        int size = snprintf(lines[i].text, sizeof(lines[i].text), "%u train.py", seed);
        struct gpq_item item = { .content = { lines[i].text, (size_t)size } };
        lines[i].hash = gpq_join_hash("list", spec, &item);
    }
    qsort(lines, n, sizeof(*lines), by_hash);
    for (size_t i = 1; i < n; i++)
        if (lines[i].hash == lines[i - 1].hash)
            return &lines[i - 1];
    return NULL;
}

/* Q6: two lines with equal hashes are two tasks, and each joins its own. */
T_CASE(lines_with_one_hash)
{
    enum { LINES = 400000 };
    struct gpq_store *s = opened();
    struct gpq_error e = { 0 };
    struct gpq_spec spec = { .content = { "cwd", 3 } };
    struct line *lines = calloc(LINES, sizeof(*lines));
    T_CHECK(lines != NULL);
    const struct line *two = two_alike(lines, LINES, &spec);
    if (!two)
        T_FAIL("none of %d lines have equal hashes: take more", LINES);
    struct gpq_item items[2] = { { .content = { two[0].text, strlen(two[0].text) } },
                                 { .content = { two[1].text, strlen(two[1].text) } } };
    struct gpq_submit what = {
        .name = "list", .join = true, .specs = &spec, .n_specs = 1, .items = items, .n_items = 2
    };
    struct gpq_submitted ret;
    struct gpq_placed placed[2];
    T_EQ(s->engine->begin(s, &e), 0);
    T_EQ(s->engine->submit(s, SECOND, &what, &ret, NULL, &e), 0);
    T_EQ(ret.count[GPQ_PLACED_ADDED], 2);
    T_EQ(s->engine->submit(s, SECOND, &what, &ret, placed, &e), 0);
    T_EQ(ret.count[GPQ_PLACED_JOINED], 2);
    T_EQ(placed[0].task, GPQ_TASK(1, 1));
    T_EQ(placed[1].task, GPQ_TASK(1, 2));
    T_EQ(s->engine->commit(s, &e), 0);
    free(lines);
    s->engine->close(s);
}

/* ---- Q11: what statements cost ---- */

static const struct {
    const char *name, *text;
} statements[] = {
#define GPQ_X_SQL(name, text) { #name, text },
    GPQ_SQL_MAP(GPQ_X_SQL)
#undef GPQ_X_SQL
};

/* Readers of everything, and purge: no other statement may go through a table. */
static bool may_scan(const char *name)
{
    static const char *const all[] = { "BATCHES_OVER",    "SHAPES",           "MARKS",
                                       "SPANS",           "ATTEMPTS_RUNNING", "TASK_NEXT_DUE",
                                       "TASK_NEXT_EXPIRY", "RESULT_FILES" };
    for (size_t i = 0; i < T_LENGTH(all); i++)
        if (strcmp(all[i], name) == 0)
            return true;
    return false;
}

/* Q11: every statement finds its rows by an index, and none sorts but readers of everything. */
T_CASE(no_statement_scans)
{
    struct gpq_store *s = opened();
    sqlite3 *file = ((struct gpq_db *)s)->file;
    int looked_at = 0;
    for (size_t i = 0; i < T_LENGTH(statements); i++) {
        char text[2048];
        snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", statements[i].text);
        sqlite3_stmt *st = NULL;
        if (sqlite3_prepare_v2(file, text, -1, &st, NULL) != SQLITE_OK)
            T_FAIL("%s: %s", statements[i].name, sqlite3_errmsg(file));
        while (sqlite3_step(st) == SQLITE_ROW) {
            const char *step = (const char *)sqlite3_column_text(st, 3);
            bool bad = strncmp(step, "SCAN", 4) == 0 && !strstr(step, "CONSTANT ROW") &&
                       !strstr(step, "(subquery"); /* of one row */
            bad = bad || strstr(step, "TEMP B-TREE");
            if (bad && !may_scan(statements[i].name))
                T_FAIL("%s: %s", statements[i].name, step);
            looked_at++;
        }
        sqlite3_finalize(st);
    }
    T_CMP(looked_at, >, 40);
    s->engine->close(s);
}

/* Steps of SQLite's machine in all statements so far. */
static int64_t steps(struct gpq_store *s)
{
    struct gpq_db *db = (struct gpq_db *)s;
    int64_t sum = 0;
    for (int i = 0; i < GPQ_SQLS; i++)
        if (db->statement[i])
            sum += sqlite3_stmt_status(db->statement[i], SQLITE_STMTSTATUS_VM_STEP, 0);
    return sum;
}

static uint32_t submit(struct gpq_store *s, uint32_t n, const char *shape, bool held)
{
    static struct gpq_item items[100000];
    struct gpq_spec spec = { .shape = { shape, strlen(shape) }, .held = held };
    struct gpq_submit what = {
        .name = "many", .specs = &spec, .n_specs = 1, .items = items, .n_items = n
    };
    struct gpq_submitted ret;
    struct gpq_error e = { 0 };
    T_CHECK(n <= T_LENGTH(items));
    T_EQ(s->engine->begin(s, &e), 0);
    T_EQ(s->engine->submit(s, SECOND, &what, &ret, NULL, &e), 0);
    T_EQ(s->engine->commit(s, &e), 0);
    return ret.batch;
}

struct cost {
    int64_t submit, claim, complete;
};

static struct cost measured(struct gpq_store *s)
{
    struct gpq_error e = { 0 };
    struct cost c;
    submit(s, 1, "gpus=1", false); /* what is prepared once */
    int64_t before = steps(s);
    uint64_t task = GPQ_TASK(submit(s, 1, "gpus=1", false), 1);
    c.submit = steps(s) - before;
    for (int twice = 0; twice < 2; twice++) {
        T_EQ(s->engine->begin(s, &e), 0);
        before = steps(s);
        T_EQ(s->engine->claim(s, SECOND, task, "0", "run", &e), 1);
        T_EQ(s->engine->commit(s, &e), 0);
        c.claim = steps(s) - before;
        T_EQ(s->engine->begin(s, &e), 0);
        before = steps(s);
        struct gpq_end end = { .task = task,
                               .attempt = 1,
                               .outcome = GPQ_OUTCOME_SUCCESS,
                               .ended = SECOND,
                               .result = { "yes", 3 } };
        T_EQ(s->engine->complete(s, &end, &e), 1);
        T_EQ(s->engine->commit(s, &e), 0);
        c.complete = steps(s) - before;
        task = GPQ_TASK(submit(s, 1, "gpus=1", false), 1);
    }
    return c;
}

/* Q11: submit, claim and complete cost the same beside 100,000 blocked and 100,000 ready tasks. */
T_LONG_CASE(cost_does_not_grow, 120)
{
    struct gpq_store *s = opened();
    struct cost alone = measured(s);
    uint32_t n = (uint32_t)t_rounds(100000, 20000);
    submit(s, n, "gpus=1", true);
    submit(s, n, "gpus=8", false);
    struct cost beside = measured(s);
    T_CMP(beside.submit, <=, alone.submit + 4);
    T_CMP(beside.claim, <=, alone.claim + 4);
    T_CMP(beside.complete, <=, alone.complete + 4);
    T_CMP(alone.claim, >, 20);
    s->engine->close(s);
}

/* Q11: a purge in parts reads the tasks that it forgets, and not the 20,000 behind them. */
T_CASE(a_purge_in_parts_reads_parts)
{
    struct gpq_store *s = opened();
    struct gpq_error e = { 0 };
    submit(s, 20000, "gpus=1", true);
    T_EQ(s->engine->begin(s, &e), 0);
    T_EQ(s->engine->cancel(s, SECOND, &(struct gpq_select){ .batch = 1 }, &e), 20000);
    T_EQ(s->engine->commit(s, &e), 0);
    for (int part = 0; part < 3; part++) {
        int64_t before = steps(s);
        T_EQ(s->engine->begin(s, &e), 0);
        T_EQ(s->engine->purge(s, 2 * (uint64_t)SECOND, false, 10, NULL, &e), 10);
        T_EQ(s->engine->commit(s, &e), 0);
        T_CMP(steps(s) - before, <, 20000);
    }
    s->engine->close(s);
}
