/* SPDX-License-Identifier: MIT */
/* core.h - the objects of the extension's host side, and the helpers that its files share. */
#ifndef CORE_H
#define CORE_H

#include "state.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gpudispatch/gpudispatch.h>

/* A tag names a task: futures count from 1; a session's tags have its number above these bits, and
 * a further bit where it wants STARTED events.  Bit CORE_RAW marks a future whose result is no
 * frame of ours.  sessions.py has the same numbers. */
#define CORE_RAW 39
#define CORE_SESSION_SHIFT 40
#define CORE_SESSION_WITH_STARTED 55
/* Above all that, the library's tags have the number of the task's class.  Python code never sees
 * it there: a Template brings it, and an Event has it apart. */
#define CORE_CLASS_SHIFT 56
#define CORE_NUMBERS 256u

static inline uint64_t core_tag(uint64_t library_tag)
{
    return library_tag & ((UINT64_C(1) << CORE_CLASS_SHIFT) - 1);
}

static inline unsigned int core_number(uint64_t library_tag)
{
    return (unsigned int)(library_tag >> CORE_CLASS_SHIFT);
}

/* ---- errors.c ---- */

/* Raises the exception class of a GPUD_E code (errors.py has the table); returns NULL. */
PyObject *core_raise(struct core_state *state, int code, const struct gpud_error *why);

/* ---- buffers.c: frames of several parts ---- */

/* Each part of a frame begins at a multiple of this, counted from the frame's start. */
#define CORE_ALIGN 64u
/* Copies of at least this many bytes are made without the GIL. */
#define CORE_COPY_UNLOCKED 65536u

/* The parts of a frame, held until core_parts_release. */
struct core_parts {
    Py_buffer *view;
    Py_ssize_t n;
    size_t size; /* of the whole frame */
};

/* Takes hold of bytes, or of each member of a list or tuple; -1 and an exception on failure. */
int core_parts_hold(struct core_parts *p, PyObject *data);
void core_parts_release(struct core_parts *p);
/* Writes the frame.  Needs no GIL. */
void core_parts_copy(const struct core_parts *p, unsigned char *to);

/* ---- frame.c: frames without buffers ---- */

/* Their first byte is op << 4 | form; codec.py has the same numbers. */
#define CORE_VALUE 0u
#define CORE_CALL 1u
#define CORE_ITEM 2u
#define CORE_OPS 7u

/* Whether core_frame_value reads the frame; else codec.decode does. */
bool core_frame_is_plain(const unsigned char *frame, size_t size);
PyObject *core_frame_value(struct core_state *state, const unsigned char *frame, size_t size);
/* The value of any frame: bytes, a view of a Lease, or None for a result of no bytes. */
PyObject *core_frame_load(struct core_state *state, PyObject *frame);
/* A frame of up to `most` bytes; NULL without an exception where the value is for codec.encode. */
PyObject *core_frame_pack(struct core_state *state, unsigned op, PyObject *value, size_t most);

/* ---- memory.c ---- */

/* A memoryview of a copy of a buffer's bytes, in memory that is used again. */
PyObject *core_memory_copied(struct core_state *state, PyObject *source);

/* ---- fields.c: values of dictionaries, in records of the library ---- */

/* A field that is a number of 4 or 8 bytes. */
struct core_field {
    const char *name;
    size_t at, size;
};
#define CORE_FIELD(type, name) { #name, offsetof(type, name), sizeof(((type *)NULL)->name) }

/* The field of a key; NULL where no field has the name. */
const struct core_field *core_field_find(const struct core_field *fields, size_t n, PyObject *key);
/* Writes a number; -1 and an exception where it does not fit. */
int core_field_set(void *record, const struct core_field *field, PyObject *value);
/* A text's bytes, kept alive in the list `keep`; NULL and an exception where it is no text. */
const char *core_text(PyObject *value, PyObject *keep);

/* ---- request.c ---- */

#define CORE_VARIANTS_MAX 4

/* A chain of variants, at a place that does not change: each points to the next one. */
struct core_requests {
    struct gpud_request at[CORE_VARIANTS_MAX];
    PyObject *keep; /* what on and not_on point into */
};

/* Fills r, which is all zero, from a list of dictionaries.  *ret_first is NULL for an empty list.
 * With -1 and an exception, too, core_requests_drop is the end of r. */
int core_requests_fill(struct core_requests *r, PyObject *list,
                       const struct gpud_request **ret_first);
void core_requests_drop(struct core_requests *r);

/* ---- template.c ---- */

struct core_template {
    struct gpud_task_desc desc; /* without tag, data and order */
    unsigned int number;        /* of the class, in the package */
    unsigned int quota;         /* most tasks of the number in the library; 0 = no bound */
};

/* What a Template holds; NULL and TypeError where it is none. */
const struct core_template *core_template_of(struct core_state *state, PyObject *template_);

/* ---- shared.c ---- */

gpud_shared *core_shared_handle(struct core_state *state, PyObject *shared);

/* ---- event.c ---- */

/* Makes an Event of a lent event; `device` is borrowed and may be NULL. */
PyObject *core_event_new(struct core_state *state, gpud_dispatcher *d,
                         const struct gpud_event *e, PyObject *device);

/* What settle.c needs of an Event; `result` is borrowed and may be NULL. */
struct core_event_facts {
    unsigned long long tag;
    unsigned int kind, outcome, refused;
    PyObject *result;
};
struct core_event_facts core_event_facts(PyObject *event);
/* Leaves the event to the pool's thread for good. */
void core_event_refuse(PyObject *event);
/* Drops the result, so that its memory is free. */
void core_event_drop_result(PyObject *event);

/* ---- settle.c ---- */

/* Takes what needs no other thread from the inbox's front: returns 0 once it is empty, 1 where the
 * next event is for the pool's thread, -1 and an exception. */
int core_settle(struct core_state *state, PyObject *inbox, PyObject *futures, PyObject *frames);
/* The same as a method of Dispatcher. */
PyObject *core_settle_method(PyObject *self, PyObject *args);
/* Of Dispatcher, too: hands the inbox to a session where all of it is the session's. */
PyObject *core_sort_method(PyObject *self, PyObject *args);
/* The same for several sessions, by number. */
PyObject *core_share_method(PyObject *self, PyObject *args);

/* ---- rows.c: records as dictionaries ---- */

PyObject *core_rows_stats(struct core_state *state, gpud_dispatcher *d);
PyObject *core_rows_slots(struct core_state *state, gpud_dispatcher *d);
/* The ids of the tasks that run now, of a batch the first one's. */
PyObject *core_rows_running(struct core_state *state, gpud_dispatcher *d);
PyObject *core_rows_devices(struct core_state *state, gpud_dispatcher *d);
PyObject *core_rows_classes(struct core_state *state, gpud_dispatcher *d);
/* Why a task does not start: one with an id, or with id 0 one that is not submitted. */
PyObject *core_rows_reasons(struct core_state *state, gpud_dispatcher *d, uint64_t id,
                            const struct gpud_task_desc *task);
/* Functions of the module: the machine's GPUs; the table of counters. */
PyObject *core_rows_machine(PyObject *module, PyObject *unused);
PyObject *core_rows_counters(PyObject *module, PyObject *unused);

/* ---- options.c ---- */

/* Fills options from a dictionary; `keep` receives the objects that the pointers belong to. */
int core_options_fill(struct core_state *state, struct gpud_options *o, PyObject *from,
                      PyObject *keep);

#endif
