/* SPDX-License-Identifier: MIT */
/*
 * check.c - a check finds nothing in a healthy store, finds and repairs each fault that is made,
 * and never writes a damaged file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "calm.h"
#include "draw.h"
#include "recount.h"
#include "steps.h"
#include "world.h"

enum { FILES = 1000, LATER = 5000, OPERATIONS = 4000, LONGEST = 200 };

/* ---- A store with some of everything ---- */

static void fill(struct gpq_store *s)
{
    const struct gpq_after first_ok = { GPQ_TASK(1, 1), GPQ_AFTER_OK };

    SUBMIT(s, .name = "night", .items = "a b c d e f"); /* batch 1 */
    SUBMIT(s, .name = "next", .items = "g h", .after = { { GPQ_TASK(1, 6), GPQ_AFTER_OK } });
    SUBMIT(s, .name = "last", .items = "i j", .after = { { GPQ_TASK(1, 0), GPQ_AFTER_ENDED } });
    SUBMIT(s, .name = "turns", .items = "k l m n", .at_once = 2, .shape = "gpus=2");
    SUBMIT(s, .name = "later", .items = "o p", .begin = LATER, .priority = 3);
    SUBMIT(s, .name = "held", .items = "q", .held = true, .request = "once");
    T_EQ(run(s, GPQ_TASK(1, 1), GPQ_OUTCOME_SUCCESS), 1);
    T_EQ(run(s, GPQ_TASK(1, 2), GPQ_OUTCOME_ERROR), 1);
    T_EQ(claim(s, GPQ_TASK(1, 3)), 1);
    T_EQ(claim(s, GPQ_TASK(4, 1)), 1);
    T_EQ(try_give_back(s, GPQ_TASK(4, 1), 1, GPQ_RETURN_DEVICE), 0);
    T_EQ(claim(s, GPQ_TASK(4, 1)), 2);
    SUBMIT(s, .name = "night", .items = "a b c x", .join = true); /* batch 7 joins three */
    SUBMIT(s, .name = "met", .items = "r", .after = { first_ok });
    SUBMIT(s, .name = "gone", .items = "t u"); /* batch 9: one of its tasks is forgotten */
    T_EQ(run(s, GPQ_TASK(9, 1), GPQ_OUTCOME_SUCCESS), 1);
    T_EQ(run(s, GPQ_TASK(9, 2), GPQ_OUTCOME_ERROR), 1);
    T_EQ(purge(s, NOW + 1, true, 1000), 1);
    SUBMIT(s, .name = "again", .items = "s", .retries = { 2 });
    T_EQ(run(s, GPQ_TASK(10, 1), GPQ_OUTCOME_ERROR), 0);
    T_EQ(run(s, GPQ_TASK(10, 1), GPQ_OUTCOME_SUCCESS), 1);
}

static struct gpq_store *opened(const char *directory, bool only_check)
{
    struct gpq_store *s = NULL;
    struct gpq_error e = { 0 };
    const struct gpq_options options = { .directory = directory,
                                         .vfs = calm_vfs(),
                                         .only_check = only_check };

    if (gpq_sqlite_open(&options, &s, &e))
        T_FAIL("open: %s", e.text);
    return s;
}

static void closed(struct gpq_store *s)
{
    s->engine->close(s);
}

/* Files of the store, which are copied and compared. */
static const char *const parts[] = { "queue.db", "queue.db-wal" };

static char *read_file(const char *path, size_t *ret_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    char *data;

    *ret_size = 0;
    if (fd < 0)
        return NULL;
    T_EQ(fstat(fd, &st), 0);
    data = malloc((size_t)st.st_size + 1);
    T_CHECK(data);
    T_EQ(read(fd, data, (size_t)st.st_size), st.st_size);
    close(fd);
    *ret_size = (size_t)st.st_size;
    return data;
}

static void write_file(const char *path, const char *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    T_CHECK(fd >= 0);
    T_EQ(write(fd, data, size), (ssize_t)size);
    close(fd);
}

