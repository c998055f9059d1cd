/* SPDX-License-Identifier: MIT */
/* interrupt.c - stop from signal handlers at any moment, and cancel at any moment. */
#include "verbs.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { INSIDE };
enum { SPIN = T_VERBS }; /* for some microseconds, by its number */

static int process(gpud_task *t, void *state)
{
    const uint64_t tag = gpud_task_tag(t);

    if (tag >> 32 == SPIN)
        for (uint64_t until = t_now() + T_US(tag % 64); t_now() < until;)
            ;
    return t_process(t, state);
}

/* ---- stop from a handler ---- */

static gpud_dispatcher *interrupted;
static _Atomic uint32_t handled;

static void on_interrupt(int number)
{
    (void)number;
    (void)gpud_dispatcher_stop(interrupted, GPUD_FINISH_NOW);
    atomic_fetch_add(&handled, 1);
}

static void take_interrupts(gpud_dispatcher *d, struct sigaction *old)
{
    struct sigaction action = { .sa_handler = on_interrupt };

    interrupted = d;
    atomic_store(&handled, 0);
    T_EQ(sigaction(SIGINT, &action, old), 0);
}

/* ThreadSanitizer may keep a signal back that comes just before its thread sleeps, until the thread
 * gets another one: then each second brings one. */
static void interrupt(pthread_t thread)
{
    do {
        const uint64_t until = t_now() + T_S(1);

        T_EQ(pthread_kill(thread, SIGINT), 0);
        while (T_THREAD_SANITIZED && !atomic_load(&handled) && t_now() < until)
            (void)sched_yield();
    } while (T_THREAD_SANITIZED && !atomic_load(&handled));
}

static void check_handled(void)
{
    if (T_THREAD_SANITIZED)
        T_CHECK(atomic_load(&handled) >= 1);
    else
        T_EQ(atomic_load(&handled), 1);
}

struct poller {
    gpud_dispatcher *d;
    struct t_log log;
    pthread_t thread;
    uint64_t id;
    int blocks; /* it takes no SIGINT */
    int code;
};

static void *poll_to_the_end(void *arg)
{
    struct poller *p = arg;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    if (p->blocks)
        T_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    (void)t_word_add(INSIDE);
    while ((p->code = t_poll(p->d, &p->log, GPUD_NEVER)) > 0)
        ;
    return NULL;
}

static void *wait_for_one(void *arg)
{
    struct poller *p = arg;
    struct gpud_event e = GPUD_EVENT_INIT;

    (void)t_word_add(INSIDE);
    p->code = gpud_dispatcher_wait(p->d, p->id, &e, GPUD_NEVER, NULL);
    T_EQ(e.outcome, GPUD_OUTCOME_CANCELLED);
    T_OK(gpud_event_release(&e));
    return NULL;
}

/* One running and some queued tasks; SIGINT goes to the thread that polls, or to this one. */
static void interrupt_poll(uint32_t drive, int other)
{
    struct sigaction old;
    struct poller p = { .blocks = other };

    t_word_set(T_STARTED, 0);
    t_word_set(INSIDE, 0);
    p.d = T_BEGIN(NULL, process, .devices = "cpu:1", .drive = drive);
    take_interrupts(p.d, &old);
    for (uint64_t n = 0; n < 5; n++)
        T_SUBMIT(p.d, .tag = T_TAG(T_UNTIL_CANCELLED, n));
    t_thread(&p.thread, poll_to_the_end, &p);
    t_word_wait(INSIDE, 1);
    t_word_wait(T_STARTED, 1);
    interrupt(other ? pthread_self() : p.thread);
    t_join(p.thread);
    check_handled();
    T_CODE(p.code, EEND);
    for (uint64_t n = 0; n < 5; n++)
        (void)T_OUTCOME(&p.log, T_TAG(T_UNTIL_CANCELLED, n), CANCELLED);
    T_EQ(sigaction(SIGINT, &old, NULL), 0);
    t_end(&p.d, &p.log);
}

T_CASE(in_the_thread_that_polls)
{
    interrupt_poll(GPUD_DRIVE_THREAD, 0);
    interrupt_poll(GPUD_DRIVE_CALLER, 0);
}

T_CASE(in_another_thread)
{
    interrupt_poll(GPUD_DRIVE_THREAD, 1);
    interrupt_poll(GPUD_DRIVE_CALLER, 1);
}

/* In threads inside wait, the one that drives and one that sleeps beside it. */
static void interrupt_wait(uint32_t drive, unsigned victim)
{
    struct sigaction old;
    struct poller p[2];
    gpud_dispatcher *d;

    t_word_set(T_STARTED, 0);
    t_word_set(INSIDE, 0);
    d = T_BEGIN(NULL, process, .devices = "cpu:1", .drive = drive);
    take_interrupts(d, &old);
    for (unsigned i = 0; i < 2; i++) {
        p[i] = (struct poller){
            .d = d, .id = t_submit(d, T_TASK(.tag = T_TAG(T_UNTIL_CANCELLED, i), .awaited = 1))
        };
        t_thread(&p[i].thread, wait_for_one, &p[i]);
    }
    t_word_wait(INSIDE, 2);
    t_word_wait(T_STARTED, 1);
    interrupt(p[victim].thread);
    for (unsigned i = 0; i < 2; i++) {
        t_join(p[i].thread);
        T_OK(p[i].code);
    }
    check_handled();
    T_EQ(sigaction(SIGINT, &old, NULL), 0);
    t_end(&d, NULL);
}

T_CASE(in_threads_that_wait)
{
    for (unsigned victim = 0; victim < 2; victim++) {
        interrupt_wait(GPUD_DRIVE_THREAD, victim);
        interrupt_wait(GPUD_DRIVE_CALLER, victim);
    }
}

