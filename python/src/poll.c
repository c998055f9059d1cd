/* SPDX-License-Identifier: MIT */
/*
 * poll.c - Dispatcher: who waits for its events.
 *
 *   poll      the pool's thread, or that of a session: takes events as they come
 *   attend    a thread inside Future.result(): polls itself, so that no other thread has to wake up
 *             and to get the GIL for it, and ends futures as settle.c says
 *   stand_by  the pool's thread, meanwhile
 */
#include "polling.h"
#include "submit.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* poll drives for this long before it sleeps on the descriptor: a short task then costs no
 * second thread.  While it drives, neither a signal nor wake() ends it. */
#define DRIVE_NS 2000000ull
#define NEAR 8 /* events */

static void take_wake(struct core_dispatcher *self)
{
    uint64_t drop;

    (void)!read(self->wake_fd, &drop, sizeof drop);
}

/* Sleeps until a signal arrives, `until` comes, wake() is called where the thread can be woken, or
 * the dispatcher has news where it wants them.  Called without the GIL, with `mask` for the time of
 * the sleep. */
static void doze(struct core_dispatcher *self, uint64_t until, bool news, bool wakes,
                 const sigset_t *mask)
{
    struct pollfd on[2] = { { .fd = news ? self->fd : -1, .events = POLLIN },
                            { .fd = wakes ? self->wake_fd : -1, .events = POLLIN } };
    uint64_t left = core_left(until);
    const struct timespec wait = { .tv_sec = (time_t)(left / 1000000000u),
                                   .tv_nsec = (long)(left % 1000000000u) };

    (void)ppoll(on, 2, until == GPUD_NEVER ? NULL : &wait, mask);
}

/* Looks at signals, and sleeps if there are none.  Signals are blocked from before the second look
 * to the sleep: none arrives between them, unseen until the sleep ends.  The first look is for the
 * handlers of Python, which should not run with blocked signals: a process that one starts would
 * inherit them.  -1 and an exception: a handler raised. */