static const char *in(const char *directory, const char *name)
{
    static char path[2][256];
    static int at;

    at = !at;
    (void)snprintf(path[at], sizeof(path[at]), "%s/%s", directory, name);
    return path[at];
}

static void copy(const char *from, const char *to)
{
    (void)mkdir(to, 0700);
    for (size_t i = 0; i < T_LENGTH(parts); i++) {
        size_t size;
        char *data = read_file(in(from, parts[i]), &size);

        if (data)
            write_file(in(to, parts[i]), data, size);
        else
            (void)unlink(in(to, parts[i]));
        free(data);
    }
}

static bool same(const char *a, const char *b)
{
    bool equal = true;

    for (size_t i = 0; i < T_LENGTH(parts); i++) {
        size_t size[2];
        char *data[2] = { read_file(in(a, parts[i]), &size[0]),
                          read_file(in(b, parts[i]), &size[1]) };

        /* SQLite makes an empty log where there is none. */
        equal = equal && size[0] == size[1] && (!size[0] || !memcmp(data[0], data[1], size[0]));
        free(data[0]);
        free(data[1]);
    }
    return equal;
}

/* ---- What a check finds ---- */

struct findings {
    uint32_t n, repaired, kinds, last_kind;
    char last[512];
    bool shown;
};

static int note(const struct gpq_finding *f, void *user)
{
    struct findings *all = user;

    all->n++;
    all->repaired += f->repaired;
    all->kinds |= 1U << f->kind;
    all->last_kind = f->kind;
    T_CHECK(f->place && f->place[0] && f->text && f->text[0]);
    T_CHECK(!strchr(gpq_finding_text(f->kind), '?'));
    (void)snprintf(all->last, sizeof(all->last), "F%u %s %s: %s", f->kind,
                   gpq_finding_text(f->kind), f->place, f->text);
    if (all->shown)
        (void)printf("%s%s\n", all->last, f->repaired ? " (repaired)" : "");
    return 0;
}

static int64_t checked(struct gpq_store *s, bool repair, struct findings *ret)
{
    struct gpq_error e = { 0 };
    bool shown = ret->shown;

    *ret = (struct findings){ .shown = shown };
    int64_t left = s->engine->check(s, LATER, repair, note, ret, &e);
    if (left < 0 && left != GPQ_EDAMAGED)
        T_FAIL("check: %s", e.text);
    return left;
}

/* Waits, claims and ends until every task has ended. */
static void work_off(struct gpq_store *s)
{
    struct gpq_batch b;
    uint64_t next;

    (void)hold(s, ALL, false);
    (void)due(s, LATER + 1, &next);
    for (uint32_t id = 1; id <= 12; id++)
        for (uint32_t n = 1; batch_is_there(s, id) && n <= 8; n++) {
            struct gpq_task t = { 0 };
            if (listed(s, ONE(GPQ_TASK(id, n)))[0])
                t = task(s, GPQ_TASK(id, n));
            if (t.state == GPQ_READY)
                (void)claim(s, t.id);
            if (t.state == GPQ_READY || t.state == GPQ_RUNNING)
                (void)end(s, t.id, GPQ_OUTCOME_SUCCESS, LATER + 2);
            if (t.state == GPQ_READY || t.state == GPQ_RUNNING)
                n = 0; /* others may start now */
        }
    for (uint32_t id = 1; id <= 12; id++)
        if (batch_is_there(s, id)) {
            b = batch(s, id);
            if (!b.ended)
                T_FAIL("batch %u has not ended", id);
        }
}

static void expect_healthy(struct gpq_store *s, const char *why)
{
    struct findings all = { 0 };
    struct gpq_error e = { 0 };

    if (checked(s, false, &all) != 0)
        T_FAIL("%s: %s", why, all.last);
    T_EQ(recount(s, true, &e), 0);
}

