/* SPDX-License-Identifier: MIT */
/*
 * runtime.c - the CUDA runtimes in this process: each keeps the last error of each thread until a
 * call takes it.  The worker finds shared runtimes, even if user code loads them later.  User code
 * passes the function of a linked one (gpud_cuda_last_error).
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "gpudispatch/cuda.h"
#include "worker/cuda_state.h"
#include "worker/worker.h"

#define RUNTIME "libcudart.so"

struct search {
    struct gpi_cuda *c;
    uint32_t n;
    char path[GPI_RUNTIMES][PATH_MAX];
};

/* Runs for each loaded object.  It opens none, since the loader is at work. */
static int note_runtime(struct dl_phdr_info *info, size_t size, void *user)
{
    struct search *s = user;
    const char *name = info->dlpi_name, *base = strrchr(name, '/');

    (void)size;
    if (info->dlpi_adds == s->c->loads)
        return 1; /* no object was loaded since */
    base = base ? base + 1 : name;
    if (!strncmp(base, RUNTIME, sizeof RUNTIME - 1) && s->n < GPI_RUNTIMES)
        snprintf(s->path[s->n++], sizeof s->path[0], "%s", name);
    return 0;
}

static int note_loads(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    ((struct gpi_cuda *)user)->loads = info->dlpi_adds;
    return 1;
}

static void add(struct gpi_cuda *c, void *library)
{
    gpi_last_error_fn *fn;
    void *at = dlsym(library, "cudaGetLastError");

    if (!at)
        return;
    memcpy(&fn, &at, sizeof fn);
    for (uint32_t i = 0; i < c->n_runtimes; i++)
        if (c->runtime[i] == fn)
            return;
    if (c->n_runtimes < GPI_RUNTIMES)
        c->runtime[c->n_runtimes++] = fn;
}

/* Keeps one reference to each for good: a runtime must not go while the worker may call it. */
static void find_runtimes(struct gpi_cuda *c)
{
    struct search s;

    s.c = c;
    s.n = 0;
    if (dl_iterate_phdr(note_runtime, &s) == 1)
        return;
    add(c, RTLD_DEFAULT);
    for (uint32_t i = 0; i < s.n; i++) {
        void *library = dlopen(s.path[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library)
            add(c, library);
    }
    (void)dl_iterate_phdr(note_loads, c);
}

void gpi_cuda_drain(struct gpi_cuda *c)
{
    find_runtimes(c);
    for (uint32_t i = 0; i < c->n_runtimes; i++)
        (void)c->runtime[i]();
    if (c->linked)
        (void)c->linked();
}

int gpud_cuda_last_error(gpud_worker *w, int (*last_error)(void))
{
    if (!w)
        return GPUD_EINVAL;
    if (!w->cuda || w->cuda->fake)
        return GPUD_ENOTSUP;
    w->cuda->linked = last_error;
    return 0;
}
