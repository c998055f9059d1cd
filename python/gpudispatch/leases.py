# SPDX-License-Identifier: MIT
"""Lease: devices of a pool for the program's own work: a thread, a notebook cell, a subprocess.

A lease is an external task of the library (external.h).  Its Grant is the future of that task: the
pool's thread takes the events GRANTED and REVOKED, and reports the start at once.
"""

from __future__ import annotations

import time
import weakref

from gpudispatch import waits
from gpudispatch.events import GRANTED, REVOKED, SUCCESS
from gpudispatch.future import SIGNAL_S, Future

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import Any, Self

    from gpudispatch._core import Event, Template
    from gpudispatch.engine import Engine
    from gpudispatch.pool import Pool
    from gpudispatch.settings import TaskOptions
    from gpudispatch.work_class import WorkClass

# Of a request to end, and its reasons: enum gpud_revoke and GPUD_REVOKED_MAP in external.h.
SOFT, HARD, BACK = 0, 1, 2
REASONS = ("NONE", "LIMIT", "STALL", "CANCEL", "DRAIN", "DEVICE", "CLOSE", "START")


class Revoked(waits.Event):
    """Set once the pool wants the devices back.

    reason  "DEVICE": a device has failed; "CLOSE": the pool ends; "CANCEL": the lease was cancelled
    hard    True: at once; False: soon, a request that is not hard comes first
    """

    def __init__(self) -> None:
        super().__init__()
        self.reason: str | None = None
        self.hard = False

    def __repr__(self) -> str:
        return f"<Revoked {self.reason}>" if self.is_set() else "<Revoked: not yet>"


class Grant(Future[None]):
    """The task of a lease: what the pool's thread knows of it."""

    def __init__(self) -> None:
        self.revoked = Revoked()
        self.granted = waits.Event()  # or the task has ended
        self.wakers: list[Callable[[], object]] = []
        self.number = 0  # of the task
        self.turn = 0  # of the grant, 0 = there is none
        self.devices: tuple[str, ...] = ()
        self.uuids: tuple[str, ...] = ()
        self.kept = False  # it is inside a `with` block, which the end of the pool waits for
        self.dropped = False  # nobody wants it any more
        self.lease: Callable[[], Lease | None]  # a weak reference: one that is dropped is closed

    def submit(
        self, engine: Engine, home: WorkClass, template: Template, options: TaskOptions
    ) -> None:
        """Has it wait for the devices."""
        self._engine, self._options = engine, options
        engine.grants.add(self)
        try:
            engine.submit(home, template, options.priority, b"", self)
        except BaseException:
            engine.grants.discard(self)
            raise

    def _heard(self, event: Event) -> None:
        """Any thread that reads, one at a time."""
        if event.kind == GRANTED:
            self._take(event)
        elif event.kind != REVOKED:
            super()._heard(event)
        elif event.attempt == self.turn and event.revoke != BACK:
            self.revoke(REASONS[event.revoked], event.revoke == HARD)

    def _take(self, event: Event) -> None:
        """Takes the devices of GRANTED."""
        engine: Any = self._engine
        try:
            engine.core.started(event.task_id, event.attempt)
            if self.dropped:
                engine.core.ended(event.task_id, event.attempt, SUCCESS)
                return
        except Exception:
            return  # it is over already: the task waits again, or has ended
        self.devices = tuple((event.device or "").split(",")) if event.device else ()
        self.uuids = tuple(event.device_uuid.split(",")) if event.device_uuid else ()
        self.number, self.turn = event.task_id, event.attempt
        self._wake()

    def revoke(self, reason: str, hard: bool) -> None:
        """Tells the holder of granted devices to return them."""
        if self.turn:
            self.revoked.reason = reason
            self.revoked.hard = hard
            self.revoked.set()

    def _wake(self) -> None:
        self.granted.set()
        for wake in self.wakers:
            wake()

    def give_back(self) -> None:
        """Returns the devices, or ends the wait for them.  Any thread, also twice, and the garbage
        collector: takes no lock."""
        self.dropped = True
        engine: Any = getattr(self, "_engine", None)
        if engine is None:
            return  # it was never submitted
        engine.grants.discard(self)
        turn, self.turn = self.turn, 0
        try:
            if turn:
                engine.core.ended(self.number, turn, SUCCESS)
            elif not self.done():
                engine.core.cancel(self._id, False)
        except Exception:
            pass  # the task has ended, or the pool


