# SPDX-License-Identifier: MIT
"""The sessions of a pool: who takes the events of which tags.

A session's tags have its number above bit 40; those of futures have 0 there.  From bit 56 on, the
core puts the number of a task's class, which no tag here has.
"""

from __future__ import annotations

import weakref

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from typing import Protocol

    from gpudispatch._core import Event

    class Reader(Protocol):
        """What takes the events of a session's tags.  Any thread calls it."""

        def take(self, event: Event) -> None: ...

        def make_room(self) -> None: ...

        def may_read(self) -> None:
            """The pool's thread has stopped reading."""


SESSION_SHIFT = 40
# Above this bit: the session wants STARTED events.  Part of the tag's session number.
SESSION_STARTED = 1 << 15


class Sessions:
    """The table.  The pool's lock guards what changes it."""

    def __init__(self) -> None:
        # Weak: one whose loop was interrupted before its first line is not there any more.
        self.readers: weakref.WeakValueDictionary[int, Reader] = weakref.WeakValueDictionary()
        self.left: dict[int, Reader] = {}  # their loop was left, and they take events yet
        self.next = 1

    def __len__(self) -> int:
        """How many want to read on their own threads."""
        return len(self.readers)

    def add(self, reader: Reader, started: bool) -> int:
        """Returns the session's number."""
        while True:
            number = (self.next % SESSION_STARTED or 1) | (SESSION_STARTED if started else 0)
            self.next += 1
            if number not in self.readers and number not in self.left:
                self.readers[number] = reader
                return number

    def leave(self, number: int) -> None:
        """The session reads no more: it takes what others read until it is closed."""
        reader = self.readers.get(number)
        if reader is not None:  # it has not taken its last event and closed meanwhile
            self.left[number] = reader
            self.readers.pop(number, None)

    def remove(self, number: int) -> None:
        self.left.pop(number, None)
        self.readers.pop(number, None)

    def give(self, event: Event) -> None:
        """Hands an event to the session of its tag.  Any thread."""
        number = event.tag >> SESSION_SHIFT
        reader = self.readers.get(number) or self.left.get(number)
        if reader is not None:
            reader.take(event)

    def make_room(self, but: Reader | None = None) -> None:
        """Before a wait for events: results that wait for slow loops leave the payload budget."""
        if len(self.readers) > (but is not None):
            for reader in self.all():
                if reader is not but:
                    reader.make_room()

    def let_read(self) -> None:
        """The pool's thread has stopped reading."""
        for reader in self.all():
            reader.may_read()

    def all(self) -> list[Reader]:
        """A copy: another thread may add one while the caller goes through them."""
        found = [reference() for reference in self.readers.valuerefs()]
        return [reader for reader in found if reader is not None]
