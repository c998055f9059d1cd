/* SPDX-License-Identifier: MIT */
/* gpus.c - what each GPU does, from records. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/names.h"
#include "view/night/live.h"
#include "view/now/filling.h"

void gpv_now_out(char *to, size_t size, uint32_t kind, const char *text)
{
    size_t used = (size_t)snprintf(to, size, "%s%s", gpv_out_word(kind), *text ? ": " : "");
    if (used < size)
        gpv_now_text(to + used, size - used, text);
}

uint64_t gpv_now_kept_for(const char *text)
{
    uint32_t batch, number;
    char colon = 0;
    int fields = sscanf(text, "%10" SCNu32 ".%10" SCNu32 "%c", &batch, &number, &colon);
    return fields == 3 && colon == ':' ? GPV_TASK(batch, number) : 0;
}

void gpv_put_gpus(char *to, size_t size, const struct gpv_night *p, struct gpv_set set)
{
    const char *name[64];
    size_t n = 0;
    for (uint32_t i = 0; i < set.n && n < sizeof(name) / sizeof(name[0]); i++)
        name[n++] = gpv_gpu_name(p, set.gpu[i]);
    gpv_now_gpus(to, size, name, n);
}

/* ---- What is open on a GPU ---- */

struct doing {
    const struct gpv_attempt *first; /* of those that run */
    uint32_t tasks;
    const struct gpv_tenancy *moves, *kept; /* a worker loads or leaves */
    const struct gpv_out *out;
    int64_t ended; /* the last end of any of these rows */
};

static void note_end(struct doing *d, int64_t end)
{
    d->ended = end > d->ended ? end : d->ended;
}

static void see_attempts(const struct gpv_night *p, struct doing *doing)
{
    for (size_t i = 0; i < p->attempts.n; i++) {
        const struct gpv_attempt *a = &p->attempts.row[i];
        const struct gpv_set set = gpv_set(p, a->set);
        for (uint32_t g = 0; a->number != 0 && g < set.n; g++) {
            struct doing *d = &doing[set.gpu[g]];
            note_end(d, a->ended);
            if (a->ended != 0)
                continue;
            d->first = d->first ? d->first : a;
            d->tasks++;
        }
    }
}

static void see_states(const struct gpv_night *p, struct doing *doing)
{
    for (size_t i = 0; i < p->tenancies.n; i++) {
        const struct gpv_tenancy *t = &p->tenancies.row[i];
        if (t->gpu >= p->gpus.n)
            continue;
        struct doing *d = &doing[t->gpu];
        note_end(d, t->until);
        if (t->until == 0 && t->kind == GPV_TENANCY_KEPT)
            d->kept = d->kept ? d->kept : t;
        else if (t->until == 0)
            d->moves = t;
    }
    for (size_t i = 0; i < p->outs.n; i++) {
        const struct gpv_out *o = &p->outs.row[i];
        if (o->gpu >= p->gpus.n)
            continue;
        note_end(&doing[o->gpu], o->until);
        if (o->until == 0)
            doing[o->gpu].out = o;
    }
}

/* ---- Rows ---- */

/* The other GPUs, as many as there is room for. */
static void put_with(char *to, size_t size, const struct gpv_night *p, struct gpv_set set,
                     uint32_t gpu)
{
    size_t used = 0;
    *to = 0;
    for (uint32_t i = 0; i < set.n; i++) {
        const char *name = gpv_gpu_name(p, set.gpu[i]);
        if (set.gpu[i] == gpu || used + strlen(name) + 2 > size)
            continue;
        used += (size_t)snprintf(to + used, size - used, "%s%s", used ? "," : "", name);
    }
}

static void put_run(struct gpv_now_gpu *g, const struct gpv_night *p, uint32_t gpu,
                    const struct doing *d)
{
    g->does = GPV_DOES_RUN;
    g->since = d->first->started;
    g->task = d->first->task;
    g->attempt = d->first->number;
    g->tasks = d->tasks;
    put_with(g->with, sizeof(g->with), p, gpv_set(p, d->first->set), gpu);
    gpv_now_text(g->class_name, sizeof(g->class_name),
                 gpv_class_name(p, gpv_class_of(p, d->first)));
}

