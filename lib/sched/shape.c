/* SPDX-License-Identifier: MIT */
/*
 * shape.c - waiting tasks, as shapes: tasks that are alike in all that a decision examines. [R1]
 *
 * A shape is its tasks in order of age.  The shapes are in order of priority, then of the age of
 * their first task.  The limit of a task is no part of its shape: the order has that of the first
 * task as a value, so a search for a task that is short enough skips the rest.  Nor is it part of
 * the shape that a task stands for a stream.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/plan_parts.h"

int gpi_shape_make(struct gpi_plan *p)
{
    const uint32_t most = p->most_shapes;
    uint32_t size = 2;

    while (size < 2 * most)
        size *= 2;
    p->task = calloc(p->set.tasks + p->set.classes, sizeof *p->task);
    p->shape = malloc(sizeof *p->shape * (most + 1)); /* the last one is supposed */
    p->table = malloc(sizeof *p->table * size);
    if (!p->task || !p->shape || !p->table || gpi_tree_pool_init(&p->shapes, most + 1, 1) != 0 ||
        gpi_tree_init(&p->order, &p->shapes, true) != 0)
        return -1;
    for (uint32_t i = 0; i <= GPI_KINDS; i++)
        p->head[i] = GPI_NONE;
    for (uint32_t i = 0; i < p->set.classes; i++)
        p->task[p->set.tasks + i].holder = GPI_NONE;
    p->table_mask = size - 1;
    memset(p->table, 0xff, sizeof *p->table * size);
    for (uint32_t i = 0; i < most; i++)
        p->shape[i] = (struct gpi_shape){ .head = i + 1 < most ? i + 1 : GPI_NONE };
    return 0;
}

void gpi_shape_free(struct gpi_plan *p)
{
    free(p->task);
    free(p->shape);
    free(p->table);
    gpi_tree_fini(&p->order);
    gpi_tree_pool_fini(&p->shapes);
}

/* ---- the table of shapes ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

static uint64_t mix_request(uint64_t hash, const struct gpi_request *r)
{
    hash = mix(hash, (uint64_t)r->devices << 32 | r->share);
    hash = mix(hash, (uint64_t)r->cpus << 32 | r->compute);
    hash = mix(hash, r->places);
    hash = mix(hash, r->memory);
    return mix(hash, r->host_memory);
}

static uint32_t place_of(const struct gpi_plan *p, uint32_t class, int32_t priority,
                         const struct gpi_request *request, uint32_t n)
{
    uint64_t hash = mix(class, (uint32_t)priority);

    for (uint32_t i = 0; i < n; i++)
        hash = mix_request(hash, &request[i]);
    return (uint32_t)(hash >> 32) & p->table_mask;
}

static bool is_it(const struct gpi_shape *s, const struct gpi_plan_task *what, bool loads)
{
    bool same = s->class == what->class && s->priority == what->priority && s->loads == loads &&
                s->n_requests == what->n_requests;

    for (uint32_t i = 0; same && i < s->n_requests; i++)
        same = gpi_request_same(&s->request[i], &what->request[i]);
    return same;
}

/* Returns the place of the shape in the table, also of one that is not there yet. */
static uint32_t find(const struct gpi_plan *p, const struct gpi_plan_task *what, bool loads)
{
    uint32_t i = place_of(p, what->class, what->priority, what->request, what->n_requests);

    while (p->table[i] != GPI_NONE && !is_it(&p->shape[p->table[i]], what, loads))
        i = (i + 1) & p->table_mask;
    return i;
}

static uint32_t place_of_shape(const struct gpi_plan *p, const struct gpi_shape *s)
{
    return place_of(p, s->class, s->priority, s->request, s->n_requests);
}

/* Takes a shape out of the table; the shapes behind it move up. */
static void forget(struct gpi_plan *p, uint32_t shape)
{
    uint32_t gap = place_of_shape(p, &p->shape[shape]), i, at;

    while (p->table[gap] != shape)
        gap = (gap + 1) & p->table_mask;
    for (i = (gap + 1) & p->table_mask; p->table[i] != GPI_NONE; i = (i + 1) & p->table_mask) {
        at = place_of_shape(p, &p->shape[p->table[i]]);
        if (((i - at) & p->table_mask) < ((i - gap) & p->table_mask))
            continue;
        p->table[gap] = p->table[i];
        gap = i;
    }
    p->table[gap] = GPI_NONE;
}

