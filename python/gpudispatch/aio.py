# SPDX-License-Identifier: MIT
"""Coroutines: arun() and aoutcomes(), on the dispatcher's descriptor in the running loop.

A loop that has tasks in a pool watches the descriptor and reads the events; no thread helps.  While
futures are outstanding the pool's own thread reads: then the loop looks away, and that thread hands
the loop its events.  One loop at a time has tasks in a pool.

Thread: that of the loop calls everything but Watch.take() and Bell.set().
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Any

from gpudispatch import codec, ends
from gpudispatch.errors import ClosedError
from gpudispatch.events import OUTCOME, SUCCESS
from gpudispatch.outcomes import Loop, NotReady, Outcome
from gpudispatch.engine import Engine
from gpudispatch.sessions import SESSION_SHIFT
from gpudispatch.settings import NEVER

if TYPE_CHECKING:
    from gpudispatch._core import Event, Template
    from gpudispatch.codec import Encoded
    from gpudispatch.settings import TaskOptions
    from gpudispatch.work_class import WorkClass

TRY_AGAIN_S = 0.01  # while tasks wait for room, between looks for it
LOOK_AWAY_S = 0.05  # before the loop looks again whether it may read


class Bell:
    """Wakes a coroutine from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.thread = threading.get_ident()
        self.event = asyncio.Event()

    def set(self) -> None:
        if threading.get_ident() == self.thread:
            self.event.set()
        else:
            call_soon(self.loop, self.event.set)

    def clear(self) -> None:
        self.event.clear()

    def wait(self, timeout: float) -> object:
        raise RuntimeError("an event loop does not wait here")


def call_soon(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: Any) -> None:
    """Calls a function in the loop's thread; a loop that was closed has no use for it."""
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        pass


