/* SPDX-License-Identifier: MIT */
/*
 * part.c - a part of a night is what its records were at the end of the part.
 *
 * What is wanted is the part as lines, or the counts of its batches.  Drawn tasks live through
 * states that the test knows, and the counts of each time must be those of the states.
 */
#include "view/night/part.h"

#include <string.h>

#include "../queue/failing.h"
#include "harness.h"
#include "queue/draw.h"
#include "rows.h"
#include "view/line.h"

/* ---- Rows ---- */

/* Lines as scripts have them. */
static void readable(struct gpv_lines *l)
{
    for (size_t i = 0; i < l->size; i++)
        l->text[i] = l->text[i] == '\t' ? ' ' : l->text[i];
    T_CHECK(l->size > 0);
    l->text[l->size - 1] = 0; /* the last newline */
}

static void part_is(const char *rows, int64_t from, int64_t to, const char *wanted)
{
    struct gpv_night *n = t_night(rows), *p = gpv_night_part(n, from, to);
    struct gpv_lines lines = { 0 };
    T_CHECK(p);
    T_EQ(p->from, from);
    T_EQ(p->to, to);
    gpv_night_free(n); /* the part keeps the texts */
    T_CHECK(gpv_night_write(p, &lines));
    readable(&lines);
    T_TEXT(lines.text, wanted);
    gpv_lines_free(&lines);
    gpv_night_free(p);
}

static const char rows[] = "records 1 box\n"
                           "gpu gpu:0\n"
                           "class whisper\n"
                           "shape 1 whisper 1\n"
                           "attempt 1.1 1 1 gpu:0 5 10 20 ok\n"
                           "attempt 1.2 1 1 gpu:0 5 20 40 crashed -11 signal_11 first\n"
                           "attempt 1.3 0 1 - 5 - 45 cancelled\n"
                           "tenancy gpu:0 boot whisper 5 8 first_use\n"
                           "tenancy gpu:0 unload whisper 42 48\n"
                           "out gpu:0 drained 48 -\n"
                           "reason 1 1.2 BUSY 5 20 busy\n"
                           "life opened 1 50\n"
                           "left 1 9 7 8\nleft 1 30 5 6\nleft 1 31 3 4\n"
                           "now 60";

T_CASE(rows_that_go_on)
{
    part_is(rows, 10, 30,
            "records 1 box\n"
            "gpu gpu:0      \n"
            "class whisper\n"
            "shape 1 whisper 1 \n"
            "attempt 1.1 1 1 gpu:0 5 10 20 ok 0  \n"
            "attempt 1.2 1 1 gpu:0 5 20  running 0  first\n"
            "reason 1 1.2 BUSY 5 20 busy\n"
            "life opened 1  \n"
            "left 1 30 5 6\n"
            "now 30");
}

T_CASE(rows_at_both_ends)
{
    part_is(rows, 40, 48,
            "records 1 box\n"
            "gpu gpu:0      \n"
            "class whisper\n"
            "shape 1 whisper 1 \n"
            "attempt 1.2 1 1 gpu:0 5 20 40 crashed -11 signal 11 first\n"
            "attempt 1.3 0 1  5 45 45 cancelled 0  \n"
            "tenancy gpu:0 unload whisper 42 48 \n"
            "out gpu:0 drained 48  \n"
            "life opened 1  \n"
            "now 48");
}

T_CASE(a_part_without_a_row)
{
    struct gpv_night *n = t_night(rows), *p = gpv_night_part(n, 1, 1), *q = gpv_night_part(p, 0, 0);
    T_CHECK(p && q);
    T_EQ(p->attempts.n + p->tenancies.n + p->outs.n + p->reasons.n, 0);
    T_EQ(p->lives.n, 1);
    T_EQ(q->lives.n, 0);
    T_CHECK(q->lived); /* no agent ran */
    gpv_night_free(p);
    gpv_night_free(n);
    gpv_night_free(q);
}

/* ---- Counts of batches ---- */

static void counts_are(const char *night, int64_t to, const char *wanted)
{
    static struct t_script text;
    struct gpv_night *n = t_night(night), *p = gpv_night_part(n, n->from, to);
    T_CHECK(p);
    text.size = 0;
    text.text[0] = 0;
    for (size_t i = 0; i < p->batches.n; i++) {
        const struct gpv_batch *b = &p->batches.row[i];
        t_script_add(&text, "%s%u:", i ? "\n" : "", b->id);
        for (uint32_t outcome = 0; outcome < GPV_OUTCOMES; outcome++)
            if (b->ended_by[outcome] != 0)
                t_script_add(&text, " %u %s", b->ended_by[outcome], gpv_outcome_word(outcome));
        t_script_add(&text, " %u running %u ready %u held", b->running, b->ready, b->held);
        if (b->turn != 0)
            t_script_add(&text, ", %u of them for their turn,", b->turn);
        if (b->first != 0)
            t_script_add(&text, " first %u", b->first);
        t_script_add(&text, b->ended != 0 ? " ended" : "");
    }
    T_TEXT(text.text, wanted);
    gpv_night_free(n);
    gpv_night_free(p);
}

