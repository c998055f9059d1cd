/* SPDX-License-Identifier: MIT */
/*
 * worker.c - run_worker: the library's callbacks, which hold the GIL and call the handler; and
 * Worker, what user code may know of its process.
 *
 * Between the callbacks the thread is the library's and holds no GIL, so threads of user code run.
 */
#include "alarm.h"
#include "core.h"
#include "process.h"
#include "task.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MEMBERS_MAX 64u /* of a batch: option max_batch */

static struct {
    struct core_state *state;
    PyObject *handler;
    PyObject *process, *process_batch, *serve, *put, *failed, *kept; /* its methods */
    PyObject *functions; /* callables by key; what is not in it yet is for the handler */
    PyObject *item;      /* process of the pool's class, or None */
    PyThreadState *thread;
    gpud_worker *worker;
    PyObject *task; /* the first member of the running call, where an object of it was made */
    gpud_task *const *member;
    size_t n;
} run;

static void take_gil(void)
{
    PyEval_RestoreThread(run.thread);
}

static void drop_gil(void)
{
    run.thread = PyEval_SaveThread();
}

/* ---- Worker ---- */

struct worker {
    PyObject_HEAD
    PyObject *devices, *uuids;
    PyObject *data; /* memoryview */
};

static PyObject *names_of(gpud_worker *w, const char *(*get)(const gpud_worker *, uint32_t))
{
    uint32_t n = gpud_worker_device_count(w);
    PyObject *names = PyTuple_New((Py_ssize_t)n);

    for (uint32_t i = 0; names && i < n; i++) {
        PyObject *name = PyUnicode_FromString(get(w, i));
        if (!name || PyTuple_SetItem(names, (Py_ssize_t)i, name))
            Py_CLEAR(names);
    }
    return names;
}

static PyObject *setup_data(gpud_worker *w)
{
    size_t size;
    const void *data = gpud_worker_setup_data(w, &size);

    return PyMemoryView_FromMemory((char *)(uintptr_t)data, (Py_ssize_t)size, PyBUF_READ);
}

