/* SPDX-License-Identifier: MIT */
/*
 * libnvidia-ml.c - stands in for libnvidia-ml.so.1. A script describes its GPUs
 * (docs/reference/fake-scripts.md). It does not use lib/device/nvml.h: it writes every record by
 * the offsets of its fields, so that our declarations are tested against independent ones.
 *
 * FAKE_SCRIPT is the script's file, FAKE_SCRIPT_TEXT a script itself; without both there is one
 * healthy GPU. Time counts from when the library is loaded. Every call obeys `hang`, `slow` and
 * `fail` by its name and by the group that it belongs to, and answers as the driver's state and the
 * device's access make it.
 *
 * Memory of our own processes: a file FAKE_SCRIPT.held/UUID.PID holds the bytes that the process
 * has on that device. Once the process is gone it is listed no more, and its memory is back `late=`
 * after that was seen.
 *
 * Which processes have a GPU open: open_gpu.h.
 *
 * FAKE_OLD leaves out what older drivers do not have, FAKE_ANCIENT also what we cannot do
 * without. For a look from inside the process: fake_nvml_forbidden counts calls that must never be
 * made (a search by UUID, a shutdown, the NUMA node, with a set after code 999), fake_nvml_calls
 * all.
 *
 * Here: the driver, and who the devices are. nvidia_ml.c has the script, nvidia_ml_sample.c
 * readings, nvidia_ml_events.c events.
 */
#include "nvidia_ml.h"

#include <stdio.h>

#include "open_gpu.h"

/* ---- the driver ---- */

#ifdef FAKE_ANCIENT
#define nvmlInit_v2 nvmlInit
#endif
EXPORTED int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    DRIVER(GPI_SCRIPT_OPEN);
    fake.initialized = true;
    return OK;
}

EXPORTED int nvmlShutdown(void);
int nvmlShutdown(void)
{
    atomic_fetch_add(&fake_nvml_forbidden, 1);
    return OK;
}

EXPORTED int nvmlSystemGetDriverVersion(char *to, uint32_t size);
int nvmlSystemGetDriverVersion(char *to, uint32_t size)
{
    DRIVER(GPI_SCRIPT_OPEN);
    return f_text(to, size, f_driver().version);
}

EXPORTED int nvmlSystemGetNVMLVersion(char *to, uint32_t size);
int nvmlSystemGetNVMLVersion(char *to, uint32_t size)
{
    DRIVER(GPI_SCRIPT_OPEN);
    return f_text(to, size, f_driver().nvml_version);
}

EXPORTED int nvmlSystemGetCudaDriverVersion_v2(int *to);
int nvmlSystemGetCudaDriverVersion_v2(int *to)
{
    DRIVER(GPI_SCRIPT_OPEN);
    *to = (int)f_driver().cuda_version;
    return OK;
}

/* ---- who it is ---- */

EXPORTED int nvmlDeviceGetCount_v2(uint32_t *to);
int nvmlDeviceGetCount_v2(uint32_t *to)
{
    DRIVER(GPI_SCRIPT_ENUMERATE);
    *to = gpi_script_gpus(fake.script);
    return OK;
}

EXPORTED int nvmlDeviceGetHandleByIndex_v2(uint32_t gpu, void **to);
int nvmlDeviceGetHandleByIndex_v2(uint32_t gpu, void **to)
{
    void *device = fake.row + gpi_script_row(fake.script, gpu, GPI_UNKNOWN32);

    DEVICE(GPI_SCRIPT_ENUMERATE);
    fake_open_gpu(f_identity(row).uuid);
    *to = device;
    return OK;
}

static uint32_t row_at(const char *pci)
{
    unsigned at[3] = { 0, 0, 0 }, is[3];

    (void)sscanf(pci, "%x:%x:%x", &at[0], &at[1], &at[2]);
    for (uint32_t i = 0; i < gpi_script_rows(fake.script); i++)
        if (sscanf(f_identity(i).pci, "%x:%x:%x", &is[0], &is[1], &is[2]) == 3 &&
            !memcmp(at, is, sizeof(at)) && !f_is_part(i))
            return i;
    return GPI_UNKNOWN32;
}

EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **to);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **to)
{
    const uint32_t at = row_at(pci);
    void *device = at == GPI_UNKNOWN32 ? NULL : fake.row + at;

    if (!device)
        return NOT_FOUND;
    DEVICE(GPI_SCRIPT_ENUMERATE);
    fake_open_gpu(f_identity(row).uuid);
    *to = device;
    return OK;
}

EXPORTED int nvmlDeviceGetIndex(void *device, uint32_t *to);
int nvmlDeviceGetIndex(void *device, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    *to = f_identity(row).index;
    return OK;
}

/* Opens every GPU on its way. */
EXPORTED int nvmlDeviceGetHandleByUUID(const char *uuid, void **to);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **to)
{
    DRIVER(GPI_SCRIPT_ENUMERATE);
    atomic_fetch_add(&fake_nvml_forbidden, 1);
    for (uint32_t i = 0; i < gpi_script_rows(fake.script); i++) {
        if (f_of_access(i) == GPU_IS_LOST)
            return GPU_IS_LOST;
        *to = fake.row + i;
        if (!strcmp(f_identity(i).uuid, uuid))
            return OK;
    }
    return NOT_FOUND;
}

