/* SPDX-License-Identifier: MIT */
/* arguments.c - bad arguments and bad state: a code, the field at fault, and nothing changed [C15].
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int process(gpud_task *t, void *state)
{
    (void)state;
    return gpud_task_result_set(t, gpud_task_data(t), gpud_task_size(t));
}

static int setup(gpud_worker *w, void **ret_state)
{
    (void)w, (void)ret_state;
    return 0;
}

#define NAME_63 "a23456789b123456789c123456789d123456789e123456789f123456789g123"
#define NAME_64 NAME_63 "4"

/* Everything before and around gpud_init. */
T_CASE(init_arguments)
{
    const struct gpud_definition good = GPUD_DEFINITION(NAME_63, NULL, process, NULL);
    struct gpud_definition bad[2] = { GPUD_DEFINITION("a", setup, process, NULL),
                                      GPUD_DEFINITION("a", NULL, process, NULL) };
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_dispatcher *d = (gpud_dispatcher *)(uintptr_t)8, *none = NULL;

    T_OK(gpud_fini());
    T_CODE(gpud_dispatcher_create(&d, T_OPTIONS(0), &error), ENOINIT);
    T_CHECK(d == (gpud_dispatcher *)(uintptr_t)8);
    T_EQ(error.code, GPUD_ENOINIT);
    T_CHECK(*error.text);
    T_CODE(gpud_init(NULL, 1, NULL), EINVAL);
    T_CODE(gpud_init(&good, 0, NULL), EINVAL);
    T_CODE(gpud_init(bad, 2, &error), EINVAL); /* a doubled name */
    T_CHECK(*error.text);
    bad[1].name = "";
    T_CODE(gpud_init(bad, 2, NULL), EINVAL);
    bad[1].name = NULL;
    T_CODE(gpud_init(bad, 2, NULL), EINVAL);
    bad[1].name = NAME_64;
    T_CODE(gpud_init(bad, 2, NULL), EINVAL);
    bad[1].name = "b";
    bad[1].process = NULL;
    T_CODE(gpud_init(bad, 2, NULL), EINVAL);
    bad[1].process = process;
    bad[1].struct_size = 0;
    T_CODE(gpud_init(bad, 2, NULL), ESTRUCT);
    T_OK(gpud_dispatcher_destroy(&none, NULL));

    T_OK(gpud_init(&good, 1, NULL));
    T_CODE(gpud_init(&good, 1, NULL), EBUSY);
    d = T_CREATE(.definition = NAME_63);
    T_CODE(gpud_fini(), EBUSY);
    t_destroy(&d, NULL);
    T_OK(gpud_fini());
    T_OK(gpud_fini());

    /* Anew, with other definitions. */
    bad[1].struct_size = sizeof(bad[1]);
    T_OK(gpud_init(bad, 2, NULL));
    d = T_CREATE(.definition = "b");
    t_destroy(&d, NULL);
    T_OK(gpud_fini());
}

struct bad_option {
    const char *what; /* as the error's field must say; NULL = any */
    int code;
    struct gpud_options options;
};

#define OPT(...) { .struct_size = sizeof(struct gpud_options), __VA_ARGS__ }

