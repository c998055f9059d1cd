/* SPDX-License-Identifier: MIT */
/* trace.c - a night as JSON of the Chrome trace event format. */
#include "view/trace/trace.h"

#include <inttypes.h>
#include <stdlib.h>

#include "view/json.h"
#include "view/night/waits.h"
#include "view/words.h"

#define NS_PER_US 1000

enum { TASKS, WORKER, DEVICE, KINDS };

static const char *const kind_name[] = {
    [TASKS] = "tasks", [WORKER] = "worker", [DEVICE] = "device"
};

/* The tracks of one kind of a process, as many as run side by side: when the last slice of each
 * ends. */
struct tracks {
    int64_t *end;
    uint32_t n, room;
};

struct trace {
    const struct gpv_night *n;
    struct gpv_json j;
    struct tracks *tracks; /* KINDS of each process; process 0 is the queue */
};

/* ---- Events ---- */

static void event_begin(struct trace *t, const char *phase, uint32_t pid, uint32_t tid,
                        const char *name)
{
    gpv_json_line(&t->j);
    gpv_json_open(&t->j, NULL, '{');
    gpv_json_text(&t->j, "ph", phase);
    gpv_json_number(&t->j, "pid", pid);
    gpv_json_number(&t->j, "tid", tid);
    gpv_json_text(&t->j, "name", name);
}

static void event_end(struct trace *t)
{
    gpv_json_close(&t->j, '}'); /* of args */
    gpv_json_close(&t->j, '}');
}

static void name_event(struct trace *t, const char *what, uint32_t pid, uint32_t tid,
                       const char *name)
{
    event_begin(t, "M", pid, tid, what);
    gpv_json_open(&t->j, "args", '{');
    gpv_json_text(&t->j, "name", name);
    event_end(t);
}

static void sort_event(struct trace *t, const char *what, uint32_t pid, uint32_t tid,
                       uint32_t index)
{
    event_begin(t, "M", pid, tid, what);
    gpv_json_open(&t->j, "args", '{');
    gpv_json_number(&t->j, "sort_index", index);
    event_end(t);
}

/* The part of a row within the span.  Both ends are rounded down, so that neighbours do not
 * overlap. */
struct part {
    int64_t from, to; /* us */
};

static struct part part_of(const struct gpv_night *n, int64_t since, int64_t until)
{
    int64_t to = gpv_until(n, until), from = since < n->from ? n->from : since;

    to = to < n->from ? n->from : to;
    from = from > to ? to : from;
    return (struct part){ from / NS_PER_US, to / NS_PER_US };
}

static void slice_begin(struct trace *t, uint32_t pid, uint32_t tid, const struct part *p,
                        const char *name)
{
    event_begin(t, "X", pid, tid, name);
    gpv_json_number(&t->j, "ts", p->from);
    gpv_json_number(&t->j, "dur", p->to - p->from);
}

/* ---- Tracks ---- */

/* 1, 2 and 3; further ones of tasks are 11, 12, and those of the others far behind them. */
static uint32_t tid_of(unsigned kind, uint32_t index)
{
    return index == 0 ? kind + 1 : kind * 1000000 + 10 + index;
}

static int add_track(struct trace *t, uint32_t pid, unsigned kind)
{
    struct tracks *tracks = &t->tracks[pid * KINDS + kind];
    uint32_t tid = tid_of(kind, tracks->n);
    char name[40];

    if (tracks->n == tracks->room) {
        uint32_t room = 2 * tracks->room + 1;
        int64_t *end = realloc(tracks->end, room * sizeof *end);
        if (!end)
            return -1;
        tracks->end = end;
        tracks->room = room;
    }
    snprintf(name, sizeof name, tracks->n ? "%s %" PRIu32 : "%s", kind_name[kind], tracks->n + 1);
    name_event(t, "thread_name", pid, tid, name);
    sort_event(t, "thread_sort_index", pid, tid, kind * 1000000 + tracks->n);
    tracks->end[tracks->n++] = INT64_MIN;
    return 0;
}

/* The tid of the first track that is free, which is occupied then; 0: no memory. */
static uint32_t occupy(struct trace *t, uint32_t pid, unsigned kind, const struct part *p)
{
    struct tracks *tracks = &t->tracks[pid * KINDS + kind];
    uint32_t i = 0;

    while (i < tracks->n && tracks->end[i] > p->from)
        i++;
    if (i == tracks->n && add_track(t, pid, kind))
        return 0;
    tracks->end[i] = p->to;
    return tid_of(kind, i);
}

/* ---- Processes ---- */

