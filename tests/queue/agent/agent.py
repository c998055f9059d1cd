# SPDX-License-Identifier: MIT
"""An agent in a scratch directory, and a client of its socket."""
import contextlib
import glob
import json
import os
import select
import signal
import socket
import subprocess
import time
import uuid

PATIENCE = 240  # seconds, of anything that is waited for on a loaded machine


class Refused(Exception):
    def __init__(self, reply):
        super().__init__(reply["error"])
        self.code = reply["code"]


class Client:
    """One connection.  Replies come in the order of the requests, but those of "wait"."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(path)
        self.file = self.socket.makefile("rwb")
        self.hello = self.ask_raw({"hello": "gpudispatch-queue", "version": 1})

    def send(self, request):
        self.file.write(json.dumps(request).encode() + b"\n")
        self.file.flush()

    def receive(self):
        line = self.file.readline()
        if not line:
            raise ConnectionError("the agent has closed the connection")
        return json.loads(line)

    def ask_raw(self, request):
        self.send(request)
        return self.receive()

    def ask(self, what, **fields):
        reply = self.ask_raw({"id": 1, "do": what, **fields})
        if not reply["ok"]:
            raise Refused(reply)
        return reply

    def submit(self, commands, batch="night", join=False, append=None, at_once=0, **spec):
        """Submits commands, each a list or a text for sh.  Returns the reply."""
        tasks = [{"spec": 0, "line": i + 1,
                  "argv": ["/bin/sh", "-c", c] if isinstance(c, str) else c}
                 for i, c in enumerate(commands)]
        spec = {"cwd": "/", "environment": [f"PATH={os.environ['PATH']}"], **spec}
        about = {"name": batch, "at_once": at_once} if append is None else {"append": append}
        return self.ask("submit", request=str(uuid.uuid4()), batch=about, join=join, specs=[spec],
                        tasks=tasks)

    def tasks(self, batch):
        return self.ask("tasks", batch=str(batch))["tasks"]

    def outcomes(self, batch):
        return [t.get("outcome") for t in self.tasks(batch)]

    def close(self):
        self.file.close()
        self.socket.close()


class Gate:
    """A fifo before which commands wait: `read x < {gate}`."""

    def __init__(self, path):
        self.path = path
        os.mkfifo(path)

    def __fspath__(self):
        return self.path

    __str__ = __fspath__

    @contextlib.contextmanager
    def opened(self, n):
        """Lets n commands go on, also those that come to it in the block."""
        with open(self.path, "w") as f:
            f.write("go\n" * n)
            f.flush()
            yield

    def open(self):
        with self.opened(1):
            pass


class Agent:
    """The program, with its state in a directory."""

    def __init__(self, build, directory, devices="fake:8"):
        self.program = os.path.join(build, "queue/gpudispatch-agent")
        self.runner = os.path.join(build, "queue/gpudispatch-runner")
        self.directory, self.devices = directory, devices
        self.options = []  # further ones of the command line
        self.process = None
        self.popen = {}  # arguments of Popen
        self.before = []  # a program that starts it
        self.log = os.path.join(directory, "agent.log")
        self.state = os.path.join(directory, "state")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
        self.environment["XDG_CONFIG_HOME"] = directory  # not the one of the developer
        self.environment["LD_LIBRARY_PATH"] = os.path.join(build, "lib")
        self.environment["GPUD_WORKER_PROGRAM"] = os.path.join(build, "lib/gpudispatch-worker")

    def command(self):
        return [self.program, "--state-dir", self.state, "--devices", self.devices, "--cpus", "64",
                *(["--runner", self.runner] if self.runner else []), *self.options]

    def start(self):
        """Starts it and waits until it is ready."""
        path = os.path.join(self.directory, "notify")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready, open(self.log, "a") as log:
            ready.bind(path)
            ready.settimeout(PATIENCE)
            self.process = subprocess.Popen(
                [*self.before, *self.command()], stderr=log, stdout=log,
                env={**self.environment, "NOTIFY_SOCKET": path}, **self.popen)
            watch = os.pidfd_open(self.process.pid)
            try:
                readable = select.select([ready, watch], [], [], PATIENCE)[0]
                if ready not in readable or ready.recv(100) != b"READY=1":
                    raise RuntimeError(f"the agent is not ready:\n{self.said()}")
            finally:
                os.close(watch)
        return self

    def said(self):
        with open(self.log) as log:
            return log.read()

    def gate(self, name="gate"):
        return Gate(os.path.join(self.directory, name))

    def socket(self):
        return os.path.join(self.state, "socket")

    def client(self):
        return Client(self.socket())

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """As a service manager does; commands go on.  Returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def end(self):
        """Kills it and all that it has started."""
        if self.process and self.process.poll() is None:
            self.kill()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def processes(self, name=None):
        """Runners and commands of this state directory."""
        return processes_of(self.state, name)


class InstalledAgent(Agent):
    """An installed one: it finds its runner, the library and the worker program itself."""

    def __init__(self, program, directory):
        super().__init__("", directory)
        self.program, self.runner = program, None
        self.environment = {k: v for k, v in self.environment.items()
                            if k != "LD_LIBRARY_PATH" and not k.startswith("GPUD_")}


def processes_of(state, name=None, agents=False):
    """Runners and commands of a state directory, and optionally its agents; only those with this
    name."""
    found = []
    for path in glob.glob("/proc/[0-9]*"):
        pid = int(path[6:])
        with contextlib.suppress(OSError):
            with open(path + "/environ", "rb") as f:
                ours = f"GPUDISPATCH_OUT={state}/".encode() in f.read()
            with open(path + "/cmdline", "rb") as f:
                line = f.read()
            with open(path + "/comm") as f:
                comm = f.read().strip()
            ours = (ours or os.readlink(path + "/cwd") == state or agents and
                    b"gpudispatch-agent\0" in line and f"{state}\0".encode() in line)
            if ours and pid != os.getpid() and name in (None, comm):
                found.append(pid)
    return found


def words(path):
    """Those of a file, to which commands append."""
    with contextlib.suppress(FileNotFoundError), open(path) as f:
        return f.read().split()
    return []


def until(holds, what):
    """Waits for something that sends no event."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {PATIENCE} s")
        time.sleep(0.005)
