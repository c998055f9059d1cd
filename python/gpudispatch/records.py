# SPDX-License-Identifier: MIT
"""The file of a journal: its records, and how they are read (journal.py writes them).

Little endian.  It starts with 32 bytes: b"gpudjrn\\n", u32 format, u32 salt, u64 process id of the
writer or 0, u64 0.  Records follow one another:

    4s magic  u32 crc32  u64 size of the record  u8 kind  u8 flags  u16 device size  u32 key size
    u32 text size  u32 log tail size  u32 attempt  u32 turn  i64 index  4 x i64 times
    key, device, text, log tail, payload (the rest of the record)

The checksum covers the record behind it, seeded with salt + offset: the copy of a journal inside a
result, or a block of an older file, is never taken for a record.  Times are nanoseconds of the
monotonic clock: queued, sent, started, ended.  The first record (kind 0) is the
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
import struct
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal
from zlib import crc32

from . import codec
from .errors import GpuDispatchError, JournalMismatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .codec import Buffer

FORMAT: Final = 1
KINDS: Final = (
    "success", "error", "timeout", "crash", "device", "oom", "cancelled", "no_worker",
)  # fmt: skip
NO_TIMES: Final = (0, 0, 0, 0)

PREAMBLE: Final = struct.Struct("<8sIIQQ")
FILE_MAGIC: Final = b"gpudjrn\n"
PID_OFFSET: Final = 16
FRONT: Final = struct.Struct("<4sI")
BODY: Final = struct.Struct("<QBBHIIIIIq4q")
_HEAD: Final = struct.Struct("<4sIQBBHIIIIIq4q")
MAGIC: Final = b"\xabgdr"
HEADER: Final = 0
SESSION: Final = 15
CODES: Final = {name: code for code, name in enumerate(KINDS, 1)}
HEAD_SIZE: Final = _HEAD.size
assert FRONT.size + BODY.size == HEAD_SIZE

_WINDOW: Final = 1 << 16  # bytes that one read takes from the file
_MAX_PARTS: Final = 512  # well below IOV_MAX
_CREATION_LIMIT: Final = 1 << 16  # a file whose creation was interrupted is smaller

# The first byte of a key: what the rest is.
KEY_BYTES, KEY_STR, KEY_INT, KEY_PICKLE, KEY_DIGEST = b"\0", b"\1", b"\2", b"\3", b"\4"

Times = tuple[float, float, float, float]

# Places in a head that was read.
CHECK: Final = 1
SIZE: Final = 2
KIND: Final = 3
DEVICE_SIZE: Final = 5
KEY_SIZE: Final = 6
TEXT_SIZE: Final = 7
TAIL_SIZE: Final = 8
ATTEMPT: Final = 9
TURN: Final = 10
INDEX: Final = 11
ENDED: Final = 15


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


def damaged_error(path: str, offset: int, resumes: int | None) -> JournalDamaged:
    text = f"{path}: the record at offset {offset} is damaged"
    if resumes is not None:
        text += (
            f", whole records follow from offset {resumes}; "
            f"python -m gpudispatch.journal {path} --salvage NEW copies the whole ones"
        )
    return JournalDamaged(text, offset=offset, resumes=resumes)


def mismatch_error(path: str, field: str, was: object, now: object) -> JournalMismatch:
    return JournalMismatch(
        f"{path}: the journal has {field} {was!r}, this run has {now!r}; "
        "give another path, or fresh=True to start anew",
        field=field,
        was=str(was),
        now=str(now),
    )


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
            if form == KEY_STR:
                return key.decode("utf-8", "surrogatepass")
            if form == KEY_INT:
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


Fields = tuple[bytes, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int]


class RecordFile:
    """Reads records; total: any bytes give records, None or JournalError."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd
        self.salt = 0
        self._start = 0
        self._window = b""
        self._devices: dict[bytes, str] = {}
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

    def whole(self, offset: int, end: int) -> Fields | None:
        """Returns the head of the record there, None where no whole record is."""
        head = self.read(offset, HEAD_SIZE)
        if len(head) < HEAD_SIZE or not head.startswith(MAGIC):
            return None
        found: Fields = _HEAD.unpack(head)
        size = found[SIZE]
        if (
            size > end - offset
            or found[DEVICE_SIZE] + found[KEY_SIZE] + found[TEXT_SIZE] + found[TAIL_SIZE]
            > size - HEAD_SIZE
        ):
            return None
        check = (self.salt + offset) & 0xFFFFFFFF
        at, stop = offset + 8, offset + size
        while at < stop:
            part = self.read(at, min(stop - at, _WINDOW))
            if not part:
                return None
            check = crc32(part, check)
            at += len(part)
        return found if check == found[CHECK] else None

    def next_whole(self, offset: int, end: int) -> int | None:
        """Returns where the first whole record at or after `offset` starts."""
        while offset < end:
            part = self.read(offset, _WINDOW)
            at = part.find(MAGIC)
            if at >= 0:
                if self.whole(offset + at, end) is not None:
                    return offset + at
                offset += at + 1
            elif len(part) < len(MAGIC):
                break
            else:
                offset += len(part) - len(MAGIC) + 1
        return None

    def is_torn(self, offset: int, end: int) -> bool:
        """Whether the bytes there are what an interrupted write leaves: a beginning, or zeros."""
        head = self.read(offset, min(HEAD_SIZE, end - offset))
        if not head.startswith(MAGIC[: len(head)]):
            return not any(head)
        return len(head) < HEAD_SIZE or _HEAD.unpack(head)[SIZE] > end - offset

    def records(
        self, start: int, end: int, gaps: list[tuple[int, int]] | None = None
    ) -> Iterator[tuple[int, Fields]]:
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
                    raise damaged_error(self.path, offset, resumes)
                gaps.append((offset, resumes))
                offset = resumes
                continue
            if found[KIND] == SESSION:
                self._session(offset, found)
            yield offset, found
            offset += found[SIZE]

    def key(self, offset: int, found: Fields) -> bytes:
        return self.read(offset + HEAD_SIZE, found[KEY_SIZE])

    def payload(self, offset: int, found: Fields) -> bytes:
        variable = (
            HEAD_SIZE + found[DEVICE_SIZE] + found[KEY_SIZE] + found[TEXT_SIZE] + found[TAIL_SIZE]
        )
        return self.read(offset + variable, found[SIZE] - variable)

    def document(self, offset: int, found: Fields) -> dict[str, object]:
        try:
            value = json.loads(self.payload(offset, found))
        except (ValueError, RecursionError):
            value = None
        return value if isinstance(value, dict) else {}

    def _session(self, offset: int, found: Fields) -> None:
        clock = self.document(offset, found).get("clock")
        self.clocks.append((offset, float(clock) if isinstance(clock, int | float) else 0.0))

    def again(self, offset: int) -> tuple[Fields, bytes] | None:
        """Reads a record that was whole before, all of it at once."""
        at = offset - self._start
        if at < 0 or at + HEAD_SIZE > len(self._window):
            self.read(offset, HEAD_SIZE)
            at = 0
        window = self._window
        if len(window) - at < HEAD_SIZE:
            return None
        found: Fields = _HEAD.unpack_from(window, at)
        size = found[SIZE]
        data = window[at : at + size]
        if len(data) < size:
            found_again = self.whole(offset, offset + size)
            return None if found_again is None else (found_again, self.read(offset, size))
        if found[0] != MAGIC or found[CHECK] != crc32(data[8:], (self.salt + offset) & 0xFFFFFFFF):
            return None
        return found, data

    def record(self, offset: int, found: Fields, data: bytes) -> JournalRecord:
        (_, _, _, kind, _, device_size, key_size, text_size, tail_size, attempt, turn, index,
         queued, sent, started, ended) = found  # fmt: skip
        key_end = HEAD_SIZE + key_size
        at = key_end + device_size
        name = data[key_end:at]
        device = self._devices.get(name)
        if device is None:
            device = self._devices[name] = name.decode("utf-8", "replace")
        text = log_tail = ""
        if text_size or tail_size:
            text = data[at : at + text_size].decode("utf-8", "replace")
            at += text_size
            log_tail = data[at : at + tail_size].decode("utf-8", "replace")
            at += tail_size
        session = bisect_right(self.clocks, (offset, 0.0)) - 1
        return JournalRecord(
            offset,
            KINDS[kind - 1],
            data[HEAD_SIZE:key_end],
            turn,
            index,
            device,
            attempt,
            (queued / 1e9, sent / 1e9, started / 1e9, ended / 1e9),
            text,
            log_tail,
            data[at:],
            self.clocks[session][1] if session >= 0 else 0.0,
        )

    def begin(
        self, end: int, gaps: list[tuple[int, int]] | None = None
    ) -> tuple[dict[str, object], int] | None:
        """Reads the start of a file: the header and where it ends.

        None: its creation was interrupted, and so nothing was recorded.  A damaged header raises,
        or is appended to `gaps` and empty.
        """
        data = self.read(0, PREAMBLE.size)
        if len(data) < PREAMBLE.size:
            if FILE_MAGIC.startswith(data[:8]) or data.startswith(FILE_MAGIC):
                return None
            raise JournalError(f"{self.path}: not a journal of gpudispatch")
        magic, version, self.salt, _pid, _zero = PREAMBLE.unpack(data)
        if magic != FILE_MAGIC:
            if end < _CREATION_LIMIT and not any(self.read(0, end)):
                return None  # a power failure at creation
            raise JournalError(f"{self.path}: not a journal of gpudispatch")
        if version != FORMAT:
            raise mismatch_error(self.path, "format", version, FORMAT)
        start = PREAMBLE.size
        found = self.whole(start, end)
        if found is not None and found[KIND] == HEADER:
            return self.document(start, found), start + found[SIZE]
        head = self.read(start, HEAD_SIZE)
        short = len(head) < 16 or struct.unpack_from("<Q", head, 8)[0] > end - start
        resumes = self.next_whole(start + 1, end)
        if resumes is None and (short or not any(head)) and end < _CREATION_LIMIT:
            return None
        if gaps is None or resumes is None:
            raise damaged_error(self.path, start, resumes)
        gaps.append((start, resumes))
        return {}, resumes


