/* SPDX-License-Identifier: MIT */
/* check.c - checks a whole store by rules, and repairs what breaks one. */
#include "queue/sqlite/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/sqlite/counts.h"
#include "queue/sqlite/join.h"
#include "queue/sqlite/ops.h"
#include "queue/sqlite/rules.h"
#include "queue/sqlite/settle.h"

enum {
    TOGETHER = 1024, /* repairs of one transaction */
    PASSES = 8,      /* a repair may bring up what it hid */
    NUMBERS = 4,
    NOW = 9, /* its parameter */
};

enum place {
    PLACE_TASK,
    PLACE_BATCH,
    PLACE_BATCH_ID,
    PLACE_SPEC,
    PLACE_ENVIRONMENT,
    PLACE_SHAPE,
    PLACE_FILE
};
enum mend { MEND_NONE, MEND_SQL, MEND_ENDS_BATCH, MEND_FOLLOWS, MEND_TURN };

struct rule {
    uint32_t kind;
    enum place place;
    enum mend mend;
    const char *search, *repair;
};

#define RULE(kind, place, mend, search, repair) \
    { GPQ_FINDING_##kind, PLACE_##place, MEND_##mend, search, repair },
static const struct rule rows[] = { GPQ_ROW_RULES(RULE) };
static const struct rule ends[] = { GPQ_END_RULES(RULE) };

/* ---- Findings ---- */

static void place_text(char ret[64], enum place place, int64_t id)
{
    static const char *const tables[] = { [PLACE_BATCH] = "batch",
                                          [PLACE_SPEC] = "spec",
                                          [PLACE_ENVIRONMENT] = "environment",
                                          [PLACE_SHAPE] = "shape" };
    if (place == PLACE_TASK)
        snprintf(ret, 64, "task %u.%u", GPQ_BATCH_OF(id), GPQ_NUMBER_OF(id));
    else if (place == PLACE_BATCH_ID)
        snprintf(ret, 64, "batch %u", GPQ_BATCH_OF(id));
    else if (place == PLACE_FILE)
        snprintf(ret, 64, "queue.db");
    else
        snprintf(ret, 64, "%s %lld", tables[place], (long long)id);
}

/* One finding of a rule, kept until its repair is committed. */
struct found {
    int64_t id, number[NUMBERS];
    bool has[NUMBERS];
    char *text;
};

static int report(struct gpq_check *c, const struct rule *r, int64_t id, const char *text,
                  bool repaired)
{
    char place[64];
    place_text(place, r->place, id);
    return gpq_check_report(c, &(struct gpq_finding){ .kind = r->kind,
                                                      .place = place,
                                                      .text = text ? text : "?",
                                                      .repairable = r->mend != MEND_NONE,
                                                      .repaired = repaired });
}

/* ---- Repairs ---- */

/* Runs the statements of a repair. */
static int run_repair(struct gpq_check *c, const char *sql, const struct found *f)
{
    struct gpq_db *db = c->db;
    while (*sql) {
        sqlite3_stmt *st = NULL;
        int result = sqlite3_prepare_v2(db->file, sql, -1, &st, &sql);
        if (result != SQLITE_OK)
            return gpq_db_fail(db, result, c->e);
        int most = sqlite3_bind_parameter_count(st);
        if (most >= 1)
            gpq_bind(st, 1, f->id);
        for (int i = 0; i < NUMBERS && i + 2 <= most; i++)
            if (f->has[i])
                gpq_bind(st, i + 2, f->number[i]);
        if (most >= NOW)
            gpq_bind(st, NOW, (int64_t)c->now);
        int code = gpq_db_run(db, st, c->e);
        sqlite3_finalize(st);
        if (code < 0)
            return code;
    }
    return 0;
}

static int repair_one(struct gpq_check *c, const struct rule *r, const struct found *f)
{
    static const enum gpq_chore_kind chores[] = { [MEND_ENDS_BATCH] = GPQ_CHORE_BATCH,
                                                  [MEND_FOLLOWS] = GPQ_CHORE_TASK_ENDED,
                                                  [MEND_TURN] = GPQ_CHORE_TURN };
    if (r->mend == MEND_SQL)
        return run_repair(c, r->repair, f);
    gpq_db_chore(c->db, chores[r->mend], (uint64_t)f->id);
    return 0;
}

static int repair_all(struct gpq_check *c, const struct rule *r, const struct found *found,
                      size_t n)
{
    int code = gpq_check_begin(c);
    if (code < 0)
        return code;
    for (size_t i = 0; code == 0 && i < n; i++)
        code = repair_one(c, r, &found[i]);
    if (code == 0 && r->mend != MEND_SQL)
        code = gpq_settle(c->db, c->now, c->e);
    code = gpq_check_end(c, code);
    for (size_t i = 0; code == 0 && i < n; i++)
        code = report(c, r, found[i].id, found[i].text, true);
    return code;
}

/* ---- One rule ---- */

static int keep(struct gpq_check *c, sqlite3_stmt *st, struct found *f)
{
    const char *text = gpq_column_text(st, 1);
    *f = (struct found){ .id = sqlite3_column_int64(st, 0), .text = strdup(text ? text : "?") };
    if (!f->text)
        return gpq_db_no_memory(c->db, c->e);
    for (int i = 0; i < NUMBERS && i + 2 < sqlite3_column_count(st); i++) {
        f->has[i] = sqlite3_column_type(st, i + 2) != SQLITE_NULL;
        f->number[i] = sqlite3_column_int64(st, i + 2);
    }
    return 0;
}

/* Searches; reports, or keeps up to TOGETHER findings.  Returns how many it kept. */
static int search(struct gpq_check *c, const struct rule *r, struct found *found, bool mends)
{
    sqlite3_stmt *st = NULL;
    int n = 0, code = 0;
    int result = sqlite3_prepare_v2(c->db->file, r->search, -1, &st, NULL);
    if (result != SQLITE_OK)
        return gpq_db_fail(c->db, result, c->e);
    while (n < TOGETHER && (code = gpq_db_next(c->db, st, c->e)) > 0) {
        if (mends)
            code = keep(c, st, &found[n++]);
        else
            code = report(c, r, sqlite3_column_int64(st, 0), gpq_column_text(st, 1), false);
        if (code != 0)
            break;
    }
    sqlite3_finalize(st);
    return c->stopped != 0 || code < 0 ? -1 : n;
}

/* Ends that follow are moved by the engine, which needs rows that fit together. */
static bool mends(const struct gpq_check *c, const struct rule *r)
{
    return c->repair && (r->mend == MEND_SQL || (r->mend != MEND_NONE && c->left == 0));
}

static int check_rule(struct gpq_check *c, const struct rule *r)
{
    bool mend = mends(c, r);
    struct found *found = mend ? calloc(TOGETHER, sizeof(*found)) : NULL;
    int n = TOGETHER, code = 0;
    int64_t first = -1;
    if (mend && !found)
        return gpq_db_no_memory(c->db, c->e);
    while (code == 0 && n == TOGETHER) {
        n = search(c, r, found, mend);
        if (n == TOGETHER && found[0].id == first) /* the next pass goes on */
            n = 0;
        first = n > 0 ? found[0].id : -1;
        if (n > 0)
            code = repair_all(c, r, found, (size_t)n);
        for (int i = 0; mend && i < TOGETHER; i++) {
            free(found[i].text);
            found[i].text = NULL;
        }
    }
    free(found);
    if (c->stopped != 0)
        return c->stopped;
    return code != 0 ? code : c->db->failed;
}

/* ---- All of them ---- */

static int check_rules(struct gpq_check *c, const struct rule *r, size_t n)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < n; i++)
        code = check_rule(c, &r[i]);
    return code;
}

