#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""asyncio_host.py - a Python host with an event loop: a coroutine awaits the outcome of its task.

python3 asyncio_host.py "6 * 7" "1 / 0" "sum(iter(int, 1))" "__import__('os').abort()"

It prints one line per expression, in their order:

    6 * 7: 42
    1 / 0: ERROR ZeroDivisionError('division by zero')
    sum(iter(int, 1)): TIMEOUT exceeded its time limit of 1.000 s (task_limit) ...
    __import__('os').abort(): CRASHED killed by signal 6 ...

The loop watches one descriptor, that of the dispatcher.  The workers run worker.py.  Records and
argument types are those of ctypes_batch.py.
"""
import asyncio
import ctypes
import pathlib
import sys
from ctypes import byref, sizeof

from ctypes_batch import (EEND, FINISH_ALL, NEVER, OUTCOME, SUCCESS, Error, Event, Options, Task,
                          check, load)

WORKER = str(pathlib.Path(__file__).with_name("worker.py"))
MILLISECOND = 1000000  # in nanoseconds


class Dispatcher:
    """A dispatcher that only the thread of one loop uses."""

    def __init__(self, lib, workers):
        self.lib, self.waiting, self.last = lib, {}, 0
        self.handle, error = ctypes.c_void_p(), Error(struct_size=sizeof(Error))
        argv = (ctypes.c_char_p * 3)(sys.executable.encode(), WORKER.encode(), None)
        options = Options(struct_size=sizeof(Options), devices=b"cpu:%d" % workers,
                          task_limit=1000 * MILLISECOND, grace=100 * MILLISECOND,
                          argv=ctypes.cast(argv, ctypes.c_void_p))
        if lib.gpud_dispatcher_create(byref(self.handle), byref(options), byref(error)):
            sys.exit(f"asyncio_host: {error.text.decode()}")
        self.loop = asyncio.get_running_loop()
        self.ended = self.loop.create_future()
        self.loop.add_reader(lib.gpud_dispatcher_fd(self.handle), self.read)

    def read(self):
        """Polls until no event is left, since the descriptor stays readable until then."""
        e = Event(struct_size=sizeof(Event))
        while (r := self.lib.gpud_dispatcher_poll(self.handle, byref(e), 1, 0)) > 0:
            if e.kind == OUTCOME:
                name = self.lib.gpud_outcome_name(e.outcome).decode()
                result = ctypes.string_at(e.result, e.result_size)
                text = e.text.decode(errors="replace")  # the library may cut a text anywhere
                future = self.waiting.pop(e.tag)
                if not future.done():  # its coroutine may have been cancelled
                    future.set_result(result.decode() if e.outcome == SUCCESS else f"{name} {text}")
        if r == EEND:
            self.loop.remove_reader(self.lib.gpud_dispatcher_fd(self.handle))
            self.ended.set_result(None)

    async def evaluate(self, text):
        data, self.last = text.encode(), self.last + 1
        task = Task(struct_size=sizeof(Task), data=data, size=len(data), tag=self.last)
        check(self.lib, self.lib.gpud_dispatcher_submit(self.handle, byref(task), 0, None, None))
        future = self.waiting[self.last] = self.loop.create_future()
        return await future

    async def close(self):
        check(self.lib, self.lib.gpud_dispatcher_close(self.handle, FINISH_ALL, NEVER))
        await self.ended
        self.lib.gpud_dispatcher_destroy(byref(self.handle), None)


async def main(expressions):
    d = Dispatcher(load(), workers=2)
    for text, value in zip(expressions, await asyncio.gather(*map(d.evaluate, expressions))):
        print(f"{text}: {value}")
    await d.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
