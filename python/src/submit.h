/* SPDX-License-Identifier: MIT */
/* submit.h - Dispatcher: the methods that submit tasks. */
#ifndef CORE_SUBMIT_H
#define CORE_SUBMIT_H

#include "entry.h"

/* Submits from the front of a deque of (template, tag, frame), and gives the futures their ids: 1
 * once it is empty, 0 where there is no room, -1 and an exception where the first is refused. */
int core_send(struct core_dispatcher *self, gpud_dispatcher *d, PyObject *queue,
              PyObject *futures);

/* Methods. */

PyObject *core_submit(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *core_submit_many(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *core_send_queue(PyObject *self, PyObject *args);

#endif
