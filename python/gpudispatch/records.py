# SPDX-License-Identifier: MIT
"""The file of a journal: its records, and how they are read (journal.py writes them).

Little endian.  It starts with 32 bytes: b"gpudjrn\\n", u32 format, u32 salt, u64 process id of the
writer or 0, u64 0.  Records follow one another:

    4s magic  u32 crc32  u64 size of the record  u8 kind  u8 0  u16 device size  u32 key size
    u32 text size  u32 log tail size  u32 attempt  u32 turn  i64 index  4 x i64 times  i64 clock
    key, device, text, log tail, payload (the rest of the record)

The checksum covers the record behind it, seeded with salt + offset: the copy of a journal inside a
result, or a block of an older file, is never taken for a record.  Times are nanoseconds of the
monotonic clock: queued, sent, started, ended; `clock` is what makes nanoseconds since 1970 of them.
A record of kind 0 starts each session: its payload is JSON, what the journal belongs to.  The
payload of an outcome is a frame (codec.py), a value or an error.

Bytes behind the last whole record are torn: `Journal.open` cuts them.  Bytes that are no whole
record while one follows them are damage: JournalDamaged names the offset, and nothing is changed.
A journal is trusted as a pickle is: read only files that you or your programs wrote.
"""

from __future__ import annotations

import errno
import json
import os
import struct
from dataclasses import dataclass
from io import FileIO
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from zlib import crc32

from . import codec
from .errors import GpuDispatchError, JournalMismatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .codec import Buffer

FORMAT: Final = 2
SESSION: Final = 0
KINDS: Final = (
    "success", "error", "timeout", "crash", "device", "oom", "cancelled", "no_worker",
)  # fmt: skip
CODES: Final = {name: code for code, name in enumerate(("session", *KINDS))}

_PREAMBLE: Final = struct.Struct("<8sIIQQ")
_FILE_MAGIC: Final = b"gpudjrn\n"
_PID_OFFSET: Final = 16
_MAGIC: Final = b"\xabgdr"
_FRONT: Final = struct.Struct("<4sI")
BODY: Final = struct.Struct("<QBxHIIIIIq4qq")
_HEAD: Final = struct.Struct(_FRONT.format + BODY.format[1:])
HEAD_SIZE: Final = _HEAD.size

WINDOW: Final = 1 << 16  # bytes that one read takes from the file
_GLANCE: Final = 512  # most records are smaller

# The first byte of a key: what the rest is.
KEY_BYTES, KEY_STR, KEY_INT, KEY_PICKLE, KEY_DIGEST = b"\0", b"\1", b"\2", b"\3", b"\4"
KEY_CLASS = b"\5"  # the size of a class's name in one byte, the name, and a key of the above


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
    times: tuple[float, float, float, float]
    text: str
    log_tail: str
    payload: bytes
    clock: float

    @property
    def ok(self) -> bool:
        return self.kind == "success"

    @property
    def name(self) -> str:
        """The class of the item, in the journal of a Pool; "" in that of an Executor."""
        return split_key(self.key_bytes)[0]

    @property
    def key(self) -> bytes | str | int:
        """The key: bytes, str or int; of other items the pickle, of long ones the SHA-256."""
        form, key = split_key(self.key_bytes)[1:]
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


def class_key(name: str) -> bytes:
    """What stands before the keys of a class."""
    told = name.encode()
    return KEY_CLASS + bytes([len(told)]) + told


def split_key(key: bytes) -> tuple[str, bytes, bytes]:
    """The class, the form, and the rest of a key."""
    name = ""
    if key[:1] == KEY_CLASS and len(key) > 1:
        end = 2 + key[1]
        name, key = key[2:end].decode("utf-8", "replace"), key[end:]
    return name, key[:1], key[1:]


class Head(NamedTuple):
    """The numbers of a record, in their order."""

    magic: bytes
    check: int
    size: int
    kind: int
    device_size: int
    key_size: int
    text_size: int
    tail_size: int
    attempt: int
    turn: int
    place: int
    queued: int
    sent: int
    started: int
    ended: int
    clock: int


def preamble(salt: int) -> bytes:
    return _PREAMBLE.pack(_FILE_MAGIC, FORMAT, salt, 0, 0)


def front(seed: int, first: Buffer, *rest: Buffer) -> bytes:
    """The start of the record whose rest these are; `seed` is salt + offset."""
    check = crc32(first, seed & 0xFFFFFFFF)
    for part in rest:
        check = crc32(part, check)
    return _FRONT.pack(_MAGIC, check)


