/* SPDX-License-Identifier: MIT */
/*
 * waits.c - how many tasks of a batch waited at each time, and why.
 *
 * A night is a script (rows.h); what is wanted is a line for each stretch in which tasks wait:
 * begin, end, tasks, kind of reason.  Random nights are recounted for each millisecond.
 */
#include <string.h>

#include "harness.h"
#include "queue/draw.h"
#include "queue/failing.h"
#include "rows.h"
#include "view/night/waits.h"

/* ---- A batch as a text; its sum must agree with it ---- */

struct seen {
    const struct gpv_night *night;
    struct t_script *text;
    struct gpv_wait last;
    double sum[GPV_WHYS];
};

static int see(const struct gpv_wait *w, void *user)
{
    struct seen *seen = user;
    const struct gpv_wait *last = &seen->last;
    enum gpv_why why = gpv_why_of(seen->night, w);
    T_CMP(w->from, <, w->to);
    T_CMP(w->from, >=, last->to);
    T_CMP(w->tasks, >, 0);
    T_CHECK(w->from > last->to || w->tasks != last->tasks || w->reason != last->reason ||
            w->kept != last->kept);
    T_EQ(w->word, w->reason == GPV_NONE ? 0 : seen->night->reasons.row[w->reason].word);
    t_script_add(seen->text, "%s%lld-%lld %llu %s", seen->text->size ? "\n" : "",
                 (long long)w->from, (long long)w->to, (unsigned long long)w->tasks,
                 gpv_why_word(why));
    seen->sum[why] += (double)(w->to - w->from) * (double)w->tasks;
    seen->last = *w;
    return 0;
}

static void see_batch(struct t_script *text, const struct gpv_night *n, uint32_t id)
{
    uint32_t batch = gpv_find_batch(n, id);
    double sum[GPV_WHYS];
    T_CMP(batch, !=, GPV_NONE);
    struct seen seen = { .night = n, .text = text };
    text->size = 0;
    text->text[0] = 0;
    T_EQ(gpv_wait_each(n, batch, see, &seen), 0);
    T_EQ(gpv_wait_sum(n, batch, sum, NULL), 0);
    for (size_t why = 0; why < GPV_WHYS; why++)
        T_CHECK(sum[why] == seen.sum[why]);
}

static void waits_within(const char *rows, int64_t from, int64_t to, uint32_t batch,
                         const char *wanted)
{
    static struct t_script text;
    struct gpv_night *n = t_night_within(rows, from, to);
    see_batch(&text, n, batch);
    gpv_night_free(n);
    T_TEXT(text.text, wanted);
}

/* Those of batch 1. */
static void waits(const char *rows, const char *wanted)
{
    waits_within(rows, 0, 0, 1, wanted);
}

/* ---- How many ---- */

T_CASE(nothing)
{
    waits("batch 1 a 10\nlife opened 10 -\nnow 50", "");
    waits("batch 1 a 10\nnow 50", "");
}

T_CASE(one_task)
{
    waits("batch 1 a 10\n"
          "life opened 10 -\n"
          "attempt 1.1 1 1 gpu:0 20 30 40 ok\n"
          "now 50",
          "20-30 1 unseen");
}

T_CASE(several_tasks)
{
    waits("batch 1 a 10\nbatch 2 b 10\n"
          "life opened 10 -\n"
          "attempt 1.1 1 1 gpu:0 20 30 40 ok\n"
          "attempt 1.2 1 1 gpu:0 20 40 50 ok\n"
          "attempt 1.3 1 1 gpu:0 20 50 60 ok\n"
          "attempt 1.4 1 1 gpu:0 25 50 60 ok\n"
          "attempt 2.1 1 1 gpu:0 12 55 60 ok\n"
          "now 70",
          "20-25 3 unseen\n25-30 4 unseen\n30-40 3 unseen\n40-50 2 unseen");
}

