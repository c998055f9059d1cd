/* SPDX-License-Identifier: MIT */
/*
 * cut.c - the power is cut at random moments below the store: what was acknowledged is there.
 *
 * A life is a store that works on a simulated disk, loses its power in the middle of a random
 * change of the disk, is opened again, and works on, several times.  After each cut a copy of the
 * disk is judged.  The store shows exactly the state of the last acknowledged commit, or that of
 * the commit in flight, if there was one.  The controls leave something out that a store needs, and
 * must show harm: else the disk would find nothing.
 *
 * T_CUTS says how many cuts the case without controls makes.  [Q1 Q2]
 */
#include "harness.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diskfiles.h"
#include "diskvfs.h"
#include "draw.h"
#include "dump.h"
#include "ledger.h"
#include "recount.h"
#include "work.h"

enum {
    CUTS_OF_A_LIFE = 5,
    TRANSACTIONS = 30, /* at most, before a cut of an idle disk */
    CHANGES = 900,     /* of the disk, at most, before a cut */
    WINDOW = 600,      /* changes before the cut from which on each commit is dumped */
    CHECKPOINT = 60,   /* pages of the WAL: far fewer than usual, so that some cuts hit one */
};
#define STATE "/state"
#define RESULTS STATE "/results"

enum harm {
    NONE,
    LOST,       /* something acknowledged is not there */
    TORN,       /* a part of a transaction is there */
    UNCOUNTED,  /* a counter is wrong */
    UNRECORDED, /* an attempt was started, and the store has none of this number */
    NO_RESULT,  /* a result is not whole */
    UNREADABLE, /* the store does not open, or a reader fails */
    STUCK,      /* it does not work on */
    HARMS
};

static const char *const harm_names[HARMS] = {
    [LOST] = "lost",           [TORN] = "torn",
    [UNCOUNTED] = "uncounted", [UNRECORDED] = "unrecorded",
    [NO_RESULT] = "no result", [UNREADABLE] = "unreadable",
    [STUCK] = "stuck",
};

/* What a control leaves out. */
struct control {
    enum diskvfs_syncs syncs;
    bool no_file_sync, no_directory_sync, start_early, harmless;
};

struct tally {
    uint64_t cuts, idle, in_flight, arrived, harm[HARMS];
    uint64_t done[WORK_OPERATIONS], refused[WORK_OPERATIONS];
};

struct life {
    const struct control *control;
    struct disk *disk;
    struct diskfiles diskfiles;
    struct gpq_files files;
    struct ledger ledger;
    struct work work;
    struct text kept; /* what the store shows after the last acknowledged commit */
    bool kept_known;
    bool in_flight; /* the commit that work.shown precedes */
    uint64_t first_seed, seed;
    unsigned cuts;
    char why[512]; /* of the harm */
};

static int open_store(struct life *l, struct disk *d, struct gpq_store **ret)
{
    struct gpq_options options = { .directory = STATE,
                                   .vfs = diskvfs_use(d, draw(&l->seed), l->control->syncs),
                                   .now = l->work.now,
                                   .results_inline = 1024 };
    struct gpq_error e = { 0 };
    int rc = gpq_sqlite_open(&options, ret, &e);

    if (rc < 0) {
        *ret = NULL;
        (void)snprintf(l->why, sizeof(l->why), "open: %d, %.400s", rc, e.text);
    }
    return rc;
}

/* ---- Until the cut ---- */

static void fail_undead(const struct life *l, int rc, const struct gpq_error *e)
{
    if (!disk_dead(l->disk))
        T_FAIL("seed %llu, cut %u: the store failed with %d (%s), and the disk works",
               (unsigned long long)l->first_seed, l->cuts + 1, rc, e->text);
}

/* Knows from here on what the store shows. */
static void show(struct life *l)
{
    struct gpq_error e = { 0 };

    if (l->kept_known)
        return;
    text_free(&l->kept);
    T_EQ(dump(l->work.store, &l->kept, &e), 0);
    l->kept_known = true;
}

