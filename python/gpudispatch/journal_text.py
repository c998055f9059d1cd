# SPDX-License-Identifier: MIT
"""`python -m gpudispatch.journal`: a journal as text or JSON lines."""

from __future__ import annotations

import argparse
import json
import os
import pickle
import sys
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from .records import (
    CODES,
    ENDED,
    HEADER,
    KEY_DIGEST,
    KEY_PICKLE,
    KIND,
    KINDS,
    PREAMBLE,
    SESSION,
    SIZE,
    TURN,
    JournalDamaged,
    JournalError,
    JournalRecord,
    RecordFile,
    is_alive,
    read_journal,
    salvage,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    except (ValueError, OverflowError, OSError):
        return None


def as_json(record: JournalRecord, *, load: bool = False) -> str:
    """Returns one line of JSON for a record; `load=True` unpickles values of all types."""
    line: dict[str, object] = {"index": record.index}
    key = record.key
    if record.key_bytes[:1] == KEY_PICKLE:
        try:
            _show(line, "key", _plain(record.key_bytes[1:]))
        except Exception:
            line["key_repr"] = f"pickle {record.key_bytes[1:].hex()}"
    elif record.key_bytes[:1] == KEY_DIGEST:
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
        file = RecordFile(path, fd)
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
                stop = offset + found[SIZE]
                if found[KIND] == SESSION:
                    sessions += 1
                elif HEADER < found[KIND] <= len(KINDS):
                    outcomes += 1
                    kinds[hash(file.key(offset, found)), found[TURN]] = found[KIND]
                    if found[ENDED] > 0 and file.clocks:
                        last = found[ENDED] / 1e9 + file.clocks[-1][1]
                        first = first or last
        except JournalDamaged as error:
            damage = str(error)
        lines = [f"{path}: {outcomes} outcomes of {len(kinds)} items, {sessions} sessions"]
        counts = [(name, list(kinds.values()).count(code)) for name, code in CODES.items()]
        lines += [f"  {name:<10} {count}" for name, count in counts if count]
        lines += [f"  {name:<10} {header.get(name)}" for name in header]
        if first:
            lines.append(f"  {'ended':<10} {_date(first)} to {_date(last)}")
        pid = PREAMBLE.unpack(file.read(0, PREAMBLE.size))[3]
        if pid and is_alive(pid):
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