/* One waits less, and another one more: nothing has changed. */
T_CASE(stretches_are_joined)
{
    waits("batch 1 a 10\n"
          "life opened 10 -\n"
          "attempt 1.1 1 1 gpu:0 10 20 30 ok\n"
          "attempt 1.2 1 1 gpu:0 20 30 40 ok\n"
          "now 50",
          "10-30 1 unseen");
}

T_CASE(a_task_that_is_retried)
{
    waits("batch 1 a 10\n"
          "life opened 10 -\n"
          "attempt 1.1 1 1 gpu:0 10 20 30 error 1\n"
          "attempt 1.1 2 1 gpu:0 35 40 50 ok\n"
          "now 50",
          "10-20 1 unseen\n35-40 1 unseen");
}

T_CASE(tasks_that_wait_still)
{
    waits("batch 1 a 20 - 0 - 5 0 0 3\n"
          "life opened 10 -\n"
          "attempt 1.1 1 1 gpu:0 20 30 - running\n"
          "now 50",
          "20-30 4 unseen\n30-50 3 unseen");
}

/* A returned task waits from its return on, not from the begin of its batch. */
T_CASE(tasks_that_were_returned)
{
    waits("batch 1 a 20 - 0 - 5 0 0 3\n"
          "life opened 10 -\n"
          "attempt 1.1 1 1 gpu:0 20 30 40 returned\n"
          "attempt 1.2 1 1 gpu:0 20 30 45 returned\n"
          "attempt 1.2 2 1 gpu:0 45 48 - running\n"
          "now 50",
          "20-30 4 unseen\n30-40 2 unseen\n40-45 3 unseen\n45-48 4 unseen\n48-50 3 unseen");
    /* Since then it does not wait: it is held. */
    waits("batch 1 a 20 - 0 - 1 0 1 0\n"
          "attempt 1.1 1 1 gpu:0 20 30 40 returned\n"
          "now 50",
          "20-30 1 unseen");
}

T_CASE(a_task_that_was_cancelled_while_it_waited)
{
    waits("batch 1 a 10\n"
          "life opened 10 -\n"
          "attempt 1.1 0 1 - 20 - 30 cancelled\n"
          "attempt 1.2 0 1 - - - 40 skipped\n"
          "now 50",
          "20-30 1 unseen");
}

T_CASE(a_clock_that_was_set_back)
{
    waits("batch 1 a 10\n"
          "life opened 10 -\n"
          "attempt 1.1 1 1 gpu:0 40 30 35 ok\n"
          "attempt 1.2 1 1 gpu:0 20 20 35 ok\n"
          "attempt 1.3 1 1 gpu:0 - 25 35 ok\n"
          "now 50",
          "");
}

T_CASE(cut_in_the_middle_of_rows)
{
    static const char rows[] = "batch 1 a 10 - 0 - 3 0 0 1 0 - 3 1\n"
                               "attempt 1.1 1 1 gpu:0 10 30 50 ok\n"
                               "attempt 1.2 1 1 gpu:0 10 45 60 ok\n"
                               "reason 1 1.3 SEATS 15 60\n"
                               "now 90";
    waits_within(rows, 20, 0, 1, "20-30 3 limit\n30-45 2 limit\n45-60 1 limit\n60-90 1 unseen");
    waits_within(rows, 40, 70, 1, "40-45 2 limit\n45-60 1 limit\n60-70 1 unseen");
}

/* ---- Why ---- */

T_CASE(reasons_that_change)
{
    waits("batch 1 a 10 - 0 - 3 0 0 1 0 - 3 1\n"
          "life opened 10 -\n"
          "reason 1 1.3 BOOTING 15 20\n"
          "reason 1 1.3 BUSY 20 30 gpu:0_runs_1.1\n"
          "reason 1 1.3 SEATS 30 -\n"
          "now 50",
          "10-15 1 unseen\n15-20 1 loading\n20-30 1 busy\n30-50 1 limit");
}

