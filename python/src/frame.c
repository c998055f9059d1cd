/* SPDX-License-Identifier: MIT */
/*
 * frame.c - frames without buffers, which most tasks and results are: a byte (op << 4 | form) and
 * bytes or a pickle.  codec.py has the whole format, and does all that is refused here.
 */
#include "core.h"

#include <string.h>

enum { RAW, PICKLE }; /* forms */

#define PROTOCOL 5   /* of pickle */
#define MEMBERS 32   /* of a tuple that is looked through */
#define TEXT_MAX 1000 /* characters: pickle is not worth a second try for longer ones */

/* A function of pickle, imported with its first use. */
static int get(PyObject **at, const char *name)
{
    PyObject *from = *at ? NULL : PyImport_ImportModule("_pickle");

    if (from)
        *at = PyObject_GetAttrString(from, name);
    Py_XDECREF(from);
    return *at ? 0 : -1;
}

/* ---- values of frames ---- */

bool core_frame_is_plain(const unsigned char *frame, size_t size)
{
    return size > 0 && *frame >> 4 < CORE_OPS && (*frame & 15) <= PICKLE;
}

PyObject *core_frame_value(struct core_state *state, const unsigned char *frame, size_t size)
{
    PyObject *view, *value;

    if ((*frame & 15) == RAW)
        return PyBytes_FromStringAndSize((const char *)frame + 1, (Py_ssize_t)size - 1);
    if (get(&state->loads, "loads"))
        return NULL;
    view = PyMemoryView_FromMemory((char *)(uintptr_t)frame + 1, (Py_ssize_t)size - 1, PyBUF_READ);
    if (!view)
        return NULL;
    value = PyObject_CallFunctionObjArgs(state->loads, view, NULL);
    Py_DECREF(view);
    return value;
}

static PyObject *decode(PyObject *frame)
{
    PyObject *codec = PyImport_ImportModule("gpudispatch.codec"), *both = NULL, *value = NULL;

    if (codec)
        both = PyObject_CallMethod(codec, "decode", "O", frame);
    if (both)
        value = PySequence_GetItem(both, 1);
    Py_XDECREF(both);
    Py_XDECREF(codec);
    return value;
}

PyObject *core_frame_load(struct core_state *state, PyObject *frame)
{
    const unsigned char *data;

    if (frame == Py_None) /* a result of no bytes */
        return PyBytes_FromStringAndSize(NULL, 0);
    if (!PyBytes_CheckExact(frame))
        return decode(frame);
    data = (const unsigned char *)PyBytes_AsString(frame);
    if (!core_frame_is_plain(data, (size_t)PyBytes_Size(frame)))
        return decode(frame);
    return core_frame_value(state, data, (size_t)PyBytes_Size(frame));
}

/* ---- frames of values ---- */

/* Whether pickle writes it as it is: nothing in it has a buffer, or a reducer of the codec. */
static bool is_plain(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);

    return value == Py_None || type == &PyLong_Type || type == &PyFloat_Type ||
           type == &PyBool_Type || type == &PyComplex_Type ||
           (type == &PyUnicode_Type && PyUnicode_GetLength(value) <= TEXT_MAX);
}

static bool are_plain(PyObject *tuple)
{
    Py_ssize_t n = PyTuple_Size(tuple);

    if (n >= MEMBERS)
        return false;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!is_plain(PyTuple_GetItem(tuple, i)))
            return false;
    return true;
}

/* A call is (key, arguments, keyword arguments); its key is bytes. */
static bool is_plain_call(PyObject *value)
{
    PyObject *args, *kw;

    if (!PyTuple_CheckExact(value) || PyTuple_Size(value) != 3)
        return false;
    args = PyTuple_GetItem(value, 1);
    kw = PyTuple_GetItem(value, 2);
    return PyTuple_CheckExact(args) && are_plain(args) && PyDict_CheckExact(kw) &&
           PyDict_Size(kw) == 0;
}

static PyObject *join(unsigned char head, PyObject *bytes, size_t most)
{
    size_t n = (size_t)PyBytes_Size(bytes);
    PyObject *frame = n < most ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n + 1) : NULL;

    if (!frame)
        return NULL;
    *PyBytes_AsString(frame) = (char)head;
    memcpy(PyBytes_AsString(frame) + 1, PyBytes_AsString(bytes), n);
    return frame;
}

PyObject *core_frame_pack(struct core_state *state, unsigned op, PyObject *value, size_t most)
{
    PyObject *bytes, *frame = NULL;
    bool plain = PyTuple_CheckExact(value) && op != CORE_CALL ? are_plain(value) : is_plain(value);

    if (PyBytes_CheckExact(value)) {
        frame = join((unsigned char)(op << 4 | RAW), value, most);
    } else if ((plain || (op == CORE_CALL && is_plain_call(value))) &&
               get(&state->dumps, "dumps") == 0) {
        if (!state->protocol)
            state->protocol = PyLong_FromLong(PROTOCOL);
        bytes = state->protocol ? PyObject_CallFunctionObjArgs(state->dumps, value,
                                                               state->protocol, NULL)
                                : NULL;
        if (bytes && PyBytes_CheckExact(bytes))
            frame = join((unsigned char)(op << 4 | PICKLE), bytes, most);
        Py_XDECREF(bytes);
    }
    PyErr_Clear(); /* the codec meets it again */
    return frame;
}

/* ---- functions of the module ---- */

static PyObject *load(PyObject *module, PyObject *frame)
{
    return core_frame_load(core_state_of_module(module), frame);
}

static PyObject *pack(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    unsigned long op;
    PyObject *frame;

    if (n != 2) {
        PyErr_SetString(PyExc_TypeError, "pack(op, value)");
        return NULL;
    }
    op = PyLong_AsUnsignedLong(args[0]);
    if (PyErr_Occurred())
        return NULL;
    if (op >= CORE_OPS) {
        PyErr_Format(PyExc_ValueError, "op is %lu, the maximum is %u", op, CORE_OPS - 1);
        return NULL;
    }
    frame = core_frame_pack(core_state_of_module(module), (unsigned)op, args[1],
                            CORE_COPY_UNLOCKED);
    if (frame)
        return frame;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    { "load", load, METH_O, "load(frame): the value of a result; None is one of no bytes" },
    { "pack", (PyCFunction)(void (*)(void))pack, METH_FASTCALL,
      "pack(op, value): a small frame, or None where the value is for codec.encode" },
    { NULL, NULL, 0, NULL },
};

int core_add_frame_functions(PyObject *module, struct core_state *state)
{
    (void)state;
    return PyModule_AddFunctions(module, functions);
}
