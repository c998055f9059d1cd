# SPDX-License-Identifier: MIT
"""report --json against the recount of the same lines: uses [V3], bad ends [V4], tasks, batches,
waits.  All nights but the large one, each with several seeds.
"""
import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import nights  # noqa: E402
from recount import recount  # noqa: E402
from tool import equal, run  # noqa: E402

MS = 10**6
# Nights of many rows have fewer seeds.
SEEDS = {"large": 0, "night": 2, "running": 2, "64-gpus": 2}
USUAL_SEEDS = 20
# The waits of a report by the words of reasons.  A busy GPU may be one that is kept: both are one.
WHYS = {"BUSY": "busy", "SHARE": "busy", "HEAD_HOLDS": "busy", "MAX_WAIT": "busy",
        "SEATS": "limit", "at once": "limit", "BOOTING": "loading", "FAULT": "out",
        "DRAINED": "out", "": "unseen"}


def shown(tool, text):
    status, out, err = tool.run("report", "--json", "--from", tool.write("night.txt", text))
    equal((status, err), (0, ""))
    return json.loads(out)


def without_zeros(counts):
    return {k: n for k, n in counts.items() if n}


def same_uses(name, seen, wanted):
    """Each use to the ms, and their sum exactly."""
    span = (wanted["to"] - wanted["since"]) // MS
    equal((name, [g["uuid"] or g["name"] for g in seen["gpus"]]),
          (name, [g["key"] for g in wanted["gpus"]]))
    for gpu, other in zip(seen["gpus"], wanted["gpus"]):
        equal((name, other["key"], sum(gpu["gpu_ms"].values())), (name, other["key"], span))
        equal((name, sorted(gpu["gpu_ms"])), (name, sorted(other["uses"])))
        for use, ns in other["uses"].items():
            assert abs(gpu["gpu_ms"][use] - ns / MS) <= 1, (name, other, gpu)


def same_waits(name, seen, wanted):
    ms = {}
    for word, ns in wanted.items():
        why = WHYS.get(word, "other")
        ms[why] = ms.get(why, 0) + ns / MS
    got = dict(seen)
    got["busy"] = got.get("busy", 0) + got.pop("gathering", 0)
    for why in set(ms) | set(got):
        assert abs(ms.get(why, 0) - got.get(why, 0)) <= 2, (name, why, ms, seen)


def same_batches(name, seen, wanted):
    equal((name, [b["batch"] for b in seen]), (name, [str(b["id"]) for b in wanted]))
    for batch, other in zip(seen, wanted):
        here = f"{name}, batch {other['id']}"
        equal((here, without_zeros(batch["outcomes"])), (here, without_zeros(other["ends"])))
        equal((here, batch["attempts"]), (here, other["attempts"]))
        same_waits(here, batch["wait_ms"], other["waits"])


def same_counts(name, seen, wanted):
    equal((name, seen["from"], seen["to"]), (name, wanted["since"], wanted["to"]))
    for key, other in ("attempts", "attempts"), ("tasks", "tasks"), ("bad", "bad"), (
            "unknown_lines", "unknown"):
        equal((name, key, seen[key]), (name, key, wanted[other]))
    equal((name, without_zeros(seen["outcomes"])), (name, without_zeros(wanted["tasks_by"])))
    ends = without_zeros(seen["ends"])
    ends.pop("running", None)
    equal((name, ends), (name, wanted["ended_by"]))
    equal((name, sum(f["count"] for f in seen["findings"] if f["kind"] == "bad")),
          (name, wanted["bad"]))


def compare(tool, night):
    for seed in range(SEEDS.get(night, USUAL_SEEDS)):
        name, text = f"{night} --seed {seed}", nights.text(night, seed)
        seen, wanted = shown(tool, text), recount(text)
        same_counts(name, seen, wanted)
        same_uses(name, seen, wanted)
        same_batches(name, seen["batches"], wanted["batches"])


def cases():
    for night in nights.NIGHTS:
        if SEEDS.get(night, USUAL_SEEDS):
            yield night.replace("-", "_"), lambda tool, night=night: compare(tool, night)


run({f"test_{name}": case for name, case in cases()}, "view")
