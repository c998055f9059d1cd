/* SPDX-License-Identifier: MIT */
/* template.c - Template: the settings that many tasks share, ready for the library. */
#include "core.h"

#include <string.h>

struct template_ {
    PyObject_HEAD
    struct gpud_task_desc desc;
    char label[64];
};

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char *names[] = { "priority", "label", "limit", "expires", "stall_limit",
                             "max_attempts", "retry_causes", NULL };
    struct gpud_task_desc d = GPUD_TASK_DESC_INIT;
    unsigned long long limit = 0, expires = 0, stall = 0;
    unsigned int attempts = 0, causes = 0;
    const char *label = NULL;
    struct template_ *self;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|izKKKII", names, &d.priority, &label, &limit,
                                     &expires, &stall, &attempts, &causes))
        return NULL;
    if (label && strlen(label) >= sizeof self->label) {
        PyErr_SetString(PyExc_ValueError, "label has more than 63 bytes");
        return NULL;
    }
    self = (struct template_ *)alloc(type, 0);
    if (!self)
        return NULL;
    d.limit = limit;
    d.expires = expires;
    d.stall_limit = stall;
    d.max_attempts = attempts;
    d.retry_causes = causes;
    self->desc = d;
    if (label) {
        memcpy(self->label, label, strlen(label) + 1);
        self->desc.label = self->label;
    }
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

const struct gpud_task_desc *core_template_desc(struct core_state *state, PyObject *template_)
{
    if (Py_IS_TYPE(template_, state->template_type))
        return &((struct template_ *)template_)->desc;
    PyErr_SetString(PyExc_TypeError, "expected a Template");
    return NULL;
}

static PyType_Slot slots[] = {
    { Py_tp_new, new },
    { Py_tp_dealloc, dealloc },
    { Py_tp_doc, "The settings that many tasks share; 0 means the dispatcher's default." },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "gpudispatch._core.Template",
    .basicsize = sizeof(struct template_),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int core_add_template_types(PyObject *module, struct core_state *state)
{
    return core_add_type(module, &state->template_type, &spec);
}
