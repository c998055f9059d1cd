/* SPDX-License-Identifier: MIT */
/* serve.h - the verb serve. */
#ifndef SERVE_H
#define SERVE_H

#include "tools/cli/verb.h"

int serve_run(const struct call *call);

#endif
