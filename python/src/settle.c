/* SPDX-License-Identifier: MIT */
/*
 * settle.c - ends futures on the thread that waits for one of them.
 *
 * Most futures end with a value, and nothing but result() looks at them.  Such a future is ended
 * here by any thread, the main thread as well: a KeyboardInterrupt is raised between two
 * instructions of Python code, and the only Python code here is that of unpickling, during which
 * the event is still in the inbox.  All else is left to the pool's thread, where none is raised:
 * futures with callbacks or another thread that waits, failures, results that are no frames, events
 * of sessions and the pool.
 */
#include "core.h"

#include <unistd.h>

/* What the calls here need, in a tuple that the state owns: its order. */
enum {
    PENDING,
    FINISHED,
    S_STATE,
    S_RESULT,
    S_ENDED,
    S_STARTED,
    S_WATCHED,
    S_CALLBACKS,
    S_WAITERS,
    S_CONDITION,
    S_ACQUIRE,
    S_RELEASE,
    S_POPLEFT,
    KIT_SIZE
};

static const char *const names[KIT_SIZE] = {
    [PENDING] = "PENDING",
    [FINISHED] = "FINISHED",
    [S_STATE] = "_state",
    [S_RESULT] = "_result",
    [S_ENDED] = "_ended",
    [S_STARTED] = "_started",
    [S_WATCHED] = "_watched",
    [S_CALLBACKS] = "_done_callbacks",
    [S_WAITERS] = "_waiters",
    [S_CONDITION] = "_condition",
    [S_ACQUIRE] = "acquire",
    [S_RELEASE] = "release",
    [S_POPLEFT] = "popleft",
};

static PyObject *make_kit(void)
{
    PyObject *made = PyTuple_New(KIT_SIZE);

    for (Py_ssize_t i = 0; made && i < KIT_SIZE; i++) {
        PyObject *o = PyUnicode_InternFromString(names[i]);
        if (!o || PyTuple_SetItem(made, i, o))
            Py_CLEAR(made);
    }
    return made;
}

/* Borrowed: the kit lives as long as the module. */
static PyObject *of(struct core_state *state, Py_ssize_t i)
{
    return PyTuple_GetItem(state->settle, i);
}

/* 1 where a container attribute has members. */
static int has_members(PyObject *o, PyObject *name)
{
    PyObject *members = PyObject_GetAttr(o, name);
    Py_ssize_t n = members ? PyObject_Size(members) : -1;

    Py_XDECREF(members);
    return n < 0 ? -1 : n > 0;
}

/* 1 where somebody besides this thread expects the end of the future. */
static int is_watched(struct core_state *state, PyObject *future, PyObject *condition)
{
    int r = has_members(future, of(state, S_CALLBACKS));

    if (r == 0)
        r = has_members(future, of(state, S_WAITERS));
    return r == 0 ? has_members(condition, of(state, S_WAITERS)) : r;
}

static int is_pending(struct core_state *state, PyObject *future)
{
    PyObject *now = PyObject_GetAttr(future, of(state, S_STATE));
    int r = now ? PyObject_RichCompareBool(now, of(state, PENDING), Py_EQ) : -1;

    Py_XDECREF(now);
    return r;
}

static int call(PyObject *o, PyObject *name, PyObject *argument)
{
    PyObject *r = PyObject_CallMethodObjArgs(o, name, argument, NULL);
    int truth = r ? PyObject_IsTrue(r) : -1;

    Py_XDECREF(r);
    return truth;
}

/* Only where no other thread can look at the future meanwhile: 0. */
static int set(struct core_state *state, PyObject *future, PyObject *event, PyObject *value)
{
    int r = is_pending(state, future);

    if (r <= 0)
        return r;
    if (PyObject_SetAttr(future, of(state, S_ENDED), event) ||
        PyObject_SetAttr(future, of(state, S_RESULT), value))
        return -1;
    return PyObject_SetAttr(future, of(state, S_STATE), of(state, FINISHED));
}

/* A future whose lock exists: 0 once it is done, 1 where somebody expects its end.  Never waits:
 * whoever holds the lock looks at the future. */
static int set_locked(struct core_state *state, PyObject *future, PyObject *condition, PyObject *event,
                      PyObject *value)
{
    PyObject *type, *error, *traceback;
    int r = call(condition, of(state, S_ACQUIRE), Py_False);

    if (r <= 0)
        return r < 0 ? -1 : 1;
    r = is_watched(state, future, condition);
    if (r == 0)
        r = set(state, future, event, value);
    PyErr_Fetch(&type, &error, &traceback);
    if (call(condition, of(state, S_RELEASE), NULL) < 0)
        return -1;
    PyErr_Restore(type, error, traceback);
    return r;
}

