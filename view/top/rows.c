/* SPDX-License-Identifier: MIT */
/* rows.c - which rows a part has. */
#include "view/top/rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "view/night/findings.h"
#include "view/words.h"

/* ---- Names ---- */

char *gpv_batch_label(const struct gpv_now_batch *b, char ret[GPV_LABEL])
{
    snprintf(ret, GPV_LABEL, "%" PRIu32 " %s", b->id, b->name);
    return ret;
}

char *gpv_task_label(const struct gpv_snapshot *s, uint64_t task, char ret[GPV_LABEL])
{
    char id[GPV_WORD];
    const char *name = "";

    for (size_t i = 0; i < s->batches.n; i++)
        if (s->batches.row[i].id == GPV_BATCH_OF(task))
            name = s->batches.row[i].name;
    snprintf(ret, GPV_LABEL, "%s%s%s", gpv_task_id(task, id), *name ? " " : "", name);
    return ret;
}

const char *gpv_gpu_short(const char *name)
{
    static const char usual[] = "gpu:";
    const char *rest = name + sizeof usual - 1;

    return !strncmp(name, usual, sizeof usual - 1) && *rest ? rest : name;
}

char *gpv_gpus_packed(char *list)
{
    char *to = list;

    for (const char *at = list; *at; at++)
        if (*at != ' ' || at == list || at[-1] != ',')
            *to++ = *at;
    *to = 0;
    return list;
}

/* ---- The filter ---- */

static bool has(const struct gpv_top_state *t, const char *text)
{
    return strcasestr(text, t->find) != NULL;
}

static bool gpu_has(const struct gpv_top_state *t, const struct gpv_snapshot *s,
                    const struct gpv_now_gpu *g)
{
    char label[GPV_LABEL];

    return has(t, g->name) || has(t, g->class_name) || has(t, g->text) ||
           has(t, gpv_does_word(g->does)) || (g->task && has(t, gpv_task_label(s, g->task, label)));
}

static bool batch_has(const struct gpv_top_state *t, const struct gpv_now_batch *b)
{
    char label[GPV_LABEL];

    return has(t, gpv_batch_label(b, label)) || has(t, b->text);
}

static bool finding_has(const struct gpv_top_state *t, const struct gpv_now_finding *f)
{
    return has(t, f->what) || has(t, f->whose) || has(t, f->text);
}

static bool end_has(const struct gpv_top_state *t, const struct gpv_now_end *e)
{
    char id[GPV_WORD];

    return has(t, gpv_task_id(e->task, id)) || has(t, e->batch_name) ||
           has(t, gpv_outcome_word(e->outcome));
}

static bool is_found(const struct gpv_top_state *t, const struct gpv_snapshot *s,
                     enum gpv_part part, size_t i)
{
    if (!*t->find)
        return true;
    switch (part) {
    case GPV_PART_GPUS:
        return gpu_has(t, s, &s->gpus.row[i]);
    case GPV_PART_BATCHES:
        return batch_has(t, &s->batches.row[i]);
    case GPV_PART_CLASSES:
        return has(t, s->classes.row[i].name);
    case GPV_PART_FINDINGS:
        return finding_has(t, &s->findings.row[i]);
    default:
        return end_has(t, &s->ends.row[i]);
    }
}

/* ---- Orders ---- */

/* Of batches: the higher rank is first, and equal ones are in the order of the queue. */
static uint64_t rank_of(enum gpv_sort sort, const struct gpv_now_batch *b)
{
    switch (sort) {
    case GPV_SORT_WAITING:
        return (uint64_t)b->ready + b->held;
    case GPV_SORT_LEFT: /* an unknown time may be the longest one; what has ended needs none */
        return b->ended ? 0 : b->most < 0 ? UINT64_MAX : (uint64_t)b->most + 1;
    case GPV_SORT_BAD:
        return b->bad;
    default:
        return 0;
    }
}

/* GPUs that stood free, evictions, and tasks that were put back are no faults, and stand behind
 * them. */
static uint64_t rank_of_finding(const struct gpv_now_finding *f)
{
    switch (f->kind) {
    case GPV_FINDING_EVICTED:
        return 0;
    case GPV_FINDING_KEPT:
    case GPV_FINDING_LIMITED:
        return 1;
    case GPV_FINDING_BAD:
        return f->outcome == GPV_RETURNED ? 1 : 2;
    default:
        return 2;
    }
}

static uint64_t rank(const struct gpv_top_state *t, const struct gpv_snapshot *s,
                     enum gpv_part part, uint32_t i)
{
    if (part == GPV_PART_BATCHES)
        return rank_of(t->sort, &s->batches.row[i]);
    if (part == GPV_PART_FINDINGS)
        return rank_of_finding(&s->findings.row[i]);
    return 0;
}

