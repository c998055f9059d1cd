/* SPDX-License-Identifier: MIT */
/*
 * memory.c - Memory: what the large buffers of a decoded frame are copied into.
 *
 * The first touch of fresh pages costs up to three times the copy itself, so memory comes in huge
 * pages where the kernel has them, and is kept for the next buffer when the last view of it has
 * gone.  Views can go on any thread and at any time, in a forked child too: nothing here waits for
 * a lock.
 */
#include "core.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* As much is kept at most, in as many pieces: two arrays of the size that hurts most. */
#define KEPT_BYTES ((size_t)128 << 20)
#define KEPT_PIECES 32u

#define HUGE_PAGE ((size_t)2 << 20)
#define PAGE ((size_t)4096)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

struct piece {
    unsigned char *data;
    size_t size;
};

/* The pieces that wait for use, the oldest first.  Each Memory and the module hold a reference. */
struct core_pool {
    atomic_uint holders;
    pthread_mutex_t lock;
    struct piece piece[KEPT_PIECES];
    unsigned n;
    size_t kept;
};

struct memory {
    PyObject_HEAD
    struct core_pool *pool;
    struct piece piece;
    size_t used;
};

static struct core_pool *pool_new(void)
{
    struct core_pool *pool = calloc(1, sizeof *pool);

    if (!pool)
        return NULL;
    if (pthread_mutex_init(&pool->lock, NULL)) {
        free(pool);
        return NULL;
    }
    atomic_init(&pool->holders, 1);
    return pool;
}

void core_pool_drop(struct core_pool *pool)
{
    if (!pool || atomic_fetch_sub(&pool->holders, 1) != 1)
        return;
    for (unsigned i = 0; i < pool->n; i++)
        (void)munmap(pool->piece[i].data, pool->piece[i].size);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}

static struct piece remove_at(struct core_pool *pool, unsigned i)
{
    struct piece p = pool->piece[i];

    pool->n--;
    pool->kept -= p.size;
    memmove(&pool->piece[i], &pool->piece[i + 1], (pool->n - i) * sizeof p);
    return p;
}

/* A kept piece of at least this size, and not much more; none where another thread looks, too. */
static struct piece take(struct core_pool *pool, size_t size)
{
    struct piece found = { NULL, 0 };
    unsigned best = KEPT_PIECES;

    if (pthread_mutex_trylock(&pool->lock))
        return found;
    for (unsigned i = pool->n; i-- > 0;)
        if (pool->piece[i].size >= size && pool->piece[i].size - size <= size / 4 &&
            (best == KEPT_PIECES || pool->piece[i].size < pool->piece[best].size))
            best = i;
    if (best != KEPT_PIECES)
        found = remove_at(pool, best);
    (void)pthread_mutex_unlock(&pool->lock);
    return found;
}

static void give(struct core_pool *pool, struct piece p)
{
    struct piece old[KEPT_PIECES + 1];
    unsigned n = 0;

    if (p.size > KEPT_BYTES || pthread_mutex_trylock(&pool->lock)) {
        (void)munmap(p.data, p.size);
        return;
    }
    while (pool->n == KEPT_PIECES || pool->kept + p.size > KEPT_BYTES)
        old[n++] = remove_at(pool, 0);
    pool->piece[pool->n++] = p;
    pool->kept += p.size;
    (void)pthread_mutex_unlock(&pool->lock);
    while (n > 0) {
        n--;
        (void)munmap(old[n].data, old[n].size);
    }
}

/* Fresh memory that begins at a huge page's border.  Huge pages are a wish, and so is touching all
 * of it in one call: where the kernel does neither, the copy pays for each page. */
static struct piece fresh(size_t size)
{
    struct piece p = { NULL, (size + PAGE - 1) & ~(PAGE - 1) };
    size_t room = p.size + HUGE_PAGE;
    unsigned char *at =
        mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t before;

