/* SPDX-License-Identifier: MIT */
/* class_removal.c - classes of a pooled dispatcher that are removed. */
#include "pair.h"
#include "replayed.h"

#include <string.h>

static void check_removed(gpud_dispatcher *d, struct t_log *log, const char *name, size_t events)
{
    struct gpud_class_stats row = GPUD_CLASS_STATS_INIT;

    t_collect_kind(d, log, GPUD_EVENT_CLASS, events);
    T_EQ(log->list[log->count - 1].class_change, GPUD_CHANGE_REMOVED);
    T_TEXT(log->list[log->count - 1].class_name, name);
    T_EQ(gpud_dispatcher_classes(d, &row, 0), 0);
    T_CODE(gpud_dispatcher_class_set(d, name, GPUD_CLASS_LOAD, NULL), ENODEFINITION);
    T_CODE(gpud_dispatcher_class_remove(d, name, GPUD_FINISH_ALL, NULL), ENODEFINITION);
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.class_name = name), 0, NULL, NULL), ENODEFINITION);
}

/* ALL: its tasks run, also those of a paused class.  Then another class may have the name. */
T_CASE(remove_all)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add(d, T_CLASS(.name = "x", .options = T_OPTIONS(.definition = "def-a", .setup_data = "hello",
                                                     .setup_size = 5)));
    T_OK(gpud_dispatcher_class_set(d, "x", GPUD_CLASS_PAUSE, NULL));
    for (uint64_t tag = 0; tag < 5; tag++)
        T_SUBMIT(d, .tag = tag ? tag : T_GATED + 1, .class_name = "x");
    T_OK(gpud_dispatcher_class_remove(d, "x", GPUD_FINISH_ALL, NULL));
    T_EQ(t_class(d, "x").removing, 1);
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.class_name = "x"), 0, NULL, NULL), ECLOSED);
    T_CODE(gpud_dispatcher_class_set(d, "x", GPUD_CLASS_PAUSE, NULL), ECLOSED);
    T_CODE(gpud_dispatcher_class_add(
               d, T_CLASS(.name = "x", .options = T_OPTIONS(.definition = "def-b")), NULL),
           EBUSY);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 5);
    check_removed(d, &log, "x", 5);
    t_check_changes(&log, "x", "PAUSED RESUMED LOADED UNLOADED REMOVED");
    t_check_result(&log, 4, "a fake:0 data=hello env=-");
    add(d, T_CLASS(.name = "x", .options = T_OPTIONS(.definition = "def-b")));
    (void)T_RUN(d, &log, SUCCESS, .tag = 9, .class_name = "x");
    t_check_result(&log, 9, "b fake:0 data= env=-");
    t_end(&d, &log);
}

/* RUNNING: a task that has begun ends, and the other ones are cancelled. */
T_CASE(remove_running)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add(d, T_CLASS(.name = "x", .min_workers = 1, .options = T_OPTIONS(.definition = "def-a")));
    for (uint64_t tag = 0; tag < 5; tag++)
        T_SUBMIT(d, .tag = tag ? tag : T_GATED + 1, .class_name = "x");
    t_word_wait(T_STARTS, 1);
    T_OK(gpud_dispatcher_class_remove(d, "x", GPUD_FINISH_RUNNING, NULL));
    t_collect(d, &log, 4);
    for (uint64_t tag = 1; tag < 5; tag++)
        (void)T_OUTCOME(&log, tag, CANCELLED);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 5);
    (void)T_OUTCOME(&log, T_GATED + 1, SUCCESS);
    check_removed(d, &log, "x", 3);
    T_EQ(t_word(T_STARTS), 1);
    t_end(&d, &log);
}

