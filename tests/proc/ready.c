/* SPDX-License-Identifier: MIT */
/* ready.c - gpud_dispatcher_ready: threads that wait until workers have passed setup. */
#include "scripted.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AT_GATE, RUNNING, TASK_GATE, GONE, TID, GATES = 16 /* a word per slot */ };
enum { STARTS }; /* numbers: setups begun per slot */

/* The setup bytes say what to do, one per slot: pass (also where there is none), wait at the gate,
 * exit, fail, fail twice. */
static int setup(gpud_worker *w, void **ret_state)
{
    uint32_t slot = gpud_worker_slot(w);
    size_t size = 0;
    const char *ways = gpud_worker_setup_data(w, &size);
    uint64_t n = atomic_fetch_add(&t_page->numbers[STARTS + slot], 1);

    (void)ret_state;
    switch (slot < size ? ways[slot] : 'p') {
    case 'g':
        (void)t_word_add(AT_GATE);
        t_word_wait(GATES + slot, 1);
        return 0;
    case 'x':
        exit(3);
    case 'f':
        return gpud_worker_fail(w, 17, "no such model");
    case '2':
        return n < 2 ? 18 : 0;
    default:
        return 0;
    }
}

static int process(gpud_task *t, void *state)
{
    (void)state;
    if (gpud_task_tag(t)) {
        (void)t_word_add(RUNNING);
        t_word_wait(TASK_GATE, 1);
    }
    return 0;
}

#define WAYS(bytes) .setup_data = (bytes), .setup_size = strlen(bytes)

/* Checks code and text of a call that is refused, or too early. */
static void answers(gpud_dispatcher *d, uint32_t slots, uint64_t wait, int code, const char *text)
{
    struct gpud_error e = GPUD_ERROR_INIT;

    T_EQ(gpud_dispatcher_ready(d, slots, wait, &e), code);
    T_EQ(e.code, code);
    if (strncmp(e.text, text, strlen(text)) != 0)
        T_FAIL("the text is \"%s\", wanted \"%s\"", e.text, text);
    T_EQ(gpud_dispatcher_ready(d, slots, wait, NULL), code);
}

/* Waits for all, or for so many, whoever is to drive; the others may still be in setup. */
T_CASE(waits)
{
    T_EACH_DRIVE (drive) {
        gpud_dispatcher *d;

        t_init(setup, process, NULL);
        t_word_set(GATES + 1, 0);
        d = T_CREATE(.devices = "cpu:4", .drive = drive, WAYS("pgpp"));
        T_OK(gpud_dispatcher_ready(d, 3, T_PATIENCE, NULL));
        T_EQ(t_stats(d).slots_ready, 3);
        T_OK(gpud_dispatcher_ready(d, 1, 0, NULL));
        T_CODE(gpud_dispatcher_ready(d, 4, 0, NULL), ETIMEOUT);
        t_word_set(GATES + 1, 1);
        T_OK(gpud_dispatcher_ready(d, 0, GPUD_NEVER, NULL));
        T_EQ(t_stats(d).slots_ready, 4);
        T_OK(gpud_dispatcher_ready(d, 0, 0, NULL));
        T_OK(gpud_dispatcher_ready(d, 4, 0, NULL));
        t_end(&d, NULL);
    }
}

/* With wait 0 it checks once; with DRIVE_CALLER such calls drive, too. */
T_CASE(checks_once)
{
    const uint64_t patience = t_now() + T_PATIENCE;
    gpud_dispatcher *d;

    d = T_BEGIN(setup, process, .devices = "cpu:1", .drive = GPUD_DRIVE_CALLER, WAYS("g"));
    while (t_word(AT_GATE) == 0 && t_now() < patience)
        T_CODE(gpud_dispatcher_ready(d, 0, 0, NULL), ETIMEOUT);
    t_word_set(GATES, 1);
    while (gpud_dispatcher_ready(d, 0, 0, NULL) == GPUD_ETIMEOUT)
        T_CMP(t_now(), <, patience);
    T_OK(gpud_dispatcher_ready(d, 0, 0, NULL));
    t_end(&d, NULL);
}

