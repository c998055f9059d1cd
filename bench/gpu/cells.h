/* SPDX-License-Identifier: MIT */
/* cells.h - each fills some figures: 0, or -1 after a complaint. */
#ifndef BENCH_GPU_CELLS_H
#define BENCH_GPU_CELLS_H

#include "../report.h"

typedef int(g_cell_fn)(struct b_figure *figures, const char *devices);
g_cell_fn g_cell_busy, g_cell_trip, g_cell_stream, g_cell_copy, g_cell_restart;

#endif
