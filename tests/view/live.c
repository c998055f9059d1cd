/* SPDX-License-Identifier: MIT */
/*
 * live.c - the uses of GPUs while they happen are those of the records. [V3]
 *
 * A night is a script (rows.h), or drawn; its rows become reports in the order of time, and after
 * each of them the totals and the ring must be what use.h finds in the records of that time.
 */
#include "view/night/live.h"

#include <stdlib.h>
#include <string.h>

#include "../queue/failing.h"
#include "harness.h"
#include "queue/draw.h"
#include "rows.h"
#include "view/night/part.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)

/* ---- What is wanted ---- */

static void same(const struct gpv_uses *a, const struct gpv_uses *b)
{
    for (uint32_t use = 0; use < GPV_USES; use++)
        T_EQ(a->ns[use], b->ns[use]);
}

/* The same from records: the time before them is unknown. */
static void wanted_ring(const struct gpv_night *n, uint32_t gpu, int64_t now,
                        struct gpv_uses ret[GPV_MINUTES])
{
    for (int i = 0; i < GPV_MINUTES; i++) {
        int64_t from = (now / MINUTE - GPV_MINUTES + 1 + i) * MINUTE;
        int64_t to = from + MINUTE < now ? from + MINUTE : now, begin = from;
        begin = begin < n->from ? n->from : begin;
        begin = begin > to ? to : begin;
        T_EQ(gpv_use_sum(n, gpu, begin, to, &ret[i]), 0);
        ret[i].ns[GPV_USE_UNKNOWN] += begin - from;
    }
}

static void check(struct gpv_live *l, const struct gpv_night *n, int64_t now, bool rings)
{
    static struct gpv_uses ring[GPV_MINUTES], wanted[GPV_MINUTES];
    struct gpv_uses sum, total;
    for (uint32_t gpu = 0; gpu < n->gpus.n; gpu++) {
        T_EQ(gpv_use_sum(n, gpu, n->from, now, &sum), 0);
        gpv_live_totals(l, gpu, now, &total);
        same(&total, &sum);
        if (!rings)
            continue;
        gpv_live_ring(l, gpu, now, ring);
        wanted_ring(n, gpu, now, wanted);
        for (int i = 0; i < GPV_MINUTES; i++)
            same(&ring[i], &wanted[i]);
    }
}

/* ---- A night as reports ---- */

struct report {
    int64_t time, heard; /* heard: when it is reported */
    uint64_t task;
    uint32_t gpu;
    int change, order;
    enum { LOADING, KEPT, OUT, WAITS, WORK } kind;
    bool ok;
};

struct reports {
    struct report row[2048];
    size_t n;
};

static void add(struct reports *all, struct report r, int64_t until)
{
    T_CMP(all->n + 2, <, T_LENGTH(all->row));
    r.order = (int)all->n;
    r.change = 1;
    r.heard = r.time;
    all->row[all->n++] = r;
    r.order++;
    r.change = -1;
    r.time = r.heard = until;
    if (until != 0)
        all->row[all->n++] = r;
}

