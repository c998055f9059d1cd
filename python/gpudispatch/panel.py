# SPDX-License-Identifier: MIT
"""The display of RichDispatcher: a panel per GPU where rich is installed, else one line.

rich draws on a thread of its own, so the panel shows how long a task has run while the caller's
thread is inside a callback.  Nothing is drawn where the console is no terminal.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gpudispatch.progress import Line, Watch, clock, pace

if TYPE_CHECKING:
    from gpudispatch.classic_run import GpuStats, Place, Run, RunStats
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
    live = _live(run, rate, console) if show else None
    if live is not None:
        with live:
            yield
        return
    line = Line()
    if not show or console is not None or line.quiet:
        yield
        return
    run.watch = Watch(line, run.board.stats["expected_total"])
    try:
        yield
    finally:
        run.watch.end()


def _live(run: Run, rate: float, console: Any) -> Any:
    """A rich Live; None where rich is not installed, the console is no terminal, or another Live
    has it."""
    try:
        from rich.console import Console
        from rich.errors import LiveError
        from rich.live import Live
    except ImportError:
        return None
    if console is None:
        console = Console()
    if not (console.is_terminal or console.is_jupyter):
        return _Nothing()
    live = Live(
        console=console,
        get_renderable=lambda: render(run),
        refresh_per_second=rate,
        transient=True,
    )
    return _Started(live, LiveError)


class _Nothing:
    """A display that shows nothing."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


class _Started(_Nothing):
    """A Live that may find the console taken: then nothing is shown, and the run goes on."""

    def __init__(self, live: Any, taken: type[Exception]) -> None:
        self.live = live
        self.taken = taken

    def __enter__(self) -> None:
        try:
            self.live.start(refresh=True)
        except self.taken:
            self.live = None

    def __exit__(self, *error: object) -> None:
        if self.live is not None:
            self.live.stop()


# ---- what is drawn ----


def render(run: Run) -> Any:
    """The whole display: one panel for the run, one for each GPU."""
    from rich.columns import Columns
    from rich.console import Group
    from rich.panel import Panel

    stats = run.board.snapshot()
    slots, devices = _rows(run)
    panels = []
    for slot, place in enumerate(run.places):
        row = stats["gpu_status"][place.worker_id]
        state = slots[slot] if slot < len(slots) else None
        panels.append(
            Panel(
                "\n".join(gpu_lines(row, state, devices.get(state["device"] if state else ""))),
                title=title_of(place),
                border_style=STYLES[row["status"]],
                width=PANEL_WIDTH,
            )
        )
    overall = Panel("\n".join(run_lines(stats)), title="Overall Progress", border_style="cyan")
    return Group(overall, Columns(panels))


def _rows(run: Run) -> tuple[list[SlotStats], dict[str, DeviceInfo]]:
    """The pool's rows; none at its end, which another thread makes."""
    try:
        return run.rows()
    except Exception:
        return [], {}


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