/* Its own shape only, and while a task of it waits. */
T_CASE(reasons_of_other_shapes)
{
    waits("batch 1 a 10\n"
          "life opened 10 -\n"
          "attempt 1.1 1 1 gpu:0 10 20 50 ok\n"
          "attempt 1.2 1 2 gpu:0 10 30 50 ok\n"
          "reason 1 7.1 SEATS 10 -\n"
          "reason 2 7.2 DRAINED 15 -\n"
          "reason 3 7.3 PAUSED 10 -\n"
          "now 50",
          "10-20 2 limit\n20-30 1 out");
}

/* That of a task of the batch first, then that of the earliest task. */
T_CASE(reasons_of_several_shapes)
{
    waits("batch 5 a 10\nbatch 1 b 10 - 0 - 3 0 0 1 0 - 3 3\n"
          "life opened 10 -\n"
          "attempt 1.1 1 1 gpu:0 10 40 50 ok\n"
          "attempt 1.2 1 2 gpu:0 10 45 50 ok\n"
          "reason 1 7.1 SEATS 10 -\n"
          "reason 2 6.9 DRAINED 20 -\n"
          "reason 3 1.3 PAUSED 30 40\n"
          "now 50",
          "10-20 3 limit\n20-30 3 out\n30-40 3 paused\n40-45 2 out\n45-50 1 unseen");
}

/* Of rows that overlap the one that ends last counts; those without length never do. */
T_CASE(reasons_of_a_clock_that_was_set_back)
{
    waits("batch 1 a 10 - 0 - 3 0 0 1 0 - 3 1\n"
          "reason 1 1.3 SEATS 10 40\n"
          "reason 1 1.3 PAUSED 20 30\n"
          "reason 1 1.3 BUSY 45 25\n"
          "reason 1 1.3 FAULT 35 45\n"
          "now 50",
          "10-35 1 limit\n35-45 1 out\n45-50 1 unseen");
}

/* A wide task gathers while a GPU is kept free, and nothing but a busy GPU is in its way. */
T_CASE(gathering)
{
    waits("shape 1 - 2\nshape 2 - 1\n"
          "batch 1 a 10 - 0 - 3 0 0 1 0 - 3 1\n"
          "batch 2 b 10 - 0 - 3 0 0 1 0 - 3 2\n"
          "reason 1 1.3 BUSY 10 40\n"
          "reason 1 1.3 BOOTING 40 -\n"
          "tenancy gpu:0 kept - 20 30\n"
          "tenancy gpu:1 kept - 25 35\n"
          "tenancy gpu:1 boot whisper 36 38\n"
          "tenancy gpu:1 kept - 45 -\n"
          "now 50",
          "10-20 1 busy\n20-35 1 gathering\n35-40 1 busy\n40-45 1 loading\n45-50 1 loading");
    waits_within("shape 2 - 1\n"
                 "batch 2 b 10 - 0 - 3 0 0 1 0 - 3 2\n"
                 "reason 2 2.3 BUSY 10 -\n"
                 "tenancy gpu:0 kept - 20 30\n"
                 "now 50",
                 0, 0, 2, "10-50 1 busy");
}