class Lease:
    """Devices for the program's own work, from `with`, `async with` or open() on.

    Thread: open() and close() by one at a time, the rest any.  An object serves once.

    devices   names of the granted devices, in their order
    uuids     their UUIDs
    env       environment variables for a process that is to find just them
    revoked   an Event, set once the pool wants them back; revoked.reason has the reason
    """

    def __init__(
        self,
        pool: Pool,
        grant: Grant,
        submit: Callable[[], None],
        visible: str,
        timeout: float | None,
    ) -> None:
        self._pool = pool
        self._grant = grant
        self._submit = submit
        self._visible = visible
        self._timeout = timeout
        self._opened = False
        grant.lease = weakref.ref(self)

    @property
    def devices(self) -> tuple[str, ...]:
        return self._grant.devices

    @property
    def uuids(self) -> tuple[str, ...]:
        return self._grant.uuids

    @property
    def revoked(self) -> Revoked:
        return self._grant.revoked

    @property
    def env(self) -> dict[str, str]:
        """CUDA_VISIBLE_DEVICES and its like; those of the program for a lease without devices."""
        if not self._grant.devices:
            return {}
        return {
            "CUDA_VISIBLE_DEVICES": ",".join(self._shown()),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "GPUD_DEVICE_UUIDS": ",".join(self._grant.uuids),
        }

    def _shown(self) -> tuple[str, ...]:
        if self._visible != "index":
            return self._grant.uuids
        rows = {row["name"]: row for row in self._pool.devices()}
        return tuple(str(rows[name]["index"]) for name in self._grant.devices)

    # ---- the wait ----

    def open(self) -> Self:
        """Waits until the devices are granted; close() returns them."""
        self._take_up()
        grant, timeout = self._grant, self._timeout
        until = None if timeout is None else time.monotonic() + timeout
        try:
            self._begin()
            while not grant.granted.wait(SIGNAL_S) and not grant.done():
                if until is not None and time.monotonic() >= until:
                    raise self._late()
            self._check()
        except BaseException:
            self.close()
            raise
        return self

    async def _aopen(self) -> Self:
        import asyncio

        from gpudispatch.aio import call_soon

        self._take_up()
        loop: AbstractEventLoop = asyncio.get_running_loop()
        event = asyncio.Event()
        grant = self._grant
        grant.wakers.append(lambda: call_soon(loop, event.set))
        try:
            self._begin()
            grant.add_done_callback(lambda _: call_soon(loop, event.set))
            await asyncio.wait_for(event.wait(), self._timeout)
            self._check()
        except TimeoutError:
            error = self._late()
            self.close()
            raise error from None
        except BaseException:
            self.close()
            raise
        return self

    def _take_up(self) -> None:
        if self._opened:
            raise RuntimeError("this lease was opened before: call lease() again")
        self._opened = True

    def _begin(self) -> None:
        self._submit()
        # A lease that is dropped is returned.
        self._finalizer = weakref.finalize(self, self._grant.give_back)
        self._finalizer.atexit = False

    def _check(self) -> None:
        """After the wait: raises what has ended the task."""
        if not self._grant.turn:
            self._grant.result(0)
            raise RuntimeError("the lease has ended before its grant")

    def _late(self) -> TimeoutError:
        reasons = self._pool.explain(self._grant)
        why = f": {reasons[0]['text']}" if reasons else ""
        return TimeoutError(f"no devices within {self._timeout} s (timeout){why}")

    def close(self) -> None:
        """Returns the devices.  What runs there must have ended: the next task gets them."""
        self._grant.give_back()

    def __enter__(self) -> Self:
        self._grant.kept = True
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        self._grant.kept = True
        return await self._aopen()

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", ".join(self.devices) if self._grant.turn else "no devices"
        return f"<Lease of {state}>"
