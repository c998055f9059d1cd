/* SPDX-License-Identifier: MIT */
/* findings.c - nights as lines, and the findings that they must have, as lines. */
#include "harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/draw.h"
#include "queue/failing.h"
#include "rows.h"
#include "queue/text.h"

#include "view/night/batches.h"
#include "view/night/findings.h"
#include "view/words.h"

#define GPUS "gpu gpu:0\ngpu gpu:1\ngpu gpu:2\ngpu gpu:3\n"
#define SHAPES "shape 1 commands 1 1_GPU\nshape 2 commands 2 2_GPUs\n"

/* ---- Findings as lines ---- */

static void add_end(struct text *t, const struct gpv_night *n, const struct gpv_finding *f)
{
    const struct gpv_set set = gpv_set(n, f->set);
    char gpus[64];

    text_add(t, " of %" PRIu32 ".", f->batch);
    for (uint32_t i = 0; i < f->n_ranges; i++) {
        text_add(t, "%s%" PRIu32, i > 0 ? "," : "", f->range[i].from);
        if (f->range[i].to != f->range[i].from)
            text_add(t, "-%" PRIu32, f->range[i].to);
    }
    if (f->more != 0)
        text_add(t, " and %" PRIu32 " more", f->more);
    text_add(t, " (%" PRIu32 ")", f->n_tasks);
    if (set.n > 0)
        text_add(t, " on %s", gpv_ranges(set.gpu, set.n, gpus, sizeof(gpus)));
    text_add(t, ", still %" PRIu64, f->still);
}

/* "TEXT, its facts, FIRST-LAST: 'TEXT' -> COMMAND" */
static void add_finding(struct text *t, const struct gpv_night *n, const struct gpv_finding *f)
{
    char text[128], first[32], last[32], length[GPV_WORD];

    text_add(t, "%s", gpv_finding_text(n, f, text, sizeof(text)));
    if (f->kind == GPV_FINDING_BAD)
        add_end(t, n, f);
    else if (f->batch != 0)
        text_add(t, " for %" PRIu32, f->batch);
    if (f->kind != GPV_FINDING_BAD)
        text_add(t, ", %s", gpv_span(f->ns, length));
    text_add(t, ", %s-%s%s", t_clock(f->first, first), t_clock(f->last, last),
             f->goes_on ? " and on" : "");
    for (uint32_t i = 0; f->n_parts > 1 && i < f->n_parts && i < GPV_FINDING_PARTS; i++)
        text_add(t, "%s%s-%s", i > 0 ? ", " : " (", t_clock(f->part[i].from, first),
                 t_clock(f->part[i].to, last));
    if (f->n_parts > GPV_FINDING_PARTS)
        text_add(t, " and %" PRIu32 " more", f->n_parts - GPV_FINDING_PARTS);
    text_add(t, f->n_parts > 1 ? ")" : "");
    if (f->cleared != 0)
        text_add(t, ", free of tasks from %s", t_clock(f->cleared, first));
    text_add(t, ": '%s'", gpv_text(n, f->text));
    text_add(t, *f->command ? " -> %s\n" : "\n", f->command);
}

static void check_within(const char *lines, int64_t from, int64_t to, const char *wanted)
{
    struct gpv_night *n = t_night_within(lines, from, to);
    struct gpv_findings *f = gpv_findings_of(n);
    struct text t = { 0 };
    uint64_t bad = 0;

    T_CHECK(f);
    for (size_t i = 0; i < f->n; i++) {
        add_finding(&t, n, &f->row[i]);
        bad += f->row[i].kind == GPV_FINDING_BAD ? f->row[i].count : 0;
    }
    T_TEXT(t.data ? t.data : "", wanted);
    T_EQ(f->bad, bad);
    text_free(&t);
    gpv_findings_free(f);
    gpv_night_free(n);
}

static void check(const char *lines, const char *wanted)
{
    check_within(lines, 0, 0, wanted);
}

/* ---- Bad ends ---- */

T_CASE(none)
{
    check("", "");
    check(GPUS SHAPES "batch 1 a @0:00 - 0 - 1 0 0 0 1\n"
                      "attempt 1.1 1 1 gpu:0 @0:00 @0:01 @0:02 ok 0\n"
                      "attempt 1.2 1 1 gpu:0 @0:00 @0:02 - running 0\n"
                      "now @0:03\n",
          "");
}

