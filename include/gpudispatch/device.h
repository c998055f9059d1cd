/* SPDX-License-Identifier: MIT */
/*
 * device.h - the devices of a machine and of a dispatcher: their readings, their health,
 * and calls that change them while a dispatcher runs.
 *
 * A device is a GPU, a MIG instance, a CPU slot ("cpu:N") or a fake GPU ("fake:N").  Its
 * name is for people: "gpu:0", and "gpu:0:1" for MIG instance 1 of that GPU.  The numbers
 * follow NVML's order, which is that of PCI addresses, and may change when the machine
 * starts again.  Everything else identifies a device by its UUID.
 *
 * A process of its own, the monitor, reads GPUs through NVML: a driver that hangs delays
 * neither a call of this header nor a task.  The monitor ends with its owner, and with
 * the host [C11].  Each reading has the time at which it was made.  A value that cannot
 * be read is "unknown", never "healthy".  The host itself calls neither NVML nor CUDA,
 * except for cuDeviceGetCount at gpud_init where libcuda is loaded already.  [C14]
 *
 * The monitor receives faults (XIDs) as they happen.  If the driver refuses to report
 * them, the evidence states that, and the monitor requests them again each minute.
 *
 * A GPU that a process has open cannot be reset, nor can its MIG mode be changed.  A
 * dispatcher has its own GPUs open, and all other GPUs for a moment at create and
 * gpud_dispatcher_device_add.  A gpud_monitor has all GPUs open: close it before a reset.
 * Once a GPU of a dispatcher is out of use, needs a reset and has no worker left, the
 * dispatcher closes it.  An event of kind DEVICE reports this.  From then on the GPU is
 * open only during a reading or a canary, at each step of `canary_backoff`.  The other
 * GPUs stay monitored.  The dispatcher also closes a GPU that was removed.
 *
 * When a device of a dispatcher fails:
 * - The device takes no further task.  A task that runs there ends CRASHED, code
 *   GPUD_EDEVICE, with the evidence as its text, or is retried (GPUD_RETRY_DEVICE).
 *   Where the fault permits it, the task ends in its own way instead.
 * - Tasks that were sent there and have not started go to workers on other devices.
 *   Those workers continue.  [C2] [C3]
 * - While canaries may bring the device back, its slots are in BACKOFF, and tasks wait
 *   for them.  If the last reading shows that only a reset or another act from outside
 *   can bring it back, its slots are QUARANTINED.  Then tasks end NO_WORKER at once if no
 *   other slot is left.  The monitor still reads the device, and it returns to use on its
 *   own.  [C9]
 * - The successor of a worker starts when the memory of its devices is as free as before
 *   that worker (option memory_wait).  [C8]
 *
 * Each change of a device in a dispatcher is an event of kind DEVICE.  Its fields device
 * and device_uuid name the device, device_health is its health now, xid the number of the
 * fault, and text the reason.  Such an event has reserved room, as a failed setup has.
 * It is dropped, and counted in events_dropped, only if a host leaves hundreds of events
 * uncollected.
 *
 * Smallest use:
 *
 *     gpud_monitor *m = NULL;
 *     struct gpud_device_info rows[64] = { GPUD_DEVICE_INFO_INIT };
 *     if (gpud_monitor_open(&m, NULL, NULL) == 0) {
 *         int n = gpud_monitor_read(m, rows, 64, 0, GPUD_S(2));
 *         for (int i = 0; i < n && i < 64; i++)
 *             printf("%s %s %s\n", rows[i].name, rows[i].uuid,
 *                    gpud_health_name(rows[i].health));
 *     }
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

/* The kinds of devices. */
#define GPUD_DEVICE_KIND_MAP(X)                                                          \
    X(CPU, 1, "a CPU slot")                                                              \
    X(GPU, 2, "a whole GPU")                                                             \
    X(MIG, 3, "a MIG instance of a GPU")                                                 \
    X(FAKE, 4, "a fake GPU, for tests and laptops")

