/* SPDX-License-Identifier: MIT */
/*
 * cells_pipelined.c - many small tasks over 8 workers, and over 1 to 64: how many a second, what each costs the host.
 * Ours has a time limit per task, a handler called for each event and a stats snapshot every 100 ms.
 */
#include "cells.h"
#include "measure.h"
#include "ours.h"
#include "place.h"
#include "raw_pipe.h"
#include "report.h"

#define ROUNDS 5
#define DURATION (120 * B_MS)
#define STATS_EVERY (100 * B_MS)
#define QUEUE_SIZE 4096
#define LOOK_EVERY 64 /* the source looks at the clock once in so many tasks */

/* One column of one round. */
struct flow {
    double rate[ROUNDS], cpu[ROUNDS];
};

/* What goes on while tasks flow through one dispatcher. */
struct stream {
    struct b_ours *ours;
    struct gpud_task_desc task;
    struct b_order order;
    uint64_t start, cpu, pulled, next_stats;
    int over;
};

static void begin(struct stream *s, struct b_ours *ours)
{
    s->ours = ours;
    b_ours_task(&s->task, &s->order, B_NOTHING);
    s->pulled = 0;
    s->over = 0;
    ours->ended = ours->failed = 0;
    s->start = b_now();
    s->cpu = b_cpu();
    s->next_stats = s->start + STATS_EVERY;
}

/* Looks at the clock: takes a snapshot when one is due, ends the flow when its time is over. */
static void look(struct stream *s)
{
    struct gpud_stats stats = GPUD_STATS_INIT;
    uint64_t now = b_now();

    if (now >= s->next_stats) {
        (void)gpud_dispatcher_stats(s->ours->d, &stats);
        s->next_stats = now + STATS_EVERY;
    }
    if (now - s->start >= DURATION)
        s->over = 1;
}

static int end(struct stream *s, struct flow *flow, int round)
{
    uint64_t took = b_now() - s->start, cpu = b_cpu() - s->cpu;

    if (s->ours->failed > 0 || s->ours->ended != s->pulled)
        return b_complain("of %llu tasks %llu ended, %llu of them badly", (unsigned long long)s->pulled,
                          (unsigned long long)s->ours->ended, (unsigned long long)s->ours->failed);
    flow->rate[round] = (double)s->pulled * 1e9 / (double)took;
    flow->cpu[round] = (double)cpu / (double)s->pulled;
    return 0;
}

/* submit until the queue is full, then poll. */
static int stream_by_submit(struct b_ours *ours, struct flow *flow, int round)
{
    struct stream s;
    int rc;

    begin(&s, ours);
    while (!s.over || ours->ended < s.pulled) {
        while (!s.over) {
            rc = gpud_dispatcher_submit(ours->d, &s.task, 0, NULL, NULL);
            if (rc == GPUD_EFULL)
                break;
            if (rc)
                return b_complain("submit: %s", gpud_error_name(rc));
            s.pulled++;
        }
        rc = b_ours_receive(ours, GPUD_NEVER);
        if (rc < 0)
            return b_complain("poll: %s", gpud_error_name(rc));
        look(&s);
    }
    return end(&s, flow, round);
}

static int give_tasks(struct gpud_task_desc *tasks, size_t n, void *user)
{
    struct stream *s = user;
    size_t i;

    for (i = 0; i < n; i++) {
        if (s->pulled % LOOK_EVERY == 0)
            look(s);
        if (s->over)
            break;
        tasks[i].data = &s->order;
        tasks[i].size = sizeof(s->order);
        s->pulled++;
    }
    return (int)i;
}

static int take_event(const struct gpud_event *event, void *user)
{
    struct stream *s = user;

    return s->ours->handler(event, s->ours);
}

/* run with a source and callbacks. */
static int stream_by_run(struct b_ours *ours, struct flow *flow, int round)
{
    struct gpud_callbacks callbacks = GPUD_CALLBACKS_INIT;
    struct stream s;
    int rc;

    callbacks.on_success = take_event;
    callbacks.on_error = take_event;
    begin(&s, ours);
    rc = gpud_dispatcher_run(ours->d, give_tasks, &callbacks, &s, NULL);
    if (rc)
        return b_complain("run: %s", gpud_error_name(rc));
    return end(&s, flow, round);
}

static int stream_raw(struct b_raw_pool *pool, unsigned window, enum b_raw_look how, struct flow *flow, int round)
{
    if (b_raw_stream(pool, window, how, DURATION, &flow->rate[round], &flow->cpu[round]))
        return b_complain("a raw pipe failed");
    return 0;
}