/* Each word with the kind that people see. */
T_CASE(kinds_of_reasons)
{
    static const struct {
        const char *word, *why, *kept; /* of a wide task while a GPU is kept free */
    } rows[] = {
        { "BUSY", "busy", "gathering" },
        { "SHARE", "busy", "gathering" },
        { "OCCUPIED", "busy", "gathering" },
        { "MEMORY", "busy", "busy" },
        { "PASSED_OVER_BY", "busy", "busy" },
        { "HEAD_HOLDS", "busy", "busy" },
        { "MIN_RESIDENCE", "busy", "busy" },
        { "MAX_WAIT", "busy", "busy" },
        { "PINNED", "busy", "busy" },
        { "SEATS", "limit", "limit" },
        { "at once", "limit", "limit" },
        { "BOOTING", "loading", "loading" },
        { "UNLOADING", "loading", "loading" },
        { "DRAINED", "out", "out" },
        { "FAULT", "out", "out" },
        { "FOREIGN", "out", "out" },
        { "PAUSED", "paused", "paused" },
        { "paused", "paused", "paused" },
        { "CPUS", "other", "other" },
        { "NEVER", "other", "other" },
        { "RETRY", "other", "other" },
        { "starts wait", "other", "other" },
        { "SOMETHING_NEW", "other", "other" },
        { "NONE", "unseen", "unseen" },
        { "", "unseen", "unseen" },
    };
    struct gpv_night *n = gpv_night_new();
    T_CHECK(n);
    for (size_t i = 0; i < T_LENGTH(rows); i++) {
        struct gpv_wait w = { .word = gpv_keep(n, rows[i].word, strlen(rows[i].word)) };
        T_TEXT(gpv_why_word(gpv_why_of(n, &w)), rows[i].why);
        w.kept = true;
        T_TEXT(gpv_why_word(gpv_why_of(n, &w)), rows[i].kept);
    }
    gpv_night_free(n);
}

T_CASE(words)
{
    T_TEXT(gpv_why_word(GPV_WHY_GATHERING), "gathering");
    T_TEXT(gpv_why_text(GPV_WHY_LIMIT), "a limit of its own is reached");
    T_TEXT(gpv_why_word(GPV_WHYS), "?");
    T_TEXT(gpv_why_text(GPV_WHYS), "?");
}

/* Of each kind the text that had the most time of tasks, of all its rows together. */
T_CASE(texts_of_reasons)
{
    struct gpv_night *n = t_night("shape 1 - 2\nbatch 1 a 10 - 0 - 3 0 0 2 0 - 3 1\n"
                                  "reason 1 1.3 SHARE 10 14 x\n"
                                  "reason 1 1.3 SHARE 14 20 y\n"
                                  "reason 1 1.3 SHARE 20 24 x\n"
                                  "reason 1 1.3 SHARE 24 50 while_kept\n"
                                  "reason 1 1.3 SEATS 50 51 SEATS,_has_2_workers\n"
                                  "tenancy gpu:0 kept - 24 50\n"
                                  "now 60");
    double sum[GPV_WHYS];
    uint32_t text[GPV_WHYS];

    T_EQ(gpv_wait_sum(n, 0, sum, text), 0);
    T_TEXT(gpv_text(n, text[GPV_WHY_BUSY]), "x");
    T_TEXT(gpv_text(n, text[GPV_WHY_GATHERING]), "while kept");
    T_TEXT(gpv_text(n, text[GPV_WHY_LIMIT]), "SEATS, has 2 workers");
    T_EQ(text[GPV_WHY_UNSEEN], 0);
    T_EQ(sum[GPV_WHY_UNSEEN], 18);
    int code = -1;
    for (unsigned at = 1; code < 0; at++) {
        fail_at = at;
        code = gpv_wait_sum(n, 0, sum, text);
        T_EQ(code, fail_at > 0 ? 0 : -1);
    }
    fail_at = 0;
    gpv_night_free(n);
}

/* Of a batch with at_once, tasks wait for their turn while the reason says so.  What is READY waits
 * as in other batches. */
static const char turns[] = "shape 1 - 1\nshape 2 - 1\n"
                            "batch 1 a 10 - 0 turns 6 0 2 0 1 ok=2,cancelled=1 5 1 2\n"
                            "batch 2 b 10 - 0 - 2 0 1 0 0 ok=1 2 1\n"
                            "life opened 10 -\n"
                            "attempt 1.1 1 1 gpu:0 10 12 30 ok\n"
                            "attempt 1.2 1 1 gpu:0 30 30 50 ok\n"
                            "attempt 1.3 0 1 - - - 40 cancelled\n"
                            "attempt 1.4 1 1 gpu:0 50 55 - running\n"
                            "attempt 2.1 1 1 gpu:1 45 46 60 ok\n"
                            "reason 1 1.2 at_once 13 50\n"
                            "reason 1 1.4 BUSY 50 55\n"
                            "reason 2 1.2 at_once 14 20\n"
                            "reason 1 1.5 at_once 56 -\n"
                            "now 70";