static PyObject *worker_new(gpud_worker *w)
{
    PyTypeObject *type = run.state->worker_type;
    struct worker *self = (struct worker *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);

    if (!self)
        return NULL;
    self->devices = names_of(w, gpud_worker_device_at);
    self->uuids = names_of(w, gpud_worker_device_uuid);
    self->data = setup_data(w);
    if (self->devices && self->uuids && self->data)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

static void worker_dealloc(PyObject *o)
{
    struct worker *self = (struct worker *)o;
    PyTypeObject *type = Py_TYPE(o);

    Py_CLEAR(self->devices);
    Py_CLEAR(self->uuids);
    Py_CLEAR(self->data);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

static PyObject *get_slot(PyObject *o, void *unused)
{
    (void)o, (void)unused;
    return PyLong_FromUnsignedLong(gpud_worker_slot(run.worker));
}

static PyObject *get_incarnation(PyObject *o, void *unused)
{
    (void)o, (void)unused;
    return PyLong_FromUnsignedLong(gpud_worker_incarnation(run.worker));
}

static PyObject *get_device(PyObject *o, void *unused)
{
    (void)o, (void)unused;
    return PyUnicode_FromString(gpud_worker_device(run.worker));
}

static PyObject *get_seed(PyObject *o, void *unused)
{
    (void)o, (void)unused;
    return PyLong_FromUnsignedLongLong(gpud_worker_seed(run.worker));
}

static PyObject *own(PyObject *o)
{
    Py_INCREF(o);
    return o;
}

static PyObject *get_devices(PyObject *o, void *unused)
{
    (void)unused;
    return own(((struct worker *)o)->devices);
}

static PyObject *get_uuids(PyObject *o, void *unused)
{
    (void)unused;
    return own(((struct worker *)o)->uuids);
}

static PyObject *get_setup_data(PyObject *o, void *unused)
{
    (void)unused;
    return own(((struct worker *)o)->data);
}

static PyObject *write_log(PyObject *o, PyObject *args)
{
    unsigned int level;
    const char *text;

    (void)o;
    if (!PyArg_ParseTuple(args, "Is:log", &level, &text))
        return NULL;
    if (!core_process_forked())
        gpud_worker_log(run.worker, level, text);
    Py_RETURN_NONE;
}

static PyMethodDef worker_methods[] = {
    { "log", write_log, METH_VARARGS, "log(level, text): a LOG event of the host" },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef worker_getset[] = {
    { "slot", get_slot, NULL, "the number of the slot, from 0", NULL },
    { "incarnation", get_incarnation, NULL, "which worker of the slot it is, from 1", NULL },
    { "device", get_device, NULL, "the names of its devices, comma-separated", NULL },
    { "devices", get_devices, NULL, "the names of its devices", NULL },
    { "uuids", get_uuids, NULL, "the UUIDs of its devices", NULL },
    { "seed", get_seed, NULL, "option seed plus the slot's number", NULL },
    { "setup_data", get_setup_data, NULL, "a memoryview of the setup data, read-only", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot worker_slots[] = {
    { Py_tp_dealloc, worker_dealloc },
    { Py_tp_methods, worker_methods },
    { Py_tp_getset, worker_getset },
    { Py_tp_doc, "The worker process." },
    { 0, NULL },
};

static PyType_Spec worker_spec = {
    .name = "gpudispatch._core.Worker",
    .basicsize = sizeof(struct worker),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = worker_slots,
};

/* ---- callbacks ---- */

/* What the handler has found in setup, for the calls that need no handler. */
static int take_functions(void)
{
    run.functions = PyObject_GetAttrString(run.handler, "functions");
    run.item = PyObject_GetAttrString(run.handler, "item");
    if (run.functions && !PyDict_Check(run.functions))
        PyErr_SetString(PyExc_TypeError, "functions is not a dict");
    return PyErr_Occurred() ? -1 : 0;
}

static int prepare(gpud_worker *w)
{
    PyObject *timeout = PyObject_GetAttrString(run.handler, "TaskTimeout"), *stopped = NULL,
             *worker = NULL, *r = NULL;
    size_t size;
    const void *data = gpud_worker_setup_data(w, &size);

    if (timeout)
        stopped = PyObject_GetAttrString(run.handler, "Stopped");
    if (stopped && core_alarm_install(timeout, stopped,
                                      size >= CORE_STOPS * sizeof(uint64_t) ? data : NULL) == 0)
        worker = worker_new(w);
    if (worker) {
        core_alarm_block(false); /* or programs that user code starts would begin with it blocked */
        r = PyObject_CallMethod(run.handler, "setup", "O", worker);
    }
    Py_XDECREF(r);
    Py_XDECREF(worker);
    Py_XDECREF(stopped);
    Py_XDECREF(timeout);
    return r ? take_functions() : -1;
}

static int setup(gpud_worker *w, void **state)
{
    char text[256];
    int r;

    (void)state;
    take_gil();
    run.worker = w;
    r = prepare(w);
    if (core_process_forked())
        core_process_leave();
    if (r) {
        core_process_take_exception(text, sizeof text);
        r = gpud_worker_fail(w, 1, text);
    }
    drop_gil();
    return r;
}

/* The Task of the first member, owned by `run` until the call ends. */
static PyObject *first_task(void)
{
    if (!run.task && run.n)
        run.task = core_task_new(run.state, run.member[0], run.n == 1);
    return run.task;
}

static void forget_task(void)
{
    PyObject *task = run.task;

    run.task = NULL;
    run.n = 0;
    if (!task)
        return;
    core_task_close(task);
    Py_DECREF(task);
}

/* The handler must not raise: it says itself how a task has ended. */
static void fail_all(void)
{
    char text[256];

    core_process_take_exception(text, sizeof text);
    for (size_t i = 0; i < run.n; i++)
        (void)gpud_task_fail(run.member[i], 1, text);
}

/* Calls a method of the handler that may not raise. */
static void call_handler(PyObject *method, PyObject *one, PyObject *two, PyObject *three)
{
    PyObject *r = PyObject_CallFunctionObjArgs(method, one, two, three, NULL);

    if (!r)
        fail_all();
    Py_XDECREF(r);
}

/* User code, or its data, has raised. */
static void report(void)
{
    PyObject *type, *value, *trace, *task;

    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace)
        (void)PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    task = first_task();
    if (task)
        call_handler(run.failed, task, value, NULL);
    else
        fail_all();
    Py_XDECREF(value);
}

/* ---- tasks and results that need no codec ---- */

static void put_result(gpud_task *t, PyObject *value)
{
    PyObject *frame = core_frame_pack(run.state, CORE_VALUE, value, CORE_CELL), *task;
    bool done = frame && gpud_task_result_set(t, PyBytes_AsString(frame),
                                              (size_t)PyBytes_Size(frame)) == 0;

    Py_XDECREF(frame);
    if (done)
        return;
    task = first_task();
    if (task)
        call_handler(run.put, task, value, NULL);
    else
        fail_all();
}

/* Runs user code, and takes what it returns or raises. */
static void run_user(gpud_task *t, PyObject *function, PyObject *args, PyObject *kw)
{
    PyObject *value = core_alarm_call(function, args, kw);

    if (value)
        put_result(t, value);
    else
        report();
    Py_XDECREF(value);
}

/* The handler does the rest: the function is not known yet, or the value is not what is expected. */
static void serve(PyObject *value, long op)
{
    PyObject *task = first_task(), *number = task ? PyLong_FromLong(op) : NULL;

    if (number)
        call_handler(run.serve, task, number, value);
    else
        fail_all();
    Py_XDECREF(number);
}

static void run_call(gpud_task *t, PyObject *value)
{
    PyObject *function = NULL;

    if (PyTuple_CheckExact(value) && PyTuple_Size(value) == 3 &&
        PyBytes_CheckExact(PyTuple_GetItem(value, 0)) &&
        PyTuple_CheckExact(PyTuple_GetItem(value, 1)) &&
        PyDict_CheckExact(PyTuple_GetItem(value, 2)))
        function = PyDict_GetItemWithError(run.functions, PyTuple_GetItem(value, 0));
    if (!function) {
        PyErr_Clear();
        serve(value, CORE_CALL);
        return;
    }
    Py_INCREF(function); /* it may be forgotten while it runs */
    run_user(t, function, PyTuple_GetItem(value, 1), PyTuple_GetItem(value, 2));
    Py_DECREF(function);
}

static void run_item(gpud_task *t, PyObject *value)
{
    PyObject *args;

    if (run.item == Py_None) {
        serve(value, CORE_ITEM);
        return;
    }
    args = PyTuple_New(1);
    if (!args) {
        report();
        return;
    }
    Py_INCREF(value);
    (void)PyTuple_SetItem(args, 0, value);
    run_user(t, run.item, args, NULL);
    Py_DECREF(args);
}

/* Returns false for a task that needs the codec. */
static bool run_quickly(gpud_task *t)
{
    const unsigned char *frame = gpud_task_data(t);
    const size_t size = gpud_task_size(t);
    PyObject *value;

    if (!core_frame_is_plain(frame, size) ||
        (*frame >> 4 != CORE_CALL && *frame >> 4 != CORE_ITEM))
        return false;
    value = core_frame_value(run.state, frame, size);
    if (!value)
        report();
    else if (*frame >> 4 == CORE_CALL)
        run_call(t, value);
    else
        run_item(t, value);
    Py_XDECREF(value);
    return true;
}

/* By now nothing of the call is left but what user code has kept. */
static void look_for_views(PyObject *task)
{
    if (task && core_task_views(task))
        call_handler(run.kept, task, NULL, NULL);
}

static int process(gpud_task *t, void *state)
{
    PyObject *task;

    (void)state;
    take_gil();
    run.member = &t;
    run.n = 1;
    core_alarm_begin(&t, 1);
    if (!run_quickly(t)) {
        task = first_task();
        if (task)
            call_handler(run.process, task, NULL, NULL);
        else
            fail_all();
    }
    look_for_views(run.task);
    core_alarm_end();
    forget_task();
    drop_gil();
    return 0;
}

static PyObject *task_list(gpud_task *const *members, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);

    for (size_t i = 0; list && i < n; i++) {
        PyObject *task = i ? core_task_new(run.state, members[i], false) : first_task();
        if (task && !i)
            Py_INCREF(task);
        if (!task || PyList_SetItem(list, (Py_ssize_t)i, task))
            Py_CLEAR(list);
    }
    return list;
}

static int process_batch(gpud_task *const *members, size_t n, void *state)
{
    PyObject *all[MEMBERS_MAX], *list;
    size_t made = 0;

    (void)state;
    take_gil();
    run.member = members;
    run.n = n;
    core_alarm_begin(members, n);
    list = task_list(members, n);
    for (; list && made < n && made < MEMBERS_MAX; made++) {
        all[made] = PyList_GetItem(list, (Py_ssize_t)made);
        Py_INCREF(all[made]); /* the handler may change the list */
    }
    if (list)
        call_handler(run.process_batch, list, NULL, NULL);
    else
        fail_all();
    Py_XDECREF(list);
    for (size_t i = 0; i < made; i++)
        look_for_views(all[i]);
    core_alarm_end();
    while (made-- > 0) {
        core_task_close(all[made]);
        Py_DECREF(all[made]);
    }
    forget_task();
    drop_gil();
    return 0;
}

/* An exception leaves here at once: the host sees a cleanup that failed, with the traceback in its
 * output. */
static void cleanup(gpud_worker *w, void *state)
{
    PyObject *r;
    char text[256];

    (void)w, (void)state;
    take_gil();
    core_alarm_block(false);
    r = PyObject_CallMethod(run.handler, "cleanup", NULL);
    if (core_process_forked())
        core_process_leave();
    if (!r) {
        core_process_take_exception(text, sizeof text);
        gpud_worker_log(w, GPUD_LEVEL_ERROR, text);
        (void)fflush(stdout);
        (void)fflush(stderr);
        _exit(1);
    }
    Py_DECREF(r);
    core_process_flush();
    drop_gil();
}

/* ---- functions of the module ---- */

static void forget_handler(void)
{
    Py_CLEAR(run.handler);
    Py_CLEAR(run.process);
    Py_CLEAR(run.process_batch);
    Py_CLEAR(run.serve);
    Py_CLEAR(run.put);
    Py_CLEAR(run.failed);
    Py_CLEAR(run.kept);
}

static int take_handler(PyObject *handler)
{
    const struct {
        const char *name;
        PyObject **at;
    } methods[] = { { "process", &run.process }, { "process_batch", &run.process_batch },
                    { "serve", &run.serve },     { "put", &run.put },
                    { "failed", &run.failed },   { "kept", &run.kept } };

    run.handler = own(handler);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (!(*methods[i].at = PyObject_GetAttrString(handler, methods[i].name)))
            return -1;
    return 0;
}

static PyObject *run_worker(PyObject *module, PyObject *handler)
{
    const struct gpud_definition definition[] = {
        { (uint32_t)sizeof(struct gpud_definition), 0, "python", setup, process, cleanup,
          process_batch },
    };
    struct gpud_error why = GPUD_ERROR_INIT;
    int r;

    if (run.handler) {
        PyErr_SetString(PyExc_RuntimeError, "this process is a worker already");
        return NULL;
    }
    if (take_handler(handler)) {
        forget_handler();
        return NULL;
    }
    run.state = core_state_of_module(module);
    core_process_watch();
    drop_gil();
    r = gpud_init(definition, 1, &why); /* does not return in a worker */
    if (r == 0)
        (void)gpud_fini();
    take_gil();
    forget_handler();
    PyErr_Format(PyExc_RuntimeError, "this process was not started as a worker%s%s",
                 r ? ": " : "", r ? why.text : "");
    return NULL;
}

static PyObject *current(PyObject *module, PyObject *unused)
{
    PyObject *task = core_process_forked() ? NULL : first_task();

    (void)module, (void)unused;
    if (task)
        return own(task);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *call(PyObject *module, PyObject *args)
{
    PyObject *function, *positional, *kw = NULL;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO!|O!:call", &function, &PyTuple_Type, &positional, &PyDict_Type,
                          &kw))
        return NULL;
    return core_alarm_call(function, positional, kw);
}

typedef int(memory_fn)(size_t *free, size_t *total);

/* Free and total bytes of the current GPU; ValueError where this process uses none. */
static PyObject *device_memory(PyObject *module, PyObject *unused)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), *at;
    size_t free_ = 0, total = 0;
    memory_fn *get = NULL;
    int r = -1;

    (void)module, (void)unused;
    at = driver ? dlsym(driver, "cuMemGetInfo_v2") : NULL;
    memcpy(&get, &at, sizeof get);
    if (get) {
        Py_BEGIN_ALLOW_THREADS
        r = get(&free_, &total);
        Py_END_ALLOW_THREADS
    }
    if (driver)
        (void)dlclose(driver);
    if (r == 0)
        return Py_BuildValue("KK", (unsigned long long)free_, (unsigned long long)total);
    PyErr_SetString(PyExc_ValueError, "no GPU is in use");
    return NULL;
}

static PyMethodDef functions[] = {
    { "device_memory", device_memory, METH_NOARGS, "device_memory(): (free, total) of the GPU" },
    { "run_worker", run_worker, METH_O,
      "run_worker(handler): becomes the worker; RuntimeError where this process is none" },
    { "current", current, METH_NOARGS, "current(): the Task that runs, or None" },
    { "call", call, METH_VARARGS,
      "call(function, args, kwargs={}): user code, which limits and stops interrupt" },
    { NULL, NULL, 0, NULL },
};

int core_add_worker_types(PyObject *module, struct core_state *state)
{
    if (core_add_type(module, &state->worker_type, &worker_spec))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
