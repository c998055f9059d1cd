/* SPDX-License-Identifier: MIT */
/* records.c - a night in memory: lists of rows, and the texts and sets that they name. */
#include "view/records.h"

#include <stdlib.h>
#include <string.h>

/* ---- Texts and sets, each kept once ---- */

/* An open hash table of offsets. */
struct table {
    uint32_t *slot; /* 0 = free, else an entry + 1 */
    uint32_t size, used;
};

struct pool {
    char *text;
    size_t size, room;
    struct table texts;
};

struct kept_set {
    uint32_t at, n;
};

struct gpv_pool {
    uint32_t nights; /* that use it */
    struct pool text;
    uint16_t *gpu; /* of all sets */
    size_t gpus, gpus_room;
    GPV_LIST(struct kept_set) sets;
    struct table set_table;
    int64_t from, to; /* limits of the span; 0 = none */
    size_t named;     /* attempts that bring names */
    bool lived;       /* a life was added, also one outside of the limits */
};

static uint32_t hash_of(const void *data, size_t size)
{
    const unsigned char *byte = data;
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * 16777619u;
    return hash;
}

bool gpv_grow(void *list, size_t n, size_t *room, size_t size)
{
    void **at = list;
    if (n < *room)
        return true;
    size_t more = *room ? *room * 2 : 16;
    void *larger = more <= SIZE_MAX / size ? realloc(*at, more * size) : NULL;
    if (!larger)
        return false;
    *at = larger;
    *room = more;
    return true;
}

typedef uint32_t (*rehash_fn)(const struct gpv_pool *p, uint32_t entry);

/* A table is at most half full. */
static bool table_room(const struct gpv_pool *p, struct table *t, rehash_fn rehash)
{
    if (t->used * 2 < t->size)
        return true;
    struct table larger = { NULL, t->size ? t->size * 2 : 256, t->used };
    larger.slot = t->size < UINT32_MAX / 4 ? calloc(larger.size, sizeof(*larger.slot)) : NULL;
    if (!larger.slot)
        return false;
    for (uint32_t i = 0; i < t->size; i++) {
        if (t->slot[i] == 0)
            continue;
        uint32_t at = rehash(p, t->slot[i] - 1) & (larger.size - 1);
        while (larger.slot[at] != 0)
            at = (at + 1) & (larger.size - 1);
        larger.slot[at] = t->slot[i];
    }
    free(t->slot);
    *t = larger;
    return true;
}

static uint32_t text_hash(const struct gpv_pool *p, uint32_t entry)
{
    const char *text = p->text.text + entry;
    return hash_of(text, strlen(text));
}

/* Room for a text behind the others; SIZE_MAX: no memory, or more than 4 GiB of texts. */
static size_t text_room(struct pool *p, size_t size)
{
    while (p->size + size + 1 > p->room) {
        size_t more = p->room ? p->room * 2 : 4096;
        char *larger = more < UINT32_MAX ? realloc(p->text, more) : NULL;
        if (!larger)
            return SIZE_MAX;
        p->text = larger;
        p->room = more;
    }
    return p->size;
}

/* Where a text is in the table, or where it would be. */
static uint32_t text_slot(const struct gpv_pool *p, const char *text, size_t size)
{
    const struct table *t = &p->text.texts;
    uint32_t at = hash_of(text, size) & (t->size - 1);
    for (; t->slot[at] != 0; at = (at + 1) & (t->size - 1)) {
        const char *there = p->text.text + t->slot[at] - 1;
        if (strncmp(there, text, size) == 0 && there[size] == 0)
            break;
    }
    return at;
}

uint32_t gpv_keep(struct gpv_night *n, const char *text, size_t size)
{
    struct gpv_pool *p = n->pool;
    struct table *t = &p->text.texts;
    const char *nul = size ? memchr(text, 0, size) : NULL;
    size = nul ? (size_t)(nul - text) : size;
    if (size == 0)
        return 0;
    if (!table_room(p, t, text_hash))
        return GPV_NONE;
    uint32_t at = text_slot(p, text, size);
    if (t->slot[at] != 0)
        return t->slot[at] - 1;
    size_t offset = text_room(&p->text, size);
    if (offset == SIZE_MAX)
        return GPV_NONE;
    memcpy(p->text.text + offset, text, size);
    p->text.text[offset + size] = 0;
    p->text.size += size + 1;
    t->slot[at] = (uint32_t)offset + 1;
    t->used++;
    return (uint32_t)offset;
}

