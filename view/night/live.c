/* SPDX-License-Identifier: MIT */
/*
 * live.c - the uses of GPUs while they happen.
 *
 * Reports are applied in the order of their times; the last few of a GPU wait in a list, so that
 * one that comes late still finds its place.  Who asks gets those of the list applied to a copy.
 *
 * Work that may turn out to be in vain.  Let the attempts that run be sorted by their starts.  The
 * ones that have worked at a time are then the first few of them: from the start of one to that of
 * the next one, this one and all before it.  So each attempt has `pending`: the time of this part
 * that no attempt covers which has ended ok.  If an attempt ends ok, its part and all behind it are
 * certain.  If it ends badly, its part goes to the attempt before it; without one it is lost.
 */
#include "view/night/live.h"

#include <stdlib.h>
#include <string.h>

#define MINUTE (INT64_C(60) * 1000000000)

/* Facts that are counted, then what happens to attempts. */
enum kind { LOADING, KEPT, OUT, WAITS, KNOWN, FACTS, START = FACTS, END_OK, END_BAD };

enum { LATE = 16 };

struct report {
    int64_t time;
    uint64_t task;
    enum kind kind;
    int change;
};

/* An attempt that runs. */
struct work {
    uint64_t task;
    int64_t pending;
};

/* A ring of minutes: that of time t has the index t / MINUTE % GPV_MINUTES. */
typedef int64_t minutes[GPV_MINUTES];

struct gpu {
    int64_t at; /* charged up to here */
    int64_t open[FACTS];
    struct work *work; /* in the order of the starts */
    minutes *pending;  /* of each of them, of the minutes of the ring */
    size_t n, room;
    struct gpv_uses total;
    struct gpv_uses *ring; /* NULL: of a copy that has only totals */
    struct report late[LATE];
    size_t n_late;
};

struct gpv_live {
    struct gpu *gpu;
    uint32_t n;
    int64_t since;
    bool waits;
    struct gpu copy; /* its lists have room for those of each GPU */
};

/* ---- Time ---- */

