/* SPDX-License-Identifier: MIT */
/* submit.c - adds the tasks of a submit, or joins them. */
#include <stdlib.h>
#include <string.h>

#include "queue/sqlite/counts.h"
#include "queue/sqlite/join.h"
#include "queue/sqlite/ops.h"
#include "queue/sqlite/round.h"
#include "queue/sqlite/settle.h"
#include "queue/sqlite/spec.h"

/* A spec of the submit: its row is made for the first item that needs it. */
struct used {
    struct gpq_policy plan;
    int64_t added;           /* tasks that the uses of its row do not count yet */
    struct gpq_after *after; /* sorted, each once */
    uint32_t n_after;
};

struct work {
    struct gpq_db *db;
    const struct gpq_submit *what;
    uint64_t now;
    const char *name; /* of the batch; with append a copy */
    char *name_copy;
    struct gpq_tally *batch;
    struct used *used;
    struct gpq_submitted ret;
    struct gpq_placed *placed; /* the caller sees both when all is done */
    bool savepoint;
    struct gpq_error *e;
};

/* ---- A request that was committed before ---- */

static void placed_before(sqlite3_stmt *st, const struct gpq_submit *what,
                          struct gpq_placed *placed)
{
    struct gpq_bytes kept = gpq_column_bytes(st, 6);
    uint64_t first = (uint64_t)sqlite3_column_int64(st, 5);
    for (uint32_t i = 0; i < what->n_items; i++)
        placed[i] = (struct gpq_placed){ .task = kept.size == 0 ? first + i : 0 };
    if (kept.size != 0 && kept.size == what->n_items * sizeof(*placed))
        memcpy(placed, kept.data, kept.size);
}

/* 1: *ret is the answer that was given. */
static int repeated(struct gpq_db *db, const struct gpq_submit *what, struct gpq_submitted *ret,
                    struct gpq_placed *placed, struct gpq_error *e)
{
    if (!what->request)
        return 0;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_REQUEST_READ);
    gpq_bind_text(st, 1, what->request);
    int code = gpq_db_next(db, st, e);
    if (code <= 0)
        return code;
    *ret =
        (struct gpq_submitted){ .batch = (uint32_t)sqlite3_column_int64(st, 0), .repeated = true };
    for (int i = 0; i < GPQ_HOWS; i++)
        ret->count[i] = (uint32_t)sqlite3_column_int64(st, 1 + i);
    if (placed)
        placed_before(st, what, placed);
    sqlite3_reset(st);
    return 1;
}

static int keep_answer(struct work *w)
{
    const struct gpq_submit *what = w->what;
    if (!what->request)
        return w->db->failed;
    const struct gpq_submitted *ret = &w->ret;
    bool all_added = ret->count[GPQ_PLACED_ADDED] == what->n_items && what->n_items != 0;
    sqlite3_stmt *st = gpq_db_use(w->db, GPQ_SQL_REQUEST_ADD);
    gpq_bind_text(st, 1, what->request);
    gpq_bind(st, 2, (int64_t)w->now);
    gpq_bind(st, 3, ret->batch);
    for (int i = 0; i < GPQ_HOWS; i++)
        gpq_bind(st, 4 + i, ret->count[i]);
    gpq_bind(st, 8, all_added ? (int64_t)w->placed[0].task : 0);
    gpq_bind_some(
        st, 9, (struct gpq_bytes){ w->placed, all_added ? 0 : what->n_items * sizeof(*w->placed) });
    return gpq_db_run(w->db, st, w->e);
}

/* ---- Before anything is written ---- */

static int by_source(const void *left, const void *right)
{
    const struct gpq_after *a = left, *b = right;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return (a->condition > b->condition) - (a->condition < b->condition);
}

static int check_source(struct work *w, uint64_t id)
{
    int code = 0;
    if (GPQ_NUMBER_OF(id) == 0) {
        if (w->what->batch != 0 && GPQ_BATCH_OF(id) == w->what->batch)
            return gpq_fail(w->e, GPQ_EREFUSED, "--after %u: a batch cannot wait for itself",
                            GPQ_BATCH_OF(id));
        if (!gpq_tally(w->db, GPQ_BATCH_OF(id), &code, w->e) && code == GPQ_ENOTFOUND)
            return gpq_fail(w->e, code, "--after %u: there is no batch with this id",
                            GPQ_BATCH_OF(id));
        return code;
    }
    struct gpq_row r;
    code = gpq_row_read(w->db, id, &r, w->e);
    if (code == GPQ_ENOTFOUND)
        return gpq_fail(w->e, code, "--after %u.%u: there is no task with this id",
                        GPQ_BATCH_OF(id), GPQ_NUMBER_OF(id));
    return code;
}

