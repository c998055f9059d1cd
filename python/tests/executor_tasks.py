# SPDX-License-Identifier: MIT
"""What the tests of Executor, Future, map and outcomes run in workers, and the gates there."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pickle import UnpicklingError
from typing import Any, NoReturn

import gpudispatch

ARRIVES_S = 60.0  # a task has this long to come to its gate


class Gate:
    """Where tasks wait until the host lets them go on; the host sees each arrive."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind("")  # the kernel makes a name
        self.socket.listen(128)
        self.socket.settimeout(ARRIVES_S)
        self.address: bytes = self.socket.getsockname()
        self.inside: list[socket.socket] = []

    def arrival(self) -> tuple[int, Any]:
        """Waits for the next task: the worker's pid and what the task has brought."""
        inside, _ = self.socket.accept()
        self.inside.append(inside)
        with inside.makefile() as lines:
            pid, brought = lines.readline().split(maxsplit=1)
        return int(pid), brought.strip()

    def arrivals(self, n: int) -> list[Any]:
        return [self.arrival()[1] for _ in range(n)]

    def has_news(self) -> bool:
        """Whether another task has come."""
        self.socket.settimeout(0)
        try:
            inside, _ = self.socket.accept()
        except BlockingIOError:
            return False
        finally:
            self.socket.settimeout(ARRIVES_S)
        self.inside.append(inside)
        return True

    def let_one_go(self) -> None:
        self.inside.pop(0).close()

    def open(self) -> None:
        """Lets all go, also those that come later."""
        self.socket.close()
        for inside in self.inside:
            inside.close()
        self.inside.clear()

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.open()


def called_back(pool: Any, callback: Callable[[Any], object]) -> Any:
    """A task with a callback that the pool's thread calls: the task ends after it was added."""
    with Gate() as gate:
        future = pool.submit(through, gate.address)
        future.add_done_callback(callback)
    return future


class Source:
    """Counts what is pulled."""

    def __init__(self, items: Any) -> None:
        self.items = iter(items)
        self.pulled = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        item = next(self.items)
        self.pulled += 1
        return item


class FakeGpus:
    """Two GPUs that are fakes; each falls off the bus when the test wants it."""

    def __init__(self, directory: Any) -> None:
        self.signs = [directory / f"gpu {n} is lost" for n in range(2)]
        script = directory / "gpus.txt"
        script.write_text(
            "".join(f'when "{sign}" gpu {n} lost\n' for n, sign in enumerate(self.signs))
        )
        self.devices = f"fake:2,script={script}"

    def lose(self, device: str) -> None:
        self.signs[int(device.removeprefix("fake:"))].touch()


def through(gate: bytes, value: Any = "-") -> Any:
    """Waits at a gate, and returns the value."""
    me = socket.socket(socket.AF_UNIX)
    with me:
        try:
            me.connect(gate)
            me.sendall(f"{os.getpid()} {value}\n".encode())
            me.recv(1)
        except (ConnectionError, BrokenPipeError):
            pass  # it is open
    return value


def through_unless_cancelled(gate: bytes) -> str:
    """Tells what the task sees of a cancel: cancelled() and which exception."""
    task = gpudispatch.current_task()
    assert task is not None
    try:
        through(gate)
    except BaseException as error:
        return f"{task.cancelled()} {type(error).__name__}"
    return f"{task.cancelled()} nothing"


def deaf(gate: bytes) -> str:
    """Ignores every exception until its gate opens."""
    while True:
        try:
            return str(through(gate))
        except BaseException:
            continue


# ---- values ----


def same(value: Any = None) -> Any:
    return value


def pid(_: Any = None) -> int:
    return os.getpid()


def own_tag() -> int:
    """As the worker sees it."""
    from gpudispatch import _core

    task = _core.current()
    assert task is not None
    return task.tag


def capture(*args: Any, **kwargs: Any) -> Any:
    return args, kwargs


def mark(path: str, value: Any) -> Any:
    """Leaves a line for each run."""
    with open(path, "a") as out:
        out.write(f"{value}\n")
    return value


def mark_pair(item: tuple[str, Any]) -> Any:
    return mark(*item)


def marked(path: Any) -> list[str]:
    try:
        with open(path) as lines:
            return lines.read().split()
    except FileNotFoundError:
        return []


def where(_: Any = None) -> tuple[str, ...]:
    worker = gpudispatch.current_worker()
    assert worker is not None
    return worker.devices