/* A worker is ready also while it runs a task. */
T_CASE(busy_is_ready)
{
    struct t_log log = { 0 };
    gpud_dispatcher *d;

    d = T_BEGIN(setup, process, .devices = "cpu:1");
    T_SUBMIT(d, .tag = 1);
    t_word_wait(RUNNING, 1);
    T_OK(gpud_dispatcher_ready(d, 1, 0, NULL));
    t_word_set(TASK_GATE, 1);
    t_collect(d, &log, 1);
    t_end(&d, &log);
}

/* ETIMEOUT: how many are ready, and what the first that is not waits for, and how long already. */
T_CASE(names_what_is_missing)
{
    static const char in_setup[] = "3 of 4 workers ready; slot 2: in setup for ";
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_dispatcher *d;
    uint64_t began, ms;
    char *end;

    t_init(setup, process, NULL);
    began = t_now();
    d = T_CREATE(.devices = "cpu:4", WAYS("ppgp"));
    T_OK(gpud_dispatcher_ready(d, 3, T_PATIENCE, NULL));
    t_word_wait(AT_GATE, 1);
    answers(d, 4, 0, GPUD_ETIMEOUT, in_setup);
    T_CODE(gpud_dispatcher_ready(d, 0, T_MS(60), &e), ETIMEOUT);
    T_EQ(strncmp(e.text, in_setup, sizeof in_setup - 1), 0);
    ms = (uint64_t)(strtod(e.text + sizeof in_setup - 1, &end) * 1000 + 0.5);
    T_TEXT(end, " s");
    T_CMP(ms, >=, 60);
    T_CMP(T_MS(ms), <=, t_now() - began + T_MS(1));
    T_TEXT(e.field, "");
    t_word_set(GATES + 2, 1);
    T_OK(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL));
    t_end(&d, NULL);
}

/* One in BACKOFF is waited for, and counts among all; the text has its last failure. */
T_CASE(backoff_is_waited_for)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_dispatcher *d;

    d = T_BEGIN(setup, process, .devices = "cpu:2", WAYS("2p"), .backoff = T_MS(10));
    T_OK(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL));
    T_EQ(t_stats(d).slots_ready, 2);
    T_EQ(t_stats(d).setup_failures, 2);
    t_destroy(&d, NULL);
    d = t_create(
        T_OPTIONS(.devices = "cpu:2", WAYS("xp"), .backoff = T_S(3000), .backoff_cap = T_S(3000)));
    T_OK(gpud_dispatcher_ready(d, 1, T_PATIENCE, NULL));
    t_wait_slot(d, 0, GPUD_SLOT_BACKOFF);
    answers(d, 0, T_MS(1), GPUD_ETIMEOUT,
            "1 of 2 workers ready; slot 0: setup exited with status 3; next start in 2");
    T_CODE(gpud_dispatcher_ready(d, 0, 0, &e), ETIMEOUT);
    T_CHECK(strstr(e.text, " s (backoff)"));
    t_destroy(&d, NULL);
    T_OK(gpud_fini());
}

/* FAILED does not count among all; where too few are left, ENOWORKER has the reason. */
T_CASE(failed_does_not_count)
{
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_create(
        T_OPTIONS(.devices = "cpu:2", WAYS("xp"), .backoff = T_MS(1), .failures_in_a_row = 2));
    T_OK(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL));
    T_EQ(t_slot(d, 0).state, GPUD_SLOT_FAILED);
    T_OK(gpud_dispatcher_ready(d, 1, 0, NULL));
    answers(d, 2, GPUD_NEVER, GPUD_ENOWORKER,
            "1 of 2 workers can become ready; slot 0: setup exited with status 3");
    t_destroy(&d, NULL);
    d = t_create(
        T_OPTIONS(.devices = "cpu:2", WAYS("ff"), .backoff = T_MS(1), .drive = GPUD_DRIVE_CALLER));
    T_CODE(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL), ENOWORKER); /* all that can: none */
    answers(d, 0, 0, GPUD_ENOWORKER, "0 of 2 workers can become ready; slot 0: no such model");
    answers(d, 1, 0, GPUD_ENOWORKER, "0 of 1 workers can become ready; slot 0: no such model");
    t_destroy(&d, NULL);
    T_OK(gpud_fini());
}