/* 22 tasks crash twice each, on three GPUs in turn. */
T_CASE(crash_burst)
{
    struct text t = { 0 };

    text_add(&t, GPUS SHAPES "batch 15 rec @0:00 @2:00 0 - 900 0 0 0 0 ok=878,crashed=22\n");
    for (int i = 0; i < 44; i++)
        text_add(&t,
                 "attempt 15.%d %d 1 gpu:%d @0:00 @0:%02d @0:%02d:30 crashed -11 "
                 "engine:_frame_%d\n",
                 610 + i / 2, i % 2 + 1, i % 3 + 1, i, i, i);
    text_add(&t, "attempt 15.1 1 1 gpu:0 @0:00 @0:00 @0:01 ok 0\n");
    check(t.data,
          "22 tasks CRASHED signal 11 (44x) of 15.610-631 (22) on 1-3, still 22, 0:00:30-0:43:30: "
          "'engine: frame 0' -> gpudispatch log 15.610\n");
    text_free(&t);
}

T_CASE(failed_and_later_ok)
{
    check(GPUS SHAPES "batch 3 a @0:00 @0:09 0 - 3 0 0 0 0 ok=2,error=1\n"
                      "attempt 3.1 1 1 gpu:0 @0:00 @0:01 @0:02 error 1 bad\n"
                      "attempt 3.2 1 1 gpu:0 @0:00 @0:02 @0:03 error 1 bad\n"
                      "attempt 3.1 2 1 gpu:0 @0:00 @0:03 @0:04 ok 0\n"
                      "attempt 3.2 2 1 gpu:0 @0:00 @0:04 @0:05 ok 0\n",
          "2 tasks ERROR exit 1 of 3.1-2 (2) on 0, still 0, 0:02-0:03: 'bad'\n");
    /* One has failed in another way since then, one runs again: neither is ok. */
    check(GPUS SHAPES "batch 3 a @0:00 - 0 - 3 0 0 0 1 timeout=1,ok=1\n"
                      "attempt 3.1 1 1 gpu:0 @0:00 @0:01 @0:02 error 1 bad\n"
                      "attempt 3.2 1 1 gpu:0 @0:00 @0:02 @0:03 error 1 bad\n"
                      "attempt 3.3 1 1 gpu:0 @0:00 @0:02 @0:03 error 1 bad\n"
                      "attempt 3.1 2 1 gpu:0 @0:00 @0:03 @0:04 timeout 0\n"
                      "attempt 3.2 2 1 gpu:1 @0:00 @0:04 @0:05 ok 0\n"
                      "attempt 3.3 2 1 gpu:1 @0:00 @0:05 - running 0\nnow @0:06\n",
          "3 tasks ERROR exit 1 of 3.1-3 (3) on 0, still 2, 0:02-0:03: 'bad' "
          "-> gpudispatch log 3.1\n"
          "1 task TIMEOUT of 3.1 (1) on 0, still 1, 0:04-0:04: '' -> gpudispatch log 3.1\n");
}

T_CASE(the_first_one_is_the_one_that_ended_first)
{
    check(GPUS SHAPES "batch 3 a @0:00 @0:09 0 - 3 0 0 0 0 error=2\n"
                      "attempt 3.1 1 1 gpu:0 @0:00 @0:01 @0:08 error 1 after_7\n"
                      "attempt 3.2 1 1 gpu:1 @0:00 @0:02 @0:03 error 1 after_1\n",
          "2 tasks ERROR exit 1 of 3.1-2 (2) on 0-1, still 2, 0:03-0:08: 'after 1' "
          "-> gpudispatch log 3.1\n");
}

T_CASE(digits_count_as_equal)
{
    check(GPUS SHAPES "batch 1 a @0:00 @0:09 0 - 9 0 0 0 0 error=6\n"
                      "attempt 1.1 1 1 gpu:0 @0:00 @0:01 @0:02 error 1 at_12.5_GiB,_x7\n"
                      "attempt 1.3 1 1 gpu:0 @0:00 @0:02 @0:03 error 1 at_9.125_GiB,_x88\n"
                      /* A digit less or more in another place, and another begin or end. */
                      "attempt 1.4 1 1 gpu:0 @0:00 @0:03 @0:04 error 1 at_12_GiB,_x7\n"
                      "attempt 1.5 1 1 gpu:0 @0:00 @0:04 @0:05 error 1 at_12.5_GiB,_x\n"
                      "attempt 1.6 1 1 gpu:0 @0:00 @0:05 @0:06 error 1 at_12.5_GiB,_x7.\n"
                      "attempt 1.7 1 1 gpu:0 @0:00 @0:06 @0:07 error 1\n",
          "2 tasks ERROR exit 1 of 1.1,3 (2) on 0, still 2, 0:02-0:03: 'at 12.5 GiB, x7' "
          "-> gpudispatch log 1.1\n"
          "1 task ERROR exit 1 of 1.4 (1) on 0, still 1, 0:04-0:04: 'at 12 GiB, x7' "
          "-> gpudispatch log 1.4\n"
          "1 task ERROR exit 1 of 1.5 (1) on 0, still 1, 0:05-0:05: 'at 12.5 GiB, x' "
          "-> gpudispatch log 1.5\n"
          "1 task ERROR exit 1 of 1.6 (1) on 0, still 1, 0:06-0:06: 'at 12.5 GiB, x7.' "
          "-> gpudispatch log 1.6\n"
          "1 task ERROR exit 1 of 1.7 (1) on 0, still 1, 0:07-0:07: '' -> gpudispatch log 1.7\n");
}

