/* SPDX-License-Identifier: MIT */
/*
 * kernel.h - in a worker: CUDA as user code would use it, through the fake libcuda.so.1 that the
 * library has loaded. Kernels do what their names say, see fakes/libcuda.c.
 */
#ifndef T_KERNEL_H
#define T_KERNEL_H

#include "harness.h"

#include <dlfcn.h>
#include <string.h>

/* Something of the fake's; NULL when it is not loaded. */
static inline void *t_cuda(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD),
         *at = library ? dlsym(library, name) : NULL;

    if (library)
        (void)dlclose(library);
    return at;
}

/* Calls SYMBOL, whose type is `type`; it must give 0. */
#define T_CUDA(type, symbol, ...)                      \
    do {                                               \
        type *t_call;                                  \
        void *t_at = t_cuda(symbol);                   \
        T_CHECK(t_at);                                 \
        memcpy(&t_call, &t_at, sizeof(t_call));        \
        T_EQ(t_call(__VA_ARGS__), 0);                  \
    } while (0)

typedef int t_module_load_fn(void **ret_module, const void *image);
typedef int t_module_function_fn(void **ret_function, void *module, const char *name);
typedef int t_launch_fn(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        void *stream, void **parameters, void **extra);

#define T_STREAM ((void *)16)

/* Launches a kernel in T_STREAM; `stop` ends an endless one. */
static inline void t_launch(const char *kernel, int *stop)
{
    void *module, *function, *parameters[] = { &stop };

    T_CUDA(t_module_load_fn, "cuModuleLoadData", &module, ".version 6.0 .entry");
    T_CUDA(t_module_function_fn, "cuModuleGetFunction", &function, module, kernel);
    T_CUDA(t_launch_fn, "cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, T_STREAM, parameters,
           NULL);
}

#endif
