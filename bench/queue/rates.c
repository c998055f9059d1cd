/* SPDX-License-Identifier: MIT */
/* rates.c - submits, claims and outcomes per second: the store, the bare loop, and one table.
 *
 * A round begins with empty files.  The three sides take turns commit by commit, so that all see
 * the same disk and the same neighbours; a round's ratio is that of the sums, with all that a side
 * does now and then, such as checkpoints. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../measure.h"
#include "bare.h"
#include "ours.h"
#include "rows.h"
#include "same.h"
#include "table.h"

#define NAME 64 /* bytes of a file's name */
#define SIZES 3
#define ROUNDS 15

static const uint32_t sizes[SIZES] = { 1, 64, 1024 };
static const size_t commits[SIZES] = { 120, 24, 6 };

enum side { OURS = 0, BARE = 1, TABLE = 2, SIDES = 3 };
enum figure { RATE, BARE_RATE, TABLE_RATE, VS_BARE, VS_TABLE, CPU, CPU_VS_BARE, WRITTEN, FIGURES };

struct rates {
    const struct bq_set *set;
    struct bq_load load;
    struct bq_record record;
    char empty[BQ_PATH]; /* the file of an empty store */
    char name[NAME];     /* of that file */
    uint32_t n;          /* tasks per commit */
    size_t commits;
    size_t rounds;
    double wall[BQ_OPS][SIDES][ROUNDS], cpu[BQ_OPS][SIDES][ROUNDS]; /* ns */
    double written[BQ_OPS];                                         /* rows per task */
};

struct sides {
    struct bq_ours ours;
    struct bq_bare bare;
    struct bq_table table;
};

/* Commits before the measured ones, whose tables and statements are not there yet. */
#define WARM 1

static void fill(struct rates *r, enum bq_op op, size_t commit)
{
    if (op == BQ_SUBMIT)
        bq_load_fill(&r->load, commit * r->n, r->n);
}

/* ---- The record ---- */

static int record_op(struct rates *r, struct bq_ours *o, enum bq_op op)
{
    long changes = 0;

    for (size_t i = 0; i < r->commits + WARM; i++) {
        long n;

        fill(r, op, i);
        if (bq_ours_commit(o, op, &r->load, r->n) || (n = bq_record_cut(&r->record)) < 0)
            return -1;
        changes += i < WARM ? 0 : n;
    }
    r->written[op] = (double)changes / ((double)r->commits * r->n);
    return 0;
}

/* Keeps the file of a new store, then records what the operations write. */
static int record(struct rates *r)
{
    char directory[BQ_PATH], file[BQ_PATH];
    struct bq_ours o;
    int rc;

    if (bq_disk_store(&r->set->disk, "record", directory) || bq_ours_open(&o, directory))
        return -1;
    bq_ours_file(&o, file);
    bq_ours_close(&o);
    (void)snprintf(r->name, NAME, "%s", strrchr(file, '/') + 1);
    (void)snprintf(r->empty, BQ_PATH, "%s/empty", r->set->disk.folder);
    if (bq_disk_copy(file, r->empty) || bq_ours_open(&o, directory))
        return -1;
    rc = bq_record_open(&r->record, o.db);
    for (int op = 0; op < BQ_OPS && rc == 0; op++)
        rc = record_op(r, &o, (enum bq_op)op);
    bq_record_end(&r->record, o.db);
    bq_ours_close(&o);
    bq_disk_remove(directory);
    return rc;
}

/* ---- A round ---- */

/* Writes the path of a side's file, in a directory of its own, with a log beside it. */
static int make_file(const struct rates *r, const char *side, sqlite3 *settings, char file[BQ_PATH])
{
    char directory[BQ_PATH];

    if (bq_disk_store(&r->set->disk, side, directory))
        return -1;
    (void)snprintf(file, BQ_PATH, "%.*s/%s", BQ_PATH - NAME - 1, directory, r->name);
    if (strcmp(side, "table") == 0 ? bq_table_make(file, settings) : bq_disk_copy(r->empty, file))
        return -1;
    return bq_disk_log(file);
}

static int open_sides(struct rates *r, struct sides *s)
{
    char file[BQ_PATH];

    memset(s, 0, sizeof *s);
    if (make_file(r, "ours", NULL, file))
        return -1;
    *strrchr(file, '/') = '\0';
    if (bq_ours_open(&s->ours, file))
        return -1;
    if (make_file(r, "bare", s->ours.db, file) ||
        bq_bare_open(&s->bare, &r->record, file, s->ours.db))
        return -1;
    return make_file(r, "table", s->ours.db, file) ? -1
                                                   : bq_table_open(&s->table, file, s->ours.db);
}