static const char batch[] = "gpu gpu:0\n"
                            "class whisper\n"
                            "shape 1 whisper 1\n"
                            "batch 7 night 5 90 0 - 6 1 0 0 0 ok=4,crashed=1,cancelled=1\n"
                            "attempt 7.1 1 1 gpu:0 5 10 20 ok\n"
                            "attempt 7.2 1 1 gpu:0 5 20 30 error 1\n"
                            "attempt 7.2 2 1 gpu:0 30 40 50 crashed -11\n"
                            "attempt 7.3 1 1 gpu:0 5 50 60 returned\n"
                            "attempt 7.3 2 1 gpu:0 5 60 70 ok\n"
                            "attempt 7.4 1 1 gpu:0 5 70 90 ok\n"
                            "attempt 7.5 0 1 - 5 - 80 cancelled\n"
                            "batch 8 late 85 - 0 held 3 0 3 0 0\n"
                            "now 100";

/* One of the tasks is joined: it has ended, as nobody knows when. */
T_CASE(counts_at_a_time)
{
    counts_are(batch, 4, "");
    counts_are(batch, 5, "7: 1 ok 0 running 5 ready 0 held first 1");
    counts_are(batch, 10, "7: 1 ok 1 running 4 ready 0 held first 2");
    counts_are(batch, 25, "7: 2 ok 1 running 3 ready 0 held first 3");
    counts_are(batch, 35, "7: 2 ok 0 running 4 ready 0 held first 2");
    counts_are(batch, 55, "7: 2 ok 1 crashed 1 running 2 ready 0 held first 4");
    counts_are(batch, 60, "7: 2 ok 1 crashed 1 running 2 ready 0 held first 4");
    counts_are(batch, 75, "7: 3 ok 1 crashed 1 running 1 ready 0 held first 5");
    counts_are(batch, 88,
               "7: 3 ok 1 crashed 1 cancelled 1 running 0 ready 0 held\n"
               "8: 0 running 0 ready 3 held");
    counts_are(batch, 90,
               "7: 4 ok 1 crashed 1 cancelled 0 running 0 ready 0 held ended\n"
               "8: 0 running 0 ready 3 held");
    counts_are(batch, 100,
               "7: 4 ok 1 crashed 1 cancelled 0 running 0 ready 0 held ended\n"
               "8: 0 running 0 ready 3 held");
}

/* It had ended, until somebody let it begin anew. */
T_CASE(a_retry_by_a_person)
{
    static const char night[] = "batch 7 night 5 90 0 - 1 0 0 0 0 ok=1\n"
                                "attempt 7.1 1 - gpu:0 5 10 20 error 1\n"
                                "attempt 7.1 2 - gpu:0 60 70 90 ok\n"
                                "now 100";
    counts_are(night, 30, "7: 1 error 0 running 0 ready 0 held");
    counts_are(night, 65, "7: 0 running 1 ready 0 held first 1");
    counts_are(night, 75, "7: 1 running 0 ready 0 held");
}

/* Of a batch with turns, what is not ready yet is held. */
T_CASE(tasks_that_wait_for_their_turn)
{
    static const char night[] = "shape 1 - 1\n"
                                "batch 7 night 5 - 0 turns 6 0 2 0 1 ok=3 4 1 2\n"
                                "attempt 7.1 1 1 gpu:0 5 10 20 ok\n"
                                "attempt 7.2 1 1 gpu:0 20 20 40 error 1\n"
                                "attempt 7.3 1 1 gpu:0 45 50 60 ok\n"
                                "attempt 7.2 2 1 gpu:0 60 60 80 ok\n"
                                "attempt 7.6 1 1 gpu:0 80 81 - running\n"
                                "now 100";
    counts_are(night, 10, "7: 1 running 0 ready 5 held, 5 of them for their turn, first 2");
    counts_are(night, 15, "7: 1 running 0 ready 5 held, 5 of them for their turn, first 2");
    counts_are(night, 30, "7: 1 ok 1 running 0 ready 4 held, 4 of them for their turn, first 3");
    counts_are(night, 47,
               "7: 1 ok 1 error 0 running 1 ready 3 held, 3 of them for their turn, first 3");
    counts_are(night, 55,
               "7: 1 ok 1 error 1 running 0 ready 3 held, 3 of them for their turn, first 4");
    counts_are(night, 100, "7: 3 ok 1 running 0 ready 2 held, 2 of them for their turn, first 4");
}

/* The counts of the row are less than its rows have: none is less than 0. */
T_CASE(counts_that_do_not_fit)
{
    counts_are("batch 7 night 5 90 0 - 1 0 0 0 0 ok=1\n"
               "attempt 7.1 1 - gpu:0 5 10 20 ok\n"
               "attempt 7.2 1 - gpu:0 5 10 20 ok\n"
               "attempt 8.1 1 - gpu:0 5 10 20 ok\n"
               "now 100",
               15, "7: 1 running 0 ready 0 held");
}

