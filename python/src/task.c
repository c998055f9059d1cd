/* SPDX-License-Identifier: MIT */
/*
 * task.c - Task: one task in its worker; View: its data, or memory for its result.
 *
 * The objects may outlive the task, user code decides that; the memory does not.  So a closed
 * object refuses, and a View counts who looks at it: what is still seen at the end of the task
 * makes the task an error.
 *
 * Thread rule: the thread that runs process, and threads that user code starts there while that
 * lasts.  Results are set by the first alone.
 */
#include "task.h"
#include "alarm.h"
#include "core.h"
#include "process.h"

#include <stddef.h>
#include <string.h>

/* In front of an array made in place: room for the frame's head and its pickle. */
#define HEAD_ROOM 1024u
/* In the head of a frame of form BUFFERS: where the pickle's size stands, u64. */
#define PICKLE_SIZE_AT 8u

struct view {
    PyObject_HEAD
    unsigned char *data;
    size_t size;
    int readonly;
    Py_ssize_t exports;
};

struct task {
    PyObject_HEAD
    struct core_state *state;
    gpud_task *t;
    struct view *data; /* made when it is read */
    struct view *room; /* of alloc */
    bool alone;        /* no member of a batch, where no task may wait for room */
};

/* ---- View ---- */

static PyObject *view_new(struct core_state *state, void *data, size_t size, int readonly)
{
    PyTypeObject *type = state->view_type;
    struct view *self = (struct view *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);

    if (!self)
        return NULL;
    self->data = data;
    self->size = size;
    self->readonly = readonly;
    return (PyObject *)self;
}

static int view_get(PyObject *o, Py_buffer *view, int flags)
{
    struct view *self = (struct view *)o;

    if (!self->data) {
        view->obj = NULL;
        PyErr_SetString(PyExc_BufferError, "the task has ended, and its memory with it");
        return -1;
    }
    if (PyBuffer_FillInfo(view, o, self->data, (Py_ssize_t)self->size, self->readonly, flags))
        return -1;
    self->exports++;
    return 0;
}

static void view_release(PyObject *o, Py_buffer *view)
{
    (void)view;
    ((struct view *)o)->exports--;
}

static void view_dealloc(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);

    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

static PyType_Slot view_slots[] = {
    { Py_tp_dealloc, view_dealloc },
    { Py_bf_getbuffer, view_get },
    { Py_bf_releasebuffer, view_release },
    { Py_tp_doc, "Memory of a task." },
    { 0, NULL },
};

static PyType_Spec view_spec = {
    .name = "gpudispatch._core.View",
    .basicsize = sizeof(struct view),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = view_slots,
};

/* ---- Task: life ---- */

PyObject *core_task_new(struct core_state *state, gpud_task *t, bool alone)
{
    PyTypeObject *type = state->task_type;
    struct task *self = (struct task *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);

    if (!self)
        return NULL;
    self->state = state;
    self->t = t;
    self->alone = alone;
    return (PyObject *)self;
}

static void close_view(struct view **at)
{
    struct view *view = *at;

    *at = NULL;
    if (!view)
        return;
    view->data = NULL;
    Py_DECREF((PyObject *)view);
}

void core_task_close(PyObject *task)
{
    struct task *self = (struct task *)task;

    self->t = NULL;
    close_view(&self->data);
    close_view(&self->room);
}

static void task_dealloc(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);

    core_task_close(o);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

/* The task, or NULL and an exception. */
static gpud_task *open_task(PyObject *o)
{
    gpud_task *t = ((struct task *)o)->t;

    if (t && !core_process_forked())
        return t;
    PyErr_SetString(PyExc_RuntimeError,
                    t ? "the task belongs to the parent of this process" : "the task has ended");
    return NULL;
}

/* ---- what the task is ---- */

static PyObject *get_id(PyObject *o, void *unused)
{
    gpud_task *t = open_task(o);

    (void)unused;
    return t ? PyLong_FromUnsignedLongLong(gpud_task_id(t)) : NULL;
}

static PyObject *get_tag(PyObject *o, void *unused)
{
    gpud_task *t = open_task(o);

    (void)unused;
    return t ? PyLong_FromUnsignedLongLong(core_tag(gpud_task_tag(t))) : NULL;
}

static PyObject *get_label(PyObject *o, void *unused)
{
    gpud_task *t = open_task(o);
    const char *label;

    (void)unused;
    if (!t)
        return NULL;
    label = gpud_task_label(t);
    return PyUnicode_DecodeUTF8(label, (Py_ssize_t)strlen(label), "replace");
}

static PyObject *get_attempt(PyObject *o, void *unused)
{
    gpud_task *t = open_task(o);

    (void)unused;
    return t ? PyLong_FromUnsignedLong(gpud_task_attempt(t)) : NULL;
}

