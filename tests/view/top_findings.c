/* SPDX-License-Identifier: MIT */
/* top_findings.c - what went wrong, and what to type next. */
#include <stdlib.h>
#include <string.h>

#include "top_made.h"
#include "view/night/findings.h"

T_CASE(faults_stand_before_other_findings)
{
    static const struct {
        uint32_t kind;
        const char *what;
    } rows[] = { { GPV_FINDING_EVICTED, "whisper left GPU 4" },
                 { GPV_FINDING_KEPT, "GPU 7 kept free" },
                 { GPV_FINDING_LIMITED, "GPU 6 idle" },
                 { GPV_FINDING_BAD, "22 tasks CRASHED" },
                 { GPV_FINDING_OUT, "GPU 5 QUARANTINED" } };
    static const int order[] = { 3, 4, 1, 2, 0 };
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    for (size_t i = 0; i < T_LENGTH(rows); i++)
        (void)add_finding(&s, rows[i].kind, NOW - (int64_t)i * MINUTE, rows[i].what);
    char *text = text_of(&t, &s);
    const char *at = text;
    for (size_t i = 0; i < T_LENGTH(order); i++) {
        at = strstr(at, rows[order[i]].what);
        T_CHECK(at);
    }
    free(text);
    check_has(&t, &s, "WENT WRONG OR STOOD FREE (", true);
    s.findings.row[3].outcome = GPV_RETURNED; /* it is not charged, and newer than GPU 5 */
    text = text_of(&t, &s);
    at = strstr(text, "GPU 5 QUARANTINED");
    T_CHECK(at && strstr(at, "22 tasks CRASHED"));
    free(text);
    for (size_t i = 0; i < s.findings.n; i++)
        s.findings.row[i].kind = GPV_FINDING_EVICTED;
    check_has(&t, &s, "WENT WRONG (", true);
    gpv_snapshot_free(&s);
}

/* One finding of bad ends, in the first line of the part. */
static struct gpv_now_finding *add_crash(struct gpv_snapshot *s)
{
    struct gpv_now_finding *f = add_finding(s, GPV_FINDING_BAD, NOW, "22 tasks CRASHED signal 11");
    f->tasks = 22;
    f->count = 44;
    snprintf(f->whose, sizeof f->whose, "15 rec-11 610-631");
    snprintf(f->gpus, sizeof f->gpus, "0, 4-5");
    snprintf(f->text, sizeof f->text, "killed by signal 11");
    snprintf(f->command, sizeof f->command, "gpudispatch log 15.610");
    return f;
}

T_CASE(the_cause_gives_way_to_tasks_gpus_and_the_command)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    use_utf8();
    begin(&s, &t, 80, 24);
    struct gpv_now_finding *f = add_crash(&s);
    check_has(&t, &s, "▲ 22 tasks CRASHED   15 rec-11 610-631, GPU 0,4-5         log 15.610\n",
              true);
    t.columns = 93;
    check_has(&t, &s, "15 rec-11 610-631, GPU 0,4-5, 44 times: killed... log 15.610\n", true);
    t.columns = 140;
    check_has(&t, &s,
              "▲ 22 tasks CRASHED signal 11   15 rec-11 610-631, GPU 0,4-5, 44 times: "
              "killed by signal 11 ",
              true);
    f->count = 22;
    check_has(&t, &s, "times", false);
    snprintf(f->what, sizeof f->what, "22 tasks ERROR exit 1");
    t.columns = 80;
    check_has(&t, &s, "▲ 22 tasks ERROR     15 rec-11", true);
    snprintf(f->what, sizeof f->what, "2 tasks ERROR exit 1");
    check_has(&t, &s, "▲ 2 tasks ERROR exit 1 15", false);
    check_has(&t, &s, "▲ 2 tasks ERROR      15 rec-11", true);
    gpv_snapshot_free(&s);
    end_utf8();
}

T_CASE(an_event_of_a_gpu_is_whole)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    struct gpv_now_finding *f = add_finding(&s, GPV_FINDING_EVICTED, NOW, "whisper left GPU 4");
    *f->command = 0;
    check_has(&t, &s, "~ whisper left GPU 4 its text\n", true);
    snprintf(f->what, sizeof f->what, "whisper left GPU 14");
    check_has(&t, &s, "~ whisper left GPU 14: its text\n", true);
    gpv_snapshot_free(&s);
}

/* The mark alone does not say how they ended.  [V7] */
T_CASE(the_outcome_is_a_word_also_of_many_tasks)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    struct gpv_now_finding *f = add_crash(&s);
    snprintf(f->what, sizeof f->what, "99,924 tasks CANCELLED");
    check_has(&t, &s, " 99,924 CANCELLED ", true);
    snprintf(f->what, sizeof f->what, "9,924 tasks NO WORKER (19,848x)");
    check_has(&t, &s, " 9,924 NO WORKER ", true);
    snprintf(f->what, sizeof f->what, "22 tasks CRASHED signal 11");
    check_has(&t, &s, " 22 tasks CRASHED ", true);
    gpv_snapshot_free(&s);
}

T_CASE(a_command_stands_beside_its_finding)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    struct gpv_now_finding *f = add_crash(&s);
    check_has(&t, &s, " TYPE gpudispatch ...\n", true);
    t.columns = 59;
    check_has(&t, &s, "TYPE", false);
    check_has(&t, &s, "log 15.610", false);
    t.columns = 60;
    check_has(&t, &s, " log 15.610\n", true);
    *f->command = 0;
    check_has(&t, &s, "TYPE", false);
    gpv_snapshot_free(&s);
}

T_CASE(the_title_counts_ends_and_tasks)
{
    struct gpv_snapshot s;
    struct gpv_top_state t;

    begin(&s, &t, 80, 24);
    (void)add_crash(&s);
    s.bad_24h = 1254;
    check_has(&t, &s, "\nWENT WRONG (1,254 bad ends in 24 h, newest first) ", true);
    s.bad_tasks_24h = 1033;
    check_has(&t, &s, "\nWENT WRONG (1,254 bad ends of 1,033 tasks in 24 h) ", true);
    s.more.findings = 1;
    check_has(&t, &s, "\nWENT WRONG (1,254 bad ends of 1,033 tasks in 24 h; 1 more) ", true);
    t.columns = 60;
    check_has(&t, &s, "\nWENT WRONG (1,254 bad ends; 1 more)  ", true);
    t.columns = 120;
    check_has(&t, &s, "of 1,033 tasks in 24 h, newest first; 1 more finding) ", true);
    s.bad_tasks_24h = s.bad_24h = 1;
    check_has(&t, &s, "(1 bad end of 1 task in 24 h, newest first; 1 more finding) ", true);
    gpv_snapshot_free(&s);
}
