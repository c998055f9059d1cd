# SPDX-License-Identifier: MIT
"""Journal of outcomes: what lets a run go on where the one before it stopped.

`Executor.outcomes(..., journal=PATH)` appends each outcome when the host knows it.  A rerun yields
the outcomes that the file holds without running their items, and runs the rest.

    key_of = key_function(key)                           # key: the user's function or None
    with Journal.open(path, header=header_of(fn, setup, key), redo=redo, fresh=fresh) as journal:
        name = key_of(item)
        turn, record = journal.claim(name)               # once per item, in the source's order
        if record is not None:
            ...                                          # yield it with replayed=True
        else:
            ...                                          # run the item; keep (name, turn) with it
        journal.put(name, turn, "success", frame, device, attempt, times, index)
        journal.flush()                                  # one write for all that one poll brought
        wait_at_most = journal.tick()                    # where the loop would sleep, see below

One thread at a time uses a Journal.  A forked child has no part in it: the child's copy of the
descriptor is closed after `os.fork`, so that the lock ends with the process that took it.

What a flush promises
---------------------
Once `flush` has returned, all that was put is in the kernel: `kill -9` of the host loses nothing.
A loop puts all outcomes that a poll of the core returned, flushes, and only then yields the first.
A power failure can lose the records since the last fdatasync.  `flush` calls it where one second
has passed since the last call, and `close` calls it.  No thread and no timer does: a loop that
waits calls `tick()`, which syncs when the second is over and returns how long the loop may wait, or
None where all is on the disk.
A write that fails (disk full, quota, I/O error) is a JournalError; the file is cut back to its
last whole record, and no later one is accepted.  It ends the run, the records before it hold.
Ctrl-C in a write is no failure: the next flush writes the same bytes to the same place.

Keys
----
The key of an item is the item where it is `bytes`, `str` or `int`, else its pickle of protocol 5.
Three types do not mix: "1", b"1" and 1 are three keys.  A pickle depends on what `==` ignores: the
order in which a dict was filled, the order of a set (which changes from process to process for
strings), and whether two equal parts are the same object.  A key that differs costs one more run of
its item, it never yields a wrong result.  `key(item)` returns bytes, str or int where that matters.
Keys of more than 1,024 bytes are kept as their SHA-256.
Equal keys count by turn: the n-th item with a key claims the n-th outcome of that key.  The last
record of a key and turn holds.  Outcomes of the kinds "cancelled" and "no_worker" are never
replayed: they describe the run, not the item.

Memory: about 90 bytes for each item of a run and 120 for each record that a rerun has not claimed
yet (measured with CPython 3.11); no key and no result stays in memory.

The file itself: records.py.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pickle
import stat
import sys
import threading
import time
import warnings
import weakref
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Self

from . import __version__, codec, settings
from .errors import ForkedError, JournalBusy
from .records import (
    BODY,
    CODES,
    HEAD_SIZE,
    KEY_BYTES,
    KEY_DIGEST,
    KEY_INT,
    KEY_PICKLE,
    KEY_STR,
    KINDS,
    SESSION,
    WINDOW,
    JournalDamaged,
    JournalError,
    JournalRecord,
    RecordFile,
    class_key,
    front,
    is_alive,
    mismatch_error,
    preamble,
    read_journal,
    salvage,
    sync_directory,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ._core import Event
    from .codec import Buffer

__all__ = [
    "Journal",
    "JournalDamaged",
    "JournalError",
    "JournalRecord",
    "header_of",
    "item_key",
    "key_function",
    "read_journal",
    "salvage",
]

REDO: Final = ("crash", "timeout", "device")
NEVER_REPLAYED: Final = ("cancelled", "no_worker")
SYNC_SECONDS: Final = 1.0
_ALIGN: Final = 64  # parts of a frame start at multiples of this (codec.py)
_KEY_LIMIT: Final = 1024
CLASS_ENTRY: Final = "class "  # begins the name of a header's entry of one class

# ---- keys and headers ----------------------------------------------------------------------------

_PLAIN: Final = frozenset((float, bool, complex, type(None)))
_NAMES: Final[tuple[Any, ...]] = (bytes, str, int)
_FLAT: Final = _PLAIN.union(_NAMES)


def item_key(item: object) -> bytes:
    """Returns the default key of an item; the first byte is the form."""
    if type(item) is bytes:
        key = KEY_BYTES + item
    elif type(item) is str:
        key = KEY_STR + item.encode("utf-8", "surrogatepass")
    elif type(item) is int:
        key = KEY_INT + b"%x" % item
    elif type(item) in _PLAIN or (type(item) is tuple and _FLAT.issuperset(map(type, item))):
        key = KEY_PICKLE + pickle.dumps(item, 5)
    else:
        # As it travels: a tensor's own pickle has addresses in it and differs in each run.
        frame = codec.encode(codec.VALUE, item)
        if isinstance(frame, list):  # large buffers, hashed where they lie
            return KEY_DIGEST + _digest(frame)
        key = KEY_PICKLE + frame[1:]
    return key if len(key) <= _KEY_LIMIT else KEY_DIGEST + _digest([key])


def _digest(parts: list[Buffer]) -> bytes:
    digest = sha256()
    for part in parts:
        digest.update(b"%d:" % memoryview(part).nbytes)
        digest.update(part)
    return digest.digest()


def _digest_of(value: object) -> str:
    """Returns the SHA-256 of the pickle; arrays are not copied."""
    frame = codec.encode(codec.VALUE, value, views=True)
    return _digest(frame if isinstance(frame, list) else [frame]).hex()


def key_function(
    key: Callable[[Any], bytes | str | int] | None, name: str = ""
) -> Callable[[Any], bytes]:
    """Returns the function that makes the journal's key of an item [of a class of this name]."""
    made = _key_function(key)
    if not name:
        return made
    before = class_key(name)
    return lambda item: before + made(item)


