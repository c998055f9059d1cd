/* SPDX-License-Identifier: MIT */
/*
 * faults.c - each file call below the store fails, once or for ever: no answer is wrong.
 *
 * A full disk makes one transaction fail, of which nothing remains, and the store works on.  After
 * an I/O error every call fails until the store is closed.  Then the store has what was
 * acknowledged, whether the process was restarted or the power was cut.
 */
#include "harness.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>

#include "draw.h"
#include "dump.h"
#include "life.h"

enum { TRANSACTIONS = 12 };

struct tally {
    uint64_t lives, opens, full, broken;
};

__attribute__((format(printf, 3, 4))) static void fail(const struct disk_fault *f, uint64_t nth,
                                                       const char *format, ...)
{
    char text[600];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    T_FAIL("kinds %u, call %llu, error %d%s: %s", f->kinds, (unsigned long long)nth, f->error,
           f->forever ? ", for ever" : "", text);
}

/* After GPQ_EFULL the store shows what it showed before. */
static void nothing_remains(struct life *l, const struct disk_fault *f)
{
    struct gpq_error e = { 0 };
    struct text there = { 0 };
    int rc = dump(l->work.store, &there, &e);

    if (rc != 0)
        fail(f, f->nth, "a reader failed after a full disk: %d, %s", rc, e.text);
    if (!text_same(&l->kept, &there)) {
        text_print_difference(&l->kept, &there);
        fail(f, f->nth, "something remains of a transaction that failed");
    }
    text_free(&there);
    ledger_drop(&l->ledger);
    l->in_flight = false;
}

/* Every call fails until the store is closed. */
static void all_fail(struct life *l, int code, const struct disk_fault *f)
{
    const struct gpq_engine *o = l->work.store->engine;
    struct gpq_error e = { 0 };
    struct text there = { 0 };

    disk_fail(l->disk, NULL);
    T_EQ(o->commit(l->work.store, &e), code);
    o->rollback(l->work.store);
    if (o->begin(l->work.store, &e) != code || e.code != code)
        fail(f, f->nth, "a transaction began after %d", code);
    if (dump(l->work.store, &there, &e) != code)
        fail(f, f->nth, "a reader worked after %d", code);
    text_free(&there);
}

/* Returns false once the store is broken. */
static bool work_on(struct life *l, const struct disk_fault *f, struct tally *t)
{
    struct gpq_error e = { 0 };
    int rc = life_transact(l, &e);

    if (rc >= 0)
        return true;
    if (disk_failed(l->disk) == 0)
        fail(f, f->nth, "%d (%s) without a fault", rc, e.text);
    if (rc == GPQ_EFULL && f->error == ENOSPC) {
        t->full++;
        nothing_remains(l, f);
        return true;
    }
    if (rc != GPQ_EIO)
        fail(f, f->nth, "%d (%s)", rc, e.text);
    t->broken++;
    all_fail(l, rc, f);
    return false;
}

/* Works without a fault, and closes the store. */
static void live_before(struct life *l)
{
    struct gpq_error e = { 0 };

    T_EQ(life_open(l, &e), 0);
    for (unsigned n = 0; n < TRANSACTIONS; n++)
        T_CMP(life_transact(l, &e), >=, 0);
    life_close(l);
}

/* Returns false if the workload has fewer calls than the nth. */
static bool live_with(const struct disk_fault *f, bool old, struct tally *t)
{
    struct life *l = life_make(&(struct control){ .start_early = false }, f->nth);
    struct gpq_error e = { 0 };
    enum harm harm;
    bool met;
    int rc;

    l->work.show = true;
    if (old)
        live_before(l);
    disk_fail(l->disk, f);
    rc = life_open(l, &e);
    if (rc != 0 && rc != GPQ_EIO && !(rc == GPQ_EFULL && f->error == ENOSPC))
        fail(f, f->nth, "open: %d (%s)", rc, e.text);
    t->opens += rc != 0;
    for (unsigned n = 0; rc == 0 && n < TRANSACTIONS && work_on(l, f, t); n++)
        ;
    if (f->nth % 2 == 0)
        life_close(l); /* with the fault, if it lasts */
    met = disk_failed(l->disk) > 0 || rc != 0 || l->in_flight;
    disk_fail(l->disk, NULL);
    if (f->nth % 3 == 0)
        life_cut(l);
    life_close(l);
    harm = life_judge(l, l->disk);
    if (harm != NO_HARM)
        fail(f, f->nth, "%s: %s", harm_names[harm], l->why);
    life_free(l);
    t->lives++;
    return met;
}

