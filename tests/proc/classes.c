/* SPDX-License-Identifier: MIT */
/* classes.c - pooled dispatchers: several classes that share devices.          [R5] [R6] [S8] */
#include "pair.h"
#include "replayed.h"
#include "rest.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ---- classes that fit side by side ---- */

/* Each class has its definition, setup data and environment, also in the same keeper. */
T_CASE(side_by_side)
{
    static const char *const env_a[] = { "T_CLASS=of-a", NULL };
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:2");
    add(d, T_CLASS(.name = "a", .options = T_OPTIONS(.definition = "def-a", .setup_data = "hello",
                                                     .setup_size = 5, .env = env_a)));
    add(d, T_CLASS(.name = "b", .options = T_OPTIONS(.definition = "def-b")));
    for (uint64_t tag = 0; tag < 40; tag++)
        T_SUBMIT(d, .tag = tag, .class_name = tag % 2 ? "b" : "a");
    t_collect(d, &log, 40);
    for (uint64_t tag = 0; tag < 40; tag++) {
        const char *text = T_OUTCOME(&log, tag, SUCCESS)->result;
        T_CHECK(strncmp(text, tag % 2 ? "b fake:" : "a fake:", 7) == 0);
        T_CHECK(strstr(text, tag % 2 ? "data= env=-" : "data=hello env=of-a"));
    }
    T_EQ(t_class(d, "a").done, 20);
    T_EQ(t_class(d, "b").done, 20);
    T_EQ(t_class(d, "a").workers, 1);
    t_end(&d, &log);
}

/* One device, two transient classes: the seat, or its neighbour, changes class for each task. */
T_LONG_CASE(seat_reused_by_other_class, 60)
{
    static const char *const env_a[] = { "T_CLASS=of-a", NULL };
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1", .max_workers = 1, .decision_log = T_DECISIONS);
    add(d, T_CLASS(.name = "a", .residence = GPUD_TRANSIENT, .min_residence = T_MS(1),
                   .options = T_OPTIONS(.definition = "def-a", .env = env_a)));
    add(d, T_CLASS(.name = "b", .residence = GPUD_TRANSIENT, .min_residence = T_MS(1),
                   .options = T_OPTIONS(.definition = "def-b", .setup_data = "bb",
                                        .setup_size = 2)));
    for (uint64_t tag = 0; tag < 10; tag++) {
        (void)T_RUN(d, &log, SUCCESS, .tag = tag, .class_name = tag % 2 ? "b" : "a");
        t_check_result(&log, tag, tag % 2 ? "b fake:0 data=bb env=-" : "a fake:0 data= env=of-a");
    }
    T_EQ(t_word(T_UPS), 10);
    (void)t_end_replayed(&d, &log);
}

/* A class of programs and one of forked workers share a keeper. */
T_LONG_CASE(forked_and_executed, 60)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    if (getenv("GPUD_WORKER"))
        t_pair_init(); /* this case again, as the worker */
    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1", .max_workers = 1);
    add(d, T_CLASS(.name = "a", .residence = GPUD_TRANSIENT, .min_residence = T_MS(1),
                   .options = T_OPTIONS(.definition = "def-a", .start = GPUD_START_EXEC)));
    add(d, T_CLASS(.name = "b", .residence = GPUD_TRANSIENT, .min_residence = T_MS(1),
                   .options = T_OPTIONS(.definition = "def-b", .start = GPUD_START_FORK,
                                        .stdio = GPUD_STDIO_INHERIT)));
    for (uint64_t tag = 0; tag < 6; tag++) {
        (void)T_RUN(d, &log, SUCCESS, .tag = tag, .class_name = tag % 2 ? "b" : "a");
        t_check_result(&log, tag, tag % 2 ? "b fake:0 data= env=-" : "a fake:0 data= env=-");
    }
    t_end(&d, &log);
}