static void name_gpu(struct trace *t, uint32_t i)
{
    const struct gpv_gpu *gpu = &t->n->gpus.row[i];
    const char *profile = gpv_text(t->n, gpu->profile);
    char name[256];

    snprintf(name, sizeof name, "%s %s%s%s %.12s", gpv_text(t->n, gpu->name),
             gpv_text(t->n, gpu->model), *profile ? " " : "", profile, gpv_text(t->n, gpu->uuid));
    name_event(t, "process_name", i + 1, 0, name);
}

static int put_processes(struct trace *t)
{
    name_event(t, "process_name", 0, 0, "queue");
    sort_event(t, "process_sort_index", 0, 0, 0);
    if (add_track(t, 0, TASKS))
        return -1;
    for (uint32_t i = 0; i < t->n->gpus.n; i++) {
        name_gpu(t, i);
        sort_event(t, "process_sort_index", i + 1, 0, i + 1);
        for (unsigned kind = 0; kind < KINDS; kind++)
            if (add_track(t, i + 1, kind))
                return -1;
    }
    return 0;
}

/* ---- Attempts ---- */

static void put_end(struct trace *t, const struct gpv_attempt *a)
{
    gpv_json_text(&t->j, "outcome", gpv_outcome_word(a->outcome));
    gpv_json_number(&t->j, "status", a->status);
    gpv_json_text(&t->j, "text", gpv_text(t->n, a->text));
}

static void put_attempt_args(struct trace *t, const struct gpv_attempt *a)
{
    uint32_t batch = gpv_find_batch(t->n, GPV_BATCH_OF(a->task));
    uint32_t class = gpv_class_of(t->n, a);

    gpv_json_open(&t->j, "args", '{');
    gpv_json_text(&t->j, "name", gpv_name_of(t->n, a->task));
    gpv_json_text(&t->j, "batch",
                  batch == GPV_NONE ? "" : gpv_text(t->n, t->n->batches.row[batch].name));
    gpv_json_text(&t->j, "class",
                  class == GPV_NONE ? "" : gpv_text(t->n, t->n->classes.row[class].name));
    gpv_json_number(&t->j, "attempt", a->number);
    if (a->ready && a->started >= a->ready)
        gpv_json_number(&t->j, "waited_ms", (a->started - a->ready) / NS_PER_US / 1000);
    put_end(t, a);
    event_end(t);
}

/* The tid; 0: no memory. */
static uint32_t put_slice(struct trace *t, const struct gpv_attempt *a, uint32_t pid)
{
    struct part p = part_of(t->n, a->started, a->ended);
    uint32_t tid = occupy(t, pid, TASKS, &p);
    char id[GPV_WORD];

    if (tid) {
        slice_begin(t, pid, tid, &p, gpv_task_id(a->task, id));
        put_attempt_args(t, a);
    }
    return tid;
}

static void put_bad_end(struct trace *t, const struct gpv_attempt *a, uint32_t pid, uint32_t tid)
{
    struct part p = part_of(t->n, a->ended, a->ended);
    char id[GPV_WORD], name[GPV_WORD + 16];

    snprintf(name, sizeof name, "%s %s", gpv_outcome_word(a->outcome), gpv_task_id(a->task, id));
    event_begin(t, "i", pid, tid, name);
    gpv_json_text(&t->j, "s", "t");
    gpv_json_number(&t->j, "ts", p.to);
    gpv_json_open(&t->j, "args", '{');
    put_end(t, a);
    event_end(t);
}

static int put_attempt(struct trace *t, const struct gpv_attempt *a)
{
    struct gpv_set set = gpv_set(t->n, a->set);
    uint32_t pid = 0, tid = tid_of(TASKS, 0);

    for (uint32_t i = 0; a->number && i < (set.n ? set.n : 1); i++) {
        uint32_t at = set.n ? set.gpu[i] + 1u : 0, track = put_slice(t, a, at);
        if (track == 0)
            return -1;
        pid = i ? pid : at;
        tid = i ? tid : track;
    }
    if (gpv_is_bad(a->outcome))
        put_bad_end(t, a, pid, tid);
    return 0;
}

static int put_attempts(struct trace *t)
{
    for (size_t i = 0; i < t->n->attempts.n; i++)
        if (put_attempt(t, &t->n->attempts.row[i]))
            return -1;
    return 0;
}

/* ---- Workers and devices ---- */

static int put_row(struct trace *t, uint32_t gpu, unsigned kind, int64_t since, int64_t until,
                   const char *name, uint32_t text)
{
    struct part p = part_of(t->n, since, until);
    uint32_t tid = gpu < t->n->gpus.n ? occupy(t, gpu + 1, kind, &p) : 0;

    if (gpu >= t->n->gpus.n)
        return 0;
    if (tid == 0)
        return -1;
    slice_begin(t, gpu + 1, tid, &p, name);
    gpv_json_open(&t->j, "args", '{');
    gpv_json_text(&t->j, "why", gpv_text(t->n, text));
    event_end(t);
    return 0;
}