def where_through(gate: bytes) -> tuple[str, ...]:
    through(gate, where())
    return where()


def say_where_through(gate: bytes) -> str:
    print("last words")
    (device,) = where()
    return str(through(gate, device))


def say_slot(text: str) -> None:
    say(f"{text} {who()[0]}")


def who(_: Any = None) -> tuple[int, int, int]:
    worker = gpudispatch.current_worker()
    assert worker is not None
    return worker.slot, worker.incarnation, worker.seed


def attempt(_: Any = None) -> tuple[int, str]:
    task = gpudispatch.current_task()
    assert task is not None
    return task.attempt, task.label


def variable(name: str) -> str | None:
    return os.environ.get(name)


def directory(_: Any = None) -> str:
    return os.getcwd()


def say(text: str) -> None:
    print(text)
    print(text.upper(), file=sys.stderr)


def report(gate: bytes, fraction: float, text: str) -> None:
    task = gpudispatch.current_task()
    assert task is not None
    task.progress(fraction, text)
    through(gate)


# ---- failures ----


class Kept(Exception):
    """An exception with arguments and state of its own."""

    def __init__(self, number: int, *, more: str) -> None:
        super().__init__(number)
        self.more = more

    def __reduce__(self) -> Any:
        return _kept, (*self.args, self.more)


def _kept(number: int, more: str) -> Kept:
    return Kept(number, more=more)


class Unpicklable(Exception):
    def __reduce__(self) -> Any:
        raise TypeError("this exception stays here")


class ExitsWhenLoaded(Exception):
    def __reduce__(self) -> Any:
        return sys.exit, (7,)


