/* SPDX-License-Identifier: MIT */
/* request.c - from a list of dictionaries to a chain of struct gpud_request: the needs of a class
 * or of a task, with variants. */
#include "core.h"

#define NUMBER(name) CORE_FIELD(struct gpud_request, name)

static const struct core_field numbers[] = {
    NUMBER(devices), NUMBER(share),  NUMBER(cpus),
    NUMBER(compute), NUMBER(memory), NUMBER(host_memory),
};

static int fill_text(const char **to, PyObject *keep, PyObject *value)
{
    *to = core_text(value, keep);
    return *to ? 0 : -1;
}

static int fill_one(struct gpud_request *r, PyObject *keep, PyObject *from)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    while (PyDict_Next(from, &at, &key, &value)) {
        const struct core_field *number =
            core_field_find(numbers, sizeof numbers / sizeof numbers[0], key);
        int failed;
        if (number) {
            failed = core_field_set(r, number, value);
        } else if (PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, "on") == 0) {
            failed = fill_text(&r->on, keep, value);
        } else if (PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, "not_on") == 0) {
            failed = fill_text(&r->not_on, keep, value);
        } else {
            PyErr_Format(PyExc_TypeError, "unknown key of a request: %R", key);
            failed = -1;
        }
        if (failed)
            return -1;
    }
    return 0;
}

int core_requests_fill(struct core_requests *r, PyObject *list,
                       const struct gpud_request **ret_first)
{
    const struct gpud_request initial = GPUD_REQUEST_INIT;
    Py_ssize_t n = PyList_Check(list) ? PyList_Size(list) : -1;

    if (n < 0) {
        PyErr_SetString(PyExc_TypeError, "a request is a list of variants");
        return -1;
    }
    if (n > CORE_VARIANTS_MAX) {
        PyErr_Format(PyExc_ValueError, "a request has %zd variants, the maximum is %d", n,
                     CORE_VARIANTS_MAX);
        return -1;
    }
    r->keep = PyList_New(0);
    for (Py_ssize_t i = 0; r->keep && i < n; i++) {
        PyObject *variant = PyList_GetItem(list, i);
        if (!variant || !PyDict_Check(variant)) {
            PyErr_SetString(PyExc_TypeError, "a variant of a request is a dict");
            return -1;
        }
        r->at[i] = initial;
        r->at[i].next = i + 1 < n ? &r->at[i + 1] : NULL;
        if (fill_one(&r->at[i], r->keep, variant))
            return -1;
    }
    *ret_first = n ? r->at : NULL;
    return r->keep ? 0 : -1;
}

void core_requests_drop(struct core_requests *r)
{
    Py_CLEAR(r->keep);
}