bool gpi_shape_wants(const struct gpi_plan *p, const struct gpi_learned *c, uint32_t queued,
                     enum gpi_plan_why *ret_why_not)
{
    const uint32_t workers = c->workers - c->leaving;
    const bool lacks = workers < gpi_shape_least_workers(c);
    const bool is_soon = queued * (gpi_learn_usual(c) / 1024) <= workers * (c->boot.p50 / 1024);
    const bool enough = queued <= c->n_booting || (workers && is_soon);

    *ret_why_not = c->paused           ? GPI_REASON_PAUSED
                   : enough && !lacks  ? GPI_REASON_BUSY
                   : p->now < c->again ? GPI_REASON_FAULT
                                       : GPI_REASON_SEATS;
    return !c->paused && (lacks || !enough) && p->now >= c->again && workers < c->set.max_workers;
}

uint32_t gpi_shape_wants_from(const struct gpi_plan *p, const struct gpi_learned *c)
{
    const uint32_t own = c->queued - c->behind, workers = c->workers - c->leaving;
    const uint64_t run = gpi_learn_usual(c) / 1024;
    enum gpi_plan_why why_not;
    uint64_t n;

    if (c->set.residence == GPI_EXTERNAL)
        return UINT32_MAX;
    if (gpi_shape_wants(p, c, own, &why_not))
        return 0;
    if (why_not != GPI_REASON_BUSY || p->now < c->again || workers >= c->set.max_workers)
        return UINT32_MAX;
    if (workers == 0)
        return 1;
    if (run == 0)
        return UINT32_MAX;
    n = workers * (c->boot.p50 / 1024) / run;
    n = (n > c->n_booting ? n : c->n_booting) + 1 - own;
    return n <= GPI_QUEUE_MOST ? (uint32_t)n : UINT32_MAX;
}

static void describe(struct gpi_shape *s, const struct gpi_plan_task *what, bool loads)
{
    *s = (struct gpi_shape){ .class = what->class,
                             .priority = what->priority,
                             .n_requests = what->n_requests,
                             .promise = GPI_NEVER,
                             .loads = loads,
                             .head = GPI_NONE,
                             .tail = GPI_NONE };
    for (uint32_t j = 0; j < what->n_requests; j++)
        s->request[j] = what->request[j];
    for (uint32_t j = 0; j < what->n_requests; j++)
        s->needs_host |= what->request[j].cpus || what->request[j].host_memory;
}

static uint32_t make(struct gpi_plan *p, uint32_t place, const struct gpi_plan_task *what,
                     bool loads)
{
    const uint32_t i = p->free_shape;
    struct gpi_shape *s = &p->shape[i];

    if (p->n_shapes + !loads > p->set.shapes)
        return GPI_NONE;
    p->n_shapes += !loads;
    p->free_shape = s->head;
    describe(s, what, loads);
    gpi_kinds_find(p, s);
    p->table[place] = i;
    return i;
}

/* ---- heads ---- */

static struct gpi_tree_wanted with(uint64_t bits)
{
    return (struct gpi_tree_wanted){ bits, UINT64_MAX, UINT32_MAX };
}

uint32_t gpi_shape_find_head(struct gpi_plan *p, uint32_t bit)
{
    const struct gpi_tree_wanted wanted = with(1ull << bit);

    return p->head[bit] = gpi_tree_first(&p->order, &wanted);
}

static void may_be_head(struct gpi_plan *p, uint32_t shape, uint64_t bits)
{
    p->doubted |= bits & GPI_BITS_HEADED;
    for (uint64_t left = bits & GPI_BITS_HEADED; left; left &= left - 1) {
        uint32_t *const head = &p->head[gpi_lowest_bit(left)];
        if (*head == GPI_NONE || (*head != GPI_UNKNOWN && gpi_shape_precedes(p, shape, *head)))
            *head = shape;
    }
}

static void is_no_head(struct gpi_plan *p, uint32_t shape, uint64_t bits)
{
    for (uint64_t left = bits & GPI_BITS_HEADED; left; left &= left - 1)
        if (p->head[gpi_lowest_bit(left)] == shape)
            p->head[gpi_lowest_bit(left)] = GPI_UNKNOWN;
}

/* ---- the order of shapes ---- */

static uint64_t mask_of(const struct gpi_shape *s)
{
    return s->kinds | (s->lacks_host ? GPI_BIT_HOST : 0) | (s->fresh ? GPI_BIT_FRESH : 0) |
           (s->is_short || s->lacks_run ? GPI_BIT_SHORT : 0) | (s->boots ? GPI_BIT_BOOTS : 0);
}

