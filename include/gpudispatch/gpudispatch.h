/* SPDX-License-Identifier: MIT */
/*
 * gpudispatch.h - all headers of the library that a host or a worker includes.
 *
 * You write a function that runs on one device: a GPU or a CPU slot.  The library keeps
 * one worker process per device busy with your tasks.  It reports exactly once how each
 * task ended, even if workers crash or hang, or memory and queues fill up.
 *
 * Start with dispatch.h, which is the side of the host.  The side of the worker is
 * worker.h.  Plugins and worker programs include plugin.h as well.
 */
#ifndef GPUDISPATCH_H
#define GPUDISPATCH_H

#include "cuda.h"
#include "device.h"
#include "dispatch.h"
#include "error.h"
#include "external.h"
#include "sched.h"
#include "shared.h"
#include "stats.h"
#include "types.h"
#include "version.h"
#include "worker.h"

#endif
