/* SPDX-License-Identifier: MIT */
/* task.h - Task, and the views of its memory. */
#ifndef CORE_TASK_H
#define CORE_TASK_H

#include "state.h"

#include <stdbool.h>

#include <gpudispatch/gpudispatch.h>

/* Results up to this size lie in the page and always have room. */
#define CORE_CELL 4096u

/* `alone`: it is no member of a batch. */
PyObject *core_task_new(struct core_state *state, gpud_task *t, bool alone);
/* How many views of the task's memory user code holds. */
Py_ssize_t core_task_views(PyObject *task);
/* The task has ended: the object and its views lead nowhere from now on. */
void core_task_close(PyObject *task);

#endif