static int look_and_doze(struct core_dispatcher *self, uint64_t until, bool wakes)
{
    sigset_t all, before;
    int r = PyErr_CheckSignals();

    if (r)
        return r;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    r = PyErr_CheckSignals();
    if (!r && !(wakes && atomic_load(&self->woken))) {
        Py_BEGIN_ALLOW_THREADS
        doze(self, until, true, wakes, &before);
        Py_END_ALLOW_THREADS
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r ? r : PyErr_CheckSignals();
}

/* Waits for events, without the GIL between the looks at signals: a count, GPUD_EEND, or -1 and an
 * exception.  wake() ends the wait of a thread that it is meant for; any other looks at its future
 * again after each sleep, since a signal's handler may have done anything. */
static int await_here(struct core_dispatcher *self, gpud_dispatcher *d, uint64_t timeout,
                      bool wakes)
{
    uint64_t until = core_until(timeout);
    int n;

    for (;;) {
        uint64_t left = timeout == 0 ? 0 : core_left(until);
        Py_BEGIN_ALLOW_THREADS
        n = gpud_dispatcher_poll(d, self->events, CORE_EVENTS_MAX,
                                 left < DRIVE_NS ? left : DRIVE_NS);
        Py_END_ALLOW_THREADS
        if (n != 0 || left == 0)
            return n;
        if (left > DRIVE_NS ? look_and_doze(self, until, wakes) : PyErr_CheckSignals())
            return -1;
        if (!wakes)
            return 0;
        if (atomic_exchange(&self->woken, 0)) {
            take_wake(self);
            return 0;
        }
    }
}

/* A signal that another thread than the main one gets does not wake the main one from a lock.  So
 * the other threads block all signals while they wait here, which is where they spend their time. */
static int await(struct core_dispatcher *self, gpud_dispatcher *d, uint64_t timeout, bool wakes)
{
    sigset_t all, before;
    int n;

    if (timeout == 0 || gettid() == getpid())
        return await_here(self, d, timeout, wakes);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    n = await_here(self, d, timeout, wakes);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return n;
}

/* The name of a slot's devices, borrowed; NULL where there is no memory. */
static PyObject *device_of_slot(struct core_dispatcher *self, const struct gpud_event *e)
{
    struct core_name *at;

    if (e->slot >= self->n_names) {
        uint32_t n = e->slot + 8;
        struct core_name *names = PyMem_Realloc(self->names, n * sizeof *names);
        if (!names)
            return NULL;
        memset(names + self->n_names, 0, (n - self->n_names) * sizeof *names);
        self->names = names;
        self->n_names = n;
    }
    at = &self->names[e->slot];
    if (!at->string || strncmp(at->text, e->device, sizeof at->text - 1) ||
        strlen(e->device) >= sizeof at->text) {
        Py_XDECREF(at->string);
        at->string = PyUnicode_FromString(e->device);
        strncpy(at->text, e->device, sizeof at->text - 1);
    }
    return at->string;
}

/* The name of the event's devices; NULL where it has none, or no memory.  External work has no
 * slot, and names that differ from task to task. */
static PyObject *device_of(struct core_dispatcher *self, const struct gpud_event *e)
{
    PyObject *name;

    if (!e->device || !e->device[0])
        return NULL;
    if (e->slot == GPUD_NO_SLOT)
        return PyUnicode_DecodeUTF8(e->device, (Py_ssize_t)strlen(e->device), "replace");
    name = device_of_slot(self, e);
    Py_XINCREF(name);
    return name;
}

/* SLOT events are for the history alone.  STARTED events are dropped here where no session wants
 * them, and where the task's end is among the next events. */
static bool unwanted(const struct gpud_event *e, const struct gpud_event *end)
{
    if (e->kind == GPUD_EVENT_SLOT)
        return true;
    if (e->kind != GPUD_EVENT_STARTED || e->tag >> CORE_SESSION_WITH_STARTED & 1)
        return false;
    if (core_tag(e->tag) >> CORE_SESSION_SHIFT)
        return true;
    for (const struct gpud_event *later = e + 1; later < end && later < e + NEAR; later++)
        if (later->kind == GPUD_EVENT_OUTCOME && later->task_id == e->task_id)
            return true;
    return false;
}

/* Their tasks count no more, also where there is no memory for their Events. */
static void count_ends(struct core_dispatcher *self, int n)
{
    for (int i = 0; i < n; i++)
        if (self->events[i].kind == GPUD_EVENT_OUTCOME)
            atomic_fetch_sub(&self->live[core_number(self->events[i].tag)], 1);
}

/* No garbage collection runs code meanwhile, which could poll. */
static PyObject *events_of(struct core_dispatcher *self, gpud_dispatcher *d, int n)
{
    struct core_state *state = state_of(self);
    int collects = PyGC_Disable();
    PyObject *list = PyList_New(0);

    count_ends(self, n);
    core_history_take(self->history, self->events, n, core_now());
    for (int i = 0; list && i < n; i++) {
        const struct gpud_event *e = &self->events[i];
        PyObject *event, *device;
        if (unwanted(e, self->events + n))
            continue;
        device = device_of(self, e);
        event = core_event_new(state, d, e, device);
        if (!event || PyList_Append(list, event))
            Py_CLEAR(list);
        Py_XDECREF(event);
        Py_XDECREF(device);
    }
    if (collects)
        (void)PyGC_Enable();
    return list;
}

/* Hands the events over before the interpreter looks at signals: none is lost to an exception. */
static PyObject *hand_over(struct core_dispatcher *self, gpud_dispatcher *d, int n, PyObject *inbox)
{
    PyObject *list = events_of(self, d, n), *done;

    if (!list)
        return NULL;
    done = PyObject_CallMethod(inbox, "extend", "O", list);
    Py_DECREF(list);
    if (!done)
        return NULL;
    Py_DECREF(done);
    return PyLong_FromLong(n);
}

PyObject *core_poll(PyObject *o, PyObject *args)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    unsigned long long timeout;
    PyObject *inbox, *r;
    gpud_dispatcher *d;
    int n;

    if (!PyArg_ParseTuple(args, "KO", &timeout, &inbox) || !(d = core_enter(self)))
        return NULL;
    n = await(self, d, timeout, true);
    if (n >= 0) {
        r = hand_over(self, d, n, inbox);
    } else if (n == GPUD_EEND) {
        Py_INCREF(Py_None);
        r = Py_None;
    } else {
        r = PyErr_Occurred() ? NULL : core_raise(state_of(self), n, NULL);
    }
    core_leave(self);
    return r;
}

