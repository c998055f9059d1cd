/* SPDX-License-Identifier: MIT */
/* sizes.c - our own types beside CUDA's: as wide, as aligned. */
#include <cuda.h>

#include "worker/cuda_abi.h"

#define AS_WIDE(ours, theirs)                                                \
    _Static_assert(sizeof(ours) == sizeof(theirs), #ours " is as wide as " #theirs); \
    _Static_assert(_Alignof(ours) <= _Alignof(theirs), #ours " is aligned as " #theirs)
AS_WIDE(gpi_cu_result, CUresult);
AS_WIDE(gpi_cu_device, CUdevice);
AS_WIDE(gpi_cu_attribute, CUdevice_attribute);
AS_WIDE(gpi_cu_context, CUcontext);
AS_WIDE(gpi_cu_module, CUmodule);
AS_WIDE(gpi_cu_function, CUfunction);
AS_WIDE(gpi_cu_stream, CUstream);
AS_WIDE(gpi_cu_pointer, CUdeviceptr);
AS_WIDE(gpi_cu_uuid, CUuuid);
