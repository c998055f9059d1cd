/* SPDX-License-Identifier: MIT */
/*
 * nvml.c - our declarations of NVML against an nvml.h: sizes, offsets, versions of records,
 * numbers. The compiler decides all of it; nvml.py compiles this file with each header that it has,
 * and compares the calls' parameters too.
 */
#include <nvml.h>

#include "device/nvml.h"

#define SAME_SIZE(ours, theirs)                                   \
    _Static_assert(sizeof(struct ours) == sizeof(theirs) &&       \
                       _Alignof(struct ours) == _Alignof(theirs), \
                   #ours " is as large as " #theirs)
#define SAME_FIELD(ours, our_field, theirs, their_field)                                \
    _Static_assert(offsetof(struct ours, our_field) == offsetof(theirs, their_field) && \
                       sizeof(((struct ours *)0)->our_field) ==                         \
                           sizeof(((theirs *)0)->their_field),                          \
                   #ours "." #our_field " is where " #theirs "." #their_field " is")
#define SAME(ours, theirs)                                                                 \
    _Static_assert((unsigned long long)(ours) == (unsigned long long)(theirs), #ours " is" \
                                                                                     " " #theirs)

/* ---- records ---- */

SAME_SIZE(gpi_nvml_pci, nvmlPciInfo_t);
SAME_FIELD(gpi_nvml_pci, legacy_id, nvmlPciInfo_t, busIdLegacy);
SAME_FIELD(gpi_nvml_pci, domain, nvmlPciInfo_t, domain);
SAME_FIELD(gpi_nvml_pci, bus, nvmlPciInfo_t, bus);
SAME_FIELD(gpi_nvml_pci, device, nvmlPciInfo_t, device);
SAME_FIELD(gpi_nvml_pci, device_id, nvmlPciInfo_t, pciDeviceId);
SAME_FIELD(gpi_nvml_pci, subsystem_id, nvmlPciInfo_t, pciSubSystemId);
SAME_FIELD(gpi_nvml_pci, id, nvmlPciInfo_t, busId);

SAME_SIZE(gpi_nvml_memory, nvmlMemory_t);
SAME_FIELD(gpi_nvml_memory, total, nvmlMemory_t, total);
SAME_FIELD(gpi_nvml_memory, free, nvmlMemory_t, free);
SAME_FIELD(gpi_nvml_memory, used, nvmlMemory_t, used);

SAME_SIZE(gpi_nvml_memory2, nvmlMemory_v2_t);
SAME_FIELD(gpi_nvml_memory2, version, nvmlMemory_v2_t, version);
SAME_FIELD(gpi_nvml_memory2, total, nvmlMemory_v2_t, total);
SAME_FIELD(gpi_nvml_memory2, reserved, nvmlMemory_v2_t, reserved);
SAME_FIELD(gpi_nvml_memory2, free, nvmlMemory_v2_t, free);
SAME_FIELD(gpi_nvml_memory2, used, nvmlMemory_v2_t, used);
SAME(GPI_NVML_VERSION(struct gpi_nvml_memory2, 2), nvmlMemory_v2);

SAME_SIZE(gpi_nvml_utilization, nvmlUtilization_t);
SAME_FIELD(gpi_nvml_utilization, gpu, nvmlUtilization_t, gpu);
SAME_FIELD(gpi_nvml_utilization, memory, nvmlUtilization_t, memory);

SAME_SIZE(gpi_nvml_process, nvmlProcessInfo_t);
SAME_SIZE(gpi_nvml_process, nvmlProcessInfo_v2_t);
SAME_FIELD(gpi_nvml_process, pid, nvmlProcessInfo_t, pid);
SAME_FIELD(gpi_nvml_process, memory, nvmlProcessInfo_t, usedGpuMemory);
SAME_FIELD(gpi_nvml_process, gpu_instance, nvmlProcessInfo_t, gpuInstanceId);
SAME_FIELD(gpi_nvml_process, compute_instance, nvmlProcessInfo_t, computeInstanceId);

SAME_SIZE(gpi_nvml_event, nvmlEventData_t);
SAME_FIELD(gpi_nvml_event, device, nvmlEventData_t, device);
SAME_FIELD(gpi_nvml_event, type, nvmlEventData_t, eventType);
SAME_FIELD(gpi_nvml_event, data, nvmlEventData_t, eventData);
SAME_FIELD(gpi_nvml_event, gpu_instance, nvmlEventData_t, gpuInstanceId);
SAME_FIELD(gpi_nvml_event, compute_instance, nvmlEventData_t, computeInstanceId);

SAME_SIZE(gpi_nvml_field, nvmlFieldValue_t);
SAME_FIELD(gpi_nvml_field, id, nvmlFieldValue_t, fieldId);
SAME_FIELD(gpi_nvml_field, scope, nvmlFieldValue_t, scopeId);
SAME_FIELD(gpi_nvml_field, timestamp, nvmlFieldValue_t, timestamp);
SAME_FIELD(gpi_nvml_field, latency, nvmlFieldValue_t, latencyUsec);
SAME_FIELD(gpi_nvml_field, type, nvmlFieldValue_t, valueType);
SAME_FIELD(gpi_nvml_field, code, nvmlFieldValue_t, nvmlReturn);
SAME_FIELD(gpi_nvml_field, value, nvmlFieldValue_t, value);

SAME_SIZE(gpi_nvml_attributes, nvmlDeviceAttributes_t);
SAME_FIELD(gpi_nvml_attributes, multiprocessors, nvmlDeviceAttributes_t, multiprocessorCount);
SAME_FIELD(gpi_nvml_attributes, copy_engines, nvmlDeviceAttributes_t, sharedCopyEngineCount);
SAME_FIELD(gpi_nvml_attributes, ofas, nvmlDeviceAttributes_t, sharedOfaCount);
SAME_FIELD(gpi_nvml_attributes, gpu_slices, nvmlDeviceAttributes_t, gpuInstanceSliceCount);
SAME_FIELD(gpi_nvml_attributes, compute_slices, nvmlDeviceAttributes_t, computeInstanceSliceCount);
SAME_FIELD(gpi_nvml_attributes, memory_mib, nvmlDeviceAttributes_t, memorySizeMB);

SAME_SIZE(gpi_nvml_temperature, nvmlTemperature_t);
SAME_FIELD(gpi_nvml_temperature, version, nvmlTemperature_t, version);
SAME_FIELD(gpi_nvml_temperature, sensor, nvmlTemperature_t, sensorType);
SAME_FIELD(gpi_nvml_temperature, temperature, nvmlTemperature_t, temperature);
SAME(GPI_NVML_VERSION(struct gpi_nvml_temperature, 1), nvmlTemperature_v1);

/* ---- numbers ---- */

SAME(GPI_NVML_OK, NVML_SUCCESS);
SAME(GPI_NVML_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME(GPI_NVML_NO_PERMISSION, NVML_ERROR_NO_PERMISSION);
SAME(GPI_NVML_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME(GPI_NVML_INSUFFICIENT_POWER, NVML_ERROR_INSUFFICIENT_POWER);
SAME(GPI_NVML_DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED);
SAME(GPI_NVML_TIMEOUT, NVML_ERROR_TIMEOUT);
SAME(GPI_NVML_IRQ_ISSUE, NVML_ERROR_IRQ_ISSUE);
SAME(GPI_NVML_LIBRARY_NOT_FOUND, NVML_ERROR_LIBRARY_NOT_FOUND);
SAME(GPI_NVML_FUNCTION_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME(GPI_NVML_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
SAME(GPI_NVML_RESET_REQUIRED, NVML_ERROR_RESET_REQUIRED);
SAME(GPI_NVML_OPERATING_SYSTEM, NVML_ERROR_OPERATING_SYSTEM);
SAME(GPI_NVML_VERSION_MISMATCH, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
SAME(GPI_NVML_ARGUMENT_VERSION_MISMATCH, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME(GPI_NVML_GPU_NOT_FOUND, NVML_ERROR_GPU_NOT_FOUND);
SAME(GPI_NVML_UNKNOWN, NVML_ERROR_UNKNOWN);

SAME(GPI_NVML_DOUBLE, NVML_VALUE_TYPE_DOUBLE);
SAME(GPI_NVML_U32, NVML_VALUE_TYPE_UNSIGNED_INT);
SAME(GPI_NVML_ULONG, NVML_VALUE_TYPE_UNSIGNED_LONG);
SAME(GPI_NVML_U64, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME(GPI_NVML_I64, NVML_VALUE_TYPE_SIGNED_LONG_LONG);
SAME(GPI_NVML_I32, NVML_VALUE_TYPE_SIGNED_INT);
SAME(GPI_NVML_U16, NVML_VALUE_TYPE_UNSIGNED_SHORT);

SAME(GPI_FIELD_REMAPPED_UNCORRECTED, NVML_FI_DEV_REMAPPED_UNC);
SAME(GPI_FIELD_REMAP_PENDING, NVML_FI_DEV_REMAPPED_PENDING);
SAME(GPI_FIELD_REMAP_FAILED, NVML_FI_DEV_REMAPPED_FAILURE);
SAME(GPI_FIELD_POWER, NVML_FI_DEV_POWER_INSTANT);
SAME(GPI_FIELD_RECOVERY, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION);

SAME(GPI_EVENT_XID, nvmlEventTypeXidCriticalError);
SAME(GPI_EVENT_UNAVAILABLE, nvmlEventTypeGpuUnavailableError);
SAME(GPI_EVENT_RECOVERY, nvmlEventTypeGpuRecoveryAction);

SAME(GPUD_RECOVERY_NONE, NVML_GPU_RECOVERY_ACTION_NONE);
SAME(GPUD_RECOVERY_RESET, NVML_GPU_RECOVERY_ACTION_GPU_RESET);
SAME(GPUD_RECOVERY_REBOOT, NVML_GPU_RECOVERY_ACTION_NODE_REBOOT);
SAME(GPUD_RECOVERY_DRAIN_P2P, NVML_GPU_RECOVERY_ACTION_DRAIN_P2P);
SAME(GPUD_RECOVERY_DRAIN_RESET, NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET);
#if NVML_API_VERSION >= 13 /* 12.9 lacks it */
SAME(GPUD_RECOVERY_IMEX, NVML_GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN);
#endif

SAME(GPUD_THROTTLE_IDLE, nvmlClocksEventReasonGpuIdle);
SAME(GPUD_THROTTLE_APP_CLOCKS, nvmlClocksEventReasonApplicationsClocksSetting);
SAME(GPUD_THROTTLE_POWER_CAP, nvmlClocksEventReasonSwPowerCap);
SAME(GPUD_THROTTLE_HW_SLOWDOWN, nvmlClocksThrottleReasonHwSlowdown);
SAME(GPUD_THROTTLE_SYNC_BOOST, nvmlClocksEventReasonSyncBoost);
SAME(GPUD_THROTTLE_SW_THERMAL, nvmlClocksEventReasonSwThermalSlowdown);
SAME(GPUD_THROTTLE_HW_THERMAL, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME(GPUD_THROTTLE_HW_POWER_BRAKE, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);

/* What the calls in nvml_sample.c pass as plain numbers. */
SAME(0, NVML_TEMPERATURE_GPU);
SAME(1, NVML_CLOCK_SM);
SAME(0, NVML_MEMORY_ERROR_TYPE_CORRECTED);
SAME(1, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
SAME(0, NVML_VOLATILE_ECC);
SAME(0, NVML_COMPUTEMODE_DEFAULT);
SAME(2, NVML_COMPUTEMODE_PROHIBITED);
SAME(3, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS);

SAME(GPI_NVML_UUID, NVML_DEVICE_UUID_V2_BUFFER_SIZE);
SAME(GPI_NVML_NAME, NVML_DEVICE_NAME_V2_BUFFER_SIZE);
