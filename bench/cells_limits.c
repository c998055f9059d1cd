/* SPDX-License-Identifier: MIT */
/*
 * cells_limits.c - how late the host learns of a death and a hard limit strikes while all CPUs are
 * busy; how late a task hears of its limit.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "cells.h"
#include "machine.h"
#include "measure.h"
#include "ours.h"
#include "place.h"
#include "raw_fork.h"
#include "report.h"

#define DEATHS 220
#define QUICK_DEATHS 30
#define SPINS 40
#define QUICK_SPINS 5
#define LIMIT (50 * B_MS)
#define GRACE (50 * B_MS)

/* How long the n-th victim burns before it is killed: varied, to meet the scheduler at all its
 * ticks. */
static uint64_t burn_time(int n)
{
    return B_MS + (uint64_t)(n % 16) * 130 * 1000;
}

static int one_death(struct b_ours *ours, uint64_t burn, uint64_t *ret_took)
{
    struct gpud_event event;
    uint64_t id, start, started;
    int64_t pid;

    if (b_ours_start(ours, B_BURN, 0, &id) || b_ours_running(ours, id, &pid, &started))
        return -1;
    b_sleep(burn);
    start = b_now();
    if (kill((pid_t)pid, SIGKILL))
        return b_complain("the worker could not be killed");
    if (b_ours_outcome(ours, id, &event))
        return -1;
    *ret_took = b_now() - start;
    if (event.outcome != GPUD_OUTCOME_CRASHED)
        return b_complain("a killed task ended %s", gpud_outcome_name(event.outcome));
    return 0;
}

static int deaths(struct b_ours *ours)
{
    static double raw[DEATHS], own[DEATHS];
    int i, n = (int)b_effort(DEATHS, QUICK_DEATHS);
    uint64_t took, late;
    double p99;

    for (i = 0; i < n; i++) {
        if (b_raw_death(burn_time(i), &took, &late))
            return b_complain("a raw worker could not be killed");
        raw[i] = (double)took / 1e6;
        if (one_death(ours, burn_time(i), &took))
            return -1;
        own[i] = (double)took / 1e6;
    }
    p99 = b_percentile(own, (size_t)n, 0.99);
    b_report(B_KEY_death_to_outcome_ms_p99, p99, b_percentile(raw, (size_t)n, 0.99), p99);
    return 0;
}

static int hard_limits(struct b_ours *ours)
{
    static double raw[SPINS], own[SPINS];
    struct gpud_event event;
    size_t i, n = b_effort(SPINS, QUICK_SPINS);
    uint64_t id, took, late;
    double p99;

    for (i = 0; i < n; i++) {
        if (b_raw_death(LIMIT, &took, &late))
            return b_complain("a raw worker could not be killed");
        raw[i] = (double)late / 1e6;
        if (b_ours_start(ours, B_DEAF, LIMIT, &id) || b_ours_outcome(ours, id, &event))
            return -1;
        if (event.outcome != GPUD_OUTCOME_TIMEOUT || event.phase != GPUD_PHASE_HARD)
            return b_complain("a deaf task ended %s, phase %s", gpud_outcome_name(event.outcome),
                              gpud_phase_name(event.phase));
        own[i] = ((double)event.ended_at - (double)(event.started_at + LIMIT + GRACE)) / 1e6;
    }
    p99 = b_percentile(own, n, 0.99);
    b_report(B_KEY_hard_limit_late_ms_loaded, p99, b_percentile(raw, n, 0.99), p99);
    return 0;
}

static int measure_loaded(const struct b_ours_options *options, int (*measure)(struct b_ours *ours))
{
    struct b_burners burners;
    struct b_ours ours;
    int rc = -1;

    if (b_burners_start(&burners))
        return b_complain("no burner could be forked");
    if (b_ours_open(&ours, options) == 0) {
        rc = measure(&ours);
        b_ours_close(&ours);
    }
    b_burners_stop(&burners);
    return rc;
}