static void close_sides(struct rates *r, struct sides *s)
{
    char directory[BQ_PATH];

    if (s->ours.store)
        bq_ours_close(&s->ours);
    if (s->bare.db)
        bq_bare_close(&s->bare);
    if (s->table.db)
        bq_table_close(&s->table);
    (void)bq_disk_store(&r->set->disk, "ours", directory);
    (void)bq_disk_store(&r->set->disk, "bare", directory);
    (void)bq_disk_store(&r->set->disk, "table", directory);
}

static int commit(struct rates *r, struct sides *s, enum side side, enum bq_op op)
{
    if (side == OURS)
        return bq_ours_commit(&s->ours, op, &r->load, r->n);
    if (side == BARE)
        return bq_bare_commit(&s->bare);
    return bq_table_commit(&s->table, op, &r->load, r->n);
}

static int do_op(struct rates *r, struct sides *s, size_t round, enum bq_op op)
{
    for (size_t i = 0; i < r->commits + WARM; i++) {
        fill(r, op, i);
        for (size_t k = 0; k < SIDES; k++) {
            const enum side side = (enum side)((i + k + round) % SIDES);
            const uint64_t begun = b_now(), cpu = b_cpu();

            if (commit(r, s, side, op))
                return -1;
            if (i < WARM)
                continue;
            r->cpu[op][side][round] += (double)(b_cpu() - cpu);
            r->wall[op][side][round] += (double)(b_now() - begun);
        }
    }
    return 0;
}

static int do_round(struct rates *r, size_t round)
{
    struct sides s;
    int rc = open_sides(r, &s);

    for (int op = 0; op < BQ_OPS && rc == 0; op++)
        rc = do_op(r, &s, round, (enum bq_op)op);
    if (rc == 0 && round == 0)
        rc = bq_same(s.ours.db, s.bare.db);
    close_sides(r, &s);
    return rc;
}

/* ---- The figures ---- */

/* Returns the median of above over below, round by round. */
static double ratio(const double *above, const double *below, size_t rounds)
{
    double ratios[ROUNDS];

    for (size_t i = 0; i < rounds; i++)
        ratios[i] = above[i] / below[i];
    return b_median(ratios, rounds);
}

static double middle(const double *values, size_t rounds)
{
    double copy[ROUNDS];

    memcpy(copy, values, rounds * sizeof *copy);
    return b_median(copy, rounds);
}

static void report(const struct rates *r, enum bq_op op, double *figures)
{
    const double tasks = (double)r->commits * r->n;
    const size_t n = r->rounds;

    for (unsigned side = 0; side < SIDES; side++)
        figures[RATE + side] = tasks * 1e9 / middle(r->wall[op][side], n);
    figures[VS_BARE] = ratio(r->wall[op][BARE], r->wall[op][OURS], n);
    figures[VS_TABLE] = ratio(r->wall[op][TABLE], r->wall[op][OURS], n);
    figures[CPU] = middle(r->cpu[op][OURS], n) / tasks / 1e3;
    figures[CPU_VS_BARE] = ratio(r->cpu[op][OURS], r->cpu[op][BARE], n);
    figures[WRITTEN] = r->written[op];
}

static int measure(const struct bq_set *set, unsigned size, double *figures)
{
    struct rates r = { .set = set,
                       .n = sizes[size],
                       .commits = b_effort(commits[size], 2),
                       .rounds = b_effort(ROUNDS, 2) };
    int rc = bq_load_open(&r.load, r.n);

    if (rc == 0)
        rc = record(&r);
    for (size_t round = 0; round < r.rounds && rc == 0; round++)
        rc = do_round(&r, round);
    for (int op = 0; op < BQ_OPS && rc == 0; op++)
        report(&r, (enum bq_op)op, figures + (size_t)op * FIGURES);
    bq_record_close(&r.record);
    bq_load_close(&r.load);
    return rc;
}

int bq_rates(const struct bq_set *set, double *figures)
{
    int rc = 0;

    for (unsigned size = 0; size < SIZES && rc == 0; size++)
        rc = measure(set, size, figures + BQ_submit_1_ROW + (size_t)size * BQ_OPS * FIGURES);
    return rc;
}
