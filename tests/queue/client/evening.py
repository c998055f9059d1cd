# SPDX-License-Identifier: MIT
"""What the evenings share: commands that keep their GPUs until a gate opens, and the views of a
queue, which have to agree after a case."""
import csv
import functools
import io
import json
import os
import re
import sys

sys.dont_write_bytecode = True
from cli import equal, until  # noqa: E402

# Takes its GPUs, each of which no other command may have now, and leaves them.
ALONE = "IFS=,; for g in $GPUDISPATCH_GPUS; do mkdir held-$g || exit 99; done"
LEAVE = "for g in $GPUDISPATCH_GPUS; do rmdir held-$g; done"

SLOW = os.environ.get("T_EFFORT") == "slow"


def line(number, then=""):
    """Of a jobs file: notes that it ran, and on which GPU."""
    return (f"{ALONE}; echo {number} >> ran; echo $GPUDISPATCH_GPUS >> gpus; {LEAVE}; "
            f"{then or 'true'}")


def hold_gpus(q, n, *options):
    """A batch of n commands, each on its GPU until the test writes to its file gate-N.  Returns
    its id once all of them run."""
    for i in range(1, n + 1):
        if not q.path(f"gate-{i}").exists():
            os.mkfifo(q.path(f"gate-{i}"))
    q.write("hold.sh", "echo $GPUDISPATCH_TASK $GPUDISPATCH_ATTEMPT $GPUDISPATCH_GPUS >> began\n"
                       "cat gate-$1\n")
    batch = q.submit(*options, "--array", f"1-{n}", "--batch", "hold", "--", "sh", "hold.sh",
                     "{}")["batch"]
    return batch


def began(q):
    """(task, attempt, GPU) of each start."""
    words = q.words("began")
    return list(zip(words[::3], words[1::3], words[2::3]))


def open_gate(q, n):
    with open(q.path(f"gate-{n}"), "w"):
        pass


def open_gate_of(q):
    with open(q.path("gate"), "w"):
        pass


def recording(q):
    """Rows of `ls`, and a recording from between two equal lists of them."""
    found = []

    def unchanged():
        before = q.json("ls", "--all")
        q.run("report", "--since", "2d", "--records", "-o", "night.lines")
        found[:] = [before, q.json("ls", "--all")]
        return rows_alone(before) == rows_alone(found[1])

    until(unchanged, "the same rows twice")
    return found[0]


def rows_alone(batches):
    """Without the time left, which changes with the time."""
    return [{k: v for k, v in b.items() if not k.startswith("left_")} for b in batches]


# The report has the counts of `ls` [V3], and each bad end in each place [V4].
def look_back(q):
    batches, night = recording(q), ("--from", "night.lines")
    seen = json.loads(q.run("report", *night, "--json"))
    rows = {b["batch"]: b for b in seen["batches"]}
    for batch in batches:
        row = rows.pop(batch["batch"])
        equal((batch["batch"], row["total"], row["joined"], row["outcomes"]),
              (batch["batch"], batch["total"], batch["joined"], batch.get("outcomes", {})))
    equal(list(rows), [])
    for gpu in seen["gpus"]:  # to the ms
        span = (seen["to"] - seen["from"]) / 1e6
        assert abs(sum(gpu["gpu_ms"].values()) - span) <= 1, gpu
    bad = sum(n for outcome, n in seen["ends"].items() if outcome not in ("ok", "running"))
    found = sum(f["count"] for f in seen["findings"] if f["kind"] == "bad")
    trace = json.loads(q.run("trace", *night, "-o", "-"))["traceEvents"]
    marks = re.search(r'data-bad="(\d+)"', q.run("report", *night, "-o", "-"))
    listed = list(csv.DictReader(io.StringIO(q.run("report", *night, "--csv"))))
    equal([found, sum(e["ph"] == "i" for e in trace), int(marks[1]),
           sum(row["outcome"] not in ("ok", "running") for row in listed)], [bad] * 4)


def and_back(case):
    @functools.wraps(case)
    def both(q):
        case(q)
        look_back(q)
    return both
