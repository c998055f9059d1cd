# SPDX-License-Identifier: MIT
"""The benchmark measures and judges; its figures are no matter of a test."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from gpudispatch.bench import cells


def bench(*arguments: str) -> Any:
    command = [sys.executable, "-m", "gpudispatch.bench", "--quick", "--json", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=120, check=True)
    return json.loads(done.stdout)


def test_figures_and_goals() -> None:
    record = bench("--cell", "trip", "--cell", "outcomes", "--peer", "Pool")
    assert list(record["cells"]) == ["trip", "outcomes"]
    trip = record["cells"]["trip"]
    assert list(trip["sides"]) == ["ours", "Pool"]
    for side in trip["sides"].values():
        assert 1 <= side["rounds"] <= 3
        assert 0 < side["us"]["q1"] <= side["us"]["median"] <= side["us"]["q3"]
    ratio = trip["sides"]["ours"]["us"]["median"] / trip["sides"]["Pool"]["us"]["median"]
    assert trip["sides"]["Pool"]["ours/this"] == ratio
    # the other pool of this goal was left out
    assert trip["goals"][0]["met"] is None
    judged = record["cells"]["outcomes"]["goals"]
    assert [g["met"] for g in judged] == [g["value"] <= g["most"] for g in judged]
    assert record["met"] + record["missed"] == len(judged) == 3


def test_a_killed_worker_fails_one_future() -> None:
    sides = bench("--cell", "killed", "--peer", "fork")["cells"]["killed"]["sides"]
    assert sides["ours"]["failed"]["median"] == 1
    assert sides["ours"]["words"] == "WorkerCrashed"
    assert sides["fork"]["words"] == "broken: BrokenProcessPool"
    assert "ms" not in sides["fork"]


@pytest.mark.slow
def test_every_cell_has_a_figure_of_ours() -> None:
    record = bench("--peer", "threads")
    assert list(record["cells"]) == list(cells.CELLS)
    for name, cell in record["cells"].items():
        ours = {n: s for n, s in cell["sides"].items() if n != "threads"}
        assert set(ours) == {n for n in cells.CELLS[name].sides if n.startswith("ours")} or (
            set(ours) == set(cells.PROGRAMS)
        )
        for side in ours.values():
            assert side["rounds"] >= 1
            assert side[cell["unit"]]["median"] > 0
