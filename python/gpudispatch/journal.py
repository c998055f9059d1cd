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
        journal.append(name, turn, "success", frame, device="cpu:0", attempt=1,
                       times=(queued, sent, started, ended), index=7)
        wait_at_most = journal.tick()                    # where the loop would sleep, see below

One thread at a time uses a Journal.  A forked child has no part in it: the child's copy of the
descriptor is closed after `os.fork`, so that the lock ends with the process that took it.

What an append promises
-----------------------
The record is in the kernel when `append` returns, by one write: `kill -9` of the host loses
nothing.  A power failure can lose the records since the last fdatasync.  `append` calls it where
one second has passed since the last call, and `close` calls it.  No thread and no timer does: after
an outcome that a slow source follows, up to one second of records stays unsynced until the next
append.  A loop that waits calls `tick()`, which syncs when the second is over and returns how long
it has to wait at most, or None where all is on the disk.
An append that fails (disk full, quota, I/O error) is a JournalError; the file is cut back to its
last whole record, and no later append is accepted.  It ends the run, the records before it hold.

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
yet (measured: README of the tests); no key and no result stays in memory.

The file
--------
Little endian.  It starts with 32 bytes: b"gpudjrn\\n", u32 format, u32 salt, u64 process id of the
writer or 0, u64 0.  Records follow one another:

    4s magic  u32 crc32  u64 size of the record  u8 kind  u8 flags  u16 device size  u32 key size
    u32 text size  u32 log tail size  u32 attempt  u32 turn  i64 index  4 x f64 times
    key, device, text, log tail, payload (the rest of the record)

The checksum covers the record behind it, seeded with salt + offset: the copy of a journal inside a
result, or a block of an older file, is never taken for a record.  The first record (kind 0) is the
header, JSON.  A record of kind 15 starts each session, JSON: it ties the monotonic times to the
date.  The payload of an outcome is a frame (codec.py), a value or an error.

Bytes behind the last whole record are torn: `Journal.open` cuts them.  Bytes that are no whole
record while one follows them are damage: JournalDamaged names the offset, and nothing is changed.
A journal is trusted as a pickle is: read only files that you or your programs wrote.
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
import weakref
from bisect import bisect_right
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, Self
from zlib import crc32

from . import __version__, codec
from .errors import ForkedError, GpuDispatchError, JournalBusy, JournalMismatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from .codec import Buffer

__all__ = [
    "KINDS",
    "REDO",
    "Header",
    "Journal",
    "JournalBusy",
    "JournalDamaged",
    "JournalError",
    "JournalMismatch",
    "JournalRecord",
    "item_key",
    "key_function",
    "read_journal",
    "salvage",
]

FORMAT: Final = 1
KINDS: Final = (
    "success", "error", "timeout", "crash", "device", "oom", "cancelled", "no_worker",
)  # fmt: skip
REDO: Final = ("crash", "timeout", "device")
NEVER_REPLAYED: Final = ("cancelled", "no_worker")
NO_TIMES: Final = (0.0, 0.0, 0.0, 0.0)
SYNC_SECONDS: Final = 1.0

_PREAMBLE: Final = struct.Struct("<8sIIQQ")
_PREAMBLE_MAGIC: Final = b"gpudjrn\n"
_PID_OFFSET: Final = 16
_FRONT: Final = struct.Struct("<4sI")
_BODY: Final = struct.Struct("<QBBHIIIIIq4d")
_HEAD: Final = struct.Struct("<4sIQBBHIIIIIq4d")
_MAGIC: Final = b"\xabgdr"
_HEADER: Final = 0
_SESSION: Final = 15
_CODES: Final = {name: code for code, name in enumerate(KINDS, 1)}
_HEAD_SIZE: Final = _HEAD.size
assert _FRONT.size + _BODY.size == _HEAD_SIZE

_SMALL: Final = 1 << 16  # payloads from here on are written in parts, without a copy
_WINDOW: Final = 1 << 16  # bytes that one read takes from the file
_ALIGN: Final = 64  # parts of a frame start at multiples of this (codec.py)
_MAX_PARTS: Final = 512  # well below IOV_MAX
_HEADER_LIMIT: Final = 1 << 16  # a file whose creation was interrupted is smaller

_KEY_LIMIT: Final = 1024
_KEY_BYTES, _KEY_STR, _KEY_INT, _KEY_PICKLE, _KEY_DIGEST = b"\0", b"\1", b"\2", b"\3", b"\4"

