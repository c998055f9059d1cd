/* SPDX-License-Identifier: MIT */
/* top_rows.c - rows of top that fit, and rows that are counted. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "top_made.h"
#include "view/night/findings.h"
#include "view/words.h"

T_CASE(alike_gpus_are_folded_where_rows_are_short)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    for (int i = 0; i < 7; i++)
        (void)add_gpu(&s, GPV_DOES_RUN, i == 3 || i == 5 ? "judge" : "whisper");
    check_has(&t, &s, "\n3   run   judge", true);
    for (int i = 7; i < 16; i++)
        (void)add_gpu(&s, GPV_DOES_IDLE, "");
    snprintf(add_gpu(&s, GPV_DOES_OUT, "")->text, 160, "drained");
    check_has(&t, &s, "\n0-2,4,6 run   whisper 5 GPUs: 15.755", true);
    check_has(&t, &s, "\n3,5     run   judge   2 GPUs: 15.758", true);
    check_has(&t, &s, "\n7-15    idle          9 GPUs", true);
    check_has(&t, &s, "GPU     STATE CLASS   TASK", true);
    check_has(&t, &s, "\n16      OUT   drained", true);
    t.columns = 40;
    t.lines = 10;
    check_has(&t, &s, "\n0-2,4,6 run   5 GPUs: 15.755", true);
    gpv_snapshot_free(&s);
}

/* "N more batches: R run, W wait, B bad" and the shown rows are all there is. */
static void check_batches(const struct gpv_top_state *t, const struct gpv_snapshot *s)
{
    unsigned long batches = s->more.batches, run = s->more.running, bad = s->more.bad;
    unsigned long wait = s->more.ready + s->more.held, shown = 0;
    char *text = text_of(t, s), line[96];

    for (size_t i = 0; i < s->batches.n; i++) {
        const struct gpv_now_batch *b = &s->batches.row[i];
        snprintf(line, sizeof line, "\n%" PRIu32 " b%" PRIu32 " ", b->id, b->id);
        if (strstr(text, line)) {
            shown++;
            continue;
        }
        batches++;
        run += b->running;
        bad += b->bad;
        wait += b->ready + b->held;
    }
    T_CMP(shown, >, 0);
    snprintf(line, sizeof line, "\n%lu more batch%s: %lu run, %lu wait, %lu bad\n", batches,
             batches == 1 ? "" : "es", run, wait, bad);
    if ((strstr(text, line) != NULL) != (batches > 0))
        T_FAIL("%s in:\n%s", line, text);
    free(text);
}

T_CASE(rows_that_do_not_fit_are_counted)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    (void)add_gpu(&s, GPV_DOES_IDLE, "");
    t.part = GPV_PART_BATCHES;
    for (uint32_t i = 1; i <= 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "b%" PRIu32, i);
        (void)add_batch(&s, i, name);
        check_batches(&t, &s);
    }
    s.more = (struct gpv_now_more){ .batches = 5, .running = 7, .ready = 11, .held = 2, .bad = 3 };
    check_batches(&t, &s);
    for (int i = 0; i < 50; i++) {
        uint64_t task;
        T_EQ(gpv_top_key(&t, &s, GPV_KEY_DOWN, &task), GPV_WISH_NONE);
        check_batches(&t, &s);
    }
    check_has(&t, &s, "\n40 b40 ", true);
    gpv_snapshot_free(&s);
}

T_CASE(findings_and_gpus_that_do_not_fit_are_counted)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    for (int i = 0; i < 30; i++) { /* none is like another one */
        char class[16];
        snprintf(class, sizeof class, "class%d", i);
        (void)add_gpu(&s, i % 3 ? GPV_DOES_RUN : GPV_DOES_LOAD, class);
        (void)add_finding(&s, GPV_FINDING_BAD, NOW - i * MINUTE, "1x CRASHED");
    }
    s.more.findings = 4;
    s.bad_24h = 34;
    size_t gpus = lines_with(&t, &s, " class"), findings = lines_with(&t, &s, "CRASHED");
    char line[64];
    snprintf(line, sizeof line, "\n%zu more GPUs: ", 30 - gpus);
    check_has(&t, &s, line, true);
    snprintf(line, sizeof line, "(34 bad ends in 24 h; %zu more)", 34 - findings);
    check_has(&t, &s, line, true);
    t.lines = 10; /* a row and the count share a line */
    snprintf(line, sizeof line, " +%zu\n", 34 - lines_with(&t, &s, "CRASHED"));
    check_has(&t, &s, line, true);
    gpv_snapshot_free(&s);
}

