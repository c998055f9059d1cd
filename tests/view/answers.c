/* SPDX-License-Identifier: MIT */
/* answers.c - what the page of a night answers: which batch ran where, what went wrong and what to
 * type next, when the work will be done, and why a batch waited. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pages.h"
#include "queue/text.h"
#include "view/report/turns.h"
#include "view/words.h"

/* ---- Turns ---- */

/* The turns of GPU 0 in words, on a chart whose night has 1,000 minutes, a dot for each. */
static void check_turns(const char *attempts, const char *wanted)
{
    struct text t = { 0 };
    text_add(&t,
             "gpu gpu:0\nshape 1 - 1 1_GPU\nbatch 1 a @0:00 - 0 - 9 0 0 0 1 -\n"
             "batch 2 b @0:00 - 0 - 9 0 0 0 1 -\n%snow @16:40\n",
             attempts);
    struct gpv_night *n = t_night(t.data);
    const struct gpv_chart chart = { T_BEGIN, T_BEGIN + 1000 * MINUTE, 0, 1000 };
    struct gpv_lanes lanes;
    struct gpv_turns turns;
    struct text seen = { 0 };
    char text[GPV_TURN_TEXT];

    T_EQ(gpv_lanes_of(n, &lanes), 0);
    T_EQ(gpv_turns_of(n, &lanes.list.row[0], &chart, &turns), 0);
    for (size_t i = 0; i < turns.n; i++)
        text_add(&seen, "%s%d-%d %s", i ? "; " : "", (int)((turns.row[i].from - T_BEGIN) / MINUTE),
                 (int)((turns.row[i].to - T_BEGIN) / MINUTE),
                 gpv_turn_text(n, &turns.row[i], text));
    T_TEXT(seen.data ? seen.data : "", wanted);
    text_free(&seen);
    text_free(&t);
    free(turns.row);
    gpv_lanes_free(&lanes);
    gpv_night_free(n);
}

T_CASE(turns_of_batches)
{
    check_turns("", "");
    check_turns("attempt 1.1 0 1 - - - @0:10 cancelled 0\n", "");
    /* Two batches of one class; a gap ends a turn, a short one does not. */
    check_turns("attempt 1.1 1 1 gpu:0 - @0:00 @1:00 ok 0\n"
                "attempt 1.2 1 1 gpu:0 - @1:03 @2:00 ok 0\n"
                "attempt 2.1 1 1 gpu:0 - @2:00 @3:00 ok 0\n"
                "attempt 2.2 1 1 gpu:0 - @4:00 - running 0\n",
                "0-120 1 a; 120-180 2 b; 240-1000 2 b");
    /* Short ones that take turns are one; one alone stays. */
    check_turns("attempt 1.1 1 1 gpu:0 - @0:00 @0:05 ok 0\n"
                "attempt 2.1 1 1 gpu:0 - @0:05 @0:10 ok 0\n"
                "attempt 1.2 1 1 gpu:0 - @0:10 @0:15 ok 0\n"
                "attempt 2.2 1 1 gpu:0 - @0:15 @2:00 ok 0\n"
                "attempt 1.3 1 1 gpu:0 - @2:00 @2:05 ok 0\n",
                "0-15 1, 2; 15-120 2 b; 120-125 1 a");
    /* They share the GPU. */
    check_turns("attempt 1.1 1 1 gpu:0 - @0:00 @2:00 ok 0\n"
                "attempt 2.1 1 1 gpu:0 - @1:00 @3:00 error 1\n"
                "attempt 9.1 1 1 gpu:0 - @3:10 @4:00 ok 0\n",
                "0-180 1, 2; 190-240 9 ");
}

/* Batches stand on their bars, whatever their class, and in words. */
T_CASE(batches_on_bars)
{
    struct gpv_night *n = t_night("gpu gpu:0\nclass c\nshape 1 c 1 1_GPU\n"
                                  "batch 1 <a> @0:00 - 0 - 9 0 0 0 1 -\n"
                                  "batch 2 b @0:00 - 0 - 9 0 0 0 1 -\n"
                                  "attempt 1.1 1 1 gpu:0 - @0:00 @1:00 ok 0\n"
                                  "attempt 2.1 1 1 gpu:0 - @1:00 @2:00 ok 0\nnow @2:00\n");
    char *page = t_page_of(n, 0), *where = t_section(page, "where");

    T_CHECK(t_has(where, ">1 &lt;a&gt;</text>") && t_has(where, ">2 b</text>"));
    T_CHECK(t_has(where, "<path class=\"cut\""));
    T_CHECK(t_has_times(where, "<li><b>GPU 0</b>: <span class=\"nw\">%s–%s</span> 1 &lt;a&gt;; ", 0,
                        60));
    T_CHECK(t_has_times(where, "; <span class=\"nw\">%s–%s</span> 2 b</li>", 60, 120));
    free(where);
    free(page);
    gpv_night_free(n);
}