Times = tuple[float, float, float, float]


class JournalError(GpuDispatchError):
    """The journal cannot be read or written."""


class JournalDamaged(JournalError):
    """Bytes in the middle of a journal are no whole record.

    `offset` is where they start, `resumes` where the next whole record starts, None where the
    damaged record is the last one.
    """

    def __init__(
        self, message: str = "", *, offset: int = 0, resumes: int | None = None, **words: Any
    ) -> None:
        super().__init__(message, **words)
        self.offset = offset
        self.resumes = resumes


def _damaged(path: str, offset: int, resumes: int | None) -> JournalDamaged:
    text = f"{path}: the record at offset {offset} is damaged"
    if resumes is not None:
        text += (
            f", whole records follow from offset {resumes}; "
            f"python -m gpudispatch.journal {path} --salvage NEW copies the whole ones"
        )
    return JournalDamaged(text, offset=offset, resumes=resumes)


def _mismatch(path: str, field: str, was: object, now: object) -> JournalMismatch:
    return JournalMismatch(
        f"{path}: the journal has {field} {was!r}, this run has {now!r}; "
        "give another path, or fresh=True to start anew",
        field=field,
        was=str(was),
        now=str(now),
    )


def _busy(path: str, pid: int) -> JournalBusy:
    if pid == os.getpid():
        owner = "this process has it open already"
    elif pid == 0:
        owner = "another process has it open"
    elif _alive(pid):
        owner = f"process {pid} has it open"
    else:
        owner = f"process {pid} opened it and has ended, a child of it holds the lock"
    return JournalBusy(f"{path}: {owner}", pid=pid or None)


# ---- keys and headers ----------------------------------------------------------------------------


_PLAIN: Final = frozenset((float, bool, complex, type(None)))
_FLAT: Final = _PLAIN | {bytes, str, int}


def item_key(item: object) -> bytes:
    """Returns the default key of an item; the first byte is the form."""
    if type(item) is bytes:
        key = b"\0%b" % item
    elif type(item) is str:
        key = _KEY_STR + item.encode("utf-8", "surrogatepass")
    elif type(item) is int:
        key = b"\2%x" % item
    elif type(item) in _PLAIN or (type(item) is tuple and _FLAT.issuperset(map(type, item))):
        key = _KEY_PICKLE + pickle.dumps(item, 5)
    else:
        # As it travels: a tensor's own pickle has addresses in it and differs in each run.
        frame = codec.encode(codec.VALUE, item)
        if isinstance(frame, list):  # large buffers, hashed where they lie
            return _digest(frame)
        key = _KEY_PICKLE + frame[1:]
    return key if len(key) <= _KEY_LIMIT else _digest((key,))


def _digest(parts: Iterable[Buffer]) -> bytes:
    digest = sha256()
    for part in parts:
        digest.update(b"%d:" % memoryview(part).nbytes)
        digest.update(part)
    return _KEY_DIGEST + digest.digest()


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
        partial += "+" + sha256(pickle.dumps(args, 5)).hexdigest()[:16]
        function = inner
    if not hasattr(function, "__qualname__"):
        function = type(function)
    name: str = getattr(function, "__qualname__", "?")
    return f"{getattr(function, '__module__', None) or '?'}:{name}{partial}"


def setup_digest(setup: Mapping[str, object] | None) -> str:
    """Returns the SHA-256 of the pickled setup arguments; arrays are not copied."""
    if not setup:
        return "none"
    frame = codec.encode(codec.VALUE, {name: setup[name] for name in sorted(setup)}, views=True)
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


# ---- records -------------------------------------------------------------------------------------


@dataclass(slots=True)
class JournalRecord:
    """One outcome of a journal.

    `times` are seconds of time.monotonic() in the session that wrote the record: they compare
    within one session only.  `clock` is what makes seconds since 1970 of them.
    """

    offset: int
    kind: str
    key_bytes: bytes
    turn: int
    index: int
    device: str
    attempt: int
    times: Times
    text: str
    log_tail: str
    payload: bytes
    clock: float

    @property
    def ok(self) -> bool:
        return self.kind == "success"

    @property
    def key(self) -> bytes | str | int:
        """The key: bytes, str or int; of other items the pickle, of long ones the SHA-256."""
        form, key = self.key_bytes[:1], self.key_bytes[1:]
        try:
            if form == _KEY_STR:
                return key.decode("utf-8", "surrogatepass")
            if form == _KEY_INT:
                return int(key, 16)
        except ValueError:
            pass
        return key

    @property
    def ended_at(self) -> float | None:
        """When the attempt ended, in seconds since 1970; None where it never ran."""
        return self.times[3] + self.clock if self.times[3] > 0 else None

    @property
    def value(self) -> Any:
        """The result, None where the item failed.  Unpickles it."""
        if not self.ok:
            return None
        return codec.decode(self.payload)[1]

    @property
    def error(self) -> BaseException | None:
        """The error, None where the item succeeded.  Unpickles it."""
        if self.ok or not self.payload:
            return None
        return codec.decode_exception(codec.decode(self.payload)[1])


