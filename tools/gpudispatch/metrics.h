/* SPDX-License-Identifier: MIT */
/* metrics.h - the verb metrics. */
#ifndef METRICS_H
#define METRICS_H

#include "tools/cli/verb.h"

int metrics_run(const struct call *call);

#endif
