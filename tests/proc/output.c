/* SPDX-License-Identifier: MIT */
/* output.c - what workers print: in outcomes, as events, and what silence costs. */
#include "fixture.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a task does: its tag is one of these, and a number in the upper half. */
enum {
    SILENT,
    TALK,
    FAIL,
    FILL,
    DIE,
    FAIL_ONCE,
    LINES,
    REST,
    FLOOD,
    TALK_AND_TELL,
    TALK_WHEN_ASKED
};
#define TAG(what, n) ((uint64_t)(n) << 32 | (what))

enum { TALKED, GATE, FLOODING, ATTEMPTS };


/* In one call, whatever it is. */
static void say(int fd, const void *bytes, size_t size)
{
    if (write(fd, bytes, size) != (ssize_t)size)
        _exit(9);
}

static void say_text(int fd, const char *text)
{
    say(fd, text, strlen(text));
}

static void fill(unsigned size)
{
    static char bytes[1 << 16];

    for (unsigned i = 0; i < size; i++)
        bytes[i] = (char)('a' + i % 26);
    say(1, bytes, size);
}

/* A line of 2,500 bytes, one of 1,024, an empty one, one with a zero, and one in two pieces. */
static void say_lines(void)
{
    char text[2501];

    memset(text, 'x', sizeof(text));
    text[2500] = '\n';
    say(2, text, 2501);
    text[1024] = '\n';
    say(2, text, 1024); /* its newline comes alone */
    t_word_set(TALKED, 1);
    t_word_wait(GATE, 1);
    say(2, text + 1024, 1);
    say(2, "\nwith a\0zero\nthe ", 17);
    say_text(2, "last\n");
    say_text(1, "out\n");
}

static void talk(gpud_task *t)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "out %u\n", (unsigned)(gpud_task_tag(t) >> 32));
    say_text(1, text);
    (void)snprintf(text, sizeof(text), "err %u\n", (unsigned)(gpud_task_tag(t) >> 32));
    say_text(2, text);
}

static int process(gpud_task *t, void *state)
{
    const unsigned n = (unsigned)(gpud_task_tag(t) >> 32);

    (void)state;
    switch (gpud_task_tag(t) & UINT32_MAX) {
    case TALK:
        talk(t);
        return 0;
    case TALK_WHEN_ASKED:
        t_word_wait(GATE, 1);
        talk(t);
        (void)t_word_add(TALKED);
        return 0;
    case TALK_AND_TELL:
        talk(t);
        (void)t_word_add(TALKED);
        return 0;
    case FAIL:
        return 7;
    case FILL:
        fill(n);
        return 0;
    case DIE:
        talk(t);
        raise(SIGKILL);
        break;
    case FAIL_ONCE:
        talk(t);
        if (t_word_add(ATTEMPTS) == 1)
            return 1;
        say_text(1, "at last\n");
        return 0;
    case LINES:
        say_lines();
        return 0;
    case REST:
        say_text(1, "no newline");
        say_text(2, "none here");
        raise(SIGKILL);
        break;
    case FLOOD:
        for (unsigned i = 0; n == 0 || i < n; i++) {
            say_text(1, "a line of a flood that does not end\n");
            (void)t_word_add(FLOODING);
            if (gpud_task_cancelled(t))
                return 1;
        }
        return 0;
    }
    return 0;
}

static int talking_setup(gpud_worker *w, void **ret_state)
{
    (void)w, (void)ret_state;
    say_text(1, "setup\n");
    return 0;
}

static int is(const char *bytes, uint64_t size, const char *text)
{
    return size == strlen(text) && (size == 0 || memcmp(bytes, text, size) == 0);
}

static void check(const struct gpud_event *e, const char *before, const char *own)
{
    if (!is(e->output, e->output_size, own) ||
        !is(e->output_before, e->output_before_size, before)) {
        t_print_event(e);
        T_FAIL("output \"%.*s\" behind \"%.*s\", wanted \"%s\" behind \"%s\"", (int)e->output_size,
               e->output, (int)e->output_before_size, e->output_before, own, before);
    }
}

/* An outcome carries both streams as they came, SUCCESS too. */
T_CASE(success_carries_output)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");

    check(T_RUN(d, &log, SUCCESS, .tag = TAG(TALK, 1)), "", "out 1\nerr 1\n");
    t_end(&d, &log);
}

