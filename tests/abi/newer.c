/* SPDX-License-Identifier: MIT */
/*
 * newer.c - a program that was compiled against headers of the future: its records are
 * longer. Zeros there mean what this library does; anything else is refused, not ignored.
 * [C15]
 */
#include "fixture.h"

#include <string.h>

#define LONGER(type)         \
    struct {                 \
        type known;          \
        uint64_t unknown[3]; \
    }

static int process(gpud_task *t, void *state)
{
    (void)state;
    return gpud_task_result_set(t, "abc", 3);
}

static gpud_dispatcher *begin(void)
{
    t_init(NULL, process, NULL);
    return T_CREATE(.devices = "cpu:2");
}

T_CASE(definitions)
{
    LONGER(struct gpud_definition)
    all[2] = { { .known = GPUD_DEFINITION("a", NULL, process, NULL) },
               { .known = GPUD_DEFINITION("b", NULL, process, NULL) } };
    struct gpud_error error = GPUD_ERROR_INIT;

    all[0].known.struct_size = all[1].known.struct_size = sizeof(all[0]);
    all[1].unknown[2] = 1;
    T_CODE(gpud_init(&all[0].known, 2, &error), EVERSION);
    T_TEXT(error.field, "struct_size");
    all[1].unknown[2] = 0;
    T_OK(gpud_init(&all[0].known, 2, &error));
    t_destroy(&(gpud_dispatcher *){ T_CREATE(.devices = "cpu:1", .definition = "b") }, NULL);
    T_OK(gpud_fini());
}

T_CASE(options_and_tasks)
{
    LONGER(struct gpud_options) options = { .known = GPUD_OPTIONS_INIT };
    LONGER(struct gpud_task_desc) task = { .known = GPUD_TASK_DESC_INIT };
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;
    struct t_log log = { 0 };

    t_init(NULL, process, NULL);
    options.known.struct_size = sizeof(options);
    options.known.devices = "cpu:1";
    for (int i = 0; i < 3; i++) {
        options.unknown[i] = 1u << i * 8;
        T_CODE(gpud_dispatcher_create(&d, &options.known, &error), EVERSION);
        T_TEXT(error.field, "struct_size");
        T_CHECK(!d);
        options.unknown[i] = 0;
    }
    T_OK(gpud_dispatcher_create(&d, &options.known, &error));
    task.known.struct_size = sizeof(task);
    task.unknown[2] = 1ull << 63;
    T_CODE(gpud_dispatcher_submit(d, &task.known, 0, NULL, NULL), EVERSION);
    task.unknown[2] = 0;
    T_OK(gpud_dispatcher_submit(d, &task.known, 0, NULL, NULL));
    t_collect(d, &log, 1);
    t_end(&d, &log);
}

static int no_task(struct gpud_task_desc *task, size_t n, void *user)
{
    (void)n;
    (void)task, (void)user;
    return 0;
}

T_CASE(callbacks)
{
    LONGER(struct gpud_callbacks) callbacks = { .known = GPUD_CALLBACKS_INIT };
    gpud_dispatcher *d = begin();

    callbacks.known.struct_size = sizeof(callbacks);
    callbacks.unknown[0] = 1;
    T_CODE(gpud_dispatcher_run(d, no_task, &callbacks.known, NULL, NULL), EVERSION);
    callbacks.unknown[0] = 0;
    T_OK(gpud_dispatcher_run(d, no_task, &callbacks.known, NULL, NULL));
    t_destroy(&d, NULL);
    T_OK(gpud_fini());
}

struct feed {
    uint64_t given, lies, ends;
};

typedef LONGER(struct gpud_task_desc) long_desc;

/* Assigns records of its own, which are longer than the library's. */
static int next_task(struct gpud_task_desc *tasks, size_t n, void *user)
{
    struct feed *f = user;
    size_t i;

    for (i = 0; i < n && f->given < 100; i++) {
        long_desc own = { .known = GPUD_TASK_DESC_INIT };
        own.known.struct_size = sizeof(own);
        own.known.tag = f->given++;
        own.unknown[f->given % 3] = f->given == f->lies;
        memcpy((char *)tasks + i * sizeof(own), &own, sizeof(own));
    }
    return (int)i;
}

static int on_success(const struct gpud_event *e, void *user)
{
    struct feed *f = user;

    f->ends += e->outcome == GPUD_OUTCOME_SUCCESS;
    return 0;
}

T_CASE(sources)
{
    struct gpud_callbacks callbacks = *T_CALLBACKS(.on_success = on_success);
    gpud_dispatcher *d = begin();

    callbacks.task_size = sizeof(long_desc);
    for (uint64_t lies = 1; lies <= 4; lies++) {
        struct feed f = { .lies = lies };
        struct gpud_error e = GPUD_ERROR_INIT;
        T_CODE(gpud_dispatcher_run(d, next_task, &callbacks, &f, &e), EREFUSED);
        T_TEXT(e.field, "struct_size");
        T_EQ(f.ends, lies - 1);
    }
    struct feed f = { 0 };
    T_OK(gpud_dispatcher_run(d, next_task, &callbacks, &f, NULL));
    T_EQ(f.ends, 100);
    t_destroy(&d, NULL);
    T_OK(gpud_fini());
}

