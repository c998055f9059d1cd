# SPDX-License-Identifier: MIT
"""From rounds to medians, ratios and goals; the table and the JSON."""

from __future__ import annotations

import math
import statistics
from typing import Any

from gpudispatch.bench.cells import CELLS, Goal
from gpudispatch.bench.peers import TITLES
from gpudispatch.bench.sides import Side


def quartiles(values: list[float]) -> dict[str, float]:
    if len(values) < 2:
        values = values * 2
    q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": median, "q1": q1, "q3": q3}


def side_record(side: Side) -> dict[str, Any]:
    """Quartiles of each figure; words as they are."""
    record: dict[str, Any] = {"rounds": len(side.rounds)}
    if side.why is not None:
        record["missing"] = side.why
    for name in side.rounds[0] if side.rounds else ():
        values = [r[name] for r in side.rounds]
        numbers = [v for v in values if isinstance(v, (int, float)) and not math.isnan(v)]
        if any(isinstance(v, str) for v in values):
            record[name] = values[-1]
        elif numbers:
            record[name] = quartiles(numbers)
    return record


def judge(goal: Goal, sides: dict[str, Any]) -> dict[str, Any]:
    """The goal with its value; met is None where a figure is missing."""

    def median(side: str, figure: str) -> float | None:
        found = sides.get(side, {}).get(figure)
        return found["median"] if isinstance(found, dict) else None

    what = f"{goal.side}, {goal.figure}"
    mine = median(goal.side, goal.figure)
    if goal.over is None:
        value, most = mine, goal.most
    else:
        other = median(*goal.over)
        if goal.plus:
            value = mine
            most = math.nan if other is None else goal.most * other + goal.plus
            what += f" (bound: {goal.most:g} x {goal.over[0]} + {goal.plus:g})"
        else:
            value, most = None if mine is None or not other else mine / other, goal.most
            what += f" / {goal.over[0]}"
    known = value is not None and not math.isnan(most)
    return {
        "goal": what,
        "value": value,
        "most": None if math.isnan(most) else most,
        "met": value <= most if known and value is not None else None,
    }


def cell_record(name: str, sides: list[Side]) -> dict[str, Any]:
    cell = CELLS[name]
    records = {side.name: side_record(side) for side in sides}
    mine = records.get("ours", {}).get(cell.unit)
    for record in records.values():
        other = record.get(cell.unit)
        if mine and other:
            record["ours/this"] = mine["median"] / other["median"]
    goals = [judge(goal, records) for goal in cell.goals]
    return {"title": cell.title, "unit": cell.unit, "sides": records, "goals": goals}


def number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def lines_of(record: dict[str, Any]) -> list[str]:
    """The table of one cell."""
    unit = record["unit"]
    lines = [f"{record['title']} ({unit})"]
    for name, side in record["sides"].items():
        title, main = TITLES.get(name, name), side.get(unit)
        text = f"  {title:34}"
        if main:
            text += f"{number(main['median']):>8}  [{number(main['q1'])}, {number(main['q3'])}]"
            text = f"{text:64}"
            if "ours/this" in side and name != "ours":
                text += f" ours / it {number(side['ours/this'])}"
        elif "missing" in side:
            text += side["missing"]
        extra = [
            f"{key} {number(value['median']) if isinstance(value, dict) else value}"
            for key, value in side.items()
            if key not in (unit, "rounds", "missing", "ours/this")
        ]
        lines.append((text + "  " + ", ".join(extra)).rstrip())
    for goal in record["goals"]:
        verdict = {True: "met", False: "MISSED", None: "not measured"}[goal["met"]]
        value = "-" if goal["value"] is None else number(goal["value"])
        most = "-" if goal["most"] is None else number(goal["most"])
        lines.append(f"  {verdict}: {goal['goal']}: {value}, at most {most}")
    return lines
