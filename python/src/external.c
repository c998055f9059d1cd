/* SPDX-License-Identifier: MIT */
/*
 * external.c - Dispatcher: what the host tells of work that it runs itself, on devices that a
 * pooled dispatcher grants (gpudispatch/external.h).
 */
#include "external.h"
#include "core.h"

#include <gpudispatch/external.h>

PyObject *core_started(PyObject *o, PyObject *args, PyObject *kw)
{
    static char *names[] = { "id", "attempt", "pid", "session", NULL };
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    struct gpud_error why = GPUD_ERROR_INIT;
    struct gpud_proc proc = GPUD_PROC_INIT;
    unsigned long long id;
    unsigned int attempt;
    gpud_dispatcher *d;
    int r;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "KI|II", names, &id, &attempt, &proc.pid,
                                     &proc.session) ||
        !(d = core_enter(self)))
        return NULL;
    r = gpud_dispatcher_started(d, id, attempt, &proc, &why);
    core_leave(self);
    return core_answer(self, r, &why);
}

PyObject *core_decline(PyObject *o, PyObject *args, PyObject *kw)
{
    static char *names[] = { "id", "attempt", "not_before", NULL };
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    struct gpud_error why = GPUD_ERROR_INIT;
    unsigned long long id, not_before = 0;
    unsigned int attempt;
    gpud_dispatcher *d;
    int r;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "KI|K", names, &id, &attempt, &not_before) ||
        !(d = core_enter(self)))
        return NULL;
    r = gpud_dispatcher_decline(d, id, attempt, not_before, &why);
    core_leave(self);
    return core_answer(self, r, &why);
}

/* The result is copied, which may take a while: without the GIL. */
PyObject *core_ended(PyObject *o, PyObject *args, PyObject *kw)
{
    static char *names[] = { "id", "attempt", "outcome", "code", "text", "result", NULL };
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    struct gpud_error why = GPUD_ERROR_INIT;
    struct gpud_end end = GPUD_END_INIT;
    Py_buffer result = { .buf = NULL };
    unsigned long long id;
    unsigned int attempt;
    gpud_dispatcher *d;
    int r = -1;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "KII|izz*", names, &id, &attempt, &end.outcome,
                                     &end.code, &end.text, &result))
        return NULL;
    end.result = result.buf;
    end.result_size = (uint64_t)result.len;
    d = core_enter(self);
    if (d) {
        Py_BEGIN_ALLOW_THREADS
        r = gpud_dispatcher_ended(d, id, attempt, &end, &why);
        Py_END_ALLOW_THREADS
        core_leave(self);
    }
    if (result.obj)
        PyBuffer_Release(&result);
    return d ? core_answer(self, r, &why) : NULL;
}

PyObject *core_progress(PyObject *o, PyObject *args, PyObject *kw)
{
    static char *names[] = { "id", "attempt", "fraction", "text", NULL };
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    struct gpud_error why = GPUD_ERROR_INIT;
    unsigned long long id;
    unsigned int attempt;
    const char *text = NULL;
    gpud_dispatcher *d;
    double fraction;
    int r;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "KId|z", names, &id, &attempt, &fraction, &text) ||
        !(d = core_enter(self)))
        return NULL;
    r = gpud_dispatcher_progress(d, id, attempt, fraction, text, &why);
    core_leave(self);
    return core_answer(self, r, &why);
}
