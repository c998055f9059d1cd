/* SPDX-License-Identifier: MIT */
/* cost.c - what a worker on a GPU costs: memory for its context, CPU time while it waits, time to
 * pin, copies. */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* The memory of all of `workers` contexts, each of which has run a kernel. */
static uint64_t memory_of(unsigned workers)
{
    struct t_log log = { 0 };
    uint64_t used;
    gpud_dispatcher *d = T_CREATE(.devices = gpu_devices(workers), .sent_ahead = 1);

    t_wait_ready(d, workers);
    for (uint64_t tag = 0; tag < workers; tag++) /* each idle worker gets one */
        gpu_submit(d, tag, GPU_ORDER(.op = GPU_OP_BUSY, .ns = T_MS(300)), 0);
    t_collect(d, &log, workers);
    used = gpu_memory_used();
    t_destroy(&d, &log);
    return used;
}

T_LONG_CASE(memory_of_a_context, 180)
{
    enum { MORE = 4 };
    uint64_t one, more;

    gpu_begin();
    one = memory_of(1);
    more = memory_of(MORE);
    if (!gpu_rehearsed()) {
        T_CMP(more, >, one);
        T_CMP((more - one) / (MORE - 1), <, 2 * GIB);
    }
    gpu_result("context_of_a_worker", (double)(more - one) / (double)MIB / (MORE - 1), "MiB");
    gpu_readings_end();
    T_OK(gpud_fini());
}

static struct gpu_answer wait_with(uint32_t cuda)
{
    struct t_log log = { 0 };
    struct gpu_answer a;
    gpud_dispatcher *d = T_CREATE(.devices = gpu_devices(1), .sent_ahead = 1, .cuda = cuda);

    gpu_submit(d, 0, GPU_ORDER(.op = GPU_OP_LONG, .ns = T_S(1)), 0);
    t_collect(d, &log, 1);
    a = gpu_answer_of(&log, 0);
    t_destroy(&d, &log);
    return a;
}

/* A worker that waits for its GPU sleeps, unless option cuda says that it may spin. */
T_LONG_CASE(waiting_for_a_kernel, 90)
{
    struct gpu_answer asleep, spinning;

    gpu_begin();
    asleep = wait_with(0);
    spinning = wait_with(GPUD_CUDA_SPIN);
    gpu_result("cpu_while_waiting", asleep.value[0], "%");
    gpu_result("cpu_while_spinning", spinning.value[0], "%");
    gpu_result("kernel_of_1000_ms_waited_for", asleep.value[1], "ms");
    gpu_result("kernel_of_1000_ms_spun_for", spinning.value[1], "ms");
    T_CMP(asleep.value[0], <, 20);
    gpu_readings_end();
    T_OK(gpud_fini());
}

/* ---- copies ---- */

static struct gpu_answer copy_with(uint32_t cuda, uint64_t size)
{
    struct t_log log = { 0 };
    struct gpu_answer a;
    void *data = NULL;
    struct gpu_order order = { .op = GPU_OP_COPY };
    gpud_dispatcher *d = T_CREATE(.devices = gpu_devices(1), .sent_ahead = 1,
                                  .payload_budget = 4 * size, .cuda = cuda);

    T_OK(gpud_dispatcher_buffer_alloc(d, size, &data));
    memset(data, 1, size);
    memcpy(data, &order, sizeof(order));
    T_SUBMIT(d, .data = data, .size = size);
    t_collect(d, &log, 1);
    a = gpu_answer_of(&log, 0);
    t_destroy(&d, &log);
    return a;
}

/* From a lent buffer of 256 MiB to the GPU: as it lies, with the arenas pinned, and from memory
 * that CUDA pinned. */
T_LONG_CASE(copies_from_a_submit_buffer, 180)
{
    uint64_t size = 256 * MIB;
    struct gpu_answer plain, pinned;

    gpu_begin();
    if (gpu_rehearsed())
        size = 16 * MIB;
    plain = copy_with(0, size);
    pinned = copy_with(GPUD_CUDA_PIN, size);
    gpu_result("copy_from_submit_buffer", plain.value[0], "GB/s");
    gpu_result("copy_from_submit_buffer_pinned", pinned.value[0], "GB/s");
    gpu_result("copy_from_cudaMallocHost", pinned.value[1], "GB/s");
    gpu_readings_end();
    T_OK(gpud_fini());
}

/* ---- pinning ---- */

