/* SPDX-License-Identifier: MIT */
/*
 * gpu.h - the steps that the tests on a GPU share: whether there is one, a worker that obeys
 * orders, readings, results.
 *
 * Without a usable GPU every case skips and says why. T_GPU_REQUIRED=1 makes that a failure: for
 * machines that have one. T_GPU_REHEARSE=cpu, in a build without the CUDA toolkit, runs the cases'
 * own logic on processors, and T_GPU_REHEARSE=fake on GPU 0 as fakes of NVML and libcuda show it
 * (FAKE_SCRIPT is a name in the case's own folder); what only a GPU can show is left out then
 * (gpu_rehearsed).
 *
 * What is measured is printed as `gpu-result NAME VALUE UNIT`, remarks on it as `gpu-note`.
 */
#ifndef T_GPU_H
#define T_GPU_H

#include "fixture.h"
#include "kernels.h"

/* What a task asks of the worker. */
enum gpu_op {
    GPU_OP_SUM = 0,      /* the sum of 1..1000 by a kernel: does the GPU work? */
    GPU_OP_PROVOKE = 1,  /* an error, and no wait for it */
    GPU_OP_REPORT = 2,   /* the same, waited for and returned */
    GPU_OP_HOARD = 3,    /* an allocation that cannot succeed; the error is drained */
    GPU_OP_LEAVE = 4,    /* the same; the error is left where it is */
    /* `size` bytes of memory, then a kernel without end; word 0 is set when it runs */
    GPU_OP_ENDLESS = 5,
    /* gpud_cuda_stream_sync on a kernel that ends when it is told to, past the limit */
    GPU_OP_STOPPABLE = 6,
    /* kernels of 1 ms for `ns`; answers the longest and the mean time of one */
    GPU_OP_BUSY = 7,
    GPU_OP_LONG = 8,     /* one kernel of `ns`; answers the CPU time that waiting took */
    /* a context and many allocations under SIGALRM; answers how many signals came */
    GPU_OP_STORM = 9,
    /* the task's data to the device; answers GB/s: as it lies, and from plain pinned memory */
    GPU_OP_COPY = 10,
    /* the setup bytes pinned in pieces of `size`; answers s and GB/s before and after */
    GPU_OP_PIN = 11
};

/* A task's data begins with this. */
struct gpu_order {
    uint32_t op;
    int32_t error;
    uint64_t size, ns;
};

/* A result. */
struct gpu_answer {
    int32_t error; /* of CUDA */
    int32_t pid;
    double value[4];
};

/* gpud_init with the obeying worker as "test"; then the case skips unless there is a GPU to use.  A
 * rehearsal on fakes has one healthy GPU, which reports this XID once t_trigger("provoked") was
 * called. */
void gpu_begin(void);
#define GPU_REHEARSED_XID 31
#define GPU_REHEARSED_CONTEXT ((uint64_t)256 << 20) /* what the fake libcuda takes for one */
int gpu_rehearsed(void);

/* A list of devices for `workers` workers on the first GPU. */
const char *gpu_devices(unsigned workers);

void gpu_submit(gpud_dispatcher *d, uint64_t tag, const struct gpu_order *order, uint64_t limit);
#define GPU_ORDER(...) (&(struct gpu_order){ __VA_ARGS__ })

/* Finds the outcome of a tag; it is SUCCESS and its answer has no error. */
struct gpu_answer gpu_answer_of(const struct t_log *log, uint64_t tag);

/* Memory in use on the first GPU, all processes, read now. */
uint64_t gpu_memory_used(void);
/* One reading; how long it took, in ms. */
double gpu_reading_ms(void);
/* Ends what gpu_memory_used has started. */
void gpu_readings_end(void);

/* Print a line `gpu-result`, a line `gpu-note`; in a rehearsal `rehearsed-result`,
 * `rehearsed-note`. */
void gpu_result(const char *name, double value, const char *unit);
__attribute__((format(printf, 1, 2))) void gpu_note(const char *format, ...);

#endif
