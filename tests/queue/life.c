/* SPDX-License-Identifier: MIT */
/* life.c - a store that works on a simulated disk, and the judge of what is left of it. */
#include "life.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "draw.h"
#include "dump.h"
#include "harness.h"
#include "recount.h"

/* Pages of the WAL before a checkpoint: far fewer than usual, so that cuts and faults hit some. */
enum { CHECKPOINT = 60 };
#define STATE "/state"
#define RESULTS STATE "/results"

const char *const harm_names[HARMS] = {
    [NO_HARM] = "no harm",
    [LOST] = "lost",
    [TORN] = "torn",
    [UNCOUNTED] = "uncounted",
    [UNRECORDED] = "unrecorded",
    [NO_RESULT] = "no result",
    [UNREADABLE] = "unreadable",
    [STUCK] = "stuck",
};

/* ---- A store at work ---- */

static void make_directories(struct disk *d)
{
    static const char *const synced[] = { "/", STATE, RESULTS };

    T_EQ(disk_mkdir(d, STATE), 0);
    T_EQ(disk_mkdir(d, RESULTS), 0);
    for (size_t i = 0; i < T_LENGTH(synced); i++) {
        int fd = disk_open(d, synced[i], O_RDONLY);
        T_EQ(disk_sync(d, fd), 0);
        T_EQ(disk_close(d, fd), 0);
    }
}

/* SQLite calls this for each file that it opens. */
static int checkpoint_often(sqlite3 *file, const char **ret_why, const void *routines)
{
    (void)ret_why;
    (void)routines;
    return sqlite3_wal_autocheckpoint(file, CHECKPOINT);
}

struct life *life_make(const struct control *c, uint64_t seed)
{
    struct life *l = calloc(1, sizeof(*l));

    T_CHECK(l);
    l->control = *c;
    l->seed = seed;
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
    make_directories(l->disk);
    T_EQ(sqlite3_auto_extension((void (*)(void))checkpoint_often), SQLITE_OK); /* once */
    return l;
}

void life_free(struct life *l)
{
    life_close(l);
    text_free(&l->kept);
    text_free(&l->work.shown);
    disk_free(l->disk);
    free(l);
}

static int open_store(struct life *l, struct disk *d, struct gpq_store **ret, struct gpq_error *e)
{
    struct gpq_options options = { .directory = STATE,
                                   .vfs = diskvfs_use(d, draw(&l->seed), l->control.syncs),
                                   .results_inline = 1024 };
    int rc = gpq_sqlite_open(&options, ret, e);

    if (rc < 0)
        *ret = NULL;
    return rc;
}

int life_open(struct life *l, struct gpq_error *e)
{
    l->in_flight = l->arrived = false;
    return open_store(l, l->disk, &l->work.store, e);
}

void life_close(struct life *l)
{
    if (l->work.store)
        l->work.store->engine->close(l->work.store);
    l->work.store = NULL;
}

void life_show(struct life *l)
{
    struct gpq_error e = { 0 };

    if (l->kept_known)
        return;
    text_free(&l->kept);
    T_EQ(dump(l->work.store, &l->kept, &e), 0);
    l->kept_known = true;
}

int life_transact(struct life *l, struct gpq_error *e)
{
    int rc;

    if (l->work.show)
        life_show(l);
    text_free(&l->work.shown);
    rc = work_transaction(&l->work, e);
    if (rc == 0) {
        text_free(&l->kept);
        l->kept = l->work.shown;
        l->work.shown = (struct text){ 0 };
        l->kept_known = l->work.show;
    } else if (rc < 0) {
        T_CHECK(l->kept_known);
        l->in_flight = l->work.shown.size > 0;
    }
    return rc;
}

void life_cut(struct life *l)
{
    struct disk *after = disk_cut(l->disk, draw(&l->seed));

    life_close(l);
    disk_free(l->disk);
    l->disk = l->diskfiles.disk = after;
}

/* ---- The judge ---- */

static enum harm harm_of(struct life *l, int rc, enum harm harm, const char *text,
                         const struct gpq_error *e)
{
    if (rc == 0)
        return NO_HARM;
    (void)snprintf(l->why, sizeof(l->why), "%d, %.250s", rc, rc < 0 ? e->text : text);
    return rc < 0 ? UNREADABLE : harm;
}

/* Lost, if the ledger of what was acknowledged differs, too. */
static enum harm neither_state(struct life *l, struct gpq_store *s, const struct text *there)
{
    struct gpq_error e = { 0 };
    char text[256] = "";
    enum harm harm = harm_of(l, ledger_compare(&l->ledger.kept, s, text, &e), LOST, text, &e);

    text_print_difference(&l->kept, there);
    if (l->in_flight)
        text_print_difference(&l->work.shown, there);
    if (harm != NO_HARM)
        return harm;
    return harm_of(l, 1, TORN, "the state is neither of the two", &e);
}

/* Decides whether the transaction in flight has arrived, and keeps or drops it. */
static enum harm judge_state(struct life *l, struct gpq_store *s)
{
    struct gpq_error e = { 0 };
    struct text there = { 0 };
    enum harm harm = harm_of(l, dump(s, &there, &e), UNREADABLE, "", &e);

    l->arrived = l->in_flight && text_same(&there, &l->work.shown);
    if (harm == NO_HARM && !l->arrived && !text_same(&there, &l->kept))
        harm = neither_state(l, s, &there);
    if (l->arrived)
        ledger_keep(&l->ledger);
    else
        ledger_drop(&l->ledger);
    text_free(&l->kept);
    l->kept = there;
    l->kept_known = true;
    return harm;
}

static enum harm judge_rows(struct life *l, struct gpq_store *s, struct disk *d)
{
    struct diskfiles user = { .disk = d };
    struct gpq_files files = diskfiles(&user);
    struct ledger *g = &l->ledger;
    struct gpq_error e = { 0 };
    char text[256] = "";
    enum harm harm = harm_of(l, ledger_compare(&g->kept, s, text, &e), LOST, text, &e);

    if (harm == NO_HARM)
        harm = harm_of(l, recount(s, g->kept.purged, &e), UNCOUNTED, "see above", &e);
    if (harm == NO_HARM)
        harm = harm_of(l, ledger_starts(g, s, text, &e), UNRECORDED, text, &e);
    if (harm == NO_HARM)
        harm =
            harm_of(l, ledger_results(&g->kept, s, &files, RESULTS, text, &e), NO_RESULT, text, &e);
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
    return harm_of(l, rc, STUCK, "", &e) == NO_HARM ? NO_HARM : STUCK;
}

enum harm life_judge(struct life *l, struct disk *d)
{
    struct gpq_store *s;
    struct gpq_error e = { 0 };
    enum harm harm = harm_of(l, open_store(l, d, &s, &e), UNREADABLE, "", &e);

    if (harm == NO_HARM)
        harm = judge_state(l, s);
    if (harm == NO_HARM)
        harm = judge_rows(l, s, d);
    if (harm == NO_HARM)
        harm = judge_work(l, s);
    if (s)
        s->engine->close(s);
    return harm;
}
