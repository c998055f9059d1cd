#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that the tests notice faults: applies each of sabotages/ to a copy of the tree.

    python3 tests/sabotage/run.py [--list] [--keep] [WORD...]

With words, only the sabotages whose name or test contains one of them.  For each: the chosen case
passes on the tree as it is, the one change is made, what it concerns is built, and the case must
fail.  Exit 1 when one stays green, when a text is not found exactly once, or when nothing can be
built.  The last line counts.  Needs what the tests need; uses two CPUs for some minutes.
"""

import argparse
import os
import pathlib
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
JOBS = "2"
CASE_PATIENCE = 300  # seconds; the runner has deadlines of its own


def parts(test):
    """SUITE/PROGRAM.CASE -> build target of the program, case."""
    suite, rest = test.split("/")
    program, case = rest.split(".")
    return "tests/" + {"unit": "unit_", "hosts": "hosts/hosts_"}.get(suite, "") + program, case


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
        self.call(["meson", "setup", self.build, self.source, "-Dbuildtype=release", "-Db_ndebug=true", "-Dtests=true"])

    def call(self, command):
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stdout[-4000:])

    def compile(self, targets):
        self.call(["ninja", "-C", self.build, "-j", JOBS, "tests/runner", "test-programs", *targets])

    def run(self, test):
        """Runs one case.  Gives its exit status and what it printed; status None when it hangs."""
        program, case = parts(test)
        environment = {k: v for k, v in os.environ.items() if k != "GPUD_TEST_RESULTS"} | {"T_EFFORT": "all"}
        with tempfile.TemporaryFile("w+") as output:
            runner = subprocess.Popen([self.build / "tests/runner", "--only", case, self.build / program],
                                      stdout=output, stderr=subprocess.STDOUT, env=environment)
            try:
                status = runner.wait(CASE_PATIENCE)
            except subprocess.TimeoutExpired:
                status = None
                for pid in [*below(runner.pid), runner.pid]:
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
        print(f"{s.name}: RED by {s.test} ({seconds:.1f} s)")
        print("    " + text.splitlines()[-1])
        return None
    if status is None:
        return f"{s.test} hangs:\n{text}"
    return f"stays GREEN in {s.test} ({seconds:.1f} s)" if status == 0 else f"cannot be run:\n{text}"


def run(chosen, top):
    failures = [(s, why) for s, why in misfits(chosen)]
    bad = {s.name for s, _ in failures}
    tree = Tree(top)
    tests = sorted({s.test for s in chosen})
    tree.compile(sorted({parts(t)[0] for t in tests}))
    not_green = {}
    for test in tests:
        status, text = tree.run(test)
        if status != 0:
            not_green[test] = text
    print(f"{len(tests) - len(not_green)} of {len(tests)} cases pass without sabotage")
    for s in chosen:
        if s.name in bad:
            continue
        if s.test in not_green:
            failures.append((s, f"{s.test} fails without it:\n{not_green[s.test]}"))
            continue
        why = apply(tree, s)
        if why:
            failures.append((s, why))
        sys.stdout.flush()
    return failures


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("words", nargs="*")
    ask.add_argument("--list", action="store_true", help="only name them")
    ask.add_argument("--keep", action="store_true", help="leave the copy of the tree behind and say where")
    asked = ask.parse_args()
    chosen = [s for s in SABOTAGES if not asked.words or any(w in s.name or w in s.test for w in asked.words)]
    if asked.list:
        for s in chosen:
            print(f"{s.name}: {s.file}, {s.test}")
        return 0
    top = pathlib.Path(tempfile.mkdtemp(prefix="gpud-sabotage-"))
    top.chmod(0o755)  # for cases that drop privileges
    try:
        failures = run(chosen, top)
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
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