_Fields = tuple[
    bytes, int, int, int, int, int, int, int, int, int, int, int, float, float, float, float
]


class _File:
    """Reads records; total: any bytes give records, None or JournalError."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd
        self.salt = 0
        self._start = 0
        self._window = b""
        self.clocks: list[tuple[int, float]] = []  # offset of each session and its clock

    def forget(self) -> None:
        self._window = b""

    def read(self, offset: int, size: int) -> bytes:
        """Returns the bytes there, fewer where the file ends."""
        at = offset - self._start
        if at >= 0 and at + size <= len(self._window):
            return self._window[at : at + size]
        if size > _WINDOW:
            parts = []
            while size > 0 and (part := os.pread(self.fd, min(size, 1 << 30), offset)):
                parts.append(part)
                offset += len(part)
                size -= len(part)
            return b"".join(parts)
        self._window = os.pread(self.fd, _WINDOW, offset)
        self._start = offset
        return self._window[:size]

    def whole(self, offset: int, end: int) -> _Fields | None:
        """Returns the head of the record there, None where no whole record is."""
        head = self.read(offset, _HEAD_SIZE)
        if len(head) < _HEAD_SIZE or not head.startswith(_MAGIC):
            return None
        found: _Fields = _HEAD.unpack(head)
        size = found[2]
        if size > end - offset or found[5] + found[6] + found[7] + found[8] > size - _HEAD_SIZE:
            return None
        check = (self.salt + offset) & 0xFFFFFFFF
        at, stop = offset + 8, offset + size
        while at < stop:
            part = self.read(at, min(stop - at, _WINDOW))
            if not part:
                return None
            check = crc32(part, check)
            at += len(part)
        return found if check == found[1] else None

    def next_whole(self, offset: int, end: int) -> int | None:
        """Returns where the first whole record at or after `offset` starts."""
        while offset < end:
            part = self.read(offset, _WINDOW)
            at = part.find(_MAGIC)
            if at >= 0:
                if self.whole(offset + at, end) is not None:
                    return offset + at
                offset += at + 1
            elif len(part) < len(_MAGIC):
                break
            else:
                offset += len(part) - len(_MAGIC) + 1
        return None

    def records(
        self, start: int, end: int, gaps: list[tuple[int, int]] | None = None
    ) -> Iterator[tuple[int, _Fields]]:
        """Yields the whole records of a range; ends before what is torn.

        Damage before a whole record raises, or is appended to `gaps`.
        """
        offset = start
        while offset < end:
            found = self.whole(offset, end)
            if found is None:
                resumes = self.next_whole(offset + 1, end)
                if resumes is None:
                    return
                if gaps is None:
                    raise _damaged(self.path, offset, resumes)
                gaps.append((offset, resumes))
                offset = resumes
                continue
            if found[3] == _SESSION:
                self._session(offset, found)
            yield offset, found
            offset += found[2]

    def key(self, offset: int, found: _Fields) -> bytes:
        return self.read(offset + _HEAD_SIZE, found[6])

    def payload(self, offset: int, found: _Fields) -> bytes:
        variable = _HEAD_SIZE + found[5] + found[6] + found[7] + found[8]
        return self.read(offset + variable, found[2] - variable)

    def document(self, offset: int, found: _Fields) -> dict[str, object]:
        try:
            value = json.loads(self.payload(offset, found))
        except (ValueError, RecursionError):
            value = None
        return value if isinstance(value, dict) else {}

    def _session(self, offset: int, found: _Fields) -> None:
        clock = self.document(offset, found).get("clock")
        self.clocks.append((offset, float(clock) if isinstance(clock, int | float) else 0.0))

    def record(self, offset: int, found: _Fields) -> JournalRecord:
        data = self.read(offset, found[2])
        at = _HEAD_SIZE
        parts = []
        for size in (found[6], found[5], found[7], found[8]):
            parts.append(data[at : at + size])
            at += size
        session = bisect_right(self.clocks, (offset, 0.0)) - 1
        return JournalRecord(
            offset=offset,
            kind=KINDS[found[3] - 1],
            key_bytes=parts[0],
            turn=found[10],
            index=found[11],
            device=parts[1].decode("utf-8", "replace"),
            attempt=found[9],
            times=found[12:16],
            text=parts[2].decode("utf-8", "replace"),
            log_tail=parts[3].decode("utf-8", "replace"),
            payload=data[at:],
            clock=self.clocks[session][1] if session >= 0 else 0.0,
        )

    def begin(
        self, end: int, gaps: list[tuple[int, int]] | None = None
    ) -> tuple[dict[str, object], int] | None:
        """Reads the start of a file: the header and where it ends.

        None: its creation was interrupted, and so nothing was recorded.  A damaged header raises,
        or is appended to `gaps` and empty.
        """
        data = self.read(0, _PREAMBLE.size)
        if len(data) < _PREAMBLE.size:
            if _PREAMBLE_MAGIC.startswith(data[:8]) or data.startswith(_PREAMBLE_MAGIC):
                return None
            raise JournalError(f"{self.path}: not a journal of gpudispatch")
        magic, version, self.salt, _pid, _zero = _PREAMBLE.unpack(data)
        if magic != _PREAMBLE_MAGIC:
            if end < _HEADER_LIMIT and not any(self.read(0, end)):
                return None  # a power failure at creation
            raise JournalError(f"{self.path}: not a journal of gpudispatch")
        if version != FORMAT:
            raise _mismatch(self.path, "format", version, FORMAT)
        start = _PREAMBLE.size
        found = self.whole(start, end)
        if found is not None and found[3] == _HEADER:
            return self.document(start, found), start + found[2]
        head = self.read(start, _HEAD_SIZE)
        short = len(head) < 16 or struct.unpack_from("<Q", head, 8)[0] > end - start
        resumes = self.next_whole(start + 1, end)
        if resumes is None and (short or not any(head)) and end < _HEADER_LIMIT:
            return None
        if gaps is None or resumes is None:
            raise _damaged(self.path, start, resumes)
        gaps.append((start, resumes))
        return {}, resumes


# ---- the writer ----------------------------------------------------------------------------------


def _record(salt: int, offset: int, kind: int, payload: bytes) -> bytes:
    """Makes a record of this module's own: header or session."""
    body = _BODY.pack(_HEAD_SIZE + len(payload), kind, 0, 0, 0, 0, 0, 0, 0, 0, *NO_TIMES) + payload
    return _FRONT.pack(_MAGIC, crc32(body, (salt + offset) & 0xFFFFFFFF)) + body


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _sync_directory(path: str) -> None:
    fd = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system without it
            raise
    finally:
        os.close(fd)