T_CASE(a_healthy_store)
{
    struct gpq_store *s = opened(".", false);

    expect_healthy(s, "empty");
    fill(s);
    expect_healthy(s, "filled");
    work_off(s);
    expect_healthy(s, "worked off");
    closed(s);
}

/* A check changes no byte, also of a store whose agent was killed. */
T_CASE(a_check_writes_nothing)
{
    struct findings all = { 0 };
    struct gpq_store *s;

    (void)mkdir("killed", 0700);
    s = opened("killed", false);
    fill(s);
    copy("killed", "copy"); /* with the log of its commits */
    closed(s);
    T_CHECK(!access("copy/queue.db-wal", F_OK));
    copy("copy", "checked");
    s = opened("checked", true);
    T_EQ(checked(s, false, &all), 0);
    closed(s);
    T_CHECK(same("copy", "checked"));
}

T_CASE(nothing_to_check)
{
    const struct gpq_options options = { .directory = ".", .only_check = true };
    struct gpq_store *s = NULL;
    struct gpq_error e = { 0 };

    T_EQ(gpq_sqlite_open(&options, &s, &e), GPQ_ENOTFOUND);
    T_CHECK(access("queue.db", F_OK));
    write_file("queue.db", "", 0);
    T_EQ(gpq_sqlite_open(&options, &s, &e), GPQ_ENOTFOUND);
}

/* A read would play the journal of a killed program back. */
T_CASE(a_journal_is_left_to_an_agent)
{
    const struct gpq_options options = { .directory = ".", .only_check = true };
    struct gpq_store *s = opened(".", false);
    struct gpq_error e = { 0 };

    closed(s);
    write_file("queue.db-journal", "journal", 7);
    T_EQ(gpq_sqlite_open(&options, &s, &e), GPQ_EUNUSABLE);
    T_CHECK(strstr(e.text, "start an agent"));
    T_CHECK(!access("queue.db-journal", F_OK));
}

/* ---- Each finding ---- */

#define T(batch, number) "((" #batch " << 32) + " #number ")"

