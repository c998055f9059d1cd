/* SPDX-License-Identifier: MIT */
/*
 * use.c - each moment of a GPU has one use, and the uses add up to the time. [V3]
 *
 * A night is a script (rows.h); what is wanted is a line for each GPU: times, and between two of
 * them the use of the stretch.  Random nights are recounted in another way: for each millisecond,
 * by all rows.
 */
#include <string.h>

#include "harness.h"
#include "queue/draw.h"
#include "rows.h"
#include "view/night/use.h"

/* ---- A GPU as a text; sums and bins must agree with it ---- */

struct seen {
    struct t_script *text;
    struct gpv_stretch last;
    struct gpv_uses sum;
};

static int see(const struct gpv_stretch *s, void *user)
{
    struct seen *seen = user;
    T_EQ(s->from, seen->last.to);
    T_CMP(s->from, <, s->to);
    T_CHECK(s->from == seen->last.from || s->use != seen->last.use);
    seen->last = *s;
    seen->sum.ns[s->use] += s->to - s->from;
    t_script_add(seen->text, " %s %lld", gpv_use_word(s->use), (long long)s->to);
    return 0;
}

static int64_t whole(const struct gpv_uses *sum)
{
    int64_t all = 0;
    for (size_t use = 0; use < GPV_USES; use++)
        all += sum->ns[use];
    return all;
}

static void add_up(struct gpv_uses *sum, const struct gpv_uses *more)
{
    for (size_t use = 0; use < GPV_USES; use++)
        sum->ns[use] += more->ns[use];
}

static void same(const struct gpv_uses *a, const struct gpv_uses *b)
{
    for (size_t use = 0; use < GPV_USES; use++)
        T_EQ(a->ns[use], b->ns[use]);
}

/* Bins are as long as each other, and have what the stretches have. */
static void see_bins(const struct gpv_night *n, uint32_t gpu, int64_t from, int64_t to,
                     uint32_t bins, const struct gpv_uses *wanted)
{
    struct gpv_uses bin[64], sum = { 0 };
    T_CMP(bins, <=, T_LENGTH(bin));
    memset(bin, 0x55, sizeof(bin));
    T_EQ(gpv_use_bins(n, gpu, from, to, bins, bin), 0);
    for (uint32_t i = 0; i < bins; i++) {
        int64_t length = (to - from) / bins;
        T_CHECK(whole(&bin[i]) == length || whole(&bin[i]) == length + 1);
        add_up(&sum, &bin[i]);
    }
    same(&sum, wanted);
}

static void see_gpu(struct t_script *text, const struct gpv_night *n, uint32_t gpu, int64_t from,
                    int64_t to)
{
    struct seen seen = { .text = text, .last = { .from = from, .to = from } };
    struct gpv_uses sum;
    t_script_add(text, "%s%s: %lld", text->size ? "\n" : "", gpv_text(n, n->gpus.row[gpu].name),
                 (long long)from);
    T_EQ(gpv_use_each(n, gpu, from, to, see, &seen), 0);
    T_EQ(seen.last.to, to);
    T_EQ(gpv_use_sum(n, gpu, from, to, &sum), 0);
    T_EQ(whole(&sum), to - from);
    same(&sum, &seen.sum);
    see_bins(n, gpu, from, to, 1, &sum);
    see_bins(n, gpu, from, to, 7, &sum);
    see_bins(n, gpu, from, to, 64, &sum);
}

static void see_between(struct t_script *text, const struct gpv_night *n, int64_t from, int64_t to)
{
    struct gpv_uses all, sum = { 0 }, one;
    text->size = 0;
    for (uint32_t gpu = 0; gpu < n->gpus.n; gpu++) {
        see_gpu(text, n, gpu, from, to);
        T_EQ(gpv_use_sum(n, gpu, from, to, &one), 0);
        add_up(&sum, &one);
    }
    T_EQ(gpv_use_sum_all(n, from, to, &all), 0);
    T_EQ(whole(&all), (to - from) * (int64_t)n->gpus.n);
    same(&all, &sum);
}

