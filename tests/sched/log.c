/* SPDX-License-Identifier: MIT */
/*
 * log.c - the text of a log.  The reader turns each written line into an equal record and refuses a
 * wrong line with a reason.  A rewrite changes effects only.
 */
#include "harness.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gpudispatch/types.h"
#include "log/log.h"
#include "log/play.h"
#include "sim/replay.h"

static struct gpi_log_line read_line(const char *text)
{
    char error[GPI_LOG_ERROR_SIZE];
    struct gpi_log_line l;

    if (!gpi_log_read(&l, text, strlen(text), error))
        T_FAIL("\"%s\" is refused: %s", text, error);
    return l;
}

/* Writes the line, reads the text and writes the record again.  Both texts must be `wanted`, unless
 * that is NULL.  Returns the record. */
static struct gpi_log_line there_and_back(const struct gpi_log_line *l, const char *wanted)
{
    char text[GPI_LOG_LINE_SIZE], again[GPI_LOG_LINE_SIZE];
    struct gpi_log_line back;

    (void)gpi_log_write(text, l);
    back = read_line(text);
    T_TEXT(gpi_log_write(again, &back), text);
    T_EQ(back.kind, l->kind);
    T_EQ(back.stamped, l->stamped);
    T_EQ(back.now, l->now);
    if (wanted)
        T_TEXT(text, wanted);
    return back;
}

/* ---- events and actions ---- */

struct kind {
    uint32_t fields;
    const char *how;
    uint32_t bits;
    const char *what;
};

#define X_EVENT(name, fields, how, bits, what) { (fields), how, (bits), what },
#define X_ACTION(name, fields, how, bits, what) { (fields), how, (bits), what },
static const struct kind events[] = { GPI_EVENT_MAP(X_EVENT) },
                         actions[] = { GPI_ACTION_MAP(X_ACTION) };

static uint32_t count_words(const char *list)
{
    uint32_t n = 0;

    while (*(list += strspn(list, " "))) {
        list += strcspn(list, " ");
        n++;
    }
    return n;
}

/* Returns the number of values of `how`.  For bits, this includes no bit and all bits. */
static uint32_t hows(const struct kind *k)
{
    const uint32_t n = count_words(k->how);

    return k->bits ? 1u << n : n ? n : 1;
}

static uint32_t whats(const struct kind *k)
{
    const uint32_t n = count_words(k->what);

    return n ? n : 1;
}

/* Sets each field of the kind to a value of its own, at `round` 1 to its maximum. */
#define FILL(record, kind, round, how_value, what_value)                                 \
    do {                                                                                 \
        const uint32_t has = (kind)->fields;                                             \
        (record)->slot = has & GPI_F_SLOT ? (round) ? UINT32_MAX - 1 : 11 : 0;           \
        (record)->incarnation = has & GPI_F_INCARNATION ? (round) ? UINT32_MAX : 12 : 0; \
        (record)->task = has & GPI_F_TASK ? (round) ? UINT32_MAX : 13 : 0;               \
        (record)->device = has & GPI_F_DEVICE ? (round) ? UINT32_MAX - 1 : 14 : 0;       \
        (record)->cell = has & GPI_F_CELL ? (round) ? 64 : 15 : 0;                       \
        (record)->how = has & GPI_F_HOW ? (how_value) : 0;                               \
        (record)->what = has & GPI_F_WHAT ? (what_value) : 0;                            \
        (record)->at = has & GPI_F_AT ? (round) ? GPI_NEVER : 16 * GPI_MS : 0;           \
    } while (0)

#define SAME(a, b, member) T_EQ((a)->member, (b)->member)
#define X_SAME(name, member, key) SAME(a, b, member);

static void check_event(const struct gpi_log_line *l)
{
    const struct gpi_log_line back = there_and_back(l, NULL);
    const struct gpi_sched_event *a = &l->event, *b = &back.event;

    SAME(a, b, kind);
    SAME(a, b, now);
    GPI_SCHED_FIELDS(X_SAME)
}

T_CASE(every_event)
{
    struct gpi_log_line l = { .kind = GPI_LOG_EVENT, .stamped = true };
    uint32_t lines = 0;

    for (uint32_t kind = 0; kind < GPI_EVENTS; kind++)
        for (uint32_t how = 0; how < hows(&events[kind]); how++)
            for (uint32_t what = 0; what < whats(&events[kind]); what++)
                for (uint32_t round = 0; round < 2; round++) {
                    l.event.kind = kind;
                    l.event.now = l.now = round ? GPI_NEVER - 1 : 0;
                    FILL(&l.event, &events[kind], round, how, what);
                    check_event(&l);
                    lines++;
                }
    T_CMP(lines, >, 2 * GPI_EVENTS);
}

static void check_action(const struct gpi_log_line *l)
{
    const struct gpi_log_line back = there_and_back(l, NULL);
    const struct gpi_sched_action *a = &l->action, *b = &back.action;

    SAME(a, b, kind);
    GPI_SCHED_FIELDS(X_SAME)
}