/* The offset of a text that was kept; GPV_NONE: it was not. */
static uint32_t find_text(const struct gpv_night *n, const char *text)
{
    const struct table *t = &n->pool->text.texts;
    if (!*text)
        return 0;
    uint32_t at = t->size ? t->slot[text_slot(n->pool, text, strlen(text))] : 0;
    return at != 0 ? at - 1 : GPV_NONE;
}

const char *gpv_text(const struct gpv_night *n, uint32_t text)
{
    return text < n->pool->text.size ? n->pool->text.text + text : "";
}

static uint32_t set_hash(const struct gpv_pool *p, uint32_t entry)
{
    const struct kept_set *set = &p->sets.row[entry];
    return hash_of(p->gpu + set->at, set->n * sizeof(*p->gpu));
}

uint16_t gpv_keep_set(struct gpv_night *n, const uint16_t *gpu, uint32_t count)
{
    struct gpv_pool *p = n->pool;
    if (!table_room(p, &p->set_table, set_hash))
        return GPV_NONE16;
    struct table *t = &p->set_table;
    uint32_t at = hash_of(gpu, count * sizeof(*gpu)) & (t->size - 1);
    for (; t->slot[at] != 0; at = (at + 1) & (t->size - 1)) {
        const struct kept_set *there = &p->sets.row[t->slot[at] - 1];
        if (there->n == count &&
            (count == 0 || memcmp(p->gpu + there->at, gpu, count * sizeof(*gpu)) == 0))
            return (uint16_t)(t->slot[at] - 1);
    }
    if (p->sets.n >= GPV_NONE16 ||
        !gpv_grow(&p->sets.row, p->sets.n, &p->sets.room, sizeof(*p->sets.row)))
        return GPV_NONE16;
    for (uint32_t i = 0; i < count; i++) {
        if (!gpv_grow(&p->gpu, p->gpus + i, &p->gpus_room, sizeof(*p->gpu)))
            return GPV_NONE16;
        p->gpu[p->gpus + i] = gpu[i];
    }
    p->sets.row[p->sets.n] = (struct kept_set){ (uint32_t)p->gpus, count };
    p->gpus += count;
    t->slot[at] = (uint32_t)++p->sets.n;
    t->used++;
    return (uint16_t)(p->sets.n - 1);
}

bool gpv_sets_are_full(const struct gpv_night *n)
{
    return n->pool->sets.n >= GPV_NONE16;
}

struct gpv_set gpv_set(const struct gpv_night *n, uint16_t set)
{
    const struct gpv_pool *p = n->pool;
    if (set >= p->sets.n)
        return (struct gpv_set){ NULL, 0 };
    return (struct gpv_set){ p->gpu ? p->gpu + p->sets.row[set].at : NULL, p->sets.row[set].n };
}

bool gpv_set_has(struct gpv_set set, uint32_t gpu)
{
    for (uint32_t i = 0; i < set.n; i++)
        if (set.gpu[i] == gpu)
            return true;
    return false;
}

/* ---- A night ---- */

struct gpv_night *gpv_night_new(void)
{
    struct gpv_night *n = calloc(1, sizeof(*n));
    struct gpv_pool *p = calloc(1, sizeof(*p));
    if (n && p) {
        n->pool = p;
        p->nights = 1;
        p->named = SIZE_MAX;
        if (text_room(&p->text, 0) == 0) {
            p->text.text[p->text.size++] = 0; /* offset 0 is the empty text */
            if (gpv_keep_set(n, NULL, 0) == 0)
                return n;
        }
        gpv_night_free(n);
        return NULL;
    }
    free(n);
    free(p);
    return NULL;
}

/* The rows of a list, or NULL: there is none, or no memory. */
static void *copied(const void *row, size_t n, size_t size)
{
    void *copy = n > 0 ? malloc(n * size) : NULL;
    return copy ? memcpy(copy, row, n * size) : NULL;
}

/* False: no memory. */
#define COPY(to, from)                                             \
    ((to).row = copied((from).row, (from).n, sizeof(*(from).row)), \
     (to).n = (to).room = (to).row ? (from).n : 0, (to).n == (from).n)

