/* SPDX-License-Identifier: MIT */
/*
 * check_batch.c - the counts of batches against their tasks.
 *
 * A purge forgets tasks that are done, and leaves them in the counts of their batches.  So a batch
 * may count more of them than are there, but never another number than `numbers` and `joined` say:
 * each task that was ever added has a number.
 */
#include <stdio.h>
#include <string.h>

#include "queue/sqlite/check.h"
#include "queue/sqlite/counts.h"

enum { TOGETHER = 256 };

/* The tasks that are there. */
struct there {
    uint32_t own, joined, busy, last; /* last: the greatest number of a task */
    uint32_t state[GPQ_STATES], outcome[GPQ_OUTCOMES];
};

static const char count_text[] =
    "SELECT count(*), sum(own), sum(own AND state IN (2, 3)), coalesce(max(last), 0),"
    " sum(state = 1), sum(state = 2), sum(state = 3), sum(state = 4),"
    " sum(state = 4 AND outcome = 1), sum(state = 4 AND outcome = 2),"
    " sum(state = 4 AND outcome = 3), sum(state = 4 AND outcome = 4),"
    " sum(state = 4 AND outcome = 5), sum(state = 4 AND outcome = 6),"
    " sum(state = 4 AND outcome = 7), sum(state = 4 AND outcome = 8)"
    " FROM (SELECT state, outcome, 1 AS own, id & 4294967295 AS last FROM task"
    " WHERE id BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295"
    " UNION ALL SELECT t.state, t.outcome, 0, 0 FROM joined j JOIN task t ON t.id = j.task"
    " WHERE j.batch = ?1)";

static int count_there(struct gpq_check *c, sqlite3_stmt *st, uint32_t batch, struct there *ret)
{
    sqlite3_reset(st);
    gpq_bind(st, 1, batch);
    int code = gpq_db_next(c->db, st, c->e);
    if (code <= 0)
        return code;
    int at = 0;
    uint32_t all = (uint32_t)sqlite3_column_int64(st, at++);
    uint32_t *head[] = { &ret->own, &ret->busy, &ret->last };
    for (int i = 0; i < 3; i++)
        *head[i] = (uint32_t)sqlite3_column_int64(st, at++);
    for (int i = GPQ_HELD; i <= GPQ_DONE; i++)
        ret->state[i] = (uint32_t)sqlite3_column_int64(st, at++);
    for (int i = GPQ_OUTCOME_SUCCESS; i <= GPQ_OUTCOME_LOST; i++)
        ret->outcome[i] = (uint32_t)sqlite3_column_int64(st, at++);
    ret->joined = all - ret->own;
    sqlite3_reset(st);
    return 0;
}

/* Where the counts of forgotten tasks do not add up, the rest counts as ok, which a purge forgets
 * first, and a surplus is taken from the last outcomes. */
static void count_forgotten(struct gpq_tally *t, const struct there *n)
{
    uint64_t forgotten = (uint64_t)(t->numbers - n->own) + (t->joined - n->joined), counted = 0;
    for (int i = GPQ_OUTCOME_SUCCESS; i <= GPQ_OUTCOME_LOST; i++) {
        if (t->outcome[i] < n->outcome[i])
            t->outcome[i] = n->outcome[i];
        counted += t->outcome[i] - n->outcome[i];
    }
    if (counted < forgotten)
        t->outcome[GPQ_OUTCOME_SUCCESS] += (uint32_t)(forgotten - counted);
    for (int i = GPQ_OUTCOME_LOST; i >= GPQ_OUTCOME_SUCCESS && counted > forgotten; i--) {
        uint64_t surplus = t->outcome[i] - n->outcome[i];
        if (surplus > counted - forgotten)
            surplus = counted - forgotten;
        t->outcome[i] -= (uint32_t)surplus;
        counted -= surplus;
    }
}

/* Changes *t so that it fits to the tasks. */
static void correct(struct gpq_tally *t, const struct there *n)
{
    if (t->numbers < n->last)
        t->numbers = n->last;
    if (t->joined < n->joined)
        t->joined = n->joined;
    count_forgotten(t, n);
    t->busy = n->busy;
    t->total = t->numbers + t->joined;
    t->state[GPQ_DONE] = t->total;
    for (int i = GPQ_HELD; i <= GPQ_RUNNING; i++) {
        t->state[i] = n->state[i];
        t->state[GPQ_DONE] -= n->state[i];
    }
}