static size_t slot_of(int64_t time)
{
    return (size_t)(time / MINUTE % GPV_MINUTES);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static enum gpv_use use_of(const struct gpu *g)
{
    const struct gpv_open open = { .work = g->n > 0,
                                   .loading = g->open[LOADING] > 0,
                                   .kept = g->open[KEPT] > 0,
                                   .out = g->open[OUT] > 0 };
    return gpv_use_of(&open, g->open[WAITS] > 0, g->open[KNOWN] > 0);
}

static void clear_minute(struct gpu *g, size_t slot)
{
    g->ring[slot] = (struct gpv_uses){ 0 };
    for (size_t i = 0; i < g->n; i++)
        g->pending[i][slot] = 0;
}

/* A minute is cleared when its first ns is charged. */
static void charge_ring(struct gpu *g, enum gpv_use use, int64_t now)
{
    int64_t first = (now / MINUTE - GPV_MINUTES + 1) * MINUTE; /* the ring has no minute before */
    for (int64_t time = later(g->at, first); time < now;) {
        size_t slot = slot_of(time);
        int64_t until = time + earlier(now - time, MINUTE - time % MINUTE);
        if (time % MINUTE == 0)
            clear_minute(g, slot);
        g->ring[slot].ns[use] += until - time;
        if (g->n > 0)
            g->pending[g->n - 1][slot] += until - time;
        time = until;
    }
}

static void charge(struct gpu *g, int64_t now)
{
    if (now <= g->at)
        return;
    enum gpv_use use = use_of(g);
    g->total.ns[use] += now - g->at;
    if (g->n > 0)
        g->work[g->n - 1].pending += now - g->at;
    if (g->ring)
        charge_ring(g, use, now);
    g->at = now;
}

/* ---- Attempts ---- */

static void start(struct gpu *g, uint64_t task)
{
    g->work[g->n] = (struct work){ .task = task };
    if (g->ring)
        memset(g->pending[g->n], 0, sizeof(g->pending[0]));
    g->n++;
}

static void make_certain(struct gpu *g, size_t first)
{
    for (size_t i = first; i < g->n; i++) {
        g->work[i].pending = 0;
        if (g->ring)
            memset(g->pending[i], 0, sizeof(g->pending[0]));
    }
}

static void lose(struct gpu *g)
{
    g->total.ns[GPV_USE_OK] -= g->work[0].pending;
    g->total.ns[GPV_USE_LOST] += g->work[0].pending;
    for (size_t slot = 0; g->ring && slot < GPV_MINUTES; slot++) {
        g->ring[slot].ns[GPV_USE_OK] -= g->pending[0][slot];
        g->ring[slot].ns[GPV_USE_LOST] += g->pending[0][slot];
    }
}

static void join_before(struct gpu *g, size_t i)
{
    g->work[i - 1].pending += g->work[i].pending;
    for (size_t slot = 0; g->ring && slot < GPV_MINUTES; slot++)
        g->pending[i - 1][slot] += g->pending[i][slot];
}

static void end(struct gpu *g, uint64_t task, bool ok)
{
    size_t i = 0;
    while (i < g->n && g->work[i].task != task)
        i++;
    if (i == g->n)
        return;
    if (ok)
        make_certain(g, i);
    else if (i == 0)
        lose(g);
    else
        join_before(g, i);
    g->n--;
    memmove(g->work + i, g->work + i + 1, (g->n - i) * sizeof(g->work[0]));
    if (g->ring)
        memmove(g->pending + i, g->pending + i + 1, (g->n - i) * sizeof(g->pending[0]));
}

/* ---- Reports ---- */

static void apply(struct gpu *g, const struct report *r)
{
    charge(g, r->time);
    if (r->kind < FACTS)
        g->open[r->kind] += r->change;
    else if (r->kind == START)
        start(g, r->task);
    else
        end(g, r->task, r->kind == END_OK);
}

/* Of one thing: these stay in the order in which they came, as a clock that was set back might
 * end a thing before its begin. */
static bool same(const struct report *a, const struct report *b)
{
    return a->kind < FACTS ? a->kind == b->kind : b->kind >= FACTS && a->task == b->task;
}

static void put(struct gpu *g, struct report r)
{
    if (g->n_late == LATE) {
        apply(g, &g->late[0]);
        memmove(g->late, g->late + 1, --g->n_late * sizeof(r));
    }
    size_t i = g->n_late++;
    for (; i > 0 && g->late[i - 1].time > r.time && !same(&g->late[i - 1], &r); i--)
        g->late[i] = g->late[i - 1];
    if (i > 0)
        r.time = later(r.time, g->late[i - 1].time);
    g->late[i] = r;
}

static void report(struct gpv_live *l, uint32_t gpu, struct report r)
{
    if (gpu < l->n)
        put(&l->gpu[gpu], r);
}

void gpv_live_loading(struct gpv_live *l, uint32_t gpu, int change, int64_t now)
{
    report(l, gpu, (struct report){ .time = now, .kind = LOADING, .change = change });
}

void gpv_live_kept(struct gpv_live *l, uint32_t gpu, int change, int64_t now)
{
    report(l, gpu, (struct report){ .time = now, .kind = KEPT, .change = change });
}

void gpv_live_out(struct gpv_live *l, uint32_t gpu, int change, int64_t now)
{
    report(l, gpu, (struct report){ .time = now, .kind = OUT, .change = change });
}

void gpv_live_waits(struct gpv_live *l, bool waits, int64_t now)
{
    if (waits == l->waits)
        return;
    l->waits = waits;
    for (uint32_t i = 0; i < l->n; i++)
        report(l, i, (struct report){ .time = now, .kind = WAITS, .change = waits ? 1 : -1 });
}

/* Room for one more attempt than those that run, or whose starts wait in the list. */
static int grow_works(struct gpu *g, size_t need)
{
    if (need <= g->room)
        return 0;
    size_t room = need + need / 2 + 1;
    void *work = realloc(g->work, room * sizeof(*g->work));
    if (!work)
        return -1;
    g->work = work;
    void *pending = realloc(g->pending, room * sizeof(*g->pending));
    if (!pending)
        return -1;
    g->pending = pending;
    g->room = room;
    return 0;
}

int gpv_live_start(struct gpv_live *l, uint32_t gpu, uint64_t task, int64_t start)
{
    if (gpu >= l->n)
        return 0;
    struct gpu *g = &l->gpu[gpu];
    size_t need = g->n + 1;
    for (size_t i = 0; i < g->n_late; i++)
        need += g->late[i].kind == START;
    if (grow_works(g, need) < 0 || grow_works(&l->copy, need) < 0)
        return -1;
    put(g, (struct report){ .time = start, .task = task, .kind = START });
    return 0;
}

void gpv_live_end(struct gpv_live *l, uint32_t gpu, uint64_t task, int64_t end, bool ok)
{
    report(l, gpu, (struct report){ .time = end, .task = task, .kind = ok ? END_OK : END_BAD });
}

/* ---- GPUs ---- */

static void free_gpu(struct gpu *g)
{
    free(g->work);
    free(g->pending);
    free(g->ring);
}

/* A GPU that nobody knows before `at`. */
static void reset(struct gpu *g, int64_t at)
{
    *g = (struct gpu){
        .at = at, .work = g->work, .pending = g->pending, .room = g->room, .ring = g->ring
    };
    memset(g->ring, 0, GPV_MINUTES * sizeof(*g->ring));
    for (size_t slot = 0; slot < GPV_MINUTES; slot++)
        g->ring[slot].ns[GPV_USE_UNKNOWN] = slot == slot_of(at) ? at % MINUTE : MINUTE;
}

static bool new_ring(struct gpu *g)
{
    *g = (struct gpu){ .ring = calloc(GPV_MINUTES, sizeof(*g->ring)) };
    return g->ring;
}

int gpv_live_grow(struct gpv_live *l, uint32_t gpus, int64_t now)
{
    struct gpu *gpu = realloc(l->gpu, ((size_t)l->n + gpus + 1) * sizeof(*gpu));
    uint32_t made = 0;
    if (!gpu)
        return -1;
    l->gpu = gpu;
    while (made < gpus && new_ring(&gpu[l->n + made]))
        made++;
    if (made < gpus) {
        while (made > 0)
            free_gpu(&gpu[l->n + --made]);
        return -1;
    }
    for (; made > 0; made--) {
        struct gpu *g = &gpu[l->n++];
        reset(g, l->since);
        charge(g, now);
        g->open[KNOWN] = 1;
        g->open[WAITS] = l->waits;
    }
    return 0;
}

struct gpv_live *gpv_live_new(uint32_t gpus, int64_t now)
{
    struct gpv_live *l = calloc(1, sizeof(*l));
    if (!l)
        return NULL;
    l->since = later(now, 0);
    if (new_ring(&l->copy) && gpv_live_grow(l, gpus, now) == 0)
        return l;
    gpv_live_free(l);
    return NULL;
}

void gpv_live_free(struct gpv_live *l)
{
    if (!l)
        return;
    for (uint32_t i = 0; i < l->n; i++)
        free_gpu(&l->gpu[i]);
    free_gpu(&l->copy);
    free(l->gpu);
    free(l);
}

/* ---- Filling from records ---- */

typedef GPV_LIST(struct report) reports;

static int add_report(reports *list, struct report r)
{
    if (list->n == list->room) {
        size_t room = list->room != 0 ? 2 * list->room : 64;
        struct report *row = realloc(list->row, room * sizeof(*row));
        if (!row)
            return -1;
        list->row = row;
        list->room = room;
    }
    list->row[list->n++] = r;
    return 0;
}

/* What a row has to say.  until 0: it goes on. */
static int add_row(reports *list, const struct gpv_night *n, struct report begin, int64_t until,
                   enum kind end)
{
    struct report r = begin;
    if (begin.time > n->to)
        return 0;
    r.change = 1;
    if (add_report(list, r) < 0)
        return -1;
    r.time = earlier(until, n->to);
    r.kind = end;
    r.change = -1;
    return until != 0 ? add_report(list, r) : 0;
}

static int add_attempts(reports *list, const struct gpv_night *n, uint32_t gpu)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < n->attempts.n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[i];
        if (a->number != 0 && gpv_set_has(gpv_set(n, a->set), gpu))
            code = add_row(list, n,
                           (struct report){ .time = a->started, .task = a->task, .kind = START },
                           a->ended, gpv_is_bad(a->outcome) ? END_BAD : END_OK);
    }
    return code;
}

