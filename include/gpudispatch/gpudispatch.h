/* SPDX-License-Identifier: MIT */
/*
 * gpudispatch.h - everything.  Give it a function that runs on one device, a GPU or a CPU slot; it
 * keeps one process per device busy with your tasks, and tells you exactly once how each task ended,
 * whatever crashes, hangs or fills up.  Start reading at dispatch.h; worker.h is the other side.
 */
#ifndef GPUDISPATCH_H
#define GPUDISPATCH_H

#include "cuda.h"
#include "device.h"
#include "dispatch.h"
#include "error.h"
#include "shared.h"
#include "stats.h"
#include "types.h"
#include "version.h"
#include "worker.h"

#endif