def _key_function(key: Callable[[Any], bytes | str | int] | None) -> Callable[[Any], bytes]:
    if key is None:
        return item_key
    if not callable(key):
        raise TypeError(f"key is {key!r}, expected a function or None")

    def named(item: object) -> bytes:
        name = key(item)
        if not isinstance(name, bool):
            for kind in _NAMES:
                if isinstance(name, kind):
                    return item_key(kind(name))  # of a subclass, too
        raise TypeError(f"key returned {type(name).__name__}, expected bytes, str or int")

    return named


def _function_name(function: object) -> str:
    partial = ""
    while (inner := getattr(function, "func", None)) is not None and hasattr(function, "keywords"):
        # functools.partial: other arguments are another function
        args = getattr(function, "args", ()), sorted(function.keywords.items())
        partial += "+" + _digest_of(args)[:16]
        function = inner
    if not hasattr(function, "__qualname__"):
        # an object in place of a class: what it would do differently is another function
        partial += _state_of(function)
        function = type(function)
    name: str = getattr(function, "__qualname__", "?")
    if name.endswith("<lambda>"):  # its only name is its code
        code = repr(_code(getattr(function, "__code__", None)))
        name += "@" + sha256(code.encode()).hexdigest()[:16]
    return f"{getattr(function, '__module__', None) or '?'}:{name}{partial}"


def _state_of(worker: object) -> str:
    """A digest of what a worker object names for it, as a ServerWorker its command."""
    state = getattr(worker, "journal_state", None)
    return "" if state is None else "+" + _digest_of(state)[:16]


def _code(value: Any) -> object:
    """What a code object does, without where it stands."""
    if isinstance(value, frozenset):
        return sorted(map(repr, value))  # whose order differs from process to process
    if not hasattr(value, "co_code"):
        return value
    return value.co_code, list(map(_code, value.co_consts)), value.co_names, value.co_varnames


def header_of(
    function: object,
    setup: Mapping[str, object] | None = None,
    key: Callable[[Any], object] | None = None,
) -> dict[str, str]:
    """Returns what the journal of a run belongs to; each entry that differs is a JournalMismatch.

    Of the key function it only counts whether there is one.
    """
    return {
        "function": _function_name(function),
        "setup": ", ".join(f"{name}={_digest_of(setup[name])[:16]}" for name in sorted(setup))
        if setup
        else "none",
        "package": __version__,
        "key": "item" if key is None else "function",
    }