T_CASE(every_action)
{
    struct gpi_log_line l = { .kind = GPI_LOG_ACTION };

    for (uint32_t kind = 0; kind < GPI_ACTIONS; kind++)
        for (uint32_t how = 0; how < hows(&actions[kind]); how++)
            for (uint32_t what = 0; what < whats(&actions[kind]); what++)
                for (uint32_t round = 0; round < 2; round++) {
                    l.action.kind = kind;
                    FILL(&l.action, &actions[kind], round, how, what);
                    check_action(&l);
                }
}

/* ---- other lines ---- */

#define LINE(...) there_and_back(&(struct gpi_log_line){ __VA_ARGS__ }

T_CASE(lines)
{
    (void)LINE(.kind = GPI_LOG_BLANK), "");
    (void)LINE(.kind = GPI_LOG_COMMENT), "#");
    (void)LINE(.kind = GPI_LOG_RULE), "----");
    (void)LINE(.kind = GPI_LOG_CUT), "cut");
    (void)LINE(.kind = GPI_LOG_DEVICE, .device = { 0, true, 10 * GPI_S }), "device 0");
    (void)LINE(.kind = GPI_LOG_DEVICE, .device = { 3, false, 60 * GPI_S }),
               "device 3 watched=0 kill_limit=60s");
    (void)LINE(.kind = GPI_LOG_SLOT, .slot = { 2, 3, { 0, 65535, 1 } }),
               "slot 2 devices=0,65535,1");
    (void)LINE(.kind = GPI_LOG_EVENT, .stamped = true, .now = 1,
               .event = { .now = 1, .kind = GPI_EV_EXITED, .slot = 1, .incarnation = 2,
                          .how = GPI_EXITED_PASSED | GPI_EXITED_BY_US }),
               "@1ns exited s=1 i=2 how=passed+by_us");
    (void)LINE(.kind = GPI_LOG_EVENT, .event = { .kind = GPI_EV_DEVICE, .device = 1,
                                                 .how = GPI_MAY_OUT, .what = GPI_USE_KILL }),
               "device d=1 how=out what=kill");
    (void)LINE(.kind = GPI_LOG_SEND, .stamped = true, .now = 1500 * GPI_US), "@1500us send");
    (void)LINE(.kind = GPI_LOG_DECIDE, .stamped = true), "@0s decide");
    (void)LINE(.kind = GPI_LOG_END,
               .end = { .task = 3, .outcome = GPUD_OUTCOME_SUCCESS, .phase = GPUD_PHASE_PROCESS }),
               "end t=3 outcome=SUCCESS phase=PROCESS");
    (void)LINE(.kind = GPI_LOG_END,
               .end = { 3, GPUD_OUTCOME_ERROR, GPUD_PHASE_PROCESS, true, GPI_MS, GPI_US }),
               "end t=3 outcome=ERROR phase=PROCESS run=1ms share=1us final");
    (void)LINE(.kind = GPI_LOG_EVENT, .event = { .kind = GPI_EV_CAME_BACK, .task = 2 }),
               "came_back t=2");
    (void)LINE(.kind = GPI_LOG_EVENT, .event = { .kind = GPI_EV_CAME_BACK, .task = 2,
                                                 .how = GPI_BACK_SPOILT }),
               "came_back t=2 how=spoilt");
    (void)LINE(.kind = GPI_LOG_EVENT, .event = { .kind = GPI_EV_ROOM, .slot = 1, .cell = 64 }),
               "room s=1 c=64");
    (void)LINE(.kind = GPI_LOG_ACTION, .action = { .kind = GPI_ACT_LIFE, .slot = 4,
                                                   .how = GPI_LIFE_DOOMED }), "slot 4 DOOMED");
    (void)LINE(.kind = GPI_LOG_ACTION, .action = { .kind = GPI_ACT_NOTE, .slot = GPI_NOWHERE,
                                                   .device = 1, .how = GPI_NOTE_DRAINED }),
               "NOTE d=1 how=drained");
    (void)LINE(.kind = GPI_LOG_ACTION, .action = { .kind = GPI_ACT_NOTE, .slot = 4,
                                                   .device = GPI_NOWHERE, .how = GPI_NOTE_DIED,
                                                   .what = GPI_WHY_LIMIT }),
               "NOTE s=4 how=died what=limit");
    (void)LINE(.kind = GPI_LOG_SENT, .sent = { 1, 2, 63, false, false }), "sent s=1 t=2 c=63");
    (void)LINE(.kind = GPI_LOG_SENT, .sent = { 1, 2, 63, true, true }),
               "sent s=1 t=2 c=63 alone last");
    (void)LINE(.kind = GPI_LOG_ENDED,
               .ended = { 3, false, GPUD_OUTCOME_TIMEOUT, GPUD_PHASE_HARD, GPI_WHY_LIMIT, 2 }),
               "task 3 TIMEOUT HARD attempts=2 why=limit");
    (void)LINE(.kind = GPI_LOG_ENDED,
               .ended = { 3, true, GPUD_OUTCOME_CRASHED, GPUD_PHASE_PROCESS, GPI_WHY_NO, 1 }),
               "task 3 CRASHED PROCESS attempts=1 again");
}

