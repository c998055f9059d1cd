/* SPDX-License-Identifier: MIT */
/* warm.c - from the submit of a task to its start in a worker that is ready: the agent commits the
 * submit and then the claim, so that two syncs lie between.
 *
 * The worker is this program (bq_warm_worker), and its result is the time of its call. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <gpudispatch/gpudispatch.h>

#include "../measure.h"
#include "../ours.h"
#include "agent.h"
#include "ours.h"
#include "rows.h"

#define ROUNDS 200
#define FIRST 200 /* trips before: they fill the log of the store, which then stops growing */

static int process(gpud_task *t, void *state)
{
    char text[24];
    const int n = snprintf(text, sizeof text, "%" PRIu64, b_now());

    (void)state;
    return gpud_task_result_set(t, text, (size_t)n);
}

static const struct gpud_definition warm[] = { GPUD_DEFINITION("warm", NULL, process, NULL) };

int bq_warm_worker(void)
{
    return gpud_init(warm, 1, NULL) ? 1 : 2; /* in a worker it does not return */
}

static int open_agent(const struct bq_set *set, struct bq_agent *a)
{
    char program[BQ_PATH], classes[BQ_PATH + 128];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);

    if (n < 0)
        return b_complain("/proc/self/exe: no link");
    program[n] = '\0';
    (void)snprintf(classes, sizeof classes,
                   "[class warm]\nworker = '%s' --queue " B_WORKER_ARGUMENT "\n"
                   "definition = warm\nmin-workers = 1\n",
                   program);
    return bq_agent_open(a, &set->disk, "warm", "fake:1", classes);
}

/* Reads the result of the one task of a batch. */
static int read_start(struct bq_agent *a, const char *batch, uint64_t *ret)
{
    json_t *reply = bq_agent_ask(a, json_pack("{s:s, s:s}", "do", "results", "batch", batch));
    const json_t *row = json_array_get(json_object_get(reply, "results"), 0);
    const char *text = json_string_value(json_object_get(row, "text"));

    *ret = text ? strtoull(text, NULL, 10) : 0;
    json_decref(reply);
    return *ret ? 0 : b_complain("batch %s has no result", batch);
}

/* Times are in us. */
static int trip(struct bq_agent *a, double *ret_reply, double *ret_start)
{
    json_t *spec = json_pack("{s:s}", "class", "warm");
    json_t *tasks = json_pack("[{s:s}]", "payload", "now");
    const uint64_t begun = b_now();
    uint64_t started;
    char batch[16];

    if (bq_agent_submit(a, spec, tasks, batch))
        return -1;
    *ret_reply = (double)(b_now() - begun) / 1e3;
    if (bq_agent_wait(a, batch) || read_start(a, batch, &started))
        return -1;
    *ret_start = (double)(started - begun) / 1e3;
    return 0;
}

/* The same two commits by a store without an agent. */
static int commit(struct bq_ours *o, struct bq_load *load, uint64_t line, double *ret_us)
{
    uint64_t begun;
    int rc;

    bq_load_fill(load, line, 1);
    begun = b_now();
    rc = bq_ours_commit(o, BQ_SUBMIT, load, 1);
    if (rc == 0)
        rc = bq_ours_commit(o, BQ_CLAIM, load, 1);
    *ret_us = (double)(b_now() - begun) / 1e3;
    return rc;
}

static int open_store(const struct bq_set *set, struct bq_ours *o, struct bq_load *load)
{
    char directory[BQ_PATH];

    return bq_load_open(load, 1) || bq_disk_store(&set->disk, "commits", directory)
               ? -1
               : bq_ours_make(o, directory);
}

int bq_warm(const struct bq_set *set, double *figures)
{
    double reply[ROUNDS], start[ROUNDS], commits[ROUNDS], beyond[ROUNDS];
    const size_t rounds = b_effort(ROUNDS, 5), first = b_effort(FIRST, 5);
    struct bq_ours store = { 0 };
    struct bq_load load = { 0 };
    struct bq_agent a;
    int rc = open_agent(set, &a);

    if (rc == 0)
        rc = open_store(set, &store, &load);
    for (size_t i = 0; i < first && rc == 0; i++)
        rc = trip(&a, &reply[0], &start[0]);
    for (size_t i = 0; i < rounds && rc == 0; i++) {
        rc = commit(&store, &load, i, &commits[i]);
        if (rc == 0)
            rc = trip(&a, &reply[i], &start[i]);
        beyond[i] = start[i] - commits[i];
    }
    bq_agent_kill(&a, NULL);
    if (store.store)
        bq_ours_close(&store);
    bq_load_close(&load);
    if (rc)
        return rc;
    figures[BQ_start_us_ROW] = b_median(start, rounds);
    figures[BQ_start_reply_us_ROW] = b_median(reply, rounds);
    figures[BQ_start_commits_us_ROW] = b_median(commits, rounds);
    figures[BQ_start_beyond_us_ROW] = b_median(beyond, rounds);
    figures[BQ_start_beyond_p10_us_ROW] =
        b_percentile(start, rounds, 0.1) - b_percentile(commits, rounds, 0.1);
    return 0;
}
