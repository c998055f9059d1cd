/* SPDX-License-Identifier: MIT */
/*
 * process.h - a worker's process: the children that user code forks in it, and what it prints.
 *
 * The files of the worker's side call only downward: worker.c, task.c, alarm.c, process.c.  A
 * worker is a process of its own and has one thread of the library, so these files keep their state
 * in statics: a signal handler has no other way to it.  In the host these statics stay zero.
 */
#ifndef CORE_PROCESS_H
#define CORE_PROCESS_H

#include "state.h"

#include <stdbool.h>
#include <stddef.h>

/* From here on core_process_forked knows the children that user code forks. */
void core_process_watch(void);
/* Whether this is a process that user code has forked in a worker. */
bool core_process_forked(void);
/* Ends such a process where it returns from user code, with the exception that is set, if any: it
 * shares memory with the worker whose task it would report. */
_Noreturn void core_process_leave(void);

/* Takes the exception that is set, shows it on stderr, and writes "ValueError: text". */
void core_process_take_exception(char *text, size_t size);
/* Flushes sys.stdout and sys.stderr. */
void core_process_flush(void);

#endif
