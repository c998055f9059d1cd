/* SPDX-License-Identifier: MIT */
/*
 * nvml.h - the library's own declarations of the NVML that it uses (interface facts: sizes,
 * offsets, numbers), and the functions as they are found at run time.  It also has the state that
 * the three parts of the provider share: nvml.c loads and enumerates, nvml_sample.c reads,
 * nvml_await.c waits.
 */
#ifndef GPI_DEVICE_NVML_H
#define GPI_DEVICE_NVML_H

#include <stddef.h>

#include "device/device.h"
#include "device/driver.h"
#include "device/provider.h"

typedef void *gpi_nvml_device;
typedef void *gpi_nvml_events;

struct gpi_nvml_pci {
    char legacy_id[16];
    uint32_t domain, bus, device, device_id, subsystem_id;
    char id[32];
};

struct gpi_nvml_memory {
    uint64_t total, free, used;
};

struct gpi_nvml_memory2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
};

struct gpi_nvml_utilization {
    uint32_t gpu, memory;
};

/* As ..._v2 and ..._v3 write it; early 535 drivers write 32 bytes in the latter. */
struct gpi_nvml_process {
    uint32_t pid;
    uint64_t memory;
    uint32_t gpu_instance, compute_instance;
};

struct gpi_nvml_event {
    gpi_nvml_device device;
    uint64_t type, data;
    uint32_t gpu_instance, compute_instance;
};

struct gpi_nvml_field {
    uint32_t id, scope;
    int64_t timestamp, latency;
    int32_t type, code;
    union {
        double d;
        uint32_t u32;
        uint64_t u64;
        int64_t i64;
        int32_t i32;
        uint16_t u16;
    } value;
};

struct gpi_nvml_attributes {
    uint32_t multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices,
        compute_slices;
    uint64_t memory_mib;
};

struct gpi_nvml_temperature {
    uint32_t version;
    int32_t sensor, temperature;
};

/* The same in all 20 header versions examined (11.x to 13.3). */
_Static_assert(sizeof(struct gpi_nvml_pci) == 68 && offsetof(struct gpi_nvml_pci, id) == 36,
               "PCI address");
_Static_assert(sizeof(struct gpi_nvml_memory) == 24 && offsetof(struct gpi_nvml_memory, used) == 16,
               "memory");
_Static_assert(sizeof(struct gpi_nvml_memory2) == 40 &&
                   offsetof(struct gpi_nvml_memory2, total) == 8 &&
                   offsetof(struct gpi_nvml_memory2, used) == 32,
               "memory");
_Static_assert(sizeof(struct gpi_nvml_utilization) == 8, "utilisation");
_Static_assert(sizeof(struct gpi_nvml_process) == 24 &&
                   offsetof(struct gpi_nvml_process, memory) == 8 &&
                   offsetof(struct gpi_nvml_process, gpu_instance) == 16,
               "process");
_Static_assert(sizeof(struct gpi_nvml_event) == 32 && offsetof(struct gpi_nvml_event, data) == 16 &&
                   offsetof(struct gpi_nvml_event, gpu_instance) == 24,
               "event");
_Static_assert(sizeof(struct gpi_nvml_field) == 40 && offsetof(struct gpi_nvml_field, type) == 24 &&
                   offsetof(struct gpi_nvml_field, value) == 32,
               "field");
_Static_assert(sizeof(struct gpi_nvml_attributes) == 40 &&
                   offsetof(struct gpi_nvml_attributes, memory_mib) == 32,
               "attributes");
_Static_assert(sizeof(struct gpi_nvml_temperature) == 12, "temperature");

/* The first word of a versioned record: its size and version. */
#define GPI_NVML_VERSION(type, version) ((uint32_t)(sizeof(type) | (size_t)(version) << 24))

enum gpi_nvml_value {
    GPI_NVML_DOUBLE,
    GPI_NVML_U32,
    GPI_NVML_ULONG,
    GPI_NVML_U64,
    GPI_NVML_I64,
    GPI_NVML_I32,
    GPI_NVML_U16
};

/* Fields with the same number in several generations of headers; each returns a code of its own. */
enum gpi_nvml_field_id {
    GPI_FIELD_REMAPPED_UNCORRECTED = 143,
    GPI_FIELD_REMAP_PENDING = 144,
    GPI_FIELD_REMAP_FAILED = 145,
    GPI_FIELD_POWER = 186,
    GPI_FIELD_RECOVERY = 230 /* since 12.8 */
};

enum gpi_nvml_event_type {
    GPI_EVENT_XID = 0x8,
    GPI_EVENT_UNAVAILABLE = 0x4000,
    GPI_EVENT_RECOVERY = 0x8000
};

#define GPI_NVML_UUID 96u
#define GPI_NVML_NAME 96u
#define GPI_NVML_NO_INSTANCE UINT32_MAX

