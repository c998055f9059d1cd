# SPDX-License-Identifier: MIT
"""Progress: the state of a pool or a queue, as text, as a picture in a notebook, or as a log.

    pool.progress()             the last line of a cell: a picture that changes in its place
    print(pool.progress())      the state now, as text
    with pool.progress(): ...   while the block runs: in a notebook the picture, on a terminal a
                                line that changes, else a line each 30 s and one for each bad end

Nothing is counted for it and no thread runs before it is shown.                            [V1]
A picture follows the work until nothing has run for ten minutes, or all is over: the last one
stays, also in an exported notebook.  Shown again, it moves to its new place.
"""

from __future__ import annotations

import secrets
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from gpudispatch.moment import SECONDS, Moment, end_line, lines, wall
from gpudispatch.picture import html, mimebundle
from gpudispatch.progress import Line, in_notebook

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self, TextIO

PICTURE_S = 2.0  # a picture changes this often
LOOK_S = 1.0  # a line is looked for this often
LINE_S = 30.0


class Shown(Protocol):
    """Where moments are shown."""

    every: float

    def show(self, m: Moment) -> None: ...

    def end(self, m: Moment) -> None:
        """Shows the last one."""


class Progress:
    """The object that Pool.progress() and Queue.progress() return.  Thread: any."""

    def __init__(self, look: Callable[[], Moment]) -> None:
        self._look = look
        self._name = f"gpud-{secrets.token_hex(4)}"  # of textures, among those of a page
        self._lock = threading.Lock()
        self._follower: _Follower | None = None

    def __str__(self) -> str:
        return "\n".join(lines(self._look()))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html(self._look(), self._name)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None, **more: object
    ) -> dict[str, str]:
        return mimebundle(self._look(), self._name)

    def _ipython_display_(self) -> None:
        from IPython.display import display

        bundle = self._repr_mimebundle_()
        if in_notebook():
            handle = display(bundle, raw=True, display_id=True)
            self._follow(_Picture(handle, self._name))
        else:
            display(bundle, raw=True)  # in a terminal, which has no places

    def __enter__(self) -> Self:
        if in_notebook():
            self._ipython_display_()
        elif sys.stderr is not None:
            line = Line()
            self._follow(_Log(sys.stderr) if line.quiet else _Terminal(line), now=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._follow(None)

    def _follow(self, shown: Shown | None, now: bool = False) -> None:
        """Ends the follower that there is, and begins another one."""
        with self._lock:
            before, self._follower = self._follower, None
            if before is not None:
                before.end()
            if shown is not None:
                self._follower = _Follower(self._look, shown, now)


class _Follower:
    """A thread that shows moments."""

    def __init__(self, look: Callable[[], Moment], shown: Shown, now: bool) -> None:
        self.look = look
        self.shown = shown
        self.stop = threading.Event()
        self.worked = time.monotonic()
        if now:
            shown.show(look())
        self.thread = threading.Thread(target=self._run, name="gpudispatch-progress", daemon=True)
        self.thread.start()

    def end(self) -> None:
        self.stop.set()
        if self.thread is not threading.current_thread():
            self.thread.join()

    def _run(self) -> None:
        try:
            goes_on = True
            while goes_on:
                stopped = self.stop.wait(self.shown.every)
                m = self.look()
                goes_on = not stopped and self._goes_on(m)
                (self.shown.show if goes_on else self.shown.end)(m)
        except Exception:
            from gpudispatch.news import logger

            logger.warning("the progress display has failed and is given up", exc_info=True)

    def _goes_on(self, m: Moment) -> bool:
        now = time.monotonic()
        self.worked = now if m.works else self.worked
        return not m.over and now < self.worked + SECONDS


class _Picture:
    """A picture in the output of a cell."""

    every = PICTURE_S

    def __init__(self, handle: Any, name: str) -> None:
        self.handle = handle
        self.name = name

    def show(self, m: Moment) -> None:
        self.handle.update(mimebundle(m, self.name), raw=True)

    end = show


class _Terminal:
    """A line on a terminal, drawn over again."""

    every = LOOK_S

    def __init__(self, line: Line) -> None:
        self.line = line

    def show(self, m: Moment) -> None:
        self.line.text(m.line)

    def end(self, m: Moment) -> None:
        self.line.text(m.line, end=True)


class _Log:
    """Lines in a file: the state each LINE_S, and each bad end."""

    every = LOOK_S

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self.stream = stream
        self.now = now
        self.next = 0.0
        self.last: Moment | None = None

    def show(self, m: Moment) -> None:
        self._bad_ends(m)
        if self.now() >= self.next:
            self.next = self.now() + LINE_S
            self._write(f"{wall(m.at)} {m.line}")

    def end(self, m: Moment) -> None:
        self.next = 0.0
        self.show(m)

    def _bad_ends(self, m: Moment) -> None:
        """Those since the last moment.  `ends` may lack some: their number is written."""
        if m.bad < 0:
            return
        before, self.last = self.last, m
        if before is None:
            return
        seen = max((end.number for end in before.ends), default=0)
        new = [end for end in m.ends if end.number > seen]
        further = m.bad - before.bad - len(new)
        if further > 0:
            self._write(f"{wall(m.at)} {further:,} bad ends that are not listed")
        for end in new:
            self._write(end_line(end))

    def _write(self, text: str) -> None:
        code = getattr(self.stream, "encoding", None) or "utf-8"
        self.stream.write(text.encode(code, "backslashreplace").decode(code) + "\n")
        self.stream.flush()
