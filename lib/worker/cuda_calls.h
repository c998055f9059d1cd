/* SPDX-License-Identifier: MIT */
/* cuda_calls.h - libcuda.so.1, loaded: its calls, and the texts of its errors. */
#ifndef GPI_WORKER_CUDA_CALLS_H
#define GPI_WORKER_CUDA_CALLS_H

#include <stdbool.h>

#include "worker/cuda_abi.h"

#define GPI_CU_X_MEMBER(name, symbol, older, parameters) gpi_cu_##name##_fn *name;
struct gpi_cuda_calls {
    GPI_CU_CALLS(GPI_CU_X_MEMBER)
    bool mig_blind; /* for a MIG instance its device_uuid returns the GPU's UUID */
};
#undef GPI_CU_X_MEMBER

/* Loads the library; the caller calls cuInit.  Returns 0, or GPUD_EDEVICE with the cause in
 * text. */
int gpi_cuda_load(struct gpi_cuda_calls *ret, char *text, size_t size);

/* Writes "cudaErrorIllegalAddress (700): an illegal memory access was encountered". */
void gpi_cuda_words(const struct gpi_cuda_calls *call, gpi_cu_result code, char *text, size_t size);

/* Returns whether this process can use CUDA no more after this code, by CUDA's documents. */
bool gpi_cuda_is_sticky(gpi_cu_result code);

/* Writes the text for an error before setup, "WHAT: error; remedy".  Returns GPUD_EDEVICE. */
int gpi_cuda_refuse(const struct gpi_cuda_calls *call, gpi_cu_result code, const char *what,
                    char *text, size_t size);

#endif