static void uses(const char *rows, const char *wanted)
{
    static struct t_script text;
    struct gpv_night *n = t_night(rows);
    see_between(&text, n, n->from, n->to);
    gpv_night_free(n);
    T_TEXT(text.text, wanted);
}

static void uses_between(const char *rows, int64_t from, int64_t to, const char *wanted)
{
    static struct t_script text;
    struct gpv_night *n = t_night(rows);
    see_between(&text, n, from, to);
    gpv_night_free(n);
    T_TEXT(text.text, wanted);
}

/* ---- Scripts ---- */

T_CASE(nothing)
{
    uses("gpu gpu:0\nnow 50", "gpu:0: 50");
    uses_between("gpu gpu:0\nnow 50", 10, 50, "gpu:0: 10 idle 50");
    uses_between("gpu gpu:0\nnow 50", 50, 50, "gpu:0: 50");
}

T_CASE(no_gpu)
{
    struct gpv_night *n = t_night("life opened 10 20\nnow 50");
    struct gpv_uses sum;
    T_EQ(gpv_use_sum_all(n, 10, 50, &sum), 0);
    T_EQ(whole(&sum), 0);
    gpv_night_free(n);
}

T_CASE(one_task)
{
    uses_between("attempt 1.1 1 1 gpu:0 10 20 40 ok\nnow 60", 10, 60,
                 "gpu:0: 10 idle 20 ok 40 idle 60");
}

T_CASE(a_task_that_failed)
{
    uses("attempt 1.1 1 1 gpu:0 - 20 40 error 1\n"
         "attempt 1.1 2 1 gpu:0 - 40 45 timeout\n"
         "attempt 1.1 3 1 gpu:0 - 45 50 crashed -11\n"
         "attempt 1.2 1 1 gpu:0 - 50 60 cancelled\n"
         "attempt 1.3 1 1 gpu:0 - 60 70 returned\n"
         "attempt 1.3 2 1 gpu:0 - 70 80 lost\n"
         "attempt 1.3 3 1 gpu:0 - 85 90 no_worker\n"
         "now 100",
         "gpu:0: 20 lost 80 idle 85 lost 90 idle 100");
}

/* Two tasks of one GPU at a time count once; one that ends ok is enough. */
T_CASE(tasks_that_overlap)
{
    uses("attempt 1.1 1 1 gpu:0 - 10 30 ok\n"
         "attempt 1.2 1 1 gpu:0 - 20 40 ok\n"
         "now 50",
         "gpu:0: 10 ok 40 idle 50");
    uses("attempt 1.1 1 1 gpu:0 - 10 60 error 1\n"
         "attempt 1.2 1 1 gpu:0 - 20 40 ok\n"
         "attempt 1.3 1 1 gpu:0 - 30 70 error 1\n"
         "now 80",
         "gpu:0: 10 lost 20 ok 40 lost 70 idle 80");
}

T_CASE(a_task_of_two_gpus)
{
    uses("gpu gpu:0\ngpu gpu:1\ngpu gpu:2\n"
         "attempt 1.1 1 1 gpu:0,gpu:2 - 10 30 ok\n"
         "attempt 1.2 1 1 gpu:1 - 20 30 error\n"
         "attempt 1.3 1 1 gpu:2 - 30 40 ok\n"
         "now 40",
         "gpu:0: 10 ok 30 idle 40\n"
         "gpu:1: 10 idle 20 lost 30 idle 40\n"
         "gpu:2: 10 ok 40");
}

T_CASE(a_task_that_runs_still)
{
    uses("attempt 1.1 1 1 gpu:0 - 10 - running\n"
         "attempt 1.2 1 1 gpu:0 - 20 30 error\n"
         "now 50",
         "gpu:0: 10 ok 50");
}