/* A record of today is filled as far as we know it, zero behind, and its length stays the caller's:
 * the next call finds it there. */
T_CASE(events)
{
    LONGER(struct gpud_event) events[3];
    gpud_dispatcher *d = begin();
    uint32_t outcomes = 0;
    int n;

    for (uint64_t i = 0; i < 50; i++)
        T_SUBMIT(d, .tag = i);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    memset(events, 0xff, sizeof(events));
    events[0].known.struct_size = sizeof(events[0]);
    while ((n = gpud_dispatcher_poll(d, &events[0].known, 3, T_PATIENCE)) > 0)
        for (int i = 0; i < n; i++) {
            T_EQ(events[i].known.struct_size, sizeof(events[i]));
            T_EQ(events[i].unknown[0] | events[i].unknown[1] | events[i].unknown[2], 0);
            if (events[i].known.kind == GPUD_EVENT_OUTCOME)
                outcomes +=
                    events[i].known.result_size == 3 && !memcmp(events[i].known.result, "abc", 3);
            memset(events[i].unknown, 0xff, sizeof(events[i].unknown));
        }
    T_CODE(n, EEND);
    T_EQ(outcomes, 50);
    t_destroy(&d, NULL);
    T_OK(gpud_fini());
}

/* wait, keep and release ask for a record up to `kept`, longer or not. */
T_CASE(kept_events)
{
    LONGER(struct gpud_event) event;
    gpud_dispatcher *d = begin();
    uint64_t id = t_submit(d, T_TASK(.tag = 1, .awaited = 1));

    memset(&event, 0xff, sizeof(event));
    event.known.struct_size = offsetof(struct gpud_event, kept);
    T_CODE(gpud_dispatcher_wait(d, id, &event.known, T_PATIENCE, NULL), ESTRUCT);
    T_CODE(gpud_event_keep(d, &event.known), ESTRUCT);
    T_CODE(gpud_event_release(&event.known), ESTRUCT);
    event.known.struct_size = UINT32_MAX; /* never set */
    T_CODE(gpud_dispatcher_wait(d, id, &event.known, T_PATIENCE, NULL), ESTRUCT);
    event.known.struct_size = sizeof(event);
    T_OK(gpud_dispatcher_wait(d, id, &event.known, T_PATIENCE, NULL));
    T_EQ(event.known.struct_size, sizeof(event));
    T_EQ(event.unknown[0] | event.unknown[2], 0);
    T_EQ(memcmp(event.known.result, "abc", 3), 0);
    T_CHECK(event.known.kept);
    T_OK(gpud_event_release(&event.known));
    T_CHECK(!event.known.kept && !event.known.result && event.known.result_size == 0);
    T_OK(gpud_event_release(&event.known));

    T_SUBMIT(d, .tag = 2);
    do
        T_EQ(gpud_dispatcher_poll(d, &event.known, 1, T_PATIENCE), 1);
    while (event.known.kind != GPUD_EVENT_OUTCOME);
    T_OK(gpud_event_keep(d, &event.known));
    T_CODE(gpud_event_keep(d, &event.known), EINVAL);
    T_EQ(event.known.struct_size, sizeof(event));
    t_destroy(&d, NULL);
    T_EQ(memcmp(event.known.result, "abc", 3), 0);
    T_OK(gpud_event_release(&event.known));
    T_OK(gpud_fini());
}

T_CASE(numbers)
{
    LONGER(struct gpud_stats) stats;
    LONGER(struct gpud_slot_stats) rows[2];
    gpud_dispatcher *d = begin();

    memset(&stats, 0xff, sizeof(stats));
    memset(rows, 0xff, sizeof(rows));
    stats.known.struct_size = sizeof(stats);
    rows[0].known.struct_size = sizeof(rows[0]);
    T_OK(gpud_dispatcher_stats(d, &stats.known));
    T_EQ(stats.known.struct_size, sizeof(stats.known)); /* so much has been filled */
    T_EQ(stats.known.slot_count, 2);
    for (int round = 0; round < 2; round++) {
        T_EQ(gpud_dispatcher_slots(d, &rows[0].known, 2), 2);
        for (uint32_t i = 0; i < 2; i++) {
            T_EQ(rows[i].known.struct_size, sizeof(rows[i]));
            T_EQ(rows[i].known.slot, i);
            T_EQ(rows[i].unknown[0] | rows[i].unknown[2], 0);
        }
    }
    t_destroy(&d, NULL);
    T_OK(gpud_fini());
}