/* Ends the poll of another thread, or the next one, within DRIVE_NS. */
PyObject *core_wake(PyObject *o, PyObject *unused)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    const uint64_t one = 1;

    (void)unused;
    atomic_store(&self->woken, 1);
    (void)!write(self->wake_fd, &one, sizeof one);
    Py_RETURN_NONE;
}


/* ---- attend ---- */

/* How attend ends; engine.py has the same numbers. */
enum { DONE, FOREIGN, TIME_OVER };

/* What the threads of a pool share: desk of engine.py in this order. */
struct desk {
    PyObject *lock, *reading, *inbox, *futures, *frames, *backlog, *room;
};

/* Takes a Python lock: 1, 0 after the time, -1 and an exception, as of a signal's handler. */
static int take(PyObject *lock, uint64_t until)
{
    PyObject *r;
    int taken;

    if (until == GPUD_NEVER)
        r = PyObject_CallMethod(lock, "acquire", NULL);
    else
        r = PyObject_CallMethod(lock, "acquire", "Od", Py_True, (double)core_left(until) / 1e9);
    taken = r ? PyObject_IsTrue(r) : -1;
    Py_XDECREF(r);
    return taken;
}

/* Also with an exception, which stays. */
static void let_go(PyObject *lock)
{
    PyObject *type, *value, *traceback, *r;

    PyErr_Fetch(&type, &value, &traceback);
    r = PyObject_CallMethod(lock, "release", NULL);
    Py_XDECREF(r);
    PyErr_Restore(type, value, traceback);
}

/* Takes the right to read, from the pool's thread if need be. */
static int take_reading(struct core_dispatcher *self, PyObject *reading, uint64_t until)
{
    int taken = take(reading, 0);

    if (taken)
        return taken;
    Py_XDECREF(core_wake((PyObject *)self, NULL));
    return take(reading, until);
}

/* 1 while this future waits for its outcome here. */
static int is_open(PyObject *futures, PyObject *tag)
{
    PyObject *future = PyDict_GetItemWithError(futures, tag), *taken;
    int r;

    if (!future)
        return PyErr_Occurred() ? -1 : 0;
    taken = PyObject_GetAttrString(future, "_taken");
    r = taken ? !PyObject_IsTrue(taken) : -1;
    Py_XDECREF(taken);
    return r;
}

/* Sends what waits under a key of the backlog, (priority, number), unless tasks of that class that
 * come first are `stuck`: 1 once all is sent, 0 where some has to wait, -1 and an exception. */
static int send_queue(struct core_dispatcher *self, gpud_dispatcher *d, const struct desk *on,
                      PyObject *key, bool *stuck)
{
    PyObject *second = PyTuple_GetItem(key, 1);
    unsigned long number = second ? PyLong_AsUnsignedLong(second) : 0;
    int r;

    if (PyErr_Occurred())
        return -1;
    if (number >= CORE_NUMBERS) {
        PyErr_SetString(PyExc_ValueError, "no number of a class");
        return -1;
    }
    if (stuck[number])
        return 0;
    r = core_send(self, d, PyDict_GetItemWithError(on->backlog, key), on->futures);
    stuck[number] = r == 0;
    return r == 1 && PyDict_DelItem(on->backlog, key) ? -1 : r;
}

/* Sends what waits in the package, highest priority first, each class while there is room for it:
 * 0, 1 where that is for the pool's thread, -1 and an exception. */