static const struct {
    uint32_t kind;
    bool repairable;
    const char *sql;
} faults[] = {
    { GPQ_FINDING_SCHEMA, false, "CREATE TRIGGER mine AFTER DELETE ON task BEGIN SELECT 1; END" },
    { GPQ_FINDING_ORPHAN, true, "INSERT INTO payload VALUES(" T(99, 1) ", 0, NULL, x'00', NULL)" },
    { GPQ_FINDING_ORPHAN, true,
      "INSERT INTO attempt(task, number, round, claimed)"
      " VALUES(" T(99, 1) ", 1, 1, 1)" },
    { GPQ_FINDING_ORPHAN, true,
      "INSERT INTO round VALUES(" T(99, 1) ", 1, 1, 1, 1, 0, 0, 0, NULL, NULL)" },
    { GPQ_FINDING_ORPHAN, true, "INSERT INTO result VALUES(" T(99, 1) ", 1, 1, x'00', NULL)" },
    { GPQ_FINDING_ORPHAN, true, "INSERT INTO edge VALUES(" T(99, 1) ", " T(1, 1) ", 0, 1)" },
    { GPQ_FINDING_ORPHAN, true, "INSERT INTO joined VALUES(1, " T(99, 1) ")" },
    { GPQ_FINDING_ORPHAN, true, "INSERT INTO joined VALUES(99, " T(1, 1) ")" },
    { GPQ_FINDING_ORPHAN, true, "DELETE FROM batch WHERE id = 5" },
    { GPQ_FINDING_EDGE, true, "UPDATE edge SET source = " T(99, 1) " WHERE source = " T(1, 6) },
    { GPQ_FINDING_EDGE, true, "UPDATE edge SET source = 99 << 32 WHERE source = " T(1, 0) },
    { GPQ_FINDING_EDGE, true, "UPDATE edge SET source = " T(99, 1) " WHERE met = 1" },
    { GPQ_FINDING_EDGE, false, "UPDATE edge SET condition = 9 WHERE source = " T(1, 6) },
    { GPQ_FINDING_EDGE, false, "UPDATE edge SET met = 2 WHERE met = 1" },
    { GPQ_FINDING_TASK, false, "UPDATE task SET state = 7 WHERE id = " T(1, 4) },
    { GPQ_FINDING_TASK, false, "DELETE FROM payload WHERE id = " T(1, 4) },
    { GPQ_FINDING_SPEC, false, "UPDATE task SET spec = 99 WHERE id = " T(1, 4) },
    { GPQ_FINDING_SHAPE, true, "UPDATE task SET shape = 99 WHERE id = " T(1, 4) },
    { GPQ_FINDING_SHAPE, false, "DELETE FROM shape WHERE id = 1" },
    { GPQ_FINDING_TASK, true, "UPDATE task SET holds = 0 WHERE state = 1" },
    { GPQ_FINDING_TASK, true, "UPDATE task SET holds = 31 WHERE id = " T(2, 1) },
    { GPQ_FINDING_TASK, true, "UPDATE task SET not_before = 0 WHERE id = " T(5, 1) },
    { GPQ_FINDING_TASK, true, "UPDATE task SET unmet = 5 WHERE id = " T(2, 1) },
    { GPQ_FINDING_TASK, true, "UPDATE task SET outcome = 2, ended = 9 WHERE id = " T(2, 1) },
    { GPQ_FINDING_TASK, true, "UPDATE task SET state = 2 WHERE id = " T(2, 1) },
    { GPQ_FINDING_TASK, true, "UPDATE task SET holds = 4, cancel = 1 WHERE id = " T(1, 4) },
    { GPQ_FINDING_TASK, true, "UPDATE task SET outcome = 1, ended = 5 WHERE id = " T(1, 3) },
    { GPQ_FINDING_TASK, true, "UPDATE task SET outcome = 0 WHERE id = " T(9, 2) },
    { GPQ_FINDING_TASK, true, "UPDATE task SET outcome = 77 WHERE id = " T(10, 1) },
    { GPQ_FINDING_TASK, true, "UPDATE task SET holds = 1, ended = 0 WHERE id = " T(9, 2) },
    { GPQ_FINDING_ATTEMPT, true, "UPDATE task SET attempt = 1 WHERE id = " T(10, 1) },
    { GPQ_FINDING_ATTEMPT, true,
      "INSERT INTO attempt(task, number, round, claimed)"
      " VALUES(" T(4, 1) ", 3, 1, 1)" },
    { GPQ_FINDING_ATTEMPT, true, "UPDATE attempt SET returned_at = 0 WHERE task = " T(4, 1) },
    { GPQ_FINDING_ATTEMPT, true, "DELETE FROM attempt WHERE task = " T(1, 3) },
    { GPQ_FINDING_ATTEMPT, true, "UPDATE attempt SET outcome = 1 WHERE task = " T(1, 3) },
    { GPQ_FINDING_ATTEMPT, true,
      "UPDATE task SET state = 3, outcome = 0, ended = 0 WHERE id = " T(1, 2) },
    { GPQ_FINDING_ATTEMPT, true, "UPDATE attempt SET round = 4 WHERE task = " T(10, 1) },
    { GPQ_FINDING_ATTEMPT, true, "UPDATE task SET charged = 7 WHERE id = " T(10, 1) },
    { GPQ_FINDING_TASK, true, "UPDATE task SET ready = 5 WHERE id = " T(2, 1) },
    { GPQ_FINDING_TASK, true, "UPDATE task SET ready = 5 WHERE id = " T(1, 3) },
    { GPQ_FINDING_ATTEMPT, true, "UPDATE attempt SET said = 'x' WHERE task = " T(1, 3) },
    { GPQ_FINDING_ATTEMPT, true, "UPDATE attempt SET said = 'x' WHERE task = " T(1, 1) },
    { GPQ_FINDING_ROUND, true, "UPDATE task SET round = 0 WHERE id = " T(1, 4) },
    { GPQ_FINDING_ROUND, true,
      "INSERT INTO round VALUES(" T(1, 4) ", 1, 2, 0, 1, 0, NULL, NULL, NULL, NULL)" },
    { GPQ_FINDING_ROUND, false, "UPDATE task SET round = 3 WHERE id = " T(1, 4) },
    { GPQ_FINDING_RESULT, false, "INSERT INTO result VALUES(" T(1, 4) ", 1, 1, x'00', NULL)" },
    { GPQ_FINDING_RESULT, false, "INSERT INTO result VALUES(" T(1, 1) ", 1, 5, x'00', NULL)" },
    { GPQ_FINDING_RESULT, false, "INSERT INTO result VALUES(" T(10, 1) ", 5, 1, x'00', NULL)" },
    { GPQ_FINDING_FLAG, true, "UPDATE task SET links = links & ~1" },
    { GPQ_FINDING_FLAG, true, "UPDATE task SET links = links & ~2" },
    { GPQ_FINDING_FLAG, true, "UPDATE task SET links = links & ~4" },
    { GPQ_FINDING_FLAG, true, "UPDATE batch SET flags = flags & ~8" },
    { GPQ_FINDING_KEY, true, "UPDATE task SET key = 5 WHERE id = " T(1, 4) },
    { GPQ_FINDING_KEY, true, "UPDATE task SET key = NULL" },
    { GPQ_FINDING_SPEC, false, "DELETE FROM environment" },
    { GPQ_FINDING_SPEC, true, "UPDATE spec SET uses = 50" },
    { GPQ_FINDING_SPEC, true, "INSERT INTO environment(hash, data) VALUES(1, x'00')" },
    { GPQ_FINDING_SPEC, true,
      "INSERT INTO spec SELECT 99, 0, content, shape, options, environment, 0,"
      " 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM spec LIMIT 1" },
    { GPQ_FINDING_SHAPE, true, "UPDATE shape SET ready = 7" },
    { GPQ_FINDING_SHAPE, true, "UPDATE shape SET uses = uses + 1" },
    { GPQ_FINDING_SHAPE, true, "INSERT INTO shape VALUES(99, x'00', 0, 0)" },
    { GPQ_FINDING_COUNTER, true, "UPDATE counter SET value = 1 WHERE name = 'order'" },
    { GPQ_FINDING_COUNTER, true, "DELETE FROM counter" },
    { GPQ_FINDING_COUNTER, true, "UPDATE task SET place = -40 WHERE id = " T(1, 4) },
    { GPQ_FINDING_COUNTER, true, "UPDATE sqlite_sequence SET seq = 2 WHERE name = 'batch'" },
    { GPQ_FINDING_BATCH, true, "UPDATE batch SET numbers = 2 WHERE id = 1" },
    { GPQ_FINDING_BATCH, true,
      "UPDATE batch SET total = 50, done = 50, success = 50 WHERE id = 1" },
    { GPQ_FINDING_BATCH, true, "UPDATE batch SET joined = 0 WHERE id = 7" },
    { GPQ_FINDING_BATCH, true, "UPDATE batch SET busy = 9 WHERE id = 4" },
    { GPQ_FINDING_BATCH, true, "UPDATE batch SET held = 0, ready = 4" },
    { GPQ_FINDING_BATCH, true, "UPDATE batch SET lost = 1 WHERE id = 9" },
    { GPQ_FINDING_BATCH, true, "UPDATE batch SET success = 2 WHERE id = 9" },
    { GPQ_FINDING_BATCH, true, "DELETE FROM joined" },
    { GPQ_FINDING_END, true, "UPDATE batch SET ended = 5 WHERE id = 1" },
    { GPQ_FINDING_END, true, "UPDATE batch SET ended = 0 WHERE id = 10" },
    { GPQ_FINDING_END, true,
      "UPDATE edge SET source = " T(1, 1) ", condition = 1 WHERE source = " T(1, 6) },
    { GPQ_FINDING_END, true, "UPDATE edge SET source = 10 << 32 WHERE source = 1 << 32" },
    { GPQ_FINDING_END, true, "UPDATE batch SET at_once = 3 WHERE id = 4" },
    { GPQ_FINDING_END, true,
      "UPDATE batch SET ended = 0 WHERE id = 10;"
      "UPDATE edge SET source = 10 << 32 WHERE source = 1 << 32" },
};