/* The value of a result: NULL without an exception where it cannot be unpickled.  What is raised
 * meanwhile on the main thread may be of a signal's handler, and is for the caller then.  So where
 * it does not load, it is tried once more. */
static PyObject *value_of(struct core_state *state, PyObject *event, PyObject *result)
{
    PyObject *value = core_frame_load(state, result), *type, *error, *traceback;

    if (value)
        return value;
    PyErr_Fetch(&type, &error, &traceback);
    value = core_frame_load(state, result);
    if (value && gettid() == getpid()) {
        Py_DECREF(value);
        PyErr_Restore(type, error, traceback);
        return NULL;
    }
    PyErr_Clear();
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    if (!value)
        core_event_refuse(event);
    return value;
}

/* Whether nobody has looked at the future but by result().  future.py notes who does, before it
 * makes the lock.  The GIL keeps that from coming between this and set(). */
static int is_untouched(struct core_state *state, PyObject *future)
{
#ifdef Py_GIL_DISABLED
    (void)state;
    (void)future;
    return 0;
#else
    PyObject *watched = PyObject_GetAttr(future, of(state, S_WATCHED));
    int r = watched ? PyObject_Not(watched) : -1;

    Py_XDECREF(watched);
    return r;
#endif
}

/* A SUCCESS of a future that has a lock: 0 once it is done, 1 where it is for the pool's thread. */
static int succeed_locked(struct core_state *state, PyObject *future, PyObject *event, PyObject *result)
{
    PyObject *condition = PyObject_GetAttr(future, of(state, S_CONDITION)), *value;
    int r = condition ? is_watched(state, future, condition) : -1;

    if (r == 0) {
        value = value_of(state, event, result);
        if (value)
            r = set_locked(state, future, condition, event, value);
        else
            r = PyErr_Occurred() ? -1 : 1;
        Py_XDECREF(value);
    }
    Py_XDECREF(condition);
    return r;
}

static int succeed(struct core_state *state, PyObject *future, PyObject *event, PyObject *result)
{
    int untouched = is_untouched(state, future), r = 1;
    PyObject *value;

    if (untouched <= 0)
        return untouched < 0 ? -1 : succeed_locked(state, future, event, result);
    value = value_of(state, event, result);
    if (!value)
        return PyErr_Occurred() ? -1 : 1;
    untouched = is_untouched(state, future); /* unpickling has run any code */
    if (untouched)
        r = untouched < 0 ? -1 : set(state, future, event, value);
    Py_DECREF(value);
    return r;
}

/* Drops a key that may be missing. */
static int forget(PyObject *dict, PyObject *key)
{
    if (dict == Py_None || PyDict_DelItem(dict, key) == 0)
        return 0;
    if (!PyErr_ExceptionMatches(PyExc_KeyError))
        return -1;
    PyErr_Clear();
    return 0;
}

/* One event: 0 where it can go, 1 where it is for the pool's thread. */
static int settle(struct core_state *state, PyObject *event, PyObject *futures, PyObject *frames)
{
    const struct core_event_facts e = core_event_facts(event);
    PyObject *tag, *future;
    int r = 1;

    if (!e.tag || e.refused || e.tag >> CORE_SESSION_SHIFT || e.tag >> CORE_RAW & 1 ||
        (e.kind != GPUD_EVENT_STARTED &&
         (e.kind != GPUD_EVENT_OUTCOME || e.outcome != GPUD_OUTCOME_SUCCESS)))
        return 1;
    tag = PyLong_FromUnsignedLongLong(e.tag);
    future = tag ? PyDict_GetItemWithError(futures, tag) : NULL;
    Py_XINCREF(future);
    if (PyErr_Occurred())
        r = -1;
    else if (e.kind == GPUD_EVENT_STARTED)
        r = future ? PyObject_SetAttr(future, of(state, S_STARTED), event) : 0;
    else if (future)
        r = succeed(state, future, event, e.result ? e.result : Py_None);
    if (r == 0 && e.kind == GPUD_EVENT_OUTCOME) {
        core_event_drop_result(event);
        r = forget(futures, tag) || forget(frames, tag) ? -1 : 0;
    }
    Py_XDECREF(future);
    Py_XDECREF(tag);
    return r;
}

