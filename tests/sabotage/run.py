#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that the tests notice faults: applies each of sabotages/ to a copy of the tree.

    python3 tests/sabotage/run.py [--list | --check] [--keep] [--trees N] [WORD...]

With words, only the sabotages whose name or test contains one of them.  For each: the chosen case
passes on the tree as it is; then run.py makes the one change and builds the targets of the case,
and the case must fail.  Exit 1 when a case stays green, when a text is not found exactly once, or
when a build fails.  The last line counts.  The packages of the tests are needed.  As many trees as
there are CPUs work side by side.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from sabotages import SABOTAGES  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
GREEN = "stays GREEN"
TOOL = "tools/gpudispatch/gpudispatch"
SCRIPTS, WORLDS = "tests/gpudispatch-sim", "tests/sched/worlds"
PLANS, TWINS = "tests/sched/plans", "tests/sched/twins"
EXPLAINS = "tests/sched/explains"
AGENT = "queue/gpudispatch-agent"
BESIDE_AGENT = ["queue/gpudispatch-agent-points", "queue/gpudispatch-runner",
                "lib/gpudispatch-worker", "tests/queue/queue_worker.so",
                "tests/queue/queue_records", "tests/view/moment_of", TOOL]
SERVER = "view/serve/gpudispatch-serve"
CASE_PATIENCE = 300  # seconds; the runner has deadlines of its own


def is_script(test):
    """Whether it is a script that tests the tool.  Suite view has programs, too, and view/left.c
    beside a script of that name."""
    path = ROOT / "tests" / test.split(".")[0]
    return (test.startswith(("tools/", "view/"))
            and path.with_suffix(".py").exists() and not path.with_suffix(".c").exists())


def parts(test):
    """SUITE/PROGRAM.CASE -> build target of the program, case.  In suite tools PROGRAM is a script,
    and tests the tool; so it may be in suite view.  In suites agent and client it is a script of
    their folder in tests/queue.  In suite sched it is worlds or explains; scripts or traces, with a
    file of tests/sched as its case; plans or twins, with the id of a rule or guarantee."""
    suite, rest = test.split("/")
    program, case = rest.split(".")
    if is_script(test):
        return TOOL, case
    if suite in ("agent", "client"):
        return AGENT, case
    if suite == "sched":
        return {"worlds": WORLDS, "plans": PLANS, "twins": TWINS, "explains": EXPLAINS}.get(
            program, SCRIPTS), case
    begins = {"unit": "unit_", "hosts": "hosts/hosts_", "abi": "abi/", "gpu": "gpu/",
              "queue": "queue/queue_", "view": "view/view_"}
    return "tests/" + begins.get(suite, "") + program, case


def below(root):
    """All processes that descend from one of ours."""
    parents = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


class Tree:
    """A copy of the source tree with one build directory."""

    def __init__(self, top):
        self.source = top / "source"
        self.build = top / "build"
        shutil.copytree(ROOT, self.source, symlinks=True,
                        ignore=shutil.ignore_patterns(".git", "build*", "__pycache__"))
        # Without asserts: the tests must notice, not the library.
        self.call(["meson", "setup", self.build, self.source, "-Dbuildtype=release",
                   "-Db_ndebug=true", "-Dtests=true"])

    def call(self, command):
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stdout[-4000:])

    def alone(self):
        """Names of the programs that Meson runs beside no other test: they measure latencies."""
        listed = subprocess.check_output(["meson", "introspect", "--tests", self.build], text=True)
        return {pathlib.Path(word).name
                for test in json.loads(listed) if not test["is_parallel"] for word in test["cmd"]}

    def compile(self, targets):
        targets = [*targets, *BESIDE_AGENT * (AGENT in targets), *[SERVER] * (TOOL in targets)]
        self.call(["ninja", "-C", self.build, "-j", "1", "tests/runner", "test-programs", *targets])

    def command(self, test):
        program, case = parts(test)
        if program == PLANS:
            return [self.build / program, "--events", "1000000", "--rule", case,
                    *["--replay"] * (case == "S6")]
        if program == TWINS:
            return [self.build / program, "100", case]
        if program == EXPLAINS:
            return [self.build / program]
        if test.startswith("sched/traces."):
            return [sys.executable, self.source / "tests/sched/traces.py",
                    self.build / SCRIPTS, self.source / "tests/sched/traces", "--only", case]
        if program == SCRIPTS:
            script = next((self.source / "tests/sched").glob(case + ".*"))
            return [self.build / program, script]
        if program == WORLDS:
            return [self.build / program, "--events", "4000000"]
        if program == AGENT:
            script = self.source / "tests/queue" / (test.split(".")[0] + ".py")
            return [sys.executable, script, self.build, case]
        if program != TOOL:
            return [self.build / "tests/runner", "--only", case, self.build / program]
        script = self.source / "tests" / (test.split(".")[0] + ".py")
        return [sys.executable, script, self.build / TOOL, self.source, "none",
                self.build / "tests/programs"]

    def run(self, test):
        """Runs one case.  Gives its exit status and what it printed; status None when it hangs."""
        environment = {k: v for k, v in os.environ.items() if k != "GPUD_TEST_RESULTS"}
        environment |= {"T_EFFORT": "all", "T_ONLY": parts(test)[1]}
        if test.startswith("gpu/"):  # as tests/gpu/meson.build runs rehearsals
            environment |= {"T_GPU_REHEARSE": "fake", "FAKE_SCRIPT": "gpu.txt",
                            "LD_LIBRARY_PATH": str(self.build / "tests/programs")}
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            runner = subprocess.Popen(self.command(test), stdout=output, stderr=subprocess.STDOUT,
                                      env=environment)
            try:
                status = runner.wait(CASE_PATIENCE)
            except subprocess.TimeoutExpired:
                status = None
                for pid in [*below(runner.pid), runner.pid]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                runner.wait()
            output.seek(0)
            return status, output.read().strip()