static int send_backlog(struct core_dispatcher *self, gpud_dispatcher *d, const struct desk *on)
{
    PyObject *keys, *waiting = PyObject_GetAttrString(on->room, "_waiters");
    Py_ssize_t blocked = waiting ? PyObject_Size(waiting) : -1;
    bool stuck[CORE_NUMBERS] = { false };
    int r = 1, one = 1;

    Py_XDECREF(waiting);
    if (blocked)
        return blocked < 0 ? -1 : 1;
    keys = PyDict_Keys(on->backlog);
    if (!keys || PyList_Sort(keys))
        one = -1;
    for (Py_ssize_t i = one < 0 ? 0 : PyList_Size(keys); one >= 0 && i > 0; i--) {
        one = send_queue(self, d, on, PyList_GetItem(keys, i - 1), stuck);
        r = one < r ? one : r;
    }
    r = one < r ? one : r;
    Py_XDECREF(keys);
    if (r < 0 && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        return 1; /* that thread meets it again and fails the future */
    }
    if (r == 1) /* shutdown() waits for this */
        Py_XDECREF(core_wake((PyObject *)self, NULL));
    return r < 0 ? -1 : 0;
}

static int send_some(struct core_dispatcher *self, gpud_dispatcher *d, const struct desk *on)
{
    Py_ssize_t n = PyDict_Size(on->backlog);
    int r = n < 0 ? -1 : 0;

    if (n > 0 && (r = take(on->lock, GPUD_NEVER)) > 0) {
        r = send_backlog(self, d, on);
        let_go(on->lock);
    }
    return r;
}

/* Ends and sends what it can: one of the enum, -1 and an exception, or -2 to go on. */
static int work(struct core_dispatcher *self, gpud_dispatcher *d, PyObject *tag,
                const struct desk *on)
{
    int foreign, r;

    atomic_store(&self->settling, true);
    foreign = core_settle(state_of(self), on->inbox, on->futures, on->frames);
    atomic_store(&self->settling, false);
    if (foreign == 0)
        foreign = send_some(self, d, on);
    if (foreign < 0)
        return -1;
    if (foreign)
        return FOREIGN;
    r = is_open(on->futures, tag);
    return r < 0 ? -1 : r ? -2 : DONE;
}

static int attend(struct core_dispatcher *self, gpud_dispatcher *d, uint64_t until, PyObject *tag,
                  const struct desk *on)
{
    PyObject *done;
    int n, r;

    while ((r = work(self, d, tag, on)) == -2) {
        uint64_t left = core_left(until);
        n = await(self, d, left, false);
        if (n == 0 && left == 0)
            return TIME_OVER;
        if (n == 0)
            continue;
        if (n == GPUD_EEND)
            return FOREIGN;
        if (n < 0)
            return PyErr_Occurred() ? -1 : (core_raise(state_of(self), n, NULL), -1);
        done = hand_over(self, d, n, on->inbox);
        if (!done)
            return -1;
        Py_DECREF(done);
        if (PyErr_CheckSignals()) /* tasks may end so fast that no wait is reached */
            return -1;
    }
    return r;
}

static bool be_the_caller(struct core_dispatcher *self)
{
    unsigned long none = 0;

    return atomic_compare_exchange_strong(&self->caller, &none, PyThread_get_thread_ident());
}

static void be_gone(struct core_dispatcher *self, bool needed)
{
    const uint64_t one = 1;

    atomic_store(&self->attended_at, needed ? 0 : core_now());
    atomic_store(&self->caller, 0);
    if (atomic_load(&self->resting))
        (void)!write(self->wake_fd, &one, sizeof one);
}

/* All in one call: between its steps no signal's handler runs, so that a KeyboardInterrupt can
 * neither keep a lock nor lose an event. */