class TwoArguments(Exception):
    """It pickles, and cannot be made again of its one argument."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(one + two)


def raises(kind: str) -> NoReturn:
    if kind == "kept":
        raise Kept(5, more="text")
    if kind == "unpicklable":
        raise Unpicklable("words of it")
    if kind == "exits when loaded":
        raise ExitsWhenLoaded("words of it")
    if kind == "two":
        raise TwoArguments(1, 2)
    if kind == "local":

        class Local(Exception):
            pass

        raise Local("made here")
    if kind == "exit":
        sys.exit(3)
    if kind == "interrupt":
        raise KeyboardInterrupt
    if kind == "chained":
        try:
            raise KeyError("first")
        except KeyError as error:
            raise ValueError("second") from error
    raise ValueError(kind)


def kill_me(number: int = signal.SIGKILL, *_: Any) -> NoReturn:
    print(f"last words of {os.getpid()}", flush=True)
    os.kill(os.getpid(), number)
    signal.pause()
    raise AssertionError


def exit_now(status: int = 3, *_: Any) -> NoReturn:
    print("last words", flush=True)
    os._exit(status)


def kill_if(value: int, culprit: int) -> int:
    if value == culprit:
        kill_me()
    return value


def raise_if(value: int, culprit: int) -> int:
    if value == culprit:
        raise ValueError(value)
    return value


def die_first(path: str, times: int, how: str = "crash") -> int:
    """Fails as often as asked; then returns the number of its attempt."""
    mark(path, how)
    runs = len(marked(path))
    if runs <= times:
        if how == "crash":
            kill_me()
        if how == "timeout":
            spin()
        raise ValueError(runs)
    return attempt()[0]


def spin() -> NoReturn:
    while True:
        time.sleep(60)


# ---- where something fails: load item, load function, run, pack, load result ----

WAYS = ("raise", "sys.exit", "exit", "kill")


def fail(way: str) -> Any:
    if way == "raise":
        raise UnpicklingError("on purpose")
    if way == "sys.exit":
        sys.exit(3)
    if way == "exit":
        exit_now()
    kill_me()


class FailsAsItLoads:
    def __init__(self, way: str) -> None:
        self.way = way

    def __reduce__(self) -> Any:
        return fail, (self.way,)


class FailsAsItIsPacked:
    def __init__(self, way: str) -> None:
        self.way = way

    def __reduce__(self) -> Any:
        fail(self.way)


class CallableThatFailsToLoad(FailsAsItLoads):
    def __call__(self) -> None:
        raise AssertionError


def returns_what_fails_to_load(way: str) -> Any:
    return FailsAsItLoads(way)


def returns_what_fails_to_pack(way: str) -> Any:
    return FailsAsItIsPacked(way)


# ---- setup ----

state: dict[str, Any] = {}


def keep(name: str, value: Any) -> None:
    state[name] = value


def kept(name: str) -> Any:
    return state[name]


def fails_in_setup(text: str = "no model") -> NoReturn:
    print("words of the setup")
    raise LookupError(text)


class Model:
    """A worker class."""

    def setup(self, gpu_id: str, seed: int, scale: int = 1, gate: bytes | None = None) -> None:
        self.facts = gpu_id, seed
        self.scale = scale
        self.gate = gate

    def process(self, item: Any) -> Any:
        if item == "facts":
            return self.facts
        if self.gate is not None:
            through(self.gate, item)
        return item * self.scale


class BatchModel:
    def setup(self, gpu_id: str, seed: int, gate: bytes | None = None, wrong: int = 0) -> None:
        self.gate = gate
        self.wrong = wrong

    def process(self, items: list[Any]) -> list[Any]:
        if self.gate is not None and 0 in items:
            through(self.gate)
        return [(item, len(items)) for item in items] + [None] * self.wrong


def through_then_die_once(gate: bytes, path: str) -> int:
    through(gate)
    return die_first(path, 1)


def tell_what_stops_me(gate: bytes, path: str) -> None:
    task = gpudispatch.current_task()
    assert task is not None
    try:
        through(gate)
    except BaseException as error:
        mark(path, task.cancelled())
        mark(path, type(error).__name__)
        raise


def mark_and_raise_if(path: str, value: int, culprit: int) -> int:
    mark(path, value)
    return raise_if(value, culprit)


def mark_and_kill_if(path: str, value: int, culprit: int) -> int:
    mark(path, value)
    return kill_if(value, culprit)


def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def through_if(gate: bytes, value: int) -> int:
    if value:
        through(gate)
    return value


class Thing:
    pass


def make_object(_: Any = None) -> Thing:
    return Thing()


def progress_for(seconds: float) -> float:
    task = gpudispatch.current_task()
    assert task is not None
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        task.progress(0.5)
        time.sleep(0.01)
    return time.monotonic() - began


def out_of_memory(path: str, times: int) -> tuple[int, int]:
    """MemoryError so many times; then the pids of the first and of this run."""
    mark(path, os.getpid())
    pids = [int(p) for p in marked(path)]
    if len(pids) <= times:
        raise MemoryError("no memory")
    return pids[0], os.getpid()


def out_of_memory_then_sleep(path: str) -> None:
    if not marked(path):
        mark(path, os.getpid())
        raise MemoryError("no memory")
    try:
        mark(path, os.getpid())
        gpudispatch.current_task().progress(0.5)
        time.sleep(600)
    finally:
        mark(path, "ended")


def out_of_memory_beside(path: str, item: str) -> None:
    """An item that is the path runs out of memory; another one ends once that runs again."""
    if item == path:
        out_of_memory_then_sleep(path)
    while len(marked(path)) < 2:
        time.sleep(0.001)


def out_of_memory_at(path: str, times: int) -> list[str]:
    """As out_of_memory(): the UUIDs of the devices of all runs."""
    worker = gpudispatch.current_worker()
    assert worker is not None
    mark(path, worker.uuids[0])
    if len(marked(path)) <= times:
        raise MemoryError("no memory")
    return marked(path)


def size_of(path: str) -> int:
    return os.path.getsize(path)


def writable(buffer: Any) -> bool:
    return not memoryview(buffer).readonly


def tell_unless_zero(gate: bytes, path: str, value: int) -> None:
    if value:
        told = "nothing"
        try:
            told = through_unless_cancelled(gate)
        finally:
            mark(path, told)


def deaf_unless_zero(value: int, gate: bytes) -> int:
    if value:
        deaf(gate)
    return value


def call(job: tuple[Any, ...]) -> Any:
    return job[0](*job[1:])


def first_waits(gate: bytes, index: int) -> int:
    if index == 0:
        through(gate)
    return index


def mark_through(path: str, gate: bytes, index: int) -> int:
    mark(path, index)
    if index:
        through(gate)
    return index


def say_and(what: str) -> bytes:
    print("last words")
    if what == "spin":
        spin()
    if what == "return much":
        return big(64 << 20)
    if what == "run out":
        raise MemoryError("no memory")
    raise Unpicklable("text")


def make_lock() -> Any:
    import threading

    return threading.Lock()


def big(size: int) -> bytes:
    return b"x" * size