class Watch:
    """The tasks of one loop in one pool, and the loop's eye on the descriptor."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self.engine = engine
        self.loop = loop
        self.thread = threading.get_ident()
        self.users = 0  # coroutines with tasks here
        self.live: dict[int, asyncio.Future[Event]] = {}  # by tag
        self.ids: dict[int, int] = {}
        # while the core is full, by number of the class
        self.waiting: dict[int, deque[tuple[Template, int, Encoded, TaskOptions]]] = {}
        self.watching = False
        self.looks_away: asyncio.TimerHandle | None = None
        self.tries_again: asyncio.TimerHandle | None = None
        self.first_tag = engine.open_session(self)
        self.fd = os.dup(engine.core.fd())  # ours to close, when the loop has forgotten it
        self.tags = itertools.count(self.first_tag)

    # ---- the descriptor ----

    def enter(self) -> None:
        self.users += 1
        self.look()

    def leave(self) -> None:
        """With its last coroutine the watch ends."""
        self.users -= 1
        if self.users:
            return
        self.look_away()
        if self.tries_again is not None:
            self.tries_again.cancel()
            self.tries_again = None
        if self.engine.watch is self:
            self.engine.watch = None
        self.close()

    def close(self) -> None:
        os.close(self.fd)
        self.engine.close_session(self.first_tag)

    def look(self) -> None:
        if self.looks_away is not None:
            self.looks_away.cancel()
            self.looks_away = None
        if not self.watching and self.users and not self.engine.ended:
            self.loop.add_reader(self.fd, self.read)
            self.watching = True
        if self.watching and self.engine.inbox.events:
            self.loop.call_soon(self.read)  # they are not in the descriptor any more
        self.flush()  # another reader may have made room, and nothing of this loop is in the core

    def look_away(self, for_s: float | None = None) -> None:
        if self.watching:
            self.loop.remove_reader(self.fd)
            self.watching = False
        if self.looks_away is not None:
            self.looks_away.cancel()
            self.looks_away = None
        if for_s is not None:
            self.looks_away = self.loop.call_later(for_s, self.look)

    def read(self) -> None:
        """Takes what has happened; the descriptor is readable, as a level."""
        engine = self.engine
        foreign = None if engine.reads_itself else engine.inbox.reads(self.poll)
        if foreign is None:
            self.look_away(LOOK_AWAY_S)
            return
        if foreign:
            engine.call_thread()
        if engine.backlog:
            engine.flush()
        self.flush()
        if engine.ended:
            self.look_away()  # each task in the core has its outcome, on its way here or taken

    def poll(self) -> bool:
        inbox = self.engine.inbox
        if not inbox.events and not inbox.ended:
            inbox.poll(0)
        return inbox.sort(self.first_tag >> SESSION_SHIFT, self.take)

    # ---- tasks ----

    def submit(
        self, home: WorkClass, template: Template, frame: Encoded, options: TaskOptions
    ) -> tuple[int, asyncio.Future[Event]]:
        tag = next(self.tags)
        future: asyncio.Future[Event] = self.loop.create_future()
        self.live[tag] = future
        queue = self.waiting.setdefault(home.number, deque())
        queue.append((template, tag, frame, options))
        try:
            self.flush()
        except BaseException:
            self.live.pop(tag, None)
            raise
        if queue and queue[-1][1] == tag:
            queue[-1] = template, tag, codec.own(frame), options
        return tag, future

    def flush(self) -> None:
        """Sends what waits while the core has room for its class."""
        for number, queue in list(self.waiting.items()):
            self.send(number, queue)
            if not queue:
                self.waiting.pop(number, None)

    def send(
        self, number: int, waiting: deque[tuple[Template, int, Encoded, TaskOptions]]
    ) -> None:
        """Sends what waits of one class, in order, while the core has room.  After shutdown, and
        once the class is removed, that is cancelled: the thread that waits for the end may be the
        loop's."""
        engine = self.engine
        home = engine.classes.by_number.get(number)
        if home is None or home.closing:  # another class may have its name by now
            self.give_up(waiting)
            return
        while waiting:
            template, tag, frame, options = waiting[0]
            if tag in self.live:
                engine.lone.keep(tag, template, frame, options)
                try:
                    accepted = engine.core.submit(template, tag, frame)
                except ClosedError:
                    engine.lone.drop(tag)
                    self.give_up(waiting)
                    return
                except Exception as error:  # of this task, such as arguments without room
                    engine.lone.drop(tag)
                    future = self.live.pop(tag)
                    if not future.done():  # its coroutine may be about to be cancelled
                        future.set_exception(ends.detached(error))
                    waiting.popleft()
                    continue
                if not accepted:
                    engine.lone.drop(tag)
                    self.try_again()
                    return
                self.ids[tag] = accepted
            waiting.popleft()

    def give_up(self, waiting: deque[tuple[Template, int, Encoded, TaskOptions]]) -> None:
        """Cancels what waits of one class."""
        while waiting:
            if future := self.live.pop(waiting.popleft()[1], None):
                future.cancel()

    def try_again(self) -> None:
        """Others may make room and take all events: the descriptor does not tell then."""

        def now() -> None:
            self.tries_again = None
            self.flush()

        if self.tries_again is None:
            self.tries_again = self.loop.call_later(TRY_AGAIN_S, now)

    def cancel(self, tag: int, on_cancel: str) -> None:
        """Forgets a task: cancels it if it has not started, `on_cancel` decides about the rest."""
        self.live.pop(tag, None)
        number = self.ids.pop(tag, None)
        if number is not None:
            self.engine.leave(number, on_cancel)

    def take(self, event: Event) -> None:
        if event.kind != OUTCOME:
            return
        if threading.get_ident() == self.thread:
            self.settle(event)
        else:
            call_soon(self.loop, self.settle, event)

    def make_room(self) -> None:
        pass  # the loop hands each event to its coroutine at once

    def settle(self, event: Event) -> None:
        self.ids.pop(event.tag, None)
        future = self.live.pop(event.tag, None)
        if future is not None and not future.done():
            future.set_result(event)

    def may_read(self) -> None:
        call_soon(self.loop, self.look)