def _lock(path: str) -> int:
    """Opens the file, creates it where it is missing, and takes the lock."""
    import fcntl  # not on Windows, where only the import of this module has to work

    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise JournalError(f"{path}: not a regular file")
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                data = os.pread(fd, _PREAMBLE.size, 0)
                whole = len(data) == _PREAMBLE.size and data.startswith(_PREAMBLE_MAGIC)
                pid = _PREAMBLE.unpack(data)[3] if whole else 0
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
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # fresh=True of another process has renamed it meanwhile


def _set_aside(path: str) -> str:
    """Renames the file to the first free PATH.1, PATH.2, ...  The caller holds its lock."""
    number = 1
    while os.path.lexists(f"{path}.{number}"):
        number += 1
    os.rename(path, f"{path}.{number}")
    return f"{path}.{number}"


class Journal:
    """The journal of one run, open for writing and locked."""

    def __init__(self, path: str, fd: int, redo: Iterable[str]) -> None:
        """For `open` alone."""
        self.path = path
        self.recorded = 0  # outcomes that the file holds, superseded ones too
        self.cut = 0  # bytes of a torn record that `open` cut
        self.set_aside: str | None = None  # where fresh=True has put the journal before
        self._fd = fd
        self._pid = os.getpid()
        self._file = _File(path, fd)
        self._end = 0
        self._synced = 0
        self._next_sync = 0.0
        self._failed: str | None = None
        self._redo = frozenset(_CODES[kind] for kind in (*redo, *NEVER_REPLAYED))
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
        is as it was.
        """
        path = os.fspath(path)
        if not isinstance(path, str):
            raise TypeError(f"journal is {path!r}, expected str or a path")
        if isinstance(redo, str):
            raise TypeError(f"redo is {redo!r}, expected a sequence of kinds")
        redo = tuple(redo)
        for kind in redo:
            if kind not in _CODES:
                raise ValueError(f"redo has {kind!r}, expected names of {', '.join(KINDS)}")
        fd = _lock(path)
        aside = None
        try:
            while fresh and os.fstat(fd).st_size > 0:
                aside = _set_aside(path)
                os.close(fd)  # the lock of the renamed file
                fd = -1
                fd = _lock(path)
            self = cls(path, fd, redo)
        except BaseException:
            if fd >= 0:
                os.close(fd)
            raise
        self.set_aside = aside
        try:
            self._begin(header)
        except BaseException:
            self._release()
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
            new = _PREAMBLE.pack(_PREAMBLE_MAGIC, FORMAT, salt, os.getpid(), 0)
            new += _record(salt, len(new), _HEADER, json.dumps(asdict(header)).encode())
            os.ftruncate(self._fd, 0)
            self._write([new], len(new), "the header")
        else:
            found, at = start
            for field in fields(header):
                mine = getattr(header, field.name)
                if found.get(field.name) != mine:
                    raise _mismatch(self.path, field.name, found.get(field.name), mine)
            self._end = self._scan(at, size)
            self.cut = size - self._end
            if self.cut:
                os.ftruncate(self._fd, self._end)
            os.pwrite(self._fd, struct.pack("<Q", os.getpid()), _PID_OFFSET)
        file.forget()
        file.clocks.append((self._end, time.time() - now))
        record = _record(file.salt, self._end, _SESSION, session)
        self._write([record], len(record), "the session")
        self.sync()
        if start is None:
            _sync_directory(self.path)

    def _scan(self, start: int, end: int) -> int:
        """Fills the index; returns where the last whole record ends."""
        file, index, later = self._file, self._index, self._later
        for offset, found in file.records(start, end):
            start = offset + found[2]
            kind, turn = found[3], found[10]
            if kind <= _HEADER or kind > len(KINDS):
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
        found = self._file.whole(offset, self._end)
        if found is None:
            raise _damaged(self.path, offset, None)
        if self._file.key(offset, found) != key:
            return turn, None
        return turn, self._file.record(offset, found)

    def append(
        self,
        key: bytes,
        turn: int,
        kind: str,
        payload: Buffer | list[Buffer],
        *,
        device: str = "",
        attempt: int = 1,
        times: Sequence[float] = NO_TIMES,
        index: int = 0,
        text: str = "",
        log_tail: str = "",
    ) -> None:
        """Appends one outcome.  `payload` is a frame as codec.encode returns it, or its bytes."""
        parts = payload if type(payload) is list else None
        if parts is not None:
            parts, size = _frame(parts)
        else:
            size = payload.nbytes if type(payload) is memoryview else len(payload)  # type: ignore[arg-type]
            if size >= _SMALL:
                parts = [payload]  # type: ignore[list-item]
        name = self._devices.get(device)
        if name is None:
            name = self._devices[device] = device.encode("utf-8", "replace")[:255]
        words = text.encode("utf-8", "replace") if text else b""
        tail = log_tail.encode("utf-8", "replace") if log_tail else b""
        size += _HEAD_SIZE + len(key) + len(name) + len(words) + len(tail)
        body = _BODY.pack(
            size, _CODES[kind], 0, len(name), len(key), len(words), len(tail), attempt, turn, index,
            *times,
        )  # fmt: skip
        end = self._end
        check = (self._file.salt + end) & 0xFFFFFFFF
        if parts is None:
            body = b"".join((body, key, name, words, tail, payload))  # type: ignore[arg-type]
            record = _FRONT.pack(_MAGIC, crc32(body, check)) + body
            if self._failed is not None:
                raise JournalError(self._failed)
            try:
                # Interrupts (Ctrl-C) arrive behind a call: the new end is set in the same try.
                if os.pwrite(self._fd, record, end) == size:
                    self._end = end + size
            except BaseException as error:
                self._settle(end, size, f"outcome {index}", error)
                raise
            if self._end == end:
                self._write([record], size, f"outcome {index}")  # a short write: once more, whole
        else:
            body = b"".join((body, key, name, words, tail))
            check = crc32(body, check)
            for part in parts:
                check = crc32(part, check)
            self._write([_FRONT.pack(_MAGIC, check) + body, *parts], size, f"outcome {index}")
        self.recorded += 1
        now = time.monotonic()
        if now >= self._next_sync:
            self.sync()

    def _write(self, parts: Sequence[Buffer], size: int, what: str) -> None:
        if self._failed is not None:
            raise JournalError(self._failed)
        end = self._end
        try:
            _write_all(self._fd, parts, end)
            self._end = end + size
        except BaseException as error:
            self._settle(end, size, what, error)
            raise

    def _settle(self, end: int, size: int, what: str, error: BaseException) -> None:
        """After a write that raised: keeps the record where it is whole, else cuts it."""
        self._end = end
        if self._fd >= 0:
            self._file.forget()
            try:
                if self._file.whole(end, os.fstat(self._fd).st_size):
                    self._end = end + size
                else:
                    os.ftruncate(self._fd, end)
            except OSError:
                pass  # the next reader cuts it
        if isinstance(error, OSError):
            self._fail(what, error)

    def _fail(self, what: str, error: OSError) -> None:
        if self._fd < 0:
            if self._pid != os.getpid():
                raise ForkedError(f"{self.path}: opened by process {self._pid}") from None
            raise ValueError(f"{self.path}: the journal is closed") from None
        remedy = ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            remedy = "; make room and run again"
        self._failed = (
            f"{self.path}: cannot write {what}: {error.strerror} (errno {error.errno}), "
            f"the {self.recorded} outcomes before it are recorded{remedy}"
        )
        raise JournalError(self._failed) from error

    def sync(self) -> None:
        """Waits until all records are on the disk."""
        end = self._end
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            self._fail("to the disk", error)
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
            if self._failed is None and self._synced != self._end:
                self.sync()
        finally:
            self._release()

    def _release(self) -> None:
        fd, self._fd = self._fd, -1
        self._file.fd = -1
        if fd >= 0:
            try:
                if os.pread(fd, 8, _PID_OFFSET) == struct.pack("<Q", os.getpid()):
                    os.pwrite(fd, bytes(8), _PID_OFFSET)
            except OSError:
                pass  # the pid is a hint, the lock is the truth
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self._release()


_journals: weakref.WeakSet[Journal] = weakref.WeakSet()


def _leave_in_child() -> None:
    """A forked child drops the journals: the lock belongs to the descriptor that both share."""
    for journal in list(_journals):
        fd, journal._fd = journal._fd, -1
        journal._file.fd = -1
        if fd >= 0:
            os.close(fd)


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


def _write_all(fd: int, parts: Sequence[Buffer], offset: int) -> None:
    """Writes all parts; a short write goes on behind its end, until the kernel names the error."""
    views = [view for part in parts if (view := memoryview(part).cast("B")).nbytes]
    while views:
        count = os.pwritev(fd, views[:_MAX_PARTS], offset)
        offset += count
        while views and count >= views[0].nbytes:
            count -= views.pop(0).nbytes
        if count:
            views[0] = views[0][count:]


# ---- readers -------------------------------------------------------------------------------------


def _outcomes(
    file: _File, start: int, end: int, gaps: list[tuple[int, int]] | None = None
) -> Iterator[tuple[int, _Fields]]:
    for offset, found in file.records(start, end, gaps):
        if _HEADER < found[3] <= len(KINDS):
            yield offset, found


def read_journal(
    path: str | os.PathLike[str],
    *,
    history: bool = False,
    damaged: Literal["raise", "skip"] = "raise",
) -> Iterator[JournalRecord]:
    """Yields the outcomes of a journal in the order of the file, also while a writer has it open.

    An outcome that a later one of the same item supersedes is left out; `history=True` yields it
    too.  Ends with the last whole record that the file had at the call.  Damage raises
    JournalDamaged before anything is yielded (with `history=True` where it is reached);
    `damaged="skip"` leaves it out.
    """
    if damaged not in ("raise", "skip"):
        raise ValueError(f"damaged is {damaged!r}, expected 'raise' or 'skip'")
    path = os.fspath(path)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        file = _File(path, fd)
        end = os.fstat(fd).st_size
        gaps: list[tuple[int, int]] | None = None if damaged == "raise" else []
        begun = file.begin(end, gaps) if end else None
        if begun is None:
            return
        start = begun[1]
        last: dict[tuple[int, int], int] | None = None
        if not history:
            last = {}
            upto = start
            for offset, found in _outcomes(file, start, end, gaps):
                last[hash(file.key(offset, found)), found[10]] = offset
                upto = offset + found[2]
            file.clocks.clear()
            file.forget()
            end = upto  # a record that the writer was writing may be whole by now
        for offset, found in _outcomes(file, start, end, gaps):
            if last is None or last[hash(file.key(offset, found)), found[10]] == offset:
                yield file.record(offset, found)
    finally:
        os.close(fd)


def salvage(path: str | os.PathLike[str], to: str | os.PathLike[str]) -> list[tuple[int, int]]:
    """Copies the whole records of a damaged journal to a new file, which a rerun can go on with.

    Returns the damaged ranges (start, end) of the old file; a torn end is the last one.
    """
    path, to = os.fspath(path), os.fspath(to)
    gaps: list[tuple[int, int]] = []
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        file = _File(path, source)
        size = os.fstat(source).st_size
        begun = file.begin(size) if size else None
        if begun is None:
            raise JournalError(f"{path}: holds no header and no record")
        target = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            at = os.pwrite(target, _PREAMBLE.pack(_PREAMBLE_MAGIC, FORMAT, file.salt, 0, 0), 0)
            stop = _PREAMBLE.size
            for offset, found in file.records(stop, size, gaps):
                stop = offset + found[2]
                body = file.read(offset + _FRONT.size, found[2] - _FRONT.size)
                check = crc32(body, (file.salt + at) & 0xFFFFFFFF)
                _write_all(target, [_FRONT.pack(_MAGIC, check), body], at)
                at += found[2]
            os.fsync(target)
        finally:
            os.close(target)
        _sync_directory(to)
        if stop < size:
            gaps.append((stop, size))
        return gaps
    finally:
        os.close(source)


# ---- python -m gpudispatch.journal ---------------------------------------------------------------


class _Plain(pickle.Unpickler):
    """Loads values of built-in types only: to look at a journal runs no code of its values."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name}")


