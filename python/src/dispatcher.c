/* SPDX-License-Identifier: MIT */
/*
 * dispatcher.c - Dispatcher: the type, its life, and the calls that neither submit nor wait for
 * events.  The files under it do: poll.c waits, submit.c submits, and settle.c ends futures.  Of a
 * pooled dispatcher, classes.c has the classes, and external.c the work of the host itself.
 *
 * Thread rule: any thread may call any method.  One thread at a time is inside poll; a second
 * gets an error (EBUSY).  destroy takes the handle out first, so that later calls find none, and
 * refuses (EBUSY) while another call is inside.
 */
#include "classes.h"
#include "entry.h"
#include "external.h"
#include "polling.h"
#include "submit.h"

#include <sys/eventfd.h>
#include <unistd.h>

/* ready() has no descriptor to sleep on: it looks for signals this often. */
#define SIGNAL_NS 20000000ull

/* ---- life ---- */

static int prepare(struct core_dispatcher *self)
{
    const struct gpud_event e = GPUD_EVENT_INIT;

    self->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->events = PyMem_Malloc(CORE_EVENTS_MAX * sizeof e);
    self->history = core_history_new(core_now());
    if (self->wake_fd < 0 || !self->events || !self->history) {
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    for (size_t i = 0; i < CORE_EVENTS_MAX; i++)
        self->events[i] = e;
    return 0;
}

static int create(struct core_dispatcher *self, struct core_state *state, PyObject *options)
{
    struct gpud_options o = GPUD_OPTIONS_INIT;
    struct gpud_error why = GPUD_ERROR_INIT;
    gpud_dispatcher *d = NULL;
    PyObject *keep = PyList_New(0);
    int r;

    if (!keep || core_options_fill(state, &o, options, keep)) {
        Py_XDECREF(keep);
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    r = gpud_dispatcher_create(&d, &o, &why);
    Py_END_ALLOW_THREADS
    Py_DECREF(keep);
    if (r) {
        core_raise(state, r, &why);
        return -1;
    }
    self->d = d;
    self->pooled = o.pooled != 0;
    self->fd = gpud_dispatcher_fd(d);
    if (self->fd >= 0)
        return 0;
    core_raise(state, self->fd, NULL);
    return -1;
}

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    static char *names[] = { "options", NULL };
    struct core_dispatcher *self;
    PyObject *options;

    if (!PyArg_ParseTupleAndKeywords(args, kw, "O!", names, &PyDict_Type, &options))
        return NULL;
    self = (struct core_dispatcher *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self)
        return NULL;
    self->wake_fd = -1;
    self->shared = PyList_New(0);
    if (self->shared && core_keep_shared(self, options) == 0 && prepare(self) == 0 &&
        create(self, state_of(self), options) == 0)
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static void dealloc(PyObject *o)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    PyTypeObject *type = Py_TYPE(o);
    gpud_dispatcher *d = self->d;

    self->d = NULL;
    if (d) {
        Py_BEGIN_ALLOW_THREADS
        (void)gpud_dispatcher_destroy(&d, NULL);
        Py_END_ALLOW_THREADS
    }
    if (self->wake_fd >= 0)
        close(self->wake_fd);
    for (uint32_t i = 0; i < self->n_names; i++)
        Py_XDECREF(self->names[i].string);
    PyMem_Free(self->names);
    PyMem_Free(self->events);
    core_history_free(self->history);
    Py_XDECREF(self->shared);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

static PyObject *destroy(PyObject *o, PyObject *unused)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    gpud_dispatcher *d = self->d;
    uint64_t left = 0;
    int r;

    (void)unused;
    if (!d)
        return PyLong_FromLong(0);
    self->d = NULL;
    if (atomic_load(&self->users)) {
        self->d = d;
        return core_raise(state_of(self), GPUD_EBUSY, NULL);
    }
    Py_BEGIN_ALLOW_THREADS
    r = gpud_dispatcher_destroy(&d, &left);
    Py_END_ALLOW_THREADS
    if (!r)
        return PyLong_FromUnsignedLongLong(left);
    self->d = d;
    return core_raise(state_of(self), r, NULL);
}

/* ---- the rest ---- */

static PyObject *fd(PyObject *o, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLong(((struct core_dispatcher *)o)->fd);
}

static PyObject *cancel(PyObject *o, PyObject *args)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    unsigned long long id;
    gpud_dispatcher *d;
    int hard, r;

    if (!PyArg_ParseTuple(args, "Kp", &id, &hard) || !(d = core_enter(self)))
        return NULL;
    r = gpud_dispatcher_cancel(d, id, hard ? GPUD_CANCEL_HARD : GPUD_CANCEL_SOFT);
    core_leave(self);
    if (r && r != GPUD_ENOTFOUND)
        return core_raise(state_of(self), r, NULL);
    return PyBool_FromLong(!r);
}