/* What setup and the tasks before have printed is not a task's own. */
T_CASE(earlier_tasks_are_before)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    d = T_BEGIN(talking_setup, process, .devices = "cpu:1", .sent_ahead = 1);
    T_SUBMIT(d, .tag = TAG(TALK, 1));
    T_SUBMIT(d, .tag = TAG(TALK, 2));
    T_SUBMIT(d, .tag = TAG(SILENT, 3));
    T_SUBMIT(d, .tag = TAG(FAIL, 4));
    T_SUBMIT(d, .tag = TAG(DIE, 5));
    T_SUBMIT(d, .tag = TAG(TALK, 6));
    t_collect(d, &log, 6);
    check(T_OUTCOME(&log, TAG(TALK, 1), SUCCESS), "setup\n", "out 1\nerr 1\n");
    check(T_OUTCOME(&log, TAG(TALK, 2), SUCCESS), "setup\nout 1\nerr 1\n", "out 2\nerr 2\n");
    check(T_OUTCOME(&log, TAG(SILENT, 3), SUCCESS), "", "");
    check(T_OUTCOME(&log, TAG(FAIL, 4), ERROR), "setup\nout 1\nerr 1\nout 2\nerr 2\n", "");
    T_TEXT(T_OUTCOME(&log, TAG(FAIL, 4), ERROR)->text, "process returned 7");
    check(T_OUTCOME(&log, TAG(DIE, 5), CRASHED), "setup\nout 1\nerr 1\nout 2\nerr 2\n",
          "out 5\nerr 5\n");
    check(T_OUTCOME(&log, TAG(TALK, 6), SUCCESS), "setup\n", "out 6\nerr 6\n"); /* another life */
    t_end(&d, &log);
}

/* C18: at most the last 8 KiB, of which the attempt's own come first. */
T_CASE(the_last_8_kib)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    d = T_BEGIN(talking_setup, process, .devices = "cpu:1", .sent_ahead = 1);
    T_SUBMIT(d, .tag = TAG(FILL, 6000));
    T_SUBMIT(d, .tag = TAG(FILL, 5000));
    T_SUBMIT(d, .tag = TAG(FILL, 60000));
    t_collect(d, &log, 3);
    e = T_OUTCOME(&log, TAG(FILL, 6000), SUCCESS);
    T_EQ(e->output_size, 6000);
    T_CHECK(is(e->output_before, e->output_before_size, "setup\n"));
    e = T_OUTCOME(&log, TAG(FILL, 5000), SUCCESS);
    T_EQ(e->output_size, 5000);
    T_EQ(e->output_before_size, 8192 - 5000);
    for (unsigned i = 0; i < 8192; i++)
        if (i < 3192)
            T_EQ(e->output_before[i], 'a' + (int)(i + 6000 - 3192) % 26);
        else
            T_EQ(e->output[i - 3192], 'a' + (int)(i - 3192) % 26);
    e = T_OUTCOME(&log, TAG(FILL, 60000), SUCCESS);
    T_EQ(e->output_size, 8192);
    T_EQ(e->output_before_size, 0);
    for (unsigned i = 0; i < 8192; i++)
        T_EQ(e->output[i], 'a' + (int)(i + 60000 - 8192) % 26);
    t_end(&d, &log);
}

/* A host that was away finds the end in the status page, and the output no later. */
T_CASE(end_found_without_a_bell)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d =
        T_BEGIN(NULL, process, .devices = "cpu:1", .drive = GPUD_DRIVE_CALLER, .sent_ahead = 1);
    char own[64];

    while (t_stats(d).slots_ready < 1)
        (void)t_poll(d, &log, T_MS(2));
    for (unsigned n = 1; n <= 200; n++) {
        T_SUBMIT(d, .tag = TAG(TALK_AND_TELL, n));
        (void)t_poll(d, &log, 0);
        t_word_wait(TALKED, n);
        t_collect(d, &log, n);
        (void)snprintf(own, sizeof(own), "out %u\nerr %u\n", n, n);
        e = T_OUTCOME(&log, TAG(TALK_AND_TELL, n), SUCCESS);
        if (!is(e->output, e->output_size, own))
            T_FAIL("task %u has another output", n);
    }
    t_end(&d, &log);
}

