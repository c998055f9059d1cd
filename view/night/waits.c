/* SPDX-License-Identifier: MIT */
/* waits.c - how many tasks of a batch waited, and why: one pass over the rows, by time. */
#include "view/night/waits.h"

#include <stdlib.h>
#include <string.h>

#define GPV_X_WHY(name, word, text) word,
static const char *const why_words[] = { GPV_WHY_MAP(GPV_X_WHY) };
#undef GPV_X_WHY
#define GPV_X_WHY(name, word, text) text,
static const char *const why_texts[] = { GPV_WHY_MAP(GPV_X_WHY) };
#undef GPV_X_WHY

const char *gpv_why_word(uint32_t why)
{
    return why < GPV_WHYS ? why_words[why] : "?";
}

const char *gpv_why_text(uint32_t why)
{
    return why < GPV_WHYS ? why_texts[why] : "?";
}

#define AT_ONCE "at once"

/* Names of enum gpud_reason_kind, and the agent's own words. */
static const struct {
    const char *word;
    enum gpv_why why;
    bool gathers; /* while GPUs are kept free for a wide task */
} words[] = {
    { "BUSY", GPV_WHY_BUSY, true },
    { "SHARE", GPV_WHY_BUSY, true },
    { "OCCUPIED", GPV_WHY_BUSY, true },
    { "MEMORY", GPV_WHY_BUSY, false },
    { "PASSED_OVER_BY", GPV_WHY_BUSY, false },
    { "HEAD_HOLDS", GPV_WHY_BUSY, false },
    { "MIN_RESIDENCE", GPV_WHY_BUSY, false },
    { "MAX_WAIT", GPV_WHY_BUSY, false },
    { "PINNED", GPV_WHY_BUSY, false },
    { "SEATS", GPV_WHY_LIMIT, false },
    { AT_ONCE, GPV_WHY_LIMIT, false },
    { "BOOTING", GPV_WHY_LOADING, false },
    { "UNLOADING", GPV_WHY_LOADING, false },
    { "DRAINED", GPV_WHY_OUT, false },
    { "FAULT", GPV_WHY_OUT, false },
    { "FOREIGN", GPV_WHY_OUT, false },
    { "PAUSED", GPV_WHY_PAUSED, false },
    { "paused", GPV_WHY_PAUSED, false },
    { "CPUS", GPV_WHY_OTHER, false },
    { "NEVER", GPV_WHY_OTHER, false },
    { "RETRY", GPV_WHY_OTHER, false },
    { "starts wait", GPV_WHY_OTHER, false },
    { "NONE", GPV_WHY_UNSEEN, false },
    { "", GPV_WHY_UNSEEN, false },
};

enum gpv_why gpv_why_of_word(const char *word, bool kept)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i].word, word) == 0)
            return kept && words[i].gathers ? GPV_WHY_GATHERING : words[i].why;
    return GPV_WHY_OTHER;
}

enum gpv_why gpv_why_of(const struct gpv_night *n, const struct gpv_wait *w)
{
    return gpv_why_of_word(gpv_text(n, w->word), w->kept);
}

/* ---- When tasks begin to wait ---- */

struct begin {
    int64_t at;
    uint32_t tasks, shape;
    uint32_t later; /* tasks that wait for their turn from then on */
    uint32_t turns; /* tasks whose turn comes, or which end before that */
};

struct shape {
    uint64_t tasks;  /* that wait */
    uint64_t later;  /* of a batch with at_once: tasks whose turn has not come yet */
    bool counts;     /* these wait for it */
    uint32_t reason; /* of those that have begun the one that ends last, or GPV_NONE */
};

struct sweep {
    const struct gpv_night *n;
    const struct gpv_batch *batch;
    GPV_LIST(struct begin) begins;
    struct shape *shape; /* and one for tasks of no known shape */
    size_t next_begin, next_start, next_reason, next_tenancy;
    uint64_t tasks;
    uint64_t turn;   /* further ones, that wait for their turn */
    uint32_t reason; /* the one that counts */
    bool look;       /* it may be another one */
    int64_t look_at, kept_until;
};