/* The lists are short, and in order for most of the time. */
static void sort(const struct gpv_top_state *t, const struct gpv_snapshot *s, enum gpv_part part,
                 uint32_t *item, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint32_t moved = item[i];
        size_t at = i;
        for (; at > 0 && rank(t, s, part, item[at - 1]) < rank(t, s, part, moved); at--)
            item[at] = item[at - 1];
        item[at] = moved;
    }
}

/* ---- Folds ---- */

/* GPUs of which a row says the same. */
static bool are_alike(const struct gpv_now_gpu *a, const struct gpv_now_gpu *b)
{
    bool text = a->does == GPV_DOES_OUT || (a->does == GPV_DOES_KEPT && !a->kept_for);

    return a->does == b->does && !strcmp(a->class_name, b->class_name) &&
           GPV_BATCH_OF(a->kept_for) == GPV_BATCH_OF(b->kept_for) &&
           (!text || !strcmp(a->text, b->text));
}

/* Those that are out of use come first, since they are few, and rows may be cut. */
static void fold(const struct gpv_snapshot *s, const struct gpv_rows *all, struct gpv_rows *ret,
                 bool out)
{
    size_t used = ret->first[ret->n];

    for (size_t i = 0; i < all->n; i++) {
        const struct gpv_now_gpu *g = &s->gpus.row[all->item[i]];
        bool is_first = (g->does == GPV_DOES_OUT) == out;
        for (size_t k = 0; k < i && is_first; k++)
            is_first = !are_alike(g, &s->gpus.row[all->item[k]]);
        for (size_t k = i; k < all->n && is_first; k++)
            if (are_alike(g, &s->gpus.row[all->item[k]]))
                ret->item[used++] = all->item[k];
        if (is_first)
            ret->first[++ret->n] = (uint32_t)used;
    }
}

static int reserve(struct gpv_rows *r, size_t n)
{
    *r = (struct gpv_rows){ .item = calloc(n + 1, sizeof *r->item),
                            .first = calloc(n + 1, sizeof *r->first) };
    if (r->item && r->first)
        return 0;
    gpv_rows_free(r);
    return -1;
}

static int fold_all(const struct gpv_snapshot *s, struct gpv_rows *r)
{
    struct gpv_rows folded;

    if (reserve(&folded, r->n))
        return -1;
    fold(s, r, &folded, true);
    fold(s, r, &folded, false);
    gpv_rows_free(r);
    *r = folded;
    return 0;
}

/* ---- Rows ---- */

size_t gpv_rows_of(const struct gpv_snapshot *s, enum gpv_part part)
{
    const size_t n[] = { [GPV_PART_GPUS] = s->gpus.n,
                         [GPV_PART_BATCHES] = s->batches.n,
                         [GPV_PART_CLASSES] = s->classes.n,
                         [GPV_PART_FINDINGS] = s->findings.n,
                         [GPV_PART_ENDS] = s->ends.n };

    return n[part];
}

int gpv_rows_make(const struct gpv_top_state *t, const struct gpv_snapshot *s, enum gpv_part part,
                  bool folds, struct gpv_rows *ret)
{
    size_t all = gpv_rows_of(s, part);

    if (reserve(ret, all))
        return -1;
    for (size_t i = 0; i < all; i++)
        if (is_found(t, s, part, i))
            ret->item[ret->n++] = (uint32_t)i;
    for (size_t i = 0; i <= ret->n; i++)
        ret->first[i] = (uint32_t)i;
    sort(t, s, part, ret->item, ret->n);
    if (folds && fold_all(s, ret)) {
        gpv_rows_free(ret);
        return -1;
    }
    return 0;
}

void gpv_rows_free(struct gpv_rows *r)
{
    free(r->item);
    free(r->first);
    *r = (struct gpv_rows){ 0 };
}

/* ---- The chosen one ---- */

uint64_t gpv_row_key(const struct gpv_snapshot *s, enum gpv_part part, uint32_t item)
{
    const struct gpv_now_finding *f = &s->findings.row[item];

    switch (part) {
    case GPV_PART_BATCHES:
        return s->batches.row[item].id;
    case GPV_PART_FINDINGS: /* a finding that grows keeps its first time */
        return (uint64_t)f->first * 16 + f->kind + f->batch;
    case GPV_PART_ENDS:
        return s->ends.row[item].task;
    default:
        return (uint64_t)item + 1;
    }
}

size_t gpv_row_chosen(const struct gpv_top_state *t, const struct gpv_snapshot *s,
                      enum gpv_part part, const struct gpv_rows *r)
{
    for (size_t i = 0; i < r->n; i++)
        for (uint32_t k = r->first[i]; k < r->first[i + 1]; k++)
            if (gpv_row_key(s, part, r->item[k]) == t->row[part])
                return i;
    return 0;
}