static int check_spec(struct work *w, uint32_t index)
{
    const struct gpq_spec *spec = &w->what->specs[index];
    struct used *u = &w->used[index];
    int code = gpq_spec_check(spec, index, w->e);
    if (code < 0 || spec->n_after == 0)
        return code;
    int followed = w->batch ? gpq_tally_followed(w->db, w->batch, w->e) : 0;
    if (followed < 0)
        return followed;
    if (followed)
        return gpq_fail(w->e, GPQ_EREFUSED,
                        "batch %u: tasks wait for its end, so that no task with --after can be "
                        "appended",
                        w->batch->id);
    u->after = malloc(spec->n_after * sizeof(*u->after));
    if (!u->after)
        return gpq_db_no_memory(w->db, w->e);
    memcpy(u->after, spec->after, spec->n_after * sizeof(*u->after));
    qsort(u->after, spec->n_after, sizeof(*u->after), by_source);
    for (uint32_t i = 0; i < spec->n_after; i++)
        if (u->n_after == 0 || by_source(&u->after[i], &u->after[u->n_after - 1]) != 0)
            u->after[u->n_after++] = u->after[i];
    for (uint32_t i = 0; code == 0 && i < u->n_after; i++)
        code = check_source(w, u->after[i].id);
    return code;
}

static int check_append(struct work *w)
{
    int code = 0;
    w->batch = gpq_tally(w->db, w->what->batch, &code, w->e);
    if (!w->batch)
        return code;
    if (!(w->batch->flags & GPQ_BATCH_OPEN))
        return gpq_fail(w->e, GPQ_EREFUSED,
                        "batch %u is closed: submit a new one with the same name", w->what->batch);
    sqlite3_stmt *st = gpq_db_use(w->db, GPQ_SQL_BATCH_READ);
    gpq_bind(st, 1, w->what->batch);
    code = gpq_db_next(w->db, st, w->e);
    if (code <= 0)
        return code;
    const char *name = gpq_column_text(st, 1);
    w->name_copy = name ? strdup(name) : NULL;
    bool lost = name && !w->name_copy;
    w->name = w->name_copy;
    sqlite3_reset(st);
    return lost ? gpq_db_no_memory(w->db, w->e) : 0;
}

static int check(struct work *w)
{
    const struct gpq_submit *what = w->what;
    int code = 0;
    if (what->batch != 0)
        code = check_append(w);
    if (code < 0)
        return code;
    uint32_t numbers = w->batch ? w->batch->numbers : 0;
    if (what->n_items > (uint32_t)INT32_MAX - numbers)
        return gpq_fail(w->e, GPQ_EINVAL, "a batch of %llu tasks, the maximum is %d",
                        (unsigned long long)numbers + what->n_items, INT32_MAX);
    for (uint32_t i = 0; i < what->n_items; i++)
        if (what->items[i].spec >= what->n_specs)
            return gpq_join_fail(w->e, GPQ_EINVAL, &what->items[i],
                                 "items[%u].spec is %u, there are %u specs", i, what->items[i].spec,
                                 what->n_specs);
    w->used = calloc(what->n_specs != 0 ? what->n_specs : 1, sizeof(*w->used));
    w->placed = calloc(what->n_items != 0 ? what->n_items : 1, sizeof(*w->placed));
    if (!w->used || !w->placed)
        return gpq_db_no_memory(w->db, w->e);
    for (uint32_t i = 0; code == 0 && i < what->n_specs; i++)
        code = check_spec(w, i);
    return code;
}

/* ---- The batch ---- */

static int begin_batch(struct work *w)
{
    const struct gpq_submit *what = w->what;
    int code = 0;
    uint32_t id = what->batch;
    if (id == 0) {
        sqlite3_stmt *st = gpq_db_use(w->db, GPQ_SQL_BATCH_MAKE);
        gpq_bind_text(st, 1, what->name);
        gpq_bind(st, 2, (int64_t)w->now);
        gpq_bind(st, 3, what->at_once);
        gpq_bind(st, 4, what->max_fails);
        gpq_bind(st, 5, what->max_fails_percent);
        gpq_bind(st, 6,
                 (what->open ? GPQ_BATCH_OPEN : 0) | (what->fails_limited ? GPQ_BATCH_FAILS : 0) |
                     (what->notify ? GPQ_BATCH_NOTIFY : 0));
        gpq_bind_bytes(st, 7, what->options);
        code = gpq_db_run(w->db, st, w->e);
        id = (uint32_t)sqlite3_last_insert_rowid(w->db->file);
    }
    w->batch = code == 0 ? gpq_tally(w->db, id, &code, w->e) : NULL;
    if (!w->batch)
        return code;
    w->batch->building = true;
    w->ret.batch = id;
    return 0;
}

