/* SPDX-License-Identifier: MIT */
/* now.c - follows starts, rows of spans and commits. */
#include "queue/agent/now.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/agent/classes.h"
#include "queue/agent/grant.h"
#include "queue/agent/keep.h"
#include "queue/agent/lookup.h"
#include "queue/agent/spans.h"

#define LEFT_EVERY (10 * GPQ_MINUTE)

/* ---- Reports ---- */

static void apply_left(struct gpq_now *n, const struct gpq_report *r)
{
    struct gpq_kept_batch *b = gpq_now_batch(n, GPV_BATCH_OF(r->task));
    if (!b || b->row.ended != 0)
        return;
    if (!b->left && r->kind == GPQ_NOW_LEFT_START)
        b->left = calloc(1, sizeof(*b->left));
    b->left_at = 0;
    if (b->left && r->kind == GPQ_NOW_LEFT_START)
        gpv_left_start(b->left, r->time);
    else if (b->left)
        gpv_left_end(b->left, r->started, r->time);
}

void gpq_now_apply(struct gpq_now *n, const struct gpq_report *r)
{
    switch (r->kind) {
    case GPQ_NOW_LOADING:
        gpv_live_loading(n->live, r->gpu, r->change, r->time);
        return;
    case GPQ_NOW_KEPT:
        gpv_live_kept(n->live, r->gpu, r->change, r->time);
        return;
    case GPQ_NOW_OUT:
        gpv_live_out(n->live, r->gpu, r->change, r->time);
        return;
    case GPQ_NOW_WAITS:
        gpv_live_waits(n->live, r->change > 0, r->time);
        return;
    case GPQ_NOW_START:
        (void)gpv_live_start(n->live, r->gpu, r->task, r->time);
        return;
    case GPQ_NOW_END_OK:
    case GPQ_NOW_END_BAD:
        gpv_live_end(n->live, r->gpu, r->task, r->time, r->kind == GPQ_NOW_END_OK);
        return;
    default:
        apply_left(n, r);
    }
}

void gpq_now_report(struct gpq_now *n, struct gpq_report r)
{
    struct gpq_report *late = n->filled ? NULL : gpq_now_row(&n->late, sizeof(*late));
    if (n->filled)
        gpq_now_apply(n, &r);
    else if (late)
        *late = r;
}

/* ---- Rows of spans ---- */

static void report_gpu(struct gpq_now *n, const struct gpq_span *span, enum gpq_report_kind kind)
{
    uint32_t gpu = gpq_now_gpu(n, span->subject, strlen(span->subject));
    int64_t time = (int64_t)(span->until != 0 ? span->until : span->since);
    if (gpu == GPV_NONE)
        return;
    if (span->until != 0 && time > n->gpus.row[gpu].ended)
        n->gpus.row[gpu].ended = time;
    gpq_now_report(
        n, (struct gpq_report){
               .kind = kind, .gpu = gpu, .change = span->until != 0 ? -1 : 1, .time = time });
}

/* A worker begins to load or to leave, or has done so. */
static void see_worker(struct gpq_now *n, const struct gpq_span *span)
{
    size_t whom;
    char name[64];
    const char *why = gpq_span_why(span->text, &whom);
    bool boots = strcmp(span->reason, "boot") == 0;
    snprintf(name, sizeof(name), "%.*s", (int)(whom < 63 ? whom : 63), span->text);
    struct gpq_kept_class *class = &n->classes.row[gpq_now_class(n, name)];
    if (span->until != 0) {
        if (boots)
            gpv_lengths_add(&class->boot, (int64_t)(span->until - span->since));
        return;
    }
    class->row.restarts += boots && strncmp(why, "restart", 7) == 0;
    class->row.evicted += !boots && strncmp(why, "evicted", 7) == 0;
}

static void see_reason(struct gpq_now *n, const struct gpq_span *span)
{
    uint32_t before = n->reasons;
    int64_t until = (int64_t)span->until;
    if (until == 0)
        n->reasons++;
    else if (n->reasons > 0)
        n->reasons--;
    n->waited_until = until > n->waited_until ? until : n->waited_until;
    if ((before > 0) != (n->reasons > 0))
        gpq_now_report(
            n, (struct gpq_report){ .kind = GPQ_NOW_WAITS,
                                    .change = n->reasons > 0,
                                    .time = until != 0 ? n->waited_until : (int64_t)span->since });
}

void gpq_now_span(struct gpq_agent *a, const struct gpq_span *span)
{
    struct gpq_now *n = a->now;
    if (!n || strcmp(span->kind, "left") == 0)
        return;
    n->version++;
    n->wrong = true;
    if (strcmp(span->kind, "device") == 0) {
        report_gpu(n, span, GPQ_NOW_OUT);
    } else if (strcmp(span->kind, "reason") == 0) {
        see_reason(n, span);
    } else if (strcmp(span->kind, "tenancy") == 0) {
        bool kept = strcmp(span->reason, "kept") == 0;
        report_gpu(n, span, kept ? GPQ_NOW_KEPT : GPQ_NOW_LOADING);
        if (!kept)
            see_worker(n, span);
    }
    if (span->until == 0)
        return;
    gpq_record_span(&n->lines, span);
    (void)gpq_wrong_read(a, n->kept);
}

