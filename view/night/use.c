/* SPDX-License-Identifier: MIT */
/* use.c - what the time of a GPU was used for: one pass over the rows, in the order of time. */
#include "view/night/use.h"

#include <string.h>

#define GPV_X_USE(name, word, text) word,
static const char *const use_words[] = { GPV_USE_MAP(GPV_X_USE) };
#undef GPV_X_USE
#define GPV_X_USE(name, word, text) text,
static const char *const use_texts[] = { GPV_USE_MAP(GPV_X_USE) };
#undef GPV_X_USE

const char *gpv_use_word(uint32_t use)
{
    return use < GPV_USES ? use_words[use] : "?";
}

const char *gpv_use_text(uint32_t use)
{
    return use < GPV_USES ? use_texts[use] : "?";
}

enum gpv_use gpv_use_of(const struct gpv_open *open, bool waits, bool known)
{
    if (open->work > 0)
        return GPV_USE_OK;
    if (open->in_vain > 0)
        return GPV_USE_LOST;
    if (open->loading > 0)
        return GPV_USE_LOADING;
    if (open->kept > 0)
        return GPV_USE_KEPT;
    if (open->out > 0)
        return GPV_USE_OUT;
    if (!known)
        return GPV_USE_UNKNOWN;
    return waits ? GPV_USE_LIMITED : GPV_USE_IDLE;
}

/* ---- The rows, as if they were one list ---- */

/* What a row says about a GPU; OTHER: nothing. */
enum fact { WORK, IN_VAIN, LOADING, KEPT, OUT, WAITS, KNOWN, FACTS, OTHER = FACTS };

struct row {
    enum fact fact;
    int64_t since, until; /* until 0: it goes on */
};

enum list { ATTEMPTS, TENANCIES, OUTS, REASONS, LIVES, LISTS };

static size_t length_of(const struct gpv_night *n, enum list list)
{
    const size_t length[LISTS] = { n->attempts.n, n->tenancies.n, n->outs.n, n->reasons.n,
                                   n->lives.n };
    return length[list];
}

static struct row attempt_row(const struct gpv_night *n, uint32_t gpu, size_t i)
{
    const struct gpv_attempt *a = &n->attempts.row[i];
    if (a->number == 0 || !gpv_set_has(gpv_set(n, a->set), gpu))
        return (struct row){ .fact = OTHER };
    return (struct row){ gpv_is_bad(a->outcome) ? IN_VAIN : WORK, a->started, a->ended };
}

static struct row tenancy_row(const struct gpv_night *n, uint32_t gpu, size_t i)
{
    const struct gpv_tenancy *t = &n->tenancies.row[i];
    enum fact fact = t->kind == GPV_TENANCY_KEPT ? KEPT : LOADING;
    return (struct row){ t->gpu == gpu ? fact : OTHER, t->since, t->until };
}

static struct row out_row(const struct gpv_night *n, uint32_t gpu, size_t i)
{
    const struct gpv_out *o = &n->outs.row[i];
    return (struct row){ o->gpu == gpu ? OUT : OTHER, o->since, o->until };
}

static struct row row_of(const struct gpv_night *n, enum list list, uint32_t gpu, size_t i)
{
    switch (list) {
    case ATTEMPTS:
        return attempt_row(n, gpu, i);
    case TENANCIES:
        return tenancy_row(n, gpu, i);
    case OUTS:
        return out_row(n, gpu, i);
    case REASONS:
        return (struct row){ WAITS, n->reasons.row[i].since, n->reasons.row[i].until };
    default:
        return (struct row){ n->lives.row[i].kind == GPV_LIFE_OPENED ? KNOWN : OTHER,
                             n->lives.row[i].since, n->lives.row[i].until };
    }
}

/* ---- The sweep ---- */

/*
 * Whether any row of a fact is open at a moment, not how many: since rows come in the order of
 * their begins, the latest end of those that have begun is enough.
 */