static PyObject *close_intake(PyObject *o, PyObject *args)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    unsigned long long limit = 0;
    unsigned int how;
    gpud_dispatcher *d;
    int r;

    if (!PyArg_ParseTuple(args, "I|K", &how, &limit) || !(d = core_enter(self)))
        return NULL;
    r = gpud_dispatcher_close(d, how, limit);
    core_leave(self);
    return core_answer(self, r, NULL);
}

static PyObject *ready(PyObject *o, PyObject *args)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    struct gpud_error why = GPUD_ERROR_INIT;
    unsigned long long timeout;
    uint64_t until, left;
    unsigned int slots;
    gpud_dispatcher *d;
    bool interrupted;
    int r;

    if (!PyArg_ParseTuple(args, "IK", &slots, &timeout) || !(d = core_enter(self)))
        return NULL;
    until = core_until(timeout);
    do {
        left = core_left(until);
        Py_BEGIN_ALLOW_THREADS
        r = gpud_dispatcher_ready(d, slots, left < SIGNAL_NS ? left : SIGNAL_NS, &why);
        Py_END_ALLOW_THREADS
        interrupted = PyErr_CheckSignals() != 0;
    } while (r == GPUD_ETIMEOUT && left > SIGNAL_NS && !interrupted);
    core_leave(self);
    if (interrupted)
        return NULL;
    if (r == GPUD_ETIMEOUT)
        Py_RETURN_FALSE;
    if (r)
        return core_raise(state_of(self), r, &why);
    Py_RETURN_TRUE;
}

typedef PyObject *(rows_fn)(struct core_state *, gpud_dispatcher *);

static PyObject *rows(PyObject *o, rows_fn *make)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    gpud_dispatcher *d = core_enter(self);
    PyObject *r;

    if (!d)
        return NULL;
    r = make(state_of(self), d);
    core_leave(self);
    return r;
}

static PyObject *stats(PyObject *o, PyObject *unused)
{
    (void)unused;
    return rows(o, core_rows_stats);
}

static PyObject *slots(PyObject *o, PyObject *unused)
{
    (void)unused;
    return rows(o, core_rows_slots);
}

static PyObject *running(PyObject *o, PyObject *unused)
{
    (void)unused;
    return rows(o, core_rows_running);
}

static PyObject *devices(PyObject *o, PyObject *unused)
{
    (void)unused;
    return rows(o, core_rows_devices);
}

/* Also after destroy. */
static PyObject *history(PyObject *o, PyObject *unused)
{
    (void)unused;
    return core_history_rows(((struct core_dispatcher *)o)->history);
}

static PyObject *classes(PyObject *o, PyObject *unused)
{
    (void)unused;
    return rows(o, core_rows_classes);
}

typedef int(device_fn)(gpud_dispatcher *, const char *);

static PyObject *device_call(PyObject *o, PyObject *args, device_fn *call)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    gpud_dispatcher *d;
    const char *name;
    int r;

    if (!PyArg_ParseTuple(args, "s", &name) || !(d = core_enter(self)))
        return NULL;
    r = call(d, name);
    core_leave(self);
    return core_answer(self, r, NULL);
}

static PyObject *device_drain(PyObject *o, PyObject *args)
{
    return device_call(o, args, gpud_dispatcher_device_drain);
}

static PyObject *device_pause(PyObject *o, PyObject *args)
{
    return device_call(o, args, gpud_dispatcher_device_pause);
}

static PyObject *device_return(PyObject *o, PyObject *args)
{
    return device_call(o, args, gpud_dispatcher_device_return);
}