T_CASE(submit)
{
    struct gpi_log_line l = { .kind = GPI_LOG_SUBMIT,
                              .submit = { 7, { 0, 1, 1, GPI_NEVER, GPI_NEVER } } }, back;

    back = there_and_back(&l, "submit t=7");
    T_CHECK(!memcmp(&back.submit.what, &l.submit.what, sizeof l.submit.what));
    l.submit.what = (struct gpi_sched_task){ INT32_MIN, 255, 0, 0, 1 };
    back = there_and_back(
        &l, "submit t=7 priority=-2147483648 attempts=255 causes=0 limit=0s expires=1ns");
    T_CHECK(!memcmp(&back.submit.what, &l.submit.what, sizeof l.submit.what));
}

T_CASE(submit_with_requests)
{
    struct gpi_log_line l = { .kind = GPI_LOG_SUBMIT, .submit = { 7, { .max_attempts = 1 } } },
                        back;

    l.submit.what.causes = GPUD_RETRY_CRASH;
    l.submit.what.limit = l.submit.what.expires = GPI_NEVER;
    l.submit.what.order = UINT64_MAX;
    l.submit.what.n_requests = 2;
    l.submit.request[0] = (struct gpi_request){ .devices = 1, .share = 5000, .memory = 1ull << 30 };
    l.submit.request[1] = (struct gpi_request){ .cpus = 2 };
    back = there_and_back(&l, "submit t=7 order=18446744073709551615 "
                              "need=devices:1,share:5000,memory:1GiB "
                              "need=devices:0,share:0,cpus:2,memory:0");
    T_CHECK(!memcmp(&back.submit.what, &l.submit.what, sizeof l.submit.what));
    T_CHECK(!memcmp(back.submit.request, l.submit.request, sizeof l.submit.request));
}

/* A log has the outcome and phase names of the public functions. */
T_CASE(names)
{
    struct gpi_log_line l = { .kind = GPI_LOG_ENDED, .ended = { .attempts = 1 } };
    char wanted[GPI_LOG_LINE_SIZE];

    for (uint32_t outcome = 1; outcome < GPUD_OUTCOME_COUNT; outcome++)
        for (uint32_t phase = 0; phase < GPUD_PHASE_COUNT; phase++) {
            l.ended.outcome = outcome;
            l.ended.phase = phase;
            (void)snprintf(wanted, sizeof wanted, "task 0 %s %s attempts=1",
                           gpud_outcome_name(outcome), gpud_phase_name(phase));
            (void)there_and_back(&l, wanted);
        }
}

/* The writer marks a value without a word with a question mark, which no reader accepts. */
T_CASE(no_word)
{
    const struct gpi_log_line l = { .kind = GPI_LOG_ACTION,
                                    .action = { .kind = GPI_ACT_KILL, .how = 99 } },
                              none = { .kind = GPI_LOG_EVENT, .event = { .kind = GPI_EVENTS } },
                              bits = { .kind = GPI_LOG_EVENT,
                                       .event = { .kind = GPI_EV_SETUP_OK, .how = 1u << 31 } };
    char text[GPI_LOG_LINE_SIZE];

    T_TEXT(gpi_log_write(text, &l), "KILL s=0 how=?99");
    T_TEXT(gpi_log_write(text, &bits), "setup_ok s=0 i=0 how=?31");
    T_CHECK(*gpi_log_write(text, &none) == '?');
}

T_CASE(times)
{
    static const struct {
        const char *text;
        uint64_t ns;
        const char *written;
    } times[] = {
        { "0ns", 0, "0s" },
        { "5s", 5 * GPI_S, "5s" },
        { "5000ms", 5 * GPI_S, "5s" },
        { "1075ms", 1075 * GPI_MS, "1075ms" },
        { "1075000us", 1075 * GPI_MS, "1075ms" },
        { "1075001us", 1075001 * GPI_US, "1075001us" },
        { "1075001000ns", 1075001 * GPI_US, "1075001us" },
        { "007ns", 7, "7ns" },
        { "18446744073s", 18446744073 * GPI_S, "18446744073s" },
        { "18446744073709551614ns", GPI_NEVER - 1, "18446744073709551614ns" },
        { "18446744073709551615ns", GPI_NEVER, "never" },
        { "never", GPI_NEVER, "never" },
    };
    char text[64];
    struct gpi_log_line l;

    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        (void)snprintf(text, sizeof text, "looked s=0 at=%s", times[i].text);
        l = read_line(text);
        T_CHECK(l.event.at == times[i].ns);
        (void)snprintf(text, sizeof text, "looked s=0 at=%s", times[i].written);
        (void)there_and_back(&l, text);
    }
}

/* ---- settings ---- */

