# SPDX-License-Identifier: MIT
"""WorkClass: a worker class, or the functions of a program, put to use in an engine.

An Executor has one, which owns its devices.  A Pool has one for each add().
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from gpudispatch import codec, current, settings, source, waits
from gpudispatch.codec import frame_size
from gpudispatch.settings import RETRY_BITS, TaskOptions

try:
    from gpudispatch import _core
except ImportError:  # not on macOS and Windows, as in engine.py
    if sys.platform == "linux":
        raise

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gpudispatch._core import Template
    from gpudispatch.codec import Encoded
    from typing import Protocol

    from gpudispatch.settings import Settings

    class WorkerObject(Protocol):
        """In place of a class, such as a ServerWorker: the call, in the worker, returns the object
        that serves."""

        max_batch: int

        def __call__(self) -> Any: ...

        def process(self, items: Any, /) -> Any: ...

STOP_WORDS = 8192
SETUP_AT = STOP_WORDS * 8  # in the memory that workers map: behind the stop table


class WorkClass:
    """What its engine and its submitters know of a class.

    name      "" in an engine without other classes
    number    of the class in its engine; in tags of its tasks
    worker    the class with process(), or None: tasks name their functions
    setup     the arguments of its setup()
    options   the library's options for its workers and tasks
    broken    why a task had no worker, until one has
    closing   it is being removed
    gone      set once it is removed
    raw       items and results are bytes, without frames
    """

    worker: Any = None
    setup: Mapping[str, Any] | None = None
    raw = False

    def __init__(self, name: str, checked: Settings) -> None:
        self.name = name
        self.number = 0
        self.settings = checked
        self.options = checked.options
        self.broken: str | None = None
        self.closing = False
        self.gone = waits.Event()

    def mark_stopped(self, number: int, stopped: bool) -> None:
        """The code of a running task gets an exception once it is cancelled."""

    def task_options(self) -> TaskOptions:
        """Those of a task for which nothing was asked."""
        return TaskOptions().but(oom=self.settings.oom, raw=self.raw)

    def template(self, options: TaskOptions) -> Template:
        """The core's form of a task's options."""
        attempts, causes = 0, 0
        if options.max_attempts or options.retry is not None:
            retried = self.settings.retry if options.retry is None else options.retry
            causes = sum(RETRY_BITS.get(c, 0) for c in retried)
            attempts = (options.max_attempts or self.settings.max_attempts) if causes else 1
        of_a_pool: dict[str, Any] = {}
        if self.name:
            of_a_pool = {
                "class_name": self.name,
                "number": self.number,
                "quota": self.settings.queue_size,
                "request": options.request,
            }
        return _core.Template(
            priority=options.priority,
            label=options.label,
            limit=options.limit,
            expires=options.expires,
            stall_limit=options.stall,
            max_attempts=attempts,
            retry_causes=causes,
            **of_a_pool,
        )


class PythonClass(WorkClass):
    """A class whose workers are interpreters with this package."""

    def __init__(
        self,
        checked: Settings,
        worker: Any = None,
        setup: Mapping[str, Any] | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        name: str = "",
    ) -> None:
        _check(worker, setup, initializer, initargs, checked.max_batch)
        super().__init__(name, checked)
        self.worker = worker
        self.setup = setup
        frame = _setup_frame(checked, worker, setup, initializer, initargs)
        self.shared = _core.Shared(SETUP_AT + frame_size(frame))
        self.shared.write(SETUP_AT, frame)
        self.options = checked.options | {"argv": worker_argv(), "setup_shared": self.shared}

    def mark_stopped(self, number: int, stopped: bool) -> None:
        self.shared.store(number % STOP_WORDS, number if stopped else 0)


class Plugin:
    """What a journal knows of a plugin."""

    def __init__(self, path: str, definition: str | None) -> None:
        self.journal_state = os.path.basename(path), definition


class PluginClass(WorkClass):
    """A class whose workers load a shared object: its tasks are bytes in, bytes out."""

    raw = True

    def __init__(
        self, checked: Settings, plugin: str, definition: str | None, setup: bytes, name: str
    ) -> None:
        super().__init__(name, checked)
        self.worker = Plugin(plugin, definition)
        self.setup = {"data": setup}
        self.options = checked.options | {"plugin": plugin}
        if definition is not None:
            self.options["definition"] = definition
        if setup:
            self.options["setup_data"] = setup


class ExternalClass(WorkClass):
    """A class without workers: the program has the devices itself."""

    def __init__(self, name: str, checked: Settings) -> None:
        super().__init__(name, checked)
        kept = ("task_limit", "grace", "setup_limit", "max_attempts")
        self.options = {key: checked.options[key] for key in kept}


def _check(
    worker: Any,
    setup: Mapping[str, Any] | None,
    initializer: Callable[..., object] | None,
    initargs: tuple[Any, ...],
    max_batch: int,
) -> None:
    if initializer is not None and not callable(initializer):
        raise TypeError("initializer must be a callable")
    if not isinstance(initargs, (tuple, list)):
        raise TypeError(f"initargs must be a tuple, not {type(initargs).__name__}")
    if setup is not None and not isinstance(setup, Mapping):
        raise TypeError(f"setup must be a mapping, not {type(setup).__name__}")
    if setup is not None and worker is None:
        raise TypeError("setup goes with worker=: its setup() gets these arguments")
    if worker is not None and not callable(getattr(worker, "process", None)):
        raise TypeError(f"worker has no process(): {worker!r}")
    serves = callable(worker) and hasattr(worker, "max_batch")
    if worker is not None and not settings.is_class(worker) and not serves:
        kind = type(worker).__name__
        raise TypeError(f"worker must be a class, not an object: write {kind}, not {kind}(...)")
    if max_batch > 1 and worker is None:
        raise TypeError("max_batch goes with worker=: its process() gets a list of items")


def _setup_frame(
    checked: Settings,
    worker: Any,
    setup: Mapping[str, Any] | None,
    initializer: Callable[..., object] | None,
    initargs: tuple[Any, ...],
) -> Encoded:
    """What worker.py reads before its first task."""
    host = source.host_state(directory="cwd" not in checked.options)
    blob = {
        "host": current.Arrival(host),  # first: it is taken over as it is read
        "worker": None if worker is None else source.reference(worker),
        "setup": None if worker is None else dict(setup or {}),
        "initializer": None if initializer is None else source.reference(initializer),
        "initargs": tuple(initargs),
        "max_batch": checked.max_batch,
        "cuda_results": checked.cuda_results,
        "oom": checked.oom,
    }
    return codec.encode(codec.VALUE, blob, cuda="error", views=True)


def worker_argv() -> list[str]:
    """The command of a worker: this interpreter, and this package where it lies."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    argv = [sys.executable, *_interpreter_flags(), "-P", "-u"]
    site = None if sys.flags.no_site else sys.modules.get("site")
    if site is not None and home in site.getsitepackages():
        return [*argv, "-m", "gpudispatch.worker"]
    start = f"import sys; sys.path.insert(0, {home!r}); import gpudispatch.worker as w; w.main()"
    return [*argv, "-c", start]


def _interpreter_flags() -> list[str]:
    """The options with which this interpreter was started; mostly none, without an import."""
    f = sys.flags
    usual = not (
        f.debug or f.no_site or f.verbose or f.bytes_warning or f.quiet or f.optimize or f.isolated
        or f.ignore_environment or f.no_user_site or f.safe_path or f.dev_mode or f.utf8_mode
    )
    if usual and not sys.warnoptions and not sys._xoptions:
        return ["-B"] if f.dont_write_bytecode else []
    import subprocess

    found: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return found
