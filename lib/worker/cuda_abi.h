/* SPDX-License-Identifier: MIT */
/*
 * cuda_abi.h - the types, numbers and calls of libcuda.so.1 that the library uses, in declarations
 * of its own, so that the build needs no CUDA header.  tests/declarations/abi.c compiles all of
 * them against cuda.h where there is one.
 */
#ifndef GPI_WORKER_CUDA_ABI_H
#define GPI_WORKER_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifndef GPI_CU_TYPES /* the test defines it, with CUDA's own types */
typedef int gpi_cu_result;
typedef int gpi_cu_device;
typedef int gpi_cu_attribute;
typedef void *gpi_cu_context;
typedef void *gpi_cu_module;
typedef void *gpi_cu_function;
typedef void *gpi_cu_stream;
typedef unsigned long long gpi_cu_pointer;
typedef struct gpi_cu_uuid {
    unsigned char bytes[16];
} gpi_cu_uuid;
#endif

enum {
    GPI_CU_OK = 0,
    GPI_CU_STUB_LIBRARY = 34,
    GPI_CU_DEVICE_UNAVAILABLE = 46,
    GPI_CU_NO_DEVICE = 100,
    GPI_CU_INVALID_IMAGE = 200,
    GPI_CU_INVALID_CONTEXT = 201,
    GPI_CU_NO_BINARY_FOR_GPU = 209,
    GPI_CU_INVALID_PTX = 218,
    GPI_CU_JIT_COMPILER_NOT_FOUND = 221,
    GPI_CU_UNSUPPORTED_PTX_VERSION = 222,
    GPI_CU_JIT_COMPILATION_DISABLED = 223,
    GPI_CU_OPERATING_SYSTEM = 304,
    GPI_CU_NOT_READY = 600,
    GPI_CU_PRIMARY_CONTEXT_ACTIVE = 708,
    GPI_CU_UNKNOWN = 999,

    GPI_CU_SCHED_SPIN = 1,
    GPI_CU_SCHED_BLOCKING_SYNC = 4,

    GPI_CU_REGISTER_PORTABLE = 1,
    GPI_CU_REGISTER_READ_ONLY = 8,

    GPI_CU_ATTRIBUTE_COMPUTE_MODE = 20,
    GPI_CU_ATTRIBUTE_REGISTER_READ_ONLY = 113,
    GPI_CU_COMPUTE_MODE_PROHIBITED = 2,
    GPI_CU_COMPUTE_MODE_EXCLUSIVE_PROCESS = 3
};