static bool is_of(const struct sweep *s, const struct gpv_attempt *a)
{
    return GPV_BATCH_OF(a->task) == s->batch->id;
}

/* A task without an attempt has waited until its end, which counts as its start. */
static bool has_waited(const struct gpv_attempt *a)
{
    return a->ready != 0 && a->ready < a->started;
}

static int add_begin(struct sweep *s, struct begin c)
{
    struct begin *last = s->begins.n > 0 ? &s->begins.row[s->begins.n - 1] : NULL;
    if (last && last->at == c.at && last->shape == c.shape) {
        last->tasks += c.tasks;
        last->later += c.later;
        last->turns += c.turns;
        return 0;
    }
    if (!gpv_grow(&s->begins.row, s->begins.n, &s->begins.room, sizeof(*s->begins.row)))
        return -1;
    s->begins.row[s->begins.n++] = c;
    return 0;
}

static struct shape *shape_at(struct sweep *s, uint32_t shape)
{
    return &s->shape[shape < s->n->shapes.n ? shape : s->n->shapes.n];
}

static int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The first attempt of a task follows its turn.  One that was cancelled may never have had it. */
static int add_turn(struct sweep *s, const struct gpv_attempt *a)
{
    int64_t at = a->number == 1 ? a->ready : a->number == 0 && a->ready == 0 ? a->ended : 0;
    if (!s->batch->at_once || at == 0)
        return 0;
    shape_at(s, a->shape)->later++; /* for add_later */
    return add_begin(
        s, (struct begin){ .at = later_of(at, s->batch->made), .shape = a->shape, .turns = 1 });
}

/* From when they wait for their turn: since their batch was made.  Those at the end of the night
 * that have a row are of a later round: since the last end of the batch. */
static int add_later(struct sweep *s, uint32_t still)
{
    const struct gpv_batch *b = s->batch;
    uint64_t known = (uint64_t)b->joined + still, fresh;
    int64_t ended = b->made;
    int code = 0;
    for (size_t i = 0; i < s->n->attempts.n; i++)
        if (is_of(s, &s->n->attempts.row[i])) {
            known += s->n->attempts.row[i].last;
            ended = later_of(ended, s->n->attempts.row[i].ended);
        }
    fresh = b->total > known ? b->total - known : 0;
    fresh = fresh < b->turn ? fresh : b->turn;
    shape_at(s, b->shape)->later += fresh;
    for (uint32_t i = 0; code == 0 && i <= s->n->shapes.n; i++) {
        const struct begin c = { .at = b->made, .shape = i, .later = (uint32_t)s->shape[i].later };
        code = c.later != 0 ? add_begin(s, c) : 0;
        s->shape[i].later = 0;
    }
    const struct begin c = { .at = ended, .shape = b->shape, .later = b->turn - (uint32_t)fresh };
    return code == 0 && c.later != 0 ? add_begin(s, c) : code;
}

/* `still`: tasks that wait at the end, and are not accounted for. */
static int add_attempt(struct sweep *s, const struct gpv_attempt *a, uint32_t *still)
{
    int code = add_turn(s, a);
    if (code == 0 && has_waited(a))
        code = add_begin(s, (struct begin){ .at = a->ready, .tasks = 1, .shape = a->shape });
    if (code < 0 || !a->last || a->outcome != GPV_RETURNED || *still == 0)
        return code;
    --*still;
    return add_begin(s, (struct begin){ .at = a->ended, .tasks = 1, .shape = a->shape });
}

