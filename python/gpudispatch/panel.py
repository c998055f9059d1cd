# SPDX-License-Identifier: MIT
"""The display of RichDispatcher: a panel per GPU where rich is installed, else one line.

rich draws on a thread of its own, so the panel shows how long a task has run while the caller's
thread is inside a callback.  Nothing is drawn where the console is no terminal.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from gpudispatch.errors import GpuDispatchError
from gpudispatch.progress import Line, Watch, clock, pace

if TYPE_CHECKING:
    from gpudispatch.classic_board import GpuStats, RunStats
    from gpudispatch.classic_places import Place
    from gpudispatch.classic_run import Run
    from gpudispatch.tables import DeviceInfo, SlotStats

STYLES = {
    "initializing": "cyan",
    "restarting": "magenta",
    "idle": "green",
    "processing": "yellow",
    "finished": "bold green",
    "error": "bold red",
}
PANEL_WIDTH = 38
BAR = 20  # characters of a task's own progress
GIB = 1 << 30


@contextlib.contextmanager
def shown(run: Run, show: bool, rate: float, console: Any) -> Iterator[None]:
    """Shows a run while the block runs."""
    stop = _start(run, rate, console) if show else None
    try:
        yield
    finally:
        if stop is not None:
            stop()


def _start(run: Run, rate: float, console: Any) -> Callable[[], None] | None:
    """Starts a display; returns the function that ends it, or None where there is nothing to show:
    the console is no terminal, or another Live has it."""
    try:
        from rich.console import Console
        from rich.errors import LiveError
        from rich.live import Live
    except ImportError:
        line = Line()
        if console is not None or line.quiet:
            return None
        run.watch = Watch(line, run.board.stats["expected_total"])
        return run.watch.end
    if console is None:
        console = Console()
    if not (console.is_terminal or console.is_jupyter):
        return None
    live = Live(
        console=console,
        get_renderable=lambda: render(run),
        refresh_per_second=rate,
        transient=True,
    )
    try:
        live.start(refresh=True)
    except LiveError:
        return None
    return live.stop


# ---- what is drawn ----


def render(run: Run) -> Any:
    """The whole display: one panel for the run, one for each GPU."""
    from rich.columns import Columns
    from rich.console import Group
    from rich.panel import Panel

    stats = run.board.snapshot()
    slots: list[SlotStats] = []
    devices: dict[str, DeviceInfo] = {}
    with contextlib.suppress(GpuDispatchError):  # at the end of the pool, which another thread makes
        slots = run.executor.slots()
        devices = {row["name"]: row for row in run.executor.devices()}
    panels = []
    for place, slot in zip_longest(run.places, slots):
        row = stats["gpu_status"][place.worker_id]
        lines = gpu_lines(row, slot, devices.get(slot["device"]) if slot else None)
        panels.append(
            Panel(
                "\n".join(lines),
                title=title_of(place),
                border_style=STYLES[row["status"]],
                width=PANEL_WIDTH,
            )
        )
    overall = Panel("\n".join(run_lines(stats)), title="Overall Progress", border_style="cyan")
    return Group(overall, Columns(panels))


def title_of(place: Place) -> str:
    name = f"GPU {place.gpu_id}"
    if place.worker_id != place.gpu_id:
        name += f", worker {place.worker_id}"
    return name if place.is_gpu else f"{name} (CPU slot)"


def run_lines(stats: RunStats) -> list[str]:
    total, expected = stats["total"], stats["expected_total"]
    if expected is None:
        first = f"Progress: {total:,}/?"
    else:
        percent = f" ({100 * total / expected:.1f}%)" if expected else ""
        first = f"Progress: {total:,}/{expected:,}{percent}"
    counts = f"✓ {stats['completed']:,}  ✗ {stats['failed']:,}  ⏱ {stats['timeouts']:,}"
    if stats["setup_failures"]:
        counts += f"  setup failures: {stats['setup_failures']:,}"
    return [f"{first}  {counts}", "  ".join(_times(stats))]


def _times(stats: RunStats) -> list[str]:
    began, total, expected = stats["start_time"], stats["total"], stats["expected_total"]
    elapsed = 0.0 if began is None else (stats["end_time"] or time.monotonic()) - began
    parts = [f"Elapsed: {clock(elapsed)}"]
    if total and elapsed > 0:
        if expected is not None and expected > total:
            parts.append(f"ETA: {clock((expected - total) * elapsed / total)}")
        parts.append(f"Throughput: {pace(total / elapsed)}")
    return parts


def gpu_lines(
    row: GpuStats, slot: SlotStats | None, device: DeviceInfo | None
) -> list[str]:
    """The lines of one GPU's panel, as rich markup."""
    from rich.markup import escape

    status = row["status"]
    lines = [f"[{STYLES[status]}]{status.title()}[/]"]
    if row["current_task"] is not None:
        began = row["task_start_time"]
        ran = f"  {time.monotonic() - began:.1f} s" if began else ""
        lines[0] += f"  #{row['current_task']}{ran}"
    if slot is not None and slot["task_id"] and slot["progress"] > 0:
        done = round(BAR * min(1.0, slot["progress"]))
        lines.append(f"{'━' * done}{'╌' * (BAR - done)} {escape(slot['progress_text'])}".rstrip())
    counts = f"✓ {row['completed']:,}  ✗ {row['failed']:,}  ⏱ {row['timeouts']:,}"
    if row["restarts"]:
        counts += f"  restarts: {row['restarts']:,}"
    lines.append(counts)
    if row["last_duration"] is not None:
        lines.append(f"last task {duration(row['last_duration'])}")
    if device is not None:
        readings = device_readings(device)
        if readings:
            lines.append(readings)
        if device["health"] not in ("HEALTHY", "UNKNOWN"):
            lines.append(f"[bold red]{device['health']}[/] {escape(device['evidence'])}")
    return lines


def duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def device_readings(device: DeviceInfo) -> str:
    parts = []
    used, total = device["memory_used"], device["memory_total"]
    if used is not None and total:
        parts.append(f"{used / GIB:.1f} of {total / GIB:.0f} GiB")
    if device["utilization"] is not None:
        parts.append(f"{device['utilization']}%")
    if device["temperature"] is not None:
        parts.append(f"{device['temperature']} °C")
    if device["power"] is not None:
        parts.append(f"{device['power'] / 1000:.0f} W")
    return ", ".join(parts)
