/* SPDX-License-Identifier: MIT */
/* accidents_none.c - in place of accidents_gpu.cu where there is no CUDA toolkit. */
#include <stddef.h>

#include "accidents.h"

accident_fn *const accident_gpu = NULL;
