/* SPDX-License-Identifier: MIT */
/*
 * limit.c - the soft limit: the alarm comes, never early, never not at all, and comes again; time
 * in which the worker was stopped moves it.                                          [C6] [C7]
 *
 * The alarm takes over the process's signals for good, so each test runs in a child.  limit_steps.c
 * lets the alarm come at each instruction of gpi_limit_begin.
 */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "worker/limit.h"

static struct gpi_page page;
static struct gpi_limit l;

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* What the handler has said; gpi_limit_expired would look at the clock. */
static bool flag(void)
{
    return atomic_load_explicit(&l.expired, memory_order_relaxed) != 0;
}

static void in_a_child(void (*run)(void))
{
    pid_t pid = fork();
    int status;

    T_CHECK(pid >= 0);
    if (!pid) {
        T_EQ(gpi_limit_init(&l, &page), 0);
        run();
        (void)fflush(NULL);
        _exit(0);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        T_FAIL("the child ended with status %#x", status);
}

/* ---- the alarm comes ---- */

enum { TASKS = 20000 };

/* Ends a task early, so that its alarm is still armed and may come at any moment of the next. */
static void leave_early(uint64_t *seed, uint64_t started, uint64_t limit)
{
    uint64_t before = draw(seed) % (limit < T_US(4) ? limit : T_US(4));

    while (t_now() < started + limit - before && !flag())
        ;
}

static void many_tasks(void)
{
    uint64_t seed = 88172645463325252U, early = 0, watched = 0, worst = 0;

    for (uint64_t n = 1; n <= t_rounds(TASKS, 4000); n++) {
        uint64_t kind = draw(&seed) % 4, limit = T_US(2) + draw(&seed) % T_US(30),
                 started = t_now(), now;

        gpi_limit_begin(&l, n, started, kind == 0 ? GPI_NEVER : limit, draw(&seed) % 4 == 0);
        if (kind == 0) {
            while (t_now() < started + limit / 4)
                ;
            T_CHECK(!flag()); /* no alarm of another task is taken for this one's */
        } else if (kind == 1) {
            leave_early(&seed, started, limit);
        } else {
            while (!flag() && t_now() < started + T_PATIENCE)
                ;
            now = t_now();
            if (!flag())
                T_FAIL("task %llu with a limit of %llu ns never got its alarm",
                       (unsigned long long)n, (unsigned long long)limit);
            early += now < started + limit;
            watched++;
            worst = now - started - limit > worst ? now - started - limit : worst;
        }
        gpi_limit_end(&l);
    }
    T_EQ(early, 0);
    printf("%llu alarms, the latest %.3f ms after its limit\n", (unsigned long long)watched,
           (double)worst / 1e6);
}

/* A7: limits of 2 to 32 us among tasks without any, with the timer of one task often just firing
 * as the next begins: no alarm is missed, none comes early. */
T_LONG_CASE(no_alarm_is_missed, 60)
{
    in_a_child(many_tasks);
}

static void alarms_around_begin(void)
{
    uint64_t seed = 0x9e3779b97f4a7c15U, met = 0, n = 0, aim = T_US(2);

    for (unsigned round = 0; round < t_rounds(8000, 2000); round++) {
        uint64_t limit = T_US(25), before = aim - aim / 4 + draw(&seed) % (aim / 2),
                 started = t_now();
        bool in_time;

        gpi_limit_begin(&l, ++n, started, limit, false);
        while (t_now() < started + limit - before && !flag())
            ;
        in_time = !flag();
        gpi_limit_end(&l);
        /* Closer to the alarm, until half of them come too early. */
        aim += in_time ? (aim > T_US(1) / 4 ? -(uint64_t)10 : 0) : aim < limit / 2 ? 10 : 0;
        met += in_time;
        started = t_now();
        /* This one's deadline is later than the timer, which is about to fire or just has. */
        gpi_limit_begin(&l, ++n, started, T_US(30), false);
        while (!flag() && t_now() < started + T_PATIENCE / 4)
            ;
        if (!flag())
            T_FAIL("round %u: the alarm of the first task swallowed that of the second", round);
        T_CMP(t_now(), >=, started + T_US(30));
        gpi_limit_end(&l);
    }
    printf("%llu tasks began with the timer about to fire, %llu ns away in the end\n",
           (unsigned long long)met, (unsigned long long)aim);
}

/* The same, with the timer of the last task aimed at the moment the next begins. */
T_LONG_CASE(alarm_as_the_next_begins, 60)
{
    in_a_child(alarms_around_begin);
}

/* ---- what the alarm does ---- */

static void again(void)
{
    const struct timespec long_nap = { .tv_sec = 5 };
    uint64_t started = t_now(), at;

    gpi_limit_begin(&l, 1, started, T_MS(5), true);
    for (int i = 0; i < 5; i++) { /* a task that heeds none of them */
        T_EQ(nanosleep(&long_nap, NULL), -1);
        T_EQ(errno, EINTR);
        at = t_now() - started;
        T_CHECK(flag());
        T_CMP(at, >=, T_MS(5));
    }
    gpi_limit_end(&l);
    /* The next one has no limit: one late alarm may come, not one after the other. */
    gpi_limit_begin(&l, 2, t_now(), GPI_NEVER, true);
    T_CHECK(!flag());
    T_CHECK(!gpi_limit_expired(&l));
    T_EQ(nanosleep(&(struct timespec){ .tv_nsec = 150000000 }, NULL), 0);
    T_CHECK(!flag());
    gpi_limit_end(&l);
}

/* C6: one alarm may come just before a blocking call, so it comes again until the task has ended.
 */
T_CASE(comes_again)
{
    in_a_child(again);
}

static void blocked(void)
{
    sigset_t set;
    uint64_t started = t_now();

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGALRM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    gpi_limit_begin(&l, 1, started, T_MS(2), false);
    while (!gpi_limit_expired(&l))
        if (t_now() > started + T_PATIENCE)
            T_FAIL("never expired");
    T_CMP(t_now(), >=, started + T_MS(2));
    T_CHECK(flag());
    gpi_limit_end(&l);
    gpi_limit_begin(&l, 2, t_now(), T_S(100), false);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL); /* the alarm of the first comes now */
    T_CHECK(!gpi_limit_expired(&l));
    T_CHECK(!flag());
    gpi_limit_end(&l);
}