/*
 * X(member, symbols in the order in which they are tried, needed, parameters).  If a needed symbol
 * is missing the driver is too old; the value of any other missing one is unknown.
 */
#define GPI_NVML_MAP(X)                                                                           \
    X(init, "nvmlInit_v2", 1, (void))                                                             \
    X(driver_version, "nvmlSystemGetDriverVersion", 0, (char *, uint32_t))                        \
    X(nvml_version, "nvmlSystemGetNVMLVersion", 0, (char *, uint32_t))                            \
    X(cuda_version, "nvmlSystemGetCudaDriverVersion_v2", 0, (int32_t *))                          \
    X(count, "nvmlDeviceGetCount_v2", 1, (uint32_t *))                                            \
    X(by_index, "nvmlDeviceGetHandleByIndex_v2", 1, (uint32_t, gpi_nvml_device *))                \
    X(by_pci, "nvmlDeviceGetHandleByPciBusId_v2", 0, (const char *, gpi_nvml_device *))           \
    X(index, "nvmlDeviceGetIndex", 0, (gpi_nvml_device, uint32_t *))                              \
    X(uuid, "nvmlDeviceGetUUID", 1, (gpi_nvml_device, char *, uint32_t))                          \
    X(name, "nvmlDeviceGetName", 0, (gpi_nvml_device, char *, uint32_t))                          \
    X(pci, "nvmlDeviceGetPciInfo_v3", 0, (gpi_nvml_device, struct gpi_nvml_pci *))                \
    X(minor, "nvmlDeviceGetMinorNumber", 0, (gpi_nvml_device, uint32_t *))                        \
    X(capability, "nvmlDeviceGetCudaComputeCapability", 0,                                        \
      (gpi_nvml_device, int32_t *, int32_t *))                                                    \
    X(compute_mode, "nvmlDeviceGetComputeMode", 0, (gpi_nvml_device, int32_t *))                  \
    X(mig_mode, "nvmlDeviceGetMigMode", 0, (gpi_nvml_device, uint32_t *, uint32_t *))             \
    X(mig_count, "nvmlDeviceGetMaxMigDeviceCount", 0, (gpi_nvml_device, uint32_t *))              \
    X(mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex", 0,                                     \
      (gpi_nvml_device, uint32_t, gpi_nvml_device *))                                             \
    X(gpu_instance, "nvmlDeviceGetGpuInstanceId", 0, (gpi_nvml_device, uint32_t *))               \
    X(compute_instance, "nvmlDeviceGetComputeInstanceId", 0, (gpi_nvml_device, uint32_t *))       \
    X(attributes, "nvmlDeviceGetAttributes_v2", 0,                                                \
      (gpi_nvml_device, struct gpi_nvml_attributes *))                                            \
    X(memory, "nvmlDeviceGetMemoryInfo", 1, (gpi_nvml_device, struct gpi_nvml_memory *))          \
    X(memory2, "nvmlDeviceGetMemoryInfo_v2", 0, (gpi_nvml_device, struct gpi_nvml_memory2 *))     \
    X(utilization, "nvmlDeviceGetUtilizationRates", 0,                                            \
      (gpi_nvml_device, struct gpi_nvml_utilization *))                                           \
    X(temperature, "nvmlDeviceGetTemperature", 0, (gpi_nvml_device, int32_t, uint32_t *))         \
    X(temperature_v, "nvmlDeviceGetTemperatureV", 0,                                              \
      (gpi_nvml_device, struct gpi_nvml_temperature *))                                           \
    X(power, "nvmlDeviceGetPowerUsage", 0, (gpi_nvml_device, uint32_t *))                         \
    X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", 0, (gpi_nvml_device, uint32_t *))           \
    X(clock, "nvmlDeviceGetClockInfo", 0, (gpi_nvml_device, int32_t, uint32_t *))                 \
    X(throttle,                                                                                   \
      "nvmlDeviceGetCurrentClocksEventReasons nvmlDeviceGetCurrentClocksThrottleReasons", 0,      \
      (gpi_nvml_device, uint64_t *))                                                              \
    X(processes, "nvmlDeviceGetComputeRunningProcesses_v3", 0,                                    \
      (gpi_nvml_device, uint32_t *, void *))                                                      \
    X(processes2, "nvmlDeviceGetComputeRunningProcesses_v2", 0,                                   \
      (gpi_nvml_device, uint32_t *, void *))                                                      \
    X(mps_processes, "nvmlDeviceGetMPSComputeRunningProcesses_v3", 0,                             \
      (gpi_nvml_device, uint32_t *, void *))                                                      \
    X(mps_processes2, "nvmlDeviceGetMPSComputeRunningProcesses_v2", 0,                            \
      (gpi_nvml_device, uint32_t *, void *))                                                      \
    X(ecc, "nvmlDeviceGetTotalEccErrors", 0, (gpi_nvml_device, int32_t, int32_t, uint64_t *))     \
    X(remapped, "nvmlDeviceGetRemappedRows", 0,                                                   \
      (gpi_nvml_device, uint32_t *, uint32_t *, uint32_t *, uint32_t *))                          \
    X(retired_pending, "nvmlDeviceGetRetiredPagesPendingStatus", 0, (gpi_nvml_device, int32_t *)) \
    X(fields, "nvmlDeviceGetFieldValues", 0, (gpi_nvml_device, int32_t, struct gpi_nvml_field *)) \
    X(events_create, "nvmlEventSetCreate", 0, (gpi_nvml_events *))                                \
    X(events_types, "nvmlDeviceGetSupportedEventTypes", 0, (gpi_nvml_device, uint64_t *))         \
    X(events_register, "nvmlDeviceRegisterEvents", 0,                                             \
      (gpi_nvml_device, uint64_t, gpi_nvml_events))                                               \
    X(events_wait, "nvmlEventSetWait_v2 nvmlEventSetWait", 0,                                     \
      (gpi_nvml_events, struct gpi_nvml_event *, uint32_t))                                       \
    X(events_free, "nvmlEventSetFree", 0, (gpi_nvml_events))