static gpud_shared *make_shared(uint64_t size)
{
    struct gpud_error error = GPUD_ERROR_INIT;
    gpud_shared *s = NULL;
    int code = gpud_shared_create(size, &s, &error);

    if (code == GPUD_ENOMEM)
        t_skip("the machine has not %llu MiB left", (unsigned long long)(size / MIB));
    T_EQ(code, 0);
    return s;
}

struct pinned {
    double slowest, plain, pinned;
};

static void pin_results(unsigned workers, const struct pinned *p, uint64_t size)
{
    char name[64];

    gpu_result("pin_of_read_only_memory", p->slowest >= 0, "supported");
    if (p->slowest < 0)
        return;
    (void)snprintf(name, sizeof(name), "pin_by_%u", workers);
    gpu_result(name, p->slowest / ((double)size / (double)GIB), "s/GiB");
    (void)snprintf(name, sizeof(name), "copy_pageable_by_%u_each", workers);
    gpu_result(name, p->plain / workers, "GB/s");
    (void)snprintf(name, sizeof(name), "copy_pinned_by_%u_each", workers);
    gpu_result(name, p->pinned / workers, "GB/s");
}

/* All workers pin the same memory at the same time, in pieces. */
static void pin_by(unsigned workers, gpud_shared *shared, uint64_t size, uint64_t piece)
{
    struct t_log log = { 0 };
    struct pinned p = { .slowest = -1 };
    gpud_dispatcher *d = t_create(
        T_OPTIONS(.devices = gpu_devices(workers), .sent_ahead = 1, .setup_shared = shared));

    t_wait_ready(d, workers);
    for (uint64_t tag = 0; tag < workers; tag++)
        gpu_submit(d, tag, GPU_ORDER(.op = GPU_OP_PIN, .size = piece), 0);
    t_collect(d, &log, workers);
    for (uint64_t tag = 0; tag < workers; tag++) {
        struct gpu_answer a = gpu_answer_of(&log, tag);

        p.slowest = a.value[0] > p.slowest ? a.value[0] : p.slowest;
        p.plain += a.value[1];
        p.pinned += a.value[2];
    }
    pin_results(workers, &p, size);
    t_destroy(&d, &log);
}

T_LONG_CASE(memory_pinned_by_four_processes, 240)
{
    uint64_t size = 4 * GIB, piece = 256 * MIB;
    gpud_shared *shared;

    gpu_begin();
    if (gpu_rehearsed())
        size = 64 * MIB, piece = 16 * MIB;
    shared = make_shared(size);
    pin_by(1, shared, size, piece);
    pin_by(4, shared, size, piece);
    T_OK(gpud_shared_destroy(&shared));
    gpu_readings_end();
    T_OK(gpud_fini());
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Reads until an event is there (d) or `n` readings were made; median and longest. */
static void read_often(const char *what, unsigned n, gpud_dispatcher *d, struct t_log *log)
{
    enum { MOST = 4096 };
    static double taken[MOST];
    char name[64];
    unsigned count = 0;

    do
        taken[count++] = gpu_reading_ms();
    while (count < MOST &&
           (d ? t_poll(d, log, 0), t_log_count(log, GPUD_EVENT_OUTCOME) == 0 : count < n));
    qsort(taken, count, sizeof(*taken), by_size);
    (void)snprintf(name, sizeof(name), "reading_%s_median", what);
    gpu_result(name, taken[count / 2], "ms");
    (void)snprintf(name, sizeof(name), "reading_%s_longest", what);
    gpu_result(name, taken[count - 1], "ms");
}

/* Pinning takes locks of the driver: readings may be late meanwhile, and no more than that. */
T_LONG_CASE(readings_while_another_pins, 240)
{
    struct t_log log = { 0 };
    uint64_t size = 8 * GIB, piece = GIB;
    gpud_shared *shared;
    gpud_dispatcher *d;

    gpu_begin();
    if (gpu_rehearsed())
        size = 64 * MIB, piece = 16 * MIB;
    shared = make_shared(size);
    d = T_CREATE(.devices = gpu_devices(1), .sent_ahead = 1, .setup_shared = shared);
    t_wait_ready(d, 1);
    read_often("idle", 50, NULL, NULL);
    gpu_submit(d, 0, GPU_ORDER(.op = GPU_OP_PIN, .size = piece), 0);
    t_word_wait(1, 1);
    read_often("while_another_pins", 0, d, &log);
    t_collect(d, &log, 1);
    (void)gpu_answer_of(&log, 0);
    T_OK(gpud_shared_destroy(&shared));
    gpu_readings_end();
    t_end(&d, &log);
}
