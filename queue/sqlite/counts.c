/* SPDX-License-Identifier: MIT */
/* counts.c - two tables of records by id: open addressing, records that never move. */
#include "queue/sqlite/counts.h"

#include <stdlib.h>
#include <string.h>

enum { TRIM_AT = 8192, FIRST_ROOM = 64 };

/* A table of records whose first member is their id. */
struct table {
    void **slot;
    size_t room, n; /* room: a power of two */
};

struct gpq_counts {
    struct table batches, shapes;
    struct gpq_tally *dirty_batches;
    struct gpq_ready *dirty_shapes;
};

static size_t place_of(const struct table *t, uint32_t id)
{
    size_t at = (id * (size_t)2654435761U) & (t->room - 1);
    while (t->slot[at] && *(uint32_t *)t->slot[at] != id)
        at = (at + 1) & (t->room - 1);
    return at;
}

static void *find(const struct table *t, uint32_t id)
{
    return t->room != 0 ? t->slot[place_of(t, id)] : NULL;
}

static bool widen(struct table *t)
{
    struct table wider = { 0 };
    wider.room = t->room != 0 ? t->room * 2 : FIRST_ROOM;
    wider.n = t->n;
    wider.slot = calloc(wider.room, sizeof(*wider.slot));
    if (!wider.slot)
        return false;
    for (size_t i = 0; i < t->room; i++)
        if (t->slot[i])
            wider.slot[place_of(&wider, *(uint32_t *)t->slot[i])] = t->slot[i];
    free(t->slot);
    *t = wider;
    return true;
}

static void *insert(struct table *t, const void *record, size_t size)
{
    if ((t->n + 1) * 2 > t->room && !widen(t))
        return NULL;
    void *copy = malloc(size);
    if (!copy)
        return NULL;
    memcpy(copy, record, size);
    t->slot[place_of(t, *(uint32_t *)copy)] = copy;
    t->n++;
    return copy;
}

static void empty(struct table *t)
{
    for (size_t i = 0; i < t->room; i++)
        free(t->slot[i]);
    free(t->slot);
    *t = (struct table){ 0 };
}

/* Removes one record, and places anew those behind it in its run. */
static void take_out(struct table *t, uint32_t id)
{
    if (!find(t, id))
        return;
    size_t at = place_of(t, id);
    free(t->slot[at]);
    t->slot[at] = NULL;
    t->n--;
    for (at = (at + 1) & (t->room - 1); t->slot[at]; at = (at + 1) & (t->room - 1)) {
        void *record = t->slot[at];
        t->slot[at] = NULL;
        t->slot[place_of(t, *(uint32_t *)record)] = record;
    }
}

static struct gpq_counts *counts_of(struct gpq_db *db)
{
    if (!db->counts)
        db->counts = calloc(1, sizeof(*db->counts));
    return db->counts;
}

void gpq_tally_read(sqlite3_stmt *st, struct gpq_tally *t)
{
    *t = (struct gpq_tally){ .id = (uint32_t)sqlite3_column_int64(st, 0) };
    t->ended = (uint64_t)sqlite3_column_int64(st, 3);
    uint32_t *number[] = { &t->numbers, &t->total, &t->joined, &t->busy };
    for (int i = 0; i < 4; i++)
        *number[i] = (uint32_t)sqlite3_column_int64(st, 4 + i);
    for (int i = GPQ_HELD; i <= GPQ_DONE; i++)
        t->state[i] = (uint32_t)sqlite3_column_int64(st, 8 + i - GPQ_HELD);
    for (int i = GPQ_OUTCOME_SUCCESS; i <= GPQ_OUTCOME_LOST; i++)
        t->outcome[i] = (uint32_t)sqlite3_column_int64(st, 12 + i - GPQ_OUTCOME_SUCCESS);
    uint32_t *limit[] = { &t->at_once, &t->max_fails, &t->percent, &t->flags };
    for (int i = 0; i < 4; i++)
        *limit[i] = (uint32_t)sqlite3_column_int64(st, 20 + i);
    t->last_end = (uint64_t)sqlite3_column_int64(st, 25);
}

struct gpq_tally *gpq_tally(struct gpq_db *db, uint32_t batch, int *ret_code, struct gpq_error *e)
{
    struct gpq_counts *counts = counts_of(db);
    struct gpq_tally *t = counts ? find(&counts->batches, batch) : NULL;
    if (t)
        return t;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_BATCH_READ);
    gpq_bind(st, 1, batch);
    *ret_code = gpq_db_next(db, st, e);
    if (*ret_code <= 0) {
        if (*ret_code == 0)
            *ret_code = gpq_fail(e, GPQ_ENOTFOUND, "there is no batch %u", batch);
        return NULL;
    }
    struct gpq_tally read;
    gpq_tally_read(st, &read);
    sqlite3_reset(st);
    t = counts ? insert(&counts->batches, &read, sizeof(read)) : NULL;
    *ret_code = t ? 0 : gpq_db_no_memory(db, e);
    return t;
}

struct gpq_ready *gpq_ready(struct gpq_db *db, uint32_t shape, int *ret_code, struct gpq_error *e)
{
    struct gpq_counts *counts = counts_of(db);
    struct gpq_ready *r = counts ? find(&counts->shapes, shape) : NULL;
    if (r)
        return r;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_SHAPE_READ);
    gpq_bind(st, 1, shape);
    *ret_code = gpq_db_next(db, st, e);
    if (*ret_code <= 0) {
        if (*ret_code == 0)
            *ret_code = gpq_db_damaged(db, e, "there is no shape %u", shape);
        return NULL;
    }
    struct gpq_ready read = { .id = shape };
    read.ready = (uint32_t)sqlite3_column_int64(st, 0);
    read.uses = (uint32_t)sqlite3_column_int64(st, 1);
    sqlite3_reset(st);
    r = counts ? insert(&counts->shapes, &read, sizeof(read)) : NULL;
    *ret_code = r ? 0 : gpq_db_no_memory(db, e);
    return r;
}