/* Returns the number of 4-byte words that differ between *a and *b. */
static size_t count_different(const struct gpi_sched_settings *a,
                              const struct gpi_sched_settings *b)
{
    uint32_t x[sizeof *a / 4], y[sizeof *a / 4];
    size_t n = 0;

    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    for (size_t i = 0; i < sizeof *a / 4; i++)
        n += x[i] != y[i];
    return n;
}

static uint32_t each_setting(struct gpi_sched_settings *to, const struct gpi_sched_settings *from)
{
    struct gpi_sched_settings defaults;
    struct gpi_log_line l;
    uint32_t at = 0, n = 0;

    gpi_log_defaults(to);
    gpi_log_defaults(&defaults);
    for (; gpi_log_setting(&l, &defaults, from, &at); n++) {
        l = there_and_back(&l, NULL);
        gpi_log_set(to, &l);
    }
    return n;
}

/* A setting that the table of log.c lacks keeps its zeros here.  Only padding may do so. */
T_CASE(every_setting)
{
    struct gpi_sched_settings defaults, set, back;
    size_t makes_end, restart_ends, retry_ends;

    gpi_log_defaults(&defaults);
    T_EQ(each_setting(&back, &defaults), 0);
    memset(&set, 1, sizeof set);
    set.pool.slots = set.pool.devices = 4000; /* their maximum is below 0x01010101 */
    set.pool.tasks = 100000;
    set.pool.classes = 200;
    set.class.ahead = set.class.batch = 64;
    makes_end = offsetof(struct gpi_sched_settings, pool.makes) + sizeof set.pool.makes;
    memset((char *)&set + makes_end, 0,
           offsetof(struct gpi_sched_settings, pool.canary_limit) - makes_end);
    memset((char *)&set + offsetof(struct gpi_sched_settings, pool.pooled), 0,
           offsetof(struct gpi_sched_settings, pool.kill_limit) -
               offsetof(struct gpi_sched_settings, pool.pooled)); /* a line "fact plan" has it */
    memset(&set.pool.plan, 0, sizeof set.pool.plan);              /* the same */
    restart_ends = offsetof(struct gpi_restart_policy, failures_in_a_row) + sizeof(uint32_t);
    retry_ends = offsetof(struct gpi_retry_policy, cap) + sizeof(uint64_t);
    memset((char *)&set.class.restart + restart_ends, 0, sizeof set.class.restart - restart_ends);
    memset((char *)&set.class.retry + retry_ends, 0, sizeof set.class.retry - retry_ends);
    T_CMP(each_setting(&back, &set), >, 15);
    memset((char *)&back.class.executed, 1, 4); /* a bool and its padding */
    T_EQ(count_different(&back, &set), 0);
}

T_CASE(no_settings_but_the_changed)
{
    struct gpi_sched_settings defaults, set, back;
    struct gpi_log_line l;
    char text[GPI_LOG_LINE_SIZE];
    uint32_t at = 0;

    gpi_log_defaults(&defaults);
    gpi_log_defaults(&set);
    T_CHECK(!gpi_log_setting(&l, &defaults, &set, &at));
    set.class.restart.backoff = 250 * GPI_MS;
    at = 0;
    T_CHECK(gpi_log_setting(&l, &defaults, &set, &at));
    T_TEXT(gpi_log_write(text, &l), "set restart_backoff=250ms");
    T_CHECK(!gpi_log_setting(&l, &defaults, &set, &at));
    gpi_log_defaults(&back);
    l = read_line("set restart_backoff=250ms");
    gpi_log_set(&back, &l);
    T_CHECK(back.class.restart.backoff == set.class.restart.backoff);
}

/* ---- refused lines ---- */