/* The states of the driver as a whole: why there is no GPU. */
#define GPUD_DRIVER_MAP(X)                                                               \
    X(OK, 0, "the driver works")                                                         \
    X(NONE, 1, "no NVIDIA driver library is installed")                                  \
    X(NOT_LOADED, 2, "the kernel module is not loaded")                                  \
    X(MISMATCH, 3,                                                                       \
      "library and kernel module differ in version: the driver was changed at run time") \
    X(TOO_OLD, 4, "the driver's NVML lacks functions that the library needs")            \
    X(NO_PERMISSION, 5, "this process may not open the devices")                         \
    X(REVOKED, 6,                                                                        \
      "access was revoked while the hardware is fine: a container was reconfigured")     \
    X(HUNG, 7, "the driver does not reply")                                              \
    X(FAILED, 8, "the driver returns an error")

/*
 * What a dispatcher does with a device now.
 *
 * Each state but IDLE is the state of that name of the slot that counts for the device:
 * see field state of struct gpud_device_info.
 */
#define GPUD_DEVICE_STATE_MAP(X)                                                         \
    X(IDLE, 1, "pooled: no worker is there or on its way; one may start")                \
    X(STARTING, 2, "a worker starts or is inside setup, or external work has a grant")   \
    X(READY, 3, "a worker waits for tasks")                                              \
    X(BUSY, 4, "a worker has tasks, or external work runs")                              \
    X(DRAINING, 5, "the worker finishes its running tasks, then its cleanup runs")       \
    X(UNLOADING, 6, "pooled: the worker runs its cleanup, and another class may follow") \
    X(COOLING, 7, "pooled: the worker is gone, and its memory not yet free")             \
    X(BACKOFF, 8, "no worker: waits for the next start, or for canaries")                \
    X(QUARANTINED, 9,                                                                    \
      "no worker: needs a reset or its access back, or a worker there survived SIGKILL") \
    X(FAILED, 10, "no worker: given up after several failures in a row")                 \
    X(STOPPED, 11, "no worker, and none wanted: drained, or the dispatcher is closing")

#define GPUD_X_DEVICE_KIND(name, value, text) GPUD_DEVICE_##name = value,
#define GPUD_X_DEVICE_STATE(name, value, text) GPUD_DEVICE_STATE_##name = value,
#define GPUD_X_DRIVER(name, value, text) GPUD_DRIVER_##name = value,
enum gpud_device_kind {
    GPUD_DEVICE_KIND_MAP(GPUD_X_DEVICE_KIND) GPUD_DEVICE_KIND_COUNT = 5
};
enum gpud_device_state {
    GPUD_DEVICE_STATE_MAP(GPUD_X_DEVICE_STATE) GPUD_DEVICE_STATE_COUNT = 12
};
enum gpud_driver { GPUD_DRIVER_MAP(GPUD_X_DRIVER) GPUD_DRIVER_COUNT = 9 };
#undef GPUD_X_DEVICE_KIND
#undef GPUD_X_DEVICE_STATE
#undef GPUD_X_DRIVER

/*
 * Returns the name of a kind of device, such as "GPU".
 *
 * Returns: a constant string; "?" if kind is no value of enum gpud_device_kind.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: struct gpud_device_info.
 */
GPUD_API const char *gpud_device_kind_name(uint32_t kind);

/*
 * Returns the name of a state of a device in a dispatcher, such as "UNLOADING".
 *
 * Returns: a constant string; "?" if state is no value of enum gpud_device_state.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: struct gpud_device_info, gpud_dispatcher_devices.
 */
GPUD_API const char *gpud_device_state_name(uint32_t state);

/*
 * Returns the name of a state of the driver, such as "NOT_LOADED".
 *
 * Returns: a constant string; "?" if driver is no value of enum gpud_driver.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_driver_text, gpud_monitor_driver.
 */
GPUD_API const char *gpud_driver_name(uint32_t driver);

/*
 * Returns the sentence that explains a state of the driver.
 *
 * Returns: a constant string; "?" if driver is no value of enum gpud_driver.
 * Thread: any.  From callbacks: yes.  Process: either.  Since: 1.
 * See: gpud_driver_name, gpud_monitor_driver.
 */
GPUD_API const char *gpud_driver_text(uint32_t driver);

/* A 64-bit reading that is not available. */
#define GPUD_UNKNOWN64 UINT64_MAX
/* A 32-bit reading that is not available. */
#define GPUD_UNKNOWN32 UINT32_MAX