/* The event of a task has the devices of its worker, also if the seat has others by then. */
T_LONG_CASE(event_keeps_devices, 60)
{
    struct gpud_event one = GPUD_EVENT_INIT;
    gpud_dispatcher *d;
    struct t_log log = { 0 };
    uint64_t id;

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:2", .max_workers = 1);
    add(d, T_CLASS(.name = "a", .residence = GPUD_TRANSIENT, .min_residence = T_MS(1),
                   .needs = T_REQUEST(.devices = 2), .options = T_OPTIONS(.definition = "def-a")));
    add(d, T_CLASS(.name = "b", .residence = GPUD_TRANSIENT, .min_residence = T_MS(1),
                   .options = T_OPTIONS(.definition = "def-b")));
    id = t_submit(d, T_TASK(.tag = 1, .class_name = "a", .awaited = 1));
    (void)T_RUN(d, &log, SUCCESS, .tag = 2, .class_name = "b");
    T_CMP(strlen(T_OUTCOME(&log, 2, SUCCESS)->device), ==, strlen("fake:0"));
    T_OK(gpud_dispatcher_wait(d, id, &one, T_PATIENCE, NULL));
    T_EQ(strlen(one.device), strlen("fake:0,fake:1"));
    T_OK(gpud_event_release(&one));
    t_end(&d, &log);
}

/* Memory decides what fits: two workers on one device, and no third one. */
T_CASE(by_memory)
{
    const struct gpud_request *six = T_REQUEST(.devices = 1, .share = 3000, .memory = 6ull << 30);
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1"); /* 16 GiB, and 1.6 GiB stay free */
    add(d, T_CLASS(.name = "a", .needs = six, .options = T_OPTIONS(.definition = "def-a")));
    add(d, T_CLASS(.name = "b", .needs = six, .options = T_OPTIONS(.definition = "def-b")));
    add(d, T_CLASS(.name = "c", .needs = six, .options = T_OPTIONS(.definition = "def-a")));
    T_SUBMIT(d, .tag = T_GATED + 1, .class_name = "a");
    T_SUBMIT(d, .tag = T_GATED + 2, .class_name = "b");
    t_word_wait(T_UPS, 2); /* both are up at a time */
    T_SUBMIT(d, .tag = 3, .class_name = "c");
    t_word_set(T_GATE, 2);
    t_collect(d, &log, 2);
    T_EQ(t_class(d, "c").queued, 1);
    T_EQ(t_class(d, "c").workers + t_class(d, "c").starting, 0);
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_UNLOAD, NULL)); /* makes room */
    t_collect(d, &log, 3);
    t_check_result(&log, 3, "a fake:0 data= env=-");
    t_end(&d, &log);
}

/* Needs name devices, and one that is removed and added again is the same one.  The class has as
 * many tasks at a time as its devices let run, so it uses each of them. */
T_CASE(on_and_not_on)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };
    size_t at = 0;
    int first_on_0;

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:4");
    add(d, T_CLASS(.name = "a", .boot_seed = T_MS(1),
                   .needs = T_REQUEST(.devices = 1, .on = "fake:0,fake:2"),
                   .options = T_OPTIONS(.definition = "def-a", .sent_ahead = 1)));
    add(d, T_CLASS(.name = "b",
                   .needs = T_REQUEST(.devices = 1, .on = "fake:1,fake:2,fake:3",
                                      .not_on = "fake:2,fake:1"),
                   .options = T_OPTIONS(.definition = "def-b")));
    T_SUBMIT(d, .tag = T_GATED + 1, .class_name = "a");
    T_SUBMIT(d, .tag = T_GATED + 2, .class_name = "a");
    T_SUBMIT(d, .tag = 1, .class_name = "b");
    t_word_wait(T_STARTS, 3);
    t_word_set(T_GATE, 2);
    t_collect(d, &log, 3);
    first_on_0 = T_OUTCOME(&log, T_GATED + 1, SUCCESS)->device[5] == '0';
    t_check_result(&log, T_GATED + (first_on_0 ? 1 : 2), "a fake:0 data= env=-");
    t_check_result(&log, T_GATED + (first_on_0 ? 2 : 1), "a fake:2 data= env=-");
    t_check_result(&log, 1, "b fake:3 data= env=-");
    T_OK(gpud_dispatcher_device_remove(d, "fake:3"));
    (void)t_told(d, &log, &at, "fake:3", "removed");
    T_OK(gpud_dispatcher_device_add(d, "fake:1", NULL)); /* the next number is 3 */
    T_SUBMIT(d, .tag = 2, .class_name = "b");
    t_collect(d, &log, 4);
    t_check_result(&log, 2, "b fake:3 data= env=-");
    t_end(&d, &log);
}