T_CASE(batch_outcome_and_status_differ)
{
    check(
        GPUS SHAPES "batch 1 a @0:00 @0:09 0 - 9 0 0 0 0 error=2,timeout=1\n"
                    "batch 2 b @0:00 @0:09 0 - 9 0 0 0 0 error=1\n"
                    "attempt 1.1 1 1 gpu:0 @0:00 @0:01 @0:02 error 1 bad\n"
                    "attempt 1.2 1 1 gpu:0 @0:00 @0:02 @0:03 error 2 bad\n"
                    "attempt 1.3 1 1 gpu:0 @0:00 @0:03 @0:04 timeout 1 bad\n"
                    "attempt 2.1 1 1 gpu:0 @0:00 @0:04 @0:05 error 1 bad\n",
        "1 task ERROR exit 1 of 1.1 (1) on 0, still 1, 0:02-0:02: 'bad' -> gpudispatch log 1.1\n"
        "1 task ERROR exit 2 of 1.2 (1) on 0, still 1, 0:03-0:03: 'bad' -> gpudispatch log 1.2\n"
        "1 task TIMEOUT exit 1 of 1.3 (1) on 0, still 1, 0:04-0:04: 'bad' "
        "-> gpudispatch log 1.3\n"
        "1 task ERROR exit 1 of 2.1 (1) on 0, still 1, 0:05-0:05: 'bad' -> gpudispatch log 2.1\n");
}

/* What to type next differs; a task that ended without an attempt was on no GPU. */
T_CASE(each_outcome)
{
    check(GPUS SHAPES
          "batch 1 a @0:00 @0:09 0 - 9 0 0 0 0 cancelled=1,no_worker=1,skipped=2,lost=1\n"
          "attempt 1.1 0 1 - - - @0:01 cancelled 0 cancelled_by_a_person\n"
          "attempt 1.2 0 1 - - - @0:02 no_worker 0 class_x_has_failed\n"
          "attempt 1.3 0 1 - - - @0:03 skipped 0 1.1_did_not_end_ok\n"
          "attempt 1.4 0 1 - - - @0:04 skipped 0 1.1_did_not_end_ok\n"
          "attempt 1.5 3 1 gpu:1,gpu:3 @0:00 @0:01 @0:05 lost 0 lost\n"
          "attempt 1.6 1 1 gpu:2 @0:00 @0:01 @0:06 returned 0 XID_48\n",
          "2 tasks SKIPPED of 1.3-4 (2), still 2, 0:03-0:04: '1.1 did not end ok' "
          "-> gpudispatch show 1.3\n"
          "1 task CANCELLED of 1.1 (1), still 1, 0:01-0:01: 'cancelled by a person'\n"
          "1 task NO WORKER of 1.2 (1), still 1, 0:02-0:02: 'class x has failed' "
          "-> gpudispatch retry 1 --failed\n"
          "1 task LOST of 1.5 (1) on 1, 3, still 1, 0:05-0:05: 'lost' "
          "-> gpudispatch retry 1 --lost\n"
          "1 task PUT BACK of 1.6 (1) on 2, still 1, 0:06-0:06: 'XID 48'\n");
}

/* Its tasks wait for another attempt and have a log; or the queue has forgotten the batch. */
T_CASE(nothing_to_retry)
{
    check(GPUS SHAPES "batch 1 a @0:00 - 0 - 2 0 0 2 0 -\n"
                      "attempt 1.1 1 1 gpu:0 @0:00 @0:01 @0:02 crashed -6 x\n"
                      "attempt 1.2 1 1 gpu:0 @0:00 @0:02 @0:03 crashed -6 x\n"
                      "attempt 7.1 1 1 gpu:0 @0:00 @0:02 @0:04 crashed -6 x\n",
          "2 tasks CRASHED signal 6 of 1.1-2 (2) on 0, still 2, 0:02-0:03: 'x' "
          "-> gpudispatch log 1.1\n"
          "1 task CRASHED signal 6 of 7.1 (1) on 0, still 1, 0:04-0:04: 'x'\n");
}

