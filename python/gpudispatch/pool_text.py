# SPDX-License-Identifier: MIT
"""A pool as a table of text: its devices and its classes, in 80 columns."""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpudispatch.tables import ClassStats, DeviceInfo

WIDTH = 80
DEVICE_HEAD = ("device", "state", "class", "workers", "done", "memory")
CLASS_HEAD = ("class", "state", "workers", "queued", "running", "done", "boot", "run", "waits")


def table(devices: Sequence[DeviceInfo], classes: Sequence[ClassStats]) -> str:
    """Lines about the devices, then about the classes."""
    lines = []
    if devices:
        lines += columns([DEVICE_HEAD, *map(_device, devices)], left=3)
        lines.append("")
    lines += columns([CLASS_HEAD, *map(_class, classes)], left=2)
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
        row["name"], state, row["class_name"], str(row["workers"]), f"{row['tasks_done']:,}", memory,
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
    """Rows as lines; the first columns flush left.  The first one is cut where 80 columns do not
    hold all of it."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    room = WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1)
    widths[0] = max(8, min(widths[0], room))
    lines = []
    for row in rows:
        cells = []
        for i, cell in enumerate(row):
            if len(cell) > widths[i]:
                cell = cell[: widths[i] - 1] + "…"
            cells.append(cell.ljust(widths[i]) if i < left else cell.rjust(widths[i]))
        lines.append("  ".join(cells).rstrip())
    return lines