/* It was on no GPU, even where its row names one. */
T_CASE(a_task_without_an_attempt)
{
    uses("attempt 1.1 0 1 gpu:0 5 - 30 cancelled\n"
         "attempt 1.2 0 1 - 5 - 35 skipped\n"
         "attempt 1.3 0 1 gpu:0 5 10 35 skipped\n"
         "life opened 10 -\n"
         "now 50",
         "gpu:0: 5 unknown 10 idle 50");
}

T_CASE(workers_that_load_and_leave)
{
    uses("tenancy gpu:0 boot whisper 10 20 first_use\n"
         "attempt 1.1 1 1 gpu:0 - 20 30 ok\n"
         "tenancy gpu:0 unload whisper 40 45 evicted\n"
         "tenancy gpu:0 boot judge 45 -\n"
         "now 60",
         "gpu:0: 10 loading 20 ok 30 idle 40 loading 60");
}

T_CASE(kept_for_a_wide_task)
{
    uses("tenancy gpu:0 kept - 10 30\n"
         "tenancy gpu:1 kept - 10 20\n"
         "attempt 1.1 1 1 gpu:1 - 15 25 ok\n"
         "attempt 1.2 1 1 gpu:0,gpu:1 - 30 40 ok\n"
         "now 40",
         "gpu:0: 10 kept 30 ok 40\n"
         "gpu:1: 10 kept 15 ok 25 idle 30 ok 40");
}

/* Its last task has worked. */
T_CASE(drained_while_a_task_runs)
{
    uses("attempt 1.1 1 1 gpu:0 - 10 30 ok\n"
         "out gpu:0 drained 20 40\n"
         "now 50",
         "gpu:0: 10 ok 30 out 40 idle 50");
}

T_CASE(out_of_use)
{
    uses("out gpu:0 quarantined 10 -\n"
         "out gpu:1 foreign 20 30\n"
         "out gpu:1 lost 25 40\n"
         "now 50",
         "gpu:0: 10 out 50\n"
         "gpu:1: 10 idle 20 out 40 idle 50");
}

T_CASE(no_agent_for_a_while)
{
    uses("gpu gpu:0\n"
         "life opened 10 20\n"
         "reason 1 1.1 BUSY 15 35\n"
         "life opened 30 -\n"
         "life adopted 30 30\n"
         "life clock 40 40\n"
         "now 50",
         "gpu:0: 10 idle 15 limited 20 unknown 30 limited 35 idle 50");
}

/* A command that the next agent took over has run meanwhile; a GPU that is out stays so. */
T_CASE(rows_while_no_agent_ran)
{
    uses("life opened 10 20\n"
         "attempt 1.1 1 1 gpu:0 - 15 40 ok\n"
         "out gpu:1 failed 15 40\n"
         "life opened 50 -\n"
         "now 60",
         "gpu:0: 10 idle 15 ok 40 unknown 50 idle 60\n"
         "gpu:1: 10 idle 15 out 40 unknown 50 idle 60");
}

/* Nobody knows more of such a night than its rows have. */
T_CASE(no_life_at_all)
{
    uses("attempt 1.1 1 1 gpu:0 - 10 20 ok\nnow 50", "gpu:0: 10 ok 20 idle 50");
}

T_CASE(idle_although_tasks_waited)
{
    uses("attempt 1.1 1 1 gpu:0 - 10 20 ok\n"
         "gpu gpu:1\n"
         "reason 1 1.2 SEATS 15 30\n"
         "reason 2 2.1 SEATS 25 -\n"
         "tenancy gpu:1 boot whisper 40 45\n"
         "now 50",
         "gpu:0: 10 ok 20 limited 50\n"
         "gpu:1: 10 idle 15 limited 40 loading 45 limited 50");
}

