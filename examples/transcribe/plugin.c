/* SPDX-License-Identifier: MIT */
/*
 * plugin.c - the workers' side as a shared object, for a class of the durable queue:
 *
 *     [class speech]
 *     plugin = transcribe_worker.so
 *     setup = /usr/share/pocketsphinx/model
 */
#include <gpudispatch/plugin.h>

#include "work.h"

static const struct gpud_definition definitions[] = { GPUD_DEFINITION(
    "transcribe", work_setup, work_process, work_cleanup) };
GPUD_PLUGIN(definitions);
