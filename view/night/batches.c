/* SPDX-License-Identifier: MIT */
/* batches.c - facts about each batch, and about the night as a whole. */
#include "view/night/batches.h"

#include <stdlib.h>
#include <string.h>

/* ---- Quantiles ---- */

/*
 * The value at index k in order, which is put there (Hoare).  qsort may take as much memory again,
 * and a night has many attempts.  The pivots are random, so that no order of the rows is slow.
 */
static int64_t nth(int64_t *v, size_t n, size_t k)
{
    uint64_t seed = n;
    int64_t low = 0, high = (int64_t)n - 1, at = (int64_t)k;
    while (low < high) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        int64_t pivot = v[low + (int64_t)((seed >> 33) % (uint64_t)(high - low + 1))];
        int64_t i = low, j = high;
        while (i <= j) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i <= j) {
                int64_t other = v[i];
                v[i++] = v[j];
                v[j--] = other;
            }
        }
        if (at > j && at < i)
            break;
        if (at <= j)
            high = j;
        else
            low = i;
    }
    return v[at];
}

/* The lowest value that `percent` of all values do not exceed; -1: there is none. */
static int64_t quantile(int64_t *v, size_t n, size_t percent)
{
    return n > 0 ? nth(v, n, (n * percent + 99) / 100 - 1) : -1;
}

/* ---- Batches ---- */

/* Numbers of a batch: part [at, at + n) of one list of all of them. */
struct part {
    size_t at, n;
};

typedef int64_t (*measure_fn)(const struct gpv_attempt *a);

static int64_t run_of(const struct gpv_attempt *a)
{
    return a->number != 0 && a->outcome == GPV_OK ? a->ended - a->started : -1;
}

static int64_t wait_of(const struct gpv_attempt *a)
{
    return a->number == 1 && a->ready != 0 ? a->started - a->ready : -1;
}

/* Calls `each` with the numbers of each batch: what `measure` returns for its attempts, but -1. */
static int measure_all(const struct gpv_night *n, struct gpv_batch_facts *ret, measure_fn measure,
                       void (*each)(struct gpv_batch_facts *, int64_t *, size_t))
{
    struct part *part = calloc(n->batches.n + 1, sizeof(*part));
    size_t sum = 0;
    if (!part)
        return -1;
    for (size_t i = 0; i < n->attempts.n; i++) {
        uint32_t batch = gpv_find_batch(n, GPV_BATCH_OF(n->attempts.row[i].task));
        part[batch == GPV_NONE ? n->batches.n : batch].n += measure(&n->attempts.row[i]) >= 0;
    }
    for (size_t b = 0; b < n->batches.n; b++) {
        part[b].at = sum;
        sum += part[b].n;
        part[b].n = 0;
    }
    int64_t *v = malloc((sum + 1) * sizeof(*v));
    for (size_t i = 0; v && i < n->attempts.n; i++) {
        uint32_t batch = gpv_find_batch(n, GPV_BATCH_OF(n->attempts.row[i].task));
        int64_t one = measure(&n->attempts.row[i]);
        if (batch != GPV_NONE && one >= 0)
            v[part[batch].at + part[batch].n++] = one;
    }
    for (size_t b = 0; v && b < n->batches.n; b++)
        each(&ret[b], v + part[b].at, part[b].n);
    free(part);
    free(v);
    return v ? 0 : -1;
}

static void set_runs(struct gpv_batch_facts *f, int64_t *v, size_t n)
{
    f->run_p50 = quantile(v, n, 50);
    f->run_p95 = quantile(v, n, 95);
}

static void set_waits(struct gpv_batch_facts *f, int64_t *v, size_t n)
{
    f->wait_p50 = quantile(v, n, 50);
}

/* Attempts are in the order of their starts. */
static void note_attempt(const struct gpv_night *n, struct gpv_batch_facts *f,
                         const struct gpv_attempt *a)
{
    f->ended = a->ended > f->ended ? a->ended : f->ended;
    if (a->number == 0 || f->attempts++ > 0)
        return;
    f->started = a->started;
    f->class = gpv_class_of(n, a);
    f->gpus = a->shape < n->shapes.n ? n->shapes.row[a->shape].gpus : 0;
}