T_CASE(bad_lines)
{
    static const char *const lines[][2] = {
        { "frobnicate", "frobnicate is no event, call, action or other word of a log" },
        { "Time", "Time is no event, call, action or other word of a log" },
        { "look s=0", "look is no event, call, action or other word of a log" },
        { "---", "--- is no event, call, action or other word of a log" },
        { "time\r", "time? is no event, call, action or other word of a log" },
        { "keeper_up s=0 t=1", "event keeper_up has no field t" },
        { "keeper_up", "event keeper_up lacks field s" },
        { "keeper_up 0", "event keeper_up has no field 0" },
        { "keeper_up s=0 s=0", "field s stands twice" },
        { "keeper_up s=", "s is , expected a number from 0 to 4294967295" },
        { "keeper_up s=-1", "s is -1, expected a number from 0 to 4294967295" },
        { "keeper_up s=4294967296", "s is 4294967296, expected a number from 0 to 4294967295" },
        { "keeper_up s=99999999999999999999999999999999999999999999999999",
          "s is 9999999999999999999999999999999999999999, expected a number from 0 to 4294967295" },
        { "keeper_up =0", "event keeper_up has no field =0" },
        { "keeper_gone s=0", "event keeper_gone lacks field how" },
        { "keeper_gone s=0 how=sane", "how is sane, expected one of: plain unfit vain" },
        { "keeper_gone s=0 how=0", "how is 0, expected one of: plain unfit vain" },
        { "setup_ok s=0 i=1 how=passed+",
          "how is passed+, expected one or more, with + between them, of: passed" },
        { "setup_ok s=0 i=1 how=",
          "how is , expected one or more, with + between them, of: passed" },
        { "looked s=0 at=5", "at is 5, expected a time such as 20ms, or never" },
        { "looked s=0 at=ms", "at is ms, expected a time such as 20ms, or never" },
        { "looked s=0 at=1.5s", "at is 1.5s, expected a time such as 20ms, or never" },
        { "looked s=0 at=18446744074s",
          "at is 18446744074s, expected a time such as 20ms, or never" },
        { "LOOK s=0 at=1s", "action LOOK has no field at" },
        { "KILL s=0", "action KILL lacks field how" },
        { "@5ms", "expected a step behind the time" },
        { "@ time", "@ is followed by , expected a time such as @1075ms" },
        { "@5 time", "@ is followed by 5, expected a time such as @1075ms" },
        { "@never time", "@ is followed by never, expected a time such as @1075ms" },
        { "@5ms LOOK s=0", "LOOK has no time: only events and calls have one" },
        { "@5ms slot 0 UP", "slot has no time: only events and calls have one" },
        { "@5ms device 0", "device has no time: only events and calls have one" },
        { "@5ms set grace=1s", "set is no event, call, action or other word of a log" },
        { "set", "expected set NAME=VALUE" },
        { "set grace=1s lead=1s", "expected set NAME=VALUE" },
        { "set pace=1s", "no setting has the name pace" },
        { "set grace", "no setting has the name " },
        { "set grace=1", "grace is 1, expected a time such as 20ms, or never" },
        { "set ahead=65", "ahead is 65, expected a number from 0 to 64" },
        { "set batch=0", "batch is 0, expected a number from 1 to 64" },
        { "set tasks=0", "tasks is 0, expected a number from 1 to 2097152" },
        { "set executed=yes", "executed is yes, expected 0 or 1" },
        { "device", "event device lacks field d" },
        { "device 0 watched=2", "watched is 2, expected 0 or 1" },
        { "device x", "device is x, expected a number from 0 to 4294967295" },
        { "fact end t=0", "a core has no fact of this kind" },
        { "@1s fact device 0", "this fact has no time" },
        { "fact @1s foreign d=0", "expected the time before fact" },
        { "slot 0 devices=", "devices is , expected up to 16 numbers with commas between them" },
        { "slot 0 devices=0,",
          "devices is 0,, expected up to 16 numbers with commas between them" },
        { "slot 0 devices=65536",
          "devices is 65536, expected up to 16 numbers with commas between them" },
        { "slot 0 devices=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
          "devices is 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16, expected up to 16 numbers with "
          "commas between them" },
        { "slot 0 AWAY",
          "state is AWAY, expected one of: " GPI_LIFE_WORDS },
        { "slot 0 UP DOWN", "slot has no field DOWN" },
        { "submit", "submit lacks field t" },
        { "submit 0", "submit has no field 0" },
        { "submit t=0 priority=2147483648",
          "priority is 2147483648, expected a number from -2147483648 to 2147483647" },
        { "submit t=0 priority=-2147483649",
          "priority is -2147483649, expected a number from -2147483648 to 2147483647" },
        { "submit t=0 priority=-",
          "priority is -, expected a number from -2147483648 to 2147483647" },
        { "submit t=0 attempts=0", "attempts is 0, expected a number from 1 to 255" },
        { "submit t=0 order=-1", "order is -1, expected a number below 2^64" },
        { "submit t=0 need=devices:1,cores:2", "a request has no field cores" },
        { "submit t=0 need=cpus:1 need=cpus:2 need=cpus:3 need=cpus:4 need=cpus:5",
          "more than 4 variants" },
        { "submit t=0 causes=16", "causes is 16, expected a number from 0 to 15" },
        { "send s=0", "send has no field s" },
        { "end t=0 outcome=SUCCESS", "end lacks field phase" },
        { "sent s=0 t=0 c=64", "c is 64, expected a number from 0 to 63" },
        { "sent s=0 t=0 c=6 again", "sent has no field again" },
        { "sent s=0 t=0 c=6 last last", "field last stands twice" },
        { "sent s=0 t=0 c=6 last=1", "sent has no field last" },
        { "room s=0 c=65", "c is 65, expected a number from 0 to 64" },
        { "task 0 SUCCESS PROCESS", "task lacks field attempts" },
        { "task 0 attempts=1", "task lacks field outcome" },
        { "task 0 t=0", "task has no field t" },
        { "time a a a a a a a a a a a a a a a a a a a a a a a a", "more than 24 words" },
        { "\xc3\xa4\x01", "??? is no event, call, action or other word of a log" },
    };
    char error[GPI_LOG_ERROR_SIZE];
    struct gpi_log_line l;

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (gpi_log_read(&l, lines[i][0], strlen(lines[i][0]), error))
            T_FAIL("\"%s\" is not refused", lines[i][0]);
        T_TEXT(error, lines[i][1]);
    }
    T_CHECK(!gpi_log_read(&l, "ti\0me", 5, error)); /* a 0 byte does not end a line */
}