/* Workers without a device: CPU slots of the pool. */
T_CASE(without_devices)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = T_CREATE(.pooled = 1, .cpus = 2, .max_workers = 4);
    add(d, T_CLASS(.name = "a", .needs = T_REQUEST(.cpus = 1),
                   .options = T_OPTIONS(.definition = "def-a")));
    for (uint64_t tag = 0; tag < 20; tag++)
        T_SUBMIT(d, .tag = tag, .class_name = "a");
    t_collect(d, &log, 20);
    t_check_result(&log, 7, "a cpu data= env=-");
    t_end(&d, &log);
}

/* No more workers start than CPU slots let run at a time: the others get their seats. */
T_LONG_CASE(no_more_workers_than_can_run, 60)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1", .cpus = 2, .max_workers = 4);
    add(d, T_CLASS(.name = "a", .needs = T_REQUEST(.cpus = 1), .boot_seed = T_MS(1),
                   .options = T_OPTIONS(.definition = "def-a")));
    add(d, T_CLASS(.name = "b", .options = T_OPTIONS(.definition = "def-b")));
    for (uint64_t tag = 0; tag < 500; tag++)
        T_SUBMIT(d, .tag = tag, .class_name = "a");
    T_SUBMIT(d, .tag = 500, .class_name = "b");
    t_collect(d, &log, 501);
    T_CMP(t_class(d, "a").workers, <=, 2);
    t_end(&d, &log);
}

/* A task is sent at once to an idle worker, though tasks of another class wait and the dispatcher
 * sleeps. */
T_CASE(submit_beside_waiting_tasks)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = T_CREATE(.pooled = 1, .cpus = 2, .max_workers = 4);
    add(d, T_CLASS(.name = "a", .needs = T_REQUEST(.cpus = 1), .max_workers = 1,
                   .options = T_OPTIONS(.definition = "def-a", .sent_ahead = 1)));
    add(d, T_CLASS(.name = "b", .needs = T_REQUEST(.cpus = 1), .max_workers = 1,
                   .options = T_OPTIONS(.definition = "def-b", .sent_ahead = 1)));
    (void)T_RUN(d, &log, SUCCESS, .tag = 0, .class_name = "b");
    T_SUBMIT(d, .tag = T_GATED + 1, .class_name = "a");
    t_word_wait(T_STARTS, 2);
    T_SUBMIT(d, .tag = 1, .class_name = "a");
    t_expect_rest(1, NULL, NULL);
    T_SUBMIT(d, .tag = 2, .class_name = "b");
    T_EQ(t_word_wait_for(T_STARTS, 3, T_S(5)), 0); /* else a check after 10 s would find it */
    t_collect(d, &log, 2);
    (void)T_OUTCOME(&log, 2, SUCCESS);
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 4);
    t_end(&d, &log);
}

/* Nor more than the shares of each device let run, however much memory is left.           [R5] */
T_LONG_CASE(no_more_workers_than_shares, 60)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:2");
    add(d, T_CLASS(.name = "a", .boot_seed = T_MS(1),
                   .needs = T_REQUEST(.devices = 1, .memory = 1ull << 30, .share = 5000),
                   .options = T_OPTIONS(.definition = "def-a")));
    for (uint64_t tag = 0; tag < 500; tag++)
        T_SUBMIT(d, .tag = tag, .class_name = "a");
    t_collect(d, &log, 500);
    T_CMP(t_class(d, "a").workers, <=, 4);
    T_CMP(t_word(T_UPS), <=, 4);
    t_end(&d, &log);
}

/* A worker that boots is for one task that waits: no second one starts for it.            [R5] */
T_CASE(one_task_one_worker)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:4");
    add(d, T_CLASS(.name = "a", .boot_seed = 1000, .run_seed = T_MS(10000),
                   .options = T_OPTIONS(.definition = "def-a")));
    (void)T_RUN(d, &log, SUCCESS, .tag = 1, .class_name = "a");
    T_EQ(t_class(d, "a").workers, 1);
    T_EQ(t_class(d, "a").starting, 0);
    T_EQ(t_word(T_UPS), 1);
    t_end(&d, &log);
}

