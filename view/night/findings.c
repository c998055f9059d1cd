/* SPDX-License-Identifier: MIT */
/* findings.c - what went wrong: alike rows in groups. */
#include "view/night/findings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/night/batches.h"
#include "view/night/finding_words.h"
#include "view/night/tasks.h"
#include "view/night/use.h"

#define HALF_HOUR (INT64_C(1800) * 1000000000)
enum { ROOM = 32 };

/* ---- Groups of alike rows ---- */

/* In what rows must be alike to be one finding. */
struct key {
    uint32_t kind, batch, gpu, text;
    uint32_t what; /* outcome; kind of an out; class that left */
    int32_t status;
};

/* What a finding has beside its fields, until it is complete. */
struct group {
    struct key key;
    uint64_t hash;
};

struct maker {
    struct gpv_night *n;
    struct gpv_findings *f;
    GPV_LIST(struct group) groups; /* of the findings with the same index */
    uint32_t *slot;                /* an open hash table of findings: 0 = free, else index + 1 */
    size_t slots;
    uint64_t *gpus; /* bits of the GPUs of each finding, `words` for each */
    size_t words;
    struct gpv_tasks tasks;  /* of findings, by index */
    struct gpv_tasks not_ok; /* whose last row is not ok, by batch */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The next character of a text, '0' for a run of digits; 0 at the end. */
static char folded(const char **at)
{
    char c = **at;
    if (c == 0)
        return 0;
    if (!is_digit(c)) {
        (*at)++;
        return c;
    }
    while (is_digit(**at))
        (*at)++;
    return '0';
}

static bool alike_texts(const char *a, const char *b)
{
    char c;
    do {
        c = folded(&a);
        if (c != folded(&b))
            return false;
    } while (c != 0);
    return true;
}

static uint64_t mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 32);
}

static uint64_t hash_of(const struct gpv_night *n, const struct key *k)
{
    const char *at = gpv_text(n, k->text);
    uint64_t hash = mixed(mixed(0, k->kind), k->batch);
    hash = mixed(mixed(mixed(hash, k->gpu), k->what), (uint32_t)k->status);
    for (char c; (c = folded(&at)) != 0;)
        hash = mixed(hash, (unsigned char)c);
    return hash;
}

static bool alike(const struct gpv_night *n, const struct key *a, const struct key *b)
{
    return a->kind == b->kind && a->batch == b->batch && a->gpu == b->gpu && a->what == b->what &&
           a->status == b->status &&
           (a->text == b->text || alike_texts(gpv_text(n, a->text), gpv_text(n, b->text)));
}

/* The slot of a key, or the free one where it would be. */
static size_t slot_of(const struct maker *m, const struct key *k, uint64_t hash)
{
    size_t at = hash & (m->slots - 1);
    for (; m->slot[at] != 0; at = (at + 1) & (m->slots - 1)) {
        const struct group *there = &m->groups.row[m->slot[at] - 1];
        if (there->hash == hash && alike(m->n, &there->key, k))
            break;
    }
    return at;
}

/* A table is at most half full. */
static int slot_room(struct maker *m)
{
    if (m->groups.n < m->slots / 2)
        return 0;
    size_t slots = m->slots != 0 ? 2 * m->slots : (size_t)2 * ROOM;
    uint32_t *slot = calloc(slots, sizeof(*slot));
    if (!slot)
        return -1;
    for (uint32_t i = 0; i < m->groups.n; i++) {
        size_t at = m->groups.row[i].hash & (slots - 1);
        while (slot[at] != 0)
            at = (at + 1) & (slots - 1);
        slot[at] = i + 1;
    }
    free(m->slot);
    m->slot = slot;
    m->slots = slots;
    return 0;
}

/* The list, moved or not; it stays as it is where there is no memory. */
static void *resized(void *list, size_t size, bool *failed)
{
    void *moved = realloc(list, size);
    if (moved)
        return moved;
    *failed = true;
    return list;
}

/* Each list has the same room. */
static int group_room(struct maker *m)
{
    size_t room = m->groups.room != 0 ? 2 * m->groups.room : ROOM;
    bool failed = false;
    if (m->groups.n < m->groups.room)
        return 0;
    m->f->row = resized(m->f->row, room * sizeof(*m->f->row), &failed);
    m->groups.row = resized(m->groups.row, room * sizeof(*m->groups.row), &failed);
    m->gpus = resized(m->gpus, room * m->words * sizeof(*m->gpus), &failed);
    if (!failed)
        m->groups.room = m->f->room = room;
    return failed ? -1 : 0;
}