static void set_mask(struct gpi_plan *p, uint32_t shape)
{
    struct gpi_tree_node *n = &p->order.node[shape];
    const uint64_t before = n->mask, mask = mask_of(&p->shape[shape]);

    if (mask == before)
        return;
    n->mask = mask;
    gpi_tree_changed(&p->order, shape);
    is_no_head(p, shape, before & ~mask);
    may_be_head(p, shape, mask & ~before);
}

static void set_fresh(struct gpi_plan *p, uint32_t shape, bool fresh)
{
    struct gpi_shape *s = &p->shape[shape];

    p->n_fresh = p->n_fresh + fresh - s->fresh;
    s->fresh = fresh;
    if (fresh)
        p->last_fresh = shape;
    set_mask(p, shape);
}

/* Returns the share that the shape needs at least: of whole devices the sum. */
static uint32_t least_share(const struct gpi_shape *s)
{
    uint32_t least = UINT32_MAX;

    for (uint32_t i = 0; i < s->n_requests; i++) {
        const struct gpi_request *r = &s->request[i];
        const uint32_t share = r->devices * r->share;
        least = share < least ? share : least;
    }
    return least;
}

static void set_node(struct gpi_plan *p, uint32_t shape, uint64_t order, uint64_t limit)
{
    const struct gpi_shape *s = &p->shape[shape];
    struct gpi_tree_node *n = &p->order.node[shape];

    n->key = (struct gpi_tree_key){ (uint64_t)(INT32_MAX - (int64_t)s->priority), order };
    n->mask = mask_of(s);
    n->value = gpi_time_add(limit, p->class[s->class].set.grace);
    n->weight = p->class[s->class].set.residence == GPI_EXTERNAL ? least_share(s) : 0;
}

void gpi_shape_examine(struct gpi_plan *p, uint32_t shape)
{
    set_fresh(p, shape, true);
}

void gpi_shape_examined(struct gpi_plan *p, uint32_t shape)
{
    set_fresh(p, shape, false);
}

void gpi_shape_evict_again(struct gpi_plan *p)
{
    const struct gpi_tree_wanted w = with(GPI_BIT_SHORT);
    const bool could = p->n_firm || p->n_runless || p->n_spare;

    for (uint32_t i = could ? gpi_tree_first(&p->order, &w) : GPI_NONE; i != GPI_NONE;
         i = gpi_tree_next(&p->order, i, &w))
        gpi_shape_examine(p, i);
}

/* Computes its kinds anew.  If it may begin less than before, it takes no place, and workers may go
 * for shapes behind it.  Returns the kinds that it has gained or lost, or where its turn to boot is
 * another one. */
static uint64_t renew_kinds(struct gpi_plan *p, struct gpi_shape *s)
{
    const uint64_t kinds = s->kinds, claimed = s->claimed;
    const uint8_t far = s->far;
    const bool began = s->begins, served = s->served;

    gpi_kinds_find(p, s);
    if (s->stops && (began > s->begins || served < s->served || s->far & ~far)) {
        s->stops = false;
        gpi_shape_evict_again(p);
    }
    return (kinds ^ s->kinds) | (served != s->served ? claimed | s->claimed : claimed ^ s->claimed);
}

/* These kinds may have other heads now, and promises may count on other ones. */
static void note_moved(struct gpi_plan *p, uint64_t kinds)
{
    p->changed |= kinds;
    p->headless |= kinds;
    p->unsure |= 1u << GPI_PROMISE_WORKERS;
}

static void add_to_order(struct gpi_plan *p, uint32_t shape)
{
    struct gpi_shape *s = &p->shape[shape];
    const struct gpi_plan_record *t = &p->task[s->head];
    const struct gpi_tree_node *n = &p->order.node[shape];

    s->told = false;
    if (gpi_kinds_is_older(p, s))
        note_moved(p, renew_kinds(p, s));
    s->fresh = true;
    p->n_fresh++;
    p->last_fresh = shape;
    p->gap_of = GPI_NONE;
    p->doubted |= s->needs_host ? GPI_BIT_HOST : 0;
    set_node(p, shape, t->order, t->limit);
    gpi_tree_add(&p->order, shape);
    may_be_head(p, shape, n->mask);
}