/* The flag stays when a purge forgets the tasks. */
int gpq_tally_followed(struct gpq_db *db, const struct gpq_tally *t, struct gpq_error *e)
{
    if (!(t->flags & GPQ_BATCH_FOLLOWED))
        return 0;
    return GPQ_DB_ANY(db, GPQ_SQL_EDGES_FROM, e, (int64_t)GPQ_TASK(t->id, 0));
}

void gpq_tally_touch(struct gpq_db *db, struct gpq_tally *t)
{
    if (t->dirty)
        return;
    t->dirty = true;
    t->next_dirty = db->counts->dirty_batches;
    db->counts->dirty_batches = t;
}

void gpq_ready_touch(struct gpq_db *db, struct gpq_ready *r)
{
    if (r->dirty)
        return;
    r->dirty = true;
    r->next_dirty = db->counts->dirty_shapes;
    db->counts->dirty_shapes = r;
}

void gpq_tally_forget(struct gpq_db *db, uint32_t batch)
{
    if (!db->counts)
        return;
    for (struct gpq_tally **at = &db->counts->dirty_batches; *at; at = &(*at)->next_dirty)
        if ((*at)->id == batch) {
            *at = (*at)->next_dirty;
            break;
        }
    take_out(&db->counts->batches, batch);
}

void gpq_ready_forget(struct gpq_db *db, uint32_t shape)
{
    if (!db->counts)
        return;
    for (struct gpq_ready **at = &db->counts->dirty_shapes; *at; at = &(*at)->next_dirty)
        if ((*at)->id == shape) {
            *at = (*at)->next_dirty;
            break;
        }
    take_out(&db->counts->shapes, shape);
}

static int write_tally(struct gpq_db *db, const struct gpq_tally *t, struct gpq_error *e)
{
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_BATCH_WRITE);
    const uint32_t head[] = { t->numbers, t->total, t->joined, t->busy };
    gpq_bind(st, 1, t->id);
    gpq_bind(st, 2, (int64_t)t->ended);
    for (int i = 0; i < 4; i++)
        gpq_bind(st, 3 + i, head[i]);
    for (int i = GPQ_HELD; i <= GPQ_DONE; i++)
        gpq_bind(st, 7 + i - GPQ_HELD, t->state[i]);
    for (int i = GPQ_OUTCOME_SUCCESS; i <= GPQ_OUTCOME_LOST; i++)
        gpq_bind(st, 11 + i - GPQ_OUTCOME_SUCCESS, t->outcome[i]);
    gpq_bind(st, 19, t->flags);
    gpq_bind(st, 20, (int64_t)t->last_end);
    return gpq_db_run(db, st, e);
}

int gpq_counters_read(struct gpq_db *db, struct gpq_error *e)
{
    static const char *const name[] = { "order", "low" };
    int64_t *value[] = { &db->order, &db->low }, *kept[] = { &db->kept_order, &db->kept_low };
    for (int i = 0; i < 2; i++) {
        sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_COUNTER_READ);
        gpq_bind_text(st, 1, name[i]);
        int code = gpq_db_next(db, st, e);
        if (code <= 0)
            return code < 0 ? code : gpq_db_damaged(db, e, "counter \"%s\" is missing", name[i]);
        *value[i] = *kept[i] = sqlite3_column_int64(st, 0);
        sqlite3_reset(st);
    }
    return 0;
}

static int write_counter(struct gpq_db *db, const char *name, int64_t value, int64_t *kept,
                         struct gpq_error *e)
{
    if (value == *kept)
        return 0;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_COUNTER_WRITE);
    gpq_bind_text(st, 1, name);
    gpq_bind(st, 2, value);
    *kept = value;
    return gpq_db_run(db, st, e);
}

int gpq_counts_write(struct gpq_db *db, struct gpq_error *e)
{
    int code = write_counter(db, "order", db->order, &db->kept_order, e);
    if (code == 0)
        code = write_counter(db, "low", db->low, &db->kept_low, e);
    if (!db->counts)
        return code;
    struct gpq_counts *counts = db->counts;
    for (struct gpq_tally *t; code == 0 && (t = counts->dirty_batches);) {
        counts->dirty_batches = t->next_dirty;
        t->dirty = false;
        code = write_tally(db, t, e);
    }
    for (struct gpq_ready *r; code == 0 && (r = counts->dirty_shapes);) {
        counts->dirty_shapes = r->next_dirty;
        r->dirty = false;
        code = GPQ_DB_DO(db, GPQ_SQL_SHAPE_WRITE, e, r->id, r->ready, r->uses);
    }
    return code;
}

void gpq_counts_drop(struct gpq_db *db)
{
    if (!db->counts)
        return;
    empty(&db->counts->batches);
    empty(&db->counts->shapes);
    db->counts->dirty_batches = NULL;
    db->counts->dirty_shapes = NULL;
}

void gpq_counts_trim(struct gpq_db *db)
{
    if (!db->counts)
        return;
    if (db->counts->batches.n > TRIM_AT)
        empty(&db->counts->batches);
    if (db->counts->shapes.n > TRIM_AT)
        empty(&db->counts->shapes);
}

void gpq_counts_free(struct gpq_db *db)
{
    gpq_counts_drop(db);
    free(db->counts);
    db->counts = NULL;
}