/* The reasons why a device holds its clocks down: bits of throttle, as in NVML. */
enum gpud_throttle {
    GPUD_THROTTLE_IDLE = 0x1,          /* nothing runs */
    GPUD_THROTTLE_APP_CLOCKS = 0x2,    /* the setting of the application clocks */
    GPUD_THROTTLE_POWER_CAP = 0x4,     /* the power limit */
    GPUD_THROTTLE_HW_SLOWDOWN = 0x8,   /* the hardware slows down, for heat or power */
    GPUD_THROTTLE_SYNC_BOOST = 0x10,   /* a group of GPUs that boost together */
    GPUD_THROTTLE_SW_THERMAL = 0x20,   /* heat, limited by the driver */
    GPUD_THROTTLE_HW_THERMAL = 0x40,   /* heat, limited by the hardware */
    GPUD_THROTTLE_HW_POWER_BRAKE = 0x80 /* the power brake of the machine */
};

/*
 * The action that would bring a device back, as the driver reports it.
 *
 * With NONE and IMEX the device stays in use.  With RESET, REBOOT, BUS_RESET and
 * SYSTEM_REBOOT its workers are killed.  With every other number running tasks finish and
 * nothing new starts.  This includes numbers without a name here, which a newer driver
 * may report: the evidence has the number.
 */
enum gpud_recovery {
    GPUD_RECOVERY_NONE = 0,         /* none is needed */
    GPUD_RECOVERY_RESET = 1,        /* the device must be reset */
    GPUD_RECOVERY_REBOOT = 2,       /* the machine must be rebooted */
    GPUD_RECOVERY_DRAIN_P2P = 3,    /* traffic between its peers must be drained */
    GPUD_RECOVERY_DRAIN_RESET = 4,  /* the device must be drained and reset */
    GPUD_RECOVERY_IMEX = 5,         /* the IMEX domain must be recovered */
    GPUD_RECOVERY_BUS_RESET = 6,    /* its PCIe bus must be reset */
    GPUD_RECOVERY_SYSTEM_REBOOT = 7 /* the whole system must be rebooted */
};

/*
 * One device as it is now.
 *
 * The fields from sampled_at to last_xid_at are live.  A reading that is not available is
 * GPUD_UNKNOWN64 or GPUD_UNKNOWN32.  The fields from slots on belong to a dispatcher; a
 * monitor leaves them zero.  Points in time are nanoseconds of CLOCK_MONOTONIC.
 */