/* Returns false if the power was cut. */
static bool transact(struct life *l, uint64_t cut_at)
{
    struct gpq_error e = { 0 };
    int rc;

    l->work.show = disk_changes(l->disk) + WINDOW > cut_at;
    if (l->work.show)
        show(l);
    text_free(&l->work.shown);
    rc = work_transaction(&l->work, &e);
    if (rc == 0) {
        text_free(&l->kept);
        l->kept = l->work.shown;
        l->work.shown = (struct text){ 0 };
        l->kept_known = l->work.show;
    } else if (rc < 0) {
        fail_undead(l, rc, &e);
        T_CHECK(l->work.show);
        l->in_flight = l->work.shown.size > 0;
    }
    return rc >= 0;
}

static void live_until_cut(struct life *l, struct tally *t)
{
    uint64_t cut_at =
        disk_changes(l->disk) + 1 + draw_below(&l->seed, draw_chance(&l->seed, 25) ? 60 : CHANGES);
    const unsigned most = 1 + draw_below(&l->seed, TRANSACTIONS);
    unsigned n = 0;

    l->in_flight = false;
    disk_cut_in(l->disk, cut_at, draw_chance(&l->seed, 30) ? DISK_SYNC : DISK_ANY);
    if (open_store(l, l->disk, &l->work.store) == 0) {
        while (n < most && transact(l, cut_at))
            n++;
        if (n == most) {
            t->idle++;
            show(l);
            if (draw_chance(&l->seed, 50)) {
                l->work.store->engine->close(l->work.store);
                l->work.store = NULL;
            }
        }
    } else if (!disk_dead(l->disk)) {
        T_FAIL("seed %llu, cut %u: %s", (unsigned long long)l->first_seed, l->cuts + 1, l->why);
    }
    t->in_flight += l->in_flight;
}

/* ---- What is left ---- */

static enum harm harm_of(struct life *l, int rc, enum harm harm, const char *text,
                         const struct gpq_error *e)
{
    if (rc == 0)
        return NONE;
    (void)snprintf(l->why, sizeof(l->why), "%d, %.250s", rc, rc < 0 ? e->text : text);
    return rc < 0 ? UNREADABLE : harm;
}

/* Decides whether the transaction in flight has arrived, and keeps or drops it. */
static enum harm judge_state(struct life *l, struct gpq_store *s, struct tally *t)
{
    struct gpq_error e = { 0 };
    struct text there = { 0 };
    char text[256] = "";
    enum harm harm = harm_of(l, dump(s, &there, &e), UNREADABLE, text, &e);
    bool arrived = l->in_flight && text_same(&there, &l->work.shown);

    if (harm == NONE && !arrived && !text_same(&there, &l->kept)) {
        harm = harm_of(l, ledger_compare(&l->ledger.kept, s, text, &e), LOST, text, &e);
        if (harm == NONE)
            (void)snprintf(l->why, sizeof(l->why), "neither state");
        harm = harm == NONE ? TORN : harm;
        text_print_difference(&l->kept, &there);
        if (l->in_flight)
            text_print_difference(&l->work.shown, &there);
    }
    if (arrived)
        ledger_keep(&l->ledger);
    else
        ledger_drop(&l->ledger);
    t->arrived += arrived;
    text_free(&l->kept);
    l->kept = there;
    l->kept_known = true;
    return harm;
}

static enum harm judge_store(struct life *l, struct gpq_store *s, struct tally *t)
{
    struct gpq_error e = { 0 };
    char text[256] = "";
    enum harm harm = judge_state(l, s, t);

    if (harm == NONE)
        harm = harm_of(l, ledger_compare(&l->ledger.kept, s, text, &e), LOST, text, &e);
    if (harm == NONE)
        harm = harm_of(l, recount(s, l->ledger.kept.purged, &e), UNCOUNTED, "see above", &e);
    if (harm == NONE)
        harm = harm_of(l, ledger_starts(&l->ledger, s, text, &e), UNRECORDED, text, &e);
    return harm;
}