/* A task that has blocked the signal learns of its limit all the same, by asking. */
T_CASE(signal_blocked)
{
    in_a_child(blocked);
}

static void cancelled(void)
{
    const struct timespec long_nap = { .tv_sec = 20 };

    gpi_limit_begin(&l, 7, t_now(), GPI_NEVER, false);
    atomic_store(&page.cancel, 8); /* somebody else's */
    T_CHECK(!gpi_limit_cancelled(&l));
    atomic_store(&page.cancel, 7);
    T_CHECK(gpi_limit_cancelled(&l));
    T_EQ(raise(SIGALRM), 0); /* as the keeper sends it */
    for (int i = 0; i < 3; i++) {
        T_EQ(nanosleep(&long_nap, NULL), -1);
        T_EQ(errno, EINTR);
    }
    T_CHECK(!gpi_limit_expired(&l));
    gpi_limit_end(&l);
    T_CHECK(!gpi_limit_cancelled(&l));
    gpi_limit_begin(&l, 8, t_now(), GPI_NEVER, false);
    T_CHECK(!gpi_limit_cancelled(&l));
    gpi_limit_end(&l);
}

/* A cancelled task is interrupted again and again, its successor is not. */
T_CASE(cancel)
{
    in_a_child(cancelled);
}

/* ---- stops ---- */

static void spin_until(uint64_t time)
{
    while (t_now() < time)
        ;
}

/* The worker was stopped for `stopped` and goes on; the keeper has not said so yet. */
static void go_on(void)
{
    T_EQ(raise(SIGCONT), 0);
}

static void account(uint64_t stopped)
{
    atomic_fetch_add(&page.stopped_ns, stopped);
    atomic_fetch_add(&page.continues, 1);
}

/* 0 when this machine was too slow: the stop must come before the limit, its account within 100 ms.
 */