static int by_heard(const void *left, const void *right)
{
    const struct report *a = left, *b = right;
    if (a->heard != b->heard)
        return a->heard < b->heard ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static void sort(struct reports *all)
{
    if (all->n > 0)
        qsort(all->row, all->n, sizeof(all->row[0]), by_heard);
}

static void list_reports(const struct gpv_night *n, struct reports *ret)
{
    ret->n = 0;
    for (size_t i = 0; i < n->attempts.n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[i];
        for (uint32_t g = 0; a->number != 0 && g < gpv_set(n, a->set).n; g++)
            add(ret,
                (struct report){ .time = a->started,
                                 .gpu = gpv_set(n, a->set).gpu[g],
                                 .task = a->task,
                                 .kind = WORK,
                                 .ok = !gpv_is_bad(a->outcome) },
                a->ended);
    }
    for (size_t i = 0; i < n->tenancies.n; i++) {
        const struct gpv_tenancy *t = &n->tenancies.row[i];
        add(ret,
            (struct report){ .time = t->since,
                             .gpu = t->gpu,
                             .kind = t->kind == GPV_TENANCY_KEPT ? KEPT : LOADING },
            t->until);
    }
    for (size_t i = 0; i < n->outs.n; i++)
        add(ret,
            (struct report){ .time = n->outs.row[i].since, .gpu = n->outs.row[i].gpu, .kind = OUT },
            n->outs.row[i].until);
    for (size_t i = 0; i < n->reasons.n; i++)
        add(ret, (struct report){ .time = n->reasons.row[i].since, .kind = WAITS },
            n->reasons.row[i].until);
    sort(ret);
}

static void report(struct gpv_live *l, const struct report *r, int *waiting)
{
    switch (r->kind) {
    case LOADING:
        gpv_live_loading(l, r->gpu, r->change, r->time);
        break;
    case KEPT:
        gpv_live_kept(l, r->gpu, r->change, r->time);
        break;
    case OUT:
        gpv_live_out(l, r->gpu, r->change, r->time);
        break;
    case WAITS:
        *waiting += r->change;
        gpv_live_waits(l, *waiting > 0, r->time);
        break;
    case WORK:
        if (r->change > 0)
            T_EQ(gpv_live_start(l, r->gpu, r->task, r->time), 0);
        else
            gpv_live_end(l, r->gpu, r->task, r->time, r->ok);
        break;
    }
}

/* Reports from index *next on that are heard up to a time. */
static void report_until(struct gpv_live *l, const struct reports *all, size_t *next, int64_t now,
                         int *waiting)
{
    for (; *next < all->n && all->row[*next].heard <= now; ++*next)
        report(l, &all->row[*next], waiting);
}

/* Checks after each report, and at the end. */
static void tell(const struct gpv_night *n)
{
    static struct reports all;
    int waiting = 0;
    size_t next = 0;
    struct gpv_live *l = gpv_live_new((uint32_t)n->gpus.n, n->from);
    T_CHECK(l);
    T_EQ(gpv_live_since(l), n->from);
    list_reports(n, &all);
    while (next < all.n) {
        int64_t now = all.row[next].heard;
        report_until(l, &all, &next, now, &waiting);
        struct gpv_night *then = gpv_night_part(n, n->from, now);
        T_CHECK(then);
        check(l, then, now, true);
        gpv_night_free(then);
    }
    check(l, n, n->to, true);
    gpv_live_free(l);
}

static void script(const char *rows)
{
    struct gpv_night *n = t_night(rows);
    tell(n);
    gpv_night_free(n);
}

/* ---- Scripts ---- */

T_CASE(one_task)
{
    script("reason 1 1.1 BUSY @0:01 @0:02\n"
           "attempt 1.1 1 1 gpu:0 @0:01 @0:02 @0:30:07 ok\n"
           "now @1:00");
}

T_CASE(a_task_that_failed)
{
    script("attempt 1.1 1 1 gpu:0 @0:01 @0:02 @0:30:07 error\n"
           "attempt 1.2 1 1 gpu:0 @0:01 @0:40 @0:40 error\n"
           "now @1:00");
}

/* Where another one works that is ok, or may be, no time is lost. */
T_CASE(beside_another_task)
{
    script("attempt 1.1 1 1 gpu:0 - @0:01 @0:10 error\n"
           "attempt 1.2 1 1 gpu:0 - @0:05 @0:15 ok\n"
           "now @1:00");
    script("attempt 1.1 1 1 gpu:0 - @0:05 @0:10 error\n"
           "attempt 1.2 1 1 gpu:0 - @0:01 @0:15 error\n"
           "now @1:00");
    script("attempt 1.1 1 1 gpu:0 - @0:05 @0:10 ok\n"
           "attempt 1.2 1 1 gpu:0 - @0:01 @0:15 error\n"
           "attempt 1.3 1 1 gpu:0 - @0:07 @0:20 error\n"
           "attempt 1.4 1 1 gpu:0 - @0:12 @0:18 ok\n"
           "attempt 1.5 1 1 gpu:0 - @0:19 - running\n"
           "now @1:00");
}

T_CASE(a_task_of_two_gpus)
{
    script("gpu gpu:0\ngpu gpu:1\n"
           "attempt 1.1 1 1 gpu:0,gpu:1 - @0:01 @0:10 error\n"
           "attempt 1.2 1 1 gpu:1 - @0:05 @0:15 ok\n"
           "now @1:00");
}

T_CASE(states)
{
    script("tenancy gpu:0 boot whisper @0:01 @0:03\n"
           "tenancy gpu:0 kept - @0:02 @0:07\n"
           "out gpu:1 drained @0:05 @0:09\n"
           "reason 1 1.2 SEATS @0:06 @0:11\n"
           "reason 2 2.1 SEATS @0:10 -\n"
           "tenancy gpu:0 unload whisper @0:20 -\n"
           "attempt 1.1 1 1 gpu:0 - @0:21 @0:22 crashed\n"
           "now @1:00");
}

/* Longer than the ring: its oldest minutes are gone, the totals are not. */
T_CASE(longer_than_the_ring)
{
    script("attempt 1.1 1 1 gpu:0 - @0:01 @9:00 error\n"
           "attempt 1.2 1 1 gpu:0 - @4:01:30 @4:02 ok\n"
           "attempt 1.3 1 1 gpu:0 - @5:30 @5:31 error\n"
           "attempt 1.4 1 1 gpu:0 - @20:00 @20:01 error\n"
           "attempt 1.5 1 1 gpu:0 - @25:00 @27:00 ok\n"
           "now @30:00:40"); /* a minute of the wall clock begins */
}

/* ---- Reports that are late, or wrong ---- */

static void totals_are(struct gpv_live *l, int64_t now, const char *wanted)
{
    static struct t_script text;
    struct gpv_uses sum;
    gpv_live_totals(l, 0, now, &sum);
    text.size = 0;
    for (uint32_t use = 0; use < GPV_USES; use++)
        if (sum.ns[use] != 0)
            t_script_add(&text, "%s%s %lld", text.size ? " " : "", gpv_use_word(use),
                         (long long)sum.ns[use]);
    T_TEXT(text.text, wanted);
}

T_CASE(late_reports)
{
    struct gpv_live *l = gpv_live_new(1, 0);
    gpv_live_loading(l, 0, 1, 10);
    gpv_live_loading(l, 0, -1, 30);
    totals_are(l, 50, "loading 20 idle 30");
    T_EQ(gpv_live_start(l, 0, 1, 20), 0);
    totals_are(l, 50, "ok 30 loading 10 idle 10");
    gpv_live_end(l, 0, 1, 25, false);
    totals_are(l, 50, "lost 5 loading 15 idle 30");
    gpv_live_free(l);
}

/* A start moves the time that was lost meanwhile. */
T_CASE(a_late_start_beside_a_lost_task)
{
    struct gpv_live *l = gpv_live_new(1, 0);
    T_EQ(gpv_live_start(l, 0, 1, 10), 0);
    gpv_live_end(l, 0, 1, 30, false);
    totals_are(l, 50, "lost 20 idle 30");
    T_EQ(gpv_live_start(l, 0, 2, 20), 0);
    totals_are(l, 50, "ok 30 lost 10 idle 10");
    gpv_live_free(l);
}

T_CASE(a_clock_that_was_set_back)
{
    struct gpv_live *l = gpv_live_new(1, 100);
    T_EQ(gpv_live_start(l, 0, 1, 200), 0);
    gpv_live_end(l, 0, 1, 50, true);
    gpv_live_out(l, 0, 1, 210);
    gpv_live_out(l, 0, -1, 60);
    totals_are(l, 300, "idle 200");
    for (int i = 0; i < 100; i++)
        gpv_live_kept(l, 0, i % 2 ? -1 : 1, 40);
    T_EQ(gpv_live_start(l, 0, 2, 60), 0);
    totals_are(l, 310, "ok 210"); /* 60 counts as the earliest possible time */
    totals_are(l, 0, "ok 110");
    gpv_live_free(l);
}

T_CASE(a_clock_that_jumps)
{
    static struct gpv_uses ring[GPV_MINUTES];
    struct gpv_live *l = gpv_live_new(1, -5);
    struct gpv_uses sum;
    T_EQ(gpv_live_start(l, 0, 1, 7), 0);
    gpv_live_totals(l, 0, INT64_MAX, &sum);
    T_EQ(sum.ns[GPV_USE_OK], INT64_MAX - 7);
    gpv_live_ring(l, 0, INT64_MAX, ring);
    T_EQ(ring[0].ns[GPV_USE_OK], MINUTE);
    T_EQ(ring[GPV_MINUTES - 1].ns[GPV_USE_OK], INT64_MAX % MINUTE);
    gpv_live_free(l);
}

T_CASE(unknown_gpus_and_tasks)
{
    struct gpv_live *l = gpv_live_new(1, 0);
    gpv_live_end(l, 0, 7, 10, false);
    gpv_live_end(l, 1, 7, 10, false);
    gpv_live_kept(l, 1, 1, 10);
    T_EQ(gpv_live_start(l, 1, 7, 10), 0);
    totals_are(l, 50, "idle 50");
    gpv_live_free(l);
}

T_CASE(more_gpus)
{
    struct gpv_live *l = gpv_live_new(0, 10);
    struct gpv_uses sum;
    gpv_live_waits(l, true, 20);
    T_EQ(gpv_live_grow(l, 2, 30), 0);
    T_EQ(gpv_live_start(l, 1, 1, 40), 0);
    totals_are(l, 50, "unknown 20 limited 20");
    gpv_live_totals(l, 1, 50, &sum);
    T_EQ(sum.ns[GPV_USE_UNKNOWN], 20);
    T_EQ(sum.ns[GPV_USE_LIMITED], 10);
    T_EQ(sum.ns[GPV_USE_OK], 10);
    gpv_live_free(l);
}

/* Short tasks beside a long one need no memory: each allocation from here on fails. */
T_CASE(bounded_memory)
{
    struct gpv_live *l = gpv_live_new(1, 0);
    T_EQ(gpv_live_start(l, 0, 1, 0), 0);
    int64_t now = 10;
    for (uint64_t task = 2; task < 1000002; task++) {
        if (task == 100)
            fail_at = 1;
        T_EQ(gpv_live_start(l, 0, task, now), 0);
        gpv_live_end(l, 0, task, now + 900, task % 2 == 0);
        now += 1000;
    }
    T_EQ(fail_at, 1); /* nobody has asked for memory */
    fail_at = 0;
    gpv_live_end(l, 0, 1, now, false);
    totals_are(l, now, "ok 450000000 lost 550000010");
    gpv_live_free(l);
}

T_CASE(no_memory)
{
    for (unsigned n = 1; n <= 3; n++) {
        fail_at = n;
        T_CHECK(!gpv_live_new(1, 0));
    }
    struct gpv_night *night = t_night("attempt 1.1 1 1 gpu:0 - 10 20 ok\nnow 50");
    for (unsigned n = 1;; n++) {
        struct gpv_live *l = gpv_live_new(1, 0);
        T_CHECK(l);
        fail_at = n;
        int code = gpv_live_fill(l, night);
        if (code == 0) {
            fail_at = 0;
            totals_are(l, 50, "ok 10 idle 30");
        }
        fail_at = code == 0 ? 0 : 1;
        int started = gpv_live_start(l, 0, 2, 60);
        fail_at = 0;
        gpv_live_free(l);
        if (code == 0)
            break;
        T_EQ(code, -1);
        T_CHECK(started == -1 || started == 0);
        T_CMP(n, <, 20);
    }
    gpv_night_free(night);
}

/* ---- Random nights ---- */

enum { GPUS = 3, NIGHTS = 2000 };

struct drawn {
    uint64_t seed;
    int64_t begin, span;
};

static int64_t draw_time(struct drawn *d)
{
    int64_t parts = 200 + draw_below(&d->seed, 2) * 1000003;
    return d->begin + d->span / parts * draw_below(&d->seed, (uint32_t)parts);
}

static int64_t draw_end(struct drawn *d, int64_t since)
{
    int64_t to = d->begin + d->span, length = d->span / (1 + draw_below(&d->seed, 100));
    int64_t end =
        draw_chance(&d->seed, 10) ? since : since + draw_below(&d->seed, 100) * length / 300;
    return draw_chance(&d->seed, 10) || end > to ? 0 : end;
}

static void draw_attempt(struct gpv_night *n, struct drawn *d, uint32_t task)
{
    uint16_t gpu[GPUS];
    uint32_t count = 0;
    for (uint16_t i = 0; i < GPUS; i++)
        if (draw_chance(&d->seed, 50))
            gpu[count++] = i;
    struct gpv_attempt a = { .task = GPV_TASK(1, task), .started = draw_time(d) };
    a.set = gpv_keep_set(n, gpu, count);
    a.number = !draw_chance(&d->seed, 5);
    a.shape = GPV_NONE16;
    a.ended = draw_end(d, a.started);
    if (a.ended != 0)
        a.outcome = draw_chance(&d->seed, 50) ? GPV_OK : (uint8_t)(2 + draw_below(&d->seed, 8));
    T_EQ(gpv_add_attempt(n, &a), 0);
}

static void draw_states(struct gpv_night *n, struct drawn *d)
{
    struct gpv_tenancy t = { .since = draw_time(d), .gpu = draw_below(&d->seed, GPUS) };
    t.until = draw_end(d, t.since);
    t.kind = 1 + draw_below(&d->seed, 3);
    T_EQ(gpv_add_tenancy(n, &t), 0);
    struct gpv_out o = { .since = draw_time(d), .gpu = draw_below(&d->seed, GPUS), .kind = 1 };
    o.until = draw_end(d, o.since);
    T_EQ(gpv_add_out(n, &o), 0);
    struct gpv_reason r = { .since = draw_time(d), .task = GPV_TASK(1, 1) };
    r.until = draw_end(d, r.since);
    T_EQ(gpv_add_reason(n, &r), 0);
}

/* Some nights are seconds long, some longer than the ring. */
static struct gpv_night *draw_night(struct drawn *d)
{
    struct gpv_night *n = gpv_night_new();
    T_CHECK(n);
    d->begin = T_BEGIN + draw_below(&d->seed, 1000000000) * 61;
    d->span = (1 + draw_below(&d->seed, 100)) * (draw_chance(&d->seed, 50) ? SECOND : 9 * MINUTE);
    gpv_night_limit(n, d->begin, 0);
    for (uint32_t i = 0; i < GPUS; i++) {
        const char name[] = { (char)('a' + i) };
        const struct gpv_gpu gpu = { .name = gpv_keep(n, name, 1) };
        T_EQ(gpv_add_gpu(n, &gpu), 0);
    }
    for (uint32_t i = draw_below(&d->seed, 24); i > 0; i--)
        draw_attempt(n, d, i);
    for (uint32_t i = draw_below(&d->seed, 4); i > 0; i--)
        draw_states(n, d);
    T_EQ(gpv_night_end(n, d->begin + d->span), 0);
    return n;
}

/* Looks a few times meanwhile, at what the records of that time have. */
static void tell_some(const struct gpv_night *n, struct drawn *d, struct reports *all)
{
    int waiting = 0;
    size_t next = 0;
    struct gpv_live *l = gpv_live_new((uint32_t)n->gpus.n, n->from);
    T_CHECK(l);
    for (int look = 0; look < 3; look++) {
        int64_t now = n->from + (n->to - n->from) / 4 * (look + (int64_t)draw_below(&d->seed, 2));
        report_until(l, all, &next, now, &waiting);
        struct gpv_night *then = gpv_night_part(n, n->from, now);
        T_CHECK(then);
        check(l, then, now, look == 1);
        gpv_night_free(then);
    }
    report_until(l, all, &next, INT64_MAX, &waiting);
    check(l, n, n->to, true);
    gpv_live_free(l);
}

T_CASE(random_nights)
{
    static struct reports all;
    struct drawn d = { .seed = 1 };
    for (int round = 0; round < NIGHTS; round++) {
        struct gpv_night *n = draw_night(&d);
        list_reports(n, &all);
        tell_some(n, &d, &all);
        gpv_night_free(n);
    }
}

/* Each report may come after up to four later ones. */
T_CASE(random_nights_with_late_reports)
{
    static struct reports all;
    struct drawn d = { .seed = 2 };
    for (int round = 0; round < NIGHTS; round++) {
        struct gpv_night *n = draw_night(&d);
        int waiting = 0;
        size_t next = 0;
        list_reports(n, &all);
        for (size_t i = 0; i + 4 < all.n; i++)
            if (all.row[i].kind == WORK && draw_chance(&d.seed, 30))
                all.row[i].heard = all.row[i + draw_below(&d.seed, 5)].time;
        for (size_t i = 0; i < all.n; i++) /* an end after its begin */
            for (size_t k = 0; k < all.n; k++)
                if (all.row[k].order == all.row[i].order + 1 && all.row[k].change < 0 &&
                    all.row[k].heard < all.row[i].heard)
                    all.row[k].heard = all.row[i].heard;
        sort(&all);
        struct gpv_live *l = gpv_live_new((uint32_t)n->gpus.n, n->from);
        report_until(l, &all, &next, INT64_MAX, &waiting);
        check(l, n, n->to, true);
        gpv_live_free(l);
        gpv_night_free(n);
    }
}

/* ---- Filling ---- */

static void draw_lives(struct gpv_night *n, struct drawn *d)
{
    for (uint32_t i = draw_below(&d->seed, 4); i > 0; i--) {
        struct gpv_life life = { .since = draw_time(d), .kind = 1 + draw_below(&d->seed, 3) };
        life.until = draw_end(d, life.since);
        T_EQ(gpv_add_life(n, &life), 0);
    }
    T_EQ(gpv_night_end(n, d->begin + d->span), 0);
}

/* Up to a time from records, then by reports. */
static void fill_and_continue(const struct gpv_night *n, struct drawn *d, struct reports *all)
{
    int64_t now = n->from + (n->to - n->from) / 10 * draw_below(&d->seed, 11);
    struct gpv_night *before = gpv_night_part(n, n->from, now);
    struct gpv_live *l = gpv_live_new((uint32_t)n->gpus.n, n->to);
    int waiting = 0;
    size_t next = 0;
    T_CHECK(before && l);
    T_EQ(gpv_live_fill(l, before), 0);
    T_EQ(gpv_live_since(l), n->from);
    check(l, before, now, true);
    for (; next < all->n && all->row[next].time <= now; next++)
        waiting += all->row[next].kind == WAITS ? all->row[next].change : 0;
    report_until(l, all, &next, INT64_MAX, &waiting);
    check(l, n, n->to, true);
    gpv_live_free(l);
    gpv_night_free(before);
}

T_CASE(random_nights_filled)
{
    static struct reports all;
    struct drawn d = { .seed = 3 };
    for (int round = 0; round < NIGHTS; round++) {
        struct gpv_night *n = draw_night(&d);
        list_reports(n, &all);
        fill_and_continue(n, &d, &all);
        draw_lives(n, &d);
        struct gpv_live *l = gpv_live_new(GPUS, n->to);
        T_CHECK(l);
        T_EQ(gpv_live_fill(l, n), 0);
        check(l, n, n->to, true);
        gpv_live_free(l);
        gpv_night_free(n);
    }
}