EXPORTED int nvmlDeviceGetUUID(void *device, char *to, uint32_t size);
int nvmlDeviceGetUUID(void *device, char *to, uint32_t size)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    return f_text(to, size, f_identity(row).uuid);
}

EXPORTED int nvmlDeviceGetName(void *device, char *to, uint32_t size);
int nvmlDeviceGetName(void *device, char *to, uint32_t size)
{
    char name[160];
    DEVICE(GPI_SCRIPT_ENUMERATE);
    const struct gpi_device d = f_identity(row);

    (void)snprintf(name, sizeof(name), "%s%s%s", d.model, f_is_part(row) ? " MIG " : "",
                   d.mig_profile);
    return f_text(to, size, name);
}

EXPORTED int nvmlDeviceGetPciInfo_v3(void *device, void *to);
int nvmlDeviceGetPciInfo_v3(void *device, void *to)
{
    unsigned domain = 0, bus = 0, number_of = 0;
    char id[32] = "", legacy[16] = "";
    DEVICE(GPI_SCRIPT_ENUMERATE);

    (void)sscanf(f_identity(row).pci, "%x:%x:%x", &domain, &bus, &number_of);
    (void)snprintf(id, sizeof(id), "%08X:%02X:%02X.0", domain, bus, number_of);
    (void)snprintf(legacy, sizeof(legacy), "%04X:%02X:%02X.0", domain & 0xffff, bus & 0xff,
                   number_of & 0xff);
    memset(to, 0, 68);
    memcpy(to, legacy, sizeof(legacy));
    f_put32(to, 16, domain);
    f_put32(to, 20, bus);
    f_put32(to, 24, number_of);
    f_put32(to, 28, 0x233010de);
    memcpy((char *)to + 36, id, sizeof(id));
    return OK;
}

EXPORTED int nvmlDeviceGetMinorNumber(void *device, uint32_t *to);
int nvmlDeviceGetMinorNumber(void *device, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    *to = f_identity(row).minor;
    return OK;
}

EXPORTED int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor);
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    *major = (int)f_identity(row).compute_major;
    *minor = (int)f_identity(row).compute_minor;
    return OK;
}

EXPORTED int nvmlDeviceGetComputeMode(void *device, int *to);
int nvmlDeviceGetComputeMode(void *device, int *to)
{
    uint32_t mode = 0;
    DEVICE(GPI_SCRIPT_ENUMERATE);
    const int code = f_number(&mode, f_state_of(row).compute_mode);

    *to = (int)mode;
    return code;
}

#ifndef FAKE_OLD
EXPORTED int nvmlDeviceGetNumaNodeId(void *device, uint32_t *to);
int nvmlDeviceGetNumaNodeId(void *device, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    atomic_fetch_add(&fake_nvml_forbidden, 1); /* the node of the GPU's own memory */
    return f_number(to, f_identity(row).numa_node);
}
#endif

EXPORTED int nvmlDeviceGetMigMode(void *device, uint32_t *current, uint32_t *pending);
int nvmlDeviceGetMigMode(void *device, uint32_t *current, uint32_t *pending)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    *current = *pending = f_identity(row).mig_parts > 0;
    return OK;
}

/* How many there might be: places without an instance are among them. */
EXPORTED int nvmlDeviceGetMaxMigDeviceCount(void *device, uint32_t *to);
int nvmlDeviceGetMaxMigDeviceCount(void *device, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    *to = 7;
    return OK;
}

EXPORTED int nvmlDeviceGetMigDeviceHandleByIndex(void *device, uint32_t index, void **to);
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, uint32_t index, void **to)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    const uint32_t part = gpi_script_row(fake.script, f_identity(row).index, index);

    if (part == GPI_UNKNOWN32)
        return NOT_FOUND;
    *to = fake.row + part;
    return OK;
}

EXPORTED int nvmlDeviceGetGpuInstanceId(void *device, uint32_t *to);
int nvmlDeviceGetGpuInstanceId(void *device, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    return f_number(to, f_is_part(row) ? f_identity(row).mig_index + 7 : GPI_UNKNOWN32);
}

EXPORTED int nvmlDeviceGetComputeInstanceId(void *device, uint32_t *to);
int nvmlDeviceGetComputeInstanceId(void *device, uint32_t *to)
{
    DEVICE(GPI_SCRIPT_ENUMERATE);
    return f_number(to, f_is_part(row) ? 0 : GPI_UNKNOWN32);
}

EXPORTED int nvmlDeviceGetAttributes_v2(void *device, void *to);
int nvmlDeviceGetAttributes_v2(void *device, void *to)
{
    unsigned slices = 0;
    DEVICE(GPI_SCRIPT_ENUMERATE);

    if (!f_is_part(row))
        return NOT_SUPPORTED;
    memset(to, 0, 40);
    (void)sscanf(f_identity(row).mig_profile, "%u", &slices);
    f_put32(to, 24, slices);
    f_put32(to, 28, slices);
    f_put64(to, 32, f_identity(row).memory_total >> 20);
    return OK;
}