/* Which of poll and epoll gives the raw loop more. */
static enum b_raw_look faster_look(struct b_raw_pool *pool, unsigned window)
{
    struct flow f;

    if (stream_raw(pool, window, B_LOOK_POLL, &f, 0) || stream_raw(pool, window, B_LOOK_EPOLL, &f, 1))
        return B_LOOK_POLL;
    return f.rate[1] > f.rate[0] ? B_LOOK_EPOLL : B_LOOK_POLL;
}

static void report_rate(unsigned key, struct flow *ours, struct flow *raw)
{
    double mine = b_median(ours->rate, ROUNDS) / 1e6, theirs = b_median(raw->rate, ROUNDS) / 1e6;

    b_report(key, mine / theirs, theirs, mine);
}

static void report_cpu(unsigned key, struct flow *ours, struct flow *raw)
{
    double mine = b_median(ours->cpu, ROUNDS), theirs = b_median(raw->cpu, ROUNDS);

    b_report(key, mine / theirs, theirs, mine);
}

/* The keys of a window. */
static const struct {
    unsigned window;
    unsigned rate_1cpu, cpu_1cpu;    /* all on one CPU */
    unsigned rate, cpu, run, thread; /* on two */
} rows[] = {
    { 1, B_KEY_pipelined_vs_raw_w1_1cpu, B_KEY_host_ns_vs_raw_w1_1cpu, B_KEY_pipelined_vs_raw_w1,
      B_KEY_host_ns_vs_raw_w1, B_KEY_pipelined_run_vs_raw_w1, B_KEY_pipelined_thread_vs_raw_w1 },
    { 8, B_KEY_pipelined_vs_raw_w8_1cpu, B_KEY_host_ns_vs_raw_w8_1cpu, B_KEY_pipelined_vs_raw_w8,
      B_KEY_host_ns_vs_raw_w8, B_KEY_pipelined_run_vs_raw_w8, B_KEY_pipelined_thread_vs_raw_w8 },
    { 64, B_KEY_pipelined_vs_raw_w64_1cpu, B_KEY_host_ns_vs_raw_w64_1cpu, B_KEY_pipelined_vs_raw_w64,
      B_KEY_host_ns_vs_raw_w64, B_KEY_pipelined_run_vs_raw_w64, B_KEY_pipelined_thread_vs_raw_w64 },
};

static int measure(struct b_raw_pool *pool, struct b_ours *caller, struct b_ours *thread, const struct b_cell *cell)
{
    enum b_raw_look how = faster_look(pool, cell->window);
    struct flow raw, own, by_run, by_thread;
    unsigned row = 0;
    int i;

    while (rows[row].window != cell->window)
        row++;
    if (stream_by_submit(caller, &own, 0)) /* warm */
        return -1;
    for (i = 0; i < ROUNDS; i++) {
        if (stream_raw(pool, cell->window, how, &raw, i) || stream_by_submit(caller, &own, i))
            return -1;
        if (cell->cpus == 2 && (stream_by_run(caller, &by_run, i) || stream_by_submit(thread, &by_thread, i)))
            return -1;
    }
    if (cell->cpus == 1) {
        report_rate(rows[row].rate_1cpu, &own, &raw);
        report_cpu(rows[row].cpu_1cpu, &own, &raw);
        return 0;
    }
    report_rate(rows[row].rate, &own, &raw);
    report_cpu(rows[row].cpu, &own, &raw);
    report_rate(rows[row].run, &by_run, &raw);
    report_rate(rows[row].thread, &by_thread, &raw);
    return 0;
}

int b_cell_pipelined(const struct b_cell *cell)
{
    struct b_ours_options options = { .workers = B_WORKERS,
                                      .cpu = b_cpu_number(cell->cpus - 1),
                                      .drive = GPUD_DRIVE_CALLER,
                                      .queue_size = QUEUE_SIZE,
                                      .sent_ahead = cell->window,
                                      .task_limit = 10 * B_S };
    struct b_ours caller, thread;
    struct b_raw_pool pool;
    int rc = -1;

    if (b_pin(0, b_cpu_number(0)))
        return b_complain("this process could not be pinned");
    if (b_raw_pool_open(&pool, B_WORKERS, options.cpu))
        return b_complain("the raw workers could not be forked");
    if (b_ours_open(&caller, &options))
        goto close_pool;
    options.drive = GPUD_DRIVE_THREAD;
    if (cell->cpus == 1) {
        rc = measure(&pool, &caller, NULL, cell);
    } else if (b_ours_open(&thread, &options) == 0) {
        rc = measure(&pool, &caller, &thread, cell);
        b_ours_close(&thread);
    }
    b_ours_close(&caller);
close_pool:
    b_raw_pool_close(&pool);
    return rc;
}

