/* SPDX-License-Identifier: MIT */
#include "os/cuda.h"

#include <dlfcn.h>
#include <string.h>

#define NOT_INITIALIZED 3 /* CUDA_ERROR_NOT_INITIALIZED */
#define STUB_LIBRARY 34   /* CUDA_ERROR_STUB_LIBRARY: the one from the toolkit, without a driver */

typedef int(device_count_fn)(int *ret_count);

bool gpi_cuda_in_use(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), *symbol;
    device_count_fn *device_count;
    int count = 0, r = 0;

    if (!cuda)
        return false;
    symbol = dlsym(cuda, "cuDeviceGetCount");
    if (symbol) {
        memcpy(&device_count, &symbol, sizeof symbol);
        r = device_count(&count);
    }
    (void)dlclose(cuda);
    return r != NOT_INITIALIZED && r != STUB_LIBRARY;
}