static void take_from_order(struct gpi_plan *p, uint32_t shape)
{
    p->n_fresh -= p->shape[shape].fresh;
    p->shape[shape].fresh = false;
    p->n_runless -= p->shape[shape].lacks_run;
    p->shape[shape].lacks_run = false;
    gpi_tree_remove(&p->order, shape);
    is_no_head(p, shape, p->order.node[shape].mask);
}

void gpi_shape_lacks_host(struct gpi_plan *p, uint32_t shape, bool lacks)
{
    p->shape[shape].lacks_host = lacks;
    set_mask(p, shape);
}

void gpi_shape_lacks_run(struct gpi_plan *p, uint32_t shape, bool lacks)
{
    struct gpi_shape *s = &p->shape[shape];
    const uint32_t next = gpi_shape_next(p, shape, GPI_BIT_HOST);

    if (!s->lacks_run && lacks && s->needs_host && next != GPI_NONE)
        gpi_shape_examine(p, next); /* slots may be kept for that one now */
    if (s->lacks_run && !lacks && s->stops)
        gpi_shape_evict_again(p); /* it would take no run */
    if (s->lacks_run != lacks && s->needs_host)
        p->changed |= GPI_BIT_HOST; /* slots are kept for it while it has a run */
    p->n_runless = p->n_runless + lacks - s->lacks_run;
    s->lacks_run = lacks;
    set_mask(p, shape);
}

void gpi_shape_sort(struct gpi_plan *p, uint32_t device)
{
    uint64_t moved = GPI_BIT_KIND(p->device[device].kind) | GPI_BIT_HOST;

    for (uint32_t i = gpi_shape_first(p); i != GPI_NONE; i = gpi_shape_next(p, i, GPI_BIT_ANY)) {
        struct gpi_shape *s = &p->shape[i];
        const bool was_short = s->is_short;
        const uint64_t kinds = renew_kinds(p, s);
        set_mask(p, i);
        if (kinds == 0 && was_short == s->is_short && !s->hopeless)
            continue;
        moved |= kinds;
        set_fresh(p, i, true);
    }
    note_moved(p, moved);
    p->doubted = GPI_BIT_ANY; /* a granted run may be on the device */
}

void gpi_shape_refresh(struct gpi_plan *p, uint32_t shape)
{
    note_moved(p, renew_kinds(p, &p->shape[shape]));
    set_mask(p, shape);
    set_fresh(p, shape, true);
}

void gpi_shape_on_time(struct gpi_plan *p, uint32_t shape)
{
    if (gpi_kinds_is_older(p, &p->shape[shape]))
        gpi_shape_refresh(p, shape);
}

static void sort_class(struct gpi_plan *p, uint32_t class)
{
    for (uint32_t i = gpi_shape_first(p); i != GPI_NONE; i = gpi_shape_next(p, i, GPI_BIT_ANY))
        if (p->shape[i].class == class)
            gpi_shape_refresh(p, i);
    p->changed |= GPI_BIT_HOST;
    p->unsure |= 1u << GPI_PROMISE_WORKERS;
}

void gpi_shape_class(struct gpi_plan *p, uint32_t class)
{
    struct gpi_learned *c = &p->class[class];
    enum gpi_plan_why why_not;
    const bool w = c->set.residence != GPI_EXTERNAL && gpi_shape_wants(p, c, c->queued, &why_not);
    const bool adds = gpi_kinds_may_add(p, c);
    /* which shapes may boot one beside a booting one, and which ones have none, has changed */
    const uint32_t workers = c->workers - c->leaving;
    const uint32_t staff = c->set.residence == GPI_TRANSIENT ? workers : workers != 0;
    const bool is_booting = c->booting != GPI_NONE;
    const bool keeps = workers <= c->set.min_workers && c->set.min_workers;

    if (keeps != c->keeps && p->n_devices) {
        c->keeps = keeps;
        gpi_shape_sort(p, 0); /* devices may be out of reach now, or in reach */
    }
    if (w == c->wants && adds == c->may_add && staff == c->staff && is_booting == c->is_booting)
        return;
    c->wants = w;
    c->may_add = adds;
    c->staff = staff;
    c->is_booting = is_booting;
    sort_class(p, class);
}

void gpi_shape_examine_class(struct gpi_plan *p, uint32_t class)
{
    for (uint32_t i = gpi_shape_first(p); i != GPI_NONE; i = gpi_shape_next(p, i, GPI_BIT_ANY))
        if (p->shape[i].class == class)
            gpi_shape_examine(p, i);
}

