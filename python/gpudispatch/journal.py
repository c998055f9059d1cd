# SPDX-License-Identifier: MIT
"""Journal of outcomes: what lets a run go on where the one before it stopped.

`Executor.outcomes(..., journal=PATH)` appends each outcome when the host knows it.  A rerun yields
the outcomes that the file holds without running their items, and runs the rest.

    key_of = key_function(key)                           # key: the user's function or None
    with Journal.open(path, header=Header.of(fn, setup, key), redo=redo, fresh=fresh) as journal:
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
`put` adds a record, `flush` writes all that was put with one write, and `append` is both.  Once
`flush` has returned, the records are in the kernel: `kill -9` of the host loses nothing.  A loop
puts all outcomes that a poll of the core returned, flushes, and only then yields the first.
A power failure can lose the records since the last fdatasync.  `flush` calls it where one second
has passed since the last call, and `close` calls it.  No thread and no timer does: after an outcome
that a slow source follows, up to one second of records stays unsynced until the next flush.  A loop
that waits calls `tick()`, which syncs when the second is over and returns how long the loop may
wait, or None where all is on the disk.
A write that fails (disk full, quota, I/O error) is a JournalError; the file is cut back to its
last whole record, and no later one is accepted.  It ends the run, the records before it hold.

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

import errno
import json
import os
import pickle
import stat
import struct
import sys
import time
import warnings
import weakref
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from io import FileIO
from typing import TYPE_CHECKING, Any, Final, Self
from zlib import crc32

from . import __version__, codec
from .errors import ForkedError, JournalBusy
from .records import (
    BODY,
    CODES,
    FILE_MAGIC,
    FORMAT,
    FRONT,
    HEAD_SIZE,
    HEADER,
    KEY_DIGEST,
    KEY_PICKLE,
    KEY_SIZE,
    KEY_STR,
    KIND,
    KINDS,
    MAGIC,
    NO_TIMES,
    PID_OFFSET,
    PREAMBLE,
    SESSION,
    SIZE,
    TURN,
    JournalDamaged,
    JournalError,
    JournalRecord,
    RecordFile,
    damaged_error,
    is_alive,
    mismatch_error,
    read_journal,
    salvage,
    sync_directory,
    write_all,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .codec import Buffer

__all__ = [
    "KINDS",
    "REDO",
    "Header",
    "Journal",
    "JournalDamaged",
    "JournalError",
    "JournalRecord",
    "item_key",
    "key_function",
    "read_journal",
    "salvage",
]

REDO: Final = ("crash", "timeout", "device")
NEVER_REPLAYED: Final = ("cancelled", "no_worker")
SYNC_SECONDS: Final = 1.0
_SMALL: Final = 1 << 16  # payloads from here on are written in parts, without a copy
_ALIGN: Final = 64  # parts of a frame start at multiples of this (codec.py)
_KEY_LIMIT: Final = 1024

# ---- keys and headers ----------------------------------------------------------------------------


_PLAIN: Final = frozenset((float, bool, complex, type(None)))
_FLAT: Final = _PLAIN | {bytes, str, int}


def item_key(item: object) -> bytes:
    """Returns the default key of an item; the first byte is the form."""
    if type(item) is bytes:
        key = b"\0%b" % item
    elif type(item) is str:
        key = KEY_STR + item.encode("utf-8", "surrogatepass")
    elif type(item) is int:
        key = b"\2%x" % item
    elif type(item) in _PLAIN or (type(item) is tuple and _FLAT.issuperset(map(type, item))):
        key = KEY_PICKLE + pickle.dumps(item, 5)
    else:
        # As it travels: a tensor's own pickle has addresses in it and differs in each run.
        frame = codec.encode(codec.VALUE, item)
        if isinstance(frame, list):  # large buffers, hashed where they lie
            return _digest(frame)
        key = KEY_PICKLE + frame[1:]
    return key if len(key) <= _KEY_LIMIT else _digest((key,))


def _digest(parts: Iterable[Buffer]) -> bytes:
    digest = sha256()
    for part in parts:
        digest.update(b"%d:" % memoryview(part).nbytes)
        digest.update(part)
    return KEY_DIGEST + digest.digest()


def key_function(key: Callable[[Any], bytes | str | int] | None) -> Callable[[Any], bytes]:
    """Returns the function that makes the journal's key of an item."""
    if key is None:
        return item_key
    if not callable(key):
        raise TypeError(f"key is {key!r}, expected a function or None")

    def named(item: object) -> bytes:
        name = key(item)
        if isinstance(name, bool) or not isinstance(name, bytes | str | int):
            raise TypeError(f"key returned {type(name).__name__}, expected bytes, str or int")
        if isinstance(name, int):
            return item_key(int(name))
        return item_key(bytes(name) if isinstance(name, bytes) else str(name))

    return named