struct gpv_night *gpv_night_beside(const struct gpv_night *n)
{
    struct gpv_night *beside = calloc(1, sizeof(*beside));
    if (!beside)
        return NULL;
    beside->pool = n->pool;
    beside->host = n->host;
    n->pool->nights++;
    if (COPY(beside->gpus, n->gpus) && COPY(beside->classes, n->classes) &&
        COPY(beside->shapes, n->shapes))
        return beside;
    gpv_night_free(beside);
    return NULL;
}

static void leave_pool(struct gpv_pool *p)
{
    if (--p->nights > 0)
        return;
    free(p->text.text);
    free(p->text.texts.slot);
    free(p->set_table.slot);
    free(p->sets.row);
    free(p->gpu);
    free(p);
}

void gpv_night_free(struct gpv_night *n)
{
    if (!n)
        return;
    leave_pool(n->pool);
    free(n->gpus.row);
    free(n->classes.row);
    free(n->shapes.row);
    free(n->batches.row);
    free(n->attempts.row);
    free(n->names.row);
    free(n->tenancies.row);
    free(n->outs.row);
    free(n->reasons.row);
    free(n->lives.row);
    free(n->lefts.row);
    free(n);
}

void gpv_night_limit(struct gpv_night *n, int64_t from, int64_t to)
{
    n->pool->from = from;
    n->pool->to = to;
}

void gpv_night_limit_names(struct gpv_night *n, size_t attempts)
{
    n->pool->named = attempts;
}

bool gpv_wants_name(const struct gpv_night *n, uint32_t outcome)
{
    return n->attempts.n < n->pool->named || gpv_is_bad(outcome);
}

/* ---- Rows ---- */

/* Whether a row lies outside of the limits.  until 0: it goes on. */
static bool outside(const struct gpv_night *n, int64_t since, int64_t until)
{
    const struct gpv_pool *p = n->pool;
    return (p->from != 0 && until != 0 && until < p->from) || (p->to != 0 && since > p->to);
}

/* A row of a clock that was set back has the length 0. */
static int64_t not_before(int64_t until, int64_t since)
{
    return until != 0 && until < since ? since : until;
}

/* Appends a copy, and evaluates to a pointer to it, or NULL without memory. */
#define APPEND(list, copy)                                              \
    (gpv_grow(&(list).row, (list).n, &(list).room, sizeof(*(list).row)) \
         ? ((list).row[(list).n] = (copy), &(list).row[(list).n++])     \
         : NULL)

/* By the UUID, or by the name of one without. */
static uint32_t find_key(const struct gpv_night *n, uint32_t key)
{
    for (size_t i = 0; i < n->gpus.n; i++)
        if ((n->gpus.row[i].uuid ? n->gpus.row[i].uuid : n->gpus.row[i].name) == key)
            return (uint32_t)i;
    return GPV_NONE;
}

int gpv_add_gpu(struct gpv_night *n, const struct gpv_gpu *row)
{
    uint32_t there = find_key(n, row->uuid ? row->uuid : row->name);
    if (there != GPV_NONE) {
        n->gpus.row[there] = *row;
        return 0;
    }
    return n->gpus.n == GPV_NONE16 ? 1 : APPEND(n->gpus, *row) ? 0 : -1;
}

int gpv_add_class(struct gpv_night *n, const struct gpv_class *row)
{
    if (gpv_find_class(n, gpv_text(n, row->name)) != GPV_NONE)
        return 0;
    return APPEND(n->classes, *row) ? 0 : -1;
}

int gpv_add_shape(struct gpv_night *n, const struct gpv_shape *row)
{
    uint32_t there = gpv_find_shape(n, row->id);
    if (there != GPV_NONE) {
        n->shapes.row[there] = *row;
        return 0;
    }
    return n->shapes.n == GPV_NONE16 ? 1 : APPEND(n->shapes, *row) ? 0 : -1;
}

int gpv_add_attempt(struct gpv_night *n, const struct gpv_attempt *row)
{
    struct gpv_attempt a = *row;
    a.started = a.started != 0 ? a.started : a.ended;
    a.ended = not_before(a.ended, a.started);
    a.ready = a.ready > a.started ? a.started : a.ready;
    a.last = false;
    if (outside(n, a.started, a.ended))
        return 0;
    return APPEND(n->attempts, a) ? 0 : -1;
}

