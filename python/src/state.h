/* SPDX-License-Identifier: MIT */
/*
 * state.h - what the files of _core share: the state of one module object, and the parts that fill
 * it.
 *
 * Nothing here is a C global: each interpreter that imports _core has a module object of its own,
 * with its own types.  A function of the module gets the state from the module object; a method of a
 * type gets it by core_state_of(Py_TYPE(self)), which is right since all types are final.
 */
#ifndef CORE_STATE_H
#define CORE_STATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* The build passes Py_LIMITED_API, except for a free-threaded interpreter, which has no stable
 * ABI before 3.15. */
#if !defined Py_LIMITED_API && PY_VERSION_HEX < 0x030b0000
#error "CPython 3.11 or later is needed"
#endif

/* The objects that the state owns: X(C type, name).  A part that needs one more appends it here;
 * traverse and clear visit each. */
#define CORE_STATE_OBJECTS(X)                                                                      \
    X(PyObject, errors)              /* module gpudispatch.errors, or NULL before its first use */ \
    X(PyObject, settle)              /* what settle.c uses, or NULL before its first use */        \
    X(PyObject, loads)               /* of pickle: what frame.c uses, or NULL as above */           \
    X(PyObject, dumps)                                                                             \
    X(PyObject, protocol)                                                                          \
    X(PyTypeObject, shared_type)                                                                   \
    X(PyTypeObject, template_type)                                                                 \
    X(PyTypeObject, event_type)                                                                    \
    X(PyTypeObject, lease_type)      /* a large result, in payload memory */                       \
    X(PyTypeObject, dispatcher_type)                                                               \
    X(PyTypeObject, worker_type)                                                                   \
    X(PyTypeObject, task_type)                                                                     \
    X(PyTypeObject, view_type)       /* exports a task's data, or a part of its result */          \
    X(PyTypeObject, memory_type)     /* what large buffers are copied into */                      \
    X(PyObject, no_room)             /* exception _core.NoRoom */

struct core_pool;

struct core_state {
#define X(type, name) type *name;
    CORE_STATE_OBJECTS(X)
#undef X
    struct core_pool *pool; /* memory.c: memory that waits for its next use */
};

/* The module object's state, and that of a type's module; neither fails for what is ours. */
static inline struct core_state *core_state_of_module(PyObject *module)
{
    return (struct core_state *)PyModule_GetState(module);
}

static inline struct core_state *core_state_of(PyTypeObject *type)
{
    return (struct core_state *)PyType_GetModuleState(type);
}

/* Makes a type of the module and keeps it at `slot` of the state; it becomes an attribute of the
 * module, too.  0, or -1 with an exception. */
int core_add_type(PyObject *module, PyTypeObject **slot, PyType_Spec *spec);

/* The parts, one a file, in the order in which module.c calls them; each adds its types, functions
 * and constants.  0, or -1 with an exception. */
int core_add_frame_functions(PyObject *module, struct core_state *state);
int core_add_shared_types(PyObject *module, struct core_state *state);
int core_add_template_types(PyObject *module, struct core_state *state);
int core_add_event_types(PyObject *module, struct core_state *state);
int core_add_dispatcher_types(PyObject *module, struct core_state *state);
int core_add_memory_types(PyObject *module, struct core_state *state);
int core_add_task_types(PyObject *module, struct core_state *state);
int core_add_worker_types(PyObject *module, struct core_state *state);

/* Drops one hold of the memory that waits for its next use; the last one frees it. */
void core_pool_drop(struct core_pool *pool);

#endif
