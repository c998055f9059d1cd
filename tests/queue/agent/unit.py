#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The units of systemd: whether systemd accepts them, and that their settings cost no command its
end.

usage: unit.py BUILD_DIRECTORY [CASE...]

`stops_user` and `stops_system` do what systemd does with the settings of a unit.  `user_manager`
lets systemd itself do it: it starts a service manager in namespaces of its own, where it may.
"""
import configparser
import contextlib
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

sys.dont_write_bytecode = True
from agent import PATIENCE, Agent, until  # noqa: E402
from cases import Skip, equal  # noqa: E402
from checks import Checks  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
USER, SYSTEM = "gpudispatch-agent.service", "gpudispatch-agent@.service"
UNITS = {"s": 1, "": 1, "min": 60}
FAKES = ["--devices", "fake:8", "--cpus", "64"]  # as a drop-in would add them


def read(name):
    file = configparser.ConfigParser(interpolation=None, strict=True)
    file.optionxform = str
    with open(os.path.join(BUILD, "queue", name)) as f:
        file.read_file(f)
    return {section: dict(file[section]) for section in file.sections()}


def seconds(text):
    number = text.rstrip("smin")
    return float(number) * UNITS[text[len(number):]]


def commands(directory):
    """Eight commands, which write a line at their start and wait for a line of the gate."""
    return [f"echo $GPUDISPATCH_TASK >> {directory}/started; read x < {directory}/gate"] * 8


def started(directory):
    with contextlib.suppress(FileNotFoundError), open(f"{directory}/started") as f:
        return f.read().split()
    return []


def finish(agent):
    """All eight end SUCCESS at attempt 1, and each was started once."""
    client = agent.client()
    equal([t["state"] for t in client.tasks(1)], ["running"] * 8)
    with open(f"{agent.directory}/gate", "w") as f:
        f.write("go\n" * 8)
        f.flush()
        client.ask("wait", batch="1")
    equal([(t["outcome"], t["attempt"]) for t in client.tasks(1)], [("ok", 1)] * 8)
    equal(len(started(agent.directory)), 8)


class Service(Agent):
    """Does with the settings of a unit what systemd does (systemd.service(5), systemd.kill(5))."""

    def __init__(self, unit, directory, runtime):
        super().__init__(BUILD, directory)
        self.unit = read(unit)["Service"]
        self.state = os.path.join(directory, ".local/state/gpudispatch")
        self.runtime = runtime
        self.environment = {"HOME": directory, "PATH": os.environ["PATH"], "USER": "ada"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]
        if runtime:
            self.environment["XDG_RUNTIME_DIR"] = runtime
        self.popen = {"cwd": directory, "stdin": subprocess.DEVNULL, "start_new_session": True,
                        "preexec_fn": lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN)}
        # Agent.start waits for READY=1 of the main process.
        equal((self.unit["Type"], self.unit["NotifyAccess"]), ("notify", "main"))

    def command(self):
        program, *arguments = self.unit["ExecStart"].split()
        equal(os.path.basename(program), "gpudispatch-agent")
        return [self.program, *arguments, *FAKES]

    def socket(self):
        if not self.runtime:
            return super().socket()
        found, = glob.glob(self.runtime + "/gpudispatch/socket-*")
        return found

    def send(self, number, final):
        """The signal goes to the main process, or to all, by KillMode."""
        mode = self.unit["KillMode"]
        to_all = mode == "control-group" or (mode == "mixed" and final)
        for pid in self.processes() if to_all else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def stop_service(self, patience):
        """SIGTERM, and SIGKILL after the patience."""
        self.send(signal.SIGTERM, False)
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL, True)
            return self.process.wait(PATIENCE)

    def restarts(self, status):
        """Whether systemd starts a service anew that has ended with this status on its own."""
        wanted = self.unit["Restart"]
        assert wanted in ("on-failure", "always"), wanted
        return status != 0 and str(status) not in self.unit["RestartPreventExitStatus"].split()


def stops(unit, directory, runtime):
    """Q4: stop, a stop that takes too long, and a crash: the commands go on."""
    agent = Service(unit, directory, runtime)
    try:
        os.mkfifo(f"{directory}/gate")
        agent.start().client().submit(commands(directory))
        until(lambda: len(started(directory)) == 8, "eight commands")
        limit = seconds(agent.unit["TimeoutStopSec"])
        # The agent ends the workers of its classes first, for which it takes up to 30 s.
        assert limit >= 60, limit
        equal(agent.stop_service(limit), 0)
        agent.start()
        equal([t["state"] for t in agent.client().tasks(1)], ["running"] * 8)
        agent.process.send_signal(signal.SIGSTOP)
        equal(agent.stop_service(limit / 1000), -signal.SIGKILL)
        agent.start()
        agent.kill()
        equal(agent.restarts(agent.process.returncode), True)
        agent.start()
        second = Service(unit, directory, runtime)
        with contextlib.suppress(RuntimeError):
            second.start()
        equal(second.restarts(second.process.wait(PATIENCE)), False)
        finish(agent)
    except BaseException:
        print(agent.said())
        raise
    finally:
        agent.end()


def stops_user(directory):
    runtime = os.path.join(directory, "run")
    os.mkdir(runtime, 0o700)
    stops(USER, directory, runtime)


def stops_system(directory):
    """A service of the system has no XDG_RUNTIME_DIR: the socket lies in the state directory."""
    stops(SYSTEM, directory, None)


def same_settings(_directory):
    """The two units differ only in whose agent it is."""
    user, system = read(USER), read(SYSTEM)
    equal(system["Service"].pop("User"), "%i")
    equal(system["Service"], user["Service"])
    # A limit for all processes of the service would bound the commands.
    equal((user["Service"]["TasksMax"], user["Service"]["OOMPolicy"]), ("infinity", "continue"))


def local_copy(unit, directory, *lines):
    """The unit, with the agent of the build tree."""
    text = pathlib.Path(BUILD, "queue", unit).read_text()
    program = os.path.join(BUILD, "queue/gpudispatch-agent")
    for old, new in ((text.split("ExecStart=")[1].split()[0], program), ("--foreground", " ".join(
            ["--foreground", *FAKES])), ("[Service]\n", "[Service]\n" + "".join(lines)),
            ("RestartSec=2", "RestartSec=100ms")):
        text = text.replace(old, new, 1)
    path = pathlib.Path(directory, unit)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def verify(directory):
    """`systemd-analyze verify` has nothing to say."""
    if not shutil.which("systemd-analyze"):
        raise Skip("needs the package systemd")
    for unit, of in ((USER, "--user"), (SYSTEM, "--system")):
        path = local_copy(unit, directory)
        ran = subprocess.run(["systemd-analyze", of, "--man=no", "verify", path], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE,
                             env={**os.environ, "XDG_RUNTIME_DIR": directory})
        said = [line for line in ran.stdout.splitlines() if "gpudispatch" in line]
        equal((unit, ran.returncode, said), (unit, 0, []))


# ---- systemd itself ----

MANAGER = "/lib/systemd/systemd"
INSIDE = "T_INSIDE_NAMESPACES"


def user_manager(directory):
    """`stops` with a service manager of systemd.  It runs, as this script does then, in namespaces
    that end with it, where it believes that systemd has booted the machine."""
    if not os.path.exists(MANAGER):
        raise Skip("needs the package systemd")
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                  *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if subprocess.run([*namespaces, "mount", "-t", "tmpfs", "tmpfs", "/run"],
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("no user manager answers: namespaces are not permitted here")
    ran = subprocess.run([*namespaces, sys.executable, __file__, BUILD, directory], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=4 * PATIENCE,
                         env={**os.environ, INSIDE: "1"})
    if ran.returncode == 77:
        raise Skip(ran.stdout.strip().splitlines()[-1])
    assert ran.returncode == 0, ran.stdout


class Managed(Agent):
    """The agent as a service of a user manager."""

    def __init__(self, directory, runtime):
        super().__init__(BUILD, directory)
        self.runtime, self.environment = runtime, {**os.environ, "XDG_RUNTIME_DIR": runtime}

    def systemctl(self, *words):
        ran = subprocess.run(["systemctl", "--user", *words], text=True, timeout=PATIENCE,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env=self.environment)
        assert ran.returncode == 0, f"{words}: {ran.stdout}"
        return ran.stdout.strip()

    def answers(self):
        return subprocess.run(["systemctl", "--user", "show-environment"], env=self.environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=PATIENCE).returncode == 0

    def property(self, name):
        return self.systemctl("show", "--value", "--property", name, USER)

    def socket(self):
        found, = glob.glob(self.runtime + "/gpudispatch/socket-*")
        return found


def inside(directory):
    """In the namespaces."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    runtime = f"/run/user/{os.geteuid()}"
    os.makedirs("/run/systemd/system")
    os.makedirs(runtime, 0o700)
    agent = Managed(directory, runtime)
    agent.state = os.path.join(directory, "state")
    agent.log = os.path.join(directory, "manager.log")
    local_copy(USER, runtime + "/systemd/user", f"Environment=GPUDISPATCH_STATE={agent.state}\n",
               f"StandardError=append:{directory}/agent.log\n")
    with open(agent.log, "w") as log:
        manager = subprocess.Popen(
            [MANAGER, "--user"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={"HOME": directory, "PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": runtime,
                 "SYSTEMD_LOG_TARGET": "console"})
    try:
        until(lambda: agent.answers() or manager.poll() is not None, "an answer")
    except AssertionError:
        manager.kill()
    if manager.poll() is not None or not agent.answers():
        print(f"no user manager answers: {' '.join(agent.said().split())[-300:]}")
        return 77
    os.mkfifo(f"{directory}/gate")
    agent.systemctl("start", USER)
    equal(agent.property("ActiveState"), "active")
    agent.client().submit(commands(directory))
    until(lambda: len(started(directory)) == 8, "eight commands")
    agent.systemctl("stop", USER)
    equal(agent.property("Result"), "success")
    agent.systemctl("start", USER)
    first = agent.property("MainPID")
    agent.systemctl("restart", USER)
    second = agent.property("MainPID")
    assert first != second
    os.kill(int(second), signal.SIGKILL)
    until(lambda: agent.property("NRestarts") == "1" and agent.property("ActiveState") == "active",
          "a restart")
    finish(agent)
    agent.systemctl("stop", USER)
    manager.terminate()
    manager.wait(PATIENCE)
    return 0


CASES = [verify, same_settings, stops_user, stops_system, user_manager]


def main():
    if os.environ.get(INSIDE):
        return inside(sys.argv[2])
    check = Checks("queue-unit")
    for case in CASES:
        if sys.argv[2:] and case.__name__ not in sys.argv[2:]:
            continue
        why = ""
        with tempfile.TemporaryDirectory() as directory:
            try:
                case(directory)
            except Skip as reason:
                check.skip(case.__name__, reason)
                continue
            except Exception:
                why = traceback.format_exc()
        check(case.__name__, not why, why)
        if not why:
            print(f"ok {case.__name__}", flush=True)
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
