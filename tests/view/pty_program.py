# SPDX-License-Identifier: MIT
"""A program on a terminal of its own (a pty), with a process beside it that does what a shell does:
it leads the session, and continues the program when it stops.
"""
import fcntl
import json
import os
import pathlib
import select
import struct
import subprocess
import sys
import termios
import time

PATIENCE = 60  # seconds that only a fault needs
# LeakSanitizer, where the program has it, leaves the memory of ncurses out.
SUPPRESSED = pathlib.Path(__file__).resolve().parent / "ncurses.supp"
HERE = {"TZ": "CET-1", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color",
        "LSAN_OPTIONS": f"suppressions={SUPPRESSED}:print_suppressions=0"}
# The shell: each event is a line on the given descriptor; a line on its input continues.
SHELL = r"""
import fcntl, json, os, signal, sys, termios
events, command = int(sys.argv[1]), sys.argv[2:]
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
go = os.dup(int(os.environ.pop("T_GO")))
program = os.fork()
if program == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    # A background process of a shell without job control ignores some of them.
    for name in "TTOU", "HUP", "INT", "QUIT", "TERM":
        signal.signal(getattr(signal, "SIG" + name), signal.SIG_DFL)
    os.close(events)
    os.close(go)
    os.execv(command[0], command)
def say(**event):
    os.write(events, json.dumps(event).encode() + b"\n")
say(pid=program)
while True:
    _, status = os.waitpid(program, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        say(status=os.waitstatus_to_exitcode(status))
        break
    os.tcsetpgrp(0, os.getpgrp())
    say(stopped=os.WSTOPSIG(status))
    os.read(go, 1)
    os.tcsetpgrp(0, program)
    os.kill(-program, signal.SIGCONT)
os.read(go, 1)
"""


class Terminal:
    """The program on a pty."""

    def __init__(self, command, environment, columns=80, lines=24, env=None):
        self.master, slave = os.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(slave)
        self.seen = b""
        self.events, events = os.pipe()
        go, self.go = os.pipe()
        os.set_inheritable(events, True)
        os.set_inheritable(go, True)
        environment = {**environment, **HERE, "T_GO": str(go), **(env or {})}
        for name in "NO_COLOR", "COLUMNS", "LINES":
            if name not in (env or {}):
                environment.pop(name, None)
        self.shell = subprocess.Popen(
            [sys.executable, "-c", SHELL, str(events), *command], stdin=slave,
            stdout=slave, stderr=slave, close_fds=False, pass_fds=(), env=environment)
        for fd in slave, events, go:
            os.close(fd)
        self.lines = b""
        self.pid = self.event()["pid"]

    def resize(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, until):
        """Reads what is shown until a descriptor or a moment says so."""
        end = time.monotonic() + PATIENCE
        while not until():
            ready, _, _ = select.select([self.master, self.events], [], [],
                                        max(0, end - time.monotonic()))
            assert ready, f"nothing more after {self.seen[-400:]!r}"
            if self.events in ready:
                part = os.read(self.events, 4096)
                assert part, "the shell has ended"
                self.lines += part
            if self.master in ready:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:  # no process has the terminal any more
                    pass

    def event(self):
        self.read(lambda: b"\n" in self.lines)
        line, self.lines = self.lines.split(b"\n", 1)
        return json.loads(line)

    def wait(self, text):
        """Until a text is shown once more.  Call it behind what leads to it, and read nothing
        between them."""
        at = len(self.seen)
        self.read(lambda: text in self.seen[at:])

    def press(self, keys):
        os.write(self.master, keys)

    def status(self):
        return self.event()["status"]

    def close(self):
        os.close(self.go)
        self.shell.wait(PATIENCE)
        os.close(self.master)
        os.close(self.events)