/* The finding of a key; NULL: no memory. */
static struct gpv_finding *find(struct maker *m, const struct key *k)
{
    uint64_t hash = hash_of(m->n, k);
    if (slot_room(m) != 0 || group_room(m) != 0)
        return NULL;
    uint32_t *slot = &m->slot[slot_of(m, k, hash)];
    if (*slot == 0) {
        m->f->row[m->f->n] = (struct gpv_finding){
            .kind = k->kind, .batch = k->batch, .text = k->text, .gpu = k->gpu, .row = GPV_NONE
        };
        memset(m->gpus + m->f->n * m->words, 0, m->words * sizeof(*m->gpus));
        m->groups.row[m->groups.n++] = (struct group){ *k, hash };
        *slot = (uint32_t)++m->f->n;
    }
    return &m->f->row[*slot - 1];
}

/* ---- Bad ends ---- */

static void note_end(struct gpv_finding *f, const struct gpv_attempt *a, uint32_t row)
{
    if (f->count == 0 || a->ended < f->first) {
        f->first = a->ended;
        f->text = a->text;
        f->row = row;
    }
    if (f->count == 0 || a->ended > f->last)
        f->last = a->ended;
    f->count++;
}

static void note_gpus(struct maker *m, uint32_t finding, uint16_t index)
{
    const struct gpv_set set = gpv_set(m->n, index);
    uint64_t *bits = m->gpus + finding * m->words;
    for (uint32_t i = 0; i < set.n; i++)
        if (set.gpu[i] / 64 < m->words)
            bits[set.gpu[i] / 64] |= UINT64_C(1) << set.gpu[i] % 64;
}

static int add_end(struct maker *m, uint32_t row)
{
    const struct gpv_attempt *a = &m->n->attempts.row[row];
    const struct key key = { .kind = GPV_FINDING_BAD,
                             .batch = GPV_BATCH_OF(a->task),
                             .gpu = GPV_NONE,
                             .text = a->text,
                             .what = a->outcome,
                             .status = a->status };
    struct gpv_finding *f = find(m, &key);
    if (!f)
        return -1;
    f->outcome = a->outcome;
    f->status = a->status;
    note_end(f, a, row);
    m->f->bad++;
    uint32_t finding = (uint32_t)(f - m->f->row);
    note_gpus(m, finding, a->set);
    return gpv_tasks_add(&m->tasks, finding, GPV_NUMBER_OF(a->task));
}

static int add_ends(struct maker *m)
{
    for (uint32_t i = 0; i < m->n->attempts.n; i++) {
        const struct gpv_attempt *a = &m->n->attempts.row[i];
        if (a->last && a->outcome != GPV_OK &&
            gpv_tasks_add(&m->not_ok, GPV_BATCH_OF(a->task), GPV_NUMBER_OF(a->task)) != 0)
            return -1;
        if (gpv_is_bad(a->outcome) && add_end(m, i) != 0)
            return -1;
    }
    return 0;
}

/* Its tasks are a range each, since sets of tasks may be large. */
static int add_earlier_tasks(struct maker *m, uint32_t finding, const struct gpv_finding *f)
{
    for (uint32_t i = 0; i < f->n_ranges; i++)
        if (gpv_tasks_add_range(&m->tasks, finding, f->range[i].from, f->range[i].to) != 0 ||
            gpv_tasks_add_range(&m->not_ok, f->batch, f->range[i].from, f->range[i].to) != 0)
            return -1;
    return 0;
}

static int add_earlier(struct maker *m, const struct gpv_finding *earlier)
{
    const struct key key = { .kind = GPV_FINDING_BAD,
                             .batch = earlier->batch,
                             .gpu = GPV_NONE,
                             .text = earlier->text,
                             .what = earlier->outcome,
                             .status = earlier->status };
    struct gpv_finding *f = find(m, &key);
    if (!f)
        return -1;
    f->outcome = earlier->outcome;
    f->status = earlier->status;
    f->text = earlier->text;
    f->first = f->count == 0 || earlier->first < f->first ? earlier->first : f->first;
    f->last = earlier->last > f->last ? earlier->last : f->last;
    f->count += earlier->count;
    f->more += earlier->more;
    f->n_tasks += earlier->more;
    m->f->bad += earlier->count;
    uint32_t finding = (uint32_t)(f - m->f->row);
    note_gpus(m, finding, earlier->set);
    return add_earlier_tasks(m, finding, earlier);
}

static int add_all_earlier(struct maker *m, const struct gpv_findings *earlier)
{
    for (size_t i = 0; earlier && i < earlier->n; i++)
        if (earlier->row[i].kind == GPV_FINDING_BAD && add_earlier(m, &earlier->row[i]) != 0)
            return -1;
    return 0;
}