/* ---- Random nights ---- */

enum { NIGHTS = 2000, TASKS = 12, SPAN = 100 };

enum state { READY, RUNNING, ENDED };

struct life {
    enum state at[SPAN + 1]; /* of a task, at each time */
    uint8_t outcome[SPAN + 1];
};

static void fill(struct life *l, int from, int to, enum state state, uint8_t outcome)
{
    for (int t = from; t < to && t <= SPAN; t++) {
        l->at[t] = state;
        l->outcome[t] = outcome;
    }
}

/* Waits, runs, and returns or fails a few times. */
static void draw_task(struct gpv_night *n, uint64_t *seed, uint32_t number, struct life *l)
{
    int ready = 1, now = 1;
    uint8_t outcome = 0;
    for (uint32_t attempt = 1;; attempt++) {
        int start = now + 1 + (int)draw_below(seed, 30);
        int end = start + 1 + (int)draw_below(seed, 30);
        bool ends = draw_chance(seed, 60);
        fill(l, now, start, READY, outcome);
        outcome = ends                    ? (uint8_t)(1 + draw_below(seed, 8))
                  : draw_chance(seed, 50) ? GPV_RETURNED
                                          : GPV_ERROR;
        fill(l, start, end, RUNNING, 0);
        fill(l, end, SPAN + 1, ends ? ENDED : READY, outcome);
        if (start > SPAN)
            return;
        struct gpv_attempt a = { .task = GPV_TASK(1, number),
                                 .number = attempt,
                                 .shape = GPV_NONE16,
                                 .ready = ready,
                                 .started = start };
        a.ended = end <= SPAN ? end : 0;
        a.outcome = end <= SPAN ? outcome : GPV_RUNNING;
        T_EQ(gpv_add_attempt(n, &a), 0);
        if (ends || end > SPAN)
            return;
        now = end;
        ready = outcome == GPV_RETURNED ? ready : end;
    }
}

static struct gpv_batch counted(const struct life *l, int time)
{
    struct gpv_batch b = { .id = 1, .total = TASKS, .made = 1 };
    for (uint32_t i = 0; i < TASKS; i++) {
        b.running += l[i].at[time] == RUNNING;
        b.ready += l[i].at[time] == READY;
        b.first = b.first == 0 && l[i].at[time] == READY ? i + 1 : b.first;
        if (l[i].at[time] == ENDED)
            b.ended_by[l[i].outcome[time]]++;
    }
    return b;
}

static void same_counts(const struct gpv_batch *a, const struct gpv_batch *b)
{
    T_EQ(a->running, b->running);
    T_EQ(a->ready, b->ready);
    for (uint32_t i = 0; i < GPV_OUTCOMES; i++)
        T_EQ(a->ended_by[i], b->ended_by[i]);
}

/* An error that nobody has tried again until the end of the night is not one that waits. */
static bool is_known(const struct life *l)
{
    for (int i = 0; i < TASKS; i++)
        if (l[i].at[SPAN] == READY && l[i].outcome[SPAN] == GPV_ERROR)
            return false;
    return true;
}

T_CASE(random_counts)
{
    int seen = 0;
    for (uint64_t seed = 1, round = 0; round < NIGHTS; round++) {
        static struct life life[TASKS];
        struct gpv_night *n = gpv_night_new();
        T_CHECK(n);
        for (uint32_t i = 0; i < TASKS; i++)
            draw_task(n, &seed, i + 1, &life[i]);
        const struct gpv_batch end = counted(life, SPAN);
        T_EQ(gpv_add_batch(n, &end), 0);
        T_EQ(gpv_night_end(n, SPAN), 0);
        for (int time = 1; time <= SPAN && is_known(life); time += 3) {
            struct gpv_night *p = gpv_night_part(n, n->from, time);
            struct gpv_batch wanted = counted(life, time);
            T_CHECK(p);
            same_counts(&p->batches.row[0], &wanted);
            if (end.first == 0 || life[end.first - 1].at[time] != RUNNING)
                T_EQ(p->batches.row[0].first, wanted.first);
            gpv_night_free(p);
            seen++;
        }
        gpv_night_free(n);
    }
    T_CHECK(seen >= NIGHTS);
}

T_CASE(no_memory)
{
    struct gpv_night *n = t_night(batch);
    for (unsigned i = 1;; i++) {
        fail_at = i;
        struct gpv_night *p = gpv_night_part(n, 5, 50);
        unsigned left = fail_at;
        fail_at = 0;
        gpv_night_free(p);
        if (left != 0)
            break; /* it has not been reached */
        T_CHECK(!p);
        T_CMP(i, <, 100);
    }
    gpv_night_free(n);
}
