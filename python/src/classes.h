/* SPDX-License-Identifier: MIT */
/* classes.h - Dispatcher: the methods about the classes of a pooled one. */
#ifndef CORE_CLASSES_H
#define CORE_CLASSES_H

#include "entry.h"

/* Keeps the Shared that option setup_shared names, if any, as long as the Dispatcher lives. */
int core_keep_shared(struct core_dispatcher *self, PyObject *options);

/* Methods. */

PyObject *core_class_add(PyObject *self, PyObject *args);
PyObject *core_class_set(PyObject *self, PyObject *args);
PyObject *core_class_remove(PyObject *self, PyObject *args);
PyObject *core_explain(PyObject *self, PyObject *args);

#endif
