/* SPDX-License-Identifier: MIT */
/*
 * task.h - the worker side of the extension: what task.c, alarm.c and worker.c share.
 *
 * A worker is a process of its own and has one thread of the library, so its files keep their state
 * in statics: a signal handler has no other way to it.  In the host these statics stay zero.
 */
#ifndef CORE_TASK_H
#define CORE_TASK_H

#include "core.h"

/* ---- alarm.c: time limits and stops ---- */

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

/* Results up to this size lie in the page and always have room. */
#define CORE_CELL 4096u

/* ---- worker.c ---- */

/* Whether this is a process that user code has forked in a worker. */
bool core_worker_forked(void);
/* Ends such a process where it returns from user code, with the exception that is set, if any: it
 * shares memory with the worker whose task it would report. */
_Noreturn void core_worker_leave(void);

/* ---- task.c: Task, and the views of its memory ---- */

/* `alone`: it is no member of a batch. */
PyObject *core_task_new(struct core_state *state, gpud_task *t, bool alone);
/* worker.c: adds Worker and the functions of a worker to the module. */
int core_add_worker_types(PyObject *module, struct core_state *state);
/* How many views of the task's memory user code holds. */
Py_ssize_t core_task_views(PyObject *task);
/* The task has ended: the object and its views lead nowhere from now on. */
void core_task_close(PyObject *task);

#endif
