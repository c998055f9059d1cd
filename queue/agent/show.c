/* SPDX-License-Identifier: MIT */
/* show.c - the present moment as a snapshot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/agent/keep.h"
#include "queue/agent/spans.h"
#include "view/now/moment.h"

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)
#define VERSION VERSION_TEXT(GPUD_VERSION_MAJOR, GPUD_VERSION_MINOR, GPUD_VERSION_PATCH)

#define SECOND INT64_C(1000000000)
enum { SHAPES = 64 };

/* Rows that are open. */
struct reason {
    uint32_t shape, whom; /* whom: length of the task's id in the text */
    int64_t since;
    char word[24], text[256];
};

struct view {
    struct gpq_agent *a;
    struct gpq_now *now;
    struct gpv_snapshot *s;
    struct reason reason[SHAPES];
    size_t reasons;
    bool kept; /* a GPU is kept free */
};

/* ---- The head ---- */

static void put_notice(const struct gpq_agent *a, char *to, size_t size)
{
    *to = '\0';
    if (a->stop.now)
        snprintf(to, size, "stopping");
    else if (*a->wait_text)
        snprintf(to, size, "starts wait: %.*s", (int)size - 20, a->wait_text);
    else if (a->paused)
        snprintf(to, size, "paused");
}

uint64_t gpq_now_version(struct gpq_agent *a)
{
    struct gpq_now *n = a->now;
    char notice[sizeof(n->notice)];
    if (!n || !n->filled)
        return 0;
    put_notice(a, notice, sizeof(notice));
    if (strcmp(notice, n->notice) != 0) {
        memcpy(n->notice, notice, sizeof(n->notice));
        n->version++;
    }
    return n->version;
}

static void fill_head(struct view *v, int64_t now)
{
    *v->s = (struct gpv_snapshot){ .sequence = v->now->version,
                                   .time = now,
                                   .since = v->now->since,
                                   .pid = (uint32_t)getpid(),
                                   .bad_24h = v->now->bad,
                                   .bad_tasks_24h = v->now->bad_tasks };
    memcpy(v->s->host, v->now->host, sizeof(v->s->host));
    gpv_now_text(v->s->version, sizeof(v->s->version), VERSION);
    gpv_now_text(v->s->notice, sizeof(v->s->notice), v->now->notice);
}

/* ---- GPUs ---- */