static void break_it(const char *directory, const char *sql)
{
    sqlite3 *file = NULL;
    char *why = NULL;

    T_EQ(sqlite3_open_v2(in(directory, "queue.db"), &file, SQLITE_OPEN_READWRITE, calm_vfs()),
         SQLITE_OK);
    if (sqlite3_exec(file, sql, NULL, NULL, &why) != SQLITE_OK)
        T_FAIL("%s: %s", sql, why);
    sqlite3_close(file);
}

/* A check sees the fault and writes nothing; its repair leaves a store that works. */
static void try_fault(size_t i)
{
    struct findings all = { .shown = getenv("T_CHECK_SHOWN") };
    struct gpq_store *s;

    copy("healthy", "broken");
    break_it("broken", faults[i].sql);
    copy("broken", "checked");
    s = opened("checked", true);
    if (checked(s, false, &all) == 0)
        T_FAIL("%s: nothing found", faults[i].sql);
    closed(s);
    if (!(all.kinds & 1U << faults[i].kind))
        T_FAIL("%s: not F%u, but %s", faults[i].sql, faults[i].kind, all.last);
    T_CHECK(same("broken", "checked"));
    s = opened("broken", true);
    int64_t left = checked(s, true, &all);
    closed(s);
    if ((left == 0) != faults[i].repairable)
        T_FAIL("%s: %lld left: %s", faults[i].sql, (long long)left, all.last);
    T_EQ(left, all.n - all.repaired);
    if (left == 0)
        T_CMP(all.repaired, >, 0);
    s = opened("broken", false);
    T_EQ(checked(s, false, &all), left);
    if (left == 0) {
        expect_healthy(s, faults[i].sql);
        work_off(s);
        expect_healthy(s, faults[i].sql);
    }
    closed(s);
}

