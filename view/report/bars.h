/* SPDX-License-Identifier: MIT */
/* bars.h - the stretches in which GPUs did no work, for the script of the page. */
#ifndef GPV_BARS_H
#define GPV_BARS_H

#include "view/records.h"

struct gpv_bar {
    int64_t from, to;
    uint32_t gpu, use, class, text; /* class: GPV_NONE, or that of the worker that loads */
};

struct gpv_bars {
    struct gpv_bar *row; /* by GPU and time; the caller frees them */
    size_t n, room;
};

/* 0, or -1: no memory. */
int gpv_bars_of(const struct gpv_night *n, struct gpv_bars *ret);

#endif