T_CASE(tasks_that_wait_for_their_turn)
{
    waits(turns, "10-12 1 unseen\n13-30 5 limit\n30-40 4 limit\n40-50 3 limit\n"
                 "50-55 1 busy\n56-70 2 limit");
    waits_within(turns, 0, 0, 2, "45-46 1 limit"); /* it has no such limit */
}

/* Before a batch was made, none of its tasks waited for the limit of another one.  Those of a later
 * round have waited since the end of the one before. */
T_CASE(turns_of_a_later_batch_and_of_a_later_round)
{
    static const char night[] = "shape 1 - 1\n"
                                "batch 1 a 10 - 0 turns 3 0 1 0 1 ok=1 3 1 1\n"
                                "batch 2 b 30 - 0 held,turns 2 0 1 0 0 ok=1 2 1 1\n"
                                "life opened 10 -\n"
                                "attempt 1.1 1 1 gpu:0 10 10 20 ok\n"
                                "attempt 1.2 1 1 gpu:0 20 20 - running\n"
                                "attempt 2.1 1 1 gpu:0 40 40 50 ok\n"
                                "reason 1 1.2 at_once 11 -\n"
                                "now 60";
    waits(night, "11-20 2 limit\n20-60 1 limit");
    waits_within(night, 0, 0, 2, "30-40 2 limit\n40-60 1 limit");
    waits("shape 1 - 1\n"
          "batch 1 a 10 - 0 turns 2 0 1 0 1 - 2 1 1\n"
          "life opened 10 -\n"
          "attempt 1.1 1 1 gpu:0 10 10 20 ok\n"
          "attempt 1.2 1 1 gpu:0 20 20 30 ok\n"
          "attempt 1.1 2 1 gpu:0 45 45 - running\n"
          "reason 1 1.2 at_once 11 20\n"
          "reason 1 1.2 at_once 46 -\n"
          "now 60",
          "11-20 1 limit\n46-60 1 limit");
}

T_CASE(details_of_texts)
{
    T_TEXT(gpv_reason_detail("SEATS, has 2 workers"), "has 2 workers");
    T_TEXT(gpv_reason_detail("BUSY on gpu:3: other"), "on gpu:3: other");
    T_TEXT(gpv_reason_detail("SEATSx"), "SEATSx");
    T_TEXT(gpv_reason_detail("GPU 3 runs 12.4"), "GPU 3 runs 12.4");
    T_TEXT(gpv_reason_detail("BUSY"), "");
    T_TEXT(gpv_reason_detail(""), "");
}

static void check_percents(double a, double b, double c, unsigned x, unsigned y, unsigned z)
{
    const double sum[GPV_WHYS] = { a, b, c };
    unsigned percent[GPV_WHYS];

    gpv_wait_percents(sum, percent);
    T_EQ(percent[0], x);
    T_EQ(percent[1], y);
    T_EQ(percent[2], z);
    T_EQ(percent[3] + percent[GPV_WHYS - 1], 0);
}

T_CASE(percents_have_the_sum_100)
{
    check_percents(0, 0, 0, 0, 0, 0);
    check_percents(7, 0, 0, 100, 0, 0);
    check_percents(1, 1, 1, 34, 33, 33);
    check_percents(995, 4, 1, 100, 0, 0);
    check_percents(666, 167, 167, 66, 17, 17);
    check_percents(5e18, 1, 3e18, 63, 0, 37);
}

