/* SPDX-License-Identifier: MIT */
/* statements.c - what each operation of the store makes SQLite do: statements, their time (the
 * median of the commits), the steps of its machine, and steps of scans and sorts, which should be
 * none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../measure.h"
#include "ours.h"
#include "rows.h"

#define N 64
#define COMMITS 20
#define MOST 200

struct statement {
    const char *sql;
    double ns[COMMITS];
    double us; /* per task: median */
    unsigned long runs, steps, scans, sorts;
};

struct profile {
    struct statement list[MOST];
    unsigned n, commit;
    uint64_t begun;
};

static struct statement *find(struct profile *p, const char *sql)
{
    for (unsigned i = 0; i < p->n; i++)
        if (strcmp(p->list[i].sql, sql) == 0)
            return &p->list[i];
    if (p->n == MOST)
        return &p->list[MOST - 1];
    p->list[p->n] = (struct statement){ .sql = strdup(sql) };
    return &p->list[p->n++];
}

static int note(unsigned kind, void *user, void *p, void *x)
{
    struct profile *profile = user;
    const uint64_t now = b_now();
    struct statement *s;

    if (kind == SQLITE_TRACE_STMT) {
        /* A trigger's statement is part of its cause. */
        if (strncmp(x, "--", 2) != 0)
            profile->begun = now;
        return 0;
    }
    s = find(profile, sqlite3_sql(p));
    s->runs++;
    s->ns[profile->commit] += (double)(now - profile->begun);
    s->steps += (unsigned long)sqlite3_stmt_status(p, SQLITE_STMTSTATUS_VM_STEP, 1);
    s->scans += (unsigned long)sqlite3_stmt_status(p, SQLITE_STMTSTATUS_FULLSCAN_STEP, 1);
    s->sorts += (unsigned long)sqlite3_stmt_status(p, SQLITE_STMTSTATUS_SORT, 1);
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct statement *x = a, *y = b;

    return (x->us < y->us) - (x->us > y->us);
}

static void print(struct profile *p, const char *op, double wall)
{
    const double tasks = (double)N * COMMITS;
    double us = 0;

    for (unsigned i = 0; i < p->n; i++) {
        p->list[i].us = b_median(p->list[i].ns, COMMITS) / N / 1e3;
        us += p->list[i].us;
    }
    qsort(p->list, p->n, sizeof p->list[0], by_time);
    (void)printf("\n%s, %d per commit: %.2f us per task, in statements %.2f\n", op, N,
                 wall / N / 1e3, us);
    (void)printf("%8s %8s %8s %6s %6s  %s\n", "us/task", "runs", "steps", "scans", "sorts",
                 "statement");
    for (unsigned i = 0; i < p->n; i++) {
        const struct statement *s = &p->list[i];

        (void)printf("%8.3f %8.3f %8.2f %6lu %6lu  %.300s\n", s->us, (double)s->runs / tasks,
                     (double)s->steps / tasks, s->scans, s->sorts, s->sql);
        free((void *)s->sql);
    }
}

static int do_op(struct bq_ours *o, struct bq_load *load, enum bq_op op)
{
    static const char *const names[BQ_OPS] = { "submit", "claim", "complete" };
    static struct profile p;
    double wall[COMMITS];
    int rc = 0;

    p = (struct profile){ 0 };
    (void)sqlite3_trace_v2(o->db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, note, &p);
    for (p.commit = 0; p.commit < COMMITS && rc == 0; p.commit++) {
        uint64_t begun;

        if (op == BQ_SUBMIT)
            bq_load_fill(load, (uint64_t)p.commit * N, N);
        begun = b_now();
        rc = bq_ours_commit(o, op, load, N);
        wall[p.commit] = (double)(b_now() - begun);
    }
    (void)sqlite3_trace_v2(o->db, 0, NULL, NULL);
    if (rc == 0)
        print(&p, names[op], b_median(wall, COMMITS));
    return rc;
}

int bq_statements(const struct bq_set *set, double *figures)
{
    char directory[BQ_PATH];
    struct bq_load load;
    struct bq_ours o;
    int rc;

    (void)figures;
    if (bq_disk_store(&set->disk, "statements", directory) || bq_load_open(&load, N))
        return -1;
    rc = bq_ours_make(&o, directory);
    for (int op = 0; op < BQ_OPS && rc == 0; op++)
        rc = do_op(&o, &load, (enum bq_op)op);
    if (o.store)
        bq_ours_close(&o);
    bq_load_close(&load);
    return rc;
}
