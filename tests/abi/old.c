/* SPDX-License-Identifier: MIT */
/*
 * old.c - a program that was compiled against older headers (old-headers/, which stay as they are)
 * and runs with the library of today: shorter records in and out, all defaults for the rest.  [C15]
 */
#include "harness.h"

#include <gpudispatch/gpudispatch.h>
#include <string.h>

enum { TASKS = 300, AT_ONCE = 7 };

static int process(gpud_task *t, void *state)
{
    (void)state;
    return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
}

static gpud_dispatcher *begin(void)
{
    const struct gpud_definition definitions[] = { GPUD_DEFINITION("first", NULL, process, NULL),
                                                   GPUD_DEFINITION("second", NULL, process, NULL) };
    struct gpud_error error = GPUD_ERROR_INIT;
    struct gpud_options o = GPUD_OPTIONS_INIT;
    gpud_dispatcher *d = NULL;

    T_EQ(gpud_init(definitions, 2, &error), 0);
    o.devices = "cpu:2";
    o.definition = "second"; /* the second record is found by the length of the first */
    T_EQ(gpud_dispatcher_create(&d, &o, &error), 0);
    return d;
}

static void submit(gpud_dispatcher *d, uint64_t n)
{
    /* What lies behind the record is not the library's. */
    struct {
        struct gpud_task_desc task;
        unsigned char behind[128];
    } s = { .task = GPUD_TASK_DESC_INIT };

    memset(s.behind, 0xff, sizeof(s.behind));
    s.task.tag = n;
    s.task.data = &n;
    s.task.size = sizeof(n);
    s.task.label = "old";
    T_EQ(gpud_dispatcher_submit(d, &s.task, GPUD_NEVER, NULL, NULL), 0);
}

static void end(gpud_dispatcher *d)
{
    uint64_t uncollected = 1;

    T_EQ(gpud_dispatcher_destroy(&d, &uncollected), 0);
    T_EQ(uncollected, 0);
    T_EQ(gpud_fini(), 0);
}

static int untouched(const unsigned char *bytes, size_t n)
{
    while (n && bytes[n - 1] == 0xa5)
        n--;
    return n == 0;
}

static void check_event(const struct gpud_event *e, uint64_t *told)
{
    T_EQ(e->struct_size, sizeof(*e));
    if (e->kind != GPUD_EVENT_OUTCOME)
        return;
    T_EQ(e->outcome, GPUD_OUTCOME_SUCCESS);
    T_EQ(e->result_size, sizeof(e->tag));
    T_EQ(memcmp(e->result, &e->tag, sizeof(e->tag)), 0);
    T_TEXT(e->label, "old");
    T_CHECK(e->device[0] && e->queued_at <= e->sent_at && e->sent_at <= e->started_at &&
            e->started_at <= e->ended_at);
    told[e->tag]++;
}

/* Many events a call, each of the caller's length, and nothing behind the last. */
T_CASE(poll)
{
    struct {
        struct gpud_event e[AT_ONCE];
        unsigned char behind[64];
    } s;
    uint64_t told[TASKS] = { 0 };
    gpud_dispatcher *d = begin();
    int n;

    for (uint64_t i = 0; i < TASKS; i++)
        submit(d, i);
    T_EQ(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0), 0);
    memset(&s, 0xa5, sizeof(s));
    s.e[0].struct_size = sizeof(s.e[0]); /* once: poll leaves it */
    while ((n = gpud_dispatcher_poll(d, s.e, AT_ONCE, T_PATIENCE)) > 0)
        for (int i = 0; i < n; i++)
            check_event(&s.e[i], told);
    T_EQ(n, GPUD_EEND);
    T_CHECK(untouched(s.behind, sizeof(s.behind)));
    for (uint64_t i = 0; i < TASKS; i++)
        T_EQ(told[i], 1);
    end(d);
}

struct run {
    uint64_t given, told[TASKS];
};

static int next_task(struct gpud_task_desc *tasks, size_t n, void *user)
{
    struct run *r = user;
    size_t i;

    for (i = 0; i < n && r->given < TASKS; i++) {
        struct gpud_task_desc *task = &tasks[i];
        T_EQ(task->struct_size, sizeof(*task));
        T_CHECK(!task->data && !task->tag);
        if (r->given % 2)
            *task = (struct gpud_task_desc)GPUD_TASK_DESC_INIT;
        task->tag = r->given++;
        task->data = &task->tag;
        task->size = sizeof(task->tag);
        task->label = "old";
    }
    return (int)i;
}

static int on_end(const struct gpud_event *e, void *user)
{
    struct run *r = user;

    T_EQ(e->outcome, GPUD_OUTCOME_SUCCESS);
    T_EQ(e->result_size, sizeof(e->tag));
    r->told[e->tag]++;
    return 0;
}

/* A source fills what it knows of each record, or assigns its own; they lie as it says. */
T_CASE(run)
{
    struct gpud_callbacks callbacks = GPUD_CALLBACKS_INIT;
    struct gpud_error error = GPUD_ERROR_INIT;
    static struct run r;
    gpud_dispatcher *d = begin();

    callbacks.on_success = on_end;
    T_EQ(gpud_dispatcher_run(d, next_task, &callbacks, &r, &error), 0);
    for (uint64_t i = 0; i < TASKS; i++)
        T_EQ(r.told[i], 1);
    end(d);
}

T_CASE(numbers)
{
    struct {
        struct gpud_stats stats;
        unsigned char behind[64];
    } s;
    struct {
        struct gpud_slot_stats row[2];
        unsigned char behind[64];
    } r;
    struct gpud_stats_info info = GPUD_STATS_INFO_INIT;
    gpud_dispatcher *d = begin();

    for (int round = 0; round < 2; round++) {
        memset(&s, 0xa5, sizeof(s));
        memset(&r, 0xa5, sizeof(r));
        s.stats.struct_size = sizeof(s.stats);
        r.row[0].struct_size = sizeof(r.row[0]);
        T_EQ(gpud_dispatcher_stats(d, &s.stats), 0);
        T_EQ(s.stats.struct_size, sizeof(s.stats));
        T_EQ(s.stats.slot_count, 2);
        T_EQ(s.stats.accepted, 0);
        T_EQ(s.stats.overhead_p99, 0); /* the last that it knows */
        T_CHECK(untouched(s.behind, sizeof(s.behind)));
        T_EQ(gpud_dispatcher_slots(d, r.row, 2), 2);
        for (uint32_t i = 0; i < 2; i++) {
            T_EQ(r.row[i].struct_size, sizeof(r.row[i]));
            T_EQ(r.row[i].slot, i);
            T_TEXT(r.row[i].device, i ? "cpu:1" : "cpu:0");
            T_TEXT(r.row[i].progress_text, "");
        }
        T_CHECK(untouched(r.behind, sizeof(r.behind)));
    }
    T_EQ(gpud_stats_info(0, &info), 0);
    T_EQ(info.struct_size, sizeof(info));
    end(d);
}
