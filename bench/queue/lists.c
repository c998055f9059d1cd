/* SPDX-License-Identifier: MIT */
/* lists.c - long lists by one submit, one after the other: each with a name, as of five files, or
 * all with the same. */
#include "../measure.h"
#include "ours.h"
#include "rows.h"

#define LISTS 5
#define ROUNDS 7

static int do_round(const struct bq_set *set, struct bq_load *load, int same, double took[LISTS])
{
    char directory[BQ_PATH];
    struct bq_ours o;
    int rc = 0;

    if (bq_disk_store(&set->disk, "lists", directory) || bq_ours_make(&o, directory))
        return -1;
    for (unsigned i = 0; i < LISTS && rc == 0; i++) {
        uint64_t begun;

        bq_load_fill(load, (uint64_t)i * set->list, set->list);
        o.list = same ? 0 : i;
        begun = b_now();
        rc = bq_ours_submit(&o, load, set->list, 0);
        took[i] = (double)(b_now() - begun) / 1e9;
    }
    bq_ours_close(&o);
    bq_disk_remove(directory);
    return rc;
}

int bq_lists(const struct bq_set *set, double *figures)
{
    double first[ROUNDS], growth[ROUNDS], same[ROUNDS], took[LISTS];
    const size_t rounds = b_effort(ROUNDS, 2);
    struct bq_load load;
    int rc = bq_load_open(&load, set->list);

    for (size_t i = 0; i < rounds && rc == 0; i++) {
        rc = do_round(set, &load, 0, took);
        first[i] = took[0];
        growth[i] = took[LISTS - 1] / took[0];
        if (rc == 0)
            rc = do_round(set, &load, 1, took);
        same[i] = took[LISTS - 1] / took[0];
    }
    bq_load_close(&load);
    if (rc)
        return rc;
    figures[BQ_list_10000_s_ROW] = b_median(first, rounds);
    figures[BQ_list_fifth_vs_first_ROW] = b_median(growth, rounds);
    figures[BQ_list_fifth_same_name_ROW] = b_median(same, rounds);
    return 0;
}
