# SPDX-License-Identifier: MIT
"""The dispatcher in an asyncio program, with ctypes alone: add_reader on the fd, a future per
request.

    asyncio_loop.py LIBRARY DEFINITIONS
"""
import asyncio
import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_uint32, c_uint64, c_void_p

REQUESTS = 1000
EEND = -8


class Options(ctypes.Structure):  # a short one: the rest is zero
    _fields_ = [("struct_size", c_uint32), ("drive", c_uint32), ("definition", c_char_p),
                ("devices", c_char_p)]


class Task(ctypes.Structure):  # a short one too
    _fields_ = [("struct_size", c_uint32), ("priority", c_int32), ("data", c_char_p),
                ("size", c_uint64), ("label", c_char_p), ("tag", c_uint64)]


class Event(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("kind", c_uint32), ("task_id", c_uint64),
                ("tag", c_uint64), ("label", c_char_p), ("outcome", c_uint32), ("phase", c_uint32),
                ("code", c_int32), ("attempt", c_uint32), ("slot", c_uint32),
                ("incarnation", c_uint32), ("slot_state", c_uint32), ("level", c_uint32),
                ("exit_kind", c_uint32), ("exit_status", c_int32), ("progress", c_double),
                ("text", c_char_p), ("device", c_char_p), ("result", c_void_p),
                ("result_size", c_uint64), ("output", c_void_p), ("output_size", c_uint64),
                ("queued_at", c_uint64), ("sent_at", c_uint64), ("started_at", c_uint64),
                ("ended_at", c_uint64), ("kept", c_void_p)]


def check(code):
    if code < 0:
        raise RuntimeError(gpud.gpud_error_name(code).decode())
    return code


class Dispatcher:
    def __init__(self, drive):
        self.handle = c_void_p()
        self.futures = {}
        self.loop = asyncio.get_running_loop()
        self.ended = self.loop.create_future()
        options = Options(ctypes.sizeof(Options), drive, b"echo", b"cpu:2")
        check(gpud.gpud_dispatcher_create(byref(self.handle), byref(options), None))
        self.events = (Event * 64)()
        self.events[0].struct_size = ctypes.sizeof(Event)
        self.fd = check(gpud.gpud_dispatcher_fd(self.handle))
        self.loop.add_reader(self.fd, self.collect)

    async def request(self, data):
        task = Task(ctypes.sizeof(Task), 0, data, len(data), None, 0)
        number = c_uint64()
        check(gpud.gpud_dispatcher_submit(self.handle, byref(task), c_uint64(0), byref(number),
                                          None))
        future = self.futures[number.value] = self.loop.create_future()
        return await future

    def collect(self):
        while True:
            n = gpud.gpud_dispatcher_poll(self.handle, self.events, 64, c_uint64(0))
            if n == EEND:
                self.loop.remove_reader(self.fd)
                self.ended.set_result(True)
            elif n < 0:
                check(n)
            if n <= 0:
                return
            for event in self.events[:n]:
                if event.kind == 1:
                    result = ctypes.string_at(event.result, event.result_size)
                    self.futures.pop(event.task_id).set_result(result)

    async def close(self):
        check(gpud.gpud_dispatcher_close(self.handle, 0, c_uint64(0)))
        await self.ended
        uncollected = c_uint64(99)
        check(gpud.gpud_dispatcher_destroy(byref(self.handle), byref(uncollected)))
        assert uncollected.value == 0 and not self.futures


async def ask(dispatcher, first):
    for i in range(first, REQUESTS, 20):
        data = b"request %d" % i
        assert await dispatcher.request(data) == data


async def serve(drive):
    dispatcher = Dispatcher(drive)
    await asyncio.gather(*(ask(dispatcher, i) for i in range(20)))
    await dispatcher.close()


gpud = ctypes.CDLL(sys.argv[1])
gpud.gpud_error_name.restype = c_char_p
definitions = ctypes.CDLL(sys.argv[2])
check(gpud.gpud_init(definitions.t_definitions, 1, None))
for way in (0, 1):
    asyncio.run(asyncio.wait_for(serve(way), 60))
check(gpud.gpud_fini())
