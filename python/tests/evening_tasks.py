# SPDX-License-Identifier: MIT
"""The evening of test_evening.py: three classes on eight simulated GPUs, and what goes wrong."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from gpudispatch import Pool

GPUS = 8
NEEDS = {"small": 1, "wide": 2, "early": 2}  # devices of a worker
FACTORS = {"small": 3, "wide": 5, "early": 7}
FOREIGN = ("fake:6", "fake:7")
FOREIGN_PID = 4321
SETUP_S = 0.1
RUN_S = 0.0003  # asleep: so the host has more to do than the workers
MIN_RESIDENCE_S = 0.05
MAX_WAIT_S = 0.5


class Model:
    """Notes each item that it runs, and dies once, in the middle of one."""

    def setup(
        self, gpu_id: Any, seed: int, name: str, notes: str | None, dies: int, died: str
    ) -> None:
        self.name = name
        self.dies = dies
        self.died = died
        self.notes = None if notes is None else os.open(notes, os.O_WRONLY)
        time.sleep(SETUP_S)

    def process(self, item: int) -> int:
        if self.notes is not None:
            os.write(self.notes, f"{self.name} {item}\n".encode())
        if item == self.dies:
            try:
                os.close(os.open(self.died, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(RUN_S)
        return item * FACTORS[self.name]


def mark(folder: Path, event: str) -> None:
    """Begins a fault, or ends it: "broken-3" is GPU 3, "left" the foreign process."""
    (folder / event).touch()


def evening(
    folder: Path, dies: tuple[str, int], queue_size: int, notes: Path | None = None
) -> Pool:
    """The pool; `dies` is the item during which a worker is killed."""
    lines = [
        f"gpu 6-7 foreign {FOREIGN_PID} 12GiB",
        f"when {folder}/left gpu 6-7 gone {FOREIGN_PID}",
        *(
            f"when {folder}/broken-{n} gpu {n} xid 62 recovery=reset canary=fail"
            for n in range(GPUS)
        ),
    ]
    script = folder / "script"
    script.write_text("\n".join(lines))
    pool = Pool(f"fake:{GPUS},script={script}", queue_size=queue_size)
    for name, devices in NEEDS.items():
        pool.add(
            name, worker=Model, devices=devices,
            setup={
                "name": name, "notes": None if notes is None else str(notes),
                "dies": dies[1] if name == dies[0] else -1, "died": str(folder / "died"),
            },
            min_residence=MIN_RESIDENCE_S, max_wait=MAX_WAIT_S,
            boot_seed=0.3, unload_seed=0.05, run_seed=RUN_S,
            max_attempts=2, retry=("crash", "device"),
        )  # fmt: skip
    return pool
