/* SPDX-License-Identifier: MIT */
/* buffers.c - the parts of a frame, and their copy into payload memory. */
#include "core.h"

#include <string.h>

static size_t aligned(size_t n)
{
    return (n + CORE_ALIGN - 1) & ~(size_t)(CORE_ALIGN - 1);
}

static int hold(struct core_parts *p, PyObject *part)
{
    if (PyObject_GetBuffer(part, &p->view[p->n], PyBUF_SIMPLE))
        return -1;
    p->size = aligned(p->size) + (size_t)p->view[p->n].len;
    p->n++;
    return 0;
}

int core_parts_hold(struct core_parts *p, PyObject *data)
{
    Py_ssize_t n = 1;
    bool many = PyList_Check(data);

    if (many)
        n = PyList_Size(data);
    p->n = 0;
    p->size = 0;
    p->view = PyMem_Calloc((size_t)(n ? n : 1), sizeof *p->view);
    if (!p->view) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (hold(p, many ? PyList_GetItem(data, i) : data)) {
            core_parts_release(p);
            return -1;
        }
    return 0;
}

void core_parts_release(struct core_parts *p)
{
    for (Py_ssize_t i = 0; i < p->n; i++)
        PyBuffer_Release(&p->view[i]);
    PyMem_Free(p->view);
    p->view = NULL;
    p->n = 0;
}

void core_parts_copy(const struct core_parts *p, unsigned char *to)
{
    size_t at = 0;

    for (Py_ssize_t i = 0; i < p->n; i++) {
        size_t next = aligned(at);
        memset(to + at, 0, next - at);
        memcpy(to + next, p->view[i].buf, (size_t)p->view[i].len);
        at = next + (size_t)p->view[i].len;
    }
}