/* The row has what the class has learned, and the age of its oldest task. */
T_CASE(row_of_times)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };
    struct gpud_class_stats before, after;

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add(d, T_CLASS(.name = "a", .options = T_OPTIONS(.definition = "def-a", .sent_ahead = 1)));
    before = t_class(d, "a");
    T_EQ(before.boot_p50, 0);
    T_EQ(before.run_p90, 0);
    T_EQ(before.oldest_wait, 0);
    T_SUBMIT(d, .tag = T_GATED + 1, .class_name = "a");
    T_SUBMIT(d, .tag = 1, .class_name = "a");
    t_word_wait(T_STARTS, 1);
    T_CMP(t_class(d, "a").oldest_wait, >, 0); /* the second task waits behind the gate */
    t_word_set(T_GATE, 1);
    t_collect(d, &log, 2);
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_UNLOAD, NULL));
    t_collect_kind(d, &log, GPUD_EVENT_CLASS, 2);
    (void)T_RUN(d, &log, SUCCESS, .tag = 2, .class_name = "a"); /* the device was free again */
    after = t_class(d, "a");
    T_CMP(after.unload_p50, >, 0);
    T_CMP(after.boot_p10, >, 0);
    T_CMP(after.boot_p10, <=, after.boot_p50);
    T_CMP(after.boot_p50, <=, after.boot_p90);
    T_CMP(after.run_p50, >, 0);
    T_CMP(after.run_p50, <=, after.run_p90);
    T_EQ(after.oldest_wait, 0);
    t_end(&d, &log);
}

/* A task has its own keep_alive: its worker leaves at once, and the other one stays. */
T_CASE(keep_alive_of_a_task)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:2");
    add(d, T_CLASS(.name = "a", .options = T_OPTIONS(.definition = "def-a")));
    add(d, T_CLASS(.name = "b", .options = T_OPTIONS(.definition = "def-b")));
    (void)T_RUN(d, &log, SUCCESS, .tag = 1, .class_name = "b");
    (void)T_RUN(d, &log, SUCCESS, .tag = 2, .class_name = "a", .keep_alive = GPUD_AT_ONCE);
    t_collect_kind(d, &log, GPUD_EVENT_CLASS, 3);
    t_check_changes(&log, "a", "LOADED UNLOADED");
    t_check_changes(&log, "b", "LOADED");
    t_end(&d, &log);
}

/* ---- classes that fail ---- */

#define B_FAILED "class b starts no worker any more: setup returned 7"
#define NOTHING_FITS "no device that is left could ever hold a worker of its class"

/* Its setup fails; one failure is enough. */
static void add_broken_b(gpud_dispatcher *d, uint32_t residence)
{
    t_word_set(T_BROKEN, 1);
    add(d, T_CLASS(.name = "b", .residence = residence,
                   .options = T_OPTIONS(.definition = "def-b", .failures_in_a_row = 1)));
}

static void wait_without_worker(gpud_dispatcher *d, uint64_t n)
{
    while (t_stats(d).no_worker < n)
        t_pass(T_MS(1));
}

static void check_reason(const struct t_log *log, uint64_t tag, const char *text)
{
    T_TEXT(T_OUTCOME(log, tag, NO_WORKER)->text, text);
}

/* S8. */
T_LONG_CASE(boot_fails_three_times, 60)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    t_word_set(T_BROKEN, 1);
    d = T_CREATE(.pooled = 1, .devices = "fake:2", .decision_log = T_DECISIONS);
    add(d, T_CLASS(.name = "a", .options = T_OPTIONS(.definition = "def-a")));
    add(d, T_CLASS(.name = "b", .options = T_OPTIONS(.definition = "def-b", .backoff = T_MS(1))));
    T_SUBMIT(d, .tag = 1, .class_name = "b");
    T_SUBMIT(d, .tag = 2, .class_name = "a");
    t_collect(d, &log, 2);
    (void)T_OUTCOME(&log, 2, SUCCESS);
    check_reason(&log, 1, B_FAILED);
    T_EQ(t_log_count(&log, GPUD_EVENT_SETUP_FAILURE), 3);
    T_EQ(t_class(d, "b").failed, 1);
    T_EQ(t_class(d, "b").failures, 3);
    t_collect_kind(d, &log, GPUD_EVENT_CLASS, 2);
    t_check_changes(&log, "a", "LOADED");
    t_check_changes(&log, "b", "FAILED");
    t_word_set(T_BROKEN, 0);
    T_OK(gpud_dispatcher_class_set(d, "b", GPUD_CLASS_RESUME, NULL));
    (void)T_RUN(d, &log, SUCCESS, .tag = 3, .class_name = "b");
    T_EQ(t_class(d, "b").failed, 0);
    t_check_changes(&log, "b", "FAILED RESUMED LOADED");
    (void)t_end_replayed(&d, &log);
}

