/* SPDX-License-Identifier: MIT */
/* alarm.h - time limits and stops in a worker. */
#ifndef CORE_ALARM_H
#define CORE_ALARM_H

#include "state.h"

#include <stdbool.h>
#include <stddef.h>

#include <gpudispatch/gpudispatch.h>

/* Words at the start of the setup data: the one at id % CORE_STOPS is the id of a task for which
 * Future.stop() was called. */
#define CORE_STOPS 8192u

/* Takes over SIGALRM from the library, whose handler stays in front.  `timeout` and `stopped` are
 * the classes to raise.  With the GIL, in setup.  0, or -1 with an exception. */
int core_alarm_install(PyObject *timeout, PyObject *stopped, const void *stops);
/* A call of process begins with these members, or has ended. */
void core_alarm_begin(gpud_task *const *members, size_t n);
void core_alarm_end(void);
/* Calls user code: only in here a limit or a stop raises. */
PyObject *core_alarm_call(PyObject *function, PyObject *args, PyObject *kw);
/* Whether Future.stop() was called for the task. */
bool core_alarm_stop_asked(const gpud_task *t);
/* Whether this is the thread that the library runs on. */
bool core_alarm_on_main_thread(void);
/* Lets SIGALRM through, or holds it back: the library holds it back in setup and cleanup. */
void core_alarm_block(bool block);

#endif
