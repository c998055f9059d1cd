/* SPDX-License-Identifier: MIT */
/* external.h - Dispatcher: the methods about work that the host runs itself. */
#ifndef CORE_EXTERNAL_H
#define CORE_EXTERNAL_H

#include "entry.h"

PyObject *core_started(PyObject *self, PyObject *args, PyObject *kw);
PyObject *core_decline(PyObject *self, PyObject *args, PyObject *kw);
PyObject *core_ended(PyObject *self, PyObject *args, PyObject *kw);
PyObject *core_progress(PyObject *self, PyObject *args, PyObject *kw);

#endif
