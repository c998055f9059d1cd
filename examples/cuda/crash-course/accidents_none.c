/* SPDX-License-Identifier: MIT */
/* accidents_none.c - replaces accidents_gpu.cu in a build without the CUDA toolkit. */
#include <stddef.h>

#include "accidents.h"

accident_fn *const accident_gpu = NULL;