/* ---- 1 to 64 workers ---- */

#define MORE_QUEUE 16384 /* 64 workers with 64 tasks each, and as many again */

static const struct {
    unsigned workers, rate, cpu;
} scale[] = {
    { 1, B_KEY_workers1_vs_raw_w64, B_KEY_host_ns_workers1_vs_raw },
    { 2, B_KEY_workers2_vs_raw_w64, B_KEY_host_ns_workers2_vs_raw },
    { 4, B_KEY_workers4_vs_raw_w64, B_KEY_host_ns_workers4_vs_raw },
    { 8, B_KEY_workers8_vs_raw_w64, B_KEY_host_ns_workers8_vs_raw },
    { 16, B_KEY_workers16_vs_raw_w64, B_KEY_host_ns_workers16_vs_raw },
    { 32, B_KEY_workers32_vs_raw_w64, B_KEY_host_ns_workers32_vs_raw },
    { 64, B_KEY_workers64_vs_raw_w64, B_KEY_host_ns_workers64_vs_raw },
};

/* Raw and ours by turns, ours by submit.  0 or -1. */
static int by_turns(struct b_raw_pool *pool, struct b_ours *ours, unsigned window, struct flow *raw, struct flow *own)
{
    enum b_raw_look how = faster_look(pool, window);
    int i;

    if (stream_by_submit(ours, own, 0)) /* warm */
        return -1;
    for (i = 0; i < ROUNDS; i++)
        if (stream_raw(pool, window, how, raw, i) || stream_by_submit(ours, own, i))
            return -1;
    return 0;
}

/* 0, -1, or B_NOT_BUILT. */
static int compare(unsigned workers, const struct b_ours_options *options, struct flow *raw, struct flow *own)
{
    struct b_raw_pool pool;
    struct b_ours ours;
    int rc;

    if (b_raw_pool_open(&pool, workers, options->cpu))
        return b_complain("the raw workers could not be forked");
    rc = b_ours_open(&ours, options);
    if (rc == 0) {
        rc = by_turns(&pool, &ours, options->sent_ahead, raw, own);
        b_ours_close(&ours);
    }
    b_raw_pool_close(&pool);
    return rc;
}

int b_cell_scale(const struct b_cell *cell)
{
    struct b_ours_options options = { .cpu = b_cpu_number(cell->cpus - 1),
                                      .drive = GPUD_DRIVE_CALLER,
                                      .queue_size = MORE_QUEUE,
                                      .sent_ahead = cell->window,
                                      .task_limit = 10 * B_S };
    struct flow raw, own;
    size_t i;

    if (b_pin(0, b_cpu_number(0)))
        return b_complain("this process could not be pinned");
    for (i = 0; i < sizeof(scale) / sizeof(scale[0]); i++) {
        options.workers = scale[i].workers;
        if (compare(scale[i].workers, &options, &raw, &own))
            return -1;
        report_rate(scale[i].rate, &own, &raw);
        report_cpu(scale[i].cpu, &own, &raw);
    }
    return 0;
}

int b_cell_batch(const struct b_cell *cell)
{
    unsigned key = cell->window == 8 ? B_KEY_pipelined_batch_vs_raw_w8 : B_KEY_pipelined_batch_vs_raw_w64;
    struct b_ours_options options = { .workers = B_WORKERS,
                                      .cpu = b_cpu_number(cell->cpus - 1),
                                      .drive = GPUD_DRIVE_CALLER,
                                      .queue_size = QUEUE_SIZE,
                                      .sent_ahead = cell->window,
                                      .max_batch = cell->window,
                                      .task_limit = 10 * B_S };
    struct flow raw, own;
    int rc;

    if (b_pin(0, b_cpu_number(0)))
        return b_complain("this process could not be pinned");
    rc = compare(B_WORKERS, &options, &raw, &own);
    if (rc == B_NOT_BUILT) {
        b_report_skipped(key, "this build has no process_batch");
        return 0;
    }
    if (rc == 0)
        report_rate(key, &own, &raw);
    return rc;
}
