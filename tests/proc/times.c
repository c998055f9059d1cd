/* SPDX-License-Identifier: MIT */
/* times.c - times: which ones options refuse, and what tasks and calls take. */
#include "verbs.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>


/* The time fields of gpud_options; those that wait for something may be GPUD_AT_ONCE. */
static const struct field {
    const char *name;
    size_t at;
    int waits;
} fields[] = {
/* clang-format off */
#define LIMIT(name) { #name, offsetof(struct gpud_options, name), 0 }
#define WAIT(name) { #name, offsetof(struct gpud_options, name), 1 }
    LIMIT(setup_limit),   LIMIT(task_limit),       WAIT(grace),
    LIMIT(cleanup_limit), LIMIT(close_limit),      LIMIT(kill_limit),
    WAIT(backoff),        WAIT(backoff_cap),       WAIT(batch_wait),
    WAIT(retry_backoff),  WAIT(retry_backoff_cap), LIMIT(expires),
    LIMIT(stall_limit),   WAIT(canary_backoff),    WAIT(canary_backoff_cap),
    WAIT(memory_wait),
    WAIT(result_wait),    LIMIT(stop_limit),
    /* clang-format on */
};
enum { FIELDS = T_LENGTH(fields) };

static void set(struct gpud_options *o, const struct field *f, uint64_t time)
{
    memcpy((char *)o + f->at, &time, sizeof time);
}

/* Creates with one time; where it is refused, checks the field and the text's beginning. */
static void check_time(const struct field *f, uint64_t time, int good, const char *text)
{
    struct gpud_options o = { .struct_size = sizeof o, .max_batch = 2 };
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;
    char wanted[216];

    set(&o, f, time);
    if (good) {
        T_OK(gpud_dispatcher_create(&d, &o, &e));
        T_OK(gpud_dispatcher_destroy(&d, NULL));
        return;
    }
    T_CODE(gpud_dispatcher_create(&d, &o, &e), EINVAL);
    T_TEXT(e.field, f->name);
    (void)snprintf(wanted, sizeof wanted, "%s is %s", f->name, text);
    T_TEXT(e.text, wanted);
}

static int work_together(gpud_task *const *t, size_t n, void *state)
{
    (void)t, (void)n, (void)state;
    return 0;
}

static void init_with_batches(void)
{
    static const struct gpud_definition definition =
        GPUD_DEFINITION_BATCH("test", NULL, work_together, NULL);

    T_OK(gpud_init(&definition, 1, NULL));
}

/* A number of seconds or of milliseconds, and a negative one, are no times of an option. */
T_CASE(options_refuse_another_unit)
{
    init_with_batches();
    for (const struct field *f = fields; f < fields + FIELDS; f++) {
        const int most_is_an_hour = !strcmp(f->name, "batch_wait");

        check_time(f, 2, 0, "2 ns, the minimum is 1000 ns: for 2 s write GPUD_S(2)");
        check_time(f, 999, 0, "999 ns, the minimum is 1000 ns: for 999 s write GPUD_S(999)");
        if (most_is_an_hour)
            continue; /* tests/proc/batch.c */
        check_time(f, (uint64_t)INT64_MIN, 0,
                   "9223372036854775808 ns, expected less than 2^63 ns, or GPUD_NEVER");
        check_time(f, (uint64_t)-30, 0,
                   "18446744073709551586 ns, expected less than 2^63 ns, or GPUD_NEVER");
    }
    T_OK(gpud_fini());
}

/* The shortest, the longest and none; a wait may be no time at all, and a limit not. */
T_CASE(options_take_the_rest)
{
    init_with_batches();
    for (const struct field *f = fields; f < fields + FIELDS; f++) {
        check_time(f, GPUD_AT_ONCE, f->waits,
                   "1 ns, the minimum is 1000 ns: for 1 s write GPUD_S(1); GPUD_AT_ONCE is for "
                   "waits, not for limits");
        if (strcmp(f->name, "kill_limit")) /* after so little each worker counts as a survivor */
            check_time(f, GPUD_US(1), 1, NULL);
        if (!strcmp(f->name, "batch_wait"))
            continue;
        check_time(f, INT64_MAX, 1, NULL);
        check_time(f, GPUD_NEVER, 1, NULL);
    }
    T_OK(gpud_fini());
}

/* What a task or a call takes is often the rest of a deadline: any number, 1 when it has passed. */
T_CASE(tasks_and_calls_take_any_time)
{
    static const uint64_t times[] = { 1, 2, 30, 999, 1ull << 63, GPUD_NEVER - 1, GPUD_NEVER };
    enum { TIMES = T_LENGTH(times) };
    struct gpud_event e = GPUD_EVENT_INIT;
    struct t_log log = { 0 };
    gpud_dispatcher *d = T_BEGIN(NULL, t_process, .devices = "cpu:1");
    uint64_t id;

    t_wait_ready(d, 1);
    for (uint64_t i = 0; i < TIMES; i++) {
        T_SUBMIT(d, .tag = 3 * i, .limit = times[i]);
        T_SUBMIT(d, .tag = 3 * i + 1, .stall_limit = times[i]);
        T_SUBMIT(d, .tag = 3 * i + 2, .expires = times[i]);
    }
    t_collect(d, &log, 3 * TIMES);
    for (uint64_t tag = 0; tag < 3 * TIMES; tag++) {
        if (times[tag / 3] == 1)
            (void)T_OUTCOME(&log, tag, TIMEOUT);
        if (times[tag / 3] > T_S(1))
            (void)T_OUTCOME(&log, tag, SUCCESS);
    }
    for (uint64_t i = 0; i < TIMES; i++) {
        T_OK(gpud_dispatcher_submit(d, T_TASK(.awaited = 1), times[i], &id, NULL));
        while (gpud_dispatcher_wait(d, id, &e, times[i], NULL) == GPUD_ETIMEOUT)
            (void)t_poll(d, &log, i < 4 ? times[i] : 0);
        T_EQ(e.outcome, GPUD_OUTCOME_SUCCESS);
        T_OK(gpud_event_release(&e));
    }
    t_end(&d, &log);
}

/* Without a grace the worker is killed at the limit. */
T_CASE(grace_at_once)
{
    struct t_log log = { 0 };
    const struct gpud_event *e;
    gpud_dispatcher *d;

    t_init(NULL, t_process, NULL);
    T_EACH_DRIVE (drive) {
        log = (struct t_log){ 0 };
        d = T_CREATE(.devices = "cpu:1", .drive = drive, .grace = GPUD_AT_ONCE);
        T_SUBMIT(d, .tag = T_TAG(T_BLOCKED, 0), .limit = T_MS(50));
        T_SUBMIT(d, .tag = 1);
        t_collect(d, &log, 2);
        e = T_OUTCOME(&log, T_TAG(T_BLOCKED, 0), TIMEOUT);
        T_EQ(e->phase, GPUD_PHASE_HARD);
        T_EQ(e->exit_status, SIGKILL);
        T_CMP(e->ended_at, >=, e->started_at + T_MS(50));
        printf("killed %.3f ms late\n", (double)(e->ended_at - e->started_at - T_MS(50)) / 1e6);
        T_CMP(e->ended_at, <, e->started_at + T_MS(50) + T_S(1)); /* half the default grace */
        (void)T_OUTCOME(&log, 1, SUCCESS);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}
