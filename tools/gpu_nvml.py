#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the replies of NVML and /proc, without the library: for tools/gpu.sh.

    python3 tools/gpu_nvml.py answers   each call that the library uses: its code and its output
    python3 tools/gpu_nvml.py holders   the processes that hold a file of the driver open
    python3 tools/gpu_nvml.py listen    one line for each event of a GPU, until it is killed
"""

import ctypes
import os
import struct
import sys
import time

SUCCESS, TIMEOUT = 0, 10
KINDS = {0x8: "XID", 0x4000: "unavailable", 0x8000: "recovery action"}  # of events
EVENTS = 0x8 | 0x4000 | 0x8000
FIELDS = [143, 144, 145, 186, 230]  # as in lib/device/nvml.h

# The calls on one GPU.  Each argument is a number or an output.  An output is a format of struct,
# or a pair of a format and its values before the call.
VERSION_1, VERSION_2 = 1 << 24, 2 << 24
CALLS = [
    ("nvmlDeviceGetUUID", "96s", 96),
    ("nvmlDeviceGetName", "96s", 96),
    ("nvmlDeviceGetPciInfo_v3", "16sIIIII32s"),
    ("nvmlDeviceGetMinorNumber", "I"),
    ("nvmlDeviceGetCudaComputeCapability", "i", "i"),
    ("nvmlDeviceGetComputeMode", "I"),
    ("nvmlDeviceGetPersistenceMode", "I"),
    ("nvmlDeviceGetNumaNodeId", "I"),
    ("nvmlDeviceGetMigMode", "I", "I"),
    ("nvmlDeviceGetMaxMigDeviceCount", "I"),
    ("nvmlDeviceGetAttributes_v2", "IIIIIIIIQ"),
    ("nvmlDeviceGetMemoryInfo", "QQQ"),
    ("nvmlDeviceGetMemoryInfo_v2", ("I4xQQQQ", [40 | VERSION_2, 0, 0, 0, 0])),
    ("nvmlDeviceGetUtilizationRates", "II"),
    ("nvmlDeviceGetTemperature", 0, "I"),
    ("nvmlDeviceGetTemperatureV", ("Iii", [12 | VERSION_1, 0, 0])),
    ("nvmlDeviceGetPowerUsage", "I"),
    ("nvmlDeviceGetEnforcedPowerLimit", "I"),
    ("nvmlDeviceGetClockInfo", 1, "I"),
    ("nvmlDeviceGetCurrentClocksEventReasons", "Q"),
    ("nvmlDeviceGetCurrentClocksThrottleReasons", "Q"),
    ("nvmlDeviceGetTotalEccErrors", 0, 0, "Q"),
    ("nvmlDeviceGetTotalEccErrors", 1, 0, "Q"),
    ("nvmlDeviceGetRemappedRows", "I", "I", "I", "I"),
    ("nvmlDeviceGetRetiredPagesPendingStatus", "I"),
    ("nvmlDeviceGetFieldValues", len(FIELDS),
     ("IIqqiiQ" * len(FIELDS), [v for f in FIELDS for v in (f, 0, 0, 0, 0, 3, 0)])),
    ("nvmlDeviceGetSupportedEventTypes", "Q"),
    ("nvmlDeviceGetComputeRunningProcesses_v3", ("I", [16]), "I4xQII" * 16),
    ("nvmlDeviceGetComputeRunningProcesses_v2", ("I", [16]), "I4xQII" * 16),
    ("nvmlDeviceGetMPSComputeRunningProcesses_v3", ("I", [16]), "I4xQII" * 16),
]


def ask(nvml, symbol, *arguments):
    """Calls a function and prints its code and its outputs.  Of more than 8 outputs it drops the
    zeros at the end."""
    call = getattr(nvml, symbol, None)
    if call is None:
        print(f"{symbol}: does not exist")
        return None
    passed, written = [], []
    for a in arguments:
        if isinstance(a, (str, tuple)):
            form, before = (a, None) if isinstance(a, str) else a
            size = struct.calcsize(form)
            start = struct.pack(form, *before) if before else bytes(size)
            a = ctypes.create_string_buffer(start, size + 64)  # room, should it write more
            written.append((form, a))
        passed.append(a)
    code = call(*passed)
    values = [v for form, buffer in written for v in struct.unpack_from(form, buffer)]
    texts = [v.split(b"\0")[0].decode(errors="replace") if isinstance(v, bytes) else str(v)
             for v in values]
    while len(texts) > 8 and texts[-1] == "0":
        texts.pop()
    print(f"{symbol}: {code}: {' '.join(texts)}", flush=True)
    return values if code == SUCCESS else None


def gpus(nvml):
    """Loads nothing, prints how many there are.  Yields number and handle."""
    count = ask(nvml, "nvmlDeviceGetCount_v2", "I")
    for n in range(count[0] if count else 0):
        print(f"-- GPU {n}")
        handle = ask(nvml, "nvmlDeviceGetHandleByIndex_v2", n, "Q")
        if handle:
            yield n, ctypes.c_void_p(handle[0])


def start():
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    return nvml if ask(nvml, "nvmlInit_v2") is not None else sys.exit("NVML does not start")


def answers():
    nvml = start()
    ask(nvml, "nvmlSystemGetDriverVersion", "80s", 80)
    ask(nvml, "nvmlSystemGetNVMLVersion", "80s", 80)
    ask(nvml, "nvmlSystemGetCudaDriverVersion_v2", "i")
    for _, gpu in gpus(nvml):
        for symbol, *arguments in CALLS:
            ask(nvml, symbol, gpu, *arguments)


def holders():
    for pid in sorted(int(p) for p in os.listdir("/proc") if p.isdigit()):
        try:
            links = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
            words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
            command = b" ".join(words).decode(errors="replace")
            owner = os.stat(f"/proc/{pid}").st_uid
        except OSError:
            continue
        files = sorted(link for link in links if link.startswith("/dev/nvidia"))
        if files:
            print(f"pid {pid} uid {owner} {command.strip()[:120]}: {' '.join(files)}")
    print("these are all that /proc shows")


def listen():
    nvml, parent = start(), os.getppid()
    events = ask(nvml, "nvmlEventSetCreate", "Q")
    name_of = {}
    for n, gpu in gpus(nvml) if events else []:
        name_of[gpu.value] = n
        types = ask(nvml, "nvmlDeviceGetSupportedEventTypes", gpu, "Q")
        wanted = ctypes.c_uint64(EVENTS & (types[0] if types else 0))
        ask(nvml, "nvmlDeviceRegisterEvents", gpu, wanted, ctypes.c_void_p(events[0]))
    wait = getattr(nvml, "nvmlEventSetWait_v2", None) or nvml.nvmlEventSetWait
    while events and os.getppid() == parent:
        data = ctypes.create_string_buffer(64)
        code = wait(ctypes.c_void_p(events[0]), data, 500)
        now = time.strftime("%H:%M:%S")
        if code == SUCCESS:
            gpu, kind, number, gi, ci = struct.unpack_from("QQQII", data)
            what = KINDS.get(kind, f"event {kind:#x}")
            print(f"{now} GPU {name_of.get(gpu, '?')}: {what} {number}"
                  f" (instance {gi:#x}, {ci:#x})", flush=True)
        elif code != TIMEOUT:
            print(f"{now} nvmlEventSetWait: {code}", flush=True)
            time.sleep(1)


if __name__ == "__main__":
    WORDS = {"answers": answers, "holders": holders, "listen": listen}
    if len(sys.argv) != 2 or sys.argv[1] not in WORDS:
        sys.exit(__doc__)
    WORDS[sys.argv[1]]()