/* The end of a row is before its begin: it has no length, and hides nothing. */
T_CASE(a_clock_that_was_set_back)
{
    uses("life opened 10 -\n"
         "attempt 1.1 1 1 gpu:0 - 40 15 ok\n"
         "attempt 1.2 1 1 gpu:0 - 20 30 error\n"
         "tenancy gpu:0 kept - 45 20\n"
         "out gpu:0 drained 48 20\n"
         "life clock 20 20 set_by_-25.000_s\n"
         "now 50",
         "gpu:0: 10 idle 20 lost 30 idle 50");
}

T_CASE(rows_without_length)
{
    uses("life opened 10 -\n"
         "attempt 1.1 1 1 gpu:0 - 20 20 ok\n"
         "tenancy gpu:0 boot whisper 20 20\n"
         "out gpu:0 drained 30 30\n"
         "reason 1 1.1 BUSY 40 40\n"
         "now 50",
         "gpu:0: 10 idle 50");
}

T_CASE(the_first_of_the_list_counts)
{
    uses("life opened 10 20\n"
         "reason 1 1.1 BUSY 10 30\n"
         "out gpu:0 failed 10 40\n"
         "tenancy gpu:0 kept - 10 50\n"
         "tenancy gpu:0 unload whisper 10 60\n"
         "attempt 1.1 1 1 gpu:0 - 10 70 error\n"
         "attempt 1.2 1 1 gpu:0 - 10 80 ok\n"
         "now 90",
         "gpu:0: 10 ok 80 unknown 90");
    uses("attempt 1.2 1 1 gpu:0 - 10 20 ok\n"
         "attempt 1.1 1 1 gpu:0 - 10 30 error\n"
         "tenancy gpu:0 unload whisper 10 40\n"
         "tenancy gpu:0 kept - 10 50\n"
         "out gpu:0 failed 10 60\n"
         "life opened 10 15\n"
         "life opened 70 -\n"
         "reason 1 1.1 BUSY 10 80\n"
         "now 90",
         "gpu:0: 10 ok 20 lost 30 loading 40 kept 50 out 60 unknown 70 limited 80 idle 90");
}

T_CASE(cut_in_the_middle_of_rows)
{
    static const char rows[] = "attempt 1.1 1 1 gpu:0 - 10 30 ok\n"
                               "tenancy gpu:0 kept - 30 50\n"
                               "reason 1 1.2 BUSY 30 70\n"
                               "attempt 1.2 1 1 gpu:0 - 80 90 error\n"
                               "now 100";
    uses_between(rows, 20, 40, "gpu:0: 20 ok 30 kept 40");
    uses_between(rows, 40, 60, "gpu:0: 40 kept 50 limited 60");
    uses_between(rows, 85, 120, "gpu:0: 85 lost 90 idle 120");
    uses_between(rows, 30, 31, "gpu:0: 30 kept 31");
    uses_between(rows, 1, 12, "gpu:0: 1 idle 10 ok 12");
}

/* Rows go on until the end of the span, though they were read without their ends. */
T_CASE(rows_that_go_on)
{
    static struct t_script text;
    struct gpv_night *n = t_night_within("life opened 10 -\n"
                                         "attempt 1.1 1 1 gpu:0 - 20 90 ok\n"
                                         "now 100",
                                         0, 60);
    see_between(&text, n, n->from, n->to);
    T_TEXT(text.text, "gpu:0: 10 idle 20 ok 60");
    see_between(&text, n, 50, 70);
    T_TEXT(text.text, "gpu:0: 50 ok 60 unknown 70");
    gpv_night_free(n);
}

T_CASE(sixty_four_gpus)
{
    static struct t_script rows, wanted;
    for (int gpu = 0; gpu < 64; gpu++) {
        int from = 20 + gpu, to = 30 + gpu;
        t_script_add(&rows, "attempt 1.%d 1 1 gpu:%d - %d %d ok\n", gpu + 1, gpu, from, to);
        t_script_add(&wanted, "%sgpu:%d: 10 idle %d ok %d idle 100", gpu ? "\n" : "", gpu, from,
                     to);
    }
    t_script_add(&rows, "life opened 10 -\n");
    t_script_add(&rows, "now 100");
    uses(rows.text, wanted.text);
}