def _function_name(function: object) -> str:
    partial = ""
    while (inner := getattr(function, "func", None)) is not None and hasattr(function, "keywords"):
        # functools.partial: other arguments are another function
        args = getattr(function, "args", ()), sorted(function.keywords.items())
        partial += "+" + _values_digest(args)[:16]
        function = inner
    if not hasattr(function, "__qualname__"):
        function = type(function)
    name: str = getattr(function, "__qualname__", "?")
    return f"{getattr(function, '__module__', None) or '?'}:{name}{partial}"


def setup_digest(setup: Mapping[str, object] | None) -> str:
    """Returns the SHA-256 of the pickled setup arguments; arrays are not copied."""
    if not setup:
        return "none"
    return _values_digest({name: setup[name] for name in sorted(setup)})


def _values_digest(values: object) -> str:
    frame = codec.encode(codec.VALUE, values, views=True)
    return _digest(frame if isinstance(frame, list) else [frame])[1:].hex()


@dataclass(frozen=True)
class Header:
    """What a journal belongs to.  Each field that differs is a JournalMismatch."""

    function: str
    setup: str = "none"
    package: str = __version__
    key: str = "item"

    @classmethod
    def of(
        cls,
        function: object,
        setup: Mapping[str, object] | None = None,
        key: Callable[[Any], object] | None = None,
    ) -> Header:
        """Makes the header of a run: the function or worker class, setup, and the key function.

        The name of the key function does not count, only whether there is one.
        """
        return cls(
            function=_function_name(function),
            setup=setup_digest(setup),
            key="item" if key is None else "function",
        )


# ---- the writer ----------------------------------------------------------------------------------


def _own_record(salt: int, offset: int, kind: int, payload: bytes) -> bytes:
    """Makes a record of this module's own: header or session."""
    body = BODY.pack(HEAD_SIZE + len(payload), kind, 0, 0, 0, 0, 0, 0, 0, 0, *NO_TIMES) + payload
    return FRONT.pack(MAGIC, crc32(body, (salt + offset) & 0xFFFFFFFF)) + body


def _busy(path: str, pid: int) -> JournalBusy:
    if pid == os.getpid():
        owner = "this process has it open already"
    elif pid == 0:
        owner = "another process has it open"
    elif is_alive(pid):
        owner = f"process {pid} has it open"
    else:
        owner = f"process {pid} opened it and has ended, a child of it holds the lock"
    return JournalBusy(f"{path}: {owner}", pid=pid or None)


def _lock(path: str) -> FileIO:
    """Opens the file, creates it where it is missing, and takes the lock.

    The descriptor belongs to an object from the start: an interrupt cannot leave the lock taken.
    """
    import fcntl  # not on Windows, where only the import of this module has to work

    while True:
        file = FileIO(path, "a+")
        try:
            fd = file.fileno()
            # With O_APPEND, pwrite appends whatever the offset is.
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_APPEND)
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise JournalError(f"{path}: not a regular file")
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                data = os.pread(fd, PREAMBLE.size, 0)
                whole = len(data) == PREAMBLE.size and data.startswith(FILE_MAGIC)
                pid = PREAMBLE.unpack(data)[3] if whole else 0
                raise _busy(path, pid) from None
            except OSError as error:
                raise JournalError(
                    f"{path}: cannot lock it: {error.strerror}; use a local file system"
                ) from error
            own = os.fstat(fd)
            try:
                there = os.stat(path)
            except FileNotFoundError:
                there = None
            if there and (own.st_ino, own.st_dev) == (there.st_ino, there.st_dev):
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # fresh=True of another process has renamed it meanwhile