T_CASE(many_ranges)
{
    struct text t = { 0 };

    text_add(&t, GPUS SHAPES "batch 2 a @0:00 @9:00 0 - 900 0 0 0 0 error=150\n");
    for (int i = 99; i >= 0; i--)
        text_add(&t, "attempt 2.%d 1 1 gpu:0 @0:00 @1:%02d @2:00 error 1 x\n", 3 * i + 1, i % 60);
    for (int i = 0; i < 50; i++)
        text_add(&t, "attempt 2.%d 1 1 gpu:0 @0:00 @1:%02d @2:00 error 1 x\n", 3 * i + 2, i);
    check(t.data,
          "150 tasks ERROR exit 1 of 2.1-2,4-5,7-8,10-11,13-14,16-17,19-20,22-23 and 134 more "
          "(150) on 0, still 150, 2:00-2:00: 'x' -> gpudispatch log 2.1\n");
    text_free(&t);
}

/* Views escape; here a text stays what it is. */
T_CASE(hostile_texts)
{
    check("gpu gpu:0;reboot\n"
          "class <b>\\x1b[2J</b>\n"
          "batch 1 a @0:00 @0:09 0 - 9 0 0 0 0 error=1\n"
          "attempt 1.1 1 - gpu:0;reboot @0:00 @0:01 @0:02 error 1 \\x1b]0;x\\x07<script>\\n&amp;\n"
          "attempt 1.2 1 - gpu:0;reboot @0:00 @0:01 @0:03 error 1 \\xff\\xc3\n"
          "out gpu:0;reboot drained @0:00 - ';_$(reboot)\n"
          "tenancy gpu:0;reboot unload <b>\\x1b[2J</b> @0:04 @0:05 evicted\\r\n",
          "1 task ERROR exit 1 of 1.1 (1) on 0, still 1, 0:02-0:02: '\033]0;x\007<script>\n&amp;' "
          "-> gpudispatch log 1.1\n"
          "1 task ERROR exit 1 of 1.2 (1) on 0, still 1, 0:03-0:03: '\xef\xbf\xbd\xef\xbf\xbd' "
          "-> gpudispatch log 1.2\n"
          "GPU 0;reboot DRAINED, 5 min, 0:00-0:05 and on: ''; $(reboot)' -> gpudispatch gpus\n"
          "<b>\033[2J</b> left GPU 0;reboot, 60 s, 0:04-0:05: 'evictedr'\n");
}

/* ---- GPUs and the agent ---- */

T_CASE(out_of_use)
{
    check(GPUS "out gpu:1 quarantined @5:12 - XID_48\n"
               "out gpu:2 foreign @1:10 @1:20 pid_8123,_41_GiB\n"
               "out gpu:2 foreign @2:10 @2:15 pid_9,_4_GiB\n"
               "out gpu:3 drained @5:30 - fans\n"
               "out gpu:0 drained @0:30 @0:31 fans\n"
               "now @6:00\n",
          "GPU 1 QUARANTINED, 48 min, 5:12-6:00 and on: 'XID 48' -> gpudispatch gpus\n"
          "GPU 3 DRAINED, 30 min, 5:30-6:00 and on: 'fans' -> gpudispatch undrain gpu:3\n"
          "2x GPU 2 FOREIGN, 15 min, 1:10-2:15 (1:10-1:20, 2:10-2:15): 'pid 8123, 41 GiB'\n"
          "GPU 0 DRAINED, 60 s, 0:30-0:31: 'fans'\n");
}

/* A task that runs there stays until it ends. */
T_CASE(out_of_use_while_a_task_runs)
{
    check(GPUS SHAPES "attempt 1.1 1 1 gpu:2,gpu:3 @0:00 @0:50 @1:15 ok 0\n"
                      "attempt 1.2 1 1 gpu:2 @0:00 @1:00 @1:20 ok 0\n"
                      "attempt 1.3 1 1 gpu:2 @0:00 @0:40 @1:10 ok 0\n"
                      "attempt 1.4 1 1 gpu:2 @0:00 @1:25 @1:30 ok 0\n"
                      "attempt 1.5 1 1 gpu:1 @0:00 @1:00 - running 0\n"
                      "out gpu:2 foreign @1:10 @2:20 pid_8123\n"
                      "out gpu:1 drained @1:10 - fans\n"
                      "out gpu:0 drained @1:20 @1:30 fans\nnow @4:00\n",
          "GPU 1 DRAINED, 2 h 50, 1:10-4:00 and on, free of tasks from 4:00: 'fans' "
          "-> gpudispatch undrain gpu:1\n"
          "GPU 2 FOREIGN, 70 min, 1:10-2:20, free of tasks from 1:20: 'pid 8123'\n"
          "GPU 0 DRAINED, 10 min, 1:20-1:30: 'fans'\n");
}

