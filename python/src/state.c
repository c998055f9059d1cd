/* SPDX-License-Identifier: MIT */
/* state.c - how a part of _core adds a type to the module and to its state. */
#include "state.h"

int core_add_type(PyObject *module, PyTypeObject **slot, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);

    if (!type)
        return -1;
    *slot = (PyTypeObject *)type;
    return PyModule_AddType(module, *slot);
}