T_CASE(blanks_do_not_count)
{
    T_EQ(read_line(" \t ").kind, GPI_LOG_BLANK);
    T_EQ(read_line("  # a a a a a a a a a a a a a a a a a a a").kind, GPI_LOG_COMMENT);
    T_EQ(read_line("#").kind, GPI_LOG_COMMENT);
    T_EQ(read_line(" ----  ").kind, GPI_LOG_RULE);
    T_EQ(read_line("\tkeeper_up   s=3 ").event.slot, 3);
    T_EQ(read_line("task attempts=2 0 why=limit SUCCESS PROCESS").ended.why, GPI_WHY_LIMIT);
    T_CHECK(read_line("task again 0 SUCCESS PROCESS attempts=2").ended.again);
}

/* ---- replays ---- */

#define EXTERNAL \
    "fact plan\nfact device 0\ndevice 0\nfact class 0 need=devices:1\nclass 0\n\n"
#define BEGIN "device 0 watched=0\nslot 0 devices=0\n\n"

static struct gpi_replay replay(const char *text, enum gpi_replay_result wanted)
{
    struct gpi_replay r = { 0 };

    T_EQ(gpi_replay(&r, text, strlen(text)), wanted);
    return r;
}

/* Returns the text with the core's current effects.  The caller frees it. */
static char *rewrite(const char *text)
{
    char *anew = NULL;
    size_t size = 0;
    struct gpi_replay r = { .rewritten = open_memstream(&anew, &size) };

    T_CHECK(r.rewritten);
    if (gpi_replay(&r, text, strlen(text)) == GPI_REPLAY_BAD)
        T_FAIL("line %u: %s", r.line, r.error);
    T_CHECK(fclose(r.rewritten) == 0);
    return anew;
}