class RecordFile(FileIO):
    """The file as records.  Total: any bytes are records, nothing, or a JournalError.

    A dropped one closes without a warning: an interrupt can arrive before its opener has a name
    for it.
    """

    __del__ = FileIO.close

    def __init__(self, path: str, mode: str = "r") -> None:
        super().__init__(path, mode)
        self.path = path
        self.salt = 0
        self.stop = 0  # where the last record ends that records() has come to
        self._start = 0
        self._window = b""

    def size(self) -> int:
        return os.fstat(self.fileno()).st_size

    def forget(self) -> None:
        """Drops what was read: the bytes behind the last whole record change."""
        self._window = b""

    def bytes_at(self, offset: int, size: int) -> bytes:
        """Returns the bytes there, fewer where the file ends."""
        at = offset - self._start
        if at >= 0 and at + size <= len(self._window):
            return self._window[at : at + size]
        if size > WINDOW:
            parts = []
            while size > 0 and (part := os.pread(self.fileno(), min(size, 1 << 30), offset)):
                parts.append(part)
                offset += len(part)
                size -= len(part)
            return b"".join(parts)
        self._window = os.pread(self.fileno(), WINDOW, offset)
        self._start = offset
        return self._window[:size]

    def writer(self) -> int:
        """The process that has written its id into the file, 0 where none has."""
        data = self.bytes_at(0, _PREAMBLE.size)
        whole = len(data) == _PREAMBLE.size and data.startswith(_FILE_MAGIC)
        return int(_PREAMBLE.unpack(data)[3]) if whole else 0

    def set_writer(self, pid: int) -> None:
        os.pwrite(self.fileno(), struct.pack("<Q", pid), _PID_OFFSET)

    def whole(self, offset: int, end: int) -> tuple[Head, bytes] | None:
        """Returns the record there, None where no whole one is: its head, and its bytes as far as
        one read takes them, perhaps with some behind it."""
        data = self.bytes_at(offset, min(_GLANCE, end - offset))
        if len(data) < HEAD_SIZE or not data.startswith(_MAGIC):
            return None
        head = Head._make(_HEAD.unpack_from(data))
        size = head.size
        if not HEAD_SIZE <= size <= end - offset or head.kind > len(KINDS):
            return None
        if size > len(data):
            data = self.bytes_at(offset, min(size, WINDOW))
        check = crc32(data[_FRONT.size : size], (self.salt + offset) & 0xFFFFFFFF)
        done = len(data)
        while done < size and (part := self.bytes_at(offset + done, min(size - done, WINDOW))):
            check = crc32(part, check)
            done += len(part)
        return (head, data) if check == head.check and done >= size else None

    def next_whole(self, offset: int, end: int) -> int | None:
        """Returns where the first whole record at or after `offset` starts."""
        while offset + HEAD_SIZE <= end:
            part = self.bytes_at(offset, WINDOW)
            at = part.find(_MAGIC)
            if at >= 0:
                if self.whole(offset + at, end) is not None:
                    return offset + at
                offset += at + 1
            elif len(part) < len(_MAGIC):
                return None  # the file is shorter by now
            else:
                offset += len(part) - len(_MAGIC) + 1
        return None

    def is_torn(self, offset: int, end: int) -> bool:
        """Whether the bytes there are what an interrupted write leaves: a beginning, or zeros."""
        data = self.bytes_at(offset, min(HEAD_SIZE, end - offset))
        if not data.startswith(_MAGIC[: len(data)]):
            return not any(data)
        return len(data) < HEAD_SIZE or Head._make(_HEAD.unpack(data)).size > end - offset

    def records(
        self, start: int, end: int, gaps: list[tuple[int, int]] | None = None
    ) -> Iterator[tuple[int, Head, int]]:
        """Yields the whole records of a range: offset, head, and what stands for the item, 64 bits
        and not a digest.  Ends before what is torn.

        Damage before a whole record raises, or is appended to `gaps`.
        """
        self.stop = offset = start
        while offset < end:
            found = self.whole(offset, end)
            if found is not None:
                head, data = found
                yield offset, head, hash(data[HEAD_SIZE : HEAD_SIZE + head.key_size]) + head.turn
                self.stop = offset = offset + head.size
                continue
            resumes = self.next_whole(offset + 1, end)
            if resumes is None:
                return
            if gaps is None:
                raise damaged_error(self.path, offset, resumes)
            gaps.append((offset, resumes))
            offset = resumes

    def outcome(self, offset: int, end: int) -> JournalRecord:
        """Reads an outcome again."""
        found = self.whole(offset, end)
        if found is None:
            raise damaged_error(self.path, offset, None)
        head, data = found
        if len(data) < head.size:
            data = self.bytes_at(offset, head.size)
        (_, _, size, kind, device_size, key_size, text_size, tail_size, attempt, turn, index,
         queued, sent, started, ended, clock) = head  # fmt: skip
        device = HEAD_SIZE + key_size
        text = device + device_size
        tail = text + text_size
        payload = tail + tail_size
        return JournalRecord(
            offset,
            KINDS[kind - 1],
            data[HEAD_SIZE:device],
            turn,
            index,
            data[device:text].decode("utf-8", "replace"),
            attempt,
            (queued / 1e9, sent / 1e9, started / 1e9, ended / 1e9),
            data[text:tail].decode("utf-8", "replace"),
            data[tail:payload].decode("utf-8", "replace"),
            data[payload:size],
            clock / 1e9,
        )

    def begin(
        self, end: int, gaps: list[tuple[int, int]] | None = None
    ) -> tuple[dict[str, str], int] | None:
        """Reads what the journal belongs to; returns it and where the records start.

        None: its creation was interrupted, and so nothing was recorded.  A damaged first record
        raises, or counts as an empty one where `gaps` takes it.
        """
        small = end <= WINDOW
        if small and not any(self.bytes_at(0, end)):
            return None  # empty, or a power failure at creation
        start = _PREAMBLE.size
        data = self.bytes_at(0, start)
        if data[:8] != _FILE_MAGIC[: len(data)]:
            raise JournalError(f"{self.path}: not a journal of gpudispatch")
        if len(data) < start:
            return None
        _, version, self.salt, _, _ = _PREAMBLE.unpack(data)
        if version != FORMAT:
            raise mismatch_error(self.path, "format", version, FORMAT)
        first = next(self.records(start, end, None if gaps is None else []), None)
        if first is not None:
            return self.document(*first[:2]), start
        if small and self.is_torn(start, end):
            return None
        raise damaged_error(self.path, start, None)

    def document(self, offset: int, head: Head) -> dict[str, str]:
        """What a session belongs to; {} for another record."""
        if head.kind != SESSION:
            return {}
        try:
            value = json.loads(self.bytes_at(offset + HEAD_SIZE, head.size - HEAD_SIZE))
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            return {}
        return {name: text for name, text in value.items() if isinstance(text, str)}


