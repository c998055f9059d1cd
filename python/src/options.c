/* SPDX-License-Identifier: MIT */
/* options.c - from a dictionary to struct gpud_options: one row per field. */
#include "core.h"

#include <string.h>

enum kind { U32, U64, TEXT, TEXTS, SHARED, DATA };

/* All of them but setup_size, which comes with setup_data.  A pooled dispatcher has its own ones,
 * and each of its classes the others: the library knows which. */
#define ROW(name, kind) { #name, kind, offsetof(struct gpud_options, name) }

static const struct row {
    const char *name;
    enum kind kind;
    size_t at;
} rows[] = {
    ROW(drive, U32),
    ROW(definition, TEXT),
    ROW(devices, TEXT),
    ROW(queue_size, U32),
    ROW(sent_ahead, U32),
    ROW(payload_budget, U64),
    ROW(setup_data, DATA),
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
    ROW(start, U32),
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
    ROW(plugin, TEXT),
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
    ROW(pooled, U32),
    ROW(mode, U32),
    ROW(passing, U32),
    ROW(cpus, U32),
    ROW(headroom, U32),
    ROW(max_workers, U32),
    ROW(foreign_load, U32),
    ROW(host_memory, U64),
    ROW(foreign_memory, U64),
    ROW(decision_log, TEXT),
};

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
        to[i] = item ? core_text(item, keep) : NULL;
        Py_XDECREF(item);
        if (!to[i])
            return NULL;
    }
    if (to)
        to[n] = NULL;
    return to;
}

/* The bytes of any buffer.  They are copied unless they are of type bytes, since nothing keeps the
 * memory of others as it is. */
static const void *data_of(PyObject *value, PyObject *keep, uint64_t *ret_size)
{
    PyObject *bytes = NULL;
    const void *data = NULL;

    if (!PyObject_CheckBuffer(value))
        PyErr_Format(PyExc_TypeError, "setup_data has no bytes: %R", (PyObject *)Py_TYPE(value));
    else if ((bytes = PyBytes_FromObject(value)) && PyList_Append(keep, bytes) == 0) {
        data = PyBytes_AsString(bytes);
        *ret_size = (uint64_t)PyBytes_Size(bytes);
    }
    Py_XDECREF(bytes);
    return data;
}

static int set(struct core_state *state, struct gpud_options *o, const struct row *row,
               PyObject *value, PyObject *keep)
{
    const struct core_field number = { row->name, row->at,
                                       row->kind == U32 ? sizeof(uint32_t) : sizeof(uint64_t) };
    const void *pointer = NULL;

    switch (row->kind) {
    case U32:
    case U64:
        return core_field_set(o, &number, value);
    case TEXT:
        pointer = core_text(value, keep);
        break;
    case DATA:
        pointer = data_of(value, keep, &o->setup_size);
        break;
    case TEXTS:
        pointer = texts_of(value, keep);
        break;
    case SHARED:
        pointer = core_shared_handle(state, value);
        break;
    }
    memcpy((char *)o + row->at, &pointer, sizeof pointer);
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
        if (set(state, o, row, value, keep))
            return -1;
    }
    return 0;
}