_REPR_LIMIT: Final = 1000


def _is_json(value: object) -> bool:
    if value is None or isinstance(value, bool | str):
        return True
    if isinstance(value, int):
        return abs(value) < 1 << 256
    if isinstance(value, float):
        return value - value == 0
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_json(value[name]) for name in value)
    return False


def _show(line: dict[str, object], name: str, value: object) -> None:
    """Puts a value into a line: as JSON where it is, else its repr under NAME_repr."""
    try:
        if _is_json(value):
            line[name] = value
            return
        text = repr(value)
    except Exception as error:  # repr of user code; recursion in a value that contains itself
        text = f"<{type(value).__name__}: {type(error).__name__}>"
    if len(text) > _REPR_LIMIT:
        text = f"{text[:_REPR_LIMIT]}... ({len(text)} characters)"
    line[name + "_repr"] = text


def _plain(data: bytes) -> object:
    from io import BytesIO

    return _Plain(BytesIO(data)).load()


def _show_value(line: dict[str, object], record: JournalRecord, load: bool) -> None:
    frame = record.payload
    try:
        if load:
            _show(line, "value", record.value)
        elif frame and not frame[0] & 15:
            _show(line, "value", frame[1:])
        elif frame and frame[0] & 15 == 1:
            _show(line, "value", _plain(frame[1:]))
        else:
            line["value_repr"] = f"<{len(frame)} bytes with buffers; --load shows it>"
    except Exception as error:
        reason = str(error) or type(error).__name__
        hint = "" if load else "; --load shows it"
        line["value_repr"] = f"<{len(frame)} bytes: {reason}{hint}>"


