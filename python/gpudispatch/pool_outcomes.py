# SPDX-License-Identifier: MIT
"""outcomes() of a Pool: the sources of several classes in one loop, one journal, one progress.

Each class has a loop of its own, with its session and its window (outcomes.py); one thread runs
them in turns.  So a class with a long queue, or a slow one, does not keep the others from theirs.

The classes begin together: none submits a second task before each has a worker that starts.  The
library starts several workers for a class with many tasks, the oldest task first.  So a class that
submits later, since its first items are in the journal, would else find all devices taken.  It
would wait for min_residence of the others, 30 s, or for max_wait, 5 min.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpudispatch import settings
from gpudispatch.settings import NEVER
from gpudispatch.waits import Event

if TYPE_CHECKING:
    from gpudispatch.journal import Part
    from gpudispatch.outcomes import Loop, Outcome
    from gpudispatch.pool import Pool
    from gpudispatch.pool_progress import PoolWatch
    from gpudispatch.submitter import Submitter

TOGETHER_S = 0.5  # at most; a class may have no place
LOOK_NS = 1_000_000


class PoolLoop:
    """One call of Pool.outcomes().  Thread: one at a time."""

    def __init__(self, loops: Mapping[str, Loop[Any, Any]], watch: PoolWatch | None) -> None:
        self.loops = dict(loops)
        self.sessions = [loop.session for loop in self.loops.values()]
        self.watch = watch

    def run(self) -> Generator[Outcome[Any, Any], None, None]:
        """First None, then the outcomes; the caller's thread waits for events."""
        try:
            yield None  # type: ignore[misc]
            together_until = time.monotonic() + TOGETHER_S
            together = self.begin_together(together_until)
            active = {name: loop.steps() for name, loop in self.loops.items()}
            waits = dict.fromkeys(active, 0)  # for how long each one waits for an event
            while active:
                for name, steps in list(active.items()):
                    if waits[name] == NEVER and not self.loops[name].session.ready:
                        continue
                    for given in self.turn(name, steps):
                        if type(given) is int:
                            waits[name] = given
                            break
                        yield given.pop()  # type: ignore[union-attr]
                    else:
                        del active[name]
                        del waits[name]
                        self.stop_if_failed(name)
                if together:
                    together = self.begin_together(together_until)
                    most = LOOK_NS if together else 0
                    waits = {name: min(wait, most) for name, wait in waits.items()}
                if active:
                    wait = self.patience(min(waits.values()))
                    self.sessions[0].read(wait, self.sessions[1:])
                    if self.sessions[0].engine.ended:
                        waits = dict.fromkeys(active, 0)  # no event follows: each ends
            for loop in self.loops.values():
                if loop.error is not None:
                    raise loop.error
        finally:
            self.close()

    def begin_together(self, until: float) -> bool:
        """Has each class submit only its first task, until all have begun; False at the end."""
        several = len(self.loops) > 1
        waits = several and time.monotonic() < until and not self.all_have_begun()
        for loop in self.loops.values():
            loop.only_first = waits
        return waits

    def all_have_begun(self) -> bool:
        """Whether each class with tasks has a worker, or no device is left for one."""
        loops, look = self.loops, self.sessions[0].engine.look
        if not all(loop.index or loop.exhausted for loop in loops.values()):
            return False
        begun = {row["name"] for row in look("classes") if row["workers"] or row["starting"]}
        if all(name in begun for name, loop in loops.items() if loop.session.live):
            return True
        return all(row["state"] != "IDLE" for row in look("devices"))

    def turn(
        self, name: str, steps: Iterator[Outcome[Any, Any] | int]
    ) -> Iterator[list[Outcome[Any, Any]] | int]:
        """The outcomes of one class that are there, each in a list: the caller's is the only
        reference then.  After them for how long it may wait; nothing once it has ended."""
        try:
            for step in steps:
                if type(step) is int:
                    yield step
                    return
                step.name = name  # type: ignore[union-attr]
                if self.watch is not None:
                    self.watch.add(step)  # type: ignore[arg-type]
                given = [step]
                del step
                yield given  # type: ignore[misc]
        except BaseException as error:
            if self.loops[name].error is not error:
                raise  # not what the source has raised, which run() raises at the end

    def stop_if_failed(self, name: str) -> None:
        """A source that has raised ends all: what is accepted is still given out."""
        if self.loops[name].error is not None:
            for loop in self.loops.values():
                loop.exhausted = True

    def patience(self, wait: int) -> int:
        if self.watch is None:
            return wait
        self.watch.tick()
        return min(wait, self.watch.patience())

    def close(self) -> None:
        raised: BaseException | None = None
        for loop in self.loops.values():
            try:
                loop.close()
            except BaseException as error:
                raised = raised or error
        if self.watch is not None:
            self.watch.end()
        if raised is not None:
            raise raised


