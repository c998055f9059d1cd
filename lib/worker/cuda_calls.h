/* SPDX-License-Identifier: MIT */
/* cuda_calls.h - libcuda.so.1 loaded: its calls, and what is to be said of its errors. */
#ifndef GPI_WORKER_CUDA_CALLS_H
#define GPI_WORKER_CUDA_CALLS_H

#include <stdbool.h>

#include "worker/cuda_abi.h"

#define GPI_CU_X_MEMBER(name, symbol, older, parameters) gpi_cu_##name##_fn *name;
struct gpi_cuda_calls {
    GPI_CU_CALLS(GPI_CU_X_MEMBER)
    bool mig_blind; /* its device_uuid tells a MIG instance's GPU, not the instance */
};
#undef GPI_CU_X_MEMBER

/* Loads it; cuInit is the caller's.  0, or GPUD_EDEVICE with the cause in text. */
int gpi_cuda_load(struct gpi_cuda_calls *ret, char *text, size_t size);

/* "cudaErrorIllegalAddress (700): an illegal memory access was encountered". */
void gpi_cuda_words(const struct gpi_cuda_calls *call, gpi_cu_result code, char *text, size_t size);

/* Whether this process can use CUDA no more after it, by what CUDA says of the code. */
bool gpi_cuda_is_sticky(gpi_cu_result code);

/* For an error before setup: WHAT: words; what to do. */
int gpi_cuda_refuse(const struct gpi_cuda_calls *call, gpi_cu_result code, const char *what,
                    char *text, size_t size);

#endif