static void add_range(struct maker *m, const struct gpv_task_range *r)
{
    struct gpv_finding *f = &m->f->row[r->owner];
    uint32_t n = r->to - r->from + 1, lowest = 0;
    uint64_t still = gpv_tasks_among(&m->not_ok, f->batch, r->from, r->to, &lowest);
    if (f->still == 0 && still != 0)
        f->still_first = lowest;
    f->still += still;
    f->n_tasks += n;
    if (f->n_ranges < GPV_FINDING_RANGES) {
        f->range[f->n_ranges].from = r->from;
        f->range[f->n_ranges++].to = r->to;
    } else {
        f->more += n;
    }
}

static uint16_t keep_gpus(struct maker *m, size_t finding, uint16_t *room)
{
    const uint64_t *bits = m->gpus + finding * m->words;
    uint32_t n = 0;
    for (size_t i = 0; i < m->n->gpus.n; i++)
        if (bits[i / 64] >> i % 64 & 1)
            room[n++] = (uint16_t)i;
    return gpv_keep_set(m->n, room, n);
}

static int finish_ends(struct maker *m)
{
    uint16_t *room = malloc((m->n->gpus.n + 1) * sizeof(*room));
    if (!room)
        return -1;
    gpv_tasks_join(&m->tasks);
    gpv_tasks_join(&m->not_ok);
    for (size_t i = 0; i < m->tasks.n; i++)
        add_range(m, &m->tasks.row[i]);
    for (size_t i = 0; i < m->f->n; i++)
        m->f->row[i].set = keep_gpus(m, i, room);
    free(room);
    return 0;
}

/* ---- Rows that have a length ---- */

/* Joins a row to a finding; rows are added in the order of their begin.  until 0: it goes on. */
static int add_row(struct maker *m, const struct key *key, uint32_t row, int64_t since,
                   int64_t until)
{
    int64_t end = gpv_until(m->n, until), begin = since > m->n->from ? since : m->n->from;
    struct gpv_finding *f = find(m, key);
    if (!f)
        return -1;
    if (f->count++ == 0) {
        f->first = since;
        f->row = row;
    } else if (begin < f->last) {
        begin = f->last;
    }
    f->ns += end > begin ? end - begin : 0;
    f->last = end > f->last ? end : f->last;
    f->goes_on = f->goes_on || until == 0 || until > m->n->to;
    return 0;
}

static int add_outs(struct maker *m)
{
    for (uint32_t i = 0; i < m->n->outs.n; i++) {
        const struct gpv_out *o = &m->n->outs.row[i];
        const struct key key = {
            .kind = GPV_FINDING_OUT, .gpu = o->gpu, .text = o->text, .what = o->kind
        };
        if (add_row(m, &key, i, o->since, o->until) != 0)
            return -1;
    }
    return 0;
}

/* The reason that held for the longest part of a time, of tasks with several GPUs if `wide`. */
static uint32_t reason_of(const struct gpv_night *n, int64_t from, int64_t to, bool wide)
{
    uint32_t found = GPV_NONE;
    int64_t longest = 0;
    for (uint32_t i = 0; i < n->reasons.n && n->reasons.row[i].since < to; i++) {
        const struct gpv_reason *r = &n->reasons.row[i];
        int64_t end = gpv_until(n, r->until), begin = r->since > from ? r->since : from;
        if (wide && (r->shape >= n->shapes.n || n->shapes.row[r->shape].gpus < 2))
            continue;
        end = end < to ? end : to;
        if (end - begin > longest) {
            longest = end - begin;
            found = i;
        }
    }
    return found;
}

static uint32_t batch_of(const struct gpv_night *n, uint32_t reason)
{
    return reason != GPV_NONE ? GPV_BATCH_OF(n->reasons.row[reason].task) : 0;
}

/* The batch for which a GPU was kept free: that of the task with which the text begins, "14.12:
 * held for 2 GPUs", or else that of a wide task that waited then. */
static uint32_t kept_for(const struct gpv_night *n, const struct gpv_tenancy *t)
{
    uint32_t batch, number;
    char colon;
    if (sscanf(gpv_text(n, t->text), "%" SCNu32 ".%" SCNu32 "%c", &batch, &number, &colon) == 3 &&
        colon == ':')
        return batch;
    return batch_of(n, reason_of(n, t->since, gpv_until(n, t->until), true));
}

static bool is_long(const struct gpv_night *n, int64_t since, int64_t until)
{
    return gpv_until(n, until) - (since > n->from ? since : n->from) >= HALF_HOUR;
}

static int add_tenancies(struct maker *m)
{
    const struct gpv_night *n = m->n;
    for (uint32_t i = 0; i < n->tenancies.n; i++) {
        const struct gpv_tenancy *t = &n->tenancies.row[i];
        struct key key = { .gpu = t->gpu, .text = t->text };
        if (t->kind == GPV_TENANCY_KEPT && is_long(n, t->since, t->until)) {
            key.kind = GPV_FINDING_KEPT;
            key.batch = kept_for(n, t);
        } else if (gpv_is_eviction(n, t)) {
            key.kind = GPV_FINDING_EVICTED;
            key.what = t->class;
        } else {
            continue;
        }
        if (add_row(m, &key, i, t->since, t->until) != 0)
            return -1;
    }
    return 0;
}