static int end_batch(struct work *w)
{
    w->batch->building = false;
    gpq_tally_touch(w->db, w->batch);
    gpq_db_chore(w->db, GPQ_CHORE_BATCH, w->batch->id);
    if (w->batch->at_once != 0)
        gpq_db_chore(w->db, GPQ_CHORE_TURN, w->batch->id);
    return gpq_settle(w->db, w->now, w->e);
}

/* ---- Items ---- */

static int use_spec(struct work *w, uint32_t index)
{
    struct used *u = &w->used[index];
    if (u->plan.id != 0)
        return 0;
    int code = gpq_spec_add(w->db, &w->what->specs[index], &u->plan, w->e);
    for (uint32_t i = 0; code == 0 && i < u->n_after; i++) {
        uint64_t source = u->after[i].id;
        if (GPQ_NUMBER_OF(source) != 0) {
            code = gpq_row_link(w->db, source, GPQ_LINK_SOURCE, w->e);
            continue;
        }
        struct gpq_tally *t = gpq_tally(w->db, GPQ_BATCH_OF(source), &code, w->e);
        if (t) {
            t->flags |= GPQ_BATCH_FOLLOWED;
            gpq_tally_touch(w->db, t);
        }
    }
    return code;
}

/* Writes the uses of specs by tasks that were added: before a task may change its spec, and at the
 * end, which also ends the use by the submit itself. */
static int write_uses(struct work *w, bool end)
{
    int code = 0;
    for (uint32_t i = 0; code == 0 && i < w->what->n_specs; i++) {
        struct used *u = &w->used[i];
        int64_t n = u->added - (end && u->plan.id != 0);
        if (n != 0)
            code = gpq_spec_use(w->db, u->plan.id, n, w->e);
        u->added = 0;
    }
    return code;
}

static int add_edges(struct work *w, const struct used *u, uint64_t task, struct gpq_verdict *v)
{
    int code = 0;
    for (uint32_t i = 0; code == 0 && i < u->n_after; i++) {
        const struct gpq_after *a = &u->after[i];
        int is = gpq_judge(w->db, a->id, a->condition, w->e);
        if (is < 0)
            return is;
        v->unmet += is == GPQ_WAIT;
        if (is == GPQ_IMPOSSIBLE && v->impossible == 0)
            v->impossible = a->id;
        code = GPQ_DB_DO(w->db, GPQ_SQL_EDGE_ADD, w->e, (int64_t)task, (int64_t)a->id, a->condition,
                         is == GPQ_MET);
    }
    return code;
}

static int add_payload(struct work *w, const struct gpq_item *item, uint64_t task)
{
    sqlite3_stmt *st = gpq_db_use(w->db, GPQ_SQL_PAYLOAD_ADD);
    gpq_bind(st, 1, (int64_t)task);
    gpq_bind(st, 2, item->line);
    gpq_bind_text(st, 3, item->name);
    gpq_bind_bytes(st, 4, item->content);
    gpq_bind_some(st, 5, item->key);
    return gpq_db_run(w->db, st, w->e);
}

static int add_item(struct work *w, const struct gpq_item *item, uint64_t hash,
                    struct gpq_placed *placed)
{
    int code = use_spec(w, item->spec);
    if (code < 0)
        return code;
    struct used *u = &w->used[item->spec];
    const struct gpq_spec *spec = &w->what->specs[item->spec];
    struct gpq_row r = {
        .id = GPQ_TASK(w->batch->id, ++w->batch->numbers),
        .shape = u->plan.shape,
        .spec = u->plan.id,
        .priority = u->plan.priority,
        .order = ++w->db->order,
        .round = 1,
        .links = u->n_after != 0 ? GPQ_LINK_AFTER : 0,
        .expires = u->plan.expires,
    };
    struct gpq_verdict v = { 0 };
    u->added++;
    code = gpq_shape_use(w->db, r.shape, 1, w->e);
    if (code == 0)
        code = add_edges(w, u, r.id, &v);
    if (code == 0)
        code = gpq_round_begin(w->db, &r, &u->plan, spec->held, &v, w->now, w->e);
    if (code == 0)
        code = gpq_row_add(w->db, &r, hash, w->e);
    placed->task = r.id;
    return code == 0 ? add_payload(w, item, r.id) : code;
}

static int again(struct work *w, const struct gpq_item *item, struct gpq_row *r)
{
    int code = use_spec(w, item->spec);
    if (code == 0)
        code = write_uses(w, false);
    if (code < 0)
        return code;
    const struct gpq_policy *plan = &w->used[item->spec].plan;
    code = gpq_round_open(w->db, r, plan, w->now, w->e);
    return code < 0
               ? code
               : gpq_round_place(w->db, r, plan, w->what->specs[item->spec].held, w->now, w->e);
}

