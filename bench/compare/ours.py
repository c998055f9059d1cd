#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The library called from Python with ctypes: the jobs of compare.py, host and workers both in
Python.

The structures below are the beginnings of the public ones; struct_size is the number of bytes that
the library may use.
"""
import ctypes as C
import os
import signal
import time

U32, U64, I32, PTR, TEXT = C.c_uint32, C.c_uint64, C.c_int32, C.c_void_p, C.c_char_p
NEVER = (1 << 64) - 1
EVENTS = 256
EFULL = -6
CALLER = 1  # drive
OUTCOME, SUCCESS = 1, 1

SETUP = C.CFUNCTYPE(C.c_int, PTR, C.POINTER(PTR))
PROCESS = C.CFUNCTYPE(C.c_int, PTR, PTR)


class Definition(C.Structure):
    _fields_ = [("struct_size", U32), ("reserved", U32), ("name", TEXT), ("setup", SETUP),
                ("process", PROCESS), ("cleanup", PTR), ("process_batch", PTR)]


class Options(C.Structure):
    _fields_ = [("struct_size", U32), ("drive", U32), ("definition", TEXT), ("devices", TEXT),
                ("queue_size", U32), ("sent_ahead", U32), ("payload_budget", U64),
                ("setup_data", PTR), ("setup_size", U64), ("seed", U64), ("setup_limit", U64),
                ("task_limit", U64), ("grace", U64), ("cleanup_limit", U64), ("close_limit", U64),
                ("kill_limit", U64), ("backoff", U64), ("backoff_cap", U64),
                ("failures_in_a_row", U32), ("max_attempts", U32), ("log_level", U32),
                ("slot_events", U32)]


class Task(C.Structure):
    _fields_ = [("struct_size", U32), ("priority", I32), ("data", PTR), ("size", U64),
                ("label", TEXT), ("tag", U64), ("limit", U64), ("max_attempts", U32),
                ("cost", U32)]


class Event(C.Structure):
    _fields_ = [("struct_size", U32), ("kind", U32), ("task_id", U64), ("tag", U64),
                ("label", TEXT), ("outcome", U32), ("phase", U32), ("code", I32), ("attempt", U32),
                ("slot", U32), ("incarnation", U32), ("slot_state", U32), ("level", U32),
                ("exit_kind", U32), ("exit_status", I32), ("progress", C.c_double),
                ("text", TEXT), ("device", TEXT), ("result", PTR), ("result_size", U64)]


class Failure(Exception):
    """The library answered with a code."""


class Ours:
    """A dispatcher whose workers run `work` below."""

    def __init__(self, path, workers, worker_cpu):
        self.lib = lib = C.CDLL(path)
        for name in ("task_data",):
            getattr(lib, "gpud_" + name).restype = PTR
        lib.gpud_error_name.restype = TEXT
        lib.gpud_task_size.restype = C.c_size_t
        for name, types in (("task_data", [PTR]), ("task_size", [PTR]),
                            ("task_result_set", [PTR, PTR, C.c_size_t]),
                            ("dispatcher_submit", [PTR, C.POINTER(Task), U64, PTR]),
                            ("dispatcher_poll", [PTR, C.POINTER(Event), C.c_size_t, U64]),
                            ("dispatcher_buffer_alloc", [PTR, U64, C.POINTER(PTR)]),
                            ("dispatcher_destroy", [C.POINTER(PTR), PTR])):
            getattr(lib, "gpud_" + name).argtypes = types
        self.worker_cpu = worker_cpu
        self.setup, self.process = SETUP(self.begin), PROCESS(self.work)
        self.definition = Definition(C.sizeof(Definition), 0, b"jobs", self.setup, self.process,
                                     None, None)
        self.check(lib.gpud_init(C.byref(self.definition), C.c_size_t(1), None), "gpud_init")
        self.workers = workers
        self.dispatcher = PTR()
        self.events = (Event * EVENTS)()
        self.ended = self.failed = 0

    def check(self, code, what):
        if code < 0:
            raise Failure("%s: %s" % (what, self.lib.gpud_error_name(code).decode()))

    # ---- in the worker ----

    def begin(self, _worker, _state):
        if self.worker_cpu >= 0:
            os.sched_setaffinity(0, {self.worker_cpu})
        return 0

    def work(self, task, _state):
        data = self.lib.gpud_task_data(task)
        what = C.c_ubyte.from_address(data).value
        if what == ord("h"):
            while True:
                time.sleep(1000)
        if what == ord("k"):
            os.kill(os.getpid(), signal.SIGKILL)
        size = self.lib.gpud_task_size(task) if what == ord("e") else 1
        return self.lib.gpud_task_result_set(task, data, size)

    # ---- in the host ----

    def create(self):
        options = Options(struct_size=C.sizeof(Options), drive=CALLER,
                          devices=b"cpu:%d" % self.workers, queue_size=4096,
                          payload_budget=256 << 20, task_limit=60 * 10**9, grace=50 * 10**6,
                          log_level=1)
        code = self.lib.gpud_dispatcher_create(C.byref(self.dispatcher), C.byref(options), None)
        self.check(code, "create")

    def task(self, data, size, limit=0):
        return Task(struct_size=C.sizeof(Task), data=data, size=size, limit=limit)

    def submit(self, task):
        code = self.lib.gpud_dispatcher_submit(self.dispatcher, task, 0, None, None)
        if code != EFULL:
            self.check(code, "submit")
        return code == 0

    def receive(self):
        self.events[0].struct_size = C.sizeof(Event)
        n = self.lib.gpud_dispatcher_poll(self.dispatcher, self.events, EVENTS, NEVER)
        self.check(n, "poll")
        for i in range(n):
            event = self.events[i]
            if event.kind == OUTCOME:
                self.ended += 1
                self.failed += event.outcome != SUCCESS

    def trip(self, task):
        before = self.ended
        while not self.submit(task):
            self.receive()
        while self.ended == before:
            self.receive()

    def small(self, n):
        word = C.create_string_buffer(b"n", 1)
        task = self.task(C.addressof(word), 1)
        goal, sent = self.ended + n, 0
        while self.ended < goal:
            while sent < n and self.submit(task):
                sent += 1
            self.receive()

    def noop(self):
        word = C.create_string_buffer(b"n", 1)
        self.trip(self.task(C.addressof(word), 1))

    def echo(self, payload):
        word = C.create_string_buffer(b"e" + payload[1:], len(payload))
        self.trip(self.task(C.addressof(word), len(payload)))
        return C.string_at(self.events[0].result, self.events[0].result_size)

    def give(self, payload):
        address = PTR()
        code = self.lib.gpud_dispatcher_buffer_alloc(self.dispatcher, len(payload),
                                                     C.byref(address))
        self.check(code, "buffer_alloc")
        C.memmove(address, payload, len(payload))
        self.trip(self.task(address, len(payload)))

    def crash(self):
        word = C.create_string_buffer(b"k", 1)
        self.trip(self.task(C.addressof(word), 1))

    def hang(self, limit):
        word = C.create_string_buffer(b"h", 1)
        self.trip(self.task(C.addressof(word), 1, int(limit * 1e9)))

    def close(self):
        self.lib.gpud_dispatcher_destroy(C.byref(self.dispatcher), None)
        self.lib.gpud_fini()
