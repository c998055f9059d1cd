/* SPDX-License-Identifier: MIT */
/* say.h - what a verb has to say on standard error. */
#ifndef GPQ_CLIENT_SAY_H
#define GPQ_CLIENT_SAY_H

#include "queue/store.h"

/* "gpudispatch: TEXT" without control characters, and returns the status. */
int gpq_say(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says why the configuration, or a place that it names, is of no use.  Returns the exit status. */
int gpq_say_config(int code, const struct gpq_error *e);

#endif