def class_headers(
    classes: Mapping[str, tuple[object, Mapping[str, object] | None]],
    key: Callable[[Any], object] | None = None,
) -> dict[str, str]:
    """As header_of(), of several classes: each has an entry of its own, so that a later run may
    leave one out."""
    header: dict[str, str] = {}
    for name, (function, setup) in classes.items():
        own = header_of(function, setup, key)
        header[CLASS_ENTRY + name] = f"{own.pop('function')}, setup {own.pop('setup')}"
        header |= own
    return header


# ---- the lock ------------------------------------------------------------------------------------

_locked: list[weakref.ref[RecordFile]] = []  # no WeakSet: its callbacks can swallow an interrupt


def _leave_in_child() -> None:
    """A forked child drops the files: the lock belongs to the descriptor that both share."""
    for known in _locked:
        if (file := known()) is not None:
            file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_in_child)


def _busy(path: str, pid: int) -> JournalBusy:
    if pid == os.getpid():
        owner = "this process has it open already; end the other loop, or call its close()"
    elif pid == 0:
        owner = "another process has it open"
    elif is_alive(pid):
        owner = f"process {pid} has it open"
    else:
        owner = f"process {pid} opened it and has ended, a child of it holds the lock"
    return JournalBusy(f"{path}: {owner}", pid=pid or None)


def _lock(path: str) -> RecordFile:
    """Opens the file, creates it where it is missing, and takes the lock."""
    import fcntl  # not on Windows, where only the import of this module has to work

    while True:
        file = RecordFile(path, "a+")
        try:
            fcntl.fcntl(file, fcntl.F_SETFL, 0)  # with O_APPEND, pwrite ignores its offset
            own = os.fstat(file.fileno())
            if not stat.S_ISREG(own.st_mode):
                raise JournalError(f"{path}: not a regular file")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _busy(path, file.writer()) from None
            except OSError as error:
                raise JournalError(
                    f"{path}: cannot lock it: {error.strerror}; use a local file system"
                ) from error
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(own, os.stat(path)):
                    _locked[:] = [known for known in _locked if known() is not None]
                    _locked.append(weakref.ref(file))
                    return file
        except BaseException:
            file.close()
            raise
        file.close()  # fresh=True of another process has renamed it meanwhile


def _set_aside(path: str) -> None:
    """Renames the file to the first free PATH.1, PATH.2, ...  The caller holds its lock."""
    number = 1
    while os.path.lexists(f"{path}.{number}"):
        number += 1
    os.rename(path, f"{path}.{number}")


# ---- the writer ----------------------------------------------------------------------------------


