/* SPDX-License-Identifier: MIT */
/* next.c - nights as lines, and the commands to type next, as lines. */
#include "harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rows.h"
#include "queue/text.h"
#include "view/night/next.h"

#define GPUS "gpu gpu:0\ngpu gpu:1\ngpu gpu:2\n"
#define SHAPES "shape 1 commands 1 1_GPU\nshape 2 commands 2 2_GPUs\n"

static void check_night(struct gpv_night *n, const char *wanted)
{
    struct gpv_findings *f = gpv_findings_of(n);
    struct text t = { 0 };
    struct gpv_next next;
    char text[256];

    T_CHECK(f);
    gpv_next_of(n, f, &next);
    for (size_t i = 0; i < next.n; i++)
        text_add(&t, "%s: %s\n", next.step[i].command,
                 gpv_step_text(n, &next.step[i], text, sizeof(text)));
    text_add(&t, next.more ? "more\n" : "");
    T_TEXT(t.data ? t.data : "", wanted);
    text_free(&t);
    gpv_findings_free(f);
}

static void check(const char *lines, const char *wanted)
{
    struct gpv_night *n = t_night(lines);

    check_night(n, wanted);
    gpv_night_free(n);
}

T_CASE(nothing)
{
    check("", "");
    check(GPUS SHAPES "batch 1 a @0:00 @0:09 0 - 3 0 0 0 0 ok=3\n"
                      "attempt 1.1 1 1 gpu:0 @0:00 @0:01 @0:02 error 1 bad\n"
                      "attempt 1.1 2 1 gpu:0 @0:00 @0:03 @0:04 ok 0\n"
                      "out gpu:1 drained @0:01 @0:03 fans\nnow @0:10\n",
          "");
}

/* The log is first, the retry is there once for each batch, with all tasks that it selects. */
T_CASE(a_night)
{
    check(GPUS SHAPES
          "batch 14 sweep @0:00 - 0 - 24 0 0 11 1 error=2,lost=1,ok=10 9 2\n"
          "batch 15 rec @0:00 @2:00 0 - 900 0 0 0 0 ok=894,crashed=3,error=1,skipped=2\n"
          "attempt 14.3 1 2 gpu:0,gpu:1 @0:00 @0:01 @0:02 lost 0 lost\n"
          "attempt 14.9 1 2 gpu:0,gpu:1 @0:00 @0:01 @0:02 error 1 no_memory\n"
          "attempt 14.8 1 2 gpu:0,gpu:1 @0:00 @0:01 @0:02 error 1 no_memory\n"
          "attempt 15.610 1 1 gpu:0 @0:00 @0:01 @0:02 crashed -11 x\n"
          "attempt 15.610 2 1 gpu:0 @0:00 @0:02 @0:03 crashed -11 x\n"
          "attempt 15.611 1 1 gpu:1 @0:00 @0:02 @0:03 crashed -11 x\n"
          "attempt 15.612 1 1 gpu:1 @0:00 @0:02 @0:04 crashed -11 x\n"
          "attempt 15.700 1 1 gpu:1 @0:00 @0:02 @0:05 error 1 key\n"
          "attempt 15.800 0 1 - - - @0:06 skipped 0 15.700_did_not_end_ok\n"
          "attempt 15.801 0 1 - - - @0:06 skipped 0 15.700_did_not_end_ok\n"
          "out gpu:1 quarantined @1:00 - XID_48\nout gpu:0 failed @1:10 - worker\n"
          "out gpu:2 drained @1:20 - fans\n"
          "tenancy gpu:2 kept - @0:00 @1:00 14.9:_held_for_2_GPUs\n"
          "life opened @0:00 - -\nnow @3:00\n",
          "gpudispatch log 15.610: why 3 tasks of 15 rec CRASHED signal 11\n"
          "gpudispatch log 14.8: why 2 tasks of 14 sweep ERROR exit 1\n"
          "gpudispatch show 15.800: why 2 tasks of 15 rec SKIPPED\n"
          "gpudispatch log 15.700: why 1 task of 15 rec ERROR exit 1\n"
          "gpudispatch retry 15 --failed: another attempt for 4 failed tasks of 15 rec, "
          "once the cause is mended\n"
          "gpudispatch retry 14 --failed: another attempt for 2 failed tasks of 14 sweep, "
          "once the cause is mended\n"
          "gpudispatch retry 14 --lost: another attempt for 1 lost task of 14 sweep, "
          "once the cause is mended\n"
          "gpudispatch gpus: GPU 1 and others are out of use\n"
          "gpudispatch undrain gpu:2: GPU 2 is out of use\n"
          "gpudispatch explain 14.9: why the first task of 14 sweep waits\n");
}