T_CASE(bad_scripts)
{
    static const struct {
        const char *text;
        uint32_t line;
        const char *error;
    } scripts[] = {
        { "frobnicate\n", 1, "frobnicate is no event, call, action or other word of a log" },
        { "\n# a comment\n" BEGIN "keeper_up s=0 t=0", 6, "event keeper_up has no field t" },
        { "LOOK s=0\n", 1, "an effect without a step: expected ---- before it" },
        { "----\n", 1, "expected ---- once, behind a step" },
        { BEGIN "@1s decide\n----\n----\n", 6, "expected ---- once, behind a step" },
        { BEGIN "@1s decide\n\n----\n", 6, "expected ---- once, behind a step" },
        { BEGIN "@1s decide\n----\n@2s decide\n", 6,
          "a step among effects: expected a blank line before it" },
        { BEGIN "@2s decide\n@1s decide\n", 5, "its time is before that of the step before" },
        { BEGIN "set slots=1\n", 4,
          "expected settings before classes, devices, slots and steps" },
        { "set classes=2\n" BEGIN "class 2\n", 5, "the next class is 1, not 2" },
        { BEGIN "class 1\n", 4, "expected at most 1 classes (set classes=)" },
        { BEGIN "submit t=0 class=1\n", 4, "class 1 is not there: there are 1" },
        { BEGIN "slot 1 class=1 devices=0\n", 4, "class 1 is not there: there are 1" },
        { "set classes=2\n" BEGIN "set grace=19ms\nclass 1\n", 6,
          "lead exceeds grace: expected at most that" },
        { BEGIN "want s=1\n", 4, "slot 1 is not there: there are 1" },
        { BEGIN "drain d=1\n", 4, "device 1 is not there: there are 1" },
        { BEGIN "submit t=16\n", 4, "task 16 is not there: there are 16" },
        { BEGIN "cancel t=16 how=soft\n", 4, "task 16 is not there: there are 16" },
        { BEGIN "end t=0 outcome=SUCCESS phase=PROCESS\n", 4,
          "task 0 is not submitted, or has ended" },
        { BEGIN "want s=0\nsubmit t=0\nsubmit t=0\n", 6,
          "task 0 is submitted already, and has not ended" },
        { BEGIN "want s=0\nsubmit t=0\nend t=0 outcome=CRASHED phase=PROCESS\n", 6,
          "an attempt ends by itself with SUCCESS, ERROR, TIMEOUT or CANCELLED" },
        { BEGIN "slot 2 devices=0\n", 4, "the next slot is 1, not 2" },
        { BEGIN "slot 1 devices=1\n", 4, "device 1 is not there: there are 1" },
        { BEGIN "slot 1 devices=0,0\n", 4, "device 0 stands twice" },
        { BEGIN "device 2\n", 4, "the next device is 1, not 2" },
        { "set devices=1\n" BEGIN "device 1\n", 5, "expected at most 1 devices (set devices=)" },
        { "set grace=19ms\n" BEGIN, 2, "lead exceeds grace: expected at most that" },
        { "set slots=1\n" BEGIN "slot 1 devices=0\n", 5, "expected at most 1 slots (set slots=)" },
        { BEGIN "slot 1\n", 4, "expected devices=" },
        { "fact plan\nset slots=2\ndevice 0\nslot 0 devices=0\n", 4, "a seat has no device" },
        { BEGIN "fact plan\n", 4,
          "expected fact plan before classes, devices, slots and steps" },
        { "fact x\n", 1, "x is no fact of a plan" },
        { "fact class 0 residence=resident need=devices:1\n", 1,
          "expected fact plan first of all" },
        { "fact plan\nfact class 0 residence=resident\n", 2, "expected need=" },
        { EXTERNAL "submit t=0\n", 7, "class 0 is external, expected need=" },
        { EXTERNAL "fact adopt t=0 d=0 need=devices:1\n", 7,
          "task 0 is none of an external class, or no run is free" },
        { EXTERNAL "submit t=0 need=devices:1\nfact adopt t=0 d=0 need=devices:2\n", 8,
          "expected d= and need= with as many devices" },
        { EXTERNAL "submit t=0 need=devices:1\nfact adopt t=0 d=0 at=1s need=devices:1\n", 8,
          "expected grant=, attempts= and at= of a task that runs" },
        { EXTERNAL "submit t=0 need=devices:1\nfact adopt t=0 d=0 need=devices:1,share:10001\n", 8,
          "it has too much" },
        { EXTERNAL "submit t=0 need=devices:1\nfact adopt t=0 d=0 at=0s need=devices:1\n"
          "fact adopt t=0 d=0 at=0s need=devices:1\n", 9,
          "task 0 is none of an external class, or no run is free" },
        { "fact plan\nfact class 0 residence=resident need=devices:17\n", 2,
          "a need has 17 devices, expected at most 16" },
        { "fact plan\nfact class 0 residence=resident need=devices:2,share:5\n", 2,
          "a share is at most 10000, and just that of several devices" },
        { "fact plan\nfact class 0 residence=resident need=devices:1,places:1\n", 2,
          "no set of places has the number 1" },
        { "fact plan sets=99999\n", 1, "there are 99999 sets of places, expected at most 1024" },
        { "fact plan sets=1\nfact device 0\ndevice 0\nfact places 2 d=0\n", 4,
          "no set of places has the number 2" },
        { "fact plan sets=1\nfact device 0\ndevice 0\nfact places 1 d=0\nfact places 1 d=0\n", 5,
          "device 0 is in set 1 already" },
        { "fact plan sets=1\nfact device 0\ndevice 0\nfact places 1 d=0,0\n", 4,
          "device 0 stands twice" },
        { "fact plan sets=1\nfact places 1 d=0\n", 2, "device 0 is not there: there are 0" },
        { "fact plan\nfact class 0 residence=resident need=devices:1\nclass 0\n"
          "fact class_set c=0 what=remove\n", 4,
          "class 0: expected end, then remove, and nothing else" },
        { "fact plan\nfact class 0 residence=resident need=devices:1\nclass 0\n"
          "fact class_set c=0 what=end\nsubmit t=0\n", 5, "class 0 has ended" },
        { "fact plan\nfact class 0 residence=resident need=devices:1\nclass 0\n"
          "submit t=0 need=devices:1\n", 4,
          "the devices of class 0 are fixed, expected no need=" },
        { "fact plan\nfact class 0 residence=transient need=devices:1\nclass 0\n"
          "submit t=0 need=devices:17\n", 4, "a need has 17 devices, expected at most 16" },
        { "fact plan\nfact class 0 residence=resident need=devices:1\nclass 0\nsubmit t=0\n"
          "decide\nfact class_set c=0 what=end\ndecide\nfact class_set c=0 what=remove\nclass 0\n"
          "class 0\n", 10, "the next class is 1, not 0" },
        { "fact plan\nclass 0\n", 2, "expected fact class before class" },
        { "fact plan\ndevice 0\ndevice 0\n", 3, "device 0 is there already" },
        { "fact plan\nslot 0\nwant s=0\n", 3, "the plan wants seats, expected no WANT" },
        { "fact plan\nset slots=1\nslot 0\n", 3, "expected at least 2 slots: one is spare" },
    };

    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        const struct gpi_replay r = replay(scripts[i].text, GPI_REPLAY_BAD);
        T_TEXT(r.error, scripts[i].error);
        T_EQ(r.line, scripts[i].line);
    }
    T_EQ(replay("", GPI_REPLAY_EQUAL).steps, 0);
}

/* WANT for a slot has effects, no matter which.  The decide before it has no effect. */
#define STORY                                                       \
    "# a story\n"                                                   \
    "set grace=1s\n"                                                \
    BEGIN                                                           \
    "# nothing happens\n@1ms decide\n\n"                            \
    "@2ms   want s=0\n%s# a comment behind it\n\n\n"                \
    "#\tthe end\nsubmit t=0\ndecide"

static char *story(const char *effects)
{
    char *text = NULL;

    T_CHECK(asprintf(&text, STORY, effects) > 0);
    return text;
}

