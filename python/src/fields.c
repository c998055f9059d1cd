/* SPDX-License-Identifier: MIT */
/* fields.c - from the values of dictionaries to the fields of the library's records. */
#include "core.h"

#include <string.h>

const struct core_field *core_field_find(const struct core_field *fields, size_t n, PyObject *key)
{
    for (size_t i = 0; PyUnicode_Check(key) && i < n; i++)
        if (PyUnicode_CompareWithASCIIString(key, fields[i].name) == 0)
            return &fields[i];
    return NULL;
}

int core_field_set(void *record, const struct core_field *field, PyObject *value)
{
    char *at = (char *)record + field->at;
    unsigned long long number = PyLong_AsUnsignedLongLong(value);
    uint32_t small = (uint32_t)number;

    if (PyErr_Occurred())
        return -1;
    if (field->size == sizeof number) {
        memcpy(at, &number, sizeof number);
        return 0;
    }
    if (number > UINT32_MAX) {
        PyErr_Format(PyExc_OverflowError, "%s is %llu, the maximum is %u", field->name, number,
                     UINT32_MAX);
        return -1;
    }
    memcpy(at, &small, sizeof small);
    return 0;
}

const char *core_text(PyObject *value, PyObject *keep)
{
    PyObject *bytes = NULL;
    const char *s = NULL;

    if (PyUnicode_FSConverter(value, &bytes) && PyList_Append(keep, bytes) == 0)
        s = PyBytes_AsString(bytes);
    Py_XDECREF(bytes);
    return s;
}