static int stop(const struct gpv_stretch *s, void *user)
{
    ++*(int *)user;
    return s->use == GPV_USE_OK ? 7 : 0;
}

T_CASE(the_reader_ends_it)
{
    struct gpv_night *n = t_night("attempt 1.1 1 1 gpu:0 - 20 40 ok\nlife opened 10 -\nnow 60");
    int calls = 0;
    T_EQ(gpv_use_each(n, 0, 10, 60, stop, &calls), 7);
    T_EQ(calls, 2);
    gpv_night_free(n);
}

T_CASE(words)
{
    T_TEXT(gpv_use_word(GPV_USE_OK), "ok");
    T_TEXT(gpv_use_text(GPV_USE_LOST), "worked in vain");
    T_TEXT(gpv_use_word(GPV_USE_IDLE), "idle");
    T_TEXT(gpv_use_word(GPV_USES), "?");
    T_TEXT(gpv_use_text(GPV_USES), "?");
}

/* ---- Random nights ---- */

enum { MS = 1000000, SPAN = 60, GPUS = 3, NIGHTS = 2000 };
#define BASE (INT64_C(1800000000000) * MS)

static int64_t draw_time(uint64_t *seed)
{
    return BASE + (int64_t)draw_below(seed, SPAN + 10) * MS;
}

/* Some rows go on, and some have no length. */
static int64_t draw_end(uint64_t *seed, int64_t since)
{
    return draw_chance(seed, 10) ? 0 : since + (int64_t)draw_below(seed, 20) * MS;
}

static void draw_attempt(struct gpv_night *n, uint64_t *seed, uint32_t task)
{
    uint16_t gpu[GPUS];
    uint32_t count = 0;
    for (uint16_t i = 0; i < GPUS; i++)
        if (draw_chance(seed, 40))
            gpu[count++] = i;
    struct gpv_attempt a = { .task = GPV_TASK(1, task), .started = draw_time(seed) };
    a.set = gpv_keep_set(n, gpu, count);
    a.number = !draw_chance(seed, 10);
    a.shape = GPV_NONE16;
    a.ended = draw_end(seed, a.started);
    if (a.ended != 0)
        a.outcome = draw_chance(seed, 50) ? GPV_OK : (uint8_t)(2 + draw_below(seed, 8));
    T_EQ(gpv_add_attempt(n, &a), 0);
}

static void draw_states(struct gpv_night *n, uint64_t *seed)
{
    struct gpv_tenancy t = { .since = draw_time(seed), .gpu = draw_below(seed, GPUS) };
    t.until = draw_end(seed, t.since);
    t.kind = 1 + draw_below(seed, 3);
    T_EQ(gpv_add_tenancy(n, &t), 0);
    struct gpv_out o = { .since = draw_time(seed), .gpu = draw_below(seed, GPUS), .kind = 1 };
    o.until = draw_end(seed, o.since);
    T_EQ(gpv_add_out(n, &o), 0);
    struct gpv_reason r = { .since = draw_time(seed), .task = GPV_TASK(1, 1) };
    r.until = draw_end(seed, r.since);
    T_EQ(gpv_add_reason(n, &r), 0);
}

static struct gpv_night *draw_night(uint64_t *seed)
{
    struct gpv_night *n = gpv_night_new();
    T_CHECK(n);
    for (uint32_t i = 0; i < GPUS; i++) {
        const char name[] = { (char)('a' + i) };
        const struct gpv_gpu gpu = { .name = gpv_keep(n, name, 1) };
        T_EQ(gpv_add_gpu(n, &gpu), 0);
    }
    for (uint32_t i = draw_below(seed, 16); i > 0; i--)
        draw_attempt(n, seed, i);
    for (uint32_t i = draw_below(seed, 4); i > 0; i--)
        draw_states(n, seed);
    for (uint32_t i = draw_below(seed, 5); i > 0; i--) {
        struct gpv_life life = { .since = draw_time(seed), .kind = 1 + draw_below(seed, 3) };
        life.until = draw_end(seed, life.since);
        T_EQ(gpv_add_life(n, &life), 0);
    }
    T_EQ(gpv_night_end(n, BASE + (int64_t)SPAN * MS), 0);
    return n;
}