struct striker {
    pthread_t thread, target;
    uint64_t after;
};

static void *strike(void *arg)
{
    const struct striker *s = arg;
    uint64_t until;

    t_word_wait(INSIDE, 1);
    until = t_now() + s->after;
    while (t_now() < until)
        ;
    T_EQ(pthread_kill(s->target, SIGINT), 0);
    return NULL;
}

/* At any moment of submit and poll, with the lock held or not: nothing hangs, nothing is lost. */
T_LONG_CASE(at_any_moment, 120)
{
    struct sigaction old;

    t_init(NULL, process, NULL);
    for (unsigned n = 0, rounds = (unsigned)t_rounds(60, 15), round; n < rounds; n++) {
        struct striker s = { .target = pthread_self(),
                             .after = T_US(37 * (round = n * 60 / rounds)) };
        struct t_log log = { 0 };
        gpud_dispatcher *d = T_CREATE(.devices = "cpu:2", .drive = round % 2);
        uint64_t given = 0;

        t_word_set(INSIDE, 0);
        take_interrupts(d, &old);
        t_thread(&s.thread, strike, &s);
        (void)t_word_add(INSIDE);
        while (t_poll(d, &log, given % 3 ? 0 : T_US(20)) != GPUD_EEND)
            while (given < 100000 &&
                   gpud_dispatcher_submit(d, T_TASK(.tag = given), 0, NULL, NULL) == 0)
                given++;
        t_join(s.thread);
        T_EQ(atomic_load(&handled), 1);
        t_check_exactly_once(&log, given);
        T_EQ(sigaction(SIGINT, &old, NULL), 0);
        t_destroy(&d, &log);
    }
    T_OK(gpud_fini());
}

/* ---- cancel against the end ---- */

enum { RACES = 10000 };

/* about when tasks end: moves to where half of the cancels come too late */
static _Atomic uint64_t aim = T_US(20);
static _Atomic int over;

static void *cancel_each(void *arg)
{
    uint64_t id;

    for (uint64_t n = 0; n < t_rounds(RACES, 2000); n++) {
        while ((id = atomic_load(&t_page->numbers[n % T_NUMBERS])) == 0) {
            if (atomic_load(&over))
                return NULL;
            (void)sched_yield();
        }
        atomic_store(&t_page->numbers[n % T_NUMBERS], 0);
        for (uint64_t until = t_now() + atomic_load(&aim) * (n % 41) / 20; t_now() < until;)
            ;
        T_CHECK(gpud_dispatcher_cancel(arg, id, GPUD_CANCEL_HARD) <= 0);
    }
    return NULL;
}

static void take_aim(int too_late)
{
    uint64_t at = atomic_load(&aim), step = at / 16 + 50;

    if (!too_late)
        atomic_store(&aim, at < T_MS(50) ? at + step : at);
    else
        atomic_store(&aim, at > 2 * step ? at - step : at);
}

/* C1: each of up to 10,000 tasks (of fewer, where they wait for a CPU) is cancelled about when it
 * ends: one outcome each, SUCCESS or CANCELLED, by poll or, every fourth, by wait. */
T_LONG_CASE(cancel_against_the_end, 120)
{
    gpud_dispatcher *d = T_BEGIN(NULL, process, .devices = "cpu:1", .queue_size = 64);
    pthread_t thread;
    uint64_t success = 0, cancelled = 0, n, enough;

    t_thread(&thread, cancel_each, d);
    enough = t_now() + T_S(40);
    for (n = 0; n < t_rounds(RACES, 2000) && (t_now() < enough || !success || !cancelled); n++) {
        struct gpud_event e = GPUD_EVENT_INIT;
        uint32_t awaited = n % 4 == 0;
        uint64_t id = t_submit(d, T_TASK(.tag = T_TAG(SPIN, n), .awaited = awaited));

        while (atomic_load(&t_page->numbers[n % T_NUMBERS])) /* not picked up since its last use */
            (void)sched_yield();
        atomic_store(&t_page->numbers[n % T_NUMBERS], id);
        if (awaited)
            T_OK(gpud_dispatcher_wait(d, id, &e, T_PATIENCE, NULL));
        else
            do
                T_EQ(gpud_dispatcher_poll(d, &e, 1, T_PATIENCE), 1);
            while (e.kind != GPUD_EVENT_OUTCOME);
        T_EQ(e.task_id, id);
        T_EQ(e.tag, T_TAG(SPIN, n));
        T_CHECK(e.outcome == GPUD_OUTCOME_SUCCESS || e.outcome == GPUD_OUTCOME_CANCELLED);
        success += e.outcome == GPUD_OUTCOME_SUCCESS;
        cancelled += e.outcome == GPUD_OUTCOME_CANCELLED;
        take_aim(e.outcome == GPUD_OUTCOME_SUCCESS);
        if (awaited) {
            T_OK(gpud_event_release(&e));
            T_CODE(gpud_dispatcher_wait(d, id, &e, 0, NULL), ENOTFOUND);
        }
    }
    atomic_store(&over, 1);
    t_join(thread);
    printf("%u of %u were cancelled; aimed at %.3f ms in the end\n", (unsigned)cancelled,
           (unsigned)n, (double)atomic_load(&aim) / 1e6);
    T_EQ(success + cancelled, n);
    T_CMP(success, >, 0);
    T_CMP(cancelled, >, 0);
    T_EQ(t_stats(d).delivered, n);
    T_EQ(t_stats(d).deaths, 0);
    t_end(&d, NULL);
}