int gpv_add_name(struct gpv_night *n, const struct gpv_name *row)
{
    return APPEND(n->names, *row) ? 0 : -1;
}

/* Of rows with since and until. */
#define ADD_SPAN(list, added)                                                        \
    do {                                                                             \
        if (outside(n, (added)->since, (added)->until))                              \
            return 0;                                                                \
        if (!APPEND(list, *(added)))                                                 \
            return -1;                                                               \
        (list).row[(list).n - 1].until = not_before((added)->until, (added)->since); \
        return 0;                                                                    \
    } while (0)

int gpv_add_tenancy(struct gpv_night *n, const struct gpv_tenancy *row)
{
    ADD_SPAN(n->tenancies, row);
}

int gpv_add_out(struct gpv_night *n, const struct gpv_out *row)
{
    ADD_SPAN(n->outs, row);
}

int gpv_add_reason(struct gpv_night *n, const struct gpv_reason *row)
{
    ADD_SPAN(n->reasons, row);
}

int gpv_add_life(struct gpv_night *n, const struct gpv_life *row)
{
    n->pool->lived = true;
    ADD_SPAN(n->lives, row);
}

int gpv_add_left(struct gpv_night *n, const struct gpv_left_row *row)
{
    if (outside(n, row->time, row->time))
        return 0;
    return APPEND(n->lefts, *row) ? 0 : -1;
}

/* ---- The end ---- */

static int by_order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Attempts by start; of equal ones by task and number, so that the order is one. */
static int attempt_order(const void *left, const void *right)
{
    const struct gpv_attempt *a = left, *b = right;
    int order = by_order(a->started, b->started);
    if (order == 0)
        order = (a->task > b->task) - (a->task < b->task);
    if (order == 0)
        order = by_order(a->ended, b->ended);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static int name_order(const void *left, const void *right)
{
    const struct gpv_name *a = left, *b = right;
    return (a->task > b->task) - (a->task < b->task);
}

/* Each attempt brings the name of its task: one of them is left. */
static void name_once(struct gpv_night *n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n->names.n; i++) {
        const struct gpv_name *name = &n->names.row[i];
        struct gpv_name *last = kept ? &n->names.row[kept - 1] : NULL;
        if (!last || last->task != name->task)
            n->names.row[kept++] = *name;
        else if (last->text > name->text) /* the one that was kept first, in any order of rows */
            last->text = name->text;
    }
    n->names.n = kept;
}

#define SPAN_ORDER(name, type)                               \
    static int name(const void *left, const void *right)     \
    {                                                        \
        const type *a = left, *b = right;                    \
        int order = by_order(a->since, b->since);            \
        return order ? order : by_order(a->until, b->until); \
    }
SPAN_ORDER(tenancy_order, struct gpv_tenancy)
SPAN_ORDER(out_order, struct gpv_out)
SPAN_ORDER(reason_order, struct gpv_reason)
SPAN_ORDER(life_order, struct gpv_life)

static int left_order(const void *left, const void *right)
{
    const struct gpv_left_row *a = left, *b = right;
    int order = by_order(a->time, b->time);
    order = order ? order : by_order(a->batch, b->batch);
    order = order ? order : by_order(a->least, b->least);
    return order ? order : by_order(a->most, b->most);
}

static void swap(char *a, char *b, size_t size)
{
    char other[256];
    memcpy(other, a, size);
    memcpy(a, b, size);
    memcpy(b, other, size);
}

static void sink(char *base, size_t root, size_t n, size_t size,
                 int (*order)(const void *, const void *))
{
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && order(base + child * size, base + (child + 1) * size) < 0)
            child++;
        if (order(base + root * size, base + child * size) >= 0)
            return;
        swap(base + root * size, base + child * size, size);
    }
}

void gpv_sort(void *rows, size_t n, size_t size, int (*order)(const void *, const void *))
{
    char *base = rows;
    size_t ordered = 1;
    while (ordered < n && order(base + (ordered - 1) * size, base + ordered * size) <= 0)
        ordered++;
    if (ordered >= n)
        return;
    for (size_t i = n / 2; i-- > 0;)
        sink(base, i, n, size, order);
    for (size_t last = n - 1; last > 0; last--) {
        swap(base, base + last * size, size);
        sink(base, 0, last, size, order);
    }
}
#define SORT(list, order) gpv_sort((list).row, (list).n, sizeof(*(list).row), order)