int core_settle(struct core_state *state, PyObject *inbox, PyObject *futures, PyObject *frames)
{
    int r = 0;

    if (!state->settle && !(state->settle = make_kit()))
        return -1;
    while (r == 0) {
        Py_ssize_t n = PyObject_Size(inbox);
        PyObject *event;
        if (n <= 0)
            return n < 0 ? -1 : 0;
        event = PySequence_GetItem(inbox, 0);
        if (!event)
            return -1;
        r = settle(state, event, futures, frames);
        if (r == 0 && call(inbox, of(state, S_POPLEFT), NULL) < 0)
            r = -1;
        Py_DECREF(event);
    }
    return r;
}

/* Moves the events of the inbox to a session that they all belong to, where none is an ERROR, which
 * may not be the last word of its task: 1, or 0 with all where it was, or -1 and an exception. */
static int sort(PyObject *inbox, PyObject *ready, unsigned long session)
{
    PyObject *all = PyObject_GetIter(inbox), *event, *done;
    bool plain = true;

    if (!all)
        return -1;
    while (plain && (event = PyIter_Next(all))) {
        const struct core_event_facts e = core_event_facts(event);
        plain = e.tag >> CORE_SESSION_SHIFT == session &&
                !(e.kind == GPUD_EVENT_OUTCOME && e.outcome == GPUD_OUTCOME_ERROR);
        Py_DECREF(event);
    }
    Py_DECREF(all);
    if (!plain || PyErr_Occurred())
        return PyErr_Occurred() ? -1 : 0;
    done = PyObject_CallMethod(ready, "extend", "O", inbox);
    Py_XDECREF(done);
    if (done)
        done = PyObject_CallMethod(inbox, "clear", NULL);
    Py_XDECREF(done);
    return done ? 1 : -1;
}

/* The deque of an event's session, borrowed; NULL where the event is for another look, too. */
static PyObject *ready_of(PyObject *event, PyObject *readies)
{
    const struct core_event_facts e = core_event_facts(event);
    PyObject *number, *ready;

    if (e.kind == GPUD_EVENT_OUTCOME && e.outcome == GPUD_OUTCOME_ERROR)
        return NULL;
    number = PyLong_FromUnsignedLongLong(e.tag >> CORE_SESSION_SHIFT);
    ready = number ? PyDict_GetItemWithError(readies, number) : NULL;
    Py_XDECREF(number);
    return ready;
}

/* As sort, for several sessions: each event moves to the deque of its session. */
static int share(PyObject *inbox, PyObject *readies)
{
    PyObject *all = PySequence_List(inbox), *done;
    Py_ssize_t n = all ? PyList_Size(all) : 0;
    int r = all ? 1 : -1;

    for (Py_ssize_t i = 0; r == 1 && i < n; i++)
        if (!ready_of(PyList_GetItem(all, i), readies))
            r = PyErr_Occurred() ? -1 : 0;
    for (Py_ssize_t i = 0; r == 1 && i < n; i++) {
        PyObject *event = PyList_GetItem(all, i);
        done = PyObject_CallMethod(ready_of(event, readies), "append", "O", event);
        Py_XDECREF(done);
        r = done ? 1 : -1;
    }
    if (r == 1) {
        done = PyObject_CallMethod(inbox, "clear", NULL);
        Py_XDECREF(done);
        r = done ? 1 : -1;
    }
    Py_XDECREF(all);
    return r;
}

PyObject *core_share_method(PyObject *o, PyObject *args)
{
    PyObject *inbox, *readies;
    int r;

    (void)o;
    if (!PyArg_ParseTuple(args, "OO!", &inbox, &PyDict_Type, &readies))
        return NULL;
    r = share(inbox, readies);
    return r < 0 ? NULL : PyBool_FromLong(r);
}

PyObject *core_sort_method(PyObject *o, PyObject *args)
{
    PyObject *inbox, *ready;
    unsigned long session;
    int r;

    (void)o;
    if (!PyArg_ParseTuple(args, "OOk", &inbox, &ready, &session))
        return NULL;
    r = sort(inbox, ready, session);
    return r < 0 ? NULL : PyBool_FromLong(r);
}

PyObject *core_settle_method(PyObject *o, PyObject *args)
{
    PyObject *inbox, *futures, *frames;
    int r;

    if (!PyArg_ParseTuple(args, "OO!O", &inbox, &PyDict_Type, &futures, &frames))
        return NULL;
    r = core_settle(core_state_of(Py_TYPE(o)), inbox, futures, frames);
    return r < 0 ? NULL : PyBool_FromLong(r);
}
