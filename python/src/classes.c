/* SPDX-License-Identifier: MIT */
/*
 * classes.c - Dispatcher: the classes of work of a pooled one (sched.h), and why a task of theirs
 * does not start.
 *
 * The rows of classes() and explain() are made in rows.c.
 */
#include "classes.h"
#include "core.h"

#include <gpudispatch/sched.h>

#define NUMBER(name) CORE_FIELD(struct gpud_class, name)

static const struct core_field numbers[] = {
    NUMBER(residence),     NUMBER(min_workers), NUMBER(max_workers), NUMBER(pinned),
    NUMBER(min_residence), NUMBER(keep_alive),  NUMBER(max_wait),    NUMBER(boot_seed),
    NUMBER(unload_seed),   NUMBER(run_seed),
};

static int fill_numbers(struct gpud_class *c, PyObject *from)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    while (PyDict_Next(from, &at, &key, &value)) {
        const struct core_field *number =
            core_field_find(numbers, sizeof numbers / sizeof numbers[0], key);
        if (!number) {
            PyErr_Format(PyExc_TypeError, "unknown field of a class: %R", key);
            return -1;
        }
        if (core_field_set(c, number, value))
            return -1;
    }
    return 0;
}

int core_keep_shared(struct core_dispatcher *self, PyObject *options)
{
    PyObject *shared = PyDict_GetItemString(options, "setup_shared");

    return shared ? PyList_Append(self->shared, shared) : 0;
}

/* The library looks for the program of the workers: without the GIL. */
static PyObject *add(struct core_dispatcher *self, const struct gpud_class *c)
{
    struct gpud_error why = GPUD_ERROR_INIT;
    gpud_dispatcher *d = core_enter(self);
    int r;

    if (!d)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    r = gpud_dispatcher_class_add(d, c, &why);
    Py_END_ALLOW_THREADS
    core_leave(self);
    return core_answer(self, r, &why);
}

PyObject *core_class_add(PyObject *o, PyObject *args)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    struct gpud_options options = GPUD_OPTIONS_INIT;
    struct gpud_class c = GPUD_CLASS_INIT;
    struct core_requests needs = { .keep = NULL };
    PyObject *fields, *from, *variants, *keep, *done = NULL;

    if (!PyArg_ParseTuple(args, "sO!O!O!", &c.name, &PyDict_Type, &fields, &PyDict_Type, &from,
                          &PyList_Type, &variants) ||
        !(keep = PyList_New(0)))
        return NULL;
    c.options = &options;
    if (fill_numbers(&c, fields) == 0 &&
        core_options_fill(state_of(self), &options, from, keep) == 0 &&
        core_requests_fill(&needs, variants, &c.needs) == 0 && core_keep_shared(self, from) == 0)
        done = add(self, &c);
    core_requests_drop(&needs);
    Py_DECREF(keep);
    return done;
}

typedef int(class_fn)(gpud_dispatcher *, const char *, uint32_t, struct gpud_error *);

static PyObject *class_call(PyObject *o, PyObject *args, class_fn *call)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    struct gpud_error why = GPUD_ERROR_INIT;
    gpud_dispatcher *d;
    const char *name;
    unsigned int word;
    int r;

    if (!PyArg_ParseTuple(args, "sI", &name, &word) || !(d = core_enter(self)))
        return NULL;
    r = call(d, name, word, &why);
    core_leave(self);
    return core_answer(self, r, &why);
}

PyObject *core_class_set(PyObject *o, PyObject *args)
{
    return class_call(o, args, gpud_dispatcher_class_set);
}

PyObject *core_class_remove(PyObject *o, PyObject *args)
{
    return class_call(o, args, gpud_dispatcher_class_remove);
}

PyObject *core_explain(PyObject *o, PyObject *args)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    const struct core_template *t = NULL;
    unsigned long long id;
    PyObject *template_, *rows;
    gpud_dispatcher *d;

    if (!PyArg_ParseTuple(args, "KO", &id, &template_) ||
        (template_ != Py_None && !(t = core_template_of(state_of(self), template_))) ||
        !(d = core_enter(self)))
        return NULL;
    rows = core_rows_reasons(state_of(self), d, id, t ? &t->desc : NULL);
    core_leave(self);
    return rows;
}
