# SPDX-License-Identifier: MIT
"""top on a terminal: what is left of it after each end, sizes that change, kinds of terminals."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import termios
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import nights  # noqa: E402
from pty_program import HERE, PATIENCE, Terminal  # noqa: E402
from tool import Skip, contains, equal, run  # noqa: E402

DRAWN = b"read o"  # in the last line; its last cell needs tricks of the terminal
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"  # the other screen of xterm


def on_terminal(tool, *args, **more):
    return Terminal([tool.program, *args], tool.environment, **more)


def start(tool, *args, night="running", **more):
    need_top(tool)
    path = tool.write("night.txt", nights.text(night))
    terminal = on_terminal(tool, "top", "--from", path, *args, **more)
    terminal.read(lambda: DRAWN in terminal.seen)
    return terminal


def need_top(tool):
    """Without ncursesw a terminal gets a sentence."""
    if not hasattr(tool, "has_top"):
        path = tool.write("night.txt", nights.text("one"))
        terminal = on_terminal(tool, "top", "--from", path)
        terminal.press(b"q")
        tool.has_top = terminal.status() == 0
        text = terminal.seen
        terminal.close()
        if not tool.has_top:
            contains(text, b"built without top (-Dtop=enabled)")
    if not tool.has_top:
        raise Skip("built without ncursesw")


def check_screen_left(terminal):
    """The terminal is as it was, and the other screen was left since it was entered last."""
    equal(termios.tcgetattr(terminal.master), terminal.before)
    terminal.read(lambda: terminal.seen.rfind(LEAVE) > terminal.seen.rfind(ENTER))


def check_left(terminal, status):
    """It has ended, and the screen was left."""
    equal(terminal.status(), status)
    check_screen_left(terminal)
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
        check_screen_left(terminal)
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
        terminal = on_terminal(tool, "top", "--from", path, env={"TERM": kind})
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
    # Its own: the server of the screen before may still be ending.
    socket = tool.path(f"tmux-{night}-{columns}x{lines}")
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


if __name__ == "__main__":
    run(globals(), "view")