def _error(record: JournalRecord) -> dict[str, object] | None:
    if record.ok:
        return None
    error: dict[str, object] = {"type": None, "text": record.text or None, "traceback": None}
    try:
        value = _plain(record.payload[1:])
        if isinstance(value, tuple):
            error.update(zip(error, map(str, value[:3]), strict=True))
    except Exception:
        pass  # no frame: the text is what there is
    return error


def _date(seconds: float) -> str | None:
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    except (ValueError, OverflowError, OSError):
        return None


def as_json(record: JournalRecord, *, load: bool = False) -> str:
    """Returns one line of JSON for a record; `load=True` unpickles values of all types."""
    line: dict[str, object] = {"index": record.index}
    key = record.key
    if record.key_bytes[:1] == _KEY_PICKLE:
        try:
            _show(line, "key", _plain(record.key_bytes[1:]))
        except Exception:
            line["key_repr"] = f"pickle {record.key_bytes[1:].hex()}"
    elif record.key_bytes[:1] == _KEY_DIGEST:
        line["key_repr"] = f"sha256 {record.key_bytes[1:].hex()}"
    else:
        _show(line, "key", key)
    line.update(turn=record.turn, ok=record.ok, kind=record.kind)
    if record.ok:
        _show_value(line, record, load)
    line.update(
        error=_error(record),
        text=record.text,
        log_tail=record.log_tail,
        device=record.device,
        attempt=record.attempt,
        times=dict(zip(("queued", "sent", "started", "ended"), record.times, strict=True)),
        ended_at=None if record.ended_at is None else _date(record.ended_at),
    )
    if not _is_json(line["times"]):
        line["times"] = None
    return json.dumps(line)


