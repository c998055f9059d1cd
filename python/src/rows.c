/* SPDX-License-Identifier: MIT */
/*
 * rows.c - stats, slots, devices, classes and reasons as dictionaries, named as in the C headers.
 *
 * tables.py has their types.  A value that the library does not know (GPUD_NEVER, GPUD_UNKNOWN64,
 * GPUD_UNKNOWN32) is None.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#include <gpudispatch/device.h>
#include <gpudispatch/sched.h>
#include <gpudispatch/stats.h>

static int put(PyObject *row, const char *name, PyObject *value)
{
    int r = value ? PyDict_SetItemString(row, name, value) : -1;

    Py_XDECREF(value);
    return r;
}

static int put_number(PyObject *row, const char *name, uint64_t value)
{
    return put(row, name, PyLong_FromUnsignedLongLong(value));
}

/* A time or a reading, of 4 or 8 bytes, that may be unknown. */
static int put_reading(PyObject *row, const char *name, uint64_t value, size_t size)
{
    if (value == (size == sizeof(uint32_t) ? GPUD_UNKNOWN32 : GPUD_UNKNOWN64))
        return PyDict_SetItemString(row, name, Py_None);
    return put_number(row, name, value);
}

static int put_text(PyObject *row, const char *name, const char *text)
{
    return put(row, name, PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"));
}

PyObject *core_rows_stats(struct core_state *state, gpud_dispatcher *d)
{
    struct gpud_stats s = GPUD_STATS_INIT;
    struct gpud_stats_info info = GPUD_STATS_INFO_INIT;
    int r = gpud_dispatcher_stats(d, &s);
    PyObject *row;

    if (r < 0)
        return core_raise(state, r, NULL);
    row = PyDict_New();
    if (!row)
        return NULL;
    r = put_number(row, "taken_at", s.taken_at) || put_number(row, "first_start", s.first_start) ||
        put(row, "throughput", PyFloat_FromDouble(s.throughput)) ||
        put_number(row, "slot_count", s.slot_count) ||
        put_reading(row, "eta_low", s.eta_low, sizeof s.eta_low) ||
        put_reading(row, "eta_high", s.eta_high, sizeof s.eta_high);
    for (size_t i = 0; !r && gpud_stats_info(i, &info) == 0; i++)
        r = put_number(row, info.name, gpud_stats_value(&s, i));
    if (!r)
        return row;
    Py_DECREF(row);
    return NULL;
}

static PyObject *slot_row(const struct gpud_slot_stats *s)
{
    PyObject *row = PyDict_New(), *outcomes = PyDict_New();
    int r = !row || !outcomes;

    for (uint32_t i = 1; !r && i < GPUD_OUTCOME_COUNT; i++)
        r = put_number(outcomes, gpud_outcome_name(i), s->outcomes[i]);
    r = r || put_number(row, "slot", s->slot) ||
        put_text(row, "state", gpud_slot_state_name(s->state)) ||
        put_number(row, "incarnation", s->incarnation) ||
        put(row, "pid", PyLong_FromLongLong(s->pid)) || put_number(row, "since", s->since) ||
        put_number(row, "task_id", s->task_id) ||
        put_number(row, "task_started", s->task_started) ||
        put(row, "progress", PyFloat_FromDouble(s->progress)) ||
        put_number(row, "last_duration", s->last_duration) ||
        put_number(row, "setup_time", s->setup_time) ||
        put_number(row, "work_time", s->work_time) || put_number(row, "wait_time", s->wait_time) ||
        put_number(row, "restarts", s->restarts) || put_number(row, "sent", s->sent) ||
        put_text(row, "device", s->device) || put_number(row, "device_count", s->device_count) ||
        put_text(row, "devices", s->devices) || put_text(row, "label", s->label) ||
        put_text(row, "progress_text", s->progress_text) ||
        put_text(row, "class_name", s->class_name) ||
        put_number(row, "ready_at", s->ready_at) ||
        PyDict_SetItemString(row, "outcomes", outcomes);
    Py_XDECREF(outcomes);
    if (!r)
        return row;
    Py_XDECREF(row);
    return NULL;
}

/* A row of the machine has none. */
static int put_state(PyObject *row, uint32_t state)
{
    return state ? put_text(row, "state", gpud_device_state_name(state))
                 : PyDict_SetItemString(row, "state", Py_None);
}

static PyObject *device_row(const struct gpud_device_info *v)
{
    PyObject *row = PyDict_New();

#define N(field) put_reading(row, #field, v->field, sizeof v->field)
#define S(field) put_text(row, #field, v->field)
    if (row &&
        !(put_text(row, "kind", gpud_device_kind_name(v->kind)) || S(name) || S(uuid) ||
          S(model) || S(pci) || S(mig_profile) || S(parent_uuid) || S(evidence) || N(index) ||
          N(compute_major) || N(compute_minor) || N(compute_mode) || N(numa_node) ||
          put_text(row, "health", gpud_health_name(v->health)) || N(since) || N(sampled_at) ||
          N(memory_total) || N(memory_used) || N(memory_free) || N(memory_ours) ||
          N(memory_foreign) || N(foreign_processes) || N(foreign_pid) || N(utilization) ||
          N(memory_utilization) || N(temperature) || N(power) || N(power_limit) || N(sm_clock) ||
          N(throttle) || N(ecc_corrected) || N(ecc_uncorrected) || N(remapped_rows) ||
          N(remap_pending) || N(remap_failed) || N(recovery) || N(last_xid) || N(xids) ||
          N(last_xid_at) || N(slots) || N(draining) || N(canary_passes) || N(canary_failures) ||
          N(canary_at) || N(paused) || put_state(row, v->state) || N(state_since) ||
          N(ready_at) || N(tasks_done) || N(task_id) || N(task_started) ||
          put(row, "progress", PyFloat_FromDouble(v->progress)) || N(workers) || N(pid) ||
          N(slot) || S(class_name)))
        return row;
#undef N
#undef S
    Py_XDECREF(row);
    return NULL;
}

/* One list from n records of a size; `make` turns a record into a dictionary. */
static PyObject *list_of(const char *records, size_t size, size_t n,
                         PyObject *(*make)(const void *))
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < n; i++) {
        PyObject *row = make(records + i * size);
        if (!row || PyList_Append(list, row))
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *make_slot(const void *record)
{
    return slot_row(record);
}

static PyObject *make_device(const void *record)
{
    return device_row(record);
}

/* One record for each slot, to be freed; their count, or -1 and an exception. */
static int read_slots(struct core_state *state, gpud_dispatcher *d, struct gpud_slot_stats **ret)
{
    const struct gpud_slot_stats first = GPUD_SLOT_STATS_INIT;
    int n = gpud_dispatcher_slots(d, NULL, 0), r;

    if (n < 0) {
        core_raise(state, n, NULL);
        return -1;
    }
    *ret = PyMem_Calloc((size_t)n + 1, sizeof **ret);
    if (!*ret) {
        PyErr_NoMemory();
        return -1;
    }
    (*ret)[0] = first;
    r = gpud_dispatcher_slots(d, *ret, (size_t)n);
    if (r >= 0)
        return r < n ? r : n;
    PyMem_Free(*ret);
    core_raise(state, r, NULL);
    return -1;
}

PyObject *core_rows_slots(struct core_state *state, gpud_dispatcher *d)
{
    struct gpud_slot_stats *rows;
    int n = read_slots(state, d, &rows);
    PyObject *list;

    if (n < 0)
        return NULL;
    list = list_of((const char *)rows, sizeof *rows, (size_t)n, make_slot);
    PyMem_Free(rows);
    return list;
}

PyObject *core_rows_running(struct core_state *state, gpud_dispatcher *d)
{
    struct gpud_slot_stats *rows;
    int n = read_slots(state, d, &rows);
    PyObject *list;

    if (n < 0)
        return NULL;
    list = PyList_New(0);
    for (int i = 0; list && i < n; i++) {
        PyObject *id;
        if (!rows[i].task_started)
            continue;
        id = PyLong_FromUnsignedLongLong(rows[i].task_id);
        if (!id || PyList_Append(list, id))
            Py_CLEAR(list);
        Py_XDECREF(id);
    }
    PyMem_Free(rows);
    return list;
}

/* Fills up to n records, whose first one has its size; returns how many there are. */
typedef int read_fn(gpud_dispatcher *d, void *records, size_t n);

/* One list from all records of a dispatcher; `first` is one of them that is empty. */
static PyObject *list_all(struct core_state *state, gpud_dispatcher *d, read_fn *read,
                          const void *first, size_t size, PyObject *(*make)(const void *))
{
    int n = read(d, NULL, 0), r;
    PyObject *list;
    char *records;

    if (n < 0)
        return core_raise(state, n, NULL);
    records = PyMem_Calloc((size_t)n + 1, size);
    if (!records)
        return PyErr_NoMemory();
    memcpy(records, first, size);
    r = read(d, records, (size_t)n);
    list = r < 0 ? core_raise(state, r, NULL)
                 : list_of(records, size, (size_t)(r < n ? r : n), make);
    PyMem_Free(records);
    return list;
}

static int read_devices(gpud_dispatcher *d, void *records, size_t n)
{
    return gpud_dispatcher_devices(d, records, n);
}

PyObject *core_rows_devices(struct core_state *state, gpud_dispatcher *d)
{
    const struct gpud_device_info first = GPUD_DEVICE_INFO_INIT;

    return list_all(state, d, read_devices, &first, sizeof first, make_device);
}

/* ---- of a pooled dispatcher ---- */

#define REASONS 32u /* room for these at first */
#define LINE_SIZE 1024

#define N(field) put_number(row, #field, v->field)
#define S(field) put_text(row, #field, v->field)

static PyObject *make_class(const void *record)
{
    const struct gpud_class_stats *v = record;
    PyObject *row = PyDict_New();

    if (row &&
        !(S(name) || S(definition) || N(paused) || N(pinned) || N(failed) || N(removing) ||
          N(workers) || N(starting) || N(queued) || N(running) || N(done) || N(failures) ||
          N(oldest_wait) || N(boot_p10) || N(boot_p50) || N(boot_p90) || N(unload_p10) ||
          N(unload_p50) || N(unload_p90) || N(run_p10) || N(run_p50) || N(run_p90)))
        return row;
    Py_XDECREF(row);
    return NULL;
}

static const char *unit_name(uint32_t unit)
{
    static const char *const names[] = {
        [GPUD_UNIT_NONE] = "",           [GPUD_UNIT_BYTES] = "bytes",
        [GPUD_UNIT_SHARE] = "share",     [GPUD_UNIT_CPUS] = "cpus",
        [GPUD_UNIT_WORKERS] = "workers", [GPUD_UNIT_DEVICES] = "devices",
        [GPUD_UNIT_COMPUTE] = "compute",
    };

    return unit < sizeof names / sizeof names[0] ? names[unit] : "";
}

static PyObject *make_reason(const void *record)
{
    const struct gpud_reason *v = record;
    PyObject *row = PyDict_New();
    char line[LINE_SIZE];

    if (gpud_reason_format(v, line, sizeof line) < 0)
        line[0] = 0;
    if (row && !(put_text(row, "kind", gpud_reason_name(v->kind)) || N(variant) ||
                 put_text(row, "unit", unit_name(v->unit)) || S(device) || S(class_name) ||
                 N(task_id) || N(have) || N(need) || N(until) || N(pid) ||
                 put_text(row, "text", line)))
        return row;
    Py_XDECREF(row);
    return NULL;
}

#undef N
#undef S

static int read_classes(gpud_dispatcher *d, void *records, size_t n)
{
    return gpud_dispatcher_classes(d, records, n);
}

PyObject *core_rows_classes(struct core_state *state, gpud_dispatcher *d)
{
    const struct gpud_class_stats first = GPUD_CLASS_STATS_INIT;

    return list_all(state, d, read_classes, &first, sizeof first, make_class);
}

/* All of them, to be freed with success or without it: 0, or the code of a failure. */
static int read_reasons(gpud_dispatcher *d, uint64_t id, const struct gpud_task_desc *task,
                        struct gpud_reason **rows, size_t *n, struct gpud_error *why)
{
    const struct gpud_reason first = GPUD_REASON_INIT;
    size_t room = REASONS;
    int r;

    for (;;) {
        struct gpud_reason *more = PyMem_Realloc(*rows, room * sizeof *more);
        if (!more)
            return GPUD_ENOMEM;
        *rows = more;
        more[0] = first;
        Py_BEGIN_ALLOW_THREADS
        r = gpud_dispatcher_explain(d, id, task, more, room, n, why);
        Py_END_ALLOW_THREADS
        if (r || *n <= room)
            return r;
        room = *n + REASONS; /* more may come meanwhile */
    }
}

PyObject *core_rows_reasons(struct core_state *state, gpud_dispatcher *d, uint64_t id,
                            const struct gpud_task_desc *task)
{
    struct gpud_error why = GPUD_ERROR_INIT;
    struct gpud_reason *rows = NULL;
    size_t n = 0;
    int r = read_reasons(d, id, task, &rows, &n, &why);
    PyObject *list = r ? core_raise(state, r, &why)
                       : list_of((const char *)rows, sizeof *rows, n, make_reason);

    PyMem_Free(rows);
    return list;
}

/* ---- the machine, without a dispatcher ---- */

/* How long the driver may take for its first reply. */
#define FIRST_READING GPUD_S(10)

static int read_machine(struct gpud_device_info **ret_rows, struct gpud_error *why)
{
    const struct gpud_device_info first = GPUD_DEVICE_INFO_INIT;
    gpud_monitor *m = NULL;
    int r = gpud_monitor_open(&m, NULL, why), n = 0;

    if (r)
        return r;
    n = gpud_monitor_read(m, NULL, 0, GPUD_NEVER, FIRST_READING);
    if (n > 0)
        *ret_rows = calloc((size_t)n, sizeof first);
    if (*ret_rows) {
        (*ret_rows)[0] = first;
        r = gpud_monitor_read(m, *ret_rows, (size_t)n, GPUD_NEVER, 0);
        n = r < n ? r : n;
    }
    (void)gpud_monitor_close(&m);
    return n;
}

PyObject *core_rows_machine(PyObject *module, PyObject *unused)
{
    struct gpud_error why = GPUD_ERROR_INIT;
    struct gpud_device_info *rows = NULL;
    PyObject *list;
    int n;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    n = read_machine(&rows, &why);
    Py_END_ALLOW_THREADS
    if (n < 0)
        list = core_raise(core_state_of_module(module), n, &why);
    else if (n && !rows)
        list = PyErr_NoMemory();
    else
        list = list_of((const char *)rows, sizeof *rows, (size_t)n, make_device);
    free(rows);
    return list;
}

PyObject *core_rows_counters(PyObject *module, PyObject *unused)
{
    struct gpud_stats_info info = GPUD_STATS_INFO_INIT;
    PyObject *list = PyList_New(0);

    (void)module, (void)unused;
    for (size_t i = 0; list && gpud_stats_info(i, &info) == 0; i++) {
        PyObject *row = Py_BuildValue("(ssss)", info.name, info.unit,
                                      info.kind == GPUD_STATS_GAUGE ? "gauge" : "counter",
                                      info.help);
        if (!row || PyList_Append(list, row))
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}
