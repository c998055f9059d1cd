/* SPDX-License-Identifier: MIT */
/*
 * abi.c - our declarations of the CUDA driver's calls against those of the toolkit, where there is
 * one. All of it is decided by the compiler: each call's type with CUDA's own types in place of
 * ours, the sizes of ours, the numbers, and the names of errors.
 */
#include <cuda.h>
#include <driver_types.h>

#include <stdio.h>

/* ---- the calls, in CUDA's types ---- */

#define GPI_CU_TYPES
typedef CUresult gpi_cu_result;
typedef CUdevice gpi_cu_device;
typedef CUdevice_attribute gpi_cu_attribute;
typedef CUcontext gpi_cu_context;
typedef CUmodule gpi_cu_module;
typedef CUfunction gpi_cu_function;
typedef CUstream gpi_cu_stream;
typedef CUdeviceptr gpi_cu_pointer;
typedef CUuuid gpi_cu_uuid;
#include "worker/cuda_abi.h"

#define X_SAME_CALL(name, symbol, older, parameters)                                     \
    _Static_assert(__builtin_types_compatible_p(gpi_cu_##name##_fn, __typeof__(symbol)), \
                   #symbol " is declared as in cuda.h");
GPI_CU_CALLS(X_SAME_CALL)

/* ---- the numbers ---- */

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours " is " #theirs)
SAME(GPI_CU_OK, CUDA_SUCCESS);
SAME(GPI_CU_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME(GPI_CU_DEVICE_UNAVAILABLE, CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME(GPI_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(GPI_CU_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
SAME(GPI_CU_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(GPI_CU_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(GPI_CU_INVALID_PTX, CUDA_ERROR_INVALID_PTX);
SAME(GPI_CU_JIT_COMPILER_NOT_FOUND, CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
SAME(GPI_CU_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(GPI_CU_JIT_COMPILATION_DISABLED, CUDA_ERROR_JIT_COMPILATION_DISABLED);
SAME(GPI_CU_OPERATING_SYSTEM, CUDA_ERROR_OPERATING_SYSTEM);
SAME(GPI_CU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(GPI_CU_PRIMARY_CONTEXT_ACTIVE, CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
SAME(GPI_CU_UNKNOWN, CUDA_ERROR_UNKNOWN);
SAME(GPI_CU_SCHED_SPIN, CU_CTX_SCHED_SPIN);
SAME(GPI_CU_SCHED_BLOCKING_SYNC, CU_CTX_SCHED_BLOCKING_SYNC);
SAME(GPI_CU_REGISTER_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
SAME(GPI_CU_REGISTER_READ_ONLY, CU_MEMHOSTREGISTER_READ_ONLY);
SAME(GPI_CU_ATTRIBUTE_COMPUTE_MODE, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
SAME(GPI_CU_ATTRIBUTE_REGISTER_READ_ONLY, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED);
SAME(GPI_CU_COMPUTE_MODE_PROHIBITED, CU_COMPUTEMODE_PROHIBITED);
SAME(GPI_CU_COMPUTE_MODE_EXCLUSIVE_PROCESS, CU_COMPUTEMODE_EXCLUSIVE_PROCESS);

#if CUDART_VERSION >= 13000 || CUDA_VERSION >= 13000 /* older headers lack some of them */
#define X_SAME_ERROR(code, name, sticky, advice) SAME(code, cudaError##name);
GPI_CU_ERRORS(X_SAME_ERROR)
#endif

int main(void)
{
    printf("the declarations are those of CUDA %d.%d\n", CUDA_VERSION / 1000,
           CUDA_VERSION % 1000 / 10);
    return 0;
}
