/* SPDX-License-Identifier: MIT */
/*
 * submit.c - Dispatcher: the methods that submit tasks.
 *
 *   submit       one task
 *   submit_many  a list of tasks of one template
 *   send         a queue of tasks that wait in the package for room in the library
 *
 * There is room for a task while the library has room, and its class has not used up its quota: the
 * classes of a pooled dispatcher share one queue there, and none of them is to fill it alone.
 */
#include "submit.h"
#include "core.h"

#define MANY_MAX 64
#define EXPIRES_LEAST 1000 /* ns: the library takes no less */

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

/* Takes places for up to n tasks, before the library gets them: their outcomes may come out of it
 * before the call returns.  Returns how many; fewer than n only where the quota is used up. */
static uint32_t reserve(struct core_dispatcher *self, const struct core_template *of, uint32_t n)
{
    _Atomic uint32_t *live = &self->live[of->number];
    uint32_t now = atomic_load(live), left, taken;

    do {
        left = !of->quota ? n : of->quota > now ? of->quota - now : 0;
        taken = n < left ? n : left;
    } while (!atomic_compare_exchange_weak(live, &now, now + taken));
    return taken;
}

static void give_back(struct core_dispatcher *self, const struct core_template *of, uint32_t n)
{
    atomic_fetch_sub(&self->live[of->number], n);
}

/* A task without its data.  In a pooled dispatcher its age is a time, so that tasks that wait in
 * the package keep their places among those of all classes.  The second try of a task runs in a
 * dispatcher that is not pooled (lone.py), with the template of the first: that has no classes. */
static struct gpud_task_desc task_of(struct core_dispatcher *self, const struct core_template *of,
                                     uint64_t tag, uint64_t queued)
{
    struct gpud_task_desc t = of->desc;

    t.tag = core_tag(tag) | (uint64_t)of->number << CORE_CLASS_SHIFT;
    t.order = self->pooled ? queued : 0;
    if (!self->pooled) {
        t.class_name = NULL;
        t.request = NULL;
    }
    return t;
}

static uint64_t time_of(struct core_dispatcher *self)
{
    return self->pooled ? core_now() : 0;
}

/* Lends small bytes to a task.  External work has no data, and not even an address of none. */
static void lend(struct gpud_task_desc *t, PyObject *bytes)
{
    t->size = (uint64_t)PyBytes_Size(bytes);
    t->data = t->size ? PyBytes_AsString(bytes) : NULL;
}

/* Returns the id, 0 where there is no room, -1 and an exception on failure. */
static int64_t submit_one(struct core_dispatcher *self, gpud_dispatcher *d,
                          const struct core_template *of, const struct gpud_task_desc *task,
                          PyObject *data)
{
    struct gpud_task_desc t = *task;
    struct gpud_error why = GPUD_ERROR_INIT;
    uint64_t id = 0;
    int r;

    if (!reserve(self, of, 1))
        return 0;
    if (PyBytes_CheckExact(data) && PyBytes_Size(data) < CORE_COPY_UNLOCKED) {
        lend(&t, data);
        r = gpud_dispatcher_submit(d, &t, 0, &id, &why);
    } else {
        struct core_parts p;
        if (core_parts_hold(&p, data)) {
            give_back(self, of, 1);
            return -1;
        }
        Py_BEGIN_ALLOW_THREADS
        r = submit_parts(d, &t, &p, &id, &why);
        Py_END_ALLOW_THREADS
        core_parts_release(&p);
    }
    if (!r)
        return (int64_t)id;
    give_back(self, of, 1);
    if (r == GPUD_EFULL)
        return 0;
    core_raise(state_of(self), r, &why);
    return -1;
}

PyObject *core_submit(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    const struct core_template *of;
    struct gpud_task_desc t;
    unsigned long long tag;
    gpud_dispatcher *d;
    int64_t id;

    if (n != 3) {
        PyErr_SetString(PyExc_TypeError, "submit(template, tag, data)");
        return NULL;
    }
    of = core_template_of(state_of(self), args[0]);
    tag = PyLong_AsUnsignedLongLong(args[1]);
    if (!of || PyErr_Occurred() || !(d = core_enter(self)))
        return NULL;
    t = task_of(self, of, tag, time_of(self));
    id = submit_one(self, d, of, &t, args[2]);
    core_leave(self);
    return id < 0 ? NULL : PyLong_FromLongLong(id);
}

/* The time in the package, since `queued`, counts for option expires. */
static void age(struct gpud_task_desc *t, uint64_t queued)
{
    uint64_t waited;

    if (t->expires == 0 || t->expires == GPUD_NEVER)
        return;
    waited = core_now() - queued;
    t->expires = t->expires > waited + EXPIRES_LEAST ? t->expires - waited : EXPIRES_LEAST;
}

