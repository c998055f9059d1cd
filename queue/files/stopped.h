/* SPDX-License-Identifier: MIT */
/*
 * stopped.h - whether the last agent of a state directory was told to stop.
 *
 * After a crash or a reboot any command starts an agent, so that the tasks go on.  After `agent
 * stop` only a submit and `agent start` do: the user wanted none.
 */
#ifndef GPQ_FILES_STOPPED_H
#define GPQ_FILES_STOPPED_H

#include <stdbool.h>

bool gpq_stopped(const char *state);
/* 0 or -errno.  It is not synced: a reboot may forget it. */
int gpq_stopped_set(const char *state);
void gpq_stopped_clear(const char *state);

#endif