static int stop(const struct gpv_wait *w, void *user)
{
    ++*(int *)user;
    return w->tasks == 2 ? -7 : 0;
}

T_CASE(the_reader_ends_it)
{
    struct gpv_night *n = t_night("batch 1 a 10\n"
                                  "life opened 10 -\n"
                                  "attempt 1.1 1 1 gpu:0 10 20 50 ok\n"
                                  "attempt 1.2 1 1 gpu:0 15 30 50 ok\n"
                                  "now 50");
    int calls = 0;
    T_EQ(gpv_wait_each(n, 0, stop, &calls), -7);
    T_EQ(calls, 2);
    gpv_night_free(n);
}

static int ignore(const struct gpv_wait *w, void *user)
{
    (void)user;
    return w->tasks > 0 ? 0 : 1;
}

/* Each allocation fails once: a reply without memory, and no leak. */
T_CASE(without_memory)
{
    struct gpv_night *n = gpv_night_new();
    const struct gpv_batch batch = { .id = 1 };
    T_CHECK(n);
    T_EQ(gpv_add_batch(n, &batch), 0);
    for (uint32_t i = 1; i <= 200; i++) {
        const struct gpv_attempt a = { .task = GPV_TASK(1, i),
                                       .ready = i,
                                       .started = i + 1,
                                       .ended = 300,
                                       .number = 1,
                                       .outcome = GPV_OK };
        T_EQ(gpv_add_attempt(n, &a), 0);
    }
    T_EQ(gpv_night_end(n, 300), 0);
    unsigned tried = 0;
    for (int code = -1; code < 0; tried++) {
        fail_at = tried + 1;
        code = gpv_wait_each(n, 0, ignore, NULL);
        T_EQ(code, fail_at > 0 ? 0 : -1);
    }
    fail_at = 0;
    T_CMP(tried, >=, 4); /* the shapes, and the list that grew twice */
    gpv_night_free(n);
}

/* ---- Random nights ---- */

enum { MS = 1000000, SPAN = 60, SHAPES = 3, BATCHES = 2, NIGHTS = 2000 };
#define BASE (INT64_C(1800000000000) * MS)

static int64_t draw_time(uint64_t *seed, uint32_t most)
{
    return BASE + (int64_t)draw_below(seed, most) * MS;
}

static int64_t draw_end(uint64_t *seed, int64_t since)
{
    return draw_chance(seed, 10) ? 0 : since + (int64_t)draw_below(seed, 30) * MS;
}

static void draw_attempt(struct gpv_night *n, uint64_t *seed, uint32_t task)
{
    struct gpv_attempt a = { .task = GPV_TASK(1 + draw_below(seed, BATCHES), task) };
    a.ready = draw_chance(seed, 10) ? 0 : draw_time(seed, SPAN);
    a.started = draw_time(seed, SPAN + 5);
    a.ended = draw_end(seed, a.started);
    a.number = !draw_chance(seed, 10);
    a.shape = draw_chance(seed, 10) ? GPV_NONE16 : (uint16_t)draw_below(seed, SHAPES);
    a.outcome = a.ended == 0 ? GPV_RUNNING : draw_chance(seed, 20) ? GPV_RETURNED : GPV_OK;
    T_EQ(gpv_add_attempt(n, &a), 0);
}

static void draw_reason(struct gpv_night *n, uint64_t *seed)
{
    static const char *const word[] = { "BUSY", "SEATS", "DRAINED", "at once" };
    const char *drawn = word[draw_below(seed, T_LENGTH(word))];
    struct gpv_reason r = { .since = draw_time(seed, SPAN), .shape = draw_below(seed, SHAPES) };
    r.task = GPV_TASK(1 + draw_below(seed, BATCHES + 1), 1 + draw_below(seed, 20));
    r.until = draw_end(seed, r.since);
    r.word = gpv_keep(n, drawn, strlen(drawn));
    T_EQ(gpv_add_reason(n, &r), 0);
}