/* Every option out of its range: the code, and the field by its name. */
T_CASE(create_options)
{
    const struct bad_option bad[] = {
        { "definition", GPUD_ENODEFINITION, OPT(.definition = "nobody") },
        { "definition", GPUD_ENODEFINITION, OPT(.definition = "") },
        { "devices", GPUD_EDEVICE, OPT(.devices = "") },
        { "devices", GPUD_EDEVICE, OPT(.devices = "cpu") },
        { "devices", GPUD_EDEVICE, OPT(.devices = "cpu:") },
        { "devices", GPUD_EDEVICE, OPT(.devices = "cpu:0") },
        { "devices", GPUD_EDEVICE, OPT(.devices = "cpu:-1") },
        { "devices", GPUD_EDEVICE, OPT(.devices = "cpu:x") },
        { "devices", GPUD_EDEVICE, OPT(.devices = "cpu:2x") },
        { "devices", GPUD_EDEVICE, OPT(.devices = "cpu:2/") },
        { "devices", GPUD_EDEVICE, OPT(.devices = "cpu:2/0") },
        { "devices", GPUD_EDEVICE, OPT(.devices = "cpu:2,") },
        { "devices", GPUD_EDEVICE, OPT(.devices = ",cpu:2") },
        { "devices", GPUD_EDEVICE, OPT(.devices = "tpu:1") },
        { "devices", GPUD_EDEVICE, OPT(.devices = "cpu:99999999999999999999") },
        { "queue_size", GPUD_EINVAL, OPT(.queue_size = 1048577) },
        { "sent_ahead", GPUD_EINVAL, OPT(.sent_ahead = 65) },
        { "drive", GPUD_EINVAL, OPT(.drive = 2) },
        { "setup_data", GPUD_EINVAL, OPT(.setup_size = 1) },
        { "setup_size", GPUD_EINVAL, OPT(.setup_data = "a text") },
        { "batch_wait", GPUD_EINVAL, OPT(.batch_wait = 1) },
        { "max_batch", GPUD_EINVAL, OPT(.max_batch = 65) },
        { "max_batch", GPUD_EINVAL, OPT(.max_batch = 2) }, /* the definition has no process_batch */
        { "retry_causes", GPUD_EINVAL, OPT(.retry_causes = 16) },
        { "start", GPUD_EINVAL, OPT(.start = 3) },
        { "stdio", GPUD_EINVAL, OPT(.stdio = 5) },
        { "stdio_path", GPUD_EINVAL, OPT(.stdio_path = "/dev/null") },
        { "devices_per_worker", GPUD_EINVAL, OPT(.devices_per_worker = 17) },
        { "devices_per_worker", GPUD_EDEVICE, OPT(.devices = "cpu:3", .devices_per_worker = 2) },
        { "log_level", GPUD_EINVAL, OPT(.log_level = GPUD_LEVEL_COUNT) },
        { "slot_events", GPUD_EINVAL, OPT(.slot_events = 2) },
        { "pooled", GPUD_EINVAL, OPT(.pooled = 2) },
        { "mode", GPUD_EINVAL, OPT(.mode = 1) }, /* it needs pooled, as those below */
        { "passing", GPUD_EINVAL, OPT(.passing = 1) },
        { "cpus", GPUD_EINVAL, OPT(.cpus = 1) },
        { "headroom", GPUD_EINVAL, OPT(.headroom = 1) },
        { "max_workers", GPUD_EINVAL, OPT(.max_workers = 1) },
        { "foreign_load", GPUD_EINVAL, OPT(.foreign_load = 1) },
        { "host_memory", GPUD_EINVAL, OPT(.host_memory = 1) },
        { "foreign_memory", GPUD_EINVAL, OPT(.foreign_memory = 1) },
        { "mode", GPUD_EINVAL, OPT(.pooled = 1, .mode = 2) },
        { "passing", GPUD_EINVAL, OPT(.pooled = 1, .passing = 2) },
        { "headroom", GPUD_EINVAL, OPT(.pooled = 1, .headroom = 10001) },
        { "max_workers", GPUD_EINVAL, OPT(.pooled = 1, .max_workers = 1024) },
        { "foreign_load", GPUD_EINVAL, OPT(.pooled = 1, .foreign_load = 10001) },
        { "definition", GPUD_EINVAL, OPT(.pooled = 1, .definition = "one") },
        { "devices", GPUD_EINVAL, OPT(.pooled = 1, .devices = "cpu:2") },
        { "devices", GPUD_EINVAL, OPT(.pooled = 1, .devices = "fake:2/2") },
        { "devices", GPUD_EDEVICE, OPT(.pooled = 1, .devices = "tpu:1") },
    };
    const struct gpud_definition definitions[] = { GPUD_DEFINITION("one", NULL, process, NULL),
                                                   GPUD_DEFINITION("two", NULL, process, NULL) };
    gpud_dispatcher *const untouched = (gpud_dispatcher *)(uintptr_t)8;
    gpud_dispatcher *d = untouched;
    struct gpud_error error = GPUD_ERROR_INIT;

    t_init(NULL, process, NULL);
    T_CODE(gpud_dispatcher_create(NULL, T_OPTIONS(0), NULL), EINVAL);
    T_CODE(gpud_dispatcher_create(&d, NULL, NULL), EINVAL);
    for (size_t i = 0; i < T_LENGTH(bad); i++) {
        struct gpud_error e = GPUD_ERROR_INIT;
        int code = gpud_dispatcher_create(&d, &bad[i].options, &e);

        if (code != bad[i].code || strcmp(e.field, bad[i].what) != 0 || e.code != code || !*e.text)
            T_FAIL("row %zu (%s %s): %s, field \"%s\", text \"%s\"", i, bad[i].what,
                   bad[i].options.devices ? bad[i].options.devices : "", gpud_error_name(code),
                   e.field, e.text);
        T_EQ(gpud_dispatcher_create(&d, &bad[i].options, NULL), bad[i].code);
        T_CHECK(d == untouched);
    }
    T_OK(gpud_fini());

    /* No name, two definitions: which one? */
    T_OK(gpud_init(definitions, 2, NULL));
    T_CMP(gpud_dispatcher_create(&d, T_OPTIONS(0), &error), <, 0);
    T_TEXT(error.field, "definition");
    T_CHECK(d == untouched);
    T_OK(gpud_fini());
}

