/* SPDX-License-Identifier: MIT */
/* many.c - a store with many tasks: how long it takes to open, its memory, and what it costs.
 *
 * Each of the three cells is a process of its own: the second has the memory of an agent that has
 * just started. */
#include <stdio.h>
#include <unistd.h>

#include "../measure.h"
#include "../processes.h"
#include "ours.h"
#include "rows.h"

#define FEW 1000
#define MIB (1024.0 * 1024)
#define ROUNDS 7
#define SIZES 2
#define MANY "many"

static void directory_of(const struct bq_set *set, char *ret)
{
    (void)snprintf(ret, BQ_PATH, "%s/" MANY, set->disk.folder);
}

static int open_again(const char *directory, struct bq_ours *o, double *ret_s)
{
    const uint64_t begun = b_now();
    const int rc = bq_ours_open(o, directory);

    *ret_s = (double)(b_now() - begun) / 1e9;
    /* Requests continue where the first process ended. */
    o->submits = 1000000;
    o->now += B_S;
    o->list = UINT32_MAX;
    return rc;
}

int bq_many_fill(const struct bq_set *set, double *figures)
{
    char directory[BQ_PATH];
    uint32_t done = 0, n = 0;
    struct bq_load load;
    struct bq_ours o;
    int rc;

    if (bq_disk_store(&set->disk, MANY, directory) || bq_load_open(&load, set->list))
        return -1;
    rc = bq_ours_open(&o, directory);
    for (; done < set->tasks && rc == 0; done += n) {
        uint64_t begun;

        n = set->tasks - done < set->list ? set->tasks - done : set->list;
        bq_load_fill(&load, done, n);
        o.list = done / set->list;
        begun = b_now();
        rc = bq_ours_submit(&o, &load, n, 1);
        figures[BQ_many_list_s_ROW] = (double)(b_now() - begun) / 1e9;
    }
    if (rc == 0)
        bq_ours_close(&o);
    bq_load_close(&load);
    figures[BQ_many_bytes_per_task_ROW] = (double)bq_disk_bytes(directory) / set->tasks;
    return rc;
}

int bq_many_open(const struct bq_set *set, double *figures)
{
    char directory[BQ_PATH];
    struct bq_ours o;

    directory_of(set, directory);
    bq_disk_forget(directory);
    if (open_again(directory, &o, &figures[BQ_open_many_s_ROW]))
        return -1;
    figures[BQ_open_many_rss_mib_ROW] = (double)b_resident(getpid()) / MIB;
    bq_ours_close(&o);
    if (open_again(directory, &o, &figures[BQ_open_many_warm_s_ROW]))
        return -1;
    bq_ours_close(&o);
    return 0;
}

/* ---- Its commits beside those of a small store ---- */

enum { MUCH = 0, LITTLE = 1, STORES = 2 };

static const uint32_t sizes[SIZES] = { 1, 64 };
static const size_t commits[SIZES] = { 60, 12 };

struct use {
    const struct bq_set *set;
    struct bq_load load;
    uint64_t line;
    struct bq_ours many;
    double ratios[SIZES][BQ_OPS][ROUNDS];
};

/* Opens a store with FEW tasks, which are first in line. */
static int open_few(const struct bq_set *set, struct bq_ours *o, struct bq_load *load)
{
    char directory[BQ_PATH];

    if (bq_disk_store(&set->disk, "few", directory) || bq_ours_make(o, directory))
        return -1;
    bq_load_fill(load, 0, FEW);
    return bq_ours_submit(o, load, FEW, 1);
}

static int do_op(struct use *u, struct bq_ours *few, unsigned size, enum bq_op op,
                 double took[STORES])
{
    struct bq_ours *const stores[STORES] = { &u->many, few };
    const uint32_t n = sizes[size];

    for (unsigned i = 0; i < commits[size]; i++) {
        if (op == BQ_SUBMIT) {
            bq_load_fill(&u->load, u->line, n);
            u->line += n;
        }
        for (unsigned k = 0; k < STORES; k++) {
            const unsigned at = (i + k) % STORES;
            const uint64_t begun = b_now();

            if (bq_ours_commit(stores[at], op, &u->load, n))
                return -1;
            took[at] += (double)(b_now() - begun);
        }
    }
    return 0;
}

static int do_round(struct use *u, size_t round)
{
    struct bq_ours few = { 0 };
    int rc = open_few(u->set, &few, &u->load);

    for (unsigned size = 0; size < SIZES; size++)
        for (int op = 0; op < BQ_OPS && rc == 0; op++) {
            double took[STORES] = { 0 };

            rc = do_op(u, &few, size, (enum bq_op)op, took);
            u->ratios[size][op][round] = took[MUCH] / took[LITTLE];
        }
    if (few.store)
        bq_ours_close(&few);
    return rc;
}

/* Opens the large store with a log of full length, as the small one has it. */
static int open_many(const struct bq_set *set, struct bq_ours *o)
{
    char directory[BQ_PATH], file[BQ_PATH];
    double seconds;

    directory_of(set, directory);
    bq_disk_read(directory);
    if (open_again(directory, o, &seconds))
        return -1;
    bq_ours_file(o, file);
    bq_ours_close(o);
    return bq_disk_log(file) ? -1 : open_again(directory, o, &seconds);
}

/* Returns the time of the first submit, in s: it may read what later ones find in memory. */
static int submit_first(struct use *u, double *ret_s)
{
    const uint64_t begun = b_now();
    int rc;

    bq_load_fill(&u->load, u->line, 64);
    u->line += 64;
    rc = bq_ours_submit(&u->many, &u->load, 64, 1);
    *ret_s = (double)(b_now() - begun) / 1e9;
    return rc;
}

int bq_many_use(const struct bq_set *set, double *figures)
{
    const size_t rounds = b_effort(ROUNDS, 2);
    struct use u = { .set = set, .line = UINT64_C(1000000000) };
    int rc = bq_load_open(&u.load, FEW);

    if (rc == 0)
        rc = open_many(set, &u.many);
    if (rc == 0)
        rc = submit_first(&u, &figures[BQ_many_first_submit_s_ROW]);
    for (size_t i = 0; i < rounds && rc == 0; i++)
        rc = do_round(&u, i);
    figures[BQ_many_rss_mib_ROW] = (double)b_resident(getpid()) / MIB;
    for (unsigned size = 0; size < SIZES && rc == 0; size++)
        for (unsigned op = 0; op < BQ_OPS; op++)
            figures[BQ_submit_1_many_vs_few_ROW + size * BQ_OPS + op] =
                b_median(u.ratios[size][op], rounds);
    if (u.many.store)
        bq_ours_close(&u.many);
    bq_load_close(&u.load);
    return rc;
}
