/* SPDX-License-Identifier: MIT */
/* given.h - options as numbers and times, also in a program without the queue, which has none. */
#ifndef GIVEN_H
#define GIVEN_H

#include "tools/cli/verb.h"

#ifdef GPQ_CLIENT
#include "queue/client/option.h"
#else
static inline int gpq_option_duration(const struct call *call, enum option_id option,
                                      uint64_t *ret_ns)
{
    (void)ret_ns;
    return call->given[option]
               ? usage(call->verb, "%s: --%s: built without the queue (-Dqueue=enabled)",
                       call->verb->name, options[option].name)
               : 0;
}
#endif

#endif