static int by_time(const void *a, const void *b)
{
    const struct begin *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static int add_begins(struct sweep *s)
{
    uint32_t still = s->batch->ready;
    int code = 0;
    for (size_t i = 0; code == 0 && i < s->n->attempts.n; i++)
        if (is_of(s, &s->n->attempts.row[i]))
            code = add_attempt(s, &s->n->attempts.row[i], &still);
    if (code == 0 && still > 0)
        code = add_begin(
            s, (struct begin){ .at = s->batch->made, .tasks = still, .shape = s->batch->shape });
    if (code == 0 && s->batch->at_once)
        code = add_later(s, still);
    if (code == 0)
        gpv_sort(s->begins.row, s->begins.n, sizeof(s->begins.row[0]), by_time);
    return code;
}

static int begin_sweep(struct sweep *s)
{
    size_t shapes = s->n->shapes.n + 1;
    s->shape = malloc(shapes * sizeof(s->shape[0]));
    for (size_t i = 0; s->shape && i < shapes; i++)
        s->shape[i] = (struct shape){ .reason = GPV_NONE };
    return s->shape ? add_begins(s) : -1;
}

static void end_sweep(struct sweep *s)
{
    free(s->begins.row);
    free(s->shape);
}

/* ---- What changes at a time.  Each returns when the next change is. ---- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void count(struct sweep *s, uint32_t shape, uint64_t come, uint64_t leave)
{
    uint64_t *tasks = &shape_at(s, shape)->tasks, before = *tasks;
    *tasks += come - leave;
    s->tasks += come - leave;
    s->look = s->look || before == 0 || *tasks == 0;
}

static void count_turns(struct sweep *s, uint32_t shape, uint64_t come, uint64_t leave)
{
    struct shape *h = shape_at(s, shape);
    uint64_t before = h->later;
    h->later += come - leave;
    s->turn += h->counts ? come - leave : 0;
    s->look = s->look || before == 0 || h->later == 0;
}

static int64_t apply_begins(struct sweep *s, int64_t now)
{
    for (; s->next_begin < s->begins.n; s->next_begin++) {
        const struct begin *b = &s->begins.row[s->next_begin];
        if (b->at > now)
            return b->at;
        if (b->tasks != 0)
            count(s, b->shape, b->tasks, 0);
        if (b->later + b->turns != 0)
            count_turns(s, b->shape, b->later, b->turns);
    }
    return INT64_MAX;
}

/* The rows are in the order of their starts, so no list of them is made. */
static int64_t apply_starts(struct sweep *s, int64_t now)
{
    for (; s->next_start < s->n->attempts.n; s->next_start++) {
        const struct gpv_attempt *a = &s->n->attempts.row[s->next_start];
        if (!is_of(s, a) || !has_waited(a))
            continue;
        if (a->started > now)
            return a->started;
        count(s, a->shape, 0, 1);
    }
    return INT64_MAX;
}

/* Rows of a shape overlap only where the clock was set back. */
static bool lasts_longer(const struct sweep *s, const struct gpv_reason *r, uint32_t other)
{
    return other == GPV_NONE ||
           gpv_until(s->n, r->until) >= gpv_until(s->n, s->n->reasons.row[other].until);
}

static int64_t apply_reasons(struct sweep *s, int64_t now)
{
    for (; s->next_reason < s->n->reasons.n; s->next_reason++) {
        const struct gpv_reason *r = &s->n->reasons.row[s->next_reason];
        if (r->since > now)
            return r->since;
        if (r->shape < s->n->shapes.n && lasts_longer(s, r, s->shape[r->shape].reason)) {
            s->shape[r->shape].reason = (uint32_t)s->next_reason;
            s->look = true;
        }
    }
    return INT64_MAX;
}

static int64_t apply_kept(struct sweep *s, int64_t now)
{
    int64_t next = INT64_MAX;
    for (; s->next_tenancy < s->n->tenancies.n; s->next_tenancy++) {
        const struct gpv_tenancy *t = &s->n->tenancies.row[s->next_tenancy];
        if (t->kind != GPV_TENANCY_KEPT)
            continue;
        if (t->since > now) {
            next = t->since;
            break;
        }
        if (gpv_until(s->n, t->until) > s->kept_until)
            s->kept_until = gpv_until(s->n, t->until);
    }
    return s->kept_until > now ? earlier(next, s->kept_until) : next;
}

static bool comes_first(const struct sweep *s, uint32_t reason, uint32_t other)
{
    if (other == GPV_NONE)
        return true;
    uint64_t a = s->n->reasons.row[reason].task, b = s->n->reasons.row[other].task;
    bool a_own = GPV_BATCH_OF(a) == s->batch->id, b_own = GPV_BATCH_OF(b) == s->batch->id;
    return a_own != b_own ? a_own : a < b;
}

static void choose_reason(struct sweep *s, int64_t now)
{
    s->reason = GPV_NONE;
    s->look_at = INT64_MAX;
    s->look = false;
    s->turn = 0;
    for (uint32_t i = 0; i < s->n->shapes.n; i++) {
        struct shape *h = &s->shape[i];
        int64_t until =
            h->reason != GPV_NONE ? gpv_until(s->n, s->n->reasons.row[h->reason].until) : now;
        h->counts = h->later > 0 && until > now &&
                    strcmp(gpv_text(s->n, s->n->reasons.row[h->reason].word), AT_ONCE) == 0;
        s->turn += h->counts ? h->later : 0;
        if (until <= now || (h->tasks == 0 && !h->counts))
            continue;
        s->look_at = earlier(s->look_at, until);
        if (comes_first(s, h->reason, s->reason))
            s->reason = h->reason;
    }
}

/* Returns until when nothing changes; the end of the span at most. */
static int64_t step(struct sweep *s, int64_t now)
{
    int64_t next = earlier(s->n->to, apply_begins(s, now));
    next = earlier(next, apply_starts(s, now));
    next = earlier(next, apply_reasons(s, now));
    next = earlier(next, apply_kept(s, now));
    if (s->look || s->look_at <= now)
        choose_reason(s, now);
    return earlier(next, s->look_at);
}

/* ---- Stretches ---- */

static struct gpv_wait wait_at(const struct sweep *s, int64_t now, int64_t next)
{
    struct gpv_wait w = {
        .from = now, .to = next, .tasks = s->tasks + s->turn, .reason = s->reason
    };
    if (s->reason != GPV_NONE) {
        const struct gpv_reason *r = &s->n->reasons.row[s->reason];
        w.word = r->word;
        w.kept = s->kept_until > now && s->n->shapes.row[r->shape].gpus >= 2;
    }
    return w;
}

static int each_wait(struct sweep *s, gpv_wait_fn fn, void *user)
{
    struct gpv_wait last = { 0 };
    int code = 0;
    for (int64_t now = s->n->from; code == 0 && now < s->n->to;) {
        int64_t next = step(s, now);
        struct gpv_wait w = wait_at(s, now, next);
        if (w.tasks == last.tasks && w.reason == last.reason && w.kept == last.kept) {
            last.to = next;
        } else {
            code = last.tasks > 0 ? fn(&last, user) : 0;
            last = w;
        }
        now = next;
    }
    return code == 0 && last.tasks > 0 ? fn(&last, user) : code;
}

int gpv_wait_each(const struct gpv_night *n, uint32_t batch, gpv_wait_fn fn, void *user)
{
    struct sweep s = { .n = n, .batch = &n->batches.row[batch], .look = true };
    int code = begin_sweep(&s);
    if (code == 0)
        code = each_wait(&s, fn, user);
    end_sweep(&s);
    return code;
}

/* ---- Sums ---- */

struct sum {
    const struct gpv_night *n;
    double *of;
    double *row[2]; /* of each row of a reason; the second one: while a GPU is kept free */
};

static int add_wait(const struct gpv_wait *w, void *user)
{
    struct sum *sum = user;
    double time = (double)(w->to - w->from) * (double)w->tasks;
    sum->of[gpv_why_of(sum->n, w)] += time;
    if (sum->row[0] && w->reason != GPV_NONE)
        sum->row[w->kept][w->reason] += time;
    return 0;
}

struct text_time {
    uint32_t why, text;
    double time;
};

static int by_text(const void *left, const void *right)
{
    const struct text_time *a = left, *b = right;
    return a->why != b->why ? (a->why > b->why) - (a->why < b->why)
                            : (a->text > b->text) - (a->text < b->text);
}

/* Rows with one text count together. */
static void choose_texts(struct text_time *t, size_t n, uint32_t ret[GPV_WHYS])
{
    double most[GPV_WHYS] = { 0 }, time = 0;
    gpv_sort(t, n, sizeof(*t), by_text);
    for (size_t i = 0; i < n; i++) {
        bool begins = i == 0 || by_text(&t[i - 1], &t[i]) != 0;
        time = begins ? t[i].time : time + t[i].time;
        if (time > most[t[i].why]) {
            most[t[i].why] = time;
            ret[t[i].why] = t[i].text;
        }
    }
}

static int find_texts(const struct sum *sum, uint32_t ret[GPV_WHYS])
{
    const struct gpv_night *n = sum->n;
    struct text_time *t = malloc((2 * n->reasons.n + 1) * sizeof(*t));
    size_t used = 0;
    for (size_t i = 0; t && i < n->reasons.n; i++)
        for (int kept = 0; kept < 2; kept++)
            if (sum->row[kept][i] > 0)
                t[used++] =
                    (struct text_time){ gpv_why_of_word(gpv_text(n, n->reasons.row[i].word), kept),
                                        n->reasons.row[i].text, sum->row[kept][i] };
    if (t)
        choose_texts(t, used, ret);
    free(t);
    return t ? 0 : -1;
}

int gpv_wait_sum(const struct gpv_night *n, uint32_t batch, double ret[GPV_WHYS],
                 uint32_t ret_text[GPV_WHYS])
{
    struct sum sum = { n, ret, { NULL, NULL } };
    double *row = ret_text ? calloc(2 * n->reasons.n + 1, sizeof(*row)) : NULL;
    memset(ret, 0, GPV_WHYS * sizeof(ret[0]));
    if (ret_text && !row)
        return -1;
    if (row) {
        memset(ret_text, 0, GPV_WHYS * sizeof(ret_text[0]));
        sum.row[0] = row;
        sum.row[1] = row + n->reasons.n;
    }
    int code = gpv_wait_each(n, batch, add_wait, &sum);
    if (code == 0 && row)
        code = find_texts(&sum, ret_text);
    free(row);
    return code;
}

/* What is left after rounding down goes to those that lost the most of it. */
void gpv_wait_percents(const double sum[GPV_WHYS], unsigned ret[GPV_WHYS])
{
    double all = 0, lost[GPV_WHYS];
    unsigned left = 100;
    for (unsigned i = 0; i < GPV_WHYS; i++)
        all += sum[i];
    for (unsigned i = 0; i < GPV_WHYS; i++) {
        double part = all > 0 ? sum[i] / all * 100 : 0;
        ret[i] = (unsigned)part < left ? (unsigned)part : left;
        left -= ret[i];
        lost[i] = part - ret[i];
    }
    for (; all > 0 && left > 0; left--) {
        unsigned most = 0;
        for (unsigned i = 1; i < GPV_WHYS; i++)
            most = lost[i] > lost[most] ? i : most;
        ret[most]++;
        lost[most] = -1;
    }
}

const char *gpv_reason_detail(const char *text)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t size = strlen(words[i].word);
        if (size > 0 && strncmp(text, words[i].word, size) == 0 && strchr(",: ", text[size]))
            return text + size + strspn(text + size, ",: ");
    }
    return text;
}