static bool is_open(const struct gpv_night *n, int64_t since, int64_t until, int64_t now)
{
    return since <= now && now < n->to && (until == 0 || now < until);
}

/* Whether any row of a list is open, about which a condition holds. */
#define ANY(list, what, begin, end, condition)                                      \
    static bool list##_##what(const struct gpv_night *n, uint32_t gpu, int64_t now) \
    {                                                                               \
        (void)gpu;                                                                  \
        for (size_t i = 0; i < n->list.n; i++) {                                    \
            __typeof__(n->list.row[i]) row = n->list.row[i];                        \
            if (is_open(n, row.begin, row.end, now) && (condition))                 \
                return true;                                                        \
        }                                                                           \
        return false;                                                               \
    }
#define ON (row.number != 0 && gpv_set_has(gpv_set(n, row.set), gpu))
ANY(attempts, good, started, ended, ON && (row.outcome == GPV_OK || row.outcome == GPV_RUNNING))
ANY(attempts, any, started, ended, ON)
ANY(tenancies, kept, since, until, row.gpu == gpu && row.kind == GPV_TENANCY_KEPT)
ANY(tenancies, other, since, until, row.gpu == gpu && row.kind != GPV_TENANCY_KEPT)
ANY(outs, any, since, until, row.gpu == gpu)
ANY(reasons, any, since, until, true)
ANY(lives, opened, since, until, row.kind == GPV_LIFE_OPENED)

static uint32_t recounted(const struct gpv_night *n, uint32_t gpu, int64_t now)
{
    return attempts_good(n, gpu, now)                     ? GPV_USE_OK
           : attempts_any(n, gpu, now)                    ? GPV_USE_LOST
           : tenancies_other(n, gpu, now)                 ? GPV_USE_LOADING
           : tenancies_kept(n, gpu, now)                  ? GPV_USE_KEPT
           : outs_any(n, gpu, now)                        ? GPV_USE_OUT
           : n->lives.n > 0 && !lives_opened(n, gpu, now) ? GPV_USE_UNKNOWN
           : reasons_any(n, gpu, now)                     ? GPV_USE_LIMITED
                                                          : GPV_USE_IDLE;
}

/* A bin for each millisecond. */
static void recount(const struct gpv_night *n, uint32_t gpu, int64_t from, uint32_t length)
{
    static struct gpv_uses bin[SPAN + 10];
    struct gpv_uses wanted = { 0 }, sum;
    int64_t to = from + (int64_t)length * MS;
    T_EQ(gpv_use_bins(n, gpu, from, to, length, bin), 0);
    for (uint32_t i = 0; i < length; i++) {
        uint32_t use = recounted(n, gpu, from + (int64_t)i * MS);
        T_EQ(bin[i].ns[use], MS);
        T_EQ(whole(&bin[i]), MS);
        wanted.ns[use] += MS;
    }
    T_EQ(gpv_use_sum(n, gpu, from, to, &sum), 0);
    same(&sum, &wanted);
}

T_CASE(random_nights)
{
    static struct t_script text;
    for (uint64_t seed = 1, round = 0; round < NIGHTS; round++) {
        struct gpv_night *n = draw_night(&seed);
        uint32_t from = draw_below(&seed, SPAN), length = 1 + draw_below(&seed, SPAN + 10 - from);
        for (uint32_t gpu = 0; gpu < GPUS; gpu++)
            recount(n, gpu, BASE + (int64_t)from * MS, length);
        see_between(&text, n, BASE + from * 17, BASE + (int64_t)(from + length) * MS + 3);
        gpv_night_free(n);
    }
}
