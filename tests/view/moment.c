/* SPDX-License-Identifier: MIT */
/*
 * moment.c - the snapshot of a time of a night.
 *
 * A night is a script (rows.h); what is wanted is the moment as a text: a line for each row.  For
 * each recording, and many times of it, a moment agrees with the records of that time.
 */
#include "view/now/moment.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../queue/failing.h"
#include "harness.h"
#include "rows.h"
#include "view/line.h"
#include "view/night/part.h"
#include "view/words.h"

/* ---- A moment as a text ---- */

static struct t_script text;

static void add_time(const char *before, int64_t time)
{
    char clock[32];
    if (time != 0)
        t_script_add(&text, "%s%s", before, t_clock(time, clock));
}

static void add_text(const char *before, const char *value)
{
    if (*value)
        t_script_add(&text, "%s%s", before, value);
}

static void see_gpus(const struct gpv_snapshot *s)
{
    char id[GPV_WORD];
    for (size_t i = 0; i < s->gpus.n; i++) {
        const struct gpv_now_gpu *g = &s->gpus.row[i];
        t_script_add(&text, "%s %s", g->name, gpv_does_word(g->does));
        add_text(" ", g->class_name);
        if (g->task != 0)
            t_script_add(&text, " %s attempt %u, %u of them", gpv_task_id(g->task, id), g->attempt,
                         g->tasks);
        add_text(" with ", g->with);
        add_time(" since ", g->since);
        add_text(": ", g->text);
        t_script_add(&text, "\n");
    }
}

static void see_classes(const struct gpv_snapshot *s)
{
    char word[GPV_WORD];
    for (size_t i = 0; i < s->classes.n; i++) {
        const struct gpv_now_class *c = &s->classes.row[i];
        t_script_add(&text, "class %s %u workers %u ready %u loading", c->name, c->workers,
                     c->ready, c->loading);
        if (c->boot_p50 >= 0)
            t_script_add(&text, ", boot %s", gpv_span(c->boot_p50, word));
        if (c->run_p50 >= 0)
            t_script_add(&text, ", run %s", gpv_span(c->run_p50, word));
        t_script_add(&text, ", evicted %u restarts %u", (uint32_t)c->evicted,
                     (uint32_t)c->restarts);
        for (uint32_t why = 0; why < GPV_WHYS; why++)
            if (c->waiting[why] != 0)
                t_script_add(&text, ", %u wait: %s", (uint32_t)c->waiting[why], gpv_why_word(why));
        for (uint32_t outcome = 0; outcome < GPV_OUTCOMES; outcome++)
            if (c->ended_by[outcome] != 0)
                t_script_add(&text, ", %u of %u %s", (uint32_t)c->tasks_by[outcome],
                             (uint32_t)c->ended_by[outcome], gpv_outcome_word(outcome));
        t_script_add(&text, "\n");
    }
}

static void see_batches(const struct gpv_snapshot *s)
{
    char id[GPV_WORD];
    for (size_t i = 0; i < s->batches.n; i++) {
        const struct gpv_now_batch *b = &s->batches.row[i];
        t_script_add(&text, "batch %u %s: %u ok %u bad %u run %u wait %u held, %.0f per hour",
                     b->id, b->name, b->ok, b->bad, b->running, b->ready, b->held, b->per_hour);
        add_time(", ended ", b->ended);
        if (b->first != 0)
            t_script_add(&text, ", first %s %s", gpv_task_id(b->first, id), gpv_why_word(b->why));
        add_text(" ", b->reason);
        add_text(": ", b->text);
        add_time(" since ", b->since);
        t_script_add(&text, "\n");
        if (b->least >= 0)
            t_script_add(&text, "  left %" PRIi64 "-%" PRIi64 " s\n", b->least / 1000000000,
                         b->most < 0 ? -1 : b->most / 1000000000);
    }
}