def parts_of(
    pool: Pool, sources: object, fn: Any, priority: int | None
) -> dict[str, tuple[Submitter, Any]]:
    """The view and the function of each class."""
    if not isinstance(sources, Mapping):
        raise TypeError(
            f'sources must be a mapping such as {{"qwen": items}}, not {type(sources).__name__}'
        )
    functions = fn if isinstance(fn, Mapping) else dict.fromkeys(sources, fn)
    for name in functions.keys() - sources.keys():
        raise ValueError(f"fn has {name!r}, which is none of the sources")
    parts: dict[str, tuple[Submitter, Any]] = {}
    for name in sources:
        try:
            view: Submitter = pool[name]
        except KeyError:
            raise ValueError(f"the pool has no class {name!r}") from None
        if priority is not None:
            view = view.options(priority=priority)
        # A function for all is one for the classes that name none themselves.
        function = functions.get(name)
        if function is fn and view._home.worker is not None:
            function = None
        view._called(function)  # an error before a journal is opened
        parts[name] = view, function
    if fn is not functions and parts and all(f is not fn for _, f in parts.values()):
        raise TypeError(f"fn is for classes without worker=, but {', '.join(parts)} have one")
    return parts


def loops_of(
    sources: Mapping[str, Iterable[Any]],
    parts: dict[str, tuple[Submitter, Any]],
    ordered: bool,
    journal: str | os.PathLike[str] | None,
    key: Callable[[Any], bytes | str | int] | None,
    redo: Sequence[str],
    fresh: bool,
) -> dict[str, Loop[Any, Any]]:
    """A loop for each class; they share a bell, and the journal."""
    bell = Event()
    books: dict[str, Any] = dict.fromkeys(sources)
    if journal is not None:
        books = _open_journal(journal, parts, key, redo, fresh)
    elif key is not None or fresh:
        raise TypeError("key and fresh go with journal=")
    loops: dict[str, Loop[Any, Any]] = {}
    try:
        for name, source in sources.items():
            view, function = parts[name]
            loops[name] = view._loop(source, function, ordered, bell, books[name], key, name)
    except BaseException:
        for name in sources:
            if name in loops:
                loops[name].close()
            elif books[name] is not None:
                books[name].close()
        raise
    return loops


def _open_journal(
    path: str | os.PathLike[str],
    parts: Mapping[str, tuple[Submitter, Any]],
    key: Callable[[Any], bytes | str | int] | None,
    redo: Sequence[str],
    fresh: bool,
) -> dict[str, Part]:
    """One journal for several classes: a part for each."""
    from gpudispatch.journal import Journal, Part, class_headers
    from gpudispatch.journal_loop import end_rest

    homes = {name: view._home for name, (view, _) in parts.items()}
    settings.path("journal", path)
    if not parts:
        return {}  # no loop would close it
    header = class_headers(
        {name: (home.worker or parts[name][1], home.setup) for name, home in homes.items()}, key
    )
    end_rest(path)
    book = Journal.open(path, header=header, redo=redo, fresh=fresh)
    shared: set[Part] = set()
    return {name: Part(book, shared) for name in parts}
