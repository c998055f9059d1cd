/* SPDX-License-Identifier: MIT */
/*
 * device.h - what devices there are, how they are, and what to do with them while a dispatcher runs.
 *
 * A device is a GPU, a MIG instance, a CPU slot ("cpu:N") or a fake GPU ("fake:N").  Its name is for
 * people ("gpu:0", MIG instance 1 of it "gpu:0:1"); numbers follow NVML's order, which is that of PCI
 * addresses, and may change when the machine starts again.  Its UUID is what everything else goes by.
 *
 * Everything about GPUs is read through NVML by a process of its own, the monitor: a
 * driver that hangs delays neither a call here nor a task.  That process ends with its
 * owner, and with the host [C11].  Each reading says when it was taken; what cannot be
 * read is "unknown", never "healthy".  The host itself calls neither NVML nor CUDA, but
 * for cuDeviceGetCount at gpud_init where libcuda is loaded already.             [C14]
 *
 * The monitor receives faults (XIDs) as they happen.  If the driver refuses to report
 * them, the evidence says so, and the monitor requests them again each minute.
 *
 * A GPU that a process has open cannot be reset, nor its MIG mode changed.  A dispatcher
 * has its own GPUs open, and all others for a moment at create and
 * gpud_dispatcher_device_add; a gpud_monitor has all of them open: close it before a
 * reset.  Once a GPU of a dispatcher is out of use, needs a reset and has no worker left,
 * the dispatcher closes it and reports this in an event of kind DEVICE.  From then on the
 * GPU is open only during a reading or a canary, at each step of `canary_backoff`.  The
 * other GPUs stay monitored.  A GPU that was removed is closed too.
 *
 * Smallest use:
 *
 *     gpud_monitor *m = NULL;
 *     struct gpud_device_info rows[64] = { GPUD_DEVICE_INFO_INIT };
 *     if (gpud_monitor_open(&m, NULL, NULL) == 0)
 *         for (int i = 0, n = gpud_monitor_read(m, rows, 64, 0, 2000000000); i < n && i < 64; i++)
 *             printf("%s %s %s\n", rows[i].name, rows[i].uuid, gpud_health_name(rows[i].health));
 *     gpud_monitor_close(&m);
 *
 * The mistake people make: keeping an index over a restart.  Keep the UUID.
 *
 * Stability: stable (appending only).
 */
#ifndef GPUDISPATCH_DEVICE_H
#define GPUDISPATCH_DEVICE_H

#include "error.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a device is. */
#define GPUD_DEVICE_KIND_MAP(X)                                                          \
    X(CPU, 1, "a CPU slot")                                                              \
    X(GPU, 2, "a whole GPU")                                                             \
    X(MIG, 3, "a MIG instance of a GPU")                                                 \
    X(FAKE, 4, "a fake GPU, for tests and laptops")

/* Why there is no GPU: what the driver as a whole says. */
#define GPUD_DRIVER_MAP(X)                                                               \
    X(OK, 0, "the driver answers")                                                       \
    X(NONE, 1, "no NVIDIA driver library is installed")                                  \
    X(NOT_LOADED, 2, "the kernel module is not loaded")                                  \
    X(MISMATCH, 3, "library and kernel module are of different versions: the driver was changed under us") \
    X(TOO_OLD, 4, "the driver's NVML lacks what is needed")                              \
    X(NO_PERMISSION, 5, "this process may not open the devices")                         \
    X(REVOKED, 6, "access was taken away while the hardware is fine: a container that was reconfigured") \
    X(HUNG, 7, "the driver does not answer")                                             \
    X(FAILED, 8, "the driver answers with an error")

