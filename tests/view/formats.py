# SPDX-License-Identifier: MIT
"""The verbs report and trace: each format of made-up nights, texts of any bytes, and files that
fail.

The rows of a night are read here once more, so that numbers are compared with what was written.
"""
import collections
import csv
import io
import json
import os
import pathlib
import re
import stat
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import nights  # noqa: E402
import recount  # noqa: E402
from tool import contains, equal, run  # noqa: E402

MS, US = 10**6, 1000
LINE_MOST = 65536  # of view/line.h: a longer line is left out
STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# Nights whose rows are as an agent writes them; "large" is for the benchmark.
SANE = [name for name in nights.NIGHTS if name not in ("any", "large")]
Row = collections.namedtuple("Row", "task number shape gpus ready started ended outcome status")


def rows_of(text):
    """The attempts of a recording, and its last time."""
    rows, now = [], 0
    for line in text.split(b"\n"):
        kind, *fields = line.split(b"\t")
        if len(line) > LINE_MOST:
            continue
        if kind == b"attempt":
            rows.append(Row(fields[0].decode(), int(fields[1]), fields[2],
                            [g for g in fields[3].split(b",") if g],
                            *(int(f or 0) for f in fields[4:7]), fields[7].decode(),
                            int(fields[8])))
        elif kind == b"now":
            now = int(fields[0])
    return rows, now


def bad(rows):
    return [r for r in rows if r.outcome not in ("ok", "running")]


def has_end(text):
    return (b"\nnow\t" if isinstance(text, bytes) else "\nnow\t") in text


def show(tool, text, *args):
    """What the program writes of a recording."""
    night = tool.write("night.txt", text)
    status, out, err = tool.run(*args, "--from", night)
    warning = f"gpudispatch: {args[0]}: {night}: the recording is cut: its last line is missing\n"
    equal((args, status, err), (args, 0, "" if has_end(text) else warning))
    return out


def numbers(tool, text):
    return json.loads(show(tool, text, "report", "--json"))


# ---- The numbers ----


def test_uses_add_up(tool):
    """The uses of each GPU are its time, to the ms.  [V3]"""
    for name in nights.NIGHTS:
        if name == "large":
            continue
        seen = numbers(tool, nights.text(name))
        span = (seen["to"] - seen["from"]) // MS
        for gpu in seen["gpus"]:
            equal((name, gpu["name"], sum(gpu["gpu_ms"].values())), (name, gpu["name"], span))
        equal((name, sum(seen["gpu_ms"].values())), (name, span * len(seen["gpus"])))
        for use, ms in seen["gpu_ms"].items():
            equal((name, use, ms), (name, use, sum(g["gpu_ms"][use] for g in seen["gpus"])))


def test_numbers_are_those_of_the_rows(tool):
    """Each bad end is counted once in each place.  [V4]"""
    for name in SANE:
        text = nights.text(name)
        rows, now = rows_of(text)
        seen = numbers(tool, text)
        equal((name, seen["version"]), (name, 1))
        equal((name, seen["attempts"]), (name, sum(r.number > 0 for r in rows)))
        equal((name, seen["tasks"]), (name, len({r.task for r in rows})))
        equal((name, seen["ends"]), (name, dict(collections.Counter(r.outcome for r in rows))))
        equal((name, seen["bad"]), (name, len(bad(rows))))
        equal((name, sum(f["count"] for f in seen["findings"] if f["kind"] == "bad")),
              (name, len(bad(rows))))
        if now:
            equal((name, seen["to"]), (name, now))


def test_uses_are_those_of_a_recount(tool):
    """Of each GPU, to the ms; and the outcomes of tasks."""
    for name in SANE:
        text = nights.text(name)
        seen, wanted = numbers(tool, text), recount.recount(text)
        equal((name, seen["from"], seen["to"]), (name, wanted["since"], wanted["to"]))
        equal((name, seen["outcomes"]), (name, wanted["tasks_by"]))
        for gpu, again in zip(seen["gpus"], wanted["gpus"], strict=True):
            for use, ms in gpu["gpu_ms"].items():
                assert abs(ms - again["uses"][use] / MS) <= 1, (name, gpu["name"], use, gpu, again)
        for batch, again in zip(seen["batches"], wanted["batches"], strict=True):
            equal((name, batch["batch"], batch["attempts"], sum(batch["outcomes"].values())),
                  (name, str(again["id"]), again["attempts"], again["ok"] + again["bad"]))