/* Whether a count differs from the one that is wanted; then its text. */
static bool differs(uint32_t is, uint32_t want, const char *name, char ret[128])
{
    if (is != want)
        snprintf(ret, 128, "counts %u %s, expected %u", is, name, want);
    return is != want;
}

/* The first count that differs, as text; false: none. */
static bool differ(const struct gpq_tally *is, const struct gpq_tally *want, char ret[128])
{
    bool found = differs(is->numbers, want->numbers, "numbers", ret) ||
                 differs(is->total, want->total, "tasks", ret) ||
                 differs(is->joined, want->joined, "joined", ret) ||
                 differs(is->busy, want->busy, "ready or running", ret);
    for (uint32_t i = GPQ_HELD; !found && i <= GPQ_DONE; i++)
        found = differs(is->state[i], want->state[i], gpq_state_text(i), ret);
    for (uint32_t i = GPQ_OUTCOME_SUCCESS; !found && i <= GPQ_OUTCOME_LOST; i++)
        found = differs(is->outcome[i], want->outcome[i], gpq_outcome_text(i), ret);
    return found;
}

struct wrong {
    struct gpq_tally want;
    char text[128];
};

static int report(struct gpq_check *c, const struct wrong *w, bool repaired)
{
    char place[32];
    snprintf(place, sizeof(place), "batch %u", w->want.id);
    return gpq_check_report(c, &(struct gpq_finding){ .kind = GPQ_FINDING_BATCH,
                                                      .place = place,
                                                      .text = w->text,
                                                      .repairable = true,
                                                      .repaired = repaired });
}

/* Writes the counts of some batches in one transaction. */
static int repair(struct gpq_check *c, const struct wrong *wrong, size_t n)
{
    int code = gpq_check_begin(c);
    for (size_t i = 0; code == 0 && i < n; i++) {
        struct gpq_tally *t = gpq_tally(c->db, wrong[i].want.id, &code, c->e);
        if (!t)
            break;
        struct gpq_tally *next = t->next_dirty;
        *t = wrong[i].want;
        t->dirty = false;
        t->next_dirty = next;
        gpq_tally_touch(c->db, t);
    }
    code = gpq_check_end(c, code);
    for (size_t i = 0; code == 0 && i < n; i++)
        code = report(c, &wrong[i], true);
    return code;
}

/* Collects up to TOGETHER batches behind `after` whose counts are wrong; returns how many. */
static int collect(struct gpq_check *c, sqlite3_stmt *count, uint32_t after, struct wrong *wrong)
{
    sqlite3_stmt *st = gpq_db_use(c->db, GPQ_SQL_BATCHES);
    int n = 0, code = 0;
    gpq_bind(st, 1, (int64_t)after + 1);
    while (n < TOGETHER && (code = gpq_db_next(c->db, st, c->e)) > 0) {
        struct gpq_tally is;
        struct there there = { 0 };
        gpq_tally_read(st, &is);
        code = count_there(c, count, is.id, &there);
        if (code < 0)
            break;
        wrong[n].want = is;
        correct(&wrong[n].want, &there);
        n += differ(&is, &wrong[n].want, wrong[n].text);
    }
    if (st)
        sqlite3_reset(st);
    return code < 0 ? code : n;
}

int gpq_check_batches(struct gpq_check *c)
{
    struct wrong wrong[TOGETHER];
    sqlite3_stmt *count = NULL;
    uint32_t after = 0;
    int code = 0, n = TOGETHER;
    int result = sqlite3_prepare_v2(c->db->file, count_text, -1, &count, NULL);
    if (result != SQLITE_OK)
        return gpq_db_fail(c->db, result, c->e);
    while (code == 0 && n == TOGETHER) {
        n = collect(c, count, after, wrong);
        if (n > 0)
            after = wrong[n - 1].want.id;
        if (n > 0 && c->repair)
            code = repair(c, wrong, (size_t)n);
        for (int i = 0; code == 0 && i < n && !c->repair; i++)
            code = report(c, &wrong[i], false);
        code = n < 0 ? n : code;
    }
    sqlite3_finalize(count);
    return code;
}
