/* SPDX-License-Identifier: MIT */
/* shared.c - Shared: memory of the host that all workers of a pool map read-only. */
#include "core.h"

#include <string.h>

struct shared {
    PyObject_HEAD
    gpud_shared *handle;
};

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char *names[] = { "size", NULL };
    struct core_state *state = PyType_GetModuleState(type);
    struct gpud_error why = GPUD_ERROR_INIT;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct shared *self;
    unsigned long long size;
    gpud_shared *made = NULL;
    int r;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "K", names, &size))
        return NULL;
    self = (struct shared *)alloc(type, 0);
    if (!self)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    r = gpud_shared_create(size, &made, &why);
    Py_END_ALLOW_THREADS
    self->handle = made;
    if (!r)
        return (PyObject *)self;
    Py_DECREF(self);
    return core_raise(state, r, &why);
}

static void dealloc(PyObject *o)
{
    struct shared *self = (struct shared *)o;
    PyTypeObject *type = Py_TYPE(o);

    gpud_shared_destroy(&self->handle);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

gpud_shared *core_shared_handle(struct core_state *state, PyObject *shared)
{
    if (Py_IS_TYPE(shared, state->shared_type))
        return ((struct shared *)shared)->handle;
    PyErr_SetString(PyExc_TypeError, "expected a Shared");
    return NULL;
}

/* The place of n bytes at an offset, in this process and not in one that it has forked. */
static unsigned char *place(struct shared *self, uint64_t offset, uint64_t n)
{
    uint64_t size = gpud_shared_size(self->handle);
    unsigned char *data = gpud_shared_data(self->handle);

    if (data && offset <= size && n <= size - offset)
        return data + offset;
    PyErr_SetString(PyExc_ValueError, "outside the shared memory");
    return NULL;
}

static PyObject *store(PyObject *o, PyObject *args)
{
    unsigned long long index, value;
    unsigned char *at;

    if (!PyArg_ParseTuple(args, "KK", &index, &value))
        return NULL;
    at = place((struct shared *)o, index * sizeof(uint64_t), sizeof(uint64_t));
    if (!at)
        return NULL;
    atomic_store((_Atomic uint64_t *)(void *)at, (uint64_t)value);
    Py_RETURN_NONE;
}

static PyObject *write_parts(PyObject *o, PyObject *args)
{
    struct core_parts parts;
    unsigned long long offset;
    unsigned char *at;
    PyObject *data;

    if (!PyArg_ParseTuple(args, "KO", &offset, &data) || core_parts_hold(&parts, data))
        return NULL;
    at = place((struct shared *)o, offset, parts.size);
    if (at) {
        Py_BEGIN_ALLOW_THREADS
        core_parts_copy(&parts, at);
        Py_END_ALLOW_THREADS
    }
    core_parts_release(&parts);
    if (!at)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    { "store", store, METH_VARARGS, "store(index, value): writes a 64-bit word" },
    { "write", write_parts, METH_VARARGS, "write(offset, frame): writes a frame" },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
    { Py_tp_new, new },
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_doc, "Memory of the host that all workers map read-only." },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "gpudispatch._core.Shared",
    .basicsize = sizeof(struct shared),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int core_add_shared_types(PyObject *module, struct core_state *state)
{
    return core_add_type(module, &state->shared_type, &spec);
}