T_LONG_CASE(each_fault_is_found_and_repaired, 120)
{
    const char *only = getenv("T_CHECK_FAULT");
    struct gpq_store *s;

    (void)mkdir("healthy", 0700);
    s = opened("healthy", false);
    fill(s);
    closed(s);
    for (size_t i = 0; i < T_LENGTH(faults); i++)
        if (!only || strtoul(only, NULL, 10) == i)
            try_fault(i);
}

/* ---- Any healthy store ---- */

static void both(struct world *w, int (*call)(struct gpq_store *s, struct gpq_error *e))
{
    struct gpq_error e;

    for (int i = 0; i < STORES; i++)
        T_EQ(call(w->store[i], &e), 0);
}

static int begins(struct gpq_store *s, struct gpq_error *e)
{
    return s->engine->begin(s, e);
}

static int commits(struct gpq_store *s, struct gpq_error *e)
{
    return s->engine->commit(s, e);
}

/* Operations of one world; after each commit the check finds nothing. */
static uint64_t live(uint64_t seed, uint32_t n)
{
    struct world w = { .now = 10000 };
    struct findings all = { 0 };
    uint64_t checks = 0;
    uint32_t at = 0;

    w.store[MODEL] = engine_open(MEMORY, "model", NULL);
    w.store[TESTED] = opened("tested", false);
    both(&w, begins);
    for (; at < n; at++) {
        w.lot = seed * UINT64_C(0xd1342543de82ef95) + at * UINT64_C(0x9e3779b97f4a7c15);
        w.now += world_below(&w, 8);
        world_operate(&w);
        for (int i = 0; i < STORES; i++)
            view_clear(&w.got[i]);
        view_clear(&w.said);
        if (!world_once_in(&w, 4) && at + 1 < n)
            continue;
        both(&w, commits);
        if (checked(w.store[TESTED], false, &all) != 0)
            T_FAIL("seed %llu, operation %u: %s", (unsigned long long)seed, at, all.last);
        checks++;
        both(&w, begins);
    }
    for (int i = 0; i < STORES; i++) {
        w.store[i]->engine->rollback(w.store[i]);
        closed(w.store[i]);
        view_free(&w.got[i]);
    }
    view_free(&w.said);
    T_EQ(unlink("tested/queue.db"), 0);
    return checks;
}

