#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs seven faults through Python's pools and the library, and prints how the tasks ended.

usage: faults.py BUILD_FOLDER [--ours]
       --ours runs the library alone, as a test does, with times for a busy machine

Each cell is a program of its own with two workers.  It submits ten tasks of 20 ms, some of them
bad, waits up to 4 s for all replies, and then submits ten good tasks.  docs/comparison.md has the
table; its last column is compared.  Host and workers are Python, the library is called with ctypes.
Its limits are 0.5 s, its grace is 50 ms.  "hung" is a task without a reply, "broken" one that ended
with BrokenProcessPool; the number is 20 where both sets ended alike.  Exit status: 0 when the
library did as its column promises, else 1.
"""
import argparse
import concurrent.futures
import ctypes
import json
import multiprocessing
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
TASKS, WORKERS = 10, 2
LIMIT, PATIENCE, GONE = 0.5, 4.0, 1.0
GOOD, KILLED, SEGFAULT, HANGS = "good", "killed", "segfault", "hangs"
# key: the fault, the ten tasks, how the load of the model behaves.  PROMISED has the library's
# results.
CASES = {
    "kill": ("a killed worker", [KILLED] + [GOOD] * 9, "works"),
    "crash": ("a crashing task", [SEGFAULT] + [GOOD] * 9, "works"),
    "hang": ("two hanging tasks", [HANGS] * 2 + [GOOD] * 8, "works"),
    "load_fails": ("a model that cannot be loaded", [GOOD] * 10, "fails"),
    "load_hangs": ("a model whose load hangs", [GOOD] * 10, "hangs"),
    "slow_load": ("a slow load (1 s), then a crash", [SEGFAULT] + [GOOD] * 9, "slow"),
    "host": ("`kill -9` of the program: processes left after 1 s", [HANGS] * 2, "works"),
}
PROMISED = {
    "kill": "9 done, 1 CRASHED; then 10 done",
    "crash": "9 done, 1 CRASHED; then 10 done",
    "hang": "8 done, 2 TIMEOUT; then 10 done",
    "load_fails": "20 NO_WORKER; 6 loads",
    "load_hangs": "20 NO_WORKER; 6 loads",
    "slow_load": "9 done, 1 CRASHED; then 10 done",
    "host": "none",
}


def be_patient():
    """What becomes of the tasks is the same; a good one is not late because the machine is busy."""
    global LIMIT, PATIENCE, GONE
    LIMIT, PATIENCE, GONE = 2.0, 60.0, 30.0


# ---- in the workers ----


def load(how, counter):
    with open(counter, "a") as out:
        out.write("x")
    if how == "slow":
        time.sleep(1)
    if how == "hangs":
        time.sleep(1000)
    if how == "fails":
        raise RuntimeError("no model")


def work(kind, started):
    with open(started, "a") as out:
        out.write("x")
    time.sleep(0.02)
    if kind == KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == SEGFAULT:
        ctypes.string_at(0)
    if kind == HANGS:
        time.sleep(1000)
    return kind


# ---- the systems: give(kinds) gives tasks, answers() is how each ended, or None ----


class Pool:
    def __init__(self, how, files, _build):
        self.files, self.pool = files, multiprocessing.Pool(WORKERS, load, (how, files[0]))

    def give(self, kinds):
        self.given = [self.pool.apply_async(work, (kind, self.files[1])) for kind in kinds]

    def answers(self):
        until = time.monotonic() + PATIENCE
        return [self.answer(task, until) for task in self.given]

    def answer(self, task, until):
        try:
            task.get(max(0, until - time.monotonic()))
            return "done"
        except multiprocessing.TimeoutError:
            return None
        except Exception as error:
            return type(error).__name__


class Executor(Pool):
    def __init__(self, how, files, _build):
        self.files = files
        self.pool = concurrent.futures.ProcessPoolExecutor(WORKERS, initializer=load,
                                                           initargs=(how, files[0]))

    def give(self, kinds):
        self.given = [self.submit(kind) for kind in kinds]

    def submit(self, kind):
        try:
            return self.pool.submit(work, kind, self.files[1])
        except Exception as error:
            return error

    def answer(self, task, until):
        if isinstance(task, Exception):
            return type(task).__name__
        try:
            task.result(max(0, until - time.monotonic()))
            return "done"
        except concurrent.futures.TimeoutError:
            return None
        except Exception as error:
            return type(error).__name__


class Ours:
    def __init__(self, how, files, build):
        sys.path.insert(0, str(HERE))
        sys.dont_write_bytecode = True  # the tree stays as it is
        import ours

        class Library(ours.Ours):
            def begin(self, _worker, _state):
                try:
                    load(how, files[0])
                except RuntimeError:
                    return 1
                return 0

            def work(self, task, _state):
                data, size = self.lib.gpud_task_data(task), self.lib.gpud_task_size(task)
                work(ctypes.string_at(data, size).decode(), files[1])
                return 0

        self.ours, self.library = ours, Library(str(build / "lib/libgpudispatch.so"), WORKERS, -1)
        lib = self.library.lib
        lib.gpud_outcome_name.restype = ctypes.c_char_p
        options = ours.Options(struct_size=ctypes.sizeof(ours.Options), devices=b"cpu:%d" % WORKERS,
                               task_limit=int(LIMIT * 1e9), grace=50 * 10**6,
                               setup_limit=0 if how == "slow" else int(LIMIT * 1e9),
                               backoff=10**7, log_level=1)
        code = lib.gpud_dispatcher_create(ctypes.byref(self.library.dispatcher),
                                          ctypes.byref(options), None)
        self.library.check(code, "create")

    def give(self, kinds):
        self.n = len(kinds)
        for kind in kinds:
            word = ctypes.create_string_buffer(kind.encode(), len(kind))
            self.library.submit(self.library.task(ctypes.addressof(word), len(kind)))

    def answers(self):
        found, until, lib = [], time.monotonic() + PATIENCE, self.library.lib
        event = self.ours.Event(struct_size=ctypes.sizeof(self.ours.Event))
        while len(found) < self.n and time.monotonic() < until:
            n = lib.gpud_dispatcher_poll(self.library.dispatcher, ctypes.byref(event), 1, 10**8)
            if n > 0 and event.kind == self.ours.OUTCOME:
                name = lib.gpud_outcome_name(event.outcome).decode()
                found.append("done" if name == "SUCCESS" else name)
        return found + [None] * (self.n - len(found))


SYSTEMS = {"pool": Pool, "executor": Executor, "ours": Ours}


def serve(name, case, build, scratch):
    """One cell, in a process of its own."""
    files = [os.path.join(scratch, f) for f in ("loads", "starts")]
    system = SYSTEMS[name](CASES[case][2], files, build)
    for kinds in (CASES[case][1], [GOOD] * TASKS):
        system.give(kinds)
        print(json.dumps(system.answers()), flush=True)
    os._exit(0)


# ---- the driver ----


def length(path):
    return path.stat().st_size if path.exists() else 0


def marked(mark):
    """Processes with our mark in their environment."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (mark.encode() in (entry / "environ").read_bytes()
                    and "Z" not in (entry / "stat").read_text().rpartition(")")[2].split()[0]):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def end(mark):
    for pid in marked(mark):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


