# SPDX-License-Identifier: MIT
"""`python -m gpudispatch.bench`: the driver."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from typing import Any

import gpudispatch
from gpudispatch.bench import cells, peers, report, sides

QUICK_S, FULL_S = 5.0, 60.0  # for one cell; a round that has begun goes on to its end
QUICK_PEERS = ("threads", "fork", "Pool")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m gpudispatch.bench",
        description="Times gpudispatch.Executor beside other pools of one worker, in turns.",
    )
    parser.add_argument("--quick", action="store_true", help="under 60 s; do not keep its figures")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    parser.add_argument("--cell", action="append", choices=cells.CELLS, help="only this one")
    parser.add_argument("--peer", action="append", choices=peers.PEERS,
                        help="beside ours only this one")
    parser.add_argument("--place", choices=("split", "free"), default="free",
                        help="free: not pinned; split: host and worker pinned to a CPU each")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    return parser.parse_args()


def names_of(cell: cells.Cell, chosen: list[str] | None, quick: bool) -> list[str]:
    names = [n for n in cell.sides if n not in peers.PEERS or peers.installed(n)]
    if chosen is None and not quick:
        return names
    kept = chosen or QUICK_PEERS
    return [n for n in names if n.startswith("ours") or n in kept or n not in peers.PEERS]


def main() -> int:
    a = arguments()
    if a.serve:
        sides.serve(a.cell[0], a.serve, a.quick, a.place)
    began = time.monotonic()
    record: dict[str, Any] = {
        "version": gpudispatch.__version__,
        "python": platform.python_version(),
        "cpus": len(sides.CPUS),
        "place": a.place,
        "quick": a.quick,
        "cells": {},
    }
    for name in a.cell or cells.CELLS:
        load = os.getloadavg()[0]
        names = names_of(cells.CELLS[name], a.peer, a.quick)
        done = sides.run(name, names, a.quick, a.place, QUICK_S if a.quick else FULL_S)
        cell = record["cells"][name] = report.cell_record(name, done) | {"load": load}
        if not a.json:
            print("\n".join(report.lines_of(cell)), end="\n\n", flush=True)
    goals = [g for cell in record["cells"].values() for g in cell["goals"]]
    record["met"] = sum(g["met"] is True for g in goals)
    record["missed"] = sum(g["met"] is False for g in goals)
    record["seconds"] = time.monotonic() - began
    if a.json:
        print(json.dumps(record, indent=1))
    else:
        print(f"{record['met']} goals met, {record['missed']} missed, {record['seconds']:.0f} s; "
              f"Python {record['python']}, {record['cpus']} CPUs, place {a.place}")
    ours = [s for cell in record["cells"].values() for n, s in cell["sides"].items()
            if n not in peers.PEERS or n.startswith("ours")]
    return 1 if any("missing" in s for s in ours) else 0


if __name__ == "__main__":
    sys.exit(main())
