# SPDX-License-Identifier: MIT
"""`python -m gpudispatch.journal`: a journal as text or JSON lines."""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import pickle
import sys
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from . import codec
from .records import (
    KEY_DIGEST,
    KEY_PICKLE,
    KINDS,
    SESSION,
    JournalDamaged,
    JournalError,
    JournalRecord,
    RecordFile,
    damaged_error,
    is_alive,
    read_journal,
    salvage,
    split_key,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_REPR_LIMIT: Final = 1000


class _Plain(pickle.Unpickler):
    """Loads values of built-in types only: to look at a journal runs no code of its values."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name}")


def _plain(data: bytes) -> Any:
    return _Plain(io.BytesIO(data)).load()


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_json(value[name]) for name in value)
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    if isinstance(value, int):
        return value.bit_length() <= 256
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str)


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


def _show_key(line: dict[str, object], record: JournalRecord) -> None:
    _, form, rest = split_key(record.key_bytes)
    key = record.key
    if record.name:
        line["name"] = record.name
    try:
        if form == KEY_DIGEST:
            line["key_repr"] = f"sha256 {rest.hex()}"
        else:
            _show(line, "key", _plain(rest) if form == KEY_PICKLE else key)
    except Exception:
        line["key_repr"] = f"pickle {rest.hex()}"


def _show_value(line: dict[str, object], record: JournalRecord, load: bool) -> None:
    frame = record.payload
    form = frame[0] & 15 if frame else codec.BUFFERS
    try:
        if load:
            _show(line, "value", record.value)
        elif form == codec.RAW:
            _show(line, "value", frame[1:])
        elif form == codec.PICKLE:
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
    try:
        kind, text, traceback = map(str, _plain(record.payload[1:])[:3])
    except Exception:  # no frame: the text is what there is
        return {"type": None, "text": record.text or None, "traceback": None}
    return {"type": kind, "text": text, "traceback": traceback}


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def as_json(record: JournalRecord, *, load: bool = False) -> str:
    """Returns one line of JSON for a record; `load=True` unpickles values of all types."""
    line: dict[str, object] = {"index": record.index}
    _show_key(line, record)
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
    return json.dumps(line)


def _summary(path: str) -> tuple[list[str], bool]:
    """Returns the lines about a journal and whether it is whole."""
    with RecordFile(path) as file:
        size = file.size()
        begun = file.begin(size)
        if begun is None:
            return [f"{path}: empty, nothing recorded"], True
        header, start = begun
        outcomes = sessions = first = last = 0
        kinds: dict[int, str] = {}
        gaps: list[tuple[int, int]] = []
        for _, head, item in file.records(start, size, gaps):
            if head.kind == SESSION:
                sessions += 1
                continue
            outcomes += 1
            kinds[item] = KINDS[head.kind - 1]
            if head.ended > 0:
                last = head.ended + head.clock
                first = first or last
        pid, stop = file.writer(), file.stop
    counts = Counter(kinds.values())
    rows: list[tuple[str, object]] = [(name, counts[name]) for name in KINDS if counts[name]]
    rows += header.items()
    if first:
        rows.append(("ended", f"{_date(first / 1e9)} to {_date(last / 1e9)}"))
    if pid and is_alive(pid):
        rows.append(("writer", f"process {pid}"))
    rows += [("damaged", damaged_error(path, *gap)) for gap in gaps]
    if stop < size:
        rows.append(("torn", f"{size - stop} bytes at the end, a rerun cuts them"))
    lines = [f"{path}: {outcomes} outcomes of {len(kinds)} items, {sessions} sessions"]
    return lines + [f"  {name:<10} {text}" for name, text in rows], not gaps


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
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name of a file can be any bytes
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if options.salvage is not None:
            for start, end in salvage(options.file, options.salvage):
                print(f"{options.file}: bytes {start} to {end} are damaged, left out")
            return 0
        if not options.jsonl:
            lines, whole = _summary(options.file)
            print("\n".join(lines))
            return 0 if whole else 1
        damaged: Literal["raise", "skip"] = "skip" if options.skip_damaged else "raise"
        for record in read_journal(options.file, history=options.history, damaged=damaged):
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
