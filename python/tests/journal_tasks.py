# SPDX-License-Identifier: MIT
"""What the workers of test_journal_run.py import."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from executor_tasks import through


def work(task: tuple[str, Any]) -> Any:
    """Notes that it ran, and does what the item names."""
    folder, item = task
    with (Path(folder) / "runs").open("a") as file:
        file.write(f"{item}\n")
    if item == "raise":
        print("last words", flush=True)
        raise ValueError("no cat")
    if item == "die" and not (Path(folder) / "cured").exists():
        print("last words", flush=True)
        os._exit(7)
    if isinstance(item, bytes):
        through(item)
    if item == "large":
        return b"x" * (1 << 20)
    return item


class Scorer:
    def setup(self, gpu_id: Any, seed: int, factor: int) -> None:
        self.factor = factor

    def process(self, item: int) -> int:
        return item * self.factor
