/* SPDX-License-Identifier: MIT */
/* template.c - Template: the settings that many tasks share, ready for the library. */
#include "core.h"

#include <string.h>

struct template_ {
    PyObject_HEAD
    struct core_template is;
    /* what its description points to */
    char label[64], class_name[64];
    struct core_requests request;
};

/* Copies a name of up to 63 bytes; NULL stays. */
static int copy_name(char *to, size_t size, const char *what, const char *name, const char **ret)
{
    if (!name)
        return 0;
    if (strlen(name) >= size) {
        PyErr_Format(PyExc_ValueError, "%s has more than %zu bytes", what, size - 1);
        return -1;
    }
    memcpy(to, name, strlen(name) + 1);
    *ret = to;
    return 0;
}

static int fill(struct template_ *self, const char *label, const char *class_name,
                PyObject *request)
{
    struct gpud_task_desc *d = &self->is.desc;

    if (self->is.number >= CORE_NUMBERS) {
        PyErr_Format(PyExc_ValueError, "number is %u, the maximum is %u", self->is.number,
                     CORE_NUMBERS - 1);
        return -1;
    }
    if (copy_name(self->label, sizeof self->label, "label", label, &d->label) ||
        copy_name(self->class_name, sizeof self->class_name, "class_name", class_name,
                  &d->class_name))
        return -1;
    return request == Py_None ? 0 : core_requests_fill(&self->request, request, &d->request);
}

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char *names[] = { "priority", "label", "limit", "expires", "stall_limit",
                             "max_attempts", "retry_causes", "class_name", "number", "quota",
                             "keep_alive", "request", NULL };
    struct gpud_task_desc d = GPUD_TASK_DESC_INIT;
    unsigned long long limit = 0, expires = 0, stall = 0, keep_alive = 0;
    unsigned int attempts = 0, causes = 0, number = 0, quota = 0;
    const char *label = NULL, *class_name = NULL;
    PyObject *request = Py_None;
    struct template_ *self;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

    if (!PyArg_ParseTupleAndKeywords(args, kw, "|izKKKIIzIIKO", names, &d.priority, &label, &limit,
                                     &expires, &stall, &attempts, &causes, &class_name, &number,
                                     &quota, &keep_alive, &request))
        return NULL;
    self = (struct template_ *)alloc(type, 0);
    if (!self)
        return NULL;
    d.limit = limit;
    d.expires = expires;
    d.stall_limit = stall;
    d.max_attempts = attempts;
    d.retry_causes = causes;
    d.keep_alive = keep_alive;
    self->is = (struct core_template){ .desc = d, .number = number, .quota = quota };
    if (fill(self, label, class_name, request) == 0)
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    core_requests_drop(&((struct template_ *)self)->request);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

const struct core_template *core_template_of(struct core_state *state, PyObject *template_)
{
    if (Py_IS_TYPE(template_, state->template_type))
        return &((struct template_ *)template_)->is;
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