/* A device that sleeps would wake up to be read. */
static bool sleeps(const char *pci)
{
    char path[96], word[16] = "";
    unsigned domain, bus, device, function;
    if (sscanf(pci, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
        return false;
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%04x:%02x:%02x.%x/power/runtime_status",
             domain, bus, device, function);
    FILE *f = fopen(path, "re");
    bool read = f && fscanf(f, "%15s", word) == 1;
    if (f)
        fclose(f);
    return read && strcmp(word, "active") != 0 && strcmp(word, "unsupported") != 0;
}

static void see_sleep(struct gpq_now *n, const struct gpud_device_info *d, int count, int64_t now)
{
    uint32_t gpu = 0;
    if (n->asleep_at != 0 && now - n->asleep_at < SECOND && now >= n->asleep_at)
        return;
    n->asleep_at = now;
    n->asleep = 0;
    for (int i = 0; i < count && gpu < 64; i++)
        if (d[i].kind != GPUD_DEVICE_CPU)
            n->asleep |= (uint64_t)sleeps(d[i].pci) << gpu++;
}

static void put_readings(struct gpv_now_gpu *g, const struct gpud_device_info *d)
{
    bool known = d->sampled_at != 0 && !g->asleep;
    g->memory_used = known ? d->memory_used : UINT64_MAX;
    g->memory_total = known ? d->memory_total : UINT64_MAX;
    g->utilization = known ? d->utilization : GPV_NONE;
    g->temperature = known ? d->temperature : GPV_NONE;
    g->power = known ? d->power : GPV_NONE;
}

static void put_device(struct gpv_now_gpu *g, const struct gpud_device_info *d)
{
    g->index = d->index;
    memcpy(g->name, d->name, sizeof(g->name));
    memcpy(g->uuid, d->uuid, sizeof(g->uuid));
    memcpy(g->model, d->model, sizeof(g->model));
    memcpy(g->pci, d->pci, sizeof(g->pci));
    memcpy(g->profile, d->mig_profile, sizeof(g->profile));
    memcpy(g->parent, d->parent_uuid, sizeof(g->parent));
    put_readings(g, d);
}

static int fill_gpus(struct view *v, int64_t now)
{
    int count;
    struct gpud_device_info *d = gpq_devices_read(v->a, &count);
    bool there = true;
    see_sleep(v->now, d, count, now);
    for (int i = 0; d && there && i < count; i++) {
        size_t gpu = v->s->gpus.n;
        if (d[i].kind == GPUD_DEVICE_CPU || gpu >= v->now->gpus.n)
            continue;
        struct gpv_now_gpu *g = gpv_now_gpu(v->s);
        there = g;
        if (!g)
            break;
        g->asleep = gpu < 64 && v->now->asleep >> gpu & 1;
        put_device(g, &d[i]);
        gpv_live_totals(v->now->live, (uint32_t)gpu, now, &g->uses);
        gpv_now_text(g->class_name, sizeof(g->class_name), v->now->gpus.row[gpu].worker);
        g->since = v->now->gpus.row[gpu].ended > v->now->since ? v->now->gpus.row[gpu].ended
                                                               : v->now->since;
    }
    free(d);
    return there ? 0 : -1;
}

/* The other GPUs, as many as there is room for. */
static void put_with(const struct view *v, struct gpv_now_gpu *g, const struct gpq_running *w)
{
    size_t used = 0;
    g->with[0] = '\0';
    for (uint32_t i = 0; i < w->n; i++) {
        const char *name = v->now->gpus.row[w->gpu[i]].name;
        if (strcmp(name, g->name) == 0 || used + strlen(name) + 2 > sizeof(g->with))
            continue;
        used +=
            (size_t)snprintf(g->with + used, sizeof(g->with) - used, "%s%s", used ? "," : "", name);
    }
}

static void put_run(const struct view *v, struct gpv_now_gpu *g, const struct gpq_running *w)
{
    bool first =
        g->tasks == 0 || w->since < g->since || (w->since == g->since && w->task < g->task);
    g->does = GPV_DOES_RUN;
    g->tasks++;
    g->text[0] = '\0';
    if (!first)
        return;
    g->since = w->since;
    g->task = w->task;
    g->attempt = w->attempt;
    g->limit = w->limit;
    put_with(v, g, w);
    memcpy(g->class_name, v->now->classes.row[w->class].row.name, sizeof(g->class_name));
}

static void put_running(const struct view *v)
{
    for (size_t i = 0; i < v->now->running.n; i++)
        for (uint32_t k = 0; k < v->now->running.row[i].n; k++)
            if (v->now->running.row[i].gpu[k] < v->s->gpus.n)
                put_run(v, &v->s->gpus.row[v->now->running.row[i].gpu[k]], &v->now->running.row[i]);
}

/* ---- Rows that are open ---- */

/* In the order of enum gpv_use: the first that applies. */
static int rank(uint32_t does)
{
    return does == GPV_DOES_LOAD || does == GPV_DOES_LEAVE ? 3
           : does == GPV_DOES_KEPT                         ? 2
           : does == GPV_DOES_OUT                          ? 1
                                                           : 0;
}

static void put_out(struct gpv_now_gpu *g, const struct gpq_span *span, const char *why)
{
    uint32_t kind = 1;
    while (kind < GPV_OUTS && strcmp(gpv_out_word(kind), span->reason) != 0)
        kind++;
    gpv_now_out(g->text, sizeof(g->text), kind, why);
}

static void see_gpu(struct view *v, const struct gpq_span *span, uint32_t does)
{
    uint32_t gpu = gpq_now_gpu(v->now, span->subject, strlen(span->subject));
    struct gpv_now_gpu *g = gpu < v->s->gpus.n ? &v->s->gpus.row[gpu] : NULL;
    size_t whom;
    const char *why = gpq_span_why(span->text, &whom);
    v->kept = v->kept || does == GPV_DOES_KEPT;
    if (!g || rank(does) < rank(g->does))
        return;
    g->does = does;
    g->since = (int64_t)span->since;
    if (does == GPV_DOES_OUT)
        put_out(g, span, why);
    else
        gpv_now_text(g->text, sizeof(g->text), does == GPV_DOES_KEPT ? span->text : why);
    g->kept_for = does == GPV_DOES_KEPT ? gpv_now_kept_for(span->text) : 0;
    if (does == GPV_DOES_LOAD || does == GPV_DOES_LEAVE)
        snprintf(g->class_name, sizeof(g->class_name), "%.*s", (int)(whom < 63 ? whom : 63),
                 span->text);
}

static void see_reason(struct view *v, const struct gpq_span *span)
{
    struct reason *r = v->reasons < SHAPES ? &v->reason[v->reasons++] : NULL;
    size_t whom;
    if (!r)
        return;
    r->shape = (uint32_t)strtoul(span->subject, NULL, 10);
    r->since = (int64_t)span->since;
    snprintf(r->word, sizeof(r->word), "%s", span->reason);
    snprintf(r->text, sizeof(r->text), "%s", gpq_span_why(span->text, &whom));
}

static int see_span(const struct gpq_span *span, void *user)
{
    struct view *v = user;
    if (span->until != 0)
        return 0;
    if (strcmp(span->kind, "device") == 0)
        see_gpu(v, span, GPV_DOES_OUT);
    else if (strcmp(span->kind, "reason") == 0)
        see_reason(v, span);
    else if (strcmp(span->kind, "tenancy") == 0)
        see_gpu(v, span,
                strcmp(span->reason, "boot") == 0     ? GPV_DOES_LOAD
                : strcmp(span->reason, "unload") == 0 ? GPV_DOES_LEAVE
                                                      : GPV_DOES_KEPT);
    return 0;
}

/* ---- Batches ---- */

static void put_reason(const struct view *v, struct gpv_now_batch *row, uint32_t shape)
{
    uint32_t gpus = row->first != 0 ? gpq_now_gpus_of(v->a, shape) : 0;
    row->why = GPV_WHY_UNSEEN;
    row->gpus = gpus >= 2 ? gpus : 0;
    for (size_t i = 0; row->first != 0 && i < v->reasons; i++) {
        const struct reason *r = &v->reason[i];
        if (r->shape != shape)
            continue;
        row->why = gpv_why_of_word(r->word, v->kept && gpus >= 2);
        row->since = r->since;
        snprintf(row->reason, sizeof(row->reason), "%s", r->word);
        gpv_now_text(row->text, sizeof(row->text), r->text);
    }
}

static uint64_t ends_of(const struct gpq_kept_batch *b, int64_t now)
{
    uint64_t sum = 0;
    for (int64_t minute = now / GPQ_MINUTE; minute > now / GPQ_MINUTE - GPQ_HOUR; minute--)
        if (minute <= b->minute && minute > b->minute - GPQ_HOUR - 1)
            sum += b->ends[minute % (GPQ_HOUR + 1)];
    return sum;
}

/* For a second, or until something starts or ends. */
void gpq_now_find_left(struct gpq_kept_batch *b, uint32_t ready, uint32_t held, int64_t now)
{
    uint32_t turn = b->row.turn != 0 ? held : 0;
    if (b->left_at != 0 && now - b->left_at < SECOND && now >= b->left_at)
        return;
    b->row.least = b->row.most = -1;
    if (b->left)
        gpv_left(b->left, now, ready + turn, held > turn || b->open, &b->row.least, &b->row.most);
    b->left_at = now;
}

void gpq_now_left(struct gpq_agent *a, const struct gpq_batch *batch, int64_t *ret_least,
                  int64_t *ret_most)
{
    struct gpq_kept_batch *b = a->now ? gpq_now_batch(a->now, batch->id) : NULL;
    bool known = b && batch->ended == 0;
    if (known)
        gpq_now_find_left(b, batch->state[GPQ_READY], batch->state[GPQ_HELD], (int64_t)gpq_wall());
    *ret_least = known ? b->row.least : -1;
    *ret_most = known ? b->row.most : -1;
}

static void join_left(struct gpv_snapshot *s, const struct gpv_now_batch *row, bool *known)
{
    if (row->ended != 0)
        return;
    if (!*known)
        s->least = s->most = 0;
    *known = true;
    gpv_left_join(&s->least, &s->most, row->least, row->most);
}

static void count_waiting(const struct view *v, const struct gpq_kept_batch *b,
                          const struct gpv_now_batch *row)
{
    uint32_t waits = row->first != 0 ? row->ready + row->turn : 0;
    uint32_t class = waits + row->held > 0 ? gpq_now_class_of(v->a, b->shape) : GPV_NONE;
    if (class >= v->s->classes.n)
        return;
    v->s->classes.row[class].waiting[row->why % GPV_WHYS] += waits;
    v->s->classes.row[class].held += row->held - row->turn;
}

static void read_batches(struct view *v, int64_t now)
{
    for (size_t i = v->now->batches.n; i > 0; i--) {
        struct gpq_kept_batch *b = &v->now->batches.row[i - 1];
        if (!gpq_now_read_batch(v->a, b) || (b->row.ended != 0 && b->row.ended <= now - GPQ_DAY))
            gpq_now_drop_batch(v->now, i - 1);
    }
}

static int fill_batches(struct view *v, int64_t now)
{
    bool known = false;
    v->s->least = v->s->most = -1;
    for (size_t i = 0; i < v->now->batches.n; i++) {
        struct gpq_kept_batch *b = &v->now->batches.row[i];
        struct gpv_now_batch *row = gpv_now_batch(v->s);
        if (!row)
            return -1;
        gpq_now_find_left(b, b->row.ready, b->row.held, now);
        *row = b->row;
        row->per_hour = gpv_now_per_hour(ends_of(b, now), row->made, now);
        put_reason(v, row, b->shape);
        join_left(v->s, row, &known);
        count_waiting(v, b, row);
    }
    gpv_now_sort_batches(v->s->batches.row, v->s->batches.n);
    return 0;
}

/* ---- Classes, findings, ends, history ---- */

static int fill_classes(struct view *v)
{
    for (size_t i = 0; i < v->now->classes.n; i++) {
        struct gpv_now_class *row = gpv_now_class(v->s);
        if (!row)
            return -1;
        *row = v->now->classes.row[i].row;
        row->boot_p50 = gpv_lengths_p50(&v->now->classes.row[i].boot);
        row->run_p50 = gpv_lengths_p50(&v->now->classes.row[i].run);
    }
    return 0;
}

static int fill_past(struct view *v)
{
    for (size_t i = 0; i < v->now->findings.n; i++) {
        struct gpv_now_finding *row = gpv_now_finding(v->s);
        if (!row)
            return -1;
        *row = v->now->findings.row[i];
        if (row->last == v->now->found_at) /* it goes on */
            row->last = v->s->time;
    }
    for (size_t i = 0; i < v->now->n_ended; i++) {
        struct gpv_now_end *row = gpv_now_end(v->s);
        if (!row)
            return -1;
        *row = v->now->ended[i];
    }
    return 0;
}

static int fill_history(struct view *v, int64_t now)
{
    struct gpv_snapshot *s = v->s;
    if (s->gpus.n == 0)
        return 0;
    s->minutes = GPV_MINUTES;
    s->history = calloc(s->gpus.n * GPV_MINUTES, sizeof(*s->history));
    for (size_t i = 0; s->history && i < s->gpus.n; i++)
        gpv_live_ring(v->now->live, (uint32_t)i, now, s->history + i * GPV_MINUTES);
    return s->history ? 0 : -1;
}

uint64_t gpq_now_owes(const struct gpq_agent *a)
{
    return a->now && a->now->wrong ? a->now->find_at : 0;
}

bool gpq_now_has_readings(const struct gpq_agent *a)
{
    return a->now && a->now->running.n != 0 && a->now->has_readings;
}

static int fill(struct view *v, bool history)
{
    int64_t now = (int64_t)gpq_wall();
    read_batches(v, now);
    gpq_wrong_find(v->a, now);
    fill_head(v, now);
    if (fill_gpus(v, now) < 0)
        return -1;
    (void)gpq_spans_each(v->a, see_span, v);
    put_running(v);
    if (fill_classes(v) < 0 || fill_batches(v, now) < 0 || fill_past(v) < 0)
        return -1;
    return history ? fill_history(v, now) : 0;
}

int gpq_now_show(struct gpq_agent *a, bool history, struct gpv_snapshot *ret)
{
    struct view v; /* not cleared: `reason` has 18 KiB */
    v.a = a;
    v.now = a->now;
    v.s = ret;
    v.reasons = 0;
    v.kept = false;
    int code = fill(&v, history);
    if (code < 0)
        gpv_snapshot_free(ret);
    return code;
}