struct gpud_device_info {
    uint32_t struct_size;       /* set by GPUD_DEVICE_INFO_INIT */
    uint32_t kind;              /* enum gpud_device_kind */
    char name[32];              /* "gpu:0", "gpu:0:1", "cpu:3", "fake:2" */
    char uuid[96];              /* "GPU-...", "MIG-..."; of a CPU slot its name */
    char model[96];             /* "NVIDIA H100 80GB HBM3" */
    char pci[32];               /* PCI address; "" when none */
    char mig_profile[32];       /* "1g.10gb"; "" when none */
    char parent_uuid[96];       /* of a MIG instance: the GPU that it is a part of */
    char evidence[160];         /* the reason for health, in one sentence */
    uint32_t index;             /* NVML's number of the GPU */
    uint32_t compute_major;     /* compute capability, before the point; 0 = unknown */
    uint32_t compute_minor;     /* compute capability, behind the point */
    /* 0 = default, 2 = prohibited, 3 = exclusive process; GPUD_UNKNOWN32. */
    uint32_t compute_mode;
    /*
     * The NUMA node of the CPUs beside the device, as in sysfs.  It is never the node of
     * the GPU's own memory, which Grace has.  GPUD_UNKNOWN32: unknown.
     */
    uint32_t numa_node;
    uint32_t health;            /* enum gpud_health */
    uint64_t since;             /* when health became this */
    uint64_t sampled_at;        /* when the live fields were read; 0 = never */
    /*
     * Bytes.  Total, used and free are unknown where the GPU has no memory of its own
     * (GB10, Thor, Orin).
     */
    uint64_t memory_total;
    uint64_t memory_used;       /* bytes, of all processes and the driver's reserve */
    uint64_t memory_free;       /* bytes */
    /*
     * Bytes held by workers of this dispatcher, and by processes of its external work; 0
     * in a monitor, which knows none.
     */
    uint64_t memory_ours;
    /* Bytes held by all other processes, as far as the driver lists them. */
    uint64_t memory_foreign;
    /* How many other processes use the device.  To a monitor every process is one. */
    uint32_t foreign_processes;
    uint32_t foreign_pid;       /* the other process with most memory; 0 = none */
    uint32_t utilization;       /* percent */
    /* Percent of the time in which memory was read or written. */
    uint32_t memory_utilization;
    uint32_t temperature;       /* degrees Celsius */
    uint32_t power;             /* mW */
    uint32_t power_limit;       /* mW */
    uint32_t sm_clock;          /* MHz */
    uint64_t throttle;          /* bits of enum gpud_throttle */
    uint64_t ecc_corrected;     /* errors since the driver was loaded */
    uint64_t ecc_uncorrected;   /* errors since the driver was loaded */
    uint32_t remapped_rows;     /* for corrected and uncorrected errors */
    uint32_t remap_pending;     /* 1 = takes effect with the next reset */
    uint32_t remap_failed;      /* 1 = a remap has failed: the device is not healthy */
    uint32_t recovery;          /* enum gpud_recovery, or a newer driver's number */
    uint32_t last_xid;          /* number of the last fault; 0 = none was reported */
    uint32_t xids;              /* how many faults were reported */
    uint64_t last_xid_at;       /* when the last one was received */
    uint32_t slots;             /* slots with this device */
    uint32_t draining;          /* 1 = takes no new task */
    uint32_t canary_passes;     /* in a row, while the device is on its way back */
    uint32_t canary_failures;   /* in all */
    uint64_t canary_at;         /* when the next canary may run; 0 = none is due */
    uint32_t paused;            /* 1 = starts nothing, and keeps its workers */
    uint32_t reserved;
    /*
     * enum gpud_device_state: that of the slot that counts.  Of several slots with the
     * device, the first of these counts: BUSY, DRAINING, READY, STARTING, UNLOADING,
     * COOLING, BACKOFF, QUARANTINED, FAILED, STOPPED; of equal ones that with the lowest
     * number.  A pooled dispatcher may have no slot with the device.  Then the state is
     * BACKOFF or QUARANTINED if the device is out of use, STOPPED if it drains or the
     * dispatcher is closing, else IDLE.
     *
     * External work counts before any slot that is not BUSY.  It is BUSY from its start
     * until gpud_dispatcher_ended, also after its outcome; before its start STARTING; and
     * DRAINING if the device drains.
     */
    uint32_t state;
    uint32_t workers;           /* worker processes there, also if they start or leave */
    uint64_t state_since;       /* when the slot, or else the device, entered it */
    /*
     * When the device is expected to take its next task: ready_at of the row of the slot
     * that counts (struct gpud_slot_stats).  IDLE: state_since.  External work: the end
     * of its limit.  A time that is not in the future: it is ready now.  0: unknown;
     * always if the device is paused or drains.
     */
    uint64_t ready_at;
    /* Tasks that ended on the device since it was added, with any outcome. */
    uint64_t tasks_done;
    uint64_t task_id;           /* the task that runs there now, 0 = none */
    uint64_t task_started;      /* when that task started */
    double progress;            /* 0..1, as that task reported it */
    /*
     * The worker of the slot that counts, or the process of the external work; 0 = none.
     * gpud_dispatcher_slots has all workers.
     */
    uint32_t pid;
    /* That slot: its row in gpud_dispatcher_slots; GPUD_UNKNOWN32 = none. */
    uint32_t slot;
    char class_name[64];        /* pooled: class of that slot or work; "" = none */
};

