/* SPDX-License-Identifier: MIT */
/* metrics.c - the present moment for Prometheus: once, or as a file that is written again. */
#include "metrics.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "given.h"
#include "job_map.h"
#include "night.h"
#include "output.h"
#include "source.h"
#include "tools/cli/out.h"
#include "view/metrics/metrics.h"

#define NS_PER_S UINT64_C(1000000000)

struct metrics {
    const struct call *call;
    struct source source;
    struct gpv_snapshot newest;
    struct job_map map;
    uint64_t every; /* ns */
    int signals;    /* readable: one has ended the verb */
};

/* With --file or --job-map the verb goes on. */
static bool goes_on(const struct call *call)
{
    return (call->given[OPTION_FILE] || call->given[OPTION_JOB_MAP]) && !call->given[OPTION_FROM];
}

static int write_it(struct metrics *m)
{
    const char *name = m->call->value[OPTION_FILE];
    struct output out;
    int status = job_map_write(&m->map, &m->newest);

    if (status || (!name && m->call->given[OPTION_JOB_MAP]))
        return status;
    status = output_open(&out, name);
    if (status)
        return status;
    gpv_metrics_write(&m->newest, out.f);
    return output_close(&out, EXIT_OK);
}

static int end_of(const struct metrics *m)
{
    fprintf(stderr, "gpudispatch: metrics: %s\n", m->source.end);
    return EXIT_NONE;
}

/* Takes the newest snapshot.  1, 0: there is no later one; -1: there will be none. */
static int take(struct metrics *m, bool wait)
{
    struct gpv_snapshot next;
    int got, any = 0;

    while ((got = m->source.next(&m->source, wait && !any, &next)) > 0) {
        gpv_snapshot_free(&m->newest);
        m->newest = next;
        any = 1;
        if (m->source.still)
            break;
    }
    return got < 0 ? -1 : any;
}

/* ---- Again and again ---- */

static uint64_t clock_now(void)
{
    struct timespec t = { 0 };
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Until the time, or a signal: true. */
static bool is_ended(const struct metrics *m, uint64_t until)
{
    struct pollfd p = { .fd = m->signals, .events = POLLIN };
    for (;;) {
        uint64_t now = clock_now(), left = until > now ? until - now : 0;
        struct timespec t = { (time_t)(left / NS_PER_S), (long)(left % NS_PER_S) };
        int n = ppoll(&p, 1, &t, NULL);
        if (n >= 0)
            return n > 0;
        if (errno != EINTR)
            return true;
    }
}

static int write_again(struct metrics *m)
{
    uint64_t next = clock_now();
    int status = EXIT_OK;

    do {
        if (take(m, m->newest.time == 0) < 0)
            return end_of(m);
        status = write_it(m);
        next += m->every;
    } while (status == EXIT_OK && !is_ended(m, next));
    return status;
}

static int go_on(struct metrics *m)
{
    sigset_t ending;
    int status;

    sigemptyset(&ending);
    sigaddset(&ending, SIGHUP);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigprocmask(SIG_BLOCK, &ending, NULL);
    m->signals = signalfd(-1, &ending, SFD_CLOEXEC);
    if (m->signals < 0)
        return night_no_memory(m->call);
    status = write_again(m);
    (void)close(m->signals);
    return status;
}

/* ---- The verb ---- */

static int once(struct metrics *m)
{
    return take(m, true) < 0 && m->newest.time == 0 ? end_of(m) : write_it(m);
}

static int read_every(const struct call *call, uint64_t *ret)
{
    int status = gpq_option_duration(call, OPTION_EVERY, ret);
    if (status || !call->given[OPTION_EVERY])
        return status;
    if (!goes_on(call))
        return usage(call->verb, "metrics: --every needs --file or --job-map, without --from");
    if (*ret < NS_PER_S)
        return usage(call->verb, "metrics: --every is '%s', expected 1s or more",
                     call->value[OPTION_EVERY]);
    return EXIT_OK;
}

int metrics_run(const struct call *call)
{
    static const char *const parts[] = { "gpus", "classes", "metrics", NULL };
    struct metrics m = { .call = call, .every = 15 * NS_PER_S };
    int status = read_every(call, &m.every);

    if (status)
        return status;
    status = job_map_open(&m.map, call);
    if (status)
        return status;
    status = source_open(&m.source, call, parts, goes_on(call) ? m.every : 0);
    if (status == EXIT_OK)
        status = goes_on(call) ? go_on(&m) : once(&m);
    m.source.close(&m.source);
    gpv_snapshot_free(&m.newest);
    job_map_close(&m.map, !goes_on(call));
    return status;
}
