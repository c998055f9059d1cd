/* SPDX-License-Identifier: MIT */
/* keep.c - the GPUs, classes and batches that now.c keeps. */
#include "queue/agent/keep.h"

#include <stdlib.h>
#include <string.h>

#include "queue/agent/classes.h"
#include "queue/agent/first.h"
#include "queue/agent/lookup.h"
#include "queue/agent/needs.h"
#include "queue/grow.h"

_Static_assert(GPV_MINUTES * sizeof(struct gpv_uses) <= 16 << 10 &&
                   GPV_MINUTES * sizeof(int64_t) <= 2 << 10 &&
                   sizeof(struct gpq_kept_batch) + sizeof(struct gpv_left) <= 4 << 10,
               "the memory that now.h names");

void *gpq_now_row(void *list, size_t size)
{
    struct {
        void *row;
        size_t n, room;
    } *l = list;
    void *larger = gpq_grown(l->row, l->n, &l->room, size);
    if (!larger)
        return NULL;
    l->row = larger;
    return memset((char *)larger + l->n++ * size, 0, size);
}

/* ---- GPUs and classes ---- */

static bool is_name(const char *name, const char *of, size_t size)
{
    return strlen(name) == size && memcmp(name, of, size) == 0;
}

uint32_t gpq_now_gpu(const struct gpq_now *n, const char *name, size_t size)
{
    for (uint32_t i = 0; size != 0 && i < n->gpus.n; i++)
        if (is_name(n->gpus.row[i].name, name, size) || is_name(n->gpus.row[i].uuid, name, size))
            return i;
    return GPV_NONE;
}

uint32_t gpq_now_next_gpu(const struct gpq_now *n, const char **list)
{
    size_t size = strcspn(*list, ",");
    uint32_t gpu = gpq_now_gpu(n, *list, size);
    *list += size + ((*list)[size] == ',');
    return gpu;
}

uint32_t gpq_now_class(struct gpq_now *n, const char *name)
{
    for (uint32_t i = 0; i < n->classes.n; i++)
        if (strcmp(n->classes.row[i].row.name, name) == 0)
            return i;
    struct gpq_kept_class *c = gpq_now_row(&n->classes, sizeof(*c));
    if (!c)
        return 0;
    c->row.boot_p50 = c->row.run_p50 = -1;
    gpv_now_text(c->row.name, sizeof(c->row.name), name);
    return (uint32_t)n->classes.n - 1;
}

/* ---- Shapes ---- */

struct shape_of {
    struct gpq_now *now;
    struct gpq_kept_shape row;
};

static int read_shape(const struct gpq_shape *s, void *user)
{
    struct shape_of *ret = user;
    struct gpq_needs needs;
    struct gpq_error e;
    if (gpq_needs_parse(s->request, &needs, &e) < 0)
        return 1;
    ret->row.class = gpq_now_class(ret->now, needs.class_name ? needs.class_name : GPQ_COMMANDS);
    ret->row.gpus = needs.n != 0 ? needs.request[0].devices : 0;
    gpq_needs_free(&needs);
    return 1;
}

static struct gpq_kept_shape shape_of(struct gpq_agent *a, uint32_t shape)
{
    struct gpq_now *n = a->now;
    struct shape_of found = { .now = n, .row = { .shape = shape } };
    struct gpq_error e;
    for (size_t i = n->shapes.n; i > 0; i--)
        if (n->shapes.row[i - 1].shape == shape)
            return n->shapes.row[i - 1];
    (void)a->store->engine->shape(a->store, shape, read_shape, &found, &e);
    struct gpq_kept_shape *row = gpq_now_row(&n->shapes, sizeof(*row));
    if (row)
        *row = found.row;
    return found.row;
}

uint32_t gpq_now_class_of(struct gpq_agent *a, uint32_t shape)
{
    return shape_of(a, shape).class;
}

uint32_t gpq_now_gpus_of(struct gpq_agent *a, uint32_t shape)
{
    const struct gpq_kept_shape s = shape_of(a, shape);
    const struct gpq_class *class = s.class < a->now->classes.n
                                        ? gpq_class_find(a, a->now->classes.row[s.class].row.name)
                                        : NULL;
    return class ? class->gpus : s.gpus;
}