def _outcomes(
    file: RecordFile, start: int, end: int, gaps: list[tuple[int, int]] | None = None
) -> Iterator[tuple[int, Fields]]:
    for offset, found in file.records(start, end, gaps):
        if HEADER < found[KIND] <= len(KINDS):
            yield offset, found


def read_journal(
    path: str | os.PathLike[str],
    *,
    history: bool = False,
    damaged: Literal["raise", "skip"] = "raise",
) -> Iterator[JournalRecord]:
    """Yields the outcomes of a journal in the order of the file, also while a writer has it open.

    An outcome that a later one of the same item supersedes is left out; `history=True` yields it
    too.  Ends with the last whole record that the file had when the first one was asked for.
    Damage raises JournalDamaged before anything is yielded (with `history=True` where it is
    reached); `damaged="skip"` leaves it out.
    """
    if damaged not in ("raise", "skip"):
        raise ValueError(f"damaged is {damaged!r}, expected 'raise' or 'skip'")
    path = os.fspath(path)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        file = RecordFile(path, fd)
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
                last[hash(file.key(offset, found)), found[TURN]] = offset
                upto = offset + found[SIZE]
            file.clocks.clear()
            file.forget()
            end = upto  # a record that the writer was writing may be whole by now
        for offset, found in _outcomes(file, start, end, gaps):
            if last is None or last[hash(file.key(offset, found)), found[TURN]] == offset:
                yield file.record(offset, found, file.read(offset, found[SIZE]))
    finally:
        os.close(fd)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def write_all(fd: int, parts: Sequence[Buffer], offset: int) -> int:
    """Writes all parts; a short write goes on behind its end, until the kernel names the error."""
    if len(parts) == 1 and type(parts[0]) is bytes:
        size = len(parts[0])
        if os.pwrite(fd, parts[0], offset) == size:
            return size
    views = [view for part in parts if (view := memoryview(part).cast("B")).nbytes]
    start = offset
    while views:
        count = os.pwritev(fd, views[:_MAX_PARTS], offset)
        offset += count
        while views and count >= views[0].nbytes:
            count -= views.pop(0).nbytes
        if count:
            views[0] = views[0][count:]
    return offset - start


def sync_directory(path: str) -> None:
    fd = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system without it
            raise
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
        file = RecordFile(path, source)
        size = os.fstat(source).st_size
        begun = file.begin(size) if size else None
        if begun is None:
            raise JournalError(f"{path}: holds no header and no record")
        target = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            at = os.pwrite(target, PREAMBLE.pack(FILE_MAGIC, FORMAT, file.salt, 0, 0), 0)
            stop = PREAMBLE.size
            for offset, found in file.records(stop, size, gaps):
                stop = offset + found[SIZE]
                body = file.read(offset + FRONT.size, found[SIZE] - FRONT.size)
                check = crc32(body, (file.salt + at) & 0xFFFFFFFF)
                write_all(target, [FRONT.pack(MAGIC, check), body], at)
                at += found[SIZE]
            os.fsync(target)
        finally:
            os.close(target)
        sync_directory(to)
        if stop < size:
            gaps.append((stop, size))
        return gaps
    finally:
        os.close(source)