#define WAITING "batch 14 sweep @0:00 - 0 - 24 0 0 11 1 ok=12 9 2\n"
#define LIFE "life opened @0:00 - -\n"

T_CASE(kept)
{
    check(GPUS SHAPES WAITING LIFE "reason 1 12.3 BUSY @0:58 @1:27 12.3:_busy\n"
                                   "reason 2 14.9 BUSY @1:00 @1:25 14.9:_busy\n"
                                   "reason 2 14.9 BUSY @1:40 @2:00 14.9:_busy\n"
                                   "tenancy gpu:1 kept - @1:00 @1:31 held_for_sweep\n"
                                   "tenancy gpu:2 kept - @1:00 @1:29 held_for_sweep\n"
                                   "tenancy gpu:3 kept - @1:00 @1:30 held_for_sweep\n"
                                   "tenancy gpu:3 kept - @1:40 @2:40 held_for_sweep\n"
                                   "now @3:00\n",
          "2x GPU 3 kept free for 14, 1 h 30, 1:00-2:40 (1:00-1:30, 1:40-2:40): 'held for sweep' "
          "-> gpudispatch explain 14.9\n"
          "GPU 1 kept free for 14, 31 min, 1:00-1:31: 'held for sweep' "
          "-> gpudispatch explain 14.9\n");
}

/* Short stretches count together; those that are not in the list are counted. */
T_CASE(kept_for_short_times)
{
    struct text t = { 0 };

    text_add(&t, "gpu gpu:1\ngpu gpu:2\n" SHAPES WAITING LIFE);
    for (int i = 0; i < 6; i++)
        text_add(&t, "tenancy gpu:1 kept - @1:%d0 @1:%d5:%02d 14.9:_held_for_2_GPUs\n", i, i, i);
    text_add(&t, "tenancy gpu:2 kept - @1:00 @1:29:59 14.9:_held_for_2_GPUs\nnow @3:00\n");
    check(t.data, "6x GPU 1 kept free for 14, 30 min, 1:00-1:55:05 (1:00-1:05, 1:10-1:15:01, "
                  "1:20-1:25:02, 1:30-1:35:03 and 2 more): '14.9: held for 2 GPUs' "
                  "-> gpudispatch explain 14.9\n");
    text_free(&t);
}

/* The row itself names the task, whatever else waited then. */
T_CASE(kept_for_a_task)
{
    check("gpu gpu:1\n" SHAPES WAITING LIFE "reason 2 14.9 BUSY @1:00 @1:40 14.9:_busy\n"
          "tenancy gpu:1 kept - @1:00 @1:40 12.3:_held_for_2_GPUs\n"
          "now @3:00\n",
          "GPU 1 kept free for 12, 40 min, 1:00-1:40: '12.3: held for 2 GPUs'\n");
}

T_CASE(limited)
{
    check("gpu gpu:0\n" SHAPES WAITING LIFE "reason 2 14.9 SEATS @1:00 @1:31 14.9:_its_limit\n"
          "reason 2 14.9 SEATS @2:00 @2:29 14.9:_its_limit\n"
          "reason 2 14.10 SEATS @3:00 - 14.10:_its_limit\n"
          "now @3:40\n",
          "2x GPU 0 idle although tasks waited for 14, 71 min, 1:00-3:40 and on "
          "(1:00-1:31, 3:00-3:40): '14.9: its limit' -> gpudispatch explain 14.9\n");
    /* None of its tasks waits any more. */
    check("gpu gpu:0\n" SHAPES LIFE "batch 14 sweep @0:00 @2:00 0 - 24 0 0 0 0 ok=24\n"
          "reason 2 14.9 SEATS @1:00 @1:31 14.9:_its_limit\n"
          "now @3:40\n",
          "GPU 0 idle although tasks waited for 14, 31 min, 1:00-1:31: '14.9: its limit'\n");
}

