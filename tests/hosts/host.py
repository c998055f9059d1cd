#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A Python host by ctypes: plain calls and size-first structs are all it needs.

usage: host.py LIBRARY

200 tasks with results, one that kills its worker, one past its limit; then nothing is left.  The
process function is Python, too: the workers are copies of this interpreter, as of gpud_init.
"""
import ctypes
import os
import signal
import struct
import sys
import time

POINTER, U32, U64, I32 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32
PROCESS = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, POINTER)
CRASH, LATE, TASKS = 1000, 1001, 200


class Definition(ctypes.Structure):
    _fields_ = [("struct_size", U32), ("reserved", U32), ("name", ctypes.c_char_p),
                ("setup", POINTER), ("process", PROCESS), ("cleanup", POINTER),
                ("process_batch", POINTER)]


class Options(ctypes.Structure):  # as far as this host needs it
    _fields_ = [("struct_size", U32), ("drive", U32), ("definition", ctypes.c_char_p),
                ("devices", ctypes.c_char_p), ("queue_size", U32), ("sent_ahead", U32),
                ("payload_budget", U64)]


class Task(ctypes.Structure):
    _fields_ = [("struct_size", U32), ("priority", I32), ("data", ctypes.c_char_p), ("size", U64),
                ("label", ctypes.c_char_p), ("tag", U64), ("limit", U64)]


class Event(ctypes.Structure):
    _fields_ = [("struct_size", U32), ("kind", U32), ("task_id", U64), ("tag", U64),
                ("label", ctypes.c_char_p), ("outcome", U32), ("phase", U32), ("code", I32),
                ("attempt", U32), ("slot", U32), ("incarnation", U32), ("slot_state", U32),
                ("level", U32), ("exit_kind", U32), ("exit_status", I32),
                ("progress", ctypes.c_double), ("text", ctypes.c_char_p),
                ("device", ctypes.c_char_p), ("result", POINTER), ("result_size", U64)]


def load(path):
    lib = ctypes.CDLL(path)
    lib.gpud_task_data.restype = POINTER
    lib.gpud_task_data.argtypes = lib.gpud_task_expired.argtypes = [POINTER]
    lib.gpud_task_result_set.argtypes = [POINTER, ctypes.c_char_p, ctypes.c_size_t]
    lib.gpud_dispatcher_submit.argtypes = [POINTER, POINTER, U64, POINTER]
    lib.gpud_dispatcher_poll.argtypes = [POINTER, POINTER, ctypes.c_size_t, U64]
    lib.gpud_outcome_name.restype = ctypes.c_char_p
    return lib


def make_process(lib):
    def process(task, _state):
        n, = struct.unpack("Q", ctypes.string_at(lib.gpud_task_data(task), 8))
        if n == CRASH:
            os.kill(os.getpid(), signal.SIGKILL)
        while n == LATE and not lib.gpud_task_expired(task):
            time.sleep(0.01)
        return lib.gpud_task_result_set(task, struct.pack("Q", n * n), 8)
    return PROCESS(process)


def look():
    """What must be the same before and after."""
    children = f"/proc/self/task/{os.getpid()}/children"
    return {
        "signals": [signal.getsignal(n) for n in sorted(signal.valid_signals())],
        "mask": signal.pthread_sigmask(signal.SIG_BLOCK, []),
        "files": sorted(os.listdir("/proc/self/fd"))[:-1],
        "threads": os.listdir("/proc/self/task"),
        "children": open(children).read() if os.path.exists(children) else "",
        "directory": os.getcwd(),
        "environment": dict(os.environ),
        "memory": [line for line in open("/proc/self/maps") if "memfd:gpud" in line],
    }


def look_again(before):
    """A joined thread may stay visible for a moment."""
    until = time.monotonic() + 10
    while (after := look())["threads"] != before["threads"] and time.monotonic() < until:
        time.sleep(0.001)
    return after


def submit(lib, d, n):
    data = struct.pack("Q", n)
    task = Task(struct_size=ctypes.sizeof(Task), data=ctypes.c_char_p(data), size=8, tag=n,
                limit=20_000_000 if n == LATE else 0)
    assert lib.gpud_dispatcher_submit(d, ctypes.byref(task), 0, None, None) == 0


def check(e, name):
    if e.tag == CRASH:
        assert name == b"CRASHED" and e.exit_status == signal.SIGKILL, name
    elif e.tag == LATE:
        assert name == b"TIMEOUT", name
    else:
        assert name == b"SUCCESS", (e.tag, name)
        square, = struct.unpack("Q", ctypes.string_at(e.result, 8))
        assert square == e.tag ** 2, (e.tag, name)


def work(lib):
    process = make_process(lib)
    definition = Definition(struct_size=ctypes.sizeof(Definition), name=b"python", process=process)
    options = Options(struct_size=ctypes.sizeof(Options), devices=b"cpu:2")
    d, seen, events = POINTER(), set(), (Event * 16)()
    assert lib.gpud_init(ctypes.byref(definition), ctypes.c_size_t(1), None) == 0
    assert lib.gpud_dispatcher_create(ctypes.byref(d), ctypes.byref(options), None) == 0
    for n in [*range(TASKS), CRASH, LATE]:
        submit(lib, d, n)
    while len(seen) < TASKS + 2:
        events[0].struct_size = ctypes.sizeof(Event)
        count = lib.gpud_dispatcher_poll(d, events, 16, 20_000_000_000)
        assert count > 0, count
        for e in events[:count]:
            if e.kind == 1:
                assert e.tag not in seen
                seen.add(e.tag)
                check(e, lib.gpud_outcome_name(e.outcome))
    assert lib.gpud_dispatcher_destroy(ctypes.byref(d), None) == 0
    assert lib.gpud_fini() == 0


def main():
    lib = load(sys.argv[1])
    for _round in range(3):
        before = look()
        work(lib)
        after = look_again(before)
        for what in before:
            assert before[what] == after[what], (what, before[what], after[what])
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write("pass hosts_python/whole\n")
    print("a Python host works")


main()