/* The stamp of the success is that of the last attempt. */
static int report_changed(struct work *w, uint32_t index, const struct gpq_row *r)
{
    sqlite3_stmt *st = gpq_db_use(w->db, GPQ_SQL_ATTEMPT_STAMP);
    gpq_bind(st, 1, (int64_t)r->id);
    gpq_bind(st, 2, r->attempt);
    int code = gpq_db_next(w->db, st, w->e);
    if (code <= 0)
        return code;
    w->what->changed(index, gpq_column_bytes(st, 0), w->what->user);
    sqlite3_reset(st);
    return 0;
}

static int place_item(struct work *w, uint32_t index)
{
    const struct gpq_item *item = &w->what->items[index];
    struct gpq_placed *placed = &w->placed[index];
    struct gpq_row r = { 0 };
    const struct gpq_spec *spec = &w->what->specs[item->spec];
    uint64_t hash = gpq_join_hash(w->name, spec, item);
    int how = w->what->join && w->name ? gpq_join(w->db, w->batch, w->name, hash, spec, item,
                                                  w->what->join_anyway, &r, w->e)
                                       : GPQ_PLACED_ADDED;
    if (how < 0)
        return how;
    int code = 0;
    if (how == GPQ_PLACED_CHANGED && w->what->changed)
        code = report_changed(w, index, &r);
    if (code < 0)
        return code;
    *placed = (struct gpq_placed){ r.id, (uint32_t)how };
    if (how == GPQ_PLACED_AGAIN)
        code = again(w, item, &r);
    else if (how != GPQ_PLACED_JOINED)
        code = add_item(w, item, hash, placed);
    w->ret.count[how]++;
    return code < 0 ? code : w->db->failed;
}

static int place_items(struct work *w)
{
    int code = begin_batch(w);
    for (uint32_t i = 0; code == 0 && i < w->what->n_items; i++)
        code = place_item(w, i);
    if (code == 0)
        code = write_uses(w, true);
    if (code == 0)
        code = end_batch(w);
    return code == 0 ? keep_answer(w) : code;
}

/* ---- The whole ---- */

/* Joining may be refused when items before it are written: then they go, and so does a try. */
static int begin_savepoint(struct work *w)
{
    if (!w->what->join && !w->what->only_try)
        return 0;
    int code = gpq_counts_write(w->db, w->e);
    if (code == 0)
        code = gpq_db_run(w->db, gpq_db_use(w->db, GPQ_SQL_SAVEPOINT), w->e);
    w->savepoint = code == 0;
    return code;
}

static int end_savepoint(struct work *w, int code, int64_t order, size_t n_changes)
{
    if (!w->savepoint || w->db->failed != 0)
        return code;
    if (code < 0 || w->what->only_try) {
        gpq_db_run(w->db, gpq_db_use(w->db, GPQ_SQL_SAVEPOINT_UNDO), NULL);
        gpq_counts_drop(w->db);
        gpq_rows_drop(w->db);
        w->db->order = order;
        w->db->store.n_changes = n_changes;
        w->db->n_chores = 0;
    }
    int ended = gpq_db_run(w->db, gpq_db_use(w->db, GPQ_SQL_SAVEPOINT_END),
                           code < 0 ? NULL : w->e);
    return code < 0 ? code : ended;
}

int gpq_sqlite_submit(struct gpq_store *s, uint64_t now, const struct gpq_submit *what,
                      struct gpq_submitted *ret, struct gpq_placed *placed, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = gpq_db_enter(db, true, e);
    if (code == 0)
        code = repeated(db, what, ret, placed, e);
    if (code != 0)
        return code < 0 ? code : 0;
    struct work w = { .db = db, .what = what, .now = now, .name = what->name, .e = e };
    code = check(&w);
    if (code == 0)
        code = begin_savepoint(&w);
    int64_t order = db->order;
    size_t n_changes = db->store.n_changes;
    if (code == 0)
        code = place_items(&w);
    code = end_savepoint(&w, code, order, n_changes);
    if (code == 0)
        *ret = w.ret;
    if (code == 0 && placed)
        memcpy(placed, w.placed, what->n_items * sizeof(*placed));
    for (uint32_t i = 0; w.used && i < what->n_specs; i++)
        free(w.used[i].after);
    free(w.used);
    free(w.name_copy);
    free(w.placed);
    return code;
}

int gpq_sqlite_seal(struct gpq_store *s, uint64_t now, uint32_t batch, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = gpq_db_enter(db, true, e);
    struct gpq_tally *t = code == 0 ? gpq_tally(db, batch, &code, e) : NULL;
    if (!t)
        return code;
    t->flags &= ~(uint32_t)GPQ_BATCH_OPEN;
    gpq_tally_touch(db, t);
    gpq_db_chore(db, GPQ_CHORE_BATCH, batch);
    return gpq_settle(db, now, e);
}