/* Alike ones are joined over GPUs. */
T_CASE(evicted)
{
    check(GPUS "tenancy gpu:2 unload whisper @1:00 @1:00:04 evicted:_judge_had_waited_300_s\n"
               "tenancy gpu:1 unload whisper @1:10 @1:10:04 evicted_for_night\n"
               "tenancy gpu:0 unload whisper @1:20 @1:20:04 evicted:_judge_had_waited_301_s\n"
               "tenancy gpu:3 unload whisper @1:20 @1:20:04 evicted:_judge_had_waited_301_s\n"
               "tenancy gpu:2 unload judge @1:30 @1:30:04 evicted:_judge_had_waited_300_s\n"
               "tenancy gpu:0 unload whisper @1:40 @1:40:04 idle\n"
               "tenancy gpu:0 boot whisper @1:50 @1:50:04 evicted\n",
          "whisper left GPU 0, 2-3, 8.0 s, 1:00-1:20:04 (1:00-1:00:04, 1:20-1:20:04): "
          "'evicted: judge had waited 300 s'\n"
          "whisper left GPU 1 for night, 4.0 s, 1:10-1:10:04: 'evicted for night'\n"
          "judge left GPU 2, 4.0 s, 1:30-1:30:04: 'evicted: judge had waited 300 s'\n");
}

T_CASE(no_agent)
{
    check(GPUS "life opened @0:00 @1:00\nlife opened @0:30 @1:10\nlife opened @2:00 -\n"
               "life adopted @2:00 @2:00 3_commands\nnow @3:00\n",
          "no agent ran, 50 min, 1:10-2:00: ''\n");
    /* Tasks wait, and no agent runs. */
    check("batch 1 a @0:00 - 0 - 2 0 0 2 0 -\n"
          "life opened @0:00 @1:00\nlife opened @1:10 @2:00\nnow @3:00\n",
          "2x no agent ran, 70 min, 1:00-3:00 and on (1:00-1:10, 2:00-3:00): '' "
          "-> gpudispatch agent start\n");
    check("life opened @0:00 @1:00\nnow @3:00\n", "no agent ran, 2 h 00, 1:00-3:00 and on: ''\n");
    /* Rows are older than the first life. */
    check(GPUS "attempt 1.1 1 - gpu:0 - @0:00 @0:10 ok 0\nlife opened @0:20 -\nnow @3:00\n",
          "no agent ran, 20 min, 0:00-0:20: ''\n");
}

/* The time of rows that begin before the span counts from its begin. */
T_CASE(limits)
{
    check_within(GPUS "out gpu:1 failed @0:10 @1:30 -\nlife opened @0:00 @0:50\nnow @4:00\n",
                 T_AT(1, 0, 0), T_AT(2, 0, 0),
                 "GPU 1 FAILED, 30 min, 0:10-1:30: ''\n"
                 "no agent ran, 60 min, 1:00-2:00 and on: ''\n");
    check_within(GPUS "out gpu:1 failed @1:30 @3:00 -\nlife opened @0:00 @3:50\nnow @4:00\n",
                 T_AT(1, 0, 0), T_AT(2, 0, 0),
                 "GPU 1 FAILED, 30 min, 1:30-2:00 and on: '' -> gpudispatch gpus\n");
    /* No life was recorded. */
    check(GPUS "out gpu:1 failed @0:10 @1:30 -\nnow @4:00\n",
          "GPU 1 FAILED, 80 min, 0:10-1:30: ''\n");
}

T_CASE(clock)
{
    check("life opened @0:00 -\nlife clock @1:00 @1:00 set_by_+3600.000_s\n"
          "life clock @2:00 @2:00 set_by_-3600.000_s\n"
          "life clock @2:10 @2:10 set_by_+7.250_s\nnow @3:00\n",
          "2x clock set, 0 ms, 1:00-2:10 (1:00-1:00, 2:10-2:10): 'set by +3600.000 s'\n"
          "clock set, 0 ms, 2:00-2:00: 'set by -3600.000 s'\n");
}

T_CASE(order)
{
    check(GPUS SHAPES LIFE "batch 1 a @0:00 @0:09 0 - 9 0 0 0 0 cancelled=3\n"
                           "life clock @0:01 @0:01 set\n"
                           "tenancy gpu:2 unload whisper @1:00 @1:01 evicted\n"
                           "out gpu:0 failed @0:00 @0:01 -\nout gpu:1 failed @0:00 @0:02 -\n"
                           "attempt 1.1 0 1 - - - @0:01 cancelled 0 a\n"
                           "attempt 1.2 0 1 - - - @0:03 cancelled 0 b\n"
                           "attempt 1.3 0 1 - - - @0:02 cancelled 0 b\nnow @2:00\n",
          "2 tasks CANCELLED of 1.2-3 (2), still 2, 0:02-0:03: 'b'\n"
          "1 task CANCELLED of 1.1 (1), still 1, 0:01-0:01: 'a'\n"
          "GPU 1 FAILED, 2 min, 0:00-0:02: ''\nGPU 0 FAILED, 60 s, 0:00-0:01: ''\n"
          "whisper left GPU 2, 60 s, 1:00-1:01: 'evicted'\nclock set, 0 ms, 0:01-0:01: 'set'\n");
}