T_CASE(rewriting)
{
    char *bare = story(""), *wrong = story("----\nLOOK s=0\nLOOK s=0\n# between\nLOOK s=0\n"),
         *first = rewrite(bare), *again = rewrite(first), *mended = rewrite(wrong);
    struct gpi_replay r = replay(bare, GPI_REPLAY_DIFFERS);

    T_EQ(r.line, 11);
    T_EQ(r.steps, 4);
    T_TEXT(r.wanted, "nothing");
    T_CHECK(strstr(first, r.got));
    r = replay(wrong, GPI_REPLAY_DIFFERS);
    T_EQ(r.line, 11);
    T_TEXT(r.wanted, "LOOK s=0");
    r = replay(first, GPI_REPLAY_EQUAL);
    T_EQ(r.steps, 6);
    T_TEXT(again, first);
    (void)replay(mended, GPI_REPLAY_EQUAL);
    T_CHECK(!strstr(mended, "LOOK"));
    T_CHECK(strstr(mended, "# between\n"));
    T_CHECK(strstr(first, "# a story\nset grace=1s\n" BEGIN "# nothing happens\n@1ms decide\n\n"
                          "@2ms   want s=0\n"));
    T_CHECK(strstr(first, "# a comment behind it\n"));
    T_CHECK(strstr(first, "\n\n\n#\tthe end\nsubmit t=0\ndecide\n"));
    free(bare);
    free(wrong);
    free(first);
    free(again);
    free(mended);
}

/* ---- recording ---- */

static void live(struct gpi_play *p)
{
    const struct gpi_sched_task task = { .max_attempts = 1, .limit = GPI_S, .expires = GPI_NEVER };
    const struct gpi_sched_event want = { .now = GPI_MS, .kind = GPI_EV_WANT, .slot = 0 },
                                 close = { .now = 2 * GPI_MS, .kind = GPI_EV_CLOSE,
                                           .how = GPI_CLOSE_NOW, .at = GPI_S };
    struct gpi_sched_action a;
    struct gpi_sched_end e = { 0 };
    struct gpi_sched_order sent;

    gpi_play_device(p, 0, false, GPI_S, NULL);
    gpi_play_slot(p, 0, 0, &(uint16_t){ 0 }, 1);
    gpi_play_event(p, &want);
    T_CHECK(gpi_play_submit(p, 5, &task));
    while (gpi_play_next(p, &a)) /* of two steps: the log has each below its step */
        ;
    gpi_play_decide(p, GPI_MS);
    T_CHECK(!gpi_play_send(p, GPI_MS, &sent));
    T_CHECK(!gpi_play_ended(p, &e));
    gpi_play_event(p, &close);
    T_CHECK(gpi_play_ended(p, &e) && !gpi_play_ended(p, &e));
    T_EQ(e.task, 5);
    T_EQ(e.outcome, GPUD_OUTCOME_CANCELLED);
}

static void write_log(void *file, const char *lines, size_t size)
{
    T_EQ(lines[size - 1], '\n');
    T_EQ(fwrite(lines, 1, size, file), size);
}

static char *record(void)
{
    struct gpi_sched_settings set;
    struct gpi_play p;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    gpi_log_defaults(&set);
    set.class.lead = GPI_MS;
    T_CHECK(out && gpi_play_init(&p, &set, write_log, out));
    live(&p);
    gpi_play_fini(&p);
    gpi_play_fini(&p);
    T_CHECK(fclose(out) == 0);
    return text;
}

T_CASE(a_recording_is_a_script)
{
    char *text = record(), *again = rewrite(text);

    T_CHECK(strstr(text, "set lead=1ms\ndevice 0 watched=0 kill_limit=1s\nslot 0 devices=0\n"));
    T_CHECK(strstr(text, "\n\n@1ms submit t=5 causes=0 limit=1s\n"));
    T_CHECK(strstr(text, "task 5 CANCELLED QUEUED"));
    T_EQ(replay(text, GPI_REPLAY_EQUAL).steps, 7);
    T_TEXT(again, text);
    free(text);
    free(again);
}

/* A log whose writer died replays as equal, no matter where it ends. */
T_CASE(a_cut_log)
{
    char *text = record();

    for (size_t n = 0; n <= strlen(text); n++) {
        struct gpi_replay r = { .cut = true };
        if (gpi_replay(&r, text, n) != GPI_REPLAY_EQUAL)
            T_FAIL("cut behind %zu bytes: line %u: %s%s", n, r.line, r.error, r.got);
    }
    free(text);
}

/* The same for a log that its writer ended, behind any whole line.  Nothing may follow. */
T_CASE(a_log_that_says_cut)
{
    char *text = record(), longer[8192];

    for (const char *at = text; (at = strchr(at, '\n')); at++) {
        (void)snprintf(longer, sizeof longer, "%.*s\ncut\n", (int)(at - text), text);
        (void)replay(longer, GPI_REPLAY_EQUAL);
    }
    (void)snprintf(longer, sizeof longer, "%scut\n@9s decide\n", text);
    T_CHECK(strstr(replay(longer, GPI_REPLAY_BAD).error, "nothing behind \"cut\""));
    free(text);
}