/* Workers of a class die between and in tasks: its tasks are charged, and the other class goes
 * on. */
T_CASE(workers_and_keepers_die)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };
    struct t_proc worker, keeper;

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:2");
    add(d, T_CLASS(.name = "a", .max_workers = 1,
                   .options = T_OPTIONS(.definition = "def-a", .backoff = T_MS(1))));
    add(d, T_CLASS(.name = "b", .max_workers = 1,
                   .options = T_OPTIONS(.definition = "def-b", .backoff = T_MS(1))));
    T_SUBMIT(d, .tag = T_GATED + 1, .class_name = "a");
    t_word_wait(T_STARTS, 1);
    worker = t_worker(d, 0);
    t_kill(worker.pid, SIGKILL);
    t_collect(d, &log, 1);
    (void)T_OUTCOME(&log, T_GATED + 1, CRASHED);
    t_word_set(T_GATE, 9);
    (void)T_RUN(d, &log, SUCCESS, .tag = 2, .class_name = "a");
    (void)T_RUN(d, &log, SUCCESS, .tag = 3, .class_name = "b");
    worker = t_worker(d, T_OUTCOME(&log, 3, SUCCESS)->slot);
    keeper = t_keeper_of(&worker);
    t_kill(keeper.pid, SIGKILL);
    t_wait_ended(&keeper);
    (void)T_RUN(d, &log, SUCCESS, .tag = 4, .class_name = "b");
    (void)T_RUN(d, &log, SUCCESS, .tag = 5, .class_name = "a");
    t_end(&d, &log);
}

/* ---- requests of the user ---- */

T_CASE(load_pause_unload)
{
    gpud_dispatcher *d;
    struct t_log log = { 0 };

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add(d, T_CLASS(.name = "a", .options = T_OPTIONS(.definition = "def-a")));
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_LOAD, NULL));
    t_wait_ready(d, 1);
    T_TEXT(t_slot(d, 0).class_name, "a");
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_PAUSE, NULL));
    T_EQ(t_class(d, "a").paused, 1);
    T_SUBMIT(d, .tag = 1, .class_name = "a");
    T_EQ(t_class(d, "a").queued, 1);
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_RESUME, NULL));
    t_collect(d, &log, 1);
    T_OK(gpud_dispatcher_class_set(d, "a", GPUD_CLASS_UNLOAD, NULL));
    t_wait_slot(d, 0, GPUD_SLOT_STOPPED);
    T_EQ(t_class(d, "a").workers, 0);
    t_collect_kind(d, &log, GPUD_EVENT_CLASS, 4);
    t_check_changes(&log, "a", "LOADED PAUSED RESUMED UNLOADED");
    T_TEXT(T_OUTCOME(&log, 1, SUCCESS)->class_name, "a");
    t_end(&d, &log);
}

/* gpud_dispatcher_ready counts min_workers. */
T_CASE(ready)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_dispatcher *d;

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:3");
    T_OK(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL));
    add(d, T_CLASS(.name = "a", .min_workers = 2, .options = T_OPTIONS(.definition = "def-a")));
    T_OK(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL));
    T_EQ(t_class(d, "a").workers, 2);
    t_word_set(T_BROKEN, 1);
    add(d, T_CLASS(.name = "b", .min_workers = 1,
                   .options = T_OPTIONS(.definition = "def-b", .backoff = T_MS(1))));
    T_CODE(gpud_dispatcher_ready(d, 0, T_PATIENCE, &e), ENOWORKER);
    T_TEXT(e.text, B_FAILED);
    t_destroy(&d, NULL);
    d = T_CREATE(.pooled = 1, .devices = "fake:3", .max_workers = 2); /* fewer than 2 + 1 */
    add(d, T_CLASS(.name = "a", .min_workers = 2, .options = T_OPTIONS(.definition = "def-a")));
    add(d, T_CLASS(.name = "c", .min_workers = 1, .options = T_OPTIONS(.definition = "def-a")));
    T_CODE(gpud_dispatcher_ready(d, 0, GPUD_NEVER, &e), ENOWORKER);
    T_TEXT(e.text, "2 of 3 workers can become ready; 2 slots are left");
    t_end(&d, NULL);
}