/* A character that does not fit is left out whole. */
T_CASE(a_text_is_cut_between_characters)
{
    struct gpv_night *n = t_night("gpu gpu:0\nclass a\\xe2\\x82\\xacb\n"
                                  "tenancy gpu:0 unload a\\xe2\\x82\\xacb @1:00 @1:01 evicted\n");
    struct gpv_findings *f = gpv_findings_of(n);
    char text[64];

    T_CHECK(f);
    T_EQ(f->n, 1);
    T_TEXT(gpv_finding_text(n, f->row, text, 64), "a\xe2\x82\xac"
                                                  "b left GPU 0");
    T_TEXT(gpv_finding_text(n, f->row, text, 6), "a\xe2\x82\xac"
                                                 "b");
    T_TEXT(gpv_finding_text(n, f->row, text, 5), "a\xe2\x82\xac");
    T_TEXT(gpv_finding_text(n, f->row, text, 4), "a");
    T_TEXT(gpv_finding_text(n, f->row, text, 2), "a");
    T_TEXT(gpv_finding_text(n, f->row, text, 1), "");
    gpv_findings_free(f);
    gpv_night_free(n);
}

/* ---- Many ---- */

static uint32_t keep(struct gpv_night *n, const char *text)
{
    return gpv_keep(n, text, strlen(text));
}

/* All of one kind: one finding, and no list of a million tasks on the way. */
T_CASE(a_million_alike)
{
    struct gpv_night *n = gpv_night_new();
    struct gpv_findings *f;
    const uint32_t tasks = 500000;

    T_CHECK(n);
    for (uint32_t i = 0; i < 2 * tasks; i++) {
        const struct gpv_attempt a = { .task = GPV_TASK(1, i / 2 + 1),
                                       .number = i % 2 + 1,
                                       .started = T_BEGIN + i,
                                       .ended = T_BEGIN + i + 1,
                                       .outcome = GPV_ERROR,
                                       .status = 1 };
        T_EQ(gpv_add_attempt(n, &a), 0);
    }
    T_EQ(gpv_night_end(n, 0), 0);
    f = gpv_findings_of(n);
    T_CHECK(f);
    T_EQ(f->n, 1);
    T_EQ(f->row[0].count, 2 * tasks);
    T_EQ(f->row[0].n_tasks, tasks);
    T_EQ(f->row[0].still, tasks);
    T_EQ(f->row[0].n_ranges, 1);
    gpv_findings_free(f);
    gpv_night_free(n);
}

enum { TASKS = 40, BATCHES = 3, TEXTS = 4 };
static const char *const texts[TEXTS] = { "", "x7", "x88", "y" };

static struct gpv_night *random_night(uint64_t *seed)
{
    struct gpv_night *n = gpv_night_new();

    T_CHECK(n);
    for (uint16_t i = 0; i < 3; i++) {
        const struct gpv_gpu g = { .name = keep(n, i == 0 ? "gpu:0" : i == 1 ? "gpu:1" : "gpu:2") };
        T_EQ(gpv_add_gpu(n, &g), 0);
    }
    for (uint32_t i = draw_below(seed, 300); i > 0; i--) {
        uint16_t gpu = (uint16_t)draw_below(seed, 3);
        struct gpv_attempt a = { .task = GPV_TASK(1 + draw_below(seed, BATCHES),
                                                  1 + draw_below(seed, TASKS)),
                                 .number = draw_below(seed, 4),
                                 .started = T_BEGIN + draw_below(seed, 100),
                                 .outcome = (uint8_t)draw_below(seed, GPV_OUTCOMES),
                                 .status = (int16_t)draw_below(seed, 2),
                                 .text = keep(n, texts[draw_below(seed, TEXTS)]),
                                 .set = gpv_keep_set(n, &gpu, 1) };
        a.ended = a.outcome == GPV_RUNNING ? 0 : a.started + draw_below(seed, 100);
        T_EQ(gpv_add_attempt(n, &a), 0);
    }
    T_EQ(gpv_night_end(n, T_BEGIN + 300), 0);
    return n;
}

