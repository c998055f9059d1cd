/* SPDX-License-Identifier: MIT */
/* json.c - the numbers of a night, as one JSON object. */
#include "view/json.h"

#include <inttypes.h>
#include <stdlib.h>

#include "view/night/batches.h"
#include "view/night/findings.h"
#include "view/night/use.h"
#include "view/night/waits.h"
#include "view/report/formats.h"
#include "view/words.h"

#define NS_PER_MS 1000000

static void put_ms(struct gpv_json *j, const char *key, int64_t ns)
{
    gpv_json_time(j, key, ns < 0 ? -1 : ns / NS_PER_MS, 0);
}

static void put_text(struct gpv_json *j, const struct gpv_night *n, const char *key, uint32_t text)
{
    gpv_json_text(j, key, gpv_text(n, text));
}

/* ---- GPUs ---- */

/* Rounds so that the uses add up to the length of the span in ms: each to the difference of the
 * rounded sums before and after it.  [V3] */
static void round_uses(const struct gpv_uses *u, int64_t ret[GPV_USES])
{
    int64_t sum = 0;

    for (unsigned i = 0; i < GPV_USES; i++) {
        ret[i] = (sum + u->ns[i]) / NS_PER_MS - sum / NS_PER_MS;
        sum += u->ns[i];
    }
}

static void put_uses(struct gpv_json *j, const int64_t ms[GPV_USES])
{
    gpv_json_open(j, "gpu_ms", '{');
    for (unsigned i = 0; i < GPV_USES; i++)
        gpv_json_number(j, gpv_use_word(i), ms[i]);
    gpv_json_close(j, '}');
}

static int put_gpu(struct gpv_json *j, const struct gpv_night *n, uint32_t i,
                   int64_t total[GPV_USES])
{
    const struct gpv_gpu *gpu = &n->gpus.row[i];
    struct gpv_uses uses;
    int64_t ms[GPV_USES];

    if (gpv_use_sum(n, i, n->from, n->to, &uses))
        return -1;
    round_uses(&uses, ms);
    gpv_json_open(j, NULL, '{');
    put_text(j, n, "name", gpu->name);
    put_text(j, n, "uuid", gpu->uuid);
    if (gpu->index != GPV_NONE)
        gpv_json_number(j, "index", gpu->index);
    else
        gpv_json_null(j, "index");
    put_text(j, n, "model", gpu->model);
    put_text(j, n, "pci", gpu->pci);
    put_text(j, n, "profile", gpu->profile);
    put_text(j, n, "parent", gpu->parent);
    put_uses(j, ms);
    gpv_json_close(j, '}');
    for (unsigned u = 0; u < GPV_USES; u++)
        total[u] += ms[u];
    return 0;
}

static int put_gpus(struct gpv_json *j, const struct gpv_night *n)
{
    int64_t total[GPV_USES] = { 0 };

    gpv_json_open(j, "gpus", '[');
    for (uint32_t i = 0; i < n->gpus.n; i++)
        if (put_gpu(j, n, i, total))
            return -1;
    gpv_json_close(j, ']');
    put_uses(j, total);
    return 0;
}

/* ---- Tasks ---- */

/* Those that are not 0, by their words. */
static void put_outcomes(struct gpv_json *j, const char *key, const uint64_t by[GPV_OUTCOMES])
{
    gpv_json_open(j, key, '{');
    for (unsigned i = 0; i < GPV_OUTCOMES; i++)
        if (by[i])
            gpv_json_number(j, gpv_outcome_word(i), (int64_t)by[i]);
    gpv_json_close(j, '}');
}

static int put_facts(struct gpv_json *j, const struct gpv_night *n)
{
    struct gpv_night_facts facts;

    if (gpv_night_facts(n, &facts))
        return -1;
    gpv_json_number(j, "attempts", (int64_t)facts.attempts);
    gpv_json_number(j, "tasks", (int64_t)facts.tasks);
    put_outcomes(j, "ends", facts.ended_by);
    put_outcomes(j, "outcomes", facts.tasks_by);
    gpv_json_number(j, "bad", (int64_t)facts.bad);
    gpv_json_number(j, "restarts", (int64_t)facts.restarts);
    gpv_json_number(j, "evictions", (int64_t)facts.evictions);
    gpv_json_time(j, "ended", facts.ended, 1);
    gpv_json_time(j, "ended_95", facts.p95, 1);
    return 0;
}

/* ---- Batches ---- */

static void put_id(struct gpv_json *j, const char *key, uint32_t id)
{
    char text[GPV_WORD];

    snprintf(text, sizeof text, "%" PRIu32, id);
    gpv_json_text(j, key, text);
}

static void put_counts(struct gpv_json *j, const struct gpv_batch *b)
{
    uint64_t by[GPV_OUTCOMES];

    gpv_json_open(j, "states", '{');
    gpv_json_number(j, "held", b->held);
    gpv_json_number(j, "ready", b->ready);
    gpv_json_number(j, "running", b->running);
    gpv_json_close(j, '}');
    for (unsigned i = 0; i < GPV_OUTCOMES; i++)
        by[i] = b->ended_by[i];
    put_outcomes(j, "outcomes", by);
}

static int put_waits(struct gpv_json *j, const struct gpv_night *n, uint32_t batch)
{
    double ns[GPV_WHYS];

    if (gpv_wait_sum(n, batch, ns, NULL))
        return -1;
    gpv_json_open(j, "wait_ms", '{');
    for (unsigned i = 0; i < GPV_WHYS; i++)
        if (ns[i] > 0)
            gpv_json_number(j, gpv_why_word(i), (int64_t)(ns[i] / NS_PER_MS));
    gpv_json_close(j, '}');
    return 0;
}

