/* SPDX-License-Identifier: MIT */
/* options.c - from a dictionary to struct gpud_options: one row per field. */
#include "core.h"

#include <stddef.h>
#include <string.h>

enum kind { U32, U64, TEXT, TEXTS, SHARED };

/* Left out: definition, setup data, start and plugin, since workers of the package are programs of
 * argv; and pooled with the options that need it, since the package has no classes. */
#define ROW(name, kind) { #name, kind, offsetof(struct gpud_options, name) }

static const struct row {
    const char *name;
    enum kind kind;
    size_t at;
} rows[] = {
    ROW(drive, U32),
    ROW(devices, TEXT),
    ROW(queue_size, U32),
    ROW(sent_ahead, U32),
    ROW(payload_budget, U64),
    ROW(seed, U64),
    ROW(setup_limit, U64),
    ROW(task_limit, U64),
    ROW(grace, U64),
    ROW(cleanup_limit, U64),
    ROW(close_limit, U64),
    ROW(kill_limit, U64),
    ROW(backoff, U64),
    ROW(backoff_cap, U64),
    ROW(failures_in_a_row, U32),
    ROW(max_attempts, U32),
    ROW(log_level, U32),
    ROW(slot_events, U32),
    ROW(stdio, U32),
    ROW(devices_per_worker, U32),
    ROW(setup_concurrency, U32),
    ROW(max_batch, U32),
    ROW(retry_causes, U32),
    ROW(batch_wait, U64),
    ROW(retry_backoff, U64),
    ROW(retry_backoff_cap, U64),
    ROW(expires, U64),
    ROW(stall_limit, U64),
    ROW(env, TEXTS),
    ROW(cwd, TEXT),
    ROW(stdio_path, TEXT),
    ROW(argv, TEXTS),
    ROW(setup_shared, SHARED),
    ROW(cuda, U32),
    ROW(canary_passes, U32),
    ROW(canary_backoff, U64),
    ROW(canary_backoff_cap, U64),
    ROW(memory_wait, U64),
    ROW(xid_rules, TEXT),
    ROW(max_tasks_per_worker, U32),
    ROW(result_wait, U64),
    ROW(stop_limit, U64),
    ROW(visible, U32),
    ROW(start_events, U32),
    ROW(decision_log, TEXT),
};

/* A file name's bytes, kept alive in `keep`; NULL and an exception where it is no text. */
static const char *text_of(PyObject *value, PyObject *keep)
{
    PyObject *bytes = NULL;
    const char *s = NULL;

    if (PyUnicode_FSConverter(value, &bytes) && PyList_Append(keep, bytes) == 0)
        s = PyBytes_AsString(bytes);
    Py_XDECREF(bytes);
    return s;
}

/* An array of texts that NULL ends, in a bytes object of `keep`. */
static const char *const *texts_of(PyObject *value, PyObject *keep)
{
    Py_ssize_t n = PySequence_Size(value);
    PyObject *array = n < 0 ? NULL
                            : PyBytes_FromStringAndSize(NULL, (n + 1) * (Py_ssize_t)sizeof(char *));
    const char **to = array && PyList_Append(keep, array) == 0
                          ? (const char **)(void *)PyBytes_AsString(array)
                          : NULL;

    Py_XDECREF(array);
    for (Py_ssize_t i = 0; to && i < n; i++) {
        PyObject *item = PySequence_GetItem(value, i);
        to[i] = item ? text_of(item, keep) : NULL;
        Py_XDECREF(item);
        if (!to[i])
            return NULL;
    }
    if (to)
        to[n] = NULL;
    return to;
}

static int set(struct core_state *state, char *at, const struct row *row, PyObject *value,
               PyObject *keep)
{
    unsigned long long number = 0;
    const void *pointer = NULL;

    switch (row->kind) {
    case U32:
    case U64:
        number = PyLong_AsUnsignedLongLong(value);
        if (PyErr_Occurred())
            return -1;
        if (row->kind == U64) {
            memcpy(at, &number, sizeof number);
        } else if (number <= UINT32_MAX) {
            uint32_t small = (uint32_t)number;
            memcpy(at, &small, sizeof small);
        } else {
            PyErr_Format(PyExc_OverflowError, "%s is %llu, the maximum is %u", row->name, number,
                         UINT32_MAX);
            return -1;
        }
        return 0;
    case TEXT:
        pointer = text_of(value, keep);
        break;
    case TEXTS:
        pointer = texts_of(value, keep);
        break;
    case SHARED:
        pointer = core_shared_handle(state, value);
        break;
    }
    memcpy(at, &pointer, sizeof pointer);
    return pointer ? 0 : -1;
}

int core_options_fill(struct core_state *state, struct gpud_options *o, PyObject *from,
                      PyObject *keep)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    while (PyDict_Next(from, &at, &key, &value)) {
        const struct row *row = rows, *end = rows + sizeof rows / sizeof rows[0];
        while (row < end && PyUnicode_CompareWithASCIIString(key, row->name))
            row++;
        if (row == end) {
            PyErr_Format(PyExc_TypeError, "unknown option %R", key);
            return -1;
        }
        if (set(state, (char *)o + row->at, row, value, keep))
            return -1;
    }
    return 0;
}