T_CASE(a_task_of_several_gpus_names_the_others)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    (void)add_batch(&s, 15, "rec-11");
    struct gpv_now_gpu *g = add_gpu(&s, GPV_DOES_RUN, "judge");
    snprintf(g->with, sizeof g->with, "gpu:2,gpu:3");
    g->limit = 600 * SECOND;
    g->memory_used = UINT64_C(14) << 30;
    check_has(&t, &s, "0   run   judge   15.755 rec-11 +GPU 2,3           86 s 10 min   14", true);
    gpv_snapshot_free(&s);
}

T_CASE(the_end_is_a_range)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 120, 24);
    struct gpv_now_batch *b = add_batch(&s, 1, "a");
    check_has(&t, &s, "done: not known yet", true);
    check_has(&t, &s, " unknown ", true);
    s.least = 162 * MINUTE;
    s.most = 239 * MINUTE;
    check_has(&t, &s, "(in 2 h 42 to 3 h 59)", true);
    s.most = -1;
    check_has(&t, &s, "done not before ", true);
    static const struct {
        int64_t least, most;
        const char *text;
    } left[] = {
        { 49 * MINUTE, 58 * MINUTE, " 49-58 min " },
        { 20 * SECOND, 40 * SECOND, " 20-40 s " },
        { 40 * SECOND, 3 * MINUTE, " 0-3 min " },
        { 162 * MINUTE, 239 * MINUTE, " 2h42-3h59 " },
        { 60 * MINUTE, 239 * MINUTE, " 1h00-3h59 " },
        { 50 * 60 * MINUTE, 99 * 60 * MINUTE, " 2d2h-4d3h " },
        { 5 * MINUTE, 5 * MINUTE + SECOND, " 5 min " },
        { 0, 0, " 0 s " },
        { 49 * MINUTE, -1, " 49 min+ " },
        { 162 * MINUTE, -1, " 2h42+ " },
    };
    for (size_t i = 0; i < T_LENGTH(left); i++) {
        b->least = left[i].least;
        b->most = left[i].most;
        check_has(&t, &s, left[i].text, true);
    }
    gpv_snapshot_free(&s);
}

/* ---- GPUs ---- */

T_CASE(a_gpu_that_is_kept_has_its_batch_and_its_time)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;
    char clock[GPV_WORD], text[96];

    begin(&s, &t, 80, 24);
    add_batch(&s, 14, "sweep")->gpus = 2;
    struct gpv_now_gpu *g = add_gpu(&s, GPV_DOES_KEPT, "");
    g->kept_for = GPV_TASK(14, 12);
    snprintf(g->text, sizeof g->text, "14.12: held for 2 GPUs");
    snprintf(text, sizeof text, "\n0   kept  since %s for 14 sweep (needs 2 GPUs)  ",
             gpv_clock(g->since, clock));
    check_has(&t, &s, text, true);
    T_EQ(key(&t, &s, GPV_KEY_ENTER, GPV_WISH_EXPLAIN), GPV_TASK(14, 12));
    T_EQ(key(&t, &s, 'l', GPV_WISH_NONE), 0);
    s.batches.n = 0; /* its batch is not listed */
    check_has(&t, &s, " for 14.12: held for 2 GPUs", true);
    gpv_snapshot_free(&s);
}

T_CASE(a_gpu_that_is_out_has_the_time_of_day)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;
    char clock[GPV_WORD], text[96];

    begin(&s, &t, 80, 24);
    struct gpv_now_gpu *g = add_gpu(&s, GPV_DOES_OUT, "");
    snprintf(g->text, sizeof g->text, "quarantined: XID 48");
    snprintf(text, sizeof text, "\n0   OUT   quarantined since %s: XID 48 ",
             gpv_clock(g->since, clock));
    check_has(&t, &s, text, true);
    snprintf(g->text, sizeof g->text, "drained");
    snprintf(text, sizeof text, "OUT   drained since %s  ", clock);
    check_has(&t, &s, text, true);
    g->since = 0;
    check_has(&t, &s, "OUT   drained\n", true);
    gpv_snapshot_free(&s);
}

T_CASE(a_column_without_a_value_is_left_out)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    (void)add_gpu(&s, GPV_DOES_RUN, "judge");
    check_has(&t, &s, "LIMIT", false);
    check_has(&t, &s, "GiB", false);
    s.gpus.row[0].limit = 600 * SECOND;
    check_has(&t, &s, "    FOR  LIMIT LAST HOUR", true);
    s.gpus.row[0].memory_used = 1;
    check_has(&t, &s, "    FOR  LIMIT  GiB LAST HOUR", true);
    gpv_snapshot_free(&s);
}

