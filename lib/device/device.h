/* SPDX-License-Identifier: MIT */
/*
 * device.h - the records about a device: its identity, its state and its incidents.  The provider
 * (nvml.c, fake.c; in the monitor process) fills them, wire/reading.h carries them, and the host
 * judges the device by them.  Plain records without pointers; texts are zero-terminated.
 */
#ifndef GPI_DEVICE_DEVICE_H
#define GPI_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#define GPI_GPUS_MAX 256u      /* GPUs and MIG instances of one machine, or fakes */
#define GPI_DEVICE_NAME 32u    /* with the terminating zero */
#define GPI_UUID_SIZE 96u
#define GPI_PROCESSES_MAX 24u  /* of one device, those with most memory first */
#define GPI_UNKNOWN32 UINT32_MAX
#define GPI_UNKNOWN64 UINT64_MAX

/* The identity: does not change while the driver lives. */
struct gpi_device {
    uint32_t kind;      /* enum gpud_device_kind */
    uint32_t index;     /* NVML's number of the GPU */
    uint32_t mig_index; /* of the instance on it; GPI_UNKNOWN32 for a whole GPU */
    /* of a GPU in MIG mode: the number of its instances, GPI_UNKNOWN32 = none yet; such a GPU
     * itself runs nothing */
    uint32_t mig_parts;
    uint32_t compute_major, compute_minor, compute_mode, numa_node;
    uint32_t minor;     /* N of /dev/nvidiaN */
    uint32_t reserved;
    uint64_t memory_total;
    char name[GPI_DEVICE_NAME]; /* "gpu:0", "gpu:0:1", "fake:0" */
    char uuid[GPI_UUID_SIZE];
    char model[96], pci[32], mig_profile[32], parent_uuid[GPI_UUID_SIZE];
};

/* The verdict of a reading. */
enum gpi_reading {
    GPI_READ_OK,
    GPI_READ_UNKNOWN,  /* the driver could not read it: no evidence about the device */
    GPI_READ_LOST,     /* the driver reports that the device is gone */
    GPI_READ_RESET,    /* the device must be reset before use */
    GPI_READ_REVOKED,  /* the system has revoked access */
    GPI_READ_COUNT
};

struct gpi_user {
    uint32_t pid;
    uint32_t reserved;
    uint64_t memory; /* bytes; GPI_UNKNOWN64 */
};

/* The state.  GPI_UNKNOWN... where not available. */
struct gpi_sample {
    uint64_t at;      /* CLOCK_MONOTONIC of the reading */
    uint32_t reading; /* enum gpi_reading */
    uint32_t code;    /* NVML's, where reading is not OK */
    uint64_t memory_total, memory_used, memory_free, throttle, ecc_corrected, ecc_uncorrected;
    uint32_t utilization, memory_utilization, temperature, power, power_limit, sm_clock;
    uint32_t remapped_rows, remap_pending, remap_failed, recovery;
    uint32_t n_users;  /* number of processes on it; may exceed the list */
    uint32_t users_known; /* 0 = the driver does not list them */
    struct gpi_user user[GPI_PROCESSES_MAX];
};

/* Makes a reading of that time without any value. */
void gpi_sample_unknown(struct gpi_sample *ret, uint64_t at);
/* Adds a process.  The list keeps those with most memory, in that order; unknown memory is last. */
void gpi_sample_add_user(struct gpi_sample *x, uint32_t pid, uint64_t memory);

/* The driver as a whole. */
struct gpi_driver {
    uint32_t state; /* enum gpud_driver */
    uint32_t cuda_version, gpus, unreadable, lost;
    uint32_t unopened; /* NVML's code of the first GPU that could not be opened; 0 = all could */
    char text[160], driver_version[80], nvml_version[80];
};

/* The kinds of incidents. */
enum gpi_incident_kind {
    GPI_INCIDENT_XID = 1, /* number: the XID */
    GPI_INCIDENT_LOST,    /* it has fallen off the bus */
    GPI_INCIDENT_RECOVERY, /* number: enum gpud_recovery, as the driver requires now */
    /* the monitor receives no incidents (any more); number: NVML's code; 0: it receives them
     * again */
    GPI_INCIDENT_DEAF
};

struct gpi_incident {
    uint32_t kind;
    /* its place in the enumeration; that of the GPU, if the incident concerns all of it;
     * GPI_UNKNOWN32 = the driver cannot name it: all */
    uint32_t device;
    uint64_t number;
    uint64_t at;     /* CLOCK_MONOTONIC */
};

#endif
