/* SPDX-License-Identifier: MIT */
/* cells.c - one function per figure, or per few that are measured together; raw and ours by turns.
 */
#include "cells.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../measure.h"
#include "kernels.h"
#include "work.h"

enum { ROUNDS = 5 };

#define MIB ((uint64_t)1 << 20)

/* A rehearsal shows that it runs, in a second or two. */
static size_t rounds(void)
{
    return gpu_built ? ROUNDS : 1;
}

static uint64_t round_ns(void)
{
    return gpu_built ? B_S / 2 : 20 * B_MS;
}

static size_t trips(void)
{
    return gpu_built ? 2000 : 50;
}

static const struct g_order nothing = { .op = G_NOTHING };

static void take(struct b_figure *figures, unsigned key, double ours, double raw)
{
    figures[key] = (struct b_figure){ .key = key, .value = ours / raw, .raw = raw, .ours = ours };
}

/* ---- plain processes ---- */

/* Runs `work` in a process of its own, with nothing of the library and CUDA's default flags; its
 * answer and when that came. NaN when it failed. */
static double in_plain_process(double (*work)(const struct g_order *), const struct g_order *o,
                               uint64_t *ret_at)
{
    double answer = NAN;
    int ends[2];
    pid_t pid;

    if (pipe(ends))
        return NAN;
    pid = fork();
    if (pid == 0) {
        answer = work(o);
        _exit(write(ends[1], &answer, sizeof(answer)) != (ssize_t)sizeof(answer));
    }
    (void)close(ends[1]);
    if (pid < 0 || read(ends[0], &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
        answer = NAN;
    *ret_at = b_now();
    (void)close(ends[0]);
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    return answer;
}

/* Context and one kernel. */
static double first_kernel(const struct g_order *unused)
{
    uint64_t sum;

    (void)unused;
    return gpu_context() || gpu_sum(10, &sum) ? NAN : 0;
}

/* The seconds that a bare loop takes, once the first kernel has run. */
static double bare_loop(const struct g_order *o)
{
    double seconds = 0;

    return isnan(first_kernel(o)) || g_loop(o, &seconds) ? NAN : seconds;
}

/* ---- busy ---- */

/* Runs `count` tasks of one kernel each; the seconds from first begin to last end.  0 or -1. */
static int run_tasks(gpud_dispatcher *d, uint32_t count, uint64_t ns, double *ret_seconds)
{
    const struct g_order order = { .op = G_KERNEL, .ns = ns };
    uint64_t first = UINT64_MAX, last = 0;

    for (uint32_t i = 0; i < count; i++)
        if (g_submit(d, &order, NULL))
            return -1;
    for (uint32_t i = 0; i < count; i++) {
        struct gpud_event e;

        if (g_next(d, GPUD_EVENT_OUTCOME, &e, NULL))
            return -1;
        first = e.started_at < first ? e.started_at : first;
        last = e.ended_at > last ? e.ended_at : last;
    }
    *ret_seconds = (double)(last - first) / 1e9;
    return 0;
}

static int measure_busy(struct b_figure *figures, unsigned key, const char *devices, uint32_t cuda,
                        uint64_t ns)
{
    const struct g_order loop = { .count = (uint32_t)(round_ns() / ns), .ns = ns };
    double raw[ROUNDS], ours[ROUNDS], kernels_s = (double)loop.count * (double)ns / 1e9;
    gpud_dispatcher *d = NULL;
    int rc = g_open(&d, devices, cuda, 0);

    for (size_t i = 0; i < rounds() && rc == 0; i++) {
        uint64_t at;
        double bare = in_plain_process(bare_loop, &loop, &at), seconds = 0;

        rc = isnan(bare) ? b_complain("a plain process cannot use the GPU")
                         : run_tasks(d, loop.count, ns, &seconds);
        raw[i] = kernels_s * 100 / bare;
        ours[i] = kernels_s * 100 / seconds;
    }
    (void)gpud_dispatcher_destroy(&d, NULL);
    if (rc == 0)
        take(figures, key, b_median(ours, rounds()), b_median(raw, rounds()));
    return rc;
}

int g_cell_busy(struct b_figure *figures, const char *devices)
{
    if (measure_busy(figures, B_KEY_busy_1ms_vs_bare, devices, 0, B_MS) ||
        measure_busy(figures, B_KEY_busy_1ms_spin_vs_bare, devices, GPUD_CUDA_SPIN, B_MS) ||
        measure_busy(figures, B_KEY_busy_1ms_no_check_vs_bare, devices, GPUD_CUDA_NO_CHECK, B_MS))
        return -1;
    return measure_busy(figures, B_KEY_busy_100us_vs_bare, devices, 0, B_MS / 10);
}

/* ---- trips ---- */

struct trip {
    gpud_dispatcher *d;
    const struct g_order *order;
};

static int one_trip(void *user)
{
    struct trip *t = user;

    return g_do(t->d, t->order, NULL);
}

/* The median microseconds of one kind of trip; NaN when it failed. */
static double trip_us(const char *devices, uint32_t cuda, const struct g_order *order, size_t n)
{
    struct trip t = { .order = order };
    double us;

    if (g_open(&t.d, devices, cuda, 0))
        return NAN;
    us = b_trips(one_trip, &t, n);
    (void)gpud_dispatcher_destroy(&t.d, NULL);
    return us < 0 ? NAN : us;
}

int g_cell_trip(struct b_figure *figures, const char *devices)
{
    double check[ROUNDS], none[ROUNDS], cpu[ROUNDS];

    for (size_t i = 0; i < rounds(); i++) {
        cpu[i] = trip_us("cpu:1", 0, &nothing, trips());
        none[i] = trip_us(devices, GPUD_CUDA_NO_CHECK, &nothing, trips());
        check[i] = trip_us(devices, 0, &nothing, trips());
        if (isnan(cpu[i]) || isnan(none[i]) || isnan(check[i]))
            return -1;
    }
    take(figures, B_KEY_trip_check_vs_none, b_median(check, rounds()), b_median(none, rounds()));
    take(figures, B_KEY_trip_gpu_vs_cpu, b_median(check, rounds()), b_median(cpu, rounds()));
    return 0;
}

int g_cell_stream(struct b_figure *figures, const char *devices)
{
    const struct g_order by_cuda = { .op = G_KERNEL, .ns = B_MS },
                         by_us = { .op = G_STREAM, .ns = B_MS };
    double raw[ROUNDS], ours[ROUNDS];

    for (size_t i = 0; i < rounds(); i++) {
        raw[i] = trip_us(devices, 0, &by_cuda, trips() / 10);
        ours[i] = trip_us(devices, 0, &by_us, trips() / 10);
        if (isnan(raw[i]) || isnan(ours[i]))
            return -1;
    }
    take(figures, B_KEY_stream_sync_vs_cuda, b_median(ours, rounds()), b_median(raw, rounds()));
    return 0;
}

/* ---- copies ---- */

/* Submits a buffer of `size` bytes that asks to be copied.  0 or -1. */
static int copy_buffer(gpud_dispatcher *d, uint64_t size, struct g_answer *ret_answer)
{
    const struct g_order order = { .op = G_COPY };
    struct gpud_task_desc task = GPUD_TASK_DESC_INIT;
    struct gpud_event e;
    void *data = NULL;

    if (gpud_dispatcher_buffer_alloc(d, size, &data))
        return b_complain("no buffer of %llu MiB", (unsigned long long)(size / MIB));
    memset(data, 1, size);
    memcpy(data, &order, sizeof(order));
    task.data = data;
    task.size = size;
    if (gpud_dispatcher_submit(d, &task, 0, NULL, NULL))
        return b_complain("the buffer cannot be submitted");
    return g_next(d, GPUD_EVENT_OUTCOME, &e, ret_answer);
}

static int measure_copies(struct b_figure *figures, unsigned key, const char *devices,
                          uint32_t cuda)
{
    const uint64_t size = gpu_built ? 256 * MIB : 8 * MIB;
    double raw[ROUNDS], ours[ROUNDS];
    gpud_dispatcher *d = NULL;
    int rc = g_open(&d, devices, cuda, 4 * size);

    for (size_t i = 0; i < rounds() && rc == 0; i++) {
        struct g_answer a = { { 0 } };

        rc = copy_buffer(d, size, &a);
        ours[i] = a.value[0];
        raw[i] = a.value[1];
    }
    (void)gpud_dispatcher_destroy(&d, NULL);
    if (rc == 0)
        take(figures, key, b_median(ours, rounds()), b_median(raw, rounds()));
    return rc;
}

int g_cell_copy(struct b_figure *figures, const char *devices)
{
    if (measure_copies(figures, B_KEY_copy_submit_vs_pinned, devices, 0))
        return -1;
    return measure_copies(figures, B_KEY_copy_submit_pin_vs_pinned, devices, GPUD_CUDA_PIN);
}

/* ---- restarts ---- */

/* Kills the worker under its endless kernel; the milliseconds until the next task has begun. NaN
 * when it failed. */
static double restart_ms(gpud_dispatcher *d)
{
    const struct g_order hang = { .op = G_HANG };
    struct gpud_slot_stats row = { .struct_size = sizeof(row) };
    struct gpud_event e;
    uint64_t killed_at, next = 0;

    if (g_submit(d, &hang, NULL) || g_submit(d, &nothing, &next) ||
        g_next(d, GPUD_EVENT_PROGRESS, &e, NULL))
        return NAN;
    if (gpud_dispatcher_slots(d, &row, 1) != 1 || row.pid <= 0)
        return NAN;
    killed_at = b_now();
    if (kill((pid_t)row.pid, SIGKILL))
        return NAN;
    do {
        if (g_next(d, GPUD_EVENT_OUTCOME, &e, NULL))
            return NAN;
    } while (e.task_id != next);
    return (double)(e.started_at - killed_at) / 1e6;
}

/* A bare fork that makes a context and runs a kernel, in milliseconds. */
static double fork_ms(void)
{
    uint64_t start = b_now(), at;

    return isnan(in_plain_process(first_kernel, NULL, &at)) ? NAN : (double)(at - start) / 1e6;
}

static int measure_restart(struct b_figure *figures, unsigned key, const char *devices,
                           uint32_t cuda)
{
    double raw[ROUNDS], ours[ROUNDS];
    gpud_dispatcher *d = NULL;
    int rc;

    for (size_t i = 0; i < rounds(); i++)
        if (isnan(raw[i] = fork_ms()))
            return b_complain("a forked process cannot use the GPU");
    rc = g_open(&d, devices, cuda, 0);
    for (size_t i = 0; i < rounds() && rc == 0; i++) {
        ours[i] = restart_ms(d);
        rc = isnan(ours[i]) ? b_complain("no restart was seen") : 0;
    }
    (void)gpud_dispatcher_destroy(&d, NULL);
    if (rc == 0)
        take(figures, key, b_median(ours, rounds()), b_median(raw, rounds()));
    return rc;
}

int g_cell_restart(struct b_figure *figures, const char *devices)
{
    if (measure_restart(figures, B_KEY_restart_vs_fork, devices, 0))
        return -1;
    return measure_restart(figures, B_KEY_restart_no_canary_vs_fork, devices, GPUD_CUDA_NO_CANARY);
}