T_CASE(gpus_that_are_kept_for_a_batch_are_alike)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;
    char clock[GPV_WORD], text[96];

    begin(&s, &t, 100, 14);
    add_batch(&s, 14, "sweep")->gpus = 8;
    for (int i = 0; i < 24; i++)
        add_gpu(&s, GPV_DOES_KEPT, "")->kept_for = GPV_TASK(14, 1 + i % 2);
    s.gpus.row[7].since = NOW - 200 * SECOND;
    snprintf(text, sizeof text, "\n0-23 kept  24 GPUs: since %s for 14 sweep (needs 8 GPUs) ",
             gpv_clock(NOW - 200 * SECOND, clock));
    check_has(&t, &s, text, true);
    s.gpus.row[3].kept_for = GPV_TASK(15, 1);
    check_has(&t, &s, "\n0-2,4-23 kept  23 GPUs", true);
    gpv_snapshot_free(&s);
}

/* ---- Batches ---- */

T_CASE(a_task_that_gathers_names_what_it_has_and_lacks)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    struct gpv_now_batch *b = add_batch(&s, 14, "sweep");
    b->why = GPV_WHY_GATHERING;
    b->gpus = 4;
    b->since = NOW - 57 * MINUTE;
    for (int i = 0; i < 8; i++)
        (void)add_gpu(&s, i == 3 || i == 7 ? GPV_DOES_KEPT : GPV_DOES_RUN, "");
    s.gpus.row[3].kept_for = s.gpus.row[7].kept_for = GPV_TASK(14, 3);
    check_has(&t, &s, "has GPU 3,7, waits for 2 more of 4: reason of 14", false); /* no room */
    check_has(&t, &s, "has GPU 3,7, waits for 2 more of 4 (57 min)", true);
    t.columns = 100;
    check_has(&t, &s, "has GPU 3,7, waits for 2 more of 4: reason of 14 (57 min)", true);
    s.gpus.row[7].kept_for = GPV_TASK(15, 1); /* another one has the same needs */
    check_has(&t, &s, "has GPU 3, waits for 3 more of 4", true);
    s.gpus.row[3].kept_for = 0;
    check_has(&t, &s, "has GPU", false);
    check_has(&t, &s, "reason of 14 (57 min)", true);
    gpv_snapshot_free(&s);
}

T_CASE(a_reason_without_room_is_its_sentence)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    struct gpv_now_batch *b = add_batch(&s, 7, "night");
    snprintf(b->reason, sizeof b->reason, "SHARE");
    snprintf(b->text, sizeof b->text,
             "SHARE on gpu:0, has 0 of 10000, needs 10000 of 10000: "
             "running tasks have it; task 1.1");
    check_has(&t, &s, " unknown    running tasks have it; task 1.1\n", true);
    t.columns = 170;
    check_has(&t, &s, " SHARE on gpu:0, has 0 of 10000, needs 10000 of 10000: running tasks", true);
    t.columns = 80;
    snprintf(b->reason, sizeof b->reason, "CLASS");
    check_has(&t, &s, " unknown    SHARE on gpu:0, has", true);
    gpv_snapshot_free(&s);
}

T_CASE(large_numbers_are_whole)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    struct gpv_now_batch *b = add_batch(&s, 7, "night");
    b->total = 1234567;
    b->ok = 1000000;
    b->bad = 12345;
    b->running = 8;
    b->ready = 100000;
    b->held = 112214;
    check_has(&t, &s, "\nBATCH          OK    BAD RUN    WAIT LEFT ", true);
    check_has(&t, &s, "\n7 night 1,000,000 12,345   8 212,214 unknown ", true);
    s.least = s.most = MINUTE;
    check_has(&t, &s,
              "\n1,000,000 ok  12,345 BAD  8 run  212,214 wait (112,214 held)   done about ", true);
    b->ok = b->bad = 1;
    check_has(&t, &s, "\n1,234,567 tasks: 1 ok  1 BAD  8 run  212,214 wait (112,214 held)   done",
              false);
    t.columns = 120;
    check_has(&t, &s, "\n1,234,567 tasks: 1 ok  1 BAD  8 run  212,214 wait (112,214 held)   done",
              true);
    gpv_snapshot_free(&s);
}