static int pass(struct gpq_check *c)
{
    c->left = c->repaired = 0;
    int code = check_rules(c, rows, sizeof(rows) / sizeof(rows[0]));
    if (code == 0)
        code = gpq_check_batches(c);
    return code != 0 ? code : check_rules(c, ends, sizeof(ends) / sizeof(ends[0]));
}

/* gpq_key(name of the batch, content of the spec, content and key of the payload) */
static void key_function(sqlite3_context *context, int n, sqlite3_value **value)
{
    struct gpq_bytes bytes[4] = { { 0 } };
    for (int i = 1; i < n && i < 4; i++)
        bytes[i] = (struct gpq_bytes){ sqlite3_value_blob(value[i]),
                                       (size_t)sqlite3_value_bytes(value[i]) };
    const struct gpq_spec spec = { .content = bytes[1] };
    const struct gpq_item item = { .content = bytes[2], .key = bytes[3] };
    uint64_t hash = gpq_join_hash((const char *)sqlite3_value_text(value[0]), &spec, &item);
    if (hash != 0)
        sqlite3_result_int64(context, (int64_t)hash);
}

int64_t gpq_sqlite_check(struct gpq_store *s, uint64_t now, bool repair, gpq_finding_fn fn,
                         void *user, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    struct gpq_check c = { .db = db, .now = now, .fn = fn, .user = user, .e = e };
    int code = gpq_db_enter(db, false, e);
    if (code == 0 && db->inside)
        return gpq_fail(e, GPQ_EINVAL, "store: a check runs outside a transaction");
    if (code == 0)
        code = gpq_check_file(&c);
    if (code != 0)
        return code;
    int result = sqlite3_create_function(db->file, "gpq_key", 4, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                         NULL, key_function, NULL, NULL);
    if (result != SQLITE_OK)
        return gpq_db_fail(db, result, e);
    const int64_t of_file = c.left; /* which nothing repairs */
    if (repair)
        code = gpq_db_write(db, e);
    for (int i = 0; code == 0 && repair && i < PASSES; i++) {
        c.repair = true;
        code = pass(&c);
        if (c.repaired == 0)
            break;
    }
    c.repair = false;
    if (code == 0 && (!repair || c.left != 0 || c.repaired != 0))
        code = pass(&c);
    if (code == 0 && repair)
        code = gpq_counters_read(db, e);
    return code != 0 ? code : of_file + c.left;
}