    if (at == MAP_FAILED)
        return p;
    before = (HUGE_PAGE - ((uintptr_t)at & (HUGE_PAGE - 1))) & (HUGE_PAGE - 1);
    if (before)
        (void)munmap(at, before);
    if (HUGE_PAGE - before)
        (void)munmap(at + before + p.size, HUGE_PAGE - before);
    p.data = at + before;
    (void)madvise(p.data, p.size, MADV_HUGEPAGE);
    (void)madvise(p.data, p.size, MADV_POPULATE_WRITE);
    return p;
}

static void dealloc(PyObject *o)
{
    struct memory *self = (struct memory *)o;
    PyTypeObject *type = Py_TYPE(o);

    if (self->piece.data)
        give(self->pool, self->piece);
    core_pool_drop(self->pool);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

static int get_buffer(PyObject *o, Py_buffer *view, int flags)
{
    struct memory *self = (struct memory *)o;

    return PyBuffer_FillInfo(view, o, self->piece.data, (Py_ssize_t)self->used, 0, flags);
}

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_bf_getbuffer, get_buffer },
    { Py_tp_doc, "Writable memory that is used again when its last view has gone." },
    { 0, NULL },
};

static PyType_Spec spec = {
    .name = "gpudispatch._core.Memory",
    .basicsize = sizeof(struct memory),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

static struct memory *memory_new(struct core_state *state)
{
    PyTypeObject *type = state->memory_type;
    struct memory *self = (struct memory *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);

    if (self) {
        atomic_fetch_add(&state->pool->holders, 1);
        self->pool = state->pool;
    }
    return self;
}

PyObject *core_memory_copied(struct core_state *state, PyObject *source)
{
    struct memory *self = memory_new(state);
    PyObject *made = NULL;
    Py_buffer from;

    if (!self)
        return NULL;
    if (PyObject_GetBuffer(source, &from, PyBUF_SIMPLE)) {
        Py_DECREF(self);
        return NULL;
    }
    self->used = (size_t)from.len;
    Py_BEGIN_ALLOW_THREADS
    self->piece = take(self->pool, self->used ? self->used : 1);
    if (!self->piece.data)
        self->piece = fresh(self->used ? self->used : 1);
    if (self->piece.data)
        memcpy(self->piece.data, from.buf, self->used);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&from);
    if (self->piece.data)
        made = PyMemoryView_FromObject((PyObject *)self);
    else
        PyErr_NoMemory();
    Py_DECREF(self);
    return made;
}

static PyObject *copied(PyObject *module, PyObject *source)
{
    return core_memory_copied(core_state_of_module(module), source);
}

static PyObject *kept(PyObject *module, PyObject *unused)
{
    struct core_pool *pool = core_state_of_module(module)->pool;
    size_t n = 0;

    (void)unused;
    if (!pthread_mutex_trylock(&pool->lock)) {
        n = pool->kept;
        (void)pthread_mutex_unlock(&pool->lock);
    }
    return PyLong_FromSize_t(n);
}

static PyObject *trim(PyObject *module, PyObject *unused)
{
    struct core_pool *pool = core_state_of_module(module)->pool;
    struct piece old[KEPT_PIECES];
    unsigned n = 0;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    if (!pthread_mutex_trylock(&pool->lock)) {
        while (pool->n > 0)
            old[n++] = remove_at(pool, pool->n - 1);
        (void)pthread_mutex_unlock(&pool->lock);
    }
    while (n > 0) {
        n--;
        (void)munmap(old[n].data, old[n].size);
    }
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    { "copied", copied, METH_O, "copied(buffer): a writable view of a copy of its bytes" },
    { "memory_kept", kept, METH_NOARGS, "memory_kept(): bytes kept for the next copies" },
    { "memory_trim", trim, METH_NOARGS, "memory_trim(): gives the kept memory back" },
    { NULL, NULL, 0, NULL },
};

int core_add_memory_types(PyObject *module, struct core_state *state)
{
    state->pool = pool_new();
    if (!state->pool) {
        PyErr_NoMemory();
        return -1;
    }
    if (core_add_type(module, &state->memory_type, &spec))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