def test_batches_have_their_counts(tool):
    text = nights.text("night")
    lines = [line.split(b"\t") for line in text.split(b"\n") if line.startswith(b"batch\t")]
    seen = {b["batch"]: b for b in numbers(tool, text)["batches"]}
    equal(sorted(seen), sorted(line[1].decode() for line in lines))
    for line in lines:
        batch = seen[line[1].decode()]
        equal((batch["name"], batch["total"], batch["joined"]),
              (line[2].decode(), int(line[7]), int(line[8])))
        equal(",".join(f"{k}={v}" for k, v in sorted(batch["outcomes"].items())),
              ",".join(sorted(line[12].decode().split(","))))
        assert batch["run_p50_ms"] > 0 and batch["run_p95_ms"] >= batch["run_p50_ms"], batch
        assert batch["wait_ms"], batch


def test_findings_have_commands(tool):
    found = numbers(tool, nights.text("crash-burst"))["findings"]
    worst = next(f for f in found if f["kind"] == "bad")
    equal(worst["outcome"], "crashed")
    assert worst["gpus"] and worst["ranges"], worst
    contains(worst["command"], "gpudispatch ")


def test_a_gpu_that_is_only_named(tool):
    """Of a GPU that is gone no more than its name is known."""
    gone = [g for g in numbers(tool, nights.text("gone"))["gpus"] if g["index"] is None]
    assert gone and all(g["name"] and g["model"] is None for g in gone), gone


def test_unknown_lines_are_counted(tool):
    equal(numbers(tool, nights.text("later"))["unknown_lines"], 5)
    equal(numbers(tool, nights.text("night"))["unknown_lines"], 0)


# ---- Rows ----


def cells(tool, text):
    out = show(tool, text, "report", "--csv")
    return list(csv.DictReader(io.StringIO(out, newline=""), strict=True)), out


def test_csv_has_each_attempt_once(tool):
    for name in SANE:
        text = nights.text(name)
        rows, _ = rows_of(text)
        seen, out = cells(tool, text)
        equal((name, out.count("\n")), (name, len(rows) + 1))
        equal(sorted((r["task"], int(r["attempt"]), r["outcome"]) for r in seen),
              sorted((r.task, r.number, r.outcome) for r in rows))


def test_csv_has_times_and_status(tool):
    rows, _ = rows_of(nights.text("night"))
    seen, _ = cells(tool, nights.text("night"))
    by = {(r["task"], int(r["attempt"])): r for r in seen}
    for r in rows:
        cell = by[r.task, r.number]
        assert abs(float(cell["ran_s"]) - (r.ended - r.started) / 1e9) < 0.002, (r, cell)
        assert abs(float(cell["waited_s"]) - (r.started - r.ready) / 1e9) < 0.002, (r, cell)
        equal((cell["status"], cell["signal"]),
              (str(r.status), "") if r.status >= 0 else ("", str(-r.status)))
        assert re.fullmatch(r"2026-11-1[34]T\d\d:\d\d:\d\d\.\d{3}Z", cell["started"]), cell
        equal(len(cell["gpus"].split()), len(r.gpus))


def test_joblog_has_the_columns_of_parallel(tool):
    text = nights.text("retries")
    rows, _ = rows_of(text)
    head, *lines = [line.split("\t") for line in
                    show(tool, text, "report", "--joblog").splitlines()]
    equal(head, ["Seq", "Host", "Starttime", "JobRuntime", "Send", "Receive", "Exitval", "Signal",
                 "Command"])
    last = {r.task: r for r in rows}  # those of a task are in the order of their ends
    ended = [r for r in last.values() if r.number and r.outcome != "running"]
    assert ended
    equal(len(lines), len(ended))
    ended.sort(key=lambda r: r.started)
    for line, r in zip(lines, ended):
        equal((len(line), line[0]), (9, r.task.split(".")[1]))
        assert abs(float(line[2]) - r.started / 1e9) < 0.002, (line, r)
        assert abs(float(line[3]) - (r.ended - r.started) / 1e9) < 0.002, (line, r)
        equal((line, line[6:8] == ["0", "0"]), (line, r.outcome == "ok"))


# ---- The trace ----


