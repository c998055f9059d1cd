# SPDX-License-Identifier: MIT
"""Queue: the durable queue of `gpudispatch`, to look at: the tasks that run, and how far it is.

    queue = gpudispatch.Queue()
    queue.progress()  # the last line of a cell

It changes nothing.  Each look connects anew, so it goes on after the agent has been started again,
and a notebook that is opened tomorrow shows the state of tomorrow.  The protocol is that of
docs/reference/queue-protocol.md: request `watch`, or `batches` and `tasks` of an agent that has no
`watch`.  Members that are missing or of another type count as left out.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import socket
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Self

from gpudispatch.errors import UnsupportedPlatform
from gpudispatch.moment import (
    GLYPHS,
    SECONDS,
    End,
    Lane,
    Moment,
    Second,
    badly,
    count,
    left,
    plain,
    span,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpudispatch.watching import Progress

VERSION = 1
LINE_MOST = 64 << 20
PATIENCE_S = 10.0
PARTS = ["gpus", "batches", "findings", "ends", "history"]
NS = 1_000_000_000
ROWS = 10_000  # of running tasks
# Uses of a minute, as in view/night/use.h: the others leave the lane empty.
USES = {
    "ok": "WORKED", "lost": "BAD", "loading": "LOADING", "kept": "KEPT", "out": "OUT",
    "unknown": "UNKNOWN",
}  # fmt: skip
Row = dict[str, Any]

_held: dict[tuple[str, str | None], Progress] = {}
_lock = threading.Lock()


class Queue:
    """The queue of a state directory [that of the program `gpudispatch`].  Thread: any."""

    def __init__(self, state_dir: str | os.PathLike[str] | None = None) -> None:
        if sys.platform != "linux":
            raise UnsupportedPlatform("Linux only")
        self._directory = os.path.realpath(_state_directory(state_dir))

    def progress(self, batch: int | str | None = None) -> Progress:
        """The work of the queue [of a batch, by number or name], now and on each GPU in the last
        ten minutes: as text, as a picture that changes in a notebook, or `with` a block as
        lines."""
        if isinstance(batch, bool) or not isinstance(batch, (int, str, type(None))):
            raise TypeError(f"batch must be an int or a str, not {type(batch).__name__}")
        from gpudispatch.watching import Progress

        key = self._directory, None if batch is None else str(batch)
        with _lock:  # one of each: shown again, it moves
            if key not in _held:
                _held[key] = Progress(functools.partial(self._look, key[1]))
            return _held[key]

    def __repr__(self) -> str:
        return f"<Queue in {self._directory}>"

    def _look(self, batch: str | None) -> Moment:
        """The present moment; without an agent one that says so."""
        try:
            with Connection(self._directory) as agent:
                snapshot = _watched(agent)
                return (
                    _of_rows(agent, batch) if snapshot is None else _of_snapshot(snapshot, batch)
                )
        except (OSError, ValueError) as error:
            line = f"no agent answers: {error}"
            return Moment(time.time(), "Queue", plain(line), (), {}, (), -1, (), False, False)


# ---- the connection ----


def _state_directory(given: str | os.PathLike[str] | None) -> str:
    """As `gpudispatch` finds it."""
    if given is not None:
        return os.fsdecode(given)
    if os.environ.get("GPUDISPATCH_STATE"):
        return os.environ["GPUDISPATCH_STATE"]
    home = os.environ.get("XDG_STATE_HOME", "")
    if not home.startswith("/"):
        home = os.path.join(os.path.expanduser("~"), ".local/state")
    return os.path.join(home, "gpudispatch")


def socket_paths(directory: str) -> Iterator[str]:
    """Where the agent of a state directory may listen, the likeliest place first."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/"):
        number = 0xCBF29CE484222325  # FNV-1a
        for byte in os.fsencode(directory):
            number = (number ^ byte) * 0x100000001B3 % (1 << 64)
        yield f"{runtime}/gpudispatch/socket-{number:016x}"
    else:
        yield f"{directory}/socket"
    try:
        with open(f"{directory}/socket-path", "rb") as saved:
            yield os.fsdecode(saved.read(4096).strip(b"\n"))
    except FileNotFoundError:
        pass


class Connection:
    """One connection to the agent."""

    def __init__(self, directory: str) -> None:
        self.socket = _connected(directory)
        try:
            self.file = self.socket.makefile("rb")
            self.send({"hello": "gpudispatch-queue", "version": VERSION})
            self.hello = self.line()
            if self.hello.get("ok") is False:
                raise ValueError(_text(self.hello, "error"))
        except BaseException:
            self.socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()
        self.socket.close()

    def send(self, request: Mapping[str, object]) -> None:
        self.socket.sendall(json.dumps(request).encode() + b"\n")

    def line(self) -> Row:
        data = self.file.readline(LINE_MOST + 1)
        if not data.endswith(b"\n"):
            raise ValueError("the agent has closed the connection")
        row = json.loads(data)
        if not isinstance(row, dict):
            raise ValueError("the agent has sent a line that is no object")
        return row

    def ask(self, request: Mapping[str, object]) -> Row:
        """The reply; {} where there is no such thing."""
        self.send(request)
        row = self.line()
        if row.get("ok") is not False:
            return row
        if row.get("code") == "ENOTFOUND":
            return {}
        raise ValueError(_text(row, "error"))