#define GPUD_X_DEVICE_KIND(name, value, text) GPUD_DEVICE_##name = value,
#define GPUD_X_DRIVER(name, value, text) GPUD_DRIVER_##name = value,
enum gpud_device_kind { GPUD_DEVICE_KIND_MAP(GPUD_X_DEVICE_KIND) GPUD_DEVICE_KIND_COUNT = 5 };
enum gpud_driver { GPUD_DRIVER_MAP(GPUD_X_DRIVER) GPUD_DRIVER_COUNT = 9 };
#undef GPUD_X_DEVICE_KIND
#undef GPUD_X_DRIVER

/*
 * The short names as text ("GPU", "HEALTHY", "NOT_LOADED"), and one sentence for a driver state.
 * Returns: a constant string; "?" for an unknown value.  Thread: any.  Process: either.  Since: 1.
 */
GPUD_API const char *gpud_device_kind_name(uint32_t kind);
GPUD_API const char *gpud_driver_name(uint32_t driver);
GPUD_API const char *gpud_driver_text(uint32_t driver);

/* A reading that is not available: of a 64-bit, of a 32-bit field. */
#define GPUD_UNKNOWN64 UINT64_MAX
#define GPUD_UNKNOWN32 UINT32_MAX

/* Why the clocks are held down: bits of `throttle`, as NVML has them. */
enum gpud_throttle {
    GPUD_THROTTLE_IDLE = 0x1,
    GPUD_THROTTLE_APP_CLOCKS = 0x2,
    GPUD_THROTTLE_POWER_CAP = 0x4,
    GPUD_THROTTLE_HW_SLOWDOWN = 0x8,
    GPUD_THROTTLE_SYNC_BOOST = 0x10,
    GPUD_THROTTLE_SW_THERMAL = 0x20,
    GPUD_THROTTLE_HW_THERMAL = 0x40,
    GPUD_THROTTLE_HW_POWER_BRAKE = 0x80
};

/*
 * What the driver says would bring the device back.  With NONE and IMEX the device stays
 * in use.  With RESET, REBOOT, BUS_RESET and SYSTEM_REBOOT its workers are killed.  With
 * every other number what runs ends and nothing new starts; this includes numbers without
 * a name here, which a newer driver may report: the evidence has the number.
 */
enum gpud_recovery {
    GPUD_RECOVERY_NONE = 0,
    GPUD_RECOVERY_RESET = 1,
    GPUD_RECOVERY_REBOOT = 2,
    GPUD_RECOVERY_DRAIN_P2P = 3,
    GPUD_RECOVERY_DRAIN_RESET = 4,
    GPUD_RECOVERY_IMEX = 5,
    GPUD_RECOVERY_BUS_RESET = 6,
    GPUD_RECOVERY_SYSTEM_REBOOT = 7
};

/* One device as it is now. */
struct gpud_device_info {
    uint32_t struct_size;
    uint32_t kind;              /* enum gpud_device_kind */
    char name[32];              /* "gpu:0", "gpu:0:1", "cpu:3", "fake:2" */
    char uuid[96];              /* "GPU-...", "MIG-..."; of a CPU slot its name */
    char model[96];             /* "NVIDIA H100 80GB HBM3" */
    char pci[32];               /* PCI address; "" when none */
    char mig_profile[32];       /* "1g.10gb"; "" when none */
    char parent_uuid[96];       /* of a MIG instance: the GPU it is a part of */
    char evidence[160];         /* why health is what it is, in one sentence */
    uint32_t index;             /* NVML's number of the GPU */
    uint32_t compute_major;     /* compute capability; 0 = unknown */
    uint32_t compute_minor;
    uint32_t compute_mode;      /* 0 default, 2 prohibited, 3 exclusive process; GPUD_UNKNOWN32 */
    uint32_t numa_node;         /* of the CPUs beside it, as in sysfs, never the GPU's own
                                   memory (Grace has such nodes); GPUD_UNKNOWN32 */
    uint32_t health;            /* enum gpud_health */
    uint64_t since;             /* when health became this */