PyObject *core_attend(PyObject *o, PyObject *args)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    unsigned long long timeout;
    struct desk on;
    PyObject *tag;
    gpud_dispatcher *d;
    uint64_t until;
    int r;

    if (!PyArg_ParseTuple(args, "KO(OOOO!OO!O)", &timeout, &tag, &on.lock, &on.reading, &on.inbox,
                          &PyDict_Type, &on.futures, &on.frames, &PyDict_Type, &on.backlog,
                          &on.room) ||
        !(d = core_enter(self)))
        return NULL;
    until = core_until(timeout);
    if (atomic_load(&self->reader) == PyThread_get_thread_ident()) {
        /* a signal's handler waits, or the code of a result that is unpickled, which the pool's
         * thread can do then */
        if (!atomic_load(&self->settling))
            r = attend(self, d, until, tag, &on);
        else
            r = (core_raise(state_of(self), GPUD_EREENTER, NULL), -1);
    } else if (!be_the_caller(self)) {
        /* the other one reads for both, unless it is this one, and a signal's handler waits */
        if (atomic_load(&self->caller) != PyThread_get_thread_ident())
            r = DONE;
        else
            r = (core_raise(state_of(self), GPUD_EREENTER, NULL), -1);
    } else {
        r = take_reading(self, on.reading, until);
        if (r > 0) {
            atomic_store(&self->reader, PyThread_get_thread_ident());
            r = attend(self, d, until, tag, &on);
            atomic_store(&self->reader, 0);
            let_go(on.reading);
        } else if (r == 0) {
            r = TIME_OVER;
        }
        be_gone(self, r == FOREIGN);
    }
    core_leave(self);
    return r < 0 ? NULL : PyLong_FromLong(r);
}

/* Whether this thread is inside attend: a signal's handler has interrupted it. */
PyObject *core_attends(PyObject *o, PyObject *unused)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;

    (void)unused;
    return PyBool_FromLong(atomic_load(&self->caller) == PyThread_get_thread_ident());
}

/* Whether the pool's thread should read; else *ret_until is when to look again. */
static bool is_needed(struct core_dispatcher *self, uint64_t grace, uint64_t *ret_until)
{
    uint64_t at = atomic_load(&self->attended_at);

    *ret_until = at + grace;
    return !atomic_load(&self->caller) && (!at || core_now() >= at + grace);
}

/* A caller that stays inside for long tells its end; else the times of its visits are enough. */
static void rest(struct core_dispatcher *self, uint64_t grace, uint64_t until,
                 const sigset_t *none)
{
    uint64_t seen = atomic_load(&self->attended_at), soon = core_now() + grace;

    doze(self, soon < until ? soon : until, false, true, none);
    if (!atomic_load(&self->caller) || atomic_load(&self->attended_at) != seen)
        return;
    atomic_store(&self->resting, 1);
    if (atomic_load(&self->caller) && !atomic_load(&self->woken))
        doze(self, until, false, true, none);
    atomic_store(&self->resting, 0);
    if (!atomic_load(&self->woken))
        take_wake(self);
}

PyObject *core_stand_by(PyObject *o, PyObject *args)
{
    struct core_dispatcher *self = (struct core_dispatcher *)o;
    unsigned long long grace, timeout;
    uint64_t until, again;
    sigset_t none;
    bool needed;

    if (!PyArg_ParseTuple(args, "KK", &grace, &timeout))
        return NULL;
    sigfillset(&none); /* as in await() */
    if (!atomic_load(&self->caller) && !atomic_load(&self->attended_at))
        Py_RETURN_TRUE;
    until = core_until(timeout);
    Py_BEGIN_ALLOW_THREADS
    while (!(needed = is_needed(self, grace, &again)) && !atomic_load(&self->woken) &&
           core_left(until)) {
        if (atomic_load(&self->caller))
            rest(self, grace, until, &none);
        else
            doze(self, again < until ? again : until, false, true, &none);
    }
    Py_END_ALLOW_THREADS
    if (!needed && atomic_exchange(&self->woken, 0))
        take_wake(self);
    if (needed)
        atomic_store(&self->attended_at, 0);
    return PyBool_FromLong(needed);
}