def _connected(directory: str) -> socket.socket:
    error: OSError | None = None
    for path in socket_paths(directory):
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.settimeout(PATIENCE_S)
            made.connect(path)
            _check_owner(made, path)
            return made
        except OSError as e:
            made.close()
            error = error or e
            if e.errno not in (errno.ENOENT, errno.ECONNREFUSED):
                raise
    raise ConnectionRefusedError(f"no agent runs for {directory}") from error


def _check_owner(made: socket.socket, path: str) -> None:
    credentials = made.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, uid, _ = struct.unpack("iII", credentials)
    if uid != os.getuid():
        raise PermissionError(f"the listener of {path} has uid {uid}, expected {os.getuid()}")


# ---- members of any type ----


def _text(row: Row, name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _number(row: Row, name: str, default: int = 0) -> int:
    value = row.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _rows(row: Row, name: str) -> list[Row]:
    value = row.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _counts(row: Row, name: str) -> dict[str, int]:
    value = row.get(name)
    inner = value if isinstance(value, dict) else {}
    return {key: _number(inner, key) for key in inner}


def _is_of(row: Row, batch: str | None) -> bool:
    return batch is None or batch in (str(row.get("batch")), row.get("name"))


def _unknown(batch: str | None) -> tuple[str, ...]:
    return () if batch is None else (f"there is no batch {batch}",)


# ---- of a snapshot ----


def _watched(agent: Connection) -> Row | None:
    """A snapshot; None: the agent has none to send."""
    agent.send({"id": 1, "do": "watch", "what": PARTS})
    while True:
        row = agent.line()
        if row.get("ok") is False:
            if row.get("code") == "EINVAL":
                return None
            raise ValueError(_text(row, "error"))
        if isinstance(row.get("snapshot"), dict):
            return dict(row["snapshot"])


def _of_snapshot(s: Row, batch: str | None) -> Moment:
    now = _number(s, "time")
    batches = [row for row in _rows(s, "batches") if _is_of(row, batch)]
    gpus = _rows(s, "gpus")
    history = _rows(s, "history")
    ends = [row for row in _rows(s, "ends") if _text(row, "outcome") in GLYPHS]
    lanes = tuple(
        _lane(now, gpu, history[i] if i < len(history) else {}, ends, i == 0)
        for i, gpu in enumerate(gpus)
    )
    more = s.get("more") if batch is None and isinstance(s.get("more"), dict) else {}
    notes = [_text(s, "notice")] + [_finding(row) for row in _rows(s, "findings")[:5]]
    going = [row for row in batches if not _number(row, "ended")]
    rest = batches if len(batches) == 1 else [s]
    summed = [*batches, dict(more or {})]
    line = _line(summed, rest[0])
    return Moment(
        now / NS, "Queue", line, lanes, {}, _ends(ends),
        sum(_number(row, "bad") for row in summed),
        tuple(note for note in notes if note) + (() if batches else _unknown(batch)),
        bool(going), batch is not None and bool(batches) and not going,
    )  # fmt: skip


def _line(batches: list[Row], rest: Row) -> str:
    total = {
        key: sum(_number(row, key) for row in batches)
        for key in ("running", "ready", "held", "ok", "bad")
    }
    low, high = _number(rest, "least", -1), _number(rest, "most", -1)
    parts = [
        f"{total['running']:,} running", f"{total['ready'] + total['held']:,} waiting",
        f"{total['ok']:,} ended well", f"{total['bad']:,} ended badly" if total["bad"] else "",
        left(low / NS, high / NS) if low >= 0 and high >= 0 else "",
    ]  # fmt: skip
    return ", ".join(part for part in parts if part)


def _finding(row: Row) -> str:
    gpus = _text(row, "gpus")
    words = [_text(row, "what"), _text(row, "whose"), f"on GPU {gpus}" if gpus else ""]
    command = _text(row, "command")
    found = ", ".join(word for word in words if word)
    return f"{found}; see: {command}" if found and command else found


def _ends(rows: list[Row]) -> tuple[End, ...]:
    ends = [
        End(
            _number(row, "time"), _number(row, "time") / NS, _text(row, "outcome"),
            _text(row, "gpus"), f"{_text(row, 'task')} {_text(row, 'batch')}".strip(), "",
        )
        for row in rows
    ]  # fmt: skip
    return tuple(sorted(ends))


def _lane(now: int, gpu: Row, history: Row, ends: list[Row], first: bool) -> Lane:
    shares = _minutes(now, history)
    bad: dict[int, dict[str, int]] = {}
    begin = now // NS - SECONDS + 1
    for row in ends:
        i = _number(row, "time") // NS - begin
        place = _first(_text(row, "gpus"))
        mine = place in (_text(gpu, "gpu"), str(gpu.get("index"))) or (not place and first)
        if 0 <= i < SECONDS and mine:
            kinds = bad.setdefault(i, {})
            kinds[_text(row, "outcome")] = kinds.get(_text(row, "outcome"), 0) + 1
    seconds = tuple(
        Second(shares[i], tuple(bad[i].items()) if i in bad else ()) for i in range(SECONDS)
    )
    does, since = _text(gpu, "does"), _number(gpu, "since")
    words = [does, _text(gpu, "class"), span((now - since) / NS) if since else ""]
    text = _text(gpu, "text")
    said = " ".join(word for word in words if word) + (f": {text}" if text else "")
    return Lane(_text(gpu, "gpu"), said, does == "run", seconds)


def _first(gpus: str) -> str:
    """The first of "0, 4-5"."""
    return gpus.partition(",")[0].partition("-")[0].strip()


def _minutes(now: int, history: Row) -> list[tuple[tuple[str, float], ...]]:
    """The parts of each second: those of its minute, of which there is no more."""
    last = now // NS // 60
    known: dict[int, tuple[tuple[str, float], ...]] = {}
    columns = {use: value for use, value in history.items() if isinstance(value, list)}
    length = max((len(value) for value in columns.values()), default=0)
    for minute in range(length):
        ms = {use: _number({"": v[minute]}, "") for use, v in columns.items() if minute < len(v)}
        whole = sum(ms.values())
        known[last - length + 1 + minute] = tuple(
            (texture, ms[use] / whole) for use, texture in USES.items() if ms.get(use, 0) > 0
        )
    nothing = (("UNKNOWN", 1.0),)
    begin = now // NS - SECONDS + 1
    return [known.get((begin + i) // 60, nothing) for i in range(SECONDS)]


# ---- of an agent without snapshots ----


def _of_rows(agent: Connection, batch: str | None) -> Moment:
    """Counts, and the tasks that run now: the agent keeps no minutes."""
    now = time.time_ns()
    asked: Row = {"id": 2, "do": "batches"}
    if batch is None:
        asked["active"] = True
    elif not batch.isdecimal():
        asked["name"] = batch
    else:
        asked["most"] = 1
        if int(batch) > 1:
            asked["after"] = str(int(batch) - 1)
    batches = [row for row in _rows(agent.ask(asked), "batches") if _is_of(row, batch)]
    reply = agent.ask({"id": 3, "do": "tasks", "all": True, "states": ["running"], "most": ROWS})
    states: dict[str, int] = {}
    outcomes: dict[str, int] = {}
    for row in batches:
        for sums, name in ((states, "states"), (outcomes, "outcomes")):
            for key, n in _counts(row, name).items():
                sums[key] = sums.get(key, 0) + n
    ok = outcomes.pop("ok", 0)
    parts = [
        f"{states.get('running', 0):,} running",
        f"{states.get('ready', 0) + states.get('held', 0):,} waiting", f"{ok:,} ended well",
        badly(outcomes),
    ]  # fmt: skip
    lanes = tuple(
        _running(now, name, rows) for name, rows in sorted(_by_device(reply).items())
    )
    names = {"CLASS_0": "tasks"} if lanes else {}
    going = any(not _number(row, "ended") for row in batches)
    return Moment(
        now / NS, "Queue", ", ".join(part for part in parts if part), lanes, names, (),
        sum(outcomes.values()), () if batches else _unknown(batch), going,
        batch is not None and bool(batches) and not going,
    )  # fmt: skip


def _by_device(reply: Row) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in _rows(reply, "tasks"):
        for name in filter(None, _text(row, "devices").split(",")):
            found.setdefault(name, []).append(row)
    return found


def _running(now: int, name: str, rows: list[Row]) -> Lane:
    """The lane of a device: before its tasks have started nothing is known."""
    begin = now // NS - SECONDS + 1
    since = min(_number(row, "started") or now for row in rows)
    runs, unknown = Second((("CLASS_0", 1.0),)), Second((("UNKNOWN", 1.0),))
    seconds = tuple(runs if begin + i >= since // NS else unknown for i in range(SECONDS))
    words = f"run {_text(rows[0], 'task')} {span((now - since) / NS)}"
    words += f", {count(len(rows) - 1, 'further task')}" if len(rows) > 1 else ""
    return Lane(name, words, True, seconds)