    /* live: GPUD_UNKNOWN64 or GPUD_UNKNOWN32 where not available */
    uint64_t sampled_at;        /* when these were read; 0 = never */
    uint64_t memory_total;      /* bytes; total, used and free are unknown where the GPU
                                   has no memory of its own (GB10, Thor, Orin) */
    uint64_t memory_used;       /* bytes, all processes and the driver's reserve */
    uint64_t memory_free;       /* bytes */
    uint64_t memory_ours;       /* bytes held by workers of this dispatcher; a monitor knows none of them: 0 */
    uint64_t memory_foreign;    /* bytes held by other processes, as far as the driver tells */
    uint32_t foreign_processes; /* how many others use it; to a monitor all are others */
    uint32_t foreign_pid;       /* the one with most memory; 0 = none */
    uint32_t utilization;       /* percent */
    uint32_t memory_utilization; /* percent of the time in which memory was read or written */
    uint32_t temperature;       /* degrees Celsius */
    uint32_t power;             /* mW */
    uint32_t power_limit;       /* mW */
    uint32_t sm_clock;          /* MHz */
    uint64_t throttle;          /* bits of enum gpud_throttle */
    uint64_t ecc_corrected;     /* errors since the driver was loaded */
    uint64_t ecc_uncorrected;
    uint32_t remapped_rows;     /* corrected and uncorrected */
    uint32_t remap_pending;     /* 1 = takes effect with the next reset */
    uint32_t remap_failed;      /* 1 = a remap has failed: the device is not healthy */
    uint32_t recovery;          /* enum gpud_recovery, or a newer driver's number */
    uint32_t last_xid;          /* 0 = none seen */
    uint32_t xids;              /* how many were seen */
    uint64_t last_xid_at;

    /* in a dispatcher; a monitor leaves these zero */
    uint32_t slots;             /* slots with this device */
    uint32_t draining;          /* 1 = takes no new task */
    uint32_t canary_passes;     /* in a row, while it is on its way back */
    uint32_t canary_failures;   /* in all */
    uint64_t canary_at;         /* when the next canary may run; 0 = none is due */
};

