# SPDX-License-Identifier: MIT
"""Types of the rows of Executor.stats(), slots() and devices(), and of rows about classes of work.

The names are those of the C library: struct gpud_stats and GPUD_STATS_MAP in stats.h, struct
gpud_slot_stats there, struct gpud_device_info in device.h, struct gpud_class_stats and struct
gpud_reason in sched.h.  docs/reference/counters.md explains the
counters, and `counters()` lists them with their units.  A test compares this file with the headers.

Times are nanoseconds; points in time are those of time.monotonic_ns().  Memory is in bytes.  None
stands for a value that the library does not know, such as the temperature of a CPU slot.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypedDict

from gpudispatch.future import Future
from gpudispatch.leases import Lease

OutcomeName = Literal["SUCCESS", "ERROR", "TIMEOUT", "CRASHED", "CANCELLED", "NO_WORKER"]
SlotState = Literal[
    "STOPPED",
    "STARTING",
    "READY",
    "BUSY",
    "DRAINING",
    "BACKOFF",
    "FAILED",
    "QUARANTINED",
    "UNLOADING",
    "COOLING",
]
DeviceKind = Literal["CPU", "GPU", "MIG", "FAKE"]
DeviceState = Literal[
    "IDLE",
    "STARTING",
    "READY",
    "BUSY",
    "DRAINING",
    "UNLOADING",
    "COOLING",
    "BACKOFF",
    "QUARANTINED",
    "FAILED",
    "STOPPED",
]
Health = Literal["UNKNOWN", "HEALTHY", "SUSPECT", "QUARANTINED", "LOST", "REVOKED"]

ReasonKind = Literal[
    "PASSED_OVER_BY",
    "MEMORY",
    "SHARE",
    "CPUS",
    "HEAD_HOLDS",
    "DRAINED",
    "PAUSED",
    "FAULT",
    "FOREIGN",
    "MIN_RESIDENCE",
    "MAX_WAIT",
    "PINNED",
    "SEATS",
    "BOOTING",
    "UNLOADING",
    "BUSY",
    "OCCUPIED",
    "NEVER",
    "RETRY",
]
ReasonUnit = Literal["", "bytes", "share", "cpus", "workers", "devices", "compute"]


ChangeName = Literal["NONE", "LOADED", "UNLOADED", "FAILED", "PAUSED", "RESUMED", "REMOVED"]


class Stats(TypedDict):
    """A snapshot of the counters of an executor."""

    slot_count: int  # rows of slots(), removed ones included
    taken_at: int
    first_start: int  # when the first task started; 0 = none has
    throughput: float  # tasks that ended at a worker, per second since first_start
    eta_low: int | None  # the time until all accepted tasks have ended: the low end of a range
    eta_high: int | None
    # counters() has the meaning of each of the following
    accepted: int
    delivered: int
    success: int
    error: int
    timeout: int
    crashed: int
    cancelled: int
    no_worker: int
    retried: int
    recalled: int
    returned: int
    restarts: int
    deaths: int
    hard_kills: int
    setup_failures: int
    cleanup_failures: int
    protocol_errors: int
    late_dropped: int
    events_dropped: int
    queued: int
    sent: int
    undelivered: int
    slots: int
    slots_ready: int
    slots_failed: int
    payload_budget: int
    payload_used: int
    result_used: int
    queue_wait_p50: int
    queue_wait_p99: int
    run_p50: int
    run_p99: int
    overhead_p50: int
    overhead_p99: int
    deferred: int
    kept: int
    batches: int
    device_faults: int
    xids: int
    cuda_faults: int
    canaries: int
    canary_failures: int
    memory_waits: int
    memory_late: int
    monitor_deaths: int
    devices: int
    devices_healthy: int
    devices_out: int
    output_reads: int
    output_polls: int
    idle_with_work: int


class SlotStats(TypedDict):
    """A slot as it is now."""

    slot: int  # its number, from 0
    state: SlotState
    incarnation: int  # which worker of the slot this is, from 1; 0 = none yet
    pid: int  # of the worker; 0 = none
    since: int  # when the slot entered this state
    task_id: int  # the library's number of the task that runs; 0 = none
    task_started: int
    progress: float  # 0 to 1, as that task reported it
    last_duration: int  # how long the last ended task ran
    setup_time: int  # how long this worker's setup took; 0 = not ready yet
    work_time: int  # time with a task, of all workers of the slot
    wait_time: int  # time ready without a task, of all workers of the slot
    outcomes: dict[OutcomeName, int]  # tasks of the slot that ended so
    restarts: int  # workers started in place of another one
    sent: int  # tasks at the worker now
    device: str  # name of the first of its devices
    label: str  # of the running task
    progress_text: str  # of the running task
    device_count: int
    devices: str  # names of all its devices, comma-separated
    class_name: str  # "": an executor is not pooled
    ready_at: int  # when the slot is expected to take its next task; 0 = unknown


class DeviceInfo(TypedDict):
    """A device as it is now.  Readings are at most about 1 s old while a task runs there, or while
    devices() is called again and again."""

    kind: DeviceKind
    name: str  # "gpu:0", "gpu:0:1", "cpu:3", "fake:2"
    uuid: str  # of a CPU slot its name
    model: str
    pci: str  # "" = none
    mig_profile: str  # "" = none
    parent_uuid: str  # of a MIG instance: the GPU that it is a part of
    evidence: str  # the reason for `health`, in one sentence
    index: int  # NVML's number of the GPU
    compute_major: int  # compute capability; 0 = unknown
    compute_minor: int
    compute_mode: int | None
    numa_node: int | None  # of the CPUs beside the device
    health: Health
    since: int  # when health became this
    sampled_at: int  # when the readings were made; 0 = never
    memory_total: int | None
    memory_used: int | None
    memory_free: int | None
    memory_ours: int | None  # held by workers of this executor
    memory_foreign: int | None  # held by other processes
    foreign_processes: int | None
    foreign_pid: int | None  # the other process with most memory; 0 = none
    utilization: int | None  # percent
    memory_utilization: int | None  # percent
    temperature: int | None  # degrees Celsius
    power: int | None  # mW
    power_limit: int | None  # mW
    sm_clock: int | None  # MHz
    throttle: int | None  # bits, as in NVML
    ecc_corrected: int | None
    ecc_uncorrected: int | None
    remapped_rows: int | None
    remap_pending: int | None
    remap_failed: int | None
    recovery: int | None  # the action that would bring the device back; 0 = none is needed
    last_xid: int | None  # number of the last fault; 0 = none was reported
    xids: int | None
    last_xid_at: int | None
    slots: int  # slots with this device
    draining: int  # 1 = takes no new task
    canary_passes: int
    canary_failures: int
    canary_at: int  # when the next canary may run; 0 = none is due
    paused: int  # 1 = starts nothing, and keeps its workers
    # From here on: of the slot that counts, see device.h; in a row of the machine 0 or "".
    state: DeviceState | None  # None: a row of the machine
    state_since: int
    ready_at: int  # when it is expected to take its next task; 0 = unknown
    tasks_done: int  # tasks that ended in workers on the device since it was added
    task_id: int  # the library's number of the task that runs; 0 = none
    task_started: int
    progress: float  # 0 to 1, as that task reported it
    workers: int  # worker processes there, also if they start or leave
    pid: int  # of the worker; 0 = none
    slot: int | None  # None: no slot has the device
    class_name: str  # "": an executor is not pooled


class ClassStats(TypedDict):
    """A class of work as it is now.

    The percentiles are of the last 32 workers or runs, which decide about starts; 0 = there was
    none."""

    name: str
    definition: str  # what its workers run; "" = the only one of their program
    paused: int  # 1 = starts no task and no worker, until it resumes
    pinned: int  # 1 = its workers never leave for another class
    failed: int  # 1 = starts no worker any more, after too many failures in a row
    removing: int  # 1 = accepts no task any more, and is gone once its tasks and workers are
    workers: int  # those that have passed setup
    starting: int  # those before the end of setup
    queued: int  # tasks that wait
    running: int  # tasks at workers, and external ones with devices
    done: int  # tasks that have ended
    failures: int  # workers that failed in setup or died without a task
    oldest_wait: int  # of the oldest task that waits for a worker, since its submit; 0 = none waits
    boot_p10: int  # from the start of a worker to the end of its setup
    boot_p50: int
    boot_p90: int
    unload_p10: int  # in which a worker has left, its memory included
    unload_p50: int
    unload_p90: int
    run_p10: int  # how long a task has run
    run_p50: int
    run_p90: int


class Reason(TypedDict):
    """One reason why a task does not start."""

    # BACKLOG: queue_size tasks of the class are in the library, and this one waits in the package
    kind: ReasonKind | Literal["BACKLOG"]
    variant: int  # of the request: 0 is the preferred one
    unit: ReasonUnit  # of have and need; "" = they are 0
    device: str  # "" = the machine, or the class
    class_name: str  # the class in the way, or that of task_id; "" = none, or the whole dispatcher
    task_id: int  # the task in the way; 0 = none, or one that is not known
    have: int  # what is free, or there; of FOREIGN, the use by foreign processes
    need: int  # what the task needs; of FOREIGN, the most that they may use beside it
    until: int  # when it is expected to end; it may be over.  0 = unknown
    pid: int  # of FOREIGN: the process with most memory on the device; 0 = unknown
    text: str  # all of that as one line
    # task_id as the program knows it, where it is of this pool: what submit() or run() returned or
    # the lease; or the item of outcomes() or aoutcomes().  None: of map() or arun(), or unknown
    future: Future[Any] | Lease | None
    item: Any


class ClassChange(NamedTuple):
    """A change of a class, for on_class."""

    name: str
    change: ChangeName
    text: str  # why, where there is a reason


class Needs(TypedDict, total=False):
    """A way to run, of a class or a task: each key as the argument of Pool.add()."""

    devices: int
    memory: int | str
    share: float
    cpus: int
    host_memory: int | str
    compute: str | float
    on: str | list[str]
    not_on: str | list[str]


class Counter(NamedTuple):
    """The description of one counter of Stats."""

    name: str
    unit: str
    kind: str  # "counter": only rises; "gauge": rises and falls
    help: str


def counters() -> list[Counter]:
    """The counters of Stats, in the order of the library's table."""
    from gpudispatch import _core

    return [Counter(*row) for row in _core.counters()]