struct sweep {
    const struct gpv_night *n;
    uint32_t gpu;
    int64_t until[FACTS];
    size_t next[LISTS]; /* the first row that has not begun */
};

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Begins the rows of a list until `now`.  Returns when the next one begins. */
static int64_t begin(struct sweep *s, enum list list, int64_t now)
{
    for (size_t *i = &s->next[list]; *i < length_of(s->n, list); ++*i) {
        struct row row = row_of(s->n, list, s->gpu, *i);
        if (row.fact == OTHER)
            continue;
        if (row.since > now)
            return row.since;
        row.until = gpv_until(s->n, row.until);
        if (row.until > s->until[row.fact])
            s->until[row.fact] = row.until;
    }
    return INT64_MAX;
}

/* Returns until when nothing changes; `to` at most. */
static int64_t step(struct sweep *s, int64_t now, int64_t to)
{
    for (enum list list = 0; list < LISTS; list++)
        to = earlier(to, begin(s, list, now));
    for (enum fact fact = 0; fact < FACTS; fact++)
        if (s->until[fact] > now)
            to = earlier(to, s->until[fact]);
    return to;
}

static enum gpv_use use_at(const struct sweep *s, int64_t now)
{
    const int64_t *until = s->until;
    const struct gpv_open open = { .work = until[WORK] > now,
                                   .in_vain = until[IN_VAIN] > now,
                                   .loading = until[LOADING] > now,
                                   .kept = until[KEPT] > now,
                                   .out = until[OUT] > now };
    /* A night without any life is not of an agent that keeps them. */
    return gpv_use_of(&open, until[WAITS] > now, until[KNOWN] > now || !s->n->lived);
}

int gpv_use_each(const struct gpv_night *n, uint32_t gpu, int64_t from, int64_t to,
                 gpv_stretch_fn fn, void *user)
{
    struct sweep s = { .n = n, .gpu = gpu };
    struct gpv_stretch last = { .from = from, .to = from };
    for (int64_t now = from; now < to;) {
        int64_t next = step(&s, now, to);
        enum gpv_use use = use_at(&s, now);
        if (last.to > last.from && use != last.use) {
            int code = fn(&last, user);
            if (code != 0)
                return code;
            last.from = now;
        }
        last.use = use;
        last.to = now = next;
    }
    return last.to > last.from ? fn(&last, user) : 0;
}

/* ---- Sums ---- */

static int add_stretch(const struct gpv_stretch *s, void *user)
{
    struct gpv_uses *sum = user;
    sum->ns[s->use] += s->to - s->from;
    return 0;
}

int gpv_use_sum(const struct gpv_night *n, uint32_t gpu, int64_t from, int64_t to,
                struct gpv_uses *ret)
{
    *ret = (struct gpv_uses){ 0 };
    return gpv_use_each(n, gpu, from, to, add_stretch, ret);
}

int gpv_use_sum_all(const struct gpv_night *n, int64_t from, int64_t to, struct gpv_uses *ret)
{
    *ret = (struct gpv_uses){ 0 };
    int code = 0;
    for (uint32_t gpu = 0; code == 0 && gpu < n->gpus.n; gpu++)
        code = gpv_use_each(n, gpu, from, to, add_stretch, ret);
    return code;
}

/* ---- Bins ---- */

struct bins {
    int64_t from;
    uint64_t length;
    uint32_t n, at; /* the bin in which the stretch of before ended */
    struct gpv_uses *ret;
};

/* Begin of a bin.  No product exceeds 64 bits. */
static int64_t bin_begin(const struct bins *b, uint64_t bin)
{
    return b->from + (int64_t)(b->length / b->n * bin + b->length % b->n * bin / b->n);
}

static int add_to_bins(const struct gpv_stretch *s, void *user)
{
    struct bins *b = user;
    for (int64_t now = s->from; now < s->to;) {
        int64_t end = bin_begin(b, (uint64_t)b->at + 1), until = earlier(s->to, end);
        b->ret[b->at].ns[s->use] += until - now;
        b->at += until == end;
        now = until;
    }
    return 0;
}

int gpv_use_bins(const struct gpv_night *n, uint32_t gpu, int64_t from, int64_t to, uint32_t bins,
                 struct gpv_uses *ret)
{
    struct bins b = { .from = from, .length = (uint64_t)(to - from), .n = bins, .ret = ret };
    memset(ret, 0, bins * sizeof(*ret));
    return bins == 0 || to <= from ? 0 : gpv_use_each(n, gpu, from, to, add_to_bins, &b);
}