static PyMethodDef methods[] = {
    { "submit", (PyCFunction)(void (*)(void))core_submit, METH_FASTCALL,
      "submit(template, tag, data): the task's id, or 0 while there is no room" },
    { "submit_many", (PyCFunction)(void (*)(void))core_submit_many, METH_FASTCALL,
      "submit_many(template, first_tag, list): the ids of the accepted ones" },
    { "send", core_send_queue, METH_VARARGS,
      "send(queue, futures): submits (template, tag, frame)s; False while there is no room" },
    { "poll", core_poll, METH_VARARGS,
      "poll(timeout_ns, inbox): extends inbox by Events; None after the last one" },
    { "settle", core_settle_method, METH_VARARGS,
      "settle(inbox, futures, frames): ends futures; True where an event needs more than that" },
    { "sort", core_sort_method, METH_VARARGS,
      "sort(inbox, ready, session): moves all; False where some need another look" },
    { "share", core_share_method, METH_VARARGS,
      "share(inbox, {session: ready}): moves all; False where some need another look" },
    { "wake", core_wake, METH_NOARGS, "wake(): ends the poll of another thread" },
    { "attend", core_attend, METH_VARARGS,
      "attend(timeout_ns, tag, desk): polls and ends futures until that one is done" },
    { "attends", core_attends, METH_NOARGS, "attends(): whether this thread is inside attend" },
    { "stand_by", core_stand_by, METH_VARARGS,
      "stand_by(grace_ns, timeout_ns): False where others read, and there is other work" },
    { "fd", fd, METH_NOARGS, "fd(): the descriptor that is readable while poll has news" },
    { "cancel", cancel, METH_VARARGS, "cancel(id, hard): False where no such task is live" },
    { "close", close_intake, METH_VARARGS, "close(how, limit_ns=0): ends intake" },
    { "destroy", destroy, METH_NOARGS, "destroy(): ends the workers and frees everything" },
    { "ready", ready, METH_VARARGS, "ready(slots, timeout_ns): False after the time" },
    { "stats", stats, METH_NOARGS, "stats(): the counters" },
    { "slots", slots, METH_NOARGS, "slots(): one row per slot" },
    { "running", running, METH_NOARGS, "running(): the ids of the tasks that run" },
    { "devices", devices, METH_NOARGS, "devices(): one row per device" },
    { "device_drain", device_drain, METH_VARARGS, "device_drain(name)" },
    { "device_pause", device_pause, METH_VARARGS, "device_pause(name): it starts nothing" },
    { "device_return", device_return, METH_VARARGS, "device_return(name)" },
    { "class_add", core_class_add, METH_VARARGS,
      "class_add(name, fields, options, needs): adds a class to a pooled dispatcher" },
    { "class_set", core_class_set, METH_VARARGS, "class_set(name, what)" },
    { "class_remove", core_class_remove, METH_VARARGS, "class_remove(name, how)" },
    { "classes", classes, METH_NOARGS, "classes(): one row per class" },
    { "history", history, METH_NOARGS, "history(): the work on each device in the last 10 minutes" },
    { "explain", core_explain, METH_VARARGS,
      "explain(id, template): one row per reason why a task does not start" },
    { "started", (PyCFunction)(void (*)(void))core_started, METH_VARARGS | METH_KEYWORDS,
      "started(id, attempt, pid=0, session=0): a granted task runs" },
    { "decline", (PyCFunction)(void (*)(void))core_decline, METH_VARARGS | METH_KEYWORDS,
      "decline(id, attempt, not_before=0): returns a grant" },
    { "ended", (PyCFunction)(void (*)(void))core_ended, METH_VARARGS | METH_KEYWORDS,
      "ended(id, attempt, outcome, code=0, text=None, result=None): its devices are free" },
    { "progress", (PyCFunction)(void (*)(void))core_progress, METH_VARARGS | METH_KEYWORDS,
      "progress(id, attempt, fraction, text=None): how far a task is that has started" },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot type_slots[] = {
    { Py_tp_new, new },
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_doc, "A dispatcher of the library." },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "gpudispatch._core.Dispatcher",
    .basicsize = sizeof(struct core_dispatcher),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = type_slots,
};

static PyMethodDef functions[] = {
    { "machine", core_rows_machine, METH_NOARGS, "machine(): one row per GPU of this machine" },
    { "counters", core_rows_counters, METH_NOARGS,
      "counters(): (name, unit, kind, help) of each counter in stats()" },
    { NULL, NULL, 0, NULL },
};

int core_add_dispatcher_types(PyObject *module, struct core_state *state)
{
    if (core_add_type(module, &state->dispatcher_type, &spec))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