int b_cell_death(const struct b_cell *cell)
{
    struct b_ours_options options = {
        .workers = 1, .cpu = -1, .drive = GPUD_DRIVE_CALLER, .task_limit = 3600 * B_S
    };

    (void)cell;
    return measure_loaded(&options, deaths);
}

int b_cell_hard_limit(const struct b_cell *cell)
{
    struct b_ours_options options = {
        .workers = 1, .cpu = -1, .drive = GPUD_DRIVE_CALLER, .grace = GRACE
    };

    (void)cell;
    return measure_loaded(&options, hard_limits);
}

/* ---- the soft limit ---- */

#define SLEEPERS 500
#define QUICK_SLEEPERS 100
#define LOOK_EVERY 20
#define SHORT_LIMIT (2 * B_MS)

static volatile sig_atomic_t alarmed;

static void on_alarm(int number)
{
    (void)number;
    alarmed = 1;
}

/* A timer of our own, armed for the same time: how late pause returns. */
static int bare_alarm(timer_t timer, double *ret_late)
{
    struct itimerspec at = { .it_value = { 0, 0 } };
    uint64_t due = b_now() + SHORT_LIMIT;

    alarmed = 0;
    at.it_value.tv_sec = (time_t)(due / B_S);
    at.it_value.tv_nsec = (long)(due % B_S);
    if (timer_settime(timer, TIMER_ABSTIME, &at, NULL))
        return b_complain("the timer could not be armed");
    while (!alarmed)
        (void)pause();
    *ret_late = (double)(b_now() - due) / 1e3;
    return 0;
}

static int sleep_until_late(struct b_ours *ours, double *ret_late)
{
    struct gpud_event event;
    uint64_t id, late;

    if (b_ours_start(ours, B_LATE, SHORT_LIMIT, &id) || b_ours_outcome(ours, id, &event))
        return -1;
    if (event.outcome != GPUD_OUTCOME_TIMEOUT || event.result_size != sizeof(late))
        return b_complain("a late task ended %s", gpud_outcome_name(event.outcome));
    memcpy(&late, event.result, sizeof(late)); /* lent until the next poll */
    *ret_late = (double)late / 1e3;
    return 0;
}

static int soft_limits(struct b_ours *ours, timer_t timer)
{
    static double raw[SLEEPERS], own[SLEEPERS];
    size_t i, n = b_effort(SLEEPERS, QUICK_SLEEPERS);
    struct b_states states = { .n = 0 };

    for (i = 0; i < n; i++) {
        if (i % LOOK_EVERY == 0)
            b_machine_look(&states);
        if (bare_alarm(timer, &raw[i]) || sleep_until_late(ours, &own[i]))
            return -1;
    }
    b_report_seen(B_KEY_soft_limit_late_us_p99, b_percentile(own, n, 0.99),
                  b_percentile(raw, n, 0.99), &states);
    return 0;
}

int b_cell_soft_limit(const struct b_cell *cell)
{
    struct b_ours_options options = { .workers = 1,
                                      .cpu = b_cpu_number(cell->cpus - 1),
                                      .drive = GPUD_DRIVE_CALLER,
                                      .grace = 10 * B_S };
    struct sigaction action = { .sa_handler = on_alarm };
    struct sigevent how = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
    struct b_ours ours;
    timer_t timer;
    int rc;

    if (b_pin(0, b_cpu_number(0)))
        return b_complain("this process could not be pinned");
    if (sigaction(SIGALRM, &action, NULL) || timer_create(CLOCK_MONOTONIC, &how, &timer))
        return b_complain("no timer");
    rc = b_ours_open(&ours, &options) ? -1 : 0;
    if (rc == 0) {
        rc = soft_limits(&ours, timer);
        b_ours_close(&ours);
    }
    (void)timer_delete(timer);
    return rc;
}
