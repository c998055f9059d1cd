# SPDX-License-Identifier: MIT
"""A report of the decision_log of a Pool in Python has the ends that the program itself has seen.

Its environment leads to the package: PYTHONPATH.
"""
import csv
import io
import json
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
from tool import PATIENCE, contains, equal, run  # noqa: E402

PROGRAM = '''
import json
import os
import sys
import time

from gpudispatch import Pool

KINDS = ["works"] * 6 + ["raises", "dies", "is late"]


class Model:
    def process(self, kind):
        if kind == "raises":
            raise ValueError("no sound")
        if kind == "dies":
            os.kill(os.getpid(), 9)
        while kind == "is late":
            time.sleep(0.001)


def submit(work, name, kind, n):
    seconds = 0.05 if kind == "is late" else None
    options = work.options(label=f"{name} {kind} {n}", task_timeout=seconds)
    return name, kind, options.submit(kind)


def ends(pool):
    for name, devices in ("whisper", 1), ("llama", 1), ("wide", 2):
        work = pool.add(name, worker=Model, devices=devices, min_residence=0.001, grace=0.05)
        for n, kind in enumerate(KINDS):
            yield submit(work, name, kind, n)


if __name__ == "__main__":
    with Pool("fake:8", decision_log=sys.argv[1]) as pool:
        waiting = list(ends(pool))
        seen = []
        for name, kind, future in waiting:
            error = future.exception()
            seen.append([name, type(error).__name__ if error else None, future.device])
        print(json.dumps(seen))
'''
OUTCOMES = {None: "ok", "ValueError": "error", "WorkerCrashed": "crashed",
            "TaskTimeout": "timeout"}


def night(tool):
    """What the program has seen: class, outcome and devices of each task."""
    log = tool.path("night.log")
    ended = subprocess.run([sys.executable, tool.write("night.py", PROGRAM), log],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE,
                           text=True)
    equal((ended.returncode, ended.stderr), (0, ""))
    return log, [(name, OUTCOMES[kind], device) for name, kind, device in json.loads(ended.stdout)]


def counts(rows):
    return {word: sum(row == word for row in rows) for word in sorted(set(rows))}


def same_uses(report):
    """[V3]"""
    span = (report["to"] - report["from"]) // 10**6
    for gpu in report["gpus"]:
        equal((gpu["name"], sum(gpu["gpu_ms"].values())), (gpu["name"], span))
    equal([gpu["name"] for gpu in report["gpus"]], [f"fake:{n}" for n in range(8)])


def test_pool(tool):
    log, seen = night(tool)
    status, out, err = tool.run("report", "--from", log, "--json")
    report = json.loads(out)
    equal((status, err, report["unknown_lines"], report["over"]), (0, "", 0, True))
    equal(report["outcomes"], counts([outcome for _, outcome, _ in seen]))
    for batch in report["batches"]:
        mine = [outcome for name, outcome, _ in seen if name == batch["name"]]
        equal((batch["name"], batch["outcomes"]), (batch["name"], counts(mine)))
        equal(batch["total"], len(mine))
    equal(sorted(b["name"] for b in report["batches"]), ["llama", "whisper", "wide"])
    same_uses(report)
    bad = [f for f in report["findings"] if f["kind"] == "bad"]  # [V4]
    equal(sum(f["count"] for f in bad), sum(outcome != "ok" for _, outcome, _ in seen))
    equal({f["command"] for f in report["findings"]}, {None})
    contains(json.dumps(bad), "ValueError: no sound")
    contains(json.dumps(bad), "killed by signal 9")


def test_attempts(tool):
    """Each row has name and GPUs; an attempt for each task, as none is tried again."""
    log, seen = night(tool)
    status, out, err = tool.run("report", "--from", log, "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    equal((status, err, len(rows)), (0, "", len(seen)))
    equal(sorted((r["class"], r["outcome"], r["gpus"].replace(" ", ",")) for r in rows),
          sorted(seen))
    for row in rows:
        contains(row["name"], row["class"])


def test_other_formats(tool):
    log, _ = night(tool)
    for *args, part in (("report", "ValueError: no sound"), ("trace", "whisper raises 6"),
                        ("report", "--joblog", "whisper raises 6"),
                        ("report", "--records", "whisper raises 6")):
        status, out, err = tool.run(*args, "--from", log)
        equal((args, status, err), (args, 0, ""))
        contains(out, part)
    recording = tool.write("night.txt", out)
    equal(tool.run("report", "--from", recording, "--json"),
          tool.run("report", "--from", log, "--json"))


def test_cut_log(tool):
    """The first half of a log is a night that goes on."""
    log, _ = night(tool)
    whole = pathlib.Path(log).read_bytes()
    status, out, err = tool.run("report", "--json", "--from",
                                tool.write("half", whole[:len(whole) // 2]))
    report = json.loads(out)
    equal((status, err, report["over"]), (0, "", False))
    same_uses(report)


run(globals(), "view")
