# SPDX-License-Identifier: MIT
"""What test_worker.py runs in workers: by reference, so that a worker imports this module."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import executor_tasks

import gpudispatch
from gpudispatch import worker

libc = ctypes.CDLL(None)
seen: list[Any] = []


# --- values ---


def same(*args: Any, **kwargs: Any) -> Any:
    if kwargs:
        return args, kwargs
    return args[0] if len(args) == 1 else args


def pid() -> int:
    return os.getpid()


def forget_seen() -> None:
    seen.clear()


def read_seen() -> list[Any]:
    found = list(seen)
    seen.clear()
    return found


def whoami() -> tuple[int, int, int]:
    me = gpudispatch.current_worker()
    assert me is not None
    return me.slot, me.incarnation, me.seed


# --- limits ---


def spin() -> None:
    while True:
        pass


def usleep_loop() -> None:
    """Native calls that end with EINTR, in a loop of Python."""
    while True:
        libc.usleep(100_000)


def deadlock() -> None:
    """A native call that no signal ends."""
    mutex = (ctypes.c_char * 64)()
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_lock(mutex)


def wait_for_a_lock() -> None:
    """A call that continues after a signal on a GPU."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def device_facts() -> tuple[str, bool]:
    """The device, and whether calls continue after SIGALRM."""
    me = gpudispatch.current_worker()
    assert me is not None
    action = ctypes.create_string_buffer(256)
    libc.sigaction(signal.SIGALRM, None, action)
    flags = int.from_bytes(action.raw[136:140], "little")
    return me.device, bool(flags & 0x10000000)


def hang_in_a_destructor() -> None:
    """The socket's close waits for data that nobody reads, while the frame of this call goes."""
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    seen.append((server, server.accept()[0]))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
    client.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            client.send(bytes(65536))


def largest() -> int:
    """Native code of Python's own that looks at no signal."""
    return max(range(10**12))


def swallow_once(forever: bool) -> str:
    raised = 0
    until = time.monotonic() + 0.4
    while forever or time.monotonic() < until:
        try:
            time.sleep(0.01)
        except:  # noqa: E722
            raised += 1
            seen.append(raised)
    return f"raised {raised}"


def slow_finally() -> None:
    try:
        spin()
    finally:
        time.sleep(0.1)
        seen.append("cleaned up")


def spin_in_finally() -> None:
    try:
        raise ValueError
    finally:
        spin()