static int accounted_stop_at(uint64_t number)
{
    uint64_t started = t_now(), continued;
    bool early;

    atomic_store(&page.stopped_ns, 0);
    gpi_limit_begin(&l, number, started, T_MS(10), true);
    spin_until(started + T_MS(5));
    go_on();
    continued = t_now();
    spin_until(started + T_MS(15)); /* past the limit, but nobody knows how long it was stopped */
    early = flag() || gpi_limit_expired(&l);
    account(T_MS(20)); /* so the limit passes at 30 ms */
    if (continued >= started + T_MS(10) || t_now() >= continued + T_MS(90)) {
        gpi_limit_end(&l);
        return 0;
    }
    T_CHECK(!early);
    spin_until(started + T_MS(25));
    early = gpi_limit_expired(&l);
    T_CHECK(!early || t_now() >= started + T_MS(30));
    while (!flag())
        T_CMP(t_now(), <, started + T_PATIENCE);
    T_CMP(t_now(), >=, started + T_MS(30));
    T_EQ(gpi_limit_stopped(&l, t_now(), false), T_MS(20));
    gpi_limit_end(&l);
    return 1;
}

static void accounted_stop(void)
{
    uint64_t number = 1;

    while (!accounted_stop_at(number++))
        T_CMP(number, <, 100);
}

/* C7 A8: a stop that the keeper accounts for moves the deadline, for the flag and for the record.
 */
T_CASE(stop_moves_the_limit)
{
    in_a_child(accounted_stop);
}

/* 0 when this machine was too slow: the stop must come before the limit. */
static int unaccounted_stop_at(uint64_t number)
{
    uint64_t started = t_now(), continued;

    gpi_limit_begin(&l, number, started, T_MS(10), true);
    continued = t_now();
    go_on();
    if (t_now() >= started + T_MS(10)) {
        gpi_limit_end(&l);
        return 0;
    }
    while (!flag())
        T_CMP(t_now(), <, started + T_PATIENCE);
    T_CMP(t_now(), >=, continued + T_MS(100)); /* so long it waits for the account */
    T_EQ(gpi_limit_stopped(&l, t_now(), false), 0);
    gpi_limit_end(&l);
    return 1;
}

static void unaccounted_stop(void)
{
    uint64_t number = 1, started;

    while (!unaccounted_stop_at(number++))
        T_CMP(number, <, 100);
    /* One account that never came does not delay later tasks. */
    started = t_now();
    gpi_limit_begin(&l, number, started, T_MS(1), true);
    while (!flag())
        T_CMP(t_now(), <, started + T_PATIENCE);
    T_CMP(t_now(), >=, started + T_MS(1));
    gpi_limit_end(&l);
}

/* A stop that nobody accounts for counts in full, after a while. */
T_CASE(stop_without_account)
{
    in_a_child(unaccounted_stop);
}

static void late_account(void)
{
    unaccounted_stop();
    account(T_MS(3)); /* of the stop that was given up */
    accounted_stop();
}

/* An account that comes after all, too late, is not taken for that of the next stop. */
T_CASE(late_account)
{
    in_a_child(late_account);
}

static void *account_later(void *arg)
{
    const uint64_t *at = arg;

    spin_until(*at);
    account(T_MS(7));
    return NULL;
}

/* 0 when this machine was too slow. */
static int end_before_the_account(uint64_t number)
{
    uint64_t started = t_now(), continued, accounted = started + T_MS(20), stopped;
    sigset_t all, old;
    pthread_t thread;

    gpi_limit_begin(&l, number, started, T_MS(10), false);
    go_on();
    continued = t_now();
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    t_thread(&thread, account_later, &accounted);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    spin_until(started + T_MS(11));
    stopped = gpi_limit_stopped(&l, t_now(), false); /* past the limit: it matters, so it waits */
    t_join(thread);
    gpi_limit_end(&l);
    if (continued >= started + T_MS(10) || t_now() >= continued + T_MS(90))
        return 0;
    T_EQ(stopped, T_MS(7));
    return 1;
}

static void ended_before_the_account(void)
{
    uint64_t number = 1;

    while (!end_before_the_account(number++))
        T_CMP(number, <, 100);
}

/* A8: a task that ends just after a stop, past its limit: the record waits for the account. */
T_CASE(ended_before_the_account)
{
    in_a_child(ended_before_the_account);
}