def misfits(chosen):
    """What is wrong with the table itself."""
    for s in chosen:
        count = (ROOT / s.file).read_text().count(s.old)
        if count != 1:
            yield s, f"its text is found {count} times in {s.file}"
        elif s.old == s.new:
            yield s, "it changes nothing"


def record(passed, name):
    """As tests/runner does, for whoever counts over all programs."""
    where = os.environ.get("GPUD_TEST_RESULTS")
    if where:
        with open(where, "a", encoding="utf-8") as out:
            out.write(f"{'pass' if passed else 'fail'} sabotage/{name.replace(' ', '_')}\n")


def apply(tree, s):
    """Gives None when the case has noticed, else why not."""
    path = tree.source / s.file
    good = path.read_text()
    start = time.monotonic()
    try:
        path.write_text(good.replace(s.old, s.new))
        try:
            tree.compile([parts(s.test)[0]])
        except RuntimeError as error:
            return f"does not build:\n{error}"
        start = time.monotonic()
        status, text = tree.run(s.test)
    finally:
        path.write_text(good)
    seconds = time.monotonic() - start
    if status == 1:
        last = text.splitlines()[-1] if text else ""
        print(f"{s.name}: RED by {s.test} ({seconds:.1f} s)\n    {last}", flush=True)
        return None
    if status is None:
        return f"{s.test} hangs:\n{text}"
    return f"{GREEN} in {s.test} ({seconds:.1f} s)" if status == 0 else f"cannot be run:\n{text}"


class Trees:
    """Several copies, so that several sabotages are tried at a time."""

    def __init__(self, top, count, targets):
        self.free = queue.Queue()
        self.pool = concurrent.futures.ThreadPoolExecutor(count)
        trees = [Tree(top / str(n)) for n in range(count)]
        self.alone = trees[0].alone()
        list(self.pool.map(lambda tree: tree.compile(targets), trees))
        for tree in trees:
            self.free.put(tree)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.pool.shutdown(cancel_futures=True)  # before anybody removes the trees

    def with_tree(self, function, item):
        tree = self.free.get()
        try:
            return function(tree, item)
        finally:
            self.free.put(tree)

    def map(self, function, items, test_of):
        """Pairs of each item and function(tree, item); those whose test measures come last, one at
        a time."""
        measures = [item for item in items
                    if pathlib.Path(parts(test_of(item))[0]).name in self.alone]
        others = [item for item in items if item not in measures]
        results = list(self.pool.map(lambda item: self.with_tree(function, item), others))
        results += [self.with_tree(function, item) for item in measures]
        return list(zip(others + measures, results))


def run(chosen, top, count):
    failures = list(misfits(chosen))
    bad = {s.name for s, _ in failures}
    tests = sorted({s.test for s in chosen})
    with Trees(top, count, sorted({parts(t)[0] for t in tests})) as trees:
        not_green = {test: text
                     for test, (status, text) in trees.map(Tree.run, tests, str) if status != 0}
        print(f"{len(tests) - len(not_green)} of {len(tests)} cases pass without sabotage",
              flush=True)
        failures += [(s, f"{s.test} fails without it:\n{not_green[s.test]}")
                     for s in chosen if s.test in not_green]
        left = [s for s in chosen if s.name not in bad and s.test not in not_green]
        wrong = [(s, why) for s, why in trees.map(apply, left, lambda s: s.test) if why]
        # Once more with both CPUs to themselves: a race is not met in every round.
        green = [s for s, why in wrong if why.startswith(GREEN)]
        failures += [(s, why) for s, why in wrong if s not in green]
        return failures + [(s, why) for s in green if (why := trees.with_tree(apply, s))]


def main():
    ask = argparse.ArgumentParser(description=__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("words", nargs="*")
    ask.add_argument("--list", action="store_true", help="only name them")
    ask.add_argument("--check", action="store_true", help="only see that each text is found once")
    ask.add_argument("--trees", type=int, default=os.cpu_count(),
                     help="how many copies work side by side")
    ask.add_argument("--keep", action="store_true",
                     help="leave the copy of the tree behind and print its path")
    asked = ask.parse_args()
    chosen = [s for s in SABOTAGES
              if not asked.words or any(w in s.name or w in s.test for w in asked.words)]
    if asked.list:
        for s in chosen:
            print(f"{s.name}: {s.file}, {s.test}")
        return 0
    if asked.check:
        wrong = list(misfits(chosen))
        for s, why in wrong:
            print(f"{s.name}: {why}")
        record(not wrong, "texts")
        return 1 if wrong else 0
    if not chosen:
        sys.exit(f"no sabotage has one of these words in its name or test: {' '.join(asked.words)}")
    top = pathlib.Path(tempfile.mkdtemp(prefix="gpud-sabotage-"))
    top.chmod(0o755)  # for cases that drop privileges
    try:
        failures = run(chosen, top, max(1, min(asked.trees, len(chosen))))
    finally:
        if asked.keep:
            print(f"left in {top}")
        else:
            shutil.rmtree(top, ignore_errors=True)
    failed = {s.name for s, _ in failures}
    for s, why in failures:
        print(f"{s.name}: {why}")
    for s in chosen:
        record(s.name not in failed, s.name)
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