static enum harm judge_work(struct life *l, struct gpq_store *s)
{
    struct work w = l->work;
    struct gpq_error e = { 0 };
    int rc;

    w.store = s;
    rc = work_send_again(&w, &e);
    if (rc == 0)
        return harm_of(l, 1, LOST, "a request that was acknowledged is not known", &e);
    if (rc > 0)
        rc = work_one_task(&w, &e);
    if (rc == 0)
        return NONE;
    (void)snprintf(l->why, sizeof(l->why), "a new task: %d, %.400s", rc, e.text);
    return STUCK;
}

/* Judges a copy, so that the life goes on with what the cut has left. */
static enum harm judge(struct life *l, struct tally *t)
{
    struct disk *copy = disk_cut(l->disk, 1);
    struct diskfiles user = { .disk = copy };
    struct gpq_files files = diskfiles(&user);
    struct gpq_store *s;
    struct gpq_error e = { 0 };
    char text[256] = "";
    enum harm harm = open_store(l, copy, &s) == 0 ? NONE : UNREADABLE;

    if (harm == NONE)
        harm = judge_store(l, s, t);
    if (harm == NONE)
        harm = harm_of(l, ledger_results(&l->ledger.kept, s, &files, RESULTS, text, &e), NO_RESULT,
                       text, &e);
    if (harm == NONE)
        harm = judge_work(l, s);
    if (s)
        s->engine->close(s);
    disk_free(copy);
    return harm;
}

/* ---- Lives ---- */

static void make_directories(struct life *l)
{
    static const char *const synced[] = { "/", STATE, RESULTS };

    T_EQ(disk_mkdir(l->disk, STATE), 0);
    T_EQ(disk_mkdir(l->disk, RESULTS), 0);
    for (size_t i = 0; i < T_LENGTH(synced); i++) {
        int fd = disk_open(l->disk, synced[i], O_RDONLY);
        T_EQ(disk_sync(l->disk, fd), 0);
        T_EQ(disk_close(l->disk, fd), 0);
    }
}

static void cut(struct life *l)
{
    struct disk *after = disk_cut(l->disk, draw(&l->seed));

    if (l->work.store)
        l->work.store->engine->close(l->work.store);
    l->work.store = NULL;
    disk_free(l->disk);
    l->disk = l->diskfiles.disk = after;
}

static struct life *life_make(const struct control *c, uint64_t seed)
{
    struct life *l = calloc(1, sizeof(*l));

    T_CHECK(l);
    l->control = c;
    l->first_seed = l->seed = seed;
    l->disk = l->diskfiles.disk = disk_make(seed);
    l->diskfiles.no_file_sync = c->no_file_sync;
    l->diskfiles.no_directory_sync = c->no_directory_sync;
    l->files = diskfiles(&l->diskfiles);
    l->work = (struct work){ .files = &l->files,
                             .results = RESULTS,
                             .ledger = &l->ledger,
                             .seed = ~seed,
                             .now = 1000,
                             .start_early = c->start_early };
    l->kept_known = true; /* an empty store shows nothing */
    make_directories(l);
    return l;
}

static void life_free(struct life *l)
{
    text_free(&l->kept);
    text_free(&l->work.shown);
    disk_free(l->disk);
    free(l);
}

static void live(const struct control *c, uint64_t seed, struct tally *t)
{
    struct life *l = life_make(c, seed);
    enum harm harm = NONE;

    for (; l->cuts < CUTS_OF_A_LIFE && harm == NONE; l->cuts++) {
        live_until_cut(l, t);
        cut(l);
        harm = judge(l, t);
        t->cuts++;
        t->harm[harm]++;
        if (harm != NONE && c->harmless)
            T_FAIL("seed %llu, cut %u: %s: %s", (unsigned long long)seed, l->cuts + 1,
                   harm_names[harm], l->why);
    }
    for (unsigned i = 0; i < WORK_OPERATIONS; i++) {
        t->done[i] += l->work.done[i];
        t->refused[i] += l->work.refused[i];
    }
    life_free(l);
}