/* Nor does QUARANTINED. */
T_CASE(quarantined_does_not_count)
{
    gpud_dispatcher *d;

    t_init(setup, process, NULL);
    d = t_fakes(2, "when gone gpu 1 xid 79 lost", T_OPTIONS(.log_level = GPUD_LEVEL_ERROR));
    T_OK(gpud_dispatcher_ready(d, 2, T_PATIENCE, NULL));
    t_trigger("gone");
    t_wait_slot(d, 1, GPUD_SLOT_QUARANTINED);
    T_OK(gpud_dispatcher_ready(d, 0, 0, NULL));
    answers(d, 2, T_PATIENCE, GPUD_ENOWORKER,
            "1 of 2 workers can become ready; slot 1: fake:1 is LOST: ");
    t_end(&d, NULL);
}

/* ---- threads ---- */

struct waiter {
    gpud_dispatcher *d;
    pthread_t thread;
    uint32_t slots;
    int code;
};

static void *wait_until_ready(void *arg)
{
    struct waiter *w = arg;

    t_word_set(TID, (uint32_t)gettid());
    w->code = gpud_dispatcher_ready(w->d, w->slots, GPUD_NEVER, NULL);
    (void)t_word_add(GONE);
    return NULL;
}

/* A thread that waits, and sleeps by now. */
static void start(struct waiter *w, gpud_dispatcher *d, uint32_t slots)
{
    *w = (struct waiter){ .d = d, .slots = slots };
    t_word_set(TID, 0);
    t_thread(&w->thread, wait_until_ready, w);
    t_wait_until("the thread sleeps", t_thread_sleeps, &t_page->words[TID]);
}

static void ended(struct waiter *w, int code)
{
    t_join(w->thread);
    T_EQ(w->code, code);
}

static void *poll_until_closed(void *arg)
{
    struct gpud_event e[8];
    int n;

    do {
        e[0].struct_size = sizeof e[0];
        n = gpud_dispatcher_poll(arg, e, 8, GPUD_NEVER);
    } while (n > 0);
    T_EQ(n, GPUD_EEND);
    return NULL;
}

/* Several threads wait beside one that polls and drives: each is called when enough workers are
 * ready for it. */
T_CASE(beside_poll)
{
    T_EACH_DRIVE (drive) {
        struct waiter two, three, all;
        pthread_t poller;
        gpud_dispatcher *d;

        t_init(setup, process, NULL);
        for (unsigned word = 0; word <= GATES + 2; word++)
            t_word_set(word, 0);
        d = T_CREATE(.devices = "cpu:3", .drive = drive, WAYS("ggg"),
                     .log_level = GPUD_LEVEL_ERROR);
        t_thread(&poller, poll_until_closed, d);
        t_word_wait(AT_GATE, 3); /* with DRIVE_CALLER the poll drives, since nothing else does */
        start(&all, d, 0);
        start(&three, d, 3);
        start(&two, d, 2);
        t_word_set(GATES + 1, 1);
        T_OK(gpud_dispatcher_ready(d, 1, T_PATIENCE, NULL));
        T_EQ(t_word(GONE), 0);
        t_word_set(GATES + 2, 1);
        ended(&two, 0);
        T_EQ(t_word(GONE), 1);
        t_word_set(GATES, 1);
        ended(&three, 0);
        ended(&all, 0);
        T_OK(gpud_dispatcher_close(d, GPUD_FINISH_ALL, 0));
        t_join(poller);
        t_end(&d, NULL);
    }
}