void gpq_now_reworded(struct gpq_agent *a)
{
    if (a->now)
        a->now->version++;
}

/* ---- Attempts ---- */

struct gpq_running *gpq_now_running(struct gpq_now *n, uint64_t task)
{
    for (size_t i = 0; i < n->running.n; i++)
        if (n->running.row[i].task == task)
            return &n->running.row[i];
    return NULL;
}

static void put_gpus(const struct gpq_now *n, struct gpq_running *w, const char *devices)
{
    while (*devices && w->n < GPQ_VALUE_GPUS) {
        uint32_t gpu = gpq_now_next_gpu(n, &devices);
        if (gpu != GPV_NONE)
            w->gpu[w->n++] = (uint16_t)gpu;
    }
}

static void started(struct gpq_agent *a, const struct gpq_unit *u, const char *devices,
                    uint64_t since)
{
    struct gpq_now *n = a->now;
    if (since == 0 || gpq_now_running(n, u->task))
        return;
    struct gpq_running *w = gpq_now_row(&n->running, sizeof(*w));
    if (!w)
        return;
    *w = (struct gpq_running){ .task = u->task,
                               .ready = (int64_t)u->ready,
                               .since = (int64_t)since,
                               .limit = (int64_t)u->allowed,
                               .attempt = u->attempt,
                               .class = u->class ? gpq_now_class(n, u->class->name) : 0 };
    put_gpus(n, w, devices);
    gpq_spans_started(a, u->shape, since);
    n->version++;
    for (uint32_t i = 0; i < w->n; i++)
        gpq_now_report(
            n, (struct gpq_report){
                   .kind = GPQ_NOW_START, .gpu = w->gpu[i], .task = w->task, .time = w->since });
    gpq_now_report(
        n, (struct gpq_report){ .kind = GPQ_NOW_LEFT_START, .task = w->task, .time = w->since });
}

/* Its devices are a list of names, or those of its grant. */
void gpq_now_start(struct gpq_agent *a, const struct gpq_unit *u, uint64_t since)
{
    struct gpq_grant grant;
    (void)gpq_grant_read(u->devices, &grant);
    started(a, u, grant.names, since);
    gpq_grant_free(&grant);
}

void gpq_now_runs(struct gpq_agent *a, const struct gpq_unit *u)
{
    if (a->now)
        gpq_now_start(a, u, u->since);
}

/* ---- Slots ---- */

static void see_slot(struct gpq_agent *a, const struct gpud_slot_stats *slot)
{
    struct gpq_now *n = a->now;
    bool loads = slot->state == GPUD_SLOT_STARTING;
    if (!loads && slot->state != GPUD_SLOT_READY && slot->state != GPUD_SLOT_BUSY)
        return;
    struct gpv_now_class *class = &n->classes.row[gpq_now_class(n, slot->class_name)].row;
    class->workers++;
    class->loading += loads;
    class->ready += !loads;
    for (const char *at = slot->devices; *at;) {
        uint32_t gpu = gpq_now_next_gpu(n, &at);
        if (gpu != GPV_NONE)
            memcpy(n->gpus.row[gpu].worker, slot->class_name, sizeof(n->gpus.row[gpu].worker));
    }
    const struct gpq_unit *u = slot->task_id != 0 ? gpq_work_by_id(a, slot->task_id) : NULL;
    if (u && u->class)
        started(a, u, slot->devices, gpq_wall_of(slot->task_started));
}

void gpq_now_slot(struct gpq_agent *a, const struct gpud_slot_stats *slot)
{
    struct gpq_now *n = a->now;
    if (!n)
        return;
    if (slot) {
        see_slot(a, slot);
        return;
    }
    for (size_t i = 0; i < n->classes.n; i++) {
        struct gpv_now_class *c = &n->classes.row[i].row;
        c->workers = c->ready = c->loading = 0;
    }
    for (size_t i = 0; i < n->gpus.n; i++)
        n->gpus.row[i].worker[0] = '\0';
}

/* ---- A commit ---- */

static void note_done(struct gpq_agent *a, const struct gpq_change *c, struct gpq_kept_batch *b,
                      int64_t now)
{
    struct gpq_kept_class *class = &a->now->classes.row[gpq_now_class_of(a, c->shape)];
    class->row.tasks_by[c->outcome % GPV_OUTCOMES]++;
    if (b)
        gpq_now_count_end(b, now);
}