struct limited {
    struct maker *m;
    uint32_t gpu;
};

static int add_limited(const struct gpv_stretch *s, void *user)
{
    const struct limited *l = user;
    const struct gpv_night *n = l->m->n;
    if (s->use != GPV_USE_LIMITED || s->to - s->from < HALF_HOUR)
        return 0;
    uint32_t reason = reason_of(n, s->from, s->to, false);
    const struct key key = { .kind = GPV_FINDING_LIMITED,
                             .gpu = l->gpu,
                             .batch = batch_of(n, reason),
                             .text = reason != GPV_NONE ? n->reasons.row[reason].text : 0 };
    return add_row(l->m, &key, reason, s->from, s->to < n->to ? s->to : 0);
}

static int add_idle(struct maker *m)
{
    for (uint32_t i = 0; i < m->n->gpus.n; i++) {
        struct limited l = { m, i };
        if (gpv_use_each(m->n, i, m->n->from, m->n->to, add_limited, &l) != 0)
            return -1;
    }
    return 0;
}

/* The time between two lives, or before the first and after the last one. */
static int add_gap(struct maker *m, uint32_t row, int64_t since, int64_t until)
{
    const struct key key = { .kind = GPV_FINDING_UNKNOWN, .gpu = GPV_NONE };
    return since < until ? add_row(m, &key, row, since, until < m->n->to ? until : 0) : 0;
}

/* Where no life was recorded, as in a log of decisions, no agent is missing. */
static int add_lives(struct maker *m)
{
    const struct gpv_night *n = m->n;
    int64_t known = n->from;
    uint32_t before = GPV_NONE;
    for (uint32_t i = 0; i < n->lives.n; i++) {
        const struct gpv_life *l = &n->lives.row[i];
        const struct key key = { .kind = GPV_FINDING_CLOCK, .gpu = GPV_NONE, .text = l->text };
        if (l->kind == GPV_LIFE_CLOCK && add_row(m, &key, i, l->since, l->since) != 0)
            return -1;
        if (l->kind != GPV_LIFE_OPENED)
            continue;
        if (add_gap(m, before, known, l->since) != 0)
            return -1;
        int64_t end = gpv_until(n, l->until);
        known = end > known ? end : known;
        before = i;
    }
    return n->lived ? add_gap(m, before, known, n->to) : 0;
}

/* ---- The list ---- */

static int descending(int64_t a, int64_t b)
{
    return (a < b) - (a > b);
}

static int compare(const void *left, const void *right)
{
    const struct gpv_finding *a = left, *b = right;
    bool by_count = a->kind == GPV_FINDING_BAD || a->kind == GPV_FINDING_EVICTED;
    int order = descending(b->kind, a->kind);
    if (order == 0 && by_count)
        order = descending((int64_t)a->count, (int64_t)b->count);
    if (order == 0 && !by_count)
        order = descending(a->ns, b->ns);
    if (order == 0)
        order = descending(b->first, a->first);
    if (order == 0)
        order = descending(b->gpu, a->gpu);
    return order ? order : descending(b->row, a->row);
}

static int add_all(struct maker *m, const struct gpv_findings *earlier)
{
    if (add_ends(m) != 0 || add_all_earlier(m, earlier) != 0 || finish_ends(m) != 0 ||
        add_outs(m) != 0 || add_tenancies(m) != 0 || add_idle(m) != 0 || add_lives(m) != 0)
        return -1;
    for (size_t i = 0; i < m->f->n; i++)
        gpv_finding_command(m->n, &m->f->row[i]);
    if (m->f->n > 1)
        qsort(m->f->row, m->f->n, sizeof(m->f->row[0]), compare);
    return 0;
}

struct gpv_findings *gpv_findings_beside(struct gpv_night *n, const struct gpv_findings *earlier)
{
    struct maker m = { .n = n, .f = calloc(1, sizeof(*m.f)), .words = n->gpus.n / 64 + 1 };
    int code = m.f ? add_all(&m, earlier) : -1;
    free(m.groups.row);
    free(m.slot);
    free(m.gpus);
    gpv_tasks_free(&m.tasks);
    gpv_tasks_free(&m.not_ok);
    if (code != 0) {
        gpv_findings_free(m.f);
        return NULL;
    }
    return m.f;
}

struct gpv_findings *gpv_findings_of(struct gpv_night *n)
{
    return gpv_findings_beside(n, NULL);
}

void gpv_findings_free(struct gpv_findings *f)
{
    if (f)
        free(f->row);
    free(f);
}