static PyObject *get_deadline(PyObject *o, void *unused)
{
    gpud_task *t = open_task(o);
    uint64_t at;

    (void)unused;
    if (!t)
        return NULL;
    at = gpud_task_deadline(t);
    if (at == GPUD_NEVER)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(at);
}

/* A memoryview of the task's data.  It counts as a view until it and what was made of it is gone. */
static PyObject *get_data(PyObject *o, void *unused)
{
    struct task *self = (struct task *)o;
    gpud_task *t = open_task(o);

    (void)unused;
    if (!t)
        return NULL;
    if (!self->data)
        self->data = (struct view *)view_new(self->state, (void *)(uintptr_t)gpud_task_data(t),
                                             gpud_task_size(t), 1);
    return self->data ? PyMemoryView_FromObject((PyObject *)self->data) : NULL;
}

Py_ssize_t core_task_views(PyObject *task)
{
    const struct task *self = (struct task *)task;

    return (self->data ? self->data->exports : 0) + (self->room ? self->room->exports : 0);
}

static PyObject *views(PyObject *o, PyObject *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(core_task_views(o));
}

static PyObject *expired(PyObject *o, PyObject *unused)
{
    gpud_task *t = open_task(o);

    (void)unused;
    return t ? PyBool_FromLong(gpud_task_expired(t)) : NULL;
}

static PyObject *cancelled(PyObject *o, PyObject *unused)
{
    gpud_task *t = open_task(o);

    (void)unused;
    return t ? PyBool_FromLong(gpud_task_cancelled(t)) : NULL;
}

static PyObject *stop_asked(PyObject *o, PyObject *unused)
{
    gpud_task *t = open_task(o);

    (void)unused;
    return t ? PyBool_FromLong(core_alarm_stop_asked(t)) : NULL;
}

static PyObject *progress(PyObject *o, PyObject *args)
{
    gpud_task *t = open_task(o);
    const char *text = NULL;
    double fraction;

    if (!t || !PyArg_ParseTuple(args, "d|z:progress", &fraction, &text))
        return NULL;
    if (gpud_task_progress(t, fraction, text) == 0)
        Py_RETURN_NONE;
    PyErr_SetString(PyExc_ValueError, "fraction is not in 0..1");
    return NULL;
}

/* ---- the result ---- */

/* NoRoom has the size as its argument. */
static PyObject *refuse(struct task *self, size_t size)
{
    PyObject *number = PyLong_FromSize_t(size);

    if (number)
        PyErr_SetObject(self->state->no_room, number);
    Py_XDECREF(number);
    return NULL;
}

/* Room for a result; waits for it without the GIL. */
static void *get_room(struct task *self, size_t size)
{
    gpud_task *t = open_task((PyObject *)self);
    void *to = NULL;
    int r;

    if (!t)
        return NULL;
    if (size <= CORE_CELL) {
        r = gpud_task_result_alloc(t, size, &to);
    } else {
        Py_BEGIN_ALLOW_THREADS
        r = gpud_task_result_alloc(t, size, &to);
        Py_END_ALLOW_THREADS
    }
    return r ? (void *)refuse(self, size) : to;
}

/* Whether the second part is the array that alloc has lent, and the first fits in front of it. */
static bool in_place(const struct task *self, const struct core_parts *p)
{
    return self->room && self->room->data && p->n == 2 &&
           p->view[1].buf == self->room->data + HEAD_ROOM &&
           (size_t)p->view[1].len == self->room->size - HEAD_ROOM &&
           (size_t)p->view[0].len <= HEAD_ROOM &&
           (size_t)p->view[0].len >= PICKLE_SIZE_AT + sizeof(uint64_t);
}

/* Writes the head in front of the array.  What follows a pickle's end is ignored when it is read,
 * so the pickle is made as long as the room is. */
static void write_head(struct task *self, const struct core_parts *p)
{
    unsigned char *to = self->room->data;
    const size_t n = (size_t)p->view[0].len;
    uint64_t size;

    memcpy(to, p->view[0].buf, n);
    memset(to + n, 0, HEAD_ROOM - n);
    memcpy(&size, to + PICKLE_SIZE_AT, sizeof size);
    size += HEAD_ROOM - n;
    memcpy(to + PICKLE_SIZE_AT, &size, sizeof size);
}

static int set_parts(struct task *self, const struct core_parts *p)
{
    unsigned char *to;

    if (in_place(self, p)) {
        write_head(self, p);
        return 0;
    }
    /* The bytes of an array made in place stay where they are until the next room is taken, and
     * this one lies elsewhere. */
    to = get_room(self, p->size);
    if (!to)
        return -1;
    if (p->size < CORE_COPY_UNLOCKED) {
        core_parts_copy(p, to);
    } else {
        Py_BEGIN_ALLOW_THREADS
        core_parts_copy(p, to);
        Py_END_ALLOW_THREADS
    }
    return 0;
}