static int put_batch(struct gpv_json *j, const struct gpv_night *n, uint32_t i,
                     const struct gpv_batch_facts *facts)
{
    const struct gpv_batch *b = &n->batches.row[i];

    gpv_json_open(j, NULL, '{');
    put_id(j, "batch", b->id);
    put_text(j, n, "name", b->name);
    gpv_json_bool(j, "asked", b->asked);
    gpv_json_time(j, "made", b->made, 1);
    gpv_json_time(j, "ended", b->ended, 1);
    gpv_json_number(j, "priority", b->priority);
    gpv_json_bool(j, "open", b->open);
    gpv_json_bool(j, "held", b->is_held);
    gpv_json_number(j, "total", b->total);
    gpv_json_number(j, "joined", b->joined);
    put_counts(j, b);
    put_text(j, n, "class", facts->class < n->classes.n ? n->classes.row[facts->class].name : 0);
    gpv_json_number(j, "gpus", facts->gpus);
    gpv_json_number(j, "attempts", (int64_t)facts->attempts);
    gpv_json_time(j, "started", facts->started, 1);
    gpv_json_time(j, "last_end", facts->ended, 1);
    put_ms(j, "run_p50_ms", facts->run_p50);
    put_ms(j, "run_p95_ms", facts->run_p95);
    put_ms(j, "wait_p50_ms", facts->wait_p50);
    if (put_waits(j, n, i))
        return -1;
    gpv_json_close(j, '}');
    return 0;
}

static int put_batches(struct gpv_json *j, const struct gpv_night *n)
{
    struct gpv_batch_facts *facts = calloc(n->batches.n + 1, sizeof *facts);
    int r = facts ? gpv_batch_facts(n, facts) : -1;

    gpv_json_open(j, "batches", '[');
    for (uint32_t i = 0; r == 0 && i < n->batches.n; i++)
        r = put_batch(j, n, i, &facts[i]);
    gpv_json_close(j, ']');
    free(facts);
    return r;
}

/* ---- Findings ---- */

static const char *const finding_word[] = {
    [GPV_FINDING_BAD] = "bad",         [GPV_FINDING_OUT] = "out",
    [GPV_FINDING_KEPT] = "kept",       [GPV_FINDING_LIMITED] = "limited",
    [GPV_FINDING_EVICTED] = "evicted", [GPV_FINDING_UNKNOWN] = "unknown",
    [GPV_FINDING_CLOCK] = "clock",
};

static void put_gpu_names(struct gpv_json *j, const struct gpv_night *n,
                          const struct gpv_finding *f)
{
    const struct gpv_set set = gpv_set(n, f->set);

    gpv_json_open(j, "gpus", '[');
    for (uint32_t i = 0; i < set.n; i++)
        put_text(j, n, NULL, n->gpus.row[set.gpu[i]].name);
    if (f->gpu < n->gpus.n)
        put_text(j, n, NULL, n->gpus.row[f->gpu].name);
    gpv_json_close(j, ']');
}

static void put_bad(struct gpv_json *j, const struct gpv_finding *f)
{
    gpv_json_text(j, "outcome", gpv_outcome_word(f->outcome));
    gpv_json_number(j, "status", f->status);
    gpv_json_number(j, "tasks", f->n_tasks);
    gpv_json_number(j, "still", (int64_t)f->still);
    gpv_json_open(j, "ranges", '[');
    for (uint32_t i = 0; i < f->n_ranges; i++) {
        gpv_json_open(j, NULL, '[');
        gpv_json_number(j, NULL, f->range[i].from);
        gpv_json_number(j, NULL, f->range[i].to);
        gpv_json_close(j, ']');
    }
    gpv_json_close(j, ']');
    gpv_json_number(j, "more", f->more);
}

static void put_finding(struct gpv_json *j, const struct gpv_night *n, const struct gpv_finding *f)
{
    char text[256];

    gpv_json_open(j, NULL, '{');
    gpv_json_text(j, "kind", finding_word[f->kind]);
    gpv_json_text(j, "text", gpv_finding_text(n, f, text, sizeof text));
    put_text(j, n, "why", f->text);
    gpv_json_time(j, "first", f->first, 1);
    gpv_json_time(j, "last", f->last, 1);
    gpv_json_number(j, "count", (int64_t)f->count);
    if (f->batch)
        put_id(j, "batch", f->batch);
    else
        gpv_json_null(j, "batch");
    put_gpu_names(j, n, f);
    gpv_json_bool(j, "goes_on", f->goes_on);
    gpv_json_text(j, "command", f->command);
    if (f->kind == GPV_FINDING_BAD)
        put_bad(j, f);
    gpv_json_close(j, '}');
}

static int put_findings(struct gpv_json *j, struct gpv_night *n)
{
    struct gpv_findings *found = gpv_findings_of(n);

    gpv_json_open(j, "findings", '[');
    for (size_t i = 0; found && i < found->n; i++)
        put_finding(j, n, &found->row[i]);
    gpv_json_close(j, ']');
    gpv_findings_free(found);
    return found ? 0 : -1;
}

int gpv_report_json(struct gpv_night *n, FILE *f)
{
    struct gpv_json j = { .f = f };

    gpv_json_open(&j, NULL, '{');
    gpv_json_number(&j, "version", GPV_REPORT_VERSION);
    put_text(&j, n, "host", n->host);
    gpv_json_number(&j, "from", n->from);
    gpv_json_number(&j, "to", n->to);
    gpv_json_bool(&j, "over", n->over);
    if (put_facts(&j, n) || put_gpus(&j, n) || put_batches(&j, n) || put_findings(&j, n))
        return -1;
    gpv_json_number(&j, "unknown_lines", (int64_t)n->unknown);
    gpv_json_close(&j, '}');
    fputc('\n', f);
    return 0;
}