/* A record as a later version of the header would have it. */
struct long_options {
    struct gpud_options known;
    uint64_t unknown[4];
};
struct long_task {
    struct gpud_task_desc known;
    uint64_t unknown[4];
};

/* Records larger than known: fine while the tail is zero; smaller ones: the rest is default. */
T_CASE(struct_sizes)
{
    struct long_options options = { .known = { .devices = "cpu:1" } };
    struct long_task task = { .known = { .tag = 5 } };
    struct gpud_stats stats = { .struct_size = 0 };
    struct gpud_slot_stats row = { .struct_size = 0 };
    struct {
        struct gpud_event known;
        uint64_t unknown[4];
    } events[2];
    struct t_log log = { 0 };
    gpud_dispatcher *d = NULL;
    int n;

    t_init(NULL, process, NULL);
    T_CODE(gpud_dispatcher_create(&d, &options.known, NULL), ESTRUCT);
    options.known.struct_size = 3;
    T_CODE(gpud_dispatcher_create(&d, &options.known, NULL), ESTRUCT);
    options.known.struct_size = sizeof(options);
    options.unknown[3] = 1;
    T_CODE(gpud_dispatcher_create(&d, &options.known, NULL), EVERSION);
    T_CHECK(!d);
    options.unknown[3] = 0;
    T_OK(gpud_dispatcher_create(&d, &options.known, NULL));
    t_destroy(&d, NULL);
    /* An older caller's record ends early. */
    options.known.struct_size = (uint32_t)offsetof(struct gpud_options, seed);
    options.known.log_level = 12345;
    T_OK(gpud_dispatcher_create(&d, &options.known, NULL));

    T_CODE(gpud_dispatcher_submit(d, &task.known, 0, NULL, NULL), ESTRUCT);
    task.known.struct_size = sizeof(task);
    task.unknown[0] = 1;
    T_CODE(gpud_dispatcher_submit(d, &task.known, 0, NULL, NULL), EVERSION);
    task.unknown[0] = 0;
    T_OK(gpud_dispatcher_submit(d, &task.known, 0, NULL, NULL));
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, 5, SUCCESS);

    /* Records of an array have the caller's length; what we do not know is zeroed. */
    memset(events, 0xff, sizeof(events));
    events[0].known.struct_size = sizeof(events[0]);
    T_SUBMIT(d, .tag = 6);
    do {
        events[0].known.struct_size = sizeof(events[0]);
        n = gpud_dispatcher_poll(d, &events[0].known, 2, T_PATIENCE);
        T_CMP(n, >, 0);
    } while (events[0].known.kind != GPUD_EVENT_OUTCOME);
    T_EQ(events[0].known.tag, 6);
    events[0].known.struct_size = 0;
    T_CODE(gpud_dispatcher_poll(d, &events[0].known, 2, 0), ESTRUCT);

    T_CODE(gpud_dispatcher_stats(d, &stats), ESTRUCT);
    T_CODE(gpud_dispatcher_slots(d, &row, 1), ESTRUCT);
    T_CODE(gpud_dispatcher_run(d, NULL, T_CALLBACKS(0), NULL, NULL), EINVAL);
    t_end(&d, &log);
}

static int no_task(struct gpud_task_desc *task, size_t n, void *user)
{
    (void)n;
    (void)task, (void)user;
    return 0;
}

/* C15: a length that no version's record has was never set; what it leads to is not touched. */
T_CASE(struct_sizes_that_nobody_set)
{
    enum { MOST = 1 << 20 };
    static const uint32_t sizes[] = { MOST, 0x5a5a5a58 };
    unsigned char *record = malloc(MOST);
    gpud_dispatcher *d, *other = NULL;

    T_CHECK(record);
    d = T_BEGIN(NULL, process, 0);
    for (size_t i = 0; i < T_LENGTH(sizes); i++) {
        memset(record, 0, MOST);
        memcpy(record, &sizes[i], sizeof(sizes[i]));
        T_CODE(gpud_dispatcher_slots(d, (void *)record, 1), ESTRUCT);
        T_CODE(gpud_dispatcher_devices(d, (void *)record, 1), ESTRUCT);
        T_CODE(gpud_dispatcher_poll(d, (void *)record, 1, 0), ESTRUCT);
        T_CODE(gpud_dispatcher_wait(d, 1, (void *)record, 0, NULL), ESTRUCT);
        T_CODE(gpud_event_keep(d, (void *)record), ESTRUCT);
        T_CODE(gpud_dispatcher_submit(d, (void *)record, 0, NULL, NULL), ESTRUCT);
        T_CODE(gpud_dispatcher_run(d, no_task, (void *)record, NULL, NULL), ESTRUCT);
        T_CODE(gpud_dispatcher_create(&other, (void *)record, NULL), ESTRUCT);
        for (size_t k = sizeof(sizes[i]); k < MOST; k++)
            T_EQ(record[k], 0);
    }
    t_end(&d, NULL);
    free(record);
}

