# SPDX-License-Identifier: MIT
"""The pools, each made as its users would make it, with one worker.

joblib has two: with n_jobs=1 it calls the function itself, in the caller's process.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
from collections.abc import Callable, Iterable
from concurrent import futures
from importlib import import_module
from typing import Any

from gpudispatch.bench.jobs import Echo, tiny

Function = Callable[[Any], Any]


class Peer:
    """A pool.  submit(function, argument) returns what `result(it, timeout)` takes."""

    needs: str | None = None  # a module beyond the standard library
    pinned = True  # its worker is a process that a task can move to another CPU

    def __init__(self) -> None:
        self.pool: Any = self.start()

    def start(self) -> Any:
        raise NotImplementedError

    def submit(self, function: Function, argument: Any) -> Any:
        raise NotImplementedError

    def result(self, handle: Any, timeout: float | None = None) -> Any:
        return handle.result(timeout)

    def imap(self, function: Function, items: Iterable[Any], chunk: int) -> Iterable[Any]:
        raise NotImplementedError

    def stop(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)


class _Futures(Peer):
    """Whatever follows concurrent.futures."""

    def __init__(self) -> None:
        super().__init__()
        self.submit = self.pool.submit  # type: ignore[method-assign]

    def imap(self, function: Function, items: Iterable[Any], chunk: int) -> Iterable[Any]:
        found: Iterable[Any] = self.pool.map(function, items, chunksize=chunk)
        return found


class Threads(_Futures):
    pinned = False

    def start(self) -> Any:
        return futures.ThreadPoolExecutor(1)


class Fork(_Futures):
    method = "fork"

    def start(self) -> Any:
        return futures.ProcessPoolExecutor(1, multiprocessing.get_context(self.method))


class ForkServer(Fork):
    method = "forkserver"


class Loky(_Futures):
    needs = "loky"

    def start(self) -> Any:
        return import_module("loky").get_reusable_executor(max_workers=1, timeout=None)

    def stop(self) -> None:
        self.pool.shutdown(wait=True, kill_workers=True)


class Ours(_Futures):
    def start(self) -> Any:
        from gpudispatch import Executor

        return Executor(1)

    def loop(self, items: Iterable[Any], journal: str | None = None) -> Iterable[Any]:
        outcomes: Iterable[Any] = self.pool.outcomes(items, fn=tiny, journal=journal)
        return outcomes


class OursWithClass(Ours):
    def start(self) -> Any:
        from gpudispatch import Executor

        return Executor(1, worker=Echo)

    def __init__(self) -> None:
        super().__init__()
        send = self.pool.submit

        def submit(function: Function, argument: Any) -> Any:
            return send(argument)

        self.submit = submit  # type: ignore[method-assign]

    def loop(self, items: Iterable[Any], journal: str | None = None) -> Iterable[Any]:
        outcomes: Iterable[Any] = self.pool.outcomes(items, journal=journal)
        return outcomes


class OursWithViews(Ours):
    def __init__(self) -> None:
        super().__init__()
        self.submit = self.pool.options(copy=False).submit  # type: ignore[method-assign]


class OursPool(Ours):
    """A Pool of one class, in place of an Executor."""

    def __init__(self) -> None:
        from gpudispatch import Pool

        self.whole = Pool(None, cpus=1)
        super().__init__()

    def start(self) -> Any:
        return self.whole.add("tiny", devices=0, cpus=1, min_workers=1)

    def stop(self) -> None:
        self.whole.shutdown(cancel_futures=True)


class OursEight(OursWithClass):
    """Eight workers of one class."""

    classes = 1

    def __init__(self) -> None:
        from gpudispatch import Pool

        self.whole = Pool("fake:8")
        super().__init__()
        for made in self.made:
            made.ready(8 // self.classes)

    def start(self) -> Any:
        each = 8 // self.classes
        self.made = [
            self.whole.add(
                f"echo {n}", worker=Echo, min_workers=each, max_workers=each
            )
            for n in range(self.classes)
        ]
        return self.made[0]

    def loop(self, items: Iterable[Any], journal: str | None = None) -> Iterable[Any]:
        parts = list(items)
        found: Iterable[Any] = self.whole.outcomes(
            {made.name: parts[n :: self.classes] for n, made in enumerate(self.made)}
        )
        return found

    def stop(self) -> None:
        self.whole.shutdown(cancel_futures=True)


class OursEightClasses(OursEight):
    """The same workers, each of a class of its own."""

    classes = 8


class Pool(Peer):
    def start(self) -> Any:
        return multiprocessing.get_context("fork").Pool(1)

    def submit(self, function: Function, argument: Any) -> Any:
        return self.pool.apply_async(function, (argument,))

    def result(self, handle: Any, timeout: float | None = None) -> Any:
        return handle.get(timeout)

    def imap(self, function: Function, items: Iterable[Any], chunk: int) -> Iterable[Any]:
        found: Iterable[Any] = self.pool.imap(function, items, chunk)
        return found

    def stop(self) -> None:
        self.pool.terminate()
        self.pool.join()


class Pebble(Peer):
    needs = "pebble"

    def start(self) -> Any:
        return import_module("pebble").ProcessPool(max_workers=1)

    def submit(self, function: Function, argument: Any) -> Any:
        return self.pool.schedule(function, args=(argument,))

    def imap(self, function: Function, items: Iterable[Any], chunk: int) -> Iterable[Any]:
        found: Iterable[Any] = self.pool.map(function, items, chunksize=chunk).result()
        return found

    def stop(self) -> None:
        self.pool.stop()
        self.pool.join()


class Joblib(Peer):
    needs = "joblib"
    pinned = False

    def start(self) -> Any:
        return import_module("joblib")

    def imap(self, function: Function, items: Iterable[Any], chunk: int) -> Iterable[Any]:
        delayed = self.pool.delayed(function)
        parallel = self.pool.Parallel(n_jobs=2, batch_size=chunk, return_as="generator")
        found: Iterable[Any] = parallel(delayed(item) for item in items)
        return found

    def stop(self) -> None:
        import_module("joblib.externals.loky").get_reusable_executor().shutdown(kill_workers=True)


class Ray(Peer):
    needs = "ray"

    def start(self) -> Any:
        ray = import_module("ray")
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error")
        self.remote: dict[Function, Any] = {}
        return ray

    def submit(self, function: Function, argument: Any) -> Any:
        remote = self.remote.get(function)
        if remote is None:
            remote = self.remote[function] = self.pool.remote(max_retries=0)(function)
        return remote.remote(argument)

    def result(self, handle: Any, timeout: float | None = None) -> Any:
        return self.pool.get(handle, timeout=timeout)

    def stop(self) -> None:
        self.pool.shutdown()


PEERS: dict[str, type[Peer]] = {
    "ours": Ours,
    "ours worker=": OursWithClass,
    "ours copy=False": OursWithViews,
    "ours pool": OursPool,
    "ours eight": OursEight,
    "ours classes": OursEightClasses,
    "threads": Threads,
    "fork": Fork,
    "forkserver": ForkServer,
    "Pool": Pool,
    "loky": Loky,
    "joblib": Joblib,
    "pebble": Pebble,
    "ray": Ray,
}
TITLES = {
    "ours": "gpudispatch.Executor",
    "ours worker=": "gpudispatch.Executor(worker=)",
    "ours copy=False": "gpudispatch, copy=False",
    "ours pool": "gpudispatch.Pool, one class",
    "ours eight": "gpudispatch.Pool, 8 workers of a class",
    "ours classes": "gpudispatch.Pool, 8 classes of a worker",
    "ours switch": "gpudispatch.Pool, two classes",
    "threads": "ThreadPoolExecutor",
    "fork": "ProcessPoolExecutor, fork",
    "forkserver": "ProcessPoolExecutor, forkserver",
    "Pool": "multiprocessing.Pool, fork",
}


def installed(name: str) -> bool:
    needs = PEERS[name].needs
    return needs is None or importlib.util.find_spec(needs) is not None