/* Of how many calls one fails: fewer fail in a quick run, and with a sanitizer. */
static uint64_t step_of(uint64_t all)
{
    return all * (t_rounds(10, 10) == 10 ? 1 : 4) * (T_SANITIZED ? 4 : 1) + 1;
}

/* Lets a sample of the calls of these kinds fail, below a new and an old store. */
static void fail_each(uint32_t kinds, int error, bool forever)
{
    const uint64_t step = step_of(9);
    struct tally t = { 0 };
    struct disk_fault f = { .kinds = kinds, .error = error, .forever = forever };

    for (int old = 0; old < 2; old++)
        for (f.nth = 1; live_with(&f, old, &t);)
            f.nth += step;
    diskvfs_remove();
    (void)printf("%llu lives: %llu opens failed, %llu transactions found the disk full, %llu "
                 "stores broke\n",
                 (unsigned long long)t.lives, (unsigned long long)t.opens,
                 (unsigned long long)t.full, (unsigned long long)t.broken);
    T_CMP(t.lives, >, 2);
}

T_LONG_CASE(opens_fail, 120)
{
    fail_each(DISK_OPEN, EIO, false);
    fail_each(DISK_OPEN, EIO, true);
    fail_each(DISK_OPEN, ENOSPC, true);
}

T_LONG_CASE(reads_fail, 120)
{
    fail_each(DISK_READ, EIO, false);
    fail_each(DISK_READ, EIO, true);
}

T_LONG_CASE(writes_fail, 300)
{
    fail_each(DISK_WRITE | DISK_TRUNCATE, EIO, false);
    fail_each(DISK_WRITE | DISK_TRUNCATE, EIO, true);
}

T_LONG_CASE(writes_are_short, 300)
{
    fail_each(DISK_WRITE, 0, false);
    fail_each(DISK_WRITE, 0, true);
}

T_LONG_CASE(syncs_fail, 120)
{
    fail_each(DISK_SYNC | DISK_SYNC_DIRECTORY, EIO, false);
    fail_each(DISK_SYNC | DISK_SYNC_DIRECTORY, EIO, true);
    fail_each(DISK_SYNC | DISK_SYNC_DIRECTORY, ENOSPC, false);
}

T_LONG_CASE(the_disk_is_full_at_a_write, 300)
{
    fail_each(DISK_WRITE, ENOSPC, false);
    fail_each(DISK_WRITE, ENOSPC, true);
}

T_LONG_CASE(names_fail, 120)
{
    fail_each(DISK_UNLINK | DISK_RENAME, EIO, false);
    fail_each(DISK_UNLINK | DISK_RENAME, EIO, true);
}

/* A disk fills up, and gets room again, several times. */
T_LONG_CASE(a_disk_that_fills_up, 120)
{
    for (uint64_t seed = 1; seed <= t_rounds(60, 15); seed++) {
        struct life *l = life_make(&(struct control){ .start_early = false }, seed);
        struct disk_fault f = { .kinds = DISK_WRITE, .error = ENOSPC, .nth = seed };
        struct gpq_error e = { 0 };
        unsigned full = 0;
        T_EQ(life_open(l, &e), 0);
        l->work.show = true;
        for (unsigned n = 0; n < 30; n++) {
            int rc;
            disk_limit(l->disk, n % 3 == 0 ? 0 : disk_used(l->disk) + draw_below(&l->seed, 60000));
            rc = life_transact(l, &e);
            if (rc == GPQ_EFULL) {
                full++;
                nothing_remains(l, &f);
            } else if (rc < 0) {
                T_FAIL("seed %llu: %d (%s)", (unsigned long long)seed, rc, e.text);
            }
        }
        T_CMP(full, >, 0);
        disk_limit(l->disk, 0);
        life_cut(l);
        enum harm harm = life_judge(l, l->disk);
        if (harm != NO_HARM)
            T_FAIL("seed %llu: %s: %s", (unsigned long long)seed, harm_names[harm], l->why);
        life_free(l);
    }
    diskvfs_remove();
}

