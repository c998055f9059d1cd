/* SPDX-License-Identifier: MIT */
/* order.c - all rows are there: sorts them, and finds the span and the last row of each task. */
#include <stdlib.h>
#include <string.h>

#include "view/records.h"

/* ---- Orders ---- */

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

/* ---- Sorting ---- */

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

/* ---- The end ---- */

/* The same attempt, or end without one; of those the row that has ended is first. */
static int twin_order(const void *left, const void *right)
{
    const struct gpv_attempt *a = left, *b = right;
    int order = by_order((int64_t)a->task, (int64_t)b->task);
    order = order ? order : by_order(a->number, b->number);
    if (order || a->number != 0)
        return order;
    return by_order(a->ended, b->ended);
}

static int ended_first(const void *left, const void *right)
{
    const struct gpv_attempt *a = left, *b = right;
    int order = twin_order(a, b);
    return order ? order : (a->ended == 0) - (b->ended == 0);
}

/* A reader of a queue that works gets rows again that have changed meanwhile. */
static void attempts_once(struct gpv_night *n)
{
    size_t kept = 0;
    if (!n->again)
        return;
    n->again = false;
    SORT(n->attempts, ended_first);
    for (size_t i = 0; i < n->attempts.n; i++)
        if (kept == 0 || twin_order(&n->attempts.row[kept - 1], &n->attempts.row[i]) != 0)
            n->attempts.row[kept++] = n->attempts.row[i];
    n->attempts.n = kept;
}

/* A later row of the same task: by number; one without an attempt is later than those before its
 * end. */
static bool is_later(const struct gpv_attempt *a, const struct gpv_attempt *b)
{
    if (a->number != 0 && b->number != 0)
        return a->number > b->number;
    int64_t a_end = a->ended ? a->ended : INT64_MAX, b_end = b->ended ? b->ended : INT64_MAX;
    return a_end != b_end ? a_end > b_end : a->number < b->number;
}

/* Marks the last row of each task, with an open hash table of rows by task. */
static int mark_last(struct gpv_night *n)
{
    size_t size = 256;
    while (size < n->attempts.n * 2)
        size *= 2;
    uint32_t *slot = calloc(size, sizeof(*slot)); /* 0 = free, else an index + 1 */
    if (!slot)
        return -1;
    for (uint32_t i = 0; i < n->attempts.n; i++) {
        struct gpv_attempt *a = &n->attempts.row[i];
        size_t at = (a->task * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (size - 1);
        while (slot[at] != 0 && n->attempts.row[slot[at] - 1].task != a->task)
            at = (at + 1) & (size - 1);
        struct gpv_attempt *there = slot[at] ? &n->attempts.row[slot[at] - 1] : NULL;
        if (there && !is_later(a, there))
            continue;
        if (there)
            there->last = false;
        a->last = true;
        slot[at] = i + 1;
    }
    free(slot);
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
    n->to = n->limit.to != 0 && n->limit.to < now ? n->limit.to : now;
    n->from = n->limit.from != 0 ? n->limit.from : first != 0 ? first : n->to;
    if (n->from > n->to)
        n->from = n->to;
}

int gpv_night_end(struct gpv_night *n, int64_t now)
{
    attempts_once(n);
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

/* ---- Names ---- */

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