#define ADD_ROWS(list, rows, condition, fact)                                                \
    for (size_t i = 0; i < (rows).n; i++)                                                    \
        if ((condition) &&                                                                   \
            add_row(list, n, (struct report){ .time = (rows).row[i].since, .kind = (fact) }, \
                    (rows).row[i].until, fact) < 0)                                          \
            return -1;

static int add_rows(reports *list, const struct gpv_night *n, uint32_t gpu)
{
    ADD_ROWS(list, n->tenancies, n->tenancies.row[i].gpu == gpu,
             n->tenancies.row[i].kind == GPV_TENANCY_KEPT ? KEPT : LOADING)
    ADD_ROWS(list, n->outs, n->outs.row[i].gpu == gpu, OUT)
    ADD_ROWS(list, n->reasons, true, WAITS)
    ADD_ROWS(list, n->lives, n->lives.row[i].kind == GPV_LIFE_OPENED, KNOWN)
    return add_attempts(list, n, gpu);
}

/* At one time, what begins comes first: a row may have no length. */
static int by_time(const void *left, const void *right)
{
    const struct report *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return b->change - a->change;
}

static int fill_gpu(struct gpv_live *l, const struct gpv_night *n, uint32_t gpu, reports *list)
{
    struct gpu *g = &l->gpu[gpu];
    list->n = 0;
    if (gpu < n->gpus.n && add_rows(list, n, gpu) < 0)
        return -1;
    if (list->n > 1)
        qsort(list->row, list->n, sizeof(list->row[0]), by_time);
    reset(g, n->from);
    g->open[KNOWN] = !n->lived && gpu < n->gpus.n;
    for (size_t i = 0; i < list->n; i++) {
        if (grow_works(g, g->n + 1) < 0 || grow_works(&l->copy, g->n + 1) < 0)
            return -1;
        apply(g, &list->row[i]);
    }
    charge(g, n->to);
    g->open[KNOWN] = 1; /* the agent that asks runs */
    g->open[WAITS] = g->open[WAITS] > 0;
    return 0;
}

