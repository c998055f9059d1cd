/* SPDX-License-Identifier: MIT */
/* report.h - the verbs that show a night. */
#ifndef REPORT_H
#define REPORT_H

#include "tools/cli/verb.h"

int report_run(const struct call *call);
int trace_run(const struct call *call);

#endif
