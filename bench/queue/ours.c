/* SPDX-License-Identifier: MIT */
#include "ours.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../report.h"
#include "disk.h"

static int complain(const struct gpq_error *e, const char *what)
{
    return b_complain("store: %s: %s: %s", what, gpq_error_text(e->code), e->text);
}

int bq_ours_open(struct bq_ours *o, const char *directory)
{
    struct gpq_error e = { 0 };
    int rc;

    *o = (struct bq_ours){ .now = BQ_EPOCH };
    bq_tap_arm();
    rc = gpq_sqlite_open(&(struct gpq_options){ .directory = directory }, &o->store,
                         &e);
    o->db = bq_tap_take();
    if (rc)
        return complain(&e, "open");
    if (o->db)
        return 0;
    bq_ours_close(o);
    return b_complain("store: SQLite reported no connection");
}

int bq_ours_make(struct bq_ours *o, const char *directory)
{
    char file[BQ_PATH];

    if (bq_ours_open(o, directory))
        return -1;
    bq_ours_file(o, file);
    bq_ours_close(o);
    return bq_disk_log(file) ? -1 : bq_ours_open(o, directory);
}

void bq_ours_close(struct bq_ours *o)
{
    if (o->store)
        o->store->engine->close(o->store);
    free(o->tasks);
    free(o->placed);
    *o = (struct bq_ours){ 0 };
}

void bq_ours_file(const struct bq_ours *o, char *ret)
{
    (void)snprintf(ret, BQ_PATH, "%s", sqlite3_db_filename(o->db, "main"));
}

/* Makes room for n more tasks, and for what a submit of n places. */
static int reserve(struct bq_ours *o, uint32_t n)
{
    const uint32_t most = (o->n_tasks + n) * 2;
    struct gpq_placed *placed = realloc(o->placed, n * sizeof *placed);
    uint64_t *tasks;

    if (placed)
        o->placed = placed;
    if (placed && o->n_tasks + n <= o->most_tasks)
        return 0;
    tasks = realloc(o->tasks, most * sizeof *tasks);
    if (!tasks || !placed)
        return b_complain("out of memory");
    o->tasks = tasks;
    o->most_tasks = most;
    return 0;
}

static int begin(struct bq_ours *o)
{
    struct gpq_error e = { 0 };

    return o->store->engine->begin(o->store, &e) ? complain(&e, "begin") : 0;
}

static int commit(struct bq_ours *o)
{
    struct gpq_error e = { 0 };

    return o->store->engine->commit(o->store, &e) ? complain(&e, "commit") : 0;
}

int bq_ours_submit(struct bq_ours *o, const struct bq_load *load, uint32_t n, int aside)
{
    struct gpq_submitted got = { 0 };
    struct gpq_error e = { 0 };
    char request[40], name[40];
    const struct gpq_submit what = { .request = request,
                                     .name = name,
                                     .join = true,
                                     .specs = &load->spec,
                                     .n_specs = 1,
                                     .items = load->items,
                                     .n_items = n };

    (void)snprintf(name, sizeof name, "sweep-%u.txt", o->list);
    (void)snprintf(request, sizeof request, "7f3c9a52-%016llx", (unsigned long long)o->submits++);
    if (reserve(o, n) || begin(o))
        return -1;
    if (o->store->engine->submit(o->store, o->now++, &what, &got, o->placed, &e))
        return complain(&e, "submit");
    if (commit(o))
        return -1;
    if (got.count[GPQ_PLACED_ADDED] != n)
        return b_complain("store: submit: %u tasks were added, expected %u",
                          got.count[GPQ_PLACED_ADDED], n);
    for (uint32_t i = 0; i < n && !aside; i++)
        o->tasks[o->n_tasks++] = o->placed[i].task;
    return 0;
}

static int claim_one(struct bq_ours *o, uint64_t task)
{
    struct gpq_error e = { 0 };

    if (o->store->engine->claim(o->store, o->now++, task, BQ_DEVICES, BQ_RUN, &e) == 1)
        return 0;
    return complain(&e, "claim");
}

static int complete_one(struct bq_ours *o, uint64_t task)
{
    const struct gpq_end end = { .task = task,
                                 .attempt = 1,
                                 .outcome = GPQ_OUTCOME_SUCCESS,
                                 .started = o->now,
                                 .ended = o->now + 1,
                                 .stamp = bq_stamp };
    struct gpq_error e = { 0 };

    o->now++;
    if (o->store->engine->complete(o->store, &end, &e) == 1)
        return 0;
    return complain(&e, "complete");
}

int bq_ours_commit(struct bq_ours *o, enum bq_op op, const struct bq_load *load, uint32_t n)
{
    int rc;

    if (op == BQ_SUBMIT)
        return bq_ours_submit(o, load, n, 0);
    if (o->next[op] + n > (op == BQ_CLAIM ? o->n_tasks : o->next[BQ_CLAIM]))
        return b_complain("no %u tasks are left", n);
    rc = begin(o);
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        const uint64_t task = o->tasks[o->next[op]++];

        rc = op == BQ_CLAIM ? claim_one(o, task) : complete_one(o, task);
    }
    return rc ? rc : commit(o);
}

/* ---- The head of a shape ---- */

static int note_head(const struct gpq_task *t, void *user)
{
    struct bq_ours *o = user;

    o->tasks[o->n_tasks++] = t->id;
    return 0;
}

int bq_ours_claim_head(struct bq_ours *o, uint32_t shape, uint32_t n)
{
    struct gpq_error e = { 0 };

    if (reserve(o, n))
        return -1;
    o->n_tasks = o->next[BQ_CLAIM] = 0;
    if (o->store->engine->ready(o->store, shape, INT32_MAX, INT64_MIN, n, note_head, o, &e) < 0)
        return complain(&e, "ready");
    return bq_ours_commit(o, BQ_CLAIM, NULL, n);
}

struct wanted {
    const struct gpq_bytes *shape;
    uint32_t id;
};

static int match_shape(const struct gpq_shape *s, void *user)
{
    struct wanted *w = user;

    if (s->request.size != w->shape->size ||
        memcmp(s->request.data, w->shape->data, s->request.size) != 0)
        return 0;
    w->id = s->id;
    return 1;
}

uint32_t bq_ours_shape(struct bq_ours *o, const struct gpq_bytes *shape)
{
    struct wanted w = { .shape = shape };
    struct gpq_error e = { 0 };

    if (o->store->engine->shapes(o->store, match_shape, &w, &e) < 0)
        (void)complain(&e, "shapes");
    else if (!w.id)
        (void)b_complain("store: the shape has no ready task");
    return w.id;
}