#define GPUD_DEVICE_INFO_INIT                                                            \
    { (uint32_t)sizeof(struct gpud_device_info), 0, { 0 }, { 0 }, { 0 }, { 0 }, { 0 },   \
      { 0 }, { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    \
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,     \
      { 0 } }

/* The driver as a whole. */
struct gpud_driver_info {
    uint32_t struct_size;       /* set by GPUD_DRIVER_INFO_INIT */
    uint32_t state;             /* enum gpud_driver */
    char text[160];             /* one sentence: the finding, and the remedy */
    char driver_version[80];    /* "" when unknown */
    char nvml_version[80];      /* "" when unknown */
    uint32_t cuda_version;      /* the newest it runs: 12080 = 12.8; 0 = unknown */
    /* GPUs that the driver counts, including GPUs that this process may not open. */
    uint32_t gpus;
    uint32_t unreadable;        /* of gpus, how many could not be opened */
    /* Of unreadable, how many are gone from the bus or must be reset. */
    uint32_t lost;
};

#define GPUD_DRIVER_INFO_INIT                                                            \
    { (uint32_t)sizeof(struct gpud_driver_info), 0, { 0 }, { 0 }, { 0 }, 0, 0, 0, 0 }

/* ---- the machine, without a dispatcher ---- */

/* A view of the machine's devices, without a dispatcher. */
typedef struct gpud_monitor gpud_monitor;

/*
 * Opens a monitor, which reads the devices of this machine without a dispatcher.
 *
 * The call starts the monitor process and requests the list of devices.  It does not wait
 * for the reply.  It needs no gpud_init: without it, and where the credentials have
 * changed since, the library executes the bundled worker program for the monitor.  A
 * machine without a driver is no error: see gpud_monitor_driver.  A monitor belongs to
 * one thread at a time.
 *
 * Parameters:
 *   ret_m    receives the monitor
 *   devices  NULL or "all": the GPUs of this machine, all of them, since the call does
 *            not read CUDA_VISIBLE_DEVICES.  "fake:N[,script=FILE]": N fakes; the call
 *            reads FILE, and the time of the script begins with the call
 *   reterr   filled on failure; may be NULL
 * Returns: 0 and *ret_m.  On failure nothing has changed.
 * Errors:
 *   GPUD_EINVAL         ret_m is NULL, or the path in GPUD_WORKER_PROGRAM is too long
 *   GPUD_EDEVICE        devices is not one of these entries, or its script is not usable:
 *                       the text has the entry, or line and column
 *   GPUD_ENOPROGRAM     the monitor needs the bundled worker program, which does not
 *                       exist
 *   GPUD_ENOTEXEC       the bundled worker program of the monitor cannot be executed
 *   GPUD_EOTHERVERSION  the bundled worker program has another protocol than this library
 *   GPUD_ENOANSWER      the bundled worker program, executed for the monitor, ended or
 *                       did not reply within 10 s
 *   GPUD_EPROTOCOL      the bundled worker program sent an unexpected reply
 *   GPUD_ESPAWNER       the spawner of gpud_init has died, so no monitor can be started
 *   GPUD_EFULL          256 dispatchers and monitors are alive in this process
 *   GPUD_ENOMEM         no memory for the monitor
 *   GPUD_ESYSTEM        the system refused a call that starts the monitor: sys_errno and
 *                       the text name it
 * Owns: hands over *ret_m, which gpud_monitor_close ends; it has two descriptors, four
 * without gpud_init, and no thread.
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_monitor_read, gpud_monitor_driver.
 */
GPUD_API int gpud_monitor_open(gpud_monitor **ret_m, const char *devices,
                               struct gpud_error *reterr);

/*
 * Reads the devices of a monitor, one row per device.
 *
 * The call waits for readings that are recent enough.  When the wait expires it returns
 * the readings there are; a later call returns the readings requested here.  The monitor
 * reads nothing between calls, and no process wakes up.  Faults in between are received,
 * from a moment after the devices are known, and the next call reports them.  [C20]
 *
 * A monitor runs no canaries and has no workers, so readings alone clear a fault.  A GPU
 * that an XID made QUARANTINED stays so until the driver has requested a reset and then
 * requests none.  A GPU that an XID made SUSPECT is HEALTHY with the next good reading,
 * one that was LOST with the second.  A GPU without a reply for 1 s keeps its last
 * reading, and its health is UNKNOWN, unless it was SUSPECT, QUARANTINED, LOST or
 * REVOKED.
 *
 * If no GPU was found and that search is older than max_age, the call searches again: a
 * driver may have been loaded.
 *
 * Parameters:
 *   m        the monitor
 *   rows     room for n rows, rows[0].struct_size set; may be NULL if n is 0
 *   n        how many rows to fill at most
 *   max_age  the greatest age of a reading in nanoseconds; 0: read anew; GPUD_NEVER: any
 *   wait     nanoseconds to wait for such readings; 0: not at all; GPUD_NEVER: no limit
 * Returns: the number of devices, which may be more than n; 0 if there are none, or none
 * are known yet.
 * Errors:
 *   GPUD_EINVAL    m is NULL, or rows is NULL and n is not 0
 *   GPUD_ESTRUCT   rows[0].struct_size does not reach beyond evidence, exceeds 4,096, or
 *                  is not a multiple of 8
 *   GPUD_EFORKED   m belongs to the parent of this forked process
 *   GPUD_EREENTER  this process is a worker, and m belongs to the host
 *   GPUD_ESPAWNER  the monitor process of m has died or could not be forked: open another
 *                  one
 * Thread: one at a time.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_monitor_processes, gpud_dispatcher_devices.
 */
GPUD_API int gpud_monitor_read(gpud_monitor *m, struct gpud_device_info *rows, size_t n,
                               uint64_t max_age, uint64_t wait);

/*
 * Reports the state of the driver, as far as the monitor knows it now.
 *
 * The state is GPUD_DRIVER_HUNG without a first reply in time, and while any reply is
 * overdue by 1 s.  Once the monitor process is gone it is GPUD_DRIVER_FAILED.
 *
 * Parameters:
 *   m         the monitor
 *   ret_info  the record to fill, its struct_size set
 *   wait      nanoseconds to wait for the first reply; 0: not at all; GPUD_NEVER: no
 *             limit
 * Returns: 0.
 * Errors:
 *   GPUD_EINVAL    m or ret_info is NULL
 *   GPUD_ESTRUCT   ret_info->struct_size does not reach beyond text, exceeds 4,096, or is
 *                  not a multiple of 8
 *   GPUD_EFORKED   m belongs to the parent of this forked process
 *   GPUD_EREENTER  this process is a worker, and m belongs to the host
 * Thread: one at a time.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_driver_name, gpud_driver_text.
 */
GPUD_API int gpud_monitor_driver(gpud_monitor *m, struct gpud_driver_info *ret_info,
                                 uint64_t wait);

/* A process that uses a device, as the driver lists it. */
struct gpud_process_info {
    uint32_t struct_size;       /* set by GPUD_PROCESS_INFO_INIT */
    uint32_t pid;               /* 0: it had ended, or lives outside this container */
    uint64_t memory;            /* bytes on the device; GPUD_UNKNOWN64 */
    uint32_t worker;            /* 1 = a worker of this library, of whichever host */
    uint32_t reserved;          /* 0 */
};

#define GPUD_PROCESS_INFO_INIT { (uint32_t)sizeof(struct gpud_process_info), 0, 0, 0, 0 }

/*
 * Lists the processes that the last gpud_monitor_read found on one device.
 *
 * The processes with most memory come first; at most 24 are listed.  foreign_processes of
 * gpud_device_info is the number of all processes, since a monitor counts workers of this
 * library there, too.  This call takes no reading.
 *
 * Parameters:
 *   m       the monitor
 *   device  the whole name or UUID, as in gpud_device_info
 *   rows    room for n rows, rows[0].struct_size set; may be NULL if n is 0
 *   n       how many rows to fill at most
 * Returns: how many processes are listed, which may be more than n.  It is 0 also where
 * the driver lists none, and foreign_processes is GPUD_UNKNOWN32.
 * Errors:
 *   GPUD_ENOTFOUND  m has no device with this name or UUID, or knows no device yet
 *   GPUD_EINVAL     m or device is NULL, or rows is NULL and n is not 0
 *   GPUD_ESTRUCT    rows[0].struct_size does not reach beyond memory, exceeds 4,096, or
 *                   is not a multiple of 8
 *   GPUD_EFORKED    m belongs to the parent of this forked process
 *   GPUD_EREENTER   this process is a worker, and m belongs to the host
 * Thread: one at a time.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_monitor_read.
 */
GPUD_API int gpud_monitor_processes(gpud_monitor *m, const char *device,
                                    struct gpud_process_info *rows, size_t n);

/*
 * Closes a monitor and sets *m to NULL.
 *
 * The call never waits for a driver that hangs: the monitor process is killed.  A process
 * that the kernel does not let die is left behind after 0.3 s.  In a process that was
 * forked from the host the call only frees.
 *
 * Returns: 0, also if m or *m is NULL.
 * Thread: one.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_monitor_open.
 */
GPUD_API int gpud_monitor_close(gpud_monitor **m);

/* ---- the devices of a dispatcher: see also the introduction ---- */

/*
 * Reads the devices of a dispatcher, one row per device.
 *
 * The rows are in the order in which the devices were added; removed devices are left
 * out.  Readings are at most about 1 s old while the host keeps making this call, or a
 * task runs on the device.  Otherwise nothing is read, and gpud_dispatcher_stats does not
 * change that.  So the first call after a pause may return older readings: sampled_at is
 * their time.  [C20]
 *
 * The fields from slots on are as of this call.  Of several workers on a device, the row
 * has the one that counts, see field state.  gpud_dispatcher_slots has a row for each
 * worker, with its devices, class, pid and ready_at.
 *
 * Parameters:
 *   d     the dispatcher
 *   rows  room for n rows, rows[0].struct_size set; may be NULL if n is 0
 *   n     how many rows to fill at most
 * Returns: the number of devices, which may be more than n.
 * Errors:
 *   GPUD_EINVAL    d is NULL, or rows is NULL and n is not 0
 *   GPUD_ESTRUCT   rows[0].struct_size does not reach beyond since, exceeds 4,096, or is
 *                  not a multiple of 8
 *   GPUD_EFORKED   d belongs to the parent of this forked process
 *   GPUD_EREENTER  this process is a worker, and d belongs to the host
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_monitor_read, gpud_health_name, gpud_device_state_name,
 * gpud_dispatcher_slots.
 */
GPUD_API int gpud_dispatcher_devices(gpud_dispatcher *d, struct gpud_device_info *rows,
                                     size_t n);

/*
 * Adds devices to a running dispatcher, and starts their workers at once.
 *
 * The dispatcher's options hold for the new devices; devices_per_worker divides the new
 * entries alone.  CPU slots get the lowest free numbers, fakes the numbers above those of
 * the fakes there are.  A GPU that the dispatcher has already is refused; a device that
 * was removed may be added again.  In a pooled dispatcher a worker that survived SIGKILL,
 * or external work beyond its kill limit, keeps its memory there until it ends, as a
 * foreign process does.  Each new worker has as large a share of the payload budget as
 * the other workers: the budget grows by that.
 *
 * Where devices has GPUs or fakes, the call waits as gpud_dispatcher_create does: up to
 * 10 s for the driver, and 1 s for a first reading of each.
 *
 * Parameters:
 *   d        the dispatcher
 *   devices  entries as in option devices
 *   reterr   filled on failure; may be NULL
 * Returns: 0.  On failure nothing has changed.
 * Errors:
 *   GPUD_EDEVICE   an entry of devices cannot be used, or d has its device already: the
 *                  text has the entry and its position, or the reason why there is no GPU
 *   GPUD_EINVAL    d or devices is NULL; or devices has a MIG instance, and option
 *                  visible, in a pool that of some class, is INDEX
 *   GPUD_ECLOSED   stop, close or destroy has ended the intake of d
 *   GPUD_EFULL     devices makes more than 1,024 slots in all dispatchers of this
 *                  process, or in d, removed ones included unless their devices return;
 *                  or d has 64 additions of GPUs or fakes that are not removed
 *   GPUD_ESPAWNER  the spawner of d is gone, or the monitor of devices has died
 *   GPUD_ENOMEM    no memory for the new devices
 *   GPUD_ESYSTEM   the system refused a call that the new devices need.  If fewer
 *                  descriptors are free than the new slots need (see
 *                  gpud_dispatcher_create), sys_errno is EMFILE and field "devices"
 *   GPUD_EFORKED   d belongs to the parent of this forked process
 *   GPUD_EREENTER  this process is a worker, and d belongs to the host
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_device_remove, option devices.
 */
GPUD_API int gpud_dispatcher_device_add(gpud_dispatcher *d, const char *devices,
                                        struct gpud_error *reterr);

/*
 * Drains a device: it takes no new task, and its workers end after their running tasks.
 *
 * Tasks that were sent to its workers and have not started go to other workers.  Running
 * tasks end in their own way, then the workers run cleanup.  The device stays, drained,
 * until it is returned or removed.
 *
 * Parameters:
 *   d       the dispatcher
 *   device  the whole name or UUID, as in gpud_device_info
 * Returns: 0, also if the device drains or is being removed already.
 * Errors:
 *   GPUD_ENOTFOUND  d has no device to drain with this name or UUID
 *   GPUD_EINVAL     d or device is NULL
 *   GPUD_EFORKED    d belongs to the parent of this forked process
 *   GPUD_EREENTER   this process is a worker, and d belongs to the host
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_device_return, gpud_dispatcher_device_remove.
 */
GPUD_API int gpud_dispatcher_device_drain(gpud_dispatcher *d, const char *device);

/*
 * Pauses a device: no task and no worker starts on it, and its workers stay.
 *
 * Running tasks go on.  Tasks that were sent to its workers and have not started go to
 * other workers.  A worker that is in setup passes it, and then waits.  So a loaded model
 * stays loaded while the device is needed elsewhere for a moment.  The pause holds until
 * gpud_dispatcher_device_return, also after gpud_dispatcher_close.
 *
 * Parameters:
 *   d       the dispatcher
 *   device  the whole name or UUID, as in gpud_device_info
 * Returns: 0, also if the device is paused already.
 * Errors:
 *   GPUD_ENOTFOUND  d has no device to pause with this name or UUID, or removes it
 *                   already
 *   GPUD_EINVAL     d or device is NULL
 *   GPUD_EFORKED    d belongs to the parent of this forked process
 *   GPUD_EREENTER   this process is a worker, and d belongs to the host
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_device_return, gpud_dispatcher_device_drain.
 */
GPUD_API int gpud_dispatcher_device_pause(gpud_dispatcher *d, const char *device);

/*
 * Returns a device to use: ends a pause or a drain, or requests a try of a failed device
 * now.
 *
 * A device that was quarantined, lost or given up is tried at once, not at the end of its
 * wait.  Evidence still decides: the canary must pass before the device gets a task.
 *
 * Parameters:
 *   d       the dispatcher
 *   device  the whole name or UUID, as in gpud_device_info
 * Returns: 0.
 * Errors:
 *   GPUD_ENOTFOUND  d has no device with this name or UUID, or removes it already
 *   GPUD_EINVAL     d or device is NULL
 *   GPUD_EFORKED    d belongs to the parent of this forked process
 *   GPUD_EREENTER   this process is a worker, and d belongs to the host
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_device_drain, options failures_in_a_row, canary_passes.
 */
GPUD_API int gpud_dispatcher_device_return(gpud_dispatcher *d, const char *device);

/*
 * Removes a device from a running dispatcher.
 *
 * The device drains as with gpud_dispatcher_device_drain, and leaves the rows once its
 * workers have ended.  Of a set of devices the whole set is removed.  If no slot is left,
 * tasks that wait for a worker end NO_WORKER.
 *
 * Parameters:
 *   d       the dispatcher
 *   device  the whole name or UUID, as in gpud_device_info
 * Returns: 0, also if the device is being removed already.
 * Errors:
 *   GPUD_ENOTFOUND  d has no device to remove with this name or UUID
 *   GPUD_EINVAL     d or device is NULL
 *   GPUD_EFORKED    d belongs to the parent of this forked process
 *   GPUD_EREENTER   this process is a worker, and d belongs to the host
 * Thread: any.  From callbacks: yes.  Process: host.  Since: 1.
 * See: gpud_dispatcher_device_add.
 */
GPUD_API int gpud_dispatcher_device_remove(gpud_dispatcher *d, const char *device);

#ifdef __cplusplus
}
#endif
#endif