static int feed_b(struct gpud_task_desc *task, size_t n, void *left)
{
    (void)n;
    task->class_name = "b";
    return (*(int *)left)-- > 0;
}

/* RESUME forgets the reason, but an outcome from before has it. */
T_CASE(reason_after_resume)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add_broken_b(d, GPUD_RESIDENT);
    T_SUBMIT(d, .tag = 1, .class_name = "b");
    wait_without_worker(d, 1);
    t_word_set(T_BROKEN, 0);
    T_OK(gpud_dispatcher_class_set(d, "b", GPUD_CLASS_RESUME, NULL));
    T_OK(gpud_dispatcher_device_pause(d, "fake:0"));
    T_SUBMIT(d, .tag = 2, .class_name = "b");
    T_OK(gpud_dispatcher_device_remove(d, "fake:0"));
    t_collect(d, &log, 2);
    check_reason(&log, 1, B_FAILED);
    check_reason(&log, 2, NOTHING_FITS);
    t_end(&d, &log);
}

/* A failure after the outcome does not change its reason. */
T_CASE(reason_before_a_failure)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:2");
    add_broken_b(d, GPUD_TRANSIENT);
    T_OK(gpud_dispatcher_device_pause(d, "fake:1"));
    T_SUBMIT(d, .tag = 1, .class_name = "b", .request = T_REQUEST(.devices = 2));
    T_OK(gpud_dispatcher_device_remove(d, "fake:1"));
    wait_without_worker(d, 1);
    T_SUBMIT(d, .tag = 2, .class_name = "b");
    wait_without_worker(d, 2);
    t_collect(d, &log, 2);
    check_reason(&log, 1, NOTHING_FITS);
    check_reason(&log, 2, B_FAILED);
    t_end(&d, &log);
}

/* run gives the reason of the class whose task had no worker. */
T_CASE(run_says_why)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    struct t_log log = { 0 };
    gpud_dispatcher *d;
    int left = 1;

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1");
    add(d, T_CLASS(.name = "a", .options = T_OPTIONS(.definition = "def-a")));
    add_broken_b(d, GPUD_RESIDENT);
    T_CODE(gpud_dispatcher_run(d, feed_b, T_CALLBACKS(.on_error = NULL), &left, &e), ENOWORKER);
    T_TEXT(e.text, B_FAILED);
    t_end(&d, &log);
}

/* A caller of the time before class_name keeps an event. */
T_CASE(kept_by_an_older_caller)
{
    struct gpud_event e = GPUD_EVENT_INIT;
    gpud_dispatcher *d;

    t_pair_init();
    e.struct_size = (uint32_t)offsetof(struct gpud_event, class_name);
    d = T_CREATE(.definition = "def-a", .devices = "cpu:1");
    T_SUBMIT(d, .tag = 1);
    T_EQ(gpud_dispatcher_poll(d, &e, 1, T_PATIENCE), 1);
    T_OK(gpud_event_keep(d, &e));
    T_TEXT(e.device, "cpu:0");
    T_OK(gpud_event_release(&e));
    t_end(&d, NULL);
}

/* ---- refused, C15 ---- */