class SlowToPack:
    """A result whose packing takes past the limit."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __reduce__(self) -> Any:
        until = time.monotonic() + self.seconds
        try:
            while time.monotonic() < until:
                pass
        except BaseException as error:
            seen.append(repr(error))
            raise
        seen.append("packed")
        return int, (5,)


class SlowToUnpack:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __reduce__(self) -> Any:
        return wait_until, (self.seconds,)


def wait_until(seconds: float) -> str:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
    seen.append("unpacked")
    return "unpacked"


def own_alarm() -> str:
    """User code may have its own alarms."""
    rang: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rang.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    while not rang:
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    return f"rang {len(rang)}"


def leave_handler() -> None:
    signal.signal(signal.SIGALRM, lambda number, frame: seen.append("theirs"))


def ring_own() -> list[Any]:
    """With a handler left by an earlier task."""
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    while not seen:
        pass
    return read_seen()


def near_limit(seconds: float) -> float:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(20))
    return seconds


async def _sleep(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "slept"


def run_asyncio(seconds: float) -> str:
    return asyncio.run(_sleep(seconds))


def interrupt_me() -> str:
    os.kill(os.getpid(), signal.SIGINT)
    return "alive"


# --- stops ---


def until_stopped() -> None:
    task = gpudispatch.current_task()
    assert task is not None
    try:
        task.progress(0.5, "waiting")  # the stop may follow before the next line
        while True:
            time.sleep(0.005)
    except worker.Stopped as error:
        seen.append(f"stopped: {error}")
        seen.append(task.cancelled())
        raise


def until_cancelled() -> str:
    task = gpudispatch.current_task()
    assert task is not None
    task.progress(0.5, "waiting")
    while not task.cancelled():
        time.sleep(0.005)
    return "cancelled"


def ignore_stops() -> str:
    task = gpudispatch.current_task()
    assert task is not None
    task.progress(0.5, "waiting")
    for _ in range(2):
        try:
            while True:
                time.sleep(0.005)
        except worker.Stopped:
            break
    return "went on"


# --- what a task knows ---


def facts() -> dict[str, Any]:
    task, me = gpudispatch.current_task(), gpudispatch.current_worker()
    assert task is not None
    assert me is not None
    me.log("a line")
    return {
        "id": task.id,
        "label": task.label,
        "attempt": task.attempt,
        "left": None if task.deadline is None else task.deadline - time.monotonic(),
        "device": task.device,
        "cancelled": task.cancelled(),
        "devices": me.devices,
        "slot": me.slot,
        "incarnation": me.incarnation,
    }


def keep_task() -> None:
    seen.append(gpudispatch.current_task())


def use_kept_task() -> str:
    task = seen.pop()
    try:
        task.progress(0.5)
    except RuntimeError as error:
        return str(error)
    return "no error"


def from_thread() -> int:
    ids: list[int] = []

    def look() -> None:
        task = gpudispatch.current_task()
        assert task is not None
        task.progress(0.25)
        ids.append(task.id)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    task = gpudispatch.current_task()
    assert task is not None
    return ids[0] - task.id


# --- errors ---


class TwoArguments(Exception):
    """Pickles, but cannot be rebuilt: its __init__ wants more than args."""

    def __init__(self, path: str, line: int) -> None:
        super().__init__(f"{path}:{line}")


class Locked(TwoArguments):
    """Cannot be pickled."""

    def __init__(self, path: str, line: int) -> None:
        super().__init__(path, line)
        self.lock = threading.Lock()


class BadText(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class BadDump:
    def __reduce__(self) -> Any:
        raise ZeroDivisionError("in reduce")


RESULTS: dict[str, Callable[[], Any]] = {
    "lock": threading.Lock,
    "generator": lambda: (i for i in range(3)),
    "bad dump": BadDump,
}
RAISED: dict[str, BaseException] = {
    "plain": ValueError("plain"),
    "group": ExceptionGroup("several", [ValueError(1), KeyError("k")]),
    "two": TwoArguments("file", 3),
    "locked": Locked("file", 3),
    "exit": SystemExit(3),
    "bad text": BadText(),
    "huge": ValueError("x" * 10_000_000),
    "nul": ValueError("a\0b\udc80c" * 100),
}


def fail(kind: str) -> Any:
    if kind in RESULTS:
        return RESULTS[kind]()
    error = RAISED[kind]
    error.__notes__ = ["a note"]
    raise error


class BadLoad:
    """Pickles, and raises where it is unpickled."""

    def __reduce__(self) -> Any:
        return cannot_load, ()


def cannot_load() -> None:
    raise LookupError("cannot load")


def odd_one(item: Any) -> Any:
    """A number, doubled; a word is what goes wrong."""
    seen.append(item)
    if item == "raise":
        raise KeyError(item)
    if item == "lock":
        return threading.Lock()
    return BadLoad() if item == "load" else item * 2


class OddOne:
    process = staticmethod(odd_one)


class OddOnes:
    """With max_batch."""

    def process(self, items: list[Any]) -> list[Any]:
        return [odd_one(item) for item in items]


def last_words(lines: int) -> None:
    for number in range(lines):
        print("word", number)
    os.kill(os.getpid(), signal.SIGKILL)


def leave(status: int) -> None:
    print("leaving")
    os._exit(status)


def crash_in_native_code() -> None:
    ctypes.string_at(0)


# --- threads, ends ---


def start_ticker(path: str) -> None:
    def tick() -> None:
        with open(path, "w") as fifo:
            while True:
                try:
                    fifo.write("tick\n")
                    fifo.flush()
                except BrokenPipeError:
                    return
                time.sleep(0.001)

    threading.Thread(target=tick, daemon=True).start()


def write_line(path: str, line: str) -> None:
    with open(path, "a") as file:
        file.write(line + "\n")


def arrange_end(path: str) -> None:
    atexit.register(write_line, path, "atexit")
    import multiprocessing.util

    multiprocessing.util.Finalize(None, write_line, (path, "multiprocessing"), exitpriority=1)
    stop = threading.Event()
    threading._register_atexit(stop.set)  # type: ignore[attr-defined]

    def wait() -> None:
        stop.wait()
        write_line(path, "thread")

    threading.Thread(target=wait).start()
    print("no newline at the end", end="")


class Tidy:
    def setup(self, gpu_id: str, seed: int, path: str) -> None:
        self.path = path
        arrange_end(path)

    def process(self, item: int) -> int:
        return item

    def cleanup(self) -> None:
        write_line(self.path, "cleanup")


def hang_at_the_end(how: str) -> None:
    never = threading.Event()
    if how == "atexit":
        atexit.register(never.wait)
    else:
        threading.Thread(target=never.wait).start()


class BadCleanup:
    def process(self, item: int) -> int:
        return item

    def cleanup(self) -> None:
        raise ValueError("cleanup broke")


# --- classes ---


class Echo:
    def setup(self, gpu_id: str, seed: int, **setup: Any) -> None:
        self.facts = (gpu_id, seed, setup)

    def process(self, item: Any) -> Any:
        if isinstance(item, str) and item == "facts":
            return self.facts
        if isinstance(item, str) and item == "raise":
            raise KeyError("item")
        return item


class SetupArray:
    """Tells where the array of its setup lies, and waits until another worker has told it, too."""

    def setup(self, gpu_id: str, seed: int, table: Any, gate: bytes) -> None:
        self.table = table
        self.gate = gate

    def process(self, item: Any) -> bool:
        address = self.table.__array_interface__["data"][0]
        with open("/proc/self/maps") as maps:
            for line in maps:
                place, mode, offset, device, inode, *_ = line.split()
                begin, end = (int(word, 16) for word in place.split("-"))
                if begin <= address < end:
                    at = int(offset, 16) + address - begin
                    executor_tasks.through(self.gate, f"{mode} {device} {inode} {at}")
        return bool(self.table.flags.writeable)


class Batch:
    """process(items) -> list, with what goes wrong there."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def process(self, items: list[Any]) -> Any:
        self.calls.append(len(items))
        if "calls" in items:
            calls, self.calls = self.calls, []
            return [calls for _ in items]
        if "short" in items:
            return items[1:]
        if "none" in items:
            return None
        if "raise" in items:
            raise KeyError("batch")
        if "lock" in items:
            return [threading.Lock() if item == "lock" else item for item in items]
        if any(isinstance(item, int) and item < 0 for item in items):
            raise MemoryError(f"{len(items)} items")
        if sum(item for item in items if isinstance(item, int)) > 100:
            raise OutOfMemoryError("CUDA out of memory")
        items[:] = [item * 2 for item in items]
        return items


