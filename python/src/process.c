/* SPDX-License-Identifier: MIT */
/*
 * process.c - a worker's process: the exceptions that it shows, and the children that user code
 * forks in it.  Nothing in this file runs in a signal handler.
 */
#include "process.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static bool forked; /* this process is such a child */

/* ---- exceptions ---- */

/* Shows an exception as an interpreter does that ends with it, except that SystemExit ends none. */
static void show(PyObject *type, PyObject *value, PyObject *trace)
{
    PyObject *hook = PySys_GetObject("__excepthook__"), *shown = NULL; /* borrowed */

    if (hook)
        shown = PyObject_CallFunctionObjArgs(hook, type, value, trace ? trace : Py_None, NULL);
    Py_XDECREF(shown);
    PyErr_Clear();
}

static void flush_one(const char *name)
{
    PyObject *file = PySys_GetObject(name), *r = NULL;

    if (file && file != Py_None)
        r = PyObject_CallMethod(file, "flush", NULL);
    Py_XDECREF(r);
    PyErr_Clear();
}

void core_process_flush(void)
{
    flush_one("stdout");
    flush_one("stderr");
}

/* "ValueError: text" */
static void describe(PyObject *type, PyObject *value, char *text, size_t size)
{
    PyObject *name = PyObject_GetAttrString(type, "__name__"), *words = PyObject_Str(value), *all;
    const char *utf8 = NULL;

    if (!words) {
        PyErr_Clear();
        words = PyUnicode_FromString("");
    }
    all = name && words ? PyUnicode_FromFormat("%U: %U", name, words) : NULL;
    if (all)
        utf8 = PyUnicode_AsUTF8AndSize(all, NULL);
    snprintf(text, size, "%s", utf8 ? utf8 : "an exception");
    PyErr_Clear();
    Py_XDECREF(all);
    Py_XDECREF(words);
    Py_XDECREF(name);
}

void core_process_take_exception(char *text, size_t size)
{
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    if (!type) {
        snprintf(text, size, "an error without an exception");
        return;
    }
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace)
        (void)PyException_SetTraceback(value, trace);
    describe(type, value, text, size);
    show(type, value, trace);
    core_process_flush();
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

/* ---- processes that user code forks ---- */

static void in_child(void)
{
    forked = true;
}

void core_process_watch(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

bool core_process_forked(void)
{
    return forked;
}

/* The status with which an interpreter would end: sys.exit(3) is 3. */
static int status_of_exit(PyObject *value)
{
    PyObject *code = value ? PyObject_GetAttrString(value, "code") : NULL;
    long status = 1;

    if (code == Py_None)
        status = 0;
    else if (code && PyLong_Check(code))
        status = PyLong_AsLong(code);
    PyErr_Clear();
    Py_XDECREF(code);
    return (int)(status & 0xff);
}

_Noreturn void core_process_leave(void)
{
    PyObject *type, *value, *trace;
    char text[256];
    int status = 0;

    if (PyErr_ExceptionMatches(PyExc_SystemExit)) {
        PyErr_Fetch(&type, &value, &trace);
        PyErr_NormalizeException(&type, &value, &trace);
        status = status_of_exit(value);
    } else if (PyErr_Occurred()) {
        core_process_take_exception(text, sizeof text);
        status = 1;
    }
    core_process_flush();
    (void)fflush(stdout);
    _exit(status);
}
