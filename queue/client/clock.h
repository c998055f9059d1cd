/* SPDX-License-Identifier: MIT */
/* clock.h - the time of verbs. */
#ifndef GPQ_CLIENT_CLOCK_H
#define GPQ_CLIENT_CLOCK_H

#include <stdint.h>

uint64_t gpq_now(void);      /* ns of CLOCK_MONOTONIC */
uint64_t gpq_now_wall(void); /* ns since 1970 */
/* ms until a time of gpq_now, for poll.  0: it is over; -1: `deadline` is 0, there is none. */
int gpq_ms_until(uint64_t deadline);

#endif
