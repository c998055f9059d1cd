/* SPDX-License-Identifier: MIT */
/* names.h - names of GPUs, classes and batches, for all views. */
#ifndef GPV_NAMES_H
#define GPV_NAMES_H

#include "view/records.h"

enum { GPV_NAME = 128 };

/* The names that rows have: "gpu:3", "whisper", "sweep"; "" of a row that is not there. */
const char *gpv_gpu_name(const struct gpv_night *n, uint32_t gpu);
const char *gpv_class_name(const struct gpv_night *n, uint32_t class);
const char *gpv_batch_name(const struct gpv_night *n, uint32_t id);

/* The number in "gpu:3", or -1. */
long gpv_gpu_number(const char *name);
/* "GPU 3"; "GPU 3:0 1g.10gb", which is an instance of GPU 3; any other name as it is.  GPV_NONE:
 * "a GPU". */
const char *gpv_gpu_label(const struct gpv_night *n, uint32_t gpu, char ret[GPV_NAME]);
/* "GPU 0, 4-5", cut with " ..."; "" for none. */
const char *gpv_gpu_labels(const struct gpv_night *n, struct gpv_set set, char ret[GPV_NAME]);
/* "command": a task without a class. */
const char *gpv_class_label(const struct gpv_night *n, uint32_t class);

#endif