/* ---- What went wrong ---- */

#define FAULTS                                                                       \
    "gpu gpu:0\ngpu gpu:1\ngpu gpu:2\nclass w\nclass x\nshape 1 w 1 1_GPU\n"         \
    "batch 15 rec @0:00 @2:00 0 - 9 0 0 0 0 ok=6,crashed=2,error=1\n"                \
    "attempt 15.7 1 1 gpu:0 - @0:10 @0:11 crashed -11 frame\n"                       \
    "attempt 15.7 2 1 gpu:1 - @0:11 @0:12 crashed -11 frame\n"                       \
    "attempt 15.8 1 1 gpu:0 - @0:12 @0:13 crashed -11 frame\n"                       \
    "attempt 15.9 1 1 gpu:0 - @0:13 @0:14 error 1 key\n"                             \
    "attempt 15.1 1 1 gpu:0 - @0:13 @0:14 returned 0 XID\n"                          \
    "attempt 15.1 2 1 gpu:0 - @0:14 @0:20 ok 0\n"                                    \
    "attempt 15.2 1 1 gpu:1 - @0:20 @1:20 ok 0\n"                                    \
    "out gpu:1 foreign @1:10 @2:00 pid_8123\nout gpu:0 quarantined @1:30 - XID_48\n" \
    "tenancy gpu:2 kept - @0:10 @0:30 15.7:_held_for_2_GPUs\n"                       \
    "tenancy gpu:2 kept - @0:40 @1:05 15.7:_held_for_2_GPUs\n"                       \
    "tenancy gpu:0 unload w @1:00 @1:01 evicted_for_x\n"                             \
    "tenancy gpu:1 unload w @1:05 @1:06 evicted_for_x\n"                             \
    "life opened @0:00 - -\nlife clock @1:50 @1:50 set_by_+3.000_s\nnow @3:00\n"

/* Tasks come before attempts, each stretch has its times, and events are no faults. */
T_CASE(what_went_wrong)
{
    struct gpv_night *n = t_night(FAULTS);
    char *page = t_page_of(n, 0), *wrong = t_section(page, "wrong"),
         *events = t_section(page, "events"), *stood = t_section(page, "free");

    T_CHECK(t_has(page, "<p class=\"big\">3 tasks</p><p>most: 2 tasks CRASHED signal 11 (3x), "));
    T_CHECK(t_has(wrong, "<b>2 tasks CRASHED signal 11 (3x)</b>"));
    T_CHECK(t_has(wrong, "<span class=\"dim\">3 attempts on 2 GPUs: GPU 0-1</span>"));
    T_CHECK(t_has(wrong, "<b>1 task ERROR exit 1</b>"));
    T_CHECK(
        t_has(wrong, "<b>1 task PUT BACK</b><br><span class=\"dim\">XID</span><br>It ended ok"));
    T_CHECK(t_has_times(wrong, "; seen %s, free of tasks from %s<", 70, 80));
    T_CHECK(t_has(stood, "<b>2x GPU 2 kept free</b>"));
    T_CHECK(t_has_times(stood, ">%s–%s</span>, ", 10, 30));
    T_CHECK(t_has_times(stood, ">%s–%s</span><br><span class=\"dim\">2 stretches, together 45 min<",
                        40, 65));
    T_CHECK(!strstr(wrong, "left GPU") && !strstr(wrong, "gpudispatch ") &&
            !strstr(wrong, "clock"));
    T_CHECK(t_has(events, "<li>w left GPU 0-1 for x, "));
    T_CHECK(t_has_times(events,
                        "<li>clock set, <span class=\"nw\">%s</span> <span class=\"dim\">"
                        "set by +3.000 s</span></li>",
                        110, 110));
    T_CHECK(!strstr(page, ">returned<") && t_has(page, "</b> put back</span>"));
    free(stood);
    free(events);
    free(wrong);
    free(page);
    gpv_night_free(n);
}