def _summary(path: str) -> tuple[list[str], bool]:
    """Returns the lines about a journal and whether it is whole."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        file = _File(path, fd)
        size = os.fstat(fd).st_size
        begun = file.begin(size) if size else None
        if begun is None:
            return [f"{path}: empty, nothing recorded"], True
        header, start = begun
        kinds: dict[tuple[int, int], int] = {}
        outcomes = sessions = 0
        first = last = 0.0
        damage = None
        stop = start
        try:
            for offset, found in file.records(start, size):
                stop = offset + found[2]
                if found[3] == _SESSION:
                    sessions += 1
                elif _HEADER < found[3] <= len(KINDS):
                    outcomes += 1
                    kinds[hash(file.key(offset, found)), found[10]] = found[3]
                    if found[15] > 0 and file.clocks:
                        last = found[15] + file.clocks[-1][1]
                        first = first or last
        except JournalDamaged as error:
            damage = str(error)
        lines = [f"{path}: {outcomes} outcomes of {len(kinds)} items, {sessions} sessions"]
        counts = [(name, list(kinds.values()).count(code)) for name, code in _CODES.items()]
        lines += [f"  {name:<10} {count}" for name, count in counts if count]
        lines += [f"  {name:<10} {header.get(name)}" for name in header]
        if first:
            lines.append(f"  {'ended':<10} {_date(first)} to {_date(last)}")
        pid = _PREAMBLE.unpack(file.read(0, _PREAMBLE.size))[3]
        if pid and _alive(pid):
            lines.append(f"  {'writer':<10} process {pid}")
        if damage is not None:
            lines.append(f"  {'damaged':<10} {damage}")
        elif stop < size:
            lines.append(f"  {'torn':<10} {size - stop} bytes at the end, a rerun cuts them")
        return lines, damage is None
    finally:
        os.close(fd)


def main(argv: Sequence[str] | None = None) -> int:
    """The program.  Returns its exit code."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m gpudispatch.journal",
        description="Shows a journal of outcomes, also while a run writes it.",
        epilog="exit code: 0 whole, 1 damaged, 2 usage, 3 not readable or no journal",
    )
    parser.add_argument("file")
    parser.add_argument("--jsonl", action="store_true", help="one JSON object per outcome")
    parser.add_argument("--history", action="store_true", help="superseded outcomes, too")
    parser.add_argument(
        "--load", action="store_true", help="unpickle values of all types: this can run their code"
    )
    parser.add_argument("--skip-damaged", action="store_true", help="leave out what is damaged")
    parser.add_argument("--salvage", metavar="NEW", help="copy the whole records to a new journal")
    options = parser.parse_args(argv)
    try:
        if options.salvage is not None:
            gaps = salvage(options.file, options.salvage)
            for start, end in gaps:
                print(f"{options.file}: bytes {start} to {end} are damaged, left out")
            return 0
        if not options.jsonl:
            lines, whole = _summary(options.file)
            print("\n".join(lines))
            return 0 if whole else 1
        records = read_journal(
            options.file,
            history=options.history,
            damaged="skip" if options.skip_damaged else "raise",
        )
        for record in records:
            print(as_json(record, load=options.load))
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # head has seen enough; nothing is left to flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except JournalDamaged as error:
        print(error, file=sys.stderr)
        return 1
    except (JournalError, OSError) as error:
        print(error, file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