int gpv_batch_facts(const struct gpv_night *n, struct gpv_batch_facts *ret)
{
    for (size_t i = 0; i < n->batches.n; i++) {
        const struct gpv_batch *b = &n->batches.row[i];
        ret[i] = (struct gpv_batch_facts){ .ok = b->ended_by[GPV_OK], .class = GPV_NONE };
        for (uint32_t outcome = 0; outcome < GPV_OUTCOMES; outcome++)
            ret[i].bad += gpv_is_bad(outcome) ? b->ended_by[outcome] : 0;
        if (b->shape < n->shapes.n)
            ret[i].gpus = n->shapes.row[b->shape].gpus;
    }
    for (size_t i = 0; i < n->attempts.n; i++) {
        uint32_t batch = gpv_find_batch(n, GPV_BATCH_OF(n->attempts.row[i].task));
        if (batch != GPV_NONE)
            note_attempt(n, &ret[batch], &n->attempts.row[i]);
    }
    if (measure_all(n, ret, run_of, set_runs) != 0)
        return -1;
    return measure_all(n, ret, wait_of, set_waits);
}

/* ---- The night ---- */

static bool begins(const struct gpv_night *n, const struct gpv_tenancy *t, uint32_t kind,
                   const char *text)
{
    return t->kind == kind && strncmp(gpv_text(n, t->text), text, strlen(text)) == 0;
}

bool gpv_is_restart(const struct gpv_night *n, const struct gpv_tenancy *t)
{
    return begins(n, t, GPV_TENANCY_BOOT, "restart");
}

bool gpv_is_eviction(const struct gpv_night *n, const struct gpv_tenancy *t)
{
    return begins(n, t, GPV_TENANCY_UNLOAD, "evicted");
}

/* A task that returned waits again: it has not ended. */
static bool has_ended(const struct gpv_attempt *a)
{
    return a->last && a->ended != 0 && a->outcome != GPV_RETURNED;
}

static void count_attempts(const struct gpv_night *n, struct gpv_night_facts *ret)
{
    for (size_t i = 0; i < n->attempts.n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[i];
        ret->attempts += a->number != 0;
        ret->bad += gpv_is_bad(a->outcome);
        ret->ended = a->ended > ret->ended ? a->ended : ret->ended;
        if (a->outcome < GPV_OUTCOMES)
            ret->ended_by[a->outcome]++;
        if (!a->last)
            continue;
        ret->tasks++;
        ret->tasks_bad += has_ended(a) && gpv_is_bad(a->outcome);
        if (a->outcome < GPV_OUTCOMES)
            ret->tasks_by[a->outcome]++;
    }
}

static int set_p95(const struct gpv_night *n, struct gpv_night_facts *ret)
{
    size_t ended = 0;
    int64_t *v = malloc((ret->tasks + 1) * sizeof(*v));
    if (!v)
        return -1;
    for (size_t i = 0; i < n->attempts.n; i++)
        if (has_ended(&n->attempts.row[i]))
            v[ended++] = n->attempts.row[i].ended;
    ret->p95 = ended > 0 ? quantile(v, ended, 95) : 0;
    free(v);
    return 0;
}

int gpv_night_facts(const struct gpv_night *n, struct gpv_night_facts *ret)
{
    *ret = (struct gpv_night_facts){ .last_batch = GPV_NONE };
    count_attempts(n, ret);
    for (size_t i = 0; i < n->tenancies.n; i++) {
        ret->restarts += gpv_is_restart(n, &n->tenancies.row[i]);
        ret->evictions += gpv_is_eviction(n, &n->tenancies.row[i]);
    }
    int64_t latest = 0;
    for (uint32_t i = 0; i < n->batches.n; i++) {
        ret->waiting += (uint64_t)n->batches.row[i].ready + n->batches.row[i].held;
        if (n->batches.row[i].ended <= latest)
            continue;
        latest = n->batches.row[i].ended;
        ret->last_batch = i;
    }
    return set_p95(n, ret);
}
