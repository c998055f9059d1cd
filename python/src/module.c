/* SPDX-License-Identifier: MIT */
/*
 * module.c - the extension module gpudispatch._core: its definition, and the life of its state.
 *
 * One file compiled against the limited API of 3.11 serves 3.11 and later.  The slot that permits
 * isolated sub-interpreters is of 3.12: 3.11 refuses a module that has it, and 3.12 and later refuse
 * one that lacks it.  So there are two tables of slots, and the interpreter that imports the module
 * decides which one it gets.
 */
#include "state.h"

#include <gpudispatch/gpudispatch.h>

/* The limited API of 3.11 has no names for these. */
#ifndef Py_mod_multiple_interpreters
#define Py_mod_multiple_interpreters 3
#endif
#ifndef Py_MOD_PER_INTERPRETER_GIL_SUPPORTED
#define Py_MOD_PER_INTERPRETER_GIL_SUPPORTED ((void *)2)
#endif

#define FIRST_WITH_ISOLATION 0x030c0000 /* 3.12 */

static int add_constants(PyObject *module)
{
    return PyModule_AddStringConstant(module, "library_version", gpud_version());
}

static int exec_module(PyObject *module)
{
    static int (*const parts[])(PyObject *, struct core_state *) = {
        core_add_frame_functions,
        core_add_shared_types,
        core_add_template_types,
        core_add_event_types,
        core_add_dispatcher_types,
        core_add_memory_types,
        core_add_task_types,
        core_add_worker_types,
        NULL,
    };
    struct core_state *state = core_state_of_module(module);

    if (add_constants(module))
        return -1;
    for (size_t i = 0; parts[i]; i++)
        if (parts[i](module, state))
            return -1;
    return 0;
}

static int traverse_module(PyObject *module, visitproc visit, void *arg)
{
    struct core_state *state = core_state_of_module(module);

#define X(type, name) Py_VISIT(state->name);
    CORE_STATE_OBJECTS(X)
#undef X
    return 0;
}

static int clear_module(PyObject *module)
{
    struct core_state *state = core_state_of_module(module);

#define X(type, name) Py_CLEAR(state->name);
    CORE_STATE_OBJECTS(X)
#undef X
    return 0;
}

static void free_module(void *module)
{
    struct core_state *state = core_state_of_module(module);

    (void)clear_module(module);
    core_pool_drop(state->pool);
    state->pool = NULL;
}

static PyModuleDef_Slot slots[] = {
    { Py_mod_exec, (void *)exec_module },
    { Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED },
#ifdef Py_GIL_DISABLED
    { Py_mod_gil, Py_MOD_GIL_NOT_USED },
#endif
    { 0, NULL },
};

static PyModuleDef_Slot slots_before_isolation[] = {
    { Py_mod_exec, (void *)exec_module },
    { 0, NULL },
};

#define DEFINITION(table)                                                                          \
    {                                                                                              \
        .m_base = PyModuleDef_HEAD_INIT, .m_name = "gpudispatch._core",                            \
        .m_doc = "The C part of gpudispatch; programs use the package's own names.",               \
        .m_size = sizeof(struct core_state), .m_slots = (table), .m_traverse = traverse_module,    \
        .m_clear = clear_module, .m_free = free_module                                             \
    }

static PyModuleDef definition = DEFINITION(slots);
static PyModuleDef definition_before_isolation = DEFINITION(slots_before_isolation);

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(Py_Version >= FIRST_WITH_ISOLATION ? &definition
                                                               : &definition_before_isolation);
}
