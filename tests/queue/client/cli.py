# SPDX-License-Identifier: MIT
"""The program gpudispatch with a queue of its own in a scratch directory."""
import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "agent"))
from agent import PATIENCE, processes_of, until  # noqa: E402,F401
from cases import Skip, equal, run  # noqa: E402,F401


def heed_interrupts():
    """A shell without job control starts its background processes deaf to SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Queue:
    """Cases of cases.run get one in place of an agent."""

    def __init__(self, build, directory):
        self.build, self.directory = build, pathlib.Path(directory)
        self.state = self.directory / "state"
        self.work = self.directory / "work"
        self.work.mkdir()
        self.devices = "fake:8"
        self.children = []
        self.err = ""
        kept = {k: v for k, v in os.environ.items()
                if not k.startswith(("XDG_", "GPUDISPATCH_", "CUDA_"))}
        self.environment = {
            **kept, "HOME": str(self.directory), "GPUDISPATCH_STATE": str(self.state),
            "LD_LIBRARY_PATH": f"{build}/lib",
            "PATH": f"{build}/tools/gpudispatch:{kept['PATH']}",
            "GPUD_WORKER_PROGRAM": f"{build}/lib/gpudispatch-worker",
            "GPUD_AGENT_PROGRAM": f"{build}/queue/gpudispatch-agent",
            "GPUD_RUNNER_PROGRAM": f"{build}/queue/gpudispatch-runner"}

    # ---- Files of the case ----

    def path(self, name):
        return self.work / name

    def write(self, name, text):
        self.path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    def words(self, name):
        """What commands have appended to a file."""
        path = self.path(name)
        return path.read_text().split() if path.exists() else []

    # ---- The program ----

    def start(self, *args, env=None, **more):
        """The program in the background."""
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("cwd", self.work)
        child = subprocess.Popen([f"{self.build}/tools/gpudispatch/gpudispatch", *map(str, args)],
                                 env={**self.environment, **(env or {})},
                                 stderr=subprocess.PIPE, preexec_fn=heed_interrupts, **more)
        self.children.append(child)
        return child

    def run(self, *args, status=0, stdin=b"", patience=PATIENCE, **more):
        """Its standard output.  That on standard error is self.err."""
        child = self.start(*args, stdin=subprocess.PIPE, **more)
        out, err = child.communicate(stdin, patience)
        self.err = err.decode(errors="replace")
        assert child.returncode == status, \
            f"{args}: status {child.returncode}, not {status}\n{out.decode()}{self.err}"
        return out.decode()

    def json(self, *args, **more):
        """The objects that it prints, one per line."""
        return [json.loads(line)
                for line in self.run(args[0], "--json", *args[1:], **more).splitlines()]

    def submit(self, *args, **more):
        (reply,) = self.json("submit", *args, **more)
        return reply

    def table(self, *args, **more):
        """Its lines; each fits a terminal of 80 columns."""
        lines = self.run(*args, **more).splitlines()
        for line in lines:
            assert len(line) <= 80, f"{args}: {len(line)} columns: {line}"
        return lines

    def batch(self, batch):
        (row,) = self.json("show", batch)
        return row

    def states(self, batch):
        return [row.get("outcome", row["state"]) for row in self.json("ls", batch)]

    # ---- The agent ----

    def agent(self):
        self.run("agent", "start", "--devices", self.devices, "--cpus", "64")
        return self

    def pid(self):
        (status,) = self.json("agent", "status")
        return status["pid"]

    def kill(self):
        """SIGKILL of the agent alone."""
        pid = self.pid()
        watch = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        assert select.select([watch], [], [], PATIENCE)[0], "the agent does not end"
        os.close(watch)

    def power_cut(self):
        """Kills all of them at once, as far as a test can."""
        for end in (signal.SIGSTOP, signal.SIGKILL):
            self.kill_all(end)
        until(lambda: not self.kill_all(signal.SIGKILL), "an end of all processes")

    def kill_all(self, number):
        pids = processes_of(str(self.state), agents=True)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return pids

    def said(self):
        return (self.state / "agent.log").read_text()

    def end(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()
        self.power_cut()