static bool has_task(const struct gpv_finding *f, uint32_t number)
{
    for (uint32_t i = 0; i < f->n_ranges; i++)
        if (f->range[i].from <= number && number <= f->range[i].to)
            return true;
    return false;
}

/* Whether an end belongs to a finding: by the rule, not by the code. */
static bool is_of(const struct gpv_night *n, const struct gpv_attempt *a,
                  const struct gpv_finding *f)
{
    return gpv_is_bad(a->outcome) && GPV_BATCH_OF(a->task) == f->batch &&
           a->outcome == f->outcome && a->status == f->status &&
           gpv_text(n, a->text)[0] == gpv_text(n, f->text)[0];
}

static void recount(const struct gpv_night *n, const struct gpv_finding *f)
{
    uint64_t count = 0, still = 0;
    uint32_t tasks = 0, listed = 0;
    bool seen[TASKS + 1] = { false };

    for (size_t i = 0; i < n->attempts.n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[i];
        if (!is_of(n, a, f))
            continue;
        count++;
        tasks += !seen[GPV_NUMBER_OF(a->task)];
        seen[GPV_NUMBER_OF(a->task)] = true;
        T_CHECK(gpv_set_has(gpv_set(n, f->set), gpv_set(n, a->set).gpu[0]));
        T_CMP(f->first, <=, a->ended);
        T_CMP(f->last, >=, a->ended);
    }
    for (size_t i = 0; i < n->attempts.n; i++) {
        const struct gpv_attempt *a = &n->attempts.row[i];
        still += a->last && a->outcome != GPV_OK && GPV_BATCH_OF(a->task) == f->batch &&
                 seen[GPV_NUMBER_OF(a->task)];
    }
    for (uint32_t i = 1; i <= TASKS; i++) {
        listed += has_task(f, i);
        T_CHECK(seen[i] || !has_task(f, i));
    }
    T_EQ(f->count, count);
    T_EQ(f->still, still);
    T_EQ(f->n_tasks, tasks);
    T_EQ(f->more, tasks - listed);
    T_EQ(f->more > 0 && f->n_ranges < GPV_FINDING_RANGES, 0);
}

/* The sum of the counts is the number of bad ends. [V4] */
T_CASE(random_nights_recounted)
{
    uint64_t seed = 11;

    for (size_t round = t_rounds(2000, 200); round > 0; round--) {
        struct gpv_night *n = random_night(&seed);
        struct gpv_findings *f = gpv_findings_of(n);
        struct gpv_night_facts all;
        uint64_t bad = 0, sum = 0;

        T_CHECK(f);
        T_EQ(gpv_night_facts(n, &all), 0);
        for (size_t i = 0; i < n->attempts.n; i++)
            bad += gpv_is_bad(n->attempts.row[i].outcome);
        for (size_t i = 0; i < f->n; i++) {
            if (f->row[i].kind != GPV_FINDING_BAD)
                continue;
            sum += f->row[i].count;
            recount(n, &f->row[i]);
            T_EQ(i > 0 && f->row[i].n_tasks > f->row[i - 1].n_tasks, 0);
        }
        T_EQ(f->bad, bad);
        T_EQ(sum, bad);
        T_EQ(all.bad, bad);
        gpv_findings_free(f);
        gpv_night_free(n);
    }
}

/* The Nth allocation fails, for each N. */
T_CASE(no_memory)
{
    struct text t = { 0 };
    struct gpv_night *n;
    struct gpv_findings *f;
    unsigned failed = 0;

    text_add(&t, GPUS SHAPES LIFE WAITING "out gpu:1 failed @0:00 @0:02 -\n"
                                          "tenancy gpu:1 kept - @1:00 @1:31 held\n"
                                          "tenancy gpu:2 unload a @1:00 @1:01 evicted\n");
    for (int i = 0; i < 200; i++)
        text_add(&t, "attempt 14.%d 1 1 gpu:%d @0:00 @0:01 @0:02 error %d x\n", 2 * i + 1, i % 4,
                 i % 50);
    n = t_night(t.data);
    do {
        fail_at = failed + 1;
        f = gpv_findings_of(n);
        failed += fail_at == 0;
        T_EQ(!f, fail_at == 0);
    } while (!f);
    fail_at = 0;
    T_CMP(failed, >, 8);
    T_EQ(f->bad, 200);
    gpv_findings_free(f);
    gpv_night_free(n);
    text_free(&t);
}