/* The first words of a worker that was silent for long, to a host that was elsewhere. */
T_CASE(first_words_after_silence)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .drive = GPUD_DRIVE_CALLER);

    for (unsigned n = 0; n < 20; n++) {
        T_SUBMIT(d, .tag = TAG(SILENT, n));
        t_collect(d, &log, n + 1);
    }
    T_EQ(t_stats(d).output_reads, 0);
    T_SUBMIT(d, .tag = TAG(TALK_WHEN_ASKED, 1));
    (void)t_poll(d, &log, 0);
    t_word_set(GATE, 1);
    t_word_wait(TALKED, 1);
    t_pass(T_MS(3));
    t_collect(d, &log, 21);
    check(T_OUTCOME(&log, TAG(TALK_WHEN_ASKED, 1), SUCCESS), "", "out 1\nerr 1\n");
    t_end(&d, &log);
}

/* The outcome of a task that was tried again has what the last attempt printed. */
T_CASE(last_attempt)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1");

    check(T_RUN(d, &log, SUCCESS, .tag = TAG(FAIL_ONCE, 1), .max_attempts = 2,
                .retry_causes = GPUD_RETRY_ERROR),
          "out 1\nerr 1\n", "out 1\nerr 1\nat last\n");
    t_end(&d, &log);
}

/* Each member of a batch has the output of its call. */
static int process_batch(gpud_task *const *tasks, size_t n, void *state)
{
    (void)tasks, (void)state;
    t_word_set(TALKED, (uint32_t)n);
    say_text(1, "one call\n");
    return 0;
}

T_CASE(members_of_a_batch)
{
    struct gpud_definition definition = GPUD_DEFINITION_BATCH("test", NULL, process_batch, NULL);
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    T_OK(gpud_init(&definition, 1, NULL));
    d = T_CREATE(.devices = "cpu:1", .max_batch = 3, .batch_wait = T_S(3000));
    t_submit_tags(d, 0, 3);
    t_collect(d, &log, 3);
    T_EQ(t_word(TALKED), 3);
    for (unsigned n = 0; n < 3; n++)
        check(T_OUTCOME(&log, n, SUCCESS), "", "one call\n");
    t_end(&d, &log);
}

/* Lines of one stream, oldest first. */
static const struct gpud_event *line(const struct t_log *log, uint32_t stream, size_t n)
{
    for (size_t i = 0; i < log->count; i++)
        if (log->list[i].kind == GPUD_EVENT_LOG && log->list[i].stream == stream && !n--)
            return &log->list[i];
    T_FAIL("stream %u has too few lines", stream);
}

static size_t count_lines(const struct t_log *log)
{
    size_t n = 0;

    for (size_t i = 0; i < log->count; i++)
        n += log->list[i].kind == GPUD_EVENT_LOG && log->list[i].stream != GPUD_STREAM_NONE;
    return n;
}

static void check_line(const struct t_log *log, uint32_t stream, size_t n, uint64_t id,
                       const char *text)
{
    const struct gpud_event *e = line(log, stream, n);
    char whole[64];

    T_TEXT(e->text, text);
    T_EQ(e->task_id, id);
    T_EQ(e->level, GPUD_LEVEL_INFO);
    T_EQ(e->slot, 0);
    T_EQ(e->incarnation, 1);
    T_TEXT(e->device, "cpu:0");
    T_EQ(e->output_size, 0);
    T_CMP(gpud_event_format(e, whole, sizeof(whole)), >, 0);
    T_CHECK(strstr(whole, stream == GPUD_STREAM_STDERR ? "slot 0, stderr" : "slot 0, stdout"));
}

/* EVENTS: each line, or 1,024 bytes of a longer one, with task and stream; a zero is a blank. */
T_CASE(lines_are_events)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    char text[1025];
    uint64_t id;

    memset(text, 'x', sizeof(text));
    text[1024] = 0;
    d = T_BEGIN(talking_setup, process, .devices = "cpu:1", .stdio = GPUD_STDIO_EVENTS);
    t_collect_kind(d, &log, GPUD_EVENT_LOG, 1);
    check_line(&log, GPUD_STREAM_STDOUT, 0, 0, "setup"); /* between tasks */
    id = t_submit(d, T_TASK(.tag = TAG(LINES, 0)));
    t_word_wait(TALKED, 1);
    t_collect_kind(d, &log, GPUD_EVENT_LOG, 4);
    T_EQ(t_poll(d, &log, 0), 0); /* the line of 1,024 bytes has not ended */
    t_word_set(GATE, 1);
    t_collect(d, &log, 1);
    check_line(&log, GPUD_STREAM_STDERR, 0, id, text);
    check_line(&log, GPUD_STREAM_STDERR, 1, id, text);
    check_line(&log, GPUD_STREAM_STDERR, 2, id, text + 1024 - (2500 - 2048));
    check_line(&log, GPUD_STREAM_STDERR, 3, id, text);
    check_line(&log, GPUD_STREAM_STDERR, 4, id, "");
    check_line(&log, GPUD_STREAM_STDERR, 5, id, "with a zero");
    check_line(&log, GPUD_STREAM_STDERR, 6, id, "the last");
    check_line(&log, GPUD_STREAM_STDOUT, 1, id, "out");
    T_EQ(count_lines(&log), 9);
    T_EQ(t_stats(d).events_dropped, 0);
    T_EQ(T_OUTCOME(&log, TAG(LINES, 0), SUCCESS)->output_size, 2501 + 1024 + 1 + 17 + 5 + 4);
    t_end(&d, &log);
}