void gpi_shape_pause(struct gpi_plan *p, uint32_t class)
{
    gpi_shape_class(p, class);
    sort_class(p, class);
    p->doubted = GPI_BIT_ANY;
}

/* ---- tasks ---- */

/* Links the task behind the older ones: mostly it is the youngest, or one that returned. */
static void link_task(struct gpi_plan *p, struct gpi_shape *s, uint32_t task)
{
    struct gpi_plan_record *t = &p->task[task];
    uint32_t left = s->tail;

    if (s->head != GPI_NONE && t->order < p->task[s->head].order)
        left = GPI_NONE;
    while (left != GPI_NONE && p->task[left].order > t->order)
        left = p->task[left].prev;
    t->prev = left;
    t->next = left == GPI_NONE ? s->head : p->task[left].next;
    if (t->next == GPI_NONE)
        s->tail = task;
    else
        p->task[t->next].prev = task;
    if (left == GPI_NONE)
        s->head = task;
    else
        p->task[left].next = task;
    s->count++;
}

static void unlink_task(struct gpi_plan *p, struct gpi_shape *s, uint32_t task)
{
    const struct gpi_plan_record *t = &p->task[task];

    if (t->prev == GPI_NONE)
        s->head = t->next;
    else
        p->task[t->prev].next = t->next;
    if (t->next == GPI_NONE)
        s->tail = t->prev;
    else
        p->task[t->next].prev = t->prev;
    s->count--;
}

bool gpi_shape_waits(const struct gpi_plan *p, uint32_t task)
{
    const struct gpi_plan_record *t = &p->task[task];
    const struct gpi_shape *s = &p->shape[t->holder];

    if (t->holder >= p->most_shapes)
        return false;
    if (t->prev == GPI_NONE)
        return s->count && s->head == task;
    return t->prev != task && p->task[t->prev].next == task && p->task[t->prev].holder == t->holder;
}

uint32_t gpi_shape_suppose(struct gpi_plan *p, const struct gpi_plan_task *what)
{
    const uint32_t there = p->table[find(p, what, false)], supposed = p->most_shapes;
    const struct gpi_learned *c = &p->class[what->class];
    enum gpi_plan_why why_not;

    if (there != GPI_NONE && p->task[p->shape[there].head].order <= what->order)
        return there;
    describe(&p->shape[supposed], what, false);
    gpi_kinds_find_if(p, &p->shape[supposed], gpi_shape_wants(p, c, c->queued + 1, &why_not),
                  gpi_kinds_may_add(p, c)); /* the class may have been able to for a while */
    set_node(p, supposed, what->order, what->limit);
    return supposed;
}

uint32_t gpi_shape_place(const struct gpi_plan *p, uint32_t task, const struct gpi_plan_task *what)
{
    return find(p, what, task >= p->set.tasks);
}

bool gpi_shape_put(struct gpi_plan *p, uint32_t place, uint32_t task,
                   const struct gpi_plan_task *what)
{
    const bool loads = task >= p->set.tasks;
    uint32_t shape = p->table[place];
    struct gpi_shape *s;

    if (shape == GPI_NONE)
        shape = make(p, place, what, loads);
    if (shape == GPI_NONE)
        return false;
    s = &p->shape[shape];
    p->task[task] = (struct gpi_plan_record){
        .order = what->order,
        .limit = what->limit,
        .holder = shape,
        .since = p->now / GPI_MS & GPI_SINCE_MASK,
        .stream = what->stream,
    };
    p->class[what->class].queued += !loads;
    if (s->count && what->order < p->task[s->head].order)
        take_from_order(p, shape);
    link_task(p, s, task);
    if (s->head == task)
        add_to_order(p, shape);
    gpi_shape_class(p, what->class);
    return true;
}

static void end_shape(struct gpi_plan *p, uint32_t shape)
{
    forget(p, shape);
    p->n_shapes -= !p->shape[shape].loads;
    p->shape[shape].head = p->free_shape;
    p->free_shape = shape;
}

void gpi_shape_take(struct gpi_plan *p, uint32_t task)
{
    const uint32_t shape = p->task[task].holder;
    struct gpi_shape *s = &p->shape[shape];
    const bool first = s->head == task;
    const uint32_t class = s->class;

    if (first)
        take_from_order(p, shape);
    unlink_task(p, s, task);
    p->class[s->class].queued -= !s->loads;
    if (s->count == 0)
        end_shape(p, shape);
    else if (first)
        add_to_order(p, shape);
    gpi_shape_class(p, class);
}
