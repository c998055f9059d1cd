/* SPDX-License-Identifier: MIT */
/* blocked.c - claims while many tasks wait that may not start, or need other devices. */
#include <stdio.h>

#include "../measure.h"
#include "ours.h"
#include "rows.h"

#define CLAIMS 64
#define COMMITS 45

enum { EMPTY = 0, HELD = 1, OTHER = 2, STORES = 3 };

static const struct gpq_bytes other = { "{\"gpus\":8}", 10 };

/* Submits set->blocked tasks that are held, or that have another shape and a higher priority. */
static int fill(const struct bq_set *set, struct bq_ours *o, struct bq_load *load, int which)
{
    const struct gpq_spec spec = load->spec;
    uint32_t done = 0, n = 0;
    int rc = 0;

    load->spec.held = which == HELD;
    if (which == OTHER) {
        load->spec.shape = other;
        load->spec.priority = 10;
    }
    for (; done < set->blocked && rc == 0 && which != EMPTY; done += n) {
        n = set->blocked - done < load->most ? set->blocked - done : load->most;
        bq_load_fill(load, 1000000 + done, n);
        rc = bq_ours_submit(o, load, n, 1);
    }
    load->spec = spec;
    return rc;
}

static int open_store(const struct bq_set *set, struct bq_ours *o, struct bq_load *load, int which)
{
    char directory[BQ_PATH], name[16];
    uint32_t tasks = CLAIMS * COMMITS;
    int rc;

    (void)snprintf(name, sizeof name, "blocked%d", which);
    if (bq_disk_store(&set->disk, name, directory) || bq_ours_make(o, directory))
        return -1;
    rc = fill(set, o, load, which);
    for (uint32_t i = 0; i < tasks && rc == 0; i += CLAIMS) {
        bq_load_fill(load, i, CLAIMS);
        rc = bq_ours_submit(o, load, CLAIMS, 1);
    }
    return rc;
}

static int claim(struct bq_ours *stores, const uint32_t *shapes, double took[STORES][COMMITS])
{
    for (unsigned i = 0; i < COMMITS; i++)
        for (unsigned k = 0; k < STORES; k++) {
            const unsigned at = (i + k) % STORES;
            const uint64_t begun = b_now();

            if (bq_ours_claim_head(&stores[at], shapes[at], CLAIMS))
                return -1;
            took[at][i] = (double)(b_now() - begun) / 1e3;
        }
    return 0;
}

static double over_empty(double took[STORES][COMMITS], int which)
{
    double ratios[COMMITS];

    for (unsigned i = 0; i < COMMITS; i++)
        ratios[i] = took[which][i] / took[EMPTY][i];
    return b_median(ratios, COMMITS);
}

int bq_blocked(const struct bq_set *set, double *figures)
{
    struct bq_ours stores[STORES] = { 0 };
    uint32_t shapes[STORES] = { 0 };
    double took[STORES][COMMITS];
    struct bq_load load;
    int rc = bq_load_open(&load, set->list > CLAIMS ? set->list : CLAIMS);

    for (int i = 0; i < STORES && rc == 0; i++) {
        rc = open_store(set, &stores[i], &load, i);
        if (rc == 0)
            shapes[i] = bq_ours_shape(&stores[i], &load.spec.shape);
        if (rc == 0 && !shapes[i])
            rc = -1;
    }
    if (rc == 0)
        rc = claim(stores, shapes, took);
    if (rc == 0) {
        figures[BQ_claim_64_behind_held_ROW] = over_empty(took, HELD);
        figures[BQ_claim_64_behind_ready_ROW] = over_empty(took, OTHER);
        figures[BQ_claim_64_empty_us_ROW] = b_median(took[EMPTY], COMMITS);
    }
    for (int i = 0; i < STORES; i++)
        if (stores[i].store)
            bq_ours_close(&stores[i]);
    bq_load_close(&load);
    return rc;
}