/* EVENTS: what has no newline comes when the worker ends, before the outcome. */
T_CASE(rest_of_a_worker)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .stdio = GPUD_STDIO_EVENTS);
    uint64_t id;

    id = t_submit(d, T_TASK(.tag = TAG(REST, 0)));
    t_collect(d, &log, 1);
    T_EQ(log.list[log.count - 1].kind, GPUD_EVENT_OUTCOME);
    check_line(&log, GPUD_STREAM_STDOUT, 0, id, "no newline");
    check_line(&log, GPUD_STREAM_STDERR, 0, id, "none here");
    T_EQ(T_OUTCOME(&log, TAG(REST, 0), CRASHED)->output_size, 19);
    t_end(&d, &log);
}

static int one_has_ended(void *d)
{
    return t_stats(d).success == 1;
}

/* C18: EVENTS: lines that nobody polls for are dropped, and counted. */
T_CASE(dropped_lines_are_counted)
{
    enum { MANY = 5000 };
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .stdio = GPUD_STDIO_EVENTS);

    T_SUBMIT(d, .tag = TAG(FLOOD, MANY));
    t_wait_until("the task has ended", one_has_ended, d);
    t_collect(d, &log, 1);
    while (t_poll(d, &log, 0) > 0)
        ;
    T_CMP(t_stats(d).events_dropped, >, 0);
    T_CMP(count_lines(&log), >, 100);
    T_EQ(count_lines(&log) + t_stats(d).events_dropped, MANY);
    t_end(&d, &log);
}

/* EVENTS: log_level keeps lines back. */
T_CASE(lines_below_the_level)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .stdio = GPUD_STDIO_EVENTS,
                                 .log_level = GPUD_LEVEL_WARNING);

    T_SUBMIT(d, .tag = TAG(DIE, 1));
    t_collect(d, &log, 1);
    T_EQ(count_lines(&log), 0);
    T_EQ(t_stats(d).events_dropped, 0);
    T_EQ(T_OUTCOME(&log, TAG(DIE, 1), CRASHED)->output_size, 12);
    t_end(&d, &log);
}

/* A worker that prints nothing is not read from, nor, after its first tasks, polled by a host that
 * is there. */
T_CASE(silence_costs_nothing)
{
    const uint64_t began = t_now();
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2");

    for (unsigned round = 0; round < 20; round++) {
        for (unsigned n = 0; n < 100; n++)
            T_SUBMIT(d, .tag = TAG(n % 10 ? SILENT : FAIL, 100 * round + n));
        t_collect(d, &log, 100 * (round + 1));
    }
    T_EQ(t_stats(d).output_reads, 0);
    T_CMP(t_stats(d).output_polls, <=, 2 * (16 + (t_now() - began) / T_MS(1)));
    T_EQ(t_log_count(&log, GPUD_EVENT_LOG), 0);
    T_SUBMIT(d, .tag = TAG(DIE, 1));
    t_collect(d, &log, 2001);
    T_CMP(t_stats(d).output_reads, >, 0);
    t_end(&d, &log);
}