static void see_past(const struct gpv_snapshot *s)
{
    char id[GPV_WORD], word[GPV_WORD];
    for (size_t i = 0; i < s->findings.n; i++) {
        const struct gpv_now_finding *f = &s->findings.row[i];
        add_time("", f->first);
        add_time("-", f->last);
        add_text(" ", f->what);
        add_text(" of ", f->whose);
        add_text(" on ", f->gpus);
        add_text(": ", f->text);
        add_text(" -> ", f->command);
        t_script_add(&text, "\n");
    }
    for (size_t i = 0; i < s->ends.n; i++) {
        const struct gpv_now_end *e = &s->ends.row[i];
        add_time("", e->time);
        t_script_add(&text, " %s %s %s", gpv_task_id(e->task, id), e->batch_name,
                     gpv_outcome_word(e->outcome));
        if (e->ran >= 0)
            t_script_add(&text, ", ran %s", gpv_span(e->ran, word));
        if (e->waited >= 0)
            t_script_add(&text, ", waited %s", gpv_span(e->waited, word));
        add_text(" on ", e->gpus);
        t_script_add(&text, "\n");
    }
}

static void moment_is(const char *rows, int64_t time, const char *wanted)
{
    struct gpv_night *n = t_night(rows);
    struct gpv_snapshot s;
    T_EQ(gpv_moment(n, time, &s), 0);
    gpv_night_free(n);
    text.size = 0;
    text.text[0] = 0;
    add_text("", s.notice);
    add_text("", *s.notice ? "\n" : "");
    see_gpus(&s);
    see_classes(&s);
    see_batches(&s);
    see_past(&s);
    gpv_snapshot_free(&s);
    T_TEXT(text.text, wanted);
}

/* ---- Scripts ---- */

static const char night[] = "records 1 box\n"
                            "gpu gpu:0 U0 0\ngpu gpu:1 U1 1\ngpu gpu:2 U2 2\ngpu gpu:3 U3 3\n"
                            "class whisper\nclass command\n"
                            "shape 1 whisper 1\nshape 2 command 2 2_GPUs\n"
                            "batch 7 rec @0:00 - 0 - 6 0 0 1 0 ok=3,crashed=1,cancelled=1 6 1\n"
                            "batch 8 sweep @0:30 @2:00 5 - 2 0 0 0 0 ok=2\n"
                            "life opened @0:00 -\n"
                            "tenancy U0 boot whisper @0:01 @0:02 first_use\n"
                            "attempt 7.1 1 1 U0 @0:00 @0:02 @0:20 ok\n"
                            "attempt 7.2 1 1 U0 @0:00 @0:20 @0:25 crashed -11 bad_header\n"
                            "tenancy U0 boot whisper @0:25 @0:27 restart\n"
                            "attempt 7.2 2 1 U0 @0:25 @0:27 @0:29 crashed -11 bad_header\n"
                            "tenancy U0 boot whisper @0:29 @0:31 restart\n"
                            "attempt 7.3 1 1 U0 @0:00 @0:31 @1:10 ok\n"
                            "reason 1 7.3 SEATS @0:01 @0:31 its_limit_of_1_worker_is_reached\n"
                            "reason 1 7.4 SEATS @0:31 @1:20 its_limit_of_1_worker_is_reached\n"
                            "reason 2 8.1 BUSY @0:30 @0:50 needs_2_GPUs,_1_is_free\n"
                            "tenancy U2 kept - @0:32 @0:50 2_GPUs_for_sweep\n"
                            "out U1 quarantined @0:10 @0:45 XID_48\n"
                            "attempt 8.1 1 2 U1,U2 @0:30 @0:50 @1:30 ok\n"
                            "attempt 8.2 1 2 U1,U2 @0:30 @1:30 @2:00 ok\n"
                            "tenancy U0 unload whisper @1:10 @1:11 evicted_for_sweep\n"
                            "attempt 7.5 0 1 - @0:00 - @1:15 cancelled\n"
                            "attempt 7.4 1 1 U3 @0:00 @1:20 @1:40 ok\n"
                            "now @3:00";

T_CASE(a_worker_loads)
{
    moment_is(night, T_AT(0, 1, 30),
              "gpu:0 load whisper since 0:01: first use\n"
              "gpu:1 idle since 0:00\ngpu:2 idle since 0:00\ngpu:3 idle since 0:00\n"
              "class whisper 1 workers 0 ready 1 loading, evicted 0 restarts 0, 6 wait: limit\n"
              "class command 0 workers 0 ready 0 loading, evicted 0 restarts 0\n"
              "batch 7 rec: 0 ok 0 bad 0 run 6 wait 0 held, 0 per hour, first 7.1 limit SEATS: "
              "its limit of 1 worker is reached since 0:01\n");
}