static struct gpv_night *draw_night(uint64_t *seed)
{
    struct gpv_night *n = gpv_night_new();
    T_CHECK(n);
    for (uint32_t i = 0; i < SHAPES; i++) {
        const struct gpv_shape shape = { .id = i + 1, .class = GPV_NONE, .gpus = i };
        T_EQ(gpv_add_shape(n, &shape), 0);
    }
    for (uint32_t id = 1; id <= BATCHES; id++) {
        /* So many that all which were returned wait. */
        struct gpv_batch batch = { .id = id, .ready = 20, .made = draw_time(seed, SPAN) };
        batch.shape = draw_chance(seed, 10) ? GPV_NONE : draw_below(seed, SHAPES);
        batch.turn = draw_below(seed, 4);
        batch.total = 20 + draw_below(seed, 20);
        batch.at_once = draw_chance(seed, 50);
        T_EQ(gpv_add_batch(n, &batch), 0);
    }
    for (uint32_t i = draw_below(seed, 16); i > 0; i--)
        draw_attempt(n, seed, i);
    for (uint32_t i = draw_below(seed, 8); i > 0; i--)
        draw_reason(n, seed);
    for (uint32_t i = draw_below(seed, 3); i > 0; i--) {
        struct gpv_tenancy t = { .since = draw_time(seed, SPAN), .gpu = draw_below(seed, 2) };
        t.until = draw_end(seed, t.since);
        t.kind = 1 + draw_below(seed, 3);
        T_EQ(gpv_add_tenancy(n, &t), 0);
    }
    T_EQ(gpv_night_end(n, BASE + (int64_t)SPAN * MS), 0);
    return n;
}

/* Tasks of a batch that wait at a moment, by shape; [SHAPES]: of none. */
static void count_waiting(const struct gpv_night *n, uint32_t batch, int64_t now,
                          uint32_t ret[SHAPES + 1])
{
    const struct gpv_batch *b = &n->batches.row[batch];
    uint32_t still = b->ready;
    memset(ret, 0, (SHAPES + 1) * sizeof(ret[0]));
    for (size_t i = 0; i < n->attempts.n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[i];
        uint32_t shape = a->shape == GPV_NONE16 ? SHAPES : a->shape;
        if (GPV_BATCH_OF(a->task) != b->id)
            continue;
        ret[shape] += a->ready != 0 && a->ready <= now && now < a->started;
        if (a->outcome == GPV_RETURNED && a->last) {
            ret[shape] += a->ended <= now;
            still--;
        }
    }
    ret[b->shape == GPV_NONE ? SHAPES : b->shape] += b->made <= now ? still : 0;
}

static bool is_open(const struct gpv_night *n, int64_t since, int64_t until, int64_t now)
{
    return since <= now && now < n->to && (until == 0 || now < until);
}

static bool is_at_once(const struct gpv_night *n, const struct gpv_reason *r)
{
    return strcmp(gpv_text(n, r->word), "at once") == 0;
}

/* Of the open rows of a shape the one that ends last, of equal ones the last. */
static const struct gpv_reason *reason_of(const struct gpv_night *n, uint32_t shape, int64_t now)
{
    const struct gpv_reason *found = NULL;
    for (size_t i = 0; i < n->reasons.n; i++) {
        const struct gpv_reason *r = &n->reasons.row[i];
        if (r->shape == shape && is_open(n, r->since, r->until, now) &&
            (!found || gpv_until(n, r->until) >= gpv_until(n, found->until)))
            found = r;
    }
    return found;
}