/* NOW, also behind ALL: the task that has begun is cancelled, and killed after its grace. */
T_CASE(remove_now)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add(d, T_CLASS(.name = "x",
                   .options = T_OPTIONS(.definition = "def-a", .grace = T_MS(1))));
    T_SUBMIT(d, .tag = T_GATED + 1, .class_name = "x");
    T_SUBMIT(d, .tag = 1, .class_name = "x");
    t_word_wait(T_STARTS, 1);
    T_OK(gpud_dispatcher_class_remove(d, "x", GPUD_FINISH_ALL, NULL));
    T_OK(gpud_dispatcher_class_remove(d, "x", GPUD_FINISH_NOW, NULL));
    t_collect(d, &log, 2);
    (void)T_OUTCOME(&log, T_GATED + 1, CANCELLED);
    (void)T_OUTCOME(&log, 1, CANCELLED);
    check_removed(d, &log, "x", 3);
    t_end(&d, &log);
}

static void add_small(gpud_dispatcher *d, const char *name, const char *definition)
{
    add(d, T_CLASS(.name = name, .needs = T_REQUEST(.devices = 1, .memory = 1ull << 30),
                   .options = T_OPTIONS(.definition = definition, .setup_data = name,
                                        .setup_size = strlen(name))));
}

/* All numbers but one are in use, so a keeper gets one class after the other with that number. */
T_LONG_CASE(removed_numbers, 120)
{
    enum { NUMBERS = 256, ROUNDS = 30 };
    gpud_dispatcher *d;
    struct t_log log = { 0 };
    char name[16], result[64];

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    for (unsigned i = 1; i < NUMBERS; i++) {
        (void)snprintf(name, sizeof(name), "f%u", i);
        add_small(d, name, "def-a");
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        (void)snprintf(name, sizeof(name), "x%u", i);
        add_small(d, name, i % 2 ? "def-a" : "def-b");
        T_CODE(gpud_dispatcher_class_add(
                   d, T_CLASS(.name = "y", .options = T_OPTIONS(.definition = "def-a")), NULL),
               EFULL);
        T_SUBMIT(d, .tag = i, .class_name = name);
        T_OK(gpud_dispatcher_class_remove(d, name, GPUD_FINISH_ALL, NULL));
        t_collect_kind(d, &log, GPUD_EVENT_CLASS, 3 * (i + 1));
        T_EQ(gpud_dispatcher_classes(d, NULL, 0), NUMBERS - 1);
        (void)t_poll(d, &log, 0); /* the events of the last poll are valid until this one */
    }
    t_collect(d, &log, ROUNDS);
    for (unsigned i = 0; i < ROUNDS; i++) {
        (void)snprintf(name, sizeof(name), "x%u", i);
        (void)snprintf(result, sizeof(result), "%s fake:0 data=%s env=-", i % 2 ? "a" : "b", name);
        t_check_result(&log, i, result);
        T_TEXT(T_OUTCOME(&log, i, SUCCESS)->class_name, name);
        t_check_changes(&log, name, "LOADED UNLOADED REMOVED");
    }
    t_end(&d, &log);
}

/* 600 classes in a row: a number is used again when no event has it any more. */
T_LONG_CASE(removed_and_unread, 120)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };
    char name[16];

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:2");
    for (unsigned i = 0; i < 600; i++) {
        (void)snprintf(name, sizeof(name), "x%u", i);
        add_small(d, name, "def-a");
        if (i % 20 == 0)
            T_SUBMIT(d, .tag = i, .class_name = name);
        T_OK(gpud_dispatcher_class_remove(d, name, GPUD_FINISH_ALL, NULL));
        if (i % 100 == 99)
            t_collect(d, &log, i / 20 + 1);
    }
    for (unsigned i = 0; i < 600; i += 20) {
        (void)snprintf(name, sizeof(name), "x%u", i);
        T_CHECK(strstr(T_OUTCOME(&log, i, SUCCESS)->result, name));
        T_TEXT(T_OUTCOME(&log, i, SUCCESS)->class_name, name);
    }
    t_end(&d, &log);
}