class OutOfMemoryError(RuntimeError):
    """As torch has one."""


class Cached:
    """With max_batch: has memory once the caches of its framework, a stand-in, are empty."""

    def __init__(self) -> None:
        self.cached = 1
        pool = SimpleNamespace(free_all_blocks=self.free, total_bytes=lambda: self.cached << 20)
        cupy: Any = SimpleNamespace(
            get_default_memory_pool=lambda: pool, get_default_pinned_memory_pool=lambda: pool
        )
        sys.modules["cupy"] = cupy

    def free(self) -> None:
        self.cached = 0

    def process(self, items: list[Any]) -> list[int]:
        if self.cached:
            raise MemoryError("no memory")
        return [len(items) for _ in items]


class Sized:
    """With max_batch: results of as many bytes, each with the number of items in its batch."""

    def process(self, items: list[int]) -> list[tuple[int, bytes]]:
        return [(len(items), bytes(item)) for item in items]


class BadSetup:
    def setup(self, gpu_id: str, seed: int, how: str) -> None:
        print("about to fail")
        if how == "exit":
            sys.exit(4)
        raise ValueError("no model")

    def process(self, item: Any) -> Any:
        return item


class Point:
    def __init__(self, x: int) -> None:
        self.x = x


def bad_initializer() -> None:
    raise ValueError("initializer broke")