def watch(engine: Engine, home: WorkClass | None) -> Watch:
    """The watch of the running loop."""
    loop = asyncio.get_running_loop()
    engine.check_open(home)
    held = engine.watch if isinstance(engine.watch, Watch) else None
    if held is not None and held.loop is loop:
        return held
    if held is not None and held.users and not held.loop.is_closed():
        raise RuntimeError("another event loop has tasks in this executor: one loop at a time")
    if held is not None:  # its loop was closed over its tasks
        held.watching = False
        held.looks_away = None
        held.close()
    made = engine.watch = Watch(engine, loop)
    return made


async def arun(
    engine: Engine, home: WorkClass, template: Template, frame: Encoded, options: TaskOptions
) -> Any:
    """The value of one task."""
    eye = watch(engine, home)
    eye.enter()
    try:
        tag, future = eye.submit(home, template, frame, options)
        try:
            event = await future
        except asyncio.CancelledError:
            eye.cancel(tag, options.on_cancel)
            raise
    finally:
        eye.leave()
    if event.outcome == SUCCESS:
        value, failed = ends.value_of(event, options)
        if failed is not None:
            raise failed
        return value
    kind, error = engine.classes.failure(event, options)[:2]
    if kind == "cancelled":
        raise asyncio.CancelledError(*error.args)
    raise error


class Feed:
    """An async source as the plain iterator that Loop pulls from."""

    def __init__(self, source: AsyncIterable[Any], bell: Bell, room: int) -> None:
        self.source = source
        self.bell = bell
        self.items: deque[Any] = deque()
        self.room = asyncio.Semaphore(room)
        self.error: BaseException | None = None
        self.cancelled: asyncio.CancelledError | None = None  # what the source raised
        self.done = False
        self.task = bell.loop.create_task(self.run())

    async def run(self) -> None:
        try:
            async for item in self.source:
                await self.room.acquire()
                self.items.append(item)
                self.bell.set()
        except Exception as e:
            self.error = e
        except asyncio.CancelledError as e:
            self.cancelled = e
        finally:
            self.done = True
            self.bell.set()

    def __iter__(self) -> Feed:
        return self

    def __next__(self) -> Any:
        if self.items:
            self.room.release()
            return self.items.popleft()
        if not self.done:
            raise NotReady
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        raise StopIteration

    async def close(self) -> None:
        self.task.cancel()
        try:
            await self.task
        except (asyncio.CancelledError, Exception):
            pass


async def aoutcomes(
    engine: Engine,
    home: WorkClass | None,
    source: Iterable[Any] | AsyncIterable[Any],
    make: Callable[[Iterable[Any], Bell], Loop[Any, Any]],
) -> AsyncIterator[Outcome[Any, Any]]:
    """The outcomes of a loop that waits in the event loop; `make` makes it for a source."""
    eye = watch(engine, home)
    eye.enter()
    bell = Bell(eye.loop)
    feed = Feed(source, bell, 64) if isinstance(source, AsyncIterable) else None
    loop = None
    try:
        loop = make(source if feed is None else feed, bell)  # type: ignore[arg-type]
        for step in loop.steps():
            if type(step) is int:
                await pause(loop, bell, step)
            else:
                step.name = loop.name  # type: ignore[union-attr]
                given = [step]
                del step  # the caller's is the only reference
                yield given.pop()  # type: ignore[misc]
        if feed is not None and feed.cancelled is not None:
            raise feed.cancelled
    finally:
        if feed is not None:
            await feed.close()
        if loop is not None:
            loop.close()
        eye.leave()


async def pause(loop: Loop[Any, Any], bell: Bell, wait: int) -> None:
    """Waits for an event of the loop, or for a time in ns."""
    if wait == 0:
        await asyncio.sleep(0)
        return
    bell.clear()
    if loop.session.ready:
        return
    if wait == NEVER:
        await bell.event.wait()
        return
    try:
        await asyncio.wait_for(bell.event.wait(), wait / 1e9)
    except TimeoutError:
        pass
