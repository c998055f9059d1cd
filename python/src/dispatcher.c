/* SPDX-License-Identifier: MIT */
/*
 * dispatcher.c - Dispatcher: a gpud_dispatcher, and the one way to wait for its events.
 *
 * Thread rule: any thread may call any method.  One thread at a time is inside poll; a second
 * gets an error (EBUSY).  destroy takes the handle out first, so that later calls find none, and
 * refuses (EBUSY) while another call is inside.
 */
#include "dispatcher.h"

#include <sys/eventfd.h>
#include <unistd.h>

/* ready() has no descriptor to sleep on: it looks for signals this often. */
#define SIGNAL_NS 20000000ull
#define MANY_MAX 64
#define EXPIRES_LEAST 1000 /* ns: the library takes no less */

gpud_dispatcher *core_enter(struct core_dispatcher *self)
{
    gpud_dispatcher *d;

    atomic_fetch_add(&self->users, 1);
    d = self->d;
    if (d)
        return d;
    atomic_fetch_sub(&self->users, 1);
    core_raise(state_of(self), GPUD_ECLOSED, NULL);
    return NULL;
}

void core_leave(struct core_dispatcher *self)
{
    atomic_fetch_sub(&self->users, 1);
}

/* ---- life ---- */

static int prepare(struct core_dispatcher *self)
{
    const struct gpud_event e = GPUD_EVENT_INIT;

    self->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->events = PyMem_Malloc(CORE_EVENTS_MAX * sizeof e);
    if (self->wake_fd < 0 || !self->events) {
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
    self->shared = PyDict_GetItemString(options, "setup_shared");
    Py_XINCREF(self->shared);
    if (prepare(self) == 0 && create(self, state_of(self), options) == 0)
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

/* ---- submit ---- */

/* Copies a frame of several parts into a lent buffer and submits that. */
static int submit_parts(gpud_dispatcher *d, struct gpud_task_desc *t, const struct core_parts *p,
                        uint64_t *ret_id, struct gpud_error *why)
{
    void *to = NULL;
    int r = gpud_dispatcher_buffer_alloc(d, p->size, &to);

    if (r)
        return r;
    core_parts_copy(p, to);
    t->data = to;
    t->size = p->size;
    r = gpud_dispatcher_submit(d, t, 0, ret_id, why);
    if (r)
        (void)gpud_dispatcher_buffer_free(d, to);
    return r;
}

/* Returns the id, 0 where there is no room, -1 and an exception on failure. */
static int64_t submit_one(struct core_dispatcher *self, gpud_dispatcher *d,
                          const struct gpud_task_desc *desc, uint64_t tag, PyObject *data)
{
    struct gpud_task_desc t = *desc;
    struct gpud_error why = GPUD_ERROR_INIT;
    uint64_t id = 0;
    int r;

    t.tag = tag;
    if (PyBytes_CheckExact(data) && PyBytes_Size(data) < CORE_COPY_UNLOCKED) {
        t.data = PyBytes_AsString(data);
        t.size = (uint64_t)PyBytes_Size(data);
        r = gpud_dispatcher_submit(d, &t, 0, &id, &why);
    } else {
        struct core_parts p;
        if (core_parts_hold(&p, data))
            return -1;
        Py_BEGIN_ALLOW_THREADS
        r = submit_parts(d, &t, &p, &id, &why);
        Py_END_ALLOW_THREADS
        core_parts_release(&p);
    }
    if (!r)
        return (int64_t)id;
    if (r == GPUD_EFULL)
        return 0;
    core_raise(state_of(self), r, &why);
    return -1;
}

static PyObject *submit(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    const struct gpud_task_desc *desc;
    unsigned long long tag;
    gpud_dispatcher *d;
    int64_t id;

    if (n != 3) {
        PyErr_SetString(PyExc_TypeError, "submit(template, tag, data)");
        return NULL;
    }
    desc = core_template_desc(state_of(self), args[0]);
    tag = PyLong_AsUnsignedLongLong(args[1]);
    if (!desc || PyErr_Occurred() || !(d = core_enter(self)))
        return NULL;
    id = submit_one(self, d, desc, tag, args[2]);
    core_leave(self);
    return id < 0 ? NULL : PyLong_FromLongLong(id);
}

/* The time in the package, since `queued`, counts for option expires. */
static struct gpud_task_desc aged(const struct gpud_task_desc *desc, PyObject *queued)
{
    struct gpud_task_desc t = *desc;
    uint64_t waited;

    if (t.expires == 0 || t.expires == GPUD_NEVER)
        return t;
    waited = core_until(0) - PyLong_AsUnsignedLongLong(queued);
    t.expires = t.expires > waited + EXPIRES_LEAST ? t.expires - waited : EXPIRES_LEAST;
    return t;
}

/* The first of a queue of (template, tag, frame, time in ns): 1 once it is gone, 0 where there is
 * no room, -1 and an exception where it is refused.  A task whose future was cancelled is
 * dropped. */
static int send_first(struct core_dispatcher *self, gpud_dispatcher *d, PyObject *queue,
                      PyObject *futures)
{
    PyObject *first = PySequence_GetItem(queue, 0), *number, *future;
    const struct gpud_task_desc *desc;
    int64_t id = -1;
    int r = -1;

    if (!first)
        return -1;
    desc = core_template_desc(state_of(self), PyTuple_GetItem(first, 0));
    future = desc ? PyDict_GetItemWithError(futures, PyTuple_GetItem(first, 1)) : NULL;
    Py_XINCREF(future);
    if (future) {
        const struct gpud_task_desc t = aged(desc, PyTuple_GetItem(first, 3));
        id = submit_one(self, d, &t, PyLong_AsUnsignedLongLong(PyTuple_GetItem(first, 1)),
                        PyTuple_GetItem(first, 2));
    } else if (!PyErr_Occurred())
        r = 1;
    if (id >= 0) {
        r = id > 0;
        number = PyLong_FromLongLong(id);
        if (!number || (id > 0 && PyObject_SetAttrString(future, "_id", number)))
            r = -1;
        Py_XDECREF(number);
    }
    if (r > 0) {
        number = PyObject_CallMethod(queue, "popleft", NULL);
        r = number ? 1 : -1;
        Py_XDECREF(number);
    }
    Py_XDECREF(future);
    Py_DECREF(first);
    return r;
}

int core_send(struct core_dispatcher *self, gpud_dispatcher *d, PyObject *queue, PyObject *futures)
{
    Py_ssize_t n;
    int r = 1;

    while ((n = PyObject_Size(queue)) > 0 && (r = send_first(self, d, queue, futures)) > 0)
        ;
    return n < 0 ? -1 : r;
}

/* In one call, so that nothing is sent twice where a KeyboardInterrupt comes between two tasks. */
static PyObject *send_queue(PyObject *o, PyObject *args)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    PyObject *queue, *futures;
    gpud_dispatcher *d;
    int r;

    if (!PyArg_ParseTuple(args, "OO!", &queue, &PyDict_Type, &futures) ||
        !(d = core_enter(self)))
        return NULL;
    r = core_send(self, d, queue, futures);
    core_leave(self);
    return r < 0 ? NULL : PyBool_FromLong(r);
}

/* The small bytes at the list's place `at` and behind it, up to MANY_MAX. */
static size_t gather(struct gpud_task_desc *tasks, const struct gpud_task_desc *desc,
                     uint64_t tag, PyObject *list, Py_ssize_t at, Py_ssize_t end)
{
    size_t n = 0;

    for (; n < MANY_MAX && at < end; n++, at++) {
        PyObject *data = PyList_GetItem(list, at);
        if (!PyBytes_CheckExact(data) || PyBytes_Size(data) >= CORE_COPY_UNLOCKED)
            break;
        tasks[n] = *desc;
        tasks[n].tag = tag + n;
        tasks[n].data = PyBytes_AsString(data);
        tasks[n].size = (uint64_t)PyBytes_Size(data);
    }
    return n;
}

static int append_id(PyObject *ids, uint64_t id)
{
    PyObject *number = PyLong_FromUnsignedLongLong(id);
    int r = number ? PyList_Append(ids, number) : -1;

    Py_XDECREF(number);
    return r;
}

/* Submits the list's members from *at on; returns 1 while there is room and more of them. */
static int submit_some(struct core_dispatcher *self, gpud_dispatcher *d,
                       const struct gpud_task_desc *desc, uint64_t first_tag, PyObject *list,
                       Py_ssize_t *at, PyObject *ids)
{
    struct gpud_task_desc tasks[MANY_MAX];
    struct gpud_error why = GPUD_ERROR_INIT;
    uint64_t id[MANY_MAX];
    Py_ssize_t end = PyList_Size(list);
    size_t accepted = 0, n = gather(tasks, desc, first_tag + (uint64_t)*at, list, *at, end);
    int r;

    if (n == 0) {
        int64_t one = submit_one(self, d, desc, first_tag + (uint64_t)*at,
                                 PyList_GetItem(list, *at));
        if (one <= 0)
            return (int)one;
        ++*at;
        return append_id(ids, (uint64_t)one) ? -1 : *at < end;
    }
    r = gpud_dispatcher_submit_many(d, tasks, n, 0, id, &accepted, &why);
    for (size_t i = 0; i < accepted; i++)
        if (append_id(ids, id[i]))
            return -1;
    *at += (Py_ssize_t)accepted;
    if (r && r != GPUD_EFULL) {
        core_raise(state_of(self), r, &why);
        return -1;
    }
    return !r && *at < end;
}

static PyObject *submit_many(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    const struct gpud_task_desc *desc;
    unsigned long long tag;
    gpud_dispatcher *d;
    Py_ssize_t at = 0;
    PyObject *ids;
    int more;

    if (n != 3 || !PyList_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "submit_many(template, first_tag, list)");
        return NULL;
    }
    desc = core_template_desc(state_of(self), args[0]);
    tag = PyLong_AsUnsignedLongLong(args[1]);
    if (!desc || PyErr_Occurred() || !(ids = PyList_New(0)))
        return NULL;
    d = core_enter(self);
    more = d ? PyList_Size(args[2]) > 0 : -1;
    while (more > 0)
        more = submit_some(self, d, desc, tag, args[2], &at, ids);
    if (d)
        core_leave(self);
    if (more < 0 && PyList_Size(ids) == 0) {
        Py_DECREF(ids);
        return NULL;
    }
    /* what was accepted is told; the refused one is met again by the next call */
    PyErr_Clear();
    return ids;
}

