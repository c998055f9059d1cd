/* SPDX-License-Identifier: MIT */
/* reasons.h - the reasons why a task does not start, as people read them. */
#ifndef GPQ_CLIENT_REASONS_H
#define GPQ_CLIENT_REASONS_H

#include <jansson.h>
#include <stddef.h>

/* "fake:0, fake:1: busy with 1.3": a reason of the reply of `explain`, for all of these devices.  A
 * kind that is not known has the agent's text.  `devices` may be "". */
char *gpq_reason_text(const json_t *reason, const char *devices, char *ret, size_t size);

/* Calls fn with the text of each reason; reasons that differ in their device alone are one. */
void gpq_reasons(const json_t *reasons, void (*fn)(const char *text, void *user), void *user);

/* The first reason in a reply of `explain`: "paused: dinner", "held: time", "busy with 1.3". */
char *gpq_first_reason(const json_t *reply, char *ret, size_t size);

#endif