T_CASE(in_the_middle)
{
    moment_is(night, T_AT(0, 40, 0),
              "gpu:0 run whisper 7.3 attempt 1, 1 of them since 0:31\n"
              "gpu:1 out since 0:10: quarantined: XID 48\n"
              "gpu:2 kept since 0:32: 2 GPUs for sweep\n"
              "gpu:3 idle since 0:00\n"
              "class whisper 1 workers 1 ready 0 loading, boot 2 min, run 18 min, evicted 0 "
              "restarts 2, 3 wait: limit, 1 of 1 ok, 1 of 2 crashed\n"
              "class command 0 workers 0 ready 0 loading, evicted 0 restarts 0, 2 wait: "
              "gathering\n"
              "batch 8 sweep: 0 ok 0 bad 0 run 2 wait 0 held, 0 per hour, first 8.1 gathering "
              "BUSY: needs 2 GPUs, 1 is free since 0:30\n"
              "batch 7 rec: 1 ok 1 bad 1 run 3 wait 0 held, 3 per hour, first 7.4 limit SEATS: "
              "its limit of 1 worker is reached since 0:31\n"
              "0:10-0:40 GPU 1 QUARANTINED on 1: XID 48 -> gpudispatch gpus\n"
              "0:01-0:40 GPU 3 idle although tasks waited on 3: its limit of 1 worker is reached "
              "-> gpudispatch explain 7.4\n"
              "0:01-0:32 GPU 2 idle although tasks waited on 2: its limit of 1 worker is reached "
              "-> gpudispatch explain 7.4\n"
              "0:25-0:29 1 task CRASHED signal 11 (2x) of 7 rec 2 on 0: bad header -> gpudispatch "
              "log 7.2\n"
              "0:29 7.2 rec crashed, ran 2 min, waited 2 min on 0\n"
              "0:25 7.2 rec crashed, ran 5 min, waited 20 min on 0\n"
              "0:20 7.1 rec ok, ran 18 min, waited 2 min on 0\n");
}

/* A task of two GPUs runs, a worker leaves. */
T_CASE(later)
{
    moment_is(night, T_AT(1, 10, 30),
              "gpu:0 leave whisper since 1:10: evicted for sweep\n"
              "gpu:1 run command 8.1 attempt 1, 1 of them with gpu:2 since 0:50\n"
              "gpu:2 run command 8.1 attempt 1, 1 of them with gpu:1 since 0:50\n"
              "gpu:3 idle since 0:00\n"
              "class whisper 0 workers 0 ready 0 loading, boot 2 min, run 18 min, evicted 1 "
              "restarts 2, 3 wait: limit, 2 of 2 ok, 1 of 2 crashed\n"
              "class command 0 workers 0 ready 0 loading, evicted 0 restarts 0, 1 wait: unseen\n"
              "batch 8 sweep: 0 ok 0 bad 1 run 1 wait 0 held, 0 per hour, first 8.2 unseen\n"
              "batch 7 rec: 2 ok 1 bad 0 run 3 wait 0 held, 3 per hour, first 7.4 limit SEATS: "
              "its limit of 1 worker is reached since 0:31\n"
              "  left 890-7267 s\n"
              "0:01-1:10:30 GPU 3 idle although tasks waited on 3: its limit of 1 worker is "
              "reached -> gpudispatch explain 7.4\n"
              "1:10-1:10:30 whisper left GPU 0 for sweep on 0\n"
              "0:10-0:45 GPU 1 QUARANTINED on 1: XID 48\n"
              "0:01-0:32 GPU 2 idle although tasks waited on 2: its limit of 1 worker is reached "
              "-> gpudispatch explain 7.4\n"
              "0:25-0:29 1 task CRASHED signal 11 (2x) of 7 rec 2 on 0: bad header -> gpudispatch "
              "log 7.2\n"
              "1:10 7.3 rec ok, ran 39 min, waited 31 min on 0\n"
              "0:29 7.2 rec crashed, ran 2 min, waited 2 min on 0\n"
              "0:25 7.2 rec crashed, ran 5 min, waited 20 min on 0\n"
              "0:20 7.1 rec ok, ran 18 min, waited 2 min on 0\n");
}

