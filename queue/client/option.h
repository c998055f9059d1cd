/* SPDX-License-Identifier: MIT */
/* option.h - options of verbs as numbers and times. */
#ifndef GPQ_CLIENT_OPTION_H
#define GPQ_CLIENT_OPTION_H

#include "tools/cli/verb.h"

/* The value of an option; *ret is left alone without one.  0, or EXIT_USAGE after saying why. */
int gpq_option_number(const struct call *call, enum option_id option, uint64_t least, uint64_t most,
                      uint64_t *ret);
int gpq_option_duration(const struct call *call, enum option_id option, uint64_t *ret_ns);
/* A time: 22:00 is the next one in local time after `after`, and RFC 3339 has the day, too. */
int gpq_option_time(const struct call *call, enum option_id option, uint64_t after, uint64_t *ret);
/* A time that has been, in ns since 1970: 8h is that long ago, 22:00 is the last one in local time,
 * and RFC 3339 has the day, too. */
int gpq_option_since(const struct call *call, enum option_id option, uint64_t *ret);

#endif
