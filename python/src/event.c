/* SPDX-License-Identifier: MIT */
/* event.c - Event: one event of the library; Lease: a large result where the worker wrote it. */
#include "core.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* Larger results stay in payload memory until they are decoded. */
#define COPY_MAX 4096u
/* Copies of at least this size get pages of their own. */
#define OWN_MAPPED (1u << 20)

struct event {
    PyObject_HEAD
    unsigned long long tag, task_id, queued_at, sent_at, started_at, ended_at, revoke_by, starts_by,
        memory;
    unsigned int kind, number, outcome, phase, attempt, slot, incarnation, slot_state, level,
        exit_kind, stream, change, promise, share, revoked, revoke;
    int code, exit_status;
    unsigned int refused; /* by core_settle */
    double progress;
    PyObject *text, *label, *device, *result, *output, *output_before, *class_name, *device_uuid;
};

struct lease {
    PyObject_HEAD
    struct gpud_event kept;
    Py_ssize_t exports;
};

/* ---- Lease ---- */

static int lease_get(PyObject *o, Py_buffer *view, int flags)
{
    struct lease *self = (struct lease *)o;

    return PyBuffer_FillInfo(view, o, (void *)(uintptr_t)self->kept.result,
                             (Py_ssize_t)self->kept.result_size, 1, flags);
}

