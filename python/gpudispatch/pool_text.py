# SPDX-License-Identifier: MIT
"""A pool as a table of text: its devices and its classes, in 80 columns."""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpudispatch.tables import ClassStats, DeviceInfo

WIDTH = 80
NAME_WIDTH = 24  # of a class before a reason
DEVICE_HEAD = ("device", "state", "class", "workers", "done", "memory")
CLASS_HEAD = ("class", "state", "workers", "queued", "running", "done", "boot", "run", "waits")


def table(
    devices: Sequence[DeviceInfo], classes: Sequence[ClassStats], waits: Mapping[str, str]
) -> str:
    """Lines about the devices, then about the classes; `waits` has why a class has no worker."""
    lines = []
    if devices:
        lines += columns([DEVICE_HEAD, *map(_device, devices)], left=3)
        lines.append("")
    lines += columns([CLASS_HEAD, *map(_class, classes)], left=2)
    if waits:
        lines.append("")
    lines += [cut(f"{cut(name, NAME_WIDTH)} waits: {why}", WIDTH) for name, why in waits.items()]
    return "\n".join(lines)


def _device(row: DeviceInfo) -> tuple[str, ...]:
    state = (row["state"] or "").lower()
    if row["health"] not in ("HEALTHY", "UNKNOWN"):
        state = row["health"].lower()
    elif row["draining"]:
        state = "drained"
    elif row["paused"]:
        state = "paused"
    used, total = row["memory_used"], row["memory_total"]
    memory = "" if used is None or total is None else f"{used >> 30}/{total >> 30} GiB"
    return (
        row["name"], state, row["class_name"], str(row["workers"]), f"{row['tasks_done']:,}",
        memory,
    )  # fmt: skip


def _class(row: ClassStats) -> tuple[str, ...]:
    state = next((name for name in ("removing", "failed", "paused", "pinned") if row[name]), "")
    workers = str(row["workers"]) + (f"+{row['starting']}" if row["starting"] else "")
    return (
        row["name"], state, workers, f"{row['queued']:,}", f"{row['running']:,}",
        f"{row['done']:,}", span(row["boot_p50"]), span(row["run_p50"]), span(row["oldest_wait"]),
    )  # fmt: skip


def span(ns: int) -> str:
    """A time in two or three digits."""
    if not ns:
        return "-"
    for unit, size in (("d", 86_400e9), ("h", 3600e9), ("min", 60e9), ("s", 1e9), ("ms", 1e6)):
        if ns >= size:
            value = ns / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{ns / 1e3:.0f} us"


def columns(rows: list[tuple[str, ...]], left: int) -> list[str]:
    """Rows as lines; the first columns flush left.  Where 80 columns do not hold them, the widest
    of these is cut."""
    widths = [max(width(row[i]) for row in rows) for i in range(len(rows[0]))]
    excess = sum(widths) + 2 * (len(widths) - 1) - WIDTH
    if excess > 0:
        widest = max(range(left), key=widths.__getitem__)
        widths[widest] = max(8, widths[widest] - excess)
    lines = []
    for row in rows:
        cells = []
        for i, cell in enumerate(row):
            cell = cut(cell, widths[i])
            blanks = " " * (widths[i] - width(cell))
            cells.append(cell + blanks if i < left else blanks + cell)
        lines.append("  ".join(cells).rstrip())
    return lines


def width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text)


def cut(text: str, columns: int) -> str:
    """As much of a text as so many columns hold."""
    if width(text) <= columns:
        return text
    while width(text) >= columns:
        text = text[:-1]
    return text + "…"