/* A row of time left: after ten minutes, or a tenth of the tasks. */
static void note_left(struct gpq_agent *a, struct gpq_kept_batch *b, int64_t now)
{
    char subject[16], text[48] = "", from[24] = "", to[24] = "";
    if (!b->left || !a->now->filled || b->row.total == 0 ||
        (b->left->ends - b->noted_ends < (b->row.total + 9) / 10 &&
         now - b->noted_at < LEFT_EVERY && now >= b->noted_at))
        return;
    b->noted_ends = b->left->ends;
    b->noted_at = now;
    if (!gpq_now_read_batch(a, b) || !b->left)
        return;
    gpq_now_find_left(b, b->row.ready, b->row.held, now);
    if (b->row.least >= 0)
        snprintf(from, sizeof(from), "%" PRIi64, b->row.least);
    if (b->row.most >= 0)
        snprintf(to, sizeof(to), "%" PRIi64, b->row.most);
    snprintf(subject, sizeof(subject), "%" PRIu32, b->row.id);
    snprintf(text, sizeof(text), "%s %s", from, to);
    gpq_spans_note(a, "left", subject, text);
}

static void note_change(struct gpq_agent *a, size_t i, int64_t now)
{
    const struct gpq_store *s = a->store;
    const struct gpq_change *c = &s->changes[i];
    uint32_t id = GPQ_BATCH_OF(c->task);
    struct gpq_kept_batch *b =
        c->to != 0 ? gpq_now_add_batch(a->now, id) : gpq_now_batch(a->now, id);
    bool ended = c->from == GPQ_RUNNING && c->to != GPQ_RUNNING;
    if (b && b->row.made == 0) /* ends show its name */
        (void)gpq_now_read_batch(a, b);
    if (b) {
        b->stale = true;
        b->row.ended = c->to != GPQ_DONE && c->to != 0 ? 0 : b->row.ended; /* a further round */
    }
    if (ended)
        gpq_now_attempt_ended(a, c, now);
    else if (c->to == GPQ_DONE && c->from != GPQ_DONE && c->outcome != GPQ_OUTCOME_SUCCESS)
        gpq_now_unstarted(a, c, now, s->n_changes - i <= GPV_NOW_ENDS);
    if (c->to == GPQ_DONE && c->from != GPQ_DONE)
        note_done(a, c, b, now);
    if (ended && b)
        note_left(a, b, now);
}

static void note_joined(struct gpq_now *n)
{
    for (size_t i = 0; i < n->batches.n; i++)
        n->batches.row[i].stale |= n->batches.row[i].joined != 0;
}

void gpq_now_turned(struct gpq_agent *a)
{
    struct gpq_now *n = a->now;
    if (!n || a->store->n_changes == 0)
        return;
    for (size_t i = 0; i < a->store->n_changes; i++)
        note_change(a, i, (int64_t)a->turned);
    note_joined(n);
    gpq_wrong_forget(a);
    gpq_wrong_bound(a);
    n->version++;
}

void gpq_now_batch_changed(struct gpq_agent *a, uint32_t batch)
{
    struct gpq_kept_batch *b = a->now ? gpq_now_add_batch(a->now, batch) : NULL;
    if (!b)
        return;
    b->stale = true;
    if (b->row.made == 0 || b->open) /* records need the number of tasks that it has joined */
        (void)gpq_now_read_batch(a, b);
    a->now->version++;
}

/* ---- Open and close ---- */

static void start_adopted(struct gpq_agent *a, struct gpq_unit *u, void *user)
{
    (void)user;
    if (u->phase == GPQ_RUNS && !u->class)
        gpq_now_start(a, u, u->since);
}

int gpq_now_open(struct gpq_agent *a, struct gpq_error *e)
{
    struct gpq_now *n = a->now = calloc(1, sizeof(*n));
    if (!n)
        return gpq_fail(e, GPQ_ENOMEM, "no memory");
    n->since = (int64_t)gpq_wall();
    (void)gethostname(n->host, sizeof(n->host) - 1);
    int code = gpq_keep_open(a, e);
    if (code < 0)
        return code;
    n->live = gpq_wrong_open(a) == 0 ? gpv_live_new((uint32_t)n->gpus.n, n->since) : NULL;
    n->past = n->live ? gpv_night_new() : NULL;
    if (!n->past)
        return gpq_fail(e, GPQ_ENOMEM, "no memory for snapshots");
    gpq_work_each(a, start_adopted, NULL);
    n->late.n = 0; /* the rows of the store have these starts */
    n->version = 1;
    return 0;
}

void gpq_now_close(struct gpq_agent *a)
{
    struct gpq_now *n = a->now;
    if (!n)
        return;
    gpq_keep_close(n);
    free(n->running.row);
    free(n->late.row);
    gpv_live_free(n->live);
    gpv_night_free(n->past);
    gpq_wrong_close(n);
    free(n);
    a->now = NULL;
}
