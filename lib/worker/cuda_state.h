/* SPDX-License-Identifier: MIT */
/* cuda_state.h - the state that cuda.c, canary.c, stream.c and runtime.c share. */
#ifndef GPI_WORKER_CUDA_STATE_H
#define GPI_WORKER_CUDA_STATE_H

#include "worker/cuda.h"
#include "worker/cuda_calls.h"

/* CUDA runtimes in one process: shared objects of several versions, and a linked one */
#define GPI_RUNTIMES 4

typedef int(gpi_last_error_fn)(void);

struct gpi_cuda {
    struct gpi_cuda_calls call;
    const struct gpi_page *page;
    uint32_t n;
    bool others; /* CUDA shows no device, or devices other than the assigned ones */
    bool fake;  /* no driver behind it: only boot and canary, by the page */
    bool bound; /* the worker holds the first device's context, and has made it current */
    gpi_cu_device device[GPI_DEVICES];
    gpi_cu_context first;
    unsigned long long loads; /* of shared objects, at the last search for runtimes */
    uint32_t n_runtimes;
    gpi_last_error_fn *runtime[GPI_RUNTIMES]; /* cudaGetLastError of each */
    gpi_last_error_fn *linked;                /* as user code has passed it */
};

/* Takes the pending error of each CUDA runtime in this process, so that no later check meets it. */
void gpi_cuda_drain(struct gpi_cuda *c);

/* canary.c: runs on the current context.  Returns 0, or an error code with the cause in text. */
int gpi_cuda_canary_run(struct gpi_cuda *c, char *text, size_t size);

#endif
