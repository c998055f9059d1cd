/* SPDX-License-Identifier: MIT */
/* say.h - what a verb has to say on standard error. */
#ifndef GPQ_CLIENT_SAY_H
#define GPQ_CLIENT_SAY_H

/* "gpudispatch: TEXT" without control characters, and returns the status. */
int gpq_say(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