static void lease_dealloc(PyObject *o)
{
    struct lease *self = (struct lease *)o;
    PyTypeObject *type = Py_TYPE(o);

    (void)gpud_event_release(&self->kept);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

static Py_ssize_t lease_length(PyObject *o)
{
    return (Py_ssize_t)((struct lease *)o)->kept.result_size;
}

static PyType_Slot lease_slots[] = {
    { Py_tp_dealloc, lease_dealloc },
    { Py_bf_getbuffer, lease_get },
    { Py_mp_length, lease_length },
    { Py_tp_doc, "A large result, in the memory into which the worker wrote it." },
    { 0, NULL },
};

static PyType_Spec lease_spec = {
    .name = "gpudispatch._core.Lease",
    .basicsize = sizeof(struct lease),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = lease_slots,
};

/* A result as bytes, or as a view of a Lease where it is large. */
static PyObject *result_of(struct core_state *state, gpud_dispatcher *d,
                           const struct gpud_event *e)
{
    allocfunc alloc;
    struct lease *lease;
    PyObject *view;

    if (e->result_size <= COPY_MAX)
        return PyBytes_FromStringAndSize(e->result, (Py_ssize_t)e->result_size);
    alloc = (allocfunc)PyType_GetSlot(state->lease_type, Py_tp_alloc);
    lease = (struct lease *)alloc(state->lease_type, 0);
    if (!lease)
        return NULL;
    lease->kept = *e;
    if (gpud_event_keep(d, &lease->kept) == 0) {
        view = PyMemoryView_FromObject((PyObject *)lease);
        Py_DECREF(lease);
        return view;
    }
    /* queue_size events are kept: a copy does as well */
    lease->kept = (struct gpud_event)GPUD_EVENT_INIT;
    Py_DECREF(lease);
    return PyBytes_FromStringAndSize(e->result, (Py_ssize_t)e->result_size);
}

/* ---- Event ---- */

static PyObject *words(const char *s)
{
    return s && *s ? PyUnicode_DecodeUTF8(s, (Py_ssize_t)strlen(s), "replace") : NULL;
}

static PyObject *bytes_of(const char *s, uint64_t n)
{
    return n ? PyBytes_FromStringAndSize(s, (Py_ssize_t)n) : NULL;
}

/* What the kinds of which there are many never have, or can do without: a task knows its class. */
static void fill_rare(struct event *self, const struct gpud_event *e)
{
    if (e->kind == GPUD_EVENT_OUTCOME || e->kind == GPUD_EVENT_STARTED ||
        e->kind == GPUD_EVENT_PROGRESS)
        return;
    self->class_name = words(e->class_name);
    self->device_uuid = words(e->device_uuid);
    self->change = e->class_change;
    self->promise = e->promise;
    self->starts_by = e->starts_by;
    self->share = e->share;
    self->memory = e->memory;
    self->revoked = e->revoked;
    self->revoke = e->revoke;
    self->revoke_by = e->revoke_by;
}

PyObject *core_event_new(struct core_state *state, gpud_dispatcher *d,
                         const struct gpud_event *e, PyObject *device)
{
    PyTypeObject *type = state->event_type;
    struct event *self = (struct event *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);

    if (!self)
        return NULL;
    self->kind = e->kind;
    self->tag = core_tag(e->tag);
    self->number = core_number(e->tag);
    self->task_id = e->task_id;
    self->outcome = e->outcome;
    self->phase = e->phase;
    self->code = e->code;
    self->attempt = e->attempt;
    self->slot = e->slot;
    self->incarnation = e->incarnation;
    self->slot_state = e->slot_state;
    self->level = e->level;
    self->exit_kind = e->exit_kind;
    self->exit_status = e->exit_status;
    self->progress = e->progress;
    self->stream = e->stream;
    self->queued_at = e->queued_at;
    self->sent_at = e->sent_at;
    self->started_at = e->started_at;
    self->ended_at = e->ended_at;
    self->text = words(e->text);
    self->label = words(e->label);
    self->output = bytes_of(e->output, e->output_size);
    self->output_before = bytes_of(e->output_before, e->output_before_size);
    Py_XINCREF(device);
    self->device = device;
    fill_rare(self, e);
    if (e->result_size)
        self->result = result_of(state, d, e);
    if (PyErr_Occurred()) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

struct core_event_facts core_event_facts(PyObject *o)
{
    const struct event *self = (const struct event *)o;

    return (struct core_event_facts){
        .tag = self->tag,
        .kind = self->kind,
        .outcome = self->outcome,
        .refused = self->refused,
        .result = self->result
    };
}

void core_event_refuse(PyObject *o)
{
    ((struct event *)o)->refused = 1;
}

void core_event_drop_result(PyObject *o)
{
    Py_CLEAR(((struct event *)o)->result);
}

static void event_dealloc(PyObject *o)
{
    struct event *self = (struct event *)o;
    PyTypeObject *type = Py_TYPE(o);

    Py_CLEAR(self->text);
    Py_CLEAR(self->label);
    Py_CLEAR(self->device);
    Py_CLEAR(self->result);
    Py_CLEAR(self->output);
    Py_CLEAR(self->output_before);
    Py_CLEAR(self->class_name);
    Py_CLEAR(self->device_uuid);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

/* Hands the result over, so that its memory is free as soon as the caller drops it. */
static PyObject *take(PyObject *o, PyObject *unused)
{
    struct event *self = (struct event *)o;
    PyObject *result = self->result;

    (void)unused;
    self->result = NULL;
    if (result)
        return result;
    Py_RETURN_NONE;
}

/* Copies a result out of payload memory, which has room for others then. */
static PyObject *own(PyObject *o, PyObject *unused)
{
    struct event *self = (struct event *)o;
    PyObject *leased = self->result, *copy;

    (void)unused;
    if (!leased || !PyMemoryView_Check(leased))
        Py_RETURN_NONE;
    Py_INCREF(leased);
    if (PyObject_Size(leased) < (Py_ssize_t)OWN_MAPPED)
        copy = PyBytes_FromObject(leased);
    else
        copy = core_memory_copied(core_state_of(Py_TYPE(o)), leased);
    if (copy && self->result == leased) { /* no other thread has taken it meanwhile */
        self->result = copy;
        copy = leased;
    }
    Py_DECREF(leased);
    if (!copy)
        return NULL;
    Py_DECREF(copy);
    Py_RETURN_NONE;
}

/* ---- records of a journal: records.py has the format ---- */

#define FRONT_SIZE 8 /* of what stands before all this in the file */
#define DEVICE_MAX 255
#define KIND_SUCCESS 1

struct record {
    uint64_t size;
    uint8_t kind, zero;
    uint16_t device_size;
    uint32_t key_size, text_size, tail_size, attempt, turn;
    int64_t place;
    uint64_t queued_at, sent_at, started_at, ended_at;
    int64_t clock;
};
_Static_assert(sizeof(struct record) == 80, "no gaps");
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "records are little endian"
#endif

/* That of a success without words, as Journal.put makes it, but faster. */
static PyObject *record(PyObject *o, PyObject *args)
{
    const struct event *self = (const struct event *)o;
    struct record r = { .kind = KIND_SUCCESS, .attempt = self->attempt };
    const char *key, *payload, *device = "";
    Py_ssize_t key_size, payload_size, device_size = 0;
    unsigned int turn;
    long long place, clock;
    PyObject *made;
    char *at;

    if (!PyArg_ParseTuple(args, "y#ILLy#", &key, &key_size, &turn, &place, &clock, &payload,
                          &payload_size) ||
        (self->device && !(device = PyUnicode_AsUTF8AndSize(self->device, &device_size))))
        return NULL;
    if (device_size > DEVICE_MAX)
        device_size = DEVICE_MAX;
    r.device_size = (uint16_t)device_size;
    r.key_size = (uint32_t)key_size;
    r.size = FRONT_SIZE + sizeof r + r.key_size + r.device_size + (uint64_t)payload_size;
    r.turn = turn;
    r.place = place;
    r.queued_at = self->queued_at;
    r.sent_at = self->sent_at;
    r.started_at = self->started_at;
    r.ended_at = self->ended_at;
    r.clock = clock;
    made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(r.size - FRONT_SIZE));
    if (!made)
        return NULL;
    at = PyBytes_AsString(made);
    memcpy(at, &r, sizeof r);
    at += sizeof r;
    memcpy(at, key, r.key_size);
    at += r.key_size;
    memcpy(at, device, r.device_size);
    memcpy(at + r.device_size, payload, (size_t)payload_size);
    return made;
}

static PyMethodDef event_methods[] = {
    { "record", record, METH_VARARGS,
      "record(key, turn, place, clock, payload): a journal's record of it, without its front" },
    { "own", own, METH_NOARGS, "own(): copies the result out of the payload budget" },
    { "take", take, METH_NOARGS, "take(): hands over the result, or None" },
    { NULL, NULL, 0, NULL },
};

#define FIELD(name, type) { #name, type, offsetof(struct event, name), READONLY, NULL }

static PyMemberDef event_members[] = {
    FIELD(kind, T_UINT),           FIELD(tag, T_ULONGLONG),
    FIELD(task_id, T_ULONGLONG),   FIELD(outcome, T_UINT),
    FIELD(phase, T_UINT),          FIELD(code, T_INT),
    FIELD(attempt, T_UINT),        FIELD(slot, T_UINT),
    FIELD(incarnation, T_UINT),    FIELD(slot_state, T_UINT),
    FIELD(level, T_UINT),          FIELD(exit_kind, T_UINT),
    FIELD(exit_status, T_INT),     FIELD(progress, T_DOUBLE),
    FIELD(stream, T_UINT),         FIELD(queued_at, T_ULONGLONG),
    FIELD(sent_at, T_ULONGLONG),   FIELD(started_at, T_ULONGLONG),
    FIELD(ended_at, T_ULONGLONG),  FIELD(text, T_OBJECT),
    FIELD(label, T_OBJECT),        FIELD(device, T_OBJECT),
    FIELD(result, T_OBJECT),       FIELD(output, T_OBJECT),
    FIELD(output_before, T_OBJECT), FIELD(number, T_UINT),
    FIELD(class_name, T_OBJECT),   FIELD(device_uuid, T_OBJECT),
    FIELD(change, T_UINT),         FIELD(promise, T_UINT),
    FIELD(starts_by, T_ULONGLONG), FIELD(share, T_UINT),
    FIELD(memory, T_ULONGLONG),    FIELD(revoked, T_UINT),
    FIELD(revoke, T_UINT),         FIELD(revoke_by, T_ULONGLONG),
    { NULL, 0, 0, 0, NULL },
};

static PyType_Slot event_slots[] = {
    { Py_tp_dealloc, event_dealloc },
    { Py_tp_members, event_members },
    { Py_tp_methods, event_methods },
    { Py_tp_doc, "One event of a dispatcher: the fields of struct gpud_event." },
    { 0, NULL },
};

static PyType_Spec event_spec = {
    .name = "gpudispatch._core.Event",
    .basicsize = sizeof(struct event),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = event_slots,
};

int core_add_event_types(PyObject *module, struct core_state *state)
{
    return core_add_type(module, &state->lease_type, &lease_spec) ||
                   core_add_type(module, &state->event_type, &event_spec)
               ? -1
               : 0;
}