class Journal:
    """The journal of one run, open for writing and locked."""

    def __init__(self, file: RecordFile, redo: Iterable[str]) -> None:
        """For `open` alone."""
        self.path = file.path
        self.lock = threading.RLock()  # for loops that were left: their outcomes end on any thread
        self.recorded = 0  # outcomes that the file holds, superseded ones too
        self.cut = 0  # bytes that `open` cut
        self._file = file
        self._pid = os.getpid()
        self._clock = time.time_ns() - time.monotonic_ns()
        self._pending: list[Buffer] = []  # what the next flush writes at _end
        self._outcomes = 0  # how many of them are in it
        self._end = 0  # where the file ends
        self._next = 0  # where it will end with what is pending
        self._synced = 0
        self._next_sync = 0.0
        self._failed: str | None = None
        self._redo = frozenset((*redo, *NEVER_REPLAYED))
        # hash(key) + turn -> offset of a record that is not claimed yet; behind the first claim of
        # a key hash(key) -> -claims.  `claim` compares the whole key in the file, so that equal
        # hashes cost one more run of an item, and nothing else.
        self._items: dict[int, int] = {}

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        header: Mapping[str, str],
        redo: Iterable[str] = REDO,
        fresh: bool = False,
    ) -> Journal:
        """Opens or creates a journal and locks it.

        `redo` names the kinds that `claim` does not return.  `fresh=True` renames the file that is
        there to PATH.1 (or the next free number; nothing is deleted) and starts a new one.
        Raises JournalBusy, JournalMismatch, JournalDamaged, JournalError, OSError; then the file
        is as it was.  Warns (RuntimeWarning) where the end that it cuts is damaged, not torn: with
        that warning as an error nothing is cut.
        """
        path = settings.path("journal", path)
        if isinstance(redo, str):
            raise TypeError(f"redo is {redo!r}, expected a sequence of kinds")
        redo = [settings.choice("redo", kind, KINDS) for kind in redo]
        file = _lock(path)
        try:
            while fresh and file.size():
                _set_aside(path)
                file.close()
                file = _lock(path)
            self = cls(file, redo)
            self._begin(header)
        except BaseException:
            file.close()
            raise
        return self

    def _begin(self, header: Mapping[str, str]) -> None:
        file = self._file
        begun = file.begin(file.size())
        if begun is None:
            file.truncate(0)
            file.salt = int.from_bytes(os.urandom(4), "little")
            self._pending = [preamble(file.salt)]
            self._next = len(self._pending[0])
        else:
            found, start = begun
            self._compare(header, found)
            self._load(start, lambda later: self._compare(header, {**later, **found}))
        self.put(b"", 0, "session", json.dumps(dict(header)).encode())
        self.flush()
        file.set_writer(self._pid)
        if begun is None:
            sync_directory(self.path)

    def _compare(self, header: Mapping[str, str], found: Mapping[str, str]) -> None:
        """Raises where this run is not one of those in the file.  A class that the journal of a
        Pool does not have is a new one."""
        of_a_pool = any(name.startswith(CLASS_ENTRY) for name in found)
        for name, mine in header.items():
            if of_a_pool and name.startswith(CLASS_ENTRY) and name not in found:
                continue
            if found.get(name) != mine:
                raise mismatch_error(self.path, name, found.get(name), mine)

    def _load(
        self, start: int, compare: Callable[[Mapping[str, str]], None] | None = None
    ) -> None:
        """Indexes the whole records from `start` on, and cuts what is behind them.  `compare` gets
        what each later session belongs to."""
        file = self._file
        size = file.size()
        for offset, head, item in file.records(start, size):
            if head.kind != SESSION:
                self._items[item] = offset
                self.recorded += 1
            elif compare is not None and offset != start:
                compare(file.document(offset, head))
        self._end = self._next = file.stop
        self.cut = size - self._end
        if self.cut:
            if not file.is_torn(self._end, size):
                warnings.warn(
                    f"{self.path}: the last {self.cut} bytes are damaged and are cut; the item "
                    "that they were about runs again",
                    RuntimeWarning,
                    stacklevel=4,
                )
            file.truncate(self._end)
        file.forget()

    def claim(self, key: bytes) -> tuple[int, JournalRecord | None]:
        """Counts one more item with this key; returns its turn and the outcome that it replays.

        None: the item has to run, and its outcome is put with this turn.
        """
        first = hash(key)
        entry = self._items.get(first, 0)
        turn = -entry if entry < 0 else 0
        offset = self._items.pop(first + turn, 0) if turn else entry
        self._items[first] = -turn - 1
        if offset <= 0:
            return turn, None
        record = self._file.outcome(offset, self._end)
        if record.key_bytes != key or record.turn != turn or record.kind in self._redo:
            return turn, None
        return turn, record

    def put(
        self,
        key: bytes,
        turn: int,
        kind: str,
        payload: Buffer | list[Buffer],
        device: str = "",
        attempt: int = 1,
        times: tuple[int, int, int, int] = (0, 0, 0, 0),
        index: int = 0,
        text: str = "",
        log_tail: str = "",
    ) -> None:
        """Adds one outcome to those that the next `flush` writes.

        `payload` is a frame as codec.encode returns it, or its bytes; `times` are nanoseconds.
        """
        parts: list[Buffer]
        if type(payload) is bytes:
            parts, size = [payload], len(payload)
        else:
            parts, size = _laid_out(payload)
        name = device.encode("utf-8", "replace")[:255]
        words = text.encode("utf-8", "replace") if text else b""
        tail = log_tail.encode("utf-8", "replace") if log_tail else b""
        size += HEAD_SIZE + len(key) + len(name) + len(words) + len(tail)
        code = CODES[kind]
        body = BODY.pack(
            size, code, len(name), len(key), len(words), len(tail), attempt, turn, index, *times,
            self._clock,
        )  # fmt: skip
        parts = [body, key, name, words, tail, *parts]
        if size < WINDOW:
            parts = [b"".join(parts)]
        else:
            self.flush()
        start = front(self._file.salt + self._next, *parts)
        # Interrupts (Ctrl-C) arrive behind a call: none between these.
        self._pending += (start, *parts)
        self._next += size
        self._outcomes += code != SESSION
        if self._next - self._end >= WINDOW:
            self.flush()

    def put_success(self, key: bytes, turn: int, payload: bytes, event: Event, index: int) -> None:
        """As `put`, for the outcome of an event, and in half of its time."""
        record = event.record(key, turn, index, self._clock, payload)
        start = front(self._file.salt + self._next, record)
        size = len(start) + len(record)
        self._pending += (start, record)  # as in put(), no call from here
        self._next += size
        self._outcomes += 1
        if self._next - self._end >= WINDOW:
            self.flush()

    def flush(self) -> None:
        """Writes what `put` has added, with one write; syncs where a second has passed."""
        if self._pending:
            if self._failed is not None:
                raise JournalError(self._failed)
            if self._file.closed and self._pid != os.getpid():
                raise ForkedError(f"{self.path}: opened by process {self._pid}")
            if self._file.closed:
                raise ValueError(f"{self.path}: the journal is closed")
            try:
                self._write()
            except OSError as error:
                self._fail(error)
            # Nor here: an interrupt before leaves it all to the next flush.
            self._end = self._next
            self._pending = []
            self.recorded += self._outcomes
            self._outcomes = 0
        if time.monotonic() >= self._next_sync and self._synced != self._end:
            self.sync()

    def _write(self) -> None:
        fd, at, parts = self._file.fileno(), self._end, self._pending
        if self._next - at < 2 * WINDOW:
            parts = [b"".join(parts)]
        for part in parts:
            while (count := os.pwrite(fd, part, at)) < len(part):
                at += count  # of a short write: the next one goes on, or the kernel names the error
                part = memoryview(part)[count:]
            at += count

    def _fail(self, error: OSError) -> None:
        with contextlib.suppress(OSError, JournalError, RuntimeWarning):
            self._load(self._end)
        remedy = ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            remedy = "; make room and run again"
        self._failed = (
            f"{self.path}: cannot be written: {error.strerror} (errno {error.errno}), "
            f"the {self.recorded} outcomes before are recorded{remedy}"
        )
        raise JournalError(self._failed) from error

    def sync(self) -> None:
        """Waits until all records are on the disk."""
        end = self._end
        try:
            os.fdatasync(self._file.fileno())
        except OSError as error:
            self._fail(error)
        self._synced = end
        self._next_sync = time.monotonic() + SYNC_SECONDS

    def tick(self) -> float | None:
        """Syncs what is due; returns the seconds until the next call, None where all is synced."""
        if self._synced == self._end or self._failed is not None:
            return None
        wait = self._next_sync - time.monotonic()
        if wait > 0:
            return wait
        self.sync()
        return None

    def close(self) -> None:
        """Syncs and releases the journal; a second call does nothing."""
        with self.lock:
            if not self._file.closed:
                self._end_file()

    def _end_file(self) -> None:
        try:
            if self._failed is None:
                self.flush()
                if self._synced != self._end:
                    self.sync()
        finally:
            try:
                with contextlib.suppress(OSError):  # a hint, the lock is the truth
                    self._file.set_writer(0)
            finally:
                self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Part:
    """A journal that the loops of several classes share: one of them.

    Its methods are those of the journal; the last part that closes closes it."""

    def __init__(self, book: Journal, parts: set[Part]) -> None:
        self.path = book.path
        self.lock = book.lock
        self.claim = book.claim
        self.put = book.put
        self.put_success = book.put_success
        self.flush = book.flush
        self.tick = book.tick
        self._book = book
        self._parts = parts
        parts.add(self)

    def close(self) -> None:
        with self.lock:
            self._parts.discard(self)
            if not self._parts:
                self._book.close()


def _laid_out(payload: Buffer | list[Buffer]) -> tuple[list[Buffer], int]:
    """Puts each further part at the next multiple of 64, as the extension does in the arena;
    returns all parts and their size."""
    whole: list[Buffer] = []
    at = 0
    for part in payload if isinstance(payload, list) else [payload]:
        if gap := -at % _ALIGN:
            whole.append(bytes(gap))
            at += gap
        view = memoryview(part).cast("B")
        whole.append(view)
        at += len(view)
    return whole, at


if __name__ == "__main__":
    from .journal_text import main

    sys.exit(main())
