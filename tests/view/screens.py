# SPDX-License-Identifier: MIT
"""The screens of top, printed once: made-up nights at five sizes as they are in screens/, texts of
any bytes, and what is printed where no screen can be.

T_RECORD=1 writes the files of screens/ anew: read them before you keep them.
"""
import json
import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import nights  # noqa: E402
from tool import Skip, contains, equal, run  # noqa: E402

SCREENS = pathlib.Path(__file__).resolve().parent / "screens"
SIZES = [(40, 10), (80, 24), (120, 40), (160, 50), (250, 60)]
STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
HERE = {"TZ": "CET-1", "LC_ALL": "C.UTF-8"}


def show(tool, name, *args, env=None, **more):
    """What is printed of a night."""
    night = tool.write(name + ".txt", nights.text(name))
    status, out, err = tool.run("top", "--once", "--from", night, *args,
                                env={**HERE, **(env or {})}, **more)
    equal((name, status, err), (name, 0, ""))
    return out


def sized(tool, name, columns, lines, *args, env=None):
    return show(tool, name, *args, env={"COLUMNS": str(columns), "LINES": str(lines),
                                        **(env or {})})


def check(name, seen):
    path = SCREENS / (name + ".txt")
    if os.environ.get("T_RECORD"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(seen)
    wanted = path.read_text()
    assert seen == wanted, f"{path.name} has another screen:\n{seen}"


def golden(tool, name, columns, lines, *args):
    seen = sized(tool, name, columns, lines, *args)
    assert seen.count("\n") <= lines, seen
    assert max(map(len, seen.split("\n"))) <= columns, seen  # these nights have no wide characters
    check("-".join([name, f"{columns}x{lines}", *(a.strip("-") for a in args)]), seen)
    return seen


# ---- Made-up nights ----


def test_running(tool):
    """A night that still runs, at each size."""
    for columns, lines in SIZES:
        golden(tool, "running", columns, lines)


def test_over(tool):
    for columns, lines in (80, 24), (160, 50):
        golden(tool, "night", columns, lines)


def test_many_gpus(tool):
    """64 GPUs have room in 24 lines, since alike ones are folded."""
    contains(golden(tool, "64-gpus", 80, 24), " 60 GPUs")
    status, _, err = tool.run("top", "--at", "20:20")
    if "without the queue" in err:
        raise Skip(err)
    equal(status, 2)
    for columns, lines in (80, 24), (40, 10):
        check(f"64-gpus-{columns}x{lines}-at",
              sized(tool, "64-gpus", columns, lines, "--at", "20:20"))


def test_small_nights(tool):
    for name in ("empty", "nothing", "one", "failed", "waiting", "at-once", "mig", "shares",
                 "adoption"):
        golden(tool, name, 80, 24)


def test_ascii(tool):
    """--ascii, and a locale without UTF-8, need no other character."""
    seen = golden(tool, "running", 80, 24, "--ascii")
    assert seen.isascii(), seen
    equal(sized(tool, "running", 80, 24, env={"LC_ALL": "C"}), seen)
    assert sized(tool, "hostile", 120, 40, "--ascii").isascii()


def test_eight_answers(tool):
    """80x24 has the answers to the questions of the trial (docs/design/0027-look.md)."""
    seen = sized(tool, "running", 80, 24)
    for part in ("\n3   run   judge   16.145 judge +GPU 2 ",         # the task on GPU 3
                 "max_workers 3 of class whisper is reached",       # why a first task waits
                 "15 rec-11 610-631, GPU 0,4,7 ",                   # crashed tasks and their GPUs
                 "\n5   OUT   quarantined since 01:12: XID 48 ",    # which GPU is out
                 "\n6   kept  since 02:02 for 14 sweep (needs 2 GPUs) ",
                 "has GPU 6, waits for 1 more of 2 (3 h 35)",      # of the longest batch
                 "done about 07:56-11:36",
                 " TYPE gpudispatch ...\n", " log 16.71\n"):
        contains(seen, part)


# ---- Texts of any bytes ----


def test_hostile_texts(tool):
    """Names and texts steer no terminal.  [V5]"""
    for columns, lines in SIZES:
        for args in (), ("--ascii",):
            seen = sized(tool, "hostile", columns, lines, *args)
            found = STEERS.search(seen)
            assert not found, f"{columns}x{lines}: {found.group()!r} in {seen!r}"
    contains(seen, "\\x1b[31m")


# ---- Numbers ----


def test_what_does_not_fit_is_counted(tool):
    """The batches of the rows and of the line below them are all batches, at any size."""
    whole = show(tool, "hostile")
    all_batches = len(re.findall("ended at|1 +1 +0 +2 unknown", whole))
    for lines in range(12, 45, 4):
        seen = sized(tool, "hostile", 80, lines)
        rows = len(re.findall("1 +1 +0 +2 unknown|ended at", seen))
        more = re.search(r"^(\d+) more batch(?:es)?: ", seen, re.M)
        equal((lines, rows + int(more.group(1) if more else 0)), (lines, all_batches))


def test_json_is_one_line(tool):
    status, snapshot = tool.json("top", "--once", "--from",
                                 tool.write("night.txt", nights.text("running")))
    equal(status, 0)
    seen = sized(tool, "running", 160, 50)
    contains(seen, f"{sum(b['total'] for b in snapshot['batches']):,} tasks: ")
    contains(seen, f"({snapshot['bad_24h']} bad ends of {snapshot['bad_tasks_24h']} tasks in 24 h")
    status, out, err = tool.run("top", "--json", "--from", tool.path("night.txt"))
    equal((status, json.loads(out), err), (0, snapshot, ""))


# ---- Where it is printed ----


def test_pipe_has_80_columns_and_all_rows(tool):
    seen = show(tool, "running")
    assert max(map(len, seen.split("\n"))) <= 80, seen
    assert not re.search(r"^\d+ more |; \d+ more", seen, re.M), seen
    for part in "GPU STATE", "BATCH ", "CLASS  ", "WENT WRONG", "ENDED LAST":
        contains(seen, "\n" + part)
    night = tool.path("running.txt")
    equal(tool.run("top", "--from", night, env=HERE, stdin=-3), (0, seen, ""))


def test_too_small(tool):
    equal(sized(tool, "one", 30, 24), "30x24: top needs 40x10\n")
    equal(sized(tool, "one", 40, 9), "40x9: top needs 40x10\n")
    equal(sized(tool, "one", 12, 2), "12x2: top...\n")


def test_wrong_usage(tool):
    night = tool.write("night.txt", nights.text("one"))
    for args, part in (
        (("top", "12"), "top"),
        (("top", "--at", "02:17"), "--at needs --from FILE"),
        (("top", "--from", night, "--at", "2020-01-01T00:00:00Z"),
         "is not in the recording, from "),
        (("top", "--csv"), "--csv"),
    ):
        status, out, err = tool.run(*args)
        equal((args, status, out), (args, 2, ""))
        contains(err, part)
    status, out, err = tool.run("top", "--from", tool.path("none"))
    equal((status, out), (1, ""))
    contains(err, "No such file")


run(globals(), "view")