static void put_moves(struct gpv_now_gpu *g, const struct gpv_night *p, const struct gpv_tenancy *t)
{
    g->does = t->kind == GPV_TENANCY_BOOT ? GPV_DOES_LOAD : GPV_DOES_LEAVE;
    g->since = t->since;
    gpv_now_text(g->text, sizeof(g->text), gpv_text(p, t->text));
    gpv_now_text(g->class_name, sizeof(g->class_name), gpv_class_name(p, t->class));
}

/* In the order of enum gpv_use: the first that applies. */
static void put_doing(struct gpv_now_gpu *g, const struct gpv_night *p, uint32_t gpu,
                      const struct doing *d)
{
    uint32_t worker = gpv_workers_of(p, GPV_NONE, gpu).class;
    gpv_now_text(g->class_name, sizeof(g->class_name), gpv_class_name(p, worker));
    if (d->tasks > 0) {
        put_run(g, p, gpu, d);
    } else if (d->moves) {
        put_moves(g, p, d->moves);
    } else if (d->kept) {
        g->does = GPV_DOES_KEPT;
        g->since = d->kept->since;
        gpv_now_text(g->text, sizeof(g->text), gpv_text(p, d->kept->text));
        g->kept_for = gpv_now_kept_for(g->text);
    } else if (d->out) {
        g->does = GPV_DOES_OUT;
        g->since = d->out->since;
        gpv_now_out(g->text, sizeof(g->text), d->out->kind, gpv_text(p, d->out->text));
    } else {
        int64_t began;
        (void)gpv_agent_runs(p, &began);
        g->does = GPV_DOES_IDLE;
        g->since = d->ended > began ? d->ended : began;
    }
}

static void put_gpu(struct gpv_now_gpu *g, const struct gpv_night *p, uint32_t gpu)
{
    const struct gpv_gpu *of = &p->gpus.row[gpu];
    g->index = of->index;
    g->memory_used = g->memory_total = UINT64_MAX;
    g->utilization = g->temperature = g->power = GPV_NONE;
    gpv_now_text(g->name, sizeof(g->name), gpv_text(p, of->name));
    gpv_now_text(g->uuid, sizeof(g->uuid), gpv_text(p, of->uuid));
    gpv_now_text(g->model, sizeof(g->model), gpv_text(p, of->model));
    gpv_now_text(g->pci, sizeof(g->pci), gpv_text(p, of->pci));
    gpv_now_text(g->profile, sizeof(g->profile), gpv_text(p, of->profile));
    gpv_now_text(g->parent, sizeof(g->parent), gpv_text(p, of->parent));
}

/* The same function as in an agent that fills its ring after a restart. */
static int fill_uses(struct gpv_snapshot *s, const struct gpv_night *p)
{
    struct gpv_live *l = gpv_live_new((uint32_t)p->gpus.n, p->to);
    int code = l ? gpv_live_fill(l, p) : -1;
    for (uint32_t i = 0; code == 0 && i < p->gpus.n; i++) {
        gpv_live_totals(l, i, p->to, &s->gpus.row[i].uses);
        gpv_live_ring(l, i, p->to, s->history + (size_t)i * GPV_MINUTES);
    }
    gpv_live_free(l);
    return code;
}

int gpv_fill_gpus(struct gpv_snapshot *s, const struct gpv_night *p)
{
    struct doing *doing = calloc(p->gpus.n + 1, sizeof(*doing));
    bool there = doing;
    if (doing) {
        see_attempts(p, doing);
        see_states(p, doing);
    }
    for (uint32_t i = 0; there && i < p->gpus.n; i++) {
        struct gpv_now_gpu *g = gpv_now_gpu(s);
        there = g;
        if (!g)
            break;
        put_gpu(g, p, i);
        put_doing(g, p, i, &doing[i]);
    }
    free(doing);
    if (!there || p->gpus.n == 0)
        return there ? 0 : -1;
    s->minutes = GPV_MINUTES;
    s->history = calloc(p->gpus.n * GPV_MINUTES, sizeof(*s->history));
    return s->history ? fill_uses(s, p) : -1;
}