static PyObject *result(PyObject *o, PyObject *data)
{
    struct task *self = (struct task *)o;
    struct core_parts p;
    int r;

    if (PyBytes_CheckExact(data) && PyBytes_Size(data) <= (Py_ssize_t)CORE_CELL) {
        gpud_task *t = open_task(o);
        if (!t)
            return NULL;
        r = gpud_task_result_set(t, PyBytes_AsString(data), (size_t)PyBytes_Size(data));
        if (r)
            return refuse(self, (size_t)PyBytes_Size(data));
        Py_RETURN_NONE;
    }
    if (core_parts_hold(&p, data))
        return NULL;
    r = set_parts(self, &p);
    core_parts_release(&p);
    if (r)
        return NULL;
    Py_RETURN_NONE;
}

/* Memory for an array that becomes the result where it lies: at most once in a task, since memory
 * of an earlier call is free from then on. */
static PyObject *alloc(PyObject *o, PyObject *arg)
{
    struct task *self = (struct task *)o;
    Py_ssize_t size = PyLong_AsSsize_t(arg);
    PyObject *whole, *part = NULL, *slice = NULL, *from = NULL;
    unsigned char *to;

    if (size < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "size is negative");
        return NULL;
    }
    if (self->room || !self->alone || !core_alarm_on_main_thread()) {
        PyErr_SetString(PyExc_RuntimeError, "the task's memory is lent already");
        return NULL;
    }
    to = get_room(self, (size_t)size + HEAD_ROOM);
    if (!to || !(self->room = (struct view *)view_new(self->state, to, (size_t)size + HEAD_ROOM, 0)))
        return NULL;
    whole = PyMemoryView_FromObject((PyObject *)self->room);
    if (whole && (from = PyLong_FromLong(HEAD_ROOM)) && (slice = PySlice_New(from, NULL, NULL)))
        part = PyObject_GetItem(whole, slice);
    Py_XDECREF(slice);
    Py_XDECREF(from);
    Py_XDECREF(whole);
    return part;
}

static PyObject *fail(PyObject *o, PyObject *args)
{
    gpud_task *t = open_task(o);
    const char *text;
    int code;

    if (!t || !PyArg_ParseTuple(args, "is:fail", &code, &text))
        return NULL;
    (void)gpud_task_fail(t, code, text);
    Py_RETURN_NONE;
}

static PyMethodDef task_methods[] = {
    { "expired", expired, METH_NOARGS, "expired(): whether the task's limit has expired" },
    { "cancelled", cancelled, METH_NOARGS, "cancelled(): whether the host has cancelled the task" },
    { "stop_asked", stop_asked, METH_NOARGS, "stop_asked(): whether Future.stop() was called" },
    { "progress", progress, METH_VARARGS, "progress(fraction, text=None)" },
    { "result", result, METH_O, "result(frame): bytes, or a list of parts" },
    { "alloc", alloc, METH_O, "alloc(size): a writable view of memory for the result" },
    { "fail", fail, METH_VARARGS, "fail(code, text): the task ends as an error" },
    { "views", views, METH_NOARGS, "views(): how many views of the task's memory there are" },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef task_getset[] = {
    { "id", get_id, NULL, "the id, as in the host", NULL },
    { "tag", get_tag, NULL, "the tag, as in the host", NULL },
    { "label", get_label, NULL, "the label, or \"\"", NULL },
    { "attempt", get_attempt, NULL, "the number of this attempt, from 1", NULL },
    { "deadline", get_deadline, NULL, "when the limit expires, in ns; None: never", NULL },
    { "data", get_data, NULL, "a memoryview of the frame", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot task_slots[] = {
    { Py_tp_dealloc, task_dealloc },
    { Py_tp_methods, task_methods },
    { Py_tp_getset, task_getset },
    { Py_tp_doc, "A task, in the worker that runs it." },
    { 0, NULL },
};

static PyType_Spec task_spec = {
    .name = "gpudispatch._core.Task",
    .basicsize = sizeof(struct task),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = task_slots,
};

int core_add_task_types(PyObject *module, struct core_state *state)
{
    state->no_room = PyErr_NewExceptionWithDoc(
        "gpudispatch._core.NoRoom", "The worker's share of payload_budget has no room.",
        PyExc_MemoryError, NULL);
    if (!state->no_room || PyModule_AddObjectRef(module, "NoRoom", state->no_room))
        return -1;
    if (core_add_type(module, &state->view_type, &view_spec))
        return -1;
    return core_add_type(module, &state->task_type, &task_spec);
}