/* A later row of the same task: by number; one without an attempt is later than those before its
 * end. */
static bool is_later(const struct gpv_attempt *a, const struct gpv_attempt *b)
{
    if (a->number != 0 && b->number != 0)
        return a->number > b->number;
    int64_t a_end = a->ended ? a->ended : INT64_MAX, b_end = b->ended ? b->ended : INT64_MAX;
    return a_end != b_end ? a_end > b_end : a->number < b->number;
}

/* Marks the last row of each task, with a table of rows by task. */
static int mark_last(struct gpv_night *n)
{
    struct table t = { NULL, 256, 0 };
    while (t.size < n->attempts.n * 2)
        t.size *= 2;
    t.slot = calloc(t.size, sizeof(*t.slot));
    if (!t.slot)
        return -1;
    for (uint32_t i = 0; i < n->attempts.n; i++) {
        struct gpv_attempt *a = &n->attempts.row[i];
        uint32_t at = hash_of(&a->task, sizeof(a->task)) & (t.size - 1);
        while (t.slot[at] != 0 && n->attempts.row[t.slot[at] - 1].task != a->task)
            at = (at + 1) & (t.size - 1);
        struct gpv_attempt *there = t.slot[at] ? &n->attempts.row[t.slot[at] - 1] : NULL;
        if (there && !is_later(a, there))
            continue;
        if (there)
            there->last = false;
        a->last = true;
        t.slot[at] = i + 1;
    }
    free(t.slot);
    return 0;
}

/* Widens the time from *first to *last by a row. */
static void note(int64_t *first, int64_t *last, int64_t since, int64_t until)
{
    *first = *first == 0 || since < *first ? since : *first;
    *last = since > *last ? since : *last;
    *last = until > *last ? until : *last;
}

#define NOTE_ALL(list, begin, end)        \
    for (size_t i = 0; i < (list).n; i++) \
    note(&first, &last, (list).row[i].begin, (list).row[i].end)

/* The span: the limits, or else from the first row to `now`, or else to the last time. */
static void set_span(struct gpv_night *n, int64_t now)
{
    const struct gpv_pool *p = n->pool;
    int64_t first = 0, last = 0;
    for (size_t i = 0; i < n->attempts.n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[i];
        note(&first, &last, a->ready != 0 ? a->ready : a->started, a->ended);
    }
    NOTE_ALL(n->tenancies, since, until);
    NOTE_ALL(n->outs, since, until);
    NOTE_ALL(n->reasons, since, until);
    NOTE_ALL(n->lives, since, until);
    NOTE_ALL(n->lefts, time, time);
    now = now != 0 ? now : last;
    n->to = p->to != 0 && p->to < now ? p->to : now;
    n->from = p->from != 0 ? p->from : first != 0 ? first : n->to;
    if (n->from > n->to)
        n->from = n->to;
}

int gpv_night_end(struct gpv_night *n, int64_t now)
{
    n->lived = n->pool->lived;
    SORT(n->attempts, attempt_order);
    SORT(n->names, name_order);
    name_once(n);
    SORT(n->tenancies, tenancy_order);
    SORT(n->outs, out_order);
    SORT(n->reasons, reason_order);
    SORT(n->lives, life_order);
    SORT(n->lefts, left_order);
    set_span(n, now != 0 ? now : n->to);
    n->over = true;
    for (size_t i = 0; i < n->batches.n; i++) {
        const struct gpv_batch *b = &n->batches.row[i];
        n->over = n->over && b->ended != 0 && b->held + b->ready + b->running == 0;
    }
    for (size_t i = 0; i < n->attempts.n; i++)
        n->over = n->over && n->attempts.row[i].ended != 0;
    return mark_last(n);
}

void gpv_night_fit(struct gpv_night *n)
{
    int64_t first = 0, last = 0;
    for (size_t i = 0; i < n->attempts.n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[i];
        note(&first, &last, a->ready != 0 ? a->ready : a->started, a->ended);
    }
    for (size_t i = 0; i < n->batches.n; i++)
        if (n->batches.row[i].ready != 0)
            note(&first, &last, n->batches.row[i].made, 0);
    if (first == 0)
        return;
    n->from = first > n->from ? first : n->from;
    n->to = n->over && last < n->to ? last : n->to;
    n->from = n->from < n->to ? n->from : n->to;
}

