# SPDX-License-Identifier: MIT
"""Shared by the tests of the program gpudispatch: runs the program, and runs cases.

A test file passes its globals to run(), which runs the functions test_*.  Its arguments are
PROGRAM ROOT SANITIZER [DIRECTORY_OF_FAKES].  With T_ONLY=NAME only test_NAME runs.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback

PATIENCE = 60  # seconds that only a fault needs
os.umask(0o022)  # another user reads the files written here


class Skip(Exception):
    """This case cannot be here, and why."""


class Tool:
    def __init__(self, program, root, sanitizer="none", fakes=None):
        self.program, self.root, self.sanitizer, self.fakes = program, root, sanitizer, fakes
        self.scratch = tempfile.TemporaryDirectory()
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith("CUDA_") and k != "GPUD_WORKER_PROGRAM"}

    def path(self, name):
        return os.path.join(self.scratch.name, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        return self.path(name)

    def run(self, *args, before=(), env=None, **more):
        """Exit status, stdout and stderr."""
        more.setdefault("stdout", subprocess.PIPE)
        ended = subprocess.run([*before, self.program, *args], stderr=subprocess.PIPE,
                               env={**self.environment, **(env or {})}, timeout=PATIENCE, **more)
        assert ended.returncode >= 0, f"{args}: killed by signal {-ended.returncode}"
        out = (ended.stdout or b"").decode()
        return ended.returncode, out, ended.stderr.decode(errors="replace")

    def json(self, *args, **more):
        """Exit status and the document; stdout is that and nothing else, on one line."""
        status, out, err = self.run(*args, "--json", **more)
        assert err == "", err
        assert out.endswith("\n") and out.count("\n") == 1, out
        return status, json.loads(out)

    def fake(self, n, script=None):
        """Returns --devices for `n` fake devices that follow a script."""
        if script is None:
            return "--devices", f"fake:{n}"
        return "--devices", f"fake:{n},script=" + self.write("script.txt", script)

    def start(self, *args, env=None, interrupt=signal.SIG_DFL, **more):
        """Starts the program with SIGINT not ignored, as it is in a script's background jobs."""
        return subprocess.Popen([self.program, *args], env={**self.environment, **(env or {})},
                                preexec_fn=lambda: signal.signal(signal.SIGINT, interrupt), **more)


def patiently(look, enough):
    """Returns the result of `look` on a device that hangs, which lasts for all of --wait.

    If the healthy devices have not replied by then, which `enough` decides, --wait grows.
    """
    for wait in (2, 8, 30):
        seen = look(f"--wait={wait}")
        if enough(seen):
            break
    return seen


def interrupted(process, number=signal.SIGINT):
    """Exit status after a signal."""
    process.send_signal(number)
    return process.wait(PATIENCE)


def equal(seen, wanted):
    assert seen == wanted, f"{seen!r} is not {wanted!r}"


def contains(text, part):
    assert part in text, f"no {part!r} in {text!r}"


def record(verdict, name, reason=""):
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
            out.write(f"{verdict} {name}{reason and ': '}{reason}\n")


def run(cases, suite="tools"):
    """Runs the functions test_* of a module's globals; ends the program."""
    stem = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    failed = 0
    only = os.environ.get("T_ONLY")
    chosen = [(n, c) for n, c in cases.items()
              if n.startswith("test_") and only in (None, n.removeprefix("test_"))]
    if not chosen:
        sys.exit(2)
    for name, case in chosen:
        verdict, what = "pass", ""
        tool = Tool(*sys.argv[1:])
        try:
            case(tool)
        except Skip as why:
            verdict, what = "skip", str(why)
        except Exception:  # reported; the other cases run
            verdict, what = "fail", traceback.format_exc()
            failed += 1
        tool.scratch.cleanup()
        record(verdict, f"{suite}_{stem}/{name.removeprefix('test_')}",
               what if verdict == "skip" else "")
        print(verdict, name, what, flush=True)
    sys.exit(1 if failed else 0)