#define ENDS                                         \
    "gpu gpu:0\nshape 1 - 1 1_GPU\n"                 \
    "attempt 1.1 1 1 gpu:0 @0:00 @0:00 @0:10 ok 0\n" \
    "attempt 1.2 1 1 gpu:0 @0:00 @0:10 @0:20 ok 0\n" \
    "attempt 1.3 1 1 gpu:0 @0:00 @0:20 @0:30 ok 0\n" \
    "attempt 1.4 1 1 gpu:0 @0:00 @0:30 @0:40 ok 0\n"

/* The answer to when it will be done, of the page of a night. */
static void check_when(const char *lines, const char *big, const char *more)
{
    struct gpv_night *n = t_night(lines);
    char *page = t_page_of(n, 0), part[256];

    (void)snprintf(part, sizeof(part), "done?</h2><p class=\"big\">%s</p><p>%s", big, more);
    T_CHECK(t_has(page, part));
    free(page);
    gpv_night_free(n);
}

/* A range, or unknown and why.  [V8] */
T_CASE(when_it_will_be_done)
{
    /* Its tasks take 10 min each, one has just begun and two wait. */
    struct gpv_night *n =
        t_night(ENDS "batch 1 a @0:00 - 0 - 7 0 0 2 1 ok=4 6 1\n"
                     "attempt 1.5 1 1 gpu:0 @0:00 @0:40 - running 0\nnow @0:40\n");
    char *page = t_page_of(n, 0);
    const char *at = strstr(page, "<p class=\"big\">");
    unsigned least, minute, most, other;
    T_CHECK(at && sscanf(at, "<p class=\"big\">%u:%u–%u:%u<", &least, &minute, &most, &other) == 4);
    free(page);
    gpv_night_free(n);
    check_when("gpu gpu:0\nshape 1 - 1 1_GPU\nbatch 1 a @0:00 - 0 - 7 0 0 3 1 ok=3 5 1\n"
               "attempt 1.1 1 1 gpu:0 @0:00 @0:00 @0:10 ok 0\n"
               "attempt 1.2 1 1 gpu:0 @0:00 @0:10 @0:20 ok 0\n"
               "attempt 1.3 1 1 gpu:0 @0:00 @0:20 @0:30 ok 0\n"
               "attempt 1.4 1 1 gpu:0 @0:00 @0:30 - running 0\nnow @0:40\n",
               "unknown", "Not known of 1 a: fewer than 4 of its tasks have ended. ");
    check_when(
        ENDS "batch 1 a @0:00 - 0 - 7 0 0 2 0 ok=4 6 1\nnow @2:00\n", "unknown",
        "Not known of 1 a: its tasks wait, and none has run for as long as one usually takes");
    check_when("gpu gpu:0\nshape 1 - 1 1_GPU\n"
               "attempt 1.1 1 1 gpu:0 @0:00 @0:00 - running 0\nnow @0:40\n",
               "unknown", "The records have no batch that goes on. ");
}

/* Tasks that are held or may be added: the least is known. */
T_CASE(when_more_is_to_come)
{
    struct gpv_night *n =
        t_night(ENDS "batch 1 a @0:00 - 0 - 8 0 1 2 1 ok=4 6 1\n"
                     "attempt 1.5 1 1 gpu:0 @0:00 @0:40 - running 0\nnow @0:40\n");
    char *page = t_page_of(n, 0);

    T_CHECK(t_has(page, " or later</p><p>Not known of 1 a: tasks are held, or may be added. "));
    free(page);
    gpv_night_free(n);
    check_when("gpu gpu:0\nshape 1 - 1 1_GPU\nbatch 1 a @0:00 - 0 - 3 0 3 0 0 - 1 1\nnow @0:40\n",
               "unknown", "Not known of 1 a: tasks are held, or may be added. ");
}