/* Submits (template, tag, frame, time in ns), as submit_one. */
static int64_t submit_waiting(struct core_dispatcher *self, gpud_dispatcher *d,
                              const struct core_template *of, PyObject *waiting)
{
    uint64_t tag = PyLong_AsUnsignedLongLong(PyTuple_GetItem(waiting, 1));
    uint64_t queued = PyLong_AsUnsignedLongLong(PyTuple_GetItem(waiting, 3));
    struct gpud_task_desc t = task_of(self, of, tag, queued);

    if (PyErr_Occurred())
        return -1;
    age(&t, queued);
    return submit_one(self, d, of, &t, PyTuple_GetItem(waiting, 2));
}

/* What gets the id of a task, borrowed; NULL where the task is not wanted any more, or with an
 * exception. */
static PyObject *owner_of(PyObject *waiting, PyObject *futures)
{
    PyObject *owner, *number;
    long left;

    if (PyTuple_Size(waiting) < 5)
        return PyDict_GetItemWithError(futures, PyTuple_GetItem(waiting, 1));
    owner = PyTuple_GetItem(waiting, 4);
    number = PyObject_GetAttrString(owner, "_id");
    left = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    return left ? NULL : owner;
}

/* The first of a queue of (template, tag, frame, time in ns): 1 once it is gone, 0 where there is
 * no room, -1 and an exception where it is refused.  A task whose future was cancelled is
 * dropped.  One of a session has no future: its tuple ends with the object that gets its id, or has
 * one, -1, once its session is left. */
static int send_first(struct core_dispatcher *self, gpud_dispatcher *d, PyObject *queue,
                      PyObject *futures)
{
    PyObject *first = PySequence_GetItem(queue, 0), *number, *future;
    const struct core_template *of;
    int64_t id = -1;
    int r = -1;

    if (!first)
        return -1;
    of = core_template_of(state_of(self), PyTuple_GetItem(first, 0));
    future = of ? owner_of(first, futures) : NULL;
    Py_XINCREF(future);
    if (future)
        id = submit_waiting(self, d, of, first);
    else if (!PyErr_Occurred())
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
PyObject *core_send_queue(PyObject *o, PyObject *args)
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

/* The small bytes at the list's place `at` and behind it, up to MANY_MAX, as tasks like `first`. */
static uint32_t gather(struct gpud_task_desc *tasks, const struct gpud_task_desc *first,
                       PyObject *list, Py_ssize_t at, Py_ssize_t end)
{
    uint32_t n = 0;

    for (; n < MANY_MAX && at < end; n++, at++) {
        PyObject *data = PyList_GetItem(list, at);
        if (!PyBytes_CheckExact(data) || PyBytes_Size(data) >= CORE_COPY_UNLOCKED)
            break;
        tasks[n] = *first;
        tasks[n].tag += n;
        lend(&tasks[n], data);
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
                       const struct core_template *of, uint64_t first_tag, PyObject *list,
                       Py_ssize_t *at, PyObject *ids)
{
    struct gpud_task_desc tasks[MANY_MAX];
    struct gpud_task_desc first = task_of(self, of, first_tag + (uint64_t)*at, time_of(self));
    struct gpud_error why = GPUD_ERROR_INIT;
    uint64_t id[MANY_MAX];
    Py_ssize_t end = PyList_Size(list);
    uint32_t n = gather(tasks, &first, list, *at, end), places;
    size_t accepted = 0;
    int r;

    if (n == 0) {
        int64_t one = submit_one(self, d, of, &first, PyList_GetItem(list, *at));
        if (one <= 0)
            return (int)one;
        ++*at;
        return append_id(ids, (uint64_t)one) ? -1 : *at < end;
    }
    places = reserve(self, of, n);
    if (!places)
        return 0;
    r = gpud_dispatcher_submit_many(d, tasks, places, 0, id, &accepted, &why);
    give_back(self, of, places - (uint32_t)accepted);
    for (size_t i = 0; i < accepted; i++)
        if (append_id(ids, id[i]))
            return -1;
    *at += (Py_ssize_t)accepted;
    if (r && r != GPUD_EFULL) {
        core_raise(state_of(self), r, &why);
        return -1;
    }
    return !r && places == n && *at < end;
}

PyObject *core_submit_many(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    const struct core_template *of;
    unsigned long long tag;
    gpud_dispatcher *d;
    Py_ssize_t at = 0;
    PyObject *ids;
    int more;

    if (n != 3 || !PyList_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "submit_many(template, first_tag, list)");
        return NULL;
    }
    of = core_template_of(state_of(self), args[0]);
    tag = PyLong_AsUnsignedLongLong(args[1]);
    if (!of || PyErr_Occurred() || !(ids = PyList_New(0)))
        return NULL;
    d = core_enter(self);
    more = d ? PyList_Size(args[2]) > 0 : -1;
    while (more > 0)
        more = submit_some(self, d, of, tag, args[2], &at, ids);
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