static int put_tenancies(struct trace *t)
{
    for (size_t i = 0; i < t->n->tenancies.n; i++) {
        const struct gpv_tenancy *row = &t->n->tenancies.row[i];
        char name[128];
        snprintf(name, sizeof name, row->class < t->n->classes.n ? "%s %s" : "%s",
                 gpv_tenancy_word(row->kind),
                 row->class < t->n->classes.n ? gpv_text(t->n, t->n->classes.row[row->class].name)
                                              : "");
        if (put_row(t, row->gpu, WORKER, row->since, row->until, name, row->text))
            return -1;
    }
    return 0;
}

static int put_outs(struct trace *t)
{
    for (size_t i = 0; i < t->n->outs.n; i++) {
        const struct gpv_out *row = &t->n->outs.row[i];
        if (put_row(t, row->gpu, DEVICE, row->since, row->until, gpv_out_word(row->kind),
                    row->text))
            return -1;
    }
    return 0;
}

/* ---- Counters ---- */

/* No display has more dots: changes that follow one another faster than this part of the span are
 * one. */
enum { DOTS = 2000 };

struct counter {
    struct trace *t;
    char name[128];
    int64_t quantum; /* ns */
    int64_t at, next,
        until;             /* of the last event, of the change that is kept back, of the stretch */
    uint64_t shown, tasks; /* after the last event, after that change */
};

static void show(struct counter *c)
{
    if (c->tasks == c->shown)
        return;
    event_begin(c->t, "C", 0, 0, c->name);
    gpv_json_number(&c->t->j, "ts", c->next / NS_PER_US);
    gpv_json_open(&c->t->j, "args", '{');
    gpv_json_number(&c->t->j, "tasks", (int64_t)c->tasks);
    event_end(c->t);
    c->at = c->next;
    c->shown = c->tasks;
}

static void change(struct counter *c, int64_t time, uint64_t tasks)
{
    if (time - c->at >= c->quantum)
        show(c);
    c->next = time;
    c->tasks = tasks;
    if (time - c->at >= c->quantum)
        show(c);
}

static int count(const struct gpv_wait *w, void *user)
{
    struct counter *c = user;

    if (w->from > c->until)
        change(c, c->until, 0);
    change(c, w->from, w->tasks);
    c->until = w->to;
    return 0;
}

static int put_counter(struct trace *t, uint32_t batch)
{
    const struct gpv_batch *b = &t->n->batches.row[batch];
    struct counter c = { .t = t, .quantum = (t->n->to - t->n->from) / DOTS + 1 };

    c.next = c.until = t->n->from;
    c.at = t->n->from - c.quantum;
    snprintf(c.name, sizeof c.name, "waiting %" PRIu32 " %s", b->id, gpv_text(t->n, b->name));
    if (gpv_wait_each(t->n, batch, count, &c))
        return -1;
    if (c.until < t->n->to)
        change(&c, c.until, 0);
    show(&c);
    return 0;
}

static int put_counters(struct trace *t)
{
    for (uint32_t i = 0; i < t->n->batches.n; i++)
        if (put_counter(t, i))
            return -1;
    return 0;
}

/* ---- The document ---- */

static void put_head(struct trace *t)
{
    gpv_json_open(&t->j, NULL, '{');
    gpv_json_text(&t->j, "displayTimeUnit", "ms");
    gpv_json_open(&t->j, "otherData", '{');
    gpv_json_text(&t->j, "version", "1");
    gpv_json_text(&t->j, "tool", "gpudispatch trace");
    gpv_json_text(&t->j, "host", gpv_text(t->n, t->n->host));
    gpv_json_close(&t->j, '}');
    gpv_json_open(&t->j, "traceEvents", '[');
}

int gpv_trace_write(const struct gpv_night *n, FILE *f)
{
    size_t lists = (n->gpus.n + 1) * KINDS;
    struct trace t = { n, { .f = f }, calloc(lists, sizeof *t.tracks) };
    int r = t.tracks ? 0 : -1;

    put_head(&t);
    if (r == 0 && (put_processes(&t) || put_attempts(&t) || put_tenancies(&t) || put_outs(&t) ||
                   put_counters(&t)))
        r = -1;
    gpv_json_close(&t.j, ']');
    gpv_json_close(&t.j, '}');
    fputc('\n', f);
    for (size_t i = 0; t.tracks && i < lists; i++)
        free(t.tracks[i].end);
    free(t.tracks);
    return r;
}