T_LONG_CASE(a_random_store_is_healthy, 600)
{
    const char *only = getenv("T_CHECK_SEED");
    uint64_t at = only ? strtoull(only, NULL, 10) : 1, done = 0, checks = 0;

    (void)mkdir("tested", 0700);
    for (; done < t_rounds(OPERATIONS, OPERATIONS / 10); at++, done += LONGEST) {
        checks += live(at, LONGEST);
        if (only)
            break;
    }
    (void)printf("%llu checks\n", (unsigned long long)checks);
}

/* ---- Damaged files ---- */

/* Changes some bytes of a file. */
static void damage(const char *path, uint64_t *seed)
{
    size_t size;
    char *data = read_file(path, &size);
    uint32_t spots = 1 + draw_below(seed, 4);

    if (draw_chance(seed, 10))
        size = draw_below(seed, (uint32_t)size);
    for (uint32_t i = 0; data && size && i < spots; i++) {
        uint32_t at = draw_below(seed, (uint32_t)size), n = 1 + draw_below(seed, 64);

        if (draw_chance(seed, 30)) /* where a page says what it holds */
            at = at / 4096 * 4096 + draw_below(seed, 16);
        for (; n > 0 && at < size; n--, at++)
            data[at] = draw_chance(seed, 50) ? 0 : (char)draw(seed);
    }
    write_file(path, data, size);
    free(data);
}

/* Returns what a check of the damaged file returned.  It writes only without finding damage. */
static int64_t check_damaged(bool repair)
{
    const struct gpq_options options = { .directory = "hurt",
                                         .vfs = calm_vfs(),
                                         .only_check = true };
    struct gpq_store *s = NULL;
    struct gpq_error e = { 0 };
    struct findings all = { 0 };
    int64_t left = gpq_sqlite_open(&options, &s, &e);

    if (left == 0) {
        left = s->engine->check(s, LATER, repair, note, &all, &e);
        closed(s);
    }
    if (left < 0) {
        T_EQ(e.code, left);
        T_CHECK(e.text[0]);
    }
    if (left < 0 || !repair)
        T_CHECK(same("damaged", "hurt"));
    return left;
}

T_LONG_CASE(a_damaged_file_is_not_written, 300)
{
    const char *only = getenv("T_CHECK_SEED");
    size_t n = t_rounds(FILES, FILES / 5), damaged = 0;
    struct gpq_store *s;

    (void)mkdir("healthy", 0700);
    s = opened("healthy", false);
    fill(s);
    copy("healthy", "killed"); /* the same in its log */
    closed(s);
    for (uint64_t i = only ? strtoull(only, NULL, 10) : 0; i < n; i++) {
        uint64_t seed = i;

        copy(i % 2 ? "healthy" : "killed", "damaged");
        damage(in("damaged", parts[i % 2 || draw_chance(&seed, 30) ? 0 : 1]), &seed);
        copy("damaged", "hurt");
        int64_t left = check_damaged(false);
        copy("damaged", "hurt");
        int64_t again = check_damaged(true);
        if ((left < 0) != (again < 0))
            T_FAIL("seed %llu: %lld, and to be repaired %lld", (unsigned long long)i,
                   (long long)left, (long long)again);
        damaged += left < 0;
        if (only)
            break;
    }
    (void)printf("%zu of %zu files are damaged\n", damaged, n);
    if (!only)
        T_CMP(damaged, >, n / 10);
}
