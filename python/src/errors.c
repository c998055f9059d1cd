/* SPDX-License-Identifier: MIT */
/* errors.c - from a code of the library to an exception: errors.py has the table of classes. */
#include "core.h"

PyObject *core_raise(struct core_state *state, int code, const struct gpud_error *why)
{
    const char *text = why && why->text[0] ? why->text : gpud_error_text(code);
    const char *field = why ? why->field : "";
    PyObject *error;

    if (!state->errors)
        state->errors = PyImport_ImportModule("gpudispatch.errors");
    if (!state->errors)
        return NULL;
    error = PyObject_CallMethod(state->errors, "from_code", "isss", code, gpud_error_name(code),
                                field, text);
    if (!error)
        return NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
    return NULL;
}