/* ---- the rest ---- */

static PyObject *answer(struct core_dispatcher *self, int r, const struct gpud_error *why)
{
    if (r < 0)
        return core_raise(state_of(self), r, why);
    Py_RETURN_NONE;
}

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
    return answer(self, r, NULL);
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
    return answer(self, r, NULL);
}

static PyObject *device_drain(PyObject *o, PyObject *args)
{
    return device_call(o, args, gpud_dispatcher_device_drain);
}

static PyObject *device_return(PyObject *o, PyObject *args)
{
    return device_call(o, args, gpud_dispatcher_device_return);
}

static PyMethodDef methods[] = {
    { "submit", (PyCFunction)(void (*)(void))submit, METH_FASTCALL,
      "submit(template, tag, data): the task's id, or 0 while there is no room" },
    { "submit_many", (PyCFunction)(void (*)(void))submit_many, METH_FASTCALL,
      "submit_many(template, first_tag, list): the ids of the accepted ones" },
    { "send", send_queue, METH_VARARGS,
      "send(queue, futures): submits (template, tag, frame)s; False while there is no room" },
    { "poll", core_poll, METH_VARARGS,
      "poll(timeout_ns, inbox): extends inbox by Events; None after the last one" },
    { "settle", core_settle_method, METH_VARARGS,
      "settle(inbox, futures, frames): ends futures; True where an event needs more than that" },
    { "sort", core_sort_method, METH_VARARGS,
      "sort(inbox, ready, session): moves all; False where some need another look" },
    { "wake", core_wake, METH_NOARGS, "wake(): ends the poll of another thread" },
    { "attend", core_attend, METH_VARARGS,
      "attend(timeout_ns, tag, desk): polls and ends futures until that one is done" },
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
    { "device_return", device_return, METH_VARARGS, "device_return(name)" },
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