/* ---- Finding ---- */

uint32_t gpv_find_gpu(const struct gpv_night *n, const char *name)
{
    uint32_t text = find_text(n, name);
    if (text == GPV_NONE || text == 0)
        return GPV_NONE;
    uint32_t there = find_key(n, text);
    for (size_t i = 0; there == GPV_NONE && i < n->gpus.n; i++)
        if (n->gpus.row[i].name == text)
            there = (uint32_t)i;
    return there;
}

uint32_t gpv_find_class(const struct gpv_night *n, const char *name)
{
    uint32_t text = find_text(n, name);
    for (size_t i = 0; text != GPV_NONE && i < n->classes.n; i++)
        if (n->classes.row[i].name == text)
            return (uint32_t)i;
    return GPV_NONE;
}

uint32_t gpv_find_shape(const struct gpv_night *n, uint32_t id)
{
    for (size_t i = 0; i < n->shapes.n; i++)
        if (n->shapes.row[i].id == id)
            return (uint32_t)i;
    return GPV_NONE;
}

/* The index of the first batch whose id is not less. */
static size_t batch_place(const struct gpv_night *n, uint32_t id)
{
    size_t low = 0, high = n->batches.n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (n->batches.row[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t gpv_find_batch(const struct gpv_night *n, uint32_t id)
{
    size_t at = batch_place(n, id);
    return at < n->batches.n && n->batches.row[at].id == id ? (uint32_t)at : GPV_NONE;
}

int gpv_add_batch(struct gpv_night *n, const struct gpv_batch *row)
{
    size_t at = batch_place(n, row->id);
    if (at < n->batches.n && n->batches.row[at].id == row->id) {
        n->batches.row[at] = *row;
        return 0;
    }
    if (!APPEND(n->batches, *row))
        return -1;
    memmove(&n->batches.row[at + 1], &n->batches.row[at],
            (n->batches.n - 1 - at) * sizeof(*n->batches.row));
    n->batches.row[at] = *row;
    return 0;
}

uint32_t gpv_name_text(const struct gpv_night *n, uint64_t task)
{
    const struct gpv_name key = { task, 0 };
    const struct gpv_name *found =
        n->names.n ? bsearch(&key, n->names.row, n->names.n, sizeof(key), name_order) : NULL;
    return found ? found->text : 0;
}

const char *gpv_name_of(const struct gpv_night *n, uint64_t task)
{
    return gpv_text(n, gpv_name_text(n, task));
}

uint32_t gpv_class_of(const struct gpv_night *n, const struct gpv_attempt *a)
{
    return a->shape < n->shapes.n ? n->shapes.row[a->shape].class : GPV_NONE;
}

/* ---- Words ---- */

#define GPV_X_WORD(name, value, word, ...) [value] = word,
#define GPV_X_GLYPH(name, value, word, glyph) [value] = glyph,
static const char *const outcome_words[] = { GPV_OUTCOME_MAP(GPV_X_WORD) };
static const char *const outcome_glyphs[] = { GPV_OUTCOME_MAP(GPV_X_GLYPH) };
static const char *const tenancy_words[] = { GPV_TENANCY_MAP(GPV_X_WORD) };
static const char *const out_words[] = { GPV_OUT_MAP(GPV_X_WORD) };
static const char *const life_words[] = { GPV_LIFE_MAP(GPV_X_WORD) };
#define WORD(table, value) \
    ((value) < sizeof(table) / sizeof(*(table)) && (table)[value] ? (table)[value] : "?")

const char *gpv_outcome_word(uint32_t outcome)
{
    return WORD(outcome_words, outcome);
}

const char *gpv_outcome_glyph(uint32_t outcome)
{
    return WORD(outcome_glyphs, outcome);
}

const char *gpv_tenancy_word(uint32_t kind)
{
    return WORD(tenancy_words, kind);
}

const char *gpv_out_word(uint32_t kind)
{
    return WORD(out_words, kind);
}

const char *gpv_life_word(uint32_t kind)
{
    return WORD(life_words, kind);
}