def _set_aside(path: str) -> str:
    """Renames the file to the first free PATH.1, PATH.2, ...  The caller holds its lock."""
    number = 1
    while os.path.lexists(f"{path}.{number}"):
        number += 1
    os.rename(path, f"{path}.{number}")
    return f"{path}.{number}"


class Journal:
    """The journal of one run, open for writing and locked."""

    def __init__(self, path: str, owner: FileIO, redo: Iterable[str]) -> None:
        """For `open` alone."""
        self.path = path
        self.recorded = 0  # outcomes that the file holds, superseded ones too
        self.cut = 0  # bytes of a torn record that `open` cut
        self.set_aside: str | None = None  # where fresh=True has put the journal before
        self._owner = owner  # of the descriptor, and so of the lock
        self._fd = owner.fileno()  # -1 when closed
        self._pid = os.getpid()
        self._file = RecordFile(path, self._fd)
        self._end = 0  # where the file ends
        self._next = 0  # where the next record will be: behind those in _pending
        self._pending: list[bytes] = []
        self._synced = 0
        self._next_sync = 0.0
        self._failed: str | None = None
        self._redo = frozenset(CODES[kind] for kind in (*redo, *NEVER_REPLAYED))
        self._devices: dict[str, bytes] = {"": b""}
        # hash(key) -> offset << 4 | kind of the record of turn 0; after the first claim -claims.
        # 64 bits, not a digest: `claim` compares the whole key in the file, so that keys with
        # equal hashes cost one more run of an item, and nothing else.
        self._index: dict[int, int] = {}
        self._later: dict[tuple[int, int], int] = {}  # (hash, turn), turn > 0
        _journals.add(self)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        header: Header,
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
        path = os.fspath(path)
        if not isinstance(path, str):
            raise TypeError(f"journal is {path!r}, expected str or a path")
        if isinstance(redo, str):
            raise TypeError(f"redo is {redo!r}, expected a sequence of kinds")
        redo = tuple(redo)
        for kind in redo:
            if kind not in CODES:
                raise ValueError(f"redo has {kind!r}, expected names of {', '.join(KINDS)}")
        owner = _lock(path)
        aside = None
        try:
            while fresh and os.fstat(owner.fileno()).st_size > 0:
                aside = _set_aside(path)
                owner.close()  # the lock of the renamed file
                owner = _lock(path)
            self = cls(path, owner, redo)
            self.set_aside = aside
            self._begin(header)
        except BaseException:
            owner.close()
            raise
        return self

    def _begin(self, header: Header) -> None:
        file, size = self._file, os.fstat(self._fd).st_size
        start = file.begin(size) if size else None
        now = time.monotonic()
        session = json.dumps(
            {
                "pid": os.getpid(),
                "clock": time.time() - now,
                "python": sys.version.split()[0],
                "package": __version__,
            }
        ).encode()
        if start is None:
            salt = file.salt = int.from_bytes(os.urandom(4), "little")
            new = PREAMBLE.pack(FILE_MAGIC, FORMAT, salt, os.getpid(), 0)
            new += _own_record(salt, len(new), HEADER, json.dumps(asdict(header)).encode())
            os.ftruncate(self._fd, 0)
            self._write([new], 0)
        else:
            found, at = start
            for field in fields(header):
                mine = getattr(header, field.name)
                if found.get(field.name) != mine:
                    raise mismatch_error(self.path, field.name, found.get(field.name), mine)
            self._end = self._next = self._scan(at, size)
            self.cut = size - self._end
            if self.cut:
                if not file.is_torn(self._end, size):
                    warnings.warn(
                        f"{self.path}: the last {self.cut} bytes are damaged and are cut; the item "
                        "that they were about runs again",
                        RuntimeWarning,
                        stacklevel=3,
                    )
                os.ftruncate(self._fd, self._end)
            os.pwrite(self._fd, struct.pack("<Q", os.getpid()), PID_OFFSET)
        file.forget()
        file.clocks.append((self._end, time.time() - now))
        record = _own_record(file.salt, self._end, SESSION, session)
        self._write([record], 0)
        self.sync()
        if start is None:
            sync_directory(self.path)

    def _scan(self, start: int, end: int) -> int:
        """Fills the index; returns where the last whole record ends."""
        file, index, later = self._file, self._index, self._later
        for offset, found in file.records(start, end):
            start = offset + found[SIZE]
            kind, turn = found[KIND], found[TURN]
            if kind <= HEADER or kind > len(KINDS):
                continue
            self.recorded += 1
            entry = offset << 4 | kind
            mark = hash(file.key(offset, found))
            if turn == 0:
                index[mark] = entry
            else:
                later[mark, turn] = entry
        return start

    def claim(self, key: bytes) -> tuple[int, JournalRecord | None]:
        """Counts one more item with this key; returns its turn and the outcome that it replays.

        None: the item has to run, and its outcome is appended with this turn.
        """
        mark = hash(key)
        entry = self._index.get(mark)
        if entry is None:
            self._index[mark] = -1
            return 0, None
        if entry >= 0:
            self._index[mark] = -1
            turn = 0
        else:
            self._index[mark] = entry - 1
            turn = -entry
            entry = self._later.pop((mark, turn), None)
            if entry is None:
                return turn, None
        if entry & 15 in self._redo:
            return turn, None
        offset = entry >> 4
        again = self._file.again(offset)
        if again is None:
            raise damaged_error(self.path, offset, None)
        found, data = again
        if data[HEAD_SIZE : HEAD_SIZE + found[KEY_SIZE]] != key:
            return turn, None
        return turn, self._file.record(offset, found, data)

    def put(
        self,
        key: bytes,
        turn: int,
        kind: str,
        payload: Buffer | list[Buffer],
        device: str = "",
        attempt: int = 1,
        times: tuple[int, int, int, int] = NO_TIMES,
        index: int = 0,
        text: str = "",
        log_tail: str = "",
    ) -> None:
        """Adds one outcome to those that the next `flush` writes.

        `payload` is a frame as codec.encode returns it, or its bytes; `times` are nanoseconds.
        """
        parts: list[Buffer] | None = None
        if type(payload) is bytes:
            size = len(payload)
            if size >= _SMALL:
                parts = [payload]
        elif isinstance(payload, list):
            parts, size = _frame(payload)
        else:
            size = memoryview(payload).nbytes
            parts = [payload]
        name = self._devices.get(device)
        if name is None:
            name = self._devices[device] = device.encode("utf-8", "replace")[:255]
        if text or log_tail:
            words = text.encode("utf-8", "replace")
            tail = log_tail.encode("utf-8", "replace")
        else:
            words = tail = b""
        size += HEAD_SIZE + len(key) + len(name) + len(words) + len(tail)
        body = BODY.pack(
            size, CODES[kind], 0, len(name), len(key), len(words), len(tail), attempt, turn, index,
            *times,
        )  # fmt: skip
        if parts is None or size < _SMALL:
            rest = payload if parts is None else b"".join(parts)
            body = b"".join((body, key, name, words, tail, rest))  # type: ignore[arg-type]
            at = self._next
            record = FRONT.pack(MAGIC, crc32(body, (self._file.salt + at) & 0xFFFFFFFF)) + body
            # Interrupts (Ctrl-C) arrive behind a call: none between these two.
            self._next = at + size
            self._pending.append(record)
            if self._next - self._end >= _SMALL:
                self.flush()
            return
        self.flush()
        check = (self._file.salt + self._end) & 0xFFFFFFFF
        body = b"".join((body, key, name, words, tail))
        check = crc32(body, check)
        for part in parts:
            check = crc32(part, check)
        self._write([FRONT.pack(MAGIC, check) + body, *parts], 1)

    def flush(self) -> None:
        """Writes what `put` has added, with one write; syncs where a second has passed."""
        pending = self._pending
        if pending:
            self._write([b"".join(pending)], len(pending))
        if time.monotonic() >= self._next_sync and self._synced != self._end:
            self.sync()

    def append(
        self,
        key: bytes,
        turn: int,
        kind: str,
        payload: Buffer | list[Buffer],
        device: str = "",
        attempt: int = 1,
        times: tuple[int, int, int, int] = NO_TIMES,
        index: int = 0,
        text: str = "",
        log_tail: str = "",
    ) -> None:
        """Appends one outcome: `put` and `flush`."""
        self.put(key, turn, kind, payload, device, attempt, times, index, text, log_tail)
        self.flush()

    def _write(self, parts: list[Buffer], outcomes: int) -> None:
        """Writes at the end.  What `put` has added is a part of it, or there is none."""
        if self._failed is not None:
            raise JournalError(self._failed)
        end, recorded = self._end, self.recorded
        try:
            size = write_all(self._fd, parts, end)
            # No call from here on, so that an interrupt finds all of it done or nothing.
            self._end = self._next = end + size
            self.recorded = recorded + outcomes
            self._pending = []
        except BaseException as error:
            self._settle(end, recorded)
            if isinstance(error, OSError):
                self._fail(error)
            raise

    def _settle(self, end: int, recorded: int) -> None:
        """After a write that raised: keeps the records that are whole, cuts the rest."""
        self._end, self.recorded = end, recorded
        if self._fd >= 0:
            self._file.forget()
            try:
                for offset, found in self._file.records(end, os.fstat(self._fd).st_size):
                    self._end = offset + found[SIZE]
                    if found[KIND] not in (HEADER, SESSION):
                        self.recorded += 1
                os.ftruncate(self._fd, self._end)
            except (OSError, JournalError):
                pass  # the next reader cuts it
        # An interrupt is not the end: what is not in the file yet keeps its place for the next one.
        self._pending = self._pending[self.recorded - recorded :]
        self._next = self._end + sum(map(len, self._pending))

    def _fail(self, error: OSError) -> None:
        if self._fd < 0:
            if self._pid != os.getpid():
                raise ForkedError(f"{self.path}: opened by process {self._pid}") from None
            raise ValueError(f"{self.path}: the journal is closed") from None
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
            os.fdatasync(self._fd)
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
        if self._fd < 0:
            return
        try:
            if self._failed is None:
                self.flush()
                if self._synced != self._end:
                    self.sync()
        finally:
            self._release()

    def _release(self) -> None:
        fd, self._fd = self._fd, -1
        self._file.fd = -1
        try:
            if os.pread(fd, 8, PID_OFFSET) == struct.pack("<Q", os.getpid()):
                os.pwrite(fd, bytes(8), PID_OFFSET)
        except OSError:
            pass  # the pid is a hint, the lock is the truth
        finally:
            self._owner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        owner = getattr(self, "_owner", None)
        if owner is not None and not owner.closed:
            self._release()


_journals: weakref.WeakSet[Journal] = weakref.WeakSet()


def _leave_in_child() -> None:
    """A forked child drops the journals: the lock belongs to the descriptor that both share."""
    for journal in list(_journals):
        journal._fd = journal._file.fd = -1
        journal._owner.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_in_child)


def _frame(parts: list[Buffer]) -> tuple[list[Buffer], int]:
    """Puts each further part at the next multiple of 64, as the extension does in the arena."""
    whole: list[Buffer] = []
    at = 0
    for part in parts:
        if gap := -at % _ALIGN:
            whole.append(bytes(gap))
            at += gap
        whole.append(part)
        at += memoryview(part).nbytes
    return whole, at


if __name__ == "__main__":
    from .journal_text import main

    sys.exit(main())