/* As ls has it, and of a later time nothing else is known. */
T_CASE(at_the_end)
{
    for (int hours = 3; hours < 5; hours++)
        moment_is(night, T_AT(hours, 0, 0),
                  "gpu:0 idle since 1:11\n"
                  "gpu:1 idle since 2:00\ngpu:2 idle since 2:00\ngpu:3 idle since 1:40\n"
                  "class whisper 0 workers 0 ready 0 loading, boot 2 min, run 20 min, evicted 1 "
                  "restarts 2, 1 wait: unseen, 3 of 3 ok, 1 of 2 crashed, "
                  "1 of 1 cancelled\n"
                  "class command 0 workers 0 ready 0 loading, run 30 min, evicted 0 restarts 0, "
                  "2 of 2 ok\n"
                  "batch 7 rec: 3 ok 2 bad 0 run 1 wait 0 held, 0 per hour, first 7.6 unseen\n"
                  "batch 8 sweep: 2 ok 0 bad 0 run 0 wait 0 held, 0 per hour, ended 2:00\n"
                  "0:01-1:20 GPU 3 idle although tasks waited on 3: its limit of 1 worker is "
                  "reached -> gpudispatch explain 7.6\n"
                  "1:15-1:15 1 task CANCELLED of 7 rec 5\n"
                  "1:10-1:11 whisper left GPU 0 for sweep on 0\n"
                  "0:10-0:45 GPU 1 QUARANTINED on 1: XID 48\n"
                  "0:01-0:32 GPU 2 idle although tasks waited on 2: its limit of 1 worker is "
                  "reached -> gpudispatch explain 7.6\n"
                  "0:25-0:29 1 task CRASHED signal 11 (2x) of 7 rec 2 on 0: bad header -> "
                  "gpudispatch log "
                  "7.2\n"
                  "2:00 8.2 sweep ok, ran 30 min, waited 60 min on 1-2\n"
                  "1:40 7.4 rec ok, ran 20 min, waited 80 min on 3\n"
                  "1:30 8.1 sweep ok, ran 40 min, waited 20 min on 1-2\n"
                  "1:15 7.5 rec cancelled, waited 75 min\n"
                  "1:10 7.3 rec ok, ran 39 min, waited 31 min on 0\n"
                  "0:29 7.2 rec crashed, ran 2 min, waited 2 min on 0\n"
                  "0:25 7.2 rec crashed, ran 5 min, waited 20 min on 0\n"
                  "0:20 7.1 rec ok, ran 18 min, waited 2 min on 0\n");
}

T_CASE(several_tasks_of_a_gpu)
{
    moment_is("gpu gpu:0\nlife opened @0:00 -\n"
              "attempt 1.2 1 - gpu:0 - @0:02 @0:20 ok\n"
              "attempt 1.1 1 - gpu:0 - @0:01 @0:30 ok\n"
              "attempt 1.3 1 - gpu:0 - @0:03 @0:04 ok\n"
              "out gpu:0 drained @0:05 @0:30\nnow @1:00",
              T_AT(0, 5, 0),
              "gpu:0 run 1.1 attempt 1, 2 of them since 0:01\n"
              "class command 0 workers 0 ready 0 loading, run 60 s, evicted 0 restarts 0, 1 of 1 "
              "ok\n"
              "0:05-0:05 GPU 0 DRAINED on 0 -> gpudispatch undrain gpu:0\n"
              "0:04 1.3  ok, ran 60 s on 0\n");
}

/* Its workers have ended with it. */
T_CASE(no_agent)
{
    moment_is("gpu gpu:0\nclass whisper\nlife opened @0:00 @0:10\n"
              "tenancy gpu:0 boot whisper @0:01 @0:02 first_use\n"
              "life opened @0:30 -\nnow @1:00",
              T_AT(0, 20, 0),
              "no agent ran\n"
              "gpu:0 idle since 0:02\n"
              "class whisper 0 workers 0 ready 0 loading, boot 60 s, evicted 0 restarts 0\n"
              "0:10-0:20 no agent ran\n");
}

