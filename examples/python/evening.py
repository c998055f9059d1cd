# SPDX-License-Identifier: MIT
"""evening.py - three models answer the same prompts tonight, on all GPUs of the machine.

    python3 evening.py            # on 8 simulated GPUs, which need no driver
    python3 evening.py 40000      # with this many prompts [400]

If the run ends early, the next one goes on where it stopped: evening.gdj is its journal.
"""

import sys
import time
from collections import Counter

from gpudispatch import Pool

DEVICES = "fake:8"  # "all" for real GPUs


class Model:
    """A worker: it loads its model once, and then has a prompt at a time."""

    def setup(self, gpu_id: str, seed: int, path: str, load_s: float) -> None:
        time.sleep(load_s)  # in place of: self.model = load(path), on as many GPUs as are visible
        self.path = path

    def process(self, prompt: str) -> str:
        time.sleep(0.001)  # in place of: return self.model.generate(prompt)
        return f"{self.path}: {prompt[::-1]}"


def main(count: int) -> int:
    prompts = [f"question {n}" for n in range(count)]
    tally: dict[str, Counter[str]] = {}
    with Pool(DEVICES) as pool:
        # `devices` of a worker; with `memory` on each of them several models share a GPU.
        pool.add("llama", worker=Model, setup={"path": "llama-8b", "load_s": 0.1}, memory="7GiB")
        for name in ("qwen", "mixtral"):
            setup = {"path": f"{name}-70b", "load_s": 0.3}
            # A prompt that kills its worker, or whose GPU fails, runs once more.
            pool.add(name, worker=Model, setup=setup, devices=2, max_attempts=2, task_timeout=60)
        sources = dict.fromkeys(["llama", "qwen", "mixtral"], prompts)
        for r in pool.outcomes(sources, journal="evening.gdj", progress=True):
            tally.setdefault(r.name, Counter())[r.kind] += 1  # r.item and r.value are the pair
            if not r.ok:
                print(f"{r.name}, {r.item!r}: {r.text}", file=sys.stderr)
    for name in sources:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(tally.get(name, {}).items()))
        print(f"{name}: {kinds or 'no prompts'}")
    return 0 if all(set(kinds) == {"success"} for kinds in tally.values()) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 400))