/* Once per dispatcher a line says that a worker prints, and which option decides. */
T_CASE(told_once)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    t_init(NULL, process, NULL);
    for (unsigned life = 0; life < 2; life++) {
        d = T_CREATE(.devices = "cpu:2");
        for (unsigned n = 0; n < 20; n++)
            T_SUBMIT(d, .tag = TAG(n == 10 ? DIE : TALK, n));
        t_collect(d, &log, 20);
        T_EQ(t_log_count(&log, GPUD_EVENT_LOG), 1);
        e = t_log_at(&log, GPUD_EVENT_LOG, 0);
        T_EQ(e->level, GPUD_LEVEL_INFO);
        T_EQ(e->stream, GPUD_STREAM_NONE);
        T_CMP(e->slot, <, 2);
        if (!strstr(e->text, "prints") || !strstr(e->text, "(stdio)"))
            T_FAIL("the line is \"%s\"", e->text);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

/* C18: EVENTS: a worker that prints without end: the tasks of the others go on. */
T_CASE(flood_of_lines)
{
    struct t_log log = { 0 };
    const size_t tasks = t_rounds(500, 100);
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:2", .stdio = GPUD_STDIO_EVENTS);
    uint64_t id;

    t_wait_ready(d, 2);
    id = t_submit(d, T_TASK(.tag = TAG(FLOOD, 0)));
    t_word_wait(FLOODING, 1000);
    for (size_t n = 1; n <= tasks; n++) {
        T_SUBMIT(d, .tag = TAG(TALK, n));
        t_collect(d, &log, 1);
        T_EQ(t_log_outcomes(&log, GPUD_OUTCOME_SUCCESS), 1);
        T_CMP(t_stats(d).undelivered, <, 600);
        t_log_free(&log);
    }
    T_OK(gpud_dispatcher_cancel(d, id, GPUD_CANCEL_HARD));
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, TAG(FLOOD, 0), CANCELLED);
    T_EQ(T_OUTCOME(&log, TAG(FLOOD, 0), CANCELLED)->output_size, 8192);
    t_end(&d, &log);
}

/* Keeps the first event that has text of a worker, in a line or as output. */
static struct gpud_event keep_first(gpud_dispatcher *d, uint32_t kind)
{
    uint64_t until = t_now() + T_PATIENCE;
    struct gpud_event e;

    do {
        e = (struct gpud_event)GPUD_EVENT_INIT;
        T_CMP(gpud_dispatcher_poll(d, &e, 1, T_MS(200)), >=, 0);
        T_CMP(t_now(), <, until);
    } while (e.kind != kind || (!e.output_size && !e.stream));
    T_OK(gpud_event_keep(d, &e));
    return e;
}

/* In whatever order: there are two pipes. */
static int has_both(const struct gpud_event *e, const char *one, const char *other)
{
    return e->output_size == strlen(one) + strlen(other) &&
           memmem(e->output, e->output_size, one, strlen(one)) &&
           memmem(e->output, e->output_size, other, strlen(other));
}

/* C19: kept events keep their lines and their output, beyond the dispatcher. */
T_CASE(kept)
{
    struct gpud_event e, awaited = GPUD_EVENT_INIT, first, second;
    gpud_dispatcher *d;
    uint64_t id;

    d = T_BEGIN(talking_setup, process, .devices = "cpu:1", .stdio = GPUD_STDIO_EVENTS,
                .sent_ahead = 1);
    first = keep_first(d, GPUD_EVENT_LOG);
    T_SUBMIT(d, .tag = TAG(TALK, 1));
    second = keep_first(d, GPUD_EVENT_OUTCOME);
    id = t_submit(d, T_TASK(.tag = TAG(TALK, 2), .awaited = 1));
    T_OK(gpud_dispatcher_wait(d, id, &awaited, T_PATIENCE, NULL));
    do
        e = (struct gpud_event)GPUD_EVENT_INIT;
    while (gpud_dispatcher_poll(d, &e, 1, 0) > 0);
    T_OK(gpud_dispatcher_destroy(&d, NULL));
    T_TEXT(first.text, "setup");
    T_EQ(first.stream, GPUD_STREAM_STDOUT);
    T_CHECK(has_both(&second, "out 1\n", "err 1\n"));
    T_CHECK(is(second.output_before, second.output_before_size, "setup\n"));
    T_CHECK(has_both(&awaited, "out 2\n", "err 2\n"));
    T_EQ(awaited.output_before_size, strlen("setup\nout 1\nerr 1\n"));
    T_OK(gpud_event_release(&first));
    T_OK(gpud_event_release(&second));
    T_OK(gpud_event_release(&awaited));
    T_EQ(second.output_before_size, 0);
    T_CHECK(!second.output_before && !second.output);
    T_OK(gpud_fini());
}
