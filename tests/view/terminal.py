# SPDX-License-Identifier: MIT
"""top on a terminal: what is left of it after each end, sizes that change, kinds of terminals.

The program runs in a terminal of its own (a pty), with a process beside it that does what a shell
does: it leads the session, and continues the program when it stops.
"""
import fcntl
import json
import os
import pathlib
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import nights  # noqa: E402
from tool import PATIENCE, Skip, contains, equal, run  # noqa: E402

HERE = {"TZ": "CET-1", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
DRAWN = b"read o"  # in the last line; its last cell needs tricks of the terminal
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"  # the other screen of xterm
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
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
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

    def __init__(self, tool, *args, columns=80, lines=24, env=None):
        self.master, slave = os.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(slave)
        self.seen = b""
        self.events, events = os.pipe()
        go, self.go = os.pipe()
        os.set_inheritable(events, True)
        os.set_inheritable(go, True)
        environment = {**tool.environment, **HERE, "T_GO": str(go), **(env or {})}
        for name in "NO_COLOR", "COLUMNS", "LINES":
            if name not in (env or {}):
                environment.pop(name, None)
        self.shell = subprocess.Popen(
            [sys.executable, "-c", SHELL, str(events), tool.program, *args], stdin=slave,
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


def start(tool, *args, night="running", **more):
    need_top(tool)
    path = tool.write("night.txt", nights.text(night))
    terminal = Terminal(tool, "top", "--from", path, *args, **more)
    terminal.read(lambda: DRAWN in terminal.seen)
    return terminal


def need_top(tool):
    """Without ncursesw a terminal gets a sentence."""
    if not hasattr(tool, "has_top"):
        path = tool.write("night.txt", nights.text("one"))
        terminal = Terminal(tool, "top", "--from", path)
        terminal.press(b"q")
        tool.has_top = terminal.status() == 0
        text = terminal.seen
        terminal.close()
        if not tool.has_top:
            contains(text, b"built without top (-Dtop=enabled)")
    if not tool.has_top:
        raise Skip("built without ncursesw")


def check_left(terminal, status):
    """The terminal is as it was, and the other screen was left."""
    equal(terminal.status(), status)
    equal(termios.tcgetattr(terminal.master), terminal.before)
    terminal.read(lambda: LEAVE in terminal.seen)
    assert terminal.seen.rindex(LEAVE) > terminal.seen.rindex(ENTER)
    contains(terminal.seen[terminal.seen.rindex(ENTER):], b"\x1b[?25h")  # the cursor
    terminal.close()


# ---- Ends ----


def test_q(tool):
    terminal = start(tool)
    assert termios.tcgetattr(terminal.master) != terminal.before
    terminal.press(b"q")
    check_left(terminal, 0)


def test_signals_that_end_it(tool):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        terminal = start(tool)
        os.kill(terminal.pid, number)
        check_left(terminal, -number)


def test_control_c(tool):
    terminal = start(tool)
    terminal.press(b"\x03")
    check_left(terminal, -signal.SIGINT)


def test_crash(tool):
    """It ends by the signal of its crash, with a terminal that one can use."""
    if tool.sanitizer != "none":
        raise Skip("sanitizers handle crashes")
    for number in signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS:
        terminal = start(tool)
        os.kill(terminal.pid, number)
        check_left(terminal, -number)


def test_stop_and_continue(tool):
    terminal = start(tool)
    for press in (lambda: terminal.press(b"\x1a"),
                  lambda: os.kill(terminal.pid, signal.SIGTSTP)):
        press()
        equal(terminal.event(), {"stopped": signal.SIGTSTP})
        equal(termios.tcgetattr(terminal.master), terminal.before)
        assert terminal.seen.rindex(LEAVE) > terminal.seen.rindex(ENTER)
        os.write(terminal.go, b"\n")
        terminal.wait(DRAWN)
        assert termios.tcgetattr(terminal.master) != terminal.before
    terminal.press(b"q")
    check_left(terminal, 0)


def test_hard_stop(tool):
    """After SIGSTOP the screen is drawn anew."""
    terminal = start(tool)
    os.kill(terminal.pid, signal.SIGSTOP)
    equal(terminal.event(), {"stopped": signal.SIGSTOP})
    termios.tcsetattr(terminal.master, termios.TCSANOW, terminal.before)  # as a shell does
    os.write(terminal.go, b"\n")
    terminal.wait(DRAWN)
    terminal.press(b"q")
    check_left(terminal, 0)


# ---- Sizes ----


def test_sizes_while_it_draws(tool):
    terminal = start(tool)
    for columns, lines in (40, 10), (250, 60), (30, 5), (80, 24), (160, 50), (1, 1), (120, 40):
        terminal.resize(columns, lines)
        terminal.press(b"\thh")  # it draws meanwhile
    terminal.resize(30, 5)
    terminal.wait(b"needs 40x10")
    terminal.resize(80, 24)
    terminal.wait(DRAWN)
    terminal.press(b"q")
    check_left(terminal, 0)


# ---- Kinds of terminals ----


def test_kinds(tool):
    for kind in "vt100", "linux", "screen", "tmux", "xterm":
        terminal = start(tool, env={"TERM": kind})
        terminal.press(b"\t?q/whisper\rq")
        equal((kind, terminal.status()), (kind, 0))
        equal(termios.tcgetattr(terminal.master), terminal.before)
        terminal.close()


COLOURS = re.compile(rb"\x1b\[[0-9;]*3[0-7][;m]")


def test_no_colour(tool):
    for env, colours in ({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "vt100"}, False):
        terminal = start(tool, env=env)
        terminal.press(b"q")
        equal(terminal.status(), 0)
        equal((env, bool(COLOURS.search(terminal.seen))), (env, colours))
        terminal.close()


def test_no_entry(tool):
    """A terminal that terminfo does not know gets screens one below the other."""
    need_top(tool)
    path = tool.write("night.txt", nights.text("running"))
    for kind in "no-such-terminal", "dumb":
        terminal = Terminal(tool, "top", "--from", path, env={"TERM": kind})
        equal(terminal.status(), 0)
        terminal.read(lambda: b"\r\nWENT WRONG (" in terminal.seen)
        contains(terminal.seen, b"no entry for the terminal '" + kind.encode())
        contains(terminal.seen, b"a screen every 5 s")
        assert b"\x1b" not in terminal.seen, terminal.seen
        terminal.close()


# ---- What is shown ----


def captured(tool, night, columns, lines, keys=()):
    """The lines of the screen, as tmux has them."""
    need_top(tool)
    if not shutil.which("tmux"):
        raise Skip("tmux is not installed")
    path = tool.write(night + ".txt", nights.text(night))
    socket = tool.path("tmux")
    environment = {**tool.environment, **HERE, "TERM": "xterm-256color"}
    environment.pop("TMUX", None)

    def tmux(*args):
        return subprocess.run(["tmux", "-S", socket, "-f", "/dev/null", *args], env=environment,
                              check=True, capture_output=True, timeout=PATIENCE).stdout.decode()

    tmux("new-session", "-d", "-x", str(columns), "-y", str(lines), tool.program, "top", "--from",
         path)
    try:
        screen = lambda: tmux("capture-pane", "-p")  # noqa: E731
        end = time.monotonic() + PATIENCE
        while "read only" not in screen():
            assert time.monotonic() < end, screen()
        for key, text in keys:
            tmux("send-keys", key)
            while text not in screen():
                assert time.monotonic() < end, screen()
        return [line.rstrip() for line in screen().split("\n")]
    finally:
        tmux("kill-server")


def test_screen_has_what_a_pipe_has(tool):
    """Sums and GPUs are in the same cells, also with wide and combining characters."""
    for night in "running", "hostile":
        for columns, lines in (80, 24), (160, 50):
            shown = captured(tool, night, columns, lines)
            status, out, _ = tool.run("top", "--once", "--from", tool.path(night + ".txt"),
                                      env={**HERE, "COLUMNS": str(columns), "LINES": str(lines)})
            equal(status, 0)
            equal(shown[1:9], out.split("\n")[1:9])  # the first one has the clock
            contains(shown[lines - 1], "read only")


def test_keys_of_the_terminal(tool):
    shown = captured(tool, "running", 80, 24, [("?", "the next part"), ("q", "BATCH "),
                                               ("Tab", "BATCH "), ("Tab", "CLASS  "),
                                               ("Tab", "WENT"), ("Enter", "To type next"),
                                               ("Escape", "BATCH ")])
    contains("\n".join(shown), "read only")


def test_a_recording_has_no_explain(tool):
    shown = captured(tool, "running", 80, 24, [("Enter", "a recording has no explain"),
                                               ("l", "a recording has no output")])
    contains(shown[0], "gpudispatch top")


run(globals(), "view")