def summary(replies):
    """How many tasks ended in which way."""
    kinds = [{None: "hung", "BrokenProcessPool": "broken"}.get(reply, reply) for reply in replies]
    return ", ".join(f"{kinds.count(kind)} {kind}"
                     for kind in sorted(set(kinds), key=lambda k: (k != "done", k)))


def cell(name, case, build, ways):
    """What becomes of the case in this system, in words."""
    mark = f"FAULTS_MARK={uuid.uuid4()}"
    with tempfile.TemporaryDirectory(prefix="faults-") as scratch:
        command = [sys.executable, str(HERE / "faults.py"), "--serve", name, case, str(build),
                   scratch, *ways]
        environment = dict(os.environ, FAULTS_MARK=mark.partition("=")[2])
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 text=True, env=environment)
        try:
            if case == "host":
                return after_the_host(child, pathlib.Path(scratch, "starts"), mark)
            first, second = (json.loads(child.stdout.readline() or "[]") for _ in range(2))
            loads = length(pathlib.Path(scratch, "loads"))
            alike = summary(first) == summary(second)
            ends = (summary(first + second) if alike
                    else f"{summary(first)}; then {summary(second) or 'the program ended'}")
            return ends + (f"; {loads} loads" if "load_" in case else "")
        finally:
            child.kill()
            child.wait()
            end(mark)


def after_the_host(child, starts, mark):
    """How many processes outlive the program by GONE seconds."""
    until = time.monotonic() + PATIENCE
    while length(starts) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    child.kill()
    child.wait()
    until = time.monotonic() + GONE
    while marked(mark) and time.monotonic() < until:
        time.sleep(0.01)
    return f"{len(marked(mark)) or 'none'}"


def main():
    parser = argparse.ArgumentParser(description="What becomes of tasks when something fails.")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--ours", action="store_true")
    args = parser.parse_args()
    names, wrong = ["ours"] if args.ours else ["pool", "executor", "ours"], []
    ways = ["--ours"] if args.ours else []
    if args.ours:
        be_patient()
    print(f"Python {sys.version.split()[0]}, {WORKERS} workers, {TASKS} tasks\n")
    titles = {"pool": "`multiprocessing.Pool`", "executor": "`ProcessPoolExecutor`",
              "ours": "this library"}
    print("| fault | " + " | ".join(titles[n] for n in names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for case, (what, _kinds, _load) in CASES.items():
        cells = {name: cell(name, case, args.build.resolve(), ways) for name in names}
        print(f"| {what} | " + " | ".join(cells.values()) + " |", flush=True)
        if cells["ours"] != PROMISED[case]:
            wrong.append(f"{case}: {cells['ours']}, promised is: {PROMISED[case]}")
        if not re.search(rf"^\| {re.escape(what)} \|.*\| {re.escape(PROMISED[case])} \|$",
                         (HERE.parent.parent / "docs/comparison.md").read_text(), flags=re.M):
            wrong.append(f"{case}: docs/comparison.md has no row that promises: {PROMISED[case]}")
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write(f"{'fail' if wrong else 'pass'} docs/faults\n")
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        if "--ours" in sys.argv:
            be_patient()
        serve(sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4]), sys.argv[5])
    else:
        sys.exit(main())