/* Of 24 h, and batches that ended in them. */
T_CASE(longer_than_a_day)
{
    moment_is("gpu gpu:0\n"
              "batch 1 old @0:00 @1:00 0 - 1 0 0 0 0 error=1\n"
              "batch 2 late @0:00 @20:00 0 - 1 0 0 0 0 error=1\n"
              "attempt 1.1 1 - gpu:0 - @0:00 @1:00 error 1\n"
              "attempt 2.1 1 - gpu:0 - @1:00 @20:00 error 1\n"
              "now @30:00",
              T_AT(30, 0, 0),
              "gpu:0 idle since 20:00\n"
              "class command 0 workers 0 ready 0 loading, evicted 0 restarts 0, 2 of 2 error\n"
              "batch 2 late: 0 ok 1 bad 0 run 0 wait 0 held, 0 per hour, ended 20:00\n"
              "20:00-20:00 1 task ERROR exit 1 of 2 late 1 on 0 -> gpudispatch log 2.1\n"
              "20:00 2.1 late error, ran 19 h 00 on 0\n"
              "1:00 1.1 old error, ran 60 min on 0\n");
}

/* ---- Recordings ---- */

static struct gpv_night *recording(const char *name)
{
    static char data[4 << 20];
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", T_RECORDINGS, name);
    FILE *f = fopen(path, "r");
    T_CHECK(f);
    size_t size = fread(data, 1, sizeof(data), f);
    T_CMP(size, <, sizeof(data));
    T_EQ(fclose(f), 0);
    struct gpv_night *n = gpv_night_new();
    T_CHECK(n);
    T_EQ(gpv_lines_read(n, data, size), 0);
    T_EQ(gpv_night_end(n, 0), 0);
    return n;
}

static void same_uses(const struct gpv_snapshot *s, const struct gpv_night *then)
{
    for (uint32_t gpu = 0; gpu < s->gpus.n; gpu++) {
        struct gpv_uses sum;
        int64_t all = 0;
        T_EQ(gpv_use_sum(then, gpu, then->from, then->to, &sum), 0);
        for (uint32_t use = 0; use < GPV_USES; use++) {
            T_EQ(s->gpus.row[gpu].uses.ns[use], sum.ns[use]);
            all += sum.ns[use];
        }
        T_EQ(all, s->time - s->since);
    }
}

/* Tasks of a batch are somewhere; GPUs run what is there; findings have each bad end. */
static void see_moment(struct gpv_night *n, int64_t time)
{
    struct gpv_night *then = gpv_night_part(n, n->from, time);
    struct gpv_snapshot s;
    uint64_t bad = 0, in_findings = 0, tasks = 0;
    T_CHECK(then);
    T_EQ(gpv_moment(n, time, &s), 0);
    T_EQ(s.gpus.n, n->gpus.n);
    same_uses(&s, then);
    for (size_t i = 0; i < s.batches.n; i++) {
        const struct gpv_now_batch *b = &s.batches.row[i];
        T_EQ(b->ok + b->bad + b->running + b->ready + b->held, b->total);
        T_CHECK(b->first == 0 || b->ready > 0);
    }
    for (size_t i = 0; i < s.findings.n; i++) {
        const struct gpv_now_finding *f = &s.findings.row[i];
        in_findings += f->kind == GPV_FINDING_BAD ? f->count : 0;
        tasks += f->tasks;
        T_CHECK(f->kind == GPV_FINDING_BAD ? f->tasks > 0 && f->tasks <= f->count : f->tasks == 0);
    }
    for (size_t i = 0; i < then->attempts.n; i++)
        bad += gpv_is_bad(then->attempts.row[i].outcome) &&
               then->attempts.row[i].ended >= time - (int64_t)86400 * 1000000000;
    T_EQ(s.bad_24h, in_findings);
    T_EQ(s.bad_24h, bad);
    T_CMP(s.bad_tasks_24h, <=, tasks);
    T_CHECK((s.bad_tasks_24h == 0) == (bad == 0));
    gpv_snapshot_free(&s);
    gpv_night_free(then);
}

/* Those in which the counts of batches agree with the rows. */
T_CASE(recordings)
{
    static const char *const names[] = { "adoption", "crash-burst", "eviction", "failed",
                                         "mig",      "no-gpus",     "nothing",  "one",
                                         "one-gpu",  "quarantine",  "retries",  "shares",
                                         "small",    "waiting" };
    for (size_t i = 0; i < T_LENGTH(names); i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s.lines", names[i]);
        struct gpv_night *n = recording(name);
        for (int part = 0; part <= 40; part++)
            see_moment(n, n->from + (n->to - n->from) / 40 * part);
        see_moment(n, n->to);
        gpv_night_free(n);
    }
}