/* Calls on a living dispatcher. */
T_CASE(call_arguments)
{
    struct gpud_event event = GPUD_EVENT_INIT;
    struct gpud_callbacks callbacks = { .struct_size = 0 };
    struct gpud_stats_info info = { .struct_size = sizeof(info) };
    struct gpud_error error = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    uint64_t id = 77;
    void *bytes = NULL;
    size_t counters = 0;
    gpud_dispatcher *d = T_BEGIN(NULL, process, 0);
    struct gpud_stats stats;

    T_CODE(gpud_dispatcher_submit(NULL, T_TASK(0), 0, &id, NULL), EINVAL);
    T_CODE(gpud_dispatcher_submit(d, NULL, 0, &id, NULL), EINVAL);
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.size = 10), 0, &id, NULL), EINVAL);
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.label = NAME_64), 0, &id, NULL), ELABEL);
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.data = &id, .size = UINT64_MAX), 0, &id, NULL),
           ETOOBIG);
    T_EQ(id, 77);
    T_CODE(gpud_dispatcher_buffer_alloc(d, 10, NULL), EINVAL);
    T_CODE(gpud_dispatcher_buffer_alloc(NULL, 10, &bytes), EINVAL);
    T_CODE(gpud_dispatcher_poll(NULL, &event, 1, 0), EINVAL);
    T_CODE(gpud_dispatcher_poll(d, NULL, 1, 0), EINVAL);
    T_CODE(gpud_dispatcher_poll(d, &event, 0, 0), EINVAL);
    T_CODE(gpud_dispatcher_run(NULL, no_task, T_CALLBACKS(0), NULL, NULL), EINVAL);
    T_CODE(gpud_dispatcher_run(d, NULL, T_CALLBACKS(0), NULL, &error), EINVAL);
    T_TEXT(error.field, "source");
    T_CODE(gpud_dispatcher_run(d, no_task, &callbacks, NULL, &error), ESTRUCT);
    T_CODE(gpud_dispatcher_stop(NULL, GPUD_FINISH_ALL), EINVAL);
    T_CODE(gpud_dispatcher_stop(d, 3), EINVAL);
    T_CODE(gpud_dispatcher_close(NULL, GPUD_FINISH_ALL, 0), EINVAL);
    T_CODE(gpud_dispatcher_close(d, 4, 0), EINVAL);
    T_CODE(gpud_dispatcher_stats(d, NULL), EINVAL);
    T_CODE(gpud_dispatcher_slots(d, NULL, 1), EINVAL);

    /* None of it did any harm. */
    T_TEXT(T_RUN(d, &log, SUCCESS, .tag = 1, .label = NAME_63)->label, NAME_63);

    stats = t_stats(d);
    while (!gpud_stats_info(counters, &info)) {
        T_CHECK(info.name && info.unit && info.help && info.kind <= GPUD_STATS_GAUGE);
        if (!strcmp(info.name, "accepted"))
            T_EQ(gpud_stats_value(&stats, counters), 1);
        counters++;
    }
    T_CODE(gpud_stats_info(counters, &info), ENOTFOUND);
    T_EQ(gpud_stats_value(&stats, counters), 0);
    T_CMP(counters, >, 30);
    t_end(&d, &log);
}

/* Names and texts of every code and value; what is unknown has one too. */
T_CASE(names)
{
    T_TEXT(gpud_error_name(0), "OK");
    T_TEXT(gpud_error_name(GPUD_EFULL), "EFULL");
    T_TEXT(gpud_error_name(12345), "?");
    T_TEXT(gpud_error_text(12345), "unknown error");
    for (int code = -26; code < 0; code++) {
        T_CHECK(strcmp(gpud_error_name(code), "?") != 0);
        T_CHECK(strcmp(gpud_error_text(code), "unknown error") != 0);
    }
    T_TEXT(gpud_outcome_name(GPUD_OUTCOME_NO_WORKER), "NO_WORKER");
    T_TEXT(gpud_outcome_name(0), "?");
    T_TEXT(gpud_outcome_name(7), "?");
    T_TEXT(gpud_phase_name(GPUD_PHASE_HARD), "HARD");
    T_TEXT(gpud_event_name(GPUD_EVENT_SETUP_FAILURE), "SETUP_FAILURE");
    T_TEXT(gpud_slot_state_name(GPUD_SLOT_STOPPED), "STOPPED");
    T_TEXT(gpud_level_name(GPUD_LEVEL_DEBUG), "DEBUG");
    T_TEXT(gpud_level_name(99), "?");
    T_CHECK(*gpud_version());
}
