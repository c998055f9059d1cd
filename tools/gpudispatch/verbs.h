/* SPDX-License-Identifier: MIT */
/* verbs.h - the functions of those verbs that need no queue. */
#ifndef VERBS_H
#define VERBS_H

#include "tools/cli/verb.h"

int doctor_run(const struct call *call);
int gpus_run(const struct call *call);

#endif