/* Of any: reading and showing them is total. */
T_CASE(all_recordings)
{
    DIR *d = opendir(T_RECORDINGS);
    int seen = 0;
    T_CHECK(d);
    for (const struct dirent *e; (e = readdir(d));) {
        struct gpv_snapshot s;
        if (!strstr(e->d_name, ".lines"))
            continue;
        struct gpv_night *n = recording(e->d_name);
        for (int part = 0; part <= 4; part++) {
            T_EQ(gpv_moment(n, n->from + (n->to - n->from) / 4 * part, &s), 0);
            gpv_snapshot_free(&s);
        }
        gpv_night_free(n);
        seen++;
    }
    T_EQ(closedir(d), 0);
    T_CMP(seen, >, 15);
}

/* Two findings have the task 1. */
T_CASE(bad_ends_have_tasks)
{
    struct gpv_night *n = t_night("records 1 box\ngpu gpu:0 U0 0\nclass command\n"
                                  "shape 1 command 1\n"
                                  "batch 7 rec @0:00 - 0 - 3 0 0 0 0 ok=1,error=2\n"
                                  "attempt 7.1 1 1 U0 @0:00 @0:01 @0:02 crashed -11 header\n"
                                  "attempt 7.1 2 1 U0 @0:02 @0:02 @0:03 crashed -11 header\n"
                                  "attempt 7.1 3 1 U0 @0:03 @0:03 @0:04 error 1 disk\n"
                                  "attempt 7.2 1 1 U0 @0:00 @0:04 @0:05 error 1 disk\n"
                                  "attempt 7.3 1 1 U0 @0:00 @0:05 @0:06 ok\nnow @0:10");
    struct gpv_snapshot s;

    T_EQ(gpv_moment(n, T_AT(0, 10, 0), &s), 0);
    T_EQ(s.findings.n, 2);
    T_EQ(s.findings.row[0].tasks, 2);
    T_EQ(s.findings.row[0].count, 2);
    T_EQ(s.findings.row[1].tasks, 1);
    T_EQ(s.findings.row[1].count, 2);
    T_EQ(s.bad_24h, 4);
    T_EQ(s.bad_tasks_24h, 2);
    gpv_snapshot_free(&s);
    gpv_night_free(n);
}

T_CASE(a_kept_gpu_names_its_task)
{
    struct gpv_night *n = t_night("records 1 box\ngpu gpu:0 U0 0\ngpu gpu:1 U1 1\n"
                                  "class command\nshape 1 command 2 2_GPUs\n"
                                  "batch 7 wide @0:00 - 0 - 9 0 3 6 0 - 1 1\n"
                                  "batch 8 held @0:00 - 0 held 5 0 5 0 0 - 1 1\n"
                                  "reason 1 7.1 BUSY @0:00 -\n"
                                  "tenancy U0 kept - @0:01 - 7.1:_held_for_2_GPUs\n"
                                  "tenancy U1 kept - @0:01 - 7.1_or_so\nnow @0:10");
    struct gpv_snapshot s;

    T_EQ(gpv_moment(n, T_AT(0, 10, 0), &s), 0);
    T_EQ(s.gpus.row[0].kept_for, GPV_TASK(7, 1));
    T_EQ(s.gpus.row[1].kept_for, 0);
    T_EQ(s.batches.row[0].gpus, 2);
    T_EQ(s.batches.row[0].why, GPV_WHY_GATHERING);
    T_EQ(s.batches.row[1].gpus, 0); /* none of its tasks is ready */
    T_EQ(s.classes.row[0].waiting[GPV_WHY_GATHERING], 6);
    T_EQ(s.classes.row[0].held, 8);
    gpv_snapshot_free(&s);
    gpv_night_free(n);
}

T_CASE(no_memory)
{
    struct gpv_night *n = t_night(night);
    for (unsigned i = 1;; i++) {
        struct gpv_snapshot s;
        fail_at = i;
        int code = gpv_moment(n, T_AT(0, 40, 0), &s);
        unsigned left = fail_at;
        fail_at = 0;
        if (code == 0) {
            gpv_snapshot_free(&s);
            T_CHECK(left != 0);
            break;
        }
        T_CHECK(!s.gpus.row && !s.history);
        T_CMP(i, <, 500);
    }
    gpv_night_free(n);
}