#define GPI_X_NVML(member, symbols, needed, parameters) int32_t(*member) parameters;
struct gpi_nvml {
    GPI_NVML_MAP(GPI_X_NVML)
};
#undef GPI_X_NVML

/* One row of an enumeration. */
struct gpi_nvml_row {
    gpi_nvml_device handle;
    gpi_nvml_device gpu; /* of an instance: the GPU it is a part of; else the same */
    uint32_t gpu_instance, compute_instance;
    bool in_mig_mode;
    char uuid[GPI_UUID_SIZE];
};

/* An enumeration. */
struct gpi_nvml_table {
    uint32_t n;
    struct gpi_nvml_row row[];
};

/* The receiver of events: belongs to the thread of await. */
#define GPI_HEARD_MAX (4u * GPI_GPUS_MAX)
struct gpi_nvml_ear {
    const struct gpi_nvml_table *table; /* of the state, from the first call on */
    gpi_nvml_events set;                /* NULL = not registered (any more) */
    uint32_t head, tail;                /* of the queue: number of the next in, of the next out */
    struct gpi_incident queue[GPI_HEARD_MAX];
    uint32_t heard;                     /* GPUs in the set */
    bool deaf, failed_before;           /* no event will ever arrive; the last wait has failed */
    /* the set is in no known state (999); await has reported that no events arrive */
    bool spoilt, told_all_deaf;
    /* ns until a refused registration is tried again, and the time of that; GPI_NEVER = none was
     * refused */
    uint64_t again, again_at;
    /* some GPU is out; some GPU was out, is back, and must be registered again */
    bool missed, back;
    /* per row */
    bool told_deaf[GPI_GPUS_MAX];
    uint8_t ask[GPI_GPUS_MAX]; /* the kinds of events to request: fewer where the driver refused */
    int32_t refused[GPI_GPUS_MAX]; /* the code of the refusal */
    bool out[GPI_GPUS_MAX];  /* lost, or to be reset */
    bool look[GPI_GPUS_MAX]; /* its state must be read */
    uint32_t recovery[GPI_GPUS_MAX]; /* as last reported; none at first */
};

#define GPI_NVML_PROCESSES 512u

struct gpi_nvml_state {
    struct gpi_nvml call;
    struct gpi_driver driver;
    /* PCI addresses of the only GPUs to open, with blanks between them; NULL = all */
    const char *only;
    bool second_process_list; /* ..._v3 writes entries of 32 bytes */
    bool no_memory2;
    struct gpi_nvml_table *table; /* the last one; for good once await was called */
    unsigned char processes[GPI_NVML_PROCESSES * 32u]; /* room for entries of either size */
    struct gpi_nvml_ear ear;
};

void gpi_nvml_sample(void *state, uint32_t i, struct gpi_sample *ret);
void gpi_nvml_listen(void *state);
bool gpi_nvml_await(void *state, struct gpi_incident *ret);

/* Returns the code that describes a GPU's state: `of_memory`, NVML's result about its memory, or
 * that of another call where the GPU has no memory of its own. */
int32_t gpi_nvml_verdict(const struct gpi_nvml *call, gpi_nvml_device gpu, int32_t of_memory);

/* Returns the action that would bring a GPU back; GPI_UNKNOWN32 = the driver reports none. */
uint32_t gpi_nvml_recovery(const struct gpi_nvml *call, gpi_nvml_device gpu);

#endif