/* X(member, symbol, its name in older drivers or "", parameters).  All return a gpi_cu_result. */
#define GPI_CU_CALLS(X)                                                                   \
    X(init, cuInit, "", (unsigned flags))                                                 \
    X(error_name, cuGetErrorName, "", (gpi_cu_result code, const char **ret_text))        \
    X(error_text, cuGetErrorString, "", (gpi_cu_result code, const char **ret_text))      \
    X(device_count, cuDeviceGetCount, "", (int *ret_count))                               \
    X(device_get, cuDeviceGet, "", (gpi_cu_device * ret_device, int index))               \
    X(device_uuid, cuDeviceGetUuid_v2, "cuDeviceGetUuid",                                 \
      (gpi_cu_uuid * ret_uuid, gpi_cu_device device))                                     \
    X(device_attribute, cuDeviceGetAttribute, "",                                         \
      (int *ret_value, gpi_cu_attribute which, gpi_cu_device device))                     \
    X(primary_flags, cuDevicePrimaryCtxSetFlags_v2, "cuDevicePrimaryCtxSetFlags",         \
      (gpi_cu_device device, unsigned flags))                                             \
    X(primary_state, cuDevicePrimaryCtxGetState, "",                                      \
      (gpi_cu_device device, unsigned *ret_flags, int *ret_active))                       \
    X(primary_retain, cuDevicePrimaryCtxRetain, "",                                       \
      (gpi_cu_context * ret_context, gpi_cu_device device))                               \
    X(primary_release, cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease",         \
      (gpi_cu_device device))                                                             \
    X(context_get, cuCtxGetCurrent, "", (gpi_cu_context * ret_context))                   \
    X(context_set, cuCtxSetCurrent, "", (gpi_cu_context context))                         \
    X(context_push, cuCtxPushCurrent_v2, "", (gpi_cu_context context))                    \
    X(context_pop, cuCtxPopCurrent_v2, "", (gpi_cu_context * ret_context))                \
    X(context_sync, cuCtxSynchronize, "", (void))                                         \
    X(module_load, cuModuleLoadData, "", (gpi_cu_module * ret_module, const void *image)) \
    X(module_function, cuModuleGetFunction, "",                                           \
      (gpi_cu_function * ret_function, gpi_cu_module module, const char *name))           \
    X(module_unload, cuModuleUnload, "", (gpi_cu_module module))                          \
    X(memory_alloc, cuMemAlloc_v2, "", (gpi_cu_pointer * ret_at, size_t size))            \
    X(memory_free, cuMemFree_v2, "", (gpi_cu_pointer at))                                 \
    X(memory_set, cuMemsetD32_v2, "", (gpi_cu_pointer at, unsigned value, size_t count))  \
    X(memory_fetch, cuMemcpyDtoH_v2, "", (void *to, gpi_cu_pointer from, size_t size))    \
    X(host_register, cuMemHostRegister_v2, "", (void *at, size_t size, unsigned flags))   \
    X(host_unregister, cuMemHostUnregister, "", (void *at))                               \
    X(stream_query, cuStreamQuery, "", (gpi_cu_stream stream))                            \
    X(launch, cuLaunchKernel, "",                                                         \
      (gpi_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,       \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,             \
       gpi_cu_stream stream, void **parameters, void **extra))

#define GPI_CU_X_TYPE(name, symbol, older, parameters) \
    typedef gpi_cu_result gpi_cu_##name##_fn parameters;
GPI_CU_CALLS(GPI_CU_X_TYPE)
#undef GPI_CU_X_TYPE

/*
 * The errors of which the library knows more than the number.  X(number, name in the documents of
 * both APIs after "cudaError", whether only a new process helps, remedy or "").  Sticky: errors
 * with CUDA's remark "the process must be terminated and relaunched", and errors that mean the
 * same.
 */
#define GPI_CU_ERRORS(X)                                                                           \
    X(1, InvalidValue, 0, "")                                                                      \
    X(2, MemoryAllocation, 0, "")                                                                  \
    X(3, InitializationError, 0,                                                                   \
      "this process descends from one that uses CUDA: start workers with EXEC")                    \
    X(4, CudartUnloading, 1, "")                                                                   \
    X(34, StubLibrary, 0,                                                                          \
      "this libcuda.so.1 is the toolkit's stub: no driver is installed, or LD_LIBRARY_PATH leads " \
      "to the stub first")                                                                         \
    X(35, InsufficientDriver, 0, "the driver is too old")                                          \
    X(36, CallRequiresNewerDriver, 0, "the driver is too old")                                     \
    X(46, DevicesUnavailable, 0, "another process or long kernels fill it")                        \
    X(100, NoDevice, 0, "the driver shows none: the GPU is lost, or this process cannot open it")  \
    X(101, InvalidDevice, 0, "")                                                                   \
    X(201, DeviceUninitialized, 0, "")                                                             \
    X(214, ECCUncorrectable, 1, "")                                                                \
    X(220, NvlinkUncorrectable, 1, "")                                                             \
    X(226, Contained, 1, "")                                                                       \
    X(304, OperatingSystem, 0,                                                                     \
      "the system refuses access: check the modes of /dev/nvidia*, and the container's devices")   \
    X(400, InvalidResourceHandle, 0, "")                                                           \
    X(700, IllegalAddress, 1, "")                                                                  \
    X(701, LaunchOutOfResources, 0, "")                                                            \
    X(702, LaunchTimeout, 1, "")                                                                   \
    X(708, SetOnActiveProcess, 0, "")                                                              \
    X(709, ContextIsDestroyed, 1, "")                                                              \
    X(710, Assert, 1, "")                                                                          \
    X(714, HardwareStackError, 1, "")                                                              \
    X(715, IllegalInstruction, 1, "")                                                              \
    X(716, MisalignedAddress, 1, "")                                                               \
    X(717, InvalidAddressSpace, 1, "")                                                             \
    X(718, InvalidPc, 1, "")                                                                       \
    X(719, LaunchFailure, 1, "")                                                                   \
    X(720, CooperativeLaunchTooLarge, 0, "")                                                       \
    X(721, TensorMemoryLeak, 1, "")                                                                \
    X(800, NotPermitted, 0, "")                                                                    \
    X(802, SystemNotReady, 0,                                                                      \
      "the fabric manager is not running yet; under confidential computing: nvidia-smi "           \
      "conf-compute -srs 1")                                                                       \
    X(803, SystemDriverMismatch, 0,                                                                \
      "library and kernel module have different versions: restart the machine or container")       \
    X(804, CompatNotSupportedOnDevice, 0, "the driver is too old for this libcuda.so.1")           \
    X(805, MpsConnectionFailed, 0,                                                                 \
      "no MPS server replies: start nvidia-cuda-mps-control -d as this user, or unset "            \
      "CUDA_MPS_PIPE_DIRECTORY")                                                                   \
    X(806, MpsRpcFailure, 0, "the MPS server broke off: see server.log in CUDA_MPS_LOG_DIRECTORY") \
    X(807, MpsServerNotReady, 0,                                                                   \
      "the MPS server recovers from a fault of a client: it waits until all clients have ended") \
    X(808, MpsMaxClientsReached, 0,                                                                \
      "the MPS server has as many clients as it can serve: use fewer workers on this GPU")         \
    X(809, MpsMaxConnectionsReached, 0,                                                            \
      "the MPS server has no connection left: use fewer workers on this GPU")                      \
    X(810, MpsClientTerminated, 1, "")                                                             \
    X(911, ExternalDevice, 1, "")                                                                  \
    X(999, Unknown, 1,                                                                             \
      "access was revoked (a container that was reconfigured), or the module nvidia-uvm is "    \
      "not loaded")

#endif