/* Two threads and none that polls: one of them drives, and hands over when it leaves. */
T_CASE(driving_is_handed_over)
{
    struct waiter one, two;
    gpud_dispatcher *d;

    d = T_BEGIN(setup, process, .devices = "cpu:2", .drive = GPUD_DRIVE_CALLER, WAYS("gg"));
    start(&one, d, 1);
    start(&two, d, 2);
    t_word_wait(AT_GATE, 2);
    t_word_set(GATES + 1, 1);
    ended(&one, 0);
    t_word_set(GATES, 1);
    ended(&two, 0);
    t_end(&d, NULL);
}

/* A drained slot does not count, also for a thread that waits already; a returned one does again.
 */
T_CASE(drained_does_not_count)
{
    struct waiter all, both;
    gpud_dispatcher *d;

    d = T_BEGIN(setup, process, .devices = "cpu:2", WAYS("pg"), .log_level = GPUD_LEVEL_ERROR);
    start(&all, d, 0);
    start(&both, d, 2);
    t_word_wait(AT_GATE, 1);
    T_OK(gpud_dispatcher_ready(d, 1, T_PATIENCE, NULL));
    T_EQ(t_word(GONE), 0);
    T_OK(gpud_dispatcher_device_drain(d, "cpu:1"));
    ended(&all, 0);
    ended(&both, GPUD_ENOWORKER);
    answers(d, 2, GPUD_NEVER, GPUD_ENOWORKER,
            "1 of 2 workers can become ready; slot 1: its device is drained");
    T_OK(gpud_dispatcher_device_return(d, "cpu:1"));
    T_CODE(gpud_dispatcher_ready(d, 0, 0, NULL), ETIMEOUT);
    t_word_set(GATES + 1, 1);
    T_OK(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL));
    T_EQ(t_stats(d).slots_ready, 2);
    T_OK(gpud_dispatcher_device_drain(d, "cpu:0"));
    T_OK(gpud_dispatcher_device_drain(d, "cpu:1"));
    answers(d, 0, GPUD_NEVER, GPUD_ENOWORKER,
            "0 of 2 workers can become ready; slot 0: its device is drained");
    t_end(&d, NULL);
}

/* A worker on a drained device does not count while it ends its task: the thread that waits returns
 * at once. */
T_CASE(drained_while_busy)
{
    struct t_log log = { 0 };
    struct waiter all;
    gpud_dispatcher *d;

    d = T_BEGIN(setup, process, .devices = "cpu:2", WAYS("gp"), .log_level = GPUD_LEVEL_ERROR);
    T_SUBMIT(d, .tag = 1);
    t_word_wait(RUNNING, 1); /* in slot 1 */
    t_word_wait(AT_GATE, 1);
    start(&all, d, 2);
    T_OK(gpud_dispatcher_device_drain(d, "cpu:1"));
    ended(&all, GPUD_ENOWORKER);
    T_EQ(t_slot(d, 1).state, GPUD_SLOT_DRAINING);
    T_CODE(gpud_dispatcher_ready(d, 0, 0, NULL), ETIMEOUT); /* the one that can is in setup */
    t_word_set(GATES, 1);
    T_OK(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL));
    t_word_set(TASK_GATE, 1);
    t_collect(d, &log, 1);
    t_end(&d, &log);
}

/* Close and stop end the wait; so do both before it begins. */
T_CASE(closed)
{
    for (unsigned stops = 0; stops < 2; stops++)
        T_EACH_DRIVE (drive) {
            struct waiter first, second;
            gpud_dispatcher *d;

            t_init(setup, process, NULL);
            t_word_set(AT_GATE, 0);
            d = T_CREATE(.devices = "cpu:1", .drive = drive, WAYS("g"));
            start(&first, d, 0);
            start(&second, d, 1);
            t_word_wait(AT_GATE, 1);
            T_OK(stops ? gpud_dispatcher_stop(d, GPUD_FINISH_NOW)
                       : gpud_dispatcher_close(d, GPUD_FINISH_NOW, 0));
            T_CODE(gpud_dispatcher_ready(d, 1, GPUD_NEVER, NULL), ECLOSED);
            ended(&first, GPUD_ECLOSED);
            ended(&second, GPUD_ECLOSED);
            answers(d, 0, GPUD_NEVER, GPUD_ECLOSED, gpud_error_text(GPUD_ECLOSED));
            t_end(&d, NULL);
        }
}

