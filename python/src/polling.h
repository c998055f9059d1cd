/* SPDX-License-Identifier: MIT */
/* polling.h - Dispatcher: the methods that wait for its events. */
#ifndef CORE_POLL_H
#define CORE_POLL_H

#include "entry.h"

PyObject *core_poll(PyObject *self, PyObject *args);
PyObject *core_wake(PyObject *self, PyObject *unused);
PyObject *core_attend(PyObject *self, PyObject *args);
PyObject *core_attends(PyObject *self, PyObject *unused);
PyObject *core_stand_by(PyObject *self, PyObject *args);

#endif