/* Picture and table have one base: a short wait of many tasks outweighs a long wait of one. */
T_CASE(the_picture_of_waits_has_task_time)
{
    struct text t = { 0 };

    text_add(&t, "gpu gpu:0\nshape 1 - 1 1_GPU\nbatch 1 a @0:00 @2:00 0 - 10 0 0 0 0 ok=10\n"
                 "reason 1 1.1 BUSY @0:00 @0:15 busy\nreason 1 1.10 SEATS @0:15 @0:50 seats\n");
    for (int i = 1; i <= 10; i++)
        text_add(&t, "attempt 1.%d 1 1 gpu:0 @0:00 @0:%d @1:00 ok 0\n", i, i < 10 ? 15 : 50);
    text_add(&t, "now @999:00\n"); /* a dot has about an hour */
    struct gpv_night *n = t_night(t.data);
    char *page = t_page_of(n, 0), *waited = t_section(page, "waited");
    char *lane = strstr(waited, "<g data-batch=\"1\">");
    T_CHECK(lane);
    *strstr(lane, "</g>") = 0;
    T_CHECK(t_has(lane, "class=\"t16\"")); /* busy */
    T_CHECK(!strstr(lane, "t17"));         /* a limit */
    free(waited);
    free(page);
    gpv_night_free(n);
    text_free(&t);
}

/* All reasons, with what their texts add; together 100 %. */
T_CASE(why_a_batch_waited)
{
    struct gpv_night *n = t_night(
        "gpu gpu:0\ngpu gpu:1\nshape 1 - 2 2_GPUs\nbatch 7 rec @0:00 - 0 - 9 0 0 1 0 - 3 1\n"
        "reason 1 7.3 SHARE @0:00 @0:33 SHARE_on_gpu:0:_busy;_task_7.2\n"
        "reason 1 7.3 SEATS @0:33 @1:06 SEATS,_has_3_workers,_class_w:_the_most\n"
        "reason 1 7.3 SHARE @1:06 @1:38 SHARE_on_gpu:0\nreason 1 7.3 FAULT @1:38 @1:38:12 <b>\n"
        "tenancy gpu:1 kept - @1:06 @1:38 7.3:_held_for_2_GPUs\nnow @1:40\n");
    char *page = t_page_of(n, 0), *given = t_section(page, "batches");

    T_CHECK(t_has(given,
                  "<td><span class=\"nw\">33 %</span> every GPU that it may use is busy"
                  "<br><span class=\"nw\">33 %</span> a limit of its "
                  "own is reached: <span class=\"dim\">has 3 workers, class w: the most</span>"
                  "<br><span class=\"nw\">32 %</span> it has some of the GPUs that it needs, kept "
                  "free for it: GPU 1<br>"
                  "<span class=\"nw\">2 %</span> no reason was recorded<br>"
                  "<span class=\"nw\">&lt;1 %</span> GPUs are out of use: "
                  "<span class=\"dim\">&lt;b&gt;</span></td>"));
    free(given);
    free(page);
    gpv_night_free(n);
}

/* One end has one time. */
T_CASE(one_end)
{
    struct gpv_night *n = t_night("gpu gpu:0\nshape 1 - 1 1_GPU\n"
                                  "batch 1 a @0:00 @0:09 0 - 1 0 0 0 0 error=1\n"
                                  "attempt 1.1 1 1 gpu:0 - @0:00 @0:09 error 1 x\nnow @1:00\n");
    char *page = t_page_of(n, 0);

    T_CHECK(t_has_times(page,
                        "<p class=\"big\">1 task</p><p>most: 1 task ERROR exit 1, %s, in 1 a"
                        "</p></div>%.0s",
                        9, 9));
    free(page);
    gpv_night_free(n);
}

/* Each command is there once, and the log is the first one. */
T_CASE(what_to_type_next)
{
    struct gpv_night *n = t_night(FAULTS);
    char *page = t_page_of(n, 0), *next = t_section(page, "next");

    T_CHECK(t_has(next,
                  "<ol>\n<li><code>gpudispatch log 15.7</code>: why 2 tasks of 15 rec CRASHED "
                  "signal 11</li>\n"
                  "<li><code>gpudispatch log 15.9</code>: why 1 task of 15 rec ERROR exit 1</li>\n"
                  "<li><code>gpudispatch retry 15 --failed</code>: another attempt for 3 failed "
                  "tasks of 15 rec, once the cause is mended</li>\n"
                  "<li><code>gpudispatch gpus</code>: GPU 0 is out of use</li>\n</ol>"));
    free(next);
    free(page);
    gpv_night_free(n);
}