#define GPUD_DEVICE_INFO_INIT                                                                                                   \
    { (uint32_t)sizeof(struct gpud_device_info), 0, { 0 }, { 0 }, { 0 }, { 0 }, { 0 }, { 0 }, { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* The driver as a whole. */
struct gpud_driver_info {
    uint32_t struct_size;
    uint32_t state;             /* enum gpud_driver */
    char text[160];             /* what was seen, in one sentence, and what to do */
    char driver_version[80];
    char nvml_version[80];
    uint32_t cuda_version;      /* the newest that the driver runs: 12080 = 12.8; 0 = unknown */
    uint32_t gpus;              /* counted by the driver, those we may not open included */
    uint32_t unreadable;        /* of these, how many could not be opened */
    uint32_t lost;              /* and of those, how many are gone from the bus or must be reset */
};

#define GPUD_DRIVER_INFO_INIT { (uint32_t)sizeof(struct gpud_driver_info), 0, { 0 }, { 0 }, { 0 }, 0, 0, 0, 0 }

/* ---- a look at the machine, without a dispatcher ---- */

typedef struct gpud_monitor gpud_monitor;

/*
 * Starts a monitor process and asks it what there is; does not wait for the answer.
 * `devices`: NULL or "all" for the GPUs of this machine (all of them: CUDA_VISIBLE_DEVICES is not
 * looked at), or "fake:N[,script=FILE]"; the file is read now, and its time begins.  Needs no gpud_init: without it, and where
 * the credentials have changed since, the bundled worker program is executed for it.
 * Returns: 0 and *ret_m; GPUD_EINVAL, GPUD_EDEVICE (a bad entry, a bad script: line and column), GPUD_ENOPROGRAM,
 * GPUD_ENOTEXEC, GPUD_EOTHERVERSION, GPUD_ENOANSWER, GPUD_EPROTOCOL, GPUD_ESPAWNER, GPUD_EFULL (256 dispatchers
 * and monitors live), GPUD_ENOMEM, GPUD_ESYSTEM; nothing has changed then.  No driver is no error: see gpud_monitor_driver.
 * Owns: gives *ret_m, ended with gpud_monitor_close; two descriptors, four without gpud_init; no thread.
 * Thread: any; one monitor belongs to one thread at a time.  Process: host.  Since: 1.
 */
GPUD_API int gpud_monitor_open(gpud_monitor **ret_m, const char *devices, struct gpud_error *reterr);

/*
 * Gives one row per device, up to n; rows[0].struct_size says how long one is.
 * Waits up to `wait` nanoseconds for readings that are at most `max_age` nanoseconds old (0: read
 * anew; GPUD_NEVER: any); then gives what there is, and what was asked for comes with a later call.  Nothing is read
 * between calls, and nobody wakes up [C20]; what happens to a device meanwhile is
 * heard, from a moment after the devices are known, and the next call tells it.
 * A monitor runs no canaries and has no workers.  A GPU that an XID has made QUARANTINED
 * stays so until the driver has asked for a reset and asks no more; one that was LOST is
 * HEALTHY with the next good reading; no XID makes one SUSPECT.
 * A GPU that has not answered for a second keeps its last reading, and its health is UNKNOWN.  Where no GPU was found
 * a call looks again, as old as the last look may be: a driver may have been loaded.
 * Returns: the number of devices (maybe more than n; 0 = none, or none known yet); GPUD_EINVAL, GPUD_EFORKED,
 * GPUD_ESPAWNER (the monitor process is gone, or was never there: open another).
 * Thread: one at a time.  Process: host.  Since: 1.
 */
GPUD_API int gpud_monitor_read(gpud_monitor *m, struct gpud_device_info *rows, size_t n, uint64_t max_age, uint64_t wait);

/*
 * Tells about the driver, as far as is known now; waits up to `wait` nanoseconds for the first answer.
 * Without one in time, and while any answer has been awaited for a second, the state is GPUD_DRIVER_HUNG; once the monitor
 * process is gone it is GPUD_DRIVER_FAILED.
 * Returns: 0; GPUD_EINVAL, GPUD_EFORKED.  Thread: one at a time.  Process: host.  Since: 1.
 */
GPUD_API int gpud_monitor_driver(gpud_monitor *m, struct gpud_driver_info *ret_info, uint64_t wait);

/* A process that uses a device, as the driver lists it. */
struct gpud_process_info {
    uint32_t struct_size;
    uint32_t pid;               /* 0: it had ended, or lives outside this container */
    uint64_t memory;            /* bytes on the device; GPUD_UNKNOWN64 */
    uint32_t worker;            /* 1 = a worker of this library, of whichever host */
    uint32_t reserved;
};

#define GPUD_PROCESS_INFO_INIT { (uint32_t)sizeof(struct gpud_process_info), 0, 0, 0, 0 }

/*
 * Lists the processes that the last gpud_monitor_read found on one device, those with
 * most memory first, at most n and at most 24; foreign_processes, which counts our
 * workers too in a monitor, is the number of all.  rows[0].struct_size says how long a
 * row is.  This call takes no reading.
 * `device`: the whole name or UUID, as in gpud_device_info.
 * Returns: how many are listed (maybe more than n; 0 also where the driver does not
 * tell, and foreign_processes is GPUD_UNKNOWN32); GPUD_ENOTFOUND: no such device, or
 * nothing was read yet; GPUD_EINVAL, GPUD_ESTRUCT, GPUD_EFORKED.
 * Thread: one at a time.  Process: host.  Since: 1.
 */
GPUD_API int gpud_monitor_processes(gpud_monitor *m, const char *device,
                                    struct gpud_process_info *rows, size_t n);

/*
 * Ends the monitor; *m becomes NULL.  Never waits for a driver that hangs: the process is killed, and one
 * that the kernel does not let die is left behind after a third of a second.
 * Returns: 0, also for NULL.  In a process forked from the host it only frees.
 * Thread: one.  Process: host.  Since: 1.
 */
GPUD_API int gpud_monitor_close(gpud_monitor **m);

/*
 * ---- the devices of a dispatcher ----
 *
 * A device that fails takes no task from then on.  What runs there ends CRASHED, code GPUD_EDEVICE, with the
 * evidence as its text, or is tried again (GPUD_RETRY_DEVICE); where the fault lets it end, it ends by itself.  What was sent and not
 * started goes to others; they go on.                                                       [C2] [C3]
 * While canaries may bring a device back its slots are in BACKOFF, and tasks wait for them.  Where the last
 * reading says that only a reset, or what took it away, can bring it back, they are QUARANTINED: when no other slot is
 * left, tasks end NO_WORKER at once.  It is read again all the same, and comes back by itself.          [C9]
 * A worker's successor starts when the memory of its devices is as free as before it (option memory_wait). [C8]
 *
 * Each change is an event of kind DEVICE: device and device_uuid say which, device_health how it is now, xid which
 * fault it was, text why.  It has room like a failed setup: it is dropped, and counted, only where a host leaves hundreds uncollected.
 */

/*
 * Gives one row per device, up to n, in the order in which they came; removed ones are left out.
 * Readings are at most about a second old while somebody asks or something runs; nothing is read when
 * nobody does (stats do not ask), so the first call after a pause may give older ones: sampled_at tells.   [C20]
 * Returns: the number of devices (maybe more than n); GPUD_EINVAL, GPUD_EFORKED.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_devices(gpud_dispatcher *d, struct gpud_device_info *rows, size_t n);

/*
 * Adds devices: entries as in option devices.  Their workers start at once; options of the dispatcher hold for them
 * (devices_per_worker: the new entries are divided by themselves).  Asks the driver as create does, and waits as long.
 * CPU slots get the lowest numbers that are free, fakes the numbers above those there are.
 * GPUs that are here already are refused.  A device that was removed may be added again.
 * Each new worker has as large a share of the payload budget as the others: the budget grows by that.
 * Returns: 0; GPUD_EDEVICE (with the entry and its position), GPUD_EINVAL, GPUD_ECLOSED, GPUD_EFULL (more than
 * 1,024 slots in all dispatchers of this process, or 64 additions of GPUs or fakes that are not removed), GPUD_ESPAWNER, GPUD_ENOMEM,
 * GPUD_ESYSTEM (with sys_errno EMFILE and field "devices" if fewer descriptors are free than
 * the new slots need, see gpud_dispatcher_create), GPUD_EFORKED; nothing has changed then.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_device_add(gpud_dispatcher *d, const char *devices, struct gpud_error *reterr);

/*
 * Drains a device: its workers take no new task, what had been sent and not started goes to others, what runs ends by
 * itself, then their cleanup runs.  The device stays, drained, until it is returned or removed.
 * `device`: a name or a UUID, as in gpud_device_info.
 * Returns: 0, also when it is draining already; GPUD_ENOTFOUND, GPUD_EINVAL, GPUD_EFORKED.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_device_drain(gpud_dispatcher *d, const char *device);

/*
 * Takes a device back into use: ends a drain, or asks that a device that was quarantined, lost or given up is tried
 * now and not when its wait is over.  Evidence decides then, as ever: the canary must pass before it gets a task.
 * Returns: 0; GPUD_ENOTFOUND, GPUD_EINVAL, GPUD_EFORKED.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_device_return(gpud_dispatcher *d, const char *device);

/*
 * Removes a device: as drain, and it is gone from the rows once its workers are.  In a set the whole set goes.
 * What waits for a worker ends NO_WORKER when no slot is left.
 * Returns: 0; GPUD_ENOTFOUND, GPUD_EINVAL, GPUD_EFORKED.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 */
GPUD_API int gpud_dispatcher_device_remove(gpud_dispatcher *d, const char *device);

#ifdef __cplusplus
}
#endif
#endif