/* Adds those that wait for their turn. */
static void count_turns(const struct gpv_night *n, uint32_t batch, int64_t now,
                        uint32_t ret[SHAPES + 1])
{
    const struct gpv_batch *b = &n->batches.row[batch];
    uint32_t rows = 0, returned = 0, later[SHAPES] = { 0 };
    int64_t ended = b->made;
    for (size_t i = 0; i < n->attempts.n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[i];
        if (GPV_BATCH_OF(a->task) != b->id)
            continue;
        rows += a->last;
        returned += a->last && a->outcome == GPV_RETURNED;
        ended = a->ended > ended ? a->ended : ended;
        if (a->shape < SHAPES && b->made <= now)
            later[a->shape] += a->number == 0 ? a->ready == 0 && now < a->ended : now < a->ready;
    }
    rows += b->ready - returned;
    uint32_t fresh = b->total > rows ? b->total - rows : 0;
    fresh = fresh < b->turn ? fresh : b->turn;
    if (b->shape < SHAPES)
        later[b->shape] += (b->made <= now ? fresh : 0) + (ended <= now ? b->turn - fresh : 0);
    for (uint32_t shape = 0; shape < SHAPES && b->at_once; shape++) {
        const struct gpv_reason *r = reason_of(n, shape, now);
        ret[shape] += r && is_at_once(n, r) ? later[shape] : 0;
    }
}

static bool is_kept(const struct gpv_night *n, int64_t now)
{
    for (size_t i = 0; i < n->tenancies.n; i++) {
        const struct gpv_tenancy *t = &n->tenancies.row[i];
        if (t->kind == GPV_TENANCY_KEPT && is_open(n, t->since, t->until, now))
            return true;
    }
    return false;
}

static enum gpv_why recounted_why(const struct gpv_night *n, uint32_t batch,
                                  const uint32_t waiting[SHAPES], int64_t now)
{
    const struct gpv_reason *first = NULL;
    uint64_t own = (uint64_t)n->batches.row[batch].id << 32, best = UINT64_MAX;
    for (uint32_t shape = 0; shape < SHAPES; shape++) {
        const struct gpv_reason *r = waiting[shape] > 0 ? reason_of(n, shape, now) : NULL;
        uint64_t rank = r ? r->task ^ own : UINT64_MAX; /* below 2^32: its own */
        if (r && rank >= UINT64_C(1) << 32)
            rank = r->task | UINT64_C(1) << 63;
        if (rank < best) {
            best = rank;
            first = r;
        }
    }
    if (!first)
        return GPV_WHY_UNSEEN;
    const char *word = gpv_text(n, first->word);
    if (strcmp(word, "BUSY") != 0)
        return strcmp(word, "DRAINED") == 0 ? GPV_WHY_OUT : GPV_WHY_LIMIT;
    return n->shapes.row[first->shape].gpus >= 2 && is_kept(n, now) ? GPV_WHY_GATHERING
                                                                    : GPV_WHY_BUSY;
}

/* Task-time by reason, a millisecond after the other. */
static void recount(const struct gpv_night *n, uint32_t batch)
{
    double wanted[GPV_WHYS] = { 0 }, sum[GPV_WHYS];
    for (int64_t now = n->from; now < n->to; now += MS) {
        uint32_t waiting[SHAPES + 1], tasks = 0;
        count_waiting(n, batch, now, waiting);
        count_turns(n, batch, now, waiting);
        for (uint32_t shape = 0; shape <= SHAPES; shape++)
            tasks += waiting[shape];
        wanted[recounted_why(n, batch, waiting, now)] += (double)tasks * MS;
    }
    T_EQ(gpv_wait_sum(n, batch, sum, NULL), 0);
    for (size_t why = 0; why < GPV_WHYS; why++)
        T_EQ(sum[why], wanted[why]);
}

T_CASE(random_nights)
{
    static struct t_script text;
    for (uint64_t seed = 1, round = 0; round < NIGHTS; round++) {
        struct gpv_night *n = draw_night(&seed);
        for (uint32_t batch = 0; batch < BATCHES; batch++) {
            recount(n, batch);
            see_batch(&text, n, batch + 1);
        }
        gpv_night_free(n);
    }
}
