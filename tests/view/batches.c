/* SPDX-License-Identifier: MIT */
/* batches.c - facts about batches and nights, against wanted values and a plain recount. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "queue/draw.h"
#include "queue/failing.h"
#include "rows.h"

#include "view/night/batches.h"

#define SECOND INT64_C(1000000000)

static struct gpv_batch_facts *facts_of(const struct gpv_night *n)
{
    struct gpv_batch_facts *f = calloc(n->batches.n + 1, sizeof(*f));

    T_CHECK(f);
    T_EQ(gpv_batch_facts(n, f), 0);
    return f;
}

T_CASE(nothing)
{
    struct gpv_night *n = t_night("");
    struct gpv_batch_facts *f = facts_of(n);
    struct gpv_night_facts all;

    T_EQ(gpv_night_facts(n, &all), 0);
    T_EQ(all.attempts + all.tasks + all.bad + all.restarts + all.evictions, 0);
    T_EQ(all.p95, 0);
    T_EQ(all.ended, 0);
    T_EQ(all.last_batch, GPV_NONE);
    free(f);
    gpv_night_free(n);
}

#define NIGHT                                                        \
    "gpu gpu:0\ngpu gpu:1\nclass whisper\nclass judge\n"             \
    "shape 7 judge 2 2_GPUs\nshape 9 whisper 1 1_GPU\n"              \
    "batch 4 a @0:00 @3:00 0 - 5 1 0 0 0 ok=3,error=1,skipped=1\n"   \
    "batch 6 b @0:00 - 0 - 3 0 0 2 1 - 2 7\n"                        \
    "batch 8 c @0:00 @1:00 0 - 1 0 0 0 0 cancelled=1\n"              \
    "attempt 4.1 1 9 gpu:0 @0:10 @0:20 @0:21 error 1\n"              \
    "attempt 4.2 1 9 gpu:0 @0:10 @0:30 @0:40 ok 0\n"                 \
    "attempt 4.1 2 9 gpu:0 @0:21 @0:40 @0:44 ok 0\n"                 \
    "attempt 4.3 1 9 gpu:0 @0:10 @0:50 @0:57 ok 0\n"                 \
    "attempt 4.4 0 9 - - - @3:00 skipped 0\n"                        \
    "attempt 6.1 1 7 gpu:0,gpu:1 @0:10 @1:00 - running 0\n"          \
    "attempt 8.1 0 9 - - - @1:00 cancelled 0\n"                      \
    "attempt 99.1 1 9 gpu:1 - @0:05 @0:06 returned 0\n"              \
    "tenancy gpu:0 boot whisper @0:01 @0:02 first_use\n"             \
    "tenancy gpu:0 boot whisper @0:03 @0:04 restart_after_a_crash\n" \
    "tenancy gpu:0 unload whisper @0:05 @0:06 evicted_for_b\n"       \
    "tenancy gpu:0 unload whisper @0:07 @0:08 restart\n"             \
    "tenancy gpu:0 kept - @0:09 @0:10 evicted\n"                     \
    "now @4:00\n"

T_CASE(of_each_batch)
{
    struct gpv_night *n = t_night(NIGHT);
    struct gpv_batch_facts *f = facts_of(n);

    T_EQ(n->batches.n, 3);
    T_EQ(f[0].attempts, 4);
    T_EQ(f[0].ok, 3);
    T_EQ(f[0].bad, 2);
    T_EQ(f[0].started, T_AT(0, 20, 0));
    T_EQ(f[0].ended, T_AT(3, 0, 0));
    T_EQ(f[0].run_p50, 420 * SECOND);
    T_EQ(f[0].run_p95, 600 * SECOND);
    /* Of first attempts: 10, 20 and 40 min. */
    T_EQ(f[0].wait_p50, 1200 * SECOND);
    T_TEXT(gpv_text(n, n->classes.row[f[0].class].name), "whisper");
    T_EQ(f[0].gpus, 1);
    T_EQ(f[1].attempts, 1);
    T_EQ(f[1].ok + f[1].bad, 0);
    T_EQ(f[1].started, T_AT(1, 0, 0));
    T_EQ(f[1].ended, 0);
    T_EQ(f[1].run_p50, -1);
    T_EQ(f[1].run_p95, -1);
    T_EQ(f[1].wait_p50, 3000 * SECOND);
    T_TEXT(gpv_text(n, n->classes.row[f[1].class].name), "judge");
    T_EQ(f[1].gpus, 2);
    T_EQ(f[2].attempts, 0);
    T_EQ(f[2].bad, 1);
    T_EQ(f[2].started, 0);
    T_EQ(f[2].ended, T_AT(1, 0, 0));
    T_EQ(f[2].wait_p50, -1);
    T_EQ(f[2].class, GPV_NONE);
    free(f);
    gpv_night_free(n);
}

/* Before its first attempt the needs are those of the task that waits. */
T_CASE(a_batch_that_only_waits)
{
    struct gpv_night *n = t_night("shape 7 judge 2 2_GPUs\n"
                                  "batch 6 b @0:00 - 0 - 3 0 0 3 0 - 1 7\n");
    struct gpv_batch_facts *f = facts_of(n);

    T_EQ(f->gpus, 2);
    T_EQ(f->class, GPV_NONE);
    free(f);
    gpv_night_free(n);
}