def union(parts):
    """The length of time that is in at least one of the parts."""
    total, end = 0, 0
    for since, until in sorted(parts):
        total += max(0, until - max(since, end))
        end = max(end, until)
    return total


def check_trace(name, trace, seen, rows):
    events = trace["traceEvents"]
    slices, names = collections.defaultdict(list), {}
    for e in events:
        assert all(isinstance(e[k], int) for k in ("pid", "tid")), e
        assert e["ph"] in "MXiC" and e["name"], e
        if e["ph"] == "M":
            names[e["name"], e["pid"], e["tid"]] = next(iter(e["args"].values()))
            continue
        assert isinstance(e["ts"], int) and seen["from"] // US <= e["ts"] <= seen["to"] // US, e
        assert ("process_name", e["pid"], 0) in names, e
        if e["ph"] == "X":
            assert isinstance(e["dur"], int) and e["dur"] >= 0, e
            slices[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
        if e["ph"] in "Xi":
            assert ("thread_name", e["pid"], e["tid"]) in names, e
    equal((name, names["process_name", 0, 0]), (name, "queue"))
    for i, gpu in enumerate(seen["gpus"]):
        contains(names["process_name", i + 1, 0], gpu["name"])
        equal([names["thread_name", i + 1, t] for t in (1, 2, 3)], ["tasks", "worker", "device"])
    for track, parts in slices.items():
        parts.sort()
        for before, after in zip(parts, parts[1:]):
            assert before[1] <= after[0], (name, track, before, after)
    for i, gpu in enumerate(seen["gpus"]):
        parts = [p for (pid, tid), all_ in slices.items() for p in all_
                 if pid == i + 1 and (tid == 1 or 10 < tid < 1000000)]
        ms = gpu["gpu_ms"]["ok"] + gpu["gpu_ms"]["lost"]
        # Each end of a slice is rounded to 1 us.
        assert abs(union(parts) / 1000 - ms) <= 2 + len(parts) / 1000, (name, gpu, union(parts))
    instants = [e for e in events if e["ph"] == "i"]
    equal((name, sorted((e["name"], e["ts"]) for e in instants)),
          (name, sorted((f"{r.outcome} {r.task}", r.ended // US) for r in bad(rows))))
    equal((name, len(instants)), (name, seen["bad"]))
    return [e for e in events if e["ph"] == "C"]


def traced(tool, name):
    text = nights.text(name)
    rows, _ = rows_of(text)
    seen = numbers(tool, text)
    return seen, check_trace(name, json.loads(show(tool, text, "trace")), seen, rows)


def test_trace_agrees(tool):
    """Tracks, sums [V3], and an instant for each bad end [V4]."""
    for name in SANE:
        seen, counters = traced(tool, name)
        turns = {b["id"]: b["turn"] for b in recount.recount(nights.text(name))["batches"]}
        last = {e["name"].split()[1]: e["args"]["tasks"] for e in counters}
        for batch in seen["batches"]:
            if batch["made"] >= seen["to"]:
                continue
            equal((name, batch["batch"], last.get(batch["batch"], 0)),
                  (name, batch["batch"],
                   batch["states"]["ready"] + turns[int(batch["batch"])]))


def test_trace_has_few_counters(tool):
    """Two changes of a counter for each of 2,000 parts of the span, also where each attempt is
    one."""
    text = nights.text("large", tasks=20000)
    counters = collections.Counter(e["name"] for e in json.loads(show(tool, text, "trace"))
                                   ["traceEvents"] if e["ph"] == "C")
    assert counters and max(counters.values()) <= 4001, counters
    assert sum(counters.values()) > 1000, counters


def test_trace_has_tracks_for_shares(tool):
    trace = json.loads(show(tool, nights.text("shares"), "trace"))
    names = {e["args"]["name"] for e in trace["traceEvents"]
             if e["ph"] == "M" and e["name"] == "thread_name"}
    assert {"tasks", "tasks 2", "worker", "device"} <= names, names


def test_trace_of_a_gpu_that_does_two_things(tool):
    """Rows of a worker and of a device that overlap have tracks of their own, too."""
    seen = numbers(tool, nights.text("any"))
    trace = json.loads(show(tool, nights.text("any"), "trace"))
    ends = {}
    for e in sorted((e for e in trace["traceEvents"] if e["ph"] == "X"), key=lambda e: e["ts"]):
        track = e["pid"], e["tid"]
        assert e["ts"] >= ends.get(track, 0), e
        ends[track] = e["ts"] + e["dur"]
    equal(sum(e["ph"] == "i" for e in trace["traceEvents"]), seen["bad"])


# ---- Texts of any bytes ----


def test_hostile_texts(tool):
    """No text makes a control sequence, a line, a member or a formula.  [V5]"""
    text = nights.text("hostile")
    rows, _ = rows_of(text)
    for args in (("report", "--json"), ("report", "--csv"), ("report", "--joblog"), ("trace",)):
        out = show(tool, text, *args)  # it is UTF-8
        found = STEERS.search(out.replace("\t", "") if "--joblog" in args else out)
        assert not found, (args, found)
        if args[-1] in ("--json", "trace"):
            assert not re.search("[<>&]", out), args
            json.loads(out)
    seen, out = cells(tool, text)
    equal(out.count("\n"), len(rows) + 1)
    for row in seen:
        assert None not in row and None not in row.values(), row
        for cell in row.values():
            assert not cell or cell[0] not in "=+-@", row
    lines = show(tool, text, "report", "--joblog").splitlines()
    assert all(line.count("\t") == 8 for line in lines), lines
    # The same texts come back, but for bytes that are none.
    names = {b["name"] for b in numbers(tool, text)["batches"]}
    assert "<script>alert(1)</script>" in names or any("<script" in (n or "") for n in names), names


def test_csv_has_no_formulas(tool):
    """A spreadsheet takes a cell that begins so for a formula; other texts come back."""
    plain = ["a,b", 'say "x"', '"', "a=b", " =1", "é漢", "\\n"]
    formulas = ["=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("x","y")', "-rf,x"]
    night = nights.Night()
    night.batch(1, "b", len(plain + formulas), 0, 1)
    for i, text in enumerate(plain + formulas):
        night.attempt(1, i + 1, 1, 1, [], 0, 0, nights.SECOND, "ok", 0, text, text)
    out = io.BytesIO()
    night.write(out, 2 * nights.SECOND)
    seen, _ = cells(tool, out.getvalue())
    equal([row["name"] for row in seen], plain + ["'" + text for text in formulas])
    equal([row["text"] for row in seen], [row["name"] for row in seen])


# ---- Recordings ----


def test_recording_comes_back(tool):
    for name in ("night", "hostile", "shares", "running"):
        once = show(tool, nights.text(name), "report", "--records")
        equal(once, show(tool, once, "report", "--records"))
        equal(show(tool, nights.text(name), "report", "--json"),
              show(tool, once, "report", "--json"))


def test_recording_from_standard_input(tool):
    text = nights.text("small")
    equal(tool.run("report", "--json", "--from", "-", stdin=open(tool.write("night.txt", text)))[1],
          show(tool, text, "report", "--json"))


def refused(tool, path, part, status=1):
    for args in (("report",), ("report", "--json"), ("trace",)):
        seen, out, err = tool.run(*args, "--from", path)
        equal((args, path, seen, out), (args, path, status, ""))
        equal((err, err.count("\n")), (err, 1))
        contains(err, part)


def test_recordings_that_are_none(tool):
    refused(tool, tool.path("missing"), "No such file or directory")
    refused(tool, tool.scratch.name, "Is a directory")
    refused(tool, tool.write("empty", b""), "not a recording")
    refused(tool, tool.write("short", b"reco"), "not a recording")
    refused(tool, tool.write("binary", bytes(range(256)) * 4096), "not a recording")
    refused(tool, tool.write("page", b"<!doctype html>\n"), "not a recording")
    with open(tool.path("huge"), "wb") as f:
        f.truncate(1 << 40)  # a file of NULs, of which nothing is read but its beginning
    refused(tool, tool.path("huge"), "not a recording")


def test_recordings_that_are_damaged(tool):
    """The lines that are left are shown.  Without the last one a warning says so."""
    whole = nights.text("small")
    lines = whole.split(b"\n")
    rows, _ = rows_of(whole)
    long = lines[:3] + [b"attempt\t" + b"x" * (1 << 20)] + lines[3:]
    seen = numbers(tool, b"\n".join(long))
    equal((seen["unknown_lines"], seen["attempts"]), (1, len(rows)))
    seen = numbers(tool, b"\n".join(lines[:3] + [bytes(range(256)), b"\xff" * 300] + lines[3:]))
    equal(seen["attempts"], len(rows))
    assert seen["unknown_lines"] >= 2, seen["unknown_lines"]
    head = tool.write("head", b"records\t1\tbox\n")
    for args in ("top", "--once"), ("top", "--json"), ("metrics",):
        status, out, err = tool.run(*args, "--from", head)
        equal((args, status, out), (args, 1, ""))
        contains(err, "the recording has no row with a time")
    half = numbers(tool, whole[:len(whole) // 2])
    assert half["attempts"] < len(rows), half["attempts"]
    equal(numbers(tool, b"records\t1\tbox\n")["attempts"], 0)
    end = numbers(tool, b"\n".join(lines) + b"\n" + b"z" * (1 << 19))
    equal((end["unknown_lines"], end["attempts"]), (1, len(rows)))


# ---- Files ----


def files(tool):
    return sorted(os.listdir(tool.scratch.name))


def test_file_is_written_whole(tool):
    night = tool.write("night.txt", nights.text("small"))
    wanted = tool.run("trace", "--from", night)[1]
    path = tool.path("trace.json")
    for _ in range(2):
        equal(tool.run("trace", "--from", night, "-o", path), (0, "", ""))
        with open(path) as f:
            equal(f.read(), wanted)
        equal(files(tool), ["night.txt", "trace.json"])
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o644)
    os.chmod(path, 0o600)
    os.symlink("trace.json", tool.path("link"))
    equal(tool.run("report", "--csv", "--from", night, "--output", tool.path("link"))[0], 0)
    assert os.path.islink(tool.path("link"))
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o600)
    with open(path) as f:
        contains(f.read(), "task,attempt,")
    equal(tool.run("trace", "--from", night, "-o", "-")[1], wanted)
    equal(tool.run("trace", "--from", night, "-o", "/dev/stdout")[1], wanted)


def test_file_that_fails(tool):
    """The file of before stays, and nothing else."""
    night = tool.write("night.txt", nights.text("night"))
    path = tool.write("old", b"of before")
    for args in (("report", "--json"), ("report", "--csv"), ("report", "--joblog"),
                 ("report", "--records"), ("report",), ("trace",)):
        for name, part in (("/dev/full", "No space left on device"),
                           (tool.path("none/there"), "No such file or directory"),
                           (tool.scratch.name, "Is a directory")):
            status, out, err = tool.run(*args, "--from", night, "-o", name)
            equal((args, name, status, out, err.count("\n")), (args, name, 1, "", 1))
            contains(err, f"{name} cannot be written: {part}")
        # The limit is 1 block of 512 bytes.
        status, out, err = tool.run(*args, "--from", night, "-o", path,
                                    before=("sh", "-c", 'ulimit -f 1; exec "$@"', "sh"))
        equal((args, status, out), (args, 1, ""))
        contains(err, f"{path} cannot be written: File too large")
        with open(path) as f:
            equal(f.read(), "of before")
        equal(files(tool), ["night.txt", "old"])
        with open("/dev/full", "wb") as full:
            status, _, err = tool.run(*args, "--from", night, stdout=full)
        equal((args, status, err.count("\n")), (args, 1, 1))
        contains(err, "the output cannot be written")


def test_wrong_usage(tool):
    night = tool.write("night.txt", nights.text("one"))
    for args, part in (
        (("report", "--json", "--csv"), "--json and --csv exclude one another"),
        (("report", "--joblog", "--records"), "--joblog and --records exclude one another"),
        (("report", "--from", night, "12"), "--from takes no BATCH"),
        (("report", "--from", night, "--since", "8h"), "--from takes no --since"),
        (("report", "--from", night, "--every", "10s", "-o", tool.path("x")), "--every"),
        (("report", "--every", "10s"), "--every"),
        (("report", "--every", "0", "-o", tool.path("x")), "--every"),
        (("trace", "--csv"), "--csv"),
        (("trace", "-o"), "needs a value, FILE"),
    ):
        status, out, err = tool.run(*args)
        equal((args, status, out), (args, 2, ""))
        contains(err, part)
    equal(files(tool), ["night.txt"])


run(globals(), "view")