/* A task that was not on a GPU has no log. */
T_CASE(no_log)
{
    check(GPUS SHAPES "batch 1 a @0:00 @0:09 0 - 9 0 0 0 0 no_worker=1,timeout=1\n"
                      "attempt 1.1 0 1 - - - @0:01 timeout 0 expired\n"
                      "attempt 1.2 0 1 - - - @0:02 no_worker 0 failed\n",
          "gpudispatch retry 1 --failed: another attempt for 2 failed tasks of 1 a, "
          "once the cause is mended\n");
}

T_CASE(no_agent_runs)
{
    check("batch 1 a @0:00 - 0 - 2 0 0 2 0 -\nlife opened @0:00 @1:00\nnow @3:00\n",
          "gpudispatch agent start: tasks wait, and no agent runs\n");
}

/* There is no command for the records of a program without a queue. */
T_CASE(no_queue)
{
    struct gpv_night *n =
        t_night(GPUS SHAPES "batch 1 a @0:00 @0:09 0 - 9 0 0 0 0 error=1\n"
                            "attempt 1.1 1 1 gpu:0 @0:00 @0:01 @0:02 error 1 x\n");

    n->no_queue = true;
    check_night(n, "");
    gpv_night_free(n);
}

/* Logs leave room for the retries; a list that is full says so. */
T_CASE(many)
{
    struct text t = { 0 };

    text_add(&t, GPUS SHAPES);
    for (int i = 1; i <= 12; i++)
        text_add(&t, "batch %d a @0:00 @0:09 0 - 9 0 0 0 0 error=1\n", i);
    for (int i = 1; i <= 12; i++)
        text_add(&t, "attempt %d.1 1 1 gpu:0 @0:00 @0:01 @0:02 error 1 x\n", i);
    struct gpv_night *n = t_night(t.data);
    struct gpv_findings *f = gpv_findings_of(n);
    struct gpv_next next;
    T_CHECK(f);
    gpv_next_of(n, f, &next);
    T_EQ(next.n, GPV_NEXT);
    T_EQ(next.more, 1);
    T_EQ(next.step[GPV_NEXT_READS - 1].kind, GPV_STEP_READ);
    T_EQ(next.step[GPV_NEXT_READS].kind, GPV_STEP_RETRY);
    gpv_findings_free(f);
    gpv_night_free(n);
    text_free(&t);
}

/* A name is no part of a command, and is cut for the text. */
T_CASE(hostile_names)
{
    check("gpu gpu:0;reboot\nshape 1 - 1 1_GPU\n"
          "batch 1 ';_$(reboot)_`id`_which_is_a_very_long_name_of_a_batch,_too_long_to_read "
          "@0:00 @0:09 0 - 9 0 0 0 0 error=1\n"
          "attempt 1.1 1 1 gpu:0;reboot @0:00 @0:01 @0:02 error 1 x\n"
          "out gpu:0;reboot drained @0:00 - x\n",
          "gpudispatch log 1.1: why 1 task of 1 ... ERROR exit 1\n"
          "gpudispatch retry 1 --failed: another attempt for 1 failed task of 1 ..., "
          "once the cause is mended\n"
          "gpudispatch gpus: GPU 0;reboot is out of use\n");
}