/* ---- Memory ---- */

/* The allocations of SQLite, of which the nth from now on fails. */
static struct {
    sqlite3_mem_methods system;
    uint64_t left; /* 0: none fails */
    bool failed;
} memory;

static bool scarce(void)
{
    if (memory.left == 0 || --memory.left > 0)
        return false;
    memory.failed = true;
    return true;
}

static void *scarce_malloc(int size)
{
    return scarce() ? NULL : memory.system.xMalloc(size);
}

static void *scarce_realloc(void *old, int size)
{
    return scarce() ? NULL : memory.system.xRealloc(old, size);
}

static void make_memory_scarce(void)
{
    sqlite3_mem_methods m;

    T_EQ(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory.system), SQLITE_OK);
    m = memory.system;
    m.xMalloc = scarce_malloc;
    m.xRealloc = scarce_realloc;
    T_EQ(sqlite3_config(SQLITE_CONFIG_MALLOC, &m), SQLITE_OK);
    /* Small allocations of a connection have memory of their own, which would hide failures. */
    T_EQ(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK);
}

static void scarce_from(uint64_t nth)
{
    memory.left = nth;
    memory.failed = false;
}

/* Lets the nth allocation of an open and of the transactions after it fail.  Returns false if they
 * have fewer. */
static bool live_with_scarce_memory(uint64_t seed, uint64_t nth, struct tally *t)
{
    struct life *l = life_make(&(struct control){ .start_early = false }, seed);
    struct disk_fault f = { .nth = nth };
    struct gpq_error e = { 0 };
    enum harm harm;
    bool met;
    int rc;

    l->work.show = true; /* readers fail, too */
    live_before(l);
    scarce_from(nth);
    rc = life_open(l, &e);
    for (unsigned n = 0; n < 3 && rc >= 0; n++)
        rc = life_transact(l, &e);
    met = memory.failed;
    memory.left = 0;
    if (rc < 0 && (!met || rc != GPQ_ENOMEM))
        fail(&f, nth, "seed %llu: %d (%s)", (unsigned long long)seed, rc, e.text);
    t->opens += !l->work.store;
    if (l->work.store && rc < 0) {
        t->full++;
        nothing_remains(l, &f);
        rc = life_transact(l, &e);
        if (rc < 0)
            fail(&f, nth, "after an allocation failed: %d (%s)", rc, e.text);
    }
    if (l->work.store)
        life_show(l);
    life_close(l);
    harm = life_judge(l, l->disk);
    if (harm != NO_HARM)
        fail(&f, nth, "seed %llu: %s: %s", (unsigned long long)seed, harm_names[harm], l->why);
    life_free(l);
    return met;
}

T_LONG_CASE(sqlite_has_no_memory, 300)
{
    const uint64_t step = step_of(29);
    struct tally t = { 0 };

    make_memory_scarce();
    for (uint64_t seed = 1; seed <= 1 + t_rounds(30, 10) / 10; seed++)
        for (uint64_t nth = 1 + seed % step; live_with_scarce_memory(seed, nth, &t);) {
            t.lives++;
            nth += step;
        }
    diskvfs_remove();
    (void)printf("%llu failed allocations: %llu opens, %llu transactions\n",
                 (unsigned long long)t.lives, (unsigned long long)t.opens,
                 (unsigned long long)t.full);
    T_CMP(t.opens, >, 0);
    T_CMP(t.full, >, 0);
}