T_CASE(refused)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_dispatcher *d;
    uint64_t id;

    t_pair_init();
    d = T_CREATE(.pooled = 1, .devices = "fake:1", .cpus = 1);
    T_CODE(gpud_dispatcher_class_add(
               d,
               T_CLASS(.name = "a", .needs = T_REQUEST(.devices = 1, .memory = 20ull << 30),
                       .options = T_OPTIONS(.definition = "def-a")),
               &e),
           EDEVICE);
    T_TEXT(e.field, "needs");
    T_CHECK(strstr(e.text, "class a fits nowhere: it needs 0 CPUs, 0 MiB of the machine, and "
                           "devices: 1 (20480 MiB, compute 0); there are 1 CPUs, "));
    T_CHECK(strstr(e.text, " MiB, and devices: 1 (up to 14745 MiB beside headroom)"));
    T_CODE(gpud_dispatcher_class_add(d, T_CLASS(.name = "a", .min_workers = 99), &e), EINVAL);
    T_TEXT(e.field, "definition");
    T_CODE(gpud_dispatcher_class_add(
               d,
               T_CLASS(.name = "a", .needs = T_REQUEST(.devices = 1, .on = "fake:0,fake:7"),
                       .options = T_OPTIONS(.definition = "def-a")),
               &e),
           EDEVICE);
    T_TEXT(e.field, "on");
    T_TEXT(e.text, "needs.on is \"fake:0,fake:7\": the dispatcher has no device \"fake:7\"");
    T_CODE(gpud_dispatcher_class_add(
               d,
               T_CLASS(.name = "a", .needs = T_REQUEST(.devices = 1, .not_on = "fake:0,"),
                       .options = T_OPTIONS(.definition = "def-a")),
               &e),
           EDEVICE);
    T_TEXT(e.field, "not_on");
    T_CODE(gpud_dispatcher_class_add(
               d,
               T_CLASS(.name = "a", .needs = T_REQUEST(.devices = 1, .not_on = "fake:0"),
                       .options = T_OPTIONS(.definition = "def-a")),
               &e),
           EDEVICE);
    T_TEXT(e.field, "needs");
    T_CHECK(strstr(e.text, "compute 0, on and not_on); there are"));
    T_CODE(gpud_dispatcher_class_add(
               d,
               T_CLASS(.name = "a", .needs = T_REQUEST(.cpus = 1, .on = "fake:0"),
                       .options = T_OPTIONS(.definition = "def-a")),
               &e),
           EINVAL);
    T_TEXT(e.text, "needs.on is set, but needs.devices is 0: set devices");
    T_CODE(gpud_dispatcher_class_add(d,
                                     T_CLASS(.name = "a", .min_workers = 99,
                                             .options = T_OPTIONS(.definition = "def-a")),
                                     &e),
           EINVAL);
    T_TEXT(e.field, "min_workers");
    T_CODE(gpud_dispatcher_class_add(
               d,
               T_CLASS(.name = "a", .min_workers = 3,
                       .needs = T_REQUEST(.devices = 1, .memory = 1ull << 30, .share = 5000),
                       .options = T_OPTIONS(.definition = "def-a")),
               &e),
           EDEVICE);
    T_TEXT(e.field, "min_workers");
    T_TEXT(e.text, "class a: min_workers is 3, but at most 2 workers fit beside each other with "
                   "their shares and memory");
    T_CODE(gpud_dispatcher_class_add(d,
                                     T_CLASS(.name = "a", .min_workers = 1,
                                             .residence = GPUD_TRANSIENT,
                                             .options = T_OPTIONS(.definition = "def-a")),
                                     &e),
           EINVAL);
    T_TEXT(e.field, "min_workers");
    add(d, T_CLASS(.name = "a", .options = T_OPTIONS(.definition = "def-a")));
    T_CODE(gpud_dispatcher_class_add(
               d, T_CLASS(.name = "a", .options = T_OPTIONS(.definition = "def-a")), &e),
           EBUSY);
    T_TEXT(e.field, "name");
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.tag = 1), 0, &id, &e), EINVAL);
    T_TEXT(e.field, "class_name");
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.class_name = "b"), 0, &id, &e), ENODEFINITION);
    T_TEXT(e.text, "no class has the name \"b\"");
    T_CODE(gpud_dispatcher_class_set(d, "b", GPUD_CLASS_LOAD, &e), ENODEFINITION);
    T_CODE(gpud_dispatcher_class_remove(d, "b", GPUD_FINISH_ALL, &e), ENODEFINITION);
    T_TEXT(e.text, "no class has the name \"b\"");
    T_CODE(gpud_dispatcher_class_remove(d, "a", 3, &e), EINVAL);
    T_TEXT(e.field, "how");
    T_CODE(gpud_dispatcher_class_remove(d, NULL, 0, &e), EINVAL);
    T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
    T_CODE(gpud_dispatcher_class_add(
               d, T_CLASS(.name = "c", .options = T_OPTIONS(.definition = "def-a")), &e),
           ECLOSED);
    t_destroy(&d, NULL);
    d = T_CREATE(.definition = "def-a", .devices = "fake:1");
    T_CODE(gpud_dispatcher_submit(d, T_TASK(.class_name = "a"), 0, &id, &e), EINVAL);
    T_TEXT(e.field, "class_name");
    T_CODE(gpud_dispatcher_class_add(
               d, T_CLASS(.name = "a", .options = T_OPTIONS(.definition = "def-a")), &e),
           EINVAL);
    T_TEXT(e.field, "pooled");
    t_end(&d, NULL);
}