int gpv_live_fill(struct gpv_live *l, const struct gpv_night *n)
{
    reports list = { 0 };
    int code = 0;
    for (uint32_t i = 0; code == 0 && i < l->n; i++)
        code = fill_gpu(l, n, i, &list);
    free(list.row);
    if (l->n > 0)
        l->waits = l->gpu[0].open[WAITS] > 0;
    l->since = n->from;
    return code;
}

void gpv_live_restart(struct gpv_live *l, int64_t now)
{
    for (uint32_t i = 0; i < l->n; i++) {
        struct gpu *g = &l->gpu[i];
        for (; g->n_late > 0; g->n_late--) {
            apply(g, &g->late[0]);
            memmove(g->late, g->late + 1, (g->n_late - 1) * sizeof(g->late[0]));
        }
        charge(g, now);
        g->total = (struct gpv_uses){ 0 };
        for (size_t k = 0; k < g->n; k++)
            g->work[k].pending = 0;
    }
    l->since = now;
}

/* ---- Asking ---- */

/* A copy of a GPU to which the late reports are applied; with the ring if `ring`. */
static struct gpu copy_of(const struct gpv_live *l, uint32_t gpu, int64_t now, bool ring)
{
    const struct gpu *g = &l->gpu[gpu];
    struct gpu copy = *g;
    copy.work = l->copy.work;
    copy.pending = l->copy.pending;
    copy.ring = ring ? l->copy.ring : NULL;
    if (g->n > 0)
        memcpy(copy.work, g->work, g->n * sizeof(*g->work));
    if (g->n > 0 && ring)
        memcpy(copy.pending, g->pending, g->n * sizeof(*g->pending));
    if (ring)
        memcpy(copy.ring, g->ring, GPV_MINUTES * sizeof(*g->ring));
    for (size_t i = 0; i < g->n_late; i++)
        apply(&copy, &g->late[i]);
    charge(&copy, now);
    return copy;
}

void gpv_live_totals(struct gpv_live *l, uint32_t gpu, int64_t now, struct gpv_uses *ret)
{
    *ret = copy_of(l, gpu, now, false).total;
}

void gpv_live_ring(struct gpv_live *l, uint32_t gpu, int64_t now, struct gpv_uses ret[GPV_MINUTES])
{
    struct gpu copy = copy_of(l, gpu, now, true);
    if (copy.at % MINUTE == 0) /* nothing of this minute is charged */
        clear_minute(&copy, slot_of(copy.at));
    for (size_t i = 0; i < GPV_MINUTES; i++)
        ret[i] = copy.ring[(slot_of(copy.at) + 1 + i) % GPV_MINUTES];
}

int64_t gpv_live_since(const struct gpv_live *l)
{
    return l->since;
}