# --- processes that user code starts ---


def visible() -> list[int]:
    """As vLLM reads the devices: int() of each."""
    return [int(entry) for entry in os.environ["CUDA_VISIBLE_DEVICES"].split(",")]


def alarm_is_default() -> bool:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    mine = ctypes.create_string_buffer(256)
    libc.sigaction(signal.SIGALRM, None, mine)
    handler = int.from_bytes(mine.raw[:8], "little")
    return handler == 0 and signal.SIGALRM not in blocked


def _answer(queue: Any) -> None:
    queue.put((visible(), alarm_is_default(), gpudispatch.current_task() is None))


def child_devices(how: str) -> Any:
    if how == "subprocess":
        program = (
            "import worker_tasks as w, os;"
            "print((w.visible(), w.alarm_is_default(), w.gpudispatch.current_task() is None))"
        )
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True
        )
        return done.stdout.strip() or done.stderr
    import multiprocessing

    context = multiprocessing.get_context(how)
    queue = context.SimpleQueue()
    process = context.Process(target=_answer, args=(queue,))
    process.start()
    found = queue.get()
    process.join()
    return f"{found}" if process.exitcode == 0 else f"exit {process.exitcode}"


def pool_in_child(how: str) -> Any:
    """A process pool of the standard library in a worker, as data loaders have one."""
    import concurrent.futures
    import multiprocessing

    context = multiprocessing.get_context(how)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        return list(pool.map(abs, range(-5, 0)))


def bare_fork(how: str) -> Any:
    """A child that comes back from the task is no second worker."""
    task = gpudispatch.current_task()
    assert task is not None
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if how == "exit":
        sys.exit(7)
    if how == "raise":
        raise ValueError("in the child")
    if how == "report":
        task.progress(0.5)
    return "from the child"


def make_executor() -> str:
    try:
        gpudispatch.Executor(1)
    except RuntimeError as error:
        return str(error)
    return "no error"


def make_executor_in_fork() -> str:
    import multiprocessing

    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=lambda: queue.put(make_executor()))
    process.start()
    text = queue.get()
    process.join()
    return str(text)


def executor_in_program() -> str:
    program = (
        "import gpudispatch, math\n"
        "if __name__ == '__main__':\n"
        "    with gpudispatch.Executor(1) as ex: print(ex.submit(math.sqrt, 81).result())\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    return done.stdout.strip() or done.stderr


def executor_on_my_devices(gate: bytes) -> tuple[list[str], str]:
    """The devices of this worker, and those that a program of its own has there."""
    executor_tasks.through(gate)
    me = gpudispatch.current_worker()
    assert me is not None
    program = (
        "import gpudispatch, worker_tasks as tasks\n"
        "if __name__ == '__main__':\n"
        "    with gpudispatch.Executor(devices='all') as ex:\n"
        "        print([row['uuid'] for row in ex.devices()], ex.submit(tasks.same, 9).result())\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    return list(me.uuids), done.stdout.strip() or done.stderr


def thread_variables() -> list[str | None]:
    names = ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "RAYON")
    return [os.environ.get(name + "_NUM_THREADS") for name in names]


def _deep(n: int) -> bytes:
    held = bytes(600 + n)
    return held + _deep(n - 1) if n else held


def _steps(n: int) -> Any:
    for number in range(n):
        yield (lambda x=number: bytes(1000 + x))()


def busy(seconds: float) -> float:
    """Frames of all kinds that come and go, with memory of the C library."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        len(_deep(20))
        sum(len(part) for part in _steps(20))
        with contextlib.suppress(ValueError):
            int("x" * 600)
        sorted(range(30), key=lambda number: -number)
        class_ = type("Made", (), {"method": lambda self: bytes(700)})
        class_().method()
    return seconds
