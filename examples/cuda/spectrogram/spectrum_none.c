/* SPDX-License-Identifier: MIT */
/* spectrum_none.c - in place of spectrum_gpu.cu where there is no CUDA toolkit. */
#include "spectrum.h"

const struct spectrum_way *const spectrum_gpu = NULL;
