/* SPDX-License-Identifier: MIT */
/* cuda.h - the one look at CUDA in the host: whether it is in use already. */
#ifndef GPI_OS_CUDA_H
#define GPI_OS_CUDA_H

#include <stdbool.h>

/* Whether libcuda.so.1 is in this process and has been initialised: then nothing forked from it can
 * use CUDA.  Loads nothing, and calls cuDeviceGetCount at most once.             [C14] */
bool gpi_cuda_in_use(void);

#endif
