/* SPDX-License-Identifier: MIT */
/* spectrum_none.c - replaces spectrum_gpu.cu in a build without the CUDA toolkit. */
#include "spectrum.h"

const struct spectrum_way *const spectrum_gpu = NULL;
