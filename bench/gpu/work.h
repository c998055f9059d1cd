/* SPDX-License-Identifier: MIT */
/* work.h - the worker of gpu-bench, and the steps its cells share. */
#ifndef BENCH_GPU_WORK_H
#define BENCH_GPU_WORK_H

#include <gpudispatch/gpudispatch.h>

/* What a task asks of the worker. */
enum g_op {
    G_NOTHING = 0,
    G_KERNEL = 1, /* one kernel of `ns`, waited for by CUDA */
    G_STREAM = 2, /* the same, waited for by gpud_cuda_stream_sync */
    G_COPY = 3,   /* the task's data to the GPU; answers GB/s, as it lies and from pinned memory */
    G_HANG = 4    /* a kernel without end, after a progress report */
};

/* A task's data begins with this. */
struct g_order {
    uint32_t op, count;
    uint64_t ns;
};

struct g_answer {
    double value[2];
};

/* Runs `count` kernels of `ns` in a loop, each waited for; the seconds it took.  Returns an error
 * of CUDA, 0 for none. */
int g_loop(const struct g_order *o, double *ret_seconds);

/* gpud_init.  0 or -1. */
int g_init(void);

/* A dispatcher with one ready worker.  0 or -1. */
int g_open(gpud_dispatcher **ret_d, const char *devices, uint32_t cuda, uint64_t payload_budget);

/* Submits an order.  0 or -1. */
int g_submit(gpud_dispatcher *d, const struct g_order *order, uint64_t *ret_id);

/* Waits for the next event of a kind (OUTCOME, PROGRESS); gives a copy without what it points to,
 * and its answer if there is one. 0, or -1 after telling. */
int g_next(gpud_dispatcher *d, uint32_t kind, struct gpud_event *ret_event,
           struct g_answer *ret_answer);

/* Submits and waits for SUCCESS.  0 or -1. */
int g_do(gpud_dispatcher *d, const struct g_order *order, struct g_answer *ret_answer);

#endif
