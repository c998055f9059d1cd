/* SPDX-License-Identifier: MIT */
/* core.h - the objects of the extension's host side, and the helpers that its files share. */
#ifndef CORE_H
#define CORE_H

#include "state.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <gpudispatch/gpudispatch.h>

/* A tag names a task: futures count from 1; a session's tags have its number above these bits, and
 * a further bit where it wants STARTED events.  engine.py has the same numbers. */
#define CORE_SESSION_SHIFT 40
#define CORE_SESSION_WITH_STARTED 55

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

/* ---- template.c ---- */

/* The description that a Template holds; NULL and TypeError where it is none. */
const struct gpud_task_desc *core_template_desc(struct core_state *state, PyObject *template_);

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

/* ---- rows.c: records as dictionaries ---- */

PyObject *core_rows_stats(struct core_state *state, gpud_dispatcher *d);
PyObject *core_rows_slots(struct core_state *state, gpud_dispatcher *d);
/* The ids of the tasks that run now, of a batch the first one's. */
PyObject *core_rows_running(struct core_state *state, gpud_dispatcher *d);
PyObject *core_rows_devices(struct core_state *state, gpud_dispatcher *d);
/* Functions of the module: the machine's GPUs; the table of counters. */
PyObject *core_rows_machine(PyObject *module, PyObject *unused);
PyObject *core_rows_counters(PyObject *module, PyObject *unused);

/* ---- options.c ---- */

/* Fills options from a dictionary; `keep` receives the objects that the pointers belong to. */
int core_options_fill(struct core_state *state, struct gpud_options *o, PyObject *from,
                      PyObject *keep);

#endif