def read_journal(
    path: str | os.PathLike[str],
    *,
    history: bool = False,
    damaged: Literal["raise", "skip"] = "raise",
) -> Iterator[JournalRecord]:
    """Yields the outcomes of a journal in the order of the file, also while a writer has it open.

    An outcome that a later one of the same item supersedes is left out; `history=True` yields it
    too.  Ends with the last whole record that the file had when the first one was asked for.
    Damage raises JournalDamaged before anything is yielded; `damaged="skip"` leaves it out.
    """
    if damaged not in ("raise", "skip"):
        raise ValueError(f"damaged is {damaged!r}, expected 'raise' or 'skip'")
    with RecordFile(os.fspath(path)) as file:
        end = file.size()
        gaps: list[tuple[int, int]] | None = None if damaged == "raise" else []
        begun = file.begin(end, gaps)
        if begun is None:
            return
        found: dict[int, int] = {}
        for offset, head, item in file.records(begun[1], end, gaps):
            if head.kind != SESSION:
                found[offset if history else item] = offset
        for offset in sorted(found.values()):
            yield file.outcome(offset, end)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


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
    with RecordFile(path) as file:
        size = file.size()
        begun = file.begin(size)
        if begun is None:
            raise JournalError(f"{path}: holds no header and no record")
        with open(to, "xb") as target:
            target.write(preamble(file.salt))
            for offset, head, _ in file.records(begun[1], size, gaps):
                body = file.bytes_at(offset + _FRONT.size, head.size - _FRONT.size)
                target.write(front(file.salt + target.tell(), body) + body)
            target.flush()
            os.fsync(target.fileno())
        sync_directory(to)
    if file.stop < size:
        gaps.append((file.stop, size))
    return gaps