/* ---- Batches ---- */

/* The index of the first batch whose id is not less. */
static size_t place_of(const struct gpq_now *n, uint32_t id)
{
    size_t low = 0, high = n->batches.n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (n->batches.row[middle].row.id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct gpq_kept_batch *gpq_now_batch(struct gpq_now *n, uint32_t id)
{
    size_t at = place_of(n, id);
    return at < n->batches.n && n->batches.row[at].row.id == id ? &n->batches.row[at] : NULL;
}

struct gpq_kept_batch *gpq_now_add_batch(struct gpq_now *n, uint32_t id)
{
    size_t at = place_of(n, id);
    if (at < n->batches.n && n->batches.row[at].row.id == id)
        return &n->batches.row[at];
    struct gpq_kept_batch *last = gpq_now_row(&n->batches, sizeof(*last));
    if (!last)
        return NULL;
    struct gpq_kept_batch *b = &n->batches.row[at];
    memmove(b + 1, b, (n->batches.n - 1 - at) * sizeof(*b));
    *b = (struct gpq_kept_batch){ .row = { .id = id, .least = -1, .most = -1 }, .stale = true };
    return b;
}

uint32_t gpq_now_joined(const struct gpq_agent *a, uint32_t behind)
{
    for (size_t i = a->now ? place_of(a->now, behind + 1) : 0; a->now && i < a->now->batches.n; i++)
        if (a->now->batches.row[i].joined != 0)
            return a->now->batches.row[i].row.id;
    return 0;
}

void gpq_now_drop_batch(struct gpq_now *n, size_t index)
{
    struct gpq_kept_batch *b = &n->batches.row[index];
    free(b->left);
    n->batches.n--;
    memmove(b, b + 1, (n->batches.n - index) * sizeof(*b));
}

static int read_batch(const struct gpq_batch *from, void *user)
{
    struct gpq_kept_batch *b = user;
    struct gpv_now_batch *row = &b->row;
    gpv_now_text(row->name, sizeof(row->name), from->name ? from->name : "");
    row->made = (int64_t)from->made;
    row->ended = (int64_t)from->ended;
    row->total = from->total;
    row->ok = from->outcome[GPQ_OUTCOME_SUCCESS];
    row->held = from->state[GPQ_HELD];
    row->ready = from->state[GPQ_READY];
    row->running = from->state[GPQ_RUNNING];
    row->bad = 0;
    for (uint32_t i = 0; i < GPQ_OUTCOMES; i++) {
        b->ended_by[i] = from->outcome[i];
        row->bad += gpv_is_bad(i) ? from->outcome[i] : 0;
    }
    b->open = from->open;
    b->at_once = from->at_once;
    b->joined = from->joined;
    return 1;
}

static void read_first(struct gpq_agent *a, struct gpq_kept_batch *b)
{
    struct gpq_batch batch = { .id = b->row.id, .at_once = b->at_once };
    struct gpq_waiting w;
    struct gpq_error e;
    b->row.first = b->row.turn = 0;
    batch.state[GPQ_READY] = b->row.ready;
    batch.state[GPQ_HELD] = b->row.held;
    if (gpq_first_waiting(a->store, &batch, &w, &e) < 0)
        return;
    b->row.turn = w.turn;
    if (w.first.id == 0)
        return;
    b->row.first = b->row.ready > 0 || w.turn > 0 ? w.first.id : 0;
    b->row.priority = w.first.priority;
    b->shape = w.first.shape;
}

bool gpq_now_read_batch(struct gpq_agent *a, struct gpq_kept_batch *b)
{
    struct gpq_error e;
    if (!b->stale)
        return true;
    if (gpq_batch_read(a->store, b->row.id, read_batch, b, &e) < 0)
        return e.code != GPQ_ENOTFOUND;
    b->stale = false;
    read_first(a, b);
    if (b->row.ended != 0) {
        free(b->left);
        b->left = NULL;
    }
    return true;
}

/* Whether another task gets the next turn than in the row: a hold, or another spec, is no change of
 * a state. */
static bool has_another(const struct gpq_kept_batch *b, const struct gpq_task *first)
{
    if (b->row.ready > 0 || first->id == 0)
        return (b->row.turn != 0) != (first->id != 0);
    return b->row.first != first->id || b->row.priority != first->priority ||
           b->shape != first->shape;
}

void gpq_now_turns(struct gpq_agent *a, uint32_t most, gpq_turn_fn fn, void *user)
{
    struct gpq_error e;
    for (size_t i = 0; a->now && i < a->now->batches.n && most != 0; i++) {
        struct gpq_kept_batch *b = &a->now->batches.row[i];
        struct gpq_task first;
        if (b->at_once == 0 || b->row.ended != 0)
            continue;
        if (!gpq_now_read_batch(a, b))
            b->at_once = 0; /* it was purged */
        if (b->at_once == 0 || b->row.ended != 0)
            continue;
        most--;
        (void)gpq_task_turn(a->store, b->row.id, &first, &e);
        if (has_another(b, &first)) {
            b->stale = true;
            (void)gpq_now_read_batch(a, b);
            a->now->version++;
        }
        if (first.id != 0)
            fn(a, &first, b->at_once, user);
    }
}

void gpq_now_count_end(struct gpq_kept_batch *b, int64_t time)
{
    int64_t minute = time / GPQ_MINUTE;
    if (minute - b->minute > GPQ_HOUR)
        memset(b->ends, 0, sizeof(b->ends));
    for (; b->minute < minute && minute - b->minute <= GPQ_HOUR; b->minute++)
        b->ends[(b->minute + 1) % (GPQ_HOUR + 1)] = 0;
    b->minute = minute > b->minute ? minute : b->minute;
    if (b->minute - minute <= GPQ_HOUR)
        b->ends[minute % (GPQ_HOUR + 1)]++;
}

/* ---- Open and close ---- */

static bool open_gpus(struct gpq_agent *a)
{
    int count;
    bool there = true;
    struct gpud_device_info *rows = gpq_devices_read(a, &count);
    for (int i = 0; rows && there && i < count; i++) {
        struct gpq_kept_gpu *g =
            rows[i].kind != GPUD_DEVICE_CPU ? gpq_now_row(&a->now->gpus, sizeof(*g)) : NULL;
        if (!g) {
            there = rows[i].kind == GPUD_DEVICE_CPU;
            continue;
        }
        memcpy(g->name, rows[i].name, sizeof(g->name));
        memcpy(g->uuid, rows[i].uuid, sizeof(g->uuid));
        a->now->has_readings |= rows[i].kind == GPUD_DEVICE_GPU || rows[i].kind == GPUD_DEVICE_MIG;
    }
    free(rows);
    return there;
}

static bool open_classes(struct gpq_agent *a)
{
    (void)gpq_now_class(a->now, GPQ_COMMANDS);
    for (size_t i = 0; a->classes && i < a->classes->n; i++)
        (void)gpq_now_class(a->now, a->classes->list[i].name);
    return a->now->classes.n != 0;
}

static int see_batch(const struct gpq_batch *from, void *user)
{
    struct gpq_now *n = user;
    if (from->ended != 0 && (int64_t)from->ended < n->since - GPQ_DAY)
        return 0;
    struct gpq_kept_batch *b = gpq_now_add_batch(n, from->id);
    if (b)
        (void)read_batch(from, b);
    return b ? 0 : GPQ_ENOMEM;
}

int gpq_keep_open(struct gpq_agent *a, struct gpq_error *e)
{
    bool there = open_gpus(a) && open_classes(a);
    int code = there ? a->store->engine->batches(a->store, 0, see_batch, a->now, e) : GPQ_ENOMEM;
    if (code == GPQ_ENOMEM)
        return gpq_fail(e, code, "no memory for the batches");
    return code < 0 ? code : 0;
}

void gpq_keep_close(struct gpq_now *n)
{
    while (n->batches.n > 0)
        gpq_now_drop_batch(n, n->batches.n - 1);
    for (size_t i = 0; i < n->gpus.n; i++)
        free(n->gpus.row[i].busy.row);
    free(n->gpus.row);
    free(n->classes.row);
    free(n->batches.row);
    free(n->shapes.row);
}