/* destroy is refused while a thread is inside, and so the thread is served. */
T_CASE(destroy_while_inside)
{
    struct waiter all;
    gpud_dispatcher *d, *same;

    t_init(setup, process, NULL);
    d = same = T_CREATE(.devices = "cpu:1", .drive = GPUD_DRIVE_CALLER, WAYS("g"));
    start(&all, d, 0);
    t_word_wait(AT_GATE, 1); /* driven by that thread: it is inside */
    T_CODE(gpud_dispatcher_destroy(&d, NULL), EBUSY);
    T_CHECK(d == same);
    t_word_set(GATES, 1);
    ended(&all, 0);
    t_end(&d, NULL);
}

/* ---- refused ---- */

/* EINVAL names the argument and both numbers; a removed slot is none. */
T_CASE(more_than_there_are)
{
    struct gpud_error e = GPUD_ERROR_INIT;
    gpud_dispatcher *d;

    d = T_BEGIN(setup, process, .devices = "cpu:2");
    T_CODE(gpud_dispatcher_ready(NULL, 0, 0, &e), EINVAL);
    T_CODE(gpud_dispatcher_ready(d, 3, 0, &e), EINVAL);
    T_TEXT(e.field, "slots");
    T_TEXT(e.text, "slots is 3, the maximum is 2, the dispatcher's slots");
    T_CODE(gpud_dispatcher_ready(d, UINT32_MAX, GPUD_NEVER, NULL), EINVAL);
    T_OK(gpud_dispatcher_ready(d, 2, T_PATIENCE, NULL));
    T_OK(gpud_dispatcher_device_remove(d, "cpu:0"));
    t_wait_slot(d, 0, GPUD_SLOT_STOPPED);
    answers(d, 2, GPUD_NEVER, GPUD_EINVAL, "slots is 2, the maximum is 1, the dispatcher's slots");
    T_OK(gpud_dispatcher_ready(d, 0, 0, NULL));
    t_end(&d, NULL);
}

struct scene {
    gpud_dispatcher *d;
    unsigned pulled, told;
};

/* A source may wait. */
static int give(struct gpud_task_desc *tasks, size_t n, void *user)
{
    struct scene *s = user;

    (void)tasks, (void)n;
    T_OK(gpud_dispatcher_ready(s->d, 0, T_PATIENCE, NULL));
    return s->pulled++ < 3;
}

static int refused_inside(const struct gpud_event *event, void *user)
{
    struct scene *s = user;

    (void)event;
    answers(s->d, 0, 0, GPUD_EREENTER, gpud_error_text(GPUD_EREENTER));
    answers(s->d, 1, GPUD_NEVER, GPUD_EREENTER, "");
    s->told++;
    return 0;
}

T_CASE(in_callbacks)
{
    T_EACH_DRIVE (drive) {
        struct scene s = { .pulled = 0 };

        s.d = T_BEGIN(setup, process, .devices = "cpu:2", .drive = drive);
        T_OK(gpud_dispatcher_run(s.d, give, T_CALLBACKS(.on_success = refused_inside), &s, NULL));
        T_EQ(s.told, 3);
        T_OK(gpud_dispatcher_ready(s.d, 0, 0, NULL));
        t_end(&s.d, NULL);
    }
}

T_CASE(forked)
{
    gpud_dispatcher *d;
    int status;
    pid_t pid;

    d = T_BEGIN(setup, process, .devices = "cpu:1");
    T_OK(gpud_dispatcher_ready(d, 0, T_PATIENCE, NULL));
    pid = fork();
    if (pid == 0) {
        answers(d, 0, GPUD_NEVER, GPUD_EFORKED, gpud_error_text(GPUD_EFORKED));
        _exit(0);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(status, 0);
    t_end(&d, NULL);
}