/* SQLite calls this for each file that it opens. */
static int checkpoint_often(sqlite3 *file, const char **ret_why, const void *routines)
{
    (void)ret_why;
    (void)routines;
    return sqlite3_wal_autocheckpoint(file, CHECKPOINT);
}

static struct tally live_often(const struct control *c, uint64_t cuts)
{
    const char *only = getenv("T_SEED"); /* one life, to find out why it failed */
    uint64_t seed = only ? strtoull(only, NULL, 10) : 1;
    struct tally t = { 0 };

    T_EQ(sqlite3_auto_extension((void (*)(void))checkpoint_often), SQLITE_OK);
    for (; t.cuts < (only ? 1 : cuts); seed++)
        live(c, seed, &t);
    sqlite3_reset_auto_extension();
    diskvfs_remove();
    (void)printf("%llu cuts, %llu while idle, %llu in a commit, of which %llu arrived;",
                 (unsigned long long)t.cuts, (unsigned long long)t.idle,
                 (unsigned long long)t.in_flight, (unsigned long long)t.arrived);
    for (unsigned i = 1; i < HARMS; i++)
        (void)printf(" %s %llu", harm_names[i], (unsigned long long)t.harm[i]);
    (void)printf("\n");
    return t;
}

static uint64_t harms(const struct tally *t)
{
    return t->cuts - t->harm[NONE];
}

T_LONG_CASE(what_was_acknowledged_is_there, 3000)
{
    const char *cuts = getenv("T_CUTS");
    struct control c = { .harmless = true };
    struct tally t = live_often(&c, cuts ? strtoull(cuts, NULL, 10) : t_rounds(1000, 200));

    T_EQ(harms(&t), 0);
    T_CMP(t.in_flight * 10, >, t.cuts);
    T_CMP(t.arrived, >, 0);
    T_CMP(t.in_flight, >, t.arrived);
    for (unsigned i = 0; work_name(i); i++) {
        (void)printf("%s: %llu, refused %llu\n", work_name(i), (unsigned long long)t.done[i],
                     (unsigned long long)t.refused[i]);
        T_CMP(t.done[i], >, t.refused[i]);
    }
}

/* Each of these must do harm in a substantial share of the cuts. */
static struct tally live_with(const struct control *c)
{
    struct tally t = live_often(c, t_rounds(200, 50));

    T_CMP(harms(&t) * 20, >, t.cuts);
    return t;
}

T_LONG_CASE(without_the_syncs_of_commits_something_is_lost, 120)
{
    struct tally t = live_with(&(struct control){ .syncs = DISKVFS_NORMAL });

    T_CMP(t.harm[LOST], >, 0);
}

T_LONG_CASE(without_syncs_something_is_lost_or_damaged, 120)
{
    struct tally t = live_with(&(struct control){ .syncs = DISKVFS_OFF });

    T_CMP(t.harm[LOST] + t.harm[UNREADABLE], >, 0);
}

T_LONG_CASE(starts_before_the_commit_go_unrecorded, 120)
{
    struct tally t = live_with(&(struct control){ .start_early = true });

    T_EQ(harms(&t), t.harm[UNRECORDED]);
}

T_LONG_CASE(without_syncs_of_result_files_they_are_torn, 120)
{
    struct tally t = live_with(&(struct control){ .no_file_sync = true });

    T_EQ(harms(&t), t.harm[NO_RESULT]);
}

T_LONG_CASE(without_syncs_of_their_directory_results_are_gone, 120)
{
    struct tally t = live_with(&(struct control){ .no_directory_sync = true });

    T_EQ(harms(&t), t.harm[NO_RESULT]);
}