T_CASE(of_the_night)
{
    struct gpv_night *n = t_night(NIGHT);
    struct gpv_night_facts f;

    T_EQ(gpv_night_facts(n, &f), 0);
    T_EQ(f.attempts, 6);
    T_EQ(f.tasks, 7);
    T_EQ(f.ended_by[GPV_OK], 3);
    T_EQ(f.ended_by[GPV_ERROR], 1);
    T_EQ(f.ended_by[GPV_RUNNING], 1);
    T_EQ(f.ended_by[GPV_RETURNED], 1);
    T_EQ(f.tasks_by[GPV_ERROR], 0);
    T_EQ(f.tasks_by[GPV_OK], 3);
    T_EQ(f.tasks_by[GPV_SKIPPED], 1);
    T_EQ(f.tasks_bad, 2);
    T_EQ(f.waiting, 2);
    T_EQ(f.bad, 4);
    T_EQ(f.restarts, 1);
    T_EQ(f.evictions, 1);
    T_EQ(f.ended, T_AT(3, 0, 0));
    /* Of 3 ok, a skipped and a cancelled one; the returned one waits again. */
    T_EQ(f.p95, T_AT(3, 0, 0));
    T_EQ(n->batches.row[f.last_batch].id, 4);
    gpv_night_free(n);
}

/* By 95 of 100 ends, not by the last one. */
T_CASE(p95_leaves_stragglers_out)
{
    struct gpv_night *n = gpv_night_new();
    struct gpv_night_facts f;

    T_CHECK(n);
    for (uint32_t i = 100; i > 0; i--) {
        const struct gpv_attempt a = { .task = GPV_TASK(1, i),
                                       .number = 1,
                                       .started = T_BEGIN,
                                       .ended = T_BEGIN + i * SECOND,
                                       .outcome = GPV_OK };
        T_EQ(gpv_add_attempt(n, &a), 0);
    }
    T_EQ(gpv_night_end(n, 0), 0);
    T_EQ(gpv_night_facts(n, &f), 0);
    T_EQ(f.p95, T_BEGIN + 95 * SECOND);
    gpv_night_free(n);
}

/* ---- Random nights ---- */

enum { MOST = 300, BATCHES = 3 };

static struct gpv_night *random_night(uint64_t *seed)
{
    struct gpv_night *n = gpv_night_new();
    uint32_t spread = draw_chance(seed, 50) ? 3 : 1000; /* few or many equal lengths */

    T_CHECK(n);
    for (uint32_t i = 1; i <= BATCHES; i++) {
        const struct gpv_batch b = { .id = 2 * i, .shape = GPV_NONE };
        T_EQ(gpv_add_batch(n, &b), 0);
    }
    for (uint32_t i = draw_below(seed, MOST); i > 0; i--) {
        struct gpv_attempt a = { .task = GPV_TASK(1 + draw_below(seed, 2 * BATCHES), i),
                                 .number = draw_below(seed, 3),
                                 .started = T_BEGIN + draw_below(seed, 1000),
                                 .outcome = (uint8_t)draw_below(seed, 4) };
        a.ready = draw_chance(seed, 80) ? a.started - draw_below(seed, spread) : 0;
        a.ended = a.outcome == GPV_RUNNING ? 0 : a.started + draw_below(seed, spread);
        T_EQ(gpv_add_attempt(n, &a), 0);
    }
    T_EQ(gpv_night_end(n, T_BEGIN + 3000), 0);
    return n;
}

static int compare(const void *left, const void *right)
{
    const int64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* The lowest value that `percent` of all do not exceed. */
static int64_t quantile(int64_t *v, size_t n, size_t percent)
{
    qsort(v, n, sizeof(*v), compare);
    for (size_t i = 0; i < n; i++)
        if ((i + 1) * 100 >= n * percent)
            return v[i];
    return -1;
}

T_CASE(random_nights_recounted)
{
    uint64_t seed = 5;

    for (size_t round = t_rounds(2000, 200); round > 0; round--) {
        struct gpv_night *n = random_night(&seed);
        struct gpv_batch_facts *f = facts_of(n);

        for (size_t b = 0; b < BATCHES; b++) {
            int64_t runs[MOST] = { 0 }, waits[MOST] = { 0 };
            size_t ran = 0, waited = 0, attempts = 0;
            for (size_t i = 0; i < n->attempts.n; i++) {
                const struct gpv_attempt *a = &n->attempts.row[i];
                if (GPV_BATCH_OF(a->task) != n->batches.row[b].id || a->number == 0)
                    continue;
                attempts++;
                if (a->outcome == GPV_OK)
                    runs[ran++] = a->ended - a->started;
                if (a->number == 1 && a->ready != 0)
                    waits[waited++] = a->started - a->ready;
            }
            T_EQ(f[b].attempts, attempts);
            T_EQ(f[b].run_p50, quantile(runs, ran, 50));
            T_EQ(f[b].run_p95, quantile(runs, ran, 95));
            T_EQ(f[b].wait_p50, quantile(waits, waited, 50));
        }
        free(f);
        gpv_night_free(n);
    }
}

/* The Nth allocation fails, for each N. */
T_CASE(no_memory)
{
    struct gpv_night *n = t_night(NIGHT);
    struct gpv_batch_facts *f = facts_of(n);
    struct gpv_night_facts all;
    unsigned failed = 0;

    do {
        fail_at = failed + 1;
        failed += gpv_batch_facts(n, f) != 0;
    } while (fail_at == 0);
    T_EQ(failed, 4);
    fail_at = 1;
    T_EQ(gpv_night_facts(n, &all), -1);
    T_EQ(fail_at, 0);
    T_EQ(gpv_night_facts(n, &all), 0);
    free(f);
    gpv_night_free(n);
}
